//! Which tensors may move, and which do with others.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::along::{Along, FAR, Places, along};
use crate::program::{
    Argument, Component, Facts, Given, IndexFn, IndexId, Kind, Program, Role, Steps, Style, TensorId,
};
use crate::value::Domain;

/// Elements of a tensor.
pub(super) fn volume(program: &Program, id: TensorId) -> u128 {
    program.tensor(id).sizes().into_iter().fold(1_u128, |volume, size| volume.saturating_mul(size as u128))
}

/// Whether a tensor is one that may move.
pub(super) fn can_move(program: &Program, id: TensorId) -> bool {
    let tensor = program.tensor(id);
    tensor.role == Role::Computed && tensor.kind != Kind::Count
}

/// The ends of the values at a place of a square tensor, if it may move there.
pub(super) fn ends(program: &Program, id: TensorId, place: usize) -> Option<(i64, i64)> {
    match program.tensor(id).places.get(place)?.domain {
        Some(Domain::Interval { from, to })
            if from <= to && from.unsigned_abs() <= FAR && to.unsigned_abs() <= FAR =>
        {
            Some((from, to))
        }
        _ => None,
    }
}

/// The place that moves in each tensor of a component, and whether it goes up.
pub(super) fn moving(component: &Component, steps: &Steps) -> Option<(Places, bool)> {
    let (mut places, mut up) = (Places::new(), None);
    for (id, moving) in &steps.places {
        let [moving] = moving.as_slice() else { return None };
        if *up.get_or_insert(moving.up) != moving.up {
            return None;
        }
        places.insert(*id, moving.place);
    }
    (places.len() == component.tensors.len()).then_some((places, up?))
}

/// What moves with the seeds.
pub(super) fn spread(
    program: &Program,
    needed: &BTreeSet<TensorId>,
    mut places: Places,
    still: &BTreeSet<TensorId>,
) -> Places {
    loop {
        let before = places.len();
        for equation in program.equations.iter().filter(|e| needed.contains(&e.tensor)) {
            let mut indices = BTreeSet::new();
            let mut seen = |along: Option<Along>| {
                if let Some(Along::Steps { index, .. }) = along {
                    indices.insert(index);
                }
            };
            let head = places.get(&equation.tensor).and_then(|place| equation.head.get(*place));
            seen(head.map(Along::of));
            equation.visit_reads(&mut |read, _| seen(along(&places, read)));
            let mut move_at = |id: TensorId, functions: Vec<Option<&IndexFn>>, index: IndexId| {
                let stands = |function: &IndexFn| match Along::of(function) {
                    Along::Steps { index: own, .. } => own == index,
                    Along::Fixed(_) | Along::Elsewhere => false,
                };
                let mut found = (0..).zip(&functions).filter(|(_, function)| function.is_some_and(stands));
                if let (Some((place, _)), None) = (found.next(), found.next())
                    && can_move(program, id)
                    && !still.contains(&id)
                    && (program.tensor(id).style == Style::Round || ends(program, id, place).is_some())
                {
                    places.entry(id).or_insert(place);
                }
            };
            for index in indices {
                if equation.left.contains(&index) {
                    move_at(equation.tensor, equation.head.iter().map(Some).collect(), index);
                }
                equation.visit_reads(&mut |read, _| {
                    if program.tensor(read.tensor).style == Style::Square {
                        move_at(read.tensor, read.arguments.iter().map(Argument::function).collect(), index);
                    }
                });
            }
        }
        if places.len() == before {
            return places;
        }
    }
}

/// These tensors, and all that depend on them.
pub(super) fn dependent(program: &Program, mut tensors: BTreeSet<TensorId>) -> BTreeSet<TensorId> {
    loop {
        let before = tensors.len();
        for equation in &program.equations {
            let mut depends = false;
            equation.visit_reads(&mut |read, _| depends |= tensors.contains(&read.tensor));
            if depends {
                tensors.insert(equation.tensor);
            }
        }
        if tensors.len() == before {
            return tensors;
        }
    }
}

/// What is given of a tensor by its value at a place; `None` where something runs along it.
pub(super) fn by_value(program: &Program, id: TensorId, place: usize) -> Option<BTreeMap<i64, Vec<Given>>> {
    let mut found: BTreeMap<i64, Vec<Given>> = BTreeMap::new();
    for given in &program.tensor(id).given {
        match given {
            Given::Array { fixed, .. } => {
                found.entry(fixed.get(place).copied()??.int()?).or_default().push(given.clone());
            }
            Given::Facts(_) | Given::Columns(_) => {
                let facts = given.facts()?;
                for at in 0..facts.count {
                    let tuple = facts.tuple(at);
                    let mut one = Facts { arity: facts.arity, ..Default::default() };
                    one.push(tuple, facts.value(at), None);
                    found.entry(tuple.get(place)?.int()?).or_default().push(Given::Facts(Arc::new(one)));
                }
            }
        }
    }
    Some(found)
}
