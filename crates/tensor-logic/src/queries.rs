//! Values to answers.

pub mod answer;

pub mod model;

pub mod sample;

pub mod embed;

pub mod report;

pub mod run;

pub mod explain;
