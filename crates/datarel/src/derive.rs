//! Rules without recursion: each is joined once; tuples are piled up and sorted.
//!
//! Enter at [`derive`]. A pile is cut to its different tuples whenever it has doubled, so that
//! memory follows the result and not the join.

use std::ops::Range;

use rayon::prelude::*;

use super::component::Component;
use super::constants::Constants;
use super::database::Database;
use super::join::{Interner, Join, Output, first_rows};
use super::limits::{Failure, Limits};
use super::plan::plan;
use super::product::{marginal, product};
use super::profile::Recorder;
use super::project::part;
use super::rule::{Literal, RelationId, Rule, Term};
use super::search::Found;
use super::step::Plan;
use super::strata::Stratum;

/// A join runs in parallel from so many rows of its first step.
const PARALLEL: usize = 1 << 14;

/// So many rows of the first step are joined at a time, to begin with.
const PART: usize = 1 << 12;

/// A part that makes more tuples than this is followed by smaller ones.
const OUTPUT: usize = 1 << 17;

/// A pile is sorted when it has this many tuples, and twice as many as at the last time.
const PILE: usize = 1 << 20;

/// Adds what the rules of a stratum without recursion derive.
pub(super) fn derive(
    database: &mut Database,
    constants: &mut Constants,
    rules: &[Rule],
    stratum: &Stratum,
    limits: &Limits,
    recorder: &mut Recorder<'_>,
) -> Result<(), Failure> {
    for relation in &stratum.relations {
        let own: Vec<usize> =
            stratum.rules.iter().copied().filter(|rule| rules[*rule].head == *relation).collect();
        if let [rule] = own[..]
            && let Some(from) = copied(database, &rules[rule])
        {
            let since = recorder.now();
            let store = database.relation(from).clone();
            database.relation_mut(*relation).copy(&store);
            let slot = recorder.slot(rule, None);
            recorder.joined(slot, since, (store.len() as u64, store.len() as u64));
            room(database, *relation, limits, 0)?;
            continue;
        }
        let before = database.relations();
        let mut pile = Pile::new(*relation, limits);
        for number in own {
            let since = recorder.now();
            let made = pile.rows;
            let mut rule = rules[number].clone();
            while limits.shapes
                && rule.select.is_none()
                && let Some((part, rest)) = part(database, &rule)
            {
                let mut own = Pile::new(part.head, limits);
                own.rule(database, constants, &part, number, &mut Recorder::default())?;
                own.rest(database)?;
                rule = rest;
            }
            let done = pile.rule(database, constants, &rule, number, recorder);
            let slot = recorder.slot(number, None);
            recorder.joined(slot, since, (pile.rows.0 - made.0, pile.rows.1 - made.1));
            done?;
        }
        pile.rest(database)?;
        database.truncate(before);
    }
    Ok(())
}

/// The relation of which a rule makes its head, still empty, a copy.
fn copied(database: &Database, rule: &Rule) -> Option<RelationId> {
    let [Literal::Atom(atom)] = rule.body.as_slice() else { return None };
    let (from, to) = (database.relation(atom.relation), database.relation(rule.head));
    let distinct = (0..rule.head_terms.len()).all(|at| !rule.head_terms[..at].contains(&rule.head_terms[at]));
    let variables = rule.head_terms.iter().all(|term| matches!(term, Term::Variable(_)));
    let plain = rule.weight.is_none() && rule.computed.is_empty() && rule.select.is_none();
    let values = from.ring().valued() == to.ring().valued()
        && from.ring().counts() == to.ring().counts()
        && (atom.factor || !to.ring().valued());
    let whole = atom.terms == rule.head_terms && distinct && variables && plain && values;
    (whole && to.is_empty() && to.arity() > 0).then_some(atom.relation)
}

/// Tuples of one relation on their way to rest.
struct Pile<'a> {
    relation: RelationId,
    output: Output,
    /// How many there were when it was last sorted.
    sorted: usize,
    /// The rows that joins looked at, and the tuples that came out.
    rows: (u64, u64),
    limits: &'a Limits,
}

impl<'a> Pile<'a> {
    fn new(relation: RelationId, limits: &'a Limits) -> Pile<'a> {
        Pile { relation, output: Output::default(), sorted: 0, rows: (0, 0), limits }
    }

    /// Adds what a rule derives.
    fn rule(
        &mut self,
        database: &mut Database,
        constants: &mut Constants,
        rule: &Rule,
        number: usize,
        recorder: &mut Recorder<'_>,
    ) -> Result<(), Failure> {
        if self.limits.shapes && rule.select.is_none() {
            let held: u64 = rule.atoms().map(|atom| database.relation(atom.relation).len() as u64).sum();
            if let Some(output) = marginal(database, rule)? {
                self.rows.0 += held;
                return self.add(database, output);
            }
            if let Some(found) = product(database, rule, self.limits)? {
                self.rows.0 += held;
                return self.found(database, found);
            }
        }
        let plan = plan(database, &mut Component::default(), constants, rule, number, None)?;
        recorder.planned(number, None, &plan, database);
        self.join(database, constants, &plan)
    }

    /// Joins a rule, part by part.
    fn join(
        &mut self,
        database: &mut Database,
        constants: &mut Constants,
        plan: &Plan,
    ) -> Result<(), Failure> {
        let component = Component::default();
        let Some(total) = first_rows(plan, database, &component) else {
            return self.part(database, constants, plan, 0..usize::MAX);
        };
        self.rows.0 += total as u64;
        let threads = if plan.interns || total < PARALLEL { 1 } else { rayon::current_num_threads() };
        let (mut from, mut size) = (0, PART);
        while from < total {
            let (before, start) = (self.output.len, from);
            if threads == 1 {
                self.part(database, constants, plan, from..(from + size).min(total))?;
                from += size;
            } else {
                let cut = |part: usize| (from + part * size).min(total);
                let parts: Vec<Range<usize>> =
                    (0..threads * 4).map(|part| cut(part)..cut(part + 1)).collect();
                from = cut(threads * 4);
                self.parts(database, constants, plan, parts)?;
            }
            let made = self.output.len.saturating_sub(before);
            let (arity, rows) = (plan.head_terms.len(), &mut self.output.rows);
            if rows.capacity() - rows.len() < 2 * made * arity {
                // About as many as the other rows will make, so that few are copied.
                let more = made.saturating_mul(total.saturating_sub(from)) / (from - start).max(1);
                rows.reserve_exact(more.min(PILE) * arity);
            }
            size = if made > OUTPUT * threads { (size / 2).max(1) } else { (size * 2).min(1 << 18) };
        }
        Ok(())
    }

    fn part(
        &mut self,
        database: &mut Database,
        constants: &mut Constants,
        plan: &Plan,
        rows: Range<usize>,
    ) -> Result<(), Failure> {
        self.limits.interrupted()?;
        let component = Component::default();
        let interner = if plan.interns { Interner::Own(constants) } else { Interner::Shared(constants) };
        let (output, before) = (std::mem::take(&mut self.output), self.output.len);
        self.output = Join::run(plan, database, &component, interner, self.limits, rows, output)?;
        self.rows.1 += self.output.len.saturating_sub(before) as u64;
        self.full(database)
    }

    fn parts(
        &mut self,
        database: &mut Database,
        constants: &Constants,
        plan: &Plan,
        parts: Vec<Range<usize>>,
    ) -> Result<(), Failure> {
        self.limits.interrupted()?;
        let (component, stored) = (Component::default(), &*database);
        let shared = || Interner::Shared(constants);
        let join = |rows| Join::run(plan, stored, &component, shared(), self.limits, rows, Output::default());
        let outputs: Result<Vec<Output>, Failure> = parts.into_par_iter().map(join).collect();
        outputs?.into_iter().try_for_each(|output| self.add(database, output))
    }

    /// Adds a whole relation.
    fn found(&mut self, database: &mut Database, found: Found) -> Result<(), Failure> {
        let relation = database.relation_mut(self.relation);
        if relation.is_empty() && self.output.len == 0 {
            relation.rest_found(self.relation, found, false)?;
            self.sorted = relation.len();
            self.rows.1 += self.sorted as u64;
            return room(database, self.relation, self.limits, 0);
        }
        let rows = match found {
            Found::Bits(bits) => bits.rows(),
            // They are put in order with all others.
            Found::Sorted(sorted) => sorted.rows(),
        };
        let len = rows.len() / 2;
        self.add(database, Output { rows, len, ..Output::default() })
    }

    fn add(&mut self, database: &mut Database, output: Output) -> Result<(), Failure> {
        self.rows.1 += output.len as u64;
        if self.output.len == 0 {
            self.output = output;
        } else {
            self.output.rows.extend(output.rows);
            self.output.values.extend(output.values);
            self.output.len += output.len;
        }
        self.full(database)
    }

    /// Puts the tuples to rest if there are many.
    fn full(&mut self, database: &mut Database) -> Result<(), Failure> {
        if self.output.len >= PILE.max(2 * self.sorted) {
            self.rest(database)?;
        }
        room(database, self.relation, self.limits, 8 * self.output.rows.len() as u64)
    }

    /// Puts the tuples to rest.
    fn rest(&mut self, database: &mut Database) -> Result<(), Failure> {
        let output = std::mem::take(&mut self.output);
        let relation = database.relation_mut(self.relation);
        if output.len > 0 {
            relation.add(self.relation, &output.rows, &output.values, output.len)?;
        }
        self.sorted = relation.len();
        room(database, self.relation, self.limits, 0)
    }
}

/// Refuses where the database is too large.
fn room(database: &Database, relation: RelationId, limits: &Limits, more: u64) -> Result<(), Failure> {
    if database.tuples() > limits.tuples {
        return Err(Failure::Tuples { relation, limit: limits.tuples });
    }
    let needed = database.bytes() + more;
    if needed > limits.bytes {
        return Err(Failure::Bytes { relation, needed, limit: limits.bytes });
    }
    Ok(())
}
