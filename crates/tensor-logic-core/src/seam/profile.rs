//! How a program is evaluated, component by component: who evaluates it, in which order it is joined, how it is stored;
//! and, of a run, rounds, rows, bytes and times.
//!
//! Enter at [`Profile`]. An engine fills one in while it works, if it was asked to ([`crate::engine::Engine::observe`]);
//! `tl explain` fills one in without work, with estimates. [`text`] and [`fields`] print the table of `tl profile`.

mod label;
mod record;
mod show;

pub use label::{equation as equation_label, label, written};
pub use record::{Component, Executor, Layout, Order, Part, Profile, Stored};
pub use show::{bytes, fields, text, words};
pub use show::{component as component_json, grouped};
