//! The page `docs/tensor-logic/reference.md` is what the code cites: every number that a comment
//! cites stands there, every code is listed, and every refusal is given where its table says.
#![expect(clippy::unwrap_used, reason = "a test that cannot read the page has failed")]

use std::collections::BTreeSet;
use std::path::Path;

use calculemus_base::testing::sources;
use tensor_logic::engine::Budget;
use tensor_logic::error::{Code, Places};
use tensor_logic::files::Files;
use tensor_logic::reference::Reference;
use tensor_logic::source::Source;
use tensor_logic::world::World;

fn page() -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(root.join("../../docs/tensor-logic/reference.md")).unwrap()
}

/// The part of the page from a heading to the next of its level.
fn section(page: &str, number: usize) -> String {
    let (_, behind) = page.split_once(&format!("\n## {number}. ")).unwrap();
    behind.split("\n## ").next().unwrap_or(behind).to_owned()
}

/// The cells of the tables of a text, without their heads.
fn rows(text: &str) -> Vec<Vec<String>> {
    let rows = text.lines().filter(|line| line.starts_with('|'));
    let cells = |line: &str| {
        let hidden = line.replace("\\|", "\u{0}");
        let cells = hidden.trim_matches('|').split('|');
        cells.map(|cell| cell.trim().replace('\u{0}', "|")).collect::<Vec<String>>()
    };
    rows.map(cells).filter(|row| !row.iter().any(|cell| cell == "code" || cell.starts_with("---"))).collect()
}

/// A cell that is code.
fn code(cell: &str) -> &str {
    cell.trim_matches('`')
}

/// What comments cite: rules as `N3`, sections as `9`.
fn citations(text: &str) -> BTreeSet<String> {
    let mut cited = BTreeSet::new();
    for comment in text.lines().filter_map(|line| line.split_once("//").map(|(_, comment)| comment)) {
        let words: Vec<&str> =
            comment.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
        for (at, word) in words.iter().enumerate() {
            let number = word.strip_prefix('N').filter(|rest| rest.parse::<u32>().is_ok());
            cited.extend(number.map(|_| (*word).to_owned()));
            if matches!(*word, "section" | "sections") {
                // `sections 9 and 10`
                let numbers = words[at + 1..]
                    .iter()
                    .take_while(|w| w.parse::<u32>().is_ok() || **w == "and" || **w == "or");
                cited.extend(numbers.filter(|w| w.parse::<u32>().is_ok()).map(|w| (*w).to_owned()));
            }
        }
    }
    cited
}

#[test]
fn what_the_code_cites_stands_on_the_page() {
    let page = page();
    let headings: BTreeSet<String> = page
        .lines()
        .filter_map(|line| line.strip_prefix("### ").or(line.strip_prefix("## ")))
        .filter_map(|heading| heading.split_once('.').map(|(number, _)| number.to_owned()))
        .collect();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut cited = BTreeSet::new();
    for path in [
        "../tensor-logic-core/src",
        "../tensor-logic-reference/src",
        "../tensor-logic-kernels/src",
        "../tensor-logic-weighted/src",
        "../tensor-logic-rewrites/src",
        "../tensor-logic-blocks/src",
        "../tensor-logic-engine/src",
        "src",
        "tests",
        "examples",
    ]
    .iter()
    .flat_map(|folder| sources(&root.join(folder), &["rs"]))
    {
        for citation in citations(&std::fs::read_to_string(&path).unwrap()) {
            assert!(headings.contains(&citation), "{} cites {citation}", path.display());
            cited.insert(citation);
        }
    }
    assert!(cited.len() > 15, "only {cited:?} are cited");
    let of_line = |line: &str| citations(line).into_iter().collect::<Vec<String>>();
    assert_eq!(of_line("x // as N3 and (N12), sections 9 and 10 say"), ["10", "9", "N12", "N3"]);
    assert!(of_line("let n = \"N3\"; // Nothing of section nine").is_empty());
}

#[test]
fn every_code_is_listed() {
    let page = page();
    let listed = |number: usize, cell: usize| -> Vec<String> {
        rows(&section(&page, number)).iter().map(|row| code(&row[cell]).to_owned()).collect()
    };
    let names = |warnings: bool| -> Vec<String> {
        let codes = Code::ALL.iter().filter(|code| code.is_warning() == warnings);
        codes.map(|code| code.name().to_owned()).collect()
    };
    // In the order of the stages.
    let (mut refusals, mut known) = (listed(9, 1), names(false));
    refusals.sort();
    known.sort();
    assert_eq!(refusals, known);
    assert_eq!(listed(10, 0), names(true));
}

#[test]
fn refusals_stand_where_the_table_says() {
    let folder = tempfile::tempdir().unwrap();
    let mut tried = 0;
    for row in rows(&section(&page(), 9)) {
        let (name, text, at) = (code(&row[1]), code(&row[2]), row[3].as_str());
        if text.is_empty() {
            assert_eq!(name, "not-yet", "a code without an example");
            continue;
        }
        // A program that includes itself has to be a file.
        std::fs::write(folder.path().join("text.tl"), text).unwrap();
        let mut source = Source::new("text.tl", text.as_bytes());
        source.expand(&mut Files::new(folder.path()));
        let budget = Budget { tuples: 1000, bytes: 1 << 28 };
        let mut world = World::new(&source, Files::new(folder.path()), 0);
        let report = match world.calculate(&mut Reference::default(), budget) {
            Ok(found) => found.outcome.refusal,
            Err(reports) => reports.into_iter().next(),
        };
        let said = report.map(|report| {
            let (line, column) = Places::new(&source.text).of(report.span.start);
            (report.code.name(), format!("{line}:{column}"))
        });
        assert_eq!(said, Some((name, at.to_owned())), "{text}");
        tried += 1;
    }
    assert_eq!(tried, Code::ALL.iter().filter(|code| !code.is_warning()).count() - 1);
}
