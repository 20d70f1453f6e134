//! Programs put otherwise before they are run, by what is known of their relations. What needs no store is the crate
//! `tensor-logic-rewrites`.

pub(crate) mod tuple_blocks;
