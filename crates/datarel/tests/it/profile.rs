//! What an evaluation says of itself: methods, orders, rows and rounds.

use datarel::{
    Access, Atom, Constants, Database, Failure, Limits, Method, Profile, RelationId, Ring, Rule, Term,
    evaluate, evaluate_profiled, explain,
};
use seeded::Family;

use crate::{generate, random_rules::database};

fn atom(relation: RelationId, terms: &[u32]) -> Atom {
    Atom::new(relation, terms.iter().map(|number| Term::variable(*number)).collect::<Vec<_>>())
}

fn rule(head: RelationId, terms: &[u32], body: &[Atom]) -> Rule {
    let terms: Vec<Term> = terms.iter().map(|number| Term::variable(*number)).collect();
    Rule::new(head, terms, body.iter().cloned().map(Into::into).collect::<Vec<_>>())
}

/// A path of four arcs, its closure, and the pairs of ends of two arcs.
fn path() -> (Database, Vec<Rule>, [RelationId; 3]) {
    let mut database = Database::new(Constants::integers(0, 9));
    let [arc, reach, two] = ["arc", "reach", "two"].map(|name| database.declare(name, 2, Ring::BOOLEAN));
    database.insert(arc, &[0, 1, 1, 2, 2, 3, 3, 4], &[]).unwrap();
    let rules = vec![
        rule(reach, &[0, 1], &[atom(arc, &[0, 1])]),
        rule(reach, &[0, 2], &[atom(reach, &[0, 1]), atom(arc, &[1, 2])]),
        rule(two, &[0, 2], &[atom(arc, &[0, 1]), atom(arc, &[1, 2]), atom(reach, &[0, 2])]),
    ];
    (database, rules, [arc, reach, two])
}

#[test]
fn rounds_and_rows_are_counted() {
    let (mut database, rules, [arc, reach, two]) = path();
    let limits = Limits { shapes: false, ..Limits::default() };
    let mut profile = Profile::default();
    let counters = evaluate_profiled(&mut database, &rules, &limits, &mut profile).unwrap();
    let [closure, pairs] = profile.strata.as_slice() else { panic!("{profile:?}") };
    assert_eq!((closure.relations.as_slice(), closure.method), (&[reach][..], Method::Rounds));
    // Paths of length 1, 2, 3 and 4, one a round; all rows are of one block.
    assert_eq!((closure.rounds, closure.rounds), (4, counters.rounds));
    assert_eq!((closure.tuples, pairs.tuples), (10, 3));
    let [base, step] = closure.rules.as_slice() else { panic!("{closure:?}") };
    assert_eq!((base.rule, base.delta, base.joins, base.rows_in, base.rows_out), (0, None, 1, 4, 4));
    // Every one of the ten pairs has its turn once, and six of them go on.
    assert_eq!((step.rule, step.delta, step.joins, step.rows_in, step.rows_out), (1, Some(0), 4, 10, 6));
    let order: Vec<_> = step.order.iter().map(|join| (join.relation, join.access, join.bound)).collect();
    assert_eq!(order, [(Some(reach), Access::New, 0), (Some(arc), Access::Rows, 1)]);
    assert_eq!((pairs.relations.as_slice(), pairs.method, pairs.rounds), (&[two][..], Method::Once, 0));
    assert!(pairs.bytes > 0 && closure.time >= base.time + step.time);
    // The closure of one relation is a search, and says so.
    let (mut database, rules, _) = path();
    let mut profile = Profile::default();
    evaluate_profiled(&mut database, &rules, &Limits::default(), &mut profile).unwrap();
    assert_eq!(profile.strata[0].method, Method::Search);
    assert_eq!(profile.strata[0].tuples, 10);
}

#[test]
fn an_explanation_evaluates_nothing_and_knows_sizes() {
    let (mut database, rules, [arc, reach, two]) = path();
    let profile = explain(&mut database, &rules).unwrap();
    assert!(database.relation(reach).is_empty() && database.relation(two).is_empty());
    let methods: Vec<Method> = profile.strata.iter().map(|stratum| stratum.method).collect();
    assert_eq!(methods, [Method::Search, Method::Once]);
    // Four arcs, of which one goes on from each: four pairs of ends at most.
    let order = &profile.strata[1].rules[0].order;
    assert_eq!(order[0].estimate, 4.0);
    let relations: Vec<_> = order.iter().filter_map(|join| join.relation).collect();
    assert_eq!(relations.iter().filter(|id| **id == arc).count(), 2);
    assert!(profile.strata.iter().all(|stratum| stratum.time.is_zero()));
    // A relation that is not derived yet counts with what is expected of it: the smaller one is first.
    let mut database = Database::new(Constants::integers(0, 99));
    let [big, small, copy, out] =
        ["big", "small", "copy", "out"].map(|name| database.declare(name, 2, Ring::BOOLEAN));
    let many: Vec<u32> = (0..2000_u32).flat_map(|at| [at / 20, at % 20 + at / 400]).collect();
    database.insert(big, &many, &[]).unwrap();
    database.insert(small, &[1, 2, 3, 4], &[]).unwrap();
    let rules = [
        rule(copy, &[1, 0], &[atom(big, &[0, 1])]),
        rule(out, &[0, 3], &[atom(copy, &[0, 1]), atom(small, &[1, 2]), atom(copy, &[2, 3])]),
    ];
    let profile = explain(&mut database, &rules).unwrap();
    let first = profile.strata.last().unwrap().rules[0].order[0].relation;
    assert_eq!(first, Some(small));
    assert_eq!(profile.strata[0].tuples, 2000);
}

/// Looked at or not, the same comes out; and what is said agrees with the rules.
#[test]
fn random_programs_say_what_they_do() {
    let first = seeded::test_seed();
    let (mut refused, mut rounds, mut orders) = (0, 0, 0);
    for number in 0..600 {
        let program = generate::program(&mut Family::named("profile").stream(first.wrapping_add(number)));
        let (database, rules) = database(&program);
        for shapes in [true, false] {
            let limits = Limits { shapes, ..Limits::default() };
            let (mut plain, mut noted, mut profile) =
                (database.clone(), database.clone(), Profile::default());
            let done = evaluate(&mut plain, &rules, &limits);
            assert_eq!(evaluate_profiled(&mut noted, &rules, &limits, &mut profile), done);
            let mut untouched = database.clone();
            let explained = explain(&mut untouched, &rules);
            let relations = || (0..database.relations() as u32).map(RelationId);
            for id in relations() {
                assert_eq!(plain.relation(id).rows(), noted.relation(id).rows());
                assert_eq!(untouched.relation(id).rows(), database.relation(id).rows());
            }
            if let Err(Failure::Rule { .. } | Failure::NotStratified { .. }) = done {
                refused += 1;
                continue;
            }
            let Ok(explained) = explained else { panic!("{explained:?} but {done:?}") };
            for (said, found) in explained.strata.iter().zip(&profile.strata) {
                assert_eq!(said.relations, found.relations);
                // A closure that comes to no rest in its own way is taken up in rounds.
                assert!(said.method == found.method || found.method == Method::Rounds, "{said:?} {found:?}");
                assert!(found.time >= found.rules.iter().map(|rule| rule.time).sum());
                rounds += found.rounds;
            }
            if done.is_err() {
                continue;
            }
            assert_eq!(explained.strata.len(), profile.strata.len());
            let mut seen: Vec<usize> =
                profile.strata.iter().flat_map(|s| s.rules.iter().map(|rule| rule.rule)).collect();
            seen.sort_unstable();
            seen.dedup();
            assert_eq!(seen, (0..rules.len()).collect::<Vec<_>>(), "{number}");
            for stratum in &profile.strata {
                let out: u64 = stratum.rules.iter().map(|rule| rule.rows_out).sum();
                let held = |id: &RelationId| database.relation(*id).len() as u64;
                let given: u64 = stratum.relations.iter().map(held).sum();
                assert!(stratum.tuples <= out + given, "{stratum:?}");
            }
            // Joined as they are, bodies are joined whole.
            for of in explained.strata.iter().flat_map(|stratum| &stratum.rules) {
                let mut joined: Vec<RelationId> = of.order.iter().filter_map(|join| join.relation).collect();
                let mut body: Vec<RelationId> = rules[of.rule]
                    .body
                    .iter()
                    .filter_map(|literal| match literal {
                        datarel::Literal::Atom(atom) | datarel::Literal::Not(atom) => Some(atom.relation),
                        _ => None,
                    })
                    .collect();
                joined.sort_unstable();
                body.sort_unstable();
                assert_eq!(joined, body, "{of:?}");
                orders += 1;
            }
        }
    }
    assert!(rounds > 200 && orders > 2000, "{refused} refused, {rounds} rounds, {orders} orders");
}

/// Sizes are counted as relations change, and are those of all of them whatever was done.
#[test]
fn sizes_are_those_of_all_relations() {
    let same = |database: &Database| {
        let all = (0..database.relations()).map(|at| database.relation(RelationId(at as u32)));
        let sizes = all.map(|relation| (relation.len() as u64, relation.bytes() as u64));
        let (tuples, bytes) = sizes.fold((0, 0), |(a, b), (tuples, bytes)| (a + tuples, b + bytes));
        assert_eq!((database.tuples(), database.bytes()), (tuples, bytes));
    };
    let first = seeded::test_seed();
    for number in 0..200 {
        let mut random = Family::named("sizes").stream(first.wrapping_add(number));
        let (mut database, rules) = database(&generate::program(&mut random));
        same(&database);
        // What it refuses has changed something, too.
        let _refused = evaluate(&mut database, &rules, &Limits { tuples: 50, ..Limits::default() }).is_err();
        same(&database);
        same(&database.clone());
        let any = |random: &mut seeded::Stream, of: usize| RelationId(random.below(of as u64) as u32);
        let one = any(&mut random, database.relations());
        let alike = (0..database.relations()).map(|at| RelationId(at as u32)).find(|other| {
            let (a, b) = (database.relation(one), database.relation(*other));
            *other != one && a.arity() == b.arity() && a.ring() == b.ring()
        });
        if let Some(other) = alike {
            database.exchange(one, other);
            same(&database);
        }
        database.clear(any(&mut random, database.relations()));
        same(&database);
        database.truncate(database.relations() - 1);
        same(&database);
        database.declare("more", 2, Ring::BOOLEAN);
        same(&database);
    }
}
