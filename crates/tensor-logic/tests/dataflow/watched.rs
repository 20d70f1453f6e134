//! `tl watch`.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use crate::{tl, with_program};

const GRAPH: &str = "
Edge(x, y)
Edge(A, B); Edge(B, C)
Path(x, y) <- Edge(x, y)
Path(x, z) <- Path(x, y), Edge(y, z)
Source(x) <- Edge(x, y), not Edge(_, x)
Path(x, y)?
Source(x)?
";

fn watch(text: &str, more: &[&str], updates: &str) -> (Option<i32>, String, String) {
    let folder = with_program(text);
    let call = [&["watch", "p.tl"], more].concat();
    tl(folder.path(), &call, updates)
}

#[test]
fn batches_end_at_empty_lines_and_changes_are_told() {
    let updates = "+Edge(C, a)\n-Edge(A, B)  # gone\n\n\n+Edge(A, B)\n-Edge(X, Y)\n";
    let wanted = "+Path(A, B)\n+Path(A, C)\n+Path(B, C)\n+Source(A)\n\n\
        -Path(A, B)\n-Path(A, C)\n+Path(B, \"a\")\n+Path(C, \"a\")\n-Source(A)\n+Source(B)\n\n\
        +Path(A, B)\n+Path(A, C)\n+Path(A, \"a\")\n-Source(B)\n+Source(A)\n\n";
    for workers in ["1", "2"] {
        let (status, found, said) = watch(GRAPH, &["--workers", workers], updates);
        assert_eq!((status, found.as_str()), (Some(0), wanted), "{said}");
    }
    // Each line by itself; a query alone; as JSON.
    let (status, found, _) = watch(GRAPH, &["--each", "--only-queries", "--query", "Source(x)?"], updates);
    assert_eq!(
        (status, found.as_str()),
        (Some(0), "+Source(A)\n\n\n-Source(A)\n+Source(B)\n\n-Source(B)\n+Source(A)\n\n\n")
    );
    let (status, found, _) = watch(GRAPH, &["--json", "--only-queries", "--query", "Source(x)?"], updates);
    let lines: Vec<serde_json::Value> =
        found.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((status, lines.len()), (Some(0), 3));
    let change = serde_json::json!({"query": "Source(x)?", "came": false, "tuple": ["A"]});
    assert_eq!((&lines[1]["batch"], &lines[1]["changes"][0]), (&serde_json::json!(1), &change));
    assert_eq!(lines[2]["unchanged"], 1);
}

#[test]
fn values_numbers_and_truths_change() {
    let text = "
Road(A, B) = 4; Road(B, C) = 2
Dist(A) min= 0
Dist(y) min= Dist(x) + Road(x, y)
Many : 3
N = Road(x, y) > 0
Far() <- Dist(x), Dist(x) > 5
Dist(x)?
Dist(C)?
Far()?
";
    let text = text.replace("Many : 3\n", "").replace("N = Road(x, y) > 0\n", "");
    let updates = "+Road(A, C) = 3\n\n-Road(A, B)\n\n-Road(A, C) = 9\n\n+Road(A, B) = 1\n-Road(A, C) = 3.0";
    let (status, found, said) = watch(&text, &[], updates);
    let wanted = "+Dist(A) = 0.0\n+Dist(B) = 4.0\n+Dist(C) = 6.0\n+Dist(C) = 6.0\n+Far()\n\n\
        -Dist(C) = 6.0\n+Dist(C) = 3.0\n-Dist(C) = 6.0\n+Dist(C) = 3.0\n-Far()\n\n\
        -Dist(B) = 4.0\n\n\n\
        -Dist(C) = 3.0\n+Dist(B) = 1.0\n+Dist(C) = 3.0\n\n";
    let wanted = wanted.replace("-Dist(C) = 3.0\n+Dist(B) = 1.0\n+Dist(C) = 3.0\n\n", "+Dist(B) = 1.0\n\n");
    assert_eq!((status, found.as_str()), (Some(0), wanted.as_str()), "{said}");
    // A number, which is 0 where nothing contributes; several literals.
    let text = "R(A, B); S(B)\nN = R(x, y)\nN?\nR(x, y), S(y)?";
    let (status, found, said) = watch(text, &[], "-R(A, B)\n\n+R(A, B)\n+R(B, B)\n");
    let wanted = "+N = 1.0\n+x = A, y = B in R(x, y), S(y)?\n\n\
        -N = 1.0\n+N = 0.0\n-x = A, y = B in R(x, y), S(y)?\n\n\
        -N = 0.0\n+N = 2.0\n+x = A, y = B in R(x, y), S(y)?\n+x = B, y = B in R(x, y), S(y)?\n\n";
    assert_eq!((status, found.as_str()), (Some(0), wanted), "{said}");
}

/// Lines that are no updates are refused with their places; those around them are made, and the exit status tells.
#[test]
fn bad_lines_are_refused_and_the_others_made() {
    let text = "i : 1..3\nEdge(A, B)\nIn(i) \nRoad(A) = 1\nV = [1, 2]\nP(x) <- Edge(x, y)\nQ(i) <- In(i)\nR(x) max= Road(x)\nP(x)?\nQ(i)?\nR(x)?";
    let updates = "\n+Edge(C, B)\n+Egde(A, B)\n+Edge(A)\n+Edge(A, B) = 3\n+Road(B)\n+In(4)\n+V(1)\nEdge(A, B)\n+Edge(D B)\n\u{7f}\n+Edge(A, 9999999999)\n";
    let (status, found, said) = watch(text, &[], updates);
    assert_eq!(status, Some(1), "{said}");
    assert!(found.ends_with("\n\n+P(C)\n\n"), "{found}\n{said}");
    let wanted = [
        ("bad-argument", "3:2", "Edge"),
        ("arity", "4:2", "2 places"),
        ("type-conflict", "5:15", "has no values"),
        ("type-conflict", "6:2", "has values"),
        ("out-of-domain", "7:5", "`4`"),
        ("not-yet", "8:2", "dense"),
        ("syntax", "9:1", "`+` or `-`"),
        ("syntax", "10:9", "`,` or `)`"),
        ("syntax", "11:1", "`+` or `-`"),
        ("not-yet", "12:10", "±2^29"),
    ];
    for (code, place, part) in wanted {
        let block = said.split("error[").find(|block| block.contains(&format!("standard input:{place}\n")));
        let block = block.unwrap_or_else(|| panic!("{place}: {said}"));
        assert!(block.starts_with(code) && block.contains(part), "{place}: {block}");
    }
}

#[test]
fn programs_whose_answers_cannot_be_maintained_are_refused() {
    let cases = [
        ("E(1, 2)\nA = [1, 2, 3]\nB[i] = A[i]\nB?", "not-yet", "dense"),
        ("E(1)\nN(x, z) += F(x, z)\nN(x, z) += F(x, y) N(y, z)\nN(x, z)?", "not-yet", "sum in a recursion"),
        ("E(1)\n\"out.csv\" = E", "not-yet", "written once"),
        ("E(A, B) = -1; E(B, A) = -1\nD(A) min= 0\nD(y) min= D(x) + E(x, y)\nD(x)?", "divergence", "D"),
        ("E(x) <- ", "syntax", ""),
    ];
    for (text, code, part) in cases {
        let (status, _, said) = watch(text, &[], "+E(2)\n");
        assert_eq!(status, Some(1), "{text}: {said}");
        assert!(said.contains(&format!("error[{code}]")) && said.contains(part), "{text}: {said}");
    }
    // A batch that diverges ends it, with the place in the program.
    let text = "E(A, B) = 1; E(B, C) = 1\nD(A) min= 0\nD(y) min= D(x) + E(x, y)\nD(x)?";
    let (status, found, said) = watch(text, &[], "+E(C, A) = -9\n\n+E(C, D) = 1\n");
    assert_eq!(status, Some(1), "{said}");
    assert!(said.contains("error[divergence]") && said.contains("p.tl:3:1"), "{said}");
    assert!(!found.contains("D(D)"), "{found}");
    let (status, _, said) =
        watch("N(1)\nN(x+1) <- N(x), M(x)\nM(1)\nN(x)?", &["--max-tuples", "3"], "+M(2)\n+M(3)\n");
    assert_eq!(status, Some(1), "{said}");
    assert!(said.contains("error[budget]"), "{said}");
    for more in [&["--follow"][..], &["--updates", "missing"], &["--workers", "0"], &["--dtype", "f32"]] {
        assert_eq!(watch(GRAPH, more, "").0, Some(2), "{more:?}");
    }
    let folder = with_program(GRAPH);
    assert_eq!(tl(folder.path(), &["watch", "-"], GRAPH).0, Some(2));
}

/// Bytes that are no text are refused at their place.
#[test]
fn bytes_that_are_no_text_are_refused() {
    let folder = with_program(GRAPH);
    std::fs::write(folder.path().join("u"), b"+Edge(C, D)\n+Edge(\xff, B)\n").unwrap();
    let (status, found, said) = tl(folder.path(), &["watch", "p.tl", "--updates", "u"], "");
    assert_eq!(status, Some(1), "{said}");
    assert!(said.contains("u:2:7") && said.contains("no UTF-8"), "{said}");
    assert!(found.contains("+Path(C, D)"), "{found}");
}

/// A file that grows is followed until it is removed; half a line is waited for.
#[test]
fn a_file_is_followed() {
    let folder = with_program(GRAPH);
    let path = folder.path().join("updates");
    let mut file = std::fs::File::create(&path).unwrap();
    let mut call = Command::new(env!("CARGO_BIN_EXE_tl"));
    call.current_dir(folder.path()).args(["watch", "p.tl", "--updates", "updates", "--follow"]);
    call.args(["--only-queries", "--query", "Path(A, x)?"]);
    let mut child = call.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next =
        |count: usize| -> Vec<String> { lines.by_ref().take(count).map(|line| line.unwrap()).collect() };
    assert_eq!(next(3), ["+Path(A, B)", "+Path(A, C)", ""]);
    file.write_all(b"+Edge(C, D)\n+Edge(D,").unwrap();
    assert_eq!(next(2), ["+Path(A, D)", ""]);
    file.write_all(b" E)\n").unwrap();
    assert_eq!(next(2), ["+Path(A, E)", ""]);
    std::fs::remove_file(&path).unwrap();
    assert_eq!(next(1), [""; 0]);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}
