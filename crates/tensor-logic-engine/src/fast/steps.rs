//! Recursion step by step where a step is a few numbers: loops over numbers in place of blocks.
//!
//! Enter at [`Machine::small_steps`]. A block pays when it holds many elements; a recursion of a million
//! scalar steps would make a million blocks of one. What qualifies (square tensors, linear index
//! functions, sums over short ranges, no relations) is compiled into a tree whose reads know where they
//! look, and run once for each step. Everything else goes the general way, with the same result.

use std::collections::HashMap;
use std::sync::Arc;

use super::head::join;
use super::machine::{Machine, Stored};
use crate::ast::Comparison;
use crate::error::Result;
use crate::function::{Function, power};
use crate::kernels::strides;
use crate::linear::linear;
use crate::program::{
    Argument, Combine, Component, Equation, Expr, Guard, IndexFn, IndexId, Kind, Moving, Operation,
    Otherwise, Program, Range, Read, Steps, Style, TensorId, When,
};
use crate::value::{Const, Domain};

/// A step of more bindings is left to blocks.
const SMALL: usize = 512;

/// `constant + Σ coefficient · index`, the indices in registers.
#[derive(Debug)]
struct Linear {
    terms: Vec<(usize, i64)>,
    constant: i64,
}

/// A place of an element: its position, which must be below the size, and how far apart positions lie.
#[derive(Debug)]
struct Place {
    position: Linear,
    size: i64,
    stride: usize,
}

/// A value; absent where a part of it is.
#[derive(Debug)]
enum Node {
    Number(f64),
    Index(Linear),
    /// An element of a tensor; 0 outside of it if `zero`.
    Read {
        tensor: usize,
        places: Vec<Place>,
        zero: bool,
    },
    Product(Vec<Node>),
    Plus(Vec<Node>),
    /// The sum of those present.
    Terms(Vec<Node>),
    Quotient(Box<(Node, Node)>),
    Power(Box<(Node, Node)>),
    Negate(Box<Node>),
    Call(Function, Vec<Node>),
    /// A sum over the ranges of registers; over nothing 0 if `explicit`.
    Sum {
        over: Vec<Loop>,
        guards: Vec<Test>,
        body: Box<Node>,
        explicit: bool,
    },
}

/// A register and the values that it takes.
#[derive(Debug, Clone, Copy)]
struct Loop {
    register: usize,
    from: i64,
    to: i64,
}

#[derive(Debug)]
struct Test(Comparison, Linear, Linear);

/// Contributions to one tensor.
#[derive(Debug)]
struct Rule {
    tensor: usize,
    combine: Combine,
    head: Vec<Place>,
    /// What stands at the moving place.
    moving: Linear,
    /// The register that follows the step; none where the place is a constant.
    follows: Option<Loop>,
    free: Vec<Loop>,
    terms: Vec<(Vec<Loop>, Vec<Test>, Node)>,
}

/// What is being compiled.
struct Compiler<'m> {
    machine: &'m Machine,
    program: &'m Program,
    registers: HashMap<IndexId, usize>,
    tensors: Vec<TensorId>,
    /// Bindings of a step.
    work: usize,
}

/// The numbers of tensors and the values of indices.
struct State {
    values: Vec<Values>,
    registers: Vec<i64>,
}

enum Values {
    Own(Vec<f64>),
    Given(Arc<Vec<f64>>),
}

impl Machine {
    /// Whether a stepped component qualifies, as far as its tensors are kept now.
    pub(crate) fn is_small(&self, component: &Component, steps: &Steps) -> bool {
        Compiler::compile(self, &self.program, component, steps).is_some()
    }

    /// Evaluates a stepped component by loops over numbers, if it qualifies.
    pub(crate) fn small_steps(&mut self, component: &Component, steps: &Steps) -> Result<bool> {
        let program = Arc::clone(&self.program);
        let Some((mut compiler, rules)) = Compiler::compile(self, &program, component, steps) else {
            return Ok(false);
        };
        let tensors = std::mem::take(&mut compiler.tensors);
        let registers = vec![0; compiler.registers.len()];
        let Some((order, up)) = moves(&program, steps) else { return Ok(false) };
        for id in &component.tensors {
            self.head = self.program.left_side(*id);
            let given = self.given(*id, None)?;
            let stored = self.finish(*id, given);
            self.store(*id, stored);
        }
        let own = component.tensors.len();
        let mut values = Vec::with_capacity(tensors.len());
        for (at, id) in tensors.iter().enumerate() {
            let Some(Stored::Dense(array)) = self.stored(*id) else { return Ok(false) };
            let doubles = self.numbers(array).doubles();
            values.push(if at < own { Values::Own(doubles.to_vec()) } else { Values::Given(doubles) });
        }
        let mut state = State { values, registers };
        let (from, to) = (order.from, order.to);
        let mut step = if up { from } else { to };
        let mut taken = 0_u32;
        while from <= step && step <= to {
            taken = taken.wrapping_add(1);
            if taken.is_multiple_of(1 << 12) {
                self.stop.check(self.head)?;
            }
            rules.iter().for_each(|rule| state.rule(rule, step));
            step += if up { 1 } else { -1 };
        }
        for (id, values) in tensors.iter().zip(state.values).take(own) {
            if let Values::Own(values) = values {
                let array = self.given_array(&values);
                self.store(*id, Stored::Dense(array));
            }
        }
        Ok(true)
    }
}

/// All steps of a component, and whether they go up.
fn moves(program: &Program, steps: &Steps) -> Option<(Loop, bool)> {
    let mut found: Option<(Loop, bool, usize)> = None;
    for (id, moving) in &steps.places {
        let [moving] = moving.as_slice() else { return None };
        let Some(Domain::Interval { from, to }) = &program.tensor(*id).places.get(moving.place)?.domain
        else {
            return None;
        };
        let (from, to) = (from.checked_add(moving.shift)?, to.checked_add(moving.shift)?);
        let (mut all, up, cycle) = found.unwrap_or((Loop { register: 0, from, to }, moving.up, moving.cycle));
        if up != moving.up || cycle != moving.cycle {
            return None;
        }
        all.from = all.from.min(from);
        all.to = all.to.max(to);
        found = Some((all, up, cycle));
    }
    found.map(|(all, up, _)| (all, up))
}

/// The ends of an interval, if they are so near to 0 that arithmetic on them stays within 64 bits.
fn ends(domain: &Domain) -> Option<(i64, i64)> {
    let near = |end: i64| end.unsigned_abs() < 1 << 30;
    match domain {
        Domain::Interval { from, to } if near(*from) && near(*to) => Some((*from, *to)),
        _ => None,
    }
}

impl<'m> Compiler<'m> {
    /// The rules of a component in the order of a step, if all of it qualifies.
    fn compile(
        machine: &'m Machine,
        program: &'m Program,
        component: &Component,
        steps: &Steps,
    ) -> Option<(Compiler<'m>, Vec<Rule>)> {
        moves(program, steps)?;
        let mut compiler = Compiler {
            machine,
            program,
            registers: HashMap::new(),
            tensors: component.tensors.clone(),
            work: 0,
        };
        let mut rules = Vec::new();
        for (id, moving) in &steps.places {
            let tensor = program.tensor(*id);
            let moving = *moving.first()?;
            let joins = matches!(tensor.combine, Combine::Sum | Combine::Max | Combine::Min | Combine::Times);
            if tensor.style != Style::Square || tensor.kind == Kind::Count || !joins {
                return None;
            }
            for at in &component.equations {
                let equation = program.equation(*at);
                if equation.tensor == *id {
                    rules.push(compiler.rule(equation, moving)?);
                }
            }
        }
        (compiler.work <= SMALL).then_some((compiler, rules))
    }

    fn rule(&mut self, equation: &Equation, moves: Moving) -> Option<Rule> {
        let mut moving = self.linear(equation.head.get(moves.place)?)?;
        moving.constant = moving.constant.checked_add(moves.shift)?;
        let mut follows = None;
        let mut free = self.loops(&equation.left)?;
        match moving.terms.as_slice() {
            [] => {}
            [(register, 1 | -1)] => {
                let at = free.iter().position(|one| one.register == *register)?;
                follows = Some(free.remove(at));
            }
            _ => return None,
        }
        let tensor = self.tensor(equation.tensor)?;
        let head = self.places(equation.tensor, &equation.head)?;
        let bindings = size(&free);
        let mut terms = Vec::new();
        for term in &equation.terms {
            let over = self.loops(&term.over)?;
            let times = bindings.checked_mul(size(&over))?;
            self.work = self.work.checked_add(times)?;
            let guards = self.guards(&term.when)?;
            terms.push((over, guards, self.node(&term.body, times)?));
        }
        let combine = self.program.tensor(equation.tensor).combine;
        Some(Rule { tensor, combine, head, moving, follows, free, terms })
    }

    fn register(&mut self, index: IndexId) -> usize {
        let next = self.registers.len();
        *self.registers.entry(index).or_insert(next)
    }

    fn loops(&mut self, indices: &[IndexId]) -> Option<Vec<Loop>> {
        let one = |index: &IndexId| {
            let Range::Domain(domain) = &self.program.index(*index).range else { return None };
            let (from, to) = ends(domain)?;
            Some(Loop { register: self.register(*index), from, to })
        };
        indices.iter().map(one).collect()
    }

    fn linear(&mut self, function: &IndexFn) -> Option<Linear> {
        let (terms, constant) = linear(function)?;
        let small = |value: i64| value.unsigned_abs() < 1 << 30;
        let fine = small(constant) && terms.iter().all(|(_, coefficient)| small(*coefficient));
        let terms = terms.into_iter().map(|(index, c)| (self.register(index), c)).collect();
        fine.then_some(Linear { terms, constant })
    }

    fn tensor(&mut self, id: TensorId) -> Option<usize> {
        if let Some(known) = self.tensors.iter().position(|other| *other == id) {
            return Some(known);
        }
        if !matches!(self.machine.stored(id), Some(Stored::Dense(_))) {
            return None;
        }
        self.tensors.push(id);
        Some(self.tensors.len() - 1)
    }

    fn places<'f>(
        &mut self,
        id: TensorId,
        functions: impl IntoIterator<Item = &'f IndexFn>,
    ) -> Option<Vec<Place>> {
        let domains = self.program.tensor(id).domains();
        let sizes: Vec<usize> = domains.iter().map(Domain::len).collect();
        let apart = strides(&sizes);
        let mut places = Vec::with_capacity(sizes.len());
        for ((function, domain), stride) in functions.into_iter().zip(&domains).zip(apart) {
            let mut position = match function {
                // A symbol stands at a position of its own.
                IndexFn::Const(value @ Const::Symbol(_)) => {
                    Linear { terms: Vec::new(), constant: domain.ordinal(*value)? as i64 }
                }
                _ => self.linear(function)?,
            };
            match (domain, function) {
                (_, IndexFn::Const(Const::Symbol(_))) => {}
                (Domain::Interval { from, .. }, _) => {
                    position.constant = position.constant.checked_sub(*from)?;
                }
                _ => return None,
            }
            places.push(Place { position, size: i64::try_from(domain.len()).ok()?, stride });
        }
        (places.len() == domains.len()).then_some(places)
    }

    fn read(&mut self, read: &Read) -> Option<Node> {
        if read.otherwise == Otherwise::Absent || self.program.tensor(read.tensor).style != Style::Square {
            return None;
        }
        let functions: Option<Vec<&IndexFn>> = read.arguments.iter().map(Argument::function).collect();
        let tensor = self.tensor(read.tensor)?;
        let places = self.places(read.tensor, functions?)?;
        Some(Node::Read { tensor, places, zero: read.otherwise == Otherwise::ZeroOutside })
    }

    fn guards(&mut self, when: &When) -> Option<Vec<Test>> {
        if !when.exists.is_empty() {
            return None;
        }
        let guards = when.guards.iter().map(|guard| match guard {
            Guard::CompareIndex(sign, a, b) => Some(Test(*sign, self.linear(a)?, self.linear(b)?)),
            _ => None,
        });
        guards.collect()
    }

    fn nodes(&mut self, parts: &[Expr], times: usize) -> Option<Vec<Node>> {
        parts.iter().map(|part| self.node(part, times)).collect()
    }

    fn two(&mut self, a: &Expr, b: &Expr, times: usize) -> Option<Box<(Node, Node)>> {
        Some(Box::new((self.node(a, times)?, self.node(b, times)?)))
    }

    /// A value that is computed so many times in a step.
    fn node(&mut self, expr: &Expr, times: usize) -> Option<Node> {
        Some(match expr {
            Expr::Number(value) => Node::Number(*value),
            Expr::Index(function) => Node::Index(self.linear(function)?),
            Expr::Read(read) => self.read(read)?,
            Expr::Product(parts) => Node::Product(self.nodes(parts, times)?),
            Expr::Plus(parts) => Node::Plus(self.nodes(parts, times)?),
            Expr::Terms(parts) => Node::Terms(self.nodes(parts, times)?),
            Expr::Quotient(a, b) => Node::Quotient(self.two(a, b, times)?),
            Expr::Power(a, b) => Node::Power(self.two(a, b, times)?),
            Expr::Negate(a) => Node::Negate(Box::new(self.node(a, times)?)),
            Expr::Call(call) if call.when.guards.is_empty() => {
                Node::Call(call.function.clone(), self.nodes(&call.arguments, times)?)
            }
            Expr::Reduce(reduce) if reduce.operation == Operation::Sum => {
                let over = self.loops(&reduce.over)?;
                let times = times.checked_mul(size(&over))?;
                self.work = self.work.checked_add(times)?;
                let guards = self.guards(&reduce.when)?;
                let body = Box::new(self.node(&reduce.body, times)?);
                Node::Sum { over, guards, body, explicit: reduce.explicit }
            }
            _ => return None,
        })
    }
}

/// How many bindings loops have together, saturating.
fn size(loops: &[Loop]) -> usize {
    let of = |one: &Loop| usize::try_from((one.to - one.from + 1).max(0)).unwrap_or(usize::MAX);
    loops.iter().fold(1, |all: usize, one| all.saturating_mul(of(one)))
}

impl Linear {
    fn value(&self, registers: &[i64]) -> i64 {
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

impl State {
    /// The contributions of one step.
    fn rule(&mut self, rule: &Rule, step: i64) {
        match (rule.follows, rule.moving.terms.as_slice()) {
            (Some(own), [(register, coefficient)]) => {
                let value = (step - rule.moving.constant) * coefficient;
                if value < own.from || value > own.to {
                    return;
                }
                self.registers[*register] = value;
            }
            _ if rule.moving.constant != step => return,
            _ => {}
        }
        let mut open = begin(&rule.free, &mut self.registers);
        while open {
            if let Some(at) = element(&rule.head, &self.registers) {
                for (over, guards, body) in &rule.terms {
                    self.each(over, guards, body, &mut |state, value| {
                        if let Some(Values::Own(values)) = state.values.get_mut(rule.tensor)
                            && let Some(slot) = values.get_mut(at)
                        {
                            join(rule.combine, slot, value);
                        }
                    });
                }
            }
            open = next(&rule.free, &mut self.registers);
        }
    }

    /// The values of a body for all bindings of loops, where it is present.
    fn each(&mut self, over: &[Loop], guards: &[Test], body: &Node, visit: &mut dyn FnMut(&mut State, f64)) {
        let mut open = begin(over, &mut self.registers);
        while open {
            let holds = guards.iter().all(|Test(sign, a, b)| {
                let (a, b) = (a.value(&self.registers), b.value(&self.registers));
                super::condition::holds(*sign, Some(a.cmp(&b)))
            });
            if holds && let Some(value) = self.value(body) {
                visit(self, value);
            }
            open = next(over, &mut self.registers);
        }
    }

    fn value(&mut self, node: &Node) -> Option<f64> {
        Some(match node {
            Node::Number(value) => *value,
            Node::Index(function) => function.value(&self.registers) as f64,
            Node::Read { tensor, places, zero } => match element(places, &self.registers) {
                Some(at) => match &self.values[*tensor] {
                    Values::Own(values) => values[at],
                    Values::Given(values) => values[at],
                },
                None if *zero => 0.0,
                None => return None,
            },
            Node::Product(parts) => {
                let (first, others) = parts.split_first()?;
                let mut product = self.value(first)?;
                for part in others {
                    product *= self.value(part)?;
                }
                product
            }
            Node::Plus(parts) => {
                let (first, others) = parts.split_first()?;
                let mut sum = self.value(first)?;
                for part in others {
                    sum += self.value(part)?;
                }
                sum
            }
            Node::Terms(parts) => {
                let mut sum: Option<f64> = None;
                for part in parts {
                    if let Some(value) = self.value(part) {
                        sum = Some(sum.map_or(value, |sum| sum + value));
                    }
                }
                sum?
            }
            Node::Quotient(both) => self.value(&both.0)? / self.value(&both.1)?,
            Node::Power(both) => power(self.value(&both.0)?, self.value(&both.1)?),
            Node::Negate(part) => -self.value(part)?,
            Node::Call(function, arguments) => match arguments.as_slice() {
                [one] => function.value(&[self.value(one)?]),
                [a, b] => function.value(&[self.value(a)?, self.value(b)?]),
                many => {
                    let values: Option<Vec<f64>> = many.iter().map(|part| self.value(part)).collect();
                    function.value(&values?)
                }
            },
            Node::Sum { over, guards, body, explicit } => {
                let mut sum: Option<f64> = None;
                self.each(over, guards, body, &mut |_, value| {
                    sum = Some(sum.map_or(value, |sum| sum + value));
                });
                match sum {
                    Some(sum) => sum,
                    None if *explicit => 0.0,
                    None => return None,
                }
            }
        })
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
