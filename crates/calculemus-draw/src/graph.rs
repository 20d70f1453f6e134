//! Graphs of boxes as SVG: layers, one below the other or side by side, and curves between them.
//!
//! Enter at [`Graph::document`] for a file and at [`Graph::figure`] for a page. Where an arc goes from is a layer further from the
//! first box than where it goes to (`layers`), but for arcs that close a circle, which are drawn the other way round. Boxes of a
//! layer stand in an order with few crossings, each as near as they let it to the middle of its neighbours, and none over
//! another (`places`). The same graph gives the same bytes.

use std::fmt::{Arguments, Write};

use crate::html;

mod layers;
mod places;

use layers::Layers;

/// A letter of the first line of a box is so wide, and one of the others.
const LETTER: f64 = 7.3;
const SMALL: f64 = 6.1;
const PADDING: f64 = 11.0;
const MARGIN: f64 = 12.0;
/// Between two boxes of a layer.
const BETWEEN: f64 = 14.0;
/// Between two layers.
const BEYOND: f64 = 36.0;
/// The most letters of a line.
const LETTERS: usize = 48;

/// Which way layers follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// The first box at the top.
    Down,
    /// The first box at the right.
    Left,
}

/// How a box looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// A box with a frame of a colour: blue, orange, green, red, grey.
    Box(usize),
    /// A small one without colour, for what stands on an arc.
    Pill,
}

/// A box.
#[derive(Debug, Clone)]
pub struct Node {
    /// Its lines; the first is the largest.
    pub lines: Vec<String>,
    /// How it looks.
    pub shape: Shape,
}

impl Node {
    /// A box with lines, which are shortened where they are long.
    pub fn new(shape: Shape, lines: impl IntoIterator<Item = String>) -> Node {
        Node { lines: lines.into_iter().map(|line| shortened(&line)).collect(), shape }
    }

    fn size(&self) -> (f64, f64) {
        let wide = |(at, line): (usize, &String)| letters(line) * self.letter(at);
        let width = self.lines.iter().enumerate().map(wide).fold(0.0, f64::max);
        let height = (0..self.lines.len()).map(|at| self.step(at)).sum::<f64>();
        (width + 2.0 * PADDING, height + 10.0)
    }

    fn letter(&self, line: usize) -> f64 {
        if self.is_large(line) { LETTER } else { SMALL }
    }

    fn step(&self, line: usize) -> f64 {
        if self.is_large(line) { 15.0 } else { 13.0 }
    }

    fn is_large(&self, line: usize) -> bool {
        line == 0 && self.shape != Shape::Pill
    }
}

/// Boxes and arcs.
#[derive(Debug, Clone)]
pub struct Graph {
    /// What it is, for who cannot see it.
    pub title: String,
    /// Which way layers follow each other.
    pub direction: Direction,
    /// The boxes. The first layer begins with the first of them.
    pub nodes: Vec<Node>,
    /// From a box to a box, by their numbers.
    pub arcs: Vec<(usize, usize)>,
    /// Whether arcs have tips.
    pub tips: bool,
}

/// Where a box is: its middle, and its size.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Place {
    /// To the right.
    pub x: f64,
    /// Downwards.
    pub y: f64,
    /// Its width.
    pub width: f64,
    /// Its height.
    pub height: f64,
}

/// Where everything is.
struct Plan {
    nodes: Vec<Place>,
    /// Through which points each arc goes, from its start.
    ways: Vec<Vec<(f64, f64)>>,
    width: f64,
    height: f64,
}

impl Graph {
    /// An empty graph.
    pub fn new(title: impl Into<String>, direction: Direction) -> Graph {
        Graph { title: title.into(), direction, nodes: Vec::new(), arcs: Vec::new(), tips: true }
    }

    /// Adds a box, and says its number.
    pub fn add(&mut self, node: Node) -> usize {
        self.nodes.push(node);
        self.nodes.len() - 1
    }

    /// A picture of a page.
    pub fn figure(&self, note: &str) -> String {
        let caption = html::escape(&self.title);
        let note = html::escape(note);
        format!(
            "<figure class=\"wide\"><figcaption>{caption} <small>{note}</small></figcaption>\n<div class=\"scroll\">{}</div></figure>\n",
            self.svg("")
        )
    }

    /// A file of its own, with its own style.
    pub fn document(&self) -> String {
        self.svg(&html::style_of_file(html::GRAPHS))
    }

    /// Where the boxes are.
    pub fn places(&self) -> Vec<Place> {
        self.plan().nodes
    }

    fn svg(&self, style: &str) -> String {
        let plan = self.plan();
        let mut out = String::new();
        put(
            &mut out,
            format_args!(
                "<svg class=\"graph\" xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {:.1} {:.1}\" width=\"{:.1}\" \
                 height=\"{:.1}\" role=\"img\">\n<title>{}</title>\n{style}",
                plan.width,
                plan.height,
                plan.width,
                plan.height,
                html::escape(&visible(&self.title)),
            ),
        );
        plan.ways.iter().for_each(|way| self.arc(&mut out, way));
        self.nodes.iter().zip(&plan.nodes).for_each(|(node, place)| drawn(&mut out, node, *place));
        out + "</svg>\n"
    }

    /// A curve that leaves and meets boxes at right angles.
    fn arc(&self, out: &mut String, way: &[(f64, f64)]) {
        let (Some(first), Some(last)) = (way.first(), way.last()) else { return };
        let mut path = format!("M{:.1} {:.1}", first.0, first.1);
        for pair in way.windows(2) {
            let [(x0, y0), (x1, y1)] = pair else { continue };
            if x0 == x1 || y0 == y1 {
                put(&mut path, format_args!("L{x1:.1} {y1:.1}"));
                continue;
            }
            let (a, b) = match self.direction {
                Direction::Down => ((*x0, (y0 + y1) / 2.0), (*x1, (y0 + y1) / 2.0)),
                Direction::Left => (((x0 + x1) / 2.0, *y0), ((x0 + x1) / 2.0, *y1)),
            };
            put(&mut path, format_args!("C{:.1} {:.1} {:.1} {:.1} {x1:.1} {y1:.1}", a.0, a.1, b.0, b.1));
        }
        put(out, format_args!("<path class=\"arc\" d=\"{path}\"/>\n"));
        if !self.tips {
            return;
        }
        let (x, y) = *last;
        // The last part may have no length.
        let Some(before) = way.iter().rev().find(|point| **point != *last) else { return };
        let corners = match self.direction {
            Direction::Down => {
                let back = if before.1 > y { 6.0 } else { -6.0 };
                [(x - 3.2, y + back), (x + 3.2, y + back)]
            }
            Direction::Left => {
                let back = if before.0 > x { 6.0 } else { -6.0 };
                [(x + back, y - 3.2), (x + back, y + 3.2)]
            }
        };
        let [a, b] = corners;
        put(
            out,
            format_args!(
                "<path class=\"tip\" d=\"M{x:.1} {y:.1}L{:.1} {:.1}L{:.1} {:.1}Z\"/>\n",
                a.0, a.1, b.0, b.1
            ),
        );
    }

    fn plan(&self) -> Plan {
        let sizes: Vec<(f64, f64)> = self.nodes.iter().map(Node::size).collect();
        // Along a layer, and across it.
        let turned: Vec<(f64, f64)> = match self.direction {
            Direction::Down => sizes.clone(),
            Direction::Left => sizes.iter().map(|(width, height)| (*height, *width)).collect(),
        };
        let layers = Layers::of(&turned, &self.arcs);
        let laid = places::place(&layers, BETWEEN, BEYOND);
        let (along, across) = (laid.along + 2.0 * MARGIN, laid.across + 2.0 * MARGIN);
        let turn = |(at, layer): (f64, f64)| match self.direction {
            Direction::Down => (at + MARGIN, layer + MARGIN),
            Direction::Left => (across - layer - MARGIN, at + MARGIN),
        };
        let place = |(at, size): (&(f64, f64), &(f64, f64))| {
            let (x, y) = turn(*at);
            Place { x, y, width: size.0, height: size.1 }
        };
        let (width, height) = match self.direction {
            Direction::Down => (along, across),
            Direction::Left => (across, along),
        };
        Plan {
            nodes: laid.nodes.iter().zip(&sizes).map(place).collect(),
            ways: laid.ways.into_iter().map(|way| way.into_iter().map(turn).collect()).collect(),
            width,
            height,
        }
    }
}

fn drawn(out: &mut String, node: &Node, place: Place) {
    let (left, top) = (place.x - place.width / 2.0, place.y - place.height / 2.0);
    let (class, round, colour) = match node.shape {
        Shape::Box(colour) => ("box", 6.0, colour.min(4)),
        Shape::Pill => ("pill", place.height.min(22.0) / 2.0, 4),
    };
    put(
        out,
        format_args!(
            "<g class=\"k{colour}\"><rect class=\"{class}\" x=\"{left:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{:.1}\" rx=\"{round:.1}\"/>",
            place.width, place.height,
        ),
    );
    let mut y = top + 5.0;
    for (at, line) in node.lines.iter().enumerate() {
        y += node.step(at);
        let small = if node.is_large(at) { "" } else { " class=\"small\"" };
        put(
            out,
            format_args!(
                "<text{small} x=\"{:.1}\" y=\"{:.1}\">{}</text>",
                place.x,
                y - 3.5,
                html::escape(line)
            ),
        );
    }
    out.push_str("</g>\n");
}

/// How many letters of one width a text is wide.
fn letters(text: &str) -> f64 {
    // Ideographs, kana, hangul and emoji take the room of two.
    let wide = |letter: char| matches!(letter as u32, 0x1100..=0x115f | 0x2e80..=0xa4cf | 0xac00..=0xd7a3 | 0xf900..=0xfaff | 0xfe30..=0xfe6f | 0xff00..=0xff60 | 0x1f300..=0x1faff | 0x20000..=0x3fffd);
    text.chars().map(|letter| if wide(letter) { 2.0 } else { 1.0 }).sum()
}

/// A line that is not too long, in which nothing steers.
fn shortened(line: &str) -> String {
    let mut short: String = visible(line).chars().take(LETTERS).collect();
    if line.chars().nth(LETTERS).is_some() {
        short.push('…');
    }
    short
}

/// A text in which nothing steers: of XML most of what does may not even be written.
fn visible(text: &str) -> String {
    let odd = |letter: char| letter.is_control() || matches!(letter, '\u{fffe}' | '\u{ffff}');
    text.chars().map(|letter| if odd(letter) { '·' } else { letter }).collect()
}

fn put(out: &mut String, arguments: Arguments<'_>) {
    // Writing to a text cannot fail.
    let _ = out.write_fmt(arguments);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn random(seed: u64, direction: Direction) -> Graph {
        let mut stream = seeded::Family::new("calculemus-draw/tests", "graph", seed).stream(0);
        let mut below = |count: usize| stream.below(count as u64) as usize;
        let mut graph = Graph::new("t", direction);
        let count = 1 + below(40);
        for at in 0..count {
            let shape = if below(3) == 0 { Shape::Pill } else { Shape::Box(below(6)) };
            graph.add(Node::new(shape, (0..below(4)).map(|line| "x".repeat((at * 7 + line) % 60))));
        }
        // Circles, arcs from a box to itself, several between two, and over many layers.
        for _ in 0..below(3 * count) {
            graph.arcs.push((below(count), below(count)));
        }
        graph
    }

    /// Whether no arc goes through a box: its points and the middles of its parts.
    fn meets_nothing(graph: &Graph, plan: &Plan) -> bool {
        let inside = |place: &Place, (x, y): (f64, f64)| {
            (x - place.x).abs() < place.width / 2.0 - 1e-6 && (y - place.y).abs() < place.height / 2.0 - 1e-6
        };
        graph.arcs.iter().zip(&plan.ways).all(|(_, way)| {
            way.windows(2).all(|pair| {
                let middle = ((pair[0].0 + pair[1].0) / 2.0, (pair[0].1 + pair[1].1) / 2.0);
                plan.nodes.iter().all(|place| [pair[0], pair[1], middle].iter().all(|at| !inside(place, *at)))
            })
        })
    }

    #[test]
    fn no_box_is_over_another_and_all_is_in_the_picture() {
        for seed in 0..400 {
            let direction = if seed % 2 == 0 { Direction::Down } else { Direction::Left };
            let graph = random(seed, direction);
            let plan = graph.plan();
            for (at, a) in plan.nodes.iter().enumerate() {
                assert!(a.x - a.width / 2.0 >= 0.0 && a.x + a.width / 2.0 <= plan.width, "{seed}: {a:?}");
                assert!(a.y - a.height / 2.0 >= 0.0 && a.y + a.height / 2.0 <= plan.height, "{seed}: {a:?}");
                for b in &plan.nodes[..at] {
                    let apart = |a: f64, b: f64, sizes: f64| (a - b).abs() >= sizes / 2.0 + 5.0;
                    let are = apart(a.x, b.x, a.width + b.width) || apart(a.y, b.y, a.height + b.height);
                    assert!(are, "{seed}: {a:?} and {b:?}");
                }
            }
            for ((from, to), way) in graph.arcs.iter().zip(&plan.ways) {
                assert_eq!(way.is_empty(), from == to, "{seed}");
                // It starts and ends at the sides of its boxes.
                for (node, end) in [(from, way.first()), (to, way.last())] {
                    let Some((x, y)) = end else { continue };
                    let place = plan.nodes[*node];
                    let (dx, dy) = ((x - place.x).abs(), (y - place.y).abs());
                    let (half_w, half_h) = (place.width / 2.0 + 1e-6, place.height / 2.0 + 1e-6);
                    assert!(dx <= half_w && dy <= half_h, "{seed}");
                    assert!(half_w - dx < 1e-5 || half_h - dy < 1e-5, "{seed}");
                }
            }
            assert!(meets_nothing(&graph, &plan), "{seed}");
            assert_eq!(graph.document(), graph.document());
            assert!(!graph.document().contains("NaN"), "{seed}");
        }
    }

    /// A chain, a tree: what is derived is nearer to the first box, and a tree has no crossing.
    #[test]
    fn layers_follow_the_arcs() {
        let mut graph = Graph::new("t", Direction::Down);
        (0..7).for_each(|at| {
            graph.add(Node::new(Shape::Box(0), [at.to_string()]));
        });
        graph.arcs = (1..7).map(|at| (at, (at - 1) / 2)).collect();
        let places = graph.places();
        for (from, to) in &graph.arcs {
            assert!(places[*from].y > places[*to].y);
        }
        assert!(places[3].x < places[4].x && places[4].x < places[5].x && places[5].x < places[6].x);
        // Parents stand in the middle of their children.
        assert!((places[0].x - (places[1].x + places[2].x) / 2.0).abs() < 1.0);
        graph.direction = Direction::Left;
        let places = graph.places();
        assert!(graph.arcs.iter().all(|(from, to)| places[*from].x < places[*to].x));
    }

    #[test]
    fn empty_graphs_and_odd_names_are_drawn() {
        let empty = Graph::new("<&\u{1b}", Direction::Down);
        assert!(empty.document().contains("<title>&lt;&amp;·</title>"));
        let mut graph = Graph::new("t", Direction::Left);
        graph.add(Node::new(Shape::Box(9), ["<script>\"&'\u{0}\u{ffff}".to_owned(), String::new()]));
        graph.add(Node::new(Shape::Pill, ["x".repeat(1000)]));
        graph.arcs.push((0, 7));
        let svg = graph.document();
        assert!(svg.contains("&lt;script&gt;&quot;&amp;'··") && !svg.contains("<script"), "{svg}");
        assert!(svg.contains("xx…") && svg.len() < 5000);
    }
}
