//! The engine that programs run on: relations joined by rules go to the relational engine, all
//! else to the evaluation of blocks.
//!
//! Enter at [`Auto`]. A goal whose whole need is rules is compiled with its constants as demand
//! ([`crate::datalog`]). Where other equations read a recursive relation of that kind, or a join of three or more, it is
//! derived first and stands as data in the program that the other engine sees; where such a relation reads relations that
//! are not made by rules alone, these are evaluated before.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::datalog::{self, Derived, Session};
use crate::digits::halves;
use crate::engine::{Engine, Request, Slope, Value};
use crate::error::Result;
use crate::program::{Class, Combine, Component, Facts, Given, Kind, Program, Role, Style, TensorId};
use crate::value::Domain;

/// The engine behind `--engine auto`.
pub struct Auto {
    blocks: Box<dyn Engine>,
    derived: Vec<(String, u64)>,
    /// What was derived for programs, the last one used first.
    prepared: Vec<Prepared>,
    /// The relations of programs, by their stamps, the last one used first.
    sessions: Vec<(u64, Session)>,
}

/// The program at hand with what rules derive of it as data.
#[derive(Default)]
struct Prepared {
    /// Its stamp.
    stamp: Option<u64>,
    /// What was looked at so far, and what of it was derived.
    seen: BTreeSet<TensorId>,
    values: BTreeMap<TensorId, Value>,
    /// How many tuples these hold.
    tuples: usize,
    /// Counts of the relations that were derived for it.
    counts: BTreeMap<String, u64>,
    /// What the other engine sees, if anything was derived.
    program: Option<Arc<Program>>,
}

/// A program with what was derived for it as data, if anything was, and how many tuples each relation has.
type Ready = (Option<Arc<Program>>, BTreeMap<String, u64>);

/// So many programs' relations are remembered.
const SESSIONS: usize = 4;

/// So many tuples that were derived for programs are remembered beside those of the one at work.
const MOST: usize = 20_000_000;

impl Auto {
    /// Rules on the relational engine, the rest on `blocks`.
    pub fn new(blocks: Box<dyn Engine>) -> Auto {
        Auto { blocks, derived: Vec::new(), prepared: Vec::new(), sessions: Vec::new() }
    }

    /// The value of a goal by rules, or no.
    fn by_rules(&mut self, request: &Request<'_>, goal: TensorId) -> Result<Option<Derived>> {
        let stamp = request.program.stamp.number();
        let kept = self.sessions.iter().position(|(known, _)| *known == stamp);
        let session = kept.map_or_else(Default::default, |at| self.sessions.remove(at).1);
        self.sessions.insert(0, (stamp, session));
        self.sessions.truncate(SESSIONS);
        self.sessions[0].1.value(request.program, goal, request.budget)
    }

    /// The program that the other engine sees: recursive relations, and joins that are too large for tables, are data.
    fn prepare(&mut self, request: &Request<'_>, goals: &[TensorId]) -> Result<Ready> {
        let program = request.program;
        let stamp = Some(program.stamp.number());
        let kept = self.prepared.iter().position(|known| known.stamp == stamp);
        let mut prepared = match kept {
            Some(at) => self.prepared.remove(at),
            None => Prepared { stamp, ..Prepared::default() },
        };
        let needed = program.needs(goals);
        for component in &program.components {
            for id in component.tensors.iter().filter(|id| needed.contains(id)) {
                let wanted = match (program.tensor(*id).style, &component.class) {
                    (_, Class::Stepped(_)) => false,
                    (_, Class::Plain) => datalog::joined(program, *id),
                    (style, class) => style == Style::Round || matches!(class, Class::Closure),
                };
                if !wanted || !prepared.seen.insert(*id) {
                    continue;
                }
                let found = match self.by_rules(request, *id)? {
                    None => self.over_blocks(request, component, *id)?,
                    found => found,
                };
                if let Some((value, counts)) = found {
                    prepared.tuples += counts.iter().map(|(_, count)| *count as usize).sum::<usize>();
                    prepared.counts.extend(counts);
                    prepared.values.insert(*id, value);
                    prepared.program = None;
                }
            }
        }
        if prepared.program.is_none() && !prepared.values.is_empty() {
            prepared.program = Some(Arc::new(with_data(program, prepared.values.clone())));
        }
        let mut tuples = 0;
        let kept = self.prepared.iter().take_while(|other| {
            tuples += other.tuples + 1000;
            tuples <= MOST
        });
        self.prepared.truncate(kept.count());
        let (program, counts) = (prepared.program.clone(), prepared.counts.clone());
        self.prepared.insert(0, prepared);
        Ok((program, counts))
    }

    /// A relation by rules over relations that are none, which are evaluated before; or no.
    fn over_blocks(
        &mut self,
        request: &Request<'_>,
        component: &Component,
        id: TensorId,
    ) -> Result<Option<Derived>> {
        let program = request.program;
        let mut inputs: Vec<TensorId> =
            component.tensors.iter().flat_map(|id| program.reads_of(*id)).collect();
        inputs.retain(|id| !component.tensors.contains(id));
        let round = |id: &TensorId| program.tensor(*id).style == Style::Round;
        let changes = |id: &TensorId| program.tensor(*id).role == Role::Parameter;
        let boolean = |id: &TensorId| program.tensor(*id).combine == Combine::Exists;
        if inputs.is_empty()
            || !inputs.iter().all(round)
            || !component.tensors.iter().all(boolean)
            || program.needs(&inputs).iter().any(changes)
        {
            return Ok(None);
        }
        let derived = std::mem::take(&mut self.derived);
        let values = self.values(request, &inputs)?;
        self.derived = derived;
        let fed = with_data(program, inputs.into_iter().zip(values).collect());
        Session::default().value(&fed, id, request.budget)
    }
}

/// The program with these relations as data.
fn with_data(program: &Program, derived: BTreeMap<TensorId, Value>) -> Program {
    let mut changed = program.clone();
    for component in &mut changed.components {
        component.tensors.retain(|id| !derived.contains_key(id));
    }
    changed.components.retain(|component| !component.tensors.is_empty());
    for (id, value) in derived {
        let Some(tensor) = changed.tensors.get_mut(id.0 as usize) else { continue };
        let array = |values: Arc<[f64]>| Given::Array {
            fixed: vec![None; tensor.places.len()],
            shape: tensor.places.iter().map(|place| place.domain.as_ref().map_or(0, Domain::len)).collect(),
            values,
            span: tensor.span,
        };
        // A count that one number does not hold is given as two, which are added.
        tensor.given = match value {
            Value::Tuples(tuples) => {
                let mut facts = Facts { arity: tensor.places.len(), ..Facts::default() };
                for (tuple, count) in tuples.tuples.iter().zip(&tuples.counts) {
                    halves(*count).into_iter().for_each(|half| facts.push(tuple, half, None));
                }
                if tuples.counts.is_empty() {
                    facts.count = tuples.tuples.len();
                    facts.constants = tuples.tuples.into_iter().flatten().collect();
                    facts.values = if tensor.kind != Kind::Bool { tuples.values } else { Vec::new() };
                }
                vec![Given::Facts(Arc::new(facts))]
            }
            Value::Counts(counts) => {
                [0, 1].map(|half| array(counts.iter().map(|count| halves(*count)[half]).collect())).into()
            }
            Value::Dense(values) => vec![array(values.doubles().as_slice().into())],
        };
        tensor.role = Role::Data;
        for equation in changed.equations.iter_mut().filter(|equation| equation.tensor == id) {
            equation.terms.clear();
        }
    }
    changed
}

impl Auto {
    /// Answers the goals that rules make, then asks the other engine for the rest.
    fn answers<T: Clone>(
        &mut self,
        request: &Request<'_>,
        goals: &[TensorId],
        by_rules: impl Fn(Value) -> T,
        others: impl Fn(&mut dyn Engine, &Request<'_>, &[TensorId]) -> Result<Vec<T>>,
    ) -> Result<Vec<T>> {
        self.derived.clear();
        let program = request.program;
        let mut answers: BTreeMap<TensorId, T> = BTreeMap::new();
        let mut open: Vec<TensorId> = Vec::new();
        for goal in goals.iter().copied().collect::<BTreeSet<_>>() {
            match self.by_rules(request, goal)? {
                None => open.push(goal),
                Some((value, counts)) => {
                    answers.insert(goal, by_rules(value));
                    self.derived.extend(counts);
                }
            }
        }
        if !open.is_empty() {
            let (prepared, counts) = self.prepare(request, &open)?;
            let inner = Request { program: prepared.as_deref().unwrap_or(program), ..request.clone() };
            answers.extend(open.iter().copied().zip(others(&mut *self.blocks, &inner, &open)?));
            self.derived.extend(counts);
            let known: BTreeSet<String> = self.derived.iter().map(|(name, _)| name.clone()).collect();
            let others = self.blocks.derived().iter().filter(|(name, _)| !known.contains(name));
            self.derived.extend(others.cloned());
        }
        Ok(goals.iter().filter_map(|goal| answers.get(goal).cloned()).collect())
    }
}

impl Engine for Auto {
    fn values(&mut self, request: &Request<'_>, goals: &[TensorId]) -> Result<Vec<Value>> {
        self.answers(request, goals, |value| value, |blocks, request, goals| blocks.values(request, goals))
    }

    fn listed(&mut self, request: &Request<'_>, goals: &[TensorId]) -> Result<Vec<Slope>> {
        self.answers(request, goals, Slope::Whole, |blocks, request, goals| blocks.listed(request, goals))
    }

    fn release(&mut self, parameter: TensorId) {
        self.blocks.release(parameter);
    }

    fn derived(&self) -> &[(String, u64)] {
        &self.derived
    }

    fn forget_results(&mut self) {
        self.sessions.iter_mut().for_each(|(_, session)| session.forget_all());
        self.prepared.clear();
        self.blocks.forget_results();
    }
}
