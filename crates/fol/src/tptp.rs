//! TPTP, the exchange language of theorem provers (Sutcliffe, *The TPTP Problem Library*).
//!
//! [`print()`] (F60) writes a text as FOF formulas, one line for each; [`read()`] (F61) reads one file of FOF and CNF as one
//! text. TPTP closes every variable, so a free variable `n` of ours, a rigid parameter, travels as the
//! constant `v<n>`. Sorts (written as guards), ∃! (written out) and MODELS do not come back.

mod cursor;
mod formula;
mod lex;
mod names;
mod print;
mod read;

pub use print::print;
pub use read::read;
