//! The grammar: symbols to a tree.
//!
//! Enter at [`text`]. Statements are read by plain descent; formulas and terms, which nest, by machines with
//! a stack of their own ([`formula`](Reader::formula), [`term`](Reader::term)), so that depth costs memory
//! on the heap only and is cut at [`MAX_DEPTH`].
//!
//! The expected set of a refusal is what was *tried* at the position: every question that the reader asks of
//! the next symbol is noted, and the notes are dropped when it goes on. The reader asks for a symbol only
//! where it can begin a legal continuation, so the notes at the first symbol that fits none are exact. The
//! strict reader asks for less than the lenient one; otherwise they are the same machine.

use super::Mode;
use crate::ast::{
    Connective, Constant, Definition, Formula, Function, Predicate, Quantifier, Relation, Sort, Statement,
    Term, Text, Turnstile, Variable,
};
use crate::codec::{following, shifted};
use crate::error::{Kind, Refusal, Stage};
use crate::symbol::{BASE, SymbolId};
use crate::symbol_set::{SymbolSet, expected_labels};

/// How many NOT, quantifier, binary, parenthesis and FUNC nodes may enclose a node.
pub(crate) const MAX_DEPTH: usize = 1024;

const QUANTIFIERS: &[SymbolId] = &[SymbolId::FORALL, SymbolId::EXISTS, SymbolId::EXISTS1];
const CONNECTIVES: &[SymbolId] = &[SymbolId::AND, SymbolId::OR, SymbolId::IMPLIES, SymbolId::IFF];
const RELATIONS: &[SymbolId] = &[
    SymbolId::EQUALS,
    SymbolId::NOT_EQUALS,
    SymbolId::LESS_THAN,
    SymbolId::GREATER_THAN,
    SymbolId::LESS_EQUAL,
    SymbolId::GREATER_EQUAL,
];
const ATOMS: &[SymbolId] = &[SymbolId::PRED, SymbolId::TRUE, SymbolId::FALSE];
const TURNSTILES: &[SymbolId] = &[SymbolId::ENTAILS, SymbolId::MODELS];

/// Reads a text, with or without `<bos>` and `<eos>`.
pub(super) fn text(tokens: &[SymbolId], mode: Mode) -> Result<Text, Refusal> {
    Reader::new(tokens, mode).whole(Reader::text)
}

/// Reads a term, with or without `<bos>` and `<eos>`.
pub(super) fn term(tokens: &[SymbolId], mode: Mode) -> Result<Term, Refusal> {
    Reader::new(tokens, mode).whole(|reader| {
        let (term, _) = reader.term(0)?;
        if reader.at_end() { Ok(term) } else { reader.refuse("a complete term") }
    })
}

type Read<T> = Result<T, Refusal>;

struct Reader<'a> {
    tokens: &'a [SymbolId],
    mode: Mode,
    /// The input began with `<bos>`.
    framed: bool,
    at: usize,
    /// The symbols from NOT on that were asked for at `at`, as bits.
    tried: u64,
    /// How many numerals from 0 on were asked for at `at`.
    tried_numerals: u64,
    /// The index that ends before `at`.
    index_before: Option<u64>,
}

/// What encloses the operand that is read next.
enum Frame {
    Not,
    Quantified(Quantifier, Variable, Option<Sort>),
    /// A parenthesis with nothing complete in it.
    Open,
    /// The left operand and the connective of a binary formula.
    Left(Connective, Operand),
}

/// A complete formula inside a formula.
struct Operand {
    formula: Formula,
    /// How many nodes enclose its innermost node.
    height: usize,
    /// A binary formula whose own parentheses have not been read.
    bare: bool,
}

/// What stands at the start of a statement.
enum Opening {
    Formula(Formula),
    /// The head of a definition by a term.
    Head(Term),
}

impl<'a> Reader<'a> {
    fn new(tokens: &'a [SymbolId], mode: Mode) -> Self {
        Self { tokens, mode, framed: false, at: 0, tried: 0, tried_numerals: 0, index_before: None }
    }

    // --- the next symbol -------------------------------------------------------------------------------

    fn next(&self) -> Option<SymbolId> {
        self.tokens.get(self.at).copied()
    }

    fn advance(&mut self) {
        self.at += 1;
        self.tried = 0;
        self.tried_numerals = 0;
        self.index_before = None;
    }

    /// Asks for some symbols, without taking one.
    fn ask(&mut self, symbols: &[SymbolId]) -> Option<SymbolId> {
        for symbol in symbols {
            self.tried |= bit(*symbol);
        }
        self.next().filter(|next| symbols.contains(next))
    }

    /// Asks for a symbol and takes it if it is there.
    fn take(&mut self, symbol: SymbolId) -> bool {
        let there = self.ask(&[symbol]).is_some();
        if there {
            self.advance();
        }
        there
    }

    /// Asks for the end of the text, without taking `<eos>`.
    fn at_end(&mut self) -> bool {
        let eos = self.ask(&[SymbolId::EOS]).is_some();
        if self.framed { eos } else { self.next().is_none() }
    }

    /// Refuses the next symbol, which follows `what`.
    fn refuse<T>(&self, what: &str) -> Read<T> {
        self.refuse_as(what, false)
    }

    fn refuse_as<T>(&self, what: &str, too_deep: bool) -> Read<T> {
        let found = self.next().map_or("end", SymbolId::label);
        let digit = self.next().and_then(SymbolId::numeral).and(self.index_before);
        let (kind, message) = match (self.next(), digit) {
            _ if too_deep => {
                (Kind::TooDeep, format!("more than {MAX_DEPTH} nodes enclose what {found} begins"))
            }
            (None, _) => (Kind::UnexpectedEnd, format!("the input ends after {what}")),
            (_, Some(0)) => (Kind::LeadingZero, "an index does not start with digit 0".to_owned()),
            (_, Some(_)) => (Kind::IndexOverflow, format!("an index is at most {}", u64::MAX)),
            _ => (Kind::UnexpectedSymbol, format!("{found} cannot follow {what}")),
        };
        let mut refusal = Refusal::new(kind, message).stage(Stage::Parse).at(self.at).found(found);
        refusal.expected = Some(expected_labels(&self.expected()));
        refusal.help = self.help(kind).map(str::to_owned);
        Err(refusal)
    }

    fn expected(&self) -> SymbolSet {
        let mut set = SymbolSet::EMPTY;
        set.insert_numerals_below(self.tried_numerals);
        SymbolId::all().filter(|&symbol| self.tried & bit(symbol) != 0).for_each(|symbol| set.insert(symbol));
        set
    }

    fn help(&self, kind: Kind) -> Option<&'static str> {
        let formula_is_complete =
            self.tried & bit(SymbolId::ENTAILS) != 0 || self.tried & bit(SymbolId::AND) != 0;
        match (kind, self.next()?) {
            (Kind::UnexpectedSymbol, next) if RELATIONS.contains(&next) && formula_is_complete => {
                Some("equality joins terms; for formulas write P1(x1) ↔ P2(x1)")
            }
            (Kind::UnexpectedSymbol, next) if CONNECTIVES.contains(&next) && formula_is_complete => {
                Some("a canonical binary formula stands in parentheses of its own: (φ ∧ ψ)")
            }
            (Kind::UnexpectedSymbol, SymbolId::RPAREN) if self.mode == Mode::Strict => {
                Some("canonical parentheses stand around arguments and binary formulas only")
            }
            (Kind::LeadingZero, _) => Some("leave the zero out, or read with --lenient"),
            _ => None,
        }
    }

    // --- texts and statements --------------------------------------------------------------------------

    fn whole<T>(mut self, read: impl FnOnce(&mut Self) -> Read<T>) -> Read<T> {
        if self.next() == Some(SymbolId::BOS) {
            self.advance();
            self.framed = true;
        }
        let value = read(&mut self)?;
        if self.framed {
            self.advance(); // `<eos>`, where the text ended
            while self.mode == Mode::Lenient && self.take(SymbolId::PAD) {}
            if self.next().is_some() {
                return self.refuse("<eos>");
            }
        }
        Ok(value)
    }

    fn text(&mut self) -> Read<Text> {
        let mut statements = Vec::new();
        loop {
            statements.push(self.statement()?);
            let dot = self.take(SymbolId::DOT);
            if self.at_end() {
                return Ok(Text { statements, terminated: dot });
            }
            if !dot {
                let what = match statements.last() {
                    Some(Statement::Formula(_)) => "a complete formula",
                    _ => "a complete statement",
                };
                return self.refuse(what);
            }
        }
    }

    fn statement(&mut self) -> Read<Statement> {
        if let Some(turnstile) = self.turnstile() {
            return Ok(Statement::Sequent(turnstile, Vec::new(), self.conclusion()?));
        }
        let start = self.at;
        let first = match self.formula(true)? {
            Opening::Formula(formula) => formula,
            Opening::Head(term) => return self.term_definition(term),
        };
        // Parentheses around the atom would stand at `start`.
        let head = self.tokens.get(start) == Some(&SymbolId::PRED);
        if let (true, Formula::Predicate(predicate, arguments)) = (head, &first)
            && let Some(parameters) = parameters(arguments)
            && self.take(SymbolId::DEFINE)
        {
            let predicate = *predicate;
            return Ok(Statement::Definition(Definition::Predicate(
                predicate,
                parameters,
                self.inner_formula()?,
            )));
        }
        if self.take(SymbolId::EQUIVALENT) {
            return Ok(Statement::Equivalence(first, self.inner_formula()?));
        }
        let mut premises = vec![first];
        while self.take(SymbolId::COMMA) {
            premises.push(self.inner_formula()?);
        }
        match self.turnstile() {
            Some(turnstile) => Ok(Statement::Sequent(turnstile, premises, self.conclusion()?)),
            None => match (premises.pop(), premises.is_empty()) {
                (Some(formula), true) => Ok(Statement::Formula(formula)),
                _ => self.refuse("a list of premises"),
            },
        }
    }

    fn turnstile(&mut self) -> Option<Turnstile> {
        let turnstile = self.ask(TURNSTILES).and_then(Turnstile::from_symbol)?;
        self.advance();
        Some(turnstile)
    }

    fn conclusion(&mut self) -> Read<Option<Formula>> {
        if self.take(SymbolId::UNKNOWN) { Ok(None) } else { self.inner_formula().map(Some) }
    }

    fn term_definition(&mut self, head: Term) -> Read<Statement> {
        self.advance(); // DEFINE
        let (body, _) = self.term(0)?;
        Ok(Statement::Definition(match head {
            Term::Function(function, arguments) => {
                Definition::Function(function, parameters(&arguments).unwrap_or_default(), body)
            }
            Term::Constant(constant) => Definition::Constant(constant, body),
            Term::Variable(_) => return self.refuse("a variable"),
        }))
    }

    // --- formulas --------------------------------------------------------------------------------------

    /// A formula that is no head.
    fn inner_formula(&mut self) -> Read<Formula> {
        match self.formula(false)? {
            Opening::Formula(formula) => Ok(formula),
            Opening::Head(_) => self.refuse("a term"),
        }
    }

    /// A formula, or if `opens` the head of a definition by a term, before its DEFINE.
    fn formula(&mut self, opens: bool) -> Read<Opening> {
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
            let operand = Operand { formula, height, bare: false };
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
    fn strict_tail(&mut self, frames: &mut Vec<Frame>, mut operand: Operand) -> Read<Option<Operand>> {
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
    fn lenient_tail(&mut self, frames: &mut Vec<Frame>, mut operand: Operand) -> Read<Option<Operand>> {
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
        operand: Operand,
        wanted: impl Fn(&Frame) -> bool,
    ) -> Read<Operand> {
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

    fn check_height(&self, frames: &[Frame], operand: &Operand) -> Read<()> {
        // The outermost node of a bare operand may share the parenthesis around it.
        let shared = usize::from(operand.bare && matches!(frames.last(), Some(Frame::Open)));
        if self.depth(frames) + operand.height > MAX_DEPTH + shared {
            return self.refuse_as("a complete formula", true);
        }
        Ok(())
    }

    // --- terms and indices -----------------------------------------------------------------------------

    /// A term inside `depth` nodes, and how many of its own nodes enclose its innermost one.
    fn term(&mut self, depth: usize) -> Read<(Term, usize)> {
        let mut open: Vec<(Function, Vec<Term>)> = Vec::new();
        let mut height = 0;
        loop {
            self.ask(&[SymbolId::VAR, SymbolId::CONST]);
            let deepest = depth + open.len() >= MAX_DEPTH;
            if !deepest {
                self.ask(&[SymbolId::FUNC]);
            }
            let mut term = match self.next() {
                Some(SymbolId::VAR) => {
                    self.advance();
                    Term::Variable(Variable(self.index()?))
                }
                Some(SymbolId::CONST) => {
                    self.advance();
                    Term::Constant(Constant(self.index()?))
                }
                Some(SymbolId::FUNC) if deepest => return self.refuse_as("an open term", true),
                Some(SymbolId::FUNC) => {
                    self.advance();
                    let function = Function(self.index()?);
                    if !self.take(SymbolId::LPAREN) {
                        return self.refuse("the index of a function");
                    }
                    open.push((function, Vec::new()));
                    height = height.max(open.len());
                    continue;
                }
                _ => return self.refuse("what wants a term"),
            };
            loop {
                let Some((function, mut arguments)) = open.pop() else { return Ok((term, height)) };
                arguments.push(term);
                if self.take(SymbolId::COMMA) {
                    open.push((function, arguments));
                    break;
                }
                if !self.take(SymbolId::RPAREN) {
                    return self.refuse("an argument");
                }
                term = Term::Function(function, arguments);
            }
        }
    }

    /// The arguments of a predicate, if there are any, and their height.
    fn arguments(&mut self, depth: usize) -> Read<(Vec<Term>, usize)> {
        let (mut arguments, mut height) = (Vec::new(), 0);
        if !self.take(SymbolId::LPAREN) {
            return Ok((arguments, height));
        }
        loop {
            let (term, own) = self.term(depth)?;
            arguments.push(term);
            height = height.max(own);
            if self.take(SymbolId::RPAREN) {
                return Ok((arguments, height));
            }
            if !self.take(SymbolId::COMMA) {
                return self.refuse("an argument");
            }
        }
    }

    fn index(&mut self) -> Read<u64> {
        let mut value = None;
        loop {
            let more = match value {
                None => u64::from(BASE),
                Some(0) if self.mode == Mode::Lenient => u64::from(BASE),
                Some(value) => following(value, u64::MAX),
            };
            self.tried_numerals = more;
            let digit = self.next().and_then(SymbolId::numeral).filter(|digit| u64::from(digit.get()) < more);
            match (digit, value) {
                (Some(digit), _) => {
                    value = shifted(value.unwrap_or(0), digit);
                    self.advance();
                }
                (None, Some(value)) => {
                    self.index_before = Some(value);
                    return Ok(value);
                }
                (None, None) => return self.refuse("a category symbol"),
            }
        }
    }
}

/// The bit of a symbol that is no numeral.
fn bit(symbol: SymbolId) -> u64 {
    symbol.get().checked_sub(BASE).map_or(0, |i| 1 << i)
}

/// What stands before an operand, in words.
fn before(frames: &[Frame]) -> &'static str {
    match frames.last() {
        None => "the start of a formula",
        Some(Frame::Not) => "NOT",
        Some(Frame::Quantified(..)) => "a quantifier and its variable",
        Some(Frame::Open) => "LPAREN",
        Some(Frame::Left(..)) => "a connective",
    }
}

/// The formula of a frame around its last operand.
fn close(frame: Frame, operand: Operand) -> Operand {
    let Operand { formula, height, bare } = operand;
    let inner = Box::new(formula);
    match frame {
        Frame::Not => Operand { formula: Formula::Not(inner), height: height + 1, bare: false },
        Frame::Quantified(quantifier, variable, sort) => {
            let formula = Formula::Quantified(quantifier, variable, sort, inner);
            Operand { formula, height: height + 1, bare: false }
        }
        Frame::Open => Operand { formula: *inner, height: height + usize::from(!bare), bare: false },
        Frame::Left(connective, left) => Operand {
            formula: Formula::Binary(connective, Box::new(left.formula), inner),
            height: left.height.max(height) + 1,
            bare: true,
        },
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

/// Arguments as parameters, if all are variables.
fn parameters(arguments: &[Term]) -> Option<Vec<Variable>> {
    let variable = |argument: &Term| match argument {
        Term::Variable(variable) => Some(*variable),
        _ => None,
    };
    arguments.iter().map(variable).collect()
}
