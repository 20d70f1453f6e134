//! Values of expressions: the core form's table of meanings, on blocks.
//!
//! Enter at [`Machine::expr`]. Every form of the core form is one line or one function here. A
//! block has the dimensions of its free indices only; where a table of bindings is longer than
//! the bindings that an expression distinguishes, it is evaluated for those and carried over.

use std::sync::Arc;

use super::scope::Scope;
use crate::error::Result;
use crate::kernels::{Array, Binary, Layout, Normalise, Point, volume};
use crate::program::{Axis, AxisFunction, Call, Expr, IndexId, Operation, Otherwise, Read, Reduce};
use crate::store::block::{Block, Dim, binary, many, restrict, sum_present};
use crate::store::condition::{Condition, free};
use crate::store::machine::{Context, Machine, Stored};
use crate::store::rows::Rows;

impl Machine {
    /// The values of an expression for all bindings of its free indices.
    pub(crate) fn expr(&mut self, expr: &Expr, context: &Context) -> Result<Block> {
        match expr {
            Expr::Number(value) => Ok(Block::scalar(*value)),
            Expr::Index(function) => {
                let (dims, shape, values) = self.function_values(function, context)?;
                let ints: Vec<Option<i64>> = values.into_iter().map(|value| value?.int()).collect();
                let mask = ints.iter().map(Option::is_some).collect();
                let data = ints.into_iter().map(|value| value.unwrap_or(0) as f64).collect();
                Ok(Block::new(dims, shape, data, Some(mask)))
            }
            Expr::Read(read) => self.read(read, context),
            Expr::Missing(read) => Ok(self.holds(read, context)?.complement()),
            Expr::Product(parts) => self.fold(parts, context, 1.0, Binary::Multiply),
            Expr::Plus(parts) => self.fold(parts, context, 0.0, Binary::Add),
            Expr::Terms(parts) => {
                let blocks: Result<Vec<Block>> = parts.iter().map(|part| self.expr(part, context)).collect();
                let mut blocks = blocks?;
                if blocks.len() == 1 {
                    return Ok(blocks.remove(0));
                }
                self.reserve_union(&blocks.iter().collect::<Vec<_>>())?;
                Ok(if blocks.is_empty() { Block::absent() } else { sum_present(blocks) })
            }
            Expr::Quotient(a, b) => match self.slope(expr, context)? {
                Some(block) => Ok(block),
                None => self.two(a, b, context, Binary::Divide),
            },
            Expr::Power(a, b) => self.two(a, b, context, Binary::Power),
            Expr::Negate(a) => Ok(self.expr(a, context)?.negated()),
            Expr::Reduce(reduce) => {
                if let Some(read) = self.or_zero(reduce) {
                    return Ok(self.read_as(read, Otherwise::ZeroOutside, context)?.filled(0.0));
                }
                self.distinguished(expr, context, &mut |machine, context| machine.reduced(reduce, context))
            }
            Expr::Call(call) => {
                self.distinguished(expr, context, &mut |machine, context| machine.call(call, context))
            }
            Expr::Axis(axis) => {
                self.distinguished(expr, context, &mut |machine, context| machine.axis(axis, context))
            }
        }
    }

    fn two(&mut self, a: &Expr, b: &Expr, context: &Context, operation: Binary) -> Result<Block> {
        let (a, b) = (self.expr(a, context)?, self.expr(b, context)?);
        self.reserve_union(&[&a, &b])?;
        Ok(binary(a, b, operation))
    }

    fn fold(&mut self, parts: &[Expr], context: &Context, start: f64, operation: Binary) -> Result<Block> {
        let mut result: Option<Block> = None;
        for part in parts {
            let block = self.expr(part, context)?;
            result = Some(match result {
                None => block,
                Some(so_far) => {
                    self.reserve_union(&[&so_far, &block])?;
                    binary(so_far, block, operation)
                }
            });
        }
        Ok(result.unwrap_or(Block::scalar(start)))
    }

    /// Evaluates an expression for the rows that it distinguishes, and carries it to all rows.
    fn distinguished(
        &mut self,
        expr: &Expr,
        context: &Context,
        evaluate: &mut dyn FnMut(&mut Machine, &Context) -> Result<Block>,
    ) -> Result<Block> {
        let Some(rows) = &context.rows else { return evaluate(self, context) };
        let indices = free(expr);
        if rows.indices.iter().all(|index| indices.contains(index)) {
            return evaluate(self, context);
        }
        match self.projected(context, &indices)? {
            None => evaluate(self, &context.with_rows(None)),
            Some((_, None)) => evaluate(self, context),
            Some((fewer, Some(groups))) => {
                let block = evaluate(self, &context.with_rows(Some(fewer)))?;
                self.reserve(volume(&block.shape[1.min(block.shape.len())..]).saturating_mul(groups.len()))?;
                Ok(block.gathered(Dim::ROWS, &groups, Dim::ROWS))
            }
        }
    }

    /// The read of an explicit sum of one square element: it is 0 where it is missing.
    fn or_zero<'p>(&self, reduce: &'p Reduce) -> Option<&'p Read> {
        let Expr::Read(read) = &reduce.body else { return None };
        let alone = reduce.explicit
            && reduce.operation == Operation::Sum
            && reduce.over.is_empty()
            && reduce.when.guards.is_empty();
        (alone && matches!(self.stored(read.tensor), Some(Stored::Dense(_)))).then_some(read)
    }

    fn reduced(&mut self, reduce: &Reduce, context: &Context) -> Result<Block> {
        let Reduce { operation, over, when, body, .. } = reduce;
        let scope = Scope::new(when.node.number(), over, Condition::of_when(when), body, *operation);
        let block = self.nested(&Scope { zero: true, ..scope }, context)?;
        Ok(match reduce.operation {
            Operation::Sum | Operation::Count if reduce.explicit => block.filled(0.0),
            Operation::Product if reduce.explicit => block.filled(1.0),
            _ => block,
        })
    }

    fn call(&mut self, call: &Call, context: &Context) -> Result<Block> {
        let arguments: Result<Vec<Block>> =
            call.arguments.iter().map(|part| self.expr(part, context)).collect();
        let mut arguments = arguments?;
        self.reserve_union(&arguments.iter().collect::<Vec<_>>())?;
        let block = match (&call.function, arguments.len()) {
            (function, 1) => arguments.remove(0).call(function),
            (function, _) => many(arguments, function),
        };
        self.restricted(block, &Condition::of_when(&call.when), context)
    }

    /// The block where conditions hold.
    pub(crate) fn restricted(
        &mut self,
        mut block: Block,
        conditions: &[Condition<'_>],
        context: &Context,
    ) -> Result<Block> {
        let streamed = std::mem::take(&mut self.streamed);
        for condition in conditions {
            self.streamed = streamed;
            let holds = self.condition(*condition, context)?;
            if holds.mask.is_some() || holds.len() == 0 {
                if !streamed {
                    self.reserve_union(&[&block, &holds])?;
                }
                block = restrict(block, holds);
            }
        }
        self.streamed = false;
        Ok(block)
    }

    /// softmax or lnorm: the entries are found without looking at the bindings of the axes at
    /// hand, then looked up for these.
    fn axis(&mut self, axis: &Axis, context: &Context) -> Result<Block> {
        let mut conditions = Condition::of_when(&axis.when);
        Condition::of_body(&axis.argument, &mut conditions);
        let body = free(&axis.argument);
        let along = |index: &IndexId| axis.axes.contains(index);
        let others: Vec<IndexId> = context
            .rows
            .iter()
            .flat_map(|rows| rows.indices.iter().copied())
            .filter(|index| !along(index))
            .filter(|index| body.contains(index) || conditions.iter().any(|c| c.indices().contains(index)))
            .collect();
        let rows = self.projected(context, &others)?.map(|(rows, _)| rows);
        let mut outer = context.with_rows(rows);
        outer.fixed.retain(|(index, _)| !along(index));
        let support = self.support(axis.when.node.number(), &outer, &axis.axes, &conditions, &body)?;
        let inner = outer.with_rows(support.rows.clone());
        let block = self.expr(&axis.argument, &inner)?;
        let rest: Vec<Condition<'_>> = support.rest.iter().map(|at| conditions[*at]).collect();
        let mut block = self.restricted(block, &rest, &inner)?;
        let epsilon = match &axis.function {
            AxisFunction::Softmax => None,
            AxisFunction::Lnorm(None) => Some(Block::scalar(1e-5)),
            AxisFunction::Lnorm(Some(epsilon)) => Some(self.expr(epsilon, &inner)?),
        };
        if let Some(epsilon) = epsilon.clone() {
            block = restrict(block, epsilon);
        }
        // Every entry has its own slot, also where the argument does not depend on an axis.
        let mut dims: Vec<Dim> = Vec::new();
        if support.rows.is_some() {
            dims.push(Dim::ROWS);
        }
        dims.extend(
            block
                .dims
                .iter()
                .copied()
                .filter(|dim| *dim != Dim::ROWS && !dim.index().is_some_and(|i| along(&i))),
        );
        let kept = dims.len() - usize::from(support.rows.is_some());
        dims.extend(axis.axes.iter().filter(|index| !inner.in_rows(**index)).map(|index| Dim::of(*index)));
        let shape: Vec<usize> = dims.iter().map(|dim| self.dim_size(*dim, &inner)).collect();
        self.reserve(volume(&shape).saturating_mul(2))?;
        block = block.expanded(&dims, &shape);
        let groups = match &support.rows {
            None => None,
            Some(rows) => {
                let others: Vec<IndexId> =
                    rows.indices.iter().copied().filter(|index| !along(index)).collect();
                let (grouped, groups) = self.grouped(rows, &others);
                Some((groups, grouped.len))
            }
        };
        let with_rows = usize::from(support.rows.is_some());
        let layout = Layout {
            groups,
            kept: volume(&shape[with_rows..with_rows + kept]),
            along: volume(&shape[with_rows + kept..]),
        };
        let mask = block.mask.take();
        let point = |block: Block| Point::of(shape.clone(), block.view(&dims));
        let normalise = Normalise {
            present: mask.as_deref().cloned().map(point),
            epsilon: epsilon.map(point),
            values: point(block).fused(),
            layout,
        };
        let array = Array::of(volume(&shape), normalise);
        let block = Block { mask, ..Block::whole(dims, shape, array) };
        self.entries_at(axis, support.rows, block, context)
    }

    /// The entries at the bindings of the axes at hand.
    fn entries_at(
        &mut self,
        axis: &Axis,
        rows: Option<Arc<Rows>>,
        mut block: Block,
        context: &Context,
    ) -> Result<Block> {
        let mut rows = rows;
        for index in &axis.axes {
            let Some(fixed) = context.fixed(*index) else { continue };
            block = block.slice(Dim::of(*index), fixed as usize);
            if let Some(table) = rows.as_ref().filter(|rows| rows.binds(*index)) {
                let picks: Vec<u32> = match table.column(*index) {
                    Some(column) => {
                        (0..table.len as u32).filter(|row| column[*row as usize] == fixed).collect()
                    }
                    None => Vec::new(),
                };
                block = block.gathered(Dim::ROWS, &Arc::new(picks.clone()), Dim::ROWS);
                let id = self.number();
                let mut fewer = table.select(&picks, id);
                if let Some(at) = fewer.indices.iter().position(|other| other == index) {
                    fewer.indices.remove(at);
                    fewer.columns.remove(at);
                }
                rows = Some(Arc::new(fewer));
            }
        }
        let block = match rows {
            None => block,
            Some(rows) => self.align(&rows, block, context)?,
        };
        self.rows_of(block, context)
    }

    /// Picks the rows of a context along dense dimensions that its table binds.
    pub(crate) fn rows_of(&mut self, block: Block, context: &Context) -> Result<Block> {
        let Some(rows) = &context.rows else { return Ok(block) };
        let bound: Vec<IndexId> =
            block.dims.iter().filter_map(|dim| dim.index()).filter(|index| rows.binds(*index)).collect();
        if bound.is_empty() {
            return Ok(block);
        }
        let mut block = block;
        if block.position(Dim::ROWS).is_none()
            && let [index] = bound.as_slice()
            && let Some(column) = rows.column(*index)
        {
            return Ok(block.gathered(Dim::of(*index), column, Dim::ROWS));
        }
        // Several dimensions move together: each row names one slab of them all.
        let mut dims: Vec<Dim> = Vec::new();
        if block.position(Dim::ROWS).is_some() {
            dims.push(Dim::ROWS);
        }
        dims.extend(bound.iter().map(|index| Dim::of(*index)));
        let mut positions = vec![0_u32; rows.len];
        for dim in &dims {
            let size = block.size(*dim) as u32;
            match dim.index().and_then(|index| rows.column(index)) {
                Some(column) => {
                    positions.iter_mut().zip(column.iter()).for_each(|(p, o)| *p = *p * size + *o);
                }
                None => (0..).zip(positions.iter_mut()).for_each(|(row, p)| *p = *p * size + row),
            }
        }
        let slabs: usize = dims.iter().map(|dim| block.size(*dim)).product();
        if slabs >= u32::MAX as usize {
            return Err(self.too_large(slabs as u128 * 8));
        }
        let positions = Arc::new(positions);
        let mask = block.mask.take().map(|mask| {
            let mask = joined(*mask, &dims, &block);
            Box::new(mask.gathered(Dim::ROWS, &positions, Dim::ROWS))
        });
        self.reserve(volume(&block.shape))?;
        let block = joined(block.clone(), &dims, &block).gathered(Dim::ROWS, &positions, Dim::ROWS);
        Ok(Block { mask, ..block })
    }
}

/// A block whose dimensions `dims`, as large as those of another, have become one: the rows.
fn joined(block: Block, dims: &[Dim], like: &Block) -> Block {
    let others: Vec<Dim> = block.dims.iter().copied().filter(|dim| !dims.contains(dim)).collect();
    let all: Vec<Dim> = dims.iter().copied().chain(others.iter().copied()).collect();
    let shape: Vec<usize> =
        all.iter().map(|dim| if dims.contains(dim) { like.size(*dim) } else { block.size(*dim) }).collect();
    let array = block.expanded(&all, &shape).array();
    let mut sizes = vec![volume(&shape[..dims.len()])];
    sizes.extend(&shape[dims.len()..]);
    Block::whole(std::iter::once(Dim::ROWS).chain(others).collect(), sizes, array)
}
