//! Elman's cell, and those in which the input multiplies the state: Definitions 2.1 to 2.7.

use super::glue::{Glue, initial_v};
use crate::error::Result;
use crate::options::{MiWeights, Sigma, Sizes, of};
use crate::step::{Builder, Factor, Start, StateId, ValueId, View};

/// The weights H, U, B and the state that most cells share.
pub(super) struct Simple {
    pub(super) state: StateId,
    pub(super) h: ValueId,
    pub(super) x: ValueId,
    pub(super) hidden: usize,
    pub(super) input: usize,
}

impl Simple {
    pub(super) fn new(b: &mut Builder, sizes: &Sizes, start: Start) -> Result<Self> {
        let (hidden, input) = (sizes.need("hidden")?, sizes.need("input")?);
        let (state, h) = b.state("h", hidden, start);
        let x = b.input();
        Ok(Self { state, h, x, hidden, input })
    }

    /// H h + U x + B + Σ of what is given, without H h if `hh` is false.
    pub(super) fn affine(&self, b: &mut Builder, hh: bool, add: &[ValueId]) -> ValueId {
        let mut terms = Vec::new();
        if hh {
            let weight = b.matrix("H", &[self.hidden, self.hidden]);
            terms.push((Factor { weight, view: View::Plain }, self.h));
        }
        let weight = b.matrix("U", &[self.hidden, self.input]);
        terms.push((Factor { weight, view: View::Plain }, self.x));
        let bias = b.bias("B", self.hidden, 0.0);
        b.affine(&terms, Some(bias), add)
    }

    /// h′ = σ(z)
    pub(super) fn end(&self, b: &mut Builder, act: Option<Sigma>, z: ValueId) -> Glue {
        let act = act.unwrap_or(Sigma::Relu).act();
        let next = b.act(act, z);
        b.set_state(self.state, next);
        Glue { next, act }
    }
}

/// h′ = σ(H h + U x + B)
pub(super) fn elman(b: &mut Builder, sizes: &Sizes, options: &of::Elman) -> Result<Glue> {
    let simple = Simple::new(b, sizes, Start::Zero)?;
    let z = simple.affine(b, true, &[]);
    Ok(simple.end(b, options.act, z))
}

/// h′ = σ(V(x) h + H h + U x + B)
pub(super) fn second_order(b: &mut Builder, sizes: &Sizes, options: &of::SecondOrder) -> Result<Glue> {
    let simple = Simple::new(b, sizes, Start::Zero)?;
    let shape = [simple.input, simple.hidden, simple.hidden];
    let v = b.weight("V", &shape, initial_v(options.v_init, &shape));
    let vh = b.operate(v, simple.x, simple.h);
    let z = simple.affine(b, true, &[vh]);
    Ok(simple.end(b, options.act, z))
}

/// h′ = σ(I(V(x) ∘ J h) + H h + U x + B)
pub(super) fn mrnn(b: &mut Builder, sizes: &Sizes, options: &of::Mrnn) -> Result<Glue> {
    let simple = Simple::new(b, sizes, Start::Zero)?;
    let aux = sizes.need("aux")?;
    let shape = [simple.input, aux];
    let v = b.weight("V", &shape, initial_v(options.v_init, &shape));
    let (back, to) = (b.matrix("I", &[simple.hidden, aux]), b.matrix("J", &[aux, simple.hidden]));
    let operator = b.select(v, simple.x);
    let u = b.product(to, simple.h);
    let vu = b.mul(operator, u);
    let m = b.product(back, vu);
    let z = simple.affine(b, options.hh.unwrap_or(true), &[m]);
    Ok(simple.end(b, options.act, z))
}

/// h′ = σ(alpha ∘ U x ∘ H h + beta1 ∘ H h + beta2 ∘ U x + B), Wu et al. 2016.
pub(super) fn mi(b: &mut Builder, sizes: &Sizes, options: &of::Mi) -> Result<Glue> {
    let simple = Simple::new(b, sizes, Start::Zero)?;
    let weight = b.matrix("H", &[simple.hidden, simple.hidden]);
    let hh = b.product(weight, simple.h);
    let weight = b.matrix("U", &[simple.hidden, simple.input]);
    let ux = b.product(weight, simple.x);
    let bias = b.bias("B", simple.hidden, 0.0);
    let both = b.mul(ux, hh);
    let mut terms = [both, hh, ux];
    if options.mi_weights.unwrap_or(MiWeights::Learned) == MiWeights::Learned {
        for (name, term) in ["alpha", "beta1", "beta2"].into_iter().zip(&mut terms) {
            let weight = b.bias(name, simple.hidden, 1.0);
            let factor = b.vector(weight);
            *term = b.mul(factor, *term);
        }
    }
    let z = b.affine(&[], Some(bias), &terms);
    Ok(simple.end(b, options.act, z))
}
