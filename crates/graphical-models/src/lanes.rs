//! The rounds of loopy belief propagation, many factors and many variables of one shape side by side.
//!
//! Enter at [`Lanes::rest`]. A *row* is a number for each of `L` lanes; a *tile* is what `L` factors of one shape have: a row
//! for each cell of their tables, and for each state of each variable of theirs a row of messages. Variables of equal size and
//! degree are tiles too. Each side writes its own rows in order and gathers from the other's; a lane of a last tile that
//! nobody needs repeats the one before it.

use crate::graph::{Ends, Graph, Shapes};
use crate::messages::{Row, SMALL, Scratch, gather, larger, log_sum, products};

/// When to stop, and how fast to go.
pub(crate) struct Pace {
    pub(crate) rounds: usize,
    pub(crate) tolerance: f64,
    pub(crate) damping: f64,
}

/// What the rounds came to.
pub(crate) struct Found {
    /// Of the variables that are left, in order.
    pub(crate) beliefs: Vec<Vec<f64>>,
    pub(crate) log: f64,
    pub(crate) rounds: usize,
    pub(crate) change: f64,
}

/// Tiles of one shape.
struct Group {
    /// How many states each place of a factor has; of variables the same number, once for each factor.
    shape: Vec<usize>,
    /// Who is in which lane of which tile.
    members: Vec<usize>,
    /// Where its rows of tables or priors, its messages and its sources begin.
    table: usize,
    message: usize,
    source: usize,
}

impl Group {
    fn tiles<const L: usize>(&self) -> usize {
        self.members.len() / L
    }

    fn states(&self) -> usize {
        self.shape.iter().sum()
    }
}

/// One side: factors, or variables.
struct Side<const L: usize> {
    groups: Vec<Group>,
    tables: Vec<Row<L>>,
    /// Those that it sends.
    messages: Vec<Row<L>>,
    /// For each place of each tile and lane where the number of the first state stands among the other side's, which are
    /// `L` apart.
    sources: Vec<[u32; L]>,
}

/// Both sides.
pub(crate) struct Lanes<'g, const L: usize> {
    graph: &'g Graph<'g>,
    factors: Side<L>,
    variables: Side<L>,
}

impl<const L: usize> Side<L> {
    /// Members by shape, with messages that are all equal; `cells` is how many rows the table of a shape has.
    fn new(shapes: Shapes, cells: impl Fn(&[usize]) -> usize) -> Side<L> {
        let mut side =
            Side { groups: Vec::new(), tables: Vec::new(), messages: Vec::new(), sources: Vec::new() };
        let (mut table, mut source) = (0, 0);
        for (shape, mut members) in shapes.of {
            let last = members.last().copied().unwrap_or(0);
            members.resize(members.len().next_multiple_of(L), last);
            let group = Group { members, table, message: side.messages.len(), source, shape };
            let tiles = group.tiles::<L>();
            for _ in 0..tiles {
                for size in &group.shape {
                    side.messages.extend(std::iter::repeat_n([1.0 / *size as f64; L], *size));
                }
            }
            table += tiles * cells(&group.shape);
            source += tiles * group.shape.len();
            side.groups.push(group);
        }
        side.tables = vec![[0.0; L]; table];
        side.sources = vec![[0; L]; source];
        side
    }

    /// For each end where the number of the first state of its message stands.
    fn places(&self, ends: &Ends) -> Vec<u32> {
        let mut places = vec![0; ends.other.len()];
        for group in &self.groups {
            // Of those that repeat the last one, it is itself that counts, which comes first.
            for (at, member) in group.members.iter().enumerate().rev() {
                let mut row = group.message + at / L * group.states();
                for (place, size) in places[ends.of(*member)].iter_mut().zip(&group.shape) {
                    *place = (row * L + at % L) as u32;
                    row += size;
                }
            }
        }
        places
    }

    /// Fills in the tables of all members, and where they hear the other side, whose places these are.
    fn fill<T: Iterator<Item = f64>>(&mut self, table: impl Fn(usize) -> T, ends: &Ends, places: &[u32]) {
        for group in &self.groups {
            let cells = match group.tiles::<L>() {
                0 => 0,
                _ if group.shape.is_empty() => 0,
                _ => table(group.members[0]).count(),
            };
            for (at, member) in group.members.iter().enumerate() {
                let (tile, lane) = (at / L, at % L);
                let rows = &mut self.tables[group.table + tile * cells..][..cells];
                rows.iter_mut().zip(table(*member)).for_each(|(row, value)| row[lane] = value);
                let rows = &mut self.sources[group.source + tile * group.shape.len()..];
                let heard = ends.other[ends.of(*member)].iter().map(|end| places[*end as usize]);
                rows.iter_mut().zip(heard).for_each(|(row, place)| row[lane] = place);
            }
        }
    }
}

impl<'g, const L: usize> Lanes<'g, L> {
    /// All messages equal; `factors` are those of the graph by shape.
    pub(crate) fn new(graph: &'g Graph<'g>, factors: Shapes) -> Lanes<'g, L> {
        let mut variables = Shapes::default();
        for (variable, size) in graph.sizes.iter().enumerate() {
            variables.add(std::iter::repeat_n(*size, graph.variable_ends.of(variable).len()));
        }
        let mut factors = Side::new(factors, |shape| shape.iter().product());
        // What meets no factor sends nothing and needs no prior here.
        let mut variables = Side::new(variables, |shape| shape.first().copied().unwrap_or(0));
        let (from_factors, from_variables) =
            (factors.places(&graph.factor_ends), variables.places(&graph.variable_ends));
        factors.fill(|at| graph.table(at), &graph.factor_ends, &from_variables);
        variables.fill(|at| graph.prior(at).iter().copied(), &graph.variable_ends, &from_factors);
        Lanes { graph, factors, variables }
    }

    /// Rounds until the messages rest, or there have been enough.
    pub(crate) fn rest(mut self, pace: &Pace) -> Found {
        let (mut rounds, mut change) = (0, f64::INFINITY);
        if self.factors.messages.is_empty() {
            change = 0.0;
        }
        while rounds < pace.rounds && change > pace.tolerance {
            change = round(&mut self.factors, &mut self.variables, pace.damping);
            rounds += 1;
        }
        from_variables(&self.factors, &mut self.variables);
        let (beliefs, log) = self.beliefs();
        Found { beliefs, log, rounds, change }
    }

    /// The belief of each variable, and the logarithm of Bethe's estimate: of the sums at factors and at variables, over
    /// those at the messages between them.
    fn beliefs(&self) -> (Vec<Vec<f64>>, f64) {
        let graph = self.graph;
        let (from_factors, from_variables) =
            (self.factors.places(&graph.factor_ends), self.variables.places(&graph.variable_ends));
        let (given, sent) = (self.factors.messages.as_flattened(), self.variables.messages.as_flattened());
        let said = |end: &u32, state: usize| given[from_factors[*end as usize] as usize + state * L];
        let (mut beliefs, mut total, mut terms) = (Vec::new(), 0.0, Vec::new());
        for variable in 0..graph.variable_ends.members() {
            let (prior, ends) = (graph.prior(variable), graph.variable_ends.of(variable));
            let near = &graph.variable_ends.other[ends.clone()];
            for (end, own) in near.iter().zip(&from_variables[ends]) {
                total -= log_of_products(&mut terms, prior.len(), |state, times| {
                    times(said(end, state));
                    times(sent[*own as usize + state * L]);
                });
            }
            total += log_of_products(&mut terms, prior.len(), |state, times| {
                times(prior[state]);
                near.iter().for_each(|end| times(said(end, state)));
            });
            beliefs.push(terms.clone());
        }
        for factor in 0..graph.factor_ends.members() {
            let heard = &graph.factor_ends.other[graph.factor_ends.of(factor)];
            let scope = &graph.factors[factor].scope;
            let values: Vec<f64> = graph.table(factor).collect();
            total += log_of_products(&mut terms, values.len(), |cell, times| {
                times(values[cell]);
                let mut rest = cell;
                for (variable, end) in scope.iter().zip(heard).rev() {
                    let size = graph.sizes[*variable];
                    times(sent[from_variables[*end as usize] as usize + rest % size * L]);
                    rest /= size;
                }
            });
        }
        (beliefs, total)
    }
}

/// The logarithm of a sum of products, and their shares of it. `each` says what is multiplied.
#[inline(always)]
fn log_of_products(shares: &mut Vec<f64>, count: usize, each: impl Fn(usize, &mut dyn FnMut(f64))) -> f64 {
    shares.clear();
    for at in 0..count {
        let mut product = 1.0;
        each(at, &mut |value| product *= value);
        shares.push(product);
    }
    let sum: f64 = shares.iter().sum();
    if sum >= SMALL {
        shares.iter_mut().for_each(|share| *share /= sum);
        return sum.ln();
    }
    shares.clear();
    for at in 0..count {
        let mut log = 0.0;
        each(at, &mut |value| log += value.ln());
        shares.push(log);
    }
    let log = log_sum(shares.iter().copied());
    shares.iter_mut().for_each(|share| *share = (*share - log).exp());
    log
}

/// How wide registers are.
enum Width {
    #[cfg(target_arch = "x86_64")]
    Avx512,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    Plain,
}

fn width() -> Width {
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx2")
        {
            return Width::Avx512;
        }
        if is_x86_feature_detected!("avx2") {
            return Width::Avx2;
        }
    }
    Width::Plain
}

/// A round; returns by how much some number moved at most. Registers only are wider: no sum is made in another order, and the
/// bits are the same everywhere.
fn round<const L: usize>(factors: &mut Side<L>, variables: &mut Side<L>, damping: f64) -> f64 {
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,avx2")]
    fn avx512<const L: usize>(factors: &mut Side<L>, variables: &mut Side<L>, damping: f64) -> f64 {
        plain(factors, variables, damping)
    }
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    fn avx2<const L: usize>(factors: &mut Side<L>, variables: &mut Side<L>, damping: f64) -> f64 {
        plain(factors, variables, damping)
    }
    match width() {
        // SAFETY: `width` has found these features on this processor.
        #[cfg(target_arch = "x86_64")]
        #[expect(unsafe_code, reason = "calls a function compiled for features that were just detected")]
        Width::Avx512 => unsafe { avx512(factors, variables, damping) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        #[expect(unsafe_code, reason = "calls a function compiled for features that were just detected")]
        Width::Avx2 => unsafe { avx2(factors, variables, damping) },
        Width::Plain => plain(factors, variables, damping),
    }
}

#[inline(always)]
fn plain<const L: usize>(factors: &mut Side<L>, variables: &mut Side<L>, damping: f64) -> f64 {
    from_variables(factors, variables);
    from_factors(variables, factors, damping)
}

/// Every variable speaks.
#[inline(always)]
fn from_variables<const L: usize>(factors: &Side<L>, variables: &mut Side<L>) {
    let given = factors.messages.as_flattened();
    let Side { groups, tables, messages, sources } = variables;
    let mut inbox = Vec::new();
    for group in groups.iter().filter(|group| !group.shape.is_empty()) {
        let (degree, states) = (group.shape.len(), group.states());
        let size = states / degree;
        for tile in 0..group.tiles::<L>() {
            let prior = &tables[group.table + tile * size..][..size];
            let sources = &sources[group.source + tile * degree..][..degree];
            let sent = &mut messages[group.message + tile * states..][..states];
            gather(given, sources, &group.shape, &mut inbox);
            products(prior, &inbox, &group.shape, sent);
        }
    }
}

/// Every factor speaks. Returns by how much some number moved at most.
#[inline(always)]
fn from_factors<const L: usize>(variables: &Side<L>, factors: &mut Side<L>, damping: f64) -> f64 {
    let given = variables.messages.as_flattened();
    let Side { groups, tables, messages, sources } = factors;
    let (mut inbox, mut scratch) = (Vec::new(), Scratch::default());
    let mut change = [0.0_f64; L];
    for group in groups.iter() {
        let cells: usize = group.shape.iter().product();
        let (slots, states) = (group.shape.len(), group.states());
        for tile in 0..group.tiles::<L>() {
            let table = &tables[group.table + tile * cells..][..cells];
            let sources = &sources[group.source + tile * slots..][..slots];
            gather(given, sources, &group.shape, &mut inbox);
            let fresh = scratch.contracted(table, &inbox, &group.shape);
            let sent = &mut messages[group.message + tile * states..][..states];
            for (old, new) in sent.iter_mut().zip(fresh) {
                let mut next = *new;
                next.iter_mut().zip(&*old).for_each(|(next, old)| *next += damping * (old - *next));
                for ((change, next), old) in change.iter_mut().zip(&next).zip(&*old) {
                    *change = larger((next - old).abs(), *change);
                }
                *old = next;
            }
        }
    }
    change.into_iter().fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::{Lanes, plain, round};
    use crate::graph::Graph;
    use crate::{Factor, Model, Variable, VariableId};

    #[test]
    fn wide_registers_give_the_same_bits() {
        let mut stream = seeded::Family::new("graphical-models", "registers", seeded::test_seed()).stream(0);
        let variable = |at: usize| Variable {
            name: at.to_string(),
            states: (0..2 + at % 2).map(|state| state.to_string()).collect(),
        };
        let mut model = Model::new((0..60).map(variable).collect()).unwrap();
        for _ in 0..200 {
            let mut scope = stream.permutation(60);
            scope.truncate(2 + stream.below(2) as usize);
            let scope: Vec<VariableId> = scope.into_iter().map(|at| VariableId(at as usize)).collect();
            let cells = scope.iter().map(|id| model.states(*id)).product();
            let values = (0..cells).map(|_| stream.uniform() + 1e-3).collect();
            model.multiply(Factor { scope, values }).unwrap();
        }
        let reduced = model.reduced(&[]).unwrap();
        let graph = Graph::new(&reduced);
        let (mut one, mut other) =
            (Lanes::<16>::new(&graph, graph.shapes()), Lanes::<16>::new(&graph, graph.shapes()));
        for _ in 0..5 {
            let change = round(&mut one.factors, &mut one.variables, 0.25);
            assert_eq!(change, plain(&mut other.factors, &mut other.variables, 0.25));
            assert_eq!(one.factors.messages, other.factors.messages);
            assert_eq!(one.variables.messages, other.variables.messages);
        }
        let (mut narrow, mut change) = (Lanes::<1>::new(&graph, graph.shapes()), 0.0);
        for _ in 0..5 {
            change = round(&mut narrow.factors, &mut narrow.variables, 0.25);
        }
        assert!(change > 0.0);
        let beliefs = |found: (Vec<Vec<f64>>, f64)| found.0.concat();
        for (one, narrow) in beliefs(one.beliefs()).into_iter().zip(beliefs(narrow.beliefs())) {
            assert!((one - narrow).abs() < 1e-12, "{one} {narrow}");
        }
    }
}
