//! Formulas to and from other programs, record by record.
//!
//! [`import`] reads a file of some [`Format`] and hands each readable record on; [`export`] writes the
//! records of a data set. The common form between them is [`Record`], one line of `jsonl`.

mod export;
mod import;
mod public;
mod vocabulary;

pub use crate::record::Record;
pub use export::{export, records};
pub use import::{Imported, import};
pub use vocabulary::Vocabulary;

use crate::error::{Kind, Refusal};

/// A format of files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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

fn no_parquet() -> Refusal {
    Refusal::new(Kind::BadValue, "this build lacks the feature `parquet`").help("use the format jsonl")
}
