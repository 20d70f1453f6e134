//! Sequences on which a cell is wrong.
//!
//! All short sequences are tried, and long random ones. Then states that sequences lead to are followed in the order of
//! how nearly the readout is wrong there, none twice: that finds sequences that chance does not.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};
use std::sync::Arc;

use seeded::Family;

use super::tube::{Bundle, Tube};
use crate::engine::{Engine, Inputs, Sequences, Targets};
use crate::error::Result;
use crate::step::Step;
use crate::task::machine::Machine;

/// All sequences of a length are tried where there are at most so many.
const MOST_SHORT: usize = 4096;
/// Random sequences, and their length.
const LONG: (usize, usize) = (256, 512);

/// How long states are followed in the order of their margin.
#[derive(Debug, Clone, Copy)]
pub struct Effort {
    states: usize,
    multiplications: u64,
    /// Two states of a cell are one where all numbers agree to this share of the greatest.
    grain: f64,
}

impl Effort {
    /// What is spent before anything else: some tenths of a second.
    pub const SHORT: Self = Self { states: 60_000, multiplications: 400_000_000, grain: 0.02 };
    /// What is spent where no certificate is found: some seconds.
    pub const LONG: Self = Self { states: 600_000, multiplications: 5_000_000_000, grain: 0.005 };

    /// So many times as much, with as fine a grain; at most ten times the states, which are kept in memory.
    #[must_use]
    pub fn times(self, times: u32) -> Self {
        Self {
            states: self.states.saturating_mul(times.min(10) as usize),
            multiplications: self.multiplications.saturating_mul(u64::from(times)),
            ..self
        }
    }
}

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

/// Looks for a sequence on which the engine, in 64 bits, is wrong.
///
/// # Errors
/// `certificate` for a step that cannot be certified.
pub fn find(
    step: &Arc<Step>,
    theta: &[f32],
    machine: &Machine,
    effort: Effort,
) -> Result<Option<Counterexample>> {
    let wide: Vec<f64> = theta.iter().map(|w| f64::from(*w)).collect();
    let engine = Engine::new(Arc::clone(step), &wide);
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
    for (tokens, length, count) in [(&short, length as usize, count), (&long, LONG.1, LONG.0)] {
        let found = judged(&engine, machine, tokens, length, count);
        if found.is_some() {
            return Ok(found);
        }
    }
    let Some(word) = followed(&Tube::new(step, theta)?, machine, effort) else { return Ok(None) };
    Ok(judged(&engine, machine, &word, word.len(), 1))
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

/// A place that a sequence leads to.
struct Place {
    state: Vec<f64>,
    class: u32,
    /// The place before, and the symbol from there.
    from: Option<(usize, u32)>,
}

/// A word after which the readout seems to be wrong.
fn followed(tube: &Tube, machine: &Machine, effort: Effort) -> Option<Vec<u32>> {
    let mut places = vec![Place { state: tube.start(), class: machine.start, from: None }];
    let mut open = BinaryHeap::from([Reverse((Margin(0.0), 0))]);
    let mut seen = BTreeSet::new();
    let (mut scale, before) = (1.0_f64, tube.work());
    while let Some(Reverse((_, at))) = open.pop() {
        if places.len() > effort.states || tube.work() - before > effort.multiplications {
            return None;
        }
        let Place { state, class, from } = &places[at];
        let (set, class, last) =
            (Bundle::point(state.clone()), *class as usize, from.map(|(_, letter)| letter));
        for (letter, right) in (0..).zip(machine.next.get(class)?) {
            let after = tube.step(&set, last.filter(|_| tube.reads_previous), letter);
            let logits = &after.logits.mids;
            let others = (0..logits.len()).filter(|other| *other != *right as usize);
            let margin =
                others.map(|other| logits[*right as usize] - logits[other]).fold(f64::INFINITY, f64::min);
            let state = after.state.mids;
            scale = state.iter().map(|x| x.abs()).fold(scale, f64::max);
            let grains: Vec<i64> =
                state.iter().map(|x| (x / (effort.grain * scale)).round() as i64).collect();
            if seen.insert((*right, letter, grains)) {
                places.push(Place { state, class: *right, from: Some((at, letter)) });
                open.push(Reverse((Margin(margin), places.len() - 1)));
                if margin <= 0.0 {
                    return Some(word(&places, places.len() - 1));
                }
            }
        }
    }
    None
}

/// The word that leads to a place.
fn word(places: &[Place], mut at: usize) -> Vec<u32> {
    let mut word = Vec::new();
    while let Some((before, letter)) = places[at].from {
        word.push(letter);
        at = before;
    }
    word.reverse();
    word
}

/// How far the right logit is above the others, ordered.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Margin(f64);

impl Eq for Margin {}

impl PartialOrd for Margin {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Margin {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}
