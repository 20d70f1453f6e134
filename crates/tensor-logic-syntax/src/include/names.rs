//! Every name that a program writes, with its place, and texts with other words at some places.

use std::collections::BTreeSet;

use crate::ast::{
    Brackets, Constant, Directive, DomainExpr, DomainKind, Expr, ExprKind, Goal, IndexExpr, IndexKind,
    Literal, LiteralKind, Name, PlaceKind, Program, Reference, RightSide, Span, Start, Statement,
    StatementKind, Value,
};

/// What a name stands for, as far as its place tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    /// A tensor: it has brackets, or a statement is about it.
    Tensor,
    /// A capital name alone: a scalar, a number, a symbol, a set, or the size of an index.
    Alone,
    /// An index.
    Index,
    /// An index where it is given its range.
    DeclaredIndex,
}

/// A name at a place.
#[derive(Debug, Clone, Copy)]
pub(super) struct Spelling<'a> {
    pub(super) text: &'a str,
    pub(super) span: Span,
    pub(super) what: What,
}

/// All names of a program, in no order; not those that queries restrict models to.
pub(super) fn spellings(program: &Program) -> Vec<Spelling<'_>> {
    let mut found = Found(Vec::new());
    program.statements.iter().for_each(|statement| found.statement(statement));
    found.0
}

/// The capital names that a program defines or declares: tensors, numbers, sets.
pub(super) fn defined(program: &Program) -> BTreeSet<&str> {
    program.statements.iter().filter_map(head).collect()
}

/// The indices to which a program gives a range.
pub(super) fn declared(program: &Program) -> BTreeSet<&str> {
    fn of(statement: &StatementKind) -> &[Name] {
        match statement {
            StatementKind::Indices { names, .. } => names.as_slice(),
            _ => &[],
        }
    }
    program
        .statements
        .iter()
        .flat_map(|statement| of(&statement.kind))
        .map(|name| name.text.as_str())
        .collect()
}

/// The capital name that a statement defines or declares.
pub(super) fn head(statement: &Statement) -> Option<&str> {
    let reference = match &statement.kind {
        StatementKind::Set { name, .. } => return Some(&name.text),
        StatementKind::Bare { reference, .. }
        | StatementKind::Parameter { reference, .. }
        | StatementKind::Weighted { reference, .. } => reference,
        StatementKind::Rule { head, .. } | StatementKind::Equation { head, .. } => head,
        _ => return None,
    };
    Some(&reference.name.text)
}

/// The text with other words at these places, which do not overlap. Blanks stand for what is left out.
pub(super) fn edited(text: &str, mut edits: Vec<(Span, String)>) -> String {
    edits.sort_by_key(|(span, _)| span.start);
    let mut out = String::with_capacity(text.len());
    let mut from = 0;
    for (span, word) in edits {
        out.push_str(text.get(from..span.start).unwrap_or(""));
        let old = text.get(span.start..span.end).unwrap_or("");
        if word.is_empty() {
            out.extend(old.chars().map(|letter| if letter == '\n' { '\n' } else { ' ' }));
        } else {
            out.push_str(&word);
            // Lines stay where they are, also behind a statement of several lines.
            out.extend(old.chars().filter(|letter| *letter == '\n'));
        }
        from = span.end;
    }
    out.push_str(text.get(from..).unwrap_or(""));
    out
}

struct Found<'a>(Vec<Spelling<'a>>);

impl<'a> Found<'a> {
    fn add(&mut self, text: &'a str, span: Span, what: What) {
        self.0.push(Spelling { text, span, what });
    }

    fn statement(&mut self, statement: &'a Statement) {
        match &statement.kind {
            StatementKind::Indices { names, domain } => {
                names.iter().for_each(|name| self.add(&name.text, name.span, What::DeclaredIndex));
                self.domain(domain);
            }
            StatementKind::Set { name, domain } => {
                self.add(&name.text, name.span, What::Tensor);
                self.domain(domain);
            }
            StatementKind::Bare { reference, .. }
            | StatementKind::Weighted { reference, .. }
            | StatementKind::Write { reference, .. } => self.head(reference),
            StatementKind::Parameter { reference, start, .. } => {
                self.head(reference);
                if let Start::Call { arguments, .. } = start {
                    arguments.iter().for_each(|argument| self.value(argument));
                }
            }
            StatementKind::Rule { head, body, .. } => {
                self.head(head);
                body.iter().for_each(|literal| self.literal(literal));
            }
            StatementKind::Equation { head, right, .. } => {
                self.head(head);
                if let RightSide::Expr { expr, guards } = right {
                    self.expr(expr);
                    guards.iter().for_each(|guard| self.literal(guard));
                }
            }
            StatementKind::Query { goal, .. } => {
                if let Goal::Literals(literals) = goal {
                    literals.iter().for_each(|literal| self.literal(literal));
                }
            }
            StatementKind::Directive(directive) => self.directive(directive),
        }
    }

    fn directive(&mut self, directive: &'a Directive) {
        if directive.name.text != "include" {
            directive.arguments.iter().flatten().for_each(|argument| self.value(&argument.value));
        }
    }

    fn value(&mut self, value: &'a Value) {
        if let Value::Name(name) = value {
            let capital = name.text.starts_with(char::is_uppercase);
            self.add(&name.text, name.span, if capital { What::Alone } else { What::Index });
        }
    }

    fn domain(&mut self, domain: &'a DomainExpr) {
        match &domain.kind {
            DomainKind::Size(size) => self.index(size),
            DomainKind::Interval(from, to) => {
                self.index(from);
                self.index(to);
            }
            DomainKind::Listed(members) => {
                for member in members {
                    if let Constant::Name(name) = member {
                        self.add(&name.text, name.span, What::Alone);
                    }
                }
            }
        }
    }

    /// A reference that is a tensor's even without brackets.
    fn head(&mut self, reference: &'a Reference) {
        self.add(&reference.name.text, reference.name.span, What::Tensor);
        self.places(reference);
    }

    fn reference(&mut self, reference: &'a Reference) {
        let what = if reference.brackets == Brackets::None { What::Alone } else { What::Tensor };
        self.add(&reference.name.text, reference.name.span, what);
        self.places(reference);
    }

    fn places(&mut self, reference: &'a Reference) {
        for place in &reference.places {
            match &place.kind {
                PlaceKind::Index(index) => self.index(index),
                PlaceKind::Slice(from, to) => from.iter().chain(to).for_each(|index| self.index(index)),
                PlaceKind::Wildcard => {}
            }
        }
    }

    /// Index expressions are as deep as they are long, so they are walked with a stack.
    fn index(&mut self, root: &'a IndexExpr) {
        let mut stack = vec![root];
        while let Some(next) = stack.pop() {
            match &next.kind {
                IndexKind::Index(name) => self.add(name, next.span, What::Index),
                IndexKind::Name(name) => self.add(name, next.span, What::Alone),
                IndexKind::Negate(inner) | IndexKind::Group(inner) => stack.push(inner),
                IndexKind::Binary(_, left, right) => stack.extend([right.as_ref(), left.as_ref()]),
                IndexKind::Integer(_) | IndexKind::Text(_) => {}
            }
        }
    }

    fn literal(&mut self, literal: &'a Literal) {
        match &literal.kind {
            LiteralKind::Positive(reference) | LiteralKind::Negative(reference) => self.reference(reference),
            LiteralKind::Compare { left, right, .. } => {
                self.expr(left);
                self.expr(right);
            }
            LiteralKind::Assign { index, value } => {
                self.add(&index.text, index.span, What::Index);
                self.index(value);
            }
        }
    }

    fn expr(&mut self, expr: &'a Expr) {
        match &expr.kind {
            ExprKind::Sum(terms) => terms.iter().for_each(|(_, term)| self.expr(term)),
            ExprKind::Product(factors) => factors.iter().for_each(|(_, factor)| self.expr(factor)),
            ExprKind::Negate(inner) => self.expr(inner),
            ExprKind::Power(base, exponent, _) => {
                self.expr(base);
                self.expr(exponent);
            }
            ExprKind::Number(_) | ExprKind::Text(_) => {}
            ExprKind::Reference(reference) | ExprKind::Not(reference) => self.reference(reference),
            ExprKind::Index(name) => self.add(&name.text, name.span, What::Index),
            ExprKind::Call { axes, arguments, guards, .. } => {
                axes.iter().flatten().for_each(|axis| self.add(&axis.text, axis.span, What::Index));
                arguments.iter().for_each(|argument| self.expr(argument));
                guards.iter().for_each(|guard| self.literal(guard));
            }
            ExprKind::Group { expr, guards } => {
                self.expr(expr);
                guards.iter().for_each(|guard| self.literal(guard));
            }
        }
    }
}
