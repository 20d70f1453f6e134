//! Rules from equations of the core form, where they have this shape.
//!
//! Enter at [`Lowering`]: it keeps which relation stands for which tensor. Relations whose
//! contributions are products, sums or minima of elements become rules; what else the language
//! has (dense tensors, functions, quotients, means) is refused with `None`, and another executor
//! takes the component.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::ast::Comparison;
use crate::function::Function as Elementwise;
use crate::program::{
    Argument, Combine as CoreCombine, Equation, EquationId, Expr, Given, Guard, IndexFn, IndexId, Kind,
    Otherwise, Program, Range, Read, Style, TensorId, Term as CoreTerm, When,
};
use crate::value::Const;

use super::database::Database;
use super::limits::Failure;
use super::ring::{Combine, Ring, Times, Value};
use super::rule::{Atom, Function, Literal, RelationId, Rule, Term, Test};

/// Which relation stands for which tensor.
#[derive(Debug, Clone, Default)]
pub struct Lowering {
    relations: BTreeMap<TensorId, RelationId>,
}

impl Lowering {
    /// The relation of a tensor, if it has one.
    pub fn relation(&self, tensor: TensorId) -> Option<RelationId> {
        self.relations.get(&tensor).copied()
    }

    /// Declares the relation of a round tensor; its ring follows from its equations. `None` for
    /// a tensor that cannot be a relation here.
    pub fn declare(
        &mut self,
        database: &mut Database,
        program: &Program,
        tensor: TensorId,
    ) -> Option<RelationId> {
        if let Some(known) = self.relation(tensor) {
            return Some(known);
        }
        let core = program.tensor(tensor);
        let own = || program.equations.iter().filter(|equation| equation.tensor == tensor);
        let mut times = None;
        for term in own().flat_map(|equation| &equation.terms) {
            let (used, _) = factors(&term.body)?;
            if times.is_some() && used.is_some() && times != used {
                return None;
            }
            times = times.or(used);
        }
        let combine = match core.combine {
            CoreCombine::Exists | CoreCombine::Or => Combine::Exists,
            CoreCombine::Min => Combine::Min,
            CoreCombine::Max => Combine::Max,
            CoreCombine::Sum if core.kind == Kind::Count => Combine::Count,
            CoreCombine::Sum => Combine::Sum,
            CoreCombine::Times | CoreCombine::Avg => return None,
        };
        if core.style != Style::Round {
            return None;
        }
        let ring = Ring { combine, times: times.unwrap_or(Times::Times) };
        let ring = if combine == Combine::Exists { Ring::BOOLEAN } else { ring };
        let id = database.declare(core.name.clone(), core.places.len(), ring);
        self.relations.insert(tensor, id);
        Some(id)
    }

    /// Declares the relation of a round tensor that another executor computes: its tuples are
    /// inserted, no rule derives them.
    pub fn store(&mut self, database: &mut Database, program: &Program, tensor: TensorId) -> RelationId {
        if let Some(known) = self.relation(tensor) {
            return known;
        }
        let core = program.tensor(tensor);
        let ring = match core.kind {
            Kind::Bool => Ring::BOOLEAN,
            Kind::Count => Ring::COUNT,
            Kind::Real | Kind::Tropical | Kind::MaxTimes | Kind::MaxMin => Ring::REAL,
        };
        let id = database.declare(core.name.clone(), core.places.len(), ring);
        self.relations.insert(tensor, id);
        id
    }

    /// Inserts the given tuples of a tensor; false where it is given by arrays.
    ///
    /// # Errors
    /// See [`Database::insert`].
    pub fn give(
        &self,
        database: &mut Database,
        program: &Program,
        tensor: TensorId,
    ) -> Result<bool, Failure> {
        let Some(id) = self.relation(tensor) else { return Ok(false) };
        let ring = database.relation(id).ring();
        for given in &program.tensor(tensor).given {
            let Given::Facts(facts) = given else { return Ok(false) };
            let mut rows = Vec::with_capacity(facts.constants.len());
            for constant in &facts.constants {
                rows.push(database.constants.intern(*constant)?);
            }
            let number = |at| match ring.counts() {
                true => Value::count(facts.value(at) as i64),
                false => Value::real(facts.value(at)),
            };
            let values: Vec<Value> = (0..facts.count).map(number).collect();
            if facts.count > 0 {
                database.insert(id, &rows, &values)?;
            }
        }
        Ok(true)
    }

    /// The rules of an equation: one for each term. All relations it reads must be declared.
    pub fn rules(
        &self,
        database: &mut Database,
        program: &Program,
        equation: EquationId,
    ) -> Option<Vec<Rule>> {
        let equation = program.equation(equation);
        let head = self.relation(equation.tensor)?;
        let ring = database.relation(head).ring();
        let rule = |term| Rules::new(self, database, program).rule(equation, term, head, ring);
        equation.terms.iter().map(rule).collect()
    }
}

/// What is multiplied, and how; `None` for other expressions.
fn factors(body: &Expr) -> Option<(Option<Times>, Vec<&Expr>)> {
    let (times, parts): (Option<Times>, Vec<&Expr>) = match body {
        Expr::Product(parts) => (Some(Times::Times), parts.iter().collect()),
        Expr::Plus(parts) => (Some(Times::Plus), parts.iter().collect()),
        Expr::Terms(terms) if terms.len() == 1 => return factors(terms.first()?),
        Expr::Call(call) if matches!(call.function, Elementwise::Min) && call.when.guards.is_empty() => {
            (Some(Times::Min), call.arguments.iter().collect())
        }
        other => (None, vec![other]),
    };
    let simple =
        |part: &&Expr| matches!(part, Expr::Read(_) | Expr::Missing(_) | Expr::Number(_) | Expr::Index(_));
    parts.iter().all(simple).then_some((times, parts))
}

/// A rule in the making.
struct Rules<'a> {
    lowering: &'a Lowering,
    database: &'a mut Database,
    program: &'a Program,
    variables: BTreeMap<IndexId, u32>,
    next: u32,
    body: Vec<Literal>,
}

impl<'a> Rules<'a> {
    fn new(lowering: &'a Lowering, database: &'a mut Database, program: &'a Program) -> Rules<'a> {
        Rules { lowering, database, program, variables: BTreeMap::new(), next: 0, body: Vec::new() }
    }

    fn rule(mut self, equation: &Equation, term: &CoreTerm, head: RelationId, ring: Ring) -> Option<Rule> {
        let When { exists, guards } = &term.when;
        // In a sum each binding counts, but those of `exists` do not.
        if !exists.is_empty() && !ring.idempotent() {
            return None;
        }
        let (_, parts) = factors(&term.body)?;
        let mut weight: Option<Value> = None;
        let mut computed = Vec::new();
        for part in parts {
            match part {
                Expr::Read(read) => {
                    let atom = self.atom(read, true)?;
                    // A Boolean tuple exists where a number is above 0: that is no join.
                    if !ring.valued() && self.database.relation(atom.relation).ring().valued() {
                        return None;
                    }
                    self.body.push(Literal::Atom(atom));
                }
                Expr::Missing(read) if ring.times == Times::Times => {
                    let atom = self.atom(read, false)?;
                    self.body.push(Literal::Not(atom));
                }
                Expr::Number(number) if ring.valued() => {
                    let value =
                        if ring.counts() { Value::count(whole(*number)?) } else { Value::real(*number) };
                    weight = Some(weight.map_or(Some(value), |weight| ring.times(weight, value))?);
                }
                Expr::Number(number) if *number > 0.0 => {}
                Expr::Index(function) if ring.valued() => computed.push(self.measure(function, ring)?),
                _ => return None,
            }
        }
        for guard in guards {
            self.guard(guard)?;
        }
        let head_terms: Option<Vec<Term>> = equation.head.iter().map(|place| self.computed(place)).collect();
        let mut rule = Rule::new(head, head_terms?, Vec::new());
        let indices: Vec<IndexId> = self.variables.keys().copied().collect();
        for index in indices {
            self.declared(index);
        }
        (rule.body, rule.weight, rule.computed) = (self.body, weight, computed);
        Some(rule)
    }

    fn fresh(&mut self) -> Term {
        self.next += 1;
        Term::variable(self.next - 1)
    }

    fn index(&mut self, index: IndexId) -> Term {
        if let Some(known) = self.variables.get(&index) {
            return Term::variable(*known);
        }
        let term = self.fresh();
        self.variables.insert(index, self.next - 1);
        term
    }

    fn constant(&mut self, constant: Const) -> Option<Term> {
        self.database.constants.intern(constant).ok().map(Term::Constant)
    }

    /// A declared index takes the values of its domain only.
    fn declared(&mut self, index: IndexId) {
        if let Range::Domain(domain) = &self.program.index(index).range {
            let domain = domain.clone();
            let test: Test = Arc::new(move |values| values.iter().all(|value| domain.contains(*value)));
            let arguments = vec![self.index(index)];
            self.body.push(Literal::Test { arguments, test });
        }
    }

    /// A round element of a relation that was declared.
    fn atom(&mut self, read: &Read, factor: bool) -> Option<Atom> {
        if read.otherwise != Otherwise::Absent {
            return None;
        }
        let relation = self.lowering.relation(read.tensor)?;
        let mut terms = Vec::new();
        for argument in &read.arguments {
            terms.push(match argument {
                Argument::Any => Term::Any,
                Argument::At(function) => self.argument(function)?,
            });
        }
        Some(Atom { relation, terms, factor })
    }

    /// An argument of an element; `x + c` binds `x` too.
    fn argument(&mut self, function: &IndexFn) -> Option<Term> {
        if let Some((index, by)) = shifted(function) {
            let (to, from) = (self.fresh(), self.index(index));
            self.body.push(Literal::Shift { to, from, by });
            return Some(to);
        }
        if let IndexFn::Subtract(left, right) = function
            && let (IndexFn::Const(Const::Int(left)), IndexFn::Index(index)) = (&**left, &**right)
        {
            // c - x binds x: what is subtracted from c twice is x again.
            let (left, to, from) = (*left, self.fresh(), self.index(*index));
            let difference: Function = Arc::new(move |values| {
                let value = values.first()?.int()?;
                left.checked_sub(value).map(Const::Int)
            });
            self.body.push(Literal::Compute { result: from, arguments: vec![to], function: difference });
            return Some(to);
        }
        self.computed(function)
    }

    /// The term of an index function, computed where it is no index and no constant.
    fn computed(&mut self, function: &IndexFn) -> Option<Term> {
        match function {
            IndexFn::Index(index) => Some(self.index(*index)),
            IndexFn::Const(constant) => self.constant(*constant),
            _ => {
                let (arguments, function) = self.function(function)?;
                let result = self.fresh();
                self.body.push(Literal::Compute { result, arguments, function });
                Some(result)
            }
        }
    }

    /// The arguments of an index function, and the function of them.
    fn function(&mut self, function: &IndexFn) -> Option<(Vec<Term>, Function)> {
        if has_ordinal(function) {
            return None;
        }
        let mut indices = Vec::new();
        function.visit(&mut |index| indices.push(index));
        indices.sort_unstable();
        indices.dedup();
        let arguments = indices.iter().map(|index| self.index(*index)).collect();
        let function = function.clone();
        let value: Function = Arc::new(move |values| {
            let index = |id: IndexId| indices.binary_search(&id).ok().and_then(|at| values.get(at).copied());
            function.evaluate(&index, &|_| None)
        });
        Some((arguments, value))
    }

    fn measure(&mut self, function: &IndexFn, ring: Ring) -> Option<super::rule::Computed> {
        let (arguments, function) = self.function(function)?;
        let counts = ring.counts();
        let measure: super::rule::Measure = Arc::new(move |values| {
            let number = function(values)?.int()?;
            Some(if counts { Value::count(number) } else { Value::real(number as f64) })
        });
        Some(super::rule::Computed { arguments, measure })
    }

    fn guard(&mut self, guard: &Guard) -> Option<()> {
        let literal = match guard {
            Guard::Read(read) => Literal::Atom(self.atom(read, false)?),
            Guard::Not(read) => Literal::Not(self.atom(read, false)?),
            Guard::CompareIndex(sign, left, right) => self.comparison(*sign, left, right)?,
            Guard::Bind(index, function) => match shifted(function) {
                Some((from, by)) => {
                    let (to, from) = (self.index(*index), self.index(from));
                    Literal::Shift { to, from, by }
                }
                None => {
                    let (arguments, function) = self.function(function)?;
                    Literal::Compute { result: self.index(*index), arguments, function }
                }
            },
            Guard::Compare(..) => return None,
        };
        self.body.push(literal);
        Some(())
    }

    fn comparison(&mut self, sign: Comparison, left: &IndexFn, right: &IndexFn) -> Option<Literal> {
        let left = self.computed(left)?;
        let right = self.computed(right)?;
        Some(Literal::Compare(sign, left, right))
    }
}

/// `x + c`, `c + x`, `x - c`
fn shifted(function: &IndexFn) -> Option<(IndexId, i64)> {
    match function {
        IndexFn::Add(a, b) => match (&**a, &**b) {
            (IndexFn::Index(index), IndexFn::Const(Const::Int(by)))
            | (IndexFn::Const(Const::Int(by)), IndexFn::Index(index)) => Some((*index, *by)),
            _ => None,
        },
        IndexFn::Subtract(a, b) => match (&**a, &**b) {
            (IndexFn::Index(index), IndexFn::Const(Const::Int(by))) => Some((*index, by.checked_neg()?)),
            _ => None,
        },
        _ => None,
    }
}

fn has_ordinal(function: &IndexFn) -> bool {
    match function {
        IndexFn::Ordinal(_) => true,
        IndexFn::Const(_) | IndexFn::Index(_) => false,
        IndexFn::Negate(a) => has_ordinal(a),
        IndexFn::Add(a, b)
        | IndexFn::Subtract(a, b)
        | IndexFn::Multiply(a, b)
        | IndexFn::Divide(a, b)
        | IndexFn::Remainder(a, b) => has_ordinal(a) || has_ordinal(b),
    }
}

/// A number as a count.
fn whole(number: f64) -> Option<i64> {
    let exact = number.fract() == 0.0 && number.abs() < 9e15;
    exact.then_some(number as i64)
}
