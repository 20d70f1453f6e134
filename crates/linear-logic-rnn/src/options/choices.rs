//! The values that options choose from, each under its name in documents.

use serde::{Deserialize, Serialize};

use crate::step::Act;

macro_rules! choice {
    ($(#[$meta:meta])* $name:ident { $($(#[$each:meta])* $variant:ident = $text:literal),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
        pub enum $name { $($(#[$each])* #[serde(rename = $text)] $variant),+ }
    };
}

pub(super) use choice;

choice! {
    /// The set of values that all other keys of `ll` start from.
    Preset { /// Definition 2.9.
        Paper = "paper", /// The authors' public code.
        Coded = "coded", /// The recommended start.
        Stable = "stable" }
}
choice! {
    /// How words are read.
    WordOrder { /// ⟦001⟧(X, Y) = X X Y
        Literal = "literal", /// ⟦001⟧(X, Y) = Y X X
        FirstDigitFirst = "first-digit-first", /// The same, short.
        Fdf = "fdf" }
}
choice! {
    /// Where operators live.
    Operators { /// Vectors, multiplied elementwise.
        Diag = "diag", /// Matrices.
        Full = "full", /// Diagonal for Λ, full for Π.
        TwoSpace = "two-space" }
}
choice! {
    /// How the state reaches the space of the operators.
    Projection { /// By J, and back by I.
        Learned = "learned", /// It is the same space.
        Identity = "identity" }
}
choice! {
    /// How many gates a program has.
    Gate { /// One.
        Scalar = "scalar", /// One for each coordinate.
        Diagonal = "diagonal" }
}
choice! {
    /// γ
    GateAct { /// max(x, 0)
        Relu = "relu", /// tanh
        Tanh = "tanh", /// The logistic function.
        Sigmoid = "sigmoid", /// Over the programs.
        Softmax = "softmax", /// x
        Identity = "identity", /// 1, without weights.
        One = "one" }
}
choice! {
    /// What gates depend on.
    GateSource { /// The state.
        State = "state", /// The step: Remark A.1.
        Table = "table" }
}
choice! {
    /// x⁽⁰⁾
    FirstInput { /// 0
        Zero = "zero", /// x⁽¹⁾
        First = "first", /// A weight.
        Learned = "learned" }
}
choice! {
    /// h⁽⁰⁾
    FirstState { /// 0
        Zero = "zero", /// A weight.
        Learned = "learned" }
}
choice! {
    /// What is done to V before use.
    VNorm { /// Nothing.
        None = "none", /// Elementwise tanh.
        Tanh = "tanh", /// Softmax of every column.
        ColumnSoftmax = "column-softmax" }
}
choice! {
    /// How V starts.
    VInit { /// Glorot's uniform distribution.
        Glorot = "glorot", /// The identity, and uniform ±0.1.
        Identity = "identity" }
}
choice! {
    /// The weights of multiplicative integration.
    MiWeights { /// Trained.
        Learned = "learned", /// All 1.
        Ones = "ones" }
}
choice! {
    /// σ
    Sigma { /// max(x, 0)
        Relu = "relu", /// tanh
        Tanh = "tanh", /// x
        Identity = "identity" }
}

impl Sigma {
    /// The function.
    pub fn act(self) -> Act {
        match self {
            Self::Relu => Act::Relu,
            Self::Tanh => Act::Tanh,
            Self::Identity => Act::Identity,
        }
    }
}

impl WordOrder {
    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Literal => "literal",
            Self::FirstDigitFirst | Self::Fdf => "first-digit-first",
        }
    }

    /// The reading of the language.
    pub fn order(self) -> linear_logic::literal::Order {
        match self {
            Self::Literal => linear_logic::literal::Order::Literal,
            Self::FirstDigitFirst | Self::Fdf => linear_logic::literal::Order::FirstDigitFirst,
        }
    }
}

/// A proof of Λ: a numeral, or a text that checks as `int`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, expecting = "`lambda` has an entry that is neither an integer from 0 nor a text")]
#[expect(missing_docs, reason = "the sentence above")]
pub enum Numeral {
    Number(u64),
    Text(String),
}
