//! Rules as a dataflow: relations that are given, strata one behind the other, answers to the first worker.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use datarel::{Database, Failure, Literal, RelationId, Rule, Stratum, Times, strata};
use differential_dataflow::VecCollection;
use differential_dataflow::input::{Input, InputSession};
use differential_dataflow::operators::iterate::Variable;
use timely::dataflow::Scope;
use timely::dataflow::operators::probe::Handle;
use timely::dataflow::operators::vec::Broadcast;
use timely::dataflow::operators::{Exchange, Inspect, Probe};
use timely::order::Product;

use crate::body::Body;
use crate::codes::Codes;
use crate::order::plan;
use crate::refusal::Refusal;
use crate::rounds::watch;
use crate::settle::settle;
use crate::shared::{Fact, NONE, Row, Shared, Trouble};

/// What is to be derived.
#[derive(Debug)]
pub(crate) struct Job {
    /// Arities, rings, sizes, and the facts.
    pub(crate) database: Database,
    /// The relations that the answers need.
    pub(crate) needed: BTreeSet<RelationId>,
    /// The relations whose tuples are answers.
    pub(crate) goals: Vec<RelationId>,
    /// Constants.
    pub(crate) codes: Arc<Codes>,
    rules: Vec<Rule>,
    strata: Vec<Stratum>,
}

/// Tuples that have come to the first worker, or have gone.
pub(crate) type Found = Mutex<Vec<(RelationId, Fact, isize)>>;

impl Job {
    /// What these relations need, if all of it goes.
    ///
    /// # Errors
    /// The construct that does not.
    pub(crate) fn new(database: &Database, rules: &[Rule], goals: &[RelationId]) -> Result<Job, Refusal> {
        check(database, rules)?;
        let known = |goal: &&RelationId| (goal.0 as usize) < database.relations();
        let goals: Vec<RelationId> = goals.iter().filter(known).copied().collect();
        let mut needed: BTreeSet<RelationId> = goals.iter().copied().collect();
        let mut open = goals.clone();
        while let Some(relation) = open.pop() {
            for rule in rules.iter().filter(|rule| rule.head == relation) {
                open.extend(read(rule).filter(|read| needed.insert(*read)));
            }
        }
        let mut strata = strata(database.relations(), rules);
        strata.retain(|stratum| stratum.relations.iter().any(|relation| needed.contains(relation)));
        for stratum in &strata {
            refused(database, rules, stratum)?;
            for (number, rule) in of(rules, stratum) {
                plan(database, rule, number, &stratum.relations)?;
            }
        }
        let codes = Arc::new(Codes::new(&database.constants)?);
        Ok(Job { database: database.clone(), needed, goals, codes, rules: rules.to_vec(), strata })
    }
}

/// The relations that a rule reads.
fn read(rule: &Rule) -> impl Iterator<Item = RelationId> {
    rule.body.iter().filter_map(|literal| match literal {
        Literal::Atom(atom) | Literal::Not(atom) => Some(atom.relation),
        _ => None,
    })
}

/// The rules of a stratum with their positions.
fn of<'a>(rules: &'a [Rule], stratum: &'a Stratum) -> impl Iterator<Item = (usize, &'a Rule)> {
    stratum.rules.iter().filter_map(|at| Some((*at, rules.get(*at)?)))
}

/// Whether a rule reads a relation of its recursion.
fn recursive(rule: &Rule, stratum: &Stratum) -> bool {
    stratum.recursive && rule.atoms().any(|atom| stratum.relations.contains(&atom.relation))
}

/// What is wrong with rules alone.
fn check(database: &Database, rules: &[Rule]) -> Result<(), Refusal> {
    for (rule, one) in rules.iter().enumerate() {
        let fits = |relation: RelationId, places: usize| {
            (relation.0 as usize) < database.relations() && database.relation(relation).arity() == places
        };
        let atoms = one.body.iter().all(|literal| match literal {
            Literal::Atom(atom) | Literal::Not(atom) => fits(atom.relation, atom.terms.len()),
            _ => true,
        });
        if !atoms || !fits(one.head, one.head_terms.len()) {
            let reason = "an atom has the wrong number of arguments";
            return Err(Failure::Rule { rule, reason }.into());
        }
        let ring = database.relation(one.head).ring();
        if ring.counts() && ring.times != Times::Times {
            let reason = "counts are multiplied, and nothing else";
            return Err(Failure::Rule { rule, reason }.into());
        }
    }
    Ok(())
}

/// What does not go in a recursion.
fn refused(database: &Database, rules: &[Rule], stratum: &Stratum) -> Result<(), Refusal> {
    if !stratum.recursive {
        return Ok(());
    }
    let own = |relation: &RelationId| stratum.relations.contains(relation);
    let literals = of(rules, stratum).flat_map(|(_, rule)| &rule.body);
    for literal in literals {
        if let Literal::Not(atom) = literal
            && own(&atom.relation)
        {
            return Err(Failure::NotStratified { relation: atom.relation }.into());
        }
    }
    let sum = stratum.relations.iter().find(|id| !database.relation(**id).ring().idempotent());
    sum.map_or(Ok(()), |relation| Err(Refusal::SumInRecursion { relation: *relation }))
}

/// What is put into a dataflow.
pub(crate) struct Inputs {
    /// Facts of each relation that is needed.
    pub(crate) facts: BTreeMap<RelationId, InputSession<u64, Fact, isize>>,
    /// One empty binding in all.
    pub(crate) unit: InputSession<u64, Row, isize>,
    /// What went wrong here.
    pub(crate) trouble: InputSession<u64, Trouble, isize>,
    /// What is done.
    pub(crate) done: Handle<u64>,
}

impl Inputs {
    /// All that is put in before a time is in.
    pub(crate) fn advance(&mut self, time: u64) {
        for facts in self.facts.values_mut() {
            facts.advance_to(time);
            facts.flush();
        }
        self.unit.advance_to(time);
        self.unit.flush();
        self.trouble.advance_to(time);
        self.trouble.flush();
    }
}

/// The dataflow of a job.
pub(crate) fn build(job: &Job, scope: Scope<'_, u64>, shared: &Arc<Shared>, found: &Arc<Found>) -> Inputs {
    let (unit, units) = scope.new_collection();
    let mut body = Body::new(units, &job.codes, shared);
    let mut facts = BTreeMap::new();
    let mut given = BTreeMap::new();
    for relation in &job.needed {
        let (input, collection) = scope.new_collection();
        facts.insert(*relation, input);
        given.insert(*relation, collection);
    }
    let derived: BTreeSet<RelationId> =
        job.strata.iter().flat_map(|stratum| &stratum.relations).copied().collect();
    for (relation, given) in given.iter().filter(|(relation, _)| !derived.contains(relation)) {
        let ring = job.database.relation(*relation).ring();
        let settled = if ring.valued() {
            settle(given.clone(), (*relation, ring), shared)
        } else {
            // A fact is given once.
            let (shared, relation) = (Arc::clone(shared), *relation);
            given.clone().inspect(move |(_, _, by)| shared.grow(relation, *by))
        };
        body.relations.insert(*relation, settled);
    }
    for stratum in &job.strata {
        for (number, rule) in of(&job.rules, stratum).filter(|(_, rule)| !recursive(rule, stratum)) {
            // It was planned before, when it was looked at.
            let Ok(plan) = plan(&job.database, rule, number, &[]) else { continue };
            let more = body.rule(plan);
            let all = given.remove(&rule.head);
            given.insert(rule.head, all.map_or_else(|| more.clone(), |all| all.concat(more.clone())));
        }
        let settled = if stratum.recursive {
            iterate(job, stratum, scope, &body, &given, shared)
        } else {
            let own = stratum.relations.iter().filter_map(|id| Some((*id, given.get(id)?.clone())));
            own.map(|(id, given)| (id, settle(given, (id, job.database.relation(id).ring()), shared)))
                .collect()
        };
        body.relations.extend(settled);
    }
    let done = Handle::new();
    for goal in &job.goals {
        let (Some(tuples), goal, found) = (body.relations.get(goal), *goal, Arc::clone(found)) else {
            continue;
        };
        let take = move |(fact, _, by): &(Fact, u64, isize)| {
            let mut found = found.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            found.push((goal, fact.clone(), *by));
        };
        tuples.clone().inner.exchange(|_| 0).inspect(take).probe_with(&done);
    }
    let (trouble, troubles) = scope.new_collection();
    let heard = Arc::clone(shared);
    let hear = move |(trouble, _, _): &(Trouble, u64, isize)| heard.fail(trouble.clone());
    troubles.inner.broadcast().inspect(hear).probe_with(&done);
    Inputs { facts, unit, trouble, done }
}

/// The tuples of relations that depend on each other.
fn iterate<'s>(
    job: &Job,
    stratum: &Stratum,
    scope: Scope<'s, u64>,
    body: &Body<'s, u64>,
    given: &BTreeMap<RelationId, VecCollection<'s, u64, Fact, isize>>,
    shared: &Arc<Shared>,
) -> Vec<(RelationId, VecCollection<'s, u64, Fact, isize>)> {
    scope.iterative::<u64, _, _>(|rounds| {
        let mut inner = Body::new(body.unit.clone().enter(rounds), &job.codes, shared);
        let mut variables = Vec::new();
        let mut all = BTreeMap::new();
        for relation in &stratum.relations {
            let (variable, tuples) = Variable::new(rounds, Product::new(Default::default(), 1));
            inner.relations.insert(*relation, tuples);
            variables.push((*relation, variable));
            if let Some(given) = given.get(relation) {
                all.insert(*relation, given.clone().enter(rounds));
            }
        }
        let rules = of(&job.rules, stratum).filter(|(_, rule)| recursive(rule, stratum));
        for (number, rule) in rules {
            for relation in read(rule) {
                if let (false, Some(outside)) =
                    (inner.relations.contains_key(&relation), body.relations.get(&relation))
                {
                    inner.relations.insert(relation, outside.clone().enter(rounds));
                }
            }
            let Ok(plan) = plan(&job.database, rule, number, &stratum.relations) else { continue };
            let more = inner.rule(plan);
            let known = all.remove(&rule.head);
            all.insert(rule.head, known.map_or_else(|| more.clone(), |all| all.concat(more.clone())));
        }
        let (mut watched, mut valued, mut left) = (Vec::new(), None, Vec::new());
        for (relation, variable) in variables {
            let Some(all) = all.remove(&relation) else { continue };
            let ring = job.database.relation(relation).ring();
            let settled = settle(all, (relation, ring), shared);
            let gate = Arc::clone(shared);
            variable.set(settled.clone().filter(move |_| !gate.halted()));
            valued = valued.or(ring.valued().then_some(relation));
            watched.push(settled.clone());
            left.push((relation, settled.leave(scope)));
        }
        if let Some(relation) = valued {
            watch(watched, relation, shared);
        }
        left
    })
}

/// A given tuple as it is put in.
pub(crate) fn fact(row: &[u32], value: Option<datarel::Value>) -> Fact {
    (row.iter().copied().collect(), value.map_or(NONE, |value| Some(value.0)))
}
