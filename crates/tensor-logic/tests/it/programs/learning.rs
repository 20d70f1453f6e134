//! Programs that learn: the loss falls to the level that is stated here, from several seeds.

use tensor_logic::answer::{Answer, Content};

use super::{folder, program};
use crate::common::answers::{calculated, engines};

pub(crate) const PROGRAMS: [&str; 3] = ["learn-table1", "learn-table2", "learn-tucker"];

/// The loss before and after, and the last answer, for a seed.
fn learned(name: &str, seed: u64, check: impl Fn(f64, f64, &[f64])) {
    let text = program(name);
    for (engine, mut evaluator) in engines() {
        let found = calculated(&text, &folder(), seed, &mut *evaluator).unwrap();
        assert_eq!(found.outcome.refusal, None, "{name} on {engine}");
        let answers: &[Answer; 3] = found.outcome.answers.as_slice().try_into().unwrap();
        let [before, learning, after] = answers;
        let minimized = learning.minimize.as_ref().unwrap();
        assert_eq!(before.content, Content::Scalar(Some(minimized.first)), "{name}: it starts where it was");
        assert_eq!(learning.content, Content::Scalar(Some(minimized.last)), "{name}: it ends where it is");
        check(minimized.first, minimized.last, after.content.numbers());
    }
}

#[test]
fn table_1_learns_from_its_neighbours() {
    for seed in 0..4 {
        learned("learn-table1", seed, |first, last, nodes| {
            assert!(first > 2.0 && last < 0.1, "seed {seed}: {first} to {last}");
            let left = |node: usize| nodes[node] > 0.5;
            let sides: Vec<bool> = (0..8).map(left).collect();
            assert_eq!(sides, [true, true, true, true, false, false, false, false], "seed {seed}");
        });
    }
}

#[test]
fn table_2_learns_a_text() {
    for seed in 0..3 {
        learned("learn-table2", seed, |first, last, words| {
            assert!(first > 4.0 && last < 0.5, "seed {seed}: {first} to {last}");
            let likely: Vec<usize> = words
                .chunks(3)
                .map(|row| (0..3).max_by(|a, b| row[*a].total_cmp(&row[*b])).unwrap())
                .collect();
            // "mice mice like cats"
            assert_eq!(likely, [2, 2, 1, 0], "seed {seed}");
        });
    }
}

#[test]
fn a_core_and_three_matrices_learn_a_tensor() {
    let slices = [[1.0, 2.0, 0.0, 0.0, 1.0, 1.0], [0.0, 1.0, 1.0, -1.0, 0.0, 2.0]];
    let mixed = [[1.0, 0.0], [2.0, 0.0], [0.0, 1.0], [1.0, 1.0]];
    for seed in 0..4 {
        learned("learn-tucker", seed, |first, last, rebuilt| {
            assert!(first > 10.0 && last < 0.1, "seed {seed}: {first} to {last}");
            for (at, value) in rebuilt.iter().enumerate() {
                let weights = mixed[at / 6];
                let wanted = weights[0] * slices[0][at % 6] + weights[1] * slices[1][at % 6];
                assert!(
                    (value - wanted).abs() < 0.3,
                    "seed {seed}, element {at}: {value} instead of {wanted}"
                );
            }
        });
    }
}
