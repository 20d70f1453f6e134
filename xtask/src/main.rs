//! `cargo xtask`: data, training, evaluation, samples, reports.
//!
//! Each command is a file. Exit status: 0 done, 1 refused, 2 wrong usage; 130 or 143 after a signal.

mod answer;
#[cfg(feature = "bench")]
mod bench;
#[cfg(not(feature = "bench"))]
#[path = "bench_elsewhere.rs"]
mod bench;
mod commands;
mod contrast;
mod data;
mod draw;
mod elsewhere;
mod expect;
mod inference;
mod keys;
mod learner;
mod place;
mod record;
mod rnn;
mod run;
mod run_folder;
mod signals;
mod store;
mod sweep;
mod texts;
mod transformer;
#[cfg(any(feature = "programs", test))]
mod written;

use std::process::ExitCode;

use calculemus_base::allocator::{Allocator, keep_freed_memory};
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

// A training step takes a third less time than with the system's allocator, which maps and unmaps large buffers.
#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

/// Data, training, evaluation, samples, reports.
#[derive(Debug, Parser)]
#[command(name = "calculemus", version, max_term_width = 110)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Generate a data set.
    GenData(data::GenData),
    /// Generate a data set of inference tasks.
    GenInference(inference::GenInference),
    /// Put the files of a folder under a URL.
    Put(store::PutArgs),
    /// Fetch the files that lie under a URL.
    Get(store::GetArgs),
    /// Train a model: from a configuration to a report.
    Train(commands::train::Train),
    /// Judge a run against the exact optimum.
    Eval(commands::eval::EvalArgs),
    /// Sample from a run.
    Sample(transformer::sampling::SampleArgs),
    /// Find definitions that make a set of formulas shorter.
    Invent(commands::invent::InventArgs),
    /// Write a run in a format that other programs open.
    Export(transformer::export::ExportArgs),
    /// Measure speeds, beside goals and peers in the same run.
    Bench(bench::BenchArgs),
    /// Write a page about a run, or one that compares several.
    Report(commands::report::ReportArgs),
    /// Run many configurations over seeds, and tabulate them.
    Sweep(commands::sweep::SweepArgs),
    /// List the runs: their state, what they reached, their size.
    Runs(commands::runs::RunsArgs),
    /// List what a model can be trained on here, and why not on the rest.
    Devices(commands::devices::DevicesArgs),
    /// Compare every kernel of a device, and steps of a model, with the CPU's, and time them.
    DeviceCheck(commands::devices::CheckArgs),
    /// Run the project's tests, with --slow also their slow halves.
    Test(commands::test::TestArgs),
    /// Prove that a trained cell is right on sequences of any length, or find one where it is wrong.
    Certify(rnn::certify::CertifyArgs),
    /// Read a trained cell back as proofs and matrices of 0 and 1.
    Snap(rnn::snap::SnapArgs),
    /// Show one cell's exact values, with given weights.
    Cell(rnn::cell::CellArgs),
    /// Show the target and the mask of a sequence of a task.
    Task(rnn::task::TaskArgs),
    /// Show the weights after each update of an optimiser.
    Optim(rnn::optim::OptimArgs),
    /// Write completions of the command `calculemus` for a shell.
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
}

/// The command line; a wrong one ends here. Help says the name by which the program was called: cargo tells that it
/// runs it, and else it is the installed one.
fn command_line() -> Cli {
    let name = if std::env::var_os("CARGO").is_some() { "cargo xtask" } else { "calculemus" };
    let matches = Cli::command().name(name).bin_name(name).get_matches();
    Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
}

fn completions(shell: clap_complete::Shell) -> anyhow::Result<u8> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "calculemus", &mut script);
    answer::print_text(&String::from_utf8_lossy(&script));
    Ok(0)
}

/// candle's own pool spins: with more than one thread it is three to four times slower when another process holds a
/// core. What the user has set stays.
#[expect(unsafe_code, clippy::disallowed_methods, reason = "the one place: process start, before any thread")]
fn one_thread_for_candle() {
    if std::env::var_os("CANDLE_NUM_THREADS").is_none() {
        // SAFETY: called first in `main`; no other thread is there that could read the environment meanwhile.
        unsafe { std::env::set_var("CANDLE_NUM_THREADS", "1") };
    }
}

fn main() -> ExitCode {
    keep_freed_memory();
    one_thread_for_candle();
    let cli = command_line();
    let answer = match &cli.command {
        Command::GenData(args) => data::gen_data(args),
        Command::GenInference(args) => inference::gen_inference(args),
        Command::Put(args) => store::put(args),
        Command::Get(args) => store::get(args),
        Command::Train(args) => commands::train::train(args),
        Command::Eval(args) => commands::eval::run(args),
        Command::Sample(args) => transformer::sampling::run(args),
        Command::Invent(args) => commands::invent::run(args),
        Command::Export(args) => transformer::export::run(args),
        Command::Bench(args) => bench::run(args),
        Command::Report(args) => commands::report::run(args),
        Command::Sweep(args) => commands::sweep::run(args),
        Command::Runs(args) => commands::runs::run(args),
        Command::Devices(args) => commands::devices::run(args),
        Command::DeviceCheck(args) => commands::devices::check(args),
        Command::Test(args) => commands::test::run(args),
        Command::Certify(args) => rnn::certify::run(args),
        Command::Snap(args) => rnn::snap::run(args),
        Command::Cell(args) => rnn::cell::run(args),
        Command::Task(args) => rnn::task::run(args),
        Command::Optim(args) => rnn::optim::run(args),
        Command::Completions { shell } => completions(*shell),
    };
    match answer {
        Ok(status) => ExitCode::from(answer::status(status)),
        Err(e) => {
            #[cfg(not(feature = "store"))]
            if let Some(done) = e.downcast_ref::<elsewhere::Done>() {
                return ExitCode::from(done.status);
            }
            answer::say!("error: {}", answer::reasons(&e));
            let stopped = e.downcast_ref::<signals::Stopped>().map(|s| signals::status(s.signal));
            ExitCode::from(stopped.unwrap_or(if e.is::<answer::Usage>() { 2 } else { 1 }))
        }
    }
}
