//! Exact inference: evidence first, then elimination with messages up and down a tree of cliques.
//!
//! Enter at [`Model::marginals`]. Lauritzen and Spiegelhalter (1988); Koller and Friedman, chapter 10.

use std::collections::BTreeMap;

use crate::nest::{BLOCK, Folding, Table, are_near, folds, held};
use crate::order::{Order, Trimmed};
use crate::{Failure, Model, VariableId};

/// What inference may take.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// The cells of all cliques together, which are never stored: time is about two operations for each.
    pub cells: f64,
    /// The bytes of all tables that are held at once: those of the model as the evidence leaves it, and messages.
    pub bytes: f64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { cells: 1e10, bytes: 16e9 }
    }
}

/// The distribution of every variable, given evidence.
#[derive(Debug, Clone, PartialEq)]
pub struct Marginals {
    /// The logarithm of the sum of the product of all factors where the evidence holds: of its probability, if the model
    /// is a Bayesian network.
    pub log_evidence: f64,
    /// For each variable the probabilities of its states.
    pub of: Vec<Vec<f64>>,
}

/// Variables of a model that evidence and zeros leave, and tables over them.
pub(crate) struct Reduced {
    /// For each variable of the model the states that are possible.
    pub(crate) states: Vec<Vec<usize>>,
    /// The variables that have more than one.
    pub(crate) variables: Vec<usize>,
    pub(crate) tables: Vec<Table>,
    /// The logarithm of what is left of factors without such variables.
    pub(crate) log: f64,
}

/// What is to be done for some evidence.
pub(crate) struct Planned {
    pub(crate) reduced: Reduced,
    /// For each variable of the model its number among those that are left.
    pub(crate) position: Vec<usize>,
    /// How many states those have.
    pub(crate) sizes: Vec<usize>,
    pub(crate) cliques: Vec<Clique>,
}

/// A clique of the tree.
#[derive(Default)]
pub(crate) struct Clique {
    pub(crate) variables: Vec<usize>,
    /// Those that are summed here: no clique further up has them.
    pub(crate) own: Vec<usize>,
    /// The tables of the model that stand here.
    tables: Vec<usize>,
    pub(crate) children: Vec<usize>,
    pub(crate) parent: Option<usize>,
}

impl Model {
    /// The distribution of every variable, where some are in a given state.
    ///
    /// # Errors
    ///
    /// [`Failure::Evidence`] for a variable or state that the model has not, a variable that is observed twice, or evidence
    /// of probability zero; [`Failure::TooLarge`] and [`Failure::Memory`] where the cheapest order of elimination that was
    /// found takes more than the limits allow.
    pub fn marginals(&self, evidence: &[(VariableId, usize)], limits: &Limits) -> Result<Marginals, Failure> {
        let Planned { reduced, position, sizes, cliques } = self.planned(evidence, &[], limits)?;
        let (found, log) = calibrated(&sizes, &cliques, &reduced.tables)?;
        let of = reduced.states.iter().enumerate().map(|(variable, states)| {
            let mut all = vec![0.0; self.states(VariableId(variable))];
            match found.get(position[variable]) {
                Some(own) => states.iter().zip(own).for_each(|(state, value)| all[*state] = *value),
                None => states.iter().for_each(|state| all[*state] = 1.0),
            }
            all
        });
        Ok(Marginals { log_evidence: reduced.log + log, of: of.collect() })
    }

    /// The most probable states of all variables together, where some are in a given state, and the logarithm of the
    /// product of all factors there (Viterbi's algorithm, if the model is a chain). Of several one is taken.
    ///
    /// # Errors
    ///
    /// As [`Model::marginals`].
    pub fn most_probable(
        &self,
        evidence: &[(VariableId, usize)],
        limits: &Limits,
    ) -> Result<(Vec<usize>, f64), Failure> {
        let Planned { reduced, position, sizes, cliques } = self.planned(evidence, &[], limits)?;
        let (found, log) = most_probable(&sizes, &cliques, &reduced.tables)?;
        let state = |(variable, states): (usize, &Vec<usize>)| match found.get(position[variable]) {
            Some(at) => states[*at],
            None => states[0],
        };
        Ok((reduced.states.iter().enumerate().map(state).collect(), reduced.log + log))
    }

    /// A tree of cliques for some evidence; if variables are to be `together`, one of the cliques has all of them that have
    /// more than one state left.
    pub(crate) fn planned(
        &self,
        evidence: &[(VariableId, usize)],
        together: &[VariableId],
        limits: &Limits,
    ) -> Result<Planned, Failure> {
        let reduced = self.reduced(evidence)?;
        let mut position = vec![usize::MAX; self.variables().len()];
        reduced.variables.iter().enumerate().for_each(|(at, variable)| position[*variable] = at);
        let sizes: Vec<usize> =
            reduced.variables.iter().map(|variable| reduced.states[*variable].len()).collect();
        let mut scopes: Vec<Vec<usize>> = reduced.tables.iter().map(|table| table.scope.clone()).collect();
        let own = together.iter().map(|id| position[id.0]).filter(|at| *at != usize::MAX);
        let asked: Vec<usize> = own.collect();
        scopes.push(asked.clone());
        let trimmed = Trimmed::of(&sizes, &scopes);
        // Who is whose neighbour is known by a bit for each pair of those that are left.
        let pairs = (trimmed.core.len() as f64) * (trimmed.core.len() as f64) / 8.0;
        within(3.0 * pairs, limits)?;
        let order = trimmed.best(&sizes, limits.cells);
        if order.cells > limits.cells {
            return Err(Failure::TooLarge { cells: order.cells, limit: limits.cells });
        }
        scopes.pop();
        let cliques = tree(&order, &scopes);
        fits(&sizes, &cliques, &reduced.tables, &asked, limits)?;
        Ok(Planned { reduced, position, sizes, cliques })
    }

    /// The model where evidence holds, without states that are impossible then.
    pub(crate) fn reduced(&self, evidence: &[(VariableId, usize)]) -> Result<Reduced, Failure> {
        let observed = self.observed(evidence)?;
        let states = self.variables().iter().zip(observed).map(|(variable, observed)| match observed {
            Some(state) => vec![state],
            None => (0..variable.states.len()).collect(),
        });
        let mut states: Vec<Vec<usize>> = states.collect();
        // A state that some factor never admits is impossible, and may make others so.
        let mut open: Vec<usize> =
            (0..self.factors().len()).filter(|at| self.factors()[*at].values.contains(&0.0)).collect();
        let mut near: Vec<Vec<usize>> = vec![Vec::new(); states.len()];
        for at in &open {
            self.factors()[*at].scope.iter().for_each(|id| near[id.0].push(*at));
        }
        let mut waits = vec![false; self.factors().len()];
        open.iter().for_each(|at| waits[*at] = true);
        while let Some(at) = open.pop() {
            waits[at] = false;
            let factor = &self.factors()[at];
            let mut alive: Vec<Vec<bool>> =
                factor.scope.iter().map(|id| vec![false; self.states(*id)]).collect();
            self.each_cell(at, &states, &mut |tuple, value| {
                if value > 0.0 {
                    alive.iter_mut().zip(tuple).for_each(|(alive, state)| alive[*state] = true);
                }
            });
            for (id, alive) in factor.scope.iter().zip(alive) {
                let before = states[id.0].len();
                states[id.0].retain(|state| alive[*state]);
                if states[id.0].is_empty() {
                    return Err(impossible(evidence.is_empty()));
                }
                if states[id.0].len() < before {
                    for other in &near[id.0] {
                        if *other != at && !std::mem::replace(&mut waits[*other], true) {
                            open.push(*other);
                        }
                    }
                }
            }
        }
        let variables: Vec<usize> =
            (0..states.len()).filter(|variable| states[*variable].len() > 1).collect();
        let mut position = vec![usize::MAX; states.len()];
        variables.iter().enumerate().for_each(|(at, variable)| position[*variable] = at);
        let (mut tables, mut log) = (Vec::new(), 0.0);
        for (at, factor) in self.factors().iter().enumerate() {
            let mut values = Vec::new();
            match factor.scope.iter().all(|id| states[id.0].len() == self.states(*id)) {
                true => values.clone_from(&factor.values),
                false => self.each_cell(at, &states, &mut |_, value| values.push(value)),
            }
            let scope = factor.scope.iter().map(|id| position[id.0]).filter(|at| *at != usize::MAX);
            let scope: Vec<usize> = scope.collect();
            match (scope.is_empty(), values.first()) {
                (true, Some(value)) => log += value.ln(),
                _ => {
                    log += moderate(&mut values);
                    tables.push(Table::new(scope, values));
                }
            }
        }
        let (tables, more) = gathered(tables);
        log += more;
        if log == f64::NEG_INFINITY {
            return Err(impossible(evidence.is_empty()));
        }
        Ok(Reduced { states, variables, tables, log })
    }

    /// Visits the cells of a factor whose states are among these.
    fn each_cell(&self, factor: usize, states: &[Vec<usize>], visit: &mut dyn FnMut(&[usize], f64)) {
        let factor = &self.factors()[factor];
        let lists: Vec<&[usize]> = factor.scope.iter().map(|id| states[id.0].as_slice()).collect();
        let sizes: Vec<usize> = factor.scope.iter().map(|id| self.states(*id)).collect();
        let mut at = vec![0; lists.len()];
        let mut tuple: Vec<usize> = lists.iter().map(|list| list[0]).collect();
        loop {
            let place = tuple.iter().zip(&sizes).fold(0, |place, (state, size)| place * size + state);
            visit(&tuple, factor.values[place]);
            let Some(turn) = (0..lists.len()).rev().find(|turn| at[*turn] + 1 < lists[*turn].len()) else {
                return;
            };
            at[turn] += 1;
            tuple[turn] = lists[turn][at[turn]];
            for rest in turn + 1..lists.len() {
                at[rest] = 0;
                tuple[rest] = lists[rest][0];
            }
        }
    }
}

/// Numbers in a table between these, in powers of two, are multiplied as they are.
const MODERATE: i32 = 32;
/// What is smaller, in powers of two, has fewer digits.
const LEAST: f64 = -1000.0;
/// Products of tables over the same variables may have so many powers of two, on either side, before they are made by logarithms.
const TOGETHER: f64 = 512.0;

/// Divides a table whose largest number is far from 1 by a power of two, which loses nothing; the logarithm of that.
fn moderate(values: &mut [f64]) -> f64 {
    let power = values.iter().fold(0.0, |most: f64, value| most.max(*value)).log2().floor();
    let least =
        values.iter().filter(|value| **value > 0.0).fold(f64::INFINITY, |least, value| least.min(*value));
    // Numbers too far from each other are left to logarithms.
    let lost = least.log2() - power < LEAST;
    if !power.is_finite() || power.abs() <= f64::from(MODERATE) || lost {
        return 0.0;
    }
    // In two steps: 2⁻¹⁰⁷⁴ has no inverse.
    let half = (power / 2.0).floor();
    let (first, second) = ((-half).exp2(), (half - power).exp2());
    values.iter_mut().for_each(|value| *value = *value * first * second);
    power * std::f64::consts::LN_2
}

/// How many powers of two the numbers of a table are from 1 at most, those that are 0 aside.
fn span(values: &[f64]) -> f64 {
    let logs = values.iter().filter(|value| **value > 0.0).map(|value| value.log2().abs());
    logs.fold(0.0, f64::max)
}

/// Tables over the same variables, of which there may be thousands where much is observed, as one, if their product could
/// be beyond what numbers hold; and the logarithm of what it was divided by.
fn gathered(tables: Vec<Table>) -> (Vec<Table>, f64) {
    let mut groups: BTreeMap<&[usize], Vec<usize>> = BTreeMap::new();
    for (at, table) in tables.iter().enumerate() {
        groups.entry(&table.scope).or_default().push(at);
    }
    let large = |group: &Vec<usize>| {
        group.len() > 1 && group.iter().map(|at| span(&tables[*at].values)).sum::<f64>() > TOGETHER
    };
    let groups: Vec<Vec<usize>> = groups.into_values().filter(large).collect();
    let (mut log, mut gone) = (0.0, vec![false; tables.len()]);
    let mut tables = tables;
    for group in groups {
        let Some((first, others)) = group.split_first() else { continue };
        let sum = |cell: usize| group.iter().map(|at| tables[*at].values[cell].ln()).sum::<f64>();
        let logs: Vec<f64> = (0..tables[*first].values.len()).map(sum).collect();
        let scope = std::mem::take(&mut tables[*first].scope);
        let mut product = Table { scope, values: logs, logs: true };
        log += product.normalise();
        tables[*first] = product;
        others.iter().for_each(|at| gone[*at] = true);
    }
    let mut at = 0..;
    tables.retain(|_| at.next().is_none_or(|at: usize| !gone[at]));
    (tables, log)
}

/// Refuses what needs more memory than is allowed.
pub(crate) fn within(bytes: f64, limits: &Limits) -> Result<(), Failure> {
    match bytes <= limits.bytes {
        true => Ok(()),
        false => Err(Failure::Memory { bytes, limit: limits.bytes }),
    }
}

/// Refuses what holds too much at once: the tables, the messages up and down, and in the clique at hand what its loops lay out
/// anew.
fn fits(
    sizes: &[usize],
    cliques: &[Clique],
    tables: &[Table],
    asked: &[usize],
    limits: &Limits,
) -> Result<(), Failure> {
    let cells = |scope: &[usize]| -> f64 { scope.iter().map(|variable| sizes[*variable] as f64).product() };
    let scopes: Vec<Vec<usize>> = cliques.iter().map(above).collect();
    let mut kept = 2.0 * scopes.iter().map(|scope| cells(scope)).sum::<f64>();
    kept += tables.iter().map(|table| table.values.len() as f64).sum::<f64>();
    // No table is laid out in more numbers than a block has for each of its own.
    if within(8.0 * (kept + 4.0 * BLOCK as f64 * (kept + cells(asked))), limits).is_ok() {
        return Ok(());
    }
    let messages: Vec<Table> = scopes.into_iter().map(|scope| Table::new(scope, Vec::new())).collect();
    let mut most = 0.0_f64;
    for (clique, message) in cliques.iter().zip(&messages) {
        let mut inputs = inputs(clique, tables, &messages);
        let up = held(sizes, &clique.variables, &inputs, std::slice::from_ref(&message.scope));
        inputs.push(message);
        let mut results: Vec<Vec<usize>> =
            clique.children.iter().map(|child| messages[*child].scope.clone()).collect();
        results.extend(clique.own.iter().map(|variable| vec![*variable]));
        results.push(asked.iter().copied().filter(|at| clique.variables.contains(at)).collect());
        most = most.max(up).max(held(sizes, &clique.variables, &inputs, &results));
    }
    within(8.0 * (kept + most), limits)
}

/// The cliques of an order, children before parents. One whose variables are those of a child without what that one sums is
/// part of the child.
fn tree(order: &Order, scopes: &[Vec<usize>]) -> Vec<Clique> {
    let mut rank = vec![0; order.variables.len()];
    order.variables.iter().enumerate().for_each(|(at, variable)| rank[*variable] = at);
    // The clique in which a variable is summed, once there is one.
    let mut clique_of = vec![usize::MAX; order.variables.len()];
    // The cliques whose message is multiplied in where a variable is summed.
    let mut below: Vec<Vec<usize>> = vec![Vec::new(); order.variables.len()];
    let mut cliques: Vec<Clique> = Vec::new();
    for variable in &order.variables {
        let near = &order.neighbours[*variable];
        let fits = |at: &usize| cliques[*at].variables.len() - cliques[*at].own.len() == near.len() + 1;
        let at = match below[*variable].iter().copied().filter(fits).min() {
            Some(at) => at,
            None => {
                let variables = near.iter().copied().chain([*variable]).collect();
                cliques.push(Clique { variables, ..Clique::default() });
                cliques.len() - 1
            }
        };
        cliques[at].own.push(*variable);
        // For now the variable in whose clique the message is multiplied in.
        let parent = near.iter().copied().min_by_key(|other| rank[*other]);
        cliques[at].parent = parent;
        if let Some(parent) = parent {
            below[parent].push(at);
        }
        clique_of[*variable] = at;
    }
    for at in 0..cliques.len() {
        cliques[at].parent = cliques[at].parent.map(|variable| clique_of[variable]);
        if let Some(parent) = cliques[at].parent {
            cliques[parent].children.push(at);
        }
    }
    for (at, scope) in scopes.iter().enumerate() {
        if let Some(first) = scope.iter().min_by_key(|variable| rank[**variable]) {
            cliques[clique_of[*first]].tables.push(at);
        }
    }
    cliques
}

/// Those variables of a clique that are summed further up.
fn above(clique: &Clique) -> Vec<usize> {
    clique.variables.iter().copied().filter(|variable| !clique.own.contains(variable)).collect()
}

/// The messages of all cliques to their parents, children first, and the logarithm of all together.
pub(crate) struct Upward {
    order: Vec<usize>,
    pub(crate) messages: Vec<Table>,
    pub(crate) log: f64,
}

pub(crate) fn upward(
    folding: Folding,
    sizes: &[usize],
    cliques: &[Clique],
    tables: &[Table],
) -> Result<Upward, Failure> {
    // A clique may have taken in one of a later variable: children come before parents along the tree only.
    let mut order: Vec<usize> = Vec::new();
    let mut open: Vec<usize> = (0..cliques.len()).filter(|at| cliques[*at].parent.is_none()).collect();
    while let Some(at) = open.pop() {
        order.push(at);
        open.extend(&cliques[at].children);
    }
    order.reverse();
    let mut messages: Vec<Table> = vec![Table::default(); cliques.len()];
    let mut log = 0.0;
    for at in &order {
        let clique = &cliques[*at];
        let inputs = inputs(clique, tables, &messages);
        let mut message = folds(folding, sizes, &clique.variables, &inputs, &[above(clique)]).swap_remove(0);
        let most = message.normalise();
        if most == f64::NEG_INFINITY {
            return Err(impossible(false));
        }
        if !most.is_finite() {
            return Err(beyond());
        }
        log += most;
        messages[*at] = message;
    }
    Ok(Upward { order, messages, log })
}

/// What is multiplied in a clique.
pub(crate) fn inputs<'t>(clique: &Clique, tables: &'t [Table], messages: &'t [Table]) -> Vec<&'t Table> {
    let own = clique.tables.iter().map(|table| &tables[*table]);
    own.chain(clique.children.iter().map(|child| &messages[*child])).collect()
}

/// The most probable states of all variables, and the logarithm of the product there.
fn most_probable(
    sizes: &[usize],
    cliques: &[Clique],
    tables: &[Table],
) -> Result<(Vec<usize>, f64), Failure> {
    let up = upward(Folding::Max, sizes, cliques, tables)?;
    let mut states = vec![0; sizes.len()];
    for at in up.order.iter().rev() {
        let clique = &cliques[*at];
        let inputs = inputs(clique, tables, &up.messages);
        let near = are_near(&inputs);
        let product = |states: &[usize]| -> f64 {
            let entry = |table: &&Table| {
                let place = table
                    .scope
                    .iter()
                    .fold(0, |place, variable| place * sizes[*variable] + states[*variable]);
                if near { table.values[place] } else { table.log(place) }
            };
            let entries = inputs.iter().map(entry);
            if near { entries.product() } else { entries.sum() }
        };
        let cells: usize = clique.own.iter().map(|variable| sizes[*variable]).product();
        let mut best: Option<(f64, Vec<usize>)> = None;
        for mut cell in 0..cells {
            for variable in clique.own.iter().rev() {
                states[*variable] = cell % sizes[*variable];
                cell /= sizes[*variable];
            }
            let value = product(&states);
            if best.as_ref().is_none_or(|(most, _)| value > *most) {
                best = Some((value, clique.own.iter().map(|variable| states[*variable]).collect()));
            }
        }
        if let Some((_, own)) = best {
            clique.own.iter().zip(own).for_each(|(variable, state)| states[*variable] = state);
        }
    }
    Ok((states, up.log))
}

/// The distribution of each variable, and the logarithm of the sum of everything.
fn calibrated(
    sizes: &[usize],
    cliques: &[Clique],
    tables: &[Table],
) -> Result<(Vec<Vec<f64>>, f64), Failure> {
    let Upward { order, messages: up, log } = upward(Folding::Sum, sizes, cliques, tables)?;
    let mut down: Vec<Table> = vec![Table::default(); cliques.len()];
    let mut found: Vec<Vec<f64>> = vec![Vec::new(); sizes.len()];
    for at in order.iter().rev() {
        let clique = &cliques[*at];
        let mut inputs = inputs(clique, tables, &up);
        if clique.parent.is_some() {
            inputs.push(&down[*at]);
        }
        let mut scopes: Vec<Vec<usize>> =
            clique.children.iter().map(|child| up[*child].scope.clone()).collect();
        scopes.extend(clique.own.iter().map(|variable| vec![*variable]));
        let mut beliefs = folds(Folding::Sum, sizes, &clique.variables, &inputs, &scopes).into_iter();
        for child in &clique.children {
            let Some(mut belief) = beliefs.next() else { break };
            without(&mut belief, &up[*child]);
            down[*child] = belief;
        }
        for (variable, belief) in clique.own.iter().zip(beliefs) {
            found[*variable] = distribution(belief)?;
        }
    }
    Ok((found, log))
}

/// What a clique believes, as numbers that sum to one.
pub(crate) fn distribution(mut belief: Table) -> Result<Vec<f64>, Failure> {
    if belief.logs {
        belief.normalise();
        belief.be_numbers();
    }
    let sum: f64 = belief.values.iter().sum();
    if sum <= 0.0 || !sum.is_finite() {
        return Err(beyond());
    }
    Ok(belief.values.iter().map(|value| value / sum).collect())
}

/// What is refused where the product of all factors is zero everywhere.
fn impossible(without_evidence: bool) -> Failure {
    let message = match without_evidence {
        true => "the product of the tables is zero everywhere",
        false => "the evidence has probability zero",
    };
    Failure::Evidence(message.to_owned())
}

/// What is refused where products have left the numbers.
pub(crate) fn beyond() -> Failure {
    Failure::Model("the products of the tables are beyond what numbers of 64 bits hold".to_owned())
}

/// What a clique believes of the variables that it shares with a child, without what the child sent; the largest was 1.
pub(crate) fn without(belief: &mut Table, sent: &Table) {
    if belief.logs || sent.logs {
        let logs = (0..belief.values.len()).map(|at| match sent.log(at) {
            f64::NEG_INFINITY => f64::NEG_INFINITY,
            sent => belief.log(at) - sent,
        });
        let values = logs.collect();
        let scope = std::mem::take(&mut belief.scope);
        *belief = Table { scope, values, logs: true };
        belief.normalise();
        return;
    }
    let most = belief.values.iter().fold(0.0, |most: f64, value| most.max(*value));
    for (value, sent) in belief.values.iter_mut().zip(&sent.values) {
        // What the child cannot be, nobody needs.
        *value = if *sent > 0.0 { *value / most / sent } else { 0.0 };
    }
}
