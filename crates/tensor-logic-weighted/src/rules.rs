//! Ground rules, from the bindings that a grounding found.

use std::collections::{BTreeMap, HashMap, HashSet};

use proof_circuits::{Atom, Event, Literal, Proofs};

use crate::engine::{Budget, Parameters, Stop, Value};
use crate::ground::Grounding;
use crate::program::{Argument, EquationId, IndexFn, IndexId, Kind, Program, Read, Role, TensorId, Term};
use crate::value::{Const, Domain, Tuple, element};
use tensor_logic_core::weighted::factors;

/// What is at hand while ground rules become circuits.
pub(super) struct Context<'a> {
    pub(super) program: &'a Program,
    pub(super) parameters: &'a Parameters,
    pub(super) budget: Budget,
    pub(super) stop: &'a Stop,
    /// Whether somebody will ask where ground rules come from.
    pub(super) explained: bool,
}

/// Ground rules, and what their atoms and events stand for.
pub(super) struct Rules {
    pub(super) proofs: Proofs,
    /// What has each event's weight.
    pub(super) weights: Vec<(TensorId, Weight)>,
    /// The needed tuples of each relation, in the order of answers.
    pub(super) needed: BTreeMap<TensorId, Vec<Tuple>>,
    pub(super) atoms: HashMap<(TensorId, Tuple), Atom>,
    /// How many proofs of each atom are kept.
    pub(super) keep: Vec<u32>,
    /// Where each ground rule comes from, if somebody will ask.
    pub(super) origins: Vec<Origin>,
}

/// Where a ground rule comes from.
pub(super) enum Origin {
    /// A tuple is given.
    Given,
    /// A rule under a binding.
    Rule {
        equation: EquationId,
        binding: Vec<(IndexId, Const)>,
        /// Where the literals of each factor end.
        ends: Vec<usize>,
    },
}

/// Where the weight of an event stands.
#[derive(Clone)]
pub(super) enum Weight {
    /// A given tuple, with its weight.
    Given(Tuple, f64),
    /// An element of a parameter or of another tensor.
    Element(Tuple),
}

/// A factor of a ground rule.
enum Factor {
    Follows(Atom),
    FollowsNot(Atom),
    Is(usize),
    IsNot(usize),
    /// Never: it denies nothing that may be.
    Never,
}

/// What is known while ground rules are read.
struct Reader<'a> {
    context: &'a Context<'a>,
    proofs: Proofs,
    atoms: HashMap<(TensorId, Tuple), Atom>,
    /// The needed tuples of each relation.
    needed: BTreeMap<TensorId, Vec<Tuple>>,
    events: HashMap<(TensorId, Tuple), usize>,
    weights: Vec<(TensorId, Weight)>,
    /// Where in the text the weight of each event stands: its tensor or its own fact, and which of them it is.
    stands: Vec<(usize, usize)>,
    /// The elements of tensors that are read as probabilities.
    elements: BTreeMap<TensorId, Elements>,
    /// Where the literals of each factor of the last rule end.
    ends: Vec<usize>,
    origins: Vec<Origin>,
}

/// The elements that a tensor has.
pub(super) enum Elements {
    Square(Vec<Domain>),
    Round(HashMap<Tuple, usize>),
}

/// The ground rules, where `values` are those of the needed tuples, of the bindings and of the tagged tensors of a grounding,
/// in that order.
pub(super) fn rules(context: &Context<'_>, grounding: &Grounding, values: &[Value]) -> Rules {
    let mut strata: BTreeMap<TensorId, u32> = BTreeMap::new();
    for (at, component) in (1..).zip(&context.program.components) {
        strata.extend(component.tensors.iter().map(|id| (*id, at)));
    }
    let (mut needed, mut atoms, mut proofs) = (BTreeMap::new(), HashMap::new(), Proofs::default());
    let mut keep = Vec::new();
    for (id, value) in grounding.needed.keys().zip(values) {
        let Value::Tuples(tuples) = value else { continue };
        for tuple in &tuples.tuples {
            let atom = proofs.atom(strata.get(id).copied().unwrap_or(0));
            atoms.insert((*id, tuple.clone()), atom);
            keep.push(match context.program.tensor(*id).kind {
                Kind::TopK(proofs) => proofs,
                _ => u32::MAX,
            });
        }
        needed.insert(*id, tuples.tuples.clone());
    }
    let (_, rest) = values.split_at(grounding.needed.len().min(values.len()));
    let (bindings, tagged) = rest.split_at(grounding.bindings.len().min(rest.len()));
    let elements =
        grounding.tagged.iter().zip(tagged).map(|(id, value)| (*id, Elements::of(context, *id, value)));
    let elements = elements.collect();
    let (events, weights, stands) = (HashMap::new(), Vec::new(), Vec::new());
    let (ends, origins) = (Vec::new(), Vec::new());
    let mut reader =
        Reader { context, proofs, atoms, needed, events, weights, stands, elements, ends, origins };
    let mut rules: Vec<(Atom, Vec<Factor>)> = Vec::new();
    for (bindings, value) in grounding.bindings.iter().zip(bindings) {
        let Value::Tuples(tuples) = value else { continue };
        let equation = context.program.equation(bindings.equation);
        for tuple in &tuples.tuples {
            let bound = |index: IndexId| {
                let at = bindings.indices.iter().position(|other| *other == index)?;
                tuple.get(at).copied()
            };
            for term in &equation.terms {
                let rule = reader.rule(equation.tensor, &equation.head, term, &bound);
                if context.explained && rule.is_some() {
                    let binding = bindings.indices.iter().copied().zip(tuple.iter().copied()).collect();
                    let ends = reader.ends.clone();
                    reader.origins.push(Origin::Rule { equation: bindings.equation, binding, ends });
                }
                rules.extend(rule);
            }
        }
    }
    rules.extend(reader.given());
    reader.finished(rules, keep)
}

/// The row-major position of an element.
pub(super) fn position(domains: &[Domain], tuple: &[Const]) -> Option<usize> {
    let step =
        |at: usize, (domain, value): (&Domain, &Const)| Some(at * domain.len() + domain.ordinal(*value)?);
    domains.iter().zip(tuple).try_fold(0, step)
}

impl Elements {
    pub(super) fn of(context: &Context<'_>, id: TensorId, value: &Value) -> Elements {
        match value {
            Value::Tuples(tuples) => Elements::Round(tuples.tuples.iter().cloned().zip(0..).collect()),
            Value::Dense(_) | Value::Counts(_) => Elements::Square(context.program.tensor(id).domains()),
        }
    }

    pub(super) fn position(&self, tuple: &[Const]) -> Option<usize> {
        match self {
            Elements::Square(domains) => position(domains, tuple),
            Elements::Round(tuples) => tuples.get(tuple).copied(),
        }
    }
}

impl Reader<'_> {
    /// A ground rule, if its head is needed and nothing in it is impossible.
    fn rule(
        &mut self,
        tensor: TensorId,
        head: &[IndexFn],
        term: &Term,
        bound: &impl Fn(IndexId) -> Option<Const>,
    ) -> Option<(Atom, Vec<Factor>)> {
        let value = |function: &IndexFn| function.evaluate(bound, &|_| None);
        let element: Option<Tuple> = head.iter().map(value).collect();
        let head = *self.atoms.get(&(tensor, element?))?;
        let mut body = Vec::new();
        self.ends.clear();
        for (read, denied) in factors(term) {
            let places: Option<Vec<Option<Const>>> = read
                .arguments
                .iter()
                .map(|argument| match argument {
                    Argument::At(function) => value(function).map(Some),
                    Argument::Any => Some(None),
                })
                .collect();
            self.factor(read, denied, places, &mut body);
            self.ends.push(body.len());
        }
        let never = body.iter().any(|factor| matches!(factor, Factor::Never));
        (!never).then_some((head, body))
    }

    fn factor(
        &mut self,
        read: &Read,
        denied: bool,
        places: Option<Vec<Option<Const>>>,
        body: &mut Vec<Factor>,
    ) {
        let id = read.tensor;
        let Some(places) = places else {
            // An element that no index function names is not there.
            body.extend((!denied).then_some(Factor::Never));
            return;
        };
        let exact: Option<Tuple> = places.iter().copied().collect();
        match (exact, self.needed.contains_key(&id)) {
            (Some(tuple), true) => match (self.atoms.get(&(id, tuple)), denied) {
                (Some(atom), false) => body.push(Factor::Follows(*atom)),
                (Some(atom), true) => body.push(Factor::FollowsNot(*atom)),
                (None, false) => body.push(Factor::Never),
                (None, true) => {}
            },
            (Some(tuple), false) => {
                let there =
                    self.elements.get(&id).is_some_and(|elements| elements.position(&tuple).is_some());
                match (there, denied) {
                    (true, false) => body.push(Factor::Is(self.event(id, tuple))),
                    (true, true) => body.push(Factor::IsNot(self.event(id, tuple))),
                    (false, false) => body.push(Factor::Never),
                    (false, true) => {}
                }
            }
            // `_` under `not`: no value satisfies it.
            (None, proved) => {
                let fits = |tuple: &Tuple| {
                    tuple.iter().zip(&places).all(|(value, place)| place.is_none_or(|place| place == *value))
                };
                if proved {
                    let all = self.needed.get(&id).into_iter().flatten().filter(|tuple| fits(tuple));
                    let atoms = all.filter_map(|tuple| self.atoms.get(&(id, tuple.clone())));
                    body.extend(atoms.map(|atom| Factor::FollowsNot(*atom)));
                } else {
                    let all: Vec<Tuple> = match self.elements.get(&id) {
                        Some(Elements::Round(tuples)) => {
                            tuples.keys().filter(|tuple| fits(tuple)).cloned().collect()
                        }
                        Some(Elements::Square(domains)) => {
                            let count = domains.iter().map(Domain::len).product();
                            (0..count).map(|at| element(domains, at)).filter(fits).collect()
                        }
                        None => Vec::new(),
                    };
                    let mut all = all;
                    all.sort_by(|a, b| self.context.program.symbols.compare_tuples(a, b));
                    for tuple in all {
                        let event = self.event(id, tuple);
                        body.push(Factor::IsNot(event));
                    }
                }
            }
        }
    }

    /// The event that an element of a tensor is read as.
    fn event(&mut self, id: TensorId, tuple: Tuple) -> usize {
        if let Some(event) = self.events.get(&(id, tuple.clone())) {
            return *event;
        }
        let event = self.weights.len();
        let tensor = self.context.program.tensor(id);
        let nth = match self.elements.get(&id) {
            Some(elements) => elements.position(&tuple),
            None => position(&tensor.domains(), &tuple),
        };
        self.stands.push((tensor.span.start, nth.unwrap_or(0)));
        self.weights.push((id, Weight::Element(tuple.clone())));
        self.events.insert((id, tuple), event);
        event
    }

    /// A rule for every given tuple that is needed.
    fn given(&mut self) -> Vec<(Atom, Vec<Factor>)> {
        let mut rules = Vec::new();
        let ids: Vec<TensorId> = self.needed.keys().copied().collect();
        for id in ids {
            let tensor = self.context.program.tensor(id);
            if tensor.role == Role::Parameter {
                for tuple in self.needed.get(&id).cloned().unwrap_or_default() {
                    let Some(atom) = self.atoms.get(&(id, tuple.clone())).copied() else { continue };
                    rules.push((atom, vec![Factor::Is(self.event(id, tuple))]));
                }
            }
            let apart = self.context.program.exclusive.iter().find(|(tensor, _)| *tensor == id);
            let rest = |tuple: &Tuple| {
                let mut rest = tuple.clone();
                apart.map(|(_, place)| {
                    rest.remove(*place);
                    rest
                })
            };
            let needed: HashSet<Tuple> = match apart {
                Some(_) => self.needed.get(&id).into_iter().flatten().filter_map(&rest).collect(),
                None => HashSet::new(),
            };
            for block in &tensor.given {
                let Some(facts) = block.facts() else { continue };
                for at in 0..facts.count {
                    let tuple = facts.tuple(at).to_vec();
                    let stands = (facts.spans.get(at).unwrap_or(&facts.source).start, at);
                    let Some(atom) = self.atoms.get(&(id, tuple.clone())).copied() else {
                        // What is certain excludes others, though nothing asked follows from it.
                        if facts.value(at) == 1.0 && rest(&tuple).is_some_and(|rest| needed.contains(&rest)) {
                            self.stands.push(stands);
                            self.weights.push((id, Weight::Given(tuple, 1.0)));
                        }
                        continue;
                    };
                    let event = self.weights.len();
                    self.stands.push(stands);
                    self.weights.push((id, Weight::Given(tuple, facts.value(at))));
                    rules.push((atom, vec![Factor::Is(event)]));
                }
            }
        }
        rules
    }

    /// The rules over choices: events that exclude each other are alternatives of one. They are numbered as they stand in the text,
    /// whatever reads them first, so that of proofs that are as probable those are kept that stand there first.
    fn finished(mut self, rules: Vec<(Atom, Vec<Factor>)>, keep: Vec<u32>) -> Rules {
        if self.context.explained {
            self.origins.resize_with(rules.len(), || Origin::Given);
        }
        let program = self.context.program;
        let mut proofs = self.proofs;
        let mut groups: Vec<Vec<usize>> = Vec::new();
        let mut group_of: HashMap<(TensorId, Tuple), usize> = HashMap::new();
        let mut in_order: Vec<usize> = (0..self.weights.len()).collect();
        in_order.sort_by_key(|event| self.stands[*event]);
        for event in in_order.iter().copied() {
            let (id, Weight::Given(tuple, _) | Weight::Element(tuple)) = &self.weights[event];
            let apart = program.exclusive.iter().find(|(tensor, _)| tensor == id);
            let group = apart.map(|(_, place)| {
                let mut rest = tuple.clone();
                rest.remove(*place);
                *group_of.entry((*id, rest)).or_insert(groups.len())
            });
            match group {
                Some(group) if group < groups.len() => groups[group].push(event),
                _ => groups.push(vec![event]),
            }
        }
        let mut events = vec![Event(0); self.weights.len()];
        let mut weights = Vec::with_capacity(self.weights.len());
        for group in &groups {
            let first = proofs.choice(group.len() as u32);
            for (event, at) in (first.0..).map(Event).zip(group) {
                events[*at] = event;
                weights.push(self.weights[*at].clone());
                if matches!(self.weights[*at], (_, Weight::Given(_, 1.0))) {
                    proofs.certain(event);
                }
            }
        }
        // Alternatives stand together, and in the text others may stand between them.
        if !in_order.is_sorted_by_key(|event| events[*event]) {
            (0..).zip(&in_order).for_each(|(place, event)| proofs.rank(events[*event], place));
        }
        for (head, body) in rules {
            let literals = body.iter().filter_map(|factor| match factor {
                Factor::Follows(atom) => Some(Literal::Follows(*atom)),
                Factor::FollowsNot(atom) => Some(Literal::FollowsNot(*atom)),
                Factor::Is(event) => events.get(*event).copied().map(Literal::Is),
                Factor::IsNot(event) => events.get(*event).copied().map(Literal::IsNot),
                Factor::Never => None,
            });
            proofs.rule(head, &literals.collect::<Vec<_>>());
        }
        Rules { proofs, weights, needed: self.needed, atoms: self.atoms, keep, origins: self.origins }
    }
}
