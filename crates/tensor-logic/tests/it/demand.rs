//! Rules that make numbers, asked for single tuples: demand goes down the chains, stops at facts, and gives way to the
//! whole where it would have no end.
#![expect(clippy::unwrap_used, reason = "a test that has no answer has failed")]

use std::fmt::Write;
use std::path::Path;

use seeded::Stream;
use tensor_logic::answer::Answer;
use tensor_logic::auto::Auto;
use tensor_logic::engine::{Budget, Engine};
use tensor_logic::fast::Fast;
use tensor_logic::files::Files;
use tensor_logic::reference::Reference;
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

/// Of a closure, or of a join, that equations read at constants, what they read is derived, and nothing else; and a proof rests on
/// what demand derives.
#[test]
fn what_is_read_at_constants_is_derived_alone() {
    let mut ring = String::new();
    for at in 0..2000 {
        writeln!(ring, "E({at}, {})", (at + 1) % 2000).unwrap();
    }
    let closure = "P(x, y) <- E(x, y)\nP(x, z) <- P(x, y), E(y, z)\n";
    let scalar = |value: f64| vec![format!("Scalar(Some({value:?}))")];
    for (equation, value) in [
        ("C = count[x](P(7, x))", 2000.0),
        ("C = relu(P(x, 7))", 2000.0),
        ("C = (P(7, x) x)^2", 1999.0 * 1000.0 * 1999.0 * 1000.0),
        ("C = max[x](P(7, x) x) + P[3, 4]", 2000.0),
        ("C = sig(P[7, 9] - P[3, 5]) + count[x](P(3, x)) - count[x](P(7, x))", 0.5),
        ("C = count[x](not P(7, x))", 0.0),
    ] {
        assert_eq!(within(&format!("{ring}{closure}{equation}\nC?"), 20_000), scalar(value), "{equation}");
    }
    let mut star = String::new();
    for at in 1..2000 {
        writeln!(star, "E(0, {at}); E({at}, 0)").unwrap();
    }
    let join = "B(x, z) <- E(x, y), E(y, z)\n";
    assert_eq!(within(&format!("{star}{join}C = count[x](B(5, x))\nC?"), 10_000), scalar(1999.0));
    let proved = within(&format!("{star}{join}B(5, 9)? @explain"), 10_000);
    assert_eq!(proved, scalar(1.0));
}

/// A tuple is proved as the reference proves it, which has all tuples at hand: through recursions, where demand skips steps, and
/// through what is denied.
#[test]
fn proofs_are_those_of_the_reference() {
    let first = seeded::test_seed();
    let (count, mut proved) = (common::drawn(200), 0);
    for seed in first..first + count {
        let mut random = seeded::Family::new("tensor-logic/tests", "proofs by demand", seed).stream(0);
        let mut text = format!("F({})\n", random.below(4));
        for _ in 0..3 + random.below(6) {
            writeln!(text, "E({}, {})", random.below(4), random.below(4)).unwrap();
        }
        for rules in [
            &[
                "P(x, z) <- E(x, y), P(y, z)",
                "P(x, z) <- P(x, y), E(y, z)",
                "P(x, z) <- P(x, y), P(y, z)",
                "P(x, z) <- E(x, y), E(y, z)",
                "P(x, z) <- E(y, x), E(y, z), x != z",
            ][..],
            &["G(x) <- P(x, y), F(y)", "G(x) <- E(x, y), not F(y)", "G(x) <- P(x, x)"],
            &[
                "Q(x, y) <- P(x, y), not G(x)",
                "Q(x, y) <- P(x, z), P(z, y), not G(z)",
                "Q(x, y) <- P(x, y), not P(y, _)",
                "Q(x, y) <- E(x, y), not P(y, x)",
            ],
            &["D(x, z) min= D(x, y) + E(y, z)", "D(x, z) min= E(x, y) + E(y, z)"],
        ] {
            writeln!(text, "{}", one(&mut random, rules)).unwrap();
        }
        text += "P(x, y) <- E(x, y)\nD(x, y) min= E(x, y)\nH(x, y) <- D(x, y), Q(x, y)\n";
        for _ in 0..4 {
            let (a, b) = (random.below(4).to_string(), random.below(4).to_string());
            let query = one(&mut random, &["P(A, B)", "Q(A, B)", "H(A, B)", "G(A)"]);
            writeln!(text, "{}? @explain", query.replace('A', &a).replace('B', &b)).unwrap();
        }
        let proofs = |engine: &mut dyn Engine| -> Vec<String> {
            let found = calculated(&text, Path::new("."), 0, engine).unwrap();
            let answers = &found.outcome.answers;
            answers.iter().map(|answer| format!("{:?}", answer.explain.as_ref().unwrap().proof)).collect()
        };
        let wanted = proofs(&mut Reference::default());
        assert_eq!(proofs(&mut Auto::new(Box::<Fast>::default())), wanted, "seed {seed}\n{text}");
        proved += wanted.iter().filter(|proof| *proof != "None").count() as u64;
    }
    assert!(proved > count, "{proved} proofs of {count} programs");
}

/// Relations that rules make, and equations that read parts of them, or now and then all.
fn parts(random: &mut Stream) -> String {
    let mut text = "x, y, z : 0..4\n".to_owned();
    for _ in 0..2 + random.below(8) {
        writeln!(text, "E({}, {})", random.below(5), random.below(5)).unwrap();
        writeln!(text, "R({}, {}) = {}", random.below(5), random.below(5), one(random, &["1", "2", "0.5"]))
            .unwrap();
    }
    writeln!(text, "E(0, 1)\nR(1, 2) = 3\nV[x] = [0.5, -1, 2, 0, 1]").unwrap();
    text += one(
        random,
        &[
            "P(x, y) <- E(x, y)\nP(x, z) <- P(x, y), E(y, z)\n",
            "P(x, y) <- E(x, y)\nP(x, z) <- P(x, y), P(y, z), x != z\n",
            "P(x, y) <- E(x, y)\nP(x, z) <- E(x, y), P(y, z)\nP(3, 3)\n",
            "P(x, z) <- E(x, y), E(y, z)\n",
            "P(x, z) <- E(x, y), E(y, z), not E(x, z)\nP(2, 4)\n",
            "P(x, y) <- E(x, y), V[y] > 0\nP(x, z) <- P(x, y), E(y, z)\n",
            "P(x, y) <- Q(x, y)\nP(x, y) <- E(x, y)\nQ(x, z) <- P(x, y), E(y, z)\n",
        ],
    );
    text += one(
        random,
        &[
            "D(x, y) min= R(x, y)\nD(x, z) min= D(x, y) + R(y, z)\n",
            "D(x, y) : maxtimes\nD(x, y) <- R(x, y) 0.25\nD(x, z) <- D(x, y), R(y, z) 0.25\n",
            "D(x, z) max= R(x, y) R(y, z)\n",
            "D(x, z) += R(x, y) R(y, z)\n",
            "D(x, z) : count\nD(x, z) <- E(x, y), E(y, z)\n",
        ],
    );
    for nth in 0..1 + random.below(3) {
        let read = |random: &mut Stream| {
            let place = |random: &mut Stream| one(random, &["0", "1", "3", "7", "x", "y", "x"]).to_owned();
            let name = one(random, &["P", "P", "D"]);
            let (a, b) = (place(random), place(random));
            if random.below(3) == 0 { format!("{name}[{a}, {b}]") } else { format!("{name}({a}, {b})") }
        };
        let (a, b) = (read(random), read(random));
        let body = one(
            random,
            &[
                "count[x, y](A)",
                "relu(A)",
                "(A)^2",
                "max[x](A x)",
                "A V[x]",
                "sig(A) + B",
                "(A - B)^2",
                "V[x] not A",
                "V[x] | A > 0",
                "avg[x, y](A B)",
            ],
        );
        writeln!(text, "C{nth} = {}", body.replace('A', &a).replace('B', &b)).unwrap();
        writeln!(text, "C{nth}?").unwrap();
    }
    if random.below(3) == 0 {
        text += one(random, &["P(1, x)?\n", "P(x, y)?\n", "D(1, x)?\n"]);
    }
    text
}

#[test]
fn parts_of_relations_agree_with_the_reference() {
    let first = seeded::test_seed();
    let (count, mut same) = (common::drawn(400), 0);
    for seed in first..first + count {
        let mut random = seeded::Family::new("tensor-logic/tests", "parts of relations", seed).stream(0);
        let text = parts(&mut random);
        let mut engines = engines();
        let reference = calculated(&text, Path::new("."), 0, &mut *engines[0].1);
        for (name, engine) in engines.iter_mut().skip(1) {
            let found = calculated(&text, Path::new("."), 0, &mut **engine);
            match (&reference, found) {
                (Ok(reference), Ok(found)) => {
                    assert_eq!(reference.outcome.refusal, found.outcome.refusal, "{seed} {name}\n{text}");
                    let answers = reference.outcome.answers.iter().zip(&found.outcome.answers);
                    for (wanted, found) in answers {
                        let (wanted, found) = (wanted.content.numbers(), found.content.numbers());
                        let near = |(a, b): (&f64, &f64)| {
                            (a - b).abs() <= 1e-12 * a.abs().max(1.0) || a.to_bits() == b.to_bits()
                        };
                        assert!(
                            wanted.len() == found.len() && wanted.iter().zip(found).all(near),
                            "{seed} {name}: {found:?} instead of {wanted:?}\n{text}"
                        );
                    }
                    same += 1;
                }
                (Err(reference), Err(found)) => assert_eq!(*reference, found, "{seed} {name}\n{text}"),
                other => panic!("{seed} {name}\n{text}\n{other:?}"),
            }
        }
    }
    assert!(same as u64 > count, "{same} of {count}");
}
