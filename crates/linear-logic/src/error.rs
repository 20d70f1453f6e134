//! A refusal is an answer: a kind, a span in a source, what was expected and what was found.

use std::rc::Rc;

use serde::Serialize;
use serde::ser::SerializeStruct;

macro_rules! kinds {
    ($($kind:ident = $name:literal [$($field:ident),*]),+ $(,)?) => {
        /// What is wrong. The names are part of the interface.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        #[expect(missing_docs, reason = "the names say it; the table of refusals in the reference lists them")]
        pub enum Kind { $($kind),+ }

        impl Kind {
            /// Every kind, in the order of the table of refusals.
            pub const ALL: &'static [Self] = &[$(Self::$kind),+];

            /// The kind as it is reported.
            pub fn name(self) -> &'static str {
                match self { $(Self::$kind => $name),+ }
            }

            /// The fields that every refusal of this kind carries.
            pub fn fields(self) -> &'static [Field] {
                match self { $(Self::$kind => &[$(Field::$field),*]),+ }
            }
        }
    };
}

/// What a refusal says beside its kind, its message and its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Field {
    /// The name at fault.
    Variable,
    /// What would fit.
    Expected,
    /// What is there.
    Found,
}

impl Field {
    /// The key in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Variable => "variable",
            Self::Expected => "expected",
            Self::Found => "found",
        }
    }
}

kinds! {
    Io = "io" [],
    Syntax = "syntax" [],
    Limit = "limit" [],
    Unbound = "unbound" [Variable],
    UnknownType = "unknown-type" [Variable],
    Arity = "arity" [Expected, Found],
    DuplicateName = "duplicate-name" [Variable],
    TypeMismatch = "type-mismatch" [Expected, Found],
    NotAFunction = "not-a-function" [Found],
    NotATensor = "not-a-tensor" [Found],
    NotAUnit = "not-a-unit" [Found],
    NotAWith = "not-a-with" [Found],
    NotAPlus = "not-a-plus" [Found],
    NotBanged = "not-banged" [Found],
    // That of a λ carries the variable.
    CannotInfer = "cannot-infer" [],
    LinearReuse = "linear-reuse" [Variable],
    LinearUnused = "linear-unused" [Variable],
    BoxCapture = "box-capture" [Variable, Found],
    BranchMismatch = "branch-mismatch" [Variable],
    DifferentialDisabled = "differential-disabled" [],
    Argument = "argument" [],
    Dimension = "dimension" [Variable],
    NotInRing = "not-in-ring" [Found],
    Overflow = "overflow" [],
    NotFinite = "not-finite" [Found],
    NotCompilable = "not-compilable" [Found],
    Fuel = "fuel" [],
    Unsupported = "unsupported" [],
}

/// A text with its name: a path, `<stdin>`, `<expr>`, `<argument>` or `<slot>`.
#[derive(Debug, PartialEq, Eq)]
pub struct Source {
    /// How reports name it.
    pub name: String,
    /// The text; where the bytes are not UTF-8, what stands before the first bad one.
    pub text: String,
    /// Whether bytes that are not UTF-8 follow the text.
    pub broken: bool,
    /// Where each line begins.
    lines: Vec<usize>,
    /// The number of characters before every byte whose place is a multiple of [`STRIDE`].
    characters: Vec<usize>,
}

/// How many bytes are looked at to find a column; the characters before them are counted once.
const STRIDE: usize = 1024;

/// Whether a byte of UTF-8 begins a character.
fn begins_character(byte: u8) -> bool {
    byte & 0xc0 != 0x80
}

impl Source {
    /// A source of these bytes.
    pub fn new(name: impl Into<String>, bytes: Vec<u8>) -> Rc<Self> {
        let (text, broken) = match String::from_utf8(bytes) {
            Ok(text) => (text, false),
            Err(error) => {
                let good = error.utf8_error().valid_up_to();
                let mut bytes = error.into_bytes();
                bytes.truncate(good);
                (String::from_utf8(bytes).unwrap_or_default(), true)
            }
        };
        // A line ends with LF, CR, or CR and LF.
        let mut lines = vec![0];
        let mut rest = text.bytes().enumerate().peekable();
        while let Some((at, byte)) = rest.next() {
            let in_pair = byte == b'\r' && rest.peek().is_some_and(|(_, next)| *next == b'\n');
            if matches!(byte, b'\n' | b'\r') && !in_pair {
                lines.push(at + 1);
            }
        }
        let mut characters = vec![0];
        for part in text.as_bytes().chunks(STRIDE) {
            let before = characters.last().copied().unwrap_or(0);
            characters.push(before + part.iter().filter(|byte| begins_character(**byte)).count());
        }
        Rc::new(Self { name: name.into(), text, broken, lines, characters })
    }

    /// Line and column of a byte offset, both from 1; columns count Unicode scalar values.
    pub fn place(&self, offset: usize) -> Place {
        let inside = offset.min(self.text.len());
        let line = self.lines.partition_point(|start| *start <= inside);
        // The one byte behind a text that is not UTF-8.
        let beyond = offset - inside;
        let column = 1 + self.before(inside) - self.before(self.line_span(inside).start) + beyond;
        Place { offset, line, column }
    }

    /// The number of characters that begin before a byte offset.
    fn before(&self, offset: usize) -> usize {
        let (known, from) =
            (self.characters.get(offset / STRIDE).copied().unwrap_or(0), offset / STRIDE * STRIDE);
        let rest = self.text.as_bytes().get(from..offset).unwrap_or_default();
        known + rest.iter().filter(|byte| begins_character(**byte)).count()
    }

    /// The line that contains a byte offset, without its end.
    pub fn line_span(&self, offset: usize) -> Span {
        let offset = offset.min(self.text.len());
        let number = self.lines.partition_point(|start| *start <= offset);
        let start = self.lines.get(number.saturating_sub(1)).copied().unwrap_or(0);
        let end = self.lines.get(number).copied().unwrap_or(self.text.len());
        let line = self.text.get(start..end).unwrap_or("");
        Span { start, end: start + line.trim_end_matches(['\n', '\r']).len() }
    }

    /// The text of that line.
    pub fn line(&self, offset: usize) -> &str {
        let Span { start, end } = self.line_span(offset);
        self.text.get(start..end).unwrap_or("")
    }
}

/// A place in a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Place {
    /// In bytes, from 0.
    pub offset: usize,
    /// From 1.
    pub line: usize,
    /// In Unicode scalar values, from 1.
    pub column: usize,
}

/// A range of bytes of a source; `end` is exclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Span {
    /// The first byte.
    pub start: usize,
    /// Behind the last byte.
    pub end: usize,
}

impl Span {
    /// From the start of one span to the end of another.
    #[must_use]
    pub fn to(self, end: Self) -> Self {
        Self { start: self.start, end: end.end }
    }
}

/// A refusal, or a warning.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("error[{}]: {message}", kind.name())]
#[non_exhaustive]
pub struct Refusal {
    /// What is wrong.
    pub kind: Kind,
    /// One sentence.
    pub message: String,
    /// Where, if there is a text to point at.
    pub at: Option<(Rc<Source>, Span)>,
    /// The name at fault.
    pub variable: Option<String>,
    /// The formula, or the number of formulas, that would fit.
    pub expected: Option<String>,
    /// The formula, the number of formulas, or a phrase for the term that is there.
    pub found: Option<String>,
    /// What would mend the text.
    pub help: Option<String>,
}

/// Short for a result that may be a refusal.
pub type Result<T> = std::result::Result<T, Refusal>;

impl Refusal {
    /// A refusal without a place.
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            at: None,
            variable: None,
            expected: None,
            found: None,
            help: None,
        }
    }

    /// At this span of a source.
    #[must_use]
    pub fn at(mut self, source: &Rc<Source>, span: Span) -> Self {
        self.at = Some((source.clone(), span));
        self
    }

    /// About this name.
    #[must_use]
    pub fn variable(mut self, name: impl Into<String>) -> Self {
        self.variable = Some(name.into());
        self
    }

    /// With what would fit.
    #[must_use]
    pub fn expected(mut self, expected: impl ToString) -> Self {
        self.expected = Some(expected.to_string());
        self
    }

    /// With what is there.
    #[must_use]
    pub fn found(mut self, found: impl ToString) -> Self {
        self.found = Some(found.to_string());
        self
    }

    /// With what would mend the text, if that is known.
    #[must_use]
    pub fn help(mut self, help: impl Into<Option<String>>) -> Self {
        self.help = help.into();
        self
    }

    /// Without a place: there is no text to point at.
    #[must_use]
    pub fn unplaced(self) -> Self {
        Self { at: None, ..self }
    }

    /// The refusal of a term that breaks a rule of typing; terms that were checked never lead here.
    pub(crate) fn ill_typed() -> Self {
        Self::new(Kind::TypeMismatch, "the term does not check")
            .expected("a term that checks")
            .found("one that does not")
    }
}

#[derive(Serialize)]
struct JsonSpan<'a> {
    file: &'a str,
    start: Place,
    end: Place,
}

impl Serialize for Refusal {
    /// The object of every `errors` list: absent fields are left out, but `span` is then `null`.
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let optional = [
            ("variable", &self.variable),
            ("expected", &self.expected),
            ("found", &self.found),
            ("help", &self.help),
        ];
        let mut object = serializer.serialize_struct("Refusal", 3)?;
        object.serialize_field("kind", self.kind.name())?;
        object.serialize_field("message", &self.message)?;
        let span = self.at.as_ref().map(|(source, span)| JsonSpan {
            file: &source.name,
            start: source.place(span.start),
            end: source.place(span.end),
        });
        object.serialize_field("span", &span)?;
        for (key, value) in optional {
            if let Some(value) = value {
                object.serialize_field(key, value)?;
            }
        }
        object.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use seeded::Family;

    /// Line by line and character by character, from the start.
    fn slow(text: &str, offset: usize) -> (usize, usize, String) {
        let (mut line, mut column, mut start) = (1, 1, 0);
        let mut rest = text.char_indices().peekable();
        while let Some((at, c)) = rest.next() {
            if at >= offset {
                break;
            }
            column += 1;
            let in_pair = c == '\r' && rest.peek().is_some_and(|(_, next)| *next == '\n');
            if matches!(c, '\r' | '\n') && !in_pair {
                (line, column, start) = (line + 1, 1, at + c.len_utf8());
            }
        }
        let rest = text.get(start..).unwrap_or("");
        (line, column, rest.split(['\r', '\n']).next().unwrap_or("").to_owned())
    }

    #[test]
    fn places_are_counted_from_the_start() {
        for seed in 0..30 {
            let mut stream = Family::named("linear-logic:places").stream(seed);
            let ends = 1 + stream.below(40);
            let text: String = (0..stream.below(6000))
                .map(|_| match stream.below(ends) {
                    0 => ["\n", "\r", "\r\n"][stream.below(3) as usize],
                    1..20 => "x",
                    _ => ["λ", "⊸", "𝔸"][stream.below(3) as usize],
                })
                .collect();
            let source = Source::new("<test>", text.clone().into_bytes());
            let places = text.char_indices().map(|(at, _)| at).chain([text.len()]);
            for offset in places.step_by(1 + stream.below(50) as usize) {
                let Place { line, column, .. } = source.place(offset);
                assert_eq!(
                    (line, column, source.line(offset).to_owned()),
                    slow(&text, offset),
                    "{seed}: {offset}"
                );
            }
        }
    }
}
