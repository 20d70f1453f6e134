//! Family `count`: a size is drawn, then a formula uniformly among all of that size (F40).

use serde_json::{Value as Json, json};
use toml::Table;

use super::config::Keys;
use super::tables::{CONNECTIVE_SYMBOLS, blocks, spread};
use crate::ast::{Connective, Quantifier, Relation, Sign};
use crate::error::Refusal;
use crate::signature::Signature;
use crate::symbol::SymbolId;

const KEYS: [&str; 13] = [
    "predicates",
    "constants",
    "relations",
    "quantifiers",
    "connectives",
    "truth",
    "levels",
    "sizes",
    "names",
    "pool",
    "max_tokens",
    "family",
    "preset",
];

/// The largest size that is drawn: up to here the numbers of all levels are in the range of floating point.
const MAX_SIZE: usize = 160;

/// The keys of family `count`; the first six are the counting signature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CountLaw {
    /// Blocks of arity and number.
    pub(crate) predicates: Vec<(usize, u64)>,
    pub(crate) constants: u64,
    pub(crate) relations: Vec<Relation>,
    pub(crate) quantifiers: Vec<Quantifier>,
    /// NOT is a connective.
    pub(crate) not: bool,
    /// The binary ones.
    pub(crate) connectives: Vec<Connective>,
    pub(crate) truth: bool,
    /// Level, weight, smallest and largest size; level 0 stands for all formulas.
    pub(crate) sizes: Vec<(u8, u64, usize, usize)>,
    pub(crate) names: BinderNames,
    /// Names for binders are below this number.
    pub(crate) pool: u64,
    pub(crate) max_tokens: usize,
    /// The most binders on a path; the family `count` has no bound.
    pub(crate) scope: usize,
}

/// How binders are named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BinderNames {
    /// In preorder, from 0.
    Canonical,
    /// Uniformly from the pool, without repetition.
    Distinct,
}

impl CountLaw {
    /// The law of a complete table.
    pub(super) fn read(table: Table) -> Result<Self, Refusal> {
        let keys = Keys::new(table, "", &KEYS)?;
        let sizes = sizes(&keys)?;
        Self::of(&keys, sizes, usize::MAX)
    }

    /// The signature and the names that some keys say, for formulas of these sizes with so many binders on a path.
    pub(super) fn of(
        keys: &Keys,
        sizes: Vec<(u8, u64, usize, usize)>,
        scope: usize,
    ) -> Result<Self, Refusal> {
        let connectives = keys.signs("connectives", CONNECTIVE_SYMBOLS)?;
        let law = Self {
            predicates: blocks(keys, "predicates", 0)?,
            constants: keys.number("constants")?,
            relations: members(&keys.signs("relations", Relation::SYMBOLS)?),
            quantifiers: members(&keys.signs("quantifiers", Quantifier::SYMBOLS)?),
            not: connectives.contains(&SymbolId::NOT),
            connectives: members(&connectives),
            truth: keys.flag("truth")?,
            sizes,
            names: keys.word(
                "names",
                &[("canonical", BinderNames::Canonical), ("distinct", BinderNames::Distinct)],
            )?,
            pool: keys.number("pool")?,
            max_tokens: keys.size("max_tokens")?,
            scope,
        };
        if law.constants > u64::from(u32::MAX) {
            return Err(keys.bad("constants", "at most 4294967295 are possible"));
        }
        if law.names == BinderNames::Distinct && law.pool < law.most_binders() {
            return Err(keys.bad("pool", "a formula may have more binders than there are names"));
        }
        Ok(law)
    }

    /// The largest number of quantifiers on a path of a formula of so many nodes.
    pub(crate) fn deepest(&self, nodes: usize) -> usize {
        if self.quantifiers.is_empty() { 0 } else { nodes.saturating_sub(1).min(self.scope) }
    }

    /// The largest size.
    pub(crate) fn largest(&self) -> usize {
        self.sizes.iter().map(|s| s.3).max().unwrap_or(1)
    }

    /// Whether levels are drawn.
    pub(crate) fn has_levels(&self) -> bool {
        self.sizes.iter().any(|s| s.0 > 0)
    }

    /// The largest number of binders in a formula that the law draws.
    pub(crate) fn most_binders(&self) -> u64 {
        if self.quantifiers.is_empty() || self.scope == 0 {
            return 0;
        }
        let of = |&(level, weight, _, largest): &(u8, u64, usize, usize)| match (level, weight) {
            (1 | 2, _) | (_, 0) => 0,
            _ => largest.saturating_sub(1) as u64,
        };
        self.sizes.iter().map(of).max().unwrap_or(0)
    }

    /// Variables are the indices below this number.
    pub(crate) fn variables(&self) -> u64 {
        match self.names {
            BinderNames::Canonical => self.most_binders(),
            BinderNames::Distinct => self.pool,
        }
    }

    /// What the law can produce.
    pub(crate) fn signature(&self) -> Signature {
        Signature {
            not: self.not,
            connectives: self.connectives.clone(),
            quantifiers: self.quantifiers.clone(),
            relations: self.relations.clone(),
            truth: if self.truth { vec![true, false] } else { Vec::new() },
            predicates: spread(&self.predicates),
            functions: Vec::new(),
            constants: self.constants,
            variables: self.variables(),
            sorts: 0,
            unsorted: true,
            closed: true,
            statements: None,
        }
    }

    /// The keys of the signature and of the names.
    pub(super) fn shared_json(&self) -> Json {
        let not = self.not.then_some("NOT");
        let connectives: Vec<&str> = not.into_iter().chain(labels(&self.connectives)).collect();
        json!({
            "predicates": self.predicates,
            "constants": self.constants,
            "relations": labels(&self.relations),
            "quantifiers": labels(&self.quantifiers),
            "connectives": connectives,
            "truth": self.truth,
            "names": if self.names == BinderNames::Distinct { "distinct" } else { "canonical" },
            "pool": self.pool,
            "max_tokens": self.max_tokens,
        })
    }

    /// Every key.
    pub(super) fn to_json(&self) -> Json {
        let levels: Vec<(u8, u64)> = self.sizes.iter().filter(|s| s.0 > 0).map(|s| (s.0, s.1)).collect();
        let sizes = match self.sizes.as_slice() {
            [(0, _, lo, hi)] => json!([lo, hi]),
            sizes => json!(sizes.iter().map(|s| (s.0, s.2, s.3)).collect::<Vec<_>>()),
        };
        let mut keys = self.shared_json();
        (keys["family"], keys["levels"], keys["sizes"]) = (json!("count"), json!(levels), sizes);
        keys
    }
}

/// Levels, weights and sizes: `levels` beside a list of `[level, lo, hi]`, or one `[lo, hi]`.
fn sizes(keys: &Keys) -> Result<Vec<(u8, u64, usize, usize)>, Refusal> {
    let range = |lo: u64, hi: u64| match (usize::try_from(lo), usize::try_from(hi)) {
        (Ok(lo), Ok(hi)) if 1 <= lo && lo <= hi && hi <= MAX_SIZE => Ok((lo, hi)),
        _ => Err(keys.bad("sizes", format!("a range from 1 to at most {MAX_SIZE} is needed"))),
    };
    let levels = keys.weighted("levels", 4)?;
    if levels.is_empty() {
        let [lo, hi] = keys.row::<2>("sizes")?;
        let (lo, hi) = range(lo, hi)?;
        return Ok(vec![(0, 1, lo, hi)]);
    }
    if levels.iter().all(|l| l.1 == 0) {
        return Err(keys.bad("levels", "some weight must be positive"));
    }
    let rows = keys.rows::<3>("sizes")?;
    let mut sizes = Vec::new();
    for (i, &(level, weight)) in levels.iter().enumerate() {
        if level == 0 || levels.iter().take(i).any(|l| l.0 == level) {
            return Err(keys.bad("levels", "levels are 1 to 4, each at most once"));
        }
        let Some([_, lo, hi]) = rows.iter().find(|r| r[0] == level) else {
            return Err(keys.bad("sizes", format!("the sizes of level {level} are missing")));
        };
        let (lo, hi) = range(*lo, *hi)?;
        sizes.push((level as u8, weight, lo, hi));
    }
    Ok(sizes)
}

fn labels<T: Sign>(signs: &[T]) -> Vec<&'static str> {
    signs.iter().map(|sign| sign.symbol().label()).collect()
}

/// The signs of these symbols, in id order.
fn members<T: Sign>(symbols: &[SymbolId]) -> Vec<T> {
    T::ALL.iter().copied().filter(|sign| symbols.contains(&sign.symbol())).collect()
}
