//! The engine that programs run on: relations joined by rules go to the relational engine, all
//! else to the evaluation of blocks.
//!
//! Enter at [`Auto`]. A goal whose whole need is rules is compiled with its constants as demand
//! ([`crate::datalog`]). Where other equations read a recursive relation of that kind, or a join of three or more, it is
//! derived first and stands as data in the program that the other engine sees; where such a relation reads relations that
//! are not made by rules alone, these are evaluated before. Of what equations read at constants only, those parts are derived
//! (`bound`).

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use crate::ast::Span;
use crate::bound::{Narrowed, narrowed};
use crate::datalog::{self, Derived, Session, Take};
use crate::engine::{Carried, Engine, Request, Slope, Stop, Value};
use crate::error::Result;
use crate::handed::{data, with_data};
use crate::profile::Profile;
use crate::program::{Combine, Component, Given, Program, Role, Style, TensorId};
use crate::weighted::{self, Asked, Weighted};

/// The engine behind `--engine auto`.
pub struct Auto {
    blocks: Box<dyn Engine>,
    derived: Vec<(String, u64)>,
    /// What was derived for programs, the last one used first.
    prepared: VecDeque<Prepared>,
    /// The relations of programs, by their stamps, the last one used first.
    sessions: Vec<(u64, Session)>,
    /// What was done, if somebody wants to know.
    observed: Option<Profile>,
    /// Whether an evaluation goes on, which may ask for others.
    busy: bool,
    /// The circuits of relations with probabilities.
    weighted: Weighted,
    /// What ends an evaluation.
    stop: Stop,
    /// What a program that is to come has in common with the one that the blocks saw last.
    carried: Option<Carried>,
}

/// The program at hand with what rules derive of it as data.
#[derive(Default)]
struct Prepared {
    /// Its stamp.
    stamp: Option<u64>,
    /// What was looked at so far, and what of it was derived.
    seen: BTreeSet<TensorId>,
    values: BTreeMap<TensorId, Vec<Given>>,
    /// How many tuples these hold.
    tuples: usize,
    /// Counts of the relations that were derived for it.
    counts: BTreeMap<String, u64>,
    /// What reads parts of relations in place of the program, once that was looked for.
    narrowed: Option<Option<Arc<Narrowed>>>,
    /// Relations whose parts rules do not make.
    declined: BTreeSet<TensorId>,
    /// What the other engine sees, if anything was derived.
    program: Option<Arc<Program>>,
    /// Goals of which none is made by rules, and all below is looked at; and the same in order, each once.
    open: Vec<Open>,
}

impl Prepared {
    /// Keeps what was derived of a tensor.
    fn keep(&mut self, id: TensorId, value: Vec<Given>, counts: Vec<(String, u64)>) {
        self.tuples += counts.iter().map(|(_, count)| *count as usize).sum::<usize>();
        self.counts.extend(counts);
        self.values.insert(id, value);
        self.program = None;
    }

    /// Forgets the parts of relations: their numbers may be those of other tensors.
    fn forget_parts(&mut self, program: &Program) {
        self.narrowed = None;
        self.program = None;
        self.values.retain(|id, _| (id.0 as usize) < program.tensors.len());
    }
}

/// Goals, and the same in order, each once.
type Open = Arc<[Vec<TensorId>; 2]>;

/// A program with what was derived for it as data, if anything was, and how many tuples each relation has.
type Ready = (Option<Arc<Program>>, BTreeMap<String, u64>);

/// What answers goals that are not made by rules alone.
type Others<'a, T> = &'a dyn Fn(&mut dyn Engine, &Request<'_>, &[TensorId]) -> Result<Vec<T>>;

/// So many programs' relations are remembered.
const SESSIONS: usize = 4;

/// So many lists of goals of a program are remembered.
const GOALS: usize = 8;

/// So many tuples that were derived for programs are remembered beside those of the one at work.
const MOST: usize = 20_000_000;

impl Auto {
    /// Rules on the relational engine, the rest on `blocks`.
    pub fn new(blocks: Box<dyn Engine>) -> Auto {
        Auto {
            blocks,
            derived: Vec::new(),
            prepared: VecDeque::new(),
            sessions: Vec::new(),
            observed: None,
            busy: false,
            weighted: Weighted::default(),
            stop: Stop::default(),
            carried: None,
        }
    }

    /// What rules derive of a program.
    fn session(&mut self, request: &Request<'_>) -> &mut Session {
        let stamp = request.program.stamp.number();
        let kept = self.sessions.iter().position(|(known, _)| *known == stamp);
        let session = kept.map_or_else(Default::default, |at| self.sessions.remove(at).1);
        self.sessions.insert(0, (stamp, session));
        for (_, mut session) in self.sessions.drain(SESSIONS.min(self.sessions.len())..) {
            if let Some(observed) = &mut self.observed {
                observed.append(session.observed());
            }
        }
        if kept.is_none() {
            self.sessions[0].1.observe(self.observed.is_some());
        }
        self.sessions[0].1.stop_when(&self.stop);
        &mut self.sessions[0].1
    }

    /// The value of a goal by rules, or no.
    fn by_rules<T>(
        &mut self,
        request: &Request<'_>,
        goal: TensorId,
        take: Take<T>,
    ) -> Result<Option<Derived<T>>> {
        self.session(request).value(request.program, goal, request.budget, take)
    }

    /// The program that the other engine sees: recursive relations, and joins that are too large for tables, are data.
    fn prepare(&mut self, request: &Request<'_>, goals: &[TensorId]) -> Result<Ready> {
        let program = request.program;
        let stamp = Some(program.stamp.number());
        let kept = self.prepared.iter().position(|known| known.stamp == stamp);
        let kept = kept.and_then(|at| self.prepared.remove(at));
        let prepared = kept.unwrap_or_else(|| Prepared { stamp, ..Prepared::default() });
        let mut tuples = 0;
        let others = self.prepared.iter().take_while(|other| {
            tuples += other.tuples + 1000;
            tuples <= MOST
        });
        self.prepared.truncate(others.count());
        self.prepared.push_front(prepared);
        let narrowed = self.parts(request, goals)?;
        let seen = narrowed.as_ref().map_or(program, |narrowed| &narrowed.program);
        from_the_top(seen, goals, &mut |component, tensors| self.are_derived(request, component, tensors))?;
        Ok(self.ready(program))
    }

    /// The program that reads parts of relations, with those that goals need derived; or no, if there is none.
    fn parts(&mut self, request: &Request<'_>, goals: &[TensorId]) -> Result<Option<Arc<Narrowed>>> {
        let program = request.program;
        'narrower: loop {
            let prepared = &mut self.prepared[0];
            let known = prepared.narrowed.get_or_insert_with(|| {
                let whole = prepared.values.keys().chain(&prepared.declined).copied().collect();
                narrowed(program, &whole).map(Arc::new)
            });
            let Some(narrowed) = known.clone() else { return Ok(None) };
            let needed = narrowed.program.needs(goals);
            for (part, of) in narrowed.parts.iter().filter(|(part, _)| needed.contains(part)) {
                if self.prepared[0].values.contains_key(part) {
                    continue;
                }
                // The relations of a program serve what reads parts of them too.
                let session = self.session(request);
                let found =
                    session.value_of_part(&narrowed.program, *part, request.budget, datalog::given)?;
                let prepared = &mut self.prepared[0];
                let Some((value, counts)) = found else {
                    prepared.declined.insert(*of);
                    prepared.forget_parts(program);
                    continue 'narrower;
                };
                prepared.keep(*part, value, counts);
            }
            return Ok(Some(narrowed));
        }
    }

    /// Derives these tensors of a component as far as they are made by rules; says whether all are.
    fn are_derived(
        &mut self,
        request: &Request<'_>,
        component: &Component,
        tensors: &[TensorId],
    ) -> Result<bool> {
        for id in tensors {
            let known = self.prepared[0].seen.contains(id) || self.prepared[0].values.contains_key(id);
            if known || !datalog::for_rules(request.program, component, *id) {
                continue;
            }
            self.prepared[0].seen.insert(*id);
            let found = self.by_rules(request, *id, datalog::given).and_then(|found| match found {
                None => self.over_blocks(request, component, *id),
                found => Ok(found),
            });
            if found.is_err() {
                // It may be asked for again.
                self.prepared[0].seen.remove(id);
            }
            if let Some((value, counts)) = found? {
                self.prepared[0].keep(*id, value, counts);
            }
        }
        Ok(tensors.iter().all(|id| self.prepared[0].values.contains_key(id)))
    }

    /// The program at hand with what was derived for it.
    fn ready(&mut self, program: &Program) -> Ready {
        let Some(prepared) = self.prepared.front_mut() else { return Ready::default() };
        if prepared.program.is_none() && !prepared.values.is_empty() {
            let narrowed = prepared.narrowed.iter().flatten().next();
            let program = narrowed.map_or(program, |narrowed| &narrowed.program);
            prepared.program = Some(Arc::new(with_data(program, prepared.values.clone())));
        }
        (prepared.program.clone(), prepared.counts.clone())
    }

    /// A relation by rules over relations that are none, which are evaluated before; or no.
    fn over_blocks(
        &mut self,
        request: &Request<'_>,
        component: &Component,
        id: TensorId,
    ) -> Result<Option<Derived<Vec<Given>>>> {
        let program = request.program;
        let Some(inputs) = evaluated_before(program, component) else { return Ok(None) };
        let derived = std::mem::take(&mut self.derived);
        let values = self.values(request, &inputs)?;
        self.derived = derived;
        let given = |(id, value)| (id, data(program.tensor(id), value));
        let fed = with_data(program, inputs.into_iter().zip(values).map(given).collect());
        let mut session = Session::default();
        session.observe(self.observed.is_some());
        session.stop_when(&self.stop);
        let value = session.value(&fed, id, request.budget, datalog::given);
        if let Some(observed) = &mut self.observed {
            observed.append(session.observed());
        }
        value
    }
}

/// Goes from what goals need to what that needs: readers before what they read, of which they may ask for a part only. Asks of each
/// component whether what is needed of it is derived; where not, all of it is, and all below is needed.
pub(crate) fn from_the_top(
    program: &Program,
    goals: &[TensorId],
    are_derived: &mut dyn FnMut(&Component, &[TensorId]) -> Result<bool>,
) -> Result<()> {
    let mut wanted: BTreeSet<TensorId> = goals.iter().copied().collect();
    for component in program.components.iter().rev() {
        let asked: Vec<TensorId> =
            component.tensors.iter().filter(|id| wanted.contains(id)).copied().collect();
        if asked.is_empty() || are_derived(component, &asked)? {
            continue;
        }
        are_derived(component, &component.tensors)?;
        for at in &component.equations {
            program.equation(*at).visit_reads(&mut |read, _| {
                wanted.insert(read.tensor);
            });
        }
    }
    Ok(())
}

/// The relations that a component of rules reads and that are evaluated before, if it is one of rules over such.
pub(crate) fn evaluated_before(program: &Program, component: &Component) -> Option<Vec<TensorId>> {
    let mut inputs: Vec<TensorId> = component.tensors.iter().flat_map(|id| program.reads_of(*id)).collect();
    inputs.retain(|id| !component.tensors.contains(id));
    let round = |id: &TensorId| program.tensor(*id).style == Style::Round;
    let changes = |id: &TensorId| program.tensor(*id).role == Role::Parameter;
    let boolean = |id: &TensorId| program.tensor(*id).combine == Combine::Exists;
    let suits = !inputs.is_empty()
        && inputs.iter().all(round)
        && component.tensors.iter().all(boolean)
        && !program.needs(&inputs).iter().any(changes);
    suits.then_some(inputs)
}

impl Engine for Auto {
    fn values(&mut self, request: &Request<'_>, goals: &[TensorId]) -> Result<Vec<Value>> {
        self.answers(request, goals, &|value| value, &|blocks, request, goals| blocks.values(request, goals))
    }

    fn listed(&mut self, request: &Request<'_>, goals: &[TensorId]) -> Result<Vec<Slope>> {
        self.answers(request, goals, &Slope::Whole, &|blocks, request, goals| blocks.listed(request, goals))
    }

    fn below(&mut self, request: &Request<'_>, goal: TensorId) -> Result<Option<Vec<(TensorId, Value)>>> {
        let mut session = Session::default();
        session.stop_when(&self.stop);
        session.below(request.program, goal, request.budget)
    }

    fn release(&mut self, parameter: TensorId) {
        self.blocks.release(parameter);
    }

    fn derived(&self) -> &[(String, u64)] {
        &self.derived
    }

    fn stop_when(&mut self, stop: Arc<AtomicBool>) {
        self.stop = Stop::when(Arc::clone(&stop));
        self.blocks.stop_when(stop);
    }

    fn stop(&self) -> Stop {
        self.stop.clone()
    }

    fn carry(&mut self, old: u64, to: &Program, same: &BTreeSet<TensorId>) {
        let new = to.stamp.number();
        if let Some((stamp, session)) = self.sessions.iter_mut().find(|(stamp, _)| *stamp == old) {
            session.retain(same);
            *stamp = new;
        }
        let seen = match self.carried.take() {
            // The blocks were not asked since.
            Some(carried) if carried.to == old => Some((carried.from, &carried.same & same)),
            _ => None,
        };
        let mut inner = None;
        if let Some(prepared) = self.prepared.iter_mut().find(|known| known.stamp == Some(old)) {
            inner = prepared.program.take().map(|program| program.stamp.number());
            prepared.stamp = Some(new);
            prepared.narrowed = None;
            prepared.declined.clear();
            // A goal's number may be another's by now.
            prepared.open.clear();
            prepared.seen.retain(|id| same.contains(id));
            prepared.values.retain(|id, _| same.contains(id));
            let names: BTreeSet<&str> = same.iter().map(|id| to.name(*id)).collect();
            prepared.counts.retain(|name, _| names.contains(name.as_str()));
        }
        let (from, same) = seen.unwrap_or_else(|| (inner.unwrap_or(old), same.clone()));
        self.carried = Some(Carried { from, to: new, same });
    }

    fn observe(&mut self, on: bool) {
        self.observed = on.then(Profile::default);
        self.sessions.iter_mut().for_each(|(_, session)| session.observe(on));
        self.blocks.observe(on);
    }

    fn observed(&mut self) -> Option<Profile> {
        let mut observed = std::mem::take(self.observed.as_mut()?);
        for (_, session) in self.sessions.iter_mut().rev() {
            observed.append(session.observed());
        }
        observed.append(self.blocks.observed().unwrap_or_default());
        Some(observed)
    }

    fn forget_results(&mut self) {
        self.sessions.iter_mut().for_each(|(_, session)| session.forget_all());
        self.prepared.clear();
        self.weighted.forget();
        self.blocks.forget_results();
    }
}

impl Auto {
    /// Answers the goals, and notes how long that took if somebody wants to know.
    fn answers<T: Clone>(
        &mut self,
        request: &Request<'_>,
        goals: &[TensorId],
        by_rules: &dyn Fn(Value) -> T,
        others: Others<'_, T>,
    ) -> Result<Vec<T>> {
        if self.observed.is_none() || self.busy {
            return self.evaluated(request, goals, by_rules, others);
        }
        self.busy = true;
        let since = Instant::now();
        let values = self.evaluated(request, goals, by_rules, others);
        self.busy = false;
        if let Some(observed) = &mut self.observed {
            observed.evaluations += 1;
            observed.time += since.elapsed();
        }
        values
    }

    /// Answers the goals that are relations with probabilities, then the rest with their values.
    fn over_weighted<T: Clone>(
        &mut self,
        request: &Request<'_>,
        goals: &[TensorId],
        asked: Asked,
        by_rules: &dyn Fn(Value) -> T,
        others: Others<'_, T>,
    ) -> Result<Vec<T>> {
        let mut weighted = std::mem::take(&mut self.weighted);
        let stop = self.stop.clone();
        let found = weighted.evaluate(request, asked, &stop, &mut |request, goals| {
            self.evaluated(request, goals, &|value| value, &|blocks, request, goals| {
                blocks.values(request, goals)
            })
        });
        self.weighted = weighted;
        let mut found = found?;
        if let Some(observed) = &mut self.observed {
            found.done.drain(..).for_each(|done| observed.add(done));
        }
        let open: Vec<TensorId> = goals.iter().copied().filter(|id| !found.values.contains_key(id)).collect();
        let mut answers: BTreeMap<TensorId, T> = BTreeMap::new();
        if open.is_empty() {
            self.derived.clear();
        } else {
            let parameters = &found.parameters;
            let inner = Request { program: &found.program, parameters, budget: request.budget };
            let values = self.evaluated(&inner, &open, by_rules, others)?;
            answers.extend(open.into_iter().zip(values));
        }
        // What only serves to ground and to hand over is nobody's relation.
        let program = request.program;
        let own = |name: &str| program.tensors.iter().any(|tensor| tensor.name == name && !tensor.hidden);
        self.derived.retain(|(name, _)| !found.counts.contains_key(name) && own(name));
        self.derived.extend(found.counts);
        answers.extend(found.values.into_iter().map(|(id, value)| (id, by_rules(value))));
        Ok(goals.iter().filter_map(|goal| answers.get(goal).cloned()).collect())
    }

    /// Answers the goals that rules make, then asks the other engine for the rest.
    fn evaluated<T: Clone>(
        &mut self,
        request: &Request<'_>,
        goals: &[TensorId],
        by_rules: &dyn Fn(Value) -> T,
        others: Others<'_, T>,
    ) -> Result<Vec<T>> {
        self.stop.check(Span::default())?;
        let before = std::mem::take(&mut self.derived);
        if let Some(known) = self.known_open(request, goals) {
            let open = known[1].as_slice();
            let ready = self.ready(request.program);
            let answers = self.over_open(request, open, ready, others, before)?;
            if open == goals {
                return Ok(answers);
            }
            let answer = |goal: &TensorId| answers.get(open.binary_search(goal).ok()?).cloned();
            return Ok(goals.iter().filter_map(answer).collect());
        }
        let asked = weighted::asked(request.program, goals);
        if !asked.is_empty() {
            return self.over_weighted(request, goals, asked, by_rules, others);
        }
        let all: BTreeSet<TensorId> = goals.iter().copied().collect();
        let (program, budget) = (request.program, request.budget);
        let (found, counts) = self.session(request).together(program, &all, budget, datalog::answered)?;
        self.derived.extend(counts);
        let mut answers: BTreeMap<TensorId, T> =
            found.into_iter().map(|(id, value)| (id, by_rules(value))).collect();
        let mut open: Vec<TensorId> = Vec::new();
        for goal in all.into_iter().filter(|goal| !answers.contains_key(goal)).collect::<Vec<_>>() {
            match self.by_rules(request, goal, datalog::answered)? {
                None => open.push(goal),
                Some((value, counts)) => {
                    answers.insert(goal, by_rules(value));
                    self.derived.extend(counts);
                }
            }
        }
        if !open.is_empty() {
            let ready = self.prepare(request, &open)?;
            let found = self.over_open(request, &open, ready, others, Vec::new())?;
            if answers.is_empty()
                && let Some(prepared) = self.prepared.front_mut()
            {
                prepared.open.truncate(GOALS - 1);
                prepared.open.insert(0, Arc::new([goals.to_vec(), open.clone()]));
            }
            answers.extend(open.into_iter().zip(found));
        }
        Ok(goals.iter().filter_map(|goal| answers.get(goal).cloned()).collect())
    }

    /// These goals in order, each once, if it is known that none of them is made by rules.
    fn known_open(&mut self, request: &Request<'_>, goals: &[TensorId]) -> Option<Open> {
        let stamp = Some(request.program.stamp.number());
        let is_it = |prepared: &Prepared| prepared.stamp == stamp;
        if !self.prepared.front().is_some_and(is_it) {
            // Of batches that take turns it is the one that was used longest ago.
            let at = self.prepared.iter().rposition(is_it)?;
            let prepared = self.prepared.remove(at)?;
            self.prepared.push_front(prepared);
        }
        self.prepared[0].open.iter().find(|open| open[0] == goals).cloned()
    }

    /// The other engine's answers, of what rules derived as data; `before` are the counts of the last answers.
    fn over_open<T>(
        &mut self,
        request: &Request<'_>,
        open: &[TensorId],
        (prepared, counts): Ready,
        others: Others<'_, T>,
        before: Vec<(String, u64)>,
    ) -> Result<Vec<T>> {
        let program = request.program;
        let inner = Request { program: prepared.as_deref().unwrap_or(program), ..request.clone() };
        if let Some(carried) = self.carried.take_if(|carried| carried.to == program.stamp.number()) {
            self.blocks.carry(carried.from, inner.program, &carried.same);
        }
        let found = others(&mut *self.blocks, &inner, open)?;
        if counts.is_empty() && self.derived.is_empty() && before == self.blocks.derived() {
            self.derived = before;
            return Ok(found);
        }
        self.derived.extend(counts);
        let known: BTreeSet<&str> = self.derived.iter().map(|(name, _)| name.as_str()).collect();
        let others = self.blocks.derived().iter().filter(|(name, _)| !known.contains(name.as_str()));
        let others: Vec<_> = others.cloned().collect();
        self.derived.extend(others);
        Ok(found)
    }
}
