//! The command `tl`.
fn main() {}
