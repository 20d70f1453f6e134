//! Which bindings a scope has: what its guards and relations admit.
//!
//! Enter at `Machine::support`.

pub(in crate::fast) mod matched;
pub(in crate::fast) mod propose;
pub(in crate::fast) mod ranges;
pub(in crate::fast) mod support;
pub(in crate::fast) mod table;
pub(in crate::fast) mod together;
