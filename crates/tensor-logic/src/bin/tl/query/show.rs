//! What `tl query` found, as JSON and for people.

use std::fmt::Write;

use graphical_models::{Believed, Estimate, Joint, Model, Sampled, Sampling, Variable, VariableId};
use tensor_logic::answer::json;

use crate::answer::Answer;

/// The rows of a joint distribution that people are shown.
const ROWS: usize = 1000;

pub(super) fn evidence(answer: &mut Answer, model: &Model, evidence: &[(VariableId, usize)]) {
    let mut object = String::from("{");
    let pairs = evidence.iter().map(|(id, state)| (model.variable(*id), *state));
    for (at, (variable, state)) in pairs.enumerate() {
        object.push_str(if at == 0 { "" } else { ", " });
        json::string(&mut object, &variable.name);
        object.push_str(": ");
        json::string(&mut object, variable.states.get(state).map_or("", String::as_str));
    }
    object.push('}');
    answer.fields.push(("evidence", object));
}

pub(super) fn log_evidence(answer: &mut Answer, log: f64) {
    let mut value = String::new();
    json::real(&mut value, log);
    answer.text.push_str(&format!("log evidence {value}\n"));
    answer.fields.push(("log_evidence", value));
}

pub(super) fn believed(answer: &mut Answer, model: &Model, found: &Believed) {
    log_evidence(answer, found.log_evidence);
    let (rounds, at_rest) = (found.rounds, found.at_rest);
    let mut beside = format!("{{\"rounds\": {rounds}, \"at_rest\": {at_rest}, \"change\": ");
    // Of no round there is no change.
    match rounds {
        0 => beside.push_str("null"),
        _ => json::real(&mut beside, found.change),
    }
    beside.push('}');
    answer.fields.push(("loopy", beside));
    let change = if rounds == 0 { String::new() } else { format!(", the last change {:.1e}", found.change) };
    let rest = if at_rest { "at rest" } else { "NOT AT REST" };
    let _ = writeln!(answer.text, "  by Bethe; {rest} after {rounds} rounds{change}");
    marginals(answer, model, &found.of);
}

pub(super) fn marginals(answer: &mut Answer, model: &Model, found: &[Vec<f64>]) {
    let mut list = String::new();
    json::list(&mut list, model.variables().iter().zip(found), |out, (variable, of)| {
        states(out, variable);
        out.push_str(", \"probabilities\": ");
        json::list(out, of, |out, value| json::real(out, *value));
        out.push('}');
    });
    answer.fields.push(("marginals", list));
    for (variable, of) in model.variables().iter().zip(found) {
        line(&mut answer.text, variable, of, |value| figure(*value));
    }
}

/// The beginning of an object about a variable.
fn states(out: &mut String, variable: &Variable) {
    out.push_str("{\"variable\": ");
    json::string(out, &variable.name);
    out.push_str(", \"states\": ");
    json::list(out, &variable.states, |out, state| json::string(out, state));
}

/// What is known of each state of a variable.
fn line<V>(text: &mut String, variable: &Variable, of: &[V], shown: impl Fn(&V) -> String) {
    let states = variable.states.iter().zip(of);
    let states: Vec<String> = states.map(|(state, value)| format!("{state} {}", shown(value))).collect();
    // Writing to a text cannot fail.
    let _ = writeln!(text, "{}: {}", variable.name, states.join(", "));
}

/// A standard error, null where it is not known.
fn error(out: &mut String, value: f64) {
    match value.is_nan() {
        true => out.push_str("null"),
        false => json::real(out, value),
    }
}

pub(super) fn sampled(answer: &mut Answer, model: &Model, found: &Sampled, sampling: &Sampling) {
    let (mut list, mut beside) = (String::new(), String::new());
    log_evidence(answer, found.log_evidence);
    json::list(&mut list, model.variables().iter().zip(&found.of), |out, (variable, of)| {
        states(out, variable);
        out.push_str(", \"probabilities\": ");
        json::list(out, of, |out, own| json::real(out, own.probability));
        out.push_str(", \"standard_errors\": ");
        json::list(out, of, |out, own| error(out, own.standard_error));
        out.push('}');
    });
    let Sampling { samples, seed, .. } = sampling;
    let _ = write!(beside, "{{\"n\": {samples}, \"seed\": {seed}, \"effective\": ");
    json::real(&mut beside, found.effective);
    beside.push_str(", \"log_evidence_standard_error\": ");
    error(&mut beside, found.log_evidence_error);
    beside.push('}');
    answer.fields.extend([("marginals", list), ("sample", beside)]);
    let known = |error: f64| if error.is_nan() { "unknown".to_owned() } else { figure(error) };
    let error = known(found.log_evidence_error);
    let _ = writeln!(answer.text, "  ± {error}, {samples} samples worth {:.0}", found.effective);
    for (variable, of) in model.variables().iter().zip(&found.of) {
        let shown = |own: &Estimate| format!("{} ± {}", figure(own.probability), known(own.standard_error));
        line(&mut answer.text, variable, of, shown);
    }
}

pub(super) fn joints(answer: &mut Answer, model: &Model, joints: &[Joint]) {
    let mut list = String::new();
    json::list(&mut list, joints, |out, joint| {
        let variables = || joint.of.iter().map(|id| model.variable(*id));
        out.push_str("{\"variables\": ");
        json::list(out, variables(), |out, variable| json::string(out, &variable.name));
        out.push_str(", \"states\": ");
        json::list(out, variables(), |out, variable| {
            json::list(out, &variable.states, |out, state| json::string(out, state));
        });
        out.push_str(", \"probabilities\": ");
        let sizes: Vec<usize> = variables().map(|variable| variable.states.len()).collect();
        nested(out, &sizes, &joint.probabilities);
        out.push('}');
    });
    answer.fields.push(("joint", list));
    for joint in joints {
        answer.text.push_str(&rows(model, joint));
    }
}

/// Numbers nested by the states of the variables.
fn nested(out: &mut String, sizes: &[usize], values: &[f64]) {
    match sizes.split_first() {
        None => values.iter().for_each(|value| json::real(out, *value)),
        Some((size, rest)) => {
            let row = (values.len() / size.max(&1)).max(1);
            json::list(out, values.chunks(row), |out, values| nested(out, rest, values));
        }
    }
}

/// A line for each of the states together.
fn rows(model: &Model, joint: &Joint) -> String {
    let mut text = String::new();
    for (cell, value) in joint.probabilities.iter().enumerate().take(ROWS) {
        let (mut rest, mut states) = (cell, Vec::new());
        for id in joint.of.iter().rev() {
            let variable = model.variable(*id);
            let at = rest % variable.states.len().max(1);
            rest /= variable.states.len().max(1);
            states.push(format!(
                "{} = {}",
                variable.name,
                variable.states.get(at).map_or("", String::as_str)
            ));
        }
        states.reverse();
        // Writing to a text cannot fail.
        let _ = writeln!(text, "{}: {}", states.join(", "), figure(*value));
    }
    if let Some(more) = joint.probabilities.len().checked_sub(ROWS).filter(|more| *more > 0) {
        let _ = writeln!(text, "… {more} more, which --json has");
    }
    text
}

pub(super) fn most_probable(answer: &mut Answer, model: &Model, states: &[usize], log: f64) {
    let state = |at: usize| states.get(at).and_then(|state| model.variables().get(at)?.states.get(*state));
    let named = || model.variables().iter().enumerate().filter_map(|(at, own)| Some((own, state(at)?)));
    let mut object = String::from("{\"log\": ");
    json::real(&mut object, log);
    answer.text.push_str(&format!("most probable, log {}\n", object.trim_start_matches("{\"log\": ")));
    object.push_str(", \"states\": {");
    for (at, (variable, state)) in named().enumerate() {
        object.push_str(if at == 0 { "" } else { ", " });
        json::string(&mut object, &variable.name);
        object.push_str(": ");
        json::string(&mut object, state);
        answer.text.push_str(&format!("{} = {state}\n", variable.name));
    }
    object.push_str("}}");
    answer.fields.push(("most_probable", object));
}

/// A probability with six digits behind the point, or with its exponent where these would be zeros.
pub(super) fn figure(value: f64) -> String {
    if value != 0.0 && value.abs() < 1e-4 {
        return format!("{value:.3e}");
    }
    let fixed = format!("{value:.6}");
    fixed.trim_end_matches('0').trim_end_matches('.').to_owned()
}
