//! Relational networks on random graphs: what must not change an answer, or a gradient, changes none.
//!
//! A literal that only filters stands twice; facts stand in another order; constants have other names; samples are computed
//! apart; positions of a sequence are counted from elsewhere.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::expect_used,
    reason = "a test that has no answer has failed"
)]

use std::collections::{BTreeMap, HashMap};

use seeded::Stream;
use tensor_logic::auto::Auto;
use tensor_logic::engine::{Engine, Request, Value};
use tensor_logic::fast::Fast;
use tensor_logic::gradient::adjoint;
use tensor_logic::program::{Program, Role, TensorId};
use tensor_logic::reference::Reference;
use tensor_logic::start::all_start_values;

use crate::common;
use crate::common::engines::{BUDGET, STORAGES, analysed};

/// Layers that make `H(s, x)` of features `F(s, x)` and labelled arcs `E(s, y, x, b)`, with `EDGE` for an arc that only
/// filters.
const LAYERS: &[&str] = &[
    "H(s, x) += EDGE tanh(W F(s, y))",
    "H(s, x) += tanh(EDGE W F(s, y) + V F(s, x))",
    "H(s, x) avg= EDGE W F(s, y) + EDGE V F(s, x)",
    "H(s, x) max= EDGE W F(s, y)",
    "P(s, x, y.) += softmax(EDGE W F(s, x) V F(s, y))\nH(s, x) += P(s, x, y) F(s, y)",
    "H(s, x) += E(s, y, x, b) L(b) tanh(W F(s, y)) + V F(s, x) Edge(s, x, y)",
    "M(s, x) += EDGE sig(W F(s, y))\nH(s, x) += EDGE sig(V M(s, y))",
    "R(s, x, y) <- Edge(s, x, y)\nR(s, x, z) <- R(s, x, y), Edge(s, y, z)\nH(s, y) += R(s, x, y) tanh(W F(s, x)) V",
    "H(s, x) += EDGE F(s, y) W not Edge(s, x, y) + V F(s, x)",
    "M[s, x] = EDGE F(s, y) W\nH(s, x) += Node(s, x) (M[s, x] + V)",
    "H(s, x) += W F(s, x)\nH(s, x) += 0.1 EDGE tanh(V H(s, y))",
];

/// What is read off a sample.
const READERS: &[&str] =
    &["G(s) += Node(s, x) tanh(U H(s, x))", "G(s) avg= U H(s, x)", "G(s) max= U H(s, x)"];

/// A graph of at most five nodes, with what is to be learned of it.
struct Sample {
    /// From, to, label.
    arcs: Vec<(usize, usize, usize)>,
    features: Vec<f64>,
    target: f64,
}

fn number(stream: &mut Stream) -> f64 {
    (stream.below(33) as f64 - 16.0) / 8.0
}

fn sample(stream: &mut Stream) -> Sample {
    let nodes = 2 + stream.below(4);
    let node = |stream: &mut Stream| stream.below(nodes) as usize;
    let arcs = (0..=nodes).map(|_| (node(stream), node(stream), stream.below(2) as usize)).collect();
    let features = (0..nodes).map(|_| number(stream)).collect();
    Sample { arcs, features, target: number(stream) }
}

/// How constants are called.
struct Names {
    samples: Vec<String>,
    nodes: Vec<String>,
    labels: Vec<String>,
}

impl Names {
    fn plain() -> Self {
        let all = |letter: &str, count: usize| (0..count).map(|at| format!("{letter}{at}")).collect();
        Names { samples: all("", 3), nodes: all("N", 5), labels: all("L", 2) }
    }

    /// Others, in another order.
    fn other(stream: &mut Stream) -> Self {
        let mut all = |letter: &str, count: u32, first: u32| {
            let order = stream.permutation(count);
            order.iter().map(|at| format!("{letter}{}", first + at)).collect()
        };
        Names { samples: all("", 3, 40), nodes: all("Vertex", 5, 7), labels: all("Bond", 2, 3) }
    }

    /// From these names to the plain ones.
    fn back(&self) -> HashMap<String, String> {
        let plain = Names::plain();
        let pairs = |other: &[String], plain: &[String]| {
            other.iter().cloned().zip(plain.iter().cloned()).collect::<Vec<_>>()
        };
        let all = [
            pairs(&self.samples, &plain.samples),
            pairs(&self.nodes, &plain.nodes),
            pairs(&self.labels, &plain.labels),
        ];
        all.into_iter().flatten().collect()
    }
}

/// The facts of samples; `only` says which.
fn facts(samples: &[Sample], only: &[usize], names: &Names) -> Vec<String> {
    let mut facts: Vec<String> = names
        .labels
        .iter()
        .zip([0.5, -0.75])
        .map(|(label, weight)| format!("L({label}) = {weight}"))
        .collect();
    for at in only {
        let (sample, s) = (&samples[*at], &names.samples[*at]);
        for (from, to, label) in &sample.arcs {
            let (from, to, label) = (&names.nodes[*from], &names.nodes[*to], &names.labels[*label]);
            facts.push(format!("E({s}, {from}, {to}, {label})"));
        }
        for (feature, node) in sample.features.iter().zip(&names.nodes) {
            facts.push(format!("F({s}, {node}) = {feature}"));
        }
        facts.push(format!("T({s}) = {}", sample.target));
    }
    facts
}

/// A program of facts, a layer and a reader. Its rounds end nearer to their limit than the programs are compared: those of
/// all samples and of one end at another round.
fn program(facts: &[String], layer: &str, reader: &str) -> String {
    let rules =
        "Edge(s, y, x) <- E(s, y, x, b)\nNode(s, x) <- F(s, x)\nW ~ 0.75\nV ~ -0.5\nU ~ 1.25\n@tol(1e-14)";
    let layer = layer.replace("EDGE", "Edge(s, y, x)");
    format!("{}\n{rules}\n{layer}\n{reader}\nLoss = (G(s) - T(s))^2\n", facts.join("\n"))
}

/// What a program says of `G`, `H`, `Loss` and its gradients: a number for each element.
type Said = BTreeMap<String, f64>;

fn named(program: &Program, name: &str) -> TensorId {
    let at = program.tensors.iter().position(|tensor| tensor.name == name);
    TensorId(at.unwrap_or_else(|| panic!("no {name}")) as u32)
}

fn said(text: &str, engine: &mut dyn Engine, back: &HashMap<String, String>) -> Said {
    let program = analysed(text).unwrap_or_else(|reports| panic!("{text}\n{reports:?}"));
    let learned: Vec<TensorId> = (0..)
        .map(TensorId)
        .zip(&program.tensors)
        .filter_map(|(id, tensor)| (tensor.role == Role::Parameter).then_some(id))
        .collect();
    let loss = named(&program, "Loss");
    let grown = adjoint(&program, loss, &learned);
    let gradients = learned.iter().zip(&grown.gradients);
    let gradients = gradients.filter_map(|(id, found)| Some((format!("d{}", program.name(*id)), (*found)?)));
    let mut goals: Vec<(String, TensorId)> =
        ["G", "H", "Loss"].map(|name| (name.to_owned(), named(&program, name))).into();
    goals.extend(gradients);
    let parameters = all_start_values(&program);
    let request = Request { program: &grown.program, parameters: &parameters, budget: BUDGET };
    let ids: Vec<TensorId> = goals.iter().map(|(_, id)| *id).collect();
    let values = engine.values(&request, &ids).unwrap_or_else(|report| panic!("{text}\n{report:?}"));
    let mut said = Said::new();
    for ((name, _), value) in goals.iter().zip(values) {
        match value {
            Value::Tuples(found) => {
                for (tuple, number) in found.tuples.iter().zip(found.values) {
                    let constants = tuple.iter().map(|constant| {
                        let shown = program.symbols.show(*constant);
                        back.get(&shown).cloned().unwrap_or(shown)
                    });
                    let place = constants.collect::<Vec<_>>().join(", ");
                    assert_eq!(said.insert(format!("{name}({place})"), number), None);
                }
            }
            value => {
                said.insert(name.clone(), value.doubles()[0]);
            }
        }
    }
    said
}

/// How two say something else.
fn difference(found: &Said, wanted: &Said) -> Option<String> {
    let close = |a: f64, b: f64| (a - b).abs() <= 1e-12 * a.abs().max(b.abs()).max(1.0);
    let same = found.len() == wanted.len()
        && found.iter().zip(wanted).all(|((a, x), (b, y))| a == b && close(*x, *y));
    (!same).then(|| format!("{found:?}\n instead of {wanted:?}"))
}

fn engines() -> Vec<Box<dyn Engine>> {
    let fast = STORAGES
        .map(|storage| -> Box<dyn Engine> { Box::new(Auto::new(Box::new(Fast::with_storage(storage)))) });
    fast.into_iter().chain([Box::<Reference>::default() as Box<dyn Engine>]).collect()
}

/// Calls `check` with random samples for each network; how many of them say something of every sample.
fn networks(purpose: &str, mut check: impl FnMut(&mut Stream, &[Sample], &str, &str) -> Said) -> usize {
    let mut stream = common::stream(purpose);
    let mut whole = 0;
    for layer in LAYERS {
        for reader in READERS {
            for _ in 0..2 {
                let samples: Vec<Sample> = (0..3).map(|_| sample(&mut stream)).collect();
                let said = check(&mut stream, &samples, layer, reader);
                whole += usize::from((0..3).all(|at| said.contains_key(&format!("G({at})"))));
            }
        }
    }
    whole
}

/// The samples of a program as they are, by the interpreter.
fn plain(samples: &[Sample], layer: &str, reader: &str) -> Said {
    let text = program(&facts(samples, &[0, 1, 2], &Names::plain()), layer, reader);
    said(&text, &mut Reference::default(), &HashMap::new())
}

#[test]
fn what_changes_no_answer_changes_none() {
    let count = networks("metamorphic", |stream, samples, layer, reader| {
        let wanted = plain(samples, layer, reader);
        let all = [0, 1, 2];
        let usual = facts(samples, &all, &Names::plain());
        let twice = layer.replace("EDGE", "EDGE EDGE");
        let order = stream.permutation(usual.len() as u32);
        let permuted: Vec<String> = order.iter().map(|at| usual[*at as usize].clone()).collect();
        let names = Names::other(stream);
        let none = HashMap::new();
        for (how, text, back) in [
            ("as it is", program(&usual, layer, reader), &none),
            ("literals twice", program(&usual, &twice, reader), &none),
            ("facts in another order", program(&permuted, layer, reader), &none),
            ("other names", program(&facts(samples, &all, &names), layer, reader), &names.back()),
        ] {
            for mut engine in engines() {
                assert_eq!(difference(&said(&text, &mut *engine, back), &wanted), None, "{how}\n{text}");
            }
        }
        wanted
    });
    assert!(count * 2 > LAYERS.len() * READERS.len(), "only {count} networks say something of all samples");
}

#[test]
fn samples_apart_are_samples_together() {
    let count = networks("metamorphic-parts", |stream, samples, layer, reader| {
        let wanted = plain(samples, layer, reader);
        let first = stream.below(3) as usize;
        let parts = [vec![first], (0..3).filter(|at| *at != first).collect()];
        for mut engine in engines() {
            let mut sum = Said::new();
            for part in &parts {
                let text = program(&facts(samples, part, &Names::plain()), layer, reader);
                for (name, number) in said(&text, &mut *engine, &HashMap::new()) {
                    *sum.entry(name).or_insert(0.0) += number;
                }
            }
            assert_eq!(difference(&sum, &wanted), None, "{first} apart\n{layer}\n{reader}");
        }
        wanted
    });
    assert!(count * 2 > LAYERS.len() * READERS.len(), "only {count} networks say something of all samples");
}

/// A sequence for each sample, with attention under a guard. `place` says where a token stands.
fn sequences(tokens: &[Vec<f64>], guard: &str, place: impl Fn(usize, usize) -> i64) -> String {
    let mut text = String::new();
    for (s, tokens) in tokens.iter().enumerate() {
        for (at, token) in tokens.iter().enumerate() {
            text += &format!("F({s}, {}) = {token}\n", place(s, at));
        }
        text += &format!("T({s}) = {}\n", tokens[0] / 2.0);
    }
    text += "W ~ 0.75\nV ~ -0.5\n";
    text +=
        &format!("P(s, i, j.) += softmax(F(s, i) W F(s, j) | {guard})\nH(s, i) += P(s, i, j) V F(s, j)\n");
    text + "Node(s, i) <- F(s, i)\nG(s) avg= Node(s, i) tanh(H(s, i))\nLoss = (G(s) - T(s))^2\n"
}

#[test]
fn positions_are_counted_from_anywhere() {
    let mut stream = common::stream("metamorphic-positions");
    // Every place moved by the same number, or in any way that keeps the order.
    let shifted = ["i - j <= 1, j <= i", "j <= i, (i - j) % 2 == 0", "j == i"];
    for (guard, any) in
        shifted.map(|guard| (guard, false)).into_iter().chain([("j <= i", true), ("j < i", true)])
    {
        for _ in 0..4 {
            let tokens: Vec<Vec<f64>> =
                (0..2).map(|_| (0..2 + stream.below(4)).map(|_| number(&mut stream)).collect()).collect();
            let wanted = said(
                &sequences(&tokens, guard, |_, at| at as i64),
                &mut Reference::default(),
                &HashMap::new(),
            );
            let moved: Vec<i64> = (0..2).map(|_| stream.below(2000) as i64 - 1000).collect();
            let stretch = if any { 1 + stream.below(5) as i64 } else { 1 };
            let place = |s: usize, at: usize| stretch * at as i64 + moved[s];
            for mut engine in engines() {
                let found = said(&sequences(&tokens, guard, place), &mut *engine, &HashMap::new());
                let found: Said =
                    found.into_iter().map(|(name, value)| (back(&name, &place), value)).collect();
                assert_eq!(difference(&found, &wanted), None, "{guard} {moved:?} {stretch} {tokens:?}");
            }
        }
    }
}

/// `H(s, i)` with the position that `i` had before.
fn back(name: &str, place: &impl Fn(usize, usize) -> i64) -> String {
    let Some((s, i)) = name.strip_prefix("H(").and_then(|rest| rest.strip_suffix(')')?.split_once(", "))
    else {
        return name.to_owned();
    };
    let (s, i): (usize, i64) = (s.parse().unwrap(), i.parse().unwrap());
    let at = (0..6).find(|at| place(s, *at) == i).expect("a position");
    format!("H({s}, {at})")
}
