//! Colours of tuples: which of them have equal numbers, whatever the parameters are.
//!
//! Enter at [`Store::component`]. Tuples of data are equal where their blocks are. Those of a component that parameters
//! change are equal where as many bindings of each kind contribute to them; the kinds of a binding are the colours of what it
//! reads. In a recursion all begin equal, and are told apart until nothing more is.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::terms::{Column, Shape, Terms};
use crate::program::{Combine, Equation, IndexFn, IndexId, Otherwise, Program, Range, Style};
use crate::value::{Const, Tuple};

/// The number of a tuple that lies outside of the tensor.
pub(super) const OUTSIDE: u32 = u32::MAX;
/// A shape of more elements has those numbered that are met.
const NUMBERED: usize = 1 << 20;

/// The tuples of a shape.
#[derive(Debug, Default)]
pub(super) struct Tuples {
    numbers: HashMap<Tuple, u32>,
    /// By number, the constants of the group first.
    pub(super) list: Vec<Tuple>,
    /// By number.
    pub(super) colours: Vec<u32>,
    /// By colour the first tuple, and its number among those of its group.
    pub(super) first: Vec<u32>,
    pub(super) local: Vec<u32>,
    /// The most colours of a group.
    pub(super) most: u32,
    /// How many of the constants are of the group.
    group: usize,
    /// How many colours each group has, once there are any.
    groups: Option<HashMap<Tuple, u32>>,
    /// In each group the colour of what is met later: nothing contributes to it.
    nothing: HashMap<Tuple, u32>,
}

impl Tuples {
    fn number(&mut self, tuple: Tuple) -> u32 {
        let next = self.list.len() as u32;
        if let Some(known) = self.numbers.get(&tuple) {
            return *known;
        }
        self.list.push(tuple.clone());
        let colour = self.later(next, self.group_of(&tuple));
        self.colours.push(colour);
        self.numbers.insert(tuple, next);
        next
    }

    fn group_of(&self, tuple: &[Const]) -> Tuple {
        tuple.iter().take(self.group).copied().collect()
    }

    fn later(&mut self, number: u32, group: Tuple) -> u32 {
        let Some(groups) = &mut self.groups else { return 0 };
        let next = self.first.len() as u32;
        let colour = *self.nothing.entry(group.clone()).or_insert(next);
        if colour == next {
            let local = groups.entry(group).or_default();
            self.first.push(number);
            self.local.push(*local);
            *local += 1;
            self.most = self.most.max(*local);
        }
        colour
    }

    /// Numbers colours by what is said of each tuple, in the order of tuples.
    fn colour<S: std::hash::Hash + Eq>(&mut self, mut said: impl FnMut(u32) -> S) {
        let mut order: Vec<u32> = (0..self.list.len() as u32).collect();
        order.sort_by(|a, b| self.list[*a as usize].cmp(&self.list[*b as usize]));
        let mut known: HashMap<(Tuple, S), u32> = HashMap::new();
        let mut groups: HashMap<Tuple, u32> = HashMap::new();
        (self.first, self.local, self.most) = (Vec::new(), Vec::new(), 0);
        for number in order {
            let group = self.group_of(&self.list[number as usize]);
            let next = self.first.len() as u32;
            let colour = *known.entry((group.clone(), said(number))).or_insert(next);
            if colour == next {
                let local = groups.entry(group).or_default();
                self.first.push(number);
                self.local.push(*local);
                *local += 1;
                self.most = self.most.max(*local);
            }
            self.colours[number as usize] = colour;
        }
        (self.groups, self.nothing) = (Some(groups), HashMap::new());
    }

    fn colour_of(&self, number: u32) -> u32 {
        self.colours.get(number as usize).copied().unwrap_or(OUTSIDE)
    }

    /// The number of a tuple's colour in its group; `most` outside of the tensor.
    pub(super) fn place(&self, number: u32) -> u32 {
        self.local.get(self.colour_of(number) as usize).copied().unwrap_or(self.most)
    }

    /// Whether a tuple stands for all of its colour.
    pub(super) fn stands(&self, number: u32) -> bool {
        self.first.get(self.colour_of(number) as usize) == Some(&number)
    }
}

/// A binding of a term.
#[derive(Debug)]
pub(super) struct Row {
    /// The tuple that it contributes to; 0 where those are not merged.
    pub(super) head: u32,
    /// The tuples that it reads.
    pub(super) reads: Vec<u32>,
    /// The constants of the indices that stay, by their number.
    pub(super) kept: u32,
    pub(super) weight: f64,
}

/// All tuples, and the bindings of all terms.
#[derive(Debug, Default)]
pub(super) struct Store {
    pub(super) shapes: BTreeMap<Shape, Tuples>,
    /// By equation and term.
    pub(super) rows: BTreeMap<(usize, usize), Vec<Row>>,
    kept: HashMap<Tuple, u32>,
    pub(super) constants: Vec<Tuple>,
}

/// What a question found: the indices' constants, and the product of the factors.
pub(super) type Found = Vec<(Tuple, f64)>;

impl Store {
    /// Makes a shape known; tuples of data get their colours.
    pub(super) fn know(&mut self, program: &Program, shape: &Shape, data: bool) {
        if self.shapes.contains_key(shape) {
            return;
        }
        let tensor = program.tensor(shape.tensor);
        let mut tuples = Tuples { group: shape.group.len(), ..Tuples::default() };
        let places: Vec<usize> = shape.group.iter().chain(&shape.tuple).copied().collect();
        let domains: Vec<_> = places.iter().filter_map(|at| tensor.places.get(*at)?.domain.clone()).collect();
        let elements = domains.iter().try_fold(1_usize, |all, domain| all.checked_mul(domain.len()));
        if tensor.style == Style::Square && elements.is_some_and(|elements| elements <= NUMBERED) {
            for tuple in super::super::elements(&domains) {
                tuples.number(tuple);
            }
        }
        let mut said: HashMap<u32, Vec<(Tuple, u64)>> = HashMap::new();
        if data {
            super::super::each(tensor, |element, value| {
                let tuple = places.iter().filter_map(|at| element.get(*at).copied()).collect();
                let others = element.iter().enumerate().filter(|(at, _)| !places.contains(at));
                let others = others.map(|(_, constant)| *constant).collect();
                // A 0 has no sign.
                said.entry(tuples.number(tuple)).or_default().push((others, (value + 0.0).to_bits()));
            });
            said.values_mut().for_each(|said| said.sort());
            tuples.colour(|number| said.remove(&number).unwrap_or_default());
        }
        self.shapes.insert(shape.clone(), tuples);
    }

    /// The number of a tuple of a shape that a read asks for.
    fn read(&mut self, program: &Program, column: &Column, tuple: Tuple) -> u32 {
        let tensor = program.tensor(column.shape.tensor);
        let mut places = column.shape.group.iter().chain(&column.shape.tuple).zip(&tuple);
        let checked = tensor.style == Style::Square || column.otherwise != Otherwise::Absent;
        let outside = places.any(|(at, constant)| {
            let domain = tensor.places.get(*at).and_then(|place| place.domain.as_ref());
            domain.is_some_and(|domain| !domain.contains(*constant))
        });
        if checked && outside {
            return OUTSIDE;
        }
        self.shapes.get_mut(&column.shape).map_or(OUTSIDE, |tuples| tuples.number(tuple))
    }

    /// Takes down the bindings of a term; `false` where one has no tuple.
    pub(super) fn bindings(
        &mut self,
        program: &Program,
        equation: &Equation,
        head: Option<&Shape>,
        terms: &Terms,
        found: &Found,
    ) -> Option<Vec<Row>> {
        let tensor = program.tensor(equation.tensor);
        let mut rows = Vec::with_capacity(found.len());
        for (binding, weight) in found {
            let value = |index: IndexId| {
                terms.indices.iter().position(|other| *other == index).and_then(|at| binding.get(at)).copied()
            };
            let ordinal = |index: IndexId| match &program.index(index).range {
                Range::Domain(domain) => domain.ordinal(value(index)?),
                _ => None,
            };
            let of = |function: &IndexFn| function.evaluate(&value, &ordinal);
            let number = match head {
                None => 0,
                Some(shape) => {
                    let places = shape.group.iter().chain(&shape.tuple);
                    let tuple: Option<Tuple> = places.clone().map(|at| of(equation.head.get(*at)?)).collect();
                    let tuple = tuple?;
                    let outside = places.zip(&tuple).any(|(at, constant)| {
                        let place = tensor.places.get(*at);
                        let domain = match tensor.style {
                            Style::Square => place.and_then(|place| place.domain.as_ref()),
                            Style::Round => place.and_then(|place| place.limit.as_ref()),
                        };
                        domain.is_some_and(|domain| !domain.contains(*constant))
                    });
                    if outside {
                        continue;
                    }
                    self.shapes.get_mut(shape)?.number(tuple)
                }
            };
            let mut reads = Vec::with_capacity(terms.columns.len());
            for column in &terms.columns {
                let tuple: Option<Tuple> = column.functions.iter().map(of).collect();
                // What has no value is outside of everything.
                reads.push(tuple.map_or(OUTSIDE, |tuple| self.read(program, column, tuple)));
            }
            let kept: Option<Tuple> = terms.kept.iter().map(|index| value(*index)).collect();
            let kept = kept?;
            let next = self.constants.len() as u32;
            let kept = *self.kept.entry(kept.clone()).or_insert_with(|| {
                self.constants.push(kept);
                next
            });
            rows.push(Row { head: number, reads, kept, weight: *weight });
        }
        Some(rows)
    }

    /// Colours the tuples of tensors that are made together.
    pub(super) fn component(
        &mut self,
        program: &Program,
        own: &BTreeSet<Shape>,
        terms: &[(usize, usize, &Equation, &Terms)],
    ) {
        for shape in own {
            if let Some(tuples) = self.shapes.get_mut(shape) {
                tuples.colour(|_| ());
            }
        }
        loop {
            let before = self.colours(own);
            let said: Vec<HashMap<u32, Vec<u64>>> =
                own.iter().map(|shape| self.said(program, shape, terms)).collect();
            for (shape, mut said) in own.iter().zip(said) {
                if let Some(tuples) = self.shapes.get_mut(shape) {
                    let old = tuples.colours.clone();
                    tuples.colour(|number| {
                        let old = old.get(number as usize).copied().unwrap_or(0);
                        (old, said.remove(&number).unwrap_or_default())
                    });
                }
            }
            if self.colours(own) == before {
                return;
            }
        }
    }

    fn colours(&self, own: &BTreeSet<Shape>) -> usize {
        own.iter().filter_map(|shape| self.shapes.get(shape)).map(|tuples| tuples.first.len()).sum()
    }

    /// Of each tuple of a shape what contributes to it: in order, kinds of bindings and how many there are of each.
    fn said(
        &self,
        program: &Program,
        shape: &Shape,
        terms: &[(usize, usize, &Equation, &Terms)],
    ) -> HashMap<u32, Vec<u64>> {
        let adds = program.tensor(shape.tensor).combine == Combine::Sum;
        let mut kinds: HashMap<u32, Vec<(Vec<u32>, f64)>> = HashMap::new();
        let own = terms.iter().filter(|(_, _, equation, _)| equation.tensor == shape.tensor);
        for (number, (at, term, _, terms)) in own.enumerate() {
            let columns: Vec<Option<&Tuples>> =
                terms.columns.iter().map(|column| self.shapes.get(&column.shape)).collect();
            for row in self.rows.get(&(*at, *term)).into_iter().flatten() {
                let mut key = vec![number as u32, row.kept];
                for (tuples, read) in columns.iter().zip(&row.reads) {
                    key.push(tuples.map_or(OUTSIDE, |tuples| tuples.colour_of(*read)));
                }
                kinds.entry(row.head).or_default().push((key, if adds { row.weight } else { 1.0 }));
            }
        }
        kinds.into_iter().map(|(head, kinds)| (head, counted(kinds))).collect()
    }

    /// How many tuples there are of shapes, and how many colours.
    pub(super) fn sizes<'s>(&self, shapes: impl Iterator<Item = &'s Shape>) -> (usize, usize) {
        let all: Vec<&Tuples> = shapes.filter_map(|shape| self.shapes.get(shape)).collect();
        (all.iter().map(|tuples| tuples.list.len()).sum(), all.iter().map(|tuples| tuples.first.len()).sum())
    }
}

/// Kinds in order, each once with the sum of its weights.
fn counted(mut kinds: Vec<(Vec<u32>, f64)>) -> Vec<u64> {
    kinds.sort_by(|(a, _), (b, _)| a.cmp(b));
    let mut said: Vec<u64> = Vec::new();
    let mut at = 0;
    while let Some((key, _)) = kinds.get(at) {
        let same = kinds.iter().skip(at).take_while(|(other, _)| other == key);
        let (count, sum) = same.fold((0, 0.0), |(count, sum), (_, weight)| (count + 1, sum + weight));
        said.extend(key.iter().map(|part| u64::from(*part)));
        said.push(sum.to_bits());
        at += count;
    }
    said
}
