//! One step forward on a block of sequences.

use super::frame::{Code, Line, Place};
use super::lanes::{gate, inner, map, product, spread, zip};
use super::one_hot::{Chosen, OneHot, chosen, column};
use super::pack::Prepared;
use super::real::Real;
use crate::step::{Act, Groups, Op, Step};

/// What a step needs besides its frame.
#[derive(Debug, Clone, Copy)]
pub(super) struct Machine<'a, T, const L: usize> {
    pub(super) step: &'a Step,
    pub(super) code: &'a Code,
    pub(super) prepared: &'a Prepared<T>,
    /// The tokens of the block, before the first step and then step by step, if inputs are read by them.
    pub(super) hot: Option<(&'a OneHot, &'a [[u32; L]])>,
}

impl<T, const L: usize> Machine<'_, T, L> {
    /// The numbers of a frame.
    #[inline(always)]
    pub(super) fn frame(&self) -> usize {
        self.code.rows * L
    }

    /// Where the rows of a place begin, for the frame that begins at `here`.
    #[inline(always)]
    pub(super) fn start(&self, place: Place, here: usize) -> usize {
        here - place.back * self.frame() + place.at * L
    }

    /// The rows of a place.
    #[inline(always)]
    pub(super) fn get<'b>(&self, frames: &'b [T], place: Place, here: usize) -> &'b [T] {
        let start = self.start(place, here);
        &frames[start..start + place.rows * L]
    }
}

impl<T: Real, const L: usize> Machine<'_, T, L> {
    /// Computes the frame that begins at `here`; its input stands there already. `time` counts from 1.
    #[inline(always)]
    pub(super) fn forward(&self, frames: &mut [T], here: usize, time: usize) {
        for (number, line) in self.code.lines.iter().enumerate() {
            if self.hot.is_some_and(|(hot, _)| hot.readers[number].is_some()) {
                continue;
            }
            let (before, rest) = frames.split_at_mut(self.start(line.out, here));
            self.line((number, line), before, &mut rest[..line.out.rows * L], here, time);
        }
    }

    /// Computes one value; its operands lie in front of it.
    #[inline(always)]
    fn line(&self, (number, line): (usize, &Line), before: &[T], out: &mut [T], here: usize, time: usize) {
        let operand = |at: usize| self.get(before, line.operands[at], here);
        match &self.step.node(line.value).op {
            Op::Input | Op::Previous | Op::State(_) => {}
            Op::Vector(weight) => spread::<_, L>(out, &self.prepared.weights[weight.index()]),
            Op::Row(weight) => spread::<_, L>(out, self.table_row(weight.index(), line.out.rows, time)),
            Op::Affine { terms, bias, add } => {
                let mut adds = true;
                match bias {
                    Some(bias) => spread::<_, L>(out, &self.prepared.weights[bias.index()]),
                    None => adds = false,
                }
                for at in 0..add.len() {
                    map(out, operand(terms.len() + at), adds, |x| x);
                    adds = true;
                }
                for (at, factor) in line.factors.iter().enumerate() {
                    match self.hot.map(|(hot, tokens)| (hot.terms[number][at], tokens)) {
                        None | Some((Chosen::No, _)) => {
                            let packed = self.prepared.packed(self.code, *factor);
                            product::<_, L>(out, &packed.forward, operand(at), adds);
                        }
                        Some((Chosen::Column { back }, tokens)) => {
                            let table = &self.prepared.by_token(self.code, *factor).forward;
                            column::<_, L>(out, table, &tokens[time - back], adds);
                        }
                        Some((Chosen::Operator { back, z }, tokens)) => {
                            let table = &self.prepared.by_token(self.code, *factor).forward;
                            chosen::<_, L>(out, table, self.get(before, z, here), &tokens[time - back], adds);
                        }
                    }
                    adds = true;
                }
            }
            Op::Outer(..) => {
                let z = operand(1);
                for (out, x) in out.chunks_exact_mut(z.len()).zip(operand(0).chunks_exact(L)) {
                    gate::<_, L>(out, x, z, false);
                }
            }
            Op::Mul(..) if line.operands[0].rows == line.out.rows => {
                zip(out, operand(0), operand(1), false, |a, b| a * b);
            }
            Op::Mul(..) => gate::<_, L>(out, operand(0), operand(1), false),
            Op::Scale(c, _) => {
                let c = T::from_f64(*c);
                map(out, operand(0), false, |x| c * x);
            }
            Op::Mix { items, .. } => {
                let gates = operand(0).chunks_exact(operand(0).len() / items.len());
                for (at, g) in gates.enumerate() {
                    if g.len() == L {
                        gate::<_, L>(out, g, operand(at + 1), at > 0);
                    } else {
                        zip(out, g, operand(at + 1), at > 0, |g, y| g * y);
                    }
                }
            }
            Op::Act(act, _) => match act {
                Act::Identity => map(out, operand(0), false, |x| x),
                Act::Relu => map(out, operand(0), false, relu),
                Act::Tanh => map(out, operand(0), false, T::tanh),
                Act::Sigmoid => map(out, operand(0), false, T::logistic),
            },
            Op::Softmax(groups, _) => softmax::<_, L>(out, operand(0), *groups),
            Op::Slice { start, .. } => {
                let from = start * L;
                out.copy_from_slice(&operand(0)[from..from + out.len()]);
            }
            Op::Apply { .. } => {
                let z = operand(1);
                for (out, row) in out.chunks_exact_mut(L).zip(operand(0).chunks_exact(z.len())) {
                    inner::<_, L>(out, row, z, false);
                }
            }
            Op::Turn { powers, .. } => turn::<_, L>(out, operand(0), operand(1), powers),
            Op::Sharpen { .. } => sharpen::<_, L>(out, operand(0), operand(1)),
            Op::Read { .. } => {
                out.fill(T::ZERO);
                let address = operand(1).chunks_exact(L);
                for (row, r) in operand(0).chunks_exact(out.len()).zip(address) {
                    gate::<_, L>(out, r, row, true);
                }
            }
            Op::Write { .. } => {
                let (erase, add) = (operand(2), operand(3));
                let memory = operand(0).chunks_exact(erase.len()).zip(operand(1).chunks_exact(L));
                for (out, (m, w)) in out.chunks_exact_mut(erase.len()).zip(memory) {
                    write_row::<_, L>(out, m, w, erase, add);
                }
            }
        }
    }

    /// The entries of a table for step `time`.
    #[inline(always)]
    pub(super) fn table_row(&self, weight: usize, len: usize, time: usize) -> &[T] {
        let table = &self.prepared.weights[weight];
        let row = (time - 1) % (table.len() / len).max(1);
        &table[row * len..(row + 1) * len]
    }
}

/// max(x, 0), and NaN for NaN: a broken number is not hidden.
#[inline(always)]
fn relu<T: Real>(x: T) -> T {
    if x < T::ZERO { T::ZERO } else { x }
}

/// The rows of group member `member` of group `group`: (member, group) to a row.
#[inline(always)]
pub(super) fn members(groups: Groups, rows: usize) -> (usize, usize, usize, usize) {
    // (groups, members, distance between groups, distance between members)
    match groups {
        Groups::Rows(n) => (rows / n.max(1), n, n, 1),
        Groups::Blocks(n) => (rows / n.max(1), n, 1, rows / n.max(1)),
    }
}

#[inline(always)]
fn row<T, const L: usize>(x: &[T], at: usize) -> &[T] {
    &x[at * L..(at + 1) * L]
}

#[inline(always)]
fn row_mut<T, const L: usize>(x: &mut [T], at: usize) -> &mut [T] {
    &mut x[at * L..(at + 1) * L]
}

#[inline(always)]
fn softmax<T: Real, const L: usize>(out: &mut [T], x: &[T], groups: Groups) {
    let (count, len, far, near) = members(groups, x.len() / L);
    for group in 0..count {
        let mut greatest = [T::from_f64(f64::NEG_INFINITY); L];
        for member in 0..len {
            for (m, x) in greatest.iter_mut().zip(row::<_, L>(x, group * far + member * near)) {
                *m = x.greater(*m);
            }
        }
        let mut total = [T::ZERO; L];
        for member in 0..len {
            let at = group * far + member * near;
            let row = row_mut::<_, L>(out, at);
            zip(row, self::row::<_, L>(x, at), &greatest, false, |x, m| (x - m).exp());
            map(&mut total, row, true, |e| e);
        }
        for member in 0..len {
            for (y, total) in row_mut::<_, L>(out, group * far + member * near).iter_mut().zip(&total) {
                *y = *y / *total;
            }
        }
    }
}

/// out_k = Σ_j q_j v_{(k − p_j) mod N}
#[inline(always)]
fn turn<T: Real, const L: usize>(out: &mut [T], q: &[T], v: &[T], powers: &[i64]) {
    let n = v.len() / L;
    for (j, power) in powers.iter().enumerate() {
        // Rows 0…n−s−1 of v go to s…n−1, the last s to the front.
        let shift = power.rem_euclid(n as i64) as usize * L;
        let (q, (front, back)) = (row::<_, L>(q, j), out.split_at_mut(shift));
        gate::<_, L>(back, q, &v[..v.len() - shift], j > 0);
        gate::<_, L>(front, q, &v[v.len() - shift..], j > 0);
    }
}

/// ε of the sharpening.
pub(super) const SHARPEN: f64 = 1e-6;

/// (v_k + ε)^γ = e^{γ ln(v_k + ε)}, over the sum: the softmax of γ ln(v_k + ε). Its maximum is subtracted, because a
/// power of every entry may be below the least number (a uniform address over 128, γ = 21 in 32 bits).
#[inline(always)]
fn sharpen<T: Real, const L: usize>(out: &mut [T], v: &[T], exponent: &[T]) {
    let small = T::from_f64(SHARPEN);
    let mut most = [T::from_f64(f64::NEG_INFINITY); L];
    for (out, v) in out.chunks_exact_mut(L).zip(v.chunks_exact(L)) {
        zip(out, v, exponent, false, |v, g| g * (v + small).ln());
        for (most, u) in most.iter_mut().zip(out.iter()) {
            *most = most.greater(*u);
        }
    }
    let mut total = [T::ZERO; L];
    for out in out.chunks_exact_mut(L) {
        for (u, most) in out.iter_mut().zip(&most) {
            *u = (*u - *most).exp();
        }
        map(&mut total, out, true, |u| u);
    }
    for out in out.chunks_exact_mut(L) {
        for (y, total) in out.iter_mut().zip(&total) {
            *y = *y / *total;
        }
    }
}

/// m − m ∘ w e + w a, for the contents of one address.
#[inline(always)]
fn write_row<T: Real, const L: usize>(out: &mut [T], m: &[T], w: &[T], erase: &[T], add: &[T]) {
    let rows = out.chunks_exact_mut(L).zip(m.chunks_exact(L));
    for ((out, m), (e, a)) in rows.zip(erase.chunks_exact(L).zip(add.chunks_exact(L))) {
        for l in 0..L {
            out[l] = w[l].fma(a[l] - m[l] * e[l], m[l]);
        }
    }
}
