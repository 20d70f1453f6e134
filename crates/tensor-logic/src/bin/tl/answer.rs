//! What a command answers, printed as one JSON document or for people.
//!
//! This is the only file that prints. Refusals and warnings go to standard error in either case.

use std::io::Write;

use serde_json::{Map, Value, json};
use tensor_logic::draw::{Severity, Sheet};
use tensor_logic::error::Report;
use tensor_logic::source::Source;

/// What a command answers.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    /// The keys of the JSON document, without `tl`, `ok`, `errors` and `warnings`.
    pub(crate) fields: Map<String, Value>,
    /// What people read on standard output.
    pub(crate) text: String,
    /// What people read on standard error beside the reports.
    pub(crate) notice: String,
    /// Why the program is refused.
    pub(crate) errors: Vec<Report>,
    /// What is only pointed at.
    pub(crate) warnings: Vec<Report>,
    /// The name and the text that the reports point into.
    pub(crate) file: String,
    /// The text itself.
    pub(crate) program: String,
    /// Whether the exit status is 1 although nothing is refused.
    pub(crate) fails: bool,
}

impl Answer {
    /// An answer about a program; `fields` must be a JSON object.
    pub(crate) fn new(source: &Source, fields: Value, text: impl Into<String>) -> Answer {
        let fields = match fields {
            Value::Object(fields) => fields,
            other => Map::from_iter([("value".to_owned(), other)]),
        };
        let (file, program) = (source.file.clone(), source.text.clone());
        Answer { fields, text: text.into(), file, program, ..Answer::default() }
    }

    /// A refused program.
    pub(crate) fn refused(source: &Source, errors: Vec<Report>) -> Answer {
        Answer { errors, ..Answer::new(source, json!({}), "") }
    }
}

/// Prints the answer and returns the exit status.
pub(crate) fn print(answer: &Answer, json: bool) -> std::io::Result<u8> {
    let status = u8::from(answer.fails || !answer.errors.is_empty());
    let sheet = Sheet::new(&answer.file, &answer.program);
    match write(answer, &sheet, json) {
        // Who reads the answer has seen enough of it, as in `tl run FILE | head`.
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => return Err(error),
        _ => {}
    }
    complaints(answer, &sheet);
    Ok(status)
}

fn write(answer: &Answer, sheet: &Sheet<'_>, json: bool) -> std::io::Result<()> {
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    if json {
        serde_json::to_writer(&mut out, &document(answer, sheet))?;
        writeln!(out)?;
    } else {
        out.write_all(answer.text.as_bytes())?;
    }
    out.flush()
}

/// The JSON document. `fmt` has no reports unless the program is refused.
fn document(answer: &Answer, sheet: &Sheet<'_>) -> Value {
    let reports = |reports: &[Report]| -> Value { reports.iter().map(|report| sheet.json(report)).collect() };
    let mut document = Map::from_iter([
        ("tl".to_owned(), json!(1)),
        ("ok".to_owned(), json!(answer.errors.is_empty())),
    ]);
    document.extend(answer.fields.clone());
    let refused = !answer.errors.is_empty();
    if refused || !answer.fields.contains_key("changed") {
        document.insert("errors".to_owned(), reports(&answer.errors));
        document.insert("warnings".to_owned(), reports(&answer.warnings));
    }
    Value::Object(document)
}

/// Tells people of refusals and warnings, in order of place.
fn complaints(answer: &Answer, sheet: &Sheet<'_>) {
    let errors = answer.errors.iter().map(|report| (report, Severity::Error));
    let warnings = answer.warnings.iter().map(|report| (report, Severity::Warning));
    let mut reports: Vec<(&Report, Severity)> = errors.chain(warnings).collect();
    reports.sort_by_key(|(report, _)| report.span.start);
    let mut err = std::io::BufWriter::new(std::io::stderr().lock());
    // If nobody listens there is nobody to tell.
    for (report, severity) in reports {
        let _ = err.write_all(sheet.draw(report, severity).as_bytes());
    }
    let _ = err.write_all(answer.notice.as_bytes());
    let _ = err.flush();
}

/// Says why there is no answer at all.
pub(crate) fn complain(error: &anyhow::Error) {
    let _ = std::io::stderr().write_all(format!("tl: {error:#}\n").as_bytes());
}
