//! A proof as a tree in SVG: what is proved above, what it follows from below.
//!
//! Enter at [`proof`]. A step that several others follow from is drawn under each, as it is printed; of a large proof what
//! is drawn is bounded, and a box says how many steps stand below it. The same proof gives the same bytes.

use std::fmt::Write;

use crate::proof::{Proof, Step, StepKind};

/// The most boxes.
const BOXES: usize = 400;

/// The most characters of an atom.
const LETTERS: usize = 48;

const LETTER: f64 = 7.3;
const HEIGHT: f64 = 38.0;
const BETWEEN: f64 = 14.0;
const BELOW: f64 = 34.0;
const MARGIN: f64 = 12.0;

/// A box: a step at a place of the tree.
struct Node {
    atom: String,
    below: String,
    kind: StepKind,
    parent: Option<usize>,
    depth: usize,
    width: f64,
    /// The middle.
    x: f64,
}

/// A proof drawn as a tree.
pub fn proof(proof: &Proof) -> String {
    let mut nodes = nodes(proof);
    let (width, depth) = place(&mut nodes);
    let height = MARGIN + (depth + 1) as f64 * (HEIGHT + BELOW) - BELOW + MARGIN;
    let mut out = String::new();
    put(
        &mut out,
        format_args!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.1} {height:.1}\" width=\"{width:.1}\" \
             height=\"{height:.1}\" font-family=\"ui-monospace, monospace\" font-size=\"12\">\n<title>{}</title>\n\
             <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n",
            nodes.first().map_or(String::new(), |root| escaped(&root.atom)),
        ),
    );
    for node in &nodes {
        let Some(parent) = node.parent.and_then(|parent| nodes.get(parent)) else { continue };
        let (from, to) = (top(parent.depth) + HEIGHT, top(node.depth));
        put(
            &mut out,
            format_args!(
                "<path d=\"M{:.1} {from:.1} C{:.1} {:.1} {:.1} {:.1} {:.1} {to:.1}\" fill=\"none\" stroke=\"#94a3b8\"/>\n",
                parent.x,
                parent.x,
                from + BELOW / 2.0,
                node.x,
                to - BELOW / 2.0,
                node.x,
            ),
        );
    }
    nodes.iter().for_each(|node| drawn(&mut out, node));
    out.push_str("</svg>\n");
    out
}

fn top(depth: usize) -> f64 {
    MARGIN + depth as f64 * (HEIGHT + BELOW)
}

fn drawn(out: &mut String, node: &Node) {
    let (fill, stroke) = match node.kind {
        StepKind::Rule => ("#eff6ff", "#2563eb"),
        StepKind::Fact | StepKind::Data => ("#f0fdf4", "#16a34a"),
        StepKind::Negation => ("#fef2f2", "#dc2626"),
        StepKind::Builtin => ("#f8fafc", "#64748b"),
    };
    let (left, above) = (node.x - node.width / 2.0, top(node.depth));
    put(
        out,
        format_args!(
            "<rect x=\"{left:.1}\" y=\"{above:.1}\" width=\"{:.1}\" height=\"{HEIGHT:.1}\" rx=\"6\" fill=\"{fill}\" \
             stroke=\"{stroke}\"/>\n<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\" fill=\"#0f172a\">{}</text>\n\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\" font-size=\"10\" fill=\"#475569\">{}</text>\n",
            node.width,
            node.x,
            above + 16.0,
            escaped(&node.atom),
            node.x,
            above + 30.0,
            escaped(&node.below),
        ),
    );
}

/// The steps as a tree, parents before their children, and the children of one in their order.
fn nodes(proof: &Proof) -> Vec<Node> {
    let mut nodes: Vec<Node> = Vec::new();
    // Whole levels, so that what is left out stands at the bottom.
    let mut level: Vec<(usize, Option<usize>)> = vec![(proof.root(), None)];
    let mut depth = 0;
    while !level.is_empty() {
        let mut next = Vec::new();
        for (at, parent) in std::mem::take(&mut level) {
            let Some(step) = proof.step(at) else { continue };
            let own = nodes.len();
            nodes.push(node(step, parent, depth));
            next.extend(step.from.iter().map(|child| (*child, Some(own))));
        }
        if nodes.len() + next.len() > BOXES {
            for (_, parent) in next {
                if let Some(node) = parent.and_then(|parent| nodes.get_mut(parent)) {
                    node.below = "… more below".to_owned();
                    node.width = node.width.max(measure(&node.below));
                }
            }
            return nodes;
        }
        level = next;
        depth += 1;
    }
    nodes
}

fn node(step: &Step, parent: Option<usize>, depth: usize) -> Node {
    let mut atom: String = step.atom.chars().take(LETTERS).collect();
    if step.atom.chars().nth(LETTERS).is_some() {
        atom.push('…');
    }
    let below = format!("{}, line {}", step.kind.name(), step.line);
    let width = measure(&atom).max(measure(&below));
    Node { atom, below, kind: step.kind, parent, depth, width, x: 0.0 }
}

fn measure(text: &str) -> f64 {
    text.chars().count() as f64 * LETTER + 2.0 * BETWEEN
}

/// Gives every box its place: leaves side by side, others above the middle of what is below them. Returns the width of
/// the picture and the greatest depth.
fn place(nodes: &mut [Node]) -> (f64, usize) {
    let mut children: Vec<Vec<usize>> = vec![Vec::new(); nodes.len()];
    for (at, node) in nodes.iter().enumerate() {
        if let Some(own) = node.parent.and_then(|parent| children.get_mut(parent)) {
            own.push(at);
        }
    }
    // Children have higher numbers than their parents.
    let mut spans = vec![0.0_f64; nodes.len()];
    for at in (0..nodes.len()).rev() {
        let own = nodes.get(at).map_or(0.0, |node| node.width);
        let below = spread(&children, &spans, at);
        if let Some(slot) = spans.get_mut(at) {
            *slot = own.max(below);
        }
    }
    let mut lefts = vec![MARGIN; nodes.len()];
    let mut depth = 0;
    for at in 0..nodes.len() {
        let (left, span) = (lefts.get(at).copied().unwrap_or(MARGIN), spans.get(at).copied().unwrap_or(0.0));
        let mut from = left + (span - spread(&children, &spans, at)) / 2.0;
        for child in children.get(at).into_iter().flatten() {
            if let Some(slot) = lefts.get_mut(*child) {
                *slot = from;
            }
            from += spans.get(*child).copied().unwrap_or(0.0) + BETWEEN;
        }
        if let Some(node) = nodes.get_mut(at) {
            node.x = left + span / 2.0;
            depth = depth.max(node.depth);
        }
    }
    (spans.first().copied().unwrap_or(0.0) + 2.0 * MARGIN, depth)
}

/// How wide the children of a box are together.
fn spread(children: &[Vec<usize>], spans: &[f64], at: usize) -> f64 {
    let own = children.get(at).map_or(&[][..], Vec::as_slice);
    let widths: f64 = own.iter().filter_map(|child| spans.get(*child)).sum();
    widths + BETWEEN * own.len().saturating_sub(1) as f64
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            letter if letter.is_control() => out.push('·'),
            letter => out.push(letter),
        }
    }
    out
}

fn put(out: &mut String, arguments: std::fmt::Arguments<'_>) {
    // Writing to a text cannot fail.
    let _ = out.write_fmt(arguments);
}
