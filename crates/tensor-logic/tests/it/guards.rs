//! Guards with quotients, remainders and magnitudes of indices: what they admit is listed, and is what the reference says.

use seeded::Stream;
use tensor_logic::auto::Auto;
use tensor_logic::engine::{Budget, Engine, Parameters, Request};
use tensor_logic::fast::{Fast, Storage};
use tensor_logic::program::TensorId;

use crate::common;
use crate::common::engines::{STORAGES, analysed, answers_of_both};

/// One of these.
fn one<'a>(random: &mut Stream, of: &[&'a str]) -> &'a str {
    of[random.below(of.len() as u64) as usize]
}

/// A sum of multiples of indices.
fn sum(random: &mut Stream) -> String {
    one(random, &["p", "q", "p + 1", "2 * q", "p - q", "p + 2 * q - 3", "-p", "3 - q", "5 * p + q", "q + 40"])
        .to_owned()
}

fn side(random: &mut Stream) -> String {
    let by = one(random, &["1", "2", "3", "7", "64"]);
    let inner = sum(random);
    match random.below(6) {
        0 | 1 => format!("({inner}) / {by}"),
        2 => format!("(({inner}) / {by}) / 3"),
        3 => format!("({inner}) % {by}"),
        4 => format!("({inner}) / {by} + 1"),
        _ => inner,
    }
}

fn guard(random: &mut Stream) -> String {
    let sign = one(random, &["==", "==", "==", "<=", "<", ">=", ">", "!="]);
    if random.below(4) == 0 {
        let (sign, most) =
            (one(random, &["<=", "<", "==", ">="]), one(random, &["5", "0", "-1", "2.5", "q", "7 / 2"]));
        let magnitude = format!("abs({})", one(random, &["p - q", "p - 2 * q + 1", "q", "p", "q - 4"]));
        return match random.below(3) {
            0 => format!("{most} >= {magnitude}"),
            _ => format!("{magnitude} {sign} {most}"),
        };
    }
    if random.below(5) == 0 {
        let (a, b) = (value(random), value(random));
        return match random.below(4) {
            0 => format!("{a} - {b} {sign} 0"),
            1 => format!("0 {sign} -({a}) + {b}"),
            _ => format!("{a} {sign} {b}"),
        };
    }
    if random.below(3) == 0 {
        let (value, side) = (value(random), sum(random));
        return if random.below(2) == 0 {
            format!("{value} {sign} {side}")
        } else {
            format!("{side} {sign} {value}")
        };
    }
    format!("{} {sign} {}", side(random), side(random))
}

/// What is computed or given at one or both of the indices, also between integers, below 0 and not everywhere.
fn value(random: &mut Stream) -> String {
    let values = ["T[p]", "U[q]", "T[p] + U[q]", "W[q]", "W(q)", "W(q) - 4", "sum[k](U[k + q] / 4 | k < 4)"];
    // Also what is infinite somewhere, or no number.
    let value = match random.below(6) {
        0 => one(random, &["1 / T[p]", "3 / U[q]", "T[p] / T[p]", "-1 / W[q]"]),
        _ => one(random, &values),
    };
    match random.below(4) {
        0 => format!("2 * {value} + 1"),
        1 => format!("-({value})"),
        _ => value.to_owned(),
    }
}

/// Indices with some of these sizes, from wherever.
fn program(random: &mut Stream, sizes: &[i64]) -> String {
    let domain = |random: &mut Stream| {
        let (from, size) =
            ([0, 0, -17, 5, -3][random.below(5) as usize], sizes[random.below(sizes.len() as u64) as usize]);
        format!("{from}..{}", from + size - 1)
    };
    let (p, q) = (domain(random), domain(random));
    let guards: Vec<String> = (0..1 + random.below(2)).map(|_| guard(random)).collect();
    let guards = guards.join(", ");
    let equation = match random.below(8) {
        0 => format!("M[p] = 2 + q | {guards}"),
        1 => format!("M[p, q] = p + 3 * q | {guards}"),
        2 => format!("V[q] = q * q\nM[p] max= V[q] - p | {guards}"),
        3 => format!("M[p, q.] = softmax(p - q | {guards})"),
        4 => format!("M(p, q) <- {guards}"),
        5 => format!("A(p) <- p % 2 == 0\nB(q) <- q % 3 != 1\nM(p, q) <- A(p), B(q), {guards}"),
        6 => format!("M[p] = sum[q](U[q] + 1 | {guards})"),
        _ => format!("E(q) <- q % 3 != 1\nM(p) += E(q) | {guards}"),
    };
    let values = "T[p] = 0.5 m - 2 | m = (7 * p) % 23\nU[q] = m - 9 | m = (5 * q) % 40\n\
                  W(q) += m - 3 | m = q / 2, q % 3 != 1\n";
    format!("p : {p}\nq : {q}\nk : 0..9\n{values}{equation}\n")
}

/// How many answers are the same in each storage as by the interpreter.
fn same(sizes: &[i64], programs: u64, storages: &[Storage]) -> usize {
    let first = seeded::test_seed();
    let answers = |seed: u64| {
        let mut random = seeded::Family::new("tensor-logic/tests", "guards", seed).stream(0);
        answers_of_both(&program(&mut random, sizes), "M", storages)
    };
    (first..first + common::drawn(programs)).map(answers).sum()
}

#[test]
fn what_guards_admit_is_listed() {
    let asked = same(&[40, 37, 60, 1], 60, &STORAGES);
    assert!(asked > 60, "{asked} answers");
}

/// Of so many pairs, masks are not made, but described.
#[test]
fn what_guards_admit_of_many_pairs() {
    let asked = same(&[1030, 1100], 5, &[Storage::Auto]);
    assert!(asked > 0, "{asked} answers");
}

/// The pairs of 3,000 by 3,000 would be 216 MB.
#[test]
fn pairs_that_are_few_take_little_memory() {
    let budget = Budget { tuples: 100_000, bytes: 8 << 20 };
    let parameters = Parameters::new();
    for (guard, pairs) in [
        ("p / 16 == q / 16", 187 * 256 + 64),
        ("q == p / 2", 3000),
        ("q / 64 == p", 3000),
        ("p % 512 == q % 512", 440 * 36 + 72 * 25),
        ("abs(p - q) <= 5", 11 * 3000 - 30),
        ("2 > abs(p - q)", 3 * 3000 - 2),
        ("V[p] == q", 3000),
        ("q + 1 == V[p]", 2000),
        ("V[q] / 2 == p", 2000),
        ("p <= 1 - V[q]", 3000),
        ("Y[p] - Z[q] == 0", 1500),
        ("0 == -Z[q] + Y[p]", 1500),
    ] {
        let values = "n : 3000\nV[n] = m | m = n % 3\nY[n] = 2 n\nZ[n] = n\n";
        let program = analysed(&format!(
            "p, q : 3000\n{values}N = sum[p, q](1 | {guard})\nR(p, q) <- {guard}\nM = R(p, q)\n"
        ))
        .unwrap();
        let request = Request { program: &program, parameters: &parameters, budget };
        let named = |name: &str| {
            TensorId(program.tensors.iter().position(|tensor| tensor.name == name).unwrap() as u32)
        };
        let found = Auto::new(Box::<Fast>::default()).values(&request, &[named("N")]).unwrap();
        assert_eq!(found[0].doubles()[0], f64::from(pairs), "{guard}");
    }
}

/// What only a comparison of values reads is found by the value, and of two such comparisons it is the one that leaves fewer.
#[test]
fn what_a_comparison_alone_reads_is_not_crossed() {
    let budget = Budget { tuples: 100_000, bytes: 8 << 20 };
    let parameters = Parameters::new();
    let facts = |name: &str, step: u64| {
        (1..3000_u64).map(|at| format!("{name}({at}) = {}\n", at * step % 3001)).collect::<String>()
    };
    let relations = facts("F", 7) + &facts("G", 1);
    let arrays = "i, j : 3000\nV[i] = m | m = (7 * i) % 3001\nU[i] = i\nX[i] = m | m = i % 2\n";
    let forms = [
        (relations.as_str(), "N = sum[x, y](1 | F(x) == G(y))", 2998),
        (relations.as_str(), "N = sum[x, y](F(x) / F(x) | F(x) == G(y))", 2998),
        (relations.as_str(), "A(x, y) += F(x) | F(x) == G(y)\nN = count[x, y](A(x, y))", 2998),
        (arrays, "N = sum[i, j](1 | X[i] == X[j], V[i] == U[j])", 1713),
        (arrays, "N = sum[i, j](1 | V[i] == U[j], X[i] == X[j])", 1713),
    ];
    for (data, form, wanted) in forms {
        let program = analysed(&format!("{data}{form}\n")).unwrap();
        let request = Request { program: &program, parameters: &parameters, budget };
        let goal = TensorId(program.tensors.iter().position(|tensor| tensor.name == "N").unwrap() as u32);
        let found = Auto::new(Box::<Fast>::default()).values(&request, &[goal]).unwrap();
        assert_eq!(found[0].doubles()[0], f64::from(wanted), "{form}");
    }
}

/// Two relations that a guard joins by a value that many have, and another one by their indices.
#[test]
fn values_that_many_have_do_not_join_before_what_few_have() {
    let budget = Budget { tuples: 100_000, bytes: 8 << 20 };
    let parameters = Parameters::new();
    let facts =
        |name: &str| (0..3000).map(|at| format!("{name}({at}) = {}\n", 1 + at % 2)).collect::<String>();
    for (guards, pairs) in [
        ("A(p) == B(q), p == q + 2", 2998),
        ("p == q + 1, A(p) == B(q)", 0),
        ("A(p) == B(q), q < 3", 4500),
        ("p / 1500 != q / 1500, 3 > q, A(p) < B(q)", 750),
    ] {
        let text = format!(
            "{}{}S(p, q) <- A(p), B(q), {guards}\nN = count[p, q](S(p, q))\n",
            facts("A"),
            facts("B")
        );
        let program = analysed(&text).unwrap();
        let request = Request { program: &program, parameters: &parameters, budget };
        let goal = TensorId(program.tensors.iter().position(|tensor| tensor.name == "N").unwrap() as u32);
        let found = Auto::new(Box::<Fast>::default()).values(&request, &[goal]).unwrap();
        assert_eq!(found[0].doubles()[0], f64::from(pairs), "{guards}");
    }
}

/// The pairs of 2,000 by 2,000 would be 32 MB: they are folded as they are compared.
#[test]
fn comparisons_that_are_folded_take_no_room() {
    let budget = Budget { tuples: 100_000, bytes: 8 << 20 };
    let parameters = Parameters::new();
    let numbers: Vec<f64> = (0..2000).map(|at| f64::from(at * 7919 % 1000)).collect();
    let numbers = numbers.as_slice();
    let below = |t: usize| numbers.iter().copied().filter(move |other| *other < numbers[t]);
    let mean = |t: usize| below(t).sum::<f64>() / below(t).count() as f64;
    type Wanted<'a> = Box<dyn Fn(usize) -> f64 + 'a>;
    let forms: [(&str, Wanted<'_>); 7] = [
        ("R[t] = count[u](1 | A[u] < A[t])", Box::new(|t| below(t).count() as f64)),
        ("R[t] = sum[u](1 | A[u] < A[t])", Box::new(|t| below(t).count() as f64)),
        ("R[t] = sum[u](A[u] | A[t] > A[u])", Box::new(|t| below(t).sum())),
        ("R[t] max= A[u] | A[u] < A[t]", Box::new(|t| below(t).fold(f64::NEG_INFINITY, f64::max))),
        ("R[t] min= A[u] | A[u] < A[t]", Box::new(|t| below(t).fold(f64::INFINITY, f64::min))),
        ("R[t] avg= A[u] | A[u] < A[t]", Box::new(|t| if below(t).count() == 0 { 0.0 } else { mean(t) })),
        (
            "R[t] = 1 | A[u] < A[t], u < 50, u >= 0",
            Box::new(|t| f64::from(u8::from(numbers[..50].iter().any(|other| *other < numbers[t])))),
        ),
    ];
    for (form, wanted) in forms {
        let text = format!("t, u : 2000\nA[t] = m | m = (7919 * t) % 1000\n{form}\n");
        let program = analysed(&text).unwrap();
        let request = Request { program: &program, parameters: &parameters, budget };
        let goal = TensorId(program.tensors.iter().position(|tensor| tensor.name == "R").unwrap() as u32);
        let found = Auto::new(Box::<Fast>::default()).values(&request, &[goal]).unwrap();
        for (t, found) in found[0].doubles().iter().enumerate() {
            assert!(
                (found - wanted(t)).abs() <= 1e-9 || *found == wanted(t),
                "{form} {t}: {found} {}",
                wanted(t)
            );
        }
    }
}
