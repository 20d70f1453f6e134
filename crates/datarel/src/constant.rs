//! What tuples hold, and how two of them compare.

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
