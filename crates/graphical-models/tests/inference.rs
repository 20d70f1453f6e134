//! Marginals against the sum over all states, and files that are none.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test whose model is refused has failed")]

use graphical_models::{Factor, Failure, Limits, Model, Variable, VariableId, bif, uai};
use seeded::Stream;

fn model(stream: &mut Stream) -> Model {
    let count = 1 + stream.below(9) as usize;
    let variables: Vec<Variable> = (0..count)
        .map(|at| Variable {
            name: format!("v{at}"),
            states: (0..1 + stream.below(4)).map(|state| state.to_string()).collect(),
        })
        .collect();
    let sizes: Vec<usize> = variables.iter().map(|variable| variable.states.len()).collect();
    let mut model = Model::new(variables).unwrap();
    for _ in 0..stream.below(2 * count as u64 + 1) {
        let mut all: Vec<u32> = stream.permutation(count as u32);
        all.truncate(stream.below(5) as usize);
        let scope: Vec<VariableId> = all.into_iter().map(|at| VariableId(at as usize)).collect();
        let cells: usize = scope.iter().map(|id| sizes[id.0]).product();
        let zeros = stream.below(4);
        let value = |stream: &mut Stream| if stream.below(6) < zeros { 0.0 } else { stream.uniform() * 2.0 };
        let values = (0..cells).map(|_| value(stream)).collect();
        model.multiply(Factor { scope, values }).unwrap();
    }
    model
}

/// Visits all states that the evidence admits, with the product of all factors.
fn each(model: &Model, evidence: &[(VariableId, usize)], mut visit: impl FnMut(&[usize], f64)) {
    let sizes: Vec<usize> = model.variables().iter().map(|variable| variable.states.len()).collect();
    let mut states = vec![0; sizes.len()];
    for mut at in 0..sizes.iter().product::<usize>() {
        for (state, size) in states.iter_mut().zip(&sizes) {
            *state = at % size;
            at /= size;
        }
        if evidence.iter().any(|(id, state)| states[id.0] != *state) {
            continue;
        }
        let factor = |factor: &Factor| {
            let place = factor.scope.iter().fold(0, |place, id| place * sizes[id.0] + states[id.0]);
            factor.values[place]
        };
        visit(&states, model.factors().iter().map(factor).product());
    }
}

/// The sum over all states, and that of each state of each variable.
fn enumerated(model: &Model, evidence: &[(VariableId, usize)]) -> (f64, Vec<Vec<f64>>) {
    let mut of: Vec<Vec<f64>> =
        model.variables().iter().map(|variable| vec![0.0; variable.states.len()]).collect();
    let mut total = 0.0;
    each(model, evidence, |states, weight| {
        total += weight;
        of.iter_mut().zip(states).for_each(|(of, state)| of[*state] += weight);
    });
    of.iter_mut().flatten().for_each(|value| *value /= total);
    (total, of)
}

/// The same of the states of some variables together, the last one moving fastest.
fn enumerated_together(
    model: &Model,
    of: &[VariableId],
    evidence: &[(VariableId, usize)],
) -> (f64, Vec<f64>) {
    let size = |id: &VariableId| model.variable(*id).states.len();
    let (mut total, mut sums) = (0.0, vec![0.0; of.iter().map(size).product()]);
    each(model, evidence, |states, weight| {
        total += weight;
        sums[of.iter().fold(0, |place, id| place * size(id) + states[id.0])] += weight;
    });
    sums.iter_mut().for_each(|sum| *sum /= total);
    (total, sums)
}

/// The product of all factors for these states, and the largest one that the evidence admits.
fn largest(model: &Model, evidence: &[(VariableId, usize)], states: &[usize]) -> (f64, f64) {
    let all: Vec<(VariableId, usize)> =
        states.iter().enumerate().map(|(at, state)| (VariableId(at), *state)).collect();
    assert!(evidence.iter().all(|observed| all.contains(observed)));
    let (mut value, mut most) = (0.0, 0.0_f64);
    each(model, &all, |_, weight| value = weight);
    each(model, evidence, |_, weight| most = most.max(weight));
    (value, most)
}

/// The line and column of a refusal.
fn place(found: Result<Model, Failure>) -> (usize, usize) {
    match found {
        Err(Failure::Text { line, column, .. }) => (line, column),
        other => panic!("{other:?}"),
    }
}

const NETWORK: &str = "network n { property a b; }
variable A { type discrete [ 2 ] { yes, no }; property p; }
variable B { type discrete [ 3 ] { \"x y\", <5, -1 }; }
// a comment
probability ( A ) { table 0.25, 0.75; } /* and
another */
probability ( B | A ) {
  (no) 0.1, 0.2, 0.7;
  default 1, 0, 0;
}
";

#[test]
fn networks_are_read_and_what_is_none_is_refused_where_it_stands() {
    let model = bif::read(NETWORK).unwrap();
    assert_eq!(model.variable(VariableId(1)).states, ["x y", "<5", "-1"]);
    assert_eq!(model.factors()[1].values, [1.0, 0.0, 0.0, 0.1, 0.2, 0.7]);
    let of = |old: &str, new: &str| place(bif::read(&NETWORK.replace(old, new)));
    assert_eq!(of("(no) 0.1", "(maybe) 0.1"), (8, 4));
    assert_eq!(of("0.1, 0.2, 0.7", "0.1, 0.2"), (8, 3));
    assert_eq!(of("0.7;", "0.6;"), (8, 3));
    assert_eq!(of("default 1, 0", "default 0.9, 0"), (9, 3));
    assert_eq!(of("0.25", "0.35"), (5, 21));
    assert_eq!(of("0.7;", "seven;"), (8, 18));
    assert_eq!(of("0.7;", "-0.7;"), (8, 18));
    assert_eq!(of("0.7;", "NaN;"), (8, 18));
    assert_eq!(of("  default 1, 0, 0;\n", ""), (7, 1));
    assert_eq!(of("default 1, 0, 0;", "default 1, 0, 0; default 1, 0, 0;"), (9, 20));
    assert_eq!(of("table 0.25, 0.75;", "table 0.25, 0.75; table 0.25, 0.75;"), (5, 39));
    assert_eq!(of("(no) 0.1, 0.2, 0.7;", "(no) 0.1, 0.2, 0.7; (no) 0.1, 0.2, 0.7;"), (8, 23));
    assert_eq!(of("| A", "| C"), (7, 19));
    assert_eq!(of("| A", "| B"), (7, 19));
    assert_eq!(of("[ 3 ]", "[ 4 ]"), (3, 30));
    assert_eq!(of("<5", "-1"), (3, 47));
    assert_eq!(of("type discrete [ 3 ]", "type continuous [ 3 ]"), (3, 19));
    assert_eq!(of("another */", "another"), (5, 41));
    assert_eq!(of("default 1", "table 1"), (9, 3));
    assert_eq!(of("variable B", "variable A"), (3, 10));
    assert_eq!(of("probability ( A )", "probability ( A"), (5, 17));
    assert_eq!(of("network", "net"), (1, 1));
    assert_eq!(of("probability ( A ) { table 0.25, 0.75; }", ""), (2, 10));
    assert_eq!(of("probability ( B", "probability ( A ) { table 1, 0; } probability ( B"), (7, 1));
    for end in (0..NETWORK.len()).filter(|end| NETWORK.is_char_boundary(*end)) {
        let _ = bif::read(&NETWORK[..end]);
    }
    let hostile = format!(
        "{}variable Z {{ type discrete [ 1 ] {{ a }}; }} probability ( Z | {} ) {{ default 1; }}",
        (0..80).map(|at| format!("variable V{at} {{ type discrete [ 2 ] {{ a, b }}; }}")).collect::<String>(),
        (0..80).map(|at| format!("V{at}")).collect::<Vec<_>>().join(", ")
    );
    assert!(matches!(bif::read(&hostile), Err(Failure::Text { .. })));
}

#[test]
fn competition_files_are_read_and_what_is_none_is_refused_where_it_stands() {
    const TEXT: &str = "MARKOV\n3\n2 2 3\n2\n2 0 1\n2 1 2\n\n4\n 4 2.4 1 0\n\n6\n 2 3 0.5\n 1 1 1\n";
    let model = uai::read(TEXT).unwrap();
    assert_eq!(model.factors()[1].scope, [VariableId(1), VariableId(2)]);
    assert_eq!(model.factors()[0].values, [4.0, 2.4, 1.0, 0.0]);
    assert_eq!(uai::evidence("2 0 1 2 2", &model).unwrap(), [(VariableId(0), 1), (VariableId(2), 2)]);
    let of = |old: &str, new: &str| place(uai::read(&TEXT.replacen(old, new, 1)));
    assert_eq!(of("MARKOV", "MARKUS"), (1, 1));
    assert_eq!(of("2 0 1", "2 0 7"), (5, 5));
    assert_eq!(of("2 0 1", "2 0 0"), (5, 5));
    assert_eq!(of("\n4\n", "\n5\n"), (8, 1));
    assert_eq!(of("2.4", "two"), (9, 4));
    assert_eq!(of("2.4", "-2"), (9, 4));
    assert_eq!(of("1 1 1\n", "1 1 1 1\n"), (13, 8));
    assert_eq!(of("1 1 1\n", "1 1\n"), (13, 5));
    assert_eq!(of("2 2 3", "2 0 3"), (3, 3));
    assert_eq!(of("2 2 3", "2 2 999999999999"), (3, 5));
    assert!(matches!(uai::evidence("1 0 2", &model), Err(Failure::Unknown { line: 1, column: 5, .. })));
    assert!(matches!(uai::evidence("1 9 0", &model), Err(Failure::Unknown { line: 1, column: 3, .. })));
    assert!(matches!(uai::evidence("2 0 1 0 1", &model), Err(Failure::Text { line: 1, column: 7, .. })));
    assert!(matches!(
        uai::evidence("2 0 1 0 0", &model),
        Err(Failure::Contradiction { line: 1, column: 7, .. })
    ));
    for end in 0..TEXT.len() {
        let _ = uai::read(&TEXT[..end]);
    }
}

#[test]
fn what_is_too_large_is_refused_before_it_is_begun() {
    let states = || vec!["a".to_owned(), "b".to_owned()];
    let variables = (0..40).map(|at| Variable { name: at.to_string(), states: states() }).collect();
    let mut model = Model::new(variables).unwrap();
    for a in 0..40 {
        for b in 0..a {
            model
                .multiply(Factor { scope: vec![VariableId(a), VariableId(b)], values: vec![1.0; 4] })
                .unwrap();
        }
    }
    assert!(matches!(model.marginals(&[], &Limits::default()), Err(Failure::TooLarge { .. })));
    // A grid, where cliques become wide only late in the search for an order.
    let (side, states) = (70, || vec!["a".to_owned(), "b".to_owned()]);
    let variables = (0..side * side).map(|at| Variable { name: at.to_string(), states: states() }).collect();
    let mut model = Model::new(variables).unwrap();
    for at in 0..side * side {
        let right = (at % side + 1 < side).then_some(at + 1);
        for other in right.into_iter().chain((at + side < side * side).then_some(at + side)) {
            let scope = vec![VariableId(at), VariableId(other)];
            model.multiply(Factor { scope, values: vec![2.0, 1.0, 1.0, 2.0] }).unwrap();
        }
    }
    assert!(matches!(model.marginals(&[], &Limits::default()), Err(Failure::TooLarge { .. })));
}

#[test]
fn marginals_are_the_sums_over_all_states() {
    let mut stream = seeded::Family::new("graphical-models", "marginals", seeded::test_seed()).stream(0);
    let (mut impossible, mut possible) = (0, 0);
    for _ in 0..2000 {
        let model = model(&mut stream);
        let mut evidence = Vec::new();
        for (at, variable) in model.variables().iter().enumerate() {
            if stream.below(5) == 0 {
                evidence.push((VariableId(at), stream.below(variable.states.len() as u64) as usize));
            }
        }
        let (total, of) = enumerated(&model, &evidence);
        if let Ok((states, log)) = model.most_probable(&evidence, &Limits::default()) {
            let (value, most) = largest(&model, &evidence, &states);
            assert!(
                (log - most.ln()).abs() < 1e-10 && value >= most * (1.0 - 1e-12),
                "{model:?} {evidence:?}"
            );
        } else {
            assert!(total == 0.0, "{model:?} {evidence:?}");
        }
        match model.marginals(&evidence, &Limits::default()) {
            Ok(found) => {
                possible += 1;
                assert!((found.log_evidence - total.ln()).abs() < 1e-10, "{model:?} {evidence:?}");
                for (found, wanted) in found.of.iter().flatten().zip(of.iter().flatten()) {
                    assert!((found - wanted).abs() < 1e-10, "{found} {wanted} {model:?} {evidence:?}");
                }
            }
            Err(Failure::Evidence(_)) => {
                impossible += 1;
                assert!(total == 0.0, "{total} {model:?} {evidence:?}");
            }
            Err(other) => panic!("{other}"),
        }
    }
    assert!(possible > 1000 && impossible > 50, "{possible} {impossible}");
}

#[test]
fn several_variables_together_are_the_sums_over_all_states_of_the_others() {
    let mut stream = seeded::Family::new("graphical-models", "joint", seeded::test_seed()).stream(0);
    let (mut impossible, mut observed, mut wide) = (0, 0, 0);
    for _ in 0..1200 {
        let model = model(&mut stream);
        let count = model.variables().len();
        let mut evidence = Vec::new();
        for (at, variable) in model.variables().iter().enumerate() {
            if stream.below(6) == 0 {
                evidence.push((VariableId(at), stream.below(variable.states.len() as u64) as usize));
            }
        }
        let mut of: Vec<VariableId> =
            stream.permutation(count as u32).into_iter().map(|at| VariableId(at as usize)).collect();
        of.truncate(stream.below(5) as usize);
        match model.joint(&of, &evidence, &Limits::default()) {
            Ok(found) => {
                assert_eq!(found.of, of);
                let (total, wanted) = enumerated_together(&model, &of, &evidence);
                assert_eq!(found.probabilities.len(), wanted.len());
                for (found, wanted) in found.probabilities.iter().zip(&wanted) {
                    assert!((found - wanted).abs() < 1e-10, "{found} {wanted} {model:?} {of:?} {evidence:?}");
                }
                assert!((found.log_evidence - total.ln()).abs() < 1e-10, "{model:?} {of:?} {evidence:?}");
                observed += usize::from(of.iter().any(|id| evidence.iter().any(|(known, _)| known == id)));
                wide += usize::from(of.len() > 2);
            }
            Err(Failure::Evidence(_)) => {
                impossible += 1;
                assert!(enumerated(&model, &evidence).0 == 0.0, "{model:?} {of:?} {evidence:?}");
            }
            Err(other) => panic!("{other}"),
        }
    }
    assert!(impossible > 10 && observed > 50 && wide > 40, "{impossible} {observed} {wide}");
}

/// A chain of variables of two states, each the opposite of the one before it with probability 0.9.
fn chain(count: usize) -> Model {
    let states = || vec!["no".to_owned(), "yes".to_owned()];
    let variables = (0..count).map(|at| Variable { name: format!("v{at}"), states: states() });
    let mut model = Model::new(variables.collect()).unwrap();
    model.define(Factor { scope: vec![VariableId(0)], values: vec![0.5, 0.5] }).unwrap();
    for at in 1..count {
        let scope = vec![VariableId(at - 1), VariableId(at)];
        model.define(Factor { scope, values: vec![0.1, 0.9, 0.9, 0.1] }).unwrap();
    }
    model
}

#[test]
fn ends_of_a_chain_together() {
    let model = chain(301);
    let found = model.joint(&[VariableId(300), VariableId(0)], &[], &Limits::default()).unwrap();
    // Equal after an even number of steps, each a product with an eigenvalue of -0.8.
    let equal = 0.25 * (1.0 + 0.8_f64.powi(300));
    assert!((found.probabilities[0] - equal).abs() < 1e-12 && found.log_evidence.abs() < 1e-10);
    let of = |ids: &[usize]| {
        let ids: Vec<VariableId> = ids.iter().map(|id| VariableId(*id)).collect();
        model.joint(&ids, &[], &Limits::default())
    };
    assert!(matches!(of(&[1, 2, 1]), Err(Failure::Question(_))));
    assert!(matches!(of(&[301]), Err(Failure::Question(_))));
    assert_eq!(of(&[]).unwrap().probabilities, [1.0]);
    // 2^80 states together: refused, in either way.
    let all: Vec<usize> = (0..80).collect();
    assert!(matches!(of(&all), Err(Failure::TooLarge { .. })));
    let observed: Vec<(VariableId, usize)> = all.iter().map(|at| (VariableId(*at), at % 2)).collect();
    let ids: Vec<VariableId> = observed.iter().map(|(id, _)| *id).collect();
    assert!(matches!(model.joint(&ids, &observed, &Limits::default()), Err(Failure::TooLarge { .. })));
}

#[test]
fn memory_is_refused_before_it_is_taken() {
    let few = Limits { bytes: 1000.0, ..Limits::default() };
    assert!(matches!(chain(100).marginals(&[], &few), Err(Failure::Memory { .. })));
    assert!(chain(3).marginals(&[], &few).is_ok());
    // A bit for each pair of a million variables, of which each has two neighbours at least.
    let mut model = chain(1_000_000);
    for at in 2..1_000_000 {
        let scope = vec![VariableId(at - 2), VariableId(at)];
        model.multiply(Factor { scope, values: vec![0.5, 1.0, 1.0, 0.5] }).unwrap();
    }
    assert!(matches!(model.marginals(&[], &Limits::default()), Err(Failure::Memory { .. })));
}

/// Trees take time and memory that grow with them, whatever their shape: chains, hubs, and hubs of hubs, with a ring at one end.
#[test]
fn large_trees_come_to_an_end() {
    let model = chain(300_000);
    let found = model.marginals(&[(VariableId(0), 0)], &Limits::default()).unwrap();
    let after = |steps: i32| 0.5 * (1.0 + (-0.8_f64).powi(steps));
    assert!((0..20).all(|at| (found.of[at][0] - after(at as i32)).abs() < 1e-12));
    assert_eq!(found.of.len(), 300_000);
    let count = 100_000;
    let variable = |at| Variable { name: format!("v{at}"), states: vec!["no".to_owned(), "yes".to_owned()] };
    let mut model = Model::new((0..count).map(variable).collect()).unwrap();
    model.define(Factor { scope: vec![VariableId(0)], values: vec![0.25, 0.75] }).unwrap();
    // Every tenth hangs on the first, the nine behind it on that one; the last three are a ring.
    let above = |at: usize| if at.is_multiple_of(10) || at < 10 { 0 } else { at - at % 10 };
    for at in 1..count {
        let scope = vec![VariableId(above(at)), VariableId(at)];
        model.define(Factor { scope, values: vec![0.5, 0.5, 0.375, 0.625] }).unwrap();
    }
    for (a, b) in [(count - 3, count - 2), (count - 2, count - 1), (count - 1, count - 3)] {
        let scope = vec![VariableId(a), VariableId(b)];
        model.multiply(Factor { scope, values: vec![1.0; 4] }).unwrap();
    }
    let found = model.marginals(&[], &Limits::default()).unwrap();
    let below = |no: f64| no * 0.5 + (1.0 - no) * 0.375;
    assert!(found.log_evidence.abs() < 1e-9);
    for (at, of) in found.of.iter().enumerate() {
        let wanted = match at {
            0 => 0.25,
            _ if above(at) == 0 => below(0.25),
            _ => below(below(0.25)),
        };
        assert!((of[0] - wanted).abs() < 1e-9, "{at} {of:?} {wanted}");
    }
    let (states, _) = model.most_probable(&[], &Limits::default()).unwrap();
    assert!(states[0] == 1 && (1..10).all(|at| states[at] == 1));
}

/// A state that is impossible makes the next one so, all along a chain of a hundred thousand.
#[test]
fn impossible_states_leave_one_after_the_other() {
    let count = 100_000;
    let states = || vec!["no".to_owned(), "yes".to_owned()];
    let variables = (0..count).map(|at| Variable { name: format!("v{at}"), states: states() });
    let mut model = Model::new(variables.collect()).unwrap();
    for at in 1..count {
        let scope = vec![VariableId(at), VariableId(at - 1)];
        model.multiply(Factor { scope, values: vec![1.0, 1.0, 0.0, 0.5] }).unwrap();
    }
    // `yes` only behind `yes`: what is `no` at the start is `no` to the end.
    let found = model.marginals(&[(VariableId(0), 0)], &Limits::default()).unwrap();
    assert!(found.log_evidence.abs() < 1e-12 && found.of.iter().all(|of| *of == [1.0, 0.0]));
    let both = [(VariableId(0), 0), (VariableId(count - 1), 1)];
    assert!(matches!(model.marginals(&both, &Limits::default()), Err(Failure::Evidence(_))));
    let loops = model.loopy(&both, &graphical_models::Loopy::default());
    assert!(matches!(loops, Err(Failure::Evidence(_))));
}

#[test]
fn distributions_are_defined_once_and_sum_to_one() {
    let mut model = chain(2);
    let define = |model: &mut Model, scope: &[usize], values: &[f64]| {
        let scope = scope.iter().map(|at| VariableId(*at)).collect();
        model.define(Factor { scope, values: values.to_vec() })
    };
    let factors = model.factors().len();
    for (scope, values) in
        [(&[0][..], &[0.5, 0.5][..]), (&[], &[1.0]), (&[7], &[1.0]), (&[0, 1], &[0.5, 0.5, 0.9, 0.9])]
    {
        assert!(matches!(define(&mut model, scope, values), Err(Failure::Model(_))), "{scope:?}");
    }
    assert_eq!(model.factors().len(), factors);
    let mut free = Model::new(model.variables().to_vec()).unwrap();
    assert!(matches!(define(&mut free, &[0, 1], &[0.5, 0.5, 0.9, 0.9]), Err(Failure::Model(_))));
    assert!(matches!(define(&mut free, &[0, 1], &[0.5, 0.5]), Err(Failure::Model(_))));
    assert_eq!(free.definition(VariableId(1)), None);
    define(&mut free, &[0, 1], &[0.5, 0.5, 1.0, 0.0]).unwrap();
    assert_eq!(free.definition(VariableId(1)), free.factors().first());
    // Of a `BAYES` file, what sums to one is a distribution.
    let text = "BAYES\n2\n2 2\n2\n1 0\n2 0 1\n2 0.5 0.5\n4 0.1 0.9 0.2 0.9\n";
    let read = uai::read(text).unwrap();
    assert!(read.definition(VariableId(0)).is_some() && read.definition(VariableId(1)).is_none());
    assert!(uai::read(&text.replace("BAYES", "MARKOV")).unwrap().definition(VariableId(0)).is_none());
}
