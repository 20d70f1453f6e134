//! The ten cells of `docs/linear-logic/masters.md`: the page carries the proofs, and every row of it is evaluated.
//!
//! Each cell is compared with its formula in plain loops, its gradients with finite differences, its counts and costs with
//! the page's polynomials in i and H at several sizes, and its degrees with differences of one order more.

use calculemus_base::testing;
use linear_logic_rnn::cell::Cell;
use linear_logic_rnn::document::answer;
use linear_logic_rnn::engine::{Engine, Inputs, Objective, Sequences, Starts};
use linear_logic_rnn::options::{GateAct, Sigma, Slot};
use linear_logic_rnn::proofs::{Proof, Proofs};
use serde_json::{Value, json};

use crate::common::{cell, dense, draws, observed, small_weights};
use crate::plain::{Weights, plus, softmax, times};

const PACKAGE: &str = env!("CARGO_MANIFEST_DIR");

/// A section of the page: its heading, the entry of `masters`, and the rows of its table.
struct Section {
    name: String,
    master: Value,
    rows: Vec<(String, String)>,
}

impl Section {
    fn row(&self, name: &str) -> &str {
        let found = self.rows.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value.as_str()).unwrap_or_else(|| panic!("{}: no row `{name}`", self.name))
    }

    /// The cell at some sizes; with the identity in place of every function if `is_linear`.
    fn cell(&self, i: usize, h: usize, is_linear: bool) -> Cell {
        let mut master = self.master.clone();
        master["dims"]["h"] = json!(h);
        for slot in master["slots"].as_array_mut().unwrap() {
            if is_linear && slot.get("act").is_some() {
                slot["act"] = json!("identity");
            }
        }
        let act = if is_linear { "identity" } else { "tanh" };
        cell("master", &json!({"input": i, "hidden": h}), &json!({"act": act, "masters": [master]}))
    }

    /// The numbers of the row of degrees: operators, between, h.
    fn degrees(&self) -> [u64; 3] {
        let parts: Vec<&str> = self.row("degrees").split(", ").collect();
        let [a, b, c] = parts[..] else { panic!("{}", self.name) };
        [("operators ", a), ("between ", b), ("h ", c)]
            .map(|(name, text)| text.strip_prefix(name).unwrap().parse().unwrap())
    }
}

/// The page and its sections; `None` in the published crate.
fn sections() -> Option<(String, Vec<Section>)> {
    let page = testing::page(PACKAGE, "../../docs/linear-logic/masters.md")?;
    let sections = page.split("\n## ").skip(1).map(|text| {
        let (name, rest) = text.split_once('\n').unwrap();
        let (_, rest) = rest.split_once("```json\n").unwrap();
        let (master, rest) = rest.split_once("```\n").unwrap();
        let rows =
            rest.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |")?.split_once(" | "));
        let rows = rows.map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
        Section { name: name.to_owned(), master: serde_json::from_str(master).unwrap(), rows }
    });
    let sections: Vec<Section> = sections.collect();
    assert_eq!(sections.len(), FORMULAS.len());
    Some((page, sections))
}

/// A polynomial in i and H as the page writes it: `4iH² + 3H + 6`.
fn polynomial(text: &str, i: usize, h: usize) -> usize {
    let term = |text: &str| {
        let digits: String = text.chars().take_while(char::is_ascii_digit).collect();
        let mut value = if digits.is_empty() { 1 } else { digits.parse().unwrap() };
        let mut last = 1;
        for c in text.chars().skip(digits.len()) {
            let factor = match c {
                'i' => i,
                'H' => h,
                '²' => last,
                _ => panic!("{text}: {c}"),
            };
            value *= factor;
            last = factor;
        }
        value
    };
    text.split(" + ").map(term).sum()
}

#[test]
fn rows_of_the_page_are_what_the_cells_are() {
    assert_eq!(polynomial("4iH² + 3H + 6", 2, 5), 200 + 15 + 6);
    let Some((_, sections)) = sections() else { return };
    for section in &sections {
        let name = &section.name;
        for (i, h) in [(1, 1), (2, 3), (3, 5), (2, 16)] {
            let cell = section.cell(i, h, false);
            assert_eq!(format!("`{}`", cell.programs[0].canonical), section.row("type"), "{name}");
            assert_eq!(cell.count(), polynomial(section.row("weights"), i, h), "{name}: weights at {i}, {h}");
            let cost = polynomial(section.row("multiply-adds"), i, h);
            assert_eq!(cell.multiply_adds(), cost, "{name}: multiply-adds at {i}, {h}");
            let [operators, between, state] = section.degrees();
            let (found, linear) = (cell.degree(), section.cell(i, h, true).degree());
            assert_eq!((found.operators, found.between, found.state), (operators, between, None), "{name}");
            assert_eq!((linear.operators, linear.state), (operators, Some(state)), "{name}");
        }
    }
}

#[test]
fn the_documents_of_the_page_are_answered_as_it_says() {
    let Some((page, sections)) = sections() else { return };
    let (_, rest) = page.split_once("```json\n").unwrap();
    let (document, rest) = rest.split_once("```\n").unwrap();
    let whole: Value = serde_json::from_str(document).unwrap();
    assert_eq!(whole["options"]["masters"][0], sections[0].master);
    let (_, rest) = rest.split_once("$ cargo xtask cell --config numeral.json --count --json\n").unwrap();
    let (wanted, _) = rest.split_once("\n```").unwrap();
    assert_eq!(serde_json::to_string(&answer(document, true).unwrap()).unwrap(), wanted);
    // The line of Rust.
    let built = Proofs::new().input(2).hidden(3).and(Proof::new("2{h}").slot(Slot::input())).cell().unwrap();
    assert!(
        page.contains(
            "`Proofs::new().input(2).hidden(3).and(Proof::new(\"2{h}\").slot(Slot::input())).cell()`"
        )
    );
    let relu = json!({"masters": [sections[0].master]});
    assert_eq!(built, cell("master", &whole["sizes"], &relu));
}

/// The step at one moment.
struct Moment<'a> {
    weights: Weights<'a>,
    x: &'a [f64],
    before: &'a [f64],
    h: &'a [f64],
}

impl Moment<'_> {
    fn operator(&self, slot: usize, x: &[f64], z: &[f64]) -> Vec<f64> {
        let stack = self.weights.get(&format!("m0.s{slot}.W"));
        let mut sum = vec![0.0; z.len()];
        for (matrix, x) in stack.chunks(z.len() * z.len()).zip(x) {
            sum = plus(&sum, &scaled(*x, &times(matrix, z)));
        }
        sum
    }

    /// V(x) z with the weights of a slot.
    fn now(&self, slot: usize, z: &[f64]) -> Vec<f64> {
        self.operator(slot, self.x, z)
    }

    /// V(x′) z
    fn then(&self, slot: usize, z: &[f64]) -> Vec<f64> {
        self.operator(slot, self.before, z)
    }

    /// R z
    fn matrix(&self, slot: usize, z: &[f64]) -> Vec<f64> {
        self.weights.times(&format!("m0.s{slot}.W"), z)
    }

    /// softmax(W h + b)
    fn gates(&self, slot: usize) -> Vec<f64> {
        let raw = self.weights.times(&format!("m0.s{slot}.W"), self.h);
        softmax(&plus(&raw, self.weights.get(&format!("m0.s{slot}.b"))))
    }
}

fn scaled(c: f64, z: &[f64]) -> Vec<f64> {
    z.iter().map(|z| c * z).collect()
}

/// c₀ y₀ + c₁ y₁
fn mix(c: &[f64], y: [Vec<f64>; 2]) -> Vec<f64> {
    plus(&scaled(c[0], &y[0]), &scaled(c[1], &y[1]))
}

/// Z of every section, in the order of the page, from the formula that stands there.
const FORMULAS: [fn(&Moment<'_>) -> Vec<f64>; 10] = [
    |m| m.now(0, &m.now(0, m.h)),
    |m| m.now(1, &m.now(1, &m.then(1, m.h))),
    |m| {
        let (p, q) = (m.gates(0), m.gates(1));
        let once = m.now(2, m.h);
        let y = mix(&q, [once.clone(), m.now(2, &once)]);
        mix(&p, [y.clone(), m.now(2, &y)])
    },
    |m| {
        let (p, q) = (m.gates(0), m.gates(1));
        let n = |z: &[f64]| mix(&p, [m.now(2, z), m.now(2, &m.now(2, z))]);
        mix(&q, [n(m.h), n(&n(m.h))])
    },
    |m| {
        let p = m.gates(0);
        let w = |z: &[f64]| mix(&p, [m.then(2, &m.now(2, z)), m.now(2, z)]);
        w(&w(m.h))
    },
    |m| mix(&m.gates(0), [m.now(1, m.h), m.matrix(2, m.h)]),
    |m| {
        let first = m.then(2, &m.now(2, &m.now(2, m.h)));
        mix(&m.gates(0), [first, m.then(2, &m.then(2, &m.now(2, m.h)))])
    },
    |m| mix(&m.gates(0), [m.now(1, &m.now(1, m.h)), m.now(1, m.h)]),
    |m| {
        let first = m.then(2, &m.now(2, &m.matrix(3, m.h)));
        mix(&m.gates(0), [first, m.matrix(3, &m.then(2, &m.then(2, m.h)))])
    },
    |m| {
        let (s, p, q) = (m.gates(0), m.gates(1), m.gates(2));
        let zero = |z: &[f64]| mix(&p, [m.now(4, &m.then(4, z)), m.then(4, z)]);
        let one = |z: &[f64]| mix(&q, [m.now(4, z), m.then(4, &m.now(4, z))]);
        mix(&s, [zero(&one(m.h)), one(m.h)])
    },
];

#[test]
fn steps_are_the_formulas() {
    let Some((_, sections)) = sections() else { return };
    for (section, z) in sections.iter().zip(FORMULAS) {
        for (item, (i, width)) in [(1, 2), (2, 3), (3, 5)].into_iter().enumerate() {
            let mut s = draws("masters", item as u64);
            let cell = section.cell(i, width, false);
            let theta = small_weights(&mut s, &cell);
            let weights = Weights { cell: &cell, theta: &theta };
            let (length, mut h, mut before) = (6, dense(&mut s, 1, 1, width), dense(&mut s, 1, 1, i));
            let inputs = dense(&mut s, length, 1, i);
            let starts = Starts { state: Some(h.clone()), previous: Some(before.clone()) };
            let found = observed(&cell, &theta, &starts, &inputs, length, "h");
            for (x, found) in inputs.chunks(i).zip(&found) {
                let z = z(&Moment { weights, x, before: &before, h: &h });
                let rest = plus(&plus(&weights.times("H", &h), &weights.times("U", x)), weights.get("B"));
                h = plus(&z, &rest).into_iter().map(f64::tanh).collect();
                before = x.to_vec();
                for (found, right) in found.iter().zip(&h) {
                    assert!((found - right).abs() <= 1e-12, "{}: {found}, not {right}", section.name);
                }
            }
        }
    }
}

/// The sum of the last state, of a batch.
fn objective(engine: &Engine<f64>, inputs: &[f64], length: usize, gradient: &mut [f64]) -> f64 {
    let count = inputs.len() / length / engine.step().input;
    let sequences = Sequences { inputs: Inputs::Dense(inputs), length, count };
    engine.gradient(sequences, Objective::LastState, gradient)
}

#[test]
fn gradients_of_every_weight_are_differences_and_not_zero() {
    let Some((_, sections)) = sections() else { return };
    for section in &sections {
        let mut s = draws("masters-gradients", 0);
        let cell = section.cell(2, 3, false);
        let mut theta = small_weights(&mut s, &cell);
        let starts = Starts { state: Some(dense(&mut s, 1, 1, 3)), previous: Some(dense(&mut s, 1, 1, 2)) };
        let (inputs, length) = (dense(&mut s, 4, 3, 2), 4);
        let mut engine = Engine::new(cell.step.clone(), &theta).with_starts(starts);
        let mut gradient = vec![f64::NAN; theta.len()];
        objective(&engine, &inputs, length, &mut gradient);
        let (mut scratch, step) = (gradient.clone(), 1e-5);
        for (entry, found) in gradient.iter().enumerate() {
            let kept = theta[entry];
            let mut at = |x: f64| {
                theta[entry] = x;
                engine.set(&theta);
                objective(&engine, &inputs, length, &mut scratch)
            };
            let slope = (at(kept + step) - at(kept - step)) / (2.0 * step);
            theta[entry] = kept;
            let near = 1e-5 * found.abs().max(1e-2);
            assert!((slope - found).abs() <= near, "{}: entry {entry}: {found}, not {slope}", section.name);
            assert!(found.abs() > 1e-9, "{}: entry {entry} changes nothing", section.name);
        }
    }
}

/// The difference of an order of a function at 0, 1, …, over its size: Σ (−1)^k C(n, k) f(k).
fn difference(order: u64, f: impl Fn(f64) -> Vec<f64>) -> f64 {
    let mut rows: Vec<Vec<f64>> = (0..=order).map(|k| f(k as f64)).collect();
    let size = rows.iter().flatten().fold(1e-300, |most: f64, x| most.max(x.abs()));
    while rows.len() > 1 {
        rows = rows.windows(2).map(|two| two[1].iter().zip(&two[0]).map(|(b, a)| b - a).collect()).collect();
    }
    rows[0].iter().fold(0.0, |most: f64, x| most.max(x.abs())) / size
}

#[test]
fn differences_of_one_order_more_than_the_degree_vanish() {
    let Some((_, sections)) = sections() else { return };
    for section in &sections {
        let mut s = draws("masters-degrees", 0);
        let cell = section.cell(2, 3, true);
        let theta = small_weights(&mut s, &cell);
        let (h, along) = (dense(&mut s, 1, 1, 3), dense(&mut s, 1, 1, 3));
        let turned = small_weights(&mut s, &cell);
        let (x, before) = (dense(&mut s, 1, 1, 2), dense(&mut s, 1, 1, 2));
        let step = |theta: &[f64], h: Vec<f64>| {
            let starts = Starts { state: Some(h), previous: Some(before.clone()) };
            observed(&cell, theta, &starts, &x, 1, "h").concat()
        };
        let [operators, _, state] = section.degrees();
        // Along a line of states, and along a line of all operators: those slots that have no bias.
        let of_state = |t: f64| step(&theta, plus(&h, &scaled(t, &along)));
        let names: Vec<String> = cell.step.trained().map(|(_, w)| w.name.clone()).collect();
        let is_operator =
            |name: &str| name.strip_suffix(".W").is_some_and(|slot| !names.contains(&format!("{slot}.b")));
        let of_operators = |t: f64| {
            let mut at = 0;
            let mut moved = theta.clone();
            for (_, weight) in cell.step.trained() {
                for entry in at..at + weight.len() {
                    moved[entry] += if is_operator(&weight.name) { t * turned[entry] } else { 0.0 };
                }
                at += weight.len();
            }
            step(&moved, h.clone())
        };
        let name = &section.name;
        for (what, degree, f) in
            [("h", state, &of_state as &dyn Fn(f64) -> Vec<f64>), ("operators", operators, &of_operators)]
        {
            let (above, at) = (difference(degree + 1, f), difference(degree, f));
            assert!(above < 1e-11, "{name}: {what}: order {} is {above:e}", degree + 1);
            assert!(at > 1e-7, "{name}: {what}: order {degree} is {at:e}: the bound is not met");
        }
    }
}

#[test]
fn proofs_in_code_are_the_cells_of_documents() {
    let choice = |terms: [&str; 2]| Slot::programs(terms).act(GateAct::Softmax);
    let subst = Proof::new("subst{h}")
        .slot(choice(["0b01", "0b1"]))
        .slot(choice(["0b10", "0b0"]))
        .slot(choice(["0b1", "0b01"]))
        .slot(Slot::previous().shared(0, 4))
        .slot(Slot::input());
    if let Some((_, sections)) = sections() {
        let built = Proofs::new().input(2).hidden(5).act(Sigma::Tanh).and(subst.clone()).cell().unwrap();
        assert_eq!(built, sections[9].cell(2, 5, false));
    }
    // Everything else that can be said, beside the document that says it.
    let matrix = vec![vec![0.0, 1.0, 0.0, 0.0], vec![1.0, 0.0, 0.0, 0.0]];
    let there_and_back = Proof::new(r"\f g z. g (f z) : (k -o l) -o (l -o k) -o k -o k")
        .dimension("l", 2)
        .projected(4)
        .outside()
        .slot(Slot::matrix(matrix.clone()))
        .slot(Slot::data().act(GateAct::Tanh));
    let diagonal = Proof::new("0b10{h}").slot(Slot::weight()).slot(Slot::input().diagonal());
    let built = Proofs::new().input(2).hidden(3).output(2).and(there_and_back).and(diagonal);
    let masters = json!([
        {"proof": r"\f g z. g (f z) : (k -o l) -o (l -o k) -o k -o k", "state": "k", "dims": {"k": 4, "l": 2},
         "place": "out", "project": "learned",
         "slots": [{"kind": "constant", "value": matrix}, {"kind": "data", "act": "tanh"}]},
        {"proof": "0b10{h}", "state": "h", "dims": {"h": 3}, "slots": [{"kind": "param"}, {"kind": "input", "shape": "diag"}]},
    ]);
    let sizes = json!({"input": 2, "hidden": 3, "output": 2, "readout": 0});
    assert_eq!(built.cell().unwrap(), cell("master", &sizes, &json!({"masters": masters})));
    let document = serde_json::to_value(built.configuration().unwrap()).unwrap();
    assert_eq!(document["masters"][1]["state"], "h");
}

#[test]
fn proofs_that_do_not_fit_are_refused_with_what_is_wrong() {
    let numeral = || Proof::new("2{h}").slot(Slot::input());
    let whole = |proof: Proof| Proofs::new().input(2).hidden(3).and(proof);
    let iterate = || Proof::new(r"\n v. derelict n v : !int{h} -o !(h -o h) -o h -o h");
    let cases: Vec<(Proofs, &str, &[&str])> = vec![
        // Sizes.
        (Proofs::new().hidden(3).and(numeral()), "config", &["`input`"]),
        (Proofs::new().input(2).and(numeral()), "config", &["`hidden`"]),
        (Proofs::new().input(2).hidden(0).and(numeral()), "config", &["`hidden` is 0"]),
        (Proofs::new().input(2).hidden(3), "config", &["at least one"]),
        (whole(numeral().dimension("h", 4)), "config", &["masters[0]", "`hidden` = 3", "not 4"]),
        (
            whole(
                Proof::new(r"\f g z. g (f z) : (h -o k) -o (k -o h) -o h -o h")
                    .slot(Slot::weight())
                    .slot(Slot::weight()),
            ),
            "config",
            &["masters[0]", "how large k is"],
        ),
        // Slots that do not fit the type.
        (
            whole(Proof::new("2{h}")),
            "proof",
            &["masters[0]", "before the state: 1 (`!(h -o h)`)", "slots: 0"],
        ),
        (whole(numeral().slot(Slot::input())), "proof", &["masters[0]", "before the state: 1", "slots: 2"]),
        (
            whole(iterate().slot(Slot::input()).slot(Slot::input())),
            "proof",
            &["masters[0]", "argument 0 has the type `!int{h}`", "fill it with a `program`"],
        ),
        (
            whole(iterate().slot(Slot::programs(["0b1"])).slot(Slot::input())),
            "proof",
            &["masters[0]", "type-mismatch", "`list[0]` of slot 0", "`int{h}` is wanted"],
        ),
        (
            whole(iterate().slot(Slot::programs(["1", "2", "0b1"])).slot(Slot::input())),
            "proof",
            &["`list[2]` of slot 0"],
        ),
        (whole(numeral().dimension("h", 4).projected(5)), "config", &["masters[0]", "h has 4", "goes to 5"]),
        (
            whole(iterate().slot(Slot::programs(["1"])).slot(Slot::programs(["1"]))),
            "proof",
            &["type-mismatch"],
        ),
        (whole(Proof::new(r"\x. x * x : !h -o !h * !h")), "proof", &["masters[0]", "does not end in"]),
        (
            whole(Proof::new(r"\f z. f z : (h -o k) -o h -o k").slot(Slot::weight())),
            "proof",
            &["masters[0]", "(h -o k) -o h -o k", "does not end in"],
        ),
        // Texts.
        (whole(Proof::new("2{h")), "proof", &["masters[0]", "syntax"]),
        (whole(Proof::new(r"\x. x * x : h -o h * h")), "proof", &["masters[0]", "linear-reuse"]),
        // The second of two is the one that is named.
        (whole(numeral()).and(Proof::new("nothing{h}")), "proof", &["masters[1]", "unbound"]),
        // Keys of a slot that do not belong there.
        (
            whole(Proof::new("2{h}").slot(Slot::input().act(GateAct::Tanh))),
            "config",
            &["masters[0].slots[0]", "`act`"],
        ),
        (
            whole(Proof::new("2{h}").slot(Slot::weight().diagonal())),
            "config",
            &["masters[0].slots[0]", "`shape`"],
        ),
        (whole(Proof::new("2{h}").slot(Slot::matrix(vec![vec![1.0]]))), "shape", &["3 rows of 3"]),
        (whole(Proof::new("2{h}").slot(Slot::input().shared(0, 0))), "config", &["`share`"]),
    ];
    for (proofs, kind, words) in cases {
        let refusal = proofs.cell().unwrap_err();
        assert_eq!(refusal.kind.name(), kind, "{refusal}");
        words
            .iter()
            .for_each(|word| assert!(refusal.message.contains(word), "`{word}` is not in: {refusal}"));
    }
}

/// One operator of one unit, filled twice, by the slots that are given.
fn twice(first: &Value, second: &Value) -> Value {
    let master = |slot: &Value| json!({"proof": r"\v. derelict v : !(h -o h) -o h -o h", "state": "h", "dims": {"h": 1}, "slots": [slot]});
    json!({"cell": "master", "sizes": {"input": 1, "hidden": 1}, "h0": [3], "inputs": [[0]],
        "options": {"act": "identity", "masters": [master(first), master(second)]},
        "weights": {"m0.s0.W": [[1]], "m0.s0.b": [0], "H": [[0]], "U": [[0]], "B": [0]}})
}

/// A shared slot has the weights of another, and the γ that it says.
#[test]
fn a_shared_slot_has_its_own_function() {
    let h = |document: &Value| {
        answer(&document.to_string(), false).unwrap()["steps"][0]["h"][0].as_f64().unwrap()
    };
    let relu = json!({"kind": "data", "act": "relu"});
    let shared = |act: &str| twice(&relu, &json!({"kind": "data", "act": act, "share": [0, 0]}));
    assert!((h(&shared("tanh")) - (9.0 + 3.0 * 3.0_f64.tanh())).abs() < 1e-12);
    assert!((h(&shared("relu")) - 18.0).abs() < 1e-12);
    let silent = twice(&json!({"kind": "data", "act": "tanh"}), &json!({"kind": "data", "share": [0, 0]}));
    assert!((h(&silent) - 6.0 * 3.0_f64.tanh()).abs() < 1e-12);
    let refused = answer(&shared("softmax").to_string(), false).unwrap_err();
    assert!(refused.message.contains("masters[1].slots[0]: `act` of data"), "{refused}");
    // A constant is not learned, and a parameter is.
    let constant = json!({"kind": "constant", "value": [[2.0]]});
    let mixed = twice(&constant, &json!({"kind": "param", "share": [0, 0]}));
    let refused = answer(&mixed.to_string(), true).unwrap_err();
    assert!(refused.message.contains("that slot has another kind or shape"), "{refused}");
}

/// Shares may lead over others, in either order, and to themselves they may not.
#[test]
fn shares_lead_over_others() {
    let master = |slot: Value| json!({"proof": r"\v. derelict v : !(h -o h) -o h -o h", "state": "h", "dims": {"h": 2}, "slots": [slot]});
    let of = |shares: [Option<usize>; 3]| {
        let slots = shares.map(|share| match share {
            Some(other) => json!({"kind": "param", "share": [other, 0]}),
            None => json!({"kind": "param"}),
        });
        let masters: Vec<Value> = slots.into_iter().map(master).collect();
        let document =
            json!({"cell": "master", "sizes": {"input": 1, "hidden": 2}, "options": {"masters": masters}});
        answer(&document.to_string(), true)
    };
    let plain = of([None, Some(0), Some(0)]).unwrap();
    for shares in [[None, Some(0), Some(1)], [Some(1), Some(2), None], [Some(1), None, Some(0)]] {
        assert_eq!(of(shares).unwrap()["total_params"], plain["total_params"], "{shares:?}");
    }
    for shares in [[Some(0), None, None], [Some(1), Some(0), None], [Some(1), Some(2), Some(0)]] {
        let refused = of(shares).unwrap_err();
        assert!(refused.message.contains("no such slot with weights"), "{shares:?}: {refused}");
    }
}
