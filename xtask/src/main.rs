//! The wiring: data, training, evaluation, reports.

fn main() {}
