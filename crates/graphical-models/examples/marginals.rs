//! `cargo run --release --example marginals -- FILE.bif [NAME=STATE]...`: all marginals of a network, given evidence.
#![expect(clippy::print_stdout, reason = "an example shows what it found")]

use graphical_models::{Limits, bif};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let Some(file) = arguments.next() else { return Err("which network?".into()) };
    let model =
        bif::read(&std::fs::read_to_string(&file)?).map_err(|failure| format!("{file}: {failure}"))?;
    let mut evidence = Vec::new();
    for argument in arguments {
        let (name, state) =
            argument.split_once('=').ok_or_else(|| format!("`{argument}` is no NAME=STATE"))?;
        let id = model.find(name).ok_or_else(|| format!("there is no variable `{name}`"))?;
        let states = &model.variable(id).states;
        let at = states.iter().position(|known| known == state);
        evidence.push((id, at.ok_or_else(|| format!("`{name}` is one of {}", states.join(", ")))?));
    }
    let found = model.marginals(&evidence, &Limits::default())?;
    println!("log P(evidence) = {}", found.log_evidence);
    for (variable, of) in model.variables().iter().zip(found.of) {
        let states = variable.states.iter().zip(of);
        let states: Vec<String> = states.map(|(state, value)| format!("{state} {value:.6}")).collect();
        println!("{}: {}", variable.name, states.join(", "));
    }
    Ok(())
}
