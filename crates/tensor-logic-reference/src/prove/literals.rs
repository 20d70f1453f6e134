//! The literals of a rule in the order of its text, and what a binding makes of them.

use super::{Atom, Search};
use tensor_logic_core::program::{
    Argument, Equation, Expr, Guard, IndexFn, Otherwise, Read, Role, Style, TensorId, Term,
};
use tensor_logic_core::proof::{Step, StepKind};
use tensor_logic_core::value::{Const, Tuple};

/// A literal of a rule's body.
#[derive(Debug, Clone, Copy)]
pub(super) enum Literal<'p> {
    Read(&'p Read),
    Guard(&'p Guard),
    /// `Even(x)` or `Odd(x)`, which the core form writes as a comparison.
    Parity(&'static str, &'p IndexFn),
    /// A factor of a rule of a relation with probabilities, by its number, and whether it is denied.
    Factor(usize, &'p Read, bool),
}

impl<'p> Search<'p> {
    /// The literals of a body in the order of the text: its factors, with their places, and its guards. Comparisons of
    /// indices and assignments carry no place: they are the literals of the text in which no read stands.
    pub(super) fn literals(
        &self,
        equation: &Equation,
        term: &'p Term,
        mut placed: Vec<(usize, Literal<'p>)>,
    ) -> Vec<Literal<'p>> {
        let mut reads: Vec<usize> = Vec::new();
        term.body.visit_reads(&mut |read, _| reads.push(read.span.start));
        term.when.visit_reads(&mut |read, _| reads.push(read.span.start));
        // A query has no sign: all of its text are literals.
        let sign = equation.sign_span.end;
        let from = if sign < equation.span.end { sign.max(equation.span.start) } else { equation.span.start };
        let mut bare = segments(self.text, from, equation.span.end)
            .into_iter()
            .filter(|segment| !reads.iter().any(|read| segment.contains(read)));
        let mut last = 0;
        for guard in &term.when.guards {
            let mut at = None;
            match guard {
                Guard::Read(read) | Guard::Not(read) => at = Some(read.span.start),
                Guard::Compare(_, a, b) => {
                    a.visit_reads(&mut |read, _| at = at.or(Some(read.span.start)));
                    b.visit_reads(&mut |read, _| at = at.or(Some(read.span.start)));
                }
                Guard::CompareIndex(..) | Guard::Bind(..) => {}
            }
            let segment = if at.is_none() { bare.next() } else { None };
            last = at.or_else(|| segment.as_ref().map(|segment| segment.start)).unwrap_or(last);
            let written = segment.and_then(|segment| self.text.get(segment)).unwrap_or("").trim_start();
            let parity = ["Even", "Odd"].into_iter().find(|name| written.starts_with(name));
            placed.push((
                last,
                match (parity, guard) {
                    (Some(name), Guard::CompareIndex(_, IndexFn::Remainder(of, _), _)) => {
                        Literal::Parity(name, of)
                    }
                    _ => Literal::Guard(guard),
                },
            ));
        }
        placed.sort_by_key(|(at, _)| *at);
        placed.into_iter().map(|(_, literal)| literal).collect()
    }

    pub(super) fn premise(&self, literal: Literal<'p>, line: usize) -> Result<Atom, Step> {
        let leaf = |atom: String, kind: StepKind, line: usize| Step {
            atom,
            kind,
            line,
            file: None,
            from: Vec::new(),
        };
        match literal {
            Literal::Read(read) | Literal::Guard(Guard::Read(read)) | Literal::Factor(_, read, false) => {
                let tuple = self.machine.arguments(read).unwrap_or_default();
                let tensor = self.program.tensor(read.tensor);
                let leaf_only = tensor.role == Role::Parameter || (self.closed && tensor.is_proved());
                if tensor.style == Style::Round && !leaf_only {
                    return Ok((self.proved_by(read.tensor), tuple));
                }
                Err(leaf(self.shown(read.tensor, &tuple), StepKind::Data, self.line(tensor.span)))
            }
            Literal::Guard(Guard::Not(read)) | Literal::Factor(_, read, true) => {
                let places = read.arguments.iter().map(|argument| match argument {
                    Argument::At(function) => self
                        .machine
                        .index(function)
                        .map_or("?".to_owned(), |value| self.program.symbols.show(value)),
                    Argument::Any => "_".to_owned(),
                });
                let places: Vec<String> = places.collect();
                let round = read.otherwise == Otherwise::Absent;
                let atom =
                    format!("not {}", bracketed(self.program.name(read.tensor), round, &places.join(", ")));
                Err(leaf(atom, StepKind::Negation, self.line(read.span)))
            }
            Literal::Guard(Guard::CompareIndex(sign, a, b)) => {
                let atom = format!("{} {sign} {}", self.function(a), self.function(b));
                Err(leaf(atom, StepKind::Builtin, line))
            }
            Literal::Parity(name, of) => {
                Err(leaf(format!("{name}({})", self.function(of)), StepKind::Builtin, line))
            }
            Literal::Guard(Guard::Bind(index, function)) => {
                let atom =
                    format!("{} = {}", self.function(&IndexFn::Index(*index)), self.function(function));
                Err(leaf(atom, StepKind::Builtin, line))
            }
            Literal::Guard(Guard::Compare(sign, a, b)) => {
                let number =
                    |side| self.machine.expr(side).map_or("absent".to_owned(), |value| format!("{value:?}"));
                Err(leaf(format!("{} {sign} {}", number(a), number(b)), StepKind::Builtin, line))
            }
        }
    }

    pub(super) fn shown(&self, id: TensorId, tuple: &Tuple) -> String {
        let id = self.sums.iter().find(|(_, sums)| *sums == id).map_or(id, |(own, _)| *own);
        let tensor = self.program.tensor(id);
        bracketed(&tensor.name, tensor.style == Style::Round, &self.program.show_tuple(tuple))
    }

    /// An index function with the values at hand in place of the indices.
    fn function(&self, function: &IndexFn) -> String {
        let inner = |part: &IndexFn| match part {
            IndexFn::Const(_) | IndexFn::Index(_) | IndexFn::Ordinal(_) => self.function(part),
            _ => format!("({})", self.function(part)),
        };
        let binary = |a: &IndexFn, sign: &str, b: &IndexFn| format!("{} {sign} {}", inner(a), inner(b));
        match function {
            IndexFn::Const(_) | IndexFn::Index(_) | IndexFn::Ordinal(_) => {
                let value: Option<Const> = self.machine.index(function);
                value.map_or("?".to_owned(), |value| self.program.symbols.show(value))
            }
            IndexFn::Negate(a) => format!("-{}", inner(a)),
            IndexFn::Add(a, b) => binary(a, "+", b),
            IndexFn::Subtract(a, b) => binary(a, "-", b),
            IndexFn::Multiply(a, b) => binary(a, "*", b),
            IndexFn::Divide(a, b) => binary(a, "/", b),
            IndexFn::Remainder(a, b) => binary(a, "%", b),
        }
    }
}

/// The reads that a body multiplies or adds, and those that it denies, with their places.
pub(super) fn factors<'p>(body: &'p Expr, into: &mut Vec<(usize, Literal<'p>)>) {
    match body {
        Expr::Read(read) => into.push((read.span.start, Literal::Read(read))),
        Expr::Missing(read) => into.push((read.span.start, Literal::Factor(into.len(), read, true))),
        Expr::Reduce(_) | Expr::Axis(_) => {}
        _ => body.parts().0.into_iter().for_each(|part| factors(part, into)),
    }
}

fn bracketed(name: &str, round: bool, inside: &str) -> String {
    match (round, inside.is_empty()) {
        (true, _) => format!("{name}({inside})"),
        (false, true) => name.to_owned(),
        (false, false) => format!("{name}[{inside}]"),
    }
}

/// The parts of a text between commas that stand in no bracket, quotes or comment.
fn segments(text: &str, from: usize, to: usize) -> Vec<std::ops::Range<usize>> {
    let mut segments = Vec::new();
    let (mut depth, mut start, mut quoted, mut comment, mut before) = (0i32, from, false, false, ' ');
    for (at, letter) in text.get(from..to).unwrap_or("").char_indices() {
        match letter {
            '\n' => comment = false,
            _ if comment => {}
            '"' if before != '\\' => quoted = !quoted,
            _ if quoted => {}
            '#' => comment = true,
            '/' if before == '/' => comment = true,
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            ',' if depth == 0 => {
                segments.push(start..from + at);
                start = from + at + 1;
            }
            _ => {}
        }
        before = letter;
    }
    segments.push(start..to);
    segments
}
