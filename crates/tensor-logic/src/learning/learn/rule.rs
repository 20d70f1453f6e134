//! The update rules of the crate `training`, and the same formulas written out to test them.

pub(super) use training::rules::{Pace, Rule, State};
pub(super) use training::schedule::{Decline, Schedule};

/// The formulas of section 4, N12, one number at a time.
#[cfg(test)]
mod plain {
    #[derive(Debug, Clone, Copy)]
    pub(in crate::learning::learn) enum Rule {
        Sgd { momentum: f64 },
        Adam { beta1: f64, beta2: f64, epsilon: f64, decoupled: bool },
    }

    #[derive(Debug, Clone, Default)]
    pub(in crate::learning::learn) struct State {
        moments: Vec<(f64, f64)>,
    }

    #[derive(Debug, Clone, Copy)]
    pub(in crate::learning::learn) struct Pace {
        pub(in crate::learning::learn) number: u64,
        pub(in crate::learning::learn) rate: f64,
        pub(in crate::learning::learn) weight_decay: f64,
        pub(in crate::learning::learn) factor: f64,
    }

    impl Rule {
        pub(in crate::learning::learn) fn step(
            &self,
            state: &mut State,
            weights: &mut [f64],
            gradient: &[f64],
            pace: Pace,
        ) {
            state.moments.resize(weights.len(), (0.0, 0.0));
            for ((weight, gradient), moments) in weights.iter_mut().zip(gradient).zip(&mut state.moments) {
                *weight = self.one(*weight, gradient * pace.factor, moments, pace);
            }
        }

        fn one(&self, weight: f64, gradient: f64, moments: &mut (f64, f64), pace: Pace) -> f64 {
            let decay = pace.weight_decay * weight;
            match *self {
                Rule::Sgd { momentum } => {
                    moments.0 = momentum * moments.0 + gradient + decay;
                    weight - pace.rate * moments.0
                }
                Rule::Adam { beta1, beta2, epsilon, decoupled } => {
                    let gradient = if decoupled { gradient } else { gradient + decay };
                    moments.0 = beta1 * moments.0 + (1.0 - beta1) * gradient;
                    moments.1 = beta2 * moments.1 + (1.0 - beta2) * gradient * gradient;
                    let mean = moments.0 / (1.0 - beta1.powf(pace.number as f64));
                    let square = moments.1 / (1.0 - beta2.powf(pace.number as f64));
                    let kept = if decoupled { weight - pace.rate * decay } else { weight };
                    kept - pace.rate * mean / (square.sqrt() + epsilon)
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::plain;

    /// The rules of `training` against the formulas written out, on the same gradients.
    #[test]
    fn rules_agree_with_the_formulas() {
        let adam = |decoupled| (0.8, 0.95, 1e-6, decoupled);
        for case in 0..3 {
            let (beta1, beta2, epsilon, decoupled) = adam(case == 2);
            let (mine, other) = if case == 0 {
                (plain::Rule::Sgd { momentum: 0.7 }, training::rules::Rule::Sgd { momentum: 0.7 })
            } else {
                (
                    plain::Rule::Adam { beta1, beta2, epsilon, decoupled },
                    training::rules::Rule::Adam { beta1, beta2, epsilon, decoupled },
                )
            };
            let (mut a, mut b) = (vec![1.0_f64, -2.0, 0.5], vec![1.0_f64, -2.0, 0.5]);
            let (mut state, mut theirs) = (plain::State::default(), training::rules::State::default());
            for number in 1..=20 {
                let gradient: Vec<f64> = a.iter().map(|w| w.sin() + 0.1 * number as f64).collect();
                let (rate, weight_decay, factor) = (0.05, 0.01, 0.5);
                mine.step(&mut state, &mut a, &gradient, plain::Pace { number, rate, weight_decay, factor });
                let pace = training::rules::Pace { number, rate, weight_decay, factor };
                other.step(&mut theirs, &mut b, &gradient, pace);
            }
            for (x, y) in a.iter().zip(&b) {
                assert!((x - y).abs() < 1e-12, "case {case}: {x} and {y}");
            }
        }
    }
}
