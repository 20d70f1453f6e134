//! What must hold for a binding, and which indices that hangs on.

use std::sync::Arc;

use super::rows::Rows;
use crate::ast::Comparison;
use crate::program::{Expr, Guard, IndexFn, IndexId, Otherwise, Read, Sense, TensorId, When};
use crate::value::{Const, Domain};
use crate::walk::{expr_indices, guard_indices, read_indices};

/// Something that must hold for a binding.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Condition<'p> {
    /// A guard.
    Guard(&'p Guard),
    /// A round read in the body.
    Present(&'p Read),
    /// A square read in the body that is 0 where the relation has no tuple: may be listed, need
    /// not hold.
    Listed(&'p Read),
    /// `not R(…)` in the body.
    Missing(&'p Read),
    /// Guards with indices of their own: those of them that mention one.
    Some(&'p When),
}

/// The bindings that a scope admits.
#[derive(Debug, Clone, Default)]
pub(crate) struct Support {
    /// The table of bindings, if any index is in one.
    pub(crate) rows: Option<Arc<Rows>>,
    /// The conditions that the table does not settle, by position.
    pub(crate) rest: Vec<usize>,
    /// The ranges of indices that guards compute.
    pub(crate) ranges: Vec<(IndexId, Domain)>,
}

/// The free indices of an expression, each once.
pub(crate) fn free(expr: &Expr) -> Vec<IndexId> {
    let mut found = Vec::new();
    expr_free(expr, &mut |index| found.push(index));
    distinct(found)
}

fn expr_free(expr: &Expr, visit: &mut dyn FnMut(IndexId)) {
    let (parts, when) = expr.parts();
    let over = if let Expr::Reduce(reduce) = expr { reduce.over.as_slice() } else { &[] };
    let mut open = except(over, visit);
    if let Expr::Axis(axis) = expr {
        // An entry belongs to its place along the axes, also where the argument is the same at all of them.
        axis.axes.iter().for_each(|index| open(*index));
    }
    if parts.is_empty() {
        return expr_indices(expr, &mut open);
    }
    parts.into_iter().for_each(|part| expr_free(part, &mut open));
    if let Some(when) = when {
        let mut open = except(&when.exists, &mut open);
        when.guards.iter().for_each(|guard| guard_free(guard, &mut open));
    }
}

fn except<'v>(own: &'v [IndexId], visit: &'v mut dyn FnMut(IndexId)) -> impl FnMut(IndexId) + 'v {
    |index| {
        if !own.contains(&index) {
            visit(index);
        }
    }
}

fn guard_free(guard: &Guard, visit: &mut dyn FnMut(IndexId)) {
    match guard {
        Guard::Compare(_, a, b) => [a, b].into_iter().for_each(|side| expr_free(side, visit)),
        _ => guard_indices(guard, visit),
    }
}

/// The guards that mention an index that is their own.
pub(crate) fn with_own(when: &When) -> impl Iterator<Item = &Guard> {
    when.guards.iter().filter(|guard| mentions(guard, &when.exists))
}

/// Whether a guard mentions one of these indices.
fn mentions(guard: &Guard, indices: &[IndexId]) -> bool {
    let mut found = false;
    guard_free(guard, &mut |index| found |= indices.contains(&index));
    found
}

/// Sorts and drops repetitions.
pub(crate) fn distinct(mut indices: Vec<IndexId>) -> Vec<IndexId> {
    indices.sort_unstable();
    indices.dedup();
    indices
}

impl<'p> Condition<'p> {
    /// The conditions that guards are.
    pub(crate) fn of_when(when: &'p When) -> Vec<Condition<'p>> {
        let open = when.guards.iter().filter(|guard| !mentions(guard, &when.exists));
        let own = with_own(when).next().map(|_| Condition::Some(when));
        open.map(Condition::Guard).chain(own).collect()
    }

    /// What a value needs in order to be present.
    pub(crate) fn of_body(expr: &'p Expr, into: &mut Vec<Condition<'p>>) {
        match expr {
            Expr::Number(_) | Expr::Index(_) => {}
            // A group with guards of its own, which binds nothing, is there where they hold.
            Expr::Reduce(reduce) if reduce.over.is_empty() && !reduce.explicit => {
                into.extend(Condition::of_when(&reduce.when));
                Condition::of_body(&reduce.body, into);
            }
            Expr::Reduce(_) => {}
            Expr::Read(read) if read.otherwise == Otherwise::Absent => into.push(Condition::Present(read)),
            Expr::Read(_) => {}
            Expr::Missing(read) => into.push(Condition::Missing(read)),
            Expr::Terms(parts) if parts.len() != 1 => {}
            _ => {
                let (parts, when) = expr.parts();
                parts.into_iter().for_each(|part| Condition::of_body(part, into));
                into.extend(when.into_iter().flat_map(Condition::of_when));
            }
        }
    }

    /// Its free indices.
    pub(crate) fn indices(self) -> Vec<IndexId> {
        let mut found = Vec::new();
        let mut visit = |index| found.push(index);
        match self {
            Condition::Guard(guard) => guard_free(guard, &mut visit),
            Condition::Present(read) | Condition::Missing(read) | Condition::Listed(read) => {
                read_indices(read, &mut visit);
            }
            Condition::Some(when) => {
                with_own(when).for_each(|guard| guard_free(guard, &mut visit));
                found.retain(|index| !when.exists.contains(index));
            }
        }
        distinct(found)
    }

    /// The relation whose tuples it lists, if it is one.
    pub(crate) fn relation(self) -> Option<TensorId> {
        match self {
            Condition::Guard(Guard::Read(read)) | Condition::Present(read) | Condition::Listed(read) => {
                Some(read.tensor)
            }
            _ => None,
        }
    }

    /// The tensors that it reads.
    pub(crate) fn reads(self, visit: &mut dyn FnMut(&'p Read)) {
        let mut any = |read: &'p Read, _: Sense| visit(read);
        match self {
            Condition::Guard(Guard::Read(read) | Guard::Not(read))
            | Condition::Present(read)
            | Condition::Listed(read)
            | Condition::Missing(read) => visit(read),
            Condition::Guard(Guard::Compare(_, a, b)) => {
                a.visit_reads(&mut any);
                b.visit_reads(&mut any);
            }
            Condition::Guard(Guard::CompareIndex(..) | Guard::Bind(..)) => {}
            Condition::Some(when) => when.visit_reads(&mut any),
        }
    }
}

/// What a guard says of indices alone.
pub(crate) fn comparison(condition: Condition<'_>) -> Option<(Comparison, IndexFn, IndexFn)> {
    match condition {
        Condition::Guard(Guard::CompareIndex(sign, a, b)) => Some((*sign, a.clone(), b.clone())),
        Condition::Guard(Guard::Bind(index, function)) => {
            Some((Comparison::Equal, IndexFn::Index(*index), function.clone()))
        }
        _ => None,
    }
}

/// The number 1, as the body of a scope that only asks whether something exists.
pub(crate) static ONE: Expr = Expr::Number(1.0);

/// Whether a comparison holds.
pub(crate) fn holds(sign: Comparison, order: Option<std::cmp::Ordering>) -> bool {
    use std::cmp::Ordering;
    let of = match order {
        Some(Ordering::Less) => [Comparison::Less, Comparison::LessEqual, Comparison::NotEqual],
        Some(Ordering::Equal) => [Comparison::Equal, Comparison::LessEqual, Comparison::GreaterEqual],
        Some(Ordering::Greater) => [Comparison::Greater, Comparison::GreaterEqual, Comparison::NotEqual],
        None => [Comparison::NotEqual; 3],
    };
    of.contains(&sign)
}

pub(crate) fn holds_const(sign: Comparison, a: Option<Const>, b: Option<Const>) -> bool {
    match (a, b) {
        (Some(Const::Int(a)), Some(Const::Int(b))) => holds(sign, Some(a.cmp(&b))),
        (Some(a), Some(b)) => match sign {
            Comparison::Equal => a == b,
            Comparison::NotEqual => a != b,
            _ => false,
        },
        _ => false,
    }
}

/// The reads of a scope that may give values to its indices.
pub(crate) fn scope_reads<'p>(conditions: &[Condition<'p>], body: &'p Expr) -> Vec<&'p Read> {
    let mut reads = Vec::new();
    for condition in conditions {
        condition.reads(&mut |read| {
            if read.otherwise == Otherwise::Absent {
                reads.push(read);
            }
        });
    }
    body.visit_reads(&mut |read, sense| {
        if sense == Sense::Positive && read.otherwise == Otherwise::Absent {
            reads.push(read);
        }
    });
    reads
}
