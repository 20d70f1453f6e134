//! Values.
//!
//! Enter at [`Printer::value`]. What a form means depends on where it stands: an unbracketed sum
//! that is an argument is several scopes, of which absent ones are skipped ([`Expr::Terms`]); a
//! sum in parentheses is one ([`Expr::Plus`]). An elementwise function in a square equation reads
//! round references as 0, so that an absent one needs a guard there.

use std::collections::BTreeSet;

use super::alone::may_stand_alone;
use super::index::{self, Spacing};
use super::names::Names;
use super::piece::{self, Level, Piece, side_by_side};

use crate::function::{BUILT_IN, Function};
use crate::program::{
    Argument, Axis, AxisFunction, Call, Expr, IndexFn, IndexId, Operation, Otherwise, Program, Range, Read,
    Role, Style, Tensor, TensorId,
};
use crate::value::{Const, Domain};

/// Where a value stands.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stands {
    /// Whether the terms of an unbracketed sum are scopes here.
    pub(super) split: bool,
    /// Whether round references are read as 0 here.
    pub(super) zero: bool,
    /// The operation around whose neutral value may stand for an absent one.
    pub(super) neutral: Option<Operation>,
}

impl Stands {
    /// Deeper inside, where every part counts.
    pub(super) fn inside(self) -> Stands {
        Stands { split: false, neutral: None, ..self }
    }
}

/// The printer of one equation.
pub(super) struct Printer<'p> {
    pub(super) program: &'p Program,
    pub(super) names: Names<'p>,
    /// Whether the left side is square.
    pub(super) square: bool,
    /// The indices of the left side.
    pub(super) left: Vec<IndexId>,
    /// The indices whose range square references limit.
    pub(super) limited: BTreeSet<IndexId>,
    /// How each tensor is called.
    pub(super) tensors: &'p dyn Fn(TensorId) -> &'p str,
    /// Whether indices do not stand alone in places of computed square tensors.
    pub(super) apart: bool,
}

impl<'p> Printer<'p> {
    pub(super) fn value(&mut self, expr: &Expr, stands: Stands) -> Piece {
        match expr {
            Expr::Number(value) => piece::value(*value),
            Expr::Index(function) => self.number_of(function),
            Expr::Read(read) => self.read_value(read, stands),
            Expr::Missing(read) => Piece::new(format!("not {}", self.read(read)), Level::Power),
            Expr::Product(_) if signed(expr).0 => self.sum(&[expr], stands.inside()),
            Expr::Product(parts) => self.product(parts, stands.inside()),
            Expr::Quotient(a, b) => {
                let a = self.value(a, stands.inside()).at(Level::Product);
                let b = self.value(b, stands.inside()).at(Level::Power);
                Piece::new(format!("{a} / {b}"), Level::Product)
            }
            Expr::Power(a, b) => {
                let a = self.value(a, stands.inside()).at(Level::Base);
                let b = self.value(b, stands.inside()).at(Level::Base);
                Piece::new(format!("{a}^{b}"), Level::Power)
            }
            Expr::Negate(_) if !signed(expr).0 => {
                let (_, factors) = signed(expr);
                self.product_of(&factors, stands.inside())
            }
            Expr::Negate(_) => self.sum(&[expr], Stands { split: false, ..stands }),
            Expr::Plus(parts) => {
                let parts: Vec<&Expr> = parts.iter().collect();
                let sum = self.sum(&parts, stands.inside());
                let bracketed = stands.split && sum.level == Level::Sum;
                if bracketed { Piece::base(format!("({})", sum.text)) } else { sum }
            }
            Expr::Terms(parts) => self.terms(expr, parts, stands),
            Expr::Reduce(reduce) => self.reduce(reduce, stands),
            Expr::Call(call) => self.call(call),
            Expr::Axis(axis) => self.axis(axis),
        }
    }

    /// `A + B - C`
    pub(super) fn sum(&mut self, parts: &[&Expr], stands: Stands) -> Piece {
        if let [part] = parts
            && !signed(part).0
        {
            return self.value(part, stands.inside());
        }
        let mut text = String::new();
        for part in parts {
            let (mut minus, factors) = signed(part);
            let piece = match factors.as_slice() {
                [Expr::Number(number)] if number.is_sign_negative() && !number.is_nan() => {
                    minus = !minus;
                    piece::value(-number)
                }
                [factor] => self.value(factor, Stands { split: false, ..stands }),
                _ => self.product_of(&factors, stands.inside()),
            };
            text.push_str(match (text.is_empty(), minus) {
                (true, false) => "",
                (true, true) => "-",
                (false, false) => " + ",
                (false, true) => " - ",
            });
            text.push_str(&piece.at(Level::Product));
        }
        match parts.len() {
            0 => Piece::base("0"),
            1 => Piece::new(text, Level::Negative),
            _ => Piece::new(text, Level::Sum),
        }
    }

    /// Terms of which absent ones are skipped.
    fn terms(&mut self, expr: &Expr, parts: &[Expr], stands: Stands) -> Piece {
        let mut found = Vec::new();
        addends(expr, &mut found);
        let parts_present = parts.iter().all(|part| crate::presence::always(self.program, part));
        match found.as_slice() {
            [] => Piece::base("(1 | 0 == 1)"),
            [part] => self.value(part, stands),
            _ if stands.split => self.sum(&found, stands),
            _ if parts_present => self.sum(&found, stands.inside()),
            // No operator skips what is absent; the arguments of a function do, and this function
            // changes no number.
            _ => {
                let inner = Stands { split: true, zero: self.square, neutral: None };
                Piece::base(format!("leaky({}, 1)", self.sum(&found, inner).text))
            }
        }
    }

    fn product(&mut self, parts: &[Expr], stands: Stands) -> Piece {
        let parts: Vec<&Expr> = parts.iter().collect();
        self.product_of(&parts, stands)
    }

    fn product_of(&mut self, parts: &[&Expr], stands: Stands) -> Piece {
        let mut texts = Vec::new();
        for (at, part) in parts.iter().enumerate() {
            let piece = self.value(part, stands);
            if parts.len() == 1 {
                return piece;
            }
            // A quotient divides all that stands before it, so it can only come first.
            let level = if at == 0 { Level::Product } else { Level::Power };
            texts.push(piece.at(level));
        }
        if texts.is_empty() { Piece::base("1") } else { Piece::new(side_by_side(texts), Level::Product) }
    }

    /// An index function as a number.
    fn number_of(&mut self, function: &IndexFn) -> Piece {
        let inner = |printer: &mut Self, a: &IndexFn, level| printer.number_of(a).at(level);
        match function {
            IndexFn::Const(Const::Int(value)) => piece::value(*value as f64),
            IndexFn::Const(_) | IndexFn::Index(_) | IndexFn::Ordinal(_) => {
                index::function(self.program, &self.names, function, Spacing::Loose)
            }
            IndexFn::Negate(a) => Piece::new(format!("-{}", inner(self, a, Level::Product)), Level::Negative),
            IndexFn::Add(a, b) => {
                let (a, b) = (inner(self, a, Level::Negative), inner(self, b, Level::Product));
                Piece::base(format!("({a} + {b})"))
            }
            IndexFn::Subtract(a, b) => {
                let (a, b) = (inner(self, a, Level::Negative), inner(self, b, Level::Product));
                Piece::base(format!("({a} - {b})"))
            }
            IndexFn::Multiply(a, b) => {
                let (a, b) = (inner(self, a, Level::Base), inner(self, b, Level::Base));
                Piece::new(format!("{a} * {b}"), Level::Product)
            }
            IndexFn::Divide(a, b) => {
                let (a, b) = (inner(self, a, Level::Product), inner(self, b, Level::Base));
                Piece::base(format!("floor({a} / {b})"))
            }
            IndexFn::Remainder(a, b) => {
                let (above, below) = (inner(self, a, Level::Product), inner(self, b, Level::Base));
                Piece::base(format!("({above} - {below} * floor({above} / {below}))"))
            }
        }
    }

    fn read_value(&mut self, read: &Read, stands: Stands) -> Piece {
        match read.otherwise {
            Otherwise::Absent if stands.zero => {
                let zero = Read { otherwise: Otherwise::Zero, ..read.clone() };
                Piece::base(format!("({} | {})", self.read(&zero), self.read(read)))
            }
            Otherwise::ZeroOutside if !self.starred(read) => {
                let zero = Read { otherwise: Otherwise::Zero, ..read.clone() };
                Piece::base(format!("leaky({} + 0, 1)", self.read(&zero)))
            }
            _ => Piece::base(self.read(read)),
        }
    }

    fn starred(&self, read: &Read) -> bool {
        let tensor = self.program.tensors.get(read.tensor.0 as usize);
        tensor.is_some_and(|tensor| tensor.places.iter().any(|place| place.star))
    }

    /// A reference.
    pub(super) fn read(&self, read: &Read) -> String {
        let tensor = self.program.tensors.get(read.tensor.0 as usize);
        let name = (self.tensors)(read.tensor);
        let star = |at: usize| {
            let place = tensor.and_then(|tensor| tensor.places.get(at));
            read.otherwise == Otherwise::ZeroOutside && place.is_some_and(|place| place.star)
        };
        let places = read.arguments.iter().enumerate().map(|(at, argument)| match argument {
            Argument::At(function) => {
                let star = if star(at) { "*" } else { "" };
                format!("{star}{}", self.place(tensor, at, function))
            }
            Argument::Any => "_".to_owned(),
        });
        let round = tensor.is_some_and(|tensor| tensor.style == Style::Round);
        bracketed(name, &places.collect::<Vec<_>>(), read.otherwise == Otherwise::Absent, round)
    }

    /// An index function in a place of a tensor.
    pub(super) fn place(&self, tensor: Option<&Tensor>, at: usize, function: &IndexFn) -> String {
        let text = index::function(self.program, &self.names, function, Spacing::Tight).text;
        let declared = function.alone().filter(|index| self.names.is_declared(*index));
        let entry = declared.and_then(|index| self.program.indices.get(index.0 as usize));
        match (entry.map(|entry| &entry.range), tensor) {
            (Some(Range::Domain(range)), Some(tensor))
                if self.stands_apart(tensor, range) || !may_stand_alone(tensor, at, range) =>
            {
                format!("{text}+0")
            }
            // A position is no value of the place's class.
            _ if index::is_position(function) && self.names.find(&text).is_some() => format!("{text}+0"),
            _ => text,
        }
    }

    /// Whether no index says of which class the places of a tensor are.
    fn stands_apart(&self, tensor: &Tensor, range: &Domain) -> bool {
        let numbers = range.values().all(|value| value.int().is_some());
        self.apart && numbers && (tensor.style, tensor.role) == (Style::Square, Role::Computed)
    }

    fn call(&mut self, call: &Call) -> Piece {
        let inner = Stands { split: true, zero: self.square, neutral: None };
        let arguments: Vec<String> =
            call.arguments.iter().map(|argument| self.value(argument, inner).text).collect();
        let guards = self.when(&call.when);
        Piece::base(format!("{}({}{})", function_name(&call.function), arguments.join(", "), bar(&guards)))
    }

    fn axis(&mut self, axis: &Axis) -> Piece {
        let axes: Vec<&str> = axis.axes.iter().map(|index| self.names.of(*index)).collect();
        let axes = axes.join(", ");
        let inner = Stands { split: true, zero: false, neutral: None };
        let mut arguments = self.value(&axis.argument, inner).text;
        let name = match &axis.function {
            AxisFunction::Softmax => "softmax",
            AxisFunction::Lnorm(None) => "lnorm",
            AxisFunction::Lnorm(Some(epsilon)) => {
                arguments = format!("{arguments}, {}", self.value(epsilon, inner).text);
                "lnorm"
            }
        };
        let guards = self.when(&axis.when);
        Piece::base(format!("{name}[{axes}]({arguments}{})", bar(&guards)))
    }
}

/// `R(x)`, `R[x]`, `Y`; a tensor without places is bare where that reads it in this way.
pub(super) fn bracketed(name: &str, places: &[String], round: bool, relation: bool) -> String {
    let inside = places.join(", ");
    match (places.is_empty(), round) {
        (true, true) if relation => format!("{name}()"),
        (true, _) => name.to_owned(),
        (false, true) => format!("{name}({inside})"),
        (false, false) => format!("{name}[{inside}]"),
    }
}

/// Guards behind their bar, if there are any.
pub(super) fn bar(guards: &[String]) -> String {
    if guards.is_empty() { String::new() } else { format!(" | {}", guards.join(", ")) }
}

/// A value without its sign: whether it is negative, and the factors of the rest.
fn signed(expr: &Expr) -> (bool, Vec<&Expr>) {
    match expr {
        Expr::Negate(inner) => {
            let (minus, factors) = signed(inner);
            (!minus, factors)
        }
        Expr::Product(parts) => match parts.as_slice() {
            // -1 A B is -A B to the last bit.
            [Expr::Number(-1.0), rest @ ..] if !rest.is_empty() => (true, rest.iter().collect()),
            rest if rest.len() > 1 => (false, rest.iter().collect()),
            _ => (false, vec![expr]),
        },
        _ => (false, vec![expr]),
    }
}

/// The terms of a sum of scopes, sums of scopes inside it opened.
fn addends<'e>(expr: &'e Expr, found: &mut Vec<&'e Expr>) {
    match expr {
        Expr::Terms(parts) => parts.iter().for_each(|part| addends(part, found)),
        _ => found.push(expr),
    }
}

fn function_name(function: &Function) -> &str {
    if let Function::User(user) = function {
        return &user.name;
    }
    let same = |known: &Function| std::mem::discriminant(known) == std::mem::discriminant(function);
    BUILT_IN.iter().find(|(_, known, ..)| same(known)).map_or("", |(name, ..)| name)
}
