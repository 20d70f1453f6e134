//! What is known of every name: the result of the stage, and what its rules look things up in.

use std::collections::{BTreeMap, HashMap};

use crate::ast::{DomainExpr, Sign, Span, TypeExpr};
use crate::program::{Combine, Kind, Style};

/// What the names of a program stand for.
#[derive(Debug, Clone, Default)]
pub struct Names {
    /// Every tensor that occurs, by name.
    pub tensors: BTreeMap<String, TensorName>,
    /// `NAME = number`: a number in index places too.
    pub constants: HashMap<String, Numeric>,
    /// Declared domains of indices.
    pub indices: HashMap<String, Declared>,
    /// Named domains.
    pub sets: HashMap<String, Declared>,
    /// Later declarations of indices and sets that already have one, in order of the text.
    pub redeclared: Vec<(String, Declared)>,
}

/// A numeric constant of the program.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Numeric {
    /// Its value.
    pub value: f64,
    /// The same as a whole number of 64 bits, if it is one.
    pub whole: Option<i64>,
    /// The statement.
    pub span: Span,
}

/// A declared domain.
#[derive(Debug, Clone)]
pub struct Declared {
    /// The domain as written.
    pub domain: DomainExpr,
    /// The name in the declaration.
    pub span: Span,
}

/// What is known of a tensor from its name's occurrences.
#[derive(Debug, Clone)]
pub struct TensorName {
    /// The number of its places; 0 where only a file can tell (`rank_known`).
    pub rank: usize,
    /// Whether the text says the rank. Only `M = "a.csv"` that is read as a whole does not.
    pub rank_known: bool,
    /// Its style: that of its definitions; of its uses where nothing defines it.
    pub style: Style,
    /// Its type: declared, or `Prob` for a relation with weighted facts and what follows from such, or `Bool` for a
    /// relation without values, or `Real`.
    pub kind: Kind,
    /// The declared type as it is written.
    pub typed: Option<TypeExpr>,
    /// The first weighted fact.
    pub weighted: Option<Span>,
    /// How its contributions are joined. A declared type says so for rules: `tropical` is
    /// `Min`, `maxtimes` and `maxmin` are `Max`, `count` and `real` are `Sum`.
    pub combine: Combine,
    /// The first sign that gave the combination; an arrow stands as `=`.
    pub sign: Option<(Sign, Span)>,
    /// Its first occurrence.
    pub first: Span,
    /// Whether data (an array, a number, a file, a fact) defines it.
    pub given: bool,
    /// Whether an equation or a rule defines it.
    pub computed: bool,
    /// Whether a declaration names it.
    pub declared: bool,
    /// The `~` statement, if it is a parameter.
    pub parameter: Option<Span>,
    /// The virtual places and the starred index of each, from left sides.
    pub stars: Vec<(usize, String)>,
}

impl Names {
    /// Whether a statement defines or declares the tensor.
    pub fn is_defined(&self, name: &str) -> bool {
        let is = |tensor: &TensorName| {
            tensor.given || tensor.computed || tensor.declared || tensor.parameter.is_some()
        };
        self.tensors.get(name).is_some_and(is)
    }
}

/// A sign as it is written.
pub fn spelling(sign: Sign) -> &'static str {
    match sign {
        Sign::Equal => "=",
        Sign::Plus => "+=",
        Sign::Max => "max=",
        Sign::Min => "min=",
        Sign::Avg => "avg=",
        Sign::Times => "*=",
        Sign::Or => "or=",
        Sign::Redefine => ":=",
    }
}

/// Whether an undefined relation of this name is built in.
pub fn is_built_in(name: &str) -> bool {
    matches!(name, "Even" | "Odd")
}
