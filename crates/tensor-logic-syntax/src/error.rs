//! Refusals and warnings: one shape for both, made where the rule is checked, drawn by the command.
//!
//! A [`Refusal`] is a code of section 9 or 10, a message with the names and numbers at fault, the
//! place, further places with a word each, and what would mend it.

use crate::ast::Span;

/// A refusal.
#[non_exhaustive]
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {message}", code.name())]
pub struct Refusal {
    /// Which rule.
    pub code: Code,
    /// What is wrong, with the names and numbers.
    pub message: String,
    /// Where.
    pub span: Span,
    /// Further places.
    pub labels: Vec<Label>,
    /// What would mend it.
    pub help: Option<String>,
}

/// A further place that a report points at.
#[non_exhaustive]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label {
    /// Where.
    pub span: Span,
    /// What is there.
    pub text: String,
}

impl Refusal {
    /// A report without labels and help.
    pub fn new(code: Code, span: Span, message: impl Into<String>) -> Refusal {
        Refusal { code, message: message.into(), span, labels: Vec::new(), help: None }
    }

    /// Adds what would mend it.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Refusal {
        self.help = Some(help.into());
        self
    }

    /// Adds a further place.
    #[must_use]
    pub fn label(mut self, span: Span, text: impl Into<String>) -> Refusal {
        self.labels.push(Label { span, text: text.into() });
        self
    }
}

/// A warning has the form of a refusal, and refuses nothing.
pub type Warning = Refusal;

/// Short for a result that may be one refusal.
pub type Result<T> = std::result::Result<T, Refusal>;

macro_rules! codes {
    ($($(#[$doc:meta])* $variant:ident = $text:literal,)*) => {
        /// The codes of refusals (section 9) and warnings (section 10).
        #[non_exhaustive]
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Code {
            $($(#[$doc])* #[doc = concat!("`", $text, "`")] $variant,)*
        }
        impl Code {
            /// Every code.
            pub const ALL: &'static [Code] = &[$(Code::$variant,)*];
            /// The code as it is printed.
            pub fn name(self) -> &'static str {
                match self { $(Code::$variant => $text,)* }
            }
        }
    };
}

codes! {
    Syntax = "syntax",
    LowercaseConstant = "lowercase-constant",
    LowercaseTensor = "lowercase-tensor",
    UnknownFunction = "unknown-function",
    FunctionArity = "function-arity",
    UnknownDirective = "unknown-directive",
    BadArgument = "bad-argument",
    UnknownType = "unknown-type",
    BadProbability = "bad-probability",
    TypeConflict = "type-conflict",
    Arity = "arity",
    MixedStyle = "mixed-style",
    MixedAggregators = "mixed-aggregators",
    RaggedArray = "ragged-array",
    ArrayRank = "array-rank",
    BadAxis = "bad-axis",
    DivisorIndex = "divisor-index",
    VirtualRead = "virtual-read",
    SizeConflict = "size-conflict",
    OutOfDomain = "out-of-domain",
    MixedDomain = "mixed-domain",
    UnboundIndex = "unbound-index",
    UnknownSize = "unknown-size",
    NotAConstant = "not-a-constant",
    SymbolAsNumber = "symbol-as-number",
    SelfReference = "self-reference",
    NotStratified = "not-stratified",
    UnboundedIndex = "unbounded-index",
    Divergence = "divergence",
    MissingData = "missing-data",
    NotScalar = "not-scalar",
    NothingToLearn = "nothing-to-learn",
    NotAModel = "not-a-model",
    UnknownEvidence = "unknown-evidence",
    ZeroEvidence = "zero-evidence",
    NotCertified = "not-certified",
    Overflow = "overflow",
    Budget = "budget",
    TooLarge = "too-large",
    FileNotFound = "file-not-found",
    FileFormat = "file-format",
    IncludeCycle = "include-cycle",
    NotYet = "not-yet",
    /// Warning:
    Scope = "scope",
    /// Warning:
    Broadcast = "broadcast",
    /// Warning:
    MissingDot = "missing-dot",
    /// Warning:
    UnusedDot = "unused-dot",
    /// Warning:
    BooleanTruncation = "boolean-truncation",
    /// Warning:
    EmptyRelation = "empty-relation",
    /// Warning:
    ImplicitParameter = "implicit-parameter",
    /// Warning:
    DuplicateFact = "duplicate-fact",
    /// Warning:
    DependentParents = "dependent-parents",
    /// Warning:
    DenseActivation = "dense-activation",
    /// Warning:
    ZeroGradient = "zero-gradient",
    /// Warning:
    LetterCase = "letter-case",
    /// Warning:
    NonFinite = "non-finite",
}

impl Code {
    /// Whether it is a code of section 10, which refuses nothing.
    pub fn is_warning(self) -> bool {
        self >= Code::Scope
    }
}

/// Lines and columns of a text, both from 1, columns in characters.
///
/// A line `#line 7 "gcn.tl"` says that the next one is line 7 of the file `gcn.tl`, as [`crate::include`] leaves it where a
/// file was included; `#line 7` that it is line 7 of the program itself.
#[derive(Debug, Clone)]
pub struct Places<'a> {
    text: &'a str,
    /// Byte offset of the start of every line.
    lines: Vec<usize>,
    /// How many characters begin before every [`BLOCK`]th byte: lines may be megabytes long.
    characters: Vec<usize>,
    /// The lines of other files, in order.
    sections: Vec<Section<'a>>,
}

/// From a line on the text is that of a file.
#[derive(Debug, Clone, Copy)]
struct Section<'a> {
    /// The number of its first line in the whole text, from 1.
    row: usize,
    /// The number of that line in its file.
    first: usize,
    /// The file; `None`: the program itself.
    file: Option<&'a str>,
}

/// The bytes that are counted at most to find a column, twice.
const BLOCK: usize = 1024;

/// How many characters begin in a piece of UTF-8.
fn characters(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| **byte & 0xc0 != 0x80).count()
}

/// The number and the file of `#line 7 "gcn.tl"`.
fn marker(line: &str) -> Option<(usize, Option<&str>)> {
    let rest = line.strip_prefix("#line ")?.trim_end();
    let (number, file) = match rest.split_once(' ') {
        Some((number, file)) => (number, Some(file.strip_prefix('"')?.strip_suffix('"')?)),
        None => (rest, None),
    };
    Some((number.parse().ok()?, file))
}

impl<'a> Places<'a> {
    /// Indexes the line starts of `text`.
    pub fn new(text: &'a str) -> Places<'a> {
        let starts = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1);
        let lines: Vec<usize> = std::iter::once(0).chain(starts).collect();
        let counts = text.as_bytes().chunks(BLOCK).scan(0, |sum, block| {
            *sum += characters(block);
            Some(*sum)
        });
        let characters = std::iter::once(0).chain(counts).collect();
        let mut places = Places { text, lines, characters, sections: Vec::new() };
        if text.contains("#line ") {
            let found = (1..=places.lines.len()).filter_map(|row| {
                let (first, file) = marker(places.line(row))?;
                Some(Section { row: row + 1, first, file })
            });
            places.sections = found.collect();
        }
        places
    }

    /// How many characters begin before a byte.
    fn characters_before(&self, offset: usize) -> usize {
        let block = offset / BLOCK;
        let rest = self.text.as_bytes().get(block * BLOCK..offset).unwrap_or(&[]);
        self.characters.get(block).copied().unwrap_or(0) + characters(rest)
    }

    /// The line of a byte offset in the whole text; an offset behind the text is its end.
    pub fn row(&self, offset: usize) -> usize {
        let offset = offset.min(self.text.len());
        self.lines.partition_point(|start| *start <= offset).max(1)
    }

    /// The file that a row belongs to, but for the program itself, and the row's number there.
    pub fn numbered(&self, row: usize) -> (Option<&'a str>, usize) {
        let behind = self.sections.partition_point(|section| section.row <= row);
        let section = behind.checked_sub(1).and_then(|at| self.sections.get(at));
        section.map_or((None, row), |section| (section.file, section.first + (row - section.row)))
    }

    /// The included file in which a byte offset lies.
    pub fn file(&self, offset: usize) -> Option<&'a str> {
        self.numbered(self.row(offset)).0
    }

    /// Line and column of a byte offset in its file; an offset behind the text is its end.
    pub fn of(&self, offset: usize) -> (usize, usize) {
        let offset = offset.min(self.text.len());
        let row = self.row(offset);
        let start = self.lines.get(row - 1).copied().unwrap_or(0);
        (self.numbered(row).1, self.characters_before(offset) - self.characters_before(start) + 1)
    }

    /// The line of a byte offset as people read it: `7`, or `gcn.tl:7` in an included file.
    pub fn line_of(&self, offset: usize) -> String {
        match self.numbered(self.row(offset)) {
            (None, line) => line.to_string(),
            (Some(file), line) => format!("{file}:{line}"),
        }
    }

    /// The text of a row (from 1), without its end.
    pub fn line(&self, row: usize) -> &'a str {
        let start = self.lines.get(row.saturating_sub(1)).copied().unwrap_or(self.text.len());
        let end = self.lines.get(row).copied().unwrap_or(self.text.len());
        self.text.get(start..end).unwrap_or("").trim_end_matches(['\n', '\r'])
    }
}
