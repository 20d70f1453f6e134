//! Training by several processes over MPI ([`training::Collective`]).

mod launch;

#[cfg(feature = "mpi")]
mod by_mpi;

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

/// The README's program is run with the tests of the documentation.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
