//! The most probable derivations of a tuple, from the ground rules of its relation.
//!
//! Enter at [`explained`]. Ground rules are made once more with a note of where each comes from; what is kept of the proofs
//! and in which steps they follow is found by the crate `proof-circuits`.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use proof_circuits::{Atom, Event, Explained, Limits, Literal, Step};

use super::circuits::{Compiled, Found};
use super::rules::{Context, Origin, Weight};
use super::{Level, Plan, asked};
use crate::ast::Span;
use crate::engine::{Engine, Request, Tuples, Value};
use crate::error::Result;
use crate::program::{Given, Kind, Program, TensorId};
use crate::value::{Const, Tuple};
use tensor_logic_core::proof::{Derivations, Derived};

/// So many derivations are listed of what keeps all proofs.
const MOST: usize = 5;

/// What is said of a tuple with a probability.
pub struct Probable {
    /// Its most probable derivations.
    pub derivations: Derivations,
    /// The tuples of relations with probabilities that it may rest on, where nothing reads their values: those that follow from
    /// what is certain with the value 1, others with a smaller one. A search for proofs needs no others.
    pub below: Vec<(TensorId, Value)>,
}

/// The most probable derivations of the only tuple of a goal without places: of the type `topk(k)` those that are kept, of
/// `prob` the most probable five at most. `None` where the goal is no relation with probabilities; none where it is underivable.
///
/// # Errors
/// `bad-probability`, `budget`, and what the engine refuses.
pub fn explained(request: &Request<'_>, engine: &mut dyn Engine, goal: TensorId) -> Result<Option<Probable>> {
    let program = request.program;
    let tensor = program.tensor(goal);
    if !tensor.is_proved() || !tensor.places.is_empty() {
        return Ok(None);
    }
    let stop = engine.stop();
    let stamp = program.stamp.number();
    let asked = asked(program, &[goal]);
    let mut plan = Plan { stamp, asked, levels: Vec::new(), explained: true, program: None };
    plan.evaluate(request, &stop, &mut |request, goals| engine.values(request, goals))?;
    let own = |level: &&Level| level.relations.contains_key(&goal);
    let Some(level) = plan.levels.iter().find(own) else { return Ok(None) };
    let (Some(compiled), Some(found)) = (&level.compiled, &level.found) else { return Ok(None) };
    let context = Context {
        program,
        parameters: request.parameters,
        budget: request.budget,
        stop: &stop,
        explained: true,
    };
    let is_alone = plan.asked.len() == 1;
    let below = if is_alone { compiled.below(&context, level, found)? } else { Vec::new() };
    let Some(atom) = compiled.named.atoms.get(&(goal, Tuple::new())).copied() else {
        let derivations = Derivations { derivations: Vec::new(), exact: true };
        return Ok(Some(Probable { derivations, below }));
    };
    let explained = compiled.explain(&context, (goal, atom), found)?;
    let atoms = compiled.named.atoms.iter().map(|(named, atom)| (*atom, named)).collect();
    let given = compiled.given(program, &explained);
    let reader = Reader { compiled, atoms, weights: &found.weights, given };
    let derivations =
        explained.proofs.iter().map(|proof| (proof.probability, reader.derivation(&proof.steps)));
    let derivations = Derivations { derivations: derivations.collect(), exact: explained.exact };
    Ok(Some(Probable { derivations, below }))
}

impl Compiled {
    /// The tuples of all relations that stand in ground rules, as far as they follow in some world.
    fn below(&self, context: &Context<'_>, level: &Level, found: &Found) -> Result<Vec<(TensorId, Value)>> {
        let mut named: Vec<(&(TensorId, Tuple), Atom)> =
            self.named.atoms.iter().map(|(named, atom)| (named, *atom)).collect();
        let symbols = &context.program.symbols;
        named.sort_by(|((a, left), _), ((b, right), _)| {
            a.cmp(b).then_with(|| symbols.compare_tuples(left, right))
        });
        let atoms: Vec<Atom> = named.iter().map(|(_, atom)| *atom).collect();
        let possible = self.possible(context, &atoms, &found.weights)?;
        let mut below: BTreeMap<TensorId, Tuples> =
            level.grounding.needed.keys().map(|id| (*id, Tuples::default())).collect();
        let certain = self.proofs.follows_surely();
        for (((id, tuple), atom), _) in named.into_iter().zip(possible).filter(|(_, possible)| *possible) {
            let tuples = below.entry(*id).or_default();
            let is_certain = certain.get(atom.0 as usize).copied().unwrap_or(false);
            tuples.tuples.push(tuple.clone());
            tuples.values.push(if is_certain { 1.0 } else { 0.5 });
        }
        Ok(below.into_iter().map(|(id, tuples)| (id, Value::Tuples(tuples))).collect())
    }

    fn explain(
        &self,
        context: &Context<'_>,
        (goal, atom): (TensorId, Atom),
        found: &Found,
    ) -> Result<Explained> {
        let limits = Limits { stop: &|| context.stop.asked(), ..Limits::default() };
        let explained = match self.keep() {
            None => self.proofs.best(atom, MOST, &found.weights, &limits),
            Some(keep) => {
                let most = match context.program.tensor(goal).kind {
                    Kind::TopK(proofs) => proofs as usize,
                    _ => MOST,
                };
                self.proofs.kept(atom, &keep, most, &found.weights, &limits)
            }
        };
        explained.map_err(|failure| self.refused(context, Some(goal), &failure))
    }

    /// Where the given tuples are given that proofs use, and whether the text says it.
    fn given(&self, program: &Program, explained: &Explained) -> HashMap<Event, (Span, bool)> {
        let steps = explained.proofs.iter().flat_map(|proof| &proof.steps);
        let mut wanted: HashMap<(TensorId, &[Const], u64), Vec<Event>> = HashMap::new();
        for event in steps.filter_map(|step| event_of(step.literal)).collect::<BTreeSet<_>>() {
            if let Some((id, Weight::Given(tuple, weight))) = self.weights.get(event.0 as usize) {
                wanted.entry((*id, tuple, weight.to_bits())).or_default().push(event);
            }
        }
        let mut found = HashMap::new();
        for id in wanted.keys().map(|(id, ..)| *id).collect::<BTreeSet<_>>() {
            for block in &program.tensor(id).given {
                let Given::Facts(facts) = block else { continue };
                for at in 0..facts.count {
                    // What is given several times with one weight is several events, in that order.
                    let events = wanted.get_mut(&(id, facts.tuple(at), facts.value(at).to_bits()));
                    if let Some(events) = events
                        && !events.is_empty()
                    {
                        let span = facts.spans.get(at).copied();
                        let source = (span.unwrap_or(facts.source), span.is_some());
                        found.insert(events.remove(0), source);
                    }
                }
            }
        }
        found
    }
}

/// Reads derivations in the words of a program.
struct Reader<'a> {
    compiled: &'a Compiled,
    atoms: HashMap<Atom, &'a (TensorId, Tuple)>,
    weights: &'a [f64],
    given: HashMap<Event, (Span, bool)>,
}

impl Reader<'_> {
    fn derivation(&self, steps: &[Step]) -> Vec<Derived> {
        // Steps that stand for another one, or for several, and the place of each that is left.
        let mut places = vec![0; steps.len()];
        let mut kept = Vec::new();
        for (at, step) in steps.iter().enumerate() {
            places[at] = kept.len();
            if !self.is_passed(step) {
                kept.push(step);
            }
        }
        let placed = |from: &[usize]| {
            let mut parts: Vec<usize> =
                from.iter().flat_map(|part| self.stands_for(steps, *part)).map(|part| places[part]).collect();
            let mut seen = BTreeSet::new();
            parts.retain(|part| seen.insert(*part));
            parts
        };
        kept.into_iter().filter_map(|step| self.step(step, &placed)).collect()
    }

    /// Whether a step is left out: an atom that is given stands for its fact, one that is denied for the events that deny it.
    fn is_passed(&self, step: &Step) -> bool {
        match (step.literal, step.rule) {
            (Literal::FollowsNot(_), _) => true,
            (_, Some(rule)) => matches!(self.compiled.named.rules.get(rule), Some(Origin::Given)),
            _ => false,
        }
    }

    fn stands_for(&self, steps: &[Step], at: usize) -> Vec<usize> {
        match steps.get(at) {
            // What it rests on are events.
            Some(step) if self.is_passed(step) => step.from.clone(),
            _ => vec![at],
        }
    }

    fn step(&self, step: &Step, placed: &dyn Fn(&[usize]) -> Vec<usize>) -> Option<Derived> {
        if let Some(event) = event_of(step.literal) {
            let (id, Weight::Given(tuple, _) | Weight::Element(tuple)) =
                self.compiled.weights.get(event.0 as usize)?;
            let weight = self.weights.get(event.0 as usize).copied().unwrap_or(0.0);
            let holds = step.literal == Literal::Is(event);
            return Some(Derived::Event {
                tensor: *id,
                tuple: tuple.clone(),
                holds,
                probability: if holds { weight } else { 1.0 - weight },
                given: self.given.get(&event).copied(),
                from: placed(&step.from),
            });
        }
        let Literal::Follows(atom) = step.literal else { return None };
        let (tensor, tuple) = (*self.atoms.get(&atom)?).clone();
        let Some(Origin::Rule { equation, binding, ends }) = self.compiled.named.rules.get(step.rule?) else {
            return None;
        };
        let mut begin = 0;
        let factors = ends
            .iter()
            .map(|end| placed(step.from.get(std::mem::replace(&mut begin, *end)..*end).unwrap_or(&[])));
        let factors = factors.collect();
        Some(Derived::Rule { tensor, tuple, equation: *equation, binding: binding.clone(), factors })
    }
}

fn event_of(literal: Literal) -> Option<Event> {
    match literal {
        Literal::Is(event) | Literal::IsNot(event) => Some(event),
        Literal::Follows(_) | Literal::FollowsNot(_) => None,
    }
}
