//! Whether a proof is one. Definitions must be new names whose unfolding gives the problem back, clauses of formulas must be
//! those that the formula has, and every other step must follow from the instances that it names by unit propagation,
//! with `t = t`, the symmetry of `=` and the listed instances of congruence. Nothing is searched for.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use fol::ast::{Formula, Predicate, Variable};

use super::Fault;
use super::clauses::{clauses, free};
use crate::logic::{Atom, Clause, Literal, Substitution, Term};
use crate::problem::Problem;
use crate::proof::{Definition, Origin, Proof, Rule, Step};

/// A formula of a proof has no more clauses than this.
const MOST: usize = 100_000;

/// Checks that the premises and the denied conclusion of a problem have no model.
///
/// # Errors
/// The first thing that is wrong.
pub fn check_proof(problem: &Problem, proof: &Proof) -> Result<(), Fault> {
    definitions(problem, proof)?;
    let mut inputs = BTreeMap::new();
    for (at, step) in proof.steps.iter().enumerate() {
        let checked = match step.rule {
            Rule::Input(origin, number) => input(problem, proof, &mut inputs, origin, number, step),
            _ => inference(proof, at, step),
        };
        checked.map_err(|fault| Fault { step: Some(at), ..fault })?;
    }
    match proof.steps.last() {
        Some(step) if step.clause.0.is_empty() => Ok(()),
        _ => Err(Fault::new("the last clause is not empty")),
    }
}

fn ensure(holds: bool, reason: &str) -> Result<(), Fault> {
    if holds { Ok(()) } else { Err(Fault::new(reason)) }
}

fn definitions(problem: &Problem, proof: &Proof) -> Result<(), Fault> {
    let given: Vec<&Formula> = problem.premises().iter().chain(problem.conclusion()).collect();
    let mut names: BTreeSet<_> = proof.definitions.iter().map(|definition| definition.predicate).collect();
    ensure(names.len() == proof.definitions.len(), "the name of a definition is not new")?;
    for formula in &given {
        ensure(!mentions(formula, &names), "the name of a definition is not new")?;
    }
    // A body holds earlier names alone, whether or not a formula holds its own: what is defined by itself says more than that
    // there is such a name.
    for definition in &proof.definitions {
        ensure(!mentions(&definition.body, &names), "a definition mentions itself or a later one")?;
        names.remove(&definition.predicate);
        let distinct: BTreeSet<&Variable> = definition.parameters.iter().collect();
        ensure(distinct.len() == definition.parameters.len(), "a definition repeats a parameter")?;
    }
    ensure(given.len() == proof.formulas.len(), "there are other formulas than those of the problem")?;
    let same =
        |(folded, given): (&Formula, &Formula)| unfolds(&proof.definitions, folded, given, &mut Vec::new());
    ensure(
        proof.formulas.iter().zip(given).all(same),
        "a formula unfolds to another than that of the problem",
    )
}

fn mentions(formula: &Formula, names: &BTreeSet<Predicate>) -> bool {
    match formula {
        Formula::Predicate(p, _) => names.contains(p),
        Formula::Truth(_) | Formula::Relation(..) => false,
        Formula::Not(body) | Formula::Quantified(_, _, _, body) => mentions(body, names),
        Formula::Binary(_, left, right) => mentions(left, names) || mentions(right, names),
    }
}

/// Whether a formula becomes the given one where names are unfolded. A name stands for a body over the names before it, and all
/// that is bound here and free in the body is a parameter.
fn unfolds(names: &[Definition], folded: &Formula, given: &Formula, bound: &mut Vec<Variable>) -> bool {
    let name = names.iter().rposition(|d| matches!(folded, Formula::Predicate(p, _) if *p == d.predicate));
    if let Some((before, definition)) = name.and_then(|at| Some((names.get(..at)?, names.get(at)?))) {
        let kept = |x: &Variable| definition.parameters.contains(x) || !bound.contains(x);
        return *folded == definition.name()
            && free(&definition.body).iter().all(kept)
            && unfolds(before, &definition.body, given, bound);
    }
    match (folded, given) {
        (Formula::Not(a), Formula::Not(b)) => unfolds(names, a, b, bound),
        (Formula::Binary(c, a, b), Formula::Binary(d, e, f)) => {
            c == d && unfolds(names, a, e, bound) && unfolds(names, b, f, bound)
        }
        (Formula::Quantified(p, x, s, a), Formula::Quantified(q, y, t, b)) if (p, x, s) == (q, y, t) => {
            bound.push(*x);
            let same = unfolds(names, a, b, bound);
            bound.pop();
            same
        }
        (a, b) => a == b,
    }
}

/// A clause of a formula must be the one of this number. The clauses of a formula are made when one is asked for.
fn input(
    problem: &Problem,
    proof: &Proof,
    inputs: &mut BTreeMap<usize, Vec<Clause>>,
    origin: Origin,
    number: usize,
    step: &Step,
) -> Result<(), Fault> {
    let formulas = proof.formulas.len();
    let half = |i: usize, unfolds| proof.definitions.get(i).map(|definition| definition.half(unfolds));
    let (formula, found, truth) = match origin {
        Origin::Premise(i) => {
            (i, proof.formulas.get(i).filter(|_| i < problem.premises().len()).cloned(), true)
        }
        Origin::Conclusion => {
            (formulas.max(1) - 1, problem.conclusion().and(proof.formulas.last()).cloned(), false)
        }
        Origin::Unfold(i) => (formulas + 2 * i, half(i, true), true),
        Origin::Fold(i) => (formulas + 2 * i + 1, half(i, false), true),
    };
    let found = found.ok_or_else(|| Fault::new("there is no such formula"))?;
    let clauses = match inputs.entry(formula) {
        Entry::Occupied(made) => made.into_mut(),
        Entry::Vacant(place) => {
            let made = clauses(formula, &found, truth, MOST);
            place.insert(made.ok_or_else(|| Fault::new("the formula has too many clauses"))?)
        }
    };
    ensure(step.parents.is_empty() && step.equality.is_empty(), "a clause of a formula has no parents")?;
    ensure(clauses.get(number) == Some(&step.clause), "the formula has no such clause of this number")
}

fn inference(proof: &Proof, at: usize, step: &Step) -> Result<(), Fault> {
    let mut instances: Vec<BTreeSet<Literal>> = Vec::with_capacity(step.parents.len() + step.equality.len());
    for parent in &step.parents {
        let clause = proof.steps.get(parent.step).filter(|_| parent.step < at);
        let clause = &clause.ok_or_else(|| Fault::new("a parent is no earlier step"))?.clause;
        let instance =
            clause.0.iter().map(|literal| instance(literal, &parent.substitution)).collect::<Option<_>>();
        instances.push(instance.ok_or_else(|| Fault::new("a substitution leaves a variable out"))?);
    }
    for axiom in &step.equality {
        ensure(is_congruence(axiom), "an axiom of equality is none")?;
        instances.push(axiom.0.iter().cloned().map(ordered).collect());
    }
    ensure(propagates(&instances, &step.clause), "the clause does not follow from these instances")
}

/// A literal with the sides of an equation in order.
fn ordered(literal: Literal) -> Literal {
    match literal.atom {
        Atom::Equal(s, t) if t < s => Literal { atom: Atom::Equal(t, s), ..literal },
        _ => literal,
    }
}

fn instance(literal: &Literal, substitution: &Substitution) -> Option<Literal> {
    let atom = match &literal.atom {
        Atom::Predicate(p, terms) => {
            Atom::Predicate(*p, terms.iter().map(|term| replaced(term, substitution)).collect::<Option<_>>()?)
        }
        Atom::Equal(s, t) => Atom::Equal(replaced(s, substitution)?, replaced(t, substitution)?),
    };
    Some(ordered(Literal { positive: literal.positive, atom }))
}

fn replaced(term: &Term, substitution: &Substitution) -> Option<Term> {
    match term {
        Term::Variable(n) => substitution.get(*n).cloned(),
        Term::Apply(symbol, terms) => {
            let terms = terms.iter().map(|term| replaced(term, substitution)).collect::<Option<_>>();
            Some(Term::Apply(*symbol, terms?))
        }
    }
}

/// `s ≠ t`, and two opposite literals that differ only in `s` and `t`.
fn is_congruence(axiom: &Clause) -> bool {
    let [a, b, c] = axiom.0.as_slice() else { return false };
    let same = |x: &Term, y: &Term, s: &Term, t: &Term| alike(x, y, s, t);
    [(a, b, c), (b, a, c), (c, a, b)].into_iter().any(|(equation, one, other)| match &equation.atom {
        Atom::Equal(s, t) if !equation.positive && one.positive != other.positive => {
            match (&one.atom, &other.atom) {
                (Atom::Predicate(p, v), Atom::Predicate(q, w)) => {
                    p == q && v.len() == w.len() && v.iter().zip(w).all(|(x, y)| same(x, y, s, t))
                }
                (Atom::Equal(x, y), Atom::Equal(v, w)) => {
                    same(x, v, s, t) && same(y, w, s, t) || same(x, w, s, t) && same(y, v, s, t)
                }
                _ => false,
            }
        }
        _ => false,
    })
}

/// Whether two terms are equal if `s` and `t` are.
fn alike(x: &Term, y: &Term, s: &Term, t: &Term) -> bool {
    x == y
        || (x, y) == (s, t)
        || (x, y) == (t, s)
        || match (x, y) {
            (Term::Apply(f, v), Term::Apply(g, w)) => {
                f == g && v.len() == w.len() && v.iter().zip(w).all(|(x, y)| alike(x, y, s, t))
            }
            _ => false,
        }
}

/// Whether units lead from the denied clause to a contradiction. Variables count as constants here.
fn propagates(instances: &[BTreeSet<Literal>], clause: &Clause) -> bool {
    let reflexive = |literal: &Literal| matches!(&literal.atom, Atom::Equal(s, t) if s == t);
    let mut known: BTreeSet<Literal> =
        clause.0.iter().map(|literal| ordered(literal.clone().negated())).collect();
    loop {
        let before = known.len();
        for instance in instances {
            let false_here =
                |l: &Literal| if reflexive(l) { !l.positive } else { known.contains(&l.clone().negated()) };
            let mut open = instance.iter().filter(|literal| !false_here(literal));
            match (open.next(), open.next()) {
                (None, _) => return true,
                (Some(unit), None) => drop(known.insert(unit.clone())),
                _ => {}
            }
        }
        if known.len() == before {
            return false;
        }
    }
}
