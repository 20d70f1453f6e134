//! The commands that serve every learner. What belongs to one learner alone stands with it.

pub(crate) mod devices;
pub(crate) mod eval;
pub(crate) mod invent;
pub(crate) mod report;
pub(crate) mod runs;
pub(crate) mod sweep;
pub(crate) mod test;
pub(crate) mod train;
