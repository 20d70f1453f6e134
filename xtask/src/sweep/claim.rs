//! What a sweep is made to decide, said in its file before the first run.
//!
//! ```toml
//! [[claim]]
//! name    = "H1"
//! says    = "symbols are as accurate as whole names"
//! measure = "bits_per_formula"       # a column of the table
//! left    = { tokenization = "compositional" }
//! right   = { tokenization = "atomic" }    # without it every other point, each a row
//! rule    = "equivalent"             # "less", "greater": of left against right
//! margin  = 0.02                     # of "equivalent": this share of the optimum; or within = 0.1 in units of the measure
//! matched = true                     # as many parameters on both sides, but for 3 %
//! along   = "train_limit"            # compares the areas under the measure over ln of this key
//! reaches = 0.05                     # and says where along it the measure is first so small
//! ```

use anyhow::{Result, bail};
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use super::values::{name_of, same, shown};
use crate::learner::Learner;

/// What the difference of two arms must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Rule {
    Less,
    Greater,
    Equivalent,
}

/// As the file has it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Claim {
    pub(crate) name: String,
    pub(crate) says: String,
    pub(crate) measure: String,
    left: Table,
    right: Option<Table>,
    pub(crate) rule: Rule,
    pub(crate) margin: Option<f64>,
    pub(crate) within: Option<f64>,
    #[serde(default)]
    matched: bool,
    pub(crate) along: Option<String>,
    pub(crate) reaches: Option<f64>,
}

/// A claim about points of the sweep, by their numbers.
#[derive(Debug, Clone)]
pub(crate) struct Resolved {
    pub(crate) claim: Claim,
    pub(crate) pairs: Vec<Pair>,
}

/// Two arms: one point each, or one for each place along a key.
#[derive(Debug, Clone)]
pub(crate) struct Pair {
    pub(crate) left: Arm,
    pub(crate) right: Arm,
}

/// One side of a comparison.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Arm {
    pub(crate) name: String,
    /// The points, and where along the key they stand (0 where there is none), in rising order.
    pub(crate) points: Vec<(usize, f64)>,
}

/// A point of the sweep as claims see it.
pub(crate) struct Candidate<'a, L> {
    pub(crate) keys: &'a Table,
    /// Every key with its value.
    pub(crate) filled: Table,
    pub(crate) config: L,
}

/// The largest difference of matched arms: this share of the smaller number of parameters.
const MATCH: f64 = 0.03;

impl Claim {
    /// Finds the arms among the points and refuses what could not be decided once the runs are there.
    pub(crate) fn resolve<L: Learner>(self, points: &[Candidate<'_, L>]) -> Result<Resolved> {
        let name = &self.name;
        let is = |known: &&str| match known.strip_suffix('/') {
            Some(_) => self.measure.strip_prefix(known).is_some_and(|rest| !rest.is_empty()),
            None => *known == self.measure,
        };
        if !L::MEASURES.iter().any(is) {
            let known = if L::MEASURES.is_empty() { "none" } else { &L::MEASURES.join(", ") };
            bail!("claim {name}: measure = \"{}\": a sweep of {} has {known}", self.measure, L::KIND);
        }
        let above = |x: &f64| *x > 0.0 && x.is_finite();
        match (self.rule, self.margin, self.within) {
            (Rule::Equivalent, None, Some(within)) if above(&within) => {}
            (Rule::Equivalent, Some(margin), None) if above(&margin) => {
                if L::optimum_of(&self.measure).is_none() || self.along.is_some() {
                    bail!(
                        "claim {name}: margin is a share of an optimum, which is known of one point's bits_per_formula \
                         or nats_per_token; say within, in units of the measure"
                    );
                }
            }
            (Rule::Equivalent, ..) => {
                bail!("claim {name}: rule = \"equivalent\" needs a margin, or within, above 0")
            }
            (_, None, None) => {}
            _ => bail!("claim {name}: margin, within: only rule = \"equivalent\" has one"),
        }
        if self.reaches.is_some() && self.along.is_none() {
            bail!("claim {name}: reaches: only with along is there a way to it");
        }
        let left = self.arm("left", &self.left, points)?;
        let rights = match &self.right {
            Some(right) => vec![self.arm("right", right, points)?],
            None if self.along.is_some() => bail!("claim {name}: along needs a right side"),
            None => {
                let others = points.iter().enumerate().filter(|(i, _)| left.points.iter().all(|p| p.0 != *i));
                others.map(|(i, p)| Arm { name: name_of(p.keys), points: vec![(i, 0.0)] }).collect()
            }
        };
        if rights.is_empty() {
            bail!("claim {name}: there is no point to compare with");
        }
        for right in &rights {
            if *right == left {
                bail!("claim {name}: left and right are the same point");
            }
            let places = |arm: &Arm| arm.points.iter().map(|p| p.1).collect::<Vec<f64>>();
            if places(&left) != places(right) {
                bail!("claim {name}: left and right do not stand at the same places along their key");
            }
            for (&(l, _), &(r, _)) in left.points.iter().zip(&right.points) {
                if let (Some(l), Some(r)) = (points.get(l), points.get(r)) {
                    self.check_pair(l, r)?;
                }
            }
        }
        let pairs = rights.into_iter().map(|right| Pair { left: left.clone(), right }).collect();
        Ok(Resolved { claim: self, pairs })
    }

    fn check_pair<L: Learner>(&self, left: &Candidate<'_, L>, right: &Candidate<'_, L>) -> Result<()> {
        for (side, other) in [(left, right), (right, left)] {
            let judged = side.config.can_be_judged(&self.measure, &other.config);
            judged.map_err(|e| e.context(format!("claim {}", self.name)))?;
        }
        if !self.matched {
            return Ok(());
        }
        let count = |side: &Candidate<'_, L>| side.config.parameters();
        let (Some(l), Some(r)) = (count(left)?, count(right)?) else {
            bail!("claim {}: matched: the number of parameters is not known before the data are", self.name);
        };
        let apart = l.abs_diff(r) as f64 / l.min(r).max(1) as f64;
        if apart > MATCH {
            bail!(
                "claim {}: matched: {} has {l} parameters and {} has {r}, {:.1} % more or less than the other; 3 % are allowed",
                self.name,
                name_of(left.keys),
                name_of(right.keys),
                100.0 * apart
            );
        }
        Ok(())
    }

    /// The points whose configuration has these values.
    fn arm<L: Learner>(&self, side: &str, keys: &Table, points: &[Candidate<'_, L>]) -> Result<Arm> {
        let name = &self.name;
        if let Some(unknown) = keys.keys().chain(&self.along).find(|key| !L::knows(key)) {
            bail!("claim {name}: {side}: unknown key \"{unknown}\"");
        }
        let fits =
            |p: &Candidate<'_, L>| keys.iter().all(|(k, v)| p.filled.get(k).is_some_and(|f| same(f, v)));
        let mut found: Vec<(usize, f64)> = Vec::new();
        for (i, point) in points.iter().enumerate().filter(|(_, p)| fits(p)) {
            let place = match &self.along {
                None => 0.0,
                Some(key) => match point.filled.get(key).and_then(number).filter(|x| *x > 0.0) {
                    Some(place) => place,
                    None => bail!(
                        "claim {name}: along = \"{key}\": {} has no number above 0",
                        name_of(point.keys)
                    ),
                },
            };
            found.push((i, place));
        }
        found.sort_by(|a, b| a.1.total_cmp(&b.1));
        let alone = found.iter().zip(found.iter().skip(1)).all(|(a, b)| a.1 < b.1);
        let many = found.len() > 1;
        if found.is_empty() || !alone || (self.along.is_some() && !many) {
            let shown: Vec<String> = keys.iter().map(|(k, v)| format!("{k} = {}", shown(v))).collect();
            let which = if found.is_empty() { "no point has" } else { "not one point alone has" };
            let along = self.along.as_ref().map_or_else(String::new, |k| format!(" at each of several {k}"));
            bail!("claim {name}: {side}: {which} {}{along}", shown.join(", "));
        }
        let arm = match (found.as_slice(), keys.is_empty()) {
            ([(one, _)], _) => points.get(*one).map(|p| name_of(p.keys)).unwrap_or_default(),
            _ => name_of(keys),
        };
        Ok(Arm { name: arm, points: found })
    }
}

fn number(value: &Value) -> Option<f64> {
    value.as_float().or_else(|| value.as_integer().map(|i| i as f64))
}

/// The area under a curve over the logarithm of its places, divided by the length: the mean over ln x. None where a
/// value is missing.
pub(crate) fn mean_over_log(curve: &[(f64, f64)]) -> Option<f64> {
    let (first, last) = (curve.first()?.0.ln(), curve.last()?.0.ln());
    let pieces = curve.iter().zip(curve.iter().skip(1));
    let area: f64 = pieces.map(|(a, b)| (b.0.ln() - a.0.ln()) * (a.1 + b.1) / 2.0).sum();
    (last > first).then(|| area / (last - first))
}

/// Where a falling curve is first at a level or below, linear in the logarithm between its places; none if it never is.
pub(crate) fn first_at(curve: &[(f64, f64)], level: f64) -> Option<f64> {
    let first = curve.iter().position(|p| p.1 <= level)?;
    let (at, below) = curve.get(first).copied()?;
    let Some(&(before, above)) = first.checked_sub(1).and_then(|i| curve.get(i)) else { return Some(at) };
    let share = (above - level) / (above - below);
    Some((before.ln() + share * (at.ln() - before.ln())).exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn areas_and_crossings() {
        let curve = [(1.0, 3.0), (10.0, 1.0), (1000.0, 0.0)];
        // Over ln x: a piece of mean 2 and one, twice as long, of mean 1/2.
        assert!((mean_over_log(&curve).unwrap() - (2.0 + 2.0 * 0.5) / 3.0).abs() < 1e-12);
        assert_eq!((mean_over_log(&curve[..1]), mean_over_log(&[])), (None, None));
        assert!((first_at(&curve, 2.0).unwrap() - 10.0_f64.sqrt()).abs() < 1e-12);
        assert!((first_at(&curve, 0.5).unwrap() - 100.0).abs() < 1e-9);
        assert_eq!((first_at(&curve, 5.0), first_at(&curve, -1.0)), (Some(1.0), None));
    }
}
