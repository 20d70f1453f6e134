//! Draft.
pub mod problem;

pub mod logic;

pub mod limit;

pub mod proof;

pub mod model;

pub mod check;

mod hash;

mod clausify;

mod sat;

mod ground;

mod finite;

mod saturate;

pub mod prove;

pub mod show;

pub mod json;

pub mod external;

pub mod random;

pub use check::{check_model, check_proof};
pub use external::tptp;
pub use limit::Limit;
pub use problem::Problem;
pub use prove::{Answer, Verdict, prove};
