//! The names of indices in a text.
//!
//! Different indices may share a name where they cannot meet: side by side, or one inside the
//! other where the inner scope does not use the outer one. Elsewhere the inner one gets a fresh
//! name. A wildcard has no name and always gets one.

use std::cell::RefCell;
use std::collections::BTreeSet;

use crate::program::{IndexId, Program, Range};
use crate::value::Domain;

/// The indices that a whole program declares.
#[derive(Debug, Default)]
pub(super) struct Declarations {
    /// Names and what they range over, in order of need.
    pub(super) declared: Vec<(String, Domain)>,
    /// Names that cannot be declared.
    pub(super) taken: BTreeSet<String>,
}

impl Declarations {
    pub(super) fn has(&self, name: &str) -> bool {
        self.declared.iter().any(|(known, _)| known == name)
    }

    /// Whether a name is declared to range over this.
    pub(super) fn is(&self, name: &str, domain: &Domain) -> bool {
        self.declared.iter().any(|(known, own)| known == name && own == domain)
    }

    /// The name of an index with this range: like the one wanted, and none of those in use.
    pub(super) fn declare(&mut self, wanted: &str, domain: &Domain, in_use: &BTreeSet<String>) -> String {
        let plain = wanted.starts_with(char::is_alphabetic);
        let stem = if plain { wanted.trim_end_matches('\'') } else { "k" };
        let own = plain.then(|| wanted.to_owned());
        let names = own.into_iter().chain((1_u64..).map(|number| format!("{stem}{number}")));
        for name in names {
            if in_use.contains(&name) || self.taken.contains(&name) {
                continue;
            }
            match self.declared.iter().find(|(known, _)| *known == name) {
                Some((_, known)) if known == domain => return name,
                Some(_) => {}
                None => {
                    self.declared.push((name.clone(), domain.clone()));
                    return name;
                }
            }
        }
        wanted.to_owned()
    }

    /// A name that is not declared.
    pub(super) fn loose(&mut self, at: usize) -> String {
        let mut name = format!("a{at}");
        while self.has(&name) {
            name.push('_');
        }
        self.taken.insert(name.clone());
        name
    }
}

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
    /// What a whole program declares, where one is printed.
    pub(super) declarations: Option<&'p RefCell<Declarations>>,
    /// Further names that were declared for indices of this statement.
    further: Vec<(IndexId, String)>,
}

impl<'p> Names<'p> {
    pub(super) fn new(program: &'p Program) -> Names<'p> {
        Names {
            program,
            visible: Vec::new(),
            own: BTreeSet::new(),
            all: None,
            given: Vec::new(),
            declarations: None,
            further: Vec::new(),
        }
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
        let further = self.further.iter().filter(|(known, _)| *known == id).map(|(_, name)| name);
        given.into_iter().chain(further).any(|name| self.of(id) == name)
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
        let name = match given {
            Some(name) if !meets(&name) => name,
            Some(_) => self.declare(id).unwrap_or_else(|| self.choose(id, inside, sharing)),
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

    /// A second name for an index that is declared, with the same range.
    fn declare(&mut self, id: IndexId) -> Option<String> {
        let entry = self.program.indices.get(id.0 as usize)?;
        let Range::Domain(domain) = &entry.range else { return None };
        let visible = self.visible.iter().map(|(_, name)| name.clone());
        let in_use: BTreeSet<String> = visible.chain(self.own.iter().cloned()).collect();
        let name = self.declarations?.borrow_mut().declare(&entry.name, domain, &in_use);
        self.further.push((id, name.clone()));
        Some(name)
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
        let declared = self.given.iter().flatten().any(|known| known == own)
            || self.declarations.is_some_and(|known| known.borrow().has(own));
        if own.starts_with(char::is_alphabetic) && !declared && !taken(own) {
            return own.to_owned();
        }
        self.fresh(own)
    }

    /// A name that no index of the program has, and that nothing declares.
    pub(super) fn fresh(&mut self, like: &str) -> String {
        let program = self.program;
        let declarations = self.declarations;
        let declared = |name: &str| declarations.is_some_and(|known| known.borrow().has(name));
        let all = self.all.get_or_insert_with(|| program.indices.iter().map(|i| i.name.as_str()).collect());
        let stem = like.trim_end_matches('\'');
        let stem = if stem.starts_with(char::is_alphabetic) { stem } else { "k" };
        let free = |name: &String| {
            !all.contains(name.as_str())
                && !self.own.contains(name)
                && !self.given.iter().flatten().any(|known| known == name)
                && !self.visible.iter().any(|(_, known)| known == name)
                && !declared(name)
        };
        let mut names = (1_u64..).map(|number| format!("{stem}{number}"));
        let name = names.find(free).unwrap_or_default();
        if let Some(declarations) = declarations {
            declarations.borrow_mut().taken.insert(name.clone());
        }
        name
    }
}
