//! Formulas: a machine with a stack of the nodes around the next operand.
//!
//! Enter at [`Reader::formula`]. Strict and lenient reading differ only in what may follow an operand (F12).

use super::{CONNECTIVES, Opening, QUANTIFIERS, RELATIONS, Read, Reader, bit, bits};
use crate::ast::{Connective, Constant, Formula, Predicate, Quantifier, Relation, Sort, Term, Variable};
use crate::built::{Built, Make};
use crate::error::MAX_DEPTH;
use crate::input::Mode;
use crate::symbol::SymbolId;
use crate::walk::Event;

const ATOMS: u64 = bits(&[SymbolId::PRED, SymbolId::TRUE, SymbolId::FALSE, SymbolId::VAR, SymbolId::CONST]);
/// What descends: prefixes of formulas, and functions.
const PREFIXES: u64 = bits(&[SymbolId::NOT, SymbolId::LPAREN]) | QUANTIFIERS;
const DEEPER: u64 = PREFIXES | bit(SymbolId::FUNC);

/// What encloses the operand that is read next.
enum Frame<M: Make> {
    Not,
    Quantified(Quantifier, Variable, Option<Sort>),
    /// A parenthesis with nothing complete in it.
    Open,
    /// The left operand and the connective of a binary formula.
    Left(Connective, Built<M>),
}

impl<M: Make> Reader<'_, M> {
    /// A formula that is no head.
    pub(super) fn inner_formula(&mut self) -> Read<M::Of<Formula>> {
        match self.formula(false)? {
            Opening::Formula(formula) => Ok(formula),
            Opening::Head(_) => self.refuse("a term"),
        }
    }

    /// A formula, or if `opens` the head of a definition, before its DEFINE.
    pub(super) fn formula(&mut self, opens: bool) -> Read<Opening<M>> {
        let mut frames = Vec::new();
        loop {
            // An operand is to begin.
            let (start, depth) = (self.at, self.depth(&frames));
            self.ask(ATOMS | if depth < MAX_DEPTH { DEEPER } else { 0 });
            let Some(next) = self.next() else { return self.refuse(before(&frames)) };
            if depth >= MAX_DEPTH && DEEPER & bit(next) != 0 {
                return self.refuse_as(before(&frames), true);
            }
            if let Some(quantifier) = Quantifier::from_symbol(next) {
                self.advance();
                frames.push(self.binder(quantifier)?);
                continue;
            }
            if PREFIXES & bit(next) != 0 {
                self.pass(next);
                frames.push(if next == SymbolId::NOT { Frame::Not } else { Frame::Open });
                continue;
            }
            let heads = |reader: &mut Self| {
                opens
                    && frames.is_empty()
                    && reader.is_head(start)
                    && reader.ask(bit(SymbolId::DEFINE)).is_some()
            };
            let (formula, height) = match next {
                SymbolId::TRUE | SymbolId::FALSE => {
                    self.pass(next);
                    (M::make(|| Formula::Truth(next == SymbolId::TRUE)), 0)
                }
                SymbolId::PRED => {
                    let index = self.name(SymbolId::PRED)?;
                    let (arguments, height) = self.arguments(depth)?;
                    let arguments = M::all(arguments);
                    if heads(self) {
                        return Ok(Opening::Head(M::map(arguments, |arguments| (index, arguments))));
                    }
                    (M::map(arguments, |arguments| Formula::Predicate(Predicate(index), arguments)), height)
                }
                SymbolId::VAR | SymbolId::CONST | SymbolId::FUNC => {
                    let (left, height) = self.term(depth)?;
                    if heads(self) {
                        return Ok(Opening::Head(M::map(left, |head| match head {
                            Term::Function(function, arguments) => (function.0, arguments),
                            Term::Constant(Constant(index)) | Term::Variable(Variable(index)) => {
                                (index, Vec::new())
                            }
                        })));
                    }
                    let Some(symbol) = self.ask(RELATIONS) else { return self.refuse("a term") };
                    let Some(relation) = Relation::from_symbol(symbol) else { return self.refuse("a term") };
                    self.pass(symbol);
                    let (right, other) = self.term(depth)?;
                    let whole = |left, right| Formula::Relation(relation, left, right);
                    (M::both(left, right, whole), height.max(other))
                }
                _ => return self.refuse(before(&frames)),
            };
            let operand = Built::atom(formula, height);
            let complete = match self.mode {
                Mode::Strict => self.strict_tail(&mut frames, operand)?,
                Mode::Lenient => self.lenient_tail(&mut frames, operand)?,
            };
            if let Some(operand) = complete {
                return Ok(Opening::Formula(operand.formula));
            }
        }
    }

    fn binder(&mut self, quantifier: Quantifier) -> Read<Frame<M>> {
        if !self.take(SymbolId::VAR) {
            return self.refuse("a quantifier");
        }
        let variable = Variable(self.index()?);
        let sort = if !self.take(SymbolId::COLON) {
            None
        } else if self.take(SymbolId::SORT) {
            Some(Sort(self.index()?))
        } else {
            return self.refuse("COLON");
        };
        let (index, quantified) = (sort.map(|sort| sort.0), Some(quantifier.symbol()));
        self.make.note(Event::Binder { variable, sort: index, quantifier: quantified, shadows: false });
        if let Some(index) = index {
            self.make.note(Event::Punctuation(SymbolId::COLON));
            self.make.note(Event::Sort(index));
        }
        Ok(Frame::Quantified(quantifier, variable, sort))
    }

    /// After an operand, canonical form: `(φ` goes on with a connective, `(φ ∧ ψ` with RPAREN. `None` if
    /// another operand is to follow.
    fn strict_tail(&mut self, frames: &mut Vec<Frame<M>>, mut operand: Built<M>) -> Read<Option<Built<M>>> {
        loop {
            operand = match frames.pop() {
                None => return Ok(Some(operand)),
                Some(Frame::Open) => {
                    let Some(connective) = self.ask(CONNECTIVES).and_then(Connective::from_symbol) else {
                        return self.refuse("a complete formula in parentheses");
                    };
                    self.pass(connective.symbol());
                    frames.push(Frame::Left(connective, operand));
                    return Ok(None);
                }
                Some(Frame::Left(..)) if !self.take_as(SymbolId::RPAREN, Event::Symbol) => {
                    return self.refuse("both operands of a connective");
                }
                Some(frame) => self.close(frame, operand),
            }
        }
    }

    /// After an operand, with precedence. `None` if another operand is to follow.
    fn lenient_tail(&mut self, frames: &mut Vec<Frame<M>>, mut operand: Built<M>) -> Read<Option<Built<M>>> {
        loop {
            operand =
                self.reduce(frames, operand, |frame| matches!(frame, Frame::Not | Frame::Quantified(..)))?;
            if let Some(next) = self.ask(CONNECTIVES).and_then(Connective::from_symbol) {
                let tighter =
                    |frame: &Frame<M>| matches!(frame, Frame::Left(before, _) if groups_left(*before, next));
                operand = self.reduce(frames, operand, tighter)?;
                if self.depth(frames) + operand.height
                    >= MAX_DEPTH + usize::from(matches!(frames.last(), Some(Frame::Open)))
                {
                    return self.refuse_as("a complete formula", true);
                }
                self.advance();
                frames.push(Frame::Left(next, operand));
                return Ok(None);
            }
            let inside = frames.iter().rev().any(|frame| matches!(frame, Frame::Open));
            if !inside {
                return self.reduce(frames, operand, |_| true).map(Some);
            }
            if self.ask(bit(SymbolId::RPAREN)).is_none() {
                return self.refuse("a complete formula in parentheses");
            }
            operand = self.reduce(frames, operand, |frame| !matches!(frame, Frame::Open))?;
            if let Some(frame) = frames.pop() {
                operand = self.close(frame, operand);
                self.check_height(frames, &operand)?;
            }
            self.advance();
        }
    }

    /// Closes the innermost frames as long as they are `wanted`.
    fn reduce(
        &mut self,
        frames: &mut Vec<Frame<M>>,
        operand: Built<M>,
        wanted: impl Fn(&Frame<M>) -> bool,
    ) -> Read<Built<M>> {
        let mut operand = operand;
        while let Some(frame) = frames.pop_if(|frame| wanted(frame)) {
            operand = self.close(frame, operand);
            self.check_height(frames, &operand)?;
        }
        Ok(operand)
    }

    /// How many nodes enclose what comes next. A binary formula counts once with its own parenthesis, which
    /// only the lenient reader keeps as a frame.
    fn depth(&self, frames: &[Frame<M>]) -> usize {
        let shared = |pair: &&[Frame<M>]| matches!(pair, [Frame::Open, Frame::Left(..)]);
        match self.mode {
            Mode::Strict => frames.len(),
            Mode::Lenient => frames.len() - frames.windows(2).filter(shared).count(),
        }
    }

    fn check_height(&self, frames: &[Frame<M>], operand: &Built<M>) -> Read<()> {
        // The outermost node of a bare operand may share the parenthesis around it.
        let shared = usize::from(operand.bare && matches!(frames.last(), Some(Frame::Open)));
        if self.depth(frames) + operand.height > MAX_DEPTH + shared {
            return self.refuse_as("a complete formula", true);
        }
        Ok(())
    }

    /// The formula of a frame around its last operand.
    fn close(&mut self, frame: Frame<M>, operand: Built<M>) -> Built<M> {
        match frame {
            Frame::Not => operand.negated(),
            Frame::Quantified(quantifier, variable, sort) => {
                self.make.leave();
                operand.quantified(quantifier, variable, sort)
            }
            Frame::Open => operand.enclosed(),
            Frame::Left(connective, left) => Built::joined(connective, left, operand),
        }
    }
}

/// What stands before an operand, in words.
fn before<M: Make>(frames: &[Frame<M>]) -> &'static str {
    match frames.last() {
        None => "the beginning",
        Some(Frame::Not) => "NOT",
        Some(Frame::Quantified(..)) => "a quantifier and its variable",
        Some(Frame::Open) => "LPAREN",
        Some(Frame::Left(..)) => "a connective",
    }
}

/// Whether φ in `φ before ψ next` is an operand of `before` together with ψ.
fn groups_left(before: Connective, next: Connective) -> bool {
    // Stronger connectives come first in the order of the symbols; only IMPLIES groups to the right.
    before < next || (before == next && next != Connective::Implies)
}
