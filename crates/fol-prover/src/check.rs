//! The checkers. They know problems and certificates, and nothing of how those are found: no module of the engine stands
//! above them.

mod clauses;
mod model;
mod proof;

pub use model::check_model;
pub use proof::check_proof;

/// Why a certificate is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{reason}", self.step.map_or(String::new(), |step| format!("step {step}: ")))]
pub struct Fault {
    /// The step that is wrong, if it is one.
    pub step: Option<usize>,
    /// What is wrong.
    pub reason: String,
}

impl Fault {
    fn new(reason: impl Into<String>) -> Self {
        Self { step: None, reason: reason.into() }
    }
}
