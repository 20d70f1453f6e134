//! Orders of elimination: a portfolio of greedy rules, of which the cheapest is taken.
//!
//! Enter at [`Trimmed::of`] and [`Trimmed::best`]. Koller and Friedman, *Probabilistic Graphical Models*, section 9.4.3.
//!
//! Variables with one neighbour or none go first, as long as there are any: whatever the order, there is a table over such a
//! one and its neighbour, and none is smaller. Trees come to their end by that, in time that grows with them.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

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

/// Variables without those that go first.
pub(crate) struct Trimmed {
    /// Those that go first, and for all others no neighbours.
    order: Order,
    /// The others, by their number.
    pub(crate) core: Vec<usize>,
    /// For each of them its neighbours among them, by their places there.
    near: Vec<Vec<usize>>,
}

impl Trimmed {
    /// Takes off what has one neighbour or none, of variables of these sizes where those of each scope are neighbours.
    pub(crate) fn of(sizes: &[usize], scopes: &[Vec<usize>]) -> Trimmed {
        let count = sizes.len();
        let mut near: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); count];
        for scope in scopes {
            for a in scope {
                near[*a].extend(scope.iter().filter(|b| *b != a));
            }
        }
        let mut order = Order { variables: Vec::new(), neighbours: vec![Vec::new(); count], cells: 0.0 };
        let mut open: VecDeque<usize> = (0..count).filter(|at| near[*at].len() <= 1).collect();
        let mut gone = vec![false; count];
        while let Some(next) = open.pop_front() {
            // The last two of a tree are each other's only neighbours.
            if std::mem::replace(&mut gone[next], true) {
                continue;
            }
            let other = near[next].pop_first();
            order.cells += (sizes[next] * other.map_or(1, |other| sizes[other])) as f64;
            order.variables.push(next);
            order.neighbours[next].extend(other);
            if let Some(other) = other {
                near[other].remove(&next);
                if near[other].len() <= 1 {
                    open.push_back(other);
                }
            }
        }
        let core: Vec<usize> = (0..count).filter(|at| !gone[*at]).collect();
        let mut place = vec![usize::MAX; count];
        core.iter().enumerate().for_each(|(at, variable)| place[*variable] = at);
        let near = core.iter().map(|at| near[*at].iter().map(|other| place[*other]).collect()).collect();
        Trimmed { order, core, near }
    }

    /// A good order for all of them. If none has at most so many cells as the limit, it ends where that is known.
    pub(crate) fn best(self, sizes: &[usize], limit: f64) -> Order {
        let Trimmed { mut order, core, near } = self;
        if core.is_empty() || order.cells > limit {
            return order;
        }
        let own: Vec<usize> = core.iter().map(|variable| sizes[*variable]).collect();
        let inner = best(&Graph::of(own, &near), limit - order.cells);
        for at in &inner.variables {
            order.variables.push(core[*at]);
            order.neighbours[core[*at]] = inner.neighbours[*at].iter().map(|other| core[*other]).collect();
        }
        order.cells += inner.cells;
        order
    }
}

/// A good order of a graph. If none has at most so many cells as the limit, it ends where that is known.
fn best(graph: &Graph, limit: f64) -> Order {
    let rules = [Rule::Fill, Rule::WeightedFill, Rule::Cells];
    let mut found: Vec<(Order, Rule)> =
        rules.iter().map(|rule| (graph.order(*rule, None, limit), *rule)).collect();
    found.sort_by(|(a, _), (b, _)| a.cells.total_cmp(&b.cells));
    let mut best = found.swap_remove(0);
    let mut stream = seeded::Family::named("elimination").stream(0);
    // About what the search for one order costs, in cells.
    let count = graph.sizes.len() as f64;
    let search = 200.0 * count * (1.0 + count / 64.0);
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
    /// Of the neighbours of each.
    fn of(sizes: Vec<usize>, near: &[Vec<usize>]) -> Graph {
        let words = sizes.len().div_ceil(64);
        let mut graph = Graph { words, bits: vec![0; words * sizes.len()], sizes };
        for (at, near) in near.iter().enumerate() {
            near.iter().for_each(|other| graph.join(&[at, *other]));
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

    fn neighbours(count: usize, scopes: &[Vec<usize>]) -> Vec<Vec<usize>> {
        let of = |at: usize| {
            let with = scopes.iter().filter(|scope| scope.contains(&at)).flatten();
            with.copied().filter(|other| *other != at).collect::<BTreeSet<_>>().into_iter().collect()
        };
        (0..count).map(of).collect()
    }

    /// The cells of an order where each table has its variable and the neighbours that are left, which become neighbours.
    fn replayed(sizes: &[usize], scopes: &[Vec<usize>], order: &[usize]) -> (f64, Vec<BTreeSet<usize>>) {
        let near = neighbours(sizes.len(), scopes).into_iter();
        let mut near: Vec<BTreeSet<usize>> = near.map(|near| near.into_iter().collect()).collect();
        let (mut cells, mut found) = (0.0, vec![BTreeSet::new(); sizes.len()]);
        for next in order {
            let own = std::mem::take(&mut near[*next]);
            cells += own.iter().chain([next]).map(|at| sizes[*at] as f64).product::<f64>();
            for other in &own {
                near[*other].extend(own.iter().filter(|far| *far != other));
                near[*other].remove(next);
            }
            found[*next] = own;
        }
        (cells, found)
    }

    /// All variables are eliminated once, with the neighbours and the cells that elimination by the book has; what was taken off
    /// before costs nothing, and trees are taken off to their end.
    #[test]
    fn what_is_taken_off_first_is_an_elimination() {
        let mut stream = seeded::Family::named("elimination: trimmed").stream(0);
        let (mut whole, mut cores) = (0, 0);
        for round in 0..300 {
            let count = 1 + stream.below(40) as usize;
            let sizes: Vec<usize> = (0..count).map(|_| 2 + stream.below(4) as usize).collect();
            let any = |stream: &mut Stream| stream.below(count as u64) as usize;
            // Trees, trees with some more edges, and wider scopes.
            let tree = (1..count).map(|at| vec![stream.below(at as u64) as usize, at]);
            let mut scopes: Vec<Vec<usize>> = tree.collect();
            scopes.retain(|_| stream.below(8) > 0);
            for _ in 0..[0, 3, count][round % 3] {
                let wide = 1 + stream.below(3);
                scopes
                    .push((0..wide).map(|_| any(&mut stream)).collect::<BTreeSet<_>>().into_iter().collect());
            }
            let trimmed = Trimmed::of(&sizes, &scopes);
            let core = trimmed.core.len();
            let order = trimmed.best(&sizes, f64::INFINITY);
            let (cells, near) = replayed(&sizes, &scopes, &order.variables);
            assert_eq!(order.variables.iter().collect::<BTreeSet<_>>().len(), count);
            assert_eq!(order.variables.len(), count);
            assert_eq!(order.cells, cells);
            for (own, near) in order.neighbours.into_iter().zip(near) {
                assert_eq!(own.into_iter().collect::<BTreeSet<_>>(), near);
            }
            if round % 3 == 0 {
                assert_eq!(core, 0);
                whole += 1;
            }
            let all = best(&Graph::of(sizes.clone(), &neighbours(count, &scopes)), f64::INFINITY);
            let (cells_of_all, _) = replayed(&sizes, &scopes, &all.variables);
            assert_eq!(all.cells, cells_of_all);
            // By chance the rules take another way through what is left.
            assert!(cells <= 1.5 * cells_of_all, "{cells} {cells_of_all}");
            cores += usize::from(core > 3);
        }
        assert!(whole == 100 && cores > 50, "{cores}");
    }

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
                let mut graph = Graph::of(sizes.clone(), &neighbours(count, &scopes));
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
