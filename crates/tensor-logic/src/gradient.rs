//! The adjoint of a program is a program (reverse mode on equations).
//!
//! Enter at [`adjoint`]. For every occurrence of a tensor on a right side there is one adjoint
//! equation. With `Y[α] = f(U)`, `U = Σ T ∏ X`:
//!
//! ```text
//! Grad_U = Grad_Y f'(U)          Grad_T[…] = Σ over the other indices of  Grad_U ∏ X
//! ```
//!
//! The result goes through the same planner as every program. Recursion needs no case of its own:
//! the adjoint of a stepped component steps the other way, that of a numeric fixpoint
//! `X = F(X)` is the fixpoint `Λ = Grad + (∂F/∂X)ᵀΛ`, that of a closure runs along the
//! derivations that attain the value.
//!
//! `expression` walks a right side from the root to each occurrence and keeps the factor that
//! the path has collected; `combine` says what an element owes to each of its contributions.

use std::collections::{BTreeSet, HashMap};

use crate::ast::Span;
use crate::program::{
    Action, Argument, Combine, Equation, Expr, Facts, Given, Index, IndexFn, IndexId, Kind, Otherwise, Place,
    Program, Range, Read, Role, Style, Tensor, TensorId, Term, When,
};
use crate::rename::Renaming;
use crate::value::{Const, Domain};

mod axis;
mod combine;
mod derivative;
pub mod evaluate;
mod expression;

/// A program that computes gradients beside what it computed before.
#[derive(Debug, Clone)]
pub struct Adjoint {
    /// The program: the original tensors keep their ids.
    pub program: Program,
    /// The gradient of each tensor asked for; `None` where the goal does not depend on it.
    pub gradients: Vec<Option<TensorId>>,
    /// The first equation that was added.
    pub first_equation: usize,
}

/// The gradients of a scalar with respect to tensors.
pub fn adjoint(program: &Program, goal: TensorId, wrt: &[TensorId]) -> Adjoint {
    let first_equation = program.equations.len();
    let needed = program.needs(&[goal]);
    let active = active(program, &needed, wrt);
    let mut builder = Builder {
        program: program.clone(),
        active,
        adjoints: HashMap::new(),
        contributions: HashMap::new(),
        entries: HashMap::new(),
        made: 0,
        stored: None,
    };
    if builder.active.contains(&goal) {
        let seed = builder.adjoint_of(goal);
        builder.seed(seed);
        for at in 0..first_equation {
            let equation = program.equations[at].clone();
            if builder.active.contains(&equation.tensor) && equation.tensor_differs() {
                builder.equation(&equation);
            }
        }
    }
    let gradients = wrt.iter().map(|id| builder.adjoints.get(id).copied()).collect();
    let mut program = builder.program;
    settle(&mut program);
    Adjoint { program, gradients, first_equation }
}

/// Components of the grown program. Its recursion was legal, so its adjoint's is.
fn settle(program: &mut Program) {
    let tree = crate::ast::Program::default();
    if let Ok(components) = crate::recursion::analyse(program, &tree) {
        program.components = components;
    }
    program.actions.retain(|action| matches!(action, Action::Query(_)));
}

impl Equation {
    /// Whether a change of its right side can change the tensor smoothly at all.
    fn tensor_differs(&self) -> bool {
        !self.terms.is_empty()
    }
}

/// The tensors below the goal that depend on what is asked for.
fn active(program: &Program, needed: &BTreeSet<TensorId>, wrt: &[TensorId]) -> BTreeSet<TensorId> {
    let mut active: BTreeSet<TensorId> = wrt.iter().copied().filter(|id| needed.contains(id)).collect();
    let smooth = |id: TensorId| !matches!(program.tensor(id).combine, Combine::Exists | Combine::Or);
    loop {
        let before = active.len();
        for equation in &program.equations {
            let (tensor, mut depends) = (equation.tensor, false);
            equation.visit_reads(&mut |read, _| depends |= active.contains(&read.tensor));
            if depends && needed.contains(&tensor) && smooth(tensor) {
                active.insert(tensor);
            }
        }
        if active.len() == before {
            return active;
        }
    }
}

/// What grows.
struct Builder {
    program: Program,
    active: BTreeSet<TensorId>,
    /// The adjoint of each tensor that has one.
    adjoints: HashMap<TensorId, TensorId>,
    /// Counts and values of contributions, for tensors that are not sums.
    contributions: HashMap<TensorId, combine::Contributions>,
    /// Stored contributions, by equation and term.
    entries: HashMap<(Span, TensorId, usize), TensorId>,
    /// Helper tensors made, for their names.
    made: usize,
    /// The address of the function that is the right side at hand, and the read of the tensor that
    /// holds its values.
    stored: Option<(usize, Expr)>,
}

/// Indices that are bound at a point of an equation, and what must hold there.
#[derive(Debug, Clone, Default)]
struct Scope {
    indices: Vec<IndexId>,
    when: When,
}

impl Scope {
    /// The scope with further indices and guards. Guards with indices of their own become a
    /// factor instead: they ask whether some value satisfies them, and must not be counted.
    fn opened(&self, indices: &[IndexId], when: &When, factor: &mut Vec<Expr>, span: Span) -> Scope {
        let mut scope = self.clone();
        scope.indices.extend(indices);
        if when.exists.is_empty() {
            scope.when.guards.extend(when.guards.iter().cloned());
        } else {
            factor.push(expression::only_if(when.clone(), span));
        }
        scope
    }
}

impl Builder {
    /// The adjoint of a tensor: of the same places, and for a relation at its tuples only.
    fn adjoint_of(&mut self, id: TensorId) -> TensorId {
        if let Some(adjoint) = self.adjoints.get(&id) {
            return *adjoint;
        }
        let original = self.program.tensor(id).clone();
        let version = if original.version > 0 { format!("_v{}", original.version) } else { String::new() };
        let name =
            if original.hidden { "Grad_Goal".to_owned() } else { format!("Grad_{}{version}", original.name) };
        let adjoint = self.tensor(name, original.style, original.places.clone(), original.span);
        self.adjoints.insert(id, adjoint);
        adjoint
    }

    fn tensor(&mut self, name: String, style: Style, places: Vec<Place>, span: Span) -> TensorId {
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
    fn helper(&mut self, stem: &str, indices: &[IndexId], sparse: bool, span: Span) -> TensorId {
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

    fn set_combine_to(&mut self, id: TensorId, combine: Combine) {
        if let Some(tensor) = self.program.tensors.get_mut(id.0 as usize) {
            tensor.combine = combine;
        }
    }

    /// Fresh indices that tuples bind.
    fn indices_of(&mut self, count: usize, span: Span) -> Vec<IndexId> {
        let first = self.program.indices.len();
        for place in 0..count {
            let index = Index { name: format!("x{place}"), range: Range::Tuples, span };
            self.program.indices.push(index);
        }
        (first..first + count).map(|at| IndexId(u32::try_from(at).unwrap_or(u32::MAX))).collect()
    }

    /// The read of a helper at its own indices.
    fn read_of(&self, id: TensorId, indices: &[IndexId], span: Span) -> Expr {
        let round = self.program.tensor(id).style == Style::Round;
        let otherwise = if round { Otherwise::Absent } else { Otherwise::Zero };
        let arguments = indices.iter().map(|index| Argument::At(IndexFn::Index(*index))).collect();
        Expr::Read(Read { tensor: id, arguments, otherwise, span })
    }

    /// Adds `tensor[head] += body` over all bindings of the scope.
    fn push(&mut self, tensor: TensorId, head: Vec<IndexFn>, scope: &Scope, body: Expr, span: Span) {
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
        let equation =
            Equation { tensor, head, left, terms: vec![term], span, head_span: span, sign_span: span };
        let equation = Renaming::new(&mut self.program).equation(&equation);
        self.stay_inside(&equation);
        self.program.equations.push(equation);
    }

    /// Elements outside the domain have no gradient. Where one index alone decides, its range says
    /// so, so that a printed left side takes no other values either.
    fn stay_inside(&mut self, equation: &Equation) {
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

    /// dGoal/dGoal = 1.
    fn seed(&mut self, seed: TensorId) {
        let mut facts = Facts::default();
        facts.push(&[], 1.0, Some(Span::default()));
        if let Some(tensor) = self.program.tensors.get_mut(seed.0 as usize) {
            tensor.given.push(Given::Facts(std::sync::Arc::new(facts)));
            if tensor.role == Role::Computed {
                tensor.style = Style::Square;
            }
        }
    }

    /// The adjoint equations of one equation.
    fn equation(&mut self, equation: &Equation) {
        let adjoint = self.adjoint_of(equation.tensor);
        let round = self.program.tensor(adjoint).style == Style::Round;
        let otherwise = if round { Otherwise::Absent } else { Otherwise::Zero };
        let arguments: Vec<Argument> = equation.head.iter().cloned().map(Argument::At).collect();
        let incoming =
            Read { tensor: adjoint, arguments: arguments.clone(), otherwise, span: equation.head_span };
        for (nth, term) in equation.terms.iter().enumerate() {
            if !self.depends(&term.body) {
                continue;
            }
            let mut indices = equation.left.clone();
            indices.extend(&term.over);
            let mut factors = vec![Expr::Read(incoming.clone())];
            let scope = Scope { indices, when: When::default() };
            let scope = scope.opened(&[], &term.when, &mut factors, equation.span);
            self.stored = self.own_value(equation, term, arguments.clone());
            self.contribution(equation, nth, term, &scope, factors);
            self.stored = None;
        }
    }

    /// The function that alone makes all elements of a square tensor, and the read of it.
    fn own_value(&self, equation: &Equation, term: &Term, arguments: Vec<Argument>) -> Option<(usize, Expr)> {
        let tensor = self.program.tensor(equation.tensor);
        let others = self.program.equations.iter().filter(|other| other.tensor == equation.tensor).count();
        let read =
            Read { tensor: equation.tensor, arguments, otherwise: Otherwise::Zero, span: equation.head_span };
        let alone = others == 1
            && equation.terms.len() == 1
            && term.over.is_empty()
            && term.when.guards.is_empty()
            && tensor.combine == Combine::Sum
            && tensor.kind == Kind::Real
            && tensor.given.is_empty();
        let body = match &term.body {
            Expr::Terms(parts) if parts.len() == 1 => parts.first()?,
            body => body,
        };
        let address = match body {
            Expr::Call(call) => std::ptr::from_ref(call.as_ref()) as usize,
            Expr::Axis(axis) => std::ptr::from_ref(axis.as_ref()) as usize,
            _ => return None,
        };
        (alone && self.exists(&read)).then_some((address, Expr::Read(read)))
    }

    /// Whether an expression reads something active.
    fn depends(&self, expr: &Expr) -> bool {
        let mut depends = false;
        expr.visit_reads(&mut |read, sense| {
            depends |= sense == crate::program::Sense::Positive && self.active.contains(&read.tensor);
        });
        depends
    }
}
