//! Tree to core form.

// The order is that of the way.
pub mod read;

pub mod source;

pub mod names;

pub mod lower;

pub mod domains;

pub mod present;

pub mod recursion;

pub mod parents;

pub mod starts;

pub mod analyse;
