//! The names of indices in a text.
//!
//! Different indices may share a name where they cannot meet: side by side, or one inside the
//! other where the inner scope does not use the outer one. Elsewhere the inner one gets a fresh
//! name. A wildcard has no name and always gets one.

use std::collections::BTreeSet;

use crate::program::{IndexId, Program};

/// Who may share a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sharing {
    /// A scope that is written out: it hides outer names that it does not use.
    Local,
    /// Names that guards alone hold, and those that the left side binds: each its own.
    Own,
}

/// The names that stand for indices at some point of a text.
#[derive(Debug)]
pub(super) struct Names<'p> {
    program: &'p Program,
    visible: Vec<(IndexId, String)>,
    /// Names that no other index of this term may have.
    own: BTreeSet<String>,
    /// All names of indices of the program; made when the first fresh one is needed.
    all: Option<BTreeSet<&'p str>>,
    /// Names that are declared for indices (in whole programs).
    pub(super) given: Vec<Option<String>>,
}

impl<'p> Names<'p> {
    pub(super) fn new(program: &'p Program) -> Names<'p> {
        Names { program, visible: Vec::new(), own: BTreeSet::new(), all: None, given: Vec::new() }
    }

    /// The name of an index at this point.
    pub(super) fn of(&self, id: IndexId) -> &str {
        let found = self.visible.iter().rev().find(|(known, _)| *known == id);
        match found {
            Some((_, name)) => name,
            None => self.program.indices.get(id.0 as usize).map_or("i", |index| &index.name),
        }
    }

    /// The index that a name stands for at this point.
    pub(super) fn find(&self, name: &str) -> Option<IndexId> {
        self.visible.iter().rev().find(|(_, known)| known == name).map(|(id, _)| *id)
    }

    /// The indices that have names at this point.
    pub(super) fn visible(&self) -> impl Iterator<Item = IndexId> + '_ {
        self.visible.iter().map(|(id, _)| *id)
    }

    /// Whether an index goes under a name that is declared for it.
    pub(super) fn is_declared(&self, id: IndexId) -> bool {
        let given = self.given.get(id.0 as usize).and_then(Option::as_ref);
        given.is_some_and(|name| self.of(id) == name)
    }

    pub(super) fn depth(&self) -> usize {
        self.visible.len()
    }

    pub(super) fn leave(&mut self, depth: usize) {
        self.visible.truncate(depth);
    }

    /// A new term: names of other terms may come again.
    pub(super) fn new_term(&mut self) {
        self.own = self.visible.iter().map(|(_, name)| name.clone()).collect();
    }

    /// Gives an index a name for what follows; `inside` are the indices that are used there.
    pub(super) fn bind(&mut self, id: IndexId, inside: &BTreeSet<IndexId>, sharing: Sharing) -> String {
        let given = self.given.get(id.0 as usize).cloned().flatten();
        let meets = |name: &String| sharing == Sharing::Own && self.own.contains(name);
        let name = match given.filter(|name| !meets(name)) {
            Some(name) => name,
            None => self.choose(id, inside, sharing),
        };
        if sharing == Sharing::Own {
            self.own.insert(name.clone());
        }
        self.visible.push((id, name.clone()));
        name
    }

    /// Gives an index this name, whatever else has it.
    pub(super) fn bind_as(&mut self, id: IndexId, name: &str) {
        self.visible.push((id, name.to_owned()));
    }

    fn choose(&mut self, id: IndexId, inside: &BTreeSet<IndexId>, sharing: Sharing) -> String {
        let own = self.program.indices.get(id.0 as usize).map_or("_", |index| index.name.as_str());
        let taken = |name: &str| {
            let other = self.find(name).filter(|other| *other != id);
            match sharing {
                Sharing::Local => other.is_some_and(|other| inside.contains(&other)),
                Sharing::Own => other.is_some() || self.own.contains(name),
            }
        };
        let declared = self.given.iter().flatten().any(|known| known == own);
        if own.starts_with(char::is_alphabetic) && !declared && !taken(own) {
            return own.to_owned();
        }
        self.fresh(own)
    }

    /// A name that no index of the program has.
    pub(super) fn fresh(&mut self, like: &str) -> String {
        let program = self.program;
        let all = self.all.get_or_insert_with(|| program.indices.iter().map(|i| i.name.as_str()).collect());
        let stem = like.trim_end_matches('\'');
        let stem = if stem.starts_with(char::is_alphabetic) { stem } else { "k" };
        let free = |name: &String| {
            !all.contains(name.as_str())
                && !self.own.contains(name)
                && !self.given.iter().flatten().any(|known| known == name)
                && !self.visible.iter().any(|(_, known)| known == name)
        };
        let mut names = (1_u64..).map(|number| format!("{stem}{number}"));
        names.find(free).unwrap_or_default()
    }
}
