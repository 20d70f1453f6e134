#![doc = include_str!("../README.md")]

pub mod file;

pub mod word;

pub mod stream;

pub mod quote;

pub mod process;

#[cfg(any(test, feature = "testing"))]
pub mod testing;
