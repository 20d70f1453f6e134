//! The class of a target: what kind of choice it is.

use std::collections::HashSet;

use fol::symbol::{SymbolId, SymbolKind};
use serde::Serialize;

/// A class of targets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Class {
    /// Parentheses, comma, colon, dot.
    #[serde(rename = "structure")]
    Structure,
    /// Connectives, quantifiers, relations, truth values, meta symbols.
    #[serde(rename = "operator")]
    Operator,
    /// VAR, CONST, PRED, FUNC, SORT.
    #[serde(rename = "category")]
    Category,
    /// A digit of a name that stands here for the first time in its category.
    #[serde(rename = "new name")]
    NewName,
    /// A digit of a name that stood before.
    #[serde(rename = "old name")]
    OldName,
    /// The end.
    #[serde(rename = "<eos>")]
    Eos,
}

impl Class {
    /// All classes, in the order of the tables.
    pub const ALL: [Self; 6] =
        [Self::Structure, Self::Operator, Self::Category, Self::NewName, Self::OldName, Self::Eos];

    /// The key in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Structure => "structure",
            Self::Operator => "operator",
            Self::Category => "category",
            Self::NewName => "new name",
            Self::OldName => "old name",
            Self::Eos => "<eos>",
        }
    }
}

/// The class of each token of a sequence; names are told by category and all their digits.
pub(crate) fn classes(tokens: &[SymbolId]) -> Vec<Class> {
    let mut seen: HashSet<(SymbolId, &[SymbolId])> = HashSet::new();
    let mut found = Vec::with_capacity(tokens.len());
    let mut at = 0;
    while let Some(&token) = tokens.get(at) {
        found.push(match token.kind() {
            SymbolKind::Structure => Class::Structure,
            SymbolKind::Category => Class::Category,
            SymbolKind::Control if token == SymbolId::EOS => Class::Eos,
            _ => Class::Operator,
        });
        at += 1;
        if token.kind() == SymbolKind::Category {
            let rest = tokens.get(at..).unwrap_or_default();
            let digits = rest.iter().take_while(|t| t.kind() == SymbolKind::Numeral).count();
            let new = seen.insert((token, rest.get(..digits).unwrap_or_default()));
            found.extend(std::iter::repeat_n(if new { Class::NewName } else { Class::OldName }, digits));
            at += digits;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_new_once_in_each_category() {
        // ∀x625 P1(x625, c1) <eos>
        let ids = [630, 644, 1, 0, 646, 1, 639, 644, 1, 0, 641, 645, 1, 640, 657];
        let tokens: Vec<SymbolId> = ids.into_iter().filter_map(SymbolId::new).collect();
        use Class::{Category as C, Eos, NewName as N, OldName as O, Operator, Structure as S};
        assert_eq!(classes(&tokens), [Operator, C, N, N, C, N, S, C, O, O, S, C, N, S, Eos]);
    }
}
