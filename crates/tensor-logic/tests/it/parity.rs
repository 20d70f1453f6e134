//! The constructs of PyNeuraLogic 0.9.2, said here: the numbers are the library's own.
//!
//! `tests/parity` holds a program for each construct, and what the library gives for it
//! (`xtask/peers/neuralogic_parity.py` writes that file; its header has the command). A comment behind a query names the
//! library's values in order: those of ground atoms, and of weights after a step (`w'`). Where the library says something
//! else by design or by mistake, `; by hand` gives what is right, and a comment above says why.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot read its rows has failed")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::Value as Json;
use tensor_logic::answer::Content;
use tensor_logic::engine::Engine;
use tensor_logic::error::{Code, Refusal};
use tensor_logic::format::format;

use crate::common::answers::{calculated, commented, engines};

/// How many constructs there are: one that is lost is missed.
const ROWS: usize = 96;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/parity")
}

fn fixture() -> Json {
    let text = std::fs::read_to_string(folder().join("pyneuralogic-0.9.2.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// Name, program, and the library's values.
fn rows() -> Vec<(String, String, Json)> {
    let Json::Object(rows) = fixture()["rows"].take() else { panic!("rows") };
    let row = |(name, mut row): (String, Json)| {
        let text = std::fs::read_to_string(folder().join(format!("{name}.tl")));
        let text = text.unwrap_or_else(|error| panic!("{name}.tl: {error}"));
        (name, text, row["values"].take())
    };
    rows.into_iter().map(row).collect()
}

/// The numbers of an array, row by row; none for what has no proof.
fn flat(value: &Json) -> Vec<f64> {
    match value {
        Json::Array(items) => items.iter().flat_map(flat).collect(),
        Json::Null => Vec::new(),
        number => vec![number.as_f64().unwrap()],
    }
}

/// The numbers of an answer; none for a tuple that is absent, 1 for one that is true.
fn numbers(content: &Content) -> Vec<f64> {
    match content {
        Content::Scalar(value) => value.iter().copied().collect(),
        Content::Tensor { values, .. } => values.to_vec(),
        Content::Relation { tuples, values: None, .. } => vec![1.0; tuples.len()],
        Content::Relation { values: Some(values), .. } => values.clone(),
    }
}

/// Both compute in 64 bits, in different orders.
fn same(found: &[f64], wanted: &[f64]) -> bool {
    let close = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-12 * b.abs().max(1.0);
    found.len() == wanted.len() && found.iter().zip(wanted).all(close)
}

/// The names of the library's values in a comment, and what is right by hand.
fn read(comment: &str) -> (Vec<String>, Option<Vec<f64>>) {
    let (names, hand) = match comment.split_once("; by hand") {
        Some((names, hand)) => (names, Some(hand)),
        None => (comment, None),
    };
    let mut keys = Vec::new();
    let (mut depth, mut key) = (0, String::new());
    for letter in names.chars() {
        match letter {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                keys.push(std::mem::take(&mut key));
                continue;
            }
            _ => {}
        }
        key.push(letter);
    }
    keys.push(key);
    let keys = keys.into_iter().map(|key| key.trim().to_owned()).collect();
    let number = |word: &str| word.parse().unwrap_or_else(|_| panic!("{comment}: {word}"));
    let hand = hand.map(|text| {
        let words = text.split([',', ' ']).filter(|word| !word.is_empty() && *word != "none");
        words.map(number).collect()
    });
    (keys, hand)
}

/// How what is found differs from what the comment names; the names are added to `used`.
fn difference(comment: &str, found: &[f64], values: &Json, used: &mut BTreeSet<String>) -> Option<String> {
    let (keys, hand) = read(comment);
    let mut library = Vec::new();
    for key in keys {
        let Some(value) = values.get(&key) else { return Some(format!("the library has no {key}")) };
        library.extend(flat(value));
        used.insert(key);
    }
    match hand {
        Some(hand) if same(&hand, &library) => Some(format!("{comment}: the library says the same")),
        Some(hand) if !same(found, &hand) => {
            Some(format!("{comment}: {found:?} instead of {hand:?} by hand"))
        }
        None if !same(found, &library) => {
            Some(format!("{comment}: {found:?} instead of the library's {library:?}"))
        }
        _ => None,
    }
}

/// How the answers of a program differ from the library's values.
fn wrong(text: &str, values: &Json, engine: &mut dyn Engine) -> Vec<String> {
    let found = match calculated(text, Path::new("."), 0, engine) {
        Ok(found) => found,
        Err(reports) => return vec![format!("{reports:?}")],
    };
    if let Some(refusal) = found.outcome.refusal {
        return vec![format!("{refusal:?}")];
    }
    let queries = commented(text);
    assert_eq!(queries.len(), found.outcome.answers.len());
    let mut used = BTreeSet::new();
    let mut wrong = Vec::new();
    for ((query, comment), answer) in queries.iter().zip(&found.outcome.answers) {
        // What a step of learning answers is the loss after it, which the library does not say.
        let Some(comment) = comment else { continue };
        let how = difference(comment, &numbers(&answer.content), values, &mut used);
        wrong.extend(how.map(|how| format!("{query} {how}")));
    }
    let all: BTreeSet<String> = values.as_object().unwrap().keys().cloned().collect();
    let unused: Vec<&String> = all.difference(&used).collect();
    if !unused.is_empty() {
        wrong.push(format!("nobody asks for {unused:?}"));
    }
    wrong
}

#[test]
fn constructs_have_the_values_of_the_library() {
    let mut problems = Vec::new();
    for (name, text, values) in rows() {
        for (engine_name, mut engine) in engines() {
            let found = wrong(&text, &values, &mut *engine);
            problems.extend(found.into_iter().map(|why| format!("{name} on {engine_name}: {why}")));
        }
    }
    assert!(problems.is_empty(), "{} problems\n{}", problems.len(), problems.join("\n"));
}

#[test]
fn a_row_that_is_wrong_is_seen() {
    let found = |comment: &str, found: &[f64]| {
        let values = serde_json::json!({"h(a, b)": 0.5, "h(b, a)": null, "w'": [[1.0, 2.0]]});
        difference(comment, found, &values, &mut BTreeSet::new())
    };
    for (comment, numbers) in [
        ("h(a, b), w'", vec![0.5, 1.0, 2.0]),
        ("h(b, a), h(a, b)", vec![0.5]),
        ("h(b, a)", vec![]),
        ("h(a, b); by hand 1, 2", vec![1.0, 2.0]),
        ("h(a, b); by hand none", vec![]),
    ] {
        assert_eq!(found(comment, &numbers), None, "{comment}");
        let mut more = numbers.clone();
        more.push(0.0);
        assert!(found(comment, &more).is_some(), "{comment}");
        for at in 0..numbers.len() {
            let mut other = numbers.clone();
            other[at] += 1e-11;
            assert!(found(comment, &other).is_some(), "{comment}");
        }
    }
    assert!(found("h(c)", &[]).is_some() && found("h(a, b); by hand 0.5", &[0.5]).is_some());
    assert!(
        !wrong("A = 1\nA?  # a\n", &serde_json::json!({"a": 1, "b": 1}), &mut *engines()[0].1).is_empty()
    );
}

#[test]
fn every_construct_has_its_program() {
    let rows = rows();
    assert_eq!(rows.len(), ROWS);
    let programs = std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path());
    assert_eq!(programs.filter(|path| path.extension().is_some_and(|end| end == "tl")).count(), ROWS);
    let fixture = fixture();
    assert_eq!(fixture["library"], "neuralogic 0.9.2");
    for (name, text, _) in rows {
        assert_eq!(format(&text).unwrap(), text, "{name}");
        let model = fixture["rows"][&name]["model"].as_array().unwrap();
        assert!(text.starts_with("# PyNeuraLogic: "), "{name}");
        assert!(!model.is_empty(), "{name}");
    }
}

/// A number that the library had said otherwise would be seen, in each row.
#[test]
fn every_row_can_fail() {
    for (name, text, values) in rows() {
        let engine = &mut *engines().remove(0).1;
        let by_hand: BTreeSet<String> = commented(&text)
            .iter()
            .filter_map(|(_, comment)| comment.as_ref().filter(|comment| comment.contains("; by hand")))
            .flat_map(|comment| read(comment).0)
            .collect();
        let mut seen = 0;
        for (key, value) in values.as_object().unwrap() {
            let mut other = values.clone();
            // Where both are stated, ours is the other: the library may say what it likes but that.
            other[key] = moved(value);
            if by_hand.contains(key) {
                continue;
            }
            assert!(!wrong(&text, &other, engine).is_empty(), "{name}: {key} may be anything");
            seen += 1;
        }
        assert!(seen > 0 || !by_hand.is_empty(), "{name}");
    }
}

/// The last number of a value by a little more than rounding.
fn moved(value: &Json) -> Json {
    match value {
        Json::Array(items) => {
            let (last, others) = items.split_last().unwrap();
            others.iter().cloned().chain([moved(last)]).collect()
        }
        Json::Null => Json::from(0.5),
        number => Json::from(number.as_f64().map(|number| number + 1e-10 * number.abs().max(1.0))),
    }
}

/// The table for those who come from there says what the programs say.
#[test]
fn the_page_quotes_the_programs() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/tensor-logic/relational-learning.md");
    let page = std::fs::read_to_string(page).unwrap();
    let mut linked = BTreeSet::new();
    for line in page.lines().filter(|line| line.starts_with('|') && line.contains("/tests/parity/")) {
        let line = line.replace("\\|", "\u{0}");
        let cells: Vec<String> = line.split('|').map(|cell| cell.replace('\u{0}', "|")).collect();
        let names: Vec<&str> = cells[3]
            .split("/tests/parity/")
            .skip(1)
            .filter_map(|rest| Some(rest.split_once(".tl")?.0))
            .collect();
        let programs: Vec<String> = names
            .iter()
            .map(|name| std::fs::read_to_string(folder().join(format!("{name}.tl"))).unwrap())
            .collect();
        for quoted in cells[2].split('`').skip(1).step_by(2) {
            assert!(programs.iter().any(|program| program.contains(quoted)), "{quoted}: {names:?}");
        }
        linked.extend(names.into_iter().map(str::to_owned));
    }
    let all: BTreeSet<String> = rows().into_iter().map(|(name, ..)| name).collect();
    assert_eq!(linked, all);
}

/// All weight stands on the one entry, to the last bit, and no step moves what it was computed from.
#[test]
fn a_softmax_over_one_element_is_one_and_has_no_gradient() {
    let text = "K(1) = 0.5\nK(2) = 0.5\nK(2) = -3e5\nW ~ 0.25\nP(i, j.) += softmax(W K(i) K(j) | j == i)\n\
                Loss = (P(i, j) - 0.25)^2\nP(i, j)?\nLoss? @minimize(opt=sgd, lr=1, steps=3)\nP(i, j)?\nW?";
    for (name, mut engine) in engines() {
        let found = calculated(text, Path::new("."), 0, &mut *engine).unwrap();
        let said: Vec<Vec<f64>> =
            found.outcome.answers.iter().map(|answer| numbers(&answer.content)).collect();
        assert_eq!(said, [vec![1.0, 1.0], vec![1.125], vec![1.0, 1.0], vec![0.25]], "{name}");
    }
}

/// The library takes `1` and `1.0` for two constants, and of two values of a fact the first, and says nothing.
#[test]
fn what_is_silent_there_is_said_here() {
    let calculated = |text: &str| calculated(text, Path::new("."), 0, &mut *engines().remove(0).1);
    let refused = |reports: Vec<Refusal>| reports.into_iter().map(|report| report.code).collect::<Vec<_>>();
    assert_eq!(calculated("F(1.0) = 0.5\nF(x)?").map_err(refused).err(), Some(vec![Code::Syntax]));
    let found = calculated("F(A) = 0.5\nF(A) = 0.25\nF(A)?").unwrap();
    let warned: Vec<&str> = found.warnings.iter().map(|warning| warning.code.name()).collect();
    assert_eq!((numbers(&found.outcome.answers[0].content), warned), (vec![0.75], vec!["duplicate-fact"]));
    // A query without proof is absent: no row, and not a number.
    let found = calculated("x : 1..2\nF(1) = 0.5\nH(x) += F(x)\nH(2)?\nH(2) == 0?\nH[2] == 0?").unwrap();
    let shown: Vec<String> = found.outcome.answers.iter().map(|answer| found.show(answer)).collect();
    assert_eq!(shown, ["H(2)?\n  underivable", "H(2) == 0?\n  false", "H[2] == 0?\n  true"]);
}
