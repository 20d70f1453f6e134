//! The hidden choices of family `depth`: the maximal depth, and the level if there are levels.
//!
//! A text of level ℓ is drawn by repetition, so p(φ) = P(ℓ) Σ_D mix(D) p_D(φ) / P_mix(ℓ). For a prefix, p_D is
//! the product of its own draws times the probability that the open places complete it to level ℓ. Levels are
//! classes of quantifier depth (0, 1, more), and the class of several open places is that of the deepest one;
//! so each open place is a triple of probabilities and places combine by [`join`], without subtraction.

use super::event::{Event, Place};
use super::model::shares;
use crate::law::DepthLaw;
use crate::law::by_size::{ByClass, add_scaled, below, join};

/// Weights of the hidden values, scaled so that the present prefix has weight 1.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct DepthHidden {
    /// Maximal depths and their probabilities.
    prior: Vec<(u32, f64)>,
    weights: Vec<f64>,
    /// Atom, quantifier, NOT, binary, above the maximal depth.
    kinds: [f64; 4],
    levels: Option<Levels>,
}

#[derive(Debug, Clone, PartialEq)]
struct Levels {
    /// P(ℓ) / P_mix(ℓ).
    lift: [f64; 4],
    /// Maximal depths.
    depths: Vec<u32>,
    kinds: [f64; 4],
    /// Classes of a whole formula with so many levels left.
    formula: Vec<ByClass>,
    /// For each open right operand, innermost last, and each maximal depth: the classes of that operand and of
    /// all outside it.
    open: Vec<ByClass>,
    /// Quantifiers on the longest path so far; more than 2 count as 2.
    seen: usize,
    root: Root,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Root {
    Expected,
    Atom,
    Compound,
}

const CLOSED: ByClass = [1.0, 0.0, 0.0];

impl DepthHidden {
    pub(super) fn new(law: &DepthLaw) -> Self {
        let sum = law.depth_mix.iter().map(|m| m.1).sum::<u64>().max(1) as f64;
        let prior: Vec<(u32, f64)> =
            law.depth_mix.iter().filter(|m| m.1 > 0).map(|&(d, w)| (d, w as f64 / sum)).collect();
        let [atom, quantifier, connective] = shares(law.kinds);
        let [not, binary @ ..] = law.connectives;
        let [not, binary] = shares([not, binary.iter().sum()]);
        let kinds = [atom, quantifier, connective * not, connective * binary];
        let levels = (!law.levels.is_empty()).then(|| Levels::new(law, &prior, kinds));
        let mut hidden = Self { weights: Vec::new(), prior, kinds, levels };
        hidden.start();
        hidden
    }

    pub(super) fn start(&mut self) {
        self.weights.clear();
        self.weights.extend(self.prior.iter().map(|p| p.1));
        if let Some(levels) = &mut self.levels {
            levels.open.clear();
            levels.seen = 0;
            levels.root = Root::Expected;
        }
    }

    /// The factor of an event for the maximal depth number `j`.
    fn factor(&self, j: usize, event: Event, place: Place) -> f64 {
        let Some(left) = self.prior.get(j).and_then(|p| p.0.checked_sub(place.depth)) else { return 0.0 };
        let kind = drawn(self.kinds, event, Some(left));
        match &self.levels {
            Some(levels) if kind > 0.0 => kind * levels.reached(j, event, left, place),
            _ => kind,
        }
    }

    pub(super) fn probability(&self, event: Event, place: Place) -> f64 {
        self.weights.iter().enumerate().map(|(j, w)| w * self.factor(j, event, place)).sum()
    }

    pub(super) fn commit(&mut self, event: Event, place: Place) -> f64 {
        let p = self.probability(event, place);
        if p <= 0.0 {
            return 0.0;
        }
        for (weight, (depth, _)) in self.weights.iter_mut().zip(&self.prior) {
            *weight *= drawn(self.kinds, event, depth.checked_sub(place.depth)) / p;
        }
        if let Some(levels) = &mut self.levels {
            levels.commit(event, place);
        }
        p
    }

    pub(super) fn next_operand(&mut self) {
        if let Some(levels) = &mut self.levels {
            let rest = levels.open.len().saturating_sub(self.prior.len());
            levels.open.truncate(rest);
        }
    }

    pub(super) fn posterior(&self, expected: Option<Place>) -> Vec<(String, f64)> {
        let mut values = Vec::new();
        for (j, (&(depth, _), &weight)) in self.prior.iter().zip(&self.weights).enumerate() {
            match &self.levels {
                None => values.push((format!("depth={depth}"), weight)),
                Some(levels) => {
                    let by_level = levels.posterior(j, depth, expected).into_iter().zip(levels.lift);
                    for (level, (p, lift)) in (1..).zip(by_level) {
                        values.push((format!("level={level},depth={depth}"), weight * p * lift));
                    }
                }
            }
        }
        values.sort_by(|a, b| a.0.cmp(&b.0));
        values
    }
}

/// The probability of the draw of an event with so many levels left, if there are that many levels.
fn drawn([atom, quantifier, not, binary]: [f64; 4], event: Event, left: Option<u32>) -> f64 {
    match (event, left) {
        (_, None) => 0.0,
        (Event::Atom, Some(0)) => 1.0,
        (_, Some(0)) => 0.0,
        (Event::Atom, _) => atom,
        (Event::Quantifier, _) => quantifier,
        (Event::Not, _) => not,
        (Event::Binary, _) => binary,
    }
}

/// Classes of a formula of a kind other than an atom, given those of its operands.
fn compound(inner: ByClass, [_, quantifier, not, binary]: [f64; 4]) -> ByClass {
    let mut classes = [0.0; 3];
    add_scaled(&mut classes, below(inner, 1), quantifier);
    add_scaled(&mut classes, inner, not);
    add_scaled(&mut classes, join(inner, inner), binary);
    classes
}

impl Levels {
    fn new(law: &DepthLaw, prior: &[(u32, f64)], kinds: [f64; 4]) -> Self {
        let mut formula = vec![CLOSED];
        for _ in 0..law.deepest() {
            let inner = formula.last().copied().unwrap_or(CLOSED);
            let mut classes = compound(inner, kinds);
            classes[0] += kinds[0];
            formula.push(classes);
        }
        let depths = prior.iter().map(|p| p.0).collect();
        let (lift, open, root) = ([0.0; 4], Vec::new(), Root::Expected);
        let mut levels = Self { lift, depths, kinds, formula, open, seen: 0, root };
        let mut mixed = [0.0; 4];
        for &(depth, p) in prior {
            for (sum, q) in mixed.iter_mut().zip(levels.whole(depth)) {
                *sum += p * q;
            }
        }
        let sum = law.levels.iter().map(|l| l.1).sum::<u64>().max(1) as f64;
        for &(level, weight) in &law.levels {
            let i = usize::from(level).wrapping_sub(1);
            if let (Some(lift), Some(mixed)) = (levels.lift.get_mut(i), mixed.get(i))
                && weight > 0
            {
                *lift += weight as f64 / sum / mixed;
            }
        }
        levels
    }

    fn of(&self, left: u32) -> ByClass {
        self.formula.get(left as usize).copied().unwrap_or([0.0; 3])
    }

    /// The classes of the path down to a formula at a place, under a maximal depth.
    fn inner(&self, depth: u32, place: Place) -> ByClass {
        match depth.checked_sub(place.depth) {
            Some(left) => below(self.of(left), place.quantifiers as usize),
            None => [0.0; 3],
        }
    }

    /// The probabilities of the four levels for a whole formula of a maximal depth.
    fn whole(&self, depth: u32) -> [f64; 4] {
        let Some(left) = depth.checked_sub(1) else { return [1.0, 0.0, 0.0, 0.0] };
        let [none, one, more] = compound(self.of(left), self.kinds);
        [self.kinds[0], none, one, more]
    }

    /// The classes of all that is still open outside the present formula.
    fn outside(&self, j: usize) -> ByClass {
        let last = self.open.len().checked_sub(self.depths.len());
        last.and_then(|at| self.open.get(at + j)).copied().unwrap_or(CLOSED)
    }

    /// How much more likely than under the mixture alone the text reaches its level after this event.
    fn reached(&self, j: usize, event: Event, left: u32, place: Place) -> f64 {
        if self.root == Root::Expected && event == Event::Atom {
            return self.lift[0];
        }
        let above = place.quantifiers as usize;
        let inner = self.of(left.saturating_sub(1));
        let here = match event {
            Event::Atom => CLOSED,
            Event::Not => below(inner, above),
            Event::Binary => {
                let operand = below(inner, above);
                join(operand, operand)
            }
            Event::Quantifier => below(inner, above + 1),
        };
        let [none, one, more] = below_seen(join(self.outside(j), here), self.seen);
        let [_, simple, quantified, nested] = self.lift;
        simple * none + quantified * one + nested * more
    }

    fn commit(&mut self, event: Event, place: Place) {
        if self.root == Root::Expected {
            self.root = if event == Event::Atom { Root::Atom } else { Root::Compound };
        }
        match event {
            Event::Quantifier => self.seen = self.seen.max(place.quantifiers as usize + 1),
            Event::Binary => {
                let operand = Place { depth: place.depth + 1, ..place };
                let of_depth = |(j, &depth)| join(self.outside(j), self.inner(depth, operand));
                let open: Vec<ByClass> = self.depths.iter().enumerate().map(of_depth).collect();
                self.open.extend(open);
            }
            Event::Atom | Event::Not => {}
        }
    }

    /// The probabilities that the text reaches each level, from the present prefix.
    fn posterior(&self, j: usize, depth: u32, expected: Option<Place>) -> [f64; 4] {
        let here = match (self.root, expected) {
            (Root::Expected, _) => return self.whole(depth),
            (Root::Atom, _) => return [1.0, 0.0, 0.0, 0.0],
            (Root::Compound, None) => CLOSED,
            (Root::Compound, Some(place)) => self.inner(depth, place),
        };
        let [none, one, more] = below_seen(join(self.outside(j), here), self.seen);
        [0.0, none, one, more]
    }
}

/// The classes of a text in which so many quantifiers stand on one path already.
pub(super) fn below_seen([none, one, more]: ByClass, seen: usize) -> ByClass {
    match seen {
        0 => [none, one, more],
        1 => [0.0, none + one, more],
        _ => [0.0, 0.0, none + one + more],
    }
}
