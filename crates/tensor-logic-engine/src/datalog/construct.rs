//! Why a program is no rules over relations: the first construct that is none, with its place.

use std::collections::BTreeSet;

use super::{Compiler, keeps_order, ring};
use crate::error::{Code, Refusal};
use crate::program::{Combine, Program, Role, Style, TensorId};

/// The first construct below goals that is no relation joined by rules.
pub(super) fn refused(program: &Program, goals: &[TensorId]) -> Refusal {
    let needed = program.needs(goals);
    let mut compiler = Compiler::default();
    let what = needed.iter().find_map(|id| Some((*id, no_relation(program, *id)?)));
    let what = what.or_else(|| no_rules(program, &mut compiler, &needed));
    let (id, what) = what.unwrap_or_else(|| {
        let goal = goals.first().copied().unwrap_or(TensorId(0));
        (goal, "it is no relation joined by rules")
    });
    let named = if program.tensor(id).hidden { "the query" } else { "the tensor" };
    let message = format!("{named} `{}` is no rule over relations: {what}", program.name(id));
    Refusal::new(Code::NotYet, program.left_side(id), message)
        .help("only rules over relations are dataflows: run the program without workers")
}

/// What makes a tensor no relation.
fn no_relation(program: &Program, id: TensorId) -> Option<&'static str> {
    let tensor = program.tensor(id);
    if tensor.role == Role::Parameter {
        return Some("it is a learned parameter");
    }
    if ring(program, id).is_some() {
        return None;
    }
    Some(match tensor.combine {
        Combine::Proofs | Combine::Slopes => "its values are probabilities of proofs",
        Combine::Times => "it is a product of contributions (`*=`)",
        Combine::Avg => "it is a mean of contributions (`avg=`)",
        Combine::Or => "it joins numbers by `or=`",
        _ if tensor.style == Style::Square => "it is a dense tensor",
        Combine::Min | Combine::Max if !keeps_order(program, id) => {
            "it is the best of products with numbers below 0, which turn the order round"
        }
        _ => "its equations are no products in one operation (functions, quotients, sums of terms)",
    })
}

/// What makes equations no rules, or data no facts.
fn no_rules(
    program: &Program,
    compiler: &mut Compiler,
    needed: &BTreeSet<TensorId>,
) -> Option<(TensorId, &'static str)> {
    for id in needed {
        let tensor = program.tensor(*id);
        let ring = ring(program, *id)?;
        let relation = compiler.database.declare(tensor.name.clone(), tensor.places.len(), ring);
        compiler.relations.insert(*id, relation);
    }
    let equation = needed.iter().find(|id| compiler.equations(program, **id).is_none());
    if let Some(id) = equation {
        return Some((*id, "an equation of it reads dense elements, or conditions that are no comparisons"));
    }
    let data = needed.iter().find(|id| compiler.load(program, **id).is_none())?;
    Some((*data, "its data are no facts"))
}
