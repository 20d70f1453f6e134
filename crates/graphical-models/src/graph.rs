//! A model as loopy belief propagation sees it: factors of several variables, priors, and the ends of messages.
//!
//! Enter at [`Graph::new`].

use std::collections::BTreeMap;

use crate::inference::Reduced;
use crate::messages::LEAST;
use crate::nest::Table;

/// Factors of several variables; those of one are priors of it. Where a factor and a variable meet both have an end, numbered
/// on each side.
pub(crate) struct Graph<'r> {
    pub(crate) sizes: Vec<usize>,
    pub(crate) factors: Vec<&'r Table>,
    /// By what the numbers of each are divided, so that the largest is 1.
    most: Vec<f64>,
    priors: Vec<f64>,
    /// Where the prior of each variable begins.
    begins: Vec<usize>,
    pub(crate) factor_ends: Ends,
    pub(crate) variable_ends: Ends,
    /// The logarithm of what was divided out.
    pub(crate) log: f64,
}

/// The ends on one side.
pub(crate) struct Ends {
    /// Where those of each member begin, and the end of the last.
    pub(crate) begins: Vec<usize>,
    /// The end on the other side.
    pub(crate) other: Vec<u32>,
}

impl Ends {
    pub(crate) fn of(&self, member: usize) -> std::ops::Range<usize> {
        self.begins[member]..self.begins[member + 1]
    }

    pub(crate) fn members(&self) -> usize {
        self.begins.len() - 1
    }

    fn new(degrees: impl Iterator<Item = usize>) -> Ends {
        let mut begins = vec![0];
        degrees.for_each(|degree| begins.push(begins.last().unwrap_or(&0) + degree));
        let other = vec![0; begins.last().copied().unwrap_or(0)];
        Ends { begins, other }
    }
}

impl<'r> Graph<'r> {
    pub(crate) fn new(reduced: &'r Reduced) -> Graph<'r> {
        let sizes: Vec<usize> =
            reduced.variables.iter().map(|variable| reduced.states[*variable].len()).collect();
        let begins = Ends::new(sizes.iter().copied()).begins;
        let (unary, factors): (Vec<&Table>, Vec<&Table>) =
            reduced.tables.iter().partition(|table| table.scope.len() == 1);
        let most: Vec<f64> =
            factors.iter().map(|table| table.values.iter().copied().fold(0.0, f64::max)).collect();
        let mut log = most.iter().map(|most| most.ln()).sum::<f64>();
        // Priors of many tables are made in logarithms: their product may be too small for a number.
        let mut priors = vec![0.0; begins.last().copied().unwrap_or(0)];
        for table in unary {
            let own = &mut priors[begins[table.scope[0]]..];
            own.iter_mut().zip(&table.values).for_each(|(sum, value)| *sum += value.ln());
        }
        for own in begins.windows(2) {
            let own = &mut priors[own[0]..own[1]];
            let most = own.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            log += most;
            own.iter_mut().for_each(|value| *value = (*value - most).exp().max(LEAST));
        }
        let mut degrees = vec![0; sizes.len()];
        factors.iter().flat_map(|table| &table.scope).for_each(|variable| degrees[*variable] += 1);
        let mut factor_ends = Ends::new(factors.iter().map(|table| table.scope.len()));
        let mut variable_ends = Ends::new(degrees.into_iter());
        let mut next = variable_ends.begins.clone();
        for (end, variable) in factors.iter().flat_map(|table| &table.scope).enumerate() {
            let at = next[*variable];
            next[*variable] += 1;
            factor_ends.other[end] = at as u32;
            variable_ends.other[at] = end as u32;
        }
        Graph { sizes, factors, most, priors, begins, factor_ends, variable_ends, log }
    }

    /// The prior of a variable; the largest of its numbers is 1.
    pub(crate) fn prior(&self, variable: usize) -> &[f64] {
        &self.priors[self.begins[variable]..self.begins[variable + 1]]
    }

    /// The numbers of a factor; the largest is 1.
    pub(crate) fn table(&self, factor: usize) -> impl Iterator<Item = f64> {
        let most = self.most[factor];
        let scaled = move |value: &f64| if *value > 0.0 { (value / most).max(LEAST) } else { 0.0 };
        self.factors[factor].values.iter().map(scaled)
    }

    pub(crate) fn cells(&self) -> f64 {
        self.factors.iter().map(|table| table.values.len() as f64).sum()
    }

    pub(crate) fn messages(&self) -> f64 {
        let states = |variable: usize| (self.variable_ends.of(variable).len() * self.sizes[variable]) as f64;
        (0..self.sizes.len()).map(states).sum()
    }

    /// The factors by the sizes of their variables.
    pub(crate) fn shapes(&self) -> Shapes {
        let mut shapes = Shapes::default();
        for table in &self.factors {
            shapes.add(table.scope.iter().map(|variable| self.sizes[*variable]));
        }
        shapes
    }
}

/// Members by their shapes.
#[derive(Default)]
pub(crate) struct Shapes {
    pub(crate) of: BTreeMap<Vec<usize>, Vec<usize>>,
    shape: Vec<usize>,
    count: usize,
}

impl Shapes {
    /// One more member.
    pub(crate) fn add(&mut self, shape: impl Iterator<Item = usize>) {
        self.shape.clear();
        self.shape.extend(shape);
        match self.of.get_mut(self.shape.as_slice()) {
            Some(members) => members.push(self.count),
            None => {
                self.of.insert(self.shape.clone(), vec![self.count]);
            }
        }
        self.count += 1;
    }
}
