//! All that follows by rules, once: [`evaluate`].

use std::sync::Arc;

use datarel::{Database, Limits, RelationId, Rule, Value};

use crate::codes::Codes;
use crate::dataflow::{Found, Job};
use crate::hosts::Cluster;
use crate::refusal::Refusal;
use crate::shared::{Fact, Shared, refusal};
use crate::work::{finish, load, start, take};

/// How the work is done.
#[derive(Debug, Clone)]
pub struct Options {
    /// The workers of this process, each a thread.
    pub workers: usize,
    /// Of these the tuples, of all relations that this process holds, the bytes, of its whole memory where Linux tells, and what
    /// ends the work.
    pub limits: Limits,
    /// The other processes, if there are any.
    pub cluster: Option<Cluster>,
}

impl Default for Options {
    /// One worker.
    fn default() -> Options {
        Options { workers: 1, limits: Limits::default(), cluster: None }
    }
}

/// Which process has the answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holder {
    /// This one.
    Here,
    /// Process 0, which is another one.
    Elsewhere,
}

/// Puts all that follows by the rules into the relations `goals`, as [`datarel::evaluate`] does; other relations are left as
/// they are. Of several processes the first one has the answers; all must be given the same database and rules.
///
/// # Errors
/// See [`Refusal`]; the database is then as it was.
pub fn evaluate(
    database: &mut Database,
    rules: &[Rule],
    goals: &[RelationId],
    options: &Options,
) -> Result<Holder, Refusal> {
    if let Some(Cluster { hosts, process, .. }) = &options.cluster
        && *process >= hosts.len()
    {
        return Err(Refusal::Process { process: *process, processes: hosts.len() });
    }
    let job = Arc::new(Job::new(database, rules, goals)?);
    let shared = Shared::new(&options.limits);
    let found = Arc::new(Found::default());
    let workers = {
        let (job, shared, found, local) =
            (Arc::clone(&job), Arc::clone(&shared), Arc::clone(&found), options.workers);
        start(options.workers, options.cluster.as_ref(), move |worker| {
            let mut inputs = load(worker, &job, &shared, &found);
            // What went wrong in one process is known to all.
            if let (0, Some(trouble)) = (worker.index() % local.max(1), shared.trouble()) {
                inputs.trouble.update(trouble, 1);
            }
            finish(worker, &mut inputs, 2);
        })?
    };
    workers.join()?;
    if let Some(trouble) = shared.trouble() {
        return Err(refusal(trouble));
    }
    if options.cluster.as_ref().is_some_and(|cluster| cluster.process > 0) {
        return Ok(Holder::Elsewhere);
    }
    let mut found = take(&found).into_iter().peekable();
    let mut goals = job.goals.clone();
    goals.sort_unstable();
    for goal in goals {
        let mut rows = Vec::new();
        while let Some((_, fact, _)) = found.next_if(|(relation, _, _)| *relation == goal) {
            rows.push(fact);
        }
        fill(database, goal, &rows, &job.codes)?;
    }
    Ok(Holder::Here)
}

/// Replaces the tuples of a relation.
fn fill(database: &mut Database, relation: RelationId, facts: &[Fact], codes: &Codes) -> Result<(), Refusal> {
    let valued = database.relation(relation).ring().valued();
    let (mut rows, mut values) = (Vec::new(), Vec::new());
    for (row, worth) in facts {
        for code in row {
            rows.push(database.constants.intern(codes.value(*code))?);
        }
        values.extend(worth.filter(|_| valued).map(Value));
    }
    database.clear(relation);
    if !facts.is_empty() {
        database.insert(relation, &rows, &values)?;
    }
    Ok(())
}
