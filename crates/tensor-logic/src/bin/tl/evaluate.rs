//! `tl run`, `explain`, `grad`, `repl`: the commands that evaluate a program.

use std::path::PathBuf;

use anyhow::bail;
use clap::Args;
use clap::error::ErrorKind;
use tensor_logic::ast::{Program, Span};
use tensor_logic::error::{Code, Report};
use tensor_logic::function::UserFunctions;
use tensor_logic::source::Source;

use crate::answer::Answer;
use crate::input::{Asked, Evaluation, File, usage};

/// `tl run`
#[derive(Debug, Args)]
pub(crate) struct Run {
    #[command(flatten)]
    file: File,
    #[command(flatten)]
    asked: Asked,
    #[command(flatten)]
    evaluation: Evaluation,
    /// Exit status 1 also on a warning.
    #[arg(long)]
    strict: bool,
}

/// `tl explain`
#[derive(Debug, Args)]
pub(crate) struct Explain {
    #[command(flatten)]
    file: File,
    #[command(flatten)]
    asked: Asked,
    #[command(flatten)]
    evaluation: Evaluation,
}

/// `tl grad`
#[derive(Debug, Args)]
pub(crate) struct Grad {
    #[command(flatten)]
    file: File,
    /// The scalar.
    #[arg(long, value_name = "GOAL")]
    of: String,
    /// The tensors by which it is differentiated [default: all parameters that it needs].
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    wrt: Vec<String>,
    /// Print the gradient program.
    #[arg(long)]
    emit: bool,
    #[command(flatten)]
    asked: Asked,
    #[command(flatten)]
    evaluation: Evaluation,
}

/// `tl repl`
#[derive(Debug, Args)]
pub(crate) struct Repl {
    /// A program to start with.
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    #[command(flatten)]
    evaluation: Evaluation,
}

/// The program with what is asked beside it, read; or the answer that refuses it.
fn read(file: &File, asked: &Asked) -> anyhow::Result<Result<(Source, Program), Answer>> {
    let mut source = file.read()?;
    asked.add_to(&mut source);
    match source.read(&UserFunctions::default()) {
        Ok(program) => match source.misuse(&program) {
            Some(message) => Err(usage(ErrorKind::ValueValidation, &message)),
            None => Ok(Ok((source, program))),
        },
        Err(errors) => Ok(Err(Answer::refused(&source, errors))),
    }
}
