//! `cargo xtask optim`: the weights after each update of an optimiser, in f64.

use std::io::Read;

use anyhow::Result;
use clap::Args;
use linear_logic_rnn::error::Refusal;
use linear_logic_rnn::optimiser;
use serde_json::Value;

use super::{print, spaced};

/// Options of `optim`.
#[derive(Debug, Args)]
pub(crate) struct OptimArgs {
    /// A JSON object with `optimizer`, its keys, `param` and `grads`; - is standard input.
    #[arg(long, value_name = "FILE|-")]
    config: String,
    /// Prints one JSON document to standard output.
    #[arg(long)]
    json: bool,
}

/// Prints the weights; returns the exit status.
pub(crate) fn run(args: &OptimArgs) -> Result<u8> {
    let answer = document(&args.config).and_then(|document| optimiser::trace(&document));
    print(args.json, answer, |document| {
        let rows = document.get("params").and_then(Value::as_array).into_iter().flatten();
        rows.map(|row| spaced(Some(row)) + "\n").collect()
    })
}

/// The text of a file, or of standard input.
pub(super) fn text(name: &str) -> Result<String, Refusal> {
    let mut bytes = Vec::new();
    let read = match name {
        "-" => std::io::stdin().read_to_end(&mut bytes).map(|_| ()),
        path => std::fs::read(path).map(|found| bytes = found),
    };
    read.map_err(|e| Refusal::config(format!("{name}: {e}")))?;
    String::from_utf8(bytes).map_err(|e| Refusal::config(format!("{name}: not UTF-8: {e}")))
}

fn document(name: &str) -> Result<Value, Refusal> {
    linear_logic_rnn::document::read_json(&text(name)?)
        .map_err(|why| Refusal::config(format!("{name}: {}", why.message)))
}
