//! A refusal or a warning as people read it.
//!
//! Enter at [`Sheet`]: a text whose lines are indexed once, for any number of reports. The shape
//! is that of section 8: code and message, place, the quoted lines with marks, help.
//!
//! The place is marked with `^`, labels with `-`; a label at the place itself says what stands
//! beside the `^`. What is quoted is bounded: of a long line only the neighbourhood of the mark is
//! shown, of many labels the first.

use std::fmt::Write;

use crate::ast::Span;
use crate::error::{Places, Refusal};

/// The characters of a line that are shown on either side of a mark.
const AROUND: usize = 60;

/// The most labels that are drawn.
const LABELS: usize = 12;

/// Whether a report stops a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// It is refused.
    Error,
    /// It is only pointed at.
    Warning,
}

/// A named text to point into.
#[derive(Debug, Clone)]
pub struct Sheet<'a> {
    file: &'a str,
    places: Places<'a>,
}

/// One underlined place of a line.
struct Mark<'a> {
    /// The line in the whole text.
    row: usize,
    column: usize,
    width: usize,
    sign: char,
    text: &'a str,
}

impl<'a> Sheet<'a> {
    /// The text of a file.
    pub fn new(file: &'a str, text: &'a str) -> Sheet<'a> {
        Sheet { file, places: Places::new(text) }
    }

    /// Where the lines begin.
    pub fn places(&self) -> &Places<'a> {
        &self.places
    }

    /// A report for people, with a line end behind its last line.
    pub fn draw(&self, report: &Refusal, severity: Severity) -> String {
        let word = match severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        let marks = self.marks(report);
        let width =
            marks.iter().map(|mark| self.places.numbered(mark.row).1).max().unwrap_or(1).to_string().len();
        let mut drawn = format!("{word}[{}]: {}\n", report.code.name(), visible(&report.message));
        // Writing to a string cannot fail.
        let (line, column) = self.places.of(report.span.start);
        let file = self.places.file(report.span.start);
        let _ = writeln!(drawn, "  --> {}:{line}:{column}", visible(file.unwrap_or(self.file)));
        let _ = writeln!(drawn, " {:width$} |", "");
        let (mut quoted, mut inside) = (None, file);
        for mark in &marks {
            let line = self.places.line(mark.row);
            let (shown, at) = neighbourhood(line, mark.column - 1);
            let whole = line.chars().nth(2 * AROUND).is_none();
            let (file, number) = self.places.numbered(mark.row);
            if file != inside {
                let _ =
                    writeln!(drawn, "  ::: {}:{number}:{}", visible(file.unwrap_or(self.file)), mark.column);
                inside = file;
            }
            if quoted != Some(mark.row) || !whole {
                let line = format!(" {number:>width$} | {shown}");
                let _ = writeln!(drawn, "{}", line.trim_end());
            }
            quoted = Some(mark.row);
            let sign = mark.sign.to_string().repeat(mark.width.clamp(1, AROUND));
            let marked = format!(" {:width$} | {:at$}{sign} {}", "", "", visible(mark.text));
            let _ = writeln!(drawn, "{}", marked.trim_end());
        }
        if let Some(help) = &report.help {
            let _ = writeln!(drawn, "   = help: {}", visible(help));
        }
        drawn
    }

    /// The place and the labels, in order of the text.
    fn marks(&self, report: &'a Refusal) -> Vec<Mark<'a>> {
        let own = report.labels.iter().find(|label| label.span == report.span);
        let mut marks = vec![self.mark(report.span, '^', own.map_or("", |label| &label.text))];
        let others = report.labels.iter().filter(|label| label.span != report.span);
        marks.extend(others.take(LABELS).map(|label| self.mark(label.span, '-', &label.text)));
        // The file of the report stands first.
        let first = self.places.file(report.span.start);
        marks.sort_by_key(|mark| (self.places.numbered(mark.row).0 != first, mark.row, mark.column));
        marks
    }

    fn mark(&self, span: Span, sign: char, text: &'a str) -> Mark<'a> {
        let (row, column) = (self.places.row(span.start), self.places.of(span.start).1);
        // A span of several lines is marked up to the end of its first.
        let width = if self.places.row(span.end) == row {
            self.places.of(span.end).1 - column
        } else {
            self.places.line(row).chars().skip(column - 1).count()
        };
        Mark { row, column, width, sign, text }
    }
}

/// Text without what would steer a terminal.
fn visible(text: &str) -> String {
    text.chars().map(visible_letter).collect()
}

fn visible_letter(letter: char) -> char {
    match letter {
        '\t' => ' ',
        _ if letter.is_control() => '·',
        _ => letter,
    }
}

/// The part of a line around its character number `place` (from 0), and the column of that
/// character in the part (from 0). A line of at most 2·[`AROUND`] characters is shown whole.
fn neighbourhood(line: &str, place: usize) -> (String, usize) {
    let short = line.chars().nth(2 * AROUND).is_none();
    let from = if short { 0 } else { place.saturating_sub(AROUND) };
    let mut rest = line.chars().skip(from);
    let mut shown: String = if from > 0 { "…".to_owned() } else { String::new() };
    shown.extend(rest.by_ref().take(2 * AROUND).map(visible_letter));
    if rest.next().is_some() {
        shown.push('…');
    }
    (shown, place - from + usize::from(from > 0))
}
