//! Contributions to a relation, or to a square tensor that is stored by its support.

use crate::engine::Storage;
use std::sync::Arc;

use crate::error::{Code, Refusal, Result};
use crate::kernels::{Binary, strides, volume};
use crate::program::{Equation, IndexFn, Place, Style, TensorId};
use crate::room::is_by_support;
use crate::store::block::{Block, Dim, joint};
use crate::store::machine::{Context, Machine, indices_of};
use crate::store::plan::{Key, Source, Thing};
use crate::store::relation::{Codes, Piece, Relation, Skeleton};
use crate::value::{Const, Domain};
use crate::values::scope::Folded;

impl Machine {
    /// The tuples that a term makes which is all of its tensor, where it lists its bindings: a relation,
    /// or a square tensor that is 0 nearly everywhere.
    pub(super) fn alone(
        &mut self,
        equation: &Equation,
        folded: &Folded,
        context: &Context,
    ) -> Result<Option<Relation>> {
        let program = Arc::clone(&self.program);
        let tensor = program.tensor(equation.tensor);
        let rows = match &folded.rows {
            None if tensor.style == Style::Round => return self.alone_over(equation, folded, context),
            // To a sum what is absent adds nothing; of a relation it makes no tuple.
            Some(rows) if rows.id != 0 && (folded.block.mask.is_none() || tensor.style == Style::Square) => {
                rows
            }
            _ => return Ok(None),
        };
        if tensor.style == Style::Square {
            let sizes = program.tensor(equation.tensor).sizes();
            let dense = folded.block.dims.iter().filter(|dim| **dim != Dim::ROWS);
            let entries: usize = dense.map(|dim| folded.block.size(*dim)).product::<usize>() * rows.len;
            let worth = match self.storage {
                Storage::Dense => false,
                Storage::Sparse => true,
                Storage::Auto => is_by_support(volume(&sizes), entries),
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
                let indices = equation.head.iter().flat_map(indices_of);
                let stamps = self.stamps(indices.map(Source::Range).collect::<Vec<_>>());
                self.memory.keep(key, stamps, Thing::Skeleton(skeleton.clone()));
                skeleton
            }
        };
        let Some(skeleton) = skeleton else { return Ok(None) };
        let values = folded.block.clone().filled(0.0);
        self.fleshed(equation, &skeleton, values.expanded(&dims, &shape))
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
    pub(super) fn pieces(
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
        let limit = |place: &Place| if square { place.domain.clone() } else { place.limit.clone() };
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
            let position = |at: &u32| *at as usize / own[place] % shape[place].max(1);
            let column =
                context.rows.as_ref().filter(|_| dim == Dim::ROWS).and_then(|rows| rows.column(index));
            let codes: Vec<u32> = match column {
                Some(column) => picks.iter().map(|at| column[position(at)]).collect(),
                None => picks.iter().map(|at| position(at) as u32).collect(),
            };
            let Some(range) = self.range(index) else { return Ok(Codes { dictionary: Vec::new(), codes }) };
            if range.len() / 4 <= codes.len() + 256 {
                return Ok(Codes { dictionary: range.values().collect(), codes });
            }
            // Of a large domain those that occur.
            let mut used: Vec<u32> =
                codes.iter().copied().filter(|at| (*at as usize) < range.len()).collect();
            used.sort_unstable();
            used.dedup();
            let dictionary = used.iter().filter_map(|at| range.value(*at as usize)).collect();
            let code = |at: &u32| used.binary_search(at).map_or(u32::MAX, |at| at as u32);
            return Ok(Codes { dictionary, codes: codes.iter().map(code).collect() });
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
    pub(super) fn merge_pieces(&mut self, id: TensorId, pieces: &mut Vec<Piece>) -> Result<()> {
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
}
