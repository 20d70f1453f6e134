//! Canonical tokens of a tree.

use crate::ast::{Definition, Formula, Statement, Term, Text, Variable};
use crate::codec::push_index;
use crate::symbol::SymbolId;

/// The canonical tokens of a text, without `<bos>` and `<eos>`.
pub fn encode(text: &Text) -> Vec<SymbolId> {
    let mut out = Vec::new();
    for (i, statement) in text.statements.iter().enumerate() {
        if i > 0 {
            out.push(SymbolId::DOT);
        }
        push_statement(&mut out, statement);
    }
    if text.terminated {
        out.push(SymbolId::DOT);
    }
    out
}

fn push_statement(out: &mut Vec<SymbolId>, statement: &Statement) {
    match statement {
        Statement::Formula(formula) => push_formula(out, formula),
        Statement::Sequent(turnstile, premises, conclusion) => {
            for (i, premise) in premises.iter().enumerate() {
                if i > 0 {
                    out.push(SymbolId::COMMA);
                }
                push_formula(out, premise);
            }
            out.push(turnstile.symbol());
            match conclusion {
                Some(formula) => push_formula(out, formula),
                None => out.push(SymbolId::UNKNOWN),
            }
        }
        Statement::Definition(definition) => push_definition(out, definition),
        Statement::Equivalence(left, right) => {
            push_formula(out, left);
            out.push(SymbolId::EQUIVALENT);
            push_formula(out, right);
        }
    }
}

fn push_definition(out: &mut Vec<SymbolId>, definition: &Definition) {
    match definition {
        Definition::Predicate(predicate, parameters, body) => {
            out.push(SymbolId::PRED);
            push_index(out, predicate.0);
            push_arguments(out, parameters, push_variable);
            out.push(SymbolId::DEFINE);
            push_formula(out, body);
        }
        Definition::Function(function, parameters, body) => {
            out.push(SymbolId::FUNC);
            push_index(out, function.0);
            push_arguments(out, parameters, push_variable);
            out.push(SymbolId::DEFINE);
            push_term(out, body);
        }
        Definition::Constant(constant, body) => {
            out.push(SymbolId::CONST);
            push_index(out, constant.0);
            out.push(SymbolId::DEFINE);
            push_term(out, body);
        }
    }
}

/// Writes the tokens of a formula.
pub(crate) fn push_formula(out: &mut Vec<SymbolId>, formula: &Formula) {
    match formula {
        Formula::Truth(truth) => out.push(if *truth { SymbolId::TRUE } else { SymbolId::FALSE }),
        Formula::Predicate(predicate, arguments) => {
            out.push(SymbolId::PRED);
            push_index(out, predicate.0);
            push_arguments(out, arguments, push_term);
        }
        Formula::Relation(relation, left, right) => {
            push_term(out, left);
            out.push(relation.symbol());
            push_term(out, right);
        }
        Formula::Not(operand) => {
            out.push(SymbolId::NOT);
            push_formula(out, operand);
        }
        Formula::Binary(connective, left, right) => {
            out.push(SymbolId::LPAREN);
            push_formula(out, left);
            out.push(connective.symbol());
            push_formula(out, right);
            out.push(SymbolId::RPAREN);
        }
        Formula::Quantified(quantifier, variable, sort, body) => {
            out.push(quantifier.symbol());
            push_variable(out, variable);
            if let Some(sort) = sort {
                out.extend([SymbolId::COLON, SymbolId::SORT]);
                push_index(out, sort.0);
            }
            push_formula(out, body);
        }
    }
}

/// Writes the tokens of a term.
pub(crate) fn push_term(out: &mut Vec<SymbolId>, term: &Term) {
    match term {
        Term::Variable(variable) => push_variable(out, variable),
        Term::Constant(constant) => {
            out.push(SymbolId::CONST);
            push_index(out, constant.0);
        }
        Term::Function(function, arguments) => {
            out.push(SymbolId::FUNC);
            push_index(out, function.0);
            push_arguments(out, arguments, push_term);
        }
    }
}

fn push_variable(out: &mut Vec<SymbolId>, variable: &Variable) {
    out.push(SymbolId::VAR);
    push_index(out, variable.0);
}

fn push_arguments<T>(out: &mut Vec<SymbolId>, arguments: &[T], push: impl Fn(&mut Vec<SymbolId>, &T)) {
    for (i, argument) in arguments.iter().enumerate() {
        out.push(if i == 0 { SymbolId::LPAREN } else { SymbolId::COMMA });
        push(out, argument);
    }
    if !arguments.is_empty() {
        out.push(SymbolId::RPAREN);
    }
}
