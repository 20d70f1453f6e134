//! The prover beside plain enumeration: all interpretations of one and two elements, evaluated by the definitions.

use fol::ast::{Connective, Formula, Quantifier, Relation, Sort, Term, Variable};
use fol_prover::random::{Shape, problem};
use fol_prover::{Limit, Problem, prove};

use crate::common::{checked, drawn};

/// An interpretation as bits of one number, read by fixed places.
struct World {
    size: usize,
    bits: u64,
}

/// P0/0, P1/1, P2/2, f0/1, c0, c1, x0, x1, `<`, S0 over two elements take so many bits.
const BITS: u32 = 1 + 2 + 4 + 2 + 1 + 1 + 1 + 1 + 4 + 2;

impl World {
    fn bit(&self, place: u32, offset: usize) -> bool {
        self.bits >> (place as usize + offset) & 1 == 1
    }

    fn element(&self, place: u32, offset: usize) -> usize {
        usize::from(self.bit(place, offset)) % self.size
    }

    fn term(&self, term: &Term, scope: &[(Variable, usize)]) -> usize {
        match term {
            Term::Variable(x) => match scope.iter().rev().find(|(y, _)| x == y) {
                Some((_, element)) => *element,
                None => self.element(11 + x.0 as u32, 0),
            },
            Term::Constant(c) => self.element(9 + c.0 as u32, 0),
            Term::Function(_, arguments) => self.element(7, self.term(&arguments[0], scope)),
        }
    }

    fn holds(&self, formula: &Formula, scope: &mut Vec<(Variable, usize)>) -> bool {
        match formula {
            Formula::Truth(truth) => *truth,
            Formula::Predicate(p, arguments) => {
                let row: Vec<usize> = arguments.iter().map(|term| self.term(term, scope)).collect();
                match (p.0, row.as_slice()) {
                    (0, []) => self.bit(0, 0),
                    (1, [a]) => self.bit(1, *a),
                    (2, [a, b]) => self.bit(3, 2 * a + b),
                    _ => panic!("another signature"),
                }
            }
            Formula::Relation(relation, s, t) => {
                let (s, t) = (self.term(s, scope), self.term(t, scope));
                match relation {
                    Relation::Equals => s == t,
                    Relation::NotEquals => s != t,
                    _ => self.bit(13, 2 * s + t),
                }
            }
            Formula::Not(body) => !self.holds(body, scope),
            Formula::Binary(connective, left, right) => {
                let (a, b) = (self.holds(left, scope), self.holds(right, scope));
                match connective {
                    Connective::And => a && b,
                    Connective::Or => a || b,
                    Connective::Implies => !a || b,
                    Connective::Iff => a == b,
                }
            }
            Formula::Quantified(quantifier, x, sort, body) => {
                let inside = |element: &usize| match sort {
                    Some(Sort(_)) => self.bit(17, *element),
                    None => true,
                };
                let elements: Vec<usize> = (0..self.size).filter(inside).collect();
                let mut of = |element| {
                    scope.push((*x, element));
                    let holds = self.holds(body, scope);
                    scope.pop();
                    holds
                };
                let count = elements.iter().filter(|element| of(**element)).count();
                match quantifier {
                    Quantifier::Forall => count == elements.len(),
                    Quantifier::Exists => count > 0,
                    Quantifier::Exists1 => count == 1,
                }
            }
        }
    }

    fn refutes(&self, problem: &Problem) -> bool {
        let mut premises = problem.premises().iter();
        premises.all(|premise| self.holds(premise, &mut Vec::new()))
            && problem.conclusion().is_none_or(|conclusion| !self.holds(conclusion, &mut Vec::new()))
    }
}

/// Whether an interpretation of one or two elements refutes a problem.
fn is_refuted(problem: &Problem) -> bool {
    [1, 2].into_iter().any(|size| (0..1u64 << BITS).any(|bits| World { size, bits }.refutes(problem)))
}

fn small() -> Shape {
    Shape { depth: 3, premises: 2, ..Shape::everything() }
}

#[test]
fn verdicts_are_those_of_all_small_interpretations() {
    let (mut entailed, mut refuted, mut beyond) = (0, 0, 0);
    let slow = std::env::var("CALCULEMUS_SLOW").is_ok();
    for item in 0..if slow { 3_000 } else { 250 } {
        let mut draw = drawn("oracle", item);
        let Some(mut problem) = problem(&mut draw, &small(), false) else { continue };
        if draw.below(4) == 0 {
            problem = Problem::new(problem.premises().to_vec(), None).unwrap();
        }
        let answer = prove(&problem, Limit::default());
        let found = checked(&problem, &answer.verdict);
        let text = fol::print(&problem.to_text(), fol::Style::Unicode);
        match (found, is_refuted(&problem)) {
            ("entailed", small) => {
                assert!(!small, "{text}");
                entailed += 1;
            }
            // A model of two elements is always found.
            ("refuted", true) => refuted += 1,
            ("refuted", false) => {
                let fol_prover::Verdict::Refuted(model) = &answer.verdict else { panic!() };
                assert!(model.size > 2, "{text}");
                beyond += 1;
            }
            (_, small) => assert!(!small, "{text}"),
        }
    }
    assert!(entailed > 20 && refuted > 100, "{entailed} {refuted} {beyond}");
}
