//! Index functions and constants.

use super::names::Names;
use super::piece::{Level, Piece};
use crate::program::{IndexFn, IndexId, Program, Range, Style};
use crate::value::{Const, Domain, SymbolId};

/// Where an index function stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Spacing {
    /// In a place of a tensor: `x+1`.
    Tight,
    /// In a comparison: `x + 1`.
    Loose,
}

/// An index function as an index expression.
pub(super) fn function(program: &Program, names: &Names<'_>, function_: &IndexFn, spacing: Spacing) -> Piece {
    let part = |part: &IndexFn| function(program, names, part, spacing);
    let join = |a: String, sign: &str, b: String, level| match spacing {
        Spacing::Tight => Piece::new(format!("{a}{sign}{b}"), level),
        Spacing::Loose => Piece::new(format!("{a} {sign} {b}"), level),
    };
    let sum = |a: &IndexFn, b: &IndexFn, signs: [&str; 2]| match b {
        IndexFn::Const(Const::Int(value)) if *value < 0 && *value > i64::MIN => {
            join(part(a).at(Level::Negative), signs[1], (-value).to_string(), Level::Sum)
        }
        _ => join(part(a).at(Level::Sum), signs[0], part(b).at(Level::Product), Level::Sum),
    };
    let product = |a: &IndexFn, sign: &str, b: &IndexFn| {
        join(part(a).at(Level::Product), sign, part(b).at(Level::Base), Level::Product)
    };
    let is = |part: &IndexFn, value: i64| *part == IndexFn::Const(Const::Int(value));
    match function_ {
        IndexFn::Const(value) => constant(program, names, *value),
        IndexFn::Index(id) => Piece::base(names.of(*id)),
        IndexFn::Ordinal(id) => ordinal(program, names, *id, spacing),
        IndexFn::Negate(a) => Piece::new(format!("-{}", part(a).at(Level::Base)), Level::Negative),
        // What `concat` computes; alone, an index would say more than its position does.
        IndexFn::Add(a, b) if is(a, 0) && !matches!(**b, IndexFn::Index(_)) => part(b),
        IndexFn::Multiply(a, b) if is(b, 1) && matches!(**a, IndexFn::Ordinal(_)) => part(a),
        IndexFn::Multiply(a, b) if matches!((&**a, &**b), (IndexFn::Ordinal(_), IndexFn::Const(_))) => {
            product(b, "*", a)
        }
        IndexFn::Add(a, b) => sum(a, b, ["+", "-"]),
        IndexFn::Subtract(a, b) => sum(a, b, ["-", "+"]),
        IndexFn::Multiply(a, b) => product(a, "*", b),
        IndexFn::Divide(a, b) => product(a, "/", b),
        IndexFn::Remainder(a, b) => product(a, "%", b),
    }
}

/// The position of an index in its domain, where that is arithmetic.
fn ordinal(program: &Program, names: &Names<'_>, id: IndexId, spacing: Spacing) -> Piece {
    let name = names.of(id);
    match program.indices.get(id.0 as usize).map(|index| &index.range) {
        Some(Range::Domain(Domain::Interval { from, .. })) if *from != 0 => {
            let shift =
                IndexFn::Subtract(Box::new(IndexFn::Index(id)), Box::new(IndexFn::Const(Const::Int(*from))));
            function(program, names, &shift, spacing)
        }
        _ => Piece::base(name),
    }
}

/// Whether the positions in a function can be written as arithmetic.
pub(super) fn is_arithmetic(program: &Program, function: &IndexFn) -> bool {
    match function {
        IndexFn::Const(_) | IndexFn::Index(_) => true,
        IndexFn::Ordinal(id) => matches!(
            program.indices.get(id.0 as usize).map(|index| &index.range),
            Some(Range::Domain(Domain::Interval { .. }))
        ),
        IndexFn::Negate(a) => is_arithmetic(program, a),
        IndexFn::Add(a, b)
        | IndexFn::Subtract(a, b)
        | IndexFn::Multiply(a, b)
        | IndexFn::Divide(a, b)
        | IndexFn::Remainder(a, b) => is_arithmetic(program, a) && is_arithmetic(program, b),
    }
}

/// Whether a function is the position of an index and nothing else.
pub(super) fn is_position(function: &IndexFn) -> bool {
    match function {
        IndexFn::Ordinal(_) => true,
        IndexFn::Add(a, b) => **a == IndexFn::Const(Const::Int(0)) && is_position(b),
        IndexFn::Multiply(a, b) => **b == IndexFn::Const(Const::Int(1)) && is_position(a),
        _ => false,
    }
}

/// Whether a function asks for positions.
pub(super) fn has_ordinal(function: &IndexFn) -> bool {
    match function {
        IndexFn::Ordinal(_) => true,
        IndexFn::Const(_) | IndexFn::Index(_) => false,
        IndexFn::Negate(a) => has_ordinal(a),
        IndexFn::Add(a, b)
        | IndexFn::Subtract(a, b)
        | IndexFn::Multiply(a, b)
        | IndexFn::Divide(a, b)
        | IndexFn::Remainder(a, b) => has_ordinal(a) || has_ordinal(b),
    }
}

/// A constant.
pub(super) fn constant(program: &Program, names: &Names<'_>, value: Const) -> Piece {
    match value {
        Const::Int(value) if value < 0 => Piece::new(value.to_string(), Level::Negative),
        Const::Int(value) => Piece::base(value.to_string()),
        Const::Symbol(id) => Piece::base(symbol(program, names, id)),
    }
}

/// A symbol: bare where that is a legal constant which nothing else is named after.
fn symbol(program: &Program, names: &Names<'_>, id: SymbolId) -> String {
    let name = program.symbols.name(id);
    let bare = program.symbols.show(Const::Symbol(id)) == name;
    let tensor = program.tensors.iter().any(|tensor| {
        !tensor.hidden && tensor.name == name && tensor.places.is_empty() && tensor.style == Style::Square
    });
    let size = names.find(&name.to_lowercase()).is_some();
    if bare && !tensor && !size { name.to_owned() } else { quoted(name) }
}

/// A text in quotes, with the escapes of the language.
pub(super) fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            letter => quoted.push(letter),
        }
    }
    quoted.push('"');
    quoted
}
