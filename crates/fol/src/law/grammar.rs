//! The generating functions of the formulas below k binders, at one point z.
//!
//! ```text
//! F(k) = z · (A(k) + not · F(k) + binary · F(k)² + quantifier · F(k+1)),   F(scope + 1) = 0
//! ```
//! sums zⁿ over all formulas of n nodes. Each F(k) is the smaller root of a quadratic whose last term knows F(k+1). The
//! singularity ρ is the largest z at which all discriminants are at least 0. Drawing each node with the shares of the four
//! terms gives every formula the probability zⁿ / F(0) (Duchon, Flajolet, Louchard, Schaeffer, 2004).
//!
//! Only +, −, ×, ÷ and √ are used, which are the same on every machine.

use super::atoms::atoms;
use super::count_law::CountLaw;

/// F at a point.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Grammar {
    /// z
    pub(crate) point: f64,
    /// NOT, binary connectives, quantifiers.
    ways: [f64; 3],
    /// A(k), for k up to the scope.
    atoms: Vec<f64>,
    /// F(k), for k up to the scope.
    sums: Vec<f64>,
}

/// Atom, NOT, binary, quantifier.
pub(crate) type Shares = [f64; 4];

/// The node itself is the one that is pointed at; it is below NOT, in the left or right operand, below a quantifier.
pub(crate) type PointedShares = [f64; 5];

impl Grammar {
    /// At the singularity, up to the last digit from below. The signature has a binary connective and some formula.
    pub(super) fn singular(law: &CountLaw) -> Self {
        let scope = if law.quantifiers.is_empty() { 0 } else { law.scope };
        let ways = [f64::from(u8::from(law.not)), law.connectives.len() as f64, law.quantifiers.len() as f64];
        let mut grammar =
            Self { point: 0.0, ways, atoms: (0..=scope).map(|k| atoms(law, k)).collect(), sums: Vec::new() };
        // With a binary connective and an atom z² ≤ 1/4.
        let (mut low, mut high) = (0.0, 1.0);
        loop {
            let middle = 0.5 * (low + high);
            if middle <= low || middle >= high {
                break;
            }
            if grammar.at(middle).is_some() { low = middle } else { high = middle }
        }
        grammar.sums = grammar.at(low).unwrap_or_default();
        grammar.point = low;
        grammar
    }

    /// The same grammar at a point below its singularity, as a share of it.
    pub(crate) fn below(&self, share: f64) -> Self {
        let point = self.point * share;
        let sums = self.at(point).unwrap_or_default();
        Self { point, sums, ..self.clone() }
    }

    /// F at z, if z is not beyond the singularity.
    fn at(&self, z: f64) -> Option<Vec<f64>> {
        let [not, binary, quantifier] = self.ways;
        let mut sums = vec![0.0; self.atoms.len()];
        let mut inner = 0.0;
        for (sum, atoms) in sums.iter_mut().zip(&self.atoms).rev() {
            let (linear, square) = (1.0 - not * z, binary * z);
            let constant = z * (atoms + quantifier * inner);
            let discriminant = linear * linear - 4.0 * square * constant;
            if linear <= 0.0 || discriminant < 0.0 {
                return None;
            }
            *sum = 2.0 * constant / (linear + discriminant.sqrt());
            inner = *sum;
        }
        Some(sums)
    }

    /// The most binders on a path.
    pub(crate) fn scope(&self) -> usize {
        self.atoms.len().saturating_sub(1)
    }

    /// F(k); 0 beyond the scope.
    pub(crate) fn sum(&self, k: usize) -> f64 {
        self.sums.get(k).copied().unwrap_or(0.0)
    }

    /// What a node below k binders is.
    pub(crate) fn shares(&self, k: usize) -> Shares {
        let ([not, binary, quantifier], z, sum) = (self.ways, self.point, self.sum(k));
        let Some(atoms) = self.atoms.get(k).filter(|_| sum > 0.0) else { return [0.0; 4] };
        [z * atoms / sum, z * not, z * binary * sum, z * quantifier * self.sum(k + 1) / sum]
    }

    /// T(k) = z · dF(k)/dz, which sums n · zⁿ: formulas in which one node is pointed at. Infinite at the singularity.
    pub(crate) fn pointed(&self) -> Vec<f64> {
        let ([not, binary, quantifier], z) = (self.ways, self.point);
        let mut pointed = vec![0.0; self.sums.len()];
        let mut inner = 0.0;
        for (to, sum) in pointed.iter_mut().zip(&self.sums).rev() {
            *to = (sum + z * quantifier * inner) / (1.0 - not * z - 2.0 * binary * z * sum);
            inner = *to;
        }
        pointed
    }

    /// Where the node is that is pointed at, from a node below k binders, for each k up to the scope.
    pub(crate) fn pointed_shares(&self) -> Vec<PointedShares> {
        let ([not, binary, quantifier], z, pointed) = (self.ways, self.point, self.pointed());
        let shares = |(k, &all): (usize, &f64)| {
            let (sum, inner) = (self.sum(k), pointed.get(k + 1).copied().unwrap_or(0.0));
            let operand = z * binary * sum;
            [sum / all, z * not, operand, operand, z * quantifier * inner / all]
        };
        pointed.iter().enumerate().map(shares).collect()
    }
}

#[cfg(test)]
mod tests {
    use crate::law::{BoltzmannLaw, Family, Grammar, Law};

    fn boltzmann(changes: &[(&str, &str)]) -> BoltzmannLaw {
        let changes: Vec<_> = changes.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        match Law::named("boltzmann", &changes).unwrap().family {
            Family::Boltzmann(law) => law,
            _ => unreachable!("the preset is of this family"),
        }
    }

    /// At the singularity and below, for nodes that are pointed at too.
    #[test]
    fn shares_sum_to_one() {
        for changes in [
            vec![],
            vec![("scope", "0")],
            vec![("scope", "40"), ("constants", "0")],
            vec![("connectives", "[\"IFF\"]"), ("truth", "true")],
            vec![("predicates", "[[200,1]]"), ("relations", "[]"), ("constants", "9")],
        ] {
            let singular = boltzmann(&changes).singular().unwrap();
            let below = singular.below(0.99);
            let close = |sum: f64| assert!((sum - 1.0).abs() < 1e-12, "{changes:?} {sum}");
            for k in 0..=singular.scope() {
                [&singular, &below].into_iter().for_each(|g: &Grammar| close(g.shares(k).iter().sum()));
            }
            below.pointed_shares().iter().for_each(|shares| close(shares.iter().sum()));
        }
    }

    /// ρ = 1/5 for one atom and five connectives: (1 − z)² = 16 z².
    #[test]
    fn the_masses_of_all_sizes_sum_to_one() {
        let one = [("scope", "0"), ("constants", "1"), ("predicates", "[[1,1]]"), ("relations", "[]")];
        let law =
            boltzmann(&[&one[..], &[("nodes", "682"), ("tolerance", "50"), ("names", "canonical")]].concat());
        let grammar = law.singular().unwrap();
        assert!((grammar.point - 0.2).abs() < 1e-12);
        // F = 2z / (1 − z) = 1/2, and the masses are those of n from 341 on: they fall like n^(−3/2).
        assert!((grammar.sum(0) - 0.5).abs() < 1e-7);
        let (masses, classes) = law.masses(&grammar);
        let all: f64 = (1..=1023).map(|n| classes.get(n, 0).iter().sum::<f64>()).sum();
        let rest = 1.0 - all / grammar.sum(0);
        let last = masses.last().unwrap() / grammar.sum(0);
        assert!(rest > 0.0 && (rest / (2.0 * 1023.0 * last) - 1.0).abs() < 0.01, "{rest} {last}");
    }
}
