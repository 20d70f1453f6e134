//! Programs of tensor logic made of programs.
//!
//! All of them are functions of the core form that compute no number. Enter at [`gradient`](mod@gradient): the adjoint of a
//! program is a program. What an engine puts otherwise before it runs one: reads of relations that have every tuple
//! are dropped ([`full`]), large intermediate tensors stand inline where they are read once ([`inline`]), and what one of
//! several relations gives a value is listed by a relation of its own ([`unions`]).

pub mod gradient;

pub mod full;

pub mod inline;

pub mod unions;

use tensor_logic_core::{
    analyse, ast, engine, error, function, lower, presence, present, program, recursion, rename, room, show,
    value, walk, weighted,
};
