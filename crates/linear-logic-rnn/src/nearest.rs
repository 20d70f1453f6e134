//! Words of a text in messages: the known one that an unknown one may mean, and no more of a long one than is read.

/// The nearest of `known`, in quotes behind a question; nothing if nothing is known.
pub(crate) fn did_you_mean<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let word = shortened(word);
    let far = |k: &str| -strsim::jaro_winkler(&word, k);
    let near = known.into_iter().min_by(|a, b| far(a).total_cmp(&far(b)));
    near.map_or_else(String::new, |near| format!("; did you mean \"{near}\"?"))
}

/// A word as far as a message shows it.
pub(crate) fn shortened(word: &str) -> String {
    cut(word, 60)
}

/// A text up to so many characters.
pub(crate) fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()),
        None => text.to_owned(),
    }
}
