//! The grammar: symbols to a tree (F5, F7, F9).
//!
//! Enter at `text`. Statements are read by plain descent; formulas and terms, which nest, by machines with
//! a stack of their own (`formula`, `term`), so that depth costs memory
//! on the heap only and is cut at `MAX_DEPTH`.
//!
//! The expected set of a refusal (F10) is what was *tried* at the position: every question that the reader asks of
//! the next symbol is noted, and the notes are dropped when it goes on. The reader asks for a symbol only
//! where it can begin a legal continuation, so the notes at the first symbol that fits none are exact. The
//! strict reader asks for less than the lenient one; otherwise they are the same machine.
//!
//! What is made of the symbols is a parameter, [`Make`]: trees, or for canonical tokens their events alone.

mod formula;
pub(super) mod task;
mod term;

use crate::ast::{
    Connective, Constant, Definition, Formula, Function, Predicate, Quantifier, Relation, Statement, Term,
    Text, Turnstile, Variable,
};
use crate::built::{Make, Trees};
use crate::error::{Kind, Refusal, Stage};
use crate::input::Mode;
use crate::symbol::{BASE, SymbolId};
use crate::symbol_set::{SymbolSet, expected_labels};
use crate::walk::Event;

const QUANTIFIERS: u64 = bits(Quantifier::SYMBOLS);
const CONNECTIVES: u64 = bits(Connective::SYMBOLS);
const RELATIONS: u64 = bits(Relation::SYMBOLS);
const TURNSTILES: u64 = bits(Turnstile::SYMBOLS);

/// Reads a text, with or without `<bos>` and `<eos>`.
pub(super) fn text<M: Make>(tokens: &[SymbolId], mode: Mode, make: &mut M) -> Read<M::Of<Text>> {
    Reader::new(tokens, mode, make).whole(Reader::text)
}

/// Reads a term, with or without `<bos>` and `<eos>`.
pub(super) fn term(tokens: &[SymbolId], mode: Mode) -> Result<Term, Refusal> {
    Reader::new(tokens, mode, &mut Trees).whole(|reader| {
        let (term, _) = reader.term(0)?;
        if reader.at_end() { Ok(term) } else { reader.refuse("a complete term") }
    })
}

/// What stands at the start of a statement.
enum Opening<M: Make> {
    Formula(M::Of<Formula>),
    /// The index and the arguments of the head of a definition.
    Head(M::Of<(u64, Vec<Term>)>),
}

type Read<T> = Result<T, Refusal>;

struct Reader<'a, M> {
    make: &'a mut M,
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

impl<'a, M: Make> Reader<'a, M> {
    fn new(tokens: &'a [SymbolId], mode: Mode, make: &'a mut M) -> Self {
        Self { make, tokens, mode, framed: false, at: 0, tried: 0, tried_numerals: 0, index_before: None }
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
    fn ask(&mut self, symbols: u64) -> Option<SymbolId> {
        self.tried |= symbols;
        self.next().filter(|next| symbols & bit(*next) != 0)
    }

    /// Asks for a symbol and takes it if it is there.
    fn take(&mut self, symbol: SymbolId) -> bool {
        let there = self.ask(bit(symbol)).is_some();
        if there {
            self.advance();
        }
        there
    }

    /// Takes a symbol that is an event of its own.
    fn pass(&mut self, symbol: SymbolId) {
        self.advance();
        self.make.note(Event::Symbol(symbol));
    }

    /// Asks for a symbol that is an event of its own, and takes it if it is there.
    fn take_as(&mut self, symbol: SymbolId, event: fn(SymbolId) -> Event) -> bool {
        let there = self.take(symbol);
        if there {
            self.make.note(event(symbol));
        }
        there
    }

    /// Asks for the end of the text, without taking `<eos>`.
    fn at_end(&mut self) -> bool {
        let eos = self.ask(bit(SymbolId::EOS)).is_some();
        if self.framed { eos } else { self.next().is_none() }
    }

    /// Refuses the next symbol, which follows `what`.
    fn refuse<T>(&self, what: &str) -> Read<T> {
        self.refuse_as(what, false)
    }

    fn refuse_as<T>(&self, what: &str, too_deep: bool) -> Read<T> {
        let found = self.next().map_or("end", SymbolId::label);
        let digit = self.next().and_then(SymbolId::numeral).and(self.index_before);
        let refusal = match (self.next(), digit) {
            _ if too_deep => Refusal::too_deep(found),
            (None, _) => Refusal::new(Kind::UnexpectedEnd, format!("the input ends after {what}")),
            (_, Some(0)) => Refusal::leading_zero(),
            (_, Some(_)) => Refusal::index_overflow(),
            _ => Refusal::new(Kind::UnexpectedSymbol, format!("{found} cannot follow {what}")),
        };
        let help = self.help(refusal.kind).map(str::to_owned);
        let expected = expected_labels(&self.expected());
        Err(Refusal { help, ..refusal.stage(Stage::Parse).at(self.at).found(found).expected(expected) })
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
            (Kind::UnexpectedSymbol, next) if RELATIONS & bit(next) != 0 && formula_is_complete => {
                Some("equality joins terms; for formulas write P1(x1) ↔ P2(x1)")
            }
            (Kind::UnexpectedSymbol, next) if CONNECTIVES & bit(next) != 0 && formula_is_complete => {
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

    fn text(&mut self) -> Read<M::Of<Text>> {
        let mut statements = Vec::new();
        loop {
            self.make.note(Event::Statement);
            statements.push(self.statement()?);
            let dot = self.take(SymbolId::DOT);
            let last = self.at_end();
            if dot {
                self.make.note(Event::Dot { last });
            }
            if last {
                return Ok(M::map(M::all(statements), |statements| Text { statements, terminated: dot }));
            }
            if !dot {
                let alone = self.tried & bit(SymbolId::ENTAILS) != 0;
                return self.refuse(if alone { "a complete formula" } else { "a complete statement" });
            }
        }
    }

    fn statement(&mut self) -> Read<M::Of<Statement>> {
        if let Some(turnstile) = self.turnstile() {
            let conclusion = self.conclusion()?;
            return Ok(M::map(conclusion, |last| Statement::Sequent(turnstile, Vec::new(), last)));
        }
        let start = self.next();
        let first = match self.formula(true)? {
            Opening::Formula(formula) => formula,
            Opening::Head(head) => return self.definition(start, head),
        };
        if self.take_as(SymbolId::EQUIVALENT, Event::Symbol) {
            return Ok(M::both(first, self.inner_formula()?, Statement::Equivalence));
        }
        let mut premises = vec![first];
        while self.take_as(SymbolId::COMMA, Event::Symbol) {
            premises.push(self.inner_formula()?);
        }
        if let Some(turnstile) = self.turnstile() {
            let sequent = |premises, last| Statement::Sequent(turnstile, premises, last);
            return Ok(M::both(M::all(premises), self.conclusion()?, sequent));
        }
        match (premises.pop(), premises.is_empty()) {
            (Some(formula), true) => Ok(M::map(formula, Statement::Formula)),
            _ => self.refuse("a list of premises"),
        }
    }

    fn turnstile(&mut self) -> Option<Turnstile> {
        let symbol = self.ask(TURNSTILES)?;
        self.pass(symbol);
        Turnstile::from_symbol(symbol)
    }

    fn conclusion(&mut self) -> Read<M::Of<Option<Formula>>> {
        match self.take_as(SymbolId::UNKNOWN, Event::Symbol) {
            true => Ok(M::make(|| None)),
            false => Ok(M::map(self.inner_formula()?, Some)),
        }
    }

    /// Whether the tokens from `start` on are a name that a definition may define, with its parameters.
    fn is_head(&self, start: usize) -> bool {
        let mut read = self.tokens.iter().take(self.at).skip(start);
        let names = bits(&[SymbolId::PRED, SymbolId::FUNC, SymbolId::CONST]);
        let parameters = bits(&[SymbolId::LPAREN, SymbolId::VAR, SymbolId::COMMA, SymbolId::RPAREN]);
        read.next().is_some_and(|&name| names & bit(name) != 0)
            && read.all(|&symbol| symbol.numeral().is_some() || parameters & bit(symbol) != 0)
    }

    /// A definition, from its DEFINE on.
    fn definition(
        &mut self,
        category: Option<SymbolId>,
        head: M::Of<(u64, Vec<Term>)>,
    ) -> Read<M::Of<Statement>> {
        self.advance(); // DEFINE
        self.make.note(Event::Define(category.unwrap_or(SymbolId::PRED)));
        let definition = match category {
            Some(SymbolId::FUNC) => M::both(head, self.term(0)?.0, |(index, arguments), body| {
                Definition::Function(Function(index), parameters(arguments), body)
            }),
            Some(SymbolId::CONST) => {
                M::both(head, self.term(0)?.0, |(index, _), body| Definition::Constant(Constant(index), body))
            }
            _ => M::both(head, self.inner_formula()?, |(index, arguments), body| {
                Definition::Predicate(Predicate(index), parameters(arguments), body)
            }),
        };
        Ok(M::map(definition, Statement::Definition))
    }
}

/// The bit of a symbol that is no numeral.
const fn bit(symbol: SymbolId) -> u64 {
    match symbol.get().checked_sub(BASE) {
        Some(i) => 1 << i,
        None => 0,
    }
}

/// The bits of some symbols.
const fn bits(symbols: &[SymbolId]) -> u64 {
    match symbols {
        [first, rest @ ..] => bit(*first) | bits(rest),
        [] => 0,
    }
}

/// The arguments of a head, which are variables.
fn parameters(arguments: Vec<Term>) -> Vec<Variable> {
    let variable = |argument| match argument {
        Term::Variable(variable) => Some(variable),
        _ => None,
    };
    arguments.into_iter().filter_map(variable).collect()
}
