//! The laws of the semirings, for values of which sums and products are exact.

use datarel::{Combine, Ring, Times, Value};

/// What a ring is used with: numbers, and whether they are counts.
fn values(ring: Ring) -> Vec<Value> {
    if ring.counts() {
        return [0, 1, 2, 3, 5, -4].into_iter().map(Value::count).collect();
    }
    // Products of negative numbers turn an order round: probabilities under max and times.
    let least = if ring.times == Times::Times && ring.combine != Combine::Sum { 0 } else { -6 };
    (least..=6).map(|quarter| Value::real(f64::from(quarter) / 4.0)).collect()
}

const RINGS: [Ring; 9] = [
    Ring::BOOLEAN,
    Ring::MIN_PLUS,
    Ring::COUNT,
    Ring::REAL,
    Ring { combine: Combine::Max, times: Times::Times },
    Ring { combine: Combine::Max, times: Times::Plus },
    Ring { combine: Combine::Max, times: Times::Min },
    Ring { combine: Combine::Min, times: Times::Times },
    Ring { combine: Combine::Min, times: Times::Min },
];

/// Equal, where 0 has no sign.
fn same(ring: Ring, a: Option<Value>, b: Option<Value>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) if !ring.counts() => a.as_real() == b.as_real(),
        (a, b) => a == b,
    }
}

#[test]
fn rings_keep_their_laws() {
    for ring in RINGS {
        let all = values(ring);
        for a in &all {
            assert!(same(ring, ring.times(ring.one(), *a), Some(*a)), "{ring:?}: 1 ⊗ {a:?}");
            assert!(same(ring, ring.times(*a, ring.one()), Some(*a)), "{ring:?}: {a:?} ⊗ 1");
            assert_eq!(
                same(ring, ring.plus(*a, *a), Some(*a)) || *a == Value(0),
                ring.idempotent() || *a == Value(0),
                "{ring:?}: {a:?} ⊕ itself"
            );
            for b in &all {
                if ring.valued() {
                    assert!(same(ring, ring.plus(*a, *b), ring.plus(*b, *a)), "{ring:?}: ⊕ of {a:?}, {b:?}");
                }
                assert!(same(ring, ring.times(*a, *b), ring.times(*b, *a)), "{ring:?}: ⊗ of {a:?}, {b:?}");
                for c in &all {
                    let plus = |a: Option<Value>, b: Option<Value>| ring.plus(a?, b?);
                    let times = |a: Option<Value>, b: Option<Value>| ring.times(a?, b?);
                    let (a, b, c) = (Some(*a), Some(*b), Some(*c));
                    assert!(
                        same(ring, plus(plus(a, b), c), plus(a, plus(b, c))),
                        "{ring:?}: ⊕ of {a:?}, {b:?}, {c:?}"
                    );
                    assert!(
                        same(ring, times(times(a, b), c), times(a, times(b, c))),
                        "{ring:?}: ⊗ of {a:?}, {b:?}, {c:?}"
                    );
                    assert!(
                        same(ring, times(a, plus(b, c)), plus(times(a, b), times(a, c))),
                        "{ring:?}: {a:?} ⊗ ({b:?} ⊕ {c:?})"
                    );
                }
            }
        }
    }
}

#[test]
fn a_count_that_overflows_is_none() {
    let most = Value::count(i64::MAX);
    assert_eq!(Ring::COUNT.plus(most, Value::count(1)), None);
    assert_eq!(Ring::COUNT.times(most, Value::count(2)), None);
    assert_eq!(Ring::COUNT.times(most, Value::count(1)), Some(most));
}

/// Where negative numbers are multiplied under a maximum, distribution fails: rules may not be taken apart there.
#[test]
fn an_order_is_turned_round_by_negative_factors() {
    let ring = Ring { combine: Combine::Max, times: Times::Times };
    let [a, b, c] = [-1.0, 1.0, 2.0].map(Value::real);
    let left = ring.times(a, ring.plus(b, c).unwrap());
    let right = ring.plus(ring.times(a, b).unwrap(), ring.times(a, c).unwrap());
    assert_ne!(left, right);
}
