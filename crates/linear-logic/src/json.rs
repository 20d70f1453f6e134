//! JSON as `--arg` and `--slot` need it: numbers keep their text, so that decimals are read exactly.

use std::collections::BTreeMap;

use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::{Signed, ToPrimitive, Zero};
use serde_json::value::RawValue;

use crate::error::{Kind, Refusal, Result};
use crate::formula::{Connective, Formula};
use crate::ring::{Fault, Number, Ring};

/// The deepest nesting of a JSON value.
const MAX_DEPTH: usize = 128;

/// The largest exponent of a decimal number, up and down.
const MAX_EXPONENT: i64 = 100_000;

/// A JSON value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Json {
    /// A number, as it is written.
    Number(String),
    /// A string.
    Text(String),
    /// An array.
    Array(Vec<Self>),
    /// An object.
    Object(BTreeMap<String, Self>),
    /// `true`
    True,
    /// `false` or `null`.
    Nothing,
}

/// The refusal of a value of `--arg` or `--slot`.
pub(crate) fn refuse(message: impl Into<String>) -> Refusal {
    Refusal::new(Kind::Argument, message)
}

impl Json {
    /// The value of a text.
    ///
    /// # Errors
    /// `argument`, if the text is not JSON.
    pub fn parse(text: &str) -> Result<Self> {
        Self::read(text, 0)
    }

    fn read(text: &str, depth: usize) -> Result<Self> {
        let broken = |error: serde_json::Error| refuse(format!("a value is not JSON: {error}"));
        if depth > MAX_DEPTH {
            return Err(refuse(format!("a value nests deeper than {MAX_DEPTH} levels")));
        }
        let text = text.trim_matches([' ', '\t', '\r', '\n']);
        Ok(match text.bytes().next() {
            Some(b'[') => {
                let items: Vec<&RawValue> = serde_json::from_str(text).map_err(broken)?;
                Self::Array(
                    items.into_iter().map(|item| Self::read(item.get(), depth + 1)).collect::<Result<_>>()?,
                )
            }
            Some(b'{') => {
                let items: BTreeMap<String, &RawValue> = serde_json::from_str(text).map_err(broken)?;
                let items =
                    items.into_iter().map(|(key, item)| Ok((key, Self::read(item.get(), depth + 1)?)));
                Self::Object(items.collect::<Result<_>>()?)
            }
            Some(b'"') => Self::Text(serde_json::from_str(text).map_err(broken)?),
            Some(b'-' | b'0'..=b'9') => {
                let number: &RawValue = serde_json::from_str(text).map_err(broken)?;
                Self::Number(number.get().to_owned())
            }
            _ => {
                let word: Option<bool> = serde_json::from_str(text).map_err(broken)?;
                if word == Some(true) { Self::True } else { Self::Nothing }
            }
        })
    }

    /// The value of a key, if this is an object with these keys and no others.
    pub(crate) fn only<const N: usize>(&self, keys: [&str; N]) -> Option<[&Self; N]> {
        let Self::Object(items) = self else { return None };
        if items.len() != N || keys.iter().any(|key| !items.contains_key(*key)) {
            return None;
        }
        Some(keys.map(|key| items.get(key).unwrap_or(&Self::Nothing)))
    }
}

/// The scalar that a value means in a ring: a number, `"p"`, `"p/q"`, or a name where there are variables.
///
/// # Errors
/// `argument`, `not-in-ring`, or what stands in the way of the number.
pub(crate) fn scalar<R: Ring>(ring: &R, json: &Json) -> Result<R::Element> {
    let outside = |fault: Fault, text: &str| match fault {
        Fault::NotInRing => Refusal::from(fault).found(text),
        _ => fault.into(),
    };
    match json {
        Json::Number(text) => ring.decimal(text, &decimal(text)?).map_err(|fault| outside(fault, text)),
        Json::Text(text) => {
            if let Some(value) = fraction(text) {
                let message = format!("`{text}` divides by 0");
                let value = value.ok_or_else(|| Refusal::new(Kind::NotInRing, message).found(text))?;
                return ring.fraction(&value).map_err(|fault| outside(fault, text));
            }
            let variable = if crate::lex::is_name(text) { ring.variable(text) } else { None };
            variable.ok_or_else(|| refuse(format!("`{text}` is not a scalar")))
        }
        _ => Err(refuse("a scalar is wanted: a number or a string `p/q`")),
    }
}

/// `p` or `p/q`; `Some(None)` if q is 0.
fn fraction(text: &str) -> Option<Option<BigRational>> {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let (numerator, denominator) = text.split_once('/').unwrap_or((text, "1"));
    if !digits(numerator.strip_prefix('-').unwrap_or(numerator)) || !digits(denominator) {
        return None;
    }
    let (numerator, denominator): (BigInt, BigInt) = (numerator.parse().ok()?, denominator.parse().ok()?);
    Some((!denominator.is_zero()).then(|| BigRational::new(numerator, denominator)))
}

/// The exact value of a JSON number.
fn decimal(text: &str) -> Result<BigRational> {
    let broken = || refuse(format!("`{text}` is not a number"));
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (whole, part) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits: BigInt = format!("{whole}{part}").parse().map_err(|_| broken())?;
    let exponent: i64 = exponent.parse().ok().filter(|e: &i64| e.abs() <= MAX_EXPONENT).ok_or_else(|| {
        Refusal::new(Kind::Limit, format!("the exponent of `{text}` is beyond {MAX_EXPONENT}"))
    })?;
    let places = exponent - i64::try_from(part.len()).map_err(|_| broken())?;
    let power = BigInt::from(10).pow(u32::try_from(places.unsigned_abs()).map_err(|_| broken())?);
    Ok(if places >= 0 { BigRational::from_integer(digits * power) } else { BigRational::new(digits, power) })
}

/// A number if |x| < 2⁵³, else a string of digits.
pub fn integer_json(value: &BigInt) -> serde_json::Value {
    match value.to_i64().filter(|x| x.unsigned_abs() < 1 << 53) {
        Some(small) => small.into(),
        None => value.to_string().into(),
    }
}

/// An integer as such, else `"p/q"`.
pub fn rational_json(value: &BigRational) -> serde_json::Value {
    if value.is_integer() { integer_json(value.numer()) } else { fraction_text(value).into() }
}

/// `p/q` or `p`, with the sign in front.
pub(crate) fn fraction_text(value: &BigRational) -> String {
    let sign = if value.is_negative() { "-" } else { "" };
    let (p, q) = (value.numer().abs(), value.denom());
    if value.is_integer() { format!("{sign}{p}") } else { format!("{sign}{p}/{q}") }
}

/// A scalar as section 10.5 prints it.
pub fn number_json(number: &Number) -> serde_json::Value {
    match number {
        Number::Int(x) => integer_json(x),
        Number::I64(x) => integer_json(&BigInt::from(*x)),
        Number::Rat(x) => rational_json(x),
        Number::Mod(x) => integer_json(&BigInt::from(*x)),
        Number::F64(x) => (*x).into(),
    }
}

/// Coordinates in the shape of section 10.6: a scalar, rows, or a list. `columns` is the length of a row.
pub fn shaped(formula: &Formula, columns: usize, entries: Vec<serde_json::Value>) -> serde_json::Value {
    match formula.connective() {
        Connective::One => entries.into_iter().next().unwrap_or_default(),
        Connective::Lolli(..) => {
            entries.chunks(columns.max(1)).map(|row| serde_json::Value::from(row.to_vec())).collect()
        }
        _ => entries.into(),
    }
}
