//! What the names in formulas mean, and the definitions that names in terms mean.

use std::rc::Rc;

use crate::ast::{self, FormulaKind};
use crate::declared::Program;
use crate::error::{Kind, Refusal, Result, Source, Span};
use crate::formula::{Apart, Formula, Instance, MAX_DEPTH, MAX_SIZE};
use crate::term::Definition;

/// What a text can refer to: the program so far and the parameters of its own declaration.
#[derive(Clone, Copy)]
pub(crate) struct Names<'a> {
    pub(crate) program: &'a Program,
    pub(crate) source: &'a Rc<Source>,
    pub(crate) parameters: &'a [Rc<str>],
}

impl<'a> Names<'a> {
    /// A refusal at a span of this text.
    pub(crate) fn refuse(&self, kind: Kind, span: Span, message: impl Into<String>) -> Refusal {
        Refusal::new(kind, message).at(self.source, span)
    }

    /// The formula that a text means, with all abbreviations expanded.
    pub(crate) fn formula(&self, written: &ast::Formula) -> Result<Formula> {
        let formula = match &written.kind {
            FormulaKind::One => Formula::one(),
            FormulaKind::Bang(a) => self.formula(a)?.bang(),
            FormulaKind::Tensor(a, b) => self.formula(a)?.tensor(self.formula(b)?),
            FormulaKind::Lolli(a, b) => self.formula(a)?.lolli(self.formula(b)?),
            FormulaKind::With(a, b) => self.formula(a)?.with(self.formula(b)?),
            FormulaKind::Plus(a, b) => self.formula(a)?.plus(self.formula(b)?),
            FormulaKind::Name { name, arguments } => self.named(name, arguments.as_deref(), written.span)?,
        };
        self.limited(formula, written.span)
    }

    /// In the order of section 2: a parameter, a type of the file, an abbreviation, an atom.
    fn named(&self, name: &Rc<str>, arguments: Option<&[ast::Formula]>, span: Span) -> Result<Formula> {
        if self.parameters.contains(name) {
            self.arguments((name, &[]), arguments, span)?;
            return Ok(Formula::parameter(name));
        }
        if let Some(found) = self.program.abbreviation(name) {
            let arguments = self.arguments((name, &found.parameters), arguments, span)?;
            return Ok(found.formula.instantiate(&Instance::new(&found.parameters, &arguments)));
        }
        let abbreviation: Option<fn(Formula) -> Formula> = match &**name {
            "end" => Some(Formula::end),
            "int" => Some(Formula::int),
            "bint" => Some(Formula::bint),
            "bool" => Some(Formula::bool),
            _ => None,
        };
        if let Some(expand) = abbreviation {
            let base = self.arguments((name, &["A".into()]), arguments, span)?.pop();
            return Ok(expand(base.unwrap_or_else(default_base)));
        }
        if self.program.has_atom(name) || is_implicit_atom(name) {
            self.arguments((name, &[]), arguments, span)?;
            return Ok(Formula::atom(name));
        }
        let message = format!("there is no formula `{name}`");
        let others = self.parameters.iter().map(|name| &**name).chain(ABBREVIATIONS).collect();
        let help = match self.program.near_formula(name, others) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("declare it: `atom {name};`"),
        };
        Err(self.refuse(Kind::UnknownType, span, message).variable(&**name).help(help))
    }

    /// The formulas in braces behind a word with these parameters; without braces, all are the atom `a`.
    pub(crate) fn arguments(
        &self,
        (word, parameters): (&str, &[Rc<str>]),
        written: Option<&[ast::Formula]>,
        span: Span,
    ) -> Result<Vec<Formula>> {
        let wanted = parameters.len();
        let Some(written) = written else { return Ok(vec![default_base(); wanted]) };
        if written.len() != wanted {
            let formulas = if wanted == 1 { "formula is" } else { "formulas are" };
            let message = format!("{wanted} {formulas} wanted in braces, not {}", written.len());
            let help = match wanted {
                0 => format!("write `{word}` without braces"),
                _ => format!("write `{word}{{{}}}`", parameters.join(", ")),
            };
            let refusal = self.refuse(Kind::Arity, span, message);
            return Err(refusal.expected(wanted).found(written.len()).help(help));
        }
        written.iter().map(|formula| self.formula(formula)).collect()
    }

    /// The formula in the braces of a literal or another word, if there are braces.
    pub(crate) fn base(
        &self,
        word: &str,
        written: Option<&[ast::Formula]>,
        span: Span,
    ) -> Result<Option<Formula>> {
        let written = written.map(|written| self.arguments((word, &["A".into()]), Some(written), span));
        Ok(written.transpose()?.and_then(|mut formulas| formulas.pop()))
    }

    /// The definition that a name in a term means, with its arguments and its type; `bound` are the variables in scope.
    pub(crate) fn global<'b>(
        &self,
        name: &str,
        bound: impl Iterator<Item = &'b str>,
        braces: Option<&[ast::Formula]>,
        span: Span,
    ) -> Result<(Rc<Definition>, Vec<Formula>, Formula)> {
        let Some(definition) = self.program.definition(name) else {
            let message = format!("there is no variable or definition `{name}`");
            let help = match self.program.near_term(name, bound.collect()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "`ill check --library` lists the definitions of the library".to_owned(),
            };
            return Err(self.refuse(Kind::Unbound, span, message).variable(name).help(help));
        };
        let arguments = self.arguments((name, &definition.parameters), braces, span)?;
        let formula = definition.formula.instantiate(&Instance::new(&definition.parameters, &arguments));
        Ok((definition.clone(), arguments, self.limited(formula, span)?))
    }

    /// The refusal of a formula that is not the one that is wanted.
    pub(crate) fn mismatch(&self, span: Span, wanted: &Formula, found: &Formula) -> Refusal {
        let Apart { long, short } = Apart::new(wanted, found);
        let [expected, found] = long;
        let message = format!("the type `{}` is wanted, and this has the type `{}`", short[0], short[1]);
        self.refuse(Kind::TypeMismatch, span, message).expected(expected).found(found)
    }

    /// Refuses a formula that is too large to be worked with.
    pub(crate) fn limited(&self, formula: Formula, span: Span) -> Result<Formula> {
        if formula.size() <= MAX_SIZE && formula.depth() <= MAX_DEPTH {
            return Ok(formula);
        }
        let message = format!("this formula has more than {MAX_SIZE} connectives or {MAX_DEPTH} levels");
        Err(self.refuse(Kind::Limit, span, message))
    }
}

/// The abbreviations that need no declaration.
const ABBREVIATIONS: [&str; 4] = ["end", "int", "bint", "bool"];

/// The atom `a`.
pub(crate) fn default_base() -> Formula {
    Formula::atom("a")
}

/// One alphabetic character, then ASCII digits or primes only.
fn is_implicit_atom(name: &str) -> bool {
    let mut characters = name.chars();
    characters.next().is_some_and(char::is_alphabetic) && characters.all(|c| c.is_ascii_digit() || c == '\'')
}
