//! Recursions of relations whose tuples hang on each other without a circle, level by level.
//!
//! Enter at [`leveled`]. `H(s, x, d) += tanh(W[d, e] Child(s, x, y) H(s, y, e))` goes up trees. Which tuple hangs on which follows from data:
//! a tuple that hangs on none is of level 0, others are of one more than the highest that they hang on. `Step(l, s, x, r)` says
//! of each tuple its level and its number, and `B[r, d]` holds the blocks; the equation with that guard is done for one level after
//! the other, and computes each block once. Rounds would compute all of them as often as there are levels.

mod arcs;

use std::collections::BTreeMap;
use std::sync::Arc;

use super::numbers::{Numbering, Sides, fresh};
use super::{Split, add_component, has, joined, reads, rule, tensor_of};
use crate::present::{self, Conjunction, Covered};
use crate::program::{
    Argument, Class, Columns, Combine, Component, Equation, EquationId, Given, Guard, Index, IndexFn,
    IndexId, Kind, Otherwise, Place, Program, Range, Read, Role, Style, Tensor, TensorId, Term, When,
};
use crate::rename::Renaming;
use crate::store::machine::Levels;
use crate::store::relation::Relation;
use crate::value::{Const, Domain};
use crate::walk::guard_indices;

/// What a component became.
type Parts = (Vec<(TensorId, Split)>, Levels, TensorId);

/// Takes the relations of a recursion apart, if it goes by levels; changes nothing otherwise.
pub(super) fn leveled(
    program: &mut Program,
    component: &Component,
    numbering: &mut Numbering<'_>,
) -> Option<Parts> {
    if !component.tensors.iter().all(|id| suits(program.tensor(*id))) {
        return None;
    }
    let mut trial = program.clone();
    let known = numbering.known();
    let found = Recursion { program: &mut trial, component }.apart(numbering);
    match found {
        Some(_) => *program = trial,
        None => numbering.restore(known),
    }
    found
}

fn suits(tensor: &Tensor) -> bool {
    tensor.style == Style::Round
        && tensor.kind == Kind::Real
        && tensor.role == Role::Computed
        && tensor.combine == Combine::Sum
        && tensor.given.is_empty()
        && tensor.places.iter().all(|place| {
            let limited = place.limit.as_ref().is_none_or(|limit| Some(limit) == place.domain.as_ref());
            limited && !place.star
        })
}

struct Recursion<'a> {
    program: &'a mut Program,
    component: &'a Component,
}

/// A term, with when it has a value.
struct Known {
    equation: Equation,
    term: Term,
    present: Vec<Conjunction>,
}

impl Recursion<'_> {
    fn is_own(&self, read: &Read) -> bool {
        self.component.tensors.contains(&read.tensor)
    }

    fn apart(mut self, numbering: &mut Numbering<'_>) -> Option<Parts> {
        let own = self.component.tensors.clone();
        let terms = self.terms()?;
        let dense = self.dense(&terms);
        if dense.values().any(|dense| dense.iter().all(Option::is_some)) {
            return None;
        }
        // The tuples.
        let mut splits: BTreeMap<TensorId, Split> = BTreeMap::new();
        for (id, dense) in &dense {
            let tensor = self.program.tensor(*id).clone();
            let places = tensor.places.iter().zip(dense).filter(|(_, dense)| dense.is_none());
            let places = places.map(|(place, _)| place.clone()).collect();
            let name = format!("tuples of {}", tensor.name);
            let tuples = Tensor { kind: Kind::Bool, combine: Combine::Exists, places, name, ..tensor };
            let tuples = tensor_of(self.program, tuples);
            let dense = dense.clone();
            let split = Split { dense, tuples: Some(tuples), values: *id, zero: false, numbers: None };
            splits.insert(*id, split);
        }
        let tuples: Vec<TensorId> = own.iter().filter_map(|id| splits.get(id)?.tuples).collect();
        let mut rules = Vec::new();
        for known in &terms {
            let split = splits.get(&known.equation.tensor)?;
            let head = sparse(&split.dense, known.equation.head.iter()).cloned().collect::<Vec<_>>();
            for conjunction in &known.present {
                let mut conjunction = conjunction.clone();
                conjunction.guards = self.guards(&splits, &conjunction.guards)?;
                conjunction.guards = numbering.tuples.guards(self.program, &conjunction.guards);
                rules.push(rule(split.tuples?, &known.equation, head.clone(), &conjunction));
            }
        }
        let rules: Vec<Equation> =
            rules.iter().map(|rule| Renaming::new(self.program).equation(rule)).collect();
        let first = *own.first()?;
        let at = add_component(self.program, first, *tuples.first()?, rules);
        let closure = self.program.components.get_mut(at)?;
        (closure.tensors, closure.class) = (tuples.clone(), Class::Closure);
        let found = numbering.relations(self.program, &tuples)?;
        self.program.components.remove(at);
        let mut rows = BTreeMap::new();
        for (id, relation) in own.iter().zip(&found) {
            let split = splits.get_mut(id)?;
            let numbers = numbering.numbered(self.program, split.tuples?, relation)?;
            rows.insert(*id, Arc::clone(relation));
            split.numbers = Some(numbers);
        }
        // The levels.
        let arcs = self.arcs(&terms, &splits, numbering)?;
        let levels = arcs::levels(&own, &rows, arcs)?;
        let count = levels.values().flatten().copied().max()? + 1;
        if u64::from(count) + 1 > self.program.settings.rounds {
            return None;
        }
        let mut steps = BTreeMap::new();
        for id in &own {
            let split = splits.get(id)?;
            steps.insert(*id, self.steps(split.tuples?, rows.get(id)?, levels.get(id)?, count)?);
        }
        self.equations(&own, terms, &mut splits, &steps, count)
    }

    /// The terms of the equations, if it can be said by guards when each has a value.
    fn terms(&mut self) -> Option<Vec<Known>> {
        let mut covered = Covered::new();
        let mut terms = Vec::new();
        for at in &self.component.equations {
            let equation = self.program.equation(*at).clone();
            for term in &equation.terms {
                let present = present::of_term(self.program, &equation.left, term, &mut covered)?;
                terms.push(Known { equation: equation.clone(), term: term.clone(), present });
            }
        }
        Some(terms)
    }

    /// For each tensor the places at which all values stand or none: what its own tensors ask for there is that too.
    fn dense(&self, terms: &[Known]) -> BTreeMap<TensorId, Vec<Option<Domain>>> {
        let mut dense: BTreeMap<TensorId, Vec<Option<Domain>>> = BTreeMap::new();
        for id in &self.component.tensors {
            let places = &self.program.tensor(*id).places;
            dense.insert(*id, places.iter().map(|place| place.domain.clone()).collect());
        }
        self.domains(terms, &mut dense);
        for of in dense.values_mut().flatten() {
            *of = of.take().filter(|domain| !domain.is_empty());
        }
        loop {
            let mut lost = Vec::new();
            for Known { equation, present, .. } in terms {
                let Some(of) = dense.get(&equation.tensor) else { continue };
                for (at, domain) in of.iter().enumerate().filter_map(|(at, of)| Some((at, of.as_ref()?))) {
                    let whole = equation.head.get(at).and_then(IndexFn::alone).is_some_and(|index| {
                        let alone = equation.head.iter().filter(|other| has(other, index)).count() == 1;
                        let range = match &self.program.index(index).range {
                            Range::Domain(range) => range == domain,
                            // What own tensors alone give its values to has all of them where their places are dense.
                            Range::Tuples => present.iter().all(|all| {
                                let mut given =
                                    all.guards.iter().filter_map(|guard| self.given(guard, index));
                                given.any(|(id, at)| {
                                    dense.get(&id).and_then(|of| of.get(at)?.as_ref()) == Some(domain)
                                })
                            }),
                            Range::Computed => false,
                        };
                        let asks = |guard: &Guard| self.asks(&dense, guard, index);
                        alone && range && !present.iter().any(|all| all.guards.iter().any(asks))
                    });
                    if !whole {
                        lost.push((equation.tensor, at));
                    }
                }
            }
            if lost.is_empty() {
                return dense;
            }
            for (id, at) in lost {
                if let Some(slot) = dense.get_mut(&id).and_then(|of| of.get_mut(at)) {
                    *slot = None;
                }
            }
        }
    }

    /// Finds domains of places that have none: those of the indices there, and of the own places that these stand at.
    fn domains(&self, terms: &[Known], known: &mut BTreeMap<TensorId, Vec<Option<Domain>>>) {
        loop {
            let mut found = Vec::new();
            for Known { equation, present, .. } in terms {
                for (at, function) in equation.head.iter().enumerate() {
                    let open = known.get(&equation.tensor).is_some_and(|of| of.get(at) == Some(&None));
                    let Some(index) = function.alone().filter(|_| open) else { continue };
                    if let Range::Domain(domain) = &self.program.index(index).range {
                        found.push((equation.tensor, at, domain.clone()));
                        continue;
                    }
                    let mut given = present
                        .iter()
                        .flat_map(|all| &all.guards)
                        .filter_map(|guard| self.given(guard, index));
                    let domain = given.find_map(|(id, at)| known.get(&id)?.get(at)?.clone());
                    found.extend(domain.map(|domain| (equation.tensor, at, domain)));
                }
            }
            if found.is_empty() {
                return;
            }
            for (id, at, domain) in found {
                if let Some(slot) = known.get_mut(&id).and_then(|of| of.get_mut(at)) {
                    *slot = Some(domain);
                }
            }
        }
    }

    /// The place of an own tensor that an index stands at alone, if that is what a guard reads.
    fn given(&self, guard: &Guard, index: IndexId) -> Option<(TensorId, usize)> {
        let Guard::Read(read) = guard else { return None };
        let own = self.is_own(read) && read.otherwise == Otherwise::Absent;
        let alone = |argument: &Argument| argument.function().and_then(IndexFn::alone) == Some(index);
        let at = read.arguments.iter().position(alone)?;
        own.then_some((read.tensor, at))
    }

    /// Whether a guard asks for an index, where dense places of the own tensors ask for nothing.
    fn asks(&self, dense: &BTreeMap<TensorId, Vec<Option<Domain>>>, guard: &Guard, index: IndexId) -> bool {
        let mut asks = false;
        match guard {
            Guard::Read(read) if self.is_own(read) && read.otherwise == Otherwise::Absent => {
                let of = dense.get(&read.tensor).map_or(&[][..], Vec::as_slice);
                for (argument, dense) in read.arguments.iter().zip(of) {
                    let Some(function) = argument.function() else { continue };
                    asks |= has(function, index) && (dense.is_none() || function.alone().is_none());
                }
            }
            _ => guard_indices(guard, &mut |other| asks |= other == index),
        }
        asks
    }

    /// Guards that ask for tuples where they asked for the own tensors; `None` where they ask for more of them.
    fn guards(&self, splits: &BTreeMap<TensorId, Split>, guards: &[Guard]) -> Option<Vec<Guard>> {
        let mut result = Vec::new();
        for guard in guards {
            let mut own = false;
            When::from(vec![guard.clone()]).visit_reads(&mut |read, _| own |= self.is_own(read));
            match guard {
                Guard::Read(read) if own && read.otherwise == Otherwise::Absent => {
                    result.push(Guard::Read(splits.get(&read.tensor)?.tuple(read)?));
                }
                _ if own => return None,
                _ => result.push(guard.clone()),
            }
        }
        Some(result)
    }

    /// The tuples by their levels, with their numbers.
    fn steps(
        &mut self,
        tuples: TensorId,
        relation: &Relation,
        levels: &[u32],
        count: u32,
    ) -> Option<TensorId> {
        let mut order: Vec<u32> = (0..u32::try_from(relation.len).ok()?).collect();
        order.sort_by_key(|row| levels.get(*row as usize).copied());
        let all = |count: usize| Arc::new((0..count as i64).map(Const::Int).collect::<Vec<_>>());
        let mut columns = vec![Arc::new(order.iter().map(|row| levels[*row as usize]).collect::<Vec<u32>>())];
        for column in &relation.columns {
            columns.push(Arc::new(order.iter().map(|row| column[*row as usize]).collect()));
        }
        columns.push(Arc::new(order));
        let mut dictionaries = vec![all(count as usize)];
        dictionaries.extend(relation.dictionaries.iter().cloned());
        dictionaries.push(all(relation.len));
        let numbered = |count: usize| Place { domain: Some(Domain::size(count)), limit: None, star: false };
        let tensor = self.program.tensor(tuples).clone();
        let mut places = vec![numbered(count as usize)];
        places.extend(tensor.places.iter().map(|place| Place { limit: None, ..place.clone() }));
        places.push(numbered(relation.len));
        let given = Columns { len: relation.len, dictionaries, columns, values: None };
        let name = format!("levels of {}", tensor.name.trim_start_matches("tuples of "));
        let given = vec![Given::Columns(Arc::new(given))];
        Some(tensor_of(self.program, Tensor { name, places, given, role: Role::Data, ..tensor }))
    }

    /// The equations of the blocks, and the relations as they stand in the program.
    fn equations(
        self,
        own: &[TensorId],
        terms: Vec<Known>,
        splits: &mut BTreeMap<TensorId, Split>,
        steps: &BTreeMap<TensorId, TensorId>,
        count: u32,
    ) -> Option<Parts> {
        let Recursion { program, component } = self;
        let mut values = Vec::new();
        for id in own {
            let (split, tensor) = (splits.get_mut(id)?, program.tensor(*id).clone());
            let domain = split.numbers.as_ref()?.domain.clone();
            let mut places = vec![Place { domain: Some(domain), limit: None, star: false }];
            let of = |domain: &Domain| Place { domain: Some(domain.clone()), limit: None, star: false };
            places.extend(split.dense.iter().flatten().map(of));
            let name = format!("values of {}", tensor.name);
            split.values = tensor_of(program, Tensor { style: Style::Square, places, name, ..tensor });
            values.push(split.values);
        }
        let mut made = Vec::new();
        for Known { equation, term, .. } in terms {
            let split = splits.get(&equation.tensor)?;
            let mut one = Equation { terms: vec![term], ..equation };
            if let Some(changed) = reads::rewritten(program, splits, &one) {
                one = changed;
            }
            let mut left_over = false;
            one.visit_reads(&mut |read, _| left_over |= own.contains(&read.tensor));
            let ranged = one.head.iter().zip(&split.dense).all(|(function, dense)| {
                let range = function.alone().map(|index| &program.index(index).range);
                dense.is_none()
                    || matches!((range, dense), (Some(Range::Domain(range)), Some(of)) if range == of)
            });
            if left_over || !ranged {
                return None;
            }
            let numbers = split.numbers.as_ref()?;
            let number = index_of(program, fresh(numbers, one.head_span));
            let range = Range::Domain(Domain::size(count as usize));
            let level = index_of(program, Index { name: "l".to_owned(), range, span: one.head_span });
            let Sides { head, left, tuple, moved } = Sides::of(&one, &split.dense, number);
            let arguments = [IndexFn::Index(level)].into_iter().chain(tuple).chain([IndexFn::Index(number)]);
            let step = *steps.get(&one.tensor)?;
            let step =
                Read::new(step, arguments.map(Argument::At).collect(), Otherwise::Absent, one.head_span);
            let term = one.terms.first_mut()?;
            term.over.splice(0..0, [level].into_iter().chain(moved));
            term.when.guards.push(Guard::Read(step));
            term.when.node = Default::default();
            let equation = Equation { tensor: split.values, head, left, node: Default::default(), ..one };
            made.push(Renaming::new(program).equation(&equation));
        }
        let first = *own.first()?;
        let at = program.components.iter().position(|other| other.tensors.contains(&first))?;
        let mut wholes = Vec::new();
        for id in own {
            let (split, mut tensor) = (splits.get(id)?, program.tensor(*id).clone());
            for (place, dense) in tensor.places.iter_mut().zip(&split.dense) {
                place.domain = dense.clone().or(place.domain.take());
            }
            wholes.push(joined(program, *id, &tensor, split)?);
        }
        for equation in &component.equations {
            program.equations.get_mut(equation.0 as usize)?.terms.clear();
        }
        let add = |program: &mut Program, equations: Vec<Equation>| -> Vec<EquationId> {
            let from = program.equations.len();
            program.equations.extend(equations);
            (from..program.equations.len()).map(|at| EquationId(at as u32)).collect()
        };
        let equations = add(program, made);
        let mut parts = vec![Component { tensors: values.clone(), equations, class: Class::Numeric }];
        for (id, whole) in own.iter().zip(wholes) {
            let mut equations: Vec<EquationId> = component.equations.clone();
            equations.retain(|at| program.equation(*at).tensor == *id);
            equations.extend(add(program, vec![whole]));
            parts.push(Component { tensors: vec![*id], equations, class: Class::Plain });
        }
        program.components.splice(at..=at, parts);
        let levels = Levels { count, steps: steps.values().copied().collect() };
        let splits = std::mem::take(splits).into_iter().collect();
        Some((splits, levels, *values.first()?))
    }
}

/// What stands at the places that are not dense.
fn sparse<'a, T: 'a>(
    dense: &'a [Option<Domain>],
    all: impl Iterator<Item = T> + 'a,
) -> impl Iterator<Item = T> + 'a {
    all.zip(dense).filter(|(_, dense)| dense.is_none()).map(|(one, _)| one)
}

fn index_of(program: &mut Program, index: Index) -> IndexId {
    program.indices.push(index);
    IndexId((program.indices.len() - 1) as u32)
}
