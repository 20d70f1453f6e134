//! Orders of elimination: a portfolio of greedy rules, of which the cheapest is taken.
//!
//! Enter at [`best`]. Koller and Friedman, *Probabilistic Graphical Models*, section 9.4.3.

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

    /// The order of a rule; those that are equally good are taken by their number, or at random. It ends before all variables
    /// are eliminated, where there are more cells than the limit: scores of wide cliques take long.
    fn order(&self, rule: Rule, mut random: Option<&mut Stream>, limit: f64) -> Order {
        let mut graph = self.clone();
        let count = self.sizes.len();
        let mut scores: Vec<Option<f64>> = vec![None; count];
        let mut left = vec![true; count];
        let mut order = Order { variables: Vec::new(), neighbours: vec![Vec::new(); count], cells: 0.0 };
        while order.cells <= limit && order.variables.len() < count {
            let (mut least, mut ties): (f64, Vec<usize>) = (f64::INFINITY, Vec::new());
            for at in (0..count).filter(|at| left[*at]) {
                let score = *scores[at].get_or_insert_with(|| graph.score(at, rule));
                if score < least {
                    (least, ties) = (score, vec![at]);
                } else if score == least {
                    ties.push(at);
                }
            }
            let pick =
                random.as_deref_mut().map_or(0, |stream| stream.below(ties.len().max(1) as u64) as usize);
            let Some(next) = ties.get(pick).copied() else { break };
            let near = graph.neighbours(next);
            left[next] = false;
            graph.join(&near);
            for other in &near {
                graph.bits[other * graph.words + next / 64] &= !(1 << (next % 64));
            }
            // Edges have changed between neighbours, so scores have for these and theirs.
            for other in &near {
                scores[*other] = None;
                if rule != Rule::Cells {
                    graph.neighbours(*other).into_iter().for_each(|far| scores[far] = None);
                }
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
