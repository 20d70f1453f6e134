//! Counting formulas exactly, and the order that numbers them (F31).
//!
//! G(n, s, r) is the number of formulas of n nodes over s variables in scope with quantifier depth at most r, up
//! to names of bound variables. Enter at [`Counter`]. One `Table` holds the values that one start (s, r) can
//! meet: each quantifier on a path adds a variable and takes one from the bound, so a row for each number of
//! quantifiers is enough. Tables are generic in the numbers: 128-bit integers while they last, big ones else.

mod fit;
mod rank;

use num_bigint::BigUint;
use num_traits::{CheckedAdd, CheckedMul, FromPrimitive, Unsigned};

use crate::ast::{Formula, Variable};
use crate::error::{Kind, Refusal};
use crate::law::by_size::{Amount, BySize, Ways};
use crate::law::config::bad_value;
use crate::law::{CountLaw, Law};
use crate::measure::size;
use crate::symbol::SymbolId;

/// The largest number of free variables.
const MAX_FREE: u64 = 100_000;

/// What a table counts with.
pub(crate) trait Number: Clone + Ord + Unsigned + CheckedAdd + CheckedMul + FromPrimitive {}
impl Number for u128 {}
impl Number for BigUint {}

/// A number that may have grown beyond its type.
impl<N: Number> Amount for Option<N> {
    type Factor = N;

    fn none() -> Self {
        Some(N::zero())
    }

    fn add(&mut self, factor: &N, more: &Self) {
        let product = more.as_ref().and_then(|more| factor.checked_mul(more));
        *self = self.as_ref().zip(product).and_then(|(sum, product)| sum.checked_add(&product));
    }

    /// Each pair of different sizes is counted with its mirror image.
    fn pairs(row: &[Self], n: usize) -> Self {
        let at = |i: usize| row.get(i)?.as_ref();
        let mut sum = N::zero();
        for i in 1..n.div_ceil(2) {
            sum = sum.checked_add(&at(i)?.checked_mul(at(n - i)?)?)?;
        }
        sum = sum.checked_add(&sum)?;
        if n > 0 && n.is_multiple_of(2) {
            let half = at(n / 2)?;
            sum = sum.checked_add(&half.checked_mul(half)?)?;
        }
        Some(sum)
    }

    fn quantified(&self) -> Self {
        self.clone()
    }
}

/// G(n, s, r) for one start, and the sums that unranking needs.
#[derive(Debug, Clone)]
pub(crate) struct Table<N> {
    law: CountLaw,
    /// Variables in scope at the start.
    free: u64,
    numbers: BySize<N>,
}

/// A symbol, or from [`VARIABLE`] on a variable by its number: an unranked formula whose binders have no names
/// yet. Numbers below `free` are free variables, the rest binders in preorder.
pub(crate) type Piece = u32;

/// The first piece that is a variable.
pub(crate) const VARIABLE: Piece = 1 << 16;

impl<N: Number> Table<N> {
    /// The table up to `nodes`; `None` if a number does not fit into `N`.
    pub(crate) fn new(law: &CountLaw, nodes: usize, free: u64, bound: Option<usize>) -> Option<Self> {
        let deepest = bound.map_or(usize::MAX, |r| r).min(law.deepest(nodes));
        let ways = Ways {
            not: law.not.then(N::one),
            binary: N::from_usize(law.connectives.len()),
            quantifier: N::from_usize(law.quantifiers.len()),
        };
        let atoms = |k| atoms(law, free, k);
        let numbers = BySize::new(nodes, deepest, atoms, &ways, |sum| sum).whole()?;
        Some(Self { law: law.clone(), free, numbers })
    }

    /// Formulas of n nodes below k quantifiers.
    pub(crate) fn get(&self, n: usize, k: usize) -> N {
        at(&self.numbers.formulas, n, k)
    }

    /// Pairs of operands of binary formulas of n nodes below k quantifiers.
    fn pairs(&self, n: usize, k: usize) -> N {
        at(&self.numbers.pairs, n, k)
    }

    /// Terms below k quantifiers.
    fn terms(&self, k: usize) -> Option<N> {
        terms(&self.law, self.free, k)
    }

    fn power(&self, k: usize, arity: usize) -> Option<N> {
        power(&self.terms(k)?, arity)
    }
}

fn at<N: Number>(rows: &[Vec<N>], n: usize, k: usize) -> N {
    rows.get(k).and_then(|row| row.get(n)).cloned().unwrap_or_else(N::zero)
}

fn terms<N: Number>(law: &CountLaw, free: u64, k: usize) -> Option<N> {
    N::from_u64(free)?.checked_add(&N::from_usize(k)?)?.checked_add(&N::from_u64(law.constants)?)
}

fn power<N: Number>(terms: &N, arity: usize) -> Option<N> {
    (0..arity).try_fold(N::one(), |power, _| power.checked_mul(terms))
}

fn atoms<N: Number>(law: &CountLaw, free: u64, k: usize) -> Option<N> {
    let terms: N = terms(law, free, k)?;
    let mut sum = if law.truth { N::from_u8(2)? } else { N::zero() };
    for &(arity, number) in &law.predicates {
        sum = sum.checked_add(&power(&terms, arity)?.checked_mul(&N::from_u64(number)?)?)?;
    }
    let relations = N::from_usize(law.relations.len())?;
    sum.checked_add(&power(&terms, 2)?.checked_mul(&relations)?)
}

/// Counts, ranks and unranks the formulas of one start.
pub struct Counter {
    table: Table<BigUint>,
    nodes: usize,
    bound: Option<usize>,
}

impl Counter {
    /// Formulas up to `nodes` nodes over the signature of a law of family `count`, with `free` free variables
    /// and quantifier depth at most `bound`.
    pub fn new(law: &Law, nodes: usize, free: u64, bound: Option<usize>) -> Result<Self, Refusal> {
        let law = law.counting(nodes)?;
        if free > MAX_FREE {
            return Err(bad_value("free", format!("at most {MAX_FREE} variables are possible")));
        }
        // Big integers do not overflow.
        let table = Table::new(law, nodes, free, bound).ok_or_else(|| bad_value("nodes", "too large"))?;
        Ok(Self { table, nodes, bound })
    }

    /// G(n, s, r).
    pub fn count(&self, nodes: usize) -> BigUint {
        self.table.get(nodes, 0)
    }

    /// The formula of a rank as tokens, bound variables numbered in preorder after the free ones.
    pub fn unrank(&self, nodes: usize, rank: &BigUint) -> Result<Vec<SymbolId>, Refusal> {
        let count = self.count(nodes);
        if *rank >= count {
            let message = format!("there are {count} formulas of {nodes} nodes, ranks from 0");
            return Err(Refusal::new(Kind::RankOutOfRange, message));
        }
        let mut pieces = Vec::new();
        self.table.unrank(nodes, rank.clone(), &mut pieces);
        let mut tokens = Vec::new();
        write_pieces(&pieces, u64::from, &mut tokens);
        Ok(tokens)
    }

    /// The rank of a formula among those of its size; bound names are free to choose, and an inner binder hides
    /// an outer one.
    pub fn rank(&self, formula: &Formula) -> Result<(usize, BigUint), Refusal> {
        fit::check(formula, &self.table.law, self.table.free, self.bound)?;
        let nodes = size(formula);
        if nodes > self.nodes {
            return Err(bad_value(
                "nodes",
                format!("the formula has {nodes} nodes, the table {}", self.nodes),
            ));
        }
        let mut scope: Vec<Variable> = (0..self.table.free).map(Variable).collect();
        let rank = self
            .table
            .rank(formula, &mut scope)
            .ok_or_else(|| Refusal::new(Kind::OffLaw, "the formula is not of this signature"))?;
        Ok((nodes, rank))
    }
}

/// Writes an unranked formula with a name for each variable.
pub(crate) fn write_pieces(pieces: &[Piece], name: impl Fn(u32) -> u64, out: &mut Vec<SymbolId>) {
    for &piece in pieces {
        if piece >= VARIABLE {
            out.push(SymbolId::VAR);
            crate::codec::push_index(out, name(piece - VARIABLE));
        } else if let Some(symbol) = u16::try_from(piece).ok().and_then(SymbolId::new) {
            out.push(symbol);
        }
    }
}
