//! Inputs of a command: arguments or lines of standard input, and how they are read.

use std::io::Read;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use fol::error::{Kind, Refusal};
use fol::read::{Mode, Parsed, Source, Symbols};

use crate::answer::Item;

/// Wrong usage that clap cannot see.
pub(crate) fn usage(kind: clap::error::ErrorKind, message: &str) -> anyhow::Error {
    clap::Error::raw(kind, format!("{message}\n")).into()
}

/// One of some named values, as clap lists and completes them.
pub(crate) fn one_of<T: Copy + Send + Sync + 'static>(
    values: &'static [(&'static str, T)],
) -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(values.iter().map(|value| value.0)).try_map(move |name| {
        let found = values.iter().find(|value| value.0 == name);
        found.map(|value| value.1).ok_or("it is none of the values")
    })
}

/// Formulas as people write them; decimal ids, separated by blanks or commas; labels, separated by blanks.
const SOURCES: &[(&str, Source)] =
    &[("text", Source::Text), ("tokens", Source::Tokens), ("words", Source::Words)];

/// The inputs themselves.
#[derive(Debug, Args)]
pub(crate) struct Inputs {
    /// Inputs; `-` reads them from standard input, one a line.
    #[arg(value_name = "INPUT", required = true, allow_negative_numbers = true)]
    inputs: Vec<String>,
}

/// A text of formulas and statements, or a statement of an inference task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Statements {
    Plain,
    Tasks,
}

/// Which statements inputs are.
const STATEMENTS: &[(&str, Statements)] = &[("plain", Statements::Plain), ("tasks", Statements::Tasks)];

/// The grammar of inputs.
#[derive(Debug, Args)]
pub(crate) struct Grammar {
    /// Which statements are read: those of the plain grammar, or those of inference tasks.
    #[arg(long, value_parser = one_of(STATEMENTS), default_value = "plain")]
    grammar: Statements,
}

impl Grammar {
    /// Whether inputs are inference tasks.
    pub(crate) fn is_tasks(&self) -> bool {
        self.grammar == Statements::Tasks
    }
}

/// How inputs are read.
#[derive(Debug, Args)]
pub(crate) struct Reading {
    /// What an input is [default: text, for `decode` tokens].
    #[arg(long, value_parser = one_of(SOURCES))]
    from: Option<Source>,
    /// Read canonical form only (the default for tokens and words).
    #[arg(long, conflicts_with = "lenient")]
    strict: bool,
    /// Read with precedence, redundant parentheses and leading zeros (the default for text).
    #[arg(long)]
    lenient: bool,
}

impl Inputs {
    /// The inputs, with the lines of standard input in place of `-`.
    pub(crate) fn all(&self) -> anyhow::Result<Vec<String>> {
        Self::of(&self.inputs)
    }

    /// These inputs, with the lines of standard input in place of `-`.
    pub(crate) fn of(inputs: &[String]) -> anyhow::Result<Vec<String>> {
        let mut all = Vec::new();
        for input in inputs {
            if input == "-" {
                let mut bytes = Vec::new();
                std::io::stdin().read_to_end(&mut bytes)?;
                let text = String::from_utf8_lossy(&bytes);
                all.extend(text.lines().filter(|line| !line.is_empty()).map(str::to_owned));
            } else {
                all.push(input.clone());
            }
        }
        Ok(all)
    }

    /// One item for each input.
    pub(crate) fn each(&self, answer: impl Fn(&str) -> Result<Item, Refusal>) -> anyhow::Result<Vec<Item>> {
        let item = |input: &String| answer(input).unwrap_or_else(|refusal| Item::refused(input, refusal));
        Ok(self.all()?.iter().map(item).collect())
    }

    /// One item for each input; a refusal is marked as `reading` says.
    pub(crate) fn each_marked(
        &self,
        reading: &Reading,
        answer: impl Fn(&str) -> Result<Item, Refusal>,
    ) -> anyhow::Result<Vec<Item>> {
        self.each(|input| Ok(answer(input).unwrap_or_else(|refusal| reading.refused(input, refusal))))
    }

    /// One item for each input that is read as `reading` says.
    pub(crate) fn each_read(
        &self,
        reading: &Reading,
        answer: impl Fn(&str, &Parsed) -> Result<Item, Refusal>,
    ) -> anyhow::Result<Vec<Item>> {
        self.each_marked(reading, |input| answer(input, &reading.parse(input)?))
    }
}

impl Inputs {
    /// One item for each input that is read as an inference task.
    pub(crate) fn each_task(
        &self,
        reading: &Reading,
        answer: impl Fn(&str, &fol::task::Parsed) -> Result<Item, Refusal>,
    ) -> anyhow::Result<Vec<Item>> {
        self.each_marked(reading, |input| answer(input, &reading.task(input)?))
    }
}

impl Reading {
    /// The same, with another default source.
    pub(crate) fn or_from(self, default: Source) -> Self {
        Self { from: self.from.or(Some(default)), ..self }
    }

    /// What an input is.
    pub(crate) fn source(&self) -> Source {
        self.from.unwrap_or(Source::Text)
    }

    /// How much freedom an input has.
    pub(crate) fn mode(&self) -> Mode {
        match (self.strict, self.lenient, self.source()) {
            (true, _, _) => Mode::Strict,
            (_, true, _) | (_, _, Source::Text) => Mode::Lenient,
            _ => Mode::Strict,
        }
    }

    /// Reads a whole input.
    pub(crate) fn parse(&self, input: &str) -> Result<Parsed, Refusal> {
        fol::read::parse(input, self.source(), self.mode())
    }

    /// Reads a whole input as an inference task.
    pub(crate) fn task(&self, input: &str) -> Result<fol::task::Parsed, Refusal> {
        fol::task::read(input, self.source(), self.mode())
    }

    /// Cuts a prefix into symbols.
    pub(crate) fn symbols(&self, input: &str) -> Result<Symbols, Refusal> {
        fol::read::symbols(input, self.source(), self.mode())
    }

    /// A refused input, marked for people also where a refusal has no bytes of its own.
    pub(crate) fn refused(&self, input: &str, refusal: Refusal) -> Item {
        let end = Some((input.len(), input.len()));
        let marker = match (self.source(), refusal.token) {
            (_, None) => None,
            (Source::Text, _) => (refusal.kind == Kind::UnexpectedEnd).then_some(end).flatten(),
            (_, Some(at)) => piece(input, at).or(end),
        };
        Item::refused(input, refusal).marking(marker)
    }
}

/// The bytes of a piece of a list.
fn piece(input: &str, at: usize) -> Option<(usize, usize)> {
    let mut pieces = input.split(|c: char| c == ',' || c.is_whitespace()).filter(|piece| !piece.is_empty());
    let piece = pieces.nth(at)?;
    let start = piece.as_ptr() as usize - input.as_ptr() as usize;
    Some((start, start + piece.len()))
}
