//! Values to answers.

pub mod answer;

pub mod model;

pub mod sample;

pub mod embed;

pub mod run;

pub mod explain;
