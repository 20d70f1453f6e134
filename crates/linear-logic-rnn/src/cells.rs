//! The cells, each as it is written in the paper: a function from sizes and options to the operations of a step.

mod gated;
mod glue;
mod linear_logic;
mod master;
mod recurrent;
mod turing;

use crate::error::Result;
use crate::options::{Configuration, Sizes};
use crate::step::Builder;
pub(crate) use glue::{Glue, Notes};
pub(crate) use linear_logic::Choices;
use turing::Patterns;

/// Writes a cell.
pub(crate) fn write(
    b: &mut Builder,
    sizes: &Sizes,
    configuration: &Configuration,
    notes: &mut Notes,
) -> Result<Glue> {
    match configuration {
        Configuration::Elman(options) => recurrent::elman(b, sizes, options),
        Configuration::SecondOrder(options) => recurrent::second_order(b, sizes, options),
        Configuration::Mrnn(options) => recurrent::mrnn(b, sizes, options),
        Configuration::Mi(options) => recurrent::mi(b, sizes, options),
        Configuration::Lstm(_) => gated::lstm(b, sizes),
        Configuration::Gru(_) => gated::gru(b, sizes),
        Configuration::LinearLogic(options) => linear_logic::linear_logic(b, sizes, options, notes),
        Configuration::Master(options) => master::master(b, sizes, options, notes),
        Configuration::Ntm(options) => {
            turing::machine(b, sizes, options.powers.as_deref(), &Patterns::default())
        }
        Configuration::PatternNtm(options) => {
            let (powers, start) = (options.pattern_powers.as_deref(), options.pattern_start);
            turing::machine(b, sizes, options.powers.as_deref(), &Patterns { rings: 1, powers, start })
        }
        Configuration::MultiPatternNtm(options) => {
            let (powers, start) = (options.pattern_powers.as_deref(), options.pattern_start);
            turing::machine(b, sizes, options.powers.as_deref(), &Patterns { rings: 3, powers, start })
        }
    }
}
