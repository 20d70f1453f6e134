//! What the hidden choices decide: the kind of a node, and where it stands.

/// What a node can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Event {
    Atom,
    Quantifier,
    Not,
    Binary,
}

/// Where a formula stands: nodes and quantifiers above it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Place {
    pub(super) depth: u32,
    pub(super) quantifiers: u32,
}
