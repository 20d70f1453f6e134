//! Functions: that they exist, and take what they are given.

use super::words::{advice, nearest};
use crate::ast::{Expr, ExprKind, Name, Start, Value};
use crate::error::{Code, Refusal};
use crate::function::{BUILT_IN, OTHERS, UserFunctions};

/// A call in a value.
pub(super) fn check(call: &Expr, functions: &UserFunctions, reports: &mut Vec<Refusal>) {
    let ExprKind::Call { name, axes, arguments, .. } = &call.kind else { return };
    let shape = Shape { axes: axes.is_some(), arguments: arguments.len() };
    let forms = forms(&name.text, functions);
    if forms.is_empty() {
        reports.push(unknown(name, functions));
    } else if !forms.iter().any(|form| form.takes(shape)) {
        let takes: Vec<String> = forms.iter().map(Form::describe).collect();
        let given = match (shape.arguments, shape.axes) {
            (count, false) => counted(count),
            (count, true) => format!("{} along an axis", counted(count)),
        };
        let message = format!("`{}` takes {}, not {given}", name.text, takes.join(", or "));
        reports.push(Refusal::new(Code::FunctionArity, name.span, message));
    }
}

/// What a call gives.
#[derive(Debug, Clone, Copy)]
struct Shape {
    axes: bool,
    arguments: usize,
}

/// Whether a function acts along axes that are named in brackets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Axes {
    None,
    Optional,
    Needed,
}

/// One way to call a function.
struct Form {
    axes: Axes,
    least: usize,
    most: usize,
}

impl Form {
    fn takes(&self, shape: Shape) -> bool {
        let axes = match self.axes {
            Axes::None => !shape.axes,
            Axes::Optional => true,
            Axes::Needed => shape.axes,
        };
        axes && (self.least..=self.most).contains(&shape.arguments)
    }

    fn describe(&self) -> String {
        let count = match (self.least, self.most) {
            (least, usize::MAX) => format!("at least {}", counted(least)),
            (least, most) if least == most => counted(most),
            (least, most) => format!("{least} or {}", counted(most)),
        };
        if self.axes == Axes::Needed { format!("{count} along an axis, as in `[j](…)`") } else { count }
    }
}

fn counted(count: usize) -> String {
    if count == 1 { "1 argument".to_owned() } else { format!("{count} arguments") }
}

/// The ways to call a function; none for a name that is no function.
fn forms(name: &str, functions: &UserFunctions) -> Vec<Form> {
    let form = |axes, least, most| Form { axes, least, most };
    let mut forms = Vec::new();
    if let Some(user) = functions.registered().iter().find(|function| function.name == name) {
        forms.push(form(Axes::None, user.arity, user.arity));
    } else if let Some((_, _, least, most)) = BUILT_IN.iter().find(|(known, ..)| *known == name) {
        forms.push(form(Axes::None, *least, *most));
    }
    match name {
        "softmax" => forms.push(form(Axes::Optional, 1, 1)),
        "lnorm" => forms.push(form(Axes::Optional, 1, 2)),
        "concat" => forms.push(form(Axes::None, 1, usize::MAX)),
        _ if OTHERS.contains(&name) => forms.push(form(Axes::Needed, 1, 1)),
        _ => {}
    }
    forms
}

fn unknown(name: &Name, functions: &UserFunctions) -> Refusal {
    let built_in = BUILT_IN.iter().map(|(known, ..)| *known);
    let registered = functions.registered().iter().map(|function| function.name.as_str());
    let known: Vec<&str> = built_in.chain(OTHERS.iter().copied()).chain(registered).collect();
    let message = format!("there is no function `{}`", name.text);
    let report = Refusal::new(Code::UnknownFunction, name.span, message);
    match nearest(&name.text, known) {
        Some(near) => report.help(format!("`{near}` is nearest")),
        None => {
            report.help("a small name before `(` is a function; to multiply an index by a group, write `*`")
        }
    }
}

/// The distributions and constants behind `~`, and how many numbers they take.
const STARTS: &[(&str, usize)] =
    &[("normal", 2), ("uniform", 2), ("glorot", 0), ("he", 0), ("zeros", 0), ("ones", 0)];

/// The start value of a parameter.
pub(super) fn start(start: &Start, reports: &mut Vec<Refusal>) {
    let Start::Call { name, arguments, .. } = start else { return };
    let Some((_, count)) = STARTS.iter().find(|(known, _)| *known == name.text) else {
        let message = format!("parameters do not start with `{}`", name.text);
        let known: Vec<&str> = STARTS.iter().map(|(known, _)| *known).collect();
        reports
            .push(Refusal::new(Code::UnknownFunction, name.span, message).help(advice(&name.text, &known)));
        return;
    };
    if arguments.len() != *count {
        let message = format!("`{}` takes {}, not {}", name.text, counted(*count), arguments.len());
        reports.push(Refusal::new(Code::FunctionArity, name.span, message));
    }
    for argument in arguments {
        let span = match argument {
            Value::Number(_) => continue,
            Value::Name(name) => name.span,
            Value::Text(text) => text.span,
        };
        let message = format!("`{}` takes numbers", name.text);
        reports.push(Refusal::new(Code::BadArgument, span, message));
    }
}
