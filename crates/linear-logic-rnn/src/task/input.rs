//! The text of an input sequence: digits, integers between spaces or commas, letters of a group.

use super::Symbols;
use crate::error::{Kind, Refusal, Result};

/// The tokens of a text. Without a space or comma every character is a token.
pub(super) fn tokens(text: &str, symbols: Symbols) -> Result<Vec<u32>> {
    let separates = |c: char| c == ',' || c.is_whitespace();
    let text = text.trim();
    if text.contains(separates) {
        text.split(separates).filter(|piece| !piece.is_empty()).map(|piece| token(piece, symbols)).collect()
    } else {
        text.chars().map(|c| token(c.encode_utf8(&mut [0; 4]), symbols)).collect()
    }
}

fn token(piece: &str, symbols: Symbols) -> Result<u32> {
    match (symbols, piece) {
        (Symbols::Letters, "s") => return Ok(0),
        (Symbols::Letters, "r") => return Ok(1),
        _ => {}
    }
    let digits = piece.chars().all(|c| c.is_ascii_digit());
    piece.parse().ok().filter(|_| digits).ok_or_else(|| {
        let also = if symbols == Symbols::Letters { ", or of the letters s and r" } else { "" };
        let message = format!(
            "`{piece}` is no symbol; an input is a text of digits, of integers between spaces or commas{also}"
        );
        Refusal::new(Kind::Symbol, message)
    })
}
