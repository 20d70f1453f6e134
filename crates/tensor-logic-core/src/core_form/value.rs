//! Constants, symbols and domains: what indices range over and what tuples hold.

use std::collections::HashMap;
use std::sync::Arc;

pub use datarel::{Const, SymbolId};

/// A tuple of a relation.
pub type Tuple = Vec<Const>;

/// The spellings of symbols.
#[derive(Debug, Clone, Default)]
pub struct Symbols {
    names: Vec<Arc<str>>,
    ids: HashMap<Arc<str>, SymbolId>,
}

impl Symbols {
    /// The id of a spelling, made if it is new.
    pub fn intern(&mut self, name: &str) -> SymbolId {
        if let Some(id) = self.ids.get(name) {
            return *id;
        }
        let shared: Arc<str> = Arc::from(name);
        let id = SymbolId(u32::try_from(self.names.len()).unwrap_or(u32::MAX));
        self.names.push(Arc::clone(&shared));
        self.ids.insert(shared, id);
        id
    }

    /// The id of a spelling that is there.
    pub fn id(&self, name: &str) -> Option<SymbolId> {
        self.ids.get(name).copied()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// The spelling of a symbol.
    pub fn name(&self, id: SymbolId) -> &str {
        self.names.get(id.0 as usize).map_or("", |name| name)
    }

    /// The order of answers: integers before symbols, integers by value, symbols by bytes.
    pub fn compare(&self, left: Const, right: Const) -> std::cmp::Ordering {
        match (left, right) {
            (Const::Symbol(a), Const::Symbol(b)) => self.name(a).cmp(self.name(b)),
            _ => left.cmp(&right),
        }
    }

    /// [`Symbols::compare`] along tuples.
    pub fn compare_tuples(&self, left: &[Const], right: &[Const]) -> std::cmp::Ordering {
        let pairs = left.iter().zip(right).map(|(a, b)| self.compare(*a, *b));
        pairs.into_iter().find(|order| order.is_ne()).unwrap_or(left.len().cmp(&right.len()))
    }

    /// A constant as it is written in a program: `3`, `Alice`, `"loves"`.
    pub fn show(&self, value: Const) -> String {
        match value {
            Const::Int(value) => value.to_string(),
            Const::Symbol(id) => {
                let name = self.name(id);
                let mut letters = name.chars();
                let bare = letters.next().is_some_and(char::is_uppercase)
                    && name.trim_end_matches('\'').chars().all(|c| c.is_alphanumeric() || c == '_');
                if bare { name.to_owned() } else { format!("{name:?}") }
            }
        }
    }
}

/// The values of a place or an index, in order: consecutive integers, or listed constants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Domain {
    /// `from..to`, both inclusive; empty where `to < from`.
    Interval {
        /// The first.
        from: i64,
        /// The last.
        to: i64,
    },
    /// Listed constants (symbols in declared or byte order; now and then integers with gaps).
    Listed(Arc<Listing>),
}

/// Listed constants with the way back.
#[derive(Debug, PartialEq, Eq)]
pub struct Listing {
    values: Vec<Const>,
    ordinals: HashMap<Const, usize>,
}

impl Domain {
    /// `0..n-1`.
    pub fn size(n: usize) -> Domain {
        Domain::Interval { from: 0, to: i64::try_from(n).unwrap_or(i64::MAX) - 1 }
    }

    /// These constants in this order; repeated ones count once. Consecutive integers become an
    /// interval.
    pub fn listed(values: impl IntoIterator<Item = Const>) -> Domain {
        let mut listing = Listing { values: Vec::new(), ordinals: HashMap::new() };
        for value in values {
            let next = listing.values.len();
            if *listing.ordinals.entry(value).or_insert(next) == next {
                listing.values.push(value);
            }
        }
        let first = listing.values.first().and_then(|value| value.int());
        let consecutive = |from: i64| {
            let numbered = (from..).zip(&listing.values);
            numbered.into_iter().all(|(expected, value)| *value == Const::Int(expected))
        };
        match first {
            Some(from) if consecutive(from) => {
                Domain::Interval { from, to: from + listing.values.len() as i64 - 1 }
            }
            _ => Domain::Listed(Arc::new(listing)),
        }
    }

    /// The number of values. An interval of more than `usize::MAX` saturates.
    pub fn len(&self) -> usize {
        match self {
            Domain::Interval { from, to } => {
                usize::try_from((i128::from(*to) - i128::from(*from) + 1).max(0)).unwrap_or(usize::MAX)
            }
            Domain::Listed(listing) => listing.values.len(),
        }
    }

    /// Whether there is no value.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The position of a value.
    pub fn ordinal(&self, value: Const) -> Option<usize> {
        match (self, value) {
            (Domain::Interval { from, to }, Const::Int(value)) => {
                let inside = *from <= value && value <= *to;
                inside.then(|| value.abs_diff(*from) as usize)
            }
            (Domain::Interval { .. }, Const::Symbol(_)) => None,
            (Domain::Listed(listing), value) => listing.ordinals.get(&value).copied(),
        }
    }

    /// The value at a position.
    pub fn value(&self, ordinal: usize) -> Option<Const> {
        match self {
            Domain::Interval { from, .. } => {
                let inside = ordinal < self.len();
                inside.then(|| Const::Int(from + ordinal as i64))
            }
            Domain::Listed(listing) => listing.values.get(ordinal).copied(),
        }
    }

    /// Whether it holds the value.
    pub fn contains(&self, value: Const) -> bool {
        self.ordinal(value).is_some()
    }

    /// All values in order.
    pub fn values(&self) -> impl Iterator<Item = Const> + '_ {
        (0..self.len()).map_while(|ordinal| self.value(ordinal))
    }
}

/// The element at a row-major position.
pub fn element(domains: &[Domain], mut at: usize) -> Tuple {
    let mut tuple: Tuple = Vec::with_capacity(domains.len());
    for domain in domains.iter().rev() {
        let size = domain.len().max(1);
        tuple.extend(domain.value(at % size));
        at /= size;
    }
    tuple.reverse();
    tuple
}
