//! Expressions: scopes become [`Reduce`]s, and every read says how a missing element is read.

use super::scope::{self, Occurrences, is_explicit, is_product};
use super::{Alone, Context, IndexNote, Mention};
use crate::ast::{self, ExprKind, Joint, Literal, LiteralKind, PlaceKind, Reference, Span};
use crate::error::{Code, Refusal};
use crate::function::Function;
use crate::program::{
    Argument, Axis, AxisFunction, Call, Expr, Guard, IndexFn, IndexId, Operation, Otherwise, Read, Reduce,
    When,
};
use crate::value::Const;
use crate::walk::guard_indices;

/// Where an expression stands, as far as N9 cares.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reading {
    /// Whether the equation's left side is square.
    pub(super) square: bool,
    /// Whether the innermost call around is an elementwise function.
    pub(super) elementwise: bool,
}

/// The indices that names stand for, innermost last.
#[derive(Debug, Default)]
pub(super) struct Bound {
    names: Vec<(String, IndexId)>,
    /// Wildcards and slices of the scope at hand.
    pub(super) loose: Vec<IndexId>,
}

impl Bound {
    pub(super) fn find(&self, name: &str) -> Option<IndexId> {
        self.names.iter().rev().find(|(known, _)| known == name).map(|(_, id)| *id)
    }

    /// All indices that are bound.
    pub(super) fn ids(&self) -> Vec<IndexId> {
        self.names.iter().map(|(_, id)| *id).collect()
    }

    pub(super) fn push(&mut self, name: &str, id: IndexId) {
        self.names.push((name.to_owned(), id));
    }
}

/// The additive terms of an expression, each with whether it is subtracted.
pub(super) fn additive(expr: &ast::Expr) -> Vec<(bool, &ast::Expr)> {
    match &expr.kind {
        ExprKind::Sum(terms) => terms.iter().map(|(minus, term)| (*minus, term)).collect(),
        _ => vec![(false, expr)],
    }
}

/// `y = x + c`, `y = c - x` and the like: the two names.
fn one_to_one(literal: &Literal) -> Option<(&str, &str)> {
    // Sums lean to the left and are as deep as they are long.
    fn only(expr: &ast::IndexExpr, depth: usize) -> Option<Option<&str>> {
        let only = |inner| if depth > 64 { None } else { only(inner, depth + 1) };
        match &expr.kind {
            ast::IndexKind::Index(name) => Some(Some(name)),
            ast::IndexKind::Integer(_) | ast::IndexKind::Name(_) => Some(None),
            ast::IndexKind::Negate(inner) | ast::IndexKind::Group(inner) => only(inner),
            ast::IndexKind::Binary(ast::IndexOperator::Add | ast::IndexOperator::Subtract, left, right) => {
                match (only(left)?, only(right)?) {
                    (Some(_), Some(_)) => None,
                    (left, right) => Some(left.or(right)),
                }
            }
            _ => None,
        }
    }
    let LiteralKind::Assign { index, value } = &literal.kind else { return None };
    Some((&index.text, only(value, 0)??))
}

/// Which guards restrict the support inside: those that name an index that is bound there and not
/// around, and those that share a name of their own with such a guard (`m = i - j, m <= 1`).
fn reached(guards: &[&Literal], inner: &Occurrences, bound: &Bound) -> Vec<bool> {
    let own = |guard: &&Literal| {
        let mut names = Occurrences::default();
        names.literals(std::slice::from_ref(*guard));
        let open = names.all().map(|(name, _)| name.to_owned());
        open.filter(|name| bound.find(name).is_none()).collect::<Vec<String>>()
    };
    let names: Vec<Vec<String>> = guards.iter().map(own).collect();
    let mut known: Vec<&String> = Vec::new();
    let mut inside = vec![false; guards.len()];
    loop {
        let meets = |name: &String| inner.contains(name) || known.contains(&name);
        let next = names.iter().zip(&inside).position(|(names, inside)| !inside && names.iter().any(meets));
        let Some(at) = next else { return inside };
        inside[at] = true;
        known.extend(&names[at]);
    }
}

impl<'a> Context<'a> {
    /// Binds the names that belong to this scope: summed ones and those that guards alone use.
    /// Rules count every name of a positive literal as summed.
    pub(super) fn bind_scope(
        &mut self,
        occurrences: &Occurrences,
        summed: impl Fn(&str) -> bool,
        bound: &mut Bound,
    ) -> (Vec<IndexId>, Vec<IndexId>) {
        let (mut over, mut exists) = (Vec::new(), Vec::new());
        for (name, occurrence) in occurrences.placed_here() {
            let sums = occurrence.outside_guards || summed(name);
            if bound.find(name).is_some() || !(sums || occurrence.own_guard) {
                continue;
            }
            let id = self.named_index(name, occurrence.first);
            bound.push(name, id);
            if sums { over.push(id) } else { exists.push(id) }
        }
        (over, exists)
    }

    /// A scope: one additive term with the guards that restrict it.
    pub(super) fn scoped(
        &mut self,
        expr: &ast::Expr,
        guards: &[&Literal],
        reading: Reading,
        bound: &mut Bound,
    ) -> Option<Expr> {
        let (over, when, body) = self.scope_parts(expr, guards, reading, bound)?;
        if over.is_empty() && when.guards.is_empty() {
            return Some(body);
        }
        let operation = Operation::Sum;
        Some(Expr::Reduce(Box::new(Reduce { operation, over, when, body, explicit: false, span: expr.span })))
    }

    /// The parts of a scope: summed indices, guards, body.
    pub(super) fn scope_parts(
        &mut self,
        expr: &ast::Expr,
        guards: &[&Literal],
        reading: Reading,
        bound: &mut Bound,
    ) -> Option<(Vec<IndexId>, When, Expr)> {
        let mut occurrences = Occurrences::default();
        occurrences.expression(expr);
        for guard in guards {
            occurrences.literals(std::slice::from_ref(*guard));
        }
        let depth = bound.names.len();
        let outer = std::mem::take(&mut bound.loose);
        let (mut over, mut exists) = self.bind_scope(&occurrences, |_| false, bound);
        // The left side's indices belong to the outermost scopes.
        let left = std::mem::take(&mut self.left);
        let opened: Vec<IndexId> = over.iter().chain(&exists).chain(&left).copied().collect();
        self.note_assignments(guards.iter().copied(), Some(expr), &opened, bound);
        // Where `y = x + 1` computes an index of the left side, each `y` has one `x`: asking for
        // some `x` is summing over it.
        for literal in guards {
            if let Some((name, from)) = one_to_one(literal)
                && bound.find(name).is_some_and(|id| left.contains(&id))
                && let Some(at) = exists.iter().position(|id| bound.find(from) == Some(*id))
            {
                over.push(exists.remove(at));
            }
        }
        // The body of a group that is a product is this scope itself. It does not see the names
        // that only guards use.
        let names = bound.names.clone();
        bound.names.retain(|(_, id)| !exists.contains(id));
        let body = self.expression(expr, reading, bound);
        bound.names = names;
        over.append(&mut bound.loose);
        let guards = self.guards(guards, reading, bound);
        exists.append(&mut bound.loose);
        bound.loose = outer;
        bound.names.truncate(depth);
        self.left = left;
        let guards = guards?;
        // What the guards of scopes inside ask for is asked there: an empty domain leaves this scope its bindings.
        exists.retain(|index| {
            let mut is_asked = false;
            guards.iter().for_each(|guard| guard_indices(guard, &mut |other| is_asked |= other == *index));
            is_asked
        });
        Some((over, When { exists, ..guards.into() }, body?))
    }

    /// An expression inside its scope.
    pub(super) fn expression(
        &mut self,
        expr: &ast::Expr,
        reading: Reading,
        bound: &mut Bound,
    ) -> Option<Expr> {
        match &expr.kind {
            ExprKind::Number(number) => {
                let heading = self.heading;
                let halves = heading.and_then(|(tensor, left)| self.literal(tensor, left, number, true));
                Some(match halves {
                    Some(halves) => Expr::Plus(halves.map(Expr::Number).to_vec()),
                    None => Expr::Number(number.value),
                })
            }
            ExprKind::Sum(terms) => {
                let parts: Option<Vec<Expr>> = terms
                    .iter()
                    .map(|(minus, term)| {
                        let term = self.expression(term, reading, bound)?;
                        Some(negate_if(*minus, term))
                    })
                    .collect();
                Some(Expr::Plus(parts?))
            }
            ExprKind::Product(factors) => self.product(factors, reading, bound),
            ExprKind::Negate(inner) => Some(negate_if(true, self.expression(inner, reading, bound)?)),
            ExprKind::Power(base, exponent, _) => {
                let base = self.expression(base, reading, bound)?;
                let exponent = self.expression(exponent, reading, bound)?;
                Some(Expr::Power(Box::new(base), Box::new(exponent)))
            }
            ExprKind::Reference(reference) => self.read_value(reference, reading, bound),
            ExprKind::Not(reference) => self.missing(reference, bound),
            ExprKind::Index(name) => {
                let id = self.bound_index(&name.text, name.span, bound)?;
                self.draft.numeric_uses.push((id, name.span));
                Some(Expr::Index(IndexFn::Index(id)))
            }
            ExprKind::Text(text) => {
                self.refuse(Refusal::new(
                    Code::SymbolAsNumber,
                    text.span,
                    format!("the symbol `{}` has no number", text.value),
                ));
                None
            }
            ExprKind::Call { name, axes, arguments, guards } => {
                self.call(expr.span, name, axes.as_deref(), arguments, guards, reading, bound)
            }
            ExprKind::Group { expr: inner, guards } => {
                let guards: Vec<&Literal> = guards.iter().collect();
                if is_product(inner) {
                    return self.scoped(inner, &guards, reading, bound);
                }
                let body = self.expression(inner, reading, bound)?;
                if guards.is_empty() {
                    return Some(body);
                }
                let when = self.when(&guards, reading, bound)?;
                Some(guarded(when, body, false, expr.span))
            }
        }
    }

    /// Guards at a place where everything else is bound: their own names are existential.
    pub(super) fn when(&mut self, guards: &[&Literal], reading: Reading, bound: &mut Bound) -> Option<When> {
        let mut occurrences = Occurrences::default();
        for guard in guards {
            occurrences.literals(std::slice::from_ref(*guard));
        }
        let depth = bound.names.len();
        let outer = std::mem::take(&mut bound.loose);
        let (_, mut exists) = self.bind_scope(&occurrences, |_| false, bound);
        self.note_assignments(guards.iter().copied(), None, &exists, bound);
        let guards = self.guards(guards, reading, bound);
        exists.append(&mut bound.loose);
        bound.loose = outer;
        bound.names.truncate(depth);
        Some(When { exists, ..guards?.into() })
    }

    /// Factors from left to right; a divisor divides all that stands before it.
    fn product(
        &mut self,
        factors: &[(Joint, ast::Expr)],
        reading: Reading,
        bound: &mut Bound,
    ) -> Option<Expr> {
        let mut parts: Vec<Expr> = Vec::new();
        for (joint, factor) in factors {
            let value = self.expression(factor, reading, bound)?;
            match joint {
                Joint::First | Joint::Beside | Joint::Times => parts.push(value),
                Joint::Over => {
                    let before = one_or(std::mem::take(&mut parts), Expr::Product);
                    parts.push(Expr::Quotient(Box::new(before), Box::new(value)));
                }
                Joint::Remainder => {
                    let before = one_or(std::mem::take(&mut parts), Expr::Product);
                    parts.push(remainder(before, value, factor.span));
                }
            }
        }
        Some(one_or(parts, Expr::Product))
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of one call")]
    fn call(
        &mut self,
        span: Span,
        name: &ast::Name,
        axes: Option<&[ast::Name]>,
        arguments: &[ast::Expr],
        guards: &[Literal],
        reading: Reading,
        bound: &mut Bound,
    ) -> Option<Expr> {
        if is_explicit(&name.text, axes.is_some(), arguments.len()) {
            return self.explicit(span, name, axes.unwrap_or(&[]), arguments, guards, reading, bound);
        }
        let axis = matches!(name.text.as_str(), "softmax" | "lnorm");
        let inner = Reading { elementwise: !axis, ..reading };
        let (inside, outside) = self.split_guards(arguments, guards, bound);
        let mut values = Vec::new();
        for argument in arguments {
            values.push(self.argument(argument, &inside, inner, bound)?);
        }
        let when = self.when(&outside, reading, bound)?;
        if axis {
            return self.axis(name, axes, values, when, bound);
        }
        let Some(function) = self.function(&name.text) else {
            let message = format!("`{}` must be the whole right side of an equation", name.text);
            self.refuse(Refusal::new(Code::UnknownFunction, name.span, message));
            return None;
        };
        Some(Expr::Call(Box::new(Call { function, arguments: values, when, span: name.span })))
    }

    fn function(&self, name: &str) -> Option<Function> {
        self.functions.find(name)
    }

    /// The guards that restrict the support inside the arguments, because they name an index
    /// that is bound there, and the others.
    fn split_guards<'g>(
        &self,
        arguments: &[ast::Expr],
        guards: &'g [Literal],
        bound: &Bound,
    ) -> (Vec<&'g Literal>, Vec<&'g Literal>) {
        let mut inner = Occurrences::default();
        arguments.iter().for_each(|argument| {
            inner.expression(argument);
        });
        let all: Vec<&Literal> = guards.iter().collect();
        let inside = reached(&all, &inner, bound);
        let side = |wanted: bool| all.iter().zip(&inside).filter(move |(_, inside)| **inside == wanted);
        (side(true).map(|(guard, _)| *guard).collect(), side(false).map(|(guard, _)| *guard).collect())
    }

    /// An argument: its additive terms are scopes side by side.
    fn argument(
        &mut self,
        argument: &ast::Expr,
        guards: &[&Literal],
        reading: Reading,
        bound: &mut Bound,
    ) -> Option<Expr> {
        let mut parts = Vec::new();
        for (minus, term) in additive(argument) {
            let mut inner = Occurrences::default();
            inner.expression(term);
            let inside = reached(guards, &inner, bound);
            let mine: Vec<&Literal> =
                guards.iter().zip(inside).filter(|(_, inside)| *inside).map(|(guard, _)| *guard).collect();
            let part = self.scoped(term, &mine, reading, bound)?;
            parts.push(negate_if(minus, part));
        }
        Some(one_or(parts, Expr::Terms))
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of one call")]
    fn explicit(
        &mut self,
        span: Span,
        name: &ast::Name,
        axes: &[ast::Name],
        arguments: &[ast::Expr],
        guards: &[Literal],
        reading: Reading,
        bound: &mut Bound,
    ) -> Option<Expr> {
        let operation = match name.text.as_str() {
            "sum" => Operation::Sum,
            "prod" => Operation::Product,
            "max" => Operation::Max,
            "min" => Operation::Min,
            "avg" => Operation::Avg,
            _ => Operation::Count,
        };
        let depth = bound.names.len();
        let mut over = Vec::new();
        for axis in axes {
            let declared = self.declared(&axis.text);
            let note = IndexNote { declared, explicit: true, ..IndexNote::default() };
            let id = self.fresh_index(&axis.text, axis.span, note);
            bound.push(&axis.text, id);
            over.push(id);
        }
        let inner = Reading { elementwise: false, ..reading };
        let (inside, outside) = self.split_guards(arguments, guards, bound);
        let body = match arguments {
            [argument] => self.argument(argument, &inside, inner, bound),
            _ => None,
        };
        let when = self.when(&outside, inner, bound);
        bound.names.truncate(depth);
        let (body, when) = (body?, when?);
        Some(Expr::Reduce(Box::new(Reduce { operation, over, when, body, explicit: true, span })))
    }

    fn axis(
        &mut self,
        name: &ast::Name,
        axes: Option<&[ast::Name]>,
        mut values: Vec<Expr>,
        when: When,
        bound: &mut Bound,
    ) -> Option<Expr> {
        let mut indices = Vec::new();
        match axes {
            Some(axes) => {
                for axis in axes {
                    indices.push(self.bound_index(&axis.text, axis.span, bound)?);
                }
            }
            // The dotted indices of the left side, or its last one.
            None => indices.clone_from(&self.axes),
        }
        let second = (values.len() > 1).then(|| values.pop()).flatten();
        let argument = values.pop()?;
        let function = match name.text.as_str() {
            "softmax" => AxisFunction::Softmax,
            _ => AxisFunction::Lnorm(second),
        };
        Some(Expr::Axis(Box::new(Axis { function, axes: indices, argument, when, span: name.span })))
    }

    /// An index that some scope has bound. A name that nothing binds cannot occur: every name of
    /// a scope is bound before its body is lowered.
    pub(super) fn bound_index(&mut self, name: &str, span: Span, bound: &Bound) -> Option<IndexId> {
        let id = bound.find(name);
        if id.is_none() {
            let message = format!("nothing binds the index `{name}`");
            self.refuse(Refusal::new(Code::UnboundIndex, span, message));
        }
        id
    }

    /// A tensor's element as a value.
    fn read_value(&mut self, reference: &Reference, reading: Reading, bound: &mut Bound) -> Option<Expr> {
        if let Some(size) = self.size_name(reference, bound) {
            return Some(size);
        }
        let round = reference.brackets == ast::Brackets::Round;
        let zero = !round || (reading.square && reading.elementwise);
        if let Some(parity) = self.parity(reference, true, bound) {
            return Some(guarded(parity?, Expr::Number(1.0), zero, reference.span));
        }
        let otherwise = if zero { Otherwise::Zero } else { Otherwise::Absent };
        Some(Expr::Read(self.read(reference, otherwise, false, bound)?))
    }

    /// `not R(x)` as a factor.
    fn missing(&mut self, reference: &Reference, bound: &mut Bound) -> Option<Expr> {
        if let Some(parity) = self.parity(reference, false, bound) {
            return Some(guarded(parity?, Expr::Number(1.0), false, reference.span));
        }
        Some(Expr::Missing(self.read(reference, otherwise_of(reference), true, bound)?))
    }

    /// `Even(i)` and `Odd(i)`, unless the program defines them: the guard that says so, negated
    /// if `holds` is false.
    pub(super) fn parity(
        &mut self,
        reference: &Reference,
        holds: bool,
        bound: &mut Bound,
    ) -> Option<Option<When>> {
        if !self.is_built_in(reference) {
            return None;
        }
        let rest = i64::from(reference.name.text == "Odd");
        let [place] = reference.places.as_slice() else { return None };
        let PlaceKind::Index(index) = &place.kind else {
            let name = &reference.name.text;
            let message =
                format!("`{name}` holds for integers without end, and nothing says which are meant");
            let help = format!("bind an index, `R(x), {name}(x)`, or declare it: `x : 4`");
            self.refuse(Refusal::new(Code::UnboundIndex, place.span, message).help(help));
            return Some(None);
        };
        let Some(function) = self.index_at(index, bound) else { return Some(None) };
        let two = Box::new(IndexFn::Const(Const::Int(2)));
        let remainder = IndexFn::Remainder(Box::new(function), two);
        let sign = if holds { ast::Comparison::Equal } else { ast::Comparison::NotEqual };
        let guard = Guard::CompareIndex(sign, remainder, IndexFn::Const(Const::Int(rest)));
        Some(Some(vec![guard].into()))
    }

    /// Whether the reference is to a built-in relation that the program does not define.
    pub(super) fn is_built_in(&self, reference: &Reference) -> bool {
        matches!(reference.name.text.as_str(), "Even" | "Odd")
            && reference.places.len() == 1
            && !self.defined(&reference.name.text)
    }

    fn defined(&self, name: &str) -> bool {
        let tensor = self.names.tensors.get(name);
        tensor.is_some_and(|t| t.given || t.computed || t.declared || t.parameter.is_some())
    }

    /// A capital name whose small spelling is an index of the equation: the size of its range.
    fn size_name(&mut self, reference: &Reference, bound: &Bound) -> Option<Expr> {
        if reference.brackets != ast::Brackets::None || self.defined(&reference.name.text) {
            return None;
        }
        let counted = bound.find(&reference.name.text.to_lowercase())?;
        let note = IndexNote { copy_of: Some(counted), ..IndexNote::default() };
        let id = self.fresh_index(&reference.name.text.to_lowercase(), reference.span, note);
        Some(Expr::Reduce(Box::new(Reduce {
            operation: Operation::Count,
            over: vec![id],
            when: When::default(),
            body: Expr::Number(1.0),
            explicit: true,
            span: reference.span,
        })))
    }

    /// An element. Under `not`, a wildcard asks for any value.
    pub(super) fn read(
        &mut self,
        reference: &Reference,
        otherwise: Otherwise,
        negated: bool,
        bound: &mut Bound,
    ) -> Option<Read> {
        let tensor = self.seen(&reference.name.text)?;
        let mut arguments = Vec::new();
        let mut star = false;
        for (at, place) in reference.places.iter().enumerate() {
            star |= place.star;
            let argument = match &place.kind {
                PlaceKind::Wildcard if negated => Argument::Any,
                PlaceKind::Wildcard => {
                    let id = self.fresh_index("_", place.span, IndexNote::default());
                    bound.loose.push(id);
                    Argument::At(IndexFn::Index(id))
                }
                PlaceKind::Slice(from, to) => {
                    let id = self.slice(from.as_ref(), to.as_ref(), place.span)?;
                    bound.loose.push(id);
                    Argument::At(IndexFn::Index(id))
                }
                PlaceKind::Index(index) => {
                    let function = self.index_at(index, bound)?;
                    if let IndexFn::Const(value) = function {
                        let mention = Mention { tensor, place: at, value, written: false, span: place.span };
                        self.draft.mentions.push(mention);
                    }
                    Argument::At(function)
                }
            };
            if let Argument::At(IndexFn::Index(index)) = argument {
                let query = self.in_query;
                self.draft.alone.push(Alone { index, tensor, place: at, query, span: place.span });
            }
            arguments.push(argument);
        }
        let otherwise = if star && !negated { Otherwise::ZeroOutside } else { otherwise };
        Some(Read::new(tensor, arguments, otherwise, reference.span))
    }

    pub(super) fn slice(
        &mut self,
        from: Option<&ast::IndexExpr>,
        to: Option<&ast::IndexExpr>,
        span: Span,
    ) -> Option<IndexId> {
        let from = from.map(|expr| self.integer(expr));
        let to = to.map(|expr| self.integer(expr));
        if from == Some(None) || to == Some(None) {
            return None;
        }
        let slice = Some((from.flatten(), to.flatten()));
        Some(self.fresh_index("_", span, IndexNote { slice, ..IndexNote::default() }))
    }

    /// An index function of bound indices. Indices under an operator are used as numbers.
    pub(super) fn index_at(&mut self, expr: &ast::IndexExpr, bound: &Bound) -> Option<IndexFn> {
        let mut uses = Vec::new();
        let function = self.index_fn(expr, &mut |context, name, span| {
            let id = context.bound_index(name, span, bound)?;
            uses.push((id, span));
            Some(id)
        })?;
        if function.alone().is_none() {
            self.draft.numeric_uses.extend(uses);
        }
        Some(function)
    }

    /// Guards, in order.
    pub(super) fn guards(
        &mut self,
        guards: &[&Literal],
        reading: Reading,
        bound: &mut Bound,
    ) -> Option<Vec<Guard>> {
        let mut lowered = Vec::new();
        for literal in guards {
            lowered.extend(self.guard(literal, reading, bound)?);
        }
        Some(lowered)
    }

    pub(super) fn guard(
        &mut self,
        literal: &Literal,
        reading: Reading,
        bound: &mut Bound,
    ) -> Option<Vec<Guard>> {
        Some(match &literal.kind {
            LiteralKind::Positive(reference) => match self.parity(reference, true, bound) {
                Some(when) => when?.guards,
                None => vec![Guard::Read(self.read(reference, otherwise_of(reference), false, bound)?)],
            },
            LiteralKind::Negative(reference) => match self.parity(reference, false, bound) {
                Some(when) => when?.guards,
                None => vec![Guard::Not(self.read(reference, otherwise_of(reference), true, bound)?)],
            },
            LiteralKind::Compare { left, comparison, sign, right } => {
                vec![self.comparison(left, *comparison, *sign, right, reading, bound)?]
            }
            LiteralKind::Assign { index, value } => {
                let function = self.index_at(value, bound)?;
                let id = self.bound_index(&index.text, index.span, bound)?;
                vec![self.assignment(id, function)]
            }
        })
    }

    /// A side of a comparison as a value: its additive terms are scopes.
    pub(super) fn side(&mut self, side: &ast::Expr, reading: Reading, bound: &mut Bound) -> Option<Expr> {
        self.argument(side, &[], Reading { elementwise: false, ..reading }, bound)
    }
}

fn otherwise_of(reference: &Reference) -> Otherwise {
    match reference.brackets {
        ast::Brackets::Round => Otherwise::Absent,
        ast::Brackets::Square | ast::Brackets::None => Otherwise::Zero,
    }
}

pub(super) fn negate_if(minus: bool, expr: Expr) -> Expr {
    match (minus, expr) {
        (false, expr) => expr,
        (true, Expr::Number(value)) => Expr::Number(-value),
        (true, expr) => Expr::Negate(Box::new(expr)),
    }
}

/// One part is itself; several are joined.
pub(super) fn one_or(mut parts: Vec<Expr>, join: impl Fn(Vec<Expr>) -> Expr) -> Expr {
    match (parts.len(), parts.pop()) {
        (1, Some(part)) => part,
        (_, last) => {
            parts.extend(last);
            join(parts)
        }
    }
}

/// A body under guards. `zero`: 0 instead of absent where they fail.
pub(super) fn guarded(when: When, body: Expr, zero: bool, span: Span) -> Expr {
    let operation = Operation::Sum;
    Expr::Reduce(Box::new(Reduce { operation, over: Vec::new(), when, body, explicit: zero, span }))
}

/// a - b·floor(a / b)
fn remainder(a: Expr, b: Expr, span: Span) -> Expr {
    let quotient = Expr::Quotient(Box::new(a.clone()), Box::new(b.clone()));
    let when = When::default();
    let floor = Call { function: Function::Floor, arguments: vec![quotient], when, span };
    let whole = Expr::Product(vec![b, Expr::Call(Box::new(floor))]);
    Expr::Plus(vec![a, Expr::Negate(Box::new(whole))])
}

/// What a comparison's side is: an index function or a value.
pub(super) enum Side {
    Index(IndexFn),
    Value(Expr),
}

impl Context<'_> {
    /// A side: an index expression where everything in it is an index, an integer, a numeric
    /// constant or a symbol.
    pub(super) fn comparison_side(
        &mut self,
        side: &ast::Expr,
        reading: Reading,
        bound: &mut Bound,
    ) -> Option<Side> {
        if scope::index_only(side) {
            let refused = self.draft.errors.len();
            if let Some(function) = self.index_side(side, bound) {
                return Some(Side::Index(function));
            }
            if self.draft.errors.len() > refused {
                return None;
            }
        }
        Some(Side::Value(self.side(side, reading, bound)?))
    }

    fn index_side(&mut self, side: &ast::Expr, bound: &Bound) -> Option<IndexFn> {
        match &side.kind {
            ExprKind::Index(name) => Some(IndexFn::Index(self.bound_index(&name.text, name.span, bound)?)),
            ExprKind::Text(text) => Some(IndexFn::Const(self.symbol(&text.value))),
            ExprKind::Number(number) => Some(IndexFn::Const(Const::Int(number.text.parse::<i64>().ok()?))),
            ExprKind::Reference(reference) => {
                let name = &reference.name.text;
                if let Some(numeric) = self.names.constants.get(name) {
                    return numeric.whole.map(|whole| IndexFn::Const(Const::Int(whole)));
                }
                let size = bound.find(&name.to_lowercase()).is_some();
                let symbol = !self.defined(name) && !size;
                symbol.then(|| IndexFn::Const(self.symbol(name)))
            }
            ExprKind::Negate(inner) => {
                let negated = IndexFn::Negate(Box::new(self.index_side(inner, bound)?));
                self.folded(negated, side.span)
            }
            ExprKind::Group { expr, .. } => self.index_side(expr, bound),
            ExprKind::Sum(terms) => {
                let mut sum: Option<IndexFn> = None;
                for (minus, term) in terms {
                    let term = self.index_side(term, bound)?;
                    sum = Some(match (sum, minus) {
                        (None, false) => term,
                        (None, true) => self.folded(IndexFn::Negate(Box::new(term)), side.span)?,
                        (Some(sum), false) => {
                            self.folded(IndexFn::Add(Box::new(sum), Box::new(term)), side.span)?
                        }
                        (Some(sum), true) => {
                            self.folded(IndexFn::Subtract(Box::new(sum), Box::new(term)), side.span)?
                        }
                    });
                }
                sum
            }
            ExprKind::Product(factors) => {
                let mut product: Option<IndexFn> = None;
                for (joint, factor) in factors {
                    let factor = Box::new(self.index_side(factor, bound)?);
                    let Some(left) = product else {
                        product = Some(*factor);
                        continue;
                    };
                    let function = match joint {
                        Joint::Over => IndexFn::Divide(Box::new(left), factor),
                        Joint::Remainder => IndexFn::Remainder(Box::new(left), factor),
                        _ => IndexFn::Multiply(Box::new(left), factor),
                    };
                    product = Some(self.folded(function, side.span)?);
                }
                product
            }
            ExprKind::Power(..) | ExprKind::Not(_) | ExprKind::Call { .. } => None,
        }
    }
}
