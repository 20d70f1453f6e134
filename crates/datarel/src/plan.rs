//! The order in which the body of a rule is joined.
//!
//! A plan is a list of [`Step`]s, each of which binds variables or tests them; `join` runs them
//! as nested loops. Atoms are taken greedily by the estimated number of rows per binding, from
//! the best start; a variable on which several atoms agree is intersected ([`Step::Extend`]),
//! which makes cyclic bodies worst-case optimal (Ngo, Ré, Rudra 2013). A variable that nothing
//! else needs is not bound at all: its atom is a question.

use crate::constant::Comparison;

use super::component::Component;
use super::constants::Constants;
use super::database::Database;
use super::limits::Failure;
use super::ring::{Combine, Ring};
use super::rule::{Atom, Function, Literal, RelationId, Rule, Select, Term};
use super::step::{Candidate, Factor, Operand, Plan, Source, Step, Version};

/// An argument of a body atom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Constant(u32),
    Slot(usize),
    /// Nothing needs its value.
    Free,
}

/// An atom on the way into a plan.
struct Open {
    relation: RelationId,
    places: Vec<Place>,
    factor: Factor,
    /// `None` for a relation at rest.
    version: Option<Version>,
    taken: bool,
}

impl Open {
    fn bound(&self, bound: &[bool]) -> Vec<usize> {
        let is_bound = |place: &Place| match place {
            Place::Constant(_) => true,
            Place::Slot(slot) => bound[*slot],
            Place::Free => false,
        };
        (0..self.places.len()).filter(|at| is_bound(&self.places[*at])).collect()
    }

    fn unbound(&self, bound: &[bool]) -> Vec<usize> {
        let mut slots: Vec<usize> = Vec::new();
        for place in &self.places {
            match place {
                Place::Slot(slot) if !bound[*slot] && !slots.contains(slot) => slots.push(*slot),
                _ => {}
            }
        }
        slots
    }
}

/// In a body of more atoms only one order is tried.
const MANY: usize = 16;

/// What a growing relation is taken to hold, where nothing is known.
const GROWING: f64 = 1e6;

struct Planner<'a> {
    database: &'a mut Database,
    component: &'a mut Component,
    constants: &'a Constants,
    atoms: Vec<Open>,
    others: Vec<(Literal, bool)>,
    bound: Vec<bool>,
    steps: Vec<Step>,
}

/// The plan of a rule; `delta` is the number of the atom (among the atoms of the body) that takes
/// only the tuples of the last round.
///
/// # Errors
/// [`Failure::Rule`] where a variable cannot be bound or a value has the wrong kind.
pub(super) fn plan(
    database: &mut Database,
    component: &mut Component,
    constants: &Constants,
    rule: &Rule,
    number: usize,
    delta: Option<usize>,
) -> Result<Plan, Failure> {
    let refuse = |reason| Failure::Rule { rule: number, reason };
    let own = database.relation(rule.head).ring();
    let of = |select: &Select| Ring { combine: Combine::Sum, times: select.times };
    let ring = rule.select.as_ref().map_or(own, of);
    let (atoms, slots) = open(database, component, rule, delta, ring).map_err(refuse)?;
    let others = rule.body.iter().filter(|literal| !matches!(literal, Literal::Atom(_)));
    let others = others.map(|literal| (literal.clone(), false)).collect();
    let (steps, bound) = (Vec::new(), vec![false; slots]);
    let mut planner = Planner { database, component, constants, atoms, others, bound, steps };
    let start = match delta {
        Some(delta) => Some(delta),
        None => planner.best_start(),
    };
    planner.filters();
    if let Some(start) = start.filter(|start| !planner.atoms[*start].taken) {
        planner.take(start);
        planner.filters();
    }
    while let Some(next) = planner.next() {
        planner.take(next);
        planner.filters();
    }
    if planner.others.iter().any(|(_, placed)| !placed) {
        return Err(refuse("a variable of a condition is not bound"));
    }
    let Planner { bound, steps, .. } = planner;
    let operand = |term: &Term| operand(*term, &bound);
    let head_terms = rule.head_terms.iter().map(operand).collect::<Option<Vec<_>>>();
    let mut computed = Vec::new();
    for measure in &rule.computed {
        let arguments = measure.arguments.iter().map(operand).collect::<Option<Vec<_>>>();
        computed.push((arguments.ok_or(refuse("a variable of a value is not bound"))?, measure.clone()));
    }
    let interns = steps.iter().any(|step| matches!(step, Step::Shift(..) | Step::Compute(..)));
    // What stands in an atom too is a constant already, or meets no tuple.
    let interns = interns && rule.body.iter().any(|literal| rule.makes(literal));
    Ok(Plan {
        head: rule.head,
        ring,
        valued: own.valued(),
        select: rule.select.clone(),
        head_terms: head_terms.ok_or(refuse("a variable of the head is not bound"))?,
        steps,
        weight: rule.weight.unwrap_or(ring.one()),
        computed,
        slots,
        interns,
    })
}

/// A term as an operand, where it is bound.
fn operand(term: Term, bound: &[bool]) -> Option<Operand> {
    match term {
        Term::Constant(constant) => Some(Operand::Constant(constant)),
        Term::Variable(variable) => {
            let slot = variable.0 as usize;
            bound.get(slot).is_some_and(|bound| *bound).then_some(Operand::Slot(slot))
        }
        Term::Any => None,
    }
}

/// The terms of a literal other than a positive atom.
pub(super) fn terms(literal: &Literal) -> Vec<Term> {
    match literal {
        Literal::Atom(atom) | Literal::Not(atom) => atom.terms.clone(),
        Literal::Compare(_, left, right) => vec![*left, *right],
        Literal::Shift { to, from, .. } => vec![*to, *from],
        Literal::Compute { result, arguments, .. } => {
            std::iter::once(*result).chain(arguments.iter().copied()).collect()
        }
        Literal::Test { arguments, .. } => arguments.clone(),
    }
}

/// The atoms of a body, and the number of variables. Variables that nothing else needs become
/// free; in a factor every place is a variable.
fn open(
    database: &Database,
    component: &Component,
    rule: &Rule,
    delta: Option<usize>,
    ring: Ring,
) -> Result<(Vec<Open>, usize), &'static str> {
    let mut uses: Vec<usize> = Vec::new();
    let mut count = |term: &Term| {
        if let Term::Variable(variable) = term {
            let slot = variable.0 as usize;
            if uses.len() <= slot {
                uses.resize(slot + 1, 0);
            }
            uses[slot] += 1;
        }
    };
    rule.head_terms.iter().for_each(&mut count);
    rule.computed.iter().flat_map(|measure| &measure.arguments).for_each(&mut count);
    rule.body.iter().flat_map(terms).for_each(|term| count(&term));
    let mut slots = uses.len();
    let mut atoms = Vec::new();
    for (at, atom) in rule.atoms().enumerate() {
        let relation = database.relation(atom.relation);
        if relation.arity() != atom.terms.len() {
            return Err("an atom has the wrong number of arguments");
        }
        let factor = (atom.factor && ring.valued()).then(|| relation.ring());
        if factor.is_some_and(|factor| ring.counts() && factor.valued() && !factor.counts()) {
            return Err("a count has a real factor");
        }
        let mut place = |term: &Term| match term {
            Term::Constant(constant) => Place::Constant(*constant),
            Term::Variable(variable) => {
                let slot = variable.0 as usize;
                let needed = uses[slot] > 1 || factor.is_some() || !ring.idempotent();
                if needed { Place::Slot(slot) } else { Place::Free }
            }
            Term::Any if factor.is_some() => {
                slots += 1;
                Place::Slot(slots - 1)
            }
            Term::Any => Place::Free,
        };
        let places = atom.terms.iter().map(&mut place).collect();
        let version = version(component, atom, at, delta);
        atoms.push(Open { relation: atom.relation, places, factor, version, taken: false });
    }
    Ok((atoms, slots))
}

/// Semi-naive evaluation: the atoms before the delta see its tuples too, those behind it do not,
/// so that each new binding is found once. Values may change in old tuples: all atoms see all.
fn version(component: &Component, atom: &Atom, at: usize, delta: Option<usize>) -> Option<Version> {
    let growing = component.table(atom.relation)?;
    let delta = delta?;
    Some(match at.cmp(&delta) {
        std::cmp::Ordering::Equal => Version::Delta,
        std::cmp::Ordering::Greater if !growing.table.ring().valued() => Version::Old,
        _ => Version::Current,
    })
}

impl Planner<'_> {
    /// Places every literal whose variables are bound.
    fn filters(&mut self) {
        let mut again = true;
        while std::mem::take(&mut again) {
            for at in 0..self.others.len() {
                if self.others[at].1 {
                    continue;
                }
                let literal = self.others[at].0.clone();
                if let Some(step) = self.filter(&literal) {
                    self.steps.push(step);
                    self.others[at].1 = true;
                    again = true;
                }
            }
            for at in 0..self.atoms.len() {
                let atom = &self.atoms[at];
                let ready = !atom.taken && atom.version != Some(Version::Delta) && {
                    atom.unbound(&self.bound).is_empty()
                };
                if ready {
                    self.take(at);
                }
            }
        }
    }

    fn operand(&self, term: Term) -> Option<Operand> {
        operand(term, &self.bound)
    }

    fn operands(&self, terms: &[Term]) -> Option<Vec<Operand>> {
        terms.iter().map(|term| self.operand(*term)).collect()
    }

    fn bind(&mut self, term: Term) -> Option<usize> {
        let slot = term.as_variable()?.0 as usize;
        self.bound[slot] = true;
        Some(slot)
    }

    /// The step of a literal, if its variables are bound so far as it needs.
    fn filter(&mut self, literal: &Literal) -> Option<Step> {
        Some(match literal {
            Literal::Atom(_) => return None,
            Literal::Not(atom) => {
                let bound: Vec<usize> =
                    (0..atom.terms.len()).filter(|at| atom.terms[*at] != Term::Any).collect();
                let operands: Option<Vec<Operand>> =
                    bound.iter().map(|at| self.operand(atom.terms[*at])).collect();
                operands.as_ref()?;
                let relation = self.database.relation_mut(atom.relation);
                let index = relation.index(&bound, &[]);
                let order = relation.sorted(index).order[..bound.len()].to_vec();
                let key = order.iter().map(|place| self.operand(atom.terms[*place]));
                Step::Missing(atom.relation, index, key.collect::<Option<_>>()?)
            }
            Literal::Compare(sign, left, right) => {
                match (self.operand(*left), self.operand(*right), sign) {
                    (Some(left), Some(right), _) => Step::Compare(*sign, left, right),
                    // x == 3 binds x.
                    (Some(known), None, Comparison::Equal) => self.assign(*right, known)?,
                    (None, Some(known), Comparison::Equal) => self.assign(*left, known)?,
                    _ => return None,
                }
            }
            Literal::Shift { to, from, by } => match (self.operand(*to), self.operand(*from)) {
                (Some(to), Some(from)) => Step::ShiftTest(to, from, *by),
                (None, Some(from)) => Step::Shift(self.bind(*to)?, from, *by),
                (Some(to), None) => Step::Shift(self.bind(*from)?, to, by.checked_neg()?),
                (None, None) => return None,
            },
            Literal::Compute { result, arguments, function } => {
                let arguments = self.operands(arguments)?;
                match self.operand(*result) {
                    Some(result) => Step::ComputeTest(result, arguments, function.clone()),
                    None => Step::Compute(self.bind(*result)?, arguments, function.clone()),
                }
            }
            Literal::Test { arguments, test } => Step::Test(self.operands(arguments)?, test.clone()),
        })
    }

    fn assign(&mut self, to: Term, from: Operand) -> Option<Step> {
        let copy: Function = std::sync::Arc::new(|arguments| arguments.first().copied());
        Some(Step::Compute(self.bind(to)?, vec![from], copy))
    }

    /// The estimated number of rows of an atom per binding.
    fn fanout(&mut self, at: usize, bound: &[bool]) -> f64 {
        let atom = &self.atoms[at];
        let places = atom.bound(bound);
        if atom.version.is_some() {
            let universe = (self.constants.len() as f64).clamp(2.0, GROWING);
            let open = (atom.places.len() - places.len()) as i32;
            return if open == 0 { 0.5 } else { GROWING.sqrt().min(universe).powi(open).max(30.0) };
        }
        let needed = atom.unbound(bound).len();
        let (mut rows, distinct) = self.database.relation_mut(atom.relation).size();
        for place in places {
            rows /= distinct[place].max(1.0);
        }
        if needed == 0 { rows.min(1.0) } else { rows }
    }

    /// The atom to begin with: that of the cheapest greedy order.
    fn best_start(&mut self) -> Option<usize> {
        if self.atoms.len() > MANY {
            let all: Vec<usize> = (0..self.atoms.len()).collect();
            let bound = self.bound.clone();
            return self.cheapest(&all, &bound);
        }
        let before = self.bound.clone();
        let mut best: Option<(f64, usize)> = None;
        for start in 0..self.atoms.len() {
            let mut bound = before.clone();
            let mut left: Vec<usize> = (0..self.atoms.len()).collect();
            let (mut size, mut cost, mut next) = (1.0, 0.0, Some(start));
            while let Some(at) = next {
                size *= self.fanout(at, &bound);
                cost += size;
                for slot in self.atoms[at].unbound(&bound) {
                    bound[slot] = true;
                }
                left.retain(|other| *other != at);
                next = self.cheapest(&left, &bound);
            }
            if best.is_none_or(|(least, _)| cost < least) {
                best = Some((cost, start));
            }
        }
        best.map(|(_, start)| start)
    }

    fn cheapest(&mut self, among: &[usize], bound: &[bool]) -> Option<usize> {
        let mut best: Option<(f64, usize)> = None;
        for at in among {
            let fanout = self.fanout(*at, bound);
            if best.is_none_or(|(least, _)| fanout < least) {
                best = Some((fanout, *at));
            }
        }
        best.map(|(_, at)| at)
    }

    fn next(&mut self) -> Option<usize> {
        let open: Vec<usize> = (0..self.atoms.len()).filter(|at| !self.atoms[*at].taken).collect();
        let bound = self.bound.clone();
        self.cheapest(&open, &bound)
    }

    /// Adds an atom to the plan.
    fn take(&mut self, at: usize) {
        if let Some(slot) = self.agreed(at) {
            return self.extend(slot);
        }
        self.atoms[at].taken = true;
        let bound = std::mem::take(&mut self.bound);
        let step = self.access(at, &bound);
        self.bound = bound;
        for slot in self.atoms[at].unbound(&self.bound) {
            self.bound[slot] = true;
        }
        self.steps.push(step);
    }

    /// The variable that the atom alone would bind, where another atom at rest would too.
    fn agreed(&self, at: usize) -> Option<usize> {
        let [slot] = self.atoms[at].unbound(&self.bound)[..] else { return None };
        let others = (0..self.atoms.len()).filter(|other| *other != at && self.agrees(*other, slot));
        (self.agrees(at, slot) && others.count() > 0).then_some(slot)
    }

    /// Whether an atom at rest has this variable, once, as its only unbound one, and something
    /// bound beside it.
    fn agrees(&self, at: usize, slot: usize) -> bool {
        let atom = &self.atoms[at];
        let once = atom.places.iter().filter(|place| **place == Place::Slot(slot)).count() == 1;
        !atom.taken
            && atom.version.is_none()
            && once
            && !atom.bound(&self.bound).is_empty()
            && atom.unbound(&self.bound) == [slot]
            && (atom.factor.is_none() || !atom.places.contains(&Place::Free))
    }

    /// Intersects all atoms that agree on a variable.
    fn extend(&mut self, slot: usize) {
        let mut candidates = Vec::new();
        for at in 0..self.atoms.len() {
            if !self.agrees(at, slot) {
                continue;
            }
            self.atoms[at].taken = true;
            let atom = &self.atoms[at];
            let bound = atom.bound(&self.bound);
            let next = atom.places.iter().position(|place| *place == Place::Slot(slot)).unwrap_or(0);
            let relation = self.database.relation_mut(atom.relation);
            let index = relation.index(&bound, &[next]);
            let order = relation.sorted(index).order[..bound.len()].to_vec();
            let key = key(atom, &order);
            candidates.push(Candidate { relation: atom.relation, index, key, factor: atom.factor });
        }
        self.bound[slot] = true;
        self.steps.push(Step::Extend(slot, candidates));
    }

    /// The step that reads an atom.
    fn access(&mut self, at: usize, bound: &[bool]) -> Step {
        let atom = &self.atoms[at];
        let (relation, factor) = (atom.relation, atom.factor);
        let places = atom.bound(bound);
        let question = atom.unbound(bound).is_empty();
        if let Some(version) = atom.version {
            let whole = version == Version::Delta || places.is_empty();
            let key_places = if whole { Vec::new() } else { places.clone() };
            let complete = places.len() == atom.places.len() && !whole;
            let source = if complete {
                Source::Row(relation, version)
            } else if whole {
                Source::Whole(relation, version)
            } else {
                let constants = self.constants.len();
                let table = self.component.table_mut(relation);
                let chain = table.map_or(0, |growing| growing.table.index(&key_places, constants));
                Source::Chain(relation, chain, version)
            };
            let atom = &self.atoms[at];
            let key = key(atom, &key_places);
            if question && !whole && (complete || factor.is_none()) {
                return Step::Exists { source, key, factor };
            }
            let (bind, same) =
                bindings(atom, bound, &(0..atom.places.len()).collect::<Vec<_>>(), &key_places);
            return Step::Match { source, key, bind, same, factor, distinct: None };
        }
        let mut needed: Vec<usize> = (0..atom.places.len()).collect();
        needed.retain(|place| !places.contains(place) && atom.places[*place] != Place::Free);
        let free = atom.places.contains(&Place::Free);
        let next: &[usize] = if free { &needed } else { &[] };
        let stored = self.database.relation_mut(relation);
        let index = stored.index(&places, next);
        let order = stored.sorted(index).order.clone();
        let source = Source::Sorted(relation, index);
        let key = key(atom, &order[..places.len()]);
        if question && (factor.is_none() || places.len() == atom.places.len()) {
            return Step::Exists { source, key, factor };
        }
        let (bind, same) = bindings(atom, bound, &order, &places);
        let distinct = free.then_some(places.len() + needed.len());
        Step::Match { source, key, bind, same, factor, distinct }
    }
}

fn key(atom: &Open, places: &[usize]) -> Vec<Operand> {
    let operand = |place: &usize| match atom.places[*place] {
        Place::Constant(constant) => Operand::Constant(constant),
        Place::Slot(slot) => Operand::Slot(slot),
        Place::Free => Operand::Constant(0),
    };
    places.iter().map(operand).collect()
}

/// Which columns bind a variable, and which must be equal to something known. `order` gives the
/// place of each column; places of the key are settled.
#[expect(clippy::type_complexity, reason = "two lists that only `Step::Match` names")]
fn bindings(
    atom: &Open,
    bound: &[bool],
    order: &[usize],
    key: &[usize],
) -> (Vec<(usize, usize)>, Vec<(usize, Operand)>) {
    let (mut bind, mut same): (Vec<(usize, usize)>, Vec<(usize, Operand)>) = (Vec::new(), Vec::new());
    for (column, place) in order.iter().enumerate() {
        if key.contains(place) {
            continue;
        }
        match atom.places[*place] {
            Place::Free => {}
            Place::Constant(constant) => same.push((column, Operand::Constant(constant))),
            Place::Slot(slot) if bound[slot] || bind.iter().any(|(_, other)| *other == slot) => {
                same.push((column, Operand::Slot(slot)));
            }
            Place::Slot(slot) => bind.push((column, slot)),
        }
    }
    (bind, same)
}
