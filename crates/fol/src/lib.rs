//! First-order logic in 663 symbols.
//!
//! **Formulas.** A text is read ([`read`]) into a tree ([`ast`]) and written again, as text
//! ([`print`](print())) or as symbols ([`encode`]); both directions lose nothing. A [`symbol`] is a numeral or one
//! of 38 signs, an index is written in numerals to the base 625 ([`codec`]), and each symbol has a picture
//! ([`glyph`]). A tree is checked ([`check`]), measured ([`measure`]), substituted into ([`substitute`]) and
//! brought into canonical forms ([`canon`]), whose [`Key`] stands for a class. A [`mask`] says which symbols may
//! follow a prefix. A [`task`] is a question with its answer, in a grammar of its own. What cannot be read or done is refused with kind, place and remedy ([`error`]).
//!
//! **Laws.** A [`law`] is a distribution over texts. It can be drawn from ([`sample`]), it knows the probability
//! of every next symbol ([`score`]) and so the best that any predictor can reach ([`estimate`]); formulas of a size
//! can be counted and numbered ([`count`]).
//!
//! **Files.** [`data`] makes data sets of a law and reads them back; [`exchange`] and [`tptp`] speak with other
//! programs.
//!
//! ```
//! use fol::read::{Mode, Source, parse};
//!
//! let read = parse("∀x P(x) ∧ Q(x)", Source::Text, Mode::Lenient)?;
//! assert_eq!(fol::print(&read.text, fol::Style::Unicode), "(∀x0 P0(x0) ∧ P1(x0))");
//! assert_eq!(fol::decode(&read.tokens)?, read.text);
//!
//! let refusal = parse("P1(x1) = P2(x1)", Source::Text, Mode::Lenient).unwrap_err();
//! assert_eq!((refusal.token, refusal.span), (Some(6), Some((7, 8))));
//! # Ok::<(), fol::error::Refusal>(())
//! ```

// The order is that of reading. A blank line between modules keeps the formatter from sorting them.
pub mod symbol;

pub mod ast;

pub mod error;

mod symbol_set;

pub mod codec;

mod blocks;

mod walk;

mod built;

mod index;

mod input;

pub mod read;

mod encode;

mod print;

pub mod json;

pub mod task;

pub mod measure;

pub mod signature;

pub mod check;

pub mod canon;

mod key;

mod subst;

pub mod mask;

pub mod notation;

pub mod glyph;

pub mod tptp;

pub mod law;

pub mod count;

pub mod sample;

pub mod score;

pub mod estimate;

pub mod invent;

#[doc(hidden)] // for the command
pub mod file;

mod record;

pub mod data;

pub mod exchange;

/// The code of the README, tested.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

pub use encode::encode;
pub use key::{DEFAULT_WEIGHTS, Key, bucket, split};
pub use print::{Style, print, words, written};
pub use read::decode;
pub use subst::substitute;
pub use symbol_set::{SymbolSet, expected_labels};
pub use walk::free_variables;
