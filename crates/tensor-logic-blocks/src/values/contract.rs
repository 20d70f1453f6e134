//! Sums of products of blocks: the order of contraction, and each pair as a product of matrices.
//!
//! Enter at [`contract`]. Up to [`EXACT`] factors the order is the best one there is (dynamic
//! programming over subsets; the cost counts multiply-adds); beyond, summed dimensions are
//! eliminated one by one, the one with the smallest joint space first. A factor that is absent
//! somewhere counts as 0 there, and the same contraction over the masks says where anything was
//! present. That is only right for finite numbers: where the result is not finite, the products are
//! formed entry by entry instead ([`Machine::suspect`]), or, where these are too many and all numbers are finite, with an
//! exponent of each intermediate block beside it.

use std::cell::Cell;

use crate::error::{Refusal, Result};
use crate::kernels::{Array, Binary, Folding, Matrices, Product, Step, volume};
use crate::program::Operation;
use crate::store::block::{Block, Dim, binary, folded, reduce, restrict, union};
use crate::store::doubt::{Doubt, all_finite};
use crate::store::machine::Machine;

/// Up to so many factors the best order is searched for.
const EXACT: usize = 8;
/// So many products are formed one by one at most where their sum, formed in another order, was not finite.
const ONE_BY_ONE: usize = 1 << 20;
/// Powers of two up to this one, and their inverses, are numbers of both types.
const EXPONENT: i64 = 120;

/// What is contracted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Contraction<'a> {
    /// The scope that asks: what is remembered of it if its numbers turn out not to be finite.
    pub(crate) scope: u64,
    /// The dimensions that are summed.
    pub(crate) drop: &'a [Dim],
    /// Dimensions in the order in which the result is wanted, as far as that is known.
    pub(crate) order: &'a [Dim],
    /// A number that every product is multiplied by.
    pub(crate) scale: f64,
    /// Where intermediate blocks keep to numbers around 1: the power of two that was taken out of them.
    pub(crate) power: Option<&'a Cell<i64>>,
}

/// The products of the blocks, summed; absent where no product is present.
pub(crate) fn contract(machine: &mut Machine, blocks: Vec<Block>, what: Contraction<'_>) -> Result<Block> {
    let Contraction { scope, drop, scale, .. } = what;
    if blocks.is_empty() {
        return Ok(Block::scalar(scale));
    }
    let (dims, shape) = union(&blocks.iter().collect::<Vec<_>>());
    if volume(&shape) == 0 {
        let kept = dims.iter().zip(&shape).filter(|(dim, _)| !drop.contains(dim));
        let (dims, shape) = kept.map(|(dim, size)| (*dim, *size)).unzip();
        return Ok(Block::same(0.0, dims, shape).vanished());
    }
    let masked = blocks.iter().any(|block| block.mask.is_some());
    if machine.exact.contains(&scope) || (blocks.len() == 1 && masked) {
        let many =
            blocks.len() > 2 && volume(&shape) > ONE_BY_ONE && dims.iter().any(|dim| drop.contains(dim));
        if many && blocks.iter().all(|block| is_finite(machine, block)) {
            return with_powers(machine, blocks, what);
        }
        let mut result = exact(machine, blocks, drop)?;
        if scale != 1.0 {
            result = result.with(Binary::Multiply, scale);
        }
        return Ok(result);
    }
    if !masked
        && blocks.len() > 2
        && !drop.iter().any(|dim| blocks.iter().any(|b| b.position(*dim).is_some()))
    {
        let is_number = |block: &Block| block.len() == 1;
        if blocks.iter().filter(|block| !is_number(block)).count() == 1 {
            let (numbers, others): (Vec<Block>, Vec<Block>) = blocks.into_iter().partition(is_number);
            let other = others.into_iter().next().unwrap_or(Block::scalar(1.0));
            return Ok(scaled(machine, numbers, other, what));
        }
    }
    let split = blocks.len() > 2 || !drop.iter().all(|dim| blocks.iter().all(|b| b.position(*dim).is_some()));
    let masks: Vec<Block> =
        blocks.iter().filter_map(|block| block.mask.as_deref().map(Block::once_more)).collect();
    let values = blocks.into_iter().map(|block| block.filled(0.0)).collect();
    let mut result = product_sum(machine, values, what)?;
    if masked || split {
        machine.suspect(scope, &result, Doubt::NotFinite);
    }
    if !masks.is_empty() {
        let counts = product_sum(machine, masks, Contraction { scale: 1.0, ..what })?;
        let present = counts.present_where(crate::ast::Comparison::Greater).mask;
        result.mask = present.filter(|mask| !is_full(machine, mask));
    }
    Ok(result)
}

/// Masks of more entries are not looked through.
const LOOKED: usize = 1 << 22;

/// Whether tuples alone decide what is present, and all of it is.
fn is_full(machine: &Machine, mask: &Block) -> bool {
    let truths = mask.array();
    truths.len() <= LOOKED
        && machine.is_structure(&truths)
        && machine.computed_once(&truths).numbers::<f64>().iter().all(|there| *there != 0.0)
}

/// Numbers times a block. They are multiplied with each other first: if what comes of that is finite, then the results are
/// what they would be in any other order.
fn scaled(machine: &mut Machine, numbers: Vec<Block>, other: Block, what: Contraction<'_>) -> Block {
    let mut numbers = numbers.into_iter();
    let first = numbers.next().unwrap_or(Block::scalar(1.0));
    let scale = numbers.fold(first, |so_far, next| binary(so_far, next, Binary::Multiply));
    let scale = if what.scale == 1.0 { scale } else { scale.with(Binary::Multiply, what.scale) };
    machine.suspect(what.scope, &scale, Doubt::NotFinite);
    binary(other, scale, Binary::Multiply)
}

fn is_finite(machine: &Machine, block: &Block) -> bool {
    let block = block.clone().filled(0.0);
    all_finite(&machine.numbers(&block.values.array).doubles())
}

/// The contraction of finite blocks whose products leave the floating-point numbers on the way, or in the end: the largest
/// number of each intermediate block is brought between 1 and 2, which changes no digit of what can be told from 0 beside
/// it.
fn with_powers(machine: &mut Machine, blocks: Vec<Block>, what: Contraction<'_>) -> Result<Block> {
    let masks: Vec<Block> = blocks.iter().filter_map(|block| block.mask.as_deref().cloned()).collect();
    let sum = |machine: &mut Machine, blocks: Vec<Block>, scale: f64| {
        let power = Cell::new(0);
        let what = Contraction { scale, power: Some(&power), ..what };
        let blocks = blocks.into_iter().map(|block| near_one(machine, block, &power)).collect();
        let result = product_sum(machine, blocks, what)?;
        Ok::<_, Refusal>((near_one(machine, result, &power), power.get()))
    };
    let values = blocks.into_iter().map(|block| block.filled(0.0)).collect();
    let (mut result, mut power) = sum(machine, values, what.scale)?;
    // Beyond these steps a number between 1 and 2 is infinite, or 0.
    power = power.clamp(-2200, 2200);
    while power != 0 {
        let step = power.clamp(-EXPONENT, EXPONENT);
        result = result.with(Binary::Multiply, 2_f64.powi(step as i32));
        power -= step;
    }
    if !masks.is_empty() {
        let (counts, _) = sum(machine, masks, 1.0)?;
        result.mask = counts.present_where(crate::ast::Comparison::Greater).mask;
    }
    Ok(result)
}

/// An intermediate block, with its exponent counted elsewhere where that is asked for.
fn kept(machine: &Machine, block: Block, what: Contraction<'_>) -> Block {
    match what.power {
        Some(power) => near_one(machine, block, power),
        None => block,
    }
}

/// A block times the power of two that brings its largest number between 1 and 2; the exponent is counted elsewhere.
fn near_one(machine: &Machine, block: Block, power: &Cell<i64>) -> Block {
    let numbers = machine.numbers(&block.values.array).doubles();
    let largest = numbers.iter().fold(0.0_f64, |so_far, value| so_far.max(value.abs()));
    if largest == 0.0 || !largest.is_finite() {
        return block;
    }
    let exponent = (largest.log2().floor() as i64).clamp(-EXPONENT, EXPONENT);
    power.set(power.get() + exponent);
    let block = block.with(Binary::Multiply, 2_f64.powi(-exponent as i32));
    if exponent.abs() < EXPONENT { block } else { near_one(machine, block, power) }
}

/// Entry by entry, in the order of the factors.
fn exact(machine: &Machine, mut blocks: Vec<Block>, drop: &[Dim]) -> Result<Block> {
    let masks: Vec<Block> =
        blocks.iter_mut().filter_map(|block| block.mask.take()).map(|mask| *mask).collect();
    let gone: Vec<Dim> = {
        let (dims, _) = union(&blocks.iter().collect::<Vec<_>>());
        dims.into_iter().filter(|dim| drop.contains(dim)).collect()
    };
    if masks.is_empty() && !gone.is_empty() {
        return Ok(folded(blocks, &gone, Folding::Sum));
    }
    // One that is folded takes no room.
    if blocks.len() > 1 || gone.is_empty() {
        machine.reserve_union(&blocks.iter().collect::<Vec<_>>())?;
    }
    let mut blocks = blocks.into_iter();
    let first = blocks.next().unwrap_or(Block::scalar(1.0));
    let mut product = blocks.fold(first, |so_far, next| binary(so_far, next, Binary::Multiply));
    for mask in masks {
        product = restrict(product, Block { mask: Some(Box::new(mask.clone())), ..mask });
    }
    Ok(reduce(product, drop, Operation::Sum))
}

/// The contraction of finite blocks without masks.
fn product_sum(machine: &mut Machine, mut blocks: Vec<Block>, what: Contraction<'_>) -> Result<Block> {
    let drop = what.drop;
    if blocks.len() <= 2 {
        return join_all(machine, blocks, what, &[]);
    }
    if blocks.len() <= EXACT {
        let spaces: Vec<(Vec<Dim>, Vec<usize>)> =
            blocks.iter().map(|block| (block.dims.clone(), block.shape.clone())).collect();
        let key = (spaces, drop.to_vec());
        let order = match machine.orders.get(&key) {
            Some(order) => order.clone(),
            None => {
                let order = best_order(&key.0, drop);
                machine.orders.insert(key, order.clone());
                order
            }
        };
        let steps = order.len();
        let mut slots: Vec<Option<Block>> = blocks.into_iter().map(Some).collect();
        for (nth, (a, b)) in order.into_iter().enumerate() {
            let (Some(a), Some(b)) = (take(&mut slots, a), take(&mut slots, b)) else { continue };
            let needed = |dim: Dim| {
                !drop.contains(&dim) || slots.iter().flatten().any(|block| block.position(dim).is_some())
            };
            let scale = if nth + 1 == steps { what.scale } else { 1.0 };
            let joined = pair(machine, a, b, &needed, Contraction { scale, ..what })?;
            slots.push(Some(kept(machine, joined, what)));
        }
        let result = slots.pop().flatten().unwrap_or(Block::scalar(1.0));
        return Ok(reduce(result, drop, Operation::Sum));
    }
    // Eliminate one summed dimension after the other.
    let mut open: Vec<Dim> = drop.to_vec();
    while !open.is_empty() && blocks.len() > EXACT {
        let space = |dim: &Dim| {
            let with: Vec<&Block> = blocks.iter().filter(|block| block.position(*dim).is_some()).collect();
            volume(&union(&with).1)
        };
        let next = open.iter().copied().min_by_key(space).unwrap_or(Dim::ROWS);
        open.retain(|dim| *dim != next);
        let (with, without): (Vec<Block>, Vec<Block>) =
            blocks.into_iter().partition(|block| block.position(next).is_some());
        let others: Vec<Dim> = without.iter().flat_map(|block| block.dims.iter().copied()).collect();
        blocks = without;
        if !with.is_empty() {
            blocks.push(join_all(machine, with, Contraction { scale: 1.0, ..what }, &others)?);
        }
    }
    if blocks.len() <= EXACT {
        product_sum(machine, blocks, what)
    } else {
        join_all(machine, blocks, what, &[])
    }
}

fn take(slots: &mut [Option<Block>], at: usize) -> Option<Block> {
    slots.get_mut(at).and_then(Option::take)
}

/// Joins blocks from the smallest to the largest, and sums what nobody else needs.
fn join_all(
    machine: &mut Machine,
    mut blocks: Vec<Block>,
    what: Contraction<'_>,
    others: &[Dim],
) -> Result<Block> {
    let drop = what.drop;
    // Of two the one that is written first stays on the left.
    if blocks.len() > 2 {
        blocks.sort_by_key(|block| std::cmp::Reverse(block.len()));
    } else {
        blocks.reverse();
    }
    let mut scale = what.scale;
    let Some(mut result) = blocks.pop() else { return Ok(Block::scalar(scale)) };
    while let Some(next) = blocks.pop() {
        let needed = |dim: Dim| {
            !drop.contains(&dim)
                || others.contains(&dim)
                || blocks.iter().any(|block| block.position(dim).is_some())
        };
        let now = if blocks.is_empty() { std::mem::replace(&mut scale, 1.0) } else { 1.0 };
        let joined = pair(machine, result, next, &needed, Contraction { scale: now, ..what })?;
        result = kept(machine, joined, what);
    }
    let gone: Vec<Dim> =
        result.dims.iter().copied().filter(|dim| drop.contains(dim) && !others.contains(dim)).collect();
    let result = reduce(result, &gone, Operation::Sum);
    Ok(if scale == 1.0 { result } else { result.with(Binary::Multiply, scale) })
}

/// The product of two blocks, summed over what is not needed.
fn pair(
    machine: &mut Machine,
    a: Block,
    b: Block,
    needed: &dyn Fn(Dim) -> bool,
    what: Contraction<'_>,
) -> Result<Block> {
    let private = |own: &Block, other: &Block| -> Vec<Dim> {
        own.dims.iter().copied().filter(|dim| !needed(*dim) && other.position(*dim).is_none()).collect()
    };
    let (gone_a, gone_b) = (private(&a, &b), private(&b, &a));
    let mut a = reduce(a, &gone_a, Operation::Sum);
    let mut b = reduce(b, &gone_b, Operation::Sum);
    // The side that the result begins with stands on the left; so it is already in the order of the left side, also
    // where a function stands between.
    let order: Vec<Dim> = machine.wanted.iter().chain(what.order).copied().collect();
    let place = |dim: &Dim| order.iter().position(|other| other == dim);
    let begins = |own: &Block, other: &Block| {
        own.dims.iter().filter(|dim| other.position(**dim).is_none()).filter_map(place).min()
    };
    let turned = match (begins(&a, &b), begins(&b, &a)) {
        (Some(x), Some(y)) => y < x,
        // The order of what is summed later is nobody's: the longer side stands on the left, as tiles of rows want it.
        (Some(_), None) => b.len() > a.len(),
        (None, _) => false,
    };
    if turned {
        std::mem::swap(&mut a, &mut b);
    }
    let (mut batch, mut left, mut inner) = (Vec::new(), Vec::new(), Vec::new());
    for dim in &a.dims {
        match (b.position(*dim).is_some(), needed(*dim)) {
            (true, true) => batch.push(*dim),
            (true, false) => inner.push(*dim),
            (false, _) => left.push(*dim),
        }
    }
    let mut right: Vec<Dim> = b.dims.iter().copied().filter(|dim| a.position(*dim).is_none()).collect();
    if inner.is_empty() {
        machine.reserve_union(&[&a, &b])?;
        // In the order of the result, where that is known of all dimensions.
        let mut dims = [a.dims.as_slice(), &right].concat();
        let known = !dims.contains(&Dim::ROWS) && dims.iter().all(|dim| place(dim).is_some());
        if known {
            dims.sort_by_key(place);
            let shape: Vec<usize> = dims.iter().map(|dim| a.size(*dim).max(b.size(*dim))).collect();
            a = a.expanded(&dims, &shape);
        }
        let product = binary(a, b, Binary::Multiply);
        return Ok(if what.scale == 1.0 { product } else { product.with(Binary::Multiply, what.scale) });
    }
    let size = |block: &Block, dims: &[Dim]| -> usize { dims.iter().map(|dim| block.size(*dim)).product() };
    let (count, m, k, n) = (size(&a, &batch), size(&a, &left), size(&a, &inner), size(&b, &right));
    machine.reserve(count.saturating_mul(m).saturating_mul(n))?;
    if m == 1 || n == 1 {
        let result = folded(vec![a, b], &inner, Folding::Sum);
        return Ok(if what.scale == 1.0 { result } else { result.with(Binary::Multiply, what.scale) });
    }
    // Where the two sides alternate in the result, all but its last dimensions of each are looped over.
    let mut private = [left.as_slice(), &right].concat();
    private.sort_by_key(place);
    let of_left = |dim: &Dim| left.contains(dim);
    let ends_left = private.last().is_some_and(of_left);
    let behind = private.iter().rev().take_while(|dim| of_left(dim) == ends_left).count();
    let before = private.iter().rev().skip(behind).take_while(|dim| of_left(dim) != ends_left).count();
    let looped = private.len() - behind - before;
    let known = private.iter().all(|dim| machine.wanted.contains(dim));
    let of_loops: usize = private[..looped].iter().map(|dim| a.size(*dim).max(b.size(*dim))).product();
    if known && looped > 0 && m * k * n / of_loops.max(1) >= LOOPED / 2 {
        let last = private.split_off(private.len() - behind);
        let first = private.split_off(looped);
        batch.extend(private);
        (left, right) = (first, last);
        if ends_left {
            std::mem::swap(&mut a, &mut b);
        }
    }
    // Where private dimensions do not lie as one, the outer ones are looped over with the batch.
    let (mut of_a, mut of_b) = (Vec::new(), Vec::new());
    let large = |own: usize, extra: &[Dim], block: &Block| own / size(block, extra).max(1) >= LOOPED;
    if lies(&a, [&batch, &left, &inner]).is_none() {
        let outer = (1..left.len()).find(|at| lies(&a, [&left[..*at], &left[*at..], &inner]).is_some());
        if let Some(at) = outer.filter(|at| large(m * k * n, &left[..*at], &a)) {
            of_a = left.drain(..at).collect();
        }
    } else if lies(&b, [&batch, &inner, &right]).is_none() {
        let outer = (1..right.len()).find(|at| lies(&b, [&right[..*at], &inner, &right[*at..]]).is_some());
        if let Some(at) = outer.filter(|at| large(m * k * n, &right[..*at], &b)) {
            of_b = right.drain(..at).collect();
        }
    }
    let loops = [batch, of_a, of_b].concat();
    let (m, n) = (size(&a, &left), size(&b, &right));
    let sizes: Vec<usize> = loops.iter().map(|dim| a.size(*dim).max(b.size(*dim))).collect();
    let dims = [loops.as_slice(), &left, &right].concat();
    let shape: Vec<usize> = dims.iter().map(|dim| a.size(*dim).max(b.size(*dim))).collect();
    let x = operand(a, [&loops, &left, &inner]);
    let y = operand(b, [&loops, &inner, &right]);
    let product = Product { batch: sizes, m, k, n, a: x, b: y, scale: what.scale };
    Ok(Block::whole(dims, shape.clone(), Array::of(volume(&shape), product)))
}

/// Products of at least so many multiply-adds are worth a loop over them instead of a copy.
const LOOPED: usize = 1 << 14;

/// A block as matrices over three groups of dimensions (batch, rows, columns) where it lies, if that is
/// a matrix or the transpose of one. Dimensions of the batch that it lacks repeat it.
fn lies(block: &Block, groups: [&[Dim]; 3]) -> Option<Matrices> {
    let [batch, rows, columns] = groups;
    let step = |dim: &Dim| block.position(*dim).map_or(Some(0), |at| block.values.steps[at].by());
    let batch: Option<Vec<usize>> = batch.iter().map(step).collect();
    let (row, column) = (joint_step(block, rows)?, joint_step(block, columns)?);
    let size = |dims: &[Dim]| dims.iter().map(|dim| block.size(*dim)).product::<usize>();
    let (height, width) = (size(rows), size(columns));
    // Rows that overlap or repeat are no matrix of the kernel's.
    let by_row = column == 1 && (row >= width || height == 1);
    let by_column = row == 1 && (column >= height || width == 1);
    let thin = (height == 1 || width == 1) && row > 0 && column > 0;
    let array = block.values.array.clone();
    let found = Matrices { array, offset: block.values.offset, batch: batch?, row, column };
    (by_row || by_column || thin).then_some(found)
}

/// The same, of a copy in that order where it does not lie so.
fn operand(block: Block, groups: [&[Dim]; 3]) -> Matrices {
    if let Some(found) = lies(&block, groups) {
        return found;
    }
    // What stands together in the block stays together in its copy.
    let [batch, rows, columns] = groups;
    let step = |dim: &&Dim| {
        let at = block.position(**dim).filter(|at| block.shape[*at] > 1)?;
        block.values.steps[at].by().filter(|step| *step > 0)
    };
    let nearest = |dims: &[Dim]| dims.iter().filter_map(|dim| step(&dim)).min().unwrap_or(usize::MAX);
    let turned = nearest(rows) < nearest(columns);
    let order = if turned { [batch, columns, rows] } else { groups };
    let own: Vec<Dim> = order.concat().into_iter().filter(|dim| block.position(*dim).is_some()).collect();
    // Only the copy is left: elementwise work that nobody else reads is done once, in the order of the copy.
    let permuted = block.permuted(&own);
    drop(block);
    let copy = permuted.together();
    let size = |dims: &[Dim]| dims.iter().map(|dim| copy.size(*dim)).product::<usize>();
    let (row, column) = if turned { (1, size(rows)) } else { (size(columns), 1) };
    // A dimension of the batch that the copy lacks repeats it.
    let step = |dim: &Dim| copy.position(*dim).and_then(|at| copy.values.steps[at].by()).unwrap_or(0);
    Matrices { offset: 0, batch: batch.iter().map(step).collect(), row, column, array: copy.values.array }
}

/// The distance of neighbours along several dimensions taken as one, if there is one.
fn joint_step(block: &Block, dims: &[Dim]) -> Option<usize> {
    let mut found: Option<(usize, usize)> = None;
    for dim in dims.iter().rev() {
        let (size, step) = (block.size(*dim), block.position(*dim).map(|at| &block.values.steps[at]));
        let step = step.map_or(Some(0), Step::by);
        if size == 1 {
            // Its only position may be a picked one.
            step?;
            continue;
        }
        found = match (found, step?) {
            (None, step) => Some((step, step * size)),
            (Some((first, next)), step) if next == step => Some((first, step * size)),
            (Some(_), _) => return None,
        };
    }
    Some(found.map_or(1, |(step, _)| step))
}

/// The cheapest order of pairwise contractions: positions of the operands, where the result of
/// step i gets the position `spaces.len() + i`.
pub(crate) fn best_order(spaces: &[(Vec<Dim>, Vec<usize>)], drop: &[Dim]) -> Vec<(usize, usize)> {
    let n = spaces.len();
    let mut dims: Vec<(Dim, f64)> = Vec::new();
    for (own, shape) in spaces {
        for (dim, size) in own.iter().zip(shape) {
            if !dims.iter().any(|(other, _)| other == dim) {
                dims.push((*dim, *size as f64));
            }
        }
    }
    if dims.len() > 128 || n > 16 {
        return (1..n).map(|at| if at == 1 { (0, 1) } else { (n + at - 2, at) }).collect();
    }
    let bit = |dim: &Dim| dims.iter().position(|(other, _)| other == dim).map_or(0, |at| 1_u128 << at);
    let own: Vec<u128> =
        spaces.iter().map(|(dims, _)| dims.iter().fold(0, |set, dim| set | bit(dim))).collect();
    let dropped: u128 = drop.iter().fold(0, |set, dim| set | bit(dim));
    let space = |set: u128| -> f64 {
        dims.iter().enumerate().filter(|(at, _)| set >> at & 1 == 1).map(|(_, (_, size))| *size).product()
    };
    let full = (1_usize << n) - 1;
    // The dimensions that the contraction of a subset has.
    let result: Vec<u128> = (0..=full)
        .map(|set| {
            let inside = (0..n).filter(|at| set >> at & 1 == 1).fold(0, |dims, at| dims | own[at]);
            let outside = (0..n).filter(|at| set >> at & 1 == 0).fold(0, |dims, at| dims | own[at]);
            inside & (outside | !dropped)
        })
        .collect();
    let mut cost = vec![f64::INFINITY; full + 1];
    let mut split = vec![0_usize; full + 1];
    for set in 1..=full {
        if set & (set - 1) == 0 {
            cost[set] = 0.0;
            continue;
        }
        let mut part = (set - 1) & set;
        while part > 0 {
            let other = set & !part;
            if part < other {
                let (a, b) = (result[part], result[other]);
                // A sum that is no product of matrices costs more for each multiply-add.
                let summed = a & b & !result[set];
                let thin = summed != 0 && (a & !b & result[set] == 0 || b & !a & result[set] == 0);
                let work = space(a | b) * if thin { 4.0 } else { 1.0 } + space(result[set]);
                let total = cost[part] + cost[other] + work;
                if total < cost[set] {
                    cost[set] = total;
                    split[set] = part;
                }
            }
            part = (part - 1) & set;
        }
    }
    let mut order = Vec::new();
    unfold(full, n, &split, &mut order);
    order
}

/// Appends the steps that contract a subset; returns the position of its result.
fn unfold(set: usize, n: usize, split: &[usize], order: &mut Vec<(usize, usize)>) -> usize {
    if set & (set - 1) == 0 {
        return set.trailing_zeros() as usize;
    }
    let left = unfold(split[set], n, split, order);
    let right = unfold(set & !split[set], n, split, order);
    order.push((left, right));
    n + order.len() - 1
}
