//! Intuitionistic linear logic as a small typed language.

pub mod formula;

pub mod error;

mod lex;

pub mod ast;

pub mod parse;

pub mod term;

pub mod literal;

pub mod elaborate;

pub mod print;

pub mod program;

pub mod library;

mod unfold;

pub mod reduce;

pub mod ring;

pub mod denote;

pub mod json;

pub mod argument;

pub mod polynomial;

pub mod compile;

pub mod recognise;

pub mod sequent;

pub mod stack;
