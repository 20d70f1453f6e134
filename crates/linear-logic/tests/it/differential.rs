//! Kets of functions, at types that are no operators between atoms, beside the sum over injections of section 10.3.
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::{Duration, Instant};

use linear_logic::argument::denote;
use linear_logic::denote::Dense;
use linear_logic::elaborate::{Extension, Mode, elaborate};
use linear_logic::error::{Kind, Refusal, Source};
use linear_logic::json::Json;
use linear_logic::literal::Order;
use linear_logic::parse;
use linear_logic::program::Program;
use linear_logic::ring::{Epsilons, Fault, Infinitesimal, Integers, Modular, Ring};
use seeded::{Family, Stream};

use crate::terms::numbers;

/// The coordinates of a term at arguments, where `a` has this dimension.
fn value<R: Ring>(
    ring: R,
    text: &str,
    dimension: usize,
    arguments: &[String],
) -> Result<Vec<R::Element>, Refusal> {
    let mode = Mode { extension: Extension::Differential, ..Mode::default() };
    let program = Program::new(Order::Literal, mode).unwrap();
    let source = Source::new("<test>", text.as_bytes().to_vec());
    let subject = elaborate(&program, &source, &parse::query(&source).unwrap())
        .unwrap_or_else(|refusal| panic!("{text}: {refusal}"));
    let arguments: Vec<Json> = arguments.iter().map(|a| Json::parse(a).unwrap()).collect();
    let carrier = Dense::new(ring, BTreeMap::from([(Rc::from("a"), dimension)]));
    denote(carrier, &program, &subject, &arguments, Extension::Differential)?.coordinates()
}

/// The same over the integers with infinitesimals, all of which are bound in the end.
fn integers(text: &str, dimension: usize, arguments: &[String]) -> Vec<i64> {
    let found = value(Epsilons::new(Integers), text, dimension, arguments).unwrap();
    found.iter().map(|e| i64::try_from(e.finite_part().cloned().unwrap_or_default()).unwrap()).collect()
}

/// A square matrix, row by row.
type Square = Vec<i64>;

fn size(f: &Square) -> usize {
    (0..).find(|n| n * n >= f.len()).unwrap()
}

fn identity(n: usize) -> Square {
    (0..n * n).map(|at| i64::from(at / n == at % n)).collect()
}

fn product(f: &Square, g: &Square) -> Square {
    let n = size(f);
    (0..n * n).map(|at| (0..n).map(|k| f[at / n * n + k] * g[k * n + at % n]).sum()).collect()
}

fn sum(f: &Square, g: &Square) -> Square {
    f.iter().zip(g).map(|(x, y)| x + y).collect()
}

/// A formal ∣ν₁,…,νₛ⟩ₚ.
#[derive(Clone)]
struct Ket {
    point: Square,
    along: Vec<Square>,
}

/// The product of a word at two kets: the sum over all ways to put the ν's of each into different places of its own.
fn injections(word: &[bool], kets: [&Ket; 2]) -> Square {
    let factors: Vec<&Square> = word.iter().map(|one| &kets[usize::from(*one)].point).collect();
    let mut todo: Vec<(bool, &Square)> = kets[0].along.iter().map(|v| (false, v)).collect();
    todo.extend(kets[1].along.iter().map(|v| (true, v)));
    fn place<'a>(
        word: &[bool],
        factors: &mut Vec<&'a Square>,
        taken: u32,
        todo: &[(bool, &'a Square)],
        n: usize,
    ) -> Square {
        let Some(((digit, vector), rest)) = todo.split_first() else {
            return factors.iter().fold(identity(n), |found, factor| product(&found, factor));
        };
        let mut total = vec![0; n * n];
        for at in (0..word.len()).filter(|at| word[*at] == *digit && taken >> at & 1 == 0) {
            let before = std::mem::replace(&mut factors[at], vector);
            total = sum(&total, &place(word, factors, taken | 1 << at, rest, n));
            factors[at] = before;
        }
        total
    }
    place(word, &mut factors.clone(), 0, &todo, size(&kets[0].point))
}

/// A type, the dimension of `a`, and functions on the type, which may use an operator `m` of type `!(a -o a)`.
const BASES: [(&str, usize, &[&str]); 6] = [
    ("1", 1, &["\\x. x"]),
    ("a", 2, &["\\x. x", "\\x. derelict m x", "\\x. derelict m (derelict m x)"]),
    (
        "a & a",
        2,
        &["\\x. x", "\\x. <snd x, derelict m (fst x)>", "\\x. <fst x, fst x>", "\\x. <snd x, snd x>"],
    ),
    (
        "a * a",
        2,
        &["\\x. x", "\\x. let y * z = x in z * derelict m y", "\\x. let y * z = x in derelict m z * y"],
    ),
    ("a -o a", 2, &["\\f. f", "\\f z. derelict m (f z)", "\\f z. f (derelict m z)"]),
    ("(1 -o a) & a", 1, &["\\x. x", "\\x. <\\u. let () = u in snd x, derelict m (fst x ())>"]),
];

struct Draw {
    stream: Stream,
    base: &'static str,
    functions: Vec<(&'static str, Square)>,
}

impl Draw {
    fn below(&mut self, n: u64) -> usize {
        self.stream.below(n) as usize
    }

    /// A term of type !(B -o B), with the ket that it is.
    fn ket(&mut self, depth: usize, most: usize) -> (String, Ket) {
        let at = self.below(self.functions.len() as u64);
        let (text, matrix) = self.functions[at].clone();
        let zero = vec![0; matrix.len()];
        match self.below(if depth == 0 { 4 } else { 9 }) {
            0 => (format!("coweaken{{({0}) -o {0}}}", self.base), Ket { point: zero, along: Vec::new() }),
            1 => (format!("[{text}]"), Ket { point: matrix, along: Vec::new() }),
            2 | 3 if most > 0 => (format!("(coderelict ({text}))"), Ket { point: zero, along: vec![matrix] }),
            // A box that is its source again.
            4 => {
                let (text, ket) = self.ket(depth - 1, most);
                (format!("(promote (({text} : !(({0}) -o {0})) for y) in \\x. derelict y x)", self.base), ket)
            }
            _ if depth > 0 => {
                let (left, mut ket) = self.ket(depth - 1, most);
                let (right, other) = self.ket(depth - 1, most - ket.along.len());
                ket.point = sum(&ket.point, &other.point);
                ket.along.extend(other.along);
                (format!("(cocopy {left} {right})"), ket)
            }
            _ => (format!("[{text}]"), Ket { point: matrix, along: Vec::new() }),
        }
    }

    /// A numeral or a word at B, as a term and as its product.
    fn subject(&mut self) -> (String, Vec<bool>, bool) {
        let base = self.base;
        let (m, n) = (self.below(4), self.below(4));
        let word: Vec<bool> = (0..self.below(5)).map(|_| self.below(2) == 1).collect();
        let digits: String = word.iter().map(|one| if *one { '1' } else { '0' }).collect();
        let twice = [word.clone(), word.clone()].concat();
        match self.below(6) {
            0 | 1 => (format!("{n}{{{base}}}"), vec![false; n], false),
            2 => (format!("mult{{{base}}} [{m}] {n}"), vec![false; m * n], false),
            3 => (format!("add{{{base}}} {m} {n}"), vec![false; m + n], false),
            4 => (format!("repeat{{{base}}} [0b{digits}]"), twice, true),
            _ => (format!("0b{digits}{{{base}}}"), word, true),
        }
    }
}

#[test]
fn kets_of_functions_are_sums_over_injections() {
    let mut orders = BTreeMap::new();
    for seed in numbers(300) {
        let mut stream = Family::named("linear-logic:function-kets").stream(seed);
        let (base, dimension, functions) = BASES[stream.below(BASES.len() as u64) as usize];
        let mut entry = || stream.below(5) as i64 - 2;
        let m: Vec<Vec<i64>> = (0..dimension).map(|_| (0..dimension).map(|_| entry()).collect()).collect();
        let arguments = [format!("{m:?}")];
        let at = |text: &str| format!("\\m. {text} : !(a -o a) -o ({base}) -o {base}");
        let functions = functions.iter().map(|f| (*f, integers(&at(f), dimension, &arguments))).collect();
        let mut draw = Draw { stream, base, functions };
        let (subject, word, is_word) = draw.subject();
        let (first, p) = draw.ket(3, 3);
        let (second, q) = if is_word { draw.ket(2, 2) } else { (String::new(), p.clone()) };
        let text = at(&format!("{subject} {first} {second}"));
        let found = integers(&text, dimension, &arguments);
        let q = if is_word { q } else { Ket { along: Vec::new(), ..q } };
        assert_eq!(found, injections(&word, [&p, &q]), "seed {seed}: {text}");
        *orders.entry(p.along.len() + q.along.len()).or_insert(0) += 1;
    }
    // All orders of derivatives were drawn.
    assert!(orders.len() >= 5, "{orders:?}");
}

/// The same ket by an argument, whose infinitesimals are free, and by terms that bind them.
#[test]
fn kets_of_functions_are_those_of_arguments() {
    let subjects = [
        "3{B} q",
        "mult{B} [2] 2 q",
        "exp{B} [2] 2 q",
        "repeat{B} [0b01] q [\\x. x]",
        "2{B} (promote (q for r) in \\x. derelict r (derelict r x))",
        "2{B} (cocopy q [\\x. x])",
        "3{B} (cocopy q (coderelict (\\x. x)))",
        "2{B} (cocopy (promote (q for r) in \\x. derelict r (derelict r x)) (coderelict (\\x. x)))",
        "2{B -o B} [\\n x. derelict q (n x)] (\\x. x)",
        "0b01{B} q (coderelict (2{B} q))",
    ];
    for (number, seed) in numbers(60).enumerate() {
        let mut stream = Family::named("linear-logic:function-arguments").stream(seed);
        let (base, dimension, n) =
            [("1", 1, 1), ("a & a", 1, 2), ("a * 1", 2, 2), ("1 -o a", 2, 2)][stream.below(4) as usize];
        let mut matrix = || {
            let mut entry = || stream.below(5) as i64 - 2;
            format!("{:?}", (0..n).map(|_| (0..n).map(|_| entry()).collect()).collect::<Vec<Vec<i64>>>())
        };
        let (p, v, w) = (matrix(), matrix(), matrix());
        let end = format!("(({base}) -o {base})");
        let subject = subjects[number % subjects.len()].replace('B', &format!("({base})"));
        let free = format!("\\q. {subject} : !{end} -o {end}");
        let bound = format!(
            "\\p v w. (\\q:!{end}. {subject}) (cocopy (cocopy p (coderelict v)) (coderelict w)) \
             : !{end} -o {end} -o {end} -o {end}"
        );
        let ket = format!("{{\"ket\":{p},\"along\":[{v},{w}]}}");
        let wanted = integers(&free, dimension, &[ket]);
        assert_eq!(integers(&bound, dimension, &[p, v, w]), wanted, "seed {seed}: {bound}");
    }
}

#[test]
fn derivatives_of_functions_count_their_places() {
    let along = |n: usize| format!("{n}{{1}} (cocopy [\\x:1. x] (coderelict (\\x:1. x))) ()");
    for n in 0..5 {
        assert_eq!(integers(&along(n), 1, &[]), [n as i64]);
    }
    assert_eq!(integers("2{1} (coderelict (\\x:1. x)) ()", 1, &[]), [0]);
    let pairs = "2{a & a} (cocopy [\\x:a & a. x] (coderelict (\\x:a & a. x)))";
    assert_eq!(integers(pairs, 1, &[]), [2, 0, 0, 2]);
}

/// A definition is evaluated once, and its bound ε's are those of every use: here a derivative of a function is an
/// argument of the same derivative.
#[test]
fn a_derivative_of_a_derivative_does_not_capture() {
    let derivative = "(\\f:!(1 -o 1). 2{1} (cocopy f (coderelict (\\x:1. x))))";
    // The derivative of g ↦ g² along 1 is 2g: at g = 2f, 4f.
    let text = format!("{derivative} [{derivative} [\\x:1. x]] ()");
    assert_eq!(integers(&text, 1, &[]), [4]);
    let end = "(1 -o 1)";
    let twice = format!(
        "(\\d:!(!{end} -o {end}). (derelict d) (promote (d for e) in derelict e [\\x:1. x]) ()) [{derivative}]"
    );
    assert_eq!(integers(&twice, 1, &[]), [4]);
}

/// Every share of a product that has no value is left out, so fifteen directions are as quick as three.
#[test]
fn many_directions_of_tensors() {
    let nested = |count: usize| {
        (1..count).fold("coderelict (derelict v * derelict v)".to_owned(), |text, _| {
            format!("cocopy ({text}) (coderelict (derelict v * derelict v))")
        })
    };
    let start = Instant::now();
    // One direction is the direction; more are 0.
    for (count, wanted) in [(1, [1, 2, 2, 4]), (2, [0; 4]), (15, [0; 4]), (16, [0; 4])] {
        let text = format!("\\v. derelict ({}) : !a -o a * a", nested(count));
        assert_eq!(integers(&text, 2, &["[1,2]".to_owned()]), wanted, "{count}");
    }
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
    let refusal = value(
        Epsilons::new(Integers),
        &format!("\\v. derelict ({}) : !a -o a * a", nested(17)),
        2,
        &["[1,2]".to_owned()],
    );
    assert_eq!(refusal.unwrap_err().kind, Kind::Limit);
}

/// Both halves of a tensor, and its scalar, have all directions: the sum over all shares, and its bound.
#[test]
fn directions_that_are_shared_out() {
    let text = |count: usize| {
        let ket = (0..count).fold("q".to_owned(), |ket, _| format!("(cocopy {ket} (coderelict (\\x:1. x)))"));
        format!(
            "\\q z. copy {ket} as k, l in copy l as m, n in \
             let () = 9{{1}} k (derelict z) in (9{{1}} m (derelict z)) * (9{{1}} n (derelict z)) \
             : !(1 -o 1) -o !1 -o 1 * 1"
        )
    };
    let at = |count| value(Epsilons::new(Integers), &text(count), 1, &["[[1]]".into(), "1".into()]);
    // (1 + t)²⁷ has the derivatives 27, 27·26, … at 0.
    let mut wanted = 1;
    for count in 0..6 {
        let found = at(count).unwrap();
        assert_eq!(found[0].finite_part().cloned(), Some(wanted.into()), "{count}");
        wanted *= 27 - count as i64;
    }
    let start = Instant::now();
    assert_eq!(at(14).unwrap_err().kind, Kind::Limit);
    assert!(start.elapsed() < Duration::from_secs(30), "{:?}", start.elapsed());
}

/// ∣ν,…,ν⟩ₚ of a numeral is s! times the coefficient of tˢ of (P + tν)ⁿ: by polynomials modulo a prime.
#[test]
fn twelve_directions_of_a_numeral() {
    const P: u64 = 1_000_003;
    let (point, along, n) = ([1, 1, 0, 1], [0, 1, 1, 0], 16);
    for s in [3, 8, 12] {
        // The coefficients of 1, t, …, tˢ of each entry.
        let mut power = [0, 1, 2, 3].map(|at| {
            let mut one = vec![0; s + 1];
            one[0] = u64::from(at == 0 || at == 3);
            one
        });
        for _ in 0..n {
            let power_of = &power;
            let entry = |i: usize, j: usize| {
                (0..=s).map(move |d| {
                    let term = |k: usize| {
                        let lower = if d > 0 { power_of[2 * i + k][d - 1] * along[2 * k + j] } else { 0 };
                        power_of[2 * i + k][d] * point[2 * k + j] + lower
                    };
                    (term(0) + term(1)) % P
                })
            };
            power = [(0, 0), (0, 1), (1, 0), (1, 1)].map(|(i, j)| entry(i, j).collect());
        }
        let factorial = (1..=s as u64).fold(1, |product, k| product * k % P);
        let wanted = power.map(|entry| entry[s] * factorial % P);
        let ket = format!("{{\"ket\":[[1,1],[0,1]],\"along\":[{}]}}", vec!["[[0,1],[1,0]]"; s].join(","));
        let found = value(Epsilons::new(Modular::new(P).unwrap()), "16", 2, &[ket]).unwrap();
        let found: Vec<u64> = found.iter().map(|e| e.finite_part().copied().unwrap_or(0)).collect();
        assert_eq!(found, wanted, "{s} directions");
    }
}

/// A product by tables of subsets beside the product term by term.
#[test]
fn products_of_infinitesimals_are_products_of_terms() {
    let ring = Epsilons::new(Integers);
    for seed in numbers(200) {
        let mut stream = Family::named("linear-logic:infinitesimals").stream(seed);
        let names = 1 + stream.below(8);
        let mut element = || {
            let count = stream.below(1 + (1 << names));
            let term = |_| {
                let mut term = ring.integer(&(stream.below(7) as i64 - 3).into()).unwrap();
                for name in (0..names).filter(|_| stream.below(2) == 0) {
                    term = ring.mul(&term, &ring.epsilon(3 * name).unwrap()).unwrap();
                }
                term
            };
            (0..count).map(term).collect::<Vec<Infinitesimal<_>>>()
        };
        let (a, b) = (element(), element());
        let sum = |terms: &[Infinitesimal<_>]| {
            terms.iter().fold(ring.zero(), |total, term| ring.add(&total, term).unwrap())
        };
        let pairs = a.iter().flat_map(|x| b.iter().map(|y| ring.mul(x, y).unwrap())).collect::<Vec<_>>();
        assert_eq!(ring.mul(&sum(&a), &sum(&b)).unwrap(), sum(&pairs), "seed {seed}");
    }
}

#[test]
fn names_that_meet_and_work_that_is_bounded() {
    let ring = Epsilons::within(Integers, 3000);
    let [x, y] = [1, 2].map(|name| ring.epsilon(name).unwrap());
    // x + y becomes 2x, and xy becomes x² = 0.
    let sum = ring.add(&x, &y).unwrap();
    let renamed = ring.rename(&sum, &[(2, 1)]).unwrap();
    assert_eq!(renamed, ring.add(&x, &x).unwrap());
    let product = ring.mul(&x, &y).unwrap();
    assert_eq!(ring.rename(&product, &[(2, 1)]).unwrap(), ring.zero());
    let swapped = ring.rename(&sum, &[(1, 2), (2, 1)]).unwrap();
    assert_eq!(swapped, sum);
    // All products of seven ε's have 128 terms: their product takes 3⁷ = 2187 products, not 4⁷.
    let all = (1..8).fold(ring.one(), |all, name| {
        ring.mul(&all, &ring.add(&ring.one(), &ring.epsilon(name).unwrap()).unwrap()).unwrap()
    });
    let square = ring.mul(&all, &all).unwrap();
    let top = ring.coefficient(&square, &[1, 2, 3, 4, 5, 6, 7], &[]);
    assert_eq!(top.finite_part().cloned(), Some(128.into()));
    assert_eq!(ring.mul(&all, &all).unwrap_err(), Fault::TooLong);
}
