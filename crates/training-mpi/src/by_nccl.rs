//! NCCL: numbers go from card to card, and words as before. What NCCL is asked for is waited for by asking whether it is there, until
//! the time of a rank is over.
//!
//! NCCL's own sums are not used: which tree they take depends on the number of cards.

use std::collections::VecDeque;
use std::io::Write as _;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use cudarc::driver::{CudaContext, CudaSlice, CudaStream};
use cudarc::nccl::{Comm, Id, group_end, group_start};
use training::collective::nothing_posted;
use training::{Collective, Refusal, Result};

/// Ranks that have a card each.
struct ByNccl {
    /// Who the ranks are, and their words.
    ranks: Box<dyn Collective>,
    comm: Comm,
    stream: Arc<CudaStream>,
    /// What nobody has collected yet.
    received: VecDeque<Vec<Vec<f32>>>,
    patience: Duration,
}

impl std::fmt::Debug for ByNccl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ByNccl").field("ranks", &self.ranks).field("card", &self.comm.ordinal()).finish()
    }
}

fn failed(what: &str, fault: &dyn std::fmt::Debug) -> Refusal {
    Refusal::Others(format!("NCCL: {what}: {fault:?}"))
}

/// What is missing before anything of NCCL may be called.
fn missing() -> Option<&'static str> {
    #[expect(unsafe_code, reason = "the question whether a library can be loaded has no safe form")]
    // SAFETY: they load libraries by their usual names, whose initialisers are NVIDIA's, and call nothing of them.
    let (driver, nccl) =
        unsafe { (cudarc::driver::sys::is_culib_present(), cudarc::nccl::sys::is_culib_present()) };
    match (driver, nccl) {
        (false, _) => Some("no NVIDIA driver is installed (libcuda)"),
        (_, false) => Some("NCCL is not installed (libnccl)"),
        _ => None,
    }
}

/// The card of this rank, and what all ranks call their communicator: rank 0 makes the name.
fn ready(ranks: &dyn Collective, card: usize) -> std::result::Result<(Arc<CudaStream>, Vec<u8>), String> {
    if let Some(missing) = missing() {
        return Err(missing.to_owned());
    }
    let context = CudaContext::new(card).map_err(|fault| format!("card {card}: {fault}"))?;
    let stream = context.new_stream().map_err(|fault| format!("card {card}: {fault}"))?;
    let name = match ranks.rank() {
        0 => {
            let id = Id::new().map_err(|fault| format!("no name for the ranks: {fault:?}"))?;
            id.internal().iter().map(|&c| c.to_ne_bytes()).collect::<Vec<_>>().concat()
        }
        _ => Vec::new(),
    };
    Ok((stream, name))
}

/// The same ranks, whose numbers go by NCCL. Every rank calls it, with the number of its card.
///
/// # Errors
/// A rank without a driver, without NCCL, without its card: named, on every rank.
pub(crate) fn over(
    mut ranks: Box<dyn Collective>,
    card: usize,
    patience: Duration,
) -> Result<Box<dyn Collective>> {
    let ready = ready(&*ranks, card);
    // A first byte that says whether this rank can.
    let says = match &ready {
        Ok((_, name)) => [&[1], name.as_slice()].concat(),
        Err(fault) => [&[0], fault.as_bytes()].concat(),
    };
    let said = ranks.gather(&says)?;
    for (rank, said) in said.iter().enumerate() {
        if let Some((0, fault)) = said.split_first() {
            let fault = String::from_utf8_lossy(fault);
            return Err(Refusal::Others(format!("rank {rank} has no NCCL: {fault}")));
        }
    }
    let (stream, _) = ready.map_err(Refusal::Others)?;
    let mut name = [0; 128];
    let said = said.first().and_then(|said| said.get(1..)).unwrap_or_default();
    if said.len() != name.len() {
        return Err(Refusal::Others("rank 0 gave NCCL no name".to_owned()));
    }
    for (to, from) in name.iter_mut().zip(said) {
        *to = std::ffi::c_char::from_ne_bytes([*from]);
    }
    let (rank, world) = (ranks.rank(), ranks.world());
    let begun = within(patience, "NCCL did not bring the ranks together", || {
        Comm::from_rank(stream.clone(), rank, world, Id::uninit(name))
    });
    let comm = begun.map_err(|fault| failed("the ranks did not come together", &fault.0))?;
    Ok(Box::new(ByNccl { ranks, comm, stream, received: VecDeque::new(), patience }))
}

/// What blocks, and cannot be asked whether it is done: past its time the process ends, and its launcher ends the others.
fn within<T>(patience: Duration, what: &str, work: impl FnOnce() -> T) -> T {
    let (done, wait) = channel::<()>();
    let message = format!("error: {what} in {} seconds\n", patience.as_secs_f64());
    std::thread::scope(|scope| {
        scope.spawn(move || {
            if matches!(wait.recv_timeout(patience), Err(RecvTimeoutError::Timeout)) {
                let _ = std::io::stderr().write_all(message.as_bytes());
                std::process::exit(1);
            }
        });
        let result = work();
        drop(done);
        result
    })
}

impl ByNccl {
    /// Until what the stream was given is done.
    fn wait(&self) -> Result<()> {
        let done = self.stream.record_event(None).map_err(|fault| failed("the card", &fault))?;
        let clock = Instant::now();
        while !done.is_complete() {
            if clock.elapsed() > self.patience {
                let seconds = self.patience.as_secs_f64();
                let _ =
                    writeln!(std::io::stderr(), "error: numbers did not come by NCCL in {seconds} seconds");
                // What a stream waits for cannot be taken back: all end here.
                std::process::exit(1);
            }
            std::thread::sleep(Duration::from_micros(20));
        }
        Ok(())
    }

    fn swap(&self, to: &[Vec<f32>], lengths: &[usize]) -> Result<Vec<Vec<f32>>> {
        let rank = self.ranks.rank();
        let of_card = |fault| failed("the card", &fault);
        let up = |numbers: &Vec<f32>| match numbers.len() {
            0 => Ok(None),
            _ => self.stream.clone_htod(numbers).map(Some),
        };
        let sent: Vec<Option<CudaSlice<f32>>> =
            to.iter().map(up).collect::<std::result::Result<_, _>>().map_err(of_card)?;
        let room = |&len: &usize| match len {
            0 => Ok(None),
            _ => self.stream.alloc_zeros::<f32>(len).map(Some),
        };
        let mut received: Vec<Option<CudaSlice<f32>>> =
            lengths.iter().map(room).collect::<std::result::Result<_, _>>().map_err(of_card)?;
        let by_nccl = |fault: cudarc::nccl::result::NcclError| failed("numbers did not go", &fault.0);
        group_start().map_err(by_nccl)?;
        for (other, (sent, received)) in sent.iter().zip(&mut received).enumerate() {
            if other == rank {
                continue;
            }
            if let Some(sent) = sent {
                self.comm.send(sent, other as i32).map_err(by_nccl)?;
            }
            if let Some(received) = received {
                self.comm.recv(received, other as i32).map_err(by_nccl)?;
            }
        }
        group_end().map_err(by_nccl)?;
        self.wait()?;
        let down = |(other, received): (usize, &Option<CudaSlice<f32>>)| match received {
            _ if other == rank => Ok(to.get(rank).cloned().unwrap_or_default()),
            None => Ok(Vec::new()),
            Some(received) => self.stream.clone_dtoh(received).map_err(of_card),
        };
        let numbers: Result<_> = received.iter().enumerate().map(down).collect();
        self.wait()?;
        numbers
    }
}

impl Collective for ByNccl {
    fn rank(&self) -> usize {
        self.ranks.rank()
    }

    fn world(&self) -> usize {
        self.ranks.world()
    }

    fn gather(&mut self, own: &[u8]) -> Result<Vec<Vec<u8>>> {
        self.ranks.gather(own)
    }

    fn post(&mut self, mut to: Vec<Vec<f32>>) -> Result<()> {
        to.resize_with(self.world(), Vec::new);
        // A card receives as many numbers as it is told beforehand.
        let own: Vec<u8> = to.iter().flat_map(|numbers| (numbers.len() as u64).to_le_bytes()).collect();
        let said = self.ranks.gather(&own)?;
        let at = 8 * self.rank();
        let length = |said: &Vec<u8>| {
            let bytes = said.get(at..at + 8)?.try_into().ok()?;
            usize::try_from(u64::from_le_bytes(bytes)).ok()
        };
        let lengths: Option<Vec<usize>> = said.iter().map(length).collect();
        let lengths =
            lengths.ok_or_else(|| Refusal::Others("a rank did not say what it sends".to_owned()))?;
        let received = self.swap(&to, &lengths)?;
        self.received.push_back(received);
        Ok(())
    }

    fn collect(&mut self) -> Result<Vec<Vec<f32>>> {
        self.received.pop_front().ok_or_else(nothing_posted)
    }

    fn abort(&mut self) {
        self.ranks.abort();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use training::collective::threads;

    /// Where there is a card for each of two ranks their numbers arrive; elsewhere both say what is missing.
    #[test]
    fn numbers_go_from_card_to_card_or_every_rank_says_why_not() {
        let patience = Duration::from_secs(60);
        std::thread::scope(|scope| {
            let ranks = threads(2, patience).into_iter().map(|thread| {
                scope.spawn(move || {
                    let rank = thread.rank();
                    let mut others = over(Box::new(thread), rank, patience)?;
                    let to = (0..2).map(|r| vec![rank as f32 + 0.5; 3 * r]).collect();
                    let found = others.exchange(to)?;
                    let right: Vec<Vec<f32>> = (0..2).map(|r| vec![r as f32 + 0.5; 3 * rank]).collect();
                    assert_eq!(found, right);
                    Ok::<_, Refusal>(())
                })
            });
            let ranks: Vec<_> = ranks.collect();
            for rank in ranks {
                if let Err(fault) = rank.join().unwrap() {
                    let fault = fault.to_string();
                    assert!(fault.contains("has no NCCL: "), "{fault}");
                    training::progress::say(format_args!("not tested: {fault}"));
                }
            }
        });
    }
}
