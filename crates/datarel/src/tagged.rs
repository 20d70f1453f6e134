//! Rules evaluated in any semiring.
//!
//! Enter at [`evaluate_tagged`]. Which bindings of each rule there are is found without tags, by the engine for relations
//! without values: a relation for each rule holds them. Tags are then found stratum by stratum over these ground rules, round
//! by round from nothing: in each round those whose factors have changed are multiplied anew. This serves every [`Semiring`];
//! what the rings of the engine have of their own is faster, and is tested against this.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use crate::database::Database;
use crate::fixpoint::{check, evaluate};
use crate::limits::{Failure, Limits};
use crate::ring::Ring;
use crate::rule::{Atom, Literal, RelationId, Rule, Term};
use crate::semiring::{Fact, Semiring};
use crate::strata::strata;

/// Sums along cycles that do not come to rest are given up after so many rounds more than there are tuples.
const ROUNDS: u64 = 10_000;

/// The tuples that follow, with their tags.
#[derive(Debug, Clone, PartialEq)]
pub struct Tagged<T> {
    relations: Vec<BTreeMap<Vec<u32>, T>>,
    /// The rounds of all recursions.
    pub rounds: u64,
}

impl<T> Tagged<T> {
    /// The tag of a tuple, if it follows.
    pub fn tag(&self, relation: RelationId, tuple: &[u32]) -> Option<&T> {
        self.relations.get(relation.0 as usize)?.get(tuple)
    }

    /// The tuples of a relation in their order, with their tags.
    pub fn tuples(&self, relation: RelationId) -> impl Iterator<Item = (&[u32], &T)> {
        let tuples = self.relations.get(relation.0 as usize).into_iter().flatten();
        tuples.map(|(tuple, tag)| (tuple.as_slice(), tag))
    }
}

/// The tags of everything that follows by the rules: the least fixpoint in a semiring, stratum by stratum. The rings of the
/// relations play no part: every relation is tagged, a given tuple as [`Semiring::fact`] says, and the tag of a derivation is
/// the weight of the rule ⊗ its computed factors ⊗ the tags of the factors of its body. Other atoms are conditions on tuples, and
/// a tuple whose tag is 0̄ is one. Of the database only the constants change, where rules make new ones.
///
/// # Errors
/// See [`Failure`]. Tags that are still not at rest after N + 1 rounds over N tuples, or, where ⊕ is not idempotent, after
/// [`Limits::rounds`] or some thousand more, are [`Failure::Divergence`]; a tag that is none any more is [`Failure::Overflow`].
pub fn evaluate_tagged<S: Semiring>(
    database: &mut Database,
    rules: &[Rule],
    semiring: &S,
    limits: &Limits,
) -> Result<Tagged<S::Tag>, Failure> {
    let complements = semiring.negate(&semiring.zero()).is_some();
    let (mut twin, grounded) = twin(database, rules, complements)?;
    // Rules of the twin and of the program depend on each other alike, but for what is denied.
    check(&twin, rules)?;
    let done = evaluate(&mut twin, &grounded.rules, limits);
    database.constants = twin.constants.clone();
    done?;
    let mut tags = Tags::new(database, &twin, semiring)?;
    let mut rounds = 0;
    for stratum in strata(database.relations(), rules) {
        let mut ground = Vec::new();
        for number in &stratum.rules {
            let bindings = (&twin, grounded.bindings[*number], grounded.variables[*number].as_slice());
            tags.ground(&rules[*number], bindings, complements, &mut ground)?;
        }
        rounds += tags.fixpoint(ground, limits)?;
    }
    Ok(tags.finished(database.relations(), rounds))
}

/// What finds the bindings of rules.
struct Grounded {
    rules: Vec<Rule>,
    /// Of each rule the relation of its bindings, and the variables that are its places.
    bindings: Vec<RelationId>,
    variables: Vec<Vec<Term>>,
}

/// The same relations without values, and one of the bindings of each rule.
fn twin(database: &Database, rules: &[Rule], complements: bool) -> Result<(Database, Grounded), Failure> {
    let mut twin = Database::new(database.constants.clone());
    for relation in (0..database.relations() as u32).map(RelationId) {
        let of = database.relation(relation);
        twin.declare(of.name(), of.arity(), Ring::BOOLEAN);
        if !of.is_empty() {
            twin.insert(relation, &of.rows(), &[])?;
        }
    }
    let mut grounded = Grounded { rules: Vec::new(), bindings: Vec::new(), variables: Vec::new() };
    for (number, rule) in rules.iter().enumerate() {
        if rule.select.is_some() {
            return Err(Failure::Rule { rule: number, reason: "a condition on a value needs values" });
        }
        let rule = without_any(rule);
        let mut body = rule.body.clone();
        if complements {
            body.retain(|literal| !matches!(literal, Literal::Not(_)));
        }
        // A factor that has no number makes no contribution.
        body.extend(rule.computed.iter().map(|computed| {
            let (arguments, measure) = (computed.arguments.clone(), Arc::clone(&computed.measure));
            Literal::Test { arguments, test: Arc::new(move |constants| measure(constants).is_some()) }
        }));
        let mut variables: Vec<Term> = Vec::new();
        for term in rule.head_terms.iter().copied().chain(rule.body.iter().flat_map(terms)) {
            if term.as_variable().is_some() && !variables.contains(&term) {
                variables.push(term);
            }
        }
        let bindings = twin.declare(format!("bindings {number}"), variables.len(), Ring::BOOLEAN);
        let bound = Atom::new(bindings, variables.clone());
        grounded.rules.push(Rule::new(bindings, variables.clone(), body));
        grounded.rules.push(Rule::new(rule.head, rule.head_terms.clone(), [bound.into()]));
        grounded.bindings.push(bindings);
        grounded.variables.push(variables);
    }
    Ok((twin, grounded))
}

/// In factors `_` is a variable of its own.
fn without_any(rule: &Rule) -> Rule {
    let mut rule = rule.clone();
    let used = rule.head_terms.iter().copied().chain(rule.body.iter().flat_map(terms));
    let mut fresh = used.filter_map(Term::as_variable).map(|variable| variable.0 + 1).max().unwrap_or(0);
    for literal in &mut rule.body {
        if let Literal::Atom(Atom { terms, factor: true, .. }) = literal {
            for term in terms.iter_mut().filter(|term| **term == Term::Any) {
                *term = Term::variable(fresh);
                fresh += 1;
            }
        }
    }
    rule
}

fn terms(literal: &Literal) -> Vec<Term> {
    match literal {
        Literal::Atom(atom) | Literal::Not(atom) => atom.terms.clone(),
        Literal::Compare(_, a, b) | Literal::Shift { to: a, from: b, .. } => vec![*a, *b],
        Literal::Compute { result, arguments, .. } => arguments.iter().copied().chain([*result]).collect(),
        Literal::Test { arguments, .. } => arguments.clone(),
    }
}

/// A ground rule.
struct Ground<T> {
    head: usize,
    /// The weight and what is made from constants, and what is denied.
    constant: T,
    /// The factors: tuples by their numbers.
    factors: Vec<usize>,
    /// What they come to.
    product: Option<T>,
}

/// All tuples with their tags.
struct Tags<'a, S: Semiring> {
    semiring: &'a S,
    database: &'a Database,
    numbers: HashMap<(RelationId, Vec<u32>), usize>,
    tuples: Vec<(RelationId, Vec<u32>)>,
    /// `None` of what has no derivation yet.
    tags: Vec<Option<S::Tag>>,
}

impl<'a, S: Semiring> Tags<'a, S> {
    /// The tags of what is given, and a place for all that follows.
    fn new(database: &'a Database, twin: &Database, semiring: &'a S) -> Result<Tags<'a, S>, Failure> {
        let mut tags =
            Tags { semiring, database, numbers: HashMap::new(), tuples: Vec::new(), tags: Vec::new() };
        let mut facts = 0;
        for relation in (0..database.relations() as u32).map(RelationId) {
            let given = database.relation(relation);
            for tuple in rows(twin, relation) {
                let tag = match given.contains(&tuple) {
                    false => None,
                    true => {
                        let value = given.value(&tuple).filter(|_| given.ring().valued());
                        let fact = Fact { number: facts, relation, tuple: &tuple, value };
                        facts += 1;
                        let tag = semiring.fact(&fact);
                        Some(tag.ok_or_else(|| Failure::Overflow { relation, tuple: tuple.clone() })?)
                    }
                };
                tags.numbers.insert((relation, tuple.clone()), tags.tuples.len());
                tags.tuples.push((relation, tuple));
                tags.tags.push(tag);
            }
        }
        Ok(tags)
    }

    fn overflow(&self, tuple: usize) -> Failure {
        let (relation, tuple) = self.tuples.get(tuple).cloned().unwrap_or((RelationId(0), Vec::new()));
        Failure::Overflow { relation, tuple }
    }

    /// The ground rules of a rule, by the bindings of its variables.
    fn ground(
        &self,
        rule: &Rule,
        (twin, bindings, variables): (&Database, RelationId, &[Term]),
        complements: bool,
        into: &mut Vec<Ground<S::Tag>>,
    ) -> Result<(), Failure> {
        let rule = without_any(rule);
        for binding in rows(twin, bindings) {
            let value = |term: &Term| match term {
                Term::Constant(constant) => Some(*constant),
                term => {
                    variables.iter().position(|other| other == term).and_then(|at| binding.get(at)).copied()
                }
            };
            let tuple = |terms: &[Term]| terms.iter().map(value).collect::<Option<Vec<u32>>>();
            let number =
                |relation: RelationId, terms: &[Term]| self.numbers.get(&(relation, tuple(terms)?)).copied();
            let Some(head) = number(rule.head, &rule.head_terms) else { continue };
            let refused = || self.overflow(head);
            let mut constant = self.semiring.one();
            let mut parts: Vec<S::Tag> = Vec::new();
            if let Some(weight) = rule.weight {
                parts.push(self.semiring.number(weight).ok_or_else(refused)?);
            }
            for computed in &rule.computed {
                let constant = |term: &Term| value(term).map(|id| self.database.constants.value(id));
                let constants: Option<Vec<_>> = computed.arguments.iter().map(constant).collect();
                let number = constants.and_then(|constants| (computed.measure)(&constants));
                parts.push(number.and_then(|value| self.semiring.number(value)).ok_or_else(refused)?);
            }
            let mut there = true;
            let mut factors = Vec::new();
            for literal in &rule.body {
                match literal {
                    Literal::Atom(atom) if atom.factor => match number(atom.relation, &atom.terms) {
                        Some(factor) => factors.push(factor),
                        None => there = false,
                    },
                    Literal::Not(atom) if complements => {
                        let wanted: Vec<Option<u32>> = atom.terms.iter().map(value).collect();
                        for tag in self.matching(atom.relation, &wanted) {
                            parts.push(self.semiring.negate(tag).ok_or_else(refused)?);
                        }
                    }
                    _ => {}
                }
            }
            for part in &parts {
                constant = self.semiring.times(&constant, part).ok_or_else(refused)?;
            }
            if there {
                into.push(Ground { head, constant, factors, product: None });
            }
        }
        Ok(())
    }

    /// The tags of the tuples that have these constants, where they are known.
    fn matching(&self, relation: RelationId, wanted: &[Option<u32>]) -> Vec<&S::Tag> {
        let tag = |at: &usize| self.tags.get(*at).and_then(Option::as_ref);
        if let Some(tuple) = wanted.iter().copied().collect::<Option<Vec<u32>>>() {
            return self.numbers.get(&(relation, tuple)).and_then(tag).into_iter().collect();
        }
        let fits = |(of, tuple): &(RelationId, Vec<u32>)| {
            let mut places = tuple.iter().zip(wanted);
            *of == relation && places.all(|(value, wanted)| wanted.is_none_or(|wanted| wanted == *value))
        };
        (0..self.tuples.len()).filter(|at| fits(&self.tuples[*at])).filter_map(|at| tag(&at)).collect()
    }

    /// Rounds over ground rules until all tags rest; how many were taken.
    fn fixpoint(&mut self, mut ground: Vec<Ground<S::Tag>>, limits: &Limits) -> Result<u64, Failure> {
        let (mut rules_of, mut readers): (HashMap<usize, Vec<usize>>, HashMap<usize, Vec<usize>>) =
            (HashMap::new(), HashMap::new());
        for (at, rule) in ground.iter().enumerate() {
            rules_of.entry(rule.head).or_default().push(at);
            for factor in &rule.factors {
                readers.entry(*factor).or_default().push(at);
            }
        }
        let given: HashMap<usize, S::Tag> =
            rules_of.keys().filter_map(|head| Some((*head, self.tags.get(*head)?.clone()?))).collect();
        let reached = rules_of.len() as u64;
        let allowed = match self.semiring.idempotent() {
            true => reached + 1,
            false => limits.rounds.min(reached + ROUNDS),
        };
        let mut open: BTreeSet<usize> = (0..ground.len()).collect();
        let mut rounds = 0;
        while !open.is_empty() {
            limits.interrupted()?;
            if rounds > allowed {
                let relation = ground.first().map_or(RelationId(0), |rule| self.tuples[rule.head].0);
                return Err(Failure::Divergence { relation, rounds, tuples: reached });
            }
            rounds += 1;
            // What each head gains, or no number where its sum is to be added up.
            let mut gains: BTreeMap<usize, Option<S::Tag>> = BTreeMap::new();
            for at in std::mem::take(&mut open) {
                let Some(product) = self.product(&ground[at])? else { continue };
                let rule = &mut ground[at];
                let gain = match &rule.product {
                    None => Some(product.clone()),
                    Some(old) if *old == product => continue,
                    Some(old) => self.semiring.minus(&product, old),
                };
                rule.product = Some(product);
                let head = rule.head;
                let sum = match (gains.remove(&head), gain) {
                    (None, gain) => gain,
                    (Some(Some(sum)), Some(gain)) => {
                        Some(self.semiring.plus(&sum, &gain).ok_or_else(|| self.overflow(head))?)
                    }
                    _ => None,
                };
                gains.insert(head, sum);
            }
            for (head, gain) in gains {
                let old = self.tags[head].clone();
                let new = match (gain, &old) {
                    (Some(gain), None) => Some(gain),
                    (Some(gain), Some(old)) => self.semiring.plus(old, &gain),
                    (None, _) => {
                        let products = rules_of[&head].iter().filter_map(|at| ground[*at].product.as_ref());
                        let mut terms = given.get(&head).into_iter().chain(products);
                        let first = terms.next().cloned();
                        terms
                            .try_fold(first, |sum, term| match sum {
                                None => Some(Some(term.clone())),
                                Some(sum) => self.semiring.plus(&sum, term).map(Some),
                            })
                            .flatten()
                    }
                };
                let new = new.ok_or_else(|| self.overflow(head))?;
                let rests = old.as_ref().is_some_and(|old| self.semiring.saturated(old, &new));
                self.tags[head] = Some(new);
                if !rests {
                    open.extend(readers.get(&head).into_iter().flatten());
                }
            }
        }
        Ok(rounds)
    }

    /// What a ground rule comes to, if all its factors have tags.
    fn product(&self, rule: &Ground<S::Tag>) -> Result<Option<S::Tag>, Failure> {
        let mut product = rule.constant.clone();
        for factor in &rule.factors {
            let Some(tag) = self.tags.get(*factor).and_then(Option::as_ref) else { return Ok(None) };
            product = self.semiring.times(&product, tag).ok_or_else(|| self.overflow(rule.head))?;
        }
        Ok(Some(product))
    }

    fn finished(self, relations: usize, rounds: u64) -> Tagged<S::Tag> {
        let mut found: Vec<BTreeMap<Vec<u32>, S::Tag>> = (0..relations).map(|_| BTreeMap::new()).collect();
        for ((relation, tuple), tag) in self.tuples.into_iter().zip(self.tags) {
            if let (Some(tuples), Some(tag)) = (found.get_mut(relation.0 as usize), tag) {
                tuples.insert(tuple, tag);
            }
        }
        Tagged { relations: found, rounds }
    }
}

/// The tuples of a relation.
fn rows(database: &Database, id: RelationId) -> Vec<Vec<u32>> {
    let relation = database.relation(id);
    let (rows, arity) = (relation.rows(), relation.arity());
    (0..relation.len()).map(|at| rows[at * arity..(at + 1) * arity].to_vec()).collect()
}
