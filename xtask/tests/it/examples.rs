//! What the README shows is run: `cargo test` runs each of its programs as a test of its own crate.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

#[test]
fn every_program_of_the_readme_is_run_by_the_tests() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let readme = std::fs::read_to_string(root.join("README.md")).unwrap();
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--locked", "--offline", "--no-deps", "--format-version", "1"])
        .current_dir(root)
        .output()
        .unwrap();
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let mut shown = 0;
    for package in metadata["packages"].as_array().unwrap() {
        let manifest = std::fs::read_to_string(package["manifest_path"].as_str().unwrap()).unwrap();
        let manifest: toml::Table = manifest.parse().unwrap();
        for target in package["targets"].as_array().unwrap() {
            if target["kind"] != serde_json::json!(["example"]) {
                continue;
            }
            let (name, source) = (target["name"].as_str().unwrap(), target["src_path"].as_str().unwrap());
            let program = std::fs::read_to_string(source).unwrap();
            if !readme.contains(&format!("```rust\n{program}```")) {
                continue;
            }
            shown += 1;
            assert_eq!(
                target["test"], true,
                "{name}: `test = true` is missing, `cargo test` does not run it"
            );
            // Without the harness its `main` is the test; with it the test is written in it.
            let examples = manifest["example"].as_array().unwrap();
            let own = examples.iter().find(|e| e["name"].as_str() == Some(name)).unwrap();
            let harness = own.get("harness").is_none_or(|h| h.as_bool() == Some(true));
            assert_eq!(harness, program.contains("#[test]"), "{name}: nothing of it would run");
            assert!(program.contains("assert"), "{name}: it asserts nothing");
        }
    }
    assert_eq!(shown, readme.matches("```rust\n").count());
}
