//! MPI, in a thread of its own. Nothing there blocks: messages are asked for until they are there, or until the time of a rank is over.

use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use mpi::environment::Universe;
use mpi::point_to_point::MatchedReceiveVec as _;
use mpi::request::scope;
use mpi::topology::SimpleCommunicator;
use mpi::traits::{Communicator, Destination, Equivalence, Source};
use training::collective::late;
use training::{Collective, Refusal, Result};

use crate::launch::Launch;

/// The ranks of MPI's world, as one thread knows them: MPI is begun, used and ended there and nowhere else. It does one conversation
/// after the other, while whoever wants them goes on.
struct Talker {
    /// Ends MPI when it is dropped.
    _universe: Universe,
    world: SimpleCommunicator,
    patience: Duration,
    /// The number of the next conversation: what is left of another one is never taken for it.
    tag: i32,
    /// Whether all ranks shall end now.
    ended: Arc<AtomicBool>,
}

/// What the thread is asked for.
enum Request {
    Bytes(Vec<u8>),
    Numbers(Vec<Vec<f32>>),
}

/// The thread to the others.
struct ByMpi {
    rank: usize,
    world: usize,
    /// None once the thread shall end.
    requests: Option<Sender<Request>>,
    bytes: Receiver<Vec<Vec<u8>>>,
    numbers: Receiver<Vec<Vec<f32>>>,
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl std::fmt::Debug for ByMpi {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ByMpi").field("rank", &self.rank).field("world", &self.world).finish_non_exhaustive()
    }
}

/// The world of MPI, where this process is not alone in it. A process that no launcher started does not touch MPI.
pub(crate) fn open(patience: Duration, told: Option<&Launch>) -> Result<Option<Box<dyn Collective>>> {
    let Some(told) = told.filter(|told| told.world > 1) else { return Ok(None) };
    let (to_thread, requests) = channel();
    let (say_bytes, bytes) = channel();
    let (say_numbers, numbers) = channel();
    let (say_place, place) = channel();
    let ended = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&ended);
    let work = move || {
        let begun = mpi::initialize_with_threading(mpi::Threading::Funneled);
        let Some((universe, _)) = begun else { return };
        let world = universe.world();
        if say_place.send((world.rank() as usize, world.size() as usize)).is_err() {
            return;
        }
        let mut talker = Talker { _universe: universe, world, patience, tag: 0, ended: flag };
        for request in requests {
            let is_heard = match request {
                Request::Bytes(own) => {
                    let to = vec![own; talker.world.size() as usize];
                    say_bytes.send(talker.swap(to)).is_ok()
                }
                Request::Numbers(to) => say_numbers.send(talker.swap(to)).is_ok(),
            };
            if !is_heard {
                return;
            }
        }
    };
    let thread = std::thread::Builder::new().name("mpi".to_owned()).spawn(work);
    let thread = thread.map_err(|e| Refusal::Others(format!("MPI does not begin: no thread for it: {e}")))?;
    let failed = |_| Refusal::Others("MPI does not begin: it has begun before in this process".to_owned());
    let (rank, world) = place.recv().map_err(failed)?;
    let ranks = ByMpi { rank, world, requests: Some(to_thread), bytes, numbers, ended, thread: Some(thread) };
    Ok(told.is(world).then(|| Box::new(ranks) as Box<dyn Collective>))
}

impl ByMpi {
    fn ask(&self, request: Request) -> Result<()> {
        let asked = self.requests.as_ref().is_some_and(|requests| requests.send(request).is_ok());
        if asked { Ok(()) } else { Err(silent()) }
    }
}

fn silent() -> Refusal {
    Refusal::Others("MPI has ended in this process".to_owned())
}

impl Drop for ByMpi {
    fn drop(&mut self) {
        // The thread ends MPI, which waits for the others.
        self.requests = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Talker {
    /// `to[r]` goes to rank r, and what everybody sent here comes back.
    fn swap<T: Equivalence + Clone>(&mut self, mut to: Vec<Vec<T>>) -> Vec<Vec<T>> {
        let (world, rank, tag) = (self.world.size() as usize, self.world.rank() as usize, self.tag);
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
                if self.ended.load(Ordering::Relaxed) {
                    self.world.abort(1);
                }
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
        self.rank
    }

    fn world(&self) -> usize {
        self.world
    }

    fn gather(&mut self, own: &[u8]) -> Result<Vec<Vec<u8>>> {
        self.ask(Request::Bytes(own.to_vec()))?;
        self.bytes.recv().map_err(|_| silent())
    }

    fn post(&mut self, to: Vec<Vec<f32>>) -> Result<()> {
        self.ask(Request::Numbers(to))
    }

    fn collect(&mut self) -> Result<Vec<Vec<f32>>> {
        self.numbers.recv().map_err(|_| silent())
    }

    fn abort(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        // The thread looks at the flag while it waits for others, and nobody answers this.
        if self.ask(Request::Bytes(Vec::new())).is_ok() {
            let _ = self.bytes.recv();
        }
    }
}
