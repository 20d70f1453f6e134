//! Where the files of a program come from, and what they give.

use std::sync::Arc;

use crate::ast;
use crate::error::{Code, Refusal};
use crate::program::Facts;
use crate::value::Symbols;

/// What a file gives.
#[derive(Debug, Clone)]
pub enum Loaded {
    /// A relation.
    Facts(Facts),
    /// A dense array, row-major.
    Array {
        /// Its sizes.
        shape: Vec<usize>,
        /// Its values.
        values: Arc<[f64]>,
        /// What integers of more digits have beyond the values; empty where there are none.
        rest: Arc<[f64]>,
    },
}

/// A file that a program reads.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// The tensor that it is for.
    pub tensor: &'a str,
    /// Its name.
    pub file: &'a ast::Text,
    /// The words behind `as`.
    pub options: &'a [ast::Name],
}

/// Where the files of a program come from.
pub trait FileSource {
    /// Reads a file.
    ///
    /// # Errors
    /// `file-not-found` and `file-format`, located at the file's name.
    fn load(&mut self, wanted: &Wanted<'_>, symbols: &mut Symbols) -> Result<Loaded, Refusal>;
}

/// No files: what `check` reads them as is empty.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoFiles;

impl FileSource for NoFiles {
    fn load(&mut self, wanted: &Wanted<'_>, _: &mut Symbols) -> Result<Loaded, Refusal> {
        let message = format!("there is no file `{}` here", wanted.file.value);
        Err(Refusal::new(Code::FileNotFound, wanted.file.span, message))
    }
}
