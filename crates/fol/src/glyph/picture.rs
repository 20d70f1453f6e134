//! Glyphs as PNG: 8-bit greyscale, not interlaced, one square of pixels for each cell.
//!
//! Writing and reading go row by row, so that a file that claims to be huge costs no memory.

use std::io::{BufRead, Seek, Write};

use ::png::{BitDepth, ColorType, Decoder, DecodingError, Encoder, EncodingError};

use super::grid::{Glyph, SIDE};
use crate::error::{Kind, Refusal};

const BLACK: u8 = 0;
const WHITE: u8 = 255;
const LINE: u8 = 160;

/// Whether a picture shows where the cells are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lines {
    /// Only the cells: such a picture can be read back.
    None,
    /// One grey line along each border of a cell, inside the same size; for people.
    Grid,
}

/// Writes a glyph as a square of 25·`scale` pixels.
///
/// # Errors
/// Those of the writer.
pub fn write(glyph: &Glyph, scale: u32, lines: Lines, out: impl Write) -> std::io::Result<()> {
    let side = scale.saturating_mul(SIDE as u32);
    write_grey(side, side, out, |y, row| paint(glyph, scale, lines, y, row))
}

/// Writes a greyscale PNG; `fill` paints row y, which comes white.
pub(super) fn write_grey(
    width: u32,
    height: u32,
    out: impl Write,
    fill: impl Fn(u32, &mut [u8]),
) -> std::io::Result<()> {
    let failed = |error: EncodingError| match error {
        EncodingError::IoError(error) => error,
        other => std::io::Error::other(other),
    };
    let mut encoder = Encoder::new(out, width, height);
    encoder.set_color(ColorType::Grayscale);
    encoder.set_depth(BitDepth::Eight);
    let mut writer = encoder.write_header().map_err(failed)?;
    let mut stream = writer.stream_writer().map_err(failed)?;
    let mut row = vec![WHITE; width as usize];
    for y in 0..height {
        row.fill(WHITE);
        fill(y, &mut row);
        stream.write_all(&row)?;
    }
    stream.finish().map_err(failed)?;
    writer.finish().map_err(failed)
}

/// Paints row y of a glyph's square into the pixels of `row`.
pub(super) fn paint(glyph: &Glyph, scale: u32, lines: Lines, y: u32, row: &mut [u8]) {
    let scale = scale.max(1) as usize;
    let y = y as usize;
    let last = SIDE * scale - 1;
    let on_line = |at: usize| lines == Lines::Grid && (at.is_multiple_of(scale) || at == last);
    let Some(cells) = glyph.0.get(y / scale) else { return };
    for (x, pixel) in row.iter_mut().enumerate() {
        *pixel = match cells.get(x / scale) {
            _ if on_line(x) || on_line(y) => LINE,
            Some(true) => BLACK,
            _ => WHITE,
        };
    }
}

/// Reads a glyph's picture: any square greyscale PNG of 8 bits, not interlaced, whose side is a multiple of 25
/// and whose cells are uniform. Darker than the middle is black.
///
/// # Errors
/// `BadPicture` for any other picture or a damaged file, `Io` if the reader fails.
pub fn read(source: impl BufRead + Seek) -> Result<Glyph, Refusal> {
    let mut reader = Decoder::new(source).read_info().map_err(undecodable)?;
    let info = reader.info();
    if (info.color_type, info.bit_depth) != (ColorType::Grayscale, BitDepth::Eight) || info.interlaced {
        return Err(bad("the picture is not 8-bit greyscale without interlacing"));
    }
    let side = info.width as usize;
    if info.width != info.height || side == 0 || !side.is_multiple_of(SIDE) {
        let (width, height) = (info.width, info.height);
        return Err(bad(&format!("{width} by {height} pixels are no square of a multiple of 25")));
    }
    let scale = side / SIDE;
    let mut glyph = Glyph::WHITE;
    for cells in &mut glyph.0 {
        let mut first: Vec<u8> = vec![];
        for y in 0..scale {
            let row =
                reader.next_row().map_err(undecodable)?.ok_or_else(|| bad("the picture ends too early"))?;
            if y == 0 {
                first = row.data().to_vec();
                for (cell, pixels) in cells.iter_mut().zip(first.chunks(scale)) {
                    *cell = uniform(pixels).ok_or_else(|| bad("the cells are not uniform"))?;
                }
            } else if row.data() != first {
                return Err(bad("the cells are not uniform"));
            }
        }
    }
    reader.finish().map_err(undecodable)?;
    Ok(glyph)
}

/// Whether the one grey of these pixels is black.
fn uniform(pixels: &[u8]) -> Option<bool> {
    let (first, rest) = pixels.split_first()?;
    rest.iter().all(|pixel| pixel == first).then_some(*first < 128)
}

fn bad(message: &str) -> Refusal {
    Refusal::new(Kind::BadPicture, message)
        .help("a picture that `fol glyph --png` wrote without --grid can be read")
}

fn undecodable(error: DecodingError) -> Refusal {
    match error {
        DecodingError::IoError(error) if error.kind() != std::io::ErrorKind::UnexpectedEof => {
            Refusal::new(Kind::Io, error.to_string())
        }
        other => bad(&format!("the file is no whole PNG: {other}")),
    }
}
