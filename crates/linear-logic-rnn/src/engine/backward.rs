//! One step backward on a block of sequences: from the gradients of a frame's values to those of their operands.
//!
//! An operand's gradient is written by [`Machine::towards`], which knows whether it is stored or added to. Gradients
//! of weights are not made here: they are sums over steps and sequences, made at the end by [`super::weights`].

use super::forward::{Machine, SHARPEN, members};
use super::frame::{Flow, Line, slope};
use super::lanes::{gate, inner, map, product, zip};
use super::one_hot::{Chosen, OneHot, chosen};
use super::real::Real;
use crate::step::{Act, Groups, Op};

impl<T: Real, const L: usize> Machine<'_, T, L> {
    /// Turns the gradients of the frame that begins at `here` into those of what it was made of.
    #[inline(always)]
    pub(super) fn backward(&self, frames: &[T], gradients: &mut [T], here: usize) {
        for (number, line) in self.code.lines.iter().enumerate().rev().filter(|(_, line)| line.carries) {
            if let Some((hot, tokens)) = self.hot
                && let Some(readers) = &hot.readers[number]
            {
                self.operators_backward((number, line), readers, (hot, tokens), gradients, here);
                continue;
            }
            let start = self.start(line.out, here);
            let (before, rest) = gradients.split_at_mut(start);
            let gradient = &rest[..line.out.rows * L];
            let value = &frames[start..start + line.out.rows * L];
            self.line_backward((number, line), frames, before, gradient, value, here);
        }
    }

    /// From the gradients of the lines that read an x ⊗ z which was not written to that of z.
    #[inline(always)]
    fn operators_backward(
        &self,
        (_, line): (usize, &Line),
        readers: &[(usize, usize)],
        (hot, tokens): (&OneHot, &[[u32; L]]),
        gradients: &mut [T],
        here: usize,
    ) {
        let time = here / self.frame();
        // z stands in front of the lines that read it.
        let (before, rest) = gradients.split_at_mut(self.start(line.out, here));
        let mut adds = None;
        for (reader, term) in readers.iter().filter(|(reader, _)| self.code.lines[*reader].carries) {
            let Chosen::Operator { back, .. } = hot.terms[*reader][*term] else { continue };
            let Some((dz, first)) = self.towards(line, 1, before, here) else { return };
            let out = self.code.lines[*reader].out;
            let from = (out.at - line.out.at) * L;
            let dy = &rest[from..from + out.rows * L];
            let factor = self.code.lines[*reader].factors[*term];
            let table = &self.prepared.by_token(self.code, factor).backward;
            chosen::<_, L>(dz, table, dy, &tokens[time - back], adds.unwrap_or(first));
            adds = Some(true);
        }
    }

    /// The gradient of operand `at`, to be stored (false) or added to (true), if anything trained is below it.
    #[inline(always)]
    fn towards<'b>(
        &self,
        line: &Line,
        at: usize,
        before: &'b mut [T],
        here: usize,
    ) -> Option<(&'b mut [T], bool)> {
        let flow = line.flows[at];
        if flow == Flow::None {
            return None;
        }
        let place = line.operands[at];
        let start = self.start(place, here);
        Some((&mut before[start..start + place.rows * L], flow.adds()))
    }

    #[inline(always)]
    fn line_backward(
        &self,
        (number, line): (usize, &Line),
        frames: &[T],
        before: &mut [T],
        dy: &[T],
        y: &[T],
        here: usize,
    ) {
        let operand = |at: usize| self.get(frames, line.operands[at], here);
        match &self.step.node(line.value).op {
            Op::Input | Op::Previous | Op::State(_) | Op::Vector(_) | Op::Row(_) => {}
            Op::Affine { terms, add, .. } => {
                for (at, factor) in line.factors.iter().enumerate() {
                    if self.hot.is_some_and(|(hot, _)| hot.terms[number][at] != Chosen::No) {
                        continue;
                    }
                    if let Some((dx, adds)) = self.towards(line, at, before, here) {
                        product::<_, L>(dx, &self.prepared.packed(self.code, *factor).backward, dy, adds);
                    }
                }
                for at in terms.len()..terms.len() + add.len() {
                    if let Some((dx, adds)) = self.towards(line, at, before, here) {
                        map(dx, dy, adds, |g| g);
                    }
                }
            }
            Op::Outer(..) => {
                let (x, z) = (operand(0), operand(1));
                if let Some((dx, adds)) = self.towards(line, 0, before, here) {
                    for (dx, dy) in dx.chunks_exact_mut(L).zip(dy.chunks_exact(z.len())) {
                        inner::<_, L>(dx, dy, z, adds);
                    }
                }
                if let Some((dz, adds)) = self.towards(line, 1, before, here) {
                    for (at, (x, dy)) in x.chunks_exact(L).zip(dy.chunks_exact(z.len())).enumerate() {
                        gate::<_, L>(dz, x, dy, adds || at > 0);
                    }
                }
            }
            Op::Mul(..) => {
                let (a, b) = (operand(0), operand(1));
                let is_whole = a.len() == b.len();
                if let Some((da, adds)) = self.towards(line, 0, before, here) {
                    if is_whole {
                        zip(da, dy, b, adds, |g, b| g * b);
                    } else {
                        inner::<_, L>(da, dy, b, adds);
                    }
                }
                if let Some((db, adds)) = self.towards(line, 1, before, here) {
                    if is_whole {
                        zip(db, dy, a, adds, |g, a| g * a);
                    } else {
                        gate::<_, L>(db, a, dy, adds);
                    }
                }
            }
            Op::Scale(c, _) => {
                let c = T::from_f64(*c);
                if let Some((dx, adds)) = self.towards(line, 0, before, here) {
                    map(dx, dy, adds, |g| c * g);
                }
            }
            Op::Mix { items, .. } => {
                let gates = operand(0);
                let each = gates.len() / items.len();
                if let Some((dg, adds)) = self.towards(line, 0, before, here) {
                    for (at, dg) in dg.chunks_exact_mut(each).enumerate() {
                        if each == L {
                            inner::<_, L>(dg, dy, operand(at + 1), adds);
                        } else {
                            zip(dg, dy, operand(at + 1), adds, |g, y| g * y);
                        }
                    }
                }
                for (at, g) in gates.chunks_exact(each).enumerate() {
                    if let Some((dx, adds)) = self.towards(line, at + 1, before, here) {
                        if each == L {
                            gate::<_, L>(dx, g, dy, adds);
                        } else {
                            zip(dx, g, dy, adds, |g, dy| g * dy);
                        }
                    }
                }
            }
            Op::Act(act, _) => {
                if let Some((dx, adds)) = self.towards(line, 0, before, here) {
                    match act {
                        Act::Identity => map(dx, dy, adds, |g| g),
                        Act::Relu => zip(dx, dy, y, adds, |g, y| g * slope(Act::Relu, y)),
                        Act::Tanh => zip(dx, dy, y, adds, |g, y| g * slope(Act::Tanh, y)),
                        Act::Sigmoid => zip(dx, dy, y, adds, |g, y| g * slope(Act::Sigmoid, y)),
                    }
                }
            }
            Op::Softmax(groups, _) => {
                if let Some((dx, adds)) = self.towards(line, 0, before, here) {
                    softmax_backward::<_, L>(dx, dy, y, *groups, adds);
                }
            }
            Op::Slice { start, .. } => {
                if let Some((dx, adds)) = self.towards(line, 0, before, here) {
                    if !adds {
                        dx.fill(T::ZERO);
                    }
                    map(&mut dx[start * L..start * L + dy.len()], dy, true, |g| g);
                }
            }
            Op::Apply { .. } => {
                let (matrix, z) = (operand(0), operand(1));
                if let Some((da, adds)) = self.towards(line, 0, before, here) {
                    for (da, dy) in da.chunks_exact_mut(z.len()).zip(dy.chunks_exact(L)) {
                        gate::<_, L>(da, dy, z, adds);
                    }
                }
                if let Some((dz, adds)) = self.towards(line, 1, before, here) {
                    for (at, (row, dy)) in matrix.chunks_exact(z.len()).zip(dy.chunks_exact(L)).enumerate() {
                        gate::<_, L>(dz, dy, row, adds || at > 0);
                    }
                }
            }
            Op::Turn { powers, .. } => {
                let (q, v) = (operand(0), operand(1));
                if let Some((dq, adds)) = self.towards(line, 0, before, here) {
                    for (dq, power) in dq.chunks_exact_mut(L).zip(powers) {
                        let shift = turned::<L>(*power, v.len());
                        inner::<_, L>(dq, &dy[shift..], &v[..v.len() - shift], adds);
                        inner::<_, L>(dq, &dy[..shift], &v[v.len() - shift..], true);
                    }
                }
                if let Some((dv, adds)) = self.towards(line, 1, before, here) {
                    for (j, (q, power)) in q.chunks_exact(L).zip(powers).enumerate() {
                        let shift = turned::<L>(*power, v.len());
                        let (front, back) = dv.split_at_mut(v.len() - shift);
                        gate::<_, L>(front, q, &dy[shift..], adds || j > 0);
                        gate::<_, L>(back, q, &dy[..shift], adds || j > 0);
                    }
                }
            }
            Op::Sharpen { .. } => self.sharpen_backward(line, frames, before, dy, y, here),
            Op::Read { .. } => {
                let (memory, r) = (operand(0), operand(1));
                if let Some((dm, adds)) = self.towards(line, 0, before, here) {
                    for (dm, r) in dm.chunks_exact_mut(dy.len()).zip(r.chunks_exact(L)) {
                        gate::<_, L>(dm, r, dy, adds);
                    }
                }
                if let Some((dr, adds)) = self.towards(line, 1, before, here) {
                    for (dr, m) in dr.chunks_exact_mut(L).zip(memory.chunks_exact(dy.len())) {
                        inner::<_, L>(dr, m, dy, adds);
                    }
                }
            }
            Op::Write { .. } => self.write_backward(line, frames, before, dy, here),
        }
    }

    /// With s_k = (v_k + ε)^γ and y = s/Σs: the gradient of ln s_k is u_k = y_k (g_k − Σ g y); dv_k = u_k γ/(v_k + ε)
    /// and dγ = Σ u_k ln(v_k + ε).
    #[inline(always)]
    fn sharpen_backward(&self, line: &Line, frames: &[T], before: &mut [T], dy: &[T], y: &[T], here: usize) {
        let small = T::from_f64(SHARPEN);
        let v = self.get(frames, line.operands[0], here);
        let exponent = self.get(frames, line.operands[1], here);
        let mut dot = [T::ZERO; L];
        inner::<_, L>(&mut dot, dy, y, false);
        if let Some((dv, adds)) = self.towards(line, 0, before, here) {
            for (at, dv) in dv.chunks_exact_mut(L).enumerate() {
                let rows = at * L..(at + 1) * L;
                let (v, dy, y) = (&v[rows.clone()], &dy[rows.clone()], &y[rows]);
                for l in 0..L {
                    let g = y[l] * (dy[l] - dot[l]) * exponent[l] / (v[l] + small);
                    dv[l] = if adds { dv[l] + g } else { g };
                }
            }
        }
        if let Some((dg, adds)) = self.towards(line, 1, before, here) {
            if !adds {
                dg.fill(T::ZERO);
            }
            for (v, (dy, y)) in v.chunks_exact(L).zip(dy.chunks_exact(L).zip(y.chunks_exact(L))) {
                for l in 0..L {
                    dg[l] += y[l] * (dy[l] - dot[l]) * (v[l] + small).ln();
                }
            }
        }
    }

    /// dM = g − g ∘ (w eᵀ); dw = Σ g ∘ (a − M ∘ e) over contents; de = −Σ g ∘ M w and da = Σ g w over addresses.
    #[inline(always)]
    fn write_backward(&self, line: &Line, frames: &[T], before: &mut [T], dy: &[T], here: usize) {
        let operand = |at: usize| self.get(frames, line.operands[at], here);
        let (memory, w, erase, add) = (operand(0), operand(1), operand(2), operand(3));
        let content = erase.len();
        let addresses = w.len() / L;
        let of = |n: usize| n * content..(n + 1) * content;
        let weight = |n: usize| &w[n * L..(n + 1) * L];
        if let Some((dm, adds)) = self.towards(line, 0, before, here) {
            for n in 0..addresses {
                let rows = dm[of(n)].chunks_exact_mut(L).zip(dy[of(n)].chunks_exact(L));
                for ((dm, g), e) in rows.zip(erase.chunks_exact(L)) {
                    let w = weight(n);
                    for l in 0..L {
                        let kept = g[l] - g[l] * w[l] * e[l];
                        dm[l] = if adds { dm[l] + kept } else { kept };
                    }
                }
            }
        }
        if let Some((dw, adds)) = self.towards(line, 1, before, here) {
            for (n, dw) in dw.chunks_exact_mut(L).enumerate() {
                if !adds {
                    dw.fill(T::ZERO);
                }
                let rows = dy[of(n)].chunks_exact(L).zip(memory[of(n)].chunks_exact(L));
                for ((g, m), (e, a)) in rows.zip(erase.chunks_exact(L).zip(add.chunks_exact(L))) {
                    for l in 0..L {
                        dw[l] = g[l].fma(a[l] - m[l] * e[l], dw[l]);
                    }
                }
            }
        }
        if let Some((de, adds)) = self.towards(line, 2, before, here) {
            if !adds {
                de.fill(T::ZERO);
            }
            for n in 0..addresses {
                let rows = dy[of(n)].chunks_exact(L).zip(memory[of(n)].chunks_exact(L));
                for (de, (g, m)) in de.chunks_exact_mut(L).zip(rows) {
                    let w = weight(n);
                    for l in 0..L {
                        de[l] = (-(g[l] * m[l])).fma(w[l], de[l]);
                    }
                }
            }
        }
        if let Some((da, adds)) = self.towards(line, 3, before, here) {
            for n in 0..addresses {
                gate::<_, L>(da, weight(n), &dy[of(n)], adds || n > 0);
            }
        }
    }
}

#[inline(always)]
fn turned<const L: usize>(power: i64, len: usize) -> usize {
    power.rem_euclid((len / L) as i64) as usize * L
}

/// dx_k = y_k (g_k − Σ g y) in every group.
#[inline(always)]
fn softmax_backward<T: Real, const L: usize>(dx: &mut [T], dy: &[T], y: &[T], groups: Groups, adds: bool) {
    let (count, len, far, near) = members(groups, y.len() / L);
    let rows = |group: usize, member: usize| {
        let at = (group * far + member * near) * L;
        at..at + L
    };
    for group in 0..count {
        let mut dot = [T::ZERO; L];
        for member in 0..len {
            inner::<_, L>(&mut dot, &dy[rows(group, member)], &y[rows(group, member)], true);
        }
        for member in 0..len {
            let at = rows(group, member);
            let (dx, dy, y) = (&mut dx[at.clone()], &dy[at.clone()], &y[at]);
            for l in 0..L {
                let g = y[l] * (dy[l] - dot[l]);
                dx[l] = if adds { dx[l] + g } else { g };
            }
        }
    }
}
