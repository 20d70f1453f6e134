//! The evaluator: one function for terms, one for application.
//!
//! What makes it fast is sharing. Values have identities, the application of one value to one argument is computed
//! once, and a function between atoms is tabulated once and then applied as an operator.

use std::collections::HashMap;
use std::rc::Rc;

use super::carrier::{Carrier, Change, Obstacle, Outcome, Scalar};
use super::code::{Code, CodeId, Program, Slot};
use super::value::{Ket, Support, Value, ValueId, Values};
use crate::formula::{Formula, Instance};
use crate::literal::Order;
use crate::ring::{Name, Ring};
use crate::term::{Definition, Term};

/// The deepest nesting of evaluations.
const MAX_DEPTH: usize = 50_000;

/// The most values, and the most evaluated nodes, of one evaluation.
const MAX_STEPS: usize = 20_000_000;

/// Evaluates closed terms over a carrier.
pub struct Evaluator<C: Carrier> {
    pub(super) carrier: C,
    pub(super) values: Values<C>,
    order: Order,
    program: Program,
    instances: HashMap<(*const Definition, Rc<[Formula]>), ValueId>,
    applications: HashMap<(ValueId, ValueId), ValueId>,
    operators: HashMap<ValueId, Option<C::Operator>>,
    pub(super) names: Name,
    pub(super) supports: HashMap<ValueId, Support>,
    pub(super) changes: HashMap<(Change, ValueId), ValueId>,
    depth: usize,
    steps: usize,
}

/// The slots of a body under evaluation.
type Frame = Vec<ValueId>;

impl<C: Carrier> Evaluator<C> {
    /// An evaluator for one order of words.
    pub fn new(carrier: C, order: Order) -> Self {
        Self {
            carrier,
            values: Values::new(),
            order,
            program: Program::default(),
            instances: HashMap::new(),
            applications: HashMap::new(),
            operators: HashMap::new(),
            names: 0,
            supports: HashMap::new(),
            changes: HashMap::new(),
            depth: 0,
            steps: 0,
        }
    }

    /// The carrier.
    pub fn carrier(&self) -> &C {
        &self.carrier
    }

    /// The carrier, to be used further.
    pub fn carrier_mut(&mut self) -> &mut C {
        &mut self.carrier
    }

    /// The value of a closed term without parameters.
    ///
    /// # Errors
    /// What stands in the way of a value.
    pub fn closed(&mut self, term: &Term) -> Outcome<ValueId> {
        self.instance(term, &Instance::new(&[], &[]))
    }

    fn instance(&mut self, term: &Term, instance: &Instance<'_>) -> Outcome<ValueId> {
        let function = self.program.add(term, instance);
        let Some(function) = self.program.functions.get(function) else { return Err(Obstacle::IllTyped) };
        let (body, mut frame) = (function.body, vec![ValueId::ZERO; function.slots]);
        self.evaluate(body, &mut frame)
    }

    fn step(&mut self) -> Outcome<()> {
        self.spend(1)
    }

    /// Counts work that is worth so many steps.
    pub(super) fn spend(&mut self, steps: usize) -> Outcome<()> {
        self.steps = self.steps.saturating_add(steps);
        if self.steps > MAX_STEPS || self.values.len() > MAX_STEPS {
            return Err(Obstacle::Limit("the evaluation takes too many steps"));
        }
        Ok(())
    }

    pub(super) fn deeper<T>(&mut self, work: impl FnOnce(&mut Self) -> Outcome<T>) -> Outcome<T> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(Obstacle::Limit("the evaluation nests too deep"));
        }
        let found = work(self)?;
        self.depth -= 1;
        Ok(found)
    }

    fn evaluate(&mut self, code: CodeId, frame: &mut Frame) -> Outcome<ValueId> {
        self.deeper(|evaluator| evaluator.body(code, frame))
    }

    /// The value of a node; what follows a `let`, a `copy` or a `discard` is evaluated in its place.
    fn body(&mut self, mut code: CodeId, frame: &mut Frame) -> Outcome<ValueId> {
        loop {
            self.step()?;
            let Some(node) = self.program.nodes.get(code) else { return Err(Obstacle::IllTyped) };
            match node.clone() {
                Code::Local(slot) => return frame.get(slot).copied().ok_or(Obstacle::IllTyped),
                Code::Closure { function, captures } => {
                    let captured = captures.iter().map(|slot| frame.get(*slot).copied());
                    let captured: Option<Rc<[ValueId]>> = captured.collect();
                    return Ok(self.values.closure(function, captured.ok_or(Obstacle::IllTyped)?));
                }
                Code::Apply(function, argument) => {
                    let function = self.evaluate(function, frame)?;
                    let argument = self.evaluate(argument, frame)?;
                    return self.apply(function, argument);
                }
                Code::Tensor(left, right) => {
                    let (left, right) = (self.evaluate(left, frame)?, self.evaluate(right, frame)?);
                    return Ok(self.tensor(left, right));
                }
                Code::LetTensor { scrutinee, left, right, body } => {
                    let scrutinee = self.evaluate(scrutinee, frame)?;
                    let Value::Tensor(pairs) = self.values.get(scrutinee) else {
                        return self.zero(scrutinee);
                    };
                    let mut sum = Vec::with_capacity(pairs.len());
                    for (coefficient, a, b) in pairs.iter() {
                        set(frame, left, *a)?;
                        set(frame, right, *b)?;
                        sum.push((coefficient.clone(), self.evaluate(body, frame)?));
                    }
                    return self.combine(sum);
                }
                Code::Unit => return Ok(self.values.add(Value::Scalar(self.carrier.ring().one()))),
                Code::LetUnit { scrutinee, body } => {
                    let scrutinee = self.evaluate(scrutinee, frame)?;
                    let Value::Scalar(scalar) = self.values.get(scrutinee) else {
                        return self.zero(scrutinee);
                    };
                    let body = self.evaluate(body, frame)?;
                    return self.combine(vec![(scalar, body)]);
                }
                Code::Derelict(inner) => {
                    let inner = self.evaluate(inner, frame)?;
                    return self.derelict(inner);
                }
                Code::Promote { sources, body } => return self.promote(&sources, body, frame),
                Code::Copy { scrutinee, left, right, body } => {
                    let scrutinee = self.evaluate(scrutinee, frame)?;
                    let Value::Bang(kets) = self.values.get(scrutinee) else { return self.zero(scrutinee) };
                    if self.is_point(&kets) {
                        set(frame, left, scrutinee)?;
                        set(frame, right, scrutinee)?;
                        code = body;
                        continue;
                    }
                    return self.over(&kets, |evaluator, point| {
                        let point = evaluator.point(point);
                        set(frame, left, point)?;
                        set(frame, right, point)?;
                        evaluator.evaluate(body, frame)
                    });
                }
                Code::Discard { scrutinee, body } => {
                    let scrutinee = self.evaluate(scrutinee, frame)?;
                    let Value::Bang(kets) = self.values.get(scrutinee) else { return self.zero(scrutinee) };
                    if self.is_point(&kets) {
                        code = body;
                        continue;
                    }
                    let mut counit = self.carrier.ring().zero();
                    for ket in kets.iter().filter(|ket| ket.names.is_empty()) {
                        counit = self.carrier.ring().add(&counit, &ket.coefficient)?;
                    }
                    if self.carrier.ring().is_zero(&counit) {
                        return Ok(ValueId::ZERO);
                    }
                    let body = self.evaluate(body, frame)?;
                    return self.combine(vec![(counit, body)]);
                }
                Code::With(left, right) => {
                    let (left, right) = (self.evaluate(left, frame)?, self.evaluate(right, frame)?);
                    return Ok(self.values.pair(left, right));
                }
                Code::First(pair) => {
                    let pair = self.evaluate(pair, frame)?;
                    let Value::Pair(left, _) = self.values.get(pair) else { return self.zero(pair) };
                    return Ok(left);
                }
                Code::Second(pair) => {
                    let pair = self.evaluate(pair, frame)?;
                    let Value::Pair(_, right) = self.values.get(pair) else { return self.zero(pair) };
                    return Ok(right);
                }
                Code::InLeft(inner) => {
                    let inner = self.evaluate(inner, frame)?;
                    return Ok(self.values.pair(inner, ValueId::ZERO));
                }
                Code::InRight(inner) => {
                    let inner = self.evaluate(inner, frame)?;
                    return Ok(self.values.pair(ValueId::ZERO, inner));
                }
                Code::Case { scrutinee, left, right } => {
                    let scrutinee = self.evaluate(scrutinee, frame)?;
                    let Value::Pair(a, b) = self.values.get(scrutinee) else { return self.zero(scrutinee) };
                    let mut sum = Vec::new();
                    for (value, (slot, branch)) in [(a, left), (b, right)] {
                        // A branch is linear in its variable: at 0 it is 0.
                        if value != ValueId::ZERO {
                            set(frame, slot, value)?;
                            sum.push((self.carrier.ring().one(), self.evaluate(branch, frame)?));
                        }
                    }
                    return self.combine(sum);
                }
                Code::Global { definition, arguments } => return self.global(&definition, arguments),
                Code::Numeral { value, base } => return Ok(self.values.add(Value::Numeral { value, base })),
                Code::Word { digits, base } => {
                    let digits = self.order.product(&digits);
                    return Ok(self.values.add(Value::Word { digits, base }));
                }
                Code::Coweaken => return Ok(self.point(ValueId::ZERO)),
                Code::Cocopy(left, right) => {
                    let (left, right) = (self.evaluate(left, frame)?, self.evaluate(right, frame)?);
                    return self.cocopy(left, right);
                }
                Code::Coderelict(inner) => {
                    let inner = self.evaluate(inner, frame)?;
                    return self.coderelict(inner);
                }
            }
        }
    }

    /// What an elimination of 0 is; anything else would be ill-typed.
    pub(super) fn zero(&self, value: ValueId) -> Outcome<ValueId> {
        if value == ValueId::ZERO { Ok(value) } else { Err(Obstacle::IllTyped) }
    }

    /// The value of a definition at formulas, evaluated once.
    fn global(&mut self, definition: &Rc<Definition>, arguments: Rc<[Formula]>) -> Outcome<ValueId> {
        let key = (Rc::as_ptr(definition), arguments.clone());
        if let Some(value) = self.instances.get(&key) {
            return Ok(*value);
        }
        let Some(term) = &definition.term else { return Err(Obstacle::IllTyped) };
        let value = self.instance(term, &Instance::new(&definition.parameters, &arguments))?;
        self.instances.insert(key, value);
        Ok(value)
    }

    pub(super) fn tensor(&mut self, left: ValueId, right: ValueId) -> ValueId {
        if left == ValueId::ZERO || right == ValueId::ZERO {
            return ValueId::ZERO;
        }
        let one = self.carrier.ring().one();
        self.values.add(Value::Tensor(Rc::new([(one, left, right)])))
    }

    /// `∣∅⟩` at a point.
    pub fn point(&mut self, point: ValueId) -> ValueId {
        self.values.point(self.carrier.ring().one(), point)
    }

    /// Whether a formal sum is `∣∅⟩` at one point.
    fn is_point(&self, kets: &[Ket<Scalar<C>>]) -> bool {
        matches!(kets, [ket] if ket.names.is_empty() && self.carrier.ring().is_one(&ket.coefficient))
    }

    fn derelict(&mut self, value: ValueId) -> Outcome<ValueId> {
        let Value::Bang(kets) = self.values.get(value) else { return self.zero(value) };
        self.over(&kets, |_, point| Ok(point))
    }

    /// The box: over all choices of a ket for each source.
    fn promote(&mut self, sources: &[(CodeId, Slot)], body: CodeId, frame: &mut Frame) -> Outcome<ValueId> {
        let mut choices: Vec<Ket<Scalar<C>>> = Vec::with_capacity(sources.len());
        let mut all = Vec::with_capacity(sources.len());
        for (source, slot) in sources {
            let source = self.evaluate(*source, frame)?;
            let Value::Bang(kets) = self.values.get(source) else { return self.zero(source) };
            all.push((*slot, kets));
        }
        let mut found = Vec::new();
        self.choose(&all, &mut choices, &mut |evaluator: &mut Self, choices: &[Ket<Scalar<C>>]| {
            let mut coefficient = evaluator.carrier.ring().one();
            let mut names: Vec<Name> = Vec::new();
            for (ket, (slot, _)) in choices.iter().zip(&all) {
                coefficient = evaluator.carrier.ring().mul(&coefficient, &ket.coefficient)?;
                let (point, fresh) = evaluator.open(ket)?;
                names.extend(fresh.iter());
                let point = evaluator.point(point);
                set(frame, *slot, point)?;
            }
            let point = evaluator.evaluate(body, frame)?;
            found.push(Ket { coefficient, point, names: names.into() });
            Ok(())
        })?;
        self.bang(found)
    }

    /// A formal sum of kets as a value.
    pub(super) fn bang(&mut self, kets: Vec<Ket<Scalar<C>>>) -> Outcome<ValueId> {
        let mut found: Vec<Ket<Scalar<C>>> = Vec::with_capacity(kets.len());
        let mut places: HashMap<ValueId, usize> = HashMap::new();
        for ket in kets {
            let place = places.get(&ket.point).and_then(|place| found.get_mut(*place));
            match place.filter(|_| ket.names.is_empty()) {
                Some(there) => {
                    there.coefficient = self.carrier.ring().add(&there.coefficient, &ket.coefficient)?
                }
                None => {
                    if ket.names.is_empty() {
                        places.insert(ket.point, found.len());
                    }
                    found.push(ket);
                }
            }
        }
        found.retain(|ket| !self.carrier.ring().is_zero(&ket.coefficient));
        Ok(match found.first() {
            None => ValueId::ZERO,
            Some(ket) if self.is_point(&found) => self.point(ket.point),
            Some(_) => self.values.add(Value::Bang(found.into())),
        })
    }

    #[expect(clippy::type_complexity, reason = "a choice of kets, and what to do with it")]
    fn choose(
        &mut self,
        all: &[(Slot, Rc<[Ket<Scalar<C>>]>)],
        chosen: &mut Vec<Ket<Scalar<C>>>,
        done: &mut impl FnMut(&mut Self, &[Ket<Scalar<C>>]) -> Outcome<()>,
    ) -> Outcome<()> {
        let Some((_, kets)) = all.get(chosen.len()) else { return done(self, chosen) };
        for ket in kets.iter() {
            chosen.push(ket.clone());
            self.choose(all, chosen, done)?;
            chosen.pop();
        }
        Ok(())
    }

    /// `f(x)`, computed once for each f and x.
    ///
    /// # Errors
    /// What stands in the way of a value.
    pub fn apply(&mut self, function: ValueId, argument: ValueId) -> Outcome<ValueId> {
        if let Some(value) = self.applications.get(&(function, argument)) {
            return Ok(*value);
        }
        let value = self.deeper(|evaluator| evaluator.compute(function, argument))?;
        self.applications.insert((function, argument), value);
        Ok(value)
    }

    fn compute(&mut self, function: ValueId, argument: ValueId) -> Outcome<ValueId> {
        self.step()?;
        let value = self.values.get(function);
        if let Value::Vector(vector) = self.values.get(argument)
            && let Some(operator) = self.operator(function)?
        {
            let image = self.carrier.apply(&operator, &vector)?;
            return Ok(self.values.add(Value::Vector(image)));
        }
        match value {
            Value::Operator(_) => self.zero(argument),
            Value::Closure { function, captures } => self.enter(function, &captures, argument),
            Value::Sum(sum) => {
                let mut images = Vec::with_capacity(sum.len());
                for (coefficient, function) in sum.iter() {
                    images.push((coefficient.clone(), self.apply(*function, argument)?));
                }
                self.combine(images)
            }
            Value::Numeral { value, base } => {
                let Value::Bang(kets) = self.values.get(argument) else { return self.zero(argument) };
                self.over(&kets, |evaluator, point| evaluator.power(point, value, &base))
            }
            Value::Word { digits, base } => {
                Ok(self.values.add(Value::HalfWord { digits, base, first: argument }))
            }
            Value::HalfWord { digits, base, first } => self.word(&digits, &base, first, argument),
            Value::Iterate { function, times } => {
                (0..times).try_fold(argument, |value, _| self.apply(function, value))
            }
            Value::Chain { digits, first, second } => digits
                .iter()
                .rev()
                .try_fold(argument, |value, one| self.apply(if *one { second } else { first }, value)),
            Value::Table { matrix, from, to } => self.table(&matrix, &from, &to, argument),
            Value::Coefficient { take, function } => {
                let (take, function) = self.apart(take, function, argument)?;
                let image = self.apply(function, argument)?;
                self.change(&Change::taking(take), image)
            }
            Value::Scalar(_) | Value::Vector(_) | Value::Pair(..) | Value::Tensor(_) | Value::Bang(_) => {
                Err(Obstacle::IllTyped)
            }
        }
    }

    fn enter(&mut self, function: usize, captures: &[ValueId], argument: ValueId) -> Outcome<ValueId> {
        let Some(function) = self.program.functions.get(function) else { return Err(Obstacle::IllTyped) };
        let (body, parameter) = (function.body, function.parameter);
        let mut frame = captures.to_vec();
        frame.resize(function.slots.max(captures.len()), ValueId::ZERO);
        set(&mut frame, parameter, argument)?;
        self.evaluate(body, &mut frame)
    }

    /// The operator that a function between atoms is, tabulated once; `None` for other functions.
    ///
    /// # Errors
    /// What stands in the way of its values at the probes.
    pub fn operator(&mut self, function: ValueId) -> Outcome<Option<C::Operator>> {
        if let Some(operator) = self.operators.get(&function) {
            return Ok(operator.clone());
        }
        let operator = self.deeper(|evaluator| evaluator.find_operator(function))?;
        self.operators.insert(function, operator.clone());
        Ok(operator)
    }

    fn find_operator(&mut self, function: ValueId) -> Outcome<Option<C::Operator>> {
        Ok(match self.values.get(function) {
            Value::Operator(operator) => Some(operator),
            Value::Closure { function, captures } => {
                let Some((from, to)) = self.program.functions.get(function).and_then(|f| f.operator.clone())
                else {
                    return Ok(None);
                };
                let Some(probes) = self.carrier.probes(&from)? else { return Ok(None) };
                let mut images = Vec::with_capacity(probes.len());
                for probe in probes {
                    let probe = self.values.add(Value::Vector(probe));
                    let image = self.enter(function, &captures, probe)?;
                    images.push(match self.values.get(image) {
                        Value::Vector(vector) => Some(vector),
                        _ => self.zero(image).map(|_| None)?,
                    });
                }
                Some(self.carrier.tabulate(&from, &to, images)?)
            }
            Value::Sum(sum) if !sum.is_empty() => {
                let mut operators = Vec::with_capacity(sum.len());
                for (coefficient, function) in sum.iter() {
                    let Some(operator) = self.operator(*function)? else { return Ok(None) };
                    operators.push((coefficient.clone(), operator));
                }
                Some(self.carrier.combine_operators(&operators)?)
            }
            Value::Coefficient { take, function } => match self.operator(function)? {
                Some(operator) => Some(self.carrier.change_operator(&Change::taking(take), &operator)?),
                None => None,
            },
            _ => None,
        })
    }

    /// fⁿ at B: an operator if B is an atom and operators are tabulated, else n applications.
    fn power(&mut self, function: ValueId, times: u32, base: &Formula) -> Outcome<ValueId> {
        if let Some(atom) = base.as_atom()
            && self.carrier.probes(atom)?.is_some()
        {
            let operator = if times == 0 {
                self.carrier.identity(atom)?
            } else {
                let Some(operator) = self.operator(function)? else { return self.zero(function) };
                self.carrier.power(&operator, times)?
            };
            return Ok(self.values.add(Value::Operator(operator)));
        }
        Ok(self.values.add(Value::Iterate { function, times }))
    }

    /// A word at its two operators.
    fn word(
        &mut self,
        digits: &Rc<[bool]>,
        base: &Formula,
        first: ValueId,
        second: ValueId,
    ) -> Outcome<ValueId> {
        let Value::Bang(kets) = self.values.get(first) else { return self.zero(first) };
        self.over(&kets, |evaluator, f| {
            let Value::Bang(kets) = evaluator.values.get(second) else { return evaluator.zero(second) };
            evaluator.over(&kets, |evaluator, g| evaluator.product(digits, base, f, g))
        })
    }

    fn product(&mut self, digits: &Rc<[bool]>, base: &Formula, f: ValueId, g: ValueId) -> Outcome<ValueId> {
        let length = u32::try_from(digits.len()).map_err(|_| Obstacle::IllTyped)?;
        if f == g || digits.iter().all(|one| !one) {
            return self.power(f, length, base);
        }
        if digits.iter().all(|one| *one) {
            return self.power(g, length, base);
        }
        if let Some(atom) = base.as_atom()
            && self.carrier.probes(atom)?.is_some()
        {
            // Both digits occur: the product is 0 if one of the operators is.
            let Some(x) = self.operator(f)? else { return self.zero(f) };
            let Some(y) = self.operator(g)? else { return self.zero(g) };
            let operator = self.carrier.product(digits, &x, &y)?;
            return Ok(self.values.add(Value::Operator(operator)));
        }
        Ok(self.values.add(Value::Chain { digits: digits.clone(), first: f, second: g }))
    }
}

fn set(frame: &mut Frame, slot: Slot, value: ValueId) -> Outcome<()> {
    *frame.get_mut(slot).ok_or(Obstacle::IllTyped)? = value;
    Ok(())
}
