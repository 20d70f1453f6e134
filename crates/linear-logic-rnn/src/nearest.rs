//! The known word that an unknown one may mean.

/// The nearest of `known`, in quotes behind a question; nothing if nothing is known.
pub(crate) fn did_you_mean<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let far = |k: &str| -strsim::jaro_winkler(word, k);
    let near = known.into_iter().min_by(|a, b| far(a).total_cmp(&far(b)));
    near.map_or_else(String::new, |near| format!("; did you mean \"{near}\"?"))
}
