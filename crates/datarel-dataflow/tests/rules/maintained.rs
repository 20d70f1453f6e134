//! Answers that are maintained are those that would be derived anew.

use std::collections::BTreeSet;

use datarel::{Const, Limits, RelationId, Ring, SymbolId, Value};
use datarel_dataflow::{Change, Maintained, Options, Refusal, Update};
use seeded::{Family, Stream};

use crate::generate::{Program, Tuples, agree, below, has_nan, oracle, program, tuple, value};
use crate::shapes::closure;

/// Makes the changes, each of which must be one.
fn change(state: &mut [Tuples], changes: &[Change]) {
    for Change { relation, tuple, value, .. } in changes.iter().filter(|change| !change.came) {
        assert_eq!(state[relation.0 as usize].remove(tuple), Some(*value));
    }
    for Change { relation, tuple, value, .. } in changes.iter().filter(|change| change.came) {
        assert_eq!(state[relation.0 as usize].insert(tuple.clone(), *value), None);
    }
}

/// A fact that comes or goes, seldom one that is there, or is not, already; the program is changed alike.
fn update(random: &mut Stream, program: &mut Program) -> Update {
    let at = below(random, program.relations.len());
    let (arity, ring) = program.relations[at];
    let facts = &mut program.facts[at];
    let known = (!facts.is_empty()).then(|| below(random, facts.len()));
    let (tuple, worth) = match known {
        Some(known) if random.below(3) > 0 => facts[known].clone(),
        _ => {
            (tuple(random, arity), if ring.valued() { value(random, ring, false) } else { Value::default() })
        }
    };
    let comes = random.below(2) == 0;
    let whole = !comes && random.below(3) == 0;
    let same = |fact: &(Vec<u32>, Value)| fact.0 == tuple && (whole || !ring.valued() || fact.1 == worth);
    match (comes, ring.idempotent()) {
        // Of a set.
        (true, true) if facts.iter().any(same) => {}
        (true, _) => facts.push((tuple.clone(), worth)),
        (false, false) if !whole => {
            if let Some(at) = facts.iter().position(same) {
                facts.remove(at);
            }
        }
        (false, _) => facts.retain(|fact| !same(fact)),
    }
    Update {
        relation: RelationId(at as u32),
        tuple: tuple.iter().map(|code| Const::Int(i64::from(*code))).collect(),
        value: (ring.valued() && !whole).then_some(worth),
        comes,
    }
}

#[test]
fn batches_of_updates_lead_to_what_is_derived_anew() {
    let most = if std::env::var("CALCULEMUS_SLOW").is_ok() { 400 } else { 40 };
    let (mut batches, mut changed, mut refused) = (0, 0, 0);
    for number in 0..most {
        let seed = seeded::test_seed().wrapping_add(number);
        let mut random = Family::named("maintained").stream(seed);
        let mut program = program(&mut random);
        // Facts that are summed are counted one by one, and those of a database are one.
        for (facts, (_, ring)) in program.facts.iter_mut().zip(&program.relations) {
            let mut seen = BTreeSet::new();
            facts.retain(|(tuple, _)| seen.insert(tuple.clone()) || ring.idempotent());
            let mut once = BTreeSet::new();
            facts.retain(|(tuple, value)| {
                once.insert((tuple.clone(), if ring.valued() { value.0 } else { 0 }))
            });
        }
        let of_best = |(_, ring): &(usize, Ring)| ring.valued() && ring.idempotent();
        for (facts, _) in
            program.facts.iter_mut().zip(&program.relations).filter(|(_, relation)| of_best(relation))
        {
            // A database keeps the best of them alone.
            let mut seen = BTreeSet::new();
            facts.retain(|(tuple, _)| seen.insert(tuple.clone()));
        }
        let options = Options { workers: 1 + (number % 3) as usize, ..Options::default() };
        let start = Maintained::start(&program.database(), &program.rules, &program.all(), &options);
        let Ok((mut maintained, first)) = start else {
            assert!(oracle(&program).is_err(), "seed {seed}");
            refused += 1;
            continue;
        };
        let mut state = vec![Tuples::new(); program.relations.len()];
        change(&mut state, &first);
        for _ in 0..12 {
            let updates: Vec<Update> =
                (0..1 + random.below(5)).map(|_| update(&mut random, &mut program)).collect();
            let applied = maintained.apply(&updates);
            let expected = oracle(&program);
            let (Ok((changes, _)), Ok(expected)) = (&applied, &expected) else {
                assert!(
                    applied.is_err() && expected.is_err(),
                    "seed {seed}: {program:?}\n{expected:?}\n{applied:?}"
                );
                refused += 1;
                break;
            };
            if has_nan(&program, expected) {
                break;
            }
            change(&mut state, changes);
            assert!(
                agree(&program, expected, &state),
                "seed {seed}: {program:?}\n{updates:?}\n{expected:?}\n{state:?}"
            );
            batches += 1;
            changed += usize::from(!changes.is_empty());
        }
    }
    println!("{batches} batches, {changed} changed something, {refused} refused");
    assert!(
        batches > 8 * most as usize && 2 * changed > batches && 5 * refused < most,
        "{batches} {changed} {refused}"
    );
}

fn arc(a: i64, b: i64, comes: bool) -> Update {
    Update { relation: RelationId(0), tuple: [a, b].map(Const::Int).to_vec(), value: None, comes }
}

/// The pairs of `path` that come and go.
fn pairs(changes: &[Change], came: bool) -> Vec<(i64, i64)> {
    let of = changes.iter().filter(|change| change.relation == RelationId(1) && change.came == came);
    of.map(|change| (change.tuple[0].int().unwrap(), change.tuple[1].int().unwrap())).collect()
}

#[test]
fn facts_are_a_set_and_idle_updates_are_told() {
    let (database, rules) = closure(&[(0, 1, 0.0), (1, 2, 0.0)], 9, [Ring::BOOLEAN; 2]);
    for workers in 1..=2 {
        let options = Options { workers, ..Options::default() };
        let (mut maintained, first) =
            Maintained::start(&database, &rules, &[RelationId(1)], &options).unwrap();
        assert_eq!(pairs(&first, true), [(0, 1), (0, 2), (1, 2)]);
        // There already, and not there.
        assert_eq!(maintained.apply(&[arc(0, 1, true), arc(7, 7, false)]).unwrap(), (Vec::new(), vec![0, 1]));
        // One that comes and goes in a batch, and one that is taken away once although it was added twice.
        let (changes, idle) =
            maintained.apply(&[arc(2, 0, true), arc(2, 0, false), arc(1, 2, false)]).unwrap();
        assert_eq!(
            (pairs(&changes, false), pairs(&changes, true), idle),
            (vec![(0, 2), (1, 2)], vec![], vec![])
        );
        // A circle is closed and opened again: what went around it goes.
        let (changes, _) = maintained.apply(&[arc(1, 2, true), arc(2, 0, true)]).unwrap();
        assert_eq!(pairs(&changes, true).len(), 8);
        let (changes, _) = maintained.apply(&[arc(0, 1, false)]).unwrap();
        assert_eq!(pairs(&changes, false).len(), 6);
        // A fact of a derived relation stays when its derivation goes, and what follows from it.
        let given = |comes| Update { relation: RelationId(1), ..arc(1, 2, comes) };
        assert_eq!(maintained.apply(&[given(true)]).unwrap().0, []);
        assert_eq!(maintained.apply(&[arc(1, 2, false)]).unwrap(), (Vec::new(), Vec::new()));
        let (changes, _) = maintained.apply(&[given(false)]).unwrap();
        assert_eq!(pairs(&changes, false), [(1, 0), (1, 2)]);
        // Constants that nobody has seen before.
        let far = [Const::Int(-100_000), Const::Symbol(SymbolId(500))];
        let new = |comes| Update { tuple: far.to_vec(), ..arc(0, 0, comes) };
        let (changes, _) = maintained.apply(&[new(true), arc(0, 1, true)]).unwrap();
        assert_eq!(changes.len(), 3);
        assert!(changes.iter().any(|change| change.tuple == far));
        assert_eq!(maintained.apply(&[new(false)]).unwrap().0.len(), 1);
    }
}

#[test]
fn updates_that_cannot_be_are_refused_and_change_nothing() {
    let (database, rules) = closure(&[(0, 1, 2.0)], 9, [Ring::MIN_PLUS, Ring::BOOLEAN]);
    let (mut maintained, _) =
        Maintained::start(&database, &rules, &[RelationId(1)], &Options::default()).unwrap();
    let bad = [
        Update { relation: RelationId(9), ..arc(1, 2, true) },
        Update { tuple: vec![Const::Int(1)], ..arc(1, 2, true) },
        Update { relation: RelationId(1), value: Some(Value::real(1.0)), ..arc(1, 2, true) },
        arc(1, 1 << 40, true),
    ];
    for bad in bad {
        let refusal = maintained.apply(&[arc(1, 2, true), bad]).unwrap_err();
        assert!(matches!(refusal, Refusal::Update { update: 1, .. }), "{refusal:?}");
    }
    assert_eq!(maintained.facts(), 1);
    let (changes, _) = maintained.apply(&[arc(1, 2, true)]).unwrap();
    assert_eq!(pairs(&changes, true), [(0, 2), (1, 2)]);
}

#[test]
fn a_batch_that_diverges_or_outgrows_the_limit_is_refused_and_all_after_it() {
    let (database, rules) = closure(&[(0, 1, 1.0), (1, 2, 1.0)], 9, [Ring::MIN_PLUS; 2]);
    let back = Update { value: Some(Value::real(-5.0)), ..arc(2, 0, true) };
    for workers in 1..=2 {
        let options = Options { workers, ..Options::default() };
        let (mut maintained, _) = Maintained::start(&database, &rules, &[RelationId(1)], &options).unwrap();
        let refusal = maintained.apply(std::slice::from_ref(&back)).unwrap_err();
        assert!(matches!(refusal, Refusal::Failure(datarel::Failure::Divergence { .. })), "{refusal:?}");
        assert_eq!(maintained.apply(&[arc(5, 6, true)]).unwrap_err(), refusal);
        let limits = Limits { tuples: 8, ..Limits::default() };
        let options = Options { workers, limits, ..Options::default() };
        let (mut maintained, _) = Maintained::start(&database, &rules, &[RelationId(1)], &options).unwrap();
        let refusal = maintained.apply(&[arc(2, 3, true), arc(3, 4, true)]).unwrap_err();
        assert!(
            matches!(refusal, Refusal::Failure(datarel::Failure::Tuples { limit: 8, .. })),
            "{refusal:?}"
        );
    }
}
