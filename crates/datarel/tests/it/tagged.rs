//! Rules evaluated by the trait of semirings against the engine of rings, and against the obvious evaluator.

use std::collections::BTreeSet;
use std::sync::Arc;

use datarel::rule::{Computed, Select};
use datarel::{
    AddMult, Atom, Comparison, Const, Constants, Database, Failure, Limits, Literal, RelationId, Ring, Rule,
    Semiring, Term, Times, Value, evaluate, evaluate_tagged,
};
use seeded::{Family, Stream};

use crate::generate;
use crate::laws::Why;
use crate::naive::{self, Program, Trouble, Tuples};
use crate::random_rules::database;

/// A random program in which all relations have one ring.
fn program(random: &mut Stream, ring: Ring) -> Program {
    let mut program = generate::program(random);
    for ((_, of), facts) in program.relations.iter_mut().zip(&mut program.facts) {
        *of = ring;
        for (_, value) in facts.iter_mut() {
            let number = random.below(4) as i64;
            *value = match (ring.valued(), ring.counts()) {
                (false, _) => Value::default(),
                (_, true) => Value::count(number),
                // Factors above 1 would never rest under maximum and product.
                _ if ring == Ring::MAX_TIMES => Value::real([0.0, 0.25, 0.5, 1.0][number as usize]),
                _ => Value::real(number as f64),
            };
        }
    }
    for rule in program.levels.iter_mut().flatten() {
        rule.weight = rule.weight.filter(|_| ring.valued()).map(|_| match ring.counts() {
            true => Value::count(2),
            false if ring == Ring::MAX_TIMES => Value::real(0.5),
            false => Value::real(2.0),
        });
    }
    program
}

fn by_trait(program: &Program, ring: Ring) -> Result<Vec<Tuples>, Trouble> {
    let (mut database, rules) = database(program);
    let limits = Limits { rounds: 100, ..Limits::default() };
    match evaluate_tagged(&mut database, &rules, &ring, &limits) {
        Ok(found) => Ok((0..program.relations.len() as u32)
            .map(|at| {
                let value = |tag: &Value| if ring.valued() { *tag } else { Value::default() };
                found.tuples(RelationId(at)).map(|(tuple, tag)| (tuple.to_vec(), value(tag))).collect()
            })
            .collect()),
        Err(Failure::Divergence { .. }) => Err(Trouble::Divergence),
        Err(Failure::Overflow { .. }) => Err(Trouble::Overflow),
        Err(_) => Err(Trouble::Refused),
    }
}

fn by_engine(program: &Program) -> Result<Vec<Tuples>, Trouble> {
    let (mut database, rules) = database(program);
    match evaluate(&mut database, &rules, &Limits::default()) {
        Ok(_) => Ok((0..program.relations.len() as u32)
            .map(|at| {
                let relation = database.relation(RelationId(at));
                let rows = relation.rows();
                let tuple = |row: usize| rows[row * relation.arity()..(row + 1) * relation.arity()].to_vec();
                let value = |row: usize| relation.values().get(row).copied().unwrap_or_default();
                (0..relation.len()).map(|row| (tuple(row), value(row))).collect()
            })
            .collect()),
        Err(Failure::Divergence { .. }) => Err(Trouble::Divergence),
        Err(Failure::Overflow { .. }) => Err(Trouble::Overflow),
        Err(_) => Err(Trouble::Refused),
    }
}

/// A sum along a cycle may leave the numbers, and whether ∞ or ∞·0 is met first depends on the order of the rounds: what is not
/// finite is one value. What is finite stays, to the last bit.
fn settled(name: &str, result: &Result<Vec<Tuples>, Trouble>) -> Result<Vec<Tuples>, Trouble> {
    let mut result = result.clone();
    if let (Ok(relations), "real") = (&mut result, name) {
        for value in relations.iter_mut().flat_map(|tuples| tuples.values_mut()) {
            if !f64::from_bits(value.0).is_finite() {
                *value = Value::real(f64::INFINITY);
            }
        }
    }
    result
}

/// The engine's rings, each on programs with recursion, negation and comparisons. Where the engine refuses a recursion of sums,
/// the obvious evaluator is asked.
#[test]
fn random_programs_agree_with_the_engine() {
    let of = [Ring::BOOLEAN, Ring::COUNT, Ring::REAL, Ring::MIN_PLUS, Ring::MAX_TIMES, Ring::MAX_MIN];
    for (name, ring) in ["bool", "count", "real", "tropical", "maxtimes", "maxmin"].into_iter().zip(of) {
        let (mut agreed, mut tuples, mut apart, mut sums) = (0, 0, 0, 0);
        for seed in 0..400 {
            let mut random = Family::new("datarel/tagged", name, seeded::test_seed()).stream(seed);
            let program = program(&mut random, ring);
            let found = by_trait(&program, ring);
            let mut expected = by_engine(&program);
            if expected == Err(Trouble::Refused) {
                sums += 1;
                expected = naive::evaluate(&program);
                // What grows by rounds for ever is given up at different moments.
                if expected.is_err() || found.is_err() {
                    continue;
                }
            }
            // A value that waits for a tuple to exist may come to rest a round later than is allowed.
            let late = Err(Trouble::Divergence);
            if found != expected && (found == late || expected == late) {
                apart += 1;
                continue;
            }
            let [seen, wanted] = [&found, &expected].map(|result| settled(name, result));
            assert_eq!(seen, wanted, "{name}, seed {seed}: {program:?}");
            agreed += 1;
            tuples += found.iter().flatten().map(Tuples::len).sum::<usize>();
        }
        assert!(agreed > 250 && tuples > 2000 && apart <= 4, "{name}: {agreed} {tuples} {apart} {sums}");
    }
}

/// Sums that are cut off at 1 come to rest along cycles.
#[test]
fn sums_that_end_at_one_rest() {
    let mut database = Database::new(Constants::integers(0, 9));
    let arc = database.declare("arc", 2, Ring::REAL);
    let path = database.declare("path", 2, Ring::REAL);
    database.insert(arc, &[0, 1, 1, 0, 1, 2], &[0.5, 0.5, 0.5].map(Value::real)).unwrap();
    let [x, y, z] = [0, 1, 2].map(Term::variable);
    let rules = [
        Rule::new(path, [x, y], [Atom::factor(arc, [x, y]).into()]),
        Rule::new(path, [x, z], [Atom::factor(path, [x, y]).into(), Atom::factor(arc, [y, z]).into()]),
    ];
    let found = evaluate_tagged(&mut database, &rules, &AddMult::default(), &Limits::default()).unwrap();
    // path(0, 1) = 0.5 + path(0, 0) / 2, path(0, 0) = path(0, 1) / 2.
    for (tuple, value) in [([0, 1], 2.0 / 3.0), ([0, 0], 1.0 / 3.0), ([0, 2], 1.0 / 3.0)] {
        assert!((found.tag(path, &tuple).unwrap() - value).abs() < 1e-11, "{tuple:?}");
    }
    assert_eq!(found.tag(path, &[2, 0]), None);
    // Counts along a cycle never rest, and reals by their sum: refused as a value.
    let limits = Limits { rounds: 50, ..Limits::default() };
    database.clear(arc);
    database.insert(arc, &[0, 1, 1, 0], &[1.0, 1.0].map(Value::real)).unwrap();
    let failure = evaluate_tagged(&mut database, &rules, &Ring::REAL, &limits).unwrap_err();
    assert!(matches!(failure, Failure::Divergence { rounds: 51, .. }), "{failure:?}");
}

/// Why-provenance against all sets of facts: those from which a tuple follows, and no smaller one.
#[test]
fn sets_of_facts_are_the_minimal_ones() {
    let [x, y, z] = [0, 1, 2].map(Term::variable);
    let mut several = 0;
    for seed in 0..240 {
        let mut random = Family::new("datarel/tagged", "why", seeded::test_seed()).stream(seed);
        let mut arcs: BTreeSet<(u32, u32)> = BTreeSet::new();
        for _ in 0..1 + random.below(7) {
            arcs.insert((random.below(4) as u32, random.below(4) as u32));
        }
        let arcs: Vec<(u32, u32)> = arcs.into_iter().collect();
        let build = |chosen: &dyn Fn(usize) -> bool| {
            let mut database = Database::new(Constants::integers(0, 9));
            let arc = database.declare("arc", 2, Ring::BOOLEAN);
            let path = database.declare("path", 2, Ring::BOOLEAN);
            for (_, (from, to)) in arcs.iter().enumerate().filter(|(at, _)| chosen(*at)) {
                database.insert(arc, &[*from, *to], &[]).unwrap();
            }
            let rules = [
                Rule::new(path, [x, y], [Atom::factor(arc, [x, y]).into()]),
                Rule::new(
                    path,
                    [x, z],
                    [Atom::factor(path, [x, y]).into(), Atom::factor(path, [y, z]).into()],
                ),
            ];
            (database, path, rules)
        };
        let (mut whole, path, rules) = build(&|_| true);
        let found = evaluate_tagged(&mut whole, &rules, &Why, &Limits::default()).unwrap();
        for from in 0..4 {
            for to in 0..4 {
                let follows = |bits: u32| {
                    let (mut database, path, rules) = build(&|at| bits >> at & 1 == 1);
                    evaluate(&mut database, &rules, &Limits::default()).unwrap();
                    database.relation(path).contains(&[from, to])
                };
                let all: Vec<u32> = (0..1u32 << arcs.len()).filter(|bits| follows(*bits)).collect();
                let least = all
                    .iter()
                    .filter(|bits| !all.iter().any(|other| other != *bits && other & *bits == *other));
                let sets: BTreeSet<BTreeSet<usize>> =
                    least.map(|bits| (0..arcs.len()).filter(|at| bits >> at & 1 == 1).collect()).collect();
                let tag = found.tag(path, &[from, to]).cloned().unwrap_or_default();
                assert_eq!(tag, sets, "{arcs:?} {from} {to}");
                several += usize::from(sets.len() > 1);
            }
        }
    }
    assert!(several > 20, "{several}");
}

/// Weights, numbers made from constants, new constants, comparisons; and what is refused.
#[test]
fn parts_of_rules() {
    let mut database = Database::new(Constants::integers(0, 9));
    let some = database.declare("some", 1, Ring::REAL);
    let next = database.declare("next", 1, Ring::REAL);
    database.insert(some, &[1, 8, 9], &[2.0, 3.0, 4.0].map(Value::real)).unwrap();
    // No constant is left over, and no value.
    for (constants, values) in [(&[1, 8][..], &[2.0][..]), (&[1, 8], &[2.0, 3.0, 4.0]), (&[], &[2.0])] {
        let values: Vec<Value> = values.iter().copied().map(Value::real).collect();
        let failure = database.insert(some, constants, &values).unwrap_err();
        assert!(matches!(failure, Failure::Shape { .. }), "{failure:?}");
    }
    let pair = database.declare("pair", 2, Ring::BOOLEAN);
    assert!(matches!(database.insert(pair, &[1, 2, 3], &[]), Err(Failure::Shape { constants: 3, .. })));
    let none = database.declare("none", 0, Ring::BOOLEAN);
    assert!(matches!(database.insert(none, &[1], &[]), Err(Failure::Shape { constants: 1, .. })));
    let [x, y] = [0, 1].map(Term::variable);
    let stray = Rule::new(RelationId(77), [x], [Atom::new(some, [x]).into()]);
    let failure = evaluate_tagged(&mut database, &[stray], &Ring::REAL, &Limits::default()).unwrap_err();
    assert!(failure.to_string().contains("not there"), "{failure}");
    let mut rule = Rule::new(
        next,
        [y],
        [
            Atom::factor(some, [x]).into(),
            Literal::Shift { to: y, from: x, by: 1 },
            Literal::Compare(Comparison::Greater, y, Term::Constant(2)),
        ],
    );
    rule.weight = Some(Value::real(10.0));
    let measure = |constants: &[Const]| match constants {
        [Const::Int(number)] if *number != 8 => Some(Value::real(*number as f64)),
        _ => None,
    };
    rule.computed.push(Computed { arguments: vec![x], measure: Arc::new(measure) });
    let rules = [rule.clone()];
    let found = evaluate_tagged(&mut database, &rules, &Ring::REAL, &Limits::default()).unwrap();
    let ten = database.constants.find(Const::Int(10)).unwrap();
    assert_eq!(found.tuples(next).collect::<Vec<_>>(), [(&[ten][..], &Value::real(360.0))]);
    let limits = Limits { tuples: 1, ..Limits::default() };
    let failure = evaluate_tagged(&mut database, &rules, &Ring::REAL, &limits).unwrap_err();
    assert!(matches!(failure, Failure::Tuples { .. }), "{failure:?}");
    let failure =
        evaluate_tagged(&mut database, &rules, &AddMult::default(), &Limits::default()).unwrap_err();
    assert!(matches!(failure, Failure::Overflow { .. }), "{failure:?}");
    rule.select = Some(Select { times: Times::Times, test: Arc::new(|_, _| true) });
    let failure = evaluate_tagged(&mut database, &[rule], &Ring::REAL, &Limits::default()).unwrap_err();
    assert!(matches!(failure, Failure::Rule { .. }), "{failure:?}");
    let wrong = Rule::new(next, [x, y], [Atom::new(some, [x]).into()]);
    assert!(evaluate_tagged(&mut database, &[wrong], &Ring::REAL, &Limits::default()).is_err());
    let denied = Rule::new(next, [x], [Atom::new(some, [x]).into(), Literal::Not(Atom::new(next, [x]))]);
    let failure = evaluate_tagged(&mut database, &[denied], &Ring::BOOLEAN, &Limits::default()).unwrap_err();
    assert!(matches!(failure, Failure::NotStratified { .. }), "{failure:?}");
    assert_eq!(Ring::COUNT.answer(&Semiring::zero(&Ring::COUNT)), Some(0.0));
}
