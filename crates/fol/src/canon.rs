//! Canonical forms: which texts count as the same (F25, F26, F27).
//!
//! K0 is the tokens. K1 ([`alpha`]) forgets the names of bound variables, K2 ([`sig`]) also those of free
//! variables, predicates, functions, constants and sorts, K3 ([`skeleton`]) also who the arguments are. A
//! form is again a sequence of tokens; its [`Key`] stands for the class.
//!
//! K1 and K2 are the tokens of a walk with other indices, K3 is what a walk writes without its names. A data
//! set brings every formula into all forms; [`Canonicalizer`] keeps the room for that.

use std::collections::HashMap;

use crate::ast::{Text, Variable};
use crate::codec::push_index;
use crate::encode::push;
use crate::error::Refusal;
use crate::key::Key;
use crate::read::decode;
use crate::symbol::SymbolId;
use crate::walk::{Event, free_variables, walk};

/// The form up to names of bound variables (K1).
pub fn alpha(text: &Text) -> Vec<SymbolId> {
    let mut out = Vec::new();
    write_alpha(text, &free_variables(text), &mut out);
    out
}

/// The form up to names of any kind (K2).
pub fn sig(text: &Text) -> Vec<SymbolId> {
    let mut out = Vec::new();
    write_sig(text, &free_variables(text), &mut Numbering::default(), &mut out);
    out
}

/// The connectives, quantifiers and shapes of atoms (K3).
pub fn skeleton(text: &Text) -> Vec<SymbolId> {
    let mut out = Vec::new();
    write_skeleton(text, &mut out);
    out
}

/// The keys of a text at K0, K1, K2 and K3.
pub type Keys = [Key; 4];

/// Brings canonical tokens into their forms, with buffers that are kept from text to text.
#[derive(Debug, Default)]
pub struct Canonicalizer {
    numbering: Numbering,
    out: Vec<SymbolId>,
}

impl Canonicalizer {
    /// The keys of canonical tokens, without `<bos>` and `<eos>`.
    ///
    /// # Errors
    /// As the strict reader, if the tokens are not canonical.
    pub fn keys(&mut self, tokens: &[SymbolId]) -> Result<Keys, Refusal> {
        let text = decode(tokens)?;
        let free = free_variables(&text);
        let Self { numbering, out } = self;
        let mut key = |write: &mut dyn FnMut(&mut Vec<SymbolId>)| {
            out.clear();
            write(out);
            Key::of(out)
        };
        Ok([
            Key::of(tokens),
            key(&mut |out| write_alpha(&text, &free, out)),
            key(&mut |out| write_sig(&text, &free, numbering, out)),
            key(&mut |out| write_skeleton(&text, out)),
        ])
    }
}

/// K1: binder number k has the k-th smallest index that is not free.
fn write_alpha(text: &Text, free: &[Variable], out: &mut Vec<SymbolId>) {
    let mut free: Vec<u64> = free.iter().map(|variable| variable.0).collect();
    free.sort_unstable();
    let mut free = free.into_iter().peekable();
    let mut unused = (0..).filter(|index| free.next_if_eq(index).is_none());
    let mut binders = Vec::new();
    walk(text, |_, event| {
        if let Event::Binder { .. } = event {
            binders.extend(unused.next());
        }
        let renamed = match event {
            Event::Binder { .. } => binders.last().copied(),
            Event::Occurrence { binder: Some(binder), .. } => binders.get(binder).copied(),
            _ => None,
        };
        push(out, event, renamed);
    });
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

/// K2: all names are numbered by first occurrence; binders follow the free variables.
fn write_sig(text: &Text, free: &[Variable], numbering: &mut Numbering, out: &mut Vec<SymbolId>) {
    numbering.numbers.clear();
    numbering.series.clear();
    let mut binders = free.len() as u64;
    walk(text, |_, event| {
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
    });
}

/// K3: no name but the category and arity of a predicate, and of what a definition defines.
fn write_skeleton(text: &Text, out: &mut Vec<SymbolId>) {
    walk(text, |_, event| match event {
        Event::Symbol(_) | Event::Define(_) | Event::Dot { .. } => push(out, event, None),
        Event::Binder { quantifier, .. } => out.extend(quantifier),
        Event::Name { category, arity, head, .. } if head || category == SymbolId::PRED => {
            out.push(category);
            if category != SymbolId::CONST {
                push_index(out, arity as u64);
            }
        }
        _ => {}
    });
}
