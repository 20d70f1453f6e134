//! How few tokens complete a prefix, from its stack of frames.

use super::cost::{Cost, NEVER, arguments, cost_if, sum};
use super::indices::{Digits, Indices};
use super::{Category, Frame, Head, Mask, Phase, Spot};
use crate::error::MAX_DEPTH;
use crate::symbol::SymbolId;

impl Mask {
    pub(super) fn fewest_digits(&self) -> Option<u32> {
        self.scope.last().map(|bound| bound.fewest)
    }

    /// The least cost of a term here.
    pub(super) fn term(&self) -> Cost {
        self.rules.term(self.fewest_digits())
    }

    /// The least cost of a formula inside so many nodes.
    pub(super) fn formula(&self, term: Cost, depth: usize) -> Cost {
        cost_if(depth <= MAX_DEPTH, self.rules.formula(term, depth < MAX_DEPTH && self.may_bind()))
    }

    /// Whether one more quantifier may stand on this path.
    pub(super) fn may_bind(&self) -> bool {
        let pending = matches!(self.spot, Spot::Binder | Spot::Index(Category::Binder, _));
        self.most_scope.is_none_or(|most| self.scope.len() + usize::from(pending) < most)
    }

    /// How few tokens complete the input, `<eos>` included, once what is being read is complete, if the
    /// statement is no definition.
    pub(super) fn rest(&self) -> Cost {
        match self.frames.last() {
            Some(frame) => self.rest_of(frame),
            None => self.rest_of_phase(),
        }
    }

    pub(super) fn rest_of(&self, frame: &Frame) -> Cost {
        match *frame {
            Frame::Paren { connective: true, outer, .. } => sum([1, outer]),
            Frame::Paren { connective: false, depth, scope, outer } => {
                let fewest =
                    scope.checked_sub(1).and_then(|last| self.scope.get(last)).map(|bound| bound.fewest);
                sum([1, self.formula(self.rules.term(fewest), depth), 1, outer])
            }
            Frame::Relation { right: true, outer } => outer,
            // The name of a definition may stand where no relation could follow it.
            Frame::Relation { right: false, outer } => {
                cost_if(!self.rules.relations.is_empty(), sum([1, self.term(), outer]))
            }
            Frame::Arguments { function, digits, count, outer, .. } => {
                sum([self.more_arguments(function, digits, count, self.term()), outer])
            }
        }
    }

    fn rest_of_phase(&self) -> Cost {
        match self.phase {
            Phase::First | Phase::Last => 1,
            Phase::Premise => sum([1, self.rules.conclusion(), 1]),
        }
    }

    /// How few tokens close an application after its `count` first arguments.
    pub(super) fn more_arguments(&self, function: bool, digits: Digits, count: usize, term: Cost) -> Cost {
        let arity = self.indices(function).least_arity(digits, count);
        // Each argument more costs a COMMA and a term; `arguments` counts one COMMA less and LPAREN.
        arity.map_or(NEVER, |arity| if arity == count { 1 } else { arguments(arity - count, term) })
    }

    pub(super) fn indices(&self, function: bool) -> &Indices {
        if function { &self.rules.functions } else { &self.rules.predicates }
    }

    /// How few tokens complete the input after a head: DEFINE, body, `<eos>`. `shorter`: a parameter of one
    /// digit is to come.
    pub(super) fn body(&self, head: &Head, shorter: bool) -> Cost {
        let digits = head.parameters.iter().map(|parameter| parameter.count.max(1));
        let term = self.rules.term(digits.chain(shorter.then_some(1)).min());
        let body = if head.category == SymbolId::PRED { self.formula(term, 0) } else { term };
        sum([1, body, 1])
    }

    /// How few tokens complete the input after the parameter number `count` of a head.
    pub(super) fn rest_of_head(&self, head: &Head, digits: Digits, count: usize) -> Cost {
        let indices = self.indices(head.category == SymbolId::FUNC);
        let now = indices.least_arity(digits, count).filter(|&arity| arity == count);
        let closing = now.map_or(NEVER, |_| sum([1, self.body(head, false)]));
        let later = indices.least_arity(digits, count + 1);
        let more = later.map_or(NEVER, |arity| sum([arguments(arity - count, 2), self.body(head, true)]));
        closing.min(more)
    }
}
