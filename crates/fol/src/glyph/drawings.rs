//! The drawings in `drawings.txt`, read once.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::grid::Glyph;
use crate::symbol::SymbolId;

/// The row of the grid in which a drawing begins.
const TOP: usize = 3;

static DRAWINGS: LazyLock<BTreeMap<SymbolId, Glyph>> = LazyLock::new(|| read(include_str!("drawings.txt")));

/// The drawing of a symbol; white if it has none, which a test excludes.
pub(super) fn drawing(symbol: SymbolId) -> Glyph {
    DRAWINGS.get(&symbol).copied().unwrap_or(Glyph::WHITE)
}

/// Lines of `#` and `.` are rows of the label above them.
fn read(source: &str) -> BTreeMap<SymbolId, Glyph> {
    let mut drawings = BTreeMap::new();
    let mut current: Option<(SymbolId, usize)> = None;
    for line in source.lines() {
        if let Some(symbol) = SymbolId::from_label(line) {
            current = Some((symbol, TOP));
            drawings.insert(symbol, Glyph::WHITE);
        } else if let Some((symbol, y)) = &mut current {
            if let Some(row) = drawings.get_mut(symbol).and_then(|glyph| glyph.0.get_mut(*y)) {
                row.iter_mut().zip(line.chars()).for_each(|(cell, mark)| *cell = mark == '#');
            }
            *y += 1;
        }
    }
    drawings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drawing_has_nineteen_rows_of_twenty_five_cells() {
        let lines: Vec<&str> = include_str!("drawings.txt").lines().skip(2).collect();
        assert_eq!((lines.len(), DRAWINGS.len()), (25 * 20, 25));
        for drawing in lines.chunks(20) {
            assert!(SymbolId::from_label(drawing[0]).is_some());
            let drawn = |row: &&str| row.len() == 25 && row.chars().all(|mark| "#.".contains(mark));
            assert!(drawing[1..].iter().all(drawn), "{}", drawing[0]);
        }
    }
}
