//! Where conditions hold: blocks that are present there.

use super::scope::Scope;
use crate::ast::Comparison;
use crate::error::Result;
use crate::kernels::{Binary, Precision, volume};
use crate::linear::linear;
use crate::program::{Guard, IndexFn, Operation};
use crate::store::block::{Block, Dim, MANY, binary, compared, joint, union};
use crate::store::condition::{Condition, ONE, distinct, holds_const, with_own};
use crate::store::machine::{Context, Machine, indices_of};
use crate::store::plan::{Source, Thing};
use crate::value::Const;

impl Machine {
    /// 1, present where a condition holds.
    pub(crate) fn condition(&mut self, condition: Condition<'_>, context: &Context) -> Result<Block> {
        let streamed = std::mem::take(&mut self.streamed);
        match condition {
            Condition::Guard(Guard::Read(read)) => Machine::holds(self, read, context),
            Condition::Present(read) => Machine::holds(self, read, context),
            Condition::Listed(_) => Ok(Block::scalar(1.0)),
            Condition::Guard(Guard::Not(read)) | Condition::Missing(read) => {
                Ok(Machine::holds(self, read, context)?.complement())
            }
            Condition::Guard(Guard::CompareIndex(sign, a, b)) => {
                self.compare_index((*sign, a, b), context, streamed)
            }
            Condition::Guard(Guard::Bind(index, function)) => {
                let compared = (Comparison::Equal, &IndexFn::Index(*index), function);
                self.compare_index(compared, context, streamed)
            }
            Condition::Guard(Guard::Compare(sign, a, b)) => {
                let (a, b) = (self.expr(a, context)?, self.expr(b, context)?);
                if !streamed {
                    self.reserve_union(&[&a, &b])?;
                }
                Ok(compared(a, b, *sign))
            }
            Condition::Some(when) => {
                // What the guards stand in has their number itself.
                let (node, own) = (!when.node.number(), with_own(when).map(Condition::Guard).collect());
                let scope = Scope::new(node, &when.exists, own, &ONE, Operation::Max);
                self.nested(&scope, context)
            }
        }
    }

    /// A comparison of indices: made once for the ranges and the table at hand, or, over many entries, described.
    fn compare_index(
        &mut self,
        (sign, a, b): (Comparison, &IndexFn, &IndexFn),
        context: &Context,
        streamed: bool,
    ) -> Result<Block> {
        if let Some(block) = self.compared_later(sign, a, b, context)? {
            if !streamed {
                self.reserve(block.len())?;
            }
            return Ok(block);
        }
        let indices = distinct([indices_of(a), indices_of(b)].concat());
        let next = self.number();
        let place = *self.comparisons.entry((sign, a.clone(), b.clone())).or_insert(next);
        let key = context.key((place, 7), &indices);
        if let Some(Thing::Block(block)) = self.recall(&key) {
            return Ok(block.clone());
        }
        let block = self.compared(sign, a, b, context)?;
        if key.fixed.is_empty() {
            let stamps = self.stamps(indices.into_iter().map(Source::Range));
            self.memory.keep(key, stamps, Thing::Block(block.clone()));
        }
        Ok(block)
    }

    /// A comparison of sums of multiples of indices over many entries, as elementwise work: it takes no room where it is
    /// folded.
    fn compared_later(
        &self,
        sign: Comparison,
        a: &IndexFn,
        b: &IndexFn,
        context: &Context,
    ) -> Result<Option<Block>> {
        let indices = [indices_of(a), indices_of(b)].concat();
        let dims = indices.iter().filter_map(|index| context.dim(*index));
        if volume(&joint(dims.map(|dim| (dim, self.dim_size(dim, context)))).1) < MANY {
            return Ok(None);
        }
        let difference = IndexFn::Subtract(Box::new(a.clone()), Box::new(b.clone()));
        let Some((terms, constant)) = linear(&difference) else { return Ok(None) };
        let mut blocks = Vec::with_capacity(terms.len());
        let mut largest = (constant as f64).abs();
        for (index, times) in terms {
            let (dims, shape, values) = self.function_values(&IndexFn::Index(index), context)?;
            let number = |value: Option<Const>| Some(value?.int()? as f64 * times as f64);
            let Some(numbers) = values.into_iter().map(number).collect::<Option<Vec<f64>>>() else {
                return Ok(None);
            };
            largest += numbers.iter().fold(0.0, |most: f64, number| most.max(number.abs()));
            blocks.push(Block::new(dims, shape, numbers, None));
        }
        // Up to there the sums are those of integers.
        let exact = match self.precision {
            Precision::Single => 2_f64.powi(24),
            Precision::Double => 2_f64.powi(53),
        };
        if largest >= exact {
            return Ok(None);
        }
        let sum = blocks.into_iter().reduce(|sum, next| binary(sum, next, Binary::Add));
        Ok(sum.map(|sum| compared(sum, Block::scalar(-(constant as f64)), sign)))
    }

    fn compared(&self, sign: Comparison, a: &IndexFn, b: &IndexFn, context: &Context) -> Result<Block> {
        let (dims_a, shape_a, values_a) = self.function_values(a, context)?;
        let (dims_b, shape_b, values_b) = self.function_values(b, context)?;
        let blank = |dims: Vec<Dim>, shape: Vec<usize>| Block::same(0.0, dims, shape);
        let (left, right) = (blank(dims_a, shape_a), blank(dims_b, shape_b));
        let (dims, shape) = union(&[&left, &right]);
        self.reserve(volume(&shape))?;
        let along = |own: &Block| {
            let steps = crate::kernels::strides(&own.shape);
            dims.iter().map(|dim| own.position(*dim).map_or(0, |at| steps[at])).collect::<Vec<usize>>()
        };
        let (along_a, along_b) = (along(&left), along(&right));
        let mut mask = Vec::with_capacity(volume(&shape));
        let mut positions = vec![0; shape.len()];
        for _ in 0..volume(&shape) {
            let at = |along: &[usize]| -> usize { along.iter().zip(&positions).map(|(s, p)| s * p).sum() };
            mask.push(holds_const(sign, values_a[at(&along_a)], values_b[at(&along_b)]));
            crate::kernels::advance(&shape, &mut positions);
        }
        Ok(Block::same(1.0, dims, shape).present_at(mask))
    }
}
