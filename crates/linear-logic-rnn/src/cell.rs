//! A cell with its readout: built from a kind, sizes and options, counted, and laid out for training.

use std::sync::Arc;

use serde_json::{Value, json};
use training::{Decay, Layout};

use crate::cells::{self, Notes};
use crate::error::Result;
use crate::options::{CellKind, Options, Sizes, not_too_large};
use crate::program::ProgramText;
use crate::step::{Builder, Factor, Part, Step, View};

/// Something that is legal and probably not meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// The kind as it is reported.
    pub kind: &'static str,
    /// In words.
    pub message: String,
}

impl Warning {
    /// One entry of `warnings`.
    pub fn json(&self) -> Value {
        json!({"kind": self.kind, "message": self.message})
    }
}

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
    /// Builds a cell; with `output` in the sizes, its readout too.
    ///
    /// # Errors
    /// `config`, `shape` (of a constant), `proof`, `degenerate-pi`
    pub fn new(kind: CellKind, sizes: &Sizes, options: &Options) -> Result<Self> {
        options.check(kind)?;
        let mut b = Builder::new(sizes.need("input")?);
        let mut notes = Notes::default();
        let glue = cells::write(&mut b, kind, sizes, options, &mut notes)?;
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
    let count = |hidden: usize| Cell::new(kind, &sizes_of(hidden), options).map(|cell| cell.count());
    let smallest = count(1)?;
    if smallest > budget {
        return Err(crate::error::Refusal::config(format!(
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
