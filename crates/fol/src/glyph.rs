//! Glyphs: each symbol as a grid of 25 × 25 black and white cells (F30).
//!
//! Numeral n fills the first n cells in reading order, control symbol k is a hollow square of side 2k + 3,
//! and the other thirty are drawn by hand (`glyph/drawings.txt`, or the mirror image of such a drawing).
//! Enter at [`Glyph::of`]; [`Glyph::symbol`] goes back. [`picture`] is about PNG, [`svg`] about SVG.

mod drawings;
mod font;
mod grid;
pub mod picture;
pub mod sheet;
pub mod svg;

use crate::symbol::{Numeral, SymbolId, SymbolKind};
pub use grid::{Glyph, SIDE};
pub use svg::strip_svg;

impl Glyph {
    /// The glyph of a symbol.
    pub fn of(symbol: SymbolId) -> Self {
        match symbol.numeral() {
            Some(numeral) => Self::numeral(numeral),
            None if symbol.kind() == SymbolKind::Control => Self::control(symbol.get() - SymbolId::PAD.get()),
            None => Self::drawn(symbol),
        }
    }

    /// The symbol that has this glyph, if one has.
    pub fn symbol(&self) -> Option<SymbolId> {
        let numeral = Numeral::new(u16::try_from(self.black()).ok()?).map(Numeral::symbol);
        numeral
            .into_iter()
            .chain(SymbolId::all().filter(|symbol| symbol.numeral().is_none()))
            .find(|&symbol| Self::of(symbol) == *self)
    }

    fn numeral(numeral: Numeral) -> Self {
        let mut glyph = Self::WHITE;
        glyph.0.as_flattened_mut().iter_mut().take(numeral.get().into()).for_each(|cell| *cell = true);
        glyph
    }

    /// A hollow centred square of side 2k + 3, one cell thick: all cells at one distance from the centre.
    fn control(k: u16) -> Self {
        const CENTRE: usize = SIDE / 2;
        let mut glyph = Self::WHITE;
        for (y, row) in glyph.0.iter_mut().enumerate() {
            for (x, cell) in row.iter_mut().enumerate() {
                *cell = x.abs_diff(CENTRE).max(y.abs_diff(CENTRE)) == usize::from(k) + 1;
            }
        }
        glyph
    }

    fn drawn(symbol: SymbolId) -> Self {
        match symbol {
            SymbolId::RPAREN => Self::drawn(SymbolId::LPAREN).left_right(),
            SymbolId::GREATER_THAN => Self::drawn(SymbolId::LESS_THAN).left_right(),
            SymbolId::GREATER_EQUAL => Self::drawn(SymbolId::LESS_EQUAL).left_right(),
            SymbolId::OR => Self::drawn(SymbolId::AND).upside_down(),
            SymbolId::FALSE => Self::drawn(SymbolId::TRUE).upside_down(),
            _ => drawings::drawing(symbol),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn distance(a: SymbolId, b: SymbolId) -> usize {
        let (a, b) = (Glyph::of(a), Glyph::of(b));
        a.0.as_flattened().iter().zip(b.0.as_flattened()).filter(|(a, b)| a != b).count()
    }

    #[test]
    fn glyph_to_symbol_and_back_is_the_identity() {
        for symbol in SymbolId::all() {
            assert_eq!(Glyph::of(symbol).symbol(), Some(symbol), "{symbol}");
        }
        for symbol in SymbolId::all() {
            let mut glyph = Glyph::of(symbol);
            glyph.0[24][24] = !glyph.0[24][24];
            assert_eq!(glyph.symbol(), None, "{symbol} with its last cell changed");
        }
    }

    #[test]
    fn numerals_fill_cells_in_reading_order() {
        for n in 0..625 {
            let glyph = Glyph::of(SymbolId::new(n).unwrap());
            assert_eq!(glyph.black(), usize::from(n));
            assert!(glyph.0.as_flattened().is_sorted_by_key(|black| !black));
        }
    }

    #[test]
    fn the_other_symbols_differ_in_at_least_six_cells() {
        let symbols: Vec<SymbolId> = SymbolId::all().skip(625).collect();
        assert_eq!(symbols.len(), 38);
        for (i, &a) in symbols.iter().enumerate() {
            for &b in &symbols[..i] {
                assert!(distance(a, b) >= 6, "{a} and {b}");
            }
        }
    }

    #[test]
    fn drawn_symbols_keep_their_margins() {
        for symbol in SymbolId::all().skip(625).take(30) {
            let glyph = Glyph::of(symbol);
            assert!(glyph.black() > 0, "{symbol} is not drawn");
            for y in [0, 1, 2, 22, 23, 24] {
                assert!(!glyph.0[y].contains(&true), "{symbol}, row {y}");
            }
        }
    }

    #[test]
    fn mirror_images() {
        for (left, right) in [
            (SymbolId::LPAREN, SymbolId::RPAREN),
            (SymbolId::LESS_THAN, SymbolId::GREATER_THAN),
            (SymbolId::LESS_EQUAL, SymbolId::GREATER_EQUAL),
        ] {
            assert_eq!(Glyph::of(left).left_right(), Glyph::of(right));
        }
        assert_eq!(Glyph::of(SymbolId::AND).upside_down(), Glyph::of(SymbolId::OR));
        assert_eq!(Glyph::of(SymbolId::TRUE).upside_down(), Glyph::of(SymbolId::FALSE));
    }

    #[test]
    fn the_rectangles_cover_the_black_cells_once() {
        for symbol in SymbolId::all() {
            let mut glyph = Glyph::WHITE;
            for r in Glyph::of(symbol).rectangles() {
                for row in &mut glyph.0[r.y..r.y + r.height] {
                    for cell in &mut row[r.x..r.x + r.width] {
                        assert!(!std::mem::replace(cell, true));
                    }
                }
            }
            assert_eq!(glyph, Glyph::of(symbol));
        }
    }
}
