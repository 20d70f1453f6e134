//! From the root of a right side to every occurrence of an active tensor.

use std::collections::BTreeSet;

use super::builder::{Builder, Scope};
use super::derivative;
use super::forms::{present, product, under};
use crate::ast::{Comparison, Span};
use crate::function::Function;
use crate::program::{
    Argument, Axis, Call, Combine, Expr, Guard, IndexFn, IndexId, Operation, Otherwise, Program, Range, Read,
    Reduce, Sense, Style, TensorId, When,
};
use crate::rename::Renaming;
use crate::value::Domain;
use crate::walk::expr_indices;

/// Whether the value is present at every binding: it reads nothing that can be absent.
pub(super) fn always_present(program: &Program, expr: &Expr) -> bool {
    let all = |parts: &[Expr]| parts.iter().all(|part| always_present(program, part));
    match expr {
        Expr::Number(_) | Expr::Index(IndexFn::Const(_)) => true,
        Expr::Index(_) | Expr::Missing(_) => false,
        Expr::Read(read) => read.otherwise != Otherwise::Absent && is_inside(program, read),
        Expr::Reduce(reduce) => {
            let anyway = matches!(reduce.operation, Operation::Sum | Operation::Count | Operation::Product);
            (reduce.explicit && anyway)
                || (reduce.when.guards.is_empty()
                    && reduce.over.is_empty()
                    && always_present(program, &reduce.body))
        }
        Expr::Call(call) => call.when.guards.is_empty() && all(&call.arguments),
        Expr::Axis(axis) => axis.when.guards.is_empty() && always_present(program, &axis.argument),
        Expr::Terms(parts) => parts.iter().any(|part| always_present(program, part)),
        Expr::Product(_) | Expr::Plus(_) | Expr::Quotient(..) | Expr::Power(..) | Expr::Negate(_) => {
            expr.parts().0.into_iter().all(|part| always_present(program, part))
        }
    }
}

/// Whether a read stays inside of the tensor's domain: index functions may leave it, and so may numbers, indices that are
/// declared, and what tuples bind.
fn is_inside(program: &Program, read: &Read) -> bool {
    let places = &program.tensor(read.tensor).places;
    read.arguments.iter().zip(places).all(|(argument, place)| {
        let (Some(function), Some(domain)) = (Argument::function(argument), &place.domain) else {
            return false;
        };
        match function {
            IndexFn::Const(value) => domain.contains(*value),
            IndexFn::Index(index) => match &program.index(*index).range {
                Range::Domain(range) => holds(domain, range),
                Range::Tuples | Range::Computed => false,
            },
            _ => false,
        }
    })
}

/// Whether a domain has all values of a range.
fn holds(domain: &Domain, range: &Domain) -> bool {
    match (domain, range) {
        (Domain::Interval { from, to }, Domain::Interval { from: low, to: high }) => {
            low > high || (from <= low && high <= to)
        }
        _ => domain == range || range.values().all(|value| domain.contains(value)),
    }
}

/// Whether a copy of the expression costs more than reading it.
fn is_heavy(expr: &Expr) -> bool {
    match expr {
        Expr::Reduce(reduce) => !reduce.over.is_empty() || is_heavy(&reduce.body),
        Expr::Axis(_) | Expr::Call(_) => true,
        _ => expr.parts().0.into_iter().any(is_heavy),
    }
}

/// Whether a factor may say which tuples there are: a number does not, nor what is 0 outside.
fn may_be_absent(factor: &Expr) -> bool {
    match factor {
        Expr::Number(_) => false,
        Expr::Read(read) => read.otherwise == Otherwise::Absent,
        _ => true,
    }
}

/// The indices of an expression that the scope binds, in the order of the scope.
pub(super) fn free_in(exprs: &[&Expr], when: Option<&When>, scope: &Scope) -> Vec<IndexId> {
    let mut found = Vec::new();
    for expr in exprs {
        expr_indices(expr, &mut |index| found.push(index));
    }
    if let Some(when) = when {
        crate::walk::when_indices(when, &mut |index| found.push(index));
    }
    scope.indices.iter().copied().filter(|index| found.contains(index)).collect()
}

impl Builder {
    /// Walks `expr`, whose adjoint at each binding of the scope is the product of `factors`.
    pub(super) fn walk(&mut self, expr: &Expr, scope: &Scope, factors: Vec<Expr>, span: Span) {
        if !self.depends(expr) {
            return;
        }
        match expr {
            Expr::Number(_) | Expr::Index(_) | Expr::Missing(_) => {}
            Expr::Read(read) => self.occurrence(read, scope, factors, span),
            Expr::Negate(inner) => {
                let mut factors = factors;
                factors.push(Expr::Number(-1.0));
                self.walk(inner, scope, factors, span);
            }
            Expr::Terms(parts) => {
                for part in parts {
                    self.walk(part, scope, factors.clone(), span);
                }
            }
            Expr::Plus(parts) => {
                for (at, part) in parts.iter().enumerate() {
                    let mut factors = factors.clone();
                    let others = parts.iter().enumerate().filter(|(other, _)| *other != at);
                    factors.extend(
                        others.filter(|(_, e)| !always_present(&self.program, e)).map(|(_, e)| present(e)),
                    );
                    self.walk(part, scope, factors, span);
                }
            }
            Expr::Product(parts) => self.product(parts, scope, &factors, span),
            Expr::Quotient(a, b) => self.quotient(a, b, scope, factors, span),
            Expr::Power(base, exponent) => self.power(base, exponent, scope, factors, span),
            Expr::Reduce(reduce) => self.reduce(reduce, scope, factors),
            Expr::Call(call) => self.call(call, scope, factors),
            Expr::Axis(axis) => self.axis(axis, scope, factors),
        }
    }

    fn quotient(&mut self, a: &Expr, b: &Expr, scope: &Scope, factors: Vec<Expr>, span: Span) {
        if self.depends(a) {
            let over = Expr::Quotient(Box::new(product(factors.clone())), Box::new(b.clone()));
            self.walk(a, scope, vec![over], span);
        }
        if self.depends(b) {
            // -a / b / b, once for all occurrences below: the square of a divisor may leave the numbers.
            let mut factors = factors;
            factors.push(Expr::Negate(Box::new(a.clone())));
            let over = Expr::Quotient(Box::new(product(factors)), Box::new(b.clone()));
            let over = Expr::Quotient(Box::new(over), Box::new(b.clone()));
            let factors = self.collected(&[b], None, scope, vec![over], span);
            let inner = self.scope_of(&[b], None, scope);
            self.walk(b, &inner, factors, span);
        }
    }

    fn power(&mut self, base: &Expr, exponent: &Expr, scope: &Scope, factors: Vec<Expr>, span: Span) {
        let constant = matches!(exponent, Expr::Number(n) if *n == 0.0);
        if self.depends(base) && !constant {
            let slope = match exponent {
                Expr::Number(n) if *n == 2.0 => vec![Expr::Number(2.0), base.clone()],
                Expr::Number(n) => {
                    let lower = Expr::Power(Box::new(base.clone()), Box::new(Expr::Number(n - 1.0)));
                    vec![Expr::Number(*n), lower]
                }
                n => {
                    let less = Expr::Plus(vec![n.clone(), Expr::Number(-1.0)]);
                    let lower = Expr::Power(Box::new(base.clone()), Box::new(less));
                    // X^0 is 1 everywhere: its slope is 0, also where X^-1 is infinite.
                    let powers = Guard::Compare(Comparison::NotEqual, n.clone(), Expr::Number(0.0));
                    vec![under(vec![powers].into(), Expr::Product(vec![n.clone(), lower]), span)]
                }
            };
            let mut along = factors.clone();
            along.extend(slope);
            if is_heavy(base) {
                let along = self.collected(&[base], None, scope, along, span);
                let inner = self.scope_of(&[base], None, scope);
                self.walk(base, &inner, along, span);
            } else {
                self.walk(base, scope, along, span);
            }
        }
        // 0^n is 0 for all n near a positive one.
        let nothing = matches!(base, Expr::Number(n) if *n == 0.0);
        if self.depends(exponent) && !nothing {
            let log =
                Call { function: Function::Log, arguments: vec![base.clone()], when: When::default(), span };
            let not_zero = Guard::Compare(Comparison::NotEqual, base.clone(), Expr::Number(0.0));
            let mut along = factors;
            along.push(Expr::Power(Box::new(base.clone()), Box::new(exponent.clone())));
            along.push(match base {
                Expr::Number(_) => Expr::Call(Box::new(log)),
                _ => under(vec![not_zero].into(), Expr::Call(Box::new(log)), span),
            });
            self.walk(exponent, scope, along, span);
        }
    }

    /// A helper tensor that holds the adjoint of an expression over the indices that it has, and
    /// its read as the one factor of what lies below.
    fn collected(
        &mut self,
        exprs: &[&Expr],
        when: Option<&When>,
        scope: &Scope,
        factors: Vec<Expr>,
        span: Span,
    ) -> Vec<Expr> {
        let indices = free_in(exprs, when, scope);
        self.collected_over(indices, when.is_some_and(|when| !when.guards.is_empty()), scope, factors, span)
    }

    /// The same over these indices. What is restricted has entries where something is owed only.
    pub(super) fn collected_over(
        &mut self,
        mut indices: Vec<IndexId>,
        restricted: bool,
        scope: &Scope,
        factors: Vec<Expr>,
        span: Span,
    ) -> Vec<Expr> {
        let restricted = restricted
            || self.guarded
            || !scope.when.guards.is_empty()
            || factors.iter().any(|factor| self.is_of_tuples(factor));
        if restricted {
            // A tuple's values stand together where what tuples bind comes first.
            let bound = self.bound_by_tuples(scope, &factors);
            indices.sort_by_key(|index| !bound.contains(index));
        }
        let helper = self.helper("Grad_Part", &indices, restricted, span);
        let head = indices.iter().map(|index| IndexFn::Index(*index)).collect();
        self.owe(helper, head, scope, product(factors), span);
        vec![self.read_of(helper, &indices, span)]
    }

    /// The indices that tuples of the program's own relations bind, in guards or as factors.
    pub(super) fn bound_by_tuples(&self, scope: &Scope, factors: &[Expr]) -> BTreeSet<IndexId> {
        let mut bound = BTreeSet::new();
        let mut visit = |read: &Read| {
            let own = (read.tensor.0 as usize) < self.own;
            if own && self.program.tensor(read.tensor).style == Style::Round {
                bound.extend(read.arguments.iter().filter_map(|at| at.function().and_then(IndexFn::alone)));
            }
        };
        for guard in &scope.when.guards {
            if let Guard::Read(read) = guard {
                visit(read);
            }
        }
        for factor in factors {
            factor.visit_reads(&mut |read, sense| {
                if sense == Sense::Positive {
                    visit(read);
                }
            });
        }
        bound
    }

    /// Whether a factor is there for some tuples only: where nothing contributes there is no adjoint, and no 0 that meets an
    /// infinite number.
    fn is_of_tuples(&self, factor: &Expr) -> bool {
        match factor {
            Expr::Read(read) => {
                read.otherwise == Otherwise::Absent && self.program.tensor(read.tensor).style == Style::Round
            }
            Expr::Product(parts) => parts.iter().any(|part| self.is_of_tuples(part)),
            Expr::Negate(part) => self.is_of_tuples(part),
            Expr::Quotient(part, _) => self.is_of_tuples(part),
            _ => false,
        }
    }

    /// The scope in which a collected adjoint lives.
    fn scope_of(&self, exprs: &[&Expr], when: Option<&When>, scope: &Scope) -> Scope {
        Scope { indices: free_in(exprs, when, scope), when: When::default() }
    }

    fn reduce(&mut self, reduce: &Reduce, scope: &Scope, factors: Vec<Expr>) {
        let span = reduce.span;
        // The scope is opened under fresh indices: copies of the whole may stand beside it.
        let mut renaming = Renaming::new(&mut self.program);
        let over: Vec<IndexId> = reduce.over.iter().map(|index| renaming.fresh(*index)).collect();
        let when = renaming.when(&reduce.when);
        let body = renaming.expr(&reduce.body);
        let mut factors = factors;
        match reduce.operation {
            Operation::Count => return,
            Operation::Sum => {}
            Operation::Avg => {
                let count = Reduce { operation: Operation::Count, explicit: true, ..reduce.clone() };
                let over = Expr::Reduce(Box::new(count));
                factors = vec![Expr::Quotient(Box::new(product(factors)), Box::new(over))];
            }
            Operation::Max | Operation::Min => {
                return self.extremum(reduce, (over, when, body), scope, factors);
            }
            Operation::Product => {
                // The product of the other entries.
                let mut renaming = Renaming::new(&mut self.program);
                let others: Vec<IndexId> = reduce.over.iter().map(|index| renaming.fresh(*index)).collect();
                let other_when = renaming.when(&reduce.when);
                let other_body = renaming.expr(&reduce.body);
                // Entries before and after in the order of the indices: together all but this one.
                let mut rest = Vec::new();
                for at in 0..others.len() {
                    let mut when = other_when.clone();
                    for same in 0..at {
                        when.guards.push(same_index(others[same], over[same], Comparison::Equal));
                    }
                    when.guards.push(same_index(others[at], over[at], Comparison::NotEqual));
                    rest.push(Expr::Reduce(Box::new(Reduce {
                        operation: Operation::Product,
                        over: others.clone(),
                        when,
                        body: other_body.clone(),
                        explicit: true,
                        span,
                    })));
                }
                factors.extend(rest);
            }
        }
        let scope = scope.opened(&over, &when, &mut factors, span);
        self.walk(&body, &scope, factors, span);
    }

    /// The winners of a maximum or minimum share its adjoint evenly. The entries are stored first,
    /// so that equality is that of stored numbers.
    fn extremum(
        &mut self,
        reduce: &Reduce,
        opened: (Vec<IndexId>, When, Expr),
        scope: &Scope,
        factors: Vec<Expr>,
    ) {
        let span = reduce.span;
        let (over, when, body) = opened;
        let all: Vec<IndexId> = scope.indices.iter().chain(&over).copied().collect();
        let indices = free_in(&[&body], Some(&when), &Scope { indices: all.clone(), when: When::default() });
        let outer: Vec<IndexId> = indices.iter().copied().filter(|index| !over.contains(index)).collect();
        let entries = self.helper("Entry", &indices, true, span);
        let mut within = Scope { indices: indices.clone(), when: when.clone() };
        let head: Vec<IndexFn> = indices.iter().map(|index| IndexFn::Index(*index)).collect();
        let mut stored = vec![body.clone()];
        if outer.iter().any(|index| !self.is_ranged(*index)) {
            // Tuples beside it bind what its own do not. Whatever else these bind, an entry is the same number.
            within = Scope { indices: all, when: scope.when.clone() }.opened(&[], &when, &mut stored, span);
            stored.extend(factors.iter().filter(|factor| may_be_absent(factor)).map(present));
            if within.indices.len() > indices.len() {
                self.set_combine_to(entries, Combine::Max);
            }
        }
        self.push(entries, head, &within, product(stored), span);
        let entry = self.read_of(entries, &indices, span);
        // The best of them, and how many attain it.
        let best = self.helper("Best", &outer, true, span);
        self.set_combine_to(
            best,
            if reduce.operation == Operation::Max { Combine::Max } else { Combine::Min },
        );
        let outer_head: Vec<IndexFn> = outer.iter().map(|index| IndexFn::Index(*index)).collect();
        let all = Scope { indices: indices.clone(), when: When::default() };
        self.push(best, outer_head.clone(), &all, entry.clone(), span);
        let best_read = self.read_of(best, &outer, span);
        let wins = Guard::Compare(Comparison::Equal, entry.clone(), best_read);
        let winners = self.helper("Winners", &outer, true, span);
        let won = Scope { indices: indices.clone(), when: vec![wins.clone()].into() };
        self.push(winners, outer_head, &won, present(&entry), span);
        let count = self.read_of(winners, &outer, span);
        let shared = Expr::Quotient(Box::new(product(factors)), Box::new(count));
        let mut below = scope.clone();
        below.indices.extend(&over);
        below.when.guards.push(wins);
        let mut factors = vec![shared, present(&entry)];
        let below = below.opened(&[], &when, &mut factors, span);
        self.walk(&body, &below, factors, span);
    }

    fn call(&mut self, call: &Call, scope: &Scope, factors: Vec<Expr>) {
        for (at, argument) in call.arguments.iter().enumerate() {
            if !self.depends(argument) {
                continue;
            }
            let stored = match &self.stored {
                Some((whole, stored)) if *whole == call.when.node.number() => Some(stored.clone()),
                _ => None,
            };
            let stored = stored.filter(|_| call.arguments.len() == 1);
            let slope = stored.and_then(|stored| derivative::by_value(&call.function, stored, call.span));
            let slope = slope.or_else(|| derivative::of(&call.function, &call.arguments, at, call.span));
            let Some(slope) = slope else { continue };
            let mut along = factors.clone();
            along.push(slope);
            let others = call.arguments.iter().enumerate().filter(|(other, _)| *other != at);
            along.extend(others.filter(|(_, e)| !always_present(&self.program, e)).map(|(_, e)| present(e)));
            let inner = scope.opened(&[], &call.when, &mut along, call.span);
            let exprs: Vec<&Expr> = call.arguments.iter().collect();
            let along = self.collected(&exprs, Some(&call.when), &inner, along, call.span);
            let below = self.scope_of(&exprs, Some(&call.when), scope);
            self.walk(argument, &below, along, call.span);
        }
    }

    fn axis(&mut self, axis: &Axis, scope: &Scope, factors: Vec<Expr>) {
        let span = axis.span;
        let mut along = factors;
        let inner = scope.opened(&[], &axis.when, &mut along, span);
        let mut indices = free_in(&[&axis.argument], Some(&axis.when), scope);
        for index in &axis.axes {
            if !indices.contains(index) {
                indices.push(*index);
            }
        }
        indices.sort_by_key(|index| scope.indices.iter().position(|known| known == index));
        let restricted = self.guarded || !axis.when.guards.is_empty() || !inner.when.guards.is_empty();
        let incoming = match self.read_whole(&along, &indices).filter(|_| !restricted) {
            Some(tensor) => tensor,
            None => {
                if !indices.iter().all(|index| self.is_ranged(*index)) {
                    // An adjoint is looked up everywhere: the argument's tuples say where the entries are.
                    along.push(present(&axis.argument));
                }
                let incoming = self.helper("Grad_Axis", &indices, restricted, span);
                let head: Vec<IndexFn> = indices.iter().map(|index| IndexFn::Index(*index)).collect();
                self.owe(incoming, head, &inner, product(along), span);
                incoming
            }
        };
        self.axis_adjoint(axis, &indices, incoming, restricted);
    }

    /// The square tensor whose elements over these indices the factors are.
    fn read_whole(&self, factors: &[Expr], indices: &[IndexId]) -> Option<TensorId> {
        let [Expr::Read(read)] = factors else { return None };
        let same = read.arguments.len() == indices.len()
            && read.arguments.iter().zip(indices).all(|(argument, index)| {
                matches!(argument, Argument::At(function) if function.alone() == Some(*index))
            });
        (same && self.exists(read)).then_some(read.tensor)
    }

    /// Whether tuples bind an index of a read.
    fn has_tuples(&self, read: &Read) -> bool {
        let mut has = false;
        for argument in &read.arguments {
            if let Argument::At(function) = argument {
                function.visit(&mut |index| has |= matches!(self.program.index(index).range, Range::Tuples));
            }
        }
        has
    }

    /// The end of a path: one adjoint equation.
    fn occurrence(&mut self, read: &Read, scope: &Scope, mut factors: Vec<Expr>, span: Span) {
        if !self.active.contains(&read.tensor) {
            return;
        }
        let adjoint = self.adjoint_of(read.tensor);
        let style = self.program.tensor(read.tensor).style;
        let mut scope = scope.clone();
        // The gradient of a relation lives at its tuples; a square element that a round reference
        // reads is there where it is not 0.
        if style == Style::Round || read.otherwise == Otherwise::Absent {
            let there = Read { otherwise: Otherwise::Absent, ..read.clone() };
            // A guard binds no index of a square tensor.
            if style == Style::Square && self.has_tuples(read) {
                factors.push(present(&Expr::Read(there)));
            } else {
                scope.when.guards.push(Guard::Read(there));
            }
        }
        let mut head = Vec::new();
        for argument in &read.arguments {
            if let Argument::At(function) = argument {
                head.push(function.clone());
            }
        }
        factors.retain(|factor| !matches!(factor, Expr::Number(value) if *value == 1.0));
        match style == Style::Round && read.otherwise == Otherwise::Absent {
            true => self.owe_tuples(adjoint, head, &scope, product(factors), span),
            false => self.owe(adjoint, head, &scope, product(factors), span),
        }
    }
}

fn same_index(a: IndexId, b: IndexId, sign: Comparison) -> Guard {
    Guard::CompareIndex(sign, IndexFn::Index(a), IndexFn::Index(b))
}
