//! What comparisons admit: for each row of a table the values of a further index.

use crate::engine::Storage;
use std::sync::Arc;

use super::matched::{Equal, equal};
use super::support::{SHARE, SMALL, Search};
use crate::ast::Comparison;
use crate::error::Result;
use crate::function::Function;
use crate::linear::linear;
use crate::program::{Expr, Guard, IndexFn, IndexId};
use crate::store::block::Dim;
use crate::store::condition::{Condition, comparison, distinct, free};
use crate::store::machine::{Machine, indices_of};
use crate::store::notes::Found;
use crate::store::rows::Rows;
use crate::value::{Const, Domain};

/// So many pairs are compared in the time in which one is listed.
const COMPARED: usize = 16;

/// A value is found for a row where it decides about as many values of an index.
const WORTH: usize = 64;

impl Machine {
    /// Lists what comparisons of indices admit, where that is little.
    pub(crate) fn propose<'p>(&mut self, search: &mut Search<'p, '_>, relevant: &[IndexId]) -> Result<()> {
        let still = search.conditions.iter().zip(&search.done).filter(|(_, done)| !**done);
        let mut waiting: Vec<Compared<'p>> = still.flat_map(|(condition, _)| compared(*condition)).collect();
        let sparse = self.storage == Storage::Sparse;
        // What a value is compared with is solved for once the value is known, which costs as much as many comparisons.
        let of_values: Vec<IndexId> =
            waiting.iter().filter(|(_, _, b)| b.is_value()).flat_map(|(_, _, b)| b.indices()).collect();
        let solved = |(_, a, b): &Compared<'_>| {
            let own = indices_of(a).into_iter().filter(|index| !of_values.contains(index));
            !b.is_value() || sparse || self.bindings(&own.collect::<Vec<_>>()) >= WORTH
        };
        waiting.retain(solved);
        // Each side of at most one further index: to list more of them may be more than there are in the end.
        let mut equal: Vec<Equal<'p>> = equal(search);
        equal.retain(|equal| {
            equal.sides.into_iter().all(|side| {
                let own = free(side);
                let open: Vec<IndexId> = own.iter().copied().filter(|index| !search.bound(*index)).collect();
                open.len() < 2 && (sparse || self.bindings(&own) >= WORTH)
            })
        });
        let of_both = equal.iter().flat_map(|equal| equal.sides.map(free)).flatten();
        let mentioned = waiting.iter().flat_map(|(_, a, b)| [indices_of(a), b.indices()].concat());
        let mentioned = mentioned.chain(of_both);
        let mut open = distinct(mentioned.filter(|index| !search.bound(*index)).collect());
        if open.is_empty() {
            return Ok(());
        }
        let known = search.rows.as_ref().map_or(1, |rows| rows.len);
        let dense = self.bindings(&open).saturating_mul(known);
        let all = self.bindings(relevant.iter().filter(|index| !search.bound(**index))).saturating_mul(known);
        if all <= SMALL && !sparse {
            return Ok(());
        }
        open.sort_by_key(|index| !of_values.contains(index));
        let mut rows = search.rows.clone().unwrap_or_else(Rows::unit);
        let mut settled = Vec::new();
        for (nth, index) in open.iter().enumerate() {
            let proposals = self.proposals(search, &waiting, &rows, *index)?;
            let partners = self.partners(search, &equal, &rows, *index)?;
            let left = |row: usize| proposals[row].left(partners.as_ref().map(|partners| partners.of(row)));
            let total = (0..rows.len).map(|row| left(row).count()).fold(0, usize::saturating_add);
            let last = nth + 1 == open.len();
            settled.extend(partners.as_ref().map(|partners| partners.at));
            // A mask over very many entries is described, not made; to list a pair takes as long as to compare many values.
            let share = match &partners {
                Some(_) => COMPARED,
                None if dense <= 1 << 28 => SHARE,
                None => 2,
            };
            if last && !sparse && total.saturating_mul(share) > dense {
                return Ok(());
            }
            self.reserve_rows(total, rows.columns.len() + 2)?;
            let (mut picks, mut column) = (Vec::with_capacity(total), Vec::with_capacity(total));
            for row in 0..rows.len {
                left(row).each(|ordinal| column.push(ordinal));
                picks.resize(column.len(), row as u32);
            }
            let id = self.number();
            rows = rows.select(&picks, id).with(*index, column, id);
            self.note_found(&mut search.steps, Found::Listed(*index, total));
        }
        search.rows = Some(rows);
        settled.into_iter().for_each(|at| search.done[at] = true);
        self.settle_ready(search)
    }

    /// For every row the values of an index that comparisons with what is bound leave.
    fn proposals(
        &mut self,
        search: &Search<'_, '_>,
        waiting: &[Compared<'_>],
        rows: &Rows,
        index: IndexId,
    ) -> Result<Vec<Proposal>> {
        // A domain as large as all integers has more values than an integer counts.
        let size = i64::try_from(self.size(index)).unwrap_or(i64::MAX);
        let from = match self.range(index) {
            Some(Domain::Interval { from, .. }) => Some(*from),
            _ => None,
        };
        let mut proposals = vec![Proposal { from: 0, to: size - 1, step: 1 }; rows.len];
        let Some(from) = from else { return Ok(proposals) };
        let known = |other: IndexId| rows.binds(other) || search.context.fixed(other).is_some();
        for (sign, a, b) in waiting {
            let others = [indices_of(a), b.indices()].concat();
            if others.iter().any(|other| *other != index && !known(*other)) {
                continue;
            }
            let Some(narrowing) = Narrowing::of(*sign, a, b, index) else { continue };
            let values = match b {
                Side::Value(value) => Some(self.of_rows(value, search, rows)?),
                Side::Indices(_) => None,
            };
            for (row, proposal) in proposals.iter_mut().enumerate() {
                let ordinal = |other: IndexId| {
                    search.context.fixed(other).or_else(|| rows.column(other).map(|column| column[row]))
                };
                let value = |other: IndexId| self.value(other, ordinal(other)?)?.int();
                match (&values, &narrowing.other) {
                    (Some(values), _) => match values.get(row).copied().flatten() {
                        None => *proposal = Proposal::NONE,
                        Some(number) => narrowing.keep_number(proposal, from, number, &value),
                    },
                    (None, None) => narrowing.keep(narrowing.sign, proposal, from, 0, &value),
                    (None, Some(function)) => {
                        if let Some(wanted) = self.function(function, &ordinal).and_then(Const::int) {
                            narrowing.keep(narrowing.sign, proposal, from, wanted, &value);
                        }
                    }
                }
            }
        }
        Ok(proposals)
    }

    /// What a value is at each row, where it is there.
    pub(crate) fn of_rows(
        &mut self,
        value: &Expr,
        search: &Search<'_, '_>,
        rows: &Rows,
    ) -> Result<Vec<Option<f64>>> {
        let rows = Arc::new(Rows { id: self.number(), ..rows.clone() });
        let context = search.context.with_rows(Some(Arc::clone(&rows)));
        let block = self.expr(value, &context)?;
        let (dims, shape) = ([Dim::ROWS], [rows.len]);
        let present = self.presence(&block, &dims, &shape);
        let numbers = self.values(&block.expanded(&dims, &shape));
        let there = |row: usize| present.as_ref().is_none_or(|present| present[row]);
        Ok((0..rows.len).map(|row| there(row).then(|| numbers[row])).collect())
    }
}

/// A comparison of an index function that must hold.
type Compared<'p> = (Comparison, IndexFn, Side<'p>);

/// What an index function is compared with.
enum Side<'p> {
    Indices(IndexFn),
    Value(&'p Expr),
}

impl Side<'_> {
    fn is_value(&self) -> bool {
        matches!(self, Side::Value(_))
    }

    fn indices(&self) -> Vec<IndexId> {
        match self {
            Side::Indices(function) => indices_of(function),
            Side::Value(value) => free(value),
        }
    }
}

/// What a condition says of indices: a comparison of them, or of the magnitude of what they make, which lies on both sides of 0.
fn compared(condition: Condition<'_>) -> Vec<Compared<'_>> {
    if let Some((sign, a, b)) = comparison(condition) {
        return vec![(sign, a, Side::Indices(b))];
    }
    let Condition::Guard(Guard::Compare(sign, a, b)) = condition else { return Vec::new() };
    if let Some(found) = magnitude(*sign, a, b).or_else(|| magnitude(sign.turned(), b, a)) {
        return found.map(|(sign, a, b)| (sign, a, Side::Indices(b))).into();
    }
    let of_value = |sign: Comparison, a: &Expr, b| {
        let function = function(a).filter(|function| !indices_of(function).is_empty())?;
        let own = free(b);
        // What moves with the index cannot be solved for it.
        let moves = indices_of(&function).iter().all(|index| own.contains(index));
        (!moves).then_some((sign, function, Side::Value(b)))
    };
    of_value(*sign, a, b).or_else(|| of_value(sign.turned(), b, a)).into_iter().collect()
}

/// `abs(f) <= g` as `f <= g` and `-f <= g`.
fn magnitude(sign: Comparison, a: &Expr, b: &Expr) -> Option<[(Comparison, IndexFn, IndexFn); 2]> {
    let Expr::Call(call) = a else { return None };
    let ([argument], Function::Abs, true) =
        (call.arguments.as_slice(), &call.function, call.when.guards.is_empty())
    else {
        return None;
    };
    let sign = match sign {
        Comparison::Equal | Comparison::LessEqual => Comparison::LessEqual,
        Comparison::Less => Comparison::Less,
        _ => return None,
    };
    // An integer is at most a number if it is at most the integer below.
    let (sign, most) = match b {
        Expr::Number(number) if number.fract() != 0.0 => (Comparison::LessEqual, integer(number.floor())?),
        b => (sign, function(b)?),
    };
    let own = function(argument)?;
    let negated = IndexFn::Negate(Box::new(own.clone()));
    Some([(sign, own, most.clone()), (sign, negated, most)])
}

fn integer(number: f64) -> Option<IndexFn> {
    let exact = number.fract() == 0.0 && number.abs() < 2_f64.powi(53);
    exact.then_some(IndexFn::Const(Const::Int(number as i64)))
}

/// A value that is an index function, and there wherever the indices are numbers.
fn function(expr: &Expr) -> Option<IndexFn> {
    match expr {
        Expr::Number(number) => integer(*number),
        // What is not linear may be absent.
        Expr::Index(function) => linear(function).map(|_| function.clone()),
        Expr::Negate(part) => Some(IndexFn::Negate(Box::new(function(part)?))),
        Expr::Plus(parts) | Expr::Terms(parts) => {
            let mut parts = parts.iter().map(function);
            let first = parts.next()??;
            parts.try_fold(first, |sum, part| Some(IndexFn::Add(Box::new(sum), Box::new(part?))))
        }
        _ => None,
    }
}

/// A comparison as it is solved for one of its indices.
struct Narrowing {
    sign: Comparison,
    /// `constant + Σ coefficient · value`, in which the index has the coefficient `own`.
    terms: Vec<(IndexId, i64)>,
    constant: i64,
    own: i64,
    /// It is divided by these, one after the other.
    divisors: Vec<i64>,
    /// Or its remainder is compared.
    modulus: Option<i64>,
    /// With this; none: with 0.
    other: Option<IndexFn>,
}

impl Narrowing {
    fn of(sign: Comparison, a: &IndexFn, b: &Side<'_>, index: IndexId) -> Option<Narrowing> {
        let b = match b {
            Side::Indices(b) => b,
            Side::Value(value) if free(value).contains(&index) => return None,
            Side::Value(_) => return Narrowing::solved(sign, linear(a)?, index),
        };
        if let Some((terms, constant)) = linear(&IndexFn::Subtract(Box::new(a.clone()), Box::new(b.clone())))
        {
            return Narrowing::solved(sign, (terms, constant), index);
        }
        let holds = |side: &IndexFn| indices_of(side).contains(&index);
        let (sign, mut side, other) = match (holds(a), holds(b)) {
            (true, false) => (sign, a, b),
            (false, true) => (sign.turned(), b, a),
            _ => return None,
        };
        let positive = |by: &IndexFn| match by {
            IndexFn::Const(Const::Int(by)) if *by > 0 => Some(*by),
            _ => None,
        };
        let (mut divisors, mut modulus) = (Vec::new(), None);
        while modulus.is_none() {
            side = match side {
                IndexFn::Divide(inner, by) => {
                    divisors.push(positive(by)?);
                    inner
                }
                IndexFn::Remainder(inner, by) if sign == Comparison::Equal && divisors.is_empty() => {
                    modulus = Some(positive(by)?);
                    inner
                }
                _ => break,
            };
        }
        let found = Narrowing::solved(sign, linear(side)?, index)?;
        Some(Narrowing { divisors, modulus, other: Some(other.clone()), ..found })
    }

    fn solved(
        sign: Comparison,
        (terms, constant): (Vec<(IndexId, i64)>, i64),
        index: IndexId,
    ) -> Option<Narrowing> {
        let own = terms.iter().find(|(other, _)| *other == index).map_or(0, |(_, own)| *own);
        let terms = terms.into_iter().filter(|(other, _)| *other != index).collect();
        let (divisors, modulus, other) = (Vec::new(), None, None);
        (own != 0).then_some(Narrowing { sign, terms, constant, own, divisors, modulus, other })
    }

    /// Keeps the ordinals that it leaves, given the other side and the other indices: all of them where a number between
    /// has more than 64 bits, since the comparison itself is asked afterwards.
    fn keep(
        &self,
        sign: Comparison,
        proposal: &mut Proposal,
        from: i64,
        wanted: i64,
        value: &dyn Fn(IndexId) -> Option<i64>,
    ) {
        let rest = self.terms.iter().try_fold(self.constant, |sum, (other, times)| {
            sum.checked_add(times.checked_mul(value(*other)?)?)
        });
        // own · value + rest, with value = ordinal + from.
        let Some(rest) = rest.and_then(|rest| rest.checked_add(self.own.checked_mul(from)?)) else { return };
        if let Some(modulus) = self.modulus {
            if self.own == 1 || self.own == -1 {
                let Some(ahead) = wanted.checked_sub(rest) else { return };
                let first = if self.own == 1 { ahead } else { ahead.wrapping_neg() };
                proposal.congruent(first.rem_euclid(modulus), modulus);
            }
            return;
        }
        if self.divisors.is_empty() {
            if let Some(rest) = rest.checked_sub(wanted) {
                proposal.compare(sign, self.own, rest);
            }
            return;
        }
        // ⌊x / c⌋ is at least n if x is at least c n, and at most n if x is at most c n + c - 1.
        let bound = |mut bound: i64, more: i64| {
            for by in &self.divisors {
                bound = bound.checked_mul(*by)?.checked_add((by - 1) * more)?;
            }
            rest.checked_sub(bound)
        };
        let least = match sign {
            Comparison::Equal | Comparison::GreaterEqual => Some(wanted),
            Comparison::Greater => wanted.checked_add(1),
            _ => None,
        };
        if let Some(rest) = least.and_then(|least| bound(least, 0)) {
            proposal.compare(Comparison::GreaterEqual, self.own, rest);
        }
        let most = match sign {
            Comparison::Equal | Comparison::LessEqual => Some(wanted),
            Comparison::Less => wanted.checked_sub(1),
            _ => None,
        };
        if let Some(rest) = most.and_then(|most| bound(most, 1)) {
            proposal.compare(Comparison::LessEqual, self.own, rest);
        }
    }

    /// The same for a number, which need be no integer.
    fn keep_number(
        &self,
        proposal: &mut Proposal,
        from: i64,
        number: f64,
        value: &dyn Fn(IndexId) -> Option<i64>,
    ) {
        // Beyond, an index that is compared is another number in 32 bits than it is.
        if number.is_nan() || number.abs() > 2_f64.powi(23) {
            return;
        }
        let whole = number.fract() == 0.0;
        let (sign, wanted) = match self.sign {
            Comparison::NotEqual => return,
            Comparison::Equal if !whole => return *proposal = Proposal::NONE,
            Comparison::Less | Comparison::LessEqual if !whole => (Comparison::LessEqual, number.floor()),
            Comparison::Greater | Comparison::GreaterEqual if !whole => {
                (Comparison::GreaterEqual, number.ceil())
            }
            sign => (sign, number),
        };
        self.keep(sign, proposal, from, wanted as i64, value);
    }
}

/// Ordinals `from, from + step, … <= to`.
#[derive(Debug, Clone, Copy)]
struct Proposal {
    from: i64,
    to: i64,
    step: i64,
}

/// What a proposal leaves of partners, if there are such.
enum Left<'a> {
    All(Proposal),
    Partners(Proposal, &'a [u32]),
}

impl Left<'_> {
    fn count(&self) -> usize {
        let mut count = 0;
        match self {
            Left::All(proposal) => count = proposal.count(),
            Left::Partners(Proposal { step: 1, .. }, partners) => count = self.within(partners).len(),
            Left::Partners(..) => self.each(|_| count += 1),
        }
        count
    }

    fn each(&self, mut visit: impl FnMut(u32)) {
        match self {
            Left::All(proposal) => proposal.each(visit),
            Left::Partners(proposal, partners) => {
                let partners = self.within(partners);
                if proposal.count() < partners.len() / 8 {
                    return proposal.each(|at| {
                        if partners.binary_search(&at).is_ok() {
                            visit(at);
                        }
                    });
                }
                partners.iter().copied().filter(|at| proposal.has(i64::from(*at))).for_each(visit);
            }
        }
    }

    /// The partners from the first proposed ordinal to the last.
    fn within<'p>(&self, partners: &'p [u32]) -> &'p [u32] {
        let (Left::All(proposal) | Left::Partners(proposal, _)) = self;
        let from = partners.partition_point(|at| i64::from(*at) < proposal.from);
        let to = partners.partition_point(|at| i64::from(*at) <= proposal.to);
        partners.get(from..to).unwrap_or(&[])
    }
}

impl Proposal {
    const NONE: Proposal = Proposal { from: 0, to: -1, step: 1 };

    fn left(self, partners: Option<&[u32]>) -> Left<'_> {
        partners.map_or(Left::All(self), |partners| Left::Partners(self, partners))
    }

    fn has(self, ordinal: i64) -> bool {
        (self.from..=self.to).contains(&ordinal) && (ordinal - self.from) % self.step == 0
    }

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
