//! Instances of rules, from letters.

use fol::ast::{Connective, Formula, Quantifier, Relation, Term, Variable};
use seeded::Stream;

use super::resolution::{Literal, closed, resolvents};
use super::{Instance, Letters, Name};

/// An instance of a rule, its letters from a source. The variable of quantifiers is x0, or one of x0 to x3 for clauses.
pub fn generate(rule: Name, letters: &mut dyn Letters, draw: &mut Stream) -> Instance {
    let x = Variable(0);
    let mut letter = |free: &[Variable], draw: &mut Stream| letters.formula(free, draw);
    let implies = |a: &Formula, b: &Formula| binary(Connective::Implies, a, b);
    let all = |body: Formula| Formula::Quantified(Quantifier::Forall, x, None, Box::new(body));
    match rule {
        Name::Mp | Name::Mt | Name::Ds | Name::AndI | Name::AndE | Name::OrI | Name::Cp | Name::IffE => {
            let (a, b) = (letter(&[], draw), letter(&[], draw));
            let (premises, conclusion) = match rule {
                Name::Mp => (vec![a.clone(), implies(&a, &b)], b),
                Name::Mt => (vec![not(&b), implies(&a, &b)], not(&a)),
                Name::Ds => (vec![binary(Connective::Or, &a, &b), not(&a)], b),
                Name::AndI => (vec![a.clone(), b.clone()], binary(Connective::And, &a, &b)),
                Name::AndE => (vec![binary(Connective::And, &a, &b)], a),
                Name::OrI => (vec![a.clone()], binary(Connective::Or, &a, &b)),
                Name::Cp => (vec![implies(&a, &b)], implies(&not(&b), &not(&a))),
                _ => (vec![binary(Connective::Iff, &a, &b)], implies(&a, &b)),
            };
            Instance { premises, conclusion }
        }
        Name::Hs => {
            let (a, b, c) = (letter(&[], draw), letter(&[], draw), letter(&[], draw));
            Instance { premises: vec![implies(&a, &b), implies(&b, &c)], conclusion: implies(&a, &c) }
        }
        Name::Uhs => {
            let (a, b, c) = (letter(&[x], draw), letter(&[x], draw), letter(&[x], draw));
            Instance {
                premises: vec![all(implies(&a, &b)), all(implies(&b, &c))],
                conclusion: all(implies(&a, &c)),
            }
        }
        Name::Ui | Name::Eg | Name::Ump | Name::EqSub => {
            let (a, b) = (letter(&[x], draw), letter(&[x], draw));
            let (s, t) = (letters.term(&[], draw), letters.term(&[], draw));
            let put = |formula: &Formula, term: &Term| fol::substitute(formula, x, term);
            let (premises, conclusion) = match rule {
                Name::Ui => (vec![all(a.clone())], put(&a, &t)),
                Name::Eg => {
                    let some = Formula::Quantified(Quantifier::Exists, x, None, Box::new(a.clone()));
                    (vec![put(&a, &t)], some)
                }
                Name::Ump => (vec![all(implies(&a, &b)), put(&a, &t)], put(&b, &t)),
                _ => (vec![equal(&s, &t), put(&a, &s)], put(&a, &t)),
            };
            Instance { premises, conclusion }
        }
        Name::EqTrans => {
            let (s, t, u) = (letters.term(&[], draw), letters.term(&[], draw), letters.term(&[], draw));
            Instance { premises: vec![equal(&s, &t), equal(&t, &u)], conclusion: equal(&s, &u) }
        }
        Name::Qn => {
            let body = letter(&[x], draw);
            let under =
                |quantifier, body: &Formula| Formula::Quantified(quantifier, x, None, Box::new(body.clone()));
            let (one, dual) = match draw.below(2) {
                0 => (Quantifier::Forall, Quantifier::Exists),
                _ => (Quantifier::Exists, Quantifier::Forall),
            };
            let (outside, inside) = (not(&under(one, &body)), under(dual, &not(&body)));
            let (premise, conclusion) =
                if draw.below(2) == 0 { (outside, inside) } else { (inside, outside) };
            Instance { premises: vec![premise], conclusion }
        }
        Name::Res => resolution(letters, draw),
    }
}

/// Two clauses of one to three literals. Both sides of the literal that is resolved upon are instances of one atom in which some variables are
/// replaced by terms on one side only, so they have a unifier unless a variable would stand in its own term.
fn resolution(letters: &mut dyn Letters, draw: &mut Stream) -> Instance {
    let variables: Vec<Variable> = (0..4).map(Variable).collect();
    let atom = letters.atom(&variables[..2], draw);
    let side = |letters: &mut dyn Letters, positive: bool, draw: &mut Stream| {
        let own = if positive { &variables[..2] } else { &variables[2..] };
        // The second clause has variables of its own.
        let mut literal = if positive { atom.clone() } else { rename(&atom, &variables) };
        if draw.below(3) == 0 {
            let term = letters.term(&[], draw);
            literal = fol::substitute(&literal, own[draw.below(2) as usize], &term);
        }
        let mut literals: Vec<Literal> = vec![(positive, literal)];
        for _ in 0..draw.below(3) {
            let literal = (draw.below(2) == 0, letters.atom(own, draw));
            literals.push(literal);
        }
        let at = draw.below(literals.len() as u64) as usize;
        literals.swap(0, at);
        closed(own, &literals)
    };
    let (first, second) = (side(letters, true, draw), side(letters, false, draw));
    match resolvents(&first, &second).into_iter().next() {
        Some((own, literals)) => {
            let conclusion = closed(&own, &literals);
            Instance { premises: vec![first, second], conclusion }
        }
        // Two different terms met: the atom alone resolves with its negation.
        None => {
            let (first, second) =
                (closed(&variables, &[(true, atom.clone())]), closed(&variables, &[(false, atom)]));
            Instance { premises: vec![first, second], conclusion: Formula::Truth(false) }
        }
    }
}

/// x2 and x3 for x0 and x1.
fn rename(atom: &Formula, variables: &[Variable]) -> Formula {
    (0..2).fold(atom.clone(), |atom, at| {
        fol::substitute(&atom, variables[at], &Term::Variable(variables[at + 2]))
    })
}

fn binary(connective: Connective, a: &Formula, b: &Formula) -> Formula {
    Formula::Binary(connective, Box::new(a.clone()), Box::new(b.clone()))
}

fn not(formula: &Formula) -> Formula {
    Formula::Not(Box::new(formula.clone()))
}

fn equal(s: &Term, t: &Term) -> Formula {
    Formula::Relation(Relation::Equals, s.clone(), t.clone())
}
