//! Surface terms to kernel terms: names, types, linearity, then the structural rules that the text left out.
//!
//! Enter at [`elaborate`]. It works in two passes. The first (`check`) looks names up, finds every type and sees
//! that linear variables are used once; its result may still use a banged variable any number of times, also inside
//! boxes. The second (`structural`) counts those uses and writes the copies, discards and sources of boxes.

mod check;
mod faults;
mod linearity;
mod mend;
mod names;
mod structural;

use std::rc::Rc;

pub use crate::declared::{Extension, Mode, Structure};
pub(crate) use names::Names;

use crate::ast::{Query, Term};
use crate::declared::{Checked, Program};
use crate::error::{Kind, Refusal, Result, Source};
use crate::formula::{Formula, Instance, MAX_DEPTH, MAX_SIZE};
use crate::term::{Definition, Node, Term as KernelTerm};

/// The kernel term and the type of a query.
///
/// # Errors
/// The first rule that the text breaks, in the order of section 5.
pub fn elaborate(program: &Program, source: &Rc<Source>, query: &Query) -> Result<Checked> {
    let names = Names { program, source, parameters: &[] };
    let formula = query.formula.as_ref().map(|formula| names.formula(formula)).transpose()?;
    closed(names, &query.term, formula.as_ref())
}

/// The kernel term of a query of a given type.
///
/// # Errors
/// As for [`elaborate`]; `type-mismatch`, if the query says another type.
pub fn elaborate_against(
    program: &Program,
    source: &Rc<Source>,
    query: &Query,
    formula: &Formula,
) -> Result<Checked> {
    let names = Names { program, source, parameters: &[] };
    if let Some(written) = &query.formula {
        let found = names.formula(written)?;
        closed(names, &query.term, Some(&found))?;
        if found != *formula {
            return Err(names.mismatch(written.span, formula, &found));
        }
    }
    closed(names, &query.term, Some(formula))
}

/// The use of a definition as a proof, with formulas for its parameters; those that are not given are the atom `a`.
///
/// # Errors
/// `limit`, if its type would become too large.
pub fn instance(definition: &Rc<Definition>, arguments: &[Formula]) -> Result<Checked> {
    let mut arguments = arguments.to_vec();
    arguments.resize(definition.parameters.len(), Formula::atom("a"));
    let formula = definition.formula.instantiate(&Instance::new(&definition.parameters, &arguments));
    if formula.size() > MAX_SIZE || formula.depth() > MAX_DEPTH {
        return Err(Refusal::new(
            Kind::Limit,
            format!("the type of `{}` becomes too large", definition.name),
        ));
    }
    let mut term = KernelTerm::default();
    term.push(Node::Global { definition: definition.clone(), arguments });
    Ok(Checked { term, formula })
}

/// The kernel term of a closed term, checked against a formula if there is one.
pub(crate) fn closed(names: Names<'_>, term: &Term, formula: Option<&Formula>) -> Result<Checked> {
    let mut checker = check::Checker::new(names);
    let (_, formula) = match formula {
        Some(formula) => (checker.check(term, formula)?, formula.clone()),
        None => checker.synthesise(term)?,
    };
    let (draft, banged) = checker.finish();
    let term = match names.program.mode().structure {
        Structure::Inserted => structural::insert(draft, &banged),
        Structure::Explicit => draft,
    };
    Ok(Checked { term, formula })
}
