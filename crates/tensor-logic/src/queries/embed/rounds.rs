//! The run of a program in embedding space: rules are applied, candidates retrieved and embedded again, until nothing
//! is added.
//!
//! Enter at [`Run::retrieved`].

use super::apply::{Application, Relation};
use super::block::{Block, Room};
use super::metric::Metric;
use super::rule::{Head, Literal, Rule, Rules, Stratum};
use crate::ast::Span;
use crate::engine::{Budget, Stop};
use crate::error::{Code, Refusal, Result};

/// How scores become truth, and what is known of the vectors.
#[derive(Debug, Clone)]
pub(super) struct Run<'a> {
    /// The rules.
    pub(super) rules: &'a Rules,
    /// The Gram matrix; `None` for orthonormal vectors.
    pub(super) dots: Option<&'a [f64]>,
    /// What no absolute dot product of two objects exceeds.
    pub(super) coherence: f64,
    /// The threshold.
    pub(super) theta: f64,
    /// 0 for a step.
    pub(super) temperature: f64,
    /// Whether the first retrieval that is not certified ends the run.
    pub(super) strict: bool,
    /// What fits.
    pub(super) room: Room,
    /// The most tuples.
    pub(super) budget: Budget,
    /// When values are at rest, and after how many rounds they must be.
    pub(super) rest: (f64, u64),
    /// Whether somebody asked to stop.
    pub(super) stop: Stop,
}

/// What was retrieved.
#[derive(Debug, Clone)]
pub(super) struct Retrieved {
    /// The relations.
    pub(super) relations: Vec<Relation>,
    /// The largest bound on the cross-talk of a retrieval.
    pub(super) bound: f64,
    /// The head or the literal of that retrieval.
    pub(super) at: Span,
}

/// Values below this are none: beside 1, a number of 64 bits does not hold them.
const NOTHING: f64 = f64::EPSILON;

/// What a stored tuple takes: its objects, its value, and its part of a tree.
const TUPLE: u128 = 96;

/// Sums of dot products are rounded: of what a score or a bound adds up, this part may be wrong.
const ROUNDING: f64 = 1e-10;

impl Run<'_> {
    /// Whether no cross-talk below the bound changes what a score says.
    pub(super) fn is_certified(&self, bound: f64) -> bool {
        // Orthonormal vectors have none, and their scores are whole numbers.
        bound < 1.0 - self.theta && (bound < self.theta || bound == 0.0)
    }

    /// Applies all rules, stratum by stratum.
    ///
    /// # Errors
    /// `too-large`, `budget`, and `divergence` where values do not come to rest.
    pub(super) fn retrieved(&self) -> Result<Retrieved> {
        let facts = self.rules.facts.iter();
        let relations =
            facts.map(|tuples| tuples.iter().map(|tuple| (tuple.clone(), 1.0)).collect()).collect();
        let mut found = Retrieved { relations, bound: 0.0, at: Span::default() };
        for stratum in &self.rules.strata {
            self.stratum(stratum, &mut found)?;
            if self.strict && !self.is_certified(found.bound) {
                break;
            }
        }
        Ok(found)
    }

    fn stratum(&self, stratum: &Stratum, found: &mut Retrieved) -> Result<()> {
        let rules: Vec<&Rule> = stratum.rules.iter().filter_map(|at| self.rules.rules.get(*at)).collect();
        // What is denied lies in strata below, and stays.
        let mut denied = Vec::new();
        for rule in &rules {
            let mut truths = Vec::new();
            for literal in &rule.denied {
                truths.push(self.denied(literal, rule, found)?);
            }
            denied.push(truths);
        }
        let mut changed: Option<Vec<usize>> = None;
        for round in 0.. {
            let mut additions = Vec::new();
            for (rule, denied) in rules.iter().zip(&denied) {
                let reads = |relations: &Vec<usize>| {
                    rule.literals.iter().any(|literal| relations.contains(&literal.relation))
                };
                if changed.as_ref().is_none_or(reads) {
                    additions.push((rule.relation, self.application(rule, denied, found)?));
                }
                if self.strict && !self.is_certified(found.bound) {
                    return Ok(());
                }
            }
            let mut grown = Vec::new();
            for (relation, tuples) in additions {
                if self.merge(found, relation, tuples)? && !grown.contains(&relation) {
                    grown.push(relation);
                }
            }
            if grown.is_empty() || !stratum.recursive {
                return Ok(());
            }
            if self.temperature > 0.0 && round >= self.rest.1 {
                return Err(self.restless(stratum));
            }
            changed = Some(grown);
        }
        Ok(())
    }

    fn restless(&self, stratum: &Stratum) -> Refusal {
        let first = stratum.rules.first().and_then(|at| self.rules.rules.get(*at));
        let message = format!("the values of embedding space did not come to rest in {} rounds", self.rest.1);
        let help = "lower the temperature, or allow more with `@rounds(n)`, or a coarser rest with `@tol(t)`";
        Refusal::new(Code::Divergence, first.map_or(self.room.place, |rule| rule.span), message).help(help)
    }

    fn metric(&self) -> Metric<'_> {
        self.dots.map_or(Metric::Exact, Metric::Gram)
    }

    /// The value of a score.
    fn truth(&self, score: f64) -> f64 {
        if self.temperature > 0.0 {
            1.0 / (1.0 + ((self.theta - score) / self.temperature).exp())
        } else {
            f64::from(u8::from(score > self.theta))
        }
    }

    /// One rule applied, and its candidates retrieved.
    fn application(&self, rule: &Rule, denied: &[Block], found: &mut Retrieved) -> Result<Relation> {
        self.stop.check(self.room.place)?;
        let relations = std::mem::take(&mut found.relations);
        let application =
            Application { objects: &self.rules.objects, relations: &relations, room: self.room };
        let computed = (|| {
            let candidates = application.candidates(rule)?;
            let scores = application.scores(rule, denied, self.metric())?;
            let bound = self.bound(|metric| application.scores(rule, denied, metric), Some(&candidates))?;
            Ok((candidates, scores, bound))
        })();
        found.relations = relations;
        let (candidates, scores, bound) = computed?;
        found.note(bound, rule.span);
        let mut tuples = Relation::new();
        for (at, (score, candidate)) in scores.values.iter().zip(&candidates.values).enumerate() {
            let value = if *candidate > 0.0 { self.truth(*score) } else { 0.0 };
            if value >= NOTHING {
                tuples.insert(self.tuple(rule, at), value);
            }
            self.few(tuples.len(), rule.span)?;
        }
        Ok(tuples)
    }

    /// The head for a candidate, by its position.
    fn tuple(&self, rule: &Rule, mut at: usize) -> Vec<usize> {
        let n = self.room.objects.max(1);
        let mut bound = vec![0; rule.candidates];
        for object in bound.iter_mut().rev() {
            *object = at % n;
            at /= n;
        }
        let object = |head: &Head| match head {
            Head::Object(object) => *object,
            Head::Variable(variable) => bound.get(*variable).copied().unwrap_or(0),
        };
        rule.head.iter().map(object).collect()
    }

    /// Whether a relation may have so many tuples.
    fn few(&self, tuples: usize, place: Span) -> Result<()> {
        let most = self.budget.tuples;
        if tuples as u64 > most {
            let message = format!("more than {most} tuples are retrieved");
            let help =
                "`--max-tuples` raises the limit; at a temperature above 0 every candidate has a value";
            return Err(Refusal::new(Code::Budget, place, message).help(help));
        }
        self.room.holds((tuples as u128).saturating_mul(TUPLE), || format!("{tuples} tuples"))
    }

    /// What other tuples may add to a score, at most.
    fn bound(&self, scores: impl Fn(Metric<'_>) -> Result<Block>, candidates: Option<&Block>) -> Result<f64> {
        if self.coherence == 0.0 {
            return Ok(0.0);
        }
        let (exact, all) = (scores(Metric::Exact)?, scores(Metric::Coherence(self.coherence))?);
        let mut most = 0.0_f64;
        for (at, (exact, all)) in exact.values.iter().zip(&all.values).enumerate() {
            let asked = candidates.is_none_or(|block| block.values.get(at).is_some_and(|value| *value > 0.0));
            if asked {
                most = most.max(all - exact + ROUNDING * all);
            }
        }
        Ok(most)
    }

    /// 1 minus the truth of a denied literal, for each binding of its variables.
    fn denied(&self, literal: &Literal, rule: &Rule, found: &mut Retrieved) -> Result<Block> {
        self.stop.check(self.room.place)?;
        let application =
            Application { objects: &self.rules.objects, relations: &found.relations, room: self.room };
        let mut scores = application.literal(literal, self.metric())?;
        let bound = self.bound(|metric| application.literal(literal, metric), None)?;
        found.note(bound, rule.span);
        scores.values.iter_mut().for_each(|score| *score = 1.0 - self.truth(*score));
        Ok(scores)
    }

    /// Adds what was retrieved; whether anything is new. What is found stays found, so that rounds end.
    fn merge(&self, found: &mut Retrieved, relation: usize, tuples: Relation) -> Result<bool> {
        let Some(own) = found.relations.get_mut(relation) else { return Ok(false) };
        let mut new = false;
        for (tuple, value) in tuples {
            let known = own.entry(tuple).or_insert(0.0);
            new |= value > *known + self.rest.0 * value.max(1.0);
            *known = known.max(value);
        }
        let count = own.len();
        self.few(count, self.room.place)?;
        Ok(new)
    }
}

impl Retrieved {
    fn note(&mut self, bound: f64, at: Span) {
        if bound > self.bound {
            (self.bound, self.at) = (bound, at);
        }
    }
}
