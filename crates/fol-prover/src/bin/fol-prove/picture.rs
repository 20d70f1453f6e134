//! A proof as boxes in layers: each step below what it came from.

use calculemus_draw::graph::{Direction, Graph, Node, Shape};
use fol_prover::proof::{Proof, Rule};
use fol_prover::show;

/// Blue for clauses of formulas, grey for steps, green for the end.
fn shape(rule: Rule, last: bool) -> Shape {
    match rule {
        _ if last => Shape::Box(2),
        Rule::Input(..) => Shape::Box(0),
        _ => Shape::Box(4),
    }
}

/// The picture of a proof.
pub(crate) fn of(proof: &Proof) -> Graph {
    let mut graph = Graph::new("proof", Direction::Down);
    let last = proof.steps.len().saturating_sub(1);
    // The first box is the root of the layers, so the end comes first.
    for (at, step) in proof.steps.iter().enumerate().rev() {
        graph.add(Node::new(shape(step.rule, at == last), [step.clause.to_string(), show::rule(step)]));
    }
    for (at, step) in proof.steps.iter().enumerate() {
        let mut parents: Vec<usize> = step.parents.iter().map(|parent| parent.step).collect();
        parents.sort_unstable();
        parents.dedup();
        graph.arcs.extend(parents.into_iter().map(|parent| (last - parent, last - at)));
    }
    graph
}
