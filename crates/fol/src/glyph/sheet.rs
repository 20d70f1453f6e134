//! All 663 glyphs on one sheet, in 26 columns, each with its label.

use std::io::Write;

use super::font;
use super::grid::{Glyph, SIDE};
use super::picture::{Lines, paint, write_grey};
use super::svg::{escaped, tiles};
use crate::symbol::{SymbolId, VOCABULARY};

/// Glyphs in a row.
pub const COLUMNS: usize = 26;
const ROWS: usize = VOCABULARY.div_ceil(COLUMNS);

/// The scale at which the longest label fits under its glyph.
pub const SCALE: u32 = 3;

const PAPER: u8 = 224;
const INK: u8 = 0;

/// Measures of one place on the sheet, in pixels.
struct Place {
    scale: usize,
    /// How often each pixel of the font is repeated.
    letter: usize,
    width: usize,
    height: usize,
}

impl Place {
    fn new(scale: u32) -> Self {
        let scale = scale.max(1) as usize;
        let letter = (scale / SCALE as usize).max(1);
        let longest = SymbolId::all().map(|symbol| font::width(symbol.label())).max().unwrap_or(0);
        Self {
            scale,
            letter,
            width: (SIDE * scale).max(longest * letter) + 4 * letter,
            height: SIDE * scale + (font::HEIGHT + 8) * letter,
        }
    }
}

/// Writes the sheet as PNG; each cell of a glyph has `scale` pixels.
///
/// # Errors
/// Those of the writer.
pub fn write_png(scale: u32, lines: Lines, out: impl Write) -> std::io::Result<()> {
    let place = Place::new(scale);
    let glyphs: Vec<(SymbolId, Glyph)> = SymbolId::all().map(|symbol| (symbol, Glyph::of(symbol))).collect();
    let (width, height) = (place.width * COLUMNS, place.height * ROWS);
    write_grey(width as u32, height as u32, out, |y, row| {
        row.fill(PAPER);
        let (sheet_row, y) = (y as usize / place.height, y as usize % place.height);
        let glyphs = glyphs.get(sheet_row * COLUMNS..).unwrap_or_default();
        for ((symbol, glyph), pixels) in glyphs.iter().zip(row.chunks_mut(place.width)) {
            paint_place(&place, *symbol, glyph, lines, y, pixels);
        }
    })
}

/// Row y of one place: two pixels of paper, the glyph, three of paper, the label.
fn paint_place(place: &Place, symbol: SymbolId, glyph: &Glyph, lines: Lines, y: usize, pixels: &mut [u8]) {
    let side = SIDE * place.scale;
    let (top, label_top) = (2 * place.letter, 5 * place.letter + side);
    if (top..top + side).contains(&y) {
        let left = (place.width - side) / 2;
        if let Some(square) = pixels.get_mut(left..left + side) {
            paint(glyph, place.scale as u32, lines, (y - top) as u32, square);
        }
    } else if let Some(y) = y.checked_sub(label_top) {
        let left = (place.width - font::width(symbol.label()) * place.letter) / 2;
        for (x, pixel) in pixels.iter_mut().skip(left).enumerate() {
            if font::inked(symbol.label(), x / place.letter, y / place.letter) {
                *pixel = INK;
            }
        }
    }
}

/// The sheet as SVG; each cell of a glyph is `scale` pixels wide.
pub fn svg(scale: u32) -> String {
    const WIDTH: usize = 29;
    const HEIGHT: usize = 33;
    let (width, height) = (WIDTH * COLUMNS, HEIGHT * ROWS);
    let at = |(i, symbol)| (symbol, i % COLUMNS * WIDTH + 2, i / COLUMNS * HEIGHT + 2);
    let glyphs = SymbolId::all().enumerate().map(at);
    let label = |(symbol, x, y): (SymbolId, usize, usize)| {
        format!("<text x=\"{}\" y=\"{}\">{}</text>", x as f64 + 12.5, y + 29, escaped(symbol.label()))
    };
    let labels: String = glyphs.clone().map(label).collect();
    let [squares, black] = tiles(glyphs);
    let (shown_width, shown_height) = (width as u64 * u64::from(scale), height as u64 * u64::from(scale));
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{shown_width}\" \
         height=\"{shown_height}\"><rect width=\"{width}\" height=\"{height}\" fill=\"#e0e0e0\"/>\
         <g shape-rendering=\"crispEdges\"><path fill=\"#fff\" d=\"{squares}\"/><path d=\"{black}\"/></g>\
         <g font-family=\"monospace\" font-size=\"3.4\" text-anchor=\"middle\">{labels}</g></svg>\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_glyphs_stand_on_the_sheet_where_they_belong() {
        let mut bytes = vec![];
        write_png(1, Lines::None, &mut bytes).unwrap();
        let mut reader = ::png::Decoder::new(std::io::Cursor::new(bytes)).read_info().unwrap();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut pixels).unwrap();
        let place = Place::new(1);
        let left = (place.width - SIDE) / 2;
        for symbol in SymbolId::all() {
            let (x0, y0) = (symbol.index() % 26 * place.width + left, symbol.index() / 26 * place.height + 2);
            let cell = |x: usize, y: usize| pixels[(y0 + y) * info.width as usize + x0 + x] == 0;
            let read = Glyph(std::array::from_fn(|y| std::array::from_fn(|x| cell(x, y))));
            assert_eq!(read.symbol(), Some(symbol));
        }
    }

    #[test]
    fn the_svg_sheet_has_every_label() {
        let sheet = svg(SCALE);
        assert_eq!(sheet.matches("<text").count(), VOCABULARY);
        assert!(sheet.contains(">&lt;unknown&gt;</text>"));
    }
}
