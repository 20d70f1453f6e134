//! Diagrams by fixpoint, orders by trial.

use crate::circuit::Circuit;
use crate::diagram::{Diagrams, Full, Node, Share};
use crate::functions::values;
use crate::shape::Shape;
use crate::{Failure, Limits, order};

/// The search for an order of choices whose diagrams are small enough: all orders are tried with few nodes and steps, then
/// with more, so that a bad one costs little.
pub(crate) struct Trial {
    pub(crate) shape: Shape,
    /// Those that may still do; only the first one, before others were looked for.
    orders: Vec<Vec<u32>>,
    is_begun: bool,
}

impl Trial {
    pub(crate) fn new(shape: Shape) -> Trial {
        let choices = shape.proofs.alternatives.len().saturating_sub(1) as u32;
        Trial { shape, orders: vec![(0..choices).collect()], is_begun: false }
    }

    /// Whether no order is left: all of them take more bytes than there are.
    pub(crate) fn is_over(&self) -> bool {
        self.is_begun && self.orders.is_empty()
    }

    /// The circuit by the first order that takes no more than this share, and what it took.
    pub(crate) fn circuit(
        &mut self,
        share: Share,
        room: usize,
        limits: &Limits<'_>,
    ) -> Result<Option<(Circuit, Share)>, Failure> {
        let mut at = 0;
        while let Some(order) = self.orders.get(at) {
            match self.diagrams(order, share, room, limits) {
                Ok(found) => return Ok(Some(found)),
                Err(Full::Stopped) => return Err(Failure::Stopped),
                Err(Full::Bytes) if self.is_begun => _ = self.orders.remove(at),
                Err(Full::Bytes | Full::Share) => at += 1,
            }
        }
        if !self.is_begun {
            self.is_begun = true;
            self.orders = order::orders(&self.shape.proofs, &self.shape.goals);
        }
        Ok(None)
    }

    /// The diagrams of all atoms, the choices in this order, as a circuit of the goals.
    fn diagrams(
        &self,
        order: &[u32],
        share: Share,
        room: usize,
        limits: &Limits<'_>,
    ) -> Result<(Circuit, Share), Full> {
        let Shape { proofs, goals } = &self.shape;
        let mut diagrams = Diagrams::new(order.len(), share, room, limits.stop);
        let values = values(proofs, goals, order, &mut diagrams)?;
        diagrams.finish();
        let roots: Vec<Node> = goals.iter().map(|goal| values[goal.0 as usize]).collect();
        let sure = |choice: u32| {
            let event = proofs.sure[choice as usize];
            event.map(|event| event.0 - proofs.events_of(choice).start)
        };
        let used = Share { nodes: diagrams.len(), steps: diagrams.steps() };
        Ok((Circuit::new(&diagrams, &roots, order, &sure), used))
    }
}
