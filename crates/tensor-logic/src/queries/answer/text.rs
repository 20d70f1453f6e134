//! Answers for people. The layout is free; large tensors are shortened.

use std::fmt::Write;

use super::json::Figures;
use super::{Answer, Content, Validated};
use crate::program::Kind;
use crate::proof::Proof;
use crate::value::{Domain, Symbols};

/// Rows, tuples or entries that are shown before the rest is only counted.
const SHOWN: usize = 20;

/// What is said of a tuple that nothing leads to.
const UNDERIVABLE: &str = "underivable";

/// An answer as lines of text, without a line end behind the last.
pub fn answer(symbols: &Symbols, answer: &Answer) -> String {
    let mut out = answer.text.clone();
    let figures = answer.figures();
    match &answer.content {
        Content::Scalar(value) => {
            let shown = match (value, answer.kind) {
                (None, _) => UNDERIVABLE.to_owned(),
                (Some(value), Kind::Bool) => (*value != 0.0).to_string(),
                (Some(_), _) => figure(figures, 0),
            };
            add(&mut out, format_args!("\n  {shown}"));
        }
        Content::Tensor { domains, .. } => {
            out.push_str("\n  ");
            nested(&mut out, symbols, domains, figures, (0, figures.values.len()), 1);
        }
        Content::Relation { indices, tuples, values } => {
            for (at, tuple) in tuples.iter().enumerate().take(SHOWN) {
                let named = indices.iter().zip(tuple);
                let shown: Vec<String> =
                    named.map(|(index, value)| format!("{index} = {}", symbols.show(*value))).collect();
                add(&mut out, format_args!("\n  {}", shown.join(", ")));
                if values.is_some() {
                    add(&mut out, format_args!(": {}", figure(figures, at)));
                }
            }
            if tuples.is_empty() {
                out.push_str("\n  none");
            } else if tuples.len() > SHOWN {
                add(&mut out, format_args!("\n  … {} in all", tuples.len()));
            }
        }
    }
    if let Some(minimize) = &answer.minimize {
        let (steps, first, last) = (minimize.steps, minimize.first, minimize.last);
        add(&mut out, format_args!("\n  {steps} steps: {first} -> {last}"));
        for (what, from, to) in minimize.lifted.all() {
            add(&mut out, format_args!(" ({to} of {from} {what} are different)"));
        }
        if let Some(Validated { first, best, epoch, epochs }) = minimize.valid {
            add(&mut out, format_args!("\n  held out: {first} -> {best} after epoch {epoch} of {epochs}"));
        }
    }
    if let Some(sample) = &answer.sample {
        out.push_str("\n  standard error ");
        let figures = |values| Figures { kind: Kind::Real, values, counts: None };
        match (&sample.standard_errors, &answer.content) {
            (None, _) => out.push_str("unknown"),
            (Some(errors), Content::Tensor { domains, .. }) => {
                nested(&mut out, symbols, domains, figures(errors), (0, errors.len()), 0);
            }
            (Some(errors), _) => out.push_str(&figure(figures(errors), 0)),
        }
        add(&mut out, format_args!(" of {} draw{}", sample.n, if sample.n == 1 { "" } else { "s" }));
    }
    if let Some(embed) = &answer.embed {
        let certified = if embed.certified { "certified" } else { "not certified" };
        let (dimension, coherence, bound) = (embed.dimension, embed.coherence, embed.bound);
        add(
            &mut out,
            format_args!("\n  {certified}: D {dimension}, coherence {coherence:.4}, bound {bound:.4}"),
        );
    }
    if let Some(explain) = &answer.explain {
        for (name, count) in &explain.derived {
            add(&mut out, format_args!("\n  derived {name}: {count}"));
        }
        match (&explain.proof, &answer.content) {
            (Some(found), _) if explain.proofs.as_ref().is_none_or(|found| found.proofs.is_empty()) => {
                proof(&mut out, found)
            }
            (None, Content::Scalar(Some(0.0))) if answer.kind == Kind::Bool => {
                add(&mut out, format_args!("\n  {UNDERIVABLE}"));
            }
            _ => {}
        }
        if let Some(found) = &explain.proofs {
            for (probability, each) in &found.proofs {
                add(&mut out, format_args!("\n  with probability {}", number(*probability)));
                proof(&mut out, each);
            }
            if !found.exact {
                out.push_str("\n  there may be others that are as probable");
            }
        }
    }
    out
}

fn add(out: &mut String, arguments: std::fmt::Arguments<'_>) {
    // Writing to a text cannot fail.
    let _ = out.write_fmt(arguments);
}

fn figure(figures: Figures<'_>, at: usize) -> String {
    let mut out = String::new();
    super::json::figure(&mut out, figures, at);
    out.trim_matches('"').to_owned()
}

/// A probability.
fn number(value: f64) -> String {
    figure(Figures { kind: Kind::Real, values: &[value], counts: None }, 0)
}

fn nested(
    out: &mut String,
    symbols: &Symbols,
    domains: &[Domain],
    figures: Figures<'_>,
    (from, count): (usize, usize),
    depth: usize,
) {
    let Some((first, rest)) = domains.split_first() else {
        out.push_str(&figure(figures, from));
        return;
    };
    let row = count / first.len().max(1);
    out.push('[');
    for at in 0..first.len() {
        if at > 0 && rest.is_empty() {
            out.push_str(", ");
        } else if at > 0 {
            add(out, format_args!(",\n{}", " ".repeat(depth + 2)));
        }
        if at == SHOWN {
            add(out, format_args!("… {} in all", first.len()));
            break;
        }
        if rest.is_empty() && matches!(first, Domain::Listed(_)) {
            let name = first.value(at).map_or_else(String::new, |value| symbols.show(value));
            add(out, format_args!("{name} "));
        }
        nested(out, symbols, rest, figures, (from + at * row, row), depth + 1);
    }
    out.push(']');
}

fn proof(out: &mut String, proof: &Proof) {
    let mut open = vec![(proof.root(), 0usize)];
    while let Some((at, depth)) = open.pop() {
        let Some(step) = proof.step(at) else { continue };
        let indent = " ".repeat(2 * depth.min(40));
        let weight = proof.weight(at).map_or_else(String::new, |weight| format!("{} :: ", number(weight)));
        let (atom, kind, place) = (&step.atom, step.kind.name(), step.place());
        add(out, format_args!("\n  {indent}{weight}{atom}  ({kind}, {place})"));
        open.extend(step.from.iter().rev().map(|child| (*child, depth + 1)));
    }
}
