//! The domains of what is given: places of relations, of data and of parameters, and where the
//! entries of an array for a part stand.

use crate::ast::Span;
use crate::domains::Inference;
use crate::domains::classes::{Mixed, hull};
use crate::error::{Code, Refusal};
use crate::program::{Facts, Given, Role, Style, TensorId};
use crate::value::{Const, Domain, element};

impl Inference<'_> {
    /// The places of relations and of what is given.
    pub(super) fn given_places(&mut self) {
        for id in self.tensor_ids() {
            for place in 0..self.draft.program.tensor(id).places.len() {
                let class = self.classes.place(id, place);
                let limit = self.limit(id, place).map(|(domain, _)| domain);
                let tensor = self.draft.program.tensor(id);
                let domain = match (tensor.style, tensor.role) {
                    (Style::Round, _) => {
                        self.classes.domain(class, &self.draft.program.symbols).ok().flatten()
                    }
                    (Style::Square, Role::Data) => self.data_place(id, place, class),
                    (Style::Square, Role::Parameter) => self.classes.source(class).map(|s| s.domain.clone()),
                    (Style::Square, _) => None,
                };
                if let Some(entry) = self.draft.program.tensors[id.0 as usize].places.get_mut(place) {
                    entry.domain = domain;
                    entry.limit = limit;
                }
            }
            let tensor = self.draft.program.tensor(id);
            match (tensor.style, tensor.role) {
                (_, Role::Missing) => drop(self.poisoned.insert(id)),
                (Style::Square, Role::Data) => self.place_arrays(id),
                _ => {}
            }
        }
    }

    /// The declared domain of an index that stands alone in a relation's place, and where it is declared.
    pub(super) fn limit(&self, id: TensorId, place: usize) -> Option<(Domain, Span)> {
        if self.draft.program.tensor(id).style == Style::Square {
            return None;
        }
        let mut alone = self
            .draft
            .alone
            .iter()
            .filter(|alone| !alone.query && alone.tensor == id && alone.place == place);
        let read = alone.find_map(|alone| self.classes.declared(alone.index));
        let read = read.map(|source| (source.domain.clone(), source.span()));
        let mut declared = self.draft.declarations.iter().filter(|d| d.tensor == id && d.place == place);
        read.or_else(|| {
            declared.find_map(|declaration| Some((declaration.declared.clone()?, declaration.span)))
        })
    }

    /// A place of a given square tensor: the declared or supplied domain of its class, or the
    /// smallest interval that holds its parts.
    fn data_place(&mut self, id: TensorId, place: usize, class: usize) -> Option<Domain> {
        if let Some(source) = self.classes.source(class) {
            return Some(source.domain.clone());
        }
        let parts = self.parts(id, place);
        match hull(&parts, &self.draft.program.symbols) {
            Ok(domain) => Some(domain.unwrap_or(Domain::size(0))),
            Err(mixed) => {
                self.mixed(class, mixed);
                Some(Domain::size(0))
            }
        }
    }

    /// Refuses integers and symbols in one place, at the constant if it is written in the class.
    pub(super) fn mixed(&mut self, class: usize, mixed: Mixed) {
        let symbols = &self.draft.program.symbols;
        let Mixed { first, other } = self.classes.domain(class, symbols).err().unwrap_or(mixed);
        let (one, two) = (symbols.show(first.0), symbols.show(other.0));
        let message =
            format!("`{one}` and `{two}` meet in one place: integers and symbols have no domain together");
        let report = Refusal::new(Code::MixedDomain, other.1, message);
        let report = report.label(first.1, format!("`{one}` here"));
        let help = "use a relation in round brackets, or constants of one kind";
        self.refused.domains.push(report.help(help));
    }

    /// The constants that the given parts of a tensor name at a place.
    pub(super) fn parts(&self, id: TensorId, place: usize) -> Vec<(Const, Span)> {
        let tensor = self.draft.program.tensor(id);
        let mut parts = Vec::new();
        for given in &tensor.given {
            match given {
                // No text gives columns.
                Given::Columns(_) => {}
                Given::Facts(facts) => {
                    for at in 0..facts.count {
                        let span = facts.spans.get(at).copied().unwrap_or(facts.source);
                        parts.extend(facts.tuple(at).get(place).map(|value| (*value, span)));
                    }
                }
                Given::Array { fixed, shape, span, .. } => match fixed.get(place) {
                    Some(Some(value)) => parts.push((*value, *span)),
                    _ => {
                        let open = fixed.iter().take(place).filter(|value| value.is_none()).count();
                        let size = shape.get(open).copied().unwrap_or(0);
                        let entries = self.entries(id, place, size);
                        let ends = [0, size.saturating_sub(1)];
                        let held: Vec<Const> = match &entries {
                            Domain::Interval { .. } => {
                                ends.into_iter().filter_map(|at| entries.value(at)).collect()
                            }
                            Domain::Listed(_) => entries.values().take(size).collect(),
                        };
                        parts.extend(held.into_iter().map(|value| (value, *span)));
                    }
                },
            }
        }
        parts
    }

    /// The values that the entries of an array stand for at a place that it leaves open: those of
    /// the declared or supplied domain in its order, else 0, 1, ….
    fn entries(&self, id: TensorId, place: usize, size: usize) -> Domain {
        let source = self.classes.source(self.classes.place(id, place)).map(|source| &source.domain);
        source.filter(|domain| size <= domain.len()).cloned().unwrap_or(Domain::size(size))
    }

    /// Arrays for a part whose entries are not the first values of the tensor's places, because
    /// another left side writes before them, become facts that say where each entry stands.
    pub(super) fn place_arrays(&mut self, id: TensorId) {
        let tensor = self.draft.program.tensor(id);
        let mut placed: Vec<(usize, Facts)> = Vec::new();
        for (nth, given) in tensor.given.iter().enumerate() {
            let Given::Array { fixed, shape, values, span } = given else { continue };
            let mut sizes = shape.iter().copied();
            let mut axes: Vec<(Domain, usize)> = Vec::new();
            let mut moved = false;
            for (place, (fixed, entry)) in fixed.iter().zip(&tensor.places).enumerate() {
                let axis = match fixed {
                    Some(value) => (Domain::listed([*value]), 1),
                    None => {
                        let size = sizes.next().unwrap_or(0);
                        let entries = self.entries(id, place, size);
                        let domain = entry.domain.as_ref();
                        let held = |at| domain.and_then(|domain| domain.value(at));
                        moved |= (0..size).any(|at| entries.value(at) != held(at));
                        (entries, size)
                    }
                };
                axes.push(axis);
            }
            if !moved {
                continue;
            }
            let axes: Vec<Domain> =
                axes.iter().map(|(domain, size)| Domain::listed(domain.values().take(*size))).collect();
            let mut facts = Facts { arity: axes.len(), source: *span, ..Facts::default() };
            for (at, value) in values.iter().enumerate() {
                facts.push(&element(&axes, at), *value, None);
            }
            placed.push((nth, facts));
        }
        for (nth, facts) in placed {
            if let Some(given) = self.draft.program.tensors[id.0 as usize].given.get_mut(nth) {
                *given = Given::Facts(std::sync::Arc::new(facts));
            }
        }
    }
}
