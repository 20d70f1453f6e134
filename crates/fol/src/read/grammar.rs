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

mod formula;
mod term;

use crate::ast::{
    Connective, Definition, Formula, Quantifier, Relation, Statement, Term, Text, Turnstile, Variable,
};
use crate::error::{Kind, Refusal, Stage};
use crate::input::Mode;
use crate::symbol::{BASE, SymbolId};
use crate::symbol_set::{SymbolSet, expected_labels};

const QUANTIFIERS: &[SymbolId] = Quantifier::SYMBOLS;
const CONNECTIVES: &[SymbolId] = Connective::SYMBOLS;
const RELATIONS: &[SymbolId] = Relation::SYMBOLS;
const TURNSTILES: &[SymbolId] = Turnstile::SYMBOLS;

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

/// What stands at the start of a statement.
enum Opening {
    Formula(Formula),
    /// The head of a definition by a term.
    Head(Term),
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
}

/// The bit of a symbol that is no numeral.
fn bit(symbol: SymbolId) -> u64 {
    symbol.get().checked_sub(BASE).map_or(0, |i| 1 << i)
}

/// Arguments as parameters, if all are variables.
fn parameters(arguments: &[Term]) -> Option<Vec<Variable>> {
    let variable = |argument: &Term| match argument {
        Term::Variable(variable) => Some(*variable),
        _ => None,
    };
    arguments.iter().map(variable).collect()
}
