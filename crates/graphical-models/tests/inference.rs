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

/// The sum over all states, and that of each state of each variable.
fn enumerated(model: &Model, evidence: &[(VariableId, usize)]) -> (f64, Vec<Vec<f64>>) {
    let sizes: Vec<usize> = model.variables().iter().map(|variable| variable.states.len()).collect();
    let mut of: Vec<Vec<f64>> = sizes.iter().map(|size| vec![0.0; *size]).collect();
    let mut total = 0.0;
    for mut at in 0..sizes.iter().product::<usize>() {
        let mut states = Vec::new();
        for size in &sizes {
            states.push(at % size);
            at /= size;
        }
        if evidence.iter().any(|(id, state)| states[id.0] != *state) {
            continue;
        }
        let factor = |factor: &Factor| {
            let place = factor.scope.iter().fold(0, |place, id| place * sizes[id.0] + states[id.0]);
            factor.values[place]
        };
        let weight: f64 = model.factors().iter().map(factor).product();
        total += weight;
        of.iter_mut().zip(&states).for_each(|(of, state)| of[*state] += weight);
    }
    of.iter_mut().flatten().for_each(|value| *value /= total);
    (total, of)
}

/// The product of all factors for these states, and the largest one that the evidence admits.
fn largest(model: &Model, evidence: &[(VariableId, usize)], states: &[usize]) -> (f64, f64) {
    let sizes: Vec<usize> = model.variables().iter().map(|variable| variable.states.len()).collect();
    let value = |states: &[usize]| -> f64 {
        let factor = |factor: &Factor| {
            let place = factor.scope.iter().fold(0, |place, id| place * sizes[id.0] + states[id.0]);
            factor.values[place]
        };
        model.factors().iter().map(factor).product()
    };
    assert!(evidence.iter().all(|(id, state)| states[id.0] == *state));
    let mut most = 0.0_f64;
    for mut at in 0..sizes.iter().product::<usize>() {
        let mut all = Vec::new();
        for size in &sizes {
            all.push(at % size);
            at /= size;
        }
        if evidence.iter().all(|(id, state)| all[id.0] == *state) {
            most = most.max(value(&all));
        }
    }
    (value(states), most)
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
    assert_eq!(of("0.7;", "0.6;"), (7, 1));
    assert_eq!(of("0.7;", "seven;"), (8, 18));
    assert_eq!(of("0.7;", "-0.7;"), (8, 18));
    assert_eq!(of("0.7;", "NaN;"), (8, 18));
    assert_eq!(of("  default 1, 0, 0;\n", ""), (7, 1));
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
    assert!(matches!(
        bif::read(&NETWORK.replace("probability ( A ) { table 0.25, 0.75; }", "")),
        Err(Failure::Model(_))
    ));
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
    assert!(matches!(uai::evidence("1 0 2", &model), Err(Failure::Text { line: 1, column: 5, .. })));
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
