//! The page of the prover has every rule, reason and stage that the code has, and what the README shows is what the command says.

use std::process::Command;

use calculemus_base::testing;
use fol_prover::rules::Name;

const PACKAGE: &str = env!("CARGO_MANIFEST_DIR");

/// A page; `None` in the published crate.
fn page(name: &str) -> Option<String> {
    testing::page(PACKAGE, &format!("../../docs/fol/{name}"))
}

/// The rows of the first table behind a heading, each as its cells.
fn table(page: &str, heading: &str) -> Vec<Vec<String>> {
    let (_, rest) = page.split_once(&format!("\n{heading}\n")).unwrap();
    let rows =
        rest.lines().skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|'));
    let cells = |row: &str| {
        row.trim_matches('|').split(" | ").map(|cell| cell.trim().replace('`', "")).collect::<Vec<String>>()
    };
    rows.skip(2).map(cells).collect()
}

#[test]
fn the_table_of_rules_is_that_of_the_code() {
    let Some(page) = page("prover.md") else { return };
    let rows: Vec<(String, String)> =
        table(&page, "## Named rules").into_iter().map(|row| (row[0].clone(), row[1].clone())).collect();
    let rules: Vec<(String, String)> =
        Name::ALL.iter().map(|rule| (rule.name().to_owned(), rule.schema().to_owned())).collect();
    assert_eq!(rows, rules);
}

/// The commands of a block `console` with an answer below them.
fn sessions(text: &str) -> Vec<(String, String)> {
    let blocks = text.split("```console\n").skip(1).filter_map(|rest| rest.split("```").next());
    let mut found: Vec<(String, String)> = Vec::new();
    for line in blocks.flat_map(str::lines) {
        match (line.strip_prefix("$ fol-prove "), found.last_mut()) {
            (Some(command), _) => found.push((command.to_owned(), String::new())),
            (None, Some((_, answer))) => *answer += &format!("{line}\n"),
            (None, None) => panic!("{line}"),
        }
    }
    found
}

#[test]
fn what_is_shown_is_what_the_command_says() {
    let readme = std::fs::read_to_string(format!("{PACKAGE}/README.md")).unwrap();
    let pages = [Some(readme), page("prover.md")];
    let mut run = 0;
    for (command, answer) in pages.iter().flatten().flat_map(|text| sessions(text)) {
        if answer.is_empty() {
            continue;
        }
        let output = Command::new(env!("CARGO_BIN_EXE_fol-prove"))
            .args(testing::shell_words(&command))
            .output()
            .unwrap();
        assert_eq!(String::from_utf8([output.stdout, output.stderr].concat()).unwrap(), answer, "{command}");
        run += 1;
    }
    assert!(run >= 2, "{run}");
}
