//! Rules of the core form on the relational engine.
//!
//! Enter at `Session`: if everything that a goal needs is relations joined by rules, they become
//! a database and rules over small integers, with the constants of the goal as demand. What is
//! not (a dense read, an average, a sum in recursion) makes it say no, and the goal goes to the
//! evaluation of blocks. A session belongs to one program: facts are loaded once, and what was derived as a whole is
//! not derived again.
//!
//! `translate` turns one equation into rules; `answer` turns what the relational engine
//! derived back into values and refusals.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

use crate::digits::COUNT_LIMIT;
use crate::engine::{Budget, Stop, Value, is_interrupted};
use crate::error::Refusal;
use crate::profile::Profile;
use crate::program::{Class, Combine, Component, Facts, Given, Kind, Program, Role, Style, Tensor, TensorId};
use crate::value::{Domain, element};
use datarel::{self, Constants, Database, Demand, Failure, Limits, RelationId, Ring, Rule, Times, magic};
use tensor_logic_core::signs;

mod answer;
mod construct;
mod notes;
mod together;
mod translate;
mod tried;

/// Several relations as a whole, without demand. Tuples may be inserted before the evaluation.
#[derive(Debug)]
pub struct Compiled {
    /// Constants and facts.
    pub database: Database,
    /// The rules.
    pub rules: Vec<Rule>,
    relations: BTreeMap<TensorId, RelationId>,
}

/// Compiles several relations over these constants, or says no.
///
/// # Errors
/// Refusals that loading the facts meets: `overflow`, `budget`.
pub fn compile_whole(
    program: &Program,
    goals: &[TensorId],
    constants: Constants,
) -> Option<Result<Compiled, Refusal>> {
    let mut compiler = Compiler { database: Database::new(constants), ..Compiler::default() };
    let needed = program.needs(goals);
    if let Err(report) = compiler.build(program, &needed)? {
        return Some(Err(report));
    }
    let rules = compiler.rules_of(&needed);
    Some(Ok(Compiled { database: compiler.database, rules, relations: compiler.relations }))
}

/// Compiles several relations, or says what is no relation.
///
/// # Errors
/// `not-yet` with the construct that is no rule over relations; what loading the facts meets.
pub fn compile_all(program: &Program, goals: &[TensorId]) -> Result<Compiled, Refusal> {
    compile_whole(program, goals, Constants::default())
        .unwrap_or_else(|| Err(construct::refused(program, goals)))
}

impl Compiled {
    /// The relation of a tensor.
    pub fn relation(&self, tensor: TensorId) -> Option<RelationId> {
        self.relations.get(&tensor).copied()
    }

    /// The tensor of a relation; some relations are parts of equations and have none.
    pub fn tensor(&self, relation: RelationId) -> Option<TensorId> {
        self.relations.iter().find(|(_, known)| **known == relation).map(|(tensor, _)| *tensor)
    }

    /// The value of a tensor, once its relation holds all its tuples.
    pub fn value(&self, program: &Program, tensor: TensorId) -> Option<Value> {
        Some(value(program, &self.database, (tensor, self.relation(tensor)?)))
    }

    /// A failure of the evaluation as the language refuses it.
    pub fn refusal(&self, program: &Program, failure: Failure) -> Refusal {
        let tensors = self.relations.iter().map(|(tensor, relation)| (*relation, *tensor)).collect();
        answer::refusal(program, &self.database, &tensors, failure)
    }
}

/// The relations of one program at work.
#[derive(Debug, Default)]
pub(crate) struct Session {
    compiler: Compiler,
    /// The relations that hold all their tuples.
    whole: BTreeSet<TensorId>,
    /// What was done, if somebody wants to know.
    notes: Option<Profile>,
    /// What ends an evaluation.
    stop: Stop,
    /// Whether goals are no longer derived together, because they once were refused.
    apart: bool,
}

/// An answer, and how many tuples each computed relation below it holds.
pub(crate) type Derived<T> = (T, Vec<(String, u64)>);

/// What is made of the relation of a goal.
pub(crate) type Take<T> = fn(&Program, &Database, (TensorId, RelationId), u64) -> Result<T, Refusal>;

/// The same, which sees of which tensor each relation has tuples.
type TakeAll<'a, T> =
    dyn Fn(&Database, &BTreeMap<RelationId, TensorId>, (TensorId, RelationId)) -> Result<T, Refusal> + 'a;

use answer::value;
pub(crate) use answer::{answered, given};
pub(crate) use tried::for_rules;
use tried::joined;

/// So many tuples more than are given are tried with demand, whatever comes of it.
const SMALL: u64 = 1 << 12;

/// Among so few constants a closure as a whole is cheap: rows of bits.
const FEW: u64 = 1 << 13;

impl Session {
    /// The value of a goal, or no.
    ///
    /// # Errors
    /// `budget`, `divergence`, `overflow`.
    pub(crate) fn value<T>(
        &mut self,
        program: &Program,
        goal: TensorId,
        budget: Budget,
        take: Take<T>,
    ) -> Result<Option<Derived<T>>, Refusal> {
        let kept = !self.whole.is_empty();
        let value = self.try_value(program, goal, budget, &|database, _, goal| {
            take(program, database, goal, budget.bytes)
        });
        if let Err(report) = &value {
            if is_interrupted(report) {
                // What is whole stays so; the rest is left half done.
                self.keep_whole();
                return value;
            }
            // Relations are left half done; and what was kept of other goals may have taken the room.
            self.reset();
            if kept {
                return self.value(program, goal, budget, take);
            }
        }
        value
    }

    /// The tuples of all that a goal rests on, as far as its demand reaches: no proof of it needs others. `None` where something is
    /// no relation, or is recursive: demand may go down a recursion without the tuples in between, which are steps of a proof. The
    /// session is a new one: of what another has kept, what that rests on may be gone.
    ///
    /// # Errors
    /// Those of [`Session::value`].
    pub(crate) fn below(
        mut self,
        program: &Program,
        goal: TensorId,
        budget: Budget,
    ) -> Result<Option<Vec<(TensorId, Value)>>, Refusal> {
        let needed = program.needs(&[goal]);
        let is_recursive =
            |id: &TensorId| component_of(program, *id).is_some_and(|own| !matches!(own.class, Class::Plain));
        if needed.iter().any(|id| program.tensor(*id).style == Style::Square || is_recursive(id)) {
            return Ok(None);
        }
        let found = self.try_value(program, goal, budget, &|database, tensors, _| {
            let here =
                |(relation, _): &(&RelationId, &TensorId)| (relation.0 as usize) < database.relations();
            let mut all: BTreeMap<TensorId, Vec<RelationId>> = BTreeMap::new();
            for (relation, id) in tensors.iter().filter(here) {
                all.entry(*id).or_default().push(*relation);
            }
            Ok(needed.iter().map(|id| (*id, answer::merged(program, database, *id, all.get(id)))).collect())
        });
        Ok(found?.map(|(values, _)| values))
    }

    fn try_value<T>(
        &mut self,
        program: &Program,
        goal: TensorId,
        budget: Budget,
        take: &TakeAll<'_, T>,
    ) -> Result<Option<Derived<T>>, Refusal> {
        let needed = program.needs(&[goal]);
        let since = self.now();
        match self.compiler.build(program, &needed) {
            None => return Ok(None),
            Some(built) => built?,
        }
        self.note_border("facts", since);
        let mut tensors = self.compiler.tensors();
        let limits = self.limits(program, budget, &tensors);
        match self.derive(program, &needed, goal, &mut tensors, &limits) {
            Ok(()) => {}
            Err(failure) if unplanned(&failure) => {
                self.reset();
                self.compiler.declined.insert(goal);
                return Ok(None);
            }
            Err(failure) => {
                let failure = match failure {
                    Failure::Tuples { relation, limit } => {
                        Failure::Tuples { relation, limit: limit.min(budget.tuples) }
                    }
                    other => other,
                };
                return Err(answer::refusal(program, &self.compiler.database, &tensors, failure));
            }
        }
        let Some(relation) = self.compiler.relations.get(&goal).copied() else { return Ok(None) };
        let database = &mut self.compiler.database;
        let mut counts: BTreeMap<TensorId, u64> = BTreeMap::new();
        let here = |relation: &RelationId| (relation.0 as usize) < database.relations();
        for (relation, tensor) in tensors.iter().filter(|(at, id)| here(at) && needed.contains(id)) {
            let entry = program.tensor(*tensor);
            if entry.role == Role::Computed && !entry.hidden && entry.style == Style::Round {
                *counts.entry(*tensor).or_default() += database.relation(*relation).len() as u64;
            }
        }
        let counts = counts.into_iter().map(|(id, count)| (program.name(id).to_owned(), count)).collect();
        let since = self.notes.as_ref().map(|_| Instant::now());
        let value = take(database, &tensors, (goal, relation));
        database.truncate(self.compiler.declared);
        let value = value?;
        self.note_border("answers", since);
        if program.tensor(goal).hidden {
            // The next query is another one.
            self.forget(goal);
        }
        Ok(Some((value, counts)))
    }

    fn limits(&self, program: &Program, budget: Budget, tensors: &BTreeMap<RelationId, TensorId>) -> Limits {
        // The elements of square tensors are no tuples of the program.
        let squares = tensors.iter().filter(|(_, id)| program.tensor(**id).style == Style::Square);
        let elements = squares.map(|(relation, _)| self.compiler.database.relation(*relation).len() as u64);
        let tuples = budget.tuples.saturating_add(elements.sum());
        let (bytes, rounds) = (budget.bytes, program.settings.rounds);
        Limits { tuples, bytes, rounds, stop: self.stop.flag(), ..Limits::default() }
    }

    /// Brings the relation of a goal to hold all its tuples. Demand is worth a small try; where it is not small, all of
    /// what the goal needs may be had for not much more, and serves the next goal too.
    fn derive(
        &mut self,
        program: &Program,
        needed: &BTreeSet<TensorId>,
        goal: TensorId,
        tensors: &mut BTreeMap<RelationId, TensorId>,
        limits: &Limits,
    ) -> Result<(), Failure> {
        if self.whole.contains(&goal) {
            return Ok(());
        }
        let open: BTreeSet<TensorId> = needed.difference(&self.whole).copied().collect();
        let rules = self.compiler.rules_of(&open);
        let mut demand = self.demand(program, goal, &rules, tensors)?;
        if demand.recursive && demand.bound && !finite(&rules) {
            return self.in_turns(program, (needed, &open), goal, tensors, (&rules, demand), limits);
        }
        if demand.recursive && demand.bound {
            let database = &mut self.compiler.database;
            let base = database.tuples();
            let few = database.constants.len() as u64 <= FEW;
            if !(demand.entangled && few) {
                let tuples = limits.tuples.min(4 * base + SMALL);
                let small = Limits { tuples, ..limits.clone() };
                match self.evaluate(program, tensors, &demand.rules, &small) {
                    Err(Failure::Tuples { .. }) if tuples < limits.tuples => {}
                    done => return done.map(|()| self.keep(&demand, tensors)),
                }
                self.restart(program, needed, &demand);
            } else {
                database.truncate(self.compiler.declared);
            }
            let pairs = if few { self.compiler.database.constants.len().pow(2) * open.len() } else { 0 };
            let tuples = limits.tuples.min((64 * (base + SMALL)).max(base + pairs as u64));
            let whole = Limits { tuples, ..limits.clone() };
            match self.evaluate(program, tensors, &rules, &whole) {
                Ok(()) => {
                    self.whole.extend(open);
                    return Ok(());
                }
                Err(Failure::Interrupted) => return Err(Failure::Interrupted),
                Err(_) => {}
            }
            self.reset();
            let _built_before = self.compiler.build(program, needed);
            *tensors = self.compiler.tensors();
            demand = self.demand(program, goal, &rules, tensors)?;
        }
        self.evaluate(program, tensors, &demand.rules, limits)?;
        self.keep(&demand, tensors);
        Ok(())
    }

    /// Where rules make numbers, there may be no end to what is asked for, or to what is derived, while the other is
    /// small: both are tried in turns with ever more room, until one comes to an end.
    fn in_turns(
        &mut self,
        program: &Program,
        (needed, open): (&BTreeSet<TensorId>, &BTreeSet<TensorId>),
        goal: TensorId,
        tensors: &mut BTreeMap<RelationId, TensorId>,
        (rules, mut demand): (&[Rule], Demand),
        limits: &Limits,
    ) -> Result<(), Failure> {
        let mut tuples = 4 * self.compiler.database.tuples() + SMALL;
        loop {
            let room = Limits { tuples: tuples.min(limits.tuples), ..limits.clone() };
            match self.evaluate(program, tensors, &demand.rules, &room) {
                Err(Failure::Tuples { .. } | Failure::Bytes { .. }) => {}
                done => return done.map(|()| self.keep(&demand, tensors)),
            }
            self.restart(program, needed, &demand);
            match self.evaluate(program, tensors, rules, &room) {
                Err(Failure::Tuples { .. } | Failure::Bytes { .. }) if tuples < limits.tuples => {}
                done => return done.map(|()| self.whole.extend(open)),
            }
            self.reset();
            let _built_before = self.compiler.build(program, needed);
            *tensors = self.compiler.tensors();
            demand = self.demand(program, goal, rules, tensors)?;
            tuples = tuples.saturating_mul(4);
        }
    }

    fn demand(
        &mut self,
        program: &Program,
        goal: TensorId,
        rules: &[Rule],
        tensors: &mut BTreeMap<RelationId, TensorId>,
    ) -> Result<Demand, Failure> {
        let free = vec![None; program.tensor(goal).places.len()];
        let relation = self.compiler.relations.get(&goal).copied().unwrap_or(RelationId(0));
        let demand = magic(&mut self.compiler.database, rules, relation, &free)?;
        let known = self.compiler.tensors();
        tensors.extend(demand.copies.iter().filter_map(|(copy, of)| Some((*copy, *known.get(of)?))));
        Ok(demand)
    }

    /// Undoes an evaluation that came to no end: where only copies have changed, they are left.
    fn restart(&mut self, program: &Program, needed: &BTreeSet<TensorId>, demand: &Demand) {
        if demand.complete.iter().all(|(holder, original)| holder != original) {
            self.compiler.database.truncate(self.compiler.declared);
        } else {
            self.reset();
            let _built_before = self.compiler.build(program, needed);
        }
    }

    /// Keeps the relations that hold all their tuples.
    fn keep(&mut self, demand: &Demand, tensors: &BTreeMap<RelationId, TensorId>) {
        for (holder, original) in &demand.complete {
            self.compiler.database.exchange(*holder, *original);
            self.whole.extend(tensors.get(original));
        }
    }

    /// Forgets what was derived of a tensor.
    fn forget(&mut self, id: TensorId) {
        self.whole.remove(&id);
        self.compiler.loaded.remove(&id);
        if let Some(relation) = self.compiler.relations.get(&id) {
            self.compiler.database.clear(*relation);
        }
    }

    /// Ends an evaluation when this becomes true.
    pub(crate) fn stop_when(&mut self, stop: &Stop) {
        self.stop = stop.clone();
    }

    /// Forgets what was derived of relations that do not hold all their tuples.
    fn keep_whole(&mut self) {
        self.compiler.database.truncate(self.compiler.declared);
        let open: Vec<TensorId> =
            self.compiler.relations.keys().filter(|id| !self.whole.contains(id)).copied().collect();
        open.into_iter().for_each(|id| self.forget(id));
    }

    /// Forgets all of other tensors than these, whose definitions may now be others.
    pub(crate) fn retain(&mut self, same: &BTreeSet<TensorId>) {
        let known = self.compiler.relations.keys().chain(&self.compiler.declined);
        let others: Vec<TensorId> = known.filter(|id| !same.contains(id)).copied().collect();
        others.into_iter().for_each(|id| self.drop(id));
    }

    /// Forgets all of a tensor, which other programs do not have.
    fn drop(&mut self, id: TensorId) {
        self.forget(id);
        self.compiler.relations.remove(&id);
        self.compiler.rules.remove(&id);
        self.compiler.declined.remove(&id);
    }

    /// The value of a tensor that this program has more than the session's own, or no.
    ///
    /// # Errors
    /// Those of [`Session::value`].
    pub(crate) fn value_of_part<T>(
        &mut self,
        program: &Program,
        part: TensorId,
        budget: Budget,
        take: Take<T>,
    ) -> Result<Option<Derived<T>>, Refusal> {
        let value = self.value(program, part, budget, take);
        self.drop(part);
        value
    }

    /// Forgets what was derived, and keeps what is given.
    pub(crate) fn forget_all(&mut self) {
        for id in std::mem::take(&mut self.whole) {
            self.forget(id);
        }
    }
}

/// Whether rules make no constants: what is computed stands in an atom too.
fn finite(rules: &[Rule]) -> bool {
    let makes = |rule: &Rule| rule.body.iter().any(|literal| rule.makes(literal));
    !rules.iter().any(makes)
}

/// Whether the relational engine declines: a rule of a shape that it has no plan for.
fn unplanned(failure: &Failure) -> bool {
    matches!(failure, Failure::Rule { .. } | Failure::NotStratified { .. } | Failure::TooManyConstants)
}

/// Relations, rules and facts of the tensors that were asked for so far.
#[derive(Debug, Default)]
struct Compiler {
    database: Database,
    relations: BTreeMap<TensorId, RelationId>,
    /// Relations that hold the values of declared domains.
    domains: Vec<(Domain, RelationId)>,
    /// Rules of conditions on values, which the tensor at hand needs.
    conditions: Vec<Rule>,
    /// The rules of each tensor.
    rules: BTreeMap<TensorId, Vec<Rule>>,
    /// The number of all these relations; behind them come copies for demand.
    declared: usize,
    /// Those whose facts are in the database.
    loaded: BTreeSet<TensorId>,
    /// Those that are no relations.
    declined: BTreeSet<TensorId>,
}

/// The integers that the facts span keep their order.
fn constants(program: &Program) -> Constants {
    let mut ends: Option<(i64, i64)> = None;
    let mut total = 0usize;
    for given in program.tensors.iter().flat_map(|tensor| &tensor.given) {
        let mut see = |constants: &[crate::value::Const], many: usize| {
            total += many;
            for value in constants.iter().filter_map(|value| value.int()) {
                let (low, high) = ends.unwrap_or((value, value));
                ends = Some((low.min(value), high.max(value)));
            }
        };
        match given {
            Given::Facts(facts) => see(&facts.constants, facts.constants.len()),
            Given::Columns(columns) => columns.dictionaries.iter().for_each(|own| see(own, columns.len)),
            Given::Array { .. } => {}
        }
    }
    match ends {
        // Not where a few constants lie far apart.
        Some((low, high)) if high.abs_diff(low) <= 4 * total as u64 + 1024 => Constants::integers(low, high),
        _ => Constants::default(),
    }
}

impl Compiler {
    fn tensors(&self) -> BTreeMap<RelationId, TensorId> {
        self.relations.iter().map(|(id, relation)| (*relation, *id)).collect()
    }

    fn rules_of(&self, tensors: &BTreeSet<TensorId>) -> Vec<Rule> {
        tensors.iter().filter_map(|id| self.rules.get(id)).flatten().cloned().collect()
    }

    /// Makes relations, rules and facts of tensors, or `None` where something is no relation.
    fn build(&mut self, program: &Program, needed: &BTreeSet<TensorId>) -> Option<Result<(), Refusal>> {
        let mut rings = Vec::new();
        for id in needed {
            // What is learned is not at hand here.
            let learned = program.tensor(*id).role == Role::Parameter;
            let known = self.relations.get(id).map(|relation| self.database.relation(*relation).ring());
            let ring = match learned || self.declined.contains(id) {
                true => None,
                false => known.or_else(|| ring(program, *id)),
            };
            if ring.is_none() {
                self.declined.insert(*id);
            }
            rings.push((*id, ring?));
        }
        if self.relations.is_empty() && self.database.constants.is_empty() {
            self.database.constants = constants(program);
        }
        for (id, ring) in rings {
            let tensor = program.tensor(id);
            let declare = || self.database.declare(tensor.name.clone(), tensor.places.len(), ring);
            self.relations.entry(id).or_insert_with(declare);
        }
        self.declared = self.database.relations();
        for id in needed {
            if !self.rules.contains_key(id) {
                let rules = self.equations(program, *id);
                self.declared = self.database.relations();
                if rules.is_none() {
                    self.declined.insert(*id);
                }
                self.rules.insert(*id, rules?);
            }
        }
        for id in needed {
            if let Err(failure) = self.load(program, *id)? {
                return Some(Err(answer::refusal(program, &self.database, &self.tensors(), failure)));
            }
        }
        Some(Ok(()))
    }

    /// Loads what is given. `None`: not as a relation.
    fn load(&mut self, program: &Program, id: TensorId) -> Option<Result<(), Failure>> {
        let relation = *self.relations.get(&id)?;
        if !self.loaded.insert(id) {
            return Some(Ok(()));
        }
        for given in &program.tensor(id).given {
            let counts = self.database.relation(relation).ring().counts();
            let fits = |value: &f64| value.fract() == 0.0 && value.abs() < COUNT_LIMIT;
            let square = program.tensor(id).style == Style::Square;
            let array;
            let facts = match given {
                // A tuple of a Boolean relation exists where its values add up to more than 0.
                Given::Facts(facts)
                    if program.tensor(id).combine == Combine::Exists
                        && facts.values.iter().any(|value| *value <= 0.0 || value.is_nan()) =>
                {
                    self.declined.insert(id);
                    return None;
                }
                Given::Facts(facts) if !square && (!counts || facts.values.iter().all(fits)) => facts,
                Given::Columns(columns)
                    if !square && (!counts || (0..columns.len).all(|at| fits(&columns.value(at)))) =>
                {
                    array = Arc::new(columns.facts());
                    &array
                }
                Given::Array { fixed, values, .. } if square && fixed.iter().all(Option::is_none) => {
                    array = elements(program.tensor(id), values)?;
                    &array
                }
                _ => {
                    self.declined.insert(id);
                    return None;
                }
            };
            if let Err(failure) = self.facts(relation, facts) {
                return Some(Err(failure));
            }
        }
        Some(Ok(()))
    }

    fn facts(&mut self, relation: RelationId, facts: &Arc<Facts>) -> Result<(), Failure> {
        let mut rows = Vec::with_capacity(facts.constants.len());
        for value in &facts.constants {
            rows.push(self.database.constants.intern(*value)?);
        }
        let ring = self.database.relation(relation).ring();
        let value = |number: f64| {
            if ring.counts() { datarel::Value::count(number as i64) } else { datarel::Value::real(number) }
        };
        let values: Vec<datarel::Value> = match ring.valued() {
            true => (0..facts.count).map(|at| value(facts.value(at))).collect(),
            false => Vec::new(),
        };
        if facts.count > 0 {
            self.database.insert(relation, &rows, &values)?;
        }
        Ok(())
    }
}

/// The elements of an array that are not the default, if all others are finite.
fn elements(tensor: &Tensor, values: &[f64]) -> Option<Arc<Facts>> {
    let mut facts = Facts { arity: tensor.places.len(), ..Facts::default() };
    let domains = tensor.domains();
    let default = tensor.combine.default_value();
    let absent = |value: f64| !value.is_finite() && value == default;
    for (at, value) in values.iter().enumerate().filter(|(_, value)| !absent(**value)) {
        if !value.is_finite() {
            return None;
        }
        facts.push(&element(&domains, at), *value, None);
    }
    Some(Arc::new(facts))
}

/// The ring of a tensor, or `None` where the relational engine has none for it. A square tensor may be a sum of tuples,
/// if nothing else is given, or a closure over sums and what that needs: its tuples are the elements that are not the
/// default.
fn ring(program: &Program, id: TensorId) -> Option<Ring> {
    let tensor = program.tensor(id);
    let sum = tensor.combine == Combine::Sum && tensor.role == Role::Computed && tensor.given.is_empty();
    let times = translate::times_of(program, id)?;
    if times == Times::Times
        && matches!(tensor.combine, Combine::Min | Combine::Max)
        && !keeps_order(program, id)
    {
        return None;
    }
    // A closure of pairs, or a copy of what is given: products of matrices belong to blocks.
    let closed = is_closure(program, id) && times != Times::Times && tensor.places.len() <= 2;
    let least = matches!(tensor.combine, Combine::Min | Combine::Max)
        && (tensor.role == Role::Data || closed || !translate::multiplies(program, id));
    let places = tensor.places.iter().all(|place| place.domain.is_some() && !place.star);
    let small = crate::room::volume(&tensor.sizes());
    let given =
        matches!(tensor.role, Role::Data | Role::Computed) && small <= ELEMENTS && !tensor.places.is_empty();
    let element = places && given && (least || tensor.role == Role::Data) && tensor.kind != Kind::Count;
    if tensor.style == Style::Square
        && !(element || (sum && places && (tensor.places.is_empty() || joined(program, id))))
    {
        return None;
    }
    let combine = match (tensor.combine, tensor.kind) {
        (Combine::Exists, _) => return Some(Ring::BOOLEAN),
        (Combine::Or, _) => return None,
        (Combine::Sum, Kind::Count) => datarel::Combine::Count,
        (Combine::Sum, _) => datarel::Combine::Sum,
        (Combine::Max, _) => datarel::Combine::Max,
        (Combine::Min, _) => datarel::Combine::Min,
        (Combine::Times | Combine::Avg | Combine::Proofs | Combine::Slopes, _) => return None,
    };
    if tensor.kind == Kind::Count && combine != datarel::Combine::Count {
        return None;
    }
    Some(Ring { combine, times })
}

fn component_of(program: &Program, id: TensorId) -> Option<&Component> {
    program.components.iter().find(|component| component.tensors.contains(&id))
}

/// Whether a closure of products grows with what it reads of itself: what improves once is kept by rules, and is no fixpoint
/// where numbers below 0 turn the order round.
fn keeps_order(program: &Program, id: TensorId) -> bool {
    let own = component_of(program, id).filter(|own| matches!(own.class, Class::Closure));
    own.is_none_or(|own| signs::keep_order(program, own))
}

fn is_closure(program: &Program, id: TensorId) -> bool {
    component_of(program, id).is_some_and(|component| matches!(component.class, Class::Closure))
}

/// A square tensor of more elements is no relation.
const ELEMENTS: usize = 1 << 22;
