//! Whether premises and a conclusion are an instance of a rule.

use fol::ast::{Connective, Formula, Quantifier, Relation, Sort, Term, Variable};

use super::Name;
use super::alpha::{compare, instantiates, is_captured, same};
use super::resolution::resolves;

/// Whether the conclusion follows from the premises by one application of the rule.
pub fn check(rule: Name, premises: &[Formula], conclusion: &Formula) -> bool {
    match premises {
        [premise] => one(rule, premise, conclusion),
        [first, second] => two(rule, first, second, conclusion) || two(rule, second, first, conclusion),
        _ => false,
    }
}

/// The rules with one premise.
fn one(rule: Name, premise: &Formula, conclusion: &Formula) -> bool {
    match rule {
        Name::AndE => {
            binary(Connective::And, premise).is_some_and(|(a, b)| same(a, conclusion) || same(b, conclusion))
        }
        Name::OrI => {
            binary(Connective::Or, conclusion).is_some_and(|(a, b)| same(premise, a) || same(premise, b))
        }
        Name::Cp => match (binary(Connective::Implies, premise), binary(Connective::Implies, conclusion)) {
            (Some((a, b)), Some((not_b, not_a))) => negates(not_b, b) && negates(not_a, a),
            _ => false,
        },
        Name::IffE => match (binary(Connective::Iff, premise), binary(Connective::Implies, conclusion)) {
            (Some((a, b)), Some((c, d))) => same(a, c) && same(b, d) || same(a, d) && same(b, c),
            _ => false,
        },
        Name::Ui => quantified(Quantifier::Forall, premise)
            .is_some_and(|(x, sort, body)| sort.is_none() && instantiates(body, x, conclusion).is_some()),
        Name::Eg => quantified(Quantifier::Exists, conclusion)
            .is_some_and(|(x, sort, body)| sort.is_none() && instantiates(body, x, premise).is_some()),
        Name::Qn => moved(premise, conclusion) || moved(conclusion, premise),
        _ => false,
    }
}

/// The rules with two premises, in the order of the schema.
fn two(rule: Name, first: &Formula, second: &Formula, conclusion: &Formula) -> bool {
    let implies = |formula| binary(Connective::Implies, formula);
    match rule {
        Name::Mp => implies(second).is_some_and(|(a, b)| same(a, first) && same(b, conclusion)),
        Name::Mt => implies(second).is_some_and(|(a, b)| negates(first, b) && negates(conclusion, a)),
        Name::Hs => match (implies(first), implies(second), implies(conclusion)) {
            (Some((a, b)), Some((c, d)), Some((e, f))) => same(b, c) && same(a, e) && same(d, f),
            _ => false,
        },
        Name::Ds => binary(Connective::Or, first).is_some_and(|(a, b)| {
            negates(second, a) && same(b, conclusion) || negates(second, b) && same(a, conclusion)
        }),
        Name::AndI => {
            binary(Connective::And, conclusion).is_some_and(|(a, b)| same(a, first) && same(b, second))
        }
        Name::Ump => {
            let Some((x, None, body)) = quantified(Quantifier::Forall, first) else { return false };
            let Some((a, b)) = implies(body) else { return false };
            match (instantiates(a, x, second), instantiates(b, x, conclusion)) {
                (Some(Some(t)), Some(Some(u))) => t == u,
                (Some(_), Some(_)) => true,
                _ => false,
            }
        }
        Name::Uhs => uhs(first, second, conclusion).unwrap_or(false),
        Name::Res => resolves(first, second, conclusion),
        Name::EqSub => equation(first).is_some_and(|(s, t)| {
            compare(second, conclusion, &mut Vec::new(), &mut |one, other, binders| {
                one == s
                    && other == t
                    && !is_captured(s, binders, |pair| pair.0)
                    && !is_captured(t, binders, |pair| pair.1)
            })
        }),
        Name::EqTrans => match (equation(first), equation(second), equation(conclusion)) {
            (Some((s, t)), Some((u, v)), Some((w, z))) => t == u && s == w && v == z,
            _ => false,
        },
        _ => false,
    }
}

fn uhs(first: &Formula, second: &Formula, conclusion: &Formula) -> Option<bool> {
    // Each side again under its quantifier, so that names of the variables do not matter.
    let sides = |formula| {
        let (x, sort, body) = quantified(Quantifier::Forall, formula)?;
        let (a, b) = binary(Connective::Implies, body)?;
        let under = |body: &Formula| Formula::Quantified(Quantifier::Forall, x, sort, Box::new(body.clone()));
        Some((under(a), under(b)))
    };
    let ((a, b), (c, d), (e, f)) = (sides(first)?, sides(second)?, sides(conclusion)?);
    Some(same(&b, &c) && same(&a, &e) && same(&d, &f))
}

/// `¬∀x φ` and `∃x ¬φ`, or `¬∃x φ` and `∀x ¬φ`.
fn moved(outside: &Formula, inside: &Formula) -> bool {
    let Formula::Not(quantified) = outside else { return false };
    let Formula::Quantified(quantifier, x, sort, body) = quantified.as_ref() else { return false };
    let dual = match quantifier {
        Quantifier::Forall => Quantifier::Exists,
        Quantifier::Exists => Quantifier::Forall,
        Quantifier::Exists1 => return false,
    };
    let body = Box::new(Formula::Not(body.clone()));
    same(&Formula::Quantified(dual, *x, *sort, body), inside)
}

fn binary(connective: Connective, formula: &Formula) -> Option<(&Formula, &Formula)> {
    match formula {
        Formula::Binary(found, left, right) if *found == connective => Some((left, right)),
        _ => None,
    }
}

fn quantified(quantifier: Quantifier, formula: &Formula) -> Option<(Variable, Option<Sort>, &Formula)> {
    match formula {
        Formula::Quantified(found, x, sort, body) if *found == quantifier => Some((*x, *sort, body)),
        _ => None,
    }
}

/// Whether a formula is the negation of another.
fn negates(formula: &Formula, other: &Formula) -> bool {
    matches!(formula, Formula::Not(body) if same(body, other))
}

fn equation(formula: &Formula) -> Option<(&Term, &Term)> {
    match formula {
        Formula::Relation(Relation::Equals, s, t) => Some((s, t)),
        _ => None,
    }
}
