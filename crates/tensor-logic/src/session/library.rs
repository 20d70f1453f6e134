//! The library: layers of networks that a program includes, as `@include("std/gcn.tl", X=Atoms, H=Hidden)`.
//!
//! Enter at [`text`]. A file says at its top what its layer computes, from which paper, and what it takes.

macro_rules! library {
    ($($name:literal,)*) => {
        const FILES: &[(&str, &str)] = &[$(($name, include_str!(concat!("../../library/", $name))),)*];
    };
}

library! {
    "appnp.tl",
    "decoder.tl",
    "encoder.tl",
    "gatv2.tl",
    "gcn.tl",
    "gin.tl",
    "gru.tl",
    "lstm.tl",
    "rgcn.tl",
    "rnn.tl",
    "sage.tl",
    "sg.tl",
}

/// The text of a file of the library, by its name without `std/`.
pub fn text(name: &str) -> Option<&'static str> {
    FILES.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}

/// The names of the files of the library.
pub fn names() -> impl Iterator<Item = &'static str> {
    FILES.iter().map(|(name, _)| *name)
}
