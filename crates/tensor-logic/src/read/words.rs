//! The words that the language knows, and the one that is nearest to a word it does not know.

/// The types (section 5), in the order of their table.
pub const TYPES: &[&str] =
    &["bool", "count", "real", "tropical", "maxtimes", "maxmin", "addmult", "prob", "topk"];

/// The nearest of some names, if it is near enough to be meant.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let lower = word.to_lowercase();
    let scored =
        known.into_iter().map(|name| (strsim::damerau_levenshtein(&lower, &name.to_lowercase()), name));
    let (distance, name) = scored.min_by_key(|(distance, _)| *distance)?;
    (distance <= 1 + name.chars().count() / 3).then_some(name)
}

/// The names in backquotes, with commas.
pub(super) fn listed<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let quoted: Vec<String> = names.into_iter().map(|name| format!("`{name}`")).collect();
    quoted.join(", ")
}

/// The nearest name as an advice, or all of them.
pub(super) fn advice(word: &str, known: &[&str]) -> String {
    match nearest(word, known.iter().copied()) {
        Some(name) => format!("`{name}` is nearest"),
        None => format!("there are {}", listed(known.iter().copied())),
    }
}
