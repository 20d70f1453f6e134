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
/// A relation that is not read back from its words: of another shape, with values, with positions that are not 0, 1, 2, …, or
/// with words that are none.
pub fn write(tuples: &Tuples, symbols: &Symbols, out: &mut Vec<u8>) -> Result<(), Fault> {
    let mut words = Vec::with_capacity(tuples.tuples.len());
    if tuples.values.iter().any(|value| *value != 1.0) {
        return Err(Fault::Whole("a text holds words, and no values".to_owned()));
    }
    for (at, tuple) in (0..).zip(&tuples.tuples) {
        let word = match tuple.as_slice() {
            [Const::Int(position), _] if *position != at => {
                let what =
                    format!("a text has its words at 0, 1, 2, …: here is {position} where {at} was expected");
                return Err(Fault::Whole(what));
            }
            [Const::Int(_), Const::Symbol(word)] => {
                let word = symbols.name(*word);
                if word.is_empty()
                    || word.contains(|letter: char| letter.is_whitespace() || letter == '\u{feff}')
                {
                    return Err(Fault::Whole(format!("{word:?} is not one word of a text")));
                }
                word.to_owned()
            }
            [Const::Int(_), Const::Int(number)] => {
                let what = format!("the integer {number} would be read back as the word \"{number}\"");
                return Err(Fault::Whole(what));
            }
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
