//! Relations that hold a block of numbers for a tuple, taken apart.
//!
//! Enter at [`apart`]. A tuple of `H(x, d) += E(x, y) X[y, e] W[d, e]` exists for all values of `d` or for none: the
//! relation becomes `T(x) <- E(x, y)`, its tuples without the indices of the block, and `B[x, d] = E(x, y) X[y, e] W[d, e]`,
//! a square tensor that is stored by its support. Who reads `H(y, e)` reads `B[y, e] | T(y)` instead, adjoints among
//! them; for others `H(x, d) = B[x, d] | T(x)` is there.

mod levels;
mod numbers;
mod presence;
mod reads;
#[cfg(test)]
mod tests;

pub(crate) use numbers::Numbering;

use crate::engine::Storage;
use std::collections::BTreeMap;

use crate::kernels::volume;
use crate::present::{self, Conjunction, Covered};
use crate::program::{
    Argument, Class, Combine, Component, Equation, EquationId, Expr, Guard, Index, IndexFn, IndexId, Kind,
    Otherwise, Place, Program, Range, Read, Role, Stamp, Style, Tensor, TensorId, Term, When,
};
use crate::rename::Renaming;
use crate::store::machine::Levels;
use crate::value::Domain;

/// What a relation was taken apart into.
pub(crate) struct Split {
    /// For each place of the relation its values, if it is one of the block.
    dense: Vec<Option<Domain>>,
    /// The relation of its other places; `None` where all its tuples exist.
    pub(crate) tuples: Option<TensorId>,
    /// The square tensor of its values.
    pub(crate) values: TensorId,
    /// Whether an element that the relation does not have is 0 there.
    zero: bool,
    /// Where its tuples are numbered: by what. The values have the number in place of the tuple then, and it first.
    numbers: Option<numbers::Numbers>,
}

impl Split {
    /// The tuple, without the indices of the block, that a read asks for.
    fn tuple(&self, read: &Read) -> Option<Read> {
        let places = read.arguments.iter().zip(&self.dense).filter(|(_, dense)| dense.is_none());
        let arguments = places.map(|(argument, _)| argument.clone()).collect();
        Some(Read::new(self.tuples?, arguments, Otherwise::Absent, read.span))
    }

    /// The number that a read asks for.
    fn element(&self, read: &Read) -> Read {
        let otherwise = match read.otherwise {
            Otherwise::Absent => Otherwise::Zero,
            otherwise => otherwise,
        };
        Read::new(self.values, read.arguments.clone(), otherwise, read.span)
    }

    /// The same where tuples are numbered, and what says of the tuple that it has this number.
    fn numbered(&self, numbers: &numbers::Numbers, read: &Read, number: IndexId) -> (Read, Read) {
        let mut arguments = vec![Argument::At(IndexFn::Index(number))];
        let mut tuple = Vec::new();
        for (argument, dense) in read.arguments.iter().zip(&self.dense) {
            if dense.is_some() { &mut arguments } else { &mut tuple }.push(argument.clone());
        }
        let element = Read::new(self.values, arguments, Otherwise::Zero, read.span);
        (element, numbers.row(tuple.into_iter(), number, read))
    }

    /// How many tuples stand for one.
    pub(crate) fn block(&self) -> u64 {
        self.dense
            .iter()
            .flatten()
            .fold(1, |product: u64, domain| product.saturating_mul(domain.len() as u64))
    }

    /// Of which tensors how many tuples stand for one that they hold; of square tensors, for all.
    pub(crate) fn counted(&self, own: TensorId) -> [(TensorId, u64); 2] {
        [(self.tuples.unwrap_or(self.values), self.block()), (own, 0)]
    }
}

/// Square tensors of so many elements may be kept whole.
const SMALL: usize = 1 << 16;
/// Those that cannot be stored by their support are not made with more.
const MOST: usize = 1 << 21;

/// Takes the relations of a program apart that hold blocks; which became what.
pub(crate) fn apart(
    program: &mut Program,
    storage: Storage,
    numbering: &mut Numbering<'_>,
) -> (BTreeMap<TensorId, Split>, BTreeMap<TensorId, Levels>) {
    let (mut splits, mut leveled) = (BTreeMap::new(), BTreeMap::new());
    let mut covered = Covered::new();
    let candidates = candidates(program);
    let recursive = |component: &Component| matches!(component.class, Class::Numeric);
    if candidates.is_empty() && !program.components.iter().any(recursive) {
        return (splits, leveled);
    }
    for component in program.components.clone() {
        for at in &component.equations {
            let Some(equation) = program.equations.get(at.0 as usize).cloned() else { continue };
            if let Some(changed) = reads::rewritten(program, &splits, &equation)
                && let Some(slot) = program.equations.get_mut(at.0 as usize)
            {
                *slot = changed;
            }
        }
        if recursive(&component) && storage != Storage::Sparse {
            if numbering.asks(&component.tensors)
                && let Some((parts, levels, first)) = levels::leveled(program, &component, numbering)
            {
                splits.extend(parts);
                leveled.insert(first, levels);
            }
            continue;
        }
        let [id] = component.tensors.as_slice() else { continue };
        if candidates.contains(id)
            && matches!(component.class, Class::Plain)
            && let Some(split) = split(program, *id, &component, (storage, numbering), &mut covered)
        {
            splits.insert(*id, split);
        }
    }
    (splits, leveled)
}

/// Relations of numbers that equations alone make and others read.
fn candidates(program: &Program) -> Vec<TensorId> {
    let mut read = vec![false; program.tensors.len()];
    for equation in &program.equations {
        equation.visit_reads(&mut |other, _| {
            if let Some(read) = read.get_mut(other.tensor.0 as usize) {
                *read |= other.tensor != equation.tensor;
            }
        });
    }
    let may = |tensor: &Tensor| {
        tensor.style == Style::Round
            && tensor.kind == Kind::Real
            && tensor.role == Role::Computed
            && tensor.given.is_empty()
            && !matches!(tensor.combine, Combine::Exists | Combine::Or)
            && tensor.places.iter().all(|place| {
                let limited = place.limit.as_ref().is_none_or(|limit| Some(limit) == place.domain.as_ref());
                limited && !place.star
            })
    };
    let all = (0..).map(TensorId).zip(&program.tensors).zip(read);
    all.filter(|((_, tensor), read)| *read && may(tensor)).map(|((id, _), _)| id).collect()
}

/// Takes a relation apart, if all its equations have blocks.
fn split(
    program: &mut Program,
    id: TensorId,
    component: &Component,
    (storage, numbering): (Storage, &mut Numbering<'_>),
    covered: &mut Covered,
) -> Option<Split> {
    let mut tensor = program.tensor(id).clone();
    let equations: Vec<Equation> =
        component.equations.iter().map(|at| program.equation(*at).clone()).collect();
    if equations.is_empty() || equations.iter().any(|equation| equation.terms.is_empty()) {
        return None;
    }
    let mut present: Vec<Vec<Vec<Conjunction>>> = Vec::new();
    for equation in &equations {
        let mut terms = Vec::new();
        for term in &equation.terms {
            terms.push(present::of_term(program, &equation.left, term, covered)?);
        }
        present.push(terms);
    }
    let known = tensor.places.iter().all(|place| place.domain.is_some());
    for (at, place) in tensor.places.iter_mut().enumerate() {
        if place.domain.is_none() {
            place.domain = Some(domain_of(program, &equations, &present, at)?);
        }
        place.domain.as_ref().filter(|domain| !domain.is_empty())?;
    }
    let mut dense: Vec<Option<Domain>> = tensor.places.iter().map(|place| place.domain.clone()).collect();
    for (equation, terms) in equations.iter().zip(&present) {
        for (at, slot) in dense.iter_mut().enumerate() {
            let whole = equation.head.get(at).and_then(IndexFn::alone).is_some_and(|index| {
                let alone = equation.head.iter().filter(|other| has(other, index)).count() == 1;
                let range = matches!(&program.index(index).range, Range::Domain(range) if Some(range) == slot.as_ref());
                alone && range && !terms.iter().flatten().any(|conjunction| conjunction.asks(index))
            });
            if !whole {
                *slot = None;
            }
        }
    }
    let sparse: Vec<usize> = (0..dense.len()).filter(|at| dense[*at].is_none()).collect();
    if sparse.len() == dense.len() {
        return None;
    }
    // What a square tensor does not have would be lost.
    for at in &sparse {
        let domain = tensor.places.get(*at)?.domain.clone()?;
        present::is_covered(program, id, *at, &domain, covered).then_some(())?;
    }
    let always = sparse.is_empty()
        && present.iter().flatten().flatten().any(|conjunction| conjunction.guards.is_empty());
    let elements = volume(&tensor.sizes());
    let by_support = matches!(tensor.combine, Combine::Sum | Combine::Avg);
    let small = match storage {
        Storage::Auto => elements <= SMALL,
        Storage::Dense => elements <= MOST,
        Storage::Sparse => false,
    };
    let named = |what: &str| Tensor {
        name: format!("{what} of {}", tensor.name),
        role: Role::Computed,
        ..tensor.clone()
    };
    let square = |what: &str| Tensor { style: Style::Square, combine: Combine::Sum, ..named(what) };
    let tuples = (!always).then(|| {
        let places = sparse.iter().filter_map(|at| tensor.places.get(*at).cloned()).collect();
        let tuples = Tensor { kind: Kind::Bool, combine: Combine::Exists, places, ..named("tuples") };
        let made = tensor_of(program, tuples);
        let mut rules = Vec::new();
        for (equation, terms) in equations.iter().zip(&present) {
            let head: Vec<IndexFn> = sparse.iter().filter_map(|at| equation.head.get(*at).cloned()).collect();
            for conjunction in terms.iter().flatten() {
                let mut conjunction = conjunction.clone();
                if storage != Storage::Sparse {
                    conjunction.guards = numbering.tuples.guards(program, &conjunction.guards);
                }
                rules.push(rule(made, equation, head.clone(), &conjunction));
            }
        }
        let rules: Vec<Equation> = rules.iter().map(|rule| Renaming::new(program).equation(rule)).collect();
        add_component(program, id, made, rules);
        made
    });
    let numbers = match (tuples, storage) {
        (_, Storage::Sparse) | (None, _) => None,
        _ if sparse.is_empty() || !numbering.asks(&[id]) => None,
        (Some(tuples), _) => numbering.of(program, tuples),
    };
    if numbers.is_none() && !by_support && elements > MOST {
        return None;
    }
    let terms: usize = equations.iter().map(|equation| equation.terms.len()).sum();
    // One term is stored by its support as it is; of several each is, and their sum by the tuples.
    let parts =
        numbers.is_none() && by_support && !always && !small && (terms > 1 || tensor.combine == Combine::Avg);
    let mut sums: Vec<(TensorId, Option<TensorId>)> = Vec::new();
    if parts {
        for equation in &equations {
            for term in &equation.terms {
                let mut part = |what: &str, body: Expr| {
                    let made = tensor_of(program, square(what));
                    let term = Term { body, ..term.clone() };
                    let equation = Equation { tensor: made, terms: vec![term], ..equation.clone() };
                    let equation = Renaming::new(program).equation(&equation);
                    add_component(program, id, made, vec![equation]);
                    made
                };
                let count = Expr::Power(Box::new(term.body.clone()), Box::new(Expr::Number(0.0)));
                let sum = part("values", term.body.clone());
                sums.push((sum, (tensor.combine == Combine::Avg).then(|| part("numbers", count))));
            }
        }
    }
    let combine = if parts { Combine::Sum } else { tensor.combine };
    let places = match &numbers {
        Some(numbers) => {
            let number = Place { domain: Some(numbers.domain.clone()), limit: None, star: false };
            let dense = tensor.places.iter().zip(&dense).filter(|(_, dense)| dense.is_some());
            [number].into_iter().chain(dense.map(|(place, _)| place.clone())).collect()
        }
        None => tensor.places.clone(),
    };
    let values = tensor_of(program, Tensor { combine, places, ..square("values") });
    let zero = known && tensor.combine.default_value() == 0.0;
    let split = Split { zero, dense, tuples, values, numbers };
    let whole = joined(program, id, &tensor, &split)?;
    if let Some(numbers) = &split.numbers {
        let mut made = Vec::new();
        for equation in &equations {
            for term in &equation.terms {
                made.push(numbers::equation(program, values, numbers, &split.dense, (equation, term)));
            }
        }
        // In the place of the old ones, and behind them.
        let old = component.equations.iter().map(|at| at.0 as usize);
        let mut slots = old.collect::<Vec<_>>().into_iter();
        let mut ids = Vec::new();
        for equation in made {
            let at = slots.next().unwrap_or(program.equations.len());
            match program.equations.get_mut(at) {
                Some(slot) => *slot = equation,
                None => program.equations.push(equation),
            }
            ids.push(EquationId(u32::try_from(at).ok()?));
        }
        let at = program.components.iter().position(|component| component.tensors.contains(&id))?;
        program.components.get_mut(at)?.equations = ids;
    }
    for equation in program.equations.iter_mut().filter(|equation| equation.tensor == id) {
        equation.tensor = values;
        if parts {
            equation.terms.clear();
        }
    }
    if parts {
        let mut equation = Renaming::new(program).equation(&whole);
        equation.tensor = values;
        let arguments: Vec<Argument> = equation.head.iter().cloned().map(Argument::At).collect();
        let read = |id: TensorId| Expr::Read(Read::new(id, arguments.clone(), Otherwise::Zero, tensor.span));
        let sum = Expr::Plus(sums.iter().map(|(sum, _)| read(*sum)).collect());
        let numbers: Vec<Expr> = sums.iter().filter_map(|(_, number)| number.map(read)).collect();
        for term in &mut equation.terms {
            term.body = match numbers.is_empty() {
                true => sum.clone(),
                false => Expr::Quotient(Box::new(sum.clone()), Box::new(Expr::Plus(numbers.clone()))),
            };
        }
        add_component(program, id, values, vec![equation]);
    }
    let own = EquationId(u32::try_from(program.equations.len()).ok()?);
    program.equations.push(whole);
    let at = program.components.iter().position(|component| component.tensors.contains(&id))?;
    let equations = std::mem::replace(&mut program.components.get_mut(at)?.equations, vec![own]);
    if !parts {
        program.components.insert(at, Component { tensors: vec![values], equations, class: Class::Plain });
    }
    Some(split)
}

/// The values of a place that nobody reads in brackets: those of the places that its index stands at in a term.
fn domain_of(
    program: &Program,
    equations: &[Equation],
    present: &[Vec<Vec<Conjunction>>],
    at: usize,
) -> Option<Domain> {
    let index = equations.first()?.head.get(at)?.alone()?;
    if let Range::Domain(domain) = &program.index(index).range {
        return Some(domain.clone());
    }
    present.first()?.first()?.first()?.guards.iter().find_map(|guard| {
        let Guard::Read(read) = guard else { return None };
        let places = program.tensor(read.tensor).places.iter().zip(&read.arguments);
        let mut found =
            places.filter(|(_, argument)| argument.function().and_then(IndexFn::alone) == Some(index));
        found.find_map(|(place, _)| place.domain.clone())
    })
}

fn has(function: &IndexFn, index: IndexId) -> bool {
    let mut has = false;
    function.visit(&mut |other| has |= other == index);
    has
}

fn tensor_of(program: &mut Program, tensor: Tensor) -> TensorId {
    program.tensors.push(tensor);
    TensorId((program.tensors.len() - 1) as u32)
}

/// Puts the equations of a tensor into a component before the one of another, and says which component that is.
fn add_component(program: &mut Program, before: TensorId, id: TensorId, equations: Vec<Equation>) -> usize {
    let first = program.equations.len();
    program.equations.extend(equations);
    let equations = (first..program.equations.len()).map(|at| EquationId(at as u32)).collect();
    let at = program.components.iter().position(|component| component.tensors.contains(&before)).unwrap_or(0);
    program.components.insert(at, Component { tensors: vec![id], equations, class: Class::Plain });
    at
}

/// The rule that a tuple exists where a term has a value.
fn rule(tensor: TensorId, equation: &Equation, head: Vec<IndexFn>, present: &Conjunction) -> Equation {
    let when = When::from(present.guards.clone());
    let left: Vec<IndexId> = equation
        .left
        .iter()
        .copied()
        .filter(|index| head.iter().any(|function| has(function, *index)))
        .collect();
    let mut over: Vec<IndexId> = Vec::new();
    for index in &present.over {
        if present.asks(*index) && !left.contains(index) && !over.contains(index) {
            over.push(*index);
        }
    }
    let term = Term { over, when, body: Expr::Number(1.0) };
    Equation { node: Stamp::default(), tensor, head, left, terms: vec![term], ..equation.clone() }
}

/// `H(x, d) = B[x, d] | T(x)`
fn joined(program: &mut Program, id: TensorId, tensor: &Tensor, split: &Split) -> Option<Equation> {
    let mut left = Vec::new();
    for (dense, place) in split.dense.iter().zip(&tensor.places) {
        let range = match (dense, split.tuples) {
            (None, Some(_)) => Range::Tuples,
            _ => Range::Domain(place.domain.clone()?),
        };
        program.indices.push(Index { name: "i".to_owned(), range, span: tensor.span });
        left.push(IndexId(u32::try_from(program.indices.len() - 1).ok()?));
    }
    let head: Vec<IndexFn> = left.iter().map(|index| IndexFn::Index(*index)).collect();
    let arguments = head.iter().cloned().map(Argument::At).collect();
    let read = Read::new(id, arguments, Otherwise::Absent, tensor.span);
    let term = match &split.numbers {
        Some(numbers) => {
            program.indices.push(numbers::fresh(numbers, tensor.span));
            let number = IndexId(u32::try_from(program.indices.len() - 1).ok()?);
            let (element, row) = split.numbered(numbers, &read, number);
            Term { over: vec![number], when: vec![Guard::Read(row)].into(), body: Expr::Read(element) }
        }
        None => {
            let guards: Vec<Guard> = split.tuple(&read).map(Guard::Read).into_iter().collect();
            Term { over: Vec::new(), when: guards.into(), body: Expr::Read(split.element(&read)) }
        }
    };
    let span = program.left_side(id);
    Some(Equation {
        tensor: id,
        head,
        left,
        terms: vec![term],
        node: Stamp::default(),
        span,
        head_span: span,
        sign_span: span,
    })
}
