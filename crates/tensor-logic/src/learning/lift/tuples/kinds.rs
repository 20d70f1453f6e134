//! Which places make a tuple, and which hold its block of numbers.
//!
//! Enter at [`Kinds::of`]. Places and indices that stand for the same constants are one class. A class that a parameter has a
//! place in, or that heads compute with, is one of blocks: its constants stay. All others make tuples.

use std::collections::{BTreeMap, BTreeSet};

use crate::program::{Argument, IndexFn, IndexId, Program, Role, TensorId};

/// What a place or an index is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// It makes tuples, which may be merged.
    Tuple,
    /// It makes tuples, and stays: tuples are merged within each of its constants.
    Group,
    /// It holds numbers of a tuple, and stays.
    Block,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Node {
    Place(TensorId, usize),
    Index(IndexId),
}

/// The kinds of all places and indices.
#[derive(Debug, Default)]
pub(super) struct Kinds {
    nodes: BTreeMap<Node, usize>,
    parents: Vec<usize>,
    blocks: BTreeSet<usize>,
    groups: BTreeSet<usize>,
}

impl Kinds {
    /// Those of a program; the index of this name makes groups.
    pub(super) fn of(program: &Program, kept: Option<&str>) -> Kinds {
        let mut kinds = Kinds::default();
        let mut blocks: Vec<Node> = Vec::new();
        for equation in &program.equations {
            for (at, function) in equation.head.iter().enumerate() {
                let place = Node::Place(equation.tensor, at);
                kinds.join(place, function);
                let again = equation.head.iter().take(at).any(|other| other == function);
                if function.alone().is_none() || again {
                    blocks.push(place);
                }
            }
            equation.visit_reads(&mut |read, _| {
                for (at, function) in read.arguments.iter().map(Argument::function).enumerate() {
                    let place = Node::Place(read.tensor, at);
                    function.into_iter().for_each(|function| kinds.join(place, function));
                }
            });
        }
        for (id, tensor) in (0..).map(TensorId).zip(&program.tensors) {
            for (at, place) in tensor.places.iter().enumerate() {
                if tensor.role == Role::Parameter || place.star {
                    blocks.push(Node::Place(id, at));
                }
            }
        }
        for node in blocks {
            let root = kinds.root_of(node);
            kinds.blocks.insert(root);
        }
        for (id, index) in (0..).map(IndexId).zip(&program.indices) {
            if kept == Some(index.name.as_str()) && kinds.nodes.contains_key(&Node::Index(id)) {
                let root = kinds.root_of(Node::Index(id));
                kinds.groups.insert(root);
            }
        }
        kinds
    }

    fn join(&mut self, place: Node, function: &IndexFn) {
        let place = self.root_of(place);
        if let Some(index) = function.alone() {
            let index = self.root_of(Node::Index(index));
            if let Some(parent) = self.parents.get_mut(index) {
                *parent = place;
            }
        }
    }

    fn root_of(&mut self, node: Node) -> usize {
        let next = self.parents.len();
        let id = *self.nodes.entry(node).or_insert(next);
        if id == next {
            self.parents.push(next);
        }
        self.root(id)
    }

    fn root(&self, mut id: usize) -> usize {
        while let Some(parent) = self.parents.get(id).copied().filter(|parent| *parent != id) {
            id = parent;
        }
        id
    }

    fn kind(&self, node: Node) -> Kind {
        match self.nodes.get(&node).map(|id| self.root(*id)) {
            Some(root) if self.groups.contains(&root) => Kind::Group,
            Some(root) if !self.blocks.contains(&root) => Kind::Tuple,
            _ => Kind::Block,
        }
    }

    pub(super) fn of_index(&self, index: IndexId) -> Kind {
        self.kind(Node::Index(index))
    }

    pub(super) fn of_place(&self, tensor: TensorId, place: usize) -> Kind {
        self.kind(Node::Place(tensor, place))
    }
}
