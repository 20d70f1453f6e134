//! Text to tree and back.
//!
//! A text is read into a faithful tree ([`ast`]) by [`lex`] and [`parse`](mod@parse); [`format`](format::format) prints the tree
//! in its one canonical form. What is refused is a value ([`error`]) that [`draw`] quotes with its place. [`function`] lists the
//! names that can be called, and [`json`] spells what a program's answers are written with.

/// The README's program runs as it stands there.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Readme;

// The order is that of reading. A blank line between modules keeps the formatter from sorting them.
pub mod ast;

pub mod lex;

pub mod parse;

pub mod format;

pub mod function;

pub mod error;

pub mod include;

pub mod draw;

pub mod json;
