//! One formula, term or definition, symbol by symbol, with the probability of each.
//!
//! A pushdown machine. Most states take a symbol or have nothing to do with it. Three can also be left without
//! a symbol, with a probability of their own: an index may end here, a binder may stay without sort, a predicate
//! of drawn arity may have no arguments. [`Parser::step`] leaves such states until one takes the symbol.

mod fill;
mod indices;
mod terms;

use super::event::{Event, Place};
use super::hidden::Hidden;
use super::model::{Arity, Model};
use crate::ast::{Connective, Quantifier, Relation, Sign};
use crate::index::Block;
use crate::symbol::SymbolId;

/// What became of a symbol.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Step {
    /// It was read, with this probability (0: it cannot stand here).
    Took(f64),
    /// All had been read before it, with this probability.
    Ended(f64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Formula,
    /// The parenthesis of a binary formula whose second one has been read.
    Open,
    /// An atom whose second parenthesis has been read.
    Atom,
    BinderVariable,
    AfterBinder,
    SortSymbol,
    Term,
    Index(Use),
    PredicateOpen(Arity),
    FunctionOpen,
    AfterArgument,
    Relation,
    /// The left operand of a binary formula is over: its connective is to come, or in prefix notation its right
    /// operand.
    Connective,
    Close,
    Head(Head),
    Parameter,
    Define,
    Done,
}

/// What an index names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Use {
    Binder,
    Sort,
    Predicate,
    Function,
    Constant,
    /// A variable in scope.
    Scope,
    /// One in scope other than the left side's.
    ScopeWithout(u64),
    /// A variable of any name.
    Name,
    Head(Head),
    Parameter,
}

/// What a definition defines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Head {
    Predicate,
    Function,
    Constant,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Frame {
    /// With whether the binder was drawn as one that binds nothing.
    Quantifier {
        vacuous: bool,
    },
    /// A second pair of parentheses.
    Doubled,
    /// The place of the operands.
    Binary {
        operands: Place,
        right: bool,
    },
    Predicate {
        arity: Arity,
        done: usize,
    },
    Function {
        arity: usize,
        done: usize,
        depth: u32,
    },
    Parameters {
        arity: Arity,
        done: usize,
    },
    LeftSide,
    /// With the name on the left, if sides are different variables in scope.
    RightSide {
        left: Option<u64>,
    },
}

/// The machine.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Parser {
    state: State,
    frames: Vec<Frame>,
    place: Place,
    /// The digits of the index so far, and the weight of all indices that begin with them.
    value: Option<u64>,
    weight: f64,
    scope: Vec<u64>,
    /// The index of the next binder, if binders are numbered.
    number: [u64; 1],
    /// Names that binders have, sorted, if they are distinct; those of the binders above, if they are apart.
    used: Vec<u64>,
    /// The names of all binders above, outermost first, if they are apart.
    above: Vec<u64>,
    /// The additional weight of the innermost variable in scope, if it is more likely than others.
    recent: [Block; 1],
    defining: Option<Head>,
    /// The body of the definition has begun.
    body: bool,
}

impl Parser {
    /// Before a formula.
    pub(super) fn formula() -> Self {
        Self {
            state: State::Formula,
            frames: Vec::new(),
            place: Place::default(),
            value: None,
            weight: 0.0,
            scope: Vec::new(),
            number: [0],
            used: Vec::new(),
            above: Vec::new(),
            recent: [(0, 0, 0.0)],
            defining: None,
            body: false,
        }
    }

    /// Before a definition.
    pub(super) fn definition(head: Head) -> Self {
        Self { state: State::Head(head), defining: Some(head), ..Self::formula() }
    }

    /// Back to before a formula, keeping the room.
    pub(super) fn restart(&mut self) {
        let Self { mut frames, mut scope, mut used, mut above, .. } =
            std::mem::replace(self, Self::formula());
        frames.clear();
        [&mut scope, &mut used, &mut above].into_iter().for_each(Vec::clear);
        *self = Self { frames, scope, used, above, ..Self::formula() };
    }

    /// As after something complete.
    pub(super) fn finish(&mut self) {
        self.state = State::Done;
    }

    /// Where a formula is expected, now or after the binder that is being read.
    pub(super) fn expected(&self) -> Option<Place> {
        matches!(
            self.state,
            State::Formula
                | State::BinderVariable
                | State::AfterBinder
                | State::SortSymbol
                | State::Index(Use::Binder | Use::Sort)
        )
        .then_some(self.place)
    }

    /// Reads a symbol.
    pub(super) fn step(&mut self, symbol: SymbolId, model: &Model, hidden: &mut Hidden) -> Step {
        let mut left = 1.0;
        loop {
            if self.state == State::Done {
                return Step::Ended(left);
            }
            if let Some(p) = self.take(symbol, model, hidden) {
                return Step::Took(left * p);
            }
            left *= self.leave(model);
            if left <= 0.0 {
                return Step::Took(0.0);
            }
        }
    }

    /// Every way to read a symbol, with its probability, where parentheses may be redundant and binders may bind
    /// nothing. `<eos>` is none.
    pub(super) fn readings(
        &self,
        symbol: SymbolId,
        model: &Model,
        hidden: &Hidden,
        mut each: impl FnMut(f64, Self, Hidden),
    ) {
        let (mut next, mut hidden, mut left) = (self.clone(), hidden.clone(), 1.0);
        while next.state != State::Done && left > 0.0 {
            if next.state == State::Connective && model.is_prefix() {
                next.right_operand(&mut hidden);
            }
            if next.state == State::Formula && Quantifier::from_symbol(symbol).is_some() {
                for (vacuous, share) in [(false, 1.0 - model.vacuous), (true, model.vacuous)] {
                    let (mut taken, mut own) = (next.clone(), hidden.clone());
                    let p = taken.quantifier(symbol, vacuous, model, &mut own);
                    each(left * (share * p), taken, own);
                }
                return;
            }
            if next.state == State::Formula && symbol == SymbolId::LPAREN && !model.is_prefix() {
                let (mut once, mut own) = (next.clone(), hidden.clone());
                let p = once.binary(1.0 - model.doubled, &mut own);
                each(left * p, once, own);
                let (mut twice, mut own) = (next.clone(), hidden.clone());
                twice.frames.push(Frame::Doubled);
                let p = twice.binary(model.doubled, &mut own);
                twice.state = State::Open;
                each(left * p, twice, own);
                let mut own = hidden.clone();
                let p = model.doubled * own.commit(Event::Atom, next.place);
                next.frames.push(Frame::Doubled);
                next.state = State::Atom;
                return each(left * p, next, own);
            }
            let mut own = hidden.clone();
            let mut taken = next.clone();
            if let Some(p) = taken.take(symbol, model, &mut own) {
                return each(left * p, taken, own);
            }
            left *= next.leave(model);
        }
    }

    /// The probability that all is read.
    pub(super) fn over(&self, model: &Model) -> f64 {
        let (mut last, mut left) = (self.clone(), 1.0);
        while last.state != State::Done && left > 0.0 {
            left *= last.leave(model);
        }
        left
    }

    /// The probability of the symbol in this state alone; `None` if the state has to be left first.
    fn take(&mut self, symbol: SymbolId, model: &Model, hidden: &mut Hidden) -> Option<f64> {
        if let Some((expected, next)) = self.forced() {
            if symbol != expected {
                return Some(0.0);
            }
            match self.state {
                State::Close => {
                    self.frames.pop();
                    self.complete_formula(model);
                }
                State::Define => {
                    self.state = next;
                    self.body = true;
                    hidden.start();
                }
                _ => self.state = next,
            }
            return Some(1.0);
        }
        match self.state {
            State::Formula => Some(self.formula_start(symbol, model, hidden)),
            State::Atom => Some(self.atom(symbol, model)),
            State::AfterBinder if symbol == SymbolId::COLON => {
                self.state = State::SortSymbol;
                Some(model.sorted.map_or(0.0, |[_, yes]| yes))
            }
            State::Term => Some(self.term_start(symbol, model)),
            State::Index(of) => symbol.numeral().map(|digit| self.digit(of, digit, model)),
            State::PredicateOpen(arity) if symbol == SymbolId::LPAREN => {
                let p = model.more(arity, 0);
                self.open(arity);
                Some(p)
            }
            State::AfterArgument => Some(self.after_argument(symbol, model)),
            State::Relation => {
                self.state = State::Term;
                Some(Relation::share(symbol, &model.relations))
            }
            State::Connective if model.is_prefix() => {
                self.right_operand(hidden);
                Some(self.formula_start(symbol, model, hidden))
            }
            State::Connective => Some(self.connective(symbol, model, hidden)),
            _ => None,
        }
    }

    /// The symbol that must come, where only one can, and the state after it.
    fn forced(&self) -> Option<(SymbolId, State)> {
        Some(match self.state {
            State::BinderVariable => (SymbolId::VAR, State::Index(Use::Binder)),
            State::Open => (SymbolId::LPAREN, State::Formula),
            State::SortSymbol => (SymbolId::SORT, State::Index(Use::Sort)),
            State::FunctionOpen => (SymbolId::LPAREN, State::Term),
            State::Close => (SymbolId::RPAREN, State::Close),
            State::Head(head) => (head.category(), State::Index(Use::Head(head))),
            State::Parameter => (SymbolId::VAR, State::Index(Use::Parameter)),
            State::Define if self.defining == Some(Head::Predicate) => (SymbolId::DEFINE, State::Formula),
            State::Define => (SymbolId::DEFINE, State::Term),
            _ => return None,
        })
    }

    /// Leaves a state without a symbol; the answer is the probability.
    fn leave(&mut self, model: &Model) -> f64 {
        match self.state {
            State::AfterBinder => {
                self.state = State::Formula;
                model.sorted.map_or(1.0, |[no, _]| no)
            }
            State::Index(of) => {
                let Some(value) = self.value else { return 0.0 };
                let p = self.weights(of, model).range(value, value.saturating_add(1)) / self.weight;
                self.finish_index(of, value, model);
                p
            }
            State::PredicateOpen(arity) => {
                let p = 1.0 - model.more(arity, 0);
                if self.in_head() {
                    self.state = State::Define;
                } else {
                    self.complete_formula(model);
                }
                p
            }
            _ => 0.0,
        }
    }

    /// An index ends here, if one is being read; the answer is the probability.
    pub(super) fn end_index(&mut self, model: &Model) -> f64 {
        match self.state {
            State::Index(_) => self.leave(model),
            _ => 1.0,
        }
    }

    fn formula_start(&mut self, symbol: SymbolId, model: &Model, hidden: &mut Hidden) -> f64 {
        match symbol {
            SymbolId::NOT => {
                let p = hidden.commit(Event::Not, self.place);
                self.place.depth += 1;
                p
            }
            SymbolId::LPAREN if !model.is_prefix() => self.binary(1.0, hidden),
            SymbolId::AND | SymbolId::OR | SymbolId::IMPLIES | SymbolId::IFF if model.is_prefix() => {
                self.binary(Connective::share(symbol, &model.binary), hidden)
            }
            SymbolId::FORALL | SymbolId::EXISTS | SymbolId::EXISTS1 => {
                self.quantifier(symbol, false, model, hidden)
            }
            _ => self.atom_start(symbol, model, hidden),
        }
    }

    /// A quantified formula begins, among all of them.
    fn quantifier(&mut self, symbol: SymbolId, vacuous: bool, model: &Model, hidden: &mut Hidden) -> f64 {
        let share = Quantifier::share(symbol, &model.quantifiers);
        if share <= 0.0 {
            return 0.0;
        }
        let p = share * hidden.commit(Event::Quantifier, self.place);
        self.place = Place { depth: self.place.depth + 1, quantifiers: self.place.quantifiers + 1 };
        self.frames.push(Frame::Quantifier { vacuous });
        self.state = State::BinderVariable;
        p
    }

    /// A binary formula begins, with a share of all of them.
    fn binary(&mut self, share: f64, hidden: &mut Hidden) -> f64 {
        if share <= 0.0 {
            return 0.0;
        }
        let p = share * hidden.commit(Event::Binary, self.place);
        self.place.depth += 1;
        self.frames.push(Frame::Binary { operands: self.place, right: false });
        self.state = State::Formula;
        p
    }

    fn atom_start(&mut self, symbol: SymbolId, model: &Model, hidden: &mut Hidden) -> f64 {
        let place = self.place;
        let share = (1.0 - model.doubled) * self.atom(symbol, model);
        if share > 0.0 { share * hidden.commit(Event::Atom, place) } else { 0.0 }
    }

    /// An atom begins, among atoms.
    fn atom(&mut self, symbol: SymbolId, model: &Model) -> f64 {
        let [predicate, relation, truth] = model.atoms(self.scope.len());
        match symbol {
            SymbolId::PRED => {
                self.begin_index(Use::Predicate, model);
                predicate
            }
            SymbolId::TRUE | SymbolId::FALSE => {
                let [yes, no] = model.truth;
                self.complete_formula(model);
                truth * if symbol == SymbolId::TRUE { yes } else { no }
            }
            _ if model.is_prefix() => {
                let share = relation * Relation::share(symbol, &model.relations);
                if share > 0.0 {
                    self.frames.push(Frame::LeftSide);
                    self.state = State::Term;
                }
                share
            }
            SymbolId::VAR | SymbolId::CONST | SymbolId::FUNC if relation > 0.0 => {
                self.frames.push(Frame::LeftSide);
                relation * self.term_start(symbol, model)
            }
            _ => 0.0,
        }
    }

    fn connective(&mut self, symbol: SymbolId, model: &Model, hidden: &mut Hidden) -> f64 {
        let p = Connective::share(symbol, &model.binary);
        if p > 0.0 {
            self.right_operand(hidden);
        }
        p
    }

    /// The left operand is over, the right one begins.
    fn right_operand(&mut self, hidden: &mut Hidden) {
        if let Some(Frame::Binary { operands, right }) = self.frames.last_mut() {
            *right = true;
            self.place = *operands;
            self.state = State::Formula;
            hidden.next_operand();
        }
    }

    /// Whether the head of a definition is being read.
    fn in_head(&self) -> bool {
        self.defining.is_some() && self.frames.is_empty() && !self.body
    }

    /// A formula is over: back to the innermost place that waits for more.
    fn complete_formula(&mut self, model: &Model) {
        loop {
            match self.frames.last() {
                Some(&Frame::Quantifier { vacuous }) => {
                    self.frames.pop();
                    self.close_binder(vacuous, model);
                }
                Some(Frame::Doubled) => return self.state = State::Close,
                Some(Frame::Binary { right: false, .. }) => return self.state = State::Connective,
                Some(Frame::Binary { right: true, .. }) if model.is_prefix() => drop(self.frames.pop()),
                Some(Frame::Binary { right: true, .. }) => return self.state = State::Close,
                _ => return self.state = State::Done,
            }
        }
    }
}

impl Head {
    /// The symbol that a definition begins with.
    pub(super) fn category(self) -> SymbolId {
        match self {
            Self::Predicate => SymbolId::PRED,
            Self::Function => SymbolId::FUNC,
            Self::Constant => SymbolId::CONST,
        }
    }
}
