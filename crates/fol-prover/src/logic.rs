//! Clauses: what the engine derives and what a proof is made of.
//!
//! A clause is a disjunction of literals under universal quantifiers; its variables are numbered from 0. Symbols are those
//! of the text, and the Skolem symbols that clauses needed. All types are plain trees, so that a checker can look at them
//! without the engine; the engine shares its terms (`saturate::bank`).

use std::fmt;

use fol::ast::{Constant, Function, Predicate, Relation, Sort, Variable};

/// What a term is headed by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FunctionSymbol {
    /// `c3`
    Constant(Constant),
    /// A free variable of the text: one unknown element.
    Parameter(Variable),
    /// `f3` with its arity.
    Function(Function, usize),
    /// The witness number `.1` of formula number `.0` of the proof.
    Skolem(usize, usize),
}

/// What an atom is headed by. Equality is not among them: `≠` is its negation, and it has a meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PredicateSymbol {
    /// `P3` with its arity.
    Predicate(Predicate, usize),
    /// `<` and its kin, without a meaning of their own.
    Relation(Relation),
    /// Membership in a sort.
    Sort(Sort),
}

impl PredicateSymbol {
    /// The number of arguments.
    pub fn arity(self) -> usize {
        match self {
            Self::Predicate(_, arity) => arity,
            Self::Relation(_) => 2,
            Self::Sort(_) => 1,
        }
    }
}

/// A term of a clause.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Term {
    /// A variable of the clause.
    Variable(usize),
    /// A symbol and its arguments.
    Apply(FunctionSymbol, Vec<Term>),
}

/// An atom of a clause.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Atom {
    /// A predicate and its arguments.
    Predicate(PredicateSymbol, Vec<Term>),
    /// `s = t`, which is the same atom as `t = s`.
    Equal(Term, Term),
}

/// An atom or its negation.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Literal {
    /// Not negated.
    pub positive: bool,
    /// What is said or denied.
    pub atom: Atom,
}

/// A clause; without literals it is false.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Clause(pub Vec<Literal>);

/// For each variable of a clause, by its number, the term that is put in its place.
pub type Substitution = Vec<Term>;

impl Term {
    /// A symbol without arguments.
    pub fn constant(symbol: FunctionSymbol) -> Self {
        Self::Apply(symbol, Vec::new())
    }
}

impl Literal {
    /// The opposite.
    #[must_use]
    pub fn negated(self) -> Self {
        Self { positive: !self.positive, ..self }
    }
}

impl fmt::Display for FunctionSymbol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Constant(c) => write!(f, "c{}", c.0),
            Self::Parameter(x) => write!(f, "x{}", x.0),
            Self::Function(g, _) => write!(f, "f{}", g.0),
            Self::Skolem(formula, number) => write!(f, "sk{formula}_{number}"),
        }
    }
}

impl fmt::Display for PredicateSymbol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Predicate(p, _) => write!(f, "P{}", p.0),
            Self::Relation(relation) => f.write_str(relation.symbol().unicode()),
            Self::Sort(sort) => write!(f, "S{}", sort.0),
        }
    }
}

/// Arguments in parentheses, or nothing.
fn arguments(f: &mut fmt::Formatter<'_>, arguments: &[Term]) -> fmt::Result {
    for (i, argument) in arguments.iter().enumerate() {
        write!(f, "{}{argument}", if i == 0 { "(" } else { ", " })?;
    }
    if arguments.is_empty() { Ok(()) } else { f.write_str(")") }
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Variable(n) => write!(f, "X{n}"),
            Self::Apply(symbol, terms) => {
                write!(f, "{symbol}")?;
                arguments(f, terms)
            }
        }
    }
}

impl fmt::Display for Literal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.atom, self.positive) {
            (Atom::Equal(s, t), true) => write!(f, "{s} = {t}"),
            (Atom::Equal(s, t), false) => write!(f, "{s} ≠ {t}"),
            (Atom::Predicate(PredicateSymbol::Relation(relation), terms), positive) => {
                let sign = if positive { "" } else { "¬" };
                let [s, t] = terms.as_slice() else {
                    return write!(f, "{sign}{}", relation.symbol().unicode());
                };
                write!(f, "{sign}{s} {} {t}", relation.symbol().unicode())
            }
            (Atom::Predicate(predicate, terms), positive) => {
                write!(f, "{}{predicate}", if positive { "" } else { "¬" })?;
                arguments(f, terms)
            }
        }
    }
}

impl fmt::Display for Clause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, literal) in self.0.iter().enumerate() {
            write!(f, "{}{literal}", if i == 0 { "" } else { " ∨ " })?;
        }
        if self.0.is_empty() { f.write_str("⊥") } else { Ok(()) }
    }
}
