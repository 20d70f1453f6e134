//! Terms that have a value where one of several parts has one, listed by a relation of their own.
//!
//! Enter at [`listed`]. `H(s, x) += tanh(A(s, x) + B(s, x))` has a tuple where `A` or `B` has one. No single read says that,
//! and all pairs would be gone through for the few that there are. So `T(s, x) <- A(s, x)` and `T(s, x) <- B(s, x)` stand before it,
//! and the term gets the guard `T(s, x)`, which holds wherever it has a value.

use crate::engine::Storage;
use crate::present::{self, Covered};
use crate::program::{
    Argument, Class, Combine, Component, Equation, EquationId, Expr, Guard, IndexFn, IndexId, Kind,
    Otherwise, Place, Program, Range, Read, Role, Stamp, Style, Tensor, TensorId, Term, When,
};
use crate::rename::Renaming;
use crate::walk::guard_indices;

/// So many bindings are gone through as they are.
const FEW: usize = 1 << 12;

/// Gives such terms of a program their guards.
pub fn listed(program: &mut Program, storage: Storage) {
    let few = match storage {
        Storage::Auto => FEW,
        Storage::Dense => return,
        Storage::Sparse => 0,
    };
    let mut covered = Covered::new();
    for component in program.components.clone() {
        if !matches!(component.class, Class::Plain) {
            continue;
        }
        for at in component.equations {
            let equation = program.equation(at).clone();
            for nth in 0..equation.terms.len() {
                let guards = relation(program, &equation, &equation.terms[nth], few, &mut covered);
                if let Some(guards) = guards
                    && let Some(term) = program.equations[at.0 as usize].terms.get_mut(nth)
                {
                    term.when.guards.extend(guards);
                    term.when.node = Stamp::default();
                }
            }
        }
    }
}

/// What holds wherever a term has a value and lists its indices, if that is worth it: what all parts ask for in the same way,
/// and a relation of the tuples of which each is asked for by some part.
fn relation(
    program: &mut Program,
    equation: &Equation,
    term: &Term,
    few: usize,
    covered: &mut Covered,
) -> Option<Vec<Guard>> {
    if !has_choice(&term.body) {
        return None;
    }
    let all = present::of_term(program, &equation.left, term, covered)?;
    let (first, others) = all.split_first()?;
    if others.is_empty() {
        return None;
    }
    let sure: Vec<Guard> =
        present::reads_of(&term.body, &term.when).into_iter().cloned().map(Guard::Read).collect();
    let own: Vec<IndexId> = equation.left.iter().chain(&term.over).copied().collect();
    let is_asked = |index: &&IndexId| all.iter().all(|part| lists(&part.guards, **index));
    let asked: Vec<IndexId> = own.iter().filter(is_asked).copied().collect();
    let count = |index: &IndexId| match &program.index(*index).range {
        Range::Domain(domain) => domain.len(),
        Range::Tuples | Range::Computed => usize::MAX,
    };
    let open = |guards: &[Guard]| -> bool {
        let open = asked.iter().filter(|index| !lists(guards, **index));
        open.clone().next().is_some() && open.map(count).fold(1, usize::saturating_mul) > few
    };
    if !open(&sure) {
        return None;
    }
    // What a scope inside binds means nothing out here.
    let is_own = |guard: &Guard| {
        let mut inside = true;
        guard_indices(guard, &mut |index| inside &= own.contains(&index));
        inside
    };
    let common = first.guards.iter().filter(|guard| others.iter().all(|part| has(&part.guards, guard)));
    let common: Vec<Guard> = common.filter(|guard| is_own(guard) && !has(&sure, guard)).cloned().collect();
    if !open(&[sure.as_slice(), &common].concat()) {
        return Some(common);
    }
    let place = |index: &IndexId| Place {
        domain: match &program.index(*index).range {
            Range::Domain(domain) => Some(domain.clone()),
            Range::Tuples | Range::Computed => None,
        },
        limit: None,
        star: false,
    };
    let tensor = program.tensor(equation.tensor);
    let tuples = Tensor {
        name: format!("tuples of {}", tensor.name),
        style: Style::Round,
        kind: Kind::Bool,
        combine: Combine::Exists,
        places: asked.iter().map(place).collect(),
        role: Role::Computed,
        given: Vec::new(),
        start: None,
        ..tensor.clone()
    };
    program.tensors.push(tuples);
    let made = TensorId(u32::try_from(program.tensors.len() - 1).ok()?);
    let head: Vec<IndexFn> = asked.iter().map(|index| IndexFn::Index(*index)).collect();
    let mut rules = Vec::new();
    for part in &all {
        let mut over: Vec<IndexId> = Vec::new();
        for index in part.over.iter().filter(|index| part.asks(**index) && !asked.contains(index)) {
            if !over.contains(index) {
                over.push(*index);
            }
        }
        let term = Term { over, when: When::from(part.guards.clone()), body: Expr::Number(1.0) };
        let rule = Equation {
            node: Stamp::default(),
            tensor: made,
            head: head.clone(),
            left: asked.clone(),
            terms: vec![term],
            ..equation.clone()
        };
        rules.push(Renaming::new(program).equation(&rule));
    }
    let from = program.equations.len();
    program.equations.extend(rules);
    let equations = (from..program.equations.len()).map(|at| EquationId(at as u32)).collect();
    let at = program.components.iter().position(|component| component.tensors.contains(&equation.tensor))?;
    program.components.insert(at, Component { tensors: vec![made], equations, class: Class::Plain });
    let arguments = head.into_iter().map(Argument::At).collect();
    Some(vec![Guard::Read(Read::new(made, arguments, Otherwise::Absent, equation.head_span))])
}

/// Whether a value is a sum of parts of which some may be absent.
fn has_choice(expr: &Expr) -> bool {
    matches!(expr, Expr::Terms(parts) if parts.len() > 1) || expr.parts().0.into_iter().any(has_choice)
}

/// Whether tuples that must be there have an index.
fn lists(guards: &[Guard], index: IndexId) -> bool {
    guards.iter().any(|guard| match guard {
        Guard::Read(read) if read.otherwise == Otherwise::Absent => {
            read.arguments.iter().any(|argument| argument.function().and_then(IndexFn::alone) == Some(index))
        }
        _ => false,
    })
}

/// Whether the same read stands among the guards.
fn has(guards: &[Guard], guard: &Guard) -> bool {
    let Guard::Read(read) = guard else { return false };
    let functions =
        |read: &Read| read.arguments.iter().map(|argument| argument.function().cloned()).collect::<Vec<_>>();
    guards.iter().any(|other| match other {
        Guard::Read(other) => {
            other.tensor == read.tensor
                && other.otherwise == read.otherwise
                && functions(other) == functions(read)
        }
        _ => false,
    })
}
