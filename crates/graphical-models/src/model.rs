//! A model: variables with finitely many states, and factors over some of them.

use crate::Failure;

/// A variable of a [`Model`], by its position.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VariableId(pub usize);

/// A variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variable {
    /// Its name.
    pub name: String,
    /// The names of its states.
    pub states: Vec<String>,
}

/// A non-negative function of some variables.
#[derive(Debug, Clone, PartialEq)]
pub struct Factor {
    /// The variables, each once.
    pub scope: Vec<VariableId>,
    /// One number for each of their states together; the last variable of the scope moves fastest.
    pub values: Vec<f64>,
}

/// A product of factors over variables: a Bayesian network, if they are conditional probabilities, or a Markov random field.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Model {
    variables: Vec<Variable>,
    factors: Vec<Factor>,
    /// For each variable the factor that is its distribution given others.
    definitions: Vec<Option<usize>>,
}

/// A row of conditional probabilities may differ from 1 by so much: published tables are rounded.
const ROUNDED: f64 = 1e-3;

/// Whether a row of probabilities sums to one; if not, to what.
pub(crate) fn sums_to_one(row: &[f64]) -> Result<(), f64> {
    let sum: f64 = row.iter().sum();
    if (sum - 1.0).abs() <= ROUNDED { Ok(()) } else { Err(sum) }
}

impl Model {
    /// A model of these variables without factors.
    ///
    /// # Errors
    ///
    /// [`Failure::Model`] if a variable has no state, or two variables or two states of one have the same name.
    pub fn new(variables: Vec<Variable>) -> Result<Model, Failure> {
        let mut names: Vec<&str> = variables.iter().map(|variable| variable.name.as_str()).collect();
        if let Some(name) = twice(&mut names) {
            return Err(Failure::Model(format!("two variables are called `{name}`")));
        }
        for variable in &variables {
            if variable.states.is_empty() {
                return Err(Failure::Model(format!("`{}` has no state", variable.name)));
            }
            let mut states: Vec<&str> = variable.states.iter().map(String::as_str).collect();
            if let Some(state) = twice(&mut states) {
                return Err(Failure::Model(format!("`{}` has two states `{state}`", variable.name)));
            }
        }
        let definitions = vec![None; variables.len()];
        Ok(Model { variables, factors: Vec::new(), definitions })
    }

    /// Multiplies the model by a factor.
    ///
    /// # Errors
    ///
    /// [`Failure::Model`] if its scope names a variable twice or one that the model has not, if there are not as many
    /// numbers as states together, or one of them is negative or none.
    pub fn multiply(&mut self, factor: Factor) -> Result<(), Failure> {
        let mut scope = factor.scope.clone();
        scope.sort_unstable();
        if let Some(id) = scope.last().filter(|id| id.0 >= self.variables.len()) {
            return Err(Failure::Model(format!("the model has no variable {}", id.0)));
        }
        if let Some(id) = scope.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0]) {
            let message = format!("`{}` stands twice in the scope of a factor", self.variable(id).name);
            return Err(Failure::Model(message));
        }
        let mut sizes = factor.scope.iter().map(|id| self.states(*id));
        let cells = sizes.try_fold(1_usize, usize::checked_mul);
        if cells != Some(factor.values.len()) {
            let wanted = cells.map_or("more than any machine holds".to_owned(), |cells| cells.to_string());
            let message =
                format!("a factor has {} numbers, and its scope asks for {wanted}", factor.values.len());
            return Err(Failure::Model(message));
        }
        if let Some(bad) = factor.values.iter().find(|value| !value.is_finite() || **value < 0.0) {
            return Err(Failure::Model(format!("a factor has the number {bad}")));
        }
        self.factors.push(factor);
        Ok(())
    }

    /// Multiplies the model by the distribution of the last variable of a scope, given those before it. A model in which every
    /// variable is defined so, and none by itself around a circle, is a Bayesian network.
    ///
    /// # Errors
    ///
    /// [`Failure::Model`] as [`Model::multiply`], if the scope is empty, if the variable is defined already, or if a row does
    /// not sum to one, to 1e-3.
    pub fn define(&mut self, table: Factor) -> Result<(), Failure> {
        let Some(own) = table.scope.last().copied() else {
            return Err(Failure::Model("a distribution of no variable".to_owned()));
        };
        if self.definition(own).is_some() {
            return Err(Failure::Model(format!("`{}` has a second distribution", self.variable(own).name)));
        }
        let width = self.states(own).max(1);
        if let Some(Err(sum)) = table.values.chunks(width).map(sums_to_one).find(Result::is_err) {
            return Err(Failure::Model(format!("a row of a distribution sums to {sum}")));
        }
        self.multiply(table)?;
        self.definitions[own.0] = Some(self.factors.len() - 1);
        Ok(())
    }

    /// The distribution of a variable given others, if it was [defined](Model::define): the variable stands last in its scope.
    pub fn definition(&self, id: VariableId) -> Option<&Factor> {
        self.factors.get((*self.definitions.get(id.0)?)?)
    }

    /// The variables, those before the others that are given in their distributions; or variables each of which is given in
    /// the distribution of the one behind it, and the last in that of the first.
    pub(crate) fn parents_first(&self) -> Result<Vec<usize>, Vec<VariableId>> {
        let parents = |at: usize| {
            let given = self.definition(VariableId(at)).map_or(&[][..], |table| table.scope.as_slice());
            given.iter().map(|id| id.0).filter(move |parent| *parent != at)
        };
        let count = self.variables.len();
        let (mut children, mut missing) = (vec![Vec::new(); count], vec![0; count]);
        for (at, missing) in missing.iter_mut().enumerate() {
            for parent in parents(at) {
                children[parent].push(at);
                *missing += 1;
            }
        }
        let mut order: Vec<usize> = (0..count).filter(|at| missing[*at] == 0).collect();
        let mut next = 0;
        while let Some(at) = order.get(next).copied() {
            next += 1;
            for child in &children[at] {
                missing[*child] -= 1;
                if missing[*child] == 0 {
                    order.push(*child);
                }
            }
        }
        let Some(first) = missing.iter().position(|missing| *missing > 0) else { return Ok(order) };
        // Whoever is left has a parent who is left: up and up it comes round.
        let (mut path, mut met) = (vec![first], vec![false; count]);
        met[first] = true;
        while let Some(parent) = path.last().and_then(|at| parents(*at).find(|at| missing[*at] > 0)) {
            if std::mem::replace(&mut met[parent], true) {
                path.drain(..path.iter().position(|at| *at == parent).unwrap_or(0));
                break;
            }
            path.push(parent);
        }
        Err(path.into_iter().rev().map(VariableId).collect())
    }

    /// What is said of distributions that go in a circle.
    pub(crate) fn circle(&self, circle: &[VariableId]) -> String {
        let end = circle.last().into_iter().chain(circle);
        let names: Vec<String> = end.map(|id| format!("`{}`", self.variable(*id).name)).collect();
        let shown = match names.as_slice() {
            [first @ .., last] if names.len() > 2 * SHOWN => {
                format!("{} -> … -> {last}", first[..SHOWN].join(" -> "))
            }
            names => names.join(" -> "),
        };
        format!("the distributions go in a circle: {shown}")
    }

    /// All variables, in order.
    pub fn variables(&self) -> &[Variable] {
        &self.variables
    }

    /// All factors, in order.
    pub fn factors(&self) -> &[Factor] {
        &self.factors
    }

    /// A variable.
    ///
    /// # Panics
    ///
    /// If the model has none of this number.
    pub fn variable(&self, id: VariableId) -> &Variable {
        &self.variables[id.0]
    }

    /// For each variable the state in which it is observed, if it is.
    pub(crate) fn observed(&self, evidence: &[(VariableId, usize)]) -> Result<Vec<Option<usize>>, Failure> {
        let mut observed = vec![None; self.variables.len()];
        for (id, state) in evidence {
            let Some(seen) = observed.get_mut(id.0) else {
                return Err(Failure::Evidence(format!("the model has no variable {}", id.0)));
            };
            let variable = self.variable(*id);
            if *state >= variable.states.len() {
                return Err(Failure::Evidence(format!("`{}` has no state {state}", variable.name)));
            }
            if seen.replace(*state).is_some() {
                return Err(Failure::Evidence(format!("`{}` is observed twice", variable.name)));
            }
        }
        Ok(observed)
    }

    /// How many states a variable has.
    pub(crate) fn states(&self, id: VariableId) -> usize {
        self.variables.get(id.0).map_or(0, |variable| variable.states.len())
    }

    /// The variable of this name.
    pub fn find(&self, name: &str) -> Option<VariableId> {
        self.variables.iter().position(|variable| variable.name == name).map(VariableId)
    }
}

/// So many variables of a long circle are named.
const SHOWN: usize = 6;

/// A name that stands twice.
fn twice<'a>(names: &mut [&'a str]) -> Option<&'a str> {
    names.sort_unstable();
    names.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0])
}
