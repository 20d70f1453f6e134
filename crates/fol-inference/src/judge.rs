//! What an answer is worth, whoever gave it.
//!
//! Many conclusions are valid, so that an exact match is a lower bound: an answer is *valid* if the prover says that it follows, and *relevant*
//! if it is no premise, needs some premise, and weakens nothing that follows by a disjunction, unless the chain ends in one. Steps are
//! read back as applications of named rules; of a proof each premise that it uses must be needed.

use fol::ast::{Connective, Formula};
use fol::symbol::SymbolId;
use fol::task::{Task, decode};
use fol_prover::Limit;
use fol_prover::rules::{self, Name, same};

use crate::asked::follows_within;

/// An answer, judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Judged {
    /// It is a task of the same form.
    pub read: bool,
    /// The same symbols.
    pub exact: bool,
    /// The same up to names of bound variables (K1).
    pub alpha: bool,
    /// It is right: what it concludes follows, or `<unknown>` or the other answer is what is wanted.
    pub valid: bool,
    /// It is valid and says something that is asked for.
    pub relevant: bool,
    /// The steps of the answer.
    pub steps: usize,
    /// Those that are applications of a rule to premises and earlier steps.
    pub right_steps: usize,
    /// Every step is right, the conclusion too, and each premise that is used is needed.
    pub proof: bool,
    /// The answer is `<unknown>`.
    pub says_unknown: bool,
    /// `<unknown>` is right.
    pub is_unknown: bool,
}

/// Judges the symbols of a whole sequence, without `<bos>` and `<eos>`, beside the task that was asked. `last` is the last rule of its chain.
pub fn judge(wanted: &Task, last: Option<Name>, answer: &[SymbolId], limit: Limit) -> Judged {
    let is_unknown = is_unknown(wanted);
    let exact = fol::task::encode(wanted) == answer;
    let mut judged = Judged { exact, is_unknown, ..Judged::default() };
    let Ok(found) = decode(answer) else { return judged };
    judged.says_unknown = self::is_unknown(&found);
    match (wanted, &found) {
        (Task::Deduction { premises, steps }, Task::Deduction { premises: given, steps: own })
            if premises == given =>
        {
            judged.read = true;
            judged.alpha = steps.len() == own.len() && steps.iter().zip(own).all(|(a, b)| same(a, b));
            judged.deduction(premises, own, last, limit);
        }
        (
            Task::Question { premises, asked, answer },
            Task::Question { premises: given, asked: about, answer: own },
        ) if premises == given && asked == about => {
            judged.read = true;
            judged.alpha = answer == own;
            (judged.valid, judged.relevant) = (judged.alpha, judged.alpha);
        }
        (Task::Term { equations, asked, .. }, Task::Term { equations: given, asked: about, .. })
            if equations == given && asked == about =>
        {
            judged.read = true;
            judged.alpha = exact;
            (judged.valid, judged.relevant) = (exact, exact);
        }
        _ => {}
    }
    judged
}

fn is_unknown(task: &Task) -> bool {
    match task {
        Task::Deduction { steps, .. } => steps.is_empty(),
        Task::Question { answer, .. } => *answer == fol::task::Answer::Unknown,
        Task::Term { .. } => false,
    }
}

impl Judged {
    fn deduction(&mut self, premises: &[Formula], steps: &[Formula], last: Option<Name>, limit: Limit) {
        self.steps = steps.len();
        let Some(conclusion) = steps.last() else {
            (self.valid, self.relevant) = (self.is_unknown, self.is_unknown);
            return;
        };
        // Where nothing is asked for a conclusion may be valid all the same, and is not relevant.
        self.valid = follows_within(premises, conclusion, limit) == Some(true);
        self.relevant = self.valid
            && !self.is_unknown
            && is_relevant(premises, conclusion, last == Some(Name::OrI), limit);
        let mut known: Vec<Formula> = premises.to_vec();
        let mut used = vec![false; premises.len()];
        for step in steps {
            if let Some((_, from)) = explain(&known, step) {
                self.right_steps += 1;
                for at in from {
                    if let Some(used) = used.get_mut(at) {
                        *used = true;
                    }
                }
            }
            known.push(step.clone());
        }
        let needed = |at: usize| {
            let mut others: Vec<(usize, Formula)> = premises.iter().cloned().enumerate().collect();
            others.retain(|(own, _)| *own != at && used.get(*own) == Some(&true));
            let others: Vec<Formula> = others.into_iter().map(|(_, premise)| premise).collect();
            follows_within(&others, conclusion, limit) == Some(false)
        };
        let all_needed = used.iter().enumerate().filter(|(_, used)| **used).all(|(at, _)| needed(at));
        self.proof = self.relevant && self.right_steps == self.steps && all_needed;
    }
}

/// Whether a conclusion that follows says something of its own.
fn is_relevant(premises: &[Formula], conclusion: &Formula, may_weaken: bool, limit: Limit) -> bool {
    if premises.iter().any(|premise| same(premise, conclusion))
        || follows_within(&[], conclusion, limit) != Some(false)
    {
        return false;
    }
    match conclusion {
        Formula::Binary(Connective::Or, left, right) if !may_weaken => {
            [left, right].into_iter().all(|side| follows_within(premises, side, limit) == Some(false))
        }
        _ => true,
    }
}

/// A rule that gives a formula of others, and the places of those that it takes.
pub fn explain(known: &[Formula], step: &Formula) -> Option<(Name, Vec<usize>)> {
    for &rule in Name::ALL {
        for (at, first) in known.iter().enumerate() {
            if rules::check(rule, std::slice::from_ref(first), step) {
                return Some((rule, vec![at]));
            }
        }
    }
    for &rule in Name::ALL {
        for (at, first) in known.iter().enumerate() {
            for (other, second) in known.iter().enumerate().skip(at + 1) {
                if rules::check(rule, &[first.clone(), second.clone()], step) {
                    return Some((rule, vec![at, other]));
                }
            }
        }
    }
    None
}
