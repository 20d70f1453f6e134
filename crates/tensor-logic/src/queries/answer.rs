//! Answers of queries as typed values; [`json`] and [`text`] show them, [`drawn`] draws their proofs.

use std::sync::Arc;

use crate::program::Kind;
use crate::proof::{ProbableProofs, Proof};
use crate::value::{Domain, Tuple};

pub mod drawn;
pub mod json;
pub mod text;

/// The answer of a query.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The query as written, with its directives.
    pub text: String,
    /// Its line.
    pub line: usize,
    /// The type of its numbers.
    pub kind: Kind,
    /// What it says.
    pub content: Content,
    /// The numbers of the content as integers, where one of these counts has digits that a number with a
    /// point does not hold.
    pub counts: Option<Vec<i64>>,
    /// What `@minimize` did.
    pub minimize: Option<Minimized>,
    /// What `@sample` did.
    pub sample: Option<Sampled>,
    /// What `@embed` did.
    pub embed: Option<Embedded>,
    /// What `@explain` says.
    pub explain: Option<Explained>,
}

/// What an answer says.
#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    /// A number, a truth value (kind `bool`), or nothing: no such tuple is derived.
    Scalar(Option<f64>),
    /// All elements over the free indices.
    Tensor {
        /// The labels of its places.
        indices: Vec<String>,
        /// Their domains.
        domains: Vec<Domain>,
        /// Row-major.
        values: Arc<[f64]>,
    },
    /// The bindings of the free indices.
    Relation {
        /// The free indices.
        indices: Vec<String>,
        /// Sorted.
        tuples: Vec<Tuple>,
        /// Beside the tuples; `None` for Boolean relations.
        values: Option<Vec<f64>>,
    },
}

impl Answer {
    /// Its numbers and how they are written.
    pub fn figures(&self) -> json::Figures<'_> {
        json::Figures { kind: self.kind, values: self.content.numbers(), counts: self.counts.as_deref() }
    }
}

impl Content {
    /// All numbers of the answer.
    pub fn numbers(&self) -> &[f64] {
        match self {
            Content::Scalar(value) => value.as_slice(),
            Content::Tensor { values, .. } => values,
            Content::Relation { values, .. } => values.as_deref().unwrap_or(&[]),
        }
    }
}

/// What `lift=yes` merged: how many there were, and how many are left, where some were equal.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Lifting {
    /// Constants.
    pub constants: Option<(usize, usize)>,
    /// Tuples of what parameters change.
    pub tuples: Option<(usize, usize)>,
}

impl Lifting {
    /// Of what, how many there were and how many are left.
    pub fn all(self) -> impl Iterator<Item = (&'static str, usize, usize)> {
        let of = |name, found: Option<(usize, usize)>| found.map(|(from, to)| (name, from, to));
        [of("constants", self.constants), of("tuples", self.tuples)].into_iter().flatten()
    }
}

/// What learning did.
#[derive(Debug, Clone, PartialEq)]
pub struct Minimized {
    /// Steps taken.
    pub steps: u64,
    /// The loss over all data before the first step.
    pub first: f64,
    /// The loss over all data with the parameters that are kept: those after the last step, or of the best epoch.
    pub last: f64,
    /// The learned tensors.
    pub parameters: Vec<String>,
    /// What `lift=yes` merged.
    pub lifted: Lifting,
    /// What `valid` looked at.
    pub valid: Option<Validated>,
    /// The steps of an epoch.
    pub per_epoch: u64,
    /// The loss of each step before it: over all data, or over its batch.
    pub losses: Vec<f64>,
    /// The loss of what is held out behind each epoch.
    pub held: Vec<f64>,
}

/// What the samples said that nothing was learned from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Validated {
    /// Their loss before the first step.
    pub first: f64,
    /// The lowest of their losses behind an epoch: that of the parameters that are kept.
    pub best: f64,
    /// The epoch behind which it was lowest, the first of them; 0 where there was none.
    pub epoch: u64,
    /// The epochs that were learned.
    pub epochs: u64,
}

/// What sampling did.
#[derive(Debug, Clone, PartialEq)]
pub struct Sampled {
    /// The number of draws.
    pub n: u64,
    /// The seed.
    pub seed: u64,
    /// The standard error of each number of the answer; `None` of one draw, which does not say how far draws scatter.
    pub standard_errors: Option<Vec<f64>>,
}

/// How a query was answered in embedding space.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Embedded {
    /// The dimension of the vectors.
    pub dimension: u64,
    /// What scores were compared with.
    pub theta: f64,
    /// The largest absolute dot product of two different objects.
    pub coherence: f64,
    /// The largest bound on the cross-talk of a retrieval.
    pub bound: f64,
    /// Whether that bound is below min(theta, 1 - theta), so that at temperature 0 the answer is the symbolic one.
    pub certified: bool,
    /// The seed of random vectors.
    pub seed: Option<u64>,
    /// 0 for a step at theta.
    pub temperature: f64,
}

/// What `@explain` says.
#[derive(Debug, Clone)]
pub struct Explained {
    /// How many tuples each computed relation stored.
    pub derived: Vec<(String, u64)>,
    /// A proof of least height of a true ground query.
    pub proof: Option<Proof>,
    /// The most probable proofs of a ground query of a relation with probabilities.
    pub proofs: Option<ProbableProofs>,
}
