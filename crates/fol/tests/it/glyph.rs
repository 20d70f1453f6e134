//! `fol glyph` from the shell: pictures there and back, and what is refused.

use std::process::Command;

use fol::glyph::Glyph;
use fol::glyph::picture::{self, Lines};
use fol::symbol::SymbolId;
use serde_json::{Value, json};
use tempfile::TempDir;

/// The items that the command answers, and its exit status.
fn glyph(folder: &TempDir, args: &[&str]) -> (Vec<Value>, i32) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fol"));
    let output = command.current_dir(folder).arg("glyph").args(args).arg("--json").output().unwrap();
    let document: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    (document["items"].as_array().cloned().unwrap_or_default(), output.status.code().unwrap())
}

#[track_caller]
fn check_refused(folder: &TempDir, args: &[&str], kind: &str, stage: &str) {
    let (items, status) = glyph(folder, args);
    let error = &items[0]["error"];
    assert_eq!((error["kind"].as_str(), error["stage"].as_str()), (Some(kind), Some(stage)));
    assert_eq!((&items[0]["ok"], status), (&json!(false), 1));
}

#[test]
fn a_picture_is_read_back() {
    let folder = tempfile::tempdir().unwrap();
    for label in ["FORALL", "GREATER_EQUAL", "0", "624", "<query>"] {
        let (items, status) = glyph(&folder, &[label, "--png", "a.png", "--svg", "a.svg", "--scale", "3"]);
        assert_eq!((items.len(), status), (1, 0));
        let (read, status) = glyph(&folder, &["--read", "a.png"]);
        assert_eq!((&read[0]["label"], &read[0]["rows"], status), (&json!(label), &items[0]["rows"], 0));
        assert!(std::fs::read_to_string(folder.path().join("a.svg")).unwrap().contains("0 0 25 25"));
    }
}

#[test]
fn refusals() {
    let folder = tempfile::tempdir().unwrap();
    let mut unknown = Glyph::of(SymbolId::AND);
    unknown.0[12][12] ^= true;
    let mut bytes = vec![];
    picture::write(&unknown, 2, Lines::None, &mut bytes).unwrap();
    std::fs::write(folder.path().join("unknown.png"), &bytes).unwrap();
    std::fs::write(folder.path().join("bad.png"), &bytes[..60]).unwrap();
    check_refused(&folder, &["--read", "unknown.png"], "UnknownGlyph", "glyph");
    check_refused(&folder, &["--read", "bad.png"], "BadPicture", "glyph");
    check_refused(&folder, &["--read", "."], "Io", "io");
    check_refused(&folder, &["--read", "missing.png"], "NotFound", "io");
    check_refused(&folder, &["AND", "--png", "no/where.png"], "NotFound", "io");
    for name in ["663", "PREDICATE", "-1", "+5", ""] {
        check_refused(&folder, &[name], "UnknownId", "lex");
    }
}

#[test]
fn wrong_usage() {
    let folder = tempfile::tempdir().unwrap();
    for args in [
        &[][..],
        &["AND", "OR", "--png", "a.png"],
        &["--all", "--svg", "a.svg"],
        &["--sheet", "a.gif"],
        &["AND", "--scale", "0"],
    ] {
        assert_eq!(glyph(&folder, args).1, 2, "{args:?}");
    }
}

#[test]
fn all_and_the_sheet() {
    let folder = tempfile::tempdir().unwrap();
    let (items, status) = glyph(&folder, &["--all", "--sheet", "a.png"]);
    assert_eq!((items.len(), status), (663, 0));
    assert_eq!(glyph(&folder, &["--sheet", "a.svg"]).1, 0);
    assert!(folder.path().join("a.png").exists() && folder.path().join("a.svg").exists());
}
