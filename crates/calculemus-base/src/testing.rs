//! What the tests of the crates share, by the feature `testing`: a command and its answer, what a case expects of a
//! document, and what the code cites of a page.
//!
//! What is not as a test needs it stops the test: every function here panics where a file cannot be read or a command
//! cannot be run.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test stops where something is not as it should be")]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// What a command answers to this standard input.
///
/// # Panics
/// The command cannot be run.
pub fn output(command: &mut Command, stdin: &[u8]) -> Output {
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    std::thread::scope(|scope| {
        // It may refuse before it has read all.
        scope.spawn(move || drop(input.write_all(stdin)));
        child.wait_with_output().unwrap()
    })
}

/// The words of a line of a shell, which knows spaces and single quotes.
pub fn shell_words(line: &str) -> Vec<String> {
    let words = |(number, part): (usize, &str)| match number % 2 {
        0 => part.split_whitespace().map(str::to_owned).collect(),
        _ => vec![part.to_owned()],
    };
    line.split('\'').enumerate().flat_map(words).collect()
}

/// What a case expects of a document: objects may have further keys, arrays have the same length, numbers match within
/// the tolerance (relative above 1), everything else exactly.
#[derive(Debug, Clone, Copy, Default)]
pub struct Expected {
    /// Of numbers.
    pub tolerance: f64,
    /// The keys whose objects have no further keys.
    pub whole: &'static [&'static str],
}

impl Expected {
    /// With this tolerance, and no key that must be whole.
    pub fn within(tolerance: f64) -> Self {
        Self { tolerance, whole: &[] }
    }

    /// Why `found` does not match `wanted`, if it does not; `path` is where they stand.
    pub fn mismatch(&self, wanted: &Value, found: &Value, path: &str) -> Option<String> {
        match (wanted, found) {
            (Value::Object(wanted), Value::Object(found)) => wanted.iter().find_map(|(key, value)| {
                let path = format!("{path}.{key}");
                let Some(inner) = found.get(key) else { return Some(format!("{path} is missing")) };
                if let (true, Value::Object(value), Value::Object(inner)) =
                    (self.whole.contains(&key.as_str()), value, inner)
                    && (value.len() != inner.len() || value.keys().any(|key| !inner.contains_key(key)))
                {
                    return Some(format!("{path}: other keys"));
                }
                self.mismatch(value, inner, &path)
            }),
            (Value::Array(wanted), Value::Array(found)) => {
                if wanted.len() != found.len() {
                    return Some(format!("{path}: {} elements, not {}", found.len(), wanted.len()));
                }
                let mut pairs = wanted.iter().zip(found).enumerate();
                pairs.find_map(|(i, (wanted, found))| self.mismatch(wanted, found, &format!("{path}[{i}]")))
            }
            (Value::Number(a), Value::Number(b)) if a != b => {
                let (a, b) = (a.as_f64()?, b.as_f64()?);
                ((a - b).abs() > self.tolerance * a.abs().max(1.0)).then(|| format!("{path}: {b}, not {a}"))
            }
            _ => (wanted != found).then(|| format!("{path}: {found}, not {wanted}")),
        }
    }
}

/// The files with one of these endings in a folder, all levels, in order.
///
/// # Panics
/// A folder cannot be read.
pub fn sources(folder: &Path, endings: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(at) = open.pop() {
        for entry in std::fs::read_dir(&at).unwrap_or_else(|why| panic!("{}: {why}", at.display())) {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|end| endings.iter().any(|known| end == *known)) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// A page of the project, by its path from the folder of a package. A published package is without pages, and then
/// there is none; anywhere else a page that is missing is a failure.
///
/// # Panics
/// The page is missing.
pub fn page(package: &str, path: &str) -> Option<String> {
    let package = Path::new(package);
    if package.join("Cargo.toml.orig").exists() {
        return None;
    }
    let path = package.join(path);
    Some(std::fs::read_to_string(&path).unwrap_or_else(|why| panic!("{}: {why}", path.display())))
}

/// The numbers of the sections that a text cites: those of `sections 2 to 6` are 2 and 6.
pub fn cited_sections(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let flat = text.replace("\n//!", " ").replace("\n///", " ").replace("\n    ///", " ");
    for (at, word) in flat.match_indices("ection") {
        let rest = &flat[at + word.len()..];
        let rest = rest.strip_prefix('s').unwrap_or(rest);
        // Words of a sentence: no function is cited.
        if !rest.starts_with(char::is_whitespace) {
            continue;
        }
        for word in rest.split_whitespace().take(3) {
            let number = word.trim_matches(|c: char| !c.is_ascii_digit());
            if !number.is_empty() {
                found.push(number.to_owned());
            } else if !["to", "and", "or"].contains(&word) {
                break;
            }
        }
    }
    found
}

/// Every section that the code and the tests of a package cite is a heading of the page, and so is what the page cites
/// of itself. Answers with the number of citations of the code.
///
/// # Panics
/// A section is not on the page.
pub fn check_cited_sections(package: &str, endings: &[&str], page: &str) -> usize {
    let numbers = page.lines().filter(|line| line.starts_with("##")).filter_map(|line| {
        line.trim_start_matches('#').split_whitespace().next().map(|number| number.trim_end_matches('.'))
    });
    let headings: Vec<&str> = numbers.collect();
    let folders = ["src", "tests"].map(|folder| sources(&Path::new(package).join(folder), endings)).concat();
    let mut count = 0;
    for path in folders.iter().filter(|path| !path.ends_with("pages.rs")) {
        for number in cited_sections(&std::fs::read_to_string(path).unwrap()) {
            assert!(headings.contains(&number.as_str()), "{}: section {number}", path.display());
            count += 1;
        }
    }
    for number in cited_sections(page) {
        assert!(headings.contains(&number.as_str()), "the page itself: section {number}");
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_differs_is_found_with_its_place() {
        let loose = Expected::within(1e-9);
        let wanted = json!({"a": [1, {"b": 2.0}], "c": "x"});
        assert_eq!(
            loose.mismatch(&wanted, &json!({"a": [1, {"b": 2.000_000_001, "d": 0}], "c": "x"}), ""),
            None
        );
        for (found, why) in [
            (json!({"a": [1, {"b": 2.1}], "c": "x"}), ".a[1].b: 2.1, not 2"),
            (json!({"a": [1], "c": "x"}), ".a: 1 elements, not 2"),
            (json!({"a": [1, {}], "c": "x"}), ".a[1].b is missing"),
            (json!({"a": [1, {"b": 2.0}], "c": null}), ".c: null, not \"x\""),
        ] {
            assert_eq!(loose.mismatch(&wanted, &found, "").as_deref(), Some(why));
        }
        let strict = Expected { whole: &["a"], ..loose };
        let (wanted, found) = (json!({"a": {"b": 1}}), json!({"a": {"b": 1, "c": 2}}));
        assert_eq!(strict.mismatch(&wanted, &found, "").as_deref(), Some(".a: other keys"));
        assert_eq!(loose.mismatch(&wanted, &found, ""), None);
    }

    #[test]
    fn words_and_citations() {
        assert_eq!(shell_words("parse  'a b' c"), ["parse", "a b", "c"]);
        let text = "As section 3 says, and\n/// sections 2 to 6; `section(4)`, a section of nothing.";
        assert_eq!(cited_sections(text), ["3", "2", "6"]);
    }
}
