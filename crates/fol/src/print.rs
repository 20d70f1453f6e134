//! Canonical text of a tree, in the styles that the readers read back.
//!
//! Enter at [`print`]. The layout is one for all styles; a style chooses spellings and digits.

use crate::ast::{Definition, Formula, Statement, Term, Text, Variable};
use crate::encode::encode;
use crate::symbol::SymbolId;

/// How a text is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// `∀x1 (P5(x1) ∧ ¬x1 = c2)`
    Unicode,
    /// `forall x1 (P5(x1) & ~x1 = c2)`
    Ascii,
    /// As `Unicode`, with subscript digits.
    Subscript,
    /// Labels, separated by one blank.
    Words,
}

/// The canonical text.
pub fn print(text: &Text, style: Style) -> String {
    if style == Style::Words {
        return words(&encode(text));
    }
    let mut printer = Printer { out: String::new(), style };
    for (i, statement) in text.statements.iter().enumerate() {
        printer.out.push_str(if i > 0 { ". " } else { "" });
        printer.statement(statement);
    }
    printer.out.push_str(if text.terminated { "." } else { "" });
    printer.out
}

/// The labels of symbols, separated by one blank.
pub fn words(symbols: &[SymbolId]) -> String {
    symbols.iter().map(|symbol| symbol.label()).collect::<Vec<_>>().join(" ")
}

struct Printer {
    out: String,
    style: Style,
}

impl Printer {
    fn symbol(&mut self, symbol: SymbolId) {
        self.out.push_str(if self.style == Style::Ascii { symbol.ascii() } else { symbol.unicode() });
    }

    /// A symbol between blanks.
    fn infix(&mut self, symbol: SymbolId) {
        self.out.push(' ');
        self.symbol(symbol);
        self.out.push(' ');
    }

    fn indexed(&mut self, category: SymbolId, index: u64) {
        self.symbol(category);
        let digits = index.to_string();
        match self.style {
            Style::Subscript => self
                .out
                .extend(digits.chars().filter_map(|c| "₀₁₂₃₄₅₆₇₈₉".chars().nth(c.to_digit(10)? as usize))),
            _ => self.out.push_str(&digits),
        }
    }

    fn statement(&mut self, statement: &Statement) {
        match statement {
            Statement::Formula(formula) => self.formula(formula),
            Statement::Sequent(turnstile, premises, conclusion) => {
                self.list(premises, Self::formula);
                self.out.push_str(if premises.is_empty() { "" } else { " " });
                self.symbol(turnstile.symbol());
                self.out.push(' ');
                match conclusion {
                    Some(formula) => self.formula(formula),
                    None => self.symbol(SymbolId::UNKNOWN),
                }
            }
            Statement::Definition(definition) => self.definition(definition),
            Statement::Equivalence(left, right) => {
                self.formula(left);
                self.infix(SymbolId::EQUIVALENT);
                self.formula(right);
            }
        }
    }

    fn definition(&mut self, definition: &Definition) {
        let variable = |printer: &mut Self, v: &Variable| printer.indexed(SymbolId::VAR, v.0);
        match definition {
            Definition::Predicate(predicate, parameters, body) => {
                self.indexed(SymbolId::PRED, predicate.0);
                self.arguments(parameters, variable);
                self.infix(SymbolId::DEFINE);
                self.formula(body);
            }
            Definition::Function(function, parameters, body) => {
                self.indexed(SymbolId::FUNC, function.0);
                self.arguments(parameters, variable);
                self.infix(SymbolId::DEFINE);
                self.term(body);
            }
            Definition::Constant(constant, body) => {
                self.indexed(SymbolId::CONST, constant.0);
                self.infix(SymbolId::DEFINE);
                self.term(body);
            }
        }
    }

    fn formula(&mut self, formula: &Formula) {
        match formula {
            Formula::Truth(truth) => self.symbol(if *truth { SymbolId::TRUE } else { SymbolId::FALSE }),
            Formula::Predicate(predicate, arguments) => {
                self.indexed(SymbolId::PRED, predicate.0);
                self.arguments(arguments, Self::term);
            }
            Formula::Relation(relation, left, right) => {
                self.term(left);
                self.infix(relation.symbol());
                self.term(right);
            }
            Formula::Not(operand) => {
                self.symbol(SymbolId::NOT);
                self.formula(operand);
            }
            Formula::Binary(connective, left, right) => {
                self.symbol(SymbolId::LPAREN);
                self.formula(left);
                self.infix(connective.symbol());
                self.formula(right);
                self.symbol(SymbolId::RPAREN);
            }
            Formula::Quantified(quantifier, variable, sort, body) => {
                self.symbol(quantifier.symbol());
                self.out.push_str(if self.style == Style::Ascii { " " } else { "" });
                self.indexed(SymbolId::VAR, variable.0);
                if let Some(sort) = sort {
                    self.symbol(SymbolId::COLON);
                    self.indexed(SymbolId::SORT, sort.0);
                }
                self.out.push(' ');
                self.formula(body);
            }
        }
    }

    fn term(&mut self, term: &Term) {
        match term {
            Term::Variable(variable) => self.indexed(SymbolId::VAR, variable.0),
            Term::Constant(constant) => self.indexed(SymbolId::CONST, constant.0),
            Term::Function(function, arguments) => {
                self.indexed(SymbolId::FUNC, function.0);
                self.arguments(arguments, Self::term);
            }
        }
    }

    fn arguments<T>(&mut self, arguments: &[T], print: impl Fn(&mut Self, &T)) {
        if !arguments.is_empty() {
            self.symbol(SymbolId::LPAREN);
            self.list(arguments, print);
            self.symbol(SymbolId::RPAREN);
        }
    }

    fn list<T>(&mut self, items: &[T], print: impl Fn(&mut Self, &T)) {
        for (i, item) in items.iter().enumerate() {
            if i > 0 {
                self.symbol(SymbolId::COMMA);
                self.out.push(' ');
            }
            print(self, item);
        }
    }
}
