//! Whole programs: declarations, data, equations, queries.
//!
//! Enter at [`program`]. What the core form knows is declared, so that nothing is left to
//! inference: every index with a range of its own has a name that no other range has. Where such
//! an index stands alone in a place with another domain, it is written `x+0`: an index that
//! stands alone would say that the two are one class (N6).

use std::cell::RefCell;
use std::collections::BTreeSet;

use super::index;
use super::names::{Declarations, Names};
use super::piece::number;
use super::statement::{parts_of, sign_of};
use super::value::{Printer, bracketed};
use crate::presence;
use crate::program::{
    Action, Argument, Combine, Equation, Expr, Facts, Given, IndexFn, IndexId, Kind, Program, Query, Range,
    Role, Settings, Start, Style, Tensor, TensorId, When,
};
use crate::value::{Const, Domain};
use crate::walk;

/// A program as legal text with the same values.
///
/// Each redefinition (`X := …`) becomes a tensor of its own with primes behind its name. The text
/// of a query is kept.
pub fn program(program: &Program) -> String {
    written(program, Way::default())
}

/// The ways in which a program can be written, the plainest first. The ranges that are declared may clash, or be those of other
/// places too, where the text that the program comes from declares none: its places are then of classes that a text joins.
pub fn ways(program: &Program) -> impl Iterator<Item = String> + '_ {
    let ways = [(false, false), (true, false), (false, true), (true, true)];
    ways.into_iter().map(|(apart, loose)| written(program, Way { apart, loose }))
}

/// How much a text says of the classes of places.
#[derive(Debug, Clone, Copy, Default)]
struct Way {
    /// No index stands alone in a place of a computed square tensor.
    apart: bool,
    /// The places of computed relations are not declared.
    loose: bool,
}

fn written(program: &Program, way: Way) -> String {
    let declarations = RefCell::new(asked(program));
    let table = Table { program, declarations: &declarations, loose: way.loose };
    let tensors = tensor_names(program);
    let given = table.name_indices();
    let mut body = String::new();
    let mut line = |text: String| {
        body.push_str(&text);
        body.push('\n');
    };
    settings(&program.settings).into_iter().for_each(&mut line);
    for (id, name) in (0..).map(TensorId).zip(&tensors) {
        if !program.tensor(id).hidden {
            table.tensor(id, name).into_iter().for_each(&mut line);
        }
    }
    let name = |id: TensorId| tensors.get(id.0 as usize).map_or("T", String::as_str);
    for equation in program.equations.iter().filter(|equation| !hidden(program, equation)) {
        let mut printer = Printer::new(program, equation, &name);
        printer.names.given.clone_from(&given);
        printer.names.declarations = Some(&declarations);
        printer.apart = way.apart;
        // The arguments of one `concat` follow each other in one statement, also those of one value, whose place is a number.
        let mut parts = parts_of(program, equation);
        if !parts.iter().any(|part| part.head.iter().any(index::has_ordinal)) {
            parts = vec![equation];
        }
        if parts.first().is_some_and(|first| std::ptr::eq(*first, equation)) {
            line(printer.statement(equation, &parts, super::statement::sign(program, equation)));
        }
    }
    for action in &program.actions {
        line(match action {
            Action::Query(query) => query_text(program, query, name(query.tensor)),
            Action::Write { file, tensor, .. } => format!("{} = {}", index::quoted(file), name(*tensor)),
        });
    }
    let mut text = String::new();
    for (name, domain) in &declarations.borrow().declared {
        text.push_str(&format!("{name} : {}\n", show_domain(program, domain)));
    }
    text + &body
}

fn hidden(program: &Program, equation: &Equation) -> bool {
    program.tensors.get(equation.tensor.0 as usize).is_none_or(|tensor| tensor.hidden)
}

/// What the tensors are called: every version has its own name.
pub fn tensor_names(program: &Program) -> Vec<String> {
    let mut taken: BTreeSet<String> = BTreeSet::new();
    taken.extend(program.tensors.iter().filter(|t| t.version == 0).map(|tensor| tensor.name.clone()));
    let mut names = Vec::new();
    for tensor in &program.tensors {
        let mut name = tensor.name.clone();
        while tensor.version > 0 && taken.contains(&name) {
            name.push('\'');
        }
        taken.insert(name.clone());
        names.push(name);
    }
    names
}

fn settings(settings: &Settings) -> Vec<String> {
    let usual = Settings::default();
    let mut lines = Vec::new();
    if settings.tolerance != usual.tolerance {
        lines.extend(number(settings.tolerance).map(|tolerance| format!("@tol({tolerance})")));
    }
    if settings.rounds != usual.rounds {
        lines.push(format!("@rounds({})", settings.rounds));
    }
    if settings.seed != usual.seed {
        lines.push(format!("@seed({})", settings.seed));
    }
    lines
}

fn show_domain(program: &Program, domain: &Domain) -> String {
    match domain {
        Domain::Interval { from: 0, to } if *to >= 0 => to.saturating_add(1).to_string(),
        Domain::Interval { from, to } => format!("{from}..{to}"),
        Domain::Listed(_) => {
            let values: Vec<String> = domain.values().map(|value| constant(program, value)).collect();
            format!("{{{}}}", values.join(", "))
        }
    }
}

fn constant(program: &Program, value: Const) -> String {
    index::constant(program, &Names::new(program), value).text
}

/// A query as it was written, about the version of the tensor that it saw.
fn query_text(program: &Program, query: &Query, name: &str) -> String {
    let tensor = program.tensors.get(query.tensor.0 as usize);
    match tensor.filter(|tensor| !tensor.hidden).and_then(|t| query.text.strip_prefix(t.name.as_str())) {
        Some(rest) => format!("{name}{rest}"),
        None => query.text.clone(),
    }
}

/// The indices of queries, whose text is kept: those that must be declared, because they have one
/// range in all queries, and names that must not be.
fn asked(program: &Program) -> Declarations {
    let mut declared: Vec<(String, Domain)> = Vec::new();
    let mut taken = BTreeSet::new();
    for equation in program.equations.iter().filter(|equation| hidden(program, equation)) {
        for index in indices_of(equation) {
            let Some(entry) = program.indices.get(index.0 as usize) else { continue };
            let known = declared.iter().find(|(name, _)| *name == entry.name);
            match (&entry.range, known) {
                (Range::Domain(domain), Some((_, known))) if domain == known => {}
                (Range::Domain(domain), None) if entry.name != "_" => {
                    declared.push((entry.name.clone(), domain.clone()));
                }
                _ => {
                    taken.insert(entry.name.clone());
                }
            }
        }
    }
    declared.retain(|(name, _)| !taken.contains(name));
    Declarations { declared, taken }
}

/// All indices of an equation, each once.
fn indices_of(equation: &Equation) -> BTreeSet<IndexId> {
    let mut found: BTreeSet<IndexId> = equation.left.iter().copied().collect();
    for term in &equation.terms {
        found.extend(term.over.iter().chain(&term.when.exists));
        bound_in(&term.body, &term.when, &mut found);
    }
    found
}

/// The indices that a value and its guards hold or bind.
fn bound_in(body: &Expr, when: &When, found: &mut BTreeSet<IndexId>) {
    walk::expr_indices(body, &mut |index| {
        found.insert(index);
    });
    walk::when_indices(when, &mut |index| {
        found.insert(index);
    });
}

/// The declared indices.
struct Table<'p> {
    program: &'p Program,
    declarations: &'p RefCell<Declarations>,
    /// Whether the places of computed relations are not declared.
    loose: bool,
}

impl<'p> Table<'p> {
    /// A name for every index of the equations, by index. Indices of one equation that could
    /// meet have different names.
    fn name_indices(&self) -> Vec<Option<String>> {
        let program = self.program;
        let mut given = vec![None; program.indices.len()];
        let virtual_names = self.virtual_names();
        self.declarations.borrow_mut().taken.extend(virtual_names.iter().cloned());
        // Indices without a range keep their names, which are then not declared.
        for equation in program.equations.iter().filter(|equation| !hidden(program, equation)) {
            for index in indices_of(equation) {
                let Some(entry) = program.indices.get(index.0 as usize) else { continue };
                let mut declarations = self.declarations.borrow_mut();
                if !matches!(entry.range, Range::Domain(_)) && !declarations.has(&entry.name) {
                    declarations.taken.insert(entry.name.clone());
                }
            }
        }
        for equation in program.equations.iter().filter(|equation| !hidden(program, equation)) {
            let mut here: BTreeSet<String> = BTreeSet::new();
            for index in indices_of(equation) {
                let Some(entry) = program.indices.get(index.0 as usize) else { continue };
                if let Range::Domain(domain) = &entry.range
                    && !virtual_names.contains(&entry.name)
                {
                    let name = self.declarations.borrow_mut().declare(&entry.name, domain, &here);
                    here.insert(name.clone());
                    if let Some(slot) = given.get_mut(index.0 as usize) {
                        *slot = Some(name);
                    }
                }
            }
        }
        given
    }

    /// The names of virtual indices with several ranges: a virtual index is read in step by its
    /// name, so that it keeps its name, and its ranges are inferred.
    fn virtual_names(&self) -> BTreeSet<String> {
        let mut ranges: Vec<(&str, &Domain)> = Vec::new();
        let mut several = BTreeSet::new();
        let mut visit = |tensor: TensorId, at: usize, function: &IndexFn| {
            let place = self.program.tensors.get(tensor.0 as usize).and_then(|tensor| tensor.places.get(at));
            if !place.is_some_and(|place| place.star) {
                return;
            }
            function.visit(&mut |index| {
                let Some(entry) = self.program.indices.get(index.0 as usize) else { return };
                let Range::Domain(domain) = &entry.range else { return };
                match ranges.iter().find(|(name, _)| *name == entry.name) {
                    Some((_, known)) if *known != domain => {
                        several.insert(entry.name.clone());
                    }
                    Some(_) => {}
                    None => ranges.push((&entry.name, domain)),
                }
            });
        };
        for equation in self.program.equations.iter().filter(|equation| !hidden(self.program, equation)) {
            equation.head.iter().enumerate().for_each(|(at, function)| visit(equation.tensor, at, function));
            equation.visit_reads(&mut |read, _| {
                for (at, argument) in read.arguments.iter().enumerate() {
                    if let Argument::At(function) = argument {
                        visit(read.tensor, at, function);
                    }
                }
            });
        }
        several
    }

    /// The statements that declare a tensor and give its data.
    fn tensor(&self, id: TensorId, name: &str) -> Vec<String> {
        let tensor = self.program.tensor(id);
        let mut lines = Vec::new();
        lines.extend(self.declaration(id, name));
        for given in &tensor.given {
            match given {
                Given::Facts(facts) => {
                    (0..facts.count).for_each(|at| lines.push(self.fact(tensor, name, facts, at)));
                }
                Given::Columns(columns) => {
                    let facts = columns.facts();
                    (0..facts.count).for_each(|at| lines.push(self.fact(tensor, name, &facts, at)));
                }
                Given::Array { fixed, shape, values, .. } => {
                    lines.push(self.array(tensor, name, fixed, shape, values));
                }
            }
        }
        lines
    }

    /// The places of a tensor as a declaration names them: declared where the domain must be said.
    fn places(&self, id: TensorId) -> Vec<String> {
        let tensor = self.program.tensor(id);
        let mut here = BTreeSet::new();
        let mut places = Vec::new();
        for (at, place) in tensor.places.iter().enumerate() {
            let given = tensor.style == Style::Round && tensor.role == Role::Data;
            let domain = match tensor.style {
                Style::Round if !given => place.limit.as_ref().or_else(|| self.filled(id, at)),
                _ => place.limit.as_ref().or(place.domain.as_ref()),
            };
            let name = match domain {
                Some(domain) => self.declarations.borrow_mut().declare("i", domain, &here),
                None => self.declarations.borrow_mut().loose(at),
            };
            here.insert(name.clone());
            places.push(name);
        }
        places
    }

    /// The domain of a place of a computed relation, where all its tuples are inside: declared, it limits nothing, and says
    /// where a square reference reads 0.
    fn filled(&self, id: TensorId, at: usize) -> Option<&'p Domain> {
        let tensor = self.program.tensor(id);
        let domain = tensor.places.get(at)?.domain.as_ref()?;
        let Domain::Interval { from, to } = domain else { return None };
        let own = |equation: &&Equation| equation.tensor == id;
        let inside = |equation: &Equation| {
            let bounds = equation.head.get(at).and_then(|function| presence::bounds(self.program, function));
            bounds.is_some_and(|(low, high)| low > high || (from <= &low && &high <= to))
        };
        let computed = tensor.role == Role::Computed && tensor.given.is_empty() && !self.loose;
        (computed && self.program.equations.iter().filter(own).all(inside)).then_some(domain)
    }

    fn declaration(&self, id: TensorId, name: &str) -> Option<String> {
        let tensor = self.program.tensor(id);
        let round = tensor.style == Style::Round;
        let usual = match tensor.style {
            Style::Square => tensor.kind == Kind::Real,
            Style::Round => {
                tensor.kind == Kind::Bool && matches!(tensor.combine, Combine::Exists | Combine::Or)
            }
        };
        let limited =
            round && tensor.places.iter().any(|place| place.limit.is_some() || place.domain.is_some());
        let start = match (&tensor.role, &tensor.start) {
            (Role::Parameter, start) => format!(" ~ {}", show_start(start.as_ref())),
            (Role::Missing, _) => return None,
            _ => String::new(),
        };
        let needed = !usual || limited || !start.is_empty() || tensor.role == Role::Empty;
        // Without places and without a type this would be a fact.
        if !needed || (round && tensor.places.is_empty() && usual) {
            return None;
        }
        let places = self.places(id);
        let kind = if usual { String::new() } else { format!(" : {}", tensor.kind.name()) };
        Some(format!("{}{kind}{start}", bracketed(name, &places, round, round)))
    }

    fn fact(&self, tensor: &Tensor, name: &str, facts: &Facts, at: usize) -> String {
        let places: Vec<String> =
            facts.tuple(at).iter().map(|value| constant(self.program, *value)).collect();
        let round = tensor.style == Style::Round;
        let head = bracketed(name, &places, round, round);
        let value = facts.value(at);
        let one = match tensor.kind {
            Kind::Tropical => 0.0,
            Kind::MaxMin => f64::INFINITY,
            _ => 1.0,
        };
        // Of a Boolean tensor a value that is not above 0 derives nothing, and must be said with its sign.
        if round && (value == one || (tensor.kind == Kind::Bool && value > 0.0)) {
            return head;
        }
        let sign = sign_of(tensor);
        let sign = if sign == "<-" { "=" } else { sign };
        format!("{head} {sign} {}", numeral(value))
    }

    fn array(
        &self,
        tensor: &Tensor,
        name: &str,
        fixed: &[Option<Const>],
        shape: &[usize],
        values: &[f64],
    ) -> String {
        let whole = fixed.iter().all(Option::is_none);
        let sizes = tensor.places.iter().zip(shape);
        let plain = whole && sizes.into_iter().all(|(p, size)| p.domain == Some(Domain::size(*size)));
        let mut here = BTreeSet::new();
        let mut places = Vec::new();
        for (at, value) in fixed.iter().enumerate().filter(|_| !plain) {
            places.push(match value {
                Some(value) => constant(self.program, *value),
                None => match tensor.places.get(at).and_then(|place| place.domain.clone()) {
                    Some(domain) => self.declarations.borrow_mut().declare("i", &domain, &here),
                    None => self.declarations.borrow_mut().loose(at),
                },
            });
            here.extend(places.last().cloned());
        }
        let head = bracketed(name, &places, false, false);
        let sign = sign_of(tensor);
        format!("{head} {sign} {}", nested(shape, values))
    }
}

/// An array, row-major values as nested rows.
fn nested(shape: &[usize], values: &[f64]) -> String {
    let Some((size, rest)) = shape.split_first() else {
        return values.first().map_or_else(|| "0".to_owned(), |value| numeral(*value));
    };
    let step = rest.iter().product::<usize>();
    let rows = (0..*size).map(|row| nested(rest, values.get(row * step..).unwrap_or(&[])));
    format!("[{}]", rows.collect::<Vec<_>>().join(", "))
}

/// A number in data, where only numerals stand: one beyond the range of numbers is infinite.
fn numeral(value: f64) -> String {
    number(value).unwrap_or_else(|| if value < 0.0 { "-1e999" } else { "1e999" }.to_owned())
}

fn show_start(start: Option<&Start>) -> String {
    match start {
        Some(Start::Array { shape, values }) => nested(shape, values),
        Some(Start::Number(value)) => numeral(*value),
        Some(Start::Normal(mean, deviation)) => {
            format!("normal({}, {})", numeral(*mean), numeral(*deviation))
        }
        Some(Start::Uniform(low, high)) => format!("uniform({}, {})", numeral(*low), numeral(*high)),
        Some(Start::He) => "he()".to_owned(),
        Some(Start::Glorot) | None => "glorot()".to_owned(),
    }
}
