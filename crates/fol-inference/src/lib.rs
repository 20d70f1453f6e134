//! Inference tasks over first-order logic, with labels that are certain.
//!
//! An [`Instance`](instance::Instance) is a task (what follows from premises, whether something does, which variable another one equals) with
//! its label and its certificate: a proof by [named rules](fol_prover::rules), or finite models. A [`Maker`](generate::Maker) draws
//! instances of a [`Space`](space::Space), in one of two orders, so that [what is seen without reading](shallow) does not tell the
//! label. [`data`] writes data sets, and [`judge`] says what a prediction is worth.
//!
//! ```
//! use fol_inference::generate::Maker;
//! use fol_inference::instance::{Label, Order};
//! use fol_inference::space::Space;
//! use seeded::Family;
//!
//! let mut maker = Maker::new(Space::usual(Order::RuleFirst)?)?;
//! let instance = maker.instance(&mut Family::named("an example").stream(0))?;
//! let tokens = fol::task::encode(&instance.task);
//! assert_eq!(fol::task::decode(&tokens)?, instance.task);
//! assert_eq!(instance.label == Label::Unknown, !instance.models.is_empty());
//! # Ok::<(), fol::error::Refusal>(())
//! ```

// The order is that of reading. A blank line between modules keeps the formatter from sorting them.
pub mod instance;

pub mod space;

pub mod derivation;

pub mod edit;

pub mod fragment;

pub mod asked;

mod letters;

mod term;

mod tree;

pub mod generate;

pub mod shallow;

pub mod audit;

pub mod config;

pub mod judge;

pub mod data;

/// The code of the README, tested.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
