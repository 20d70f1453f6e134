//! When a term of an equation has a value, said by guards.
//!
//! Enter at [`of_term`]; [`surely`] asks whether a part of it always has one where the rest does.

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
#[derive(Debug, Clone, Default)]
pub struct Conjunction {
    /// Guards, under some binding of the indices that stand nowhere else.
    pub guards: Vec<Guard>,
    /// The indices that are bound around them.
    pub over: Vec<IndexId>,
    /// Functions that have a value of a domain.
    inside: Vec<(IndexFn, Domain)>,
}

/// Places of relations, and whether all that stands there lies in a domain.
pub type Covered = HashMap<(TensorId, usize), (Domain, bool)>;

/// The conjunctions of which one holds where a term has a value, for a binding of these indices; `None` where that cannot
/// be said by guards.
pub fn of_term(
    program: &Program,
    left: &[IndexId],
    term: &Term,
    covered: &mut Covered,
) -> Option<Vec<Conjunction>> {
    let over: Vec<IndexId> = left.iter().chain(&term.over).copied().collect();
    let sure = reads_of(&term.body, &term.when);
    let mut all = and(Presence { program, sure, covered }.value(&term.body)?, guards(&term.when))?;
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

/// Whether a part of a term has a value wherever these reads of tuples have one, which stand in the same term.
pub fn surely(program: &Program, expr: &Expr, sure: Vec<&Read>, covered: &mut Covered) -> bool {
    Presence { program, sure, covered }
        .value(expr)
        .is_some_and(|all| all.len() == 1 && all.iter().all(Conjunction::is_nothing))
}

/// The reads of tuples without which a scope has no value.
pub fn reads_of<'a>(body: &'a Expr, when: &'a When) -> Vec<&'a Read> {
    let mut reads = Vec::new();
    asked_by(body, &mut reads);
    asked_in(when, &mut reads);
    reads
}

fn asked_by<'a>(expr: &'a Expr, into: &mut Vec<&'a Read>) {
    match expr {
        Expr::Read(read) if read.otherwise == Otherwise::Absent => into.push(read),
        // Others may have a value where one has none; and a scope has indices of its own.
        Expr::Terms(parts) if parts.len() != 1 => {}
        Expr::Reduce(_) | Expr::Axis(_) => {}
        _ => {
            let (parts, when) = expr.parts();
            parts.into_iter().for_each(|part| asked_by(part, into));
            if let Some(when) = when {
                asked_in(when, into);
            }
        }
    }
}

fn asked_in<'a>(when: &'a When, into: &mut Vec<&'a Read>) {
    for guard in &when.guards {
        match guard {
            Guard::Read(read) if read.otherwise == Otherwise::Absent => into.push(read),
            Guard::Compare(_, a, b) => {
                asked_by(a, into);
                asked_by(b, into);
            }
            _ => {}
        }
    }
}

/// Asks that functions have values of domains, where that is not known.
fn stand(program: &Program, conjunction: &mut Conjunction, covered: &mut Covered) -> Option<()> {
    for (function, domain) in std::mem::take(&mut conjunction.inside) {
        let mut by_tuples = |index: IndexId| {
            conjunction.guards.iter().any(|guard| match guard {
                Guard::Read(read) => is_given(program, read, index, &domain, covered),
                _ => false,
            })
        };
        if fits(program, &function, &domain) || function.alone().is_some_and(&mut by_tuples) {
            continue;
        }
        let Domain::Interval { from, to } = domain else { return None };
        let end = |value: i64| IndexFn::Const(Const::Int(value));
        conjunction.guards.push(Guard::CompareIndex(Comparison::LessEqual, end(from), function.clone()));
        conjunction.guards.push(Guard::CompareIndex(Comparison::LessEqual, function, end(to)));
    }
    Some(())
}

/// Whether a read of tuples has a value only where an index has one of a domain.
fn is_given(program: &Program, read: &Read, index: IndexId, domain: &Domain, covered: &mut Covered) -> bool {
    let alone = |argument: &Argument| argument.function().and_then(IndexFn::alone) == Some(index);
    let mut places = (0..).zip(&read.arguments).filter(|(_, argument)| alone(argument));
    read.otherwise == Otherwise::Absent
        && places.any(|(place, _)| is_covered(program, read.tensor, place, domain, covered))
}

/// Whether the tuples of a relation have values of a domain at a place.
pub fn is_covered(
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
        // Each of them stands in some tuple.
        Given::Columns(columns) => {
            columns.dictionaries.get(place).is_some_and(|own| own.iter().all(|value| domain.contains(*value)))
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
    let sure = reads_of(&term.body, &term.when);
    let body = Presence { program, sure, covered: &mut *covered }.value(&term.body);
    let all = body.and_then(|all| and(all, guards(&term.when)));
    all.is_some_and(|all| {
        all.iter().all(|conjunction| {
            let inside = conjunction.inside.iter().any(|(function, of)| {
                function.alone() == Some(index) && (of == domain || crate::presence::within(of, domain))
            });
            inside
                || conjunction.guards.iter().any(|guard| match guard {
                    Guard::Read(read) => is_given(program, read, index, domain, covered),
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

/// What always holds.
fn nothing() -> Vec<Conjunction> {
    vec![Conjunction::default()]
}

/// When the parts of a scope have values.
struct Presence<'a, 'c> {
    program: &'a Program,
    /// The reads of tuples without which the scope has none.
    sure: Vec<&'a Read>,
    covered: &'c mut Covered,
}

impl<'a> Presence<'a, '_> {
    /// When an expression has a value.
    fn value(&mut self, expr: &'a Expr) -> Option<Vec<Conjunction>> {
        let program = self.program;
        if always(program, expr) {
            return Some(nothing());
        }
        match expr {
            Expr::Index(function) => integer(program, function).then(nothing),
            Expr::Read(read) => self.of_read(read).map(|conjunction| vec![conjunction]),
            Expr::Missing(read) => {
                Some(vec![Conjunction { guards: vec![Guard::Not(read.clone())], ..Conjunction::default() }])
            }
            Expr::Terms(parts) => {
                let all: Option<Vec<_>> = parts.iter().map(|part| self.value(part)).collect();
                let all = all?.concat();
                match all.iter().any(Conjunction::is_nothing) {
                    true => Some(nothing()),
                    false => (all.len() <= MOST).then_some(all),
                }
            }
            Expr::Reduce(reduce) => {
                let zero = matches!(reduce.operation, Operation::Sum | Operation::Count | Operation::Product);
                if reduce.explicit && zero {
                    return Some(nothing());
                }
                let over = vec![Conjunction { over: reduce.over.clone(), ..Conjunction::default() }];
                and(and(self.scope(&reduce.body, &reduce.when)?, guards(&reduce.when))?, over)
            }
            Expr::Axis(axis) => {
                if let AxisFunction::Lnorm(Some(epsilon)) = &axis.function
                    && !always(program, epsilon)
                {
                    return None;
                }
                and(self.scope(&axis.argument, &axis.when)?, guards(&axis.when))
            }
            _ => {
                let (parts, when) = expr.parts();
                let start = when.map_or_else(nothing, guards);
                parts.into_iter().try_fold(start, |all, part| and(all, self.value(part)?))
            }
        }
    }

    /// When the body of a scope inside of this one has a value.
    fn scope(&mut self, body: &'a Expr, when: &'a When) -> Option<Vec<Conjunction>> {
        let outer = self.sure.len();
        self.sure.extend(reads_of(body, when));
        let value = self.value(body);
        self.sure.truncate(outer);
        value
    }

    fn of_read(&mut self, read: &'a Read) -> Option<Conjunction> {
        let mut conjunction = Conjunction::default();
        match read.otherwise {
            Otherwise::Absent => conjunction.guards.push(Guard::Read(read.clone())),
            Otherwise::ZeroOutside => {}
            Otherwise::Zero => {
                for (argument, place) in read.arguments.iter().zip(&self.program.tensor(read.tensor).places) {
                    let Some(domain) = &place.domain else { continue };
                    let function = argument.function()?;
                    if !self.is_inside(function, domain) {
                        conjunction.inside.push((function.clone(), domain.clone()));
                    }
                }
            }
        }
        Some(conjunction)
    }

    /// Whether a function has a value of a domain wherever the scope has one.
    fn is_inside(&mut self, function: &IndexFn, domain: &Domain) -> bool {
        let Presence { program, sure, covered } = self;
        let given = |index| sure.iter().any(|read| is_given(program, read, index, domain, covered));
        fits(program, function, domain) || function.alone().is_some_and(given)
    }
}

impl Conjunction {
    /// Whether nothing is asked.
    fn is_nothing(&self) -> bool {
        self.guards.is_empty() && self.over.is_empty() && self.inside.is_empty()
    }

    /// Whether a guard asks for an index.
    pub fn asks(&self, index: IndexId) -> bool {
        let mut asks = false;
        self.guards.iter().for_each(|guard| guard_indices(guard, &mut |other| asks |= other == index));
        asks
    }
}
