//! The least automaton that tells the same as a certificate: for people to look at. What is proved is the certificate.

use std::collections::BTreeMap;

use super::certificate::State;

/// An automaton without two states that tell the same after every sequence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Minimal {
    /// The state of it that each state of the certificate belongs to.
    pub of: Vec<usize>,
    /// What each state tells.
    pub classes: Vec<u32>,
    /// The next state, for each state and symbol.
    pub next: Vec<Vec<usize>>,
}

impl Minimal {
    /// Merges states by refinement (Moore 1956), beginning with what they tell. Numbers are in the order of the first of
    /// the states of the certificate.
    pub fn new(states: &[State]) -> Self {
        let mut of = numbered(states.iter().map(|state| vec![state.class as usize]));
        loop {
            let block = |at: &usize| of.get(*at).copied().unwrap_or_default();
            let split = states
                .iter()
                .zip(&of)
                .map(|(state, own)| std::iter::once(*own).chain(state.next.iter().map(block)).collect());
            let finer = numbered(split);
            if finer == of {
                break;
            }
            of = finer;
        }
        let (mut classes, mut next) = (Vec::new(), Vec::new());
        for (state, block) in states.iter().zip(&of) {
            if *block == classes.len() {
                classes.push(state.class);
                next.push(state.next.iter().map(|to| of.get(*to).copied().unwrap_or_default()).collect());
            }
        }
        Self { of, classes, next }
    }
}

/// The number of each key, in the order in which they come first.
fn numbered(keys: impl Iterator<Item = Vec<usize>>) -> Vec<usize> {
    let mut known = BTreeMap::new();
    keys.map(|key| {
        let fresh = known.len();
        *known.entry(key).or_insert(fresh)
    })
    .collect()
}
