//! The refusals of the checker, each with what would mend the text.

use std::rc::Rc;

use super::check::Checker;
use super::linearity::Fork;
use super::mend;
use crate::ast::{self, Name, TermKind};
use crate::declared::Extension;
use crate::error::{Kind, Refusal, Result, Span};
use crate::formula::{Connective, Formula};
use crate::parse::MAX_LITERAL;
use crate::term::Definition;

impl Checker<'_> {
    /// The definition at the head of an application, if it is used without braces, and how many arguments it has had.
    pub(super) fn generic_head(&self, mut head: &ast::Term) -> Option<(Rc<Definition>, usize)> {
        let mut number = 0;
        while let TermKind::Apply(inner, _) = &head.kind {
            head = inner;
            number += 1;
        }
        let TermKind::Name { name, braces: None } = &head.kind else { return None };
        let definition = self.names.program.definition(name).filter(|_| self.scope.lookup(name).is_none())?;
        (!definition.parameters.is_empty()).then(|| (definition.clone(), number))
    }

    pub(super) fn differential(&self, span: Span) -> Result<()> {
        if self.names.program.mode().extension == Extension::Differential {
            return Ok(());
        }
        let message = "this term belongs to the differential extension, which is off";
        let help = "`--differential` turns it on".to_owned();
        Err(self.names.refuse(Kind::DifferentialDisabled, span, message).help(help))
    }

    pub(super) fn duplicate(&self, name: &Name) -> Refusal {
        let message = format!("`{}` is bound twice by one pattern", name.text);
        let help = "give one of the two another name".to_owned();
        self.names.refuse(Kind::DuplicateName, name.span, message).variable(&*name.text).help(help)
    }

    /// A term of another type than is wanted, which begins at `before`.
    pub(super) fn mismatch(
        &self,
        term: &ast::Term,
        wanted: &Formula,
        found: &Formula,
        before: &Fork,
    ) -> Refusal {
        let definition = self.generic_head(term).filter(|(_, number)| *number == 0);
        let head = self.applied.as_ref().filter(|(span, ..)| *span == term.span);
        let help = definition
            .and_then(|(definition, _)| mend::braces(&definition, &definition.formula, wanted))
            .or_else(|| head.and_then(|(_, head, number)| mend::head(head, *number, found)))
            .or_else(|| {
                let closed = self.scope.is_closed_since(before);
                mend::mismatch(self.names.source, term, (wanted, found), closed)
            });
        self.names.mismatch(term.span, wanted, found).help(help)
    }

    /// A term that builds another connective than is wanted.
    pub(super) fn misfit(&self, span: Span, wanted: &Formula, found: &str) -> Refusal {
        let message = format!("the type `{}` is wanted, and this is {found}", wanted.short());
        let is_inside = wanted.as_bang().is_some_and(|inner| match inner.connective() {
            Connective::Lolli(..) => found == "a function",
            Connective::Tensor(..) => found == "a tensor",
            Connective::With(..) => found == "a pair",
            Connective::Plus(..) => found == "an injection",
            _ => false,
        });
        let help = is_inside.then(|| mend::boxed(self.names.source, span));
        self.names.refuse(Kind::TypeMismatch, span, message).expected(wanted).found(found).help(help)
    }

    /// A term of the wrong connective; `fits` says whether a formula would do.
    pub(super) fn not_a(
        &self,
        kind: Kind,
        term: &ast::Term,
        what: &str,
        found: &Formula,
        fits: impl Fn(&Formula) -> bool,
    ) -> Refusal {
        let message = format!("this must be {what}, and its type is `{}`", found.short());
        let help = match (kind, found.connective()) {
            (_, Connective::Bang(inner)) if fits(inner) => Some(mend::derelicted(self.names.source, term)),
            (Kind::NotAFunction, _) => Some("it takes no argument".to_owned()),
            (Kind::NotAWith, Connective::Tensor(..)) => Some("write `let x * y = … in …`".to_owned()),
            (Kind::NotATensor, Connective::With(..)) => Some("write `fst …` or `snd …`".to_owned()),
            _ => None,
        };
        self.names.refuse(kind, term.span, message).found(found).help(help)
    }

    /// At the literal without its braces.
    pub(super) fn too_large(&self, span: Span, what: &str) -> Refusal {
        let text = self.names.source.text.get(span.start..span.end).unwrap_or("");
        let length = text.find(|c: char| !c.is_ascii_digit() && c != 'b').unwrap_or(text.len());
        let message = match what {
            "numeral" => format!("a numeral is at most {MAX_LITERAL}"),
            _ => format!("a word has at most {MAX_LITERAL} digits"),
        };
        self.names.refuse(Kind::Limit, Span { start: span.start, end: span.start + length }, message)
    }
}
