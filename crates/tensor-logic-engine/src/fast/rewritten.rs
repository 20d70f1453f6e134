//! Programs put otherwise before they are run.

pub(in crate::fast) mod full;
pub(in crate::fast) mod inline;
pub(in crate::fast) mod tuple_blocks;
pub(in crate::fast) mod unions;
