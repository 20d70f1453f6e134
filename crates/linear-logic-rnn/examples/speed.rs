#![allow(clippy::all, clippy::unwrap_used, clippy::print_stdout, clippy::allow_attributes_without_reason)]
use linear_logic_rnn::{cell::Cell, engine::*, options::*};
use std::time::Instant;
fn run(
    name: &str,
    kind: &str,
    sizes: serde_json::Value,
    options: serde_json::Value,
    length: usize,
    batch: usize,
) {
    let cell = Cell::new(
        kind.parse().unwrap(),
        &serde_json::from_value(sizes).unwrap(),
        &Options::read(&options).unwrap(),
    )
    .unwrap();
    let theta = cell.layout().initialise(1);
    let mut e = Engine::new(cell.step.clone(), &theta);
    let tokens: Vec<u32> = (0..length * batch).map(|i| ((i * 7919 / 13) % cell.step.input) as u32).collect();
    let targets: Vec<u32> = tokens.clone();
    let mask = vec![true; length * batch];
    let mut g = vec![0.0f32; theta.len()];
    let s = Sequences { inputs: Inputs::Tokens(&tokens), length, count: batch };
    let mut best = f64::MAX;
    let mut all = vec![];
    for _ in 0..50 {
        let t = Instant::now();
        e.set(&theta);
        e.gradient(s, Objective::CrossEntropy(Targets { classes: &targets, mask: &mask }), &mut g);
        let s = t.elapsed().as_secs_f64();
        best = best.min(s);
        all.push(s);
    }
    all.sort_by(f64::total_cmp);
    println!(
        "{name}: {} weights, best {:.3} ms, median {:.3} ms, {:.0} seq-steps/s (median)",
        theta.len(),
        best * 1e3,
        all[25] * 1e3,
        (length * batch) as f64 / all[25]
    );
}
fn main() {
    rayon::ThreadPoolBuilder::new().num_threads(1).build_global().unwrap();
    let j = |s: &str| serde_json::from_str(s).unwrap();
    for b in [32, 1000] {
        run(
            "ll-authors",
            "ll",
            j(r#"{"input":2,"hidden":25,"aux":5,"output":2,"readout":0}"#),
            j(r#"{"preset":"coded","lambda":[1,2]}"#),
            15,
            b,
        );
        run("lstm", "lstm", j(r#"{"input":2,"hidden":16,"output":2,"readout":0}"#), j("{}"), 32, b);
    }
    run(
        "state full",
        "ll",
        j(r#"{"input":5,"hidden":12,"aux":12,"output":5,"readout":0}"#),
        j(r#"{"preset":"stable","lambda":[1,2],"pi":["0","10"]}"#),
        16,
        128,
    );
    run(
        "ntm",
        "ntm",
        j(r#"{"input":10,"hidden":100,"addresses":128,"content":20,"output":10}"#),
        j("{}"),
        58,
        250,
    );
}
