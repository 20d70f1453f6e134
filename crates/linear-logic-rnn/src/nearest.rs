//! Words of a text in messages: the known one that an unknown one may mean, and no more of a long one than is read.

use calculemus_base::word::nearest;
pub(crate) use calculemus_base::word::{cut, shortened};

/// The nearest of `known`, in quotes behind a question; those that are known, if none is near.
pub(crate) fn did_you_mean<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let known: Vec<&str> = known.into_iter().collect();
    match nearest(word, known.iter().copied()) {
        Some(near) => format!("; did you mean \"{near}\"?"),
        None if known.is_empty() => String::new(),
        None => format!("; there are {}", cut(&known.join(", "), 400)),
    }
}
