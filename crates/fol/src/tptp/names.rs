//! TPTP names to indices.
//!
//! A file is parsed twice. The first time its names are collected and each gets the number of its entry. At the
//! end of the file the indices are known: `p<n>`, `f<n>`, `c<n>`, `X<n>` and `v<n>` keep their numbers, the other
//! names get the smallest unused index of their category in order of first appearance. The second time, names
//! are met in the same order, and each gets its index.

use std::collections::{BTreeMap, BTreeSet};

use crate::ast::{Constant, Function, Predicate, Term, Variable};
use crate::error::{Kind, Refusal, Stage};
use crate::input::Names;
use crate::read::unused::Unused;
use crate::symbol::SymbolId;

/// The names of a file.
#[derive(Default)]
pub(super) struct Table {
    entries: Vec<Entry>,
    /// The index of each entry, the second time.
    indices: Vec<u64>,
    provisional: BTreeMap<(SymbolId, String, Option<Kept>), u64>,
    /// The arities of `p5` and `f5` written without suffix: `p5_1` is another symbol where `p5` is unary.
    plain: BTreeSet<(SymbolId, u64, usize)>,
}

struct Entry {
    category: SymbolId,
    name: String,
    kept: Option<Kept>,
    /// The lexeme at which it first stands.
    first: usize,
}

/// A number in a name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Kept {
    number: u64,
    /// The suffix of `p5_1`.
    arity: Option<usize>,
    /// The name is `v<n>`.
    rigid: bool,
}

impl Kept {
    fn plain(number: u64) -> Self {
        Self { number, arity: None, rigid: false }
    }
}

impl Table {
    /// The provisional variable of an upper-case word.
    pub(super) fn variable(&mut self, name: &str, at: usize) -> Result<Variable, Refusal> {
        let kept = number(name, 'X')?.map(Kept::plain);
        Ok(Variable(self.enter(SymbolId::VAR, name, kept, at)))
    }

    /// The provisional term of a name without arguments: `v<n>` is a free variable.
    pub(super) fn constant(&mut self, name: &str, at: usize) -> Result<Term, Refusal> {
        if let Some(number) = number(name, 'v')? {
            let kept = Some(Kept { rigid: true, ..Kept::plain(number) });
            return Ok(Term::Variable(Variable(self.enter(SymbolId::VAR, name, kept, at))));
        }
        let kept = number(name, 'c')?.map(Kept::plain);
        Ok(Term::Constant(Constant(self.enter(SymbolId::CONST, name, kept, at))))
    }

    /// The provisional function of a name with arguments.
    pub(super) fn function(&mut self, name: &str, arity: usize, at: usize) -> Result<Function, Refusal> {
        self.applied(SymbolId::FUNC, 'f', name, arity, at).map(Function)
    }

    /// The provisional predicate of a name.
    pub(super) fn predicate(&mut self, name: &str, arity: usize, at: usize) -> Result<Predicate, Refusal> {
        self.applied(SymbolId::PRED, 'p', name, arity, at).map(Predicate)
    }

    fn applied(
        &mut self,
        category: SymbolId,
        letter: char,
        name: &str,
        arity: usize,
        at: usize,
    ) -> Result<u64, Refusal> {
        let suffixed =
            name.strip_suffix(&format!("_{arity}")).map(|stem| number(stem, letter)).transpose()?;
        let kept = match (suffixed.flatten(), number(name, letter)?) {
            (Some(number), _) => Some(Kept { arity: Some(arity), ..Kept::plain(number) }),
            (None, Some(number)) => {
                self.plain.insert((category, number, arity));
                Some(Kept::plain(number))
            }
            (None, None) => None,
        };
        Ok(self.enter(category, name, kept, at))
    }

    fn enter(&mut self, category: SymbolId, name: &str, kept: Option<Kept>, at: usize) -> u64 {
        let Self { entries, provisional, .. } = self;
        let id = *provisional.entry((category, name.to_owned(), kept)).or_insert_with(|| {
            entries.push(Entry { category, name: name.to_owned(), kept, first: at });
            entries.len() as u64 - 1
        });
        if let Some(entry) = usize::try_from(id).ok().and_then(|id| entries.get_mut(id)) {
            // A function is entered after its arguments, so an inner use may have come first.
            entry.first = entry.first.min(at);
        }
        usize::try_from(id).ok().and_then(|id| self.indices.get(id)).copied().unwrap_or(id)
    }

    /// The table for the second time, and the names that did not keep their numbers.
    pub(super) fn resolved(&self) -> (Self, Names) {
        let rigid: BTreeSet<u64> =
            self.entries.iter().filter_map(|e| e.kept.filter(|k| k.rigid).map(|k| k.number)).collect();
        let kept: Vec<Option<u64>> = self.entries.iter().map(|entry| self.keeps(entry, &rigid)).collect();
        let mut unused = Unused::default();
        for (entry, number) in self.entries.iter().zip(&kept) {
            number.iter().for_each(|&number| unused.take(entry.category, number));
        }
        let mut given: BTreeMap<(SymbolId, &str), u64> = BTreeMap::new();
        let mut names = Names::new();
        let mut order: Vec<&Entry> =
            self.entries.iter().zip(&kept).filter(|(_, n)| n.is_none()).map(|(e, _)| e).collect();
        order.sort_by_key(|entry| entry.first);
        for entry in order {
            given.entry((entry.category, &entry.name)).or_insert_with(|| {
                let index = unused.smallest(entry.category);
                names.entry(entry.category.label()).or_default().insert(entry.name.clone(), index);
                index
            });
        }
        let indices = self.entries.iter().zip(kept).map(|(entry, kept)| {
            kept.or_else(|| given.get(&(entry.category, entry.name.as_str())).copied()).unwrap_or_default()
        });
        (Self { indices: indices.collect(), ..Self::default() }, names)
    }

    fn keeps(&self, entry: &Entry, rigid: &BTreeSet<u64>) -> Option<u64> {
        let kept = entry.kept?;
        let lost = match (entry.category, kept.arity) {
            (SymbolId::VAR, _) => !kept.rigid && rigid.contains(&kept.number),
            (category, Some(arity)) => self.plain.contains(&(category, kept.number, arity)),
            (_, None) => false,
        };
        (!lost).then_some(kept.number)
    }
}

/// The number of a name made of this letter and a number in shortest form.
fn number(name: &str, letter: char) -> Result<Option<u64>, Refusal> {
    let Some(digits) = name.strip_prefix(letter) else { return Ok(None) };
    let shortest = digits == "0" || !digits.starts_with('0');
    if digits.is_empty() || !shortest || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Ok(None);
    }
    digits.parse().map(Some).map_err(|_| {
        Refusal::new(Kind::IndexOverflow, format!("the number in {name} is above 2^64 - 1")).stage(Stage::Lex)
    })
}
