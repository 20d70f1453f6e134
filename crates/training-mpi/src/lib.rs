//! Training by several processes over MPI ([`training::Collective`]).

mod launch;

#[cfg(feature = "mpi")]
mod by_mpi;
#[cfg(feature = "nccl")]
mod by_nccl;

use std::time::Duration;

use training::{Collective, Refusal, Result};

/// The other processes of a run, if it was started with any. `patience` is how long a rank may say nothing.
///
/// # Errors
/// A launcher's variables (`mpirun`, `srun`, `torchrun`) speak of several processes, and this one finds no others: it would
/// train alone, as often as it was started.
pub fn open(patience: Duration) -> Result<Option<Box<dyn Collective>>> {
    let told = launch::told(|name| std::env::var(name).ok());
    #[cfg(feature = "mpi")]
    if let Some(found) = by_mpi::open(patience, told.as_ref())? {
        return Ok(Some(found));
    }
    let _ = patience;
    match told {
        Some(launch) if launch.world > 1 => Err(Refusal::Others(launch.refusal(cfg!(feature = "mpi")))),
        _ => Ok(None),
    }
}

/// The same ranks, whose numbers go from card to card: each rank says the number of its own one, and calls this. It does not save the
/// way between a gradient and its rank's memory.
///
/// # Errors
/// A rank that has no driver, no NCCL or not this card: named, on every rank.
#[cfg(feature = "nccl")]
pub fn over_nccl(ranks: Box<dyn Collective>, card: usize, patience: Duration) -> Result<Box<dyn Collective>> {
    by_nccl::over(ranks, card, patience)
}

/// The number of this process among those of a run on its host, where a launcher says it: which of the host's devices is its own.
pub fn on_its_host() -> Option<usize> {
    let told = launch::told(|name| std::env::var(name).ok());
    told.filter(|told| told.world > 1)?.local
}

/// The README's program is run with the tests of the documentation.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
