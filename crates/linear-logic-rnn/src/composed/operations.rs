//! One step of tensors [batch, features], operation by operation. Every operation is one of those whose gradient in
//! candle is right.

use candle_core::{Result, Tensor, bail};
use training::composed::{matmul, softmax};

use crate::step::{Act, Factor, Groups, Norm, Op, Step, ValueId, View, WeightId};

/// What stands before a step, and its input.
#[derive(Debug, Clone)]
pub(super) struct Before {
    pub(super) states: Vec<Tensor>,
    pub(super) previous: Tensor,
    pub(super) input: Tensor,
}

/// The values of a step.
#[derive(Debug)]
pub(super) struct Values(Vec<Tensor>);

impl Values {
    pub(super) fn get(&self, value: ValueId) -> Result<&Tensor> {
        found(&self.0, value.index())
    }
}

fn found(all: &[Tensor], at: usize) -> Result<&Tensor> {
    match all.get(at) {
        Some(tensor) => Ok(tensor),
        None => bail!("the step uses number {at} of {}", all.len()),
    }
}

/// All values of step `time` (from 0). `weights` are those after their norms.
pub(super) fn run(step: &Step, weights: &[Tensor], before: &Before, time: usize) -> Result<Values> {
    let context = Context { step, weights, before, time, batch: before.input.dim(0)? };
    let mut values = Values(Vec::with_capacity(step.nodes.len()));
    for node in &step.nodes {
        let value = context.value(&node.op, node.len, &values)?;
        values.0.push(value);
    }
    Ok(values)
}

struct Context<'a> {
    step: &'a Step,
    weights: &'a [Tensor],
    before: &'a Before,
    time: usize,
    batch: usize,
}

impl Context<'_> {
    fn value(&self, op: &Op, len: usize, values: &Values) -> Result<Tensor> {
        let get = |value: &ValueId| values.get(*value);
        match op {
            Op::Input => Ok(self.before.input.clone()),
            Op::Previous => Ok(self.before.previous.clone()),
            Op::State(state) => found(&self.before.states, state.index()).cloned(),
            Op::Vector(weight) => self.spread(&self.weight(*weight)?.reshape((1, len))?),
            Op::Row(weight) => {
                let table = self.weight(*weight)?;
                let rows = table.dim(0)?.max(1);
                self.spread(&table.reshape((rows, len))?.narrow(0, self.time % rows, 1)?)
            }
            Op::Affine { terms, bias, add } => {
                let mut sum = Tensor::zeros((self.batch, len), self.before.input.dtype(), self.device())?;
                if let Some(bias) = bias {
                    sum = sum.broadcast_add(&self.weight(*bias)?.reshape((1, len))?)?;
                }
                for (factor, x) in terms {
                    sum = (sum + matmul(get(x)?, &self.transposed(*factor)?)?)?; // [batch, rows]
                }
                for x in add {
                    sum = (sum + get(x)?)?;
                }
                Ok(sum)
            }
            Op::Outer(x, z) => {
                let all = get(x)?.unsqueeze(2)?.broadcast_mul(&get(z)?.unsqueeze(1)?)?; // [batch, x, z]
                all.reshape((self.batch, len))
            }
            Op::Mul(a, b) => get(a)?.broadcast_mul(get(b)?),
            Op::Scale(c, x) => get(x)? * *c,
            Op::Mix { gates, items } => {
                let mut sum = Tensor::zeros((self.batch, len), self.before.input.dtype(), self.device())?;
                let gates = get(gates)?;
                let each = gates.dim(1)? / items.len().max(1);
                for (at, item) in items.iter().enumerate() {
                    sum = (sum + gates.narrow(1, at * each, each)?.broadcast_mul(get(item)?)?)?;
                }
                Ok(sum)
            }
            Op::Act(act, x) => activated(*act, get(x)?),
            Op::Softmax(groups, x) => self.softmax(*groups, get(x)?),
            Op::Slice { of, start } => get(of)?.narrow(1, *start, len),
            Op::Apply { matrix, vector } => {
                let z = get(vector)?.unsqueeze(1)?; // [batch, 1, columns]
                let matrix = get(matrix)?.reshape((self.batch, len, z.dim(2)?))?;
                matrix.broadcast_mul(&z)?.sum(2)
            }
            Op::Turn { by, address, powers } => {
                let (q, v) = (get(by)?, get(address)?);
                let mut sum = v.zeros_like()?;
                for (at, power) in powers.iter().enumerate() {
                    let shift = power.rem_euclid(len as i64) as usize;
                    let turned = if shift == 0 {
                        v.clone()
                    } else {
                        Tensor::cat(&[v.narrow(1, len - shift, shift)?, v.narrow(1, 0, len - shift)?], 1)?
                    };
                    sum = (sum + q.narrow(1, at, 1)?.broadcast_mul(&turned)?)?;
                }
                Ok(sum)
            }
            Op::Sharpen { address, exponent } => {
                let logs = (get(address)? + 1e-6)?.log()?.broadcast_mul(get(exponent)?)?;
                // The maximum changes nothing but the range of what is added, so it has no gradient.
                let powers = logs.broadcast_sub(&logs.detach().max_keepdim(1)?)?.exp()?;
                powers.broadcast_div(&powers.sum_keepdim(1)?)
            }
            Op::Read { memory, address } => {
                let r = get(address)?.unsqueeze(2)?; // [batch, addresses, 1]
                self.memory(get(memory)?, &r)?.broadcast_mul(&r)?.sum(1)
            }
            Op::Write { memory, address, erase, add } => {
                let w = get(address)?.unsqueeze(2)?; // [batch, addresses, 1]
                let m = self.memory(get(memory)?, &w)?;
                let erased = (&m * w.broadcast_mul(&get(erase)?.unsqueeze(1)?)?)?;
                let added = w.broadcast_mul(&get(add)?.unsqueeze(1)?)?;
                ((m - erased)? + added)?.reshape((self.batch, len))
            }
        }
    }

    fn device(&self) -> &candle_core::Device {
        self.before.input.device()
    }

    fn weight(&self, weight: WeightId) -> Result<&Tensor> {
        found(self.weights, weight.index())
    }

    /// One row for every sequence.
    fn spread(&self, row: &Tensor) -> Result<Tensor> {
        row.broadcast_as((self.batch, row.dim(1)?))?.contiguous()
    }

    /// The matrix of a factor, turned over: [columns, rows].
    fn transposed(&self, factor: Factor) -> Result<Tensor> {
        let weight = self.weight(factor.weight)?;
        let (rows, columns) = self.step.shape_of(factor);
        match factor.view {
            View::Plain => weight.reshape((rows, columns))?.t(),
            View::Transposed => weight.reshape((columns, rows)),
            View::Stacked => {
                let last = weight.dims().last().copied().unwrap_or(1).max(1);
                let stack = weight.reshape((columns / last, rows, last))?;
                stack.permute((0, 2, 1))?.contiguous()?.reshape((columns, rows)) // [a · last, rows]
            }
        }
    }

    fn softmax(&self, groups: Groups, x: &Tensor) -> Result<Tensor> {
        let len = x.dim(1)?;
        match groups {
            Groups::Rows(n) => softmax(&x.reshape((self.batch, len / n, n))?)?.reshape((self.batch, len)),
            Groups::Blocks(n) => {
                let blocks = x.reshape((self.batch, n, len / n))?.transpose(1, 2)?.contiguous()?;
                softmax(&blocks)?.transpose(1, 2)?.contiguous()?.reshape((self.batch, len))
            }
        }
    }

    /// A memory of as many rows as there are addresses: [batch, addresses, content].
    fn memory(&self, memory: &Tensor, addresses: &Tensor) -> Result<Tensor> {
        let rows = addresses.dim(1)?;
        memory.reshape((self.batch, rows, memory.dim(1)? / rows.max(1)))
    }
}

fn activated(act: Act, x: &Tensor) -> Result<Tensor> {
    match act {
        Act::Identity => Ok(x.clone()),
        // candle's own has the slope 1 at 0, and hides NaN.
        Act::Relu => x.le(0.0)?.where_cond(&x.zeros_like()?, x),
        Act::Tanh => x.tanh(),
        // ½(1 + tanh ½x): nothing overflows, neither forward nor backward.
        Act::Sigmoid => ((x * 0.5)?.tanh()? + 1.0)? * 0.5,
    }
}

/// A weight as it is used.
pub(super) fn normed(norm: Norm, weight: &Tensor) -> Result<Tensor> {
    match norm {
        Norm::None => Ok(weight.clone()),
        Norm::Tanh => weight.tanh(),
        Norm::ColumnSoftmax => {
            let rank = weight.rank();
            if rank < 2 {
                return softmax(weight);
            }
            let turned = weight.transpose(rank - 2, rank - 1)?.contiguous()?;
            softmax(&turned)?.transpose(rank - 2, rank - 1)?.contiguous()
        }
    }
}
