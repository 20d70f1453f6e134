//! Larger inputs: special shapes against the general method, threads, memory, limits, demand.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use datarel::Comparison;
use datarel::{
    Atom, Constants, Database, Failure, Limits, Literal, RelationId, Ring, Rule, Term, Value, evaluate, magic,
};
use seeded::Family;

const BOOLEAN: Ring = Ring::BOOLEAN;

fn atom(relation: RelationId, variables: &[u32]) -> Literal {
    Atom::factor(relation, variables.iter().map(|v| Term::variable(*v)).collect::<Vec<_>>()).into()
}

fn rule(head: RelationId, variables: &[u32], body: &[Literal]) -> Rule {
    Rule::new(head, variables.iter().map(|v| Term::variable(*v)).collect::<Vec<_>>(), body)
}

/// Random arcs, with weights where the ring has values.
fn arcs(database: &mut Database, seed: u64, nodes: u64, count: usize, ring: Ring) -> RelationId {
    let mut random = Family::named("arcs").stream(seed);
    let rows: Vec<u32> = (0..2 * count).map(|_| random.below(nodes) as u32).collect();
    let values: Vec<Value> = (0..count).map(|_| Value::real(random.below(9) as f64)).collect();
    let arc = database.declare("arc", 2, ring);
    database.insert(arc, &rows, if ring.valued() { &values } else { &[] }).unwrap();
    arc
}

fn empty(to: i64) -> Database {
    Database::new(Constants::integers(0, to))
}

type Answer = (Vec<u32>, Vec<Value>);

fn run(mut database: Database, rules: &[Rule], answer: RelationId, threads: usize, shapes: bool) -> Answer {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    let limits = Limits { shapes, ..Limits::default() };
    pool.install(|| evaluate(&mut database, rules, &limits)).unwrap();
    (database.relation(answer).rows(), database.relation(answer).values().to_vec())
}

/// The same answer whatever the method and the number of threads.
fn agree(database: &Database, rules: &[Rule], answer: RelationId) -> Answer {
    let expected = run(database.clone(), rules, answer, 1, false);
    for threads in [1, 8] {
        for shapes in [true, false] {
            let found = run(database.clone(), rules, answer, threads, shapes);
            assert!(found == expected, "{threads} threads, shapes {shapes}");
        }
    }
    expected
}

#[test]
fn closures_of_sparse_and_dense_graphs_agree_with_the_general_method() {
    for (seed, nodes, count) in [(1, 3000, 2500), (2, 300, 900), (3, 40, 30), (4, 20_000, 9000)] {
        for ring in [BOOLEAN, Ring::MIN_PLUS] {
            let mut database = empty(20_000);
            let arc = arcs(&mut database, seed, nodes, count, ring);
            let start = arcs(&mut database, seed + 9, nodes, count / 4, ring);
            let path = database.declare("path", 2, ring);
            let left = rule(path, &[0, 2], &[atom(path, &[0, 1]), atom(arc, &[1, 2])]);
            let right = rule(path, &[0, 2], &[atom(arc, &[0, 1]), atom(path, &[1, 2])]);
            for (base, step) in [(arc, &left), (arc, &right), (start, &left), (start, &right)] {
                let rules = [rule(path, &[0, 1], &[atom(base, &[0, 1])]), step.clone()];
                agree(&database, &rules, path);
            }
            let reach = database.declare("reach", 1, ring);
            database.insert(reach, &[3, 5], &[]).unwrap();
            agree(&database, &[rule(reach, &[1], &[atom(reach, &[0]), atom(arc, &[0, 1])])], reach);
        }
    }
}

#[test]
fn products_of_matrices_and_mixed_recursion_agree_with_the_general_method() {
    for seed in 0..3 {
        let mut database = empty(400);
        let (assign, load) =
            (arcs(&mut database, seed, 300, 260, BOOLEAN), arcs(&mut database, seed + 10, 300, 60, BOOLEAN));
        let (points, alias) = (database.declare("points", 2, BOOLEAN), database.declare("alias", 2, BOOLEAN));
        let rules = [
            rule(points, &[0, 1], &[atom(assign, &[0, 1])]),
            rule(points, &[0, 2], &[atom(assign, &[0, 1]), atom(points, &[1, 2])]),
            rule(points, &[1, 3], &[atom(load, &[0, 1]), atom(points, &[0, 2]), atom(alias, &[2, 3])]),
            rule(alias, &[1, 2], &[atom(points, &[0, 1]), atom(points, &[0, 2])]),
        ];
        let (rows, _) = agree(&database, &rules, alias);
        assert!(rows.len() > 1000);
        // A selective relation inside a recursion over three places.
        let (edge, kind) = (database.declare("edge", 3, BOOLEAN), database.declare("kind", 2, BOOLEAN));
        let few = arcs(&mut database, seed + 20, 300, 20, BOOLEAN);
        let rules = [
            rule(kind, &[0, 0], &[atom(assign, &[0, 1])]),
            rule(kind, &[0, 2], &[atom(kind, &[0, 1]), atom(assign, &[1, 2])]),
            rule(edge, &[0, 2, 1], &[atom(kind, &[0, 1]), atom(load, &[1, 2])]),
            rule(kind, &[0, 3], &[atom(edge, &[0, 1, 2]), atom(kind, &[2, 4]), atom(few, &[4, 3])]),
        ];
        agree(&database, &rules, edge);
    }
}

#[test]
fn cyclic_bodies_do_not_meet_the_hub() {
    // One hub with spokes both ways and a rim: a binary join makes 4e8 pairs.
    let (mut database, n) = (empty(20_001), 20_000);
    let rows: Vec<u32> = (1..=n).flat_map(|x| [0, x, x, 0, x, x + 1]).collect();
    let (arc, triangle) = (database.declare("arc", 2, BOOLEAN), database.declare("triangle", 3, BOOLEAN));
    database.insert(arc, &rows, &[]).unwrap();
    let body = [atom(arc, &[0, 1]), atom(arc, &[1, 2]), atom(arc, &[2, 0])];
    evaluate(&mut database, &[rule(triangle, &[0, 1, 2], &body)], &Limits::default()).unwrap();
    assert_eq!(database.relation(triangle).len() as u32, 3 * (n - 1));
}

/// Paths, stars and triangles with conditions, over relations of which some are dense; what is projected, counted and
/// multiplied by special methods is what one join makes of it.
#[test]
fn projections_and_products_agree_with_one_join() {
    let random = &mut Family::named("projections").stream(seeded::test_seed());
    for _ in 0..60 {
        let nodes = [9, 40, 150][random.below(3) as usize];
        let mut database = empty(nodes as i64 - 1);
        let mut atoms = Vec::new();
        let length = 1 + random.below(4) as u32;
        for at in 0..length {
            // The more atoms, the fewer tuples: one join must end.
            let most = [nodes * nodes, 4 * nodes, 3 * nodes, 2 * nodes][length as usize - 1];
            let ring = if random.below(4) == 0 { Ring::MIN_PLUS } else { BOOLEAN };
            let relation = arcs(&mut database, random.next_u64(), nodes, random.below(most) as usize, ring);
            let last = if random.below(6) == 0 { 0 } else { at + 1 };
            let places = if random.below(3) == 0 { [last, at] } else { [at, last] };
            atoms.push(atom(relation, &places));
        }
        let (mut body, ends) = (atoms, [0, length]);
        let bound = |body: &[Literal], variable: u32| {
            let holds = |literal: &Literal| matches!(literal, Literal::Atom(a) if a.terms.contains(&Term::variable(variable)));
            body.iter().any(holds)
        };
        let middle = random.below(u64::from(length) + 1) as u32;
        if random.below(3) == 0 && bound(&body, middle) {
            let few = database.declare("few", 1, BOOLEAN);
            database.insert(few, &[1, 2, 3, 5, 8], &[]).unwrap();
            body.push(atom(few, &[middle]));
        }
        if random.below(3) == 0 && ends.iter().all(|end| bound(&body, *end)) {
            body.push(Literal::Compare(Comparison::NotEqual, Term::variable(0), Term::variable(length)));
        }
        let heads: [&[u32]; 5] = [&ends, &[length, 0], &[0], &[length], &[]];
        let head = heads[random.below(5) as usize];
        if !head.iter().all(|variable| bound(&body, *variable)) {
            continue;
        }
        let rings = [BOOLEAN, BOOLEAN, Ring::COUNT, Ring::REAL, Ring::MIN_PLUS];
        let ring = rings[random.below(5) as usize];
        if ring.counts()
            && !body
                .iter()
                .all(|l| matches!(l, Literal::Atom(a) if !database.relation(a.relation).ring().valued()))
        {
            continue;
        }
        let found = database.declare("found", head.len(), ring);
        if random.below(3) == 0 {
            let tuple: Vec<u32> = head.iter().map(|_| random.below(nodes) as u32).collect();
            database.insert(found, &tuple, &[]).unwrap();
        }
        // Numbers are small integers: sums are exact in any order.
        agree(&database, &[rule(found, head, &body)], found);
    }
}

#[test]
fn a_path_of_four_takes_the_memory_of_its_ends() {
    let mut database = empty(600);
    let arc = arcs(&mut database, 5, 600, 15_000, BOOLEAN);
    let path = database.declare("path", 2, BOOLEAN);
    let body: Vec<Literal> = (0..4).map(|at| atom(arc, &[at, at + 1])).collect();
    let limits = Limits { bytes: 20_000_000, ..Limits::default() };
    evaluate(&mut database, &[rule(path, &[0, 4], &body)], &limits).unwrap();
    assert_eq!(database.relation(path).len(), 360_000);
}

#[test]
fn sums_multiply_degrees_and_build_no_pairs() {
    let mut database = empty(100_000);
    let spokes: Vec<u32> = (1..=100_000).flat_map(|x| [x, 0]).collect();
    let back: Vec<u32> = (1..=100_000).flat_map(|x| [0, x]).collect();
    let (u, v) = (database.declare("u", 2, BOOLEAN), database.declare("v", 2, BOOLEAN));
    database.insert(u, &spokes, &[]).unwrap();
    database.insert(v, &back, &[]).unwrap();
    for (ring, expected) in [(Ring::COUNT, Value::count(10_000_000_000)), (Ring::REAL, Value::real(1e10))] {
        let n = database.declare("n", 0, ring);
        let rules = [rule(n, &[], &[atom(u, &[0, 1]), atom(v, &[1, 2])])];
        evaluate(&mut database, &rules, &Limits::default()).unwrap();
        assert_eq!(database.relation(n).value(&[]), Some(expected));
    }
    let n = database.declare("n", 0, Ring::COUNT);
    let far = [atom(u, &[0, 1]), atom(v, &[1, 2]), atom(u, &[2, 3]), atom(v, &[3, 4]), atom(u, &[4, 5])];
    let squared = [far.to_vec(), vec![atom(v, &[5, 6]), atom(u, &[6, 7]), atom(v, &[7, 8])]].concat();
    let overflow = evaluate(&mut database, &[rule(n, &[], &squared)], &Limits::default());
    assert!(matches!(overflow, Err(Failure::Overflow { .. })), "{overflow:?}");
}

#[test]
fn a_binary_tuple_with_both_orders_takes_at_most_24_bytes() {
    let mut database = empty(100_000);
    let arc = arcs(&mut database, 1, 100_000, 400_000, BOOLEAN);
    let (up, down) = (database.declare("up", 1, BOOLEAN), database.declare("down", 1, BOOLEAN));
    database.insert(up, &[1], &[]).unwrap();
    database.insert(down, &[1], &[]).unwrap();
    let rules = [
        rule(up, &[1], &[atom(up, &[0]), atom(arc, &[0, 1])]),
        rule(down, &[0], &[atom(down, &[1]), atom(arc, &[0, 1])]),
    ];
    evaluate(&mut database, &rules, &Limits::default()).unwrap();
    let relation = database.relation(arc);
    assert!(relation.bytes() > 8 * relation.len(), "both orders are there");
    assert!(relation.bytes() <= 24 * relation.len(), "{} bytes for {}", relation.bytes(), relation.len());
    // A dense result is kept as bits.
    let arc = arcs(&mut database, 2, 1000, 5000, BOOLEAN);
    let path = database.declare("path", 2, BOOLEAN);
    let step = rule(path, &[0, 2], &[atom(path, &[0, 1]), atom(arc, &[1, 2])]);
    evaluate(&mut database, &[rule(path, &[0, 1], &[atom(arc, &[0, 1])]), step], &Limits::default()).unwrap();
    assert!(database.relation(path).len() > 900_000 && database.relation(path).bytes() < 200_000);
}

#[test]
fn limits_end_every_method_with_their_own_failure() {
    let mut database = empty(5000);
    let arc = arcs(&mut database, 1, 3000, 9000, BOOLEAN);
    let (path, n) = (database.declare("path", 2, BOOLEAN), database.declare("n", 1, BOOLEAN));
    database.insert(n, &[0], &[]).unwrap();
    let base = rule(path, &[0, 1], &[atom(arc, &[0, 1])]);
    let left = rule(path, &[0, 2], &[atom(path, &[0, 1]), atom(arc, &[1, 2])]);
    let twice = rule(path, &[0, 2], &[atom(path, &[0, 1]), atom(path, &[1, 2])]);
    let pairs = rule(path, &[0, 2], &[atom(arc, &[0, 1]), atom(arc, &[3, 2])]);
    let [x, y] = [0, 1].map(Term::variable);
    let endless = Rule::new(n, [y], [atom(n, &[0]), Literal::Shift { to: y, from: x, by: 1 }]);
    let programs = [vec![base.clone(), left], vec![base, twice], vec![pairs], vec![endless]];
    for (at, rules) in programs.iter().enumerate() {
        for shapes in [true, false] {
            let limits = Limits { tuples: 20_000, shapes, ..Limits::default() };
            let failure = evaluate(&mut database.clone(), rules, &limits).unwrap_err();
            assert!(matches!(failure, Failure::Tuples { limit: 20_000, .. }), "{at} {failure:?}");
            let stop = Some(Arc::new(AtomicBool::new(true)));
            let limits = Limits { stop, shapes, ..Limits::default() };
            assert_eq!(evaluate(&mut database.clone(), rules, &limits), Err(Failure::Interrupted));
        }
    }
    let limits = Limits { bytes: 200_000, ..Limits::default() };
    let failure = evaluate(&mut database.clone(), &programs[2], &limits).unwrap_err();
    assert!(matches!(failure, Failure::Bytes { .. }), "{failure:?}");
}

#[test]
fn demand_walks_from_the_constant_only() {
    // 100 chains of 100; both directions of recursion, both places bound.
    let rows: Vec<u32> = (0..10_000_u32).filter(|x| x % 100 != 99).flat_map(|x| [x, x + 1]).collect();
    for right in [false, true] {
        for bound in [[Some(250), None], [None, Some(250)]] {
            let mut database = empty(10_000);
            let (arc, path) = (database.declare("arc", 2, BOOLEAN), database.declare("path", 2, BOOLEAN));
            database.insert(arc, &rows, &[]).unwrap();
            let body = match right {
                true => [atom(arc, &[0, 1]), atom(path, &[1, 2])],
                false => [atom(path, &[0, 1]), atom(arc, &[1, 2])],
            };
            let rules = [rule(path, &[0, 1], &[atom(arc, &[0, 1])]), rule(path, &[0, 2], &body)];
            let demand = magic(&mut database, &rules, path, &bound).unwrap();
            evaluate(&mut database, &demand.rules, &Limits::default()).unwrap();
            let expected = if bound[0].is_some() { 49 } else { 50 };
            assert_eq!(database.relation(demand.answer).len(), expected, "right {right}, {bound:?}");
        }
    }
}

#[test]
fn long_chains_do_not_recurse_on_the_stack() {
    let (mut database, n) = (empty(200_000), 100_000_u32);
    let (arc, reach) = (database.declare("arc", 2, BOOLEAN), database.declare("reach", 1, BOOLEAN));
    database.insert(arc, &(0..n).flat_map(|x| [x, x + 1]).collect::<Vec<_>>(), &[]).unwrap();
    database.insert(reach, &[0], &[]).unwrap();
    let rules = [rule(reach, &[1], &[atom(reach, &[0]), atom(arc, &[0, 1])])];
    agree(&database, &rules, reach);
    // A body of many atoms.
    let turn = database.declare("turn", 2, BOOLEAN);
    database.insert(turn, &[0, 1, 1, 0], &[]).unwrap();
    let end = database.declare("end", 1, BOOLEAN);
    let body: Vec<Literal> = (0..601).map(|at| atom(turn, &[at, at + 1])).collect();
    let first = Literal::Compare(Comparison::Equal, Term::variable(0), Term::Constant(0));
    let body = [body, vec![first]].concat();
    evaluate(&mut database, &[rule(end, &[601], &body)], &Limits::default()).unwrap();
    assert_eq!(database.relation(end).rows(), [1]);
    // A program of many relations.
    let mut rules = Vec::new();
    let mut last = reach;
    for at in 0..3000 {
        let next = database.declare(format!("r{at}"), 1, BOOLEAN);
        rules.push(rule(next, &[0], &[atom(last, &[0])]));
        last = next;
    }
    evaluate(&mut database, &rules, &Limits::default()).unwrap();
    assert_eq!(database.relation(last).len(), 1);
}
