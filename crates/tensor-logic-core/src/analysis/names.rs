//! The names of a program: what every tensor, index and constant is, and the refusals of the
//! stage "names" (`type-conflict` to `virtual-read`).
//!
//! Enter at [`resolve`]. A tensor is what its occurrences say: `occurrence` lists them in order
//! of the text, `tensors` joins those of one name, and the other files check one rule each.
//! Names that nothing defines are symbols in comparisons and tensors elsewhere. `Even` and `Odd`
//! are built in unless the program defines them; such uses leave no [`TensorName`].

use std::collections::{HashMap, HashSet};

use crate::ast::{self, RightSide, Sign, StatementKind};
use crate::error::Refusal;

mod arrays;
mod axes;
mod divisors;
pub mod indices;
mod known;
mod occurrence;
mod proved;
mod scopes;
mod tensors;
mod virtual_reads;
pub(crate) mod walk;
mod warnings;

pub use known::{Declared, Names, Numeric, TensorName, is_built_in, spelling};
pub use proved::literals_of;
pub use virtual_reads::not_last;
pub use walk::{is_index_side, literals_of_references};
pub use warnings::warnings;

/// Resolves the names of a program.
///
/// # Errors
/// All refusals of the stage "names", in order of place.
pub fn resolve(text: &str, program: &ast::Program) -> Result<Names, Vec<Refusal>> {
    let mut names = Names { constants: constants(program), ..Names::default() };
    declared(program, &mut names);
    let mut reports = Vec::new();
    names.tensors = {
        let defined = defined(program);
        let is_defined = |name: &str| defined.contains(name);
        tensors::join(&occurrence::all(program, &is_defined, &names.constants), &mut reports)
    };
    proved::infer(program, &mut names.tensors);
    for statement in &program.statements {
        proved::check(statement, &names.tensors, &mut reports);
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
            Some((value, whole)) => {
                let first = Numeric { value: 0.0, whole: Some(0), span: statement.span };
                let sum = constants.entry(head.name.text.clone()).or_insert(first);
                sum.value += value;
                sum.whole = sum.whole.zip(whole).and_then(|(sum, whole)| sum.checked_add(whole));
            }
            None => {
                others.insert(head.name.text.as_str());
            }
        }
    }
    constants.retain(|name, constant| {
        // Halves may come to a whole number.
        constant.whole = constant.whole.or_else(|| whole(constant.value));
        !others.contains(name.as_str())
    });
    constants
}

/// The whole number that a 64-bit float is, where floats are exact: below 2^53.
fn whole(value: f64) -> Option<i64> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    (value.fract() == 0.0 && value.abs() < EXACT).then_some(value as i64)
}

/// The number of `NAME = number`, and the same as a whole number.
pub(crate) fn numeric(statement: &ast::Statement) -> Option<(f64, Option<i64>)> {
    match &statement.kind {
        StatementKind::Equation {
            head, sign: Sign::Equal, right: RightSide::Expr { expr, guards }, ..
        } if head.brackets == ast::Brackets::None && guards.is_empty() => {
            Some((walk::number(expr)?, walk::whole(expr)))
        }
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
