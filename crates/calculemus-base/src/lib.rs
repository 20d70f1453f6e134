#![doc = include_str!("../README.md")]

pub mod file;

pub mod word;

pub mod stream;

pub mod quote;

pub mod process;

#[cfg(feature = "allocator")]
pub mod allocator;

#[cfg(any(test, feature = "testing"))]
pub mod testing;
