//! A dimension in which an answer would be certified, for whoever was refused one.
//!
//! Enter at [`dimension`]. With orthonormal vectors the run is exact, and what it retrieves says how much coherence its
//! retrievals bear; then vectors are drawn until theirs is below it.

use super::rounds::Run;
use super::vectors::{Gram, random};
use crate::program::Embed;
use crate::value::Symbols;

/// Numbers that are drawn, and products that are summed, to find out whether a dimension would do.
const DRAWN: f64 = 2e8;
const SUMMED: f64 = 4e10;

/// Programs of more objects are not run again to bear as much coherence as they could.
const SMALL: usize = 300;

/// A dimension that would do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Advised {
    /// It was tried with this seed.
    Tried(u64),
    /// For all but one seed in a thousand, at most.
    Estimated(u64),
}

/// The least power of two, or one and a half times one, that was found to do.
pub(super) fn dimension(run: &Run<'_>, symbols: &Symbols, embed: &Embed) -> Option<Advised> {
    let coherence = borne(run)?;
    let objects = run.rules.objects.len() as f64;
    // The dot product of two random unit vectors exceeds c with probability at most 2 exp(-D c²/2); this is summed
    // over all pairs.
    let pairs = (objects * (objects - 1.0) / 2.0).max(1.0);
    let squared = coherence * coherence;
    let safe = (2.0 * (2.0 * pairs * 1000.0).ln() / squared).ceil();
    let mut tried = rounded_up((pairs.ln().max(0.5) / squared).max(1.0));
    while tried <= 4.0 * safe && objects * tried <= DRAWN && objects * objects * tried <= SUMMED {
        let gram = random(&run.rules.objects, symbols, tried as u64, embed.seed, &run.room).ok()?;
        if gram.coherence <= coherence && does(run, &gram) {
            return Some(Advised::Tried(tried as u64));
        }
        tried = rounded_up(tried + 1.0);
    }
    (safe < 2_f64.powi(53)).then_some(Advised::Estimated(rounded_up(safe) as u64))
}

/// 1, 2, 3, 4, 6, 8, 12, 16, …
fn rounded_up(least: f64) -> f64 {
    let power = 2_f64.powf(least.log2().ceil());
    if power >= 4.0 && 0.75 * power >= least { 0.75 * power } else { power }
}

/// Whether a run with these vectors is certified.
fn does(run: &Run<'_>, gram: &Gram) -> bool {
    let run = Run { dots: gram.dots.as_deref(), coherence: gram.coherence, strict: true, ..run.clone() };
    run.retrieved().is_ok_and(|found| run.is_certified(found.bound))
}

/// A coherence that all retrievals of the exact run bear, within a tenth of the largest one.
fn borne(run: &Run<'_>) -> Option<f64> {
    let bound = |coherence: f64| {
        let run = Run { dots: None, coherence, strict: false, ..run.clone() };
        run.retrieved().ok().map(|found| found.bound)
    };
    let limit = run.theta.min(1.0 - run.theta);
    let (mut good, mut bad) = (run.coherence, run.coherence);
    // The bound falls at least as fast as the coherence does.
    for _ in 0..16 {
        let found = bound(good)?;
        if run.is_certified(found) {
            break;
        }
        bad = good;
        good *= (0.99 * limit / found).min(0.99);
        if good <= 0.0 {
            return None;
        }
    }
    while run.rules.objects.len() <= SMALL && bad > 1.1 * good {
        let middle = (good * bad).sqrt();
        if run.is_certified(bound(middle)?) { good = middle } else { bad = middle }
    }
    run.is_certified(bound(good)?).then_some(good)
}
