//! The core form, and what is asked of it.

// The order is that of reading.
pub mod value;

pub mod program;

pub mod weighted;

pub mod walk;

pub mod linear;

pub mod presence;

pub mod rename;

pub mod digits;

pub mod divergence;

pub mod carry;

pub mod signs;

pub mod windows;
