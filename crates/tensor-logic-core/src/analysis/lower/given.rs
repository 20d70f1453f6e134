//! Facts, arrays, files and start values.

use std::collections::HashSet;
use std::sync::Arc;

use super::files::{FileSource, Loaded, Wanted};
use super::{Context, Mention};
use crate::ast::{self, Array, Item, PlaceKind, Reference, Span};
use crate::digits;
use crate::error::{Code, Refusal, Warning};
use crate::program::{Action, Combine, Facts, Given, Kind, Place, Start, Style, TensorId};
use crate::value::Const;

impl<'a> Context<'a> {
    /// A bare reference: a declaration of places, or a fact.
    pub(super) fn bare(&mut self, reference: &Reference) {
        let Some(tensor) = self.seen(&reference.name.text) else { return };
        let alone = |place: &ast::Place| match &place.kind {
            PlaceKind::Index(expr) => match &expr.kind {
                ast::IndexKind::Index(name) => Some((name.clone(), expr.span)),
                _ => None,
            },
            _ => None,
        };
        let declaration = reference.places.iter().all(|place| alone(place).is_some());
        if declaration && !(reference.places.is_empty() && reference.brackets == ast::Brackets::Round) {
            let names: Vec<_> = reference.places.iter().filter_map(alone).collect();
            for (place, (name, span)) in names.into_iter().enumerate() {
                let declared = self.declared(&name);
                self.draft.declarations.push(super::Declaration { tensor, place, name, declared, span });
            }
            return;
        }
        let one = match self.draft.program.tensor(tensor).kind {
            Kind::Tropical => 0.0,
            Kind::MaxMin => f64::INFINITY,
            _ => 1.0,
        };
        self.fact(tensor, reference, one, reference.span);
    }

    /// Two numbers that add up to a number of a statement about this tensor, where it is a count that one
    /// number does not hold. Refused, if somebody needs it, where it has no 64 bits or is not `added`.
    pub(super) fn literal(
        &mut self,
        tensor: TensorId,
        left: Span,
        number: &ast::Number,
        added: bool,
    ) -> Option<[f64; 2]> {
        let entry = self.draft.program.tensor(tensor);
        let lost = digits::lost(number).filter(|_| entry.kind == Kind::Count)?;
        match lost {
            Ok(whole) if added => Some(digits::halves(whole)),
            _ => {
                let report = digits::written(&entry.name, left, number);
                self.draft.program.rounded.push((tensor, report));
                None
            }
        }
    }

    /// Refuses what is given for a tensor that counts and is no whole number.
    fn whole_number(&mut self, name: &str, value: f64, span: Span) {
        let counts = self.names.tensors.get(name).is_some_and(|tensor| tensor.kind == Kind::Count);
        if counts && value.fract() != 0.0 {
            let message = format!("`{name}` has the type `count`, and {value} is no whole number");
            self.refuse(Refusal::new(Code::TypeConflict, span, message).help("write `: real`"));
        }
    }

    /// Whether what is given for a tensor several times is added up.
    pub(super) fn adds(&self, tensor: TensorId) -> bool {
        self.draft.program.tensor(tensor).combine == Combine::Sum
    }

    /// A fact with its value.
    pub(super) fn fact(&mut self, tensor: TensorId, reference: &Reference, value: f64, span: Span) {
        self.whole_number(&reference.name.text, value, span);
        let mut tuple = Vec::new();
        for (place, at) in reference.places.iter().enumerate() {
            let PlaceKind::Index(expr) = &at.kind else { return };
            let Some(function) = self.index_fn(expr, &mut |_, _, _| None) else { return };
            let crate::program::IndexFn::Const(value) = function else { return };
            tuple.push(value);
            self.draft.mentions.push(Mention { tensor, place, value, written: true, span: at.span });
        }
        let given = &mut self.draft.program.tensors[tensor.0 as usize].given;
        // Facts that follow each other share one block.
        if !matches!(given.last(), Some(Given::Facts(facts)) if !facts.spans.is_empty()) {
            let arity = tuple.len();
            given.push(Given::Facts(Arc::new(Facts { arity, ..Facts::default() })));
        }
        if let Some(Given::Facts(facts)) = given.last_mut() {
            Arc::make_mut(facts).push(&tuple, value, Some(span));
        }
    }

    /// The numbers of an array, row-major, and what is to be added to them where they are counts that one number does not
    /// hold; empty if there are none.
    fn literals(&mut self, tensor: TensorId, left: Span, array: &Array, values: &mut [f64]) -> Vec<f64> {
        let mut rest = Vec::new();
        let mut open: Vec<&Item> = array.items.iter().rev().collect();
        let mut at = 0;
        while let Some(item) = open.pop() {
            match item {
                Item::Array(inner) => open.extend(inner.items.iter().rev()),
                Item::Number(number) => {
                    if let Some([high, low]) = self.literal(tensor, left, number, self.adds(tensor)) {
                        values[at] = high;
                        rest.resize(values.len(), 0.0);
                        rest[at] = low;
                    }
                    at += 1;
                }
            }
        }
        rest
    }

    /// An array for all places, or for those that the left side leaves open by bare indices.
    pub(super) fn array(&mut self, tensor: TensorId, head: &Reference, array: &Array) {
        let mut shape = Vec::new();
        let mut values = Vec::new();
        flatten(array, 0, &mut shape, &mut values);
        if let Some(value) = values.iter().find(|value| value.fract() != 0.0) {
            self.whole_number(&head.name.text, *value, array.span);
        }
        let rest = self.literals(tensor, head.span, array, &mut values);
        let mut fixed = Vec::new();
        for (place, at) in head.places.iter().enumerate() {
            let PlaceKind::Index(expr) = &at.kind else { return };
            if let ast::IndexKind::Index(name) = &expr.kind {
                let declared = self.declared(name);
                let (name, span) = (name.clone(), expr.span);
                self.draft.declarations.push(super::Declaration { tensor, place, name, declared, span });
                fixed.push(None);
                continue;
            }
            let function = self.index_fn(expr, &mut |_, _, _| None);
            let Some(crate::program::IndexFn::Const(value)) = function else { return };
            self.draft.mentions.push(Mention { tensor, place, value, written: true, span: at.span });
            fixed.push(Some(value));
        }
        if head.brackets == ast::Brackets::None {
            fixed = vec![None; shape.len()];
        }
        if self.draft.program.tensor(tensor).style == Style::Round {
            self.listed(tensor, head, &fixed, &shape, &values, array.span);
            if !rest.is_empty() {
                self.listed(tensor, head, &fixed, &shape, &rest, array.span);
            }
            return;
        }
        if !rest.is_empty() {
            self.give(tensor, fixed.clone(), shape.clone(), rest.into(), array.span);
        }
        self.give(tensor, fixed, shape, values.into(), array.span);
    }

    /// An array for a relation: a valued tuple for each entry.
    fn listed(
        &mut self,
        tensor: TensorId,
        head: &Reference,
        fixed: &[Option<Const>],
        shape: &[usize],
        values: &[f64],
        span: Span,
    ) {
        let mut sizes = shape.iter();
        let mut places = Vec::new();
        for (nth, value) in fixed.iter().enumerate() {
            if let Some(value) = value {
                places.push(vec![*value]);
                continue;
            }
            let size = sizes.next().copied().unwrap_or(0);
            let declared = match head.places.get(nth).map(|place| &place.kind) {
                Some(PlaceKind::Index(ast::IndexExpr { kind: ast::IndexKind::Index(name), .. })) => {
                    self.declared(name).filter(|domain| domain.len() == size)
                }
                _ => None,
            };
            places.push(declared.unwrap_or(crate::value::Domain::size(size)).values().collect::<Vec<_>>());
        }
        let mut facts = Facts { arity: places.len(), source: span, ..Facts::default() };
        for (nth, value) in values.iter().enumerate() {
            let mut rest = nth;
            let mut tuple = Vec::new();
            for place in places.iter().rev().filter(|place| !place.is_empty()) {
                tuple.extend(place.get(rest % place.len()).copied());
                rest /= place.len();
            }
            tuple.reverse();
            facts.push(&tuple, *value, None);
        }
        self.draft.program.tensors[tensor.0 as usize].given.push(Given::Facts(Arc::new(facts)));
    }

    pub(super) fn give(
        &mut self,
        tensor: TensorId,
        fixed: Vec<Option<Const>>,
        shape: Vec<usize>,
        values: Arc<[f64]>,
        span: Span,
    ) {
        let entry = &mut self.draft.program.tensors[tensor.0 as usize];
        if entry.style == Style::Square {
            entry.given.push(Given::Array { fixed, shape, values, span });
        }
    }

    /// A file.
    pub(super) fn file(
        &mut self,
        tensor: TensorId,
        head: &Reference,
        file: &ast::Text,
        options: &[ast::Name],
        files: &mut dyn FileSource,
    ) {
        // The places that the left side names.
        for (place, at) in head.places.iter().enumerate() {
            if let PlaceKind::Index(expr) = &at.kind
                && let ast::IndexKind::Index(name) = &expr.kind
            {
                let declared = self.declared(name);
                let (name, span) = (name.clone(), expr.span);
                self.draft.declarations.push(super::Declaration { tensor, place, name, declared, span });
            }
        }
        let wanted = Wanted { tensor: &head.name.text, file, options };
        let loaded = match files.load(&wanted, &mut self.draft.program.symbols) {
            Ok(loaded) => loaded,
            Err(report) => return self.refuse(report),
        };
        let found = match &loaded {
            Loaded::Facts(facts) => facts.arity,
            Loaded::Array { shape, .. } => shape.len(),
        };
        // A tensor that is only read as a whole has the rank of its file.
        let places = &mut self.draft.program.tensors[tensor.0 as usize].places;
        if places.is_empty() && self.names.tensors.get(&head.name.text).is_some_and(|name| !name.rank_known) {
            *places = vec![Place { domain: None, limit: None, star: false }; found];
        }
        let rank = places.len();
        let empty = matches!(&loaded, Loaded::Facts(facts) if facts.count == 0);
        if found != rank && !empty {
            let name = &self.draft.program.tensor(tensor).name;
            let message = format!("`{}` holds {found} places, and `{name}` has {rank}", file.value);
            return self.refuse(Refusal::new(Code::FileFormat, file.span, message));
        }
        let values = match &loaded {
            Loaded::Facts(facts) => facts.values.as_slice(),
            Loaded::Array { values, .. } => values,
        };
        if let Some(value) = values.iter().find(|value| value.fract() != 0.0) {
            self.whole_number(&head.name.text, *value, file.span);
        }
        match loaded {
            Loaded::Facts(mut facts) => {
                facts.source = file.span;
                facts.arity = rank;
                self.given_twice(&head.name.text, &facts, file);
                self.whole(tensor, &mut facts, file);
                self.draft.program.tensors[tensor.0 as usize].given.push(Given::Facts(Arc::new(facts)));
            }
            Loaded::Array { shape, values, rest } => {
                let (open, mut values, mut rest) = (vec![None; shape.len()], values, rest);
                if self.draft.program.tensor(tensor).style == Style::Round {
                    // As an array in the text: a tuple with a value for each entry.
                    self.listed(tensor, head, &open, &shape, &values, file.span);
                    if self.draft.program.tensor(tensor).kind == Kind::Count && !rest.is_empty() {
                        self.listed(tensor, head, &open, &shape, &rest, file.span);
                    }
                    return;
                }
                if self.draft.program.tensor(tensor).kind == Kind::Count && !rest.is_empty() {
                    self.digits(tensor, &mut values, &mut rest, file);
                    self.give(tensor, open.clone(), shape.clone(), rest, file.span);
                }
                self.give(tensor, open, shape, values, file.span);
            }
        }
    }

    /// Warns of a tuple that a file gives a value twice, as of two such facts.
    fn given_twice(&mut self, name: &str, facts: &Facts, file: &ast::Text) {
        if facts.values.is_empty() {
            return;
        }
        let mut seen = HashSet::with_capacity(facts.count);
        let again = (0..facts.count).map(|at| facts.tuple(at)).filter(|tuple| !seen.insert(*tuple));
        let again: Vec<&[Const]> = again.collect();
        let Some(first) = again.first() else { return };
        let tuple = self.draft.program.show_tuple(&first.to_vec());
        let more = match again.len() {
            1 => String::new(),
            count => format!(", and {} more values come again so", count - 1),
        };
        let message =
            format!("`{}` gives `{name}({tuple})` a value twice{more}: they are combined", file.value);
        self.draft.warnings.push(Warning::new(Code::DuplicateFact, file.span, message));
    }

    /// The integers of an array in a file as two numbers each that have all their digits.
    fn digits(&mut self, tensor: TensorId, values: &mut Arc<[f64]>, rest: &mut Arc<[f64]>, file: &ast::Text) {
        let (mut high, mut low) = (values.to_vec(), rest.to_vec());
        for (high, low) in high.iter_mut().zip(&mut low).filter(|(_, low)| **low != 0.0) {
            let whole = *high as i128 + *low as i128;
            if !self.adds(tensor) {
                let name = &self.draft.program.tensor(tensor).name;
                let report = digits::too_large(name, file.span, &whole.to_string());
                return self.draft.program.rounded.push((tensor, report));
            }
            if let Ok(whole) = i64::try_from(whole) {
                [*high, *low] = digits::halves(whole);
            }
        }
        (*values, *rest) = (high.into(), low.into());
    }

    /// Gives the integers of a file that have more digits than one number as two facts each.
    fn whole(&mut self, tensor: TensorId, facts: &mut Facts, file: &ast::Text) {
        let whole = std::mem::take(&mut facts.whole);
        let entry = self.draft.program.tensor(tensor);
        if entry.kind != Kind::Count {
            return;
        }
        if let Some((_, count)) = whole.first().filter(|_| !self.adds(tensor)) {
            let report = digits::too_large(&entry.name, file.span, &count.to_string());
            return self.draft.program.rounded.push((tensor, report));
        }
        for (at, count) in whole {
            let [high, low] = digits::halves(count);
            facts.values[at] = high;
            let tuple = facts.tuple(at).to_vec();
            facts.push(&tuple, low, None);
        }
    }

    /// A parameter and where it starts.
    pub(super) fn parameter(&mut self, reference: &Reference, start: &ast::Start) {
        self.bare_places(reference);
        let Some(tensor) = self.seen(&reference.name.text) else { return };
        let start = match start {
            ast::Start::Array(array) => {
                let (mut shape, mut values) = (Vec::new(), Vec::new());
                flatten(array, 0, &mut shape, &mut values);
                Start::Array { shape, values: values.into() }
            }
            ast::Start::Number(number) => Start::Number(number.value),
            ast::Start::Call { name, arguments, .. } => {
                let numbers: Vec<f64> = arguments
                    .iter()
                    .filter_map(|value| match value {
                        ast::Value::Number(number) => Some(number.value),
                        ast::Value::Name(name) => self.names.constants.get(&name.text).map(|n| n.value),
                        ast::Value::Text(_) => None,
                    })
                    .collect();
                let number = |at: usize, default: f64| numbers.get(at).copied().unwrap_or(default);
                let wrong = match name.text.as_str() {
                    "normal" if number(1, 1.0) < 0.0 => Some("a standard deviation is not negative"),
                    "uniform" if number(0, 0.0) > number(1, 1.0) => Some("the lower end stands first"),
                    _ => None,
                };
                if let Some(wrong) = wrong {
                    let message = format!("`{}` takes other numbers: {wrong}", name.text);
                    self.refuse(Refusal::new(Code::BadArgument, name.span, message));
                }
                match name.text.as_str() {
                    "normal" => Start::Normal(number(0, 0.0), number(1, 1.0)),
                    "uniform" => Start::Uniform(number(0, 0.0), number(1, 1.0)),
                    "he" => Start::He,
                    "zeros" => Start::Number(0.0),
                    "ones" => Start::Number(1.0),
                    _ => Start::Glorot,
                }
            }
        };
        let entry = &mut self.draft.program.tensors[tensor.0 as usize];
        if entry.start.as_ref().is_some_and(|before| *before != start) {
            let message = format!("`{}` starts in two ways", entry.name);
            let report = Refusal::new(Code::BadArgument, reference.span, message);
            return self.refuse(report.help("one statement with `~` says where it starts"));
        }
        entry.start = Some(start);
    }

    /// The places of a declaration.
    fn bare_places(&mut self, reference: &Reference) {
        let indices = reference.places.iter().all(|place| {
            matches!(&place.kind, PlaceKind::Index(expr) if matches!(expr.kind, ast::IndexKind::Index(_)))
        });
        if indices && !reference.places.is_empty() {
            self.bare(reference);
        }
    }

    pub(super) fn write(&mut self, span: Span, file: &ast::Text, reference: &Reference) {
        let mut indices = Vec::new();
        for place in &reference.places {
            match &place.kind {
                PlaceKind::Index(ast::IndexExpr { kind: ast::IndexKind::Index(name), .. })
                    if !indices.contains(&name) =>
                {
                    indices.push(name);
                }
                _ => {
                    let name = &reference.name.text;
                    let message =
                        format!("a file holds the whole of `{name}`, whatever stands in its places");
                    let help = format!("write `{name}`, or what an equation or a rule makes of a part of it");
                    return self.refuse(Refusal::new(Code::BadArgument, place.span, message).help(help));
                }
            }
        }
        if let Some(tensor) = self.seen(&reference.name.text) {
            let file = file.value.clone();
            self.draft.program.actions.push(Action::Write { file, tensor, span });
        }
    }
}

/// The sizes and values of a nested array whose rows are known to be of equal lengths.
pub(super) fn flatten(array: &Array, depth: usize, shape: &mut Vec<usize>, values: &mut Vec<f64>) {
    if shape.len() == depth {
        shape.push(array.items.len());
    }
    for item in &array.items {
        match item {
            Item::Array(inner) => flatten(inner, depth + 1, shape, values),
            Item::Number(number) => values.push(number.value),
        }
    }
}
