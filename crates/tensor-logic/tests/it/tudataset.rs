//! Data sets of graphs in the text format of TUDataset: what is written is what was read, and what does not fit is refused
//! at its line.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot write files has failed")]

use std::path::{Path, PathBuf};

use tensor_logic::auto::Auto;
use tensor_logic::fast::Fast;
use tensor_logic::tudataset::{DataSet, Failure};

use crate::common::answers::calculated;

/// Six graphs: three triangles of class 1, three paths of class -1.
const FILES: &[(&str, &str)] = &[
    (
        "A",
        "1, 2\n2, 1\n2, 3\n3, 2\n1, 3\n3, 1\n4, 5\n5, 4\n5, 6\n6, 5\n7, 8\n8, 7\n8, 9\n9, 8\n7, 9\n9, 7\n\
         10, 11\n11, 10\n11, 12\n12, 11\n13, 14\n14, 13\n14, 15\n15, 14\n13, 15\n15, 13\n16, 17\n17, 16\n17, 18\n18, 17\n",
    ),
    ("graph_indicator", "1\n1\n1\n2\n2\n2\n3\n3\n3\n4\n4\n4\n5\n5\n5\n6\n6\n6\n"),
    ("graph_labels", "1\n-1\n1\n-1\n1\n-1\n"),
    ("node_labels", "0\n3\n0\n0\n3\n0\n0\n3\n0\n0\n3\n0\n0\n3\n0\n0\n3\n0\n"),
    (
        "edge_labels",
        "1\n1\n2\n2\n1\n1\n1\n1\n2\n2\n1\n1\n2\n2\n1\n1\n1\n1\n2\n2\n1\n1\n2\n2\n1\n1\n1\n1\n2\n2\n",
    ),
    (
        "node_attributes",
        "0.5, 1\n-2,1e-3\n0, 0\n0.5, 1\n-2,1e-3\n0, 0\n0.5, 1\n-2,1e-3\n0, 0\n\
         0.5, 1\n-2,1e-3\n0, 0\n0.5, 1\n-2,1e-3\n0, 0\n0.5, 1\n-2,1e-3\n0, 0\n",
    ),
];

/// Writes these files, but for those left out, with some instead, and answers with the path of all.
fn set(folder: &Path, without: &[&str], instead: &[(&str, &str)]) -> PathBuf {
    for (part, text) in FILES {
        let text = instead.iter().find(|(name, _)| name == part).map_or(*text, |(_, text)| *text);
        if !without.contains(part) {
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
    assert_eq!(lines("NodeLabel.csv")[..3], ["1,0", "2,3", "3,0"]);
    assert_eq!(lines("EdgeLabel.csv")[..4], ["1,2,1", "1,3,1", "2,1,1", "2,3,2"]);
    assert_eq!(lines("NodeAttribute.csv")[..4], ["1,0,0.5", "1,1,1.0", "2,0,-2.0", "2,1,0.001"]);
    // The arcs, by hand.
    let mut arcs: Vec<(u32, u32)> = FILES[0]
        .1
        .lines()
        .map(|line| line.split_once(", ").unwrap())
        .map(|(from, to)| (from.parse().unwrap(), to.parse().unwrap()))
        .collect();
    arcs.sort_unstable();
    let arcs: Vec<String> = arcs.into_iter().map(|(from, to)| format!("{from},{to}")).collect();
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
        let without: Vec<&str> =
            optional.iter().enumerate().filter(|(at, _)| left >> at & 1 == 1).map(|(_, name)| *name).collect();
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("TOY");
        std::fs::create_dir(&inner).unwrap();
        set(&inner, &without, &[]);
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
        // Triangles and paths differ in the degrees; one graph is held out, and is like others.
        assert_eq!(found.outcome.answers[1].content.numbers(), [1.0], "{without:?}: {learned:?}");
    }
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
        ("graph_indicator", "", 0, ""),
        ("graph_labels", "1\n-1\n", 7, "3 is none of the 2 graphs"),
        ("graph_labels", "1\n-1\n1\n-1\n1\n-1\n1\n", 7, "graph 7 has a class here, and no node"),
        ("graph_labels", "1\ntwo\n", 2, "`two` is no whole number"),
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
        let Some(line) = Some(*line).filter(|line| *line > 0) else { continue };
        assert_eq!(*found, line, "{part}: {failure}");
        assert!(report.message.contains(message), "{part}: {failure}");
        // Where one file has too many, another one may be to blame: it is named.
        assert!(file.file.contains("TOY_") && failure.to_string().contains(&format!(".txt:{line}: ")), "{failure}");
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
