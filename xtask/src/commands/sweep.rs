//! `cargo xtask sweep`: many runs from one file, and one table with intervals over seeds.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use training::files::Sharing;

use crate::answer::{give, say};
use crate::learner::Kind;
use crate::signals::{self, Stop};
use crate::sweep::lease::Claims;
use crate::sweep::plan::Draft;
use crate::sweep::share::Share;
use crate::sweep::{Plan, Swept, Tables, forecast, jobs, sweep};
use crate::{keys, place, rnn, store, transformer};

/// Options of `sweep`.
#[derive(Debug, Args)]
pub(crate) struct SweepArgs {
    /// The sweep: a path, or a name in configs/.
    #[arg(long, value_name = "NAME.toml")]
    config: String,
    /// Runs at the same time; each has the threads of its configuration; 0 there shares all cores.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256))]
    jobs: u16,
    /// Takes points that no other worker has, on any machine that shares the folder runs/, until all are finished.
    #[arg(long, conflicts_with = "dry_run")]
    worker: bool,
    /// Where workers share no folder: the URL (s3://BUCKET/PREFIX, or file:///FOLDER) under which their claims and runs lie.
    #[arg(long, value_name = "URL", requires = "worker")]
    at: Option<String>,
    /// Seconds without a sign of life after which a worker's points are given to others; below its longest pause it
    /// loses them for nothing.
    #[arg(long, value_name = "SECONDS", default_value_t = 60, requires = "worker",
          value_parser = clap::value_parser!(u64).range(1..=86_400))]
    lease: u64,
    /// Says what each point would cost, by one step of it, and writes nothing.
    #[arg(long)]
    dry_run: bool,
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
    let draft = Draft::read(&file)?;
    match draft.kind()? {
        Kind::Recurrent => answer(args, &draft.plan::<rnn::config::Config>()?, &stop),
        Kind::Transformer => answer(args, &draft.plan::<transformer::config::Config>()?, &stop),
    }
}

#[cfg(feature = "store")]
fn claims_at(url: &str, folder: &Path, lease: Duration) -> Result<Claims> {
    Claims::at(url, folder, lease)
}

#[cfg(not(feature = "store"))]
fn claims_at(url: &str, _: &Path, _: Duration) -> Result<Claims> {
    anyhow::bail!("{url}: this build reaches no URL")
}

fn answer<L: Tables>(args: &SweepArgs, plan: &Plan<L>, stop: &Stop) -> Result<u8> {
    #[cfg(not(feature = "programs"))]
    if plan.has_programs()? {
        return crate::elsewhere::hand_over("programs");
    }
    if args.at.is_some()
        && let Some(status) = store::elsewhere()?
    {
        return Ok(status);
    }
    let folder = place::runs().join(&plan.name);
    if args.dry_run {
        let forecast = forecast::forecast(plan, &folder, usize::from(args.jobs))?;
        give(args.json, &forecast, || forecast::in_words(plan, &forecast))?;
        return Ok(0);
    }
    std::fs::create_dir_all(&folder)?;
    // Workers exclude whoever wants the sweep alone, and not one another.
    let _lock = training::files::lock(&folder, if args.worker { Sharing::Together } else { Sharing::Alone })?;
    let lease = Duration::from_secs(args.lease);
    let share = args.at.as_ref().map(|url| Share::new(url, &plan.name, &folder));
    let claims = match &share {
        None if args.worker => Some(Claims::new(&folder, lease)?),
        None => None,
        Some(share) => Some(claims_at(&share.claims(), &folder, lease)?),
    };
    let at_once = usize::from(args.jobs);
    let how = jobs::How { at_once, quiet: args.quiet, stop, claims: claims.as_ref(), share: share.as_ref() };
    match sweep(plan, &folder, &how)? {
        Swept::Interrupted(signal) => {
            say!("stopped; the same command goes on");
            Ok(signals::status(signal))
        }
        Swept::Done { document, page } => {
            let text = std::fs::read_to_string(folder.join("table.md"))?;
            give(args.json, &document, || format!("{text}\nreport: {}\n", page.display()))?;
            Ok(0)
        }
    }
}
