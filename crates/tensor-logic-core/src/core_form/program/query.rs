//! What is asked of a program: queries, their directives, learning.

use crate::ast::Span;
use crate::value::Const;

use super::{Kind, TensorId};

/// A query or a file write.
#[derive(Debug, Clone)]
#[expect(clippy::large_enum_variant, reason = "a program has few, and nearly all are queries")]
pub enum Action {
    /// A query.
    Query(Query),
    /// `"out.csv" = Y`
    Write {
        /// The file, as written.
        file: String,
        /// The tensor.
        tensor: TensorId,
        /// Where it stands.
        span: Span,
    },
}

/// A query.
#[derive(Debug, Clone)]
pub struct Query {
    /// As written, with its directives.
    pub text: String,
    /// Where it stands.
    pub span: Span,
    /// The tensor that answers it: one of the program or a hidden one.
    pub tensor: TensorId,
    /// How the tensor becomes an answer.
    pub form: Form,
    /// What the directives ask.
    pub directives: Directives,
}

/// How a query's tensor becomes an answer.
#[derive(Debug, Clone)]
pub enum Form {
    /// A scalar, a tensor or a relation with these labels for its places.
    Values(Vec<String>),
    /// A rank-0 Boolean relation: true or false.
    Holds,
    /// A rank-0 valued relation: its value, or null.
    ValueOrNull,
    /// `Z[s | w=1]?`, `Z | w=1 ?`: the tensor is the model's scalar.
    Model(ModelQuery),
}

/// A query of a model (N13).
#[derive(Debug, Clone)]
pub struct ModelQuery {
    /// Whether it is normalised: `Z[… | …]`.
    pub conditional: bool,
    /// Targets: the index's name, its value where one is asked for, and its place.
    pub targets: Vec<(String, Option<Const>, Span)>,
    /// Evidence.
    pub evidence: Vec<(String, Const, Span)>,
    /// The model's name in the query.
    pub name: Span,
}

/// What a query's directives ask.
#[derive(Debug, Clone, Default)]
pub struct Directives {
    /// `@explain`
    pub explain: bool,
    /// `@minimize(…)`
    pub minimize: Option<Minimize>,
    /// `@sample(…)`: n, seed, and the directive's place.
    pub sample: Option<(u64, u64, Span)>,
    /// `@semiring(…)`: evaluate the rules below in this semiring.
    pub semiring: Option<Kind>,
    /// `@embed(…)`: answer in embedding space.
    pub embed: Option<Embed>,
}

/// `@embed(…)` (N15).
#[derive(Debug, Clone, PartialEq)]
pub struct Embed {
    /// `D`: the dimension, where it is given.
    pub dimension: Option<u64>,
    /// Of random vectors.
    pub seed: u64,
    /// What a score is compared with, between 0 and 1.
    pub theta: f64,
    /// `T`: 0 for the step at `theta`.
    pub temperature: f64,
    /// Whether an answer that is not certified is refused.
    pub certify: bool,
    /// The vectors of the objects.
    pub vectors: Vectors,
    /// The directive.
    pub span: Span,
}

/// The vectors of objects in embedding space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Vectors {
    /// Random unit vectors.
    Random,
    /// Orthonormal ones.
    Identity,
    /// The rows of a square tensor, each scaled to length 1.
    Rows(TensorId),
}

/// How the rate of learning changes with the steps.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Schedule {
    /// How it falls behind the first steps.
    pub decline: Decline,
    /// Over so many steps it rises from 0.
    pub warmup: u64,
    /// It does not fall below this.
    pub least: f64,
}

/// How a rate falls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decline {
    /// It does not.
    Constant,
    /// By the same each step, to 0.
    Linear,
    /// Along half a cosine, to 0.
    Cosine,
}

/// `@minimize(…)` (N12).
#[derive(Debug, Clone)]
pub struct Minimize {
    /// Which optimiser.
    pub optimiser: Optimiser,
    /// Learning rate.
    pub rate: f64,
    /// How the rate changes with the steps.
    pub schedule: Schedule,
    /// Added to the gradient; decoupled for AdamW.
    pub weight_decay: f64,
    /// Global norm of the gradient.
    pub clip: Option<f64>,
    /// How long.
    pub duration: Duration,
    /// `batch=s, size=n`.
    pub batch: Option<Batch>,
    /// Whether constants that are equal for all weights are merged.
    pub lift: bool,
    /// The directive.
    pub span: Span,
}

/// The optimisers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Optimiser {
    /// v ← m·v + g, W ← W - lr·v
    Sgd {
        /// m
        momentum: f64,
    },
    /// Adam, or AdamW where the decay is decoupled.
    Adam {
        /// First moment's decay.
        beta1: f64,
        /// Second moment's decay.
        beta2: f64,
        /// Added to the root.
        epsilon: f64,
        /// AdamW.
        decoupled: bool,
    },
}

/// The learning rate where none is written, of gradient descent or of the others (N12).
pub fn default_rate(descent: bool) -> f64 {
    if descent { 0.1 } else { 0.001 }
}

/// How long to learn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Duration {
    /// So many steps.
    Steps(u64),
    /// So many passes over the batches.
    Epochs(u64),
}

/// `batch=s, size=n, shuffle=1`, and what is held out
#[derive(Debug, Clone)]
pub struct Batch {
    /// The index.
    pub index: String,
    /// Values a step.
    pub size: usize,
    /// Whether the order changes every epoch.
    pub shuffle: bool,
    /// What is held out.
    pub valid: Option<Valid>,
}

/// `valid=0.2, patience=5`
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Valid {
    /// The share of the values that nothing is learned from, above 0 and below 1.
    pub part: f64,
    /// After so many epochs in a row without a lower loss of what is held out learning ends.
    pub patience: Option<u64>,
    /// The argument.
    pub span: Span,
}
