//! The kernels on every device of this machine against those of the CPU and against loops in f64.
#![cfg(feature = "vulkan")]
#![expect(clippy::unwrap_used, reason = "a test stops at what should not be")]

mod operations;
#[cfg(any(feature = "cuda", feature = "rocm"))]
mod texts;
