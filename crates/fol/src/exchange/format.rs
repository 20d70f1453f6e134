//! The formats, and what is refused in all of them.

use crate::error::{Kind, Refusal};

/// A format of files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Format {
    /// One object a line.
    Jsonl,
    /// Columns; needs a feature that this build does not have.
    Parquet,
    /// One problem of FOF and CNF a file.
    Tptp,
    /// The sample files of the public project *Symbolic-Transformers*.
    PublicJson,
}

pub(super) fn no_parquet() -> Refusal {
    Refusal::new(Kind::BadValue, "this build lacks the feature `parquet`").help("use the format jsonl")
}

/// A record that is none of its format.
pub(super) fn bad(message: &str) -> Refusal {
    Refusal::new(Kind::BadRecord, message)
}
