//! A transformer.
pub mod batch;
pub mod config;
pub mod decode;
mod embedding;
pub mod evaluate;
pub mod explicit;
pub mod export;
pub mod learner;
pub mod lstm;
pub mod model;
pub mod network;
pub mod ngram;
pub mod order;
mod places;
pub mod predictor;
pub mod sample;
pub mod score;
pub mod tokenizer;
