//! Relations that have every tuple there is.
//!
//! Enter at [`dropped`]. `Token(i)` with a token for every `i` says nothing: equations of numbers that read it are those
//! without it, and what holds for every `i` needs no list of tuples. So rules over all that there is cost what equations
//! over it cost.

use std::collections::BTreeSet;

use crate::ast::Comparison;
use crate::presence::{bounds, fits, has_values, range};
use crate::program::{
    Argument, Class, Equation, Expr, Given, Guard, IndexFn, Kind, Otherwise, Program, Read, Role, Style,
    Tensor, TensorId, Term, When,
};
use crate::room::volume;

/// Relations of more tuples are looked at no further.
const MOST: usize = 1 << 21;

/// Takes the reads of full relations out of equations of numbers.
pub fn dropped(program: &mut Program) {
    let full = full(program);
    if full.is_empty() {
        return;
    }
    let mut equations = std::mem::take(&mut program.equations);
    for equation in &mut equations {
        let mut reads = false;
        equation.visit_reads(&mut |read, _| reads |= full.contains(&read.tensor));
        if reads && program.tensor(equation.tensor).kind != Kind::Bool {
            for term in &mut equation.terms {
                in_when(program, &full, &mut term.when);
                in_expr(program, &full, &mut term.body);
            }
        }
    }
    program.equations = equations;
}

/// The relations that have every tuple, as far as facts and simple rules tell.
fn full(program: &Program) -> BTreeSet<TensorId> {
    let mut full = BTreeSet::new();
    let adds = |id: TensorId| {
        program.equations.iter().filter(|equation| equation.tensor == id).all(|own| adds(program, own))
    };
    for (id, tensor) in (0..).map(TensorId).zip(&program.tensors) {
        if may(tensor) && given(tensor) && adds(id) {
            full.insert(id);
        }
    }
    for component in &program.components {
        let plain = matches!(component.class, Class::Plain);
        for equation in component.equations.iter().filter(|_| plain).map(|at| program.equation(*at)) {
            let id = equation.tensor;
            if may(program.tensor(id)) && makes(program, &full, equation) && adds(id) {
                full.insert(id);
            }
        }
    }
    full
}

/// Whether it is known which tuples a relation can have, and none has a value of its own.
fn may(tensor: &Tensor) -> bool {
    tensor.style == Style::Round
        && tensor.kind == Kind::Bool
        && matches!(tensor.role, Role::Data | Role::Computed)
        && tensor.places.iter().all(|place| {
            let domain = place.domain.as_ref();
            !place.star && place.limit.as_ref() == domain && domain.is_some_and(|domain| !domain.is_empty())
        })
        && tensor
            .places
            .iter()
            .zip(tensor.sizes())
            .try_fold(1_usize, |all, (_, size)| all.checked_mul(size).filter(|all| *all <= MOST))
            .is_some()
}

/// Whether the facts are all there, and take nothing away.
fn given(tensor: &Tensor) -> bool {
    let count = |given: &Given| match given {
        Given::Facts(facts) => facts.count,
        Given::Columns(columns) => columns.len,
        Given::Array { .. } => 0,
    };
    let sizes = tensor.sizes();
    let most = volume(&sizes);
    if tensor.given.iter().map(count).sum::<usize>() < most {
        return false;
    }
    let domains = tensor.domains();
    let mut seen = vec![false; most];
    let mut takes = false;
    for given in tensor.given.iter().filter(|given| !matches!(given, Given::Array { .. })) {
        given.each(&domains, |tuple, value| {
            let mut places = tuple.iter().zip(&domains);
            let found =
                places.try_fold(0, |at, (value, domain)| Some(at * domain.len() + domain.ordinal(*value)?));
            if let Some(slot) = found.and_then(|found| seen.get_mut(found)) {
                *slot |= value > 0.0;
            }
            takes |= value < 0.0;
        });
    }
    !takes && seen.iter().all(|seen| *seen)
}

/// Whether an equation makes every tuple.
fn makes(program: &Program, full: &BTreeSet<TensorId>, equation: &Equation) -> bool {
    let places = &program.tensor(equation.tensor).places;
    let whole = equation.head.iter().zip(places).enumerate().all(|(at, (function, place))| {
        let index = function.alone();
        let again = equation.head.iter().take(at).any(|other| other.alone() == index);
        let range = index.and_then(|index| range(program, index));
        !again && place.domain.as_ref() == range && range.is_some()
    });
    whole && equation.terms.iter().any(|term| always(program, full, term))
}

/// Whether an equation takes nothing away: a tuple is there where the sum of all that is contributed is above 0.
fn adds(program: &Program, equation: &Equation) -> bool {
    equation.terms.iter().all(|term| is_never_below(program, &term.body))
}

/// Whether a value is 0 or above, whatever is read.
fn is_never_below(program: &Program, expr: &Expr) -> bool {
    let all = |parts: &[Expr]| parts.iter().all(|part| is_never_below(program, part));
    match expr {
        Expr::Number(number) => *number >= 0.0,
        Expr::Read(read) => program.tensor(read.tensor).kind == Kind::Bool,
        Expr::Product(parts) | Expr::Plus(parts) | Expr::Terms(parts) => all(parts),
        Expr::Quotient(a, b) => is_never_below(program, a) && is_never_below(program, b),
        Expr::Reduce(reduce) => is_never_below(program, &reduce.body),
        _ => false,
    }
}

/// Whether a term has a value above 0 under every binding.
fn always(program: &Program, full: &BTreeSet<TensorId>, term: &Term) -> bool {
    term.when.exists.iter().chain(&term.over).all(|index| has_values(program, *index))
        && term.when.guards.iter().all(|guard| holds(program, full, guard))
        && is_above(program, full, &term.body)
}

fn is_above(program: &Program, full: &BTreeSet<TensorId>, expr: &Expr) -> bool {
    match expr {
        Expr::Number(number) => *number > 0.0,
        Expr::Read(read) => has(program, full, read),
        Expr::Product(parts) => parts.iter().all(|part| is_above(program, full, part)),
        _ => false,
    }
}

/// Whether a guard holds under every binding.
fn holds(program: &Program, full: &BTreeSet<TensorId>, guard: &Guard) -> bool {
    match guard {
        Guard::Read(read) => has(program, full, read),
        Guard::CompareIndex(comparison, a, b) => compared(program, *comparison, a, b),
        Guard::Not(_) | Guard::Compare(..) | Guard::Bind(..) => false,
    }
}

fn compared(program: &Program, comparison: Comparison, a: &IndexFn, b: &IndexFn) -> bool {
    let (Some(a), Some(b)) = (bounds(program, a), bounds(program, b)) else { return false };
    match comparison {
        Comparison::Less => a.1 < b.0,
        Comparison::LessEqual => a.1 <= b.0,
        Comparison::Greater => a.0 > b.1,
        Comparison::GreaterEqual => a.0 >= b.1,
        Comparison::Equal => a.0 == a.1 && a == b,
        Comparison::NotEqual => a.1 < b.0 || b.1 < a.0,
    }
}

/// Whether a read is of a tuple that is there under every binding.
fn has(program: &Program, full: &BTreeSet<TensorId>, read: &Read) -> bool {
    let places = read.arguments.iter().zip(&program.tensor(read.tensor).places);
    let mut fit = places.map(|(argument, place)| match (argument, &place.domain) {
        (Argument::At(function), Some(domain)) => {
            let mut some = true;
            function.visit(&mut |index| some &= has_values(program, index));
            some && fits(program, function, domain)
        }
        _ => false,
    });
    full.contains(&read.tensor) && read.otherwise != Otherwise::ZeroOutside && fit.all(|fits| fits)
}

fn in_when(program: &Program, full: &BTreeSet<TensorId>, when: &mut When) {
    when.guards.retain(|guard| !matches!(guard, Guard::Read(read) if has(program, full, read)));
    for guard in &mut when.guards {
        if let Guard::Compare(_, a, b) = guard {
            in_expr(program, full, a);
            in_expr(program, full, b);
        }
    }
}

fn in_expr(program: &Program, full: &BTreeSet<TensorId>, expr: &mut Expr) {
    match expr {
        Expr::Read(read) if has(program, full, read) => *expr = Expr::Number(1.0),
        Expr::Product(parts) => {
            parts.retain(|part| !matches!(part, Expr::Read(read) if has(program, full, read)));
            if parts.is_empty() {
                *expr = Expr::Number(1.0);
                return;
            }
            parts.iter_mut().for_each(|part| in_expr(program, full, part));
        }
        _ => {
            let (parts, when) = expr.parts_mut();
            parts.into_iter().for_each(|part| in_expr(program, full, part));
            when.into_iter().for_each(|when| in_when(program, full, when));
        }
    }
}
