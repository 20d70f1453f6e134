//! Random ground programs against the sum over all worlds.

use proof_circuits::{Atom, Event, Failure, Limits, Literal, Proofs};
use seeded::{Family, Stream};

/// A program as the test sees it: rules as lists, choices with their events.
#[derive(Clone)]
pub(crate) struct Drawn {
    pub(crate) proofs: Proofs,
    pub(crate) choices: Vec<Vec<u32>>,
    pub(crate) strata: Vec<u32>,
    pub(crate) rules: Vec<(u32, Vec<Literal>)>,
    pub(crate) weights: Vec<f64>,
    /// Events that happen in every world that counts as possible.
    pub(crate) certain: Vec<u32>,
}

fn draw(stream: &mut Stream) -> Drawn {
    let mut proofs = Proofs::default();
    let mut choices = Vec::new();
    let mut weights = Vec::new();
    for _ in 0..1 + stream.below(5) {
        let alternatives = if stream.below(3) == 0 { 1 + stream.below(5) as u32 } else { 1 };
        let first = proofs.choice(alternatives).0;
        choices.push((first..first + alternatives).collect());
        // Often at an end, where a sum of weights leaves nothing.
        let raw: Vec<f64> = (0..alternatives).map(|_| stream.below(5) as f64 / 4.0).collect();
        let most = raw.iter().sum::<f64>().max(1.0);
        weights.extend(raw.iter().map(|weight| weight / most));
    }
    let certain: Vec<u32> = (0..weights.len() as u32).filter(|at| weights[*at as usize] == 1.0).collect();
    certain.iter().for_each(|event| proofs.certain(Event(*event)));
    let mut strata: Vec<u32> = (0..1 + stream.below(6)).map(|_| stream.below(3) as u32).collect();
    if stream.below(4) > 0 {
        strata.sort_unstable();
    }
    let atoms: Vec<Atom> = strata.iter().map(|stratum| proofs.atom(*stratum)).collect();
    let events = weights.len() as u64;
    let mut rules = Vec::new();
    for _ in 0..stream.below(12) {
        let head = stream.below(atoms.len() as u64) as u32;
        let mut body = Vec::new();
        for _ in 0..stream.below(4) {
            let other = Atom(stream.below(atoms.len() as u64) as u32);
            let lower = strata[other.0 as usize] < strata[head as usize];
            let event = Event(stream.below(events) as u32);
            body.push(match stream.below(5) {
                0 => Literal::IsNot(event),
                1 | 2 => Literal::Is(event),
                3 if lower => Literal::FollowsNot(other),
                _ if strata[other.0 as usize] <= strata[head as usize] => Literal::Follows(other),
                _ => Literal::Is(event),
            });
        }
        proofs.rule(Atom(head), &body);
        rules.push((head, body));
    }
    Drawn { proofs, choices, strata, rules, weights, certain }
}

/// What follows in a world, stratum by stratum.
pub(crate) fn follows(drawn: &Drawn, happens: &[bool]) -> Vec<bool> {
    let mut follows = vec![false; drawn.strata.len()];
    for stratum in 0..3 {
        loop {
            let before = follows.clone();
            for (head, body) in drawn.rules.iter().filter(|(head, _)| drawn.strata[*head as usize] == stratum)
            {
                let holds = |literal: &Literal| match literal {
                    Literal::Is(event) => happens[event.0 as usize],
                    Literal::IsNot(event) => !happens[event.0 as usize],
                    Literal::Follows(atom) => follows[atom.0 as usize],
                    Literal::FollowsNot(atom) => !follows[atom.0 as usize],
                };
                if body.iter().all(holds) {
                    follows[*head as usize] = true;
                }
            }
            if before == follows {
                break;
            }
        }
    }
    follows
}

/// The probability of every atom, and whether it follows in some world.
fn worlds(drawn: &Drawn, weights: &[f64]) -> Vec<(f64, bool)> {
    let mut found = vec![(0.0, false); drawn.strata.len()];
    let mut at = vec![0; drawn.choices.len()];
    loop {
        let mut happens = vec![false; weights.len()];
        let mut probability = 1.0;
        for (events, which) in drawn.choices.iter().zip(&at) {
            match events.get(*which) {
                Some(event) => {
                    happens[*event as usize] = true;
                    probability *= weights[*event as usize];
                }
                None => probability *= 1.0 - events.iter().map(|event| weights[*event as usize]).sum::<f64>(),
            }
        }
        let possible = drawn.certain.iter().all(|event| happens[*event as usize]);
        for (entry, follows) in found.iter_mut().zip(follows(drawn, &happens)) {
            if follows {
                *entry = (entry.0 + probability, entry.1 || possible);
            }
        }
        let Some(next) = (0..at.len()).find(|place| at[*place] < drawn.choices[*place].len()) else {
            return found;
        };
        at[next] += 1;
        at[..next].fill(0);
    }
}

pub(crate) fn programs(of: &str, count: u64, mut check: impl FnMut(u64, &Drawn)) {
    let family = Family::new("proof-circuits/tests", of, seeded::test_seed());
    (0..count).for_each(|item| check(item, &draw(&mut family.stream(item))));
}

#[test]
fn probabilities_are_sums_over_worlds() {
    let (mut between, mut impossible) = (0, 0);
    programs("worlds", 4000, |item, drawn| {
        let goals: Vec<Atom> = (0..drawn.strata.len() as u32).map(Atom).collect();
        let circuits = drawn.proofs.compile(&goals, &Limits::default()).expect("it is small");
        let found = circuits.probabilities(&drawn.weights).expect("they are probabilities");
        let expected = worlds(drawn, &drawn.weights);
        for ((found, possible), (value, follows)) in found.iter().zip(circuits.possible()).zip(expected) {
            assert!((found - value).abs() < 1e-12, "program {item}: {found} and {value}");
            assert_eq!(possible, follows, "program {item}");
            between += u32::from(value > 0.0 && value < 1.0);
            impossible += u32::from(!follows);
        }
    });
    assert!(between > 1000 && impossible > 1000, "{between} {impossible}");
}

/// The same of programs that affirm only, where no diagrams are needed.
#[test]
fn what_is_possible_follows_in_some_world() {
    let mut impossible = 0;
    programs("possible", 4000, |item, drawn| {
        let mut drawn = Drawn { proofs: Proofs::default(), ..drawn.clone() };
        let affirmed = |literal: &Literal| match literal {
            Literal::IsNot(event) if item % 2 == 0 => Literal::Is(*event),
            Literal::FollowsNot(atom) if item % 2 == 0 => Literal::Follows(*atom),
            other => *other,
        };
        if item % 2 == 0 {
            drawn.choices = (0..drawn.weights.len() as u32).map(|event| vec![event]).collect();
        }
        for events in &drawn.choices {
            drawn.proofs.choice(events.len() as u32);
        }
        drawn.certain.iter().for_each(|event| drawn.proofs.certain(Event(*event)));
        drawn.strata.iter().for_each(|stratum| _ = drawn.proofs.atom(*stratum));
        for (head, body) in &mut drawn.rules {
            *body = body.iter().map(affirmed).collect();
            drawn.proofs.rule(Atom(*head), body);
        }
        let goals: Vec<Atom> = (0..drawn.strata.len() as u32 + 1).map(Atom).collect();
        let mut expected: Vec<bool> =
            worlds(&drawn, &drawn.weights).iter().map(|(_, there)| *there).collect();
        expected.push(false);
        assert_eq!(drawn.proofs.possible(&goals, &Limits::default()), Ok(expected.clone()), "program {item}");
        impossible += expected.iter().filter(|there| !**there).count();
    });
    assert!(impossible > 1000, "{impossible}");
}

#[test]
fn slopes_are_differences() {
    programs("slopes", 1500, |item, drawn| {
        let goals: Vec<Atom> = (0..drawn.strata.len() as u32).map(Atom).collect();
        let circuits = drawn.proofs.compile(&goals, &Limits::default()).expect("it is small");
        let adjoints: Vec<f64> = (0..goals.len()).map(|at| at as f64 - 1.5).collect();
        let slopes = circuits.slopes(&drawn.weights, &adjoints).expect("they are probabilities");
        let loss = |weights: &[f64]| -> f64 {
            worlds(drawn, weights).iter().zip(&adjoints).map(|((value, _), adjoint)| value * adjoint).sum()
        };
        for (event, slope) in slopes.iter().enumerate() {
            // Probabilities are linear in every weight: the difference is exact, and may leave what is possible.
            let mut moved = drawn.weights.clone();
            moved[event] += 0.5;
            let difference = (loss(&moved) - loss(&drawn.weights)) / 0.5;
            assert!(
                (slope - difference).abs() < 1e-11,
                "program {item}, event {event}: {slope}, {difference}"
            );
        }
    });
}

#[test]
fn enough_proofs_lose_nothing() {
    programs("top", 2000, |item, drawn| {
        let goals: Vec<Atom> = (0..drawn.strata.len() as u32).map(Atom).collect();
        let kept =
            drawn.proofs.top(&goals, &|_| 10_000, &drawn.weights, &Limits::default()).expect("it is small");
        let found = kept.probabilities(&drawn.weights).expect("they are probabilities");
        for (found, (value, _)) in found.iter().zip(worlds(drawn, &drawn.weights)) {
            assert!((found - value).abs() < 1e-12, "program {item}: {found} and {value}");
        }
    });
}

/// Without negation of atoms, fewer proofs say at most what more say. Where nothing can contradict, the most probable proofs of
/// a body's parts fit together, so that one is kept of whatever is possible; else the one that is kept of a part may be the
/// one that another part rules out.
#[test]
fn fewer_proofs_say_less() {
    let mut alone = 0;
    programs("fewer", 2000, |item, drawn| {
        let denies = |literal: &Literal| matches!(literal, Literal::FollowsNot(_));
        if drawn.rules.iter().any(|(_, body)| body.iter().any(denies)) {
            return;
        }
        let contradicts = |literal: &Literal| matches!(literal, Literal::IsNot(_));
        let free = drawn.choices.iter().all(|events| events.len() == 1)
            && !drawn.rules.iter().any(|(_, body)| body.iter().any(contradicts));
        alone += u32::from(free);
        let goals: Vec<Atom> = (0..drawn.strata.len() as u32).map(Atom).collect();
        let exact = worlds(drawn, &drawn.weights);
        for k in [1, 2, 3] {
            let kept =
                drawn.proofs.top(&goals, &|_| k, &drawn.weights, &Limits::default()).expect("it is small");
            let found = kept.probabilities(&drawn.weights).expect("they are probabilities");
            for (found, (value, _)) in found.iter().zip(&exact) {
                assert!(*found <= value + 1e-12, "program {item}: {found} and {value}");
                assert!(*found > 0.0 || *value == 0.0 || !free, "program {item}: {value}");
            }
        }
    });
    assert!(alone > 100, "{alone}");
}

/// 64 samples of one shape are compiled once; what differs in structure is not taken for it.
#[test]
fn equal_shapes_share_a_diagram() {
    let mut proofs = Proofs::default();
    let mut goals = Vec::new();
    let mut weights = Vec::new();
    for sample in 0..64 {
        let first = proofs.choice(10);
        let second = proofs.choice(10);
        for digit in 0..20 {
            weights.push(f64::from((digit * 7 + sample) % 10) / 45.0);
        }
        for sum in 0..19 {
            let goal = proofs.atom(0);
            for a in 0..10 {
                if (0..10).contains(&(sum - a)) {
                    let events = [Event(first.0 + a as u32), Event(second.0 + (sum - a) as u32)];
                    proofs.rule(goal, &events.map(Literal::Is));
                }
            }
            goals.push(goal);
        }
    }
    let circuits = proofs.compile(&goals, &Limits::default()).expect("it is small");
    assert_eq!(circuits.shapes(), (1, 64));
    let found = circuits.probabilities(&weights).expect("they are probabilities");
    for (sample, sums) in found.chunks(19).enumerate() {
        let of = |event: usize| weights[sample * 20 + event];
        for (sum, value) in sums.iter().enumerate() {
            let pairs = (0..10usize).filter_map(|a| sum.checked_sub(a).filter(|b| *b < 10).map(|b| (a, b)));
            let expected: f64 = pairs.map(|(a, b)| of(a) * of(10 + b)).sum();
            assert!((value - expected).abs() < 1e-14);
        }
    }
}

/// A chain of 20,000 facts: nothing is gone through by recursion, and no pass is repeated for every link.
#[test]
fn long_chains() {
    let mut proofs = Proofs::default();
    let mut before: Option<Atom> = None;
    for _ in 0..20_000 {
        let fact = proofs.fact();
        let atom = proofs.atom(0);
        match before {
            Some(before) => proofs.rule(atom, &[Literal::Is(fact), Literal::Follows(before)]),
            None => proofs.rule(atom, &[Literal::Is(fact)]),
        }
        before = Some(atom);
    }
    let goal = before.expect("there are some");
    let weights = vec![0.9999; 20_000];
    let found = proofs.probability(goal, &weights).expect("it fits");
    assert!((found - 0.9999f64.powi(20_000)).abs() < 1e-12);
}

#[test]
fn refusals() {
    let mut proofs = Proofs::default();
    let first = proofs.choice(2);
    let atom = proofs.atom(0);
    proofs.rule(atom, &[Literal::Is(first)]);
    // A rule over what was not made is none.
    proofs.rule(atom, &[Literal::Is(Event(9))]);
    proofs.rule(atom, &[Literal::Follows(Atom(9))]);
    assert_eq!(proofs.rules(), 1);
    assert_eq!(proofs.probability(Atom(9), &[0.5, 0.5]), Ok(0.0));
    let wrong = Failure::NoProbability { event: Event(1), weight: 1.5 };
    assert_eq!(proofs.probability(atom, &[0.5, 1.5]), Err(wrong));
    let sum = Failure::NoDistribution { event: first, sum: 1.25 };
    assert_eq!(proofs.probability(atom, &[0.5, 0.75]), Err(sum));
    assert!(matches!(proofs.probability(atom, &[0.5]), Err(Failure::NoProbability { .. })));
    // What a head denies is known before it, and what it follows from not after it.
    for (own, of, literal) in [
        (0, 0, Literal::FollowsNot as fn(Atom) -> Literal),
        (1, 2, Literal::FollowsNot),
        (1, 2, Literal::Follows),
    ] {
        let mut proofs = Proofs::default();
        let fact = proofs.fact();
        let [head, other] = [own, of].map(|stratum| proofs.atom(stratum));
        proofs.rule(other, &[Literal::Is(fact)]);
        proofs.rule(head, &[literal(other)]);
        let wrong = Failure::NotStratified { head, stratum: own, of };
        assert_eq!(proofs.probability(head, &[0.5]), Err(wrong.clone()));
        assert_eq!(proofs.top(&[head], &|_| 1, &[0.5], &Limits::default()).err(), Some(wrong));
    }
    let stopped = Limits { stop: &|| true, ..Limits::default() };
    // Small diagrams are made before anybody is asked; the most probable proofs ask at once.
    assert_eq!(proofs.top(&[atom], &|_| 1, &[0.5, 0.5], &stopped).err(), Some(Failure::Stopped));
    // That some pair of 20 and 20 facts holds has more nodes than there are facts.
    let mut proofs = Proofs::default();
    let facts: Vec<Event> = (0..40).map(|_| proofs.fact()).collect();
    let goal = proofs.atom(0);
    for a in 0..20 {
        for b in 0..20 {
            if (a * 7 + b * 11) % 3 == 0 {
                proofs.rule(goal, &[Literal::Is(facts[a]), Literal::Is(facts[20 + b])]);
            }
        }
    }
    let limits = Limits { bytes: 4000, ..Limits::default() };
    assert!(matches!(proofs.compile(&[goal], &limits), Err(Failure::TooLarge { bytes: 4000 })));
}
