//! Writes an exported folder of a small random model for each form that can be exported, for `tests/hf_parity.py`.
//!
//! `cargo run --release -p symbolic-transformer --example export_probe -- FOLDER [WIDTH]`
#![expect(clippy::print_stderr, reason = "an example says what it does")]

use std::path::Path;
use std::process::ExitCode;

use symbolic_transformer::export::{About, hf};

#[path = "../tests/it/moved.rs"]
mod moved;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let Some(folder) = arguments.next() else {
        eprintln!("usage: export_probe FOLDER [WIDTH]");
        return ExitCode::from(2);
    };
    let width = arguments.next().and_then(|w| w.parse().ok()).unwrap_or(128);
    for (name, config) in moved::variants(width) {
        let about = About { name: format!("random {name}"), ..About::default() };
        let to = Path::new(&folder).join(name);
        if let Err(refusal) =
            hf(&config, &fol::notation::Code::PLAIN, &moved::moved_weights(name, &config), &about, &to)
        {
            eprintln!("{name}: {refusal}");
            return ExitCode::FAILURE;
        }
        eprintln!("{}", to.display());
    }
    ExitCode::SUCCESS
}
