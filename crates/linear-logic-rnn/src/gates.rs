//! What the gates of a trained cell say: whether they name the program that a planted task was made with
//! ([`Task::planted`]).

use crate::cell::Cell;
use crate::engine::{Engine, Inputs, Sequences};
use crate::task::{Example, Planted, Task};

/// The share of steps at which the larger of two gates is that of the program that the state asks for, over the
/// sequences, from their second steps on (before the first the state is zero for every cell). Two programs that are one, a
/// placebo, are taken in their order, which names nothing. `None` if nothing was planted, or the cell has not one gate for each
/// of the two programs.
///
/// `theta` holds the trained weights in the order of the step.
pub fn share_right(cell: &Cell, theta: &[f32], task: &Task, sequences: &[Example]) -> Option<f64> {
    let Planted { programs, at: planted } = task.planted()?;
    let start = task.automaton()?.start();
    let (gates, list) = if task.automaton()?.looks_back() { ("q", "pi[") } else { ("p", "lambda[") };
    let of_list = cell.programs.iter().filter(|program| program.place.starts_with(list));
    let own: Vec<&[usize]> = of_list.map(|program| program.applied.as_deref()).collect::<Option<_>>()?;
    let is_reversed = match own.as_slice() {
        [first, second] if first == second => false,
        [first, second] if *first == programs[0] && *second == programs[1] => false,
        [first, second] if *first == programs[1] && *second == programs[0] => true,
        _ => return None,
    };
    let (_, gates) = cell.step.reports.iter().find(|(name, _)| name == gates)?;
    if cell.step.len_of(*gates) != 2 {
        return None;
    }
    let engine = Engine::new(cell.step.clone(), theta);
    let (mut right, mut all) = (0_u64, 0_u64);
    for example in sequences {
        let one = Sequences { inputs: Inputs::Tokens(&example.input), length: example.input.len(), count: 1 };
        engine.observe(one, |time, seen| {
            let before = time.checked_sub(1).map_or(Some(start), |t| example.target.get(t).copied());
            let wanted = before.and_then(|state| planted.get(state as usize));
            if let (1.., [first, second], Some(wanted)) = (time, seen.value(*gates).as_slice(), wanted) {
                all += 1;
                let named = usize::from((second > first) != is_reversed);
                right += u64::from(named == *wanted && first != second);
            }
        });
    }
    (all > 0).then(|| right as f64 / all as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::{CellKind, Options, Sizes};
    use crate::task::Settings;
    use serde_json::json;

    /// The cell that does what was planted, by hand: the state is one-hot, V(x) moves it, and the gates read it.
    fn by_hand(task: &Task, is_turned: bool) -> (Cell, Vec<f32>) {
        of_list(task, &[1, 2], is_turned)
    }

    /// The same with other numerals.
    fn of_list(task: &Task, lambda: &[u32], is_turned: bool) -> (Cell, Vec<f32>) {
        let options = json!({
            "preset": "paper", "v": "full", "project": "identity", "lambda": lambda, "hh": false, "h0": "learned",
        });
        let sizes = Sizes { input: Some(7), hidden: Some(7), ..Sizes::default() };
        let cell = Cell::new(CellKind::LinearLogic, &sizes, &Options::read(&options).unwrap()).unwrap();
        let mut theta = Vec::new();
        for (_, weight) in cell.step.trained() {
            let mut entries = vec![0.0; weight.len()];
            match weight.name.as_str() {
                "h0" => entries[0] = 1.0,
                "V" => (0..7).for_each(|x| (0..7).for_each(|s| entries[x * 49 + (s + x) % 7 * 7 + s] = 1.0)),
                "P" => {
                    for (state, program) in task.planted().unwrap().at.into_iter().enumerate() {
                        entries[(if is_turned { 1 - program } else { program }) * 7 + state] = 1.0;
                    }
                }
                _ => {}
            }
            theta.extend(entries);
        }
        (cell, theta)
    }

    #[test]
    fn a_cell_that_does_what_was_planted_names_it() {
        let task = Task::new("planted-lambda-z7", &Settings::default()).unwrap();
        let mut stream = seeded::Family::named("gates").stream(0);
        let examples: Vec<Example> = (0..5).map(|_| task.draw(40, &mut stream).unwrap()).collect();
        let (cell, theta) = by_hand(&task, false);
        assert_eq!(share_right(&cell, &theta, &task, &examples), Some(1.0));
        // It is the planted rule: the state that it holds is the target at every step.
        let engine = Engine::new(cell.step.clone(), &theta);
        for example in &examples {
            let one = Sequences { inputs: Inputs::Tokens(&example.input), length: 40, count: 1 };
            engine.observe(one, |time, seen| {
                let h = seen.value(cell.step.states[0].next);
                assert_eq!(h.iter().position(|x| *x == 1.0), Some(example.target[time] as usize));
            });
        }
        // With the programs exchanged it moves otherwise, and what was planted is named by chance at most.
        let (cell, theta) = by_hand(&task, true);
        assert!(share_right(&cell, &theta, &task, &examples).unwrap() < 0.8);
        // The same programs in another order of the list name the same.
        let (turned, mut theta_turned) = of_list(&task, &[2, 1], false);
        let mut at = 0;
        for (_, weight) in turned.step.trained() {
            if weight.name == "P" {
                theta_turned[at..at + 14].rotate_left(7);
            }
            at += weight.len();
        }
        assert_eq!(share_right(&turned, &theta_turned, &task, &examples), Some(1.0));
        // Other programs than those that were planted name nothing.
        let (other, theta_other) = of_list(&task, &[1, 3], false);
        assert_eq!(share_right(&other, &theta_other, &task, &examples), None);
        let plain = Task::new("word-d5", &Settings::default()).unwrap();
        assert_eq!(share_right(&cell, &theta, &plain, &examples), None);
        // No gate is larger than the other: nothing is named.
        let silent = vec![0.0; theta.len()];
        assert_eq!(share_right(&cell, &silent, &task, &examples), Some(0.0));
    }
}
