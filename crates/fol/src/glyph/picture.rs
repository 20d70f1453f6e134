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

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;
    use crate::symbol::SymbolId;

    fn written(glyph: &Glyph, scale: u32, lines: Lines) -> Vec<u8> {
        let mut bytes = vec![];
        write(glyph, scale, lines, &mut bytes).unwrap();
        bytes
    }

    fn encoded(width: u32, height: u32, color: ColorType, depth: BitDepth, bytes: usize) -> Vec<u8> {
        let mut out = vec![];
        let mut encoder = Encoder::new(&mut out, width, height);
        encoder.set_color(color);
        encoder.set_depth(depth);
        let mut writer = encoder.write_header().unwrap();
        writer.write_image_data(&vec![0; bytes]).unwrap();
        writer.finish().unwrap();
        out
    }

    #[track_caller]
    fn check_bad(bytes: &[u8]) {
        assert_eq!(read(Cursor::new(bytes)).unwrap_err().kind, Kind::BadPicture);
    }

    #[test]
    fn every_glyph_is_read_back_from_its_picture() {
        for symbol in SymbolId::all() {
            let glyph = Glyph::of(symbol);
            let scale = 1 + u32::from(symbol.get() % 3);
            assert_eq!(read(Cursor::new(written(&glyph, scale, Lines::None))), Ok(glyph));
        }
    }

    #[test]
    fn the_picture_is_plain_8_bit_grey() {
        let bytes = written(&Glyph::of(SymbolId::AND), 20, Lines::None);
        // Width, height, depth 8, colour type 0, compression 0, filter 0, interlace 0.
        assert_eq!(bytes[16..29], [0, 0, 1, 0xF4, 0, 0, 1, 0xF4, 8, 0, 0, 0, 0]);
    }

    #[test]
    fn other_pictures_are_refused() {
        check_bad(b"");
        check_bad(b"not a picture");
        check_bad(&encoded(26, 26, ColorType::Grayscale, BitDepth::Eight, 26 * 26));
        check_bad(&encoded(25, 50, ColorType::Grayscale, BitDepth::Eight, 25 * 50));
        check_bad(&encoded(25, 25, ColorType::Grayscale, BitDepth::Sixteen, 25 * 50));
        check_bad(&encoded(25, 25, ColorType::Rgb, BitDepth::Eight, 25 * 75));
        check_bad(&encoded(25, 25, ColorType::GrayscaleAlpha, BitDepth::Eight, 25 * 50));
        check_bad(&encoded(25, 25, ColorType::Grayscale, BitDepth::One, 25 * 4));
        check_bad(&written(&Glyph::of(SymbolId::AND), 20, Lines::Grid));
    }

    #[test]
    fn damaged_and_huge_files_are_refused() {
        let whole = written(&Glyph::of(SymbolId::SORT), 2, Lines::None);
        for length in 0..whole.len() - 12 {
            check_bad(&whole[..length]);
        }
        let mut interlaced = whole.clone();
        interlaced[28] = 1;
        check_bad(&interlaced);
        let mut huge = whole.clone();
        huge[16..24].copy_from_slice(&[0x7F, 0xFF, 0xFF, 0xE4, 0x7F, 0xFF, 0xFF, 0xE4]);
        check_bad(&huge);
        for at in 0..whole.len() {
            for bit in 0..8 {
                let mut damaged = whole.clone();
                damaged[at] ^= 1 << bit;
                if let Ok(read) = read(Cursor::new(damaged)) {
                    assert_eq!(read, Glyph::of(SymbolId::SORT));
                }
            }
        }
    }

    #[test]
    fn a_huge_header_with_a_right_checksum_is_refused_without_memory() {
        let mut out = vec![];
        let side = 25 * 40_000_000;
        let encoder = Encoder::new(&mut out, side, side);
        drop(encoder.write_header().unwrap());
        check_bad(&out);
    }
}
