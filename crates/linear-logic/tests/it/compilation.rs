//! Compiled programs beside the evaluator, on all back ends and rings, and the bounds on their instructions.
use std::collections::{BTreeMap, BTreeSet};

use linear_logic::argument::{denote, dimensions};
use linear_logic::compile::{Backend, Inputs, Operand, Plan, Slot, compile};
use linear_logic::denote::{Dense, Matrix};
use linear_logic::elaborate::{Extension, Mode, elaborate};
use linear_logic::error::{Kind, Source};
use linear_logic::json::Json;
use linear_logic::literal::Order;
use linear_logic::parse;
use linear_logic::polynomial::polynomial;
use linear_logic::program::{Checked, Program};
use linear_logic::ring::{Double, Integers, Modular, Rationals, Ring};
use num_bigint::BigInt;
use seeded::{Family, Stream};

use crate::terms::numbers;

fn program() -> Program {
    Program::new(Order::Literal, Mode::default()).unwrap()
}

fn read(program: &Program, text: &str) -> Checked {
    let source = Source::new("<test>", text.as_bytes().to_vec());
    elaborate(program, &source, &parse::query(&source).unwrap()).unwrap()
}

fn plan(program: &Program, texts: &[&str], slots: &[Slot], backend: Backend) -> Plan {
    let subjects: Vec<Checked> = texts.iter().map(|text| read(program, text)).collect();
    let plan = compile(program, &subjects, slots, backend).unwrap();
    let distinct: BTreeSet<String> = plan.instructions.iter().map(|i| format!("{i:?}")).collect();
    assert_eq!(distinct.len(), plan.instructions.len(), "{texts:?}: an instruction occurs twice");
    for (id, instruction) in plan.instructions.iter().enumerate() {
        assert!(instruction.arguments().iter().all(|argument| *argument < id), "{texts:?}");
    }
    plan
}

/// A program of the corpus: its text, the terms of a mixture in front, and how many operators follow.
const PROGRAMS: [(&str, &[&str], usize); 8] = [
    ("0b01101", &[], 2),
    ("0b", &[], 2),
    ("13", &[], 1),
    ("repeat [repeat [0b011]]", &[], 2),
    ("subst 0b0110 [0b10] [0b0]", &[], 2),
    ("feed [2] [3] 0b01", &[], 1),
    ("\\n v. derelict n v : !int -o !(a -o a) -o a -o a", &["1", "2", "5"], 1),
    ("\\m v. mult m 3 v : !int -o !(a -o a) -o a -o a", &["0", "2"], 1),
];

fn agree<R: Ring + Copy>(ring: R, same: impl Fn(&R::Element, &R::Element) -> bool) {
    let program = program();
    for (seed, (text, terms, operators)) in PROGRAMS.iter().enumerate() {
        let mut stream = Family::named("linear-logic:compiled").stream(seed as u64);
        let mut number = || format!("{}", stream.below(7) as i64 - 3);
        let coefficients: Vec<String> = terms.iter().map(|_| number()).collect();
        for (backend, diagonal) in
            [(Backend::Matrix, false), (Backend::Vector, false), (Backend::Diagonal, true)]
        {
            let matrices: Vec<Vec<Vec<String>>> = (0..*operators)
                .map(|_| {
                    let entry = |i, j, number: &mut dyn FnMut() -> String| {
                        if diagonal && i != j { "0".to_owned() } else { number() }
                    };
                    (0..3).map(|i| (0..3).map(|j| entry(i, j, &mut number)).collect()).collect()
                })
                .collect();
            let rows = |m: &[Vec<String>]| {
                m.iter().map(|r| format!("[{}]", r.join(","))).collect::<Vec<_>>().join(",")
            };
            let mut arguments: Vec<String> = Vec::new();
            let mut slots = Vec::new();
            if !terms.is_empty() {
                let lin: Vec<String> = terms
                    .iter()
                    .zip(&coefficients)
                    .map(|(t, c)| format!("[{c},{{\"term\":\"{t}\"}}]"))
                    .collect();
                arguments.push(format!("{{\"bang\":{{\"lin\":[{}]}}}}", lin.join(",")));
                slots.push(Slot::Mix(terms.iter().map(|t| (*t).to_owned()).collect()));
            }
            arguments.extend(matrices.iter().map(|m| format!("[{}]", rows(m))));
            let vector = ["2", "-1", "3"];
            if backend == Backend::Vector {
                arguments.push(format!("[{}]", vector.join(",")));
            }
            let subject = read(&program, text);
            let arguments: Vec<Json> = arguments.iter().map(|a| Json::parse(a).unwrap()).collect();
            let dimensions =
                dimensions(&BTreeMap::from([("a".into(), 3)]), &subject.formula, &arguments).unwrap();
            let mut wanted =
                denote(Dense::new(ring, dimensions), &program, &subject, &arguments, Extension::None)
                    .unwrap();
            let mut wanted = wanted.coordinates().unwrap();
            let element = |text: &str| ring.integer(&text.parse::<BigInt>().unwrap()).unwrap();
            let mut inputs: Vec<Option<Matrix<R::Element>>> = slots.iter().map(|_| None).collect();
            for m in &matrices {
                inputs.push(Some(if diagonal {
                    Matrix { rows: 3, columns: 1, entries: (0..3).map(|i| element(&m[i][i])).collect() }
                } else {
                    Matrix { rows: 3, columns: 3, entries: m.iter().flatten().map(|e| element(e)).collect() }
                }));
            }
            let coefficients = [coefficients.iter().map(|c| element(c)).collect()];
            let vector: Vec<R::Element> = vector.iter().map(|e| element(e)).collect();
            let inputs = Inputs { operators: &inputs, coefficients: &coefficients, vector: Some(&vector) };
            let found = plan(&program, &[text], &slots, backend).run(&ring, &inputs).unwrap();
            let found = match found.into_iter().next().unwrap() {
                Operand::Matrix(m) => m.entries,
                Operand::Scalar(c) if diagonal => vec![c; 3],
                Operand::Scalar(c) => {
                    (0..9).map(|i| if i % 4 == 0 { c.clone() } else { ring.zero() }).collect()
                }
            };
            if diagonal {
                wanted = wanted.into_iter().step_by(4).collect();
            }
            assert_eq!(found.len(), wanted.len(), "{text} {backend:?}");
            assert!(
                found.iter().zip(&wanted).all(|(x, y)| same(x, y)),
                "{text} {backend:?}: {found:?}, not {wanted:?}"
            );
        }
    }
}

#[test]
fn compiled_programs_agree_with_denotation() {
    agree(Integers, |x, y| x == y);
    agree(Rationals, |x, y| x == y);
    agree(Modular::new(1_000_003).unwrap(), |x, y| x == y);
    agree(Double, |x, y| (x - y).abs() <= 1e-12 * y.abs().max(1.0));
}

#[test]
fn instructions_are_bounded() {
    let program = program();
    for n in [1, 2, 3, 7, 8, 100, 255, 256, 1_048_576_u32] {
        let text = n.to_string();
        let muls = plan(&program, &[&text], &[], Backend::Matrix).count("mul");
        assert!(muls <= 2 * n.ilog2() as usize, "{n}: {muls}");
        if n < 1000 {
            let vector = plan(&program, &[&text], &[], Backend::Vector);
            assert_eq!((vector.count("apply"), vector.count("mul")), (n as usize, 0));
        }
    }
    for word in ["0", "01", "0110", "0110100110010110"] {
        let text = format!("0b{word}");
        assert!(plan(&program, &[&text], &[], Backend::Matrix).count("mul") < word.len());
        let vector = plan(&program, &[&text], &[], Backend::Vector);
        assert_eq!((vector.count("apply"), vector.count("mul")), (word.len(), 0));
        let diagonal = plan(&program, &[&text], &[], Backend::Diagonal);
        assert!(diagonal.count("pow") <= 2 && diagonal.count("mul") <= 1);
    }
    for depth in [1, 5, 20] {
        let text = (0..depth).fold("0b011".to_owned(), |text, _| format!("repeat [{text}]"));
        assert!(plan(&program, &[&text], &[], Backend::Matrix).count("mul") <= 2 + depth);
    }
    // Words with a common innermost part share it.
    assert_eq!(plan(&program, &["0b1101", "0b0101", "0b101"], &[], Backend::Matrix).count("mul"), 4);
}

/// Diagonal operators commute: words with the same numbers of digits are one result.
#[test]
fn diagonal_programs_cannot_tell_some_words_apart() {
    let program = program();
    let diagonal = plan(&program, &["0b0110", "0b1100", "0b0111"], &[], Backend::Diagonal);
    assert_eq!(diagonal.results[0], diagonal.results[1]);
    assert_ne!(diagonal.results[0], diagonal.results[2]);
}

/// A random proof of `int{a}` or `bint{a}` from the library, and how many operators it takes.
fn random_program(stream: &mut Stream, fuel: u64, is_word: bool) -> String {
    let mut part = |is_word: bool| {
        let formula = if is_word { "bint" } else { "int" };
        format!("({} : {formula})", random_program(stream, fuel / 2, is_word))
    };
    if fuel == 0 {
        let n = stream.below(4);
        return match (is_word, n) {
            (false, n) => n.to_string(),
            (true, 0) => "0b".to_owned(),
            (true, n) => format!("0b{}", &["0", "10", "01"][n as usize - 1]),
        };
    }
    let (number, word) = (part(false), part(true));
    let (other, another) = (part(is_word), part(true));
    match (is_word, stream.below(6)) {
        (false, 0) => format!("add {number} {other}"),
        (false, 1) => format!("mult [{number}] {other}"),
        (false, 2) => format!("feed [{number}] [{other}] {word}"),
        (false, 3) => format!("length {word}"),
        (false, 4) => format!("tt{{int}} <{number}, {other}>"),
        (false, _) => format!("\\v z. tt <{number} v z, z>"),
        (true, 0) => format!("concat {word} {other}"),
        (true, 1) => format!("repeat [{word}]"),
        (true, 2) => format!("subst {word} [{other}] [{another}]"),
        (true, 3) => format!("flip {word}"),
        (true, 4) => format!("case inl{{bint}} {word} of inl s -> concat s {other} | inr s -> s"),
        (true, _) => format!("\\p q z. ff <{word} p q z, {other} p q z>"),
    }
}

/// The degrees of compiled programs beside those of the polynomials, whose terms have positive coefficients and so never
/// cancel: they are equal, on every back end.
#[test]
fn degrees_are_those_of_the_polynomials() {
    let program = program();
    let mut met = BTreeSet::new();
    for seed in numbers(300) {
        let mut stream = Family::named("linear-logic:degrees").stream(seed);
        let is_word = stream.below(2) == 0;
        let fuel = stream.below(4);
        let text = random_program(&mut stream, fuel, is_word);
        let subject = read(&program, &format!("{text} : {}", if is_word { "bint" } else { "int" }));
        let found: Vec<u64> = [Backend::Matrix, Backend::Vector, Backend::Diagonal]
            .iter()
            .map(|backend| {
                let plan = compile(&program, std::slice::from_ref(&subject), &[], *backend).unwrap();
                assert_eq!(plan.degrees().len(), 1);
                assert_eq!(plan.degrees()[0].coefficients, 0, "{text}");
                plan.degrees()[0].operators
            })
            .collect();
        assert!(found.iter().all(|degree| *degree == found[0]), "seed {seed}: {text}: {found:?}");
        if found[0] > 9 {
            continue;
        }
        let polynomial = polynomial(&program, &subject, &[], &BTreeMap::from([("a".into(), 2)])).unwrap();
        let degree = polynomial.entries.iter().flatten().map(|(_, exponents)| exponents.iter().sum::<u64>());
        assert_eq!(degree.max(), Some(found[0]), "seed {seed}: {text}");
        met.insert(found[0]);
    }
    assert!(met.len() >= 8, "only degrees {met:?}");
}

#[test]
fn degrees_of_mixtures_and_of_large_programs() {
    let program = program();
    let degree = |text: &str, slots: &[Slot], backend: Backend| {
        plan(&program, &[text], slots, backend)
            .degrees()
            .iter()
            .map(|d| (d.operators, d.coefficients))
            .collect::<Vec<_>>()
    };
    let mix = |terms: &[&str]| Slot::Mix(terms.iter().map(|term| (*term).to_owned()).collect());
    for backend in [Backend::Matrix, Backend::Vector] {
        // Linear where there is no `!`; as often as the second number says where there is one.
        let slots = [mix(&["1", "2"]), mix(&["1", "3"])];
        assert_eq!(degree("add", &slots, backend), [(5, 2)]);
        assert_eq!(degree("mult", &slots, backend), [(6, 4)]);
        assert_eq!(degree("repeat", &[mix(&["0b01", "0b1"])], backend), [(4, 2)]);
    }
    assert_eq!(degree("0b", &[], Backend::Matrix), [(0, 0)]);
    // 2⁴⁰ by squares, and 2¹⁰⁰, which is beyond what is counted.
    let nested = |levels: usize| format!("{}0b1{}", "repeat [".repeat(levels), "]".repeat(levels));
    assert_eq!(degree(&nested(40), &[], Backend::Matrix), [(1 << 40, 0)]);
    assert_eq!(degree(&nested(100), &[], Backend::Matrix), [(u64::MAX, 0)]);
}

/// A power of a coefficient is written out as a product, up to a bound, whatever the back end.
#[test]
fn powers_of_coefficients_are_bounded() {
    let program = program();
    let nested = |levels: usize| {
        let text = format!("\\s. {}derelict s{}", "repeat [".repeat(levels), "]".repeat(levels));
        read(&program, &format!("{text} : !bint -o bint"))
    };
    let mix = [Slot::Mix(vec!["0b0".to_owned()])];
    for backend in [Backend::Matrix, Backend::Vector, Backend::Diagonal] {
        let degree = |levels: usize| {
            let plan = compile(&program, &[nested(levels)], &mix, backend);
            plan.map(|plan| plan.degrees()[0]).map_err(|refusal| refusal.kind)
        };
        for levels in [0, 1, 5, 10] {
            let degree = degree(levels).unwrap();
            assert_eq!((degree.operators, degree.coefficients), (1 << levels, 1 << levels), "{backend:?}");
        }
    }
    for levels in [25, 61, 62, 63, 64, 65, 100] {
        for backend in [Backend::Matrix, Backend::Diagonal] {
            let refusal = compile(&program, &[nested(levels)], &mix, backend).unwrap_err();
            assert_eq!(refusal.kind, Kind::Limit, "{levels} levels, {backend:?}");
        }
    }
    // The bound is one for all subjects: each of these alone is within it.
    let half = [nested(20), nested(19)];
    assert!(
        half.iter().all(|one| compile(&program, std::slice::from_ref(one), &mix, Backend::Matrix).is_ok())
    );
    assert_eq!(compile(&program, &half, &mix, Backend::Matrix).unwrap_err().kind, Kind::Limit);
}
