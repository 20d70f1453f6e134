//! Numbers of formulas by quantifier depth, in floating point and on one scale.
//!
//! Formulas of n nodes below k quantifiers are counted in three classes: quantifier depth 0, 1, more. Every
//! number is a sum of products of positive numbers, so nothing cancels and zero means none. Counts grow beyond
//! any exponent, so those of n nodes are divided by λⁿ; products of counts whose nodes add up stay on the scale.

use super::CountLaw;

/// Numbers for quantifier depth 0, 1 and more.
pub(crate) type ByClass = [f64; 3];

/// The number of pairs: the quantifier depth of two formulas is the larger one.
pub(crate) fn join(a: ByClass, b: ByClass) -> ByClass {
    [a[0] * b[0], a[0] * b[1] + a[1] * (b[0] + b[1]), a[2] * (b[0] + b[1] + b[2]) + (a[0] + a[1]) * b[2]]
}

/// The classes of formulas below that many quantifiers, those included.
pub(crate) fn below([none, one, more]: ByClass, quantifiers: usize) -> ByClass {
    match quantifiers {
        0 => [none, one, more],
        1 => [0.0, none, one + more],
        _ => [0.0, 0.0, none + one + more],
    }
}

/// Adds `b`, times a factor.
pub(crate) fn add_scaled(a: &mut ByClass, b: ByClass, factor: f64) {
    for (x, y) in a.iter_mut().zip(b) {
        *x += factor * y;
    }
}

/// The table.
#[derive(Debug, Clone)]
pub(crate) struct Classes {
    /// `counts[k][n]`, divided by λⁿ.
    counts: Vec<Vec<ByClass>>,
    /// λ
    pub(crate) scale: f64,
}

impl Classes {
    /// The numbers up to `nodes`, on the smallest scale of a few tried that keeps them in range.
    pub(crate) fn new(law: &CountLaw, nodes: usize) -> Self {
        const LARGEST: f64 = 1e60;
        let fits = |table: &Self| table.counts.iter().flatten().flatten().all(|x| *x < LARGEST);
        let plain = Self::on_scale(law, nodes, 1.0);
        if fits(&plain) {
            return plain;
        }
        // ln λ by bisection; counts of n nodes grow like nⁿ at most.
        let (mut low, mut high) = (0.0, 60.0);
        for _ in 0..12 {
            let middle = 0.5 * (low + high);
            if fits(&Self::on_scale(law, nodes, f64::exp(middle))) { high = middle } else { low = middle }
        }
        Self::on_scale(law, nodes, f64::exp(high))
    }

    fn on_scale(law: &CountLaw, nodes: usize, scale: f64) -> Self {
        let deepest = if law.quantifiers.is_empty() { 0 } else { nodes.saturating_sub(1) };
        let mut counts: Vec<Vec<ByClass>> =
            (0..=deepest).map(|k| vec![[0.0; 3], [atoms(law, k) / scale, 0.0, 0.0]]).collect();
        for n in 2..=nodes {
            for k in 0..=deepest.min(nodes - n) {
                let mut sum = [0.0; 3];
                if let Some(row) = counts.get(k) {
                    if law.not {
                        add_scaled(&mut sum, at(row, n - 1), 1.0);
                    }
                    let pairs = pairs(row, n - 1);
                    add_scaled(&mut sum, pairs, law.connectives.len() as f64);
                }
                if let Some(row) = counts.get(k + 1) {
                    add_scaled(&mut sum, below(at(row, n - 1), 1), law.quantifiers.len() as f64);
                }
                if let Some(row) = counts.get_mut(k) {
                    row.push(sum.map(|x| x / scale));
                }
            }
        }
        Self { counts, scale }
    }

    /// The scaled numbers of formulas of n nodes below k quantifiers.
    pub(crate) fn get(&self, n: usize, k: usize) -> ByClass {
        self.counts.get(k).map_or([0.0; 3], |row| at(row, n))
    }

    /// The scaled number of closed formulas of n nodes of a level; level 0 stands for all.
    pub(crate) fn of_level(&self, n: usize, level: u8) -> f64 {
        let [none, one, more] = self.get(n, 0);
        match level {
            1 if n == 1 => none,
            2 if n > 1 => none,
            3 => one,
            4 => more,
            0 => none + one + more,
            _ => 0.0,
        }
    }
}

/// For each number of nodes, whether closed formulas of quantifier depth 0, 1 and more exist. Unlike counts in
/// floating point, which may be too small to tell from none, this is exact.
pub(super) fn present(law: &CountLaw, nodes: usize) -> Vec<[bool; 3]> {
    let deepest = if law.quantifiers.is_empty() { 0 } else { nodes.saturating_sub(1) };
    let mut outer: Vec<[bool; 3]> = Vec::new();
    // From the innermost scope outwards; all scopes but the outermost have a variable.
    for k in (0..=deepest.min(1)).rev() {
        let mut row = vec![[false; 3], [atoms(law, k) > 0.0, false, false]];
        for n in 2..=nodes {
            let at = |row: &[[bool; 3]], n: usize| row.get(n).copied().unwrap_or([false; 3]);
            let mut any = if law.not { at(&row, n - 1) } else { [false; 3] };
            if !law.connectives.is_empty() {
                for i in 1..n - 1 {
                    let (a, b) = (at(&row, i), at(&row, n - 1 - i));
                    for (depth, there) in any.iter_mut().enumerate() {
                        let up_to = |x: [bool; 3]| x.iter().take(depth + 1).any(|&x| x);
                        *there |= (a.get(depth) == Some(&true) && up_to(b))
                            || (b.get(depth) == Some(&true) && up_to(a));
                    }
                }
            }
            if !law.quantifiers.is_empty() {
                // One variable more changes nothing once there is one.
                let [none, one, more] = at(if k == 0 { &outer } else { &row }, n - 1);
                any = [any[0], any[1] || none, any[2] || one || more];
            }
            row.push(any);
        }
        outer = row;
    }
    outer
}

/// The number of atoms with k variables in scope.
pub(crate) fn atoms(law: &CountLaw, k: usize) -> f64 {
    let terms = (k as u64 + law.constants) as f64;
    let predicates: f64 =
        law.predicates.iter().map(|&(a, number)| terms.powi(a as i32) * number as f64).sum();
    predicates + law.relations.len() as f64 * terms * terms + if law.truth { 2.0 } else { 0.0 }
}

fn at(row: &[ByClass], n: usize) -> ByClass {
    row.get(n).copied().unwrap_or([0.0; 3])
}

fn pairs(row: &[ByClass], n: usize) -> ByClass {
    let mut sum = [0.0; 3];
    for i in 1..n {
        add_scaled(&mut sum, join(at(row, i), at(row, n - i)), 1.0);
    }
    sum
}
