//! A transformer.
pub mod batch;
pub mod config;
mod embedding;
pub mod explicit;
pub mod learner;
pub mod model;
pub mod network;
pub mod order;
mod places;
pub mod score;
