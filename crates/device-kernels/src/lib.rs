//! The fused operations of training, forward and backward, written once for every device.
//!
//! `training::kernels` has them for the CPU, and is the oracle of these: each is compared with it, or with loops in f64.
//! A `Machine` is a device that was opened; what lies on it is a `Buffer`. Products use 32-bit floating point
//! numbers and sum in an order that depends on no device; nothing is added by two units at once, so a result has the same
//! bits in every run. The kernels are CubeCL's, which turns one text into WGSL for Vulkan, CUDA's and HIP's C++, and Metal's.
//!
//! Nothing of a device is in a build without one of the features; [`available`] then says so, and [`open`] refuses.

pub mod error;

pub mod device;

#[cfg(feature = "kernels")]
mod faults;

#[cfg(feature = "kernels")]
mod kernels;

#[cfg(feature = "kernels")]
mod machine;

#[cfg(feature = "kernels")]
mod sixteen;

#[cfg(feature = "kernels")]
pub mod check;

#[cfg(all(any(feature = "cuda", feature = "rocm"), feature = "vulkan"))]
pub mod text;

pub use device::{Found, available, open};
#[cfg(any(feature = "vulkan", feature = "metal"))]
pub use device::{ToLose, open_to_lose};
pub use error::{Refusal, Result};
#[cfg(feature = "kernels")]
pub use machine::{Attention, Buffer, Groups, Machine, Masks, Newest, Part, Products, Related, Rows, Step};
#[cfg(feature = "kernels")]
pub use sixteen::Sixteen;

/// The README's program is run with the tests of the documentation.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
