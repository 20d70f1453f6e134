//! LSTM (Hochreiter & Schmidhuber 1997, with forget gates) and GRU (Cho et al. 2014).

use training::Initial;

use super::glue::Glue;
use crate::error::Result;
use crate::options::Sizes;
use crate::step::{Act, Builder, Factor, Start, ValueId, View};

fn plain(b: &mut Builder, name: &str, shape: &[usize], x: ValueId) -> (Factor, ValueId) {
    (Factor { weight: b.matrix(name, shape), view: View::Plain }, x)
}

/// i, f, g, o = W x + R h + b; c′ = s(f) ∘ c + s(i) ∘ tanh g; h′ = s(o) ∘ tanh c′
pub(super) fn lstm(b: &mut Builder, sizes: &Sizes) -> Result<Glue> {
    let (n, input) = (sizes.need("hidden")?, sizes.need("input")?);
    let (state, h) = b.state("h", n, Start::Zero);
    let (cell, c) = b.state("c", n, Start::Zero);
    let x = b.input();
    let terms = [plain(b, "W", &[4 * n, input], x), plain(b, "R", &[4 * n, n], h)];
    // The forget gate starts open (Jozefowicz et al. 2015).
    let bias = b.weight("b", &[4 * n], Initial::Segment { value: 1.0, from: n, to: 2 * n });
    let all = b.affine(&terms, Some(bias), &[]);
    let mut gate = |at: usize, act: Act| {
        let block = b.slice(all, at * n, n);
        b.act(act, block)
    };
    let (i, f) = (gate(0, Act::Sigmoid), gate(1, Act::Sigmoid));
    let (g, o) = (gate(2, Act::Tanh), gate(3, Act::Sigmoid));
    let (kept, new) = (b.mul(f, c), b.mul(i, g));
    let next_c = b.sum(&[kept, new]);
    let shown = b.act(Act::Tanh, next_c);
    let next = b.mul(o, shown);
    b.set_state(state, next);
    b.set_state(cell, next_c);
    b.report("c", next_c);
    Ok(Glue { next, act: Act::Relu })
}

/// r and z gates; n = tanh(W x + b + r ∘ (R h + c)); h′ = (1 − z) ∘ n + z ∘ h
pub(super) fn gru(b: &mut Builder, sizes: &Sizes) -> Result<Glue> {
    let (n, input) = (sizes.need("hidden")?, sizes.need("input")?);
    let (state, h) = b.state("h", n, Start::Zero);
    let x = b.input();
    let (bias, inner) = (b.bias("b", 3 * n, 0.0), b.bias("c", n, 0.0));
    let from_x = [plain(b, "W", &[3 * n, input], x)];
    let from_x = b.affine(&from_x, Some(bias), &[]);
    let from_h = [plain(b, "R", &[3 * n, n], h)];
    let from_h = b.affine(&from_h, None, &[]);
    let mut gate = |at: usize| {
        let (left, right) = (b.slice(from_x, at * n, n), b.slice(from_h, at * n, n));
        let sum = b.sum(&[left, right]);
        b.act(Act::Sigmoid, sum)
    };
    let (r, z) = (gate(0), gate(1));
    let (left, right) = (b.slice(from_x, 2 * n, n), b.slice(from_h, 2 * n, n));
    let inside = b.affine(&[], Some(inner), &[right]);
    let inside = b.mul(r, inside);
    let candidate = b.sum(&[left, inside]);
    let candidate = b.act(Act::Tanh, candidate);
    // (1 − z) ∘ n + z ∘ h = n + z ∘ (h − n)
    let minus = b.scale(-1.0, candidate);
    let gap = b.sum(&[h, minus]);
    let moved = b.mul(z, gap);
    let next = b.sum(&[candidate, moved]);
    b.set_state(state, next);
    Ok(Glue { next, act: Act::Relu })
}
