//! The tree as JSON: a node is an array, its name and then its contents (F19).

use serde_json::{Value, json};

use crate::ast::{Definition, Formula, Statement, Term, Text};
use crate::symbol::SymbolId;

/// `{"statements": […], "terminated": …}`
pub fn text(text: &Text) -> Value {
    json!({
        "statements": text.statements.iter().map(statement).collect::<Vec<_>>(),
        "terminated": text.terminated,
    })
}

/// The name of a symbol's node: its label in lower case.
fn name(symbol: SymbolId) -> Value {
    Value::from(symbol.label().to_lowercase())
}

fn statement(statement: &Statement) -> Value {
    match statement {
        Statement::Formula(f) => formula(f),
        Statement::Sequent(turnstile, premises, conclusion) => {
            let premises: Vec<_> = premises.iter().map(formula).collect();
            let conclusion = conclusion.as_ref().map_or_else(|| json!(["unknown"]), formula);
            json!([name(turnstile.symbol()), premises, conclusion])
        }
        Statement::Definition(definition) => {
            let (head, body) = match definition {
                Definition::Predicate(p, parameters, body) => {
                    (applied("pred", p.0, parameters.iter().map(|v| json!(["var", v.0]))), formula(body))
                }
                Definition::Function(f, parameters, body) => {
                    (applied("func", f.0, parameters.iter().map(|v| json!(["var", v.0]))), term(body))
                }
                Definition::Constant(c, body) => (json!(["const", c.0]), term(body)),
            };
            json!(["define", head, body])
        }
        Statement::Equivalence(left, right) => json!(["equivalent", formula(left), formula(right)]),
    }
}

pub(crate) fn formula(f: &Formula) -> Value {
    match f {
        Formula::Truth(truth) => json!([if *truth { "true" } else { "false" }]),
        Formula::Predicate(p, arguments) => applied("pred", p.0, arguments.iter().map(term)),
        Formula::Relation(relation, left, right) => json!([name(relation.symbol()), term(left), term(right)]),
        Formula::Not(operand) => json!(["not", formula(operand)]),
        Formula::Binary(c, left, right) => json!([name(c.symbol()), formula(left), formula(right)]),
        Formula::Quantified(q, variable, sort, body) => {
            json!([name(q.symbol()), variable.0, sort.map(|sort| sort.0), formula(body)])
        }
    }
}

fn term(t: &Term) -> Value {
    match t {
        Term::Variable(v) => json!(["var", v.0]),
        Term::Constant(c) => json!(["const", c.0]),
        Term::Function(f, arguments) => applied("func", f.0, arguments.iter().map(term)),
    }
}

fn applied(name: &str, index: u64, arguments: impl Iterator<Item = Value>) -> Value {
    [Value::from(name), Value::from(index)].into_iter().chain(arguments).collect()
}
