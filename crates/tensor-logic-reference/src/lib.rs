//! The reference interpreter: nested loops over bindings, the obvious meaning of the core form.
//!
//! Enter at [`Reference`]. It is the truth for every other engine and has no cleverness of its
//! own: contributions are found by loops (`bind`, `evaluate`), recursion by rounds from nothing
//! (`machine`, `limits`), derivatives by dual numbers (`number`), and what hangs on rounding by random arithmetic (`disturbed`). It may be
//! slow.

/// The README's program runs as it stands there.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Readme;

mod bind;
mod disturbed;
mod evaluate;
mod ground;
mod limits;
mod machine;
mod number;
mod prove;
mod steps;
mod store;
mod wide;
mod worlds;

pub use ground::{Atom, Contribution, Ground, Most, ground};
pub use prove::{probable, prove};

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use disturbed::Disturbed;
use machine::{Machine, is_computed_only};
use number::{Dual, Exact, Number};
use store::Store;
use tensor_logic_core::digits::are_kept;
use tensor_logic_core::engine::{Engine, Request, Slopes, Stop, Tuples, Value};
use tensor_logic_core::error::Result;
use tensor_logic_core::program::{Combine, Kind, Program, Role, Style, TensorId, Term};
use tensor_logic_core::value::{Const, Domain, Tuple, element};
use wide::Wide;

/// The reference interpreter.
#[derive(Debug, Default)]
pub struct Reference {
    derived: Vec<(String, u64)>,
    /// What ends an evaluation.
    stop: Stop,
}

/// How many bits of a number are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    /// Those of 64.
    Double,
    /// Those of 32.
    Single,
}

impl Reference {
    /// One that ends when it is asked to.
    pub fn stopping(stop: Stop) -> Reference {
        Reference { stop, ..Reference::default() }
    }

    /// The value of a scalar goal, and its derivatives by the elements of `wrt`: row-major for
    /// square tensors, in the order of [`variables`] for relations.
    ///
    /// # Errors
    /// The refusals of [`Engine::values`].
    pub fn gradient(
        &mut self,
        request: &Request<'_>,
        goal: TensorId,
        wrt: &[TensorId],
    ) -> Result<(f64, Vec<Vec<f64>>)> {
        let (value, found) = self.derivatives(request, goal, wrt)?;
        Ok((
            value,
            found.into_iter().map(|slopes| slopes.into_iter().map(|(_, slope)| slope).collect()).collect(),
        ))
    }

    /// The same, with the elements.
    fn derivatives(
        &mut self,
        request: &Request<'_>,
        goal: TensorId,
        wrt: &[TensorId],
    ) -> Result<(f64, Vec<ByElement>)> {
        let machine = self.evaluate::<f64>(request, &[goal], None)?;
        let value = scalar(&machine, goal).map_or(0.0, |value| value);
        let elements: Vec<_> = wrt.iter().map(|id| elements(&machine, *id)).collect();
        let mut gradients = Vec::new();
        for (tensor, elements) in wrt.iter().zip(elements) {
            let mut gradient = Vec::new();
            for element in elements {
                let dual = self.evaluate::<Dual>(request, &[goal], Some((*tensor, element.clone())))?;
                gradient.push((element, scalar(&dual, goal).and_then(Dual::slope).unwrap_or(0.0)));
            }
            gradients.push(gradient);
        }
        Ok((value, gradients))
    }

    /// The values where every operation that rounds is off by some units of the last bit, others for every seed: what changes
    /// hangs on rounding.
    ///
    /// # Errors
    /// The refusals of [`Engine::values`].
    pub fn disturbed(
        &mut self,
        request: &Request<'_>,
        goals: &[TensorId],
        kept: Kept,
        seed: u64,
    ) -> Result<Vec<Value>> {
        disturbed::begin(seed);
        Ok(match kept {
            Kept::Double => answers(&self.evaluate::<Disturbed<53, 1000>>(request, goals, None)?, goals),
            Kept::Single => answers(&self.evaluate::<Disturbed<24, 100>>(request, goals, None)?, goals),
        })
    }

    /// The values where recursions are left as they are after so many rounds, whether they rest or not: what is the same after
    /// some more of them does not hang on what never comes to rest.
    ///
    /// # Errors
    /// The refusals of [`Engine::values`] but `divergence`.
    pub fn cut(&mut self, request: &Request<'_>, goals: &[TensorId], rounds: u64) -> Result<Vec<Value>> {
        let mut machine = Machine::<f64>::new(request, None);
        machine.cut = Some(rounds);
        Ok(answers(&self.evaluated(machine, goals)?, goals))
    }

    /// The elements of square tensors as mantissas, from 1/2 to 1 without their signs, and exponents of 2: those that 64 bits
    /// hold nothing of among them. Recursions in steps are gone through once, not by rounds: queries use this.
    ///
    /// # Errors
    /// The refusals of [`Engine::values`].
    pub fn wide(&mut self, request: &Request<'_>, goals: &[TensorId]) -> Result<Vec<Vec<(f64, i64)>>> {
        let mut machine = Machine::<Wide>::new(request, None);
        machine.stepwise = true;
        let machine = self.evaluated(machine, goals)?;
        let parts = |goal: &TensorId| match machine.store(*goal) {
            Some(Store::Dense(_, values)) => values.iter().map(|value| value.parts()).collect(),
            _ => Vec::new(),
        };
        Ok(goals.iter().map(parts).collect())
    }

    fn evaluate<'p, N: Number>(
        &mut self,
        request: &'p Request<'p>,
        goals: &[TensorId],
        variable: Option<(TensorId, Tuple)>,
    ) -> Result<Machine<'p, N>> {
        self.evaluated(Machine::new(request, variable), goals)
    }

    fn evaluated<'p, N: Number>(
        &mut self,
        mut machine: Machine<'p, N>,
        goals: &[TensorId],
    ) -> Result<Machine<'p, N>> {
        machine.stop = self.stop.clone();
        let outcome = machine.evaluate(goals);
        let mut derived = BTreeMap::new();
        for (at, tensor) in (0u32..).zip(&machine.program.tensors) {
            if let Some(Store::Sparse(tuples)) = machine.store(TensorId(at))
                && tensor.role == Role::Computed
                && !tensor.hidden
            {
                derived.insert(tensor.name.clone(), tuples.len() as u64);
            }
        }
        self.derived = derived.into_iter().collect();
        outcome.map(|()| machine)
    }
}

impl Engine for Reference {
    fn values(&mut self, request: &Request<'_>, goals: &[TensorId]) -> Result<Vec<Value>> {
        let needed = request.program.needs(goals);
        let counts = needed.into_iter().any(|id| request.program.tensor(id).kind == Kind::Count);
        if !counts {
            return Ok(answers(&self.evaluate::<f64>(request, goals, None)?, goals));
        }
        let machine = self.evaluate::<Exact>(request, goals, None)?;
        Ok(answers(&machine, goals))
    }

    fn slopes(&mut self, request: &Request<'_>, goal: TensorId, wrt: &[TensorId]) -> Option<Result<Slopes>> {
        let shaped = |(tensor, slopes): (&TensorId, Vec<(Tuple, f64)>)| {
            let (tuples, values): (Vec<Tuple>, Vec<f64>) = slopes.into_iter().unzip();
            match request.program.tensor(*tensor).style {
                Style::Square => Value::Dense(values.into()),
                Style::Round => Value::Tuples(Tuples { tuples, values, counts: Vec::new() }),
            }
        };
        let found = self.derivatives(request, goal, wrt);
        Some(found.map(|(value, slopes)| (value, wrt.iter().zip(slopes).map(shaped).collect())))
    }

    fn derived(&self) -> &[(String, u64)] {
        &self.derived
    }

    fn stop_when(&mut self, stop: Arc<AtomicBool>) {
        self.stop = Stop::when(stop);
    }

    fn stop(&self) -> Stop {
        self.stop.clone()
    }
}

/// The values of goals that a machine has evaluated.
fn answers<N: Number>(machine: &Machine<'_, N>, goals: &[TensorId]) -> Vec<Value> {
    let value = |goal: &TensorId| match machine.store(*goal) {
        Some(Store::Dense(_, values)) => match beyond(machine.program.tensor(*goal).kind, values) {
            Some(counts) => Value::Counts(Arc::new(counts)),
            None => Value::Dense(values.iter().map(|value| value.value()).collect::<Vec<f64>>().into()),
        },
        Some(Store::Sparse(tuples)) => {
            let mut sorted: Vec<(&Tuple, N)> = tuples.iter().map(|(tuple, value)| (tuple, *value)).collect();
            sorted.sort_by(|(a, _), (b, _)| machine.program.symbols.compare_tuples(a, b));
            let (tuples, found): (Vec<Tuple>, Vec<N>) =
                sorted.into_iter().map(|(tuple, value)| (tuple.clone(), value)).unzip();
            let counts = beyond(machine.program.tensor(*goal).kind, &found).unwrap_or_default();
            Value::Tuples(Tuples {
                tuples,
                values: found.iter().map(|value| value.value()).collect(),
                counts,
            })
        }
        None => Value::Tuples(Tuples::default()),
    };
    goals.iter().map(value).collect()
}

/// The integers of counts, where numbers with a point do not hold them all.
fn beyond<N: Number>(kind: Kind, values: &[N]) -> Option<Vec<i64>> {
    let counts = || values.iter().map(|value| value.count());
    let any = kind == Kind::Count && counts().flatten().any(|count| !are_kept(i128::from(count)));
    if any { counts().collect() } else { None }
}

/// Tensors that some engine has evaluated, and contributions computed from them.
pub struct Evaluated<'p>(Machine<'p, f64>);

impl<'p> Evaluated<'p> {
    /// Evaluates what the terms of a goal read.
    ///
    /// # Errors
    /// The refusals of [`Engine::values`].
    pub fn below(request: &'p Request<'p>, engine: &mut dyn Engine, goal: TensorId) -> Result<Evaluated<'p>> {
        let read = request.program.reads_of(goal);
        let values = engine.values(request, &read)?;
        Ok(Evaluated(Machine::with_values(request, read.into_iter().zip(values).collect())))
    }

    /// The contribution of a term of the program under values of its summed indices, if it is
    /// present.
    pub fn contribution(&self, term: &'p Term, values: &[Const]) -> Option<f64> {
        let bind = |value: &dyn Fn(Const) -> Option<Const>| {
            term.over.iter().zip(values).for_each(|(index, at)| self.0.bind(*index, value(*at)));
        };
        bind(&Some);
        let present = self.0.when(&term.when);
        let value = if present { self.0.expr(&term.body) } else { None };
        bind(&|_| None);
        self.0.forget_entries();
        value
    }
}

/// The derivatives by the elements of a tensor.
type ByElement = Vec<(Tuple, f64)>;

/// The elements of a tensor by which derivatives are taken: of a relation that rules make its tuples, in the order of
/// answers; of every other tensor its [`variables`].
fn elements(machine: &Machine<'_, f64>, id: TensorId) -> Vec<Tuple> {
    let tensor = machine.program.tensor(id);
    let follows =
        tensor.role == Role::Computed && (tensor.combine == Combine::Exists || is_computed_only(tensor));
    match machine.store(id) {
        Some(Store::Sparse(tuples)) if follows && !tensor.is_proved() => {
            let mut tuples: Vec<Tuple> = tuples.keys().cloned().collect();
            tuples.sort_by(|a, b| machine.program.symbols.compare_tuples(a, b));
            tuples
        }
        _ => variables(machine.program, id),
    }
}

/// The elements of a tensor by which derivatives are taken: all of a square tensor, row-major;
/// the facts of a relation in the order of answers, each once.
pub fn variables(program: &Program, id: TensorId) -> Vec<Tuple> {
    let tensor = program.tensor(id);
    if tensor.style == Style::Square || tensor.role == Role::Parameter {
        let domains = tensor.domains();
        let count = domains.iter().map(Domain::len).product();
        return (0..count).map(|at| element(&domains, at)).collect();
    }
    let mut tuples: Vec<Tuple> = Vec::new();
    for given in &tensor.given {
        if let Some(facts) = given.facts() {
            tuples.extend((0..facts.count).map(|at| facts.tuple(at).to_vec()));
        }
    }
    tuples.sort_by(|a, b| program.symbols.compare_tuples(a, b));
    tuples.dedup();
    tuples
}

/// The value of a tensor without places.
fn scalar<N: Number>(machine: &Machine<'_, N>, goal: TensorId) -> Option<N> {
    match machine.store(goal)? {
        Store::Dense(_, values) => values.first().copied(),
        Store::Sparse(tuples) => tuples.get(&Tuple::new()).copied(),
    }
}
