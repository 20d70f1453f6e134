//! First-order logic in 663 symbols.

pub mod ast;
pub mod error;
pub mod file;
pub mod glyph;
pub mod signature;
pub mod symbol;
pub mod tptp;
