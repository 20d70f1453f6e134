//! When a value is present: what a guard must say so that a sum over nothing stays absent.
//!
//! Enter at [`of_scope`]. Presence is a conjunction: every round reference is there, every guard
//! holds. What is no conjunction (a read that may be out of range, several terms of which one
//! suffices) makes the answer inexact; the text then counts the contributions.

use std::collections::BTreeSet;

use crate::domains;
use crate::presence::{always, has_values, range, within};
use crate::program::{Argument, Expr, Guard, IndexId, Otherwise, Program, Read, When};
use crate::walk;

/// What must hold for a value to be present.
#[derive(Debug)]
pub(super) struct Presence {
    /// Necessary conditions.
    pub(super) guards: Vec<Guard>,
    /// Indices for which some value must satisfy them.
    pub(super) exists: Vec<IndexId>,
    /// Whether they are also sufficient.
    pub(super) exact: bool,
}

/// When a scope has a contribution.
pub(super) fn of_scope(program: &Program, over: &[IndexId], when: &When, body: &Expr) -> Presence {
    let mut presence = Presence { guards: Vec::new(), exists: Vec::new(), exact: true };
    presence.scope(program, over, when, body);
    let when = When::from(std::mem::take(&mut presence.guards));
    let mut used = BTreeSet::new();
    walk::when_indices(&when, &mut |index| {
        used.insert(index);
    });
    // An index that guards alone hold takes its values from round references.
    let reads = when.guards.iter().filter(|guard| matches!(guard, Guard::Read(_)));
    let reads = When::from(reads.cloned().collect::<Vec<_>>());
    let nothing = Expr::Number(1.0);
    let known = |index: &IndexId| match used.contains(index) {
        true => domains::binds(*index, &nothing, &reads) && all_tuples(program, *index, &reads.guards),
        false => has_values(program, *index),
    };
    presence.exact &= presence.exists.iter().all(known);
    presence.exists.retain(|index| used.contains(index));
    presence.guards = when.guards;
    if !presence.exact {
        // The contributions are counted; what is left to say is what binds the indices around.
        let guards = std::mem::take(&mut presence.guards);
        for guard in guards {
            presence.binding(program, guard);
        }
        let mut used = BTreeSet::new();
        presence.guards.iter().for_each(|guard| {
            walk::guard_indices(guard, &mut |index| {
                used.insert(index);
            });
        });
        presence.exists.retain(|index| used.contains(index));
    }
    presence
}

/// Whether a round reference holds an index that is none of these.
fn binds_outside(read: &Read, exists: &[IndexId]) -> bool {
    let mut outside = false;
    walk::read_indices(read, &mut |index| outside |= !exists.contains(&index));
    read.otherwise == Otherwise::Absent && outside
}

impl Presence {
    /// Keeps of a guard the round references that bind indices around.
    fn binding(&mut self, program: &Program, guard: Guard) {
        match guard {
            Guard::Read(read) if binds_outside(&read, &self.exists) => self.guards.push(Guard::Read(read)),
            Guard::Compare(_, left, right) => {
                let mut sides = Presence { guards: Vec::new(), exists: Vec::new(), exact: true };
                sides.value(program, &left);
                sides.value(program, &right);
                self.exists.append(&mut sides.exists);
                sides.guards.into_iter().for_each(|guard| self.binding(program, guard));
            }
            _ => {}
        }
    }

    fn scope(&mut self, program: &Program, over: &[IndexId], when: &When, body: &Expr) {
        self.exists.extend(over);
        self.when(when);
        self.value(program, body);
    }

    fn when(&mut self, when: &When) {
        self.exists.extend(&when.exists);
        self.guards.extend(when.guards.iter().cloned());
    }

    fn value(&mut self, program: &Program, expr: &Expr) {
        if always(program, expr) {
            return;
        }
        match expr {
            Expr::Number(_) => {}
            Expr::Read(read) if read.otherwise == Otherwise::Absent => {
                self.guards.push(Guard::Read(read.clone()));
            }
            Expr::Index(_) | Expr::Read(_) => self.exact = false,
            Expr::Missing(read) => self.guards.push(Guard::Not(read.clone())),
            Expr::Terms(parts) if parts.len() != 1 => self.exact = false,
            Expr::Reduce(reduce) => self.scope(program, &reduce.over, &reduce.when, &reduce.body),
            _ => {
                let (parts, when) = expr.parts();
                parts.into_iter().for_each(|part| self.value(program, part));
                if let Some(when) = when {
                    self.when(when);
                }
            }
        }
    }
}

/// Whether the index takes every value that the round references of these guards give it: its
/// range may be a smaller one, but a name that guards alone hold has none.
fn all_tuples(program: &Program, index: IndexId, guards: &[Guard]) -> bool {
    let Some(domain) = range(program, index) else { return true };
    let mut places = guards.iter().filter_map(|guard| match guard {
        Guard::Read(read) => Some((program.tensors.get(read.tensor.0 as usize)?, read)),
        _ => None,
    });
    places.any(|(tensor, read)| {
        tensor.places.iter().zip(&read.arguments).any(|(place, argument)| {
            let alone = matches!(argument, Argument::At(function) if function.alone() == Some(index));
            alone && place.domain.as_ref().is_some_and(|place| within(place, domain))
        })
    })
}
