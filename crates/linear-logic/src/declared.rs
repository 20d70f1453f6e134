//! What is declared so far: types, atoms and definitions, with the library before them, and how texts are read.

use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use calculemus_base::word::nearest;

use crate::formula::Formula;
use crate::literal::Order;
use crate::term::{Definition, Term};

/// What a text may leave out, and what it may contain.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Mode {
    /// Whether copies, discards and sources of boxes are inserted.
    pub structure: Structure,
    /// Whether the differential extension is on.
    pub extension: Extension,
}

/// Who writes the structural rules.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Structure {
    /// The elaborator.
    #[default]
    Inserted,
    /// The text: every variable is linear.
    Explicit,
}

/// Whether `coweaken`, `cocopy` and `coderelict` are terms.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Extension {
    /// They are refused.
    #[default]
    None,
    /// They are accepted.
    Differential,
}

/// A formula with a name and parameters.
#[derive(Debug)]
pub(crate) struct Abbreviation {
    pub(crate) parameters: Vec<Rc<str>>,
    pub(crate) formula: Formula,
}

/// A closed proof with its type.
#[derive(Debug, Clone)]
pub struct Checked {
    /// The kernel term.
    pub term: Term,
    /// Its type.
    pub formula: Formula,
}

/// The declarations that later texts see.
#[derive(Debug)]
pub struct Program {
    pub(crate) order: Order,
    pub(crate) mode: Mode,
    pub(crate) types: HashMap<Rc<str>, Abbreviation>,
    pub(crate) atoms: HashSet<Rc<str>>,
    pub(crate) definitions: HashMap<Rc<str>, Rc<Definition>>,
    pub(crate) library: HashMap<Rc<str>, Rc<Definition>>,
    /// All definitions, library first, in the order of the text.
    pub(crate) list: Vec<Rc<Definition>>,
    pub(crate) library_size: usize,
    /// How many names may still be compared with names that mean nothing.
    pub(crate) advice: Cell<usize>,
}

/// The most names that are compared with names that mean nothing, for all refusals together: those behind have no
/// advice, for thousands of refusals among thousands of names would take long. A comparison takes a microsecond.
pub(crate) const MAX_ADVICE: usize = 1 << 18;

impl Drop for Program {
    /// Later definitions refer to earlier ones: dropped from the end, none is dropped by another.
    fn drop(&mut self) {
        self.definitions.clear();
        self.library.clear();
        while self.list.pop().is_some() {}
    }
}

impl Program {
    /// The order of words that is in force.
    pub fn order(&self) -> Order {
        self.order
    }

    /// How texts are elaborated.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// The definitions of the library.
    pub fn library(&self) -> &[Rc<Definition>] {
        self.list.get(..self.library_size).unwrap_or(&[])
    }

    /// The definitions of the files, in order.
    pub fn definitions(&self) -> &[Rc<Definition>] {
        self.list.get(self.library_size..).unwrap_or(&[])
    }

    /// The definition that a name means.
    pub fn definition(&self, name: &str) -> Option<&Rc<Definition>> {
        self.definitions.get(name).or_else(|| self.library.get(name))
    }

    /// The name in scope that a name in a term may mean.
    pub(crate) fn near_term<'a>(&'a self, name: &str, bound: Vec<&'a str>) -> Option<&'a str> {
        self.compare(self.list.len() + bound.len())?;
        nearest(name, bound.into_iter().chain(self.list.iter().map(|definition| &*definition.name)))
    }

    /// The name in scope that a name in a formula may mean; `others` are those that are not declared in the file.
    pub(crate) fn near_formula<'a>(&'a self, name: &str, others: Vec<&'a str>) -> Option<&'a str> {
        self.compare(self.types.len() + self.atoms.len() + others.len())?;
        nearest(name, others.into_iter().chain(self.types.keys().chain(&self.atoms).map(|name| &**name)))
    }

    /// Counts names to be compared; `None` if these are too many.
    fn compare(&self, names: usize) -> Option<()> {
        self.advice.set(self.advice.get().checked_sub(names)?);
        Some(())
    }

    pub(crate) fn abbreviation(&self, name: &str) -> Option<&Abbreviation> {
        self.types.get(name)
    }

    pub(crate) fn has_atom(&self, name: &str) -> bool {
        self.atoms.contains(name)
    }
}
