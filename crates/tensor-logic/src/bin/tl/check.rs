//! `tl check`: everything that needs no evaluation.

use clap::Args;
use serde_json::json;
use tensor_logic::function::UserFunctions;

use crate::answer::Answer;
use crate::input::File;

/// `tl check`
#[derive(Debug, Args)]
pub(crate) struct Check {
    #[command(flatten)]
    file: File,
    /// Exit status 1 also on a warning.
    #[arg(long)]
    strict: bool,
}

pub(crate) fn check(args: &Check) -> anyhow::Result<Answer> {
    let source = args.file.read()?;
    let answer = match source.read(&UserFunctions::default()) {
        Ok(_) => Answer::new(&source, json!({}), ""),
        Err(errors) => Answer::refused(&source, errors),
    };
    Ok(Answer { fails: args.strict && !answer.warnings.is_empty(), ..answer })
}
