//! Running what is not finished, several at a time. Each run has a thread pool of its own, of the size that its
//! configuration says, so its numbers do not depend on what runs beside it.

use std::collections::VecDeque;
use std::sync::Mutex;

use anyhow::{Context, Result, anyhow};

use super::finished::is_finished;
use super::lease::{self, Claim, Claims, Taken};
use super::plan::Job;
use super::share::Share;
use crate::learner::Learner;
use crate::run::{Ended, train_in};
use crate::run_folder;
use crate::signals::Stop;

/// How to run.
#[derive(Clone, Copy)]
pub(crate) struct How<'a> {
    /// Runs at the same time.
    pub(crate) at_once: usize,
    /// Warnings and errors only.
    pub(crate) quiet: bool,
    /// Whether a signal came.
    pub(crate) stop: &'a Stop,
    /// Where other machines work on the same sweep: who has what.
    pub(crate) claims: Option<&'a Claims>,
    /// Where they share no folder: the place of their runs.
    pub(crate) share: Option<&'a Share>,
}

/// Runs all jobs that are not finished. Answers with the signal that stopped them, if one did.
pub(crate) fn all<'a, L: Learner + 'a>(
    jobs: impl Iterator<Item = &'a Job<L>>,
    how: &How<'_>,
) -> Result<Option<usize>> {
    let mut left = VecDeque::new();
    for job in jobs {
        if is_finished(job)? {
            say(how, &format!("{}: finished before", job.folder.display()));
            // A kill may have come while its page was written. Whoever works there now tidies up himself.
            if let Ok(_alone) = run_folder::lock(&job.folder) {
                training::files::remove_leftovers(&job.folder)?;
            }
            if !run_folder::has_page(&job.folder)? {
                L::report(&job.folder)?;
            }
        } else {
            left.push_back(job);
        }
    }
    // Two runs that start at once must not both make what they share.
    let mut shared: Vec<&str> = left.iter().filter_map(|job| job.config.shared()).collect();
    shared.sort_unstable();
    shared.dedup();
    for name in shared {
        prepare::<L>(name, how)?;
    }
    let workers = how.at_once.min(left.len());
    let left = Mutex::new(left);
    let failed: Mutex<Vec<anyhow::Error>> = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| match how.claims {
                None => work(&left, &failed, how),
                Some(claims) => work_with_others(&left, &failed, how, claims),
            });
        }
    });
    let failed = failed.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    let mut failed = failed.into_iter();
    let Some(first) = failed.next() else { return Ok(how.stop.signal()) };
    failed.for_each(|other| crate::answer::say!("error: {}", crate::answer::reasons(&other)));
    Err(first)
}

/// Takes jobs until none is left or a signal came; one that fails is no reason not to do the others.
fn work<L: Learner>(left: &Mutex<VecDeque<&Job<L>>>, failed: &Mutex<Vec<anyhow::Error>>, how: &How<'_>) {
    let lock = || failed.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    while how.stop.signal().is_none() {
        let next = left.lock().unwrap_or_else(std::sync::PoisonError::into_inner).pop_front();
        let Some(job) = next else { return };
        say(how, &format!("{}: running", job.folder.display()));
        if let Err(e) = one(job, how).with_context(|| job.folder.display().to_string()) {
            lock().push(e);
        }
    }
}

/// Makes what runs share, if it is missing; one machine at a time.
fn prepare<L: Learner>(name: &str, how: &How<'_>) -> Result<()> {
    let Some(claims) = how.claims else { return L::prepare(name, how.quiet, how.stop) };
    // Machines without a common folder make it each for itself.
    let on = if how.share.is_some() { format!(" on {}", lease::host()) } else { String::new() };
    while how.stop.signal().is_none() {
        match claims.take(&format!("data {name}{on}"), how.stop)? {
            Taken::Mine(claim) => {
                L::prepare(name, how.quiet, claim.stop())?;
                claim.done();
                return Ok(());
            }
            Taken::Busy => std::thread::sleep(claims.pause()),
            Taken::Deadly(names) => return Err(deadly(&format!("the data {name}"), &names)),
        }
    }
    Ok(())
}

/// Takes what nobody else has until everything is finished, wherever that was, or a signal came.
fn work_with_others<L: Learner>(
    left: &Mutex<VecDeque<&Job<L>>>,
    failed: &Mutex<Vec<anyhow::Error>>,
    how: &How<'_>,
    claims: &Claims,
) {
    let lock = || failed.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let mut jobs: Vec<&Job<L>> =
        left.lock().unwrap_or_else(std::sync::PoisonError::into_inner).iter().copied().collect();
    while how.stop.signal().is_none() {
        match look(&mut jobs, how, claims) {
            Ok(Look::Worked) => {}
            Ok(Look::Wait) => std::thread::sleep(claims.pause()),
            Ok(Look::Over) => return,
            Ok(Look::Failed(e)) => lock().push(e),
            Err(e) => return lock().push(e),
        }
    }
}

/// What one look at all jobs came to.
enum Look {
    /// One of them was done.
    Worked,
    /// Others do what is left.
    Wait,
    /// Everything is finished.
    Over,
    /// One of them cannot be done, and is left out from here on.
    Failed(anyhow::Error),
}

fn look<L: Learner>(jobs: &mut Vec<&Job<L>>, how: &How<'_>, claims: &Claims) -> Result<Look> {
    let (mut waits, mut dead) = (false, None);
    for (at, job) in jobs.iter().enumerate() {
        let name = job.folder.display().to_string();
        if is_finished(job)? {
            continue;
        }
        let point = claims.point(&job.folder);
        match claims.take(&point, how.stop)? {
            Taken::Busy => waits = true,
            Taken::Deadly(names) => dead = Some(deadly(&name, &names)),
            Taken::Mine(claim) => {
                return claimed(job, &point, claim, how).with_context(|| name).or_else(|e| {
                    jobs.remove(at);
                    Ok(Look::Failed(e))
                });
            }
        }
    }
    match dead {
        _ if waits => Ok(Look::Wait),
        Some(refusal) => Err(refusal),
        None => Ok(Look::Over),
    }
}

/// Does what a claim is for: fetches what others have, runs what is left of it, and puts it where others find it.
fn claimed<L: Learner>(job: &Job<L>, point: &str, claim: Claim, how: &How<'_>) -> Result<Look> {
    let own = How { stop: claim.stop(), ..*how };
    let work = || {
        if let Some(share) = own.share {
            share.fetch(point, job, own.stop)?;
        }
        if is_finished(job)? {
            return Ok(());
        }
        say(how, &format!("{}: running", job.folder.display()));
        one(job, &own)?;
        match (own.share, own.stop.signal()) {
            (None, _) | (_, Some(lease::LOST)) => Ok(()),
            (Some(share), None) => share.put(point, job, own.stop),
            (Some(share), Some(_)) => {
                say(how, &format!("{}: putting it where others go on", job.folder.display()));
                share.put(point, job, &Stop::default())
            }
        }
    };
    let done = work();
    match (done, claim.stop().signal()) {
        (Ok(()), None) => claim.done(),
        // Its lease ended, or a signal came: whoever looks next knows which.
        (Ok(()), Some(_)) | (Err(_), Some(lease::LOST)) => {}
        // Whoever had it before stopped beating and holds the folder still.
        (Err(e), _) if is_busy(&e) => return Ok(Look::Wait),
        (Err(e), _) => return Err(e),
    }
    Ok(Look::Worked)
}

fn is_busy(e: &anyhow::Error) -> bool {
    e.chain().any(|cause| matches!(cause.downcast_ref(), Some(training::Refusal::Busy { .. })))
}

fn deadly(what: &str, names: &[String]) -> anyhow::Error {
    anyhow!(
        "{what}: the workers {} died on it; nobody takes it again before its files in claims/ are removed",
        names.join(" and ")
    )
}

/// The stack of a thread of a pool: candle's backward pass recurses.
const STACK: usize = 16 << 20;

/// The threads of a run.
pub(crate) fn pool<L: Learner>(config: &L, at_once: usize) -> Result<rayon::ThreadPool> {
    let threads = training::threads::checked(training::threads::resolve(config.threads(), at_once))?;
    Ok(rayon::ThreadPoolBuilder::new().num_threads(threads).stack_size(STACK).build()?)
}

fn one<L: Learner>(job: &Job<L>, how: &How<'_>) -> Result<()> {
    let pool = pool(&job.config, how.at_once)?;
    // With several at a time their lines and bars would mix.
    let quiet = how.quiet || how.at_once > 1;
    match pool.install(|| train_in(&job.config, &job.folder, quiet, how.stop))? {
        Ended::Finished { .. } | Ended::Diverged { .. } => L::report(&job.folder).map(|_| ()),
        Ended::Interrupted { .. } => Ok(()),
    }
}

fn say(how: &How<'_>, message: &str) {
    if !how.quiet {
        crate::answer::say!("{message}");
    }
}
