//! The reference page: what the code cites stands on it.

use std::collections::BTreeSet;
use std::path::Path;

use calculemus_base::testing::sources;

fn crate_folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The words of a text of the form `F` and a number, alone or in a list, in parentheses.
fn citations(text: &str) -> BTreeSet<String> {
    let inside = text.split('(').skip(1).filter_map(|rest| rest.split(')').next());
    let is_rule = |word: &&str| {
        word.strip_prefix('F').is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
    };
    inside.flat_map(|words| words.split(", ")).filter(is_rule).map(str::to_owned).collect()
}

#[test]
fn every_rule_that_the_code_cites_stands_on_the_page() {
    let page = std::fs::read_to_string(crate_folder().join("../../docs/fol/reference.md")).unwrap();
    let files =
        ["src", "tests", "examples"].map(|folder| sources(&crate_folder().join(folder), &["rs"])).concat();
    let mut cited = BTreeSet::new();
    for file in &files {
        for rule in citations(&std::fs::read_to_string(file).unwrap()) {
            assert!(
                page.contains(&format!("**{rule}.**")),
                "{}: ({rule}) is not on the page",
                file.display()
            );
            cited.insert(rule);
        }
    }
    assert!(cited.len() >= 20, "{cited:?}");
    let numbered =
        |line: &str| line.strip_prefix("**F").and_then(|rest| rest.split(".**").next()?.parse().ok());
    let rules: Vec<u32> = page.lines().filter_map(numbered).collect();
    assert!(rules.iter().copied().eq(1..=rules.len() as u32), "the rules are numbered through: {rules:?}");
}
