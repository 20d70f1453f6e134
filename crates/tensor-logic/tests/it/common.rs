//! What several test files share: the corpus, and trees without places.
#![expect(clippy::unwrap_used, reason = "a test that cannot read its cases has failed")]

pub(crate) mod answers;
#[cfg(feature = "cli")]
pub(crate) mod command;
pub(crate) mod engines;
pub(crate) mod generator;
pub(crate) mod heads;
pub(crate) mod rounding;
pub(crate) mod shrink;
pub(crate) mod single;

use std::path::{Path, PathBuf};

/// The folder of the corpus.
pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases")
}

/// So many drawn programs, unless `CALCULEMUS_PROGRAMS` says another number.
pub(crate) fn drawn(programs: u64) -> u64 {
    std::env::var("CALCULEMUS_PROGRAMS").ok().and_then(|n| n.parse().ok()).unwrap_or(programs)
}

/// How many cases the corpus has: a case that is lost is missed.
const PUBLIC: usize = 73;
const OWN: usize = 616;

/// Name and text of every program of the public corpus, in order.
pub(crate) fn programs() -> Vec<(String, String)> {
    let mut programs = all_programs();
    programs.retain(|(name, _)| !name.starts_with("own-"));
    programs
}

/// Legal programs that are refused where there are no files, or no embedding space.
const NEED_MORE: &[&str] = &["run-04-text-file", "run-37-embedding-space"];

/// What a stage makes of a program of the corpus. Only a program that a case refuses may be refused,
/// or one that needs more than its text.
pub(crate) fn legal<T, E: std::fmt::Debug>(name: &str, found: Result<T, E>) -> Option<T> {
    match found {
        Ok(found) => Some(found),
        Err(reports) => {
            assert!(name.starts_with("refuse-") || NEED_MORE.contains(&name), "{name}: {reports:?}");
            None
        }
    }
}

#[test]
fn the_corpus_is_complete() {
    let all = all_programs();
    assert_eq!((programs().len(), all.len() - programs().len()), (PUBLIC, OWN));
    let expected = |(name, _): &(String, String)| folder().join(format!("{name}.json")).is_file();
    assert!(all.iter().all(expected));
    let files = std::fs::read_dir(folder()).unwrap().count();
    assert_eq!(files, 2 * all.len(), "a program and what must come of it, and nothing else");
}

/// Name and text of every program, our own cases included, in order.
pub(crate) fn all_programs() -> Vec<(String, String)> {
    let entries = std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path());
    let mut paths: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|end| end == "tl")).collect();
    paths.sort();
    let read = |path: &PathBuf| {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        (name, std::fs::read_to_string(path).unwrap())
    };
    paths.iter().map(read).collect()
}

/// The statements as text, without places, spellings of numbers and the kind of exponent brackets.
pub(crate) fn tree(program: &tensor_logic::ast::Program) -> String {
    let written = format!("{:?}", program.statements);
    let mut tree = String::with_capacity(written.len());
    let mut rest = written.as_str();
    while let Some(at) = rest.find("Span {") {
        tree.push_str(&rest[..at]);
        let behind = &rest[at..];
        rest = behind.find('}').map_or("", |end| &behind[end + 1..]);
    }
    tree.push_str(rest);
    tree.replace(", true)", ", false)")
}

/// Random numbers for one test.
pub(crate) fn stream(purpose: &str) -> seeded::Stream {
    seeded::Family::new("tensor-logic/tests", purpose, seeded::test_seed()).stream(0)
}

/// Pieces that programs are made of, for token soup.
pub(crate) const PIECES: &[&str] = &[
    "Y", "X", "Ann", "i", "x'", "relu", "max", "not", "as", "2", "2.", "0.5", "1e3", "\"a\"", "\"", "(", ")",
    "[", "]", "{", "}", ",", ";", ".", "..", ":", "::", "<-", ":-", "=", "+=", "max=", "*=", ":=", "?", "@",
    "~", "|", "+", "-", "*", "·", "/", "%", "^", "<", "<=", ">", ">=", "==", "!=", "_", " ", "\n", "\r\n",
    "# c\n", "$", "é", "′", "R(x)", "W[i, j]", "Y = ", "R(x) <- ", "?\n",
];

/// Fewer than `most` pieces in random order.
pub(crate) fn soup(stream: &mut seeded::Stream, most: u64) -> String {
    let length = stream.below(most);
    (0..length).map(|_| PIECES[stream.below(PIECES.len() as u64) as usize]).collect()
}
