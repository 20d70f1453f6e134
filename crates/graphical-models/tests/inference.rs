//! Marginals against the sum over all states, and files that are none.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    unused_imports,
    reason = "a test whose model is refused has failed"
)]

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
