//! How statements make a text, and which statement the symbols so far can be.
//!
//! A law without statements is one formula and `<eos>`. With statements, the first formula may be a statement
//! alone, the left side of an equivalence, or the first of some premises: nothing tells them apart before it
//! ends, and no draw in it depends on which it is. A definition begins with the same symbols as some formulas;
//! until they part, a second parser reads along, and both have a share.

use super::hidden::Hidden;
use super::model::{Model, Numbers, shares};
use super::parser::{Head, Parser, Step};
use super::sink::Sink;
use crate::codec::push_index;
use crate::error::Refusal;
use crate::law::{Family, Law, Parts};
use crate::notation::Notation;
use crate::symbol::SymbolId;

/// The machine of a law.
#[derive(Debug, Clone)]
pub(super) struct Text {
    model: Model,
    parts: Option<Statements>,
    hidden: Hidden,
    parser: Parser,
    /// The reading as a definition, with its share, while both are possible.
    definition: Option<(f64, Parser)>,
    stage: Stage,
    /// Statements that are over.
    done: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Before a statement.
    Open,
    /// In a formula, term or definition.
    In(Role),
    /// Before a conclusion.
    Conclusion,
    /// After `<eos>`.
    Ended,
}

/// What the thing being read is in its statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    /// Formula number n of a statement that may be a sequent.
    Premise(usize),
    /// The last thing of its statement.
    Last,
}

/// The probabilities of the parts of a text.
#[derive(Debug, Clone)]
struct Statements {
    count: Numbers,
    /// Without, with a final DOT.
    dot: [f64; 2],
    formula: f64,
    equivalence: f64,
    /// ENTAILS, MODELS.
    sequents: [f64; 2],
    /// Predicate, function, constant.
    definitions: [f64; 3],
    premises: Numbers,
    /// A formula, `<unknown>`.
    conclusion: [f64; 2],
}

impl Statements {
    fn new(parts: &Parts) -> Self {
        let [formula, entails, models, equivalence, definitions @ ..] = shares(parts.kinds);
        Self {
            count: Numbers::new(&parts.count),
            dot: shares(parts.dot),
            formula,
            equivalence,
            sequents: [entails, models],
            definitions,
            premises: Numbers::new(&parts.premises),
            conclusion: shares(parts.conclusion),
        }
    }

    /// Statements that begin with a formula.
    fn formula_first(&self) -> f64 {
        let [entails, models] = self.sequents;
        self.formula + self.equivalence + (entails + models) * self.premises.at_least(1)
    }

    fn definition(&self, head: Head) -> f64 {
        let [predicate, function, constant] = self.definitions;
        match head {
            Head::Predicate => predicate,
            Head::Function => function,
            Head::Constant => constant,
        }
    }
}

const HEADS: [Head; 3] = [Head::Predicate, Head::Function, Head::Constant];

impl Text {
    pub(super) fn new(law: &Law, notation: Notation) -> Result<Self, Refusal> {
        Ok(Self::with_hidden(law, notation, Hidden::new(law)?))
    }

    /// The machine of a law with other hidden choices.
    pub(super) fn with_hidden(law: &Law, notation: Notation, hidden: Hidden) -> Self {
        let parts = match &law.family {
            Family::Depth(law) => law.statements.as_ref().map(Statements::new),
            Family::Count(_) | Family::Boltzmann(_) => None,
        };
        let mut text = Self {
            model: Model::new(law, notation),
            parts,
            hidden,
            parser: Parser::formula(),
            definition: None,
            stage: Stage::Open,
            done: 0,
        };
        text.reset();
        text
    }

    pub(super) fn reset(&mut self) {
        self.done = 0;
        self.definition = None;
        self.begin(Role::Last);
        if self.parts.is_some() {
            self.stage = Stage::Open;
        }
    }

    /// A formula is expected.
    fn begin(&mut self, role: Role) {
        self.parser.restart();
        self.hidden.start();
        self.stage = Stage::In(role);
    }

    /// Reads a symbol; the answer is its probability. After a 0 the machine is of no use until its reset.
    pub(super) fn step(&mut self, symbol: SymbolId) -> f64 {
        match self.stage {
            Stage::Open => self.step_open(symbol),
            Stage::In(role) => self.step_in(symbol, role),
            Stage::Conclusion => self.step_conclusion(symbol),
            Stage::Ended => 0.0,
        }
    }

    /// Reads a whole name: category, digits, and that no digit follows; the answer is the probability (N11).
    pub(super) fn name(&mut self, category: SymbolId, index: u64) -> f64 {
        let mut p = self.step(category);
        let mut digits = Vec::new();
        push_index(&mut digits, index);
        for digit in digits {
            if p <= 0.0 {
                return 0.0;
            }
            p *= self.step(digit);
        }
        if p > 0.0 { p * self.end_index() } else { 0.0 }
    }

    /// An index ends here in every reading, if one is being read; the answer is the probability.
    fn end_index(&mut self) -> f64 {
        let (mut share, mut as_definition) = (1.0, 0.0);
        if let Some((definition, parser)) = &mut self.definition {
            share = 1.0 - *definition;
            as_definition = *definition * parser.end_index(&self.model);
        }
        let as_formula = share * self.parser.end_index(&self.model);
        self.weigh(as_formula, as_definition)
    }

    pub(super) fn posterior(&self) -> Vec<(String, f64)> {
        if self.parts.is_some() {
            return Vec::new();
        }
        self.hidden.posterior(self.parser.expected())
    }

    /// What can stand before a statement: `<eos>` and the signs of sequents without premises with their
    /// probabilities, and the probability that there is a statement.
    fn openings(&self, parts: &Statements) -> ([(SymbolId, f64); 3], f64) {
        let end = if self.done == 0 { 0.0 } else { parts.count.exactly(self.done) * parts.dot[1] };
        let more = if self.done == 0 { 1.0 } else { parts.count.at_least(self.done + 1) };
        let (end, more) = (end / (end + more), more / (end + more));
        let [entails, models] = parts.sequents.map(|p| more * (p * parts.premises.exactly(0)));
        ([(SymbolId::EOS, end), (SymbolId::ENTAILS, entails), (SymbolId::MODELS, models)], more)
    }

    fn step_open(&mut self, symbol: SymbolId) -> f64 {
        let Some(parts) = &self.parts else { return 0.0 };
        let (others, more) = self.openings(parts);
        if let Some((_, p)) = others.into_iter().find(|(other, _)| *other == symbol) {
            self.stage = if symbol == SymbolId::EOS { Stage::Ended } else { Stage::Conclusion };
            return p;
        }
        let formula_first = parts.formula_first();
        let head = HEADS.into_iter().find(|head| head.category() == symbol);
        let as_definition = head.map_or(0.0, |head| parts.definition(head));
        self.begin(Role::Premise(1));
        let as_formula = match self.parser.step(symbol, &self.model, &mut self.hidden) {
            Step::Took(p) => formula_first * p,
            Step::Ended(_) => 0.0,
        };
        if let (Some(head), true) = (head, as_definition > 0.0) {
            let mut parser = Parser::definition(head);
            parser.step(symbol, &self.model, &mut self.hidden);
            self.definition = Some((as_definition, parser));
        }
        more * self.weigh(as_formula, as_definition)
    }

    /// Makes shares of the probabilities of the two readings, and drops a reading that is over; the answer is
    /// their sum.
    fn weigh(&mut self, as_formula: f64, as_definition: f64) -> f64 {
        let sum = as_formula + as_definition;
        if let Some((_, mut parser)) = self.definition.take() {
            if as_formula <= 0.0 {
                std::mem::swap(&mut self.parser, &mut parser);
                self.stage = Stage::In(Role::Last);
            } else if as_definition > 0.0 {
                self.definition = Some((as_definition / sum, parser));
            }
        }
        sum
    }

    fn step_in(&mut self, symbol: SymbolId, role: Role) -> f64 {
        let mut share = 1.0;
        let mut as_definition = 0.0;
        if let Some((definition, parser)) = &mut self.definition {
            share = 1.0 - *definition;
            as_definition = match parser.step(symbol, &self.model, &mut self.hidden) {
                Step::Took(p) => *definition * p,
                Step::Ended(_) => 0.0,
            };
        }
        // A definition's body begins with a fresh posterior; then the other reading is over.
        let as_formula = match self.parser.step(symbol, &self.model, &mut self.hidden) {
            Step::Took(p) => share * p,
            Step::Ended(p) => share * p * self.follow(symbol, role),
        };
        self.weigh(as_formula, as_definition)
    }

    /// A symbol after something complete.
    fn follow(&mut self, symbol: SymbolId, role: Role) -> f64 {
        let following = self.following(role);
        if let (true, Role::Premise(n)) = (self.model.is_prefix(), role)
            && following.iter().all(|f| f.0 != symbol || symbol == SymbolId::COMMA)
        {
            // The COMMA before another premise is left out.
            let another = following.iter().find(|f| f.0 == SymbolId::COMMA).map_or(0.0, |f| f.1);
            self.begin(Role::Premise(n + 1));
            return match self.parser.step(symbol, &self.model, &mut self.hidden) {
                Step::Took(p) => another * p,
                Step::Ended(_) => 0.0,
            };
        }
        let p = following.into_iter().find(|f| f.0 == symbol).map_or(0.0, |f| f.1);
        match (symbol, role) {
            (SymbolId::EQUIVALENT, _) => self.begin(Role::Last),
            (SymbolId::COMMA, Role::Premise(n)) => self.begin(Role::Premise(n + 1)),
            (SymbolId::ENTAILS | SymbolId::MODELS, _) => self.stage = Stage::Conclusion,
            (SymbolId::DOT, _) => {
                self.done += 1;
                self.begin(Role::Premise(1));
                self.stage = Stage::Open;
            }
            (SymbolId::EOS, _) => self.stage = Stage::Ended,
            _ => {}
        }
        p
    }

    /// The symbols that can follow something complete.
    fn following(&self, role: Role) -> [(SymbolId, f64); 6] {
        let none = (SymbolId::PAD, 0.0);
        let Some(parts) = &self.parts else {
            return [(SymbolId::EOS, 1.0), none, none, none, none, none];
        };
        let all = parts.count.at_least(self.done + 1);
        let more = parts.count.at_least(self.done + 2);
        let last = parts.count.exactly(self.done + 1);
        let [plain, dot] = parts.dot;
        let (eos, dot) = (last * plain / all, (more + last * dot) / all);
        match role {
            Role::Last => [(SymbolId::EOS, eos), (SymbolId::DOT, dot), none, none, none, none],
            Role::Premise(n) => {
                let [entails, models] = parts.sequents;
                let alone = |p: f64| if n == 1 { p } else { 0.0 };
                let (formula, equivalence) = (alone(parts.formula), alone(parts.equivalence));
                let all = formula + equivalence + (entails + models) * parts.premises.at_least(n);
                let here = parts.premises.exactly(n);
                [
                    (SymbolId::EOS, formula / all * eos),
                    (SymbolId::DOT, formula / all * dot),
                    (SymbolId::EQUIVALENT, equivalence / all),
                    (SymbolId::COMMA, (entails + models) * parts.premises.at_least(n + 1) / all),
                    (SymbolId::ENTAILS, entails * here / all),
                    (SymbolId::MODELS, models * here / all),
                ]
            }
        }
    }

    fn step_conclusion(&mut self, symbol: SymbolId) -> f64 {
        let [formula, unknown] = self.parts.as_ref().map_or([0.0; 2], |parts| parts.conclusion);
        self.begin(Role::Last);
        if symbol == SymbolId::UNKNOWN {
            self.parser.finish();
            return unknown;
        }
        match self.parser.step(symbol, &self.model, &mut self.hidden) {
            Step::Took(p) => formula * p,
            Step::Ended(_) => 0.0,
        }
    }

    /// Adds the distribution of the next token.
    pub(super) fn fill<S: Sink>(&mut self, out: &mut S) {
        match self.stage {
            Stage::Ended => {}
            Stage::Open => self.fill_open(out),
            Stage::Conclusion => {
                let [formula, unknown] = self.parts.as_ref().map_or([0.0; 2], |parts| parts.conclusion);
                out.symbol(SymbolId::UNKNOWN, unknown);
                self.parser.restart();
                self.hidden.start();
                self.parser.fill(&self.model, &self.hidden, out, formula);
            }
            Stage::In(role) => {
                let mut share = 1.0;
                if let Some((definition, parser)) = &self.definition {
                    share = 1.0 - *definition;
                    parser.fill(&self.model, &self.hidden, out, *definition);
                }
                let over = self.parser.fill(&self.model, &self.hidden, out, share);
                for (symbol, p) in self.following(role) {
                    if symbol == SymbolId::COMMA && self.model.is_prefix() {
                        // Another premise, without a sign before it.
                        let mut hidden = self.hidden.clone();
                        hidden.start();
                        Parser::formula().fill(&self.model, &hidden, out, over * p);
                    } else {
                        out.symbol(symbol, over * p);
                    }
                }
            }
        }
    }

    fn fill_open<S: Sink>(&self, out: &mut S) {
        let Some(parts) = &self.parts else { return };
        let (others, more) = self.openings(parts);
        others.into_iter().for_each(|(symbol, p)| out.symbol(symbol, p));
        for head in HEADS {
            Parser::definition(head).fill(&self.model, &self.hidden, out, more * parts.definition(head));
        }
        self.parser.fill(&self.model, &self.hidden, out, more * parts.formula_first());
    }
}
