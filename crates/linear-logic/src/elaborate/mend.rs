//! What would mend a refused text: the help of a refusal, as text that can be written in place of what stands there.

use crate::ast;
use crate::error::{Source, Span};
use crate::formula::Formula;
use crate::term::Definition;

/// A longer text is not repeated in a help.
const LONGEST: usize = 40;

/// The text of a place, if it is short enough to be repeated.
fn shown(source: &Source, span: Span) -> Option<&str> {
    let text = source.text.get(span.start..span.end)?;
    (text.chars().count() <= LONGEST && !text.contains('\n')).then_some(text)
}

/// The text of a term where an operand is wanted.
fn operand(source: &Source, term: &ast::Term) -> Option<String> {
    use ast::TermKind as T;
    let text = shown(source, term.span)?;
    let is_operand = match &term.kind {
        T::Name { .. } | T::Numeral { .. } | T::Word { .. } | T::Unit | T::With(..) => true,
        T::Ascribe(..) | T::Coweaken { .. } => true,
        T::Promote { .. } => text.starts_with('['),
        _ => false,
    };
    Some(if is_operand { text.to_owned() } else { format!("({text})") })
}

/// `derelict t`
pub(super) fn derelicted(source: &Source, term: &ast::Term) -> String {
    match operand(source, term) {
        Some(text) => format!("write `derelict {text}`"),
        None => "put `derelict` before it".to_owned(),
    }
}

/// `[t]`
pub(super) fn boxed(source: &Source, span: Span) -> String {
    match shown(source, span) {
        Some(text) => format!("write `[{text}]`"),
        None => "put it in a box: `[…]`".to_owned(),
    }
}

/// `f{A}` for the formulas with which a part of the type of a definition is the formula that is needed.
pub(super) fn braces(definition: &Definition, part: &Formula, needed: &Formula) -> Option<String> {
    let formulas = part.instance_of(needed, &definition.parameters)?;
    let formulas: Vec<String> = formulas.iter().map(Formula::short).collect();
    let text = format!("{}{{{}}}", definition.name, formulas.join(", "));
    (text.chars().count() <= LONGEST).then(|| format!("write `{text}`"))
}

/// The same for a definition whose argument has this type.
pub(super) fn head(definition: &Definition, number: usize, found: &Formula) -> Option<String> {
    let mut rest = &definition.formula;
    for _ in 0..number {
        rest = rest.as_lolli()?.1;
    }
    braces(definition, rest.as_lolli()?.0, found)
}

/// What makes a term of a type one of another type; `closed` says whether the term mentions no linear variable.
pub(super) fn mismatch(
    source: &Source,
    term: &ast::Term,
    (wanted, found): (&Formula, &Formula),
    closed: bool,
) -> Option<String> {
    if found.as_bang() == Some(wanted) {
        return Some(derelicted(source, term));
    }
    if wanted.as_bang() == Some(found) {
        let no_box = "only a term that mentions no linear variable can be put in a box";
        return Some(if closed { boxed(source, term.span) } else { no_box.to_owned() });
    }
    missing(wanted, found).map(|domain| format!("an argument of type `{}` is missing", domain.short()))
}

/// A, if a function A ⊸ B stands where B is wanted.
fn missing<'a>(wanted: &Formula, found: &'a Formula) -> Option<&'a Formula> {
    found.as_lolli().filter(|(_, codomain)| *codomain == wanted).map(|(domain, _)| domain)
}
