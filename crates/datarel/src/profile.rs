//! What an evaluation does: for each stratum its method, for each rule the order in which its body is joined; and, of one
//! that was carried out, times, rounds, rows and bytes.
//!
//! `explain` fills a [`Profile`] in. An evaluation that nobody looks at reads no clock and keeps nothing: a [`Recorder`]
//! without a profile is a test of an option for each rule and round.

use std::time::{Duration, Instant};

use super::database::Database;
use super::rule::RelationId;
use super::step::{Operand, Plan, Source, Step, Version};
use super::strata::Stratum;

/// What an evaluation did, or would do.
#[derive(Debug, Clone, Default)]
pub struct Profile {
    /// The strata that have rules, in the order of evaluation.
    pub strata: Vec<StratumProfile>,
}

/// Relations that depend on each other, or one alone.
#[derive(Debug, Clone)]
pub struct StratumProfile {
    /// The relations.
    pub relations: Vec<RelationId>,
    /// How they were derived.
    pub method: Method,
    /// The rounds that were taken; 0 where the method has none.
    pub rounds: u64,
    /// The tuples of the relations in the end. Of an explained stratum: about how many.
    pub tuples: u64,
    /// Their bytes in the end, with all orders of columns that joins asked for; 0 if nothing was evaluated.
    pub bytes: u64,
    /// How long it took.
    pub time: Duration,
    /// Its rules. A rule that is joined once for each relation of the recursion that its body holds stands here once
    /// for each; a closure that is no join has its rules without an order.
    pub rules: Vec<RuleProfile>,
}

/// How a stratum is derived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Without recursion: each rule once.
    Once,
    /// A search from every value of the place that the recursion carries.
    Search,
    /// Products of Boolean matrices, by rows of bits.
    Matrices,
    /// Semi-naive rounds.
    Rounds,
}

/// A rule, or one of its versions in a recursion.
#[derive(Debug, Clone)]
pub struct RuleProfile {
    /// Its position among the rules that were given.
    pub rule: usize,
    /// Which atom of its body takes only what is new, by its position among the atoms.
    pub delta: Option<usize>,
    /// The order of the joins.
    pub order: Vec<JoinProfile>,
    /// How often it was joined: once, or in each round that had something new.
    pub joins: u64,
    /// The rows that were looked at: those of the first of the order, over all joins.
    pub rows_in: u64,
    /// The tuples that came out, before equal ones were put together.
    pub rows_out: u64,
    /// How long that took, with putting the tuples where they belong.
    pub time: Duration,
}

/// One part of an order of joins.
#[derive(Debug, Clone, PartialEq)]
pub struct JoinProfile {
    /// The relation; `None` for a comparison, a sum or a function of constants.
    pub relation: Option<RelationId>,
    /// How it takes part.
    pub access: Access,
    /// Its number of places that are bound before.
    pub bound: usize,
    /// About how many rows there are for each binding so far.
    pub estimate: f64,
}

/// How an atom takes part in a join.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Its rows with what is bound are gone through.
    Rows,
    /// Its new rows are.
    New,
    /// The values of one variable on which it and the atoms beside it agree.
    Meet,
    /// It is asked whether there is a tuple.
    Exists,
    /// It is asked whether there is none.
    Missing,
    /// No relation: a comparison, a sum, a function, a test.
    Computed,
}

/// What is written down on the way, if anybody wants to know.
#[derive(Default)]
pub(super) struct Recorder<'p> {
    /// The rounds of all recursions.
    pub(super) rounds: u64,
    profile: Option<&'p mut Profile>,
    /// When the stratum at hand began.
    begun: Option<Instant>,
    /// Which of the rules that were given each rule of a rewritten stratum comes from.
    origins: Option<Vec<usize>>,
}

/// Where a rule stands in the profile, if there is one.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Slot(Option<usize>);

impl<'p> Recorder<'p> {
    /// Everything is written into a profile.
    pub(super) fn of(profile: &'p mut Profile) -> Recorder<'p> {
        Recorder { profile: Some(profile), ..Recorder::default() }
    }
}

impl Recorder<'_> {
    /// The time, where it matters.
    pub(super) fn now(&self) -> Option<Instant> {
        self.profile.as_ref().map(|_| Instant::now())
    }

    /// A stratum begins.
    pub(super) fn begin(&mut self, stratum: &Stratum) {
        let Some(profile) = &mut self.profile else { return };
        profile.strata.push(StratumProfile {
            relations: stratum.relations.clone(),
            method: if stratum.recursive { Method::Rounds } else { Method::Once },
            rounds: 0,
            tuples: 0,
            bytes: 0,
            time: Duration::ZERO,
            rules: Vec::new(),
        });
        self.begun = Some(Instant::now());
        self.origins = None;
    }

    /// The stratum at hand ends, or failed.
    pub(super) fn end(&mut self, database: &Database) {
        let (Some(profile), Some(begun)) = (&mut self.profile, self.begun.take()) else { return };
        let Some(stratum) = profile.strata.last_mut() else { return };
        stratum.time = begun.elapsed();
        let all = || stratum.relations.iter().filter(|id| (id.0 as usize) < database.relations());
        stratum.tuples = all().map(|id| database.relation(*id).len() as u64).sum();
        stratum.bytes = all().map(|id| database.relation(*id).bytes() as u64).sum();
    }

    /// The stratum at hand.
    pub(super) fn stratum(&mut self) -> Option<&mut StratumProfile> {
        self.profile.as_mut()?.strata.last_mut()
    }

    /// The stratum at hand is derived in this way.
    pub(super) fn method(&mut self, method: Method) {
        if let Some(stratum) = self.stratum() {
            stratum.method = method;
        }
    }

    /// The rules of the stratum were rewritten: each comes from this one.
    pub(super) fn rewritten(&mut self, origins: Vec<usize>) {
        if self.profile.is_some() {
            self.origins = Some(origins);
        }
    }

    /// A round of the stratum at hand.
    pub(super) fn round(&mut self) {
        self.rounds += 1;
        if let Some(stratum) = self.stratum() {
            stratum.rounds += 1;
        }
    }

    /// Where a rule's numbers go.
    pub(super) fn slot(&mut self, number: usize, delta: Option<usize>) -> Slot {
        let number = self.origins.as_ref().map_or(Some(number), |origins| origins.get(number).copied());
        let (Some(rule), Some(stratum)) = (number, self.stratum()) else { return Slot(None) };
        let known = stratum.rules.iter().position(|known| known.rule == rule && known.delta == delta);
        Slot(Some(known.unwrap_or_else(|| {
            let (order, time) = (Vec::new(), Duration::ZERO);
            stratum.rules.push(RuleProfile { rule, delta, order, joins: 0, rows_in: 0, rows_out: 0, time });
            stratum.rules.len() - 1
        })))
    }

    /// A rule will be joined like this.
    pub(super) fn planned(
        &mut self,
        number: usize,
        delta: Option<usize>,
        plan: &Plan,
        database: &mut Database,
    ) -> Slot {
        let slot = self.slot(number, delta);
        if let (Slot(Some(at)), Some(stratum)) = (slot, self.stratum())
            && let Some(rule) = stratum.rules.get_mut(at).filter(|rule| rule.order.is_empty())
        {
            rule.order = order(plan, database);
        }
        slot
    }

    /// A rule was joined, since then: rows looked at, tuples found.
    pub(super) fn joined(&mut self, slot: Slot, since: Option<Instant>, rows: (u64, u64)) {
        let (Slot(Some(at)), Some(stratum), Some(since)) = (slot, self.stratum(), since) else { return };
        if let Some(rule) = stratum.rules.get_mut(at) {
            rule.joins += 1;
            rule.rows_in += rows.0;
            rule.rows_out += rows.1;
            rule.time += since.elapsed();
        }
    }
}

/// A plan as its joins.
fn order(plan: &Plan, database: &mut Database) -> Vec<JoinProfile> {
    let mut joins = Vec::new();
    for step in &plan.steps {
        let computed = JoinProfile { relation: None, access: Access::Computed, bound: 0, estimate: 1.0 };
        match step {
            Step::Match { source, key, .. } => {
                let (relation, access) = sourced(*source, Access::Rows);
                let estimate = fanout(database, *source, key.len());
                joins.push(JoinProfile { relation: Some(relation), access, bound: key.len(), estimate });
            }
            Step::Exists { source, key, .. } => {
                let (relation, access) = sourced(*source, Access::Exists);
                joins.push(JoinProfile { relation: Some(relation), access, bound: key.len(), estimate: 1.0 });
            }
            Step::Missing(relation, _, key) => joins.push(JoinProfile {
                relation: Some(*relation),
                access: Access::Missing,
                bound: key.len(),
                estimate: 1.0,
            }),
            Step::Extend(_, candidates) => {
                let of = |candidate: &super::step::Candidate, database: &mut Database| {
                    let source = Source::Sorted(candidate.relation, candidate.index);
                    fanout(database, source, candidate.key.len())
                };
                let all: Vec<f64> = candidates.iter().map(|one| of(one, database)).collect();
                // As many as the smallest has.
                let least = all.iter().copied().fold(f64::INFINITY, f64::min);
                for (at, candidate) in candidates.iter().enumerate() {
                    joins.push(JoinProfile {
                        relation: Some(candidate.relation),
                        access: Access::Meet,
                        bound: candidate.key.iter().filter(|operand| is_bound(operand)).count(),
                        estimate: if at == 0 { least } else { 1.0 },
                    });
                }
            }
            Step::Compare(..)
            | Step::Shift(..)
            | Step::ShiftTest(..)
            | Step::Compute(..)
            | Step::ComputeTest(..)
            | Step::Test(..) => joins.push(computed),
        }
    }
    joins
}

fn is_bound(operand: &Operand) -> bool {
    matches!(operand, Operand::Slot(_) | Operand::Constant(_))
}

fn sourced(source: Source, access: Access) -> (RelationId, Access) {
    match source {
        Source::Sorted(relation, _) => (relation, access),
        Source::Whole(relation, version)
        | Source::Chain(relation, _, version)
        | Source::Row(relation, version) => {
            (relation, if version == Version::Delta { Access::New } else { access })
        }
    }
}

/// About how many rows of a relation there are for values of the first places of an order.
fn fanout(database: &mut Database, source: Source, key: usize) -> f64 {
    let Source::Sorted(relation, index) = source else { return 1.0 };
    let order = database.relation(relation).sorted(index).order.clone();
    let (mut rows, distinct) = database.relation_mut(relation).size();
    for place in order.iter().take(key) {
        rows /= distinct.get(*place).copied().unwrap_or(1.0).max(1.0);
    }
    rows
}
