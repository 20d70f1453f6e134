//! The tuples of relations of numbers, whatever the numbers: `T(x, y) <- E(x, y)` for `D(x, y) += W E(x, y)`.
//!
//! Enter at [`Tuples::guards`]. Which tuples of a relation of blocks there are may follow from data where their numbers do not.

use std::collections::BTreeMap;

use super::{add_component, rule, tensor_of};
use crate::present::{self, Covered};
use crate::program::{
    Class, Combine, Component, Guard, Kind, Otherwise, Program, Read, Role, Style, Tensor, TensorId,
};
use crate::rename::Renaming;

/// The relations that list the tuples of others.
#[derive(Default, Clone)]
pub(super) struct Tuples {
    known: BTreeMap<TensorId, Option<TensorId>>,
    covered: Covered,
}

impl Tuples {
    /// Guards that hold where these do and ask for no number of a relation that equations make, as far as that can be said.
    pub(super) fn guards(&mut self, program: &mut Program, guards: &[Guard]) -> Vec<Guard> {
        let ask = |guard: &Guard, program: &mut Program, tuples: &mut Tuples| match guard {
            Guard::Read(read) if read.otherwise == Otherwise::Absent => {
                let tensor = tuples.of(program, read.tensor)?;
                Some(Guard::Read(Read::new(tensor, read.arguments.clone(), Otherwise::Absent, read.span)))
            }
            Guard::Not(read) if read.otherwise == Otherwise::Absent => {
                let tensor = tuples.of(program, read.tensor)?;
                Some(Guard::Not(Read { tensor, ..read.clone() }))
            }
            _ => None,
        };
        guards.iter().map(|guard| ask(guard, program, self).unwrap_or_else(|| guard.clone())).collect()
    }

    /// The tuples of a relation of numbers.
    fn of(&mut self, program: &mut Program, id: TensorId) -> Option<TensorId> {
        if let Some(known) = self.known.get(&id) {
            return *known;
        }
        // Whoever asks for it meanwhile gets none: it hangs on itself.
        self.known.insert(id, None);
        let made = self.made(program, id);
        self.known.insert(id, made);
        made
    }

    fn made(&mut self, program: &mut Program, id: TensorId) -> Option<TensorId> {
        let tensor = program.tensor(id).clone();
        let numbers = tensor.style == Style::Round
            && tensor.kind == Kind::Real
            && tensor.role == Role::Computed
            && tensor.given.is_empty()
            && !matches!(tensor.combine, Combine::Exists | Combine::Or | Combine::Proofs | Combine::Slopes);
        let own = |component: &&Component| component.tensors.contains(&id);
        let component = program.components.iter().find(own)?.clone();
        if !numbers || !matches!(component.class, Class::Plain) {
            return None;
        }
        let mut rules = Vec::new();
        for at in component.equations {
            let equation = program.equation(at).clone();
            for term in &equation.terms {
                for mut conjunction in present::of_term(program, &equation.left, term, &mut self.covered)? {
                    conjunction.guards = self.guards(program, &conjunction.guards);
                    rules.push((equation.clone(), conjunction));
                }
            }
        }
        let name = format!("tuples of {}", tensor.name);
        let made = tensor_of(
            program,
            Tensor { kind: Kind::Bool, combine: Combine::Exists, name, hidden: true, ..tensor },
        );
        let rules = rules
            .iter()
            .map(|(equation, conjunction)| {
                let rule = rule(made, equation, equation.head.clone(), conjunction);
                Renaming::new(program).equation(&rule)
            })
            .collect();
        add_component(program, id, made, rules);
        Some(made)
    }
}
