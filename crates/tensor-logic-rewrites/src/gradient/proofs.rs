//! What the probabilities of a relation owe to the weights that it follows from.
//!
//! Between a relation and its weights there are no equations but proofs: the engine has their circuits, and its derivatives
//! come from them ([`crate::weighted`]). Here stands only what is asked for: for a relation `R` with the adjoint `Grad_R`
//! and a source `P` of weights a tensor `Slope_P` of the places of `P`, combined by [`Combine::Slopes`]. Its one equation is
//! never evaluated; it names `R`, `Grad_R` and `P`, in this order, so that everybody sees what it needs.

use std::collections::BTreeSet;

use super::Builder;
use crate::program::{Argument, Role};
use crate::program::{Combine, Equation, Expr, IndexFn, Otherwise, Read, Stamp, Style, TensorId, Term, When};
use crate::weighted;

impl Builder {
    /// The relations with probabilities whose values something active reads, or that are the goal.
    pub(super) fn valued(&self, goal: TensorId, needed: &BTreeSet<TensorId>) -> BTreeSet<TensorId> {
        let mut valued = BTreeSet::from([goal]);
        for equation in self.program.equations.iter().filter(|equation| needed.contains(&equation.tensor)) {
            if !self.program.tensor(equation.tensor).is_proved() {
                equation.visit_reads(&mut |read, _| {
                    valued.insert(read.tensor);
                });
            }
        }
        valued.retain(|id| self.active.contains(id) && self.program.tensor(*id).is_proved());
        valued
    }

    /// What a relation with probabilities owes to all weights that are asked for.
    pub(super) fn proofs(&mut self, relation: TensorId, wrt: &[TensorId]) {
        let adjoint = self.adjoint_of(relation);
        for source in weighted::sources(&self.program, relation) {
            let proved = self.program.tensor(source).is_proved();
            let asked = if proved { wrt.contains(&source) } else { self.active.contains(&source) };
            if !asked {
                continue;
            }
            let slopes = self.slopes(relation, adjoint, source);
            let into = if proved { self.weights_of(source) } else { self.adjoint_of(source) };
            self.add(into, slopes);
        }
    }

    /// The derivatives by the given tuples of a relation: what its values owe is another thing.
    fn weights_of(&mut self, source: TensorId) -> TensorId {
        if let Some(known) = self.weights.get(&source) {
            return *known;
        }
        let tensor = self.program.tensor(source).clone();
        let made = self.tensor(format!("Grad_{}", tensor.name), Style::Round, tensor.places, tensor.span);
        self.weights.insert(source, made);
        made
    }

    fn slopes(&mut self, relation: TensorId, adjoint: TensorId, source: TensorId) -> TensorId {
        let tensor = self.program.tensor(source).clone();
        let name = format!("Slope_{}", tensor.name);
        let slopes = self.tensor(name, tensor.style, tensor.places, tensor.span);
        self.set_combine_to(slopes, Combine::Slopes);
        let read = |builder: &mut Builder, id: TensorId| {
            let (places, style) = (builder.program.tensor(id).places.len(), builder.program.tensor(id).style);
            let indices = builder.indices_of(places, tensor.span);
            let otherwise = if style == Style::Round { Otherwise::Absent } else { Otherwise::Zero };
            let arguments = indices.iter().map(|index| Argument::At(IndexFn::Index(*index))).collect();
            (indices, Expr::Read(Read::new(id, arguments, otherwise, tensor.span)))
        };
        let (mut over, through) = read(self, relation);
        let (others, owed) = read(self, adjoint);
        over.extend(others);
        let (left, of) = read(self, source);
        let body = Expr::Product(vec![through, owed, of]);
        let terms = vec![Term { over, when: When::default(), body }];
        let head = left.iter().copied().map(IndexFn::Index).collect();
        let (span, node) = (tensor.span, Stamp::default());
        let (head_span, sign_span) = (span, span);
        let equation = Equation { tensor: slopes, head, left, terms, node, span, head_span, sign_span };
        self.program.equations.push(equation);
        slopes
    }

    /// `into[x] += slopes[x]`
    fn add(&mut self, into: TensorId, slopes: TensorId) {
        let tensor = self.program.tensor(slopes).clone();
        let indices = self.indices_of(tensor.places.len(), tensor.span);
        if tensor.style == Style::Square {
            for (index, domain) in indices.iter().zip(tensor.domains()) {
                if let Some(entry) = self.program.indices.get_mut(index.0 as usize) {
                    entry.range = crate::program::Range::Domain(domain);
                }
            }
        }
        let body = self.read_of(slopes, &indices, tensor.span);
        let head = indices.iter().copied().map(IndexFn::Index).collect();
        let scope = super::Scope { indices, when: When::default() };
        self.push(into, head, &scope, body, tensor.span);
        if let Some(entry) = self.program.tensors.get_mut(into.0 as usize) {
            entry.role = Role::Computed;
        }
    }
}
