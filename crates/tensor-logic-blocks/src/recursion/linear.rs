//! Numeric recursion that is linear in itself: the matrix of its rounds as further equations, for [`super::solve`].
//!
//! Enter at [`prepare`] and [`Machine::solved`]. In `P[y] = 0.15 / N + 0.85 P[x] E[x, y] / D[x]` a round is an affine
//! function of P. Each read of the component's own tensors becomes a hidden tensor over the places of the left side and of
//! the read, with the rest of its term: `A[y, x] = 0.85 E[x, y] / D[x]`. Nobody needs it, so it is evaluated only where
//! rounds turn out to be slow.

use std::sync::Arc;

use super::solve::{Sparse, limit};
use crate::engine::{Listed, Parameters};
use crate::kernels::{Precision, volume};
use crate::program::{
    Argument, Class, Combine, Component, Equation, EquationId, Expr, IndexFn, IndexId, Kind, Operation,
    Otherwise, Place, Program, Read, Role, Style, Tensor, TensorId, Term, When,
};
use crate::store::machine::{Coefficients, Linear, Machine, Stored, indices_of};

/// A matrix that is not sparse may have so many bytes.
const ROOM: u64 = 1 << 28;

/// The numbers of a component's tensors.
type State = [Arc<Vec<f64>>];

/// A read of the component at hand, and what it is multiplied by.
struct Part<'p> {
    over: Vec<IndexId>,
    whens: Vec<&'p When>,
    factors: Vec<Expr>,
    read: &'p Read,
}

/// Adds the coefficients of every component that is linear in itself to a program, but for those of these first tensors.
pub(crate) fn prepare(program: &mut Program, but: impl Fn(TensorId) -> bool) -> Linear {
    let mut linear = Linear::new();
    let numeric = |component: &&Component| matches!(component.class, Class::Numeric);
    let components: Vec<Component> = program.components.iter().filter(numeric).cloned().collect();
    for component in components {
        if component.tensors.first().is_some_and(|first| but(*first)) {
            continue;
        }
        let Some(equations) = coefficients(program, &component) else { continue };
        let mut all = Vec::new();
        for (equation, head, read) in equations {
            let tensor = TensorId(program.tensors.len() as u32);
            let at = EquationId(program.equations.len() as u32);
            let places = [head, read].map(|id| program.tensor(id).places.clone()).concat();
            let places = places.into_iter().map(|place| Place { star: false, ..place }).collect();
            program.tensors.push(Tensor {
                name: program.name(head).to_owned(),
                version: 0,
                hidden: true,
                style: Style::Square,
                kind: Kind::Real,
                combine: Combine::Sum,
                places,
                role: Role::Computed,
                given: Vec::new(),
                start: None,
                span: program.tensor(head).span,
            });
            program.equations.push(Equation { tensor, ..equation });
            let component = Component { tensors: vec![tensor], equations: vec![at], class: Class::Plain };
            all.push(Coefficients { component, tensor, head, read });
        }
        if let Some(first) = component.tensors.first() {
            linear.insert(*first, all);
        }
    }
    linear
}

/// For each read of its own tensors by a component an equation of coefficients; `None` where it is not linear.
fn coefficients(program: &Program, component: &Component) -> Option<Vec<(Equation, TensorId, TensorId)>> {
    for id in &component.tensors {
        let tensor = program.tensor(*id);
        let sums = tensor.style == Style::Square && tensor.combine == Combine::Sum;
        if !sums || tensor.kind == Kind::Count || tensor.role != Role::Computed {
            return None;
        }
    }
    let mut equations = Vec::new();
    for at in &component.equations {
        let equation = program.equation(*at);
        for term in &equation.terms {
            if reads_own(&term.when, component) {
                return None;
            }
            for part in parts(&term.body, component)? {
                equations.push((with(equation, term, &part)?, equation.tensor, part.read.tensor));
            }
        }
    }
    Some(equations)
}

/// The equation of the coefficients of one read.
fn with(equation: &Equation, term: &Term, part: &Part<'_>) -> Option<Equation> {
    let functions = part.read.arguments.iter().map(|argument| argument.function().cloned());
    let functions: Vec<IndexFn> = functions.collect::<Option<_>>()?;
    let mut left = equation.left.clone();
    for index in functions.iter().flat_map(indices_of) {
        if !left.contains(&index) {
            left.push(index);
        }
    }
    let all = term.over.iter().chain(&part.over).copied();
    let over = all.filter(|index| !left.contains(index)).collect();
    let mut when = term.when.clone();
    for more in &part.whens {
        when.exists.extend(&more.exists);
        when.guards.extend(more.guards.iter().cloned());
    }
    let body = if part.factors.is_empty() { Expr::Number(1.0) } else { Expr::Product(part.factors.clone()) };
    Some(Equation {
        head: [equation.head.clone(), functions].concat(),
        left,
        terms: vec![Term { over, when, body }],
        ..equation.clone()
    })
}

fn reads_own(when: &When, component: &Component) -> bool {
    let mut found = false;
    when.visit_reads(&mut |read, _| found |= component.tensors.contains(&read.tensor));
    found
}

fn has_own(expr: &Expr, component: &Component) -> bool {
    let mut found = false;
    expr.visit_reads(&mut |read, _| found |= component.tensors.contains(&read.tensor));
    found
}

/// The reads of the component in an expression that is a sum of products with one of them each.
fn parts<'p>(expr: &'p Expr, component: &Component) -> Option<Vec<Part<'p>>> {
    if !has_own(expr, component) {
        return Some(Vec::new());
    }
    let times = |found: Vec<Part<'p>>, factors: Vec<Expr>| {
        let each = found.into_iter().map(|mut part| {
            part.factors.extend(factors.iter().cloned());
            part
        });
        each.collect::<Vec<_>>()
    };
    match expr {
        Expr::Read(read) if read.otherwise != Otherwise::Absent => {
            let whole = read.arguments.iter().all(|argument| matches!(argument, Argument::At(_)));
            let part = Part { over: Vec::new(), whens: Vec::new(), factors: Vec::new(), read };
            whole.then(|| vec![part])
        }
        Expr::Negate(inner) => Some(times(parts(inner, component)?, vec![Expr::Number(-1.0)])),
        Expr::Product(all) => {
            let (own, others): (Vec<&Expr>, Vec<&Expr>) =
                all.iter().partition(|part| has_own(part, component));
            let [own] = own.as_slice() else { return None };
            Some(times(parts(own, component)?, others.into_iter().cloned().collect()))
        }
        Expr::Quotient(inner, divisor) if !has_own(divisor, component) => {
            let inverse = Expr::Quotient(Box::new(Expr::Number(1.0)), divisor.clone());
            Some(times(parts(inner, component)?, vec![inverse]))
        }
        Expr::Terms(all) => {
            let found: Option<Vec<_>> = all.iter().map(|part| parts(part, component)).collect();
            Some(found?.into_iter().flatten().collect())
        }
        Expr::Plus(all) => {
            let mut found = Vec::new();
            for (at, part) in all.iter().enumerate() {
                // The others must be present: their powers of 0 are 1 then.
                let others = all.iter().enumerate().filter(|(other, _)| *other != at).map(|(_, other)| other);
                let there =
                    others.map(|other| Expr::Power(Box::new(other.clone()), Box::new(Expr::Number(0.0))));
                found.extend(times(parts(part, component)?, there.collect()));
            }
            Some(found)
        }
        Expr::Reduce(reduce) if reduce.operation == Operation::Sum && !reads_own(&reduce.when, component) => {
            let mut found = parts(&reduce.body, component)?;
            for part in &mut found {
                part.over.extend(&reduce.over);
                part.whens.push(&reduce.when);
            }
            Some(found)
        }
        _ => None,
    }
}

impl Machine {
    /// The limit of the rounds of a component that is linear in itself, by a solve: from two states, the second a round
    /// after the first. `None` where it is another component, or nothing proves that there is a limit.
    pub(crate) fn solved(
        &mut self,
        component: &Component,
        (old, new): (&State, &State),
        parameters: &Parameters,
    ) -> Option<Vec<Stored>> {
        let tolerance = self.program.settings.tolerance;
        if self.precision != Precision::Double || tolerance < 1e-15 {
            return None;
        }
        let linear = self.linear.get(component.tensors.first()?)?.clone();
        let sizes: Vec<usize> = old.iter().map(|values| values.len()).collect();
        let start = |id: TensorId| {
            let at = component.tensors.iter().position(|other| *other == id)?;
            Some((sizes[..at].iter().sum::<usize>(), sizes[at]))
        };
        let n: usize = sizes.iter().sum();
        let mut entries: Vec<(u32, u32, f64)> = Vec::new();
        for part in &linear {
            let ((rows, _), (columns, width)) = (start(part.head)?, start(part.read)?);
            let listed = self.coefficients(part, parameters)?;
            for (position, value) in listed.positions.into_iter().zip(listed.values) {
                if value != 0.0 {
                    entries.push((
                        (rows + position / width) as u32,
                        (columns + position % width) as u32,
                        value,
                    ));
                }
            }
        }
        let matrix = Sparse::new(n, entries);
        let (old, new): (Vec<f64>, Vec<f64>) = (
            old.iter().flat_map(|v| v.iter().copied()).collect(),
            new.iter().flat_map(|v| v.iter().copied()).collect(),
        );
        let given: Vec<f64> = new.iter().zip(matrix.times(&old)).map(|(new, own)| new - own).collect();
        let stop = self.stop.clone();
        let found = limit(&matrix, &given, &new, tolerance, &move || stop.asked())?;
        let mut rest = found.as_slice();
        let mut stored = Vec::with_capacity(sizes.len());
        for size in &sizes {
            let (own, others) = rest.split_at_checked(*size)?;
            stored.push(Stored::Dense(self.given_array(own)));
            rest = others;
        }
        Some(stored)
    }

    /// The coefficients that are not 0, as far as they fit.
    fn coefficients(&mut self, part: &Coefficients, parameters: &Parameters) -> Option<Listed> {
        let (head, bytes, limit) = (self.head, self.bytes, self.budget.bytes);
        self.budget.bytes = limit.min(bytes.saturating_add(ROOM));
        let reserved = match self.may_be_listed(&part.component, part.tensor) {
            true => Ok(()),
            false => self.reserve_tensor(part.tensor),
        };
        let made = reserved.and_then(|()| self.plain(&part.component, part.tensor, parameters));
        (self.head, self.bytes, self.budget.bytes) = (head, bytes, limit);
        match made.ok()? {
            Stored::Relation(relation) => Some(self.listed(part.tensor, &relation)),
            Stored::Dense(array) => {
                let sizes = self.program.tensor(part.tensor).sizes();
                let values = self.numbers(&array).doubles();
                let there = |(_, value): &(usize, f64)| *value != 0.0;
                let (positions, values) =
                    values.iter().copied().enumerate().take(volume(&sizes)).filter(there).unzip();
                Some(Listed { positions, values })
            }
        }
    }
}
