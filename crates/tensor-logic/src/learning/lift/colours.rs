//! Colours of constants, refined until the scopes count the same for all of a colour.

use std::collections::{BTreeMap, BTreeSet};

use super::places::{ClassId, Places, Scope};
use super::{Counts, each};
use crate::program::{Program, Role, TensorId};
use crate::value::{Const, Domain};

/// The colours of the constants of each class.
#[derive(Debug)]
pub(super) struct Colours {
    classes: BTreeMap<ClassId, BTreeMap<Const, usize>>,
    /// The first constant of each colour.
    first: BTreeMap<ClassId, Vec<Const>>,
}

/// What is said of the constants of each class, in order.
type All<S> = BTreeMap<ClassId, Vec<(Const, S)>>;

/// A constant in a row: its colour, if its class is lifted.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Colour(usize),
    Constant(Const),
}

impl Colours {
    /// How many constants there are, and how many colours.
    pub(super) fn sizes(&self) -> (usize, usize) {
        (self.classes.values().map(BTreeMap::len).sum(), self.first.values().map(Vec::len).sum())
    }

    /// The constant that stands for another one.
    pub(super) fn representative(&self, class: ClassId, constant: Const) -> Const {
        let colour = self.classes.get(&class).and_then(|colours| colours.get(&constant));
        let first = colour.and_then(|colour| self.first.get(&class)?.get(*colour));
        first.copied().unwrap_or(constant)
    }

    /// The constants that stand for all others, in order.
    pub(super) fn domain(&self, class: ClassId) -> Domain {
        Domain::listed(self.first.get(&class).into_iter().flatten().copied())
    }

    /// Each of them with how many it stands for.
    pub(super) fn members(&self, class: ClassId) -> Vec<(Const, usize)> {
        let colours = self.classes.get(&class);
        let mut members: Vec<(Const, usize)> =
            self.first.get(&class).into_iter().flatten().map(|constant| (*constant, 0)).collect();
        for colour in colours.into_iter().flat_map(BTreeMap::values) {
            if let Some((_, count)) = members.get_mut(*colour) {
                *count += 1;
            }
        }
        members
    }

    /// Numbers what is said of each constant, in order of the first constants.
    fn numbered<S: Ord>(said: All<S>) -> Colours {
        let mut colours = Colours { classes: BTreeMap::new(), first: BTreeMap::new() };
        for (class, constants) in said {
            let (mut known, mut first) = (BTreeMap::new(), Vec::new());
            let mut of = BTreeMap::new();
            for (constant, said) in constants {
                let colour = *known.entry(said).or_insert_with(|| {
                    first.push(constant);
                    first.len() - 1
                });
                of.insert(constant, colour);
            }
            colours.classes.insert(class, of);
            colours.first.insert(class, first);
        }
        colours
    }

    fn key(&self, class: Option<ClassId>, constant: Const) -> Key {
        let colour = class.and_then(|class| self.classes.get(&class)?.get(&constant));
        colour.map_or(Key::Constant(constant), |colour| Key::Colour(*colour))
    }
}

/// The coarsest colours that are finer than the data, and under which every scope counts the same.
pub(super) fn refined(program: &Program, places: &Places, scopes: &[Scope], counts: &[Counts]) -> Colours {
    let mut colours = by_data(program, places);
    loop {
        let before = colours.sizes();
        colours = finer(&colours, places, scopes, counts);
        if colours.sizes() == before {
            return colours;
        }
    }
}

/// What data say of a constant: the tensor, its other constants, the bits of its number.
type Said = Vec<(TensorId, Vec<Const>, u64)>;

/// Constants are equal that have equal data; those that the program names are equal to none.
fn by_data(program: &Program, places: &Places) -> Colours {
    let mut said: BTreeMap<(ClassId, Const), Said> = BTreeMap::new();
    for (id, tensor) in (0..).map(TensorId).zip(&program.tensors) {
        if tensor.role != Role::Data {
            continue;
        }
        let lifted: Vec<(usize, ClassId)> =
            (0..tensor.places.len()).filter_map(|at| Some((at, places.of_place(id, at)?))).collect();
        // Relations between constants are counted.
        let [(at, class)] = lifted.as_slice() else { continue };
        each(tensor, |tuple, value| {
            let mut others = tuple.to_vec();
            if *at < others.len() {
                let constant = others.remove(*at);
                // A 0 has no sign.
                said.entry((*class, constant)).or_default().push((id, others, (value + 0.0).to_bits()));
            }
        });
    }
    let mut all: All<(Option<Const>, Said)> = All::new();
    for (class, domain) in places.lifted_classes() {
        let of = |constant: Const| {
            let named = places.named.contains(&(class, constant)).then_some(constant);
            let mut said = said.remove(&(class, constant)).unwrap_or_default();
            said.sort();
            (constant, (named, said))
        };
        all.insert(class, domain.values().map(of).collect());
    }
    Colours::numbered(all)
}

/// Colours by the colours before and by what each scope counts.
fn finer(colours: &Colours, places: &Places, scopes: &[Scope], counts: &[Counts]) -> Colours {
    type Seen = BTreeSet<(usize, Vec<Key>, u64)>;
    let mut seen: BTreeMap<(ClassId, Const), Seen> = BTreeMap::new();
    for (number, (scope, counts)) in scopes.iter().zip(counts).enumerate() {
        let Some(outside) = scope.outside else { continue };
        let Some(class) = places.of_index(outside) else { continue };
        let classes: Vec<Option<ClassId>> =
            scope.indices.iter().map(|index| places.of_index(*index)).collect();
        let mut sums: BTreeMap<(Const, Vec<Key>), f64> = BTreeMap::new();
        for (tuple, count) in counts {
            let (mut own, mut others) = (None, Vec::new());
            for ((index, class), constant) in scope.indices.iter().zip(&classes).zip(tuple) {
                match *index == outside {
                    true => own = Some(*constant),
                    false => others.push(colours.key(*class, *constant)),
                }
            }
            if let Some(own) = own {
                *sums.entry((own, others)).or_default() += count;
            }
        }
        for ((own, others), sum) in sums {
            seen.entry((class, own)).or_default().insert((number, others, sum.to_bits()));
        }
    }
    let mut all: All<(usize, Seen)> = All::new();
    for (class, domain) in places.lifted_classes() {
        let of = |constant: Const| {
            let before = colours.classes.get(&class).and_then(|colours| colours.get(&constant)).copied();
            (constant, (before.unwrap_or(0), seen.remove(&(class, constant)).unwrap_or_default()))
        };
        all.insert(class, domain.values().map(of).collect());
    }
    Colours::numbered(all)
}
