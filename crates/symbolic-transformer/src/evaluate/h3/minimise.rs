//! The minimum of a smooth convex function by L-BFGS (Liu and Nocedal 1989) with backtracking.
//!
//! Activations of neighbouring coordinates go together, so that plain descent is far from the optimum of a probe after
//! hundreds of steps; a few remembered changes of the gradient are enough to get there.

use std::collections::VecDeque;

/// Remembered steps.
const MEMORY: usize = 10;

/// The share of the expected decrease that a step must bring (Armijo).
const DECREASE: f64 = 1e-4;

/// The most halvings of a step.
const HALVINGS: usize = 30;

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// a ← a + by·b
fn add(a: &mut [f64], by: f64, b: &[f64]) {
    a.iter_mut().zip(b).for_each(|(a, b)| *a += by * b);
}

/// A step s and the change y of the gradient that it brought, with 1/(s·y).
struct Step {
    s: Vec<f64>,
    y: Vec<f64>,
    rho: f64,
}

/// −H·g for the remembered approximation H of the inverse second derivatives, by the two loops.
fn direction(gradient: &[f64], memory: &VecDeque<Step>) -> Vec<f64> {
    let mut d: Vec<f64> = gradient.iter().map(|g| -g).collect();
    let mut alphas = Vec::with_capacity(memory.len());
    for step in memory.iter().rev() {
        let alpha = step.rho * dot(&step.s, &d);
        add(&mut d, -alpha, &step.y);
        alphas.push(alpha);
    }
    if let Some(last) = memory.back() {
        let scale = 1.0 / (last.rho * dot(&last.y, &last.y));
        d.iter_mut().for_each(|d| *d *= scale);
    }
    for (step, alpha) in memory.iter().zip(alphas.into_iter().rev()) {
        let beta = step.rho * dot(&step.y, &d);
        add(&mut d, alpha - beta, &step.s);
    }
    d
}

/// Moves `x` towards the minimum. `f` gives the value at a point and puts the gradient into its second argument. It ends after
/// so many steps, where the gradient is below `tolerance`, or where no step brings the value down.
pub(super) fn minimise(
    x: &mut Vec<f64>,
    steps: usize,
    tolerance: f64,
    mut f: impl FnMut(&[f64], &mut [f64]) -> f64,
) {
    let mut gradient = vec![0.0; x.len()];
    let mut value = f(x, &mut gradient);
    let mut memory: VecDeque<Step> = VecDeque::with_capacity(MEMORY);
    for _ in 0..steps {
        let norm = dot(&gradient, &gradient).sqrt();
        if norm <= tolerance || norm.is_nan() {
            return;
        }
        let d = direction(&gradient, &memory);
        let slope = dot(&d, &gradient);
        // The first step has no scale of its own.
        let mut length = if memory.is_empty() { 1.0 / norm.max(1.0) } else { 1.0 };
        let mut next = vec![0.0; x.len()];
        let mut found = None;
        for _ in 0..HALVINGS {
            let mut to = x.clone();
            add(&mut to, length, &d);
            let there = f(&to, &mut next);
            if there <= value + DECREASE * length * slope {
                found = Some((to, there));
                break;
            }
            length *= 0.5;
        }
        let Some((to, there)) = found else { return };
        let s: Vec<f64> = to.iter().zip(x.iter()).map(|(a, b)| a - b).collect();
        let y: Vec<f64> = next.iter().zip(&gradient).map(|(a, b)| a - b).collect();
        let product = dot(&s, &y);
        // A change that says nothing of the curvature is not remembered.
        if product > 1e-10 * dot(&y, &y) {
            if memory.len() == MEMORY {
                memory.pop_front();
            }
            memory.push_back(Step { s, y, rho: 1.0 / product });
        }
        (*x, value) = (to, there);
        std::mem::swap(&mut gradient, &mut next);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A valley a hundred times as steep across as along, turned against the axes.
    #[test]
    fn a_valley_has_its_minimum_found() {
        let d = 40;
        let scale = |i: usize| 100_f64.powf(i as f64 / (d - 1) as f64);
        let mut evaluations = 0;
        let mut x = vec![0.0; d];
        minimise(&mut x, 250, 1e-7, |x, gradient| {
            evaluations += 1;
            // f = ½ Σ scaleᵢ (xᵢ − ½ xᵢ₋₁ − 1)²
            let before = |i: usize| if i > 0 { x[i - 1] } else { 0.0 };
            let residuals: Vec<f64> = (0..d).map(|i| x[i] - 0.5 * before(i) - 1.0).collect();
            let weighted: Vec<f64> = residuals.iter().enumerate().map(|(i, r)| scale(i) * r).collect();
            for i in 0..d {
                gradient[i] = weighted[i] - 0.5 * weighted.get(i + 1).unwrap_or(&0.0);
            }
            0.5 * dot(&residuals, &weighted)
        });
        // xᵢ = 1 + ½ xᵢ₋₁
        for (i, x) in x.iter().enumerate() {
            assert!((x - (2.0 - 0.5_f64.powi(i as i32))).abs() < 1e-6, "{i}: {x}");
        }
        assert!(evaluations < 250, "{evaluations}");
    }

    #[test]
    fn it_ends_at_once_in_a_minimum_and_stays_where_nothing_goes_down() {
        let mut x = vec![0.0, 0.0];
        let mut evaluations = 0;
        minimise(&mut x, 10, 1e-12, |x, gradient| {
            evaluations += 1;
            gradient.copy_from_slice(x);
            0.5 * dot(x, x)
        });
        assert_eq!((x, evaluations), (vec![0.0, 0.0], 1));
        // A gradient that is wrong: every step goes up.
        let mut x = vec![1.0];
        minimise(&mut x, 10, 1e-12, |x, gradient| {
            gradient[0] = -1.0;
            x[0]
        });
        assert_eq!(x, [1.0]);
    }
}
