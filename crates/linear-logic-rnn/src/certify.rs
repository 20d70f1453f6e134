//! Certificates: a trained cell that is right on sequences of any length, proved.
//!
//! A cell with its readout is a map of finitely many real numbers for each symbol, and a task such as `s3` a finite
//! automaton. [`search`] covers the states that the cell can reach by boxes, each with a state of the task, such that
//! every box is mapped into boxes again; what it found is a [`certificate::Certificate`]. [`checker`] believes none of it:
//! it computes every image again, with every rounding bounded, and shares nothing with the search but the step. Where a
//! cell is wrong, [`counterexample`] finds a sequence; where neither succeeds, the answer is `undecided`.
//!
//! What is proved holds for the real-valued function of the stored 32-bit weights, not for the rounding of the engine.

// The order is that of reading. A blank line between modules keeps the formatter from sorting them.
pub mod certificate;

mod enclosure;

pub mod checker;

mod tube;

pub mod search;

pub mod counterexample;

pub mod minimal;

use crate::error::Result;
use certificate::{Certificate, Subject};
use counterexample::{Counterexample, Effort};

/// What was found out about a cell.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// The checker has accepted the certificate; so many images were computed for that.
    Certified(Box<Certificate>, usize),
    /// The cell is wrong on a sequence.
    Counterexample(Counterexample),
    /// Neither, and why.
    Undecided(String),
}

/// Certifies a cell with these trained weights, or finds where it is wrong. `effort` multiplies the work after which it is
/// undecided; 1 is about ten seconds.
///
/// # Errors
/// What refuses cells and tasks; `certificate` for a task that is no automaton and for a step that cannot be certified.
pub fn certify(subject: &Subject, theta: &[f32], effort: u32) -> Result<Verdict> {
    let (cell, machine) = (subject.cell()?, subject.machine()?);
    search::check_step(&cell.step, &machine, theta)?;
    if let Some(found) = counterexample::find(&cell.step, theta, &machine, Effort::SHORT)? {
        return Ok(Verdict::Counterexample(found));
    }
    let certificate = match search::search(subject, &cell.step, theta, &machine, effort)? {
        Ok(certificate) => certificate,
        Err(why) => {
            let found = counterexample::find(&cell.step, theta, &machine, Effort::LONG.times(effort))?;
            return Ok(found.map_or(Verdict::Undecided(why), Verdict::Counterexample));
        }
    };
    match checker::check(&certificate, theta) {
        Ok(images) => Ok(Verdict::Certified(Box::new(certificate), images)),
        Err(refusal) => {
            Ok(Verdict::Undecided(format!("the checker refuses what was found: {}", refusal.message)))
        }
    }
}
