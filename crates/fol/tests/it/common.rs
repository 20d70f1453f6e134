//! Random trees, for the tests that compare a clever way with a plain one.

use fol::ast::{
    Connective, Constant, Definition, Formula, Function, Predicate, Quantifier, Relation, Sort, Statement,
    Term, Text, Turnstile, Variable,
};
use std::collections::BTreeMap;

use fol::law::Law;
use fol::score::Scorer;
use fol::symbol::SymbolId;
use seeded::{Family, Stream};

/// Changes of keys, as the library takes them.
pub(crate) fn changes(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
}

/// A built-in law with some keys changed.
pub(crate) fn law(name: &str, pairs: &[(&str, &str)]) -> Law {
    Law::named(name, &changes(pairs)).unwrap()
}

/// Definitions and other statements, with function terms of two digits and more.
pub(crate) fn statements() -> Law {
    law(
        "seed",
        &[
            ("statements.count", "[[1,1],[2,2]]"),
            ("levels", "[]"),
            ("predicates", "[[0,2],[1,1]]"),
            ("names", "3"),
            ("functions", "[[1,1],[2,700]]"),
            ("terms.function", "4"),
            ("term_depth", "2"),
        ],
    )
}

/// The draws of a number, counted from the seed of the run.
pub(crate) fn drawn(family: &Family, item: u64) -> Stream {
    family.stream(seeded::test_seed().wrapping_add(item))
}

/// A family of streams of its own for each seed of the run.
pub(crate) fn run_family(name: &str) -> Family {
    Family::new(name, "test", seeded::test_seed())
}

/// χ² of drawn texts against the probabilities that the scorer gives them; what is expected less than five times is
/// one class. Refused with probability of about 3 in ten million, as a normal deviate by the cube root of χ².
pub(crate) fn check_drawn(law: &Law, number: u64, mut draw: impl FnMut(u64, &mut Vec<SymbolId>)) {
    let mut counts: BTreeMap<Vec<SymbolId>, f64> = BTreeMap::new();
    for item in 0..number {
        let mut tokens = Vec::new();
        draw(item, &mut tokens);
        *counts.entry(tokens).or_insert(0.0) += 1.0;
    }
    let mut scorer = Scorer::new(law).unwrap();
    let (mut chi2, mut classes, mut rest, mut seen) = (0.0, 0.0, number as f64, number as f64);
    for (tokens, count) in &counts {
        let expected = (-scorer.score(tokens).unwrap()).exp() * number as f64;
        // Texts that should have come and did not are in the rest, with what is expected of them.
        if expected >= 5.0 {
            chi2 += (count - expected).powi(2) / expected;
            (classes, rest, seen) = (classes + 1.0, rest - expected, seen - count);
        }
    }
    assert!(classes > 10.0, "{classes} classes say little");
    if rest >= 5.0 {
        chi2 += (seen - rest).powi(2) / rest;
        classes += 1.0;
    }
    let free = classes - 1.0;
    let deviate = ((chi2 / free).cbrt() - (1.0 - 2.0 / (9.0 * free))) / (2.0 / (9.0 * free)).sqrt();
    assert!(deviate < 5.0, "chi2 = {chi2} of {free} degrees of freedom");
}

/// A source of random trees over small or large indices.
pub(crate) struct Trees {
    pub(crate) stream: Stream,
    /// Indices are mostly below this number.
    pub(crate) names: u64,
}

impl Trees {
    /// The trees of a number, counted from the seed of the run.
    pub(crate) fn new(name: &str, item: u64) -> Self {
        Self { stream: drawn(&Family::named(name), item), names: 4 }
    }

    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.stream.below(n)
    }

    pub(crate) fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    pub(crate) fn pick<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize]
    }

    pub(crate) fn index(&mut self) -> u64 {
        match self.below(40) {
            0 => self.stream.next_u64() >> self.below(64),
            1 => 600 + self.below(100),
            _ => self.below(self.names),
        }
    }

    pub(crate) fn variable(&mut self) -> Variable {
        Variable(self.index())
    }

    pub(crate) fn term(&mut self, depth: u64) -> Term {
        match self.below(if depth == 0 { 2 } else { 3 }) {
            0 => Term::Variable(self.variable()),
            1 => Term::Constant(Constant(self.index())),
            _ => {
                let arity = 1 + self.below(3);
                let function = Function(self.index());
                Term::Function(function, (0..arity).map(|_| self.term(depth - 1)).collect())
            }
        }
    }

    pub(crate) fn formula(&mut self, depth: u64) -> Formula {
        match self.below(if depth == 0 { 3 } else { 9 }) {
            0 => Formula::Truth(self.one_in(2)),
            1 => {
                let arity = self.below(4);
                let predicate = Predicate(self.index());
                Formula::Predicate(predicate, (0..arity).map(|_| self.term(2)).collect())
            }
            2 => Formula::Relation(self.pick(Relation::ALL), self.term(2), self.term(2)),
            3 => Formula::Not(Box::new(self.formula(depth - 1))),
            4 | 5 => {
                let quantifier = self.pick(Quantifier::ALL);
                let variable = self.variable();
                let sort = self.one_in(3).then(|| Sort(self.index()));
                Formula::Quantified(quantifier, variable, sort, Box::new(self.formula(depth - 1)))
            }
            _ => {
                let connective = self.pick(Connective::ALL);
                let left = self.formula(depth - 1);
                Formula::Binary(connective, Box::new(left), Box::new(self.formula(depth - 1)))
            }
        }
    }

    fn variables(&mut self, least: u64) -> Vec<Variable> {
        (0..least + self.below(3)).map(|_| self.variable()).collect()
    }

    pub(crate) fn statement(&mut self, depth: u64) -> Statement {
        match self.below(8) {
            0 | 1 => {
                let premises = (0..self.below(4)).map(|_| self.formula(depth)).collect();
                let conclusion = (!self.one_in(4)).then(|| self.formula(depth));
                Statement::Sequent(self.pick(Turnstile::ALL), premises, conclusion)
            }
            2 => {
                let (predicate, parameters) = (Predicate(self.index()), self.variables(0));
                Statement::Definition(Definition::Predicate(predicate, parameters, self.formula(depth)))
            }
            3 => {
                let (function, parameters) = (Function(self.index()), self.variables(1));
                Statement::Definition(Definition::Function(function, parameters, self.term(2)))
            }
            4 => Statement::Definition(Definition::Constant(Constant(self.index()), self.term(2))),
            5 => Statement::Equivalence(self.formula(depth), self.formula(depth)),
            _ => Statement::Formula(self.formula(depth)),
        }
    }

    pub(crate) fn text(&mut self) -> Text {
        let depth = self.below(6);
        let statements = (0..1 + self.below(3)).map(|_| self.statement(depth)).collect();
        Text { statements, terminated: self.one_in(3) }
    }
}
