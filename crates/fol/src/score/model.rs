//! The draws of a law that depend on nothing hidden, as probabilities.

use std::ops::Range;

use crate::ast::Sign;
use crate::blocks::{arity_in, number_of, numbered};
use crate::index::Block;
use crate::law::atoms::atoms;
use crate::law::{Arguments, Binder, BinderNames, CountLaw, DepthLaw, Family, Law, Predicates};
use crate::notation::Notation;
use crate::symbol::VOCABULARY;

/// Probabilities by symbol id.
pub type Distribution = [f64; VOCABULARY];

/// Local probabilities.
#[derive(Debug, Clone)]
pub(super) struct Model {
    pub(super) notation: Notation,
    /// The share of binary and atomic formulas that stand in a second pair of parentheses.
    pub(super) doubled: f64,
    /// AND, OR, IMPLIES, IFF, among binary connectives.
    pub(super) binary: [f64; 4],
    pub(super) quantifiers: [f64; 3],
    pub(super) relations: [f64; 6],
    /// TRUE, FALSE.
    pub(super) truth: [f64; 2],
    /// By the number of variables in scope, the last entry for all larger ones.
    by_scope: Vec<ByScope>,
    /// The arities of predicates.
    pub(super) arities: Arities,
    pub(super) functions: Vec<(usize, u64)>,
    pub(super) term_depth: u32,
    /// Arguments are variables, in scope if there are any.
    pub(super) public: bool,
    pub(super) binder: BinderLaw,
    /// If binders are apart: what the next one can be called, by the number of names above it.
    pub(super) apart: Vec<ApartNames>,
    /// The share of binders that bind nothing.
    pub(super) vacuous: f64,
    /// The share of variables that are the innermost one for sure.
    pub(super) recent: f64,
    /// The probability of a sort, if there are sorts.
    pub(super) sorted: Option<[f64; 2]>,
    /// One block of all predicates, functions, constants, names, sorts.
    pub(super) all_predicates: [Block; 1],
    pub(super) all_functions: [Block; 1],
    pub(super) all_constants: [Block; 1],
    pub(super) all_names: [Block; 1],
    pub(super) all_sorts: [Block; 1],
}

/// What depends on the number of variables in scope.
#[derive(Debug, Clone)]
struct ByScope {
    /// Predicate, relation, truth.
    atoms: [f64; 3],
    predicates: Vec<Block>,
    /// Variable, constant, function; the second where functions are allowed.
    terms: [[f64; 3]; 2],
}

/// How many arguments a predicate takes.
#[derive(Debug, Clone)]
pub(super) enum Arities {
    /// Blocks of arity and number.
    Fixed(Vec<(usize, u64)>),
    /// Drawn for each use.
    Drawn(Numbers),
}

/// The arity of one use of a predicate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arity {
    Fixed(usize),
    Drawn,
}

/// A distribution over small numbers.
#[derive(Debug, Clone)]
pub(super) struct Numbers {
    exactly: Vec<f64>,
    at_least: Vec<f64>,
}

impl Numbers {
    /// The shares of these numbers.
    pub(super) fn new(weights: &[(u64, u64)]) -> Self {
        let most = weights.iter().filter(|w| w.1 > 0).map(|w| w.0).max().unwrap_or(0);
        let sum = weights.iter().map(|w| w.1).sum::<u64>().max(1) as f64;
        let of = |from: u64, to: u64| {
            weights.iter().filter(|w| from <= w.0 && w.0 <= to).map(|w| w.1).sum::<u64>() as f64 / sum
        };
        Self {
            exactly: (0..=most).map(|n| of(n, n)).collect(),
            at_least: (0..=most).map(|n| of(n, most)).collect(),
        }
    }

    /// The probability of this number.
    pub(super) fn exactly(&self, n: usize) -> f64 {
        self.exactly.get(n).copied().unwrap_or(0.0)
    }

    /// The probability of this number or a larger one.
    pub(super) fn at_least(&self, n: usize) -> f64 {
        self.at_least.get(n).copied().unwrap_or(0.0)
    }
}

/// How binders are named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BinderLaw {
    Pool,
    Numbered,
    Distinct,
    Apart,
}

/// Weights of the names of a binder below others, if binders are apart.
#[derive(Debug, Clone)]
pub(super) struct ApartNames {
    pub(super) names: [Block; 1],
    /// What a name above adds.
    pub(super) again: f64,
}

impl ApartNames {
    /// Among so many names, below so many others, a share of which are taken again.
    fn new(names: u64, above: u32, shadow: u8) -> Self {
        let shadow = if above == 0 { 0.0 } else { f64::from(shadow) / 100.0 };
        let others = (1.0 - shadow) / names.saturating_sub(u64::from(above)).max(1) as f64;
        let again = if above == 0 { 0.0 } else { shadow / f64::from(above) - others };
        Self { names: [(0, names, others)], again }
    }
}

/// Weights as probabilities; all 0 stay 0.
pub(super) fn shares<const N: usize>(weights: [u64; N]) -> [f64; N] {
    let sum: u64 = weights.iter().sum();
    weights.map(|w| if sum == 0 { 0.0 } else { w as f64 / sum as f64 })
}

/// Equal shares for the chosen signs.
fn equal<T: Sign, const N: usize>(chosen: &[T]) -> [f64; N] {
    let mut weights = [0; N];
    for (weight, member) in weights.iter_mut().zip(T::ALL) {
        *weight = u64::from(chosen.contains(member));
    }
    shares(weights)
}

fn all(number: u64) -> [Block; 1] {
    [(0, number, 1.0)]
}

impl Model {
    pub(super) fn new(law: &Law, notation: Notation) -> Self {
        let model = match &law.family {
            Family::Depth(law) => Self::of_depth(law),
            Family::Count(law) => Self::of_count(law),
            Family::Boltzmann(law) => Self::of_count(&law.grammar),
        };
        Self { notation, ..model }
    }

    /// Operators stand before their operands, and there are no parentheses and commas.
    pub(super) fn is_prefix(&self) -> bool {
        self.notation == Notation::Prefix
    }

    fn of_depth(law: &DepthLaw) -> Self {
        let [_, binary @ ..] = law.connectives;
        let number_of_functions = number_of(&law.functions);
        let [variable, constant, function] = law.terms;
        let constant = if law.constants > 0 { constant } else { 0 };
        let function = if number_of_functions > 0 { function } else { 0 };
        let terms = |v: u64| [shares([v, constant, 0]), shares([v, constant, function])];
        let by_scope = [0, variable].map(|v| ByScope {
            atoms: shares(law.atoms),
            predicates: all(law.predicates.number()).to_vec(),
            terms: terms(v),
        });
        Self {
            notation: Notation::Infix,
            doubled: 0.0,
            binary: shares(binary),
            quantifiers: shares(law.quantifiers),
            relations: shares(law.relations),
            truth: shares(law.truth),
            by_scope: by_scope.to_vec(),
            arities: match &law.predicates {
                Predicates::Overloaded { arities, .. } => {
                    let weights: Vec<(u64, u64)> = arities.iter().map(|a| (a.0 as u64, a.1)).collect();
                    Arities::Drawn(Numbers::new(&weights))
                }
                Predicates::Blocks(blocks) => Arities::Fixed(blocks.clone()),
            },
            functions: law.functions.clone(),
            term_depth: law.term_depth,
            public: law.arguments == Arguments::Public,
            binder: match law.binder {
                Binder::Pool => BinderLaw::Pool,
                Binder::Fresh => BinderLaw::Numbered,
                Binder::Apart => BinderLaw::Apart,
            },
            apart: match law.binder {
                Binder::Apart => {
                    (0..=law.deepest()).map(|above| ApartNames::new(law.names, above, law.shadow)).collect()
                }
                Binder::Pool | Binder::Fresh => Vec::new(),
            },
            vacuous: f64::from(law.vacuous) / 100.0,
            recent: f64::from(law.recent) / 100.0,
            sorted: (law.sorts > 0).then(|| shares(law.sorted)),
            all_predicates: all(law.predicates.number()),
            all_functions: all(number_of_functions),
            all_constants: all(law.constants),
            all_names: all(law.names),
            all_sorts: all(law.sorts),
        }
    }

    fn of_count(law: &CountLaw) -> Self {
        let number_of_predicates = number_of(&law.predicates);
        let canonical = law.names == BinderNames::Canonical;
        Self {
            notation: Notation::Infix,
            doubled: 0.0,
            binary: equal(&law.connectives),
            quantifiers: equal(&law.quantifiers),
            relations: equal(&law.relations),
            truth: shares([u64::from(law.truth); 2]),
            by_scope: (0..law.largest()).map(|k| ByScope::of_count(law, k)).collect(),
            arities: Arities::Fixed(law.predicates.clone()),
            functions: Vec::new(),
            term_depth: 0,
            public: false,
            binder: if canonical { BinderLaw::Numbered } else { BinderLaw::Distinct },
            apart: Vec::new(),
            vacuous: 0.0,
            recent: 0.0,
            sorted: None,
            all_predicates: all(number_of_predicates),
            all_functions: all(0),
            all_constants: all(law.constants),
            all_names: all(law.pool),
            all_sorts: all(0),
        }
    }

    /// The arity of a predicate.
    pub(super) fn arity(&self, predicate: u64) -> Arity {
        match &self.arities {
            Arities::Fixed(blocks) => Arity::Fixed(arity_in(blocks, predicate)),
            Arities::Drawn(_) => Arity::Drawn,
        }
    }

    /// The probability of one more argument after so many.
    pub(super) fn more(&self, arity: Arity, done: usize) -> f64 {
        match (arity, &self.arities) {
            (Arity::Fixed(arity), _) => f64::from(u8::from(done < arity)),
            // An exact 1 where no arity is `done`.
            (Arity::Drawn, Arities::Drawn(arities)) if arities.exactly(done) <= 0.0 => 1.0,
            (Arity::Drawn, Arities::Drawn(arities)) => arities.at_least(done + 1) / arities.at_least(done),
            (Arity::Drawn, Arities::Fixed(_)) => 0.0,
        }
    }

    fn of_scope(&self, scope: usize) -> Option<&ByScope> {
        self.by_scope.get(scope).or(self.by_scope.last())
    }

    /// Predicate, relation, truth.
    pub(super) fn atoms(&self, scope: usize) -> [f64; 3] {
        self.of_scope(scope).map_or([0.0; 3], |s| s.atoms)
    }

    /// Blocks of predicates with their weights.
    pub(super) fn predicates(&self, scope: usize) -> &[Block] {
        self.of_scope(scope).map_or(&[], |s| s.predicates.as_slice())
    }

    /// Variable, constant, function.
    pub(super) fn terms(&self, scope: usize, depth: u32) -> [f64; 3] {
        self.of_scope(scope).map_or([0.0; 3], |s| {
            let [without, with] = s.terms;
            if depth < self.term_depth { with } else { without }
        })
    }
}

impl ByScope {
    /// All atoms over k variables are equally likely.
    fn of_count(law: &CountLaw, k: usize) -> Self {
        let terms = (k as u64 + law.constants) as f64;
        let all = atoms(law, k);
        let share = |x: f64| if all > 0.0 { x / all } else { 0.0 };
        let each =
            |(arity, indices): (usize, Range<u64>)| (indices.start, indices.end, terms.powi(arity as i32));
        let predicates: Vec<Block> = numbered(&law.predicates).map(each).collect();
        let weight: f64 = predicates.iter().map(|(from, to, each)| each * (to - from) as f64).sum();
        let relations = law.relations.len() as f64 * terms * terms;
        let truth = if law.truth { 2.0 } else { 0.0 };
        let of = |x: f64| if terms > 0.0 { x / terms } else { 0.0 };
        Self {
            atoms: [share(weight), share(relations), share(truth)],
            predicates,
            terms: [[of(k as f64), of(law.constants as f64), 0.0]; 2],
        }
    }
}
