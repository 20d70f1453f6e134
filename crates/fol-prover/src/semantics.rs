//! What a formula is: valid, contradictory, contingent, or not known to be either. Two questions, each with its certificate.

use fol::ast::{Formula, Text};
use fol::error::{Kind, Refusal};

use crate::limit::Limit;
use crate::problem::Problem;
use crate::prove::{Answer, Verdict, prove};

/// The classes of formulas. Free variables are parameters, so a formula with some is satisfiable if it holds somewhere of some
/// elements, and valid if it holds everywhere of all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// True in every interpretation.
    Valid,
    /// True in none.
    Contradictory,
    /// True in one and false in another.
    Contingent,
    /// True in one; whether false in another is unknown.
    Satisfiable,
    /// False in one; whether true in another is unknown.
    Falsifiable,
    /// Nothing is known.
    Unknown,
}

/// A class and the answers that it rests on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judgement {
    /// Whether the formula alone has a model: `Refuted` carries one, `Entailed` the proof that there is none.
    pub satisfiable: Answer,
    /// Whether it follows from nothing.
    pub valid: Answer,
}

impl Judgement {
    /// The class.
    pub fn class(&self) -> Class {
        match (&self.satisfiable.verdict, &self.valid.verdict) {
            (Verdict::Entailed(_), _) => Class::Contradictory,
            (_, Verdict::Entailed(_)) => Class::Valid,
            (Verdict::Refuted(_), Verdict::Refuted(_)) => Class::Contingent,
            (Verdict::Refuted(_), _) => Class::Satisfiable,
            (_, Verdict::Refuted(_)) => Class::Falsifiable,
            _ => Class::Unknown,
        }
    }
}

/// Judges a text of one formula, each of the two questions within the limit.
///
/// # Errors
/// `NotAFormula`, and what is too deep or too long for a problem.
pub fn judge(text: &Text, limit: Limit) -> Result<Judgement, Refusal> {
    let Some(formula) = text.as_formula() else {
        return Err(Refusal::new(Kind::NotAFormula, "the text is not one formula"));
    };
    judge_formula(formula, limit)
}

/// Judges a formula, each of the two questions within the limit.
///
/// # Errors
/// What is too deep or too long for a problem.
pub fn judge_formula(formula: &Formula, limit: Limit) -> Result<Judgement, Refusal> {
    let satisfiable = prove(&Problem::new(vec![formula.clone()], None)?, limit);
    let valid = prove(&Problem::new(Vec::new(), Some(formula.clone()))?, limit);
    Ok(Judgement { satisfiable, valid })
}
