//! The pages of `docs/tensor-logic`, and the README: every program runs, is in canonical form, and says what the
//! page says.
//!
//! A block of `tl` is a program, one of `csv NAME` a file that lies beside all programs below it. A comment behind a query is its answer. A block of `text` below
//! a program is the answer of its last query, a refusal (`error[CODE] LINE:COLUMN`), or what
//! `$ tl grad FILE --of GOAL` says.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot read its pages has failed")]

use std::path::{Path, PathBuf};

use crate::common::answers::{calculated, commented, contradiction, engines};
use tensor_logic::engine::{Budget, Engine};
use tensor_logic::error::{Code, Places, Refusal};
use tensor_logic::format::format;
use tensor_logic::function::{BUILT_IN, OTHERS};
use tensor_logic::gradient::evaluate::{gradients, with_respect_to};
use tensor_logic::program::Action;
use tensor_logic::world::Calculated;

/// A program of a page, the files beside it, and the block of text below it.
struct Example {
    line: usize,
    program: String,
    files: Vec<(String, String)>,
    below: Option<String>,
}

/// The programs of a page.
fn examples(page: &str) -> Vec<Example> {
    let mut found: Vec<Example> = Vec::new();
    let mut files = Vec::new();
    let mut lines = page.lines().zip(1..);
    while let Some((fence, line)) = lines.next() {
        let Some(kind) = fence.strip_prefix("```") else { continue };
        let block = lines.by_ref().map(|(text, _)| text).take_while(|text| *text != "```");
        let block: String = block.map(|text| format!("{text}\n")).collect();
        match (kind, found.last_mut()) {
            ("tl", _) => found.push(Example { line, program: block, files: files.clone(), below: None }),
            ("text", Some(example)) => example.below = Some(block),
            (kind, _) => files.extend(kind.strip_prefix("csv ").map(|name| (name.to_owned(), block))),
        }
    }
    found
}

/// The pages, and how many programs each has: a page or a program that is lost is missed.
const PAGES: [(&str, usize); 9] = [
    ("docs/tensor-logic/embeddings.md", 5),
    ("docs/tensor-logic/engine.md", 0),
    ("docs/tensor-logic/language.md", 4),
    ("docs/tensor-logic/probability.md", 8),
    ("docs/tensor-logic/reference.md", 15),
    ("docs/tensor-logic/relational-learning.md", 7),
    ("docs/tensor-logic/tutorial.md", 25),
    ("crates/tensor-logic/README.md", 1),
    ("README.md", 1),
];

/// The pages with their texts.
fn pages() -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = |(name, _): (&str, usize)| {
        let path = root.join(name);
        let text = std::fs::read_to_string(&path);
        (path, text.unwrap_or_else(|error| panic!("{name}: {error}")))
    };
    PAGES.map(page).to_vec()
}

/// How an engine's answers differ from what the page says.
fn wrong(example: &Example, engine: &mut dyn Engine) -> Option<String> {
    let below = example.below.as_deref().unwrap_or("");
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in &example.files {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    let found = calculated(&example.program, folder.path(), 0, engine);
    if let Some(refusal) = below.strip_prefix("error[") {
        let report = match found {
            Err(reports) => reports.into_iter().next(),
            Ok(found) => found.outcome.refusal,
        };
        let said = report.map_or("nothing".to_owned(), |report| place(&report, &example.program));
        return (said != refusal.trim()).then(|| format!("{said} instead of {refusal}"));
    }
    let found = match found {
        Ok(found) => found,
        Err(reports) => return Some(format!("{reports:?}")),
    };
    if let Some(refusal) = &found.outcome.refusal {
        return Some(format!("{refusal:?}"));
    }
    let said: Vec<String> = found.outcome.answers.iter().map(|answer| said(&found.show(answer))).collect();
    let queries = commented(&example.program);
    if queries.len() != said.len() {
        return Some(format!("{} answers to {} queries", said.len(), queries.len()));
    }
    let comments = queries.iter().zip(&said).filter_map(|((_, page), said)| Some((page.as_ref()?, said)));
    if let Some(why) = comments.filter_map(|(page, said)| contradiction(page, said)).next() {
        return Some(why);
    }
    match below.split_once(" --of ") {
        Some((_, rest)) => {
            let (goal, page) = rest.split_once('\n')?;
            contradiction(page, &gradient(&found, goal, engine))
        }
        None if below.is_empty() => None,
        None => contradiction(below, said.last()?),
    }
}

/// `CODE] LINE:COLUMN`
fn place(report: &Refusal, text: &str) -> String {
    let (line, column) = Places::new(text).of(report.span.start);
    format!("{}] {line}:{column}", report.code.name())
}

/// An answer without its query, and without what an engine may count as it likes.
fn said(shown: &str) -> String {
    let lines = shown.lines().skip(1).filter(|line| !line.starts_with("  derived "));
    lines.collect::<Vec<_>>().join("\n")
}

/// What `tl grad` says of a scalar.
fn gradient(found: &Calculated, goal: &str, engine: &mut dyn Engine) -> String {
    let asked = |action: &Action| match action {
        Action::Query(query) if query.text == format!("{goal}?") => Some(query.tensor),
        _ => None,
    };
    let tensor = found.program.actions.iter().find_map(asked).unwrap();
    let by = with_respect_to(&found.program, tensor, &[]).unwrap();
    let budget = Budget { tuples: 100_000, bytes: 1 << 28 };
    let found = gradients(engine, &found.program, budget, tensor, &by).unwrap();
    let mut out = format!("{goal}: {}\n", found.value);
    for (name, content) in &found.gradients {
        out += &format!("d{goal}/d{name}: {:?}\n", content.numbers());
    }
    out
}

#[test]
fn every_program_says_what_the_page_says() {
    let mut problems = Vec::new();
    for (path, page) in pages() {
        for example in examples(&page) {
            for (name, mut engine) in engines() {
                let place = format!("{}:{} on {name}", path.display(), example.line);
                problems.extend(wrong(&example, &mut *engine).map(|why| format!("{place}: {why}")));
            }
        }
    }
    assert!(problems.is_empty(), "{} problems\n{}", problems.len(), problems.join("\n"));
}

#[test]
fn every_program_is_in_canonical_form() {
    for (path, page) in pages() {
        for example in examples(&page) {
            let formatted = format(&example.program).unwrap();
            assert_eq!(formatted, example.program, "{}:{}", path.display(), example.line);
        }
    }
}

#[test]
fn the_reference_card_has_every_code_and_function() {
    for (path, page) in pages() {
        if !path.ends_with("language.md") {
            continue;
        }
        let (_, refusals) = page.split_once("## Refusals").unwrap();
        let quoted = refusals.lines().filter(|line| line.starts_with('|')).flat_map(|line| line.split('`'));
        let mut there: Vec<&str> =
            quoted.filter(|word| word.contains(|c: char| c.is_alphabetic()) && !word.contains('|')).collect();
        let mut codes: Vec<&str> = Code::ALL.iter().map(|code| code.name()).collect();
        codes.retain(|code| *code != Code::NotYet.name());
        there.sort_unstable();
        codes.sort_unstable();
        assert_eq!(there, codes);
        let names = BUILT_IN.iter().map(|(name, ..)| name).chain(OTHERS);
        for name in names {
            let written = [format!("`{name}`"), format!("`{name}("), format!("`{name}[")];
            assert!(written.iter().any(|text| page.contains(text)), "{name}");
        }
    }
}

#[test]
fn every_page_has_its_programs() {
    for ((path, page), (name, programs)) in pages().iter().zip(PAGES) {
        assert_eq!(examples(page).len(), programs, "{name}");
        let folder = path.parent().unwrap();
        let there = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let pages = there.filter(|path| path.extension().is_some_and(|end| end == "md")).count();
        let listed = PAGES.iter().filter(|(other, _)| Path::new(other).parent() == Path::new(name).parent());
        // The workspace has other pages beside its README.
        assert!(name == "README.md" || pages == listed.count(), "{}: {pages} pages", folder.display());
    }
}
