//! Programs that are seldom drawn: long chains, cycles, values that wait for others, new constants, no places.

use datarel::rule::Function;
use datarel::{
    Atom, Comparison, Const, Constants, Database, Failure, Limits, Literal, RelationId, Ring, Rule, Term,
    Value,
};
use datarel_dataflow::{Options, Refusal, evaluate};

use crate::generate::{Tuples, tuples};

/// Variables, by number.
fn x(number: u32) -> Term {
    Term::variable(number)
}

/// By so many workers and by the engine: the same, which is returned.
fn both(database: &Database, rules: &[Rule]) -> Vec<Tuples> {
    let count = database.relations();
    let mut expected = database.clone();
    datarel::evaluate(&mut expected, rules, &Limits::default()).unwrap();
    let expected = tuples(&expected, count);
    let goals: Vec<RelationId> = (0..count as u32).map(RelationId).collect();
    for workers in 1..=3 {
        let mut found = database.clone();
        evaluate(&mut found, rules, &goals, &Options { workers, ..Options::default() }).unwrap();
        assert_eq!(tuples(&found, count), expected, "{workers} workers");
    }
    expected
}

/// `path` over `arc`, both of these rings.
pub(crate) fn closure(arcs: &[(u32, u32, f64)], nodes: u32, rings: [Ring; 2]) -> (Database, Vec<Rule>) {
    let mut database = Database::new(Constants::integers(0, i64::from(nodes) - 1));
    let arc = database.declare("arc", 2, rings[0]);
    let path = database.declare("path", 2, rings[1]);
    let rows: Vec<u32> = arcs.iter().flat_map(|(a, b, _)| [*a, *b]).collect();
    let values: Vec<Value> = arcs.iter().map(|(_, _, value)| Value::real(*value)).collect();
    if !arcs.is_empty() {
        database.insert(arc, &rows, if rings[0].valued() { &values } else { &[] }).unwrap();
    }
    let rules = vec![
        Rule::new(path, [x(0), x(1)], [Atom::factor(arc, [x(0), x(1)]).into()]),
        Rule::new(
            path,
            [x(0), x(2)],
            [Atom::factor(path, [x(0), x(1)]).into(), Atom::factor(arc, [x(1), x(2)]).into()],
        ),
    ];
    (database, rules)
}

#[test]
fn long_chains_and_cycles_are_followed_to_their_ends() {
    let chain: Vec<(u32, u32, f64)> = (0..150).map(|at| (at, at + 1, 1.0 + f64::from(at % 3))).collect();
    let cycle: Vec<(u32, u32, f64)> = (0..40).map(|at| (at, (at + 1) % 40, 2.0)).collect();
    for (arcs, paths) in [(chain, 150 * 151 / 2), (cycle, 1600), (Vec::new(), 0)] {
        for rings in [[Ring::BOOLEAN; 2], [Ring::MIN_PLUS; 2], [Ring::BOOLEAN, Ring::MIN_PLUS]] {
            let (database, rules) = closure(&arcs, 200, rings);
            assert_eq!(both(&database, &rules)[1].len(), paths);
        }
    }
}

#[test]
fn a_cycle_of_negative_length_is_refused_and_one_that_is_not_reached_is_not() {
    let arcs = [(0, 1, 1.0), (1, 2, -3.0), (2, 1, 2.0), (5, 6, 1.0)];
    let (mut database, rules) = closure(&arcs, 9, [Ring::MIN_PLUS; 2]);
    let path = RelationId(1);
    for workers in 1..=3 {
        let options = Options { workers, ..Options::default() };
        let refusal = evaluate(&mut database, &rules, &[path], &options).unwrap_err();
        assert!(
            matches!(refusal, Refusal::Failure(Failure::Divergence { relation, .. }) if relation == path),
            "{refusal:?}"
        );
        assert!(database.relation(path).is_empty());
    }
    // From 5 alone: the cycle is not reached.
    let mut rules = rules;
    rules[0] = Rule::new(
        path,
        [Term::Constant(5), x(1)],
        [Atom::factor(RelationId(0), [Term::Constant(5), x(1)]).into()],
    );
    assert_eq!(both(&database, &rules)[1].len(), 1);
}

#[test]
fn one_relation_stands_on_both_sides_of_not() {
    let mut database = Database::new(Constants::integers(0, 9));
    let [arc, one_way, lone] =
        [("arc", 2), ("one_way", 2), ("lone", 1)].map(|(n, a)| database.declare(n, a, Ring::BOOLEAN));
    database.insert(arc, &[0, 1, 1, 0, 1, 2, 3, 3], &[]).unwrap();
    let there: Literal = Atom::new(arc, [x(0), x(1)]).into();
    let back = Literal::Not(Atom::new(arc, [x(1), x(0)]));
    let none = Literal::Not(Atom::new(arc, [x(1), Term::Any]));
    let rules =
        [Rule::new(one_way, [x(0), x(1)], [there.clone(), back]), Rule::new(lone, [x(1)], [there, none])];
    let found = both(&database, &rules);
    assert_eq!((found[1].len(), found[2].len()), (1, 1));
}

/// Numbers that no fact holds: counted up to 40, and doubled beyond what has a code.
#[test]
fn rules_make_integers_and_symbols_within_bounds() {
    let mut database = Database::new(Constants::integers(0, 3));
    let number = database.declare("number", 1, Ring::BOOLEAN);
    let word = database.declare("word", 1, Ring::BOOLEAN);
    database.insert(number, &[2], &[]).unwrap();
    let forty = database.constants.intern(Const::Int(40)).unwrap();
    let up = |limit: Option<u32>| {
        let shift = Literal::Shift { to: x(1), from: x(0), by: 1 };
        let below = limit.map(|limit| Literal::Compare(Comparison::LessEqual, x(1), Term::Constant(limit)));
        let body: Vec<Literal> = [Atom::new(number, [x(0)]).into(), shift].into_iter().chain(below).collect();
        Rule::new(number, [x(1)], body)
    };
    let symbol: Function = std::sync::Arc::new(|_| Some(Const::Symbol(datarel::SymbolId(77))));
    let compute = Literal::Compute { result: x(1), arguments: vec![x(0)], function: symbol };
    let named = Rule::new(word, [x(1)], [Atom::new(number, [x(0)]).into(), compute]);
    let found = both(&database, &[up(Some(forty)), named]);
    assert_eq!((found[0].len(), found[1].len()), (39, 1));
    // Without an end the limit on tuples ends it.
    let limits = Limits { tuples: 500, ..Limits::default() };
    let options = Options { workers: 2, limits, ..Options::default() };
    let refusal = evaluate(&mut database, &[up(None)], &[number], &options).unwrap_err();
    assert_eq!(refusal, Failure::Tuples { relation: number, limit: 500 }.into());
    let double: Function =
        std::sync::Arc::new(|values| Some(Const::Int(values.first()?.int()?.checked_mul(2)?)));
    let compute = Literal::Compute { result: x(1), arguments: vec![x(0)], function: double };
    let doubled = Rule::new(number, [x(1)], [Atom::new(number, [x(0)]).into(), compute]);
    let refusal = evaluate(&mut database, &[doubled], &[number], &Options::default()).unwrap_err();
    assert_eq!(refusal, Refusal::Constant { rule: 0 });
}

#[test]
fn relations_without_places_hold_or_do_not() {
    let mut database = Database::new(Constants::integers(0, 3));
    let [rain, wet, dry, any] =
        ["rain", "wet", "dry", "any"].map(|name| database.declare(name, 0, Ring::BOOLEAN));
    let number = database.declare("number", 1, Ring::COUNT);
    let total = database.declare("total", 0, Ring::COUNT);
    database.insert(rain, &[], &[]).unwrap();
    database.insert(number, &[0, 1, 3], &[Value::count(2), Value::count(5), Value::count(-1)]).unwrap();
    let rules = [
        Rule::new(wet, [], [Atom::new(rain, []).into()]),
        Rule::new(dry, [], [Literal::Not(Atom::new(rain, []))]),
        Rule::new(any, [], [Literal::Not(Atom::new(dry, [])), Atom::new(wet, []).into()]),
        Rule::new(total, [], [Atom::factor(number, [Term::Any]).into()]),
        // A rule without a body is a contribution too.
        Rule { weight: Some(Value::count(4)), ..Rule::new(total, [], []) },
    ];
    let found = both(&database, &rules);
    assert_eq!([1, 2, 3].map(|at| found[at].len()), [1, 0, 1]);
    assert_eq!(found[5].values().next(), Some(&Some(Value::count(10))));
}

/// Two relations define each other, the values of one through the tuples of the other.
#[test]
fn relations_that_need_each_other_rest_together() {
    let mut database = Database::new(Constants::integers(0, 99));
    let arc = database.declare("arc", 2, Ring::MIN_PLUS);
    let [even, odd] = ["even", "odd"].map(|name| database.declare(name, 1, Ring::MIN_PLUS));
    let seen = database.declare("seen", 1, Ring::BOOLEAN);
    for at in 0..30u32 {
        database
            .insert(arc, &[at, (at + 1) % 30, at, (at * 7 + 2) % 30], &[Value::real(1.0), Value::real(4.0)])
            .unwrap();
    }
    let step = |to, from| {
        let body = [Atom::factor(from, [x(0)]).into(), Atom::factor(arc, [x(0), x(1)]).into()];
        Rule::new(to, [x(1)], body)
    };
    let rules = [
        Rule { weight: Some(Value::real(0.0)), ..Rule::new(even, [Term::Constant(0)], []) },
        step(odd, even),
        step(even, odd),
        Rule::new(seen, [x(0)], [Atom::new(even, [x(0)]).into(), Atom::new(odd, [x(0)]).into()]),
    ];
    assert!(both(&database, &rules)[3].len() > 5);
}

#[test]
fn counts_that_leave_64_bits_are_refused_and_those_that_do_not_are_exact() {
    let mut database = Database::new(Constants::integers(0, 3));
    let [number, product] = ["number", "product"].map(|name| database.declare(name, 1, Ring::COUNT));
    let wide = database.declare("wide", 1, Ring::BOOLEAN);
    database.insert(number, &[0, 1], &[Value::count(1 << 31), Value::count(3)]).unwrap();
    let square: Vec<Literal> = vec![Atom::factor(number, [x(0)]).into(), Atom::factor(number, [x(0)]).into()];
    both(&database, &[Rule::new(product, [x(0)], square.clone())]);
    let cube = [square, vec![Atom::factor(number, [x(0)]).into()]].concat();
    let rule = Rule::new(product, [x(0)], cube);
    let refusal =
        evaluate(&mut database, std::slice::from_ref(&rule), &[product], &Options::default()).unwrap_err();
    assert_eq!(refusal, Failure::Overflow { relation: product, tuple: vec![0] }.into());
    // Who only asks whether it is there needs the count too: it is no relation without.
    let asks = Rule::new(wide, [x(0)], [Atom::new(product, [x(0)]).into()]);
    let refusal = evaluate(&mut database, &[rule, asks], &[wide], &Options::default()).unwrap_err();
    assert!(matches!(refusal, Refusal::Failure(Failure::Overflow { .. })), "{refusal:?}");
}
