//! What the tests of cells share: cells from their documents, random weights and sequences.

use linear_logic_rnn::cell::Cell;
use linear_logic_rnn::engine::{Engine, Inputs, Real, Sequences, Starts};
use linear_logic_rnn::error::Refusal;
use linear_logic_rnn::options::{Options, Sizes};
use seeded::{Family, Stream};
use serde_json::Value;

/// A cell from the texts of a document.
pub(crate) fn try_cell(kind: &str, sizes: &Value, options: &Value) -> Result<Cell, Refusal> {
    let sizes: Sizes = serde_json::from_value(sizes.clone()).unwrap();
    Cell::new(kind.parse()?, &sizes, &Options::read(options)?)
}

/// The same where it must succeed.
pub(crate) fn cell(kind: &str, sizes: &Value, options: &Value) -> Cell {
    try_cell(kind, sizes, options).unwrap_or_else(|refusal| panic!("{kind} {sizes} {options}: {refusal}"))
}

/// The draws of a number, counted from the seed of the run.
pub(crate) fn draws(purpose: &str, item: u64) -> Stream {
    kept(purpose, seeded::test_seed().wrapping_add(item))
}

/// The draws of a number, in every run the same: for bounds of rounding that were set for them, and for what is true of
/// nearly all draws only.
pub(crate) fn kept(purpose: &str, item: u64) -> Stream {
    Family::new("linear-logic-rnn-tests", purpose, 1).stream(item)
}

/// Uniform in ±spread.
pub(crate) fn spread(s: &mut Stream, spread: f64) -> f64 {
    (2.0 * s.uniform() - 1.0) * spread
}

/// Small weights. Those that sharpen are positive: elsewhere their slope is 0.
pub(crate) fn small_weights(s: &mut Stream, cell: &Cell) -> Vec<f64> {
    let mut theta = Vec::new();
    for (_, weight) in cell.step.trained() {
        let is_exponent = weight.name.ends_with(".g.b");
        let draw = |_| if is_exponent { 0.4 + 0.3 * s.uniform() } else { spread(s, 0.6) };
        theta.extend((0..weight.len()).map(draw));
    }
    theta
}

/// Real inputs: [time, sequence, feature].
pub(crate) fn dense(s: &mut Stream, length: usize, count: usize, width: usize) -> Vec<f64> {
    (0..length * count * width).map(|_| spread(s, 1.0)).collect()
}

/// A value of one sequence at every step, by the name of its report.
pub(crate) fn observed<T: Real>(
    cell: &Cell,
    theta: &[T],
    starts: &Starts,
    inputs: &[f64],
    length: usize,
    report: &str,
) -> Vec<Vec<f64>> {
    let value = cell.step.reports.iter().find(|(name, _)| name == report).unwrap().1;
    let engine = Engine::new(cell.step.clone(), theta).with_starts(starts.clone());
    let mut found = Vec::new();
    let sequences = Sequences { inputs: Inputs::Dense(inputs), length, count: 1 };
    engine.observe(sequences, |_, seen| found.push(seen.value(value)));
    found
}
