//! What a step costs: beside an evaluation of its operations that counts its multiplications one by one, on every kind of
//! cell with every option, and is checked against the engine's values.

use std::cell::Cell as Counter;

use linear_logic_rnn::cell::Cell;
use linear_logic_rnn::engine::{Engine, Inputs, Sequences, Starts};
use linear_logic_rnn::step::{Act, Factor, Groups, Norm, Op, Part, Start, Step, ValueId, View};

use crate::common::{dense, draws, small_weights};
use crate::gradients::cells;
use crate::plain::{logistic, softmax};

/// Numbers whose multiplications are counted.
#[derive(Default)]
struct Machine {
    done: Counter<usize>,
}

impl Machine {
    fn times(&self, a: f64, b: f64) -> f64 {
        self.done.set(self.done.get() + 1);
        a * b
    }

    /// Σ a b
    fn inner(&self, a: impl IntoIterator<Item = f64>, b: &[f64]) -> f64 {
        a.into_iter().zip(b).map(|(a, b)| self.times(a, *b)).sum()
    }
}

/// A step with weights as they are used.
struct Naive<'a> {
    step: &'a Step,
    weights: Vec<Vec<f64>>,
    machine: Machine,
}

impl<'a> Naive<'a> {
    fn new(step: &'a Step, theta: &[f64]) -> Self {
        let mut rest = theta;
        let weights = step.weights.iter().map(|weight| {
            let mut entries = weight.fixed.clone().unwrap_or_else(|| {
                let (own, others) = rest.split_at(weight.len());
                rest = others;
                own.to_vec()
            });
            match weight.norm {
                Norm::None => {}
                Norm::Tanh => entries.iter_mut().for_each(|x| *x = x.tanh()),
                Norm::ColumnSoftmax => {
                    let [.., rows, columns] = weight.shape[..] else { panic!("{}", weight.name) };
                    for matrix in entries.chunks_mut(rows * columns) {
                        for c in 0..columns {
                            let column: Vec<f64> = (0..rows).map(|r| matrix[r * columns + c]).collect();
                            for (r, x) in softmax(&column).into_iter().enumerate() {
                                matrix[r * columns + c] = x;
                            }
                        }
                    }
                }
            }
            entries
        });
        Self { step, weights: weights.collect(), machine: Machine::default() }
    }

    /// Entry (r, c) of a weight that is read as a matrix.
    fn entry(&self, factor: Factor, r: usize, c: usize) -> f64 {
        let weight = &self.weights[factor.weight.index()];
        let (rows, columns) = self.step.shape_of(factor);
        match factor.view {
            View::Plain => weight[r * columns + c],
            View::Transposed => weight[c * rows + r],
            View::Stacked => {
                let inner = *self.step.weights[factor.weight.index()].shape.last().unwrap();
                weight[(c / inner * rows + r) * inner + c % inner]
            }
        }
    }

    /// All values of the first step, and what the multiplications of each were.
    fn run(&self, input: &[f64], before: &[f64], states: &[Vec<f64>]) -> Vec<(Vec<f64>, usize)> {
        let mut all: Vec<(Vec<f64>, usize)> = Vec::new();
        for node in &self.step.nodes {
            let start = self.machine.done.get();
            let value = self.value(&node.op, node.len, &all, (input, before, states));
            assert_eq!(value.len(), node.len, "{:?}", node.op);
            all.push((value, self.machine.done.get() - start));
        }
        all
    }

    fn value(
        &self,
        op: &Op,
        len: usize,
        all: &[(Vec<f64>, usize)],
        (input, before, states): (&[f64], &[f64], &[Vec<f64>]),
    ) -> Vec<f64> {
        let get = |value: &ValueId| all[value.index()].0.as_slice();
        let m = &self.machine;
        match op {
            Op::Input => input.to_vec(),
            Op::Previous => before.to_vec(),
            Op::State(state) => states[state.index()].clone(),
            Op::Vector(weight) => self.weights[weight.index()].clone(),
            Op::Row(weight) => self.weights[weight.index()][..len].to_vec(),
            Op::Affine { terms, bias, add } => (0..len)
                .map(|r| {
                    let mut sum = bias.map_or(0.0, |bias| self.weights[bias.index()][r]);
                    sum += add.iter().map(|a| get(a)[r]).sum::<f64>();
                    for (factor, x) in terms {
                        sum += m.inner((0..get(x).len()).map(|c| self.entry(*factor, r, c)), get(x));
                    }
                    sum
                })
                .collect(),
            Op::Outer(x, z) => get(x)
                .iter()
                .flat_map(|x| get(z).iter().map(|z| m.times(*x, *z)).collect::<Vec<f64>>())
                .collect(),
            Op::Mul(a, b) => {
                let a = get(a);
                get(b).iter().enumerate().map(|(k, b)| m.times(a[k % a.len()], *b)).collect()
            }
            Op::Scale(c, x) => get(x).iter().map(|x| m.times(*c, *x)).collect(),
            Op::Mix { gates, items } => {
                let each = get(gates).len() / items.len();
                let gate = |item: usize, k: usize| get(gates)[item * each + k % each];
                let part = |k: usize| {
                    (0..items.len()).map(|item| m.times(gate(item, k), get(&items[item])[k])).sum()
                };
                (0..len).map(part).collect()
            }
            Op::Act(act, x) => {
                let function = match act {
                    Act::Identity => |x: f64| x,
                    Act::Relu => |x: f64| x.max(0.0),
                    Act::Tanh => f64::tanh,
                    Act::Sigmoid => logistic,
                };
                get(x).iter().map(|x| function(*x)).collect()
            }
            Op::Softmax(Groups::Rows(n), x) => get(x).chunks(*n).flat_map(softmax).collect(),
            Op::Softmax(Groups::Blocks(n), x) => {
                let width = len / n;
                let group = |k: usize| (0..*n).map(|block| get(x)[block * width + k]).collect::<Vec<f64>>();
                (0..len).map(|at| softmax(&group(at % width))[at / width]).collect()
            }
            Op::Slice { of, start } => get(of)[*start..start + len].to_vec(),
            Op::Apply { matrix, vector } => get(matrix)
                .chunks(get(vector).len())
                .map(|row| m.inner(row.iter().copied(), get(vector)))
                .collect(),
            Op::Turn { by, address, powers } => {
                let v = get(address);
                let from =
                    |k: usize, power: i64| (k as i64 - power.rem_euclid(len as i64)).rem_euclid(len as i64);
                let part =
                    |k: usize| m.inner(powers.iter().map(|power| v[from(k, *power) as usize]), get(by));
                (0..len).map(part).collect()
            }
            Op::Sharpen { address, exponent } => {
                let logs: Vec<f64> =
                    get(address).iter().map(|v| m.times(get(exponent)[0], (v + 1e-6).ln())).collect();
                softmax(&logs)
            }
            Op::Read { memory, address } => {
                let column = |c: usize| get(memory).iter().copied().skip(c).step_by(len);
                (0..len).map(|c| m.inner(column(c), get(address))).collect()
            }
            Op::Write { memory, address, erase, add } => {
                let (memory, erase, add) = (get(memory), get(erase), get(add));
                let entry = |at: usize| {
                    let (n, c) = (at / erase.len(), at % erase.len());
                    memory[at] + m.times(get(address)[n], add[c] - m.times(memory[at], erase[c]))
                };
                (0..len).map(entry).collect()
            }
        }
    }
}

/// Every state before the first step.
fn starts(step: &Step, weights: &[Vec<f64>], h: &[f64]) -> Vec<Vec<f64>> {
    let start = |(at, state): (usize, &linear_logic_rnn::step::State)| match &state.start {
        _ if at == 0 => h.to_vec(),
        Start::Constant(value) => value.clone(),
        Start::Weight(weight) => weights[weight.index()].clone(),
        Start::Zero | Start::First => vec![0.0; state.len],
    };
    step.states.iter().enumerate().map(start).collect()
}

#[test]
fn multiply_adds_are_the_multiplications_of_a_plain_evaluation() {
    let (mut kinds, mut compared) = (std::collections::BTreeSet::new(), 0);
    for (at, (name, cell)) in cells().into_iter().enumerate() {
        let mut s = draws("costs", at as u64);
        let theta = small_weights(&mut s, &cell);
        let width = cell.step.input;
        let (input, before) = (dense(&mut s, 1, 1, width), dense(&mut s, 1, 1, width));
        let h = dense(&mut s, 1, 1, cell.step.states[0].len);
        let naive = Naive::new(&cell.step, &theta);
        let values = naive.run(&input, &before, &starts(&cell.step, &naive.weights, &h));
        // It is an evaluation: its values are the engine's.
        let given = Starts { state: Some(h.clone()), previous: Some(before.clone()) };
        let engine = Engine::new(cell.step.clone(), &theta).with_starts(given);
        let sequences = Sequences { inputs: Inputs::Dense(&input), length: 1, count: 1 };
        engine.observe(sequences, |_, seen| {
            for (report, value) in &cell.step.reports {
                for (found, right) in seen.value(*value).iter().zip(&values[value.index()].0) {
                    let near = 1e-11 * right.abs().max(1.0);
                    assert!((found - right).abs() <= near, "{name}: {report}: {found}, not {right}");
                    compared += 1;
                }
            }
        });
        let counted: usize = values.iter().map(|(_, count)| count).sum();
        assert_eq!(cell.multiply_adds(), counted, "{name}");
        // The readout's part is that of its matrices.
        let readout = cell.step.weights.iter().filter(|w| w.part == Part::Readout && w.shape.len() == 2);
        let readout: usize = readout.map(linear_logic_rnn::step::Weight::len).sum();
        assert_eq!(cell.step.multiply_adds(Part::Readout), readout, "{name}");
        kinds.insert(cell.kind.name());
    }
    assert_eq!(kinds.len(), linear_logic_rnn::options::CellKind::all().count());
    assert!(compared > 1000);
}

/// Known cells: the formulas of section 2, and what is not polynomial.
#[test]
fn degrees_of_known_cells() {
    use serde_json::json;
    let sizes = json!({"input": 2, "hidden": 3, "aux": 2, "output": 2, "addresses": 4, "content": 2});
    let degree = |kind: &str, options: serde_json::Value| {
        let cell: Cell = crate::common::cell(kind, &sizes, &options);
        let degree = cell.degree();
        (degree.state, degree.between, degree.operators)
    };
    assert_eq!(degree("elman", json!({"act": "identity"})), (Some(1), 1, 0));
    assert_eq!(degree("elman", json!({"act": "tanh"})), (None, 1, 0));
    assert_eq!(degree("mi", json!({"act": "identity"})), (Some(1), 1, 0));
    // s(f) ∘ c and s(o) ∘ tanh c′
    assert_eq!(degree("lstm", json!({})), (None, 2, 0));
    // z ∘ h
    assert_eq!(degree("gru", json!({})), (None, 2, 0));
    // w (a − M e)
    assert_eq!(degree("ntm", json!({})), (None, 3, 0));
    let linear_logic = |gate_act: &str| {
        json!({"preset": "paper", "v": "full", "lambda": [1, "mult [2] 3"], "pi": ["10"],
               "act": "identity", "gate_act": gate_act})
    };
    // The gates come from the state: one more than with gates 1.
    assert_eq!(degree("ll", linear_logic("identity")), (Some(2), 2, 6));
    assert_eq!(degree("ll", linear_logic("one")), (Some(1), 1, 6));
    assert_eq!(degree("ll", linear_logic("tanh")), (None, 2, 6));
}
