//! Cells: an integer if it reads as one in 64 bits, else a word.

use crate::value::{Const, Symbols};

/// The constant of a cell.
pub(super) fn constant(cell: &str, symbols: &mut Symbols) -> Const {
    match read_as_integer(cell) {
        Some(value) => Const::Int(value),
        None => Const::Symbol(symbols.intern(cell)),
    }
}

/// Whether a cell is an integer.
pub(super) fn is_integer(cell: &str) -> bool {
    read_as_integer(cell).is_some()
}

fn read_as_integer(cell: &str) -> Option<i64> {
    integer(cell.as_bytes()).or_else(|| cell.trim().parse().ok())
}

/// Up to 18 digits with a sign or none: the common case, without validation as text.
pub(super) fn integer(cell: &[u8]) -> Option<i64> {
    let (negative, digits) = match cell {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    if digits.is_empty() || digits.len() > 18 {
        return None;
    }
    let mut value = 0_i64;
    for digit in digits {
        if !digit.is_ascii_digit() {
            return None;
        }
        value = value * 10 + i64::from(digit - b'0');
    }
    Some(if negative { -value } else { value })
}
