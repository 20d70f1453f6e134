//! `bad-axis`: the index that softmax, lnorm or an explicit scope runs along does not occur in
//! its argument.

use crate::ast::{Expr, ExprKind, Name, Reference, Statement, StatementKind};
use crate::error::{Code, Refusal};
use crate::names::known::Names;
use crate::names::{scopes, walk};

/// Checks the calls of a statement.
pub(super) fn check<'a>(statement: &'a Statement, names: &'a Names, reports: &mut Vec<Refusal>) {
    let left = match &statement.kind {
        StatementKind::Rule { head, .. } | StatementKind::Equation { head, .. } => Some(head),
        _ => None,
    };
    walk::reads(statement, &mut Axes { left, names, reports });
}

struct Axes<'r, 'a> {
    left: Option<&'a Reference>,
    names: &'a Names,
    reports: &'r mut Vec<Refusal>,
}

impl<'a> walk::Visitor<'a> for Axes<'_, 'a> {
    fn reference(&mut self, _: &'a Reference) {}

    fn call(&mut self, call: &'a Expr) {
        let ExprKind::Call { name, axes, .. } = &call.kind else { return };
        let axes = axes.as_deref().unwrap_or(&[]);
        let runs_along_left = is_axis_function(&name.text) && axes.is_empty();
        if runs_along_left {
            let along = self.left.map(left_axes).unwrap_or_default();
            if along.is_empty() {
                let message = format!("`{}` has no axis: the left side has no index", name.text);
                let report = Refusal::new(Code::BadAxis, name.span, message);
                self.reports.push(report.help(format!("name the axis: `{}[i](…)`", name.text)));
            }
            along.iter().for_each(|axis| self.occurs(axis, name, call));
        } else if is_axis_function(&name.text) || scopes::EXPLICIT.contains(&name.text.as_str()) {
            axes.iter().for_each(|axis| self.occurs(&axis.text, name, call));
        }
    }
}

impl<'a> Axes<'_, 'a> {
    fn occurs(&mut self, axis: &str, function: &Name, call: &'a Expr) {
        if scopes::argument_indices(call, self.names).contains(&axis) {
            return;
        }
        let message = format!("the axis `{axis}` of `{}` does not occur in its argument", function.text);
        let report = Refusal::new(Code::BadAxis, function.span, message);
        self.reports.push(report.help("name an index of the argument"));
    }
}

/// softmax and lnorm.
pub(super) fn is_axis_function(name: &str) -> bool {
    matches!(name, "softmax" | "lnorm")
}

/// The indices of the left side that an axis function without a named axis runs along: the
/// dotted ones, else the last (N9).
pub(super) fn left_axes(head: &Reference) -> Vec<&str> {
    let indices = |dotted: bool| {
        let places = head.places.iter().filter(move |place| place.dot || !dotted);
        places.flat_map(walk::place_indices).map(|(name, _)| name)
    };
    let mut dotted: Vec<&str> = indices(true).collect();
    if dotted.is_empty() {
        dotted.extend(indices(false).last());
    }
    dotted
}
