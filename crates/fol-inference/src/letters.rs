//! What the letters of schemas stand for: texts of a law, renamed into the names of an instance.
//!
//! A closed letter is a text of the law without an alternation of quantifiers, so that an instance stays in the
//! [fragment](crate::fragment); a letter with a free variable is one without quantifiers, and the variable stands for one of its
//! constants. Texts that do not fit are drawn again.

use std::collections::BTreeMap;

use fol::ast::{Constant, Formula, Predicate, Term, Variable};
use fol::error::{Kind, Refusal};
use fol::law::Law;
use fol::sample::Sampler;
use fol_prover::rules::Letters;
use seeded::Stream;

use crate::fragment::fits_anywhere;
use crate::tree::{Renaming, constants, is_open, predicates, put_for};

/// Predicates of each arity, and constants, that an instance may use, if there are so many names.
const PREDICATES: usize = 14;
const CONSTANTS: usize = 6;
/// After so many texts that do not fit the letter is an atom.
const TRIES: usize = 100;

/// The names that an instance may use: predicates by arity, all different, and constants.
#[derive(Debug, Clone)]
pub(crate) struct Names {
    predicates: BTreeMap<usize, Vec<Predicate>>,
    constants: Vec<Constant>,
}

impl Names {
    fn draw(arities: &[usize], all: u32, draw: &mut Stream) -> Self {
        let mut indices = draw.permutation(all).into_iter().map(u64::from);
        let each = PREDICATES.min(all as usize / arities.len().max(1));
        let predicates = arities
            .iter()
            .map(|arity| (*arity, indices.by_ref().take(each).map(Predicate).collect()))
            .collect();
        let constants = draw.permutation(all).into_iter().take(CONSTANTS);
        Self { predicates, constants: constants.map(|c| Constant(u64::from(c))).collect() }
    }

    /// Only these predicates, where there are some of an arity.
    pub(crate) fn sharing(&self, used: &[(usize, Predicate)]) -> Self {
        let of = |(arity, all): (&usize, &Vec<Predicate>)| {
            let own: Vec<Predicate> = used.iter().filter(|(a, _)| a == arity).map(|(_, p)| *p).collect();
            (*arity, if own.is_empty() { all.clone() } else { own })
        };
        Self { predicates: self.predicates.iter().map(of).collect(), constants: self.constants.clone() }
    }

    /// Without these predicates, where others are left.
    pub(crate) fn without(&self, used: &[(usize, Predicate)]) -> Self {
        let of = |(arity, all): (&usize, &Vec<Predicate>)| {
            let others: Vec<Predicate> =
                all.iter().copied().filter(|p| !used.contains(&(*arity, *p))).collect();
            (*arity, if others.is_empty() { all.clone() } else { others })
        };
        Self { predicates: self.predicates.iter().map(of).collect(), constants: self.constants.clone() }
    }
}

/// The letters of a law. Cloned for every thread.
#[derive(Debug, Clone)]
pub(crate) struct Texts {
    sampler: Sampler,
    arities: Vec<usize>,
    /// Indices of names, from 0.
    names: u32,
}

impl Texts {
    /// The texts of a law.
    ///
    /// # Errors
    /// `BadValue` for a law outside the fragment (functions, relations, sorts, ∃!, no constants or predicates, statements); what the sampler
    /// refuses.
    pub(crate) fn new(law: &Law, names: u32) -> Result<Self, Refusal> {
        let signature = law.signature();
        let mut arities: Vec<usize> = signature.predicates.iter().flatten().copied().collect();
        arities.sort_unstable();
        arities.dedup();
        let unique = signature.quantifiers.contains(&fol::ast::Quantifier::Exists1);
        let faults = [
            (!signature.functions.iter().all(Vec::is_empty), "it has functions"),
            (!signature.relations.is_empty(), "it has relations between terms"),
            (signature.sorts > 0, "it has sorts"),
            (unique, "it has ∃!"),
            (!signature.truth.is_empty(), "it has ⊤ and ⊥"),
            (law.has_statements(), "its texts are more than one formula"),
            (signature.constants == 0, "it has no constants"),
            (!arities.iter().any(|arity| *arity > 0), "it has no predicates with arguments"),
            (2 * arities.len() > names as usize, "it has predicates of too many arities for so few names"),
        ];
        if let Some((_, why)) = faults.into_iter().find(|(is_there, _)| *is_there) {
            return Err(Refusal::new(Kind::BadValue, format!("law: {why}"))
                .help("labels are certain for predicates and constants alone: take law.relations = []"));
        }
        Ok(Self { sampler: Sampler::new(law)?, arities, names })
    }

    /// The names of one instance.
    pub(crate) fn names(&self, draw: &mut Stream) -> Names {
        Names::draw(&self.arities, self.names, draw)
    }

    /// Letters over names.
    pub(crate) fn over<'a>(&'a mut self, names: &'a Names) -> Source<'a> {
        Source { texts: self, names, tokens: Vec::new() }
    }
}

/// Draws letters.
pub(crate) struct Source<'a> {
    texts: &'a mut Texts,
    names: &'a Names,
    tokens: Vec<fol::symbol::SymbolId>,
}

impl Source<'_> {
    fn text(&mut self, draw: &mut Stream) -> Option<Formula> {
        self.tokens.clear();
        self.texts.sampler.sample(draw, &mut self.tokens);
        let text = fol::decode(&self.tokens).ok()?;
        if !fol::free_variables(&text).is_empty() {
            return None;
        }
        text.as_formula().cloned()
    }

    /// Injective within a letter, so that a letter says as much as the text of the law.
    fn renamed(&self, formula: &Formula, draw: &mut Stream) -> Formula {
        let mut renaming = Renaming::default();
        let mut free: BTreeMap<usize, Vec<Predicate>> = BTreeMap::new();
        for (arity, predicate) in predicates([formula]) {
            let left = free.entry(arity).or_insert_with(|| {
                let all = self.names.predicates.get(&arity).cloned().unwrap_or_default();
                shuffled(&all, draw)
            });
            // Where a letter has more predicates than there are names, some are one.
            let name = if left.len() > 1 { left.pop() } else { left.first().copied() };
            renaming.predicates.extend(name.map(|name| ((arity, predicate), name)));
        }
        let mut left = shuffled(&self.names.constants, draw);
        for constant in constants([formula]) {
            let name = if left.len() > 1 { left.pop() } else { left.first().copied() };
            renaming.constants.extend(name.map(|name| (constant, name)));
        }
        renaming.apply(formula)
    }
}

fn shuffled<T: Clone>(all: &[T], draw: &mut Stream) -> Vec<T> {
    draw.permutation(all.len() as u32).into_iter().filter_map(|at| all.get(at as usize).cloned()).collect()
}

fn one<T: Copy>(all: &[T], draw: &mut Stream) -> Option<T> {
    if all.is_empty() { None } else { all.get(draw.below(all.len() as u64) as usize).copied() }
}

impl Letters for Source<'_> {
    fn formula(&mut self, free: &[Variable], draw: &mut Stream) -> Formula {
        for _ in 0..TRIES {
            let Some(text) = self.text(draw) else { continue };
            let Some(x) = free.first() else {
                if fits_anywhere(&text) {
                    return self.renamed(&text, draw);
                }
                continue;
            };
            if is_open(&text) {
                let renamed = self.renamed(&text, draw);
                if let Some(constant) = one(&constants([&renamed]), draw) {
                    return put_for(&renamed, constant, &Term::Variable(*x));
                }
            }
        }
        self.atom(free, draw)
    }

    fn atom(&mut self, free: &[Variable], draw: &mut Stream) -> Formula {
        let arities: Vec<usize> = self.texts.arities.iter().copied().filter(|arity| *arity > 0).collect();
        let arity = one(&arities, draw).unwrap_or(1);
        let all = self.names.predicates.get(&arity).cloned().unwrap_or_default();
        let predicate = one(&all, draw).unwrap_or(Predicate(0));
        Formula::Predicate(predicate, (0..arity).map(|_| self.term(free, draw)).collect())
    }

    fn term(&mut self, free: &[Variable], draw: &mut Stream) -> Term {
        match one(free, draw) {
            Some(x) if draw.below(4) != 0 => Term::Variable(x),
            _ => Term::Constant(one(&self.names.constants, draw).unwrap_or(Constant(0))),
        }
    }
}
