//! Rules whose bodies are chains: products of Boolean matrices.
//!
//! `sg(x, y) <- arc(a, x), sg(a, b), arc(b, y)` is the product arcᵀ · sg · arc. Enter at
//! [`Chain::new`].

use crate::constant::Comparison;

use super::rule::{Literal, RelationId, Rule, Term};

/// A relation or its transpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Factor {
    /// The relation.
    pub(super) relation: RelationId,
    /// Whether its places are exchanged.
    pub(super) transposed: bool,
}

/// A rule as a product of binary relations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Chain {
    /// The relation it adds to.
    pub(super) head: RelationId,
    /// The factors from the head's first place to its second.
    pub(super) factors: Vec<Factor>,
    /// Whether the two places of the head must differ.
    pub(super) different: bool,
}

impl Chain {
    /// The chain of a rule, if its body is one: every variable inside stands in two atoms, the
    /// head's variables in one.
    pub(super) fn new(rule: &Rule) -> Option<Chain> {
        let [first, last] = rule.head_terms[..] else { return None };
        if first == last || first.as_variable().is_none() || last.as_variable().is_none() {
            return None;
        }
        let mut different = false;
        let mut atoms: Vec<Option<(RelationId, Term, Term)>> = Vec::new();
        for literal in &rule.body {
            match literal {
                Literal::Atom(atom) => match atom.terms[..] {
                    [a, b] if a != b && a.as_variable().is_some() && b.as_variable().is_some() => {
                        atoms.push(Some((atom.relation, a, b)));
                    }
                    _ => return None,
                },
                Literal::Compare(Comparison::NotEqual, a, b)
                    if (*a, *b) == (first, last) || (*a, *b) == (last, first) =>
                {
                    different = true;
                }
                _ => return None,
            }
        }
        let occurrences =
            |term: Term| atoms.iter().flatten().filter(|(_, a, b)| *a == term || *b == term).count();
        let once = |term: Term| if term == first || term == last { 1 } else { 2 };
        if !atoms.iter().flatten().all(|(_, a, b)| [*a, *b].iter().all(|t| occurrences(*t) == once(*t))) {
            return None;
        }
        let mut factors = Vec::new();
        let mut at = first;
        while at != last {
            let step = atoms.iter_mut().find(|atom| atom.is_some_and(|(_, a, b)| a == at || b == at))?;
            let (relation, a, b) = step.take()?;
            factors.push(Factor { relation, transposed: b == at });
            at = if a == at { b } else { a };
        }
        atoms.iter().all(Option::is_none).then_some(Chain { head: rule.head, factors, different })
    }
}

#[cfg(test)]
mod tests {
    use super::super::rule::Atom;
    use super::*;

    fn atom(relation: u32, a: u32, b: u32) -> Literal {
        Atom::new(RelationId(relation), [Term::variable(a), Term::variable(b)]).into()
    }

    #[test]
    fn chains_are_found_in_any_order_and_direction() {
        let [x, y] = [0, 1].map(Term::variable);
        let body = [atom(5, 3, 1), atom(7, 2, 0), atom(6, 2, 3)];
        let chain = Chain::new(&Rule::new(RelationId(9), [x, y], body)).unwrap();
        let found: Vec<(u32, bool)> = chain.factors.iter().map(|f| (f.relation.0, f.transposed)).collect();
        assert_eq!(found, [(7, true), (6, false), (5, false)]);
        for body in
            [vec![atom(5, 0, 0)], vec![atom(5, 0, 2)], vec![atom(5, 0, 1), atom(5, 2, 3), atom(5, 3, 2)]]
        {
            assert_eq!(Chain::new(&Rule::new(RelationId(9), [x, y], body)), None);
        }
    }
}
