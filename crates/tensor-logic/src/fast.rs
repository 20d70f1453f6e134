//! The fast engine: the core form evaluated for all bindings at once.
//!
//! Enter at [`Fast`]. An expression becomes a *block* (`block`): its values for all bindings of
//! its free indices. What guards and relations admit becomes a *table of bindings* (`support`,
//! `rows`, `table`); dense factors are contracted pair by pair as matrix products (`contract`,
//! `matmul`) or gathered beside the table (`gather`, `scope`); heads scatter contributions
//! (`head`), and components come to rest as their class says (`component`). What depends on
//! nothing that changed is remembered (`plan`), so that a training loop replans nothing.

mod block;
mod component;
mod contract;
mod expr;
mod gather;
mod head;
mod inline;
mod machine;
mod plan;
mod relation;
mod rows;
mod scope;
mod steps;
mod support;
mod table;

use crate::kernels::Pool;
pub use crate::kernels::Precision;
pub use machine::Storage;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use crate::engine::{Engine, Parameters, Request, Value};
use crate::error::Result;
use crate::program::{Class, Component, Kind, Role, Style, TensorId};
use crate::reference::Reference;
use machine::{Machine, Stored};
use plan::{Source, Stamps};

/// The fast engine.
#[derive(Default)]
pub struct Fast {
    storage: Storage,
    precision: Precision,
    /// What is kept of programs, the last one used first.
    sessions: Vec<Session>,
    /// Memory that any of them uses again.
    pool: Arc<Pool>,
    derived: Vec<(String, u64)>,
}

/// So many programs are remembered.
const SESSIONS: usize = 16;

/// What is kept of a program between calls.
struct Session {
    stamp: u64,
    /// Tensors that are written out where they are read, and have no value of their own.
    inlined: BTreeSet<TensorId>,
    machine: Machine,
    components: Vec<Component>,
    /// The tensors of other components that each one reads.
    sources: Vec<Vec<TensorId>>,
    /// What the last goals needed.
    needed: Option<(Vec<TensorId>, Arc<BTreeSet<TensorId>>)>,
    /// For every component what it was last made from.
    made: HashMap<usize, Stamps>,
    parameters: Parameters,
}

impl Fast {
    /// An engine that keeps relations as this says.
    pub fn with_storage(storage: Storage) -> Fast {
        Fast { storage, ..Fast::default() }
    }

    /// Computes with numbers of this type; programs that count, with 64 bits always.
    #[must_use]
    pub fn with_precision(mut self, precision: Precision) -> Fast {
        self.precision = precision;
        self
    }

    /// Forgets what is kept of programs, but not the memory that it took: for who goes on with others.
    pub fn forget_programs(&mut self) {
        self.sessions.clear();
    }

    fn session(&mut self, request: &Request<'_>, goals: &[TensorId]) -> &mut Session {
        let stamp = request.program.stamp.number();
        let answers = |session: &Session| {
            session.stamp == stamp && goals.iter().all(|goal| !session.inlined.contains(goal))
        };
        let kept = self.sessions.iter().position(answers);
        let session = match kept {
            Some(at) => self.sessions.remove(at),
            None => {
                let mut session = Session::new(request, goals, self.storage, self.precision);
                session.machine.pool = Arc::clone(&self.pool);
                session
            }
        };
        // The batches of a training loop take turns; what was used last is kept longest.
        self.sessions.insert(0, session);
        self.sessions.truncate(SESSIONS);
        &mut self.sessions[0]
    }
}

impl Session {
    fn new(request: &Request<'_>, goals: &[TensorId], storage: Storage, precision: Precision) -> Session {
        let counts = request.program.tensors.iter().any(|tensor| tensor.kind == Kind::Count);
        let precision = if counts { Precision::Double } else { precision };
        let (program, inlined) = inline::inlined(request.program, goals, storage);
        let program = Arc::new(program);
        let mut components = program.components.clone();
        // Tensors in no component are only given.
        let mut listed = vec![false; program.tensors.len()];
        for id in components.iter().flat_map(|component| &component.tensors) {
            if let Some(slot) = listed.get_mut(id.0 as usize) {
                *slot = true;
            }
        }
        let alone = (0u32..).map(TensorId).zip(listed).filter(|(_, listed)| !listed);
        let alone =
            alone.map(|(id, _)| Component { tensors: vec![id], equations: Vec::new(), class: Class::Plain });
        components.splice(0..0, alone.collect::<Vec<_>>());
        let reads = |component: &Component| {
            let own = |id: &TensorId| component.tensors.contains(id);
            let all = component.tensors.iter().flat_map(|id| program.reads_of(*id));
            all.filter(|id| !own(id)).collect::<BTreeSet<_>>().into_iter().collect()
        };
        let sources = components.iter().map(reads).collect();
        Session {
            sources,
            needed: None,
            stamp: request.program.stamp.number(),
            inlined,
            machine: Machine::new(program, request.budget, storage, precision),
            components,
            made: HashMap::new(),
            parameters: Parameters::new(),
        }
    }

    /// The goals and what their values depend on.
    fn needs(&mut self, goals: &[TensorId]) -> Arc<BTreeSet<TensorId>> {
        let found = || Arc::new(self.machine.program.needs(goals));
        if self.needed.as_ref().is_none_or(|(known, _)| known != goals) {
            self.needed = Some((goals.to_vec(), found()));
        }
        self.needed.as_ref().map_or_else(found, |(_, needed)| Arc::clone(needed))
    }

    fn evaluate(&mut self, request: &Request<'_>, goals: &[TensorId]) -> Result<()> {
        let program = Arc::clone(&self.machine.program);
        if self.machine.budget != request.budget {
            self.machine.budget = request.budget;
            self.made.clear();
        }
        self.machine.tuples = 0;
        self.machine.bytes = 0;
        let needed = self.needs(goals);
        for (at, component) in self.components.iter().enumerate() {
            if !component.tensors.iter().any(|id| needed.contains(id)) {
                continue;
            }
            for id in component.tensors.iter().filter(|id| program.tensor(**id).role == Role::Parameter) {
                let (old, new) = (self.parameters.get(id), request.parameters.get(id));
                let same = match (old, new) {
                    (Some(old), Some(new)) => Arc::ptr_eq(old, new) || bits_equal(old, new),
                    (None, None) => true,
                    _ => false,
                };
                if !same {
                    self.made.remove(&at);
                    match new {
                        Some(new) => self.parameters.insert(*id, Arc::clone(new)),
                        None => self.parameters.remove(id),
                    };
                }
            }
            let sources = self.sources[at].iter().map(|read| Source::Tensor(*read));
            let stamps = self.machine.stamps(sources);
            if self.made.get(&at) == Some(&stamps) {
                self.machine.count(component);
                continue;
            }
            self.made.remove(&at);
            self.machine.component(component, &self.parameters)?;
            self.made.insert(at, stamps);
        }
        Ok(())
    }
}

impl Engine for Fast {
    fn values(&mut self, request: &Request<'_>, goals: &[TensorId]) -> Result<Vec<Value>> {
        let session = self.session(request, goals);
        let outcome = session.evaluate(request, goals);
        let program = Arc::clone(&session.machine.program);
        let needed = session.needs(goals);
        let machine = &session.machine;
        let large = outcome.is_ok() && needed.iter().any(|id| machine.large_count(*id));
        let mut derived = BTreeMap::new();
        for id in needed.iter() {
            let tensor = program.tensor(*id);
            if let Some(Stored::Relation(relation)) = session.machine.stored(*id)
                && tensor.role == Role::Computed
                && tensor.style == Style::Round
                && !tensor.hidden
            {
                derived.insert(tensor.name.clone(), relation.len as u64);
            }
        }
        let value = |goal: &TensorId| match session.machine.stored(*goal) {
            Some(Stored::Dense(array)) => Value::Dense(session.machine.numbers(array)),
            Some(Stored::Relation(relation)) if program.tensor(*goal).style == Style::Square => {
                Value::Dense(session.machine.densified(*goal, relation))
            }
            Some(Stored::Relation(relation)) => Value::Tuples(relation.tuples()),
            None => Value::Tuples(Default::default()),
        };
        let values = outcome.map(|()| goals.iter().map(value).collect());
        self.derived = derived.into_iter().collect();
        // Blocks hold 53 bits; the interpreter counts with all digits.
        if large { Reference::default().values(request, goals) } else { values }
    }

    fn derived(&self) -> &[(String, u64)] {
        &self.derived
    }

    fn forget_results(&mut self) {
        for session in &mut self.sessions {
            let program = Arc::clone(&session.machine.program);
            for (at, component) in session.components.iter().enumerate() {
                if component.tensors.iter().any(|id| program.tensor(*id).role == Role::Computed) {
                    session.made.remove(&at);
                    component.tensors.iter().for_each(|id| session.machine.forget(*id));
                }
            }
        }
    }
}

fn bits_equal(a: &[f64], b: &[f64]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.to_bits() == b.to_bits())
}
