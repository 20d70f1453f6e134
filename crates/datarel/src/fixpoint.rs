//! Least fixpoints, semi-naive: every round joins only with what the last round has added.

use rayon::prelude::*;

use super::component::{Component, Growing};
use super::constants::Constants;
use super::database::Database;
use super::derive::derive;
use super::join::{Interner, Join, Output, first_rows};
use super::limits::{Failure, Limits};
use super::linear::{Closed, Linear};
use super::matrix::Matrices;
use super::plan::plan;
use super::profile::{Method, Recorder, Slot};
use super::project::recursion;
use super::ring::Times;
use super::rule::{Literal, RelationId, Rule};
use super::step::Plan;
use super::strata::{Stratum, strata};
use super::table::Table;

/// What an evaluation did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counters {
    /// The rounds of all recursions.
    pub rounds: u64,
}

/// Adds everything that follows by the rules to the relations of their heads: the least
/// fixpoint, stratum by stratum. Tuples that a head's relation holds already are contributions
/// like those of rules.
///
/// # Errors
/// See [`Failure`]; relations of earlier strata are then finished, others as they were.
pub fn evaluate(database: &mut Database, rules: &[Rule], limits: &Limits) -> Result<Counters, Failure> {
    evaluate_noted(database, rules, limits, &mut Recorder::default())
}

/// The same, with what is noted on the way.
pub(super) fn evaluate_noted(
    database: &mut Database,
    rules: &[Rule],
    limits: &Limits,
    recorder: &mut Recorder<'_>,
) -> Result<Counters, Failure> {
    check(database, rules)?;
    // Rows are numbered by u32, and hash tables have more slots than rows.
    let limits = &Limits { tuples: limits.tuples.min(MOST_TUPLES), ..limits.clone() };
    let mut constants = std::mem::take(&mut database.constants);
    let mut result = Ok(());
    for stratum in strata(database.relations(), rules) {
        if !stratum.rules.is_empty() {
            recorder.begin(&stratum);
        }
        result = run(database, &mut constants, rules, &stratum, limits, recorder);
        if result.is_err() {
            break;
        }
        recorder.end(database);
    }
    database.constants = constants;
    result.map(|()| Counters { rounds: recorder.rounds })
}

/// The most tuples that any limit allows.
const MOST_TUPLES: u64 = 1 << 30;

/// What can be refused without evaluation.
pub(super) fn check(database: &Database, rules: &[Rule]) -> Result<(), Failure> {
    for (number, rule) in rules.iter().enumerate() {
        let known = |relation: RelationId| (relation.0 as usize) < database.relations();
        let fits = |relation: RelationId, places: usize| {
            known(relation) && database.relation(relation).arity() == places
        };
        let named = rule.body.iter().filter_map(|literal| match literal {
            Literal::Atom(atom) | Literal::Not(atom) => Some(atom.relation),
            _ => None,
        });
        if !named.chain([rule.head]).all(known) {
            return Err(Failure::Rule { rule: number, reason: "an atom is of a relation that is not there" });
        }
        let atoms = rule.body.iter().all(|literal| match literal {
            Literal::Atom(atom) | Literal::Not(atom) => fits(atom.relation, atom.terms.len()),
            _ => true,
        });
        if !atoms || !fits(rule.head, rule.head_terms.len()) {
            return Err(Failure::Rule { rule: number, reason: "an atom has the wrong number of arguments" });
        }
        let ring = database.relation(rule.head).ring();
        if ring.counts() && ring.times != Times::Times {
            return Err(Failure::Rule { rule: number, reason: "counts are multiplied, and nothing else" });
        }
    }
    for stratum in strata(database.relations(), rules).iter().filter(|stratum| stratum.recursive) {
        let own = |relation: &RelationId| stratum.relations.contains(relation);
        let negated =
            stratum.rules.iter().flat_map(|rule| &rules[*rule].body).find_map(|literal| match literal {
                Literal::Not(atom) if own(&atom.relation) => Some(atom.relation),
                _ => None,
            });
        let summed = || {
            let sums = |relation: &&RelationId| !database.relation(**relation).ring().idempotent();
            let recursive = stratum.rules.iter().map(|rule| &rules[*rule]);
            let recursive: Vec<&Rule> =
                recursive.filter(|rule| rule.atoms().any(|atom| own(&atom.relation))).collect();
            let linear = match stratum.relations[..] {
                [relation] => Linear::recognise(database, relation, &recursive, relation).is_some(),
                _ => false,
            };
            stratum.relations.iter().find(sums).filter(|_| !linear).copied()
        };
        if let Some(relation) = negated.or_else(summed) {
            return Err(Failure::NotStratified { relation });
        }
    }
    Ok(())
}

/// Evaluates a stratum.
fn run(
    database: &mut Database,
    constants: &mut Constants,
    rules: &[Rule],
    stratum: &Stratum,
    limits: &Limits,
    recorder: &mut Recorder<'_>,
) -> Result<(), Failure> {
    limits.interrupted()?;
    let own = |rule: &&usize| rules[**rule].atoms().any(|atom| stratum.relations.contains(&atom.relation));
    let (recursive, plain): (Vec<usize>, Vec<usize>) = stratum.rules.iter().partition(own);
    let plain = Stratum { relations: stratum.relations.clone(), rules: plain, recursive: false };
    if !stratum.recursive {
        return derive(database, constants, rules, &plain, limits, recorder);
    }
    let mut rest = Stratum { relations: stratum.relations.clone(), rules: recursive, recursive: true };
    if limits.shapes {
        let before = database.relations();
        let shaped = shaped(database, constants, rules, (&plain, &rest), limits, recorder);
        database.truncate(before);
        match shaped? {
            Shaped::Done => return Ok(()),
            Shaped::Begun => {}
            Shaped::No => rest.rules.splice(0..0, plain.rules).for_each(drop),
        }
    } else {
        rest.rules.splice(0..0, plain.rules).for_each(drop);
    }
    let sums = |relation: &&RelationId| !database.relation(**relation).ring().idempotent();
    if let Some(relation) = rest.relations.iter().find(sums) {
        return Err(Failure::NotStratified { relation: *relation });
    }
    let before = database.relations();
    recorder.method(Method::Rounds);
    let result = split(database, constants, rules, &rest, limits, recorder);
    database.truncate(before);
    result
}

/// Evaluates a recursion with projections of their own. The database may have further relations
/// at the end.
fn split(
    database: &mut Database,
    constants: &mut Constants,
    rules: &[Rule],
    stratum: &Stratum,
    limits: &Limits,
    recorder: &mut Recorder<'_>,
) -> Result<(), Failure> {
    if !limits.shapes {
        return general(database, constants, rules, stratum, limits, recorder);
    }
    let (mut parts, mut origins) = (Vec::new(), Vec::new());
    for rule in &stratum.rules {
        parts.extend(recursion(database, &rules[*rule], &stratum.relations));
        origins.resize(parts.len(), *rule);
    }
    recorder.rewritten(origins);
    for part in strata(database.relations(), &parts) {
        if part.recursive {
            general(database, constants, &parts, &part, limits, recorder)?;
        } else {
            derive(database, constants, &parts, &part, limits, recorder)?;
        }
    }
    Ok(())
}

/// How far a special method went.
enum Shaped {
    /// The relations hold the fixpoint.
    Done,
    /// They hold what the rules without recursion derive.
    Begun,
    /// Nothing was done.
    No,
}

/// Recursions of special shapes. The database may have further relations at the end.
fn shaped(
    database: &mut Database,
    constants: &mut Constants,
    rules: &[Rule],
    (plain, recursive): (&Stratum, &Stratum),
    limits: &Limits,
    recorder: &mut Recorder<'_>,
) -> Result<Shaped, Failure> {
    let own: Vec<&Rule> = recursive.rules.iter().map(|rule| &rules[*rule]).collect();
    let ring = database.relation(recursive.relations[0]).ring();
    let step = database.declare("step", 2, ring);
    let linear = match recursive.relations[..] {
        [relation] => Linear::recognise(database, relation, &own, step),
        _ => None,
    };
    let Some(linear) = linear else {
        let Some(matrices) = Matrices::recognise(database, &recursive.relations, &own) else {
            return Ok(Shaped::No);
        };
        derive(database, constants, rules, plain, limits, recorder)?;
        recorder.method(Method::Matrices);
        let since = recorder.now();
        let done = matrices.close(database, limits)?;
        closed(database, recursive, recorder, since);
        return Ok(if done { Shaped::Done } else { Shaped::Begun });
    };
    derive(database, constants, rules, plain, limits, recorder)?;
    recorder.method(Method::Search);
    let since = recorder.now();
    let graph = match linear.steps(database) {
        Ok(graph) => graph,
        Err(steps) => {
            let all = Stratum { relations: vec![step], rules: (0..steps.len()).collect(), recursive: false };
            derive(database, constants, steps, &all, limits, &mut Recorder::default())?;
            (step, 0, 1)
        }
    };
    let done = linear.close(database, graph, limits)?;
    closed(database, recursive, recorder, since);
    Ok(match done {
        Closed::Done => Shaped::Done,
        Closed::Undecided => Shaped::Begun,
    })
}

/// The rules of a closure that is no join: its time is that of the first, which all of them share.
fn closed(
    database: &Database,
    recursive: &Stratum,
    recorder: &mut Recorder<'_>,
    mut since: Option<std::time::Instant>,
) {
    let tuples = recursive.relations.iter().map(|id| database.relation(*id).len() as u64).sum();
    for rule in &recursive.rules {
        let slot = recorder.slot(*rule, None);
        recorder.joined(slot, since.take(), (0, tuples));
    }
}

/// Semi-naive evaluation of a recursion.
fn general(
    database: &mut Database,
    constants: &mut Constants,
    rules: &[Rule],
    stratum: &Stratum,
    limits: &Limits,
    recorder: &mut Recorder<'_>,
) -> Result<(), Failure> {
    let mut work = Work::new(database, constants, stratum, limits)?;
    let mut plans: Vec<(RelationId, Plan, Slot)> = Vec::new();
    for rule in &stratum.rules {
        let mut plan = |delta| {
            let made = plan(work.database, &mut work.component, work.constants, &rules[*rule], *rule, delta)?;
            let slot = recorder.planned(*rule, delta, &made, work.database);
            Ok((made, slot))
        };
        let mut recursive = false;
        for (at, atom) in rules[*rule].atoms().enumerate() {
            if stratum.relations.contains(&atom.relation) {
                recursive = true;
                let (plan, slot) = plan(Some(at))?;
                plans.push((atom.relation, plan, slot));
            }
        }
        if !recursive {
            let (plan, slot) = plan(None)?;
            work.noted(&plan, slot, recorder)?;
        }
    }
    work.close(&plans, recorder)?;
    work.finish()
}

/// A stratum at work.
struct Work<'a> {
    database: &'a mut Database,
    constants: &'a mut Constants,
    component: Component,
    limits: &'a Limits,
    /// Tuples and bytes of the relations at rest.
    resting: (u64, u64),
    /// The rows that joins looked at, and the tuples that came out.
    rows: (u64, u64),
    /// What the last join came out in.
    output: Output,
}

/// A join runs in parallel from so many rows of its first step.
const PARALLEL: usize = 1 << 14;

/// So many tuples are looked up at a time before they are added one by one.
const AHEAD: usize = 16;

/// A join is interrupted to merge its output when it has about so many tuples.
const OUTPUT: usize = 1 << 15;

impl<'a> Work<'a> {
    fn new(
        database: &'a mut Database,
        constants: &'a mut Constants,
        stratum: &Stratum,
        limits: &'a Limits,
    ) -> Result<Work<'a>, Failure> {
        let mut component = Component::default();
        for id in &stratum.relations {
            let relation = database.relation(*id);
            let table = Table::new(relation.arity(), relation.ring());
            let mut growing = Growing::new(*id, table);
            let (rows, values) = (relation.rows(), relation.values());
            for at in 0..relation.len() {
                let tuple = &rows[at * relation.arity()..(at + 1) * relation.arity()];
                growing.insert(tuple, values.get(at).copied().unwrap_or_default())?;
            }
            component.growing.push(growing);
        }
        let own: u64 = stratum.relations.iter().map(|id| database.relation(*id).len() as u64).sum();
        let resting = (database.tuples() - own, database.bytes());
        let output = Output { all: true, ..Output::default() };
        Ok(Work { database, constants, component, limits, resting, rows: (0, 0), output })
    }

    /// Rounds until nothing changes.
    fn close(
        &mut self,
        plans: &[(RelationId, Plan, Slot)],
        recorder: &mut Recorder<'_>,
    ) -> Result<(), Failure> {
        let (mut rounds, mut block) = (0, 0);
        while self.component.begin_turn(&mut block) {
            rounds += 1;
            recorder.round();
            let tuples = self.component.tuples();
            // Only values can go on changing; new tuples make the bound grow.
            let valued = |growing: &&Growing| growing.table.ring().valued() && !growing.turn.is_empty();
            if rounds > tuples + 1
                && let Some(growing) = self.component.growing.iter().find(valued)
            {
                return Err(Failure::Divergence { relation: growing.relation, rounds, tuples });
            }
            for (relation, plan, slot) in plans {
                let fresh = self.component.table(*relation).is_some_and(|growing| !growing.turn.is_empty());
                if fresh {
                    self.noted(plan, *slot, recorder)?;
                }
            }
        }
        Ok(())
    }

    /// Joins, and notes how long it took.
    fn noted(&mut self, plan: &Plan, slot: Slot, recorder: &mut Recorder<'_>) -> Result<(), Failure> {
        let since = recorder.now();
        self.rows = (0, 0);
        let done = self.apply(plan);
        recorder.joined(slot, since, self.rows);
        done
    }

    /// Joins and adds what comes out, part by part.
    fn apply(&mut self, plan: &Plan) -> Result<(), Failure> {
        let total = first_rows(plan, self.database, &self.component);
        self.rows.0 += total.unwrap_or(0) as u64;
        let Some(total) = total else { return self.part(plan, 0..usize::MAX) };
        let threads = if plan.interns { 1 } else { rayon::current_num_threads() };
        let (mut from, mut size) = (0, 1024);
        while from < total {
            self.limits.interrupted()?;
            let made = if threads > 1 && total - from >= PARALLEL && size >= 1024 {
                let parts: Vec<_> = (0..threads * 4)
                    .map(|part| (from + part * size).min(total)..(from + (part + 1) * size).min(total))
                    .collect();
                from = (from + threads * 4 * size).min(total);
                self.parts(plan, parts)? / (threads * 4)
            } else {
                let part = from..(from + size).min(total);
                from = part.end;
                let before = self.component.tuples();
                self.part(plan, part)?;
                (self.component.tuples() - before) as usize
            };
            size = if made > OUTPUT {
                (size / 2).max(1)
            } else if made * 4 < OUTPUT {
                (size * 2).min(1 << 20)
            } else {
                size
            };
        }
        Ok(())
    }

    fn part(&mut self, plan: &Plan, rows: std::ops::Range<usize>) -> Result<(), Failure> {
        let interner =
            if plan.interns { Interner::Own(self.constants) } else { Interner::Shared(self.constants) };
        let output = std::mem::take(&mut self.output);
        let mut output =
            Join::run(plan, self.database, &self.component, interner, self.limits, rows, output)?;
        self.merge(plan, &output)?;
        output.rows.clear();
        output.values.clear();
        self.output = Output { len: 0, ..output };
        Ok(())
    }

    /// Joins several parts at a time and adds them in order; the size of the largest output.
    fn parts(&mut self, plan: &Plan, parts: Vec<std::ops::Range<usize>>) -> Result<usize, Failure> {
        let (database, component, limits) = (&*self.database, &self.component, self.limits);
        let constants = &*self.constants;
        let shared = || Interner::Shared(constants);
        let outputs: Result<Vec<Output>, Failure> = parts
            .into_par_iter()
            .map(|rows| Join::run(plan, database, component, shared(), limits, rows, Output::default()))
            .collect();
        let outputs = outputs?;
        for output in &outputs {
            self.merge(plan, output)?;
        }
        Ok(outputs.iter().map(|output| output.len).sum())
    }

    fn merge(&mut self, plan: &Plan, output: &Output) -> Result<(), Failure> {
        let arity = plan.head_terms.len();
        let (limits, (tuples, bytes)) = (self.limits, self.resting);
        self.rows.1 += output.len as u64;
        for from in (0..output.len).step_by(AHEAD) {
            if from.is_multiple_of(1 << 12) {
                self.room(plan.head, tuples, bytes)?;
            }
            let Some(growing) = self.component.table_mut(plan.head) else { return Ok(()) };
            let to = output.len.min(from + AHEAD);
            growing.table.warm(&output.rows[from * arity..to * arity]);
            for at in from..to {
                let value = output.values.get(at).copied().unwrap_or_default();
                growing.insert(&output.rows[at * arity..(at + 1) * arity], value)?;
                if growing.table.len() as u64 + tuples > limits.tuples {
                    return Err(Failure::Tuples { relation: plan.head, limit: limits.tuples });
                }
            }
        }
        if let Some(growing) = self.component.table_mut(plan.head) {
            growing.table.link();
        }
        Ok(())
    }

    /// Refuses where the relations are too large, or doubling what is there could be.
    fn room(&self, relation: RelationId, tuples: u64, bytes: u64) -> Result<(), Failure> {
        let limits = self.limits;
        if self.component.tuples() + tuples > limits.tuples {
            return Err(Failure::Tuples { relation, limit: limits.tuples });
        }
        let needed = self.component.bytes() + bytes;
        if needed > limits.bytes {
            return Err(Failure::Bytes { relation, needed, limit: limits.bytes });
        }
        Ok(())
    }

    /// Puts the tables to rest.
    fn finish(self) -> Result<(), Failure> {
        for growing in self.component.growing {
            let relation = self.database.relation_mut(growing.relation);
            let (rows, values) = growing.table.into_rows();
            relation.rest_rows(growing.relation, rows.iter(), &values, rows.len())?;
        }
        Ok(())
    }
}
