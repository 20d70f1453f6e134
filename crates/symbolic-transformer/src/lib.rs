//! A decoder-only transformer over the 663 symbols of first-order logic, judged against the exact optimum of its data's
//! law.
//!
//! Read [`model`] first: the model on one page, in candle's operations. [`explicit`] computes the same by hand, fast;
//! both are a [`network::Network`]. A [`learner::Learner`] is a network with its data, ready for `training::Trainer`.
//! [`decode`] and [`sample`](mod@sample) write, [`evaluate`] judges, [`ngram`] and [`lstm`] are what it is compared
//! with, [`export`] hands it to other programs.
//!
//! ```
//! use symbolic_transformer::{batch::Batch, config::ModelConfig, explicit::Explicit, network::Network};
//!
//! let mut model = Explicit::new(ModelConfig::size("tiny").unwrap())?;
//! let theta = model.layout().initialise(0);
//! assert_eq!(theta.len(), 567_191);
//! // <bos> ∀ VAR 1 PRED 5 ( VAR 1 ) <eos>: ten rows of 663 logits, one for each symbol but <bos>.
//! let batch = Batch::new([&[656_u16, 630, 644, 1, 646, 5, 639, 644, 1, 640, 657][..]]);
//! assert_eq!(model.logits(&theta, &batch)?.len(), 10 * 663);
//! # Ok::<(), training::Refusal>(())
//! ```

// The order is that of reading. A blank line between modules keeps the formatter from sorting them.
pub mod config;

#[cfg(feature = "candle")]
pub mod model;

pub mod batch;

pub mod network;

mod places;

pub mod premises;
mod structure;
mod tree;

mod embedding;

pub mod explicit;

#[cfg(feature = "device")]
pub mod on_device;

pub mod moderator;

pub mod order;

mod corpus;

pub mod texts;

pub mod learner;

pub mod score;

pub mod decode;

pub mod sample;

pub mod predictor;

pub mod ngram;

pub mod lstm;

pub mod evaluate;

pub mod tokenizer;

pub mod export;

/// The README's program is run with the tests of the documentation.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
