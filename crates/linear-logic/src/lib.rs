//! Intuitionistic linear logic as a small typed language whose programs are proofs.
//!
//! **The way of a text.** [`parse`] makes surface trees ([`ast`]) with a span on every node; [`elaborate`] looks names
//! up in a [`program`], checks types and linearity, and writes the copies and discards that the text left out: a
//! kernel [`term`], in which every rule is explicit. What is refused is refused as a value, with kind, span and
//! source ([`error`]).
//!
//! **What is done with a proof.** It is printed ([`mod@print`]), verified once more rule by rule ([`verify()`]), reduced to
//! normal form ([`reduce`]), recognised as a numeral or a word ([`recognise`]), read back as a sequent proof
//! ([`sequent`]), evaluated over any [`ring`] and any carrier of the atoms ([`denote`], [`argument`]), written as
//! polynomials ([`polynomial`]) and compiled to a straight-line program ([`compile`]). Evaluation, polynomials,
//! derivatives and compilation are one evaluator.
//!
//! ```
//! use linear_logic::elaborate::{Mode, elaborate};
//! use linear_logic::error::Source;
//! use linear_logic::literal::Order;
//! use linear_logic::program::Program;
//! use linear_logic::recognise::{Recognised, recognise};
//! use linear_logic::reduce::{Limits, normalize};
//! use linear_logic::{parse, print};
//!
//! let program = Program::new(Order::Literal, Mode::default())?;
//! let source = Source::new("example", b"mult [2] 3".to_vec());
//! let six = elaborate(&program, &source, &parse::query(&source)?)?;
//! assert_eq!(six.formula.short(), "int");
//!
//! let normal = normalize(&six.term, Order::Literal, Limits::default(), |_, _| Ok(()))?;
//! assert_eq!(recognise(&normal.term, &six.formula, Order::Literal), Some(Recognised::Numeral(6)));
//!
//! let source = Source::new("example", b"\\x. x * x : a -o a * a".to_vec());
//! let refusal = elaborate(&program, &source, &parse::query(&source)?).unwrap_err();
//! assert_eq!((refusal.kind.name(), refusal.variable.as_deref()), ("linear-reuse", Some("x")));
//! # Ok::<(), linear_logic::error::Refusal>(())
//! ```
//!
//! Comments here and in the code that speak of "section 8" mean the sections of the reference,
//! `docs/linear-logic/reference.md`. The feature `cli`, off by default, is the command `ill`.
//!
//! Texts and evaluations may nest thousands of levels deep: run them inside [`stack::on_large_stack`].

// The order is that of reading. A blank line between modules keeps the formatter from sorting them.
pub mod error;

pub mod formula;

mod lex;

pub mod ast;

pub mod parse;

pub mod term;

pub mod literal;

mod declared;

pub mod elaborate;

pub mod program;

pub mod library;

pub mod print;

mod verify;

mod unfold;

pub mod reduce;

pub mod ring;

pub mod denote;

pub mod recognise;

pub mod sequent;

pub mod json;

pub mod argument;

pub mod polynomial;

pub mod compile;

pub mod stack;

pub use verify::verify;

/// The README's example is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
