//! The statements of inference tasks, which the plain grammar does not have.
//!
//! ```text
//! task     := [formula (COMMA formula)*] ENTAILS (<unknown> | formula (DOT formula)*)
//!           | [formula (COMMA formula)*] <query> formula <answer> (TRUE | FALSE | <unknown>)
//!           | equation (<sep> equation)* <sep> <query> variable <answer> variable
//! equation := variable EQUALS variable
//! ```
//! They are read by the machine of the formulas, so expected sets and depths are its own.

use super::{Read, Reader, bit};
use crate::ast::{Answer, Equation, Formula, Relation, Task, Term, Variable};
use crate::built::Trees;
use crate::input::Mode;
use crate::symbol::SymbolId;

/// Reads a task, with or without `<bos>` and `<eos>`.
pub(in crate::read) fn task(tokens: &[SymbolId], mode: Mode) -> Read<Task> {
    Reader::new(tokens, mode, &mut Trees).whole(|reader| {
        let task = reader.task()?;
        let complete = match &task {
            Task::Deduction { steps, .. } if !steps.is_empty() => "a complete step",
            _ => "a complete answer",
        };
        if reader.at_end() { Ok(task) } else { reader.refuse(complete) }
    })
}

impl Reader<'_, Trees> {
    fn task(&mut self) -> Read<Task> {
        let mut premises = Vec::new();
        loop {
            // Before the first premise the question may stand too; after a comma it may not.
            if premises.is_empty() {
                if self.take(SymbolId::ENTAILS) {
                    return self.deduction(premises);
                }
                if self.take(SymbolId::QUERY) {
                    return self.question(premises);
                }
            }
            premises.push(self.inner_formula()?);
            if let [one] = premises.as_slice()
                && let Some(first) = equation(one)
                && self.take(SymbolId::SEP)
            {
                return self.terms(first);
            }
            if self.take(SymbolId::ENTAILS) {
                return self.deduction(premises);
            }
            if self.take(SymbolId::QUERY) {
                return self.question(premises);
            }
            if !self.take(SymbolId::COMMA) {
                return self.refuse("a complete premise");
            }
        }
    }

    /// From after ENTAILS on.
    fn deduction(&mut self, premises: Vec<Formula>) -> Read<Task> {
        if self.take(SymbolId::UNKNOWN) {
            return Ok(Task::Deduction { premises, steps: Vec::new() });
        }
        let mut steps = vec![self.inner_formula()?];
        while self.take(SymbolId::DOT) {
            steps.push(self.inner_formula()?);
        }
        Ok(Task::Deduction { premises, steps })
    }

    /// From after `<query>` on.
    fn question(&mut self, premises: Vec<Formula>) -> Read<Task> {
        let asked = self.inner_formula()?;
        if !self.take(SymbolId::ANSWER) {
            return self.refuse("a complete question");
        }
        let answer = Answer::ALL.into_iter().find(|answer| self.take(answer.symbol()));
        match answer {
            Some(answer) => Ok(Task::Question { premises, asked, answer }),
            None => self.refuse("<answer>"),
        }
    }

    /// From after the first `<sep>` on.
    fn terms(&mut self, first: Equation) -> Read<Task> {
        let mut equations = vec![first];
        while !self.take(SymbolId::QUERY) {
            let left = self.variable("<sep>")?;
            if !self.take(SymbolId::EQUALS) {
                return self.refuse("the left side of an equation");
            }
            equations.push((left, self.variable("EQUALS")?));
            if !self.take(SymbolId::SEP) {
                return self.refuse("an equation");
            }
        }
        let asked = self.variable("<query>")?;
        if !self.take(SymbolId::ANSWER) {
            return self.refuse("the variable that is asked for");
        }
        Ok(Task::Term { equations, asked, answer: self.variable("<answer>")? })
    }

    fn variable(&mut self, before: &str) -> Read<Variable> {
        if self.ask(bit(SymbolId::VAR)).is_none() {
            return self.refuse(before);
        }
        self.advance();
        Ok(Variable(self.index()?))
    }
}

/// The sides of an equation of variables.
fn equation(formula: &Formula) -> Option<Equation> {
    match formula {
        Formula::Relation(Relation::Equals, Term::Variable(left), Term::Variable(right)) => {
            Some((*left, *right))
        }
        _ => None,
    }
}
