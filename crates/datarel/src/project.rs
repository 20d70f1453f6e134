//! Projection early: a variable is eliminated before the rest of the body is joined.
//!
//! The atoms that hold the variable become a relation of their own, without it. In sums,
//! `n += u(x, y) v(y, z)` becomes the product of two degree vectors. In a recursion,
//! `s(x, z) <- e(x, r, y), s(y, a), exl(r, a, z)` becomes `t(y, r, z) <- s(y, a), exl(r, a, z)`
//! and `s(x, z) <- e(x, r, y), t(y, r, z)`: the join of the last two is made once, and not once
//! for every tuple of `e`. Enter at [`sums`] and [`recursion`].

use super::database::Database;
use super::plan::terms;
use super::ring::{Combine, Ring, Times};
use super::rule::{Atom, Literal, RelationId, Rule, Term, Variable};

/// A finished relation is selective in a recursion if it has this share of all constants at most,
const SELECTIVE: f64 = 0.25;

/// and so many tuples for each of them.
const FANOUT: f64 = 2.0;

/// Rules without recursion: variables of sums leave as soon as an atom covers their neighbours.
/// Further relations are declared in the database, and their rules come before those that use
/// them.
pub(super) fn sums(database: &mut Database, rule: &Rule) -> Vec<Rule> {
    let ring = database.relation(rule.head).ring();
    if ring.idempotent() || ring.times != Times::Times {
        return vec![rule.clone()];
    }
    eliminate(database, rule, ring, |_, _, atoms, _| {
        let all = variables(atoms.iter().flat_map(|atom| &atom.terms));
        atoms.iter().any(|atom| all.iter().all(|variable| atom.terms.contains(&Term::Variable(*variable))))
    })
}

/// Rules of a recursion over Boolean relations: a variable leaves where a selective finished
/// relation holds it.
pub(super) fn recursion(database: &mut Database, rule: &Rule, growing: &[RelationId]) -> Vec<Rule> {
    if database.relation(rule.head).ring().combine != Combine::Exists {
        return vec![rule.clone()];
    }
    let relations = database.relations();
    let finished = (0..relations as u32).map(RelationId).filter(|id| !growing.contains(id));
    let mut universe = 1;
    for id in finished {
        universe = database.relation_mut(id).statistics().iter().copied().fold(universe, usize::max);
    }
    eliminate(database, rule, Ring::BOOLEAN, |database, variable, atoms, others| {
        let inside = variables(atoms.iter().flat_map(|atom| &atom.terms));
        let outside = variables(others.iter().flat_map(|atom| &atom.terms));
        // Else the others join with each tuple once only.
        let repeated = outside.iter().any(|other| !inside.contains(other));
        let (grown, finished): (Vec<&Atom>, Vec<&Atom>) =
            atoms.iter().partition(|atom| growing.contains(&atom.relation));
        let [atom] = finished[..] else { return false };
        let Some(place) = atom.terms.iter().position(|term| *term == Term::Variable(variable)) else {
            return false;
        };
        let relation = database.relation_mut(atom.relation);
        let (rows, constants) = (relation.len() as f64, relation.statistics()[place] as f64);
        repeated && grown.len() == 1 && constants <= SELECTIVE * universe as f64 && rows <= FANOUT * constants
    })
}

/// The variables of terms, each once.
fn variables<'a>(terms: impl Iterator<Item = &'a Term>) -> Vec<Variable> {
    let mut variables: Vec<Variable> = terms.filter_map(|term| term.as_variable()).collect();
    variables.sort_unstable();
    variables.dedup();
    variables
}

/// Whether to eliminate a variable, given the atoms that hold it and the others.
trait Worth: Fn(&mut Database, Variable, &[&Atom], &[&Atom]) -> bool {}

impl<F: Fn(&mut Database, Variable, &[&Atom], &[&Atom]) -> bool> Worth for F {}

/// Eliminates variables while `worth` says so of the atoms that hold one. Only variables count
/// that stand in positive atoms and nowhere else.
fn eliminate(database: &mut Database, rule: &Rule, ring: Ring, worth: impl Worth) -> Vec<Rule> {
    let mut rules = Vec::new();
    let mut rule = rule.clone();
    while let Some(held) = next(database, &rule, &worth) {
        let holds = |at: usize| held.contains(&at);
        let inside: Vec<Literal> = literals(&rule, &holds);
        let outside: Vec<Literal> = literals(&rule, &|at| !holds(at));
        let needed: Vec<Term> = rule
            .head_terms
            .iter()
            .copied()
            .chain(rule.computed.iter().flat_map(|computed| computed.arguments.iter().copied()))
            .chain(outside.iter().flat_map(terms))
            .collect();
        let inner: Vec<Term> = inside.iter().flat_map(terms).collect();
        let kept = variables(inner.iter().filter(|term| needed.contains(term)));
        let kept: Vec<Term> = kept.into_iter().map(Term::Variable).collect();
        let part = database.declare("part", kept.len(), ring);
        rules.push(Rule::new(part, kept.clone(), inside));
        rule.body = outside;
        rule.body.push(Atom { relation: part, terms: kept, factor: true }.into());
    }
    rules.push(rule);
    rules
}

fn literals(rule: &Rule, keep: &impl Fn(usize) -> bool) -> Vec<Literal> {
    let kept = rule.body.iter().enumerate().filter(|(at, _)| keep(*at));
    kept.map(|(_, literal)| literal.clone()).collect()
}

/// The positions of the atoms that hold the next variable to be eliminated.
fn next(database: &mut Database, rule: &Rule, worth: &impl Worth) -> Option<Vec<usize>> {
    let atoms: Vec<(usize, &Atom)> = rule
        .body
        .iter()
        .enumerate()
        .filter_map(|(at, literal)| match literal {
            Literal::Atom(atom) => Some((at, atom)),
            _ => None,
        })
        .collect();
    let others = rule.body.iter().filter(|literal| !matches!(literal, Literal::Atom(_))).flat_map(terms);
    let computed = rule.computed.iter().flat_map(|computed| computed.arguments.iter().copied());
    let fixed: Vec<Term> = rule.head_terms.iter().copied().chain(computed).chain(others).collect();
    variables(atoms.iter().flat_map(|(_, atom)| &atom.terms)).into_iter().find_map(|variable| {
        let term = Term::Variable(variable);
        let (held, others): (Vec<_>, Vec<_>) =
            atoms.iter().copied().partition(|(_, atom)| atom.terms.contains(&term));
        let inside: Vec<&Atom> = held.iter().map(|(_, atom)| *atom).collect();
        let outside: Vec<&Atom> = others.iter().map(|(_, atom)| *atom).collect();
        let free = !fixed.contains(&term) && !others.is_empty();
        let gains = free && worth(database, variable, &inside, &outside);
        gains.then(|| held.into_iter().map(|(at, _)| at).collect())
    })
}
