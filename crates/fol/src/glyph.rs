//! Temporary.
/// Temporary.
pub struct Glyph;
impl Glyph {
    /// t
    pub fn of(_s: crate::symbol::SymbolId) -> Self {
        Self
    }
    /// t
    pub fn cells(&self) -> impl Iterator<Item = bool> {
        (0..625).map(|i| i % 3 == 0)
    }
}
