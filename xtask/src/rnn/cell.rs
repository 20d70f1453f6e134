//! `cargo xtask cell`: one cell, given weights, exact values.

use anyhow::Result;
use clap::Args;
use linear_logic_rnn::document::answer;

use super::optim::text;
use super::print;

/// Options of `cell`.
#[derive(Debug, Args)]
pub(crate) struct CellArgs {
    /// A JSON object with `cell`, `sizes`, `options`, `weights`, `inputs`; - is standard input.
    #[arg(long, value_name = "FILE|-")]
    config: String,
    /// Prints only counts and warnings; needs no weights.
    #[arg(long)]
    count: bool,
    /// Prints one JSON document to standard output.
    #[arg(long)]
    json: bool,
}

/// Prints the answer; returns the exit status.
pub(crate) fn run(args: &CellArgs) -> Result<u8> {
    let answer = text(&args.config).and_then(|text| answer(&text, args.count));
    print(args.json, answer, |document| {
        serde_json::to_string_pretty(document).unwrap_or_else(|error| error.to_string()) + "\n"
    })
}
