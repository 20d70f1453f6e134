//! What a sampler knows about its text.

/// What the sampler knows about the text that it drew.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Facts {
    /// Nodes of all formulas.
    pub nodes: u32,
    /// The largest number of quantifiers on one path.
    pub quantifier_depth: u32,
    /// 1 to 4; 0 for a text that is not one formula without final DOT.
    pub level: u8,
    /// How many texts before it were too long.
    pub redraws: u32,
}
