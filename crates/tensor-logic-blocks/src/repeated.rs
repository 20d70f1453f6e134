//! Equations that are evaluated again on other numbers: their operations are recorded, and done once more.
//!
//! Enter at `Machine::again`.

pub(crate) mod again;
pub(crate) mod direct;
pub(crate) mod replay;
pub(crate) mod stretch;
