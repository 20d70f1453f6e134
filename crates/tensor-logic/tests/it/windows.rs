//! Long stepped recursions of which single slices are asked for: window after window, with the bits of the whole.
#![expect(clippy::unwrap_used, reason = "a test that has no answer has failed")]

use std::fmt::Write;
use std::path::Path;

use seeded::Stream;
use tensor_logic::auto::Auto;
use tensor_logic::engine::Engine;
use tensor_logic::fast::{Fast, Precision, Storage};
use tensor_logic::reference::Reference;

use crate::common;
use crate::common::answers::calculated;

fn numbers(text: &str, engine: &mut dyn Engine) -> Vec<Vec<f64>> {
    let found = calculated(text, Path::new("."), 0, engine);
    let found = found.map_err(|refusals| format!("{text}\n{refusals:?}")).unwrap();
    assert_eq!(found.outcome.refusal, None, "{text}");
    found.outcome.answers.iter().map(|answer| answer.content.numbers().to_vec()).collect()
}

/// Up and down, one tensor and two, several slices back, slices given and computed, other tensors read in step; `T` is a
/// step that is asked for, `N` the last one.
const PROGRAMS: &[(&str, &str)] = &[
    ("X[0] = 1\nX[t+1] = 0.5 X[t] + 1\n", "X[T]"),
    ("X[0] = 1\nX[1] = 2\nX[t+2] = X[t+1] - 0.7 X[t] + U[t+1]\n", "X[T]"),
    ("X[0, i] = [1, 2, 3]\nX[t+1, i] = tanh(W[i, j] X[t, j]) + U[t]\n", "X[T, i]"),
    ("X[i, 0] = [1, 2, 3]\nX[i, t+1] = W[i, j] X[j, t] / 2\n", "X[i, T]"),
    ("X[*t+1, i] = sig(W[i, j] X[*t, j] + U[t])\n", "X[T, i]"),
    ("X[0, i] = i\nX[t+1, i] = Y[t, i] + 0.1 X[t, i]\nY[t, i] = sin(X[t, i])\n", "X[T, i]"),
    ("X[0] = 3\nX[t+1] = 0.4 Y[t] + 0.3 X[t]\nY[0] = 1\nY[t+1] = 0.2 X[t] - Y[t-1] / 3\n", "Y[T]"),
    ("X[N] = 2\nX[t-1] = 0.5 X[t] + U[t]\n", "X[T]"),
    ("X[0] max= 0\nX[t+1] max= X[t] + U[t] - 1\nX[t+1] max= 0.5 X[t]\n", "X[T]"),
    ("X[0] = 1\nX[t] = 0.5 X[t-1] + t | t > 0\nX[4] = 10\n", "X[T]"),
    (
        "X[0, i] = [1, 1, 1]\nX[t+1, i] = W[i, j] X[t, j] | t % 3 != 1\nX[t+1, i] = X[t, i] + i | t % 3 == 1\n",
        "X[T, i]",
    ),
];

fn program(random: &mut Stream, (text, asked): (&str, &str), last: u64) -> (String, String) {
    let inputs: Vec<f64> = (0..=last).map(|_| random.normal()).collect();
    let weights: Vec<Vec<f64>> = (0..3).map(|_| (0..3).map(|_| random.normal() / 2.0).collect()).collect();
    let text = format!("t : 0..{last}\ni, j : 3\nU = {inputs:?}\nW = {weights:?}\n{text}")
        .replace("[N", &format!("[{last}"));
    (text, asked.to_owned())
}

#[test]
fn windows_have_the_bits_of_the_whole() {
    let mut random = common::stream("windows");
    for each in PROGRAMS.iter().cycle().take(6 * PROGRAMS.len()) {
        let last = 9 + random.below(30);
        let (text, asked) = program(&mut random, *each, last);
        // A starred place is read at its last value only.
        let steps = match text.contains('*') {
            true => [last + 1; 4],
            false => [last, last, random.below(last + 1), last / 2],
        };
        let mut queries = String::new();
        for step in &steps[..1 + random.below(4) as usize] {
            writeln!(queries, "{}?", asked.replace('T', &step.to_string())).unwrap();
        }
        // The second program reads all slices: nothing is taken apart then.
        let mut whole = text.replace('*', "");
        for (at, line) in queries.lines().enumerate() {
            let read = line.trim_end_matches('?');
            let all = asked.replace('T', "t");
            let left = if asked.contains('i') { format!("P{at}[i]") } else { format!("P{at}") };
            writeln!(whole, "{left} = {read} + 0 * sum[t]({all})\n{left}?").unwrap();
        }
        let text = text + &queries;
        let wanted = numbers(&text, &mut Reference::default());
        for precision in [Precision::Double, Precision::Single] {
            let engine =
                || Auto::new(Box::new(Fast::with_storage(Storage::Sparse).with_precision(precision)));
            let (found, all) = (numbers(&text, &mut engine()), numbers(&whole, &mut engine()));
            for ((found, all), wanted) in found.iter().zip(&all).zip(&wanted) {
                if precision == Precision::Double {
                    assert_eq!(found, all, "{text}");
                }
                let near = if precision == Precision::Double { 1e-12 } else { 1e-4 };
                let close = |(a, b): (&f64, &f64)| a == b || (a - b).abs() <= near * b.abs().max(1.0);
                assert!(found.iter().zip(wanted).all(close), "{precision:?}\n{text}\n{found:?}\n{wanted:?}");
            }
        }
    }
}

/// Whole states would take gigabytes; what was asked for is the same in one dialogue as in another.
#[test]
fn long_recursions_take_little_memory() {
    let text =
        "i, j : 100\nX[0, i] = 1\nX[t+1, i] = 0.5 X[t, i] + 0.01 i\nX[300000, 7]?\nS = X[299999, i]\nS?";
    let source = tensor_logic::source::Source::new("text", text.as_bytes());
    let budget = tensor_logic::engine::Budget { tuples: 1000, bytes: 1 << 26 };
    let files = tensor_logic::files::Files::new(Path::new("."));
    let mut engine = Auto::new(Box::<Fast>::default());
    let found = tensor_logic::world::World::new(&source, files, 0).calculate(&mut engine, budget).unwrap();
    assert_eq!(found.outcome.refusal, None);
    let value = |at: usize| found.outcome.answers[at].content.numbers()[0];
    assert!((value(0) - 0.14).abs() < 1e-12 && (value(1) - 99.0).abs() < 1e-9, "{} {}", value(0), value(1));
}

/// Steps at the end of 64 bits: the constants that lead back from there are not computed with.
#[test]
fn steps_at_the_end_of_the_integers_are_steps() {
    let far = "t : -9223372036854775807..-9223372036854775700\n";
    let programs = [
        "X[0] = 1\nX[t + 9223372036854775807] = 0.5 X[t + 9223372036854775806] + 1\nX[100]?\n",
        "X[0] = 1\nX[t + 9223372036854775807] = 0.5 Y[t + 9223372036854775806] + 1\n\
         Y[t + 9223372036854775807] = 0.25 X[t + 9223372036854775807]\nY[100]?\n",
        "X[0] = 1\nX[t + 9223372036854775807] = 0.5 Y[t + 9223372036854775805] + 1\n\
         Y[t + 9223372036854775806] = 0.25 X[t + 9223372036854775806]\nX[100]?\n",
    ];
    for program in programs {
        let text = format!("{far}{program}");
        let wanted = numbers(&text, &mut Reference::default());
        let found = numbers(&text, &mut Auto::new(Box::new(Fast::with_storage(Storage::Sparse))));
        assert_eq!(found, wanted, "{text}");
    }
}

/// Means and sums over steps of which no step, some steps, or all have an element.
#[test]
fn means_over_the_steps_are_those_of_the_elements_that_exist() {
    let recursion = "t : 0..11\nX[0] = 0.5\nX[t+1] = 0.5 X[t] + 0.1\n";
    for sum in [
        "1 + avg[t](X[t+50])",
        "1 + avg[t](X[t+3])",
        "1 + avg[t](X[t])",
        "1 + avg[t](X[t] X[9-t])",
        "1 + avg[t](X[2*t-5] + X[6-t])",
        "1 + avg[t](X[t-7] X[4-t])",
        "1 + sum[t](X[t+50])",
        "1 + sum[t](X[t-2])",
        "1 + sum[t](X[t])",
        "1 + count[t](X[t+9])",
        "1 + sqrt(X[t-50] + 1)",
        "sqrt(X[t-2] + 1) + 2",
    ] {
        let text = format!("{recursion}A = {sum}\nA?");
        let wanted = numbers(&text, &mut Reference::default());
        let found = numbers(&text, &mut Auto::new(Box::new(Fast::with_storage(Storage::Sparse))));
        let close = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-12;
        assert!(found[0].iter().zip(&wanted[0]).all(close), "{text}\n{found:?}\n{wanted:?}");
    }
}
