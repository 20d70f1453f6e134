//! The bidirectional checker: one arm for each rule of section 5, in the order of its table.
//!
//! *Synthesis* finds a type, *checking* is given one. Nodes are pushed to the draft behind their parts.

use std::rc::Rc;

use crate::ast::{self, Name, Side, TermKind};
use crate::error::{Kind, Refusal, Result, Span};
use crate::formula::{Connective, Formula};
use crate::term::{Definition, Node, NodeId, Term, Variable};

use super::linearity::Scope;
use super::mend;
use super::names::Names;
use super::names::default_base;

pub(super) struct Checker<'a> {
    pub(super) names: Names<'a>,
    draft: Term,
    pub(super) scope: Scope,
    /// The definition without braces whose argument is read: where the argument stands, and its number.
    pub(super) applied: Option<(Span, Rc<Definition>, usize)>,
}

/// How a body gets its type.
#[derive(Clone, Copy)]
enum Goal<'a> {
    Synthesise,
    Against(&'a Formula),
}

type Typed = (NodeId, Formula);

impl<'a> Checker<'a> {
    pub(super) fn new(names: Names<'a>) -> Self {
        Self { names, draft: Term::default(), scope: Scope::default(), applied: None }
    }

    /// The draft, and which of its variables are banged and not linear.
    pub(super) fn finish(self) -> (Term, Vec<bool>) {
        let banged = self.scope.banged();
        (self.draft, banged)
    }

    pub(super) fn synthesise(&mut self, term: &ast::Term) -> Result<Typed> {
        self.term(term, Goal::Synthesise)
    }

    pub(super) fn check(&mut self, term: &ast::Term, formula: &Formula) -> Result<NodeId> {
        Ok(self.term(term, Goal::Against(formula))?.0)
    }

    fn term(&mut self, term: &ast::Term, goal: Goal<'_>) -> Result<Typed> {
        match &term.kind {
            // Terms that pass the goal on to a part.
            TermKind::Lambda { binder, domain, body } => {
                self.lambda(term.span, binder, domain.as_ref(), body, goal)
            }
            TermKind::LetTensor { scrutinee, left, right, body } => {
                self.let_tensor(scrutinee, (left, right), body, goal)
            }
            TermKind::LetUnit { scrutinee, body } => self.let_unit(scrutinee, body, goal),
            TermKind::Copy { scrutinee, left, right, body } => {
                self.copy(scrutinee, (left, right), body, goal)
            }
            TermKind::Discard { scrutinee, body } => {
                let (scrutinee, _) = self.banged(scrutinee)?;
                let (body, formula) = self.term(body, goal)?;
                Ok((self.draft.push(Node::Discard { scrutinee, body }), formula))
            }
            TermKind::Case { scrutinee, left, right } => self.case(term.span, scrutinee, left, right, goal),
            // Terms that build a connective.
            TermKind::Tensor(left, right) => {
                let parts = match goal {
                    Goal::Synthesise => None,
                    Goal::Against(formula) => match formula.connective() {
                        Connective::Tensor(a, b) => Some((a, b)),
                        _ => return Err(self.misfit(term.span, formula, "a tensor")),
                    },
                };
                let (left, a) = self.term(left, part(parts.map(|p| p.0)))?;
                let (right, b) = self.term(right, part(parts.map(|p| p.1)))?;
                self.built(term, goal, Node::Tensor(left, right), || a.tensor(b))
            }
            TermKind::With(left, right) => self.pair(term, left, right, goal),
            TermKind::Inject { side, braces, braces_span, term: inner } => {
                self.inject(term, *side, (braces.as_deref(), *braces_span), inner, goal)
            }
            TermKind::Promote { sources, body } => self.promote(term, sources, body, goal),
            TermKind::Cocopy(left, right) => self.cocopy(term, left, right, goal),
            TermKind::Coderelict(inner) => self.coderelict(term, inner, goal),
            // Terms whose type is found and then compared.
            TermKind::Numeral { value, braces } => {
                let Some(value) = *value else { return Err(self.too_large(term.span, "numeral")) };
                let base =
                    self.base(&value.to_string(), braces.as_deref(), term.span, goal, Formula::as_int)?;
                let formula = Formula::int(base.clone());
                self.found(term, goal, Node::Numeral { value, base }, formula)
            }
            TermKind::Word { digits, braces } => {
                let Some(digits) = digits.clone() else { return Err(self.too_large(term.span, "word")) };
                let base = self.base("0b…", braces.as_deref(), term.span, goal, Formula::as_bint)?;
                let formula = Formula::bint(base.clone());
                self.found(term, goal, Node::Word { digits, base }, formula)
            }
            _ => {
                let before = self.scope.fork();
                let (node, formula) = self.elimination(term)?;
                if let Goal::Against(wanted) = goal
                    && *wanted != formula
                {
                    return Err(self.mismatch(term, wanted, &formula, &before));
                }
                Ok((node, formula))
            }
        }
    }

    /// Variables, definitions, eliminations and ascriptions: always synthesised.
    fn elimination(&mut self, term: &ast::Term) -> Result<Typed> {
        Ok(match &term.kind {
            TermKind::Name { name, braces } => return self.name(name, braces.as_deref(), term.span),
            TermKind::Unit => (self.draft.push(Node::Unit), Formula::one()),
            TermKind::Apply(head, argument) => {
                let (function, found) = self.synthesise(head)?;
                let Some((domain, codomain)) = found.as_lolli() else {
                    return Err(self
                        .not_a(Kind::NotAFunction, head, "a function", &found, |f| f.as_lolli().is_some()));
                };
                self.applied = self.generic_head(head).map(|(found, number)| (argument.span, found, number));
                let argument = self.check(argument, domain)?;
                (self.draft.push(Node::Apply(function, argument)), codomain.clone())
            }
            TermKind::Derelict(inner) => {
                let leave = |refusal: Refusal| match refusal.at {
                    Some((_, span)) if refusal.kind == Kind::NotBanged && span == inner.span => {
                        refusal.help("leave `derelict` away".to_owned())
                    }
                    _ => refusal,
                };
                let (node, formula) = self.banged(inner).map_err(leave)?;
                (self.draft.push(Node::Derelict(node)), formula)
            }
            TermKind::First(pair) => {
                let (node, left, _) = self.with(pair)?;
                (self.draft.push(Node::First(node)), left)
            }
            TermKind::Second(pair) => {
                let (node, _, right) = self.with(pair)?;
                (self.draft.push(Node::Second(node)), right)
            }
            TermKind::Ascribe(inner, formula) => {
                let formula = self.names.formula(formula)?;
                (self.check(inner, &formula)?, formula)
            }
            TermKind::Coweaken { braces } => {
                self.differential(term.span)?;
                let inner =
                    self.names.base("coweaken", braces.as_deref(), term.span)?.unwrap_or_else(default_base);
                (self.draft.push(Node::Coweaken(inner.clone())), inner.bang())
            }
            // The other kinds have their arms in `term`.
            _ => (self.draft.push(Node::Unit), Formula::one()),
        })
    }

    /// A bound variable, else a definition.
    fn name(&mut self, name: &str, braces: Option<&[ast::Formula]>, span: Span) -> Result<Typed> {
        if let Some(variable) = self.scope.lookup(name) {
            self.names.arguments((name, &[]), braces, span)?;
            let formula = self.scope.mention(self.names, variable, span)?;
            return Ok((self.draft.push(Node::Variable(variable)), formula));
        }
        let bound = self.scope.names();
        let (definition, arguments, formula) = self.names.global(name, bound, braces, span)?;
        Ok((self.draft.push(Node::Global { definition, arguments }), formula))
    }

    /// The formula of a literal: its braces, else that of the type it is checked against, else the atom `a`.
    fn base(
        &self,
        word: &str,
        braces: Option<&[ast::Formula]>,
        span: Span,
        goal: Goal<'_>,
        read: fn(&Formula) -> Option<&Formula>,
    ) -> Result<Formula> {
        let given = self.names.base(word, braces, span)?;
        let wanted = if let Goal::Against(formula) = goal { read(formula).cloned() } else { None };
        Ok(given.or(wanted).unwrap_or_else(default_base))
    }

    fn lambda(
        &mut self,
        span: Span,
        binder: &Name,
        written: Option<&ast::Formula>,
        body: &ast::Term,
        goal: Goal<'_>,
    ) -> Result<Typed> {
        let (domain, inner) = match goal {
            Goal::Synthesise => {
                let Some(written) = written else {
                    let message = format!("the type of `{}` cannot be inferred", binder.text);
                    let help = format!("write `\\{}:A. …`, or `(… : A -o B)` around it", binder.text);
                    let refusal = self.names.refuse(Kind::CannotInfer, span, message);
                    return Err(refusal.variable(&*binder.text).help(help));
                };
                (self.names.formula(written)?, Goal::Synthesise)
            }
            Goal::Against(wanted) => {
                let Some((domain, codomain)) = wanted.as_lolli() else {
                    return Err(self.misfit(span, wanted, "a function"));
                };
                self.same(written, domain)?;
                (domain.clone(), Goal::Against(codomain))
            }
        };
        let variable = self.bind(binder, domain.clone());
        let (body, codomain) = self.term(body, inner)?;
        self.unbind(variable)?;
        let formula = match goal {
            Goal::Against(wanted) => wanted.clone(),
            Goal::Synthesise => self.names.limited(domain.clone().lolli(codomain.clone()), span)?,
        };
        Ok((self.draft.push(Node::Lambda { variable, domain, codomain, body }), formula))
    }

    /// Refuses an annotation that is not the formula it must be.
    fn same(&self, written: Option<&ast::Formula>, wanted: &Formula) -> Result<()> {
        let Some(written) = written else { return Ok(()) };
        let formula = self.names.formula(written)?;
        if formula == *wanted { Ok(()) } else { Err(self.names.mismatch(written.span, wanted, &formula)) }
    }

    fn pair(
        &mut self,
        term: &ast::Term,
        left: &ast::Term,
        right: &ast::Term,
        goal: Goal<'_>,
    ) -> Result<Typed> {
        let parts = match goal {
            Goal::Synthesise => None,
            Goal::Against(formula) => match formula.connective() {
                Connective::With(a, b) => Some((a, b)),
                _ => return Err(self.misfit(term.span, formula, "a pair")),
            },
        };
        let fork = self.scope.fork();
        let (left, a) = self.term(left, part(parts.map(|p| p.0)))?;
        let middle = self.scope.other_branch(&fork);
        let (right, b) = self.term(right, part(parts.map(|p| p.1)))?;
        self.scope.join(self.names, &fork, middle, term.span)?;
        self.built(term, goal, Node::With(left, right), || a.with(b))
    }

    fn inject(
        &mut self,
        term: &ast::Term,
        side: Side,
        (braces, braces_span): (Option<&[ast::Formula]>, Span),
        inner: &ast::Term,
        goal: Goal<'_>,
    ) -> Result<Typed> {
        let word = if side == Side::Left { "inl" } else { "inr" };
        let (wanted, other) = match goal {
            Goal::Against(formula) => {
                let Connective::Plus(a, b) = formula.connective() else {
                    return Err(self.misfit(term.span, formula, "an injection"));
                };
                let (wanted, other) = if side == Side::Left { (a, b) } else { (b, a) };
                if self.names.base(word, braces, braces_span)?.is_some_and(|written| written != *other) {
                    self.same(braces.and_then(<[_]>::first), other)?;
                }
                (Some(wanted), other.clone())
            }
            Goal::Synthesise => {
                let Some(other) = self.names.base(word, braces, braces_span)? else {
                    let message = format!("the other side of this `{word}` cannot be inferred");
                    let help = format!("write `{word}{{A}} …`, with the type of the other side");
                    return Err(self.names.refuse(Kind::CannotInfer, term.span, message).help(help));
                };
                (None, other)
            }
        };
        let (inner, found) = self.term(inner, part(wanted))?;
        match side {
            Side::Left => self.built(term, goal, Node::InLeft(other.clone(), inner), || found.plus(other)),
            Side::Right => self.built(term, goal, Node::InRight(other.clone(), inner), || other.plus(found)),
        }
    }

    fn let_tensor(
        &mut self,
        scrutinee: &ast::Term,
        (left, right): (&Name, &Name),
        body: &ast::Term,
        goal: Goal<'_>,
    ) -> Result<Typed> {
        self.distinct(left, right)?;
        let (tensor, found) = self.synthesise(scrutinee)?;
        let Connective::Tensor(a, b) = found.connective() else {
            return Err(self.not_a(Kind::NotATensor, scrutinee, "a tensor", &found, |f| {
                matches!(f.connective(), Connective::Tensor(..))
            }));
        };
        let (left, right) = (self.bind(left, a.clone()), self.bind(right, b.clone()));
        let (body, formula) = self.term(body, goal)?;
        self.unbind(left)?;
        self.unbind(right)?;
        Ok((self.draft.push(Node::LetTensor { scrutinee: tensor, left, right, body }), formula))
    }

    fn let_unit(&mut self, scrutinee: &ast::Term, body: &ast::Term, goal: Goal<'_>) -> Result<Typed> {
        let (unit, found) = self.synthesise(scrutinee)?;
        if found.connective() != &Connective::One {
            return Err(self.not_a(Kind::NotAUnit, scrutinee, "of type 1", &found, |f| *f == Formula::one()));
        }
        let (body, formula) = self.term(body, goal)?;
        Ok((self.draft.push(Node::LetUnit { scrutinee: unit, body }), formula))
    }

    fn copy(
        &mut self,
        scrutinee: &ast::Term,
        (left, right): (&Name, &Name),
        body: &ast::Term,
        goal: Goal<'_>,
    ) -> Result<Typed> {
        self.distinct(left, right)?;
        let (scrutinee, inner) = self.banged(scrutinee)?;
        let (left, right) = (self.bind(left, inner.clone().bang()), self.bind(right, inner.bang()));
        let (body, formula) = self.term(body, goal)?;
        self.unbind(left)?;
        self.unbind(right)?;
        Ok((self.draft.push(Node::Copy { scrutinee, left, right, body }), formula))
    }

    fn case(
        &mut self,
        span: Span,
        scrutinee: &ast::Term,
        left: &(Name, Box<ast::Term>),
        right: &(Name, Box<ast::Term>),
        goal: Goal<'_>,
    ) -> Result<Typed> {
        let (sum, found) = self.synthesise(scrutinee)?;
        let Connective::Plus(a, b) = found.connective() else {
            return Err(self.not_a(Kind::NotAPlus, scrutinee, "a plus", &found, |f| {
                matches!(f.connective(), Connective::Plus(..))
            }));
        };
        let fork = self.scope.fork();
        let x = self.bind(&left.0, a.clone());
        let (first, formula) = self.term(&left.1, goal)?;
        self.unbind(x)?;
        let middle = self.scope.other_branch(&fork);
        let y = self.bind(&right.0, b.clone());
        let second = self.check(&right.1, &formula)?;
        self.unbind(y)?;
        self.scope.join(self.names, &fork, middle, span)?;
        let node = Node::Case { scrutinee: sum, left: (x, first), right: (y, second) };
        Ok((self.draft.push(node), formula))
    }

    fn promote(
        &mut self,
        term: &ast::Term,
        sources: &[(ast::Term, Name)],
        body: &ast::Term,
        goal: Goal<'_>,
    ) -> Result<Typed> {
        let inner = match goal {
            Goal::Synthesise => None,
            Goal::Against(formula) => {
                Some(formula.as_bang().ok_or_else(|| self.misfit(term.span, formula, "a box"))?)
            }
        };
        let mut seen = std::collections::HashSet::new();
        if let Some((_, name)) = sources.iter().find(|(_, name)| !seen.insert(&name.text)) {
            return Err(self.duplicate(name));
        }
        let mut typed = Vec::with_capacity(sources.len());
        for (source, _) in sources {
            typed.push(self.banged(source)?);
        }
        self.scope.enter_box();
        let mut bound = Vec::with_capacity(sources.len());
        for ((node, inner), (_, name)) in typed.into_iter().zip(sources) {
            bound.push((node, self.bind(name, inner.bang())));
        }
        let (body, found) = self.term(body, part(inner))?;
        for (_, variable) in &bound {
            self.unbind(*variable)?;
        }
        self.scope.leave_box();
        self.built(term, goal, Node::Promote { sources: bound, body }, || found.bang())
    }

    fn cocopy(
        &mut self,
        term: &ast::Term,
        left: &ast::Term,
        right: &ast::Term,
        goal: Goal<'_>,
    ) -> Result<Typed> {
        self.differential(term.span)?;
        let (left, formula) = match goal {
            Goal::Against(formula) => {
                if !formula.is_banged() {
                    return Err(self.misfit(term.span, formula, "a cocopy"));
                }
                (self.check(left, formula)?, formula.clone())
            }
            Goal::Synthesise => {
                let (left, inner) = self.banged(left)?;
                (left, inner.bang())
            }
        };
        let right = self.check(right, &formula)?;
        Ok((self.draft.push(Node::Cocopy(left, right)), formula))
    }

    fn coderelict(&mut self, term: &ast::Term, inner: &ast::Term, goal: Goal<'_>) -> Result<Typed> {
        self.differential(term.span)?;
        let wanted = match goal {
            Goal::Synthesise => None,
            Goal::Against(formula) => {
                Some(formula.as_bang().ok_or_else(|| self.misfit(term.span, formula, "a coderelict"))?)
            }
        };
        let (inner, found) = self.term(inner, part(wanted))?;
        self.built(term, goal, Node::Coderelict(inner), || found.bang())
    }

    /// Synthesises !A and gives A.
    fn banged(&mut self, term: &ast::Term) -> Result<Typed> {
        let before = self.scope.fork();
        let (node, found) = self.synthesise(term)?;
        if let Some(inner) = found.as_bang() {
            return Ok((node, inner.clone()));
        }
        let refusal = self.not_a(Kind::NotBanged, term, "of a type `!A`", &found, |_| false);
        Err(if self.scope.is_closed_since(&before) {
            refusal.help(mend::boxed(self.names.source, term.span))
        } else {
            refusal
        })
    }

    /// Synthesises A & B and gives both.
    fn with(&mut self, pair: &ast::Term) -> Result<(NodeId, Formula, Formula)> {
        let (node, found) = self.synthesise(pair)?;
        match found.connective() {
            Connective::With(a, b) => Ok((node, a.clone(), b.clone())),
            _ => Err(self.not_a(Kind::NotAWith, pair, "a with", &found, |f| {
                matches!(f.connective(), Connective::With(..))
            })),
        }
    }

    /// A node whose parts have been checked if there is a goal; else its type is the one that they make.
    fn built(
        &mut self,
        term: &ast::Term,
        goal: Goal<'_>,
        node: Node,
        made: impl FnOnce() -> Formula,
    ) -> Result<Typed> {
        let formula = match goal {
            Goal::Against(formula) => formula.clone(),
            Goal::Synthesise => self.names.limited(made(), term.span)?,
        };
        Ok((self.draft.push(node), formula))
    }

    /// A node whose type is known, compared with the goal.
    fn found(&mut self, term: &ast::Term, goal: Goal<'_>, node: Node, formula: Formula) -> Result<Typed> {
        match goal {
            Goal::Against(wanted) if *wanted != formula => {
                Err(self.mismatch(term, wanted, &formula, &self.scope.fork()))
            }
            _ => Ok((self.draft.push(node), self.names.limited(formula, term.span)?)),
        }
    }

    fn bind(&mut self, name: &Name, formula: Formula) -> Variable {
        self.scope.bind(self.names, &mut self.draft, name, formula)
    }

    fn unbind(&mut self, variable: Variable) -> Result<()> {
        self.scope.unbind(self.names, variable)
    }

    fn distinct(&self, left: &Name, right: &Name) -> Result<()> {
        if left.text == right.text { Err(self.duplicate(right)) } else { Ok(()) }
    }
}

fn part(formula: Option<&Formula>) -> Goal<'_> {
    formula.map_or(Goal::Synthesise, Goal::Against)
}
