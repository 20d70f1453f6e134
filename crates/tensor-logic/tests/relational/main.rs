//! The relational engine against the obvious evaluator.

#![expect(clippy::unwrap_used, reason = "a test may fail by panic")]

mod generate;
mod naive;

use naive::{Program, Trouble, Tuples};
use seeded::Family;
use tensor_logic::relational::{Constants, Database, Failure, Limits, Rule, evaluate};

/// The same program in a database of the engine.
fn database(program: &Program) -> (Database, Vec<Rule>) {
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
    let relation = database.relation(tensor_logic::relational::RelationId(at as u32));
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
        Err(other) => panic!("{other:?}"),
    }
}

#[test]
fn random_programs_agree_with_the_obvious_evaluator() {
    let (mut diverged, mut tuples) = (0, 0);
    for seed in 0..4000 {
        let mut random = Family::named("relational").stream(seed);
        let program = generate::program(&mut random);
        let expected = naive::evaluate(&program);
        diverged += usize::from(expected.is_err());
        tuples += expected.iter().flatten().map(Tuples::len).sum::<usize>();
        for shapes in [false, true] {
            let found = engine(&program, shapes);
            assert_eq!(found, expected, "seed {seed}, shapes {shapes}: {program:?}");
        }
    }
    assert!(diverged > 20 && tuples > 50_000, "{diverged} {tuples}");
}
