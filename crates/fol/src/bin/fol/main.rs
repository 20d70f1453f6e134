//! The command `fol`: first-order logic in 663 symbols, from the shell (F65, F67).
//!
//! Each command is a struct of arguments and a function from it to an [`Answer`](answer::Answer), in the file
//! of its subject; here they are only listed. Exit status: 0 if every input is accepted, 1 if any is refused,
//! 2 for wrong usage.

mod answer;
mod check_commands;
mod exchange_commands;
mod formula_commands;
mod glyph_command;
mod input;
mod law_commands;
mod next_command;

use std::process::ExitCode;

use answer::{Answer, Item};
use calculemus_base::process::exit;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use serde_json::json;

/// First-order logic in 663 symbols.
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
    /// The 663 symbols.
    Vocab,
    /// Read formulas; show tree, tokens and measures.
    Parse(formula_commands::Parse),
    /// Print formulas in a style.
    Print(formula_commands::Print),
    /// Formulas, or indices, to tokens.
    Encode(formula_commands::Encode),
    /// Tokens to formulas, or digits to indices.
    Decode(formula_commands::Decode),
    /// Check arities, scopes, definitions and sorts.
    Check(check_commands::Check),
    /// Canonical forms and their keys.
    Canon(formula_commands::Read),
    /// Substitute a term for a variable.
    Subst(check_commands::Subst),
    /// What may follow a prefix.
    Next(next_command::Next),
    /// The level of formulas.
    Level(formula_commands::Read),
    /// Symbols as pictures.
    Glyph(glyph_command::GlyphArgs),
    /// Formulas from other programs.
    Import(exchange_commands::Import),
    /// Formulas of a data set to other programs.
    Export(exchange_commands::Export),
    /// Count the formulas of a law by nodes.
    Count(law_commands::Count),
    /// The rank of formulas among those of their size.
    Rank(law_commands::Rank),
    /// The formula of a rank.
    Unrank(law_commands::Unrank),
    /// The exact probability of texts under a law, symbol by symbol.
    Score(law_commands::Score),
    /// Draw texts from a law.
    Sample(law_commands::Sample),
    /// Show a law.
    Law(law_commands::ShowLaw),
    /// Completions for a shell (F68).
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
}

impl Command {
    fn run(self) -> anyhow::Result<Answer> {
        Ok(match self {
            Self::Vocab => formula_commands::vocab(),
            Self::Parse(args) => formula_commands::parse(&args)?.into(),
            Self::Print(args) => formula_commands::print(&args)?.into(),
            Self::Encode(args) => formula_commands::encode(&args)?.into(),
            Self::Decode(args) => formula_commands::decode(args)?.into(),
            Self::Check(args) => check_commands::check(&args)?.into(),
            Self::Canon(args) => check_commands::canonical(&args)?.into(),
            Self::Subst(args) => check_commands::subst(&args)?.into(),
            Self::Next(args) => next_command::next(&args)?.into(),
            Self::Level(args) => formula_commands::level(&args)?.into(),
            Self::Glyph(args) => glyph_command::glyph(&args)?.into(),
            Self::Import(args) => exchange_commands::import(&args).into(),
            Self::Export(args) => exchange_commands::export(&args).into(),
            Self::Count(args) => law_commands::count(&args).into(),
            Self::Rank(args) => law_commands::rank(&args)?.into(),
            Self::Unrank(args) => law_commands::unrank(&args).into(),
            Self::Score(args) => law_commands::score(&args)?.into(),
            Self::Sample(args) => law_commands::sample(&args)?.into(),
            Self::Law(args) => law_commands::law(&args).into(),
            Self::Completions { shell } => completions(shell).into(),
        })
    }
}

fn completions(shell: clap_complete::Shell) -> Vec<Item> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "fol", &mut script);
    let script = String::from_utf8_lossy(&script).trim_end().to_owned();
    vec![Item::listed(json!({"shell": shell.to_string(), "script": script}), script)]
}

fn main() -> ExitCode {
    let matches = Cli::command().get_matches();
    let name = matches.subcommand_name().unwrap_or_default();
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|usage| usage.exit());
    let done = cli.command.run().and_then(|answer| Ok(answer::print(name, answer, cli.json)?));
    if let Some(usage) = done.as_ref().err().and_then(|error| error.downcast_ref::<clap::Error>()) {
        usage.exit();
    }
    exit("fol", done)
}
