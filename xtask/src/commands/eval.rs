//! `cargo xtask eval`: judges a run again, or otherwise.

use anyhow::Result;
use clap::Args;

use crate::answer::usage;
use crate::learner::Kind;
use crate::transformer::config::SUITES;
use crate::transformer::judge::{self, Ask};
use crate::{rnn, run_folder};

/// Options of `eval`.
#[derive(Debug, Args)]
pub(crate) struct EvalArgs {
    /// A folder, or a name in runs/.
    run: String,
    /// A suite: iid, test, generation, semantics, completion, transfer, structure, h3, criticality, inference, texts. Repeatable;
    /// without it the suites of the configuration.
    #[arg(long, value_name = "NAME")]
    suite: Vec<String>,
    /// Judges on another data set (a name in data/, or a folder) instead, or on a text file with a formula a line; the
    /// answer goes to eval-NAME.json.
    #[arg(long, value_name = "NAME|FILE")]
    data: Option<String>,
    /// Judges the weights of the checkpoint of this update in last/ instead of the best ones; the answer goes to
    /// eval-step-N.json.
    #[arg(long, value_name = "N")]
    checkpoint: Option<u64>,
    /// The device of a transformer (cpu, vulkan, cuda, …); without it that of the run.
    #[arg(long, value_name = "NAME")]
    device: Option<String>,
    /// A further length to test a recurrent run at. Repeatable.
    #[arg(long, value_name = "N")]
    length: Vec<usize>,
    /// Prints one JSON document to standard output.
    #[arg(long)]
    json: bool,
    /// Warnings and errors only.
    #[arg(long)]
    quiet: bool,
}

/// `cargo xtask eval`; returns the exit status.
pub(crate) fn run(args: &EvalArgs) -> Result<u8> {
    if let Some(unknown) = args.suite.iter().find(|s| !SUITES.contains(&s.as_str())) {
        return Err(usage(format!("--suite {unknown}: none of {}", SUITES.join(", "))));
    }
    let folder = run_folder::find(&args.run)?;
    if run_folder::kind(&folder)? == Kind::Recurrent {
        if let Some(suite) = args.suite.first() {
            return Err(usage(format!("--suite {suite}: a recurrent run is tested at its eval_lengths")));
        }
        if args.data.is_some() || args.checkpoint.is_some() || args.device.is_some() {
            return Err(usage(
                "--data, --checkpoint, --device: only runs of the symbolic transformer are judged so",
            ));
        }
        return rnn::eval(&folder, &args.length, args.json, args.quiet);
    }
    if let Some(length) = args.length.first() {
        return Err(usage(format!("--length {length}: only recurrent runs are tested at lengths")));
    }
    let (data, device) = (args.data.as_deref(), args.device.as_deref());
    let ask = Ask { suites: &args.suite, data, checkpoint: args.checkpoint, device };
    judge::run(&folder, &ask, args.json, args.quiet)
}
