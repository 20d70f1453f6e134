//! What the steps need and do not change: bindings and values that the general way finds for all steps at once.
//!
//! Enter at [`Machine::apart`]. `D[i-1, j-1] | A(i-1, c), B(j-1, c)` asks for the pairs (i, j) that the guards admit, which
//! is one join of two relations; each step then looks its own up. Where that would take much more room than the tensors
//! of the recursion, the recursion is left to blocks, which find it step by step.

use std::collections::HashMap;
use std::sync::Arc;

use super::tree::{Apart, Linear, List, Place, Table, Term, Test};
use crate::error::{Code, Result};
use crate::kernels::{strides, volume};
use crate::program::{Equation, Expr, IndexId, TensorId};
use crate::store::block::{Dim, joint};
use crate::store::condition::{Condition, free, scope_reads};
use crate::store::machine::{Context, Machine};
use crate::store::rows::Rows;
use crate::value::Domain;

/// What is computed apart.
#[derive(Debug, Clone, Copy)]
pub(super) enum Condensed<'p> {
    Value(&'p Expr),
    Condition(Condition<'p>),
}

impl Condensed<'_> {
    pub(super) fn indices(self) -> Vec<IndexId> {
        match self {
            Condensed::Value(expr) => free(expr),
            Condensed::Condition(condition) => condition.indices(),
        }
    }
}

/// Tables and lists may have so many times as many entries as the recursion has elements, and so many more.
const TIMES: usize = 4;
const MORE: usize = 1 << 16;

/// Tables of bindings take at most so many bytes for each of these entries on the way.
const BYTES: u64 = 64;

/// The number of a scope whose conditions are some of those of a term.
const SOME: u64 = 1 << 62;

/// What is computed apart for a term.
pub(super) struct Listing<'p> {
    pub(super) equation: &'p Equation,
    pub(super) term: &'p crate::program::Term,
    pub(super) asked: Vec<Asked<'p>>,
    pub(super) apart: Vec<Condensed<'p>>,
    /// The register of the row.
    pub(super) row: usize,
}

/// A condition that admits bindings.
pub(super) struct Asked<'p> {
    pub(super) condition: Condition<'p>,
    pub(super) settle: Settle,
}

/// What is done about a condition that the list does not settle.
pub(super) enum Settle {
    /// It is tested step by step.
    Test(Test),
    /// It is computed apart.
    Mask,
    /// The body is absent where it does not hold.
    Body,
}

impl Settle {
    pub(super) fn test(self) -> Option<Test> {
        match self {
            Settle::Test(test) => Some(test),
            Settle::Mask | Settle::Body => None,
        }
    }
}

/// What is known when tables are made.
struct Making<'a> {
    own: &'a [TensorId],
    registers: &'a HashMap<IndexId, usize>,
    most: usize,
}

impl Machine {
    /// What is computed apart, the terms being told of it; `None` if it would take too much room.
    pub(super) fn apart(
        &mut self,
        listings: Vec<Listing<'_>>,
        terms: Vec<&mut Term>,
        own: &[TensorId],
        registers: &HashMap<IndexId, usize>,
        elements: usize,
    ) -> Result<Option<Apart>> {
        let most = elements.saturating_mul(TIMES).saturating_add(MORE);
        let making = Making { own, registers, most };
        let all = self.budget.bytes;
        self.budget.bytes = all.min((most as u64).saturating_mul(BYTES));
        let found = self.all_apart(listings, terms, &making);
        self.budget.bytes = all;
        match found {
            Err(refusal) if refusal.code == Code::TooLarge => Ok(None),
            found => found,
        }
    }

    fn all_apart(
        &mut self,
        listings: Vec<Listing<'_>>,
        terms: Vec<&mut Term>,
        making: &Making<'_>,
    ) -> Result<Option<Apart>> {
        let mut apart = Apart::default();
        // The tables that the trees name come first.
        let mut tests = Vec::new();
        for (listing, term) in listings.iter().zip(terms) {
            let found = loop {
                let found = self.of_term(listing, making)?;
                if !self.must_repeat() {
                    break found;
                }
            };
            let Some(Found { list, tables, masks, rest }) = found else { return Ok(None) };
            if let Some((_, rows)) = &list {
                let bound = |register| {
                    rows.indices.iter().any(|index| making.registers.get(index) == Some(&register))
                };
                term.over.retain(|one| !bound(one.register));
            }
            term.list = list.is_some().then_some(apart.lists.len());
            apart.lists.extend(list.map(|(list, _)| list));
            apart.tables.extend(tables);
            tests.push((masks, rest, term));
        }
        for ((masks, rest, term), listing) in tests.into_iter().zip(listings) {
            for mask in masks {
                apart.tables.push(mask);
                term.guards.push(Test::Present(super::tree::Node::Apart(apart.tables.len() - 1)));
            }
            let open = listing.asked.into_iter().enumerate().filter(|(at, _)| rest.contains(at));
            term.guards.extend(open.filter_map(|(_, asked)| asked.settle.test()));
        }
        Ok(Some(apart))
    }

    fn of_term(&mut self, listing: &Listing<'_>, making: &Making<'_>) -> Result<Option<Found>> {
        let Listing { equation, term, asked, apart, .. } = listing;
        self.head = equation.head_span;
        self.wanted = equation.left.iter().map(|index| Dim::of(*index)).collect();
        let bound = [equation.left.as_slice(), &term.over].concat();
        let conditions: Vec<Condition<'_>> = asked.iter().map(|asked| asked.condition).collect();
        let mut reads = scope_reads(&conditions, &term.body);
        reads.retain(|read| !making.own.contains(&read.tensor));
        let mut nearby = Vec::new();
        for term in &equation.terms {
            nearby.extend(scope_reads(&Condition::of_when(&term.when), &term.body));
        }
        nearby.retain(|read| !making.own.contains(&read.tensor));
        self.set_tuple_ranges(&bound, &reads, &nearby);
        let node = term.when.node.number() | SOME;
        let mut body: Vec<IndexId> = free(&term.body);
        body.extend(apart.iter().flat_map(|part| part.indices()));
        let support = self.support(node, &Context::default(), &bound, &conditions, &body)?;
        let inner = Context::default().with_rows(support.rows.clone());
        let list = match &support.rows {
            None => None,
            Some(rows) => match self.by_key(rows, listing, making) {
                Some(list) => Some((list, Arc::clone(rows))),
                None => return Ok(None),
            },
        };
        let (mut tables, mut masks, mut rest) = (Vec::new(), Vec::new(), Vec::new());
        for part in apart {
            let Some(table) = self.table_of(*part, listing.row, &inner, making)? else { return Ok(None) };
            tables.push(table);
        }
        for at in support.rest {
            match asked.get(at).map(|asked| &asked.settle) {
                Some(Settle::Test(_)) => rest.push(at),
                Some(Settle::Mask) => {
                    let part = Condensed::Condition(asked[at].condition);
                    let Some(mask) = self.table_of(part, listing.row, &inner, making)? else {
                        return Ok(None);
                    };
                    masks.push(mask);
                }
                Some(Settle::Body) | None => {}
            }
        }
        Ok(Some(Found { list, tables, masks, rest }))
    }

    /// The rows of a table by what is known before they are asked for; `None` if there are too many.
    fn by_key(&self, rows: &Rows, listing: &Listing<'_>, making: &Making<'_>) -> Option<List> {
        let (key, others): (Vec<IndexId>, Vec<IndexId>) =
            rows.indices.iter().partition(|index| listing.equation.left.contains(index));
        let sizes: Vec<usize> = key.iter().map(|index| self.size(*index)).collect();
        let keys = sizes.iter().fold(1, |all: usize, size| all.saturating_mul(*size));
        if keys.max(rows.len) > making.most || u32::try_from(keys).is_err() {
            return None;
        }
        let mut of = vec![0_u32; rows.len];
        for (index, size) in key.iter().zip(&sizes) {
            let column = rows.column(*index)?;
            of.iter_mut().zip(column.iter()).for_each(|(of, at)| *of = *of * *size as u32 + at);
        }
        let (starts, rows_by_key) = datarel::by_group(&of, keys);
        let places = key.iter().zip(sizes.iter().zip(strides(&sizes)));
        let places = places.map(|(index, (size, stride))| self.place(*index, *size, stride, making));
        let column = |index: &IndexId| {
            let register = *making.registers.get(index)?;
            Some((register, self.first(*index), Arc::clone(rows.column(*index)?)))
        };
        Some(List {
            key: places.collect::<Option<_>>()?,
            starts,
            rows: rows_by_key,
            row: listing.row,
            columns: others.iter().filter_map(column).collect(),
        })
    }

    /// The value at the first position of an index; that itself, where the values are no interval.
    fn first(&self, index: IndexId) -> i64 {
        match self.range(index) {
            Some(Domain::Interval { from, .. }) => *from,
            _ => 0,
        }
    }

    fn place(&self, index: IndexId, size: usize, stride: usize, making: &Making<'_>) -> Option<Place> {
        let register = *making.registers.get(&index)?;
        let position = Linear { terms: vec![(register, 1)], constant: -self.first(index) };
        Some(Place { position, size: i64::try_from(size).ok()?, stride })
    }

    /// The values of what is computed apart over rows and indices; `None` if there are too many.
    fn table_of(
        &mut self,
        what: Condensed<'_>,
        row: usize,
        context: &Context,
        making: &Making<'_>,
    ) -> Result<Option<Table>> {
        let dims: Vec<Dim> = what.indices().into_iter().filter_map(|index| context.dim(index)).collect();
        let sizes = joint(dims.iter().map(|dim| (*dim, self.dim_size(*dim, context)))).1;
        if sizes.iter().fold(1, |all: usize, size| all.saturating_mul(*size)) > making.most {
            return Ok(None);
        }
        let block = match what {
            Condensed::Value(expr) => self.expr(expr, context)?,
            Condensed::Condition(condition) => self.condition(condition, context)?,
        };
        let masked = block.mask.iter().flat_map(|mask| mask.space());
        let (dims, shape) = joint(block.space().chain(masked));
        self.reserve(volume(&shape).saturating_mul(2))?;
        let mask = self.presence(&block, &dims, &shape);
        let values = self.numbers(&block.expanded(&dims, &shape).array()).doubles();
        let apart = strides(&shape);
        let place = |((dim, size), stride): ((&Dim, &usize), usize)| match dim.index() {
            Some(index) => self.place(index, *size, stride, making),
            None => {
                let position = Linear { terms: vec![(row, 1)], constant: 0 };
                Some(Place { position, size: i64::try_from(*size).ok()?, stride })
            }
        };
        let places: Option<Vec<Place>> = dims.iter().zip(&shape).zip(apart).map(place).collect();
        Ok(places.map(|places| Table { places, values, mask }))
    }
}

/// What is computed apart for a term: a list with its rows, tables, those of conditions, and the conditions that are left.
struct Found {
    list: Option<(List, Arc<Rows>)>,
    tables: Vec<Table>,
    masks: Vec<Table>,
    rest: Vec<usize>,
}
