//! Contributions to all elements of a square tensor.

use std::sync::Arc;

use super::slices::join;
use super::{Accumulator, Elements};
use crate::ast::Comparison;
use crate::engine::{Listed, Numbers};
use crate::error::Result;
use crate::kernels::{
    Array, Binary, Folding, Grouping, Placed, Point, Precision, Segments, Step, View, strides, volume,
};
use crate::program::{Combine, Equation, TensorId};
use crate::store::block::{Block, Dim, Groups, binary};
use crate::store::machine::{Context, Machine, indices_of};
use crate::store::offsets::Offsets;
use crate::store::plan::{Key, Source, Thing};
use crate::store::relation::Relation;
use crate::store::rows::Rows;
use crate::values::scope::Folded;

/// In 32 bits one more than so many is no other number.
const FLOAT_COUNTS: usize = 1 << 24;

impl Machine {
    /// Contributions to a square tensor; a mean is a sum and a sum of how many.
    pub(super) fn scatter(
        &mut self,
        equation: &Equation,
        folded: Folded,
        counted: Option<&Folded>,
        context: &Context,
        into: &mut Accumulator,
    ) -> Result<()> {
        let Accumulator::Dense { data, counts, size } = into else { return Ok(()) };
        let program = Arc::clone(&self.program);
        let combine = match program.tensor(equation.tensor).combine {
            Combine::Avg => Combine::Sum,
            combine => combine,
        };
        if let (Some(counts), Some(counted)) = (counts, counted) {
            self.scattered(equation, counted.block.clone(), combine, context, (counts, *size))?;
        }
        self.scattered(equation, folded.block, combine, context, (data, *size))
    }

    /// Contributions to elements, so many in all.
    fn scattered(
        &mut self,
        equation: &Equation,
        block: Block,
        combine: Combine,
        context: &Context,
        (data, size): (&mut Elements, usize),
    ) -> Result<()> {
        let program = Arc::clone(&self.program);
        let tensor = program.tensor(equation.tensor);
        let key = equation.node.number();
        let offsets = self.offsets(equation.head.iter(), &tensor.places, context, key)?;
        let (dims, shape) = self.head_space(&offsets, &block, context);
        self.reserve(volume(&shape).saturating_mul(2))?;
        let mut block = { block }.expanded(&dims, &shape);
        // In 32 bits ones are not counted beyond this.
        let counts = self.precision == Precision::Single && volume(&shape) >= FLOAT_COUNTS;
        let sums = combine == Combine::Sum && !(counts && tensor.combine == Combine::Avg);
        if sums {
            // What is absent adds nothing.
            block = block.filled(0.0).expanded(&dims, &shape);
        }
        if sums && offsets.whole(&dims, &shape, size) {
            // 0 added makes -0 a 0; a sum of what has been added has none either.
            let array = &block.values.array;
            let clean = !matches!(data, Elements::None) || array.makes_unsigned_zeros();
            let sum = if clean && block.values.is_whole(&shape) {
                block.array()
            } else {
                block.with(Binary::Add, 0.0).array()
            };
            self.add(data, sum);
            return Ok(());
        }
        let sum = match &context.rows {
            _ if !sums => None,
            Some(rows) if dims.first() == Some(&Dim::ROWS) => {
                self.sums_by_slot(equation, &offsets, rows, &mut block)?
            }
            _ => None,
        };
        if let Some(sum) = sum {
            self.add(data, sum);
            return Ok(());
        }
        if sums
            && !matches!(data, Elements::Joined(_))
            && let Some(places) = offsets.apart(&dims, &shape, size)
        {
            let base = match std::mem::replace(data, Elements::None) {
                Elements::Sum(base) => Some(base),
                _ => None,
            };
            let placed = Placed::onto(base, size, (block.with(Binary::Add, 0.0).array(), places));
            *data = Elements::Sum(Array::of(size, placed));
            return Ok(());
        }
        let joined = self.joined(data, combine, size);
        let positions = offsets.over(&dims, &shape);
        let present = self.presence(&block, &dims, &shape);
        let values = self.values(&block);
        let here = |at: usize| present.as_ref().is_none_or(|present| present[at]);
        for (at, position) in positions.iter().enumerate() {
            if *position < 0 || !here(at) {
                continue;
            }
            if let Some(slot) = joined.get_mut(*position as usize) {
                join(combine, slot, values[at]);
            }
        }
        Ok(())
    }

    /// A mean: the sum of all contributions by how many they are, 0 where there is none.
    pub(crate) fn averaged(&self, accumulator: Accumulator) -> Accumulator {
        let Accumulator::Dense { data, counts: Some(counts), size } = accumulator else { return accumulator };
        let data = match (data, counts) {
            (Elements::Sum(sum), Elements::Sum(count)) => {
                let of = |array: Array| Block::whole(vec![Dim::ROWS], vec![array.len()], array);
                // By 1 where nothing is counted: nothing is there either.
                let none = of(count.clone()).with(Binary::Compare(Comparison::Equal), 0.0);
                let by = binary(of(count), none, Binary::Add);
                Elements::Sum(binary(of(sum), by, Binary::Divide).with(Binary::Add, 0.0).array())
            }
            (mut data, mut counts) => {
                let counts = self.joined(&mut counts, Combine::Sum, size);
                let values = self.joined(&mut data, Combine::Sum, size);
                for (slot, count) in values.iter_mut().zip(counts) {
                    *slot = if *count > 0.0 { *slot / *count } else { 0.0 };
                }
                data
            }
        };
        Accumulator::Dense { data, counts: None, size }
    }

    /// One more sum over all elements.
    fn add(&self, data: &mut Elements, sum: Array) {
        *data = match std::mem::replace(data, Elements::None) {
            Elements::None => Elements::Sum(sum),
            Elements::Sum(before) => {
                let of = |array: Array| Block::whole(vec![Dim::ROWS], vec![array.len()], array);
                let (a, b) = (of(before), of(sum));
                Elements::Sum(binary(a, b, Binary::Add).array())
            }
            Elements::Joined(mut values) => {
                let more = self.numbers(&sum).doubles();
                values.iter_mut().zip(more.iter()).for_each(|(slot, value)| *slot += value);
                Elements::Joined(values)
            }
        };
    }

    /// The elements, to be joined one by one.
    pub(super) fn joined<'d>(&self, data: &'d mut Elements, combine: Combine, size: usize) -> &'d mut [f64] {
        if !matches!(data, Elements::Joined(_)) {
            *data = Elements::Joined(match data {
                Elements::Sum(sum) => self.numbers(sum).doubles().to_vec(),
                _ => vec![combine.default_value(); size],
            });
        }
        match data {
            Elements::Joined(values) => values,
            _ => &mut [],
        }
    }

    /// What the rows of a table add to all elements, where each adds to the same slab of elements, only elsewhere: its
    /// places of the left side are apart from those that run along whole dense dimensions.
    fn sums_by_slot(
        &mut self,
        equation: &Equation,
        offsets: &Offsets,
        rows: &Arc<Rows>,
        block: &mut Block,
    ) -> Result<Option<Array>> {
        let sizes = self.program.tensor(equation.tensor).sizes();
        let steps = strides(&sizes);
        let Some((starts, regular)) = offsets.beside_rows() else { return Ok(None) };
        let dense = |at: &usize| {
            let found =
                regular.iter().find(|(_, size, step)| *size == sizes[*at] && *step == steps[*at] as i64);
            found.filter(|_| sizes[*at] > 1).map(|(dim, ..)| *dim)
        };
        let (inner, slots): (Vec<usize>, Vec<usize>) = (0..sizes.len()).partition(|at| dense(at).is_some());
        let axes: Vec<Dim> = inner.iter().filter_map(dense).collect();
        let more = regular.iter().filter(|(_, size, _)| *size != 1).count();
        let others = block.dims.iter().filter(|dim| **dim != Dim::ROWS && !axes.contains(dim));
        let count: usize = slots.iter().map(|at| sizes[*at]).product();
        let width: usize = inner.iter().map(|at| sizes[*at]).product();
        if axes.len() != more || others.map(|dim| block.size(*dim)).any(|size| size != 1) || count == 0 {
            return Ok(None);
        }
        let key = Key { place: (equation.node.number(), 10), rows: rows.id, fixed: Vec::new() };
        let known = match self.recall(&key).filter(|_| rows.id != 0) {
            Some(Thing::Groups(groups)) if groups.count() == count => Some(groups.clone()),
            _ => None,
        };
        let groups = match known {
            Some(groups) => groups,
            None => {
                let slot = |start: &i64| {
                    let start = usize::try_from(*start).ok()?;
                    let (mut slot, mut reached) = (0, 0);
                    for at in &slots {
                        let place = start / steps[*at] % sizes[*at];
                        slot = slot * sizes[*at] + place;
                        reached += place * steps[*at];
                    }
                    (reached == start).then_some(slot as u32)
                };
                let of: Option<Vec<u32>> = starts.iter().map(slot).collect();
                let Some(of) = of else { return Ok(None) };
                let (start, ordered) = datarel::by_group(&of, count);
                let found = Groups { of: Arc::default(), rows: Grouping::new(start, ordered) };
                let indices = equation.head.iter().flat_map(indices_of);
                let stamps = self.stamps(indices.map(Source::Range).collect::<Vec<_>>());
                self.memory.keep(key, stamps, Thing::Groups(found.clone()));
                found
            }
        };
        let mut dims = vec![Dim::ROWS];
        dims.extend(&axes);
        let segments = Segments {
            groups: groups.rows,
            inner: inner.iter().map(|at| sizes[*at]).collect(),
            numbers: Vec::new(),
            slabs: vec![block.permuted(&dims).slabs()],
            constant: 1.0,
            folding: Folding::Sum,
        };
        let sum = Array::of(count * width, segments);
        // Slots by slabs, brought into the order of the tensor.
        let order: Vec<usize> = slots.iter().chain(&inner).copied().collect();
        if order.is_sorted() {
            return Ok(Some(sum));
        }
        let apart = strides(&order.iter().map(|at| sizes[*at]).collect::<Vec<_>>());
        let step = |at: usize| order.iter().position(|other| *other == at).map_or(0, |place| apart[place]);
        let steps = (0..sizes.len()).map(|at| Step::By(step(at))).collect();
        let view = View { array: sum, offset: 0, steps };
        Ok(Some(Array::of(volume(&sizes), Point::of(sizes, view))))
    }

    /// The elements of a square tensor that is stored by its support.
    pub(crate) fn listed(&self, id: TensorId, relation: &Relation) -> Listed {
        let domains = self.program.tensor(id).domains();
        let mut positions = vec![0; relation.len];
        for ((domain, dictionary), column) in
            domains.iter().zip(&relation.dictionaries).zip(&relation.columns)
        {
            let ordinals: Vec<usize> =
                dictionary.iter().map(|value| domain.ordinal(*value).unwrap_or(0)).collect();
            let places = positions.iter_mut().zip(column.iter());
            places.for_each(|(at, code)| *at = *at * domain.len() + ordinals[*code as usize]);
        }
        let mut values: Vec<f64> = (0..relation.len).map(|row| relation.value(row)).collect();
        if !positions.is_sorted() {
            // A domain whose order is not that of answers.
            let mut pairs: Vec<(usize, f64)> = positions.into_iter().zip(values).collect();
            pairs.sort_unstable_by_key(|(position, _)| *position);
            (positions, values) = pairs.into_iter().unzip();
        }
        Listed { positions, values }
    }

    /// All elements of a square tensor that is stored by its support.
    pub(crate) fn densified(&self, id: TensorId, relation: &Relation) -> Numbers {
        let sizes = self.program.tensor(id).sizes();
        let listed = self.listed(id, relation);
        let mut values = vec![0.0; volume(&sizes)];
        for (at, value) in listed.positions.into_iter().zip(listed.values) {
            if let Some(slot) = values.get_mut(at) {
                *slot = value;
            }
        }
        values.into()
    }
}
