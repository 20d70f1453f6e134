//! What is large, and was too large for one order, one diagram, a table of joins that forgets, or a branch for every
//! alternative: against products and walks that know how each of these comes about.

use proof_circuits::{Atom, Event, Failure, Limits, Literal, Proofs};
use seeded::{Family, Stream};

fn stream(of: &str) -> Stream {
    Family::new("proof-circuits/tests", of, seeded::test_seed()).stream(0)
}

fn weights(count: usize, stream: &mut Stream) -> Vec<f64> {
    (0..count).map(|_| (1 + stream.below(99)) as f64 / 100.0).collect()
}

/// Effects of independent causes, each by a link that may fail: the causes that each effect has.
fn noisy(causes: usize, of: &[Vec<usize>]) -> (Proofs, Vec<Atom>, Vec<Vec<Event>>) {
    let mut proofs = Proofs::default();
    let facts: Vec<Event> = (0..causes).map(|_| proofs.fact()).collect();
    let mut links = Vec::new();
    let goals = of
        .iter()
        .map(|causes| {
            let goal = proofs.atom(0);
            let own: Vec<Event> = causes.iter().map(|_| proofs.fact()).collect();
            for (cause, link) in causes.iter().zip(&own) {
                proofs.rule(goal, &[Literal::Is(facts[*cause]), Literal::Is(*link)]);
            }
            links.push(own);
            goal
        })
        .collect();
    (proofs, goals, links)
}

/// One diagram of all effects says of each cause which effects have it; effects alone are products.
#[test]
fn effects_of_the_same_causes() {
    let mut stream = stream("effects");
    let (causes, effects) = (60, 17);
    let of: Vec<Vec<usize>> =
        (0..effects).map(|_| (0..causes).filter(|_| stream.below(3) == 0).collect()).collect();
    let (mut proofs, mut goals, links) = noisy(causes, &of);
    // What is asked twice, what is certain, what never follows, and what was not made.
    let (sure, never) = (proofs.atom(0), proofs.atom(0));
    proofs.rule(sure, &[]);
    proofs.rule(sure, &[Literal::Follows(goals[0])]);
    goals.extend([goals[3], sure, never, Atom(1000)]);
    let weights = weights(proofs.events(), &mut stream);
    let circuits = proofs.compile(&goals, &Limits::default()).expect("each alone is small");
    let mut found = circuits.probabilities(&weights).expect("they are probabilities");
    let others = found.split_off(effects);
    assert_eq!(others, [found[3], 1.0, 0.0, 0.0]);
    let possible = circuits.possible();
    assert!(possible[..effects + 2].iter().all(|possible| *possible));
    assert_eq!(possible[effects + 2..], [false, false]);
    let mut adjoints: Vec<f64> = (0..effects).map(|at| at as f64 - 8.5).collect();
    adjoints.extend([0.0, 3.0, 2.0, 1.0]);
    let slopes = circuits.slopes(&weights, &adjoints).expect("they are probabilities");
    let mut expected = vec![0.0; weights.len()];
    for (((goal, causes), links), adjoint) in found.iter().zip(&of).zip(&links).zip(&adjoints) {
        let ways = || causes.iter().zip(links).map(|(cause, link)| (*cause, link.0 as usize));
        let none: f64 = ways().map(|(cause, link)| 1.0 - weights[cause] * weights[link]).product();
        assert!((goal - (1.0 - none)).abs() < 1e-12, "{goal} {none}");
        for (cause, link) in ways() {
            let others = none / (1.0 - weights[cause] * weights[link]);
            expected[cause] += adjoint * weights[link] * others;
            expected[link] += adjoint * weights[cause] * others;
        }
    }
    assert!(slopes.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-11));
}

/// Effects that have few causes each and are asked together with what needs all: no goal's diagram is another's.
#[test]
fn effects_and_what_needs_them() {
    let mut stream = stream("needs");
    for causes in [4, 24] {
        let of: Vec<Vec<usize>> = (0..causes).map(|at| vec![at, (at + 1) % causes]).collect();
        let (mut proofs, mut goals, _) = noisy(causes, &of);
        let all = proofs.atom(0);
        proofs.rule(all, &goals.iter().map(|goal| Literal::Follows(*goal)).collect::<Vec<_>>());
        goals.push(all);
        let weights = weights(proofs.events(), &mut stream);
        let together = proofs.compile(&goals, &Limits::default()).expect("it is narrow");
        let found = together.probabilities(&weights).expect("they are probabilities");
        for (goal, found) in goals.iter().zip(found) {
            let alone = proofs.probability(*goal, &weights).expect("it is narrow");
            assert!((alone - found).abs() < 1e-12, "{alone} {found}");
        }
    }
}

/// The probability of a way right and down through a grid, by the sets of vertices that are met on the frontier.
fn by_frontier(size: usize, right: &[f64], down: &[f64]) -> f64 {
    let mut states = vec![0.0; 1 << size];
    // Bit c is the last vertex of column c that was gone through.
    for at in 0..size * size {
        let (row, column) = (at / size, at % size);
        let mut next = vec![0.0; 1 << size];
        if at == 0 {
            next[1] = 1.0;
        }
        for (state, probability) in states.iter().enumerate().filter(|(_, probability)| **probability > 0.0) {
            let mut missed = 1.0;
            if column > 0 && state >> (column - 1) & 1 == 1 {
                missed *= 1.0 - right[at - 1];
            }
            if row > 0 && state >> column & 1 == 1 {
                missed *= 1.0 - down[at - size];
            }
            next[state | 1 << column] += probability * (1.0 - missed);
            next[state & !(1 << column)] += probability * missed;
        }
        states = next;
    }
    states.iter().enumerate().filter(|(state, _)| state >> (size - 1) & 1 == 1).map(|(_, at)| at).sum()
}

/// Whether the last vertex of a grid is reached: the arcs to the right are its first facts, those down the others.
fn right_and_down(size: usize) -> (Proofs, Atom) {
    let mut proofs = Proofs::default();
    let right: Vec<Event> = (0..size * size).map(|_| proofs.fact()).collect();
    let down: Vec<Event> = (0..size * size).map(|_| proofs.fact()).collect();
    let atoms: Vec<Atom> = (0..size * size).map(|_| proofs.atom(0)).collect();
    for at in 1..size * size {
        let left = (at % size > 0).then(|| (at - 1, right[at - 1]));
        let above = at.checked_sub(size).map(|above| (above, down[above]));
        for (before, arc) in left.into_iter().chain(above) {
            let mut body = vec![Literal::Is(arc)];
            body.extend((before > 0).then_some(Literal::Follows(atoms[before])));
            proofs.rule(atoms[at], &body);
        }
    }
    (proofs, atoms[size * size - 1])
}

/// Few functions and many joins: what is known of joins must not be forgotten.
#[test]
fn ways_right_and_down() {
    let mut stream = stream("right and down");
    for size in [2, 3, 6, 10] {
        let (proofs, goal) = right_and_down(size);
        let weights = weights(proofs.events(), &mut stream);
        let found = proofs.probability(goal, &weights).expect("it is narrow");
        let expected = by_frontier(size, &weights[..size * size], &weights[size * size..]);
        assert!((found - expected).abs() < 1e-12, "{size}: {found} {expected}");
    }
}

/// Of ten thousand alternatives: that one is the case, that none is, that it is an even one, and which of the first.
#[test]
fn many_alternatives() {
    let count = 10_000_u32;
    let mut stream = stream("alternatives");
    let mut proofs = Proofs::default();
    let other = proofs.fact();
    let first = proofs.choice(count).0;
    let goals: Vec<Atom> = (0..6).map(|at| proofs.atom(u32::from(at > 2))).collect();
    let [any, even, none, odd, first_or_none, with] = goals[..] else { return };
    for at in 0..count {
        proofs.rule(any, &[Literal::Is(Event(first + at))]);
        if at % 2 == 0 {
            proofs.rule(even, &[Literal::Is(Event(first + at))]);
        }
    }
    let denied: Vec<Literal> = (0..count).map(|at| Literal::IsNot(Event(first + at))).collect();
    proofs.rule(none, &denied);
    proofs.rule(odd, &[Literal::Follows(any), Literal::FollowsNot(even)]);
    proofs.rule(first_or_none, &denied[1..]);
    proofs.rule(with, &[Literal::Follows(odd), Literal::Is(other)]);
    let raw: Vec<f64> = (0..count).map(|_| stream.below(1000) as f64).collect();
    let sum: f64 = raw.iter().sum::<f64>() * 1.25;
    let mut weights = vec![0.5];
    weights.extend(raw.iter().map(|weight| weight / sum));
    let circuits = proofs.compile(&goals, &Limits { bytes: 16 << 20, ..Limits::default() });
    let circuits = circuits.expect("it is as long as what it says");
    let found = circuits.probabilities(&weights).expect("they are probabilities");
    let evens: f64 = weights[1..].iter().step_by(2).sum();
    let expected = [0.8, evens, 0.2, 0.8 - evens, 0.2 + weights[1], (0.8 - evens) / 2.0];
    assert!(found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-11), "{found:?} {expected:?}");
    assert!(circuits.possible().iter().all(|possible| *possible));
    let slopes = circuits.slopes(&weights, &[0.0, 0.0, 3.0, 1.0, 0.0, 0.0]).expect("they are probabilities");
    let near = |at: u32, slope: f64| (slopes[(first + at) as usize] - slope).abs() < 1e-11;
    assert!((0..count).all(|at| near(at, if at % 2 == 0 { -3.0 } else { -2.0 })));
}

/// What some pair of facts has, by pairs that lie across: no order is good, and the bytes that are allowed end it.
#[test]
fn bytes_have_a_limit() {
    let mut stream = stream("bytes");
    let mut proofs = Proofs::default();
    let facts: Vec<Event> = (0..120).map(|_| proofs.fact()).collect();
    let goals: Vec<Atom> = (0..3).map(|_| proofs.atom(0)).collect();
    for goal in &goals {
        for (a, b) in (0..60).flat_map(|a| (60..120).map(move |b| (a, b))) {
            if stream.below(4) == 0 {
                proofs.rule(*goal, &[Literal::Is(facts[a]), Literal::Is(facts[b])]);
            }
        }
    }
    for bytes in [0, 1000, 1 << 16, 1 << 20, 1 << 24] {
        let limits = Limits { bytes, ..Limits::default() };
        for goals in [&goals[..], &goals[..1]] {
            assert_eq!(proofs.compile(goals, &limits).err(), Some(Failure::TooLarge { bytes }));
        }
    }
}

/// Joins that do not fit into the bytes are not done again for ever.
#[test]
fn what_is_forgotten_has_a_limit() {
    let (proofs, goal) = right_and_down(14);
    let limits = Limits { bytes: 1 << 19, ..Limits::default() };
    assert_eq!(proofs.compile(&[goal], &limits).err(), Some(Failure::TooLarge { bytes: 1 << 19 }));
}

/// Somebody is asked whether to end though few nodes are made.
#[test]
fn joins_ask_whether_to_end() {
    let (proofs, goal) = right_and_down(10);
    let asked = std::cell::Cell::new(0);
    let stop = || {
        asked.set(asked.get() + 1);
        asked.get() > 20
    };
    let limits = Limits { stop: &stop, ..Limits::default() };
    assert_eq!(proofs.compile(&[goal], &limits).err(), Some(Failure::Stopped));
    assert_eq!(asked.get(), 21);
}
