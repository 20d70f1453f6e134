//! Certificates as JSON.

use serde_json::{Map, Value, json};

use crate::logic::FunctionSymbol;
use crate::model::Model;
use crate::proof::Proof;
use crate::show;

/// The steps: `[{"id","rule","parents","clause","substitutions","equality"}]`. The substitutions stand in the order of the parents.
pub fn proof(proof: &Proof) -> Value {
    let step = |(id, step): (usize, &crate::proof::Step)| {
        json!({
            "id": id,
            "rule": show::rule(step),
            "parents": step.parents.iter().map(|parent| parent.step).collect::<Vec<_>>(),
            "clause": step.clause.to_string(),
            "substitutions": step.parents.iter().map(|parent| {
                let pairs = parent.substitution.iter().enumerate();
                pairs.map(|(n, term)| (format!("X{n}"), json!(term.to_string()))).collect::<Map<_, _>>()
            }).collect::<Vec<_>>(),
            "equality": step.equality.iter().map(ToString::to_string).collect::<Vec<_>>(),
        })
    };
    proof.steps.iter().enumerate().map(step).collect()
}

/// The names of sub-formulas that a proof uses, and the formulas over them.
pub fn definitions(proof: &Proof) -> Value {
    proof.definitions.iter().map(show::definition).collect()
}

/// `{"size","constants","variables","functions","predicates"}`: a function is the list of its rows, arguments and then the value.
/// Of a function with very many rows those stand that differ from the value under `defaults`.
pub fn model(model: &Model) -> Value {
    let (mut constants, mut variables, mut functions) = (Map::new(), Map::new(), Map::new());
    let mut defaults = Map::new();
    for (symbol, table) in &model.functions {
        match symbol {
            FunctionSymbol::Function(_, arity) => {
                let name = format!("{symbol}/{arity}");
                let (rows, default) = model.rows(table, *arity);
                functions.insert(name.clone(), json!(rows));
                if let Some(default) = default {
                    defaults.insert(name, json!(default));
                }
            }
            FunctionSymbol::Parameter(_) => {
                drop(variables.insert(symbol.to_string(), json!(table.value(&[]))))
            }
            _ => drop(constants.insert(symbol.to_string(), json!(table.value(&[])))),
        }
    }
    let predicates: Map<String, Value> = model
        .predicates
        .iter()
        .map(|(symbol, rows)| (format!("{symbol}/{}", symbol.arity()), json!(rows)))
        .collect();
    let mut object = json!({
        "size": model.size,
        "constants": constants,
        "variables": variables,
        "functions": functions,
        "predicates": predicates,
    });
    if let (Some(object), false) = (object.as_object_mut(), defaults.is_empty()) {
        object.insert("defaults".to_owned(), Value::Object(defaults));
    }
    object
}
