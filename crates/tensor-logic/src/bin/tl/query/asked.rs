//! What is said on the command line of a model's variables: `Rain=yes, "X Ray"="un known"`, and `Rain, "X Ray"`.

use calculemus_base::word::{nearest, shortened};
use graphical_models::{Model, VariableId};
use tensor_logic::ast::Span;
use tensor_logic::error::{Code, Refusal};

/// A name, without quotes, and where it stands.
struct Name {
    text: String,
    span: Span,
}

/// The names of the known that a help lists.
const LISTED: usize = 12;

/// Adds what is observed to what is known already.
pub(super) fn evidence(
    model: &Model,
    text: &str,
    known: &mut Vec<(VariableId, usize)>,
) -> Result<(), Refusal> {
    let mut places: Vec<(VariableId, Span)> = Vec::new();
    for item in items(text)? {
        let (name, state) = pair(model, text, item)?;
        let id = variable(model, &name)?;
        let states = &model.variable(id).states;
        let Some(at) = states.iter().position(|known| *known == state.text) else {
            let message = format!("`{}` has no state `{}`", name.text, shortened(&state.text));
            let report = Refusal::new(Code::UnknownEvidence, state.span, message);
            return Err(report.help(meant(&state.text, states.iter().map(String::as_str), "its states are")));
        };
        if let Some((_, other)) = known.iter().find(|(known, _)| *known == id) {
            let (code, how) = match *other == at {
                true => (Code::BadArgument, "twice"),
                false => (Code::ZeroEvidence, "in two states"),
            };
            let report = Refusal::new(code, name.span, format!("`{}` is observed {how}", name.text));
            let first = places.iter().find(|(other, _)| *other == id);
            return Err(first.iter().fold(report, |report, (_, span)| report.label(*span, "first here")));
        }
        known.push((id, at));
        places.push((id, name.span));
    }
    Ok(())
}

/// The variables that are asked for.
pub(super) fn variables(model: &Model, text: &str) -> Result<Vec<VariableId>, Refusal> {
    let mut found = Vec::new();
    for item in items(text)? {
        let name = name(text, item)?;
        let id = variable(model, &name)?;
        if found.contains(&id) {
            let message = format!("`{}` is asked for twice", name.text);
            return Err(Refusal::new(Code::BadArgument, name.span, message));
        }
        found.push(id);
    }
    Ok(found)
}

fn variable(model: &Model, name: &Name) -> Result<VariableId, Refusal> {
    model.find(&name.text).ok_or_else(|| {
        let message = format!("there is no variable `{}`", shortened(&name.text));
        let known = model.variables().iter().map(|variable| variable.name.as_str());
        Refusal::new(Code::UnknownEvidence, name.span, message).help(meant(
            &name.text,
            known,
            "the variables are",
        ))
    })
}

/// What an unknown word may mean: the nearest, or all.
fn meant<'m>(word: &str, known: impl Iterator<Item = &'m str> + Clone, are: &str) -> String {
    if let Some(near) = nearest(word, known.clone()) {
        return format!("did you mean `{near}`?");
    }
    let more = known.clone().nth(LISTED).map_or("", |_| ", …");
    let listed: Vec<String> = known.take(LISTED).map(|name| format!("`{name}`")).collect();
    format!("{are} {}{more}", listed.join(", "))
}

/// The pieces between commas and line ends that do not stand in quotes.
fn items(text: &str) -> Result<Vec<Span>, Refusal> {
    let (mut start, mut quote, mut found) = (0, None, Vec::new());
    for (at, letter) in text.char_indices() {
        match (letter, quote) {
            ('"', None) => quote = Some(at),
            ('"', Some(_)) => quote = None,
            (',' | '\n', None) => {
                found.push(Span { start, end: at });
                start = at + 1;
            }
            _ => {}
        }
    }
    if let Some(start) = quote {
        let span = Span { start, end: start + 1 };
        return Err(Refusal::new(Code::BadArgument, span, "a quotation that does not end"));
    }
    found.push(Span { start, end: text.len() });
    Ok(found)
}

/// `NAME=STATE`. Where a name has `=` in it, the first one behind a variable's name is meant.
fn pair(model: &Model, text: &str, item: Span) -> Result<(Name, Name), Refusal> {
    let own = text.get(item.start..item.end).unwrap_or_default();
    let mut quoted = false;
    let signs: Vec<usize> = own
        .char_indices()
        .filter(|(_, letter)| {
            quoted ^= *letter == '"';
            *letter == '=' && !quoted
        })
        .map(|(at, _)| item.start + at)
        .collect();
    let parts = |sign: usize| {
        let left = name(text, Span { start: item.start, end: sign })?;
        Ok((left, name(text, Span { start: sign + 1, end: item.end })?))
    };
    let known = |sign: &&usize| parts(**sign).is_ok_and(|(left, _)| model.find(&left.text).is_some());
    match signs.iter().find(known).or(signs.first()) {
        Some(sign) => parts(*sign),
        None => {
            let found = name(text, item)?;
            let message = format!("`{}` says no state", shortened(&found.text));
            Err(Refusal::new(Code::BadArgument, found.span, message).help("evidence is `NAME=STATE`"))
        }
    }
}

/// A name without the blanks around it and its quotes.
fn name(text: &str, span: Span) -> Result<Name, Refusal> {
    let own = text.get(span.start..span.end).unwrap_or_default();
    let start = span.start + own.len() - own.trim_start().len();
    let trimmed = own.trim();
    let span = Span { start, end: start + trimmed.len() };
    let bare = trimmed.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(trimmed);
    if trimmed.is_empty() {
        return Err(Refusal::new(Code::BadArgument, span, "a name is missing here"));
    }
    Ok(Name { text: bare.to_owned(), span })
}
