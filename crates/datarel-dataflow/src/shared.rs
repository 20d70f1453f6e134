//! What the workers of one process share: limits, and what went wrong first.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use datarel::{Failure, Limits, RelationId};
use smallvec::SmallVec;

use crate::refusal::Refusal;

/// A tuple or a binding, as codes.
pub(crate) type Row = SmallVec<[u32; 4]>;

/// The bits of a value; `None` is a count that has left 64 bits. It stays in the data, where it is taken back like any other
/// if what it came from is.
pub(crate) type Worth = Option<u64>;

/// A tuple with its value, which is 0 for one of a Boolean relation.
pub(crate) type Fact = (Row, Worth);

/// The worth of what has no value.
pub(crate) const NONE: Worth = Some(0);

/// What went wrong, as it is sent to the other processes: a kind, a relation or rule, a tuple, two numbers.
pub(crate) type Trouble = (u8, u32, Row, u64, u64);

/// What the workers of a process share.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    /// Whether nothing more is fed back: what is derived is of no use.
    halted: AtomicBool,
    /// Ends the work when it becomes true.
    stop: Option<Arc<AtomicBool>>,
    /// The tuples that this process holds.
    tuples: AtomicI64,
    /// The most that it may hold.
    most: i64,
    /// The relation that grew last.
    growing: AtomicU32,
    trouble: Mutex<Option<Trouble>>,
}

/// How often a process looks at its memory: a limit is passed by what is taken in that time.
const LOOK: Duration = Duration::from_millis(50);

/// Bytes of memory that this process has, where the system tells.
fn resident() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kibibytes| kibibytes * 1024)
}

/// Halts what outgrows its memory, until it has ended.
fn look_at_memory(shared: &Weak<Shared>, limit: u64) {
    while let Some(shared) = shared.upgrade() {
        if let Some(needed) = resident().filter(|bytes| *bytes > limit) {
            let relation = RelationId(shared.growing.load(Ordering::Relaxed));
            return shared.fail(trouble(&Refusal::Failure(Failure::Bytes { relation, needed, limit })));
        }
        drop(shared);
        std::thread::sleep(LOOK);
    }
}

impl Shared {
    /// What is shared under these limits. Arrangements hold more than tuples, so bytes are those of the whole process, looked at
    /// by a thread that ends with what is shared.
    pub(crate) fn new(limits: &Limits) -> Arc<Shared> {
        let most = i64::try_from(limits.tuples).unwrap_or(i64::MAX);
        let shared = Arc::new(Shared { most, stop: limits.stop.clone(), ..Shared::default() });
        if limits.bytes < u64::MAX && resident().is_some() {
            let (watched, bytes) = (Arc::downgrade(&shared), limits.bytes);
            std::thread::spawn(move || look_at_memory(&watched, bytes));
        }
        shared
    }

    /// Whether nothing more is to be derived.
    pub(crate) fn halted(&self) -> bool {
        if self.halted.load(Ordering::Relaxed) {
            return true;
        }
        let asked = self.stop.as_ref().is_some_and(|stop| stop.load(Ordering::Relaxed));
        if asked {
            self.fail(trouble(&Refusal::Failure(Failure::Interrupted)));
        }
        asked
    }

    /// Something went wrong: the first is kept, and nothing more is derived.
    pub(crate) fn fail(&self, trouble: Trouble) {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(trouble);
        self.halted.store(true, Ordering::Relaxed);
    }

    /// What went wrong.
    pub(crate) fn trouble(&self) -> Option<Trouble> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// A relation holds so many tuples more.
    pub(crate) fn grow(&self, relation: RelationId, by: isize) {
        self.growing.store(relation.0, Ordering::Relaxed);
        let tuples = self.tuples.fetch_add(by as i64, Ordering::Relaxed) + by as i64;
        if tuples > self.most && !self.halted.load(Ordering::Relaxed) {
            let limit = self.most.unsigned_abs();
            self.fail(trouble(&Refusal::Failure(Failure::Tuples { relation, limit })));
        }
    }
}

/// A refusal of the running dataflow as it is sent.
pub(crate) fn trouble(refusal: &Refusal) -> Trouble {
    match refusal {
        Refusal::Failure(Failure::Tuples { relation, limit }) => (1, relation.0, Row::new(), *limit, 0),
        Refusal::Failure(Failure::Overflow { relation, tuple }) => {
            (2, relation.0, tuple.iter().copied().collect(), 0, 0)
        }
        Refusal::Failure(Failure::Divergence { relation, rounds, tuples }) => {
            (3, relation.0, Row::new(), *rounds, *tuples)
        }
        Refusal::Failure(Failure::Bytes { relation, needed, limit }) => {
            (5, relation.0, Row::new(), *needed, *limit)
        }
        Refusal::Constant { rule } => (4, u32::try_from(*rule).unwrap_or(u32::MAX), Row::new(), 0, 0),
        _ => (0, 0, Row::new(), 0, 0),
    }
}

/// What was sent as a refusal.
pub(crate) fn refusal((kind, of, tuple, first, second): Trouble) -> Refusal {
    let relation = RelationId(of);
    match kind {
        1 => Failure::Tuples { relation, limit: first }.into(),
        2 => Failure::Overflow { relation, tuple: tuple.to_vec() }.into(),
        3 => Failure::Divergence { relation, rounds: first, tuples: second }.into(),
        4 => Refusal::Constant { rule: of as usize },
        5 => Failure::Bytes { relation, needed: first, limit: second }.into(),
        _ => Failure::Interrupted.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sent_arrives() {
        let relation = RelationId(3);
        let all = [
            Failure::Tuples { relation, limit: 5 }.into(),
            Failure::Overflow { relation, tuple: vec![1, 2] }.into(),
            Failure::Divergence { relation, rounds: 7, tuples: 4 }.into(),
            Failure::Bytes { relation, needed: 9, limit: 8 }.into(),
            Refusal::Constant { rule: 2 },
            Failure::Interrupted.into(),
        ];
        assert!(all.iter().all(|one| refusal(trouble(one)) == *one));
    }

    #[test]
    fn the_first_trouble_is_kept() {
        let limits = Limits { tuples: 2, ..Limits::default() };
        let shared = Shared::new(&limits);
        shared.grow(RelationId(0), 2);
        assert!(!shared.halted() && shared.trouble().is_none());
        shared.grow(RelationId(1), 1);
        shared.fail(trouble(&Refusal::Constant { rule: 0 }));
        assert_eq!(
            shared.trouble().map(refusal),
            Some(Failure::Tuples { relation: RelationId(1), limit: 2 }.into())
        );
        let stop = Arc::new(AtomicBool::new(true));
        assert!(Shared::new(&Limits { stop: Some(stop), ..limits }).halted());
    }
}
