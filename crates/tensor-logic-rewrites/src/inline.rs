//! Large intermediates that one equation reads, written out where they are read.
//!
//! Enter at [`inlined`]. `Grad_P[i, j] = Grad_O[i, d] V[j, d]`, read by an equation that is guarded to a
//! window, would be a square array of products of which the window needs few. In its place the sum is
//! computed for the bindings that the reader admits.

use std::collections::{BTreeMap, BTreeSet};

use crate::engine::Storage;
use crate::program::{
    Action, Argument, Class, Combine, Equation, Expr, IndexFn, Operation, Otherwise, Program, Range, Read,
    Reduce, Role, Sense, Style, TensorId,
};
use crate::rename::Renaming;
use crate::room::volume;

/// Intermediates with at most so many elements are stored.
const SMALL: usize = 1 << 16;

/// The program with such intermediates written out, and which they were. What is asked for by the
/// goals or by the program itself stays.
pub fn inlined(program: &Program, goals: &[TensorId], storage: Storage) -> (Program, BTreeSet<TensorId>) {
    let mut result = program.clone();
    let mut gone = BTreeSet::new();
    let mut kept: BTreeSet<TensorId> = goals.iter().copied().collect();
    kept.extend(program.actions.iter().map(|action| match action {
        Action::Query(query) => query.tensor,
        Action::Write { tensor, .. } => *tensor,
    }));
    let plain: BTreeSet<TensorId> = program
        .components
        .iter()
        .filter(|component| matches!(component.class, Class::Plain))
        .flat_map(|component| component.tensors.iter().copied())
        .collect();
    while let Some((from, to)) = next(&result, &kept, &plain, storage) {
        let definition = result.equations[from].clone();
        let mut reader = result.equations[to].clone();
        let mut copy = |read: &Read| written_out(&mut result, &definition, read);
        for term in &mut reader.terms {
            replace(&mut term.body, definition.tensor, &mut copy);
        }
        result.equations[to] = reader;
        result.equations[from].terms.clear();
        gone.insert(definition.tensor);
        kept.insert(definition.tensor);
    }
    (result, gone)
}

/// An equation to write out and the one that reads it, by their positions.
fn next(
    program: &Program,
    kept: &BTreeSet<TensorId>,
    plain: &BTreeSet<TensorId>,
    storage: Storage,
) -> Option<(usize, usize)> {
    // Who reads a tensor; `None` where more than one read does, or one that cannot be replaced.
    let mut readers: BTreeMap<TensorId, Option<(usize, Read)>> = BTreeMap::new();
    let mut definitions: BTreeMap<TensorId, Vec<usize>> = BTreeMap::new();
    for (at, equation) in program.equations.iter().enumerate() {
        definitions.entry(equation.tensor).or_default().push(at);
        let mut values = Vec::new();
        equation.terms.iter().for_each(|term| reads_of_values(&term.body, &mut values));
        equation.visit_reads(&mut |read, sense| {
            let value = sense == Sense::Positive && values.iter().any(|other| std::ptr::eq(*other, read));
            let found = value.then(|| (at, read.clone()));
            readers.entry(read.tensor).and_modify(|known| *known = None).or_insert(found);
        });
    }
    readers.into_iter().find_map(|(id, reader)| {
        let (to, read) = reader?;
        let [from] = definitions.get(&id)?.as_slice() else { return None };
        let fits = !kept.contains(&id)
            && plain.contains(&id)
            && plain.contains(&program.equation(crate::program::EquationId(to as u32)).tensor)
            && is_intermediate(program, id, *from, storage)
            && !restricts(&program.equations[*from])
            && restricts(&program.equations[to])
            && reads_whole(program, id, &read);
        fits.then_some((*from, to))
    })
}

/// Whether a tensor is one sum over all its elements, and large.
fn is_intermediate(program: &Program, id: TensorId, at: usize, storage: Storage) -> bool {
    let (tensor, equation) = (program.tensor(id), &program.equations[at]);
    let large = storage == Storage::Sparse || (storage == Storage::Auto && volume(&tensor.sizes()) > SMALL);
    let alone: BTreeSet<_> = equation.head.iter().filter_map(IndexFn::alone).collect();
    let whole = equation.head.iter().zip(&tensor.places).all(|(function, place)| {
        let range = function.alone().map(|index| &program.index(index).range);
        matches!((range, &place.domain), (Some(Range::Domain(range)), Some(domain)) if range == domain)
    });
    tensor.style == Style::Square
        && tensor.combine == Combine::Sum
        && tensor.role == Role::Computed
        && tensor.given.is_empty()
        && equation.terms.len() == 1
        && alone.len() == equation.head.len()
        && equation.left.len() == alone.len()
        && whole
        && large
}

/// Whether an equation admits some bindings only: what is restricted itself is stored by its support,
/// and a reader that is not needs all elements.
fn restricts(equation: &Equation) -> bool {
    let mut round = false;
    equation.visit_reads(&mut |read, _| round |= read.otherwise == Otherwise::Absent);
    round || equation.terms.iter().any(|term| !term.when.guards.is_empty() || guarded(&term.body))
}

fn guarded(expr: &Expr) -> bool {
    let (parts, when) = expr.parts();
    when.is_some_and(|when| !when.guards.is_empty()) || parts.into_iter().any(guarded)
}

/// Whether every element that a read may name is one of the tensor's.
fn reads_whole(program: &Program, id: TensorId, read: &Read) -> bool {
    read.otherwise == Otherwise::Zero
        && read.arguments.iter().zip(&program.tensor(id).places).all(|(argument, place)| {
            let Argument::At(IndexFn::Index(index)) = argument else { return false };
            matches!((&program.index(*index).range, &place.domain),
                (Range::Domain(range), Some(domain)) if range == domain)
        })
}

/// The sum that an element is, at the indices of a read.
fn written_out(program: &mut Program, definition: &Equation, read: &Read) -> Expr {
    let mut renaming = Renaming::new(program);
    for (function, argument) in definition.head.iter().zip(&read.arguments) {
        if let (Some(own), Argument::At(IndexFn::Index(index))) = (function.alone(), argument) {
            renaming.to(own, *index);
        }
    }
    let Some(term) = definition.terms.first() else { return Expr::Number(0.0) };
    let over = term.over.iter().map(|index| renaming.fresh(*index)).collect();
    let when = renaming.when(&term.when);
    let body = renaming.expr(&term.body);
    // Over nothing an element is 0.
    let reduce = Reduce { operation: Operation::Sum, over, when, body, explicit: true, span: read.span };
    Expr::Reduce(Box::new(reduce))
}

/// The reads that stand for a value.
fn reads_of_values<'e>(expr: &'e Expr, into: &mut Vec<&'e Read>) {
    if let Expr::Read(read) = expr {
        into.push(read);
    }
    expr.parts().0.into_iter().for_each(|part| reads_of_values(part, into));
}

/// Replaces the reads of a tensor that stand for a value.
fn replace(expr: &mut Expr, tensor: TensorId, copy: &mut dyn FnMut(&Read) -> Expr) {
    match expr {
        Expr::Read(read) if read.tensor == tensor => *expr = copy(read),
        _ => expr.parts_mut().0.into_iter().for_each(|part| replace(part, tensor, copy)),
    }
}
