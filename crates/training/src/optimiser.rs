//! AdamW (Loshchilov & Hutter 2019) with decay groups, clipping and an average of the weights, in one pass; RMSProp
//! (Tieleman & Hinton 2012) beside it.
//!
//! Enter at [`Optimiser::update`]. Both keep two numbers for each weight, [`Moments`], which a checkpoint holds.

use rayon::prelude::*;

use crate::kernels::multiversion;
use crate::parameters::{Decay, Layout};

/// The constants of AdamW.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AdamW {
    /// β₁
    pub beta1: f64,
    /// β₂
    pub beta2: f64,
    /// ε, outside the root
    pub eps: f64,
    /// λ, decoupled; acts on parameters with [`Decay::Yes`]
    pub weight_decay: f64,
    /// β of the average of the weights; 0 switches it off
    pub ema: f64,
}

/// The constants of RMSProp, as [`crate::rules::Rule::RmsProp`] has them in double precision.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RmsProp {
    /// Decay of the mean square, which starts at 1
    pub decay: f64,
    /// What stays of the last step
    pub momentum: f64,
    /// ε, inside the root
    pub eps: f64,
}

/// How weights move.
#[derive(Debug, Clone, Copy, PartialEq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Optimiser {
    AdamW(AdamW),
    RmsProp(RmsProp),
}

impl From<AdamW> for Optimiser {
    fn from(adamw: AdamW) -> Self {
        Self::AdamW(adamw)
    }
}

impl From<RmsProp> for Optimiser {
    fn from(rmsprop: RmsProp) -> Self {
        Self::RmsProp(rmsprop)
    }
}

/// The moments, and the average of the weights where there is one. All in the order of the layout.
#[derive(Debug, Clone, PartialEq)]
pub struct Moments {
    /// First moment; the last step of RMSProp.
    pub m: Vec<f32>,
    /// Second moment; the mean square of RMSProp.
    pub v: Vec<f32>,
    /// Average of the weights.
    pub ema: Option<Vec<f32>>,
}

impl Moments {
    /// Zero moments; the average begins at the weights.
    pub fn new(theta: &[f32], ema: f64) -> Self {
        let average = (ema > 0.0).then(|| theta.to_vec());
        Self { m: vec![0.0; theta.len()], v: vec![0.0; theta.len()], ema: average }
    }
}

/// When and how far an update goes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Update {
    /// From 1; the bias correction counts by it.
    pub number: u64,
    /// The learning rate.
    pub lr: f64,
    /// What multiplies the gradient first: clipping, and the division by the number of targets.
    pub factor: f64,
}

/// The scalars of one update, in f32 as the kernel uses them.
#[derive(Clone, Copy)]
struct Step {
    clip: f32,
    beta1: f32,
    beta2: f32,
    /// 1 − lr·λ
    keep: f32,
    /// lr/(1 − β₁ᵗ)
    rate: f32,
    /// 1/(1 − β₂ᵗ)
    correction: f32,
    eps: f32,
}

/// The scalars of an update of RMSProp.
#[derive(Clone, Copy)]
struct RmsPropStep {
    clip: f32,
    decay: f32,
    /// 1 − decay
    fresh: f32,
    momentum: f32,
    rate: f32,
    eps: f32,
}

multiversion! {
    fn step_block(theta: &mut [f32], m: &mut [f32], v: &mut [f32], gradient: &mut [f32], s: Step) {
        for (((t, m), v), g) in theta.iter_mut().zip(m).zip(v).zip(gradient) {
            let scaled = *g * s.clip;
            *g = 0.0;
            *m = s.beta1.mul_add(*m, (1.0 - s.beta1) * scaled);
            *v = s.beta2.mul_add(*v, (1.0 - s.beta2) * scaled * scaled);
            *t = s.keep.mul_add(*t, -s.rate * *m / ((*v * s.correction).sqrt() + s.eps));
        }
    }
}

multiversion! {
    fn rmsprop_block(theta: &mut [f32], m: &mut [f32], v: &mut [f32], gradient: &mut [f32], s: RmsPropStep) {
        for (((t, m), v), g) in theta.iter_mut().zip(m).zip(v).zip(gradient) {
            let scaled = *g * s.clip;
            *g = 0.0;
            *v = s.decay.mul_add(*v, s.fresh * scaled * scaled);
            *m = s.momentum.mul_add(*m, s.rate * scaled / (*v + s.eps).sqrt());
            *t -= *m;
        }
    }
}

multiversion! {
    fn average_block(average: &mut [f32], theta: &[f32], beta: f32) {
        for (a, t) in average.iter_mut().zip(theta) {
            *a = beta.mul_add(*a, (1.0 - beta) * t);
        }
    }
}

impl Optimiser {
    /// The moments before the first update.
    pub fn start(&self, theta: &[f32]) -> Moments {
        match self {
            Self::AdamW(adamw) => Moments::new(theta, adamw.ema),
            Self::RmsProp(_) => Moments { v: vec![1.0; theta.len()], ..Moments::new(theta, 0.0) },
        }
    }

    /// One update of θ, and of its average where there is one. The gradient is cleared.
    pub fn update(
        &self,
        layout: &Layout,
        theta: &mut [f32],
        moments: &mut Moments,
        gradient: &mut [f32],
        update: Update,
    ) {
        match self {
            Self::AdamW(adamw) => {
                adamw.update(layout, theta, moments, gradient, update);
                adamw.average(theta, moments, update.number);
            }
            Self::RmsProp(rmsprop) => rmsprop.update(theta, moments, gradient, update),
        }
    }
}

impl RmsProp {
    /// One update of θ. The gradient is cleared; there is no weight decay.
    pub fn update(&self, theta: &mut [f32], moments: &mut Moments, gradient: &mut [f32], update: Update) {
        let step = RmsPropStep {
            clip: update.factor as f32,
            decay: self.decay as f32,
            fresh: (1.0 - self.decay) as f32,
            momentum: self.momentum as f32,
            rate: update.lr as f32,
            eps: self.eps as f32,
        };
        theta
            .par_chunks_mut(CHUNK)
            .zip(moments.m.par_chunks_mut(CHUNK))
            .zip(moments.v.par_chunks_mut(CHUNK))
            .zip(gradient.par_chunks_mut(CHUNK))
            .for_each(|(((theta, m), v), g)| rmsprop_block(theta, m, v, g, step));
    }
}

impl AdamW {
    /// One update of θ. The gradient is cleared.
    pub fn update(
        &self,
        layout: &Layout,
        theta: &mut [f32],
        moments: &mut Moments,
        gradient: &mut [f32],
        update: Update,
    ) {
        let Update { number: t, lr, factor } = update;
        let bias = |beta: f64| 1.0 - beta.powf(t as f64);
        let mut rest = (theta, moments.m.as_mut_slice(), moments.v.as_mut_slice(), gradient);
        for p in layout.iter() {
            let decay = if p.decay == Decay::Yes { self.weight_decay } else { 0.0 };
            let step = Step {
                clip: factor as f32,
                beta1: self.beta1 as f32,
                beta2: self.beta2 as f32,
                keep: (1.0 - lr * decay) as f32,
                rate: (lr / bias(self.beta1)) as f32,
                correction: (1.0 / bias(self.beta2)) as f32,
                eps: self.eps as f32,
            };
            let n = p.range.len();
            let (theta, theta_rest) = rest.0.split_at_mut(n);
            let (m, m_rest) = rest.1.split_at_mut(n);
            let (v, v_rest) = rest.2.split_at_mut(n);
            let (g, g_rest) = rest.3.split_at_mut(n);
            rest = (theta_rest, m_rest, v_rest, g_rest);
            theta
                .par_chunks_mut(CHUNK)
                .zip(m.par_chunks_mut(CHUNK))
                .zip(v.par_chunks_mut(CHUNK))
                .zip(g.par_chunks_mut(CHUNK))
                .for_each(|(((theta, m), v), g)| step_block(theta, m, v, g, step));
        }
    }

    /// The average after update number `t`: β is replaced by min(β, (1+t)/(10+t)), so that it forgets the start.
    pub fn average(&self, theta: &[f32], moments: &mut Moments, t: u64) {
        let Some(average) = &mut moments.ema else { return };
        let beta = self.ema.min((1.0 + t as f64) / (10.0 + t as f64)) as f32;
        average
            .par_chunks_mut(CHUNK)
            .zip(theta.par_chunks(CHUNK))
            .for_each(|(a, t)| average_block(a, t, beta));
    }
}

const CHUNK: usize = 1 << 15;

/// √Σ g² over all parameters, in f64, parameters in name order.
pub fn global_norm(layout: &Layout, gradient: &[f32]) -> f64 {
    let square = |g: &[f32]| -> f64 {
        g.par_chunks(CHUNK)
            .map(|c| c.iter().map(|&x| f64::from(x) * f64::from(x)).sum::<f64>())
            .collect::<Vec<_>>()
            .iter()
            .sum()
    };
    let total: f64 = layout.by_name().iter().filter_map(|p| gradient.get(p.range.clone())).map(square).sum();
    total.sqrt()
}

/// The factor that clips: min(1, clip/norm); 1 if `clip` is 0.
pub fn clip_factor(norm: f64, clip: f64) -> f64 {
    if clip > 0.0 && norm > clip { clip / norm } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parameters::Initial;
    use seeded::Family;

    #[test]
    fn a_hundred_steps_agree_with_a_plain_loop_in_f64() {
        let mut layout = Layout::default();
        layout.add("z.weight", &[50, 3], Decay::Yes, Initial::Normal(1.0));
        layout.add("a.bias", &[70], Decay::No, Initial::Normal(1.0));
        let mut theta = layout.initialise(1);
        let mut plain: Vec<f64> = theta.iter().map(|&x| f64::from(x)).collect();
        let (mut pm, mut pv) = (vec![0.0_f64; 220], vec![0.0_f64; 220]);
        let a = AdamW { beta1: 0.9, beta2: 0.98, eps: 1e-9, weight_decay: 0.1, ema: 0.9 };
        let mut moments = Moments::new(&theta, a.ema);
        let mut average = plain.clone();
        let mut s = Family::named("adamw").stream(0);
        for t in 1..=100 {
            let mut g: Vec<f32> = (0..220).map(|_| s.normal() as f32).collect();
            let norm = global_norm(&layout, &g);
            let want: f64 = g.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>().sqrt();
            assert!((norm - want).abs() < 1e-9);
            let clip = clip_factor(norm, 1.0);
            assert!((clip * norm - 1.0).abs() < 1e-12);
            for i in 0..220 {
                let gi = f64::from(g[i]) * clip;
                pm[i] = 0.9 * pm[i] + 0.1 * gi;
                pv[i] = 0.98 * pv[i] + 0.02 * gi * gi;
                let (mh, vh) = (pm[i] / (1.0 - 0.9_f64.powi(t)), pv[i] / (1.0 - 0.98_f64.powi(t)));
                let decay = if i < 150 { 0.1 } else { 0.0 };
                plain[i] -= 1e-2 * (mh / (vh.sqrt() + 1e-9) + decay * plain[i]);
                let beta = 0.9_f64.min((1.0 + f64::from(t)) / (10.0 + f64::from(t)));
                average[i] = beta * average[i] + (1.0 - beta) * plain[i];
            }
            let update = Update { number: t as u64, lr: 1e-2, factor: clip };
            a.update(&layout, &mut theta, &mut moments, &mut g, update);
            a.average(&theta, &mut moments, t as u64);
            assert!(g.iter().all(|&x| x == 0.0));
        }
        for i in 0..220 {
            assert!((f64::from(theta[i]) - plain[i]).abs() < 2e-5, "{i}: {} {}", theta[i], plain[i]);
            assert!((f64::from(moments.ema.as_ref().unwrap()[i]) - average[i]).abs() < 2e-5);
        }
        assert_eq!(clip_factor(0.5, 1.0), 1.0);
        assert_eq!(clip_factor(5.0, 0.0), 1.0);
    }
    #[test]
    fn rmsprop_agrees_with_the_rule_in_f64() {
        let mut layout = Layout::default();
        layout.add("w", &[210], Decay::Yes, Initial::Normal(1.0));
        let mut theta = layout.initialise(1);
        let mut plain: Vec<f64> = theta.iter().map(|&x| f64::from(x)).collect();
        let rule = crate::rules::Rule::RmsProp { decay: 0.9, momentum: 0.9, epsilon: 1e-10 };
        let mut state = crate::rules::State::default();
        let optimiser = Optimiser::from(RmsProp { decay: 0.9, momentum: 0.9, eps: 1e-10 });
        let mut moments = optimiser.start(&theta);
        let mut s = Family::named("rmsprop").stream(0);
        for number in 1..=100 {
            let mut g: Vec<f32> = (0..210).map(|_| s.normal() as f32).collect();
            let wide: Vec<f64> = g.iter().map(|&x| f64::from(x)).collect();
            let pace = crate::rules::Pace { number, rate: 1e-2, weight_decay: 0.0, factor: 0.5 };
            rule.step(&mut state, &mut plain, &wide, pace);
            let update = Update { number, lr: 1e-2, factor: 0.5 };
            optimiser.update(&layout, &mut theta, &mut moments, &mut g, update);
            assert!(g.iter().all(|&x| x == 0.0) && moments.ema.is_none());
        }
        for (fused, plain) in theta.iter().zip(&plain) {
            assert!((f64::from(*fused) - plain).abs() < 2e-5, "{fused} {plain}");
        }
    }
}
