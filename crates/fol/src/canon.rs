//! Canonical forms: which texts count as the same.
//!
//! K0 is the tokens. K1 ([`alpha`]) forgets the names of bound variables, K2 ([`sig`]) also those of free
//! variables, predicates, functions, constants and sorts, K3 ([`skeleton`]) also who the arguments are. A
//! form is again a sequence of tokens; its [`Key`] stands for the class.
//!
//! Enter at [`Canonicalizer`]. It works on canonical tokens, not on trees, because a data set is tokens and
//! every formula of it is brought into all forms: one pass notes where indices stand and what they mean, and
//! each form is then a copy with other indices.

use std::collections::HashMap;

use crate::ast::Text;
use crate::codec::{push_index, shifted};
use crate::error::Refusal;
use crate::key::Key;
use crate::read::MAX_DEPTH;
use crate::symbol::{SymbolId, SymbolKind};

/// The form up to names of bound variables (K1).
pub fn alpha(text: &Text) -> Vec<SymbolId> {
    form(text, |canonicalizer| canonicalizer.alpha().to_vec())
}

/// The form up to names of any kind (K2).
pub fn sig(text: &Text) -> Vec<SymbolId> {
    form(text, |canonicalizer| canonicalizer.sig().to_vec())
}

/// The connectives, quantifiers and shapes of atoms (K3).
pub fn skeleton(text: &Text) -> Vec<SymbolId> {
    form(text, |canonicalizer| canonicalizer.skeleton().to_vec())
}

fn form(text: &Text, form: impl Fn(&mut Canonicalizer) -> Vec<SymbolId>) -> Vec<SymbolId> {
    let tokens = crate::encode(text);
    let mut canonicalizer = Canonicalizer::default();
    match canonicalizer.scan(&tokens) {
        Some(()) => form(&mut canonicalizer),
        None => tokens, // only a tree that no reader builds
    }
}

/// The keys of a text at K0, K1, K2 and K3.
pub type Keys = [Key; 4];

/// Brings canonical tokens into their forms, with buffers that are kept from text to text.
#[derive(Debug, Default)]
pub struct Canonicalizer {
    tokens: Vec<SymbolId>,
    at: usize,
    names: Vec<Name>,
    skeleton: Vec<SymbolId>,
    /// Variables in scope with the numbers of their binders, innermost last.
    scope: Vec<(u64, usize)>,
    binders: usize,
    /// Free variables by first occurrence.
    free: Numbering,
    others: Numbering,
    out: Vec<SymbolId>,
}

/// An index in the tokens: where it stands and what it means.
#[derive(Debug, Clone, Copy)]
struct Name {
    /// Position of the category symbol.
    start: usize,
    /// Position after the last digit.
    end: usize,
    meaning: Meaning,
}

#[derive(Debug, Clone, Copy)]
enum Meaning {
    /// A binder, or a variable that it binds.
    Binder(usize),
    Free(u64),
    /// Any other name: the same category, arity and index mean the same.
    Other(SymbolId, usize, u64),
}

/// Numbers from 0 by first occurrence, in a series for each category and arity.
#[derive(Debug, Default)]
struct Numbering {
    numbers: HashMap<(SymbolId, usize, u64), u64>,
    series: HashMap<(SymbolId, usize), u64>,
}

impl Numbering {
    fn clear(&mut self) {
        self.numbers.clear();
        self.series.clear();
    }

    fn number(&mut self, category: SymbolId, arity: usize, index: u64) -> u64 {
        *self.numbers.entry((category, arity, index)).or_insert_with(|| {
            let next = self.series.entry((category, arity)).or_insert(0);
            *next += 1;
            *next - 1
        })
    }
}

impl Canonicalizer {
    /// Takes up canonical tokens, without `<bos>` and `<eos>`.
    ///
    /// # Errors
    /// As the strict reader, if the tokens are not canonical.
    pub fn read(&mut self, tokens: &[SymbolId]) -> Result<(), Refusal> {
        match self.scan(tokens) {
            Some(()) => Ok(()),
            None => crate::decode(tokens).map(|_| ()),
        }
    }

    /// The keys of canonical tokens.
    ///
    /// # Errors
    /// As the strict reader, if the tokens are not canonical.
    pub fn keys(&mut self, tokens: &[SymbolId]) -> Result<Keys, Refusal> {
        self.read(tokens)?;
        Ok([Key::of(tokens), Key::of(self.alpha()), Key::of(self.sig()), Key::of(self.skeleton())])
    }

    /// K1: binder number k has the k-th smallest index that is not free.
    pub fn alpha(&mut self) -> &[SymbolId] {
        let mut free: Vec<u64> = self.names.iter().filter_map(|name| name.meaning.free()).collect();
        free.sort_unstable();
        free.dedup();
        let mut free = free.into_iter().peekable();
        let unused = (0..).filter(|index| free.next_if_eq(index).is_none());
        let binders: Vec<u64> = unused.take(self.binders).collect();
        self.write(|meaning| match meaning {
            Meaning::Binder(k) => binders.get(k).copied(),
            _ => None,
        });
        &self.out
    }

    /// K2: all names are numbered by first occurrence; binders follow the free variables.
    pub fn sig(&mut self) -> &[SymbolId] {
        self.free.clear();
        self.others.clear();
        let (mut free, mut others) = (std::mem::take(&mut self.free), std::mem::take(&mut self.others));
        for name in &self.names {
            if let Some(index) = name.meaning.free() {
                free.number(SymbolId::VAR, 0, index);
            }
        }
        let count = free.numbers.len() as u64;
        self.write(|meaning| {
            Some(match meaning {
                Meaning::Binder(k) => count + k as u64,
                Meaning::Free(index) => free.number(SymbolId::VAR, 0, index),
                Meaning::Other(category, arity, index) => others.number(category, arity, index),
            })
        });
        (self.free, self.others) = (free, others);
        &self.out
    }

    /// K3.
    pub fn skeleton(&self) -> &[SymbolId] {
        &self.skeleton
    }

    /// Copies the tokens with new indices; `None` keeps an index.
    fn write(&mut self, mut index: impl FnMut(Meaning) -> Option<u64>) {
        self.out.clear();
        let mut copied = 0;
        for name in &self.names {
            let Some(index) = index(name.meaning) else { continue };
            self.out.extend(self.tokens.get(copied..=name.start).into_iter().flatten());
            push_index(&mut self.out, index);
            copied = name.end;
        }
        self.out.extend(self.tokens.get(copied..).into_iter().flatten());
    }

    // --- the pass over the tokens; `None` where they are not canonical ----------------------------------

    fn scan(&mut self, tokens: &[SymbolId]) -> Option<()> {
        self.tokens.clear();
        self.tokens.extend_from_slice(tokens);
        self.names.clear();
        self.skeleton.clear();
        (self.at, self.binders) = (0, 0);
        let defines = tokens.contains(&SymbolId::DEFINE);
        loop {
            self.scope.clear();
            self.statement(defines)?;
            match self.next() {
                None => return Some(()),
                Some(SymbolId::DOT) => self.keep(),
                Some(_) => return None,
            }
            if self.next().is_none() {
                return Some(());
            }
        }
    }

    fn next(&self) -> Option<SymbolId> {
        self.tokens.get(self.at).copied()
    }

    /// Takes a symbol into the skeleton.
    fn keep(&mut self) {
        self.skeleton.extend(self.next());
        self.at += 1;
    }

    fn take(&mut self, symbol: SymbolId) -> Option<()> {
        (self.next()? == symbol).then(|| self.at += 1)
    }

    fn statement(&mut self, defines: bool) -> Option<()> {
        if defines && self.head_ends_in_define() {
            return self.definition();
        }
        if !matches!(self.next()?, SymbolId::ENTAILS | SymbolId::MODELS) {
            self.formula(0)?;
        }
        while let Some(SymbolId::COMMA | SymbolId::ENTAILS | SymbolId::MODELS | SymbolId::EQUIVALENT) =
            self.next()
        {
            self.keep();
            if self.next() == Some(SymbolId::UNKNOWN) { self.keep() } else { self.formula(0)? }
        }
        Some(())
    }

    /// Whether a category symbol, digits and perhaps parentheses stand here before a DEFINE.
    fn head_ends_in_define(&self) -> bool {
        let mut rest = self.tokens.iter().skip(self.at + 1).skip_while(|token| token.numeral().is_some());
        match rest.next() {
            Some(&SymbolId::LPAREN) => {
                rest.find(|&&token| token == SymbolId::RPAREN);
                rest.next() == Some(&SymbolId::DEFINE)
            }
            after => after == Some(&SymbolId::DEFINE),
        }
    }

    fn definition(&mut self) -> Option<()> {
        let category = self.next()?;
        let head = self.names.len();
        self.skeleton.push(category);
        let index = self.index(Meaning::Free)?; // its arity is not known yet
        let mut arity = 0;
        if self.next() == Some(SymbolId::LPAREN) {
            while self.take(if arity == 0 { SymbolId::LPAREN } else { SymbolId::COMMA }).is_some() {
                self.binder()?;
                arity += 1;
            }
            self.take(SymbolId::RPAREN)?;
        }
        self.mean(head, Meaning::Other(category, arity, index));
        if category != SymbolId::CONST {
            push_index(&mut self.skeleton, arity as u64);
        }
        (self.next()? == SymbolId::DEFINE).then(|| self.keep())?;
        if category == SymbolId::PRED { self.formula(0) } else { self.term(0) }
    }

    fn formula(&mut self, depth: usize) -> Option<()> {
        if depth > MAX_DEPTH {
            return None;
        }
        match self.next()? {
            SymbolId::NOT => {
                self.keep();
                self.formula(depth + 1)
            }
            SymbolId::LPAREN => {
                self.keep();
                self.formula(depth + 1)?;
                (self.next()?.kind() == SymbolKind::Connective).then(|| self.keep())?;
                self.formula(depth + 1)?;
                (self.next()? == SymbolId::RPAREN).then(|| self.keep())
            }
            SymbolId::TRUE | SymbolId::FALSE => {
                self.keep();
                Some(())
            }
            SymbolId::PRED => {
                self.skeleton.push(SymbolId::PRED);
                let arity = self.applied(SymbolId::PRED, depth)?;
                push_index(&mut self.skeleton, arity as u64);
                Some(())
            }
            quantifier if quantifier.kind() == SymbolKind::Quantifier => {
                self.keep();
                self.binder()?;
                if self.take(SymbolId::COLON).is_some() {
                    self.index(|index| Meaning::Other(SymbolId::SORT, 0, index))?;
                }
                self.formula(depth + 1)?;
                self.scope.pop();
                Some(())
            }
            _ => {
                self.term(depth)?;
                (self.next()?.kind() == SymbolKind::Relation).then(|| self.keep())?;
                self.term(depth)
            }
        }
    }

    fn term(&mut self, depth: usize) -> Option<()> {
        match self.next()? {
            SymbolId::VAR => {
                let name = self.names.len();
                let index = self.index(Meaning::Free)?;
                if let Some((_, binder)) = self.scope.iter().rev().find(|(variable, _)| *variable == index) {
                    let binder = *binder;
                    self.mean(name, Meaning::Binder(binder));
                }
            }
            SymbolId::CONST => {
                self.index(|index| Meaning::Other(SymbolId::CONST, 0, index))?;
            }
            SymbolId::FUNC if depth < MAX_DEPTH => {
                self.applied(SymbolId::FUNC, depth + 1)?;
            }
            _ => return None,
        }
        Some(())
    }

    /// A predicate or function with its arguments; gives its arity.
    fn applied(&mut self, category: SymbolId, depth: usize) -> Option<usize> {
        let name = self.names.len();
        let index = self.index(Meaning::Free)?; // its arity is not known yet
        let mut arity = 0;
        if self.take(SymbolId::LPAREN).is_some() {
            loop {
                self.term(depth)?;
                arity += 1;
                if self.take(SymbolId::COMMA).is_none() {
                    break;
                }
            }
            self.take(SymbolId::RPAREN)?;
        }
        self.mean(name, Meaning::Other(category, arity, index));
        Some(arity)
    }

    fn binder(&mut self) -> Option<()> {
        (self.next()? == SymbolId::VAR).then_some(())?;
        let binder = self.binders;
        let index = self.index(|_| Meaning::Binder(binder))?;
        self.scope.push((index, self.binders));
        self.binders += 1;
        Some(())
    }

    /// A category symbol and its index, noted with a meaning.
    fn index(&mut self, meaning: impl FnOnce(u64) -> Meaning) -> Option<u64> {
        let start = self.at;
        self.at += 1;
        let mut index = None;
        while let Some(digit) = self.next().and_then(SymbolId::numeral) {
            index = Some(shifted(index.unwrap_or(0), digit)?);
            self.at += 1;
        }
        let index = index?;
        self.names.push(Name { start, end: self.at, meaning: meaning(index) });
        Some(index)
    }

    fn mean(&mut self, name: usize, meaning: Meaning) {
        if let Some(name) = self.names.get_mut(name) {
            name.meaning = meaning;
        }
    }
}

impl Meaning {
    fn free(self) -> Option<u64> {
        match self {
            Self::Free(index) => Some(index),
            _ => None,
        }
    }
}
