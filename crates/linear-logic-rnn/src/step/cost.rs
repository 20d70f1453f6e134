//! What a step costs, and what polynomial it is: both are read off its operations.

use super::data::{Act, Op, Part, Step, ValueId};

impl Step {
    /// The multiplications of one step of one sequence, each with the addition that takes it up.
    ///
    /// A matrix of r rows and c columns costs r·c at a vector, whether its entries are weights or computed, and whether
    /// the input is one-hot or not; x ⊗ z, a product of entries and a multiple cost one for each entry. Sums and biases
    /// that nothing multiplies, functions (relu, tanh, the logistic one, exp, ln) and divisions are not counted, and
    /// neither is what is done once for all steps: the norms of weights. An operation belongs to the readout if a
    /// weight of the readout is below it.
    pub fn multiply_adds(&self, part: Part) -> usize {
        let costs = self.nodes.iter().zip(self.parts()).filter(|(_, of)| *of == part);
        costs.map(|(node, _)| self.cost(&node.op, node.len)).sum()
    }

    fn parts(&self) -> Vec<Part> {
        let mut parts: Vec<Part> = Vec::with_capacity(self.nodes.len());
        for node in &self.nodes {
            let weights = match &node.op {
                Op::Vector(weight) | Op::Row(weight) => vec![*weight],
                Op::Affine { terms, bias, .. } => terms.iter().map(|(f, _)| f.weight).chain(*bias).collect(),
                _ => Vec::new(),
            };
            let is_readout = weights.iter().any(|w| self.weights[w.0].part == Part::Readout)
                || node.op.operands().iter().any(|v| parts[v.0] == Part::Readout);
            parts.push(if is_readout { Part::Readout } else { Part::Cell });
        }
        parts
    }

    fn cost(&self, op: &Op, len: usize) -> usize {
        match op {
            Op::Input | Op::Previous | Op::State(_) | Op::Vector(_) | Op::Row(_) => 0,
            Op::Act(..) | Op::Softmax(..) | Op::Slice { .. } => 0,
            Op::Affine { terms, .. } => {
                let sizes = terms.iter().map(|(factor, _)| self.shape_of(*factor));
                sizes.map(|(rows, columns)| rows * columns).sum()
            }
            Op::Outer(..) | Op::Mul(..) | Op::Scale(..) => len,
            Op::Mix { items, .. } => items.len() * len,
            Op::Apply { matrix, .. } => self.len_of(*matrix),
            Op::Turn { powers, .. } => powers.len() * len,
            // γ ln(v + ε)
            Op::Sharpen { .. } => len,
            Op::Read { memory, .. } => self.len_of(*memory),
            // M + w (a − M e)
            Op::Write { .. } => 2 * len,
        }
    }

    /// A bound on the degree of the next states as polynomials in the states, weights and inputs held fast; `None` if a
    /// function that is no polynomial stands between. Beyond 2⁶⁴ it is `u64::MAX`.
    pub fn degree_in_state(&self) -> Option<u64> {
        let degrees = self.degrees(|operand| if operand == Some(0) { Some(0) } else { None });
        self.states.iter().map(|state| degrees[state.next.0]).try_fold(0, |most, d| Some(d?.max(most)))
    }

    /// A bound on the degree of everything that the next states are made of, as polynomials in the states and in the
    /// results of functions (relu, tanh, softmax, …), which are variables of their own here.
    pub fn degree_between_functions(&self) -> u64 {
        let degrees = self.degrees(|operand| Some(operand.unwrap_or(1).min(1)));
        let mut needed: Vec<bool> = vec![false; self.nodes.len()];
        self.states.iter().for_each(|state| needed[state.next.0] = true);
        let mut most = 0;
        for at in (0..self.nodes.len()).rev() {
            if needed[at] {
                most = most.max(degrees[at].unwrap_or(0));
                self.nodes[at].op.operands().iter().for_each(|operand| needed[operand.0] = true);
            }
        }
        most
    }

    /// For each value a degree; `function` says that of a function's result from that of what it is taken of.
    fn degrees(&self, function: impl Fn(Option<u64>) -> Option<u64>) -> Vec<Option<u64>> {
        let mut known: Vec<Option<u64>> = Vec::with_capacity(self.nodes.len());
        for node in &self.nodes {
            let of = |value: &ValueId| known[value.0];
            let degree = match &node.op {
                Op::Input | Op::Previous | Op::Vector(_) | Op::Row(_) => Some(0),
                Op::State(_) => Some(1),
                Op::Affine { terms, add, .. } => greatest(terms.iter().map(|(_, x)| x).chain(add).map(of)),
                Op::Outer(a, b) | Op::Mul(a, b) => product(of(a), of(b)),
                Op::Turn { by: a, address: b, .. } => product(of(a), of(b)),
                Op::Apply { matrix: a, vector: b } | Op::Read { memory: a, address: b } => {
                    product(of(a), of(b))
                }
                Op::Mix { gates, items } => product(of(gates), greatest(items.iter().map(of))),
                Op::Scale(_, x) | Op::Act(Act::Identity, x) | Op::Slice { of: x, .. } => of(x),
                Op::Act(_, x) | Op::Softmax(_, x) => function(of(x)),
                Op::Sharpen { address, exponent } => function(greatest([of(address), of(exponent)])),
                Op::Write { memory, address, erase, add } => greatest([
                    product(of(memory), product(of(address), of(erase))),
                    product(of(address), of(add)),
                ]),
            };
            known.push(degree);
        }
        known
    }
}

/// That of a product.
fn product(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    Some(a?.saturating_add(b?))
}

/// That of a sum.
fn greatest(all: impl IntoIterator<Item = Option<u64>>) -> Option<u64> {
    all.into_iter().try_fold(0, |most: u64, degree| Some(most.max(degree?)))
}
