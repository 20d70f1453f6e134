//! From ground rules to circuits.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use proof_circuits::{Atom, Circuits, Event, Failure, Limits, Proofs};

use crate::Asked;
use crate::engine::{Numbers, Tuples, Value, interrupted};
use crate::error::{Code, Refusal, Result};
use crate::ground::Grounding;
use crate::program::{Program, Role, Style, TensorId};
use crate::rules::{Context, Elements, Origin, Rules, Weight, position, rules};
use crate::start::start_values;
use crate::value::{Domain, Tuple, element};
use crate::wanted::Wanted;

/// The ground rules of some relations, and their circuits.
pub(super) struct Compiled {
    /// What the grounding said, to be compared with what it says next time.
    said: Vec<Value>,
    pub(super) proofs: Proofs,
    /// What has each event's weight.
    pub(super) weights: Vec<(TensorId, Weight)>,
    /// The tuples of each relation asked for, in the order of answers, as positions in `atoms`.
    asked: BTreeMap<TensorId, Vec<Tuple>>,
    atoms: Vec<Atom>,
    /// How many proofs of an atom are kept, where not all are.
    keep: Option<Vec<u32>>,
    circuits: Option<Arc<Circuits>>,
    /// What ground rules are about, if somebody will ask.
    pub(super) named: Named,
    /// How many tuples of each relation stand in ground rules.
    pub(super) counts: Vec<(TensorId, u64)>,
}

/// What atoms and rules stand for, if somebody will ask.
#[derive(Default)]
pub(super) struct Named {
    pub(super) atoms: HashMap<(TensorId, Tuple), Atom>,
    pub(super) rules: Vec<Origin>,
}

/// Probabilities, and of what they are.
pub(super) struct Found {
    pub(super) tuples: BTreeMap<TensorId, Tuples>,
    pub(super) weights: Vec<f64>,
}

impl Compiled {
    /// The circuits of the tuples that are `asked` for, where `values` are those of the needed tuples, of the bindings and of the tagged
    /// tensors of a grounding, in that order.
    pub(super) fn new(
        context: &Context<'_>,
        grounding: &Grounding,
        asked: &Asked,
        values: &[Value],
    ) -> Compiled {
        let Rules { proofs, weights, needed, atoms: known, keep, origins } =
            rules(context, grounding, values);
        let counts = needed.iter().map(|(id, tuples)| (*id, tuples.len() as u64)).collect();
        // What is needed for the goals below themselves is no goal.
        let goals = |(id, wanted): (&TensorId, &Wanted)| {
            let goals = needed.get(id)?.iter().filter(|tuple| wanted.has(tuple));
            Some((*id, goals.cloned().collect()))
        };
        let asked: BTreeMap<TensorId, Vec<Tuple>> = asked.iter().filter_map(goals).collect();
        let mut atoms = Vec::new();
        for (id, tuples) in &asked {
            atoms.extend(tuples.iter().filter_map(|tuple| known.get(&(*id, tuple.clone())).copied()));
        }
        let some = keep.iter().any(|proofs| *proofs != u32::MAX);
        Compiled {
            said: said(grounding, values),
            proofs,
            weights,
            asked,
            atoms,
            keep: some.then_some(keep),
            circuits: None,
            named: match context.explained {
                true => Named { atoms: known, rules: origins },
                false => Named::default(),
            },
            counts,
        }
    }

    /// Ground rules, and the nodes of their diagrams.
    pub(super) fn size(&self) -> (u64, u64) {
        (self.proofs.rules() as u64, self.circuits.as_ref().map_or(0, |circuits| circuits.nodes() as u64))
    }

    /// Whether the same would come of these values.
    pub(super) fn holds(&self, grounding: &Grounding, values: &[Value]) -> bool {
        self.said == said(grounding, values)
    }

    /// The probabilities of what was asked for.
    pub(super) fn evaluate(
        &mut self,
        context: &Context<'_>,
        tagged: &BTreeMap<TensorId, &Value>,
    ) -> Result<Found> {
        let learned = self.learned(context);
        let mut sources: BTreeMap<TensorId, &Value> = tagged.clone();
        sources.extend(learned.iter().map(|(id, value)| (*id, value)));
        for (id, value) in &sources {
            all_probable(context.program, *id, value)?;
        }
        let weights = self.weights(context, &sources);
        let stop = || context.stop.asked();
        let limits = limits(context, &stop);
        let compiled = match (&self.circuits, self.keep()) {
            (Some(circuits), None) => Ok(Arc::clone(circuits)),
            (None, None) => self.proofs.compile(&self.atoms, &limits).map(Arc::new),
            (_, Some(keep)) => self.proofs.top(&self.atoms, &keep, &weights, &limits).map(Arc::new),
        };
        let first = self.asked.keys().next().copied();
        let circuits = compiled.map_err(|failure| self.refused(context, first, &failure))?;
        let found = circuits.probabilities(&weights);
        let found = found.map_err(|failure| self.refused(context, first, &failure))?;
        let mut each = found.into_iter().zip(circuits.possible());
        let mut tuples = BTreeMap::new();
        for (id, listed) in &self.asked {
            let mut there = Tuples::default();
            for (tuple, (value, possible)) in listed.iter().zip(&mut each) {
                if possible {
                    there.tuples.push(tuple.clone());
                    there.values.push(value);
                }
            }
            tuples.insert(*id, there);
        }
        self.circuits = Some(circuits);
        Ok(Found { tuples, weights })
    }

    /// How many proofs of an atom are kept, where not all are.
    pub(super) fn keep(&self) -> Option<impl Fn(Atom) -> usize> {
        let keep = self.keep.as_ref()?;
        Some(|atom: Atom| keep.get(atom.0 as usize).map_or(usize::MAX, |proofs| *proofs as usize))
    }

    /// Whether each of some atoms follows in some world, by proofs that are kept.
    pub(super) fn possible(
        &self,
        context: &Context<'_>,
        atoms: &[Atom],
        weights: &[f64],
    ) -> Result<Vec<bool>> {
        let stop = || context.stop.asked();
        let limits = limits(context, &stop);
        let possible = match self.keep() {
            None => self.proofs.possible(atoms, &limits),
            Some(keep) => self.proofs.top(atoms, &keep, weights, &limits).map(|circuits| circuits.possible()),
        };
        possible.map_err(|failure| self.refused(context, self.asked.keys().next().copied(), &failure))
    }

    /// What relations owe to the weights of a source, where `adjoints` are the derivatives by the tuples of relations.
    pub(super) fn slopes(
        &self,
        context: &Context<'_>,
        found: &Found,
        adjoints: &BTreeMap<TensorId, &Tuples>,
        source: TensorId,
    ) -> Result<Value> {
        let mut owed = Vec::with_capacity(self.atoms.len());
        for (id, listed) in &self.asked {
            let known: HashMap<&Tuple, f64> = adjoints
                .get(id)
                .map(|tuples| tuples.tuples.iter().zip(tuples.values.iter().copied()).collect())
                .unwrap_or_default();
            owed.extend(listed.iter().map(|tuple| known.get(tuple).copied().unwrap_or(0.0)));
        }
        let slopes = match &self.circuits {
            Some(circuits) => circuits.slopes(&found.weights, &owed),
            None => Ok(Vec::new()),
        };
        let slopes = slopes.map_err(|failure| self.refused(context, Some(source), &failure))?;
        let of = self.weights.iter().zip(&slopes).filter(|((id, _), _)| *id == source);
        let of = of.map(|((_, Weight::Given(tuple, _) | Weight::Element(tuple)), slope)| (tuple, *slope));
        let tensor = context.program.tensor(source);
        if tensor.style == Style::Square {
            let domains = tensor.domains();
            let mut dense = vec![0.0; domains.iter().map(Domain::len).product()];
            for (tuple, slope) in of {
                if let Some(at) = position(&domains, tuple) {
                    dense[at] += slope;
                }
            }
            return Ok(Value::Dense(dense.into()));
        }
        // Of a tuple that is given several times, the first counts.
        let mut tuples: Vec<(Tuple, f64)> = of.map(|(tuple, slope)| (tuple.clone(), slope)).collect();
        tuples.sort_by(|(a, _), (b, _)| context.program.symbols.compare_tuples(a, b));
        tuples.dedup_by(|(later, _), (first, _)| later == first);
        let (tuples, values) = tuples.into_iter().unzip();
        Ok(Value::Tuples(Tuples { tuples, values, counts: Vec::new() }))
    }

    /// The weights of all events.
    fn weights(&self, context: &Context<'_>, sources: &BTreeMap<TensorId, &Value>) -> Vec<f64> {
        let placed = |(id, value): (&TensorId, &&Value)| {
            let value: &Value = value;
            (*id, (Elements::of(context, *id, value), value.doubles().into_owned()))
        };
        let places: BTreeMap<TensorId, (Elements, Vec<f64>)> = sources.iter().map(placed).collect();
        let weight = |(id, weight): &(TensorId, Weight)| match weight {
            Weight::Given(_, weight) => Some(*weight),
            Weight::Element(tuple) => {
                let (elements, values) = places.get(id)?;
                // What is off by rounding is the end that it is off from.
                values.get(elements.position(tuple)?).map(|value| value.clamp(0.0, 1.0))
            }
        };
        self.weights.iter().map(|entry| weight(entry).unwrap_or(0.0)).collect()
    }

    /// The values of relations with probabilities that are learned.
    fn learned(&self, context: &Context<'_>) -> Vec<(TensorId, Value)> {
        let learned = |id: &TensorId| {
            let tensor = context.program.tensor(*id);
            tensor.role == Role::Parameter && tensor.is_proved()
        };
        let ids: BTreeSet<TensorId> = self.weights.iter().map(|(id, _)| *id).filter(learned).collect();
        let value = |id: TensorId| {
            let known = context.parameters.get(&id).map(Arc::clone);
            let values = known.unwrap_or_else(|| start_values(context.program, id));
            (id, Value::Dense(Numbers::Double(values)))
        };
        ids.into_iter().map(value).collect()
    }

    pub(super) fn refused(
        &self,
        context: &Context<'_>,
        asked: Option<TensorId>,
        failure: &Failure,
    ) -> Refusal {
        let program = context.program;
        let at = asked.map_or_else(Default::default, |id| program.left_side(id));
        let named = |event: &Event| {
            let (id, Weight::Given(tuple, _) | Weight::Element(tuple)) =
                self.weights.get(event.0 as usize)?;
            let (open, close) = match program.tensor(*id).style {
                Style::Square => ('[', ']'),
                Style::Round => ('(', ')'),
            };
            let shown = format!("{}{open}{}{close}", program.name(*id), program.show_tuple(tuple));
            Some((program.left_side(*id), shown))
        };
        match failure {
            Failure::Stopped => interrupted(at),
            Failure::TooLarge { bytes } => {
                let name = asked.map_or("", |id| program.name(id));
                let message = format!(
                    "the decision diagrams of the proofs of `{name}` need more than {bytes} bytes (--max-bytes)"
                );
                Refusal::new(Code::Budget, at, message).help(
                    "keep the most probable proofs of every tuple, with the type `topk(10)`, or allow more with --max-bytes",
                )
            }
            Failure::NotStratified { .. } => {
                Refusal::new(Code::NotStratified, at, "what is denied here hangs on what denies it")
            }
            Failure::NoProbability { event, weight } => {
                let (at, shown) = named(event).unwrap_or((at, String::new()));
                let message = format!("`{shown}` is {weight}, which is no probability");
                Refusal::new(Code::BadProbability, at, message).help("a probability lies between 0 and 1")
            }
            Failure::NoDistribution { event, sum } => {
                let (at, shown) = named(event).unwrap_or((at, String::new()));
                let message = format!("`{shown}` and what excludes it have {sum} together");
                let help = "probabilities of tuples that exclude each other add up to 1 at most";
                Refusal::new(Code::BadProbability, at, message).help(help)
            }
        }
    }
}

/// What a compilation may use.
fn limits<'a>(context: &Context<'_>, stop: &'a dyn Fn() -> bool) -> Limits<'a> {
    Limits { bytes: usize::try_from(context.budget.bytes).unwrap_or(usize::MAX), stop }
}

/// Refuses a tensor that is read as probabilities and has an element that is none, whether a rule meets it or not: what is
/// refused does not depend on what is asked.
fn all_probable(program: &Program, id: TensorId, value: &Value) -> Result<()> {
    let tensor = program.tensor(id);
    let values = value.doubles();
    let domains = tensor.domains();
    let tuple = |at: usize| match value {
        Value::Tuples(tuples) => tuples.tuples.get(at).cloned().unwrap_or_default(),
        Value::Dense(_) | Value::Counts(_) => element(&domains, at),
    };
    let refused = |at: usize, message: String, help: &str| {
        let (open, close) = if tensor.style == Style::Square { ('[', ']') } else { ('(', ')') };
        let shown = format!("{}{open}{}{close}", tensor.name, program.show_tuple(&tuple(at)));
        let message = message.replace("{}", &format!("`{shown}`"));
        Err(Refusal::new(Code::BadProbability, program.left_side(id), message).help(help))
    };
    if let Some((at, value)) =
        values.iter().enumerate().find(|(_, value)| !(-ROUNDING..=1.0 + ROUNDING).contains(*value))
    {
        return refused(
            at,
            format!("{{}} is {value}, which is no probability"),
            "a probability lies between 0 and 1",
        );
    }
    let Some((_, place)) = program.exclusive.iter().find(|(tensor, _)| *tensor == id) else { return Ok(()) };
    let mut sums: HashMap<Tuple, f64> = HashMap::new();
    for (at, value) in values.iter().enumerate() {
        let mut rest = tuple(at);
        rest.remove(*place);
        let sum = sums.entry(rest).or_insert(0.0);
        *sum += value;
        if *sum > 1.0 + ROUNDING {
            let help = "probabilities of tuples that exclude each other add up to 1 at most";
            let sum = (*sum * 1e9).round() / 1e9;
            return refused(at, format!("{{}} and what excludes it have {sum} together"), help);
        }
    }
    Ok(())
}

/// How far computed weights may be off, alone below 0 or above 1 and together above 1: they may have 32 bits.
const ROUNDING: f64 = 1e-6;

/// What of a grounding's values decides the ground rules: tuples, and of square tensors nothing.
fn said(grounding: &Grounding, values: &[Value]) -> Vec<Value> {
    let count = grounding.needed.len() + grounding.bindings.len();
    let bare = |(at, value): (usize, &Value)| match value {
        Value::Tuples(tuples) if at < count => Value::Tuples(tuples.clone()),
        Value::Tuples(tuples) => Value::Tuples(Tuples { tuples: tuples.tuples.clone(), ..Tuples::default() }),
        Value::Dense(_) | Value::Counts(_) => Value::Tuples(Tuples::default()),
    };
    values.iter().enumerate().map(bare).collect()
}
