//! A step on a batch is a step on a program that has the data of its samples only.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot learn has failed")]

use std::fmt::Write;
use std::path::Path;

use seeded::Stream;
use tensor_logic::auto::Auto;
use tensor_logic::fast::Fast;
use tensor_logic::reference::Reference;

use crate::common;
use crate::common::answers::calculated;

const NAMES: [&str; 5] = ["Ann", "Bob", "Cyd", "Dee", "Eve"];

/// The data of some samples, in one of the ways in which data can be given.
struct Samples {
    /// Whether samples are symbols, else numbers.
    symbols: bool,
    rows: Vec<[f64; 2]>,
    links: Vec<Vec<(usize, usize, f64)>>,
    targets: Vec<f64>,
    first: usize,
}

impl Samples {
    fn random(stream: &mut Stream) -> Samples {
        let mut below = |bound: usize| (stream.uniform() * bound as f64) as usize;
        let count = 2 + below(4);
        let symbols = below(2) == 0;
        let first = if symbols { 0 } else { below(3) };
        let mut number = || stream.uniform() * 2.0 - 1.0;
        let rows = (0..count).map(|_| [number(), number()]).collect();
        let targets = (0..count).map(|_| number()).collect();
        let mut link = || (stream.uniform() * 3.0) as usize;
        let pairs: Vec<Vec<(usize, usize)>> =
            (0..count).map(|_| (0..link()).map(|_| (link(), link())).collect()).collect();
        let links = pairs
            .into_iter()
            .map(|pairs| pairs.into_iter().map(|(x, y)| (x, y, 0.5 + x as f64)).collect())
            .collect();
        Samples { symbols, rows, links, targets, first }
    }

    fn name(&self, sample: usize) -> String {
        if self.symbols { NAMES[sample].to_owned() } else { (self.first + sample).to_string() }
    }

    /// The program for these samples.
    fn text(&self, samples: &[usize], model: &str) -> String {
        let names: Vec<String> = samples.iter().map(|sample| self.name(*sample)).collect();
        let mut text = match self.symbols {
            true => format!("s : {{{}}}\n", names.join(", ")),
            false => format!("s : {}..{}\n", names[0], names[names.len() - 1]),
        };
        let rows: Vec<String> = samples.iter().map(|sample| format!("{:?}", self.rows[*sample])).collect();
        writeln!(text, "x, y : 3\nd, e : 2\nX[s, d] = [{}]", rows.join(", ")).unwrap();
        // The same numbers with the sample behind, and one sample after the other.
        let turned: Vec<String> = (0..2)
            .map(|d| format!("{:?}", samples.iter().map(|sample| self.rows[*sample][d]).collect::<Vec<_>>()))
            .collect();
        writeln!(text, "Z[d, s] = [{}]", turned.join(", ")).unwrap();
        for sample in samples {
            let name = self.name(*sample);
            writeln!(
                text,
                "Y[{name}, d] = {:?}\nT({name}) = {:?}",
                self.rows[*sample], self.targets[*sample]
            )
            .unwrap();
            for (x, y, value) in &self.links[*sample] {
                writeln!(text, "Link({name}, {x}, {y})\nCost({x}, {name}) = {value:?}").unwrap();
            }
            writeln!(text, "Agg({name}) += 0.25").unwrap();
        }
        // What has no data in some batch.
        writeln!(text, "Link(s, x, y)\nCost(x, s) : real").unwrap();
        text + "W[d, e] ~ [[0.5, -0.25], [0.75, 1]]\nV[x, e] ~ [[1, 0], [0.5, -1], [-0.5, 0.25]]\n" + model
    }
}

const MODELS: [&str; 6] = [
    "H[s, e] = tanh(X[s, d] W[d, e])\nLoss = (H[s, e] V[0, e] - T(s))^2\n",
    "H[s, x, e] = Link(s, x, y) V[y, e] + Y[s, d] W[d, e]\nLoss = sig(H[s, x, e]) T(s)^2\n",
    "H(s, x, e) += Link(s, x, y) tanh(V[y, e] Z[d, s] W[d, e])\nLoss = (H(s, x, e) - T(s))^2\n",
    "Near(s, x) <- Link(s, x, _)\nP[s, x.] = softmax(V[x, e] X[s, d] W[d, e] | Near(s, x))\nLoss = P[s, x] T(s)\n",
    "Agg(s) += Cost(x, s) V[x, 0] W[0, 1]\nLoss = Agg(s)^2\n",
    "State[0, s, e] = X[s, e]\nState[t+1, s, e] = tanh(State[t, s, d] W[d, e])\nLoss = (State[3, s, e] - T(s))^2 not Link(s, 0, 0)\n",
];

/// W and V behind the steps of a program.
fn learned(text: &str, reference: bool) -> Vec<f64> {
    let mut fast = Auto::new(Box::new(Fast::default()));
    let mut plain = Reference::default();
    let found = match reference {
        true => calculated(text, Path::new("."), 0, &mut plain),
        false => calculated(text, Path::new("."), 0, &mut fast),
    };
    let found = found.unwrap_or_else(|reports| panic!("{text}\n{reports:?}"));
    assert_eq!(found.outcome.refusal, None, "{text}");
    let answers = &found.outcome.answers;
    answers[answers.len() - 2..].iter().flat_map(|answer| answer.content.numbers().to_vec()).collect()
}

fn with_weights(text: &str, weights: &[f64]) -> String {
    let (w, v) = weights.split_at(4);
    let rows = |numbers: &[f64]| {
        let rows: Vec<String> = numbers.chunks(2).map(|row| format!("{row:?}")).collect();
        format!("[{}]", rows.join(", "))
    };
    let lines = text.lines().map(|line| match line {
        line if line.starts_with("W[d, e] ~") => format!("W[d, e] ~ {}", rows(w)),
        line if line.starts_with("V[x, e] ~") => format!("V[x, e] ~ {}", rows(v)),
        line => line.to_owned(),
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn a_batch_is_a_program_of_its_samples() {
    let count = common::drawn(60);
    let first = seeded::test_seed();
    for seed in first..first + count {
        let mut stream = seeded::Family::new("tensor-logic/tests", "batches", seed).stream(0);
        let samples = Samples::random(&mut stream);
        let all: Vec<usize> = (0..samples.rows.len()).collect();
        let size = 1 + (stream.uniform() * all.len() as f64) as usize;
        let model = MODELS[(stream.uniform() * MODELS.len() as f64) as usize];
        let asked = |options: &str| format!("Loss? @minimize(opt=sgd, lr=0.05, {options})\nW?\nV?\n");
        let text = samples.text(&all, model) + &asked(&format!("epochs=2, batch=s, size={size}"));
        let reference = seed % 4 == 0;
        let found = learned(&text, reference);
        let mut wanted = vec![0.5, -0.25, 0.75, 1.0, 1.0, 0.0, 0.5, -1.0, -0.5, 0.25];
        for batch in all.chunks(size).chain(all.chunks(size)) {
            wanted =
                learned(&with_weights(&(samples.text(batch, model) + &asked("steps=1")), &wanted), reference);
        }
        let near = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-11 * b.abs().max(1.0);
        assert!(
            found.len() == wanted.len() && found.iter().zip(&wanted).all(near),
            "seed {seed}: {found:?} instead of {wanted:?}\n{text}"
        );
    }
}

/// Samples are what relations say something of, whatever their names are: numbers far from each other, symbols among them.
#[test]
fn samples_are_those_of_tuples() {
    let text = |names: [&str; 3], options: &str| {
        let [a, b, c] = names;
        format!(
            "F({a}) = 0.5; F({b}) = 1; F({c}) = 0.25; T({a}) = 1; T({b}) = 0; T({c}) = 0.5\nW ~ 0.1\n\
             Loss = sum[s]((W F(s) - T(s))^2)\nLoss? @minimize(opt=sgd, lr=0.1, batch=s, {options})\nW?\nLoss?\n"
        )
    };
    for options in ["epochs=3, size=1", "epochs=2, size=2", "epochs=4, size=1, valid=0.34"] {
        let wanted = learned(&text(["0", "1", "2"], options), false);
        let far = ["-4611686018427387904", "7", "4611686018427387904"];
        for names in [["1", "40", "80"], far, ["2", "100000", "Bob"]] {
            assert_eq!(learned(&text(names, options), false), wanted, "{names:?} {options}");
            assert_eq!(learned(&text(names, options), true), wanted, "{names:?} {options}");
        }
    }
    // Without a sample nothing is learned.
    let none = "F = \"none.csv\"; W ~ 0.1\nLoss = sum[s]((W F(s) - 1)^2)\nLoss? @minimize(epochs=1, batch=s, size=1)\n";
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("none.csv"), "").unwrap();
    let found = calculated(none, folder.path(), 0, &mut Auto::new(Box::new(Fast::default())));
    let refusal = found.unwrap().outcome.refusal.unwrap();
    assert!(refusal.message.starts_with("nothing to learn from"), "{}", refusal.message);
}

/// An index name may stand for samples of several things, which have other numbers: all of them are samples, whichever equation comes
/// first, and a batch of all is no batch.
#[test]
fn samples_of_two_tasks_are_all_seen() {
    let facts = |name: &str, samples: &[&str]| {
        samples.iter().map(|sample| format!("{name}({sample}, Na)")).collect::<Vec<_>>().join("; ")
    };
    let tasks = ["LA = sum[s]((A(s, x) W - 1)^2)", "LB = sum[s]((R(s, x) V - 2)^2)"];
    let own: [(&[&str], &[&str]); 4] = [
        (&["1", "2", "3"], &["5", "6"]),
        (&["1", "2", "3"], &["2", "3", "4", "5", "6"]),
        (&["1", "Ann"], &["Bob", "7"]),
        (&["-4611686018427387904", "1"], &["4611686018427387904", "5"]),
    ];
    for (a, r) in own {
        let text = |order: [usize; 2], options: &str| {
            format!(
                "{}\n{}\nV ~ 0\nW ~ 0\n{}\n{}\nLoss = LA + LB\nLoss? @minimize(opt=sgd, lr=0.1, {options})\nV?\nW?\n",
                facts("A", a),
                facts("R", r),
                tasks[order[0]],
                tasks[order[1]]
            )
        };
        let of = |order: [usize; 2], options: &str| learned(&text(order, options), false);
        assert_eq!(of([0, 1], "epochs=3, batch=s, size=100"), of([0, 1], "steps=3"));
        for options in ["size=1", "size=2", "size=2, lift=yes", "size=3, lift=yes"] {
            let options = format!("epochs=90, batch=s, {options}");
            let found = of([0, 1], &options);
            assert!((found[0] - 2.0).abs() < 1e-3 && (found[1] - 1.0).abs() < 1e-3, "{a:?} {r:?}: {found:?}");
            assert_eq!(of([1, 0], &options), found, "{a:?} {r:?} {options}");
            assert_eq!(learned(&text([0, 1], &options), true), found, "{a:?} {r:?} {options}");
        }
    }
    // A head that computes with the samples makes others of them.
    for lift in ["", ", lift=yes"] {
        let text = format!(
            "At(1, Na); At(2, Na)\nV ~ 1\nH[s, x] = At(s, x) V\nOut[s + 10] = H[s, x]\nLoss = (Out[s] - 3)^2\n\
             Loss? @minimize(opt=sgd, lr=0.1, epochs=5, batch=s, size=2{lift})\nV?\nV?\n"
        );
        assert_eq!(learned(&text, false), [1.0, 1.0]);
    }
}
