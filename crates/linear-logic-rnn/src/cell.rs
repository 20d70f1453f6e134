//! A cell with its readout: built from a kind, sizes and options, counted, and laid out for training.

use std::sync::Arc;

use training::{Decay, Layout};

use crate::cells::{self, Notes};
pub use crate::error::Warning;
use crate::error::{Refusal, Result};
use crate::options::{CellKind, Configuration, Options, Sizes, not_too_large};
use crate::program::ProgramText;
use crate::step::{Builder, Factor, Part, Step, View};

/// A cell and its readout.
#[derive(Debug, Clone, PartialEq)]
pub struct Cell {
    /// Which.
    pub kind: CellKind,
    /// What it computes.
    pub step: Arc<Step>,
    /// What is probably not meant.
    pub warnings: Vec<Warning>,
    /// Its proofs.
    pub programs: Vec<ProgramText>,
}

impl Cell {
    /// Builds a cell from options as they are written.
    ///
    /// # Errors
    /// As for [`Cell::of`], and `config` for an option that does not belong to the cell.
    pub fn new(kind: CellKind, sizes: &Sizes, options: &Options) -> Result<Self> {
        Self::of(&options.of(kind)?, sizes)
    }

    /// Builds a cell; with `output` in the sizes, its readout too.
    ///
    /// # Errors
    /// `config`, `shape` (of a constant), `proof`, `degenerate-pi`
    pub fn of(configuration: &Configuration, sizes: &Sizes) -> Result<Self> {
        let kind = configuration.kind();
        let mut b = Builder::new(sizes.need("input")?);
        let mut notes = Notes::default();
        let glue = cells::write(&mut b, sizes, configuration, &mut notes)?;
        b.report("h", glue.next);
        if sizes.output.is_some() {
            let output = sizes.need("output")?;
            let hidden = sizes.need("hidden")?;
            let width = sizes.readout.unwrap_or(if kind.is_turing() { 0 } else { hidden });
            let width = not_too_large("readout", width)?;
            b.begin_readout();
            let (from, len) = if width == 0 {
                (glue.next, hidden)
            } else {
                let factor = Factor { weight: b.matrix("L", &[width, hidden]), view: View::Plain };
                let bias = b.bias("M", width, 0.0);
                let y = b.affine(&[(factor, glue.next)], Some(bias), &[]);
                let y = b.act(glue.act, y);
                b.report("y", y);
                (y, width)
            };
            let factor = Factor { weight: b.matrix("E", &[output, len]), view: View::Plain };
            let bias = b.bias("F", output, 0.0);
            let logits = b.affine(&[(factor, from)], Some(bias), &[]);
            b.report("logits", logits);
            b.logits(logits);
        }
        Ok(Self { kind, step: Arc::new(b.finish()?), warnings: notes.warnings, programs: notes.programs })
    }

    /// Trained weights of cell and readout together.
    pub fn count(&self) -> usize {
        self.step.count(Part::Cell) + self.step.count(Part::Readout)
    }

    /// The trained weights as one buffer, in the order of the step. All of them decay.
    pub fn layout(&self) -> Layout {
        let mut layout = Layout::default();
        for (_, weight) in self.step.trained() {
            layout.add(&weight.name, &weight.shape, Decay::Yes, weight.initial);
        }
        layout
    }
}

/// The largest `hidden` with which cell and readout have at most `budget` trained weights.
///
/// # Errors
/// As for [`Cell::new`], and `config` if even `hidden` = 1 has more.
pub fn largest_hidden(
    kind: CellKind,
    budget: usize,
    sizes_of: impl Fn(usize) -> Sizes,
    options: &Options,
) -> Result<usize> {
    let configuration = options.of(kind)?;
    let count = |hidden: usize| Cell::of(&configuration, &sizes_of(hidden)).map(|cell| cell.count());
    let smallest = count(1)?;
    if smallest > budget {
        return Err(Refusal::config(format!(
            "`budget` = {budget} is less than the {smallest} weights of `hidden` = 1"
        )));
    }
    // Counts grow with `hidden`: double, then halve the gap.
    let (mut low, mut high) = (1, 2);
    while count(high)? <= budget {
        (low, high) = (high, high * 2);
    }
    while high - low > 1 {
        let middle = low.midpoint(high);
        if count(middle)? <= budget {
            low = middle;
        } else {
            high = middle;
        }
    }
    Ok(low)
}
