//! First-order logic in 663 symbols.

pub mod ast;
pub mod count;
pub mod error;
mod index;
pub mod law;
pub mod measure;
pub mod sample;
pub mod score;
pub mod signature;
pub mod symbol;
mod symbol_set;

pub use symbol_set::{SymbolSet, expected_labels};
