//! Structural lifting: learning from the lifted program is learning from the program, and equal constants are found.
#![expect(clippy::unwrap_used, reason = "a test that cannot learn has failed")]

use std::fmt::Write;

use seeded::Stream;
use tensor_logic::answer::{Answer, Lifting};
use tensor_logic::auto::Auto;
use tensor_logic::error::Code;
use tensor_logic::fast::Fast;
use tensor_logic::reference::Reference;

use crate::common;
use crate::common::answers::answers as answers_of;
use crate::common::heads::square;

fn answers(text: &str) -> Result<Vec<Answer>, Vec<Code>> {
    answers_of(text, &mut Auto::new(Box::new(Fast::default())))
}

/// How many constants were looked at and left, where the program learns the same with and without `lift=yes`.
fn compared(text: &str, options: &str) -> Result<Lifting, String> {
    let with = answers(&text.replace("LEARN", &format!("@minimize({options}, lift=yes)")));
    let without = answers(&text.replace("LEARN", &format!("@minimize({options})")));
    let (with, without) = match (with, without) {
        (Ok(with), Ok(without)) => (with, without),
        (Err(_), Err(_)) => return Err(String::new()),
        // What leaves the numbers on its way, by a division by next to nothing, does so in one order of sums and not in another: 0·∞ is none.
        (Ok(_), Err(fault)) | (Err(fault), Ok(_))
            if ["/ 0", "/ 1e-3"].iter().any(|divisor| text.contains(divisor))
                && fault.iter().all(|code| *code == Code::Divergence) =>
        {
            return Err(String::new());
        }
        (with, without) => return Err(format!("{with:?} and {without:?}\n{text}")),
    };
    for (found, wanted) in with.iter().zip(&without) {
        let valid = |answer: &Answer| answer.minimize.as_ref()?.valid;
        if let (Some(found), Some(wanted)) = (valid(found), valid(wanted)) {
            let near = |a: f64, b: f64| (a - b).abs() <= 1e-12 * b.abs().max(1.0);
            let same = (found.epoch, found.epochs) == (wanted.epoch, wanted.epochs);
            if !same || !near(found.first, wanted.first) || !near(found.best, wanted.best) {
                return Err(format!("{found:?} instead of {wanted:?}\n{text}"));
            }
        }
        let (found, wanted) = (found.content.numbers(), wanted.content.numbers());
        let largest = wanted.iter().fold(1.0_f64, |largest, number| largest.max(number.abs()));
        // Adam divides a gradient by its own size and 1e-8: of one that is next to nothing, other last digits are seen.
        let far = if options.contains("opt=adam") { 1e-9 } else { 1e-12 };
        let near = |(a, b): (&f64, &f64)| (a - b).abs() <= far * largest || a.to_bits() == b.to_bits();
        if found.len() != wanted.len() || !found.iter().zip(wanted).all(near) {
            return Err(format!("{found:?} instead of {wanted:?}\n{text}"));
        }
    }
    Ok(with.iter().find_map(|answer| Some(answer.minimize.as_ref()?.lifted)).unwrap_or_default())
}

#[test]
fn a_ring_of_equal_atoms_becomes_one() {
    for atoms in [3, 6, 20] {
        let mut text = format!("x : {atoms}\nX[x, d] = [");
        let rows = vec!["[1, 2]"; atoms].join(", ");
        writeln!(text, "{rows}]").unwrap();
        for atom in 0..atoms {
            writeln!(text, "Bond({atom}, {next}); Bond({next}, {atom})", next = (atom + 1) % atoms).unwrap();
        }
        text.push_str("@include(\"std/gcn.tl\", Edge=Bond, e=3)\nLoss = sig(H[x, e])\nLoss? LEARN\nGcn_W?\n");
        let found = compared(&text, "opt=sgd, lr=0.1, steps=3").unwrap();
        assert_eq!(found.constants, Some((atoms, 1)));
    }
}

/// The samples are those of the program, also where what is lifted says nothing of one, or something of another value.
#[test]
fn samples_are_those_of_the_program() {
    let gone = "d : 1\nB[d] ~ [0.5]\nC(1, 0, 2)\nN(0, 3)\nN(2, 2)\nH(s, x, d) += N(s, x) B[d]\n\
                H(s, x, d) += C(s, x, y) C(s, y, z) H(s, z, d)\nLoss = H(s, x, d)^2\nLoss? LEARN\nB?\n";
    let more = "d : 2\nN(0, Cal)\nN(2, Dee)\nB[d] ~ [1.33, -0.13]\nH(s, x, d) += N(s, x) B[d]\n\
                G(s, x, d) += tanh(H(s, x, d) + B[d])\nLoss = G(s, x, d)^2\nLoss? LEARN\nB?\n";
    for size in 1..=3 {
        for text in [gone, more] {
            compared(text, &format!("opt=sgd, lr=0.05, epochs=2, batch=s, size={size}")).unwrap();
        }
    }
}

#[test]
fn what_tells_constants_apart_keeps_them_apart() {
    let of = |facts: &str, equations: &str| {
        let text = format!(
            "x : 4\nW[d] ~ [0.5, -1]\nX[x, d] = [[1, 2], [1, 2], [1, 2], [1, 2]]\n{facts}\n{equations}\nLoss? LEARN\nW?\n"
        );
        compared(&text, "opt=sgd, lr=0.1, steps=2").unwrap().constants.map(|(_, left)| left)
    };
    let sum = "H[x] = X[x, d] W[d]\nLoss = sig(H[x])";
    assert_eq!(of("", sum), Some(1));
    // Data, a name, an order, an axis, a parameter, arithmetic.
    assert_eq!(of("F(2)", "H[x] = X[x, d] W[d]\nLoss = sig(H[x]) F(x)"), Some(2));
    assert_eq!(of("", "H[x] = X[x, d] W[d]\nLoss = sig(H[3]) + sig(H[x])"), Some(2));
    assert_eq!(of("", "H[x] = X[x, d] W[d]\nLoss = sig(H[x]) | x < 2"), None);
    assert_eq!(of("", "H[x] = X[x, d] W[d]\nP[x.] = softmax(H[x])\nLoss = P[x]^2"), None);
    assert_eq!(of("V[x] ~ ones()", "H[x] = X[x, d] W[d] V[x]\nLoss = sig(H[x])"), None);
    assert_eq!(of("", "H[x] = X[x, d] W[d]\nLoss = sig(H[x] x)"), None);
    assert_eq!(of("", "P[x, x] = X[x, d] W[d]\nLoss = sig(P[x, y])"), None);
    // A maximum shares its gradient among those that attain it: here two of one kind and one of each other one.
    let shared = "H[x] = W[0] G[x] - 0.5 G[x] + W[1]\nLoss max= H[x]";
    assert_eq!(of("G[x] = [1, 1, 2, 3]", shared), Some(3));
    // A path: its ends differ from its middle. Those that are read are equal: nothing says that `x` and `y` are one thing.
    let path = "E(0, 1); E(1, 0); E(1, 2); E(2, 1); E(2, 3); E(3, 2)";
    assert_eq!(of(path, "H[x] = E(y, x) X[y, d] W[d]\nLoss = sig(H[x])"), Some(3));
    assert_eq!(of(path, "H[x] = E(y, x) X[y, d] W[d] + X[x, d] W[d]\nLoss = sig(H[x])"), Some(2));
    // Pairs of constants: two related ones are not as two that are not.
    assert_eq!(of(path, "H[x, y] = E(x, y) X[y, d] W[d]\nLoss = sig(H[x, y])"), None);
    // Triangles are counted by the scope, not by what neighbours are.
    let two = "E(0, 1); E(1, 2); E(2, 0); E(3, 3)";
    assert_eq!(of(two, "H[x] = E(x, y) E(y, z) E(z, x) X[y, d] W[d]\nLoss = sig(H[x])"), Some(1));
}

/// What was merged and is read at constants alone has its gradient: the read is of the whole tensor.
#[test]
fn what_constants_read_is_learned() {
    for equations in [
        "E[i] = W\nLoss = E[2]",
        "E[i] = W\nLoss = E[2] + E[i] E[3]",
        "E[i] = W\nF[i] = 2 E[3] E[i]\nLoss = E[2] + F[i] + F[1]",
        "E[i] max= W A[k, k]\nQ min= E[2]^-1\nLoss = sig(Q)",
    ] {
        let text = format!("i, k : 4\nA[i, k] = i + k\nW ~ 3\n{equations}\nLoss? LEARN\nW?\n");
        let lifted = compared(&text, "opt=sgd, lr=0.01, steps=3").unwrap();
        assert!(lifted.tuples.is_some() || lifted.constants.is_some(), "{equations}");
    }
}

/// What a head computes with is summed over for each of its values, not once for all of them together; and what a guard computes
/// has its values.
#[test]
fn what_is_computed_with_is_kept_apart() {
    let all = [
        "E[i, j] = W A[i, i]\nN[i, c] = concat(E[i, j])\nLoss = N[x, y]",
        "E[i, j] min= W A[i, i]\nN[i, c] = concat(E[i, j])\nLoss = sig(N[x, y])",
        "E[i, j] = W A[i, i]\nN[i, j / 2] = E[i, j]\nLoss = N[x, y]^2",
        "E[i, j] = W A[i, i]\nN[i, j / 2] avg= E[i, j] j\nLoss = N[x, y]^2",
        "E[i, j] = W A[i, i]\nN[i, i + j] *= E[i, j]\nLoss = N[x, y]^2",
        "E[i, j] = W A[i, j-n] R(n, i) m | m = 2 * j\nLoss = E[x, y]^2",
        "E[i, j] max= W R(n, i) m | m = 2 * n + j, m != 3\nLoss = sig(E[x, y])",
        "E[i, j] = W R(n, i) (m + j) | m = 2 * n\nN[i, m] = E[i, j] | m = j / 2\nLoss = N[x, y]^2",
        "E(i, j) += W A[i, i] R(i, j)\nN(i, j + 1) += E(i, j)\nLoss = N(x, y)^2 y",
        // Without tuples.
        "E(i, j) += W A[i, j] not R(_, j)\nN[i, j] = E[i, j + 1] + E[i, j] + W\nLoss = N[x, y]",
    ];
    let mut fewer = 0;
    for equations in all {
        let text = format!(
            "i, j, k : 4\nA[i, k] = i / 2 + k - k\nR(0, 1); R(1, 2); R(2, 3); R(3, 0)\nW ~ 3\n{equations}\nLoss? LEARN\nW?\n"
        );
        let lifted =
            compared(&text, "opt=sgd, lr=0.01, steps=3").unwrap_or_else(|how| panic!("{how}\n{text}"));
        fewer += usize::from(lifted.tuples.is_some() || lifted.constants.is_some());
    }
    assert!(fewer + 2 >= all.len(), "{fewer} of {} become smaller", all.len());
}

/// A graph of some equal parts, and layers over it.
fn program(stream: &mut Stream) -> String {
    let mut below = |bound: usize| (stream.uniform() * bound as f64) as usize;
    let (parts, nodes) = (1 + below(3), 2 + below(3));
    let all = parts * nodes;
    let mut text = format!("x : {all}\ns : {parts}\n");
    for name in ["E", "G"] {
        for from in 0..nodes {
            for to in 0..nodes {
                if below(3) == 0 {
                    let label = below(2);
                    for part in 0..parts {
                        let (a, b) = (from + part * nodes, to + part * nodes);
                        match name {
                            "E" => writeln!(text, "E({a}, {b})").unwrap(),
                            _ => writeln!(text, "G({a}, {label}, {b}) = {}", 1 + label).unwrap(),
                        }
                    }
                }
            }
        }
    }
    text.push_str("E(0, 0)\nG(0, 0, 0) = 1\n");
    (0..all).for_each(|node| writeln!(text, "In({}, {node})", node / nodes).unwrap());
    let kinds: Vec<usize> = (0..nodes).map(|_| below(2)).collect();
    let rows: Vec<String> = (0..all)
        .map(|node| if kinds[node % nodes] == 0 { "[1, 0.5]" } else { "[-1, 2]" }.to_owned())
        .collect();
    writeln!(text, "X[x, d] = [{}]", rows.join(", ")).unwrap();
    text.push_str(
        "W[d, e] ~ [[0.5, -0.25], [0.75, 1]]\nV[e, f] ~ [[1, -0.5], [0.25, 0.5]]\nA[e] ~ [0.5, -1]\n",
    );
    text.push_str("R[l, d, e] ~ [[[0.5, 1], [-1, 0.25]], [[1, 0], [0.5, -0.5]]]\n");
    let first = [
        "H[x, e] = X[x, d] W[d, e]",
        "H[x, e] = tanh(E(y, x) X[y, d] W[d, e])",
        "H[x, e] = E(y, x) tanh(X[y, d] W[d, e]) + X[x, d] W[d, e]",
        "H[x, e] avg= E(y, x) X[y, d] W[d, e]",
        "H[x, e] = G(y, l, x) X[y, d] R[l, d, e]",
        "H[x, e] max= E(y, x) X[y, 0] W[0, e]",
    ];
    let second = [
        "K[x, f] = H[x, e] V[e, f]",
        "K[x, f] = E(x, y) H[y, e] V[e, f] / 2",
        "K[x, f] = E(x, y) E(y, z) tanh(H[z, e] V[e, f])",
        "K[x, f] = sig(max[y](E(x, y) H[y, e] V[e, f] | y != x))",
        "K[x, f] = sum[y](E(y, x) H[y, e]) V[e, f] - H[x, e] V[e, f] count[y](E(x, y))",
        "K[x, f] = H[x, e] V[e, f] | E(x, x)",
        "K[x, f] *= E(x, y) sig(H[y, e] V[e, f])",
        "P[x, y] = H[x, e] H[y, e]\nK[x, f] = tanh(P[x, y] E(x, y)) A[f]",
        "P[x, x] = H[x, e]\nK[x, f] = tanh(P[x, y]) A[f] + E(x, y) P[y, x] A[f]",
        "P[x, y] = E(x, y) H[y, e]\nK[x, f] = tanh(P[x, y]) A[f]",
        "Z[0, x, e] = H[x, e]\nZ[k+1, x, e] = tanh(E(y, x) Z[k, y, e] / 2)\nK[x, f] = Z[2, x, e] V[e, f]",
        "M(x) <- E(x, y), G(y, _, x)\nK[x, f] = M(x) H[x, e] V[e, f]",
        "K[x, f] = H[x, e] V[e, f] not E(x, x)",
        "Near(x) <- E(x, y), H[y, 0] > 0\nK[x, f] = Near(x) H[x, e] V[e, f]",
    ];
    let last = [
        "Loss = sig(K[x, f])",
        "Loss avg= (K[x, f])^2",
        "S[s, f] = In(s, x) K[x, f]\nLoss = sig(S[s, f])",
        "S[s, f] avg= In(s, x) K[x, f]\nLoss avg= S[s, f]^2",
        "Loss = exp(-K[x, 0]^2) E(x, y)",
        "Loss = sig(K[0, f]) + sig(K[x, f])",
        "Q[x.] = softmax(K[x, 0])\nLoss = Q[x]^2",
        "Loss max= K[x, f]",
    ];
    for layer in [first[below(first.len())], second[below(second.len())], last[below(last.len())]] {
        text.push_str(layer);
        text.push('\n');
    }
    text + "Loss? LEARN\nW?\nV?\nA?\nR?\n"
}

/// A program with other numbers for its parameters, no two of them equal.
fn moved(stream: &mut Stream, text: &str) -> String {
    let is_number = |letter: char| letter.is_ascii_digit() || matches!(letter, '.' | '-');
    let mut moved = String::new();
    for line in text.lines() {
        let (name, numbers) = line.split_at(line.find(" ~ [").map_or(line.len(), |at| at + 4));
        moved += name;
        for piece in numbers.split_inclusive(|letter| !is_number(letter)) {
            let rest = piece.trim_start_matches(is_number);
            if rest.len() < piece.len() {
                write!(moved, "{:.4}", 5.0 * stream.uniform() - 2.0).unwrap();
            }
            moved += rest;
        }
        moved.push('\n');
    }
    moved
}

/// Whether a program learns the same by plain loops, whose sums are taken in another order, and lifted too.
fn is_steady(text: &str, options: &str) -> bool {
    let numbers = |answers: Result<Vec<Answer>, Vec<Code>>| -> Result<Vec<f64>, Vec<Code>> {
        Ok(answers?.iter().flat_map(|answer| answer.content.numbers().to_vec()).collect())
    };
    let near = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-9 * a.abs().max(1.0) || a.to_bits() == b.to_bits();
    ["", ", lift=yes"].iter().all(|lift| {
        let text = text.replace("LEARN", &format!("@minimize({options}{lift})"));
        match (numbers(answers(&text)), numbers(answers_of(&text, &mut Reference::default()))) {
            (Ok(found), Ok(plain)) => found.len() == plain.len() && found.iter().zip(&plain).all(near),
            (found, plain) => found.is_err() == plain.is_err(),
        }
    })
}

/// How many programs learn, of how many constants or tuples were equal, and how many stand at kinks.
#[derive(Debug, Default)]
struct Tally {
    legal: u64,
    fewer: u64,
    merged: u64,
    kinks: u64,
}

impl Tally {
    fn add(&mut self, stream: &mut Stream, (seed, text): (u64, &str), options: &str) {
        match compared(text, options) {
            Ok(lifted) => {
                self.legal += 1;
                self.fewer += u64::from(lifted.constants.is_some());
                self.merged += u64::from(lifted.tuples.is_some());
            }
            Err(how) if how.is_empty() => {}
            Err(how) => {
                // At a kink, as of `relu` where a softmax of equals leaves 0 or the last digit of it, or where a sum that cancels is
                // present or not, rounding decides. What is merged does not hang on these numbers: with others it shows again if
                // it is wrong.
                self.kinks += 1;
                for _ in 0..2 {
                    let text = moved(stream, text);
                    if let Err(again) = compared(&text, options) {
                        let fine = again.is_empty() || !is_steady(&text, options);
                        assert!(fine, "seed {seed}: {how}\nand {again}");
                    }
                }
            }
        }
    }

    /// Asks that enough of so many were.
    fn check(&self, count: u64, (legal, fewer, merged): (u64, Option<u64>, Option<u64>)) {
        let enough = |found: u64, one_in: Option<u64>| one_in.is_none_or(|one_in| found * one_in > count);
        assert!(
            enough(self.legal, Some(legal)) && enough(self.fewer, fewer) && enough(self.merged, merged),
            "{self:?}"
        );
        assert!(self.kinks * 100 <= count, "{self:?} of {count}");
    }
}

#[test]
fn random_networks_learn_the_same() {
    let count = common::drawn(150);
    let mut tally = Tally::default();
    let first = seeded::test_seed();
    for seed in first..first + count {
        let mut stream = seeded::Family::new("tensor-logic/tests", "lifting", seed).stream(0);
        let text = program(&mut stream);
        let mut options = "opt=sgd, lr=0.01, steps=2";
        if text.contains("In(s, x)") && stream.uniform() < 0.5 {
            options = "opt=sgd, lr=0.01, epochs=2, batch=s, size=1";
            // Of one sample none can be held out.
            if !text.contains("s : 1\n") && stream.uniform() < 0.5 {
                options = "opt=sgd, lr=0.01, epochs=3, batch=s, size=1, valid=0.4, patience=2";
            }
        }
        tally.add(&mut stream, (seed, &text), options);
    }
    println!("of {count}: {tally:?}");
    tally.check(count, (2, Some(5), Some(10)));
}

/// Samples of a few nodes each: relations over pairs of a sample and a node, some of the same build.
fn samples(stream: &mut Stream) -> String {
    let mut below = |bound: usize| (stream.uniform() * bound as f64) as usize;
    let (samples, kinds, nodes) = (1 + below(4), 1 + below(2), 1 + below(4));
    let mut text = format!("s : {samples}\n");
    if below(2) == 0 {
        text += &format!("x, y, z : {}\n", nodes + below(2));
    }
    text += "d, e : 2\nk : 3\n";
    let builds: Vec<Vec<String>> = (0..kinds)
        .map(|_| {
            let mut lines = Vec::new();
            for x in 0..nodes {
                if below(6) > 0 {
                    lines.push(format!("Is(S, {x}, {})", below(3)));
                }
                lines.push(format!("Node(S, {x})"));
                for y in 0..nodes {
                    if below(2) == 0 {
                        lines.push(format!("Bond(S, {x}, {y}, {})", below(2)));
                    }
                    if below(3) == 0 {
                        lines.push(format!("Far(S, {x}, {y}) = {}", ["0.5", "2", "-1"][below(3)]));
                    }
                }
            }
            lines
        })
        .collect();
    for sample in 0..samples {
        for line in &builds[below(kinds)] {
            writeln!(text, "{}", line.replace('S', &sample.to_string())).unwrap();
        }
        writeln!(text, "T({sample}) = {}", below(2)).unwrap();
    }
    text += "Bond(0, 0, 0, 0)\nFar(0, 0, 0) = 2\nIs(0, 0, 1)\n";
    text += "A[k, d] ~ [[0.5, -0.25], [0.75, 1], [-0.5, 0.125]]\nW[d, e] ~ [[0.5, -0.25], [0.75, 1]]\n";
    text += "V[d, e] ~ [[-0.5, 0.25], [0.5, 0.75]]\nB[k] ~ [1, 0.5, -0.5]\nP[d] ~ [0.5, -1]\n";
    let first = [
        "H(s, x, d) += Is(s, x, k) A[k, d]",
        "H[s, x, d] = Is(s, x, k) tanh(A[k, d])",
        "H(s, x, d) += Is(s, x, k) A[k, d] | x < 2",
        "H(s, x, d) += Node(s, x) A[0, d] / (1 + x)",
        "H[s, x, d] = Node(s, x) A[1, d] + Is(s, x, k) A[k, d]",
        "H(s, x, d) += Node(s, x) P[d] not Is(s, x, _)",
        "H[s, x, d] = A[0, d] count[y](Bond(s, x, y, b))",
        "H(s, x, d) += Is(s, x, k) A[k, d] T(s)",
    ];
    let layers = [
        "G(s, x, e) += Bond(s, x, y, b) H(s, y, d) W[d, e]",
        "G(s, x, e) avg= Bond(s, x, y, b) tanh(H(s, x, d) W[d, e] + B[b])",
        "G[s, x, e] = Bond(s, x, y, b) tanh(H[s, y, e] + H[s, x, e]) B[b]",
        "G[s, x, e] avg= Far(s, x, y) H[s, y, d] W[d, e]",
        "G[s, x, e] max= Bond(s, x, y, b) sig(H[s, y, e])",
        "G(s, x, e) min= Far(s, x, y) H(s, y, e)",
        "G(s, x, e) *= Bond(s, x, y, b) sig(H(s, y, d) W[d, e])",
        "G[s, x, e] = H[s, x, d] W[d, e] + Far(s, x, y) H[s, y, d] V[d, e]",
        "G[s, x, e] = H[s, x+1, d] W[d, e] + H[s, x, e]",
        "G(s, x, e) += H(s, x, d) W[d, e]",
        "G(s, x, e) += Bond(s, x, y, b) H(s, y, e) | not Far(s, x, y)",
        "G(s, x, e) += Bond(s, x, y, b) H(s, y, e) | H(s, x, d)",
        "G(s, x, e) += Node(s, x) H(s, 0, e)",
        "G(s, x, e) += Bond(s, x, y, b), Bond(s, y, z, c) tanh(H(s, z, d) W[d, e]) | x != z",
        "Att(s, x, y.) += softmax(Bond(s, x, y, b) H(s, x, d) H(s, y, d))\nG(s, x, e) += Att(s, x, y) H(s, y, e)",
        "G(s, x, e) += tanh(Bond(s, x, y, b) H(s, y, d) W[d, e])",
        "G[s, x, e] = sum[y](Far(s, x, y) H[s, y, d]) W[d, e]",
        "Z[0, s, x, e] = H[s, x, e]\nZ[t+1, s, x, e] = tanh(Bond(s, x, y, b) Z[t, s, y, d] W[d, e])\nG[s, x, e] = Z[2, s, x, e]",
        "M(s, x, y) += Bond(s, x, y, b) H(s, x, d) P[d]\nG(s, x, e) += M(s, x, y) H(s, y, e) M(s, y, x)",
        "M(s, b, e) += Bond(s, x, y, b) H(s, x, e)\nG(s, x, e) += Bond(s, x, y, b) M(s, b, e)",
        "G(s, x, e) += H(s, x, e) | 0.2 < H[s, x, 0]",
        "On(s, x) <- Bond(s, x, y, b), H[s, y, 0] > 0\nG(s, x, e) += On(s, x) H(s, x, e)",
    ];
    let last = [
        "Y(s) avg= Node(s, x) sig(G[s, x, e] P[e])\nLoss = (Y(s) - T(s))^2",
        "Y[s] = Node(s, x) G[s, x, e] P[e]\nLoss = (tanh(Y[s]) - T(s))^2",
        "Loss = sig(G[s, x, e] P[e])",
        "Loss avg= (G(s, x, e) - T(s))^2",
        "Y(s, e) max= sig(G(s, x, e))\nLoss = Y(s, e)^2 T(s)",
        "Y(s) += Is(s, x, 1) sig(G(s, x, e) P[e])\nLoss = (Y[s] - 1)^2",
        "Loss = sum[s]((sum[x](sig(G[s, x, e])) - T[s])^2)",
        "Loss = sig(G(s, 0, e) - G(s, x, e))",
    ];
    writeln!(text, "{}", first[below(first.len())]).unwrap();
    writeln!(text, "{}", layers[below(layers.len())]).unwrap();
    if below(2) == 0 {
        // Another layer over it.
        let line = layers[below(layers.len())];
        let renamed: String = line
            .replace("Z[", "Y2[")
            .replace("M(", "M2(")
            .replace("Att(", "Att2(")
            .replace("On(", "On2(")
            .replace("G[", "K[")
            .replace("G(", "K(")
            .replace("H[", "G[")
            .replace("H(", "G(");
        writeln!(text, "{renamed}").unwrap();
        let line = last[below(last.len())].replace("G[", "K[").replace("G(", "K(");
        writeln!(text, "{line}").unwrap();
    } else {
        writeln!(text, "{}", last[below(last.len())]).unwrap();
    }
    text + "Loss? LEARN\nW?\nV?\nA?\nB?\nP?\n"
}

#[test]
fn random_samples_learn_the_same() {
    let count = common::drawn(200);
    let mut tally = Tally::default();
    let first = seeded::test_seed();
    for seed in first..first + count {
        let mut stream = seeded::Family::new("tensor-logic/tests", "lifted samples", seed).stream(0);
        let text = samples(&mut stream);
        let options = [
            "opt=sgd, lr=0.01, steps=2",
            "opt=sgd, lr=0.01, epochs=2, batch=s, size=1",
            "opt=sgd, lr=0.01, epochs=2, batch=s, size=2, shuffle=1",
            "opt=sgd, lr=0.01, epochs=2, batch=s, size=4",
            "opt=adam, lr=0.001, epochs=2, batch=s, size=2, valid=0.4, patience=2",
        ];
        let options = options[(stream.uniform() * 5.0) as usize];
        tally.add(&mut stream, (seed, &text), options);
    }
    println!("of {count}: {tally:?}");
    tally.check(count, (2, None, Some(3)));
}

/// Programs of all kinds, with some of their arrays as parameters.
#[test]
fn random_programs_learn_the_same() {
    let count = common::drawn(150);
    let first = seeded::test_seed();
    let mut tally = Tally::default();
    for seed in first..first + count {
        let mut stream = seeded::Family::new("tensor-logic/tests", "lifted programs", seed).stream(0);
        let mut lines = common::generator::program(&mut stream);
        lines.retain(|line| !line.ends_with('?'));
        let Some((at, name)) = lines.iter().enumerate().find_map(|(at, line)| {
            let (name, _) = line.split_once(" = [")?;
            name.chars().all(char::is_alphanumeric).then(|| (at, name.to_owned()))
        }) else {
            continue;
        };
        lines[at] = lines[at].replacen(" = [", " ~ [", 1);
        let text = lines.join("\n");
        let Some((goal, places)) = lines.iter().rev().find_map(|line| square(line)) else { continue };
        let indices: Vec<String> = (0..places).map(|at| format!("z{at}")).collect();
        let read = if places == 0 { goal } else { format!("{goal}[{}]", indices.join(", ")) };
        let text = format!("{text}\nLoss = sig({read})\nLoss? LEARN\n{name}?\n");
        tally.add(&mut stream, (seed, &text), "opt=sgd, lr=0.01, steps=2");
    }
    println!("of {count}: {tally:?}");
    tally.check(count, (20, None, None));
}

/// A relation that is 0 where it has no tuple, of values that tuples elsewhere give: nothing counted its constants, which
/// became one, and nothing was learned.
#[test]
fn relations_that_are_0_without_a_tuple_keep_their_constants() {
    let text = "A ~ [2, 0.5]\nR(Cal, Ann)\nR(Ann, Ann)\nM[k] = sig(R(x, y) A[k]) R(y, y)\nLoss = M[z]\nLoss? LEARN\nA?\n";
    assert!(compared(text, "opt=sgd, lr=0.1, steps=2").is_ok());
}
