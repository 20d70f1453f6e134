//! The explicit text of every equation means what the equation means.
#![expect(clippy::unwrap_used, reason = "a test that cannot read its cases has failed")]

use std::collections::BTreeMap;

use tensor_logic::analyse::analyse;
use tensor_logic::engine::{Budget, Engine, Request, Value};
use tensor_logic::error::Report;
use tensor_logic::function::UserFunctions;
use tensor_logic::lower::{NoFiles, Options};
use tensor_logic::program::{Program, Role, TensorId};
use tensor_logic::reference::Reference;
use tensor_logic::show;
use tensor_logic::start::all_start_values;

mod common;

const BUDGET: Budget = Budget { tuples: 100_000, bytes: 1 << 30 };

fn analysed(text: &str) -> Result<Program, Vec<Report>> {
    analyse(text, &mut NoFiles, &UserFunctions::default(), &Options::default()).map(|found| found.program)
}

/// What a tensor is called: hidden ones by their order.
fn names(program: &Program) -> Vec<(String, TensorId)> {
    let mut hidden = 0;
    let name = |(at, tensor): (u32, &tensor_logic::program::Tensor)| {
        hidden += usize::from(tensor.hidden);
        let name = match tensor.hidden {
            true => format!("query {hidden}"),
            false => format!("{} version {}", tensor.name, tensor.version),
        };
        (name, TensorId(at))
    };
    let tensors = (0..).zip(&program.tensors).filter(|(_, tensor)| tensor.role != Role::Missing);
    tensors.map(name).collect()
}

/// The value of every tensor, or the code of its refusal; numbers by their bits where they are
/// not almost equal to the other's.
fn values(program: &Program) -> BTreeMap<String, Result<(Value, Vec<String>), String>> {
    let parameters = all_start_values(program);
    let request = Request { program, parameters: &parameters, budget: BUDGET };
    let mut reference = Reference::default();
    let value = |(name, id): (String, TensorId)| {
        let found = reference.values(&request, &[id]);
        let found = found.map_err(|report| format!("{:?}", report.code));
        let tuples = |value: &Value| match value {
            Value::Tuples(tuples) => tuples.tuples.iter().map(|tuple| program.show_tuple(tuple)).collect(),
            Value::Dense(_) => Vec::new(),
        };
        (name, found.map(|mut values| (values[0].clone(), tuples(&values.remove(0)))))
    };
    names(program).into_iter().map(value).collect()
}

fn close(a: f64, b: f64) -> bool {
    a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= 1e-9 * a.abs().max(b.abs()).max(1.0)
}

fn same(a: &Result<(Value, Vec<String>), String>, b: &Result<(Value, Vec<String>), String>) -> bool {
    let numbers = |a: &[f64], b: &[f64]| a.len() == b.len() && a.iter().zip(b).all(|(a, b)| close(*a, *b));
    match (a, b) {
        (Ok((Value::Dense(a), _)), Ok((Value::Dense(b), _))) => numbers(a, b),
        (Ok((Value::Tuples(a), shown)), Ok((Value::Tuples(b), other))) => {
            shown == other && numbers(&a.values, &b.values)
        }
        (Err(a), Err(b)) => a == b,
        _ => false,
    }
}

/// The text with every equation replaced by its explicit text.
fn written_out(text: &str, program: &Program) -> String {
    let mut replaced: BTreeMap<usize, (usize, String)> = BTreeMap::new();
    for equation in &program.equations {
        if !program.tensor(equation.tensor).hidden {
            let explicit = show::explicit(program, text, equation);
            replaced.insert(equation.span.start, (equation.span.end, explicit));
        }
    }
    let mut out = text.to_owned();
    for (start, (end, explicit)) in replaced.into_iter().rev() {
        out.replace_range(start..end, &explicit);
    }
    out
}

/// Says what is wrong with the explicit text of a program, if something is.
fn fault(text: &str) -> Option<String> {
    let program = analysed(text).ok()?;
    let explicit = written_out(text, &program);
    let again = match analysed(&explicit) {
        Ok(program) => program,
        Err(reports) => {
            let shown: Vec<String> = reports.iter().map(|r| format!("{:?} {}", r.code, r.message)).collect();
            return Some(format!("refused: {shown:?}\n{explicit}"));
        }
    };
    let (wanted, found) = (values(&program), values(&again));
    // The name of a size is no tensor, and may go where the size is a number.
    let difference = wanted.iter().find(|(name, value)| !found.get(*name).is_some_and(|f| same(value, f)));
    if let Some((name, value)) = difference {
        return Some(format!("{name}: {value:?}\nbecame {:?}\n{explicit}", found.get(name)));
    }
    let twice = written_out(&explicit, &again);
    (twice != explicit).then(|| format!("printing twice changes\n{explicit}\nto\n{twice}"))
}

#[test]
fn the_corpus_means_the_same_when_written_out() {
    let mut wrong = Vec::new();
    for (name, text) in common::programs() {
        if std::env::var("SHOW").is_ok_and(|wanted| wanted == "all" || name.contains(&wanted)) {
            if let Ok(program) = analysed(&text) {
                eprintln!("--- {name}\n{}", written_out(&text, &program));
            }
        }
        wrong.extend(fault(&text).map(|fault| format!("{name}: {fault}")));
    }
    assert!(wrong.is_empty(), "{} wrong\n{}", wrong.len(), wrong.join("\n\n"));
}
