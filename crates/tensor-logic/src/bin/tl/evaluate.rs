//! `tl run`, `explain`, `grad`, `repl`: the commands that evaluate a program.

use std::path::PathBuf;

use anyhow::bail;
use clap::Args;
use clap::error::ErrorKind;
use tensor_logic::analyse::Analysed;
use tensor_logic::answer::{json, text};
use tensor_logic::ast::Span;
use tensor_logic::error::{Code, Report};
use tensor_logic::reference::Reference;
use tensor_logic::source::Source;

use crate::answer::{Answer, Shape};
use crate::host::World;
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

/// The program with what is asked beside it.
fn source(file: &File, asked: &Asked) -> anyhow::Result<Source> {
    let mut source = file.read()?;
    asked.add_to(&mut source);
    Ok(source)
}

/// The program, read and analysed; or the answer that refuses it.
fn analysed(source: &Source, world: &mut World<'_>) -> anyhow::Result<Result<Analysed, Answer>> {
    let tree = match world.read() {
        Ok(tree) => tree,
        Err(errors) => return Ok(Err(Answer::refused(source, errors))),
    };
    if let Some(message) = source.misuse(&tree) {
        return Err(usage(ErrorKind::ValueValidation, &message));
    }
    Ok(world.analyse(tree).map_err(|errors| Answer::refused(source, errors)))
}

pub(crate) fn run(args: &Run) -> anyhow::Result<Answer> {
    args.evaluation.prepare()?;
    let source = source(&args.file, &args.asked)?;
    let mut world = World::new(&source, args.file.folder(), args.evaluation.seed);
    let mut answer = Answer::new(&source, Shape::Warnings);
    let mut file = String::new();
    json::string(&mut file, &source.file);
    answer.fields.push(("file", file));
    let analysed = match analysed(&source, &mut world)? {
        Ok(analysed) => analysed,
        Err(refused) => {
            answer.errors = refused.errors;
            answer.fields.push(("queries", "[]".to_owned()));
            return Ok(answer);
        }
    };
    let program = &analysed.program;
    let mut engine = Reference::default();
    let outcome =
        tensor_logic::run::run(program, &source.text, args.evaluation.budget(), &mut engine, &mut world);
    let mut queries = String::new();
    json::list(&mut queries, &outcome.answers, |out, answer| json::answer(out, &program.symbols, answer));
    let mut written = String::new();
    json::list(&mut written, &outcome.written, |out, file| json::string(out, file));
    answer.fields.extend([("queries", queries), ("written", written)]);
    for given in &outcome.answers {
        answer.text.push_str(&text::answer(&program.symbols, given));
        answer.text.push('\n');
    }
    answer.errors = outcome.refusal.into_iter().collect();
    answer.warnings = analysed.warnings;
    answer.warnings.extend(outcome.warnings);
    answer.warnings.sort_by_key(|report| report.span.start);
    answer.fails = args.strict && !answer.warnings.is_empty();
    Ok(answer)
}

pub(crate) fn explain(args: &Explain) -> anyhow::Result<Answer> {
    args.evaluation.prepare()?;
    not_yet(&args.file, &args.asked, args.evaluation.seed, "tl explain")
}

pub(crate) fn grad(args: &Grad) -> anyhow::Result<Answer> {
    args.evaluation.prepare()?;
    let what = format!("tl grad --of {}", args.of);
    not_yet(&args.file, &args.asked, args.evaluation.seed, &what)
}

pub(crate) fn repl(args: &Repl) -> anyhow::Result<Answer> {
    args.evaluation.prepare()?;
    bail!("`tl repl` is not built yet{}", args.file.as_ref().map_or("", |_| "; try `tl run FILE`"))
}

/// Refuses a program as it deserves, and an accepted one because the command is not built yet.
fn not_yet(file: &File, asked: &Asked, seed: u64, command: &str) -> anyhow::Result<Answer> {
    let source = source(file, asked)?;
    let mut world = World::new(&source, file.folder(), seed);
    Ok(match analysed(&source, &mut world)? {
        Ok(_) => {
            let report = Report::new(Code::NotYet, Span::default(), format!("`{command}` is not built yet"));
            Answer::refused(&source, vec![report])
        }
        Err(refused) => refused,
    })
}
