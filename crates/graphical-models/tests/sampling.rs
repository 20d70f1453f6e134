//! Samples against exact inference, by their own standard errors.
#![expect(clippy::unwrap_used, reason = "a test whose model is refused has failed")]

use graphical_models::{Factor, Failure, Limits, Model, Sampled, Sampling, Variable, VariableId, bif};
use seeded::Stream;

/// A random Bayesian network: a variable has parents among those before it in a random order, so that no number says which
/// comes first. Some rows have zeros, and some do not quite sum to one.
fn network(stream: &mut Stream, count: usize, most: u64) -> Model {
    let sizes: Vec<usize> = (0..count).map(|_| 1 + stream.below(most) as usize).collect();
    let variable = |(at, size): (usize, &usize)| Variable {
        name: format!("v{at}"),
        states: (0..*size).map(|state| state.to_string()).collect(),
    };
    let mut model = Model::new(sizes.iter().enumerate().map(variable).collect()).unwrap();
    let order: Vec<usize> = stream.permutation(count as u32).into_iter().map(|at| at as usize).collect();
    let mut tables = Vec::new();
    for (nth, own) in order.iter().enumerate() {
        let mut before: Vec<usize> =
            stream.permutation(nth as u32).into_iter().map(|at| order[at as usize]).collect();
        before.truncate(stream.below(4) as usize);
        let rows: usize = before.iter().map(|at| sizes[*at]).product();
        let mut values = Vec::new();
        for _ in 0..rows {
            let mut row: Vec<f64> = (0..sizes[*own]).map(|_| stream.uniform()).collect();
            let keep = stream.below(sizes[*own] as u64) as usize;
            for (at, value) in row.iter_mut().enumerate() {
                *value = if at != keep && stream.below(4) == 0 { 0.0 } else { *value + 0.05 };
            }
            let whole = if stream.below(8) == 0 { 0.9992 } else { 1.0 };
            let sum: f64 = row.iter().sum();
            values.extend(row.iter().map(|value| value / sum * whole));
        }
        let scope = before.iter().chain([own]).map(|at| VariableId(*at)).collect();
        tables.push(Factor { scope, values });
    }
    // Nor does the order of the tables.
    for at in stream.permutation(count as u32) {
        model.define(tables[at as usize].clone()).unwrap();
    }
    model
}

/// States that occur together, for evidence that is possible.
fn evidence(stream: &mut Stream, model: &Model, share: u64) -> Vec<(VariableId, usize)> {
    let (states, _) = model.most_probable(&[], &Limits::default()).unwrap();
    let seen = states.iter().enumerate().filter(|_| stream.below(share) == 0);
    seen.map(|(at, state)| (VariableId(at), *state)).collect()
}

#[test]
fn estimates_are_off_by_their_standard_errors() {
    let mut stream = seeded::Family::new("graphical-models", "sampling", 1).stream(0);
    let (mut squares, mut tried, mut far, mut weighted) = (0.0, 0.0, 0, 0);
    for turn in 0..120 {
        let (count, most) = if turn % 10 == 0 { (3, 300) } else { (2 + stream.below(7) as usize, 12) };
        let model = network(&mut stream, count, most);
        let evidence = if turn % 3 == 0 { Vec::new() } else { evidence(&mut stream, &model, 4) };
        weighted += usize::from(!evidence.is_empty());
        let exact = model.marginals(&evidence, &Limits::default()).unwrap();
        let sampling =
            Sampling { samples: 20_000 + stream.below(3000), seed: turn, threads: 2, ..Sampling::default() };
        let found = model.sample_forward(&evidence, &sampling).unwrap();
        let log = (found.log_evidence - exact.log_evidence).abs();
        assert!(log <= 5.0 * found.log_evidence_error + 1e-9, "{turn}: {log} {found:?}");
        for (found, exact) in found.of.iter().flatten().zip(exact.of.iter().flatten()) {
            let off = (found.probability - exact).abs();
            if *exact < 1e-12 {
                assert_eq!(found.probability, 0.0, "{turn}: an impossible state");
            } else if *exact > 1.0 - 1e-12 {
                assert!(off < 1e-12, "{turn}");
            } else if (0.02..0.98).contains(exact) {
                let z = off / found.standard_error;
                (squares, tried) = (squares + z * z, tried + 1.0);
                far += usize::from(z > 4.0);
            }
        }
    }
    // Standard errors that are too small or too large would show in the mean of their squares.
    let mean = squares / tried;
    assert!((0.85..1.15).contains(&mean) && far < 3, "{mean} {far} of {tried}");
    assert!(tried > 1000.0 && weighted > 40, "{tried} {weighted}");
}

/// Every number of it.
fn bits(found: &Sampled) -> Vec<u64> {
    let each = found.of.iter().flatten().flat_map(|own| [own.probability, own.standard_error]);
    each.chain([found.log_evidence, found.log_evidence_error, found.effective]).map(f64::to_bits).collect()
}

#[test]
fn any_number_of_threads_gives_the_same_bits() {
    let mut stream = seeded::Family::new("graphical-models", "threads", seeded::test_seed()).stream(0);
    for seed in 0..6 {
        let model = network(&mut stream, 6, 5);
        let evidence = if seed % 2 == 0 { Vec::new() } else { evidence(&mut stream, &model, 3) };
        for samples in [1, 1000, 1025, 200_000 + seed] {
            let of = |seed, threads| {
                model
                    .sample_forward(&evidence, &Sampling { samples, seed, threads, ..Sampling::default() })
                    .map(|found| bits(&found))
            };
            let one = of(seed, 1);
            for threads in [0, 2, 3, 7] {
                assert_eq!(of(seed, threads), one, "{samples} {threads}");
            }
            if samples > 1000
                && evidence.is_empty()
                && model.variables().iter().any(|own| own.states.len() > 1)
            {
                assert_ne!(of(seed + 1, 1), one);
            }
        }
    }
}

const RARE: &str = "network n {}
variable A { type discrete [ 2 ] { no, yes }; }
variable B { type discrete [ 2 ] { no, yes }; }
probability ( A ) { table 0.5, 0.5; }
probability ( B | A ) { (no) 1, 0; (yes) 1, 1e-300; }
";

#[test]
fn what_cannot_be_sampled_is_refused() {
    let mut model = bif::read(RARE).unwrap();
    let [a, b] = [VariableId(0), VariableId(1)];
    let sampling = Sampling { samples: 5000, ..Sampling::default() };
    // However small a weight is, it is one.
    let found = model.sample_forward(&[(b, 1)], &sampling).unwrap();
    assert_eq!(found.of[a.0][1].probability, 1.0);
    assert!((found.log_evidence - (0.5e-300_f64).ln()).abs() < 0.1);
    assert!((found.effective / 2500.0 - 1.0).abs() < 0.1);
    let refused = |model: &Model, evidence: &[(VariableId, usize)]| model.sample_forward(evidence, &sampling);
    assert!(matches!(refused(&model, &[(a, 0), (b, 1)]), Err(Failure::Evidence(_))));
    for evidence in [&[(b, 2)][..], &[(VariableId(2), 0)], &[(a, 0), (a, 0)]] {
        assert!(matches!(refused(&model, evidence), Err(Failure::Evidence(_))), "{evidence:?}");
    }
    let none = Sampling { samples: 0, ..sampling };
    assert!(matches!(model.sample_forward(&[], &none), Err(Failure::Question(_))));
    model.multiply(Factor { scope: vec![a], values: vec![1.0, 2.0] }).unwrap();
    assert!(matches!(refused(&model, &[]), Err(Failure::Model(_))));
    let circle = RARE.replace("( A ) { table 0.5, 0.5; }", "( A | B ) { (no) 0.5, 0.5; (yes) 1, 0; }");
    let Err(Failure::Text { line: 4, column: 1, message }) = bif::read(&circle) else { panic!("a circle") };
    assert_eq!(message, "the distributions go in a circle: `A` -> `B` -> `A`");
    let mut round = Model::new(model.variables().to_vec()).unwrap();
    round.define(Factor { scope: vec![a, b], values: vec![0.5, 0.5, 1.0, 0.0] }).unwrap();
    round.define(Factor { scope: vec![b, a], values: vec![0.5, 0.5, 1.0, 0.0] }).unwrap();
    assert!(matches!(refused(&round, &[]), Err(Failure::Model(_))));
    let mut free = Model::new(model.variables().to_vec()).unwrap();
    assert!(matches!(refused(&free, &[]), Err(Failure::Model(_))));
    free.multiply(Factor { scope: vec![a, b], values: vec![0.5, 0.5, 0.5, 0.5] }).unwrap();
    assert!(matches!(refused(&free, &[]), Err(Failure::Model(_))));
    let small = Sampling { limits: Limits { bytes: 1e4, ..Limits::default() }, ..sampling };
    let model = bif::read(RARE).unwrap();
    assert!(matches!(model.sample_forward(&[], &small), Err(Failure::Memory { .. })));
    assert!(
        model
            .sample_forward(&[], &Sampling { limits: Limits { cells: 0.0, bytes: 1e5 }, ..sampling })
            .is_ok()
    );
    let empty = Model::default().sample_forward(&[], &sampling).unwrap();
    assert_eq!((empty.of.len(), empty.log_evidence), (0, 0.0));
}
