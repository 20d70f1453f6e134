//! Whether a recursion of values comes to rest: a value can get better in every round for ever, as along a cycle of
//! negative length.
//!
//! Of N tuples all values rest after N + 1 rounds (or never). How many there are is known to all workers: each
//! tells the others what has changed in a round, and who has heard of a whole round counts.

use std::collections::BTreeMap;
use std::sync::Arc;

use datarel::{Failure, RelationId};
use differential_dataflow::VecCollection;
use timely::dataflow::channels::pact::Pipeline;
use timely::dataflow::operators::Operator;
use timely::dataflow::operators::vec::Broadcast;
use timely::order::Product;

use crate::shared::{Fact, Shared, trouble};

/// The time of a recursion: the batch, and the round.
pub(crate) type Round = Product<u64, u64>;

/// So many rounds more are waited for: conditions on tuples that exist take a round before values do.
const MORE: u64 = 16;

/// Watches a relation of a recursion with values.
pub(crate) fn watch<'s>(
    relations: Vec<VecCollection<'s, Round, Fact, isize>>,
    relation: RelationId,
    shared: &Arc<Shared>,
) {
    let mut relations = relations.into_iter();
    let Some(first) = relations.next() else { return };
    let all = first.concatenate(relations);
    let shared = Arc::clone(shared);
    all.inner
        .unary::<timely::container::CapacityContainerBuilder<Vec<(Round, isize)>>, _, _, _>(
            Pipeline,
            "Changes",
            |_, _| {
                move |input, output| {
                    input.for_each(|capability, changes| {
                        let mut net: BTreeMap<Round, isize> = BTreeMap::new();
                        for (_, time, by) in changes.drain(..) {
                            *net.entry(time).or_default() += by;
                        }
                        output.session(&capability).give_iterator(net.into_iter());
                    });
                }
            },
        )
        .broadcast()
        .sink(Pipeline, "Rest", {
            let mut state = Rest::default();
            move |(input, frontier)| {
                input.for_each(|_, changes| {
                    for (time, by) in changes.drain(..) {
                        state.heard(time, by);
                    }
                });
                if let Some((rounds, tuples)) = state.unrest(|time| !frontier.less_equal(time)) {
                    shared.fail(trouble(&Failure::Divergence { relation, rounds, tuples }.into()));
                }
            }
        });
}

/// What was heard of changes.
#[derive(Debug, Default)]
struct Rest {
    /// By batch and round, of rounds that are not over.
    open: BTreeMap<(u64, u64), isize>,
    /// The batch at hand.
    batch: u64,
    /// The tuples after all rounds that are over.
    tuples: isize,
    /// The most that there were after a batch: what is taken back may take as many rounds.
    peak: isize,
}

impl Rest {
    fn heard(&mut self, time: Round, by: isize) {
        *self.open.entry((time.outer, time.inner)).or_default() += by;
    }

    /// A round that is over although values should have been at rest before, with the tuples then.
    fn unrest(&mut self, over: impl Fn(&Round) -> bool) -> Option<(u64, u64)> {
        while let Some(((batch, round), by)) = self.open.first_key_value().map(|(time, by)| (*time, *by)) {
            if !over(&Product::new(batch, round)) {
                return None;
            }
            self.open.pop_first();
            if batch != self.batch {
                self.peak = self.tuples;
                self.batch = batch;
            }
            self.tuples += by;
            let tuples = self.tuples.max(self.peak).max(0).unsigned_abs() as u64;
            if round > 2 * tuples + MORE {
                return Some((round, tuples));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unrest_is_more_rounds_than_tuples() {
        let mut rest = Rest::default();
        rest.heard(Product::new(0, 1), 1);
        rest.heard(Product::new(0, 18), 0);
        assert_eq!(rest.unrest(|_| true), None);
        rest.heard(Product::new(0, 19), 0);
        assert_eq!(rest.unrest(|time| time.inner < 19), None);
        assert_eq!(rest.unrest(|_| true), Some((19, 1)));
        // What a batch takes back may take the rounds that it took.
        let mut rest = Rest::default();
        rest.heard(Product::new(0, 1), 10);
        assert_eq!(rest.unrest(|_| true), None);
        rest.heard(Product::new(1, 1), -10);
        rest.heard(Product::new(1, 36), 0);
        assert_eq!(rest.unrest(|_| true), None);
        rest.heard(Product::new(1, 37), 0);
        assert_eq!(rest.unrest(|_| true), Some((37, 10)));
    }
}
