//! Answers and reports as JSON (section 8), byte for byte the same on every run.
//!
//! Enter at [`answer`] and [`report`]. Everything is written straight into one text: large
//! tensors make no tree, and deep proofs no recursion.

use super::{Answer, Content, Validated};
use crate::error::{Places, Refusal};
use crate::json::write_to;
pub use crate::json::{line, list, real, string};
use crate::program::Kind;
use crate::proof::Proof;
use crate::value::{Const, Domain, Symbols, Tuple};

/// A number of a type: counts and truth values are integers.
pub fn number(out: &mut String, kind: Kind, value: f64) {
    let whole = matches!(kind, Kind::Count | Kind::Bool) && value.fract() == 0.0 && value.abs() < 9.3e18;
    if whole { write_to(out, format_args!("{}", value as i128)) } else { real(out, value) }
}

/// A number of an answer.
pub(super) fn figure(out: &mut String, figures: Figures<'_>, at: usize) {
    match (figures.counts.map(|counts| counts.get(at)), figures.values.get(at)) {
        (Some(Some(count)), _) => write_to(out, format_args!("{count}")),
        (_, Some(value)) => number(out, figures.kind, *value),
        _ => out.push_str("null"),
    }
}

/// The numbers of an answer and how they are written.
#[derive(Debug, Clone, Copy)]
pub struct Figures<'a> {
    /// The type.
    pub kind: Kind,
    /// The numbers.
    pub values: &'a [f64],
    /// The same as integers, where these have digits that the numbers have not.
    pub counts: Option<&'a [i64]>,
}

fn constant(out: &mut String, symbols: &Symbols, value: Const) {
    match value {
        Const::Int(value) => write_to(out, format_args!("{value}")),
        Const::Symbol(id) => string(out, symbols.name(id)),
    }
}

/// A domain: `{"from": 0, "to": 2}` or `{"symbols": […]}`.
pub fn domain(out: &mut String, symbols: &Symbols, domain: &Domain) {
    match domain {
        Domain::Interval { from, to } => write_to(out, format_args!("{{\"from\": {from}, \"to\": {to}}}")),
        Domain::Listed(_) => {
            out.push_str("{\"symbols\": ");
            list(out, domain.values(), |out, value| constant(out, symbols, value));
            out.push('}');
        }
    }
}

/// The numbers of a tensor, nested in the order of its domains.
pub fn nested(out: &mut String, domains: &[Domain], figures: Figures<'_>) {
    deeper(out, domains, figures, 0, figures.values.len());
}

/// The numbers from one position on, so many.
fn deeper(out: &mut String, domains: &[Domain], figures: Figures<'_>, from: usize, count: usize) {
    match domains.split_first() {
        None => figure(out, figures, from),
        Some((_, [])) => list(out, from..from + count, |out, at| figure(out, figures, at)),
        Some((first, rest)) => {
            let row = count / first.len().max(1);
            list(out, 0..first.len(), |out, at| deeper(out, rest, figures, from + at * row, row));
        }
    }
}

/// The tuples of a relation.
pub fn tuples(out: &mut String, symbols: &Symbols, tuples: &[Tuple]) {
    list(out, tuples, |out, tuple| list(out, tuple, |out, value| constant(out, symbols, *value)));
}

/// The answer of a query as one object.
pub fn answer(out: &mut String, symbols: &Symbols, answer: &Answer) {
    out.push_str("{\"text\": ");
    string(out, &answer.text);
    let kind = match &answer.content {
        Content::Scalar(_) => "scalar",
        Content::Tensor { .. } => "tensor",
        Content::Relation { .. } => "relation",
    };
    let of_type = answer.kind.name();
    write_to(out, format_args!(", \"line\": {}, \"kind\": \"{kind}\", \"type\": \"{of_type}\"", answer.line));
    content(out, symbols, answer);
    if let Some(minimize) = &answer.minimize {
        write_to(out, format_args!(", \"minimize\": {{\"steps\": {}, \"first\": ", minimize.steps));
        real(out, minimize.first);
        out.push_str(", \"last\": ");
        real(out, minimize.last);
        out.push_str(", \"parameters\": ");
        list(out, &minimize.parameters, |out, name| string(out, name));
        if let Some((from, to)) = minimize.lifted.constants {
            write_to(out, format_args!(", \"lifted\": {{\"from\": {from}, \"to\": {to}}}"));
        }
        if let Some((from, to)) = minimize.lifted.tuples {
            write_to(out, format_args!(", \"merged\": {{\"from\": {from}, \"to\": {to}}}"));
        }
        if let Some(Validated { first, best, epoch, epochs }) = minimize.valid {
            out.push_str(", \"valid\": {\"first\": ");
            real(out, first);
            out.push_str(", \"best\": ");
            real(out, best);
            write_to(out, format_args!(", \"epoch\": {epoch}, \"epochs\": {epochs}}}"));
        }
        out.push('}');
    }
    if let Some(sample) = &answer.sample {
        let (n, seed) = (sample.n, sample.seed);
        write_to(out, format_args!(", \"sample\": {{\"n\": {n}, \"seed\": {seed}, \"standard_error\": "));
        let figures = |values| Figures { kind: Kind::Real, values, counts: None };
        match (&sample.standard_errors, &answer.content) {
            (None, _) => out.push_str("null"),
            (Some(errors), Content::Tensor { domains, .. }) => nested(out, domains, figures(errors)),
            (Some(errors), _) => figure(out, figures(errors), 0),
        }
        out.push('}');
    }
    if let Some(embed) = &answer.embed {
        write_to(out, format_args!(", \"embed\": {{\"dimension\": {}", embed.dimension));
        let numbers = [("theta", embed.theta), ("coherence", embed.coherence), ("bound", embed.bound)];
        for (key, value) in numbers {
            write_to(out, format_args!(", \"{key}\": "));
            real(out, value);
        }
        write_to(out, format_args!(", \"certified\": {}, \"temperature\": ", embed.certified));
        real(out, embed.temperature);
        if let Some(seed) = embed.seed {
            write_to(out, format_args!(", \"seed\": {seed}"));
        }
        out.push('}');
    }
    if let Some(explain) = &answer.explain {
        out.push_str(", \"explain\": {\"derived\": {");
        for (at, (name, count)) in explain.derived.iter().enumerate() {
            out.push_str(if at > 0 { ", " } else { "" });
            string(out, name);
            write_to(out, format_args!(": {count}"));
        }
        out.push_str("}, \"proof\": ");
        match &explain.proof {
            Some(found) => proof(out, found),
            None => out.push_str("null"),
        }
        if let Some(found) = &explain.proofs {
            out.push_str(", \"proofs\": ");
            list(out, &found.proofs, |out, (probability, each)| {
                out.push_str("{\"probability\": ");
                real(out, *probability);
                out.push_str(", \"proof\": ");
                proof(out, each);
                out.push('}');
            });
            write_to(out, format_args!(", \"exact\": {}", found.exact));
        }
        out.push('}');
    }
    out.push('}');
}

fn content(out: &mut String, symbols: &Symbols, answer: &Answer) {
    let figures = answer.figures();
    let labels = |out: &mut String, indices: &[String]| {
        out.push_str(", \"indices\": ");
        list(out, indices, |out, index| string(out, index));
    };
    match &answer.content {
        Content::Scalar(value) => {
            out.push_str(", \"value\": ");
            match (value, answer.kind) {
                (None, _) => out.push_str("null"),
                (Some(value), Kind::Bool) => out.push_str(if *value != 0.0 { "true" } else { "false" }),
                (Some(_), _) => figure(out, figures, 0),
            }
        }
        Content::Tensor { indices, domains, .. } => {
            labels(out, indices);
            out.push_str(", \"domains\": ");
            list(out, domains, |out, each| domain(out, symbols, each));
            out.push_str(", \"values\": ");
            nested(out, domains, figures);
        }
        Content::Relation { indices, tuples: found, values } => {
            labels(out, indices);
            out.push_str(", \"tuples\": ");
            tuples(out, symbols, found);
            if let Some(values) = values {
                out.push_str(", \"values\": ");
                list(out, 0..values.len(), |out, at| figure(out, figures, at));
            }
        }
    }
}

/// A proof, without recursion: a chain of a hundred thousand steps is as deep as it is long.
fn proof(out: &mut String, proof: &Proof) {
    enum Work {
        Open(usize),
        Text(&'static str),
    }
    let mut work = vec![Work::Open(proof.root())];
    while let Some(next) = work.pop() {
        let at = match next {
            Work::Text(text) => {
                out.push_str(text);
                continue;
            }
            Work::Open(at) => at,
        };
        let Some(step) = proof.step(at) else { continue };
        out.push_str("{\"atom\": ");
        string(out, &step.atom);
        write_to(out, format_args!(", \"kind\": \"{}\", ", step.kind.name()));
        line(out, Some((step.file.as_deref(), step.line)));
        if let Some(weight) = proof.weight(at) {
            out.push_str(", \"probability\": ");
            real(out, weight);
        }
        out.push_str(", \"from\": [");
        work.push(Work::Text("]}"));
        for (position, child) in step.from.iter().enumerate().rev() {
            work.push(Work::Open(*child));
            if position > 0 {
                work.push(Work::Text(", "));
            }
        }
    }
}

/// A refusal or a warning as one object.
pub fn report(out: &mut String, places: &Places<'_>, report: &Refusal) {
    out.push_str("{\"code\": ");
    string(out, report.code.name());
    out.push_str(", \"message\": ");
    string(out, &report.message);
    out.push_str(", ");
    span(out, places, report.span);
    out.push_str(", \"labels\": ");
    list(out, &report.labels, |out, label| {
        out.push('{');
        span(out, places, label.span);
        out.push_str(", \"text\": ");
        string(out, &label.text);
        out.push('}');
    });
    out.push_str(", \"help\": ");
    match &report.help {
        Some(help) => string(out, help),
        None => out.push_str("null"),
    }
    out.push('}');
}

fn span(out: &mut String, places: &Places<'_>, span: crate::ast::Span) {
    let (line, column) = places.of(span.start);
    let (end_line, end_column) = places.of(span.end);
    write_to(
        out,
        format_args!(
            "\"line\": {line}, \"column\": {column}, \"end_line\": {end_line}, \"end_column\": {end_column}"
        ),
    );
    if let Some(file) = places.file(span.start) {
        out.push_str(", \"file\": ");
        string(out, file);
    }
}
