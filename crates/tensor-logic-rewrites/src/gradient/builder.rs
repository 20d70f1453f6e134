//! The program that grows: its adjoints, helpers and equations, and the scope of an occurrence.

use std::collections::{BTreeSet, HashMap};

use super::active::flows;
use super::forms::only_if;
use crate::ast::{Comparison, Span};
use crate::program::{
    Argument, Combine, Equation, Expr, Guard, Index, IndexFn, IndexId, Kind, Otherwise, Place, Program,
    Range, Read, Role, Stamp, Style, Tensor, TensorId, Term, When,
};
use crate::rename::Renaming;
use crate::value::{Const, Domain};

/// What grows.
pub(super) struct Builder {
    pub(super) program: Program,
    pub(super) active: BTreeSet<TensorId>,
    /// The adjoint of each tensor that has one.
    pub(super) adjoints: HashMap<TensorId, TensorId>,
    /// The derivatives by the given tuples of relations that have probabilities.
    pub(super) weights: HashMap<TensorId, TensorId>,
    /// Counts and values of contributions, for tensors that are not sums.
    pub(super) contributions: HashMap<TensorId, Contributions>,
    /// Stored contributions, by equation and term.
    pub(super) entries: HashMap<(Span, TensorId, usize), TensorId>,
    /// Helper tensors made, for their names.
    pub(super) made: usize,
    /// The number of the function that is the right side at hand, and the read of the tensor that
    /// holds its values.
    pub(super) stored: Option<(u64, Expr)>,
    /// Whether an adjoint has entries only where something is owed, and nothing is where a factor that stays 0 is one.
    pub(super) guarded: bool,
    /// So many tensors are those of the program.
    pub(super) own: usize,
}

/// Helper tensors that count and compare the contributions to a tensor.
#[derive(Debug, Clone, Copy)]
pub(super) struct Contributions {
    /// `avg=`: how many. `max=`, `min=`: how many attain the value. `*=`: how many are 0.
    pub(super) count: TensorId,
    /// `max=`, `min=`: the value. `*=`: the product of those that are not 0.
    pub(super) value: TensorId,
}

/// Indices that are bound at a point of an equation, and what must hold there.
#[derive(Debug, Clone, Default)]
pub(super) struct Scope {
    pub(super) indices: Vec<IndexId>,
    pub(super) when: When,
}

impl Scope {
    /// The scope with further indices and guards. Guards with indices of their own become a
    /// factor instead: they ask whether some value satisfies them, and must not be counted.
    pub(super) fn opened(
        &self,
        indices: &[IndexId],
        when: &When,
        factor: &mut Vec<Expr>,
        span: Span,
    ) -> Scope {
        let mut scope = self.clone();
        scope.indices.extend(indices);
        if when.exists.is_empty() {
            scope.when.guards.extend(when.guards.iter().cloned());
        } else {
            factor.push(only_if(when.clone(), span));
        }
        scope
    }
}

/// An index function with what these guards assign in the place of the indices that they compute.
fn assigned(function: &IndexFn, when: &When) -> IndexFn {
    let of = |part: &IndexFn| Box::new(assigned(part, when));
    let value = |index: &IndexId| {
        when.guards.iter().find_map(|guard| match guard {
            Guard::Bind(own, function) if own == index => Some(assigned(function, when)),
            _ => None,
        })
    };
    match function {
        IndexFn::Index(index) => value(index).unwrap_or_else(|| function.clone()),
        IndexFn::Const(_) | IndexFn::Ordinal(_) => function.clone(),
        IndexFn::Negate(a) => IndexFn::Negate(of(a)),
        IndexFn::Add(a, b) => IndexFn::Add(of(a), of(b)),
        IndexFn::Subtract(a, b) => IndexFn::Subtract(of(a), of(b)),
        IndexFn::Multiply(a, b) => IndexFn::Multiply(of(a), of(b)),
        IndexFn::Divide(a, b) => IndexFn::Divide(of(a), of(b)),
        IndexFn::Remainder(a, b) => IndexFn::Remainder(of(a), of(b)),
    }
}

/// Whether something is normalised along an index inside of an expression.
fn is_axis(expr: &Expr, index: IndexId) -> bool {
    let own = matches!(expr, Expr::Axis(axis) if axis.axes.contains(&index));
    own || expr.parts().0.into_iter().any(|part| is_axis(part, index))
}

/// Visits the guards inside of an expression.
fn guards_in(expr: &Expr, visit: &mut impl FnMut(&Guard)) {
    let (parts, when) = expr.parts();
    parts.into_iter().for_each(|part| guards_in(part, visit));
    for guard in when.into_iter().flat_map(|when| &when.guards) {
        visit(guard);
        if let Guard::Compare(_, a, b) = guard {
            guards_in(a, visit);
            guards_in(b, visit);
        }
    }
}

impl Builder {
    /// The adjoint of a tensor: of the same places, and for a relation at its tuples only.
    pub(super) fn adjoint_of(&mut self, id: TensorId) -> TensorId {
        if let Some(adjoint) = self.adjoints.get(&id) {
            return *adjoint;
        }
        let original = self.program.tensor(id).clone();
        let version = if original.version > 0 { format!("_v{}", original.version) } else { String::new() };
        let name =
            if original.hidden { "Grad_Goal".to_owned() } else { format!("Grad_{}{version}", original.name) };
        let style = if self.guarded { Style::Round } else { original.style };
        let adjoint = self.tensor(name, style, original.places.clone(), original.span);
        self.adjoints.insert(id, adjoint);
        adjoint
    }

    pub(super) fn tensor(&mut self, name: String, style: Style, places: Vec<Place>, span: Span) -> TensorId {
        let mut unique = name;
        while self.program.tensors.iter().any(|tensor| tensor.name == unique && !tensor.hidden) {
            unique.push('\'');
        }
        self.program.tensors.push(Tensor {
            name: unique,
            version: 0,
            hidden: false,
            style,
            kind: Kind::Real,
            combine: Combine::Sum,
            places: places.into_iter().map(|place| Place { limit: None, star: false, ..place }).collect(),
            role: Role::Computed,
            given: Vec::new(),
            start: None,
            span,
        });
        TensorId(u32::try_from(self.program.tensors.len() - 1).unwrap_or(u32::MAX))
    }

    /// A helper tensor over indices: square where all of them have known ranges and nothing
    /// restricts them, round otherwise, so that its size follows its support.
    pub(super) fn helper(&mut self, stem: &str, indices: &[IndexId], sparse: bool, span: Span) -> TensorId {
        let ranges: Option<Vec<Domain>> = indices
            .iter()
            .map(|index| match &self.program.index(*index).range {
                Range::Domain(domain) => Some(domain.clone()),
                Range::Tuples | Range::Computed => None,
            })
            .collect();
        let style = if sparse || ranges.is_none() { Style::Round } else { Style::Square };
        let places = match ranges {
            Some(ranges) => ranges.into_iter().map(Some).collect(),
            None => vec![None; indices.len()],
        };
        let places = places.into_iter().map(|domain| Place { domain, limit: None, star: false }).collect();
        self.made += 1;
        let name = format!("{stem}_{}", self.made);
        self.tensor(name, style, places, span)
    }

    pub(super) fn set_combine_to(&mut self, id: TensorId, combine: Combine) {
        if let Some(tensor) = self.program.tensors.get_mut(id.0 as usize) {
            tensor.combine = combine;
        }
    }

    /// Fresh indices that tuples bind.
    pub(super) fn indices_of(&mut self, count: usize, span: Span) -> Vec<IndexId> {
        let first = self.program.indices.len();
        for place in 0..count {
            let index = Index { name: format!("x{place}"), range: Range::Tuples, span };
            self.program.indices.push(index);
        }
        (first..first + count).map(|at| IndexId(u32::try_from(at).unwrap_or(u32::MAX))).collect()
    }

    /// The read of a helper at its own indices.
    pub(super) fn read_of(&self, id: TensorId, indices: &[IndexId], span: Span) -> Expr {
        let round = self.program.tensor(id).style == Style::Round;
        let otherwise = if round { Otherwise::Absent } else { Otherwise::Zero };
        let arguments = indices.iter().map(|index| Argument::At(IndexFn::Index(*index))).collect();
        Expr::Read(Read::new(id, arguments, otherwise, span))
    }

    /// Adds `tensor[head] += body` over all bindings of the scope, inside of the tensor's domain. A relation's domain is only what
    /// square references read of it.
    pub(super) fn push(
        &mut self,
        tensor: TensorId,
        head: Vec<IndexFn>,
        scope: &Scope,
        body: Expr,
        span: Span,
    ) {
        let equation = self.added(tensor, head, scope, body, span);
        if self.program.tensor(tensor).style == Style::Square {
            self.stay_inside(&equation);
        }
        self.program.equations.push(equation);
    }

    /// The equation `tensor[head] += body` over all bindings of the scope.
    fn added(
        &mut self,
        tensor: TensorId,
        head: Vec<IndexFn>,
        scope: &Scope,
        body: Expr,
        span: Span,
    ) -> Equation {
        // On a left side an index takes all its values, of which an assignment keeps some, and it is none any more.
        let head: Vec<IndexFn> = head.iter().map(|function| assigned(function, &scope.when)).collect();
        let mut left = Vec::new();
        for function in &head {
            function.visit(&mut |index| {
                if !left.contains(&index) {
                    left.push(index);
                }
            });
        }
        let over = scope.indices.iter().copied().filter(|index| !left.contains(index)).collect();
        let term = Term { over, when: scope.when.clone(), body };
        let (terms, head_span, sign_span, node) = (vec![term], span, span, Stamp::default());
        let equation = Equation { tensor, head, left, terms, node, span, head_span, sign_span };
        let equation = Renaming::new(&mut self.program).equation(&equation);
        self.be_bound(&equation);
        equation
    }

    /// Adds `adjoint[head] += factors` over all bindings of the scope.
    pub(super) fn owe(
        &mut self,
        adjoint: TensorId,
        head: Vec<IndexFn>,
        scope: &Scope,
        body: Expr,
        span: Span,
    ) {
        if self.is_outside(adjoint, &head) {
            return;
        }
        let scope = self.guarded(scope, &body);
        let equation = self.added(adjoint, head, &scope, body, span);
        self.stay_inside(&equation);
        self.program.equations.push(equation);
    }

    /// The same to tuples of a relation, which may have other ones than its domain, by which square references read it.
    pub(super) fn owe_tuples(
        &mut self,
        adjoint: TensorId,
        head: Vec<IndexFn>,
        scope: &Scope,
        body: Expr,
        span: Span,
    ) {
        let scope = self.guarded(scope, &body);
        let equation = self.added(adjoint, head, &scope, body, span);
        self.program.equations.push(equation);
    }

    /// The scope, with the guards that nothing in it is 0, where these are wanted.
    fn guarded(&self, scope: &Scope, body: &Expr) -> Scope {
        let mut scope = scope.clone();
        if self.guarded {
            self.not_zero(body, &mut scope.when.guards);
        }
        scope
    }

    /// Whether no element of a tensor is named.
    fn is_outside(&self, id: TensorId, head: &[IndexFn]) -> bool {
        let places = &self.program.tensor(id).places;
        head.iter().zip(places).any(|(function, place)| match (function, &place.domain) {
            (IndexFn::Const(value), Some(domain)) => domain.ordinal(*value).is_none(),
            _ => false,
        })
    }

    /// That no factor is 0 which stays it nearby: a mask of the data, the slope of a maximum that another one has.
    fn not_zero(&self, expr: &Expr, into: &mut Vec<Guard>) {
        match expr {
            Expr::Product(parts) => parts.iter().for_each(|part| self.not_zero(part, into)),
            Expr::Negate(part) | Expr::Quotient(part, _) => self.not_zero(part, into),
            // X^0 is 1.
            Expr::Power(_, exponent) if matches!(**exponent, Expr::Number(0.0)) => {}
            Expr::Number(number) if *number == 0.0 => {
                into.push(Guard::Compare(Comparison::NotEqual, expr.clone(), Expr::Number(0.0)));
            }
            Expr::Number(_) => {}
            _ => {
                let mut stays = true;
                flows(expr, &mut |read| {
                    let id = read.tensor;
                    stays &= !self.active.contains(&id) && (id.0 as usize) < self.own;
                });
                if stays {
                    into.push(Guard::Compare(Comparison::NotEqual, expr.clone(), Expr::Number(0.0)));
                }
            }
        }
    }

    /// What an assignment computed in the equation that an index comes from, tuples bind where that assignment does not stand.
    fn be_bound(&mut self, equation: &Equation) {
        let mut computed = BTreeSet::new();
        for term in &equation.terms {
            let mut found = |guard: &Guard| {
                if let Guard::Bind(index, _) = guard {
                    computed.insert(*index);
                }
            };
            term.when.guards.iter().for_each(&mut found);
            guards_in(&term.body, &mut found);
        }
        let own = equation.left.iter().chain(equation.terms.iter().flat_map(|term| &term.over));
        for index in own.filter(|index| !computed.contains(index)) {
            if let Some(entry) = self.program.indices.get_mut(index.0 as usize)
                && matches!(entry.range, Range::Computed)
            {
                entry.range = Range::Tuples;
            }
        }
    }

    /// Whether the values of an index are known without any tuple.
    pub(super) fn is_ranged(&self, index: IndexId) -> bool {
        matches!(self.program.index(index).range, Range::Domain(_))
    }

    /// Elements outside the domain have no gradient. Where one index alone decides, its range says
    /// so, so that a printed left side takes no other values either.
    pub(super) fn stay_inside(&mut self, equation: &Equation) {
        for (place, function) in equation.head.iter().enumerate() {
            let mut indices = Vec::new();
            function.visit(&mut |index| indices.push(index));
            let domain =
                self.program.tensor(equation.tensor).places.get(place).and_then(|p| p.domain.clone());
            let ([index], Some(Domain::Interval { from, to }), None) =
                (indices.as_slice(), domain, function.alone())
            else {
                continue;
            };
            // softmax and lnorm along an index take all of its values.
            if equation.terms.iter().any(|term| is_axis(&term.body, *index)) {
                continue;
            }
            let Range::Domain(Domain::Interval { from: low, to: high }) = self.program.index(*index).range
            else {
                continue;
            };
            let inside = |value: &i64| {
                let value = function.evaluate(&|_| Some(Const::Int(*value)), &|_| None).and_then(Const::int);
                value.is_some_and(|value| from <= value && value <= to)
            };
            // Index functions of one index are monotone or periodic: only an end may be cut off.
            let first = (low..=high).take(1 << 16).find(inside);
            let last = (low..=high).rev().take(1 << 16).find(inside);
            if let (Some(first), Some(last), Some(entry)) =
                (first, last, self.program.indices.get_mut(index.0 as usize))
            {
                entry.range = Range::Domain(Domain::Interval { from: first, to: last });
            }
        }
    }

    /// Whether an expression reads something active.
    pub(super) fn depends(&self, expr: &Expr) -> bool {
        let mut depends = false;
        expr.visit_reads(&mut |read, sense| {
            depends |= sense == crate::program::Sense::Positive && self.active.contains(&read.tensor);
        });
        depends
    }
}
