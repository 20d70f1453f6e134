//! Components of relations that depend on each other, in an order of evaluation (Tarjan 1972,
//! with a stack of its own, because rules may chain deeply).

use super::rule::{Literal, RelationId, Rule};

/// A component: relations that have rules and depend on each other, or one alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stratum {
    /// The relations.
    pub relations: Vec<RelationId>,
    /// The positions of their rules.
    pub rules: Vec<usize>,
    /// Whether a relation depends on itself.
    pub recursive: bool,
}

/// The components of all relations that have rules, each behind those that it needs. There are so many relations; the
/// rules name no other.
pub fn strata(relations: usize, rules: &[Rule]) -> Vec<Stratum> {
    let mut needs: Vec<Vec<usize>> = vec![Vec::new(); relations];
    for rule in rules {
        for literal in &rule.body {
            if let Literal::Atom(atom) | Literal::Not(atom) = literal {
                needs[rule.head.0 as usize].push(atom.relation.0 as usize);
            }
        }
    }
    let component = components(&needs);
    let count = component.iter().max().map_or(0, |last| last + 1);
    let empty = Stratum { relations: Vec::new(), rules: Vec::new(), recursive: false };
    let mut strata = vec![empty; count];
    for (relation, at) in (0..).zip(&component) {
        strata[*at].relations.push(RelationId(relation));
    }
    for (at, rule) in rules.iter().enumerate() {
        strata[component[rule.head.0 as usize]].rules.push(at);
    }
    for (relation, needed) in needs.iter().enumerate() {
        let own = component[relation];
        if needed.iter().any(|other| component[*other] == own) {
            strata[own].recursive = true;
        }
    }
    strata.retain(|stratum| !stratum.rules.is_empty());
    strata
}

/// The number of the strong component of each node; a component's number is larger than those
/// of the components that it reaches.
pub(super) fn components(successors: &[Vec<usize>]) -> Vec<usize> {
    const NEW: usize = usize::MAX;
    let nodes = successors.len();
    let mut component = vec![NEW; nodes];
    let (mut index, mut low) = (vec![NEW; nodes], vec![0; nodes]);
    let (mut stack, mut path) = (Vec::new(), Vec::new());
    let (mut visited, mut closed) = (0, 0);
    for root in 0..nodes {
        if index[root] != NEW {
            continue;
        }
        path.push((root, 0));
        while let Some((node, at)) = path.pop() {
            if at == 0 {
                (index[node], low[node]) = (visited, visited);
                visited += 1;
                stack.push(node);
            }
            match successors[node].get(at) {
                Some(next) => {
                    path.push((node, at + 1));
                    if index[*next] == NEW {
                        path.push((*next, 0));
                    } else if component[*next] == NEW {
                        low[node] = low[node].min(index[*next]);
                    }
                }
                None => {
                    if low[node] == index[node] {
                        while let Some(member) = stack.pop() {
                            component[member] = closed;
                            if member == node {
                                break;
                            }
                        }
                        closed += 1;
                    }
                    if let Some((parent, _)) = path.last() {
                        low[*parent] = low[*parent].min(low[node]);
                    }
                }
            }
        }
    }
    component
}
