//! The engine on every device of this machine. One program, so that drivers are linked once.
#![cfg(feature = "device")]
#![expect(clippy::unwrap_used, reason = "a test stops at what should not be")]

mod on_device;
#[path = "../it/variants.rs"]
mod variants;
