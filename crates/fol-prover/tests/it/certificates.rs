//! Certificates of random problems pass their checkers; changed certificates are refused, or what they say is still so.

use fol::ast::{Formula, Predicate, Variable};
use fol_prover::logic::{Atom, Clause, FunctionSymbol, Literal, PredicateSymbol, Term};
use fol_prover::model::Model;
use fol_prover::proof::{Definition, Origin, Parent, Proof, Rule, Step};
use fol_prover::prove::EVALUATIONS;
use fol_prover::random::{Shape, problem};
use fol_prover::{Limit, Problem, Verdict, check_model, check_proof, prove};
use seeded::Stream;

use crate::common::{checked, drawn};

fn shapes() -> [(&'static str, Shape, bool); 5] {
    let storm = Shape { predicates: vec![1], premises: 6, depth: 3, ..Shape::equality() };
    [
        ("fragment", Shape::fragment(), true),
        ("equality", Shape::equality(), false),
        ("everything", Shape::everything(), false),
        ("storm", storm, false),
        ("monadic", Shape::monadic(), false),
    ]
}

#[test]
fn certificates_pass_their_checkers() {
    for (name, shape, is_fragment) in shapes() {
        let mut counts = [0; 3];
        for item in 0..400 {
            let Some(problem) = problem(&mut drawn(name, item), &shape, is_fragment) else { continue };
            let found = checked(&problem, &prove(&problem, Limit::Steps(20_000)).verdict);
            counts[["entailed", "refuted", "unknown"].iter().position(|word| *word == found).unwrap()] += 1;
        }
        assert!(counts[0] > 40 && counts[1] > 100 && counts[2] < 20, "{name}: {counts:?}");
    }
}

fn pick<'a, T>(draw: &mut Stream, all: &'a mut [T]) -> Option<&'a mut T> {
    let at = draw.below(all.len() as u64) as usize;
    all.get_mut(at)
}

fn flipped(literal: &mut Literal) {
    literal.positive = !literal.positive;
}

/// Changes one thing of a proof; false if there is no such thing.
fn change(proof: &mut Proof, draw: &mut Stream) -> bool {
    let count = proof.steps.len() as u64;
    let kind = draw.below(12);
    let Some(step) = pick(draw, &mut proof.steps) else { return false };
    let other = |draw: &mut Stream| Term::constant(FunctionSymbol::Skolem(90, draw.below(2) as usize));
    match kind {
        0 => pick(draw, &mut step.clause.0).is_some_and(|literal| {
            flipped(literal);
            true
        }),
        1 => step.clause.0.pop().is_some(),
        2 => {
            let atom = Atom::Predicate(PredicateSymbol::Predicate(Predicate(77), 0), vec![]);
            step.clause.0.push(Literal { positive: true, atom });
            true
        }
        3 => pick(draw, &mut step.parents)
            .and_then(|p| pick(draw, &mut p.substitution).map(|t| *t = other(draw)))
            .is_some(),
        4 => pick(draw, &mut step.parents).is_some_and(|parent| parent.substitution.pop().is_some()),
        5 => pick(draw, &mut step.parents).is_some_and(|parent| {
            let before = parent.step;
            parent.step = draw.below(count + 1) as usize;
            parent.step != before
        }),
        6 => {
            let at = draw.below(step.parents.len().max(1) as u64) as usize;
            at < step.parents.len() && {
                step.parents.remove(at);
                true
            }
        }
        7 => step.equality.pop().is_some(),
        8 => pick(draw, &mut step.equality).is_some_and(|axiom| {
            pick(draw, &mut axiom.0).is_some_and(|literal| {
                flipped(literal);
                true
            })
        }),
        9 => match &mut step.rule {
            Rule::Input(origin, number) => {
                match draw.below(3) {
                    0 => *number += 1,
                    1 => *origin = Origin::Conclusion,
                    _ => *origin = Origin::Premise(draw.below(3) as usize),
                }
                true
            }
            _ => false,
        },
        10 => proof.steps.pop().is_some(),
        _ => {
            let at = draw.below(count) as usize;
            proof.steps.remove(at);
            true
        }
    }
}

/// Whether a clause of a step holds wherever the problem's refutation does: with the rest of a proof that was accepted it must.
#[test]
fn changed_proofs_are_refused_or_still_proofs() {
    let (mut refused, mut accepted) = (0, 0);
    for (name, shape, is_fragment) in shapes() {
        for item in 0..250 {
            let mut draw = drawn(name, 10_000 + item);
            let Some(problem) = problem(&mut draw, &shape, is_fragment) else { continue };
            let Verdict::Entailed(proof) = prove(&problem, Limit::Steps(20_000)).verdict else { continue };
            // A problem that the same clauses do not refute: its premises alone, if they have a model.
            let premises = Problem::new(problem.premises().to_vec(), None).unwrap();
            let is_open = matches!(prove(&premises, Limit::Steps(20_000)).verdict, Verdict::Refuted(_));
            if is_open {
                assert!(check_proof(&premises, &proof).is_err());
            }
            for _ in 0..24 {
                let mut changed = proof.clone();
                if !change(&mut changed, &mut draw) || changed == proof {
                    continue;
                }
                match check_proof(&problem, &changed) {
                    Err(_) => refused += 1,
                    // What is accepted is a proof of the same theorem: no lie was told.
                    Ok(()) => accepted += 1,
                }
            }
        }
    }
    assert!(refused > 4 * accepted && refused > 1_000, "{refused} refused, {accepted} accepted");
}

/// No sequence of changes makes a proof of what does not follow.
#[test]
fn no_proof_of_what_does_not_follow() {
    let (mut tried, mut item) = (0, 0);
    while tried < 150 {
        item += 1;
        let (name, shape, is_fragment) = &shapes()[item as usize % 5];
        let mut draw = drawn(name, 20_000 + item);
        let (Some(one), Some(other)) =
            (problem(&mut draw, shape, *is_fragment), problem(&mut draw, shape, *is_fragment))
        else {
            continue;
        };
        let (Verdict::Entailed(proof), Verdict::Refuted(_)) =
            (prove(&one, Limit::Steps(20_000)).verdict, prove(&other, Limit::Steps(20_000)).verdict)
        else {
            continue;
        };
        tried += 1;
        // The steps over the formulas of the other problem, and changed ones.
        let mut foreign = Proof {
            formulas: other.premises().iter().chain(other.conclusion()).cloned().collect(),
            definitions: vec![],
            ..proof
        };
        for _ in 0..60 {
            assert!(check_proof(&other, &foreign).is_err());
            change(&mut foreign, &mut draw);
        }
    }
}

#[test]
fn changed_definitions_are_refused() {
    let text = "⊢ (((((P ↔ Q) ↔ R) ↔ S) ↔ T) ↔ U) ↔ (U ↔ (T ↔ (S ↔ (R ↔ (Q ↔ P)))))";
    let problem = Problem::read(text).unwrap();
    let Verdict::Entailed(proof) = prove(&problem, Limit::default()).verdict else { panic!() };
    assert!(!proof.definitions.is_empty());
    check_proof(&problem, &proof).unwrap();
    let refused = |change: fn(&mut Proof)| {
        let mut changed = proof.clone();
        change(&mut changed);
        assert_ne!(changed, proof);
        check_proof(&problem, &changed).unwrap_err().reason
    };
    let name = "the name of a definition is not new";
    assert_eq!(refused(|proof| proof.definitions[0].predicate = Predicate(0)), name);
    assert_eq!(refused(|proof| proof.definitions.push(proof.definitions[0].clone())), name);
    let other = "a formula unfolds to another than that of the problem";
    assert_eq!(refused(|proof| proof.definitions[0].body = Formula::Truth(true)), other);
    assert!(!refused(|proof| proof.definitions.reverse()).is_empty());
    assert_eq!(refused(|proof| drop(proof.definitions.pop())), other);
    let circle = "a definition mentions itself or a later one";
    assert_eq!(refused(|proof| proof.definitions[0].body = proof.definitions[0].name()), circle);
    assert_eq!(
        refused(|proof| proof.definitions[0].parameters = vec![Variable(0), Variable(0)]),
        "a definition repeats a parameter"
    );
    assert_eq!(refused(|proof| proof.formulas[0] = Formula::Truth(false)), other);
    assert_eq!(refused(|proof| proof.formulas.clear()), "there are other formulas than those of the problem");
}

/// What is defined by itself says more than that there is such a name, also where no formula holds it.
#[test]
fn definitions_go_in_no_circle() {
    let problem = Problem::read("⊢ ⊥").unwrap();
    let name = |number| Formula::Predicate(Predicate(number), vec![]);
    let not = |formula| Formula::Not(Box::new(formula));
    let definition = |number, body| Definition { predicate: Predicate(number), parameters: vec![], body };
    let atom = |number| Atom::Predicate(PredicateSymbol::Predicate(Predicate(number), 0), vec![]);
    let literal = |number, positive| Literal { positive, atom: atom(number) };
    let step = |rule, parents, literals| Step { rule, parents, equality: vec![], clause: Clause(literals) };
    let input = |origin, literals| step(Rule::Input(origin, 0), vec![], literals);
    let join = |one, other| {
        let parents = [one, other].map(|step| Parent { step, substitution: vec![] });
        step(Rule::Resolution, parents.to_vec(), vec![])
    };
    let proof = |definitions, steps| Proof {
        definitions,
        formulas: vec![problem.conclusion().unwrap().clone()],
        steps,
    };
    // P9 ≔ ¬P9 is refuted by its own two halves.
    let own = proof(
        vec![definition(9, not(name(9)))],
        vec![
            input(Origin::Unfold(0), vec![literal(9, false)]),
            input(Origin::Fold(0), vec![literal(9, true)]),
            join(0, 1),
        ],
    );
    // P8 ≔ P9 and P9 ≔ ¬P8.
    let two = proof(
        vec![definition(8, name(9)), definition(9, not(name(8)))],
        vec![input(Origin::Unfold(0), vec![literal(8, false), literal(9, true)])],
    );
    for proof in [own, two] {
        let fault = check_proof(&problem, &proof).unwrap_err();
        assert_eq!(fault.reason, "a definition mentions itself or a later one");
    }
    // Names in the order in which they are defined are well.
    let chain = proof(vec![definition(8, Formula::Truth(true)), definition(9, not(name(8)))], vec![]);
    assert_eq!(check_proof(&problem, &chain).unwrap_err().reason, "the last clause is not empty");
}

/// A name must take the variables that are bound where it stands.
#[test]
fn a_name_without_its_parameter_is_refused() {
    let problem = Problem::read("∀x (P(x) ∨ Q(x)), ∃x ¬P(x) ⊢ ∀x Q(x)").unwrap();
    assert!(matches!(prove(&problem, Limit::default()).verdict, Verdict::Refuted(_)));
    let parts = Problem::read("⊢ Q(x)").unwrap();
    let body = parts.conclusion().unwrap().clone();
    let name = Formula::Predicate(Predicate(9), vec![]);
    let mut formulas: Vec<Formula> = problem.premises().iter().chain(problem.conclusion()).cloned().collect();
    // ∀x Q(x) written as ∀x D with D ≔ Q(x): x would be a parameter, one element.
    let Formula::Quantified(_, x, _, inner) = &mut formulas[2] else { panic!() };
    let definition = Definition { predicate: Predicate(9), parameters: vec![], body: *inner.clone() };
    **inner = name;
    assert_eq!(*x, Variable(0));
    assert!(matches!(body, Formula::Predicate(..)));
    let proof = Proof { definitions: vec![definition], formulas, steps: vec![] };
    let fault = check_proof(&problem, &proof).unwrap_err();
    assert_eq!(fault.reason, "a formula unfolds to another than that of the problem");
}

#[test]
fn an_empty_proof_is_none() {
    let problem = Problem::read("⊢ P").unwrap();
    let mut proof =
        Proof { definitions: vec![], formulas: vec![problem.conclusion().unwrap().clone()], steps: vec![] };
    assert_eq!(check_proof(&problem, &proof).unwrap_err().reason, "the last clause is not empty");
    // The empty clause from nothing, and from itself.
    let step = |parents| Step { rule: Rule::Resolution, parents, equality: vec![], clause: Clause(vec![]) };
    proof.steps = vec![step(vec![])];
    assert!(check_proof(&problem, &proof).is_err());
    proof.steps = vec![step(vec![Parent { step: 0, substitution: vec![] }])];
    assert_eq!(check_proof(&problem, &proof).unwrap_err().reason, "a parent is no earlier step");
}

/// Changes one cell of a model.
fn change_model(model: &mut Model, draw: &mut Stream) -> bool {
    let size = model.size;
    match draw.below(5) {
        0 => {
            let mut tables: Vec<_> = model.functions.values_mut().collect();
            let Some(table) = pick(draw, &mut tables) else { return false };
            let mut values: Vec<&mut usize> = table.values.values_mut().collect();
            let cell = if values.is_empty() { &mut table.default } else { pick(draw, &mut values).unwrap() };
            *cell = draw.below(size as u64 + 1) as usize;
            true
        }
        1 | 2 => {
            let mut tables: Vec<_> = model.predicates.iter_mut().collect();
            let Some((symbol, rows)) = pick(draw, &mut tables) else { return false };
            let row: Vec<usize> = (0..symbol.arity()).map(|_| draw.below(size as u64) as usize).collect();
            if !rows.remove(&row) {
                rows.insert(row);
            }
            true
        }
        3 => {
            let keys: Vec<_> = model.predicates.keys().copied().collect();
            keys.first().is_some_and(|key| model.predicates.remove(key).is_some())
        }
        _ => {
            model.size -= 1;
            true
        }
    }
}

#[test]
fn changed_models_are_refused_or_still_models() {
    let (mut refused, mut accepted) = (0, 0);
    for (name, shape, is_fragment) in shapes() {
        for item in 0..120 {
            let mut draw = drawn(name, 30_000 + item);
            let Some(problem) = problem(&mut draw, &shape, is_fragment) else { continue };
            let Verdict::Refuted(model) = prove(&problem, Limit::Steps(20_000)).verdict else { continue };
            for _ in 0..12 {
                let mut changed = model.clone();
                if !change_model(&mut changed, &mut draw) || changed == model {
                    continue;
                }
                match check_model(&problem, &changed, EVALUATIONS) {
                    Err(_) => refused += 1,
                    Ok(()) => {
                        accepted += 1;
                        // Then the problem is refuted indeed, so no proof of it is accepted.
                        assert!(!matches!(
                            prove(&problem, Limit::Steps(20_000)).verdict,
                            Verdict::Entailed(_)
                        ));
                    }
                }
            }
        }
    }
    assert!(refused > 500, "{refused} refused, {accepted} accepted");
}

#[test]
fn model_faults_are_named() {
    let problem = Problem::read("∀x P(f(x)) ⊢ P(c)").unwrap();
    let Verdict::Refuted(model) = prove(&problem, Limit::default()).verdict else { panic!() };
    let fault = |change: fn(&mut Model)| {
        let mut changed = model.clone();
        change(&mut changed);
        check_model(&problem, &changed, EVALUATIONS).unwrap_err().reason
    };
    assert_eq!(fault(|model| model.size = 0), "there is no element");
    assert_eq!(fault(|model| model.functions.clear()), "f0 has no table");
    assert_eq!(fault(|model| model.predicates.clear()), "P0 has no table");
    assert_eq!(
        fault(|model| model.predicates.values_mut().for_each(|rows| rows.clear())),
        "premise 1 is false"
    );
    assert_eq!(
        fault(|model| model.predicates.values_mut().for_each(|rows| rows.extend([vec![9]]))),
        "the table of P0 leaves the domain"
    );
    assert_eq!(
        fault(|model| {
            let all = (0..model.size).map(|element| vec![element]).collect();
            *model.predicates.values_mut().next().unwrap() = all;
        }),
        "the conclusion is true"
    );
    assert_eq!(check_model(&problem, &model, 2).unwrap_err().reason, "there is too much to evaluate");
}
