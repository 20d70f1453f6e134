//! The command `tl`: tensor logic from the shell.
//!
//! Each command is a struct of arguments and a function from it to an [`Answer`],
//! in a file of its own; here they are only listed. Exit status: 0 if the program is accepted, 1
//! if it is refused, 2 for wrong usage.

mod answer;
mod check;
mod completions;
mod dataflow;
mod evaluate;
mod fmt;
mod history;
mod host;
mod import;
mod input;
mod interrupt;
mod keeping;
mod pictures;
mod profile;
mod query;
mod repl;
mod watch;

use std::process::ExitCode;

use answer::{Answer, Early};
use calculemus_base::allocator::{Allocator, keep_freed_memory};
use calculemus_base::process::{exit, on_stack_of};
use clap::{CommandFactory, Parser, Subcommand};

// A step of learning on few numbers takes a tenth less time than with the system's allocator, which also maps and unmaps large
// arrays.
#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

/// Tensor logic: one equation language for relations, neural networks and probability.
#[derive(Debug, Parser)]
#[command(name = "tl", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    /// Print one JSON document.
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Evaluate all queries of a program, and write its files.
    Run(evaluate::Run),
    /// Keep the answers of a program up to date while facts come and go (a build with `--features timely`).
    Watch(watch::Watch),
    /// Everything that needs no evaluation.
    Check(check::Check),
    /// The canonical form of a program.
    Fmt(fmt::Fmt),
    /// Domains, classes, equations with their sums, plans.
    Explain(evaluate::Explain),
    /// Run a program, and say where the time went.
    Profile(profile::ProfileOf),
    /// The value and the gradients of a scalar.
    Grad(evaluate::Grad),
    /// Ask a graphical model, of a `.bif` or `.uai` file.
    Query(query::Query),
    /// Make relations and a program of a data set of graphs, in the text format of TUDataset.
    Import(import::Import),
    /// One statement a line; queries answer at once.
    Repl(evaluate::Repl),
    /// What a shell needs to complete this command.
    Completions(completions::Completions),
}

impl Command {
    fn run(self, json: bool) -> anyhow::Result<Answer> {
        match self {
            Self::Run(args) => evaluate::run(&args),
            Self::Watch(args) => watch::watch(&args, json),
            Self::Check(args) => check::check(&args),
            Self::Fmt(args) => fmt::fmt(&args),
            Self::Explain(args) => evaluate::explain(&args),
            Self::Profile(args) => profile::profile(&args),
            Self::Grad(args) => evaluate::grad(&args),
            Self::Query(args) => query::query(&args),
            Self::Import(args) => import::import(&args),
            Self::Repl(args) => evaluate::repl(&args),
            Self::Completions(args) => Ok(completions::completions(&args, Cli::command())),
        }
    }
}

/// Programs may be nested 256 deep, and each stage walks them by recursion: an address space that
/// is only touched where it is needed.
const STACK: usize = 256 << 20;

fn main() -> ExitCode {
    keep_freed_memory();
    let cli = Cli::parse();
    let json = cli.json;
    if json && matches!(cli.command, Command::Repl(_)) {
        let why = "`tl repl` answers line by line: --json does not belong to it\n";
        Cli::command().error(clap::error::ErrorKind::ArgumentConflict, why).exit();
    }
    let early = |error: anyhow::Error| error.downcast::<Early>().map(|early| early.0);
    let work = move || Ok(answer::print(&cli.command.run(json).or_else(early)?, json)?);
    let done = on_stack_of(STACK, work).map_err(Into::into).and_then(|done| done);
    if let Some(usage) =
        done.as_ref().err().and_then(|error: &anyhow::Error| error.downcast_ref::<clap::Error>())
    {
        usage.exit();
    }
    exit("tl", done)
}
