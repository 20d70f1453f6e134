//! Where elements stand: index functions become tables of offsets, and reads become blocks.

use std::sync::Arc;

use crate::ast::Comparison;
use crate::error::Result;
use crate::kernels::{Point, advance, strides, volume};
use crate::linear::linear;
use crate::program::{Argument, IndexFn, IndexId, Otherwise, Place, Read, Style};
use crate::store::block::{Block, Dim, joint, restrict, sum_present};
use crate::store::machine::{Context, Machine, Stored, indices_of};
use crate::store::offsets::{NOWHERE, OUTSIDE, Offsets, Part, Table};
use crate::store::plan::{Source, Thing};
use crate::value::{Const, Domain};

/// The values of an index function: dimensions, sizes, values.
pub(crate) type FunctionValues = (Vec<Dim>, Vec<usize>, Vec<Option<Const>>);

/// One index function and where its values are looked up.
struct Lookup<'a> {
    function: &'a IndexFn,
    domain: &'a Domain,
    stride: i64,
}

impl Machine {
    /// The values of an index function over the dimensions that it moves along.
    pub(crate) fn function_values(&self, function: &IndexFn, context: &Context) -> Result<FunctionValues> {
        let indices = indices_of(function);
        let all = indices.iter().filter_map(|index| context.dim(*index));
        let (dims, shape) = joint(all.map(|dim| (dim, self.dim_size(dim, context))));
        let len = volume(&shape);
        self.reserve(len.saturating_mul(2))?;
        let own = strides(&shape);
        let mut values = Vec::with_capacity(len);
        for at in 0..len {
            let ordinal = |index: IndexId| {
                if let Some(fixed) = context.fixed(index) {
                    return Some(fixed);
                }
                let dim = context.dim(index)?;
                let place = dims.iter().position(|other| *other == dim)?;
                let position = at / own[place] % shape[place].max(1);
                match (&context.rows, dim == Dim::ROWS) {
                    (Some(rows), true) => rows.column(index).map(|column| column[position]),
                    _ => Some(position as u32),
                }
            };
            values.push(self.function(function, &ordinal));
        }
        Ok((dims, shape, values))
    }

    fn part(&self, lookup: &Lookup<'_>, context: &Context) -> Result<Part> {
        if let Some(part) = self.quick_part(lookup, context) {
            return Ok(part);
        }
        let (dims, shape, values) = self.function_values(lookup.function, context)?;
        let offset = |value: Option<Const>| match value {
            None => NOWHERE,
            Some(value) => lookup.domain.ordinal(value).map_or(OUTSIDE, |at| at as i64 * lookup.stride),
        };
        Ok(Part { dims, shape, table: Table::Each(values.into_iter().map(offset).collect()) })
    }

    /// Linear functions of integers, without evaluating them one by one.
    fn quick_part(&self, lookup: &Lookup<'_>, context: &Context) -> Option<Part> {
        let Domain::Interval { from: low, to: high } = lookup.domain else { return None };
        let (terms, mut constant) = linear(lookup.function)?;
        let mut moving: Vec<(IndexId, i64)> = Vec::new();
        for (index, coefficient) in terms {
            let Domain::Interval { from, .. } = self.range(index)? else { return None };
            constant = constant.checked_add(coefficient.checked_mul(*from)?)?;
            match context.fixed(index) {
                Some(fixed) => constant = constant.checked_add(coefficient.checked_mul(i64::from(fixed))?)?,
                None => moving.push((index, coefficient)),
            }
        }
        let safe = |value: i64| value.unsigned_abs() < 1 << 40;
        let coefficients = moving.iter().all(|(_, coefficient)| coefficient.unsigned_abs() <= 1 << 20);
        if !safe(constant) || !safe(*low) || !coefficients || moving.len() > 8 {
            return None;
        }
        let offset = |value: i64| {
            if *low <= value && value <= *high { (value - low) * lookup.stride } else { OUTSIDE }
        };
        let column = |index: IndexId| context.rows.as_ref().and_then(|rows| rows.column(index));
        let columns: Vec<(&[u32], i64)> =
            moving.iter().filter_map(|(index, by)| Some((column(*index)?.as_slice(), *by))).collect();
        if let [(first, _), ..] = columns[..] {
            // Rows and dense dimensions at once are looked up one by one.
            let value =
                |row: usize| columns.iter().map(|(column, by)| by * i64::from(column[row])).sum::<i64>();
            let table = Table::Each((0..first.len()).map(|row| offset(constant + value(row))).collect());
            let of_rows = || Part { dims: vec![Dim::ROWS], shape: vec![first.len()], table };
            return (columns.len() == moving.len()).then(of_rows);
        }
        let mut dims: Vec<(Dim, usize, i64)> = Vec::new();
        for (index, coefficient) in &moving {
            dims.push((
                Dim::of(*index),
                usize::try_from(u32::try_from(self.size(*index)).ok()?).ok()?,
                *coefficient,
            ));
        }
        let (names, shape) = joint(dims.iter().map(|(dim, size, _)| (*dim, *size)));
        let by = |dim: &Dim| dims.iter().filter(|(own, ..)| own == dim).map(|(.., by)| by).sum::<i64>();
        let steps: Vec<i64> = names.iter().map(by).collect();
        // Between the least and the largest all are inside, if these are.
        let reach = || shape.iter().zip(&steps).map(|(size, step)| (*size as i64 - 1).max(0) * step);
        let least = constant + reach().filter(|reach| *reach < 0).sum::<i64>();
        let most = constant + reach().filter(|reach| *reach > 0).sum::<i64>();
        let table = if volume(&shape) > 0 && *low <= least && most <= *high {
            let steps = steps.iter().map(|step| step * lookup.stride).collect();
            Table::Even { first: offset(constant), steps, shape: shape.clone() }
        } else {
            let len = volume(&shape);
            self.reserve(len).ok()?;
            let mut positions = vec![0; shape.len()];
            let each = (0..len).map(|_| {
                let value = positions.iter().zip(&steps).map(|(at, step)| *at as i64 * step).sum::<i64>();
                advance(&shape, &mut positions);
                offset(constant + value)
            });
            Table::Each(each.collect())
        };
        Some(Part { dims: names, shape, table })
    }

    /// The offsets of the elements that index functions name, in an array over these places.
    pub(crate) fn offsets<'a>(
        &mut self,
        functions: impl Iterator<Item = &'a IndexFn> + Clone,
        places: &[Place],
        context: &Context,
        key: u64,
    ) -> Result<Arc<Offsets>> {
        let mut indices: Vec<IndexId> = functions.clone().flat_map(indices_of).collect();
        indices.sort_unstable();
        indices.dedup();
        let key = context.key((key, 0), &indices);
        if let Some(Thing::Offsets(offsets)) = self.recall(&key) {
            return Ok(Arc::clone(offsets));
        }
        let mut result = Offsets::default();
        let empty = Domain::size(0);
        let mut stride = 1_i64;
        let domains: Vec<&Domain> =
            places.iter().map(|place| place.domain.as_ref().unwrap_or(&empty)).collect();
        let functions: Vec<&IndexFn> = functions.collect();
        for (function, domain) in functions.into_iter().zip(domains).rev() {
            result.add(self.part(&Lookup { function, domain, stride }, context)?);
            stride = stride.saturating_mul((domain.len() as i64).max(1));
        }
        result.parts.reverse();
        let offsets = Arc::new(result);
        if key.fixed.is_empty() {
            let stamps = self.stamps(indices.into_iter().map(Source::Range));
            self.memory.keep(key, stamps, Thing::Offsets(Arc::clone(&offsets)));
        }
        Ok(offsets)
    }

    /// The elements that a read names, absent where they are missing.
    pub(crate) fn read(&mut self, read: &Read, context: &Context) -> Result<Block> {
        self.read_as(read, read.otherwise, context)
    }

    /// The elements that a read names, what is missing being as this says.
    pub(crate) fn read_as(&mut self, read: &Read, otherwise: Otherwise, context: &Context) -> Result<Block> {
        let program = Arc::clone(&self.program);
        let places = &program.tensor(read.tensor).places;
        let functions = read.arguments.iter().filter_map(Argument::function);
        match self.stored(read.tensor).cloned() {
            None => Ok(Block::absent()),
            Some(Stored::Dense(data)) => {
                let data = if self.passing[read.tensor.0 as usize] { data.again::<Point>() } else { data };
                let offsets = self.offsets(functions, places, context, read.node.number())?;
                self.reserve(volume(&offsets.space().1))?;
                let block = offsets
                    .read(&data, otherwise == Otherwise::ZeroOutside)
                    .map_err(|len| self.too_large(len as u128 * 8))?;
                Ok(if otherwise == Otherwise::Absent {
                    block.present_where(Comparison::NotEqual)
                } else {
                    block
                })
            }
            Some(Stored::Relation(relation)) => {
                let found = self.relation_values(read, &relation, context)?;
                let square = program.tensor(read.tensor).style == Style::Square;
                match otherwise {
                    Otherwise::Absent if square => Ok(found.present_where(Comparison::NotEqual)),
                    Otherwise::Absent => Ok(found),
                    Otherwise::ZeroOutside => Ok(found.filled(0.0)),
                    // A tuple that is there counts wherever it lies; the others are 0 inside of the domain.
                    Otherwise::Zero => Ok(match self.inside(read, context)? {
                        Some(Block { dims, shape, mask, .. }) => {
                            let zeros = Block { mask, ..Block::same(0.0, dims, shape) };
                            sum_present(vec![found, zeros])
                        }
                        None => found.filled(0.0),
                    }),
                }
            }
        }
    }

    /// Where the places of a relation that have a domain are read inside of it; `None`: everywhere.
    pub(crate) fn inside(&mut self, read: &Read, context: &Context) -> Result<Option<Block>> {
        let program = Arc::clone(&self.program);
        let mut result: Option<Block> = None;
        for (argument, place) in read.arguments.iter().zip(&program.tensor(read.tensor).places) {
            let (Argument::At(function), Some(domain)) = (argument, &place.domain) else { continue };
            if function.alone().is_some_and(|index| self.range(index) == Some(domain)) {
                continue;
            }
            let mut offsets = Offsets::default();
            offsets.add(self.part(&Lookup { function, domain, stride: 0 }, context)?);
            if let Some(inside) = offsets.inside() {
                result = Some(match result {
                    None => inside,
                    Some(so_far) => restrict(so_far, inside),
                });
            }
        }
        Ok(result)
    }

    /// 1, present where a read holds as a guard.
    pub(crate) fn holds(&mut self, read: &Read, context: &Context) -> Result<Block> {
        if read.arguments.iter().any(|argument| matches!(argument, Argument::Any)) {
            let counts = self.counts(read, read.otherwise != Otherwise::Absent);
            let table = self.table(read, counts, context)?;
            let ones = Block::same(1.0, vec![Dim::ROWS], vec![table.len]);
            return self.align(&table, ones, context);
        }
        let block = self.read(read, context)?;
        Ok(match read.otherwise {
            Otherwise::Absent => block.presence(),
            Otherwise::Zero | Otherwise::ZeroOutside => block.present_where(Comparison::Greater).presence(),
        })
    }
}
