//! The tuples of a relation that holds blocks, numbered.
//!
//! Enter at [`Numbering::of`]. Where the tuples of `H(x, d)` follow from data, `Row(x, r)` numbers them, in their order, and the blocks are
//! a dense square tensor `B[r, d]`: who reads `H(y, d)` reads `B[r, d] | Row(y, r)`. An element is found by its row then, and not
//! each element by a row of its own.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::presence::Tuples;
use super::{has, tensor_of};
use crate::ast::Span;
use crate::engine::{Parameters, WIDEST};
use crate::program::{
    Argument, Class, Columns, Component, Equation, EquationId, Expr, Given, Guard, Index, IndexFn, IndexId,
    Kind, Otherwise, Place, Program, Range, Read, Reduce, Role, Style, Tensor, TensorId, Term, When,
};
use crate::rename::Renaming;
use crate::store::machine::{Machine, Stored};
use crate::store::relation::Relation;
use crate::value::{Const, Domain};
use crate::walk::{expr_indices, when_indices};

/// Relations that number tuples, by how many they are.
type Known = HashMap<usize, Vec<(Arc<Relation>, Numbers)>>;

/// What tuples are found with.
pub(crate) struct Numbering<'a> {
    /// What evaluates a program.
    machine: &'a dyn Fn(Arc<Program>) -> Machine,
    /// Data that are not there yet.
    unknown: &'a BTreeSet<TensorId>,
    /// What is asked for, and what could be numbered and is not.
    needed: BTreeSet<TensorId>,
    pub(crate) skipped: BTreeSet<TensorId>,
    known: Known,
    pub(super) tuples: Tuples,
}

/// A relation of tuples and their numbers.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Numbers {
    /// The relation; the last place is the number.
    pub(super) row: TensorId,
    /// The numbers, from 0.
    pub(super) domain: Domain,
}

impl Numbers {
    /// The read that a row has a tuple: `Row(x, r)`.
    pub(super) fn row(&self, tuple: impl Iterator<Item = Argument>, index: IndexId, like: &Read) -> Read {
        let arguments = tuple.chain([Argument::At(IndexFn::Index(index))]).collect();
        Read::new(self.row, arguments, Otherwise::Absent, like.span)
    }
}

impl<'a> Numbering<'a> {
    /// Nothing is numbered yet.
    pub(crate) fn new(
        machine: &'a dyn Fn(Arc<Program>) -> Machine,
        unknown: &'a BTreeSet<TensorId>,
        needed: BTreeSet<TensorId>,
    ) -> Numbering<'a> {
        let (skipped, known, tuples) = Default::default();
        Numbering { machine, unknown, needed, skipped, known, tuples }
    }

    /// Whether somebody asks for some of these tensors: the tuples of others are not looked for.
    pub(super) fn asks(&mut self, ids: &[TensorId]) -> bool {
        let asks = ids.iter().any(|id| self.needed.contains(id));
        self.skipped.extend(ids.iter().filter(|_| !asks));
        asks
    }

    /// Which relations of a program number and list tuples.
    pub(super) fn known(&self) -> (Known, Tuples) {
        (self.known.clone(), self.tuples.clone())
    }

    /// As it was before a program was changed that is given up.
    pub(super) fn restore(&mut self, (known, tuples): (Known, Tuples)) {
        (self.known, self.tuples) = (known, tuples);
    }

    /// Numbers the tuples of a relation, which is data from now on, if they follow from data alone.
    pub(super) fn of(&mut self, program: &mut Program, tuples: TensorId) -> Option<Numbers> {
        let relation = self.relations(program, &[tuples])?.pop()?;
        let numbers = self.numbered(program, tuples, &relation)?;
        program.components.retain(|component| component.tensors != [tuples]);
        Some(numbers)
    }

    /// Numbers these tuples of a relation, which is data from now on.
    pub(super) fn numbered(
        &mut self,
        program: &mut Program,
        tuples: TensorId,
        relation: &Arc<Relation>,
    ) -> Option<Numbers> {
        let len = relation.len;
        if len == 0 {
            return None;
        }
        let columns = |relation: &Relation| Columns {
            len,
            dictionaries: relation.dictionaries.clone(),
            columns: relation.columns.clone(),
            values: None,
        };
        program.equations.iter_mut().filter(|own| own.tensor == tuples).for_each(|own| own.terms.clear());
        let tensor = program.tensors.get_mut(tuples.0 as usize)?;
        tensor.role = Role::Data;
        tensor.given = vec![Given::Columns(Arc::new(columns(relation)))];
        let same = |other: &Relation| {
            let dictionaries = other.dictionaries.iter().zip(&relation.dictionaries);
            let columns = other.columns.iter().zip(&relation.columns);
            other.columns.len() == relation.columns.len()
                && dictionaries.into_iter().all(|(a, b)| Arc::ptr_eq(a, b) || a == b)
                && columns.into_iter().all(|(a, b)| Arc::ptr_eq(a, b) || a == b)
        };
        let known = self.known.entry(len).or_default();
        if let Some((_, numbers)) = known.iter().find(|(other, _)| same(other)) {
            return Some(numbers.clone());
        }
        let domain = Domain::size(len);
        let mut given = columns(relation);
        given.dictionaries.push(Arc::new((0..len as i64).map(Const::Int).collect()));
        given.columns.push(Arc::new((0..u32::try_from(len).ok()?).collect()));
        let mut places: Vec<Place> =
            tensor.places.iter().map(|place| Place { limit: None, ..place.clone() }).collect();
        places.push(Place { domain: Some(domain.clone()), limit: None, star: false });
        let named = format!("rows of {}", tensor.name.trim_start_matches("tuples of "));
        let row =
            Tensor { name: named, places, given: vec![Given::Columns(Arc::new(given))], ..tensor.clone() };
        let numbers = Numbers { row: tensor_of(program, row), domain };
        known.push((Arc::clone(relation), numbers.clone()));
        Some(numbers)
    }

    /// The tuples of relations that follow from data alone.
    pub(super) fn relations(&self, program: &mut Program, ids: &[TensorId]) -> Option<Vec<Arc<Relation>>> {
        let (mut part, own) = self.part(program, ids)?;
        // Lent: a copy would take longer than many relations.
        std::mem::swap(&mut part.symbols, &mut program.symbols);
        std::mem::swap(&mut part.indices, &mut program.indices);
        let part = Arc::new(part);
        let found = self.evaluated(&part, &own);
        let mut part = Arc::unwrap_or_clone(part);
        std::mem::swap(&mut part.symbols, &mut program.symbols);
        std::mem::swap(&mut part.indices, &mut program.indices);
        found
    }

    /// What some relations need of a program, but for its symbols and indices, and the relations there, if they follow from
    /// data alone.
    fn part(&self, program: &Program, ids: &[TensorId]) -> Option<(Program, Vec<TensorId>)> {
        let mut equations = vec![Vec::new(); program.tensors.len()];
        for equation in &program.equations {
            equations.get_mut(equation.tensor.0 as usize)?.push(equation);
        }
        let mut names: BTreeMap<TensorId, TensorId> = BTreeMap::new();
        let mut part = Program { settings: program.settings.clone(), ..Program::default() };
        let mut open = ids.to_vec();
        while let Some(id) = open.pop() {
            if names.contains_key(&id) {
                continue;
            }
            let tensor = program.tensor(id);
            let follows = match tensor.role {
                Role::Data | Role::Empty => !tensor.is_proved(),
                Role::Computed => tensor.kind == Kind::Bool && tensor.style == Style::Round,
                Role::Parameter | Role::Missing => false,
            };
            if !follows || self.unknown.contains(&id) {
                return None;
            }
            names.insert(id, TensorId(part.tensors.len() as u32));
            part.tensors.push(tensor.clone());
            for equation in equations.get(id.0 as usize)? {
                equation.visit_reads(&mut |read, _| open.push(read.tensor));
            }
        }
        let wide = |index: &Index| matches!(&index.range, Range::Domain(domain) if domain.len() >= WIDEST);
        if program.indices.iter().any(wide) {
            return None;
        }
        let mut made = BTreeSet::new();
        for component in &program.components {
            let tensors: Vec<TensorId> =
                component.tensors.iter().filter_map(|id| names.get(id).copied()).collect();
            if tensors.is_empty() {
                continue;
            }
            if !matches!(component.class, Class::Plain | Class::Closure)
                || tensors.len() < component.tensors.len()
            {
                return None;
            }
            let mut own = Vec::new();
            for at in &component.equations {
                let mut equation = program.equation(*at).clone();
                equation.tensor = *names.get(&equation.tensor)?;
                let rename = &mut |read: &mut Read| {
                    read.tensor = names.get(&read.tensor).copied().unwrap_or(read.tensor);
                };
                for term in &mut equation.terms {
                    term.body.change_reads(rename);
                    term.when.change_reads(rename);
                }
                own.push(EquationId(part.equations.len() as u32));
                part.equations.push(equation);
            }
            made.extend(tensors.iter().copied());
            part.components.push(Component { tensors, equations: own, class: component.class.clone() });
        }
        let given = (0..part.tensors.len() as u32).map(TensorId).filter(|id| !made.contains(id));
        let given =
            given.map(|id| Component { tensors: vec![id], equations: Vec::new(), class: Class::Plain });
        part.components.splice(0..0, given.collect::<Vec<_>>());
        let own = ids.iter().map(|id| names.get(id).copied()).collect::<Option<_>>()?;
        Some((part, own))
    }

    fn evaluated(&self, program: &Arc<Program>, ids: &[TensorId]) -> Option<Vec<Arc<Relation>>> {
        let mut machine = (self.machine)(Arc::clone(program));
        let nothing = Parameters::new();
        for component in &program.components {
            machine.component(component, &nothing).ok()?;
        }
        let stored = |id: &TensorId| match machine.stored(*id)? {
            Stored::Relation(relation) => Some(Arc::clone(relation)),
            Stored::Dense(_) => None,
        };
        ids.iter().map(stored).collect()
    }
}

/// The left side of an equation whose tuples are numbered: `H(x, d)` becomes `B[r, d]`.
pub(super) struct Sides {
    /// The number, and what stands at dense places.
    pub(super) head: Vec<IndexFn>,
    pub(super) left: Vec<IndexId>,
    /// What stands at the others, and the indices that stand nowhere else on the left side.
    pub(super) tuple: Vec<IndexFn>,
    pub(super) moved: Vec<IndexId>,
}

impl Sides {
    pub(super) fn of(equation: &Equation, dense: &[Option<Domain>], number: IndexId) -> Sides {
        let (mut head, mut tuple) = (vec![IndexFn::Index(number)], Vec::new());
        for (function, dense) in equation.head.iter().zip(dense) {
            if dense.is_some() { &mut head } else { &mut tuple }.push(function.clone());
        }
        let is_left = |index: &IndexId| head.iter().any(|function| has(function, *index));
        let (mut left, moved): (Vec<IndexId>, Vec<IndexId>) =
            equation.left.iter().partition(|at| is_left(at));
        left.insert(0, number);
        Sides { head, left, tuple, moved }
    }
}

/// A term of a relation that holds blocks as an equation of the numbered blocks, `B[r, d]`.
pub(super) fn equation(
    program: &mut Program,
    values: TensorId,
    numbers: &Numbers,
    dense: &[Option<Domain>],
    (equation, term): (&Equation, &Term),
) -> Equation {
    let number = index(program, numbers, equation);
    let Sides { head, left, tuple, moved } = Sides::of(equation, dense, number);
    let own = IsRow { row: numbers.row, tuple: &tuple, number };
    let mut term = term.clone();
    let mut others = own.taken(&mut term.over, &mut term.when);
    own.expr(&mut term.body, &mut others);
    let mut renaming = Renaming::new(program);
    others.into_iter().for_each(|other| renaming.to(other, number));
    let (when, body) = (renaming.when(&term.when), renaming.expr(&term.body));
    term = Term { over: term.over, when, body };
    // Of a tuple that nothing else asks for its number is enough.
    let mut used = Vec::new();
    when_indices(&term.when, &mut |index| used.push(index));
    expr_indices(&term.body, &mut |index| used.push(index));
    let alone: Vec<IndexId> = tuple.iter().filter_map(IndexFn::alone).collect();
    let different = (0..alone.len()).all(|at| !alone[..at].contains(&alone[at]));
    let only = alone.len() == tuple.len()
        && different
        && moved.len() == alone.len()
        && alone.iter().all(|index| moved.contains(index) && !used.contains(index))
        && alone.iter().enumerate().all(|(place, index)| is_everywhere(program, numbers, place, *index));
    if !only {
        term.over.splice(0..0, moved);
        let like = Read::new(numbers.row, Vec::new(), Otherwise::Absent, equation.head_span);
        term.when.guards.push(Guard::Read(numbers.row(
            tuple.iter().cloned().map(Argument::At),
            number,
            &like,
        )));
    }
    let made = Equation {
        tensor: values,
        head,
        left,
        terms: vec![term],
        node: Default::default(),
        ..equation.clone()
    };
    Renaming::new(program).equation(&made)
}

/// Whether an index takes all values that stand at a place of the numbered tuples: other terms may make tuples that lie outside
/// of its range.
fn is_everywhere(program: &Program, numbers: &Numbers, place: usize, index: IndexId) -> bool {
    let Range::Domain(range) = &program.index(index).range else { return true };
    program.tensor(numbers.row).given.iter().all(|given| match given {
        Given::Columns(columns) => columns
            .dictionaries
            .get(place)
            .is_some_and(|values| values.iter().all(|value| range.ordinal(*value).is_some())),
        _ => false,
    })
}

/// A fresh index of numbers.
fn index(program: &mut Program, numbers: &Numbers, equation: &Equation) -> IndexId {
    program.indices.push(fresh(numbers, equation.head_span));
    IndexId((program.indices.len() - 1) as u32)
}

pub(super) fn fresh(numbers: &Numbers, span: Span) -> Index {
    Index { name: "r".to_owned(), range: Range::Domain(numbers.domain.clone()), span }
}

/// Who asks for the number of a tuple of which it is known.
struct IsRow<'a> {
    row: TensorId,
    tuple: &'a [IndexFn],
    number: IndexId,
}

impl IsRow<'_> {
    /// The indices of a scope that are that number: the scope asks for them no more.
    fn taken(&self, over: &mut Vec<IndexId>, when: &mut When) -> Vec<IndexId> {
        let mut found = Vec::new();
        when.guards.retain(|guard| {
            let Guard::Read(read) = guard else { return true };
            let Some((last, tuple)) = read.arguments.split_last() else { return true };
            let same = read.tensor == self.row
                && read.otherwise == Otherwise::Absent
                && tuple.iter().map(Argument::function).eq(self.tuple.iter().map(Some));
            let own = last.function().and_then(IndexFn::alone);
            match own.filter(|own| same && *own != self.number && over.contains(own)) {
                Some(own) => found.push(own),
                None => return true,
            }
            false
        });
        over.retain(|index| !found.contains(index));
        found
    }

    fn expr(&self, expr: &mut Expr, found: &mut Vec<IndexId>) {
        if let Expr::Axis(axis) = expr
            && self.tuple.iter().any(|function| axis.axes.iter().any(|index| has(function, *index)))
        {
            // Along the axis it is that of another tuple.
            return;
        }
        if let Expr::Reduce(reduce) = expr {
            let Reduce { over, when, .. } = &mut **reduce;
            found.extend(self.taken(over, when));
        }
        let (parts, when) = expr.parts_mut();
        parts.into_iter().for_each(|part| self.expr(part, found));
        for guard in when.into_iter().flat_map(|when| &mut when.guards) {
            if let Guard::Compare(_, a, b) = guard {
                self.expr(a, found);
                self.expr(b, found);
            }
        }
    }
}
