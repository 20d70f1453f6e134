//! The compiled tree: what the elements of a step are made of, and how it is gone through.
//!
//! Enter at [`State::rule`]. Reads know where they look: an index is a register, a place a sum of registers. What the
//! general way has computed for all steps at once stands in tables and lists beside the tensors ([`Apart`]).

use std::sync::Arc;

use crate::ast::Comparison;
use crate::function::{Function, power};
use crate::head::join;
use crate::kernels::{larger, smaller};
use crate::program::{Combine, Operation, Otherwise};
use crate::store::condition::holds;

/// `constant + Σ coefficient · index`, the indices in registers.
#[derive(Debug, Clone)]
pub(super) struct Linear {
    pub(super) terms: Vec<(usize, i64)>,
    pub(super) constant: i64,
}

/// A place of an element: its position, which must be below the size, and how far apart positions lie.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub(super) position: Linear,
    pub(super) size: i64,
    pub(super) stride: usize,
}

/// A value; absent where a part of it is.
#[derive(Debug, Clone)]
pub(super) enum Node {
    Number(f64),
    Index(Linear),
    /// An element of a tensor.
    Read {
        tensor: usize,
        places: Vec<Place>,
        otherwise: Otherwise,
    },
    /// What was computed before.
    Apart(usize),
    /// 1 where a test fails.
    Missing(Box<Test>),
    Product(Vec<Node>),
    Plus(Vec<Node>),
    /// The sum of those present.
    Terms(Vec<Node>),
    Quotient(Box<(Node, Node)>),
    Power(Box<(Node, Node)>),
    Negate(Box<Node>),
    Call(Function, Vec<Node>, Vec<Test>),
    Reduce(Box<Scope>),
}

/// Values over the ranges of registers, folded; over nothing there is what `empty` says.
#[derive(Debug, Clone)]
pub(super) struct Scope {
    pub(super) operation: Operation,
    pub(super) over: Vec<Loop>,
    pub(super) guards: Vec<Test>,
    pub(super) body: Node,
    pub(super) empty: Option<f64>,
}

/// What must hold.
#[derive(Debug, Clone)]
pub(super) enum Test {
    Indices(Comparison, Linear, Linear),
    Values(Comparison, Box<(Node, Node)>),
    Present(Node),
    Positive(Node),
    Not(Box<Test>),
}

/// A register and the values that it takes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Loop {
    pub(super) register: usize,
    pub(super) from: i64,
    pub(super) to: i64,
}

/// Contributions to one tensor.
#[derive(Debug)]
pub(super) struct Rule {
    pub(super) tensor: usize,
    pub(super) combine: Combine,
    pub(super) head: Vec<Place>,
    /// What the open steps say of the indices, in an order in which it can be told.
    pub(super) follows: Vec<Follow>,
    pub(super) free: Vec<Loop>,
    pub(super) terms: Vec<Term>,
}

/// What stands at a moving place, but for the multiple of a register that follows the step there; none where all other
/// indices are known.
#[derive(Debug)]
pub(super) struct Follow {
    pub(super) level: usize,
    pub(super) others: Linear,
    pub(super) own: Option<(Loop, i64)>,
}

/// Contributions: all bindings of a list, if there is one, and of loops, for which tests hold.
#[derive(Debug)]
pub(super) struct Term {
    pub(super) list: Option<usize>,
    pub(super) over: Vec<Loop>,
    pub(super) guards: Vec<Test>,
    pub(super) body: Node,
}

/// The numbers of a tensor.
pub(super) enum Values {
    Own(Vec<f64>),
    /// Of a relation, within bounds that are known, and which tuples there are.
    Tuples(Vec<f64>, Vec<bool>),
    Given(Arc<Vec<f64>>),
}

impl Values {
    fn join(&mut self, combine: Combine, at: usize, value: f64) {
        match self {
            Values::Own(values) => join(combine, &mut values[at], value),
            Values::Tuples(values, present) if present[at] => join(combine, &mut values[at], value),
            Values::Tuples(values, present) => (values[at], present[at]) = (value, true),
            Values::Given(_) => {}
        }
    }

    fn read(&self, at: usize, otherwise: Otherwise) -> Option<f64> {
        let value = match self {
            Values::Tuples(values, present) => return present[at].then_some(values[at]),
            Values::Own(values) => values[at],
            Values::Given(values) => values[at],
        };
        (otherwise != Otherwise::Absent || value != 0.0).then_some(value)
    }
}

/// What was computed for all steps at once.
#[derive(Debug, Default)]
pub(super) struct Apart {
    pub(super) tables: Vec<Table>,
    pub(super) lists: Vec<List>,
}

/// Values over registers, and where they are present; `None`: everywhere.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) places: Vec<Place>,
    pub(super) values: Arc<Vec<f64>>,
    pub(super) mask: Option<Arc<Vec<bool>>>,
}

/// Rows by the registers that are known before, and the registers that they set.
#[derive(Debug)]
pub(super) struct List {
    pub(super) key: Vec<Place>,
    /// Where the rows of each key begin in `rows`.
    pub(super) starts: Vec<u32>,
    pub(super) rows: Vec<u32>,
    /// The register of the row itself.
    pub(super) row: usize,
    /// Registers, what is added, and the positions in the rows.
    pub(super) columns: Vec<(usize, i64, Arc<Vec<u32>>)>,
}

/// The numbers of tensors and the values of indices.
pub(super) struct State<'a> {
    pub(super) values: Vec<Values>,
    pub(super) registers: Vec<i64>,
    pub(super) apart: &'a Apart,
    /// How many bindings were gone through.
    pub(super) bindings: u64,
}

/// How many bindings loops have together, saturating.
pub(super) fn size(loops: &[Loop]) -> usize {
    loops.iter().fold(1, |all: usize, one| all.saturating_mul(one.len()))
}

impl Loop {
    pub(super) fn len(self) -> usize {
        usize::try_from((self.to - self.from + 1).max(0)).unwrap_or(usize::MAX)
    }
}

impl Linear {
    pub(super) fn value(&self, registers: &[i64]) -> i64 {
        // Bounds of the coefficients and of all domains keep this within 64 bits.
        self.terms.iter().fold(self.constant, |sum, (at, c)| sum.wrapping_add(c.wrapping_mul(registers[*at])))
    }
}

/// Where an element stands; nowhere if a place is outside.
fn element(places: &[Place], registers: &[i64]) -> Option<usize> {
    let mut at = 0;
    for place in places {
        let position = place.position.value(registers);
        if position < 0 || position >= place.size {
            return None;
        }
        at += position as usize * place.stride;
    }
    Some(at)
}

impl State<'_> {
    /// The contributions of one rule in the steps that are open.
    pub(super) fn rule(&mut self, rule: &Rule, steps: &[i64]) {
        if !rule.follows.iter().all(|follow| self.follow(follow, steps)) {
            return;
        }
        let mut open = begin(&rule.free, &mut self.registers);
        while open {
            if let Some(at) = element(&rule.head, &self.registers) {
                for term in &rule.terms {
                    self.term(term, &mut |state, value| {
                        state.values[rule.tensor].join(rule.combine, at, value);
                    });
                }
            }
            open = next(&rule.free, &mut self.registers);
        }
    }

    /// Whether what stands at a moving place is the open step, with its register set if it has one.
    fn follow(&mut self, follow: &Follow, steps: &[i64]) -> bool {
        let Some(step) = steps.get(follow.level) else { return false };
        let rest = step.wrapping_sub(follow.others.value(&self.registers));
        let Some((own, coefficient)) = follow.own else { return rest == 0 };
        if rest.checked_rem(coefficient) != Some(0) {
            return false;
        }
        let value = rest.wrapping_div(coefficient);
        self.registers[own.register] = value;
        own.from <= value && value <= own.to
    }

    fn term(&mut self, term: &Term, visit: &mut dyn FnMut(&mut State<'_>, f64)) {
        let apart = self.apart;
        let Some(list) = term.list.and_then(|at| apart.lists.get(at)) else {
            return self.each(&term.over, &term.guards, &term.body, visit);
        };
        let Some(at) = element(&list.key, &self.registers) else { return };
        for row in &list.rows[list.starts[at] as usize..list.starts[at + 1] as usize] {
            self.registers[list.row] = i64::from(*row);
            for (register, from, column) in &list.columns {
                self.registers[*register] = from + i64::from(column[*row as usize]);
            }
            self.each(&term.over, &term.guards, &term.body, visit);
        }
    }

    /// The values of a body for all bindings of loops, where it is present.
    fn each(
        &mut self,
        over: &[Loop],
        guards: &[Test],
        body: &Node,
        visit: &mut dyn FnMut(&mut State<'_>, f64),
    ) {
        let mut open = begin(over, &mut self.registers);
        while open {
            self.bindings += 1;
            if guards.iter().all(|test| self.holds(test))
                && let Some(value) = self.value(body)
            {
                visit(self, value);
            }
            open = next(over, &mut self.registers);
        }
    }

    fn holds(&mut self, test: &Test) -> bool {
        match test {
            Test::Indices(sign, a, b) => {
                holds(*sign, Some(a.value(&self.registers).cmp(&b.value(&self.registers))))
            }
            Test::Values(sign, both) => match (self.value(&both.0), self.value(&both.1)) {
                (Some(a), Some(b)) => holds(*sign, a.partial_cmp(&b)),
                _ => false,
            },
            Test::Present(node) => self.value(node).is_some(),
            Test::Positive(node) => self.value(node).is_some_and(|value| value > 0.0),
            Test::Not(test) => !self.holds(test),
        }
    }

    fn value(&mut self, node: &Node) -> Option<f64> {
        Some(match node {
            Node::Number(value) => *value,
            Node::Index(function) => function.value(&self.registers) as f64,
            Node::Read { tensor, places, otherwise } => {
                let found = element(places, &self.registers);
                let found = found.and_then(|at| self.values[*tensor].read(at, *otherwise));
                match found {
                    None if *otherwise == Otherwise::ZeroOutside => 0.0,
                    found => found?,
                }
            }
            Node::Apart(at) => {
                let table = self.apart.tables.get(*at)?;
                let at = element(&table.places, &self.registers)?;
                if table.mask.as_ref().is_some_and(|mask| !mask[at]) {
                    return None;
                }
                table.values[at]
            }
            Node::Missing(test) => match self.holds(test) {
                true => return None,
                false => 1.0,
            },
            Node::Product(parts) => self.all(parts, 1.0, |a, b| a * b)?,
            Node::Plus(parts) => self.all(parts, 0.0, |a, b| a + b)?,
            Node::Terms(parts) => {
                let mut sum: Option<f64> = None;
                for part in parts {
                    if let Some(value) = self.value(part) {
                        sum = Some(sum.map_or(value, |sum| sum + value));
                    }
                }
                sum?
            }
            // A 0 has no sign: -0 + 0 is 0.
            Node::Quotient(both) => self.value(&both.0)? / (self.value(&both.1)? + 0.0),
            Node::Power(both) => power(self.value(&both.0)?, self.value(&both.1)?),
            Node::Negate(part) => -self.value(part)?,
            Node::Call(_, _, guards) if !guards.iter().all(|test| self.holds(test)) => return None,
            Node::Call(function, arguments, _) => match arguments.as_slice() {
                [one] => function.value(&[self.value(one)?]),
                [a, b] => function.value(&[self.value(a)?, self.value(b)?]),
                many => {
                    let values: Option<Vec<f64>> = many.iter().map(|part| self.value(part)).collect();
                    function.value(&values?)
                }
            },
            Node::Reduce(scope) => self.reduced(scope)?,
        })
    }

    /// Parts joined from left to right, if all are present.
    fn all(&mut self, parts: &[Node], none: f64, join: impl Fn(f64, f64) -> f64) -> Option<f64> {
        let Some((first, others)) = parts.split_first() else { return Some(none) };
        let mut joined = self.value(first)?;
        for part in others {
            joined = join(joined, self.value(part)?);
        }
        Some(joined)
    }

    fn reduced(&mut self, scope: &Scope) -> Option<f64> {
        let (mut joined, mut count): (Option<f64>, f64) = (None, 0.0);
        self.each(&scope.over, &scope.guards, &scope.body, &mut |_, value| {
            count += 1.0;
            joined = Some(match (joined, scope.operation) {
                (None, _) => value,
                (Some(so_far), Operation::Sum | Operation::Avg | Operation::Count) => so_far + value,
                (Some(so_far), Operation::Product) => so_far * value,
                (Some(so_far), Operation::Max) => larger(so_far, value),
                (Some(so_far), Operation::Min) => smaller(so_far, value),
            });
        });
        match (joined, scope.operation) {
            (Some(_), Operation::Count) => Some(count),
            (Some(sum), Operation::Avg) => Some(sum / count),
            (joined, _) => joined.or(scope.empty),
        }
    }
}

/// Sets all loops to their first values; whether there is one for each.
fn begin(loops: &[Loop], registers: &mut [i64]) -> bool {
    loops.iter().for_each(|one| registers[one.register] = one.from);
    loops.iter().all(|one| one.from <= one.to)
}

/// The next binding, the last loop the fastest.
fn next(loops: &[Loop], registers: &mut [i64]) -> bool {
    for one in loops.iter().rev() {
        if registers[one.register] < one.to {
            registers[one.register] += 1;
            return true;
        }
        registers[one.register] = one.from;
    }
    false
}
