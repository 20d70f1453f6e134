//! Legal-symbol masks: which symbols may follow a prefix.
//!
//! Enter at [`Mask`]: [`push`](Mask::push) a symbol, look at [`legal`](Mask::legal), clone for beams. A symbol
//! is legal if prefix and symbol begin some complete input, so decoding under a mask never ends in a dead
//! end. The mask is a pushdown automaton: a [`Spot`] says what comes next, a stack of [`Frame`]s what comes
//! after that. NOT and quantifiers need no frame; they only count the depth, and bind.
//!
//! With `--closed`, `--within` and a budget a symbol must also leave room for the rest. Every frame knows how
//! few tokens complete everything outside it ([`rules`] has the costs), so this is one comparison for each
//! candidate. The odd case is the start of a statement, where `P(x1` may begin an atom or the head of a
//! definition: [`Head`] keeps both readings, with their costs, until one is excluded.

mod indices;
mod legal;
mod rules;

use std::sync::Arc;

use crate::error::{Kind, Refusal, Stage};
use crate::read::MAX_DEPTH;
use crate::signature::Signature;
use crate::symbol::{SymbolId, SymbolKind};
use crate::symbol_set::{SymbolSet, expected_labels};
use indices::{Digits, Indices};
use rules::{Cost, NEVER, Rules, arguments, cost_if, sum};

/// What a complete input is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grammar {
    /// One formula.
    Formula,
    /// Any text.
    Text,
}

/// What a mask allows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// What a complete input is.
    pub grammar: Grammar,
    /// Only symbols, indices and arities that a law with this signature can produce.
    pub within: Option<Signature>,
    /// Every variable occurrence is bound.
    pub closed: bool,
    /// The rest, `<eos>` included, fits in so many tokens.
    pub budget: Option<u32>,
    /// The largest index.
    pub max_index: u64,
}

impl Options {
    /// The whole grammar.
    pub fn new(grammar: Grammar) -> Self {
        Self { grammar, within: None, closed: false, budget: None, max_index: u64::MAX }
    }
}

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
            phase: Phase::First,
            head: None,
            budget: options.budget,
            legal: SymbolSet::EMPTY,
        };
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
        let (kind, message) = match (self.spot, digit) {
            (Spot::Index(_, digits), Some(_)) if digits.count > 0 && digits.value == 0 => {
                (Kind::LeadingZero, "an index does not start with digit 0".to_owned())
            }
            (Spot::Index(_, digits), Some(digit)) if crate::codec::shifted(digits.value, digit).is_none() => {
                (Kind::IndexOverflow, format!("an index is at most {}", u64::MAX))
            }
            _ if deepest && (operand && opens || term && symbol == SymbolId::FUNC) => {
                (Kind::TooDeep, format!("more than {MAX_DEPTH} nodes enclose what {symbol} begins"))
            }
            _ => (Kind::UnexpectedSymbol, format!("{symbol} cannot stand here")),
        };
        let refusal = Refusal::new(kind, message).stage(Stage::Parse).found(symbol.label());
        refusal.expected(expected_labels(&self.legal))
    }

    // --- transitions: the symbol is legal --------------------------------------------------------------

    fn step(&mut self, symbol: SymbolId) {
        match self.spot {
            Spot::Statement { .. } => {
                if self.rules.defines(symbol) {
                    self.head = Some(Head { category: symbol, parameters: Vec::new(), plain: true });
                }
                self.begin_operand(symbol);
            }
            Spot::Conclusion | Spot::Operand => self.begin_operand(symbol),
            Spot::Term => self.begin_term(symbol),
            Spot::Binder => self.spot = Spot::Index(Category::Binder, Digits::NONE),
            Spot::Sort => self.spot = Spot::Index(Category::Sort, Digits::NONE),
            Spot::AfterTerm => self.after_term(symbol),
            Spot::AfterFormula => self.after_formula(symbol),
            Spot::Index(..) | Spot::End => {}
        }
    }

    fn begin_operand(&mut self, symbol: SymbolId) {
        match symbol {
            SymbolId::NOT => {
                self.depth += 1;
                self.spot = Spot::Operand;
            }
            SymbolId::LPAREN => {
                let outer = self.rest();
                self.depth += 1;
                let (depth, scope) = (self.depth, self.scope.len());
                self.frames.push(Frame::Paren { connective: false, depth, scope, outer });
                self.spot = Spot::Operand;
            }
            SymbolId::TRUE | SymbolId::FALSE | SymbolId::UNKNOWN => self.spot = Spot::AfterFormula,
            SymbolId::PRED => self.spot = Spot::Index(Category::Predicate, Digits::NONE),
            SymbolId::VAR | SymbolId::CONST | SymbolId::FUNC => {
                let outer = self.rest();
                self.frames.push(Frame::Relation { right: false, outer });
                self.name(symbol);
            }
            SymbolId::ENTAILS | SymbolId::MODELS => self.turnstile(),
            SymbolId::EOS => self.spot = Spot::End,
            _ => {
                self.depth += 1;
                self.spot = Spot::Binder;
            }
        }
    }

    fn begin_term(&mut self, symbol: SymbolId) {
        match (&mut self.head, symbol) {
            (Some(head), SymbolId::VAR) => {
                head.parameters.push(Digits::NONE);
                head.plain &= !self.rules.closed; // nothing is in scope at the start of a statement
            }
            (head, _) => *head = None,
        }
        self.name(symbol);
    }

    fn name(&mut self, symbol: SymbolId) {
        let category = match symbol {
            SymbolId::VAR => Category::Variable,
            SymbolId::CONST => Category::Constant,
            _ => Category::Function,
        };
        self.spot = Spot::Index(category, Digits::NONE);
    }

    fn turnstile(&mut self) {
        self.begin_formula(Phase::Last);
        self.spot = Spot::Conclusion;
    }

    /// A formula at the top of the statement is to begin.
    fn begin_formula(&mut self, phase: Phase) {
        self.scope.clear();
        self.depth = 0;
        self.head = None;
        self.phase = phase;
        self.spot = Spot::Operand;
    }

    fn digit(&mut self, category: Category, digits: Digits, symbol: SymbolId) {
        let digits = match category {
            Category::Predicate => self.rules.predicates.step(digits, symbol),
            Category::Function => self.rules.functions.step(digits, symbol),
            _ => indices::step(digits, symbol),
        };
        if let (Category::Variable, Some(parameter)) =
            (category, self.head.as_mut().and_then(|head| head.parameters.last_mut()))
        {
            *parameter = digits;
        }
        self.spot = Spot::Index(category, digits);
    }

    /// An index ends before a symbol, which is then taken.
    fn end_index(&mut self, category: Category, digits: Digits, symbol: SymbolId) {
        match (category, symbol) {
            (Category::Binder, _) => {
                self.bind(digits);
                if symbol == SymbolId::COLON {
                    self.spot = Spot::Sort;
                    return;
                }
                self.spot = Spot::Operand;
            }
            (Category::Sort, _) => self.spot = Spot::Operand,
            (Category::Predicate | Category::Function, SymbolId::LPAREN) => {
                let function = category == Category::Function;
                let (outer, depth) = (self.rest(), self.depth);
                self.depth += usize::from(function);
                self.frames.push(Frame::Arguments { function, digits, count: 1, depth, outer });
                self.spot = Spot::Term;
                return;
            }
            (Category::Predicate, _) => self.spot = Spot::AfterFormula,
            (Category::Variable | Category::Constant | Category::Function, _) => self.spot = Spot::AfterTerm,
        }
        self.step(symbol);
    }

    fn bind(&mut self, variable: Digits) {
        let fewest = self.fewest_digits().map_or(variable.count, |fewest| fewest.min(variable.count));
        self.scope.push(Bound { index: variable.value, digits: variable.count, fewest });
    }

    fn after_term(&mut self, symbol: SymbolId) {
        match (self.frames.last_mut(), symbol) {
            (_, SymbolId::DEFINE) => self.define(),
            (Some(Frame::Relation { right: true, .. }), _) => {
                self.frames.pop();
                self.after_formula(symbol);
            }
            (Some(Frame::Relation { right, .. }), _) => {
                *right = true;
                self.head = None;
                self.spot = Spot::Term;
            }
            (Some(Frame::Arguments { count, .. }), SymbolId::COMMA) => {
                *count += 1;
                self.spot = Spot::Term;
            }
            (Some(&mut Frame::Arguments { function, depth, .. }), _) => {
                self.frames.pop();
                self.depth = depth;
                self.spot = if function { Spot::AfterTerm } else { Spot::AfterFormula };
            }
            _ => self.after_formula(symbol),
        }
    }

    fn after_formula(&mut self, symbol: SymbolId) {
        match (self.frames.last_mut(), symbol) {
            (Some(Frame::Paren { connective: true, .. }), _) => {
                self.frames.pop();
                self.spot = Spot::AfterFormula;
            }
            (Some(Frame::Paren { connective, depth, scope, .. }), _) => {
                *connective = true;
                self.depth = *depth;
                self.scope.truncate(*scope);
                self.spot = Spot::Operand;
            }
            (_, SymbolId::COMMA) => self.begin_formula(Phase::Premise),
            (_, SymbolId::EQUIVALENT) => self.begin_formula(Phase::Last),
            (_, SymbolId::ENTAILS | SymbolId::MODELS) => self.turnstile(),
            (_, SymbolId::DEFINE) => self.define(),
            (_, SymbolId::DOT) => {
                self.begin_formula(Phase::First);
                self.spot = Spot::Statement { after_dot: true };
            }
            _ => self.spot = Spot::End,
        }
    }

    /// DEFINE: the parameters are in scope of the body.
    fn define(&mut self) {
        let Some(head) = self.head.take() else { return };
        self.frames.clear();
        self.begin_formula(Phase::Last);
        for parameter in head.parameters {
            self.bind(parameter);
        }
        if head.category != SymbolId::PRED {
            self.spot = Spot::Term;
        }
    }

    // --- costs -----------------------------------------------------------------------------------------

    fn fewest_digits(&self) -> Option<u32> {
        self.scope.last().map(|bound| bound.fewest)
    }

    /// The least cost of a term here.
    fn term(&self) -> Cost {
        self.rules.term(self.fewest_digits())
    }

    /// The least cost of a formula inside so many nodes.
    fn formula(&self, term: Cost, depth: usize) -> Cost {
        cost_if(depth <= MAX_DEPTH, self.rules.formula(term, depth < MAX_DEPTH))
    }

    /// How few tokens complete the input, `<eos>` included, once what is being read is complete, if the
    /// statement is no definition.
    fn rest(&self) -> Cost {
        match self.frames.last() {
            Some(frame) => self.rest_of(frame),
            None => self.rest_of_phase(),
        }
    }

    fn rest_of(&self, frame: &Frame) -> Cost {
        match *frame {
            Frame::Paren { connective: true, outer, .. } => sum([1, outer]),
            Frame::Paren { connective: false, depth, scope, outer } => {
                let fewest =
                    scope.checked_sub(1).and_then(|last| self.scope.get(last)).map(|bound| bound.fewest);
                sum([1, self.formula(self.rules.term(fewest), depth), 1, outer])
            }
            Frame::Relation { right: true, outer } => outer,
            Frame::Relation { right: false, outer } => sum([1, self.term(), outer]),
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
    fn more_arguments(&self, function: bool, digits: Digits, count: usize, term: Cost) -> Cost {
        let arity = self.indices(function).least_arity(digits, count);
        // Each argument more costs a COMMA and a term; `arguments` counts one COMMA less and LPAREN.
        arity.map_or(NEVER, |arity| if arity == count { 1 } else { arguments(arity - count, term) })
    }

    fn indices(&self, function: bool) -> &Indices {
        if function { &self.rules.functions } else { &self.rules.predicates }
    }

    /// How few tokens complete the input after a head: DEFINE, body, `<eos>`. `shorter`: a parameter of one
    /// digit is to come.
    fn body(&self, head: &Head, shorter: bool) -> Cost {
        let digits = head.parameters.iter().map(|parameter| parameter.count.max(1));
        let term = self.rules.term(digits.chain(shorter.then_some(1)).min());
        let body = if head.category == SymbolId::PRED { self.formula(term, 0) } else { term };
        sum([1, body, 1])
    }

    /// How few tokens complete the input after the parameter number `count` of a head.
    fn rest_of_head(&self, head: &Head, digits: Digits, count: usize) -> Cost {
        let indices = self.indices(head.category == SymbolId::FUNC);
        let now = indices.least_arity(digits, count).filter(|&arity| arity == count);
        let closing = now.map_or(NEVER, |_| sum([1, self.body(head, false)]));
        let later = indices.least_arity(digits, count + 1);
        let more = later.map_or(NEVER, |arity| sum([arguments(arity - count, 2), self.body(head, true)]));
        closing.min(more)
    }
}
