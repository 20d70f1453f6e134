//! A proof as a tree in SVG: what is proved above, what it follows from below.
//!
//! Enter at [`proof`]. A step that several others follow from is drawn under each, as it is printed; of a large proof what
//! is drawn is bounded, and a box says how many steps stand below it. The same proof gives the same bytes.

use calculemus_draw::graph::{Direction, Graph, Node, Shape};

use crate::proof::{Proof, Step, StepKind};

/// The most boxes.
const BOXES: usize = 400;

/// A proof drawn as a tree.
pub fn proof(proof: &Proof) -> String {
    let title = proof.step(proof.root()).map_or(String::new(), |step| step.atom.clone());
    let mut graph = Graph::new(title, Direction::Down);
    graph.tips = false;
    fill(&mut graph, proof);
    graph.document()
}

/// The steps as a tree, parents before their children, and the children of one in their order.
fn fill(graph: &mut Graph, proof: &Proof) {
    // Whole levels, so that what is left out stands at the bottom.
    let mut level: Vec<(usize, Option<usize>)> = vec![(proof.root(), None)];
    while !level.is_empty() {
        let mut next = Vec::new();
        for (at, parent) in std::mem::take(&mut level) {
            let Some(step) = proof.step(at) else { continue };
            let own = graph.add(node(step, proof.weight(at)));
            graph.arcs.extend(parent.map(|parent| (own, parent)));
            next.extend(step.from.iter().map(|child| (*child, Some(own))));
        }
        if graph.nodes.len() + next.len() > BOXES {
            for (_, parent) in next {
                let node = parent.and_then(|parent| graph.nodes.get_mut(parent));
                if let Some(below) = node.and_then(|node| node.lines.get_mut(1)) {
                    "… more below".clone_into(below);
                }
            }
            return;
        }
        level = next;
    }
}

fn node(step: &Step, weight: Option<f64>) -> Node {
    let colour = match step.kind {
        StepKind::Rule => 0,
        StepKind::Fact | StepKind::Data => 2,
        StepKind::Negation => 3,
        StepKind::Builtin => 4,
    };
    let mut below = format!("{}, {}", step.kind.name(), step.place());
    if let Some(weight) = weight {
        below.push_str(&format!(", {weight}"));
    }
    Node::new(Shape::Box(colour), [step.atom.clone(), below])
}
