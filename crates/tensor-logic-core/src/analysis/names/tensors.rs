//! What the occurrences of one name say together, and where they contradict each other: `arity`,
//! `mixed-style`, `mixed-aggregators`, `type-conflict`.

use std::collections::{BTreeMap, HashMap};

use crate::ast::{Brackets, PlaceKind, Sign, Span, TypeExpr};
use crate::error::{Code, Refusal};
use crate::names::known::{TensorName, is_built_in};
use crate::names::occurrence::{Definition, Form, Mark, Occurrence, Role};
use crate::names::walk;
use crate::program::{Combine, Kind, Style};

/// Joins the occurrences of every name and reports contradictions.
pub(super) fn join(
    occurrences: &[Occurrence<'_>],
    reports: &mut Vec<Refusal>,
) -> BTreeMap<String, TensorName> {
    let mut tensors = BTreeMap::new();
    let mut by_name: Vec<(&str, Vec<&Occurrence<'_>>)> = Vec::new();
    let mut at = HashMap::new();
    for occurrence in occurrences {
        let slot = *at.entry(occurrence.name).or_insert(by_name.len());
        match by_name.get_mut(slot) {
            Some((_, list)) => list.push(occurrence),
            None => by_name.push((occurrence.name, vec![occurrence])),
        }
    }
    for (name, mut list) in by_name {
        let defined = list.iter().any(|occurrence| matches!(occurrence.role, Role::Defines(_)));
        if !defined && is_built_in(name) {
            list.retain(|occurrence| !built_in(occurrence, reports));
        }
        if let Some(tensor) = tensor(name, &list, reports) {
            tensors.insert(name.to_owned(), tensor);
        }
    }
    tensors
}

/// Whether a use of `Even` or `Odd` is one of the built-in relation, which has one place.
fn built_in(occurrence: &Occurrence<'_>, reports: &mut Vec<Refusal>) -> bool {
    match occurrence.rank {
        Some(1) => true,
        Some(rank) if occurrence.brackets != Brackets::None => {
            let message =
                format!("`{}` is a built-in relation of rank 1 and has rank {rank} here", occurrence.name);
            reports.push(Refusal::new(Code::Arity, occurrence.span, message));
            true
        }
        _ => false,
    }
}

fn tensor(name: &str, list: &[&Occurrence<'_>], reports: &mut Vec<Refusal>) -> Option<TensorName> {
    let mut list = list.to_vec();
    without_places(name, &mut list, reports);
    let list = list.as_slice();
    let first = list.first()?;
    let definitions: Vec<(Span, &Definition<'_>)> = list
        .iter()
        .filter_map(|occurrence| match &occurrence.role {
            Role::Defines(definition) => Some((occurrence.span, definition)),
            Role::Read => None,
        })
        .collect();
    let rank = rank(name, list, reports);
    let style = style(name, list, &definitions, reports);
    let typed = declared_type(name, &definitions, reports);
    reports.extend(typed.filter(|_| style == Style::Square).and_then(|typed| of_relations(name, typed)));
    reports.extend(typed.filter(|typed| typed.name.text == "count").and_then(|typed| {
        definitions.iter().find(|(_, definition)| definition.form == Form::Parameter)?;
        let message = format!("`{name}` is learned, and what is learned is `real`");
        Some(Refusal::new(Code::TypeConflict, typed.name.span, message))
    }));
    let sign = sign(name, style, &definitions, reports);
    let kind = kind(style, typed, &definitions);
    let form = |wanted: &dyn Fn(Form) -> bool| definitions.iter().find(|(_, d)| wanted(d.form));
    Some(TensorName {
        rank: rank.unwrap_or(0),
        rank_known: rank.is_some(),
        style,
        kind,
        typed: typed.cloned(),
        weighted: form(&|form| form == Form::Weighted).map(|(span, _)| *span),
        combine: combine(style, kind, sign.map(|(mark, _)| mark)),
        sign: sign.map(|(mark, span)| (if let Mark::Sign(sign) = mark { sign } else { Sign::Equal }, span)),
        first: first.span,
        given: form(&|form| matches!(form, Form::Fact | Form::Weighted | Form::Data { .. })).is_some(),
        computed: form(&|form| matches!(form, Form::Equation | Form::Rule | Form::Redefinition)).is_some(),
        declared: form(&|form| form == Form::Declaration).is_some(),
        parameter: form(&|form| form == Form::Parameter).map(|(_, definition)| definition.statement),
        stars: stars(&definitions),
    })
}

/// Reports and takes out declarations such as `E : prob` of what is a relation everywhere else: that all others contradict them
/// would say the same once more for every fact.
fn without_places(name: &str, list: &mut Vec<&Occurrence<'_>>, reports: &mut Vec<Refusal>) {
    let Some(rank) = list.iter().find(|o| o.brackets == Brackets::Round).and_then(|o| o.rank) else { return };
    list.retain(|occurrence| {
        let Role::Defines(definition) = &occurrence.role else { return true };
        let typed = definition.typed.filter(|typed| {
            definition.form == Form::Declaration
                && occurrence.brackets == Brackets::None
                && !is_of_square(typed)
        });
        let Some(typed) = typed else { return true };
        let places: Vec<String> = match rank {
            0..=3 => ["x", "y", "z"].iter().take(rank).map(|place| (*place).to_owned()).collect(),
            _ => (1..=rank).map(|place| format!("x{place}")).collect(),
        };
        let typed_as = show_type(typed);
        let message = format!("`{typed_as}` is a type of relations, and `{name}` has no places here");
        let report = Refusal::new(Code::TypeConflict, occurrence.span, message);
        reports.push(report.help(format!("write `{name}({}) : {typed_as}`", places.join(", "))));
        false
    });
}

/// The rank of the first occurrence that has one; later ones must agree.
fn rank(name: &str, list: &[&Occurrence<'_>], reports: &mut Vec<Refusal>) -> Option<usize> {
    let mut ranked = list.iter().filter_map(|occurrence| Some((occurrence.rank?, occurrence.span)));
    let (rank, first) = ranked.next()?;
    for (other, span) in ranked.filter(|(other, _)| *other != rank) {
        let message = format!("`{name}` has rank {other} here and rank {rank} at its first use");
        let report = Refusal::new(Code::Arity, span, message).label(first, format!("rank {rank}"));
        reports.push(report.help("one name has one rank: use two names"));
    }
    Some(rank)
}

fn style(
    name: &str,
    list: &[&Occurrence<'_>],
    definitions: &[(Span, &Definition<'_>)],
    reports: &mut Vec<Refusal>,
) -> Style {
    let Some((first, definition)) = definitions.first() else {
        let round = list.iter().any(|occurrence| occurrence.brackets == Brackets::Round);
        return if round { Style::Round } else { Style::Square };
    };
    let style = definition.style;
    for (span, _) in definitions.iter().filter(|(_, other)| other.style != style) {
        let (here, before) = match style {
            Style::Round => ("square", "round"),
            Style::Square => ("round", "square"),
        };
        let message = format!("`{name}` is defined as a {here} tensor here and as a {before} one before");
        let report = Refusal::new(Code::MixedStyle, *span, message).label(*first, format!("{before} here"));
        reports.push(
            report.help("define it in one style; the style of a read says how a missing element is read"),
        );
    }
    style
}

fn declared_type<'a>(
    name: &str,
    definitions: &[(Span, &Definition<'a>)],
    reports: &mut Vec<Refusal>,
) -> Option<&'a TypeExpr> {
    let mut types = definitions.iter().filter_map(|(_, definition)| definition.typed);
    let first = types.next()?;
    for other in types.filter(|other| other.name.text != first.name.text || other.argument != first.argument)
    {
        let (here, before) = (show_type(other), show_type(first));
        let message = format!("`{name}` has type `{here}` here and type `{before}` before");
        reports
            .push(Refusal::new(Code::TypeConflict, other.span, message).label(first.span, "the first type"));
    }
    Some(first)
}

/// A type that says how rules are evaluated, of a tensor that no rule makes.
fn of_relations(name: &str, typed: &TypeExpr) -> Option<Refusal> {
    if is_of_square(typed) {
        return None;
    }
    let message = format!("`{name}` is square, and `{}` is a type of relations", show_type(typed));
    let report = Refusal::new(Code::TypeConflict, typed.name.span, message);
    Some(
        report
            .help("a square tensor has the type `real` or `count`; a relation is written in round brackets"),
    )
}

fn is_of_square(typed: &TypeExpr) -> bool {
    matches!(typed.name.text.as_str(), "real" | "count")
}

fn show_type(kind: &TypeExpr) -> String {
    match kind.argument {
        Some(argument) => format!("{}({argument})", kind.name.text),
        None => kind.name.text.clone(),
    }
}

/// The first sign; later ones must join contributions in the same way.
fn sign(
    name: &str,
    style: Style,
    definitions: &[(Span, &Definition<'_>)],
    reports: &mut Vec<Refusal>,
) -> Option<(Mark, Span)> {
    let mut signs = definitions.iter().filter_map(|(_, definition)| definition.sign);
    let first = signs.next()?;
    for (mark, span) in signs.filter(|(mark, _)| same(*mark, style) != same(first.0, style)) {
        let (here, before) = (show_mark(mark), show_mark(first.0));
        let message = format!("`{name}` is defined with `{here}` here and with `{before}` before");
        let report = Refusal::new(Code::MixedAggregators, span, message);
        let report = report.label(first.1, format!("`{before}` here"));
        reports.push(report.help("one tensor has one aggregator: use the same sign, or two names"));
    }
    Some(first)
}

/// A representative of the signs that are one: `=` and `+=` on square tensors, `=` and `<-` on
/// relations (N4).
fn same(mark: Mark, style: Style) -> Mark {
    match (mark, style) {
        (Mark::Sign(Sign::Plus), Style::Square) | (Mark::Arrow, Style::Round) => Mark::Sign(Sign::Equal),
        _ => mark,
    }
}

fn show_mark(mark: Mark) -> &'static str {
    match mark {
        Mark::Arrow => "<-",
        Mark::Sign(sign) => crate::names::known::spelling(sign),
    }
}

/// The type: declared, or what N1 says.
fn kind(style: Style, typed: Option<&TypeExpr>, definitions: &[(Span, &Definition<'_>)]) -> Kind {
    let valued = |definition: &Definition<'_>| {
        let sign = definition.sign.map(|(mark, _)| mark);
        let aggregates =
            matches!(sign, Some(Mark::Sign(Sign::Plus | Sign::Max | Sign::Min | Sign::Avg | Sign::Times)));
        let gives = matches!(definition.form, Form::Weighted | Form::Parameter | Form::Data { valued: true });
        aggregates || gives
    };
    match typed.map(|kind| kind.name.text.as_str()) {
        Some("bool") => Kind::Bool,
        Some("count") => Kind::Count,
        Some("tropical") => Kind::Tropical,
        Some("maxtimes") => Kind::MaxTimes,
        Some("maxmin") => Kind::MaxMin,
        Some("addmult") => Kind::AddMult,
        Some("prob") => Kind::Prob,
        Some("topk") => {
            let proofs = typed.and_then(|kind| kind.argument).unwrap_or(1);
            Kind::TopK(u32::try_from(proofs).unwrap_or(u32::MAX))
        }
        Some(_) => Kind::Real,
        None if style == Style::Square => Kind::Real,
        None if is_weighted(definitions) => Kind::Prob,
        None if definitions.iter().any(|(_, definition)| valued(definition)) => Kind::Real,
        None => Kind::Bool,
    }
}

/// Whether facts with probabilities are among the definitions, and no other sign than that of rules.
fn is_weighted(definitions: &[(Span, &Definition<'_>)]) -> bool {
    let rules = |(_, definition): &(Span, &Definition<'_>)| {
        definition.sign.is_none_or(|(mark, _)| same(mark, Style::Round) == Mark::Sign(Sign::Equal))
    };
    let weighted = |(_, definition): &(Span, &Definition<'_>)| definition.form == Form::Weighted;
    definitions.iter().any(weighted) && definitions.iter().all(rules)
}

/// How contributions are joined: the sign says so, or for `=` and rules the type.
fn combine(style: Style, kind: Kind, sign: Option<Mark>) -> Combine {
    match sign {
        Some(Mark::Sign(Sign::Max)) => Combine::Max,
        Some(Mark::Sign(Sign::Min)) => Combine::Min,
        Some(Mark::Sign(Sign::Avg)) => Combine::Avg,
        Some(Mark::Sign(Sign::Times)) => Combine::Times,
        Some(Mark::Sign(Sign::Or)) => Combine::Or,
        Some(Mark::Sign(Sign::Plus)) => Combine::Sum,
        Some(Mark::Arrow) if style == Style::Square => Combine::Exists,
        Some(Mark::Arrow | Mark::Sign(Sign::Equal | Sign::Redefine)) | None => match (kind, style) {
            (Kind::Tropical, _) => Combine::Min,
            (Kind::MaxTimes | Kind::MaxMin, _) => Combine::Max,
            (Kind::Prob | Kind::TopK(_), Style::Round) => Combine::Proofs,
            (Kind::Bool, Style::Round) => Combine::Exists,
            _ => Combine::Sum,
        },
    }
}

/// Starred places of left sides, each once.
fn stars(definitions: &[(Span, &Definition<'_>)]) -> Vec<(usize, String)> {
    let mut stars = Vec::new();
    for (_, definition) in definitions {
        for (at, place) in definition.head.places.iter().enumerate().filter(|(_, place)| place.star) {
            let PlaceKind::Index(index) = &place.kind else { continue };
            for (name, _) in walk::indices_of(index) {
                if !stars.contains(&(at, name.to_owned())) {
                    stars.push((at, name.to_owned()));
                }
            }
        }
    }
    stars
}
