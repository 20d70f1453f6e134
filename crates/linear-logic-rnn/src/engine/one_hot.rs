//! One-hot inputs without their zeros: an operator or a column is chosen by its token.
//!
//! For i symbols a product with x, or with x ⊗ z, is i times as much arithmetic as what its one entry chooses. Where
//! every use of an input is such a product, and inputs come as tokens, the products are made sequence by sequence from
//! the chosen operator; x and x ⊗ z are not written at all. The lane of a sequence is a column of a block, so entries
//! of one sequence lie a row apart: few numbers are moved, and the arithmetic is contiguous in the operator.

use super::frame::{Code, Line, Place};
use super::real::Real;
use super::tiled::Tiled;
use crate::step::{Op, Start, Step, ValueId, View};

/// No token: the input is zero.
pub(super) const NONE: u32 = u32::MAX;

/// The tokens of a block: before the first step, then step by step.
pub(super) type Tokens<const L: usize> = Vec<[u32; L]>;

/// Entries that are computed together.
const WIDE: usize = 8;

/// Symbols from which choosing is worth it where operators are chosen. Measured with H 4 to 25 on 4 to 48 symbols: 0.7 to 1.0
/// times as fast on 4, 1.0 to 1.7 on 8, 1.0 to 6.9 on 48 (`docs/results/LOG.md`, 2026-11-25).
const FEWEST: usize = 8;

/// The same where nothing but columns is chosen: 0.8 to 1.0 on 8, 1.0 to 1.1 on 48, 1.2 to 1.3 on 120.
const FEWEST_COLUMNS: usize = 48;

/// What an affine term or an outer product reads of the inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Chosen {
    /// Not an input.
    No,
    /// The column of a matrix: W x.
    Column {
        /// 0 for this step's input, 1 for the one before.
        back: usize,
    },
    /// An operator on z: Σ_a x_a W[a] z.
    Operator {
        /// 0 for this step's input, 1 for the one before.
        back: usize,
        /// z
        z: Place,
    },
}

/// How a step reads one-hot inputs, line by line.
#[derive(Debug, Clone, Default)]
pub(super) struct OneHot {
    /// For each line, each term of an affine map.
    pub(super) terms: Vec<Vec<Chosen>>,
    /// For each line, if it is an x ⊗ z that is not written: the lines that read it, with the number of the term.
    pub(super) readers: Vec<Option<Vec<(usize, usize)>>>,
}

impl OneHot {
    /// `None` where some use of an input is not a product, or choosing would not be worth it.
    pub(super) fn new(step: &Step, code: &Code) -> Option<Self> {
        let is_known = matches!(step.previous, Start::Zero | Start::First);
        if !is_known {
            return None;
        }
        let found = Self::of(step, code)?;
        let has_operators = found.readers.iter().any(Option::is_some);
        let fewest = if has_operators { FEWEST } else { FEWEST_COLUMNS };
        (step.input >= fewest).then_some(found)
    }

    fn of(step: &Step, code: &Code) -> Option<Self> {
        let node = |value: ValueId| &step.node(value).op;
        let back = |value: ValueId| match node(value) {
            Op::Input => Some(0),
            Op::Previous => Some(1),
            _ => None,
        };
        let line_of = |value: ValueId| code.lines.iter().position(|line| line.value == value);
        let mut found =
            Self { terms: vec![Vec::new(); code.lines.len()], readers: vec![None; code.lines.len()] };
        for (at, line) in code.lines.iter().enumerate() {
            match node(line.value) {
                Op::Outer(x, z) if back(*x).is_some() => {
                    if back(*z).is_some() {
                        return None;
                    }
                    found.readers[at] = Some(Vec::new());
                }
                Op::Affine { terms, add, .. } => {
                    if add.iter().any(|value| back(*value).is_some()) {
                        return None;
                    }
                    for (number, (factor, x)) in terms.iter().enumerate() {
                        let chosen = match (back(*x), node(*x)) {
                            (Some(back), _) if factor.view != View::Stacked => Chosen::Column { back },
                            (Some(_), _) => return None,
                            (None, Op::Outer(x, z)) if back(*x).is_some() => {
                                let outer = line_of(*line.operand(step, number))?;
                                if factor.view != View::Stacked {
                                    return None;
                                }
                                found.readers[outer].as_mut()?.push((at, number));
                                let z = code.places[z.index()];
                                Chosen::Operator { back: back(*x).unwrap_or(0), z }
                            }
                            _ => Chosen::No,
                        };
                        found.terms[at].push(chosen);
                    }
                }
                // Anything else must read neither an input nor an outer product with one.
                op => {
                    let reads = |value: &ValueId| {
                        back(*value).is_some()
                            || matches!(node(*value), Op::Outer(x, _) if back(*x).is_some())
                    };
                    if op.operands().iter().any(reads) {
                        return None;
                    }
                }
            }
        }
        let is_reader = |value: ValueId| {
            matches!(node(value), Op::Input | Op::Previous)
                || matches!(node(value), Op::Outer(x, _) if back(*x).is_some())
        };
        let ends = step.states.iter().map(|state| state.next).chain(step.logits);
        (!ends.into_iter().any(is_reader)).then_some(found)
    }
}

impl Line {
    /// The operand of a term of an affine map.
    fn operand<'a>(&self, step: &'a Step, term: usize) -> &'a ValueId {
        match &step.node(self.value).op {
            Op::Affine { terms, .. } => terms.get(term).map_or(&ValueId(0), |(_, x)| x),
            _ => &ValueId(0),
        }
    }
}

/// A factor by token: what each token chooses, padded to whole vectors.
#[derive(Debug, Clone, Default)]
pub(super) struct ByToken<T> {
    /// [token, column, row]; one column where the factor is a matrix on x.
    pub(super) forward: Vec<T>,
    /// [token, row, column], for operators.
    pub(super) backward: Vec<T>,
}

impl<T: Real> ByToken<T> {
    /// Rows of an operator, and its columns.
    fn shape(tiled: &Tiled, symbols: usize) -> (usize, usize) {
        let rows = tiled.entries.len() / tiled.columns.max(1);
        (rows, tiled.columns / symbols.max(1))
    }

    pub(super) fn new(tiled: &Tiled, symbols: usize, weight: &[T]) -> Self {
        let (rows, columns) = Self::shape(tiled, symbols);
        let entry = |token: usize, row: usize, column: usize| {
            weight[tiled.entries[row * tiled.columns + token * columns + column]]
        };
        let (wide, tall) = (columns.next_multiple_of(WIDE), rows.next_multiple_of(WIDE));
        let mut forward = vec![T::ZERO; symbols * columns * tall];
        for (at, to) in forward.chunks_exact_mut(tall).enumerate() {
            for (row, to) in to.iter_mut().take(rows).enumerate() {
                *to = entry(at / columns, row, at % columns);
            }
        }
        let mut backward = Vec::new();
        // An operator on one number has one column too.
        if tiled.factor.view == View::Stacked {
            backward = vec![T::ZERO; symbols * rows * wide];
            for (at, to) in backward.chunks_exact_mut(wide).enumerate() {
                for (column, to) in to.iter_mut().take(columns).enumerate() {
                    *to = entry(at / rows, at % rows, column);
                }
            }
        }
        Self { forward, backward }
    }
}

/// y ← W[token] x for every sequence, or y ← y + that. `table` is [token, entry of x, entry of y], padded.
#[inline(always)]
pub(super) fn chosen<T: Real, const L: usize>(
    y: &mut [T],
    table: &[T],
    x: &[T],
    tokens: &[u32; L],
    adds: bool,
) {
    let (rows, columns) = (y.len() / L, x.len() / L);
    let wide = rows.next_multiple_of(WIDE);
    let size = columns * wide;
    for (lane, token) in tokens.iter().enumerate() {
        let operator = (*token as usize).checked_mul(size).and_then(|at| table.get(at..at + size));
        let Some(operator) = operator else {
            if !adds {
                y.iter_mut().skip(lane).step_by(L).for_each(|y| *y = T::ZERO);
            }
            continue;
        };
        for start in (0..rows).step_by(WIDE) {
            let mut sums = [T::ZERO; WIDE];
            for (column, x) in operator.chunks_exact(wide).zip(x.chunks_exact(L)) {
                let (w, x) = (&column[start..start + WIDE], x[lane]);
                for l in 0..WIDE {
                    sums[l] = x.fma(w[l], sums[l]);
                }
            }
            for (y, sum) in y[start * L..].chunks_exact_mut(L).zip(sums) {
                y[lane] = if adds { y[lane] + sum } else { sum };
            }
        }
    }
}

/// y ← the column of every sequence's token, or y ← y + that.
#[inline(always)]
pub(super) fn column<T: Real, const L: usize>(y: &mut [T], table: &[T], tokens: &[u32; L], adds: bool) {
    let wide = (y.len() / L).next_multiple_of(WIDE);
    for (lane, token) in tokens.iter().enumerate() {
        let entries = (*token as usize).checked_mul(wide).and_then(|at| table.get(at..at + wide));
        match entries {
            None if adds => {}
            None => y.iter_mut().skip(lane).step_by(L).for_each(|y| *y = T::ZERO),
            Some(entries) => {
                for (y, w) in y.chunks_exact_mut(L).zip(entries) {
                    y[lane] = if adds { y[lane] + *w } else { *w };
                }
            }
        }
    }
}

/// sum\[token\]\[r\]\[c\] += dy_r x_c for every sequence; `entry` says where (token, r, 0) stands, and columns follow it.
#[inline(always)]
pub(super) fn chosen_sums<T: Real, const L: usize>(
    sum: &mut [T],
    dy: &[T],
    x: &[T],
    tokens: &[u32; L],
    scratch: &mut Vec<T>,
) {
    let (rows, columns) = (dy.len() / L, x.len() / L);
    let size = rows * columns;
    scratch.resize(columns, T::ZERO);
    for (lane, token) in tokens.iter().enumerate() {
        let at = (*token as usize).checked_mul(size);
        let Some(sum) = at.and_then(|at| sum.get_mut(at..at + size)) else { continue };
        for (to, x) in scratch.iter_mut().zip(x.chunks_exact(L)) {
            *to = x[lane];
        }
        for (sum, dy) in sum.chunks_exact_mut(columns).zip(dy.chunks_exact(L)) {
            let dy = dy[lane];
            for (sum, x) in sum.iter_mut().zip(scratch.iter()) {
                *sum = dy.fma(*x, *sum);
            }
        }
    }
}
