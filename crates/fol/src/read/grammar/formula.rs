//! Formulas: a machine with a stack of the nodes around the next operand.
//!
//! Enter at [`Reader::formula`]. Strict and lenient reading differ only in what may follow an operand (F12).

use super::{CONNECTIVES, Opening, QUANTIFIERS, RELATIONS, Read, Reader};
use crate::ast::{Connective, Formula, Predicate, Quantifier, Relation, Sort, Term, Variable};
use crate::built::Built;
use crate::error::MAX_DEPTH;
use crate::input::Mode;
use crate::symbol::SymbolId;

const ATOMS: &[SymbolId] = &[SymbolId::PRED, SymbolId::TRUE, SymbolId::FALSE];

/// What encloses the operand that is read next.
enum Frame {
    Not,
    Quantified(Quantifier, Variable, Option<Sort>),
    /// A parenthesis with nothing complete in it.
    Open,
    /// The left operand and the connective of a binary formula.
    Left(Connective, Built),
}

impl Reader<'_> {
    /// A formula that is no head.
    pub(super) fn inner_formula(&mut self) -> Read<Formula> {
        match self.formula(false)? {
            Opening::Formula(formula) => Ok(formula),
            Opening::Head(_) => self.refuse("a term"),
        }
    }

    /// A formula, or if `opens` the head of a definition by a term, before its DEFINE.
    pub(super) fn formula(&mut self, opens: bool) -> Read<Opening> {
        let mut frames = Vec::new();
        loop {
            // An operand is to begin.
            let depth = self.depth(&frames);
            self.ask(ATOMS);
            self.ask(&[SymbolId::VAR, SymbolId::CONST]);
            if depth < MAX_DEPTH {
                self.ask(&[SymbolId::NOT, SymbolId::LPAREN, SymbolId::FUNC]);
                self.ask(QUANTIFIERS);
            }
            let Some(next) = self.next() else { return self.refuse(before(&frames)) };
            let prefix = next == SymbolId::NOT || next == SymbolId::LPAREN || QUANTIFIERS.contains(&next);
            if depth >= MAX_DEPTH && (prefix || next == SymbolId::FUNC) {
                return self.refuse_as(before(&frames), true);
            }
            if prefix {
                self.advance();
                frames.push(match Quantifier::from_symbol(next) {
                    Some(quantifier) => self.binder(quantifier)?,
                    None if next == SymbolId::NOT => Frame::Not,
                    None => Frame::Open,
                });
                continue;
            }
            let (formula, height) = match next {
                SymbolId::TRUE | SymbolId::FALSE => {
                    self.advance();
                    (Formula::Truth(next == SymbolId::TRUE), 0)
                }
                SymbolId::PRED => {
                    self.advance();
                    let predicate = Predicate(self.index()?);
                    let (arguments, height) = self.arguments(depth)?;
                    (Formula::Predicate(predicate, arguments), height)
                }
                SymbolId::VAR | SymbolId::CONST | SymbolId::FUNC => {
                    let (left, height) = self.term(depth)?;
                    if opens && frames.is_empty() && is_head(&left) && self.ask(&[SymbolId::DEFINE]).is_some()
                    {
                        return Ok(Opening::Head(left));
                    }
                    let Some(relation) = self.ask(RELATIONS).and_then(Relation::from_symbol) else {
                        return self.refuse("a term");
                    };
                    self.advance();
                    let (right, other) = self.term(depth)?;
                    (Formula::Relation(relation, left, right), height.max(other))
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

    fn binder(&mut self, quantifier: Quantifier) -> Read<Frame> {
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
        Ok(Frame::Quantified(quantifier, variable, sort))
    }

    /// After an operand, canonical form: `(φ` goes on with a connective, `(φ ∧ ψ` with RPAREN. `None` if
    /// another operand is to follow.
    fn strict_tail(&mut self, frames: &mut Vec<Frame>, mut operand: Built) -> Read<Option<Built>> {
        loop {
            operand = match frames.pop() {
                None => return Ok(Some(operand)),
                Some(Frame::Open) => {
                    let Some(connective) = self.ask(CONNECTIVES).and_then(Connective::from_symbol) else {
                        return self.refuse("a complete formula in parentheses");
                    };
                    self.advance();
                    frames.push(Frame::Left(connective, operand));
                    return Ok(None);
                }
                Some(Frame::Left(..)) if self.ask(&[SymbolId::RPAREN]).is_none() => {
                    return self.refuse("both operands of a connective");
                }
                Some(frame) => {
                    if matches!(frame, Frame::Left(..)) {
                        self.advance();
                    }
                    close(frame, operand)
                }
            }
        }
    }

    /// After an operand, with precedence. `None` if another operand is to follow.
    fn lenient_tail(&mut self, frames: &mut Vec<Frame>, mut operand: Built) -> Read<Option<Built>> {
        loop {
            operand =
                self.reduce(frames, operand, |frame| matches!(frame, Frame::Not | Frame::Quantified(..)))?;
            if let Some(next) = self.ask(CONNECTIVES).and_then(Connective::from_symbol) {
                let tighter =
                    |frame: &Frame| matches!(frame, Frame::Left(before, _) if groups_left(*before, next));
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
            if self.ask(&[SymbolId::RPAREN]).is_none() {
                return self.refuse("a complete formula in parentheses");
            }
            operand = self.reduce(frames, operand, |frame| !matches!(frame, Frame::Open))?;
            if let Some(frame) = frames.pop() {
                operand = close(frame, operand);
                self.check_height(frames, &operand)?;
            }
            self.advance();
        }
    }

    /// Closes the innermost frames as long as they are `wanted`.
    fn reduce(
        &self,
        frames: &mut Vec<Frame>,
        operand: Built,
        wanted: impl Fn(&Frame) -> bool,
    ) -> Read<Built> {
        let mut operand = operand;
        while let Some(frame) = frames.pop_if(|frame| wanted(frame)) {
            operand = close(frame, operand);
            self.check_height(frames, &operand)?;
        }
        Ok(operand)
    }

    /// How many nodes enclose what comes next. A binary formula counts once with its own parenthesis, which
    /// only the lenient reader keeps as a frame.
    fn depth(&self, frames: &[Frame]) -> usize {
        let shared = |pair: &&[Frame]| matches!(pair, [Frame::Open, Frame::Left(..)]);
        match self.mode {
            Mode::Strict => frames.len(),
            Mode::Lenient => frames.len() - frames.windows(2).filter(shared).count(),
        }
    }

    fn check_height(&self, frames: &[Frame], operand: &Built) -> Read<()> {
        // The outermost node of a bare operand may share the parenthesis around it.
        let shared = usize::from(operand.bare && matches!(frames.last(), Some(Frame::Open)));
        if self.depth(frames) + operand.height > MAX_DEPTH + shared {
            return self.refuse_as("a complete formula", true);
        }
        Ok(())
    }
}

/// What stands before an operand, in words.
fn before(frames: &[Frame]) -> &'static str {
    match frames.last() {
        None => "the beginning",
        Some(Frame::Not) => "NOT",
        Some(Frame::Quantified(..)) => "a quantifier and its variable",
        Some(Frame::Open) => "LPAREN",
        Some(Frame::Left(..)) => "a connective",
    }
}

/// The formula of a frame around its last operand.
fn close(frame: Frame, operand: Built) -> Built {
    match frame {
        Frame::Not => operand.negated(),
        Frame::Quantified(quantifier, variable, sort) => operand.quantified(quantifier, variable, sort),
        Frame::Open => operand.enclosed(),
        Frame::Left(connective, left) => Built::joined(connective, left, operand),
    }
}

/// Whether φ in `φ before ψ next` is an operand of `before` together with ψ.
fn groups_left(before: Connective, next: Connective) -> bool {
    // Stronger connectives come first in the order of the symbols; only IMPLIES groups to the right.
    before < next || (before == next && next != Connective::Implies)
}

/// Whether a term can be the head of a definition.
fn is_head(term: &Term) -> bool {
    match term {
        Term::Variable(_) => false,
        Term::Constant(_) => true,
        Term::Function(_, arguments) => {
            arguments.iter().all(|argument| matches!(argument, Term::Variable(_)))
        }
    }
}
