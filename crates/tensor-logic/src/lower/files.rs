//! Where the files of a program come from, and what they give.

use std::sync::Arc;

use crate::ast;
use crate::error::{Code, Report};
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
    },
}

/// Where the files of a program come from.
pub trait FileSource {
    /// Reads a file for the tensor of this name; `options` are the words behind `as`.
    ///
    /// # Errors
    /// `file-not-found` and `file-format`, located at the file's name.
    fn load(
        &mut self,
        name: &str,
        file: &ast::Text,
        options: &[ast::Name],
        symbols: &mut Symbols,
    ) -> Result<Loaded, Report>;
}

/// No files: what `check` reads them as is empty.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoFiles;

impl FileSource for NoFiles {
    fn load(
        &mut self,
        _: &str,
        file: &ast::Text,
        _: &[ast::Name],
        _: &mut Symbols,
    ) -> Result<Loaded, Report> {
        let message = format!("there is no file `{}` here", file.value);
        Err(Report::new(Code::FileNotFound, file.span, message))
    }
}
