//! Domains of places and ranges of indices (N6): the stage "domains".
//!
//! Enter at [`infer`]. First the classes of places (`classes`), which need the text alone; then
//! component by component, in the order of evaluation: the ranges of the indices of its
//! equations (`ranges`) from the reads of tensors whose domains are known, and from the ranges
//! the domains of its tensors. A recursion's own tensors do not limit a range.

use std::collections::{HashMap, HashSet};

use crate::ast::Span;
use crate::error::{Code, Refusal};
use crate::lower::Draft;
use crate::names::Names;
use crate::presence::{bounds_where_defined, bounds_with, extent};
use crate::program::{
    Argument, Equation, EquationId, Expr, Facts, Form, Given, Guard, IndexFn, IndexId, Otherwise, Range,
    Role, Style, TensorId, When,
};
use crate::value::{Const, Domain};

mod binding;
mod classes;
mod concat;
mod given;
mod interval;
mod ranges;
mod reach;

pub use binding::binds;
use classes::{Classes, hull};
use reach::{Reach, Within};

/// What inference refuses: the stage "domains", and `unbounded-index`, which belongs to the
/// stage "recursion".
#[derive(Debug, Default)]
pub struct Refused {
    /// The stage "domains".
    pub domains: Vec<Refusal>,
    /// `unbounded-index`
    pub recursion: Vec<Refusal>,
}

/// Fills in the ranges of all indices and the domains of all places.
pub fn infer(draft: &mut Draft, names: &Names) -> Refused {
    let mut refused = Refused::default();
    refused.domains.append(&mut draft.errors);
    let classes = Classes::build(draft, names, &mut refused.domains);
    let components = crate::recursion::components(&draft.program);
    let mut equations: HashMap<TensorId, Vec<EquationId>> = HashMap::new();
    for (at, equation) in draft.program.equations.iter().enumerate() {
        equations.entry(equation.tensor).or_default().push(EquationId(at as u32));
    }
    let rules = draft.rules.iter().map(|at| EquationId(*at as u32)).collect();
    let mut inference = Inference { draft, classes, refused, equations, rules, poisoned: HashSet::new() };
    inference.check_written();
    inference.check_given();
    inference.given_places();
    for component in &components {
        inference.component(component);
    }
    inference.parameters_left();
    inference.labels();
    inference.check_slices();
    inference.check_numbers();
    let mut refused = inference.refused;
    for reports in [&mut refused.domains, &mut refused.recursion] {
        reports.sort_by_key(|report| report.span.start);
        reports.dedup_by(|a, b| a.span == b.span && a.code == b.code);
    }
    refused
}

struct Inference<'a> {
    draft: &'a mut Draft,
    classes: Classes,
    refused: Refused,
    equations: HashMap<TensorId, Vec<EquationId>>,
    /// Equations whose indices must be bound by literals.
    rules: HashSet<EquationId>,
    /// Tensors without data, and those that need them: their domains are not known.
    poisoned: HashSet<TensorId>,
}

impl Inference<'_> {
    fn tensor_ids(&self) -> impl Iterator<Item = TensorId> + use<> {
        (0..self.draft.program.tensors.len() as u32).map(TensorId)
    }

    /// Constants that facts and left sides write outside a declared or supplied domain.
    fn check_written(&mut self) {
        let mut bounds: HashMap<(TensorId, usize), Vec<(Domain, Span)>> = HashMap::new();
        for mention in self.draft.mentions.iter().filter(|mention| mention.written) {
            let (tensor, place) = (mention.tensor, mention.place);
            let bounds = bounds.entry((tensor, place)).or_insert_with(|| self.bounds(tensor, place));
            let outside = bounds.iter().find(|(domain, _)| !domain.contains(mention.value));
            let Some((domain, declared)) = outside else { continue };
            let symbols = &self.draft.program.symbols;
            let (value, domain) = (symbols.show(mention.value), show(domain, symbols));
            let message = format!("`{value}` is outside the domain {domain} of this place");
            let report =
                Refusal::new(Code::OutOfDomain, mention.span, message).label(*declared, "the domain");
            self.refused.domains.push(report);
        }
    }

    /// Tuples of files, and of arrays that run along places of a relation, outside a declared or supplied domain: the first of each
    /// place. What is written one by one is [mentioned](Self::check_written).
    fn check_given(&mut self) {
        for tensor in self.tensor_ids() {
            let entry = self.draft.program.tensor(tensor);
            let facts = entry.given.iter().filter_map(|given| match given {
                Given::Facts(facts) if facts.spans.is_empty() => Some(facts.as_ref()),
                _ => None,
            });
            let facts: Vec<&Facts> = facts.collect();
            for place in (0..entry.places.len()).filter(|_| !facts.is_empty()) {
                let bounds = self.bounds(tensor, place);
                for facts in &facts {
                    let outside = |at: &usize| {
                        let value = *facts.tuple(*at).get(place)?;
                        bounds.iter().find(|(domain, _)| !domain.contains(value))
                    };
                    let found = (0..facts.count).find_map(|at| Some((at, outside(&at)?)));
                    let Some((at, (domain, declared))) = found else { continue };
                    let symbols = &self.draft.program.symbols;
                    let tuple: Vec<String> =
                        facts.tuple(at).iter().map(|value| symbols.show(*value)).collect();
                    let message = format!(
                        "tuple number {}, ({}), is outside the domain {} of its place {}",
                        at + 1,
                        tuple.join(", "),
                        show(domain, symbols),
                        place + 1
                    );
                    let report =
                        Refusal::new(Code::OutOfDomain, facts.source, message).label(*declared, "the domain");
                    self.refused.domains.push(report);
                }
            }
        }
    }

    /// The domains that hold all that may be written at a place, and where they are declared or supplied: that of its class,
    /// and that of an index of a relation, which may have as many values and other ones.
    fn bounds(&self, tensor: TensorId, place: usize) -> Vec<(Domain, Span)> {
        let class = self.classes.place(tensor, place);
        let source = self.classes.source(class).filter(|source| {
            // Layers `l` and `l+1` of a computed tensor may be one more than what is supplied.
            let computed = self.draft.program.tensor(tensor).role == Role::Computed;
            !(!source.declared && computed && self.moved(tensor, class))
        });
        let own = source.map(|source| (source.domain.clone(), source.span()));
        own.into_iter().chain(self.limit(tensor, place)).collect()
    }

    /// Whether an equation writes the class, or reads the tensor there, through an index function.
    fn moved(&self, tensor: TensorId, class: usize) -> bool {
        let moves = |function: &IndexFn| !matches!(function, IndexFn::Const(_) | IndexFn::Index(_));
        self.draft.program.equations.iter().any(|equation| {
            let mut places = equation.head.iter().enumerate();
            let mut found = places
                .any(|(at, function)| moves(function) && self.classes.place(equation.tensor, at) == class);
            equation.visit_reads(&mut |read, _| {
                found |= read.tensor == tensor
                    && read.arguments.iter().enumerate().any(|(at, argument)| {
                        matches!(argument, Argument::At(function) if moves(function))
                            && self.classes.place(tensor, at) == class
                    });
            });
            found
        })
    }

    /// The domains of a computed tensor's places: the smallest that hold what its left sides
    /// and its given parts write.
    fn computed_places(&mut self, id: TensorId) {
        let tensor = self.draft.program.tensor(id);
        if tensor.style == Style::Round || tensor.role != Role::Computed {
            return;
        }
        for place in 0..self.draft.program.tensor(id).places.len() {
            let class = self.classes.place(id, place);
            let mut values = self.parts(id, place);
            let mut bound_by_relation = None;
            for equation in self.equations.get(&id).cloned().unwrap_or_default() {
                let equation = self.draft.program.equation(equation);
                let Some(function) = equation.head.get(place) else { continue };
                let (span, symbols) = (equation.head_span, &self.draft.program.symbols);
                match interval::values(&self.draft.program, function) {
                    interval::Values::Listed(listed) => values.extend(listed.into_iter().map(|v| (v, span))),
                    interval::Values::Between(from, to) if from <= to => {
                        values.extend([(Const::Int(from), span), (Const::Int(to), span)]);
                    }
                    interval::Values::Between(..) => {}
                    interval::Values::Unknown => {
                        let of_index = function.alone().is_some();
                        let settled = self.classes.source(class).is_some()
                            || self.classes.domain(class, symbols).is_err();
                        let count = |id| Some(self.range_len(id));
                        let bounds =
                            bounds_where_defined(function, &|id| self.reach(equation, id, 0), &count);
                        match bounds.filter(|_| !of_index || !settled) {
                            Some((from, to)) => {
                                values.extend([(Const::Int(from), span), (Const::Int(to), span)]);
                            }
                            None => bound_by_relation = Some(span),
                        }
                    }
                }
            }
            let symbols = &self.draft.program.symbols;
            if bound_by_relation.is_some() {
                match self.classes.domain(class, symbols) {
                    Ok(Some(Domain::Interval { from, to })) if to >= from => {
                        values
                            .extend([(Const::Int(from), Span::default()), (Const::Int(to), Span::default())]);
                    }
                    Ok(domain) => {
                        values.extend(domain.iter().flat_map(Domain::values).map(|v| (v, Span::default())));
                    }
                    Err(mixed) => {
                        self.mixed(class, mixed);
                        values.clear();
                    }
                }
            }
            let ordered = self.in_declared_order(id, place, &values);
            let domain = match ordered {
                Some(domain) => domain,
                None => match hull(&values, &self.draft.program.symbols) {
                    Ok(domain) => domain.unwrap_or(Domain::size(0)),
                    Err(mixed) => {
                        self.mixed(class, mixed);
                        Domain::size(0)
                    }
                },
            };
            if let Some(entry) = self.draft.program.tensors[id.0 as usize].places.get_mut(place) {
                entry.domain = Some(domain);
            }
        }
        self.place_arrays(id);
    }

    /// The domains of a computed relation's places, where a square reference reads them and nothing is declared: what
    /// is written there by index functions too (N6.3 speaks of constants; `P(m) = H[m]` writes others).
    fn relation_places(&mut self, id: TensorId) {
        let tensor = self.draft.program.tensor(id);
        if tensor.style == Style::Square || tensor.role != Role::Computed {
            return;
        }
        let equations: Vec<EquationId> = self.equations.get(&id).cloned().unwrap_or_default();
        for place in 0..self.draft.program.tensor(id).places.len() {
            let entry = &self.draft.program.tensor(id).places[place];
            let class = self.classes.place(id, place);
            let declared = self.classes.source(class).is_some_and(|source| source.declared);
            // Integers and symbols together are no domain, and the integers alone do not hold the symbols.
            let mixed = self.classes.domain(class, &self.draft.program.symbols).is_err();
            if entry.limit.is_some() || declared || mixed {
                continue;
            }
            let known = match &entry.domain {
                None => None,
                Some(Domain::Interval { from, to }) => Some((*from, *to)),
                Some(Domain::Listed(_)) => continue,
            };
            let written = equations.iter().filter_map(|equation| {
                let equation = self.draft.program.equation(*equation);
                let inner = |index| self.reach(equation, index, 0);
                bounds_where_defined(equation.head.get(place)?, &inner, &|id| Some(self.range_len(id)))
            });
            let held = known.into_iter().chain(written).filter(|(from, to)| from <= to);
            let hull = held.reduce(|(a, b), (from, to)| (a.min(from), b.max(to)));
            if let Some((from, to)) = hull
                && let Some(entry) = self.draft.program.tensors[id.0 as usize].places.get_mut(place)
            {
                entry.domain = Some(Domain::Interval { from, to });
            }
        }
    }

    /// The domains of a recursive relation's places hold what square references ask for by constants, where nothing is
    /// declared: rules carry its tuples beyond what is supplied, and nobody knows how far before they are run.
    fn asked_places(&mut self, id: TensorId) {
        let tensor = self.draft.program.tensor(id);
        if tensor.style == Style::Square || tensor.role != Role::Computed {
            return;
        }
        for place in 0..self.draft.program.tensor(id).places.len() {
            let class = self.classes.place(id, place);
            let declared = self.classes.source(class).is_some_and(|source| source.declared);
            let entry = &self.draft.program.tensor(id).places[place];
            let Some(Domain::Interval { from, to }) = entry.domain else { continue };
            if entry.limit.is_some() || declared || from > to {
                continue;
            }
            let (mut least, mut most) = (from, to);
            for equation in &self.draft.program.equations {
                equation.visit_reads(&mut |read, _| {
                    let asked = (read.tensor == id && read.otherwise != Otherwise::Absent)
                        .then(|| read.arguments.get(place).and_then(Argument::function));
                    if let Some(Some(IndexFn::Const(value))) = asked
                        && let Some(value) = value.int()
                    {
                        (least, most) = (least.min(value), most.max(value));
                    }
                });
            }
            if let Some(entry) = self.draft.program.tensors[id.0 as usize].places.get_mut(place) {
                entry.domain = Some(Domain::Interval { from: least, to: most });
            }
        }
    }

    /// Between which integers an index lies that tuples or an assignment bind.
    fn reach(&self, equation: &Equation, index: IndexId, depth: usize) -> Option<(i64, i64)> {
        if depth > 16 {
            return None;
        }
        let inner =
            |other: IndexId| if other == index { None } else { self.reach(equation, other, depth + 1) };
        // Where it belongs to a scope within, that binds it.
        let bodies =
            || scopes(equation).into_iter().filter(|own| own.index == index).flat_map(|own| own.bodies);
        match &self.draft.program.index(index).range {
            Range::Domain(domain) => extent(domain),
            Range::Computed => bodies().flat_map(|(_, when)| &when.guards).find_map(|guard| {
                let Guard::Bind(own, function) = guard else { return None };
                (*own == index).then(|| bounds_with(function, &inner)).flatten()
            }),
            Range::Tuples => {
                let reach = Reach { inference: self, index };
                let all =
                    bodies().map(|(body, when)| reach.expr(body).and(reach.when(when))).reduce(Within::or);
                match all {
                    Some(Within::Between(from, to)) if from <= to => Some((from, to)),
                    _ => None,
                }
            }
        }
    }

    /// Symbols in the declared order of their class, or of an index that stands there alone (in
    /// a query it joins no class).
    fn in_declared_order(&self, id: TensorId, place: usize, values: &[(Const, Span)]) -> Option<Domain> {
        let source = self.classes.source(self.classes.place(id, place)).map(|source| &source.domain);
        let heads = self.equations.get(&id).into_iter().flatten();
        let mut alone = heads.filter_map(|equation| {
            let index = self.draft.program.equation(*equation).head.get(place)?.alone()?;
            self.draft.indices.get(index.0 as usize)?.declared.as_ref()
        });
        let order = source.or_else(|| alone.next())?;
        if matches!(order, Domain::Interval { .. }) {
            return None;
        }
        let wanted: HashSet<Const> = values.iter().map(|(value, _)| *value).collect();
        let inside = wanted.iter().all(|value| order.contains(*value));
        inside.then(|| Domain::listed(order.values().filter(|value| wanted.contains(value))))
    }

    /// Parameters that nothing reads: the domains of their classes, or `unknown-size`.
    fn parameters_left(&mut self) {
        for id in self.tensor_ids() {
            let tensor = self.draft.program.tensor(id);
            if tensor.role != Role::Parameter {
                continue;
            }
            let open: Vec<usize> = tensor
                .places
                .iter()
                .enumerate()
                .filter(|(_, p)| p.domain.is_none())
                .map(|(at, _)| at)
                .collect();
            for place in open {
                let class = self.classes.place(id, place);
                let known = self.classes.domain(class, &self.draft.program.symbols).ok().flatten();
                if known.is_none() {
                    self.unknown_size(id, place);
                }
                if let Some(entry) = self.draft.program.tensors[id.0 as usize].places.get_mut(place) {
                    entry.domain = Some(known.unwrap_or(Domain::size(0)));
                }
            }
        }
    }

    fn unknown_size(&mut self, id: TensorId, place: usize) {
        let declaration = self.draft.declarations.iter().find(|d| d.tensor == id && d.place == place);
        let read = self.draft.alone.iter().find(|alone| alone.tensor == id && alone.place == place);
        let (span, name) = match (declaration, read) {
            (Some(declaration), _) => (declaration.span, declaration.name.clone()),
            (None, Some(alone)) => (alone.span, self.draft.program.index(alone.index).name.clone()),
            (None, None) => (self.draft.program.tensor(id).span, format!("{place}")),
        };
        let message =
            format!("nothing says how many values `{name}` has in `{}`", self.draft.program.name(id));
        let report = Refusal::new(Code::UnknownSize, span, message).help(format!("declare it: `{name} : 4`"));
        self.refused.domains.push(report);
    }

    /// Slices are labelled by both their numbers.
    fn labels(&mut self) {
        let program = &mut self.draft.program;
        for action in &mut program.actions {
            let crate::program::Action::Query(query) = action else { continue };
            let Form::Values(labels) = &mut query.form else { continue };
            let equation = program.equations.iter().find(|equation| {
                equation.tensor == query.tensor && program.tensors[query.tensor.0 as usize].hidden
            });
            let Some(equation) = equation else { continue };
            for (label, index) in labels.iter_mut().zip(&equation.left) {
                let slice = self.draft.indices.get(index.0 as usize).and_then(|note| note.slice);
                let Some((from, to)) = slice else { continue };
                let range = &program.indices[index.0 as usize].range;
                let (first, last) = match range {
                    Range::Domain(Domain::Interval { from, to }) => (*from, to + 1),
                    Range::Domain(listed) => (0, listed.len() as i64),
                    _ => (0, 0),
                };
                *label = format!("{}:{}", from.unwrap_or(first), to.unwrap_or(last));
            }
        }
    }

    /// Slices of places that hold symbols, between integers.
    fn check_slices(&mut self) {
        let entries = self.draft.indices.iter().zip(&self.draft.program.indices);
        for (_, index) in entries.filter(|(note, _)| !matches!(note.slice, None | Some((None, None)))) {
            if let Range::Domain(domain @ Domain::Listed(_)) = &index.range
                && !domain.is_empty()
            {
                let message = "a slice lies between two integers, and the values of this place are symbols";
                let report = Refusal::new(Code::SymbolAsNumber, index.span, message);
                self.refused.domains.push(report.help("write `:` for all of them, or a single symbol"));
            }
        }
    }

    /// Symbols used as numbers.
    fn check_numbers(&mut self) {
        for (index, span) in &self.draft.numeric_uses {
            let symbolic = match &self.draft.program.index(*index).range {
                Range::Domain(domain) => {
                    !domain.is_empty() && domain.values().all(|value| value.int().is_none())
                }
                Range::Tuples => {
                    let class = self.classes.index(*index);
                    match self.classes.domain(class, &self.draft.program.symbols) {
                        Ok(Some(domain)) => {
                            !domain.is_empty() && domain.value(0).is_some_and(|value| value.int().is_none())
                        }
                        _ => false,
                    }
                }
                Range::Computed => false,
            };
            if symbolic {
                let name = &self.draft.program.index(*index).name;
                let message = format!("the values of `{name}` are symbols and have no number");
                let span = *span;
                self.refused.domains.push(Refusal::new(Code::SymbolAsNumber, span, message));
            }
        }
    }

    fn range_len(&self, id: IndexId) -> i64 {
        match &self.draft.program.index(id).range {
            Range::Domain(domain) => i64::try_from(domain.len()).unwrap_or(i64::MAX),
            Range::Tuples | Range::Computed => {
                let class = self.classes.index(id);
                let domain = self.classes.domain(class, &self.draft.program.symbols).ok().flatten();
                domain.map_or(0, |domain| i64::try_from(domain.len()).unwrap_or(i64::MAX))
            }
        }
    }
}

/// A domain in words.
pub fn show(domain: &Domain, symbols: &crate::value::Symbols) -> String {
    match domain {
        Domain::Interval { from, to } => format!("{from}..{to}"),
        Domain::Listed(_) => {
            let shown: Vec<String> = domain.values().take(8).map(|value| symbols.show(value)).collect();
            let more = if domain.len() > 8 { ", …" } else { "" };
            format!("{{{}{more}}}", shown.join(", "))
        }
    }
}

/// Every index of an equation, with the part of the equation that binds it.
fn scopes(equation: &Equation) -> Vec<Scoped<'_>> {
    let mut found = Vec::new();
    for id in &equation.left {
        found
            .push(Scoped { index: *id, bodies: equation.terms.iter().map(|t| (&t.body, &t.when)).collect() });
    }
    for term in &equation.terms {
        for id in term.over.iter().chain(&term.when.exists) {
            found.push(Scoped { index: *id, bodies: vec![(&term.body, &term.when)] });
        }
        inner(&term.body, &mut found);
        inner_when(&term.when, &mut found);
    }
    found
}

/// An index and what must be present for each of its bindings.
struct Scoped<'a> {
    index: IndexId,
    bodies: Vec<(&'a Expr, &'a When)>,
}

fn inner<'a>(expr: &'a Expr, found: &mut Vec<Scoped<'a>>) {
    if let Expr::Reduce(reduce) = expr {
        for id in reduce.over.iter().chain(&reduce.when.exists) {
            found.push(Scoped { index: *id, bodies: vec![(&reduce.body, &reduce.when)] });
        }
    }
    let (parts, when) = expr.parts();
    for part in parts {
        inner(part, found);
    }
    let Some(when) = when else { return };
    if !matches!(expr, Expr::Reduce(_)) {
        for id in &when.exists {
            found.push(Scoped { index: *id, bodies: vec![(&NOTHING, when)] });
        }
    }
    inner_when(when, found);
}

static NOTHING: Expr = Expr::Number(1.0);

fn inner_when<'a>(when: &'a When, found: &mut Vec<Scoped<'a>>) {
    for guard in &when.guards {
        if let Guard::Compare(_, left, right) = guard {
            inner(left, found);
            inner(right, found);
        }
    }
}
