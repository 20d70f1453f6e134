//! Ranges of the indices of one component's equations.
//!
//! An undeclared index that a round reference binds takes the values of its tuples. Another one
//! ranges over the largest set for which every read of a tensor outside the recursion is in
//! range; where no read limits it, over what reads give to its class elsewhere in the recursion,
//! over the domain of its class, or, where an index function of the recursion acts on the class,
//! between the smallest and the largest constant that anybody writes or asks for.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::classes::Mixed;
use super::interval::{Solver, hull};
use super::{Inference, binds, scopes};
use crate::error::{Code, Refusal};
use crate::presence::extent;
use crate::program::{
    Argument, Equation, EquationId, Expr, IndexFn, IndexId, Otherwise, Range, Read, Role, Sense, Style,
    TensorId,
};
use crate::value::{Const, Domain};

impl Inference<'_> {
    pub(super) fn component(&mut self, component: &[TensorId]) {
        let mut equations: Vec<EquationId> =
            component.iter().filter_map(|id| self.equations.get(id)).flatten().copied().collect();
        equations.sort();
        let recursive =
            component.len() > 1 || component.iter().any(|id| self.draft.program.reads_of(*id).contains(id));
        let own: HashSet<TensorId> =
            if recursive { component.iter().copied().collect() } else { HashSet::new() };
        self.poison(&equations, component);
        let mut open = Vec::new();
        for id in &equations {
            open.extend(self.open_indices(*id).into_iter().map(|index| (*id, index)));
        }
        let mut given = HashMap::new();
        for part in open.chunk_by(|(a, _), (b, _)| a == b) {
            let Some((id, _)) = part.first() else { continue };
            let mine = part.iter().map(|(_, index)| *index).collect();
            self.limit_by_reads(*id, mine, &own, &mut given);
        }
        let elsewhere = self.elsewhere(&open, &own, &given);
        for (equation, index) in open {
            if !given.contains_key(&index) {
                self.range_without_reads(equation, index, &own, &elsewhere);
            }
        }
        self.parameter_places(&equations);
        self.copies(&equations);
        self.concat_offsets(&equations);
        for id in component {
            self.computed_places(*id);
            // What a recursion writes is not known before it is run.
            match recursive {
                true => self.asked_places(*id),
                false => self.relation_places(*id),
            }
        }
    }

    /// Tensors that need one without data have no domains of their own.
    fn poison(&mut self, equations: &[EquationId], component: &[TensorId]) {
        let mut needs = false;
        for id in equations {
            self.draft
                .program
                .equation(*id)
                .visit_reads(&mut |read, _| needs |= self.poisoned.contains(&read.tensor));
        }
        if needs {
            self.poisoned.extend(component);
        }
    }

    /// The indices of an equation that are neither declared, computed nor bound by tuples.
    fn open_indices(&mut self, id: EquationId) -> Vec<IndexId> {
        let equation = self.draft.program.equation(id);
        let mut open = Vec::new();
        for scoped in scopes(equation) {
            let note = self.draft.indices.get(scoped.index.0 as usize);
            let settled = note.is_some_and(|note| note.declared.is_some() || note.copy_of.is_some());
            let computed = matches!(self.draft.program.index(scoped.index).range, Range::Computed);
            let sliced = note.is_some_and(|note| note.slice.is_some());
            let bound = !scoped.bodies.is_empty()
                && scoped.bodies.iter().all(|(body, when)| binds(scoped.index, body, when))
                && !scoped.bodies.iter().any(|(body, _)| is_free_axis(scoped.index, body));
            if !settled && !computed && (sliced || !bound) {
                open.push(scoped.index);
            }
        }
        open
    }

    /// Closes the indices that reads limit; `closed` gets their ranges.
    fn limit_by_reads(
        &mut self,
        id: EquationId,
        mut open: Vec<IndexId>,
        own: &HashSet<TensorId>,
        closed: &mut HashMap<IndexId, Domain>,
    ) {
        loop {
            let ready = |inference: &Inference<'_>, index: IndexId| {
                let limits = inference.limits(id, index, own, &open);
                (!limits.waiting && limits.domain.is_some()).then_some(limits.domain).flatten()
            };
            let found = open.iter().find_map(|index| ready(self, *index).map(|domain| (*index, domain)));
            let found: Vec<(IndexId, Domain)> = match found {
                Some(found) => vec![found],
                // Indices that limit each other: each keeps what the reads say in which it stands alone, all at once, so
                // that their order means nothing. Where a read of several is then outside, the binding is absent.
                None => open
                    .iter()
                    .filter_map(|index| {
                        let limits = self.limits(id, *index, own, &open);
                        limits.domain.filter(|_| limits.alone).map(|domain| (*index, domain))
                    })
                    .collect(),
            };
            if found.is_empty() {
                return;
            }
            for (index, domain) in found {
                open.retain(|other| *other != index);
                self.set_range(index, domain.clone());
                closed.insert(index, domain);
            }
        }
    }

    fn set_range(&mut self, index: IndexId, domain: Domain) {
        if let Some(entry) = self.draft.program.indices.get_mut(index.0 as usize) {
            entry.range = Range::Domain(domain);
        }
    }

    /// What the reads of an equation say of an index.
    ///
    /// Padding: a read that moves a declared index does not shrink the index beside it where another
    /// read limits that (`y : 5; C[y] = F[h] A[y+h-1]`: `h` is that of `F`).
    fn limits(&self, id: EquationId, index: IndexId, own: &HashSet<TensorId>, open: &[IndexId]) -> Limits {
        let equation = self.draft.program.equation(id);
        let mut limits = Limits::default();
        let mut padded = Limits::default();
        let mut unsolved = Vec::new();
        let range = |other: IndexId| match &self.draft.program.index(other).range {
            Range::Domain(domain) if !open.contains(&other) => extent(domain),
            _ => None,
        };
        for (read, place, function) in arguments_with(equation, index) {
            if own.contains(&read.tensor) || read.otherwise == Otherwise::Absent {
                continue;
            }
            let Some(domain) = self.place_domain(read.tensor, place) else { continue };
            if function.alone() == Some(index) {
                limits.alone = true;
                limits.meet(domain);
                continue;
            }
            let (mut waits, mut moves_declared) = (false, false);
            function.visit(&mut |other| {
                waits |= other != index && open.contains(&other);
                moves_declared |= other != index && self.is_declared(other);
            });
            let limits = if moves_declared { &mut padded } else { &mut limits };
            limits.waiting |= waits;
            let Some((low, high)) = extent(&domain) else { continue };
            if waits {
                continue;
            }
            match (Solver { index, range: &range }).solve(function, low, high) {
                Some((from, to)) => limits.meet(Domain::Interval { from, to }),
                None => unsolved.push((function, low, high)),
            }
        }
        if limits.domain.is_none() {
            limits.domain = padded.domain;
            limits.waiting |= padded.waiting;
        }
        limits.within(index, &unsolved);
        let note = self.draft.indices.get(index.0 as usize);
        if let Some((from, to)) = note.and_then(|note| note.slice) {
            let whole = limits.domain.clone().or_else(|| self.class_domain(index)).or_else(|| {
                // In a query a slice joins no class: what it reads says where it ends.
                let mut places = arguments_with(equation, index).into_iter();
                places.find_map(|(read, place, _)| self.place_domain(read.tensor, place))
            });
            if let Some(whole) = whole {
                limits.domain = Some(match whole {
                    Domain::Interval { from: low, to: high } => Domain::Interval {
                        from: from.unwrap_or(low).max(low),
                        to: to.map_or(high, |to| to.saturating_sub(1).min(high)),
                    },
                    // All of them, or refused: [`Self::check_slices`].
                    symbols => symbols,
                });
                limits.alone = true;
            }
        }
        limits
    }

    fn is_declared(&self, index: IndexId) -> bool {
        self.draft.indices.get(index.0 as usize).is_some_and(|note| note.declared.is_some())
    }

    fn class_domain(&self, index: IndexId) -> Option<Domain> {
        self.classes.domain(self.classes.index(index), &self.draft.program.symbols).ok().flatten()
    }

    /// The domain of a place as far as it is known; a relation without constants has an empty
    /// one.
    pub(super) fn place_domain(&self, tensor: TensorId, place: usize) -> Option<Domain> {
        let entry = self.draft.program.tensor(tensor);
        let domain = entry.places.get(place)?.domain.clone();
        if domain.is_none() && entry.style == Style::Round {
            let class = self.classes.place(tensor, place);
            return match self.classes.domain(class, &self.draft.program.symbols) {
                Ok(None) => Some(Domain::size(0)),
                Ok(domain) => domain,
                Err(_) => None,
            };
        }
        if self.poisoned.contains(&tensor) && domain.as_ref().is_some_and(Domain::is_empty) {
            return None;
        }
        domain
    }

    fn range_without_reads(
        &mut self,
        id: EquationId,
        index: IndexId,
        own: &HashSet<TensorId>,
        elsewhere: &Elsewhere,
    ) {
        let class = self.classes.index(index);
        let recursive = !own.is_empty();
        let places = self.places_within(id, index, own);
        let places = places.iter().filter_map(|place| elsewhere.places.get(place).cloned());
        let met = places.reduce(|met, other| intersect(&met, &other));
        let met = met.or_else(|| elsewhere.classes.get(&class).cloned());
        if let Some(domain) = met {
            return self.set_range(index, domain);
        }
        if let Some((class, mixed)) = self.sliced_mixture(id, index) {
            return self.mixed(class, mixed);
        }
        if self.rules.contains(&id) {
            return self.unbound(id, index);
        }
        if recursive && self.acted_by(own, class) && self.classes.source(class).is_none() {
            return self.range_between_constants(id, index, class);
        }
        match self.classes.domain(class, &self.draft.program.symbols) {
            Ok(Some(domain)) => self.set_range(index, domain),
            Ok(None) => self.unbound(id, index),
            Err(mixed) => {
                self.mixed(class, mixed);
                self.set_range(index, Domain::size(0));
            }
        }
    }

    /// What reads from outside give in a recursion. Of several ranges it is the smallest that all reads allow.
    fn elsewhere(
        &self,
        open: &[(EquationId, IndexId)],
        own: &HashSet<TensorId>,
        given: &HashMap<IndexId, Domain>,
    ) -> Elsewhere {
        let mut elsewhere = Elsewhere::default();
        if own.is_empty() {
            return elsewhere;
        }
        let mut known: Vec<(EquationId, IndexId, &Domain)> =
            open.iter().filter_map(|(id, index)| Some((*id, *index, given.get(index)?))).collect();
        known.sort_by_key(|(_, index, _)| *index);
        for (id, index, domain) in known {
            let meet = |met: &mut Domain| *met = intersect(met, domain);
            let class = elsewhere.classes.entry(self.classes.index(index));
            class.and_modify(meet).or_insert_with(|| domain.clone());
            for place in self.places_within(id, index, own) {
                elsewhere.places.entry(place).and_modify(meet).or_insert_with(|| domain.clone());
            }
        }
        elsewhere
    }

    /// The places of the recursion's tensors in which an index stands alone.
    fn places_within(
        &self,
        id: EquationId,
        index: IndexId,
        own: &HashSet<TensorId>,
    ) -> BTreeSet<(TensorId, usize)> {
        let equation = self.draft.program.equation(id);
        let head = equation.head.iter().enumerate().filter(|(_, function)| function.alone() == Some(index));
        let head = head.map(|(place, _)| (equation.tensor, place));
        let reads = arguments_with(equation, index).into_iter();
        let reads = reads.filter(|(_, _, function)| function.alone() == Some(index));
        let reads = reads.map(|(read, place, _)| (read.tensor, place));
        head.chain(reads).filter(|(tensor, _)| own.contains(tensor)).collect()
    }

    /// Integers and symbols in the place that a slice reads.
    fn sliced_mixture(&self, id: EquationId, index: IndexId) -> Option<(usize, Mixed)> {
        self.draft.indices.get(index.0 as usize)?.slice?;
        let places = arguments_with(self.draft.program.equation(id), index);
        places.into_iter().find_map(|(read, place, _)| {
            let class = self.classes.place(read.tensor, place);
            Some((class, self.classes.domain(class, &self.draft.program.symbols).err()?))
        })
    }

    /// Whether an index function of the recursion acts on the class.
    fn acted_by(&self, own: &HashSet<TensorId>, class: usize) -> bool {
        let is_function = |function: &IndexFn| !matches!(function, IndexFn::Const(_) | IndexFn::Index(_));
        let mut acts = false;
        for equation in self.draft.program.equations.iter().filter(|e| own.contains(&e.tensor)) {
            for (place, function) in equation.head.iter().enumerate() {
                acts |= is_function(function) && self.classes.place(equation.tensor, place) == class;
            }
            equation.visit_reads(&mut |read, _| {
                for (place, argument) in read.arguments.iter().enumerate() {
                    if let Argument::At(function) = argument {
                        let inside =
                            own.contains(&read.tensor) && self.classes.place(read.tensor, place) == class;
                        acts |= inside && is_function(function);
                    }
                }
            });
        }
        acts
    }

    /// The recursion is carried as far as somebody asks.
    fn range_between_constants(&mut self, id: EquationId, index: IndexId, class: usize) {
        let written = self.classes.written(class).iter().map(|(value, _)| *value);
        let constants = written.chain(self.classes.read(class).iter().copied());
        let ints: Vec<i64> = constants.filter_map(Const::int).collect();
        let (low, high) = match (ints.iter().min(), ints.iter().max()) {
            (Some(low), Some(high)) if !self.classes.read(class).is_empty() => (*low, *high),
            _ => {
                self.set_range(index, Domain::size(0));
                return self.unbounded(id, index);
            }
        };
        let (mut from, mut to) = (low, high);
        let equation = self.draft.program.equation(id);
        let range = |_: IndexId| None;
        for (place, function) in equation.head.iter().enumerate() {
            if self.classes.place(equation.tensor, place) != class {
                continue;
            }
            if let Some((a, b)) = (Solver { index, range: &range }).solve(function, low, high) {
                (from, to) = (from.max(a), to.min(b));
            }
        }
        self.set_range(index, Domain::Interval { from, to });
    }

    fn unbounded(&mut self, id: EquationId, index: IndexId) {
        let program = &self.draft.program;
        let equation = program.equation(id);
        let entry = program.index(index);
        if self.poisoned.contains(&equation.tensor) {
            return;
        }
        let (name, tensor) = (entry.name.clone(), program.name(equation.tensor).to_owned());
        let message = format!("nothing says where `{name}` ends in the recursion of `{tensor}`");
        let help = format!("declare its range, `{name} : 0..9`, or ask for one value of `{tensor}`");
        self.refused.recursion.push(Refusal::new(Code::UnboundedIndex, entry.span, message).help(help));
    }

    fn unbound(&mut self, id: EquationId, index: IndexId) {
        self.set_range(index, Domain::size(0));
        let equation = self.draft.program.equation(id);
        if self.poisoned.contains(&equation.tensor) || self.reads_open_parameter(equation, index) {
            return;
        }
        let entry = self.draft.program.index(index);
        let name = &entry.name;
        if self.draft.unknown.contains(name) {
            // Its declaration is refused.
            return;
        }
        let (message, help) = if equation.left.contains(&index) {
            let message = format!("nothing binds the index `{name}` of the left side");
            (message, format!("read a tensor with `{name}`, or declare it: `{name} : 4`"))
        } else {
            let message = format!("nothing binds the index `{name}`");
            (message, format!("put a positive literal with `{name}` beside it, or `_` for any value"))
        };
        self.refused.domains.push(Refusal::new(Code::UnboundIndex, entry.span, message).help(help));
    }

    /// Whether the index reads a parameter whose size nothing says: then that is the refusal.
    fn reads_open_parameter(&self, equation: &Equation, index: IndexId) -> bool {
        arguments_with(equation, index).into_iter().any(|(read, place, _)| {
            let tensor = self.draft.program.tensor(read.tensor);
            tensor.role == Role::Parameter
                && tensor.places.get(place).is_some_and(|place| place.domain.is_none())
        })
    }

    /// A place of a parameter has the range of the index that reads it.
    fn parameter_places(&mut self, equations: &[EquationId]) {
        let mut found = Vec::new();
        for id in equations {
            self.draft.program.equation(*id).visit_reads(&mut |read, _| {
                if self.draft.program.tensor(read.tensor).role != Role::Parameter {
                    return;
                }
                for (place, argument) in read.arguments.iter().enumerate() {
                    if let Argument::At(function) = argument {
                        found.push((read.tensor, place, function.clone()));
                    }
                }
            });
        }
        for (tensor, place, function) in found {
            let domain = match function.alone().map(|index| self.draft.program.index(index).range.clone()) {
                Some(Range::Domain(domain)) => Some(domain),
                Some(Range::Tuples) => function.alone().and_then(|index| self.class_domain(index)),
                _ => hull(&self.draft.program, &function).map(|(from, to)| Domain::Interval { from, to }),
            };
            let entry = self.draft.program.tensors.get_mut(tensor.0 as usize);
            if let Some(slot) = entry.and_then(|tensor| tensor.places.get_mut(place))
                && slot.domain.is_none()
            {
                slot.domain = domain.filter(|domain| !domain.is_empty());
            }
        }
    }

    /// `Dk` counts the range of `dk`; of what tuples bind at a computed place, or a guard computes, all between the ends.
    fn copies(&mut self, equations: &[EquationId]) {
        let mut copies = Vec::new();
        for id in equations {
            for scoped in scopes(self.draft.program.equation(*id)) {
                let note = self.draft.indices.get(scoped.index.0 as usize);
                if let Some(original) = note.and_then(|note| note.copy_of) {
                    copies.push((*id, scoped.index, original));
                }
            }
        }
        for (id, copy, original) in copies {
            let between = || {
                let (from, to) = self.reach(self.draft.program.equation(id), original, 0)?;
                Some(Domain::Interval { from, to })
            };
            let range = match self.draft.program.index(original).range.clone() {
                Range::Domain(domain) => Some(domain),
                Range::Tuples | Range::Computed => self.class_domain(original).or_else(between),
            };
            if range.is_none() && !self.poisoned.contains(&self.draft.program.equation(id).tensor) {
                let (size, index) = (self.draft.program.index(copy), self.draft.program.index(original));
                let message = format!("nothing says how many values `{}` has", index.name);
                let help = format!("declare its range, `{} : 4`, or write the number", index.name);
                self.refused.domains.push(Refusal::new(Code::UnboundIndex, size.span, message).help(help));
            }
            self.set_range(copy, range.unwrap_or(Domain::size(0)));
        }
    }
}

/// The ranges that reads from outside give in a recursion.
#[derive(Debug, Default)]
struct Elsewhere {
    /// To the indices that stand alone in a place of its tensors. They come first: another index of the class may be limited by
    /// what does not concern this one (`H[t+1, i] = H[t, i] A[k-1] M[i, k]`).
    places: HashMap<(TensorId, usize), Domain>,
    /// To all indices of a class.
    classes: HashMap<usize, Domain>,
}

/// What reads say of an index.
#[derive(Debug, Default)]
struct Limits {
    domain: Option<Domain>,
    /// Whether it stands alone in some read.
    alone: bool,
    /// Whether a function of it waits for the range of another index.
    waiting: bool,
}

impl Limits {
    fn meet(&mut self, domain: Domain) {
        self.domain = Some(match &self.domain {
            Some(known) => intersect(known, &domain),
            None => domain,
        });
    }

    /// Shortens the range at both ends to where these functions, of which nobody can say where they stay between two numbers,
    /// do: `A[i] A[i * i]` reads up to the root of what `A[i]` does.
    fn within(&mut self, index: IndexId, functions: &[(&IndexFn, i64, i64)]) {
        let mut alone: Vec<&(&IndexFn, i64, i64)> = Vec::new();
        for function in functions {
            let mut others = false;
            function.0.visit(&mut |other| others |= other != index);
            alone.extend((!others).then_some(function));
        }
        let Some(Domain::Interval { from, to }) = &mut self.domain else { return };
        let fits = |value: i64| {
            alone.iter().all(|(function, low, high)| {
                let found = function.evaluate(&|_| Some(Const::Int(value)), &|_| None).and_then(Const::int);
                found.is_some_and(|found| (*low..=*high).contains(&found))
            })
        };
        if !alone.is_empty() {
            while from <= to && !fits(*from) {
                *from += 1;
            }
            while from <= to && !fits(*to) {
                *to -= 1;
            }
        }
    }
}

fn intersect(a: &Domain, b: &Domain) -> Domain {
    match (a, b) {
        (Domain::Interval { from, to }, Domain::Interval { from: low, to: high }) => {
            Domain::Interval { from: *from.max(low), to: *to.min(high) }
        }
        (Domain::Interval { .. }, Domain::Listed(_)) => intersect(b, a),
        (Domain::Listed(_), _) => Domain::listed(a.values().filter(|value| b.contains(*value))),
    }
}

/// Whether softmax or lnorm runs along the index without binding it: its entries are then those
/// of a range, whatever a relation outside the argument says of the entry at hand.
fn is_free_axis(index: IndexId, expr: &Expr) -> bool {
    let here = match expr {
        Expr::Axis(axis) => axis.axes.contains(&index) && !binds(index, &axis.argument, &axis.when),
        _ => false,
    };
    here || expr.parts().0.into_iter().any(|part| is_free_axis(index, part))
}

fn mentions(function: &IndexFn, index: IndexId) -> bool {
    let mut found = false;
    function.visit(&mut |id| found |= id == index);
    found
}

/// The places of positive reads whose function holds the index.
fn arguments_with(equation: &Equation, index: IndexId) -> Vec<(&Read, usize, &IndexFn)> {
    let mut found = Vec::new();
    equation.visit_reads(&mut |read, sense| {
        if sense == Sense::Negative {
            return;
        }
        for (place, argument) in read.arguments.iter().enumerate() {
            if let Argument::At(function) = argument
                && mentions(function, index)
            {
                found.push((read, place, function));
            }
        }
    });
    found
}
