//! A term whose nodes can be replaced.
//!
//! Every variable knows where it occurs, so that a substitution is a move: the argument's node goes to the place of
//! the occurrence. Only where there are several occurrences, in the branches of additive constructs, is it copied.

use std::collections::HashMap;
use std::rc::Rc;

use crate::term::{Node, NodeId, Term, Variable};
use crate::unfold::Unfolded;

pub(super) struct Graph {
    nodes: Vec<Node>,
    root: NodeId,
    occurrences: Vec<Vec<NodeId>>,
    /// Places that no term uses.
    free: Vec<NodeId>,
}

impl Graph {
    pub(super) fn new(unfolded: Unfolded) -> Self {
        let mut occurrences = vec![Vec::new(); unfolded.variables];
        for (i, node) in unfolded.nodes.iter().enumerate() {
            if let Node::Variable(x) = node
                && let Some(list) = occurrences.get_mut(x.index())
            {
                list.push(NodeId::new(i));
            }
        }
        Self { nodes: unfolded.nodes, root: unfolded.root, occurrences, free: Vec::new() }
    }

    pub(super) fn root(&self) -> NodeId {
        self.root
    }

    /// The number of nodes of the term.
    pub(super) fn size(&self) -> usize {
        self.nodes.len() - self.free.len()
    }

    pub(super) fn node(&self, id: NodeId) -> &Node {
        self.nodes.get(id.index()).unwrap_or(&Node::Unit)
    }

    /// The part of this number.
    pub(super) fn child(&self, id: NodeId, number: usize) -> Option<NodeId> {
        let (mut found, mut at) = (None, 0);
        self.node(id).children(|child| {
            if at == number {
                found = Some(child);
            }
            at += 1;
        });
        found
    }

    pub(super) fn set_child(&mut self, id: NodeId, number: usize, new: NodeId) {
        let mut at = 0;
        if let Some(node) = self.nodes.get_mut(id.index()) {
            node.children_mut(|child| {
                if at == number {
                    *child = new;
                }
                at += 1;
            });
        }
    }

    /// Puts a node at a place that holds none any more.
    pub(super) fn put(&mut self, id: NodeId, node: Node) {
        if let Node::Variable(x) = node
            && let Some(list) = self.occurrences.get_mut(x.index())
        {
            list.push(id);
        }
        if let Some(place) = self.nodes.get_mut(id.index()) {
            *place = node;
        }
    }

    /// Puts a node at a new place.
    pub(super) fn add(&mut self, node: Node) -> NodeId {
        let id = self.free.pop().unwrap_or_else(|| {
            self.nodes.push(Node::Unit);
            NodeId::new(self.nodes.len() - 1)
        });
        self.put(id, node);
        id
    }

    /// Takes a node away, but not its parts; the place is free.
    pub(super) fn take(&mut self, id: NodeId) -> Node {
        self.free.push(id);
        self.lift(id)
    }

    /// Takes a node away, but not its parts; the place stays reserved.
    pub(super) fn lift(&mut self, id: NodeId) -> Node {
        let node =
            self.nodes.get_mut(id.index()).map_or(Node::Unit, |place| std::mem::replace(place, Node::Unit));
        if let Node::Variable(x) = node
            && let Some(list) = self.occurrences.get_mut(x.index())
            && let Some(place) = list.iter().position(|o| *o == id)
        {
            list.swap_remove(place);
        }
        node
    }

    /// Moves a node to a place that holds none any more.
    pub(super) fn shift(&mut self, from: NodeId, to: NodeId) {
        let node = self.take(from);
        self.put(to, node);
    }

    /// Deletes a node with all its parts.
    pub(super) fn delete(&mut self, id: NodeId) {
        let mut todo = vec![id];
        while let Some(id) = todo.pop() {
            self.take(id).children(|child| todo.push(child));
        }
    }

    pub(super) fn variable(&mut self) -> Variable {
        self.occurrences.push(Vec::new());
        Variable::new(self.occurrences.len() - 1)
    }

    /// Replaces all occurrences of a variable by a term.
    pub(super) fn substitute(&mut self, variable: Variable, term: NodeId) {
        let places = self.occurrences.get_mut(variable.index()).map(std::mem::take).unwrap_or_default();
        let Some((last, others)) = places.split_last() else {
            self.delete(term);
            return;
        };
        for place in others {
            let copy = self.copy(term);
            self.shift(copy, *place);
        }
        self.shift(term, *last);
    }

    /// A copy of a term; what it binds gets new variables.
    pub(super) fn copy(&mut self, id: NodeId) -> NodeId {
        let copied = self.add(Node::Unit);
        let mut renamed: HashMap<Variable, Variable> = HashMap::new();
        let mut todo = vec![(id, copied)];
        while let Some((from, to)) = todo.pop() {
            let mut node = self.node(from).clone();
            node.children_mut(|child| {
                let place = self.add(Node::Unit);
                todo.push((*child, place));
                *child = place;
            });
            // A node is reached behind the binders of its variables.
            node.binders(|variable, _| _ = renamed.insert(variable, self.variable()));
            node.variables_mut(|variable| *variable = renamed.get(variable).copied().unwrap_or(*variable));
            self.put(to, node);
        }
        copied
    }

    /// The term as a table, parts before wholes.
    pub(super) fn term(&self) -> Term {
        let mut order = Vec::with_capacity(self.size());
        let mut todo = vec![self.root];
        while let Some(id) = todo.pop() {
            order.push(id);
            self.node(id).children(|child| todo.push(child));
        }
        // Wholes came before parts; turned around, parts come first.
        order.reverse();
        let mut places = vec![NodeId::new(0); self.nodes.len()];
        let (mut variables, mut names): (HashMap<Variable, Variable>, Vec<Rc<str>>) = Default::default();
        let mut nodes = Vec::with_capacity(order.len());
        for id in order {
            let mut node = self.node(id).clone();
            node.children_mut(|child| *child = places.get(child.index()).copied().unwrap_or(*child));
            node.variables_mut(|variable| {
                *variable = *variables.entry(*variable).or_insert_with(|| {
                    names.push(format!("v{}", names.len()).into());
                    Variable::new(names.len() - 1)
                });
            });
            if let Some(place) = places.get_mut(id.index()) {
                *place = NodeId::new(nodes.len());
            }
            nodes.push(node);
        }
        Term::from_parts(nodes, names)
    }
}
