//! A refusal is an answer: a kind, a message, and for a proof what the language says of it.

use std::fmt;

use serde_json::{Value, json};

macro_rules! kinds {
    ($($kind:ident = $name:literal),+ $(,)?) => {
        /// What is wrong. The names are part of the interface.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        #[expect(missing_docs, reason = "the names say it")]
        pub enum Kind { $($kind),+ }

        impl Kind {
            /// Every kind.
            pub const ALL: &'static [Self] = &[$(Self::$kind),+];

            /// The kind as it is reported.
            pub fn name(self) -> &'static str {
                match self { $(Self::$kind => $name),+ }
            }
        }
    };
}

kinds! {
    UnknownCell = "unknown-cell",
    Config = "config",
    Shape = "shape",
    Proof = "proof",
    DegeneratePi = "degenerate-pi",
    UnknownTask = "unknown-task",
    Symbol = "symbol",
    Walk = "walk",
    WalkOutOfRange = "walk-out-of-range",
    Tape = "tape",
    BudgetGap = "budget-gap",
    RankWaste = "rank-waste",
    DuplicateArm = "duplicate-arm",
    Certificate = "certificate",
}

/// Why a cell, a task or their configuration is refused.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Refusal {
    /// What is wrong.
    pub kind: Kind,
    /// In words, with what would mend it.
    pub message: String,
    /// The refusal of the language, as it reports it, where a proof is refused.
    pub inside: Option<Value>,
    /// Whether it is of a size that is larger than what is computed with.
    pub(crate) is_of_size: bool,
}

/// What may be refused.
pub type Result<T> = std::result::Result<T, Refusal>;

impl Refusal {
    /// A refusal of this kind.
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), inside: None, is_of_size: false }
    }

    /// A key, a weight or a value that is missing, unknown or excluded by another.
    pub fn config(message: impl Into<String>) -> Self {
        Self::new(Kind::Config, message)
    }

    /// A size that is larger than what is computed with.
    pub(crate) fn too_large(message: impl Into<String>) -> Self {
        Self { is_of_size: true, ..Self::config(message) }
    }

    /// A weight, a state or an input of the wrong shape.
    pub fn shape(message: impl Into<String>) -> Self {
        Self::new(Kind::Shape, message)
    }

    /// One entry of `errors`.
    pub fn json(&self) -> Value {
        match &self.inside {
            Some(inside) => json!({"kind": self.kind.name(), "message": self.message, "refusal": inside}),
            None => json!({"kind": self.kind.name(), "message": self.message}),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind.name(), self.message)
    }
}

impl std::error::Error for Refusal {}

/// Something that is legal and probably not meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// The kind as it is reported.
    pub kind: &'static str,
    /// In words.
    pub message: String,
}

impl Warning {
    /// One entry of `warnings`.
    pub fn json(&self) -> Value {
        json!({"kind": self.kind, "message": self.message})
    }
}
