//! What tuples hold, and how two of them compare.

use std::cmp::Ordering;

/// An interned symbol; its spelling is known to whoever interned it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SymbolId(pub u32);

/// A value of an index: an integer or a symbol.
///
/// Integers come before symbols, and symbols in the order of interning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Const {
    /// An integer.
    Int(i64),
    /// A symbol.
    Symbol(SymbolId),
}

impl Const {
    /// The integer, if it is one.
    pub fn int(self) -> Option<i64> {
        match self {
            Const::Int(value) => Some(value),
            Const::Symbol(_) => None,
        }
    }
}

/// Signs of comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Comparison {
    /// `<`
    Less,
    /// `<=`
    LessEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterEqual,
    /// `==`
    Equal,
    /// `!=`
    NotEqual,
}

impl Comparison {
    /// The same of the sides in the other order: `a < b` is `b > a`.
    #[must_use]
    pub fn turned(self) -> Comparison {
        match self {
            Comparison::Less => Comparison::Greater,
            Comparison::LessEqual => Comparison::GreaterEqual,
            Comparison::Greater => Comparison::Less,
            Comparison::GreaterEqual => Comparison::LessEqual,
            Comparison::Equal | Comparison::NotEqual => self,
        }
    }

    /// Whether it holds: `==` and `!=` compare constants, the others integers, and fail where a side is a symbol.
    pub fn holds(self, a: Const, b: Const) -> bool {
        let order = || Some(a.int()?.cmp(&b.int()?));
        match self {
            Comparison::Equal => a == b,
            Comparison::NotEqual => a != b,
            Comparison::Less => order().is_some_and(Ordering::is_lt),
            Comparison::LessEqual => order().is_some_and(Ordering::is_le),
            Comparison::Greater => order().is_some_and(Ordering::is_gt),
            Comparison::GreaterEqual => order().is_some_and(Ordering::is_ge),
        }
    }
}

impl std::fmt::Display for Comparison {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Comparison::Less => "<",
            Comparison::LessEqual => "<=",
            Comparison::Greater => ">",
            Comparison::GreaterEqual => ">=",
            Comparison::Equal => "==",
            Comparison::NotEqual => "!=",
        })
    }
}
