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
        Ok(Model { variables, factors: Vec::new() })
    }

    /// Multiplies the model by a factor.
    ///
    /// # Errors
    ///
    /// [`Failure::Model`] if its scope names a variable twice or one that the model has not, if there are not as many
    /// numbers as states together, or one of them is negative or none.
    pub fn multiply(&mut self, factor: Factor) -> Result<(), Failure> {
        let mut seen = vec![false; self.variables.len()];
        for id in &factor.scope {
            match seen.get_mut(id.0) {
                None => return Err(Failure::Model(format!("the model has no variable {}", id.0))),
                Some(true) => {
                    let message =
                        format!("`{}` stands twice in the scope of a factor", self.variable(*id).name);
                    return Err(Failure::Model(message));
                }
                Some(seen) => *seen = true,
            }
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

    /// How many states a variable has.
    pub(crate) fn states(&self, id: VariableId) -> usize {
        self.variables.get(id.0).map_or(0, |variable| variable.states.len())
    }

    /// The variable of this name.
    pub fn find(&self, name: &str) -> Option<VariableId> {
        self.variables.iter().position(|variable| variable.name == name).map(VariableId)
    }
}

/// A name that stands twice.
fn twice<'a>(names: &mut [&'a str]) -> Option<&'a str> {
    names.sort_unstable();
    names.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0])
}
