//! What the tokens of a text are to one another, known from the tokens up to the later of two (N21–N24).
//!
//! Enter at [`Structure::push`]; [`Structure::newest`] then says of the newest token what every token so far is to it.

use super::tree::{Kind, Owner};
use super::{Code, Meaning, Token, TreePlace};
use crate::ast::Turnstile;
use crate::codec::shifted;
use crate::symbol::SymbolId;

/// Arguments that are told apart.
const ARGUMENTS: usize = 4;

/// What an earlier token is to a token: what its node is to the node of the token (N22).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NodeRelation {
    /// The token itself.
    Itself,
    /// A token of the same node.
    SameNode,
    /// The parent.
    Parent,
    /// A child, of none of the kinds below.
    Child,
    /// A child of the same parent, before it.
    LeftSibling,
    /// A child of the same parent, behind it.
    RightSibling,
    /// The predicate, function or relation of which it is this argument, from 0 to 3.
    ArgumentOf(u8),
    /// Its argument of this number, from 0 to 3.
    HasArgument(u8),
    /// The quantifier that binds it.
    Binder,
    /// An occurrence that it binds.
    Bound,
    /// Another occurrence of the variable of one quantifier.
    SameVariable,
    /// Its left operand.
    LeftOperand,
    /// Its right operand.
    RightOperand,
    /// A premise of the sequent whose conclusion it is.
    PremiseOf,
    /// None of these.
    Other,
}

impl NodeRelation {
    /// How many there are.
    pub const COUNT: usize = 21;

    /// Their numbers, from 0 up.
    pub fn number(self) -> usize {
        match self {
            Self::Itself => 0,
            Self::SameNode => 1,
            Self::Parent => 2,
            Self::Child => 3,
            Self::LeftSibling => 4,
            Self::RightSibling => 5,
            Self::ArgumentOf(k) => 6 + usize::from(k),
            Self::HasArgument(k) => 10 + usize::from(k),
            Self::Binder => 14,
            Self::Bound => 15,
            Self::SameVariable => 16,
            Self::LeftOperand => 17,
            Self::RightOperand => 18,
            Self::PremiseOf => 19,
            Self::Other => 20,
        }
    }
}

/// What is known of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Node {
    owner: Owner,
    /// The index of a variable or of what a quantifier binds, as far as it was read.
    index: Option<u64>,
    /// The quantifier of an occurrence, by what was read of its index.
    binder: Option<usize>,
    /// Of a part of the text: its statement, and whether it stands behind a turnstile.
    part: Option<(usize, bool)>,
}

/// The nodes of a text's tokens so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Structure {
    place: TreePlace,
    nodes: Vec<Node>,
    /// The node of each token, if it could stand where it stood.
    tokens: Vec<Option<usize>>,
    /// The statement that is read, and whether its turnstile was.
    part: (usize, bool),
}

impl Default for Structure {
    fn default() -> Self {
        Self::new()
    }
}

impl Structure {
    /// Before a text.
    pub fn new() -> Self {
        let place = TreePlace::new();
        let text = Owner { node: 0, parent: 0, child: 0, kind: Kind::Text { term: false } };
        let text = Node { owner: text, index: None, binder: None, part: None };
        Self { place, nodes: vec![text], tokens: Vec::new(), part: (0, false) }
    }

    /// Where the next token stands.
    pub fn place(&self) -> &TreePlace {
        &self.place
    }

    /// How many tokens were read.
    pub fn len(&self) -> usize {
        self.tokens.len()
    }

    /// Whether none was.
    pub fn is_empty(&self) -> bool {
        self.tokens.is_empty()
    }

    /// Reads a token of a code. `<bos>` begins a text: nothing before it is anything to what follows. What cannot stand where it
    /// stands is nothing to any token but itself (N23).
    pub fn push(&mut self, code: &Code, token: Token) {
        let owner = self.place.read(code, token);
        if let (Some(owner), Some(meaning)) = (owner, code.meaning(token)) {
            self.read(owner, meaning);
        }
        self.tokens.push(owner.map(|owner| owner.node));
    }

    fn read(&mut self, owner: Owner, meaning: Meaning) {
        if meaning == Meaning::Symbol(SymbolId::BOS) {
            self.tokens.iter_mut().for_each(|node| *node = None);
            self.nodes.truncate(1);
            self.part = (0, false);
            return;
        }
        // The left side of a relation is read before its sign, so nodes begin that own no token yet.
        let open: Vec<Owner> = self.place.open().chain([owner]).collect();
        open.into_iter().for_each(|owner| self.meet(owner));
        let (index, in_sort) = match meaning {
            Meaning::Entity(entity) => (Some(entity.index), entity.category == SymbolId::SORT),
            Meaning::Symbol(symbol) => {
                if owner.node == 0 {
                    self.separate(symbol);
                }
                let before = self.nodes.get(owner.node).and_then(|node| node.index);
                let digit = symbol.numeral();
                let longer = digit.and_then(|digit| shifted(before.unwrap_or(0), digit));
                (longer.or(before), false)
            }
        };
        let in_sort = in_sort || owner.kind == Kind::Quantifier { sorted: true };
        if let Some(node) = self.nodes.get_mut(owner.node).filter(|_| !in_sort) {
            node.index = index;
        }
        if owner.kind == (Kind::Leaf { variable: true }) {
            let binder = index.and_then(|index| self.binder(owner.node, index));
            if let Some(node) = self.nodes.get_mut(owner.node) {
                node.binder = binder;
            }
        }
    }

    /// Knows what a node is by now.
    fn meet(&mut self, owner: Owner) {
        if let Some(node) = self.nodes.get_mut(owner.node) {
            node.owner = owner;
            return;
        }
        let part = (owner.parent == 0).then_some(self.part);
        // Numbers are given in the order of beginning, and what is open or was just read has begun.
        self.nodes.push(Node { owner, index: None, binder: None, part });
    }

    /// A sign between the parts of a text.
    fn separate(&mut self, symbol: SymbolId) {
        if symbol == SymbolId::DOT {
            self.part = (self.part.0 + 1, false);
        } else if Turnstile::from_symbol(symbol).is_some() {
            self.part.1 = true;
        }
    }

    /// The innermost quantifier of a variable around a node.
    fn binder(&self, node: usize, index: u64) -> Option<usize> {
        let mut at = node;
        while at > 0 {
            at = self.nodes.get(at)?.owner.parent;
            let around = self.nodes.get(at)?;
            if matches!(around.owner.kind, Kind::Quantifier { .. }) && around.index == Some(index) {
                return Some(at);
            }
        }
        None
    }

    /// What each token so far is to the newest, the newest itself last.
    pub fn newest(&self) -> Vec<NodeRelation> {
        let Some((&newest, before)) = self.tokens.split_last() else { return Vec::new() };
        // Most nodes have several tokens, and these mostly stand together.
        let mut last = (None, NodeRelation::Other);
        let mut relations: Vec<NodeRelation> = before
            .iter()
            .map(|&node| {
                if last.0 != node {
                    last = (node, self.relation(newest, node));
                }
                last.1
            })
            .collect();
        relations.push(NodeRelation::Itself);
        relations
    }

    /// What the node `b` is to the node `a`.
    fn relation(&self, a: Option<usize>, b: Option<usize>) -> NodeRelation {
        let node = |number: Option<usize>| Some((number?, self.nodes.get(number?)?));
        let (Some((a, node_a)), Some((b, node_b))) = (node(a), node(b)) else { return NodeRelation::Other };
        if a == b {
            return NodeRelation::SameNode;
        }
        let bound = match (node_a.binder, node_b.binder) {
            (Some(binder), _) if binder == b => Some(NodeRelation::Binder),
            (_, Some(binder)) if binder == a => Some(NodeRelation::Bound),
            (Some(one), Some(other)) if one == other => Some(NodeRelation::SameVariable),
            _ => None,
        };
        if let Some(bound) = bound {
            return bound;
        }
        let (own_a, own_b) = (node_a.owner, node_b.owner);
        // The text is nobody's child.
        let (a_is_child, b_is_child) = (a > 0 && own_a.parent == b, b > 0 && own_b.parent == a);
        let argument = |child: usize| u8::try_from(child).ok().filter(|k| usize::from(*k) < ARGUMENTS);
        let applied = |kind: Kind| matches!(kind, Kind::Relation | Kind::Applied { .. });
        match (argument(own_a.child), argument(own_b.child)) {
            (Some(k), _) if a_is_child && applied(own_b.kind) => return NodeRelation::ArgumentOf(k),
            (_, Some(k)) if b_is_child && applied(own_a.kind) => return NodeRelation::HasArgument(k),
            _ => {}
        }
        if a_is_child {
            return NodeRelation::Parent;
        }
        if b_is_child {
            return match (own_a.kind, own_b.child) {
                (Kind::Pair, 0) => NodeRelation::LeftOperand,
                (Kind::Pair, _) => NodeRelation::RightOperand,
                _ => NodeRelation::Child,
            };
        }
        match (node_a.part, node_b.part) {
            (Some((one, true)), Some((other, false))) if one == other => NodeRelation::PremiseOf,
            _ if a == 0 || b == 0 || own_a.parent != own_b.parent => NodeRelation::Other,
            _ if own_b.child < own_a.child => NodeRelation::LeftSibling,
            _ => NodeRelation::RightSibling,
        }
    }
}
