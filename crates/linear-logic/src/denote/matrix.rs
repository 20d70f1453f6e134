//! Matrices as data.

/// A matrix, row by row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Matrix<E> {
    /// The number of rows.
    pub rows: usize,
    /// The number of columns.
    pub columns: usize,
    /// The entries.
    pub entries: Vec<E>,
}

impl<E> Matrix<E> {
    /// The entry in a row and a column, from 0.
    pub fn get(&self, row: usize, column: usize) -> Option<&E> {
        self.entries.get(row * self.columns + column)
    }
}
