//! Where the literals and terms of active clauses are found: by the head symbol of what must be equal.

use super::bank::Id;
use super::clause::ClauseId;
use crate::hash::Map;

/// A literal of an active clause, and the side or the part of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) clause: ClauseId,
    pub(super) literal: usize,
    pub(super) term: Id,
}

/// An equation of one literal, left to right.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rewrite {
    pub(super) clause: ClauseId,
    pub(super) left: Id,
    pub(super) right: Id,
    /// The left side is greater for all instances.
    pub(super) oriented: bool,
}

/// Tables by head. What is no longer active is skipped when it is met.
#[derive(Debug, Default)]
pub(super) struct Index {
    /// Eligible atoms by head and sign.
    pub(super) atoms: Map<(u32, bool), Vec<Place>>,
    /// Greater sides of eligible positive equations, by head; variables under none.
    pub(super) sides: Map<Option<u32>, Vec<Place>>,
    /// Parts of eligible literals into which equations may be put, by head.
    pub(super) parts: Map<u32, Vec<Place>>,
    /// Equations that rewrite, by the head of the left side.
    pub(super) rewrites: Map<Option<u32>, Vec<Rewrite>>,
    /// Clauses of one literal by head and sign; equations under 0.
    pub(super) units: Map<(u32, bool), Vec<ClauseId>>,
    /// All active clauses of more than one literal.
    pub(super) long: Vec<ClauseId>,
    /// All active clauses.
    pub(super) all: Vec<ClauseId>,
}
