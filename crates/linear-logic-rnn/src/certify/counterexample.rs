//! Sequences on which a cell is wrong: all short ones are tried, and long random ones.

use std::sync::Arc;

use seeded::Family;

use crate::engine::{Engine, Inputs, Sequences, Targets};
use crate::step::Step;
use crate::task::machine::Machine;

/// All sequences of a length are tried where there are at most so many.
const MOST_SHORT: usize = 4096;
/// Random sequences, and their length.
const LONG: (usize, usize) = (256, 512);

/// A sequence after whose last symbol the cell tells another state than the task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counterexample {
    /// The sequence.
    pub word: Vec<u32>,
    /// What the cell tells.
    pub told: u32,
    /// What the task says.
    pub right: u32,
}

/// Looks for the shortest sequence on which the engine, in 64 bits, is wrong.
pub fn find(step: &Arc<Step>, theta: &[f32], machine: &Machine) -> Option<Counterexample> {
    let theta: Vec<f64> = theta.iter().map(|w| f64::from(*w)).collect();
    let engine = Engine::new(Arc::clone(step), &theta);
    let letters = machine.next.first().map_or(0, Vec::len).max(1);
    let mut length = 1;
    while letters.saturating_pow(length + 1) <= MOST_SHORT && length < 12 {
        length += 1;
    }
    let digit = |number: usize, time: u32| (number / letters.saturating_pow(time) % letters) as u32;
    let count = letters.saturating_pow(length);
    let short: Vec<u32> =
        (0..length).flat_map(|time| (0..count).map(move |number| digit(number, time))).collect();
    let mut stream = Family::new("linear-logic-rnn-v1", "counterexample", 0).stream(0);
    let long: Vec<u32> = (0..LONG.0 * LONG.1).map(|_| stream.below(letters as u64) as u32).collect();
    judged(&engine, machine, &short, length as usize, count)
        .or_else(|| judged(&engine, machine, &long, LONG.1, LONG.0))
}

/// The shortest wrong prefix of sequences: [time, sequence].
fn judged(
    engine: &Engine<f64>,
    machine: &Machine,
    tokens: &[u32],
    length: usize,
    count: usize,
) -> Option<Counterexample> {
    let mut right = Vec::with_capacity(tokens.len());
    let mut states = vec![machine.start; count];
    for (at, token) in tokens.iter().enumerate() {
        let state = &mut states[at % count];
        *state = machine.next.get(*state as usize).and_then(|row| row.get(*token as usize)).copied()?;
        right.push(*state);
    }
    let mask = vec![true; tokens.len()];
    let sequences = Sequences { inputs: Inputs::Tokens(tokens), length, count };
    let told = engine.predict(sequences, Targets { classes: &right, mask: &mask }).classes;
    let at = told.iter().zip(&right).position(|(told, right)| told != right)?;
    let word = tokens.iter().skip(at % count).step_by(count).take(at / count + 1).copied().collect();
    Some(Counterexample { word, told: told[at], right: right[at] })
}
