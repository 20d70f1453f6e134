//! The command `ill`: intuitionistic linear logic, from the shell.
//!
//! Each command is a struct of arguments and a function from it to an [`Answer`], in the file of its
//! name; here they are only listed. Exit status: 0 done, 1 refused, 2 wrong usage.

mod answer;
mod check_command;
mod compile_command;
mod completions_command;
mod denote_command;
mod input;
mod normalize_command;
mod poly_command;

use std::process::ExitCode;

use answer::{Answer, Failure};
use calculemus_base::process::exit;
use clap::{CommandFactory, Parser, Subcommand};
use linear_logic::stack::on_large_stack;

/// Intuitionistic linear logic: proofs are checked, reduced, executed exactly and compiled.
#[derive(Debug, Parser)]
#[command(version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    /// Print one JSON document.
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Check proofs; show their types, kernel terms and sequent proofs.
    Check(check_command::Check),
    /// Reduce a proof to its normal form.
    Normalize(normalize_command::Normalize),
    /// The value of a proof over a ring.
    Denote(denote_command::Denote),
    /// A proof as a polynomial map.
    Poly(poly_command::Poly),
    /// Compile proofs to a straight-line program.
    Compile(compile_command::Compile),
    /// Print the completions of a shell.
    Completions(completions_command::Completions),
}

impl Command {
    fn name(&self) -> &'static str {
        match self {
            Self::Check(_) => "check",
            Self::Normalize(_) => "normalize",
            Self::Denote(_) => "denote",
            Self::Poly(_) => "poly",
            Self::Compile(_) => "compile",
            Self::Completions(_) => "completions",
        }
    }

    fn run(self) -> Result<Answer, Failure> {
        match self {
            Self::Check(args) => check_command::check(&args),
            Self::Normalize(args) => normalize_command::normalize(&args),
            Self::Denote(args) => denote_command::denote(&args),
            Self::Poly(args) => poly_command::poly(&args),
            Self::Compile(args) => compile_command::compile(&args),
            Self::Completions(args) => Ok(completions_command::completions(&args, &mut Cli::command())),
        }
    }
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    // Values of a proof are shared by count, so they stay on the thread that makes them.
    let done = on_large_stack(move || {
        let name = cli.command.name();
        answer::print(name, cli.command.run(), cli.json)
    });
    exit("ill", done.and_then(|done| done))
}
