//! Values to answers.

pub mod answer;

pub mod model;

pub mod sample;

mod eliminated;
pub mod embed;

pub mod report;

pub mod run;

pub mod explain;
