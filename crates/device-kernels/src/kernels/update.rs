//! What an update does with all parameters: their gradient's norm, AdamW, the average of the weights.

use cubecl::prelude::*;

use super::arithmetic::cube_sum;
use super::rows::{UNITS, entry, row};

/// Entries that one cube sums.
pub(crate) const STRETCH: u32 = 4096;

/// partial\[b\] = Σ x or Σ x² over a stretch.
#[cube(launch_unchecked)]
pub(crate) fn stretch_sums(
    x: &Array<f32>,
    partial: &mut Array<f32>,
    len: u32,
    stretches: u32,
    #[comptime] squared: bool,
) {
    let mut room = SharedMemory::<f32>::new(UNITS as usize);
    let b = row();
    if b >= stretches {
        terminate!();
    }
    let end = select((b + 1u32) * STRETCH < len, (b + 1u32) * STRETCH, len);
    let mut sum = 0.0f32;
    for i in range_stepped(b * STRETCH + UNIT_POS, end, UNITS) {
        let v = x[i as usize];
        if squared {
            sum = fma(v, v, sum);
        } else {
            sum += v;
        }
    }
    let sum = cube_sum(sum, &mut room, UNITS);
    if UNIT_POS == 0 {
        partial[b as usize] = sum;
    }
}

/// out\[at\] = Σ partial, in one cube.
#[cube(launch_unchecked)]
pub(crate) fn total(partial: &Array<f32>, out: &mut Array<f32>, at: u32, len: u32) {
    let mut room = SharedMemory::<f32>::new(UNITS as usize);
    let mut sum = 0.0f32;
    for i in range_stepped(UNIT_POS, len, UNITS) {
        sum += partial[i as usize];
    }
    let sum = cube_sum(sum, &mut room, UNITS);
    if UNIT_POS == 0 {
        out[at as usize] = sum;
    }
}

/// The scalars of an update, as `training::optimiser` has them.
#[derive(CubeType, CubeLaunch, Clone, Copy)]
pub(crate) struct Step {
    pub(crate) clip: f32,
    pub(crate) beta1: f32,
    pub(crate) beta2: f32,
    pub(crate) rate: f32,
    pub(crate) correction: f32,
    pub(crate) eps: f32,
}

/// AdamW on the parameters `at .. at + len`; the gradient is cleared. `keep` is 1 − lr·λ, or 1.
#[cube(launch_unchecked)]
#[expect(clippy::too_many_arguments, reason = "a kernel's signature is what the host hands over")]
pub(crate) fn adamw(
    theta: &mut Array<f32>,
    m: &mut Array<f32>,
    v: &mut Array<f32>,
    gradient: &mut Array<f32>,
    step: Step,
    keep: f32,
    at: u32,
    len: u32,
) {
    let i = entry();
    if i < len {
        let i = (at + i) as usize;
        let scaled = gradient[i] * step.clip;
        gradient[i] = 0.0f32;
        let first = fma(step.beta1, m[i], (1.0f32 - step.beta1) * scaled);
        let second = fma(step.beta2, v[i], (1.0f32 - step.beta2) * scaled * scaled);
        m[i] = first;
        v[i] = second;
        let moved = step.rate * first / ((second * step.correction).sqrt() + step.eps);
        theta[i] = fma(keep, theta[i], -moved);
    }
}

/// average ← β·average + (1 − β)·θ
#[cube(launch_unchecked)]
pub(crate) fn average(average: &mut Array<f32>, theta: &Array<f32>, beta: f32, len: u32) {
    let i = entry();
    if i < len {
        let i = i as usize;
        average[i] = fma(beta, average[i], (1.0f32 - beta) * theta[i]);
    }
}
