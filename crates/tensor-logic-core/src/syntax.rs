//! Text to tree and back.

// The order is that of reading. A blank line between modules keeps the formatter from sorting them.
pub mod ast;

pub mod lex;

pub mod parse;

pub mod format;

pub mod function;

pub mod error;

pub mod draw;

pub mod json;
