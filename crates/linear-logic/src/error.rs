//! A refusal is an answer: a kind, a span in a source, what was expected and what was found.

use std::rc::Rc;

use serde::Serialize;
use serde::ser::SerializeStruct;

macro_rules! kinds {
    ($($kind:ident = $name:literal),+ $(,)?) => {
        /// What is wrong. The names are part of the interface.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[expect(missing_docs, reason = "the names say it; the specification's table of refusals lists them")]
        pub enum Kind { $($kind),+ }

        impl Kind {
            /// Every kind, in the order of the table of refusals.
            pub const ALL: &'static [Self] = &[$(Self::$kind),+];

            /// The kind as it is reported.
            pub fn name(self) -> &'static str {
                match self { $(Self::$kind => $name),+ }
            }
        }
    };
}

kinds! {
    Io = "io",
    Syntax = "syntax",
    Limit = "limit",
    Unbound = "unbound",
    UnknownType = "unknown-type",
    Arity = "arity",
    DuplicateName = "duplicate-name",
    TypeMismatch = "type-mismatch",
    NotAFunction = "not-a-function",
    NotATensor = "not-a-tensor",
    NotAUnit = "not-a-unit",
    NotAWith = "not-a-with",
    NotAPlus = "not-a-plus",
    NotBanged = "not-banged",
    CannotInfer = "cannot-infer",
    LinearReuse = "linear-reuse",
    LinearUnused = "linear-unused",
    BoxCapture = "box-capture",
    BranchMismatch = "branch-mismatch",
    DifferentialDisabled = "differential-disabled",
    Argument = "argument",
    Dimension = "dimension",
    NotInRing = "not-in-ring",
    Overflow = "overflow",
    NotFinite = "not-finite",
    NotCompilable = "not-compilable",
    Fuel = "fuel",
    Unsupported = "unsupported",
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
        Rc::new(Self { name: name.into(), text, broken })
    }

    /// Line and column of a byte offset, both from 1; columns count Unicode scalar values.
    pub fn place(&self, offset: usize) -> Place {
        let before = self.text.get(..offset.min(self.text.len())).unwrap_or(&self.text);
        let line_start = before.rfind('\n').map_or(0, |i| i + 1);
        let line = 1 + before.matches('\n').count();
        // The one byte behind a text that is not UTF-8.
        let beyond = offset.saturating_sub(self.text.len());
        let column = 1 + before.get(line_start..).map_or(0, |s| s.chars().count()) + beyond;
        Place { offset, line, column }
    }

    /// The whole line that contains a byte offset, without its end.
    pub fn line(&self, offset: usize) -> &str {
        let offset = offset.min(self.text.len());
        let start = self.text.get(..offset).and_then(|s| s.rfind('\n')).map_or(0, |i| i + 1);
        self.text.get(start..).and_then(|rest| rest.split('\n').next()).unwrap_or("").trim_end_matches('\r')
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
}

/// Short for a result that may be a refusal.
pub type Result<T> = std::result::Result<T, Refusal>;

impl Refusal {
    /// A refusal without a place.
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), at: None, variable: None, expected: None, found: None }
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
        let optional = [("variable", &self.variable), ("expected", &self.expected), ("found", &self.found)];
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
