//! What a relation holds of what it was given: each tuple once, with the value that its ring makes of all.

use std::sync::Arc;

use datarel::{Combine, Failure, RelationId, Ring, Value};
use differential_dataflow::VecCollection;
use differential_dataflow::lattice::Lattice;
use timely::progress::Timestamp;

use crate::shared::{Fact, NONE, Row, Shared, Worth, trouble};

/// The tuples of a relation, each once; they are counted.
pub(crate) fn settle<'s, T: Timestamp + Lattice>(
    given: VecCollection<'s, T, Fact, isize>,
    (relation, ring): (RelationId, Ring),
    shared: &Arc<Shared>,
) -> VecCollection<'s, T, Fact, isize> {
    let settled = if ring.valued() {
        let shared = Arc::clone(shared);
        given.reduce(move |row: &Row, given: &[(&Worth, isize)], settled: &mut Vec<(Worth, isize)>| {
            let worth = joined(ring, given);
            if worth.is_none() {
                let tuple = row.to_vec();
                shared.fail(trouble(&Failure::Overflow { relation, tuple }.into()));
            }
            settled.push((worth, 1));
        })
    } else {
        given.map(|(row, _)| row).distinct().map(|row| (row, NONE))
    };
    let shared = Arc::clone(shared);
    settled.inspect(move |(_, _, by)| shared.grow(relation, *by))
}

/// ⊕ of values, each so many times; `None` where a count leaves 64 bits.
fn joined(ring: Ring, given: &[(&Worth, isize)]) -> Worth {
    let values = || given.iter().map(|(worth, times)| (worth.map(Value), *times));
    let known = || values().map(|(value, times)| Some((value?, times))).collect::<Option<Vec<_>>>();
    match ring.combine {
        Combine::Exists => NONE,
        // Of equal values the one with the fewest bits, on every worker: -0 and 0.
        Combine::Min | Combine::Max => known()?
            .into_iter()
            .map(|(value, _)| value)
            .reduce(|best, value| if ring.improves(best, value) { value } else { best })
            .map(|value| value.0),
        Combine::Sum => {
            let sum: f64 = known()?.into_iter().map(|(value, times)| value.as_real() * times as f64).sum();
            Some(Value::real(sum).0)
        }
        Combine::Count => {
            let mut sum = 0i128;
            for (value, times) in known()? {
                sum = sum.checked_add(i128::from(value.as_count()).checked_mul(times as i128)?)?;
            }
            Some(Value::count(i64::try_from(sum).ok()?).0)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_joined_as_often_as_they_were_given() {
        let real = |values: &[(f64, isize)]| -> Vec<(Worth, isize)> {
            values.iter().map(|(value, times)| (Some(value.to_bits()), *times)).collect()
        };
        let of = |ring, given: &[(Worth, isize)]| {
            joined(ring, &given.iter().map(|(worth, times)| (worth, *times)).collect::<Vec<_>>())
        };
        let given = real(&[(2.0, 3), (5.0, 1), (-1.0, 2)]);
        assert_eq!(of(Ring::MIN_PLUS, &given), Some((-1.0f64).to_bits()));
        assert_eq!(of(Ring::MAX_MIN, &given), Some(5.0f64.to_bits()));
        assert_eq!(of(Ring::REAL, &given), Some(9.0f64.to_bits()));
        let count = |number: i64| Some(Value::count(number).0);
        assert_eq!(of(Ring::COUNT, &[(count(4), 2), (count(-3), 1)]), count(5));
        assert_eq!(of(Ring::COUNT, &[(count(i64::MAX), 2)]), None);
        assert_eq!(of(Ring::COUNT, &[(None, 1)]), None);
        assert_eq!(of(Ring::BOOLEAN, &given), NONE);
    }
}
