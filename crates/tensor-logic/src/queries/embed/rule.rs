//! Rules over objects, as embedding space applies them.

use std::collections::BTreeSet;

use crate::ast::{Comparison, Span};
use crate::program::{IndexFn, IndexId, TensorId};
use crate::value::{Const, Tuple};

/// What stands in a place of a literal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum At {
    /// An object: the place is contracted with its vector.
    Object(usize),
    /// A variable whose pivot is this place.
    Pivot(usize),
    /// A variable whose pivot is elsewhere: the place is contracted with that object's vector.
    Near(usize),
    /// Nothing else is there: the place is left out of the tensor product.
    Free,
}

/// A literal.
#[derive(Debug, Clone)]
pub(super) struct Literal {
    /// Which relation.
    pub(super) relation: usize,
    /// What stands in its places.
    pub(super) places: Vec<At>,
}

/// What stands in a place of a head or of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Head {
    /// An object.
    Object(usize),
    /// A variable.
    Variable(usize),
}

/// A comparison of objects, by their constants.
#[derive(Debug, Clone)]
pub(super) struct Compared {
    /// The sign.
    pub(super) sign: Comparison,
    /// The sides, over variables as indices.
    pub(super) sides: (IndexFn, IndexFn),
    /// The variables of both.
    pub(super) variables: Vec<usize>,
}

/// A rule.
#[derive(Debug, Clone)]
pub(super) struct Rule {
    /// Which relation it adds to.
    pub(super) relation: usize,
    /// Its head.
    pub(super) head: Vec<Head>,
    /// So many of the variables, the first ones, are in the head.
    pub(super) candidates: usize,
    /// For each variable the objects that it may stand for, where not all.
    pub(super) masks: Vec<Option<Vec<bool>>>,
    /// For each variable its index.
    pub(super) indices: Vec<IndexId>,
    /// What must hold.
    pub(super) literals: Vec<Literal>,
    /// What must not.
    pub(super) denied: Vec<Literal>,
    /// Exact conditions.
    pub(super) compared: Vec<Compared>,
    /// The head in the text.
    pub(super) span: Span,
}

/// Relations that depend on each other, or one that does not.
#[derive(Debug, Clone)]
pub(super) struct Stratum {
    /// The rules.
    pub(super) rules: Vec<usize>,
    /// Whether they read what they add to.
    pub(super) recursive: bool,
}

/// How the answer is taken from what was retrieved.
#[derive(Debug, Clone)]
pub(super) struct Answered {
    /// From which relation.
    pub(super) relation: usize,
    /// What must stand in its places: an object, or a variable of the answer; `None`: anything.
    pub(super) places: Vec<Option<Head>>,
    /// For each variable the objects that it may stand for, where not all.
    pub(super) masks: Vec<Option<Vec<bool>>>,
}

/// A query and what it needs, over objects.
#[derive(Debug)]
pub(super) struct Rules {
    /// The objects, in the order of answers.
    pub(super) objects: Vec<Const>,
    /// For each relation its facts; those of the program come first, by their ids.
    pub(super) facts: Vec<BTreeSet<Vec<usize>>>,
    /// Relations with rules: how they are named.
    pub(super) computed: Vec<TensorId>,
    /// The rules.
    pub(super) rules: Vec<Rule>,
    /// In the order of evaluation.
    pub(super) strata: Vec<Stratum>,
    /// The answer.
    pub(super) answered: Answered,
}

/// A tuple of objects as constants.
pub(super) fn constants(objects: &[Const], tuple: &[usize]) -> Tuple {
    tuple.iter().filter_map(|at| objects.get(*at).copied()).collect()
}
