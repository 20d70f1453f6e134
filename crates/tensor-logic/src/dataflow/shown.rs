//! Queries as changes of their answers are written: `Path(x, y)?` as `Path(A, B)`.

use crate::lex::{TokenKind, lex};
use crate::program::{Form, Program, Query};
use crate::value::{Const, Symbols};

/// How a tuple of a query's answer is written.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Shape {
    /// One reference: its name, and its places as written or by a free index.
    Atom(String, Vec<Place>),
    /// A relation by its bare name, or one number.
    Name(String),
    /// Several literals: the free indices, and the query.
    Bindings(Vec<String>, String),
}

/// A place of a reference.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Place {
    /// The value of a free index, by its position.
    Free(usize),
    /// What stands there.
    Text(String),
}

impl Shape {
    /// How tuples of a query are written.
    pub(super) fn of(program: &Program, query: &Query) -> Shape {
        let labels: &[String] = match &query.form {
            Form::Values(labels) => labels,
            _ => &[],
        };
        if !program.tensor(query.tensor).hidden {
            return Shape::Name(program.name(query.tensor).to_owned());
        }
        atom(&query.text, labels).unwrap_or_else(|| Shape::Bindings(labels.to_vec(), query.text.clone()))
    }

    /// A tuple.
    pub(super) fn write(&self, symbols: &Symbols, tuple: &[Const]) -> String {
        let value = |at: usize| tuple.get(at).map_or_else(String::new, |value| symbols.show(*value));
        match self {
            Shape::Name(name) if tuple.is_empty() => name.clone(),
            Shape::Name(name) => {
                format!("{name}({})", (0..tuple.len()).map(value).collect::<Vec<_>>().join(", "))
            }
            Shape::Atom(name, places) => {
                let places = places.iter().map(|place| match place {
                    Place::Free(at) => value(*at),
                    Place::Text(text) => text.clone(),
                });
                format!("{name}({})", places.collect::<Vec<_>>().join(", "))
            }
            Shape::Bindings(labels, text) if labels.is_empty() => text.clone(),
            Shape::Bindings(labels, text) => {
                let bound = (0..).zip(labels).map(|(at, label)| format!("{label} = {}", value(at)));
                format!("{} in {text}", bound.collect::<Vec<_>>().join(", "))
            }
        }
    }
}

/// `Name(place, place)?`, if every place is a free index or has none.
fn atom(text: &str, labels: &[String]) -> Option<Shape> {
    let tokens = lex(text).tokens;
    let word = |at: usize| {
        let token = tokens.get(at)?;
        text.get(token.span.start..token.span.end).map(|word| (token.kind, word))
    };
    let (TokenKind::Capital, name) = word(0)? else { return None };
    let (TokenKind::LeftRound, _) = word(1)? else { return None };
    let (mut places, mut at) = (Vec::new(), 2);
    loop {
        match word(at)? {
            (TokenKind::RightRound, _) if places.is_empty() => break,
            (TokenKind::Small, index) => {
                let index = index.replace('′', "'");
                places.push(Place::Free(labels.iter().position(|label| *label == index)?));
            }
            (TokenKind::Capital | TokenKind::Number | TokenKind::Text | TokenKind::Underscore, place) => {
                places.push(Place::Text(place.to_owned()));
            }
            _ => return None,
        }
        at += 2;
        match word(at - 1)?.0 {
            TokenKind::Comma => {}
            TokenKind::RightRound => break,
            _ => return None,
        }
    }
    let rest = if places.is_empty() { 3 } else { at };
    let ends = matches!(word(rest)?.0, TokenKind::Question) && matches!(word(rest + 1)?.0, TokenKind::End);
    ends.then(|| Shape::Atom(name.to_owned(), places))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_written_as_they_are_asked_for() {
        let mut symbols = Symbols::default();
        let tuple = [Const::Symbol(symbols.intern("Ann")), Const::Int(-3)];
        let labels = ["x".to_owned(), "y'".to_owned()];
        let cases = [
            ("Path(x, y′)?", "Path(Ann, -3)"),
            ("Path(y', x, y')?", "Path(-3, Ann, -3)"),
            ("Path(x, B, 7, _, \"b c\") ?", "Path(Ann, B, 7, _, \"b c\")"),
        ];
        for (text, expected) in cases {
            assert_eq!(
                atom(text, &labels).map(|shape| shape.write(&symbols, &tuple)).as_deref(),
                Some(expected)
            );
        }
        assert_eq!(atom("Rain()?", &[]), Some(Shape::Atom("Rain".to_owned(), Vec::new())));
        for text in ["P(x), Q(x)?", "P(x+1)?", "not P(x)?", "P?", "P(z)?", "P(x", "P(x,)?", "P(x)? Q"] {
            assert_eq!(atom(text, &labels), None, "{text}");
        }
        let several = Shape::Bindings(labels.to_vec(), "P(x), Q(y')?".to_owned());
        assert_eq!(several.write(&symbols, &tuple), "x = Ann, y' = -3 in P(x), Q(y')?");
        assert_eq!(Shape::Name("N".to_owned()).write(&symbols, &[]), "N");
    }
}
