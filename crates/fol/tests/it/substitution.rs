//! Substitution against the procedure as it is written (F29), step by step, and against de Bruijn indices.

use std::collections::BTreeSet;

use crate::common::Trees;
use fol::ast::{Formula, Predicate, Quantifier, Term, Text, Variable};
use fol::{free_variables, substitute};

fn free(formula: &Formula) -> BTreeSet<Variable> {
    free_variables(&Text::formula(formula.clone())).into_iter().collect()
}

/// One variable by one term, a body rewritten once for each renaming.
fn literal(formula: &Formula, v: Variable, t: &Term) -> Formula {
    fn term(s: &Term, v: Variable, t: &Term) -> Term {
        match s {
            Term::Variable(variable) if *variable == v => t.clone(),
            Term::Variable(_) | Term::Constant(_) => s.clone(),
            Term::Function(f, arguments) => {
                Term::Function(*f, arguments.iter().map(|s| term(s, v, t)).collect())
            }
        }
    }
    match formula {
        Formula::Truth(truth) => Formula::Truth(*truth),
        Formula::Predicate(p, arguments) => {
            Formula::Predicate(*p, arguments.iter().map(|s| term(s, v, t)).collect())
        }
        Formula::Relation(r, left, right) => Formula::Relation(*r, term(left, v, t), term(right, v, t)),
        Formula::Not(operand) => Formula::Not(Box::new(literal(operand, v, t))),
        Formula::Binary(c, left, right) => {
            Formula::Binary(*c, Box::new(literal(left, v, t)), Box::new(literal(right, v, t)))
        }
        Formula::Quantified(q, y, sort, body) => {
            let inside = free(body);
            if *y == v || !inside.contains(&v) {
                return formula.clone();
            }
            let captured = free(&Formula::Predicate(Predicate(0), vec![t.clone()]));
            let (y, body) = if captured.contains(y) {
                let unused = |z: &Variable| !inside.contains(z) && !captured.contains(z);
                let z = (0..).map(Variable).find(unused).unwrap_or(*y);
                (z, &literal(body, *y, &Term::Variable(z)))
            } else {
                (*y, &**body)
            };
            Formula::Quantified(*q, y, *sort, Box::new(literal(body, v, t)))
        }
    }
}

#[test]
fn substitution_is_the_procedure_as_written() {
    for item in 0..20_000 {
        let mut trees = Trees::new("substitution:literal", item);
        trees.names = 1 + item % 4;
        let mut formula = trees.formula(5);
        // Many binders in a row, so that one renaming makes the next one necessary.
        for _ in 0..trees.below(8) {
            let (quantifier, variable) = (trees.pick(Quantifier::ALL), trees.variable());
            formula = Formula::Quantified(quantifier, variable, None, Box::new(formula));
        }
        let (variable, term) = (trees.variable(), trees.term(2));
        assert_eq!(substitute(&formula, variable, &term), literal(&formula, variable, &term), "{item}");
    }
}

/// Each binder takes the name that the one before it needs.
fn tower(height: u64) -> Formula {
    let all = (0..=height).map(|i| Term::Variable(Variable(i))).collect();
    (1..=height).fold(Formula::Predicate(Predicate(0), all), |body, i| {
        Formula::Quantified(Quantifier::Forall, Variable(i), None, Box::new(body))
    })
}

#[test]
fn towers_of_renamings_are_quick() {
    let term = |height: u64| Term::Variable(Variable(height));
    let (low, top) = (tower(30), tower(1000));
    assert_eq!(substitute(&low, Variable(0), &term(30)), literal(&low, Variable(0), &term(30)));
    let start = std::time::Instant::now();
    assert_eq!(free(&substitute(&top, Variable(0), &term(1000))), BTreeSet::from([Variable(1000)]));
    assert!(start.elapsed().as_secs() < 60, "{:?}", start.elapsed());
}

/// A formula without names of bound variables: each occurrence counts the binders between.
fn de_bruijn(
    formula: &Formula,
    scope: &mut Vec<Variable>,
    free: &dyn Fn(Variable, usize) -> String,
) -> String {
    fn term(t: &Term, scope: &[Variable], free: &dyn Fn(Variable, usize) -> String) -> String {
        match t {
            Term::Variable(v) => match scope.iter().rev().position(|bound| bound == v) {
                Some(distance) => format!("#{distance}"),
                None => free(*v, scope.len()),
            },
            Term::Constant(c) => format!("c{}", c.0),
            Term::Function(f, arguments) => {
                format!(
                    "f{}({})",
                    f.0,
                    arguments.iter().map(|t| term(t, scope, free)).collect::<Vec<_>>().join(",")
                )
            }
        }
    }
    match formula {
        Formula::Truth(truth) => truth.to_string(),
        Formula::Predicate(p, arguments) => {
            format!(
                "P{}({})",
                p.0,
                arguments.iter().map(|t| term(t, scope, free)).collect::<Vec<_>>().join(",")
            )
        }
        Formula::Relation(r, left, right) => {
            format!("{}({},{})", r.symbol(), term(left, scope, free), term(right, scope, free))
        }
        Formula::Not(operand) => format!("~{}", de_bruijn(operand, scope, free)),
        Formula::Binary(c, left, right) => {
            let left = de_bruijn(left, scope, free);
            format!("({left} {} {})", c.symbol(), de_bruijn(right, scope, free))
        }
        Formula::Quantified(q, v, sort, body) => {
            scope.push(*v);
            let body = de_bruijn(body, scope, free);
            scope.pop();
            format!("{}{sort:?}.{body}", q.symbol())
        }
    }
}

#[test]
fn substitution_is_that_of_de_bruijn_indices() {
    for item in 0..5000 {
        let mut trees = Trees::new("substitution", item);
        trees.names = 3;
        let (formula, variable, term) = (trees.formula(7), trees.variable(), trees.term(2));
        // In de Bruijn form nothing captures: the term's variables are free wherever it is put.
        let put = |v: Variable, _| {
            let atom = |t: Term| Formula::Predicate(Predicate(0), vec![t]);
            let whole = |t: Term| de_bruijn(&atom(t), &mut Vec::new(), &|v, _| format!("x{}", v.0));
            let inner = whole(if v == variable { term.clone() } else { Term::Variable(v) });
            inner.trim_start_matches("P0(").strip_suffix(')').unwrap().to_owned()
        };
        let wanted = de_bruijn(&formula, &mut Vec::new(), &put);
        let found = substitute(&formula, variable, &term);
        assert_eq!(de_bruijn(&found, &mut Vec::new(), &|v, _| format!("x{}", v.0)), wanted);
    }
}
