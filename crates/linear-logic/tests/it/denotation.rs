//! The evaluator beside its oracles: products of matrices by hand, the free monoid, closed forms of kets, Taylor
//! sums, finite differences; and the number of products that sharing allows.
use std::collections::BTreeMap;
use std::rc::Rc;

use linear_logic::argument::{denote, dimensions};
use linear_logic::denote::{Dense, Words};
use linear_logic::elaborate::{Extension, Mode, elaborate};
use linear_logic::error::{Kind, Refusal, Source};
use linear_logic::json::Json;
use linear_logic::literal::Order;
use linear_logic::parse;
use linear_logic::program::{Checked, Program};
use linear_logic::recognise::{Recognised, recognise};
use linear_logic::reduce::{self, Limits};
use linear_logic::ring::{Double, Epsilons, Fault, Integers, Modular, Rationals, Ring};
use num_bigint::BigInt;
use num_rational::BigRational;
use seeded::{Family, Stream};

use crate::terms::numbers;

fn program(order: Order) -> Program {
    let mode = Mode { extension: Extension::Differential, ..Mode::default() };
    Program::new(order, mode).unwrap()
}

fn read(program: &Program, text: &str) -> Checked {
    let source = Source::new("<test>", text.as_bytes().to_vec());
    elaborate(program, &source, &parse::query(&source).unwrap()).unwrap()
}

fn coordinates<R: Ring>(ring: R, order: Order, text: &str, arguments: &[String]) -> Vec<R::Element> {
    let program = program(order);
    let subject = read(&program, text);
    let arguments: Vec<Json> = arguments.iter().map(|a| Json::parse(a).unwrap()).collect();
    let dimensions = dimensions(&BTreeMap::new(), &subject.formula, &arguments).unwrap();
    let carrier = Dense::new(ring, dimensions);
    denote(carrier, &program, &subject, &arguments, Extension::Differential).unwrap().coordinates().unwrap()
}

/// A 2×2 matrix of small integers.
type Small = [[i64; 2]; 2];

const IDENTITY: Small = [[1, 0], [0, 1]];

fn product(f: Small, g: Small) -> Small {
    let entry = |i: usize, j: usize| (0..2).map(|k| f[i][k] * g[k][j]).sum();
    [[entry(0, 0), entry(0, 1)], [entry(1, 0), entry(1, 1)]]
}

fn sum(f: Small, g: Small) -> Small {
    [[f[0][0] + g[0][0], f[0][1] + g[0][1]], [f[1][0] + g[1][0], f[1][1] + g[1][1]]]
}

fn small(stream: &mut Stream) -> Small {
    let mut entry = || stream.below(7) as i64 - 3;
    [[entry(), entry()], [entry(), entry()]]
}

fn json(f: Small) -> String {
    format!("{f:?}")
}

fn integers(f: Small) -> Vec<BigInt> {
    f.iter().flatten().map(|x| BigInt::from(*x)).collect()
}

fn digits(stream: &mut Stream, length: u64) -> String {
    (0..length).map(|_| if stream.below(2) == 0 { '0' } else { '1' }).collect()
}

#[test]
fn words_are_products() {
    for seed in numbers(60) {
        let mut stream = Family::named("linear-logic:words").stream(seed);
        let length = stream.below(9);
        let (word, x, y) = (digits(&mut stream, length), small(&mut stream), small(&mut stream));
        let factors: Vec<Small> = word.chars().map(|c| if c == '0' { x } else { y }).collect();
        let arguments = [json(x), json(y)];
        let text = format!("0b{word}");
        let literal = factors.iter().fold(IDENTITY, |found, factor| product(found, *factor));
        assert_eq!(coordinates(Integers, Order::Literal, &text, &arguments), integers(literal), "{word}");
        let reversed = factors.iter().rev().fold(IDENTITY, |found, factor| product(found, *factor));
        assert_eq!(
            coordinates(Integers, Order::FirstDigitFirst, &text, &arguments),
            integers(reversed),
            "{word}"
        );
    }
}

/// With X = [[1,1],[0,1]] and Y = [[1,0],[1,1]] the literal product of a word determines the word.
#[test]
fn words_are_decoded_from_their_matrices() {
    for seed in numbers(60) {
        let mut stream = Family::named("linear-logic:decode").stream(seed);
        let length = stream.below(12);
        let word = digits(&mut stream, length);
        let other = digits(&mut stream, 3);
        for text in [
            format!("0b{word}"),
            format!("concat 0b{word} 0b{other}"),
            format!("repeat [0b{other}]"),
            format!("subst 0b{other} [0b{word}] [0b1]"),
            format!("flip 0b{word}"),
        ] {
            let found = coordinates(
                Integers,
                Order::Literal,
                &text,
                &["[[1,1],[0,1]]".into(), "[[1,0],[1,1]]".into()],
            );
            let [mut a, mut b, mut c, mut d] = <[BigInt; 4]>::try_from(found).unwrap();
            let mut decoded = Vec::new();
            while (&a, &b, &c, &d) != (&1.into(), &0.into(), &0.into(), &1.into()) {
                let is_zero = a >= c && b >= d;
                decoded.push(!is_zero);
                if is_zero {
                    (a, b) = (&a - &c, &b - &d);
                } else {
                    (c, d) = (&c - &a, &d - &b);
                }
            }
            let program = program(Order::Literal);
            let subject = read(&program, &text);
            let recognised = recognise(&subject.term, &subject.formula, Order::Literal);
            assert_eq!(recognised, Some(Recognised::Word(decoded)), "{text}");
        }
    }
}

#[test]
fn the_free_monoid_agrees_with_matrices() {
    let program = program(Order::Literal);
    for seed in numbers(40) {
        let mut stream = Family::named("linear-logic:monoid").stream(seed);
        let (first, second) = (digits(&mut stream, 3), digits(&mut stream, 2));
        let (x, y) = (small(&mut stream), small(&mut stream));
        let mixture = format!(
            "{{\"bang\":{{\"lin\":[[2,{{\"term\":\"0b{first}\"}}],[-1,{{\"term\":\"0b{second}\"}}]]}}}}"
        );
        let subject = read(&program, "repeat");
        let arguments: Vec<Json> = [mixture.as_str(), r#"{"gen":"x"}"#, r#"{"gen":"y"}"#]
            .iter()
            .map(|a| Json::parse(a).unwrap())
            .collect();
        let carrier = Words::new(Epsilons::new(Integers));
        let mut words = denote(carrier, &program, &subject, &arguments, Extension::None).unwrap();
        let mut total = [[0; 2]; 2];
        for (word, coefficient) in words.words().unwrap() {
            let factor = word.chars().fold(IDENTITY, |f, c| product(f, if c == 'x' { x } else { y }));
            let coefficient: i64 = coefficient.finite_part().unwrap().to_string().parse().unwrap();
            total = sum(total, factor.map(|row| row.map(|entry| coefficient * entry)));
        }
        let found = coordinates(Integers, Order::Literal, "repeat", &[mixture, json(x), json(y)]);
        assert_eq!(found, integers(total), "seed {seed}");
    }
}

/// The sum over all ways to put the ν's in place of factors; factors that are not replaced are `point`.
fn injections(slots: &[bool], point: Small, other: Small, along: &[Small]) -> Small {
    fn place(factors: &mut Vec<Small>, taken: &mut Vec<bool>, along: &[Small]) -> Small {
        let Some((first, rest)) = along.split_first() else {
            return factors.iter().fold(IDENTITY, |found, factor| product(found, *factor));
        };
        let mut total = [[0; 2]; 2];
        for i in 0..factors.len() {
            if !taken[i] {
                let before = std::mem::replace(&mut factors[i], *first);
                taken[i] = true;
                total = sum(total, place(factors, taken, rest));
                taken[i] = false;
                factors[i] = before;
            }
        }
        total
    }
    let mut factors: Vec<Small> = slots.iter().map(|own| if *own { point } else { other }).collect();
    let mut taken: Vec<bool> = slots.iter().map(|own| !own).collect();
    place(&mut factors, &mut taken, along)
}

fn ket(point: Small, along: &[Small]) -> String {
    let along: Vec<String> = along.iter().map(|v| json(*v)).collect();
    format!("{{\"ket\":{},\"along\":[{}]}}", json(point), along.join(","))
}

#[test]
fn kets_are_sums_over_injections() {
    for seed in numbers(40) {
        let mut stream = Family::named("linear-logic:kets").stream(seed);
        let count = stream.below(4);
        let along: Vec<Small> = (0..count).map(|_| small(&mut stream)).collect();
        let (p, q) = (small(&mut stream), small(&mut stream));
        let n = stream.below(5);
        let found = coordinates(Epsilons::new(Integers), Order::Literal, &n.to_string(), &[ket(p, &along)]);
        let wanted = injections(&vec![true; n as usize], p, q, &along);
        check(&found, wanted, &format!("numeral {n}, seed {seed}"));
        let word = digits(&mut stream, 5);
        let slots: Vec<bool> = word.chars().map(|c| c == '0').collect();
        let text = format!("0b{word}");
        let found = coordinates(Epsilons::new(Integers), Order::Literal, &text, &[ket(p, &along), json(q)]);
        check(&found, injections(&slots, p, q, &along), &format!("word {word}, seed {seed}"));
        // The same through the differential terms.
        if let [v, w] = along.as_slice() {
            let text = format!(
                "\\q v w. {n} (cocopy (cocopy q (coderelict v)) (coderelict w)) \
                 : !(a -o a) -o (a -o a) -o (a -o a) -o a -o a"
            );
            let arguments = [json(p), json(*v), json(*w)];
            let found = coordinates(Epsilons::new(Integers), Order::Literal, &text, &arguments);
            check(&found, wanted, &format!("cocopy, numeral {n}, seed {seed}"));
        }
    }
}

#[track_caller]
fn check(found: &[linear_logic::ring::Infinitesimal<BigInt>], wanted: Small, what: &str) {
    let found: Vec<BigInt> = found.iter().map(|e| e.finite_part().cloned().unwrap_or_default()).collect();
    assert_eq!(found, integers(wanted), "{what}");
}

#[test]
fn taylor_sums_are_values() {
    for seed in numbers(20) {
        let mut stream = Family::named("linear-logic:taylor").stream(seed);
        let (p, w) = (small(&mut stream), small(&mut stream));
        for (text, degree) in [("3", 3), ("mult [2] 2", 4), ("add 1 2", 3)] {
            let mut total = vec![BigRational::from_integer(0.into()); 4];
            let mut factorial = BigInt::from(1);
            for s in 0..=degree {
                factorial *= BigInt::from(s.max(1));
                let along = vec![w; s as usize];
                let part = coordinates(Epsilons::new(Rationals), Order::Literal, text, &[ket(p, &along)]);
                for (entry, term) in total.iter_mut().zip(part) {
                    let term = term.finite_part().cloned().unwrap_or_default();
                    *entry += term / BigRational::from_integer(factorial.clone());
                }
            }
            let moved = coordinates(Rationals, Order::Literal, text, &[json(sum(p, w))]);
            assert_eq!(total, moved, "{text}, seed {seed}");
        }
    }
}

#[test]
fn derivatives_are_limits_of_differences() {
    let mut stream = Family::named("linear-logic:differences").stream(0);
    let mut entry = || stream.uniform() - 0.5;
    let p = [entry(), entry(), entry(), entry()];
    let w = [entry(), entry(), entry(), entry()];
    let matrix = |m: [f64; 4]| format!("[[{},{}],[{},{}]]", m[0], m[1], m[2], m[3]);
    let ket = format!("{{\"ket\":{},\"along\":[{}]}}", matrix(p), matrix(w));
    for text in ["5", "mult [2] 3", "exp [2] 2"] {
        let exact = coordinates(Epsilons::new(Double), Order::Literal, text, std::slice::from_ref(&ket));
        let step = 1e-5;
        let at = |t: f64| {
            let moved: Vec<f64> = p.iter().zip(w).map(|(p, w)| p + t * w).collect();
            coordinates(Double, Order::Literal, text, &[matrix(moved.try_into().unwrap())])
        };
        for ((up, down), exact) in at(step).iter().zip(at(-step)).zip(exact) {
            let exact = exact.finite_part().copied().unwrap_or(0.0);
            let difference = (up - down) / (2.0 * step);
            assert!(
                (difference - exact).abs() <= 1e-6 * exact.abs().max(0.1),
                "{text}: {difference}, not {exact}"
            );
        }
    }
}

#[test]
fn repeat_nested_twenty_times_costs_at_most_42_products() {
    let program = program(Order::Literal);
    let text = (0..20).fold("0b01".to_owned(), |text, _| format!("repeat [{text}]"));
    let subject = read(&program, &text);
    let matrices: Vec<Json> =
        ["[[1,2],[3,4]]", "[[0,1],[1,1]]"].iter().map(|m| Json::parse(m).unwrap()).collect();
    let carrier = Dense::new(Modular::new(1_000_000_007).unwrap(), BTreeMap::from([(Rc::from("a"), 2)]));
    let start = std::time::Instant::now();
    let mut denotation = denote(carrier, &program, &subject, &matrices, Extension::None).unwrap();
    denotation.coordinates().unwrap();
    let products = denotation.evaluator.carrier().work().div_ceil(2 * 2 * 2);
    assert!(products <= 42, "{products} products in {:?}", start.elapsed());
}

/// A ring of a user: the tropical sum and product of distances, where 0 is no way and 1 is no distance.
struct Tropical;

impl Ring for Tropical {
    type Element = Option<u64>;

    fn zero(&self) -> Option<u64> {
        None
    }

    fn one(&self) -> Option<u64> {
        Some(0)
    }

    fn add(&self, a: &Option<u64>, b: &Option<u64>) -> Result<Option<u64>, Fault> {
        Ok(a.iter().chain(b).min().copied())
    }

    fn mul(&self, a: &Option<u64>, b: &Option<u64>) -> Result<Option<u64>, Fault> {
        let (Some(a), Some(b)) = (a, b) else { return Ok(None) };
        a.checked_add(*b).map(Some).ok_or(Fault::Overflow)
    }

    fn integer(&self, value: &BigInt) -> Result<Option<u64>, Fault> {
        Ok((*value != BigInt::from(0)).then_some(0))
    }

    /// A distance.
    fn decimal(&self, text: &str, _: &BigRational) -> Result<Option<u64>, Fault> {
        text.parse().map(Some).map_err(|_| Fault::NotInRing)
    }
}

#[test]
fn a_user_brings_a_ring() {
    // Shortest ways of three steps; a semiring is enough where nothing is subtracted.
    let found = coordinates(Tropical, Order::Literal, "3", &["[[9,1],[2,9]]".to_owned()]);
    assert_eq!(found, [Some(12), Some(4), Some(5), Some(12)]);
}

fn words(text: &str, arguments: &[&str]) -> Result<Vec<(String, BigInt)>, Refusal> {
    let program = program(Order::Literal);
    let subject = read(&program, text);
    let arguments: Vec<Json> = arguments.iter().map(|a| Json::parse(a).unwrap()).collect();
    let carrier = Words::new(Epsilons::new(Integers));
    let mut denotation = denote(carrier, &program, &subject, &arguments, Extension::None)?;
    let found = denotation.words()?.into_iter();
    Ok(found.map(|(word, c)| (word, c.finite_part().cloned().unwrap_or_default())).collect())
}

/// A long word that is made step by step: the words on the way share its letters, which are millions, not billions.
#[test]
fn long_words_are_made_step_by_step() {
    let found = words("2000{int} [\\n. add n 8000] 0", &[r#"{"gen":"x"}"#]).unwrap();
    let [(word, coefficient)] = found.as_slice() else { panic!("{} words", found.len()) };
    assert_eq!((word.len(), coefficient), (16_000_000, &BigInt::from(1)));
    assert!(word.bytes().all(|letter| letter == b'x'));
    let program = program(Order::Literal);
    for (text, wanted) in [
        ("mult [4096] 4095", Some(Recognised::Numeral(4096 * 4095))),
        // One letter more than a word may have.
        ("mult [4096] 4096", None),
    ] {
        let subject = read(&program, text);
        let limits = Limits { steps: Some(0), ..Limits::default() };
        let term = reduce::normalize(&subject.term, Order::Literal, limits, |_, _| Ok(())).unwrap().term;
        assert_eq!(recognise(&term, &subject.formula, Order::Literal), wanted, "{text}");
    }
}

#[test]
fn sums_of_words_are_bounded() {
    let both = r#"{"bang":{"lin":[[1,{"gen":"x"}],[1,{"gen":"y"}]]}}"#;
    let found = words("12", &[both]).unwrap();
    let word =
        |number: usize| (0..12).rev().map(|bit| if number >> bit & 1 == 1 { 'y' } else { 'x' }).collect();
    assert_eq!(
        found,
        (0..1 << 12).map(|number| (word(number), BigInt::from(1))).collect::<Vec<(String, _)>>()
    );
    for text in ["24", "1000000", "100{int} [\\n. add n 12] 0"] {
        assert_eq!(words(text, &[both]).unwrap_err().kind, Kind::Limit, "{text}");
    }
}
