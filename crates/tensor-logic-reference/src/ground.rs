//! What an element is made of: its contributions, and what those read, one after the other down to what is given.
//!
//! Enter at [`ground`]. Values are those that some engine found; the bindings of each contribution are found by loops. Elements
//! that differ only in places that the caller calls alike (the components of a vector) are one, of which the first that is there
//! is looked at. Of large groundings the part nearest to the goal is given, and how much was left out.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::ControlFlow;

use super::bind::Scope;
use super::machine::Machine;
use super::store::Store;
use tensor_logic_core::engine::{Engine, Request};
use tensor_logic_core::error::Result;
use tensor_logic_core::program::{
    Equation, Expr, Guard, IndexId, Kind, Range, Read, Reduce, Role, TensorId, Term, When,
};
use tensor_logic_core::value::{Const, Domain, Tuple, element};

/// Elements that are one in a grounding: a tensor, and its places but for those that are alike.
pub type Atom = (TensorId, Vec<Option<Const>>);

/// How a goal is made.
#[derive(Debug, Clone, Default)]
pub struct Ground {
    /// Atoms with the first values of their elements; the goal is the first.
    pub atoms: Vec<(Atom, Vec<f64>)>,
    /// The contributions that are there, but for those that differ only in components of vectors.
    pub contributions: Vec<Contribution>,
    /// How many atoms were met and left out.
    pub left_out: usize,
}

/// A contribution to an atom.
#[derive(Debug, Clone, PartialEq)]
pub struct Contribution {
    /// To which.
    pub to: usize,
    /// The equation, by its number in the program.
    pub equation: usize,
    /// What it reads that is computed or given as numbers: atoms, each once.
    pub from: Vec<usize>,
    /// The elements of parameters, with their values where they are single ones.
    pub weights: Vec<(Atom, Option<f64>)>,
    /// The facts without a value.
    pub facts: Vec<Atom>,
    /// How many atoms it reads that are left out.
    pub left_out: usize,
}

/// How much is given at most.
#[derive(Debug, Clone, Copy)]
pub struct Most {
    /// Atoms.
    pub atoms: usize,
    /// Contributions to one atom.
    pub contributions: usize,
}

/// What the only element of a goal is made of. `alike` says which places of a tensor are components of a vector.
///
/// # Errors
/// Refusals of the evaluation.
pub fn ground(
    request: &Request<'_>,
    engine: &mut dyn Engine,
    goal: TensorId,
    alike: &dyn Fn(TensorId, usize) -> bool,
    most: Most,
) -> Result<Ground> {
    let needed: Vec<TensorId> = request.program.needs(&[goal]).into_iter().collect();
    let values = engine.values(request, &needed)?;
    let machine: Machine<'_, f64> =
        Machine::with_values(request, needed.iter().copied().zip(values).collect());
    let mut search =
        Search { machine: &machine, alike, most, found: Ground::default(), numbers: BTreeMap::new() };
    search.atom((goal, vec![None; request.program.tensor(goal).places.len()]));
    let mut next = VecDeque::from([0]);
    while let Some(at) = next.pop_front() {
        let known = search.found.atoms.len();
        search.expand(at);
        next.extend(known..search.found.atoms.len());
    }
    Ok(search.found)
}

struct Search<'s, 'p> {
    machine: &'s Machine<'p, f64>,
    alike: &'s dyn Fn(TensorId, usize) -> bool,
    most: Most,
    found: Ground,
    numbers: BTreeMap<Atom, Option<usize>>,
}

/// An element that is read.
type Element = (TensorId, Tuple);

/// The values that are given of an atom at most.
const VALUES: usize = 4;

/// Elements that one contribution reads, of which no more are looked for.
const MANY: usize = 10_000;

impl<'p> Search<'_, 'p> {
    fn masked(&self, (id, tuple): &Element) -> Atom {
        let place = |(at, value): (usize, &Const)| (!(self.alike)(*id, at)).then_some(*value);
        (*id, tuple.iter().enumerate().map(place).collect())
    }

    /// The number of an atom, if it is among those that are given.
    fn atom(&mut self, atom: Atom) -> Option<usize> {
        if let Some(number) = self.numbers.get(&atom) {
            return *number;
        }
        let number = (self.found.atoms.len() < self.most.atoms).then_some(self.found.atoms.len());
        match number {
            Some(_) => {
                let values = self.elements(&atom, VALUES).into_iter().map(|(_, value)| value).collect();
                self.found.atoms.push((atom.clone(), values));
            }
            None => self.found.left_out += 1,
        }
        self.numbers.insert(atom, number);
        number
    }

    /// The first elements of an atom that are there.
    fn elements(&self, (id, places): &Atom, most: usize) -> Vec<(Tuple, f64)> {
        let fits = |tuple: &Tuple| {
            tuple.iter().zip(places).all(|(value, place)| place.is_none_or(|place| place == *value))
        };
        match self.machine.store(*id) {
            Some(Store::Sparse(tuples)) => {
                let fitting = tuples.iter().filter(|(tuple, _)| fits(tuple));
                fitting.take(most).map(|(tuple, value)| (tuple.clone(), *value)).collect()
            }
            Some(Store::Dense(domains, values)) => {
                let open: Vec<Domain> = domains
                    .iter()
                    .zip(places)
                    .map(|(domain, place)| {
                        place.map_or_else(|| domain.clone(), |value| Domain::listed([value]))
                    })
                    .collect();
                let count = open.iter().map(Domain::len).product::<usize>().min(most);
                let of = |at| {
                    let tuple = element(&open, at);
                    let position = super::store::position(domains.iter().map(Some), &tuple)?;
                    Some((tuple, *values.get(position)?))
                };
                (0..count).filter_map(of).collect()
            }
            None => Vec::new(),
        }
    }

    /// Finds the contributions to the first element of an atom.
    fn expand(&mut self, at: usize) {
        let Some((atom, _)) = self.found.atoms.get(at).cloned() else { return };
        let Some((tuple, _)) = self.elements(&atom, 1).pop() else { return };
        let program = self.machine.program;
        for (number, equation) in program.equations.iter().enumerate() {
            if equation.tensor != atom.0 {
                continue;
            }
            for term in &equation.terms {
                for reads in self.contributions(equation, term, &tuple) {
                    self.contribution(at, number, &reads);
                }
            }
        }
    }

    fn contribution(&mut self, to: usize, equation: usize, reads: &BTreeSet<Element>) {
        let program = self.machine.program;
        let (from, weights, facts) = (Vec::new(), Vec::new(), Vec::new());
        let mut made = Contribution { to, equation, from, weights, facts, left_out: 0 };
        let mut facts = BTreeSet::new();
        let mut weights: BTreeMap<Atom, Vec<f64>> = BTreeMap::new();
        let mut from = BTreeSet::new();
        for read in reads {
            let tensor = program.tensor(read.0);
            let atom = self.masked(read);
            if tensor.role == Role::Parameter {
                let value = self.machine.element(read).unwrap_or(f64::NAN);
                weights.entry(atom).or_default().push(value);
            } else if tensor.kind == Kind::Bool && tensor.role != Role::Computed {
                facts.insert(atom);
            } else {
                from.insert(atom);
            }
        }
        for atom in from {
            match self.atom(atom) {
                Some(number) => made.from.push(number),
                None => made.left_out += 1,
            }
        }
        made.facts = facts.into_iter().collect();
        let single = |(atom, values): (Atom, Vec<f64>)| {
            let is_single = atom.1.iter().all(Option::is_some);
            let value = values.first().copied().filter(|_| is_single);
            (atom, value)
        };
        made.weights = weights.into_iter().map(single).collect();
        if !self.found.contributions.contains(&made) {
            self.found.contributions.push(made);
        }
    }

    /// What each contribution of a term to an element reads.
    fn contributions(&self, equation: &'p Equation, term: &'p Term, tuple: &Tuple) -> Vec<BTreeSet<Element>> {
        let machine = self.machine;
        let mut bound: BTreeMap<IndexId, Const> = BTreeMap::new();
        for (function, value) in equation.head.iter().zip(tuple) {
            let Some(index) = function.alone() else { continue };
            let inside = match &machine.program.index(index).range {
                Range::Domain(domain) => domain.contains(*value),
                Range::Tuples | Range::Computed => true,
            };
            if !inside || bound.insert(index, *value).is_some_and(|before| before != *value) {
                return Vec::new();
            }
        }
        bound.iter().for_each(|(index, value)| machine.bind(*index, Some(*value)));
        let indices: Vec<IndexId> = equation
            .left
            .iter()
            .chain(&term.over)
            .filter(|index| !bound.contains_key(*index))
            .copied()
            .collect();
        let scope = Scope { indices: &indices, when: &term.when, body: Some(&term.body), nearby: &[] };
        let mut found = Vec::new();
        let _ = machine.each(scope, &mut || {
            let head: Option<Tuple> = equation.head.iter().map(|place| machine.index(place)).collect();
            if head.as_ref() == Some(tuple) && machine.expr(&term.body).is_some() {
                let mut reads = BTreeSet::new();
                self.reads(&term.body, &mut reads);
                self.guards(&term.when, &mut reads);
                found.push(reads);
            }
            if found.len() < self.most.contributions {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        });
        bound.keys().for_each(|index| machine.bind(*index, None));
        found
    }

    /// What an expression reads under the binding at hand, if it is present.
    fn reads(&self, expr: &'p Expr, into: &mut BTreeSet<Element>) {
        let machine = self.machine;
        match expr {
            Expr::Read(read) => self.read(read, into),
            Expr::Reduce(reduce) => {
                let scope = scope_of(reduce);
                let _ = machine.each(scope, &mut || {
                    if machine.expr(&reduce.body).is_some() {
                        self.reads(&reduce.body, into);
                        self.guards(&reduce.when, into);
                    }
                    if into.len() < MANY { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
                });
            }
            Expr::Axis(axis) => {
                let own: Vec<Option<Const>> = axis.axes.iter().map(|index| machine.bound(*index)).collect();
                for entry in machine.entries(axis).keys() {
                    axis.axes.iter().zip(entry).for_each(|(index, value)| machine.bind(*index, *value));
                    self.reads(&axis.argument, into);
                    self.guards(&axis.when, into);
                }
                axis.axes.iter().zip(own).for_each(|(index, value)| machine.bind(*index, value));
            }
            _ => {
                let (parts, when) = expr.parts();
                parts.into_iter().for_each(|part| self.reads(part, into));
                if let Some(when) = when {
                    self.guards(when, into);
                }
            }
        }
    }

    fn guards(&self, when: &'p When, into: &mut BTreeSet<Element>) {
        for guard in &when.guards {
            match guard {
                Guard::Read(read) => self.read(read, into),
                Guard::Compare(_, left, right) => {
                    self.reads(left, into);
                    self.reads(right, into);
                }
                Guard::Not(_) | Guard::CompareIndex(..) | Guard::Bind(..) => {}
            }
        }
    }

    fn read(&self, read: &'p Read, into: &mut BTreeSet<Element>) {
        if let Some(tuple) = self.machine.arguments(read) {
            let element = (read.tensor, tuple);
            if self.machine.element(&element).is_some() {
                into.insert(element);
            }
        }
    }
}

fn scope_of(reduce: &Reduce) -> Scope<'_, '_> {
    Scope { indices: &reduce.over, when: &reduce.when, body: Some(&reduce.body), nearby: &[] }
}
