//! What a command answers, printed as one JSON document or for people.
//!
//! Refusals and warnings go to standard error in either case.

use calculemus_base::stream;
use tensor_logic::answer::json;
use tensor_logic::draw::{Severity, Sheet};
use tensor_logic::error::{Refusal, Warning};
use tensor_logic::source::Source;

/// What a command answers.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    /// The keys of the JSON document with their values as JSON, without `tl` and `ok`, and
    /// without `errors` and `warnings` but where [`Shape`] says so.
    pub(crate) fields: Vec<(&'static str, String)>,
    /// Which keys stand in the document in any case.
    pub(crate) shape: Shape,
    /// What people read on standard output.
    pub(crate) text: String,
    /// What people read on standard error beside the reports.
    pub(crate) notice: String,
    /// Why the program is refused.
    pub(crate) errors: Vec<Refusal>,
    /// What is only pointed at.
    pub(crate) warnings: Vec<Warning>,
    /// The name of the program in messages.
    pub(crate) file: String,
    /// The text that the reports point into.
    pub(crate) program: String,
    /// Whether the exit status is 1 although nothing is refused.
    pub(crate) fails: bool,
    /// Whether everything was printed before.
    pub(crate) quiet: bool,
    /// The exit status where a signal interrupted the work.
    pub(crate) interrupted: Option<u8>,
}

/// Which reports the document of an accepted program has.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// None.
    #[default]
    Bare,
    /// `warnings`.
    Warnings,
    /// `errors` and `warnings`.
    Both,
}

impl Answer {
    /// An answer about a program.
    pub(crate) fn new(source: &Source, shape: Shape) -> Answer {
        Answer { file: source.file.clone(), program: source.text.clone(), shape, ..Answer::default() }
    }

    /// A refused program.
    pub(crate) fn refused(source: &Source, errors: Vec<Refusal>) -> Answer {
        Answer { errors, ..Answer::new(source, Shape::Both) }
    }
}

/// An answer that is there before a command has begun.
#[derive(Debug, thiserror::Error)]
#[error("the command is refused")]
pub(crate) struct Early(pub(crate) Answer);

/// Prints the answer and returns the exit status.
pub(crate) fn print(answer: &Answer, json: bool) -> std::io::Result<u8> {
    let refused = u8::from(answer.fails || !answer.errors.is_empty());
    let sheet = Sheet::new(&answer.file, &answer.program);
    if answer.quiet && answer.errors.is_empty() {
        return Ok(refused);
    }
    stream::answer(&if json { document(answer, &sheet) } else { answer.text.clone() })?;
    complaints(answer, &sheet);
    Ok(answer.interrupted.unwrap_or(refused))
}

/// The JSON document, on one line.
fn document(answer: &Answer, sheet: &Sheet<'_>) -> String {
    let refused = !answer.errors.is_empty();
    let mut document = format!("{{\"tl\": 1, \"ok\": {}", !refused);
    for (key, value) in &answer.fields {
        document.extend([", \"", key, "\": ", value]);
    }
    let mut reports = |key: &str, reports: &[Refusal]| {
        document.extend([", \"", key, "\": "]);
        json::list(&mut document, reports, |out, report| json::report(out, sheet.places(), report));
    };
    if refused || answer.shape == Shape::Both {
        reports("errors", &answer.errors);
    }
    if refused || answer.shape != Shape::Bare {
        reports("warnings", &answer.warnings);
    }
    document.push_str("}\n");
    document
}

/// Tells people of refusals and warnings, in order of place.
pub(crate) fn complaints(answer: &Answer, sheet: &Sheet<'_>) {
    let errors = answer.errors.iter().map(|report| (report, Severity::Error));
    let warnings = answer.warnings.iter().map(|report| (report, Severity::Warning));
    let mut reports: Vec<(&Refusal, Severity)> = errors.chain(warnings).collect();
    reports.sort_by_key(|(report, _)| report.span.start);
    let mut text: String =
        reports.into_iter().map(|(report, severity)| sheet.draw(report, severity)).collect();
    text.push_str(&answer.notice);
    stream::tell(&text);
}

/// Says a part of a dialogue; whether somebody listens still.
///
/// # Errors
/// If it cannot be written.
pub(crate) fn say(text: &str) -> std::io::Result<bool> {
    stream::is_heard(&format!("{text}\n"))
}

pub(crate) use stream::say as object;
