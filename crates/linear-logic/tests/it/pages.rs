//! The pages of `docs/linear-logic`: the tutorial is run and compared word by word, the reference has every section and
//! every name that the code speaks of.
//!
//! The published crate is without pages, and then there is nothing to test; anywhere else a page that is missing is a
//! failure.

use std::process::Command;

use calculemus_base::testing;
use linear_logic::elaborate::Mode;
use linear_logic::error::Kind;
use linear_logic::literal::Order;
use linear_logic::program::Program;
use linear_logic::reduce;
use linear_logic::sequent;

const PACKAGE: &str = env!("CARGO_MANIFEST_DIR");

/// A page; `None` in the published crate.
fn page(name: &str) -> Option<String> {
    testing::page(PACKAGE, &format!("../../docs/linear-logic/{name}"))
}

/// The blocks of a page: what stands behind the fence, the lines inside, and the line of the page.
fn blocks(page: &str) -> Vec<(&str, String, usize)> {
    let mut found = Vec::new();
    let mut lines = page.lines().zip(1..);
    while let Some((line, at)) = lines.next() {
        let Some(kind) = line.strip_prefix("```") else { continue };
        let block = lines.by_ref().map(|(text, _)| text).take_while(|text| *text != "```");
        found.push((kind, block.map(|text| format!("{text}\n")).collect(), at));
    }
    found
}

#[test]
fn the_tutorial_says_what_the_command_says() {
    let Some(page) = page("tutorial.md") else { return };
    let folder = std::env::temp_dir().join(format!("ill-tutorial-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (mut run, mut elsewhere) = (0, 0);
    for (kind, block, at) in blocks(&page) {
        match kind {
            "ill" => {
                let name = block.lines().next().unwrap().strip_prefix("-- ").unwrap();
                std::fs::write(folder.join(name), &block).unwrap();
            }
            "console" => {
                let (command, wanted) = block.split_once('\n').unwrap();
                let Some(args) = command.strip_prefix("$ cargo ill ") else {
                    elsewhere += 1;
                    continue;
                };
                let output = Command::new(env!("CARGO_BIN_EXE_ill"))
                    .args(testing::shell_words(args))
                    .current_dir(&folder)
                    .output();
                let output = output.unwrap();
                let said = [output.stdout, output.stderr].concat();
                assert_eq!(String::from_utf8(said).unwrap(), wanted, "line {at}: {command}");
                run += 1;
            }
            // The document of the cell, which the crate of the cells runs.
            "json" => {}
            _ => panic!("line {at}: nobody runs a block of `{kind}`"),
        }
    }
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!((run, elsewhere), (17, 1));
}

#[test]
fn every_section_that_the_code_cites_is_in_the_reference() {
    let Some(page) = page("reference.md") else { return };
    let count = testing::check_cited_sections(PACKAGE, &["rs", "ill"], &page);
    assert!(count >= 20, "{count} citations");
}

/// The rows of the first table behind a heading, each as its cells.
fn table(page: &str, heading: &str) -> Vec<Vec<String>> {
    let (_, rest) = page.split_once(&format!("\n{heading}\n")).unwrap();
    let rows =
        rest.lines().skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|'));
    let cells = |row: &str| {
        row.trim_matches('|').split(" |").map(|cell| cell.trim().replace('`', "")).collect::<Vec<String>>()
    };
    rows.skip(2).map(cells).collect()
}

#[test]
fn the_tables_of_the_reference_are_those_of_the_code() {
    let Some(page) = page("reference.md") else { return };
    let refusals: Vec<(String, String)> =
        table(&page, "## 6. Refusals").into_iter().map(|row| (row[0].clone(), row[2].clone())).collect();
    let kinds: Vec<(String, String)> = Kind::ALL
        .iter()
        .map(|kind| {
            let fields: Vec<&str> = kind.fields().iter().map(|field| field.name()).collect();
            (kind.name().to_owned(), fields.join(" "))
        })
        .collect();
    assert_eq!(refusals, kinds);

    let rules: Vec<String> = table(&page, "## 8. Reduction").into_iter().map(|row| row[0].clone()).collect();
    let known: Vec<&str> = reduce::Rewrite::ALL.iter().map(|rule| rule.name()).collect();
    assert_eq!(rules, known);

    let (_, rest) = page.split_once("\nRules: ").unwrap();
    let (rules, _) = rest.split_once(".\n").unwrap();
    let rules: Vec<String> = rules.split_whitespace().map(|rule| rule.replace('`', "")).collect();
    let known: Vec<&str> = sequent::Rule::ALL.iter().map(|rule| rule.name()).collect();
    assert_eq!(rules, known);

    let program = Program::new(Order::Literal, Mode::default()).unwrap();
    let library: Vec<(String, String)> =
        table(&page, "## 9. Library").into_iter().map(|row| (row[0].clone(), row[1].clone())).collect();
    let known: Vec<(String, String)> = program
        .library()
        .iter()
        .map(|definition| {
            let name = format!("{}{{{}}}", definition.name, definition.parameters.join(", "));
            (name, definition.formula.short())
        })
        .collect();
    let folded =
        |(name, formula): &(String, String)| (name.clone(), formula.replace("bool{A}", "A & A -o A"));
    assert_eq!(library.iter().map(folded).collect::<Vec<_>>(), known);
}
