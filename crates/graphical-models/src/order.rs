//! Orders of elimination: a portfolio of greedy rules, of which the cheapest is taken.
//!
//! Enter at [`best`]. Koller and Friedman, *Probabilistic Graphical Models*, section 9.4.3.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use seeded::Stream;

/// What a greedy rule makes small at every step.
#[derive(Clone, Copy, PartialEq)]
enum Rule {
    /// The edges that an elimination adds.
    Fill,
    /// The same, each weighted by the states of its two ends.
    WeightedFill,
    /// The cells of the table that it makes.
    Cells,
}

/// What a rule makes small, in order: whole numbers, so that those that follow are exact below 2⁵³.
#[derive(Clone, Copy, PartialEq)]
struct Score(f64);

impl Eq for Score {}

impl Ord for Score {
    fn cmp(&self, other: &Score) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl PartialOrd for Score {
    fn partial_cmp(&self, other: &Score) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// An order and what it costs.
#[derive(Clone)]
pub(crate) struct Order {
    /// The variables, the first to be eliminated first.
    pub(crate) variables: Vec<usize>,
    /// The neighbours of each when it is eliminated, in no order.
    pub(crate) neighbours: Vec<Vec<usize>>,
    /// The cells of all tables together.
    pub(crate) cells: f64,
}

/// Orders are looked for at random until that has taken about this share of what the best one costs.
const SHARE: f64 = 0.02;
/// At most so many.
const TRIES: usize = 60;

/// A good order for variables of these sizes, where those of each scope are neighbours. If none has at most so many cells as
/// the limit, it ends where that is known.
pub(crate) fn best(sizes: &[usize], scopes: &[Vec<usize>], limit: f64) -> Order {
    let graph = Graph::new(sizes, scopes);
    let rules = [Rule::Fill, Rule::WeightedFill, Rule::Cells];
    let mut found: Vec<(Order, Rule)> =
        rules.iter().map(|rule| (graph.order(*rule, None, limit), *rule)).collect();
    found.sort_by(|(a, _), (b, _)| a.cells.total_cmp(&b.cells));
    let mut best = found.swap_remove(0);
    let mut stream = seeded::Family::named("elimination").stream(0);
    // About what the search for one order costs, in cells.
    let search = 200.0 * sizes.len() as f64 * (1.0 + sizes.len() as f64 / 64.0);
    let mut spent = 0.0;
    for number in 0..TRIES {
        spent += search;
        if spent > SHARE * best.0.cells || best.0.cells > limit {
            break;
        }
        let rule = if number % 3 == 2 { rules[number / 3 % 3] } else { best.1 };
        let order = graph.order(rule, Some(&mut stream), limit);
        if order.cells < best.0.cells {
            best = (order, rule);
        }
    }
    best.0
}

/// Who is whose neighbour, a row of bits for each.
#[derive(Clone)]
struct Graph {
    sizes: Vec<usize>,
    words: usize,
    bits: Vec<u64>,
}

impl Graph {
    fn new(sizes: &[usize], scopes: &[Vec<usize>]) -> Graph {
        let words = sizes.len().div_ceil(64);
        let mut graph = Graph { sizes: sizes.to_vec(), words, bits: vec![0; words * sizes.len()] };
        for scope in scopes {
            graph.join(scope);
        }
        graph
    }

    fn join(&mut self, all: &[usize]) {
        for a in all {
            for b in all.iter().filter(|b| *b != a) {
                self.bits[a * self.words + b / 64] |= 1 << (b % 64);
            }
        }
    }

    fn row(&self, of: usize) -> &[u64] {
        &self.bits[of * self.words..(of + 1) * self.words]
    }

    fn neighbours(&self, of: usize) -> Vec<usize> {
        members(self.row(of).iter().copied().enumerate())
    }

    /// What a rule makes small.
    fn score(&self, of: usize, rule: Rule) -> f64 {
        let near = self.neighbours(of);
        if rule == Rule::Cells {
            return near.iter().map(|other| self.sizes[*other] as f64).product();
        }
        let own = self.row(of);
        let mut score = 0.0;
        for a in &near {
            let missing = own.iter().zip(self.row(*a)).map(|(own, row)| own & !row);
            match rule {
                Rule::Fill => score += missing.map(|bits| f64::from(bits.count_ones())).sum::<f64>() - 1.0,
                Rule::WeightedFill | Rule::Cells => {
                    let missing = members(missing.enumerate()).into_iter().filter(|b| b != a);
                    score += missing.map(|b| (self.sizes[*a] * self.sizes[b]) as f64).sum::<f64>();
                }
            }
        }
        score / 2.0
    }

    /// Joins the neighbours of a variable and takes it out. Says whose scores change, in order: how much less they are, or
    /// what they are now, where edges have come and that is found anew.
    fn eliminate(&mut self, next: usize, near: &[usize], rule: Rule) -> Vec<(usize, Result<f64, f64>)> {
        if rule == Rule::Cells {
            self.join(near);
            self.leave(next, near);
            return near.iter().map(|other| (*other, Ok(self.score(*other, rule)))).collect();
        }
        let mut less: BTreeMap<usize, f64> = BTreeMap::new();
        // What the neighbours miss with the one that goes, they miss no more.
        for other in near {
            let missing = self.row(*other).iter().zip(self.row(next)).map(|(own, row)| own & !row);
            let missing = members(missing.enumerate()).into_iter().filter(|far| *far != next);
            less.insert(*other, missing.map(|far| self.weight(rule, next, far)).sum());
        }
        self.leave(next, near);
        let mut joined = BTreeSet::new();
        for (at, a) in near.iter().enumerate() {
            for b in near[at + 1..].iter().filter(|b| **b != *a) {
                if self.row(*a)[b / 64] >> (b % 64) & 1 == 1 {
                    continue;
                }
                // An edge comes: those that have both as neighbours miss it no more, and its ends have others to miss.
                let both = self.row(*a).iter().zip(self.row(*b)).map(|(a, b)| a & b);
                for far in members(both.enumerate()) {
                    *less.entry(far).or_insert(0.0) += self.weight(rule, *a, *b);
                }
                self.join(&[*a, *b]);
                joined.extend([*a, *b]);
            }
        }
        let changed = less.into_iter().map(|(at, less)| match joined.contains(&at) {
            true => (at, Ok(self.score(at, rule))),
            false => (at, Err(less)),
        });
        changed.collect()
    }

    /// What an edge that is missing counts.
    fn weight(&self, rule: Rule, a: usize, b: usize) -> f64 {
        match rule {
            Rule::WeightedFill => (self.sizes[a] * self.sizes[b]) as f64,
            Rule::Fill | Rule::Cells => 1.0,
        }
    }

    /// Nobody has this one as a neighbour any more.
    fn leave(&mut self, next: usize, near: &[usize]) {
        for other in near {
            self.bits[other * self.words + next / 64] &= !(1 << (next % 64));
        }
    }

    /// The order of a rule; those that are equally good are taken by their number, or at random. It ends before all variables
    /// are eliminated, where there are more cells than the limit: scores of wide cliques take long.
    fn order(&self, rule: Rule, mut random: Option<&mut Stream>, limit: f64) -> Order {
        let mut graph = self.clone();
        let count = self.sizes.len();
        let mut scores: Vec<f64> = (0..count).map(|at| graph.score(at, rule)).collect();
        let mut open: BTreeSet<(Score, usize)> = scores.iter().copied().map(Score).zip(0..).collect();
        let mut order = Order { variables: Vec::new(), neighbours: vec![Vec::new(); count], cells: 0.0 };
        while order.cells <= limit && order.variables.len() < count {
            let Some((least, first)) = open.first().copied() else { break };
            let next = match random.as_deref_mut() {
                None => first,
                Some(stream) => {
                    let ties = || open.range((least, 0)..=(least, usize::MAX));
                    let pick = stream.below(ties().count() as u64) as usize;
                    ties().nth(pick).map_or(first, |(_, at)| *at)
                }
            };
            open.remove(&(least, next));
            let near = graph.neighbours(next);
            for (at, score) in graph.eliminate(next, &near, rule) {
                open.remove(&(Score(scores[at]), at));
                scores[at] = score.unwrap_or_else(|less| scores[at] - less);
                open.insert((Score(scores[at]), at));
            }
            let cells: f64 = near.iter().map(|other| self.sizes[*other] as f64).product();
            order.cells += cells * self.sizes[next] as f64;
            order.variables.push(next);
            order.neighbours[next] = near;
        }
        order
    }
}

/// The positions of the bits that are set.
fn members(rows: impl Iterator<Item = (usize, u64)>) -> Vec<usize> {
    let mut found = Vec::new();
    for (word, mut bits) in rows {
        while bits != 0 {
            found.push(word * 64 + bits.trailing_zeros() as usize);
            bits &= bits - 1;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scores that follow are those that are found anew, on random graphs with hubs.
    #[test]
    fn scores_follow() {
        let mut stream = seeded::Family::named("elimination: scores").stream(0);
        for _ in 0..60 {
            let count = 2 + stream.below(90) as usize;
            let sizes: Vec<usize> = (0..count).map(|_| 2 + stream.below(4) as usize).collect();
            let edges = stream.below(3 * count as u64);
            let scopes: Vec<Vec<usize>> = (0..edges)
                .map(|_| {
                    let hub = if stream.below(3) == 0 { 0 } else { stream.below(count as u64) };
                    vec![hub as usize, stream.below(count as u64) as usize]
                })
                .collect();
            for rule in [Rule::Fill, Rule::WeightedFill, Rule::Cells] {
                let mut graph = Graph::new(&sizes, &scopes);
                let mut scores: Vec<f64> = (0..count).map(|at| graph.score(at, rule)).collect();
                let mut left: Vec<usize> = (0..count).collect();
                while !left.is_empty() {
                    let next = left.swap_remove(stream.below(left.len() as u64) as usize);
                    let near = graph.neighbours(next);
                    for (at, score) in graph.eliminate(next, &near, rule) {
                        scores[at] = score.unwrap_or_else(|less| scores[at] - less);
                    }
                    assert!(left.iter().all(|at| scores[*at] == graph.score(*at, rule)));
                }
            }
        }
    }
}
