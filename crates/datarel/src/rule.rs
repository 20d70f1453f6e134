//! Rules over relations of `u32` constants.

use std::fmt;
use std::sync::Arc;

use crate::constant::Comparison;
use crate::constant::Const;

use super::ring::{Times, Value};

/// A relation of a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RelationId(pub u32);

/// A variable of one rule; numbers should be small and without gaps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Variable(pub u32);

/// An argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Term {
    /// A variable.
    Variable(Variable),
    /// The id of a constant.
    Constant(u32),
    /// Some value (`_`), in bodies only: it asks whether there is one and is never counted.
    /// Under `not`: no value.
    Any,
}

impl Term {
    /// The variable of a number.
    pub const fn variable(number: u32) -> Term {
        Term::Variable(Variable(number))
    }

    /// The variable, if it is one.
    pub fn as_variable(self) -> Option<Variable> {
        match self {
            Term::Variable(variable) => Some(variable),
            Term::Constant(_) | Term::Any => None,
        }
    }
}

/// A relation with its arguments.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Atom {
    /// The relation.
    pub relation: RelationId,
    /// One term a place; repeated variables mean equality.
    pub terms: Vec<Term>,
    /// Whether the value of the tuple (1 for a Boolean relation) is multiplied into the value of
    /// the rule, or the atom is a condition only. Plays no part in rules of Boolean heads. In a
    /// factor [`Term::Any`] is a variable of its own: its bindings are joined by ⊕.
    pub factor: bool,
}

impl Atom {
    /// A condition.
    pub fn new(relation: RelationId, terms: impl Into<Vec<Term>>) -> Atom {
        Atom { relation, terms: terms.into(), factor: false }
    }

    /// A factor.
    pub fn factor(relation: RelationId, terms: impl Into<Vec<Term>>) -> Atom {
        Atom { relation, terms: terms.into(), factor: true }
    }
}

/// A function of constants; `None` where it has no value.
pub type Function = Arc<dyn Fn(&[Const]) -> Option<Const> + Send + Sync>;

/// A condition on constants.
pub type Test = Arc<dyn Fn(&[Const]) -> bool + Send + Sync>;

/// A number made from constants, as a factor of a rule; `None` where it has no value: then
/// the binding makes no contribution.
pub type Measure = Arc<dyn Fn(&[Const]) -> Option<Value> + Send + Sync>;

/// A part of a body.
#[derive(Clone)]
pub enum Literal {
    /// A tuple exists.
    Atom(Atom),
    /// No such tuple exists. The relation must be finished: of an earlier stratum.
    Not(Atom),
    /// `==` and `!=` compare constants; the others integers, and fail where a side is a symbol.
    Compare(Comparison, Term, Term),
    /// `to = from + by` over integers: binds whichever of the two is unbound, or compares.
    Shift {
        /// The sum.
        to: Term,
        /// The summand.
        from: Term,
        /// The number added.
        by: i64,
    },
    /// `result = function(arguments)`: binds the result, or compares where it is bound.
    Compute {
        /// The result.
        result: Term,
        /// The arguments: variables bound elsewhere, or constants.
        arguments: Vec<Term>,
        /// The function.
        function: Function,
    },
    /// A built-in predicate.
    Test {
        /// The arguments: variables bound elsewhere, or constants.
        arguments: Vec<Term>,
        /// The predicate.
        test: Test,
    },
}

impl From<Atom> for Literal {
    fn from(atom: Atom) -> Literal {
        Literal::Atom(atom)
    }
}

impl fmt::Debug for Literal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Literal::Atom(atom) => atom.fmt(f),
            Literal::Not(atom) => write!(f, "not {atom:?}"),
            Literal::Compare(sign, left, right) => write!(f, "{sign:?}({left:?}, {right:?})"),
            Literal::Shift { to, from, by } => write!(f, "{to:?} = {from:?} + {by}"),
            Literal::Compute { result, arguments, .. } => write!(f, "{result:?} = f({arguments:?})"),
            Literal::Test { arguments, .. } => write!(f, "test({arguments:?})"),
        }
    }
}

/// A factor of a rule that is made from constants.
#[derive(Clone)]
pub struct Computed {
    /// Variables bound by the body, or constants.
    pub arguments: Vec<Term>,
    /// The number.
    pub measure: Measure,
}

impl fmt::Debug for Computed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "measure({:?})", self.arguments)
    }
}

/// A rule: for every binding of its variables that satisfies the body, a contribution to the
/// tuple that the head names. Its value is `weight` ⊗ the computed factors ⊗ the values of the
/// factors of the body, in the ring of the head's relation.
#[derive(Debug, Clone)]
pub struct Rule {
    /// The relation that it defines.
    pub head: RelationId,
    /// Its arguments: variables or constants.
    pub head_terms: Vec<Term>,
    /// What must hold. The order means nothing.
    pub body: Vec<Literal>,
    /// A constant factor.
    pub weight: Option<Value>,
    /// Factors made from constants.
    pub computed: Vec<Computed>,
    /// For a Boolean head: only tuples whose value passes are derived. The value is that of a head of reals.
    pub select: Option<Select>,
    /// A number of the caller's, for what a profile says: rules that are made from this one keep it.
    pub origin: Option<u32>,
}

/// A condition on the constants of a head and a value.
pub type ValueTest = Arc<dyn Fn(&[Const], f64) -> bool + Send + Sync>;

/// A condition on the value of a derivation.
#[derive(Clone)]
pub struct Select {
    /// How the factors are multiplied.
    pub times: Times,
    /// The condition on the constants of the head, and the value.
    pub test: ValueTest,
}

impl fmt::Debug for Select {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "select({:?})", self.times)
    }
}

impl Rule {
    /// A rule without a weight.
    pub fn new(head: RelationId, head_terms: impl Into<Vec<Term>>, body: impl Into<Vec<Literal>>) -> Rule {
        Rule {
            head,
            head_terms: head_terms.into(),
            body: body.into(),
            weight: None,
            computed: Vec::new(),
            select: None,
            origin: None,
        }
    }

    /// Whether a literal may make a constant: the variable that it computes stands in no positive atom.
    pub fn makes(&self, literal: &Literal) -> bool {
        let stands = |term: &Term| self.atoms().any(|atom| atom.terms.contains(term));
        match literal {
            Literal::Shift { to, from, .. } => !stands(to) || !stands(from),
            Literal::Compute { result, .. } => !stands(result),
            _ => false,
        }
    }

    /// The positive atoms of the body.
    pub fn atoms(&self) -> impl Iterator<Item = &Atom> {
        self.body.iter().filter_map(|literal| match literal {
            Literal::Atom(atom) => Some(atom),
            _ => None,
        })
    }
}
