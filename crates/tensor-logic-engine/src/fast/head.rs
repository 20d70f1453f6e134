//! From the contributions of equations to the elements of tensors.
//!
//! An [`Accumulator`] starts with what is given, takes the contributions of one term after the
//! other, and gives the stored value at the end. Terms are summed over their own indices first,
//! so what arrives has one contribution for each binding of the left side.

use std::sync::Arc;

use super::block::{Block, Dim, Groups, binary, joint};
use super::condition::{Condition, scope_reads};
use super::machine::{Context, Machine, Storage, Stored};
use super::offsets::Offsets;
use super::plan::{Key, Source, Thing};
use super::relation::{Codes, Piece, Relation, Skeleton};
use super::rows::Rows;
use super::scope::{Folded, Scope};
use crate::ast::Comparison;
use crate::engine::{Listed, Numbers};
use crate::error::{Code, Refusal, Result};
use crate::kernels::{
    self, Array, Binary, Buffer, Folding, Grouping, Number, Placed, Places, Point, Precision, Segments, Step,
    View, along, larger, smaller, strides, volume,
};
use crate::program::{
    Class, Combine, Component, Equation, Given, IndexFn, IndexId, Operation, Read, Role, Style, TensorId,
    Term,
};
use crate::value::{Const, Domain};

/// The contributions to a tensor.
pub(crate) enum Accumulator {
    /// All elements, row-major.
    Dense {
        /// Joined contributions.
        data: Elements,
        /// Of a mean, how many.
        counts: Option<Elements>,
        /// The number of elements.
        size: usize,
    },
    /// Contributions to some elements: positions, values, and which of them are there.
    Slices(Vec<Slice>),
    /// The same, to be computed.
    Described(Vec<Described>),
    /// Pieces, the first the tuples joined so far.
    Sparse(Vec<Piece>),
    /// Nothing yet, and one term is all there will be.
    Lone,
    /// The tuples that one term makes.
    Ready(Relation),
}

/// Contributions to all elements of a square tensor, joined.
#[derive(Debug)]
pub(crate) enum Elements {
    /// There is none yet.
    None,
    /// Their sum.
    Sum(Array),
    /// Joined one by one.
    Joined(Vec<f64>),
}

/// Contributions to some elements.
#[derive(Debug)]
pub(crate) struct Slice {
    positions: Positions,
    values: Array,
    present: Option<Arc<Vec<bool>>>,
}

/// What an equation contributes to one step, described.
pub(crate) struct Described {
    pub(crate) positions: Positions,
    pub(crate) shape: Vec<usize>,
    pub(crate) values: Array,
}

impl Described {
    /// Whether both go to the same elements.
    pub(super) fn is_beside(&self, other: &Described) -> bool {
        match (&self.positions, &other.positions) {
            (Positions::From(a), Positions::From(b)) => a == b && self.shape == other.shape,
            (Positions::Apart(a), Positions::Apart(b)) => {
                (a.offset, &a.shape, &a.steps) == (b.offset, &b.shape, &b.steps)
            }
            _ => false,
        }
    }

    /// The sum of two contributions to the same elements, in one pass.
    pub(super) fn plus(self, other: Described) -> Described {
        let Described { positions, shape, values } = self;
        let inputs = vec![View::whole(values, &shape), View::whole(other.values, &shape)];
        let code = vec![kernels::Code::Load(0), kernels::Code::Load(1), kernels::Code::Binary(Binary::Add)];
        let sum = Point { shape: shape.clone(), inputs, code, truth: false }.fused();
        Described { positions, values: Array::of(volume(&shape), sum), shape }
    }
}

/// Where the entries of a block go.
#[derive(Debug)]
pub(crate) enum Positions {
    /// Each to a position of its own; negative ones are outside.
    Each(Vec<i64>),
    /// In order, from this position on.
    From(usize),
    /// Along each dimension by a step.
    Apart(Places),
}

/// In 32 bits one more than so many is no other number.
const FLOAT_COUNTS: usize = 1 << 24;

/// Square tensors with more elements are stored by their support where that is small.
pub(super) const LARGE: usize = 1 << 16;
/// A support is small where it has at most this share of all elements.
pub(super) const SHARE: usize = 4;

/// One contribution to an element of a square tensor.
pub(crate) fn join<T: Number>(combine: Combine, slot: &mut T, value: T) {
    *slot = match combine {
        // What is proved is evaluated before (`weighted`), and stands as data here.
        Combine::Sum | Combine::Avg | Combine::Exists | Combine::Proofs | Combine::Slopes => *slot + value,
        Combine::Times => *slot * value,
        Combine::Max => larger(*slot, value),
        Combine::Min => smaller(*slot, value),
        Combine::Or => {
            if value > T::ZERO {
                T::ONE
            } else {
                *slot
            }
        }
    };
}

impl Slice {
    /// Values that are all there.
    pub(super) fn new(positions: Positions, values: Array) -> Slice {
        Slice { positions, values, present: None }
    }

    /// How many contributions there are.
    pub(super) fn len(&self) -> usize {
        self.values.len()
    }

    /// Joins the contributions to an array, or writes them over whatever stands there.
    fn write<T: Number>(&self, combine: Combine, fresh: bool, data: &mut [T]) {
        match combine {
            // 0 added makes -0 a 0.
            _ if fresh => self.each(data, |slot, value| *slot = value + T::ZERO),
            Combine::Sum => self.each(data, |slot, value| *slot += value),
            _ => self.each(data, |slot, value| join(combine, slot, value)),
        }
    }

    fn each<T: Number>(&self, data: &mut [T], join: impl Fn(&mut T, T) + Sync) {
        let Some(buffer) = self.values.done() else { return };
        let Some(values) = T::slice(&buffer) else { return };
        let here = |at: usize| self.present.as_ref().is_none_or(|present| present[at]);
        match &self.positions {
            Positions::From(from) => {
                let slots = data.get_mut(*from..).unwrap_or_default();
                if self.present.is_none() {
                    let len = slots.len().min(values.len());
                    along(&mut slots[..len], &values[..len], &join);
                } else {
                    let present = slots.iter_mut().zip(values).enumerate().filter(|(at, _)| here(*at));
                    present.for_each(|(_, (slot, value))| join(slot, *value));
                }
            }
            Positions::Apart(places) => places.join(data, values, join),
            Positions::Each(positions) => {
                for (at, position) in positions.iter().enumerate().filter(|(at, _)| here(*at)) {
                    let slot = usize::try_from(*position).ok().and_then(|at| data.get_mut(at));
                    slot.into_iter().for_each(|slot| join(slot, values[at]));
                }
            }
        }
    }
}

impl Machine {
    /// What is given of a tensor.
    pub(crate) fn given(&mut self, id: TensorId, parameter: Option<&[f64]>) -> Result<Accumulator> {
        let program = Arc::clone(&self.program);
        let tensor = program.tensor(id);
        let domains = program.tensor(id).domains();
        if tensor.style == Style::Round {
            if let Some(relation) = Relation::as_given(&program, id) {
                return Ok(Accumulator::Ready(relation));
            }
            let mut pieces = Vec::new();
            if let Some(values) = parameter {
                // A parameter has all tuples that its places have values for.
                let shape = program.tensor(id).sizes();
                let fixed = vec![None; shape.len()];
                let whole = Given::Array { fixed, shape, values: Arc::from(values), span: tensor.span };
                pieces.push(given_piece(&domains, &whole, &tensor.places));
            }
            for given in &tensor.given {
                pieces.push(given_piece(&domains, given, &tensor.places));
            }
            return Ok(Accumulator::Sparse(pieces));
        }
        let sizes: Vec<usize> = domains.iter().map(Domain::len).collect();
        let size = volume(&sizes);
        let mean = tensor.combine == Combine::Avg;
        let mut data = match whole_array(tensor, parameter, &sizes) {
            Some(values) => {
                let data = Elements::Sum(self.given_array(values));
                return Ok(Accumulator::Dense { data, counts: None, size });
            }
            None if tensor.given.is_empty() && tensor.role != Role::Parameter => {
                let counts = mean.then_some(Elements::None);
                return Ok(Accumulator::Dense { data: Elements::None, counts, size });
            }
            None => vec![tensor.combine.default_value(); size],
        };
        let mut counts = vec![0.0; if mean { size } else { 0 }];
        let mut add = |at: usize, value: f64| {
            if let Some(slot) = data.get_mut(at) {
                join(tensor.combine, slot, value);
            }
            if let Some(count) = counts.get_mut(at) {
                *count += 1.0;
            }
        };
        if tensor.role == Role::Parameter {
            parameter.unwrap_or(&[]).iter().enumerate().for_each(|(at, value)| add(at, *value));
        }
        for given in &tensor.given {
            match given {
                Given::Array { fixed, shape, values, .. }
                    if fixed.iter().all(Option::is_none) && *shape == sizes =>
                {
                    values.iter().enumerate().for_each(|(at, value)| add(at, *value));
                }
                _ => given.each(&domains, |element, value| {
                    position(&domains, element).into_iter().for_each(|at| add(at, value));
                }),
            }
        }
        let counts = mean.then_some(Elements::Joined(counts));
        Ok(Accumulator::Dense { data: Elements::Joined(data), counts, size })
    }

    /// Adds the contributions of an equation; `fixed` are indices of its left side that have one
    /// value at the moment.
    pub(crate) fn contribute(
        &mut self,
        equation: &Equation,
        fixed: &[(IndexId, u32)],
        into: &mut Accumulator,
    ) -> Result<()> {
        self.stop.check(equation.head_span)?;
        let since = self.note_equation(equation, fixed.is_empty());
        let done = self.contributions(equation, fixed, into);
        self.note_evaluated(equation, since);
        done
    }

    fn contributions(
        &mut self,
        equation: &Equation,
        fixed: &[(IndexId, u32)],
        into: &mut Accumulator,
    ) -> Result<()> {
        self.head = equation.head_span;
        let context = Context { rows: None, fixed: fixed.to_vec() };
        let mut nearby = Vec::new();
        if equation.terms.len() > 1 {
            for term in &equation.terms {
                nearby.extend(scope_reads(&Condition::of_when(&term.when), &term.body));
            }
        }
        for term in &equation.terms {
            self.term(equation, term, &context, &nearby, into)?;
        }
        Ok(())
    }

    fn term(
        &mut self,
        equation: &Equation,
        term: &Term,
        context: &Context,
        nearby: &[&Read],
        into: &mut Accumulator,
    ) -> Result<()> {
        let combine = self.program.tensor(equation.tensor).combine;
        self.wanted = equation.left.iter().map(|index| Dim::of(*index)).collect();
        let open = |index: &IndexId| context.fixed(*index).is_none();
        let over: Vec<IndexId> = term.over.iter().copied().filter(open).collect();
        let mut own: Vec<IndexId> = equation.left.iter().copied().filter(open).collect();
        own.extend(&over);
        let operation = match combine {
            Combine::Sum | Combine::Exists | Combine::Avg | Combine::Proofs | Combine::Slopes => {
                Operation::Sum
            }
            Combine::Max | Combine::Or => Operation::Max,
            Combine::Min => Operation::Min,
            Combine::Times => Operation::Product,
        };
        let sum = self.program.tensor(equation.tensor).style == Style::Square && combine == Combine::Sum;
        let when = Condition::of_when(&term.when);
        let scope = Scope {
            over: &over,
            nearby,
            zero: sum,
            fill: sum,
            truth: combine == Combine::Or,
            // A mean is a sum by its number: both for the same rows.
            whole: combine == Combine::Avg,
            ..Scope::new(term.when.node.number(), &own, when, &term.body, operation)
        };
        if combine == Combine::Exists {
            // A sum above 0 asks for the sum of all terms; nothing more is needed of each.
            return self.folded(equation, &scope, context, None, into);
        }
        if combine == Combine::Avg {
            let counting = Scope { operation: Operation::Count, zero: false, fill: false, ..scope.clone() };
            let counts = self.scope(&counting, context)?;
            let scope = Scope { zero: false, fill: false, ..scope };
            return self.folded(equation, &scope, context, Some(counts), into);
        }
        self.folded(equation, &scope, context, None, into)
    }

    fn folded(
        &mut self,
        equation: &Equation,
        scope: &Scope<'_>,
        context: &Context,
        counts: Option<Folded>,
        into: &mut Accumulator,
    ) -> Result<()> {
        let folded = self.scope(scope, context)?;
        let inner = context.with_rows(folded.rows.clone());
        self.note_contributions(&folded.block, &inner);
        if matches!(into, Accumulator::Lone) {
            let mean = counts.as_ref().map(|counts| Folded {
                block: binary(folded.block.clone(), counts.block.clone(), Binary::Divide),
                ..folded.clone()
            });
            *into = match self.alone(equation, mean.as_ref().unwrap_or(&folded), &inner)? {
                Some(relation) => Accumulator::Ready(relation),
                None => {
                    self.reserve_tensor(equation.tensor)?;
                    self.given(equation.tensor, None)?
                }
            };
        }
        match into {
            Accumulator::Lone | Accumulator::Ready(_) => Ok(()),
            Accumulator::Dense { .. } => self.scatter(equation, folded, counts.as_ref(), &inner, into),
            Accumulator::Slices(_) | Accumulator::Described(_) => {
                let key = equation.node.number();
                let program = Arc::clone(&self.program);
                let places = &program.tensor(equation.tensor).places;
                let offsets = self.offsets(equation.head.iter(), places, &inner, key)?;
                let (dims, shape) = self.head_space(&offsets, &folded.block, &inner);
                self.reserve(volume(&shape).saturating_mul(2))?;
                // What is absent adds nothing.
                let sum = self.program.tensor(equation.tensor).combine == Combine::Sum;
                let block = if sum { folded.block.clone().filled(0.0) } else { folded.block.clone() };
                let (positions, dims, shape) = match offsets.run() {
                    // Both spaces have the dimensions of the head, and this one no others.
                    Some((from, dims_there, shape_there)) if dims_there.len() == dims.len() => {
                        (Positions::From(from), dims_there, shape_there)
                    }
                    _ => {
                        let sizes = program.tensor(equation.tensor).sizes();
                        let apart = offsets.apart(&dims, &shape, volume(&sizes));
                        let apart = apart.filter(|_| block.mask.is_none()).map(Positions::Apart);
                        (apart.unwrap_or_else(|| Positions::Each(offsets.over(&dims, &shape))), dims, shape)
                    }
                };
                let present = self.presence(&block, &dims, &shape);
                let values = block.expanded(&dims, &shape).array();
                drop(block);
                drop(folded);
                match into {
                    Accumulator::Described(slices) => slices.push(Described { positions, shape, values }),
                    Accumulator::Slices(slices) => {
                        // Computed now: the state that it reads is written next.
                        self.force(&values);
                        let values = self.typed(values);
                        slices.push(Slice { positions, values, present });
                    }
                    _ => {}
                }
                Ok(())
            }
            Accumulator::Sparse(pieces) => {
                let counts = counts.as_ref().map(|counts| &counts.block);
                let found = self.pieces(equation, &folded.block, counts, &inner)?;
                pieces.extend(found);
                self.merge_pieces(equation.tensor, pieces)
            }
        }
    }

    /// Contributions to a square tensor; a mean is a sum and a sum of how many.
    fn scatter(
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
    pub(super) fn averaged(&self, accumulator: Accumulator) -> Accumulator {
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
    fn joined<'d>(&self, data: &'d mut Elements, combine: Combine, size: usize) -> &'d mut [f64] {
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
                let indices = equation.head.iter().flat_map(super::machine::indices_of);
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

    /// An array that is there, in the type that is computed with.
    pub(super) fn typed(&self, array: Array) -> Array {
        match (self.precision, array.done()) {
            (Precision::Double, Some(Buffer::Numbers(Numbers::Double(_))))
            | (Precision::Single, Some(Buffer::Numbers(Numbers::Single(_))))
            | (_, None) => array,
            (Precision::Double, Some(buffer)) => Array::given(f64::buffer(buffer.numbers())),
            (Precision::Single, Some(buffer)) => Array::given(f32::buffer(buffer.numbers())),
        }
    }

    /// Joins contributions to some elements of a stored square tensor; those that get no others are `fresh`.
    pub(crate) fn write_slices(&mut self, id: TensorId, parts: &[Slice], fresh: bool) {
        let combine = self.program.tensor(id).combine;
        match self.state(id) {
            Some(Buffer::Numbers(Numbers::Double(values))) => {
                let values = Arc::make_mut(values);
                let first = |at| fresh && at == 0;
                parts.iter().enumerate().for_each(|(at, part)| part.write(combine, first(at), values));
            }
            Some(Buffer::Numbers(Numbers::Single(values))) => {
                let values = Arc::make_mut(values);
                let first = |at| fresh && at == 0;
                parts.iter().enumerate().for_each(|(at, part)| part.write(combine, first(at), values));
            }
            _ => {}
        }
    }

    /// The numbers of a stored square tensor, to write to.
    pub(super) fn state(&mut self, id: TensorId) -> Option<&mut Buffer> {
        let stamp = self.number();
        let Some(Some((Stored::Dense(state), own))) = self.tensors.get_mut(id.0 as usize) else {
            return None;
        };
        *own = stamp;
        if state.change().is_none() {
            // Somebody else holds what stood there so far.
            let Some(Buffer::Numbers(numbers)) = state.done() else { return None };
            *state = Array::pooled(Buffer::Numbers(numbers), &self.pool);
        }
        state.change()
    }

    /// All elements of a square tensor to which nothing is given, before anything is contributed; whatever numbers, if
    /// all of them are `fresh`.
    pub(crate) fn nothing(&mut self, id: TensorId, fresh: bool) -> Option<Stored> {
        let program = Arc::clone(&self.program);
        let tensor = program.tensor(id);
        if tensor.style != Style::Square || !tensor.given.is_empty() || tensor.role == Role::Parameter {
            return None;
        }
        // What stood there is free for what comes.
        self.forget(id);
        let sizes = program.tensor(id).sizes();
        let value = tensor.combine.default_value();
        if fresh {
            return Some(Stored::Dense(Array::any(volume(&sizes), self.precision, &self.pool)));
        }
        Some(Stored::Dense(Array::filled(value, volume(&sizes), self.precision, &self.pool)))
    }

    /// The space of the bindings of a left side.
    fn head_space(&self, offsets: &Offsets, block: &Block, context: &Context) -> (Vec<Dim>, Vec<usize>) {
        let (dims, shape) = offsets.space();
        let rows = context.rows.iter().map(|rows| (Dim::ROWS, rows.len));
        joint(rows.chain(dims.into_iter().zip(shape)).chain(block.space()))
    }

    /// The tuples that a term makes which is all of its tensor, where it lists its bindings: a relation,
    /// or a square tensor that is 0 nearly everywhere.
    fn alone(&mut self, equation: &Equation, folded: &Folded, context: &Context) -> Result<Option<Relation>> {
        let program = Arc::clone(&self.program);
        let tensor = program.tensor(equation.tensor);
        let rows = match &folded.rows {
            None if tensor.style == Style::Round => return self.alone_over(equation, folded, context),
            Some(rows) if rows.id != 0 && folded.block.mask.is_none() => rows,
            _ => return Ok(None),
        };
        if tensor.style == Style::Square {
            let sizes = program.tensor(equation.tensor).sizes();
            let dense = folded.block.dims.iter().filter(|dim| **dim != Dim::ROWS);
            let entries: usize = dense.map(|dim| folded.block.size(*dim)).product::<usize>() * rows.len;
            let worth = match self.storage {
                Storage::Dense => false,
                Storage::Sparse => true,
                Storage::Auto => volume(&sizes) > LARGE && entries.saturating_mul(SHARE) <= volume(&sizes),
            };
            if !worth {
                return Ok(None);
            }
        }
        let key = Key { place: (equation.node.number(), 9), rows: rows.id, fixed: Vec::new() };
        let known = match self.recall(&key) {
            Some(Thing::Skeleton(skeleton)) => Some(skeleton.clone()),
            _ => None,
        };
        let (dims, shape) = self.contribution_space(equation, &folded.block, context)?;
        let skeleton = match known {
            Some(skeleton) => skeleton,
            None => {
                let picks = (0..volume(&shape) as u32).collect();
                let skeleton = self.skeleton(equation, (&dims, &shape), picks, context)?;
                let indices = equation.head.iter().flat_map(super::machine::indices_of);
                let stamps = self.stamps(indices.map(Source::Range).collect::<Vec<_>>());
                self.memory.keep(key, stamps, Thing::Skeleton(skeleton.clone()));
                skeleton
            }
        };
        let Some(skeleton) = skeleton else { return Ok(None) };
        self.fleshed(equation, &skeleton, folded.block.expanded(&dims, &shape))
    }

    /// The same where no bindings are listed: a relation whose tuples no number decides.
    fn alone_over(
        &mut self,
        equation: &Equation,
        folded: &Folded,
        context: &Context,
    ) -> Result<Option<Relation>> {
        let (dims, shape) = self.contribution_space(equation, &folded.block, context)?;
        let total = volume(&shape) as u32;
        let picks = match &folded.block.mask {
            None => (0..total).collect(),
            Some(mask) => {
                let mask = mask.expanded(&dims, &shape).array();
                if !self.is_structure(&mask) {
                    return Ok(None);
                }
                let present = self.computed_once(&mask).numbers::<f64>();
                (0..total).filter(|at| present[*at as usize] != 0.0).collect()
            }
        };
        let Some(skeleton) = self.skeleton(equation, (&dims, &shape), picks, context)? else {
            return Ok(None);
        };
        let values = Block { mask: None, ..folded.block.clone() };
        self.fleshed(equation, &skeleton, values.expanded(&dims, &shape))
    }

    /// The tuples at these positions of a space, if they are different.
    fn skeleton(
        &mut self,
        equation: &Equation,
        (dims, shape): (&[Dim], &[usize]),
        picks: Vec<u32>,
        context: &Context,
    ) -> Result<Option<Skeleton>> {
        let program = Arc::clone(&self.program);
        let (piece, picks) = self.placed(equation, dims, shape, picks, context)?;
        let made = Skeleton::new(program.tensor(equation.tensor).places.len(), piece, &program.symbols);
        let whole = picks.len() == volume(shape);
        Ok(made.map(|made| {
            let order = match (made.order, whole) {
                (None, true) => None,
                (None, false) => Some(Arc::new(picks)),
                (Some(order), _) => Some(Arc::new(order.iter().map(|at| picks[*at as usize]).collect())),
            };
            Skeleton { order, ..made }
        }))
    }

    /// Tuples with their values, which stand in a block without a mask.
    fn fleshed(
        &mut self,
        equation: &Equation,
        skeleton: &Skeleton,
        values: Block,
    ) -> Result<Option<Relation>> {
        if self.program.tensor(equation.tensor).style == Style::Round {
            self.within_tuples(equation.tensor, skeleton.relation.len as u64)?;
        }
        let values = values.with(Binary::Add, 0.0).array();
        let values = match &skeleton.order {
            None => values,
            Some(order) => {
                let all = Block::whole(vec![Dim::ROWS], vec![values.len()], values);
                all.gathered(Dim::ROWS, order, Dim::ROWS).array()
            }
        };
        Ok(Some(skeleton.relation.valued(values)))
    }

    /// The space of the contributions of a term to a relation.
    fn contribution_space(
        &self,
        equation: &Equation,
        block: &Block,
        context: &Context,
    ) -> Result<(Vec<Dim>, Vec<usize>)> {
        let rows = context.rows.iter().map(|_| Dim::ROWS);
        let left = equation.left.iter().filter_map(|index| context.dim(*index));
        let all = rows.chain(left).chain(block.dims.iter().copied());
        let (dims, shape) = joint(all.map(|dim| (dim, self.dim_size(dim, context))));
        let total = volume(&shape);
        if total >= u32::MAX as usize {
            return Err(self.too_large(total as u128 * 8));
        }
        self.reserve(total.saturating_mul(2))?;
        Ok((dims, shape))
    }

    /// Contributions to a relation.
    fn pieces(
        &mut self,
        equation: &Equation,
        block: &Block,
        counts: Option<&Block>,
        context: &Context,
    ) -> Result<Option<Piece>> {
        let (dims, shape) = self.contribution_space(equation, block, context)?;
        let total = volume(&shape);
        let picks: Vec<u32> = match self.presence(block, &dims, &shape) {
            None => (0..total as u32).collect(),
            Some(present) => (0..total as u32).filter(|at| present[*at as usize]).collect(),
        };
        let block = self.values(&block.expanded(&dims, &shape));
        let (mut piece, picks) = self.placed(equation, &dims, &shape, picks, context)?;
        let values: Vec<f64> = picks.iter().map(|at| block[*at as usize]).collect();
        piece.values = values.iter().any(|value| *value != 1.0).then_some(values);
        piece.counts = counts.map(|counts| {
            let counts = self.values(&counts.expanded(&dims, &shape));
            picks.iter().map(|at| counts[*at as usize]).collect()
        });
        Ok(Some(piece))
    }

    /// Where contributions at these positions of a space go, and which of them go anywhere.
    fn placed(
        &mut self,
        equation: &Equation,
        dims: &[Dim],
        shape: &[usize],
        mut picks: Vec<u32>,
        context: &Context,
    ) -> Result<(Piece, Vec<u32>)> {
        let program = Arc::clone(&self.program);
        let tensor = program.tensor(equation.tensor);
        let own = strides(shape);
        let mut places: Vec<Codes> = Vec::new();
        for function in &equation.head {
            places.push(self.head_codes(function, dims, shape, &own, &picks, context)?);
        }
        // Codes beyond the dictionary have no value; values outside a limit make no tuple.
        let square = tensor.style == Style::Square;
        let limit =
            |place: &crate::program::Place| if square { place.domain.clone() } else { place.limit.clone() };
        let limits: Vec<Option<Domain>> = tensor.places.iter().map(limit).collect();
        let fine: Vec<Vec<bool>> = places
            .iter()
            .zip(&limits)
            .map(|(place, limit)| {
                let inside = |value: &Const| limit.as_ref().is_none_or(|limit| limit.contains(*value));
                place.dictionary.iter().map(inside).collect()
            })
            .collect();
        let ok: Vec<bool> = (0..picks.len())
            .map(|at| {
                let mut codes = places.iter().zip(&fine);
                codes.all(|(place, fine)| fine.get(place.codes[at] as usize).copied().unwrap_or(false))
            })
            .collect();
        if ok.contains(&false) {
            let kept: Vec<usize> = (0..picks.len()).filter(|at| ok[*at]).collect();
            for place in &mut places {
                place.codes = kept.iter().map(|at| place.codes[*at]).collect();
            }
            picks = kept.iter().map(|at| picks[*at]).collect();
        }
        Ok((Piece { len: picks.len(), places, values: None, counts: None }, picks))
    }

    fn head_codes(
        &self,
        function: &IndexFn,
        dims: &[Dim],
        shape: &[usize],
        own: &[usize],
        picks: &[u32],
        context: &Context,
    ) -> Result<Codes> {
        if let (Some(index), Some(_)) =
            (function.alone(), function.alone().and_then(|index| context.dim(index)))
        {
            let dim = context.dim(index).unwrap_or(Dim::ROWS);
            let place = dims.iter().position(|other| *other == dim).unwrap_or(0);
            let dictionary: Vec<Const> =
                self.range(index).map(|range| range.values().collect()).unwrap_or_default();
            let position = |at: &u32| *at as usize / own[place] % shape[place].max(1);
            let column =
                context.rows.as_ref().filter(|_| dim == Dim::ROWS).and_then(|rows| rows.column(index));
            let codes = match column {
                Some(column) => picks.iter().map(|at| column[position(at)]).collect(),
                None => picks.iter().map(|at| position(at) as u32).collect(),
            };
            return Ok(Codes { dictionary, codes });
        }
        let (inner_dims, inner_shape, values) = self.function_values(function, context)?;
        let inner = strides(&inner_shape);
        let value = |at: &u32| {
            let mut from = 0;
            for (dim, step) in inner_dims.iter().zip(&inner) {
                let place = dims.iter().position(|other| other == dim).unwrap_or(0);
                from += (*at as usize / own[place] % shape[place].max(1)) * step;
            }
            values.get(from).copied().flatten()
        };
        let found: Vec<Option<Const>> = picks.iter().map(value).collect();
        let mut codes = Codes::of(found.iter().map(|value| value.unwrap_or(Const::Int(0))));
        for (code, value) in codes.codes.iter_mut().zip(&found) {
            if value.is_none() {
                *code = u32::MAX;
            }
        }
        Ok(codes)
    }

    /// Joins pieces once they are many.
    fn merge_pieces(&mut self, id: TensorId, pieces: &mut Vec<Piece>) -> Result<()> {
        let total: usize = pieces.iter().map(|piece| piece.len).sum();
        let first = pieces.first().map_or(0, |piece| piece.len);
        let block = self.blocks.get(&id).copied().unwrap_or(1);
        let room = self.budget.tuples.saturating_sub(self.tuples) / block.max(1);
        let limit = usize::try_from(room).unwrap_or(usize::MAX);
        if total > limit || total > 4 * first + (1 << 20) {
            let combine = self.program.tensor(id).combine;
            let partly =
                Relation::fold(pieces, self.program.tensor(id).places.len(), combine, &self.program.symbols);
            *pieces = vec![partly];
        }
        let total: usize = pieces.iter().map(|piece| piece.len).sum();
        self.within_tuples(id, total as u64)
    }

    /// Refuses more tuples than the budget has, with so many more of a tensor.
    pub(crate) fn within_tuples(&self, id: TensorId, more: u64) -> Result<()> {
        let block = self.blocks.get(&id).copied().unwrap_or(1);
        let tuples = self.tuples.saturating_add(more.saturating_mul(block));
        if tuples > self.budget.tuples {
            let message = format!("more than {} tuples (`--max-tuples`) are derived", self.budget.tuples);
            let help = "end the rule with a comparison or a declared index, or raise `--max-tuples`";
            return Err(Refusal::new(Code::Budget, self.head, message).help(help));
        }
        Ok(())
    }

    /// The stored value of all contributions.
    pub(crate) fn finish(&self, id: TensorId, accumulator: Accumulator) -> Stored {
        let tensor = self.program.tensor(id);
        match accumulator {
            Accumulator::Dense { data: Elements::Sum(sum), .. }
                if matches!(tensor.combine, Combine::Sum | Combine::Avg) =>
            {
                // Elementwise work for one reader may become part of that one's, and operations that share an outer index are
                // done together.
                if !self.defers && (!self.passing[id.0 as usize] || !sum.waits_for::<Point>()) {
                    self.force(&sum);
                }
                Stored::Dense(sum)
            }
            Accumulator::Dense { mut data, size, .. } => {
                let values = self.joined(&mut data, tensor.combine, size);
                if tensor.combine == Combine::Exists {
                    values.iter_mut().for_each(|slot| *slot = f64::from(u8::from(*slot > 0.0)));
                }
                Stored::Dense(self.given_array(values))
            }
            Accumulator::Ready(relation) => {
                relation.array().iter().for_each(|values| drop(self.force(values)));
                Stored::Relation(Arc::new(relation))
            }
            // One term was to come, and the left side has none.
            Accumulator::Lone | Accumulator::Slices(_) | Accumulator::Described(_) => {
                Stored::Dense(Array::truths(Vec::new()))
            }
            Accumulator::Sparse(pieces) => {
                let arity = tensor.places.len();
                Stored::Relation(Arc::new(Relation::merge(
                    arity,
                    &pieces,
                    tensor.combine,
                    &self.program.symbols,
                )))
            }
        }
    }

    /// Whether one term is all that a tensor will ever be.
    pub(crate) fn is_lone(&self, component: &Component, id: TensorId) -> bool {
        let tensor = self.program.tensor(id);
        let mut own =
            component.equations.iter().map(|at| self.program.equation(*at)).filter(|e| e.tensor == id);
        let one = own.next().is_some_and(|equation| equation.terms.len() == 1) && own.next().is_none();
        let joins = match tensor.style {
            Style::Square => tensor.combine == Combine::Sum,
            Style::Round => {
                !matches!(tensor.combine, Combine::Or | Combine::Exists | Combine::Proofs | Combine::Slopes)
            }
        };
        let computed = tensor.role == Role::Computed && tensor.given.is_empty();
        one && joins && computed && matches!(component.class, Class::Plain)
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

/// The values of a sum that is given as one whole array.
fn whole_array<'a>(
    tensor: &'a crate::program::Tensor,
    parameter: Option<&'a [f64]>,
    sizes: &[usize],
) -> Option<&'a [f64]> {
    if tensor.combine != Combine::Sum {
        return None;
    }
    if tensor.role == Role::Parameter {
        return parameter.filter(|values| tensor.given.is_empty() && values.len() == volume(sizes));
    }
    let [Given::Array { fixed, shape, values, .. }] = tensor.given.as_slice() else { return None };
    let whole = fixed.iter().all(Option::is_none) && *shape == sizes && values.len() == volume(sizes);
    whole.then_some(values)
}

/// The row-major position of an element.
fn position(domains: &[Domain], tuple: &[Const]) -> Option<usize> {
    let places = domains.iter().zip(tuple);
    places.into_iter().try_fold(0, |at: usize, (domain, value)| {
        at.checked_mul(domain.len())?.checked_add(domain.ordinal(*value)?)
    })
}

fn given_piece(domains: &[Domain], given: &Given, places: &[crate::program::Place]) -> Piece {
    let inside = |(value, place): (&Const, &crate::program::Place)| {
        place.limit.as_ref().is_none_or(|limit| limit.contains(*value))
    };
    // Facts are read where they lie, unless some of them are outside.
    if let Given::Facts(facts) = given
        && (0..facts.count).all(|at| facts.tuple(at).iter().zip(places).all(inside))
    {
        let arity = places.len();
        let column = |place| Codes::of(facts.constants.iter().skip(place).step_by(arity).copied());
        let values = facts.values.iter().any(|value| *value != 1.0).then(|| facts.values.clone());
        return Piece { len: facts.count, places: (0..arity).map(column).collect(), values, counts: None };
    }
    if let Given::Columns(columns) = given
        && columns.dictionaries.iter().zip(places).all(|(own, place)| {
            let mut own = own.iter();
            own.all(|value| inside((value, place)))
        })
    {
        let codes = columns.dictionaries.iter().zip(&columns.columns);
        let codes = codes.map(|(own, codes)| Codes { dictionary: own.to_vec(), codes: codes.to_vec() });
        let values = columns.values.as_ref().map(|values| values.to_vec());
        return Piece { len: columns.len, places: codes.collect(), values, counts: None };
    }
    let (mut columns, mut values) = (vec![Vec::new(); places.len()], Vec::new());
    given.each(domains, |element, value| {
        if element.iter().zip(places).all(inside) {
            columns.iter_mut().zip(element).for_each(|(column, constant)| column.push(*constant));
            values.push(value);
        }
    });
    let places = columns.iter().map(|column| Codes::of(column.iter().copied())).collect();
    let valued = values.iter().any(|value| *value != 1.0);
    Piece { len: values.len(), places, values: valued.then_some(values), counts: None }
}
