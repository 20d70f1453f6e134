//! Formulas of about a size, drawn node by node, and how many nodes a second that is. Run it with
//! `cargo run --release -p fol --example boltzmann [NODES [SCOPE]]`.
#![expect(clippy::print_stdout, reason = "it shows what it measured")]

use std::time::Instant;

use fol::law::Law;
use fol::sample::{Sampler, family};

const TEXTS: u64 = 20_000;

fn main() -> Result<(), fol::error::Refusal> {
    let mut arguments = std::env::args().skip(1);
    let mut changes =
        vec![("names".to_owned(), "canonical".to_owned()), ("max_tokens".into(), "1000000".into())];
    for key in ["nodes", "scope"] {
        changes.extend(arguments.next().map(|value| (key.to_owned(), value)));
    }
    let mut sampler = Sampler::new(&Law::named("boltzmann", &changes)?)?;
    let (streams, begin) = (family("sample", 0), Instant::now());
    let mut tokens = Vec::new();
    let nodes: u64 =
        (0..TEXTS).map(|item| u64::from(sampler.sample(&mut streams.stream(item), &mut tokens).nodes)).sum();
    let seconds = begin.elapsed().as_secs_f64();
    println!(
        "{TEXTS} formulas, {:.1} nodes each, {:.2} million nodes a second",
        nodes as f64 / TEXTS as f64,
        nodes as f64 / seconds / 1e6
    );
    Ok(())
}
