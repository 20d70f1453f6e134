//! Ways through graphs with arcs that fail: against enumeration, and against a walk over what the frontier knows.

use std::collections::BTreeMap;

use proof_circuits::{Atom, Event, Failure, Limits, Literal, Proofs};
use seeded::{Family, Stream};

/// The arcs of a grid, each way.
fn grid(rows: usize, columns: usize) -> Vec<(usize, usize)> {
    let mut arcs = Vec::new();
    for at in 0..rows * columns {
        if (at + 1) % columns > 0 {
            arcs.extend([(at, at + 1), (at + 1, at)]);
        }
        if at + columns < rows * columns {
            arcs.extend([(at, at + columns), (at + columns, at)]);
        }
    }
    arcs
}

/// Who is reached from the vertex 0, an atom each.
fn reached(vertices: usize, arcs: &[(usize, usize)]) -> (Proofs, Vec<Atom>) {
    let mut proofs = Proofs::default();
    let facts: Vec<Event> = arcs.iter().map(|_| proofs.fact()).collect();
    let atoms: Vec<Atom> = (0..vertices).map(|_| proofs.atom(0)).collect();
    for (at, (fact, (from, to))) in facts.iter().zip(arcs).enumerate() {
        // Some arcs are atoms of their own.
        let mut there = Literal::Is(*fact);
        if at % 3 == 0 {
            let arc = proofs.atom(0);
            proofs.rule(arc, &[there]);
            there = Literal::Follows(arc);
        }
        if *from == 0 {
            proofs.rule(atoms[*to], &[there]);
        }
        proofs.rule(atoms[*to], &[Literal::Follows(atoms[*from]), there]);
    }
    (proofs, atoms)
}

fn weights(count: usize, stream: &mut Stream) -> Vec<f64> {
    (0..count).map(|_| stream.below(101) as f64 / 100.0).collect()
}

fn stream(of: &str) -> Stream {
    Family::new("proof-circuits/tests", of, seeded::test_seed()).stream(0)
}

/// The probability that a way leads from one vertex to another: arcs are gone through one after the other, and of each
/// state of those behind only who reaches whom is kept, among the vertices that have arcs to come and the two ends.
fn by_frontier(vertices: usize, arcs: &[(usize, usize)], weights: &[f64], from: usize, to: usize) -> f64 {
    let mut order: Vec<usize> = (0..arcs.len()).collect();
    order.sort_by_key(|arc| (arcs[*arc].0.max(arcs[*arc].1), arcs[*arc].0.min(arcs[*arc].1)));
    let mut last = vec![0; vertices];
    for (step, arc) in order.iter().enumerate() {
        (last[arcs[*arc].0], last[arcs[*arc].1]) = (step, step);
    }
    let start: Vec<u32> = (0..vertices).map(|vertex| 1 << vertex).collect();
    let mut sum = 0.0;
    let mut states: BTreeMap<Vec<u32>, f64> = BTreeMap::from([(start, 1.0)]);
    for (step, arc) in order.iter().enumerate() {
        let (tail, head) = arcs[*arc];
        let mut next: BTreeMap<Vec<u32>, f64> = BTreeMap::new();
        for (state, probability) in states {
            for (holds, weight) in [(true, weights[*arc]), (false, 1.0 - weights[*arc])] {
                let mut state = state.clone();
                if holds {
                    let beyond = state[head] | 1 << head;
                    state.iter_mut().filter(|row| **row >> tail & 1 == 1).for_each(|row| *row |= beyond);
                }
                for vertex in
                    (0..vertices).filter(|vertex| last[*vertex] == step && ![from, to].contains(vertex))
                {
                    state[vertex] = 0;
                    state.iter_mut().for_each(|row| *row &= !(1 << vertex));
                }
                // Whom the start reaches is what matters of those it reaches; and of who reaches the end, that alone.
                if state[from] >> to & 1 == 1 {
                    sum += probability * weight;
                    continue;
                }
                for vertex in (0..vertices).filter(|vertex| *vertex != from) {
                    if state[from] >> vertex & 1 == 1 {
                        state[vertex] = 0;
                    } else {
                        state[vertex] &= !state[from];
                    }
                    if vertex != to && state[vertex] >> to & 1 == 1 {
                        state[vertex] = 1 << vertex | 1 << to;
                    }
                }
                *next.entry(state).or_insert(0.0) += probability * weight;
            }
        }
        states = next;
    }
    sum
}

/// The same by all worlds.
fn by_worlds(vertices: usize, arcs: &[(usize, usize)], weights: &[f64]) -> Vec<f64> {
    let mut found = vec![0.0; vertices];
    for world in 0..1_u32 << arcs.len() {
        let holds = |arc: usize| world >> arc & 1 == 1;
        let mut probability = 1.0;
        for (arc, weight) in weights.iter().enumerate() {
            probability *= if holds(arc) { *weight } else { 1.0 - weight };
        }
        // By one arc at least: the start itself is reached by a way back.
        let mut seen = vec![false; vertices];
        let mut open = vec![0];
        while let Some(vertex) = open.pop() {
            for (arc, (from, to)) in arcs.iter().enumerate() {
                if *from == vertex && holds(arc) && !std::mem::replace(&mut seen[*to], true) {
                    open.push(*to);
                }
            }
        }
        found.iter_mut().zip(seen).filter(|(_, seen)| *seen).for_each(|(sum, _)| *sum += probability);
    }
    found
}

#[test]
fn small_graphs_are_sums_over_worlds() {
    let mut stream = stream("graphs");
    for case in 0..60 {
        let vertices = 3 + stream.below(4) as usize;
        let mut arcs: BTreeMap<(usize, usize), ()> = BTreeMap::new();
        for _ in 0..4 + stream.below(9) {
            let mut end = || stream.below(vertices as u64) as usize;
            arcs.insert((end(), end()), ());
        }
        let arcs: Vec<(usize, usize)> = arcs.into_keys().collect();
        let weights = weights(arcs.len(), &mut stream);
        let (proofs, atoms) = reached(vertices, &arcs);
        let expected = by_worlds(vertices, &arcs, &weights);
        // All at once, and each alone: then it is eliminated last.
        let circuits = proofs.compile(&atoms, &Limits::default()).expect("it is small");
        let found = circuits.probabilities(&weights).expect("they are probabilities");
        for (vertex, atom) in atoms.iter().enumerate() {
            let alone = proofs.probability(*atom, &weights).expect("it is small");
            assert!((alone - expected[vertex]).abs() < 1e-12, "graph {case}: {alone} {}", expected[vertex]);
            assert!((found[vertex] - alone).abs() < 1e-12, "graph {case}");
        }
        // The walk over the frontier, which is the judge of larger graphs, is right too.
        let walked = by_frontier(vertices, &arcs, &weights, 0, vertices - 1);
        assert!((walked - expected[vertices - 1]).abs() < 1e-12, "graph {case}");
    }
}

#[test]
fn grids_of_small_width() {
    let mut stream = stream("grids");
    for (rows, columns) in [(12, 2), (6, 3), (4, 4), (5, 5)] {
        let (vertices, arcs) = (rows * columns, grid(rows, columns));
        let (proofs, atoms) = reached(vertices, &arcs);
        let circuits = proofs.compile(&atoms[vertices - 1..], &Limits::default()).expect("it is narrow");
        for weights in [vec![0.9; arcs.len()], weights(arcs.len(), &mut stream)] {
            let found = circuits.probabilities(&weights).expect("they are probabilities")[0];
            let expected = by_frontier(vertices, &arcs, &weights, 0, vertices - 1);
            assert!((found - expected).abs() < 1e-12, "{rows} x {columns}: {found} {expected}");
        }
    }
}

/// The walk over the frontier takes minutes here: once it found this number, and drawn worlds are near it always.
#[test]
fn five_by_five() {
    let (vertices, arcs) = (25, grid(5, 5));
    let (proofs, atoms) = reached(vertices, &arcs);
    let circuits = proofs.compile(&atoms[24..], &Limits::default()).expect("it is narrow");
    let of = |weights: &[f64]| circuits.probabilities(weights).expect("they are probabilities")[0];
    assert!((of(&vec![0.9; arcs.len()]) - 0.975_556_589_505_369_2).abs() < 1e-12);
    let mut stream = stream("drawn");
    for _ in 0..4 {
        let weights: Vec<f64> = (0..arcs.len()).map(|_| 0.3 + stream.below(70) as f64 / 100.0).collect();
        let (found, drawn) = (of(&weights), 20_000);
        let met = (0..drawn).filter(|_| is_met(vertices, &arcs, &weights, &mut stream)).count();
        let (share, error) =
            (met as f64 / f64::from(drawn), (found * (1.0 - found) / f64::from(drawn)).sqrt());
        assert!((share - found).abs() < 5.0 * error, "{share} {found} {error}");
    }
}

/// Whether a way leads from the first vertex to the last one in a world that is drawn.
fn is_met(vertices: usize, arcs: &[(usize, usize)], weights: &[f64], stream: &mut Stream) -> bool {
    let drawn = |weight: &f64| (stream.below(1 << 30) as f64) < weight * f64::from(1 << 30);
    let holds: Vec<bool> = weights.iter().map(drawn).collect();
    let mut seen = vec![false; vertices];
    let mut open = vec![0];
    while let Some(vertex) = open.pop() {
        for ((from, to), _) in arcs.iter().zip(&holds).filter(|(_, holds)| **holds) {
            if *from == vertex && !std::mem::replace(&mut seen[*to], true) {
                open.push(*to);
            }
        }
    }
    seen[vertices - 1]
}

/// From all vertices to all, by steps at the end and by halves: the second is no cycle of sums, and finds the same.
#[test]
fn sums_and_products_find_the_same() {
    let (vertices, arcs) = (6, grid(2, 3));
    let mut stream = stream("halves");
    let weights = weights(arcs.len(), &mut stream);
    let found: Vec<Vec<f64>> = [false, true]
        .iter()
        .map(|halves| {
            let mut proofs = Proofs::default();
            let facts: Vec<Event> = arcs.iter().map(|_| proofs.fact()).collect();
            let atoms: Vec<Atom> = (0..vertices * vertices).map(|_| proofs.atom(0)).collect();
            let path = |from: usize, to: usize| atoms[from * vertices + to];
            for (fact, (from, to)) in facts.iter().zip(&arcs) {
                proofs.rule(path(*from, *to), &[Literal::Is(*fact)]);
                for start in (0..vertices).filter(|_| !halves) {
                    proofs
                        .rule(path(start, *to), &[Literal::Follows(path(start, *from)), Literal::Is(*fact)]);
                }
            }
            for at in (0..vertices.pow(3)).filter(|_| *halves) {
                let (from, over, to) = (at / vertices / vertices, at / vertices % vertices, at % vertices);
                let body = [Literal::Follows(path(from, over)), Literal::Follows(path(over, to))];
                proofs.rule(path(from, to), &body);
            }
            let circuits = proofs.compile(&atoms, &Limits::default()).expect("it is small");
            circuits.probabilities(&weights).expect("they are probabilities")
        })
        .collect();
    for (steps, halves) in found[0].iter().zip(&found[1]) {
        assert!((steps - halves).abs() < 1e-12, "{steps} {halves}");
    }
}

#[test]
fn limits_hold_on_cycles() {
    let (proofs, atoms) = reached(36, &grid(6, 6));
    let limits = Limits { stop: &|| true, ..Limits::default() };
    assert_eq!(proofs.compile(&atoms[35..], &limits).err(), Some(Failure::Stopped));
    let limits = Limits { bytes: 300_000, ..Limits::default() };
    assert_eq!(proofs.compile(&atoms[35..], &limits).err(), Some(Failure::TooLarge { bytes: 300_000 }));
    // A ring is as long as it likes.
    let vertices = 40;
    let arcs: Vec<(usize, usize)> = (0..vertices).map(|at| (at, (at + 1) % vertices)).collect();
    let (proofs, atoms) = reached(vertices, &arcs);
    let found = proofs.probability(atoms[vertices - 1], &vec![0.9; arcs.len()]).expect("it is small");
    assert!((found - 0.9_f64.powi(vertices as i32 - 1)).abs() < 1e-12);
}
