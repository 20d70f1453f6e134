//! `ill completions`: what a shell needs to complete the words of the command.

use clap::{Args, Command};
use clap_complete::{Shell, generate};
use linear_logic::literal::Order;
use serde_json::json;

use crate::answer::Answer;

/// `ill completions`
#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// The shell.
    #[arg(value_enum)]
    shell: Shell,
}

pub(crate) fn completions(args: &Completions, command: &mut Command) -> Answer {
    let mut script = Vec::new();
    generate(args.shell, command, "ill", &mut script);
    let text = String::from_utf8_lossy(&script).trim_end().to_owned();
    let fields = json!({ "shell": args.shell.to_string(), "script": text });
    Answer { order: Order::default(), fields, text, warnings: Vec::new() }
}
