//! Writing a step: one method for each operation, named after what it computes.
//!
//! Equal operations on equal operands become one value.

use training::Initial;

use super::data::{
    Act, Factor, Groups, Node, Norm, Op, Part, Start, State, StateId, Step, ValueId, View, Weight, WeightId,
};
use crate::error::{Refusal, Result};

/// Writes a step. Methods are named after what they compute.
#[derive(Debug)]
pub struct Builder {
    step: Step,
    part: Part,
    next: Vec<Option<ValueId>>,
}

impl Builder {
    /// A step on inputs of this many features.
    pub fn new(input: usize) -> Self {
        let step = Step {
            input,
            weights: Vec::new(),
            nodes: Vec::new(),
            states: Vec::new(),
            previous: Start::Zero,
            reports: Vec::new(),
            logits: None,
        };
        Self { step, part: Part::Cell, next: Vec::new() }
    }

    /// The number of features of a value.
    pub fn len_of(&self, value: ValueId) -> usize {
        self.step.len_of(value)
    }

    fn push(&mut self, op: Op, len: usize) -> ValueId {
        let node = Node { op, len };
        // An equal operation stands behind its operands.
        let from = node.op.operands().iter().map(|operand| operand.0 + 1).max().unwrap_or(0);
        match self.step.nodes.iter().skip(from).position(|known| *known == node) {
            Some(at) => ValueId(from + at),
            None => {
                self.step.nodes.push(node);
                ValueId(self.step.nodes.len() - 1)
            }
        }
    }

    /// A trained weight.
    pub fn weight(&mut self, name: impl Into<String>, shape: &[usize], initial: Initial) -> WeightId {
        self.normed(name, shape, initial, Norm::None)
    }

    /// A trained matrix (…, rows, columns) with Glorot's uniform distribution.
    pub fn matrix(&mut self, name: impl Into<String>, shape: &[usize]) -> WeightId {
        let columns = shape.last().copied().unwrap_or(1);
        let rows = shape.get(shape.len().wrapping_sub(2)).copied().unwrap_or(1);
        self.weight(name, shape, Initial::XavierUniform { fan_in: columns, fan_out: rows })
    }

    /// A trained vector that starts at a constant.
    pub fn bias(&mut self, name: impl Into<String>, len: usize, start: f32) -> WeightId {
        self.weight(name, &[len], Initial::Constant(start))
    }

    /// A trained weight that something is done to before use.
    pub fn normed(
        &mut self,
        name: impl Into<String>,
        shape: &[usize],
        initial: Initial,
        norm: Norm,
    ) -> WeightId {
        let part = self.part;
        let name = name.into();
        self.step.weights.push(Weight { name, shape: shape.to_vec(), initial, norm, part, fixed: None });
        WeightId(self.step.weights.len() - 1)
    }

    /// A matrix that is not trained.
    pub fn fixed(&mut self, name: impl Into<String>, shape: &[usize], value: Vec<f64>) -> WeightId {
        let id = self.weight(name, shape, Initial::Constant(0.0));
        self.step.weights[id.0].fixed = Some(value);
        id
    }

    /// Weights from here on belong to the readout.
    pub fn begin_readout(&mut self) {
        self.part = Part::Readout;
    }

    /// A state; [`Builder::set_state`] says what it becomes.
    pub fn state(&mut self, name: impl Into<String>, len: usize, start: Start) -> (StateId, ValueId) {
        let id = StateId(self.step.states.len());
        self.step.states.push(State { name: name.into(), len, start, next: ValueId(0) });
        self.next.push(None);
        (id, self.push(Op::State(id), len))
    }

    /// What a state becomes. One value may be the next of one state only.
    pub fn set_state(&mut self, state: StateId, next: ValueId) {
        // A value that is itself a state or an input, or already some state's next, is copied: each state has a place
        // of its own.
        let is_elsewhere = matches!(self.step.nodes[next.0].op, Op::State(_) | Op::Input | Op::Previous);
        let taken = self.next.contains(&Some(next)) || is_elsewhere;
        let next = if taken { self.copy(next) } else { next };
        self.next[state.0] = Some(next);
    }

    fn copy(&mut self, value: ValueId) -> ValueId {
        let len = self.len_of(value);
        self.step.nodes.push(Node { op: Op::Scale(1.0, value), len });
        ValueId(self.step.nodes.len() - 1)
    }

    /// x⁽ᵗ⁾
    pub fn input(&mut self) -> ValueId {
        let len = self.step.input;
        self.push(Op::Input, len)
    }

    /// x⁽ᵗ⁻¹⁾, with x⁽⁰⁾ as given.
    pub fn previous(&mut self) -> ValueId {
        let len = self.step.input;
        self.push(Op::Previous, len)
    }

    /// x⁽⁰⁾
    pub fn start_previous(&mut self, start: Start) {
        self.step.previous = start;
    }

    /// A weight as a vector.
    pub fn vector(&mut self, weight: WeightId) -> ValueId {
        let len = self.step.weights[weight.0].len();
        self.push(Op::Vector(weight), len)
    }

    /// The row of a table for this step.
    pub fn row(&mut self, table: WeightId) -> ValueId {
        let weight = &self.step.weights[table.0];
        let rows = weight.shape.first().copied().unwrap_or(1).max(1);
        let len = weight.len() / rows;
        self.push(Op::Row(table), len)
    }

    /// b + Σ W x + Σ a
    pub fn affine(
        &mut self,
        terms: &[(Factor, ValueId)],
        bias: Option<WeightId>,
        add: &[ValueId],
    ) -> ValueId {
        let rows = terms.first().map(|(factor, _)| self.step.shape_of(*factor).0);
        let len = rows
            .or_else(|| bias.map(|b| self.step.weights[b.0].len()))
            .or_else(|| add.first().map(|a| self.len_of(*a)))
            .unwrap_or(0);
        if let ([], None, [one]) = (terms, bias, add) {
            return *one;
        }
        self.push(Op::Affine { terms: terms.to_vec(), bias, add: add.to_vec() }, len)
    }

    /// W x
    pub fn product(&mut self, weight: WeightId, x: ValueId) -> ValueId {
        self.affine(&[(Factor { weight, view: View::Plain }, x)], None, &[])
    }

    /// V(x) for a V of shape (i, K): `Σ_a x_a V[a]`
    pub fn select(&mut self, weight: WeightId, x: ValueId) -> ValueId {
        self.affine(&[(Factor { weight, view: View::Transposed }, x)], None, &[])
    }

    /// V(x) z for a V of shape (i, r, c): `Σ_a x_a V[a] z`
    pub fn operate(&mut self, weight: WeightId, x: ValueId, z: ValueId) -> ValueId {
        let outer = self.outer(x, z);
        self.affine(&[(Factor { weight, view: View::Stacked }, outer)], None, &[])
    }

    /// Σ a
    pub fn sum(&mut self, all: &[ValueId]) -> ValueId {
        self.affine(&[], None, all)
    }

    /// x ⊗ z
    pub fn outer(&mut self, x: ValueId, z: ValueId) -> ValueId {
        let len = self.len_of(x) * self.len_of(z);
        self.push(Op::Outer(x, z), len)
    }

    /// a ∘ b; a of length 1 multiplies every entry.
    pub fn mul(&mut self, a: ValueId, b: ValueId) -> ValueId {
        let len = self.len_of(b);
        self.push(Op::Mul(a, b), len)
    }

    /// c·a
    pub fn scale(&mut self, c: f64, a: ValueId) -> ValueId {
        let len = self.len_of(a);
        if c == 1.0 { a } else { self.push(Op::Scale(c, a), len) }
    }

    /// Σ_m g_m y_m
    pub fn mix(&mut self, gates: ValueId, items: &[ValueId]) -> ValueId {
        let len = items.first().map_or(0, |item| self.len_of(*item));
        self.push(Op::Mix { gates, items: items.to_vec() }, len)
    }

    /// An elementwise function.
    pub fn act(&mut self, act: Act, x: ValueId) -> ValueId {
        let len = self.len_of(x);
        if act == Act::Identity { x } else { self.push(Op::Act(act, x), len) }
    }

    /// Softmax over groups.
    pub fn softmax(&mut self, groups: Groups, x: ValueId) -> ValueId {
        let len = self.len_of(x);
        self.push(Op::Softmax(groups, x), len)
    }

    /// `len` entries from `start`.
    pub fn slice(&mut self, of: ValueId, start: usize, len: usize) -> ValueId {
        self.push(Op::Slice { of, start }, len)
    }

    /// A z for a computed matrix.
    pub fn apply(&mut self, matrix: ValueId, vector: ValueId) -> ValueId {
        let len = self.len_of(matrix).checked_div(self.len_of(vector)).unwrap_or(0);
        self.push(Op::Apply { matrix, vector }, len)
    }

    /// Σ_j q_j R^{p_j} v
    pub fn turn(&mut self, by: ValueId, address: ValueId, powers: &[i64]) -> ValueId {
        let len = self.len_of(address);
        self.push(Op::Turn { by, address, powers: powers.to_vec() }, len)
    }

    /// (v + ε)^γ over its sum
    pub fn sharpen(&mut self, address: ValueId, exponent: ValueId) -> ValueId {
        let len = self.len_of(address);
        self.push(Op::Sharpen { address, exponent }, len)
    }

    /// Mᵀ r
    pub fn read(&mut self, memory: ValueId, address: ValueId) -> ValueId {
        let len = self.len_of(memory).checked_div(self.len_of(address)).unwrap_or(0);
        self.push(Op::Read { memory, address }, len)
    }

    /// M − M ∘ (w eᵀ) + w aᵀ
    pub fn write(&mut self, memory: ValueId, address: ValueId, erase: ValueId, add: ValueId) -> ValueId {
        let len = self.len_of(memory);
        self.push(Op::Write { memory, address, erase, add }, len)
    }

    /// A value that reports show.
    pub fn report(&mut self, name: impl Into<String>, value: ValueId) {
        self.step.reports.push((name.into(), value));
    }

    /// The logits.
    pub fn logits(&mut self, value: ValueId) {
        self.step.logits = Some(value);
    }

    /// The step.
    ///
    /// # Errors
    /// `config` if a state has no next value, or a size is 0 or too large to compute with.
    pub fn finish(mut self) -> Result<Step> {
        for (state, next) in self.step.states.iter_mut().zip(&self.next) {
            state.next =
                next.ok_or_else(|| Refusal::config(format!("nothing is said of the next `{}`", state.name)))?;
        }
        let features = self.step.nodes.iter().map(|n| n.len).collect::<Vec<usize>>();
        let entries = self.step.weights.iter().map(Weight::len).collect::<Vec<usize>>();
        for (what, sizes, most) in [("numbers", features, MOST_FEATURES), ("weights", entries, MOST_WEIGHTS)]
        {
            if sizes.contains(&0) {
                return Err(Refusal::config("a size of the cell is 0"));
            }
            let total = sizes.iter().fold(0, |total: usize, size| total.saturating_add(*size));
            if total > most {
                return Err(Refusal::too_large(format!(
                    "one step of this cell has {total} {what}; at most {most} are computed with"
                )));
            }
        }
        Ok(self.step)
    }
}

/// The most numbers that a step computes: half a GB in f64, for a block of sequences.
pub(crate) const MOST_FEATURES: usize = 1 << 21;

/// The most weights.
const MOST_WEIGHTS: usize = 1 << 24;
