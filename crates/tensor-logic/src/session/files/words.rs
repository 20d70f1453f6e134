//! `.txt`: a relation of positions, from 0, and the words between white space.

use crate::engine::Tuples;
use crate::files::content::Fault;
use crate::program::Facts;
use crate::value::{Const, Symbols};

/// The words of a text.
///
/// # Errors
/// Bytes that are no UTF-8.
pub fn read(bytes: &[u8], symbols: &mut Symbols) -> Result<Facts, Fault> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let before = bytes.get(..error.valid_up_to()).unwrap_or(bytes);
        let line = 1 + before.iter().filter(|byte| **byte == b'\n').count() as u64;
        Fault::Line { line, what: "this is no UTF-8".to_owned() }
    })?;
    let mut facts = Facts { arity: 2, ..Facts::default() };
    let words = text.trim_start_matches('\u{feff}').split_whitespace();
    for (position, word) in (0..).zip(words) {
        facts.constants.extend([Const::Int(position), Const::Symbol(symbols.intern(word))]);
        facts.count += 1;
    }
    Ok(facts)
}

/// The words of a relation of positions and words, joined by blanks in order of position.
///
/// # Errors
/// A relation of another shape.
pub fn write(tuples: &Tuples, symbols: &Symbols, out: &mut Vec<u8>) -> Result<(), Fault> {
    let mut words = Vec::with_capacity(tuples.tuples.len());
    for tuple in &tuples.tuples {
        let word = match tuple.as_slice() {
            [Const::Int(_), Const::Symbol(word)] => symbols.name(*word).to_owned(),
            [Const::Int(_), Const::Int(number)] => number.to_string(),
            _ => {
                let what = "a text holds a relation of positions and words only".to_owned();
                return Err(Fault::Whole(what));
            }
        };
        words.push(word);
    }
    out.extend_from_slice(words.join(" ").as_bytes());
    out.push(b'\n');
    Ok(())
}
