//! Projection early: a variable is eliminated before the rest of the body is joined.
//!
//! The atoms that hold the variable become a relation of their own, without it. In sums,
//! `n += u(x, y) v(y, z)` becomes the product of two degree vectors. In a recursion,
//! `s(x, z) <- e(x, r, y), s(y, a), exl(r, a, z)` becomes `t(y, r, z) <- s(y, a), exl(r, a, z)`
//! and `s(x, z) <- e(x, r, y), t(y, r, z)`: the join of the last two is made once, and not once
//! for every tuple of `e`. In a Boolean rule without recursion a path of four arcs becomes three products. Enter at [`part`]
//! and [`recursion`].

use std::collections::HashMap;

use super::database::Database;
use super::plan::terms;
use super::ring::{Combine, Ring, Times};
use super::rule::{Atom, Literal, RelationId, Rule, Term, Variable};

/// A finished relation is selective in a recursion if it has this share of all constants at most,
const SELECTIVE: f64 = 0.25;

/// and so many tuples for each of them.
const FANOUT: f64 = 2.0;

/// Rules without recursion whose bodies have fewer bindings than this are joined as they are.
const BINDINGS: f64 = (1 << 18) as f64;

/// A part is not made of more tuples than this.
const LARGEST: f64 = (1 << 26) as f64;

/// A part of a rule without recursion, which loses a variable, and the rule with the part in its body. Variables of sums
/// leave as soon as an atom covers their neighbours; those of Boolean rules where two atoms hold them whose join is
/// smaller than a quarter of the whole. The part's relation is declared in the database.
pub(super) fn part(database: &mut Database, rule: &Rule) -> Option<(Rule, Rule)> {
    let ring = database.relation(rule.head).ring();
    if ring.combine == Combine::Exists {
        let least = least_join(database, rule)?;
        return split(database, rule, ring, &|_, variable, _, _| variable == least);
    }
    if ring.idempotent() || ring.times != Times::Times {
        return None;
    }
    split(database, rule, ring, &|_, _, atoms, _| {
        let all = variables(atoms.iter().flat_map(|atom| &atom.terms));
        atoms.iter().any(|atom| all.iter().all(|variable| atom.terms.contains(&Term::Variable(*variable))))
    })
}

/// The variable that two atoms hold, once each, and nothing else needs, with the smallest join of the two.
fn least_join(database: &mut Database, rule: &Rule) -> Option<Variable> {
    let atoms: Vec<&Atom> = rule.atoms().collect();
    if atoms.len() < 3 || bindings(database, &atoms) < BINDINGS {
        return None;
    }
    let most = (bindings(database, &atoms) / 4.0).min(LARGEST);
    let joins = candidates(rule).into_iter().filter_map(|(variable, held)| {
        let [left, right] = held.as_slice() else { return None };
        let tally = |at: usize| {
            let atom = atoms.get(at)?;
            let mut places = (0..atom.terms.len()).filter(|at| atom.terms[*at] == Term::Variable(variable));
            let (place, None) = (places.next()?, places.next()) else { return None };
            database.relation(atom.relation).tally(Some(place))
        };
        let right: HashMap<u32, usize> = tally(*right)?.into_iter().collect();
        let with =
            |(constant, count): (u32, usize)| count as f64 * right.get(&constant).map_or(0.0, |n| *n as f64);
        Some((tally(*left)?.into_iter().map(with).sum::<f64>(), variable))
    });
    joins.filter(|(size, _)| *size <= most).min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, variable)| variable)
}

/// About how many bindings a body of atoms has.
fn bindings(database: &mut Database, atoms: &[&Atom]) -> f64 {
    let mut most: HashMap<Variable, f64> = HashMap::new();
    let mut count = 1.0;
    for atom in atoms {
        let relation = database.relation_mut(atom.relation);
        count *= relation.len() as f64;
        for (term, distinct) in atom.terms.iter().zip(relation.statistics()) {
            let distinct = (*distinct as f64).max(1.0);
            match term {
                Term::Constant(_) => count /= distinct,
                Term::Any => {}
                Term::Variable(variable) => {
                    if let Some(known) = most.get_mut(variable) {
                        count /= known.max(distinct);
                        *known = known.min(distinct);
                    } else {
                        most.insert(*variable, distinct);
                    }
                }
            }
        }
    }
    count
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
    let (mut rules, mut rule) = (Vec::new(), rule.clone());
    while let Some((part, rest)) = split(database, &rule, ring, &worth) {
        rules.push(part);
        rule = rest;
    }
    rules.push(rule);
    rules
}

/// The rule of a part without the first variable that `worth` chooses, and the rule with the part.
fn split(database: &mut Database, rule: &Rule, ring: Ring, worth: &impl Worth) -> Option<(Rule, Rule)> {
    let held = next(database, rule, worth)?;
    let holds = |at: usize| held.contains(&at);
    let inside: Vec<Literal> = literals(rule, &holds);
    let mut rest = Rule { body: literals(rule, &|at| !holds(at)), ..rule.clone() };
    let needed: Vec<Term> = rest
        .head_terms
        .iter()
        .copied()
        .chain(rest.computed.iter().flat_map(|computed| computed.arguments.iter().copied()))
        .chain(rest.body.iter().flat_map(terms))
        .collect();
    let inner: Vec<Term> = inside.iter().flat_map(terms).collect();
    let kept = variables(inner.iter().filter(|term| needed.contains(term)));
    let kept: Vec<Term> = kept.into_iter().map(Term::Variable).collect();
    let part = database.declare("part", kept.len(), ring);
    rest.body.push(Atom { relation: part, terms: kept.clone(), factor: true }.into());
    Some((Rule::new(part, kept, inside), rest))
}

fn literals(rule: &Rule, keep: &impl Fn(usize) -> bool) -> Vec<Literal> {
    let kept = rule.body.iter().enumerate().filter(|(at, _)| keep(*at));
    kept.map(|(_, literal)| literal.clone()).collect()
}

/// The variables that stand in some of the positive atoms and nowhere else, and which atoms hold each.
fn candidates(rule: &Rule) -> Vec<(Variable, Vec<usize>)> {
    let others = rule.body.iter().filter(|literal| !matches!(literal, Literal::Atom(_))).flat_map(terms);
    let computed = rule.computed.iter().flat_map(|computed| computed.arguments.iter().copied());
    let fixed: Vec<Term> = rule.head_terms.iter().copied().chain(computed).chain(others).collect();
    let atoms: Vec<&Atom> = rule.atoms().collect();
    let all = variables(atoms.iter().flat_map(|atom| &atom.terms)).into_iter();
    let free = all.filter(|variable| !fixed.contains(&Term::Variable(*variable)));
    let held = free.map(|variable| {
        let holds = |at: &usize| atoms[*at].terms.contains(&Term::Variable(variable));
        (variable, (0..atoms.len()).filter(holds).collect::<Vec<_>>())
    });
    held.filter(|(_, held)| held.len() < atoms.len()).collect()
}

/// The positions in the body of the atoms that hold the next variable to be eliminated.
fn next(database: &mut Database, rule: &Rule, worth: &impl Worth) -> Option<Vec<usize>> {
    let is_atom = |at: &usize| matches!(rule.body[*at], Literal::Atom(_));
    let position: Vec<usize> = (0..rule.body.len()).filter(is_atom).collect();
    let atoms: Vec<&Atom> = rule.atoms().collect();
    candidates(rule).into_iter().find_map(|(variable, held)| {
        let (inside, outside): (Vec<usize>, Vec<usize>) = (0..atoms.len()).partition(|at| held.contains(at));
        let [inside, outside] =
            [inside, outside].map(|all| all.iter().map(|at| atoms[*at]).collect::<Vec<_>>());
        let gains = worth(database, variable, &inside, &outside);
        gains.then(|| held.iter().map(|at| position[*at]).collect())
    })
}
