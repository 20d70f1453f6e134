//! Parameters whose equations join what they say with the start in another way than by a sum: `W[i] ~ 1; W[i] avg= A[i, j]`.
//!
//! Such a parameter becomes one contribution among those of a tensor that takes its place. What that tensor owes to each of
//! them is then said for the parameter as for all others.

use std::collections::BTreeMap;

use crate::program::{
    Argument, Combine, Equation, Expr, Index, IndexFn, IndexId, Otherwise, Program, Range, Read, Role, Stamp,
    Style, Tensor, TensorId, Term, When,
};

/// The program where such parameters are contributions, and what stands in their place; nothing where there are none.
pub(super) fn parted(program: &Program) -> Option<(Program, BTreeMap<TensorId, TensorId>)> {
    let joins = |id: &TensorId| {
        let tensor = program.tensor(*id);
        tensor.role == Role::Parameter
            && matches!(tensor.combine, Combine::Avg | Combine::Max | Combine::Min | Combine::Times)
            && program.equations.iter().any(|equation| equation.tensor == *id)
    };
    let own: Vec<TensorId> = (0..program.tensors.len() as u32).map(TensorId).filter(joins).collect();
    if own.is_empty() {
        return None;
    }
    let mut program = program.clone();
    let mut places: BTreeMap<TensorId, TensorId> = BTreeMap::new();
    for id in own {
        let tensor = program.tensors.get_mut(id.0 as usize)?;
        let whole = Tensor {
            name: format!("All_{}", tensor.name),
            role: Role::Computed,
            given: std::mem::take(&mut tensor.given),
            start: None,
            ..tensor.clone()
        };
        tensor.combine = Combine::Sum;
        places.insert(id, TensorId(program.tensors.len() as u32));
        program.tensors.push(whole);
    }
    let instead = |read: &mut Read| read.tensor = places.get(&read.tensor).copied().unwrap_or(read.tensor);
    for equation in &mut program.equations {
        equation.tensor = places.get(&equation.tensor).copied().unwrap_or(equation.tensor);
        for term in &mut equation.terms {
            term.when.change_reads(&mut { instead });
            term.body.change_reads(&mut { instead });
        }
    }
    for (id, whole) in &places {
        let equation = contribution(&mut program, *id, *whole);
        program.equations.push(equation);
    }
    Some((program, places))
}

/// `whole[x, …] = parameter[x, …]`, joined as the tensor joins.
fn contribution(program: &mut Program, id: TensorId, whole: TensorId) -> Equation {
    let tensor = program.tensor(id).clone();
    let mut left = Vec::new();
    for domain in tensor.domains() {
        left.push(IndexId(program.indices.len() as u32));
        program.indices.push(Index { name: "x".to_owned(), range: Range::Domain(domain), span: tensor.span });
    }
    let otherwise = if tensor.style == Style::Round { Otherwise::Absent } else { Otherwise::Zero };
    let arguments = left.iter().map(|index| Argument::At(IndexFn::Index(*index))).collect();
    let body = Expr::Read(Read::new(id, arguments, otherwise, tensor.span));
    Equation {
        tensor: whole,
        head: left.iter().copied().map(IndexFn::Index).collect(),
        terms: vec![Term { over: Vec::new(), when: When::default(), body }],
        left,
        node: Stamp::default(),
        span: tensor.span,
        head_span: tensor.span,
        sign_span: tensor.span,
    }
}
