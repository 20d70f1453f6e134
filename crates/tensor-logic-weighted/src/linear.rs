//! Closures whose rule reads them twice, read once.
//!
//! Enter at [`linear`]. Of `P(x, z) <- P(x, y), P(y, z)` every way to bracket a path is a ground rule, n³ of them for a chain
//! of n steps, though all have the same proofs. With the other rules of `P` as those of a relation `B` of single steps,
//!
//! ```text
//! P(x, z) <- B(x, z)
//! P(x, z) <- P(x, y), B(y, z)
//! ```
//!
//! brackets to the left only. Proofs are sets of facts, so `P` has the same: each bracketing of a path has those of the
//! path. It holds neither where proofs are left out on the way (`topk`), nor for who asks how something was derived.

use crate::ast::{Program as Tree, Span};
use crate::program::{
    Argument, Equation, EquationId, Expr, Index, IndexFn, IndexId, Kind, Otherwise, Program, Range, Read,
    Role, Stamp, TensorId, Term, When,
};
use tensor_logic_core::recursion;
use tensor_logic_core::weighted::factors;

/// The program whose closures with probabilities are read once, if it has any that is read twice. Tensors, indices and
/// equations keep their numbers; others stand behind them.
pub(super) fn linear(program: &Program) -> Option<Program> {
    let doubled: Vec<EquationId> = program
        .components
        .iter()
        .filter_map(|component| match component.tensors.as_slice() {
            [only] => doubled(program, *only, &component.equations),
            _ => None,
        })
        .collect();
    if doubled.is_empty() {
        return None;
    }
    let mut program = program.clone();
    for equation in doubled {
        read_once(&mut program, equation);
    }
    program.components = recursion::analyse(&program, &Tree::default()).ok()?;
    Some(program)
}

/// The only recursive rule of a relation, if it is that of a closure.
fn doubled(program: &Program, relation: TensorId, equations: &[EquationId]) -> Option<EquationId> {
    let tensor = program.tensor(relation);
    let plain = tensor.is_proved()
        && tensor.kind == Kind::Prob
        && tensor.role == Role::Computed
        && tensor.given.is_empty()
        && program.exclusive.iter().all(|(other, _)| *other != relation);
    if !plain {
        return None;
    }
    let recursive = |id: &&EquationId| {
        let mut found = false;
        program.equation(**id).visit_reads(&mut |read, _| found |= read.tensor == relation);
        found
    };
    let mut found = equations.iter().filter(recursive);
    let only = found.next().filter(|_| found.next().is_none())?;
    (equations.len() > 1 && is_closure(program, program.equation(*only))).then_some(*only)
}

/// Whether a rule is `P(x, z) <- P(x, y), P(y, z)`, where more places may stand that are the same in all three.
fn is_closure(program: &Program, equation: &Equation) -> bool {
    let [term] = equation.terms.as_slice() else { return false };
    let factors = factors(term);
    let [(first, false), (second, false)] = factors.as_slice() else { return false };
    let parts = match &term.body {
        Expr::Product(parts) | Expr::Terms(parts) => parts.len(),
        _ => 1,
    };
    let plain = parts == 2 && term.when.guards.is_empty() && term.when.exists.is_empty();
    let own = [first, second].iter().all(|read| read.tensor == equation.tensor);
    let head: Option<Vec<IndexId>> = equation.head.iter().map(IndexFn::alone).collect();
    let (Some(head), Some(first), Some(second)) = (head, variables(first), variables(second)) else {
        return false;
    };
    let free = |index: &IndexId| matches!(program.index(*index).range, Range::Tuples);
    let different = |indices: &[IndexId]| (1..indices.len()).all(|at| !indices[..at].contains(&indices[at]));
    plain
        && own
        && [&head, &first, &second].into_iter().flatten().all(free)
        && different(&head)
        && is_path(&head, &first, &second)
}

/// Whether two tuples of variables are a path: each is the head's but in one place, of which there are two, and there both
/// have a variable that the head does not have.
fn is_path(head: &[IndexId], first: &[IndexId], second: &[IndexId]) -> bool {
    let places = || 0..head.len().min(first.len()).min(second.len());
    let inner: Vec<usize> = places().filter(|at| first[*at] != head[*at]).collect();
    let outer: Vec<usize> = places().filter(|at| second[*at] != head[*at]).collect();
    match (inner.as_slice(), outer.as_slice()) {
        ([to], [from]) => from != to && first[*to] == second[*from] && !head.contains(&first[*to]),
        _ => false,
    }
}

/// The variables that a read's arguments are.
fn variables(read: &Read) -> Option<Vec<IndexId>> {
    read.arguments.iter().map(|argument| Argument::function(argument).and_then(IndexFn::alone)).collect()
}

/// Gives the other rules of a closure to a relation of its own, and reads that in place of the second read.
fn read_once(program: &mut Program, closure: EquationId) {
    let relation = program.equation(closure).tensor;
    let steps = TensorId(u32::try_from(program.tensors.len()).unwrap_or(u32::MAX));
    let mut tensor = program.tensor(relation).clone();
    let (arity, span) = (tensor.places.len(), tensor.span);
    tensor.name = format!("single steps of {}", tensor.name);
    tensor.hidden = true;
    program.tensors.push(tensor);
    for (id, equation) in (0..).map(EquationId).zip(&mut program.equations) {
        if id != closure && equation.tensor == relation {
            equation.tensor = steps;
        }
    }
    let rule = program.equations.get_mut(closure.0 as usize).and_then(|rule| rule.terms.first_mut());
    if let Some(Expr::Product(parts) | Expr::Terms(parts)) = rule.map(|term| &mut term.body)
        && let Some(Expr::Read(second)) = parts.get_mut(1)
    {
        second.tensor = steps;
    }
    let first = program.indices.len() as u32;
    program.indices.extend((0..arity).map(|place| Index {
        name: format!("x{place}"),
        range: Range::Tuples,
        span: Span::default(),
    }));
    let left: Vec<IndexId> = (first..first + arity as u32).map(IndexId).collect();
    let head: Vec<IndexFn> = left.iter().copied().map(IndexFn::Index).collect();
    let arguments = head.iter().cloned().map(Argument::At).collect();
    let body = Expr::Read(Read::new(steps, arguments, Otherwise::Absent, span));
    let terms = vec![Term { over: Vec::new(), when: When::default(), body }];
    let (tensor, node, head_span, sign_span) = (relation, Stamp::default(), span, span);
    program.equations.push(Equation { tensor, head, left, terms, node, span, head_span, sign_span });
}
