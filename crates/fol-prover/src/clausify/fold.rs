//! Sub-formulas get names where clauses would multiply: a nest of `↔`, a disjunction of conjunctions.

use std::collections::BTreeSet;

use fol::ast::{Connective, Formula, Predicate, Quantifier, Term, Variable};

use super::free_variables;
use crate::problem::Problem;
use crate::proof::Definition;

/// A formula that would be more clauses than this, true or false, has operands with names.
const MOST: u64 = 24;

/// The formulas of a problem over names of sub-formulas.
pub(super) struct Folded {
    pub(super) definitions: Vec<Definition>,
    /// The premises, then the conclusion.
    pub(super) formulas: Vec<Formula>,
    /// How the name of each definition is used.
    pub(super) used: Vec<Polarity>,
}

/// Where a name stands: its formula is wanted to be true, to be false, or both.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Polarity {
    pub(super) positive: bool,
    pub(super) negative: bool,
}

/// `names` are defined already; what stands in their bodies is taken as well.
pub(super) fn fold(problem: &Problem, names: &[Definition]) -> Folded {
    let given: Vec<&Formula> = problem.premises().iter().chain(problem.conclusion()).collect();
    let everywhere: Vec<&Formula> = given.iter().copied().chain(names.iter().map(|n| &n.body)).collect();
    let mut folder =
        Folder { given: &everywhere, taken: None, next: 0, scope: Vec::new(), definitions: Vec::new() };
    let formulas: Vec<Formula> = given.iter().map(|formula| folder.formula(formula).0).collect();
    let mut uses = Uses { definitions: &folder.definitions, used: Vec::new() };
    uses.used.resize(folder.definitions.len(), Polarity::default());
    if !folder.definitions.is_empty() {
        let premises = problem.premises().len();
        for (i, formula) in formulas.iter().enumerate() {
            uses.formula(formula, i < premises, i >= premises);
        }
        for (i, definition) in folder.definitions.iter().enumerate().rev() {
            let Polarity { positive, negative } = uses.used[i];
            uses.formula(&definition.body, positive, negative);
        }
    }
    let used = uses.used;
    Folded { definitions: folder.definitions, formulas, used }
}

/// How many clauses a formula is when it is true and when it is false.
type Size = (u64, u64);

struct Folder<'a> {
    given: &'a [&'a Formula],
    /// The predicates of the problem, once they are asked for.
    taken: Option<BTreeSet<u64>>,
    /// No smaller index is free.
    next: u64,
    /// The binders around the place.
    scope: Vec<Variable>,
    definitions: Vec<Definition>,
}

impl Folder<'_> {
    fn formula(&mut self, formula: &Formula) -> (Formula, Size) {
        match formula {
            Formula::Truth(_) | Formula::Predicate(..) | Formula::Relation(..) => (formula.clone(), (1, 1)),
            Formula::Not(body) => {
                let (body, (positive, negative)) = self.formula(body);
                (Formula::Not(Box::new(body)), (negative, positive))
            }
            Formula::Binary(connective, left, right) => {
                let (mut left, mut a) = self.formula(left);
                let (mut right, mut b) = self.formula(right);
                while largest(size(*connective, a, b)) > MOST {
                    let (operand, its) =
                        if largest(a) >= largest(b) { (&mut left, &mut a) } else { (&mut right, &mut b) };
                    if *its == (1, 1) {
                        break;
                    }
                    *operand = self.named(operand);
                    *its = (1, 1);
                }
                (Formula::Binary(*connective, Box::new(left), Box::new(right)), size(*connective, a, b))
            }
            Formula::Quantified(quantifier, x, sort, body) => {
                self.scope.push(*x);
                let (mut body, (mut p, mut n)) = self.formula(body);
                if *quantifier == Quantifier::Exists1 {
                    // Its body is written several times, one inside the other where they nest.
                    if !matches!(body, Formula::Truth(_) | Formula::Predicate(..) | Formula::Relation(..)) {
                        body = self.named(&body);
                    }
                    (p, n) = (2, 3);
                }
                self.scope.pop();
                // A guard is one more clause on the side of the witness.
                let guard = u64::from(sort.is_some());
                let size = (p.saturating_add(guard), n.saturating_add(guard));
                (Formula::Quantified(*quantifier, *x, *sort, Box::new(body)), size)
            }
        }
    }

    /// A new name for a formula at this place.
    fn named(&mut self, body: &Formula) -> Formula {
        let given = self.given;
        let taken = self.taken.get_or_insert_with(|| {
            let mut taken = BTreeSet::new();
            given.iter().for_each(|formula| predicates(formula, &mut taken));
            taken
        });
        while taken.contains(&self.next) {
            self.next = self.next.wrapping_add(1);
        }
        let predicate = Predicate(self.next);
        self.next = self.next.wrapping_add(1);
        let mut free = BTreeSet::new();
        free_variables(body, &mut Vec::new(), &mut free);
        let parameters: Vec<Variable> = free.into_iter().filter(|x| self.scope.contains(x)).collect();
        let name = Formula::Predicate(predicate, parameters.iter().map(|x| Term::Variable(*x)).collect());
        self.definitions.push(Definition { predicate, parameters, body: body.clone() });
        name
    }
}

fn largest((positive, negative): Size) -> u64 {
    positive.max(negative)
}

fn size(connective: Connective, (a, not_a): Size, (b, not_b): Size) -> Size {
    let times = u64::saturating_mul;
    match connective {
        Connective::And => (a.saturating_add(b), times(not_a, not_b)),
        Connective::Or => (times(a, b), not_a.saturating_add(not_b)),
        Connective::Implies => (times(not_a, b), a.saturating_add(not_b)),
        Connective::Iff => {
            (times(not_a, b).saturating_add(times(a, not_b)), times(a, b).saturating_add(times(not_a, not_b)))
        }
    }
}

pub(super) fn predicates(formula: &Formula, taken: &mut BTreeSet<u64>) {
    match formula {
        Formula::Predicate(p, _) => drop(taken.insert(p.0)),
        Formula::Truth(_) | Formula::Relation(..) => {}
        Formula::Not(body) | Formula::Quantified(_, _, _, body) => predicates(body, taken),
        Formula::Binary(_, left, right) => {
            predicates(left, taken);
            predicates(right, taken);
        }
    }
}

struct Uses<'a> {
    definitions: &'a [Definition],
    used: Vec<Polarity>,
}

impl Uses<'_> {
    fn formula(&mut self, formula: &Formula, positive: bool, negative: bool) {
        match formula {
            Formula::Truth(_) | Formula::Relation(..) => {}
            Formula::Predicate(p, _) => {
                if let Some(at) = self.definitions.iter().position(|definition| definition.predicate == *p) {
                    self.used[at].positive |= positive;
                    self.used[at].negative |= negative;
                }
            }
            Formula::Not(body) => self.formula(body, negative, positive),
            Formula::Binary(Connective::Iff, left, right) => {
                let both = positive || negative;
                self.formula(left, both, both);
                self.formula(right, both, both);
            }
            Formula::Binary(connective, left, right) => {
                let (a, b) = if *connective == Connective::Implies {
                    (negative, positive)
                } else {
                    (positive, negative)
                };
                self.formula(left, a, b);
                self.formula(right, positive, negative);
            }
            Formula::Quantified(Quantifier::Exists1, _, _, body) => {
                let both = positive || negative;
                self.formula(body, both, both);
            }
            Formula::Quantified(_, _, _, body) => self.formula(body, positive, negative),
        }
    }
}
