//! Indices as digits: big-endian, base 625, shortest form (F3, F4).
//!
//! `push_index` writes; `following` is the one rule of reading, by which digit after digit is taken up;
//! [`read_number`] and [`read_digits`] read what people type.

use crate::error::{Kind, Refusal, Stage};
use crate::input::{Mode, pieces};
use crate::symbol::{BASE, Numeral, SymbolId};

/// The most digits that an index has: 625⁷ exceeds 2⁶⁴.
pub const MAX_DIGITS: u32 = 7;

/// The base as a value of indices.
pub(crate) const BASE_U64: u64 = BASE as u64;

/// The number of digits of an index.
pub(crate) fn digit_count(index: u64) -> u32 {
    if index < BASE_U64 { 1 } else { 1 + index.ilog(BASE_U64) }
}

/// Writes an index.
pub(crate) fn push_index(out: &mut Vec<SymbolId>, index: u64) {
    if index >= BASE_U64 {
        push_index(out, index / BASE_U64);
    }
    out.push(Numeral::last_of(index).symbol());
}

/// The digits of an index.
pub fn digits(index: u64) -> Vec<u16> {
    let mut out = Vec::new();
    push_index(&mut out, index);
    out.into_iter().map(SymbolId::get).collect()
}

/// How many numerals, from 0 on, may follow digits of this value in an index of at most `most`.
pub(crate) fn following(value: u64, most: u64) -> u64 {
    match (value, value.checked_mul(BASE_U64)) {
        (1.., Some(shifted)) => {
            most.checked_sub(shifted).map_or(0, |room| room.saturating_add(1).min(BASE_U64))
        }
        _ => 0,
    }
}

/// The value after one more digit.
pub(crate) fn shifted(value: u64, digit: Numeral) -> Option<u64> {
    value.checked_mul(BASE_U64)?.checked_add(u64::from(digit.get()))
}

/// A decimal number.
///
/// # Errors
/// `BadNumber` if it is none, `IndexOverflow` above 2⁶⁴ − 1.
pub fn read_number(input: &str) -> Result<u64, Refusal> {
    let number = input.trim();
    if number.is_empty() || !number.bytes().all(|b| b.is_ascii_digit()) {
        return Err(
            Refusal::new(Kind::BadNumber, format!("{number:?} is not a decimal number")).found(number)
        );
    }
    number.parse().map_err(|_| Refusal::index_overflow().stage(Stage::Codec).found(number))
}

/// Digits, decimal numbers separated by blanks or commas, as an index. The leftmost mistake is reported.
///
/// # Errors
/// `EmptyIndex`, `BadNumber`, `DigitOutOfRange`, `LeadingZero` (strict), `IndexOverflow`.
pub fn read_digits(input: &str, mode: Mode) -> Result<u64, Refusal> {
    let mut value = None;
    for (at, piece) in pieces(input).enumerate() {
        let refuse = |refusal: Refusal| Err(refusal.at(at).found(piece));
        if !piece.bytes().all(|b| b.is_ascii_digit()) {
            return refuse(Refusal::new(Kind::BadNumber, format!("{piece:?} is not a decimal number")));
        }
        let Some(digit) = piece.parse().ok().and_then(Numeral::new) else {
            return refuse(
                Refusal::new(Kind::DigitOutOfRange, format!("{piece} is not a digit"))
                    .help("digits are 0 to 624"),
            );
        };
        if value == Some(0) && mode == Mode::Strict {
            let refusal = Refusal::leading_zero().stage(Stage::Codec);
            return refuse(refusal.help("leave the zero out, or read with --lenient"));
        }
        match shifted(value.unwrap_or(0), digit) {
            Some(longer) => value = Some(longer),
            None => return refuse(Refusal::index_overflow().stage(Stage::Codec)),
        }
    }
    value.ok_or_else(|| Refusal::new(Kind::EmptyIndex, "an index has at least one digit"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_and_back() {
        let mut stream = seeded::Family::named("codec").stream(0);
        let edges = [0, 1, 624, 625, 626, 390_624, 390_625, u64::MAX - 1, u64::MAX];
        for index in edges.into_iter().chain((0..10_000).map(|i| stream.next_u64() >> (i % 64))) {
            let digits = digits(index);
            assert_eq!(digits.len() as u32, digit_count(index));
            let text = digits.iter().map(u16::to_string).collect::<Vec<_>>().join(" ");
            assert_eq!(read_digits(&text, Mode::Strict), Ok(index));
            assert_eq!(read_digits(&format!("0,0 {text}"), Mode::Lenient), Ok(index));
        }
    }

    #[test]
    fn the_digits_that_may_follow_are_those_that_fit() {
        let fits = |value: u64, digit: u64, most: u64| {
            value > 0 && u128::from(value) * 625 + u128::from(digit) <= u128::from(most)
        };
        for most in [0, 1, 624, 625, 700, u64::MAX - 1, u64::MAX] {
            for value in [0, 1, 2, 624, 625, most / 625, most / 625 + 1, most] {
                let count = (0..625).take_while(|&digit| fits(value, digit, most)).count() as u64;
                assert_eq!(following(value, most), count, "{value} {most}");
            }
        }
    }

    #[test]
    fn refusals_of_digits() {
        let kind = |text: &str| read_digits(text, Mode::Strict).map_err(|r| (r.kind, r.token));
        assert_eq!(kind(""), Err((Kind::EmptyIndex, None)));
        assert_eq!(kind("1 625"), Err((Kind::DigitOutOfRange, Some(1))));
        assert_eq!(kind("1 99999999999999999999"), Err((Kind::DigitOutOfRange, Some(1))));
        assert_eq!(kind("1 -1"), Err((Kind::BadNumber, Some(1))));
        assert_eq!(kind("0 0"), Err((Kind::LeadingZero, Some(1))));
        assert_eq!(kind("624 624 624 624 624 624 624"), Err((Kind::IndexOverflow, Some(6))));
        assert_eq!(read_number("18446744073709551616").map_err(|r| r.kind), Err(Kind::IndexOverflow));
        assert_eq!(read_number("+1").map_err(|r| r.kind), Err(Kind::BadNumber));
    }
}
