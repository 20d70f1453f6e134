//! Which bindings a scope has: what its guards and relations admit.
//!
//! Enter at `Machine::support`.

pub(crate) mod matched;
pub(crate) mod propose;
pub(crate) mod ranges;
pub(crate) mod support;
pub(crate) mod table;
pub(crate) mod together;
