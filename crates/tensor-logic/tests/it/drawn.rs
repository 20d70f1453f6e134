//! Proofs drawn as trees: a box for each step, none over another, and bounded pictures of large proofs.
#![expect(clippy::unwrap_used, reason = "a test that cannot draw has failed")]

use std::process::Command;

use tensor_logic::answer::drawn;
use tensor_logic::proof::{Proof, Step, StepKind};

fn step(atom: &str, kind: StepKind, from: &[usize]) -> Step {
    Step { atom: atom.to_owned(), kind, line: 1, file: None, from: from.to_vec() }
}

/// The boxes of a picture: left, top, width, height.
pub(crate) fn boxes(svg: &str) -> Vec<[f64; 4]> {
    let number = |tag: &str, key: &str| -> f64 {
        let rest = &tag[tag.find(&format!(" {key}=\"")).unwrap() + key.len() + 3..];
        rest[..rest.find('"').unwrap()].parse().unwrap()
    };
    let tags =
        svg.split("<rect class=\"").skip(1).filter(|tag| tag.starts_with("box") || tag.starts_with("pill"));
    tags.map(|tag| ["x", "y", "width", "height"].map(|key| number(tag, key))).collect()
}

/// Two boxes of a picture of which one is over the other.
pub(crate) fn overlapping(found: &[[f64; 4]]) -> Option<([f64; 4], [f64; 4])> {
    let mut pairs = found.iter().enumerate().flat_map(|(at, a)| found[..at].iter().map(move |b| (*a, *b)));
    pairs.find(|(a, b)| {
        let apart = |from: usize, size: usize| a[from] + a[size] <= b[from] || b[from] + b[size] <= a[from];
        !apart(0, 2) && !apart(1, 3)
    })
}

#[test]
fn a_box_for_each_step_and_none_over_another() {
    let mut stream = seeded::Family::new("tensor-logic/tests", "drawn", 0).stream(0);
    for _ in 0..50 {
        // A random tree: each step follows from some later ones.
        let count = 1 + (stream.uniform() * 40.0) as usize;
        let mut from = vec![Vec::new(); count];
        (1..count).for_each(|at| from[(stream.uniform() * at as f64) as usize].push(at));
        let atom = |at: usize| format!("P({})", "x".repeat(at % 13));
        let steps = (0..count).map(|at| step(&atom(at), StepKind::Rule, &from[at])).collect();
        let svg = drawn::proof(&Proof::new(steps, 0));
        let found = boxes(&svg);
        assert_eq!(found.len(), count);
        assert_eq!(svg.matches("<path").count(), count - 1);
        assert!(found.iter().all(|a| a[0] >= 0.0 && a[1] >= 0.0), "{svg}");
        assert_eq!(overlapping(&found), None, "{svg}");
    }
}

#[test]
fn what_is_drawn_is_bounded_and_escaped() {
    // A step that all others follow from, twice each: 2^40 boxes as a tree.
    let mut steps: Vec<Step> = (0..40).map(|at| step("P(x)", StepKind::Rule, &[at + 1, at + 1])).collect();
    steps.push(step("Q(\"<a & b>\")", StepKind::Fact, &[]));
    let svg = drawn::proof(&Proof::new(steps, 0));
    assert!(boxes(&svg).len() <= 400 && svg.contains("… more below"), "{}", svg.len());
    let long = format!("R(\"{}\")", "é".repeat(1000));
    let svg = drawn::proof(&Proof::new(vec![step(&long, StepKind::Fact, &[])], 0));
    assert!(svg.len() < 5000 && svg.contains('…'));
    let svg = drawn::proof(&Proof::new(vec![step("Q(\"<a & b>\")", StepKind::Data, &[])], 0));
    assert!(svg.contains("Q(&quot;&lt;a &amp; b&gt;&quot;)") && !svg.contains("<a "), "{svg}");
    assert!(boxes(&drawn::proof(&Proof::new(Vec::new(), 0))).is_empty());
}

#[test]
fn the_command_draws_proofs() {
    let folder = tempfile::tempdir().unwrap();
    let run = |text: &str, to: &str| {
        std::fs::write(folder.path().join("p.tl"), text).unwrap();
        let tl = Command::new(env!("CARGO_BIN_EXE_tl"))
            .current_dir(&folder)
            .args(["run", "p.tl", "--draw", to])
            .output();
        let tl = tl.unwrap();
        (tl.status.code(), String::from_utf8(tl.stderr).unwrap())
    };
    let text = "E(A, B); E(B, C)\nP(x, y) <- E(x, y)\nP(x, z) <- P(x, y), E(y, z)\nP(A, C)? @explain\nP(C, A)? @explain\n";
    let (status, said) = run(text, "proofs");
    assert_eq!(status, Some(0), "{said}");
    assert!(said.contains("proof-1.svg is a proof of P(A, C)? @explain"), "{said}");
    let svg = std::fs::read_to_string(folder.path().join("proofs/proof-1.svg")).unwrap();
    assert_eq!(boxes(&svg).len(), 4);
    assert!(!folder.path().join("proofs/proof-2.svg").exists());
    let (status, said) = run("E(A, B)\nE(A, B)?\n", "proofs");
    assert!(status == Some(0) && said.contains("no query with `@explain` has a proof"), "{said}");
    // A file stands where the folder should.
    let (status, said) = run(text, "p.tl");
    assert!(status == Some(2) && said.contains("cannot write"), "{status:?} {said}");
}
