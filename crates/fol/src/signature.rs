//! What a law can produce: symbols, indices and arities, without its limits of depth and size.
//!
//! The checker (`check --law`) and the legal-symbol mask (`--within`) read it; every law can give it.

use crate::ast::{Connective, Quantifier, Relation, Turnstile};

/// The symbols, indices and arities of a law.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signature {
    /// NOT is there.
    pub not: bool,
    /// The binary connectives.
    pub connectives: Vec<Connective>,
    /// The quantifiers.
    pub quantifiers: Vec<Quantifier>,
    /// The relations between terms.
    pub relations: Vec<Relation>,
    /// The truth values.
    pub truth: Vec<bool>,
    /// For each predicate index, from 0, the arities that it may have, ascending.
    pub predicates: Vec<Vec<usize>>,
    /// For each function index, from 0, the arities that it may have, ascending.
    pub functions: Vec<Vec<usize>>,
    /// Constants are the indices below this number.
    pub constants: u64,
    /// Variables are the indices below this number.
    pub variables: u64,
    /// Sorts are the indices below this number.
    pub sorts: u64,
    /// A binder may stand without a sort.
    pub unsorted: bool,
    /// No variable is ever free.
    pub closed: bool,
    /// What a text may hold beside one formula.
    pub statements: Option<Statements>,
}

/// The statements of a law whose texts are more than one formula.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statements {
    /// A formula alone may be a statement.
    pub formula: bool,
    /// The sequents.
    pub sequents: Vec<Turnstile>,
    /// A conclusion may be `<unknown>`.
    pub unknown_conclusion: bool,
    /// `φ ≡ ψ`
    pub equivalence: bool,
    /// `P(x, …) ≔ φ`
    pub define_predicate: bool,
    /// `f(x, …) ≔ t`
    pub define_function: bool,
    /// `c ≔ t`
    pub define_constant: bool,
    /// A text may hold more than one statement.
    pub several: bool,
    /// A text may end in DOT.
    pub terminated: bool,
}
