//! A refusal is an answer: kind, stage, place, what was found, what could stand there, and what would mend it (F62, F63).

use serde::Serialize;
use serde::ser::SerializeStruct;

macro_rules! kinds {
    ($($stage:ident: $($kind:ident),+;)*) => {
        /// What is wrong. The name is part of the interface.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
        #[expect(missing_docs, reason = "the names say it; the reference lists them by stage")]
        #[non_exhaustive]
        pub enum Kind { $($($kind),+),* }

        impl Kind {
            /// Every kind, in the order of the table of refusals.
            pub const ALL: &'static [Self] = &[$($(Self::$kind),+),*];

            /// The stage that refuses so, if no caller says otherwise.
            pub fn stage(self) -> Stage {
                match self { $($(Self::$kind)|+ => Stage::$stage,)* }
            }
        }
    };
}

kinds! {
    Lex: UnknownCharacter, UnknownId;
    Parse: IndexOverflow, LeadingZero, UnexpectedSymbol, UnexpectedEnd, TooDeep;
    Codec: EmptyIndex, DigitOutOfRange, BadNumber;
    Check: ArityMismatch, NotInSignature, FreeVariable, VacuousBinder, ShadowedBinder, DuplicateParameter,
        FreeInDefinition, CircularDefinition, SortMismatch, NotAFormula;
    Law: OffLaw, RankOutOfRange, EmptySize;
    Config: UnknownKey, BadValue;
    Data: Exists, TooLong, BadManifest, DigestMismatch, Truncated;
    Io: NotFound, Io;
    Glyph: UnknownGlyph, BadPicture;
    Import: TptpUnsupported, UnmappedSymbol, BadRecord;
}

/// How many NOT, quantifier, binary, parenthesis and FUNC nodes may enclose a node (F8).
pub(crate) const MAX_DEPTH: usize = 1024;

/// Where in the way from text to answer an input was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names of the stages")]
#[non_exhaustive]
pub enum Stage {
    Lex,
    Parse,
    Codec,
    Check,
    Law,
    Config,
    Data,
    Io,
    Glyph,
    Import,
}

/// A refusal. Serialises to the `error` object of every `--json` answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{kind:?}: {message}")]
#[non_exhaustive]
pub struct Refusal {
    /// What is wrong.
    pub kind: Kind,
    /// Who refused.
    pub stage: Stage,
    /// Position of the offending token, counted from 0 as given.
    pub token: Option<usize>,
    /// Byte range in the source text.
    pub span: Option<(usize, usize)>,
    /// The label found there, or `end`.
    pub found: Option<String>,
    /// The labels that could stand there, in id order; numerals as `0..k`. `null` where it has no meaning.
    pub expected: Option<Vec<String>>,
    /// One sentence.
    pub message: String,
    /// What would mend it.
    pub help: Option<String>,
}

impl Serialize for Refusal {
    /// The fields in the order above; the message names the kind, as people see it.
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_struct("Refusal", 8)?;
        object.serialize_field("kind", &self.kind)?;
        object.serialize_field("stage", &self.stage)?;
        object.serialize_field("token", &self.token)?;
        object.serialize_field("span", &self.span)?;
        object.serialize_field("found", &self.found)?;
        object.serialize_field("expected", &self.expected)?;
        object.serialize_field("message", &self.to_string())?;
        object.serialize_field("help", &self.help)?;
        object.end()
    }
}

impl Refusal {
    /// A refusal by the kind's usual stage, without a place.
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self {
            kind,
            stage: kind.stage(),
            token: None,
            span: None,
            found: None,
            expected: None,
            message: message.into(),
            help: None,
        }
    }

    /// An index that starts with digit 0.
    pub(crate) fn leading_zero() -> Self {
        Self::new(Kind::LeadingZero, "an index does not start with digit 0")
    }

    /// An index above 2⁶⁴ − 1.
    pub(crate) fn index_overflow() -> Self {
        Self::new(Kind::IndexOverflow, format!("an index is at most {}", u64::MAX))
    }

    /// Something too deeply nested, which begins with `found`.
    pub(crate) fn too_deep(found: impl std::fmt::Display) -> Self {
        Self::new(Kind::TooDeep, format!("more than {MAX_DEPTH} nodes enclose what {found} begins"))
    }

    /// By another stage.
    #[must_use]
    pub fn stage(mut self, stage: Stage) -> Self {
        self.stage = stage;
        self
    }

    /// At this token.
    #[must_use]
    pub fn at(mut self, token: usize) -> Self {
        self.token = Some(token);
        self
    }

    /// At these bytes.
    #[must_use]
    pub fn span(mut self, start: usize, end: usize) -> Self {
        self.span = Some((start, end));
        self
    }

    /// With what was found.
    #[must_use]
    pub fn found(mut self, found: impl Into<String>) -> Self {
        self.found = Some(found.into());
        self
    }

    /// With what could stand there.
    #[must_use]
    pub fn expected(mut self, expected: Vec<String>) -> Self {
        self.expected = Some(expected);
        self
    }

    /// With what would mend it.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}
