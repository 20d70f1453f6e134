//! Joins that are large only if they are taken in the wrong order: with little memory, and numbers that are known.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test whose programs do not run has failed")]

use std::fmt::Write as _;

use tensor_logic::auto::Auto;
use tensor_logic::engine::{Budget, Engine, Parameters, Request};
use tensor_logic::fast::Fast;
use tensor_logic::program::TensorId;

use crate::common;
use crate::common::engines::{STORAGES, analysed, answers_of_both, disagreement};

/// The elements of a tensor, found in so many bytes.
fn values(text: &str, name: &str, bytes: u64) -> Vec<f64> {
    let program = analysed(text).unwrap();
    let at = program.tensors.iter().rposition(|tensor| tensor.name == name).unwrap();
    let parameters = Parameters::new();
    let budget = Budget { tuples: 100_000_000, bytes };
    let request = Request { program: &program, parameters: &parameters, budget };
    let found = Auto::new(Box::<Fast>::default()).values(&request, &[TensorId(at as u32)]);
    found.unwrap_or_else(|refusal| panic!("{text:.200}: {refusal}")).remove(0).doubles().into_owned()
}

/// A hub with so many spokes both ways, and an arc between neighbours on the rim.
fn star(name: &str, spokes: usize) -> String {
    let mut text = String::new();
    for x in 1..=spokes {
        writeln!(text, "{name}(0, {x}); {name}({x}, 0)").unwrap();
    }
    for x in 1..spokes {
        writeln!(text, "{name}({x}, {})", x + 1).unwrap();
    }
    text
}

const SPOKES: usize = 1500;
const BYTES: u64 = 4 << 20;

/// The paths of two arcs are two millions; the triangles are three for each arc of the rim.
#[test]
fn a_cycle_of_guards_lists_what_it_admits() {
    let text = star("E", SPOKES);
    let text =
        format!("{text}x, y, z : {}\nF[x] = x\nT[x] = F[y] F[z] | E(x, y), E(y, z), E(z, x)\n", SPOKES + 1);
    let found = values(&text, "T", BYTES);
    for (x, found) in found.iter().enumerate() {
        // The hub with both ends of an arc of the rim; an end with the hub is 0.
        let wanted: usize = if x == 0 { (1..SPOKES).map(|y| y * (y + 1)).sum() } else { 0 };
        assert!((found - wanted as f64).abs() <= 1e-6, "{x}: {found} {wanted}");
    }
}

/// Guards with an index of their own: one table of what they admit.
#[test]
fn guards_with_an_index_of_their_own_are_listed() {
    let text = star("E", SPOKES);
    let size = SPOKES + 1;
    let text = format!(
        "{text}x, y, z : {size}\nU(x, y) <- E(x, y), E(y, x)\nF[x] = x\n\
         T[x] = F[x] F[y] | E(x, z), E(z, y), x < 3, y == x + 1\n"
    );
    let found = values(&text, "T", 16 << 20);
    assert_eq!(&found[..4], [0.0, 2.0, 6.0, 0.0]);
}

/// The product of a hub's arcs with its arcs is two millions of paths; their sums are as many as the nodes.
#[test]
fn sums_are_taken_before_a_join_that_would_repeat_them() {
    let arcs = star("E", SPOKES);
    let size = SPOKES + 1;
    let degree = |y: usize| if y == 0 { SPOKES } else { 1 + usize::from(y < SPOKES) };
    // Named by an index that takes the values of tuples, and by one with a domain; read with round brackets and square.
    for (declared, read) in [("z : ", "E(x, y) E(y, z)"), ("x, y, z : ", "E[x, y] E[y, z]")] {
        let text = format!("{arcs}{declared}{size}\nd : 3\nF[z, d] = d + 1\nY[x, d] = {read} F[z, d]\n");
        let found = values(&text, "Y", BYTES);
        assert_eq!(found.len(), 3 * size);
        for (at, found) in found.iter().enumerate() {
            let (x, d) = (at / 3, at % 3);
            let next = if x == 0 { 1..=SPOKES } else { 0..=0 };
            let rim = (x > 0 && x < SPOKES).then(|| degree(x + 1));
            let paths: usize = next.map(degree).sum::<usize>() + rim.unwrap_or(0);
            assert_eq!(*found, (paths * (d + 1)) as f64, "{x} {d}");
        }
    }
}

/// a (x + y) is a x + a y for finite numbers only.
#[test]
fn a_sum_that_leaves_the_doubles_inside_is_taken_outside() {
    let programs = [
        "R(0, 1) = 1e-300; R(1, 1) = 2; S(1, 0) = 1e308; S(1, 1) = 1e308; F = [1, 1]\n\
         Y[x] = R(x, y) S(y, z) F[z]\n",
        "R(0, 1) = 1e-300; S(1, 0) = 1e308; S(1, 1) = 1e308; F = [1, 1]; Y[x] = R(x, y) S(y, z) F[z]\n",
        "R(0, 1); R(2, 1); S(1, 0); S(1, 1); F = [1, -1]; Y(x) = R(x, y) S(y, z) F[z]\n",
        // An index that a guard computes, inside of a function.
        "i : 2; R(Bob, 1); S(Ann, 0); Y = (S(y, j) R(x, m % 2) | m = i)\n",
        "i : 5; R(Bob, 1); R(Ann, 3); Y[i] = (i R(x, m + 1) | m = 2 * i)\n",
        "i : 5; R(Bob, 1); R(Ann, 3); R(Ann, 6); Y(x, i) = (i R(x, m / 2) | m = 3 * i)\n",
        // Numbers that are large by themselves, beside a 0.
        "R(Bob, Bob) = -3; S(1, Cal); Y[x, i] = R(y, Bob) R(x, z) S[i, z] / 1e-308\n",
        "R(Bob, Bob) = -3; S(1, Cal); Y[x, i] = R(x, z) R(x, z) S[i, z] 1e308\n",
        "R(Bob, Bob) = -3; S(1, Cal); Y[x, i] = R(x, z) 1e308 R(x, z) S[i, z]\n",
        "R(0, 1); R(2, 1); S(1, 0); S(1, 1); F = [1, -1]; Y(x) avg= R(x, y) S(y, z) F[z]\n",
        // Nothing follows 3.
        "R(0, 3); R(2, 1); S(1, 0); S(1, 1); F = [1, -1]; Y(x) = R(x, y) S(y, z) F[z]\n",
        "x, y, z : 4; R(0, 3); R(2, 1); S(1, 0); S(1, 1); F[z] = z; Y[x] = exp(R[x, y] S[y, z] F[z])\n",
        "R(0, 1); R(2, 1); S(1, 0); S(1, 1); F = [1, 3]; Y(x) = R(x, y) S(y, z) F[z] | z < y\n",
    ];
    for text in programs {
        let program = analysed(text).unwrap();
        for storage in STORAGES {
            assert_eq!(disagreement(&program, storage), None, "{text}");
        }
    }
}

/// An equation between indices of two relations is followed, not asked of every pair.
#[test]
fn an_equation_between_two_relations_is_followed() {
    let mut facts = String::new();
    for x in 0..20_000 {
        writeln!(facts, "A({x}); B({x})").unwrap();
    }
    let text = format!("{facts}x, y : 20000\nV[x] = x\nS = A(x) B(y) V[x] | x == 2 y + 1\n");
    // 1 + 3 + … + 19,999
    assert_eq!(values(&text, "S", BYTES), [100_000_000.0]);
    let text = format!("{facts}C(x) <- A(x), B(y), 20000 - 3 y == 2 x + 1\nN = C(x)\n");
    let wanted = (0..20_000_i64).filter(|x| (19_999 - 2 * x) % 3 == 0 && 19_999 >= 2 * x).count();
    assert_eq!(values(&text, "N", 1 << 24), [wanted as f64]);
}

/// Equations of integers at the ends of 64 bits, of symbols, and of indices that cancel.
#[test]
fn equations_hold_where_they_hold() {
    let programs = [
        "A(9223372036854775807); A(-9223372036854775807); A(0); B(9223372036854775807); B(-1); B(1)\n\
         C(x, y) <- A(x), B(y), x == y + 1\nD(x, y) <- A(x), B(y), x + y == 0 - 1\nE(x, y) <- A(x), B(y), 2 x == y - 1\n",
        "A(Ann); A(1); B(0); B(Bob)\nC(x, y) <- A(x), B(y), x == y + 1\nD(x) <- A(x), x == x + 0\n",
        "A(0); A(1); A(2); B(0); B(1)\nC(x, y) <- A(x), B(y), x - x == y - y\nD(x, y) <- A(x), B(y), x - x == y\n\
         S = A(x) B(y) (x + 1) | x - x + 2 y == x\n",
        "A(0); A(1); A(5); B(0); B(2)\nC(x, y) <- A(x), B(y), x * y == 2 y\nD(x, y) <- A(x), B(y), x % 2 == y + 1\n",
    ];
    for text in programs {
        let program = analysed(text).unwrap();
        for storage in STORAGES {
            assert_eq!(disagreement(&program, storage), None, "{text}");
        }
    }
}

/// Guards with indices of their own, which list what nothing else does beside relations that list the others.
#[test]
fn guards_that_list_beside_relations_are_joined_with_them() {
    let first = seeded::test_seed();
    let mut asked = 0;
    for seed in first..first + common::drawn(150) {
        let mut random = seeded::Family::new("tensor-logic/tests", "beside", seed).stream(0);
        let mut below = |most: u64| random.below(most);
        let mut text = String::new();
        for _ in 0..below(9) {
            writeln!(text, "E({}, {}) = {}", below(8), below(4), 1 + below(4)).unwrap();
        }
        for _ in 0..below(7) {
            writeln!(text, "I({}, {}, {})", below(8), below(8), below(4)).unwrap();
        }
        let mut one = |of: &[&'static str]| of[below(of.len() as u64) as usize];
        let head = one(&["C(k)", "C(k, i)", "C(i)", "C(k, t)", "C(k + 1)", "C[k]", "C"]);
        let sign = one(&["+=", "+=", "max=", "avg=", "*="]);
        let body =
            one(&["E(t, i)", "E(t, i) E(s, i)", "E(t, i) + 1", "2 E(t, i) / (t + 1)", "E[t, i] E(t, i)"]);
        let mut guards = vec!["I(a, b, k)"];
        for _ in 0..2 {
            guards.push(one(&[
                "a <= t",
                "t < b",
                "a == t",
                "b != t",
                "not E(a, t)",
                "I(b, c, k)",
                "E(a, j)",
                "a <= b",
                "k <= t",
                "d = a + 1, d == t",
                "E(a, j) > 1",
                "I(a, c, m), m != k",
            ]));
        }
        let program = format!("k : 0..5\ni : 4\nt : 8\n{text}{head} {sign} {body} | {}\n", guards.join(", "));
        // With ranges that are declared and without.
        for text in [program.clone(), program.lines().skip(3).map(|line| format!("{line}\n")).collect()] {
            asked += answers_of_both(&text, "C", &STORAGES);
        }
    }
    assert!(asked > 100, "{asked} answers");
}

/// All numbers that a program answers with.
fn answered(text: &str, engine: &mut dyn Engine) -> Vec<f64> {
    let found = common::answers::calculated(text, std::path::Path::new("."), 0, engine);
    let outcome = found.unwrap_or_else(|refused| panic!("{text}: {refused:?}")).outcome;
    assert_eq!(outcome.refusal, None, "{text}");
    outcome.answers.iter().flat_map(|answer| answer.content.numbers().to_vec()).collect()
}

/// A program answers the same over forty and over fifty thousand values of each index as over the eight that its relations speak
/// of.
fn as_if_narrow(text: &dyn Fn(usize) -> String) {
    let wanted = answered(&text(8), &mut tensor_logic::reference::Reference::default());
    for width in [40, 50_000] {
        let found = answered(&text(width), &mut Auto::new(Box::<Fast>::default()));
        let near = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-12 * b.abs().max(1.0);
        assert_eq!(found.len(), wanted.len(), "{}", text(8));
        assert!(found.iter().zip(&wanted).all(near), "{width}, {}: {found:?} {wanted:?}", text(8));
    }
}

/// Square sums of several terms, each of which is listed by what it reads: values, and what is learned in steps that do again
/// what the ones before did.
#[test]
fn sums_of_listed_terms_are_listed() {
    const TERMS: &[&str] = &[
        "A(i, j)",
        "B(j, i)",
        "W A(i, j) B(i, j)",
        "A(i, k) B(k, j)",
        "W A(i, i) B(i, j)",
        "A(i, j) (j + 1)",
        "B(i, j) / (i + 2)",
        "A(1, j) B(i, j)",
        "W^2 B(i, j) B(j, i)",
        "C(i) A(i, j)",
        "C(i) W C(j)",
        "sig(W A(i, j)) B(i, j)",
        "B(i, j)^2",
    ];
    let mut stream = common::stream("sums of listed terms");
    for _ in 0..40 {
        let mut facts = String::new();
        for name in ["A", "B"] {
            for _ in 0..stream.below(9) {
                let (x, y, value) = (stream.below(8), stream.below(8), stream.below(9) as f64 / 4.0 - 1.0);
                writeln!(facts, "{name}({x}, {y}) = {value}").unwrap();
            }
        }
        (0..stream.below(3)).for_each(|_| writeln!(facts, "C({})", stream.below(8)).unwrap());
        let mut equations = String::new();
        let mut lead = "Z[i, j] =";
        for _ in 0..2 + stream.below(3) {
            let term = TERMS[stream.below(TERMS.len() as u64) as usize];
            let factor = stream.below(9) as f64 / 2.0 - 2.0;
            let guard = ["", "", " | A(i, j)", " | i <= j"][stream.below(4) as usize];
            let other = TERMS[stream.below(TERMS.len() as u64) as usize];
            match stream.below(2) {
                0 => writeln!(equations, "{lead} {factor} {term}{guard}").unwrap(),
                _ => writeln!(equations, "{lead} {factor} {term} - {other}{guard}").unwrap(),
            }
            lead = "Z[i, j] +=";
        }
        let text = |width: usize| {
            format!(
                "i, j, k : {width}\nA(7, 7) = 0.5\nB(0, 6) = 1\nC(3)\n{facts}W ~ 0.5\n{equations}\
                 S[i] = Z[i, j] Z[j, i]\nM = S[i] (i + 1)\nLoss = Z[i, j] Z[i, j] + W M\n\
                 M?\nZ[0, 6]?\nZ[3, 3]?\nLoss? @minimize(opt=sgd, lr=0.001, steps=5)\nW?\nM?\n"
            )
        };
        as_if_narrow(&text);
    }
}

/// The largest and the smallest of the elements of a square tensor that is kept by its support: zeros stand beside what is listed
/// where not all of a group is. Of few elements by the interpreter, with whole rows and columns and with nothing at all; of many,
/// what the few say.
#[test]
fn the_largest_stands_beside_zeros() {
    const PICKS: &str = "S[j] = max[i](Z[i, j])\nT[i] = min[j](Z[i, j])\nM = max[i, j](Z[i, j])\nN = min[i, j](Z[i, j])\n\
         D = max[i](Z[i, i])\nU[j] max= Z[i, j]\nV[i] min= Z[i, j]\nG max= Z[i, j]\nO[j] max= Z[3, j]\nR(j) max= Z[i, j]\n\
         B[i] max= Z[i, j]\nB[i] max= W Z[j, i]\nY[i, j] max= Z[i, j]\nC[i] = W max[j](Z[i, j]) + min[j](Z[j, i])\nE = Y[i, j] (i + 2 j)\n";
    let mut stream = common::stream("zeros beside what is listed");
    for round in 0..40 {
        let mut facts = String::new();
        let mut fact = |i: u64, j: u64, value: i64| writeln!(facts, "A({i}, {j}) = {value}").unwrap();
        let mut seen = std::collections::BTreeSet::new();
        let (row, column) = (stream.below(40), stream.below(40));
        for _ in 0..[0, 3, 60, 200][round % 4] {
            let (i, j) = (stream.below(40), stream.below(40));
            if i != row && j != column && seen.insert((i, j)) {
                fact(i, j, stream.below(9) as i64 - 6);
            }
        }
        // A whole column below 0, a whole row above.
        if round % 3 == 0 {
            (0..40).for_each(|i| fact(i, column, -1 - stream.below(5) as i64));
            (0..40).filter(|j| *j != column).for_each(|j| fact(row, j, 1 + stream.below(5) as i64));
        }
        let body =
            ["A(i, j)", "W A(i, j)", "A(i, j) (j - 20)", "W A(i, j) + A(j, i)"][stream.below(4) as usize];
        let asked = "S?\nT?\nM?\nN?\nD?\nU?\nV?\nG?\nO?\nR(j)?\nB?\nC?\nE?\n";
        let text = format!("i, j : 40\nA(i, j) : real\nW = -0.5\n{facts}Z[i, j] = {body}\n{PICKS}{asked}");
        let wanted = answered(&text, &mut tensor_logic::reference::Reference::default());
        let found = answered(&text, &mut Auto::new(Box::<Fast>::default()));
        let near = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-12 * b.abs().max(1.0);
        assert!(
            found.len() == wanted.len() && found.iter().zip(&wanted).all(near),
            "{text}: {found:?} {wanted:?}"
        );
    }
    // All elements of `Y` are asked for, and those of a product.
    let picks: Vec<&str> = PICKS.lines().filter(|line| !line.starts_with(['Y', 'E', 'B'])).collect();
    let wide = |width: usize| {
        let picks = picks.join("\n");
        format!(
            "i, j : {width}\nA(0, 0) = 1; A(5, 7) = 2; A(3, 7) = -1; A(2, 1) = -3\nW = 0.5\nZ[i, j] = W A(i, j)\n{picks}\n\
             S[7]?\nS[1]?\nT[2]?\nT[5]?\nM?\nN?\nD?\nU[7]?\nV[3]?\nG?\nO[7]?\nR(7)?\nC[2]?\n"
        )
    };
    as_if_narrow(&wide);
}

/// Square tensors of which next to nothing is there, or nothing at all, take no room, wherever their elements come from:
/// joins without a binding, functions that are absent for some bindings, rules over several relations.
#[test]
fn nearly_empty_squares_take_no_room() {
    let bodies = [
        "A(1, j) B(i, j)",
        "A(i, j) max[k](E(j, k))",
        "A(i, j) + W B(i, j)",
        "W A(i, j) E(j, k) - A(k, j) E(i, k) + 3 B(i, j)",
        "A(i, j) E(j, k) E(k, j) / 3",
        "A(i, k) E(k, l) B(l, j)",
        "A(i, k) E(k, l) A(l, j) + 2 B(j, i)",
        "B(i, k) E(k, l) E(l, j)",
        "A(i, j) | B(i, j), E(j, i)",
        "A(i, j) (E(j, k) + W) | B(i, j)",
        "softmax[j](A(i, j) W | B(j, i))",
    ];
    let (mut empty, mut full) = (0, 0);
    for body in bodies {
        for arcs in ["E(0, 0); E(7, 2)", "E(7, 2); E(0, 3); E(2, 5)"] {
            let text = |width: usize| {
                format!(
                    "i, j, k, l : {width}\nA(0, 0) = 1; A(5, 7) = 2; A(3, 7) = -1; B(5, 7) = 0.5; B(2, 1) = 3\n{arcs}\nW ~ 0.5\n\
                     Z[i, j] = {body}\nY[i, j] = W Z[i, j]\nLoss = Y[i, j] Y[i, j] + W^2\nN = Z[i, j]\n\
                     N?\nZ[5, 7]?\nZ[0, 0]?\nLoss? @minimize(opt=sgd, lr=0.01, steps=2)\nW?\n"
                )
            };
            as_if_narrow(&text);
            let there = answered(&text(8), &mut tensor_logic::reference::Reference::default())[0] != 0.0;
            empty += usize::from(!there);
            full += usize::from(there);
        }
    }
    assert!(empty > 4 && full > 4, "{empty} {full}");
}

/// What several relations may make a value of is listed by them, however wide the indices are; in gradients, too.
#[test]
fn sums_of_several_relations_are_listed() {
    let bodies = [
        "tanh(W A(s, x) + W A(s, x)^2)",
        "tanh(W A(s, x) + B(s, x))",
        "relu(0.5 A(s, x) - W E(x, y) A(s, y))",
        "sig(W A(s, x) B(s, x) + W B(s, x) + E(x, y) B(s, y))",
        "exp(W A(s, x) + W B(s, y) E(x, y)) sig(A(s, x) + 2 B(s, x))",
        "(W A(s, x) + B(s, x))^2 / (1 + W^2)",
    ];
    for body in bodies {
        for head in ["H(s, x) +=", "H(s) avg="] {
            let text = |width: usize| {
                format!(
                    "s, x, y : {width}\nA(0, 0) = 1; A(5, 7) = 2; A(3, 7) = -1; B(5, 7) = 0.5; B(1, 2) = 3\n\
                     E(7, 2); E(0, 0); E(2, 7)\nW ~ 0.5\n{head} {body}\nLoss = H({})\n\
                     Loss? @minimize(opt=sgd, lr=0.01, steps=2)\nW?\n",
                    if head.starts_with("H(s)") { "s" } else { "s, x" }
                )
            };
            as_if_narrow(&text);
        }
    }
}

/// The terms of a sum need not list what they add: then all elements are made, and what other terms listed stands where their own
/// indices say, which may range over less than those of the next term.
#[test]
fn terms_of_a_sum_have_ranges_of_their_own() {
    let mut stream = common::stream("ranges of terms");
    for round in 0..60 {
        // Of thousands of elements sums are listed without being asked to.
        let far = if round % 2 == 0 { 4 } else { 3000 };
        let mut facts = String::new();
        for _ in 0..1 + stream.below(4) {
            let (x, y) = (stream.below(far), stream.below(3));
            writeln!(facts, "R({x}, {y}) = {}", 1 + stream.below(5)).unwrap();
        }
        writeln!(facts, "R({far}, 1)\nS({})\nB = [2, 3, 5]", stream.below(far)).unwrap();
        let terms =
            ["R(i, k)", "R(i-1, w) B[k]", "R(i+2, 1) B[k]", "S(i) B[k]", "S(i-2) B[w] B[k]", "B[k] R(i, _)"];
        let picked: Vec<&str> = (0..2 + stream.below(2)).map(|_| terms[stream.below(6) as usize]).collect();
        let text = format!(
            "R(x, y) : real\n{facts}Y[i, k] = {}\nN = Y[i, k] (i + 7 k)\nY?\nN?\n",
            picked.join(" + ")
        );
        let wanted = answered(&text, &mut tensor_logic::reference::Reference::default());
        for storage in STORAGES {
            let found = answered(&text, &mut Auto::new(Box::new(Fast::with_storage(storage))));
            assert_eq!(found, wanted, "{storage:?}\n{text}");
        }
    }
}
