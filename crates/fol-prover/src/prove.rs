//! From a problem to a verdict with its certificate.

use crate::check::{check_model, check_proof};
use crate::clausify::{Clausal, clausify, of_shape};
use crate::finite::{self, Looked};
use crate::ground::{self, Found};
use crate::limit::{Budget, Limit, Spent};
use crate::logic::Clause;
use crate::model::Model;
use crate::problem::Problem;
use crate::proof::{Proof, Rule, Step};
use crate::saturate::{Ended, Saturation};

/// The answer. Each definite one carries its certificate, which has passed its checker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The conclusion follows; without a conclusion, the premises have no model.
    Entailed(Proof),
    /// The premises hold in this model and the conclusion does not.
    Refuted(Model),
    /// Neither was found, and why.
    Unknown {
        /// What ended the search.
        reason: Reason,
    },
}

/// Why a search ended without an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// The steps are used up.
    Steps,
    /// The time is used up.
    Time,
    /// The formulas have too many clauses.
    Clauses,
    /// Clauses that were derived are too many or too large to be kept.
    Memory,
    /// No contradiction can be derived, and no model of few elements exists.
    NoSmallModel,
    /// No contradiction can be derived, and not all interpretations of few elements were looked at.
    SmallModels,
    /// A certificate was found and its checker did not follow it to the end.
    Certificate,
}

impl std::fmt::Display for Reason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Steps => "the limit of steps is reached",
            Self::Time => "the time is up",
            Self::Clauses => "the formulas have too many clauses",
            Self::Memory => "the derived clauses take too much memory",
            Self::NoSmallModel => "nothing contradicts, but no finite model of small size was found",
            Self::SmallModels => {
                "nothing contradicts, and not every small model was looked for: more steps may find one"
            }
            Self::Certificate => "a certificate was found that the checker could not follow to its end",
        })
    }
}

/// A verdict and what it took.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The verdict.
    pub verdict: Verdict,
    /// The steps of the search.
    pub steps: u64,
}

/// A model is checked within so many evaluated nodes.
pub const EVALUATIONS: u64 = 20_000_000;

/// Decides a problem within a limit.
pub fn prove(problem: &Problem, limit: Limit) -> Answer {
    let mut budget = Budget::new(limit);
    let verdict = search(problem, limit, &mut budget);
    let verdict = match &verdict {
        Verdict::Entailed(proof) if check_proof(problem, proof).is_err() => unknown(Reason::Certificate),
        Verdict::Refuted(model) if check_model(problem, model, EVALUATIONS).is_err() => {
            unknown(Reason::Certificate)
        }
        _ => verdict,
    };
    Answer { verdict, steps: budget.used() }
}

fn unknown(reason: Reason) -> Verdict {
    Verdict::Unknown { reason }
}

fn spent(limit: Limit) -> Verdict {
    unknown(match limit {
        Limit::Steps(_) => Reason::Steps,
        Limit::Milliseconds(_) => Reason::Time,
    })
}

/// A part of the search outside the decidable class.
#[derive(Debug, Clone, Copy)]
enum Stage {
    /// Models of these sizes.
    Models(usize, usize),
    /// Models of the sizes whose stages were too short, and of these.
    Rest(usize, usize),
    /// Saturation, from where it was left.
    Saturation,
}

/// The stages, each with its most steps and its most percent of what is left. Small models and short proofs are looked for
/// first, since most problems have one or the other.
const STAGES: [(Stage, u64, u64); 8] = [
    (Stage::Models(1, 2), 4_000, 10),
    (Stage::Saturation, 2_000, 15),
    (Stage::Models(3, 3), 15_000, 20),
    (Stage::Models(4, 4), 15_000, 20),
    (Stage::Saturation, 30_000, 60),
    (Stage::Models(5, 6), 30_000, 50),
    (Stage::Saturation, u64::MAX, 80),
    (Stage::Rest(7, 16), u64::MAX, 100),
];
/// The share of a limit that clauses without functions get to be decided over their constants, in percent.
const GROUND: u64 = 70;

/// The most steps, and the share of a limit in percent, for what follows by the places of sub-formulas alone.
const SHAPE: (u64, u64) = (1_000, 10);

fn search(problem: &Problem, limit: Limit, budget: &mut Budget) -> Verdict {
    let Some(mut clausal) = clausify(problem) else { return unknown(Reason::Clauses) };
    let clauses: Vec<Clause> =
        clausal.clauses.iter_mut().map(|(_, _, clause)| std::mem::take(clause)).collect();
    if ground::is_function_free(&clauses) {
        let mut part = budget.part(u64::MAX, GROUND);
        let found = ground::decide(&clauses, &mut part);
        budget.add(&part);
        match found {
            Ok(Found::Model(model)) => return Verdict::Refuted(model.of_problem(problem)),
            Ok(Found::Refutation(steps)) => return Verdict::Entailed(assemble(clausal, clauses, steps)),
            Err(Spent) => {}
        }
    }
    if let Some(proof) = by_shape(problem, budget) {
        return Verdict::Entailed(proof);
    }
    let mut saturation = Saturation::new(&clauses);
    let (mut saturated, mut full) = (false, false);
    // Sizes that were not looked at to the end, and whether there are such that cannot be.
    let (mut left, mut beyond) = (Vec::new(), false);
    for (stage, steps, percent) in STAGES {
        let mut part = budget.part(steps, percent);
        match stage {
            Stage::Models(from, to) | Stage::Rest(from, to) => {
                let mut sizes: Vec<usize> = (from..=to).collect();
                if matches!(stage, Stage::Rest(..)) {
                    sizes.splice(0..0, std::mem::take(&mut left));
                }
                let mut sizes = sizes.into_iter();
                while let Some(size) = sizes.next() {
                    match finite::model_of_size(&clauses, size, &mut part) {
                        Ok(Looked::Model(model)) => {
                            budget.add(&part);
                            return Verdict::Refuted(model.of_problem(problem));
                        }
                        Ok(Looked::None) => {}
                        Ok(Looked::Beyond) => beyond = true,
                        Err(Spent) => {
                            left.push(size);
                            left.extend(sizes.by_ref());
                        }
                    }
                }
            }
            Stage::Saturation if saturated || full => {}
            Stage::Saturation => match saturation.run(&mut part) {
                Ok(Ended::Refutation(steps)) => {
                    budget.add(&part);
                    return Verdict::Entailed(assemble(clausal, clauses, steps));
                }
                Ok(Ended::Saturated { complete }) => (saturated, full) = (complete, !complete),
                Ok(Ended::Full) => full = true,
                Err(Spent) => {}
            },
        }
        budget.add(&part);
        if budget.is_spent() {
            return spent(limit);
        }
    }
    // Something is left of the budget: what ended the search is not that.
    let looked_at_all = !beyond && left.is_empty();
    unknown(match (saturated, looked_at_all) {
        (true, true) => Reason::NoSmallModel,
        (true, false) => Reason::SmallModels,
        (false, _) => Reason::Memory,
    })
}

/// A proof that looks into no sub-formula that comes again: A, A → B ⊢ B is one step, whatever A and B are.
fn by_shape(problem: &Problem, budget: &mut Budget) -> Option<Proof> {
    let mut clausal = of_shape(problem)?;
    let clauses: Vec<Clause> =
        clausal.clauses.iter_mut().map(|(_, _, clause)| std::mem::take(clause)).collect();
    let mut part = budget.part(SHAPE.0, SHAPE.1);
    let steps = if ground::is_function_free(&clauses) {
        match ground::decide(&clauses, &mut part) {
            Ok(Found::Refutation(steps)) => Some(steps),
            // A model of names is none of what they stand for.
            Ok(Found::Model(_)) | Err(Spent) => None,
        }
    } else {
        match Saturation::new(&clauses).run(&mut part) {
            Ok(Ended::Refutation(steps)) => Some(steps),
            Ok(_) | Err(Spent) => None,
        }
    };
    budget.add(&part);
    steps.map(|steps| assemble(clausal, clauses, steps))
}

/// The proof of steps whose parents below the number of clauses are these: what they use, numbered anew.
fn assemble(clausal: Clausal, clauses: Vec<Clause>, derived: Vec<Step>) -> Proof {
    let inputs = clausal.clauses.iter().zip(clauses).map(|((origin, number, _), clause)| Step {
        rule: Rule::Input(*origin, *number),
        parents: Vec::new(),
        equality: Vec::new(),
        clause,
    });
    let mut all: Vec<Option<Step>> = inputs.chain(derived).map(Some).collect();
    let mut used = vec![false; all.len()];
    if let Some(last) = used.last_mut() {
        *last = true;
    }
    for at in (0..all.len()).rev() {
        if let (true, Some(step)) = (used[at], &all[at]) {
            step.parents.iter().for_each(|parent| used[parent.step] = true);
        }
    }
    let mut numbers = vec![0; all.len()];
    let mut steps = Vec::new();
    for at in 0..all.len() {
        if let (true, Some(mut step)) = (used[at], all[at].take()) {
            step.parents.iter_mut().for_each(|parent| parent.step = numbers[parent.step]);
            numbers[at] = steps.len();
            steps.push(step);
        }
    }
    Proof { definitions: clausal.definitions, formulas: clausal.formulas, steps }
}
