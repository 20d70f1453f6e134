//! What every format is read as, and why bytes are not of a format.

/// A dense array, row-major.
#[derive(Debug, Clone, PartialEq)]
pub struct Dense {
    /// Its sizes.
    pub shape: Vec<usize>,
    /// Its values.
    pub values: Vec<f64>,
    /// What integers of more digits have beyond the values; empty where there are none.
    pub rest: Vec<f64>,
}

/// Rows of an empty array may be so many: no bytes of a file stand for them.
const MOST_EMPTY: usize = 1 << 24;

impl Dense {
    /// An array of as many values as its sizes say.
    ///
    /// # Errors
    /// Sizes beside a 0 that are beyond all measure.
    pub(super) fn new(shape: Vec<usize>, values: Vec<f64>, rest: Vec<f64>) -> Result<Dense, Fault> {
        let others = shape.iter().filter(|size| **size > 0);
        let rows = others.fold(1_usize, |rows, size| rows.saturating_mul(*size));
        if values.is_empty() && rows > MOST_EMPTY {
            let what = format!("the shape {shape:?} has no elements, and sizes that no bytes stand for");
            return Err(Fault::Whole(what));
        }
        Ok(Dense { shape, values, rest })
    }
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
