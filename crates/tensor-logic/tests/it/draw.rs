//! The shape of a refusal, for people and for programs.

use crate::common;
use tensor_logic::answer::json;
use tensor_logic::ast::Span;
use tensor_logic::draw::{Severity, Sheet};
use tensor_logic::error::{Code, Refusal};

/// The place of the occurrence number `nth` of a piece of a text.
fn at(text: &str, piece: &str, nth: usize) -> Span {
    let start = text.match_indices(piece).nth(nth).map_or(0, |(at, _)| at);
    Span { start, end: start + piece.len() }
}

#[test]
fn the_example_of_the_specification() {
    let text = "W = [1, 2]\nX = [1, 2, 3]\nY = W[j] X[j]\n";
    let meeting = at(text, "j", 1);
    let report = Refusal::new(Code::SizeConflict, meeting, "index `j` has 2 values in `W` and 3 in `X`")
        .label(meeting, "they meet here")
        .label(at(text, "[1, 2]", 0), "2 values of `j`")
        .label(at(text, "[1, 2, 3]", 0), "3 values of `j`")
        .help("give both the same size, or use two index names");
    let wanted = "\
error[size-conflict]: index `j` has 2 values in `W` and 3 in `X`
  --> prog.tl:3:12
   |
 1 | W = [1, 2]
   |     ------ 2 values of `j`
 2 | X = [1, 2, 3]
   |     --------- 3 values of `j`
 3 | Y = W[j] X[j]
   |            ^ they meet here
   = help: give both the same size, or use two index names
";
    assert_eq!(Sheet::new("prog.tl", text).draw(&report, Severity::Error), wanted);
    let mut written = String::new();
    json::report(&mut written, Sheet::new("prog.tl", text).places(), &report);
    let read: serde_json::Value = serde_json::from_str(&written).unwrap_or_default();
    let label = |line: u64, column: u64, end: u64, text: &str| serde_json::json!({"line": line, "column": column, "end_line": line, "end_column": end, "text": text});
    let wanted = serde_json::json!({
        "code": "size-conflict",
        "message": "index `j` has 2 values in `W` and 3 in `X`",
        "line": 3, "column": 12, "end_line": 3, "end_column": 13,
        "labels": [label(3, 12, 13, "they meet here"), label(1, 5, 11, "2 values of `j`"), label(2, 5, 14, "3 values of `j`")],
        "help": "give both the same size, or use two index names",
    });
    assert_eq!(read, wanted);
}

#[test]
fn marks_of_one_line_the_end_of_the_text_and_tabs() {
    let text = "\tY = é + A\n";
    let report = Refusal::new(Code::Scope, at(text, "A", 0), "m").label(at(text, "é", 0), "here");
    let wanted = "\
warning[scope]: m
  --> a.tl:1:10
   |
 1 |  Y = é + A
   |      - here
   |          ^
";
    assert_eq!(Sheet::new("a.tl", text).draw(&report, Severity::Warning), wanted);
    let end = Refusal::new(Code::Syntax, Span { start: text.len(), end: text.len() }, "m");
    assert!(
        Sheet::new("a.tl", text).draw(&end, Severity::Error).contains("  --> a.tl:2:1\n   |\n 2 |\n   | ^\n")
    );
}

#[test]
fn what_is_drawn_is_bounded() {
    let text = format!("Y = {}1\u{1b}", "w[i] ".repeat(100_000));
    let place = Span { start: text.len() - 2, end: text.len() - 1 };
    let report = (0..1000)
        .fold(Refusal::new(Code::Syntax, place, "m"), |report, _| report.label(at(&text, "w", 7), "x"));
    let drawn = Sheet::new("a.tl", &text).draw(&report, Severity::Error);
    assert!(drawn.len() < 6000 && !drawn.contains('\u{1b}'), "{drawn}");
    assert!(drawn.contains("…w[i] w[i]"), "{drawn}");
}

#[test]
fn every_report_of_a_soup_can_be_drawn() {
    let mut stream = common::stream("draw soup");
    for _ in 0..2_000 {
        let text = common::soup(&mut stream, 30);
        let sheet = Sheet::new("a.tl", &text);
        for report in tensor_logic::parse::parse(&text).1 {
            assert!(sheet.draw(&report, Severity::Error).contains('^'));
        }
    }
}
