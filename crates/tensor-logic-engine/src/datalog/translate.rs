//! One equation of the core form as rules.

use std::sync::Arc;

use super::Compiler;
use crate::ast::Comparison;
use crate::linear::{linear, solve};
use crate::program::{
    Argument, Combine, Expr, Given, Guard, IndexFn, IndexId, Kind, Otherwise, Program, Range, Read, Role,
    Style, Tensor, TensorId, Term, When,
};
use crate::value::{Const, Domain};
use datarel::rule::{Computed, Select};
use datarel::{self, Atom, Literal, RelationId, Ring, Rule, SymbolId, Times, Variable};

/// A constant that no tuple has.
const NOTHING: Const = Const::Symbol(SymbolId(u32::MAX));

/// The value of a body: factors joined by one operation.
#[derive(Debug, Default)]
struct Body<'a> {
    reads: Vec<&'a Read>,
    missing: Vec<&'a Read>,
    numbers: Vec<f64>,
    indices: Vec<&'a IndexFn>,
    whens: Vec<&'a When>,
    /// `None` while at most one factor has been seen.
    operation: Option<Times>,
}

impl<'a> Body<'a> {
    /// The parts of an expression, or `None` where it is no product in one operation.
    fn of(expr: &'a Expr) -> Option<Body<'a>> {
        let mut body = Body::default();
        body.take(expr, None)?;
        Some(body)
    }

    fn take(&mut self, expr: &'a Expr, inside: Option<Times>) -> Option<()> {
        let mut join = |parts: &mut dyn Iterator<Item = &'a Expr>, operation: Times| {
            if inside.is_some_and(|known| known != operation)
                || self.operation.is_some_and(|known| known != operation)
            {
                return None;
            }
            self.operation = Some(operation);
            for part in parts {
                self.take(part, Some(operation))?;
            }
            Some(())
        };
        match expr {
            Expr::Number(value) => self.numbers.push(*value),
            Expr::Index(function) => self.indices.push(function),
            Expr::Read(read) if read.otherwise != Otherwise::ZeroOutside => self.reads.push(read),
            Expr::Missing(read) if inside != Some(Times::Plus) => self.missing.push(read),
            Expr::Product(parts) => join(&mut parts.iter(), Times::Times)?,
            Expr::Plus(parts) => join(&mut parts.iter(), Times::Plus)?,
            Expr::Call(call) if matches!(call.function, crate::function::Function::Min) => {
                if !call.when.guards.is_empty() {
                    return None;
                }
                join(&mut call.arguments.iter(), Times::Min)?;
            }
            // 1 under guards.
            Expr::Reduce(reduce)
                if reduce.over.is_empty() && !reduce.explicit && matches!(reduce.body, Expr::Number(1.0)) =>
            {
                if inside == Some(Times::Plus) {
                    return None;
                }
                self.whens.push(&reduce.when);
            }
            _ => return None,
        }
        Some(())
    }
}

/// A rule that grows.
struct Draft<'c> {
    compiler: &'c mut Compiler,
    program: &'c Program,
    variables: Vec<IndexId>,
    next: u32,
    literals: Vec<Literal>,
    /// Indices that stand alone where every value lies in their range.
    inside: Vec<IndexId>,
}

/// Whether the equations of a tensor join factors by an operation.
pub(super) fn multiplies(program: &Program, id: TensorId) -> bool {
    let own = program.equations.iter().filter(|equation| equation.tensor == id);
    own.flat_map(|equation| &equation.terms)
        .any(|term| Body::of(&term.body).is_none_or(|body| body.operation.is_some()))
}

/// Whether all values of a relation are given and above 0: then a product of some of them is too.
fn positive(program: &Program, id: TensorId) -> bool {
    let tensor = program.tensor(id);
    let value = |value: &f64| (1e-9..=1e9).contains(value);
    let above = |given: &Given| match given {
        Given::Facts(facts) => facts.values.iter().all(value),
        Given::Columns(columns) => columns.values.iter().flat_map(|values| values.iter()).all(value),
        Given::Array { .. } => false,
    };
    tensor.kind == Kind::Bool || (tensor.role == Role::Data && tensor.given.iter().all(above))
}

/// The operation by which the equations of a tensor multiply; `None` where they differ.
pub(super) fn times_of(program: &Program, id: TensorId) -> Option<Times> {
    let mut times = None;
    for equation in program.equations.iter().filter(|equation| equation.tensor == id) {
        for term in &equation.terms {
            let body = Body::of(&term.body)?;
            let Some(operation) = body.operation else { continue };
            if times.is_some_and(|known| known != operation) {
                return None;
            }
            times = Some(operation);
        }
    }
    Some(times.unwrap_or(Times::Times))
}

impl Compiler {
    /// The rules of a tensor.
    pub(super) fn equations(&mut self, program: &Program, id: TensorId) -> Option<Vec<Rule>> {
        let own = (0..).zip(&program.equations).filter(|(_, equation)| equation.tensor == id);
        let terms =
            own.flat_map(|(at, equation)| equation.terms.iter().map(move |term| (at, equation, term)));
        let rules = terms.map(|(at, equation, term)| {
            let rule = self.term(program, id, &equation.head, term)?;
            Some(Rule { origin: Some(at), ..rule })
        });
        let mut rules: Vec<Rule> = rules.collect::<Option<_>>()?;
        rules.append(&mut self.conditions);
        Some(rules)
    }

    fn term(&mut self, program: &Program, tensor: TensorId, head: &[IndexFn], term: &Term) -> Option<Rule> {
        let relation = *self.relations.get(&tensor)?;
        let ring = self.database.relation(relation).ring();
        let body = Body::of(&term.body)?;
        let mut draft = Draft::new(self, program);
        let counted = matches!(ring.combine, datarel::Combine::Sum | datarel::Combine::Count);
        for read in &body.reads {
            // A tuple of a Boolean head exists if the sum is > 0: values may be negative.
            if !ring.valued() && (body.reads.len() > 16 || !positive(program, read.tensor)) {
                return None;
            }
            let mut atom = draft.element(read, ring, program.tensor(tensor))?;
            atom.factor = ring.valued();
            draft.literals.push(Literal::Atom(atom));
        }
        for when in body.whens.iter().copied().chain([&term.when]) {
            draft.when(when, counted)?;
        }
        for read in &body.missing {
            let atom = draft.missing(read)?;
            draft.literals.push(Literal::Not(atom));
        }
        let mut head_terms = Vec::new();
        for (place, function) in head.iter().enumerate() {
            let computed = draft.function(function)?;
            let place = program.tensor(tensor).places.get(place)?;
            let limit = match program.tensor(tensor).style {
                Style::Round => place.limit.as_ref(),
                Style::Square => place.domain.as_ref(),
            };
            if let Some(limit) = limit.filter(|limit| draft.range(function) != Some(limit)) {
                draft.within(computed, limit)?;
            }
            head_terms.push(computed);
        }
        draft.declared()?;
        let (weight, computed) = draft.numbers(&body, ring)?;
        let mut rule = Rule::new(relation, head_terms, std::mem::take(&mut draft.literals));
        rule.weight = weight;
        rule.computed = computed;
        Some(rule)
    }
}

impl<'c> Draft<'c> {
    fn new(compiler: &'c mut Compiler, program: &'c Program) -> Draft<'c> {
        let (variables, literals, inside) = (Vec::new(), Vec::new(), Vec::new());
        Draft { compiler, program, variables, next: 0, literals, inside }
    }

    /// The domain of an index that stands alone.
    fn range(&self, function: &IndexFn) -> Option<&'c Domain> {
        match &self.program.index(function.alone()?).range {
            Range::Domain(domain) => Some(domain),
            Range::Tuples | Range::Computed => None,
        }
    }

    /// The atom of a factor. Elements of a square tensor that are the default are no tuples: under the least of sums they
    /// add nothing to a square head of the same kind; where all are given, they all are tuples.
    fn element(&mut self, read: &Read, ring: Ring, head: &Tensor) -> Option<Atom> {
        let tensor = self.program.tensor(read.tensor);
        if tensor.style == Style::Square {
            let least = matches!(ring.combine, datarel::Combine::Min | datarel::Combine::Max);
            let given = tensor.role == Role::Data && tensor.combine == Combine::Sum;
            let same = tensor.combine == head.combine && head.style == Style::Square;
            let suits = least && read.otherwise == Otherwise::Zero && (given || same);
            return if suits { self.atom_of(read) } else { None };
        }
        if read.otherwise == Otherwise::Absent { self.atom(read) } else { None }
    }

    fn variable(&mut self, index: IndexId) -> datarel::Term {
        let at = match self.variables.iter().position(|known| *known == index) {
            Some(at) => at,
            None => {
                self.variables.push(index);
                self.variables.len() - 1
            }
        };
        // Fresh variables are numbered behind those of indices, from the top.
        datarel::Term::Variable(Variable(2 * at as u32))
    }

    fn fresh(&mut self) -> datarel::Term {
        self.next += 1;
        datarel::Term::Variable(Variable(2 * self.next - 1))
    }

    fn constant(&mut self, value: Const) -> Option<datarel::Term> {
        Some(datarel::Term::Constant(self.compiler.database.constants.intern(value).ok()?))
    }

    /// The atom of a read of a relation.
    fn atom(&mut self, read: &Read) -> Option<Atom> {
        if self.program.tensor(read.tensor).style != Style::Round {
            return None;
        }
        self.atom_of(read)
    }

    fn atom_of(&mut self, read: &Read) -> Option<Atom> {
        let relation: RelationId = *self.compiler.relations.get(&read.tensor)?;
        let tensor = self.program.tensor(read.tensor);
        let mut terms = Vec::new();
        for (argument, place) in read.arguments.iter().zip(&tensor.places) {
            terms.push(match argument {
                Argument::Any => datarel::Term::Any,
                Argument::At(function) => self.function(function)?,
            });
            let values = if tensor.style == Style::Round { &place.limit } else { &place.domain };
            if let Argument::At(function) = argument
                && let (Some(index), Some(range), Some(values)) =
                    (function.alone(), self.range(function), values)
                && range == values
            {
                self.inside.push(index);
            }
        }
        Some(Atom::new(relation, terms))
    }

    /// An index function as a term; a computed one becomes a fresh variable.
    fn function(&mut self, function: &IndexFn) -> Option<datarel::Term> {
        match function {
            IndexFn::Const(value) => self.constant(*value),
            IndexFn::Index(index) => Some(self.variable(*index)),
            IndexFn::Ordinal(_) => None,
            IndexFn::Add(a, b) => match (a.as_ref(), b.as_ref()) {
                (IndexFn::Index(index), IndexFn::Const(Const::Int(by)))
                | (IndexFn::Const(Const::Int(by)), IndexFn::Index(index)) => self.shifted(*index, *by),
                _ => self.computed(function),
            },
            IndexFn::Subtract(a, b) => match (a.as_ref(), b.as_ref()) {
                (IndexFn::Index(index), IndexFn::Const(Const::Int(by))) => {
                    let by = by.checked_neg()?;
                    self.shifted(*index, by)
                }
                (IndexFn::Const(Const::Int(from)), IndexFn::Index(index)) => self.mirrored(*from, *index),
                _ => self.computed(function),
            },
            _ => self.computed(function),
        }
    }

    fn shifted(&mut self, index: IndexId, by: i64) -> Option<datarel::Term> {
        let from = self.variable(index);
        let to = self.fresh();
        self.literals.push(Literal::Shift { to, from, by });
        Some(to)
    }

    /// `c - x`, which gives `x` back too.
    fn mirrored(&mut self, from: i64, index: IndexId) -> Option<datarel::Term> {
        let x = self.variable(index);
        let result = self.fresh();
        for (result, argument) in [(result, x), (x, result)] {
            self.literals.push(Literal::Compute {
                result,
                arguments: vec![argument],
                function: Arc::new(move |values| Some(Const::Int(from.checked_sub(values.first()?.int()?)?))),
            });
            // The one that can be computed first binds; the other then compares.
        }
        Some(result)
    }

    fn computed(&mut self, function: &IndexFn) -> Option<datarel::Term> {
        let (arguments, evaluate) = self.closure(function)?;
        let result = self.fresh();
        self.literals.push(Literal::Compute { result, arguments, function: evaluate });
        Some(result)
    }

    /// The variables of a function, and the function of their values.
    fn closure(&mut self, function: &IndexFn) -> Option<(Vec<datarel::Term>, datarel::rule::Function)> {
        let mut indices: Vec<IndexId> = Vec::new();
        let mut ordinal = false;
        function.visit(&mut |index| {
            if !indices.contains(&index) {
                indices.push(index);
            }
        });
        has_ordinal(function, &mut ordinal);
        if ordinal {
            return None;
        }
        let arguments = indices.iter().map(|index| self.variable(*index)).collect();
        let function = function.clone();
        let evaluate = move |values: &[Const]| {
            let of = |id: IndexId| {
                indices.iter().position(|known| *known == id).and_then(|at| values.get(at).copied())
            };
            function.evaluate(&of, &|_| None)
        };
        Some((arguments, Arc::new(evaluate)))
    }

    fn when(&mut self, when: &When, counted: bool) -> Option<()> {
        // Where bindings are counted, what merely exists must not be.
        if counted && !when.exists.is_empty() {
            return None;
        }
        for guard in &when.guards {
            self.guard(guard)?;
        }
        Some(())
    }

    fn guard(&mut self, guard: &Guard) -> Option<()> {
        let literal = match guard {
            Guard::Read(read) if read.otherwise == Otherwise::Absent => Literal::Atom(self.atom(read)?),
            Guard::Not(read) if read.otherwise == Otherwise::Absent => Literal::Not(self.missing(read)?),
            Guard::Read(_) | Guard::Not(_) => return None,
            Guard::Compare(sign, left, right) => Literal::Atom(self.condition(*sign, left, right)?),
            Guard::CompareIndex(sign, left, right) => self.comparison(*sign, left, right)?,
            Guard::Bind(index, function) => {
                let result = self.variable(*index);
                match function {
                    IndexFn::Add(a, b) => match (a.as_ref(), b.as_ref()) {
                        (IndexFn::Index(from), IndexFn::Const(Const::Int(by))) => {
                            Literal::Shift { to: result, from: self.variable(*from), by: *by }
                        }
                        _ => self.bind(result, function)?,
                    },
                    _ => self.bind(result, function)?,
                }
            }
        };
        self.literals.push(literal);
        Some(())
    }

    /// The atom under `not`.
    fn missing(&mut self, read: &Read) -> Option<Atom> {
        let round = self.program.tensor(read.tensor).style == Style::Round;
        if !round {
            return None;
        }
        let relation: RelationId = *self.compiler.relations.get(&read.tensor)?;
        let mut terms = Vec::new();
        for argument in &read.arguments {
            terms.push(match argument {
                Argument::Any => datarel::Term::Any,
                Argument::At(function @ (IndexFn::Const(_) | IndexFn::Index(_))) => {
                    self.function(function)?
                }
                Argument::At(function) => {
                    // Where it has no value, there is no such tuple.
                    let (arguments, evaluate) = self.closure(function)?;
                    let result = self.fresh();
                    let function: datarel::rule::Function =
                        Arc::new(move |values| Some(evaluate(values).unwrap_or(NOTHING)));
                    self.literals.push(Literal::Compute { result, arguments, function });
                    result
                }
            });
        }
        Some(Atom::new(relation, terms))
    }

    /// A comparison of a product of elements with a number, as a relation of its own over its indices.
    fn condition(&mut self, sign: Comparison, left: &Expr, right: &Expr) -> Option<Atom> {
        let number = |expr: &Expr| matches!(expr, Expr::Number(_) | Expr::Index(_));
        let (sign, product, other) = match (number(left), number(right)) {
            (false, true) => (sign, left, right),
            (true, false) => (sign.turned(), right, left),
            _ => return None,
        };
        let body = Body::of(product).filter(|body| body.missing.is_empty() && body.whens.is_empty())?;
        let mut draft = Draft::new(self.compiler, self.program);
        for read in &body.reads {
            if read.otherwise != Otherwise::Absent {
                return None;
            }
            let mut atom = draft.atom(read)?;
            atom.factor = true;
            draft.literals.push(Literal::Atom(atom));
        }
        let times = body.operation.unwrap_or(Times::Times);
        let (weight, computed) = draft.numbers(&body, Ring { combine: datarel::Combine::Sum, times })?;
        let own = draft.variables.clone();
        let bound = |draft: &mut Draft<'_>, index: IndexId| {
            let variable = draft.variable(index);
            draft.literals.iter().any(|l| matches!(l, Literal::Atom(atom) if atom.terms.contains(&variable)))
        };
        let other = match other {
            Expr::Number(number) => IndexFnOr::Number(*number),
            Expr::Index(function) => IndexFnOr::Function(function.clone()),
            _ => return None,
        };
        let mut needed = own.clone();
        if let IndexFnOr::Function(function) = &other {
            let mut ordinal = false;
            has_ordinal(function, &mut ordinal);
            function.visit(&mut |index| needed.push(index));
            if ordinal {
                return None;
            }
        }
        if !needed.iter().all(|index| bound(&mut draft, *index)) || draft.variables != own {
            return None;
        }
        let head: Vec<datarel::Term> = own.iter().map(|index| draft.variable(*index)).collect();
        let literals = std::mem::take(&mut draft.literals);
        let relation = self.compiler.database.declare("condition", head.len(), Ring::BOOLEAN);
        let mut rule = Rule::new(relation, head, literals);
        let indices = own.clone();
        let test = move |values: &[Const], value: f64| {
            let of = |id: IndexId| {
                indices.iter().position(|known| *known == id).and_then(|at| values.get(at).copied())
            };
            let other = match &other {
                IndexFnOr::Number(number) => Some(*number),
                IndexFnOr::Function(function) => {
                    function.evaluate(&of, &|_| None).and_then(Const::int).map(|value| value as f64)
                }
            };
            other.is_some_and(|other| holds(sign, value, other))
        };
        (rule.weight, rule.computed) = (weight, computed);
        rule.select = Some(Select { times, test: Arc::new(test) });
        self.compiler.conditions.push(rule);
        let terms: Vec<datarel::Term> = own.iter().map(|index| self.variable(*index)).collect();
        Some(Atom::new(relation, terms))
    }

    fn bind(&mut self, result: datarel::Term, function: &IndexFn) -> Option<Literal> {
        let (arguments, function) = self.closure(function)?;
        Some(Literal::Compute { result, arguments, function })
    }

    fn comparison(&mut self, sign: Comparison, left: &IndexFn, right: &IndexFn) -> Option<Literal> {
        let plain = |side: &IndexFn| matches!(side, IndexFn::Index(_) | IndexFn::Const(_));
        if plain(left) && plain(right) {
            return Some(Literal::Compare(sign, self.function(left)?, self.function(right)?));
        }
        if sign == Comparison::Equal {
            self.solved(left, right);
        }
        let (mut arguments, first) = self.closure(left)?;
        let (more, second) = self.closure(right)?;
        let split = arguments.len();
        arguments.extend(more);
        let test = move |values: &[Const]| {
            let (a, b) = values.split_at(split.min(values.len()));
            match (first(a), second(b)) {
                (Some(a), Some(b)) => sign.holds(a, b),
                _ => false,
            }
        };
        Some(Literal::Test { arguments, test: Arc::new(test) })
    }

    /// What an equation says of each of its indices, given the others: so that a join follows it, instead of listing all
    /// pairs and asking of each whether it holds. The equation itself stays to be asked.
    fn solved(&mut self, left: &IndexFn, right: &IndexFn) {
        let difference = IndexFn::Subtract(Box::new(left.clone()), Box::new(right.clone()));
        let Some((terms, constant)) = linear(&difference) else {
            // `y = x / 2` says what y is.
            for (own, other) in [(left, right), (right, left)] {
                let IndexFn::Index(index) = own else { continue };
                let (Some((arguments, function)), result) = (self.closure(other), self.variable(*index))
                else {
                    continue;
                };
                if !arguments.contains(&result) {
                    self.literals.push(Literal::Compute { result, arguments, function });
                }
            }
            return;
        };
        let indices: Vec<IndexId> = terms.iter().map(|(index, _)| *index).collect();
        for (index, _) in terms.iter().filter(|(_, coefficient)| *coefficient != 0) {
            let others: Vec<IndexId> = indices.iter().copied().filter(|other| other != index).collect();
            let result = self.variable(*index);
            let arguments = others.iter().map(|other| self.variable(*other)).collect();
            let (terms, index) = (terms.clone(), *index);
            let function = move |values: &[Const]| {
                let value = |id: IndexId| values.get(others.iter().position(|other| *other == id)?)?.int();
                solve(&terms, i128::from(constant), index, &value).map(Const::Int)
            };
            self.literals.push(Literal::Compute { result, arguments, function: Arc::new(function) });
        }
    }

    /// A term stays inside a domain.
    fn within(&mut self, term: datarel::Term, domain: &Domain) -> Option<()> {
        let domain = domain.clone();
        let test = move |values: &[Const]| values.first().is_some_and(|value| domain.contains(*value));
        self.literals.push(Literal::Test { arguments: vec![term], test: Arc::new(test) });
        Some(())
    }

    /// Indices with domains: those that an atom binds are tested, the others enumerated.
    fn declared(&mut self) -> Option<()> {
        for at in 0..self.variables.len() {
            let index = *self.variables.get(at)?;
            let Range::Domain(domain) = self.program.index(index).range.clone() else { continue };
            if self.inside.contains(&index) {
                continue;
            }
            let variable = self.variable(index);
            if self.bound().contains(&variable) {
                self.within(variable, &domain)?;
                continue;
            }
            let relation = self.compiler.domain(&domain)?;
            self.literals.push(Literal::Atom(Atom::new(relation, vec![variable])));
        }
        Some(())
    }

    /// The terms that atoms bind, and those that are computed from such.
    fn bound(&self) -> Vec<datarel::Term> {
        let mut bound: Vec<datarel::Term> = Vec::new();
        for literal in &self.literals {
            if let Literal::Atom(atom) = literal {
                bound.extend(&atom.terms);
            }
        }
        let mut before = usize::MAX;
        while before != bound.len() {
            before = bound.len();
            for literal in &self.literals {
                let known =
                    |term: &datarel::Term| matches!(term, datarel::Term::Constant(_)) || bound.contains(term);
                let made = match literal {
                    Literal::Shift { to, from, .. } if known(from) => to,
                    Literal::Shift { to, from, .. } if known(to) => from,
                    Literal::Compute { result, arguments, .. } if arguments.iter().all(known) => result,
                    _ => continue,
                };
                if !bound.contains(made) {
                    bound.push(*made);
                }
            }
        }
        bound
    }

    /// The constant factor, and those that are made from indices.
    fn numbers(&mut self, body: &Body<'_>, ring: Ring) -> Option<(Option<datarel::Value>, Vec<Computed>)> {
        if !ring.valued() {
            // A Boolean head: a positive constant changes nothing, another one decides.
            let positive = body.numbers.iter().all(|number| *number > 0.0);
            return (positive && body.indices.is_empty()).then(|| (None, Vec::new()));
        }
        let value = |number: f64| {
            if !ring.counts() {
                return Some(datarel::Value::real(number));
            }
            (number.fract() == 0.0 && number.abs() < 9e15).then(|| datarel::Value::count(number as i64))
        };
        let mut weight: Option<datarel::Value> = None;
        for number in &body.numbers {
            let number = value(*number)?;
            weight = Some(match weight {
                Some(known) => ring.times(known, number)?,
                None => number,
            });
        }
        let mut computed = Vec::new();
        for function in &body.indices {
            let (arguments, evaluate) = self.closure(function)?;
            let counts = ring.counts();
            let measure = move |values: &[Const]| {
                let number = evaluate(values)?.int()?;
                Some(if counts { datarel::Value::count(number) } else { datarel::Value::real(number as f64) })
            };
            computed.push(Computed { arguments, measure: Arc::new(measure) });
        }
        // Without a factor the value is the number 1, which is 1̄ only under multiplication.
        let nothing = weight.is_none() && computed.is_empty() && body.reads.is_empty();
        Some((if nothing { Some(ring.unit()) } else { weight }, computed))
    }
}

impl Compiler {
    fn domain(&mut self, domain: &Domain) -> Option<RelationId> {
        if let Some((_, relation)) = self.domains.iter().find(|(known, _)| known == domain) {
            return Some(*relation);
        }
        // A domain that is larger than any relation should be is left to the other engine.
        if domain.len() > 10_000_000 {
            return None;
        }
        let relation = self.database.declare("domain", 1, Ring::BOOLEAN);
        let mut rows = Vec::new();
        for value in domain.values() {
            rows.push(self.database.constants.intern(value).ok()?);
        }
        if !rows.is_empty() {
            self.database.insert(relation, &rows, &[]).ok()?;
        }
        self.domains.push((domain.clone(), relation));
        Some(relation)
    }
}

/// What a product of elements is compared with.
enum IndexFnOr {
    Number(f64),
    Function(IndexFn),
}

fn holds(sign: Comparison, a: f64, b: f64) -> bool {
    match sign {
        Comparison::Less => a < b,
        Comparison::LessEqual => a <= b,
        Comparison::Greater => a > b,
        Comparison::GreaterEqual => a >= b,
        Comparison::Equal => a == b,
        Comparison::NotEqual => a != b,
    }
}

fn has_ordinal(function: &IndexFn, found: &mut bool) {
    match function {
        IndexFn::Ordinal(_) => *found = true,
        IndexFn::Const(_) | IndexFn::Index(_) => {}
        IndexFn::Negate(a) => has_ordinal(a, found),
        IndexFn::Add(a, b)
        | IndexFn::Subtract(a, b)
        | IndexFn::Multiply(a, b)
        | IndexFn::Divide(a, b)
        | IndexFn::Remainder(a, b) => {
            has_ordinal(a, found);
            has_ordinal(b, found);
        }
    }
}
