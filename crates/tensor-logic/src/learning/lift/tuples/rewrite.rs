//! The program over colours of tuples.
//!
//! Enter at [`of`].

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::colours::{OUTSIDE, Row, Store};
use super::terms::{Look, Shape, Terms, binds, is_asked, shape_of};
use super::{Plans, anything, data, index, is_square, repeats};
use crate::learning::lift::{at, each, elements, settle};
use crate::program::{
    Argument, Combine, Equation, Expr, Facts, Given, Guard, IndexFn, IndexId, Kind, Otherwise, Place,
    Program, Range, Read, Role, Stamp, Style, Tensor, TensorId, Term, When,
};
use crate::value::{Const, Domain, Tuple};

/// The rewritten program.
pub(super) fn of(look: &Look<'_>, plans: &Plans, store: &Store) -> Program {
    let mut writing = Writing { look, store, program: look.program.clone(), tensors: BTreeMap::new() };
    for id in look.lifted {
        writing.tensor(&look.shape(*id));
    }
    let mut equations = Vec::new();
    let mut whole: BTreeSet<TensorId> = BTreeSet::new();
    for (number, equation) in look.program.equations.iter().enumerate() {
        // A term that reads what was merged at constants alone reads it whole.
        let merged = look.lifted.contains(&equation.tensor);
        let plan = plans.get(&number).filter(|terms| merged || terms.iter().all(|terms| terms.says(false)));
        match plan {
            Some(terms) => equations.push(writing.equation(number, equation, terms)),
            None => {
                equation.visit_reads(&mut |read, _| {
                    whole.extend(look.lifted.get(&read.tensor));
                });
                equations.push(equation.clone());
            }
        }
    }
    for id in whole {
        equations.push(writing.expanded(id));
    }
    let mut program = writing.program;
    program.equations = equations;
    settle(&mut program);
    program
}

struct Writing<'a> {
    look: &'a Look<'a>,
    store: &'a Store,
    program: Program,
    /// The tensors over colours.
    tensors: BTreeMap<Shape, TensorId>,
}

/// What a term reads, and the index of each column's colour.
struct Over<'a> {
    terms: &'a Terms,
    colours: Vec<IndexId>,
}

impl Writing<'_> {
    fn most(&self, shape: &Shape) -> u32 {
        self.store.shapes.get(shape).map_or(0, |tuples| tuples.most)
    }

    /// The tensor over the colours of a shape's tuples.
    fn tensor(&mut self, shape: &Shape) -> TensorId {
        if let Some(known) = self.tensors.get(shape) {
            return *known;
        }
        let before = self.look.program.tensor(shape.tensor);
        let domain = Domain::size(self.most(shape).max(1) as usize);
        let colour = Place { domain: Some(domain), limit: None, star: false };
        let places = places(shape, &before.places, colour);
        let mut tensor = Tensor { places, hidden: true, ..before.clone() };
        if !self.look.lifted.contains(&shape.tensor) {
            tensor.given = vec![self.data(shape, before, &tensor)];
            tensor.role = Role::Data;
        }
        let id = TensorId(u32::try_from(self.program.tensors.len()).unwrap_or(u32::MAX));
        self.program.tensors.push(tensor);
        self.tensors.insert(shape.clone(), id);
        id
    }

    /// The data of those tuples that stand for others.
    fn data(&self, shape: &Shape, before: &Tensor, after: &Tensor) -> Given {
        let mut kept: BTreeMap<Tuple, f64> = BTreeMap::new();
        if let Some(tuples) = self.store.shapes.get(shape) {
            let stands: BTreeMap<&Tuple, u32> = (0..tuples.list.len() as u32)
                .filter(|number| tuples.stands(*number))
                .filter_map(|number| Some((tuples.list.get(number as usize)?, tuples.place(number))))
                .collect();
            each(before, |element, value| {
                let own = shape.group.iter().chain(&shape.tuple);
                let tuple: Tuple = own.filter_map(|at| element.get(*at).copied()).collect();
                if let Some(colour) = stands.get(&tuple) {
                    let constant = Const::Int(i64::from(*colour));
                    *kept.entry(places(shape, element, constant)).or_default() += value;
                }
            });
        }
        if after.style == Style::Square {
            let domains = after.domains();
            let value = |element: Tuple| kept.get(&element).copied().unwrap_or(0.0);
            let values: Arc<[f64]> = elements(&domains).map(value).collect();
            return Given::Array {
                fixed: vec![None; domains.len()],
                shape: after.sizes(),
                values,
                span: after.span,
            };
        }
        let mut facts = Facts { arity: after.places.len(), source: after.span, ..Facts::default() };
        kept.iter().for_each(|(tuple, value)| facts.push(tuple, *value, None));
        Given::Facts(Arc::new(facts))
    }

    /// An equation over colours.
    fn equation(&mut self, number: usize, equation: &Equation, terms: &[Terms]) -> Equation {
        let mut made = equation.clone();
        let mut own = None;
        if self.look.lifted.contains(&equation.tensor) {
            let shape = self.look.shape(equation.tensor);
            let domain = Domain::size(self.most(&shape).max(1) as usize);
            let colour = index(&mut self.program, "colour", Range::Domain(domain));
            made.tensor = self.tensor(&shape);
            made.head = places(&shape, &equation.head, IndexFn::Index(colour));
            made.left.retain(|index| made.head.iter().any(|function| has(function, *index)));
            made.left.push(colour);
            own = Some((shape, colour));
        }
        for (at, (term, terms)) in made.terms.iter_mut().zip(terms).enumerate() {
            if terms.says(own.is_some()) {
                let rows = self.store.rows.get(&(number, at)).map_or(&[][..], Vec::as_slice);
                let combine = self.look.program.tensor(equation.tensor).combine;
                let all: Vec<IndexId> = equation.left.iter().chain(&term.over).copied().collect();
                self.term(combine, own.as_ref(), (&made.left, &all), (term, terms), rows);
            }
        }
        made
    }

    fn term(
        &mut self,
        combine: Combine,
        own: Option<&(Shape, IndexId)>,
        (left, own_indices): (&[IndexId], &[IndexId]),
        (term, terms): (&mut Term, &Terms),
        rows: &[Row],
    ) {
        let counted = self.counted(combine, own, terms, rows);
        let constant = |at: usize, row: &Tuple| row.get(at).copied();
        let first = terms.kept.len();
        let same = |column: usize| {
            let at = first + usize::from(own.is_some()) + column;
            let shape = terms.columns.get(column).map(|column| &column.shape);
            own.is_some_and(|(head, _)| shape.is_some_and(|shape| self.most(shape) == self.most(head)))
                && counted.keys().all(|row| constant(at, row) == constant(first, row))
        };
        let same: Vec<bool> = (0..terms.columns.len()).map(same).collect();
        let mut colours = Vec::new();
        let mut indices = terms.kept.clone();
        indices.extend(own.map(|(_, colour)| *colour));
        for ((column, same), nth) in terms.columns.iter().zip(&same).zip(0..) {
            let head = own.map(|(_, colour)| *colour).filter(|_| *same);
            colours.push(head.unwrap_or_else(|| {
                let most = self.most(&column.shape);
                let at = first + usize::from(own.is_some()) + nth;
                let outside = Some(Const::Int(i64::from(most)));
                let all = counted.keys().all(|row| constant(at, row) != outside);
                let range = if all { Range::Domain(Domain::size(most as usize)) } else { Range::Tuples };
                index(&mut self.program, "colour", range)
            }));
            if !same {
                indices.extend(colours.last());
            }
        }
        let open: Vec<usize> = (0..terms.columns.len()).filter(|column| !same[*column]).collect();
        let shorter = |row: &Tuple| -> Tuple {
            let fixed = first + usize::from(own.is_some());
            let columns = open.iter().filter_map(|column| row.get(fixed + column).copied());
            row.iter().take(fixed).copied().chain(columns).collect()
        };
        let counted: BTreeMap<Tuple, f64> =
            counted.iter().map(|(row, weight)| (shorter(row), *weight)).collect();
        let writing = Over { terms, colours };
        let when = When { exists: std::mem::take(&mut term.when.exists), ..When::default() };
        term.when.guards.retain(|guard| !is_asked(self.look, own_indices, &when, guard));
        // The relation of the bindings says what a guard computed that is gone.
        for kept in &terms.kept {
            let computes = |guard: &Guard| matches!(guard, Guard::Bind(index, _) if index == kept);
            if let Some(index) = self.program.indices.get_mut(kept.0 as usize)
                && matches!(index.range, Range::Computed)
                && !term.when.guards.iter().any(computes)
            {
                index.range = Range::Tuples;
            }
        }
        self.guards(&writing, &mut term.when, &mut Vec::new());
        self.factors(&writing, &mut term.body);
        let look = self.look;
        let gone = |index: &IndexId| terms.indices.contains(index) && !terms.kept.contains(index);
        term.over.retain(|index| !gone(index));
        for index in &indices {
            if !left.contains(index) && !term.over.contains(index) {
                term.over.push(*index);
            }
        }
        // A relation that has each colour once says nothing; where there is no tuple, and so no colour, it says that.
        let each = own.filter(|(shape, _)| {
            terms.kept.is_empty()
                && !counted.is_empty()
                && open.is_empty()
                && counted.len() == self.most(shape) as usize
                && counted.values().all(|weight| *weight == 1.0)
        });
        if each.is_none() {
            let places = terms.kept.iter().map(|index| kept_place(look.program, *index)).chain(
                indices.iter().skip(first).map(|index| Place {
                    domain: crate::presence::range(&self.program, *index).cloned(),
                    ..anything()
                }),
            );
            let places: Vec<Place> = places.collect();
            self.join(combine, term, places, indices, counted);
        }
    }

    /// For tuples that stand for others: the constants that stay, the colour, those that are read, and how often.
    fn counted(
        &self,
        combine: Combine,
        own: Option<&(Shape, IndexId)>,
        terms: &Terms,
        rows: &[Row],
    ) -> BTreeMap<Tuple, f64> {
        let head = own.and_then(|(shape, _)| self.store.shapes.get(shape));
        let constant = |number: u32| Const::Int(i64::from(number));
        let mut counted: BTreeMap<Tuple, f64> = BTreeMap::new();
        for row in rows.iter().filter(|row| head.is_none_or(|tuples| tuples.stands(row.head))) {
            let mut key: Tuple =
                self.store.constants.get(row.kept as usize).into_iter().flatten().copied().collect();
            key.extend(head.map(|tuples| constant(tuples.place(row.head))));
            for (column, read) in terms.columns.iter().zip(&row.reads) {
                let tuples = self.store.shapes.get(&column.shape);
                key.push(constant(tuples.map_or(OUTSIDE, |tuples| tuples.place(*read))));
            }
            *counted.entry(key).or_default() += if combine == Combine::Sum { row.weight } else { 1.0 };
        }
        counted
    }

    /// Gives a term the relation of its bindings.
    fn join(
        &mut self,
        combine: Combine,
        term: &mut Term,
        mut places: Vec<Place>,
        mut indices: Vec<IndexId>,
        counted: BTreeMap<Tuple, f64>,
    ) {
        if combine == Combine::Sum {
            let id = data(&mut self.program, "counts", places, counted.into_iter());
            let rest = std::mem::replace(&mut term.body, Expr::Number(1.0));
            term.body = Expr::Product(vec![Expr::Read(at(id, &indices)), rest]);
            return;
        }
        let mut rows: Vec<Tuple> = counted.keys().cloned().collect();
        if repeats(combine) {
            let most = counted.values().fold(0.0_f64, |most, count| most.max(*count));
            if most > 1.0 {
                places.push(Place { domain: Some(Domain::size(most as usize)), ..anything() });
                let copy = index(&mut self.program, "copy", Range::Tuples);
                term.over.push(copy);
                indices.push(copy);
                let copies = |(row, count): (&Tuple, &f64)| {
                    let row = row.clone();
                    (0..*count as i64)
                        .map(move |copy| row.iter().copied().chain([Const::Int(copy)]).collect::<Tuple>())
                };
                rows = counted.iter().flat_map(copies).collect();
            }
        }
        let id = data(&mut self.program, "counts", places, rows.into_iter().map(|row| (row, 1.0)));
        if let Some(tensor) = self.program.tensors.get_mut(id.0 as usize) {
            (tensor.kind, tensor.combine) = (Kind::Bool, Combine::Exists);
        }
        term.when.guards.push(Guard::Read(at(id, &indices)));
    }

    // -- reads over colours -------------------------------------------------------------------

    fn guards(&mut self, writing: &Over<'_>, when: &mut When, inside: &mut Vec<IndexId>) {
        for guard in &mut when.guards {
            match guard {
                Guard::Read(read) | Guard::Not(read) => self.read(writing, read, inside),
                Guard::Compare(_, a, b) => {
                    self.expr(writing, a, inside);
                    self.expr(writing, b, inside);
                }
                Guard::CompareIndex(..) | Guard::Bind(..) => {}
            }
        }
    }

    fn factors(&mut self, writing: &Over<'_>, body: &mut Expr) {
        match body {
            Expr::Product(parts) => parts.iter_mut().for_each(|part| self.factors(writing, part)),
            Expr::Read(read) if writing.terms.factors.iter().any(|factor| same(factor, read)) => {
                *body = Expr::Number(1.0);
            }
            Expr::Missing(read) if binds(self.look, read) => *body = Expr::Number(1.0),
            other => self.expr(writing, other, &mut Vec::new()),
        }
    }

    fn expr(&mut self, writing: &Over<'_>, expr: &mut Expr, inside: &mut Vec<IndexId>) {
        let before = inside.len();
        match expr {
            Expr::Read(read) | Expr::Missing(read) => return self.read(writing, read, inside),
            Expr::Reduce(reduce) => inside.extend(&reduce.over),
            _ => {}
        }
        let (parts, when) = expr.parts_mut();
        parts.into_iter().for_each(|part| self.expr(writing, part, inside));
        if let Some(when) = when {
            inside.extend(&when.exists);
            self.guards(writing, when, inside);
        }
        inside.truncate(before);
    }

    fn read(&mut self, writing: &Over<'_>, read: &mut Read, inside: &[IndexId]) {
        let Some(shape) = shape_of(self.look, read, inside) else { return };
        let column = writing.terms.columns.iter().zip(&writing.colours).find(|(column, _)| {
            let own = column.shape.group.iter().chain(&column.shape.tuple).zip(&column.functions);
            column.shape == shape
                && column.otherwise == read.otherwise
                && own.clone().all(|(at, function)| {
                    read.arguments.get(*at).and_then(Argument::function) == Some(function)
                })
        });
        let Some((_, colour)) = column else { return };
        let arguments = places(&shape, &read.arguments, Argument::At(IndexFn::Index(*colour)));
        *read = Read::new(self.tensor(&shape), arguments, read.otherwise, read.span);
    }

    // -- what is read whole -------------------------------------------------------------------

    /// `H[x, d] = C[c, d] | Colour(x, c)`
    fn expanded(&mut self, id: TensorId) -> Equation {
        let shape = self.look.shape(id);
        let before = self.look.program.tensor(id).clone();
        let left: Vec<IndexId> = before
            .places
            .iter()
            .map(|place| {
                let range = match &place.domain {
                    Some(domain) if before.style == Style::Square => Range::Domain(domain.clone()),
                    _ => Range::Tuples,
                };
                index(&mut self.program, "i", range)
            })
            .collect();
        let colour = index(&mut self.program, "colour", Range::Tuples);
        let own = || shape.group.iter().chain(&shape.tuple);
        let rows: Vec<(Tuple, f64)> = self.store.shapes.get(&shape).map_or(Vec::new(), |tuples| {
            let row = |(number, tuple): (u32, &Tuple)| {
                let colour = Const::Int(i64::from(tuples.place(number)));
                (tuple.iter().copied().chain([colour]).collect(), 1.0)
            };
            (0..).zip(&tuples.list).map(row).collect()
        });
        let mut places_: Vec<Place> = own().filter_map(|at| before.places.get(*at).cloned()).collect();
        places_.push(anything());
        let colours = data(&mut self.program, "colours", places_, rows.into_iter());
        let mut indices: Vec<IndexId> = own().filter_map(|at| left.get(*at).copied()).collect();
        indices.push(colour);
        let head: Vec<IndexFn> = left.iter().copied().map(IndexFn::Index).collect();
        let arguments: Vec<Argument> = head.iter().cloned().map(Argument::At).collect();
        let arguments = places(&shape, &arguments, Argument::At(IndexFn::Index(colour)));
        let otherwise = match is_square(self.look.program, id) {
            true => Otherwise::Zero,
            false => Otherwise::Absent,
        };
        let body = Expr::Read(Read::new(self.tensor(&shape), arguments, otherwise, before.span));
        let when = When::from(vec![Guard::Read(at(colours, &indices))]);
        Equation {
            tensor: id,
            head,
            left,
            terms: vec![Term { over: vec![colour], when, body }],
            node: Stamp::default(),
            span: before.span,
            head_span: before.span,
            sign_span: before.span,
        }
    }
}

/// What stands in the places of a tensor over colours.
fn places<T: Clone>(shape: &Shape, of: &[T], colour: T) -> Vec<T> {
    let mut colour = Some(colour);
    let mut made = Vec::new();
    for (at, each) in of.iter().enumerate() {
        match shape.tuple.contains(&at) {
            true => made.extend(colour.take()),
            false => made.push(each.clone()),
        }
    }
    made
}

fn has(function: &IndexFn, index: IndexId) -> bool {
    let mut has = false;
    function.visit(&mut |other| has |= other == index);
    has
}

fn same(a: &Read, b: &Read) -> bool {
    let functions =
        |read: &Read| read.arguments.iter().map(|each| each.function().cloned()).collect::<Vec<_>>();
    a.tensor == b.tensor && a.otherwise == b.otherwise && functions(a) == functions(b)
}

/// The place of an index that stays.
fn kept_place(program: &Program, index: IndexId) -> Place {
    Place { domain: crate::presence::range(program, index).cloned(), ..anything() }
}
