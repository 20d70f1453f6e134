//! First-order logic in 663 symbols.

pub mod ast;
pub mod error;
pub mod law;
pub mod signature;
pub mod symbol;
