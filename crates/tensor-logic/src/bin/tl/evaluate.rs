//! `tl run`, `explain`, `grad`, `repl`: the commands that evaluate a program.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;
use clap::error::ErrorKind;
use tensor_logic::analyse::Analysed;
use tensor_logic::answer::{Answer as Shown, Content, json, text};
use tensor_logic::console::Console;
use tensor_logic::engine::{Engine, is_interrupted};
use tensor_logic::error::{Code, Refusal};
use tensor_logic::explain::explain as explain_program;
use tensor_logic::files::Files;
use tensor_logic::gradient::evaluate::{Gradients, differentiated, gradients, with_respect_to};
use tensor_logic::notebook::Notebook;
use tensor_logic::plan::plan;
use tensor_logic::profile::Profile;
use tensor_logic::program::{Kind, Program};
use tensor_logic::run::{missing_data, rounded};
use tensor_logic::source::Source;
use tensor_logic::world::World;

use crate::answer::{Answer, Shape};
use crate::dataflow::{Derived, Workers};
use crate::host::{Bar, world};
use crate::input::{Asked, Evaluation, File, usage};
use crate::interrupt::Interrupt;
use crate::keeping::Keeping;
use crate::pictures::Pictures;

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
    /// Say behind the answers where the time went.
    #[arg(long)]
    profile: bool,
    #[command(flatten)]
    pictures: Pictures,
    #[command(flatten)]
    keeping: Keeping,
    #[command(flatten)]
    workers: Workers,
}

/// `tl explain`
#[derive(Debug, Args)]
pub(crate) struct Explain {
    #[command(flatten)]
    file: File,
    /// Answer the queries too, write nothing, and say what was measured beside what was estimated.
    #[arg(long)]
    measure: bool,
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
    /// Where the lines of a terminal are remembered [default: tl/history below $XDG_STATE_HOME or ~/.local/state].
    #[arg(long, value_name = "FILE")]
    history: Option<PathBuf>,
    #[command(flatten)]
    evaluation: Evaluation,
}

/// The program with what is asked beside it.
pub(crate) fn source(file: &File, asked: &Asked) -> anyhow::Result<Source> {
    let mut source = file.program()?;
    asked.add_to(&mut source);
    Ok(source)
}

/// The program, read and analysed; or the answer that refuses it.
pub(crate) fn analysed(source: &Source, world: &mut World<'_>) -> anyhow::Result<Result<Analysed, Answer>> {
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
    let (mut answer, profile, total) = ran(args, args.profile)?;
    if args.profile {
        crate::profile::add(&mut answer, &profile, total);
    }
    Ok(answer)
}

/// Runs a program; with `observed` the engine notes what it does. How long all of it took stands beside.
pub(crate) fn ran(args: &Run, observed: bool) -> anyhow::Result<(Answer, Profile, Duration)> {
    let since = Instant::now();
    if observed {
        args.evaluation.keeps_notes()?;
    }
    args.pictures.check()?;
    args.evaluation.prepare(true)?;
    let source = source(&args.file, &args.asked)?;
    let bar = Bar::default();
    let mut world = bar.world(&source, Files::new(args.file.folder()), args.evaluation.seed);
    if let Some(checkpoints) = args.keeping.checkpoints(&args.evaluation, |told| bar.say(told)) {
        world = world.with_checkpoints(checkpoints);
    }
    let mut answer = Answer::new(&source, Shape::Warnings);
    let mut file = String::new();
    json::string(&mut file, &source.file);
    answer.fields.push(("file", file));
    let analysed = match analysed(&source, &mut world)? {
        Ok(analysed) => analysed,
        Err(refused) => {
            answer.errors = refused.errors;
            answer.fields.push(("queries", "[]".to_owned()));
            return Ok((answer, Profile::default(), since.elapsed()));
        }
    };
    let program = &analysed.program;
    let context = format!("{}{:?}", source.text, args.asked);
    let mut engine = match args.workers.engine(program, &context, &args.evaluation)? {
        Derived::Here(engine) => engine,
        Derived::Elsewhere(notice) => {
            answer.notice = notice;
            answer.fields.push(("queries", "[]".to_owned()));
            return Ok((answer, Profile::default(), since.elapsed()));
        }
        Derived::Refused { refusal, file } => {
            if let Some(source) = file {
                let source = *source;
                (answer.file, answer.program) = (source.file, source.text);
            }
            answer.errors.push(*refusal);
            answer.fields.push(("queries", "[]".to_owned()));
            return Ok((answer, Profile::default(), since.elapsed()));
        }
    };
    engine.observe(observed);
    let interrupt = args.keeping.watch(engine.as_mut())?;
    let mut work = || {
        tensor_logic::run::run(program, &source.text, args.evaluation.budget(), engine.as_mut(), &mut world)
    };
    let outcome = match &interrupt {
        Some(interrupt) => interrupt.during(work),
        None => work(),
    };
    if outcome.refusal.as_ref().is_some_and(is_interrupted) {
        answer.interrupted = interrupt.as_ref().map(Interrupt::status);
    }
    let mut queries = String::new();
    json::list(&mut queries, &outcome.answers, |out, answer| json::answer(out, &program.symbols, answer));
    let mut written = String::new();
    json::list(&mut written, &outcome.written, |out, file| json::string(out, file));
    answer.fields.extend([("queries", queries), ("written", written)]);
    for given in &outcome.answers {
        answer.text.push_str(&text::answer(&program.symbols, given));
        answer.text.push('\n');
    }
    let (observations, took) = (engine.observed().unwrap_or_default(), since.elapsed());
    if answer.interrupted.is_none() {
        engine.observe(false);
        let evaluator: &mut dyn Engine = engine.as_mut();
        let evaluator = (evaluator, args.evaluation.budget());
        match args.pictures.drawn(&source, program, evaluator, &outcome) {
            Ok(said) => answer.notice = said,
            Err(error) => {
                // What was answered is printed all the same.
                answer.notice = error.to_string();
                answer.fails = true;
            }
        }
    }
    answer.errors = outcome.refusal.into_iter().collect();
    answer.warnings = analysed.warnings;
    answer.warnings.extend(outcome.warnings);
    answer.warnings.sort_by_key(|report| report.span.start);
    answer.fails |= args.strict && !answer.warnings.is_empty();
    Ok((answer, observations, took))
}

pub(crate) fn explain(args: &Explain) -> anyhow::Result<Answer> {
    args.evaluation.prepare(true)?;
    let mut source = source(&args.file, &args.asked)?;
    if args.measure {
        args.evaluation.keeps_notes()?;
        source.write_nothing();
    }
    let mut world = world(&source, Files::new(args.file.folder()), args.evaluation.seed);
    let analysed = match analysed(&source, &mut world)? {
        Ok(analysed) => analysed,
        Err(refused) => return Ok(refused),
    };
    let program = &analysed.program;
    let mut answer = Answer::new(&source, Shape::Bare);
    answer.warnings = analysed.warnings;
    let plan = match plan(program, &args.evaluation.fast(), args.evaluation.budget()) {
        Ok(plan) => plan,
        Err(refusal) => {
            answer.errors.push(refusal);
            return Ok(answer);
        }
    };
    let mut explanation = explain_program(program, &source.text).with_plan(&plan);
    let measured;
    if args.measure {
        let mut engine = args.evaluation.engine();
        engine.observe(true);
        let budget = args.evaluation.budget();
        let outcome = tensor_logic::run::run(program, &source.text, budget, engine.as_mut(), &mut world);
        answer.errors.extend(outcome.refusal);
        measured = engine.observed().unwrap_or_default();
        explanation = explanation.with_measured(&measured);
    }
    answer.fields = explanation.fields();
    answer.text = explanation.text();
    Ok(answer)
}

pub(crate) fn grad(args: &Grad) -> anyhow::Result<Answer> {
    args.evaluation.prepare(true)?;
    let mut source = source(&args.file, &args.asked)?;
    source.ask(&format!("{}?", args.of));
    let mut world = world(&source, Files::new(args.file.folder()), args.evaluation.seed);
    let analysed = match analysed(&source, &mut world)? {
        Ok(analysed) => analysed,
        Err(refused) => return Ok(refused),
    };
    let mut answer = Answer::new(&source, Shape::Warnings);
    answer.warnings = analysed.warnings;
    match gradients_of(&analysed.program, &args.wrt, &args.evaluation) {
        Ok(found) if args.emit => match found.adjoint.emit() {
            Ok(text) => {
                let mut quoted = String::new();
                json::string(&mut quoted, &text);
                answer.fields = vec![("text", quoted)];
                answer.text = text;
            }
            Err(report) => answer.errors.push(report),
        },
        Ok(found) => {
            let asked = differentiated(&analysed.program).ok().filter(|_| !found.value.is_finite());
            answer.warnings.extend(asked.map(|goal| {
                let message =
                    format!("`{}` is {}: its gradients are of what is no number", args.of, found.value);
                Refusal::new(Code::NonFinite, analysed.program.left_side(goal), message)
            }));
            show(&mut answer, &args.of, &analysed.program, &found);
        }
        Err(report) => answer.errors.push(report),
    }
    Ok(answer)
}

/// The gradients of the last query's answer.
fn gradients_of(program: &Program, wrt: &[String], evaluation: &Evaluation) -> Result<Gradients, Refusal> {
    let goal = differentiated(program)?;
    missing_data(program, goal)?;
    rounded(program, goal)?;
    let wrt = with_respect_to(program, goal, wrt)?;
    let mut engine: Box<dyn Engine> = evaluation.engine();
    gradients(engine.as_mut(), program, evaluation.budget(), goal, &wrt)
}

/// The document of `tl grad`, and its text.
fn show(answer: &mut Answer, of: &str, program: &Program, found: &Gradients) {
    let (mut goal, mut value, mut list) = (String::new(), String::new(), String::new());
    json::string(&mut goal, of);
    json::real(&mut value, found.value);
    json::list(&mut list, &found.gradients, |out, (name, content)| {
        out.push_str("{\"tensor\": ");
        json::string(out, name);
        gradient(out, program, content);
        out.push('}');
    });
    // What JSON has no number for stands in quotes there.
    answer.text = format!("{of}\n  {}\n", value.trim_matches('"'));
    for (name, content) in &found.gradients {
        let shown = Shown {
            text: format!("d{of}/d{name}"),
            line: 0,
            kind: Kind::Real,
            content: content.clone(),
            counts: None,
            minimize: None,
            sample: None,
            embed: None,
            explain: None,
        };
        answer.text.push_str(&text::answer(&program.symbols, &shown));
        answer.text.push('\n');
    }
    let mut equations = String::new();
    json::list(&mut equations, found.adjoint.equations(), |out, equation| json::string(out, &equation));
    answer.fields = vec![("of", goal), ("value", value), ("gradients", list), ("equations", equations)];
}

/// The keys of one gradient behind its name.
fn gradient(out: &mut String, program: &Program, content: &Content) {
    match content {
        Content::Scalar(value) => {
            out.push_str(", \"value\": ");
            json::real(out, value.unwrap_or(0.0));
        }
        Content::Tensor { domains, values, .. } => {
            out.push_str(", \"domains\": ");
            json::list(out, domains, |out, domain| json::domain(out, &program.symbols, domain));
            out.push_str(", \"values\": ");
            json::nested(out, domains, json::Figures { kind: Kind::Real, values, counts: None });
        }
        Content::Relation { tuples, values, .. } => {
            out.push_str(", \"tuples\": ");
            json::tuples(out, &program.symbols, tuples);
            out.push_str(", \"values\": ");
            json::list(out, values.as_deref().unwrap_or(&[]), |out, value| json::real(out, *value));
        }
    }
}

pub(crate) fn repl(args: &Repl) -> anyhow::Result<Answer> {
    args.evaluation.prepare(false)?;
    let mut notebook = Notebook::new("");
    args.evaluation.settle(&mut notebook);
    let interrupt = Interrupt::watch(&Interrupt::KEY)?;
    notebook.stop_when(interrupt.flag());
    crate::repl::talk(Console::new(notebook), args.file.as_deref(), &interrupt, args.history.as_deref())?;
    Ok(Answer::default())
}
