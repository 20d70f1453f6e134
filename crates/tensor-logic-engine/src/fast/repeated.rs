//! Equations that are evaluated again on other numbers: their operations are recorded, and done once more.
//!
//! Enter at `Machine::again`.

pub(in crate::fast) mod again;
pub(in crate::fast) mod direct;
pub(in crate::fast) mod replay;
pub(in crate::fast) mod stretch;
