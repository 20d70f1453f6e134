//! A transformer.
pub mod config;
mod places;
pub mod batch;
pub mod order;
pub mod network;
pub mod model;
mod embedding;
pub mod explicit;
pub mod score;
pub mod learner;
pub mod predictor;
pub mod ngram;
pub mod evaluate;
