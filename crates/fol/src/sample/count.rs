//! Drawing from laws of family `count`: a level, a size, a rank, and names for the binders (F41).

use num_bigint::BigUint;
use seeded::Stream;

use super::choice::Choice;
use super::distinct::take_unused;
use super::facts::Facts;
use crate::count::{Piece, Table, VARIABLE, write_pieces};
use crate::error::Refusal;
use crate::law::classes::empty_size;
use crate::law::config::bad_value;
use crate::law::{BinderNames, CountLaw};
use crate::measure::level_of;
use crate::symbol::SymbolId;

/// A law with its tables, and room to draw in.
#[derive(Debug, Clone)]
pub(crate) struct CountSampler {
    law: CountLaw,
    levels: Choice,
    /// One for each entry of the law's sizes.
    tables: Vec<Tables>,
    pieces: Vec<Piece>,
    names: Vec<u64>,
    used: Vec<u64>,
}

/// Counts of the formulas within the bound of a level, in the narrowest numbers that hold them.
#[derive(Debug, Clone)]
enum Tables {
    Wide(Table<u128>),
    Big(Table<BigUint>),
}

impl CountSampler {
    pub(super) fn of_size(law: &CountLaw, nodes: usize) -> Result<Self, Refusal> {
        let law = CountLaw { sizes: vec![(0, 1, nodes, nodes)], ..law.clone() };
        if law.names == BinderNames::Distinct && law.pool < law.most_binders() {
            return Err(bad_value("pool", "a formula may have more binders than there are names"));
        }
        let sampler = Self::new(law)?;
        if sampler.tables.first().is_none_or(|table| table.is_empty(nodes)) {
            return Err(empty_size(0, nodes));
        }
        Ok(sampler)
    }

    pub(super) fn new(law: CountLaw) -> Result<Self, Refusal> {
        let tables = law.sizes.iter().map(|&(level, _, _, largest)| {
            let bound = match level {
                1 | 2 => Some(0),
                3 => Some(1),
                _ => None,
            };
            Tables::new(&law, largest, bound).ok_or_else(|| bad_value("sizes", "too large"))
        });
        Ok(Self {
            tables: tables.collect::<Result<_, _>>()?,
            levels: Choice::new(law.sizes.iter().map(|s| s.1)),
            law,
            pieces: Vec::new(),
            names: Vec::new(),
            used: Vec::new(),
        })
    }

    /// One item.
    pub(super) fn draw(&mut self, stream: &mut Stream, out: &mut Vec<SymbolId>) -> Facts {
        out.clear();
        // Without levels there is one entry, and nothing is drawn for it.
        let entry = self.levels.draw(stream);
        let (Some(&(level, _, lo, hi)), Some(table)) = (self.law.sizes.get(entry), self.tables.get(entry))
        else {
            return Facts::default();
        };
        let nodes = lo + stream.below((hi - lo + 1) as u64) as usize;
        loop {
            self.pieces.clear();
            let quantifier_depth = table.draw(nodes, stream, &mut self.pieces);
            let drawn = level_of(nodes as u64, quantifier_depth.into());
            if level == 0 || level == drawn {
                self.write(stream, out);
                return Facts { nodes: nodes as u32, quantifier_depth, level: drawn, redraws: 0 };
            }
        }
    }

    /// Names the binders and writes the formula.
    fn write(&mut self, stream: &mut Stream, out: &mut Vec<SymbolId>) {
        if self.law.names == BinderNames::Canonical {
            return write_pieces(&self.pieces, u64::from, out);
        }
        self.names.clear();
        self.used.clear();
        // Binders are numbered in preorder, so a number that is new is the next one.
        for &piece in &self.pieces {
            if piece == VARIABLE + self.names.len() as u32 {
                let j = stream.below(self.law.pool - self.used.len() as u64);
                self.names.push(take_unused(j, &mut self.used));
            }
        }
        write_pieces(&self.pieces, |number| self.names.get(number as usize).copied().unwrap_or(0), out);
    }
}

impl Tables {
    fn new(law: &CountLaw, nodes: usize, bound: Option<usize>) -> Option<Self> {
        match Table::<u128>::new(law, nodes, 0, bound) {
            Some(table) => Some(Self::Wide(table)),
            None => Table::<BigUint>::new(law, nodes, 0, bound).map(Self::Big),
        }
    }

    fn is_empty(&self, nodes: usize) -> bool {
        match self {
            Self::Wide(table) => table.get(nodes, 0) == 0,
            Self::Big(table) => table.get(nodes, 0) == BigUint::ZERO,
        }
    }

    /// A uniform formula of this size, and its quantifier depth.
    fn draw(&self, nodes: usize, stream: &mut Stream, pieces: &mut Vec<Piece>) -> u32 {
        match self {
            Self::Wide(table) => table.unrank(nodes, stream.below_u128(table.get(nodes, 0)), pieces),
            Self::Big(table) => {
                let digits = stream.below_digits(&table.get(nodes, 0).to_u64_digits());
                let halves = digits.iter().flat_map(|&d| [d as u32, (d >> 32) as u32]).collect();
                table.unrank(nodes, BigUint::new(halves), pieces)
            }
        }
    }
}
