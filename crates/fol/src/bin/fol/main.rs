//! The command `fol`.

fn main() {}
