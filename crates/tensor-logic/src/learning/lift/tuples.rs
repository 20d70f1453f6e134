//! Tuples that have equal numbers for all weights become one.
//!
//! Enter at [`merged`]. The atoms of a molecule are tuples `(s, x)`: atom `x` of one molecule and atom `x` of another have
//! nothing in common, but many atoms of many molecules have equal neighbourhoods. A tensor that parameters change gets an
//! index of colours in the place of the indices of its tuples, and each term a relation that says, for a tuple of each colour,
//! which colours it reads, and how often. Which bindings a term has is asked of the engine, once; no number of a parameter is
//! looked at.
//!
//! Indices of a class that a parameter has a place in stay, as do those that a term computes with. Where a scope inside a
//! term binds tuples (a softmax over neighbours, for one), its tensor stays as it is, and reads whole what was merged.

mod colours;
mod kinds;
mod rewrite;
mod terms;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{Core, relation, settle};
use crate::ast::Span;
use crate::engine::{Budget, Engine, Parameters, Request, Value};
use crate::program::{
    Argument, Combine, Equation, Expr, Facts, Given, Guard, IndexFn, IndexId, Otherwise, Place, Program,
    Range, Read, Role, Stamp, Style, TensorId, Term, When,
};
use crate::value::Tuple;

use colours::Store;
use kinds::Kinds;
use terms::{Look, Shape, Terms};

/// Terms with more bindings are not looked at.
const BINDINGS: usize = 1 << 22;

/// A program with fewer tuples.
pub(super) struct Merged {
    pub(super) program: Program,
    /// How many tuples there were in the tensors whose tuples are merged.
    pub(super) from: usize,
    /// How many are left.
    pub(super) to: usize,
}

/// The terms of each equation that can be rewritten.
type Plans = BTreeMap<usize, Vec<Terms>>;

/// The program with its equal tuples merged, if there are any; those with other values of the index `kept` are not.
pub(super) fn merged(
    engine: &mut dyn Engine,
    core: &Core,
    budget: Budget,
    parameters: &Parameters,
    kept: Option<&str>,
) -> Option<Merged> {
    let program = &core.program;
    let kinds = Kinds::of(program, kept);
    let components: BTreeMap<TensorId, usize> = program
        .components
        .iter()
        .enumerate()
        .flat_map(|(at, component)| component.tensors.iter().map(move |id| (*id, at)))
        .collect();
    let none = BTreeSet::new();
    let look =
        Look { program, kinds: &kinds, changing: &core.changing, lifted: &none, components: &components };
    let mut lifted: BTreeSet<TensorId> = core.changing.iter().copied().filter(|id| may(&look, *id)).collect();
    // What reads a tensor that cannot be merged may keep others from being so.
    let plans = loop {
        let look = Look { lifted: &lifted, ..look };
        let (plans, stuck) = planned(&look);
        let before = lifted.len();
        lifted.retain(|id| !stuck.contains(id));
        if lifted.len() == before {
            break plans;
        }
    };
    let look = Look { lifted: &lifted, ..look };
    let store = coloured(engine, &look, &plans, budget, parameters)?;
    let shapes: Vec<Shape> = lifted.iter().map(|id| look.shape(*id)).collect();
    let (from, to) = store.sizes(shapes.iter());
    (to < from).then(|| Merged { program: rewrite::of(&look, &plans, &store), from, to })
}

/// Whether a tensor can be one whose tuples are merged.
fn may(look: &Look<'_>, id: TensorId) -> bool {
    let tensor = look.program.tensor(id);
    tensor.role == Role::Computed && tensor.given.is_empty() && !look.shape(id).tuple.is_empty()
}

/// How equations are rewritten, and the tensors that have one which cannot be.
fn planned(look: &Look<'_>) -> (Plans, BTreeSet<TensorId>) {
    let (mut plans, mut stuck) = (Plans::new(), BTreeSet::new());
    for (at, equation) in look.program.equations.iter().enumerate() {
        let terms: Option<Vec<Terms>> =
            equation.terms.iter().map(|term| terms::of_term(look, equation, term)).collect();
        match terms {
            Some(terms) => drop(plans.insert(at, terms)),
            None => drop(stuck.insert(equation.tensor)),
        }
    }
    let whole = look.program.equations.iter().enumerate();
    for (at, _) in whole.filter(|(_, equation)| stuck.contains(&equation.tensor)) {
        plans.remove(&at);
    }
    (plans, stuck)
}

/// The colours of all tuples; `None` where there are too many bindings.
fn coloured(
    engine: &mut dyn Engine,
    look: &Look<'_>,
    plans: &Plans,
    budget: Budget,
    parameters: &Parameters,
) -> Option<Store> {
    let program = look.program;
    let mut store = Store::default();
    let mut left = BINDINGS;
    for component in &program.components {
        let planned = || {
            component.equations.iter().filter_map(|at| Some((at.0 as usize, plans.get(&(at.0 as usize))?)))
        };
        let own: BTreeSet<Shape> = component
            .tensors
            .iter()
            .filter(|id| look.lifted.contains(id))
            .map(|id| look.shape(*id))
            .collect();
        own.iter().for_each(|shape| store.know(program, shape, false));
        for shape in planned().flat_map(|(_, terms)| terms).flat_map(|terms| &terms.columns) {
            let shape = &shape.shape;
            store.know(program, shape, !look.lifted.contains(&shape.tensor));
        }
        let asked: Vec<(usize, usize, &Terms)> = planned()
            .flat_map(|(at, terms)| terms.iter().enumerate().map(move |(term, terms)| (at, term, terms)))
            .filter(|(at, _, terms)| {
                let equation = program.equations.get(*at);
                terms.says(equation.is_some_and(|equation| look.lifted.contains(&equation.tensor)))
            })
            .collect();
        let found = bindings(engine, look, &store, &asked, budget, parameters, &mut left)?;
        for ((at, term, terms), found) in asked.iter().zip(&found) {
            let equation = program.equations.get(*at)?;
            let head = look.lifted.contains(&equation.tensor).then(|| look.shape(equation.tensor));
            let rows = store.bindings(program, equation, head.as_ref(), terms, found)?;
            store.rows.insert((*at, *term), rows);
        }
        let terms: Option<Vec<_>> = asked
            .iter()
            .map(|(at, term, terms)| Some((*at, *term, program.equations.get(*at)?, *terms)))
            .collect();
        store.component(program, &own, &terms?);
    }
    Some(store)
}

/// The bindings of these terms.
fn bindings(
    engine: &mut dyn Engine,
    look: &Look<'_>,
    store: &Store,
    asked: &[(usize, usize, &Terms)],
    budget: Budget,
    parameters: &Parameters,
    left: &mut usize,
) -> Option<Vec<Vec<(Tuple, f64)>>> {
    if asked.is_empty() {
        return Some(Vec::new());
    }
    let mut program = look.program.clone();
    let mut goals = Vec::new();
    for (at, _, terms) in asked {
        let bound = |index: &IndexId| {
            let mut bound = false;
            terms.factors.iter().for_each(|read| {
                crate::walk::read_indices(read, &mut |other| bound |= other == *index);
            });
            bound
        };
        let free = terms.indices.iter().filter(|index| !bound(index));
        let most = free.filter_map(|index| crate::presence::range(look.program, *index));
        let most = most.fold(1_usize, |most, domain| most.saturating_mul(domain.len()));
        if most > BINDINGS {
            return None;
        }
        let mut guards = terms.guards.clone();
        for column in terms.columns.iter().filter(|column| column.binds) {
            let tuples = store.shapes.get(&column.shape)?;
            let rows = tuples.list.iter().map(|tuple| (tuple.clone(), 1.0));
            let id = data(&mut program, "tuples", vec![anything(); column.functions.len()], rows);
            let arguments = column.functions.iter().cloned().map(Argument::At).collect();
            guards.push(Guard::Read(Read::new(id, arguments, Otherwise::Absent, Span::default())));
        }
        let span = program.equations.get(*at)?.span;
        let places = terms.indices.iter().map(|index| Place {
            domain: crate::presence::range(look.program, *index).cloned(),
            ..anything()
        });
        let id = TensorId(u32::try_from(program.tensors.len()).ok()?);
        let tensor = relation(format!("bindings {}", id.0), places);
        program.tensors.push(tensor);
        let factors = terms.factors.iter().cloned().map(Expr::Read);
        let body = Expr::Product(std::iter::once(Expr::Number(1.0)).chain(factors).collect());
        let when = When { exists: terms.exists.clone(), guards, ..When::default() };
        program.equations.push(Equation {
            tensor: id,
            head: terms.indices.iter().copied().map(IndexFn::Index).collect(),
            left: terms.indices.clone(),
            terms: vec![Term { over: Vec::new(), when, body }],
            node: Stamp::default(),
            span,
            head_span: span,
            sign_span: span,
        });
        goals.push(id);
    }
    settle(&mut program);
    let values = engine.values(&Request { program: &program, parameters, budget }, &goals).ok()?;
    let mut all = Vec::new();
    for value in values {
        let Value::Tuples(found) = value else { return None };
        *left = left.checked_sub(found.tuples.len())?;
        let weights = found.values.iter().copied().chain(std::iter::repeat(1.0));
        all.push(found.tuples.iter().cloned().zip(weights).collect());
    }
    Some(all)
}

fn anything() -> Place {
    Place { domain: None, limit: None, star: false }
}

/// A hidden relation with these tuples.
fn data(
    program: &mut Program,
    name: &str,
    places: Vec<Place>,
    rows: impl Iterator<Item = (Tuple, f64)>,
) -> TensorId {
    let id = TensorId(u32::try_from(program.tensors.len()).unwrap_or(u32::MAX));
    let mut tensor = relation(format!("{name} {}", id.0), places.into_iter());
    let mut facts = Facts { arity: tensor.places.len(), ..Facts::default() };
    rows.for_each(|(row, weight)| facts.push(&row, weight, None));
    tensor.given = vec![Given::Facts(Arc::new(facts))];
    tensor.role = Role::Data;
    program.tensors.push(tensor);
    id
}

/// A new index.
fn index(program: &mut Program, name: &str, range: Range) -> IndexId {
    let id = IndexId(u32::try_from(program.indices.len()).unwrap_or(u32::MAX));
    program.indices.push(crate::program::Index { name: name.to_owned(), range, span: Span::default() });
    id
}

/// Whether bindings of a tensor's equations are repeated where they stand for several.
fn repeats(combine: Combine) -> bool {
    matches!(combine, Combine::Max | Combine::Min | Combine::Times | Combine::Avg)
}

/// Whether a tensor is square.
fn is_square(program: &Program, id: TensorId) -> bool {
    program.tensor(id).style == Style::Square
}
