//! The workers: started, each with its share of the facts, until there is nothing more to do.

use std::sync::{Arc, PoisonError};

use datarel::RelationId;
use timely::WorkerConfig;
use timely::communication::allocator::ProcessBuilder;
use timely::communication::allocator::zero_copy::initialize::initialize_networking_from_sockets;
use timely::communication::{AllocatorBuilder, Config, Hooks, WorkerGuards};
use timely::execute::execute_from;
use timely::worker::Worker;

use crate::connect::connect;
use crate::dataflow::{Found, Inputs, Job, build, fact};
use crate::hosts::Cluster;
use crate::refusal::Refusal;
use crate::shared::{Fact, Shared};

/// The most workers of a process: each has a way to each other.
const MOST: usize = 256;

/// The threads of workers.
pub(crate) struct Workers(WorkerGuards<()>);

/// Starts workers, which do this, in one process or as a part of several.
pub(crate) fn start(
    workers: usize,
    cluster: Option<&Cluster>,
    work: impl Fn(&mut Worker) + Send + Sync + 'static,
) -> Result<Workers, Refusal> {
    if !(1..=MOST).contains(&workers) {
        return Err(Refusal::Workers { workers, most: MOST });
    }
    let lost = |reason| Refusal::Lost { reason };
    let (builders, others) = match cluster {
        Some(cluster) if cluster.hosts.len() > 1 => {
            let sockets = connect(cluster, workers)?;
            let hooks = Hooks::default();
            let own = ProcessBuilder::new_typed_vector(workers, hooks.refill.clone(), None);
            let made = initialize_networking_from_sockets(own, sockets, cluster.process, workers, hooks);
            let (builders, guard) = made.map_err(|error| lost(error.to_string()))?;
            let builders = builders.into_iter().map(AllocatorBuilder::Tcp).collect();
            (builders, Box::new(guard) as Box<dyn std::any::Any + Send>)
        }
        _ => Config::Process(workers).try_build().map_err(lost)?,
    };
    execute_from(builders, others, WorkerConfig::default(), work).map(Workers).map_err(lost)
}

impl Workers {
    /// Whether none has ended.
    pub(crate) fn all_work(&self) -> bool {
        !self.0.guards().iter().any(|thread| thread.is_finished())
    }

    /// Waits for all of them.
    ///
    /// # Errors
    /// One has failed, as it does where another process has gone.
    pub(crate) fn join(self) -> Result<(), Refusal> {
        let reason = "its thread ended, or the connection to another process did".to_owned();
        // The threads of connections end by panics where the other side has gone, and whoever waits for them with them:
        // a thread with a name like theirs, by which a program may keep these panics off its messages.
        let waits = std::thread::Builder::new().name("timely:join".to_owned()).spawn(|| self.0.join());
        match waits.map(std::thread::JoinHandle::join) {
            Ok(Ok(ends)) if ends.iter().all(Result::is_ok) => Ok(()),
            _ => Err(Refusal::Lost { reason }),
        }
    }
}

/// The dataflow of a job on a worker, with its share of the facts and all that follows.
pub(crate) fn load(worker: &mut Worker, job: &Job, shared: &Arc<Shared>, found: &Arc<Found>) -> Inputs {
    let mut inputs = worker.dataflow(|scope| build(job, scope, shared, found));
    let (own, of) = (worker.index(), worker.peers());
    for (relation, input) in &mut inputs.facts {
        let relation = job.database.relation(*relation);
        let (rows, values) = (relation.rows(), relation.values());
        for at in (own..relation.len()).step_by(of) {
            let row = rows.get(at * relation.arity()..(at + 1) * relation.arity()).unwrap_or(&[]);
            input.update(fact(row, values.get(at).copied()), 1);
        }
    }
    if own == 0 {
        inputs.unit.update(Default::default(), 1);
    }
    finish(worker, &mut inputs, 1);
    inputs
}

/// Works until all before a time is done.
pub(crate) fn finish(worker: &mut Worker, inputs: &mut Inputs, time: u64) {
    inputs.advance(time);
    let done = inputs.done.clone();
    worker.step_or_park_while(None, || done.less_than(&time));
}

/// What was found since the last time, each tuple once with how often it is there more than before, in order.
pub(crate) fn take(found: &Found) -> Vec<(RelationId, Fact, isize)> {
    let mut all = std::mem::take(&mut *found.lock().unwrap_or_else(PoisonError::into_inner));
    all.sort_unstable();
    let mut net: Vec<(RelationId, Fact, isize)> = Vec::with_capacity(all.len());
    for (relation, fact, by) in all {
        match net.last_mut() {
            Some((same, known, sum)) if *same == relation && *known == fact => *sum += by,
            _ => net.push((relation, fact, by)),
        }
    }
    net.retain(|(_, _, by)| *by != 0);
    net
}
