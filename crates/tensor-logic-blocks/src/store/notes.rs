//! What the evaluation of blocks notes of its work, if somebody wants to know.
//!
//! The notes themselves are here; `noting` takes them.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::profile::Executor;
use crate::program::{Component, Equation, EquationId, IndexId, TensorId};

/// Notes on components and equations.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    /// By the first tensor of the component, in the order of the first evaluation.
    pub(crate) components: Vec<(TensorId, OfComponent)>,
    /// By the number of the equation.
    pub(crate) equations: BTreeMap<u64, OfEquation>,
    /// The equation at hand.
    pub(crate) current: u64,
}

#[derive(Debug)]
pub(crate) struct OfComponent {
    pub(crate) tensors: Vec<TensorId>,
    pub(crate) equations: Vec<EquationId>,
    pub(crate) executor: Executor,
    pub(crate) calls: u64,
    pub(crate) rounds: u64,
    pub(crate) residual: Option<f64>,
    pub(crate) rows_out: u64,
    pub(crate) time: Duration,
}

#[derive(Debug, Default)]
pub(crate) struct OfEquation {
    pub(crate) calls: u64,
    pub(crate) rows_in: u64,
    pub(crate) rows_out: u64,
    pub(crate) time: Duration,
    /// The supports that were found, by the number of their scope.
    pub(crate) orders: Vec<(u64, Support)>,
}

/// How the support of a scope was found.
#[derive(Debug)]
pub(crate) struct Support {
    pub(crate) steps: Vec<Found>,
    pub(crate) rows: usize,
    pub(crate) of: f64,
}

/// A step of a search for bindings, and the rows behind it.
#[derive(Debug, Clone)]
pub(crate) enum Found {
    /// The tuples of a relation were joined.
    Joined(TensorId, usize),
    /// Relations were joined at a time.
    Together(Vec<TensorId>, usize),
    /// A sum over this index is taken inside.
    Inside(IndexId),
    /// Comparisons listed the values of an index.
    Listed(IndexId, usize),
    /// All values of an index were listed.
    Extended(IndexId, usize),
}

/// When something began, if anybody wants to know.
pub(crate) type Since = Option<Instant>;

impl Notes {
    pub(crate) fn component(&mut self, component: &Component, executor: Executor) -> &mut OfComponent {
        let key = component.tensors.first().copied().unwrap_or(TensorId(u32::MAX));
        let at = self.components.iter().position(|(known, _)| *known == key).unwrap_or_else(|| {
            self.components.push((
                key,
                OfComponent {
                    tensors: component.tensors.clone(),
                    equations: component.equations.clone(),
                    executor,
                    calls: 0,
                    rounds: 0,
                    residual: None,
                    rows_out: 0,
                    time: Duration::ZERO,
                },
            ));
            self.components.len() - 1
        });
        &mut self.components[at].1
    }

    pub(crate) fn equation(&mut self, equation: &Equation) -> &mut OfEquation {
        self.equations.entry(equation.node.number()).or_default()
    }
}
