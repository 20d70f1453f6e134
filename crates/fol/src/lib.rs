//! First-order logic in 663 symbols.

pub mod ast;
pub mod canon;
pub mod check;
pub mod codec;
pub mod count;
pub mod data;
mod encode;
pub mod error;
pub mod estimate;
mod index;
pub mod json;
mod key;
pub mod law;
pub mod measure;
mod print;
pub mod read;
pub mod sample;
pub mod score;
pub mod signature;
mod subst;
pub mod symbol;
mod symbol_set;
mod walk;

pub use encode::encode;
pub use key::{DEFAULT_WEIGHTS, Key, bucket, key, split};
pub use print::{Style, print, words};
pub use read::decode;
pub use subst::substitute;
pub use symbol_set::{SymbolSet, expected_labels};
pub use walk::free_variables;
