//! A refusal is an answer: a kind, a span in a source, what was expected and what was found.

use std::cell::OnceCell;
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
    starts: OnceCell<Vec<usize>>,
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
        Rc::new(Self { name: name.into(), text, broken, starts: OnceCell::new() })
    }

    /// Line and column of a byte offset, both from 1; columns count Unicode scalar values. A line ends with LF, CRLF or a CR
    /// alone.
    pub fn place(&self, offset: usize) -> Place {
        let starts = self.starts();
        let before = self.text.get(..offset.min(self.text.len())).unwrap_or(&self.text);
        let line = starts.partition_point(|start| *start <= before.len());
        let line_start = starts.get(line.wrapping_sub(1)).copied().unwrap_or(0);
        // The one byte behind a text that is not UTF-8.
        let beyond = offset.saturating_sub(self.text.len());
        let column = 1 + before.get(line_start..).map_or(0, |s| s.chars().count()) + beyond;
        Place { offset, line, column }
    }

    /// The whole line that contains a byte offset, without its end.
    pub fn line(&self, offset: usize) -> &str {
        let offset = offset.min(self.text.len());
        let starts = self.starts();
        let next = starts.partition_point(|start| *start <= offset);
        let start = starts.get(next.wrapping_sub(1)).copied().unwrap_or(0);
        let end = starts.get(next).copied().unwrap_or(self.text.len());
        self.text.get(start..end).unwrap_or("").trim_end_matches(['\r', '\n'])
    }

    /// Where the lines begin, found once: a text may have a refusal for each of its lines.
    fn starts(&self) -> &[usize] {
        self.starts.get_or_init(|| {
            let bytes = self.text.as_bytes();
            let ends = (0..bytes.len()).filter(|at| match bytes[*at] {
                b'\n' => true,
                b'\r' => bytes.get(at + 1) != Some(&b'\n'),
                _ => false,
            });
            std::iter::once(0).chain(ends.map(|end| end + 1)).collect()
        })
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

    /// Each way to end a line ends one, and each offset is in the line that plain counting finds.
    #[test]
    fn lines_end_with_lf_crlf_or_cr() {
        let source = Source::new("a", b"a\nbc\r\nd\r\re\xc3\xa9f".to_vec());
        let place = |offset: usize| {
            let Place { line, column, .. } = source.place(offset);
            (line, column, source.line(offset))
        };
        assert_eq!(place(0), (1, 1, "a"));
        assert_eq!(place(1), (1, 2, "a"));
        assert_eq!(place(3), (2, 2, "bc"));
        assert_eq!(place(5), (2, 4, "bc"));
        assert_eq!(place(6), (3, 1, "d"));
        assert_eq!(place(8), (4, 1, ""));
        assert_eq!(place(9), (5, 1, "eéf"));
        assert_eq!(place(12), (5, 3, "eéf"));
        assert_eq!(place(13), (5, 4, "eéf"));
        let empty = Source::new("a", Vec::new());
        assert_eq!((empty.place(0).line, empty.place(0).column, empty.line(0)), (1, 1, ""));
    }
}
