//! The pages of `docs/linear-logic`: the tutorial is run and compared word by word, the reference has every section and
//! every name that the code speaks of.
//!
//! The published crate is without pages, and then there is nothing to test; anywhere else a page that is missing is a
//! failure.

use std::path::{Path, PathBuf};
use std::process::Command;

use linear_logic::elaborate::Mode;
use linear_logic::error::Kind;
use linear_logic::literal::Order;
use linear_logic::program::Program;
use linear_logic::reduce;
use linear_logic::sequent;

fn package() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A page; `None` in the published crate.
fn page(name: &str) -> Option<String> {
    if package().join("Cargo.toml.orig").exists() {
        return None;
    }
    let path = package().join("../../docs/linear-logic").join(name);
    Some(std::fs::read_to_string(&path).unwrap_or_else(|why| panic!("{}: {why}", path.display())))
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

/// The words of a line of a shell, which knows spaces and single quotes.
fn words(line: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (number, part) in line.split('\'').enumerate() {
        if number % 2 == 1 {
            found.push(part.to_owned());
        } else {
            found.extend(part.split_whitespace().map(str::to_owned));
        }
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
                let output =
                    Command::new(env!("CARGO_BIN_EXE_ill")).args(words(args)).current_dir(&folder).output();
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

/// The numbers of the sections that a text cites: those of `sections 2 to 6` are 2 and 6.
fn cited(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let flat = text.replace("\n//!", " ").replace("\n///", " ").replace("\n    ///", " ");
    for (at, _) in flat.match_indices("ection") {
        let rest = &flat[at + "ection".len()..];
        // Words of a sentence: no function is cited.
        if !rest.strip_prefix('s').unwrap_or(rest).starts_with(char::is_whitespace) {
            continue;
        }
        let rest = rest.strip_prefix('s').unwrap_or(rest);
        for word in rest.split_whitespace().take(3) {
            let number = word.trim_matches(|c: char| !c.is_ascii_digit());
            if number.is_empty() && word != "to" && word != "and" {
                break;
            }
            if !number.is_empty() {
                found.push(number.to_owned());
            }
        }
    }
    found
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|end| end == "rs" || end == "ill") {
            found.push(path);
        }
    }
}

#[test]
fn every_section_that_the_code_cites_is_in_the_reference() {
    let Some(page) = page("reference.md") else { return };
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
    for number in cited(&page) {
        assert!(headings.contains(&number.as_str()), "the reference itself: section {number}");
    }
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
