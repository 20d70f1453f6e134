//! What is recorded of equations that contribute to many steps alike (`replay`): operations, where they begin, and how far
//! a step moves that.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::doubt::Doubt;
use crate::engine::Numbers;
use crate::kernels::{Array, Buffer, Places, Recorded};
use crate::program::{IndexId, TensorId};

/// Indices that have one value.
pub(crate) type Fixed = Vec<(IndexId, u32)>;

/// Bindings by the step of the element that they make, at a place.
pub(crate) type ByValue = BTreeMap<i64, Vec<Fixed>>;

/// The number of an equation, and the moving places of its left side with their shifts.
pub(crate) type Moves = (u64, Vec<(usize, i64)>);

/// What equations contribute to steps.
#[derive(Default)]
pub(crate) struct Records {
    /// By the number of the equation, and the index that moves.
    pub(crate) known: HashMap<(u64, IndexId), Option<Record>>,
    /// Which values left sides take at their moving places. They are those of declared ranges.
    pub(crate) fixings: HashMap<Moves, Arc<Vec<ByValue>>>,
    /// How many scopes were exact when they were made.
    pub(crate) exact: usize,
}

/// The operations of an equation.
pub(crate) struct Record {
    pub(crate) operations: Vec<Moved<Recorded>>,
    pub(crate) slices: Vec<(Input, Target)>,
    pub(crate) suspects: Vec<(u64, Input, Doubt)>,
    /// The positions of the index that they are for.
    pub(crate) from: u32,
    pub(crate) to: u32,
}

impl Record {
    /// Whether the last operation makes all that goes to a tensor, in order, and neither reads that tensor nor is doubted.
    pub(crate) fn ends_in(&self, tensor: TensorId) -> bool {
        let last = self.operations.len().wrapping_sub(1);
        let is_last = |source: &Input| matches!(source, Input::Made(at) if *at == last);
        let reads = |source: &Input| matches!(source, Input::Tensor(id, _) if *id == tensor);
        matches!(self.slices.as_slice(), [(source, target)] if is_last(source) && target.in_order)
            && !self.suspects.iter().any(|(_, source, _)| is_last(source))
            && self.operations.last().is_some_and(|moved| !moved.sources.iter().any(reads))
    }
}

/// An operation, the arrays that it reads, and for each where it begins at the first step and how far a step moves that.
pub(crate) struct Moved<O> {
    pub(crate) operation: O,
    pub(crate) sources: Vec<Input>,
    pub(crate) begins: Vec<(usize, isize)>,
}

/// An array.
#[derive(Debug, Clone)]
pub(crate) enum Input {
    /// A stored tensor of so many elements.
    Tensor(TensorId, usize),
    /// The values of a stored relation.
    Values(TensorId),
    /// What a waiting tensor is made of: of the arrays that its operation reads one, by its number, of those that this one reads
    /// one, and so on; of so many elements.
    Within(TensorId, Vec<usize>, usize),
    /// What an operation of the record makes.
    Made(usize),
    /// Numbers that depend on the text alone.
    Given(Array),
}

/// Where a slice goes at the first step, and how far a step moves it.
pub(crate) struct Target {
    pub(crate) positions: Places,
    /// Whether it is in order.
    pub(crate) in_order: bool,
    pub(crate) step: isize,
}

impl Input {
    /// Whether both are the same array, or the same numbers.
    pub(crate) fn is(&self, other: &Input) -> bool {
        match (self, other) {
            (Input::Tensor(a, m), Input::Tensor(b, n)) => (a, m) == (b, n),
            (Input::Values(a), Input::Values(b)) => a == b,
            (Input::Within(a, m, k), Input::Within(b, n, l)) => (a, m, k) == (b, n, l),
            (Input::Made(a), Input::Made(b)) => a == b,
            (Input::Given(a), Input::Given(b)) => a.same(b) || same_entries(a.done(), b.done()),
            _ => false,
        }
    }
}

/// Whether both are there, and the same bit for bit.
fn same_entries(a: Option<Buffer>, b: Option<Buffer>) -> bool {
    let bits =
        |numbers: &Numbers| numbers.doubles().iter().map(|number| number.to_bits()).collect::<Vec<_>>();
    match (a, b) {
        (Some(Buffer::Numbers(a)), Some(Buffer::Numbers(b))) => bits(&a) == bits(&b),
        (Some(Buffer::Truths(a)), Some(Buffer::Truths(b))) => a == b,
        _ => false,
    }
}
