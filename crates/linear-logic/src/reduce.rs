//! Reduction to normal form: the rules of section 8, and the strategy that makes the result unique.
//!
//! [`Reduction`] is an iterator of steps over a `Graph`, a term whose nodes can be replaced. The next
//! redex is the first in pre-order. A step changes nothing before its own place but what its two nearest ancestors
//! see, so the search goes on from there and a whole reduction visits each node about once.

mod graph;
mod rules;

use graph::Graph;
pub use rules::Rewrite;

use crate::error::{Kind, Refusal, Result};
use crate::literal::Order;
use crate::term::{NodeId, Term};
use crate::unfold::{MAX_NODES, too_large, unfold};

/// One step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// The rule that was used.
    pub rule: Rewrite,
    /// Where: the numbers of the parts on the way from the root.
    pub at: Vec<usize>,
}

/// The reduction of a term, step by step.
pub struct Reduction {
    graph: Graph,
    /// From the root to the node under inspection, each with the number of its next part.
    path: Vec<(NodeId, usize)>,
    /// The first node on the path that may have become a redex.
    untested: usize,
}

/// How far a reduction went.
#[derive(Debug, Clone)]
pub struct Normalized {
    /// The term that was reached.
    pub term: Term,
    /// The number of steps.
    pub steps: u64,
    /// Whether no rule applies any more.
    pub is_normal: bool,
}

/// Where to stop a reduction.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Stop after so many steps.
    pub steps: Option<u64>,
    /// Refuse if so many steps do not reach the normal form.
    pub fuel: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { steps: None, fuel: 1_000_000 }
    }
}

/// Reduces a closed term; `see` is shown every step and the reduction behind it.
///
/// # Errors
/// `fuel`, `limit`, `unsupported`, or what `see` refuses.
pub fn normalize(
    term: &Term,
    order: Order,
    limits: Limits,
    mut see: impl FnMut(&Step, &Reduction) -> Result<()>,
) -> Result<Normalized> {
    let mut reduction = Reduction::new(term, order)?;
    let mut steps = 0;
    loop {
        if limits.steps == Some(steps) {
            let is_normal = reduction.is_normal();
            return Ok(Normalized { term: reduction.term(), steps, is_normal });
        }
        if steps == limits.fuel && !reduction.is_normal() {
            let message = format!("{steps} steps do not reach a normal form");
            return Err(Refusal::new(Kind::Fuel, message).help("`--fuel N` allows more".to_owned()));
        }
        let Some(step) = reduction.next().transpose()? else {
            return Ok(Normalized { term: reduction.term(), steps, is_normal: true });
        };
        steps += 1;
        see(&step, &reduction)?;
    }
}

impl Reduction {
    /// The reduction of a closed term, after its definitions and literals are unfolded.
    ///
    /// # Errors
    /// `limit` and `unsupported`.
    pub fn new(term: &Term, order: Order) -> Result<Self> {
        let graph = Graph::new(unfold(term, order)?);
        let path = vec![(graph.root(), 0)];
        Ok(Self { graph, path, untested: 0 })
    }

    /// The term that has been reached.
    pub fn term(&self) -> Term {
        self.graph.term()
    }

    /// Whether no rule applies; the next step, if there is one, stays where it is.
    pub fn is_normal(&mut self) -> bool {
        self.find().is_none()
    }

    /// Moves to the next redex.
    fn find(&mut self) -> Option<rules::Redex> {
        loop {
            while let Some((node, _)) = self.path.get(self.untested) {
                if let Some(redex) = self.graph.redex(*node) {
                    return Some(redex);
                }
                self.untested += 1;
            }
            let (node, next) = self.path.last_mut()?;
            match self.graph.child(*node, *next) {
                Some(child) => {
                    *next += 1;
                    self.path.push((child, 0));
                }
                None => _ = self.path.pop(),
            }
            self.untested = self.untested.min(self.path.len());
        }
    }
}

impl Iterator for Reduction {
    type Item = Result<Step>;

    fn next(&mut self) -> Option<Result<Step>> {
        let redex = self.find()?;
        self.path.truncate(self.untested + 1);
        let (node, next) = self.path.last_mut()?;
        *next = 0;
        let rule = redex.rule();
        self.graph.contract(*node, redex);
        let above = self.path.get(..self.untested).unwrap_or(&[]);
        let at = above.iter().map(|(_, next)| next.saturating_sub(1)).collect();
        self.untested = self.untested.saturating_sub(2);
        if self.graph.size() > MAX_NODES {
            return Some(Err(too_large()));
        }
        Some(Ok(Step { rule, at }))
    }
}
