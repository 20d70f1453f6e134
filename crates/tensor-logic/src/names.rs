//! The names of a program: what every tensor, index and constant is, and the refusals of the
//! stage "names" (`type-conflict` to `virtual-read`).
//!
//! Enter at [`resolve`].

use std::collections::{BTreeMap, HashMap};

use crate::ast::{self, DomainExpr, Sign, Span};
use crate::error::Report;
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
}

/// A numeric constant of the program.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Numeric {
    /// Its value.
    pub value: f64,
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
    /// The number of its places.
    pub rank: usize,
    /// Its style: that of its definitions; of its uses where nothing defines it.
    pub style: Style,
    /// Its type: declared, or `Bool` for a relation without values, or `Real`.
    pub kind: Kind,
    /// How its contributions are joined. A declared type says so for rules: `tropical` is
    /// `Min`, `maxtimes` and `maxmin` are `Max`, `count` and `real` are `Sum`.
    pub combine: Combine,
    /// The first sign that gave the combination.
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
}

/// Resolves the names of a program.
///
/// # Errors
/// All refusals of the stage "names", in order of place.
pub fn resolve(program: &ast::Program) -> Result<Names, Vec<Report>> {
    let _ = program;
    Ok(Names::default())
}
