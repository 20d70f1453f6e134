//! The fast engine: the core form evaluated for all bindings at once.
//!
//! Enter at [`Fast`]. A program is put otherwise where that saves work (`rewritten`); its components are evaluated in
//! order (`session`, `component`). What guards and relations admit becomes a table of *bindings* (`bindings`), and an expression a
//! *block* of numbers for all of them (`values`); heads scatter contributions (`head`). Components that read themselves
//! come to rest as their class says (`recursion`). What depends on nothing that changed is remembered (`store`), and what
//! is evaluated again on other numbers is not described again (`repeated`). `planned` says all that beforehand.

mod bindings;
mod component;
mod head;
mod planned;
mod recursion;
mod repeated;
mod rewritten;
mod session;
mod store;
mod values;

use crate::kernels::Pool;
pub use crate::kernels::Precision;
pub use store::machine::Storage;

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::ast::Span;
use crate::engine::{Carried, Engine, Request, Slope, Stop, Value, is_interrupted};
use crate::error::Result;
use crate::profile::Profile;
use crate::program::{Program, Role, Style, Tensor, TensorId};
use crate::reference::Reference;
use session::Session;
use store::machine::{Machine, Stored};

/// The fast engine.
#[derive(Default)]
pub struct Fast {
    storage: Storage,
    precision: Precision,
    /// What is kept of programs, the last one used first.
    sessions: VecDeque<Kept>,
    /// How often any of them was used.
    uses: u64,
    /// By parameter how often that was when it was let go of.
    released: BTreeMap<TensorId, u64>,
    given: Data,
    /// Memory that any of them uses again.
    pool: Arc<Pool>,
    derived: Lengths,
    /// What was done, if somebody wants to know.
    observed: Option<Profile>,
    /// What ends an evaluation.
    stop: Stop,
    /// What a program that is to come has in common with one that was.
    carried: Option<Carried>,
    /// Whether it evaluates windows for another.
    inner: bool,
    /// Programs by their stamps, goals, and what answers these where long recursions are data.
    windows: Vec<(u64, Vec<TensorId>, Arc<Program>)>,
    /// By the stamps of programs the goals, and the bytes that were allowed, for which no recursion is taken apart.
    whole: HashMap<u64, Vec<(Vec<TensorId>, u64)>>,
}

/// So many bytes of programs are remembered beside the one at work: the batches of a training loop take turns.
const MOST: usize = 1 << 30;

/// Given relations and arrays as they are stored: programs that differ in the range of an index share them.
type Data = HashMap<(TensorId, Precision), (Tensor, Stored)>;

/// How many tuples relations have, by their names.
type Lengths = Arc<Vec<(String, u64)>>;

/// What is kept of a program, with what is asked of all of them at every step: there are as many as batches.
struct Kept {
    stamp: u64,
    /// About how many bytes, as of when it was used.
    bytes: usize,
    /// Of all uses the last one that was of this.
    used: u64,
    session: Box<Session>,
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
        self.windows.clear();
        self.whole.clear();
        self.sessions.clear();
        self.given.clear();
    }

    fn session(&mut self, request: &Request<'_>, goals: &[TensorId]) -> (&mut Session, &mut Data) {
        let stamp = request.program.stamp.number();
        let answers = |kept: &Kept| {
            kept.stamp == stamp && goals.iter().all(|goal| !kept.session.inlined.contains(goal))
        };
        if let Some(last) = self.sessions.front_mut() {
            last.bytes = last.session.bytes;
        }
        // Of batches that take turns it is the one that was used longest ago.
        let at = match self.sessions.front().is_some_and(answers) {
            true => Some(0),
            false => self.sessions.iter().rposition(answers),
        };
        let session = match at.and_then(|at| self.sessions.remove(at)) {
            Some(kept) => kept.session,
            None => {
                let session = Session::new(request, goals, self.storage, self.precision, &self.pool);
                let mut session = Box::new(session);
                if let Some(carried) = self.carried.take_if(|carried| carried.to == stamp)
                    && let Some(at) = self.sessions.iter().position(|known| known.stamp == carried.from)
                    && let Some(kept) = self.sessions.remove(at)
                {
                    session.adopt(*kept.session, &carried.same);
                }
                session
            }
        };
        let mut bytes = 0;
        let kept = self.sessions.iter().take_while(|kept| {
            bytes += kept.bytes;
            bytes <= MOST
        });
        let kept = kept.count();
        for mut kept in self.sessions.drain(kept..) {
            if let Some(observed) = &mut self.observed {
                observed.append(kept.session.machine.noted());
            }
        }
        self.uses += 1;
        self.sessions.push_front(Kept { stamp, bytes: session.bytes, used: self.uses, session });
        let session = &mut *self.sessions[0].session;
        session.machine.stop = self.stop.clone();
        if self.observed.is_some() && session.machine.notes.is_none() {
            session.machine.note_from_now(true);
        }
        (session, &mut self.given)
    }
}

impl Fast {
    /// Evaluates the goals, and answers each by what is stored of it. `None`: counts that blocks do not hold
    /// with all their digits.
    fn answers<T>(
        &mut self,
        request: &Request<'_>,
        goals: &[TensorId],
        shed: bool,
        answer: impl Fn(&Machine, TensorId) -> Result<T>,
    ) -> Result<Option<Vec<T>>> {
        // Where nothing changed nothing is evaluated.
        self.stop.check(Span::default())?;
        self.pool.stop_when(self.stop.flag());
        let windowed = self.windowed(request, goals)?;
        let whole = request.program;
        let inner = match &windowed {
            Some((program, _)) => Request { program, ..request.clone() },
            None => request.clone(),
        };
        let request = &inner;
        let (session, given) = self.session(request, goals);
        let outcome = session.evaluate(request, goals, given, shed);
        let directly = matches!(outcome, Ok(true));
        let large = outcome.is_ok() && !directly && session.has_doubtful_counts(goals);
        if !directly {
            session.count_derived(goals, whole.tensors.len());
        }
        let (machine, derived) = (&session.machine, &session.derived.1);
        let answers: Result<Vec<T>> =
            outcome.and_then(|_| goals.iter().map(|goal| answer(machine, *goal)).collect());
        self.derived = Arc::clone(derived);
        if let Err(report) = self.stop.check(Span::default()) {
            // Operations may have been left half done, and what was made from them too.
            self.sessions.pop_front();
            self.given.clear();
            // So may what led to another refusal.
            return Err(answers.err().filter(is_interrupted).unwrap_or(report));
        }
        if let Some((_, true)) = windowed {
            // The next evaluation finds other data.
            self.sessions.pop_front();
            let given = |id: TensorId| whole.tensors.get(id.0 as usize).map(|tensor| tensor.role);
            self.given.retain(|(id, _), _| given(*id).is_some_and(|role| role != Role::Computed));
        }
        answers.map(|answers| (!large).then_some(answers))
    }
}

/// The value of a tensor.
fn value(machine: &Machine, goal: TensorId) -> Result<Value> {
    Ok(match machine.stored(goal) {
        Some(Stored::Dense(array)) => Value::Dense(machine.numbers(array)),
        Some(Stored::Relation(relation)) if machine.program.tensor(goal).style == Style::Square => {
            // All of its elements are more than those that it is stored by.
            machine.fits(goal)?;
            Value::Dense(machine.densified(goal, relation))
        }
        Some(Stored::Relation(relation)) => Value::Tuples(relation.tuples()),
        None => Value::Tuples(Default::default()),
    })
}

/// The value of a square tensor as it is stored.
fn slope(machine: &Machine, goal: TensorId) -> Result<Slope> {
    Ok(match machine.stored(goal) {
        Some(Stored::Relation(relation)) if machine.program.tensor(goal).style == Style::Square => {
            Slope::Listed(machine.listed(goal, relation))
        }
        _ => Slope::Whole(value(machine, goal)?),
    })
}

impl Engine for Fast {
    fn values(&mut self, request: &Request<'_>, goals: &[TensorId]) -> Result<Vec<Value>> {
        match self.answers(request, goals, false, value)? {
            Some(values) => Ok(values),
            // The interpreter counts with all digits.
            None => Reference::stopping(self.stop.clone()).values(request, goals),
        }
    }

    fn listed(&mut self, request: &Request<'_>, goals: &[TensorId]) -> Result<Vec<Slope>> {
        match self.answers(request, goals, true, slope)? {
            Some(slopes) => Ok(slopes),
            None => Ok(self.values(request, goals)?.into_iter().map(Slope::Whole).collect()),
        }
    }

    fn release(&mut self, parameter: TensorId) {
        // Who was not used since it was let go of the last time does not hold it.
        let since = self.released.insert(parameter, self.uses).unwrap_or(0);
        for kept in self.sessions.iter_mut().take_while(|kept| kept.used > since) {
            let session = &mut kept.session;
            if session.parameters.remove(&parameter).is_none() {
                continue;
            }
            session.machine.forget(parameter);
            // What still waits would read it where it lies.
            if !std::mem::take(&mut session.may_wait) {
                continue;
            }
            for (at, component) in session.components.iter().enumerate() {
                for id in &component.tensors {
                    if matches!(session.machine.stored(*id), Some(Stored::Dense(array)) if array.is_waiting())
                    {
                        session.machine.forget(*id);
                        session.made[at] = None;
                    }
                }
            }
        }
    }

    fn derived(&self) -> &[(String, u64)] {
        &self.derived
    }

    fn stop_when(&mut self, stop: Arc<AtomicBool>) {
        self.stop = Stop::when(stop);
    }

    fn stop(&self) -> Stop {
        self.stop.clone()
    }

    fn carry(&mut self, from: u64, to: &Program, same: &BTreeSet<TensorId>) {
        let to = to.stamp.number();
        self.carried = Some(Carried { from, to, same: same.clone() });
    }

    fn observe(&mut self, on: bool) {
        self.observed = on.then(Profile::default);
        self.sessions.iter_mut().for_each(|kept| kept.session.machine.note_from_now(on));
    }

    fn observed(&mut self) -> Option<Profile> {
        let mut observed = std::mem::take(self.observed.as_mut()?);
        for kept in self.sessions.iter_mut().rev() {
            observed.append(kept.session.machine.noted());
        }
        Some(observed)
    }

    fn forget_results(&mut self) {
        self.windows.clear();
        self.whole.clear();
        for kept in &mut self.sessions {
            let session = &mut kept.session;
            session.direct = None;
            session.stretches.clear();
            session.restless.clear();
            let program = Arc::clone(&session.machine.program);
            for (at, component) in session.components.iter().enumerate() {
                if component.tensors.iter().any(|id| program.tensor(*id).role == Role::Computed) {
                    session.made[at] = None;
                    component.tensors.iter().for_each(|id| session.machine.forget(*id));
                }
            }
        }
    }
}
