//! Glyphs as SVG, for documents and reports.

use std::fmt::Write;

use super::grid::{Glyph, SIDE};
use super::picture::Lines;
use crate::symbol::SymbolId;

/// White cells between two glyphs of a strip.
const GAP: usize = 2;

/// A document of one glyph, 25·`scale` pixels wide.
pub fn document(glyph: &Glyph, scale: u32, lines: Lines) -> String {
    let side = SIDE as u64 * u64::from(scale);
    let mut grid = String::new();
    if lines == Lines::Grid {
        let each: String = (0..=SIDE).map(|i| format!("M{i} 0v25M0 {i}h25")).collect();
        grid = format!("<path d=\"{each}\" stroke=\"#a0a0a0\" stroke-width=\".05\"/>");
    }
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 25 25\" width=\"{side}\" height=\"{side}\" \
         shape-rendering=\"crispEdges\"><rect width=\"25\" height=\"25\" fill=\"#fff\"/>\
         <path d=\"{}\"/>{grid}</svg>\n",
        path(glyph, 0, 0)
    )
}

/// The glyphs of a token sequence in one row, as one SVG to stand inside a line of HTML. A cell has `cell_px`
/// pixels, so a glyph has 25 times as many.
pub fn strip_svg(symbols: &[SymbolId], cell_px: f64) -> String {
    let width = symbols.len() * (SIDE + GAP) + GAP;
    let height = SIDE + 2 * GAP;
    let cell_px = if cell_px.is_finite() && cell_px > 0.0 { cell_px } else { 1.0 };
    let labels: Vec<String> = symbols.iter().map(|symbol| escaped(symbol.label())).collect();
    let at = |(i, &symbol): (usize, &SymbolId)| (symbol, GAP + i * (SIDE + GAP), GAP);
    let [squares, black] = tiles(symbols.iter().enumerate().map(at));
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{:.0}\" \
         height=\"{:.0}\" shape-rendering=\"crispEdges\"><title>{}</title>\
         <rect width=\"{width}\" height=\"{height}\" fill=\"#ddd\"/>\
         <path fill=\"#fff\" d=\"{squares}\"/><path d=\"{black}\"/></svg>",
        width as f64 * cell_px,
        height as f64 * cell_px,
        labels.join(" ")
    )
}

/// The path data of the squares of some glyphs, and of their black cells.
pub(super) fn tiles(glyphs: impl Iterator<Item = (SymbolId, usize, usize)>) -> [String; 2] {
    let mut tiles = [String::new(), String::new()];
    for (symbol, x, y) in glyphs {
        // Writing to a string cannot fail.
        let _ = write!(tiles[0], "M{x} {y}h25v25h-25z");
        tiles[1].push_str(&path(&Glyph::of(symbol), x, y));
    }
    tiles
}

/// The path data of the black cells, moved by x and y cells.
fn path(glyph: &Glyph, x: usize, y: usize) -> String {
    let mut data = String::new();
    for r in glyph.rectangles() {
        let _ = write!(data, "M{} {}h{w}v{}h-{w}z", x + r.x, y + r.y, r.height, w = r.width);
    }
    data
}

/// Text as XML.
pub(super) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_glyph() {
        let document = document(&Glyph::of(SymbolId::new(26).unwrap()), 20, Lines::None);
        assert!(document.contains("viewBox=\"0 0 25 25\""));
        assert!(document.contains("<path d=\"M0 0h25v1h-25zM0 1h1v1h-1z\"/>"), "{document}");
    }

    #[test]
    fn a_strip_names_its_symbols() {
        let strip = strip_svg(&[SymbolId::BOS, SymbolId::FORALL], 1.0);
        assert!(strip.contains("<title>&lt;bos&gt; FORALL</title>"));
        assert!(strip.contains("width=\"56\" height=\"29\""));
        assert!(strip_svg(&[], f64::NAN).starts_with("<svg"));
    }
}
