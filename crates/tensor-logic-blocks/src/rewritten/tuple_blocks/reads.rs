//! Reads of relations that were taken apart.
//!
//! Enter at [`rewritten`].

use std::cell::RefCell;
use std::collections::BTreeMap;

use super::Split;
use super::numbers::Numbers;
use crate::domains::binds;
use crate::presence::{fits, has_values};
use crate::program::{
    Argument, Equation, Expr, Guard, Index, IndexFn, IndexId, Operation, Otherwise, Program, Range, Read,
    Reduce, Sense, TensorId, When,
};
use crate::value::Domain;
use crate::walk::when_indices;

/// An equation that reads relations and square tensors in the place of what was taken apart, as far as it can; `None`
/// where nothing changes. Indices that such a relation alone gave their values to range over a domain then.
pub(super) fn rewritten(
    program: &mut Program,
    splits: &BTreeMap<TensorId, Split>,
    equation: &Equation,
) -> Option<Equation> {
    let mut found = false;
    equation.visit_reads(&mut |read, _| found |= splits.contains_key(&read.tensor));
    if !found {
        return None;
    }
    let (kept, loose) = kept_reads(program, splits, equation);
    let old: Vec<(IndexId, Range)> = loose
        .iter()
        .map(|(index, domain)| (*index, set_range(program, *index, Range::Domain(domain.clone()))))
        .collect();
    let mut result = equation.clone();
    // A clone's nodes have other numbers.
    let mut numbers = Vec::new();
    result.visit_reads(&mut |read, _| numbers.push(read.node.number()));
    let kept = kept.into_iter().filter_map(|at| numbers.get(at).copied()).collect();
    let first = program.indices.len();
    let rewriting = Rewriting { splits, kept, first, fresh: RefCell::default() };
    for term in &mut result.terms {
        rewriting.scope(&mut term.when, Some(&mut term.over), &mut term.body);
    }
    program.indices.extend(rewriting.fresh.into_inner());
    let bound = result.terms.iter().all(|term| {
        let free = result.left.iter().chain(&term.over);
        is_bound(program, free, &term.body, &term.when)
            && in_expr(program, &term.body)
            && in_when(program, &term.when)
    });
    if !bound {
        for (index, range) in old {
            set_range(program, index, range);
        }
        program.indices.truncate(first);
        return None;
    }
    Some(result)
}

fn set_range(program: &mut Program, index: IndexId, range: Range) -> Range {
    match program.indices.get_mut(index.0 as usize) {
        Some(entry) => std::mem::replace(&mut entry.range, range),
        None => range,
    }
}

/// Which reads, by their order, stay as they are, and the indices that reads of blocks alone give their values to.
fn kept_reads(
    program: &Program,
    splits: &BTreeMap<TensorId, Split>,
    equation: &Equation,
) -> (Vec<usize>, BTreeMap<IndexId, Domain>) {
    let mut reads: Vec<(&Read, Sense)> = Vec::new();
    equation.visit_reads(&mut |read, sense| reads.push((read, sense)));
    let mut guards: Vec<u64> = Vec::new();
    equation.terms.iter().for_each(|term| {
        guards_of(&term.when, &mut guards);
        guards_in(&term.body, &mut guards);
    });
    let mut kept: Vec<usize> = Vec::new();
    loop {
        // Indices that other reads give their values to, and those that stand alone in blocks.
        let mut others: Vec<IndexId> = Vec::new();
        let mut alone: BTreeMap<IndexId, Option<Domain>> = BTreeMap::new();
        for (at, (read, sense)) in reads.iter().enumerate() {
            let split = splits.get(&read.tensor).filter(|_| !kept.contains(&at));
            if *sense == Sense::Negative || read.otherwise != Otherwise::Absent {
                continue;
            }
            for (place, function) in read.arguments.iter().map(Argument::function).enumerate() {
                let Some(function) = function else { continue };
                match split.and_then(|split| split.dense.get(place)?.as_ref()) {
                    Some(domain) if function.alone().is_some() => {
                        let index = function.alone().unwrap_or(IndexId(0));
                        alone
                            .entry(index)
                            .and_modify(|known| *known = known.take().filter(|known| known == domain))
                            .or_insert(Some(domain.clone()));
                    }
                    _ => function.visit(&mut |index| others.push(index)),
                }
            }
        }
        let by_tuples = |index: &IndexId| matches!(program.index(*index).range, Range::Tuples);
        let loose: BTreeMap<IndexId, Domain> = alone
            .iter()
            .filter(|(index, _)| by_tuples(index) && !others.contains(index))
            .filter_map(|(index, domain)| Some((*index, domain.clone()?)))
            .collect();
        let before = kept.len();
        for (at, (read, sense)) in reads.iter().enumerate() {
            let Some(split) = splits.get(&read.tensor).filter(|_| !kept.contains(&at)) else { continue };
            let asks = *sense == Sense::Negative || guards.contains(&read.node.number());
            let fine = read.arguments.iter().zip(&split.dense).all(|(argument, dense)| {
                let (Some(domain), Some(function)) = (dense, argument.function()) else { return true };
                let (mut named, mut some) = (true, !domain.is_empty());
                function.visit(&mut |index| {
                    some &= loose.contains_key(&index) || has_values(program, index);
                    named &= !by_tuples(&index) || others.contains(&index) || loose.contains_key(&index);
                });
                let known = function.alone().is_some_and(|index| loose.get(&index) == Some(domain))
                    || fits(program, function, domain);
                // Where a place is left out of a guard, nobody asks any more whether its index has values: an empty slice has none.
                if asks { known && some } else { known || named }
            });
            // Which number has a tuple that there is not?
            let total = read.otherwise == Otherwise::Absent || split.zero && split.numbers.is_none();
            if !fine || !total {
                kept.push(at);
            }
        }
        if kept.len() == before {
            return (kept, loose);
        }
    }
}

/// The reads that stand as guards.
fn guards_of(when: &When, into: &mut Vec<u64>) {
    for guard in &when.guards {
        match guard {
            Guard::Read(read) | Guard::Not(read) => into.push(read.node.number()),
            Guard::Compare(_, a, b) => {
                guards_in(a, into);
                guards_in(b, into);
            }
            Guard::CompareIndex(..) | Guard::Bind(..) => {}
        }
    }
}

fn guards_in(expr: &Expr, into: &mut Vec<u64>) {
    let (parts, when) = expr.parts();
    parts.into_iter().for_each(|part| guards_in(part, into));
    if let Some(when) = when {
        guards_of(when, into);
    }
}

/// Whether all indices that tuples give their values to have some that does.
fn is_bound<'i>(
    program: &Program,
    mut indices: impl Iterator<Item = &'i IndexId>,
    body: &Expr,
    when: &When,
) -> bool {
    indices.all(|index| !matches!(program.index(*index).range, Range::Tuples) || binds(*index, body, when))
}

fn in_when(program: &Program, when: &When) -> bool {
    is_bound(program, when.exists.iter(), &Expr::Number(1.0), when)
        && when.guards.iter().all(|guard| match guard {
            Guard::Compare(_, a, b) => in_expr(program, a) && in_expr(program, b),
            Guard::Read(_) | Guard::Not(_) | Guard::CompareIndex(..) | Guard::Bind(..) => true,
        })
}

fn in_expr(program: &Program, expr: &Expr) -> bool {
    let own = match expr {
        Expr::Reduce(reduce) => is_bound(program, reduce.over.iter(), &reduce.body, &reduce.when),
        _ => true,
    };
    let (parts, when) = expr.parts();
    own && parts.into_iter().all(|part| in_expr(program, part))
        && when.is_none_or(|when| in_when(program, when))
}

struct Rewriting<'a> {
    splits: &'a BTreeMap<TensorId, Split>,
    /// The numbers of reads that stay as they are.
    kept: Vec<u64>,
    /// Indices of numbers of tuples, from this one on.
    first: usize,
    fresh: RefCell<Vec<Index>>,
}

/// The tuples that must exist for a scope to have a value.
#[derive(Default)]
struct Asked {
    tuples: Vec<Read>,
    /// Indices of numbers, where the scope can bind some.
    numbers: Option<Vec<IndexId>>,
}

impl Rewriting<'_> {
    /// What a read was taken apart into, unless it stays as it is.
    fn split(&self, read: &Read) -> Option<&Split> {
        self.splits.get(&read.tensor).filter(|_| !self.kept.contains(&read.node.number()))
    }

    /// An expression that must have a value, and guards that must hold with it.
    fn scope(&self, when: &mut When, over: Option<&mut Vec<IndexId>>, expr: &mut Expr) {
        self.when(when);
        let mut asked = Asked { tuples: Vec::new(), numbers: over.is_some().then(Vec::new) };
        self.expr(expr, &mut asked);
        add(when, asked.tuples);
        if let (Some(over), Some(numbers)) = (over, asked.numbers) {
            over.extend(numbers);
        }
    }

    fn when(&self, when: &mut When) {
        let mut asked = Asked::default();
        when.guards.retain_mut(|guard| match guard {
            Guard::Read(read) => match self.split(read) {
                Some(split) if read.otherwise == Otherwise::Absent => {
                    asked.tuples.extend(split.tuple(read));
                    false
                }
                Some(split) => {
                    *read = split.element(read);
                    true
                }
                None => true,
            },
            Guard::Not(read) => {
                if let Some(split) = self.split(read) {
                    match (read.otherwise, split.tuple(read)) {
                        (Otherwise::Absent, Some(tuple)) => *read = tuple,
                        (Otherwise::Absent, None) => {}
                        _ => *read = split.element(read),
                    }
                }
                true
            }
            Guard::Compare(_, a, b) => {
                self.expr(a, &mut asked);
                self.expr(b, &mut asked);
                true
            }
            Guard::CompareIndex(..) | Guard::Bind(..) => true,
        });
        add(when, asked.tuples);
        let mut used = Vec::new();
        when_indices(when, &mut |index| used.push(index));
        when.exists.retain(|index| used.contains(index));
    }

    /// Rewrites an expression; the tuples that must exist for it to have a value are asked for around it.
    fn expr(&self, expr: &mut Expr, asked: &mut Asked) {
        match expr {
            Expr::Read(read) => {
                let Some(split) = self.split(read) else { return };
                if let Some(numbers) = &split.numbers {
                    *expr = self.numbered(split, numbers, read, asked);
                    return;
                }
                if read.otherwise == Otherwise::Absent {
                    asked.tuples.extend(split.tuple(read));
                }
                *read = split.element(read);
            }
            Expr::Missing(read) => {
                if let Some(tuple) = self.split(read).and_then(|split| split.tuple(read)) {
                    *read = tuple;
                }
            }
            Expr::Terms(parts) => {
                let alone = parts.len() == 1;
                for part in parts {
                    if alone {
                        self.expr(part, asked);
                        continue;
                    }
                    let mut inside = Asked::default();
                    self.expr(part, &mut inside);
                    if !inside.tuples.is_empty() {
                        let mut factors = vec![std::mem::replace(part, Expr::Number(0.0))];
                        factors.extend(inside.tuples.into_iter().map(Expr::Read));
                        *part = Expr::Product(factors);
                    }
                }
            }
            Expr::Reduce(reduce) => {
                let Reduce { over, when, body, .. } = &mut **reduce;
                self.scope(when, Some(over), body);
            }
            Expr::Call(call) => {
                self.when(&mut call.when);
                call.arguments.iter_mut().for_each(|argument| self.expr(argument, asked));
            }
            Expr::Axis(axis) => self.scope(&mut axis.when, None, &mut axis.argument),
            _ => expr.parts_mut().0.into_iter().for_each(|part| self.expr(part, asked)),
        }
    }

    /// The element of a tuple by its number, which the scope binds, or one of its own where that can bind none.
    fn numbered(&self, split: &Split, numbers: &Numbers, read: &Read, asked: &mut Asked) -> Expr {
        let fresh = || {
            let mut fresh = self.fresh.borrow_mut();
            fresh.push(super::numbers::fresh(numbers, read.span));
            IndexId((self.first + fresh.len() - 1) as u32)
        };
        let Some(bound) = &mut asked.numbers else {
            let number = fresh();
            let (element, row) = split.numbered(numbers, read, number);
            return Expr::Reduce(Box::new(Reduce {
                operation: Operation::Sum,
                over: vec![number],
                when: vec![Guard::Read(row)].into(),
                body: Expr::Read(element),
                explicit: false,
                span: read.span,
            }));
        };
        // The same tuple has the same number.
        let tuple = split.numbered(numbers, read, IndexId(0)).1;
        let same = |known: &&Read| {
            let (a, b) = (known.arguments.split_last(), tuple.arguments.split_last());
            let functions = |part: Option<(&Argument, &[Argument])>| -> Option<Vec<IndexFn>> {
                part?.1.iter().map(|argument| argument.function().cloned()).collect()
            };
            known.tensor == tuple.tensor && functions(a).is_some() && functions(a) == functions(b)
        };
        let known =
            asked.tuples.iter().find(same).and_then(|known| known.arguments.last()?.function()?.alone());
        let number = known.unwrap_or_else(|| {
            let number = fresh();
            bound.push(number);
            asked.tuples.push(split.numbered(numbers, read, number).1);
            number
        });
        Expr::Read(split.numbered(numbers, read, number).0)
    }
}

/// Adds guards that are not there yet.
fn add(when: &mut When, asked: Vec<Read>) {
    for read in asked {
        let same = |guard: &Guard| matches!(guard, Guard::Read(known) if is_same(known, &read));
        if !when.guards.iter().any(same) {
            when.guards.push(Guard::Read(read));
        }
    }
}

fn is_same(a: &Read, b: &Read) -> bool {
    let functions = |read: &Read| -> Option<Vec<IndexFn>> {
        read.arguments.iter().map(|argument| argument.function().cloned()).collect()
    };
    a.tensor == b.tensor
        && a.otherwise == b.otherwise
        && functions(a).is_some()
        && functions(a) == functions(b)
}
