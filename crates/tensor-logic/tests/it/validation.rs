//! `valid` and `patience`: a plain loop over separate programs does the same, and what is held out teaches nothing.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot learn has failed")]

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;

use tensor_logic::answer::{Answer, Validated};
use tensor_logic::auto::Auto;
use tensor_logic::engine::{Budget, Engine};
use tensor_logic::error::{Code, Refusal};
use tensor_logic::fast::Fast;
use tensor_logic::learn::minimize;
use tensor_logic::program::Action;
use tensor_logic::start::all_start_values;

use crate::common::answers::calculated;

const SAMPLES: usize = 12;
const FEATURES: usize = 5;

fn engine() -> Auto {
    Auto::new(Box::new(Fast::default()))
}

fn answers(text: &str, seed: u64) -> Vec<Answer> {
    let found = calculated(text, Path::new("."), seed, &mut engine());
    let found = found.unwrap_or_else(|reports| panic!("{reports:?}\n{text}"));
    assert!(found.outcome.refusal.is_none(), "{:?}\n{text}", found.outcome.refusal);
    found.outcome.answers
}

/// Features and a target for each sample.
fn data(seed: u64) -> Vec<(Vec<f64>, f64)> {
    let mut stream = seeded::Family::new("tensor-logic/tests", "validation", seed).stream(0);
    let mut number = || stream.uniform() * 2.0 - 1.0;
    (0..SAMPLES).map(|_| ((0..FEATURES).map(|_| number()).collect(), number())).collect()
}

/// A small network that sees these samples only. They are symbols: of integers all from 0 on would be values of `s`.
fn program(data: &[(Vec<f64>, f64)], samples: &BTreeSet<usize>, weights: &[f64]) -> String {
    let mut text = String::new();
    for sample in samples {
        let (features, target) = &data[*sample];
        writeln!(text, "T(S{sample:02}) = {target:?}").unwrap();
        for (d, feature) in features.iter().enumerate() {
            writeln!(text, "X(S{sample:02}, {d}) = {feature:?}").unwrap();
        }
    }
    let weights: Vec<String> = weights.iter().map(|weight| format!("{weight:?}")).collect();
    writeln!(text, "W[d] ~ [{}]", weights.join(", ")).unwrap();
    text.push_str("P(s) += X(s, d) W[d]\nLoss = sum[s]((tanh(P(s)) - T(s))^2)\n");
    text
}

/// The samples that a program of this seed holds out of so many.
fn held_out(count: usize, all: usize, seed: u64) -> BTreeSet<usize> {
    let order = seeded::Family::new("tensor-logic", "validation", seed).stream(0).permutation(all as u32);
    order.into_iter().take(count).map(|at| at as usize).collect()
}

fn start() -> Vec<f64> {
    (0..FEATURES).map(|d| 0.3 - 0.1 * d as f64).collect()
}

fn learned(data: &[(Vec<f64>, f64)], options: &str, seed: u64) -> (Validated, u64, Vec<f64>) {
    let all = (0..SAMPLES).collect();
    let text = program(data, &all, &start());
    let found = answers(&format!("{text}Loss? @minimize({options})\nW?\n"), seed);
    let done = found[0].minimize.as_ref().unwrap();
    assert_eq!(found[0].content.numbers(), [done.last], "the answer is the loss with what is kept");
    (done.valid.unwrap(), done.steps, found[1].content.numbers().to_vec())
}

fn near(found: f64, wanted: f64) {
    assert!((found - wanted).abs() <= 1e-12 * wanted.abs().max(1.0), "{found} instead of {wanted}");
}

/// The same by separate programs: an epoch of one that has only the samples to learn from, then the loss of one that
/// has only the others.
fn by_hand(data: &[(Vec<f64>, f64)], epochs: u64, patience: Option<u64>, seed: u64) -> (Validated, Vec<f64>) {
    let held = held_out(3, SAMPLES, seed);
    let rest: BTreeSet<usize> = (0..SAMPLES).filter(|sample| !held.contains(sample)).collect();
    let loss = |weights: &[f64]| {
        let text = program(data, &held, weights);
        answers(&format!("{text}Loss?\n"), seed)[0].content.numbers()[0]
    };
    let mut weights = start();
    let first = loss(&weights);
    let mut found = Validated { first, best: first, epoch: 0, epochs: 0 };
    let mut best = weights.clone();
    while found.epochs < epochs && patience.is_none_or(|patience| found.epochs - found.epoch < patience) {
        let text = program(data, &rest, &weights);
        let learned = answers(
            &format!("{text}Loss? @minimize(opt=sgd, lr=0.15, batch=s, size=4, epochs=1)\nW?\n"),
            seed,
        );
        weights = learned[1].content.numbers().to_vec();
        found.epochs += 1;
        let now = loss(&weights);
        if found.epochs == 1 || now < found.best {
            (found.best, found.epoch) = (now, found.epochs);
            best = weights.clone();
        }
    }
    (found, best)
}

#[test]
fn a_plain_loop_over_separate_programs_does_the_same() {
    let mut stopped = 0;
    for seed in 0..6 {
        let data = data(seed);
        for patience in [None, Some(1), Some(4)] {
            let more = patience.map_or(String::new(), |patience| format!(", patience={patience}"));
            let options = format!("opt=sgd, lr=0.15, batch=s, size=4, epochs=12, valid=0.25{more}");
            let (found, steps, weights) = learned(&data, &options, seed);
            let (wanted, best) = by_hand(&data, 12, patience, seed);
            let told = format!("{seed} {patience:?}: {found:?} instead of {wanted:?}");
            assert_eq!((found.epoch, found.epochs), (wanted.epoch, wanted.epochs), "{told}");
            // Nine samples, four a step.
            assert_eq!(steps, 3 * wanted.epochs);
            near(found.first, wanted.first);
            near(found.best, wanted.best);
            weights.iter().zip(&best).for_each(|(found, wanted)| near(*found, *wanted));
            stopped += usize::from(wanted.epochs < 12);
        }
    }
    assert!(stopped > 2, "patience ended {stopped} runs: too few say something of it");
}

/// The losses before each step.
fn losses(data: &[(Vec<f64>, f64)], options: &str) -> Vec<u64> {
    let text = program(data, &(0..SAMPLES).collect(), &start());
    let text = format!("{text}Loss? @minimize({options})\n");
    let program = crate::common::engines::analysed(&text).unwrap();
    let query = program.actions.iter().find_map(|action| match action {
        Action::Query(query) => Some((query.tensor, query.directives.minimize.clone()?)),
        _ => None,
    });
    let (goal, settings) = query.unwrap();
    let mut parameters = all_start_values(&program);
    let budget = Budget { tuples: 1 << 30, bytes: 4 << 30 };
    let mut told = Vec::new();
    let engine: &mut dyn Engine = &mut engine();
    minimize(engine, &program, budget, &mut parameters, goal, &settings, &mut |_, _, loss| {
        told.push(loss.to_bits());
    })
    .unwrap();
    told
}

#[test]
fn what_is_held_out_touches_no_gradient() {
    let data = data(1);
    let options = "lr=0.05, weight_decay=0.1, batch=s, size=2, shuffle=1, epochs=4, valid=0.25";
    let before = losses(&data, options);
    let once = "opt=sgd, lr=0.01, batch=s, size=4, epochs=1, valid=0.25";
    let (_, _, weights) = learned(&data, once, 0);
    assert_ne!(weights, start(), "the first epoch is better than the start");
    let held = held_out(3, SAMPLES, 0);
    for sample in 0..SAMPLES {
        let mut other = data.clone();
        other[sample].1 *= 0.99;
        other[sample].0[2] += 1e-3;
        assert_eq!(losses(&other, options) == before, held.contains(&sample), "sample {sample}");
        let (found, _, now) = learned(&other, once, 0);
        assert_eq!(found.epoch, 1);
        assert_eq!(now == weights, held.contains(&sample), "sample {sample}");
    }
}

/// More weights than samples, and targets that are noise: what is held out gets worse while the rest gets better.
#[test]
fn what_fits_too_well_is_stopped() {
    let mut stream = seeded::Family::new("tensor-logic/tests", "validation", 99).stream(1);
    let mut text = String::new();
    for sample in 0..20 {
        let features: Vec<f64> = (0..10).map(|_| stream.normal()).collect();
        features.iter().enumerate().for_each(|(d, x)| writeln!(text, "X({sample}, {d}) = {x:?}").unwrap());
        writeln!(text, "T({sample}) = {:?}", 2.0 * features[0] + 1.0 * stream.normal()).unwrap();
    }
    text.push_str("W[d] ~ zeros()\nP(s) += X(s, d) W[d]\nLoss avg= sum[s]((P(s) - T(s))^2)\n");
    let of = |more: &str| {
        let query =
            format!("Loss? @minimize(opt=sgd, lr=0.01, batch=s, size=2, epochs=120, valid=0.4{more})\n");
        let found = answers(&format!("{text}{query}Loss?\n"), 3);
        let done = found[0].minimize.clone().unwrap();
        assert_eq!(found[1].content.numbers(), [done.last]);
        (done.valid.unwrap(), done.steps)
    };
    let (found, steps) = of(", patience=5");
    assert!(found.epoch > 0 && found.best < found.first, "{found:?}");
    assert_eq!((found.epochs, steps), (found.epoch + 5, 6 * found.epochs));
    assert!(found.epochs < 120, "{found:?}");
    let (all, steps) = of("");
    assert_eq!((all.epochs, steps), (120, 720));
    assert!(all.best <= found.best && all.epoch < 120, "{all:?}");
}

#[test]
fn steps_end_with_a_look_and_threads_change_nothing() {
    let data = data(5);
    // Three steps are an epoch: five are one and a part of another.
    for (steps, epochs) in [(0, 0), (2, 1), (3, 1), (5, 2), (6, 2)] {
        let options = format!("batch=s, size=4, steps={steps}, valid=0.25");
        let (found, taken, weights) = learned(&data, &options, 2);
        assert_eq!((found.epochs, taken), (epochs, steps));
        assert_eq!(weights == start(), found.epoch == 0);
        for threads in [1, 3] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            assert_eq!(pool.install(|| learned(&data, &options, 2)), (found, taken, weights.clone()));
        }
    }
    let different: BTreeSet<u64> = (0..8)
        .map(|seed| learned(&data, "batch=s, size=4, steps=0, valid=0.25", seed).0.first.to_bits())
        .collect();
    assert!(different.len() > 4, "other seeds hold out others");
}

/// The refusal of a program that learns by these options, and what it points at.
fn refused(options: &str) -> (Refusal, String) {
    let text = program(&data(0), &(0..SAMPLES).collect(), &start());
    let text = format!("{text}Loss? @minimize({options})\n");
    let report = match calculated(&text, Path::new("."), 0, &mut engine()) {
        Ok(found) => found.outcome.refusal.unwrap(),
        Err(reports) => reports.into_iter().next().unwrap(),
    };
    let place = text[report.span.start..report.span.end].to_owned();
    (report, place)
}

#[test]
fn what_cannot_be_held_out_is_refused() {
    for (options, place, message) in [
        ("steps=3, valid=0.2", "valid=0.2", "`valid` needs `batch`"),
        ("batch=s, size=2, patience=3", "patience=3", "`patience` needs `valid`"),
        ("batch=s, size=2, valid=0", "valid=0", "not none and not all"),
        ("batch=s, size=2, valid=1", "valid=1", "not none and not all"),
        ("batch=s, size=2, valid=1.5", "valid=1.5", "a number between 0 and 1"),
        ("batch=s, size=2, valid=-0.5", "valid=-0.5", "a number between 0 and 1"),
        ("batch=s, size=2, valid=0.2, patience=0", "patience=0", "a whole number from 1 on"),
        ("batch=s, size=2, valid=0.04", "valid=0.04", "of the 12 values of `s` holds out 0 of them"),
        ("batch=s, size=2, valid=0.96", "valid=0.96", "of the 12 values of `s` holds out 12 of them"),
    ] {
        let (report, found) = refused(options);
        assert_eq!(report.code, Code::BadArgument, "{options}");
        assert_eq!(found, place, "{options}: {}", report.message);
        assert!(report.message.contains(message), "{options}: {}", report.message);
    }
}
