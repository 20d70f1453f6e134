//! The names of a program: what every tensor, index and constant is, and the refusals of the
//! stage "names" (`type-conflict` to `virtual-read`).
//!
//! Enter at [`resolve`]. A tensor is what its occurrences say: `occurrence` lists them in order
//! of the text, `tensors` joins those of one name, and the other files check one rule each.
//! Names that nothing defines are symbols in comparisons and tensors elsewhere. `Even` and `Odd`
//! are built in unless the program defines them; such uses leave no [`TensorName`].

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::ast::{self, DomainExpr, RightSide, Sign, Span, StatementKind, TypeExpr};
use crate::error::Report;
use crate::program::{Combine, Kind, Style};

mod arrays;
mod axes;
mod divisors;
pub mod indices;
mod occurrence;
mod scopes;
mod tensors;
mod virtual_reads;
pub(crate) mod walk;
mod warnings;

pub use virtual_reads::not_last;
pub use walk::{is_index_side, literals_of_references};
pub use warnings::warnings;

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
    /// Its type: declared, or `Bool` for a relation without values, or `Real` (also where the
    /// type is one of those that [`Kind`] lacks: see `typed` and `weighted`).
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

/// Resolves the names of a program.
///
/// # Errors
/// All refusals of the stage "names", in order of place.
pub fn resolve(text: &str, program: &ast::Program) -> Result<Names, Vec<Report>> {
    let mut names = Names { constants: constants(program), ..Names::default() };
    declared(program, &mut names);
    let mut reports = Vec::new();
    names.tensors = {
        let defined = defined(program);
        let is_defined = |name: &str| defined.contains(name);
        tensors::join(&occurrence::all(program, &is_defined, &names.constants), &mut reports)
    };
    for statement in &program.statements {
        arrays::check(statement, &mut reports);
        axes::check(statement, &names, &mut reports);
        divisors::check(text, statement, &names, &mut reports);
        virtual_reads::check(statement, &names, &mut reports);
    }
    if reports.is_empty() {
        return Ok(names);
    }
    reports.sort_by_key(|report| (report.span.start, report.code));
    reports.dedup();
    Err(reports)
}

/// Scalars that the program sets to a number and defines in no other way; numbers given several
/// times are summed, as all equations are (N4).
fn constants(program: &ast::Program) -> HashMap<String, Numeric> {
    let mut constants: HashMap<String, Numeric> = HashMap::new();
    let mut others = HashSet::new();
    for statement in &program.statements {
        let Some(head) = occurrence::head(statement) else { continue };
        match numeric(statement) {
            Some(value) => {
                let first = Numeric { value: 0.0, span: statement.span };
                constants.entry(head.name.text.clone()).or_insert(first).value += value;
            }
            None => {
                others.insert(head.name.text.as_str());
            }
        }
    }
    constants.retain(|name, _| !others.contains(name.as_str()));
    constants
}

/// The number of `NAME = number`.
pub(crate) fn numeric(statement: &ast::Statement) -> Option<f64> {
    match &statement.kind {
        StatementKind::Equation {
            head, sign: Sign::Equal, right: RightSide::Expr { expr, guards }, ..
        } if head.brackets == ast::Brackets::None && guards.is_empty() => walk::number(expr),
        _ => None,
    }
}

/// Declared domains: the first of each name counts, later ones are listed.
fn declared(program: &ast::Program, names: &mut Names) {
    for statement in &program.statements {
        let (list, domain, is_set) = match &statement.kind {
            StatementKind::Indices { names, domain } => (names.as_slice(), domain, false),
            StatementKind::Set { name, domain } => (std::slice::from_ref(name), domain, true),
            _ => continue,
        };
        for name in list {
            let here = Declared { domain: domain.clone(), span: name.span };
            let table = if is_set { &mut names.sets } else { &mut names.indices };
            if table.contains_key(&name.text) {
                names.redeclared.push((name.text.clone(), here));
            } else {
                table.insert(name.text.clone(), here);
            }
        }
    }
}

/// The names that some statement defines or declares.
fn defined(program: &ast::Program) -> HashSet<&str> {
    program.statements.iter().filter_map(|s| Some(occurrence::head(s)?.name.text.as_str())).collect()
}
