//! The words that the language knows, and the one that is nearest to a word it does not know.

pub use calculemus_base::word::nearest;

/// The types (section 5), in the order of their table.
pub const TYPES: &[&str] =
    &["bool", "count", "real", "tropical", "maxtimes", "maxmin", "addmult", "prob", "topk"];

/// The number of proofs that `topk(3)` keeps, as an argument of a directive says it.
pub fn proofs(word: &str) -> Option<u32> {
    let number: u64 = word.strip_prefix("topk(")?.strip_suffix(')')?.parse().ok()?;
    (number > 0).then(|| u32::try_from(number).unwrap_or(u32::MAX))
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
