//! Everything that is refused.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use datarel::{
    Atom, Combine, Constants, Database, Failure, Limits, Literal, RelationId, Ring, Rule, Term, Times, Value,
};
use datarel_dataflow::{Options, Refusal, evaluate};

use crate::shapes::closure;

fn refused(rules: &[Rule], database: &mut Database, options: &Options) -> Refusal {
    let goals: Vec<RelationId> = (0..database.relations() as u32).map(RelationId).collect();
    evaluate(database, rules, &goals, options).unwrap_err()
}

#[test]
fn a_sum_in_a_recursion_is_named() {
    for ring in [Ring::COUNT, Ring::REAL] {
        let (mut database, rules) = closure(&[], 3, [Ring::BOOLEAN, ring]);
        let refusal = refused(&rules, &mut database, &Options::default());
        assert_eq!(refusal, Refusal::SumInRecursion { relation: RelationId(1) });
    }
}

#[test]
fn rules_that_are_none_are_named() {
    let mut database = Database::new(Constants::integers(0, 9));
    let a = database.declare("a", 1, Ring::BOOLEAN);
    let real = database.declare("real", 1, Ring::REAL);
    let count = database.declare("count", 1, Ring::COUNT);
    let odd = database.declare("odd", 1, Ring { combine: Combine::Count, times: Times::Plus });
    let [x, y] = [0, 1].map(Term::variable);
    let atom = |relation| -> Literal { Atom::factor(relation, [x]).into() };
    let cases: [(Rule, &str); 7] = [
        (Rule::new(a, [y], [atom(a)]), "a variable of the head is not bound"),
        (Rule::new(a, [x], [Literal::Not(Atom::new(count, [x]))]), "a variable of a condition is not bound"),
        (Rule::new(a, [x, x], [atom(a)]), "an atom has the wrong number of arguments"),
        (Rule::new(a, [x], [Atom::new(count, [x, y]).into()]), "an atom has the wrong number of arguments"),
        (
            Rule::new(a, [x], [Atom::new(RelationId(99), [x]).into()]),
            "an atom has the wrong number of arguments",
        ),
        (Rule::new(count, [x], [atom(real)]), "a count has a real factor"),
        (Rule::new(odd, [x], [atom(a)]), "counts are multiplied, and nothing else"),
    ];
    for (rule, reason) in cases {
        let refusal = refused(&[rule], &mut database, &Options::default());
        assert_eq!(refusal, Failure::Rule { rule: 0, reason }.into());
    }
    let not = Rule::new(a, [x], [atom(count), Literal::Not(Atom::new(a, [x]))]);
    assert_eq!(
        refused(&[not], &mut database, &Options::default()),
        Failure::NotStratified { relation: a }.into()
    );
}

#[test]
fn workers_limits_and_interrupts_are_kept() {
    let arcs: Vec<(u32, u32, f64)> = (0..60).map(|at| (at, (at + 1) % 60, 1.0)).collect();
    let (mut database, rules) = closure(&arcs, 60, [Ring::BOOLEAN; 2]);
    for workers in [0, 257] {
        let refusal = refused(&rules, &mut database, &Options { workers, ..Options::default() });
        assert_eq!(refusal, Refusal::Workers { workers, most: 256 });
    }
    for workers in 1..=2 {
        let limits = Limits { tuples: 1000, ..Limits::default() };
        let refusal = refused(&rules, &mut database, &Options { workers, limits, ..Options::default() });
        assert_eq!(refusal, Failure::Tuples { relation: RelationId(1), limit: 1000 }.into());
        let stop = Some(Arc::new(AtomicBool::new(true)));
        let limits = Limits { stop, ..Limits::default() };
        let refusal = refused(&rules, &mut database, &Options { workers, limits, ..Options::default() });
        assert_eq!(refusal, Failure::Interrupted.into());
    }
    let limits = Limits { tuples: 3660, ..Limits::default() };
    evaluate(&mut database, &rules, &[RelationId(1)], &Options { limits, ..Options::default() }).unwrap();
    assert_eq!(database.relation(RelationId(1)).len(), 3600);
}

#[test]
fn what_the_answers_do_not_need_is_not_derived() {
    let (mut database, mut rules) = closure(&[(0, 1, 1.0)], 9, [Ring::BOOLEAN; 2]);
    let endless = database.declare("endless", 1, Ring::BOOLEAN);
    database.insert(endless, &[1], &[]).unwrap();
    let shift = Literal::Shift { to: Term::variable(1), from: Term::variable(0), by: 1 };
    rules.push(Rule::new(
        endless,
        [Term::variable(1)],
        [Atom::new(endless, [Term::variable(0)]).into(), shift],
    ));
    evaluate(&mut database, &rules, &[RelationId(1)], &Options::default()).unwrap();
    assert_eq!(database.relation(RelationId(1)).value(&[0, 1]), Some(Value::real(1.0)));
    assert_eq!(database.relation(endless).len(), 1);
}
