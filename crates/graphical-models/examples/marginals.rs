//! `cargo run --release --example marginals -- FILE.bif...`: the time of all marginals of networks, without and with evidence.

use std::time::Instant;

use graphical_models::{Limits, Model, VariableId, bif};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    for file in std::env::args().skip(1) {
        let text = String::from_utf8_lossy(&std::fs::read(&file)?).into_owned();
        let model = bif::read(&text)?;
        let evidence = evidence(&model);
        for evidence in [&[], evidence.as_slice()] {
            let mut times = Vec::new();
            let mut found = None;
            while times.len() < 5 && times.iter().sum::<f64>() < 2.0 {
                let since = Instant::now();
                found = Some(model.marginals(evidence, &Limits::default())?);
                times.push(since.elapsed().as_secs_f64() * 1e3);
            }
            times.sort_by(f64::total_cmp);
            let log = found.map_or(f64::NAN, |found| found.log_evidence);
            println!("{file} {:.3} ms, log P(e) {log:.10}", times[times.len() / 2]);
        }
    }
    Ok(())
}

/// Every tenth variable by name in its most probable state, given the states so found of its parents.
fn evidence(model: &Model) -> Vec<(VariableId, usize)> {
    let count = model.variables().len();
    let mut state: Vec<Option<usize>> = vec![None; count];
    while state.contains(&None) {
        for factor in model.factors() {
            let Some((own, parents)) = factor.scope.split_last() else { continue };
            let known: Option<Vec<usize>> = parents.iter().map(|id| state[id.0]).collect();
            let (Some(known), None) = (known, state[own.0]) else { continue };
            let size = |id: &VariableId| model.variable(*id).states.len();
            let row = parents.iter().zip(known).fold(0, |row, (id, state)| row * size(id) + state);
            let row = &factor.values[row * size(own)..(row + 1) * size(own)];
            let mut best = 0;
            (0..row.len()).for_each(|at| best = if row[at] > row[best] + 1e-15 { at } else { best });
            state[own.0] = Some(best);
        }
    }
    let mut names: Vec<usize> = (0..count).collect();
    names.sort_by(|a, b| model.variables()[*a].name.cmp(&model.variables()[*b].name));
    names.into_iter().step_by(10).map(|at| (VariableId(at), state[at].unwrap_or(0))).collect()
}
