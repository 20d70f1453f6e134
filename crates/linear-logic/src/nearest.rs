//! The known word that an unknown one may mean.

/// How like two words must be: `itn` is two thirds of `int`. Below, a guess is worse than none.
const ALIKE: f64 = 0.6;

/// The nearest of the words, if one is near.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // A word that nobody types is not compared.
    if word.len() > 64 {
        return None;
    }
    let alike = |known: &'a str| (strsim::normalized_damerau_levenshtein(word, known), known);
    let found = known.into_iter().map(alike).filter(|(how, _)| *how >= ALIKE);
    // Of words that are equally like, the first in the alphabet: the order of the candidates says nothing.
    found.max_by(|(a, x), (b, y)| a.total_cmp(b).then_with(|| y.cmp(x))).map(|(_, known)| known)
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn near_words_are_found_and_far_ones_are_not() {
        let known = ["add", "mult", "concat", "int", "bint"];
        assert_eq!(nearest("ad", known), Some("add"));
        assert_eq!(nearest("conact", known), Some("concat"));
        assert_eq!(nearest("itn", known), Some("int"));
        assert_eq!(nearest("xyz", known), None);
        assert_eq!(nearest("", known), None);
        assert_eq!(nearest(&"add".repeat(1_000_000), known), None);
        assert_eq!(nearest("ab", ["abd", "abc"]), Some("abc"));
    }
}
