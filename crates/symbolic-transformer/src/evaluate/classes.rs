//! The class of a target: what kind of choice it is.

use std::collections::HashSet;

use fol::notation::{Code, Meaning, Token};
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
pub(crate) fn classes(code: &Code, tokens: &[Token]) -> Vec<Class> {
    let mut seen: HashSet<&[Token]> = HashSet::new();
    let mut found = Vec::with_capacity(tokens.len());
    let mut name = |range: std::ops::Range<usize>| {
        let new = seen.insert(tokens.get(range).unwrap_or_default());
        if new { Class::NewName } else { Class::OldName }
    };
    while let Some(&token) = tokens.get(found.len()) {
        let at = found.len();
        match code.meaning(token) {
            Some(Meaning::Entity(_)) => found.push(name(at..at + 1)),
            Some(Meaning::Symbol(symbol)) if symbol.kind() == SymbolKind::Category => {
                found.push(Class::Category);
                let rest = tokens.get(at + 1..).unwrap_or_default();
                let digits = rest.iter().take_while(|&&t| is_digit(code, t)).count();
                found.extend(std::iter::repeat_n(name(at..at + 1 + digits), digits));
            }
            meaning => found.push(of(meaning).unwrap_or(Class::Operator)),
        }
    }
    found
}

/// The class of each token of a code; a name is new. None for control tokens but `<eos>`.
pub(crate) fn by_token(code: &Code) -> Vec<Option<Class>> {
    code.tokens().map(|token| of(code.meaning(token))).collect()
}

fn is_digit(code: &Code, token: Token) -> bool {
    matches!(code.meaning(token), Some(Meaning::Symbol(symbol)) if symbol.kind() == SymbolKind::Numeral)
}

fn of(meaning: Option<Meaning>) -> Option<Class> {
    match meaning? {
        Meaning::Entity(_) => Some(Class::NewName),
        Meaning::Symbol(SymbolId::EOS) => Some(Class::Eos),
        Meaning::Symbol(symbol) => match symbol.kind() {
            SymbolKind::Numeral => Some(Class::NewName),
            SymbolKind::Structure => Some(Class::Structure),
            SymbolKind::Category => Some(Class::Category),
            SymbolKind::Control => None,
            _ => Some(Class::Operator),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_new_once_in_each_category() {
        // ∀x625 P1(x625, c1) <eos>
        let ids = [630, 644, 1, 0, 646, 1, 639, 644, 1, 0, 641, 645, 1, 640, 657];
        let tokens = ids.map(Token::new);
        use Class::{Category as C, Eos, NewName as N, OldName as O, Operator, Structure as S};
        assert_eq!(classes(&Code::PLAIN, &tokens), [Operator, C, N, N, C, N, S, C, O, O, S, C, N, S, Eos]);
    }

    #[test]
    fn whole_names_are_new_once() {
        use fol::notation::{Entities, Entity, Notation, Tokenization};
        let law = fol::law::Law::named("seed", &[]).unwrap();
        let name = |category, index| Entity { category, index };
        let entities = [name(SymbolId::VAR, 625), name(SymbolId::PRED, 1), name(SymbolId::CONST, 1)];
        let entities = Entities::new(entities).unwrap();
        let code =
            Code::new(Tokenization::Atomic, Notation::Infix, &law.signature(), Some(entities)).unwrap();
        let ids = [630, 644, 1, 0, 646, 1, 639, 644, 1, 0, 641, 645, 1, 640];
        let text: Vec<SymbolId> = ids.into_iter().filter_map(SymbolId::new).collect();
        let tokens = [code.encode(&text).unwrap(), vec![code.boundaries()[1]]].concat();
        use Class::{Eos, NewName as N, OldName as O, Operator, Structure as S};
        assert_eq!(classes(&code, &tokens), [Operator, N, N, S, O, S, N, S, Eos]);
        assert_eq!(by_token(&code).len(), code.size());
    }
}
