//! Terms, each stored once: equal terms have the same number, and what is asked of a term is known when it is made.

use std::hash::Hasher;

use crate::hash::{Map, Mixer};

/// The number of a term.
pub(super) type Id = u32;

/// Heads from this one on are variables.
const VARIABLE: u32 = 1 << 31;

/// The truth, which an atom of a predicate is said to equal.
pub(super) const TOP: Id = 0;

#[derive(Debug, Clone, Copy)]
struct Node {
    head: u32,
    start: u32,
    arity: u32,
    weight: u32,
    depth: u32,
    ground: bool,
    /// The next term with the same hash.
    next: Id,
}

/// The terms.
#[derive(Debug)]
pub(super) struct Bank {
    nodes: Vec<Node>,
    arguments: Vec<Id>,
    table: Map<u64, Id>,
}

const END: Id = Id::MAX;

impl Bank {
    pub(super) fn new() -> Self {
        let mut bank = Self { nodes: Vec::new(), arguments: Vec::new(), table: Map::default() };
        bank.apply(0, &[]);
        bank
    }

    /// How many terms there are.
    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    pub(super) fn variable(&mut self, number: u32) -> Id {
        self.intern(VARIABLE | number, &[])
    }

    /// A symbol, from 1, and its arguments; symbol 0 is the truth.
    pub(super) fn apply(&mut self, symbol: u32, arguments: &[Id]) -> Id {
        self.intern(symbol, arguments)
    }

    fn intern(&mut self, head: u32, arguments: &[Id]) -> Id {
        let mut mixer = Mixer::default();
        mixer.write_u32(head);
        arguments.iter().for_each(|argument| mixer.write_u32(*argument));
        let hash = mixer.finish();
        let first = self.table.get(&hash).copied().unwrap_or(END);
        let mut at = first;
        while at != END {
            let node = self.nodes[at as usize];
            if node.head == head && self.arguments(at) == arguments {
                return at;
            }
            at = node.next;
        }
        let (mut weight, mut depth, mut ground) = (1u32, 0, head & VARIABLE == 0);
        for &argument in arguments {
            let node = &self.nodes[argument as usize];
            weight = weight.saturating_add(node.weight);
            depth = depth.max(node.depth + 1);
            ground &= node.ground;
        }
        let start = self.arguments.len() as u32;
        self.arguments.extend_from_slice(arguments);
        let id = self.nodes.len() as Id;
        self.nodes.push(Node {
            head,
            start,
            arity: arguments.len() as u32,
            weight,
            depth,
            ground,
            next: first,
        });
        self.table.insert(hash, id);
        id
    }

    /// The symbol, if it is no variable.
    pub(super) fn symbol(&self, term: Id) -> Option<u32> {
        let head = self.nodes[term as usize].head;
        (head & VARIABLE == 0).then_some(head)
    }

    /// The number of a variable.
    pub(super) fn as_variable(&self, term: Id) -> Option<u32> {
        let head = self.nodes[term as usize].head;
        (head & VARIABLE != 0).then_some(head & !VARIABLE)
    }

    pub(super) fn arguments(&self, term: Id) -> &[Id] {
        let node = &self.nodes[term as usize];
        &self.arguments[node.start as usize..(node.start + node.arity) as usize]
    }

    /// How many symbols and variables it has; at most `u32::MAX`, since equal sub-terms are stored once and counted often.
    pub(super) fn weight(&self, term: Id) -> u32 {
        self.nodes[term as usize].weight
    }

    pub(super) fn depth(&self, term: Id) -> u32 {
        self.nodes[term as usize].depth
    }

    pub(super) fn is_ground(&self, term: Id) -> bool {
        self.nodes[term as usize].ground
    }

    /// Whether a term has a part.
    pub(super) fn contains(&self, term: Id, part: Id) -> bool {
        term == part
            || self.weight(term) > self.weight(part)
                && self.arguments(term).iter().any(|argument| self.contains(*argument, part))
    }

    /// A term with `new` in place of all parts `old`.
    pub(super) fn replaced(&mut self, term: Id, old: Id, new: Id) -> Id {
        if term == old {
            return new;
        }
        if self.weight(term) <= self.weight(old) {
            return term;
        }
        let node = self.nodes[term as usize];
        let mut arguments = Vec::with_capacity(node.arity as usize);
        let mut changed = false;
        for at in node.start..node.start + node.arity {
            let argument = self.arguments[at as usize];
            let replaced = self.replaced(argument, old, new);
            changed |= replaced != argument;
            arguments.push(replaced);
        }
        if changed { self.apply(node.head, &arguments) } else { term }
    }

    /// Adds the variables of a term, by first occurrence.
    pub(super) fn collect(&self, term: Id, found: &mut Vec<u32>) {
        if self.is_ground(term) {
            return;
        }
        match self.as_variable(term) {
            Some(variable) if found.contains(&variable) => {}
            Some(variable) => found.push(variable),
            None => self.arguments(term).iter().for_each(|argument| self.collect(*argument, found)),
        }
    }

    /// Adds the parts that are no variables, each once.
    pub(super) fn parts(&self, term: Id, found: &mut Vec<Id>) {
        if self.as_variable(term).is_none() && !found.contains(&term) {
            found.push(term);
            self.arguments(term).iter().for_each(|argument| self.parts(*argument, found));
        }
    }
}
