//! `cargo xtask sweep`: many runs from one file, and one table with intervals over seeds.
//!
//! [`plan`] turns the file into points, and points into configurations; all are checked before the first run
//! begins. [`jobs`] runs what is not finished. [`table`] writes the tables, the pictures and the page.

mod jobs;
pub(crate) mod plan;
pub(crate) mod table;

use anyhow::Result;
use clap::Args;
use std::path::{Path, PathBuf};

use crate::answer::{print_json, print_text, say};
use crate::config::Config;
use crate::learner::Learner;
use crate::signals::{self, Stop};
use crate::{keys, place, rnn, run_folder};

/// Options of `sweep`.
#[derive(Debug, Args)]
pub(crate) struct SweepArgs {
    /// The sweep: a path, or a name in configs/.
    #[arg(long, value_name = "NAME.toml")]
    config: String,
    /// Runs at the same time; each has the threads of its configuration; 0 there shares all cores.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256))]
    jobs: u16,
    /// Prints the table as one JSON document to standard output.
    #[arg(long)]
    json: bool,
    /// Warnings and errors only.
    #[arg(long)]
    quiet: bool,
}

/// `cargo xtask sweep`; returns the exit status.
pub(crate) fn run(args: &SweepArgs) -> Result<u8> {
    let file = keys::find(&args.config, &place::configs())?;
    let stop = Stop::watch()?.shared();
    let draft = plan::Draft::read(&file)?;
    if draft.is_recurrent()? {
        answer(args, &draft.plan::<rnn::config::Config>()?, &stop)
    } else {
        answer(args, &draft.plan::<Config>()?, &stop)
    }
}

fn answer<L: Learner>(args: &SweepArgs, plan: &plan::Plan<L>, stop: &Stop) -> Result<u8> {
    let folder = place::runs().join(&plan.name);
    std::fs::create_dir_all(&folder)?;
    let _alone = run_folder::lock(&folder)?;
    let how = jobs::How { at_once: usize::from(args.jobs), quiet: args.quiet, stop };
    match sweep(plan, &folder, &how)? {
        Swept::Interrupted(signal) => {
            say!("stopped; the same command goes on");
            Ok(signals::status(signal))
        }
        Swept::Done { document, page } => {
            if args.json {
                print_json(&document)?;
            } else {
                let text = std::fs::read_to_string(folder.join("table.md"))?;
                print_text(&format!("{text}\nreport: {}\n", page.display()));
            }
            Ok(0)
        }
    }
}

/// How a sweep ended.
#[derive(Debug)]
enum Swept {
    /// A signal stopped it.
    Interrupted(usize),
    /// The table as JSON, and the page.
    Done { document: serde_json::Value, page: PathBuf },
}

/// Runs a plan in a folder: first what selects, then the points.
fn sweep<L: Learner>(plan: &plan::Plan<L>, folder: &Path, how: &jobs::How<'_>) -> Result<Swept> {
    let candidates = plan.candidates(folder)?;
    if let Some(signal) = jobs::all(candidates.iter().flat_map(|c| &c.runs), how)? {
        return Ok(Swept::Interrupted(signal));
    }
    let points = plan.points(folder, &candidates)?;
    if let Some(signal) = jobs::all(points.iter().flat_map(|p| &p.runs), how)? {
        return Ok(Swept::Interrupted(signal));
    }
    let (document, page) = L::tables(plan, folder, &points)?;
    Ok(Swept::Done { document, page })
}

#[cfg(test)]
mod tests;
