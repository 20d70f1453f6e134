//! Relations of a recursion: what their places range over at most, so that each tuple has a place of its own.
//!
//! Enter at [`bounds`]. No tuple lies outside of what the left sides can say.

use std::collections::HashMap;

use crate::linear::linear;
use crate::program::{Combine, Component, Equation, Program, Range, Role, Style, TensorId};
use crate::value::Domain;

/// Relations, and what their places range over at most.
pub(super) type Bounds = HashMap<TensorId, Vec<Domain>>;

/// Relations have room for so many tuples, or for so many times as many as there are elements beside them.
const MOST: usize = 1 << 22;
const SHARE: usize = 4;

/// The ends of an interval, if they are so near to 0 that arithmetic on them stays within 64 bits.
pub(super) fn ends(domain: &Domain) -> Option<(i64, i64)> {
    let near = |end: i64| end.unsigned_abs() < 1 << 30;
    match domain {
        Domain::Interval { from, to } if near(*from) && near(*to) => Some((*from, *to)),
        _ => None,
    }
}

/// The equations of a tensor in a component.
pub(super) fn of<'p>(
    program: &'p Program,
    component: &Component,
    id: TensorId,
) -> impl Iterator<Item = &'p Equation> {
    let equations = component.equations.iter().map(|at| program.equation(*at));
    equations.filter(move |equation| equation.tensor == id)
}

/// The bounds of relations among these tensors, and how many elements all of them have; `None` if there are too many.
pub(super) fn bounds(own: &[TensorId], program: &Program, component: &Component) -> Option<(Bounds, usize)> {
    let (mut square, mut round) = (0_usize, 0_usize);
    let mut bounds = Bounds::new();
    for id in own {
        let tensor = program.tensor(*id);
        let joins = match tensor.combine {
            Combine::Sum | Combine::Max | Combine::Min | Combine::Times => true,
            Combine::Or => tensor.style == Style::Square,
            Combine::Avg | Combine::Exists | Combine::Proofs | Combine::Slopes => false,
        };
        if !joins {
            return None;
        }
        if tensor.style == Style::Square {
            square = square.saturating_add(tensor.all_sizes().fold(1, usize::saturating_mul));
            continue;
        }
        if !tensor.given.is_empty() || tensor.role == Role::Parameter {
            return None;
        }
        let places = (0..tensor.places.len()).map(|place| bounds_of(program, component, *id, place));
        let places: Vec<Domain> = places.collect::<Option<_>>()?;
        round = round.saturating_add(places.iter().map(Domain::len).fold(1, usize::saturating_mul));
        bounds.insert(*id, places);
    }
    let few = round <= square.saturating_mul(SHARE).max(MOST);
    few.then(|| (bounds, square.saturating_add(round)))
}

/// What the left sides have at a place of a relation.
fn bounds_of(program: &Program, component: &Component, id: TensorId, place: usize) -> Option<Domain> {
    let mut all: Option<(i64, i64)> = None;
    for equation in of(program, component, id) {
        let (terms, constant) = linear(equation.head.get(place)?)?;
        let (mut least, mut most) = (constant, constant);
        for (index, coefficient) in terms {
            let Range::Domain(domain) = &program.index(index).range else { return None };
            let (from, to) = ends(domain)?;
            let (a, b) = (coefficient.checked_mul(from)?, coefficient.checked_mul(to)?);
            (least, most) = (least.checked_add(a.min(b))?, most.checked_add(a.max(b))?);
        }
        all = Some(all.map_or((least, most), |(from, to)| (from.min(least), to.max(most))));
    }
    let (mut from, mut to) = all?;
    match &program.tensor(id).places.get(place)?.limit {
        None => {}
        Some(Domain::Interval { from: low, to: high }) => (from, to) = (from.max(*low), to.min(*high)),
        Some(Domain::Listed(_)) => return None,
    }
    let domain = Domain::Interval { from, to };
    ends(&domain).map(|_| domain)
}
