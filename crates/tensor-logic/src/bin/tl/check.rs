//! `tl check`: everything that needs no evaluation.

use clap::Args;
use tensor_logic::files::Files;
use tensor_logic::run::refusals;

use crate::answer::{Answer, Shape};
use crate::host::world;
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
    let source = args.file.program()?;
    let mut world = world(&source, Files::presence(args.file.folder()), 0);
    Ok(match world.read().and_then(|tree| world.analyse(tree)) {
        Ok(analysed) => {
            let mut answer = Answer::new(&source, Shape::Both);
            answer.errors = refusals(&analysed.program);
            answer.warnings = analysed.warnings;
            answer.fails = args.strict && !answer.warnings.is_empty();
            answer
        }
        Err(errors) => Answer::refused(&source, errors),
    })
}
