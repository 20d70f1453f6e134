//! Formulas and terms with shared parts. Bound variables are counted from their binders (de Bruijn 1972), so that what differs in
//! names alone is one thing, wherever it stands.

use std::collections::{BTreeSet, HashMap};

use crate::ast::{
    Connective, Constant, Formula, Function, Predicate, Quantifier, Relation, Sort, Term, Variable,
};
use crate::codec::digit_count;

use super::Symbol;

/// What a node is, without its parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Op {
    Truth(bool),
    Predicate(u64),
    Relation(Relation),
    Not,
    Binary(Connective),
    Quantified(Quantifier, Option<u64>),
    /// So many binders out.
    Bound(usize),
    Free(u64),
    Constant(u64),
    Function(u64),
    /// Of a definition.
    Parameter(usize),
}

impl Op {
    pub(super) fn is_formula(self) -> bool {
        !matches!(
            self,
            Self::Bound(_) | Self::Free(_) | Self::Constant(_) | Self::Function(_) | Self::Parameter(_)
        )
    }

    /// How many binders stand between it and its parts.
    pub(super) fn binders(self) -> usize {
        usize::from(matches!(self, Self::Quantified(..)))
    }

    /// Whether its parts are formulas.
    pub(super) fn of_formulas(self) -> bool {
        matches!(self, Self::Not | Self::Binary(_) | Self::Quantified(..))
    }

    /// The defined symbol that it could be.
    pub(super) fn symbol(self) -> Option<Symbol> {
        match self {
            Self::Predicate(n) => Some(Symbol::Predicate(n)),
            Self::Function(n) => Some(Symbol::Function(n)),
            Self::Constant(n) => Some(Symbol::Constant(n)),
            _ => None,
        }
    }

    /// Tokens without those of its parts.
    pub(super) fn tokens(self, parts: usize) -> u64 {
        let named = |n: u64| 1 + u64::from(digit_count(n));
        let list = if parts == 0 { 0 } else { 1 + parts as u64 };
        match self {
            Self::Truth(_) | Self::Relation(_) | Self::Not => 1,
            Self::Predicate(n) | Self::Function(n) => named(n) + list,
            Self::Binary(_) => 3,
            Self::Quantified(_, sort) => 3 + sort.map_or(0, |sort| 1 + named(sort)),
            // Canonical names are small.
            Self::Bound(_) => 2,
            Self::Free(n) | Self::Constant(n) => named(n),
            Self::Parameter(n) => named(n as u64),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Node {
    pub(super) op: Op,
    pub(super) parts: Vec<usize>,
}

/// What is known of a node.
#[derive(Debug, Clone, Copy)]
struct Known {
    /// Tokens; those of a bound variable are two.
    size: u64,
    height: usize,
    /// Its free bound variables reach out of so many binders at most.
    reach: usize,
}

/// Nodes, each once; parts stand before what they are parts of.
#[derive(Debug, Clone, Default)]
pub(super) struct Arena {
    nodes: Vec<Node>,
    known: Vec<Known>,
    places: HashMap<Node, usize>,
}

impl Arena {
    pub(super) fn node(&self, at: usize) -> &Node {
        &self.nodes[at]
    }

    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    pub(super) fn size(&self, at: usize) -> u64 {
        self.known[at].size
    }

    pub(super) fn height(&self, at: usize) -> usize {
        self.known[at].height
    }

    pub(super) fn is_formula(&self, at: usize) -> bool {
        self.node(at).op.is_formula()
    }

    /// Whether no bound variable of it belongs to a binder outside.
    pub(super) fn is_closed(&self, at: usize) -> bool {
        self.known[at].reach == 0
    }

    pub(super) fn put(&mut self, op: Op, parts: Vec<usize>) -> usize {
        let node = Node { op, parts };
        if let Some(&at) = self.places.get(&node) {
            return at;
        }
        let of = |f: fn(&Known) -> usize| node.parts.iter().map(|&p| f(&self.known[p])).max().unwrap_or(0);
        let size = node.parts.iter().map(|&p| self.known[p].size);
        let size = size.fold(op.tokens(node.parts.len()), u64::saturating_add);
        let reach = match op {
            Op::Bound(n) => n + 1,
            op => of(|k| k.reach).saturating_sub(op.binders()),
        };
        let known = Known { size, height: of(|k| k.height) + 1, reach };
        let at = self.nodes.len();
        self.nodes.push(node.clone());
        self.known.push(known);
        self.places.insert(node, at);
        at
    }

    pub(super) fn formula(&mut self, formula: &Formula) -> usize {
        self.formula_with(formula, &[])
    }

    /// A body: its parameters are leaves of their own.
    pub(super) fn formula_with(&mut self, formula: &Formula, parameters: &[Variable]) -> usize {
        self.enter(formula, parameters, &mut Vec::new())
    }

    pub(super) fn term_with(&mut self, term: &Term, parameters: &[Variable]) -> usize {
        self.enter_term(term, parameters, &[])
    }

    fn enter(&mut self, formula: &Formula, parameters: &[Variable], scope: &mut Vec<Variable>) -> usize {
        match formula {
            Formula::Truth(truth) => self.put(Op::Truth(*truth), Vec::new()),
            Formula::Predicate(p, arguments) => {
                let parts = arguments.iter().map(|t| self.enter_term(t, parameters, scope)).collect();
                self.put(Op::Predicate(p.0), parts)
            }
            Formula::Relation(relation, s, t) => {
                let parts = [s, t].map(|t| self.enter_term(t, parameters, scope)).to_vec();
                self.put(Op::Relation(*relation), parts)
            }
            Formula::Not(of) => {
                let part = self.enter(of, parameters, scope);
                self.put(Op::Not, vec![part])
            }
            Formula::Binary(connective, a, b) => {
                let parts = [a, b].map(|f| self.enter(f, parameters, scope)).to_vec();
                self.put(Op::Binary(*connective), parts)
            }
            Formula::Quantified(quantifier, x, sort, body) => {
                scope.push(*x);
                let part = self.enter(body, parameters, scope);
                scope.pop();
                self.put(Op::Quantified(*quantifier, sort.map(|s| s.0)), vec![part])
            }
        }
    }

    fn enter_term(&mut self, term: &Term, parameters: &[Variable], scope: &[Variable]) -> usize {
        match term {
            Term::Variable(x) => {
                let bound = scope.iter().rev().position(|y| y == x).map(Op::Bound);
                let parameter = || parameters.iter().position(|y| y == x).map(Op::Parameter);
                let op = bound.or_else(parameter).unwrap_or(Op::Free(x.0));
                self.put(op, Vec::new())
            }
            Term::Constant(c) => self.put(Op::Constant(c.0), Vec::new()),
            Term::Function(f, arguments) => {
                let parts = arguments.iter().map(|t| self.enter_term(t, parameters, scope)).collect();
                self.put(Op::Function(f.0), parts)
            }
        }
    }

    /// The same `by` binders further in (above 0) or out, where the innermost `under` binders are its own. Nothing, if a variable would
    /// lose its binder.
    pub(super) fn shifted(&mut self, at: usize, by: isize, under: usize) -> Option<usize> {
        if by == 0 || self.known[at].reach <= under {
            return Some(at);
        }
        let Node { op, parts } = self.node(at).clone();
        if let Op::Bound(n) = op {
            let n = n.checked_add_signed(by).filter(|n| *n >= under)?;
            return Some(self.put(Op::Bound(n), Vec::new()));
        }
        let under = under + op.binders();
        let parts = parts.into_iter().map(|part| self.shifted(part, by, under)).collect::<Option<_>>()?;
        Some(self.put(op, parts))
    }

    /// The symbols that a node has.
    pub(super) fn symbols(&self, root: usize) -> BTreeSet<Symbol> {
        let (mut found, mut seen, mut open) = (BTreeSet::new(), BTreeSet::new(), vec![root]);
        while let Some(at) = open.pop() {
            if seen.insert(at) {
                found.extend(self.node(at).op.symbol());
                open.extend(&self.node(at).parts);
            }
        }
        found
    }

    /// How often each node stands in these.
    pub(super) fn counts(&self, roots: &[usize]) -> Vec<u64> {
        let mut counts = vec![0_u64; self.len()];
        for &root in roots {
            counts[root] += 1;
        }
        for at in (0..self.len()).rev() {
            if counts[at] > 0 {
                for &part in &self.nodes[at].parts {
                    counts[part] += counts[at];
                }
            }
        }
        counts
    }

    /// A formula in canonical names (K1): the k-th binder has the k-th number that is not the name of something free. Parameters are called
    /// 0, 1, …
    pub(super) fn formula_of(&self, root: usize) -> Formula {
        self.leave(root, &mut Names::of(self, root), &mut Vec::new())
    }

    pub(super) fn term_of(&self, root: usize) -> Term {
        self.leave_term(root, &[])
    }

    fn leave(&self, at: usize, names: &mut Names, scope: &mut Vec<u64>) -> Formula {
        let Node { op, parts } = self.node(at);
        let terms = |parts: &[usize]| parts.iter().map(|&t| self.leave_term(t, scope)).collect::<Vec<_>>();
        match (*op, parts.as_slice()) {
            (Op::Truth(truth), _) => Formula::Truth(truth),
            (Op::Predicate(p), parts) => Formula::Predicate(Predicate(p), terms(parts)),
            (Op::Relation(relation), &[s, t]) => {
                Formula::Relation(relation, self.leave_term(s, scope), self.leave_term(t, scope))
            }
            (Op::Not, &[of]) => Formula::Not(Box::new(self.leave(of, names, scope))),
            (Op::Binary(connective), &[a, b]) => {
                let a = Box::new(self.leave(a, names, scope));
                Formula::Binary(connective, a, Box::new(self.leave(b, names, scope)))
            }
            (Op::Quantified(quantifier, sort), &[body]) => {
                let x = names.next();
                scope.push(x);
                let body = Box::new(self.leave(body, names, scope));
                scope.pop();
                Formula::Quantified(quantifier, Variable(x), sort.map(Sort), body)
            }
            // A term is asked for by `term_of`.
            _ => Formula::Truth(false),
        }
    }

    fn leave_term(&self, at: usize, scope: &[u64]) -> Term {
        let Node { op, parts } = self.node(at);
        match *op {
            Op::Constant(c) => Term::Constant(Constant(c)),
            Op::Function(f) => {
                let arguments = parts.iter().map(|&t| self.leave_term(t, scope)).collect();
                Term::Function(Function(f), arguments)
            }
            Op::Free(x) => Term::Variable(Variable(x)),
            Op::Parameter(n) => Term::Variable(Variable(n as u64)),
            Op::Bound(n) => {
                let name = scope.len().checked_sub(n + 1).and_then(|at| scope.get(at));
                Term::Variable(Variable(name.copied().unwrap_or(u64::MAX)))
            }
            _ => Term::Constant(Constant(u64::MAX)),
        }
    }
}

/// The names of binders, in order.
struct Names {
    free: BTreeSet<u64>,
    next: u64,
}

impl Names {
    fn of(arena: &Arena, root: usize) -> Self {
        let (mut free, mut seen, mut open) = (BTreeSet::new(), BTreeSet::new(), vec![root]);
        while let Some(at) = open.pop() {
            if seen.insert(at) {
                match arena.node(at).op {
                    Op::Free(x) => drop(free.insert(x)),
                    Op::Parameter(n) => drop(free.insert(n as u64)),
                    _ => open.extend(&arena.node(at).parts),
                }
            }
        }
        Self { free, next: 0 }
    }

    fn next(&mut self) -> u64 {
        while self.free.contains(&self.next) {
            self.next += 1;
        }
        self.next += 1;
        self.next - 1
    }
}
