//! Legal-symbol masks: which symbols may follow a prefix (F48, F50).
//!
//! Enter at [`Mask`]: [`push`](Mask::push) a symbol, look at [`legal`](Mask::legal), clone for beams. A symbol
//! is legal if prefix and symbol begin some complete input, so decoding under a mask never ends in a dead
//! end. The mask is a pushdown automaton: a `Spot` says what comes next, a stack of `Frame`s what comes
//! after that. NOT and quantifiers need no frame; they only count the depth, and bind.
//!
//! With `--closed`, `--within` and a budget a symbol must also leave room for the rest. Every frame knows how
//! few tokens complete everything outside it (`rules` has the costs), so this is one comparison for each
//! candidate. The odd case is the start of a statement, where `P(x1` may begin an atom or the head of a
//! definition: `Head` keeps both readings, with their costs, until one is excluded.

mod completion;
mod cost;
mod indices;
mod legal;
mod options;
mod rules;
mod transitions;

use std::sync::Arc;

use crate::error::{Kind, MAX_DEPTH, Refusal, Stage};
use crate::symbol::{SymbolId, SymbolKind};
use crate::symbol_set::{SymbolSet, expected_labels};
use cost::Cost;
use indices::Digits;
pub use options::{Grammar, Options};
use rules::Rules;

/// A prefix, without `<bos>`, and what may follow it.
#[derive(Debug, Clone)]
pub struct Mask {
    rules: Arc<Rules>,
    spot: Spot,
    frames: Vec<Frame>,
    /// How many nodes enclose what comes next.
    depth: usize,
    /// Variables in scope, innermost last.
    scope: Vec<Bound>,
    /// The most variables in scope, if quantifiers may not nest at will.
    most_scope: Option<usize>,
    phase: Phase,
    head: Option<Head>,
    /// How many more tokens fit, if there is a bound.
    budget: Option<u32>,
    legal: SymbolSet,
}

/// A variable in scope.
#[derive(Debug, Clone, Copy)]
struct Bound {
    index: u64,
    digits: u32,
    /// The fewest digits of a variable in scope up to this one.
    fewest: u32,
}

/// Which part of a statement this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The first formula, or the head of a definition.
    First,
    /// A premise after a COMMA.
    Premise,
    /// What ends the statement: a conclusion, the body of a definition, the right side of an equivalence.
    Last,
}

/// What is being read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Spot {
    /// A statement is to begin; `after_dot` if the text could end instead.
    Statement { after_dot: bool },
    /// A conclusion is to begin.
    Conclusion,
    /// A formula is to begin.
    Operand,
    /// A term is to begin.
    Term,
    /// The variable of a quantifier is to begin.
    Binder,
    /// The sort of a binder is to begin.
    Sort,
    /// A category symbol was read, and perhaps digits.
    Index(Category, Digits),
    /// A term is complete.
    AfterTerm,
    /// A formula is complete.
    AfterFormula,
    /// `<eos>` was read.
    End,
}

/// What an index belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Category {
    Binder,
    Sort,
    Variable,
    Constant,
    Predicate,
    Function,
}

/// What follows once what is being read is complete.
#[derive(Debug, Clone, Copy)]
enum Frame {
    /// `(φ` or, with the connective read, `(φ ∧ ψ`: operands at `depth` with the first `scope` variables.
    Paren { connective: bool, depth: usize, scope: usize, outer: Cost },
    /// `s` or, with the relation read, `s = t`.
    Relation { right: bool, outer: Cost },
    /// Argument number `count` of a predicate or function, which itself stands at `depth`.
    Arguments { function: bool, digits: Digits, count: usize, depth: usize, outer: Cost },
}

/// A statement that may still become a definition.
#[derive(Debug, Clone)]
struct Head {
    category: SymbolId,
    /// The parameters so far, with their numbers of digits.
    parameters: Vec<Digits>,
    /// It may also be a formula: no variable is free against the options.
    plain: bool,
}

impl Mask {
    /// The mask of the empty prefix.
    pub fn new(options: &Options) -> Self {
        let mut mask = Self {
            rules: Arc::new(Rules::new(options)),
            spot: Spot::Statement { after_dot: false },
            frames: Vec::new(),
            depth: 0,
            scope: Vec::new(),
            most_scope: None,
            phase: Phase::First,
            head: None,
            budget: options.budget,
            legal: SymbolSet::EMPTY,
        };
        mask.legal = mask.find_legal();
        mask
    }

    /// The mask of formulas below so many free variables, with at most so many quantifiers on a path.
    pub(crate) fn below(options: &Options, free: u64, quantifiers: Option<usize>) -> Self {
        let mut mask = Self::new(options);
        if let Some(rules) = Arc::get_mut(&mut mask.rules) {
            rules.variables = Some(u64::MAX); // binders may have any name
        }
        (0..free).for_each(|index| mask.bind(Digits::of(index)));
        mask.most_scope = quantifiers.map(|most| mask.scope.len().saturating_add(most));
        mask.legal = mask.find_legal();
        mask
    }

    /// The symbols that may follow.
    pub fn legal(&self) -> &SymbolSet {
        &self.legal
    }

    /// Whether `<eos>` was pushed.
    pub fn is_complete(&self) -> bool {
        self.spot == Spot::End
    }

    /// From here on the rest, `<eos>` included, must fit in so many tokens.
    pub fn set_budget(&mut self, budget: Option<u32>) {
        self.budget = budget;
        self.legal = self.find_legal();
    }

    /// Goes on by one symbol.
    ///
    /// # Errors
    /// If the symbol is not legal, as the strict reader, without a place.
    pub fn push(&mut self, symbol: SymbolId) -> Result<(), Refusal> {
        if !self.legal.contains(symbol) {
            return Err(self.refusal(symbol));
        }
        match (self.spot, symbol.numeral()) {
            (Spot::Index(category, digits), Some(_)) => self.digit(category, digits, symbol),
            (Spot::Index(category, digits), None) => {
                self.end_index(category, digits, symbol);
            }
            _ => self.step(symbol),
        }
        self.budget = self.budget.map(|budget| budget.saturating_sub(1));
        self.legal = self.find_legal();
        Ok(())
    }

    fn refusal(&self, symbol: SymbolId) -> Refusal {
        let digit = symbol.numeral();
        let deepest = self.depth >= MAX_DEPTH;
        let opens =
            matches!(symbol, SymbolId::NOT | SymbolId::LPAREN) || symbol.kind() == SymbolKind::Quantifier;
        let operand = match self.spot {
            Spot::Operand => true,
            Spot::Index(Category::Binder | Category::Sort, digits) => digits.count > 0,
            _ => false,
        };
        let term = self.spot == Spot::Term || operand;
        let refusal = match (self.spot, digit) {
            (Spot::Index(_, digits), Some(_)) if digits.count > 0 && digits.value == 0 => {
                Refusal::leading_zero()
            }
            (Spot::Index(_, digits), Some(digit)) if crate::codec::shifted(digits.value, digit).is_none() => {
                Refusal::index_overflow()
            }
            _ if deepest && (operand && opens || term && symbol == SymbolId::FUNC) => {
                Refusal::too_deep(symbol)
            }
            _ => Refusal::new(Kind::UnexpectedSymbol, format!("{symbol} cannot stand here")),
        };
        refusal.stage(Stage::Parse).found(symbol.label()).expected(expected_labels(&self.legal))
    }
}
