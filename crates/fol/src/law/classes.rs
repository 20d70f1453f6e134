//! Numbers of formulas by quantifier depth, in floating point and on one scale.
//!
//! Formulas of n nodes below k quantifiers are counted in three classes: quantifier depth 0, 1, more. Every
//! number is a sum of products of positive numbers, so nothing cancels and zero means none. Counts grow beyond
//! any exponent, so those of n nodes are divided by λⁿ; products of counts whose nodes add up stay on the scale.

use super::atoms::atoms;
use super::boltzmann_law::BoltzmannLaw;
use super::by_size::{ByClass, BySize, Semiring, Ways};
use super::count_law::CountLaw;
use super::grammar::Grammar;
use crate::error::{Kind, Refusal};

/// The table.
#[derive(Debug, Clone)]
pub(crate) struct Classes {
    /// Counts, divided by λⁿ.
    counts: BySize<ByClass>,
    /// λ
    pub(crate) scale: f64,
}

impl Classes {
    /// The numbers up to `nodes`, on the smallest scale of a few tried that keeps them in range.
    pub(crate) fn new(law: &CountLaw, nodes: usize) -> Self {
        const LARGEST: f64 = 1e60;
        let fits = |table: &Self| table.counts.formulas.iter().flatten().flatten().all(|x| *x < LARGEST);
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

    /// The numbers divided by λⁿ.
    pub(crate) fn on_scale(law: &CountLaw, nodes: usize, scale: f64) -> Self {
        let ways = Ways {
            not: law.not.then_some(1.0),
            binary: Some(law.connectives.len() as f64),
            quantifier: Some(law.quantifiers.len() as f64),
        };
        let atoms = |k| [atoms(law, k) / scale, 0.0, 0.0];
        let each = |sum: ByClass| sum.map(|x| x / scale);
        Self { counts: BySize::new(nodes, law.deepest(nodes), atoms, &ways, each), scale }
    }

    /// The scaled numbers of formulas of n nodes below k quantifiers.
    pub(crate) fn get(&self, n: usize, k: usize) -> ByClass {
        self.counts.get(n, k)
    }
}

/// Closed formulas of n nodes of a level; level 0 stands for all.
pub(crate) fn of_level<T: Semiring>([none, one, more]: ByClass<T>, n: usize, level: u8) -> T {
    match level {
        1 if n == 1 => none,
        2 if n > 1 => none,
        3 => one,
        4 => more,
        0 => none.plus(one).plus(more),
        _ => T::ZERO,
    }
}

/// Whether formulas of n nodes below k quantifiers of quantifier depth 0, 1 and more exist. Unlike counts in
/// floating point, which may be too small to tell from none, this is exact.
fn present(law: &CountLaw, nodes: usize) -> BySize<ByClass<bool>> {
    let ways = Ways {
        not: law.not.then_some(true),
        binary: Some(!law.connectives.is_empty()),
        quantifier: Some(!law.quantifiers.is_empty()),
    };
    let atoms = |k| [atoms(law, k) > 0.0, false, false];
    BySize::new(nodes, law.deepest(nodes), atoms, &ways, |sum| sum)
}

impl CountLaw {
    /// Refuses a range of sizes that contains an empty class.
    pub(crate) fn check_sizes(&self) -> Result<(), Refusal> {
        let classes = present(self, self.largest());
        for &(level, _, lo, hi) in self.sizes.iter().filter(|s| s.1 > 0) {
            if let Some(n) = (lo..=hi).find(|&n| !of_level(classes.get(n, 0), n, level)) {
                return Err(empty_size(level, n));
            }
        }
        Ok(())
    }
}

impl BoltzmannLaw {
    /// Refuses a window without any formula.
    pub(super) fn check_window(&self) -> Result<(), Refusal> {
        let (lo, hi) = self.window();
        let classes = present(&self.grammar, hi);
        if (lo..=hi).any(|n| of_level(classes.get(n, 0), n, 0)) {
            return Ok(());
        }
        Err(Refusal::new(Kind::EmptySize, format!("this law has no formula of {lo} to {hi} nodes")))
    }

    /// The masses G(n) ρⁿ of the sizes of the window, and the counts G(n, k) ρⁿ that they are among.
    pub(crate) fn masses(&self, grammar: &Grammar) -> (Vec<f64>, Classes) {
        let (lo, hi) = self.window();
        let classes = Classes::on_scale(&self.grammar, hi, 1.0 / grammar.point);
        ((lo..=hi).map(|n| of_level(classes.get(n, 0), n, 0)).collect(), classes)
    }
}

/// The refusal of a size without formulas.
pub(crate) fn empty_size(level: u8, nodes: usize) -> Refusal {
    let class = if level == 0 { String::new() } else { format!(" of level {level}") };
    Refusal::new(Kind::EmptySize, format!("this law has no formula{class} of {nodes} nodes"))
}
