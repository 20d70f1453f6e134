//! The batches of learning: a program for each, in which an index takes some of its values only.
//!
//! Enter at [`Batches`]. Where a place of a tensor is only met at that index, the tensor has only those elements in the
//! batch, and of its data only those are there: a step costs what its samples cost, however many others there are.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use crate::gradient::Adjoint;
use crate::model;
use crate::program::{Argument, Batch, Facts, Given, IndexFn, IndexId, Program, Role, Tensor, TensorId};
use crate::value::{Const, Domain};

/// The batches, and the programs of those that were at work lately.
pub(super) struct Batches {
    goals: Vec<TensorId>,
    index: String,
    values: Vec<Vec<Const>>,
    narrow: Narrow,
    /// So many bytes of programs are kept.
    room: u64,
    made: RefCell<Made>,
}

#[derive(Default)]
struct Made {
    programs: HashMap<usize, (Arc<Program>, u64)>,
    /// Those that were made first, first.
    order: VecDeque<usize>,
    bytes: u64,
}

impl Batches {
    /// Those of these values of the index, in their order; nothing is made yet.
    pub(super) fn new(
        goal: TensorId,
        whole: &Adjoint,
        batch: &Batch,
        values: &[Const],
        bytes: u64,
    ) -> Batches {
        let mut goals = vec![goal];
        goals.extend(whole.gradients.iter().flatten());
        let narrow = Narrow::of(&whole.program, &goals, &batch.index);
        let values = values.chunks(batch.size.max(1)).map(<[Const]>::to_vec).collect();
        let (index, room) = (batch.index.clone(), bytes / PART);
        Batches { goals, index, values, narrow, room, made: RefCell::default() }
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.values.len()
    }

    /// The program of a batch: that of before, if there is room for all that are at work.
    pub(super) fn program(&self, whole: &Adjoint, at: usize) -> Option<Arc<Program>> {
        let mut made = self.made.borrow_mut();
        if let Some((program, _)) = made.programs.get(&at) {
            return Some(Arc::clone(program));
        }
        let domain = Domain::listed(self.values.get(at)?.iter().copied());
        let mut program = model::limited(&whole.program, &self.goals, &self.index, &domain);
        self.narrow.apply(&mut program, &domain);
        let (bytes, program) = (self.weight(&program), Arc::new(program));
        made.bytes += bytes;
        while made.bytes > self.room
            && let Some(first) = made.order.pop_front()
        {
            made.bytes -= made.programs.remove(&first).map_or(0, |(_, bytes)| bytes);
        }
        made.order.push_back(at);
        made.programs.insert(at, (Arc::clone(&program), bytes));
        Some(program)
    }

    /// About how many bytes a program takes, without what it shares with others.
    fn weight(&self, program: &Program) -> u64 {
        let own = self.narrow.places.keys().flat_map(|id| &program.tensor(*id).given);
        let data = own.map(|given| match given {
            Given::Facts(facts) => facts.constants.len() * size_of::<Const>() + facts.values.len() * 8,
            Given::Array { values, .. } => values.len() * 8,
            Given::Columns(_) => 0,
        });
        let parts =
            program.equations.len() * 2000 + program.tensors.len() * 500 + program.indices.len() * 200;
        (data.sum::<usize>() + parts) as u64
    }
}

/// Programs of batches take this part of the bytes that are allowed, at most.
const PART: u64 = 8;

/// Which places are met at the index only, and where their data are.
struct Narrow {
    places: BTreeMap<TensorId, Vec<usize>>,
    /// For the facts of each such tensor, one list after the other: those with a value in its first such place.
    rows: BTreeMap<TensorId, Vec<HashMap<Const, Vec<usize>>>>,
}

impl Narrow {
    fn of(program: &Program, goals: &[TensorId], name: &str) -> Narrow {
        let needed = program.needs(goals);
        let own: BTreeSet<IndexId> = model::indices_named(program, goals, name);
        let mut met: BTreeMap<(TensorId, usize), bool> = BTreeMap::new();
        let mut meet = |tensor: TensorId, at: usize, function: Option<&IndexFn>| {
            let alone = function.and_then(IndexFn::alone).is_some_and(|index| own.contains(&index));
            *met.entry((tensor, at)).or_insert(true) &= alone;
        };
        for equation in program.equations.iter().filter(|equation| needed.contains(&equation.tensor)) {
            for (at, function) in equation.head.iter().enumerate() {
                meet(equation.tensor, at, Some(function));
            }
            equation.visit_reads(&mut |read, _| {
                for (at, argument) in read.arguments.iter().enumerate() {
                    meet(read.tensor, at, Argument::function(argument));
                }
            });
        }
        let mut places: BTreeMap<TensorId, Vec<usize>> = BTreeMap::new();
        for ((id, at), _) in met.into_iter().filter(|(_, alone)| *alone) {
            let tensor = program.tensor(id);
            let star = tensor.places.get(at).is_none_or(|place| place.star || place.domain.is_none());
            if tensor.role != Role::Parameter && !goals.contains(&id) && !star {
                places.entry(id).or_default().push(at);
            }
        }
        let rows = places.iter().map(|(id, places)| (*id, rows(program.tensor(*id), places))).collect();
        Narrow { places, rows }
    }

    /// Takes what is of other values out of a program.
    fn apply(&self, program: &mut Program, values: &Domain) {
        for (id, places) in &self.places {
            let Some(tensor) = program.tensors.get_mut(id.0 as usize) else { continue };
            let before = tensor.domains();
            for at in places {
                let Some(place) = tensor.places.get_mut(*at) else { continue };
                let fewer =
                    |domain: &Domain| Domain::listed(values.values().filter(|value| domain.contains(*value)));
                place.domain = place.domain.as_ref().map(fewer);
                place.limit = place.limit.as_ref().map(fewer);
            }
            let after = tensor.domains();
            let rows = self.rows.get(id).map_or(&[][..], Vec::as_slice);
            for (given, rows) in tensor.given.iter_mut().zip(rows) {
                *given = match given {
                    Given::Facts(facts) => Given::Facts(Arc::new(chosen(facts, rows, places, &after))),
                    Given::Columns(columns) => {
                        Given::Facts(Arc::new(chosen(&columns.facts(), rows, places, &after)))
                    }
                    Given::Array { .. } => selected(given, &before, &after),
                };
            }
            tensor.given.retain(|given| !is_empty(given));
        }
    }
}

fn is_empty(given: &Given) -> bool {
    match given {
        Given::Facts(facts) => facts.count == 0,
        Given::Columns(columns) => columns.len == 0,
        Given::Array { shape, .. } => shape.contains(&0),
    }
}

/// For each list of facts the rows with a value in the first of these places; nothing for arrays.
fn rows(tensor: &Tensor, places: &[usize]) -> Vec<HashMap<Const, Vec<usize>>> {
    let of = |given: &Given| {
        let mut rows: HashMap<Const, Vec<usize>> = HashMap::new();
        if let (Some(facts), Some(place)) = (given.facts(), places.first()) {
            for row in 0..facts.count {
                if let Some(value) = facts.tuple(row).get(*place) {
                    rows.entry(*value).or_default().push(row);
                }
            }
        }
        rows
    };
    tensor.given.iter().map(of).collect()
}

/// The facts whose constants at these places are in the domains, in their order.
fn chosen(facts: &Facts, rows: &HashMap<Const, Vec<usize>>, places: &[usize], domains: &[Domain]) -> Facts {
    let first = places.first().and_then(|place| domains.get(*place));
    let mut found: Vec<usize> = first
        .into_iter()
        .flat_map(Domain::values)
        .filter_map(|value| rows.get(&value))
        .flatten()
        .copied()
        .collect();
    found.sort_unstable();
    let mut chosen = Facts { arity: facts.arity, source: facts.source, ..Facts::default() };
    for row in found {
        let tuple = facts.tuple(row);
        let inside = |place: &usize| match (tuple.get(*place), domains.get(*place)) {
            (Some(value), Some(domain)) => domain.contains(*value),
            _ => true,
        };
        if places.iter().all(inside) {
            chosen.push(tuple, facts.value(row), facts.spans.get(row).copied());
        }
    }
    chosen
}

/// The part of an array that is in the domains.
fn selected(given: &Given, before: &[Domain], after: &[Domain]) -> Given {
    let Given::Array { fixed, shape, values, span } = given else { return given.clone() };
    let (mut values, mut shape) = (values.to_vec(), shape.clone());
    let mut axis = 0;
    for ((fixed, before), after) in fixed.iter().zip(before).zip(after) {
        if let Some(constant) = fixed {
            // An array for one sample, of another batch.
            if before.contains(*constant) && !after.contains(*constant) {
                return Given::Array {
                    fixed: vec![None; before.len()],
                    shape: vec![0; before.len()],
                    values: Arc::from([]),
                    span: *span,
                };
            }
            continue;
        }
        if before != after {
            let kept: Vec<usize> = after.values().filter_map(|value| before.ordinal(value)).collect();
            let inner: usize = shape.get(axis + 1..).map_or(1, |rest| rest.iter().product());
            let size = shape.get(axis).copied().unwrap_or(0);
            let row = |outer: usize, at: usize| (outer * size + at) * inner;
            let outer: usize = shape.get(..axis).map_or(1, |rest| rest.iter().product());
            let parts = (0..outer).flat_map(|outer| kept.iter().map(move |at| (outer, *at)));
            values = parts
                .filter_map(|(outer, at)| values.get(row(outer, at)..row(outer, at) + inner))
                .flatten()
                .copied()
                .collect();
            if let Some(slot) = shape.get_mut(axis) {
                *slot = kept.len();
            }
        }
        axis += 1;
    }
    Given::Array { fixed: fixed.clone(), shape, values: Arc::from(values), span: *span }
}
