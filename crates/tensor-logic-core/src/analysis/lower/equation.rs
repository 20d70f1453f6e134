//! Equations and rules.

use super::expression::{Bound, Reading, additive, negate_if, one_or};
use super::scope::Occurrences;
use super::tensors::plain_number;
use super::{Alone, Concat, Context, FileSource, Mention};
use crate::ast::{self, ExprKind, Literal, PlaceKind, Reference, RightSide, Sign, Span};
use crate::error::{Code, Refusal};
use crate::program::{
    Combine, Equation, Expr, IndexFn, IndexId, Otherwise, Stamp, Style, TensorId, Term, When,
};

/// A left side.
struct Head {
    tensor: TensorId,
    places: Vec<IndexFn>,
    left: Vec<IndexId>,
}

impl<'a> Context<'a> {
    /// A statement with a sign of assignment: an array, a number, a file or an equation.
    pub(super) fn definition(
        &mut self,
        span: Span,
        head: &'a Reference,
        sign: Sign,
        sign_span: Span,
        right: &'a RightSide,
        files: &mut dyn FileSource,
    ) {
        let name = head.name.text.as_str();
        let redefines = sign == Sign::Redefine;
        let version = self.current.get(name).copied().unwrap_or(0) + 1;
        let target = if redefines {
            self.versions.get(name).and_then(|versions| versions.get(version)).copied()
        } else {
            self.versions.get(name).and_then(|versions| versions.first()).copied()
        };
        let Some(tensor) = target else { return };
        let constant = head.places.iter().all(|place| match &place.kind {
            PlaceKind::Index(_) => {
                let mut names = Occurrences::default();
                names.reference(head);
                names.all().next().is_none()
            }
            _ => false,
        });
        match right {
            RightSide::Array(array) => self.array(tensor, head, array),
            RightSide::File { file, options } => self.file(tensor, head, file, options, files),
            RightSide::Expr { expr, guards } => match plain_number(right) {
                Some((number, value)) if constant => {
                    match self.literal(tensor, head.span, number, self.adds(tensor)) {
                        Some(halves) => {
                            for half in halves {
                                self.fact(tensor, head, half.copysign(value), span);
                            }
                        }
                        None => self.fact(tensor, head, value, span),
                    }
                }
                _ => {
                    self.heading = Some((tensor, head.span));
                    self.equation(span, tensor, head, sign, sign_span, expr, guards);
                    self.heading = None;
                }
            },
        }
        // Statements below see the new version.
        if redefines && let Some((name, _)) = self.names.tensors.get_key_value(name) {
            self.current.insert(name, version);
        }
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of one statement")]
    fn equation(
        &mut self,
        span: Span,
        tensor: TensorId,
        head: &Reference,
        sign: Sign,
        sign_span: Span,
        expr: &ast::Expr,
        guards: &[Literal],
    ) {
        if self.draft.program.tensor(tensor).is_proved() {
            return self.proofs(span, head, sign_span, expr, guards);
        }
        let mut bound = Bound::default();
        let Some(left) = self.head(tensor, head, &mut bound) else { return };
        self.left.clone_from(&left.left);
        let square = self.draft.program.tensor(tensor).style == Style::Square;
        let reading = Reading { square, elementwise: false };
        let mut guards: Vec<&Literal> = guards.iter().collect();
        if let ExprKind::Call { name, arguments, guards: own, .. } = &expr.kind
            && name.text == "concat"
        {
            // It is the whole right side: what it asks for is asked for there.
            guards.extend(own);
            return self.concat(
                (span, head.span, sign_span),
                left,
                name.span,
                arguments,
                &guards,
                &mut bound,
            );
        }
        let summed = matches!(sign, Sign::Equal | Sign::Plus | Sign::Redefine);
        let mut terms = Vec::new();
        if summed {
            for (minus, term) in additive(expr) {
                let Some((over, when, body)) = self.scope_parts(term, &guards, reading, &mut bound) else {
                    return;
                };
                terms.push(Term { over, when, body: negate_if(minus, body) });
            }
        } else {
            let Some((over, when, body)) = self.scope_parts(expr, &guards, reading, &mut bound) else {
                return;
            };
            terms.push(Term { over, when, body });
        }
        self.finish(left, terms, span, head.span, sign_span);
    }

    fn finish(
        &mut self,
        head: Head,
        terms: Vec<Term>,
        span: Span,
        head_span: Span,
        sign_span: Span,
    ) -> usize {
        let Head { tensor, places, left } = head;
        let node = Stamp::default();
        self.push_equation(Equation { tensor, head: places, left, terms, node, span, head_span, sign_span })
    }

    /// The left side: its indices become bound, and the axis of softmax and lnorm is noted.
    fn head(&mut self, tensor: TensorId, head: &Reference, bound: &mut Bound) -> Option<Head> {
        let mut occurrences = Occurrences::default();
        occurrences.reference(head);
        let mut left = Vec::new();
        for (name, occurrence) in occurrences.all() {
            let id = self.named_index(name, occurrence.first);
            bound.push(name, id);
            left.push(id);
        }
        self.axes = Vec::new();
        let mut places = Vec::new();
        for (place, at) in head.places.iter().enumerate() {
            let PlaceKind::Index(expr) = &at.kind else {
                let message = "a slice or `_` cannot stand on the left";
                self.refuse(Refusal::new(Code::Syntax, at.span, message));
                return None;
            };
            let function = self.index_at(expr, bound)?;
            if let IndexFn::Const(value) = function {
                self.draft.mentions.push(Mention { tensor, place, value, written: true, span: at.span });
            }
            if at.star
                && let Some(entry) = self.draft.program.tensors.get_mut(tensor.0 as usize)
                && let Some(entry) = entry.places.get_mut(place)
            {
                entry.star = true;
            }
            if let IndexFn::Index(index) = function {
                self.draft.alone.push(Alone { index, tensor, place, query: false, span: at.span });
            }
            if at.dot {
                function.visit(&mut |id| self.axes.push(id));
            }
            places.push(function);
        }
        if self.axes.is_empty()
            && let Some(last) = places.iter().rev().find_map(IndexFn::alone)
        {
            self.axes.push(last);
        }
        Some(Head { tensor, places, left })
    }

    /// `C[k] = concat(T[h, d], …)`: one equation for each argument, whose left side computes the
    /// new index from the positions of the merged ones. The offsets are filled in when the
    /// domains are known.
    fn concat(
        &mut self,
        (span, head_span, sign_span): (Span, Span, Span),
        head: Head,
        name: Span,
        arguments: &[ast::Expr],
        guards: &[&Literal],
        bound: &mut Bound,
    ) {
        let square = self.draft.program.tensor(head.tensor).style == Style::Square;
        let (mut read, mut guarded) = (Occurrences::default(), Occurrences::default());
        arguments.iter().for_each(|argument| {
            read.expression(argument);
        });
        guards.iter().for_each(|guard| {
            guarded.literals(std::slice::from_ref(*guard));
        });
        // The one index of the left side that neither an argument nor a guard has.
        let places = head.places.iter().enumerate();
        let alone = places.filter_map(|(place, function)| Some((place, function.alone()?)));
        let mut missing: Vec<(usize, IndexId)> =
            alone.filter(|(_, id)| !read.contains(&self.draft.program.index(*id).name)).collect();
        if let [(_, new)] = missing.as_slice() {
            let name = &self.draft.program.index(*new).name;
            let first = guarded.all().find(|(guarded, _)| *guarded == name);
            if let Some((_, occurrence)) = first {
                // What is joined lies side by side; no element of it can be left out.
                let message = format!("the guard asks `{name}`, which concat makes");
                let help = format!("guards are of what is joined; ask `{name}` where the result is read");
                let refusal = Refusal::new(Code::BadAxis, occurrence.first, message).help(help);
                self.refuse(refusal);
                return;
            }
        }
        missing.retain(|(_, id)| !guarded.contains(&self.draft.program.index(*id).name));
        let [(place, new)] = missing.as_slice() else {
            let message = format!("concat needs one new index on the left and finds {}", missing.len());
            self.refuse(Refusal::new(Code::BadAxis, name, message));
            return;
        };
        let (place, new) = (*place, *new);
        let mut concat = Concat { parts: Vec::new(), index: new, place };
        for argument in arguments {
            let mut names = Occurrences::default();
            names.expression(argument);
            let reading = Reading { square, elementwise: false };
            let mut inner = Bound::default();
            let mut left = Vec::new();
            for id in &head.left {
                if *id != new {
                    inner.push(&self.draft.program.index(*id).name.clone(), *id);
                    left.push(*id);
                }
            }
            let mut merged = Vec::new();
            for (name, occurrence) in names.all() {
                if bound.find(name).is_none() {
                    let id = self.named_index(name, occurrence.first);
                    inner.push(name, id);
                    merged.push(id);
                }
            }
            left.extend(&merged);
            let Some((over, when, body)) = self.scope_parts(argument, guards, reading, &mut inner) else {
                return;
            };
            let part = Head { tensor: head.tensor, places: head.places.clone(), left };
            let at = self.finish(part, vec![Term { over, when, body }], span, head_span, sign_span);
            concat.parts.push((at, merged));
        }
        self.draft.concats.push(concat);
    }

    /// `head <- body`
    pub(super) fn rule(&mut self, span: Span, head: &Reference, arrow: Span, body: &[Literal]) {
        let Some(tensor) = self.versions.get(head.name.text.as_str()).and_then(|v| v.first()).copied() else {
            return;
        };
        let mut bound = Bound::default();
        let Some(left) = self.head(tensor, head, &mut bound) else { return };
        let kind = self.draft.program.tensor(tensor).kind;
        let kind = match self.draft.program.tensor(tensor).combine {
            Combine::Exists => crate::program::Kind::Bool,
            _ => kind,
        };
        let Some(term) = self.body(body, Some(kind), &mut bound) else { return };
        let at = self.finish(left, vec![term], span, head.span, arrow);
        self.draft.rules.push(at);
    }

    /// An equation of a hidden tensor: `_(free) = read`.
    pub(super) fn hidden_equation(
        &mut self,
        tensor: TensorId,
        free: Vec<IndexId>,
        term: Term,
        span: Span,
    ) -> usize {
        let places = free.iter().map(|id| IndexFn::Index(*id)).collect();
        let head = Head { tensor, places, left: free };
        self.finish(head, vec![term], span, span, span)
    }

    /// A term that only reads.
    pub(super) fn read_term(
        &mut self,
        reference: &Reference,
        otherwise: Otherwise,
        bound: &mut Bound,
    ) -> Option<Term> {
        let read = self.read(reference, otherwise, false, bound)?;
        let body = one_or(vec![Expr::Read(read)], Expr::Product);
        Some(Term { over: Vec::new(), when: When::default(), body })
    }
}
