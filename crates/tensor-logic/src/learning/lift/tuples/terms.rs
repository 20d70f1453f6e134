//! What a term reads under each of its bindings: the relations that bind its indices, and the tuples whose numbers it
//! computes with.
//!
//! Enter at [`of_term`].

use std::collections::{BTreeMap, BTreeSet};

use super::kinds::{Kind, Kinds};
use crate::program::{
    Argument, Combine, Equation, Expr, Guard, IndexFn, IndexId, Kind as Type, Otherwise, Program, Range,
    Read, Role, Style, TensorId, Term, When,
};
use crate::walk::{guard_indices, read_indices};

/// A tensor, and the places that make its tuples; the others stay.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Shape {
    pub(super) tensor: TensorId,
    /// Those that are merged.
    pub(super) tuple: Vec<usize>,
    /// Those within whose constants tuples are merged.
    pub(super) group: Vec<usize>,
}

/// A tuple that a term reads: of which shape, and what stands in its places, those of the group first.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Column {
    pub(super) shape: Shape,
    pub(super) functions: Vec<IndexFn>,
    pub(super) otherwise: Otherwise,
    /// Whether no binding is without such a tuple.
    pub(super) binds: bool,
}

/// A term.
#[derive(Debug, Default)]
pub(super) struct Terms {
    /// The indices of its bindings.
    pub(super) indices: Vec<IndexId>,
    /// Those of them that the term keeps.
    pub(super) kept: Vec<IndexId>,
    /// What binds them: factors, whose values are multiplied, and guards.
    pub(super) factors: Vec<Read>,
    pub(super) guards: Vec<Guard>,
    pub(super) exists: Vec<IndexId>,
    pub(super) columns: Vec<Column>,
}

impl Terms {
    /// Whether its bindings say anything: of a head whose tuples are merged, to which of them it contributes, and of what it
    /// reads, which tuples.
    pub(super) fn says(&self, merged: bool) -> bool {
        merged || !self.indices.is_empty() || !self.columns.is_empty()
    }
}

/// What is asked while terms are looked at.
pub(super) struct Look<'a> {
    pub(super) program: &'a Program,
    pub(super) kinds: &'a Kinds,
    /// What parameters change.
    pub(super) changing: &'a BTreeSet<TensorId>,
    /// Of these the tuples are merged.
    pub(super) lifted: &'a BTreeSet<TensorId>,
    /// Of each tensor its component.
    pub(super) components: &'a BTreeMap<TensorId, usize>,
}

impl Look<'_> {
    /// Whether no parameter changes a tensor.
    fn is_still(&self, id: TensorId) -> bool {
        !self.changing.contains(&id) && self.program.tensor(id).role != Role::Parameter
    }

    /// The shape of a tensor whose tuples are merged.
    pub(super) fn shape(&self, tensor: TensorId) -> Shape {
        let places = 0..self.program.tensor(tensor).places.len();
        let of = |kind| places.clone().filter(|at| self.kinds.of_place(tensor, *at) == kind).collect();
        Shape { tensor, tuple: of(Kind::Tuple), group: of(Kind::Group) }
    }

    fn makes_tuples(&self, index: IndexId) -> bool {
        self.kinds.of_index(index) != Kind::Block
    }
}

/// A term of an equation; `None` where a scope inside of it binds what makes tuples.
pub(super) fn of_term(look: &Look<'_>, equation: &Equation, term: &Term) -> Option<Terms> {
    let own: Vec<IndexId> = equation.left.iter().chain(&term.over).copied().collect();
    let mut scan =
        Scan { look, tensor: equation.tensor, own: &own, terms: Terms::default(), kept: BTreeSet::new() };
    let combine = look.program.tensor(equation.tensor).combine;
    scan.when(&term.when)?;
    scan.factors(combine, &term.body)?;
    // What a head computes with stays, in a block of a merged tuple too: `N[i, c] = concat(E[i, j])` goes over `j`.
    let stays = |at: usize| {
        !look.lifted.contains(&equation.tensor) || look.kinds.of_place(equation.tensor, at) == Kind::Block
    };
    let heads = equation.head.iter().enumerate().filter(|(at, _)| stays(*at));
    heads.for_each(|(_, function)| scan.keep(function));
    let Scan { mut terms, kept, .. } = scan;
    let mut bound: Vec<IndexId> = Vec::new();
    terms.factors.iter().for_each(|read| read_indices(read, &mut |index| bound.push(index)));
    terms.guards.iter().for_each(|guard| guard_indices(guard, &mut |index| bound.push(index)));
    let columns = terms.columns.iter().flat_map(|column| &column.functions);
    columns.for_each(|function| function.visit(&mut |index| bound.push(index)));
    for index in own {
        let kind = look.kinds.of_index(index);
        let asked = bound.contains(&index) || kind != Kind::Block || kept.contains(&index);
        if !asked || terms.indices.contains(&index) {
            continue;
        }
        terms.indices.push(index);
        if kind != Kind::Tuple || kept.contains(&index) {
            terms.kept.push(index);
        }
    }
    let is_bound = |index: &IndexId| match look.program.index(*index).range {
        Range::Domain(_) => true,
        Range::Tuples => {
            let reads = terms.factors.iter().chain(terms.guards.iter().filter_map(read_of));
            let mut round = reads.filter(|read| read.otherwise == Otherwise::Absent);
            let mut columns = terms.columns.iter().filter(|column| column.binds);
            round.any(|read| read.arguments.iter().any(|argument| is(argument.function(), *index)))
                || columns.any(|column| column.functions.iter().any(|function| is(Some(function), *index)))
        }
        Range::Computed => {
            terms.guards.iter().any(|guard| matches!(guard, Guard::Bind(bound, _) if bound == index))
        }
    };
    if !terms.indices.iter().all(is_bound) {
        return None;
    }
    // What reads no tuples stays as it is.
    let merges = terms.indices.iter().any(|index| look.kinds.of_index(*index) == Kind::Tuple);
    Some(if merges { terms } else { Terms::default() })
}

fn is(function: Option<&IndexFn>, index: IndexId) -> bool {
    function.and_then(IndexFn::alone) == Some(index)
}

fn read_of(guard: &Guard) -> Option<&Read> {
    match guard {
        Guard::Read(read) => Some(read),
        _ => None,
    }
}

struct Scan<'a, 'l> {
    look: &'a Look<'l>,
    /// What the term contributes to.
    tensor: TensorId,
    /// The indices of the term.
    own: &'a [IndexId],
    terms: Terms,
    kept: BTreeSet<IndexId>,
}

impl Scan<'_, '_> {
    fn when(&mut self, when: &When) -> Option<()> {
        for guard in &when.guards {
            let mut own = false;
            guard_indices(guard, &mut |index| own |= when.exists.contains(&index));
            if is_asked(self.look, self.own, when, guard) {
                self.terms.guards.push(guard.clone());
                continue;
            }
            if own {
                return None;
            }
            self.guard(guard, &mut Vec::new())?;
            if let Guard::Read(read) = guard {
                self.bind(read);
            }
        }
        self.terms.exists.extend(&when.exists);
        Some(())
    }

    /// The factors of a term: relations that bind, and all else.
    fn factors(&mut self, combine: Combine, body: &Expr) -> Option<()> {
        match body {
            Expr::Product(parts) => parts.iter().try_for_each(|part| self.factors(combine, part)),
            Expr::Read(read) if self.is_round(read) && binds(self.look, read) => {
                let plain = self.look.program.tensor(read.tensor).kind == Type::Bool;
                if plain || combine == Combine::Sum {
                    self.terms.factors.push(read.clone());
                    return Some(());
                }
                self.terms.guards.push(Guard::Read(read.clone()));
                self.read(read, &[])
            }
            Expr::Missing(read) if binds(self.look, read) => {
                self.terms.guards.push(Guard::Not(read.clone()));
                Some(())
            }
            Expr::Read(read) => {
                self.read(read, &[])?;
                self.bind(read);
                Some(())
            }
            other => self.expr(other, &mut Vec::new()),
        }
    }

    /// The tuples of a relation that is there already bind as those of data do.
    fn bind(&mut self, read: &Read) {
        let tensor = self.look.program.tensor(read.tensor);
        let before = self.look.components.get(&read.tensor) != self.look.components.get(&self.tensor);
        if tensor.style == Style::Round
            && read.otherwise == Otherwise::Absent
            && self.look.lifted.contains(&read.tensor)
            && before
            && let Some(column) = self.column(read, &[])
        {
            let same = self.terms.columns.iter_mut().filter(|other| **other == column);
            same.for_each(|column| column.binds = true);
        }
    }

    fn is_round(&self, read: &Read) -> bool {
        let round = self.look.program.tensor(read.tensor).style == Style::Round;
        round && read.otherwise == Otherwise::Absent
    }

    fn keep(&mut self, function: &IndexFn) {
        let look = self.look;
        function.visit(&mut |index| {
            if look.makes_tuples(index) {
                self.kept.insert(index);
            }
        });
    }

    fn guard(&mut self, guard: &Guard, inside: &mut Vec<IndexId>) -> Option<()> {
        match guard {
            Guard::Read(read) | Guard::Not(read) => self.read(read, inside),
            Guard::CompareIndex(_, a, b) => {
                self.keep(a);
                self.keep(b);
                Some(())
            }
            Guard::Compare(_, a, b) => {
                self.expr(a, inside)?;
                self.expr(b, inside)
            }
            Guard::Bind(_, function) => {
                self.keep(function);
                Some(())
            }
        }
    }

    fn inside(&mut self, when: &When, inside: &mut Vec<IndexId>) -> Option<()> {
        if when.exists.iter().any(|index| self.look.makes_tuples(*index)) {
            return None;
        }
        let before = inside.len();
        inside.extend(&when.exists);
        when.guards.iter().try_for_each(|guard| self.guard(guard, inside))?;
        inside.truncate(before);
        Some(())
    }

    fn expr(&mut self, expr: &Expr, inside: &mut Vec<IndexId>) -> Option<()> {
        let before = inside.len();
        match expr {
            Expr::Read(read) | Expr::Missing(read) => return self.read(read, inside),
            Expr::Index(function) => self.keep(function),
            Expr::Reduce(reduce) => {
                if reduce.over.iter().any(|index| self.look.makes_tuples(*index)) {
                    return None;
                }
                inside.extend(&reduce.over);
            }
            Expr::Axis(axis) if axis.axes.iter().any(|index| self.look.makes_tuples(*index)) => return None,
            _ => {}
        }
        let (parts, when) = expr.parts();
        parts.into_iter().try_for_each(|part| self.expr(part, inside))?;
        when.map_or(Some(()), |when| self.inside(when, inside))?;
        inside.truncate(before);
        Some(())
    }

    /// A read that stays: of tuples that are merged, or of indices that are kept.
    fn read(&mut self, read: &Read, inside: &[IndexId]) -> Option<()> {
        let look = self.look;
        let functions: Vec<Option<&IndexFn>> = read.arguments.iter().map(Argument::function).collect();
        if shape_of(look, read, inside).is_none() {
            functions.into_iter().flatten().for_each(|function| self.keep(function));
            return Some(());
        }
        let column = self.column(read, inside)?;
        for (at, function) in functions.into_iter().enumerate() {
            if !column.shape.tuple.contains(&at) {
                function.into_iter().for_each(|function| self.keep(function));
            }
        }
        let known = self.terms.columns.iter().any(|other| Column { binds: false, ..other.clone() } == column);
        if !known {
            self.terms.columns.push(column);
        }
        Some(())
    }

    /// The tuple of a read whose tuples are merged; `None` where a scope inside binds a part of it.
    fn column(&self, read: &Read, inside: &[IndexId]) -> Option<Column> {
        let shape = shape_of(self.look, read, inside)?;
        let mut functions = Vec::new();
        for at in shape.group.iter().chain(&shape.tuple) {
            let function = read.arguments.get(*at)?.function()?;
            let mut bound = true;
            function.visit(&mut |index| bound &= !inside.contains(&index));
            functions.push(bound.then(|| function.clone())?);
        }
        Some(Column { shape, functions, otherwise: read.otherwise, binds: false })
    }
}

/// Whether a guard of a term with these indices is asked once: it is of data, and of what makes tuples.
pub(super) fn is_asked(look: &Look<'_>, own: &[IndexId], when: &When, guard: &Guard) -> bool {
    let (mut asked, mut still) = (false, true);
    guard_indices(guard, &mut |index| {
        asked |= when.exists.contains(&index) || (look.makes_tuples(index) && own.contains(&index));
    });
    if let Guard::Bind(index, _) = guard {
        asked |= look.makes_tuples(*index);
    }
    When::from(vec![guard.clone()]).visit_reads(&mut |read, _| still &= look.is_still(read.tensor));
    asked && still
}

/// Whether a read is of data, at indices that make tuples.
pub(super) fn binds(look: &Look<'_>, read: &Read) -> bool {
    let mut has = false;
    read_indices(read, &mut |index| has |= look.makes_tuples(index));
    has && look.is_still(read.tensor)
}

/// The shape of the tuples that a read reads, if they are merged.
pub(super) fn shape_of(look: &Look<'_>, read: &Read, inside: &[IndexId]) -> Option<Shape> {
    if look.lifted.contains(&read.tensor) {
        return Some(look.shape(read.tensor));
    }
    if !look.is_still(read.tensor) {
        return None;
    }
    let mut shape = Shape { tensor: read.tensor, tuple: Vec::new(), group: Vec::new() };
    for (at, argument) in read.arguments.iter().enumerate() {
        let Some(function) = argument.function() else { continue };
        let (mut tuple, mut group, mut loose) = (false, false, false);
        function.visit(&mut |index| {
            tuple |= look.kinds.of_index(index) == Kind::Tuple;
            group |= look.kinds.of_index(index) == Kind::Group;
            loose |= inside.contains(&index);
        });
        match (tuple, group) {
            _ if loose => {}
            (true, _) => shape.tuple.push(at),
            (false, true) => shape.group.push(at),
            _ => {}
        }
    }
    (!shape.tuple.is_empty()).then_some(shape)
}
