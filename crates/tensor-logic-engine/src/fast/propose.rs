//! What comparisons admit: for each row of a table the values of a further index.

use super::condition::{Condition, distinct};
use super::machine::Machine;
use super::notes::Found;
use super::rows::Rows;
use super::support::{SHARE, SMALL, Search};
use crate::ast::Comparison;
use crate::error::Result;
use crate::linear::linear;
use crate::program::{Guard, IndexFn, IndexId};
use crate::value::{Const, Domain};

impl Machine {
    /// Lists what comparisons of indices admit, where that is little.
    pub(super) fn propose<'p>(&mut self, search: &mut Search<'p, '_>, relevant: &[IndexId]) -> Result<()> {
        let waiting: Vec<usize> = (0..search.conditions.len())
            .filter(|at| !search.done[*at])
            .filter(|at| {
                matches!(search.conditions[*at], Condition::Guard(Guard::CompareIndex(..) | Guard::Bind(..)))
            })
            .collect();
        let mut open: Vec<IndexId> = Vec::new();
        for at in &waiting {
            let unbound = search.conditions[*at].indices().into_iter().filter(|index| !search.bound(*index));
            open.extend(unbound);
        }
        let open = distinct(open);
        if open.is_empty() {
            return Ok(());
        }
        let known = search.rows.as_ref().map_or(1, |rows| rows.len);
        let dense = self.bindings(&open).saturating_mul(known);
        let all = self.bindings(relevant.iter().filter(|index| !search.bound(**index))).saturating_mul(known);
        let sparse = self.storage == super::machine::Storage::Sparse;
        if all <= SMALL && !sparse {
            return Ok(());
        }
        let mut rows = search.rows.clone().unwrap_or_else(Rows::unit);
        for (nth, index) in open.iter().enumerate() {
            let proposals = self.proposals(search, &waiting, &rows, *index);
            let total: usize = proposals.iter().map(|proposal| proposal.count()).sum();
            let last = nth + 1 == open.len();
            if last && !sparse && total.saturating_mul(SHARE) > dense && dense <= 1 << 28 {
                return Ok(());
            }
            self.reserve_rows(total, rows.columns.len() + 1)?;
            let (mut picks, mut column) = (Vec::with_capacity(total), Vec::with_capacity(total));
            for (row, proposal) in proposals.iter().enumerate() {
                proposal.each(|ordinal| column.push(ordinal));
                picks.resize(column.len(), row as u32);
            }
            let id = self.number();
            rows = rows.select(&picks, id).with(*index, column, id);
            self.note_found(&mut search.steps, Found::Listed(*index, total));
        }
        search.rows = Some(rows);
        self.settle_ready(search)
    }

    /// For every row the values of an index that comparisons with bound indices leave.
    fn proposals(
        &self,
        search: &Search<'_, '_>,
        waiting: &[usize],
        rows: &Rows,
        index: IndexId,
    ) -> Vec<Proposal> {
        // A domain as large as all integers has more values than an integer counts.
        let size = i64::try_from(self.size(index)).unwrap_or(i64::MAX);
        let from = match self.range(index) {
            Some(Domain::Interval { from, .. }) => Some(*from),
            _ => None,
        };
        let mut proposals = vec![Proposal { from: 0, to: size - 1, step: 1 }; rows.len];
        let Some(from) = from else { return proposals };
        let known = |other: IndexId| rows.binds(other) || search.context.fixed(other).is_some();
        for at in waiting {
            let Condition::Guard(guard) = search.conditions[*at] else { continue };
            let (sign, a, b) = match guard {
                Guard::CompareIndex(sign, a, b) => (*sign, a.clone(), b.clone()),
                Guard::Bind(index, function) => (Comparison::Equal, IndexFn::Index(*index), function.clone()),
                _ => continue,
            };
            let (a, b, modulus) = match (&a, &b, sign) {
                (IndexFn::Remainder(inner, modulus), rest, Comparison::Equal)
                | (rest, IndexFn::Remainder(inner, modulus), Comparison::Equal) => match **modulus {
                    IndexFn::Const(Const::Int(modulus)) if modulus > 0 => {
                        (IndexFn::clone(inner), IndexFn::clone(rest), Some(modulus))
                    }
                    _ => continue,
                },
                _ => (a, b, None),
            };
            let Some((terms, constant)) = linear(&IndexFn::Subtract(Box::new(a), Box::new(b))) else {
                continue;
            };
            let own =
                terms.iter().find(|(other, _)| *other == index).map_or(0, |(_, coefficient)| *coefficient);
            if own == 0 || terms.iter().any(|(other, _)| *other != index && !known(*other)) {
                continue;
            }
            for (row, proposal) in proposals.iter_mut().enumerate() {
                let rest = terms.iter().filter(|(other, _)| *other != index).try_fold(
                    constant,
                    |sum, (other, c)| {
                        let ordinal = search
                            .context
                            .fixed(*other)
                            .or_else(|| rows.column(*other).map(|column| column[row]))?;
                        sum.checked_add(c.checked_mul(self.value(*other, ordinal)?.int()?)?)
                    },
                );
                // own · value + rest (sign) 0, with value = ordinal + from.
                let rest = rest.and_then(|rest| rest.checked_add(own.checked_mul(from)?));
                match (rest, modulus) {
                    (None, _) => {}
                    (Some(rest), None) => proposal.compare(sign, own, rest),
                    (Some(rest), Some(modulus)) if own == 1 || own == -1 => {
                        let first = if own == 1 { rest.wrapping_neg() } else { rest };
                        proposal.congruent(first.rem_euclid(modulus), modulus);
                    }
                    _ => {}
                }
            }
        }
        proposals
    }
}

/// Ordinals `from, from + step, … <= to`.
#[derive(Debug, Clone, Copy)]
struct Proposal {
    from: i64,
    to: i64,
    step: i64,
}

impl Proposal {
    fn count(self) -> usize {
        if self.from > self.to { 0 } else { ((self.to - self.from) / self.step) as usize + 1 }
    }

    fn each(self, mut visit: impl FnMut(u32)) {
        let mut next = Some(self.from);
        while let Some(at) = next.filter(|at| *at <= self.to) {
            visit(at as u32);
            next = at.checked_add(self.step);
        }
    }

    /// Keeps the ordinals with `own · ordinal + rest (sign) 0`.
    fn compare(&mut self, sign: Comparison, own: i64, rest: i64) {
        if self.step != 1 || own == i64::MIN || rest == i64::MIN {
            return; // the comparison is checked afterwards
        }
        let negated = -rest;
        // own · ordinal <= bound, or >= bound.
        let mut at_most = |bound: i64| {
            if own > 0 {
                self.to = self.to.min(bound.div_euclid(own));
            } else {
                let least = bound.div_euclid(-own).saturating_neg();
                self.from = self.from.max(least);
            }
        };
        match sign {
            Comparison::LessEqual => at_most(negated),
            Comparison::Less => at_most(negated.saturating_sub(1)),
            Comparison::NotEqual => {}
            Comparison::GreaterEqual | Comparison::Greater | Comparison::Equal => {
                if sign == Comparison::Equal {
                    at_most(negated);
                }
                let bound = if sign == Comparison::Greater { negated.saturating_add(1) } else { negated };
                // own · ordinal >= bound: -own · ordinal <= -bound.
                if own > 0 {
                    self.from = self.from.max(bound.saturating_neg().div_euclid(own).saturating_neg());
                } else {
                    self.to = self.to.min(bound.saturating_neg().div_euclid(-own));
                }
            }
        }
    }

    /// Keeps the ordinals congruent to `remainder`.
    fn congruent(&mut self, remainder: i64, modulus: i64) {
        if self.step != 1 {
            return;
        }
        let ahead = (remainder - self.from).rem_euclid(modulus);
        self.from = self.from.saturating_add(ahead);
        self.step = modulus;
    }
}
