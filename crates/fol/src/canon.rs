//! Canonical forms: which texts count as the same (F25, F26, F27).
//!
//! K0 is the tokens. K1 ([`alpha`]) forgets the names of bound variables, K2 ([`sig`]) also those of free
//! variables, predicates, functions, constants and sorts, K3 ([`skeleton`]) also who the arguments are. A
//! form is again a sequence of tokens; its [`Key`] stands for the class.
//!
//! K1 and K2 are the tokens of a walk with other indices, K3 is what a walk writes without its names. A data
//! set brings every formula into all forms; [`Canonicalizer`] keeps the room for that.

use std::collections::HashMap;

use crate::ast::Text;
use crate::codec::push_index;
use crate::encode::push;
use crate::error::Refusal;
use crate::key::Key;
use crate::read::decode;
use crate::symbol::SymbolId;
use crate::walk::{Event, walk};

/// The form up to names of bound variables (K1).
pub fn alpha(text: &Text) -> Vec<SymbolId> {
    Canonicalizer::of(text).alpha().to_vec()
}

/// The form up to names of any kind (K2).
pub fn sig(text: &Text) -> Vec<SymbolId> {
    Canonicalizer::of(text).sig().to_vec()
}

/// The connectives, quantifiers and shapes of atoms (K3).
pub fn skeleton(text: &Text) -> Vec<SymbolId> {
    Canonicalizer::of(text).skeleton().to_vec()
}

/// The keys of a text at K0, K1, K2 and K3.
pub type Keys = [Key; 4];

/// Brings texts into their forms, with buffers that are kept from text to text.
#[derive(Debug, Default)]
pub struct Canonicalizer {
    events: Vec<Event>,
    /// The free variables, ascending.
    free: Vec<u64>,
    /// The indices of the binders at K1.
    binders: Vec<u64>,
    numbering: Numbering,
    out: Vec<SymbolId>,
}

impl Canonicalizer {
    fn of(text: &Text) -> Self {
        let mut canonicalizer = Self::default();
        canonicalizer.take(text);
        canonicalizer
    }

    /// The keys of canonical tokens, without `<bos>` and `<eos>`.
    ///
    /// # Errors
    /// As the strict reader, if the tokens are not canonical.
    pub fn keys(&mut self, tokens: &[SymbolId]) -> Result<Keys, Refusal> {
        self.take(&decode(tokens)?);
        Ok([Key::of(tokens), Key::of(self.alpha()), Key::of(self.sig()), Key::of(self.skeleton())])
    }

    fn take(&mut self, text: &Text) {
        self.events.clear();
        self.free.clear();
        walk(text, |_, event| {
            self.events.push(event);
            if let Event::Occurrence { variable, binder: None, .. } = event {
                self.free.push(variable.0);
            }
        });
        self.free.sort_unstable();
        self.free.dedup();
    }

    /// K1: binder number k has the k-th smallest index that is not free.
    fn alpha(&mut self) -> &[SymbolId] {
        let Self { events, free, binders, out, .. } = self;
        let mut free = free.iter().copied().peekable();
        let mut unused = (0..).filter(|index| free.next_if_eq(index).is_none());
        binders.clear();
        out.clear();
        for &event in &*events {
            let renamed = match event {
                Event::Binder { .. } => {
                    binders.extend(unused.next());
                    binders.last().copied()
                }
                Event::Occurrence { binder: Some(binder), .. } => binders.get(binder).copied(),
                _ => None,
            };
            push(out, event, renamed);
        }
        out
    }

    /// K2: all names are numbered by first occurrence; binders follow the free variables.
    fn sig(&mut self) -> &[SymbolId] {
        let Self { events, free, numbering, out, .. } = self;
        numbering.numbers.clear();
        numbering.series.clear();
        out.clear();
        let mut binders = free.len() as u64;
        for &event in &*events {
            let renamed = match event {
                Event::Binder { .. } => {
                    binders += 1;
                    Some(binders - 1)
                }
                Event::Occurrence { binder: Some(binder), .. } => Some((free.len() + binder) as u64),
                Event::Occurrence { variable, .. } => Some(numbering.number(SymbolId::VAR, 0, variable.0)),
                Event::Name { category, index, arity, .. } => Some(numbering.number(category, arity, index)),
                Event::Sort(index) => Some(numbering.number(SymbolId::SORT, 0, index)),
                _ => None,
            };
            push(out, event, renamed);
        }
        out
    }

    /// K3: no name but the category and arity of a predicate, and of what a definition defines.
    fn skeleton(&mut self) -> &[SymbolId] {
        let Self { events, out, .. } = self;
        out.clear();
        for &event in &*events {
            match event {
                Event::Symbol(_) | Event::Define(_) | Event::Dot { .. } => push(out, event, None),
                Event::Binder { quantifier, .. } => out.extend(quantifier),
                Event::Name { category, arity, head, .. } if head || category == SymbolId::PRED => {
                    out.push(category);
                    if category != SymbolId::CONST {
                        push_index(out, arity as u64);
                    }
                }
                _ => {}
            }
        }
        out
    }
}

/// Numbers from 0 by first occurrence, in a series for each category and arity.
#[derive(Debug, Default)]
struct Numbering {
    numbers: HashMap<(SymbolId, usize, u64), u64>,
    series: HashMap<(SymbolId, usize), u64>,
}

impl Numbering {
    fn number(&mut self, category: SymbolId, arity: usize, index: u64) -> u64 {
        *self.numbers.entry((category, arity, index)).or_insert_with(|| {
            let next = self.series.entry((category, arity)).or_insert(0);
            *next += 1;
            *next - 1
        })
    }
}
