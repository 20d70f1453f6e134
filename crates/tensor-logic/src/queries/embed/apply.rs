//! One rule applied to embedded relations: the score of every candidate.
//!
//! Enter at [`Application::scores`]. With the Gram matrix as metric it is what the paper computes: the dot product of the
//! candidate's embedding with the contracted product of the antecedents' embeddings. With [`Metric::Exact`] it counts
//! the derivations of the candidate; with [`Metric::Coherence`] it bounds what all combinations of tuples together can
//! add to a score, so that the difference of the two bounds the cross-talk.

use std::collections::BTreeMap;

use super::block::{Block, Room, multiply};
use super::metric::Metric;
use super::rule::{At, Compared, Literal, Rule};
use crate::ast::Comparison;
use crate::error::Result;
use crate::value::Const;

/// The tuples of a relation with their weights, by objects.
pub(super) type Relation = BTreeMap<Vec<usize>, f64>;

/// What rules are applied to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Application<'a> {
    /// The constants of the objects.
    pub(super) objects: &'a [Const],
    /// The relations.
    pub(super) relations: &'a [Relation],
    /// What fits.
    pub(super) room: Room,
}

impl Application<'_> {
    /// The score of each binding of the head's variables; `denied` are the truth values of the denied literals' negations.
    ///
    /// # Errors
    /// `too-large`
    pub(super) fn scores(&self, rule: &Rule, denied: &[Block], metric: Metric<'_>) -> Result<Block> {
        let mut blocks = denied.to_vec();
        for literal in &rule.literals {
            blocks.push(self.literal(literal, metric)?);
        }
        for compared in rule.compared.iter().filter(|compared| !self.decides(rule, compared)) {
            blocks.push(self.compared(rule, compared)?);
        }
        let count = rule.indices.len();
        for (variable, mask) in rule.masks.iter().enumerate().take(count) {
            let inner = variable >= rule.candidates;
            let block = match mask {
                Some(mask) if inner => mask.iter().map(|inside| f64::from(u8::from(*inside))).collect(),
                // Its place is left out: it is no factor.
                None if inner => continue,
                _ if blocks.iter().any(|block| block.has(variable)) => continue,
                _ => vec![1.0; self.room.objects],
            };
            blocks.push(Block { variables: vec![variable], values: block });
        }
        let sum = self.eliminated(blocks, rule.candidates, count)?;
        let head: Vec<usize> = (0..rule.candidates).collect();
        Ok(sum.in_order(&head, self.room.objects))
    }

    /// Which bindings of the head's variables are candidates: 1 or 0.
    ///
    /// # Errors
    /// `too-large`
    pub(super) fn candidates(&self, rule: &Rule) -> Result<Block> {
        let head: Vec<usize> = (0..rule.candidates).collect();
        let mut all = Block::filled(head.clone(), 1.0, &self.room)?;
        for (variable, mask) in rule.masks.iter().enumerate().take(rule.candidates) {
            if let Some(mask) = mask {
                let values = mask.iter().map(|inside| f64::from(u8::from(*inside))).collect();
                all = multiply(&all, &Block { variables: vec![variable], values }, |_| true, &self.room)?;
            }
        }
        for compared in rule.compared.iter().filter(|compared| self.decides(rule, compared)) {
            all = multiply(&all, &self.compared(rule, compared)?, |_| true, &self.room)?;
        }
        Ok(all.in_order(&head, self.room.objects))
    }

    /// Whether a comparison is of candidates alone.
    fn decides(&self, rule: &Rule, compared: &Compared) -> bool {
        compared.variables.iter().all(|variable| *variable < rule.candidates)
    }

    /// The literal's embedding, contracted where it is not the pivot: a number for each binding of its variables.
    ///
    /// # Errors
    /// `too-large`
    pub(super) fn literal(&self, literal: &Literal, metric: Metric<'_>) -> Result<Block> {
        let shape = Shape::of(literal);
        let mut block = Block::filled(shape.variables.clone(), 0.0, &self.room)?;
        let n = self.room.objects;
        if let Some(relation) = self.relations.get(literal.relation) {
            for (tuple, weight) in relation {
                shape.scatter(&mut block.values, tuple, *weight, metric, n);
            }
        }
        for (at, places) in shape.near.iter().enumerate() {
            if !shape.pivots.contains_key(&at) && places.len() == 1 {
                metric.along(&mut block.values, n, n.pow((shape.variables.len() - 1 - at) as u32));
            }
        }
        Ok(block)
    }

    /// 1 where a comparison holds, 0 elsewhere.
    fn compared(&self, rule: &Rule, compared: &Compared) -> Result<Block> {
        let mut block = Block::filled(compared.variables.clone(), 0.0, &self.room)?;
        let n = self.room.objects;
        for (mut at, value) in block.values.iter_mut().enumerate() {
            let mut bound: Vec<Option<Const>> = vec![None; rule.indices.len()];
            for variable in compared.variables.iter().rev() {
                bound[*variable] = self.objects.get(at % n.max(1)).copied();
                at /= n.max(1);
            }
            let of = |index| *bound.get(rule.indices.iter().position(|own| *own == index)?)?;
            let side = |function: &crate::program::IndexFn| function.evaluate(&of, &|_| None);
            if holds(compared.sign, side(&compared.sides.0), side(&compared.sides.1)) {
                *value = 1.0;
            }
        }
        Ok(block)
    }

    /// The sum of the products over all variables but the first ones.
    fn eliminated(&self, mut blocks: Vec<Block>, candidates: usize, count: usize) -> Result<Block> {
        let mut open: Vec<usize> = (candidates..count).collect();
        // The variable whose product is the smallest comes first.
        while let Some(at) = (0..open.len()).min_by_key(|at| union(&blocks, open[*at])) {
            let variable = open.remove(at);
            let (mut with, without): (Vec<Block>, Vec<Block>) =
                blocks.into_iter().partition(|block| block.has(variable));
            blocks = without;
            with.sort_by_key(|block| std::cmp::Reverse(block.variables.len()));
            let last = with.pop();
            let Some(mut product) = last else { continue };
            while let Some(next) = with.pop() {
                let done = with.is_empty();
                let keep = |other: usize| other != variable || !done;
                product = multiply(&product, &next, keep, &self.room)?;
            }
            blocks.push(product.summed(variable, self.room.objects));
        }
        blocks.sort_by_key(|block| block.variables.len());
        let mut all = Block { variables: Vec::new(), values: vec![1.0] };
        for block in blocks {
            all = multiply(&all, &block, |_| true, &self.room)?;
        }
        Ok(all)
    }
}

/// How many variables the product of all blocks with a variable has.
fn union(blocks: &[Block], variable: usize) -> usize {
    let mut all: Vec<usize> = Vec::new();
    for block in blocks.iter().filter(|block| block.has(variable)) {
        all.extend(block.variables.iter().filter(|own| !all.contains(own)).copied().collect::<Vec<_>>());
    }
    all.len()
}

/// Where the variables of a literal stand.
struct Shape {
    /// Each once.
    variables: Vec<usize>,
    /// For each variable, by its position: the place of its pivot, if that is in this literal.
    pivots: BTreeMap<usize, usize>,
    /// For each variable the places where it is compared.
    near: Vec<Vec<usize>>,
    /// Places with an object.
    objects: Vec<(usize, usize)>,
}

impl Shape {
    fn of(literal: &Literal) -> Shape {
        let mut shape =
            Shape { variables: Vec::new(), pivots: BTreeMap::new(), near: Vec::new(), objects: Vec::new() };
        for (place, at) in literal.places.iter().enumerate() {
            match at {
                At::Free => {}
                At::Object(object) => shape.objects.push((place, *object)),
                At::Pivot(variable) | At::Near(variable) => {
                    let known = shape.variables.iter().position(|own| own == variable);
                    let at_variable = known.unwrap_or(shape.variables.len());
                    if known.is_none() {
                        shape.variables.push(*variable);
                        shape.near.push(Vec::new());
                    }
                    if matches!(at, At::Pivot(_)) {
                        shape.pivots.insert(at_variable, place);
                    } else if let Some(near) = shape.near.get_mut(at_variable) {
                        near.push(place);
                    }
                }
            }
        }
        shape
    }

    /// Adds a tuple where its objects say. A variable that is compared in one place only stands at the tuple's object:
    /// the metric follows along the whole axis.
    fn scatter(&self, values: &mut [f64], tuple: &[usize], weight: f64, metric: Metric<'_>, n: usize) {
        let object = |place: usize| tuple.get(place).copied().unwrap_or(0);
        let given = self.objects.iter().map(|(place, known)| metric.between(object(*place), *known, n));
        let mut open: Vec<(usize, f64)> = vec![(0, weight * given.product::<f64>())];
        for (at, near) in self.near.iter().enumerate() {
            let score = |candidate: usize| -> f64 {
                near.iter().map(|place| metric.between(object(*place), candidate, n)).product()
            };
            open = match (self.pivots.get(&at), near.as_slice()) {
                (Some(place), _) => {
                    let own = object(*place);
                    open.into_iter().map(|(from, weight)| (from * n + own, weight * score(own))).collect()
                }
                (None, [place]) => {
                    open.into_iter().map(|(from, weight)| (from * n + object(*place), weight)).collect()
                }
                (None, _) => {
                    let all = |(from, weight): (usize, f64)| {
                        (0..n).map(move |own| (from * n + own, weight * score(own))).collect::<Vec<_>>()
                    };
                    open.into_iter().flat_map(all).collect()
                }
            };
        }
        for (at, weight) in open {
            if let Some(value) = values.get_mut(at) {
                *value += weight;
            }
        }
    }
}

/// Symbols are equal or not; integers have an order.
fn holds(sign: Comparison, left: Option<Const>, right: Option<Const>) -> bool {
    let (Some(left), Some(right)) = (left, right) else { return false };
    let order = match (left, right) {
        (Const::Int(left), Const::Int(right)) => Some(left.cmp(&right)),
        _ => None,
    };
    match sign {
        Comparison::Equal => left == right,
        Comparison::NotEqual => left != right,
        Comparison::Less => order.is_some_and(std::cmp::Ordering::is_lt),
        Comparison::LessEqual => order.is_some_and(std::cmp::Ordering::is_le),
        Comparison::Greater => order.is_some_and(std::cmp::Ordering::is_gt),
        Comparison::GreaterEqual => order.is_some_and(std::cmp::Ordering::is_ge),
    }
}
