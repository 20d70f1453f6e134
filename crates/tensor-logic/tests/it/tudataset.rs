//! Data sets of graphs in the text format of TUDataset: what is written is what was read, and what does not fit is refused
//! at its line.
#![expect(clippy::unwrap_used, reason = "a test that cannot write files has failed")]

use std::fmt::Write;
use std::path::{Path, PathBuf};

use tensor_logic::auto::Auto;
use tensor_logic::fast::Fast;
use tensor_logic::tudataset::{DataSet, Failure};

use crate::common::answers::calculated;

/// So many graphs of three nodes: triangles of class 1 and paths of class -1 in turns.
fn files(graphs: usize) -> Vec<(&'static str, String)> {
    let mut arcs = String::new();
    let mut kinds = String::new();
    for graph in 0..graphs {
        let first = 3 * graph + 1;
        let mut join = |from: usize, to: usize, kind: u32| {
            writeln!(arcs, "{from}, {to}\n{to}, {from}").unwrap();
            writeln!(kinds, "{kind}\n{kind}").unwrap();
        };
        join(first, first + 1, 1);
        join(first + 1, first + 2, 2);
        if graph % 2 == 0 {
            join(first, first + 2, 1);
        }
    }
    vec![
        ("A", arcs),
        ("graph_indicator", (1..=graphs).map(|graph| format!("{graph}\n").repeat(3)).collect()),
        ("graph_labels", (0..graphs).map(|graph| if graph % 2 == 0 { "1\n" } else { "-1\n" }).collect()),
        ("node_labels", "0\n3\n0\n".repeat(graphs)),
        ("edge_labels", kinds),
        ("node_attributes", "0.5, 1\n-2,1e-3\n0, 0\n".repeat(graphs)),
    ]
}

/// Writes six graphs, without some files and with some others instead, and answers with the path of all.
fn set(folder: &Path, without: &[&str], instead: &[(&str, &str)]) -> PathBuf {
    write(folder, files(6), without, instead)
}

fn write(folder: &Path, files: Vec<(&str, String)>, without: &[&str], instead: &[(&str, &str)]) -> PathBuf {
    for (part, text) in files {
        let text = instead.iter().find(|(name, _)| *name == part).map_or(text.as_str(), |(_, text)| *text);
        if !without.contains(&part) {
            std::fs::write(folder.join(format!("TOY_{part}.txt")), text).unwrap();
        }
    }
    folder.join("TOY")
}

fn read_back(folder: &Path, name: &str) -> String {
    std::fs::read_to_string(folder.join(name)).unwrap()
}

#[test]
fn relations_hold_what_the_files_say() {
    let folder = tempfile::tempdir().unwrap();
    let data = DataSet::read(&set(folder.path(), &[], &[])).unwrap();
    let out = folder.path().join("out/deeper");
    let written = data.write(&out).unwrap();
    assert_eq!(written.len(), 7);
    assert_eq!(written.last().unwrap(), &out.join("TOY.tl"));
    let lines = |name: &str| read_back(&out, name).lines().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(lines("GraphLabel.csv"), ["1,1", "2,-1", "3,1", "4,-1", "5,1", "6,-1"]);
    assert_eq!(lines("In.csv")[2..4], ["1,3", "2,4"]);
    assert_eq!(lines("NodeLabel.csv")[..4], ["1,1,0", "1,2,3", "1,3,0", "2,4,0"]);
    assert_eq!(lines("EdgeLabel.csv")[..4], ["1,1,2,1", "1,1,3,1", "1,2,1,1", "1,2,3,2"]);
    assert_eq!(lines("NodeAttribute.csv")[..4], ["1,1,0,0.5", "1,1,1,1.0", "1,2,0,-2.0", "1,2,1,0.001"]);
    // The arcs, by hand.
    let mut arcs: Vec<(u32, u32)> = files(6)[0]
        .1
        .lines()
        .map(|line| line.split_once(", ").unwrap())
        .map(|(from, to)| (from.parse().unwrap(), to.parse().unwrap()))
        .collect();
    arcs.sort_unstable();
    let arcs: Vec<String> =
        arcs.into_iter().map(|(from, to)| format!("{},{from},{to}", (from - 1) / 3 + 1)).collect();
    assert_eq!(lines("Edge.csv"), arcs);
    // Nothing is overwritten.
    std::fs::write(out.join("TOY.tl"), "mine").unwrap();
    assert!(matches!(data.write(&out), Err(Failure::InTheWay { .. })));
    assert_eq!(read_back(&out, "TOY.tl"), "mine");
}

/// With every choice of what may be left out the program runs; a folder may be named, too.
#[test]
fn the_program_learns() {
    for left in 0..8 {
        let optional = ["node_labels", "edge_labels", "node_attributes"];
        let without: Vec<&str> = optional
            .iter()
            .enumerate()
            .filter(|(at, _)| left >> at & 1 == 1)
            .map(|(_, name)| *name)
            .collect();
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("TOY");
        std::fs::create_dir(&inner).unwrap();
        write(&inner, files(20), &without, &[]);
        let data = DataSet::read(&inner).unwrap();
        let out = folder.path().join("out");
        assert_eq!(data.write(&out).unwrap().len(), 7 - without.len());
        let text = read_back(&out, "TOY.tl");
        let found = calculated(&text, &out, 0, &mut Auto::new(Box::new(Fast::default())));
        let found = found.unwrap_or_else(|reports| panic!("{reports:?}\n{text}"));
        assert!(found.outcome.refusal.is_none(), "{:?}\n{text}", found.outcome.refusal);
        let learned = found.outcome.answers[0].minimize.as_ref().unwrap();
        let valid = learned.valid.unwrap();
        assert!(valid.epoch > 0 && learned.last < learned.first, "{without:?}: {learned:?}");
        // Triangles and paths differ in the degrees.
        assert_eq!(found.outcome.answers[1].content.numbers(), [1.0], "{without:?}: {learned:?}");
    }
}

/// Labels far apart or below 0 are labels, attributes in the thousands, all the same or beyond what a sum of them can be
/// are learned from, and so is what interleaves the nodes of graphs.
#[test]
fn odd_numbers_are_learned_from() {
    let nodes = 3 * 20;
    let values: String =
        (0..nodes).map(|node| format!("{}, 0.1, {}e308\n", 3000 + node % 7, node % 2 * 2 - 1)).collect();
    let folder = tempfile::tempdir().unwrap();
    let labels = "9223372036854775807\n-5\n0\n".repeat(20);
    let data = DataSet::read(&write(
        folder.path(),
        files(20),
        &["edge_labels"],
        &[("node_labels", labels.as_str()), ("node_attributes", values.as_str())],
    ))
    .unwrap();
    let out = folder.path().join("out");
    data.write(&out).unwrap();
    let text = read_back(&out, "TOY.tl");
    let found = calculated(&text, &out, 0, &mut Auto::new(Box::new(Fast::default()))).unwrap();
    assert!(found.outcome.refusal.is_none(), "{:?}\n{text}", found.outcome.refusal);
    let learned = found.outcome.answers[0].minimize.as_ref().unwrap();
    assert!(learned.first < 10.0 && learned.last < learned.first, "{learned:?}\n{text}");
    assert_eq!(found.outcome.answers[1].content.numbers(), [1.0], "{learned:?}");
}

/// The layers are those of `std/gin.tl`: with the same parameters the same loss.
#[test]
fn the_layers_are_those_of_the_library() {
    let folder = tempfile::tempdir().unwrap();
    let data = DataSet::read(&set(folder.path(), &["edge_labels"], &[])).unwrap();
    let out = folder.path().join("out");
    data.write(&out).unwrap();
    // What is learned is given: by the indices of a parameter, and its name's end for what has the same ones.
    let given = |line: &str| match line.split_once(" ~ ") {
        Some((name, _)) => {
            let of = name.split_once('[').map_or("", |(_, indices)| indices.trim_end_matches(']'));
            let value = match of {
                "" => "0.3",
                "d, f" => "sin(3 d + 7 f + 1)",
                "f, d" | "f, e" => {
                    if name.ends_with("e]") {
                        "cos(2 e - 5 f)"
                    } else {
                        "cos(2 d - 5 f)"
                    }
                }
                "d" => "sin(d)",
                "e" => "sin(e)",
                "f" => "cos(f)",
                "c" => "c",
                "d, c" => "cos(c + d)",
                _ => "sin(d)",
            };
            format!("{name} = {value}\n")
        }
        None => format!("{line}\n"),
    };
    let text: String = read_back(&out, "TOY.tl")
        .lines()
        .filter(|line| !line.contains("@minimize") && !line.contains("Accuracy"))
        .map(given)
        .collect();
    let text = text + "Loss?\n";
    std::fs::write(
        out.join("gin.tl"),
        include_str!("../../library/gin.tl").lines().map(given).collect::<String>(),
    )
    .unwrap();
    let (rules, end) = (text.find("\nEps1").unwrap(), text.find("\nGraph[").unwrap());
    let square = "
x : 1..18
Near(x, y) <- Edge(s, x, y)
Square[x, d] = Feature(s, x, d)
@include(\"gin.tl\", as=First, X=Square, Edge=Near, H=Middle, f=f, e=d)
Active[x, d] = relu(Middle[x, d])
@include(\"gin.tl\", as=Second, X=Active, Edge=Near, H=Last, f=f, e=d)
Outer(s, x, d) += In(s, x) relu(Last[x, d])
";
    let losses = [text.clone(), format!("{}{square}{}", &text[..rules], &text[end..])].map(|text| {
        let found = calculated(&text, &out, 0, &mut Auto::new(Box::new(Fast::default())));
        let found = found.unwrap_or_else(|reports| panic!("{reports:?}\n{text}"));
        assert!(found.outcome.refusal.is_none(), "{:?}\n{text}", found.outcome.refusal);
        found.outcome.answers[0].content.numbers()[0]
    });
    assert!(losses[0] > 0.0 && (losses[0] - losses[1]).abs() <= 1e-12 * losses[0], "{losses:?}\n{text}");
}

#[test]
fn what_does_not_fit_is_refused_at_its_line() {
    let huge = "1, 99999999999999999999\n";
    let cases: &[(&str, &str, usize, &str)] = &[
        ("A", "1, 2\n2\n", 2, "an arc is two nodes"),
        ("A", "1, 2\n2, 1, 3\n", 2, "an arc is two nodes"),
        ("A", "1, 2\n\n2, 1\n", 2, "an arc is two nodes"),
        ("A", "0, 2\n", 1, "0 is none of the 18 nodes"),
        ("A", "1, 2\n2, 1\n2, 19\n", 3, "19 is none of the 18 nodes"),
        ("A", "-1, 2\n", 1, "-1 is none of the 18 nodes"),
        ("A", "1, 4294967297\n", 1, "4294967297 is none"),
        ("A", huge, 1, "`99999999999999999999` is no whole number of 64 bits"),
        ("A", "1, x\n", 1, "`x` is no whole number"),
        ("A", "3, 4\n", 1, "node 3 is of graph 1, and node 4 of graph 2"),
        ("graph_indicator", "1\n7\n", 2, "7 is none of the 6 graphs"),
        ("graph_indicator", "1\n1.5\n", 2, "`1.5` is no whole number"),
        ("graph_indicator", "", 1, "graph 1 has a class here, and no node"),
        ("graph_labels", "1\n-1\n", 7, "3 is none of the 2 graphs"),
        ("graph_labels", "1\n-1\n1\n-1\n1\n-1\n1\n", 7, "graph 7 has a class here, and no node"),
        ("graph_labels", "1\ntwo\n", 2, "`two` is no whole number"),
        ("graph_labels", "", 1, "there is no graph"),
        ("graph_labels", "1\n-9223372036854775808\n", 2, "a program cannot write -9223372036854775808"),
        ("node_labels", "0\n-9223372036854775808\n", 2, "a program cannot write -9223372036854775808"),
        ("node_labels", "0\n1\n", 2, "2 lines for 18 nodes"),
        ("node_labels", "", 1, "0 lines for 18 nodes"),
        ("node_labels", "0, 1\n", 1, "one number stands in a line"),
        ("edge_labels", "0\n", 1, "1 lines for 30 arcs"),
        ("node_attributes", "1, 2\n3\n", 2, "the first line has 2 numbers, and this one 1"),
        ("node_attributes", "1, 2\n3, nan\n", 2, "`nan` is no number"),
        ("node_attributes", "1, inf\n", 1, "`inf` is no number"),
        ("node_attributes", "1, 2\n3, 4\n", 2, "2 lines for 18 nodes"),
    ];
    for (part, text, line, message) in cases {
        let folder = tempfile::tempdir().unwrap();
        let failure = DataSet::read(&set(folder.path(), &[], &[(part, text)])).unwrap_err();
        let Failure::Wrong { text: file, line: found, report } = &failure else { panic!("{failure}") };
        assert_eq!(found, line, "{part}: {failure}");
        assert!(report.message.contains(message), "{part}: {failure}");
        // Where one file has too many, another one may be to blame: it is named.
        assert!(
            file.file.contains("TOY_") && failure.to_string().contains(&format!(".txt:{line}: ")),
            "{failure}"
        );
    }
    for part in ["A", "graph_indicator", "graph_labels"] {
        let folder = tempfile::tempdir().unwrap();
        let failure = DataSet::read(&set(folder.path(), &[part], &[])).unwrap_err();
        assert!(matches!(failure, Failure::Unreadable { .. }), "{failure}");
        assert!(failure.to_string().contains(&format!("TOY_{part}.txt")), "{failure}");
    }
    let folder = tempfile::tempdir().unwrap();
    let base = set(folder.path(), &[], &[]);
    std::fs::write(folder.path().join("TOY_graph_labels.txt"), b"1\n\xff\n").unwrap();
    let failure = DataSet::read(&base).unwrap_err();
    assert!(failure.to_string().contains("TOY_graph_labels.txt:2: "), "{failure}");
}
