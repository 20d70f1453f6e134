//! Kernel terms: explicit proofs, where every copy, discard, source of a box and type of a binder is written.
//!
//! A [`Term`] is a table of nodes; a node stands behind its parts, and the last one is the root. Reduction and the
//! insertion of copies make terms that are millions of nodes deep, so nothing that works on kernel terms follows them
//! by recursion: it runs over the table, or keeps its own list of what is still to do. Every binder has a variable of
//! its own, so nothing is ever captured.

use std::collections::HashSet;
use std::rc::Rc;

use crate::formula::{Formula, Instance};

/// Where a node stands in its table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(u32);

/// A variable of a term; it is bound in one place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Variable(u32);

macro_rules! ids {
    ($($id:ident),+) => {$(
        impl $id {
            /// The id at a place of its table.
            pub(crate) fn new(index: usize) -> Self {
                // Tables hold at most a few times `MAX_NODES` entries, far below 2³².
                Self(u32::try_from(index).unwrap_or(u32::MAX))
            }

            /// The place in its table.
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }
    )+};
}

ids!(NodeId, Variable);

/// A node of a term: its constructor, with the variables that it binds and the nodes of its parts.
#[derive(Debug, Clone)]
#[expect(
    missing_docs,
    reason = "the constructors of section 4, in its order; parts in the order of the text"
)]
pub enum Node {
    Variable(Variable),
    Lambda {
        variable: Variable,
        domain: Formula,
        codomain: Formula,
        body: NodeId,
    },
    Apply(NodeId, NodeId),
    Tensor(NodeId, NodeId),
    LetTensor {
        scrutinee: NodeId,
        left: Variable,
        right: Variable,
        body: NodeId,
    },
    Unit,
    LetUnit {
        scrutinee: NodeId,
        body: NodeId,
    },
    Derelict(NodeId),
    Promote {
        sources: Vec<(NodeId, Variable)>,
        body: NodeId,
    },
    Copy {
        scrutinee: NodeId,
        left: Variable,
        right: Variable,
        body: NodeId,
    },
    Discard {
        scrutinee: NodeId,
        body: NodeId,
    },
    With(NodeId, NodeId),
    First(NodeId),
    Second(NodeId),
    /// The formula is the right side, of which there is no term.
    InLeft(Formula, NodeId),
    /// The formula is the left side.
    InRight(Formula, NodeId),
    Case {
        scrutinee: NodeId,
        left: (Variable, NodeId),
        right: (Variable, NodeId),
    },
    Global {
        definition: Rc<Definition>,
        arguments: Vec<Formula>,
    },
    Numeral {
        value: u32,
        base: Formula,
    },
    /// The digits as they are written; `true` is 1.
    Word {
        digits: Rc<[bool]>,
        base: Formula,
    },
    Coweaken(Formula),
    Cocopy(NodeId, NodeId),
    Coderelict(NodeId),
}

/// A named closed proof, for all formulas of its parameters.
#[derive(Debug)]
pub struct Definition {
    /// Its name.
    pub name: Rc<str>,
    /// The names of its parameters.
    pub parameters: Vec<Rc<str>>,
    /// Its type.
    pub formula: Formula,
    /// Its proof; `None` if it was refused.
    pub term: Option<Term>,
}

/// A kernel term.
#[derive(Debug, Clone, Default)]
pub struct Term {
    nodes: Vec<Node>,
    names: Vec<Rc<str>>,
}

impl Node {
    /// The parts, in the order of the text.
    pub fn children(&self, mut visit: impl FnMut(NodeId)) {
        match self {
            Self::Variable(_)
            | Self::Unit
            | Self::Global { .. }
            | Self::Numeral { .. }
            | Self::Word { .. }
            | Self::Coweaken(_) => {}
            Self::Lambda { body: a, .. }
            | Self::Derelict(a)
            | Self::First(a)
            | Self::Second(a)
            | Self::InLeft(_, a)
            | Self::InRight(_, a)
            | Self::Coderelict(a) => visit(*a),
            Self::Apply(a, b)
            | Self::Tensor(a, b)
            | Self::With(a, b)
            | Self::Cocopy(a, b)
            | Self::LetTensor { scrutinee: a, body: b, .. }
            | Self::LetUnit { scrutinee: a, body: b }
            | Self::Copy { scrutinee: a, body: b, .. }
            | Self::Discard { scrutinee: a, body: b } => {
                visit(*a);
                visit(*b);
            }
            Self::Case { scrutinee, left, right } => {
                visit(*scrutinee);
                visit(left.1);
                visit(right.1);
            }
            Self::Promote { sources, body } => {
                sources.iter().for_each(|(source, _)| visit(*source));
                visit(*body);
            }
        }
    }

    /// The parts, to be changed.
    pub(crate) fn children_mut(&mut self, mut visit: impl FnMut(&mut NodeId)) {
        match self {
            Self::Variable(_)
            | Self::Unit
            | Self::Global { .. }
            | Self::Numeral { .. }
            | Self::Word { .. }
            | Self::Coweaken(_) => {}
            Self::Lambda { body: a, .. }
            | Self::Derelict(a)
            | Self::First(a)
            | Self::Second(a)
            | Self::InLeft(_, a)
            | Self::InRight(_, a)
            | Self::Coderelict(a) => visit(a),
            Self::Apply(a, b)
            | Self::Tensor(a, b)
            | Self::With(a, b)
            | Self::Cocopy(a, b)
            | Self::LetTensor { scrutinee: a, body: b, .. }
            | Self::LetUnit { scrutinee: a, body: b }
            | Self::Copy { scrutinee: a, body: b, .. }
            | Self::Discard { scrutinee: a, body: b } => {
                visit(a);
                visit(b);
            }
            Self::Case { scrutinee, left, right } => {
                visit(scrutinee);
                visit(&mut left.1);
                visit(&mut right.1);
            }
            Self::Promote { sources, body } => {
                sources.iter_mut().for_each(|(source, _)| visit(source));
                visit(body);
            }
        }
    }

    /// The variables that the node binds or is, to be changed, in the order of the text.
    pub(crate) fn variables_mut(&mut self, mut visit: impl FnMut(&mut Variable)) {
        match self {
            Self::Variable(x) | Self::Lambda { variable: x, .. } => visit(x),
            Self::LetTensor { left, right, .. } | Self::Copy { left, right, .. } => {
                visit(left);
                visit(right);
            }
            Self::Case { left, right, .. } => {
                visit(&mut left.0);
                visit(&mut right.0);
            }
            Self::Promote { sources, .. } => sources.iter_mut().for_each(|(_, x)| visit(x)),
            _ => {}
        }
    }

    /// The variables that the node binds, each with the number of the part in which it may occur.
    pub fn binders(&self, mut visit: impl FnMut(Variable, usize)) {
        match self {
            Self::Lambda { variable, .. } => visit(*variable, 0),
            Self::LetTensor { left, right, .. } | Self::Copy { left, right, .. } => {
                visit(*left, 1);
                visit(*right, 1);
            }
            Self::Case { left, right, .. } => {
                visit(left.0, 1);
                visit(right.0, 2);
            }
            Self::Promote { sources, .. } => sources.iter().for_each(|(_, x)| visit(*x, sources.len())),
            _ => {}
        }
    }

    /// The node with formulas for the parameters of the definition that it comes from.
    pub(crate) fn instantiate(&mut self, values: &Instance<'_>) {
        match self {
            Self::Lambda { domain, codomain, .. } => {
                *domain = domain.instantiate(values);
                *codomain = codomain.instantiate(values);
            }
            Self::InLeft(formula, _)
            | Self::InRight(formula, _)
            | Self::Numeral { base: formula, .. }
            | Self::Word { base: formula, .. }
            | Self::Coweaken(formula) => *formula = formula.instantiate(values),
            Self::Global { arguments, .. } => {
                arguments.iter_mut().for_each(|formula| *formula = formula.instantiate(values));
            }
            _ => {}
        }
    }

    /// Whether the constructor belongs to the differential extension.
    pub fn is_differential(&self) -> bool {
        matches!(self, Self::Coweaken(_) | Self::Cocopy(..) | Self::Coderelict(_))
    }
}

impl Term {
    /// Adds a node whose parts are there already; the last one added is the root.
    pub(crate) fn push(&mut self, node: Node) -> NodeId {
        self.nodes.push(node);
        NodeId::new(self.nodes.len() - 1)
    }

    /// A new variable that would like this name.
    pub(crate) fn variable(&mut self, name: Rc<str>) -> Variable {
        self.names.push(name);
        Variable::new(self.names.len() - 1)
    }

    /// The node of an id of this term.
    pub fn node(&self, id: NodeId) -> &Node {
        self.nodes.get(id.index()).unwrap_or(&Node::Unit)
    }

    /// All nodes, parts before wholes.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The root.
    pub fn root(&self) -> NodeId {
        NodeId::new(self.nodes.len().saturating_sub(1))
    }

    /// The number of constructors: a variable, a name, a literal and `()` are one each.
    pub fn size(&self) -> usize {
        self.nodes.len()
    }

    /// The number of constructors and of the connectives and atoms of the formulas that are written in the term: what
    /// its text costs.
    pub fn symbols(&self) -> u64 {
        let of = |node: &Node| match node {
            Node::Lambda { domain, .. } => domain.size(),
            Node::InLeft(formula, _)
            | Node::InRight(formula, _)
            | Node::Numeral { base: formula, .. }
            | Node::Coweaken(formula) => formula.size(),
            Node::Word { digits, base } => base.size().saturating_add(digits.len() as u64),
            Node::Global { arguments, .. } => {
                arguments.iter().fold(0, |sum, formula| formula.size().saturating_add(sum))
            }
            _ => 0,
        };
        self.nodes.iter().fold(0, |sum, node| of(node).saturating_add(sum).saturating_add(1))
    }

    /// The name that a variable would like to have in print.
    pub fn name(&self, variable: Variable) -> &str {
        self.names.get(variable.index()).map_or("x", |name| name)
    }

    /// The names of all variables.
    pub(crate) fn names(&self) -> &[Rc<str>] {
        &self.names
    }

    /// A term of these nodes, parts before wholes.
    pub(crate) fn from_parts(nodes: Vec<Node>, names: Vec<Rc<str>>) -> Self {
        Self { nodes, names }
    }

    /// Whether a differential term occurs, here or in a definition that is used.
    pub fn is_differential(&self) -> bool {
        let mut seen: HashSet<*const Definition> = HashSet::new();
        let mut todo = vec![self];
        while let Some(term) = todo.pop() {
            for node in term.nodes() {
                if node.is_differential() {
                    return true;
                }
                let Node::Global { definition, .. } = node else { continue };
                if let Some(inner) = &definition.term
                    && seen.insert(Rc::as_ptr(definition))
                {
                    todo.push(inner);
                }
            }
        }
        false
    }
}
