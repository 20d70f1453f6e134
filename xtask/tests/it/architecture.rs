//! The map and the arrows: what `docs/architecture.md` says of the crates is what cargo sees.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// The only arrows between our crates.
const ARROWS: [(&str, &[&str]); 8] = [
    ("seeded", &[]),
    ("fol", &["seeded"]),
    ("linear-logic", &[]),
    ("training", &["seeded"]),
    ("symbolic-transformer", &["fol", "training", "seeded"]),
    ("tensor-logic", &["seeded", "training"]),
    ("linear-logic-rnn", &["linear-logic", "seeded", "training"]),
    (
        "xtask",
        &[
            "fol",
            "linear-logic",
            "linear-logic-rnn",
            "seeded",
            "symbolic-transformer",
            "tensor-logic",
            "training",
        ],
    ),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn cargo(args: &[&str]) -> String {
    let output = Command::new(env!("CARGO")).args(args).current_dir(root()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn packages() -> Vec<Value> {
    let text = cargo(&["metadata", "--locked", "--offline", "--no-deps", "--format-version", "1"]);
    serde_json::from_str::<Value>(&text).unwrap()["packages"].as_array().unwrap().clone()
}

#[test]
fn no_other_arrow() {
    let allowed: BTreeMap<&str, BTreeSet<&str>> =
        ARROWS.iter().map(|(from, to)| (*from, to.iter().copied().collect())).collect();
    let packages = packages();
    let ours: BTreeSet<&str> = packages.iter().map(|p| p["name"].as_str().unwrap()).collect();
    assert_eq!(ours, allowed.keys().copied().collect());
    for p in &packages {
        let name = p["name"].as_str().unwrap();
        for d in p["dependencies"].as_array().unwrap() {
            let to = d["name"].as_str().unwrap();
            if ours.contains(to) && d["kind"].is_null() {
                assert!(allowed[name].contains(to), "{name} -> {to} is not on the map");
            }
        }
    }
}

#[test]
fn the_map_names_every_crate_and_no_other() {
    let map = std::fs::read_to_string(root().join("docs/architecture.md")).unwrap();
    let named: BTreeSet<String> = map
        .lines()
        .filter_map(|l| l.strip_prefix("| `"))
        .filter_map(|l| l.split_once('`'))
        .map(|(name, _)| name.to_owned())
        .collect();
    let mut there: BTreeSet<String> = std::fs::read_dir(root().join("crates"))
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    there.insert("xtask".to_owned());
    assert_eq!(named, there);
}

#[test]
fn packages_are_alike() {
    for p in packages() {
        let name = p["name"].as_str().unwrap();
        let manifest = std::fs::read_to_string(p["manifest_path"].as_str().unwrap()).unwrap();
        assert!(manifest.contains("[lints]\nworkspace = true"), "{name}: lints");
        assert_eq!(p["license"], "MIT OR Apache-2.0", "{name}");
        assert_eq!(p["edition"], "2024", "{name}");
        if name == "xtask" {
            assert_eq!(p["publish"], serde_json::json!([]), "xtask is not published");
        } else {
            assert!(p["description"].is_string(), "{name}: description");
        }
    }
}

#[test]
fn theories_know_no_candle() {
    for name in ["fol", "linear-logic", "seeded"] {
        let tree = cargo(&["tree", "--locked", "--offline", "-e", "normal", "-p", name, "--all-features"]);
        assert!(!tree.contains("candle"), "{name} pulls candle in:\n{tree}");
    }
}

#[test]
fn tensor_logic_builds_without_candle() {
    let chosen = ["-p", "tensor-logic", "--no-default-features", "--features", "cli"];
    let tree =
        ["tree", "--locked", "--offline", "-e", "normal"].into_iter().chain(chosen).collect::<Vec<_>>();
    let tree = cargo(&tree);
    assert!(tree.contains("clap") && !tree.contains("candle"), "tensor-logic pulls candle in:\n{tree}");
}

/// Files of the project, without what is generated.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if path.is_dir() && !["target", ".git", "runs", "data"].contains(&name.as_str()) {
            sources(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn only_one_file_prints_to_standard_output() {
    let mut files = Vec::new();
    sources(&root(), &mut files);
    assert!(files.len() > 50);
    for file in files {
        let name = file.to_string_lossy().into_owned();
        if name.contains("/tests/") || name.contains("/examples/") || name.ends_with("answer.rs") {
            continue;
        }
        let text = std::fs::read_to_string(&file).unwrap();
        assert!(
            !text.contains("println!(")
                || text.matches("println!(").count() == text.matches("eprintln!(").count(),
            "{name}"
        );
    }
}

#[test]
fn the_readme_shows_tested_programs() {
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    let mut examples = Vec::new();
    sources(&root().join("crates"), &mut examples);
    examples.retain(|p| p.parent().is_some_and(|f| f.ends_with("examples")));
    let programs: Vec<String> = examples.iter().map(|p| std::fs::read_to_string(p).unwrap()).collect();
    let blocks: Vec<&str> =
        readme.split("```rust\n").skip(1).filter_map(|b| b.split_once("```")).map(|b| b.0).collect();
    assert_eq!(blocks.len(), 5);
    for block in blocks {
        assert!(programs.iter().any(|p| p == block), "no example is this program:\n{block}");
    }
}
