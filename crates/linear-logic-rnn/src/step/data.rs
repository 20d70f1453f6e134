//! The parts of a step.

use std::ops::Range;

use training::Initial;

/// A value of the step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ValueId(pub(crate) usize);

/// A weight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WeightId(pub(crate) usize);

/// A state that goes from step to step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StateId(pub(crate) usize);

macro_rules! index {
    ($($id:ident),+) => { $(impl $id {
        /// Its place among its kind.
        pub fn index(self) -> usize {
            self.0
        }
    })+ };
}
index!(ValueId, WeightId, StateId);

/// What a weight belongs to; the two are counted apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Part {
    Cell,
    Readout,
}

/// What is done to a weight before it is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Norm {
    /// Nothing.
    None,
    /// Elementwise hyperbolic tangent.
    Tanh,
    /// Softmax of every column of every matrix of a stack: shape (…, rows, columns).
    ColumnSoftmax,
}

/// A weight: a named tensor that all steps share.
#[derive(Debug, Clone, PartialEq)]
pub struct Weight {
    /// The name in documents and checkpoints.
    pub name: String,
    /// The shape, row-major.
    pub shape: Vec<usize>,
    /// How training begins.
    pub initial: Initial,
    /// Done to it before use.
    pub norm: Norm,
    /// What it belongs to.
    pub part: Part,
    /// Its value, if it is not trained.
    pub fixed: Option<Vec<f64>>,
}

impl Weight {
    /// The number of entries.
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// How a weight is read as a matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum View {
    /// (rows, columns), and what has further axes in front is one tall matrix.
    Plain,
    /// (columns, rows), turned over: a diagonal V of shape (i, K) is the matrix from x to V(x).
    Transposed,
    /// (a, rows, columns) as the wide matrix `[W₀ W₁ …]`: on x ⊗ z it is `Σ_a x_a W[a] z`.
    Stacked,
}

/// A weight, read as a matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Factor {
    /// The weight.
    pub weight: WeightId,
    /// The reading.
    pub view: View,
}

/// An elementwise function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Act {
    /// x
    Identity,
    /// max(x, 0), with derivative 0 at 0
    Relu,
    /// tanh x
    Tanh,
    /// The logistic function.
    Sigmoid,
}

/// What a softmax runs over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Groups {
    /// Runs of this many neighbours.
    Rows(usize),
    /// The same coordinate of this many blocks, which follow each other.
    Blocks(usize),
}

/// One operation. Lengths are numbers of features.
#[derive(Debug, Clone, PartialEq)]
pub enum Op {
    /// x⁽ᵗ⁾
    Input,
    /// x⁽ᵗ⁻¹⁾
    Previous,
    /// A state before the step.
    State(StateId),
    /// A weight as a vector.
    Vector(WeightId),
    /// Row (t − 1) mod T of a weight of shape (T, …).
    Row(WeightId),
    /// b + Σ W x + Σ a
    Affine {
        /// W, x
        terms: Vec<(Factor, ValueId)>,
        /// b
        bias: Option<WeightId>,
        /// a
        add: Vec<ValueId>,
    },
    /// x ⊗ z: feature a·len(z) + k is x_a z_k.
    Outer(ValueId, ValueId),
    /// Elementwise product; a first operand of length 1 multiplies every entry.
    Mul(ValueId, ValueId),
    /// c·x
    Scale(f64, ValueId),
    /// Σ_m g_m y_m with as many gates as items, or with one gate for each coordinate:
    /// `Σ_m g[m] ∘ y_m`.
    Mix {
        /// g, item by item
        gates: ValueId,
        /// y
        items: Vec<ValueId>,
    },
    /// Elementwise function.
    Act(Act, ValueId),
    /// Softmax over groups.
    Softmax(Groups, ValueId),
    /// Entries from `start`, as many as the value has.
    Slice {
        /// Of what.
        of: ValueId,
        /// From where.
        start: usize,
    },
    /// A z for a computed matrix A, row by row.
    Apply {
        /// A
        matrix: ValueId,
        /// z
        vector: ValueId,
    },
    /// Σ_j q_j R^{p_j} v on a ring of addresses, R^p e_j = e_{(j+p) mod N}.
    Turn {
        /// q
        by: ValueId,
        /// v
        address: ValueId,
        /// p
        powers: Vec<i64>,
    },
    /// (v_k + ε)^γ over its sum; ε = 10⁻⁶.
    Sharpen {
        /// v
        address: ValueId,
        /// γ, of length 1
        exponent: ValueId,
    },
    /// Mᵀ r for a memory of as many rows as r has entries.
    Read {
        /// M, row by row
        memory: ValueId,
        /// r
        address: ValueId,
    },
    /// M − M ∘ (w eᵀ) + w aᵀ
    Write {
        /// M, row by row
        memory: ValueId,
        /// w
        address: ValueId,
        /// e
        erase: ValueId,
        /// a
        add: ValueId,
    },
}

impl Op {
    /// The values that it uses.
    pub fn operands(&self) -> Vec<ValueId> {
        match self {
            Self::Input | Self::Previous | Self::State(_) | Self::Vector(_) | Self::Row(_) => Vec::new(),
            Self::Affine { terms, add, .. } => {
                terms.iter().map(|(_, x)| *x).chain(add.iter().copied()).collect()
            }
            Self::Outer(a, b) | Self::Mul(a, b) => vec![*a, *b],
            Self::Scale(_, a) | Self::Act(_, a) | Self::Softmax(_, a) | Self::Slice { of: a, .. } => vec![*a],
            Self::Mix { gates, items } => std::iter::once(*gates).chain(items.iter().copied()).collect(),
            Self::Apply { matrix, vector } => vec![*matrix, *vector],
            Self::Turn { by, address, .. } => vec![*by, *address],
            Self::Sharpen { address, exponent } => vec![*address, *exponent],
            Self::Read { memory, address } => vec![*memory, *address],
            Self::Write { memory, address, erase, add } => vec![*memory, *address, *erase, *add],
        }
    }
}

/// An operation with the length of what it makes.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// The operation.
    pub op: Op,
    /// The number of features.
    pub len: usize,
}

/// What stands before the first step.
#[derive(Debug, Clone, PartialEq)]
pub enum Start {
    /// Zeros.
    Zero,
    /// These numbers.
    Constant(Vec<f64>),
    /// A trained vector.
    Weight(WeightId),
    /// For the previous input: the first input.
    First,
}

/// A state: how it starts, and which value replaces it.
#[derive(Debug, Clone, PartialEq)]
pub struct State {
    /// The name in reports.
    pub name: String,
    /// The number of features.
    pub len: usize,
    /// Before the first step.
    pub start: Start,
    /// After a step.
    pub next: ValueId,
}

/// A whole step.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// The number of input features.
    pub input: usize,
    /// The weights.
    pub weights: Vec<Weight>,
    /// The operations, in order.
    pub nodes: Vec<Node>,
    /// The states; the first is h.
    pub states: Vec<State>,
    /// The previous input before the first step.
    pub previous: Start,
    /// Values that reports show, by name.
    pub reports: Vec<(String, ValueId)>,
    /// The logits, if there is a readout.
    pub logits: Option<ValueId>,
}

impl Step {
    /// The node of a value.
    pub fn node(&self, value: ValueId) -> &Node {
        &self.nodes[value.0]
    }

    /// The number of features of a value.
    pub fn len_of(&self, value: ValueId) -> usize {
        self.nodes[value.0].len
    }

    /// Rows and columns of a factor.
    pub fn shape_of(&self, factor: Factor) -> (usize, usize) {
        let shape = &self.weights[factor.weight.0].shape;
        let last = shape.last().copied().unwrap_or(1);
        let front = shape.iter().product::<usize>().checked_div(last).unwrap_or(0);
        match factor.view {
            View::Plain => (front, last),
            View::Transposed => (last, front),
            View::Stacked => {
                let rows = shape.get(shape.len().wrapping_sub(2)).copied().unwrap_or(1);
                (rows, last * front.checked_div(rows).unwrap_or(0))
            }
        }
    }

    /// Where an entry of a factor stands in its weight.
    pub fn entry_of(&self, factor: Factor, row: usize, column: usize) -> usize {
        let (rows, columns) = self.shape_of(factor);
        let last = self.weights[factor.weight.0].shape.last().copied().unwrap_or(1).max(1);
        match factor.view {
            View::Plain => row * columns + column,
            View::Transposed => column * rows + row,
            View::Stacked => (column / last * rows + row) * last + column % last,
        }
    }

    /// Where the numbers of a state stand among those of all states, one state after another.
    pub fn place_of(&self, state: StateId) -> Range<usize> {
        let before: usize = self.states[..state.0].iter().map(|state| state.len).sum();
        before..before + self.states[state.0].len
    }

    /// Whether x⁽ᵗ⁻¹⁾ is read.
    pub fn reads_previous(&self) -> bool {
        self.nodes.iter().any(|node| node.op == Op::Previous)
    }

    /// All weights, one by one, before their norms; `theta` holds those that are trained.
    pub fn entries(&self, theta: &[f64]) -> Vec<Vec<f64>> {
        let mut rest = theta.iter().copied();
        let of = |weight: &Weight| match &weight.fixed {
            Some(entries) => entries.clone(),
            None => rest.by_ref().take(weight.len()).collect(),
        };
        self.weights.iter().map(of).collect()
    }

    /// The weights that training changes.
    pub fn trained(&self) -> impl Iterator<Item = (WeightId, &Weight)> {
        self.weights.iter().enumerate().filter(|(_, w)| w.fixed.is_none()).map(|(at, w)| (WeightId(at), w))
    }

    /// The number of trained numbers of a part.
    pub fn count(&self, part: Part) -> usize {
        self.trained().filter(|(_, w)| w.part == part).map(|(_, w)| w.len()).sum()
    }
}
