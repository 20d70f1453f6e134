//! The most probable proofs against all that events can say, and their derivations rule by rule.

use std::cmp::Ordering;

use proof_circuits::{Atom, Event, Limits, Literal, Proof, Proofs};

use crate::worlds::{Drawn, follows, programs};

/// What may be said of one choice: nothing, which alternative is the case, or some that are not.
fn said(drawn: &Drawn, events: &[u32]) -> Vec<Vec<Literal>> {
    let is = |event: u32| vec![Literal::Is(Event(event))];
    // What is certain rules out all else, and says so already.
    if let Some(certain) = events.iter().find(|event| drawn.certain.contains(event)) {
        return vec![Vec::new(), is(*certain)];
    }
    let mut all: Vec<Vec<Literal>> = events.iter().map(|event| is(*event)).collect();
    for subset in 0..1u32 << events.len() {
        let out = events.iter().enumerate().filter(|(at, _)| subset >> at & 1 == 1);
        all.push(out.map(|(_, event)| Literal::IsNot(Event(*event))).collect());
    }
    all
}

/// Whether a set of literals says this of an event.
fn says(drawn: &Drawn, set: &[Literal], literal: Literal) -> bool {
    let Literal::IsNot(event) = literal else { return set.contains(&literal) };
    let choice = drawn.choices.iter().find(|choice| choice.contains(&event.0)).expect("it has one");
    let other = |other: &u32| *other != event.0 && set.contains(&Literal::Is(Event(*other)));
    set.contains(&literal) || choice.iter().any(other)
}

/// The same, or something certain says it.
fn holds(drawn: &Drawn, set: &[Literal], literal: Literal) -> bool {
    let Literal::IsNot(event) = literal else { return says(drawn, set, literal) };
    let choice = drawn.choices.iter().find(|choice| choice.contains(&event.0)).expect("it has one");
    let certain = |other: &u32| *other != event.0 && drawn.certain.contains(other);
    says(drawn, set, literal) || choice.iter().any(certain)
}

/// The possible worlds: what happens, and what follows.
fn possible(drawn: &Drawn) -> Vec<(Vec<bool>, Vec<bool>)> {
    let mut found = Vec::new();
    let mut at = vec![0; drawn.choices.len()];
    loop {
        let mut happens = vec![false; drawn.weights.len()];
        let case = drawn.choices.iter().zip(&at).filter_map(|(events, which)| events.get(*which));
        case.for_each(|event| happens[*event as usize] = true);
        if drawn.certain.iter().all(|event| happens[*event as usize]) {
            let follows = follows(drawn, &happens);
            found.push((happens, follows));
        }
        let Some(next) = (0..at.len()).find(|place| at[*place] < drawn.choices[*place].len()) else {
            return found;
        };
        at[next] += 1;
        at[..next].fill(0);
    }
}

/// Whether an atom follows in no possible world in which these literals hold.
fn fails(worlds: &[(Vec<bool>, Vec<bool>)], set: &[Literal], atom: Atom) -> bool {
    let agrees = |happens: &[bool]| {
        set.iter().all(|literal| match literal {
            Literal::Is(event) => happens[event.0 as usize],
            Literal::IsNot(event) => !happens[event.0 as usize],
            _ => false,
        })
    };
    worlds.iter().all(|(happens, follows)| !agrees(happens) || !follows[atom.0 as usize])
}

/// The atoms that have a derivation from these literals.
fn derived(drawn: &Drawn, worlds: &[(Vec<bool>, Vec<bool>)], set: &[Literal]) -> Vec<bool> {
    let mut derived = vec![false; drawn.strata.len()];
    let mut denied: Vec<Option<bool>> = vec![None; drawn.strata.len()];
    loop {
        let mut rests = true;
        for (head, body) in &drawn.rules {
            let all = body.iter().all(|literal| match literal {
                Literal::Follows(atom) => derived[atom.0 as usize],
                Literal::FollowsNot(atom) => {
                    *denied[atom.0 as usize].get_or_insert_with(|| fails(worlds, set, *atom))
                }
                event => holds(drawn, set, *event),
            });
            if all && !derived[*head as usize] {
                (derived[*head as usize], rests) = (true, false);
            }
        }
        if rests {
            return derived;
        }
    }
}

fn probability(drawn: &Drawn, set: &[Literal]) -> f64 {
    let of = |events: &Vec<u32>| {
        let (mut without, mut happens) = (None, None);
        for literal in set {
            match literal {
                Literal::Is(event) if events.contains(&event.0) => {
                    happens = Some(drawn.weights[event.0 as usize]);
                }
                Literal::IsNot(event) if events.contains(&event.0) => {
                    without = Some(without.unwrap_or(0.0) + drawn.weights[event.0 as usize]);
                }
                _ => {}
            }
        }
        happens.or(without.map(|sum: f64| (1.0 - sum).max(0.0))).unwrap_or(1.0)
    };
    drawn.choices.iter().map(of).product()
}

/// The weakest sets of literals from which each atom has a derivation, in the order of their probabilities.
fn explanations(drawn: &Drawn, worlds: &[(Vec<bool>, Vec<bool>)]) -> Vec<Vec<(f64, Vec<Literal>)>> {
    let mut sets: Vec<Vec<Literal>> = vec![Vec::new()];
    for events in &drawn.choices {
        let each = said(drawn, events);
        sets = sets
            .iter()
            .flat_map(|set| each.iter().map(move |more| [set.as_slice(), more.as_slice()].concat()))
            .collect();
    }
    let all: Vec<(Vec<Literal>, Vec<bool>)> =
        sets.into_iter().map(|set| (set.clone(), derived(drawn, worlds, &set))).collect();
    let of = |atom: usize| {
        let own: Vec<&Vec<Literal>> =
            all.iter().filter(|(_, derived)| derived[atom]).map(|(set, _)| set).collect();
        let weaker = |a: &Vec<Literal>, b: &Vec<Literal>| a != b && a.iter().all(|l| says(drawn, b, *l));
        let weakest = own.iter().filter(|set| !own.iter().any(|other| weaker(other, set)));
        let mut found: Vec<(f64, Vec<Literal>)> =
            weakest.map(|set| (probability(drawn, set), (*set).clone())).collect();
        found.sort_by(|a, b| match b.0.total_cmp(&a.0) {
            Ordering::Equal => (a.1.len(), &a.1).cmp(&(b.1.len(), &b.1)),
            order => order,
        });
        found
    };
    (0..drawn.strata.len()).map(of).collect()
}

/// How many sets of literals there are.
fn size(drawn: &Drawn) -> usize {
    drawn.choices.iter().map(|events| said(drawn, events).len()).product()
}

/// Refuses a derivation that is none, or that uses other events than its proof. Whether it uses all of them.
fn check(drawn: &Drawn, worlds: &[(Vec<bool>, Vec<bool>)], goal: Atom, proof: &Proof) -> bool {
    assert_eq!(proof.steps[0].literal, Literal::Follows(goal));
    let mut used = Vec::new();
    // Each step's premises are lower than it: nothing rests on itself.
    let mut height: Vec<Option<usize>> = vec![None; proof.steps.len()];
    for _ in 0..proof.steps.len() {
        for (at, step) in proof.steps.iter().enumerate() {
            let below: Option<Vec<usize>> = step.from.iter().map(|part| height[*part]).collect();
            height[at] = below.map(|below| below.into_iter().max().map_or(0, |most| most + 1));
        }
    }
    for (at, step) in proof.steps.iter().enumerate() {
        assert!(height[at].is_some(), "{proof:?} rests on itself");
        let parts: Vec<Literal> = step.from.iter().map(|part| proof.steps[*part].literal).collect();
        match step.literal {
            Literal::Follows(atom) => {
                let (head, body) = &drawn.rules[step.rule.expect("a rule")];
                assert!(*head == atom.0 && *body == parts, "{proof:?}");
                continue;
            }
            Literal::FollowsNot(atom) => assert!(fails(worlds, &parts, atom), "{proof:?}"),
            literal if proof.literals.contains(&literal) => {
                used.push(literal);
                assert!(parts.is_empty());
            }
            literal => assert!(holds(drawn, &parts, literal), "{proof:?}"),
        }
        assert_eq!(step.rule, None);
    }
    used.sort_unstable_by_key(|literal| match literal {
        Literal::Is(event) | Literal::IsNot(event) => *event,
        _ => Event(u32::MAX),
    });
    used.dedup();
    used == proof.literals
}

#[test]
fn the_best_proofs_are_the_best_of_all() {
    let (mut several, mut most_of, mut denied) = (0, 0, 0);
    programs("best", 9000, |item, drawn| {
        if size(drawn) > 500 {
            return;
        }
        let worlds = possible(drawn);
        for (atom, expected) in (0..).map(Atom).zip(explanations(drawn, &worlds)) {
            for most in [1, 2, 5] {
                let found =
                    drawn.proofs.best(atom, most, &drawn.weights, &Limits::default()).expect("it is small");
                assert!(found.exact, "program {item}, {atom:?}");
                let said: Vec<(f64, Vec<Literal>)> =
                    found.proofs.iter().map(|proof| (proof.probability, proof.literals.clone())).collect();
                let wanted: Vec<_> = expected.iter().take(most).cloned().collect();
                assert_eq!(said, wanted, "program {item}, {atom:?}, {most}: {:?}", drawn.rules);
                assert!(found.proofs.iter().all(|proof| check(drawn, &worlds, atom, proof)), "{found:?}");
                several += usize::from(most == 5 && found.proofs.len() > 1);
                most_of += usize::from(most == 2 && expected.len() > 2);
                let denies = |proof: &Proof| {
                    proof.steps.iter().any(|step| matches!(step.literal, Literal::FollowsNot(_)))
                };
                denied += usize::from(found.proofs.iter().any(denies));
            }
        }
    });
    assert!(several > 800 && most_of > 80 && denied > 1000, "{several} {most_of} {denied}");
}

/// What is kept says as much as the circuits that are made of it, and is derived by the rules.
#[test]
fn proofs_that_are_kept_are_those_of_the_circuits() {
    let mut fewer = 0;
    programs("kept", 3000, |item, drawn| {
        let worlds = possible(drawn);
        let denies = |literal: &Literal| matches!(literal, Literal::FollowsNot(_));
        let denied = drawn.rules.iter().any(|(_, body)| body.iter().any(denies));
        for atom in (0..drawn.strata.len() as u32).map(Atom) {
            for k in [1, 2, 10_000] {
                let limits = Limits::default();
                let found = drawn.proofs.kept(atom, &|_| k, k, &drawn.weights, &limits).expect("it is small");
                assert!(found.exact && found.proofs.len() <= k);
                let circuits =
                    drawn.proofs.top(&[atom], &|_| k, &drawn.weights, &limits).expect("it is small");
                let expected = circuits.probabilities(&drawn.weights).expect("they are probabilities")[0];
                let mut any = Proofs::default();
                for events in &drawn.choices {
                    any.choice(events.len() as u32);
                }
                let goal = any.atom(0);
                found.proofs.iter().for_each(|proof| any.rule(goal, &proof.literals));
                let value = any.probability(goal, &drawn.weights).expect("they are probabilities");
                assert!((value - expected).abs() < 1e-12, "program {item}: {value} and {expected}");
                if !denied {
                    let all = found.proofs.iter().filter(|proof| check(drawn, &worlds, atom, proof)).count();
                    assert!(all == found.proofs.len() || k < 10_000, "program {item}: {found:?}");
                }
                fewer += usize::from(k == 2 && found.proofs.len() == 2);
            }
        }
    });
    assert!(fewer > 300, "{fewer}");
}

/// What was not made follows from nothing; what stops a search stops it; a number that is none is refused.
#[test]
fn careless_questions() {
    let mut proofs = Proofs::default();
    let fact = proofs.fact();
    let atom = proofs.atom(0);
    proofs.rule(atom, &[Literal::Is(fact)]);
    let limits = Limits::default();
    assert_eq!(proofs.best(Atom(7), 5, &[0.5], &limits).map(|found| found.proofs), Ok(Vec::new()));
    assert_eq!(proofs.kept(Atom(7), &|_| 5, 5, &[0.5], &limits).map(|found| found.proofs), Ok(Vec::new()));
    assert_eq!(proofs.best(atom, 0, &[0.5], &limits).map(|found| found.proofs), Ok(Vec::new()));
    assert!(proofs.best(atom, 5, &[1.5], &limits).is_err() && proofs.best(atom, 5, &[], &limits).is_err());
    let stopped = Limits { stop: &|| true, ..Limits::default() };
    assert!(proofs.best(atom, 5, &[0.5], &stopped).is_err());
    let found = proofs.best(atom, usize::MAX, &[0.5], &limits).expect("it is small");
    assert_eq!((found.proofs.len(), found.proofs[0].probability), (1, 0.5));
}

/// A ladder of 60 rungs has 2⁶⁰ ways up: the best of them are found without the others. Denied, all of them would be needed.
#[test]
fn a_search_ends_among_many_proofs() {
    let mut proofs = Proofs::default();
    let mut weights = Vec::new();
    let mut before: Option<Atom> = None;
    for rung in 0..60 {
        let atom = proofs.atom(0);
        for side in 0..2 {
            let fact = proofs.fact();
            weights.push(0.99 - 0.01 * f64::from(side) - 0.0001 * f64::from(rung));
            let below = before.map(Literal::Follows);
            let body: Vec<Literal> = [Literal::Is(fact)].into_iter().chain(below).collect();
            proofs.rule(atom, &body);
        }
        before = Some(atom);
    }
    let top = before.expect("there are rungs");
    let found = proofs.best(top, 5, &weights, &Limits::default()).expect("it ends");
    assert_eq!(found.proofs.len(), 5);
    let best: f64 = weights.iter().step_by(2).product();
    assert!((found.proofs[0].probability - best).abs() < 1e-12);
    let lonely = proofs.atom(1);
    proofs.rule(lonely, &[Literal::FollowsNot(top)]);
    let found = proofs.best(lonely, 5, &weights, &Limits::default()).expect("it ends");
    assert!(!found.exact && found.proofs.is_empty(), "{found:?}");
}
