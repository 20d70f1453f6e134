//! The hidden choices of family `count`: the size, and the level if there are levels.
//!
//! All formulas of a size and level are equally likely, so the weight of a prefix is the number of its
//! completions: the open places share the nodes that remain, a convolution of their counts. Counts are on the
//! scale of [`Classes`]; a node that is read takes its factor λ with it.

use super::event::{Event, Place};
use super::hidden_depth::below_seen;
use crate::error::Refusal;
use crate::law::atoms::atoms;
use crate::law::by_size::{ByClass, add_scaled, below, join};
use crate::law::classes::{Classes, of_level};
use crate::law::{BoltzmannLaw, CountLaw};

/// Scaled numbers of formulas by number of nodes.
type Counts = Vec<ByClass>;

/// Weights of the hidden values.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct CountHidden {
    /// Level, nodes, and prior probability over number of formulas.
    values: Vec<(u8, usize, f64)>,
    /// Some value has a level; else all counts are of the first class.
    levels: bool,
    /// For each number of quantifiers above: counts of formulas by class of the whole path.
    formulas: Vec<Counts>,
    /// For each number of quantifiers above: scaled number of atoms.
    atoms: Vec<f64>,
    /// Scaled numbers of ways of one more NOT, binary connective, quantifier.
    ways: [f64; 3],
    /// For each open right operand, innermost last: counts of it and all outside it together.
    open: Vec<Counts>,
    /// Nodes read.
    used: usize,
    /// Quantifiers on the longest path so far.
    seen: usize,
    /// Makes the weight of the present prefix 1.
    scale: f64,
}

impl CountHidden {
    pub(super) fn new(law: &CountLaw) -> Result<Self, Refusal> {
        law.check_sizes()?;
        let classes = Classes::new(law, law.largest());
        let sum = law.sizes.iter().map(|s| s.1).sum::<u64>().max(1) as f64;
        let mut values = Vec::new();
        for &(level, weight, lo, hi) in law.sizes.iter().filter(|s| s.1 > 0) {
            let prior = weight as f64 / sum / (hi - lo + 1) as f64;
            values.extend((lo..=hi).map(|n| (level, n, prior / of_level(classes.get(n, 0), n, level))));
        }
        Ok(Self::of(law, &classes, values))
    }

    /// Where all formulas of n nodes have the mass ρⁿ, n in the window.
    pub(super) fn of_window(law: &BoltzmannLaw) -> Result<Self, Refusal> {
        let (masses, classes) = law.masses(&law.singular()?);
        let (lo, hi) = law.window();
        // Counts are divided by λⁿ, λ = 1/ρ, and so are masses already.
        let each = 1.0 / masses.iter().sum::<f64>();
        Ok(Self::of(&law.grammar, &classes, (lo..=hi).map(|n| (0, n, each)).collect()))
    }

    fn of(law: &CountLaw, classes: &Classes, values: Vec<(u8, usize, f64)>) -> Self {
        let (largest, levels) = (law.largest(), law.has_levels());
        let row = |k: usize| {
            let class = |n: usize| {
                let all = classes.get(n, k);
                if levels { below(all, k) } else { [all.iter().sum(), 0.0, 0.0] }
            };
            (0..=largest).map(class).collect()
        };
        let one = 1.0 / classes.scale;
        let ways = [u64::from(law.not), law.connectives.len() as u64, law.quantifiers.len() as u64];
        Self {
            values,
            levels,
            formulas: (0..=largest).map(row).collect(),
            atoms: (0..=largest).map(|k| atoms(law, k) * one).collect(),
            ways: ways.map(|w| w as f64 * one),
            open: Vec::new(),
            used: 0,
            seen: 0,
            scale: 1.0,
        }
    }

    pub(super) fn start(&mut self) {
        self.open.clear();
        (self.used, self.seen, self.scale) = (0, 0, 1.0);
    }

    fn outside(&self) -> &[ByClass] {
        self.open.last().map_or(&[[1.0, 0.0, 0.0]], Vec::as_slice)
    }

    fn formulas(&self, quantifiers: usize) -> &[ByClass] {
        self.formulas.get(quantifiers).map_or(&[], Vec::as_slice)
    }

    /// Nodes that may still come.
    fn room(&self) -> usize {
        self.formulas.len().saturating_sub(1 + self.used)
    }

    fn ways(&self, event: Event, place: Place) -> f64 {
        let [not, binary, quantifier] = self.ways;
        match event {
            Event::Atom => self.atoms.get(place.quantifiers as usize).copied().unwrap_or(0.0),
            Event::Not => not,
            Event::Binary => binary,
            Event::Quantifier => quantifier,
        }
    }

    /// Counts of pairs by the nodes of both.
    fn convolve(&self, a: &[ByClass], b: &[ByClass]) -> Counts {
        if self.levels { convolve(a, b, self.room()) } else { convolve_plain(a, b, self.room()) }
    }

    /// Counts of completions after an event, by number of nodes.
    fn after(&self, event: Event, place: Place) -> Counts {
        let k = place.quantifiers as usize;
        let with = |counts: &[ByClass], k: usize| self.convolve(self.formulas(k), counts);
        match event {
            Event::Atom => self.outside().to_vec(),
            Event::Not => with(self.outside(), k),
            Event::Quantifier => with(self.outside(), k + 1),
            Event::Binary => with(&with(self.outside(), k), k),
        }
    }

    /// The weight of the hidden values if the rest completes as `counts` say and `used` nodes are read.
    fn weigh<'a>(&'a self, counts: &'a [ByClass], used: usize) -> impl Iterator<Item = f64> + 'a {
        self.values.iter().map(move |&(level, nodes, prior)| {
            let rest = nodes.checked_sub(used).and_then(|m| counts.get(m)).copied().unwrap_or([0.0; 3]);
            let [none, one, more] = if level == 0 { rest } else { below_seen(rest, self.seen) };
            prior
                * match level {
                    0..=2 => none,
                    3 => one,
                    _ => more,
                }
        })
    }

    pub(super) fn probability(&self, event: Event, place: Place) -> f64 {
        let ways = self.ways(event, place);
        if ways <= 0.0 {
            return 0.0;
        }
        let counts = self.after(event, place);
        self.scale * ways * self.weigh(&counts, self.used + 1).sum::<f64>()
    }

    pub(super) fn commit(&mut self, event: Event, place: Place) -> f64 {
        let p = self.probability(event, place);
        if p <= 0.0 {
            return 0.0;
        }
        self.scale *= self.ways(event, place) / p;
        match event {
            Event::Binary => {
                let operand = self.formulas(place.quantifiers as usize);
                let open = self.convolve(operand, self.outside());
                self.open.push(open);
            }
            Event::Quantifier => self.seen = self.seen.max(place.quantifiers as usize + 1),
            Event::Atom | Event::Not => {}
        }
        self.used += 1;
        p
    }

    pub(super) fn next_operand(&mut self) {
        self.open.pop();
    }

    pub(super) fn posterior(&self, expected: Option<Place>) -> Vec<(String, f64)> {
        let counts = match expected {
            Some(place) => self.convolve(self.formulas(place.quantifiers as usize), self.outside()),
            None => self.outside().to_vec(),
        };
        let weights = self.weigh(&counts, self.used);
        let name = |&(level, nodes, _): &(u8, usize, f64)| match level {
            0 => format!("nodes={nodes}"),
            level => format!("level={level},nodes={nodes}"),
        };
        self.values.iter().map(name).zip(weights).collect()
    }
}

/// Counts of pairs by the nodes of both, up to `most`.
fn convolve(a: &[ByClass], b: &[ByClass], most: usize) -> Counts {
    let mut sums = vec![[0.0; 3]; most.min((a.len() + b.len()).saturating_sub(1)) + 1];
    for (i, &x) in a.iter().enumerate().filter(|(_, x)| x.iter().any(|&x| x > 0.0)) {
        for (&y, sum) in b.iter().zip(sums.iter_mut().skip(i)) {
            add_scaled(sum, join(x, y), 1.0);
        }
    }
    sums
}

/// The same where all counts are of the first class.
fn convolve_plain(a: &[ByClass], b: &[ByClass], most: usize) -> Counts {
    let mut sums = vec![[0.0; 3]; most.min((a.len() + b.len()).saturating_sub(1)) + 1];
    for (i, [x, ..]) in a.iter().enumerate().filter(|(_, [x, ..])| *x > 0.0) {
        for ([y, ..], [sum, ..]) in b.iter().zip(sums.iter_mut().skip(i)) {
            *sum += x * y;
        }
    }
    sums
}
