//! Judging a model against the exact law of its data.
//!
//! The law is known, so the best possible predictor is known, and a model is judged by what it loses against it.
//! Raw accuracy and perplexity are reported but never decide.

mod classes;
pub mod criticality;
pub mod generation;
pub mod h3;
pub mod iid;
mod labels;
pub mod novelty;
pub mod power_law;
mod statistics;
pub mod structure;

pub use classes::Class;
pub use novelty::Known;
pub use statistics::{chi_square_p, mean_interval};
