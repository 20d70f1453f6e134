//! `ill compile`: proofs as one straight-line program.

use std::ffi::OsString;

use clap::Args;
use linear_logic::compile::{Backend, Slot, compile as compile_proofs};
use linear_logic::error::Refusal;

use crate::answer::{Answer, Failure};
use crate::denote_command::json_of;
use crate::input::Texts;

/// `ill compile`
#[derive(Debug, Args)]
pub(crate) struct Compile {
    #[command(flatten)]
    texts: Texts,
    /// The definition to compile, with formulas in braces or not.
    #[arg(long, value_name = "NAME")]
    main: Option<String>,
    /// What an argument is filled with, in order.
    #[arg(long = "slot", value_name = "JSON", allow_hyphen_values = true)]
    slots: Vec<OsString>,
    /// What operators are: matrix, vector, diagonal.
    #[arg(long, value_name = "B", default_value = "matrix")]
    backend: Backend,
}

pub(crate) fn compile(args: &Compile) -> Result<Answer, Failure> {
    if args.texts.is_empty() {
        return Err(Failure::Usage("give a FILE or `-e TEXT`".to_owned()));
    }
    let loaded = args.texts.load()?;
    let program = &loaded.program;
    let subjects = args.texts.subjects(program, args.main.as_deref())?;
    let slots =
        args.slots.iter().map(|slot| Slot::read(&json_of(slot)?)).collect::<Result<Vec<_>, Refusal>>()?;
    let plan = compile_proofs(program, &subjects, &slots, args.backend)?;
    Ok(Answer {
        order: program.order(),
        fields: plan.json(),
        text: format!("order {}\n{plan}", program.order().name()),
        warnings: loaded.warnings,
    })
}
