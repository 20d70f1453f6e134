//! Left sides, signs, equations and rules.
//!
//! A Boolean rule stays a rule. In any other equation the indices that are not on the left are
//! bound by the scope of its sign: `sum`, `max`, `min`, `prod`. A mean has no such scope, because
//! the means of parts do not combine, nor has `or=`: their indices stay as they are.

use std::collections::BTreeSet;

use super::index;
use super::names::{Names, Sharing};
use super::piece::{Level, Piece};
use super::presence;
use super::scope::used;
use super::value::{Printer, Stands, bar, bracketed};
use crate::ast::Span;
use crate::domains;
use crate::program::{
    Argument, Combine, Equation, Expr, Guard, IndexFn, IndexId, Kind, Operation, Otherwise, Program, Range,
    Read, Reduce, Sense, Style, Tensor, TensorId, Term, When,
};
use crate::value::Domain;
use crate::{walk, weighted};

/// The explicit text of the statement that an equation stands for, with the sign of the text.
/// Several equations stand for one statement where `concat` has several arguments.
pub fn explicit(program: &Program, text: &str, equation: &Equation) -> String {
    let written = text.get(equation.sign_span.start..equation.sign_span.end).unwrap_or("");
    let written: String = written.chars().filter(|letter| !letter.is_whitespace()).collect();
    let sign = match written.as_str() {
        ":-" | "←" | "<-" => "<-",
        other if other.ends_with('=') => other,
        // What a type or a weight stands for has no sign in the text.
        _ => sign(program, equation),
    };
    let parts = parts_of(program, equation);
    let own_name = |id: TensorId| tensor_name(program, id);
    let printer = Printer::new(program, equation, &own_name);
    printer.statement(equation, &parts, sign)
}

/// The equations of the statement that an equation stands for.
pub(super) fn parts_of<'p>(program: &'p Program, equation: &Equation) -> Vec<&'p Equation> {
    let own = |other: &&Equation| other.span == equation.span && other.tensor == equation.tensor;
    program.equations.iter().filter(own).collect()
}

/// One equation of a program, with the sign that [`super::program`] gives it.
pub fn equation(program: &Program, equation: &Equation) -> String {
    let own_name = |id: TensorId| tensor_name(program, id);
    let printer = Printer::new(program, equation, &own_name);
    printer.statement(equation, &[equation], sign(program, equation))
}

fn tensor_name(program: &Program, id: TensorId) -> &str {
    program.tensors.get(id.0 as usize).map_or("T", |tensor| &tensor.name)
}

/// The sign of a tensor's equations, chosen by what they mean.
pub(super) fn sign(program: &Program, equation: &Equation) -> &'static str {
    program.tensors.get(equation.tensor.0 as usize).map_or("=", sign_of)
}

/// The sign that joins contributions as a tensor does.
pub(super) fn sign_of(tensor: &Tensor) -> &'static str {
    match (tensor.combine, tensor.style, tensor.kind) {
        (Combine::Exists | Combine::Proofs, ..) => "<-",
        (Combine::Sum, Style::Round, Kind::Real) => "+=",
        (Combine::Max, _, Kind::MaxTimes | Kind::MaxMin) | (Combine::Min, _, Kind::Tropical) => "=",
        (Combine::Sum | Combine::Slopes, ..) => "=",
        (Combine::Max, ..) => "max=",
        (Combine::Min, ..) => "min=",
        (Combine::Times, ..) => "*=",
        (Combine::Avg, ..) => "avg=",
        (Combine::Or, ..) => "or=",
    }
}

/// The operation that a sign's contributions can be joined by in parts.
fn operation(combine: Combine) -> Option<Operation> {
    Some(match combine {
        Combine::Sum | Combine::Exists | Combine::Proofs | Combine::Slopes => Operation::Sum,
        Combine::Max => Operation::Max,
        Combine::Min => Operation::Min,
        Combine::Times => Operation::Product,
        Combine::Avg | Combine::Or => return None,
    })
}

impl<'p> Printer<'p> {
    pub(super) fn new(
        program: &'p Program,
        equation: &Equation,
        tensors: &'p dyn Fn(TensorId) -> &'p str,
    ) -> Printer<'p> {
        let mut limited = BTreeSet::new();
        equation.visit_reads(&mut |read, sense| {
            if sense == Sense::Positive && read.otherwise != Otherwise::Absent {
                walk::read_indices(read, &mut |index| {
                    limited.insert(index);
                });
            }
        });
        let tensor = program.tensors.get(equation.tensor.0 as usize);
        let square = tensor.is_some_and(|tensor| tensor.style == Style::Square);
        let left = equation.left.clone();
        Printer { program, names: Names::new(program), square, left, limited, tensors, apart: false }
    }

    /// `parts` are the equations of the statement, `equation` among them.
    pub(super) fn statement(mut self, equation: &Equation, parts: &[&Equation], sign: &str) -> String {
        // An argument of `concat` that is one value has a number for its place.
        let long = parts.iter().find(|part| part.head.iter().any(index::has_ordinal));
        if let Some(long) = long {
            let arithmetic = long.head.iter().all(|function| index::is_arithmetic(self.program, function));
            if parts.len() > 1 || !arithmetic {
                return self.concat(parts, long, sign);
            }
        }
        self.bind_left(&equation.left);
        let head = self.head(equation, None);
        let tensor = self.program.tensors.get(equation.tensor.0 as usize);
        let combine = tensor.map_or(Combine::Sum, |tensor| tensor.combine);
        if combine == Combine::Exists
            && let [term] = equation.terms.as_slice()
            && (sign == "<-" || binds_all(term))
            && let Some(body) = self.rule(term)
        {
            return format!("{head} <- {body}");
        }
        if combine == Combine::Proofs
            && let [term] = equation.terms.as_slice()
        {
            return format!("{head} <- {}", self.proof(term));
        }
        let (sign, split) = match sign {
            "<-" => ("=", true),
            "=" | "+=" | ":=" => (sign, true),
            _ => (sign, false),
        };
        let right = self.right_side(equation, combine, split);
        format!("{head} {sign} {right}")
    }

    fn bind_left(&mut self, left: &[IndexId]) {
        for index in left {
            self.names.bind(*index, &BTreeSet::new(), Sharing::Own);
        }
    }

    /// The left side. `new`: the name of the index that `concat` makes.
    fn head(&mut self, equation: &Equation, new: Option<&str>) -> String {
        let tensor = self.program.tensors.get(equation.tensor.0 as usize);
        let place = |(at, function): (usize, &IndexFn)| {
            let star = tensor.and_then(|tensor| tensor.places.get(at)).is_some_and(|place| place.star);
            let star = if star { "*" } else { "" };
            match new {
                Some(new) if index::has_ordinal(function) => new.to_owned(),
                _ => {
                    format!("{star}{}", self.place(tensor, at, function))
                }
            }
        };
        let places: Vec<String> = equation.head.iter().enumerate().map(place).collect();
        let round = tensor.is_some_and(|tensor| tensor.style == Style::Round);
        bracketed((self.tensors)(equation.tensor), &places, round, round)
    }

    /// The body of a Boolean rule, where it is a list of literals. A value that is multiplied is no
    /// literal: as one it would hold whatever it is.
    fn rule(&mut self, term: &Term) -> Option<String> {
        let factors: Vec<&Expr> = match &term.body {
            Expr::Product(parts) => parts.iter().collect(),
            Expr::Number(1.0) => Vec::new(),
            single => vec![single],
        };
        let mut reads = Vec::new();
        for factor in factors {
            let Expr::Read(read) = factor else { return None };
            let tensor = self.program.tensors.get(read.tensor.0 as usize)?;
            let literal = tensor.style == Style::Round && tensor.kind == Kind::Bool;
            if read.otherwise != Otherwise::Absent || !literal {
                return None;
            }
            reads.push(read);
        }
        if reads.is_empty() && term.when.guards.is_empty() {
            return None;
        }
        self.bind_rule(term);
        let mut literals: Vec<String> = reads.iter().map(|read| self.read(read)).collect();
        literals.extend(term.when.guards.iter().map(|guard| self.guard(guard)));
        literals.extend(self.slices(&term.over, &term.when, &term.body));
        Some(literals.join(", "))
    }

    /// The body of a rule over relations whose tuples have probabilities.
    fn proof(&mut self, term: &Term) -> String {
        self.bind_rule(term);
        let factors = weighted::factors(term).into_iter();
        let mut literals: Vec<String> = factors
            .map(|(read, denied)| if denied { format!("not {}", self.read(read)) } else { self.read(read) })
            .collect();
        literals.extend(term.when.guards.iter().map(|guard| self.guard(guard)));
        literals.extend(self.slices(&term.over, &term.when, &term.body));
        literals.join(", ")
    }

    /// Names the indices of a rule's body. A wildcard stays one where it stands once, alone.
    fn bind_rule(&mut self, term: &Term) {
        let inside = used(Some(&term.body), &term.when);
        for index in term.over.iter().chain(&term.when.exists) {
            let wild = self
                .program
                .indices
                .get(index.0 as usize)
                .is_some_and(|entry| entry.name == "_" && matches!(entry.range, Range::Tuples));
            if wild && stands_once(*index, term) {
                self.names.bind_as(*index, "_");
            } else {
                self.names.bind(*index, &inside, Sharing::Own);
            }
        }
    }

    fn right_side(&mut self, equation: &Equation, combine: Combine, split: bool) -> String {
        let operation = operation(combine);
        let neutral = match combine {
            Combine::Sum | Combine::Times if self.square => operation,
            Combine::Exists => operation,
            _ => None,
        };
        let neutral = neutral.filter(|_| !self.binds_left(equation));
        let stands = Stands { split, zero: false, neutral };
        let mut terms: Vec<(bool, Piece, Vec<String>)> = Vec::new();
        for term in &equation.terms {
            let depth = self.names.depth();
            self.names.new_term();
            terms.push(self.term(term, operation, stands));
            self.names.leave(depth);
        }
        let shared = terms.first().map(|(_, _, guards)| guards.clone()).unwrap_or_default();
        let at_end = terms.iter().all(|(_, _, guards)| *guards == shared);
        let several = terms.len() > 1;
        let mut text = String::new();
        for (minus, piece, guards) in terms {
            let piece = match at_end || guards.is_empty() {
                true => piece,
                false => Piece::base(format!("({}{})", piece.text, bar(&guards))),
            };
            text.push_str(match (text.is_empty(), minus) {
                (true, false) => "",
                (true, true) => "-",
                (false, false) => " + ",
                (false, true) => " - ",
            });
            let level = if several || minus { Level::Product } else { Level::Sum };
            text.push_str(&piece.at(level));
        }
        if at_end { format!("{text}{}", bar(&shared)) } else { text }
    }

    /// Whether relations bind an index of the left side in a way that a sum which is written out
    /// would hide: its values, or the domain of the left side, would then be others.
    fn binds_left(&self, equation: &Equation) -> bool {
        let tensor = self.program.tensors.get(equation.tensor.0 as usize);
        let entry = |index: &IndexId| self.program.indices.get(index.0 as usize);
        let by_tuples = |index: &&IndexId| entry(index).is_some_and(|i| matches!(i.range, Range::Tuples));
        equation.left.iter().filter(by_tuples).any(|index| {
            let place = equation.head.iter().position(|function| function.alone() == Some(*index));
            let domain = place.and_then(|at| tensor?.places.get(at)?.domain.as_ref());
            !self.square || domain.is_none() || self.limited(equation, *index, domain)
        })
    }

    /// Whether square references would limit an index to other values than these.
    fn limited(&self, equation: &Equation, index: IndexId, domain: Option<&Domain>) -> bool {
        let mut limited = false;
        equation.visit_reads(&mut |read, sense| {
            let tensor = self.program.tensors.get(read.tensor.0 as usize);
            for (at, argument) in read.arguments.iter().enumerate() {
                let Argument::At(function) = argument else { continue };
                let other = tensor.and_then(|tensor| tensor.places.get(at)?.domain.as_ref());
                let whole = function.alone() == Some(index) && other == domain;
                let reads = read.otherwise != Otherwise::Absent && sense == Sense::Positive;
                limited |= reads && mentions(function, index) && !whole;
            }
        });
        limited
    }

    /// A term: whether it is subtracted, its value, and the guards that stay behind it. The
    /// indices that it binds stay visible.
    fn term(
        &mut self,
        term: &Term,
        operation: Option<Operation>,
        stands: Stands,
    ) -> (bool, Piece, Vec<String>) {
        let inside = used(Some(&term.body), &term.when);
        let asked = operation;
        let operation = operation.filter(|operation| self.can_bind(term, *operation, stands));
        if (asked, operation) == (Some(Operation::Sum), None)
            && let Some(times) = self.repeated(term, &inside)
        {
            return self.term(&times, operation, stands);
        }
        let computed = |guard: &Guard| matches!(guard, Guard::Bind(..));
        let stays = operation.is_none() || term.when.guards.iter().any(computed);
        let guarded = used(None, &term.when);
        let (implicit, over): (Vec<IndexId>, Vec<IndexId>) =
            term.over.iter().partition(|index| operation.is_none() || (stays && guarded.contains(index)));
        for index in &implicit {
            self.names.bind(*index, &inside, Sharing::Own);
        }
        let (minus, body) = match &term.body {
            Expr::Negate(inner) if stands.split && operation == Some(Operation::Sum) => {
                (true, inner.as_ref())
            }
            body => (false, body),
        };
        let stands = Stands { split: stands.split && !minus, ..stands };
        let (Some(operation), false) = (operation, over.is_empty()) else {
            let piece = self.value(body, stands);
            let mut guards = self.when(&term.when);
            guards.extend(self.idle(&implicit, term, stands));
            return (minus, piece, guards);
        };
        let when = if stays { When::default() } else { term.when.clone() };
        let reduce =
            Reduce { operation, over, when, body: body.clone(), explicit: false, span: Default::default() };
        let piece = self.reduce(&reduce, stands);
        let mut guards = if stays { self.when(&term.when) } else { Vec::new() };
        guards.extend(self.idle(&implicit, term, stands));
        (minus, piece, guards)
    }

    /// The term without the indices that it is summed over and says nothing of, as many times: in a guard behind it they would be
    /// asked for once.
    fn repeated(&self, term: &Term, inside: &BTreeSet<IndexId>) -> Option<Term> {
        let size = |index: &IndexId| match &self.program.indices.get(index.0 as usize)?.range {
            Range::Domain(domain) if !inside.contains(index) => Some(domain.len()),
            _ => None,
        };
        let (idle, over): (Vec<IndexId>, Vec<IndexId>) =
            term.over.iter().partition(|index| size(index).is_some());
        let times: f64 = idle.iter().filter_map(size).map(|size| size as f64).product();
        let body = Expr::Product(vec![Expr::Number(times), term.body.clone()]);
        (!idle.is_empty()).then(|| Term { over, body, ..term.clone() })
    }

    /// Whether guards can bind what the term binds of the left side, where it must.
    fn can_bind(&self, term: &Term, operation: Operation, stands: Stands) -> bool {
        if stands.neutral.is_some() || !matches!(operation, Operation::Sum | Operation::Product) {
            return true;
        }
        let presence = presence::of_scope(self.program, &term.over, &term.when, &term.body);
        let guards = When::from(presence.guards);
        let nothing = Expr::Number(1.0);
        let lost = |index: &&IndexId| {
            domains::binds(**index, &term.body, &term.when) && !domains::binds(**index, &nothing, &guards)
        };
        !self.left.iter().any(|index| lost(&index))
    }

    /// Occurrences for indices that stay as they are and would otherwise be bound deeper: all
    /// their occurrences stand in one call or one product in parentheses.
    fn idle(&self, implicit: &[IndexId], term: &Term, stands: Stands) -> Vec<String> {
        let guarded = used(None, &term.when);
        let direct = |index: &IndexId| direct(*index, &term.body, stands.split);
        let deep = implicit.iter().filter(|index| !guarded.contains(index) && !direct(index));
        deep.map(|index| format!("{name} == {name}", name = self.names.of(*index))).collect()
    }

    /// The name of the index that `concat` makes: as it stands in the text, if it does.
    fn new_index(&mut self, equation: &Equation) -> String {
        let inside = |span: Span| {
            span != equation.head_span
                && equation.head_span.start <= span.start
                && span.end <= equation.head_span.end
        };
        let taken = |name: &str| self.names.find(name).is_some();
        let mut written =
            self.program.indices.iter().filter(|entry| inside(entry.span) && !taken(&entry.name));
        match written.next() {
            Some(entry) => entry.name.clone(),
            None => self.names.fresh("k"),
        }
    }

    /// `C[b, k] = concat(A[b, i], B[b, j])`; `long` is an argument of several values.
    fn concat(mut self, parts: &[&Equation], long: &Equation, sign: &str) -> String {
        let shared: Vec<IndexId> = long
            .left
            .iter()
            .copied()
            .filter(|index| parts.iter().all(|part| part.left.contains(index)))
            .collect();
        let merged = |index: &IndexId| {
            let ordinal = |function: &IndexFn| index::has_ordinal(function) && mentions(function, *index);
            long.head.iter().any(ordinal)
        };
        let kept: Vec<IndexId> = shared.into_iter().filter(|index| !merged(index)).collect();
        self.bind_left(&kept);
        let new = self.new_index(long);
        let head = self.head(long, Some(&new));
        let mut arguments = Vec::new();
        let mut guards = Vec::new();
        for part in parts {
            let depth = self.names.depth();
            self.names.new_term();
            for index in part.left.iter().filter(|index| !kept.contains(index)) {
                self.names.bind(*index, &BTreeSet::new(), Sharing::Own);
            }
            if let Some(term) = part.terms.first() {
                let stands = Stands { split: false, zero: false, neutral: None };
                arguments.push(self.value(&term.body, stands).text);
                guards = self.when(&term.when);
            }
            self.names.leave(depth);
        }
        format!("{head} {sign} concat({}){}", arguments.join(", "), bar(&guards))
    }
}

fn mentions(function: &IndexFn, index: IndexId) -> bool {
    let mut found = false;
    function.visit(&mut |id| found |= id == index);
    found
}

/// Whether references that must be there bind all indices of a term: those of a rule need that, those of an equation take
/// what is left from their ranges.
fn binds_all(term: &Term) -> bool {
    let computed = |index: &IndexId| {
        term.when.guards.iter().any(|guard| matches!(guard, Guard::Bind(own, _) if own == index))
    };
    let mut indices = term.over.iter().chain(&term.when.exists);
    indices.all(|index| domains::binds(*index, &term.body, &term.when) || computed(index))
}

/// Whether an index occurs once in a term, alone in a place.
fn stands_once(index: IndexId, term: &Term) -> bool {
    let mut occurrences = 0;
    let mut alone = 0;
    let mut visit = |id| occurrences += usize::from(id == index);
    walk::expr_indices(&term.body, &mut visit);
    walk::when_indices(&term.when, &mut visit);
    let mut reads = |read: &Read, sense| {
        let positive = sense == Sense::Positive;
        let places = read.arguments.iter();
        let here = |argument: &&Argument| matches!(argument, Argument::At(f) if f.alone() == Some(index));
        alone += if positive { places.filter(here).count() } else { 0 };
    };
    term.body.visit_reads(&mut reads);
    term.when.visit_reads(&mut reads);
    occurrences == 1 && alone == 1
}

/// Whether an index occurs where a scope's own products would not bind it. Terms of which absent ones are skipped stand in a
/// call, unless they may be terms of the right side, and so does what is 0 outside.
fn direct(index: IndexId, body: &Expr, split: bool) -> bool {
    let function = |function: &IndexFn| mentions(function, index);
    let read = |read: &Read| {
        read.otherwise != Otherwise::ZeroOutside
            && read.arguments.iter().any(|argument| matches!(argument, Argument::At(f) if function(f)))
    };
    let group = |part: &Expr| !matches!(part, Expr::Product(_) | Expr::Quotient(..) | Expr::Negate(_));
    let inside = |part: &Expr| direct(index, part, false);
    match body {
        Expr::Number(_) => false,
        Expr::Index(f) => function(f),
        Expr::Read(element) | Expr::Missing(element) => read(element),
        Expr::Product(parts) => {
            let mut parts = parts.iter().enumerate();
            parts.any(|(at, part)| (at == 0 || group(part)) && inside(part))
        }
        Expr::Terms(parts) => split && parts.iter().any(inside),
        Expr::Plus(parts) => parts.iter().any(inside),
        Expr::Quotient(a, b) => inside(a) || (group(b) && inside(b)),
        Expr::Power(a, b) => (group(a) && inside(a)) || (group(b) && inside(b)),
        Expr::Negate(a) => direct(index, a, split),
        Expr::Axis(axis) => axis.axes.contains(&index),
        Expr::Reduce(_) | Expr::Call(_) => false,
    }
}
