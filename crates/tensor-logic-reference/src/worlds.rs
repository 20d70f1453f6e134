//! Weighted facts by their definition: every world in turn.
//!
//! Enter at [`Machine::by_worlds`]. A world says of every weighted tuple below some relations whether it holds; its weight is
//! the product of the tuples' probabilities and complements. In a world the relations are Boolean, and are evaluated like
//! any other. What a tuple's worlds weigh together is its probability. The time is exponential in the number of tuples.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::machine::Machine;
use super::number::{Dual, Number, added};
use super::store::Store;
use tensor_logic_core::engine::Request;
use tensor_logic_core::error::{Code, Refusal, Result};
use tensor_logic_core::program::{
    Combine, Component, EquationId, Expr, Facts, Given, Kind, Otherwise, Place, Program, Read, Role, Style,
    Tensor, TensorId,
};
use tensor_logic_core::value::{Const, Domain, Tuple, element};

/// So many worlds are gone through.
const MOST: u128 = 1 << 22;

/// How far weights may be off: computed ones are rounded. Given ones were looked at before.
const ROUNDING: f64 = 1e-6;

/// Tuples of one relation of which at most one holds.
struct Choice<N> {
    tuples: Vec<(TensorId, Tuple, N)>,
    /// The one that holds for certain.
    certain: Option<usize>,
}

impl<N: Number> Machine<'_, N> {
    /// Relations of the types `prob` and `topk`; of the latter all proofs are kept.
    pub(super) fn by_worlds(&mut self, component: &Component) -> Result<()> {
        let found = self.worlds(&component.tensors, &mut |_, _, weight| weight)?;
        found.into_iter().for_each(|(id, tuples)| self.set(id, Store::Sparse(tuples)));
        Ok(())
    }

    /// What a relation owes to the weights of a source: element by element, by dual numbers.
    pub(super) fn slopes(&mut self, id: TensorId) -> Result<()> {
        let mut reads = Vec::new();
        for equation in self.program.equations.iter().filter(|equation| equation.tensor == id) {
            equation.visit_reads(&mut |read, _| reads.push(read.tensor));
        }
        let &[relation, adjoint, source] = reads.as_slice() else { return Ok(()) };
        let owed: BTreeMap<Tuple, f64> = match self.store(adjoint) {
            Some(Store::Sparse(tuples)) => {
                tuples.iter().map(|(t, value)| (t.clone(), value.value())).collect()
            }
            Some(Store::Dense(_, values)) => {
                values.iter().map(|value| (Tuple::new(), value.value())).collect()
            }
            None => BTreeMap::new(),
        };
        let mut slopes: BTreeMap<Tuple, N> = BTreeMap::new();
        for (element, _) in self.weights(source, self.program.tensor(source).is_proved())? {
            if slopes.contains_key(&element) {
                continue;
            }
            // Of a tuple that is given several times, the first.
            let mut met = false;
            let mut lift = |id: TensorId, tuple: &Tuple, weight: N| {
                let own = !met && id == source && *tuple == element;
                met |= own;
                Dual::with(weight.value(), own.then_some(1.0))
            };
            let found = self.worlds(&[relation], &mut lift)?;
            let tuples = found.get(&relation).into_iter().flatten();
            let slope = tuples
                .map(|(tuple, value)| owed.get(tuple).copied().unwrap_or(0.0) * value.slope().unwrap_or(0.0));
            slopes.insert(element, N::new(slope.sum()));
        }
        let tensor = self.program.tensor(id);
        let store = match tensor.style {
            Style::Round => Store::Sparse(slopes),
            Style::Square => {
                let domains = tensor.domains();
                let count = domains.iter().map(Domain::len).product();
                let of = |at| slopes.get(&element(&domains, at)).copied().unwrap_or_else(|| N::new(0.0));
                let values = (0..count).map(of).collect();
                Store::Dense(domains, values)
            }
        };
        self.set(id, store);
        Ok(())
    }

    /// The tuples of relations that follow in some world, with what their worlds weigh.
    fn worlds<M: Number>(
        &self,
        tensors: &[TensorId],
        lift: &mut dyn FnMut(TensorId, &Tuple, N) -> M,
    ) -> Result<BTreeMap<TensorId, BTreeMap<Tuple, M>>> {
        let below = proved_below(self.program, tensors);
        let choices = self.choices(&below, lift)?;
        let worlds = choices.iter().map(|choice| choice.tuples.len() as u128 + 1);
        if worlds.fold(1, u128::saturating_mul) > MOST {
            let message =
                format!("the reference goes through all worlds, and {} choices have too many", choices.len());
            let at = tensors.first().map_or_else(Default::default, |id| self.program.left_side(*id));
            return Err(Refusal::new(Code::TooLarge, at, message));
        }
        let world = World::of(self.program, &below);
        let mut found: BTreeMap<TensorId, BTreeMap<Tuple, (M, bool)>> = BTreeMap::new();
        let mut at = vec![0; choices.len()];
        loop {
            let (mut weight, mut possible) = (M::new(1.0), true);
            let mut holds: BTreeMap<TensorId, Facts> = BTreeMap::new();
            for (choice, which) in choices.iter().zip(&at) {
                possible &= choice.certain.is_none_or(|certain| certain == *which);
                weight = weight.times(match choice.tuples.get(*which) {
                    Some((tensor, tuple, weight)) => {
                        holds.entry(*tensor).or_default().push(tuple, 1.0, None);
                        *weight
                    }
                    None => {
                        let minus = |rest: M, (_, _, weight): &(TensorId, Tuple, M)| {
                            M::with(
                                rest.value() - weight.value(),
                                added(rest.slope(), weight.slope().map(|slope| -slope)),
                            )
                        };
                        let rest = choice.tuples.iter().fold(M::new(1.0), minus);
                        M::with(rest.value().max(0.0), rest.slope())
                    }
                });
            }
            let follows = world.evaluate(self, holds)?;
            for id in tensors {
                let entries = found.entry(*id).or_default();
                for tuple in follows.get(id).into_iter().flatten() {
                    let entry = entries.entry(tuple.clone()).or_insert((M::new(0.0), false));
                    *entry = (entry.0.plus(weight), entry.1 || possible);
                }
            }
            let Some(next) = (0..at.len()).find(|place| at[*place] < choices[*place].tuples.len()) else {
                break;
            };
            at[next] += 1;
            at[..next].fill(0);
        }
        let there = |tuples: BTreeMap<Tuple, (M, bool)>| {
            let possible = tuples.into_iter().filter(|(_, (_, possible))| *possible);
            possible.map(|(tuple, (value, _))| (tuple, value)).collect()
        };
        Ok(found.into_iter().map(|(id, tuples)| (id, there(tuples))).collect())
    }

    /// The weighted tuples below relations, those that exclude each other together.
    fn choices<M: Number>(
        &self,
        below: &BTreeSet<TensorId>,
        lift: &mut dyn FnMut(TensorId, &Tuple, N) -> M,
    ) -> Result<Vec<Choice<M>>> {
        let mut sources = below.clone();
        for equation in self.program.equations.iter().filter(|equation| below.contains(&equation.tensor)) {
            for (read, _) in equation.terms.iter().flat_map(|term| reads(&term.body)) {
                if self.program.tensor(read.tensor).kind != Kind::Bool {
                    sources.insert(read.tensor);
                }
            }
        }
        let mut choices: Vec<Choice<M>> = Vec::new();
        for id in sources {
            let apart =
                self.program.exclusive.iter().find(|(tensor, _)| *tensor == id).map(|(_, place)| *place);
            let mut groups: BTreeMap<Tuple, usize> = BTreeMap::new();
            for (tuple, weight) in self.weights(id, below.contains(&id))? {
                let (name, value) = (self.program.name(id), weight.value());
                let shown = self.program.show_tuple(&tuple);
                if !(-ROUNDING..=1.0 + ROUNDING).contains(&value) {
                    let message = format!("`{name}({shown})` is {value}, which is no probability");
                    return Err(Refusal::new(Code::BadProbability, self.program.left_side(id), message));
                }
                let given = below.contains(&id) && self.program.tensor(id).role != Role::Parameter;
                let group = apart.map(|place| {
                    let mut rest = tuple.clone();
                    rest.remove(place);
                    rest
                });
                let known = group.as_ref().and_then(|group| groups.get(group)).copied();
                let at = known.unwrap_or(choices.len());
                if at == choices.len() {
                    choices.push(Choice { tuples: Vec::new(), certain: None });
                }
                groups.extend(group.map(|group| (group, at)));
                let choice = &mut choices[at];
                if given && value == 1.0 {
                    choice.certain = Some(choice.tuples.len());
                }
                let weight = lift(id, &tuple, N::with(value.clamp(0.0, 1.0), weight.slope()));
                choice.tuples.push((id, tuple, weight));
                let sum: f64 = choice.tuples.iter().map(|(_, _, weight)| weight.value()).sum();
                if sum > 1.0 + ROUNDING {
                    let message =
                        format!("tuples of `{name}` that exclude `{shown}` have {sum} together with it");
                    return Err(Refusal::new(Code::BadProbability, self.program.left_side(id), message));
                }
            }
        }
        Ok(choices)
    }

    /// The weighted tuples of a relation, or the elements of another tensor.
    fn weights(&self, id: TensorId, proved: bool) -> Result<Vec<(Tuple, N)>> {
        let tensor = self.program.tensor(id);
        let mut found: Vec<(Tuple, N)> = Vec::new();
        if proved {
            self.each_given(id, &mut |tuple, value| {
                let inside = |(place, value): (&Place, &Const)| {
                    place.limit.as_ref().is_none_or(|domain| domain.contains(*value))
                };
                if tensor.places.iter().zip(&tuple).all(inside) {
                    found.push((tuple, value));
                }
                Ok(())
            })?;
            return Ok(found);
        }
        match self.store(id) {
            Some(Store::Dense(domains, values)) => {
                let domains: &[Domain] = domains;
                found.extend(values.iter().enumerate().map(|(at, value)| (element(domains, at), *value)));
            }
            Some(Store::Sparse(tuples)) => {
                found.extend(tuples.iter().map(|(tuple, value)| (tuple.clone(), *value)));
            }
            None => {}
        }
        Ok(found)
    }
}

/// The factors of a rule, and whether they are denied.
fn reads(body: &Expr) -> Vec<(&Read, bool)> {
    match body {
        Expr::Read(read) => vec![(read, false)],
        Expr::Missing(read) => vec![(read, true)],
        Expr::Product(parts) | Expr::Terms(parts) => parts.iter().flat_map(reads).collect(),
        _ => Vec::new(),
    }
}

/// Relations with probabilities that some follow from, themselves among them.
fn proved_below(program: &Program, tensors: &[TensorId]) -> BTreeSet<TensorId> {
    let mut below: BTreeSet<TensorId> = tensors.iter().copied().collect();
    loop {
        let before = below.len();
        for equation in &program.equations {
            if below.contains(&equation.tensor) {
                let factors = equation.terms.iter().flat_map(|term| reads(&term.body));
                let proved =
                    factors.map(|(read, _)| read.tensor).filter(|id| program.tensor(*id).is_proved());
                below.extend(proved);
            }
        }
        if below.len() == before {
            return below;
        }
    }
}

/// The program of a world: what is true or false in it stands in tensors of its own, beside the values that guards see.
struct World {
    program: Program,
    /// Each tensor whose tuples hold or not, and the relation that says so.
    inside: BTreeMap<TensorId, TensorId>,
    components: Vec<Component>,
}

impl World {
    fn of(program: &Program, below: &BTreeSet<TensorId>) -> World {
        let mut world = World { program: program.clone(), inside: BTreeMap::new(), components: Vec::new() };
        for id in below {
            world.copy(*id);
        }
        for component in &program.components {
            if !component.tensors.iter().any(|id| below.contains(id)) {
                continue;
            }
            let mut equations = Vec::new();
            for id in &component.equations {
                let mut equation = program.equation(*id).clone();
                equation.tensor = world.copy(equation.tensor);
                for term in &mut equation.terms {
                    world.factors(&mut term.body);
                }
                equations.push(EquationId(world.program.equations.len() as u32));
                world.program.equations.push(equation);
            }
            let tensors = component.tensors.iter().map(|id| world.copy(*id)).collect();
            world.components.push(Component { tensors, equations, class: component.class.clone() });
        }
        let listed: BTreeSet<TensorId> = program.components.iter().flat_map(|c| c.tensors.clone()).collect();
        for id in below.difference(&listed) {
            let class = tensor_logic_core::program::Class::Plain;
            let copy = Component { tensors: vec![world.copy(*id)], equations: Vec::new(), class };
            world.components.insert(0, copy);
        }
        world
    }

    /// The relation that says which tuples of a tensor hold.
    fn copy(&mut self, id: TensorId) -> TensorId {
        if let Some(copy) = self.inside.get(&id) {
            return *copy;
        }
        let copy = TensorId(self.program.tensors.len() as u32);
        let tensor = Tensor {
            style: Style::Round,
            kind: Kind::Bool,
            combine: Combine::Exists,
            given: Vec::new(),
            role: Role::Data,
            start: None,
            ..self.program.tensor(id).clone()
        };
        self.program.tensors.push(tensor);
        self.inside.insert(id, copy);
        copy
    }

    fn factors(&mut self, body: &mut Expr) {
        match body {
            Expr::Read(read) | Expr::Missing(read) if self.program.tensor(read.tensor).kind != Kind::Bool => {
                read.tensor = self.copy(read.tensor);
                read.otherwise = Otherwise::Absent;
            }
            Expr::Product(parts) | Expr::Terms(parts) => parts.iter_mut().for_each(|part| self.factors(part)),
            _ => {}
        }
    }

    /// What follows where these tuples hold.
    fn evaluate<N: Number>(
        &self,
        outside: &Machine<'_, N>,
        mut holds: BTreeMap<TensorId, Facts>,
    ) -> Result<BTreeMap<TensorId, Vec<Tuple>>> {
        let mut program = self.program.clone();
        for (id, copy) in &self.inside {
            if let (Some(mut facts), Some(tensor)) =
                (holds.remove(id), program.tensors.get_mut(copy.0 as usize))
            {
                facts.arity = tensor.places.len();
                tensor.given.push(Given::Facts(Arc::new(facts)));
            }
        }
        let request = Request { program: &program, ..outside.request.clone() };
        let mut machine: Machine<'_, f64> = Machine::new(&request, None);
        machine.stop = outside.stop.clone();
        for id in (0..outside.program.tensors.len() as u32).map(TensorId) {
            if let Some(store) = outside.store(id) {
                machine.set(id, store.plain());
            }
        }
        for copy in self.inside.values() {
            // Of tensors that are no rules' only the tuples that hold are there.
            if !self.components.iter().any(|component| component.tensors.contains(copy)) {
                let class = tensor_logic_core::program::Class::Plain;
                machine.component(&Component { tensors: vec![*copy], equations: Vec::new(), class })?;
            }
        }
        for component in &self.components {
            machine.component(component)?;
        }
        let tuples = |copy: &TensorId| match machine.store(*copy) {
            Some(Store::Sparse(tuples)) => tuples.keys().cloned().collect(),
            _ => Vec::new(),
        };
        Ok(self.inside.iter().map(|(id, copy)| (*id, tuples(copy))).collect())
    }
}
