//! Messages against exact inference on trees, and against plain loops on all graphs.
#![expect(clippy::unwrap_used, reason = "a test whose model is refused has failed")]

use std::collections::HashMap;

use graphical_models::{Factor, Failure, Limits, Loopy, Model, Variable, VariableId};
use seeded::Stream;

fn variables(sizes: &[usize]) -> Model {
    let variable = |(at, size): (usize, &usize)| Variable {
        name: format!("v{at}"),
        states: (0..*size).map(|state| state.to_string()).collect(),
    };
    Model::new(sizes.iter().enumerate().map(variable).collect()).unwrap()
}

/// A table with some zeros, some numbers that are very small, and at least one number of its own.
fn table(stream: &mut Stream, scope: &[usize], sizes: &[usize], wild: bool) -> Factor {
    let cells: usize = scope.iter().map(|at| sizes[*at]).product();
    let keep = stream.below(cells as u64) as usize;
    let value = |at: usize| match stream.below(12) {
        0 if wild && at != keep => 0.0,
        1 if wild => 10.0_f64.powi(-(stream.below(150) as i32)),
        _ => stream.uniform() + 0.05,
    };
    let values = (0..cells).map(value).collect();
    Factor { scope: scope.iter().map(|at| VariableId(*at)).collect(), values }
}

/// A model without circles: a factor has one variable of those before it at most.
fn tree(stream: &mut Stream) -> Model {
    let count = 1 + stream.below(12) as usize;
    let sizes: Vec<usize> = (0..count).map(|_| 1 + stream.below(4) as usize).collect();
    let mut model = variables(&sizes);
    let mut next = 0;
    while next < count {
        let own = (1 + stream.below(3) as usize).min(count - next);
        let mut scope: Vec<usize> = (next..next + own).collect();
        if next > 0 && stream.below(6) > 0 {
            scope.push(stream.below(next as u64) as usize);
        }
        next += own;
        let order = stream.permutation(scope.len() as u32);
        let scope: Vec<usize> = order.into_iter().map(|at| scope[at as usize]).collect();
        model.multiply(table(stream, &scope, &sizes, true)).unwrap();
    }
    for at in 0..count {
        for _ in 0..stream.below(3) {
            model.multiply(table(stream, &[at], &sizes, true)).unwrap();
        }
    }
    if stream.below(4) == 0 {
        model.multiply(Factor { scope: Vec::new(), values: vec![stream.uniform()] }).unwrap();
    }
    model
}

fn evidence(stream: &mut Stream, model: &Model) -> Vec<(VariableId, usize)> {
    let mut found = Vec::new();
    for (at, variable) in model.variables().iter().enumerate() {
        if stream.below(6) == 0 {
            found.push((VariableId(at), stream.below(variable.states.len() as u64) as usize));
        }
    }
    found
}

#[test]
fn on_trees_messages_are_exact() {
    let mut stream = seeded::Family::new("graphical-models", "trees", seeded::test_seed()).stream(0);
    let (mut possible, mut impossible) = (0, 0);
    for _ in 0..1500 {
        let model = tree(&mut stream);
        let evidence = evidence(&mut stream, &model);
        let found = model.loopy(&evidence, &Loopy::default());
        match model.marginals(&evidence, &Limits::default()) {
            Ok(exact) => {
                possible += 1;
                let found = found.unwrap();
                assert!(found.at_rest && found.rounds <= 2 * model.variables().len() + 2, "{model:?}");
                let off = (found.log_evidence - exact.log_evidence).abs();
                assert!(off < 1e-8, "{} {} {model:?}", found.log_evidence, exact.log_evidence);
                for (found, exact) in found.of.iter().flatten().zip(exact.of.iter().flatten()) {
                    assert!((found - exact).abs() < 1e-9, "{found} {exact} {model:?} {evidence:?}");
                }
            }
            Err(Failure::Evidence(_)) => {
                impossible += 1;
                assert!(matches!(found, Err(Failure::Evidence(_))), "{found:?} {model:?} {evidence:?}");
            }
            Err(other) => panic!("{other}"),
        }
    }
    assert!(possible > 800 && impossible > 20, "{possible} {impossible}");
}

/// The same rounds, factor by factor and cell by cell; no variable is reduced, so no number may be 0.
fn plain(model: &Model, rounds: usize, damping: f64) -> (Vec<Vec<f64>>, f64) {
    let size = |id: VariableId| model.variable(id).states.len();
    let normal = |row: Vec<f64>| -> Vec<f64> {
        let sum: f64 = row.iter().sum();
        row.iter().map(|value| value / sum).collect()
    };
    // From each factor to each of its variables.
    let mut sent: HashMap<(usize, VariableId), Vec<f64>> = HashMap::new();
    for (at, factor) in model.factors().iter().enumerate() {
        for id in &factor.scope {
            // What a factor of one variable says is known from the start.
            let equal = vec![1.0 / size(*id) as f64; size(*id)];
            sent.insert(
                (at, *id),
                if factor.scope.len() > 1 { equal } else { normal(factor.values.clone()) },
            );
        }
    }
    // What a variable says to a factor, of what all others say; or believes, if it is none.
    let product = |sent: &HashMap<(usize, VariableId), Vec<f64>>, id: VariableId, but: usize| -> Vec<f64> {
        let mut row = vec![1.0; size(id)];
        for (at, factor) in model.factors().iter().enumerate() {
            if at != but && factor.scope.contains(&id) {
                row.iter_mut().zip(&sent[&(at, id)]).for_each(|(slot, value)| *slot *= value);
            }
        }
        normal(row)
    };
    let mut change = f64::INFINITY;
    for _ in 0..rounds {
        change = 0.0;
        let mut next = HashMap::new();
        for (at, factor) in model.factors().iter().enumerate() {
            for own in &factor.scope {
                let mut row = vec![0.0; size(*own)];
                for (cell, value) in factor.values.iter().enumerate() {
                    let (mut rest, mut weight, mut state) = (cell, *value, 0);
                    for id in factor.scope.iter().rev() {
                        if id == own {
                            state = rest % size(*id);
                        } else {
                            weight *= product(&sent, *id, at)[rest % size(*id)];
                        }
                        rest /= size(*id);
                    }
                    row[state] += weight;
                }
                let old = &sent[&(at, *own)];
                let row: Vec<f64> = normal(row)
                    .iter()
                    .zip(old)
                    .map(|(new, old)| (1.0 - damping) * new + damping * old)
                    .collect();
                if factor.scope.len() > 1 {
                    change = row.iter().zip(old).fold(change, |most, (new, old)| most.max((new - old).abs()));
                }
                next.insert(
                    (at, *own),
                    if factor.scope.len() > 1 { row } else { normal(factor.values.clone()) },
                );
            }
        }
        sent = next;
    }
    let ids = (0..model.variables().len()).map(VariableId);
    (ids.map(|id| product(&sent, id, usize::MAX)).collect(), change)
}

#[test]
fn on_all_graphs_messages_are_those_of_plain_loops() {
    let mut stream = seeded::Family::new("graphical-models", "loopy", seeded::test_seed()).stream(0);
    for turn in 0..150 {
        let count = 2 + stream.below(8) as usize;
        // One size for all makes shapes that many factors have.
        let alike = stream.below(2) == 0;
        let one = 2 + stream.below(3) as usize;
        let sizes: Vec<usize> =
            (0..count).map(|_| if alike { one } else { 2 + stream.below(3) as usize }).collect();
        let mut model = variables(&sizes);
        for at in 0..count {
            model.multiply(table(&mut stream, &[at], &sizes, false)).unwrap();
        }
        for _ in 0..stream.below(3 * count as u64) {
            let mut scope = stream.permutation(count as u32);
            scope.truncate(if alike { 2 } else { 2 + stream.below(3) as usize });
            let scope: Vec<usize> = scope.into_iter().map(|at| at as usize).collect();
            model.multiply(table(&mut stream, &scope, &sizes, false)).unwrap();
        }
        let rounds = 1 + stream.below(6) as usize;
        let damping = if turn % 3 == 0 { 0.3 } else { 0.0 };
        let (of, change) = plain(&model, rounds, damping);
        let options = Loopy { rounds, tolerance: 0.0, damping, ..Loopy::default() };
        let found = model.loopy(&[], &options).unwrap();
        if model.factors().iter().any(|factor| factor.scope.len() > 1) {
            assert!((found.change - change).abs() < 1e-10, "{turn}: {} {change}", found.change);
            assert!(found.rounds == rounds || found.change == 0.0, "{turn}");
        }
        for (found, wanted) in found.of.iter().flatten().zip(of.iter().flatten()) {
            assert!((found - wanted).abs() < 1e-10, "{turn}: {found} {wanted} {model:?}");
        }
    }
}

/// A square of variables of two states, each but the last with its neighbours to the right and below.
fn grid(stream: &mut Stream, side: usize, strength: f64) -> Model {
    let sizes = vec![2; side * side];
    let mut model = variables(&sizes);
    let mut join = |a: usize, b: usize, value: f64| {
        let scope = vec![VariableId(a), VariableId(b)];
        let values = vec![value.exp(), (-value).exp(), (-value).exp(), value.exp()];
        model.multiply(Factor { scope, values }).unwrap();
    };
    for row in 0..side {
        for column in 0..side {
            let at = row * side + column;
            if column + 1 < side {
                join(at, at + 1, strength * (2.0 * stream.uniform() - 1.0));
            }
            if row + 1 < side {
                join(at, at + side, strength * (2.0 * stream.uniform() - 1.0));
            }
        }
    }
    for at in 0..side * side {
        let value = strength * (2.0 * stream.uniform() - 1.0);
        let values = vec![value.exp(), (-value).exp()];
        model.multiply(Factor { scope: vec![VariableId(at)], values }).unwrap();
    }
    model
}

#[test]
fn grids_go_side_by_side_and_say_whether_they_rest() {
    let mut stream = seeded::Family::new("graphical-models", "grids", seeded::test_seed()).stream(0);
    for side in [3, 5, 9] {
        let model = grid(&mut stream, side, 1.0);
        let (of, _) = plain(&model, 4, 0.0);
        let options = Loopy { rounds: 4, tolerance: 0.0, ..Loopy::default() };
        let found = model.loopy(&[], &options).unwrap();
        assert!(!found.at_rest && found.rounds == 4);
        for (found, wanted) in found.of.iter().flatten().zip(of.iter().flatten()) {
            assert!((found - wanted).abs() < 1e-10, "{found} {wanted}");
        }
        // Weak couplings rest near what is exact.
        let model = grid(&mut stream, side, 0.2);
        let found = model.loopy(&[], &Loopy::default()).unwrap();
        let exact = model.marginals(&[], &Limits::default()).unwrap();
        assert!(
            found.at_rest && found.change <= 1e-9 && (found.log_evidence - exact.log_evidence).abs() < 1e-2
        );
        for (found, exact) in found.of.iter().flatten().zip(exact.of.iter().flatten()) {
            assert!((found - exact).abs() < 1e-2, "{found} {exact}");
        }
    }
    // Couplings of e^±400 leave no number as it is.
    let model = grid(&mut stream, 6, 400.0);
    let found = model.loopy(&[], &Loopy { rounds: 50, ..Loopy::default() }).unwrap();
    let sums = found.of.iter().map(|of| of.iter().sum::<f64>());
    assert!(sums.clone().all(|sum| (sum - 1.0).abs() < 1e-12) && found.log_evidence.is_finite(), "{found:?}");
}

/// A variable that a thousand factors speak to, each of them a little; and one that swings without damping.
#[test]
fn many_neighbours_and_swings() {
    let mut model = variables(&vec![2; 1001]);
    for at in 1..1001 {
        let scope = vec![VariableId(0), VariableId(at)];
        model.multiply(Factor { scope, values: vec![1e-200, 2e-200, 1.5e-200, 1.5e-200] }).unwrap();
        model.multiply(Factor { scope: vec![VariableId(at)], values: vec![0.4, 0.6] }).unwrap();
    }
    let exact = model.marginals(&[], &Limits::default()).unwrap();
    let found = model.loopy(&[], &Loopy::default()).unwrap();
    assert!(found.at_rest && (found.log_evidence / exact.log_evidence - 1.0).abs() < 1e-12);
    for (found, exact) in found.of.iter().flatten().zip(exact.of.iter().flatten()) {
        assert!((found - exact).abs() < 1e-9, "{found} {exact}");
    }
    // Three that all want to differ, one of them with a will: an odd circle.
    let mut model = variables(&[2; 4]);
    for (a, b) in [(0, 1), (1, 2), (2, 3), (3, 0), (0, 2), (1, 3)] {
        let scope = vec![VariableId(a), VariableId(b)];
        model.multiply(Factor { scope, values: vec![0.01, 1.0, 1.0, 0.01] }).unwrap();
    }
    model.multiply(Factor { scope: vec![VariableId(0)], values: vec![0.6, 0.4] }).unwrap();
    let swinging = model.loopy(&[], &Loopy { rounds: 500, ..Loopy::default() }).unwrap();
    assert!(!swinging.at_rest && swinging.change > 0.1, "{swinging:?}");
    let damped = model.loopy(&[], &Loopy { damping: 0.5, rounds: 5000, ..Loopy::default() }).unwrap();
    assert!(damped.at_rest, "{damped:?}");
}

#[test]
fn what_is_refused() {
    let model = grid(&mut seeded::Family::named("refused").stream(0), 3, 1.0);
    let of = |options: Loopy| model.loopy(&[], &options);
    for damping in [1.0, -0.1, f64::NAN] {
        assert!(matches!(of(Loopy { damping, ..Loopy::default() }), Err(Failure::Question(_))));
    }
    for tolerance in [-1e-9, f64::NAN] {
        assert!(matches!(of(Loopy { tolerance, ..Loopy::default() }), Err(Failure::Question(_))));
    }
    let limits = Limits { bytes: 100.0, ..Limits::default() };
    assert!(matches!(of(Loopy { limits, ..Loopy::default() }), Err(Failure::Memory { .. })));
    let none = of(Loopy { rounds: 0, ..Loopy::default() }).unwrap();
    assert!(!none.at_rest && none.rounds == 0);
    let twice = [(VariableId(0), 0), (VariableId(0), 0)];
    assert!(matches!(model.loopy(&twice, &Loopy::default()), Err(Failure::Evidence(_))));
    let empty = Model::default().loopy(&[], &Loopy::default()).unwrap();
    assert!(empty.at_rest && empty.of.is_empty() && empty.log_evidence == 0.0);
}
