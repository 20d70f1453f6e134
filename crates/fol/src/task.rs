//! The statements of inference tasks: what follows from premises, whether something does, and which variable another
//! one equals. The plain grammar has none of them but sequents; [`read`] reads them by a grammar of their own.
//!
//! | task | sequence |
//! |---|---|
//! | conclusion | φ₁ COMMA … φₖ ENTAILS ψ |
//! | nothing that is asked for follows | … ENTAILS `<unknown>` |
//! | several steps | … ENTAILS s₁ DOT s₂ DOT … ψ |
//! | three-way question | φ₁ COMMA … `<query>` ψ `<answer>` (TRUE, FALSE or `<unknown>`) |
//! | term question | `VAR a EQUALS VAR b <sep> … <sep> <query> VAR a <answer> VAR z` |
//!
//! ```
//! use fol::read::{Mode, Source};
//! use fol::task::{self, Answer, Task};
//!
//! let read = task::read("P(c), P(c) → Q(c) <query> Q(c) <answer> ⊤", Source::Text, Mode::Lenient)?;
//! let Task::Question { answer, .. } = &read.task else { panic!() };
//! assert_eq!(*answer, Answer::True);
//! assert_eq!(task::decode(&read.tokens)?, read.task);
//! # Ok::<(), fol::error::Refusal>(())
//! ```

use serde_json::{Value, json};

pub use crate::ast::{Answer, Equation, Task};
use crate::ast::{Formula, Relation, Term, Text, Variable};
use crate::codec::push_index;
use crate::encode::encode as encode_text;
use crate::error::Refusal;
use crate::input::{Mode, Source, Symbols};
use crate::print::{Style, print as print_text, words};
use crate::symbol::SymbolId;
use crate::{json as tree, read as reader};

/// A task with what it was read from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parsed {
    /// The task.
    pub task: Task,
    /// Its canonical tokens, without `<bos>` and `<eos>`.
    pub tokens: Vec<SymbolId>,
    /// The input, cut into symbols.
    pub given: Symbols,
}

/// Reads a whole input by the grammar of tasks.
///
/// # Errors
/// The kinds of the stages `lex` and `parse`, as [`parse`](reader::parse) of the plain grammar.
pub fn read(input: &str, source: Source, mode: Mode) -> Result<Parsed, Refusal> {
    let given = reader::symbols(input, source, mode)?;
    let task = reader::task(&given, mode)?;
    Ok(Parsed { tokens: encode(&task), task, given })
}

/// Reads tokens strictly, with or without `<bos>` and `<eos>`.
///
/// # Errors
/// The kinds of the stage `parse`.
pub fn decode(tokens: &[SymbolId]) -> Result<Task, Refusal> {
    reader::task(&Symbols { symbols: tokens.to_vec(), ..Symbols::default() }, Mode::Strict)
}

/// The place after which the answer stands: the first ENTAILS or `<answer>` of a sequence. What stands after it is to be
/// found; what stands up to it is given.
pub fn given(tokens: &[SymbolId]) -> Option<usize> {
    tokens.iter().position(|symbol| matches!(*symbol, SymbolId::ENTAILS | SymbolId::ANSWER))
}

/// A piece of a task: a formula, a variable, or a symbol between them.
enum Piece<'a> {
    Formula(&'a Formula),
    Variable(Variable),
    Symbol(SymbolId),
}

fn pieces(task: &Task) -> Vec<Piece<'_>> {
    fn joined<'a>(out: &mut Vec<Piece<'a>>, formulas: &'a [Formula], by: SymbolId) {
        for (at, formula) in formulas.iter().enumerate() {
            out.extend((at > 0).then_some(Piece::Symbol(by)));
            out.push(Piece::Formula(formula));
        }
    }
    let mut out = Vec::new();
    match task {
        Task::Deduction { premises, steps } => {
            joined(&mut out, premises, SymbolId::COMMA);
            out.push(Piece::Symbol(SymbolId::ENTAILS));
            joined(&mut out, steps, SymbolId::DOT);
            out.extend(steps.is_empty().then_some(Piece::Symbol(SymbolId::UNKNOWN)));
        }
        Task::Question { premises, asked, answer } => {
            joined(&mut out, premises, SymbolId::COMMA);
            out.push(Piece::Symbol(SymbolId::QUERY));
            out.push(Piece::Formula(asked));
            out.push(Piece::Symbol(SymbolId::ANSWER));
            out.push(Piece::Symbol(answer.symbol()));
        }
        Task::Term { equations, asked, answer } => {
            for (left, right) in equations {
                out.push(Piece::Variable(*left));
                out.push(Piece::Symbol(SymbolId::EQUALS));
                out.push(Piece::Variable(*right));
                out.push(Piece::Symbol(SymbolId::SEP));
            }
            out.push(Piece::Symbol(SymbolId::QUERY));
            out.push(Piece::Variable(*asked));
            out.push(Piece::Symbol(SymbolId::ANSWER));
            out.push(Piece::Variable(*answer));
        }
    }
    out
}

/// The canonical tokens of a task, without `<bos>` and `<eos>`.
pub fn encode(task: &Task) -> Vec<SymbolId> {
    let mut out = Vec::new();
    for piece in pieces(task) {
        match piece {
            Piece::Formula(formula) => out.extend(encode_text(&Text::formula(formula.clone()))),
            Piece::Variable(variable) => {
                out.push(SymbolId::VAR);
                push_index(&mut out, variable.0);
            }
            Piece::Symbol(symbol) => out.push(symbol),
        }
    }
    out
}

/// The canonical text of a task, which [`read`] reads back.
pub fn print(task: &Task, style: Style) -> String {
    if style == Style::Words {
        return words(&encode(task));
    }
    let mut out = String::new();
    for piece in pieces(task) {
        let written = match piece {
            Piece::Formula(formula) => print_text(&Text::formula(formula.clone()), style),
            Piece::Variable(x) => {
                // As the text `x = x` writes it.
                let term = Term::Variable(x);
                let twice = Formula::Relation(Relation::Equals, term.clone(), term);
                let written = print_text(&Text::formula(twice), style);
                written.split(' ').next().unwrap_or_default().to_owned()
            }
            Piece::Symbol(symbol) if style == Style::Ascii => symbol.ascii().to_owned(),
            Piece::Symbol(symbol) => symbol.unicode().to_owned(),
        };
        if !out.is_empty() && ![",", "."].contains(&written.as_str()) {
            out.push(' ');
        }
        out.push_str(&written);
    }
    out
}

/// `["deduction",[φ,…],[s,…]]`, `["question",[φ,…],ψ,"true"|"false"|"unknown"]`, `["term",[[a,b],…],a,z]`.
pub fn json(task: &Task) -> Value {
    let formulas = |all: &[Formula]| all.iter().map(tree::formula).collect::<Vec<_>>();
    match task {
        Task::Deduction { premises, steps } => json!(["deduction", formulas(premises), formulas(steps)]),
        Task::Question { premises, asked, answer } => {
            let answer = answer.symbol().label().trim_matches(['<', '>']).to_lowercase();
            json!(["question", formulas(premises), tree::formula(asked), answer])
        }
        Task::Term { equations, asked, answer } => {
            let equations: Vec<_> = equations.iter().map(|(left, right)| [left.0, right.0]).collect();
            json!(["term", equations, asked.0, answer.0])
        }
    }
}
