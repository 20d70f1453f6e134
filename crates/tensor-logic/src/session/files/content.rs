//! What every format is read as, and why bytes are not of a format.

/// A dense array, row-major.
#[derive(Debug, Clone, PartialEq)]
pub struct Dense {
    /// Its sizes.
    pub shape: Vec<usize>,
    /// Its values.
    pub values: Vec<f64>,
}

/// Why bytes are not of a format: what is wrong and where.
#[non_exhaustive]
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// In a text.
    #[error("line {line}: {what}")]
    Line {
        /// The line, from 1.
        line: u64,
        /// What is wrong.
        what: String,
    },
    /// In a binary file.
    #[error("at byte {offset}: {what}")]
    Offset {
        /// The offset, from 0.
        offset: usize,
        /// What is wrong.
        what: String,
    },
    /// In the whole.
    #[error("{0}")]
    Whole(String),
}
