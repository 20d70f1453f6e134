//! Classes of places (N6): two places are in one class if one index stands alone in both within
//! one statement.
//!
//! A union-find over all places of all tensors and all indices. A class may have a *source*: a
//! declared or supplied domain. Where two sources of different sizes meet, the occurrence that
//! joins them is refused (`size-conflict`).

use crate::ast::Span;
use crate::error::{Code, Refusal};
use crate::lower::Draft;
use crate::names::Names;
use crate::program::{Facts, Given, IndexId, Start, Style, TensorId};
use crate::value::{Const, Domain, Symbols};

/// Where the size of a class comes from.
#[derive(Debug, Clone)]
pub(super) struct Origin {
    pub(super) domain: Domain,
    pub(super) declared: bool,
    span: Span,
    name: String,
}

impl Origin {
    /// Where the domain is declared or supplied.
    pub(super) fn span(&self) -> Span {
        self.span
    }
}

/// The classes of a program.
#[derive(Debug)]
pub(super) struct Classes {
    parents: Vec<usize>,
    sources: Vec<Option<Origin>>,
    /// First node of each tensor's places.
    offsets: Vec<usize>,
    /// First node of the indices.
    indices: usize,
    /// By root: constants written in the class, each once, with the first place.
    written: Vec<Vec<(Const, Span)>>,
    /// By root: constants read in the class.
    read: Vec<Vec<Const>>,
}

impl Classes {
    /// Builds the classes; conflicts of sizes are reported.
    pub(super) fn build(draft: &Draft, names: &Names, reports: &mut Vec<Refusal>) -> Classes {
        let mut offsets = Vec::new();
        let mut next = 0;
        for tensor in &draft.program.tensors {
            offsets.push(next);
            next += tensor.places.len();
        }
        let total = next + draft.indices.len();
        let mut classes = Classes {
            parents: (0..total).collect(),
            sources: vec![None; total],
            offsets,
            indices: next,
            written: Vec::new(),
            read: Vec::new(),
        };
        classes.supply(draft, reports);
        classes.join(draft, names, reports);
        classes.mention(draft);
        classes
    }

    pub(super) fn place(&self, tensor: TensorId, place: usize) -> usize {
        self.root(self.offsets.get(tensor.0 as usize).map_or(0, |offset| offset + place))
    }

    pub(super) fn index(&self, index: IndexId) -> usize {
        self.root(self.indices + index.0 as usize)
    }

    fn root(&self, mut node: usize) -> usize {
        while let Some(parent) = self.parents.get(node)
            && *parent != node
        {
            node = *parent;
        }
        node
    }

    /// The declared or supplied domain of a class.
    pub(super) fn source(&self, class: usize) -> Option<&Origin> {
        self.sources.get(class)?.as_ref()
    }

    /// The domain that an index itself declares, whatever its class has.
    pub(super) fn declared(&self, index: IndexId) -> Option<&Origin> {
        self.sources.get(self.indices + index.0 as usize)?.as_ref().filter(|source| source.declared)
    }

    /// Constants written in the class, with their first places.
    pub(super) fn written(&self, class: usize) -> &[(Const, Span)] {
        self.written.get(class).map_or(&[], Vec::as_slice)
    }

    /// Constants read in the class.
    pub(super) fn read(&self, class: usize) -> &[Const] {
        self.read.get(class).map_or(&[], Vec::as_slice)
    }

    /// The domain of a class: declared, supplied, or the smallest that holds its constants.
    /// `None` where it has none.
    pub(super) fn domain(&self, class: usize, symbols: &Symbols) -> Result<Option<Domain>, Mixed> {
        if let Some(source) = self.source(class) {
            return Ok(Some(source.domain.clone()));
        }
        hull(self.written(class), symbols)
    }

    fn supply(&mut self, draft: &Draft, reports: &mut Vec<Refusal>) {
        let symbols = &draft.program.symbols;
        for (at, tensor) in draft.program.tensors.iter().enumerate() {
            let start = tensor.start.iter().filter_map(|start| match start {
                Start::Array { shape, .. } => Some((shape, tensor.span)),
                _ => None,
            });
            let given = tensor.given.iter().filter_map(|given| match given {
                Given::Array { fixed, shape, span, .. } if fixed.iter().all(Option::is_none) => {
                    Some((shape, *span))
                }
                _ => None,
            });
            for (shape, span) in start.chain(given) {
                for (place, size) in shape.iter().enumerate().take(tensor.places.len()) {
                    let node = self.place(TensorId(at as u32), place);
                    let name = tensor.name.clone();
                    let source = Origin { domain: Domain::size(*size), declared: false, span, name };
                    let known = self.sources.get(node).cloned().flatten();
                    let merged = merge(known, Some(source), &place.to_string(), span, symbols);
                    self.settle(node, merged, reports);
                }
            }
        }
    }

    fn join(&mut self, draft: &Draft, names: &Names, reports: &mut Vec<Refusal>) {
        enum Event<'a> {
            Declared(usize, &'a str, &'a Domain),
            Alone(usize, usize, &'a str),
        }
        let mut events: Vec<(Span, Event<'_>)> = Vec::new();
        for declaration in &draft.declarations {
            if let Some(domain) = &declaration.declared {
                let node = self.place(declaration.tensor, declaration.place);
                events.push((declaration.span, Event::Declared(node, &declaration.name, domain)));
            }
        }
        for alone in draft.alone.iter().filter(|alone| !alone.query) {
            let place = self.offsets.get(alone.tensor.0 as usize).map_or(0, |offset| offset + alone.place);
            let index = self.indices + alone.index.0 as usize;
            events.push((alone.span, Event::Alone(place, index, &draft.program.index(alone.index).name)));
        }
        for (at, note) in draft.indices.iter().enumerate() {
            if let Some(domain) = &note.declared {
                let name = &draft.program.indices[at].name;
                let span = names.indices.get(name).map_or(draft.program.indices[at].span, |d| d.span);
                let source = Origin { domain: domain.clone(), declared: true, span, name: name.clone() };
                if let Some(slot) = self.sources.get_mut(self.indices + at) {
                    *slot = Some(source);
                }
            }
        }
        events.sort_by_key(|(span, _)| span.start);
        let symbols = &draft.program.symbols;
        for (span, event) in events {
            match event {
                Event::Declared(node, name, domain) => {
                    let declared = names.indices.get(name).map_or(span, |d| d.span);
                    let source = Origin {
                        domain: domain.clone(),
                        declared: true,
                        span: declared,
                        name: name.to_owned(),
                    };
                    let root = self.root(node);
                    let known = self.sources.get(root).cloned().flatten();
                    let merged = merge(known, Some(source), name, span, symbols);
                    self.settle(root, merged, reports);
                }
                Event::Alone(place, index, name) => {
                    let (a, b) = (self.shortened(place), self.shortened(index));
                    if a == b {
                        continue;
                    }
                    let (mine, other) =
                        (self.sources.get(b).cloned().flatten(), self.sources.get(a).cloned().flatten());
                    let merged = merge(mine, other, name, span, symbols);
                    if merged.is_ok()
                        && let Some(parent) = self.parents.get_mut(b)
                    {
                        *parent = a;
                    }
                    self.settle(a, merged, reports);
                }
            }
        }
        (0..self.parents.len()).for_each(|node| {
            self.shortened(node);
        });
        self.ask(draft, names);
    }

    /// The root of a node, to which all nodes on the way then point.
    fn shortened(&mut self, node: usize) -> usize {
        let root = self.root(node);
        let mut at = node;
        while at != root
            && let Some(parent) = self.parents.get_mut(at)
        {
            at = std::mem::replace(parent, root);
        }
        root
    }

    /// A declared index in a query cuts no rule, but facts of the relation that it asks for must
    /// lie in its domain where nothing else gives one.
    fn ask(&mut self, draft: &Draft, names: &Names) {
        for alone in draft.alone.iter().filter(|alone| alone.query) {
            let round = draft.program.tensor(alone.tensor).style == Style::Round;
            let declared = draft.indices.get(alone.index.0 as usize).and_then(|note| note.declared.clone());
            let (true, Some(domain)) = (round, declared) else { continue };
            let name = draft.program.index(alone.index).name.clone();
            let span = names.indices.get(&name).map_or(alone.span, |d| d.span);
            let node = self.place(alone.tensor, alone.place);
            if let Some(slot) = self.sources.get_mut(node) {
                slot.get_or_insert(Origin { domain, declared: true, span, name });
            }
        }
    }

    fn settle(&mut self, root: usize, merged: Result<Option<Origin>, Refusal>, reports: &mut Vec<Refusal>) {
        match merged {
            Ok(source) => {
                if let Some(slot) = self.sources.get_mut(root) {
                    *slot = source;
                }
            }
            Err(report) => reports.push(report),
        }
    }

    fn mention(&mut self, draft: &Draft) {
        self.written = vec![Vec::new(); self.parents.len()];
        self.read = vec![Vec::new(); self.parents.len()];
        let mut known = std::collections::HashSet::new();
        let mut mentions: Vec<_> = draft.mentions.iter().collect();
        mentions.sort_by_key(|mention| mention.span.start);
        for mention in mentions {
            let class = self.place(mention.tensor, mention.place);
            if !mention.written {
                if let Some(read) = self.read.get_mut(class) {
                    read.push(mention.value);
                }
            } else if known.insert((class, mention.value))
                && let Some(written) = self.written.get_mut(class)
            {
                written.push((mention.value, mention.span));
            }
        }
        for (at, tensor) in draft.program.tensors.iter().enumerate() {
            for given in &tensor.given {
                if let Given::Array { fixed, shape, span, .. } = given {
                    let open = fixed.iter().enumerate().filter(|(_, value)| value.is_none());
                    for ((place, _), size) in open.zip(shape).filter(|(_, size)| **size > 0) {
                        let class = self.place(TensorId(at as u32), place);
                        for value in [Const::Int(0), Const::Int(*size as i64 - 1)] {
                            if known.insert((class, value))
                                && let Some(written) = self.written.get_mut(class)
                            {
                                written.push((value, *span));
                            }
                        }
                    }
                }
                let Given::Facts(facts) = given else { continue };
                if !facts.spans.is_empty() || facts.arity == 0 {
                    continue;
                }
                for place in 0..facts.arity {
                    let class = self.place(TensorId(at as u32), place);
                    for value in extent(facts, place) {
                        if known.insert((class, value))
                            && let Some(written) = self.written.get_mut(class)
                        {
                            written.push((value, facts.source));
                        }
                    }
                }
            }
        }
    }
}

/// What the constants of a place span: the smallest and the largest integer, and all symbols.
/// Files have millions of rows; only these decide the class's domain.
fn extent(facts: &Facts, place: usize) -> Vec<Const> {
    let mut ints: Option<(i64, i64)> = None;
    let (mut symbols, mut seen) = (Vec::new(), Vec::new());
    for value in facts.constants.iter().skip(place).step_by(facts.arity.max(1)) {
        match value {
            Const::Int(value) => {
                let (low, high) = ints.unwrap_or((*value, *value));
                ints = Some((low.min(*value), high.max(*value)));
            }
            Const::Symbol(id) => {
                let at = id.0 as usize;
                if seen.len() <= at {
                    seen.resize(at + 1, false);
                }
                if !std::mem::replace(&mut seen[at], true) {
                    symbols.push(*value);
                }
            }
        }
    }
    let ends = ints.into_iter().flat_map(|(low, high)| [Const::Int(low), Const::Int(high)]);
    ends.chain(symbols).collect()
}

/// Two sources meet: a declared domain wins over a size; different sizes are refused.
fn merge(
    first: Option<Origin>,
    second: Option<Origin>,
    name: &str,
    span: Span,
    symbols: &Symbols,
) -> Result<Option<Origin>, Refusal> {
    let (first, second) = match (first, second) {
        (Some(first), Some(second)) => (first, second),
        (first, second) => return Ok(first.or(second)),
    };
    let (a, b) = (first.domain.len(), second.domain.len());
    if a != b {
        let (early, late) =
            if first.span.start <= second.span.start { (&first, &second) } else { (&second, &first) };
        let count = |source: &Origin| format!("{} values of `{name}`", source.domain.len());
        let message = format!(
            "index `{name}` has {} values in `{}` and {} in `{}`",
            early.domain.len(),
            early.name,
            late.domain.len(),
            late.name
        );
        return Err(Refusal::new(Code::SizeConflict, span, message)
            .label(early.span, count(early))
            .label(late.span, count(late))
            .help("give both the same size, or use two index names"));
    }
    if first.declared && second.declared && first.domain != second.domain {
        let (early, late) =
            if first.span.start <= second.span.start { (&first, &second) } else { (&second, &first) };
        let words = |source: &Origin| super::show(&source.domain, symbols);
        let message = format!(
            "index `{name}` has the values {} in `{}` and {} in `{}`",
            words(early),
            early.name,
            words(late),
            late.name
        );
        return Err(Refusal::new(Code::SizeConflict, span, message)
            .label(early.span, words(early))
            .label(late.span, words(late))
            .help("give both the same values, or copy element by element: `B[z] = A[z-1]`"));
    }
    Ok(Some(if second.declared && !first.declared { second } else { first }))
}

/// Integers and symbols that stand in one place: the first constant, and the first of the other kind.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mixed {
    pub(super) first: (Const, Span),
    pub(super) other: (Const, Span),
}

/// The smallest interval that holds the integers, or the symbols in byte order.
pub(super) fn hull(constants: &[(Const, Span)], symbols: &Symbols) -> Result<Option<Domain>, Mixed> {
    let Some(first) = constants.first() else { return Ok(None) };
    let kind = first.0.int().is_some();
    if let Some(other) = constants.iter().find(|(value, _)| value.int().is_some() != kind) {
        return Err(Mixed { first: *first, other: *other });
    }
    if kind {
        let ints = || constants.iter().filter_map(|(value, _)| value.int());
        let (from, to) = (ints().min().unwrap_or(0), ints().max().unwrap_or(-1));
        return Ok(Some(Domain::Interval { from, to }));
    }
    let mut values: Vec<Const> = constants.iter().map(|(value, _)| *value).collect();
    values.sort_by(|a, b| symbols.compare(*a, *b));
    Ok(Some(Domain::listed(values)))
}
