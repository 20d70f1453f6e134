//! What cells are, said a second time: counts by formula, cells as special cases of others, plain loops, exact
//! automata, and derivatives that a proof has as a proof.

use crate::common::{self, cell, dense, draws, kept, observed, small_weights, try_cell};
use crate::plain::{self, entries};
use linear_logic::compile::{Backend, Inputs as PlanInputs, Operand, Slot, compile};
use linear_logic::denote::Matrix;
use linear_logic::elaborate::{Mode, elaborate};
use linear_logic::error::Source;
use linear_logic::literal::Order;
use linear_logic::parse;
use linear_logic::program::Program;
use linear_logic::ring::{Double, Epsilons, Infinitesimal, Ring};
use linear_logic_rnn::cell::Cell;
use linear_logic_rnn::engine::{Engine, Inputs, Objective, Sequences, Starts, Targets};
use linear_logic_rnn::step::Part;
use seeded::Stream;
use serde_json::{Value, json};

/// One of some values.
fn pick<'a>(s: &mut Stream, values: &[&'a str]) -> &'a str {
    values[s.below(values.len() as u64) as usize]
}

#[test]
fn counts_follow_the_formulas() {
    for item in 0..400 {
        let mut s = draws("counts", item);
        let mut size = |most: u64| 1 + s.below(most) as usize;
        let (i, h, k, k2, o, y) = (size(5), size(7), size(6), size(6), size(4), size(4) - 1);
        let (n, c) = (size(8), size(4));
        let sizes = json!({"input": i, "hidden": h, "aux": k, "aux2": k2, "output": o, "readout": y,
                           "addresses": n, "content": c});
        let readout = if y == 0 { o * (h + 1) } else { y * (h + 1) + o * (y + 1) };
        let elman = h * h + h * i + h;
        let check = |kind: &str, options: Value, wanted: usize| {
            let cell = cell(kind, &sizes, &options);
            assert_eq!(cell.step.count(Part::Cell), wanted, "{kind} {sizes} {options}");
            assert_eq!(cell.step.count(Part::Readout), readout, "{kind} {sizes}");
            assert_eq!(cell.layout().len(), wanted + readout);
        };
        check("elman", json!({}), elman);
        check("second-order", json!({}), elman + i * h * h);
        check("mrnn", json!({}), elman + i * k + 2 * h * k);
        check("mrnn", json!({"hh": false}), elman + i * k + 2 * h * k - h * h);
        check("mi", json!({}), elman + 3 * h);
        check("mi", json!({"mi_weights": "ones"}), elman);
        check("lstm", json!({}), 4 * elman);
        check("gru", json!({}), 3 * elman + h);
        let head = |rows: usize| rows * (h + 1);
        let powers = 1 + s.below(4) as usize;
        let patterns = 1 + s.below(3) as usize;
        let list: Vec<usize> = (0..powers).collect();
        let pattern_list: Vec<usize> = (0..patterns).collect();
        let ring = |content: usize| 2 * head(powers) + 2 * head(1) + 2 * head(content);
        let main = h * h + h * i + h + h * c + ring(c);
        check("ntm", json!({"powers": list}), main);
        let options = json!({"powers": list, "pattern_powers": pattern_list});
        check("pattern-ntm", options.clone(), main + ring(patterns) + head(1));
        check("multi-pattern-ntm", options, main + 2 * ring(patterns) + ring(2) + head(1));

        // `ll`: H² + Hi + H, the spaces, the gates, and the options.
        let (l, w) = (s.below(4) as usize, s.below(4) as usize);
        let v = pick(&mut s, &["diag", "full", "two-space"]);
        let gate = pick(&mut s, &["scalar", "diagonal"]);
        let act = pick(&mut s, &["relu", "softmax", "one"]);
        let source = if act == "one" { "state" } else { pick(&mut s, &["state", "table"]) };
        let (x0, h0) = (pick(&mut s, &["zero", "learned"]), pick(&mut s, &["zero", "learned"]));
        let hh = s.below(2) == 0;
        let lambda: Vec<usize> = (0..l).collect();
        let mut options = json!({"preset": "paper", "v": v, "gate": gate, "gate_act": act, "x0": x0, "h0": h0,
            "gate_source": source, "hh": hh, "lambda": lambda, "pi": (["10", "0", "110"][..w])});
        let rows = 1 + s.below(3) as usize;
        let mut per_gate = h + 1;
        if source == "table" {
            options["table_len"] = json!(rows);
            per_gate = rows;
        }
        let spaces = match v {
            "diag" if l + w > 0 => i * k + 2 * h * k,
            "full" if l + w > 0 => i * k * k + 2 * h * k,
            "two-space" => {
                usize::from(l > 0) * (i * k + 2 * h * k) + usize::from(w > 0) * (i * k2 * k2 + 2 * h * k2)
            }
            _ => 0,
        };
        let widths = match (gate, v) {
            ("scalar", _) => (1, 1),
            (_, "two-space") => (k, k2),
            _ => (k, k),
        };
        let gates = if act == "one" { 0 } else { per_gate * (l * widths.0 + w * widths.1) };
        let extra = i * usize::from(x0 == "learned") + h * usize::from(h0 == "learned");
        check("ll", options, elman + spaces + gates + extra - h * h * usize::from(!hh));
    }
    let examples = [
        ("ll", json!({"input": 2, "hidden": 6, "aux": 3}), 129),
        ("lstm", json!({"input": 2, "hidden": 5}), 160),
        ("gru", json!({"input": 2, "hidden": 5}), 125),
    ];
    for (kind, sizes, wanted) in examples {
        let options = json!({"preset": "paper", "v": "full", "lambda": [1, 2], "pi": ["10"]});
        let options = if kind == "ll" { options } else { json!({}) };
        assert_eq!(cell(kind, &sizes, &options).count(), wanted);
    }
    let identity =
        json!({"preset": "paper", "v": "full", "lambda": [1], "project": "identity", "gate_act": "one"});
    assert_eq!(cell("ll", &json!({"input": 2, "hidden": 3}), &identity).count(), 9 + 6 + 3 + 18);
}

/// Integers in −1 … 2, where sums and products are exact.
fn integers(s: &mut Stream, count: usize) -> Vec<f64> {
    (0..count).map(|_| s.below(4) as f64 - 1.0).collect()
}

/// The weights of `to` that have the same name in `from`, or the name that `rename` gives.
fn carried(from: &Cell, theta: &[f64], to: &Cell, rename: &[(&str, &str)]) -> Vec<f64> {
    let name_of = |name: &str| {
        rename.iter().find(|(mine, _)| *mine == name).map_or(name.to_owned(), |(_, its)| (*its).to_owned())
    };
    to.step.trained().flat_map(|(_, weight)| entries(from, theta, &name_of(&weight.name)).to_vec()).collect()
}

/// Two cells have the same states: bit for bit on integer weights if all they do is exact on them, and within 1e-12
/// on others.
fn same(purpose: &str, one: &Cell, other: &Cell, rename: &[(&str, &str)], on_integers: bool) {
    assert_eq!(one.count(), other.count(), "{purpose}");
    for item in 0..20 {
        let mut s = draws(purpose, item);
        let is_exact = on_integers && item % 2 == 0;
        let (length, count) = (if is_exact { 2 } else { 6 }, one.count());
        let theta = if is_exact { integers(&mut s, count) } else { small_weights(&mut s, one) };
        let inputs: Vec<f64> = if is_exact {
            integers(&mut s, length * one.step.input)
        } else {
            dense(&mut s, length, 1, one.step.input)
        };
        let starts = Starts {
            state: Some(integers(&mut s, one.step.states[0].len)),
            previous: Some(integers(&mut s, one.step.input)),
        };
        let moved = carried(one, &theta, other, rename);
        let right = observed(one, &theta, &starts, &inputs, length, "h").concat();
        let found = observed(other, &moved, &starts, &inputs, length, "h").concat();
        if is_exact {
            assert!(right.iter().all(|x| x.abs() < 9e15 && x.fract() == 0.0), "{purpose}: {right:?}");
            let bits = |all: &[f64]| all.iter().map(|x| (x + 0.0).to_bits()).collect::<Vec<u64>>();
            assert_eq!(bits(&right), bits(&found), "{purpose} {item}: {right:?} {found:?}");
        } else {
            let size = right.iter().fold(1.0_f64, |m, x| m.max(x.abs()));
            let near = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-12 * size;
            assert!(right.iter().zip(&found).all(near), "{purpose} {item}: {right:?} {found:?}");
        }
    }
}

#[test]
fn linear_logic_contains_the_older_cells() {
    let sizes = json!({"input": 3, "hidden": 4, "aux": 2});
    for act in ["relu", "tanh"] {
        for hh in [true, false] {
            let options = json!({"preset": "paper", "lambda": [1], "gate_act": "one", "act": act, "hh": hh});
            let other = cell("mrnn", &sizes, &json!({"act": act, "hh": hh}));
            same("mrnn", &other, &cell("ll", &sizes, &options), &[], act == "relu");
        }
        let options = json!({"preset": "paper", "v": "full", "project": "identity", "lambda": [1],
                             "gate_act": "one", "act": act});
        let sizes = json!({"input": 3, "hidden": 4});
        same(
            "second-order",
            &cell("second-order", &sizes, &json!({"act": act})),
            &cell("ll", &sizes, &options),
            &[],
            act == "relu",
        );
    }
}

#[test]
fn masters_are_the_cells_that_are_written_by_hand() {
    let sizes = json!({"input": 3, "hidden": 4, "aux": 2});
    let derelict = |a: &str| format!(r"\v. derelict v : !({a} -o {a}) -o {a} -o {a}");
    for act in ["relu", "tanh", "identity"] {
        let masters = json!([{"proof": derelict("h"), "state": "h", "dims": {"h": 4},
                              "slots": [{"kind": "input", "from": "h", "to": "h"}]}]);
        let master = cell("master", &sizes, &json!({"act": act, "masters": masters}));
        let other = cell("second-order", &sizes, &json!({"act": act}));
        same("master-second-order", &other, &master, &[("m0.s0.W", "V")], act != "tanh");

        let masters = json!([{"proof": derelict("k"), "state": "k", "dims": {"k": 2}, "project": "learned",
                              "slots": [{"kind": "input", "shape": "diag"}]}]);
        let master = cell("master", &sizes, &json!({"act": act, "masters": masters}));
        let names = [("m0.s0.W", "V"), ("m0.I", "I"), ("m0.J", "J")];
        same("master-mrnn", &cell("mrnn", &sizes, &json!({"act": act})), &master, &names, act != "tanh");

        for gate_act in ["relu", "tanh", "sigmoid", "softmax", "identity"] {
            for order in ["literal", "first-digit-first"] {
                for (v, shape) in [("full", "full"), ("diag", "diag")] {
                    let masters = json!([
                        {"proof": r"\n v. derelict n v : !int{k} -o !(k -o k) -o k -o k", "state": "k",
                         "dims": {"k": 2}, "project": "learned",
                         "slots": [{"kind": "program", "list": ["1", "2"], "act": gate_act},
                                   {"kind": "input", "shape": shape}]},
                        {"proof": r"\w x y. derelict w x y : !bint{k} -o !(k -o k) -o !(k -o k) -o k -o k",
                         "state": "k", "dims": {"k": 2}, "project": {"share": 0}, "order": order,
                         "slots": [{"kind": "program", "list": ["0b10"], "act": gate_act},
                                   {"kind": "previous-input", "share": [0, 1]},
                                   {"kind": "input", "share": [0, 1]}]}
                    ]);
                    let master = cell("master", &sizes, &json!({"act": act, "masters": masters}));
                    let options = json!({"preset": "paper", "v": v, "lambda": [1, 2], "pi": ["10"], "act": act,
                                         "gate_act": gate_act, "order": order});
                    let other = cell("ll", &sizes, &options);
                    let names = [
                        ("m0.s1.W", "V"),
                        ("m0.I", "I"),
                        ("m0.J", "J"),
                        ("m0.s0.W", "P"),
                        ("m0.s0.b", "C"),
                        ("m1.s0.W", "Q"),
                        ("m1.s0.b", "D"),
                    ];
                    let is_exact = act != "tanh" && (gate_act == "relu" || gate_act == "identity");
                    same("master-2.9", &other, &master, &names, is_exact);
                }
            }
        }
    }
}

#[test]
fn a_master_turns_an_address_as_the_machine_does() {
    let n = 5;
    let machine = cell("ntm", &json!({"input": 1, "hidden": 2, "addresses": n, "content": 1}), &json!({}));
    let shift: Vec<Vec<f64>> = (0..n)
        .map(|row| (0..n).map(|column| f64::from(u8::from(row == (column + 1) % n))).collect())
        .collect();
    let masters = json!([{"proof": r"\n r. derelict n r : !int{m} -o !(m -o m) -o m -o m", "state": "m",
        "dims": {"m": n}, "slots": [{"kind": "program", "list": ["0", "4", "1"], "act": "softmax"},
                                    {"kind": "constant", "value": shift}]}]);
    let sizes = json!({"input": 1, "hidden": n});
    let master = cell("master", &sizes, &json!({"act": "identity", "masters": masters}));
    for item in 0..10 {
        let mut s = draws("turn", item);
        let q: Vec<f64> = (0..3).map(|_| common::spread(&mut s, 2.0)).collect();
        let weights = |cell: &Cell, name: &str| -> Vec<f64> {
            let named = |(_, weight): (_, &linear_logic_rnn::step::Weight)| {
                if weight.name == name { q.clone() } else { vec![0.0; weight.len()] }
            };
            cell.step.trained().flat_map(named).collect()
        };
        // All weights of the sharpening are 0, so its exponent is 1 and it can be undone.
        let theta = weights(&machine, "1.r.q.b");
        let addresses = observed(&machine, &theta, &Starts::default(), &[0.0; 4], 4, "1.r");
        let mut before = vec![0.0; n];
        before[0] = 1.0;
        for after in addresses {
            let starts = Starts { state: Some(before), previous: None };
            let turned = observed(&master, &weights(&master, "m0.s0.b"), &starts, &[0.0], 1, "h");
            for (turned, sharp) in turned[0].iter().zip(&after) {
                let unsharpened = sharp * (1.0 + n as f64 * 1e-6) - 1e-6;
                assert!((turned - unsharpened).abs() < 1e-12, "{turned}, not {unsharpened}");
            }
            before = after;
        }
    }
}

/// A uniform address over 128, sharpened by 21: each power is below the least number in 32 bits.
#[test]
fn sharpening_has_no_range() {
    let n = 128;
    let sizes = json!({"input": 1, "hidden": 2, "addresses": n, "content": 1, "output": 2});
    let machine = cell("ntm", &sizes, &json!({"powers": (0..n).collect::<Vec<usize>>()}));
    // Equal rotations by every power make every address uniform; g.b = 20 makes the exponent 21.
    let theta: Vec<f32> = machine
        .step
        .trained()
        .flat_map(|(_, weight)| {
            let value = if weight.name.ends_with(".g.b") { 20.0 } else { 0.0 };
            vec![value; weight.len()]
        })
        .collect();
    let inputs = [1.0; 3];
    for after in observed(&machine, &theta, &Starts::default(), &inputs, 3, "1.r") {
        assert!(after.iter().all(|x| (x * n as f64 - 1.0).abs() < 1e-4), "{after:?}");
    }
    let engine = Engine::new(machine.step.clone(), &theta);
    let sequences = Sequences { inputs: Inputs::Dense(&inputs), length: 3, count: 1 };
    let mut gradient = vec![0.0_f32; theta.len()];
    let (classes, mask) = ([0, 1, 0], [true; 3]);
    let objective = Objective::CrossEntropy(Targets { classes: &classes, mask: &mask });
    assert!(engine.gradient(sequences, objective, &mut gradient).is_finite());
    assert!(gradient.iter().all(|g| g.is_finite()));
}

#[test]
fn diagonal_operators_commute() {
    let sizes = json!({"input": 3, "hidden": 4, "aux": 5});
    let options = |word: &str, order: &str| json!({"preset": "paper", "lambda": [2], "pi": [word], "order": order, "act": "tanh"});
    let cells = [("01", "literal"), ("10", "literal"), ("01", "fdf"), ("10", "fdf")]
        .map(|(word, order)| cell("ll", &sizes, &options(word, order)));
    for other in &cells {
        let kinds: Vec<&str> = other.warnings.iter().map(|warning| warning.kind).collect();
        assert_eq!(kinds, ["diagonal-commutes"]);
        same("commute", &cells[0], other, &[], false);
    }
    // A full V tells them apart.
    let mut full = options("01", "literal");
    full["v"] = json!("full");
    let one = cell("ll", &sizes, &full);
    full["pi"] = json!(["10"]);
    let other = cell("ll", &sizes, &full);
    assert!(one.warnings.is_empty());
    let mut s = kept("apart", 0);
    let (theta, inputs) = (small_weights(&mut s, &one), dense(&mut s, 3, 1, 3));
    let states = |cell: &Cell| observed(cell, &theta, &Starts::default(), &inputs, 3, "h");
    assert_ne!(states(&one), states(&other));

    let twice = json!({"preset": "paper", "pi": ["011", "0", "101"]});
    let refusal = try_cell("ll", &sizes, &twice).unwrap_err();
    assert_eq!(refusal.kind.name(), "degenerate-pi");
    assert!(refusal.message.contains("011") && refusal.message.contains("101"), "{refusal}");
    let allowed = json!({"preset": "paper", "pi": ["011", "0", "101"], "allow_degenerate": true});
    assert_eq!(cell("ll", &sizes, &allowed).warnings.len(), 2);
    let full = json!({"preset": "paper", "v": "full", "pi": ["011", "0", "101"]});
    assert!(cell("ll", &sizes, &full).warnings.is_empty());
}

fn near(found: &[f64], right: &[f64], what: &str) {
    assert_eq!(found.len(), right.len(), "{what}");
    let size = right.iter().fold(1.0_f64, |m, x| m.max(x.abs()));
    let is_near = found.iter().zip(right).all(|(a, b)| (a - b).abs() <= 1e-12 * size);
    assert!(is_near, "{what}: {found:?}, not {right:?}");
}

/// Random inputs, also as one list.
fn inputs(s: &mut Stream, length: usize, width: usize) -> (Vec<Vec<f64>>, Vec<f64>) {
    let all = dense(s, length, 1, width);
    (all.chunks(width).map(<[f64]>::to_vec).collect(), all)
}

#[test]
fn gated_cells_are_their_loops() {
    for item in 0..20 {
        let mut s = draws("gated", item);
        let (i, h) = (1 + s.below(3) as usize, 1 + s.below(5) as usize);
        let sizes = json!({"input": i, "hidden": h});
        let (rows, flat) = inputs(&mut s, 6, i);
        let state = dense(&mut s, 1, 1, h);
        let starts = Starts { state: Some(state.clone()), previous: None };
        let lstm = cell("lstm", &sizes, &json!({}));
        let theta = small_weights(&mut s, &lstm);
        let right = plain::lstm(plain::Weights { cell: &lstm, theta: &theta }, &rows, &state);
        let (h_s, c_s): (Vec<_>, Vec<_>) = right.into_iter().unzip();
        near(&observed(&lstm, &theta, &starts, &flat, 6, "h").concat(), &h_s.concat(), "lstm h");
        near(&observed(&lstm, &theta, &starts, &flat, 6, "c").concat(), &c_s.concat(), "lstm c");
        let gru = cell("gru", &sizes, &json!({}));
        let theta = small_weights(&mut s, &gru);
        let right = plain::gru(plain::Weights { cell: &gru, theta: &theta }, &rows, &state);
        near(&observed(&gru, &theta, &starts, &flat, 6, "h").concat(), &right.concat(), "gru");
    }
}

#[test]
fn linear_logic_cells_are_their_loops() {
    type Named = (&'static str, fn(f64) -> f64);
    let gates: [Named; 4] =
        [("relu", |x| x.max(0.0)), ("tanh", f64::tanh), ("sigmoid", plain::logistic), ("identity", |x| x)];
    let words = ["", "0", "1", "10", "01", "110", "011", "10010"];
    for item in 0..120 {
        let mut s = draws("loops", item);
        let (gate_act, gate) = gates[s.below(4) as usize];
        let (act, sigma) = [gates[0], gates[1], gates[3]][s.below(3) as usize];
        let is_full = s.below(2) == 0;
        let lambda: Vec<u32> = (0..s.below(4)).map(|_| s.below(5) as u32).collect();
        let window = if s.below(2) == 0 { 2 } else { 3 + s.below(2) as usize };
        let longer = ["", "0", "2", "102", "021", "2210"];
        let list = if window == 2 { &words[..] } else { &longer[..] };
        let pi: Vec<&str> = (0..s.below(4)).map(|_| list[s.below(list.len() as u64) as usize]).collect();
        let window = if pi.is_empty() { 2 } else { window };
        if lambda.is_empty() && pi.is_empty() {
            continue;
        }
        let proofs = plain::Proofs {
            lambda: &lambda,
            pi: &pi,
            window,
            is_literal: s.below(2) == 0,
            is_full,
            is_diagonal_gate: s.below(2) == 0,
            gate,
            act: sigma,
        };
        let options = json!({"preset": "paper", "v": if is_full { "full" } else { "diag" }, "lambda": lambda,
            "pi": pi, "order": if proofs.is_literal { "literal" } else { "first-digit-first" },
            "gate": if proofs.is_diagonal_gate { "diagonal" } else { "scalar" }, "gate_act": gate_act,
            "act": act, "allow_degenerate": true, "window": window});
        let cell = cell("ll", &json!({"input": 2, "hidden": 3, "aux": 4}), &options);
        let theta = small_weights(&mut s, &cell);
        let (rows, flat) = inputs(&mut s, 5, 2);
        let right = proofs.run(plain::Weights { cell: &cell, theta: &theta }, &rows, &[0.0; 3]);
        let found = observed(&cell, &theta, &Starts::default(), &flat, 5, "h");
        near(&found.concat(), &right.concat(), &options.to_string());
    }
}

#[test]
fn machines_are_their_loops_and_addresses_sum_to_1() {
    for item in 0..30 {
        let mut s = draws("machines", item);
        let kind = ["ntm", "pattern-ntm", "multi-pattern-ntm"][item as usize % 3];
        let (n, c, small) = (2 + s.below(4) as usize, 1 + s.below(3) as usize, 1 + s.below(4) as usize);
        let mut powers = |most: u64| -> Vec<i64> {
            let count = 1 + s.below(most);
            (0..count).map(|_| s.below(13) as i64 - 6).collect()
        };
        let (powers, pattern_powers) = (powers(4), powers(3));
        let first = common::spread(&mut s, 1.0);
        let mut options = json!({"powers": powers});
        let mut rings = vec![plain::Ring::new(1, n, c, 0.0)];
        if kind != "ntm" {
            options["pattern_powers"] = json!(pattern_powers);
            options["pattern_start"] = json!(first);
            rings.push(plain::Ring::new(2, small, pattern_powers.len(), first));
        }
        if kind == "multi-pattern-ntm" {
            rings.push(plain::Ring::new(3, small, pattern_powers.len(), first));
            rings.push(plain::Ring::new(4, small, 2, 0.0));
        }
        let names: Vec<usize> = rings.iter().map(|ring| ring.name).collect();
        let sizes =
            json!({"input": 2, "hidden": 3, "addresses": n, "content": c, "pattern_addresses": small});
        let cell = cell(kind, &sizes, &options);
        let mut theta = small_weights(&mut s, &cell);
        theta.iter_mut().for_each(|x| *x *= 2.0);
        let (rows, flat) = inputs(&mut s, 6, 2);
        let weights = plain::Weights { cell: &cell, theta: &theta };
        let right = plain::machine(weights, &rows, 3, rings, &powers, &pattern_powers);
        let see = |report: &str| observed(&cell, &theta, &Starts::default(), &flat, 6, report);
        let states: Vec<f64> = right.iter().flat_map(|(h, _)| h.clone()).collect();
        near(&see("h").concat(), &states, "h");
        for (at, name) in names.iter().enumerate() {
            let found = [see(&format!("{name}.r")), see(&format!("{name}.w")), see(&format!("{name}.M"))];
            for (time, (_, rings)) in right.iter().enumerate() {
                let ring = &rings[at];
                near(&found[0][time], &ring.read, &format!("{kind}: {name}.r"));
                near(&found[1][time], &ring.write, &format!("{kind}: {name}.w"));
                near(&found[2][time], &ring.memory.concat(), &format!("{kind}: {name}.M"));
                for address in &found[..2] {
                    assert!((address[time].iter().sum::<f64>() - 1.0).abs() < 1e-12);
                    assert!(address[time].iter().all(|x| *x >= 0.0));
                }
            }
        }
    }
}

/// The states of an automaton on a word, as the cell of section 12 has them: each exactly one-hot.
fn run_automaton(cell: &Cell, theta: &[f64], q: usize, tables: &[Vec<usize>], word: &[u32]) {
    let mut start = vec![0.0; q];
    start[0] = 1.0;
    let starts = Starts { state: Some(start), previous: None };
    let engine = Engine::new(cell.step.clone(), theta).with_starts(starts);
    let sequences = Sequences { inputs: Inputs::Tokens(word), length: word.len(), count: 1 };
    let h = cell.step.reports.iter().find(|(name, _)| name == "h").unwrap().1;
    let (mut state, mut seen_steps) = (0, 0);
    engine.observe(sequences, |time, seen| {
        state = tables[word[time] as usize][state];
        seen_steps += 1;
        let found = seen.value(h);
        let is_one_hot = found.iter().enumerate().all(|(k, x)| *x == f64::from(u8::from(k == state)));
        assert!(is_one_hot, "step {time}: {found:?}, state {state}");
    });
    assert_eq!(seen_steps, word.len());
}

#[test]
fn automata_are_exact_at_any_length() {
    for item in 0..3 {
        let mut s = draws("automata", item);
        let (q, m) = (2 + s.below(4) as usize, 1 + s.below(3) as usize);
        let tables: Vec<Vec<usize>> =
            (0..m).map(|_| (0..q).map(|_| s.below(q as u64) as usize).collect()).collect();
        let word: Vec<u32> = (0..100_000).map(|_| s.below(m as u64) as u32).collect();
        let moves = |table: &[usize], to: usize, from: usize| f64::from(u8::from(table[from] == to));
        let filled = |cell: &Cell, fill: &dyn Fn(&str, usize) -> Option<f64>| -> Vec<f64> {
            let named = |(_, weight): (_, &linear_logic_rnn::step::Weight)| {
                (0..weight.len()).map(|at| fill(&weight.name, at).unwrap_or(0.0)).collect::<Vec<f64>>()
            };
            cell.step.trained().flat_map(named).collect()
        };
        // Full: V[a] is the transition matrix of a; J and I are the identity.
        let options = json!({"preset": "paper", "v": "full", "lambda": [1]});
        let full = cell("ll", &json!({"input": m, "hidden": q, "aux": q}), &options);
        let theta = filled(&full, &|name, at| match name {
            "V" => Some(moves(&tables[at / (q * q)], at / q % q, at % q)),
            "I" | "J" => Some(f64::from(u8::from(at / q == at % q))),
            "C" => Some(1.0),
            _ => None,
        });
        run_automaton(&full, &theta, q, &tables, &word);
        // Diagonal: K = m·|Q|, J copies the state into every block, V(x) keeps the block of x, I = [T₁ … T_m].
        let k = m * q;
        let options = json!({"preset": "paper", "v": "diag", "lambda": [1]});
        let diagonal = cell("ll", &json!({"input": m, "hidden": q, "aux": k}), &options);
        let theta = filled(&diagonal, &|name, at| match name {
            "V" => Some(f64::from(u8::from(at / k == at % k / q))),
            "I" => Some(moves(&tables[at % k / q], at / k, at % q)),
            "J" => Some(f64::from(u8::from(at / q % q == at % q))),
            "C" => Some(1.0),
            _ => None,
        });
        run_automaton(&diagonal, &theta, q, &tables, &word);
    }
}

type Dual = Infinitesimal<f64>;

/// x + y ε
fn dual(ring: &Epsilons<Double>, x: f64, y: f64) -> Dual {
    let number = |x: f64| ring.decimal(&format!("{x:e}"), &num_rational::BigRational::from_float(x).unwrap());
    let infinitesimal = ring.mul(&number(y).unwrap(), &ring.epsilon(0).unwrap()).unwrap();
    ring.add(&number(x).unwrap(), &infinitesimal).unwrap()
}

/// ⟦proof⟧ on ∣∅⟩ at V + ε dV, at the vector u: its coefficient of ε is the value on the ket ∣dV⟩ at V.
fn ket(text: &str, formula: &str, operators: &[(Vec<f64>, Vec<f64>)], u: &[f64]) -> Vec<f64> {
    let program = Program::new(Order::Literal, Mode::default()).unwrap();
    let source = Source::new("<proof>", format!("{text} : {formula}").into_bytes());
    let query = parse::query(&source).unwrap();
    let proof = elaborate(&program, &source, &query).unwrap();
    let slots = vec![Slot::Operator; operators.len()];
    let plan = compile(&program, &[proof], &slots, Backend::Vector).unwrap();
    let ring = Epsilons::new(Double);
    let n = u.len();
    let operators: Vec<Option<Matrix<Dual>>> = operators
        .iter()
        .map(|(v, dv)| {
            let entries = v.iter().zip(dv).map(|(x, y)| dual(&ring, *x, *y)).collect();
            Some(Matrix { rows: n, columns: n, entries })
        })
        .collect();
    let vector: Vec<Dual> = u.iter().map(|x| dual(&ring, *x, 0.0)).collect();
    let inputs = PlanInputs { operators: &operators, coefficients: &[], vector: Some(&vector) };
    let found = plan.run(&ring, &inputs).unwrap();
    let [Operand::Matrix(found)] = found.as_slice() else { panic!("one vector") };
    let epsilon = |x: &Dual| ring.coefficient(x, &[0], &[]).finite_part().copied().unwrap_or(0.0);
    found.entries.iter().map(epsilon).collect()
}

/// Σ_a x_a V[a]
fn operator(v: &[f64], x: &[f64]) -> Vec<f64> {
    let len = v.len() / x.len();
    (0..len).map(|at| x.iter().enumerate().map(|(a, x)| x * v[a * len + at]).sum()).collect()
}

#[test]
fn gradients_are_kets() {
    let (i, h, k) = (2, 3, 3);
    let options = json!({"preset": "paper", "v": "full", "lambda": [1, 2], "pi": ["10"], "act": "identity"});
    let cell = cell("ll", &json!({"input": i, "hidden": h, "aux": k}), &options);
    for item in 0..10 {
        let mut s = draws("kets", item);
        let theta = small_weights(&mut s, &cell);
        let weights = plain::Weights { cell: &cell, theta: &theta };
        let (state, before) = (dense(&mut s, 1, 1, h), dense(&mut s, 1, 1, i));
        let x = dense(&mut s, 1, 1, i);
        let direction = dense(&mut s, 1, 1, i * k * k);
        let starts = Starts { state: Some(state.clone()), previous: Some(before.clone()) };
        let engine = Engine::new(cell.step.clone(), &theta).with_starts(starts);
        let mut gradient = vec![0.0; theta.len()];
        let sequences = Sequences { inputs: Inputs::Dense(&x), length: 1, count: 1 };
        engine.gradient(sequences, Objective::LastState, &mut gradient);
        let along: f64 = entries(&cell, &gradient, "V").iter().zip(&direction).map(|(g, d)| g * d).sum();

        let relu = |all: Vec<f64>| all.into_iter().map(|x| x.max(0.0)).collect::<Vec<f64>>();
        let p = relu(plain::plus(&weights.times("P", &state), weights.get("C")));
        let q = relu(plain::plus(&weights.times("Q", &state), weights.get("D")));
        let u = weights.times("J", &state);
        let v = weights.get("V");
        let now = (operator(v, &x), operator(&direction, &x));
        let then = (operator(v, &before), operator(&direction, &before));
        let int = "!(k -o k) -o k -o k";
        let mut mixture = vec![0.0; k];
        let parts = [
            (p[0], ket("1", int, std::slice::from_ref(&now), &u)),
            (p[1], ket("2", int, std::slice::from_ref(&now), &u)),
            (q[0], ket("0b10", &format!("!(k -o k) -o {int}"), &[then, now], &u)),
        ];
        for (gate, part) in parts {
            mixture.iter_mut().zip(part).for_each(|(sum, z)| *sum += gate * z);
        }
        let right: f64 = weights.times("I", &mixture).iter().sum();
        assert!((along - right).abs() <= 1e-9 * right.abs().max(1e-3), "{along}, not {right}");
    }
}
