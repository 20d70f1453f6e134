//! The engine that programs run on: relations joined by rules go to the relational engine, all
//! else to the evaluation of blocks.
//!
//! Enter at [`Auto`]. A goal whose whole need is rules is compiled with its constants as demand
//! ([`crate::datalog`]). Where other equations read a recursive relation of that kind, it is
//! derived first and stands as data in the program that the other engine sees.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::datalog;
use crate::engine::{Engine, Request, Tuples, Value};
use crate::error::Result;
use crate::program::{Class, Facts, Given, Kind, Program, Role, Style, TensorId};

/// The engine behind `--engine auto`.
pub struct Auto {
    blocks: Box<dyn Engine>,
    derived: Vec<(String, u64)>,
    /// The program at hand with its recursive relations as data, by its stamp.
    prepared: Option<(u64, Option<Arc<Program>>)>,
    /// Counts of the relations that were derived for it.
    counted: Vec<(String, u64)>,
}

impl Auto {
    /// Rules on the relational engine, the rest on `blocks`.
    pub fn new(blocks: Box<dyn Engine>) -> Auto {
        Auto { blocks, derived: Vec::new(), prepared: None, counted: Vec::new() }
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

    /// The recursive relations that rules alone make, derived.
    fn recursive_relations(
        &mut self,
        request: &Request<'_>,
        goals: &[TensorId],
    ) -> Result<BTreeMap<TensorId, Tuples>> {
        let program = request.program;
        let needed = program.needs(goals);
        let mut derived = BTreeMap::new();
        for component in &program.components {
            if !matches!(component.class, Class::Closure) {
                continue;
            }
            for id in component.tensors.iter().filter(|id| needed.contains(id)) {
                if program.tensor(*id).style != Style::Round {
                    continue;
                }
                let Some(compiled) = datalog::compile(program, *id) else { continue };
                let mut compiled = compiled?;
                if !datalog::evaluate(program, &mut compiled, request.budget)? {
                    continue;
                }
                for (name, count) in compiled.derived(program) {
                    if !self.counted.iter().any(|(known, _)| *known == name) {
                        self.counted.push((name, count));
                    }
                }
                if let Value::Tuples(tuples) = compiled.value(program, *id) {
                    derived.insert(*id, tuples);
                }
            }
        }
        Ok(derived)
    }
}

/// The program with these relations as data.
fn with_data(program: &Program, derived: BTreeMap<TensorId, Tuples>) -> Program {
    let mut changed = program.clone();
    for component in &mut changed.components {
        component.tensors.retain(|id| !derived.contains_key(id));
    }
    changed.components.retain(|component| !component.tensors.is_empty());
    for (id, tuples) in derived {
        let Some(tensor) = changed.tensors.get_mut(id.0 as usize) else { continue };
        let valued = tensor.kind != Kind::Bool;
        let mut facts = Facts { arity: tensor.places.len(), count: tuples.tuples.len(), ..Facts::default() };
        facts.constants = tuples.tuples.into_iter().flatten().collect();
        facts.values = if valued { tuples.values } else { Vec::new() };
        tensor.role = Role::Data;
        tensor.given = vec![Given::Facts(Arc::new(facts))];
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
            let mut compiled = match datalog::compile(program, goal) {
                None => None,
                Some(compiled) => Some(compiled?),
            };
            let planned = match &mut compiled {
                None => false,
                Some(compiled) => datalog::evaluate(program, compiled, request.budget)?,
            };
            match compiled.filter(|_| planned) {
                None => open.push(goal),
                Some(compiled) => {
                    answers.insert(goal, compiled.value(program, goal));
                    self.derived.extend(compiled.derived(program));
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
        self.blocks.forget_results();
    }
}
