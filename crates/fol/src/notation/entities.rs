//! The list of entities, and symbols cut into tokens with it (N2–N5).

use std::collections::BTreeSet;
use std::fmt;

use super::Token;
use crate::codec::{push_index, shifted};
use crate::error::{Kind, Refusal, Stage};
use crate::signature::Signature;
use crate::symbol::{BASE, SymbolId, SymbolKind, VOCABULARY};

/// The symbols that are no numerals.
pub(super) const SIGNS: usize = VOCABULARY - BASE as usize;

/// The most tokens of a vocabulary.
const MOST: usize = 1 << 16;

/// A category symbol with an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Entity {
    /// VAR, CONST, PRED, FUNC or SORT.
    pub category: SymbolId,
    /// Its number.
    pub index: u64,
}

impl Entity {
    /// Its symbols: category and digits.
    pub fn symbols(self) -> Vec<SymbolId> {
        let mut symbols = vec![self.category];
        push_index(&mut symbols, self.index);
        symbols
    }

    /// The entity of a label such as `x3`; none for any other word.
    pub fn from_label(label: &str) -> Option<Self> {
        let category = CATEGORIES.into_iter().find(|c| label.starts_with(c.unicode()))?;
        let index = label.strip_prefix(category.unicode())?.parse().ok()?;
        let entity = Self { category, index };
        (entity.to_string() == label).then_some(entity)
    }
}

impl fmt::Display for Entity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.category.unicode(), self.index)
    }
}

/// In the order of their ids.
pub(super) const CATEGORIES: [SymbolId; 5] =
    [SymbolId::VAR, SymbolId::CONST, SymbolId::PRED, SymbolId::FUNC, SymbolId::SORT];

/// Entities by category, then by index; each once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entities(Vec<Entity>);

impl Entities {
    /// A list in its order.
    ///
    /// # Errors
    /// `BadValue` if there are more than 65,536 tokens with them.
    pub fn new(entities: impl IntoIterator<Item = Entity>) -> Result<Self, Refusal> {
        let sorted: BTreeSet<Entity> = entities.into_iter().take(MOST + 1).collect();
        check(sorted.len() as u64)?;
        Ok(Self(sorted.into_iter().collect()))
    }

    /// All that the texts of a law can hold.
    ///
    /// # Errors
    /// `BadValue` if they are more than 65,536 with the signs.
    pub fn of_signature(signature: &Signature) -> Result<Self, Refusal> {
        let numbers = [signature.variables, signature.constants, signature.sorts];
        check(numbers.iter().fold(0, |sum: u64, n| sum.saturating_add(*n)))?;
        let all = |category: SymbolId, number: u64| (0..number).map(move |index| Entity { category, index });
        let with_arity = |category: SymbolId, lists: &[Vec<usize>]| {
            let named = (0..).zip(lists).filter(|(_, arities)| !arities.is_empty());
            named.map(|(index, _)| Entity { category, index }).collect::<Vec<_>>()
        };
        Self::new(
            all(SymbolId::VAR, signature.variables)
                .chain(all(SymbolId::CONST, signature.constants))
                .chain(with_arity(SymbolId::PRED, &signature.predicates))
                .chain(with_arity(SymbolId::FUNC, &signature.functions))
                .chain(all(SymbolId::SORT, signature.sorts)),
        )
    }

    /// Those that occur in some texts, given as canonical symbols.
    ///
    /// # Errors
    /// As [`Entities::new`]; digits that are no index are refused at their place in their text.
    pub fn of_texts<'a>(texts: impl IntoIterator<Item = &'a [SymbolId]>) -> Result<Self, Refusal> {
        let mut found = BTreeSet::new();
        for text in texts {
            visit(text, |piece, _| {
                if let Piece::Entity(entity) = piece {
                    found.insert(entity);
                }
                Ok(())
            })?;
            check(found.len() as u64)?;
        }
        Self::new(found)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// In order.
    pub fn iter(&self) -> impl Iterator<Item = Entity> + '_ {
        self.0.iter().copied()
    }

    /// Number `at` of the list.
    pub fn get(&self, at: usize) -> Option<Entity> {
        self.0.get(at).copied()
    }

    /// The number of an entity.
    pub fn find(&self, entity: Entity) -> Option<usize> {
        self.0.binary_search(&entity).ok()
    }

    /// The entities of a category with their tokens.
    pub(crate) fn of_category(&self, category: SymbolId) -> impl Iterator<Item = (u64, Token)> + '_ {
        let from = self.0.partition_point(|e| e.category < category);
        let same = self.0.get(from..).unwrap_or_default().iter().take_while(move |e| e.category == category);
        same.zip(from..).filter_map(|(entity, at)| Some((entity.index, token(at)?)))
    }

    /// Symbols as tokens.
    pub(super) fn cut(&self, symbols: &[SymbolId]) -> Result<Vec<Token>, Refusal> {
        let mut tokens = Vec::with_capacity(symbols.len());
        visit(symbols, |piece, at| {
            tokens.push(match piece {
                Piece::Sign(symbol) => Token(symbol.get().saturating_sub(BASE)),
                Piece::Entity(entity) => self.find(entity).and_then(token).ok_or_else(|| {
                    Refusal::new(Kind::NotInSignature, format!("{entity} is none of {} entities", self.len()))
                        .at(at)
                        .found(entity.category.label())
                        .help("only names of the vocabulary have a token; entities = \"law\" takes all of the law's")
                })?,
            });
            Ok(())
        })?;
        Ok(tokens)
    }
}

fn token(at: usize) -> Option<Token> {
    u16::try_from(SIGNS + at).ok().map(Token)
}

fn check(entities: u64) -> Result<(), Refusal> {
    let room = (MOST - SIGNS) as u64;
    if entities > room {
        let found = if entities > MOST as u64 { format!("more than {MOST}") } else { entities.to_string() };
        return Err(Refusal::new(
            Kind::BadValue,
            format!("{found} entities; at most {room} have a token beside the {SIGNS} signs"),
        )
        .help("a law with fewer names, or the entities of the data"));
    }
    Ok(())
}

/// A part of a text that is one token.
enum Piece {
    Sign(SymbolId),
    Entity(Entity),
}

/// Visits the parts of symbols, each with the position of its first.
fn visit(
    symbols: &[SymbolId],
    mut each: impl FnMut(Piece, usize) -> Result<(), Refusal>,
) -> Result<(), Refusal> {
    let mut at = 0;
    while let Some(&symbol) = symbols.get(at) {
        let from = at;
        at += 1;
        if symbol.kind() == SymbolKind::Numeral {
            let refusal = Refusal::new(Kind::UnexpectedSymbol, format!("{symbol} is the digit of no index"));
            return Err(refusal.at(from).found(symbol.label()));
        }
        if symbol.kind() != SymbolKind::Category {
            each(Piece::Sign(symbol), from)?;
            continue;
        }
        let mut value = None;
        while let Some(digit) = symbols.get(at).and_then(|s| s.numeral()) {
            let located = |refusal: Refusal| refusal.stage(Stage::Parse).at(at).found(digit.symbol().label());
            if value == Some(0) {
                return Err(located(Refusal::leading_zero()));
            }
            value =
                Some(shifted(value.unwrap_or(0), digit).ok_or_else(|| located(Refusal::index_overflow()))?);
            at += 1;
        }
        match value {
            Some(index) => each(Piece::Entity(Entity { category: symbol, index }), from)?,
            None => {
                let kind = if at < symbols.len() { Kind::UnexpectedSymbol } else { Kind::UnexpectedEnd };
                let found = symbols.get(at).map_or("end", |s| s.label());
                return Err(Refusal::new(kind, format!("{symbol} needs an index")).at(at).found(found));
            }
        }
    }
    Ok(())
}
