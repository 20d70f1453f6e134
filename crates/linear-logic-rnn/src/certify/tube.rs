//! Sets of states through a step, in plain arithmetic: what the search computes with.
//!
//! A set is a zonotope with a remainder (affine arithmetic, Comba & Stolfi 1993): numbers that depend on each other through
//! symbols that they share. A plain box forgets that at every step, and the image of a box under a matrix is no box: after
//! a few steps nothing is left of what the cell contracts.

use std::cell::Cell as Counter;
use std::sync::Arc;

use super::certificate::refused;
use crate::error::Result;
use crate::step::{Act, Factor, Groups, Norm, Op, Start, Step, ValueId};

/// Numbers that are not known exactly: number i is `mids[i] + Σ_k coefs[i][k] s_k`, up to `rems[i]`, for some s in [−1, 1].
#[derive(Debug, Clone, Default)]
pub(super) struct Bundle {
    pub(super) mids: Vec<f64>,
    pub(super) rems: Vec<f64>,
    /// [number, symbol]
    pub(super) coefs: Vec<f64>,
    pub(super) symbols: usize,
}

impl Bundle {
    /// Zeros.
    fn zeros(len: usize, symbols: usize) -> Self {
        Self { mids: vec![0.0; len], rems: vec![0.0; len], coefs: vec![0.0; len * symbols], symbols }
    }

    /// Known numbers.
    pub(super) fn point(mids: Vec<f64>) -> Self {
        Self { rems: vec![0.0; mids.len()], coefs: Vec::new(), symbols: 0, mids }
    }

    /// A box, with a symbol for every number.
    pub(super) fn of_box(low: &[f64], high: &[f64]) -> Self {
        let n = low.len();
        let mut set = Self::zeros(n, n);
        for (at, (low, high)) in low.iter().zip(high).enumerate() {
            set.mids[at] = low.midpoint(*high);
            set.coefs[at * n + at] = (high - low) / 2.0;
        }
        set
    }

    fn row(&self, at: usize) -> &[f64] {
        &self.coefs[at * self.symbols..(at + 1) * self.symbols]
    }

    /// How far number `at` may be from its middle.
    pub(super) fn radius(&self, at: usize) -> f64 {
        self.rems[at] + self.row(at).iter().map(|c| c.abs()).sum::<f64>()
    }

    fn is_zero(&self, at: usize) -> bool {
        self.mids[at] == 0.0 && self.rems[at] == 0.0 && self.row(at).iter().all(|c| *c == 0.0)
    }

    /// Adds `w` times number `from` of another to number `to`.
    fn add(&mut self, to: usize, w: f64, other: &Self, from: usize) {
        self.mids[to] += w * other.mids[from];
        self.rems[to] += w.abs() * other.rems[from];
        let row = &mut self.coefs[to * self.symbols..(to + 1) * self.symbols];
        for (c, x) in row.iter_mut().zip(other.row(from)) {
            *c += w * x;
        }
    }

    /// Adds the product of two numbers.
    fn add_product(&mut self, to: usize, (a, i): (&Self, usize), (b, j): (&Self, usize)) {
        let (x, y) = (a.mids[i], b.mids[j]);
        self.add(to, x, b, j);
        self.add(to, y, a, i);
        self.mids[to] -= x * y;
        self.rems[to] += a.radius(i) * b.radius(j);
    }

    /// Number `to` becomes a function of itself.
    fn apply(&mut self, to: usize, function: Function) {
        let (radius, mid) = (self.radius(to), self.mids[to]);
        let Line { slope, value, gap } = function.line(mid, radius);
        self.mids[to] = value;
        self.rems[to] = slope.abs() * self.rems[to] + gap;
        self.coefs[to * self.symbols..(to + 1) * self.symbols].iter_mut().for_each(|c| *c *= slope);
    }

    /// The same with more symbols; each number's remainder becomes one of its own. Of many symbols the smallest are
    /// forgotten before that, which the checker does not do.
    fn renewed(&self) -> Self {
        if self.symbols > MOST_SYMBOLS * self.mids.len() {
            return self.forgotten().renewed();
        }
        let (n, symbols) = (self.mids.len(), self.symbols + self.mids.len());
        let mut set = Self { mids: self.mids.clone(), ..Self::zeros(n, symbols) };
        for at in 0..n {
            set.coefs[at * symbols..at * symbols + self.symbols].copy_from_slice(self.row(at));
            set.coefs[at * symbols + self.symbols + at] = self.rems[at];
        }
        set
    }
}

/// The most symbols that are kept, for each number, and how many are left when some are forgotten.
const MOST_SYMBOLS: usize = 8;
const KEPT_SYMBOLS: usize = 4;

impl Bundle {
    /// Without its smallest symbols: what they do goes to the remainders.
    fn forgotten(&self) -> Self {
        let n = self.mids.len();
        let size = |k: usize| (0..n).map(|at| self.coefs[at * self.symbols + k].abs()).sum::<f64>();
        let mut order: Vec<(f64, usize)> = (0..self.symbols).map(|k| (size(k), k)).collect();
        order.sort_by(|a, b| b.0.total_cmp(&a.0));
        let kept = (KEPT_SYMBOLS * n).min(self.symbols);
        let mut set = Self { mids: self.mids.clone(), rems: self.rems.clone(), ..Self::zeros(n, kept) };
        for (place, (_, k)) in order.iter().enumerate() {
            for at in 0..n {
                let coef = self.coefs[at * self.symbols + k];
                if place < kept {
                    set.coefs[at * kept + place] = coef;
                } else {
                    set.rems[at] += coef.abs();
                }
            }
        }
        set
    }
}

/// The functions of the operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Function {
    Relu,
    Tanh,
    Sigmoid,
    Exp,
    Inverse,
}

/// f(m + d) is `value + slope·d` up to `gap`.
struct Line {
    slope: f64,
    value: f64,
    gap: f64,
}

/// What the checker adds for the functions of the standard library, and as much again.
const FUNCTION: f64 = 1e-13;

impl Function {
    fn value(self, x: f64) -> f64 {
        match self {
            Self::Relu => x.max(0.0),
            Self::Tanh => x.tanh(),
            Self::Sigmoid => 1.0 / (1.0 + (-x).exp()),
            Self::Exp => x.exp(),
            // What is inverted is 1 at least; below, bounds go on straight.
            Self::Inverse => {
                if x < 1.0 {
                    2.0 - x
                } else {
                    1.0 / x
                }
            }
        }
    }

    fn slope(self, x: f64) -> f64 {
        match self {
            Self::Relu => f64::from(u8::from(x > 0.0)),
            Self::Tanh => 1.0 - x.tanh().powi(2),
            Self::Sigmoid => self.value(x) * self.value(-x),
            Self::Exp => x.exp(),
            Self::Inverse => -1.0 / (x * x).max(1.0),
        }
    }

    /// Whether it is convex everywhere; the others bend one way on each side of 0.
    fn bends_once(self) -> bool {
        matches!(self, Self::Exp | Self::Inverse | Self::Relu)
    }

    /// The chord where the function bends one way only, and else by the mean value theorem.
    fn line(self, mid: f64, radius: f64) -> Line {
        let (low, high, value) = (mid - radius, mid + radius, self.value(mid));
        let rounding = if self == Self::Relu { 0.0 } else { FUNCTION * (1.0 + value.abs()) };
        if radius == 0.0 {
            return Line { slope: self.slope(mid), value, gap: rounding };
        }
        if self.bends_once() || low >= 0.0 || high <= 0.0 {
            let slope = (self.value(high) - self.value(low)) / (high - low);
            let ends = (self.value(low) + slope * radius, self.value(high) - slope * radius);
            let tangent = (self.slope(mid) - slope).abs() * radius;
            let least = ends.0.min(ends.1).min(value - tangent);
            let most = ends.0.max(ends.1).max(value + tangent);
            return Line { slope, value: least.midpoint(most), gap: (most - least) / 2.0 + rounding };
        }
        let ends = (self.slope(low), self.slope(high));
        let (least, most) = (ends.0.min(ends.1), self.slope(0.0).max(ends.0).max(ends.1));
        Line { slope: least.midpoint(most), value, gap: (most - least) / 2.0 * radius + rounding }
    }
}

/// A step with its weights.
#[derive(Debug)]
pub(super) struct Tube {
    step: Arc<Step>,
    weights: Vec<Vec<f64>>,
    /// Whether the step reads the symbol before.
    pub(super) reads_previous: bool,
    work: Counter<u64>,
}

/// After a symbol.
pub(super) struct After {
    /// All states of the step, one after another.
    pub(super) state: Bundle,
    pub(super) logits: Bundle,
}

impl Tube {
    /// A step; `theta` holds its trained weights. Refused: steps that depend on time, those with rings, and those without a
    /// readout.
    pub(super) fn new(step: &Arc<Step>, theta: &[f32]) -> Result<Self> {
        for node in &step.nodes {
            let what = match node.op {
                Op::Row(_) => "a table of gates: what it does depends on the number of the step",
                Op::Turn { .. } | Op::Sharpen { .. } | Op::Read { .. } | Op::Write { .. } => "rings",
                _ => continue,
            };
            return Err(refused(format!("this cell has {what}; cells without are certified")));
        }
        if step.logits.is_none() {
            return Err(refused("this cell has no readout"));
        }
        if let Some(weight) = step.weights.iter().find(|weight| weight.norm != Norm::None) {
            return Err(refused(format!(
                "`{}` is normed; only weights as they are are certified",
                weight.name
            )));
        }
        let weights = step.entries(&theta.iter().map(|w| f64::from(*w)).collect::<Vec<f64>>());
        Ok(Self {
            reads_previous: step.reads_previous(),
            step: Arc::clone(step),
            weights,
            work: Counter::new(0),
        })
    }

    /// Multiplications so far.
    pub(super) fn work(&self) -> u64 {
        self.work.get()
    }

    /// What stands before the first step.
    pub(super) fn start(&self) -> Vec<f64> {
        let of = |(start, len): (&Start, usize)| self.given(start, len, None);
        self.step.states.iter().map(|state| (&state.start, state.len)).flat_map(of).collect()
    }

    fn given(&self, start: &Start, len: usize, letter: Option<u32>) -> Vec<f64> {
        match start {
            Start::Zero => vec![0.0; len],
            Start::Constant(all) => all.clone(),
            Start::Weight(weight) => self.weights[weight.index()].clone(),
            Start::First => one_hot(len, letter),
        }
    }

    /// One step from a set, by a symbol. `last` is the symbol before; before the first there is none.
    pub(super) fn step(&self, state: &Bundle, last: Option<u32>, letter: u32) -> After {
        let state = state.renewed();
        let symbols = state.symbols;
        let mut values: Vec<Bundle> = Vec::with_capacity(self.step.nodes.len());
        for node in &self.step.nodes {
            let value = |id: &ValueId| &values[id.index()];
            let mut to = Bundle::zeros(node.len, symbols);
            match &node.op {
                Op::Input => to.mids = one_hot(node.len, Some(letter)),
                Op::Previous => {
                    to.mids = match last {
                        Some(_) => one_hot(node.len, last),
                        None => self.given(&self.step.previous, node.len, Some(letter)),
                    };
                }
                Op::State(id) => {
                    let place = self.step.place_of(*id);
                    to.mids.copy_from_slice(&state.mids[place.clone()]);
                    to.coefs.copy_from_slice(&state.coefs[place.start * symbols..place.end * symbols]);
                }
                Op::Vector(weight) => to.mids.copy_from_slice(&self.weights[weight.index()]),
                Op::Affine { terms, bias, add } => {
                    if let Some(bias) = bias {
                        to.mids.copy_from_slice(&self.weights[bias.index()]);
                    }
                    for (factor, x) in terms {
                        self.product(&mut to, *factor, value(x));
                    }
                    for x in add {
                        (0..node.len).for_each(|at| to.add(at, 1.0, value(x), at));
                    }
                }
                Op::Outer(x, z) => {
                    let (x, z) = (value(x), value(z));
                    let len = z.mids.len();
                    for a in (0..x.mids.len()).filter(|a| !x.is_zero(*a)) {
                        (0..len).for_each(|k| to.add_product(a * len + k, (x, a), (z, k)));
                    }
                }
                Op::Mul(a, b) => {
                    let (a, b) = (value(a), value(b));
                    let is_scalar = a.mids.len() == 1;
                    let at = |k: usize| if is_scalar { 0 } else { k };
                    (0..node.len).for_each(|k| to.add_product(k, (a, at(k)), (b, k)));
                }
                Op::Scale(c, x) => (0..node.len).for_each(|at| to.add(at, *c, value(x), at)),
                Op::Mix { gates, items } => {
                    let gates = value(gates);
                    let is_scalar = gates.mids.len() == items.len();
                    for (m, item) in items.iter().enumerate() {
                        let gate = |k: usize| if is_scalar { m } else { m * node.len + k };
                        (0..node.len).for_each(|k| to.add_product(k, (gates, gate(k)), (value(item), k)));
                    }
                }
                Op::Act(act, x) => {
                    to = value(x).clone();
                    let function = match act {
                        Act::Identity => None,
                        Act::Relu => Some(Function::Relu),
                        Act::Tanh => Some(Function::Tanh),
                        Act::Sigmoid => Some(Function::Sigmoid),
                    };
                    if let Some(function) = function {
                        (0..node.len).for_each(|at| to.apply(at, function));
                    }
                }
                Op::Softmax(groups, x) => softmax(&mut to, *groups, value(x)),
                Op::Slice { of, start } => {
                    (0..node.len).for_each(|at| to.add(at, 1.0, value(of), start + at))
                }
                Op::Apply { matrix, vector } => {
                    let (matrix, vector) = (value(matrix), value(vector));
                    let len = vector.mids.len();
                    for at in 0..node.len {
                        (0..len).for_each(|k| to.add_product(at, (matrix, at * len + k), (vector, k)));
                    }
                }
                // `new` has refused them.
                Op::Row(_) | Op::Turn { .. } | Op::Sharpen { .. } | Op::Read { .. } | Op::Write { .. } => {}
            }
            self.work.set(self.work.get() + (node.len * (symbols + 8)) as u64);
            values.push(to);
        }
        let mut after = Bundle { symbols, ..Bundle::default() };
        for part in self.step.states.iter().map(|next| &values[next.next.index()]) {
            after.mids.extend(&part.mids);
            after.rems.extend(&part.rems);
            after.coefs.extend(&part.coefs);
        }
        let logits = self.step.logits.map(|id| values[id.index()].clone()).unwrap_or_default();
        After { state: after, logits }
    }

    /// Adds W x.
    fn product(&self, to: &mut Bundle, factor: Factor, x: &Bundle) {
        let (rows, columns) = self.step.shape_of(factor);
        let weight = &self.weights[factor.weight.index()];
        for c in (0..columns).filter(|c| !x.is_zero(*c)) {
            for r in 0..rows {
                to.add(r, weight[self.step.entry_of(factor, r, c)], x, c);
            }
            self.work.set(self.work.get() + (rows * (to.symbols + 2)) as u64);
        }
    }
}

/// Softmax is 1 / Σ_j e^(z_j − z_i): in differences what is common to both is gone.
fn softmax(to: &mut Bundle, groups: Groups, z: &Bundle) {
    let len = z.mids.len();
    let (size, apart, beside) = match groups {
        Groups::Rows(n) => (n, 1, n),
        Groups::Blocks(n) => (n, len / n.max(1), 1),
    };
    for group in 0..len / size.max(1) {
        let at = |j: usize| group * beside + j * apart;
        for i in 0..size {
            let mut sum = Bundle::zeros(1, z.symbols);
            sum.mids[0] = 1.0;
            for j in (0..size).filter(|j| *j != i) {
                let mut one = Bundle::zeros(1, z.symbols);
                one.add(0, 1.0, z, at(j));
                one.add(0, -1.0, z, at(i));
                one.apply(0, Function::Exp);
                sum.add(0, 1.0, &one, 0);
            }
            sum.apply(0, Function::Inverse);
            to.add(at(i), 1.0, &sum, 0);
        }
    }
}

fn one_hot(len: usize, letter: Option<u32>) -> Vec<f64> {
    (0..len).map(|at| f64::from(u8::from(letter.is_some_and(|letter| letter as usize == at)))).collect()
}
