//! Values of expressions: the core form's table of meanings, on blocks.
//!
//! Enter at [`Machine::expr`]. Every form of the core form is one line or one function here. A
//! block has the dimensions of its free indices only; where a table of bindings is longer than
//! the bindings that an expression distinguishes, it is evaluated for those and carried over.

use std::sync::Arc;

use super::block::{Block, Dim, binary_of, many, restrict, spread, sum_present, union, volume};
use super::exponential::softmax;
use super::machine::{Context, Machine, Stored};
use super::rows::Rows;
use super::scope::Scope;
use super::support::{Condition, distinct, free};
use crate::error::Result;
use crate::function::{Function, power};
use crate::program::{Axis, AxisFunction, Call, Expr, IndexId, Operation, Otherwise, Read, Reduce};

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
            Expr::Product(parts) => self.fold(parts, context, 1.0, |x, y| x * y),
            Expr::Plus(parts) => self.fold(parts, context, 0.0, |x, y| x + y),
            Expr::Terms(parts) => {
                let blocks: Result<Vec<Block>> = parts.iter().map(|part| self.expr(part, context)).collect();
                let mut blocks = blocks?;
                if blocks.len() == 1 {
                    return Ok(blocks.remove(0));
                }
                self.reserve_union(&blocks.iter().collect::<Vec<_>>())?;
                Ok(if blocks.is_empty() { Block::absent() } else { sum_present(&blocks) })
            }
            Expr::Quotient(a, b) => self.two(a, b, context, |x, y| x / y),
            Expr::Power(a, b) => self.two(a, b, context, power),
            Expr::Negate(a) => Ok(self.expr(a, context)?.map(|value| -value)),
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

    fn two(
        &mut self,
        a: &Expr,
        b: &Expr,
        context: &Context,
        f: impl Fn(f64, f64) -> f64 + Sync,
    ) -> Result<Block> {
        let (a, b) = (self.expr(a, context)?, self.expr(b, context)?);
        self.reserve_union(&[&a, &b])?;
        Ok(binary_of(a, b, f))
    }

    fn fold(
        &mut self,
        parts: &[Expr],
        context: &Context,
        start: f64,
        f: impl Fn(f64, f64) -> f64 + Copy + Sync,
    ) -> Result<Block> {
        let mut result: Option<Block> = None;
        for part in parts {
            let block = self.expr(part, context)?;
            result = Some(match result {
                None => block,
                Some(so_far) => {
                    self.reserve_union(&[&so_far, &block])?;
                    binary_of(so_far, block, f)
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
        let mut indices = Vec::new();
        free(expr, &mut indices);
        let indices = distinct(indices);
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
        let mut conditions = Vec::new();
        Condition::of_when(&reduce.when, &mut conditions);
        Condition::of_body(&reduce.body, &mut conditions);
        let scope = Scope {
            address: std::ptr::from_ref(reduce) as usize,
            own: &reduce.over,
            over: &reduce.over,
            conditions,
            body: &reduce.body,
            operation: reduce.operation,
            nearby: &[],
            zero: true,
            fill: false,
            truth: false,
        };
        let block = self.nested(&scope, context)?;
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
            (function, 1) => unary(function, arguments.remove(0)),
            (function, _) => many(&arguments, |values| function.value(values)),
        };
        let mut conditions = Vec::new();
        Condition::of_when(&call.when, &mut conditions);
        self.restricted(block, &conditions, context)
    }

    /// The block where conditions hold.
    pub(crate) fn restricted(
        &mut self,
        mut block: Block,
        conditions: &[Condition<'_>],
        context: &Context,
    ) -> Result<Block> {
        for condition in conditions {
            let holds = self.condition(*condition, context)?;
            if holds.mask.is_some() || holds.len() == 0 {
                self.reserve_union(&[&block, &holds])?;
                block = restrict(&block, &holds);
            }
        }
        Ok(block)
    }

    /// softmax or lnorm: the entries are found without looking at the bindings of the axes at
    /// hand, then looked up for these.
    fn axis(&mut self, axis: &Axis, context: &Context) -> Result<Block> {
        let mut conditions = Vec::new();
        Condition::of_when(&axis.when, &mut conditions);
        Condition::of_body(&axis.argument, &mut conditions);
        let mut body = Vec::new();
        free(&axis.argument, &mut body);
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
        let address = std::ptr::from_ref(axis) as usize;
        let support = self.support(address, &outer, &axis.axes, &conditions, &body)?;
        let inner = outer.with_rows(support.rows.clone());
        let block = self.expr(&axis.argument, &inner)?;
        let rest: Vec<Condition<'_>> = support.rest.iter().map(|at| conditions[*at]).collect();
        let mut block = self.restricted(block, &rest, &inner)?;
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
        let epsilon = match &axis.function {
            AxisFunction::Softmax => None,
            AxisFunction::Lnorm(None) => Some(Block::scalar(1e-5)),
            AxisFunction::Lnorm(Some(epsilon)) => Some(self.expr(epsilon, &inner)?),
        };
        if let Some(epsilon) = epsilon.as_ref().filter(|epsilon| epsilon.mask.is_some()) {
            block = restrict(&block, epsilon);
        }
        let epsilon = epsilon.map(|epsilon| {
            let (all, sizes) = union(&[&block, &epsilon]);
            if all.len() == dims.len() {
                epsilon.expanded(&dims, &shape)
            } else {
                epsilon.expanded(&all, &sizes)
            }
        });
        let (groups, count) = match &support.rows {
            None => (vec![0], 1),
            Some(rows) => {
                let others: Vec<IndexId> =
                    rows.indices.iter().copied().filter(|index| !along(index)).collect();
                let (grouped, groups) = self.grouped(rows, &others);
                (groups.to_vec(), grouped.len)
            }
        };
        let with_rows = usize::from(support.rows.is_some());
        let layout = Layout {
            rows: if with_rows == 1 { shape[0] } else { 1 },
            kept: volume(&shape[with_rows..with_rows + kept]),
            along: volume(&shape[with_rows + kept..]),
        };
        let block = match epsilon {
            None if block.mask.is_none() && support.rows.is_none() => softmax_rows(block, layout.along),
            epsilon => {
                let data = normalised(&block, &groups, count, layout, epsilon.as_ref());
                Block { data: Arc::new(data), ..block }
            }
        };
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
                block = block.gathered(Dim::ROWS, &picks, Dim::ROWS);
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
        let had_rows = block.position(Dim::ROWS).is_some();
        let mut dims: Vec<Dim> = Vec::new();
        if had_rows {
            dims.push(Dim::ROWS);
        }
        dims.extend(bound.iter().map(|index| Dim::of(*index)));
        let others: Vec<Dim> = block.dims.iter().copied().filter(|dim| !dims.contains(dim)).collect();
        let picked = dims.len();
        dims.extend(others);
        let block = block.permuted(&dims);
        let mut positions = vec![0_usize; rows.len];
        for (at, dim) in dims[..picked].iter().enumerate() {
            let size = block.shape[at];
            match dim.index().and_then(|index| rows.column(index)) {
                Some(column) => {
                    positions.iter_mut().zip(column.iter()).for_each(|(p, o)| *p = *p * size + *o as usize);
                }
                None => positions.iter_mut().enumerate().for_each(|(row, p)| *p = *p * size + row),
            }
        }
        let inner = volume(&block.shape[picked..]);
        self.reserve(inner.saturating_mul(rows.len).saturating_mul(2))?;
        let slabs = |at: &usize| at * inner..(at + 1) * inner;
        let data = positions.iter().flat_map(|at| block.data[slabs(at)].iter().copied()).collect();
        let mask = block.mask.as_ref().map(|mask| {
            positions.iter().flat_map(|at| mask[slabs(at)].iter().copied()).collect::<Vec<bool>>()
        });
        let mut new_dims = vec![Dim::ROWS];
        new_dims.extend(&block.dims[picked..]);
        let mut shape = vec![rows.len];
        shape.extend(&block.shape[picked..]);
        Ok(Block::new(new_dims, shape, data, mask))
    }
}

/// An elementwise function of one argument; the common ones without looking at the function for
/// every element.
fn unary(function: &Function, block: Block) -> Block {
    match function {
        Function::Relu => block.map(|x| if x > 0.0 || x.is_nan() { x } else { 0.0 }),
        Function::Step => block.map(|x| if x.is_nan() { x } else { f64::from(u8::from(x > 0.0)) }),
        Function::Exp => block.map(f64::exp),
        Function::Tanh => block.map(f64::tanh),
        Function::Sqrt => block.map(f64::sqrt),
        Function::Abs => block.map(f64::abs),
        Function::Log => block.map(f64::ln),
        _ => block.map(|x| function.value(&[x])),
    }
}

/// softmax of every run of `along` entries, all present, in place.
fn softmax_rows(mut block: Block, along: usize) -> Block {
    if along == 0 {
        return block;
    }
    let shape = [block.len() / along, along];
    let work = |_: usize, _: &[usize], part: &mut [f64]| part.chunks_exact_mut(along).for_each(softmax);
    match Arc::get_mut(&mut block.data) {
        Some(data) => spread(&shape, data, work),
        None => {
            let mut data = block.data.to_vec();
            spread(&shape, &mut data, work);
            block.data = Arc::new(data);
        }
    }
    block
}

/// How the values beside the rows lie: `kept` independent slots, each with `along` entries.
#[derive(Clone, Copy)]
struct Layout {
    rows: usize,
    kept: usize,
    along: usize,
}

/// softmax (without epsilon) or lnorm of every group of entries.
fn normalised(
    block: &Block,
    groups: &[u32],
    count: usize,
    layout: Layout,
    epsilon: Option<&Block>,
) -> Vec<f64> {
    let Layout { rows, kept, along } = layout;
    let here = |at: usize| block.mask.as_ref().is_none_or(|mask| mask[at]);
    let slots = count * kept;
    let (mut counts, mut first) = (vec![0.0_f64; slots], vec![f64::NEG_INFINITY; slots]);
    let mut means = vec![0.0_f64; slots];
    let each = |visit: &mut dyn FnMut(usize, std::ops::Range<usize>)| {
        for (row, group) in groups.iter().enumerate().take(rows) {
            let group = *group as usize;
            for k in 0..kept {
                let at = (row * kept + k) * along;
                visit(group * kept + k, at..at + along);
            }
        }
    };
    each(&mut |slot, range| {
        for at in range.filter(|at| here(*at)) {
            counts[slot] += 1.0;
            first[slot] = first[slot].max(block.data[at]);
            means[slot] += block.data[at];
        }
    });
    let mut result = block.data.to_vec();
    let mut sums = vec![0.0_f64; slots];
    match epsilon {
        None => {
            each(&mut |slot, range| {
                for at in range.filter(|at| here(*at)) {
                    // One entry alone is 1, also an infinite one.
                    result[at] = if counts[slot] == 1.0 { 1.0 } else { (block.data[at] - first[slot]).exp() };
                    sums[slot] += result[at];
                }
            });
            each(&mut |slot, range| {
                for at in range {
                    result[at] /= sums[slot];
                }
            });
        }
        Some(epsilon) => {
            means.iter_mut().zip(&counts).for_each(|(mean, count)| *mean /= count);
            each(&mut |slot, range| {
                for at in range.filter(|at| here(*at)) {
                    let difference = block.data[at] - means[slot];
                    sums[slot] += difference * difference;
                }
            });
            each(&mut |slot, range| {
                let variance = sums[slot] / counts[slot];
                // One root serves all entries with the same epsilon.
                let (mut last, mut root) = (f64::NAN, f64::NAN);
                for at in range {
                    let epsilon = epsilon.data.get(at).copied().unwrap_or(f64::NAN);
                    if epsilon != last {
                        (last, root) = (epsilon, (variance + epsilon).sqrt());
                    }
                    result[at] = (block.data[at] - means[slot]) / root;
                }
            });
        }
    }
    result
}
