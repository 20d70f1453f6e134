//! The checker: what has to be believed of a certificate, beside what a step is ([`crate::step`]), what the task is
//! ([`crate::task::machine`]) and the arithmetic (`enclosure`). It shares nothing with the search.
//!
//! By induction over the length of a sequence: the state of the cell before the first symbol lies in state 0 of the
//! certificate; if it lies in a state, then after a symbol it lies in the next state by that symbol; and on every image the
//! logit of the task's state is greater than all others. States of the task are followed by the task's own table.

use super::certificate::{Certificate, State, refused};
use super::enclosure::{Form, known, of_box, one_hot, renewed, run};
use crate::error::Result;
use crate::step::{Norm, Start};

/// Checks that the greatest logit of the cell is that of the task's state, after every symbol of every sequence of any
/// length. Returns the number of images that were computed.
///
/// # Errors
/// `certificate`, with the state and the symbol where something does not hold; what refuses cells and tasks.
pub fn check(certificate: &Certificate, theta: &[f32]) -> Result<usize> {
    let (cell, machine, states) =
        (certificate.subject.cell()?, certificate.subject.machine()?, &certificate.states);
    let step = &*cell.step;
    ensure(certificate.is_about(theta), || "the model has other weights".to_owned())?;
    let trained: usize = step.trained().map(|(_, weight)| weight.len()).sum();
    ensure(theta.len() == trained, || format!("the cell has {trained} weights, not {}", theta.len()))?;
    ensure(step.weights.iter().all(|w| w.norm == Norm::None), || "a weight is normed".to_owned())?;
    let weights = step.entries(&theta.iter().map(|w| f64::from(*w)).collect::<Vec<f64>>());
    let start = |start: &Start, len: usize, letter: u32| match start {
        Start::Zero => known(&vec![0.0; len]),
        Start::Constant(all) => known(all),
        Start::Weight(weight) => known(&weights[weight.index()]),
        Start::First => one_hot(len, letter),
    };
    let first: Vec<Form> = step.states.iter().flat_map(|state| start(&state.start, state.len, 0)).collect();
    let begins = |s: &State| s.class == machine.start && s.last.is_none() && holds(s, &first);
    ensure(states.first().is_some_and(begins), || "state 0 is not what stands before a sequence".to_owned())?;

    let (mut images, mut is_entered) = (0, vec![false; states.len()]);
    for (at, state) in states.iter().enumerate() {
        let Some(bounds) = &state.bounds else { continue };
        ensure(bounds.len() == first.len() && bounds.iter().all(|[low, high]| low <= high), || {
            format!("state {at} has no bounds of {} numbers", first.len())
        })?;
        let mut open = vec![(at, of_box(bounds))];
        while let Some((from, forms)) = open.pop() {
            let state = &states[from];
            ensure(state.next.len() == step.input, || {
                format!("state {from} has not {} next states", step.input)
            })?;
            for (letter, next) in (0..).zip(&state.next) {
                let here = || format!("state {from}, symbol {letter}");
                let to = states.get(*next).ok_or_else(|| refused(format!("{}: no state {next}", here())))?;
                let class = machine.next.get(state.class as usize).and_then(|row| row.get(letter as usize));
                ensure(class == Some(&to.class), || format!("{}: the task says {class:?}", here()))?;
                let is_told = !step.reads_previous() || to.last == Some(letter);
                ensure(is_told, || format!("{}: the last symbol of state {next} is another", here()))?;
                let previous = match state.last {
                    Some(last) => one_hot(step.input, last),
                    None => start(&step.previous, step.input, letter),
                };
                let values = run(step, &weights, &forms, &previous, letter)?;
                let logits = step.logits.map(|id| &*values[id.index()]).unwrap_or_default();
                ensure(is_certain(logits, to.class as usize), || format!("{}: no certain readout", here()))?;
                let image: Vec<Form> =
                    step.states.iter().flat_map(|s| values[s.next.index()].clone()).collect();
                images += 1;
                if to.bounds.is_some() {
                    ensure(holds(to, &image), || format!("{}: the image leaves state {next}", here()))?;
                } else {
                    // One way in: so every set is followed once, and the way ends.
                    ensure(!is_entered[*next], || {
                        format!("{}: state {next} has two ways in and no bounds", here())
                    })?;
                    is_entered[*next] = true;
                    open.push((*next, renewed(image)));
                }
            }
        }
    }
    Ok(images)
}

fn ensure(holds: bool, what: impl FnOnce() -> String) -> Result<()> {
    if holds { Ok(()) } else { Err(refused(what())) }
}

/// Whether the box of a state holds what is enclosed.
fn holds(state: &State, forms: &[Form]) -> bool {
    let inside =
        |([low, high], form): (&[f64; 2], &Form)| *low <= form.bounds().0 && form.bounds().1 <= *high;
    let bounds = state.bounds.as_deref().unwrap_or_default();
    bounds.len() == forms.len() && bounds.iter().zip(forms).all(inside)
}

/// Whether the greatest logit is certainly that of the class. In differences, what is common to both is gone.
fn is_certain(logits: &[Form], class: usize) -> bool {
    let Some(right) = logits.get(class) else { return false };
    logits.iter().enumerate().filter(|(at, _)| *at != class).all(|(_, other)| {
        let mut apart = right.clone();
        apart.add(-1.0, other);
        apart.tight().bounds().0 > 0.0
    })
}
