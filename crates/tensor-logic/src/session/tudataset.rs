//! Graphs in the text format of TUDataset (Morris et al.: TUDataset, 2020, <https://chrsmrrs.github.io/datasets>), as
//! relations and a program that learns to tell their classes.
//!
//! Enter at [`DataSet::read`] and [`DataSet::write`]. Nodes and graphs are counted from 1, through all graphs, and
//! keep these numbers. Whatever does not fit together is refused at its line, and nothing is written then.

mod program;

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use program::{Facts, program};

use crate::ast::Span;
pub use crate::session::sheet::Failure;
use crate::session::sheet::{Row, Sheet, write_new};

/// A node, from 1.
type Node = usize;

/// A set of graphs with a class each.
#[derive(Debug, Clone, PartialEq)]
pub struct DataSet {
    /// The name before the `_` of the files.
    pub name: String,
    /// The graph of each node, from 1.
    pub graphs: Vec<usize>,
    /// The class of each graph.
    pub classes: Vec<i64>,
    /// Arcs, from and to.
    pub edges: BTreeSet<(Node, Node)>,
    /// The label of each node, if there are labels.
    pub node_labels: Option<Vec<i64>>,
    /// The arcs with their labels, if there are labels.
    pub edge_labels: Option<BTreeSet<(Node, Node, i64)>>,
    /// The numbers of each node, equally many of each and one at least, if there are any.
    pub attributes: Option<Vec<Vec<f64>>>,
}

impl DataSet {
    /// Reads `DS_A.txt`, `DS_graph_indicator.txt`, `DS_graph_labels.txt`, and, where they are there, `DS_node_labels.txt`,
    /// `DS_edge_labels.txt` and `DS_node_attributes.txt`. `base` is the path of these files up to `DS`, or a folder that
    /// has the name DS and holds them.
    ///
    /// # Errors
    /// A file that cannot be read or is needed and not there; a line that is not what it must be; files that disagree.
    pub fn read(base: &Path) -> Result<DataSet, Failure> {
        let name = base.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let base = if base.is_dir() { base.join(&name) } else { base.to_owned() };
        let path = |part: &str| {
            let mut path = base.clone().into_os_string();
            path.push(format!("_{part}.txt"));
            PathBuf::from(path)
        };
        let class_sheet = Sheet::read(&path("graph_labels"))?;
        let classes: Vec<i64> = class_sheet.rows().map(|row| class(&row)).collect::<Result<_, _>>()?;
        if classes.is_empty() {
            return Err(class_sheet.wrong(Span { start: 0, end: 0 }, "there is no graph".to_owned()));
        }
        let graphs = members(&Sheet::read(&path("graph_indicator"))?, &class_sheet, classes.len())?;
        let arcs = Sheet::read(&path("A"))?;
        let pairs: Vec<(Node, Node)> = arcs.rows().map(|row| arc(&row, &graphs)).collect::<Result<_, _>>()?;
        let node_labels = match Sheet::read_if_there(&path("node_labels"))? {
            Some(sheet) => {
                // Before their number is looked at: the first line that cannot be is the one to name.
                let labels: Vec<i64> = sheet.rows().map(|row| class(&row)).collect::<Result<_, _>>()?;
                sheet.as_many(labels.len(), graphs.len(), "nodes")?;
                Some(labels)
            }
            None => None,
        };
        let edge_labels = match Sheet::read_if_there(&path("edge_labels"))? {
            Some(sheet) => {
                let labels = column(&sheet, pairs.len(), "arcs")?;
                Some(pairs.iter().zip(labels).map(|((from, to), label)| (*from, *to, label)).collect())
            }
            None => None,
        };
        let attributes = match Sheet::read_if_there(&path("node_attributes"))? {
            Some(sheet) => Some(attributes(&sheet, graphs.len())?),
            None => None,
        };
        let edges = pairs.into_iter().collect();
        Ok(DataSet { name, graphs, classes, edges, node_labels, edge_labels, attributes })
    }

    /// Writes the relations as `.csv` files into a folder, made if it is not there, and beside them a program that reads
    /// them and learns the classes; answers with the paths, the program's the last.
    ///
    /// # Errors
    /// A file of such a name that is there already, before anything is written; files that cannot be written.
    pub fn write(&self, folder: &Path) -> Result<Vec<PathBuf>, Failure> {
        let mut files = self.relations();
        files.push((format!("{}.tl", self.name), program(&self.facts())));
        write_new(folder, files)
    }

    fn facts(&self) -> Facts<'_> {
        Facts {
            name: &self.name,
            graphs: self.classes.len(),
            classes: self.classes.iter().copied().collect(),
            node_labels: self.node_labels.as_ref().map(|labels| labels.iter().copied().collect()),
            edge_labels: self.edge_labels.is_some(),
            attributes: self.attributes.as_deref().map(spreads),
        }
    }

    /// The names and texts of the relations' files.
    fn relations(&self) -> Vec<(String, String)> {
        let lines = |name: &str, lines: &mut dyn Iterator<Item = String>| {
            let mut text = String::new();
            for line in lines {
                // A string takes everything.
                let _ = writeln!(text, "{line}");
            }
            (format!("{name}.csv"), text)
        };
        // A node is in a graph.
        let graph = |node: &Node| self.graphs.get(node - 1).copied().unwrap_or(0);
        let mut edges: Vec<_> = self.edges.iter().map(|(from, to)| (graph(from), from, to)).collect();
        edges.sort_unstable();
        let mut files = vec![
            lines("Edge", &mut edges.iter().map(|(graph, from, to)| format!("{graph},{from},{to}"))),
            lines("In", &mut (1..).zip(&self.graphs).map(|(node, graph)| format!("{graph},{node}"))),
            lines(
                "GraphLabel",
                &mut (1..).zip(&self.classes).map(|(graph, class)| format!("{graph},{class}")),
            ),
        ];
        if let Some(labels) = &self.node_labels {
            let rows = (1..).zip(labels).zip(&self.graphs);
            let mut rows = rows.map(|((node, label), graph)| format!("{graph},{node},{label}"));
            files.push(lines("NodeLabel", &mut rows));
        }
        if let Some(labels) = &self.edge_labels {
            let mut rows =
                labels.iter().map(|(from, to, label)| format!("{},{from},{to},{label}", graph(from)));
            files.push(lines("EdgeLabel", &mut rows));
        }
        if let Some(attributes) = &self.attributes {
            let of_node = |(node, values): (usize, &Vec<f64>)| {
                let rows = values.iter().enumerate();
                rows.map(|(k, value)| format!("{},{node},{k},{value:?}", graph(&node))).collect::<Vec<_>>()
            };
            files.push(lines("NodeAttribute", &mut (1..).zip(attributes).flat_map(of_node)));
        }
        files
    }
}

/// A class or a label of nodes; a program lists them, and cannot write the least number of 64 bits, whose digits alone are too many.
fn class(row: &Row<'_>) -> Result<i64, Failure> {
    let class = row.whole()?;
    match class.checked_neg() {
        Some(_) => Ok(class),
        None => Err(row.wrong(format!("a program cannot write {class}"))),
    }
}

/// The graph of each node: every graph has one.
fn members(sheet: &Sheet, classes: &Sheet, count: usize) -> Result<Vec<usize>, Failure> {
    let graphs: Vec<usize> =
        sheet.rows().map(|row| row.only()?.index(count, "graphs")).collect::<Result<_, _>>()?;
    let mut is_seen = vec![false; count];
    for graph in &graphs {
        if let Some(is_seen) = is_seen.get_mut(graph - 1) {
            *is_seen = true;
        }
    }
    match classes.rows().zip(is_seen).zip(1..).find(|((_, is_seen), _)| !is_seen) {
        Some(((row, _), graph)) => {
            let message = format!("graph {graph} has a class here, and no node in {}", sheet.name());
            Err(row.wrong(message))
        }
        None => Ok(graphs),
    }
}

/// An arc: both its nodes are in one graph.
fn arc(row: &Row<'_>, graphs: &[usize]) -> Result<(Node, Node), Failure> {
    let [from, to] = row.cells()[..] else {
        return Err(row.wrong("an arc is two nodes with a comma between them".to_owned()));
    };
    let (from, to) = (from.index(graphs.len(), "nodes")?, to.index(graphs.len(), "nodes")?);
    let graph = |node: Node| graphs.get(node - 1).copied().unwrap_or(0);
    if graph(from) != graph(to) {
        let (of, other) = (graph(from), graph(to));
        return Err(row.wrong(format!("node {from} is of graph {of}, and node {to} of graph {other}")));
    }
    Ok((from, to))
}

/// A label for each of so many things.
fn column(sheet: &Sheet, count: usize, things: &str) -> Result<Vec<i64>, Failure> {
    let labels: Vec<i64> = sheet.rows().map(|row| row.whole()).collect::<Result<_, _>>()?;
    sheet.as_many(labels.len(), count, things)?;
    Ok(labels)
}

/// The numbers of each node.
fn attributes(sheet: &Sheet, count: usize) -> Result<Vec<Vec<f64>>, Failure> {
    let mut all: Vec<Vec<f64>> = Vec::new();
    for row in sheet.rows() {
        let numbers: Vec<f64> = row.cells().iter().map(|cell| cell.number()).collect::<Result<_, _>>()?;
        let wanted = all.first().map_or(numbers.len(), Vec::len);
        if numbers.len() != wanted {
            let found = numbers.len();
            return Err(row.wrong(format!("the first line has {wanted} numbers, and this one {found}")));
        }
        all.push(numbers);
    }
    sheet.as_many(all.len(), count, "nodes")?;
    Ok(all)
}

/// The mean and the standard deviation of each number that nodes have; a spread of 1 where they all have the same.
fn spreads(attributes: &[Vec<f64>]) -> Vec<(f64, f64)> {
    let places = attributes.first().map_or(0, Vec::len);
    let count = attributes.len() as f64;
    let values = |place: usize| attributes.iter().filter_map(move |row| row.get(place).copied());
    let of = |place: usize| {
        // Each by its share, so that sums of great numbers do not leave their range; a difference of two may.
        let mean: f64 = values(place).map(|value| value / count).sum();
        let largest = values(place).map(|value| (value - mean).abs()).fold(0.0, f64::max);
        // All the same, but for the rounding of the mean.
        if largest <= mean.abs() * 1e-12 {
            return (mean, 1.0);
        }
        if !largest.is_finite() {
            return (mean, f64::MAX);
        }
        let squares: f64 = values(place).map(|value| ((value - mean) / largest).powi(2) / count).sum();
        (mean, largest * squares.sqrt())
    };
    (0..places).map(of).collect()
}
