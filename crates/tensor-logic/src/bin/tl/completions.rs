//! `tl completions`: the script by which a shell completes the command, made from its definition.

use clap::Args;
use clap_complete::{Shell, generate};
use tensor_logic::answer::json;

use crate::answer::Answer;

/// `tl completions`
#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// Which shell.
    #[arg(value_enum)]
    shell: Shell,
}

pub(crate) fn completions(args: &Completions, mut command: clap::Command) -> Answer {
    let mut script = Vec::new();
    generate(args.shell, &mut command, "tl", &mut script);
    let text = String::from_utf8_lossy(&script).into_owned();
    let mut quoted = String::new();
    json::string(&mut quoted, &text);
    Answer { fields: vec![("text", quoted)], text, ..Answer::default() }
}
