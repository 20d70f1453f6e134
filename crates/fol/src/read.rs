//! From an input to a tree: cut into symbols, then read by the grammar.
//!
//! Enter at [`parse`] (a whole input) or [`symbols`] (only the cut, also for prefixes). An input is a text,
//! a list of ids or a list of labels; it is read strictly (canonical form only) or leniently (precedence,
//! redundant parentheses, leading zeros). Both readers are one machine in `grammar`, which never
//! recurses, so no input overflows the stack.

mod align;
mod grammar;
mod lex;
mod names;
pub(crate) mod unused;

use crate::ast::{Task, Term, Text};
use crate::built::{Make, Trees};
use crate::encode::encode;
use crate::error::{Kind, Refusal, Stage};
use crate::input::pieces;
pub use crate::input::{Mode, Names, Source, Symbols};
use crate::symbol::SymbolId;

/// A tree with the places that it came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parsed {
    /// The tree.
    pub text: Text,
    /// Its canonical tokens, without `<bos>` and `<eos>`.
    pub tokens: Vec<SymbolId>,
    /// For each canonical token its position in the input. A parenthesis that the input left out has the
    /// position of a neighbour.
    pub positions: Vec<usize>,
    /// The input, cut into symbols.
    pub given: Symbols,
}

impl Parsed {
    /// Moves a refusal at a canonical token to its position and bytes in the input, and says what stands there;
    /// after the last token the input ends.
    pub fn locate(&self, refusal: Refusal) -> Refusal {
        let Some(canonical) = refusal.token else { return refusal };
        let symbols = &self.given.symbols;
        let end = || symbols.iter().position(|&s| s == SymbolId::EOS).unwrap_or(symbols.len());
        self.given.locate(refusal, self.positions.get(canonical).copied().unwrap_or_else(end))
    }
}

/// Cuts an input into symbols. The input may be a prefix: nothing is parsed.
///
/// # Errors
/// The kinds of stage `lex`.
pub fn symbols(input: &str, source: Source, mode: Mode) -> Result<Symbols, Refusal> {
    let known = |(at, piece): (usize, &str), symbol: Option<SymbolId>| {
        symbol.ok_or_else(|| {
            Refusal::new(Kind::UnknownId, format!("{piece:?} is no symbol")).at(at).found(piece)
        })
    };
    let symbols: Result<Vec<_>, _> = match source {
        Source::Text => {
            let (lexemes, unknown) = lex::lexemes(input);
            let symbols = names::resolve(lexemes, mode, None)?;
            return unknown.map_or(Ok(symbols), Err);
        }
        Source::Tokens => {
            pieces(input).enumerate().map(|(at, piece)| known((at, piece), id(piece))).collect()
        }
        Source::Words => {
            let labels = input.split_whitespace().enumerate();
            labels.map(|(at, piece)| known((at, piece), SymbolId::from_label(piece))).collect()
        }
    };
    Ok(Symbols { symbols: symbols?, ..Symbols::default() })
}

fn id(piece: &str) -> Option<SymbolId> {
    let decimal = piece.bytes().all(|b| b.is_ascii_digit());
    decimal.then(|| piece.parse().ok()).flatten().and_then(SymbolId::new)
}

/// Reads a whole input.
///
/// # Errors
/// The kinds of the stages `lex` and `parse`.
pub fn parse(input: &str, source: Source, mode: Mode) -> Result<Parsed, Refusal> {
    parse_symbols(symbols(input, source, mode)?, mode)
}

/// Texts of one file: a name of a predicate, a function, a constant or a sort is the same in all of them.
///
/// Names get the smallest numbers that none of the texts writes, in order of first appearance, as in one text. Variables
/// have the numbers that they would have in their text alone.
#[derive(Debug, Default)]
pub struct Together {
    shared: names::Shared,
}

impl Together {
    /// To read these texts.
    pub fn of<'a>(texts: impl IntoIterator<Item = &'a str>) -> Self {
        let mut shared = names::Shared::default();
        texts.into_iter().for_each(|text| shared.take(&lex::lexemes(text).0));
        Self { shared }
    }

    /// Reads one of them whole.
    ///
    /// # Errors
    /// The kinds of the stages `lex` and `parse`.
    pub fn parse(&mut self, text: &str, mode: Mode) -> Result<Parsed, Refusal> {
        let (lexemes, unknown) = lex::lexemes(text);
        let symbols = names::resolve(lexemes, mode, Some(&mut self.shared))?;
        parse_symbols(unknown.map_or(Ok(symbols), Err)?, mode)
    }
}

/// Reads symbols that have been cut.
///
/// # Errors
/// The kinds of the stage `parse`.
pub(crate) fn parse_symbols(given: Symbols, mode: Mode) -> Result<Parsed, Refusal> {
    let text =
        grammar::text(&given.symbols, mode, &mut Trees).map_err(|refusal| with_span(refusal, &given))?;
    let tokens = encode(&text);
    let positions = align::positions(&tokens, &given.symbols);
    Ok(Parsed { text, tokens, positions, given })
}

/// Reads an input that is one term.
///
/// # Errors
/// The kinds of the stages `lex` and `parse`.
pub fn parse_term(input: &str, source: Source, mode: Mode) -> Result<Term, Refusal> {
    let given = symbols(input, source, mode)?;
    grammar::term(&given.symbols, mode).map_err(|refusal| with_span(refusal, &given))
}

/// Reads tokens strictly, with or without `<bos>` and `<eos>`.
///
/// # Errors
/// The kinds of the stage `parse`.
pub fn decode(tokens: &[SymbolId]) -> Result<Text, Refusal> {
    grammar::text(tokens, Mode::Strict, &mut Trees)
}

/// Reads tokens strictly, as [`decode`], and makes of them what is wanted instead of a tree.
pub(crate) fn decode_into<M: Make>(tokens: &[SymbolId], make: &mut M) -> Result<M::Of<Text>, Refusal> {
    grammar::text(tokens, Mode::Strict, make)
}

/// Reads symbols that have been cut by the grammar of tasks.
///
/// # Errors
/// The kinds of the stage `parse`.
pub(crate) fn task(given: &Symbols, mode: Mode) -> Result<Task, Refusal> {
    grammar::task::task(&given.symbols, mode).map_err(|refusal| with_span(refusal, given))
}

fn with_span(mut refusal: Refusal, given: &Symbols) -> Refusal {
    debug_assert_eq!(refusal.stage, Stage::Parse);
    refusal.span = refusal.token.and_then(|at| given.spans.get(at).copied());
    refusal
}
