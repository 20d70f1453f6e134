//! The command `fol`.
mod answer;
fn main() {
    // Replaced by the front half: clap, `-` for standard input, dispatch.
    let _ = (answer::print, answer::Item::listed, answer::Item::refused);
}
