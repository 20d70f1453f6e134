//! From the equations of a component to rules over registers, if all of it qualifies.
//!
//! Enter at [`Compiler::compile`]. What reads no tensor of the component and has no node of its own (relations, symbols,
//! functions along an axis) is left to be computed apart, for all steps at once. A relation of the component, such as a
//! part of an adjoint that is owed under guards, is kept as a square with a mark for each tuple.

use std::collections::HashMap;
use std::ops::Range as Numbers;

use super::apart::{Asked, Condensed, Listing, Settle};
use super::bounds::{Bounds, bounds, ends, of};
use super::tree::{Follow, Linear, Loop, Node, Place, Rule, Scope, Term, Test, size};
use crate::ast::Comparison;
use crate::kernels::strides;
use crate::linear::linear;
use crate::program::{
    Argument, Component, Equation, Expr, Guard, IndexFn, IndexId, Moving, Operation, Otherwise, Program,
    Range, Read, Reduce, Steps, Style, TensorId, When,
};
use crate::store::condition::{Condition, free};
use crate::store::machine::{Machine, Stored};
use crate::value::{Const, Domain};

/// A step of more bindings is left to blocks.
const SMALL: usize = 512;

/// The same of steps that may be replayed (`repeated/replay.rs`), but for sums: `max[j](A[i, j] + S[t, j])` of 20 states takes
/// 8 µs a step as arrays, and 20 µs as loops.
const REPLAYED: usize = 64;

/// A component as loops over numbers.
pub(super) struct Compiled<'p> {
    pub(super) nest: Vec<Nest>,
    pub(super) rules: Vec<Rule>,
    /// What is read, the tensors of the component first.
    pub(super) tensors: Vec<TensorId>,
    pub(super) registers: HashMap<IndexId, usize>,
    /// How many registers there are, those of rows included.
    pub(super) count: usize,
    /// What is computed apart, list by list.
    pub(super) listings: Vec<Listing<'p>>,
    /// Bounds of the relations of the component.
    pub(super) bounds: Bounds,
    /// How many elements the component has, those within bounds included.
    pub(super) elements: usize,
}

/// How steps are gone through.
pub(super) enum Nest {
    Steps {
        from: i64,
        to: i64,
        up: bool,
        inner: Vec<Nest>,
    },
    /// The rules of a tensor.
    Rules(Numbers<usize>),
}

/// What is being compiled.
pub(super) struct Compiler<'m, 'p> {
    machine: &'m Machine,
    program: &'p Program,
    /// The tensors of the component.
    own: &'m [TensorId],
    pub(super) bounds: Bounds,
    registers: HashMap<IndexId, usize>,
    count: usize,
    tensors: Vec<TensorId>,
    /// Bindings of a step, and how many there may be.
    work: usize,
    most: usize,
    /// Whether there are steps within steps.
    nested: bool,
    listings: Vec<Listing<'p>>,
    /// What is computed apart for the term at hand, and how many tables there are before those.
    apart: Vec<Condensed<'p>>,
    tables: usize,
}

impl Compiler<'_, '_> {
    /// Finds the bounds of relations; how many elements all tensors have, if there are not too many.
    fn bound(&mut self, component: &Component) -> Option<usize> {
        let (bounds, elements) = bounds(self.own, self.program, component)?;
        self.bounds = bounds;
        Some(elements)
    }

    /// What the places of a tensor range over.
    fn domains(&self, id: TensorId) -> Vec<Domain> {
        self.bounds.get(&id).cloned().unwrap_or_else(|| self.program.tensor(id).domains())
    }
}

impl<'m, 'p> Compiler<'m, 'p> {
    /// A component, if all of it qualifies.
    pub(super) fn compile(
        machine: &'m Machine,
        program: &'p Program,
        component: &'m Component,
        steps: &Steps,
    ) -> Option<Compiled<'p>> {
        let own = &component.tensors;
        let mut compiler = Compiler {
            machine,
            program,
            own,
            bounds: Bounds::new(),
            registers: HashMap::new(),
            count: 0,
            tensors: own.clone(),
            work: 0,
            most: SMALL,
            nested: steps.places.iter().any(|(_, moving)| moving.len() > 1),
            listings: Vec::new(),
            apart: Vec::new(),
            tables: 0,
        };
        let elements = compiler.bound(component)?;
        let (mut rules, mut members) = (Vec::new(), Vec::new());
        for (id, moving) in &steps.places {
            if moving.is_empty() {
                return None;
            }
            let first = rules.len();
            for equation in of(program, component, *id) {
                rules.push(compiler.rule(equation, moving)?);
            }
            members.push((*id, moving.as_slice(), first..rules.len()));
        }
        let nest = compiler.nest(&members, 0)?;
        let Compiler { bounds, registers, count, tensors, work, most, listings, .. } = compiler;
        let all = members.len() == own.len() && work <= most;
        all.then_some(Compiled { nest, rules, tensors, registers, count, listings, bounds, elements })
    }

    /// How the steps of some tensors are gone through from a level on: those on one cycle together.
    fn nest(&self, members: &[(TensorId, &[Moving], Numbers<usize>)], level: usize) -> Option<Vec<Nest>> {
        let mut nest = Vec::new();
        let mut rest = members;
        while let Some((_, moving, rules)) = rest.first() {
            let Some(first) = moving.get(level) else {
                nest.push(Nest::Rules(rules.clone()));
                rest = &rest[1..];
                continue;
            };
            let along = |moving: &[Moving]| moving.get(level).is_some_and(|own| own.cycle == first.cycle);
            let end = rest.iter().position(|(_, moving, _)| !along(moving)).unwrap_or(rest.len());
            let (group, others) = rest.split_at(end);
            let mut all: Option<(i64, i64)> = None;
            for (id, moving, _) in group {
                let moving = moving.get(level).filter(|moving| moving.up == first.up)?;
                let domains = self.domains(*id);
                let Some(Domain::Interval { from, to }) = domains.get(moving.place) else { return None };
                let (from, to) = (from.checked_add(moving.shift)?, to.checked_add(moving.shift)?);
                all = Some(all.map_or((from, to), |(least, most)| (least.min(from), most.max(to))));
            }
            let (from, to) = all?;
            nest.push(Nest::Steps { from, to, up: first.up, inner: self.nest(group, level + 1)? });
            rest = others;
        }
        Some(nest)
    }

    fn rule(&mut self, equation: &'p Equation, moving: &[Moving]) -> Option<Rule> {
        let mut free = self.loops(&equation.left)?;
        let follows = self.follows(equation, moving, &mut free)?;
        let tensor = self.tensor(equation.tensor)?;
        let head = self.places(equation.tensor, &equation.head)?;
        let bindings = size(&free);
        let terms = (0..equation.terms.len()).map(|at| self.term(equation, at, bindings));
        let terms = terms.collect::<Option<_>>()?;
        // What is too much already does not become less.
        if self.work > SMALL {
            return None;
        }
        let combine = self.program.tensor(equation.tensor).combine;
        Some(Rule { tensor, combine, head, follows, free, terms })
    }

    /// What the steps say of the indices at the moving places, one index after the other; these are not free any more.
    fn follows(
        &mut self,
        equation: &Equation,
        moving: &[Moving],
        free: &mut Vec<Loop>,
    ) -> Option<Vec<Follow>> {
        let mut open = Vec::new();
        for (level, moving) in moving.iter().enumerate() {
            let mut function = self.linear(equation.head.get(moving.place)?)?;
            function.constant = function.constant.checked_add(moving.shift)?;
            open.push((level, function));
        }
        let mut follows = Vec::new();
        while !open.is_empty() {
            let unknown = |register: usize| free.iter().any(|one| one.register == register);
            let count = |(_, function): &(usize, Linear)| {
                function.terms.iter().filter(|(register, _)| unknown(*register)).count()
            };
            let next = open.iter().position(|one| count(one) <= 1)?;
            let (level, mut others) = open.remove(next);
            let own = others.terms.iter().position(|(register, _)| unknown(*register));
            let own = match own.map(|at| others.terms.remove(at)) {
                None => None,
                Some((_, 0)) => return None,
                Some((register, coefficient)) => {
                    let at = free.iter().position(|one| one.register == register)?;
                    Some((free.remove(at), coefficient))
                }
            };
            follows.push(Follow { level, others, own });
        }
        Some(follows)
    }

    fn term(&mut self, equation: &'p Equation, nth: usize, bindings: usize) -> Option<Term> {
        let term = equation.terms.get(nth)?;
        let (mut over, mut unlisted) = (Vec::new(), false);
        for index in &term.over {
            match self.one_loop(*index) {
                Some(found) => over.push(found),
                None => unlisted = true,
            }
        }
        let times = bindings.checked_mul(size(&over))?;
        self.work = self.work.checked_add(times)?;
        let (mut guards, mut asked) = (Vec::new(), Vec::new());
        for condition in Condition::of_when(&term.when) {
            let depends = self.depends_on(condition);
            match self.test(condition, depends, times) {
                Some(test) if depends => guards.push(test),
                Some(test) => asked.push(Asked { condition, settle: Settle::Test(test) }),
                None if !depends => {
                    unlisted = true;
                    asked.push(Asked { condition, settle: Settle::Mask });
                }
                None => return None,
            }
        }
        let body = self.node(&term.body, times)?;
        let apart = std::mem::take(&mut self.apart);
        if !unlisted && apart.is_empty() {
            let tests = asked.into_iter().filter_map(|asked| asked.settle.test());
            guards.extend(tests);
            return Some(Term { list: None, over, guards, body });
        }
        let mut present = Vec::new();
        Condition::of_body(&term.body, &mut present);
        present.retain(|condition| !self.depends_on(*condition));
        asked.extend(present.into_iter().map(|condition| Asked { condition, settle: Settle::Body }));
        self.tables += apart.len();
        let row = self.next();
        self.listings.push(Listing { equation, term, asked, apart, row });
        Some(Term { list: Some(self.listings.len() - 1), over, guards, body })
    }

    fn next(&mut self) -> usize {
        self.count += 1;
        self.count - 1
    }

    fn register(&mut self, index: IndexId) -> usize {
        if let Some(known) = self.registers.get(&index) {
            return *known;
        }
        let next = self.next();
        self.registers.insert(index, next);
        next
    }

    fn loops(&mut self, indices: &[IndexId]) -> Option<Vec<Loop>> {
        indices.iter().map(|index| self.one_loop(*index)).collect()
    }

    /// The values of an index, or the positions of those that are no interval.
    fn one_loop(&mut self, index: IndexId) -> Option<Loop> {
        let Range::Domain(domain) = &self.program.index(index).range else { return None };
        let (from, to) = match domain {
            Domain::Listed(_) => (0, i64::try_from(domain.len()).ok()? - 1),
            Domain::Interval { .. } => ends(domain)?,
        };
        Some(Loop { register: self.register(index), from, to })
    }

    fn linear(&mut self, function: &IndexFn) -> Option<Linear> {
        let (terms, constant) = linear(function)?;
        let small = |value: i64| value.unsigned_abs() < 1 << 30;
        let interval = |index: IndexId| match &self.program.index(index).range {
            Range::Domain(domain) => ends(domain).is_some(),
            Range::Tuples | Range::Computed => false,
        };
        let fine = small(constant) && terms.iter().all(|(index, c)| small(*c) && interval(*index));
        if !fine {
            return None;
        }
        let terms = terms.into_iter().map(|(index, c)| (self.register(index), c)).collect();
        Some(Linear { terms, constant })
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
        let domains = self.domains(id);
        let sizes: Vec<usize> = domains.iter().map(Domain::len).collect();
        let apart = strides(&sizes);
        let mut places = Vec::with_capacity(sizes.len());
        for ((function, domain), stride) in functions.into_iter().zip(&domains).zip(apart) {
            let position = self.position(function, domain)?;
            places.push(Place { position, size: i64::try_from(domain.len()).ok()?, stride });
        }
        (places.len() == domains.len()).then_some(places)
    }

    /// The position of an index function's value in a domain.
    fn position(&mut self, function: &IndexFn, domain: &Domain) -> Option<Linear> {
        let constant = |constant: i64| Linear { terms: Vec::new(), constant };
        match (domain, function) {
            (_, IndexFn::Const(value @ Const::Symbol(_))) | (Domain::Listed(_), IndexFn::Const(value)) => {
                Some(constant(domain.ordinal(*value).map_or(Some(-1), |at| i64::try_from(at).ok())?))
            }
            (Domain::Interval { from, .. }, _) => {
                let mut position = self.linear(function)?;
                position.constant = position.constant.checked_sub(*from)?;
                Some(position)
            }
            (Domain::Listed(_), IndexFn::Index(index)) => {
                let same = matches!(&self.program.index(*index).range, Range::Domain(own) if own == domain);
                let register = self.register(*index);
                same.then(|| Linear { terms: vec![(register, 1)], constant: 0 })
            }
            (Domain::Listed(_), _) => None,
        }
    }

    fn read(&mut self, read: &Read) -> Option<Node> {
        let round = self.program.tensor(read.tensor).style == Style::Round;
        // A square read of a relation asks whether it is inside of the domain.
        if round && (read.otherwise == Otherwise::Zero || !self.bounds.contains_key(&read.tensor)) {
            return None;
        }
        let functions: Option<Vec<&IndexFn>> = read.arguments.iter().map(Argument::function).collect();
        let tensor = self.tensor(read.tensor)?;
        let places = self.places(read.tensor, functions?)?;
        Some(Node::Read { tensor, places, otherwise: read.otherwise })
    }

    /// Whether a read holds as a guard.
    fn holds(&mut self, read: &Read) -> Option<Test> {
        let node = self.read(read)?;
        Some(match read.otherwise {
            Otherwise::Absent => Test::Present(node),
            Otherwise::Zero | Otherwise::ZeroOutside => Test::Positive(node),
        })
    }

    fn guard(&mut self, guard: &'p Guard, times: usize) -> Option<Test> {
        match guard {
            Guard::CompareIndex(sign, a, b) => Some(Test::Indices(*sign, self.linear(a)?, self.linear(b)?)),
            Guard::Compare(sign, a, b) => Some(Test::Values(*sign, self.both(a, b, times)?)),
            Guard::Read(read) => self.holds(read),
            Guard::Not(read) => Some(Test::Not(Box::new(self.holds(read)?))),
            Guard::Bind(index, function) => {
                let index = self.linear(&IndexFn::Index(*index))?;
                Some(Test::Indices(Comparison::Equal, index, self.linear(function)?))
            }
        }
    }

    /// Guards inside of a term: what has no test of its own is computed apart.
    fn guards(&mut self, when: &'p When, times: usize) -> Option<Vec<Test>> {
        let one = |condition: Condition<'p>| {
            let depends = self.depends_on(condition);
            match self.test(condition, depends, times) {
                None if !depends => Some(Test::Present(self.put_apart(Condensed::Condition(condition)))),
                test => test,
            }
        };
        Condition::of_when(when).into_iter().map(one).collect()
    }

    /// A test of numbers; what depends on no tensor of the component has none if parts of it would be computed apart.
    fn test(&mut self, condition: Condition<'p>, depends: bool, times: usize) -> Option<Test> {
        let Condition::Guard(guard) = condition else { return None };
        let apart = self.apart.len();
        let test = self.guard(guard, times);
        if !depends && self.apart.len() > apart {
            self.apart.truncate(apart);
            return None;
        }
        test
    }

    fn depends_on(&self, condition: Condition<'_>) -> bool {
        let mut depends = false;
        let mut see = |read: &Read| depends |= self.own.contains(&read.tensor);
        match condition {
            Condition::Guard(Guard::Compare(_, a, b)) => {
                [a, b].into_iter().for_each(|side| side.visit_reads(&mut |read, _| see(read)));
            }
            Condition::Guard(Guard::Read(read) | Guard::Not(read))
            | Condition::Present(read)
            | Condition::Listed(read)
            | Condition::Missing(read) => see(read),
            Condition::Guard(Guard::CompareIndex(..) | Guard::Bind(..)) => {}
            Condition::Some(when) => when.visit_reads(&mut |read, _| see(read)),
        }
        depends
    }

    /// What reads no tensor of the component is computed before, if its indices have values of their own.
    fn put_apart(&mut self, what: Condensed<'p>) -> Node {
        self.apart.push(what);
        Node::Apart(self.tables + self.apart.len() - 1)
    }

    fn nodes(&mut self, parts: &'p [Expr], times: usize) -> Option<Vec<Node>> {
        parts.iter().map(|part| self.node(part, times)).collect()
    }

    fn both(&mut self, a: &'p Expr, b: &'p Expr, times: usize) -> Option<Box<(Node, Node)>> {
        Some(Box::new((self.node(a, times)?, self.node(b, times)?)))
    }

    /// A value that is computed so many times in a step.
    fn node(&mut self, expr: &'p Expr, times: usize) -> Option<Node> {
        let (apart, work, tensors) = (self.apart.len(), self.work, self.tensors.len());
        let node = self.direct(expr, times);
        let mut depends = false;
        expr.visit_reads(&mut |read, _| depends |= self.own.contains(&read.tensor));
        if depends {
            return node;
        }
        let own = free(expr);
        // A table for the whole is as small as one for the part that needs it.
        let holds = |part: &Condensed<'_>| own.iter().all(|index| part.indices().contains(index));
        if let Some(node) = node
            && !self.apart.get(apart..).is_some_and(|parts| parts.iter().any(holds))
        {
            return Some(node);
        }
        self.apart.truncate(apart);
        self.tensors.truncate(tensors);
        self.work = work;
        Some(self.put_apart(Condensed::Value(expr)))
    }

    fn direct(&mut self, expr: &'p Expr, times: usize) -> Option<Node> {
        Some(match expr {
            Expr::Number(value) => Node::Number(*value),
            Expr::Index(function) => Node::Index(self.linear(function)?),
            Expr::Read(read) => self.read(read)?,
            Expr::Missing(read) => Node::Missing(Box::new(self.holds(read)?)),
            Expr::Product(parts) => Node::Product(self.nodes(parts, times)?),
            Expr::Plus(parts) => Node::Plus(self.nodes(parts, times)?),
            Expr::Terms(parts) => Node::Terms(self.nodes(parts, times)?),
            Expr::Quotient(a, b) => Node::Quotient(self.both(a, b, times)?),
            Expr::Power(a, b) => Node::Power(self.both(a, b, times)?),
            Expr::Negate(a) => Node::Negate(Box::new(self.node(a, times)?)),
            Expr::Call(call) => {
                let arguments = self.nodes(&call.arguments, times)?;
                Node::Call(call.function.clone(), arguments, self.guards(&call.when, times)?)
            }
            Expr::Reduce(reduce) => Node::Reduce(Box::new(self.scope(reduce, times)?)),
            Expr::Axis(_) => return None,
        })
    }

    fn scope(&mut self, reduce: &'p Reduce, times: usize) -> Option<Scope> {
        let over = self.loops(&reduce.over)?;
        let times = times.checked_mul(size(&over))?;
        self.work = self.work.checked_add(times)?;
        let guards = self.guards(&reduce.when, times)?;
        let body = self.node(&reduce.body, times)?;
        if !self.nested && reduce.operation != Operation::Sum && guards.is_empty() {
            self.most = REPLAYED;
        }
        let empty = match reduce.operation {
            Operation::Sum | Operation::Count => Some(0.0),
            Operation::Product => Some(1.0),
            Operation::Max | Operation::Min | Operation::Avg => None,
        };
        Some(Scope {
            operation: reduce.operation,
            over,
            guards,
            body,
            empty: empty.filter(|_| reduce.explicit),
        })
    }
}
