//! Programs that learn: the loss falls to the level that is stated here, from several seeds.

use tensor_logic::answer::{Answer, Content};
use tensor_logic::engine::Engine;

use super::{folder, program};
use crate::common::answers::{calculated, engines};

pub(crate) const PROGRAMS: [&str; 9] = [
    "learn-table1",
    "learn-table2",
    "learn-tucker",
    "learn-digits",
    "learn-formulas",
    "learn-maze",
    "learner-cell",
    "learner-lstm",
    "learner-transformer",
];

/// The loss before and after, and the last answer, for a seed.
fn learned(name: &str, seed: u64, check: impl Fn(f64, f64, &[f64])) {
    learned_by(engines(), name, seed, check);
}

/// The same of a program whose steps are too long for loops: the interpreter says where it starts.
fn learned_fast(name: &str, seed: u64, check: impl Fn(f64, f64, &[f64])) {
    let (plain, fast): (Vec<_>, Vec<_>) =
        engines().into_iter().partition(|(engine, _)| *engine == "reference");
    let start = std::cell::Cell::new(f64::NAN);
    learned_by(fast, name, seed, |first, last, answer| {
        start.set(first);
        check(first, last, answer);
    });
    let text: Vec<String> =
        program(name).lines().filter(|line| !line.ends_with('?')).map(str::to_owned).collect();
    let text: Vec<&str> =
        text.iter().map(String::as_str).filter(|line| !line.contains("@minimize")).collect();
    for (engine, mut evaluator) in plain {
        let found =
            calculated(&format!("{}\nLoss?", text.join("\n")), &folder(), seed, &mut *evaluator).unwrap();
        let loss = found.outcome.answers[0].content.numbers()[0];
        assert!((loss - start.get()).abs() < 1e-12, "{name} on {engine}: {loss} and {}", start.get());
    }
}

fn learned_by(
    engines: Vec<(&'static str, Box<dyn Engine>)>,
    name: &str,
    seed: u64,
    check: impl Fn(f64, f64, &[f64]),
) {
    let text = program(name);
    for (engine, mut evaluator) in engines {
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

/// The class with the largest probability, of rows of so many.
fn likely(probabilities: &[f64], classes: usize) -> Vec<usize> {
    let most = |row: &[f64]| (0..classes).max_by(|a, b| row[*a].total_cmp(&row[*b])).unwrap();
    probabilities.chunks(classes).map(most).collect()
}

/// Text by text and step by step: the cell knows every bit of strings that it has seen.
#[test]
fn the_cell_says_every_other_bit_twice() {
    for seed in 0..3 {
        learned_fast("learner-cell", seed, |first, last, bits| {
            assert!(first > 0.4 && last < 0.1, "seed {seed}: {first} to {last}");
            assert_eq!(likely(bits, 2), [0, 1, 0, 0, 1, 0, 1, 0, 0, 1, 0, 0], "seed {seed}");
        });
    }
}

#[test]
fn the_lstm_says_the_parity() {
    for seed in 0..3 {
        learned_fast("learner-lstm", seed, |first, last, bits| {
            assert!(first > 0.4 && last < 0.1, "seed {seed}: {first} to {last}");
            assert_eq!(likely(bits, 2), [0, 1, 0, 1, 1, 0, 0, 1, 0, 0, 1, 0, 0, 1, 0, 0], "seed {seed}");
        });
    }
}

/// The first symbol of a text may be followed by three: ln 3 of three symbols in eight is the least there is.
#[test]
fn the_transformer_learns_three_texts() {
    for seed in 0..3 {
        learned_fast("learner-transformer", seed, |first, last, symbols| {
            let least = 3.0 * 3f64.ln() / 8.0;
            assert!(last < 0.6 * first && last > least, "seed {seed}: {first} to {last}");
            assert!(symbols.chunks(5).all(|row| (row.iter().sum::<f64>() - 1.0).abs() < 1e-9));
        });
    }
}

/// The engines but the interpreter, which sums over the worlds of all samples together.
fn fast() -> Vec<(&'static str, Box<dyn Engine>)> {
    engines().into_iter().filter(|(engine, _)| *engine != "reference").collect()
}

/// What is told of a program's start: two tensors.
fn at_start(name: &str, seed: u64, asked: [&str; 2]) -> [Vec<f64>; 2] {
    let text = program(name);
    let (before, _) = text.split_once("\nLoss?\n").unwrap();
    let text = format!("{before}\n{}?\n{}?\n", asked[0], asked[1]);
    let mut found = fast().into_iter().map(|(engine, mut evaluator)| {
        let found = calculated(&text, &folder(), seed, &mut *evaluator).unwrap();
        assert_eq!(found.outcome.refusal, None, "{name} on {engine}");
        [0, 1].map(|at| found.outcome.answers[at].content.numbers().to_vec())
    });
    let first = found.next().unwrap();
    assert!(found.all(|other| (0..2).all(|at| super::close(&other[at], &first[at]))), "{name}");
    first
}

/// From a half to the whole of what nobody has told, whatever the start.
fn taught(name: &str) {
    for seed in 0..3 {
        learned_by(fast(), name, seed, |first, last, right| {
            assert!(first > 0.5 && last < 0.05, "{name}, seed {seed}: {first} to {last}");
            assert_eq!(right, [1.0], "{name}, seed {seed}");
        });
    }
}

#[test]
fn digits_are_learned_from_their_sums() {
    taught("learn-digits");
    let [known, digits] = at_start("learn-digits", 5, ["Known", "Digit"]);
    let shown = [[0, 0], [0, 1], [1, 2], [2, 3], [3, 3], [3, 0], [2, 2], [1, 1], [2, 0]];
    for (s, shown) in shown.iter().enumerate() {
        let told = shown[0] + shown[1];
        let ways = (0..4).filter(|a| (0..4).contains(&(told - a)));
        let way = |a: i32| digits[8 * s + a as usize] * digits[8 * s + 4 + (told - a) as usize];
        let wanted: f64 = ways.map(way).sum();
        assert!((known[s] - wanted).abs() < 1e-12, "sample {s}: {} instead of {wanted}", known[s]);
    }
}

/// The value of symbols, the product before the sum; none of what is no formula.
fn value(symbols: &[usize]) -> Option<i64> {
    let (digits, signs) = (symbols.iter().step_by(2), symbols.iter().skip(1).step_by(2));
    let digits: Option<Vec<i64>> = digits.map(|k| (*k < 3).then_some(*k as i64 + 1)).collect();
    let (mut sum, mut product) = (0, *digits.as_ref()?.first()?);
    for (sign, digit) in signs.zip(digits?.into_iter().skip(1)) {
        match sign {
            3 => (sum, product) = (sum + product, digit),
            4 => (sum, product) = (sum + product, -digit),
            5 => product *= digit,
            _ => return None,
        }
    }
    Some(sum + product)
}

#[test]
fn symbols_are_learned_from_what_formulas_come_to() {
    taught("learn-formulas");
    let [known, symbols] = at_start("learn-formulas", 5, ["Known", "Symbol"]);
    let lengths = [3, 3, 3, 3, 5, 5, 3, 3, 5, 3, 1, 1, 1];
    let results = [3, 2, 6, -1, 7, 7, 2, 6, 0, 3, 1, 2, 3];
    for (s, (length, result)) in lengths.into_iter().zip(results).enumerate() {
        let mut wanted = 0.0;
        for world in 0..6_usize.pow(length) {
            let read: Vec<usize> = (0..length).map(|p| world / 6_usize.pow(p) % 6).collect();
            if value(&read) == Some(result) {
                wanted += read.iter().enumerate().map(|(p, k)| symbols[36 * s + 6 * p + k]).product::<f64>();
            }
        }
        assert!((known[s] - wanted).abs() < 1e-12, "formula {s}: {} instead of {wanted}", known[s]);
    }
}

#[test]
fn cells_are_learned_from_whether_there_is_a_way() {
    taught("learn-maze");
    let [ways, free] = at_start("learn-maze", 5, ["P", "Free"]);
    for (s, (way, free)) in ways.iter().zip(free.chunks(9)).enumerate() {
        let mut wanted = 0.0;
        for world in 0..1_usize << 9 {
            let is_free = |cell: usize| world >> cell & 1 == 1;
            let mut reached = [false; 9];
            reached[0] = is_free(0);
            for _ in 0..9 {
                for cell in (0..9_usize).filter(|cell| is_free(*cell)) {
                    let near =
                        |other: &usize| (other / 3).abs_diff(cell / 3) + (other % 3).abs_diff(cell % 3) == 1;
                    reached[cell] |= (0..9).filter(near).any(|other| reached[other]);
                }
            }
            if reached[8] {
                wanted += (0..9).map(|c| if is_free(c) { free[c] } else { 1.0 - free[c] }).product::<f64>();
            }
        }
        assert!((way - wanted).abs() < 1e-12, "maze {s}: {way} instead of {wanted}");
    }
}
