//! The grid of a glyph, whatever it shows.

/// The rows, and the columns, of a glyph.
pub const SIDE: usize = 25;

/// A grid of cells, row by row from the top; `true` is black.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Glyph(pub [[bool; SIDE]; SIDE]);

impl Glyph {
    /// All white.
    pub const WHITE: Self = Self([[false; SIDE]; SIDE]);

    /// The number of black cells.
    pub fn black(&self) -> usize {
        self.0.iter().flatten().filter(|&&black| black).count()
    }

    /// 25 strings of `#` and `.`.
    pub fn rows(&self) -> Vec<String> {
        self.0.iter().map(|row| row.iter().map(|&black| if black { '#' } else { '.' }).collect()).collect()
    }

    pub(super) fn left_right(mut self) -> Self {
        self.0.iter_mut().for_each(|row| row.reverse());
        self
    }

    pub(super) fn upside_down(mut self) -> Self {
        self.0.reverse();
        self
    }

    /// The black rectangles that a glyph is made of: runs of a row, joined over equal rows.
    pub(super) fn rectangles(&self) -> Vec<Rectangle> {
        let mut rectangles = vec![];
        let mut y = 0;
        for rows in self.0.chunk_by(|above, below| above == below) {
            let mut x = 0;
            for run in rows.first().map_or(&[][..], |row| &row[..]).chunk_by(|left, right| left == right) {
                if run.first() == Some(&true) {
                    rectangles.push(Rectangle { x, y, width: run.len(), height: rows.len() });
                }
                x += run.len();
            }
            y += rows.len();
        }
        rectangles
    }
}

/// Black cells, in cells from the upper left corner.
pub(super) struct Rectangle {
    pub(super) x: usize,
    pub(super) y: usize,
    pub(super) width: usize,
    pub(super) height: usize,
}
