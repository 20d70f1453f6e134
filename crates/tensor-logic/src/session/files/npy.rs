//! `.npy`: one array (NumPy's format, versions 1 to 3), read as 64-bit floats.
//!
//! The header is a Python dictionary of three entries. A header that claims more elements than
//! the file has bytes is refused before anything is allocated.

use crate::files::content::{Dense, Fault};

const MAGIC: &[u8] = b"\x93NUMPY";

/// More places than any program has.
const MOST_PLACES: usize = 64;

/// What the header says.
struct Header {
    element: Element,
    big_endian: bool,
    fortran: bool,
    shape: Vec<usize>,
}

/// The types of elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Element {
    F64,
    F32,
    F16,
    Bf16,
    I64,
    I32,
    I16,
    I8,
    U64,
    U32,
    U16,
    U8,
    Bool,
}

impl Element {
    /// Bytes of one element.
    pub(super) fn size(self) -> usize {
        match self {
            Element::F64 | Element::I64 | Element::U64 => 8,
            Element::F32 | Element::I32 | Element::U32 => 4,
            Element::F16 | Element::Bf16 | Element::I16 | Element::U16 => 2,
            Element::I8 | Element::U8 | Element::Bool => 1,
        }
    }

    /// The values of packed elements, and what integers of more digits have beyond them: nothing, where there are none.
    pub(super) fn values(self, data: &[u8], big_endian: bool) -> (Vec<f64>, Vec<f64>) {
        let words = || data.chunks_exact(self.size()).map(|bytes| word(bytes, big_endian));
        let values: Vec<f64> = words().map(|word| self.value(word)).collect();
        let beyond: fn(u64, f64) -> f64 = match self {
            Element::I64 => |word, value| (i128::from(word as i64) - value as i128) as f64,
            Element::U64 => |word, value| (i128::from(word) - value as i128) as f64,
            _ => return (values, Vec::new()),
        };
        let rest: Vec<f64> = words().zip(&values).map(|(word, value)| beyond(word, *value)).collect();
        let whole = rest.iter().all(|rest| *rest == 0.0);
        (values, if whole { Vec::new() } else { rest })
    }

    #[expect(clippy::cast_precision_loss, reason = "64-bit integers are read as the nearest float")]
    fn value(self, word: u64) -> f64 {
        match self {
            Element::F64 => f64::from_bits(word),
            Element::F32 => f64::from(f32::from_bits(word as u32)),
            Element::F16 => half_to_f64(word as u16),
            Element::Bf16 => f64::from(f32::from_bits((word as u32) << 16)),
            Element::I64 => word as i64 as f64,
            Element::I32 => f64::from(word as i32),
            Element::I16 => f64::from(word as i16),
            Element::I8 => f64::from(word as i8),
            Element::U64 => word as f64,
            Element::U32 => f64::from(word as u32),
            Element::U16 => f64::from(word as u16),
            Element::U8 => f64::from(word as u8),
            Element::Bool => f64::from(u8::from(word != 0)),
        }
    }
}

/// The bits of an element.
fn word(bytes: &[u8], big_endian: bool) -> u64 {
    let mut word = [0_u8; 8];
    for (at, byte) in bytes.iter().enumerate().take(8) {
        let low = if big_endian { bytes.len() - 1 - at } else { at };
        if let Some(slot) = word.get_mut(low) {
            *slot = *byte;
        }
    }
    u64::from_le_bytes(word)
}

/// IEEE 754 half precision.
fn half_to_f64(bits: u16) -> f64 {
    let sign = if bits >> 15 == 1 { -1.0 } else { 1.0 };
    let fraction = f64::from(bits & 0x3ff);
    let magnitude = match (bits >> 10) & 0x1f {
        0 => fraction * 2.0_f64.powi(-24),
        0x1f if fraction == 0.0 => f64::INFINITY,
        0x1f => f64::NAN,
        exponent => (1.0 + fraction / 1024.0) * 2.0_f64.powi(i32::from(exponent) - 15),
    };
    sign * magnitude
}

/// The array of a file.
///
/// # Errors
/// A header that is none, an element type that is no real number, too few or too many bytes.
pub fn read(bytes: &[u8]) -> Result<Dense, Fault> {
    let (header, offset) = split(bytes)?;
    let header = Header::parse(header)?;
    let data = bytes.get(offset..).unwrap_or_default();
    let count = header.shape.iter().try_fold(1_usize, |count, size| count.checked_mul(*size));
    let needed = count.and_then(|count| count.checked_mul(header.element.size()));
    if needed != Some(data.len()) {
        let shape = &header.shape;
        let what = format!("the header announces the shape {shape:?}, and {} bytes follow", data.len());
        return Err(Fault::Offset { offset, what });
    }
    let (values, rest) = header.element.values(data, header.big_endian);
    let ordered = |values: Vec<f64>| if header.fortran { row_major(&header.shape, &values) } else { values };
    let (values, rest) = (ordered(values), ordered(rest));
    Dense::new(header.shape, values, rest)
}

/// The text of the header and where the data start.
fn split(bytes: &[u8]) -> Result<(&[u8], usize), Fault> {
    let fault = |offset: usize, what: &str| Fault::Offset { offset, what: what.to_owned() };
    let rest = bytes.strip_prefix(MAGIC).ok_or_else(|| fault(0, "this is no .npy file"))?;
    let short = || fault(MAGIC.len(), "the file ends within its header");
    let (start, length) = match rest {
        [1, _, a, b, ..] => (MAGIC.len() + 4, usize::from(u16::from_le_bytes([*a, *b]))),
        [2 | 3, _, a, b, c, d, ..] => (MAGIC.len() + 6, u32::from_le_bytes([*a, *b, *c, *d]) as usize),
        [0 | 4..=255, ..] => return Err(fault(MAGIC.len(), "this version of the format is not known")),
        _ => return Err(short()),
    };
    let end = start.checked_add(length).ok_or_else(short)?;
    Ok((bytes.get(start..end).ok_or_else(short)?, end))
}

/// Column-major values in row-major order.
fn row_major(shape: &[usize], values: &[f64]) -> Vec<f64> {
    // Where one step along each place leads in column-major order.
    let strides: Vec<usize> = shape
        .iter()
        .scan(1_usize, |stride, size| {
            let here = *stride;
            *stride = stride.saturating_mul(*size);
            Some(here)
        })
        .collect();
    let mut position = vec![0_usize; shape.len()];
    let mut at = 0;
    let mut turned = Vec::with_capacity(values.len());
    for _ in 0..values.len() {
        turned.extend(values.get(at));
        for ((position, size), stride) in position.iter_mut().zip(shape).zip(&strides).rev() {
            *position += 1;
            at += stride;
            if *position < *size {
                break;
            }
            at -= stride * *position;
            *position = 0;
        }
    }
    turned
}

impl Header {
    fn parse(text: &[u8]) -> Result<Header, Fault> {
        let bad = |what: &str| Fault::Whole(format!("the header is damaged: {what}"));
        let text = std::str::from_utf8(text).map_err(|_| bad("it is no text"))?;
        let mut cursor = Cursor { rest: text.trim_end() };
        let (mut descr, mut fortran, mut shape) = (None, None, None);
        cursor.take('{').ok_or_else(|| bad("no `{`"))?;
        while cursor.take('}').is_none() {
            let key = cursor.quoted().ok_or_else(|| bad("no key"))?;
            cursor.take(':').ok_or_else(|| bad("no `:`"))?;
            match key {
                "descr" => descr = Some(cursor.quoted().ok_or_else(|| bad("no simple element type"))?),
                "fortran_order" => fortran = Some(cursor.boolean().ok_or_else(|| bad("no truth value"))?),
                "shape" => {
                    let none = || bad("no shape that a memory holds");
                    shape = Some(cursor.shape().ok_or_else(none)?);
                }
                other => return Err(bad(&format!("unknown key `{other}`"))),
            }
            if cursor.take(',').is_none() && !cursor.rest.starts_with('}') {
                return Err(bad("no `,`"));
            }
        }
        let (element, big_endian) = element(descr.ok_or_else(|| bad("no element type"))?)?;
        let fortran = fortran.ok_or_else(|| bad("no order"))?;
        let shape = shape.ok_or_else(|| bad("no shape"))?;
        Ok(Header { element, big_endian, fortran, shape })
    }
}

/// The type behind `descr`, such as `<f8`, and whether it is big-endian.
fn element(descr: &str) -> Result<(Element, bool), Fault> {
    let (order, name) = descr.split_at_checked(1).unwrap_or(("", descr));
    let element = match name {
        "f8" => Element::F64,
        "f4" => Element::F32,
        "f2" => Element::F16,
        "i8" => Element::I64,
        "i4" => Element::I32,
        "i2" => Element::I16,
        "i1" => Element::I8,
        "u8" => Element::U64,
        "u4" => Element::U32,
        "u2" => Element::U16,
        "u1" => Element::U8,
        "b1" => Element::Bool,
        _ => return Err(Fault::Whole(format!("elements of type `{descr}` are no real numbers"))),
    };
    match order {
        "<" | "|" => Ok((element, false)),
        "=" => Ok((element, cfg!(target_endian = "big"))),
        ">" => Ok((element, true)),
        _ => Err(Fault::Whole(format!("the element type `{descr}` has no order of bytes"))),
    }
}

/// What is left of a header.
struct Cursor<'a> {
    rest: &'a str,
}

impl<'a> Cursor<'a> {
    fn skip_blanks(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn take(&mut self, sign: char) -> Option<()> {
        self.skip_blanks();
        self.rest = self.rest.strip_prefix(sign)?;
        self.skip_blanks();
        Some(())
    }

    fn quoted(&mut self) -> Option<&'a str> {
        self.skip_blanks();
        let quote = self.rest.chars().next().filter(|quote| matches!(quote, '\'' | '"'))?;
        let (text, rest) = self.rest.get(1..)?.split_once(quote)?;
        self.rest = rest;
        self.skip_blanks();
        Some(text)
    }

    fn boolean(&mut self) -> Option<bool> {
        let (value, rest) = match self.rest.strip_prefix("True") {
            Some(rest) => (true, rest),
            None => (false, self.rest.strip_prefix("False")?),
        };
        self.rest = rest;
        self.skip_blanks();
        Some(value)
    }

    fn shape(&mut self) -> Option<Vec<usize>> {
        self.take('(')?;
        let mut shape = Vec::new();
        while self.take(')').is_none() {
            let end = self.rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(self.rest.len());
            let (digits, rest) = self.rest.split_at_checked(end)?;
            let size: usize = digits.parse().ok()?;
            // Sizes beside a 0 are not held against the bytes of the file.
            if shape.len() == MOST_PLACES || size > 1 << 40 {
                return None;
            }
            shape.push(size);
            // Python 2 wrote `3L`.
            self.rest = rest.strip_prefix('L').unwrap_or(rest);
            if self.take(',').is_none() && !self.rest.starts_with(')') {
                return None;
            }
        }
        Some(shape)
    }
}

/// Version 1.0, little-endian 64-bit floats, row-major; the data start at a multiple of 64.
///
/// # Errors
/// None; the type is that of the other formats.
pub fn write(shape: &[usize], values: &[f64], out: &mut Vec<u8>) -> Result<(), Fault> {
    let sizes: Vec<String> = shape.iter().map(ToString::to_string).collect();
    let comma = if shape.len() == 1 { "," } else { "" };
    let mut header =
        format!("{{'descr': '<f8', 'fortran_order': False, 'shape': ({}{comma}), }}", sizes.join(", "));
    let start = MAGIC.len() + 4;
    while !(start + header.len() + 1).is_multiple_of(64) {
        header.push(' ');
    }
    header.push('\n');
    let length = u16::try_from(header.len());
    let length = length.map_err(|_| Fault::Whole("this tensor has too many places".to_owned()))?;
    out.extend_from_slice(MAGIC);
    out.extend_from_slice(&[1, 0]);
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(header.as_bytes());
    out.reserve(values.len() * 8);
    values.iter().for_each(|value| out.extend_from_slice(&value.to_le_bytes()));
    Ok(())
}
