//! MPI. Nothing here blocks: messages are asked for until they are there, or until the time of a rank is over.

use std::io::Write as _;
use std::time::{Duration, Instant};

use mpi::environment::Universe;
use mpi::point_to_point::MatchedReceiveVec as _;
use mpi::request::scope;
use mpi::topology::SimpleCommunicator;
use mpi::traits::{Communicator, Destination, Equivalence, Source};
use training::collective::late;
use training::{Collective, Refusal, Result};

use crate::launch::Launch;

/// The ranks of MPI's world.
struct ByMpi {
    /// Ends MPI when it is dropped.
    _universe: Universe,
    world: SimpleCommunicator,
    patience: Duration,
    /// The number of the next conversation: what is left of another one is never taken for it.
    tag: i32,
}

impl std::fmt::Debug for ByMpi {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ByMpi").field("rank", &self.world.rank()).field("world", &self.world.size()).finish()
    }
}

/// The world of MPI, where this process is not alone in it. A process that no launcher started does not touch MPI.
pub(crate) fn open(patience: Duration, told: Option<&Launch>) -> Result<Option<Box<dyn Collective>>> {
    let Some(told) = told.filter(|told| told.world > 1) else { return Ok(None) };
    let failed = || Refusal::Others("MPI does not begin: it has begun before in this process".to_owned());
    let (universe, _) = mpi::initialize_with_threading(mpi::Threading::Funneled).ok_or_else(failed)?;
    let world = universe.world();
    if !told.is(world.size() as usize) {
        return Ok(None);
    }
    Ok(Some(Box::new(ByMpi { _universe: universe, world, patience, tag: 0 })))
}

impl ByMpi {
    /// `to[r]` goes to rank r, and what everybody sent here comes back.
    fn swap<T: Equivalence + Clone>(&mut self, mut to: Vec<Vec<T>>) -> Vec<Vec<T>> {
        let (world, rank, tag) = (self.world(), self.rank(), self.tag);
        // Tags up to 32767 are there in every MPI.
        self.tag = (self.tag + 1) % 32_768;
        to.resize_with(world, Vec::new);
        let mut from: Vec<Option<Vec<T>>> = (0..world).map(|_| None).collect();
        if let (Some(mine), Some(own)) = (from.get_mut(rank), to.get(rank)) {
            *mine = Some(own.clone());
        }
        let clock = Instant::now();
        scope(|scope| {
            let others = to.iter().enumerate().filter(|(r, _)| *r != rank);
            let mut sends: Vec<(usize, _)> = others
                .map(|(r, numbers)| {
                    let to = self.world.process_at_rank(r as i32);
                    (r, to.immediate_send_with_tag(scope, numbers.as_slice(), tag))
                })
                .collect();
            let mut idle = 0_u32;
            loop {
                let mut moved = false;
                for (r, from) in from.iter_mut().enumerate().filter(|(_, from)| from.is_none()) {
                    if let Some(found) =
                        self.world.process_at_rank(r as i32).immediate_matched_probe_with_tag(tag)
                    {
                        *from = Some(found.matched_receive_vec().0);
                        moved = true;
                    }
                }
                let mut left = Vec::with_capacity(sends.len());
                for (r, send) in sends {
                    match send.test() {
                        Ok(_) => moved = true,
                        Err(send) => left.push((r, send)),
                    }
                }
                sends = left;
                let missing = from.iter().position(Option::is_none).or_else(|| sends.first().map(|s| s.0));
                let Some(missing) = missing else { break };
                if clock.elapsed() > self.patience {
                    // What was sent cannot be taken back, and nobody could go on: all end here.
                    let fault = late(missing, self.patience);
                    let _ = writeln!(std::io::stderr(), "error: {fault}");
                    self.world.abort(1);
                }
                idle = if moved { 0 } else { idle + 1 };
                // Others may have this core.
                if idle > 200 {
                    std::thread::sleep(Duration::from_micros(50));
                } else if idle > 0 {
                    std::thread::yield_now();
                }
            }
        });
        from.into_iter().map(Option::unwrap_or_default).collect()
    }
}

impl Collective for ByMpi {
    fn rank(&self) -> usize {
        self.world.rank() as usize
    }

    fn world(&self) -> usize {
        self.world.size() as usize
    }

    fn gather(&mut self, own: &[u8]) -> Result<Vec<Vec<u8>>> {
        let to = vec![own.to_vec(); self.world()];
        Ok(self.swap(to))
    }

    fn exchange(&mut self, to: Vec<Vec<f32>>) -> Result<Vec<Vec<f32>>> {
        Ok(self.swap(to))
    }

    fn abort(&mut self) {
        self.world.abort(1);
    }
}
