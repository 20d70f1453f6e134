//! Sums over the steps as tensors of their own: `Loss = sqrt(sum[t](X[t]^2)) + W^2` reads one.
//!
//! Enter at [`apart`].

use std::collections::{BTreeMap, BTreeSet};

use super::along::{Along, Places, is_summed};
use crate::ast::Comparison;
use crate::presence::{fits, has_values, in_range};
use crate::program::{
    Argument, Class, Combine, Component, Equation, EquationId, Expr, Guard, Index, IndexFn, IndexId, Kind,
    Operation, Otherwise, Place, Program, Range, Read, Reduce, Role, Sense, Stamp, Style, Tensor, TensorId,
    Term, When,
};
use crate::rename::Renaming;
use crate::value::Domain;
use crate::walk::expr_indices;

/// Writes sums over the steps as tensors of their own; `None` where one cannot be.
pub(super) fn apart(program: &mut Program, places: &Places, needed: &BTreeSet<TensorId>) -> Option<()> {
    for at in 0..program.equations.len() {
        let mut equation = program.equations.get(at)?.clone();
        if !needed.contains(&equation.tensor) {
            continue;
        }
        let mut inside = Inside { program, places, own: equation.tensor, changed: false };
        for term in &mut equation.terms {
            let bound: Vec<IndexId> = equation.left.iter().chain(&term.over).copied().collect();
            inside.expr(&mut term.body, &bound)?;
            inside.when(&mut term.when, &bound)?;
        }
        if inside.changed {
            *program.equations.get_mut(at)? = equation;
        }
    }
    let summed: BTreeSet<TensorId> = program
        .equations
        .iter()
        .filter(|equation| needed.contains(&equation.tensor) && !places.contains_key(&equation.tensor))
        .filter(|equation| equation.terms.iter().any(|term| is_summed(term, places)))
        .map(|equation| equation.tensor)
        .collect();
    summed.into_iter().try_for_each(|id| split(program, places, id))
}

/// A tensor with sums over the steps among its terms: they become one of their own, unless there is nothing else.
fn split(program: &mut Program, places: &Places, id: TensorId) -> Option<()> {
    let tensor = program.tensor(id).clone();
    let component = program.components.iter().position(|component| component.tensors == [id])?;
    let plain = matches!(program.components.get(component)?.class, Class::Plain);
    let real = tensor.kind == Kind::Real && tensor.role == Role::Computed;
    let mut summed = Vec::new();
    let mut alone = tensor.given.is_empty();
    for equation in program.equations.iter().filter(|equation| equation.tensor == id) {
        for term in &equation.terms {
            let is = is_summed(term, places);
            alone &= is;
            if is {
                summed.push(Equation { terms: vec![term.clone()], ..equation.clone() });
            }
        }
    }
    if !plain || !real {
        return None;
    }
    if alone && tensor.combine == Combine::Sum {
        return Some(());
    }
    let mean = tensor.combine == Combine::Avg;
    if tensor.style != Style::Square || !(if mean { alone } else { tensor.combine == Combine::Sum }) {
        return None;
    }
    for equation in program.equations.iter_mut().filter(|equation| equation.tensor == id) {
        equation.terms.retain(|term| !is_summed(term, places));
    }
    let mut head = Vec::new();
    for place in &tensor.places {
        let range = Range::Domain(place.domain.clone()?);
        program.indices.push(Index { name: "i".to_owned(), range, span: tensor.span });
        head.push(IndexId(u32::try_from(program.indices.len() - 1).ok()?));
    }
    let sum = |program: &mut Program, count: bool| {
        let change = |term: &Term| Term { body: counted(&term.body, count), ..term.clone() };
        let equation = |e: &Equation| Equation { terms: e.terms.iter().map(change).collect(), ..e.clone() };
        let domains = tensor.places.clone();
        let made = add(program, id, domains, summed.iter().map(equation).collect())?;
        Some(read(made, &head, &tensor))
    };
    let total = sum(program, false)?;
    let mut when = When::default();
    let body = if mean {
        let count = sum(program, true)?;
        when.guards.push(Guard::Compare(Comparison::Greater, count.clone(), Expr::Number(0.0)));
        Expr::Quotient(Box::new(total), Box::new(count))
    } else {
        total
    };
    let equation = Equation {
        node: Stamp::default(),
        tensor: id,
        head: head.iter().map(|index| IndexFn::Index(*index)).collect(),
        left: head.clone(),
        terms: vec![Term { over: Vec::new(), when, body }],
        span: tensor.span,
        head_span: tensor.span,
        sign_span: tensor.span,
    };
    program.equations.push(equation);
    let made = EquationId(u32::try_from(program.equations.len() - 1).ok()?);
    program.components.iter_mut().find(|component| component.tensors == [id])?.equations.push(made);
    Some(())
}

/// What a binding adds to a sum, or to the number of those present.
fn counted(body: &Expr, count: bool) -> Expr {
    match count {
        true => Expr::Power(Box::new(body.clone()), Box::new(Expr::Number(0.0))),
        false => body.clone(),
    }
}

fn read(tensor: TensorId, indices: &[IndexId], of: &Tensor) -> Expr {
    let arguments = indices.iter().map(|index| Argument::At(IndexFn::Index(*index))).collect();
    Expr::Read(Read::new(tensor, arguments, Otherwise::Zero, of.span))
}

/// A further square tensor of sums, which is evaluated before another that reads it.
fn add(
    program: &mut Program,
    reader: TensorId,
    places: Vec<Place>,
    equations: Vec<Equation>,
) -> Option<TensorId> {
    let id = TensorId(u32::try_from(program.tensors.len()).ok()?);
    let like = program.tensor(reader).clone();
    program.tensors.push(Tensor {
        style: Style::Square,
        kind: Kind::Real,
        combine: Combine::Sum,
        role: Role::Computed,
        places,
        given: Vec::new(),
        start: None,
        hidden: true,
        ..like
    });
    let mut made = Vec::new();
    for equation in equations {
        let equation = Renaming::new(program).equation(&Equation { tensor: id, ..equation });
        program.equations.push(equation);
        made.push(EquationId(u32::try_from(program.equations.len() - 1).ok()?));
    }
    let before = program.components.iter().position(|component| component.tensors.contains(&reader))?;
    let component = Component { tensors: vec![id], equations: made, class: Class::Plain };
    program.components.insert(before, component);
    Some(id)
}

/// The inside of an equation.
struct Inside<'a> {
    program: &'a mut Program,
    places: &'a Places,
    own: TensorId,
    changed: bool,
}

impl Inside<'_> {
    fn when(&mut self, when: &mut When, bound: &[IndexId]) -> Option<()> {
        for guard in &mut when.guards {
            if let Guard::Compare(_, a, b) = guard {
                self.expr(a, bound)?;
                self.expr(b, bound)?;
            }
        }
        Some(())
    }

    /// Takes the sums over the steps out of an expression in which these indices are bound.
    fn expr(&mut self, expr: &mut Expr, bound: &[IndexId]) -> Option<()> {
        if let Expr::Reduce(reduce) = expr
            && self.is_along(reduce)
        {
            *expr = self.stored(&reduce.clone(), bound)?;
            self.changed = true;
            return Some(());
        }
        let mut bound = bound.to_vec();
        if let Expr::Reduce(reduce) = expr {
            bound.extend(&reduce.over);
        }
        let (parts, when) = expr.parts_mut();
        parts.into_iter().try_for_each(|part| self.expr(part, &bound))?;
        when.map_or(Some(()), |when| self.when(when, &bound))
    }

    /// Whether it reads what moves along an index of its own.
    fn is_along(&self, reduce: &Reduce) -> bool {
        let term = Term { over: reduce.over.clone(), when: reduce.when.clone(), body: reduce.body.clone() };
        is_summed(&term, self.places)
    }

    /// The read of a tensor that holds the values of a sum, mean or count. Something is summed for each of them: its
    /// reads are square and of elements that exist, and nothing is asked.
    fn stored(&mut self, reduce: &Reduce, bound: &[IndexId]) -> Option<Expr> {
        let component =
            self.program.components.iter().find(|component| component.tensors.contains(&self.own));
        let cycle = component.map_or(&[] as &[TensorId], |component| &component.tensors);
        let mut total = is_unguarded(&reduce.body) && reduce.when.guards.is_empty();
        // Otherwise over nothing it is absent, which the element of a square tensor never is.
        let is_zero_anyway = reduce.explicit && reduce.operation != Operation::Avg;
        total &= is_zero_anyway || has_contribution(self.program, reduce);
        reduce.body.visit_reads(&mut |read, sense| {
            total &= sense == Sense::Positive
                && read.otherwise != Otherwise::Absent
                && self.program.tensor(read.tensor).style == Style::Square
                && !cycle.contains(&read.tensor);
        });
        let mut free: Vec<IndexId> = Vec::new();
        expr_indices(&reduce.body, &mut |index| {
            if bound.contains(&index) && !free.contains(&index) {
                free.push(index);
            }
        });
        let mut places = Vec::new();
        for index in &free {
            let Range::Domain(domain) = &self.program.index(*index).range else { return None };
            places.push(Place { domain: Some(domain.clone()), limit: None, star: false });
        }
        if !total {
            return None;
        }
        let like = self.program.tensor(self.own).clone();
        let mut sum = |count: bool| {
            let term =
                Term { over: reduce.over.clone(), when: When::default(), body: counted(&reduce.body, count) };
            let equation = Equation {
                node: Stamp::default(),
                tensor: self.own,
                head: free.iter().map(|index| IndexFn::Index(*index)).collect(),
                left: free.clone(),
                terms: vec![term],
                span: reduce.span,
                head_span: reduce.span,
                sign_span: reduce.span,
            };
            Some(read(add(self.program, self.own, places.clone(), vec![equation])?, &free, &like))
        };
        match reduce.operation {
            Operation::Sum => sum(false),
            Operation::Count => sum(true),
            Operation::Avg => Some(Expr::Quotient(Box::new(sum(false)?), Box::new(sum(true)?))),
            _ => None,
        }
    }
}

/// Whether a sum of reads has a contribution for each binding of the indices around it.
fn has_contribution(program: &Program, reduce: &Reduce) -> bool {
    let mut ranges: BTreeMap<IndexId, (i128, i128)> = BTreeMap::new();
    let mut stand = true;
    reduce.body.visit_reads(&mut |read, _| {
        if !in_range(program, read) {
            let places = program.tensor(read.tensor).places.iter();
            stand &= read.arguments.iter().zip(places).all(|(argument, place)| {
                let (Some(function), Some(domain)) = (argument.function(), &place.domain) else {
                    return false;
                };
                fits(program, function, domain) || narrow(reduce, function, domain, &mut ranges)
            });
        }
    });
    stand
        && reduce.over.iter().all(|index| match (&program.index(*index).range, ranges.get(index)) {
            (Range::Domain(Domain::Interval { from, to }), Some((low, high))) => {
                i128::from(*from).max(*low) <= i128::from(*to).min(*high)
            }
            (_, Some(_)) => false,
            (_, None) => has_values(program, *index),
        })
}

/// Notes the values of a summed index for which a function stays in a domain, if it is one of that index alone.
fn narrow(
    reduce: &Reduce,
    function: &IndexFn,
    domain: &Domain,
    ranges: &mut BTreeMap<IndexId, (i128, i128)>,
) -> bool {
    let (Along::Steps { index, by, from: start }, Domain::Interval { from, to }) =
        (Along::of(function), domain)
    else {
        return false;
    };
    let (by, low, high) =
        (i128::from(by), i128::from(*from) - i128::from(start), i128::from(*to) - i128::from(start));
    let (low, high) = if by > 0 { (low, high) } else { (-high, -low) };
    let (first, last) = (-(-low).div_euclid(by.abs()), high.div_euclid(by.abs()));
    let range = ranges.entry(index).or_insert((i128::MIN, i128::MAX));
    *range = (range.0.max(first), range.1.min(last));
    reduce.over.contains(&index)
}

fn is_unguarded(expr: &Expr) -> bool {
    let (parts, when) = expr.parts();
    when.is_none_or(|when| when.guards.is_empty()) && parts.into_iter().all(is_unguarded)
}
