//! Tensor logic: one notation in which a relation, a neural network and a graphical model are
//! the same kind of statement.
//!
//! **From text to core form.** A text is read into a faithful tree ([`read`](read::read), [`ast`]), which
//! [`format`](format::format) prints. [`analyse`](analyse::analyse) makes of it the core form
//! ([`program`]): names resolved ([`names`]), scopes written out ([`lower`]), every place and index with
//! its values ([`domains`]), tensors that depend on each other in components ([`recursion`]). What
//! cannot be right is refused with a code, a place and what would mend it ([`error`]).
//!
//! **From core form to answers.** [`run`](run::run) carries out a program's queries on an
//! [`Engine`](engine::Engine): the [`mod@reference`] interpreter, which is plain loops and the truth, or
//! [`auto`], which sends rules to the crate `datarel` and the rest to the [`fast`] one. The gradient of
//! a program is a program ([`gradient`]); [`learn`] follows it.
//!
//! A [`Notebook`](notebook::Notebook) is a program with data of the Rust program around it. With text only,
//! [`world::calculate`] is the whole way:
//!
//! ```
//! let text = "
//!     Parent(Alice, Bob); Parent(Bob, Charlie)
//!     Ancestor(x, y) <- Parent(x, y)
//!     Ancestor(x, z) <- Ancestor(x, y), Parent(y, z)
//!     Feat[Bob, d] = [0, 1]
//!     Feat[Charlie, d] = [2, 2]
//!     Below[x, d] = Ancestor(x, y) Feat[y, d]
//!     Ancestor(Alice, x)?
//!     Below[Alice, d]?
//! ";
//! let found = tensor_logic::world::calculate(text)?;
//! assert_eq!(found.text(), "Ancestor(Alice, x)?\n  x = Bob\n  x = Charlie\nBelow[Alice, d]?\n  [2.0, 3.0]\n");
//!
//! let refusal = tensor_logic::world::calculate("W = [1, 2]; X = [1, 2, 3]; Y = W[i] X[i]").unwrap_err();
//! assert_eq!(refusal[0].code.name(), "size-conflict");
//! # Ok::<(), Vec<tensor_logic::error::Refusal>>(())
//! ```

/// The README's program runs as it stands there.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Readme;

#[cfg(feature = "timely")]
pub mod dataflow;
mod learning;
mod queries;
mod session;

pub use crate::learning::learn;
pub use crate::queries::{answer, embed, explain, model, report, run, sample};
pub use crate::session::{checkpoints, console, files, library, neuralogic, notebook, tudataset, world};
pub(crate) use tensor_logic_core::digits;
pub use tensor_logic_core::{
    analyse, ast, carry, divergence, domains, draw, engine, error, format, function, include, json, lex,
    linear, lower, names, parents, parse, presence, profile, program, proof, read, recursion, rename, show,
    source, start, value, walk, windows,
};
pub use tensor_logic_engine::{auto, datalog, fast, plan};
pub use tensor_logic_reference as reference;
pub use tensor_logic_weighted as weighted;

/// The gradient of a program: `adjoint` is the program, `evaluate` its values.
pub mod gradient {
    pub use crate::learning::evaluate;
    pub use tensor_logic_rewrites::gradient::{Adjoint, adjoint, guarded_adjoint};
}
