//! The rules of reduction: where each matches, and what it makes.
//!
//! A rule is contracted in place: the node of the redex is replaced, so that whatever points at it points at the
//! result.

use super::graph::Graph;
use crate::term::{Node, NodeId, Variable};

macro_rules! rules {
    ($($(#[$doc:meta])* $rule:ident = $name:literal),+ $(,)?) => {
        /// A rule of reduction.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Rewrite { $($(#[$doc])* $rule),+ }

        impl Rewrite {
            /// Every rule, in the order in which they are tried.
            pub const ALL: &'static [Self] = &[$(Self::$rule),+];

            /// The name in reports.
            pub fn name(self) -> &'static str {
                match self { $(Self::$rule => $name),+ }
            }
        }
    };
}

rules! {
    /// `(\x:A. t) u` → t[u/x]
    BetaLolli = "beta-lolli",
    /// `let x * y = a * b in t` → t[a/x, b/y]
    BetaTensor = "beta-tensor",
    /// `let () = () in t` → t
    BetaOne = "beta-one",
    /// `fst <a, b>` → a, `snd <a, b>` → b
    BetaWith = "beta-with",
    /// `case inl a of inl x -> u | …` → u[a/x], and `inr`
    BetaPlus = "beta-plus",
    /// `derelict (promote (e⃗ for x⃗) in f)` → f[e⃗/x⃗]
    BetaDerelict = "beta-derelict",
    /// `discard (promote (e⃗ for x⃗) in f) in g` → `discard e₁, …, eₘ in g`
    BetaDiscard = "beta-discard",
    /// `copy (promote (e⃗ for x⃗) in f) as y, z in g` → the sources copied, and a box for each of y and z
    BetaCopy = "beta-copy",
    /// `promote (…, (promote (e⃗ for x⃗) in f) for y, …) in g` → one box, with the inner one inside
    BetaPromote = "beta-promote",
    /// E\[F\] → F with E moved around its body, or around both branches
    Commute = "commute",
    /// `copy t as x, y in discard x in u` → u[t/y], and with y
    Counit = "counit",
}

/// A match of a rule at a node; for a box and for `commute`, with the number of the part that matches.
#[derive(Debug, Clone, Copy)]
pub(super) struct Redex {
    rule: Rewrite,
    part: usize,
}

impl Redex {
    pub(super) fn rule(self) -> Rewrite {
        self.rule
    }
}

/// F: what an elimination moves into.
fn commutes(node: &Node) -> bool {
    matches!(
        node,
        Node::LetTensor { .. }
            | Node::LetUnit { .. }
            | Node::Copy { .. }
            | Node::Discard { .. }
            | Node::Case { .. }
    )
}

impl Graph {
    /// The first rule that matches at a node.
    pub(super) fn redex(&self, id: NodeId) -> Option<Redex> {
        let at = |rule| Some(Redex { rule, part: 0 });
        let node = self.node(id);
        let scrutinee = match node {
            Node::Apply(a, _) | Node::Derelict(a) | Node::First(a) | Node::Second(a) => *a,
            Node::LetTensor { scrutinee, .. }
            | Node::LetUnit { scrutinee, .. }
            | Node::Copy { scrutinee, .. }
            | Node::Discard { scrutinee, .. }
            | Node::Case { scrutinee, .. } => *scrutinee,
            Node::Promote { sources, .. } => {
                let find =
                    |test: fn(&Node) -> bool| sources.iter().position(|(source, _)| test(self.node(*source)));
                let inner = find(|node| matches!(node, Node::Promote { .. }));
                return inner
                    .map(|part| Redex { rule: Rewrite::BetaPromote, part })
                    .or_else(|| find(commutes).map(|part| Redex { rule: Rewrite::Commute, part }));
            }
            _ => return None,
        };
        match (node, self.node(scrutinee)) {
            (Node::Apply(..), Node::Lambda { .. }) => at(Rewrite::BetaLolli),
            (Node::LetTensor { .. }, Node::Tensor(..)) => at(Rewrite::BetaTensor),
            (Node::LetUnit { .. }, Node::Unit) => at(Rewrite::BetaOne),
            (Node::First(_) | Node::Second(_), Node::With(..)) => at(Rewrite::BetaWith),
            (Node::Case { .. }, Node::InLeft(..) | Node::InRight(..)) => at(Rewrite::BetaPlus),
            (Node::Derelict(_), Node::Promote { .. }) => at(Rewrite::BetaDerelict),
            (Node::Discard { .. }, Node::Promote { .. }) => at(Rewrite::BetaDiscard),
            (Node::Copy { .. }, Node::Promote { .. }) => at(Rewrite::BetaCopy),
            (_, inner) if commutes(inner) => at(Rewrite::Commute),
            (Node::Copy { left, right, body, .. }, _) => match self.node(*body) {
                Node::Discard { scrutinee, .. } => match self.node(*scrutinee) {
                    Node::Variable(x) if x == left || x == right => at(Rewrite::Counit),
                    _ => None,
                },
                _ => None,
            },
            _ => None,
        }
    }

    /// Contracts a redex that [`Self::redex`] has found.
    pub(super) fn contract(&mut self, id: NodeId, redex: Redex) {
        if redex.rule == Rewrite::Commute {
            return self.commute(id, redex.part);
        }
        if redex.rule == Rewrite::BetaPromote {
            return self.merge(id, redex.part);
        }
        match self.lift(id) {
            Node::Apply(function, argument) => {
                if let Node::Lambda { variable, body, .. } = self.take(function) {
                    self.shift(body, id);
                    self.substitute(variable, argument);
                }
            }
            Node::LetTensor { scrutinee, left, right, body } => {
                if let Node::Tensor(a, b) = self.take(scrutinee) {
                    self.shift(body, id);
                    self.substitute(left, a);
                    self.substitute(right, b);
                }
            }
            Node::LetUnit { scrutinee, body } => {
                self.take(scrutinee);
                self.shift(body, id);
            }
            Node::First(pair) => {
                if let Node::With(a, b) = self.take(pair) {
                    self.delete(b);
                    self.shift(a, id);
                }
            }
            Node::Second(pair) => {
                if let Node::With(a, b) = self.take(pair) {
                    self.delete(a);
                    self.shift(b, id);
                }
            }
            Node::Case { scrutinee, left, right } => {
                let (value, chosen, other) = match self.take(scrutinee) {
                    Node::InLeft(_, value) => (value, left, right),
                    Node::InRight(_, value) => (value, right, left),
                    _ => return,
                };
                self.delete(other.1);
                self.shift(chosen.1, id);
                self.substitute(chosen.0, value);
            }
            Node::Derelict(inner) => {
                if let Node::Promote { sources, body } = self.take(inner) {
                    self.shift(body, id);
                    for (source, name) in sources {
                        self.substitute(name, source);
                    }
                }
            }
            Node::Discard { scrutinee, body } => {
                if let Node::Promote { sources, body: inner } = self.take(scrutinee) {
                    self.delete(inner);
                    self.around(id, body, sources.iter().map(|(source, _)| *source), |scrutinee, body| {
                        Node::Discard { scrutinee, body }
                    });
                }
            }
            Node::Copy { scrutinee, left, right, body } => match redex.rule {
                Rewrite::BetaCopy => self.split(id, scrutinee, (left, right), body),
                _ => self.counit(id, scrutinee, (left, right), body),
            },
            _ => {}
        }
    }

    /// Puts one node for each item around a body, the first outermost, with the result at a place.
    fn around<I>(
        &mut self,
        id: NodeId,
        body: NodeId,
        items: impl DoubleEndedIterator<Item = I>,
        mut node: impl FnMut(I, NodeId) -> Node,
    ) {
        let mut inner = body;
        for item in items.rev() {
            inner = self.add(node(item, inner));
        }
        self.shift(inner, id);
    }

    /// `beta-copy`
    fn split(&mut self, id: NodeId, scrutinee: NodeId, (y, z): (Variable, Variable), body: NodeId) {
        let Node::Promote { sources, body: inner } = self.lift(scrutinee) else { return };
        let copied: Vec<(NodeId, Variable, Variable)> =
            sources.iter().map(|(source, _)| (*source, self.variable(), self.variable())).collect();
        let inside =
            sources.iter().zip(&copied).map(|((_, name), (_, u, _))| (self.add(Node::Variable(*u)), *name));
        let inside = inside.collect();
        self.put(scrutinee, Node::Promote { sources: inside, body: inner });
        let second = self.copy(scrutinee);
        for (i, (_, _, w)) in copied.iter().enumerate() {
            if let Some(leaf) = self.child(second, i) {
                self.lift(leaf);
                self.put(leaf, Node::Variable(*w));
            }
        }
        self.around(id, body, copied.into_iter(), |(scrutinee, left, right), body| Node::Copy {
            scrutinee,
            left,
            right,
            body,
        });
        self.substitute(y, scrutinee);
        self.substitute(z, second);
    }

    /// `beta-promote`
    fn merge(&mut self, id: NodeId, part: usize) {
        let Node::Promote { mut sources, body } = self.lift(id) else { return };
        let Some((inner, y)) = sources.get(part).copied() else { return };
        let Node::Promote { sources: deeper, body: f } = self.lift(inner) else { return };
        let renamed: Vec<(NodeId, Variable)> =
            deeper.iter().map(|(source, _)| (*source, self.variable())).collect();
        let inside =
            deeper.iter().zip(&renamed).map(|((_, name), (_, u))| (self.add(Node::Variable(*u)), *name));
        let inside = inside.collect();
        self.put(inner, Node::Promote { sources: inside, body: f });
        sources.splice(part..=part, renamed);
        self.put(id, Node::Promote { sources, body });
        self.substitute(y, inner);
    }

    fn counit(&mut self, id: NodeId, scrutinee: NodeId, (x, y): (Variable, Variable), body: NodeId) {
        let Node::Discard { scrutinee: dropped, body: rest } = self.take(body) else { return };
        let other = if matches!(self.take(dropped), Node::Variable(v) if v == x) { y } else { x };
        self.shift(rest, id);
        self.substitute(other, scrutinee);
    }

    /// `commute`: the elimination at `id` goes into the construct that is its part.
    fn commute(&mut self, id: NodeId, part: usize) {
        let Some(inner) = self.child(id, part) else { return };
        let elimination = self.lift(id);
        let mut construct = self.lift(inner);
        match &mut construct {
            Node::LetTensor { body, .. }
            | Node::LetUnit { body, .. }
            | Node::Copy { body, .. }
            | Node::Discard { body, .. } => {
                let old = std::mem::replace(body, inner);
                self.put(inner, elimination);
                self.set_child(inner, part, old);
            }
            Node::Case { left, right, .. } => {
                // A hole stands for the branch while the elimination is copied.
                let first = self.add(elimination);
                let second = self.copy(first);
                let hole = self.child(second, part);
                self.set_child(first, part, left.1);
                self.set_child(second, part, right.1);
                (left.1, right.1) = (first, second);
                self.take(inner);
                if let Some(hole) = hole {
                    self.take(hole);
                }
            }
            _ => {}
        }
        self.put(id, construct);
    }
}
