//! The whole way from text to core form, stage by stage.
//!
//! Enter at [`analyse`]: reading, names, domains, recursion. All errors of the first stage that
//! has any are reported; later stages are then not entered.

use crate::ast;
use crate::domains;
use crate::error::{Refusal, Warning};
use crate::function::UserFunctions;
use crate::lower::{self, FileSource, Options};
use crate::names;
use crate::program::Program;
use crate::value::Domain;
use crate::{read, recursion};

/// An analysed program.
#[derive(Debug, Clone)]
pub struct Analysed {
    /// The core form.
    pub program: Program,
    /// The faithful tree that it was made from.
    pub tree: ast::Program,
    /// The warnings, in order of place.
    pub warnings: Vec<Warning>,
}

/// Analyses a program.
///
/// # Errors
/// All refusals of the first stage that has any, in order of place.
pub fn analyse(
    text: &str,
    files: &mut dyn FileSource,
    functions: &UserFunctions,
    options: &Options,
) -> Result<Analysed, Vec<Refusal>> {
    analyse_tree(text, read::read(text, Vec::new(), functions)?, files, functions, options)
}

/// Analyses a program that has been read: all stages but the first.
///
/// # Errors
/// All refusals of the first stage that has any, in order of place.
pub fn analyse_tree(
    text: &str,
    tree: ast::Program,
    files: &mut dyn FileSource,
    functions: &UserFunctions,
    options: &Options,
) -> Result<Analysed, Vec<Refusal>> {
    let names = names::resolve(text, &tree)?;
    let mut draft = lower::lower(text, &tree, &names, files, functions, options);
    let mut refused = domains::infer(&mut draft, &names);
    refused.domains.extend(names::not_last(&tree, &names, |name, place| ends(&draft.program, name, place)));
    refused.domains.sort_by_key(|report| report.span.start);
    refuse(refused.domains)?;
    let mut late = refused.recursion;
    match recursion::analyse(&draft.program, &tree) {
        Ok(components) => draft.program.components = components,
        Err(reports) => late.extend(reports),
    }
    late.sort_by_key(|report| report.span.start);
    refuse(late)?;
    let mut warnings = draft.warnings;
    warnings.extend(names::warnings(text, &tree, &names));
    warnings.extend(crate::parents::warnings(&draft.program));
    warnings.extend(crate::starts::warnings(&draft.program));
    warnings.sort_by_key(|report| report.span.start);
    Ok(Analysed { program: draft.program, tree, warnings })
}

/// From where to where a place of a tensor reaches, if it has integers.
fn ends(program: &Program, name: &str, place: usize) -> Option<(i64, i64)> {
    let tensor = program.tensors.iter().find(|tensor| tensor.name == name && !tensor.hidden)?;
    match tensor.places.get(place)?.domain.as_ref()? {
        Domain::Interval { from, to } if from <= to => Some((*from, *to)),
        _ => None,
    }
}

fn refuse(reports: Vec<Refusal>) -> Result<(), Vec<Refusal>> {
    if reports.is_empty() { Ok(()) } else { Err(reports) }
}
