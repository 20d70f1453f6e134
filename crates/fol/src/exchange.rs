//! Formulas to and from other programs, record by record.
//!
//! [`import`] reads a file of some [`Format`] and hands each readable record on; [`export`] writes the
//! records of a data set. The common form between them is [`Record`], one line of `jsonl`.

mod export;
mod format;
mod import;
mod public;
mod vocabulary;

pub use crate::record::Record;
pub use export::{export, records};
pub use format::Format;
pub use import::{Imported, import};
pub use vocabulary::Vocabulary;
