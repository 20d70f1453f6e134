//! What all cells are written with and leave behind.

use training::Initial;

use crate::error::Warning;
use crate::options::VInit;
use crate::program::ProgramText;
use crate::step::{Act, ValueId};

/// What the readout needs of a cell.
pub(crate) struct Glue {
    /// h′
    pub(crate) next: ValueId,
    /// σ of the readout.
    pub(crate) act: Act,
}

/// What is known of a cell beside its step.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    pub(crate) warnings: Vec<Warning>,
    pub(crate) programs: Vec<ProgramText>,
}

/// How V starts: section 2.3. Its shape is (i, K) or (i, rows, columns).
pub(super) fn initial_v(init: Option<VInit>, shape: &[usize]) -> Initial {
    let (fan_out, fan_in) = match shape {
        [.., rows, columns] => (*rows, *columns),
        _ => (1, 1),
    };
    match (init.unwrap_or(VInit::Glorot), shape.len()) {
        (VInit::Glorot, _) => Initial::XavierUniform { fan_in, fan_out },
        (VInit::Identity, 2) => Initial::Around { centre: 1.0, spread: 0.1 },
        (VInit::Identity, _) => Initial::NearIdentity { size: fan_in, spread: 0.1 },
    }
}
