//! Which tuples of relations with probabilities are asked for.
//!
//! What reads their values may name constants: `Loss = -log(P[3, 7])` needs one tuple of `P`, `P(3, y)` those that begin
//! with 3. Only they are goals of circuits, as for a query that names them; where something reads the whole relation, or it
//! is itself asked for, all tuples are.

use std::collections::{BTreeMap, BTreeSet};

use super::{is_own, through, visit_values};
use crate::program::{Argument, Combine, IndexFn, Program, TensorId};
use crate::value::Const;

/// Relations that are asked for, and of each the tuples.
pub type Asked = BTreeMap<TensorId, Wanted>;

/// Tuples by constants: the places that have some, and those that stand there. With no such places, all tuples.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wanted(BTreeMap<Vec<usize>, BTreeSet<Vec<Const>>>);

impl Wanted {
    /// All tuples.
    pub(super) fn all() -> Wanted {
        Wanted(BTreeMap::from([(Vec::new(), BTreeSet::from([Vec::new()]))]))
    }

    /// Adds the tuples with these constants; `None` is any value.
    fn add<'a>(&mut self, places: impl Iterator<Item = Option<&'a Const>>) {
        let named = places.enumerate().filter_map(|(place, constant)| Some((place, *constant?)));
        let (places, constants) = named.unzip();
        self.0.entry(places).or_default().insert(constants);
        if self.0.contains_key(&Vec::new()) {
            *self = Wanted::all();
        }
    }

    /// The places with constants, and the constants.
    pub(super) fn patterns(&self) -> impl Iterator<Item = (&[usize], &BTreeSet<Vec<Const>>)> {
        self.0.iter().map(|(places, constants)| (places.as_slice(), constants))
    }

    /// Whether a tuple is asked for.
    pub(super) fn has(&self, tuple: &[Const]) -> bool {
        self.0.iter().any(|(places, constants)| {
            let own: Option<Vec<Const>> = places.iter().map(|place| tuple.get(*place).copied()).collect();
            own.is_some_and(|own| constants.contains(&own))
        })
    }
}

/// The constant that a function is.
fn constant(function: Option<&IndexFn>) -> Option<&Const> {
    match function {
        Some(IndexFn::Const(constant)) => Some(constant),
        _ => None,
    }
}

/// What of this kind goals need the values of.
pub fn asked(program: &Program, goals: &[TensorId]) -> Asked {
    if !program.tensors.iter().any(|tensor| matches!(tensor.combine, Combine::Proofs | Combine::Slopes)) {
        return Asked::new();
    }
    let needed = program.needs(goals);
    let mut asked = Asked::new();
    for equation in program.equations.iter().filter(|equation| needed.contains(&equation.tensor)) {
        if program.tensor(equation.tensor).combine == Combine::Slopes {
            if let Some((_, relation, adjoint)) = through(program, equation.tensor) {
                owing(program, adjoint, asked.entry(relation).or_default());
            }
            continue;
        }
        visit_values(program, equation, &mut |read| {
            if is_own(program, read.tensor) {
                let places = read.arguments.iter().map(|argument| constant(Argument::function(argument)));
                asked.entry(read.tensor).or_default().add(places);
            }
        });
    }
    asked.extend(goals.iter().filter(|id| is_own(program, **id)).map(|id| (*id, Wanted::all())));
    asked
}

/// Adds the tuples that an adjoint may have.
fn owing(program: &Program, adjoint: TensorId, wanted: &mut Wanted) {
    if !program.tensor(adjoint).given.is_empty() {
        *wanted = Wanted::all();
    }
    for equation in program.equations.iter().filter(|equation| equation.tensor == adjoint) {
        wanted.add(equation.head.iter().map(|function| constant(Some(function))));
    }
}
