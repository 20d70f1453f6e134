//! The engine against its oracles, on every kind of cell with every option: finite differences of its own loss, the
//! composed step on candle, f32 against f64, a batch against its rows, one thread against many.

use crate::common::{cell, dense, kept, observed, small_weights};
use candle_core::{DType, Device};
use linear_logic_rnn::cell::Cell;
use linear_logic_rnn::composed::Composed;
use linear_logic_rnn::engine::{Engine, Inputs, Objective, Sequences, Starts, Targets};
use linear_logic_rnn::step::Part;
use seeded::Stream;
use serde_json::{Map, Value, json};

/// The options of `ll` beside its programs, with all their values.
const CHOICES: [(&str, &[&str]); 10] = [
    ("v", &["diag", "full", "two-space"]),
    ("gate", &["scalar", "diagonal"]),
    ("gate_act", &["relu", "tanh", "sigmoid", "softmax", "identity", "one"]),
    ("gate_source", &["state", "table"]),
    ("act", &["relu", "tanh", "identity"]),
    ("x0", &["zero", "first", "learned"]),
    ("h0", &["zero", "learned"]),
    ("v_norm", &["none", "tanh", "column-softmax"]),
    ("project", &["learned", "identity"]),
    ("order", &["literal", "fdf"]),
];

/// A random cell `ll` whose options do not exclude each other.
fn random_linear_logic(s: &mut Stream) -> (Value, Value) {
    let mut options: Map<String, Value> = CHOICES
        .iter()
        .map(|(key, values)| ((*key).to_owned(), json!(values[s.below(values.len() as u64) as usize])))
        .collect();
    if options["v"] == "diag" && options["v_norm"] == "column-softmax" {
        options.insert("v_norm".to_owned(), json!("tanh"));
    }
    if options["gate_act"] == "one" {
        options.insert("gate_source".to_owned(), json!("state"));
    }
    if options["gate_source"] == "table" {
        options.insert("table_len".to_owned(), json!(1 + s.below(4)));
    }
    options.insert("preset".to_owned(), json!("paper"));
    options.insert("lambda".to_owned(), json!(["add 1 0", 2]));
    options.insert("pi".to_owned(), json!(["10", "0"]));
    options.insert("hh".to_owned(), json!(s.below(2) == 0));
    if options["x0"] != "first" && s.below(3) == 0 {
        options.insert("window".to_owned(), json!(3));
        options.insert("pi".to_owned(), json!(["120", "0"]));
    }
    let mut sizes = json!({"input": 2, "hidden": 3, "output": 3, "readout": 2 * s.below(2)});
    if options["project"] == "learned" {
        sizes["aux"] = json!(2);
        sizes["aux2"] = json!(4);
    }
    (sizes, Value::Object(options))
}

/// Masters with every kind of slot, place, projection, share and function.
fn masters() -> Vec<Value> {
    let iterate = r"\n v. derelict n v : !int{k} -o !(k -o k) -o k -o k";
    let word = r"\w x y. derelict w x y : !bint{k} -o !(k -o k) -o !(k -o k) -o k -o k";
    let there_and_back = r"\f g z. g (f z) : (h -o k) -o (k -o h) -o h -o h";
    let program = |act: &str| json!({"kind": "program", "list": ["1", "2"], "act": act});
    let input = |shape: &str| json!({"kind": "input", "shape": shape});
    let mut all: Vec<Value> = ["relu", "tanh", "sigmoid", "softmax", "identity", "one"]
        .iter()
        .zip(["diag", "full"].iter().cycle())
        .map(|(act, shape)| {
            json!([{"proof": iterate, "state": "k", "dims": {"k": 2}, "project": "learned",
                    "slots": [program(act), input(shape)]}])
        })
        .collect();
    all.push(json!([
        {"proof": iterate, "state": "k", "dims": {"k": 2}, "project": "learned",
         "slots": [program("relu"), input("full")]},
        {"proof": word, "state": "k", "dims": {"k": 2}, "project": {"share": 0}, "place": "out",
         "order": "first-digit-first",
         "slots": [{"kind": "program", "list": ["0b10", "0b110"]},
                   {"kind": "previous-input", "share": [0, 1]}, {"kind": "input", "share": [0, 1]}]}
    ]));
    for act in ["relu", "tanh", "sigmoid", "identity"] {
        all.push(json!([
            {"proof": there_and_back, "state": "h", "dims": {"h": 3, "k": 2},
             "slots": [{"kind": "data", "act": act}, {"kind": "param"}]},
            {"proof": there_and_back, "state": "h", "dims": {"h": 3, "k": 4}, "place": "out",
             "slots": [{"kind": "input"}, {"kind": "data", "act": act}]}
        ]));
    }
    all.push(json!([
        {"proof": r"\n r. derelict n r : !int{h} -o !(h -o h) -o h -o h", "state": "h", "dims": {"h": 3},
         "slots": [{"kind": "program", "list": ["0", "1", "2"], "act": "softmax"},
                   {"kind": "constant", "value": [[0, 0, 1], [1, 0, 0], [0, 1, 0]]}]},
        {"proof": r"\p q z. p (q z) : (h -o h) -o (h -o h) -o h -o h", "state": "h", "dims": {"h": 3},
         "slots": [{"kind": "program", "list": [r"\z. z", r"\z. z"], "act": "tanh"},
                   {"kind": "previous-input", "shape": "diag"}]}
    ]));
    all
}

/// Every cell of these tests with its name.
pub(crate) fn cells() -> Vec<(String, Cell)> {
    let mut documents: Vec<(&str, Value, Value)> = Vec::new();
    let small = |readout: u64| json!({"input": 2, "hidden": 3, "aux": 2, "output": 3, "readout": readout});
    for act in ["relu", "tanh", "identity"] {
        for readout in [0, 2] {
            documents.push(("elman", small(readout), json!({"act": act})));
            documents.push(("second-order", small(readout), json!({"act": act})));
            documents.push(("mrnn", small(readout), json!({"act": act, "hh": readout == 0})));
            documents.push(("mi", small(readout), json!({"act": act, "mi_weights": "learned"})));
            documents.push(("mi", small(readout), json!({"act": act, "mi_weights": "ones"})));
        }
    }
    for readout in [0, 2] {
        documents.push(("lstm", small(readout), json!({})));
        documents.push(("gru", small(readout), json!({})));
    }
    for (at, masters) in masters().into_iter().enumerate() {
        let act = ["relu", "tanh", "identity"][at % 3];
        documents.push(("master", small(2 * (at as u64 % 2)), json!({"act": act, "masters": masters})));
    }
    for kind in ["ntm", "pattern-ntm", "multi-pattern-ntm"] {
        let sizes = json!({"input": 2, "hidden": 3, "output": 3, "addresses": 4, "content": 2,
                           "pattern_addresses": 3});
        documents.push((kind, sizes.clone(), json!({})));
        let mut options = json!({"powers": [0, -1, 7]});
        let mut sizes = sizes;
        sizes["readout"] = json!(2);
        if kind != "ntm" {
            options["pattern_powers"] = json!([1, -5]);
            options["pattern_start"] = json!(0.5);
        }
        documents.push((kind, sizes, options));
    }
    let mut s = kept("cells", 0);
    for preset in ["paper", "coded", "stable"] {
        let pi = if preset == "coded" { json!([]) } else { json!(["10", "0"]) };
        documents.push(("ll", small(2), json!({"preset": preset, "lambda": [1, 2], "pi": pi})));
    }
    let mut random = Vec::new();
    for _ in 0..240 {
        random.push(random_linear_logic(&mut s));
    }
    documents.extend(random.into_iter().map(|(sizes, options)| ("ll", sizes, options)));
    let name = |kind: &str, sizes: &Value, options: &Value| format!("{kind} {sizes} {options}");
    documents.iter().map(|(kind, s, o)| (name(kind, s, o), cell(kind, s, o))).collect()
}

/// Random sequences with targets and a mask.
struct Batch {
    inputs: Vec<f64>,
    tokens: Option<Vec<u32>>,
    classes: Vec<u32>,
    mask: Vec<bool>,
    length: usize,
    count: usize,
}

impl Batch {
    fn new(s: &mut Stream, width: usize, length: usize, count: usize) -> Self {
        let places = length * count;
        let tokens: Option<Vec<u32>> =
            (s.below(3) == 0).then(|| (0..places).map(|_| s.below(width as u64) as u32).collect());
        Self {
            inputs: dense(s, length, count, width),
            tokens,
            classes: (0..places).map(|_| s.below(3) as u32).collect(),
            mask: (0..places).map(|_| s.below(4) > 0).collect(),
            length,
            count,
        }
    }

    fn sequences(&self) -> Sequences<'_> {
        let inputs = match &self.tokens {
            Some(tokens) => Inputs::Tokens(tokens),
            None => Inputs::Dense(&self.inputs),
        };
        Sequences { inputs, length: self.length, count: self.count }
    }

    fn targets(&self) -> Targets<'_> {
        Targets { classes: &self.classes, mask: &self.mask }
    }

    fn objectives(&self) -> [Objective<'_>; 2] {
        [Objective::LastState, Objective::CrossEntropy(self.targets())]
    }

    /// One of its sequences.
    fn row(&self, row: usize, width: usize) -> Self {
        let places = || (0..self.length).map(|time| time * self.count + row);
        Self {
            inputs: places().flat_map(|at| self.inputs[at * width..(at + 1) * width].to_vec()).collect(),
            tokens: self.tokens.as_ref().map(|tokens| places().map(|at| tokens[at]).collect()),
            classes: places().map(|at| self.classes[at]).collect(),
            mask: places().map(|at| self.mask[at]).collect(),
            length: self.length,
            count: 1,
        }
    }
}

fn gradient(engine: &Engine<f64>, batch: &Batch, objective: Objective<'_>, len: usize) -> (f64, Vec<f64>) {
    // What stood there before must not matter.
    let mut gradient = vec![f64::NAN; len];
    let loss = engine.gradient(batch.sequences(), objective, &mut gradient);
    (loss, gradient)
}

fn largest(all: &[f64]) -> f64 {
    all.iter().fold(0.0, |most, x| most.max(x.abs()))
}

/// For every weight, its name and the range of its entries.
fn ranges(cell: &Cell) -> Vec<(String, std::ops::Range<usize>, Part)> {
    let mut at = 0;
    let range = |(_, weight): (_, &linear_logic_rnn::step::Weight)| {
        at += weight.len();
        (weight.name.clone(), at - weight.len()..at, weight.part)
    };
    cell.step.trained().map(range).collect()
}

#[test]
fn the_list_has_every_pair_of_options() {
    let mut s = kept("cells", 0);
    let drawn: Vec<Value> = (0..240).map(|_| random_linear_logic(&mut s).1).collect();
    for (one, values) in CHOICES {
        for (other, others) in CHOICES {
            for (value, with) in values.iter().flat_map(|v| others.iter().map(move |o| (v, o))) {
                let is_excluded = (one == other && value != with)
                    || [*value, *with] == ["diag", "column-softmax"]
                    || [*value, *with] == ["column-softmax", "diag"]
                    || [*value, *with] == ["one", "table"]
                    || [*value, *with] == ["table", "one"];
                let is_drawn = drawn.iter().any(|o| o[one] == *value && o[other] == *with);
                assert!(is_drawn || is_excluded, "{one} = {value} with {other} = {with}");
            }
        }
    }
}

#[test]
fn gradients_are_finite_differences_of_the_loss() {
    let step = 1e-5;
    for (at, (name, cell)) in cells().into_iter().enumerate() {
        let mut s = kept("differences", at as u64);
        let mut theta = small_weights(&mut s, &cell);
        let batch = Batch::new(&mut s, cell.step.input, 4, 3);
        let mut engine = Engine::new(cell.step.clone(), &theta);
        let [last, cross] = batch.objectives();
        let (_, of_last) = gradient(&engine, &batch, last, theta.len());
        let (_, of_cross) = gradient(&engine, &batch, cross, theta.len());
        for (weight, range, _) in ranges(&cell) {
            let bounds = [largest(&of_last[range.clone()]), largest(&of_cross[range.clone()])];
            for entry in range {
                let kept = theta[entry];
                let mut losses = [[0.0; 2]; 2];
                for (side, losses) in [step, -step].iter().zip(&mut losses) {
                    theta[entry] = kept + side;
                    engine.set(&theta);
                    *losses =
                        [last, cross].map(|objective| gradient(&engine, &batch, objective, theta.len()).0);
                }
                theta[entry] = kept;
                for (which, found) in [of_last[entry], of_cross[entry]].into_iter().enumerate() {
                    let slope = (losses[0][which] - losses[1][which]) / (2.0 * step);
                    let near = 1e-5 * bounds[which] + 1e-9;
                    assert!((slope - found).abs() <= near, "{name}\n{weight}: {found}, not {slope}");
                }
            }
        }
    }
}

#[test]
fn the_engine_is_the_composed_step() {
    for (at, (name, cell)) in cells().into_iter().enumerate() {
        let mut s = kept("composed", at as u64);
        let theta = small_weights(&mut s, &cell);
        let (length, count) = (1 + at % 7, [1, 31, 33, 70, 2][at % 5]);
        let batch = Batch::new(&mut s, cell.step.input, length, count);
        let engine = Engine::new(cell.step.clone(), &theta);
        let composed = Composed::new(cell.step.clone(), &theta, DType::F64, &Device::Cpu).unwrap();
        let predicted = engine.predict(batch.sequences(), batch.targets());
        let oracle = composed.predict(batch.sequences(), batch.targets()).unwrap();
        assert_eq!(predicted.classes, oracle.classes, "{name}");
        for objective in batch.objectives() {
            let (loss, found) = gradient(&engine, &batch, objective, theta.len());
            let mut right = vec![f64::NAN; theta.len()];
            let total = composed.gradient(batch.sequences(), objective, &mut right).unwrap();
            assert!((loss - total).abs() <= 1e-10 * total.abs().max(1e-3), "{name}: {loss}, not {total}");
            let bound = 1e-10 * largest(&right).max(1e-6);
            for (weight, range, _) in ranges(&cell) {
                for entry in range {
                    let (found, right) = (found[entry], right[entry]);
                    assert!((found - right).abs() <= bound, "{name}\n{weight}: {found}, not {right}");
                }
            }
            if let Objective::CrossEntropy(_) = objective {
                assert!((predicted.loss - loss).abs() <= 1e-12 * loss.abs(), "{name}: two losses");
            }
        }
    }
}

#[test]
fn every_weight_has_a_gradient() {
    for (at, (name, cell)) in cells().into_iter().enumerate() {
        let mut s = kept("every-weight", at as u64);
        // With relu all units of a layer may be dead: a weight that matters does so in one of a few draws.
        let (mut of_last, mut of_cross) = (vec![0.0; cell.count()], vec![0.0; cell.count()]);
        for _ in 0..5 {
            let theta = small_weights(&mut s, &cell);
            let batch = Batch::new(&mut s, cell.step.input, 7, 33);
            let engine = Engine::new(cell.step.clone(), &theta);
            for (objective, most) in batch.objectives().into_iter().zip([&mut of_last, &mut of_cross]) {
                let (_, found) = gradient(&engine, &batch, objective, theta.len());
                assert!(found.iter().all(|g| g.is_finite()), "{name}");
                most.iter_mut().zip(found).for_each(|(most, g)| *most = g.abs().max(*most));
            }
        }
        let all = ranges(&cell);
        let starts_at_zero = all.iter().all(|(weight, ..)| weight != "h0");
        for (weight, range, part) in all {
            // The words act on J h: where h starts at 0, x⁽⁰⁾ changes nothing, unless it still stands there when it is not.
            let is_seen_later = cell.step.states.iter().any(|state| state.name == "x2");
            let is_idle = weight == "x0" && starts_at_zero && !is_seen_later;
            let is_zero = |all: &[f64]| largest(&all[range.clone()]) == 0.0;
            assert_eq!(is_zero(&of_cross), is_idle, "{name}: {weight}, cross-entropy");
            assert_eq!(is_zero(&of_last), is_idle || part == Part::Readout, "{name}: {weight}, last state");
        }
    }
}

#[test]
fn f32_is_near_f64_and_rows_are_batches_of_one() {
    for (at, (name, cell)) in cells().into_iter().enumerate() {
        let mut s = kept("rows", at as u64);
        let theta = small_weights(&mut s, &cell);
        let single: Vec<f32> = theta.iter().map(|x| *x as f32).collect();
        let (length, count) = (1 + at % 7, [1, 31, 33, 70][at % 4]);
        let mut batch = Batch::new(&mut s, cell.step.input, length, count);
        batch.tokens = None;
        let composed = Composed::new(cell.step.clone(), &theta, DType::F64, &Device::Cpu).unwrap();
        let all = composed.states(batch.sequences()).unwrap();
        let rough = Composed::new(cell.step.clone(), &single, DType::F32, &Device::Cpu).unwrap();
        for (rough, exact) in rough.states(batch.sequences()).unwrap().iter().zip(&all) {
            let near = 1e-4 * largest(exact).max(1e-3);
            assert!(rough.iter().zip(exact).all(|(x, y)| (x - y).abs() <= near), "{name}: composed in f32");
        }
        let hidden = cell.step.states[0].len;
        let starts = Starts::default();
        for row in [0, count / 2, count - 1] {
            let alone = batch.row(row, cell.step.input);
            let exact = observed(&cell, &theta, &starts, &alone.inputs, length, "h");
            let rough = observed(&cell, &single, &starts, &alone.inputs, length, "h");
            for (time, (exact, rough)) in exact.iter().zip(&rough).enumerate() {
                let right = &all[time][row * hidden..(row + 1) * hidden];
                let size = largest(right).max(1e-3);
                for ((x, y), z) in exact.iter().zip(right).zip(rough) {
                    assert!((x - y).abs() <= 1e-12 * size.max(1.0), "{name}: step {time} of row {row}");
                    assert!((z - y).abs() <= 1e-4 * size, "{name}: f32, step {time}: {z}, not {y}");
                }
            }
        }
        // Gradients and losses of a batch are the sums of those of its rows.
        let engine = Engine::new(cell.step.clone(), &theta);
        for which in 0..2 {
            let (loss, found) = gradient(&engine, &batch, batch.objectives()[which], theta.len());
            let (mut total, mut sums) = (0.0, vec![0.0; theta.len()]);
            for row in 0..count {
                let alone = batch.row(row, cell.step.input);
                let (loss, part) = gradient(&engine, &alone, alone.objectives()[which], theta.len());
                total += loss;
                sums.iter_mut().zip(&part).for_each(|(sum, g)| *sum += g);
            }
            assert!((loss - total).abs() <= 1e-11 * total.abs().max(1.0), "{name}: {loss}, not {total}");
            let bound = 1e-11 * largest(&sums).max(1.0);
            assert!(found.iter().zip(&sums).all(|(g, sum)| (g - sum).abs() <= bound), "{name}");
        }
    }
}

#[test]
fn threads_change_no_bit() {
    for (at, (name, cell)) in cells().into_iter().enumerate().step_by(7) {
        let mut s = kept("threads", at as u64);
        let theta: Vec<f32> = small_weights(&mut s, &cell).iter().map(|x| *x as f32).collect();
        let batch = Batch::new(&mut s, cell.step.input, 5, 150);
        let bits = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let engine = Engine::new(cell.step.clone(), &theta);
            let mut gradient = vec![0.0_f32; theta.len()];
            let loss = pool.install(|| {
                // Twice, so that buffers are used again.
                engine.gradient(batch.sequences(), Objective::LastState, &mut gradient);
                engine.gradient(batch.sequences(), batch.objectives()[1], &mut gradient)
            });
            let predicted = pool.install(|| engine.predict(batch.sequences(), batch.targets()));
            let gradient: Vec<u32> = gradient.iter().map(|g| g.to_bits()).collect();
            (loss.to_bits(), gradient, predicted.loss.to_bits(), predicted.classes)
        };
        let one = bits(1);
        for threads in [2, 3, 5] {
            assert_eq!(one, bits(threads), "{name}: {threads} threads");
        }
    }
}

#[test]
fn the_slope_of_relu_at_0_is_0() {
    let cell = cell("elman", &json!({"input": 1, "hidden": 1}), &json!({"act": "relu"}));
    let theta = [1.0, 1.0, 0.0];
    let engine = Engine::new(cell.step.clone(), &theta);
    let composed = Composed::new(cell.step.clone(), &theta, DType::F64, &Device::Cpu).unwrap();
    let sequences = Sequences { inputs: Inputs::Dense(&[0.0]), length: 1, count: 1 };
    let (mut found, mut right) = ([1.0; 3], [1.0; 3]);
    engine.gradient(sequences, Objective::LastState, &mut found);
    composed.gradient(sequences, Objective::LastState, &mut right).unwrap();
    assert_eq!((found, right), ([0.0; 3], [0.0; 3]));
}

#[test]
fn a_given_start_takes_the_place_of_the_weight() {
    let options = json!({"preset": "paper", "lambda": [1], "pi": ["10"], "x0": "learned", "h0": "learned",
                         "act": "tanh", "gate_act": "tanh"});
    let cell = cell("ll", &json!({"input": 2, "hidden": 3, "aux": 2}), &options);
    let mut s = kept("given", 0);
    let theta = small_weights(&mut s, &cell);
    let batch = Batch::new(&mut s, 2, 3, 2);
    let starts = Starts { state: Some(vec![0.5, -0.25, 1.0]), previous: Some(vec![1.0, -1.0]) };
    let engine = Engine::new(cell.step.clone(), &theta).with_starts(starts.clone());
    let composed = Composed::new(cell.step.clone(), &theta, DType::F64, &Device::Cpu).unwrap();
    let composed = composed.with_starts(starts);
    let (loss, found) = gradient(&engine, &batch, Objective::LastState, theta.len());
    let mut right = vec![0.0; theta.len()];
    let total = composed.gradient(batch.sequences(), Objective::LastState, &mut right).unwrap();
    assert!((loss - total).abs() < 1e-12);
    for (weight, range, _) in ranges(&cell) {
        if ["h0", "x0"].contains(&weight.as_str()) {
            assert_eq!(largest(&found[range.clone()]), 0.0, "{weight}");
        }
        for entry in range {
            assert!((found[entry] - right[entry]).abs() < 1e-12, "{weight}");
        }
    }
}
