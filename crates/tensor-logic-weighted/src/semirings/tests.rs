//! Tags against the sum over worlds, laws, and the types of the language by its interpreter.

use super::*;
use crate::engine::{Budget, Engine, Parameters, Request};
use crate::program::TensorId;
use datarel::{
    AddMult, Atom, Constants, Database, Limits as Most, Literal, RelationId, Ring, Rule, Term, evaluate,
    evaluate_tagged,
};
use proof_circuits::Literal as Of;
use seeded::{Family, Stream};
use tensor_logic_core::analyse::analyse;
use tensor_logic_core::function::UserFunctions;
use tensor_logic_core::lower::{NoFiles, Options};
use tensor_logic_reference::Reference;

/// Rules over `arc` and `node`, with recursion and negation; the relations are arc, node, path, alone, far.
fn rules() -> Vec<Rule> {
    let [arc, node, path, alone, far] = [0, 1, 2, 3, 4].map(RelationId);
    let [x, y, z] = [0, 1, 2].map(Term::variable);
    let is = |relation, terms: &[Term]| Literal::Atom(Atom::factor(relation, terms));
    let not = |relation, terms: &[Term]| Literal::Not(Atom::new(relation, terms));
    vec![
        Rule::new(path, [x, y], [is(arc, &[x, y])]),
        Rule::new(path, [x, z], [is(path, &[x, y]), is(arc, &[y, z])]),
        Rule::new(alone, [x], [is(node, &[x]), not(path, &[x, Term::Any])]),
        Rule::new(far, [x, y], [is(node, &[x]), is(path, &[x, y]), not(arc, &[x, y]), not(alone, &[y])]),
        Rule::new(far, [x, y], [is(alone, &[x]), is(node, &[y]), not(path, &[y, y])]),
    ]
}

/// The facts of arc and node in the order of their rows, with their weights.
fn facts(random: &mut Stream) -> Vec<(RelationId, Vec<u32>, f64)> {
    let mut facts = Vec::new();
    for (relation, arity, most) in [(0, 2, 5), (1, 1, 3)] {
        let mut rows: Vec<Vec<u32>> = (0..1 + random.below(most))
            .map(|_| (0..arity).map(|_| random.below(3) as u32).collect())
            .collect();
        rows.sort();
        rows.dedup();
        for row in rows {
            facts.push((RelationId(relation), row, random.below(9) as f64 / 8.0));
        }
    }
    facts
}

fn database(facts: &[(RelationId, Vec<u32>, f64)], chosen: &dyn Fn(usize) -> bool) -> Database {
    let mut database = Database::new(Constants::integers(0, 9));
    for (name, arity) in [("arc", 2), ("node", 1), ("path", 2), ("alone", 1), ("far", 2)] {
        database.declare(name, arity, Ring::BOOLEAN);
    }
    for (_, (relation, tuple, _)) in facts.iter().enumerate().filter(|(at, _)| chosen(*at)) {
        database.insert(*relation, tuple, &[]).unwrap();
    }
    database
}

/// `prob` against the sum over all worlds, each evaluated without weights; `topk(k)` with as many as there are too, and with few
/// a lower bound where nothing is denied.
#[test]
fn tags_are_sums_over_worlds() {
    let (rules, mut between) = (rules(), 0);
    for item in 0..60 {
        let mut random = Family::new("tensor-logic-weighted", "tags", seeded::test_seed()).stream(item);
        let facts = facts(&mut random);
        let weights: Vec<f64> = facts.iter().map(|(_, _, weight)| *weight).collect();
        let mut worlds: std::collections::BTreeMap<(RelationId, Vec<u32>), f64> = Default::default();
        for bits in 0..1u32 << facts.len() {
            let holds = |at: usize| bits >> at & 1 == 1;
            let weight = |at: usize| if holds(at) { weights[at] } else { 1.0 - weights[at] };
            let probability: f64 = (0..facts.len()).map(weight).product();
            let mut database = database(&facts, &holds);
            evaluate(&mut database, &rules, &Most::default()).unwrap();
            for relation in (2..5).map(RelationId) {
                let of = database.relation(relation);
                let rows = of.rows();
                for row in rows.chunks(of.arity()) {
                    *worlds.entry((relation, row.to_vec())).or_default() += probability;
                }
            }
        }
        for k in [usize::MAX, 1000, 1] {
            let semiring = Provenance::topk(k, &weights).unwrap();
            let mut whole = database(&facts, &|_| true);
            let found = evaluate_tagged(&mut whole, &rules, &semiring, &Most::default()).unwrap();
            for relation in (2..5).map(RelationId) {
                for (tuple, tag) in found.tuples(relation) {
                    let value = semiring.answer(tag).unwrap();
                    let expected = worlds.remove(&(relation, tuple.to_vec())).unwrap_or(0.0);
                    let near = (value - expected).abs() < 1e-12;
                    assert!(near || k == 1, "{item}: {relation:?} {tuple:?}: {value} {expected} {facts:?}");
                    assert!(relation.0 > 2 || value <= expected + 1e-12);
                    between += u32::from(k == usize::MAX && value > 0.0 && value < 1.0);
                    worlds.insert((relation, tuple.to_vec()), expected);
                }
            }
            assert!(
                k == 1 || worlds.iter().all(|((relation, tuple), _)| found.tag(*relation, tuple).is_some())
            );
        }
    }
    assert!(between > 200, "{between}");
}

/// The laws, as functions of the worlds: sets of proofs that say the same need not be the same.
#[test]
fn sets_of_proofs_keep_the_laws() {
    let mut events = Proofs::default();
    let facts = [events.fact(), events.fact(), events.choice(2)];
    let alternative = Event(facts[2].0 + 1);
    let weights = [0.375, 0.5, 0.25, 0.625];
    let sets = ProofSets::new(&events, &weights, usize::MAX).unwrap();
    let semiring = Provenance::new(sets.clone(), Vec::new());
    let same = |a: &ProofSet, b: &ProofSet| {
        // In each world alike.
        [[0, 0], [1, 0], [0, 1], [1, 1]].into_iter().all(|[x, y]| {
            (0..3).all(|choice: u32| {
                let happens = |literal: &Of| match literal {
                    Of::Is(event) | Of::IsNot(event) => {
                        let there = match event.0 {
                            0 => x == 1,
                            1 => y == 1,
                            other => other - 2 == choice,
                        };
                        there == matches!(literal, Of::Is(_))
                    }
                    _ => false,
                };
                let holds = |set: &ProofSet| set.proofs().any(|(_, proof)| proof.iter().all(happens));
                holds(a) == holds(b)
            })
        })
    };
    let mut tags: Vec<ProofSet> =
        facts.iter().chain([&alternative]).map(|event| sets.event(*event)).collect();
    tags.extend([semiring.zero(), semiring.one()]);
    tags.push(sets.either(&tags[0], &sets.not(&tags[2])));
    tags.push(sets.both(&sets.not(&tags[1]), &tags[3]));
    let (plus, times) = (
        |a: &ProofSet, b: &ProofSet| semiring.plus(a, b).unwrap(),
        |a: &ProofSet, b: &ProofSet| semiring.times(a, b).unwrap(),
    );
    for a in &tags {
        let not = semiring.negate(a).unwrap();
        assert!(plus(&semiring.zero(), a) == *a && times(&semiring.one(), a) == *a && plus(a, a) == *a);
        assert!(times(&semiring.zero(), a) == semiring.zero() && times(a, a) == *a);
        assert!(same(&semiring.negate(&not).unwrap(), a) && times(a, &not) == semiring.zero());
        assert!(same(&plus(a, &not), &semiring.one()));
        for b in &tags {
            assert!(plus(a, b) == plus(b, a) && times(a, b) == times(b, a));
            for c in &tags {
                assert!(same(&plus(&plus(a, b), c), &plus(a, &plus(b, c))), "{a:?} {b:?} {c:?}");
                assert!(same(&times(&times(a, b), c), &times(a, &times(b, c))), "{a:?} {b:?} {c:?}");
                assert!(same(&times(a, &plus(b, c)), &plus(&times(a, b), &times(a, c))), "{a:?} {b:?} {c:?}");
            }
        }
    }
    assert!(Provenance::prob(&[1.5]).is_err() && semiring.number(Value::real(0.5)).is_none());
    assert_eq!(Provenance::topk(1, &[0.5, 0.25]).unwrap().sets.event(Event(9)), semiring.zero());
}

/// `addmult` and the other types by the language's own interpreter, over random weights and cycles.
#[test]
fn types_of_the_language_are_the_instances() {
    let [x, y, z] = [0, 1, 2].map(Term::variable);
    let path = RelationId(1);
    let is = |relation, terms: &[Term]| Literal::Atom(Atom::factor(RelationId(relation), terms));
    let rules = [
        Rule::new(path, [x, y], [is(0, &[x, y])]),
        Rule::new(path, [x, z], [is(1, &[x, y]), is(0, &[y, z])]),
    ];
    for item in 0..40 {
        let mut random = Family::new("tensor-logic-weighted", "types", seeded::test_seed()).stream(item);
        let mut arcs: std::collections::BTreeMap<[u32; 2], f64> = Default::default();
        for _ in 0..1 + random.below(7) {
            arcs.insert([0, 1].map(|_| random.below(4) as u32), (1 + random.below(6)) as f64 / 16.0);
        }
        let mut text = String::new();
        arcs.iter().for_each(|([from, to], weight)| text += &format!("E({from}, {to}) = {weight}\n"));
        let types = [
            ("addmult", None),
            ("tropical", Some(Ring::MIN_PLUS)),
            ("maxtimes", Some(Ring::MAX_TIMES)),
            ("maxmin", Some(Ring::MAX_MIN)),
        ];
        for (name, ring) in types {
            let text = format!(
                "{text}P(x, y) : {name}\nP(x, y) <- E(x, y)\nP(x, z) <- P(x, y), E(y, z)\nP(x, y)?\n"
            );
            let program =
                analyse(&text, &mut NoFiles, &UserFunctions::default(), &Options::default()).unwrap().program;
            let at = program.tensors.iter().position(|tensor| tensor.name == "P").unwrap();
            let parameters = Parameters::new();
            let budget = Budget { tuples: 1 << 20, bytes: 1 << 30 };
            let request = Request { program: &program, parameters: &parameters, budget };
            let value = Reference::default().values(&request, &[TensorId(at as u32)]).unwrap().remove(0);
            let crate::engine::Value::Tuples(expected) = value else { panic!("a relation") };
            let mut database = Database::new(Constants::integers(0, 9));
            let arc = database.declare("arc", 2, Ring::REAL);
            database.declare("path", 2, Ring::REAL);
            for (tuple, weight) in &arcs {
                database.insert(arc, tuple, &[Value::real(*weight)]).unwrap();
            }
            let found: Vec<f64> = match ring {
                None => {
                    let add = AddMult::default();
                    let found = evaluate_tagged(&mut database, &rules, &add, &Most::default()).unwrap();
                    found.tuples(path).map(|(_, tag)| *tag).collect()
                }
                Some(ring) => {
                    let found = evaluate_tagged(&mut database, &rules, &ring, &Most::default()).unwrap();
                    found.tuples(path).map(|(_, tag)| tag.as_real()).collect()
                }
            };
            assert_eq!(found.len(), expected.values.len(), "{text}");
            for (found, expected) in found.iter().zip(&expected.values) {
                assert!((found - expected).abs() < 1e-8, "{name}: {found} {expected}\n{text}");
            }
        }
    }
}
