//! What the workers of one process share: limits, and what went wrong first.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use datarel::{Failure, RelationId};
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
    trouble: Mutex<Option<Trouble>>,
}

impl Shared {
    pub(crate) fn new(tuples: u64, stop: Option<Arc<AtomicBool>>) -> Shared {
        Shared { most: i64::try_from(tuples).unwrap_or(i64::MAX), stop, ..Shared::default() }
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
            Refusal::Constant { rule: 2 },
            Failure::Interrupted.into(),
        ];
        assert!(all.iter().all(|one| refusal(trouble(one)) == *one));
    }

    #[test]
    fn the_first_trouble_is_kept() {
        let shared = Shared::new(2, None);
        shared.grow(RelationId(0), 2);
        assert!(!shared.halted() && shared.trouble().is_none());
        shared.grow(RelationId(1), 1);
        shared.fail(trouble(&Refusal::Constant { rule: 0 }));
        assert_eq!(
            shared.trouble().map(refusal),
            Some(Failure::Tuples { relation: RelationId(1), limit: 2 }.into())
        );
        let stop = Arc::new(AtomicBool::new(true));
        assert!(Shared::new(2, Some(stop)).halted());
    }
}
