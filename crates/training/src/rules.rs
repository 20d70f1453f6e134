//! Update rules for small models in double precision: SGD with momentum, Adam, AdamW, RMSProp.
//!
//! Enter at [`Rule::step`]. The large models of this workspace use the fused AdamW of
//! [`crate::optimiser`]; these rules serve programs whose parameters are tensors of any size,
//! one state per tensor. Sources: Polyak 1964 in the form v ← m·v + g, W ← W - lr·v; Kingma & Ba
//! 2015, algorithm 1 with bias correction; Loshchilov & Hutter 2019 for decoupled decay; Tieleman & Hinton 2012 for
//! RMSProp, here with ε inside the root, momentum on the steps, and a mean square that starts at 1.

use rayon::prelude::*;

use crate::kernels::{Kernel, vectorised};

/// An update rule and its constants.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Rule {
    /// v ← m·v + g, W ← W - lr·v
    Sgd {
        /// m
        momentum: f64,
    },
    /// Adam; AdamW where `decoupled`.
    Adam {
        /// Decay of the first moment.
        beta1: f64,
        /// Decay of the second moment.
        beta2: f64,
        /// Added to the root of the second moment.
        epsilon: f64,
        /// Whether the weight decay acts on the weights instead of the gradient.
        decoupled: bool,
    },
    /// ms ← decay·ms + (1 − decay)·g² from ms = 1, mom ← momentum·mom + lr·g/√(ms + ε), W ← W − mom. Weight decay is
    /// added to the gradient.
    RmsProp {
        /// Decay of the mean square.
        decay: f64,
        /// What stays of the last step.
        momentum: f64,
        /// Added to the mean square, inside the root.
        epsilon: f64,
    },
}

/// What a rule keeps for one tensor.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct State {
    /// Velocity, first moment, or last step.
    pub first: Vec<f64>,
    /// Second moment, or mean square.
    pub second: Vec<f64>,
}

/// When and how far a step goes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pace {
    /// From 1; the bias correction counts by it.
    pub number: u64,
    /// Learning rate.
    pub rate: f64,
    /// Weight decay: added to the gradient as λW, or decoupled.
    pub weight_decay: f64,
    /// What multiplies the gradient first (clipping).
    pub factor: f64,
}

/// What a step does to every element: the rule with what its constants come to in this step.
#[derive(Clone, Copy)]
enum Formula {
    /// W ← W - lr·(g + λW)
    Plain {
        rate: f64,
        decay: f64,
    },
    Sgd {
        momentum: f64,
        rate: f64,
        decay: f64,
    },
    /// `rate` holds the bias correction of the first moment, `second` is one over that of the second.
    Adam {
        betas: (f64, f64),
        epsilon: f64,
        rate: f64,
        second: f64,
        added: f64,
        kept: f64,
    },
    RmsProp {
        decay: f64,
        momentum: f64,
        epsilon: f64,
        rate: f64,
        added: f64,
    },
}

/// Elements of a tensor, and what is kept for them; empty where nothing is.
struct Part<'a, G> {
    formula: Formula,
    factor: f64,
    weights: &'a mut [f64],
    gradient: &'a [G],
    first: &'a mut [f64],
    second: &'a mut [f64],
}

/// So many elements are a task; less than two tasks are done at once.
const TASK: usize = 1 << 14;

impl<G: Copy + Into<f64>> Kernel for Part<'_, G> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Part { formula, factor, weights, gradient, first, second } = self;
        match formula {
            Formula::Plain { rate, decay } => {
                for (w, g) in weights.iter_mut().zip(gradient) {
                    *w = *w - rate * ((*g).into() * factor + decay * *w) + 0.0;
                }
            }
            Formula::Sgd { momentum, rate, decay } => {
                for ((w, g), v) in weights.iter_mut().zip(gradient).zip(first) {
                    *v = momentum * *v + (*g).into() * factor + decay * *w;
                    *w = *w - rate * *v + 0.0;
                }
            }
            Formula::Adam { betas: (beta1, beta2), epsilon, rate, second: correction, added, kept } => {
                for ((w, g), (m, v)) in weights.iter_mut().zip(gradient).zip(first.iter_mut().zip(second)) {
                    let g = (*g).into() * factor + added * *w;
                    *m = beta1 * *m + (1.0 - beta1) * g;
                    *v = beta2 * *v + (1.0 - beta2) * g * g;
                    *w = kept * *w - rate * *m / ((*v * correction).sqrt() + epsilon) + 0.0;
                }
            }
            Formula::RmsProp { decay, momentum, epsilon, rate, added } => {
                for ((w, g), (step, square)) in
                    weights.iter_mut().zip(gradient).zip(first.iter_mut().zip(second))
                {
                    let g = (*g).into() * factor + added * *w;
                    *square = decay * *square + (1.0 - decay) * g * g;
                    *step = momentum * *step + rate * g / (*square + epsilon).sqrt();
                    *w = *w - *step + 0.0;
                }
            }
        }
    }
}

impl Rule {
    /// Changes the weights by one step. `gradient` is as long as `weights`, in 64 or 32 bits; all is computed in 64.
    /// A weight of 0 has no sign. Every element is computed by itself, those of large tensors by several threads with the
    /// same bits.
    pub fn step<G: Copy + Into<f64> + Sync>(
        &self,
        state: &mut State,
        weights: &mut [f64],
        gradient: &[G],
        pace: Pace,
    ) {
        let Pace { number, rate, weight_decay, factor } = pace;
        let len = weights.len();
        let formula = match *self {
            // Without momentum there is nothing to keep.
            Rule::Sgd { momentum: 0.0 } => Formula::Plain { rate, decay: weight_decay },
            Rule::Sgd { momentum } => Formula::Sgd { momentum, rate, decay: weight_decay },
            Rule::Adam { beta1, beta2, epsilon, decoupled } => {
                state.second.resize(len, 0.0);
                let power = |beta: f64| 1.0 - beta.powf(number as f64);
                let (added, kept) =
                    if decoupled { (0.0, 1.0 - rate * weight_decay) } else { (weight_decay, 1.0) };
                let (rate, second) = (rate / power(beta1), 1.0 / power(beta2));
                Formula::Adam { betas: (beta1, beta2), epsilon, rate, second, added, kept }
            }
            Rule::RmsProp { decay, momentum, epsilon } => {
                state.second.resize(len, 1.0);
                Formula::RmsProp { decay, momentum, epsilon, rate, added: weight_decay }
            }
        };
        if !matches!(formula, Formula::Plain { .. }) {
            state.first.resize(len, 0.0);
        }
        let State { first, second } = state;
        if len < 2 * TASK || rayon::current_num_threads() == 1 {
            vectorised(Part { formula, factor, weights, gradient, first, second });
            return;
        }
        let (mut firsts, mut seconds) = (first.chunks_mut(TASK), second.chunks_mut(TASK));
        let tasks: Vec<Part<'_, G>> = weights
            .chunks_mut(TASK)
            .zip(gradient.chunks(TASK))
            .map(|(weights, gradient)| {
                let (first, second) = (firsts.next().unwrap_or_default(), seconds.next().unwrap_or_default());
                Part { formula, factor, weights, gradient, first, second }
            })
            .collect();
        tasks.into_par_iter().for_each(vectorised);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(rule: Rule, weight_decay: f64, steps: u64) -> Vec<f64> {
        // f(w) = w², from 1.
        let (mut state, mut weights) = (State::default(), vec![1.0]);
        for number in 1..=steps {
            let gradient = vec![2.0 * weights[0]];
            let pace = Pace { number, rate: 0.1, weight_decay, factor: 1.0 };
            rule.step(&mut state, &mut weights, &gradient, pace);
        }
        weights
    }

    /// Large tensors, which several threads share, have the bits of their elements one by one, also where the gradient
    /// has 32 bits.
    #[test]
    fn threads_and_narrow_gradients_change_no_bit() {
        let len = 5 * TASK + 3;
        let start: Vec<f64> = (0..len).map(|at| (at as f64 * 0.37).sin()).collect();
        let slope = |at: usize| if at.is_multiple_of(7) { 0.0 } else { (at as f32 * 0.11).cos() };
        let rules = [
            Rule::Sgd { momentum: 0.0 },
            Rule::Sgd { momentum: 0.9 },
            Rule::Adam { beta1: 0.9, beta2: 0.99, epsilon: 1e-8, decoupled: false },
            Rule::Adam { beta1: 0.9, beta2: 0.99, epsilon: 1e-8, decoupled: true },
            Rule::RmsProp { decay: 0.9, momentum: 0.5, epsilon: 1e-10 },
        ];
        let threads = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
        for rule in rules {
            let (mut state, mut weights) = (State::default(), start.clone());
            let mut alone: Vec<(State, f64)> =
                start.iter().map(|weight| (State::default(), *weight)).collect();
            for number in 1..=3 {
                let pace = Pace { number, rate: 0.1, weight_decay: 0.01, factor: 0.5 };
                let gradient: Vec<f32> = (0..len).map(slope).collect();
                threads.install(|| rule.step(&mut state, &mut weights, &gradient, pace));
                for (at, (state, weight)) in alone.iter_mut().enumerate() {
                    rule.step(state, std::slice::from_mut(weight), &[f64::from(slope(at))], pace);
                }
            }
            let same =
                weights.iter().zip(&alone).all(|(found, (_, wanted))| found.to_bits() == wanted.to_bits());
            assert!(same, "{rule:?}");
        }
    }

    #[test]
    fn sgd_by_hand() {
        // v1 = 2, w1 = 0.8; v2 = 0.9·2 + 1.6 = 3.4, w2 = 0.46.
        let weights = run(Rule::Sgd { momentum: 0.9 }, 0.0, 2);
        assert!((weights[0] - 0.46).abs() < 1e-15);
    }

    #[test]
    fn rmsprop_by_hand() {
        // g = 2: ms = 0.5 + 0.5·4 = 2.5, w1 = 1 − 0.2/√2.5; then g = 2·w1 and half of the first step again.
        let weights = |steps| run(Rule::RmsProp { decay: 0.5, momentum: 0.5, epsilon: 0.0 }, 0.0, steps)[0];
        let first = 0.2 / 2.5_f64.sqrt();
        let w1 = 1.0 - first;
        assert!((weights(1) - w1).abs() < 1e-15);
        let second = 0.5 * first + 0.2 * w1 / (1.25 + 2.0 * w1 * w1).sqrt();
        assert!((weights(2) - (w1 - second)).abs() < 1e-15);
    }

    #[test]
    fn the_first_step_of_adam_is_the_rate() {
        let adam = |decoupled| Rule::Adam { beta1: 0.9, beta2: 0.999, epsilon: 1e-8, decoupled };
        assert!((run(adam(false), 0.0, 1)[0] - 0.9).abs() < 1e-8);
        // Decoupled decay first takes lr·λ of the weight.
        assert!((run(adam(true), 0.5, 1)[0] - 0.85).abs() < 1e-8);
    }
}
