//! Clauses as formulas, `∀x̄ (L ∨ …)`, and their resolvents by a most general unifier.

use std::collections::BTreeMap;

use fol::ast::{Connective, Formula, Quantifier, Term, Text, Variable};

/// A literal: its sign and its atom.
pub(super) type Literal = (bool, Formula);

/// The literals of a clause that is written as a formula, and its variables; `⊥` has no literal.
pub(super) fn clause(formula: &Formula) -> Option<(Vec<Variable>, Vec<Literal>)> {
    let mut variables = Vec::new();
    let mut body = formula;
    while let Formula::Quantified(Quantifier::Forall, x, None, inner) = body {
        // An inner binder hides an outer one of its name, which binds nothing then.
        if !variables.contains(x) {
            variables.push(*x);
        }
        body = inner;
    }
    let mut literals = Vec::new();
    disjuncts(body, &mut literals)?;
    Some((variables, literals))
}

fn disjuncts(formula: &Formula, found: &mut Vec<Literal>) -> Option<()> {
    match formula {
        Formula::Truth(false) => Some(()),
        Formula::Binary(Connective::Or, left, right) => {
            disjuncts(left, found)?;
            disjuncts(right, found)
        }
        Formula::Not(atom) if is_atom(atom) => {
            found.push((false, atom.as_ref().clone()));
            Some(())
        }
        atom if is_atom(atom) => {
            found.push((true, atom.clone()));
            Some(())
        }
        _ => None,
    }
}

fn is_atom(formula: &Formula) -> bool {
    matches!(formula, Formula::Predicate(..) | Formula::Relation(..))
}

/// A clause as a formula, closed over those of the variables that occur.
pub(super) fn closed(variables: &[Variable], literals: &[Literal]) -> Formula {
    let literal = |(positive, atom): &Literal| match positive {
        true => atom.clone(),
        false => Formula::Not(Box::new(atom.clone())),
    };
    let mut all = literals.iter().map(literal);
    let Some(first) = all.next() else { return Formula::Truth(false) };
    let body =
        all.fold(first, |left, right| Formula::Binary(Connective::Or, Box::new(left), Box::new(right)));
    let free = fol::free_variables(&Text::formula(body.clone()));
    let bound: Vec<Variable> = free.into_iter().filter(|x| variables.contains(x)).collect();
    bound
        .into_iter()
        .rev()
        .fold(body, |body, x| Formula::Quantified(Quantifier::Forall, x, None, Box::new(body)))
}

/// What stands for variables.
pub(super) type Unifier = BTreeMap<Variable, Term>;

/// The arguments of two atoms of one predicate.
fn arguments<'a>(one: &'a Formula, other: &'a Formula) -> Option<Vec<(&'a Term, &'a Term)>> {
    match (one, other) {
        (Formula::Predicate(p, v), Formula::Predicate(q, w)) if p == q && v.len() == w.len() => {
            Some(v.iter().zip(w).collect())
        }
        (Formula::Relation(p, s, t), Formula::Relation(q, u, v)) if p == q => Some(vec![(s, u), (t, v)]),
        _ => None,
    }
}

/// The most general unifier of two atoms over these variables; others count as constants.
pub(super) fn unify(one: &Formula, other: &Formula, variables: &[Variable]) -> Option<Unifier> {
    let mut unifier = Unifier::new();
    for (s, t) in arguments(one, other)? {
        unify_terms(&applied(s, &unifier), &applied(t, &unifier), variables, &mut unifier)?;
    }
    Some(unifier)
}

fn unify_terms(s: &Term, t: &Term, variables: &[Variable], unifier: &mut Unifier) -> Option<()> {
    match (s, t) {
        _ if s == t => Some(()),
        (Term::Variable(x), other) | (other, Term::Variable(x)) if variables.contains(x) => {
            if occurs(*x, other) {
                return None;
            }
            let one = Unifier::from([(*x, other.clone())]);
            unifier.values_mut().for_each(|term| *term = applied(term, &one));
            unifier.insert(*x, other.clone());
            Some(())
        }
        (Term::Function(f, v), Term::Function(g, w)) if f == g && v.len() == w.len() => {
            v.iter().zip(w).try_for_each(|(s, t)| {
                unify_terms(&applied(s, unifier), &applied(t, unifier), variables, unifier)
            })
        }
        _ => None,
    }
}

fn occurs(x: Variable, term: &Term) -> bool {
    match term {
        Term::Variable(y) => *y == x,
        Term::Constant(_) => false,
        Term::Function(_, terms) => terms.iter().any(|term| occurs(x, term)),
    }
}

pub(super) fn applied(term: &Term, unifier: &Unifier) -> Term {
    match term {
        Term::Variable(x) => unifier.get(x).cloned().unwrap_or_else(|| term.clone()),
        Term::Constant(_) => term.clone(),
        Term::Function(f, terms) => {
            Term::Function(*f, terms.iter().map(|term| applied(term, unifier)).collect())
        }
    }
}

fn applied_atom(atom: &Formula, unifier: &Unifier) -> Formula {
    match atom {
        Formula::Predicate(p, terms) => {
            Formula::Predicate(*p, terms.iter().map(|term| applied(term, unifier)).collect())
        }
        Formula::Relation(r, s, t) => Formula::Relation(*r, applied(s, unifier), applied(t, unifier)),
        other => other.clone(),
    }
}

/// A clause with variables that no one of `taken` is.
fn renamed(
    (variables, literals): &(Vec<Variable>, Vec<Literal>),
    taken: &mut Vec<Variable>,
) -> (Vec<Variable>, Vec<Literal>) {
    let mut names = Unifier::new();
    let mut fresh = Vec::new();
    for x in variables {
        let new = (0..=u64::MAX).map(Variable).find(|y| !taken.contains(y)).unwrap_or(*x);
        taken.push(new);
        fresh.push(new);
        names.insert(*x, Term::Variable(new));
    }
    (fresh, literals.iter().map(|(positive, atom)| (*positive, applied_atom(atom, &names))).collect())
}

/// The resolvent of two clauses on these literals, closed.
pub(super) fn resolvents(first: &Formula, second: &Formula) -> Vec<(Vec<Variable>, Vec<Literal>)> {
    let (Some(first), Some(second)) = (clause(first), clause(second)) else { return Vec::new() };
    // Parameters keep their names, bound variables get new ones.
    let mut taken: Vec<Variable> = [&first, &second]
        .into_iter()
        .flat_map(|(variables, literals)| {
            let all = literals.iter().flat_map(|(_, atom)| fol::free_variables(&Text::formula(atom.clone())));
            all.filter(|x| !variables.contains(x)).collect::<Vec<_>>()
        })
        .collect();
    let (first, second) = (renamed(&first, &mut taken), renamed(&second, &mut taken));
    let variables: Vec<Variable> = first.0.iter().chain(&second.0).copied().collect();
    let mut found = Vec::new();
    for (i, (sign, atom)) in first.1.iter().enumerate() {
        for (j, (opposite, other)) in second.1.iter().enumerate() {
            let Some(unifier) = (sign != opposite).then(|| unify(atom, other, &variables)).flatten() else {
                continue;
            };
            let left = first.1.iter().enumerate().filter(|(at, _)| *at != i).map(|(_, literal)| literal);
            let right = second.1.iter().enumerate().filter(|(at, _)| *at != j).map(|(_, literal)| literal);
            let literals = left.chain(right).map(|(sign, atom)| (*sign, applied_atom(atom, &unifier)));
            found.push((variables.clone(), literals.collect()));
        }
    }
    found
}

/// Whether a formula is a resolvent of two clauses, up to names of variables and to order and repetition of literals.
pub(super) fn resolves(first: &Formula, second: &Formula, conclusion: &Formula) -> bool {
    let Some((variables, literals)) = clause(conclusion) else { return false };
    resolvents(first, second)
        .iter()
        .any(|(own, found)| covers(own, found, &variables, &literals, 0, &mut Vec::new()))
}

/// Whether a renaming of the variables makes two clauses the same set of literals. The pairs of names must be one to one.
fn covers(
    own: &[Variable],
    found: &[Literal],
    variables: &[Variable],
    wanted: &[Literal],
    at: usize,
    names: &mut Vec<(Variable, Variable)>,
) -> bool {
    let Some((sign, atom)) = found.get(at) else {
        // Every wanted literal must be one of those found.
        let forth: Unifier = names.iter().map(|(x, y)| (*x, Term::Variable(*y))).collect();
        let image: Vec<Literal> =
            found.iter().map(|(sign, atom)| (*sign, applied_atom(atom, &forth))).collect();
        return wanted.iter().all(|literal| image.contains(literal));
    };
    wanted.iter().filter(|(other, _)| other == sign).any(|(_, other)| {
        let length = names.len();
        let fits = arguments(atom, other)
            .is_some_and(|pairs| pairs.into_iter().all(|(s, t)| renames(s, t, own, variables, names)))
            && covers(own, found, variables, wanted, at + 1, names);
        names.truncate(length);
        fits
    })
}

fn renames(
    s: &Term,
    t: &Term,
    own: &[Variable],
    variables: &[Variable],
    names: &mut Vec<(Variable, Variable)>,
) -> bool {
    match (s, t) {
        (Term::Variable(x), Term::Variable(y)) if own.contains(x) && variables.contains(y) => {
            match names.iter().find(|(a, b)| a == x || b == y) {
                Some(known) => *known == (*x, *y),
                None => {
                    names.push((*x, *y));
                    true
                }
            }
        }
        (Term::Variable(x), Term::Variable(y)) => x == y && !own.contains(x) && !variables.contains(y),
        (Term::Function(f, v), Term::Function(g, w)) => {
            f == g && v.len() == w.len() && v.iter().zip(w).all(|(s, t)| renames(s, t, own, variables, names))
        }
        _ => s == t,
    }
}
