//! The laws of the semirings, for values of which sums and products are exact.

use std::collections::BTreeSet;

use datarel::{AddMult, Combine, Fact, Ring, Semiring, Times, Value};

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

/// What the trait promises, on some tags; `same` says which differ by rounding only.
fn keeps_laws<S: Semiring>(of: &str, semiring: &S, tags: &[S::Tag], same: &dyn Fn(&S::Tag, &S::Tag) -> bool) {
    let (zero, one) = (semiring.zero(), semiring.one());
    let plus = |a: &S::Tag, b: &S::Tag| semiring.plus(a, b).unwrap();
    let times = |a: &S::Tag, b: &S::Tag| semiring.times(a, b).unwrap();
    let check = |holds: bool, law: &str, of_tags: &[&S::Tag]| assert!(holds, "{of}: {law} of {of_tags:?}");
    for a in tags {
        check(same(&plus(&zero, a), a) && same(&plus(a, &zero), a), "0 ⊕", &[a]);
        check(same(&times(&one, a), a) && same(&times(a, &one), a), "1 ⊗", &[a]);
        check(semiring.saturated(a, a), "rest", &[a]);
        check(!semiring.idempotent() || same(&plus(a, a), a), "a ⊕ a", &[a]);
        if let Some(not) = semiring.negate(a) {
            check(semiring.negate(&not).is_some_and(|again| same(&again, a)), "not not", &[a]);
            check(same(&times(a, &not), &zero), "a ⊗ not a", &[a]);
            check(same(&plus(a, &not), &one), "a ⊕ not a", &[a]);
        }
        for b in tags {
            check(same(&plus(a, b), &plus(b, a)), "⊕", &[a, b]);
            check(same(&times(a, b), &times(b, a)), "⊗", &[a, b]);
            if let Some(rest) = semiring.minus(a, b) {
                check(same(&plus(b, &rest), a), "⊖", &[a, b]);
            }
            for c in tags {
                check(same(&plus(&plus(a, b), c), &plus(a, &plus(b, c))), "⊕", &[a, b, c]);
                check(same(&times(&times(a, b), c), &times(a, &times(b, c))), "⊗", &[a, b, c]);
            }
        }
    }
    let some = tags.iter().any(|a| !same(&plus(a, a), a));
    assert_eq!(some, !semiring.idempotent(), "{of}: whether ⊕ is idempotent");
}

fn distributes<S: Semiring>(
    of: &str,
    semiring: &S,
    tags: &[S::Tag],
    same: &dyn Fn(&S::Tag, &S::Tag) -> bool,
) {
    let plus = |a: &S::Tag, b: &S::Tag| semiring.plus(a, b).unwrap();
    let times = |a: &S::Tag, b: &S::Tag| semiring.times(a, b).unwrap();
    for a in tags {
        assert!(same(&times(&semiring.zero(), a), &semiring.zero()), "{of}: 0 ⊗ {a:?}");
        for (b, c) in tags.iter().flat_map(|b| tags.iter().map(move |c| (b, c))) {
            let (left, right) = (times(a, &plus(b, c)), plus(&times(a, b), &times(a, c)));
            assert!(same(&left, &right), "{of}: {a:?} ⊗ ({b:?} ⊕ {c:?})");
        }
    }
}

/// Every ring of the language, through the trait, with what tags it is for.
#[test]
fn instances_of_the_trait_keep_the_laws() {
    let quarters = |range: std::ops::RangeInclusive<i32>| -> Vec<Value> {
        range.map(|quarter| Value::real(f64::from(quarter) / 4.0)).collect()
    };
    let truths = vec![Value::real(0.0), Value::real(1.0)];
    let counts = [0, 1, 2, 3, 5, -4].into_iter().map(Value::count).collect();
    let of: [(&str, Ring, Vec<Value>); 6] = [
        ("bool", Ring::BOOLEAN, truths),
        ("count", Ring::COUNT, counts),
        ("real", Ring::REAL, quarters(-6..=6)),
        ("tropical", Ring::MIN_PLUS, quarters(-6..=6)),
        ("maxtimes", Ring::MAX_TIMES, quarters(0..=6)),
        ("maxmin", Ring::MAX_MIN, quarters(-6..=6)),
    ];
    for (name, ring, mut tags) in of {
        tags.extend([Semiring::zero(&ring), Semiring::one(&ring)]);
        let same = |a: &Value, b: &Value| same(ring, Some(*a), Some(*b));
        keeps_laws(name, &ring, &tags, &same);
        distributes(name, &ring, &tags, &same);
        assert_eq!(ring.answer(&Semiring::one(&ring)), Some(ring.answer(&ring.one()).unwrap()));
    }
    let parts: Vec<f64> = (0..=8).map(|eighth| f64::from(eighth) / 8.0).collect();
    let add = AddMult::default();
    keeps_laws("addmult", &add, &parts, &|a, b| (a - b).abs() < 1e-15);
    // It distributes as far as no sum is cut off at 1, and gives too little there.
    for a in &parts {
        for (b, c) in parts.iter().flat_map(|b| parts.iter().map(move |c| (b, c))) {
            let left = a * add.plus(b, c).unwrap();
            let right = add.plus(&(a * b), &(a * c)).unwrap();
            assert!(if b + c <= 1.0 { left == right } else { left <= right }, "{a} {b} {c}");
        }
    }
    assert_eq!(add.number(Value::real(1.5)), None);
    keeps_laws("why", &Why, &whys(), &|a, b| a == b);
    distributes("why", &Why, &whys(), &|a, b| a == b);
}

/// A semiring of the caller's own: minimal sets of facts.
pub(crate) struct Why;

type Sets = BTreeSet<BTreeSet<usize>>;

fn minimal(all: Sets) -> Sets {
    let least = |set: &&BTreeSet<usize>| !all.iter().any(|other| other != *set && other.is_subset(set));
    all.iter().filter(least).cloned().collect()
}

impl Semiring for Why {
    type Tag = Sets;

    fn zero(&self) -> Sets {
        Sets::new()
    }

    fn one(&self) -> Sets {
        Sets::from([BTreeSet::new()])
    }

    fn plus(&self, a: &Sets, b: &Sets) -> Option<Sets> {
        Some(minimal(a | b))
    }

    fn times(&self, a: &Sets, b: &Sets) -> Option<Sets> {
        Some(minimal(a.iter().flat_map(|a| b.iter().map(move |b| a | b)).collect()))
    }

    fn idempotent(&self) -> bool {
        true
    }

    fn number(&self, _value: Value) -> Option<Sets> {
        Some(self.one())
    }

    fn fact(&self, fact: &Fact<'_>) -> Option<Sets> {
        Some(Sets::from([BTreeSet::from([fact.number])]))
    }

    fn answer(&self, _tag: &Sets) -> Option<f64> {
        None
    }
}

fn whys() -> Vec<Sets> {
    let all: Vec<BTreeSet<usize>> =
        (1..8u32).map(|bits| (0..3).filter(|at| bits >> at & 1 == 1).collect()).collect();
    let mut tags: Vec<Sets> = all.iter().map(|set| Sets::from([set.clone()])).collect();
    tags.extend(all.iter().zip(&all[2..]).map(|(a, b)| minimal(Sets::from([a.clone(), b.clone()]))));
    tags.extend([Sets::new(), Sets::from([BTreeSet::new()])]);
    tags
}
