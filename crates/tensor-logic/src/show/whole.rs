//! Declarations, data and whole programs.

use crate::program::Program;

/// A program as legal text.
pub fn program(_program: &Program) -> String {
    String::new()
}
