//! Programs by the library, on every engine, and what a page says of their answers.

use std::path::Path;

use tensor_logic::answer::{Answer, Content};
use tensor_logic::auto::Auto;
use tensor_logic::engine::{Budget, Engine};
use tensor_logic::error::{Code, Refusal};
use tensor_logic::fast::{Fast, Storage};
use tensor_logic::files::Files;
use tensor_logic::reference::Reference;
use tensor_logic::source::Source;
use tensor_logic::world::{Calculated, World};

/// Every engine there is: a new one is one line more.
pub(crate) fn engines() -> Vec<(&'static str, Box<dyn Engine>)> {
    let fast = |storage| Box::new(Auto::new(Box::new(Fast::with_storage(storage))));
    vec![
        ("reference", Box::new(Reference::default())),
        ("auto", fast(Storage::Auto)),
        ("dense", fast(Storage::Dense)),
        ("sparse", fast(Storage::Sparse)),
    ]
}

/// What comes of a text beside its files.
pub(crate) fn calculated(
    text: &str,
    folder: &Path,
    seed: u64,
    engine: &mut dyn Engine,
) -> Result<Calculated, Vec<Refusal>> {
    let mut source = Source::new("text", text.as_bytes());
    source.expand(&mut Files::new(folder));
    let budget = Budget { tuples: 1_000_000, bytes: 1 << 30 };
    World::new(&source, Files::new(folder), seed).calculate(engine, budget)
}

/// The answers of a text that needs no files, or why there are none.
pub(crate) fn answers(text: &str, engine: &mut dyn Engine) -> Result<Vec<Answer>, Vec<Code>> {
    let found = calculated(text, Path::new("."), 0, engine)
        .map_err(|reports| reports.into_iter().map(|report| report.code).collect::<Vec<Code>>())?;
    match found.outcome.refusal {
        Some(report) => Err(vec![report.code]),
        None => Ok(found.outcome.answers),
    }
}

/// The bindings of a relation as they are shown, without values.
pub(crate) fn bindings(found: &Calculated, content: &Content) -> Vec<String> {
    let Content::Relation { indices, tuples, .. } = content else { return Vec::new() };
    let binding = |tuple: &Vec<_>| {
        let pairs = indices.iter().zip(tuple);
        let shown = pairs.map(|(index, value)| format!("{index} = {}", found.program.symbols.show(*value)));
        shown.collect::<Vec<_>>().join(", ")
    };
    tuples.iter().map(binding).collect()
}

/// A query of a text with the comment behind it, in order.
pub(crate) fn commented(text: &str) -> Vec<(String, Option<String>)> {
    let code = |line: &str| {
        let (code, comment) = match line.split_once("  # ") {
            Some((code, comment)) => (code, Some(comment.trim().to_owned())),
            None => (line, None),
        };
        (code.trim_end().to_owned(), comment)
    };
    let lines = text.lines().filter(|line| !line.starts_with('#')).map(code);
    let is_query = |code: &str| code.split_once(" @").map_or(code, |(goal, _)| goal).ends_with('?');
    lines.filter(|(code, _)| is_query(code)).collect()
}

/// The words and numbers of an answer.
fn words(text: &str) -> Vec<&str> {
    let inside = |letter: char| letter.is_alphanumeric() || "._'-".contains(letter);
    text.split(|letter: char| !inside(letter))
        .filter(|word| word.chars().any(char::is_alphanumeric))
        .collect()
}

/// Whether a word of a page is what the program says; a number may be rounded to the digits that
/// are shown.
fn same_word(page: &str, answer: &str) -> bool {
    match (page.parse::<f64>(), answer.parse::<f64>()) {
        (Ok(shown), Ok(value)) => {
            let digits = page.split_once('.').map_or(0, |(_, digits)| digits.len());
            let unit = if digits == 0 { 1e-9 } else { 0.5001 * 0.1_f64.powi(digits as i32) };
            shown == value || (shown - value).abs() <= unit
        }
        _ => page == answer,
    }
}

/// How what a page says of an answer differs from it: word by word, numbers to the digits shown,
/// whatever the layout. A page that shows numbers only may leave out the names of a tensor's places.
pub(crate) fn contradiction(page: &str, answer: &str) -> Option<String> {
    let (shown, mut said) = (words(page), words(answer));
    let is_number = |word: &&str| word.parse::<f64>().is_ok();
    if shown.iter().all(is_number) {
        said.retain(is_number);
    }
    let same = shown.len() == said.len() && shown.iter().zip(&said).all(|(page, word)| same_word(page, word));
    (!same).then(|| format!("the page says\n{page}\nand the program\n{answer}"))
}

#[test]
fn pages_are_compared_word_by_word() {
    assert_eq!(contradiction("[0.33, 2]; x = \"a b\"", "  0.3333333, 2.0\n x = \"a b\""), None);
    for (page, answer) in [("0.34", "0.3333"), ("2", "2.1"), ("x = Bob", "x = Cal"), ("1, 2", "1")] {
        assert!(contradiction(page, answer).is_some(), "{page}");
    }
    let found = commented("A = 2  # two\nA?  # 2\n# A?\nB? @explain\nC(x), not D(x)?");
    let wanted = [("A?", Some("2")), ("B? @explain", None), ("C(x), not D(x)?", None)];
    let wanted = wanted.map(|(code, comment)| (code.to_owned(), comment.map(str::to_owned)));
    assert_eq!(found, wanted);
}
