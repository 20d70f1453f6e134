//! Words in messages: the known one that an unknown one may mean, and no more of a long one than is read.

/// The nearest of some words by edits (case aside), if it is near enough to be meant: at most one edit, and one more for
/// every three characters, and never more than half of them. (`itn` is `int`; `nat` is not.)
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let lower = cut(word, LONGEST).to_lowercase();
    let scored =
        known.into_iter().map(|name| (strsim::damerau_levenshtein(&lower, &name.to_lowercase()), name));
    // Of words that are equally near, the first in the alphabet: the order of the candidates says nothing.
    let (distance, name) = scored.min()?;
    let length = name.chars().count();
    (distance <= 1 + length / 3 && 2 * distance <= length).then_some(name)
}

/// `; did you mean "…"?`, or nothing where no known word is near.
pub fn did_you_mean<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    nearest(word, known).map_or_else(String::new, |near| format!("; did you mean \"{near}\"?"))
}

/// The characters of a word that are shown or compared.
const LONGEST: usize = 60;

/// A word as far as a message shows it.
pub fn shortened(word: &str) -> String {
    cut(word, LONGEST)
}

/// A text up to so many characters, with a mark where more follow.
pub fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_words_are_meant_and_far_ones_are_not() {
        let known = ["batch", "learning_rate", "lr"];
        assert_eq!(nearest("bacth", known), Some("batch"));
        assert_eq!(nearest("LEARNING_RATE", known), Some("learning_rate"));
        assert_eq!(nearest("l", known), Some("lr"));
        assert_eq!(nearest("temperature", known), None);
        assert_eq!(nearest("batch", []), None);
        assert_eq!(nearest("ab", ["abd", "abc"]), Some("abc"));
        assert_eq!(nearest("itn", ["add", "int", "bint"]), Some("int"));
        assert_eq!(nearest("nat", ["add", "int", "bint"]), None);
        assert_eq!(nearest("", ["add"]), None);
        assert_eq!(did_you_mean("batchh", known), "; did you mean \"batch\"?");
        assert_eq!(did_you_mean("zzzzzzz", known), "");
        // A text of a megabyte is not compared letter by letter.
        assert_eq!(nearest(&"x".repeat(1 << 20), known), None);
    }

    #[test]
    fn long_words_are_cut_between_characters() {
        assert_eq!(cut("∀∃∀∃", 3), "∀∃∀…");
        assert_eq!(cut("abc", 3), "abc");
        assert_eq!(shortened(&"∀".repeat(61)).chars().count(), 61);
    }
}
