//! Values to answers.

pub mod answer;

pub mod model;

pub mod sample;

pub mod run;

pub mod explain;
