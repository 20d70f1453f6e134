//! Formulas up to names of bound variables.

use fol::ast::{Formula, Term, Text, Variable};

/// Whether two formulas are equal up to names of bound variables.
pub fn same(one: &Formula, other: &Formula) -> bool {
    compare(one, other, &mut Vec::new(), &mut |_, _, _| false)
}

/// Pairs of binders around a place, the innermost last.
pub(super) type Binders = Vec<(Variable, Variable)>;

/// Compares two formulas; where two terms stand at the same place, `or` may accept them although they differ.
pub(super) fn compare(
    one: &Formula,
    other: &Formula,
    binders: &mut Binders,
    or: &mut dyn FnMut(&Term, &Term, &Binders) -> bool,
) -> bool {
    match (one, other) {
        (Formula::Truth(a), Formula::Truth(b)) => a == b,
        (Formula::Predicate(p, v), Formula::Predicate(q, w)) => {
            p == q && v.len() == w.len() && v.iter().zip(w).all(|(s, t)| terms(s, t, binders, or))
        }
        (Formula::Relation(p, s, t), Formula::Relation(q, u, v)) => {
            p == q && terms(s, u, binders, or) && terms(t, v, binders, or)
        }
        (Formula::Not(a), Formula::Not(b)) => compare(a, b, binders, or),
        (Formula::Binary(c, a, b), Formula::Binary(d, e, f)) => {
            c == d && compare(a, e, binders, or) && compare(b, f, binders, or)
        }
        (Formula::Quantified(p, x, s, a), Formula::Quantified(q, y, t, b)) => {
            binders.push((*x, *y));
            let same = p == q && s == t && compare(a, b, binders, or);
            binders.pop();
            same
        }
        _ => false,
    }
}

fn terms(
    one: &Term,
    other: &Term,
    binders: &Binders,
    or: &mut dyn FnMut(&Term, &Term, &Binders) -> bool,
) -> bool {
    let equal = match (one, other) {
        (Term::Variable(x), Term::Variable(y)) => {
            let left = binders.iter().rposition(|(a, _)| a == x);
            let right = binders.iter().rposition(|(_, b)| b == y);
            left == right && (left.is_some() || x == y)
        }
        (Term::Constant(c), Term::Constant(d)) => c == d,
        (Term::Function(f, v), Term::Function(g, w)) => {
            f == g && v.len() == w.len() && v.iter().zip(w).all(|(s, t)| terms(s, t, binders, or))
        }
        _ => false,
    };
    equal || or(one, other, binders)
}

/// Whether a variable of a term is bound at a place, on the side that `side` picks.
pub(super) fn is_captured(
    term: &Term,
    binders: &Binders,
    side: fn(&(Variable, Variable)) -> Variable,
) -> bool {
    match term {
        Term::Variable(x) => binders.iter().any(|pair| side(pair) == *x),
        Term::Constant(_) => false,
        Term::Function(_, arguments) => arguments.iter().any(|argument| is_captured(argument, binders, side)),
    }
}

/// The term t for which `body[t/x]` is the instance, if there is one. A variable that is not free in the body leaves t open, and
/// any term does.
pub(super) fn instantiates(body: &Formula, x: Variable, instance: &Formula) -> Option<Option<Term>> {
    let mut found: Option<Term> = None;
    let fits = compare(body, instance, &mut Vec::new(), &mut |one, other, binders| {
        let is_free = *one == Term::Variable(x) && binders.iter().all(|(a, _)| *a != x);
        if !is_free || is_captured(other, binders, |pair| pair.1) {
            return false;
        }
        *found.get_or_insert_with(|| other.clone()) == *other
    });
    if !fits {
        return None;
    }
    // Where x stayed x it was put for itself, and then everywhere.
    if found.is_none() && fol::free_variables(&Text::formula(body.clone())).contains(&x) {
        found = Some(Term::Variable(x));
    }
    let put = found.as_ref().map_or_else(|| body.clone(), |term| fol::substitute(body, x, term));
    same(&put, instance).then_some(found)
}
