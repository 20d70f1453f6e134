//! Files of other programs to records.
//!
//! A record that cannot be read is refused and the next one is tried; only a file that is no file of its
//! format ends the import.

use std::io::BufRead;

use serde_json::Value;

use super::format::{Format, bad, no_parquet};
use super::public;
use super::vocabulary::Vocabulary;
use crate::ast::Text;
use crate::error::Refusal;
use crate::read::{Mode, Names, Source, Symbols, parse, parse_symbols};
use crate::record::Record;
use crate::symbol::SymbolId;
use crate::tptp;

/// What became of the records of a file.
#[derive(Debug, Default)]
pub struct Imported {
    /// Records found.
    pub read: u64,
    /// Records handed on.
    pub written: u64,
    /// Refused records, numbered from 0.
    pub refused: Vec<(u64, Refusal)>,
    /// The text of a file that is one record, with the indices given to its names.
    pub text: Option<(Text, Names)>,
    /// The file, if refusals point into its bytes.
    pub source: String,
}

/// Reads a file and hands its records to `write`.
///
/// # Errors
/// Only those of reader and writer, and a format that this build lacks; refused records are part of the
/// answer.
pub fn import(
    format: Format,
    mut file: impl BufRead,
    vocabulary: &Vocabulary,
    write: &mut dyn FnMut(&Record) -> Result<(), Refusal>,
) -> Result<Imported, Refusal> {
    let mut import = Import { done: Imported::default(), write };
    match format {
        Format::Jsonl => import.lines(file)?,
        Format::PublicJson => {
            for tokens in public::formulas(file, vocabulary)? {
                import.record(tokens.and_then(lenient).map(|text| (None, text, None)))?;
            }
        }
        Format::Tptp => {
            let mut bytes = vec![];
            file.read_to_end(&mut bytes)?;
            import.problem(String::from_utf8_lossy(&bytes).into_owned())?;
        }
        Format::Parquet => return Err(no_parquet()),
    }
    Ok(import.done)
}

/// What a record says of a formula: its own number, the tree, −ln p.
type Found = (Option<u64>, Text, Option<f64>);

struct Import<'a> {
    done: Imported,
    write: &'a mut dyn FnMut(&Record) -> Result<(), Refusal>,
}

impl Import<'_> {
    fn record(&mut self, found: Result<Found, Refusal>) -> Result<(), Refusal> {
        let number = self.done.read;
        self.done.read += 1;
        match found {
            Ok((item, text, nll)) => {
                (self.write)(&Record { item: item.unwrap_or(number), text, nll })?;
                self.done.written += 1;
            }
            Err(refusal) => self.done.refused.push((number, refusal)),
        }
        Ok(())
    }

    fn lines(&mut self, mut file: impl BufRead) -> Result<(), Refusal> {
        let mut line = vec![];
        while file.read_until(b'\n', &mut line)? > 0 {
            if !line.trim_ascii().is_empty() {
                self.record(object(&line))?;
            }
            line.clear();
        }
        Ok(())
    }

    fn problem(&mut self, source: String) -> Result<(), Refusal> {
        let found = tptp::read(&source);
        self.done.text = found.as_ref().ok().cloned();
        self.done.source = source;
        self.record(found.map(|(text, _)| (None, text, None)))
    }
}

/// A line of `jsonl`, read by its tokens or else by its text.
fn object(line: &[u8]) -> Result<Found, Refusal> {
    let object: Value = serde_json::from_slice(line).map_err(|error| bad(&format!("no JSON: {error}")))?;
    let item = object.get("item").and_then(Value::as_u64);
    if let Some(tokens) = object.get("tokens").filter(|tokens| !tokens.is_null()) {
        let tokens = tokens.as_array().ok_or_else(|| bad("`tokens` is not a list"))?;
        let ids: Option<Vec<String>> =
            tokens.iter().map(|t| t.as_number().map(ToString::to_string)).collect();
        let ids = ids.ok_or_else(|| bad("`tokens` holds something that is not a number"))?;
        let parsed = parse(&ids.join(" "), Source::Tokens, Mode::Lenient)?;
        // The probability is that of the tokens as given.
        let nll = object.get("nll").and_then(Value::as_f64).filter(|_| parsed.given.symbols == parsed.tokens);
        return Ok((item, parsed.text, nll));
    }
    let text = object.get("text").and_then(Value::as_str);
    let text = text.ok_or_else(|| bad("the record has neither `tokens` nor `text`"))?;
    Ok((item, parse(text, Source::Text, Mode::Lenient)?.text, None))
}

fn lenient(symbols: Vec<SymbolId>) -> Result<Text, Refusal> {
    Ok(parse_symbols(Symbols { symbols, ..Symbols::default() }, Mode::Lenient)?.text)
}
