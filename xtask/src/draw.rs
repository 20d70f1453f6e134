//! What pages, pictures and tables are made of. Nothing here knows a learner.

pub(crate) mod axis;
pub(crate) mod csv;
pub(crate) mod html;
pub(crate) mod numbers;
pub(crate) mod plot;

pub(crate) use axis::{Axis, Scale};
