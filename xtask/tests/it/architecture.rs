//! The map and the arrows: what `docs/architecture.md` says of the crates is what cargo sees.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

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

/// The arrows of the map: `crate -> crate, crate  # remark`, in the block below its heading.
fn arrows() -> BTreeMap<String, BTreeSet<String>> {
    let map = std::fs::read_to_string(root().join("docs/architecture.md")).unwrap();
    let block = map.split("## The only arrows\n```\n").nth(1).unwrap().split("```").next().unwrap();
    let arrow = |line: &str| {
        let (from, to) = line.split('#').next().unwrap().split_once("->").unwrap();
        let to = to.split(',').map(str::trim).filter(|to| !to.is_empty()).map(str::to_owned);
        (from.trim().to_owned(), to.collect())
    };
    block.lines().map(arrow).collect()
}

#[test]
fn the_arrows_of_the_map_are_those_of_cargo() {
    let packages = packages();
    let ours: BTreeSet<&str> = packages.iter().map(|p| p["name"].as_str().unwrap()).collect();
    let seen: BTreeMap<String, BTreeSet<String>> = packages
        .iter()
        .map(|p| {
            let to = p["dependencies"].as_array().unwrap().iter().filter(|d| d["kind"].is_null());
            let to = to.map(|d| d["name"].as_str().unwrap()).filter(|to| ours.contains(to));
            (p["name"].as_str().unwrap().to_owned(), to.map(str::to_owned).collect())
        })
        .collect();
    assert_eq!(arrows(), seen);
}

/// A dependency that no line of a package names is one that its users compile for nothing.
#[test]
fn every_dependency_is_used() {
    let mut unused = Vec::new();
    for p in packages() {
        let name = p["name"].as_str().unwrap();
        let folder = Path::new(p["manifest_path"].as_str().unwrap()).parent().unwrap().to_owned();
        let mut files = Vec::new();
        sources(&folder, &mut files);
        let text: String = files.iter().map(|f| std::fs::read_to_string(f).unwrap()).collect();
        for d in p["dependencies"].as_array().unwrap() {
            let known_as = d["rename"].as_str().or(d["name"].as_str()).unwrap().replace('-', "_");
            let named = ["::", ";", " as "].map(|after| format!("{known_as}{after}"));
            if !named.iter().any(|n| text.contains(n)) {
                unused.push(format!("{name}: {known_as}"));
            }
        }
    }
    assert_eq!(unused, [""; 0]);
}

/// Every entry of the workspace's table of dependencies is taken by a package.
#[test]
fn every_workspace_dependency_is_taken() {
    let manifest = std::fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let table = manifest.split("[workspace.dependencies]\n").nth(1).unwrap().split("\n[").next().unwrap();
    let listed: BTreeSet<&str> =
        table.lines().filter_map(|l| l.split_once(" = ")).map(|(name, _)| name.trim()).collect();
    let packages = packages();
    let taken: BTreeSet<&str> = packages
        .iter()
        .flat_map(|p| p["dependencies"].as_array().unwrap())
        .map(|d| d["name"].as_str().unwrap())
        .collect();
    assert!(listed.len() > 20);
    assert_eq!(listed.difference(&taken).collect::<Vec<_>>(), [&""; 0]);
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

/// A crate of the equation language that grows beyond this is taken apart: nobody finds their way in a larger one.
#[test]
fn no_crate_of_the_equation_language_is_large() {
    let mut counted = 0;
    for p in packages() {
        let name = p["name"].as_str().unwrap();
        if !name.starts_with("tensor-logic") && !name.starts_with("datarel") {
            continue;
        }
        let mut files = Vec::new();
        sources(&Path::new(p["manifest_path"].as_str().unwrap()).parent().unwrap().join("src"), &mut files);
        let lines: usize = files.iter().map(|f| std::fs::read_to_string(f).unwrap().lines().count()).sum();
        assert!(lines < 20_000, "{name} has {lines} lines");
        counted += usize::from(lines > 100);
    }
    assert!(counted >= 10, "only {counted} crates were read");
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

/// Files of the project, without what is generated and what it is compared with.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if path.is_dir() && !["target", ".git", "runs", "data", "peers"].contains(&name.as_str()) {
            sources(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
}

/// What a package's code and tests are made of stands in the package, so that they compile from it alone.
#[test]
fn packages_include_nothing_from_outside() {
    let crates = root().join("crates").canonicalize().unwrap();
    let (mut files, mut included) = (Vec::new(), 0);
    sources(&crates, &mut files);
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let package = crates.join(file.strip_prefix(&crates).unwrap().iter().next().unwrap());
        for before in ["#[path = \"", "include_str!(\"", "include_bytes!(\""] {
            for (at, _) in text.match_indices(before) {
                let name = text[at + before.len()..].split('"').next().unwrap();
                let path = file.with_file_name(name).canonicalize();
                let path = path.unwrap_or_else(|e| panic!("{}: {name}: {e}", file.display()));
                assert!(path.starts_with(&package), "{} includes {name}", file.display());
                included += 1;
            }
        }
    }
    assert!(included >= 15, "{included}");
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

/// A target whose tests are not built has none that would be passed over.
#[test]
fn what_is_not_tested_has_no_tests() {
    for package in packages() {
        for target in package["targets"].as_array().unwrap() {
            let path = Path::new(target["src_path"].as_str().unwrap());
            let kinds = target["kind"].as_array().unwrap();
            let is = |wanted: &str| kinds.iter().any(|kind| kind == wanted);
            if target["test"] == true || !(is("lib") || is("bin")) {
                continue;
            }
            let mut found = Vec::new();
            sources(path.parent().unwrap(), &mut found);
            // The programs of a library are targets of their own.
            found.retain(|file| is("bin") || !file.components().any(|part| part.as_os_str() == "bin"));
            for file in found {
                let text = std::fs::read_to_string(&file).unwrap();
                assert!(!text.contains("#[test]") && !text.contains("proptest!"), "{}", file.display());
            }
        }
    }
}
