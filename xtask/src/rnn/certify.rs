//! `cargo xtask certify`: whether a trained cell is right on sequences of any length.

use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use clap::Args;
use linear_logic_rnn::certify::certificate::{Certificate, Subject};
use linear_logic_rnn::certify::{Verdict, certify, checker};
use serde_json::{Value, json};

use super::config::Config;
use crate::answer::give;
use crate::learner::{Kind, Learner as _};
use crate::run_folder;

/// Options of `certify`.
#[derive(Debug, Args)]
pub(crate) struct CertifyArgs {
    /// A folder, or a name in runs/.
    run: String,
    /// Only checks the certificate that stands in the folder.
    #[arg(long)]
    check: bool,
    /// Prints one JSON document to standard output.
    #[arg(long)]
    json: bool,
}

/// Certifies a run; returns the exit status.
pub(crate) fn run(args: &CertifyArgs) -> Result<u8> {
    let folder = run_folder::find(&args.run)?;
    if run_folder::kind(&folder)? != Kind::Recurrent {
        bail!("{}: only recurrent runs are certified", folder.display());
    }
    let config: Config = run_folder::config(&folder)?;
    let theta = training::checkpoint::load_weights(&run_folder::weights(&folder), &config.cell()?.layout())
        .context("the model of the run")?;
    let subject = Subject {
        cell: config.cell.clone(),
        sizes: config.resolved_sizes()?,
        options: config.options.clone(),
        task: config.task.clone(),
        modulus: None,
    };
    let clock = Instant::now();
    let v = certify(&subject, &theta)?;
    let text = match &v {
        Verdict::Certified(c, images) => format!(
            "certified {} states {} boxes {images} images",
            c.states.len(),
            c.states.iter().filter(|s| s.bounds.is_some()).count()
        ),
        Verdict::Counterexample(c) => format!("counterexample {} {:?}", c.word.len(), (c.told, c.right)),
        Verdict::Undecided(f) => format!("undecided {f:?}"),
    };
    println!("{} {text} {:.2}s", args.run, clock.elapsed().as_secs_f64());
    Ok(0)
}
