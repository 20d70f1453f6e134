//! Rules that make numbers, asked for single tuples: demand goes down the chains, stops at facts, and gives way to the
//! whole where it would have no end.
#![expect(clippy::unwrap_used, reason = "a test that has no answer has failed")]

use std::fmt::Write;
use std::path::Path;

use seeded::Stream;
use tensor_logic::answer::Answer;
use tensor_logic::auto::Auto;
use tensor_logic::engine::Budget;
use tensor_logic::fast::Fast;
use tensor_logic::files::Files;
use tensor_logic::source::Source;
use tensor_logic::world::World;

use crate::common;
use crate::common::answers::{calculated, engines};

fn one<'a>(random: &mut Stream, of: &[&'a str]) -> &'a str {
    of[random.below(of.len() as u64) as usize]
}

fn program(random: &mut Stream) -> String {
    let declared = random.below(2) == 0;
    let mut text = if declared { "x, y, z : -4..9\n".to_owned() } else { String::new() };
    // Where nothing is declared each rule ends by itself.
    let up = |rule: &str| if declared { rule.to_owned() } else { format!("{rule}, x < 9, x > -4") };
    for _ in 0..1 + random.below(3) {
        writeln!(text, "N({})", random.below(8)).unwrap();
        writeln!(text, "P({}, {})", random.below(5), random.below(5)).unwrap();
    }
    writeln!(text, "E({}, {})\nE(1, 2)\nM(3)", random.below(5), random.below(5)).unwrap();
    for _ in 0..1 + random.below(3) {
        let rule = one(
            random,
            &[
                "N(x) <- N(x-1)",
                "N(x) <- N(x-2), M(x+1)",
                "N(x+1) <- N(x)",
                "N(x) <- N(3-x)",
                "M(x) <- N(x), N(x+1)",
                "M(x) <- M(x-1), N(x)",
                "P(x, y) <- P(x-1, y)",
                "P(x, y) <- P(x-1, z), E(z, y)",
                "P(x, y) <- N(x), E(x, y)",
                "P(y, x) <- P(x+1, y), M(x)",
                "N(x) <- P(x, y), E(y, z)",
                "N(x) <- N(x-1), not E(x, 2)",
            ],
        );
        writeln!(text, "{}", up(rule)).unwrap();
    }
    for _ in 0..3 {
        let (a, b) = (random.below(14) as i64 - 5, random.below(8) as i64 - 1);
        let query = one(
            random,
            &["N(A)?", "M(A)?", "P(A, B)?", "P(A, y)?", "P(x, A)?", "N(x), M(x)?", "N(A) @explain"],
        );
        let query = query.replace('A', &a.to_string()).replace('B', &b.to_string()).replace(" @", "? @");
        writeln!(text, "{query}").unwrap();
    }
    text
}

fn said(answers: &[Answer]) -> Vec<String> {
    answers.iter().map(|answer| format!("{:?}", answer.content)).collect()
}

#[test]
fn chains_asked_for_single_tuples_agree_with_the_reference() {
    let mut random = common::stream("demand");
    let (mut held, mut failed) = (0, 0);
    for _ in 0..400 {
        let text = program(&mut random);
        let mut engines = engines();
        let reference = calculated(&text, Path::new("."), 0, &mut *engines[0].1);
        let found = calculated(&text, Path::new("."), 0, &mut *engines[1].1);
        match (reference, found) {
            (Ok(reference), Ok(found)) => {
                assert_eq!(reference.outcome.refusal, found.outcome.refusal, "{text}");
                let (wanted, said) = (said(&reference.outcome.answers), said(&found.outcome.answers));
                assert_eq!(said, wanted, "{text}");
                held += said.iter().filter(|answer| answer.contains("Some(1.0)")).count();
                failed += said.iter().filter(|answer| answer.contains("Some(0.0)")).count();
            }
            (Err(reference), Err(found)) => assert_eq!(reference, found, "{text}"),
            other => panic!("{text}\n{other:?}"),
        }
    }
    assert!(held > 50 && failed > 50, "{held} {failed}");
}

/// So many tuples are enough.
fn within(text: &str, tuples: u64) -> Vec<String> {
    let source = Source::new("text", text.as_bytes());
    let mut engine = Auto::new(Box::<Fast>::default());
    let budget = Budget { tuples, bytes: 1 << 30 };
    let found = World::new(&source, Files::new(Path::new(".")), 0).calculate(&mut engine, budget).unwrap();
    assert_eq!(found.outcome.refusal, None, "{text}");
    said(&found.outcome.answers)
}

#[test]
fn a_fact_of_a_long_chain_is_not_derived() {
    let yes = "Scalar(Some(1.0))";
    for chain in [
        "x : 0..1000000000\nN(0)\nN(x) <- N(x-1)\n",
        "x : 0..1000000000\nN(0)\nN(x+1) <- N(x)\n",
        "N(0)\nN(y) <- N(x), y = x + 1, y < 1000000000\n",
    ] {
        assert_eq!(within(&format!("{chain}N(0)?\nN(0)?"), 10), [yes, yes], "{chain}");
        assert_eq!(within(&format!("{chain}N(40)?"), 200), [yes], "{chain}");
    }
    // Downwards there would be no end, upwards there is one; and the other way round.
    let up = "N(0)\nN(y) <- N(x), y = x + 1, y < 20000\n";
    assert_eq!(within(&format!("{up}N(-3)?\nN(7)?"), 1_000_000), ["Scalar(Some(0.0))", yes]);
    let down = "N(0)\nN(y) <- N(x), y = x + 1\n";
    assert_eq!(within(&format!("{down}N(5000)?"), 100_000), [yes]);
}
