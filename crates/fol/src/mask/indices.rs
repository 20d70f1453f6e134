//! The indices that predicates, or functions, may have, as digits to come.
//!
//! Without a law every index up to the largest one is there, with any arity. With a law the indices are a
//! tree of digits, whose nodes know how few tokens complete a name from there on.

use super::cost::{Cost, NEVER, TERM_COSTS, arguments, class, cost_if, sum};
use crate::codec::{digit_count, digits, following};
use crate::symbol::{BASE, SymbolId};
use crate::symbol_set::SymbolSet;

/// The indices of a category and their arities.
#[derive(Debug)]
pub(super) enum Indices {
    /// Every index up to `most`, with every arity from `least` on.
    Below { most: u64, least: usize, cost: [Cost; TERM_COSTS], head: Cost },
    /// Those of a law, as a tree; node 0 is the root.
    Tree(Vec<Node>),
}

#[derive(Debug)]
pub(super) struct Node {
    /// The arities of the index whose digits lead here, ascending.
    arities: Vec<usize>,
    children: Vec<(SymbolId, usize)>,
    /// For each least cost of a term: how few tokens complete digits and arguments.
    cost: [Cost; TERM_COSTS],
    /// How few complete digits, parameters, DEFINE and body.
    head: Cost,
}

/// How far an index has been read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Digits {
    pub(super) value: u64,
    pub(super) count: u32,
    /// The node of the tree.
    node: usize,
}

impl Digits {
    pub(super) const NONE: Self = Self { value: 0, count: 0, node: 0 };

    /// A whole index.
    pub(super) fn of(value: u64) -> Self {
        Self { value, count: digit_count(value), node: 0 }
    }
}

/// How many numerals, from 0 on, may follow in an index of at most `most`.
pub(super) fn next_numerals(digits: Digits, most: u64) -> u64 {
    if digits.count == 0 {
        most.saturating_add(1).min(u64::from(BASE))
    } else {
        following(digits.value, most)
    }
}

impl Indices {
    /// The indices of a law up to the largest one, or all.
    pub(super) fn new(law: Option<&[Vec<usize>]>, most: u64, least: usize) -> Self {
        let Some(lists) = law else {
            return Self::Below { most, least, cost: [NEVER; TERM_COSTS], head: NEVER };
        };
        let mut nodes = vec![Node::new()];
        for (index, arities) in (0..=most).zip(lists) {
            let mut arities: Vec<usize> = arities.iter().copied().filter(|&arity| arity >= least).collect();
            arities.sort_unstable();
            arities.dedup();
            if arities.is_empty() {
                continue;
            }
            let mut at = 0;
            for digit in digits(index).into_iter().filter_map(SymbolId::new) {
                at = child(&mut nodes, at, digit);
            }
            if let Some(node) = nodes.get_mut(at) {
                node.arities = arities;
            }
        }
        Self::Tree(nodes)
    }

    /// Fills in the costs of names with arguments.
    pub(super) fn measure(&mut self, terms: &[Cost; TERM_COSTS]) {
        match self {
            Self::Below { least, cost, .. } => *cost = terms.map(|term| arguments(*least, term)),
            Self::Tree(nodes) => bottom_up(nodes, |node, children| {
                node.cost = std::array::from_fn(|i| {
                    let term = terms.get(i).copied().unwrap_or(NEVER);
                    let own = node.arities.first().map_or(NEVER, |&arity| arguments(arity, term));
                    children
                        .iter()
                        .map(|(cost, _)| sum([1, cost.get(i).copied().unwrap_or(NEVER)]))
                        .fold(own, Cost::min)
                });
            }),
        }
    }

    /// Fills in the costs of heads: `allowed` is 0 or `NEVER`, `body` the cost without and with parameters.
    pub(super) fn measure_heads(&mut self, variables: bool, allowed: Cost, body: [Cost; 2]) {
        let [bare, with_parameters] = body;
        let of_arity = |arity: usize| match arity {
            0 => sum([allowed, 1, bare]),
            _ => cost_if(variables, sum([allowed, arguments(arity, 2), 1, with_parameters])),
        };
        match self {
            Self::Below { least: 0, head, .. } => *head = of_arity(0).min(of_arity(1)),
            Self::Below { least, head, .. } => *head = of_arity(*least),
            Self::Tree(nodes) => bottom_up(nodes, |node, children| {
                let own = node.arities.iter().map(|&arity| of_arity(arity)).fold(NEVER, Cost::min);
                node.head = children.iter().map(|(_, head)| sum([1, *head])).fold(own, Cost::min);
            }),
        }
    }

    /// How few tokens complete a name whose category symbol has been read.
    pub(super) fn root_cost(&self, term: Cost) -> Cost {
        match self {
            Self::Below { cost, .. } => sum([1, at_class(cost, term)]),
            Self::Tree(nodes) => nodes.first().map_or(NEVER, |node| at_class(&node.cost, term)),
        }
    }

    /// How few tokens complete a definition whose category symbol has been read.
    pub(super) fn root_head(&self) -> Cost {
        match self {
            Self::Below { head, .. } => sum([1, *head]),
            Self::Tree(nodes) => nodes.first().map_or(NEVER, |node| node.head),
        }
    }

    /// Puts the numerals in that may follow. `fits` says whether a name fits that costs so much, as part of
    /// a formula and as a head.
    pub(super) fn fill(
        &self,
        set: &mut SymbolSet,
        digits: Digits,
        term: Cost,
        fits: impl Fn(Cost, Cost) -> bool,
    ) {
        match self {
            Self::Below { most, cost, head, .. } => {
                if fits(sum([1, at_class(cost, term)]), sum([1, *head])) {
                    set.insert_numerals_below(next_numerals(digits, *most));
                }
            }
            Self::Tree(nodes) => {
                for (digit, child) in nodes.get(digits.node).map_or(&[][..], |node| &node.children) {
                    if let Some(child) = nodes.get(*child)
                        && fits(sum([1, at_class(&child.cost, term)]), sum([1, child.head]))
                    {
                        set.insert(*digit);
                    }
                }
            }
        }
    }

    /// The digits after one more.
    pub(super) fn step(&self, digits: Digits, digit: SymbolId) -> Digits {
        let node = match self {
            Self::Below { .. } => 0,
            Self::Tree(nodes) => {
                let children = nodes.get(digits.node).map_or(&[][..], |node| &node.children);
                let found = children.binary_search_by_key(&digit, |(digit, _)| *digit);
                found.ok().and_then(|i| children.get(i)).map_or(0, |(_, node)| *node)
            }
        };
        Digits { node, ..step(digits, digit) }
    }

    /// Whether an index may end here.
    pub(super) fn ends(&self, digits: Digits) -> bool {
        digits.count > 0 && self.least_arity(digits, 0).is_some()
    }

    /// The least arity of an index that is at least `from`.
    pub(super) fn least_arity(&self, digits: Digits, from: usize) -> Option<usize> {
        match self {
            Self::Below { least, .. } => Some(from.max(*least)),
            Self::Tree(nodes) => nodes.get(digits.node)?.arities.iter().copied().find(|&arity| arity >= from),
        }
    }
}

/// The digits after one more, where no tree is.
pub(super) fn step(digits: Digits, digit: SymbolId) -> Digits {
    let value = digit.numeral().and_then(|digit| crate::codec::shifted(digits.value, digit));
    Digits { value: value.unwrap_or(u64::MAX), count: digits.count + 1, node: 0 }
}

fn at_class(costs: &[Cost; TERM_COSTS], term: Cost) -> Cost {
    costs.get(class(term)).copied().unwrap_or(NEVER)
}

impl Node {
    fn new() -> Self {
        Self { arities: Vec::new(), children: Vec::new(), cost: [NEVER; TERM_COSTS], head: NEVER }
    }
}

/// The child for a digit, made if it is not there. Indices come in ascending order, but a longer index meets
/// the node of its first digits again, so the place is searched.
fn child(nodes: &mut Vec<Node>, at: usize, digit: SymbolId) -> usize {
    let fresh = nodes.len();
    let Some(node) = nodes.get_mut(at) else { return 0 };
    match node.children.binary_search_by_key(&digit, |(digit, _)| *digit) {
        Ok(i) => node.children.get(i).map_or(0, |(_, child)| *child),
        Err(i) => {
            node.children.insert(i, (digit, fresh));
            nodes.push(Node::new());
            fresh
        }
    }
}

type Costs = ([Cost; TERM_COSTS], Cost);

/// Visits the nodes, children before parents; a child is made after its parent.
fn bottom_up(nodes: &mut [Node], visit: impl Fn(&mut Node, &[Costs])) {
    for at in (0..nodes.len()).rev() {
        let children: Vec<Costs> = nodes.get(at).map_or(Vec::new(), |node| {
            let children = node.children.iter().filter_map(|(_, child)| nodes.get(*child));
            children.map(|child| (child.cost, child.head)).collect()
        });
        if let Some(node) = nodes.get_mut(at) {
            visit(node, &children);
        }
    }
}
