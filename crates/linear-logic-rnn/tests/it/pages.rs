//! The pages that speak of cells: the tutorial's cell answers what the tutorial says, and the rules of the cells have
//! every section that the code cites.
//!
//! The published crate is without pages; anywhere else a page that is missing is a failure.

use std::path::{Path, PathBuf};

use linear_logic_rnn::document::answer;
use linear_logic_rnn::error::Kind;
use linear_logic_rnn::options::CellKind;
use serde_json::Value;

use crate::mismatch::mismatch;

fn package() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn page(name: &str) -> Option<String> {
    if package().join("Cargo.toml.orig").exists() {
        return None;
    }
    let path = package().join("../../docs/linear-logic").join(name);
    Some(std::fs::read_to_string(&path).unwrap_or_else(|why| panic!("{}: {why}", path.display())))
}

#[test]
fn the_tutorial_ends_with_a_cell() {
    let Some(page) = page("tutorial.md") else { return };
    let (_, rest) = page.split_once("```json\n").unwrap();
    let (document, rest) = rest.split_once("```\n").unwrap();
    let (_, rest) = rest.split_once("$ cargo xtask cell --config cell.json\n").unwrap();
    let (wanted, _) = rest.split_once("```").unwrap();
    let found = answer(document, false).unwrap();
    let steps: Vec<Value> = found["steps"].as_array().unwrap().clone();
    let said: Vec<Value> = wanted.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let why = mismatch(&said.into(), &steps.into(), "steps", 0.0);
    assert_eq!(why, None, "{found}");
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|end| end == "rs") {
            found.push(path);
        }
    }
}

/// The numbers behind `section` and `sections`.
fn cited(text: &str) -> Vec<String> {
    let flat = text.replace("\n//!", " ").replace("\n///", " ").replace("\n    ///", " ");
    let mut found = Vec::new();
    for (at, _) in flat.match_indices("ection") {
        let rest = &flat[at + "ection".len()..];
        // Words of a sentence: no function is cited.
        if !rest.strip_prefix('s').unwrap_or(rest).starts_with(char::is_whitespace) {
            continue;
        }
        for word in rest.strip_prefix('s').unwrap_or(rest).split_whitespace().take(3) {
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

#[test]
fn every_section_and_every_word_that_the_code_cites_is_on_the_page() {
    let Some(page) = page("cells.md") else { return };
    let headings: Vec<&str> = page
        .lines()
        .filter(|line| line.starts_with("##"))
        .map(|line| line.trim_start_matches('#').split_whitespace().next().unwrap().trim_end_matches('.'))
        .collect();
    let mut paths = Vec::new();
    sources(&package().join("src"), &mut paths);
    sources(&package().join("tests"), &mut paths);
    let mut count = 0;
    for path in paths.iter().filter(|path| !path.ends_with("pages.rs")) {
        for number in cited(&std::fs::read_to_string(path).unwrap()) {
            assert!(headings.contains(&number.as_str()), "{}: section {number}", path.display());
            count += 1;
        }
    }
    assert!(count >= 20, "{count} citations");
    let said = |word: &str| assert!(page.contains(&format!("`{word}`")), "`{word}` is not on the page");
    CellKind::all().for_each(|kind| {
        said(kind.name());
        kind.options().iter().for_each(|option| said(option));
    });
    Kind::ALL.iter().for_each(|kind| said(kind.name()));
}
