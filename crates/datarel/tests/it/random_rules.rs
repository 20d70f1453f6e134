//! The engine against the obvious evaluator.

use std::sync::Arc;

use datarel::rule::Select;
use datarel::{
    Atom, Const, Constants, Database, Failure, Limits, RelationId, Ring, Rule, Term, Times, Value, evaluate,
    magic,
};
use seeded::Family;

use crate::naive::{Program, Trouble, Tuples};
use crate::{generate, naive};

/// The same program in a database of the engine.
pub(crate) fn database(program: &Program) -> (Database, Vec<Rule>) {
    let mut database = Database::new(Constants::integers(0, i64::from(naive::UNIVERSE) - 1));
    for (at, (arity, ring)) in program.relations.iter().enumerate() {
        let id = database.declare(format!("r{at}"), *arity, *ring);
        for (tuple, value) in &program.facts[at] {
            let values = if ring.valued() { vec![*value] } else { Vec::new() };
            database.insert(id, tuple, &values).unwrap();
        }
    }
    (database, program.levels.concat())
}

fn tuples(database: &Database, at: usize) -> Tuples {
    let relation = database.relation(RelationId(at as u32));
    let rows = relation.rows();
    let mut tuples = Tuples::new();
    for row in 0..relation.len() {
        let tuple = rows[row * relation.arity()..(row + 1) * relation.arity()].to_vec();
        assert!(relation.contains(&tuple));
        let value = relation.values().get(row).copied().unwrap_or_default();
        assert!(!relation.ring().valued() || relation.value(&tuple) == Some(value));
        tuples.insert(tuple, value);
    }
    assert_eq!(tuples.len(), relation.len());
    tuples
}

fn engine(program: &Program, shapes: bool) -> Result<Vec<Tuples>, Trouble> {
    let (mut database, rules) = database(program);
    match evaluate(&mut database, &rules, &Limits { shapes, ..Limits::default() }) {
        Ok(_) => Ok((0..program.relations.len()).map(|at| tuples(&database, at)).collect()),
        Err(Failure::Divergence { .. }) => Err(Trouble::Divergence),
        Err(Failure::Overflow { .. }) => Err(Trouble::Overflow),
        Err(_) => Err(Trouble::Refused),
    }
}

/// The numbers of so many programs, from the seed of the run on.
fn numbers(count: u64) -> impl Iterator<Item = u64> {
    let first = seeded::test_seed();
    (0..count).map(move |number| first.wrapping_add(number))
}

#[test]
fn random_programs_agree_with_the_obvious_evaluator() {
    let (mut diverged, mut tuples, mut left, mut late) = (0, 0, 0, 0);
    // One in some three hundred diverges: drawn on until there are a few.
    for (drawn, seed) in numbers(15_000).enumerate() {
        if drawn >= 1500 && diverged > 4 {
            break;
        }
        let mut random = Family::named("relational").stream(seed);
        let program = generate::program(&mut random);
        let expected = naive::evaluate(&program);
        // 0·∞ is what the order of the factors makes of it.
        let real = |at: usize| !program.relations[at].1.counts();
        let is_nan =
            |(at, tuples): (usize, &Tuples)| real(at) && tuples.values().any(|v| v.as_real().is_nan());
        if expected.iter().flatten().enumerate().any(is_nan) {
            left += 1;
            continue;
        }
        diverged += usize::from(expected.is_err());
        tuples += expected.iter().flatten().map(Tuples::len).sum::<usize>();
        for shapes in [false, true] {
            let found = engine(&program, shapes);
            // The obvious evaluator waits longer than the N + 1 rounds that are promised: see `Failure::Divergence`.
            if found == Err(Trouble::Divergence) && expected.is_ok() {
                late += 1;
                continue;
            }
            assert_eq!(found, expected, "seed {seed}, shapes {shapes}: {program:?}");
        }
    }
    assert!(diverged > 4 && tuples > 15_000 && left <= 3 && late <= 4, "{diverged} {tuples} {left} {late}");
}

/// Linear sums in a recursion: taken where no cycle is reached, and refused where they would not come to rest.
#[test]
fn sums_along_arcs_are_those_of_the_obvious_evaluator() {
    let (mut taken, mut refused) = (0, 0);
    for seed in numbers(400) {
        let mut random = Family::named("sums").stream(seed);
        let ring = [Ring::COUNT, Ring::REAL][random.below(2) as usize];
        let acyclic = random.below(3) > 0;
        let number = |number: u64| {
            if ring.counts() { Value::count(number as i64) } else { Value::real(number as f64) }
        };
        let mut facts = Vec::new();
        for _ in 0..1 + random.below(9) {
            let [x, y] = [0, 1].map(|_| random.below(u64::from(naive::UNIVERSE)) as u32);
            if !acyclic || x < y {
                facts.push((vec![x, y], number(random.below(4))));
            }
        }
        let few = (0..random.below(5) as u32).map(|x| (vec![x], Value::default())).collect();
        let [arc, small, sum] = [0, 1, 2].map(RelationId);
        let [x, y, z, w] = [0, 1, 2, 3].map(Term::variable);
        let base = Rule::new(sum, [x, z], [Atom::factor(arc, [x, z]).into()]);
        let (own, step) = (|a, b| Atom::factor(sum, [a, b]).into(), |a, b| Atom::factor(arc, [a, b]).into());
        let mut next = match random.below(4) {
            0 => Rule::new(sum, [x, z], [own(x, y), step(y, z)]),
            1 => Rule::new(sum, [x, z], [step(x, y), own(y, z)]),
            2 => Rule::new(sum, [x, z], [own(x, y), step(y, w), step(w, z)]),
            _ => Rule::new(sum, [x, z], [own(x, y), step(y, z), Atom::new(small, [z]).into()]),
        };
        if random.below(4) == 0 {
            next.weight = Some(number(2));
        }
        let program = Program {
            relations: vec![(2, ring), (1, Ring::BOOLEAN), (2, ring)],
            facts: vec![facts, few, Vec::new()],
            levels: vec![vec![base, next]],
        };
        match engine(&program, true) {
            Err(Trouble::Refused) => {
                refused += 1;
                assert!(!acyclic, "seed {seed}: {program:?}");
            }
            found => {
                taken += 1;
                assert_eq!(found, naive::evaluate(&program), "seed {seed}: {program:?}");
            }
        }
    }
    assert!(taken > 200 && refused > 20, "{taken} {refused}");
}

#[test]
fn a_condition_on_values_chooses_tuples() {
    let mut database = Database::new(Constants::integers(0, 9));
    let arc = database.declare("arc", 2, Ring::MIN_PLUS);
    let near = database.declare("near", 2, Ring::BOOLEAN);
    database.insert(arc, &[0, 1, 1, 2, 2, 3], &[5.0, 1.0, 2.0].map(Value::real)).unwrap();
    let [x, y, z] = [0, 1, 2].map(Term::variable);
    let mut two =
        Rule::new(near, [x, z], [Atom::factor(arc, [x, y]).into(), Atom::factor(arc, [y, z]).into()]);
    let test = |constants: &[Const], value: f64| value < 10.0 && constants[0] != Const::Int(1);
    two.select = Some(Select { times: Times::Times, test: Arc::new(test) });
    evaluate(&mut database, &[two.clone()], &Limits::default()).unwrap();
    assert_eq!(database.relation(near).rows(), [0, 2]);
    let demand = magic(&mut database, &[two], near, &[None, Some(2)]).unwrap();
    evaluate(&mut database, &demand.rules, &Limits::default()).unwrap();
    assert_eq!(database.relation(demand.answer).rows(), [0, 2]);
}

/// Counts as the lengths of arcs: the closure has a method of its own, which must not take their bits for reals.
#[test]
fn a_closure_along_counts_reads_them_as_numbers() {
    let mut database = Database::new(Constants::integers(0, 9));
    let arc = database.declare("arc", 2, Ring::COUNT);
    let path = database.declare("path", 2, Ring::MIN_PLUS);
    database.insert(arc, &[0, 1, 1, 2, 2, 3], &[5, 7, 9].map(Value::count)).unwrap();
    let [x, y, z] = [0, 1, 2].map(Term::variable);
    let rules = [
        Rule::new(path, [x, y], [Atom::factor(arc, [x, y]).into()]),
        Rule::new(path, [x, z], [Atom::factor(path, [x, y]).into(), Atom::factor(arc, [y, z]).into()]),
    ];
    evaluate(&mut database, &rules, &Limits::default()).unwrap();
    assert_eq!(database.relation(path).value(&[0, 3]), Some(Value::real(21.0)));
}

/// A step that begins at one constant is not the whole relation that it is taken from.
#[test]
fn a_step_from_a_constant_takes_the_tuples_of_that_constant() {
    let mut database = Database::new(Constants::integers(0, 9));
    let arc = database.declare("arc", 2, Ring::BOOLEAN);
    let path = database.declare("path", 2, Ring::BOOLEAN);
    database.insert(arc, &[4, 5, 1, 2], &[]).unwrap();
    database.insert(path, &[1, 1, 4, 4], &[]).unwrap();
    let [x, y, four] = [Term::variable(0), Term::variable(1), Term::Constant(4)];
    let rules =
        [Rule::new(path, [y, x], [Atom::new(arc, [four, y]).into(), Atom::new(path, [four, x]).into()])];
    evaluate(&mut database, &rules, &Limits::default()).unwrap();
    assert_eq!(database.relation(path).rows(), [1, 1, 4, 4, 5, 4]);
}

#[test]
fn demand_derives_the_tuples_with_the_constants_asked_for() {
    let (mut asked, mut fewer, mut late) = (0, 0, 0);
    for seed in numbers(1500) {
        let mut random = Family::named("magic").stream(seed);
        let program = generate::program(&mut random);
        let Ok(all) = engine(&program, false) else { continue };
        for (goal, all) in all.iter().enumerate() {
            let arity = program.relations[goal].0;
            let mut some = || (random.below(2) == 0).then(|| random.below(u64::from(naive::UNIVERSE)) as u32);
            let bound: Vec<Option<u32>> = (0..arity).map(|_| some()).collect();
            let fits = |tuple: &[u32]| {
                tuple.iter().zip(&bound).all(|(constant, bound)| bound.is_none_or(|bound| bound == *constant))
            };
            let expected: Tuples =
                all.iter().filter(|(tuple, _)| fits(tuple)).map(|(t, v)| (t.clone(), *v)).collect();
            let (mut database, rules) = database(&program);
            let demand = magic(&mut database, &rules, RelationId(goal as u32), &bound).unwrap();
            let done = evaluate(&mut database, &demand.rules, &Limits::default());
            // With fewer tuples there are fewer rounds, and a value that waits for another tuple to exist may need one
            // more: then the program is refused.
            if let Err(Failure::Divergence { .. }) = done {
                late += 1;
                continue;
            }
            done.unwrap();
            let mut found = tuples(&database, demand.answer.0 as usize);
            let derived = found.len();
            found.retain(|tuple, _| fits(tuple));
            assert_eq!(
                found, expected,
                "seed {seed}, goal {goal} {bound:?}: {program:?}\n{:?}",
                demand.rules
            );
            asked += 1;
            fewer += usize::from(derived < all.len());
        }
    }
    assert!(asked > 3000 && fewer > 500 && 1000 * late <= asked, "{asked} {fewer} {late}");
}
