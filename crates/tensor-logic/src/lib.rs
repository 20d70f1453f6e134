//! Tensor logic: one notation in which a relation, a neural network and a graphical model are
//! the same kind of statement.

pub mod ast;

pub mod error;

pub mod names;

pub mod value;

pub mod function;

pub mod program;

pub mod engine;

pub mod relational;
