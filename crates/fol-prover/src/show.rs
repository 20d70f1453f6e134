//! Certificates for people: a proof as a tree, a model as tables.

use std::fmt::Write;

use fol::ast::{Formula, Text};

use crate::logic::{FunctionSymbol, Term};
use crate::model::Model;
use crate::proof::{Definition, Origin, Parent, Proof, Rule, Step};

/// A formula, as the reader of formulas reads it.
pub fn formula(formula: &Formula) -> String {
    fol::print(&Text::formula(formula.clone()), fol::Style::Unicode)
}

/// `P7(x0) ≔ φ`
pub fn definition(definition: &Definition) -> String {
    format!("{} ≔ {}", formula(&definition.name()), formula(&definition.body))
}

/// Which formula a clause comes from, counted from 1.
pub fn origin(origin: Origin) -> String {
    match origin {
        Origin::Premise(i) => format!("premise {}", i + 1),
        Origin::Conclusion => "denied conclusion".to_owned(),
        Origin::Unfold(i) | Origin::Fold(i) => format!("definition {}", i + 1),
    }
}

/// The rule of a step, with the formula that it takes a clause of.
pub fn rule(step: &Step) -> String {
    match step.rule {
        Rule::Input(from, _) => origin(from),
        rule => rule.name().to_owned(),
    }
}

/// `X0 ↦ c0, X1 ↦ f0(X1)`, without variables that stay.
pub fn substitution(parent: &Parent) -> String {
    let changed = parent.substitution.iter().enumerate().filter(|(n, term)| **term != Term::Variable(*n));
    changed.map(|(n, term)| format!("X{n} ↦ {term}")).collect::<Vec<_>>().join(", ")
}

/// The proof as a tree, what is to be shown on top and what it came from below it. A step that is used again is named by its
/// number.
pub fn tree(proof: &Proof) -> String {
    let mut out = String::new();
    for made in &proof.definitions {
        let _ = writeln!(out, "{}", definition(made));
    }
    let mut shown = vec![false; proof.steps.len()];
    // What is still to be written: a step, what stands before it on its line, and before those below it.
    let mut open = Vec::new();
    if let Some(last) = proof.steps.len().checked_sub(1) {
        open.push((last, String::new(), String::new(), String::new()));
    }
    while let Some((number, before, below, instance)) = open.pop() {
        let Some(step) = proof.steps.get(number) else { continue };
        let again = std::mem::replace(&mut shown[number], true) && !step.parents.is_empty();
        let _ = write!(out, "{before}{number}. {}   [{}]", step.clause, rule(step));
        if !instance.is_empty() {
            let _ = write!(out, "   {instance}");
        }
        out.push_str(if again { "   (above)\n" } else { "\n" });
        if again {
            continue;
        }
        let many = step.parents.len();
        for (i, parent) in step.parents.iter().enumerate().rev() {
            let (branch, bar) = if i + 1 == many { ("└─ ", "   ") } else { ("├─ ", "│  ") };
            open.push((
                parent.step,
                format!("{below}{branch}"),
                format!("{below}{bar}"),
                substitution(parent),
            ));
        }
    }
    out
}

/// The model as tables.
pub fn tables(model: &Model) -> String {
    let elements: Vec<String> = (0..model.size).map(|element| element.to_string()).collect();
    let mut out = format!("domain: {}\n", elements.join(", "));
    let joined = |row: &[usize]| row.iter().map(usize::to_string).collect::<Vec<_>>().join(", ");
    for (symbol, table) in &model.functions {
        let arity = match symbol {
            FunctionSymbol::Function(_, arity) => *arity,
            _ => 0,
        };
        let (rows, default) = model.rows(table, arity);
        for row in rows {
            let _ = match row.split_last() {
                Some((value, [])) => writeln!(out, "{symbol} = {value}"),
                Some((value, arguments)) => writeln!(out, "{symbol}({}) = {value}", joined(arguments)),
                None => Ok(()),
            };
        }
        if let Some(default) = default {
            let _ = writeln!(out, "{symbol}(…) = {default} elsewhere");
        }
    }
    for (symbol, rows) in &model.predicates {
        let _ = if symbol.arity() == 0 {
            writeln!(out, "{symbol}: {}", !rows.is_empty())
        } else if rows.is_empty() {
            writeln!(out, "{symbol}: of none")
        } else {
            let rows: Vec<String> = rows.iter().map(|row| format!("({})", joined(row))).collect();
            writeln!(out, "{symbol}: {}", rows.join(" "))
        };
    }
    out
}
