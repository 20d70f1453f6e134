//! Blocks: the values of an expression for all bindings of its free indices at once.
//!
//! A [`Block`] is an array whose dimensions have names: an index, or *the rows* of the binding
//! table at hand ([`Dim::ROWS`]). Operations broadcast by name, so no operation knows more than
//! the dimensions of its operands. A mask says which entries are present; no mask means all.

use std::sync::Arc;

use rayon::prelude::*;

use crate::program::{IndexId, Operation};

/// The name of a dimension.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Dim(u32);

impl Dim {
    /// The rows of the binding table at hand.
    pub(crate) const ROWS: Dim = Dim(u32::MAX);

    /// The dimension of an index.
    pub(crate) fn of(index: IndexId) -> Dim {
        Dim(index.0)
    }

    /// The index, unless this is the rows.
    pub(crate) fn index(self) -> Option<IndexId> {
        (self != Dim::ROWS).then_some(IndexId(self.0))
    }
}

/// Values for all bindings of some indices, row-major over `dims`.
#[derive(Debug, Clone)]
pub(crate) struct Block {
    /// The names of the dimensions, the slowest first.
    pub(crate) dims: Vec<Dim>,
    /// Their sizes.
    pub(crate) shape: Vec<usize>,
    /// The values; whatever stands at an absent entry is never read.
    pub(crate) data: Arc<Vec<f64>>,
    /// Which entries are present; `None`: all.
    pub(crate) mask: Option<Arc<Vec<bool>>>,
}

/// The number of elements, saturating.
pub(crate) fn volume(shape: &[usize]) -> usize {
    shape.iter().fold(1, |product: usize, size| product.saturating_mul(*size))
}

/// Row-major strides.
pub(crate) fn strides(shape: &[usize]) -> Vec<usize> {
    let mut result = vec![1; shape.len()];
    for at in (1..shape.len()).rev() {
        result[at - 1] = result[at] * shape[at].max(1);
    }
    result
}

impl Block {
    /// A number.
    pub(crate) fn scalar(value: f64) -> Block {
        Block { dims: Vec::new(), shape: Vec::new(), data: Arc::new(vec![value]), mask: None }
    }

    /// An absent number.
    pub(crate) fn absent() -> Block {
        Block { mask: Some(Arc::new(vec![false])), ..Block::scalar(0.0) }
    }

    /// A block of these values.
    pub(crate) fn new(dims: Vec<Dim>, shape: Vec<usize>, data: Vec<f64>, mask: Option<Vec<bool>>) -> Block {
        let mask = mask.filter(|mask| mask.contains(&false)).map(Arc::new);
        Block { dims, shape, data: Arc::new(data), mask }
    }

    /// The number of entries.
    pub(crate) fn len(&self) -> usize {
        self.data.len()
    }

    /// The position of a dimension.
    pub(crate) fn position(&self, dim: Dim) -> Option<usize> {
        self.dims.iter().position(|d| *d == dim)
    }

    /// The size of a dimension, 1 where it has none.
    pub(crate) fn size(&self, dim: Dim) -> usize {
        self.position(dim).map_or(1, |at| self.shape[at])
    }

    /// Its strides along the dimensions of another block; 0 along those that it lacks.
    pub(crate) fn strides_along(&self, dims: &[Dim]) -> Vec<usize> {
        let own = strides(&self.shape);
        dims.iter().map(|dim| self.position(*dim).map_or(0, |at| own[at])).collect()
    }

    /// Whether every present value is finite.
    pub(crate) fn is_finite(&self) -> bool {
        match &self.mask {
            None => all_finite(&self.data),
            Some(mask) => self.data.iter().zip(mask.iter()).all(|(value, here)| !here || value.is_finite()),
        }
    }

    /// The same block with its dimensions in this order (which must name the same dimensions).
    pub(crate) fn permuted(&self, dims: &[Dim]) -> Block {
        if dims == self.dims {
            return self.clone();
        }
        let shape: Vec<usize> = dims.iter().map(|dim| self.size(*dim)).collect();
        self.expanded(dims, &shape)
    }

    /// The block repeated along the dimensions that it lacks.
    pub(crate) fn expanded(&self, dims: &[Dim], shape: &[usize]) -> Block {
        if dims == self.dims {
            return self.clone();
        }
        let along = self.strides_along(dims);
        let mut data = vec![0.0; volume(shape)];
        let from = &self.data;
        spread(shape, &mut data, |first, shape, part| {
            copy_along(&from[first * along.first().copied().unwrap_or(0)..], shape, &along, part);
        });
        let mask = self.mask.as_ref().map(|mask| {
            let mut copy = vec![false; volume(shape)];
            copy_along(mask, shape, &along, &mut copy);
            Arc::new(copy)
        });
        Block { dims: dims.to_vec(), shape: shape.to_vec(), data: Arc::new(data), mask }
    }

    /// The slice where a dimension has this position.
    pub(crate) fn slice(&self, dim: Dim, position: usize) -> Block {
        let Some(at) = self.position(dim) else { return self.clone() };
        let picked = self.gathered(dim, &[position as u32], dim);
        let mut block = picked;
        block.dims.remove(at);
        block.shape.remove(at);
        block
    }

    /// Entries along a dimension picked by position; the dimension gets a new name.
    pub(crate) fn gathered(&self, dim: Dim, positions: &[u32], name: Dim) -> Block {
        let Some(at) = self.position(dim) else { return self.clone() };
        let outer = volume(&self.shape[..at]);
        let inner = volume(&self.shape[at + 1..]);
        let size = self.shape[at];
        let data = pick(&self.data, outer, size, inner, positions);
        let mask = self.mask.as_ref().map(|mask| Arc::new(pick(mask, outer, size, inner, positions)));
        let mut dims = self.dims.clone();
        let mut shape = self.shape.clone();
        dims[at] = name;
        shape[at] = positions.len();
        Block { dims, shape, data: Arc::new(data), mask }
    }

    /// The values with 0 where they are absent.
    pub(crate) fn zeroed(&self) -> Arc<Vec<f64>> {
        match &self.mask {
            None => Arc::clone(&self.data),
            Some(mask) => {
                let pairs = self.data.iter().zip(mask.iter());
                Arc::new(pairs.map(|(value, here)| if *here { *value } else { 0.0 }).collect())
            }
        }
    }

    /// Present everywhere, with this value where it was absent.
    pub(crate) fn filled(&self, value: f64) -> Block {
        let Some(mask) = &self.mask else { return self.clone() };
        let pairs = self.data.iter().zip(mask.iter());
        let data = pairs.map(|(old, here)| if *here { *old } else { value }).collect();
        Block { data: Arc::new(data), mask: None, ..self.clone() }
    }

    /// A function of every entry.
    pub(crate) fn map(mut self, f: impl Fn(f64) -> f64 + Sync) -> Block {
        match Arc::get_mut(&mut self.data) {
            Some(data) => {
                spread(&[data.len()], data, |_, _, part| {
                    part.iter_mut().for_each(|value| *value = f(*value));
                });
            }
            None => {
                let mut data = vec![0.0; self.data.len()];
                let from = &self.data;
                spread(&[from.len()], &mut data, |first, _, part| {
                    part.iter_mut().zip(&from[first..]).for_each(|(slot, value)| *slot = f(*value));
                });
                self.data = Arc::new(data);
            }
        }
        self
    }

    /// The same values, present only where the test holds of them.
    pub(crate) fn present_where(self, test: impl Fn(f64) -> bool) -> Block {
        let mask = match &self.mask {
            None => self.data.iter().map(|value| test(*value)).collect(),
            Some(mask) => {
                self.data.iter().zip(mask.iter()).map(|(value, here)| *here && test(*value)).collect()
            }
        };
        let Block { dims, shape, data, .. } = self;
        let mask: Vec<bool> = mask;
        let mask = mask.contains(&false).then(|| Arc::new(mask));
        Block { dims, shape, data, mask }
    }

    /// 1, present where this is absent.
    pub(crate) fn complement(&self) -> Block {
        let mask = match &self.mask {
            None => vec![false; self.len()],
            Some(mask) => mask.iter().map(|here| !here).collect(),
        };
        Block::new(self.dims.clone(), self.shape.clone(), vec![1.0; self.len()], Some(mask))
    }

    /// 1, present where this is present.
    pub(crate) fn presence(&self) -> Block {
        Block { data: Arc::new(vec![1.0; self.len()]), ..self.clone() }
    }

    /// The mask as numbers.
    pub(crate) fn mask_block(&self) -> Option<Block> {
        let mask = self.mask.as_ref()?;
        let data = mask.iter().map(|here| f64::from(u8::from(*here))).collect();
        Some(Block { data: Arc::new(data), mask: None, ..self.clone() })
    }
}

fn pick<T: Copy>(from: &[T], outer: usize, size: usize, inner: usize, positions: &[u32]) -> Vec<T> {
    let mut result = Vec::with_capacity(outer * positions.len() * inner);
    for o in 0..outer {
        let slab = &from[o * size * inner..(o + 1) * size * inner];
        if inner == 1 {
            result.extend(positions.iter().map(|at| slab[*at as usize]));
        } else {
            for at in positions {
                result.extend_from_slice(&slab[*at as usize * inner..(*at as usize + 1) * inner]);
            }
        }
    }
    result
}

/// A row-major copy of `from` read with these strides.
fn copy_along<T: Copy>(from: &[T], shape: &[usize], along: &[usize], result: &mut [T]) {
    walk(shape, &[along], |at, offsets, len, steps| {
        let to = &mut result[at..at + len];
        match steps[0] {
            1 => to.copy_from_slice(&from[offsets[0]..offsets[0] + len]),
            0 => to.fill(from[offsets[0]]),
            step => {
                for (k, slot) in to.iter_mut().enumerate() {
                    *slot = from[offsets[0] + k * step];
                }
            }
        }
    });
}

/// Visits a row-major space in runs along its last dimension (neighbouring dimensions are joined
/// where all operands allow it): `f(position, offset of each operand, length, step of each operand)`.
pub(crate) fn walk(
    shape: &[usize],
    operands: &[&[usize]],
    mut f: impl FnMut(usize, &[usize], usize, &[usize]),
) {
    if volume(shape) == 0 {
        return;
    }
    let mut sizes: Vec<usize> = Vec::with_capacity(shape.len());
    let mut steps: Vec<Vec<usize>> = vec![Vec::with_capacity(shape.len()); operands.len()];
    for (at, size) in shape.iter().enumerate() {
        if *size == 1 {
            continue;
        }
        let joins = sizes.last().is_some()
            && operands.iter().zip(&steps).all(|(operand, step)| step.last() == Some(&(operand[at] * size)));
        if joins {
            if let Some(last) = sizes.last_mut() {
                *last *= size;
            }
            for (operand, step) in operands.iter().zip(&mut steps) {
                if let Some(last) = step.last_mut() {
                    *last = operand[at];
                }
            }
        } else {
            sizes.push(*size);
            for (operand, step) in operands.iter().zip(&mut steps) {
                step.push(operand[at]);
            }
        }
    }
    let inner = sizes.pop().unwrap_or(1);
    let inner_steps: Vec<usize> = steps.iter_mut().map(|step| step.pop().unwrap_or(0)).collect();
    let mut counter = vec![0; sizes.len()];
    let mut offsets = vec![0; operands.len()];
    let mut position = 0;
    loop {
        f(position, &offsets, inner, &inner_steps);
        position += inner;
        let mut at = sizes.len();
        loop {
            if at == 0 {
                return;
            }
            at -= 1;
            counter[at] += 1;
            for (offset, step) in offsets.iter_mut().zip(&steps) {
                *offset += step[at];
            }
            if counter[at] < sizes[at] {
                break;
            }
            for (offset, step) in offsets.iter_mut().zip(&steps) {
                *offset -= step[at] * sizes[at];
            }
            counter[at] = 0;
        }
    }
}

/// The dimensions of several blocks together: those of the largest first, in its order.
pub(crate) fn union(blocks: &[&Block]) -> (Vec<Dim>, Vec<usize>) {
    let mut order: Vec<&&Block> = blocks.iter().collect();
    order.sort_by_key(|block| std::cmp::Reverse(block.len()));
    let (mut dims, mut shape) = (Vec::new(), Vec::new());
    for block in order {
        for (dim, size) in block.dims.iter().zip(&block.shape) {
            if !dims.contains(dim) {
                dims.push(*dim);
                shape.push(*size);
            }
        }
    }
    // The rows are the slowest: tables are cut and reduced along them.
    if let Some(at) = dims.iter().position(|dim| *dim == Dim::ROWS) {
        let size = shape.remove(at);
        dims.remove(at);
        dims.insert(0, Dim::ROWS);
        shape.insert(0, size);
    }
    (dims, shape)
}

/// So many entries are shared among threads.
const PARALLEL: usize = 1 << 16;

/// Works on a row-major array in parts along its first dimension: `work(first row, shape of the
/// part, part)`.
pub(crate) fn spread(shape: &[usize], data: &mut [f64], work: impl Fn(usize, &[usize], &mut [f64]) + Sync) {
    let rows = shape.first().copied().unwrap_or(1);
    if data.len() < PARALLEL || rows < 2 || rayon::current_num_threads() < 2 {
        return work(0, shape, data);
    }
    let inner = data.len() / rows;
    let step = (PARALLEL / 4 / inner.max(1)).max(1);
    data.par_chunks_mut(step * inner).enumerate().for_each(|(nth, part)| {
        let mut own = shape.to_vec();
        own[0] = part.len() / inner;
        work(nth * step, &own, part);
    });
}

/// Whether every value is finite.
pub(crate) fn all_finite(values: &[f64]) -> bool {
    // Whole chunks without a branch, so that they are vectorised.
    let fine = |part: &[f64]| {
        part.chunks(1024).all(|chunk| chunk.iter().fold(true, |fine, value| fine & value.is_finite()))
    };
    if values.len() < PARALLEL { fine(values) } else { values.par_chunks(PARALLEL).all(fine) }
}

/// A function of two blocks, present where both are.
pub(crate) fn binary(a: &Block, b: &Block, f: impl Fn(f64, f64) -> f64 + Sync) -> Block {
    let (dims, shape) = union(&[a, b]);
    let mut data = vec![0.0; volume(&shape)];
    let (along_a, along_b) = (a.strides_along(&dims), b.strides_along(&dims));
    spread(&shape, &mut data, |first, shape, part| {
        let begin = |along: &[usize]| first * along.first().copied().unwrap_or(0);
        let (a, b) = (&a.data[begin(&along_a)..], &b.data[begin(&along_b)..]);
        walk(shape, &[&along_a, &along_b], |at, offsets, len, steps| {
            let to = &mut part[at..at + len];
            let (x, y) = (&a[offsets[0]..], &b[offsets[1]..]);
            match (steps[0], steps[1]) {
                (1, 1) => to.iter_mut().zip(x).zip(y).for_each(|((slot, x), y)| *slot = f(*x, *y)),
                (1, 0) => to.iter_mut().zip(x).for_each(|(slot, x)| *slot = f(*x, y[0])),
                (0, 1) => to.iter_mut().zip(y).for_each(|(slot, y)| *slot = f(x[0], *y)),
                (p, q) => to.iter_mut().enumerate().for_each(|(k, slot)| *slot = f(x[k * p], y[k * q])),
            }
        });
    });
    let mask = joint_mask(&[a, b], &dims, &shape, |all, one| *all &= one, true);
    Block { dims, shape, data: Arc::new(data), mask }
}

/// The same, in the place of an operand that nobody else holds and that has all dimensions.
pub(crate) fn binary_of(a: Block, b: Block, f: impl Fn(f64, f64) -> f64 + Sync) -> Block {
    let (dims, _) = union(&[&a, &b]);
    let own = |block: &Block| block.dims == dims && Arc::strong_count(&block.data) == 1;
    match (own(&a), own(&b)) {
        (true, _) => in_place(a, &b, f),
        (_, true) => in_place(b, &a, |y, x| f(x, y)),
        _ => binary(&a, &b, f),
    }
}

/// `f` of every entry of a block and what stands there in another.
fn in_place(mut a: Block, b: &Block, f: impl Fn(f64, f64) -> f64 + Sync) -> Block {
    let along = b.strides_along(&a.dims);
    let mask = joint_mask(&[&a, b], &a.dims, &a.shape, |all, one| *all &= one, true);
    if let Some(data) = Arc::get_mut(&mut a.data) {
        spread(&a.shape, data, |first, shape, part| {
            let b = &b.data[first * along.first().copied().unwrap_or(0)..];
            walk(shape, &[&along], |at, offsets, len, steps| {
                let to = &mut part[at..at + len];
                let y = &b[offsets[0]..];
                match steps[0] {
                    1 => to.iter_mut().zip(y).for_each(|(slot, y)| *slot = f(*slot, *y)),
                    0 => to.iter_mut().for_each(|slot| *slot = f(*slot, y[0])),
                    q => to.iter_mut().enumerate().for_each(|(k, slot)| *slot = f(*slot, y[k * q])),
                }
            });
        });
    }
    Block { mask, ..a }
}

/// The masks of several blocks joined; `None` where none has one.
pub(crate) fn joint_mask(
    blocks: &[&Block],
    dims: &[Dim],
    shape: &[usize],
    join: impl Fn(&mut bool, bool),
    start: bool,
) -> Option<Arc<Vec<bool>>> {
    if blocks.iter().all(|block| block.mask.is_none()) {
        return None;
    }
    let mut result = vec![start; volume(shape)];
    for block in blocks {
        let Some(mask) = &block.mask else { continue };
        let along = block.strides_along(dims);
        walk(shape, &[&along], |at, offsets, len, steps| {
            for (k, slot) in result[at..at + len].iter_mut().enumerate() {
                join(slot, mask[offsets[0] + k * steps[0]]);
            }
        });
    }
    Some(Arc::new(result))
}

/// A function of several blocks, present where all are.
pub(crate) fn many(blocks: &[Block], f: impl Fn(&[f64]) -> f64) -> Block {
    let all: Vec<&Block> = blocks.iter().collect();
    let (dims, shape) = union(&all);
    let mut data = vec![0.0; volume(&shape)];
    let along: Vec<Vec<usize>> = blocks.iter().map(|block| block.strides_along(&dims)).collect();
    let along: Vec<&[usize]> = along.iter().map(Vec::as_slice).collect();
    let mut arguments = vec![0.0; blocks.len()];
    walk(&shape, &along, |at, offsets, len, steps| {
        for (k, slot) in data[at..at + len].iter_mut().enumerate() {
            for (n, argument) in arguments.iter_mut().enumerate() {
                *argument = blocks[n].data[offsets[n] + k * steps[n]];
            }
            *slot = f(&arguments);
        }
    });
    let mask = joint_mask(&all, &dims, &shape, |all, one| *all &= one, true);
    Block { dims, shape, data: Arc::new(data), mask }
}

/// The block with entries present only where the condition is present too.
pub(crate) fn restrict(block: &Block, condition: &Block) -> Block {
    binary(block, condition, |value, _| value)
}

/// The sum of blocks, absent ones skipped; absent where all are.
pub(crate) fn sum_present(blocks: &[Block]) -> Block {
    let all: Vec<&Block> = blocks.iter().collect();
    let (dims, shape) = union(&all);
    let mut data = vec![0.0; volume(&shape)];
    for block in blocks {
        let values = block.zeroed();
        let along = block.strides_along(&dims);
        walk(&shape, &[&along], |at, offsets, len, steps| {
            for (k, slot) in data[at..at + len].iter_mut().enumerate() {
                *slot += values[offsets[0] + k * steps[0]];
            }
        });
    }
    let total = blocks.iter().any(|block| block.mask.is_none());
    let mask = if total { None } else { joint_mask(&all, &dims, &shape, |any, one| *any |= one, false) };
    Block { dims, shape, data: Arc::new(data), mask }
}

/// A fold of contributions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fold(pub(crate) Operation);

impl Fold {
    /// Where the fold begins.
    pub(crate) fn start(self) -> f64 {
        match self.0 {
            Operation::Sum | Operation::Avg | Operation::Count => 0.0,
            Operation::Product => 1.0,
            Operation::Max => f64::NEG_INFINITY,
            Operation::Min => f64::INFINITY,
        }
    }

    /// One more contribution.
    pub(crate) fn join(self, so_far: f64, value: f64) -> f64 {
        match self.0 {
            Operation::Sum | Operation::Avg => so_far + value,
            Operation::Count => so_far + 1.0,
            Operation::Product => so_far * value,
            Operation::Max => larger(so_far, value),
            Operation::Min => smaller(so_far, value),
        }
    }

    /// The result of `count` contributions.
    pub(crate) fn end(self, so_far: f64, count: f64) -> f64 {
        match self.0 {
            Operation::Avg => so_far / count,
            _ => so_far,
        }
    }

    /// The effect of repeating every contribution `times` times.
    pub(crate) fn repeated(self, value: f64, times: usize) -> f64 {
        match self.0 {
            Operation::Sum | Operation::Count => value * times as f64,
            Operation::Product => crate::function::power(value, times as f64),
            Operation::Max | Operation::Min | Operation::Avg => value,
        }
    }
}

/// The larger of two; NaN if one is.
pub(crate) fn larger(x: f64, y: f64) -> f64 {
    if x > y || x.is_nan() { x } else { y }
}

/// The smaller of two; NaN if one is.
pub(crate) fn smaller(x: f64, y: f64) -> f64 {
    if x < y || x.is_nan() { x } else { y }
}

/// A sum in eight lanes: fast, and the same whoever computes it.
pub(crate) fn sum(values: &[f64]) -> f64 {
    let mut lanes = [0.0; 8];
    let (chunks, rest) = values.as_chunks::<8>();
    for chunk in chunks {
        for (lane, value) in lanes.iter_mut().zip(chunk) {
            *lane += value;
        }
    }
    let tail: f64 = rest.iter().sum();
    ((lanes[0] + lanes[4]) + (lanes[1] + lanes[5])) + ((lanes[2] + lanes[6]) + (lanes[3] + lanes[7])) + tail
}

/// A block folded along some of its dimensions.
pub(crate) fn reduce(block: &Block, drop: &[Dim], operation: Operation) -> Block {
    let kept: Vec<Dim> = block.dims.iter().copied().filter(|dim| !drop.contains(dim)).collect();
    if kept.len() == block.dims.len() && !matches!(operation, Operation::Count) {
        return block.clone();
    }
    let fold = Fold(operation);
    let mut order = kept.clone();
    order.extend(block.dims.iter().copied().filter(|dim| drop.contains(dim)));
    let block = block.permuted(&order);
    let shape = block.shape[..kept.len()].to_vec();
    let (outer, inner) = (volume(&shape), volume(&block.shape[kept.len()..]));
    if block.mask.is_none() && operation == Operation::Sum && inner > 0 {
        let mut data = vec![0.0; outer];
        let from = &block.data;
        let fill = |(at, slot): (usize, &mut f64)| *slot = sum(&from[at * inner..(at + 1) * inner]);
        if from.len() < PARALLEL || outer < 2 {
            data.iter_mut().enumerate().for_each(fill);
        } else {
            data.par_iter_mut().with_min_len((PARALLEL / 4 / inner).max(1)).enumerate().for_each(fill);
        }
        return Block::new(kept, shape, data, None);
    }
    let mut data = Vec::with_capacity(outer);
    let mut mask = Vec::new();
    for at in 0..outer {
        let values = &block.data[at * inner..(at + 1) * inner];
        match &block.mask {
            None => {
                let folded = values.iter().fold(fold.start(), |so_far, value| fold.join(so_far, *value));
                data.push(fold.end(folded, inner as f64));
            }
            Some(present) => {
                let present = &present[at * inner..(at + 1) * inner];
                let (mut folded, mut count) = (fold.start(), 0.0);
                for (value, _) in values.iter().zip(present).filter(|(_, here)| **here) {
                    folded = fold.join(folded, *value);
                    count += 1.0;
                }
                data.push(fold.end(folded, count));
                mask.push(count > 0.0);
            }
        }
    }
    let mask = if inner == 0 { Some(vec![false; outer]) } else { block.mask.as_ref().map(|_| mask) };
    Block::new(kept, shape, data, mask)
}

/// A block with rows folded into groups: `groups[row]` is the new row.
pub(crate) fn reduce_rows(block: &Block, groups: &[u32], count: usize, operation: Operation) -> Block {
    let fold = Fold(operation);
    let mut dims = vec![Dim::ROWS];
    dims.extend(block.dims.iter().copied().filter(|dim| *dim != Dim::ROWS));
    let mut full = vec![groups.len()];
    full.extend(dims[1..].iter().map(|dim| block.size(*dim)));
    let block = block.expanded(&dims, &full);
    let inner = volume(&full[1..]);
    let mut shape = full;
    shape[0] = count;
    let mut data = vec![fold.start(); count * inner];
    let counted = block.mask.is_some() || operation == Operation::Avg;
    let mut counts = vec![0.0; if counted { count * inner } else { 0 }];
    for (row, group) in groups.iter().enumerate() {
        let to = *group as usize * inner;
        let values = &block.data[row * inner..(row + 1) * inner];
        match &block.mask {
            None => {
                for (slot, value) in data[to..to + inner].iter_mut().zip(values) {
                    *slot = fold.join(*slot, *value);
                }
                if counted {
                    counts[to..to + inner].iter_mut().for_each(|n| *n += 1.0);
                }
            }
            Some(mask) => {
                let here = &mask[row * inner..(row + 1) * inner];
                for k in (0..inner).filter(|k| here[*k]) {
                    data[to + k] = fold.join(data[to + k], values[k]);
                    counts[to + k] += 1.0;
                }
            }
        }
    }
    if operation == Operation::Avg {
        for (slot, n) in data.iter_mut().zip(&counts) {
            *slot = fold.end(*slot, *n);
        }
    }
    let mask = block.mask.is_some().then(|| counts.iter().map(|n| *n > 0.0).collect());
    Block::new(dims, shape, data, mask)
}
