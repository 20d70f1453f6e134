//! The cells, each as it is written in the paper: a function from sizes and options to the operations of a step.

mod gated;
mod linear_logic;
mod master;
mod recurrent;
mod turing;

use training::Initial;

use crate::cell::Warning;
use crate::error::Result;
use crate::options::{CellKind, Options, Sizes, VInit};
use crate::program::ProgramText;
use crate::step::{Act, Builder, ValueId};

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

/// Writes a cell.
pub(crate) fn write(
    b: &mut Builder,
    kind: CellKind,
    sizes: &Sizes,
    options: &Options,
    notes: &mut Notes,
) -> Result<Glue> {
    match kind {
        CellKind::Elman => recurrent::elman(b, sizes, options),
        CellKind::SecondOrder => recurrent::second_order(b, sizes, options),
        CellKind::Mrnn => recurrent::mrnn(b, sizes, options),
        CellKind::Mi => recurrent::mi(b, sizes, options),
        CellKind::Lstm => gated::lstm(b, sizes),
        CellKind::Gru => gated::gru(b, sizes),
        CellKind::LinearLogic => linear_logic::linear_logic(b, sizes, options, notes),
        CellKind::Master => master::master(b, sizes, options, notes),
        CellKind::Ntm | CellKind::PatternNtm | CellKind::MultiPatternNtm => {
            turing::machine(b, kind, sizes, options)
        }
    }
}

/// How V starts: section 2.3. Its shape is (i, K) or (i, rows, columns).
fn initial_v(init: Option<VInit>, shape: &[usize]) -> Initial {
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
