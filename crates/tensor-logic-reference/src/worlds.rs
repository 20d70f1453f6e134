//! Weighted facts by their definition: every world in turn.
//!
//! Enter at [`Machine::by_worlds`]. A world says of every weighted tuple below some relations whether it holds; its weight is
//! the product of the tuples' probabilities and complements. In a world the relations are Boolean, and are evaluated like
//! any other. What a tuple's worlds weigh together is its probability. The time is exponential in the number of tuples.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::machine::Machine;
use super::number::{Dual, Number, added};
use super::store::{Event, Events, Proofs, Store};
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

/// The tuples of relations, with what the worlds weigh in which they follow.
type Weighed<M> = BTreeMap<TensorId, BTreeMap<Tuple, M>>;

/// Tuples of one relation of which at most one holds.
struct Choice<N> {
    tuples: Vec<(Event, Tuple, N)>,
    /// The one that holds for certain.
    certain: Option<usize>,
}

impl<N: Number> Machine<'_, N> {
    /// Relations of the types `prob` and `topk`. Of the latter all proofs are kept where they go through a denial or a recursion.
    pub(super) fn by_worlds(&mut self, component: &Component) -> Result<()> {
        let kept = self.kept(component);
        let (found, proofs) = self.worlds(&component.tensors, kept, &mut |_, _, weight| weight)?;
        found.into_iter().for_each(|(id, tuples)| self.set(id, Store::Sparse(tuples)));
        self.proofs.extend(kept.and(component.tensors.first()).map(|id| (*id, proofs)));
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
        let kept = match self.program.tensor(relation).kind {
            Kind::TopK(kept) if self.proofs.contains_key(&relation) => Some(kept as usize),
            _ => None,
        };
        let mut slopes: BTreeMap<Tuple, N> = BTreeMap::new();
        for (_, element, _) in self.weights(source, self.program.tensor(source).is_proved())? {
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
            let (found, _) = self.worlds(&[relation], kept, &mut lift)?;
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

    /// How many proofs are kept, where proofs are sets of weighted tuples: without denials, and of no recursion.
    fn kept(&self, component: &Component) -> Option<usize> {
        let [id] = component.tensors.as_slice() else { return None };
        let Kind::TopK(kept) = self.program.tensor(*id).kind else { return None };
        let own = component.equations.iter().flat_map(|own| &self.program.equation(*own).terms);
        let computed = |id| self.program.equations.iter().any(|equation| equation.tensor == id);
        let fits = |(read, denied): (&Read, bool)| {
            let tensor = self.program.tensor(read.tensor);
            let known =
                !tensor.is_proved() || self.proofs.contains_key(&read.tensor) || !computed(read.tensor);
            tensor.kind == Kind::Bool || (known && !denied)
        };
        own.flat_map(|term| reads(&term.body)).all(fits).then_some(kept as usize)
    }

    /// The tuples of relations that follow in some world, with what their worlds weigh: those with one of the most probable
    /// proofs, where only some are `kept`.
    fn worlds<M: Number>(
        &self,
        tensors: &[TensorId],
        kept: Option<usize>,
        lift: &mut dyn FnMut(TensorId, &Tuple, N) -> M,
    ) -> Result<(Weighed<M>, Proofs)> {
        let below = proved_below(self.program, tensors);
        let choices = self.choices(&below, lift)?;
        let worlds = choices.iter().map(|choice| choice.tuples.len() as u128 + 1);
        if worlds.fold(1, u128::saturating_mul) > MOST {
            let message =
                format!("the reference goes through all worlds, and {} choices have too many", choices.len());
            let at = tensors.first().map_or_else(Default::default, |id| self.program.left_side(*id));
            return Err(Refusal::new(Code::TooLarge, at, message));
        }
        let known = |id: TensorId| self.proofs.contains_key(&id) && !tensors.contains(&id);
        let world = World::of(self.program, &below, &known);
        let mut found: BTreeMap<TensorId, BTreeMap<Tuple, Following<M>>> = BTreeMap::new();
        each_world(&choices, &mut |at| {
            let events = events(&choices, at);
            let mut holds: BTreeMap<TensorId, Facts> = BTreeMap::new();
            for ((_, tensor, _), tuple, _) in
                choices.iter().zip(at).filter_map(|(choice, which)| choice.tuples.get(*which))
            {
                holds.entry(*tensor).or_default().push(tuple, 1.0, None);
            }
            // What has been proved holds where a proof does that was kept.
            for (id, tuples) in self.proofs.iter().filter(|(id, _)| below.contains(id) && known(**id)) {
                let own =
                    tuples.iter().filter(|(_, proofs)| proofs.iter().any(|proof| proof.is_subset(&events)));
                let mut facts = Facts::default();
                own.for_each(|(tuple, _)| facts.push(tuple, 1.0, None));
                holds.insert(*id, facts);
            }
            let possible = choices
                .iter()
                .zip(at)
                .all(|(choice, at)| choice.certain.is_none_or(|certain| certain == *at));
            // A proof may lack what is certain, and has nothing that this excludes.
            let may_be = choices.iter().zip(at).all(|(choice, at)| {
                choice.certain.is_none_or(|certain| certain == *at || *at == choice.tuples.len())
            });
            let weight = weight(&choices, at);
            let follows = world.evaluate(self, holds)?;
            for id in tensors {
                let entries = found.entry(*id).or_default();
                for tuple in follows.get(id).into_iter().flatten() {
                    let entry = entries.entry(tuple.clone()).or_default();
                    entry.weight = Some(entry.weight.map_or(weight, |before| before.plus(weight)));
                    entry.possible |= possible;
                    if kept.is_some() && may_be {
                        entry.proved_by(&events);
                    }
                }
            }
            Ok(())
        })?;
        let mut there: Weighed<M> = BTreeMap::new();
        let mut proofs = BTreeMap::new();
        for (id, tuples) in found {
            let own = there.entry(id).or_default();
            for (tuple, mut following) in tuples.into_iter().filter(|(_, following)| following.possible) {
                if let Some(most) = kept.filter(|most| following.proofs.len() > *most) {
                    following.keep(&choices, most)?;
                }
                own.insert(tuple.clone(), following.weight.unwrap_or_else(|| M::new(0.0)));
                proofs.insert(tuple, following.proofs);
            }
        }
        Ok((there, proofs))
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
            for (nth, (stands, tuple, weight)) in
                self.weights(id, below.contains(&id))?.into_iter().enumerate()
            {
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
                choice.tuples.push(((stands, id, nth), tuple, weight));
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

    /// The weighted tuples of a relation, or the elements of another tensor, each with where it stands in the text.
    fn weights(&self, id: TensorId, proved: bool) -> Result<Vec<(usize, Tuple, N)>> {
        let tensor = self.program.tensor(id);
        let mut found: Vec<(usize, Tuple, N)> = Vec::new();
        let stands = tensor.span.start;
        if proved {
            let facts = tensor.given.iter().filter_map(Given::facts);
            let spans = facts.flat_map(|facts| {
                let span = |at| facts.spans.get(at).unwrap_or(&facts.source).start;
                (0..facts.count).map(span).collect::<Vec<_>>()
            });
            let mut spans = spans.collect::<Vec<_>>().into_iter();
            let learned = tensor.role == Role::Parameter;
            self.each_given(id, &mut |tuple, value| {
                let own = if learned { stands } else { spans.next().unwrap_or(stands) };
                let inside = |(place, value): (&Place, &Const)| {
                    place.limit.as_ref().is_none_or(|domain| domain.contains(*value))
                };
                if tensor.places.iter().zip(&tuple).all(inside) {
                    found.push((own, tuple, value));
                }
                Ok(())
            })?;
            return Ok(found);
        }
        match self.store(id) {
            Some(Store::Dense(domains, values)) => {
                let domains: &[Domain] = domains;
                let all = values.iter().enumerate();
                found.extend(all.map(|(at, value)| (stands, element(domains, at), *value)));
            }
            Some(Store::Sparse(tuples)) => {
                found.extend(tuples.iter().map(|(tuple, value)| (stands, tuple.clone(), *value)));
            }
            None => {}
        }
        Ok(found)
    }
}

/// A tuple that follows in some world.
struct Following<M> {
    /// What its worlds weigh.
    weight: Option<M>,
    /// Whether it follows in a world that agrees with all that is certain.
    possible: bool,
    /// The smallest sets of events from which it follows, where they are asked for.
    proofs: Vec<Events>,
}

impl<M> Default for Following<M> {
    fn default() -> Self {
        Following { weight: None, possible: false, proofs: Vec::new() }
    }
}

impl<M: Number> Following<M> {
    /// It follows in this world too.
    fn proved_by(&mut self, events: &Events) {
        if !self.proofs.iter().any(|proof| proof.is_subset(events)) {
            self.proofs.retain(|proof| !events.is_subset(proof));
            self.proofs.push(events.clone());
        }
    }

    /// Keeps the most probable proofs (ties: those of fewer events, then those that stand first), and weighs the worlds that
    /// have one of them.
    fn keep(&mut self, choices: &[Choice<M>], most: usize) -> Result<()> {
        let weights: BTreeMap<Event, f64> = choices
            .iter()
            .flat_map(|choice| choice.tuples.iter().map(|(event, _, weight)| (*event, weight.value())))
            .collect();
        let probability =
            |proof: &Events| proof.iter().filter_map(|event| weights.get(event)).product::<f64>();
        self.proofs.sort_by(|a, b| {
            let by_size = || a.len().cmp(&b.len()).then_with(|| a.cmp(b));
            probability(b).total_cmp(&probability(a)).then_with(by_size)
        });
        self.proofs.truncate(most);
        let mut sum = M::new(0.0);
        each_world(choices, &mut |at| {
            let events = events(choices, at);
            if self.proofs.iter().any(|proof| proof.is_subset(&events)) {
                sum = sum.plus(weight(choices, at));
            }
            Ok(())
        })?;
        self.weight = Some(sum);
        Ok(())
    }
}

/// Calls `visit` for every world: the number of the tuple that holds of each choice, the number of them if none does.
fn each_world<M>(choices: &[Choice<M>], visit: &mut dyn FnMut(&[usize]) -> Result<()>) -> Result<()> {
    let mut at = vec![0; choices.len()];
    loop {
        visit(&at)?;
        let Some(next) = (0..at.len()).find(|place| at[*place] < choices[*place].tuples.len()) else {
            return Ok(());
        };
        at[next] += 1;
        at[..next].fill(0);
    }
}

/// The probability of a world.
fn weight<M: Number>(choices: &[Choice<M>], at: &[usize]) -> M {
    choices.iter().zip(at).fold(M::new(1.0), |weight, (choice, which)| {
        weight.times(match choice.tuples.get(*which) {
            Some((_, _, weight)) => *weight,
            None => {
                let minus = |rest: M, (_, _, weight): &(Event, Tuple, M)| {
                    let slope = added(rest.slope(), weight.slope().map(|slope| -slope));
                    M::with(rest.value() - weight.value(), slope)
                };
                let rest = choice.tuples.iter().fold(M::new(1.0), minus);
                M::with(rest.value().max(0.0), rest.slope())
            }
        })
    })
}

/// What happens in a world.
fn events<M>(choices: &[Choice<M>], at: &[usize]) -> Events {
    choices.iter().zip(at).filter_map(|(choice, which)| Some(choice.tuples.get(*which)?.0)).collect()
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
    /// What is `known` is given in each world.
    fn of(program: &Program, below: &BTreeSet<TensorId>, known: &dyn Fn(TensorId) -> bool) -> World {
        let mut world = World { program: program.clone(), inside: BTreeMap::new(), components: Vec::new() };
        for id in below {
            world.copy(*id);
        }
        for component in &program.components {
            if !component.tensors.iter().any(|id| below.contains(id) && !known(*id)) {
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
