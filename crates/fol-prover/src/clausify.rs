//! From formulas to clauses: sub-formulas are named where clauses would multiply (`fold`), then every formula becomes its
//! clauses in one pass, which is negation normal form, Skolem form and distribution at once.
//!
//! The clauses of a formula are canonical: which they are, in which order, and how witnesses are numbered is fixed here and
//! in the page of the prover, and the checker of proofs makes them again in its own way. In short:
//!
//! - a universal variable is new at each visit of its quantifier; `∀x:S φ` is `¬S(x) ∨ φ`, and so with `∃` denied;
//! - an existential quantifier goes inside `∨`, and inside `∧` past the operand in which its variable is not free;
//!   there it is a witness, whose arguments are the universal variables, ascending, in what stands for the free variables of its scope;
//! - `φ ↔ ψ` is `(¬φ ∨ ψ) ∧ (φ ∨ ¬ψ)`, and denied `(φ ∨ ψ) ∧ (¬φ ∨ ¬ψ)`;
//! - `∃!x φ` is `∃x φ ∧ ∀u ∀v (¬φ(u) ∨ ¬φ(v) ∨ u = v)`, and denied `∀u (¬φ(u) ∨ ∃v (φ(v) ∧ v ≠ u))`;
//! - equal literals of a clause are one, the first; its variables are numbered by first occurrence.

mod fold;
mod share;

use std::collections::BTreeSet;

use fol::ast::{Connective, Formula, Quantifier, Relation, Sort, Term as Given, Variable};

use crate::logic::{Atom, Clause, FunctionSymbol, Literal, PredicateSymbol, Term};
use crate::problem::Problem;
use crate::proof::{Definition, Origin};

/// The clauses of a problem with a denied conclusion, and the definitions that they use.
#[derive(Debug)]
pub(crate) struct Clausal {
    /// Names of sub-formulas, each over the names before it.
    pub(crate) definitions: Vec<Definition>,
    /// The formulas with names in place of sub-formulas.
    pub(crate) formulas: Vec<Formula>,
    /// Clauses that are no tautologies, with the formula that each comes from and its number there.
    pub(crate) clauses: Vec<(Origin, usize, Clause)>,
}

/// More clauses than this are not made.
const MOST: usize = 100_000;

/// The clauses of a problem, or none if they are too many.
pub(crate) fn clausify(problem: &Problem) -> Option<Clausal> {
    with_names(problem, Vec::new())
}

/// The clauses of a problem in which every sub-formula that comes again is a name of which nothing is known: what contradicts them
/// contradicts the problem. None if nothing comes again.
pub(crate) fn of_shape(problem: &Problem) -> Option<Clausal> {
    let (problem, names) = share::share(problem)?;
    with_names(&problem, names)
}

/// The clauses of a problem over names that are defined already.
fn with_names(problem: &Problem, names: Vec<Definition>) -> Option<Clausal> {
    let folded = fold::fold(problem, &names);
    let mut clauses = Vec::new();
    let mut add = |origin: Origin, number: usize, formula: &Formula, truth: bool| {
        let mut maker = Maker { formula: number, witnesses: 0, variables: 0, scope: Vec::new(), full: false };
        let made = maker.clauses(formula, truth);
        for (at, clause) in made.into_iter().enumerate() {
            let clause = canonical(clause);
            if !is_tautology(&clause) {
                clauses.push((origin, at, clause));
            }
        }
        (!maker.full && clauses.len() <= MOST).then_some(())
    };
    let premises = problem.premises().len();
    for (i, formula) in folded.formulas.iter().enumerate() {
        let origin = if i < premises { Origin::Premise(i) } else { Origin::Conclusion };
        add(origin, i, formula, i < premises)?;
    }
    for (i, definition) in folded.definitions.iter().enumerate() {
        let number = names.len() + i;
        let first = folded.formulas.len() + 2 * number;
        if folded.used[i].positive {
            add(Origin::Unfold(number), first, &definition.half(true), true)?;
        }
        if folded.used[i].negative {
            add(Origin::Fold(number), first + 1, &definition.half(false), true)?;
        }
    }
    let definitions = names.into_iter().chain(folded.definitions).collect();
    Some(Clausal { definitions, formulas: folded.formulas, clauses })
}

/// Equal literals are one; variables are numbered by first occurrence.
fn canonical(literals: Vec<Literal>) -> Clause {
    let mut kept: Vec<Literal> = Vec::with_capacity(literals.len());
    for literal in literals {
        if !kept.contains(&literal) {
            kept.push(literal);
        }
    }
    let mut names = Vec::new();
    for literal in &mut kept {
        match &mut literal.atom {
            Atom::Predicate(_, terms) => terms.iter_mut().for_each(|term| rename(term, &mut names)),
            Atom::Equal(s, t) => {
                rename(s, &mut names);
                rename(t, &mut names);
            }
        }
    }
    Clause(kept)
}

fn rename(term: &mut Term, names: &mut Vec<usize>) {
    match term {
        Term::Variable(n) => {
            let at = names.iter().position(|known| known == n);
            *n = at.unwrap_or_else(|| {
                names.push(*n);
                names.len() - 1
            });
        }
        Term::Apply(_, terms) => terms.iter_mut().for_each(|term| rename(term, names)),
    }
}

/// Whether a clause says nothing.
fn is_tautology(clause: &Clause) -> bool {
    clause.0.iter().enumerate().any(|(i, literal)| {
        let reflexive = matches!(&literal.atom, Atom::Equal(s, t) if s == t && literal.positive);
        let opposite =
            |other: &Literal| other.positive != literal.positive && same_atom(&other.atom, &literal.atom);
        reflexive || clause.0.iter().skip(i + 1).any(opposite)
    })
}

fn same_atom(one: &Atom, other: &Atom) -> bool {
    match (one, other) {
        (Atom::Equal(a, b), Atom::Equal(c, d)) => (a, b) == (c, d) || (a, b) == (d, c),
        _ => one == other,
    }
}

type Literals = Vec<Vec<Literal>>;

struct Maker {
    /// The number of the formula, for the names of witnesses.
    formula: usize,
    witnesses: usize,
    variables: usize,
    /// What stands for each bound variable, the innermost last.
    scope: Vec<(Variable, Term)>,
    /// There were too many clauses.
    full: bool,
}

impl Maker {
    fn clauses(&mut self, formula: &Formula, truth: bool) -> Literals {
        match formula {
            Formula::Truth(value) => {
                if *value == truth {
                    Vec::new()
                } else {
                    vec![Vec::new()]
                }
            }
            Formula::Predicate(p, terms) => {
                let terms: Vec<Term> = terms.iter().map(|term| self.term(term)).collect();
                let symbol = PredicateSymbol::Predicate(*p, terms.len());
                unit(truth, Atom::Predicate(symbol, terms))
            }
            Formula::Relation(relation, s, t) => {
                let (s, t) = (self.term(s), self.term(t));
                match relation {
                    Relation::Equals => unit(truth, Atom::Equal(s, t)),
                    Relation::NotEquals => unit(!truth, Atom::Equal(s, t)),
                    other => unit(truth, Atom::Predicate(PredicateSymbol::Relation(*other), vec![s, t])),
                }
            }
            Formula::Not(body) => self.clauses(body, !truth),
            Formula::Binary(Connective::Iff, left, right) => {
                let first = self.clauses(left, !truth);
                let second = self.clauses(right, true);
                let mut all = self.either(first, second);
                let first = self.clauses(left, truth);
                let second = self.clauses(right, false);
                all.extend(self.either(first, second));
                all
            }
            Formula::Binary(connective, left, right) => {
                let (or, truth_left, truth_right) = operands(*connective, truth);
                let left = self.clauses(left, truth_left);
                let right = self.clauses(right, truth_right);
                self.combined(or, left, right)
            }
            Formula::Quantified(Quantifier::Exists1, x, sort, body) => {
                self.exactly_one(*x, *sort, body, truth)
            }
            Formula::Quantified(quantifier, x, sort, body) => {
                if (*quantifier == Quantifier::Forall) == truth {
                    let variable = self.variable();
                    self.under(*x, variable, |maker| {
                        let guard = maker.guard(*x, *sort, false);
                        let body = maker.clauses(body, truth);
                        maker.either(guard, body)
                    })
                } else {
                    self.witness(*x, *sort, body, truth)
                }
            }
        }
    }

    /// Some x makes the body true or false, as `truth` says.
    fn witness(&mut self, x: Variable, sort: Option<Sort>, body: &Formula, truth: bool) -> Literals {
        match body {
            Formula::Not(body) => return self.witness(x, sort, body, !truth),
            Formula::Binary(connective, left, right) if *connective != Connective::Iff => {
                let (or, truth_left, truth_right) = operands(*connective, truth);
                let (in_left, in_right) = (is_free(x, left), is_free(x, right));
                if or || !in_left || !in_right {
                    let inside_left = or || in_left;
                    let inside_right = or || !in_left;
                    let left = match inside_left {
                        true => self.witness(x, sort, left, truth_left),
                        false => self.clauses(left, truth_left),
                    };
                    let right = match inside_right {
                        true => self.witness(x, sort, right, truth_right),
                        false => self.clauses(right, truth_right),
                    };
                    return self.combined(or, left, right);
                }
            }
            _ if sort.is_none() && !is_free(x, body) => return self.clauses(body, truth),
            _ => {}
        }
        let witness = self.new_witness(x, body, None);
        self.under(x, witness, |maker| {
            let mut all = maker.guard(x, sort, true);
            all.extend(maker.clauses(body, truth));
            all
        })
    }

    fn exactly_one(&mut self, x: Variable, sort: Option<Sort>, body: &Formula, truth: bool) -> Literals {
        if truth {
            let mut all = self.witness(x, sort, body, true);
            let (u, v) = (self.variable(), self.variable());
            let first = self.denied(x, sort, body, u.clone());
            let second = self.denied(x, sort, body, v.clone());
            let both = self.either(first, second);
            all.extend(self.either(both, unit(true, Atom::Equal(u, v))));
            return all;
        }
        let u = self.variable();
        let first = self.denied(x, sort, body, u.clone());
        let v = self.new_witness(x, body, Some(&u));
        let second = self.under(x, v.clone(), |maker| {
            let mut all = maker.guard(x, sort, true);
            all.extend(maker.clauses(body, true));
            all.extend(unit(false, Atom::Equal(v, u)));
            all
        });
        self.either(first, second)
    }

    /// The body is false of an element, or it is not of the sort.
    fn denied(&mut self, x: Variable, sort: Option<Sort>, body: &Formula, element: Term) -> Literals {
        self.under(x, element, |maker| {
            let guard = maker.guard(x, sort, false);
            let body = maker.clauses(body, false);
            maker.either(guard, body)
        })
    }

    /// That x is of its sort, or not: nothing to say where there is no sort.
    fn guard(&self, x: Variable, sort: Option<Sort>, truth: bool) -> Literals {
        match sort {
            Some(sort) => unit(
                truth,
                Atom::Predicate(PredicateSymbol::Sort(sort), vec![self.term(&Given::Variable(x))]),
            ),
            None if truth => Vec::new(),
            None => vec![Vec::new()],
        }
    }

    /// A witness for x. Its arguments are the universal variables in what stands for the other free variables.
    fn new_witness(&mut self, x: Variable, body: &Formula, beside: Option<&Term>) -> Term {
        let mut variables = BTreeSet::new();
        let mut free = BTreeSet::new();
        free_variables(body, &mut vec![x], &mut free);
        for y in free {
            if let Some((_, term)) = self.scope.iter().rev().find(|(known, _)| *known == y) {
                collect(term, &mut variables);
            }
        }
        if let Some(term) = beside {
            collect(term, &mut variables);
        }
        let symbol = FunctionSymbol::Skolem(self.formula, self.witnesses);
        self.witnesses += 1;
        Term::Apply(symbol, variables.into_iter().map(Term::Variable).collect())
    }

    fn under<R>(&mut self, x: Variable, term: Term, inside: impl FnOnce(&mut Self) -> R) -> R {
        self.scope.push((x, term));
        let result = inside(self);
        self.scope.pop();
        result
    }

    fn variable(&mut self) -> Term {
        self.variables += 1;
        Term::Variable(self.variables - 1)
    }

    fn term(&self, term: &Given) -> Term {
        match term {
            Given::Variable(x) => match self.scope.iter().rev().find(|(known, _)| known == x) {
                Some((_, term)) => term.clone(),
                None => Term::constant(FunctionSymbol::Parameter(*x)),
            },
            Given::Constant(c) => Term::constant(FunctionSymbol::Constant(*c)),
            Given::Function(f, terms) => {
                let symbol = FunctionSymbol::Function(*f, terms.len());
                Term::Apply(symbol, terms.iter().map(|term| self.term(term)).collect())
            }
        }
    }

    fn combined(&mut self, or: bool, left: Literals, right: Literals) -> Literals {
        if or {
            return self.either(left, right);
        }
        let mut all = left;
        all.extend(right);
        all
    }

    fn either(&mut self, left: Literals, right: Literals) -> Literals {
        if left.len().saturating_mul(right.len()) > MOST {
            self.full = true;
            return Vec::new();
        }
        let joined = |one: &Vec<Literal>, other: &Vec<Literal>| [one.as_slice(), other].concat();
        left.iter().flat_map(|one| right.iter().map(move |other| joined(one, other))).collect()
    }
}

fn unit(positive: bool, atom: Atom) -> Literals {
    vec![vec![Literal { positive, atom }]]
}

/// A connective that is true or false, as a disjunction or conjunction of operands that are true or false.
fn operands(connective: Connective, truth: bool) -> (bool, bool, bool) {
    match connective {
        Connective::And => (!truth, truth, truth),
        Connective::Implies => (truth, !truth, truth),
        Connective::Or | Connective::Iff => (truth, truth, truth),
    }
}

fn collect(term: &Term, variables: &mut BTreeSet<usize>) {
    match term {
        Term::Variable(n) => drop(variables.insert(*n)),
        Term::Apply(_, terms) => terms.iter().for_each(|term| collect(term, variables)),
    }
}

/// Whether a variable is free in a formula.
fn is_free(x: Variable, formula: &Formula) -> bool {
    match formula {
        Formula::Truth(_) => false,
        Formula::Predicate(_, terms) => terms.iter().any(|term| occurs(x, term)),
        Formula::Relation(_, s, t) => occurs(x, s) || occurs(x, t),
        Formula::Not(body) => is_free(x, body),
        Formula::Binary(_, left, right) => is_free(x, left) || is_free(x, right),
        Formula::Quantified(_, y, _, body) => *y != x && is_free(x, body),
    }
}

fn occurs(x: Variable, term: &Given) -> bool {
    match term {
        Given::Variable(y) => *y == x,
        Given::Constant(_) => false,
        Given::Function(_, terms) => terms.iter().any(|term| occurs(x, term)),
    }
}

/// The free variables of a formula below some binders.
fn free_variables(formula: &Formula, bound: &mut Vec<Variable>, free: &mut BTreeSet<Variable>) {
    match formula {
        Formula::Truth(_) => {}
        Formula::Predicate(_, terms) => terms.iter().for_each(|term| term_variables(term, bound, free)),
        Formula::Relation(_, s, t) => [s, t].into_iter().for_each(|term| term_variables(term, bound, free)),
        Formula::Not(body) => free_variables(body, bound, free),
        Formula::Binary(_, left, right) => {
            free_variables(left, bound, free);
            free_variables(right, bound, free);
        }
        Formula::Quantified(_, x, _, body) => {
            bound.push(*x);
            free_variables(body, bound, free);
            bound.pop();
        }
    }
}

fn term_variables(term: &Given, bound: &[Variable], free: &mut BTreeSet<Variable>) {
    match term {
        Given::Variable(x) => {
            if !bound.contains(x) {
                free.insert(*x);
            }
        }
        Given::Constant(_) => {}
        Given::Function(_, terms) => terms.iter().for_each(|term| term_variables(term, bound, free)),
    }
}
