//! Pictures of glyphs: there and back, and which others are refused.

use std::io::Cursor;

use fol::error::Kind;
use fol::glyph::Glyph;
use fol::glyph::picture::{Lines, read, write};
use fol::symbol::SymbolId;
use png::{BitDepth, ColorType, Encoder};

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
