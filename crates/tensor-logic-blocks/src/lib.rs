//! The fast engine: the core form evaluated for all bindings at once.
//!
//! Enter at [`Fast`]. A program is put otherwise where that saves work (`rewrites`, `rewritten`); its components are evaluated in
//! order (`component`). What guards and relations admit becomes a table of *bindings* (`bindings`), and an expression a
//! *block* of numbers for all of them (`values`); heads scatter contributions (`head`). Components that read themselves
//! come to rest as their class says (`recursion`). What depends on nothing that changed is remembered (`store`), and what
//! is evaluated again on other numbers is not described again (`repeated`). `planned` says all that beforehand.

use tensor_logic_core::{
    ast, digits, divergence, domains, engine, error, function, handed, linear, presence, present, profile,
    program, rename, room, start, value, walk, windows,
};
use tensor_logic_kernels as kernels;
use tensor_logic_reference as reference;
use tensor_logic_rewrites as rewrites;

mod bindings;
mod component;
mod head;
mod planned;
mod recursion;
mod repeated;
mod rewritten;
mod store;
mod values;

pub use crate::engine::Storage;
use crate::kernels::Pool;
pub use crate::kernels::Precision;

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::ast::Span;
use crate::divergence::falls;
use crate::engine::{
    Carried, Engine, Parameters, Request, Slope, Stop, Value, WIDEST, is_interrupted, too_wide as wider,
};
use crate::error::{Code, Refusal, Result};
use crate::profile::Profile;
use crate::program::{
    Class, Component, Equation, IndexId, Kind, Program, Range, Role, Style, Tensor, TensorId,
};
use crate::reference::Reference;

use rewritten::tuple_blocks::{Numbering, Split};
use store::machine::{Machine, Stored};
use store::plan::{Source, Stamps};

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

/// About how many bytes plans, records and the program itself take, whatever its data are. A learner of eleven equations, its
/// adjoint's among them, takes 240 kB for each batch of one small graph in all, with its program and its data.
fn planned_bytes(program: &Program) -> usize {
    program.equations.len() * 5000 + program.tensors.len() * 500 + program.indices.len() * 200
}

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
            let session = &kept.session;
            let known = || session.needed.as_ref().is_some_and(|needs| needs.goals == goals);
            kept.stamp == stamp
                && goals.iter().all(|goal| !session.inlined.contains(goal))
                && (session.skipped.is_empty()
                    || known()
                    || session.skipped.is_disjoint(&request.program.needs(goals)))
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
                let session = Session::new(
                    request,
                    goals,
                    (self.storage, self.precision),
                    &self.pool,
                    &self.stop,
                    &BTreeSet::new(),
                );
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
            bytes <= MOST.min(usize::try_from(request.budget.bytes / 2).unwrap_or(MOST))
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

/// Tensors of more elements are let go of, while learning, when nobody reads them any more.
const SHED: usize = 1 << 20;

/// So many tensors wait at most until they are computed together.
const DEFERRED: usize = 256;

/// What some goals need.
struct Needs {
    goals: Vec<TensorId>,
    tensors: BTreeSet<TensorId>,
    /// The components that make any of it, in order.
    components: Vec<usize>,
    /// Large tensors by the last component that reads them.
    last: HashMap<usize, Vec<TensorId>>,
    /// Of recursions in steps, what nobody else reads.
    unread: HashMap<usize, Vec<TensorId>>,
    /// That an index of one of their equations has too many values.
    refused: Option<Refusal>,
}

/// What is kept of a program between calls.
struct Session {
    /// Tensors that are written out where they are read, and have no value of their own.
    inlined: BTreeSet<TensorId>,
    /// Relations that hold blocks, and what they were taken apart into.
    splits: BTreeMap<TensorId, Split>,
    /// Those of which nobody asked for the tuples when it was made.
    skipped: BTreeSet<TensorId>,
    /// The least contributions to relations that must meet none below 0.
    watches: BTreeMap<TensorId, TensorId>,
    machine: Machine,
    components: Arc<Vec<Component>>,
    /// Components that are done as one.
    stretches: repeated::stretch::Kept,
    /// Whether that is all that changes from one evaluation to the next.
    direct: Option<repeated::direct::Direct>,
    /// How many tuples were derived of which relation, and their names.
    derived: (Vec<(TensorId, u64)>, Lengths),
    /// The tensors of other components that each one reads.
    sources: Vec<Vec<TensorId>>,
    /// What the last goals needed.
    needed: Option<Arc<Needs>>,
    /// For every component what it was last made from, and which of its tensors were not written down.
    made: Vec<Option<Stamps>>,
    left_out: Vec<Vec<TensorId>>,
    /// What does not come to rest, and from what: it takes thousands of rounds to know.
    restless: HashMap<usize, (Stamps, Refusal)>,
    /// Whether it was evaluated since what waits was looked for.
    may_wait: bool,
    parameters: Parameters,
    /// About how many bytes are kept.
    bytes: usize,
}

impl Session {
    fn new(
        request: &Request<'_>,
        goals: &[TensorId],
        (storage, precision): (Storage, Precision),
        pool: &Arc<Pool>,
        stop: &Stop,
        unknown: &BTreeSet<TensorId>,
    ) -> Session {
        let counts = request.program.tensors.iter().any(|tensor| tensor.kind == Kind::Count);
        let precision = if counts { Precision::Double } else { precision };
        let mut program = request.program.clone();
        rewrites::full::dropped(&mut program);
        rewrites::unions::listed(&mut program, storage);
        let machine = |program: Arc<Program>| {
            let budget = request.budget;
            let mut machine = Machine::new(program, budget, Storage::Auto, precision, Arc::clone(pool));
            machine.stop = stop.clone();
            machine
        };
        let mut numbering = Numbering::new(&machine, unknown, program.needs(goals));
        let (splits, levels) = rewritten::tuple_blocks::apart(&mut program, storage, &mut numbering);
        let (mut program, inlined) = rewrites::inline::inlined(&program, goals, storage);
        let watches = tensor_logic_core::signs::watch(&mut program);
        let linear = recursion::linear::prepare(&mut program, |id| levels.contains_key(&id));
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
        let (made, left_out) = (vec![None; components.len()], vec![Vec::new(); components.len()]);
        let mut machine = Machine::new(program, request.budget, storage, precision, Arc::clone(pool));
        machine.linear = linear;
        machine.levels = levels.into_iter().map(|(id, levels)| (id, Arc::new(levels))).collect();
        let skipped = numbering.skipped;
        // What was added here to list or to number tuples is no relation of the program.
        let added = request.program.tensors.len()..machine.program.tensors.len();
        machine.blocks = added.map(|id| (TensorId(id as u32), 0)).collect();
        machine.blocks.extend(splits.iter().flat_map(|(id, split)| split.counted(*id)));
        Session {
            sources,
            needed: None,
            inlined,
            splits,
            skipped,
            watches,
            machine,
            components: Arc::new(components),
            stretches: repeated::stretch::Kept::default(),
            direct: None,
            derived: Default::default(),
            made,
            left_out,
            restless: HashMap::new(),
            may_wait: false,
            parameters: Parameters::new(),
            bytes: 0,
        }
    }

    /// Takes over the values of another program's tensors that are the same here.
    fn adopt(&mut self, other: Session, same: &BTreeSet<TensorId>) {
        let old = &other.machine;
        if (old.storage, old.precision) != (self.machine.storage, self.machine.precision) {
            return;
        }
        self.parameters = other.parameters.clone();
        self.parameters.retain(|id, _| same.contains(id));
        for (at, component) in self.components.iter().enumerate() {
            let made = other.components.iter().position(|known| known.tensors == component.tensors);
            let fresh = made.is_some_and(|made| {
                let sources = other.sources[made].iter().map(|read| Source::Tensor(*read));
                other.made[made] == Some(old.stamps(sources))
            });
            let left_out = made.map_or(&[][..], |made| &other.left_out[made]);
            let is_there = |id: &TensorId| old.stored(*id).is_some() || left_out.contains(id);
            let all = component.tensors.iter().all(|id| same.contains(id) && is_there(id));
            let below = self.sources[at].iter().all(|id| self.machine.stored(*id).is_some());
            if !(fresh && all && below) {
                continue;
            }
            for id in &component.tensors {
                if let Some(stored) = old.stored(*id) {
                    self.machine.store(*id, stored.clone());
                }
            }
            let sources = self.sources[at].iter().map(|read| Source::Tensor(*read));
            self.made[at] = Some(self.machine.stamps(sources));
            self.left_out[at] = left_out.to_vec();
        }
    }

    /// The goals and what their values depend on.
    fn needs(&mut self, goals: &[TensorId]) -> Arc<Needs> {
        if let Some(needs) = self.needed.as_ref().filter(|needs| needs.goals == goals) {
            return Arc::clone(needs);
        }
        let program = &self.machine.program;
        let mut tensors = program.needs(goals);
        // The tuples of what is read in parts are counted.
        let parts = self.splits.values().filter(|split| tensors.contains(&split.values));
        let tuples: Vec<TensorId> = parts.filter_map(|split| split.tuples).collect();
        tensors.extend(program.needs(&tuples));
        let watches: Vec<_> = self.watches.iter().filter(|(of, _)| tensors.contains(of)).collect();
        tensors.extend(watches.into_iter().map(|(_, watch)| *watch));
        let own = |at: &usize| mine(&self.components[*at], &tensors);
        let components: Vec<usize> = (0..self.components.len()).filter(own).collect();
        let last = self.last_uses(goals, &tensors);
        // Of itself no component is a source.
        let sources = components.iter().flat_map(|at| &self.sources[*at]);
        let read: BTreeSet<TensorId> = goals.iter().chain(sources).copied().collect();
        let stepped = components.iter().filter(|at| matches!(self.components[**at].class, Class::Stepped(_)));
        let unread = stepped.map(|at| {
            let own = self.components[*at].tensors.iter().filter(|id| !read.contains(id));
            (*at, own.copied().collect())
        });
        let unread = unread.collect();
        let of = components.iter().flat_map(|at| &self.components[*at].equations);
        let refused = of.copied().find_map(|at| {
            let equation = program.equation(at);
            let refusal = too_wide(program, equation)?;
            let square = program.tensor(equation.tensor).style == Style::Square;
            Some(self.machine.fits(equation.tensor).err().filter(|_| square).unwrap_or(refusal))
        });
        let needs = Arc::new(Needs { goals: goals.to_vec(), tensors, components, last, unread, refused });
        self.needed = Some(Arc::clone(&needs));
        needs
    }

    /// Large tensors that no component behind a component reads, by the position of that component: these hang on
    /// parameters and are made anew at the next step.
    fn last_uses(&self, goals: &[TensorId], needed: &BTreeSet<TensorId>) -> HashMap<usize, Vec<TensorId>> {
        let program = &self.machine.program;
        let mut moves: BTreeSet<TensorId> =
            needed.iter().copied().filter(|id| program.tensor(*id).role == Role::Parameter).collect();
        let mut last = BTreeMap::new();
        let own = self.components.iter().enumerate().filter(|(_, component)| mine(component, needed));
        for (at, component) in own {
            if self.sources[at].iter().any(|id| moves.contains(id)) {
                moves.extend(component.tensors.iter().copied());
            }
            last.extend(component.tensors.iter().chain(&self.sources[at]).map(|id| (*id, at)));
        }
        let mut uses: HashMap<usize, Vec<TensorId>> = HashMap::new();
        for (id, at) in last {
            let tensor = program.tensor(id);
            let large = tensor.style == Style::Square && kernels::volume(&tensor.sizes()) > SHED;
            if large && moves.contains(&id) && tensor.role == Role::Computed && !goals.contains(&id) {
                uses.entry(at).or_default().push(id);
            }
        }
        uses
    }

    /// Evaluates what some goals need; says whether nothing changed but what a stretch makes of parameters.
    fn evaluate(
        &mut self,
        request: &Request<'_>,
        goals: &[TensorId],
        given: &mut Data,
        shed: bool,
    ) -> Result<bool> {
        if self.machine.budget != request.budget {
            self.machine.budget = request.budget;
            self.machine.forget_records();
            self.direct = None;
            self.stretches.clear();
            self.made.fill(None);
            self.restless.clear();
        }
        if self.done_directly(request, goals, given)? {
            return Ok(true);
        }
        let program = Arc::clone(&self.machine.program);
        self.may_wait = true;
        self.machine.tuples = 0;
        self.machine.bytes = 0;
        let needs = self.needs(goals);
        if let Some(refusal) = &needs.refused {
            return Err(refusal.clone());
        }
        let needed = &needs.tensors;
        let components = Arc::clone(&self.components);
        let mut stretches = self.stretches.of(goals, self.machine.notes.is_none());
        let mut evaluated = Vec::new();
        for at in needs.components.iter().copied() {
            let component = &components[at];
            let within = stretches.position(at);
            if let Some(within) = within {
                let stretch = &mut stretches.all[within];
                if stretch.components.last() != Some(&at) || self.machine.done_again(stretch)? {
                    continue;
                }
                // It is not what it was. What is done one by one now stands between others, and may read some of them.
                for at in stretches.remove(within).components {
                    self.made[at] = None;
                    if self.up_to_date((at, &components[at]), request, &needs, given)? {
                        evaluated.push(at);
                    }
                }
                stretches.failed += 1;
                continue;
            }
            if self.up_to_date((at, component), request, &needs, given)? {
                evaluated.push(at);
            }
            for id in needs.last.get(&at).filter(|_| shed).into_iter().flatten() {
                self.machine.forget(*id);
                let own = components.iter().position(|component| component.tensors.contains(id));
                own.into_iter().for_each(|own| self.made[own] = None);
            }
        }
        let own = needs.components.iter().map(|at| &components[*at]);
        self.machine.settle(own, |id| goals.contains(&id));
        for (of, watch) in self.watches.iter().filter(|(_, watch)| needed.contains(watch)) {
            if let Some(Stored::Relation(least)) = self.machine.stored(*watch)
                && let Some(at) = (0..least.len).find(|at| least.value(*at) < 0.0)
            {
                return Err(falls(&program, *of, &least.tuple(at)));
            }
        }
        evaluated.sort_unstable();
        self.join(&mut stretches, &evaluated, goals, needed);
        self.direct = self.direct(&stretches, &evaluated, &needs);
        self.stretches.keep(stretches);
        self.bytes = self.machine.kept_bytes() + planned_bytes(&self.machine.program);
        Ok(false)
    }

    /// Evaluates a component, if anything that it comes from has changed; says whether it had to.
    fn up_to_date(
        &mut self,
        (at, component): (usize, &Component),
        request: &Request<'_>,
        needs: &Needs,
        given: &mut Data,
    ) -> Result<bool> {
        let program = Arc::clone(&self.machine.program);
        for id in component.tensors.iter().filter(|id| program.tensor(**id).role == Role::Parameter) {
            let (old, new) = (self.parameters.get(id), request.parameters.get(id));
            let same = match (old, new) {
                (Some(old), Some(new)) => Arc::ptr_eq(old, new) || bits_equal(old, new),
                (None, None) => true,
                _ => false,
            };
            if !same {
                self.made[at] = None;
                match new {
                    Some(new) => self.parameters.insert(*id, Arc::clone(new)),
                    None => self.parameters.remove(id),
                };
            }
        }
        // What parameters are is asked at every step of learning.
        if let ([id], [], None) =
            (component.tensors.as_slice(), component.equations.as_slice(), &self.made[at])
            && let Some(values) = self.parameters.get(id)
            && self.machine.took_parameter(*id, values)
        {
            self.made[at] = Some(Stamps::new());
            return Ok(true);
        }
        let sources = self.sources[at].iter().map(|read| Source::Tensor(*read));
        let stamps = self.machine.stamps(sources);
        let unread = needs.unread.get(&at).map_or(&[][..], Vec::as_slice);
        let written = self.left_out[at].iter().all(|id| unread.contains(id));
        if self.made[at].as_ref() == Some(&stamps) && written {
            self.machine.count(component);
            return Ok(false);
        }
        self.made[at] = None;
        if let Some((_, refusal)) = self.restless.get(&at).filter(|(from, _)| *from == stamps) {
            return Err(refusal.clone());
        }
        let data = match component.tensors.as_slice() {
            [id] if component.equations.is_empty() && !program.tensor(*id).given.is_empty() => Some(*id),
            _ => None,
        };
        let data = data.filter(|id| program.tensor(*id).role != Role::Parameter);
        let known = data.and_then(|id| given.get(&(id, self.machine.precision)));
        // The same data may stand for another tensor: how it is joined and stored belongs to it.
        let same = |known: &Tensor, id: TensorId| {
            let tensor = program.tensor(id);
            (tensor.style, tensor.kind, tensor.combine) == (known.style, known.kind, known.combine)
                && tensor.places == known.places
                && tensor.given.len() == known.given.len()
                && tensor.given.iter().zip(&known.given).all(|(a, b)| a.is(b))
        };
        match (known, data) {
            (Some((known, stored)), Some(id)) if same(known, id) => {
                self.machine.store(id, stored.clone());
            }
            _ => {
                // Steps and rounds read numbers that are there.
                if self.machine.deferred >= DEFERRED || !matches!(component.class, Class::Plain) {
                    let rest = self.components.iter().zip(&self.sources).skip(at);
                    let rest = rest.filter(|(component, _)| mine(component, &needs.tensors));
                    let read: BTreeSet<TensorId> = rest.flat_map(|(_, reads)| reads).copied().collect();
                    let asked = |id| needs.goals.contains(&id) || read.contains(&id);
                    self.machine.settle(self.components.iter(), asked);
                }
                self.machine.unread = unread.to_vec();
                let done = self.machine.component(component, &self.parameters);
                self.machine.unread.clear();
                let left_out = std::mem::take(&mut self.machine.left_out);
                left_out.iter().for_each(|id| self.machine.forget(*id));
                self.left_out[at] = left_out;
                if let Err(refusal) = done {
                    if refusal.code == Code::Divergence {
                        self.restless.insert(at, (stamps, refusal.clone()));
                    }
                    return Err(refusal);
                }
            }
        }
        if let Some(id) = data
            && let Some(stored) = self.machine.stored(id)
        {
            given.insert((id, self.machine.precision), (program.tensor(id).clone(), stored.clone()));
        }
        self.made[at] = Some(stamps);
        Ok(true)
    }

    /// Whether blocks may not hold counts that the goals need with all their digits.
    fn has_doubtful_counts(&mut self, goals: &[TensorId]) -> bool {
        let (needs, machine) = (self.needs(goals), &self.machine);
        needs.tensors.iter().any(|id| machine.is_doubtful_count(*id) || machine.may_cancel(*id))
    }

    /// Counts the tuples of the relations that the goals need, as far as the first `own` tensors of the program are these.
    fn count_derived(&mut self, goals: &[TensorId], own: usize) {
        let needs = self.needs(goals);
        let (machine, program) = (&self.machine, &self.machine.program);
        let mut derived = Vec::new();
        let lengths = self.stretches.lengths(goals);
        let length = |id: TensorId| match machine.stored(id) {
            Some(Stored::Relation(relation)) => Some(relation.len as u64),
            Some(Stored::Dense(_)) => None,
            None => lengths.iter().find(|(other, _)| *other == id).map(|(_, length)| *length),
        };
        // A relation that was taken apart, unless one before it or another tensor has its name.
        for (id, split) in self.splits.iter().rev() {
            let tuples = split.tuples.filter(|tuples| needs.tensors.contains(tuples));
            if let Some(length) = tuples.and_then(length) {
                derived.push((*id, length.saturating_mul(split.block())));
            }
        }
        for id in &needs.tensors {
            let tensor = program.tensor(*id);
            if tensor.role == Role::Computed
                && tensor.style == Style::Round
                && !tensor.hidden
                && (id.0 as usize) < own
                && let Some(length) = length(*id)
            {
                derived.push((*id, length));
            }
        }
        // Names are written down where they are not those of the last time.
        if self.derived.0 != derived {
            let name = |(id, length): &(TensorId, u64)| (program.name(*id).to_owned(), *length);
            let named: BTreeMap<String, u64> = derived.iter().map(name).collect();
            self.derived = (derived, Arc::new(named.into_iter().collect()));
        }
    }
}

/// The refusal of an equation of which an index has more values than there are codes: tables hold 32 bits of each.
fn too_wide(program: &Program, equation: &Equation) -> Option<Refusal> {
    let mut wide = None;
    let mut visit = |index: IndexId| {
        if let Range::Domain(domain) = &program.index(index).range
            && domain.len() >= WIDEST
        {
            wide = Some(index);
        }
    };
    equation.left.iter().copied().for_each(&mut visit);
    for term in &equation.terms {
        term.over.iter().copied().for_each(&mut visit);
        walk::expr_indices(&term.body, &mut visit);
        walk::when_indices(&term.when, &mut visit);
    }
    Some(wider(program, wide?, equation.head_span))
}

/// Whether a component makes anything that is needed.
fn mine(component: &Component, needed: &BTreeSet<TensorId>) -> bool {
    component.tensors.iter().any(|id| needed.contains(id))
}

fn bits_equal(a: &[f64], b: &[f64]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.to_bits() == b.to_bits())
}
