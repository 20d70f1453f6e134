//! Offsets of elements in an array: tables, one for each set of dimensions that move together.
//!
//! `Image[x+dx, y+dy, c]` has three tables: over (x, dx), over (y, dy) and over c; the offset of
//! an element is their sum. An offset below 0 is outside of the tensor.

use std::sync::{Arc, OnceLock};

use super::block::{Block, Dim, joint};
use crate::kernels::{Array, NOWHERE as NO_SLAB, Places, Slabs, Step, View, advance, strides, volume};

/// Outside of the domain.
pub(crate) const OUTSIDE: i64 = -(1 << 52);
/// The index function has no value.
pub(crate) const NOWHERE: i64 = -(1 << 57);

/// Offsets that depend on these dimensions only.
#[derive(Debug, Clone)]
pub(crate) struct Part {
    pub(crate) dims: Vec<Dim>,
    pub(crate) shape: Vec<usize>,
    pub(crate) table: Table,
}

/// Offsets by position.
#[derive(Debug, Clone)]
pub(crate) enum Table {
    /// All inside: along each dimension so far behind the one before.
    Even {
        first: i64,
        steps: Vec<i64>,
        shape: Vec<usize>,
    },
    Each(Vec<i64>),
}

impl Table {
    fn len(&self) -> usize {
        match self {
            Table::Even { shape, .. } => volume(shape),
            Table::Each(offsets) => offsets.len(),
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Table::Even { shape, .. } => 8 + 16 * shape.len(),
            Table::Each(offsets) => 8 * offsets.len(),
        }
    }

    #[inline(always)]
    fn at(&self, position: usize) -> i64 {
        match self {
            Table::Even { first, steps, shape } => {
                let mut rest = position;
                shape.iter().zip(steps).rev().fold(*first, |sum, (size, step)| {
                    let at = rest % size;
                    rest /= size;
                    sum + at as i64 * step
                })
            }
            Table::Each(offsets) => offsets[position],
        }
    }

    fn iter(&self) -> impl Iterator<Item = i64> {
        (0..self.len()).map(|position| self.at(position))
    }

    /// Whether every offset is inside.
    fn inside(&self) -> bool {
        match self {
            Table::Even { .. } => true,
            Table::Each(offsets) => offsets.iter().all(|offset| *offset >= 0),
        }
    }

    fn plus(&self, other: &Table) -> Table {
        match (self, other) {
            (Table::Even { first, steps, shape }, Table::Even { first: more, steps: others, .. }) => {
                let steps = steps.iter().zip(others).map(|(step, by)| step + by).collect();
                Table::Even { first: first + more, steps, shape: shape.clone() }
            }
            (one, other) => Table::Each(one.iter().zip(other.iter()).map(|(a, b)| a + b).collect()),
        }
    }
}

/// Offsets of elements.
#[derive(Debug, Clone, Default)]
pub(crate) struct Offsets {
    constant: i64,
    pub(crate) parts: Vec<Part>,
    /// What they are apart from their constant, once somebody asked.
    split: OnceLock<Split>,
}

/// What offsets are made of: what the rows add, and steps along the dense dimensions.
#[derive(Debug, Clone, Default)]
struct Split {
    /// The part that depends on the rows alone.
    rows: Option<usize>,
    /// What does not depend on the rows, where that is regular; `None` also where more parts than one do.
    others: Option<(i64, Vec<Regular>)>,
    /// Whether a row leads outside, and the largest offset of a row.
    outside: bool,
    most: i64,
    /// The offsets of the rows as positions; 0 where a row leads outside.
    map: Option<Arc<Vec<u32>>>,
}

/// A dimension, its size and its stride.
type Regular = (Dim, usize, i64);

impl Offsets {
    pub(crate) fn bytes(&self) -> usize {
        self.parts.iter().map(|part| part.table.bytes() + 64).sum::<usize>() + 32
    }

    /// The dimensions that they depend on.
    pub(crate) fn space(&self) -> (Vec<Dim>, Vec<usize>) {
        joint(self.parts.iter().flat_map(|part| part.dims.iter().copied().zip(part.shape.iter().copied())))
    }

    pub(crate) fn add(&mut self, part: Part) {
        if part.dims.is_empty() {
            self.constant += part.table.iter().next().unwrap_or(0);
        } else if let Some(same) = self.parts.iter_mut().find(|other| other.dims == part.dims) {
            same.table = same.table.plus(&part.table);
        } else {
            self.parts.push(part);
        }
    }

    /// Whether every offset is inside.
    pub(crate) fn total(&self) -> bool {
        self.constant >= 0 && self.parts.iter().all(|part| part.table.inside())
    }

    /// The offsets over a space that has at least their dimensions; negative ones are outside.
    pub(crate) fn over(&self, dims: &[Dim], shape: &[usize]) -> Vec<i64> {
        let mut result = vec![self.constant; volume(shape)];
        let Some((inner, outer)) = shape.split_last() else {
            self.parts.iter().for_each(|part| result[0] += part.table.at(0));
            return result;
        };
        if result.is_empty() {
            return result;
        }
        for part in &self.parts {
            let own = strides(&part.shape);
            let step = |dim: &Dim| part.dims.iter().position(|other| other == dim).map_or(0, |at| own[at]);
            let steps: Vec<usize> = dims.iter().map(step).collect();
            let mut places = vec![0; outer.len()];
            let along = steps[outer.len()];
            for run in result.chunks_exact_mut(*inner) {
                let from: usize = places.iter().zip(&steps).map(|(place, step)| place * step).sum();
                let offset = |at: usize| part.table.at(from + at * along);
                run.iter_mut().enumerate().for_each(|(at, slot)| *slot += offset(at));
                advance(outer, &mut places);
            }
        }
        result
    }

    /// Whether the offsets over this space are those of an array of `len` elements, in order.
    pub(crate) fn whole(&self, dims: &[Dim], shape: &[usize], len: usize) -> bool {
        let Some((constant, regular)) = self.regular() else { return false };
        let expected = strides(shape);
        constant == 0
            && volume(shape) == len
            && dims.len() == regular.len()
            && dims.iter().zip(&expected).all(|(dim, expected)| {
                regular
                    .iter()
                    .any(|(own, size, stride)| own == dim && (*size == 1 || *stride == *expected as i64))
            })
    }

    /// The strides of dimensions, if the offsets are a constant and `Σ stride · position`, all inside; the largest
    /// step first, as in an array.
    fn regular(&self) -> Option<(i64, &[Regular])> {
        let split = self.split();
        let (constant, regular) = split.others.as_ref().filter(|_| split.rows.is_none())?;
        Some((self.constant + constant, regular))
    }

    fn split(&self) -> &Split {
        self.split.get_or_init(|| {
            let (rows, others): (Vec<usize>, Vec<usize>) =
                (0..self.parts.len()).partition(|at| self.parts[*at].dims.as_slice() == [Dim::ROWS]);
            let others = others.into_iter().map(|at| &self.parts[at]);
            let others = if rows.len() < 2 { regular(others) } else { None };
            let Some(at) = rows.first().copied() else { return Split { others, ..Split::default() } };
            let table = &self.parts[at].table;
            let outside = !table.inside();
            let most = table.iter().max().unwrap_or(0).max(0);
            let map: Option<Vec<u32>> =
                table.iter().map(|offset| u32::try_from(offset.max(0)).ok()).collect();
            Split { rows: Some(at), others, outside, most, map: map.map(Arc::new) }
        })
    }

    /// The elements of an array.
    pub(crate) fn read(&self, array: &Array, zero_outside: bool) -> Result<Block, usize> {
        if let Some(view) = self.view(array, zero_outside) {
            return Ok(view);
        }
        let (dims, shape) = self.space();
        let offsets = self.over(&dims, &shape);
        if array.len() >= NO_SLAB as usize || offsets.len() >= NO_SLAB as usize {
            return Err(offsets.len());
        }
        let place = |offset: &i64| u32::try_from(*offset).ok().filter(|at| (*at as usize) < array.len());
        let positions: Vec<u32> = offsets.iter().map(|offset| place(offset).unwrap_or(NO_SLAB)).collect();
        let absent = positions.contains(&NO_SLAB);
        let here = |offset: &i64| *offset >= 0 || (zero_outside && *offset > NOWHERE / 2);
        let mask: Option<Vec<bool>> = absent.then(|| offsets.iter().map(here).collect());
        let slabs = Slabs { from: array.clone(), positions: Arc::new(positions), inner: 1 };
        let block = Block::whole(dims, shape, Array::of(offsets.len(), slabs));
        Ok(match mask {
            Some(mask) => block.present_at(mask),
            None => block,
        })
    }

    /// One offset a row, and the steps of the dense dimensions from there, if these are the same for all rows.
    pub(crate) fn beside_rows(&self) -> Option<(Vec<i64>, &[Regular])> {
        let split = self.split();
        let (constant, regular) = split.others.as_ref()?;
        let table = &self.parts[split.rows?].table;
        Some((table.iter().map(|offset| offset + self.constant + constant).collect(), regular))
    }

    /// Where the elements begin and the space that they follow, if they stand one behind the other.
    pub(crate) fn run(&self) -> Option<(usize, Vec<Dim>, Vec<usize>)> {
        let (constant, regular) = self.regular()?;
        let shape: Vec<usize> = regular.iter().map(|(_, size, _)| *size).collect();
        let expected = strides(&shape);
        let in_order = regular
            .iter()
            .zip(&expected)
            .all(|((_, size, stride), expected)| *size == 1 || *stride == *expected as i64);
        let dims = regular.iter().map(|(dim, ..)| *dim).collect();
        in_order.then_some((usize::try_from(constant).ok()?, dims, shape))
    }

    /// Where the elements over a space stand in an array of so many, if each has a place of its own there.
    pub(crate) fn apart(&self, dims: &[Dim], shape: &[usize], len: usize) -> Option<Places> {
        let (constant, regular) = self.regular()?;
        if regular.iter().any(|(_, size, _)| *size == 0) {
            return None;
        }
        // Each step leads beyond what all smaller ones reach.
        let mut reach = 0;
        for (_, size, step) in regular.iter().rev().filter(|(_, size, _)| *size > 1) {
            if *step <= reach {
                return None;
            }
            reach += (*size as i64 - 1) * step;
        }
        let constant = usize::try_from(constant).ok()?;
        let step = |dim: &Dim| {
            let found = regular.iter().find(|(own, ..)| own == dim)?;
            usize::try_from(found.2).ok()
        };
        let steps: Option<Vec<usize>> = dims.iter().map(step).collect();
        let (shape, steps) = (shape.into(), steps?.into());
        (constant + (reach as usize) < len).then_some(Places { offset: constant, shape, steps })
    }

    /// Where the elements over a space whose first dimension is the rows stand in an array of so many: an offset for each row,
    /// below 0 if all of the row is outside, and steps from there.
    pub(crate) fn rows_apart(&self, dims: &[Dim], shape: &[usize], len: usize) -> Option<(Vec<i64>, Places)> {
        let (Some((&Dim::ROWS, dims)), Some((_, sizes))) = (dims.split_first(), shape.split_first()) else {
            return None;
        };
        let (starts, regular) = self.beside_rows()?;
        let (mut shape, mut steps): (Vec<usize>, Vec<usize>) = (Vec::new(), Vec::new());
        let mut reach = 0;
        for (dim, size) in dims.iter().zip(sizes) {
            let (.., step) = regular.iter().find(|(own, ..)| own == dim)?;
            let step = usize::try_from(*step).ok()?;
            reach += size.checked_sub(1)? * step;
            match (shape.last_mut(), steps.last_mut()) {
                // One behind the other with the dimension before.
                (Some(outer), Some(by)) if *by == step * size => (*outer, *by) = (*outer * size, step),
                _ => {
                    shape.push(*size);
                    steps.push(step);
                }
            }
        }
        let inside = |start: i64| start < OUTSIDE / 2 || (start >= 0 && start as usize + reach < len);
        let places = Places { offset: 0, shape: shape.into(), steps: steps.into() };
        starts.iter().all(|start| inside(*start)).then_some((starts, places))
    }

    /// The elements where they stand: along each dimension by a step of its own, the rows of a table
    /// by look-up, absent where a row leads outside.
    fn view(&self, array: &Array, zero_outside: bool) -> Option<Block> {
        let split = self.split();
        let (more, regular) = split.others.as_ref()?;
        let constant = usize::try_from(self.constant + more).ok()?;
        let (mut dims, mut shape, mut steps) = (Vec::new(), Vec::new(), Vec::new());
        let mut mask = None;
        let mut most = split.most;
        if let Some(at) = split.rows {
            let table = &self.parts[at].table;
            if split.outside && zero_outside {
                return None;
            }
            mask = split.outside.then(|| table.iter().map(|offset| offset >= 0).collect());
            dims.push(Dim::ROWS);
            shape.push(table.len());
            steps.push(Step::Map(Arc::clone(split.map.as_ref()?), 1));
        }
        for (dim, size, step) in regular {
            most += (*size as i64 - 1).max(0) * step;
            dims.push(*dim);
            shape.push(*size);
            steps.push(Step::By(usize::try_from(*step).ok()?));
        }
        if volume(&shape) > 0 && constant as i64 + most >= array.len() as i64 {
            return None;
        }
        let values = View { array: array.clone(), offset: constant, steps };
        let present = mask.map(|mask| Block::truths(vec![Dim::ROWS], vec![shape[0]], mask));
        Some(Block { dims, shape, values, mask: present.map(Box::new) })
    }

    /// A block that is present where the offsets are inside.
    pub(crate) fn inside(&self) -> Option<Block> {
        if self.total() {
            return None;
        }
        let (dims, shape) = self.space();
        let offsets = self.over(&dims, &shape);
        let mask = offsets.iter().map(|offset| *offset >= 0).collect();
        Some(Block::same(1.0, dims, shape).present_at(mask))
    }
}

/// The strides of dimensions, if offsets that are the sum of these parts are a constant and `Σ stride · position`, all
/// inside.
fn regular<'p>(parts: impl Iterator<Item = &'p Part>) -> Option<(i64, Vec<Regular>)> {
    let mut constant = 0;
    let mut found: Vec<Regular> = Vec::new();
    for part in parts {
        let own = strides(&part.shape);
        let first = part.table.iter().next()?;
        let step = |(size, own): (&usize, &usize)| if *size > 1 { part.table.at(*own) - first } else { 0 };
        let steps: Vec<i64> = part.shape.iter().zip(&own).map(step).collect();
        let expected = |mut at: usize| {
            own.iter().zip(&steps).fold(first, |sum, (own, step)| {
                let position = at / own;
                at %= own;
                sum + position as i64 * step
            })
        };
        let even = matches!(part.table, Table::Even { .. })
            || (0..part.table.len()).all(|at| part.table.at(at) == expected(at));
        if !even || first < 0 || steps.iter().any(|step| *step < 0) || part.dims.contains(&Dim::ROWS) {
            return None;
        }
        constant += first;
        for ((dim, size), step) in part.dims.iter().zip(&part.shape).zip(steps) {
            match found.iter_mut().find(|(known, ..)| known == dim) {
                Some((_, _, known)) => *known += step,
                None => found.push((*dim, *size, step)),
            }
        }
    }
    // The largest step first: the order of the array.
    found.sort_by_key(|(_, size, stride)| (std::cmp::Reverse(*stride), std::cmp::Reverse(*size)));
    Some((constant, found))
}
