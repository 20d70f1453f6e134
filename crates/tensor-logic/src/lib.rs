//! Tensor logic: one notation in which a relation, a neural network and a graphical model are
//! the same kind of statement.

pub mod ast;

pub mod lex;

pub mod parse;

pub mod format;

pub mod read;

pub mod source;

pub mod error;

pub mod draw;

pub mod names;

pub mod value;

pub mod function;

pub mod program;

pub mod lower;

pub mod domains;

pub mod recursion;

pub mod rename;

pub mod gradient;

pub mod learn;

pub mod parents;

pub mod analyse;

pub mod show;

pub mod engine;

pub mod walk;

pub mod start;

pub mod divergence;

pub mod reference;

pub mod relational;

pub mod fast;

pub mod proof;

pub mod answer;

pub mod model;

pub mod sample;

pub mod run;

pub mod files;

pub mod world;

pub mod datalog;

pub mod auto;

pub mod explain;

pub mod notebook;

pub mod console;
