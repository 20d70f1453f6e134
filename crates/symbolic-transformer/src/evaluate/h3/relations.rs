//! Whether heads look where the tree says: the attention mass of related pairs beside that of controls.
//!
//! A control is a pair of tokens of the same two kinds, at the same two places of another formula, that is not so related.
//! Attention that depends on places alone has then an AUC of exactly 1/2: within each place all masses are equal. The AUC is
//! taken place by place, the probability that a related pair has more mass than a control (ties count half), and averaged
//! over the related pairs that have a control. The best head is chosen on even formulas and judged on odd ones.

use std::ops::Range;

use serde::Serialize;

use crate::evaluate::statistics::{Interval, mean_interval};

/// The pairs of one formula.
pub(super) struct Candidates {
    /// A row that looks, and the rows of what it is related to.
    pub(super) related: Vec<(usize, Range<usize>)>,
    /// All rows of the one kind, each once.
    pub(super) queries: Vec<usize>,
    /// The rows of all tokens or names of the other kind.
    pub(super) keys: Vec<Range<usize>>,
}

/// One pair.
#[derive(Debug, Clone)]
struct Pair {
    formula: usize,
    query: usize,
    keys: Range<usize>,
    related: bool,
}

impl Pair {
    fn place(&self) -> (usize, usize, usize) {
        (self.query, self.keys.start, self.keys.end)
    }
}

/// Pairs of many formulas with the mass that each head gave them.
#[derive(Debug)]
pub(super) struct Relation {
    heads: usize,
    pairs: Vec<Pair>,
    /// [pairs, heads]
    masses: Vec<f32>,
}

/// A head, both numbers from 1: layer l reads the hidden states l − 1 and makes those of l.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Head {
    /// The layer.
    pub layer: usize,
    /// The head in it.
    pub head: usize,
}

/// How well the best head tells related pairs from controls.
#[derive(Debug, Clone, Serialize)]
pub struct Attended {
    /// The head that was best on even formulas.
    pub head: Option<Head>,
    /// Its AUC on odd formulas, with its standard error over formulas.
    pub auc: Option<Interval>,
    /// The related pairs of odd formulas that have a control.
    pub pairs: usize,
    /// Those that have none, and are left out.
    pub unmatched: usize,
    /// The controls of odd formulas.
    pub controls: usize,
    /// Mean attention mass of the head on related pairs.
    pub mass: Option<f64>,
    /// Mean mass on their controls.
    pub control_mass: Option<f64>,
    /// AUC of every head on even formulas, layer by layer.
    pub by_head: Vec<Vec<f64>>,
    /// Why there is no number.
    pub reason: Option<&'static str>,
}

/// One head on some of the pairs.
struct Judged {
    auc: Interval,
    matched: usize,
    unmatched: usize,
    controls: usize,
    mass: f64,
    control_mass: f64,
}

impl Relation {
    /// No pair yet, of a model with so many heads in all its layers.
    pub(super) fn new(heads: usize) -> Self {
        Self { heads, pairs: Vec::new(), masses: Vec::new() }
    }

    /// Adds the pairs of a formula. `attention` is [n, n] of each head.
    pub(super) fn add(&mut self, formula: usize, candidates: &Candidates, attention: &[&[f32]], n: usize) {
        for &query in &candidates.queries {
            for keys in candidates.keys.iter().filter(|keys| keys.end <= query) {
                let related = candidates.related.iter().any(|r| r.0 == query && r.1 == *keys);
                self.pairs.push(Pair { formula, query, keys: keys.clone(), related });
                self.masses.extend(attention.iter().map(|weights| {
                    let row = weights.get(query * n..(query + 1) * n).unwrap_or_default();
                    row.get(keys.clone()).unwrap_or_default().iter().sum::<f32>()
                }));
            }
        }
    }

    /// The best head on even formulas, on odd ones.
    pub(super) fn judge(&self, heads_of_a_layer: usize) -> Attended {
        let [choosing, judging] = [0, 1].map(|half| self.places(half));
        let aucs: Option<Vec<f64>> =
            (0..self.heads).map(|head| Some(self.on(&choosing, head)?.auc.value)).collect();
        let best = aucs.as_ref().and_then(|aucs| {
            let better = |best: Option<(usize, f64)>, (head, &auc): (usize, &f64)| match best {
                Some(b) if b.1 >= auc => Some(b),
                _ => Some((head, auc)),
            };
            aucs.iter().enumerate().fold(None, better).map(|b| b.0)
        });
        let judged = best.and_then(|head| self.on(&judging, head));
        let width = heads_of_a_layer.max(1);
        let any = self.pairs.iter().any(|pair| pair.related);
        let missing = if any { "no pair has a control" } else { "no text in this code has such a pair" };
        Attended {
            head: best
                .filter(|_| judged.is_some())
                .map(|b| Head { layer: b / width + 1, head: b % width + 1 }),
            auc: judged.as_ref().map(|j| j.auc),
            pairs: judged.as_ref().map_or(0, |j| j.matched),
            unmatched: judged.as_ref().map_or(0, |j| j.unmatched),
            controls: judged.as_ref().map_or(0, |j| j.controls),
            mass: judged.as_ref().map(|j| j.mass),
            control_mass: judged.as_ref().map(|j| j.control_mass),
            by_head: aucs.map_or_else(Vec::new, |aucs| aucs.chunks(width).map(<[f64]>::to_vec).collect()),
            reason: judged.is_none().then_some(missing),
        }
    }

    /// The pairs of every other formula, sorted by their place.
    fn places(&self, half: usize) -> Vec<usize> {
        let mut order: Vec<usize> = self
            .pairs
            .iter()
            .enumerate()
            .filter(|(_, pair)| pair.formula % 2 == half)
            .map(|(i, _)| i)
            .collect();
        order.sort_by_key(|&i| self.pairs.get(i).map(Pair::place));
        order
    }

    fn on(&self, order: &[usize], head: usize) -> Option<Judged> {
        let pair = |i: &usize| self.pairs.get(*i);
        let mass = |i: &usize| self.masses.get(i * self.heads + head).copied().unwrap_or(0.0);
        let mut won: Vec<(usize, f64)> = Vec::new();
        let (mut unmatched, mut controls, mut sum, mut of_controls) = (0, 0, 0.0, 0.0);
        for place in order.chunk_by(|a, b| pair(a).map(Pair::place) == pair(b).map(Pair::place)) {
            let (related, others): (Vec<usize>, Vec<usize>) =
                place.iter().partition(|i| pair(i).is_some_and(|p| p.related));
            if related.is_empty() || others.is_empty() {
                unmatched += related.len();
                continue;
            }
            let mut masses: Vec<f32> = others.iter().map(mass).collect();
            masses.sort_by(f32::total_cmp);
            controls += masses.len();
            let mean = masses.iter().map(|&m| f64::from(m)).sum::<f64>() / masses.len() as f64;
            for i in &related {
                let own = mass(i);
                let less = masses.partition_point(|m| *m < own);
                let equal = masses.partition_point(|m| *m <= own) - less;
                won.push((
                    pair(i).map_or(0, |p| p.formula),
                    (less as f64 + 0.5 * equal as f64) / masses.len() as f64,
                ));
                sum += f64::from(own);
                of_controls += mean;
            }
        }
        if won.is_empty() {
            return None;
        }
        won.sort_by_key(|w| w.0);
        let n = won.len() as f64;
        let formulas = won.chunk_by(|a, b| a.0 == b.0);
        let auc = mean_interval(formulas.map(|f| (f.iter().map(|w| w.1).sum(), f.len() as f64)));
        let (mass, control_mass) = (sum / n, of_controls / n);
        Some(Judged { auc, matched: won.len(), unmatched, controls, mass, control_mass })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evaluate::h3::candidates;
    use crate::evaluate::labels::Labels;
    use crate::evaluate::labels::tests::drawn;
    use fol::law::Law;
    use fol::notation::{Code, Notation, Tokenization};
    use seeded::{Family, test_seed};

    /// A weight for each query and key of a formula.
    type Planted<'a> = &'a dyn Fn(&Labels, usize, usize) -> f32;

    fn related(code: &Code, law: &Law, heads: &[Planted<'_>]) -> [Attended; 3] {
        let mut found = [(); 3].map(|()| Relation::new(heads.len()));
        // How many pairs and controls they have is chance: of 400 there were 19 with some seed.
        for (i, (_, tokens)) in drawn(law, code, 800).into_iter().enumerate() {
            let labels = Labels::of(code, &tokens).unwrap();
            let n = tokens.len() + 1;
            let of = |head: &Planted<'_>| -> Vec<f32> {
                (0..n * n)
                    .map(|at| if at % n <= at / n { head(&labels, at / n, at % n) } else { 0.0 })
                    .collect()
            };
            let attention: Vec<Vec<f32>> = heads.iter().map(of).collect();
            let attention: Vec<&[f32]> = attention.iter().map(Vec::as_slice).collect();
            for (found, candidates) in found.iter_mut().zip(candidates(&labels)) {
                found.add(i, &candidates, &attention, n);
            }
        }
        found.map(|relation| relation.judge(2))
    }

    fn at(holds: bool) -> f32 {
        if holds { 1.0 } else { 0.0 }
    }

    /// A head for each relation, and one that looks everywhere alike: the right head is found, with an AUC of 1.
    #[test]
    fn planted_heads_are_found_and_places_alone_are_chance() {
        let binder = |labels: &Labels, q: usize, k: usize| {
            let name = labels.names.iter().find(|n| n.last() == q && !n.binds && n.quantifier.is_some());
            let own =
                name.and_then(|n| labels.names.iter().find(|b| b.binds && b.quantifier == n.quantifier));
            at(own.is_some_and(|b| b.last() == k))
        };
        let pair = |labels: &Labels, q: usize, k: usize| at(labels.pairs.contains(&(q, k)));
        let sibling = |labels: &Labels, q: usize, k: usize| at(labels.siblings.contains(&(q, k)));
        let uniform = |_: &Labels, q: usize, _: usize| 1.0 / (q + 1) as f32;
        let near = |_: &Labels, q: usize, k: usize| (-((q - k) as f32)).exp();
        let law = Law::named("public", &[]).unwrap();
        let whole = Code::new(Tokenization::Atomic, Notation::Infix, &law.signature(), None).unwrap();
        for code in [Code::PLAIN, whole, Code::PLAIN.with_doubled(20).unwrap()] {
            let found = related(&code, &law, &[&uniform, &binder, &pair, &sibling]);
            for (found, best) in found.iter().zip([1, 2, 3]) {
                let head = Head { layer: best / 2 + 1, head: best % 2 + 1 };
                assert_eq!(found.head, Some(head));
                let auc = found.auc.unwrap();
                assert_eq!((auc.value, auc.se), (1.0, 0.0));
                assert_eq!((found.mass, found.control_mass), (Some(1.0), Some(0.0)));
                assert!(found.pairs > 20 && found.controls > 20, "{} {}", found.pairs, found.controls);
                assert_eq!(found.by_head[0][0], 0.5);
                assert!(found.reason.is_none());
            }
            for found in related(&code, &law, &[&uniform, &near]) {
                assert_eq!(found.auc.unwrap().value, 0.5);
                assert!((found.mass.unwrap() - found.control_mass.unwrap()).abs() < 1e-6);
            }
        }
    }

    /// Masses that say nothing give chance; the AUC is the count of all pairs of pairs.
    #[test]
    fn random_masses_are_chance_and_the_auc_is_what_counting_gives() {
        let mut stream = Family::named("relations").stream(test_seed());
        let mut relation = Relation::new(2);
        for formula in 0..600 {
            for pair in 0..4 {
                let related = (formula / 2 + pair) % 3 == 0;
                let query = 5 + stream.below(3) as usize;
                relation.pairs.push(Pair { formula, query, keys: 1..2, related });
                let noise = stream.below(8) as f32;
                relation.masses.extend([noise, noise + if related { 3.0 } else { 0.0 }]);
            }
        }
        for head in [0, 1] {
            let judged = relation.on(&relation.places(1), head).unwrap();
            let odd: Vec<(&Pair, f32)> = relation
                .pairs
                .iter()
                .zip(relation.masses.iter().skip(head).step_by(2).copied())
                .filter(|p| p.0.formula % 2 == 1)
                .collect();
            let shares = odd.iter().filter(|p| p.0.related).map(|a| {
                let others: Vec<_> =
                    odd.iter().filter(|b| !b.0.related && b.0.place() == a.0.place()).collect();
                let won = |b: &&(&Pair, f32)| {
                    if a.1 > b.1 {
                        1.0
                    } else if a.1 == b.1 {
                        0.5
                    } else {
                        0.0
                    }
                };
                others.iter().map(won).sum::<f64>() / others.len() as f64
            });
            let shares: Vec<f64> = shares.collect();
            let mean = shares.iter().sum::<f64>() / shares.len() as f64;
            assert!((judged.auc.value - mean).abs() < 1e-12 && judged.matched == shares.len());
            if head == 0 {
                assert!((judged.auc.value - 0.5).abs() < 5.0 * judged.auc.se && judged.auc.se < 0.05);
            } else {
                assert!(judged.auc.value > 0.7);
            }
        }
        assert_eq!(relation.judge(2).head, Some(Head { layer: 1, head: 2 }));
    }

    #[test]
    fn what_is_not_there_is_said() {
        let law = Law::named("seed", &[]).unwrap();
        let code = Code::new(Tokenization::Compositional, Notation::Prefix, &law.signature(), None).unwrap();
        let uniform = |_: &Labels, q: usize, _: usize| 1.0 / (q + 1) as f32;
        let [binder, parenthesis, siblings] = related(&code, &law, &[&uniform]);
        assert!(binder.auc.is_some() && siblings.auc.is_some());
        assert_eq!(parenthesis.reason, Some("no text in this code has such a pair"));
        assert!(parenthesis.auc.is_none() && parenthesis.head.is_none() && parenthesis.by_head.is_empty());
        let mut alone = Relation::new(1);
        alone.pairs.push(Pair { formula: 1, query: 3, keys: 1..2, related: true });
        alone.masses.push(1.0);
        assert_eq!(alone.judge(1).reason, Some("no pair has a control"));
    }
}
