//! The library: every layer is what loops by hand make of random numbers, on every engine and storage, and learns its
//! example; and what inclusion does to names.
#![expect(clippy::panic, reason = "a test that cannot run its layers has failed")]

use std::collections::BTreeSet;
use std::path::Path;

use seeded::Stream;
use tensor_logic::library;

use crate::common::answers::{calculated, engines};

mod inclusion;
mod learning;

/// An array of random numbers.
#[derive(Debug, Clone)]
struct Array {
    shape: Vec<usize>,
    values: Vec<f64>,
}

impl Array {
    fn random(stream: &mut Stream, shape: &[usize]) -> Array {
        let count = shape.iter().product();
        let values = (0..count).map(|_| 3.0 * stream.uniform() - 1.5).collect();
        Array { shape: shape.to_vec(), values }
    }

    fn at(&self, place: &[usize]) -> f64 {
        assert_eq!(place.len(), self.shape.len());
        let offset = place.iter().zip(&self.shape).fold(0, |offset, (at, size)| {
            assert!(at < size);
            offset * size + at
        });
        self.values[offset]
    }

    /// `[[1.0, 2.0], [3.0, 4.0]]`
    fn text(&self) -> String {
        fn rows(shape: &[usize], values: &[f64]) -> String {
            let Some((count, inner)) = shape.split_first() else { return format!("{:?}", values[0]) };
            let parts: Vec<String> =
                values.chunks(values.len() / count).map(|part| rows(inner, part)).collect();
            format!("[{}]", parts.join(", "))
        }
        rows(&self.shape, &self.values)
    }
}

/// Weights and inputs by their names in a layer.
struct Layer<'a> {
    file: &'a str,
    arrays: Vec<(&'a str, Array)>,
    facts: String,
    arguments: String,
}

impl Layer<'_> {
    /// What the program says of `H`, by each engine, beside what is wanted.
    fn is(&self, wanted: &[f64]) {
        let given = self.arrays.iter().map(|(name, array)| format!("{name}0 = {}\n", array.text()));
        let named: Vec<String> = self.arrays.iter().map(|(name, _)| format!("{name}={name}0")).collect();
        let text = format!(
            "{}{}\n@include(\"std/{}.tl\", as=Layer, {}{})\nH?\n",
            given.collect::<String>(),
            self.facts,
            self.file,
            named.join(", "),
            self.arguments,
        );
        for (engine, mut evaluator) in engines() {
            let found = calculated(&text, Path::new("."), 0, &mut *evaluator);
            let found = found.unwrap_or_else(|reports| panic!("{text}\n{reports:?}"));
            assert_eq!(found.outcome.refusal, None, "{engine}\n{text}");
            let numbers = found.outcome.answers[0].content.numbers();
            assert_eq!(numbers.len(), wanted.len(), "{engine}\n{text}");
            for (at, (number, wanted)) in numbers.iter().zip(wanted).enumerate() {
                let near = (number - wanted).abs() <= 1e-12 * wanted.abs().max(1.0);
                assert!(near, "{} on {engine}, {at}: {number} instead of {wanted}\n{text}", self.file);
            }
        }
    }
}

/// For a few seeds: random numbers, and arcs among some nodes, of which the last has none.
fn seeds(check: impl Fn(&mut Stream, &BTreeSet<(usize, usize)>)) {
    for seed in 0..4 {
        let mut stream = seeded::Family::new("tensor-logic/tests", "library", seed).stream(0);
        let mut arcs = BTreeSet::new();
        for from in 0..NODES - 1 {
            for to in 0..NODES - 1 {
                if stream.uniform() < 0.4 {
                    arcs.insert((from, to));
                }
            }
        }
        arcs.insert((0, 1));
        check(&mut stream, &arcs);
    }
}

const NODES: usize = 5;
const WIDTH: usize = 3;
const OUT: usize = 2;

fn facts(arcs: &BTreeSet<(usize, usize)>) -> String {
    arcs.iter().map(|(from, to)| format!("Edge({from}, {to}); ")).collect()
}

/// The neighbours of a node: those from which arcs go to it.
fn to(arcs: &BTreeSet<(usize, usize)>, node: usize) -> Vec<usize> {
    arcs.iter().filter(|(_, to)| *to == node).map(|(from, _)| *from).collect()
}

fn sum(count: usize, of: impl Fn(usize) -> f64) -> f64 {
    (0..count).map(of).sum()
}

/// All values of a function over places in order.
fn each<const N: usize>(shape: [usize; N], of: impl Fn([usize; N]) -> f64) -> Array {
    let count = shape.iter().product();
    let place = |mut at: usize| {
        let mut place = [0; N];
        for (slot, size) in place.iter_mut().zip(&shape).rev() {
            *slot = at % size;
            at /= size;
        }
        place
    };
    Array { shape: shape.to_vec(), values: (0..count).map(|at| of(place(at))).collect() }
}

/// D^(-1/2) A D^(-1/2), with a loop at each node.
fn normalised(arcs: &BTreeSet<(usize, usize)>) -> Array {
    let arc = |from: usize, to: usize| f64::from(u8::from(from == to || arcs.contains(&(from, to))));
    let degree = |node: usize| sum(NODES, |from| arc(from, node));
    each([NODES, NODES], |[to, from]| arc(from, to) / (degree(to) * degree(from)).sqrt())
}

fn product(a: &Array, b: &Array) -> Array {
    each([a.shape[0], b.shape[1]], |[i, j]| sum(b.shape[0], |k| a.at(&[i, k]) * b.at(&[k, j])))
}

fn sig(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

#[test]
fn convolutions_of_graphs() {
    seeds(|stream, arcs| {
        let (x, w) = (Array::random(stream, &[NODES, WIDTH]), Array::random(stream, &[WIDTH, OUT]));
        let b = Array::random(stream, &[OUT]);
        let spread = normalised(arcs);
        let once = product(&spread, &product(&x, &w));
        let arrays = vec![("X", x.clone()), ("W", w.clone()), ("B", b.clone())];
        let with_b = |all: &Array| each([NODES, OUT], |[x, e]| all.at(&[x, e]) + b.at(&[e])).values;
        let layer = |file, arguments: &str| Layer {
            file,
            arrays: arrays.clone(),
            facts: facts(arcs),
            arguments: arguments.to_owned(),
        };
        layer("gcn", "").is(&with_b(&once));
        layer("sg", "").is(&with_b(&product(&spread, &once)));
        layer("sg", ", Hops=1").is(&with_b(&once));
        let mut hops = x.clone();
        for _ in 0..4 {
            let next = product(&spread, &hops);
            hops = each([NODES, WIDTH], |at| 0.7 * next.at(&at) + 0.3 * x.at(&at));
        }
        let arguments = ", Alpha=0.3, Hops=4".to_owned();
        Layer { file: "appnp", arrays: vec![("X", x.clone())], facts: facts(arcs), arguments }
            .is(&hops.values);
    });
}

#[test]
fn sums_and_means_over_neighbours() {
    seeds(|stream, arcs| {
        let (x, root) = (Array::random(stream, &[NODES, WIDTH]), Array::random(stream, &[WIDTH, OUT]));
        let (w, b) = (Array::random(stream, &[WIDTH, OUT]), Array::random(stream, &[OUT]));
        let mean = |node: usize, d: usize| {
            let from = to(arcs, node);
            from.iter().map(|from| x.at(&[*from, d])).sum::<f64>() / (from.len().max(1) as f64)
        };
        let wanted = each([NODES, OUT], |[n, e]| {
            b.at(&[e]) + sum(WIDTH, |d| x.at(&[n, d]) * root.at(&[d, e]) + mean(n, d) * w.at(&[d, e]))
        });
        let arrays = vec![("X", x.clone()), ("Root", root), ("W", w), ("B", b)];
        Layer { file: "sage", arrays, facts: facts(arcs), arguments: String::new() }.is(&wanted.values);

        let hidden = 4;
        let (w1, b1) = (Array::random(stream, &[WIDTH, hidden]), Array::random(stream, &[hidden]));
        let (w2, b2) = (Array::random(stream, &[hidden, OUT]), Array::random(stream, &[OUT]));
        let eps = Array::random(stream, &[]);
        let all = |node: usize, d: usize| {
            (1.0 + eps.at(&[])) * x.at(&[node, d])
                + to(arcs, node).iter().map(|from| x.at(&[*from, d])).sum::<f64>()
        };
        let inside =
            |node: usize, f: usize| (sum(WIDTH, |d| all(node, d) * w1.at(&[d, f])) + b1.at(&[f])).max(0.0);
        let wanted =
            each([NODES, OUT], |[n, e]| sum(hidden, |f| inside(n, f) * w2.at(&[f, e])) + b2.at(&[e]));
        let arrays = vec![
            ("X", x.clone()),
            ("Eps", eps.clone()),
            ("W1", w1.clone()),
            ("B1", b1.clone()),
            ("W2", w2.clone()),
            ("B2", b2.clone()),
        ];
        Layer { file: "gin", arrays, facts: facts(arcs), arguments: String::new() }.is(&wanted.values);
    });
}

#[test]
fn relations_have_matrices_of_their_own() {
    seeds(|stream, arcs| {
        let kinds = 3;
        let of: Vec<usize> = arcs.iter().map(|_| (stream.uniform() * kinds as f64) as usize).collect();
        let (x, root) = (Array::random(stream, &[NODES, WIDTH]), Array::random(stream, &[WIDTH, OUT]));
        let (w, b) = (Array::random(stream, &[kinds, WIDTH, OUT]), Array::random(stream, &[OUT]));
        let mean = |node: usize, kind: usize, d: usize| {
            let near = arcs.iter().zip(&of).filter(|((_, to), of)| *to == node && **of == kind);
            let from: Vec<usize> = near.map(|((from, _), _)| *from).collect();
            from.iter().map(|from| x.at(&[*from, d])).sum::<f64>() / (from.len().max(1) as f64)
        };
        let wanted = each([NODES, OUT], |[n, e]| {
            let near = sum(kinds, |r| sum(WIDTH, |d| mean(n, r, d) * w.at(&[r, d, e])));
            b.at(&[e]) + sum(WIDTH, |d| x.at(&[n, d]) * root.at(&[d, e])) + near
        });
        let facts =
            arcs.iter().zip(&of).map(|((from, to), kind)| format!("Edge({from}, {kind}, {to}); ")).collect();
        let arrays = vec![("X", x.clone()), ("Root", root), ("W", w.clone()), ("B", b.clone())];
        Layer { file: "rgcn", arrays, facts, arguments: String::new() }.is(&wanted.values);
    });
}

#[test]
fn attention_in_graphs() {
    seeds(|stream, arcs| {
        let (heads, slope) = (2, 0.1);
        let x = Array::random(stream, &[NODES, WIDTH]);
        let (there, here) =
            (Array::random(stream, &[heads, WIDTH, OUT]), Array::random(stream, &[heads, WIDTH, OUT]));
        let (a, b) = (Array::random(stream, &[heads, OUT]), Array::random(stream, &[heads, OUT]));
        let by = |w: &Array, n: usize, h: usize, e: usize| sum(WIDTH, |d| x.at(&[n, d]) * w.at(&[h, d, e]));
        let score = |to: usize, from: usize, h: usize| {
            sum(OUT, |e| {
                let z = by(&there, to, h, e) + by(&here, from, h, e);
                a.at(&[h, e]) * if z > 0.0 { z } else { slope * z }
            })
        };
        let wanted = each([NODES, heads, OUT], |[n, h, e]| {
            let mut near: BTreeSet<usize> = to(arcs, n).into_iter().collect();
            near.insert(n);
            let total: f64 = near.iter().map(|from| score(n, *from, h).exp()).sum();
            let read = near.iter().map(|from| score(n, *from, h).exp() / total * by(&here, *from, h, e));
            read.sum::<f64>() + b.at(&[h, e])
        });
        let arrays = vec![
            ("X", x.clone()),
            ("WTo", there.clone()),
            ("WFrom", here.clone()),
            ("A", a.clone()),
            ("B", b.clone()),
        ];
        Layer { file: "gatv2", arrays, facts: facts(arcs), arguments: format!(", Slope={slope}") }
            .is(&wanted.values);
    });
}

/// The state behind a step: of which sequence and step, from which state, with which cell.
type Step<'a> = dyn Fn(usize, usize, &[f64], &mut [f64]) -> Vec<f64> + 'a;

/// How many sequences, steps, inputs and units.
const RECURRENT: [usize; 4] = [2, 4, 3, 2];

#[test]
fn recurrent_layers() {
    let [sequences, steps, inputs, units] = RECURRENT;
    for seed in 0..4 {
        let stream = &mut seeded::Family::new("tensor-logic/tests", "recurrent", seed).stream(0);
        let x = Array::random(stream, &[sequences, steps, inputs]);
        let random = |stream: &mut Stream, gates: usize| {
            let shapes: [&[usize]; 4] =
                [&[gates, inputs, units], &[gates, units, units], &[gates, units], &[gates, units]];
            shapes.map(|shape| Array::random(stream, shape))
        };
        // What enters a gate, what comes back to it.
        let enters = |w: &Array, b: &Array, q: usize, s: usize, t: usize, h: usize| {
            b.at(&[q, h]) + sum(inputs, |d| x.at(&[s, t, d]) * w.at(&[q, d, h]))
        };
        let back = |r: &Array, q: usize, state: &[f64], h: usize| sum(units, |g| state[g] * r.at(&[q, g, h]));
        let run = |step: &Step<'_>| -> Vec<f64> {
            let mut all = Vec::new();
            for s in 0..sequences {
                let (mut state, mut cell) = (vec![0.0; units], vec![0.0; units]);
                for t in 0..steps {
                    state = step(s, t, &state, &mut cell);
                    all.extend(&state);
                }
            }
            all
        };
        let is = |file, arrays: Vec<(&str, Array)>, wanted: &[f64]| {
            Layer { file, arrays, facts: String::new(), arguments: String::new() }.is(wanted);
        };

        let [w, r, b, _] = random(stream, 1);
        let wanted = run(&|s, t, state, _| {
            (0..units).map(|h| (enters(&w, &b, 0, s, t, h) + back(&r, 0, state, h)).tanh()).collect()
        });
        let one = |array: &Array| Array { shape: array.shape[1..].to_vec(), values: array.values.clone() };
        is("rnn", vec![("X", x.clone()), ("W", one(&w)), ("R", one(&r)), ("B", one(&b))], &wanted);

        let [w, r, b, c] = random(stream, 3);
        let wanted = run(&|s, t, state, _| {
            let gate = |q: usize, h: usize| enters(&w, &b, q, s, t, h);
            let from = |q: usize, h: usize| back(&r, q, state, h) + c.at(&[q, h]);
            let unit = |h: usize| {
                let (reset, keep) = (sig(gate(0, h) + from(0, h)), sig(gate(1, h) + from(1, h)));
                let new = (gate(2, h) + reset * from(2, h)).tanh();
                (1.0 - keep) * new + keep * state[h]
            };
            (0..units).map(unit).collect()
        });
        let arrays =
            vec![("X", x.clone()), ("W", w.clone()), ("R", r.clone()), ("B", b.clone()), ("C", c.clone())];
        is("gru", arrays, &wanted);

        let [w, r, b, _] = random(stream, 4);
        let wanted = run(&|s, t, state, cell| {
            let gate = |q: usize, h: usize| enters(&w, &b, q, s, t, h) + back(&r, q, state, h);
            let mut unit = |h: usize| {
                cell[h] = sig(gate(1, h)) * cell[h] + sig(gate(0, h)) * gate(2, h).tanh();
                sig(gate(3, h)) * cell[h].tanh()
            };
            (0..units).map(&mut unit).collect()
        });
        is("lstm", vec![("X", x.clone()), ("W", w.clone()), ("R", r.clone()), ("B", b.clone())], &wanted);
    }
}

/// The lengths of two texts, and of the texts that belong to them.
const LENGTHS: [[usize; 2]; 2] = [[3, 2], [4, 1]];
const HEADS: usize = 2;
const HEAD: usize = 3;
const INSIDE: usize = 5;

/// Scaled attention with heads, and the way around it: [texts, positions, width].
struct Attention<'a> {
    asks: &'a Array,
    offers: &'a Array,
    query: &'a Array,
    key: &'a Array,
    value: &'a Array,
    out: &'a Array,
    bias: &'a Array,
}

impl Attention<'_> {
    fn sums(&self, sees: &dyn Fn(usize, usize, usize) -> bool) -> Array {
        let (texts, rows, width) = (self.asks.shape[0], self.asks.shape[1], self.asks.shape[2]);
        let (columns, other) = (self.offers.shape[1], self.offers.shape[2]);
        let asks = |s: usize, p: usize, h: usize, k: usize| {
            sum(width, |d| self.asks.at(&[s, p, d]) * self.query.at(&[h, d, k]))
        };
        let by = |w: &Array, s: usize, q: usize, h: usize, k: usize| {
            sum(other, |d| self.offers.at(&[s, q, d]) * w.at(&[h, d, k]))
        };
        let read = each([texts, rows, HEADS, HEAD], |[s, p, h, k]| {
            let score = |q: usize| {
                let dot = sum(HEAD, |k| asks(s, p, h, k) * by(self.key, s, q, h, k));
                (dot / (HEAD as f64).sqrt()).exp()
            };
            let seen: Vec<usize> = (0..columns).filter(|q| sees(s, p, *q)).collect();
            let total: f64 = seen.iter().map(|q| score(*q)).sum();
            seen.iter().map(|q| score(*q) / total * by(self.value, s, *q, h, k)).sum()
        });
        each([texts, rows, width], |[s, p, d]| {
            let heads = sum(HEADS, |h| sum(HEAD, |k| read.at(&[s, p, h, k]) * self.out.at(&[h, k, d])));
            self.asks.at(&[s, p, d]) + heads + self.bias.at(&[d])
        })
    }
}

/// Mean 0 and variance 1 along the last place, then gain and offset.
fn normal(x: &Array, gain: &Array, offset: &Array) -> Array {
    let width = x.shape[2];
    each([x.shape[0], x.shape[1], width], |[s, p, d]| {
        let mean = sum(width, |d| x.at(&[s, p, d])) / width as f64;
        let variance = sum(width, |d| (x.at(&[s, p, d]) - mean).powi(2)) / width as f64;
        gain.at(&[d]) * (x.at(&[s, p, d]) - mean) / (variance + 1e-5).sqrt() + offset.at(&[d])
    })
}

/// The network at each position, and the way around it.
fn inside(x: &Array, named: &dyn Fn(&str) -> Array) -> Array {
    let (w1, b1, w2, b2) = (named("W1"), named("B1"), named("W2"), named("B2"));
    let width = x.shape[2];
    let hidden = each([x.shape[0], x.shape[1], INSIDE], |[s, p, f]| {
        (sum(width, |d| x.at(&[s, p, d]) * w1.at(&[d, f])) + b1.at(&[f])).max(0.0)
    });
    each([x.shape[0], x.shape[1], width], |[s, p, d]| {
        x.at(&[s, p, d]) + sum(INSIDE, |f| hidden.at(&[s, p, f]) * w2.at(&[f, d])) + b2.at(&[d])
    })
}

/// 0 behind the end of a text.
fn within(x: &Array) -> Vec<f64> {
    each(
        [x.shape[0], x.shape[1], x.shape[2]],
        |[s, p, d]| if p < LENGTHS[0][s] { x.at(&[s, p, d]) } else { 0.0 },
    )
    .values
}

#[test]
fn blocks_of_the_transformer() {
    let (width, other) = (4, 3);
    let positions = |name: &str, lengths: [usize; 2]| -> String {
        let facts = (0..2).flat_map(|s| (0..lengths[s]).map(move |p| format!("{name}({s}, {p}); ")));
        facts.collect()
    };
    let facts = format!("{}\n{}", positions("At", LENGTHS[0]), positions("MemoryAt", LENGTHS[1]));
    for seed in 0..3 {
        let stream = &mut seeded::Family::new("tensor-logic/tests", "blocks", seed).stream(0);
        let shapes: [(&'static str, &[usize]); 22] = [
            ("X", &[2, 3, width]),
            ("WQ", &[HEADS, width, HEAD]),
            ("WK", &[HEADS, width, HEAD]),
            ("WV", &[HEADS, width, HEAD]),
            ("WO", &[HEADS, HEAD, width]),
            ("BO", &[width]),
            ("W1", &[width, INSIDE]),
            ("B1", &[INSIDE]),
            ("W2", &[INSIDE, width]),
            ("B2", &[width]),
            ("G1", &[width]),
            ("C1", &[width]),
            ("G2", &[width]),
            ("C2", &[width]),
            ("Memory", &[2, 4, other]),
            ("VQ", &[HEADS, width, HEAD]),
            ("VK", &[HEADS, other, HEAD]),
            ("VV", &[HEADS, other, HEAD]),
            ("VO", &[HEADS, HEAD, width]),
            ("CO", &[width]),
            ("G3", &[width]),
            ("C3", &[width]),
        ];
        let arrays: Vec<(&'static str, Array)> =
            shapes.iter().map(|(name, shape)| (*name, Array::random(stream, shape))).collect();
        let named = |name: &str| arrays.iter().find(|(known, _)| *known == name).unwrap().1.clone();
        let [x, memory] = ["X", "Memory"].map(named);
        let [query, key, value, out, bias] = ["WQ", "WK", "WV", "WO", "BO"].map(named);
        let own = Attention {
            asks: &x,
            offers: &x,
            query: &query,
            key: &key,
            value: &value,
            out: &out,
            bias: &bias,
        };

        let all = own.sums(&|s, _, q| q < LENGTHS[0][s]);
        let mid = normal(&all, &named("G1"), &named("C1"));
        let last = normal(&inside(&mid, &named), &named("G2"), &named("C2"));
        let layer = |file, arrays: Vec<(&'static str, Array)>| Layer {
            file,
            arrays,
            facts: facts.clone(),
            arguments: String::new(),
        };
        layer("encoder", arrays[..14].to_vec()).is(&within(&last));

        let causal = own.sums(&|s, p, q| q <= p && q < LENGTHS[0][s]);
        let mid = normal(&causal, &named("G1"), &named("C1"));
        let [query, key, value, out, bias] = ["VQ", "VK", "VV", "VO", "CO"].map(named);
        let cross = Attention {
            asks: &mid,
            offers: &memory,
            query: &query,
            key: &key,
            value: &value,
            out: &out,
            bias: &bias,
        };
        let late = normal(&cross.sums(&|s, _, m| m < LENGTHS[1][s]), &named("G2"), &named("C2"));
        let last = normal(&inside(&late, &named), &named("G3"), &named("C3"));
        layer("decoder", arrays.clone()).is(&within(&last));
    }
}

#[test]
fn every_file_is_canonical_and_says_where_it_is_from() {
    for name in library::names() {
        let text = library::text(name).unwrap();
        assert_eq!(tensor_logic::format::format(text).unwrap(), text, "{name}");
        for said in ["# Takes  ", "# Gives  ", "@export("] {
            assert!(text.contains(said), "{name} has no `{said}`");
        }
        assert!(
            text.lines().any(|line| line.starts_with('#') && line.contains(", 19") || line.contains(" 20")),
            "{name}: no year"
        );
    }
}
