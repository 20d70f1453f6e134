//! A transformer.
pub mod config;
mod places;
pub mod batch;
pub mod network;
pub mod model;
mod embedding;
pub mod explicit;
