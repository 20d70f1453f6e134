//! The engine that programs run on: relations joined by rules go to the relational engine, all
//! else to the evaluation of blocks.
//!
//! Enter at [`Auto`]. A goal whose whole need is rules is compiled with its constants as demand
//! ([`crate::datalog`]). Where other equations read a recursive relation of that kind, it is
//! derived first and stands as data in the program that the other engine sees.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::datalog;
use crate::engine::{Engine, Request, Value};
use crate::error::Result;
use crate::program::{Class, Facts, Given, Kind, Program, Role, Style, TensorId};
use crate::value::Domain;

/// The engine behind `--engine auto`.
pub struct Auto {
    blocks: Box<dyn Engine>,
    derived: Vec<(String, u64)>,
    /// The program at hand with its recursive relations as data, by its stamp.
    prepared: Option<(u64, Option<Arc<Program>>)>,
    /// Counts of the relations that were derived for it.
    counted: Vec<(String, u64)>,
    /// The relations of programs, by their stamps, the last one used first.
    sessions: Vec<(u64, datalog::Session)>,
}

/// So many programs are remembered.
const SESSIONS: usize = 4;

impl Auto {
    /// Rules on the relational engine, the rest on `blocks`.
    pub fn new(blocks: Box<dyn Engine>) -> Auto {
        Auto { blocks, derived: Vec::new(), prepared: None, counted: Vec::new(), sessions: Vec::new() }
    }

    /// The value of a goal by rules, or no.
    fn by_rules(&mut self, request: &Request<'_>, goal: TensorId) -> Result<Option<datalog::Derived>> {
        let stamp = request.program.stamp.number();
        let kept = self.sessions.iter().position(|(known, _)| *known == stamp);
        let session = kept.map_or_else(Default::default, |at| self.sessions.remove(at).1);
        self.sessions.insert(0, (stamp, session));
        self.sessions.truncate(SESSIONS);
        self.sessions[0].1.value(request.program, goal, request.budget)
    }

    /// The program that the other engine sees.
    fn prepare(&mut self, request: &Request<'_>, goals: &[TensorId]) -> Result<Option<Arc<Program>>> {
        let stamp = request.program.stamp.number();
        if let Some((known, prepared)) = &self.prepared
            && *known == stamp
        {
            return Ok(prepared.clone());
        }
        self.counted.clear();
        let derived = self.recursive_relations(request, goals)?;
        let prepared = (!derived.is_empty()).then(|| Arc::new(with_data(request.program, derived)));
        self.prepared = Some((stamp, prepared.clone()));
        Ok(prepared)
    }

    /// The recursive relations that rules alone make, and sums over joins that are too large for tables, derived.
    fn recursive_relations(
        &mut self,
        request: &Request<'_>,
        goals: &[TensorId],
    ) -> Result<BTreeMap<TensorId, Value>> {
        let program = request.program;
        let needed = program.needs(goals);
        let mut derived = BTreeMap::new();
        for component in &program.components {
            for id in component.tensors.iter().filter(|id| needed.contains(id)) {
                let wanted = match (program.tensor(*id).style, &component.class) {
                    (Style::Round, class) => matches!(class, Class::Closure | Class::Numeric),
                    (Style::Square, Class::Closure) => true,
                    (Style::Square, class) => matches!(class, Class::Plain) && datalog::joined(program, *id),
                };
                let Some((value, counts)) =
                    wanted.then(|| self.by_rules(request, *id)).transpose()?.flatten()
                else {
                    continue;
                };
                for (name, count) in counts {
                    if !self.counted.iter().any(|(known, _)| *known == name) {
                        self.counted.push((name, count));
                    }
                }
                derived.insert(*id, value);
            }
        }
        Ok(derived)
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
        tensor.given = vec![match value {
            Value::Tuples(tuples) => {
                let (arity, count) = (tensor.places.len(), tuples.tuples.len());
                let constants = tuples.tuples.into_iter().flatten().collect();
                let values = if tensor.kind != Kind::Bool { tuples.values } else { Vec::new() };
                Given::Facts(Arc::new(Facts { arity, count, constants, values, ..Facts::default() }))
            }
            Value::Dense(values) => Given::Array {
                fixed: vec![None; tensor.places.len()],
                shape: tensor
                    .places
                    .iter()
                    .map(|place| place.domain.as_ref().map_or(0, Domain::len))
                    .collect(),
                values: values.as_slice().into(),
                span: tensor.span,
            },
        }];
        tensor.role = Role::Data;
        for equation in changed.equations.iter_mut().filter(|equation| equation.tensor == id) {
            equation.terms.clear();
        }
    }
    changed
}

impl Engine for Auto {
    fn values(&mut self, request: &Request<'_>, goals: &[TensorId]) -> Result<Vec<Value>> {
        self.derived.clear();
        let program = request.program;
        let mut answers: BTreeMap<TensorId, Value> = BTreeMap::new();
        let mut open: Vec<TensorId> = Vec::new();
        for goal in goals.iter().copied().collect::<BTreeSet<_>>() {
            match self.by_rules(request, goal)? {
                None => open.push(goal),
                Some((value, counts)) => {
                    answers.insert(goal, value);
                    self.derived.extend(counts);
                }
            }
        }
        if !open.is_empty() {
            let prepared = self.prepare(request, &open)?;
            let inner = Request { program: prepared.as_deref().unwrap_or(program), ..request.clone() };
            for (goal, value) in open.iter().zip(self.blocks.values(&inner, &open)?) {
                answers.insert(*goal, value);
            }
            self.derived.extend(self.counted.iter().cloned());
            let known: BTreeSet<String> = self.derived.iter().map(|(name, _)| name.clone()).collect();
            let others = self.blocks.derived().iter().filter(|(name, _)| !known.contains(name));
            self.derived.extend(others.cloned());
        }
        Ok(goals.iter().filter_map(|goal| answers.get(goal).cloned()).collect())
    }

    fn derived(&self) -> &[(String, u64)] {
        &self.derived
    }

    fn forget_results(&mut self) {
        self.sessions.iter_mut().for_each(|(_, session)| session.forget_all());
        self.blocks.forget_results();
    }
}
