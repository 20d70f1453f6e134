//! The pages that speak of cells: the tutorial's cell answers what the tutorial says, and the rules of the cells have
//! every section that the code cites.
//!
//! The published crate is without pages; anywhere else a page that is missing is a failure.

use calculemus_base::testing::{self, Expected};
use linear_logic_rnn::document::answer;
use linear_logic_rnn::error::Kind;
use linear_logic_rnn::options::CellKind;
use serde_json::Value;

const PACKAGE: &str = env!("CARGO_MANIFEST_DIR");

fn page(name: &str) -> Option<String> {
    testing::page(PACKAGE, &format!("../../docs/linear-logic/{name}"))
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
    let why = Expected::default().mismatch(&said.into(), &steps.into(), "steps");
    assert_eq!(why, None, "{found}");
}

#[test]
fn every_section_and_every_word_that_the_code_cites_is_on_the_page() {
    let Some(page) = page("cells.md") else { return };
    let count = testing::check_cited_sections(PACKAGE, &["rs"], &page);
    assert!(count >= 20, "{count} citations");
    let said = |word: &str| assert!(page.contains(&format!("`{word}`")), "`{word}` is not on the page");
    CellKind::all().for_each(|kind| {
        said(kind.name());
        kind.options().iter().for_each(|option| said(option));
    });
    Kind::ALL.iter().for_each(|kind| said(kind.name()));
}
