//! When a term of an equation has a value, as rules that ask nothing of the indices of a block.
//!
//! Enter at [`of_term`].

use std::collections::{BTreeSet, HashMap};

use crate::ast::Comparison;
use crate::domains::binds;
use crate::presence::{always, fits, has_values, integer};
use crate::program::{
    Argument, AxisFunction, Expr, Given, Guard, IndexFn, IndexId, Operation, Otherwise, Program, Range, Read,
    Role, TensorId, Term, When,
};
use crate::value::{Const, Domain};
use crate::walk::{guard_indices, when_indices};

/// A term has a value where one of at most so many conjunctions holds.
const MOST: usize = 4;

/// What must hold together.
#[derive(Clone, Default)]
pub(super) struct Conjunction {
    /// Guards, under some binding of the indices that stand nowhere else.
    pub(super) guards: Vec<Guard>,
    /// The indices that are bound around them.
    pub(super) over: Vec<IndexId>,
    /// Functions that have a value of a domain.
    inside: Vec<(IndexFn, Domain)>,
}

/// Places of relations, and whether all that stands there lies in a domain.
pub(super) type Covered = HashMap<(TensorId, usize), (Domain, bool)>;

/// The conjunctions of which one holds where a term has a value, for a binding of these indices; `None` where that cannot
/// be said by guards.
pub(super) fn of_term(
    program: &Program,
    left: &[IndexId],
    term: &Term,
    covered: &mut Covered,
) -> Option<Vec<Conjunction>> {
    let over: Vec<IndexId> = left.iter().chain(&term.over).copied().collect();
    let mut all = and(value(program, &term.body)?, guards(&term.when))?;
    for conjunction in &mut all {
        conjunction.over.extend(&over);
        stand(program, conjunction, covered)?;
        let when = When::from(conjunction.guards.clone());
        let mut used = BTreeSet::new();
        when_indices(&when, &mut |index| {
            used.insert(index);
        });
        for index in &conjunction.over {
            match program.index(*index).range {
                Range::Domain(_) if used.contains(index) || has_values(program, *index) => {}
                Range::Tuples if binds(*index, &Expr::Number(1.0), &when) => {}
                Range::Computed if used.contains(index) => {}
                _ => return None,
            }
        }
    }
    Some(all)
}

/// Asks that functions have values of domains, where that is not known.
fn stand(program: &Program, conjunction: &mut Conjunction, covered: &mut Covered) -> Option<()> {
    for (function, domain) in std::mem::take(&mut conjunction.inside) {
        let by_tuples = |index: IndexId| {
            conjunction.guards.iter().any(|guard| match guard {
                Guard::Read(read) if read.otherwise == Otherwise::Absent => {
                    let alone =
                        |argument: &Argument| argument.function().and_then(IndexFn::alone) == Some(index);
                    let mut places = (0..).zip(&read.arguments).filter(|(_, argument)| alone(argument));
                    places.any(|(place, _)| is_covered(program, read.tensor, place, &domain, covered))
                }
                _ => false,
            })
        };
        if fits(program, &function, &domain) || function.alone().is_some_and(by_tuples) {
            continue;
        }
        let Domain::Interval { from, to } = domain else { return None };
        let end = |value: i64| IndexFn::Const(Const::Int(value));
        conjunction.guards.push(Guard::CompareIndex(Comparison::LessEqual, end(from), function.clone()));
        conjunction.guards.push(Guard::CompareIndex(Comparison::LessEqual, function, end(to)));
    }
    Some(())
}

/// Whether the tuples of a relation have values of a domain at a place.
pub(super) fn is_covered(
    program: &Program,
    id: TensorId,
    place: usize,
    domain: &Domain,
    covered: &mut Covered,
) -> bool {
    match covered.get(&(id, place)) {
        Some((known, is)) if known == domain => return *is,
        _ => covered.insert((id, place), (domain.clone(), false)),
    };
    let tensor = program.tensor(id);
    let given = tensor.given.iter().all(|given| match given {
        Given::Facts(facts) => {
            let mut values = (0..facts.count).map(|at| facts.tuple(at).get(place));
            values.all(|value| value.is_some_and(|value| domain.contains(*value)))
        }
        Given::Array { .. } => false,
    });
    let mut equations = program.equations.iter().filter(|equation| equation.tensor == id);
    // The tuples of a parameter are no data.
    let known = matches!(tensor.role, Role::Data | Role::Computed | Role::Empty);
    let is = known
        && given
        && equations.all(|equation| {
            let Some(function) = equation.head.get(place) else { return false };
            fits(program, function, domain)
                || function.alone().is_some_and(|index| {
                    equation.terms.iter().all(|term| gives(program, term, index, domain, covered))
                })
        });
    covered.insert((id, place), (domain.clone(), is));
    is
}

/// Whether a term has a value only where an index has one of a domain.
fn gives(program: &Program, term: &Term, index: IndexId, domain: &Domain, covered: &mut Covered) -> bool {
    let all = value(program, &term.body).and_then(|all| and(all, guards(&term.when)));
    all.is_some_and(|all| {
        all.iter().all(|conjunction| {
            let inside = conjunction.inside.iter().any(|(function, of)| {
                function.alone() == Some(index) && (of == domain || crate::presence::within(of, domain))
            });
            inside
                || conjunction.guards.iter().any(|guard| match guard {
                    Guard::Read(read) if read.otherwise == Otherwise::Absent => {
                        let is =
                            |argument: &Argument| argument.function().and_then(IndexFn::alone) == Some(index);
                        let places = (0..).zip(&read.arguments).filter(|(_, argument)| is(argument));
                        let places: Vec<usize> = places.map(|(place, _)| place).collect();
                        places.iter().any(|place| is_covered(program, read.tensor, *place, domain, covered))
                    }
                    _ => false,
                })
        })
    })
}

fn and(a: Vec<Conjunction>, b: Vec<Conjunction>) -> Option<Vec<Conjunction>> {
    let pairs = a.iter().flat_map(|a| {
        b.iter().map(|b| Conjunction {
            guards: [a.guards.as_slice(), &b.guards].concat(),
            over: [a.over.as_slice(), &b.over].concat(),
            inside: [a.inside.as_slice(), &b.inside].concat(),
        })
    });
    let all: Vec<Conjunction> = pairs.collect();
    (all.len() <= MOST).then_some(all)
}

fn guards(when: &When) -> Vec<Conjunction> {
    vec![Conjunction { guards: when.guards.clone(), over: when.exists.clone(), inside: Vec::new() }]
}

/// When an expression has a value.
fn value(program: &Program, expr: &Expr) -> Option<Vec<Conjunction>> {
    let nothing = || vec![Conjunction::default()];
    if always(program, expr) {
        return Some(nothing());
    }
    match expr {
        Expr::Index(function) => integer(program, function).then(nothing),
        Expr::Read(read) => of_read(program, read).map(|conjunction| vec![conjunction]),
        Expr::Missing(read) => {
            Some(vec![Conjunction { guards: vec![Guard::Not(read.clone())], ..Conjunction::default() }])
        }
        Expr::Terms(parts) => {
            let all: Option<Vec<_>> = parts.iter().map(|part| value(program, part)).collect();
            all.map(|all| all.concat()).filter(|all| all.len() <= MOST)
        }
        Expr::Reduce(reduce) => {
            let zero = matches!(reduce.operation, Operation::Sum | Operation::Count | Operation::Product);
            if reduce.explicit && zero {
                return Some(nothing());
            }
            let over = vec![Conjunction { over: reduce.over.clone(), ..Conjunction::default() }];
            and(and(value(program, &reduce.body)?, guards(&reduce.when))?, over)
        }
        Expr::Axis(axis) => {
            if let AxisFunction::Lnorm(Some(epsilon)) = &axis.function
                && !always(program, epsilon)
            {
                return None;
            }
            and(value(program, &axis.argument)?, guards(&axis.when))
        }
        _ => {
            let (parts, when) = expr.parts();
            let start = when.map_or_else(nothing, guards);
            parts.into_iter().try_fold(start, |all, part| and(all, value(program, part)?))
        }
    }
}

fn of_read(program: &Program, read: &Read) -> Option<Conjunction> {
    let mut conjunction = Conjunction::default();
    match read.otherwise {
        Otherwise::Absent => conjunction.guards.push(Guard::Read(read.clone())),
        Otherwise::ZeroOutside => {}
        Otherwise::Zero => {
            for (argument, place) in read.arguments.iter().zip(&program.tensor(read.tensor).places) {
                if let Some(domain) = &place.domain {
                    conjunction.inside.push((argument.function()?.clone(), domain.clone()));
                }
            }
        }
    }
    Some(conjunction)
}

impl Conjunction {
    /// Whether a guard asks for an index.
    pub(super) fn asks(&self, index: IndexId) -> bool {
        let mut asks = false;
        self.guards.iter().for_each(|guard| guard_indices(guard, &mut |other| asks |= other == index));
        asks
    }
}
