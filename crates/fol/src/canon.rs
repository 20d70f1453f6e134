//! Canonical forms: which texts count as the same (F25, F26, F27).
//!
//! K0 is the tokens. K1 ([`alpha`]) forgets the names of bound variables, K2 ([`sig`]) also those of free
//! variables, predicates, functions, constants and sorts, K3 ([`skeleton`]) also who the arguments are. A
//! form is again a sequence of tokens; its [`Key`] stands for the class.
//!
//! All forms are written in one pass over the events of a walk: K1 and K2 with other indices, K3 without its
//! names. A data set brings every formula into all forms; [`Canonicalizer`] keeps the room for that, and takes
//! the events from the reader, which makes no tree of canonical tokens (`Events`).

use std::collections::BTreeMap;

use crate::ast::Text;
use crate::built::Make;
use crate::codec::push_index;
use crate::error::Refusal;
use crate::key::Key;
use crate::read::decode_into;
use crate::symbol::SymbolId;
use crate::walk::{Event, Scope, walk};

/// The form up to names of bound variables (K1).
pub fn alpha(text: &Text) -> Vec<SymbolId> {
    Canonicalizer::of(text).alpha
}

/// The form up to names of any kind (K2).
pub fn sig(text: &Text) -> Vec<SymbolId> {
    Canonicalizer::of(text).sig
}

/// The connectives, quantifiers and shapes of atoms (K3).
pub fn skeleton(text: &Text) -> Vec<SymbolId> {
    Canonicalizer::of(text).skeleton
}

/// The keys of a text at K0, K1, K2 and K3.
pub type Keys = [Key; 4];

/// Brings texts into their forms, with buffers that are kept from text to text.
#[derive(Debug, Default)]
pub struct Canonicalizer {
    events: Events,
    /// The free variables, ascending.
    free: Vec<u64>,
    /// The indices of the binders at K1.
    binders: Vec<u64>,
    numbering: Numbering,
    alpha: Vec<SymbolId>,
    sig: Vec<SymbolId>,
    skeleton: Vec<SymbolId>,
    bytes: Vec<u8>,
}

impl Canonicalizer {
    fn of(text: &Text) -> Self {
        let mut canonicalizer = Self::default();
        walk(text, |event| canonicalizer.events.all.push(event));
        canonicalizer.write();
        canonicalizer
    }

    /// The keys of canonical tokens, without `<bos>` and `<eos>`.
    ///
    /// # Errors
    /// As the strict reader, if the tokens are not canonical.
    pub fn keys(&mut self, tokens: &[SymbolId]) -> Result<Keys, Refusal> {
        self.events.restart();
        decode_into(tokens, &mut self.events)?;
        self.write();
        let Self { alpha, sig, skeleton, bytes, .. } = self;
        let exact = Key::with(bytes, tokens);
        let alpha = if alpha == tokens { exact } else { Key::with(bytes, alpha) };
        Ok([exact, alpha, Key::with(bytes, sig), Key::with(bytes, skeleton)])
    }

    /// Writes all forms of the events.
    ///
    /// K1: binder number k has the k-th smallest index that is not free. K2: all names are numbered by first
    /// occurrence; binders follow the free variables. K3: no name but the category and arity of a predicate, and of
    /// what a definition defines.
    fn write(&mut self) {
        let Self { events, free, binders, numbering, alpha, sig, skeleton, .. } = self;
        [&mut *alpha, sig, skeleton].into_iter().for_each(Vec::clear);
        binders.clear();
        numbering.restart();
        free.clear();
        free.extend(events.all.iter().filter_map(|event| match event {
            Event::Occurrence { variable, binder: None, .. } => Some(variable.0),
            _ => None,
        }));
        free.sort_unstable();
        free.dedup();
        let number_of_free = free.len();
        let mut free = free.iter().copied().peekable();
        let mut unused = (0..).filter(|index| free.next_if_eq(index).is_none());
        for &event in &events.all {
            let (symbol, name) = event.tokens();
            if let Some(symbol) = symbol {
                alpha.push(symbol);
                sig.push(symbol);
                if !matches!(event, Event::Punctuation(_)) {
                    skeleton.push(symbol);
                }
            }
            let Some((category, index)) = name else { continue };
            if let Event::Binder { .. } = event {
                binders.extend(unused.next());
            }
            let binder = match event {
                Event::Binder { .. } => binders.len().checked_sub(1),
                Event::Occurrence { binder, .. } => binder,
                _ => None,
            };
            let renamed = binder.and_then(|binder| binders.get(binder)).copied().unwrap_or(index);
            let arity = if let Event::Name { arity, .. } = event { arity } else { 0 };
            let numbered = match binder {
                Some(binder) => (number_of_free + binder) as u64,
                None => numbering.number((category, arity, index)),
            };
            alpha.push(category);
            push_index(alpha, renamed);
            sig.push(category);
            push_index(sig, numbered);
            if matches!(event, Event::Name { head, .. } if head || category == SymbolId::PRED) {
                skeleton.push(category);
                if category != SymbolId::CONST {
                    push_index(skeleton, arity as u64);
                }
            }
        }
    }
}

/// Numbers from 0 by first occurrence, in a series for each category and arity.
#[derive(Debug, Default)]
struct Numbering {
    /// The first [`FEW`] names, which are found soonest by looking at each.
    few: Vec<(Name, u64)>,
    others: BTreeMap<Name, u64>,
    /// How many names each series has.
    series: Vec<((SymbolId, usize), u64)>,
}

/// Category, arity and index.
type Name = (SymbolId, usize, u64);

const FEW: usize = 16;

impl Numbering {
    fn restart(&mut self) {
        self.few.clear();
        self.others.clear();
        self.series.clear();
    }

    fn number(&mut self, name: Name) -> u64 {
        let few = self.few.iter().find(|(known, _)| *known == name).map(|(_, number)| number);
        if let Some(number) = few.or_else(|| self.others.get(&name)) {
            return *number;
        }
        let (category, arity, _) = name;
        let number = match self.series.iter_mut().find(|(series, _)| *series == (category, arity)) {
            Some((_, count)) => std::mem::replace(count, *count + 1),
            None => {
                self.series.push(((category, arity), 1));
                0
            }
        };
        if self.few.len() < FEW {
            self.few.push((name, number));
        } else {
            self.others.insert(name, number);
        }
        number
    }
}

/// The events of canonical tokens as they are read: arities, heads and binders are known later than their symbols.
#[derive(Debug, Default)]
struct Events {
    all: Vec<Event>,
    /// The names whose arguments are being read, innermost last.
    open: Vec<usize>,
    /// Where the statement began.
    statement: usize,
    scope: Scope,
}

impl Make for Events {
    type Of<T> = ();

    fn make<T>(_: impl FnOnce() -> T) {}

    fn both<A, B, T>((): (), (): (), _: impl FnOnce(A, B) -> T) {}

    fn all<T>(_: Vec<()>) {}

    fn note(&mut self, mut event: Event) {
        match &mut event {
            Event::Statement => {
                self.statement = self.all.len();
                self.scope.clear();
            }
            Event::Punctuation(SymbolId::LPAREN) => self.open.extend(self.all.len().checked_sub(1)),
            Event::Define(_) => self.head(),
            Event::Binder { variable, .. } => self.scope.bind(*variable),
            Event::Occurrence { variable, binder, .. } => *binder = self.scope.find(*variable),
            _ => {}
        }
        if let Event::Punctuation(symbol @ (SymbolId::LPAREN | SymbolId::COMMA | SymbolId::RPAREN)) = event {
            let name = if symbol == SymbolId::RPAREN { self.open.pop() } else { self.open.last().copied() };
            if let Some(Event::Name { arity, .. }) = name.and_then(|name| self.all.get_mut(name)) {
                *arity += usize::from(symbol != SymbolId::RPAREN);
            }
        }
        self.all.push(event);
    }

    fn leave(&mut self) {
        self.scope.leave();
    }
}

impl Events {
    /// Before a text.
    fn restart(&mut self) {
        self.all.clear();
        self.open.clear();
        self.scope.clear();
        self.scope.binders = 0;
    }

    /// What the statement began with was the head of a definition.
    fn head(&mut self) {
        for event in self.all.iter_mut().skip(self.statement) {
            match event {
                Event::Name { head, .. } => *head = true,
                Event::Occurrence { variable, .. } => {
                    let variable = *variable;
                    self.scope.bind(variable);
                    *event = Event::Binder { variable, sort: None, quantifier: None, shadows: false };
                }
                _ => {}
            }
        }
    }
}
