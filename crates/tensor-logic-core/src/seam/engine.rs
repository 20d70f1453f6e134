//! What every engine answers: the value of a tensor, on demand.
//!
//! Enter at [`Engine`]. There are two: the reference interpreter (plain loops, the truth) and
//! the fast engine.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::ast::Span;
use crate::error::{Code, Refusal, Result};
use crate::profile::Profile;
use crate::program::{IndexId, Program, Range, TensorId};
use crate::value::Tuple;

/// So many values of an index are not gone through one by one: tables hold 32 bits of each.
pub const WIDEST: usize = u32::MAX as usize;

/// The refusal of an index with as many values, in an equation with this left side.
pub fn too_wide(program: &Program, index: IndexId, left: Span) -> Refusal {
    let entry = program.index(index);
    let len = if let Range::Domain(domain) = &entry.range { domain.len() } else { 0 };
    let message = format!("`{}` ranges over {len} values, more than a table holds", entry.name);
    let help =
        "read relations in round brackets, at indices without a declaration: these take the values of tuples";
    Refusal::new(Code::TooLarge, left, message).help(help)
}

/// Whether relations become tables of bindings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Storage {
    /// Where that is cheaper.
    #[default]
    Auto,
    /// Only where nothing else is possible.
    Dense,
    /// Wherever it is possible.
    Sparse,
}

/// The value of a tensor.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A square tensor: all elements, row-major over its places' domains.
    Dense(Numbers),
    /// A square tensor of counts of which one has digits that a number with a point does not hold.
    Counts(Arc<Vec<i64>>),
    /// A round tensor.
    Tuples(Tuples),
}

/// Numbers of 64 or 32 bits, as they were computed.
#[derive(Debug, Clone)]
pub enum Numbers {
    /// 64 bits.
    Double(Arc<Vec<f64>>),
    /// 32 bits.
    Single(Arc<Vec<f32>>),
}

impl Numbers {
    /// How many.
    pub fn len(&self) -> usize {
        match self {
            Numbers::Double(values) => values.len(),
            Numbers::Single(values) => values.len(),
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number at a position, in 64 bits.
    pub fn get(&self, at: usize) -> Option<f64> {
        match self {
            Numbers::Double(values) => values.get(at).copied(),
            Numbers::Single(values) => values.get(at).copied().map(f64::from),
        }
    }

    /// The first number; the value of a scalar.
    pub fn first(&self) -> Option<f64> {
        self.get(0)
    }

    /// All of them in 64 bits.
    pub fn doubles(&self) -> Arc<Vec<f64>> {
        match self {
            Numbers::Double(values) => Arc::clone(values),
            Numbers::Single(values) => Arc::new(values.iter().map(|value| f64::from(*value)).collect()),
        }
    }
}

impl PartialEq for Numbers {
    fn eq(&self, other: &Numbers) -> bool {
        self.doubles() == other.doubles()
    }
}

impl From<Vec<f64>> for Numbers {
    fn from(values: Vec<f64>) -> Numbers {
        Numbers::Double(Arc::new(values))
    }
}

/// The tuples of a relation, in the order of answers (integers before symbols, integers by
/// value, symbols by bytes), each once.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Tuples {
    /// The tuples.
    pub tuples: Vec<Tuple>,
    /// Their values; 1 for Boolean relations.
    pub values: Vec<f64>,
    /// The values as integers, where one of these counts has digits that a number with a point does not
    /// hold; empty otherwise.
    pub counts: Vec<i64>,
}

impl Value {
    /// All values, row-major or beside the tuples.
    pub fn doubles(&self) -> Cow<'_, [f64]> {
        match self {
            Value::Dense(Numbers::Double(values)) => Cow::Borrowed(values),
            Value::Dense(values) => Cow::Owned(values.doubles().to_vec()),
            Value::Counts(counts) => counts.iter().map(|count| *count as f64).collect(),
            Value::Tuples(tuples) => Cow::Borrowed(&tuples.values),
        }
    }

    /// All values as integers, row-major or beside the tuples, where one of these counts has digits that a
    /// number with a point does not hold.
    pub fn counts(&self) -> Option<&[i64]> {
        match self {
            Value::Counts(counts) => Some(counts),
            Value::Tuples(tuples) if !tuples.counts.is_empty() => Some(&tuples.counts),
            _ => None,
        }
    }
}

/// A scalar's value, and its derivatives by the elements of each tensor asked for: all of a square
/// tensor, the tuples that have one of a relation.
pub type Slopes = (f64, Vec<Value>);

/// The elements of a square tensor that may differ from 0.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Listed {
    /// Row-major positions, ascending, each once.
    pub positions: Vec<usize>,
    /// Their values.
    pub values: Vec<f64>,
}

/// A derivative by all elements of a tensor.
#[derive(Debug, Clone, PartialEq)]
pub enum Slope {
    /// All of them.
    Whole(Value),
    /// Those that may differ from 0.
    Listed(Listed),
}

/// The current values of parameters, row-major over their domains. A 0 among them has no sign.
pub type Parameters = BTreeMap<TensorId, Arc<Vec<f64>>>;

/// Limits of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// The most tuples that may be stored (`--max-tuples`).
    pub tuples: u64,
    /// The most bytes that may be allocated (`--max-bytes`).
    pub bytes: u64,
}

/// What an interrupted evaluation is refused with. It says nothing of the program.
pub fn interrupted(place: Span) -> Refusal {
    Refusal::new(Code::Budget, place, INTERRUPTED)
}

const INTERRUPTED: &str = "interrupted";

/// Whether a refusal says only that somebody interrupted the evaluation.
pub fn is_interrupted(report: &Refusal) -> bool {
    report.code == Code::Budget && report.message == INTERRUPTED
}

/// A flag that ends evaluations, if there is one.
#[derive(Debug, Clone, Default)]
pub struct Stop(Option<Arc<AtomicBool>>);

impl Stop {
    /// Stops when the flag is set.
    pub fn when(flag: Arc<AtomicBool>) -> Stop {
        Stop(Some(flag))
    }

    /// The flag, for whoever works on behalf of this evaluation.
    pub fn flag(&self) -> Option<Arc<AtomicBool>> {
        self.0.clone()
    }

    /// Whether somebody asked to stop.
    pub fn asked(&self) -> bool {
        self.0.as_ref().is_some_and(|flag| flag.load(Ordering::Relaxed))
    }

    /// Refuses where somebody asked to stop.
    pub fn check(&self, place: Span) -> Result<()> {
        match &self.0 {
            Some(flag) if flag.load(Ordering::Relaxed) => Err(interrupted(place)),
            _ => Ok(()),
        }
    }
}

/// Values of one program that hold for another, by their stamps.
pub struct Carried {
    /// The program that was evaluated.
    pub from: u64,
    /// The program for which they hold.
    pub to: u64,
    /// What both say alike.
    pub same: BTreeSet<TensorId>,
}

/// What to evaluate besides the program's text.
#[derive(Debug, Clone)]
pub struct Request<'a> {
    /// The program.
    pub program: &'a Program,
    /// Current values of parameters.
    pub parameters: &'a Parameters,
    /// Limits.
    pub budget: Budget,
}

/// An evaluator.
pub trait Engine: Send {
    /// The values of `goals`, evaluating what they need and nothing else.
    ///
    /// # Errors
    /// Refusals of the stage "running": `divergence`, `overflow`, `budget`, `too-large`.
    fn values(&mut self, request: &Request<'_>, goals: &[TensorId]) -> Result<Vec<Value>>;

    /// How many tuples each computed relation held after the last call, by name.
    fn derived(&self) -> &[(String, u64)];

    /// The value of a scalar goal and its derivatives by tensors, where the engine has a way of its
    /// own to them; `None` where the adjoint program is to be evaluated.
    fn slopes(
        &mut self,
        _request: &Request<'_>,
        _goal: TensorId,
        _wrt: &[TensorId],
    ) -> Option<Result<Slopes>> {
        None
    }

    /// The values of square goals, listed where the engine stores them so.
    ///
    /// # Errors
    /// Those of [`values`](Engine::values).
    fn listed(&mut self, request: &Request<'_>, goals: &[TensorId]) -> Result<Vec<Slope>> {
        Ok(self.values(request, goals)?.into_iter().map(Slope::Whole).collect())
    }

    /// The tuples of all relations that a goal rests on, as far as proofs of the goal may need them, where the engine has a way to
    /// these that does not go over all tuples.
    ///
    /// # Errors
    /// Those of [`values`](Engine::values).
    fn below(&mut self, _request: &Request<'_>, _goal: TensorId) -> Result<Option<Vec<(TensorId, Value)>>> {
        Ok(None)
    }

    /// Lets go of the values of a parameter, which are about to change.
    fn release(&mut self, _parameter: TensorId) {}

    /// Ends an evaluation with a refusal ([`interrupted`]) soon after this becomes true.
    fn stop_when(&mut self, _stop: Arc<AtomicBool>) {}

    /// What ends its evaluations, for whoever evaluates beside it.
    fn stop(&self) -> Stop {
        Stop::default()
    }

    /// What was computed of these tensors of the program with a stamp holds for the next one too, where they have the same
    /// ids (see [`crate::carry::same`]).
    fn carry(&mut self, _from: u64, _to: &Program, _same: &BTreeSet<TensorId>) {}

    /// Notes what it does from now on, or nothing any more. Engines that keep no notes do nothing.
    fn observe(&mut self, _on: bool) {}

    /// What was noted since it was last asked, if the engine keeps notes and was told to.
    fn observed(&mut self) -> Option<Profile> {
        None
    }

    /// Forgets what was computed, but not what is given nor how to compute: the next call does the
    /// work of a run alone, which is what a measurement asks for.
    fn forget_results(&mut self) {}
}
