//! Answers that are maintained while facts come and go: [`Maintained`].
//!
//! The workers of one process hold the dataflow; a batch of updates goes to all of them, and what comes out is what has
//! changed. Of a relation without values, or of least or greatest values, the facts are a set: who adds what is there, or takes
//! away what is not, changes nothing. Facts that are summed are counted.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use datarel::{Const, Database, RelationId, Rule, Value};

use crate::dataflow::{Found, Job};
use crate::evaluate::Options;
use crate::refusal::Refusal;
use crate::shared::{Fact, NONE, Row, Shared, Worth, refusal};
use crate::work::{Workers, finish, load, start, take};

/// A fact that comes or goes.
#[derive(Debug, Clone, PartialEq)]
pub struct Update {
    /// Its relation; it may have rules too.
    pub relation: RelationId,
    /// Its constants.
    pub tuple: Vec<Const>,
    /// Its value. Without one a fact that comes has the value 1, and all facts of a tuple go.
    pub value: Option<Value>,
    /// Whether it comes.
    pub comes: bool,
}

/// A tuple of an answer that has come or gone. Where a value changes, the old one goes and the new one comes.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// The relation.
    pub relation: RelationId,
    /// The constants.
    pub tuple: Vec<Const>,
    /// The value, where the relation has values.
    pub value: Option<Value>,
    /// Whether it has come.
    pub came: bool,
}

/// What each worker is given: facts with how often they are there more than before.
type Batch = Arc<Vec<(RelationId, Fact, isize)>>;

/// The facts of a tuple: values, and how often each was given.
type Given = BTreeMap<Worth, isize>;

/// Answers that are maintained.
pub struct Maintained {
    job: Arc<Job>,
    shared: Arc<Shared>,
    found: Arc<Found>,
    given: BTreeMap<(RelationId, Row), Given>,
    senders: Vec<Sender<Batch>>,
    done: Receiver<()>,
    workers: Option<Workers>,
    failed: Option<Refusal>,
}

impl Maintained {
    /// Derives the relations `goals`, and keeps what is needed to change them. What they hold stands beside.
    ///
    /// # Errors
    /// See [`Refusal`]. Maintained answers live in one process.
    pub fn start(
        database: &Database,
        rules: &[Rule],
        goals: &[RelationId],
        options: &Options,
    ) -> Result<(Maintained, Vec<Change>), Refusal> {
        let job = Arc::new(Job::new(database, rules, goals)?);
        let shared = Shared::new(&options.limits);
        let found = Arc::new(Found::default());
        let (tell, done) = channel();
        let (senders, receivers): (Vec<_>, Vec<_>) = (0..options.workers).map(|_| channel::<Batch>()).unzip();
        let receivers: Vec<_> = receivers.into_iter().map(|receiver| Mutex::new(Some(receiver))).collect();
        let tell = Mutex::new(tell);
        let workers = {
            let (job, shared, found) = (Arc::clone(&job), Arc::clone(&shared), Arc::clone(&found));
            start(options.workers, None, move |worker| {
                let own = receivers.get(worker.index());
                let own = own.and_then(|own| own.lock().unwrap_or_else(PoisonError::into_inner).take());
                let (Some(own), tell) = (own, tell.lock().unwrap_or_else(PoisonError::into_inner).clone())
                else {
                    return;
                };
                let mut inputs = load(worker, &job, &shared, &found);
                let mut time = 1;
                // Whoever has asked may be gone by the time that it is done.
                let _ = tell.send(());
                while let Ok(batch) = own.recv() {
                    let share = batch.iter().skip(worker.index()).step_by(worker.peers());
                    for (relation, fact, by) in share {
                        if let Some(input) = inputs.facts.get_mut(relation) {
                            input.update(fact.clone(), *by);
                        }
                    }
                    time += 1;
                    finish(worker, &mut inputs, time);
                    let _ = tell.send(());
                }
            })?
        };
        let given = given(&job);
        let (workers, failed) = (Some(workers), None);
        let mut maintained = Maintained { job, shared, found, given, senders, done, workers, failed };
        let changes = maintained.changes()?;
        Ok((maintained, changes))
    }

    /// Facts come and go, all at once; what changes of the answers, in order. An update that changes nothing has its position
    /// in the second list.
    ///
    /// # Errors
    /// [`Refusal::Update`] where one cannot be: then none is made. After any other refusal there are no answers any more.
    pub fn apply(&mut self, updates: &[Update]) -> Result<(Vec<Change>, Vec<usize>), Refusal> {
        if let Some(failed) = &self.failed {
            return Err(failed.clone());
        }
        let facts: Result<Vec<_>, _> = (0..).zip(updates).map(|(at, update)| self.fact(at, update)).collect();
        let mut net: BTreeMap<(RelationId, Fact), isize> = BTreeMap::new();
        let mut idle = Vec::new();
        for (at, (update, (row, worth))) in updates.iter().zip(facts?).enumerate() {
            let changed = self.given(update, row, worth);
            if changed.is_empty() {
                idle.push(at);
            }
            for (fact, by) in changed {
                *net.entry((update.relation, fact)).or_default() += by;
            }
        }
        let net =
            net.into_iter().filter(|(_, by)| *by != 0).map(|((relation, fact), by)| (relation, fact, by));
        let batch: Batch = Arc::new(net.collect());
        if batch.is_empty() {
            return Ok((Vec::new(), idle));
        }
        for sender in &self.senders {
            // A worker that is gone is missed below.
            let _ = sender.send(Arc::clone(&batch));
        }
        Ok((self.changes()?, idle))
    }

    /// Whether an update may have this constant: what is in no fact has bounds, see [`Refusal::Constant`].
    pub fn takes(&self, value: Const) -> bool {
        self.job.codes.code(value).is_some()
    }

    /// How many facts are given.
    pub fn facts(&self) -> usize {
        self.given.len()
    }

    /// An update in codes, if it can be.
    fn fact(&self, at: usize, update: &Update) -> Result<(Row, Option<Worth>), Refusal> {
        let refuse = |reason| Refusal::Update { update: at, reason };
        if update.relation.0 as usize >= self.job.database.relations() {
            return Err(refuse("there is no such relation"));
        }
        let relation = self.job.database.relation(update.relation);
        if update.tuple.len() != relation.arity() {
            return Err(refuse("the relation has another number of places"));
        }
        if update.value.is_some() && !relation.ring().valued() {
            return Err(refuse("the relation has no values"));
        }
        let code = |value: &Const| self.job.codes.code(*value);
        let row: Option<Row> = update.tuple.iter().map(code).collect();
        let row = row.ok_or(refuse("an integer that is in no fact of the program lies within ±2^29"))?;
        Ok((row, update.value.map(|value| Some(value.0))))
    }

    /// Makes an update of what is given; what has changed.
    fn given(&mut self, update: &Update, row: Row, worth: Option<Worth>) -> Vec<(Fact, isize)> {
        if !self.job.needed.contains(&update.relation) {
            return Vec::new();
        }
        let ring = self.job.database.relation(update.relation).ring();
        let tuple = (update.relation, row.clone());
        if update.comes {
            let worth = worth.unwrap_or(if ring.valued() { Some(ring.unit().0) } else { NONE });
            let times = self.given.entry(tuple).or_default().entry(worth).or_default();
            if *times > 0 && ring.idempotent() {
                return Vec::new();
            }
            *times += 1;
            return vec![((row, worth), 1)];
        }
        let Some(given) = self.given.get_mut(&tuple) else { return Vec::new() };
        let gone = match worth {
            None => std::mem::take(given),
            Some(worth) => match given.get_mut(&worth) {
                Some(times) => {
                    *times -= 1;
                    if *times == 0 {
                        given.remove(&worth);
                    }
                    BTreeMap::from([(worth, 1)])
                }
                None => BTreeMap::new(),
            },
        };
        if given.is_empty() {
            self.given.remove(&tuple);
        }
        gone.into_iter().map(|(worth, times)| ((row.clone(), worth), -times)).collect()
    }

    /// Waits for the workers; what has changed.
    fn changes(&mut self) -> Result<Vec<Change>, Refusal> {
        let mut open = self.senders.len();
        while open > 0 {
            match self.done.recv_timeout(Duration::from_millis(200)) {
                Ok(()) => open -= 1,
                Err(RecvTimeoutError::Timeout) if self.workers.as_ref().is_some_and(Workers::all_work) => {}
                Err(_) => {
                    let reason = "its thread ended".to_owned();
                    return Err(self.failed.insert(Refusal::Lost { reason }).clone());
                }
            }
        }
        if let Some(trouble) = self.shared.trouble() {
            return Err(self.failed.insert(refusal(trouble)).clone());
        }
        let codes = &self.job.codes;
        let change = |(relation, (row, worth), by): (RelationId, Fact, isize)| Change {
            relation,
            tuple: row.iter().map(|code| codes.value(*code)).collect(),
            value: worth.map(Value).filter(|_| self.job.database.relation(relation).ring().valued()),
            came: by > 0,
        };
        Ok(take(&self.found).into_iter().map(change).collect())
    }
}

impl Drop for Maintained {
    fn drop(&mut self) {
        // Workers end when nobody can give them more; one that has failed has been told of.
        self.senders.clear();
        if let Some(workers) = self.workers.take() {
            let _ = workers.join();
        }
    }
}

/// The facts of a database.
fn given(job: &Job) -> BTreeMap<(RelationId, Row), Given> {
    let mut given: BTreeMap<(RelationId, Row), Given> = BTreeMap::new();
    for id in &job.needed {
        let relation = job.database.relation(*id);
        let (rows, values) = (relation.rows(), relation.values());
        for at in 0..relation.len() {
            let row = rows.get(at * relation.arity()..(at + 1) * relation.arity()).unwrap_or(&[]);
            let worth = values.get(at).map_or(NONE, |value| Some(value.0));
            given.entry((*id, row.iter().copied().collect())).or_default().insert(worth, 1);
        }
    }
    given
}
