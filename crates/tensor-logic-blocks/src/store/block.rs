//! Blocks: the values of an expression for all bindings of its free indices at once.
//!
//! A [`Block`] is a view of an [`Array`] whose dimensions have names: an index, or *the rows* of the
//! binding table at hand ([`Dim::ROWS`]). Operations broadcast by name, so no operation knows more
//! than the dimensions of its operands. A mask, a block of truths, says which entries are present;
//! no mask means all.

use std::sync::Arc;

use crate::ast::Comparison;
use crate::function::Function;
use crate::kernels::{
    Array, Binary, Code, Fold, Folding, Grouping, NOWHERE, Point, Segments, Slabs, Step, View, volume,
};
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

/// Values for all bindings of some indices.
#[derive(Debug, Clone)]
pub(crate) struct Block {
    /// The names of the dimensions.
    pub(crate) dims: Vec<Dim>,
    /// Their sizes.
    pub(crate) shape: Vec<usize>,
    /// The values along these dimensions; whatever stands at an absent entry is never read.
    pub(crate) values: View,
    /// Which entries are present: truths over some of the dimensions; `None`: all.
    pub(crate) mask: Option<Box<Block>>,
}

/// Rows of a table by group, one group behind the other.
#[derive(Debug, Clone)]
pub(crate) struct Groups {
    /// The group of each row.
    pub(crate) of: Arc<Vec<u32>>,
    /// The rows by group.
    pub(crate) rows: Arc<Grouping>,
}

impl Groups {
    /// The number of groups.
    pub(crate) fn count(&self) -> usize {
        self.rows.count()
    }
}

/// Elementwise work over so many entries is done twice rather than kept.
pub(crate) const MANY: usize = 1 << 20;

impl Block {
    /// A number.
    pub(crate) fn scalar(value: f64) -> Block {
        Block::whole(Vec::new(), Vec::new(), Array::doubles(vec![value]))
    }

    /// An absent number.
    pub(crate) fn absent() -> Block {
        Block {
            mask: Some(Box::new(Block::truths(Vec::new(), Vec::new(), vec![false]))),
            ..Block::scalar(0.0)
        }
    }

    /// An array over these dimensions.
    pub(crate) fn whole(dims: Vec<Dim>, shape: Vec<usize>, array: Array) -> Block {
        let values = View::whole(array, &shape);
        Block { dims, shape, values, mask: None }
    }

    /// A block of these truths.
    pub(crate) fn truths(dims: Vec<Dim>, shape: Vec<usize>, truths: Vec<bool>) -> Block {
        Block::whole(dims, shape, Array::truths(truths))
    }

    /// The same number everywhere.
    pub(crate) fn same(value: f64, dims: Vec<Dim>, shape: Vec<usize>) -> Block {
        let steps = shape.iter().map(|_| Step::By(0)).collect();
        let values = View { array: Array::doubles(vec![value]), offset: 0, steps };
        Block { dims, shape, values, mask: None }
    }

    /// A block of these values, present where the truths say (over the same dimensions).
    pub(crate) fn new(dims: Vec<Dim>, shape: Vec<usize>, data: Vec<f64>, mask: Option<Vec<bool>>) -> Block {
        let block = Block::whole(dims, shape, Array::doubles(data));
        match mask {
            None => block,
            Some(mask) => block.present_at(mask),
        }
    }

    /// The same values, present where the truths over the same dimensions say.
    pub(crate) fn present_at(self, mask: Vec<bool>) -> Block {
        let mask = mask.contains(&false).then(|| Block::truths(self.dims.clone(), self.shape.clone(), mask));
        Block { mask: mask.map(Box::new), ..self }
    }

    /// Its dimensions with their sizes.
    pub(crate) fn space(&self) -> impl Iterator<Item = (Dim, usize)> {
        self.dims.iter().copied().zip(self.shape.iter().copied())
    }

    /// The number of entries.
    pub(crate) fn len(&self) -> usize {
        volume(&self.shape)
    }

    /// The position of a dimension.
    pub(crate) fn position(&self, dim: Dim) -> Option<usize> {
        self.dims.iter().position(|d| *d == dim)
    }

    /// The size of a dimension, 1 where it has none.
    pub(crate) fn size(&self, dim: Dim) -> usize {
        self.position(dim).map_or(1, |at| self.shape[at])
    }

    /// Its values as somebody with these dimensions walks them.
    pub(crate) fn view(&self, dims: &[Dim]) -> View {
        let step = |dim: &Dim| self.position(*dim).map_or(Step::By(0), |at| self.values.steps[at].clone());
        // A dimension of one entry that a reader does not have may still be moved by a map.
        let hidden = self.dims.iter().zip(&self.values.steps).filter(|(dim, _)| !dims.contains(dim));
        let more: usize =
            hidden.zip(&self.shape).map(|((_, step), size)| if *size > 0 { step.offset(0) } else { 0 }).sum();
        View {
            array: self.values.array.clone(),
            offset: self.values.offset + more,
            steps: dims.iter().map(step).collect(),
        }
    }

    /// The block with its dimensions in this order, repeated along those that it lacks.
    pub(crate) fn expanded(&self, dims: &[Dim], shape: &[usize]) -> Block {
        Block { dims: dims.to_vec(), shape: shape.to_vec(), values: self.view(dims), mask: self.mask.clone() }
    }

    /// The same block with its dimensions in this order (which must name the same dimensions).
    pub(crate) fn permuted(&self, dims: &[Dim]) -> Block {
        let shape: Vec<usize> = dims.iter().map(|dim| self.size(*dim)).collect();
        self.expanded(dims, &shape)
    }

    /// The slice where a dimension has this position.
    pub(crate) fn slice(mut self, dim: Dim, position: usize) -> Block {
        if let Some(at) = self.position(dim) {
            self.values.offset += self.values.steps[at].offset(position);
            self.values.steps.remove(at);
            self.dims.remove(at);
            self.shape.remove(at);
        }
        self.mask = self.mask.map(|mask| Box::new(mask.slice(dim, position)));
        self
    }

    /// Entries along a dimension picked by position; the dimension gets a new name.
    pub(crate) fn gathered(mut self, dim: Dim, positions: &Arc<Vec<u32>>, name: Dim) -> Block {
        if let Some(at) = self.position(dim) {
            self.values.steps[at] = match &self.values.steps[at] {
                Step::By(0) => Step::By(0),
                Step::By(step) => Step::Map(Arc::clone(positions), *step),
                Step::Map(map, step) => {
                    Step::Map(Arc::new(positions.iter().map(|at| map[*at as usize]).collect()), *step)
                }
            };
            self.dims[at] = name;
            self.shape[at] = positions.len();
        }
        self.mask = self.mask.map(|mask| Box::new(mask.gathered(dim, positions, name)));
        self
    }

    /// The dimension under another name.
    pub(crate) fn renamed(mut self, dim: Dim, name: Dim) -> Block {
        if let Some(at) = self.position(dim) {
            self.dims[at] = name;
        }
        self.mask = self.mask.map(|mask| Box::new(mask.renamed(dim, name)));
        self
    }

    /// The values as an array over the dimensions in their order.
    pub(crate) fn array(&self) -> Array {
        if self.values.is_whole(&self.shape) {
            return self.values.array.clone();
        }
        Array::of(self.len(), Point::of(self.shape.clone(), self.values.clone()).fused())
    }

    /// The same values, one behind the other.
    pub(crate) fn together(self) -> Block {
        let Block { dims, shape, values, mask } = self;
        let array = match values.is_whole(&shape) {
            // The only position along a dimension of one entry may still be a picked one.
            true => values.array,
            false => Array::of(volume(&shape), Point::of(shape.clone(), values).fused()),
        };
        Block { mask, ..Block::whole(dims, shape, array) }
    }

    /// The same for another reader: elementwise work over many entries, which each reader does for itself while it goes
    /// through them, takes no room.
    pub(crate) fn once_more(&self) -> Block {
        if self.values.array.len() < MANY {
            return self.clone();
        }
        let array = self.values.array.again::<Point>();
        Block { values: View { array, ..self.values.clone() }, ..self.clone() }
    }

    /// Present everywhere, with this value where it was absent.
    pub(crate) fn filled(mut self, value: f64) -> Block {
        let Some(mask) = self.mask.take() else { return self };
        point(vec![*mask, self], &[Code::Load(0), Code::Load(1), Code::Number(value), Code::Select])
    }

    /// A function of every entry.
    pub(crate) fn call(self, function: &Function) -> Block {
        self.mapped(&[Code::Load(0), Code::Call(function.clone(), 1)])
    }

    /// The negative.
    pub(crate) fn negated(self) -> Block {
        self.mapped(&[Code::Load(0), Code::Negate])
    }

    /// What comes of every entry and a number.
    pub(crate) fn with(self, binary: Binary, number: f64) -> Block {
        self.mapped(&[Code::Load(0), Code::Number(number), Code::Binary(binary)])
    }

    /// 1 / x
    pub(crate) fn inverse(self) -> Block {
        self.mapped(&[Code::Number(1.0), Code::Load(0), Code::Binary(Binary::Divide)])
    }

    fn mapped(mut self, code: &[Code]) -> Block {
        let mask = self.mask.take();
        Block { mask, ..point(vec![self], code) }
    }

    /// The same values, present only where they compare so with 0.
    pub(crate) fn present_where(self, comparison: Comparison) -> Block {
        let values = Block { mask: None, ..self.clone() };
        let holds = truth(
            vec![values],
            &[Code::Load(0), Code::Number(0.0), Code::Binary(Binary::Compare(comparison))],
        );
        restricted(self, holds)
    }

    /// 1, present where this is absent.
    pub(crate) fn complement(self) -> Block {
        let ones = Block::same(1.0, self.dims.clone(), self.shape.clone());
        let mask = match self.mask {
            None => Block::truths(Vec::new(), Vec::new(), vec![false]),
            Some(mask) => truth(
                vec![*mask],
                &[Code::Load(0), Code::Number(0.0), Code::Binary(Binary::Compare(Comparison::Equal))],
            ),
        };
        Block { mask: Some(Box::new(mask)), ..ones }
    }

    /// 1, present where this is present.
    pub(crate) fn presence(self) -> Block {
        let ones = Block::same(1.0, self.dims, self.shape);
        Block { mask: self.mask, ..ones }
    }

    /// The block with nothing present.
    pub(crate) fn vanished(self) -> Block {
        Block { mask: Some(Box::new(Block::truths(Vec::new(), Vec::new(), vec![false]))), ..self }
    }

    /// The slabs of the block's rows at these positions of other dimensions, absent where there is
    /// none ([`NOWHERE`]).
    pub(crate) fn placed(mut self, dims: &[Dim], shape: &[usize], positions: &Arc<Vec<u32>>) -> Block {
        let rows = self.size(Dim::ROWS);
        let moved = |block: Block| {
            let (all, sizes) = ([dims, &block.dims[1..]].concat(), [shape, &block.shape[1..]].concat());
            let inner = volume(&block.shape[1..]);
            let slabs = Slabs { from: block.array(), positions: Arc::clone(positions), inner };
            Block::whole(all, sizes, Array::of(positions.len() * inner, slabs))
        };
        let mask = match self.mask.take() {
            Some(mask) => Some(moved(truth(vec![mask.beside(rows)], &[Code::Load(0)]))),
            None => positions.contains(&NOWHERE).then(|| {
                let there = positions.iter().map(|at| *at != NOWHERE).collect();
                Block::truths(dims.to_vec(), shape.to_vec(), there)
            }),
        };
        Block { mask: mask.map(Box::new), ..moved(self.beside(rows)) }
    }

    /// The block with the rows, so many, as its first dimension.
    fn beside(&self, rows: usize) -> Block {
        let (dims, shape) = joint(std::iter::once((Dim::ROWS, rows)).chain(self.space()));
        self.expanded(&dims, &shape)
    }
}

/// Dimensions with their sizes, each once. The rows are the slowest: tables are cut and reduced along them.
pub(crate) fn joint(all: impl Iterator<Item = (Dim, usize)>) -> (Vec<Dim>, Vec<usize>) {
    let (mut dims, mut shape) = (Vec::new(), Vec::new());
    for (dim, size) in all {
        if !dims.contains(&dim) {
            dims.push(dim);
            shape.push(size);
        }
    }
    if let Some(at) = dims.iter().position(|dim| *dim == Dim::ROWS) {
        dims[..=at].rotate_right(1);
        shape[..=at].rotate_right(1);
    }
    (dims, shape)
}

/// The dimensions of several blocks together: those of the largest first, in its order.
pub(crate) fn union(blocks: &[&Block]) -> (Vec<Dim>, Vec<usize>) {
    let mut order: Vec<&&Block> = blocks.iter().collect();
    order.sort_by_key(|block| std::cmp::Reverse(block.len()));
    joint(order.into_iter().flat_map(|block| block.space()))
}

/// An elementwise operation on the values of blocks, whatever their masks.
fn operation(blocks: Vec<Block>, code: &[Code], truth: bool) -> Block {
    let (dims, shape) = union(&blocks.iter().collect::<Vec<_>>());
    // The views are made before the blocks go, so that work that nobody else reads is fused.
    let inputs = blocks.into_iter().map(|block| block.view(&dims)).collect();
    let point = Point { shape: shape.clone(), inputs, code: code.to_vec(), truth }.fused();
    let array = Array::of(volume(&shape), point);
    Block::whole(dims, shape, array)
}

fn point(blocks: Vec<Block>, code: &[Code]) -> Block {
    operation(blocks, code, false)
}

fn truth(blocks: Vec<Block>, code: &[Code]) -> Block {
    operation(blocks, code, true)
}

/// Where both masks hold.
fn both(a: Option<Box<Block>>, b: Option<Box<Block>>) -> Option<Box<Block>> {
    match (a, b) {
        (Some(a), Some(b)) => {
            let code = [Code::Load(0), Code::Load(1), Code::Binary(Binary::Multiply)];
            Some(Box::new(truth(vec![*a, *b], &code)))
        }
        (a, b) => a.or(b),
    }
}

/// What comes of two blocks, present where both are.
pub(crate) fn binary(mut a: Block, mut b: Block, binary: Binary) -> Block {
    let mask = both(a.mask.take(), b.mask.take());
    Block { mask, ..point(vec![a, b], &[Code::Load(0), Code::Load(1), Code::Binary(binary)]) }
}

/// 1 where two blocks compare so, absent elsewhere.
pub(crate) fn compared(mut a: Block, mut b: Block, sign: Comparison) -> Block {
    let mask = both(a.mask.take(), b.mask.take());
    let holds = truth(vec![a, b], &[Code::Load(0), Code::Load(1), Code::Binary(Binary::Compare(sign))]);
    let ones = Block::same(1.0, holds.dims.clone(), holds.shape.clone());
    restricted(Block { mask, ..ones }, holds)
}

/// A function of several blocks, present where all are.
pub(crate) fn many(mut blocks: Vec<Block>, function: &Function) -> Block {
    let mask = blocks.iter_mut().map(|block| block.mask.take()).fold(None, both);
    let mut code: Vec<Code> = (0..blocks.len()).map(Code::Load).collect();
    code.push(Code::Call(function.clone(), blocks.len()));
    Block { mask, ..point(blocks, &code) }
}

/// The block with entries present only where the truths hold too.
fn restricted(mut block: Block, holds: Block) -> Block {
    let (dims, shape) = union(&[&block, &holds]);
    let mask = both(block.mask.take(), Some(Box::new(holds)));
    Block { mask, ..block.expanded(&dims, &shape) }
}

/// The block with entries present only where the condition is present too.
pub(crate) fn restrict(block: Block, condition: Block) -> Block {
    let (dims, shape) = union(&[&block, &condition]);
    let mask = both(block.mask.clone(), condition.mask);
    Block { mask, ..block.expanded(&dims, &shape) }
}

/// The sum of blocks, absent ones skipped; absent where all are.
pub(crate) fn sum_present(blocks: Vec<Block>) -> Block {
    let total = blocks.iter().any(|block| block.mask.is_none());
    let masks: Vec<Block> = blocks.iter().filter_map(|block| block.mask.as_deref().cloned()).collect();
    let code = |count: usize, binary: Binary| {
        let mut code = vec![Code::Load(0)];
        (1..count).for_each(|at| code.extend([Code::Load(at), Code::Binary(binary)]));
        code
    };
    let count = blocks.len();
    let filled: Vec<Block> = blocks.into_iter().map(|block| block.filled(0.0)).collect();
    let (dims, shape) = union(&filled.iter().collect::<Vec<_>>());
    let sum = point(filled, &code(count, Binary::Add)).expanded(&dims, &shape);
    if total {
        return sum;
    }
    let any = truth(masks, &code(count, Binary::Add));
    // What a mask has and no value does not occur: a mask has dimensions of its block only.
    Block { mask: Some(Box::new(any)), ..sum }
}

/// How an operation folds numbers.
fn folding(operation: Operation) -> Folding {
    match operation {
        Operation::Sum | Operation::Avg | Operation::Count => Folding::Sum,
        Operation::Product => Folding::Product,
        Operation::Max => Folding::Larger,
        Operation::Min => Folding::Smaller,
    }
}

/// The effect of the same contribution so many times.
pub(crate) fn repeated(block: Block, operation: Operation, times: usize) -> Block {
    match operation {
        Operation::Sum | Operation::Count => block.with(Binary::Multiply, times as f64),
        Operation::Product => block.with(Binary::Power, times as f64),
        Operation::Max | Operation::Min | Operation::Avg => block,
    }
}

/// The values of blocks, multiplied in this order and folded along some dimensions.
pub(crate) fn folded(blocks: Vec<Block>, drop: &[Dim], folding: Folding) -> Block {
    let (dims, shape) = union(&blocks.iter().collect::<Vec<_>>());
    let kept: Vec<Dim> = dims.iter().copied().filter(|dim| !drop.contains(dim)).collect();
    let gone = dims.iter().copied().filter(|dim| drop.contains(dim));
    let order: Vec<Dim> = kept.iter().copied().chain(gone).collect();
    let size = |dim: &Dim| dims.iter().position(|d| d == dim).map_or(1, |at| shape[at]);
    let sizes: Vec<usize> = order.iter().map(size).collect();
    let mut code = vec![Code::Load(0)];
    (1..blocks.len()).for_each(|at| code.extend([Code::Load(at), Code::Binary(Binary::Multiply)]));
    let inputs = blocks.into_iter().map(|block| block.view(&order)).collect();
    let point = Point { shape: sizes.clone(), inputs, code, truth: false }.fused();
    let rest = sizes[..kept.len()].to_vec();
    let array = Array::of(volume(&rest), Fold { point, kept: kept.len(), folding });
    Block::whole(kept, rest, array)
}

/// A block folded along some of its dimensions.
pub(crate) fn reduce(block: Block, drop: &[Dim], operation: Operation) -> Block {
    let gone: Vec<Dim> = block.dims.iter().copied().filter(|dim| drop.contains(dim)).collect();
    if gone.is_empty() && operation != Operation::Count {
        return block;
    }
    let inner: usize = gone.iter().map(|dim| block.size(*dim)).product();
    let (dims, shape) = (block.dims.clone(), block.shape.clone());
    let mask = block.mask.as_ref().map(|mask| mask.once_more());
    let block = if operation == Operation::Count { block.presence() } else { block };
    let folding = folding(operation);
    let result = folded(vec![block.filled(folding.start())], &gone, folding);
    if inner == 0 {
        return result.vanished();
    }
    let Some(mask) = mask else {
        return if operation == Operation::Avg { result.with(Binary::Divide, inner as f64) } else { result };
    };
    let mean = |result: Block| match operation {
        Operation::Avg => {
            let count = folded(vec![mask.once_more().expanded(&dims, &shape)], &gone, Folding::Sum);
            binary(result, count, Binary::Divide)
        }
        _ => result,
    };
    let result = mean(result);
    Block { mask: Some(Box::new(any(mask, &gone))), ..result }
}

/// Where any of the truths along some dimensions holds.
fn any(mask: Block, drop: &[Dim]) -> Block {
    let gone: Vec<Dim> = mask.dims.iter().copied().filter(|dim| drop.contains(dim)).collect();
    if gone.is_empty() {
        return mask;
    }
    truth(vec![folded(vec![mask], &gone, Folding::Larger)], &[Code::Load(0)])
}

/// A block with rows folded into groups.
pub(crate) fn reduce_rows(block: Block, groups: &Groups, operation: Operation) -> Block {
    let rows = groups.of.len();
    let mask = block.mask.clone();
    let folding = folding(operation);
    let filled = if operation == Operation::Count { block.presence() } else { block };
    let by_group = |block: Block, folding: Folding| {
        let block = block.beside(rows);
        let (dims, mut sizes) = (block.dims.clone(), block.shape.clone());
        let segments = Segments {
            groups: Arc::clone(&groups.rows),
            inner: sizes[1..].to_vec(),
            numbers: Vec::new(),
            slabs: vec![block.slabs()],
            constant: 1.0,
            folding,
        };
        sizes[0] = groups.count();
        Block::whole(dims, sizes.clone(), Array::of(volume(&sizes), segments))
    };
    let result = by_group(filled.filled(folding.start()), folding);
    let counts = mask.map(|mask| by_group(*mask, Folding::Sum));
    let result = match operation {
        Operation::Avg => {
            let all = || by_group(Block::scalar(1.0), Folding::Sum);
            binary(result, counts.clone().unwrap_or_else(all), Binary::Divide)
        }
        _ => result,
    };
    let here = counts.map(|counts| {
        let positive = Code::Binary(Binary::Compare(Comparison::Greater));
        Box::new(truth(vec![counts], &[Code::Load(0), Code::Number(0.0), positive]))
    });
    Block { mask: here, ..result }
}

/// The greatest common divisor; of 0 and another, the other.
fn gcd(mut a: u32, mut b: u32) -> u32 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

impl Block {
    /// The values as slabs beside rows: a view whose dense dimensions are in order.
    pub(crate) fn slabs(self) -> View {
        let inner = &self.shape[1..];
        let dense = View { steps: self.values.steps[1..].to_vec(), ..self.values.clone() };
        if dense.in_order(inner) {
            return self.values;
        }
        // Rows that share a slab share its copy, unless there are more places for slabs than rows: positions may count in
        // elements, of which a slab begins at every so many.
        if let Step::Map(map, step) = &self.values.steps[0]
            && let Some(most) = map.iter().max()
            && let apart = map.iter().fold(0, |apart, position| gcd(apart, *position)).max(1)
            && let count = (most / apart) as usize + 1
            && count <= map.len()
        {
            let map: Arc<Vec<u32>> = match apart {
                1 => Arc::clone(map),
                _ => Arc::new(map.iter().map(|position| position / apart).collect()),
            };
            let mut values = self.values.clone();
            values.steps[0] = Step::By(*step * apart as usize);
            let mut shape = self.shape.clone();
            shape[0] = count;
            let array = Array::of(volume(&shape), Point::of(shape.clone(), values).fused());
            let mut view = View::whole(array, &shape);
            view.steps[0] = Step::Map(map, volume(inner));
            return view;
        }
        if self.values.steps[0].by() == Some(0) {
            let mut shape = self.shape.clone();
            shape[0] = 1;
            let array = Array::of(volume(&shape), Point::of(shape.clone(), self.values).fused());
            let mut view = View::whole(array, &shape);
            view.steps[0] = Step::By(0);
            return view;
        }
        self.together().values
    }
}
