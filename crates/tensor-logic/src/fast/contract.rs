//! Sums of products of blocks: the order of contraction, and each pair as a matrix product.
//!
//! Enter at [`contract`]. Up to [`EXACT`] factors the order is the best one there is (dynamic
//! programming over subsets; the cost counts multiply-adds); beyond, summed dimensions are
//! eliminated one by one, the one with the smallest joint space first. A factor that is absent
//! somewhere counts as 0 there, and the same contraction over the masks says where anything was
//! present. That is only right for finite numbers: elsewhere products are formed entry by entry.

use super::block::{Block, Dim, binary, binary_of, reduce, union, volume};
use super::machine::Machine;
use crate::error::Result;
use crate::program::Operation;

/// The spaces of some factors, and the dimensions that are summed.
pub(crate) type Network = (Vec<(Vec<Dim>, Vec<usize>)>, Vec<Dim>);

/// Up to so many factors the best order is searched for.
const EXACT: usize = 8;

/// The product of the blocks, summed over `drop`; absent where no product is present.
///
/// `order` names dimensions in the order in which the result is wanted, as far as that is known.
pub(crate) fn contract(
    machine: &mut Machine,
    blocks: Vec<Block>,
    drop: &[Dim],
    order: &[Dim],
) -> Result<Block> {
    if blocks.is_empty() {
        return Ok(Block::scalar(1.0));
    }
    let (dims, shape) = union(&blocks.iter().collect::<Vec<_>>());
    let mut kept = (Vec::new(), Vec::new());
    for (dim, size) in dims.iter().zip(&shape).filter(|(dim, _)| !drop.contains(dim)) {
        kept.0.push(*dim);
        kept.1.push(*size);
    }
    if volume(&shape) == 0 {
        let len = volume(&kept.1);
        return Ok(Block::new(kept.0, kept.1, vec![0.0; len], Some(vec![false; len])));
    }
    let masked = blocks.iter().any(|block| block.mask.is_some());
    if !masked
        && let [a, b] = blocks.as_slice()
        && drop.iter().all(|dim| a.position(*dim).is_some() == b.position(*dim).is_some())
    {
        // One product, whose terms are those of the sum: right for all numbers.
        let (a, b) = (a.clone(), b.clone());
        std::mem::drop(blocks);
        return pair(machine, a, b, &|dim| !drop.contains(&dim), order);
    }
    if let ([_], false) = (blocks.as_slice(), masked) {
        return exact(machine, &blocks, drop);
    }
    if !blocks.iter().all(Block::is_finite) {
        return exact(machine, &blocks, drop);
    }
    if blocks.len() == 1 || (masked && volume(&shape) <= 256) {
        return exact(machine, &blocks, drop);
    }
    let values =
        blocks.iter().map(|block| Block { data: block.zeroed(), mask: None, ..block.clone() }).collect();
    let mut result = product_sum(machine, values, drop, order)?;
    if !result.is_finite() && volume(&shape) <= 1 << 22 {
        return exact(machine, &blocks, drop);
    }
    let masks: Vec<Block> = blocks.iter().filter_map(Block::mask_block).collect();
    if !masks.is_empty() {
        let counts = product_sum(machine, masks, drop, order)?;
        let counts = counts.expanded(&result.dims, &result.shape);
        let present: Vec<bool> = counts.data.iter().map(|count| *count > 0.5).collect();
        result.mask = present.contains(&false).then(|| std::sync::Arc::new(present));
    }
    Ok(result)
}

/// Entry by entry.
fn exact(machine: &Machine, blocks: &[Block], drop: &[Dim]) -> Result<Block> {
    let mut product: Option<Block> = None;
    for block in blocks {
        product = Some(match product {
            None => block.clone(),
            Some(so_far) => {
                machine.reserve_union(&[&so_far, block])?;
                binary(&so_far, block, |x, y| x * y)
            }
        });
    }
    Ok(reduce(&product.unwrap_or(Block::scalar(1.0)), drop, Operation::Sum))
}

/// The contraction of finite blocks without masks.
fn product_sum(machine: &mut Machine, mut blocks: Vec<Block>, drop: &[Dim], order: &[Dim]) -> Result<Block> {
    let wanted = order;
    if blocks.len() <= 2 {
        return join_all(machine, blocks, drop, &[], wanted);
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
        let mut slots: Vec<Option<Block>> = blocks.into_iter().map(Some).collect();
        for (left, right) in order {
            let (Some(a), Some(b)) = (take(&mut slots, left), take(&mut slots, right)) else { continue };
            let others: Vec<&Block> = slots.iter().flatten().collect();
            let needed =
                |dim: Dim| !drop.contains(&dim) || others.iter().any(|block| block.position(dim).is_some());
            let joined = pair(machine, a, b, &needed, wanted)?;
            slots.push(Some(joined));
        }
        let rest = slots.into_iter().flatten().collect();
        return join_all(machine, rest, drop, &[], wanted);
    }
    let mut open: Vec<Dim> = drop.to_vec();
    while blocks.len() > EXACT && !open.is_empty() {
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
            blocks.push(join_all(machine, with, drop, &others, wanted)?);
        }
    }
    if blocks.len() <= EXACT {
        product_sum(machine, blocks, drop, wanted)
    } else {
        join_all(machine, blocks, drop, &[], wanted)
    }
}

fn take(slots: &mut [Option<Block>], at: usize) -> Option<Block> {
    slots.get_mut(at).and_then(Option::take)
}

/// Joins blocks from the smallest to the largest, and sums what nobody else needs.
fn join_all(
    machine: &mut Machine,
    mut blocks: Vec<Block>,
    drop: &[Dim],
    others: &[Dim],
    wanted: &[Dim],
) -> Result<Block> {
    // Of two the one that is written first stays on the left.
    if blocks.len() > 2 {
        blocks.sort_by_key(|block| std::cmp::Reverse(block.len()));
    } else {
        blocks.reverse();
    }
    let Some(mut result) = blocks.pop() else { return Ok(Block::scalar(1.0)) };
    while let Some(next) = blocks.pop() {
        let needed = |dim: Dim| {
            !drop.contains(&dim)
                || others.contains(&dim)
                || blocks.iter().any(|block| block.position(dim).is_some())
        };
        result = pair(machine, result, next, &needed, wanted)?;
    }
    let gone: Vec<Dim> =
        result.dims.iter().copied().filter(|dim| drop.contains(dim) && !others.contains(dim)).collect();
    Ok(reduce(&result, &gone, Operation::Sum))
}

/// The product of two blocks, summed over what is not needed.
fn pair(
    machine: &mut Machine,
    a: Block,
    b: Block,
    needed: &dyn Fn(Dim) -> bool,
    wanted: &[Dim],
) -> Result<Block> {
    let private = |own: &Block, other: &Block| -> Vec<Dim> {
        own.dims.iter().copied().filter(|dim| !needed(*dim) && other.position(*dim).is_none()).collect()
    };
    let (gone_a, gone_b) = (private(&a, &b), private(&b, &a));
    let mut a = if gone_a.is_empty() { a } else { reduce(&a, &gone_a, Operation::Sum) };
    let mut b = if gone_b.is_empty() { b } else { reduce(&b, &gone_b, Operation::Sum) };
    // The side that the result begins with stands on the left.
    let begins = |own: &Block, other: &Block| {
        let first = own.dims.iter().find(|dim| other.position(**dim).is_none())?;
        wanted.iter().position(|dim| dim == first)
    };
    if let (Some(x), Some(y)) = (begins(&a, &b), begins(&b, &a))
        && y < x
    {
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
    let right: Vec<Dim> = b.dims.iter().copied().filter(|dim| a.position(*dim).is_none()).collect();
    if inner.is_empty() {
        machine.reserve_union(&[&a, &b])?;
        return Ok(binary_of(a, b, |x, y| x * y));
    }
    let size = |block: &Block, dims: &[Dim]| -> usize { dims.iter().map(|dim| block.size(*dim)).product() };
    let (count, m, k, n) = (size(&a, &batch), size(&a, &left), size(&a, &inner), size(&b, &right));
    machine.reserve(count.saturating_mul(m).saturating_mul(n))?;
    let mut data = machine.zeros(count * m * n);
    let large = m * k * n >= 1 << 12;
    let (x, x_steps) = operand(&a, [&batch, &left, &inner], large);
    let (y, y_steps) = operand(&b, [&batch, &inner, &right], large);
    machine.product((count, m, k, n), (&x.data, x_steps), (&y.data, y_steps), &mut data)?;
    let dims = [batch, left, right].concat();
    let shape = dims.iter().map(|dim| a.size(*dim).max(b.size(*dim))).collect();
    Ok(Block { dims, shape, data: std::sync::Arc::new(data), mask: None })
}

/// A block as matrices over three groups of dimensions (batch, rows, columns), and the step of each
/// group: where it lies if that is a matrix or the transpose of one, else a copy in that order.
fn operand(block: &Block, groups: [&Vec<Dim>; 3], large: bool) -> (Block, [usize; 3]) {
    let lies = || {
        let mut steps = [0; 3];
        for (step, dims) in steps.iter_mut().zip(groups) {
            *step = joint_step(block, dims)?;
        }
        let [_, rows, columns] = steps;
        let size = |dims: &Vec<Dim>| dims.iter().map(|dim| block.size(*dim)).product::<usize>();
        let plain = columns == 1 || rows == 1 || size(groups[1]) == 1 || size(groups[2]) == 1;
        (large && plain).then_some(steps)
    };
    if let Some(steps) = lies() {
        return (block.clone(), steps);
    }
    let copy = block.permuted(&groups.map(Vec::as_slice).concat());
    let size = |dims: &Vec<Dim>| dims.iter().map(|dim| block.size(*dim)).product::<usize>();
    let (rows, columns) = (size(groups[1]), size(groups[2]));
    (copy, [rows * columns, columns, 1])
}

/// The distance of neighbours along several dimensions taken as one, if there is one.
fn joint_step(block: &Block, dims: &[Dim]) -> Option<usize> {
    let all = block.strides_along(dims);
    let mut found: Option<(usize, usize)> = None;
    for (dim, step) in dims.iter().zip(all).rev() {
        let size = block.size(*dim);
        if size == 1 {
            continue;
        }
        found = match found {
            None => Some((step, step * size)),
            Some((first, next)) if next == step => Some((first, step * size)),
            Some(_) => return None,
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
                let work = space(a | b) + space(result[set]);
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
