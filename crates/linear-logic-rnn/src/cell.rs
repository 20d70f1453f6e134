//! A cell with its readout: built from a kind, sizes and options, counted, and laid out for training.

use std::sync::Arc;

use serde_json::{Value, json};
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

/// Bounds on the degrees of a step as a polynomial: how much it multiplies of what changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Degree {
    /// Of the next states in the states. `None` if it is no polynomial in them: a function lies between, such as a σ or a γ
    /// that is not the identity.
    pub state: Option<u64>,
    /// Of all that the next states are made of, in the states and in what functions give: σ(…) and γ(…) are variables. For
    /// a proof inside σ it is one, the state, and the coefficients that are multiplied with it.
    pub between: u64,
    /// Of the proofs in the entries of their operators, V(x), V(x′), data and matrices together; 0 without proofs. It is
    /// the degree of the polynomials of `linear_logic::polynomial`, unless terms cancel there.
    pub operators: u64,
}

impl Degree {
    /// `{"state", "between", "operators"}`
    pub fn json(&self) -> Value {
        json!({"state": self.state, "between": self.between, "operators": self.operators})
    }
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

    /// The multiplications, each with its addition, of one step of one sequence, cell and readout together:
    /// [`Step::multiply_adds`] says what is counted.
    pub fn multiply_adds(&self) -> usize {
        self.step.multiply_adds(Part::Cell) + self.step.multiply_adds(Part::Readout)
    }

    /// Bounds on the degrees of the cell, without its readout.
    pub fn degree(&self) -> Degree {
        Degree {
            state: self.step.degree_in_state(),
            between: self.step.degree_between_functions(),
            operators: self.programs.iter().map(|program| program.degree.operators).max().unwrap_or(0),
        }
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
    // Counts grow with `hidden`: double, then halve the gap. What is too large to be computed with has too many.
    let fits = |hidden: usize| match count(hidden) {
        Ok(count) => Ok(count <= budget),
        Err(refusal) if refusal.is_of_size => Ok(false),
        Err(refusal) => Err(refusal),
    };
    let (mut low, mut high) = (1, 2);
    while fits(high)? {
        (low, high) = (high, high * 2);
    }
    while high - low > 1 {
        let middle = low.midpoint(high);
        if fits(middle)? {
            low = middle;
        } else {
            high = middle;
        }
    }
    Ok(low)
}
