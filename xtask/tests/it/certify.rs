//! `certify` as a user has it: a verdict and its files, a check, refusals of what is no run and no certificate.

use crate::common::{Place, files};
use serde_json::Value;

const RUN: &str = "kind = \"rnn\"\ntask = \"s3\"\nmin_length = 1\nmax_length = 16\ncell = \"second-order\"\nact = \"tanh\"\nhidden = 10\n\
    readout = 0\nupdates = 1500\nbatch = 64\nlr = 1e-2\neval_every = 500\nsave_every = 1500\neval_lengths = [16, 64]\n\
    eval_sequences = 50\nseed = 3\n";

fn place() -> Place {
    Place::new(&[("run.toml", RUN)])
}

#[test]
fn a_solved_cell_is_certified_and_what_is_changed_is_refused() {
    let place = place();
    place.ok(&["train", "--config", "run.toml", "--name", "a", "--quiet"]);
    let run = place.path("runs/a");
    let before = files(&run);
    let document = place.json(&["certify", "a", "--json"]);
    assert_eq!(
        (document["verdict"].as_str(), document["command"].as_str()),
        (Some("certified"), Some("certify"))
    );
    assert_eq!(document["least"]["classes"].as_array().unwrap().len(), 6);
    // Three files more, nothing else changed, nothing temporary left.
    let after = files(&run);
    let fresh: Vec<String> = after
        .keys()
        .filter(|name| !before.contains_key(*name))
        .map(|name| name.display().to_string())
        .collect();
    assert_eq!(fresh, ["certificate.json", "certificate.md", "certificate.svg"]);
    assert!(before.iter().all(|(name, bytes)| after[name] == *bytes));
    let text = String::from_utf8(after[std::path::Path::new("certificate.md")].clone()).unwrap();
    assert!(
        text.contains("| state | tells | s | r |")
            && text.lines().filter(|line| line.starts_with("| ")).count() == 7,
        "{text}"
    );
    assert!(String::from_utf8_lossy(&after[std::path::Path::new("certificate.svg")]).contains("</svg>"));
    assert_eq!(place.json(&["certify", "a", "--check", "--json"])["images"], document["images"]);
    assert!(place.ok(&["certify", "a"]).starts_with("certified: "));
    // The same again, byte for byte.
    assert_eq!(files(&run), after);

    // A class, a box, garbage, other weights: refused, located, not certified.
    let path = run.join("certificate.json");
    let good = std::fs::read_to_string(&path).unwrap();
    let check = |text: &str, says: &str| {
        std::fs::write(&path, text).unwrap();
        let errors = place.refused(&["certify", "a", "--check"], 1);
        assert!(errors.contains(says) && errors.contains("certificate.json"), "{errors}");
    };
    let mut other: Value = serde_json::from_str(&good).unwrap();
    other["states"][1]["class"] = 5.into();
    check(&other.to_string(), "state ");
    check(&good.replace("\"task\":\"s3\"", "\"task\":\"d5\""), "another cell or task");
    check(&good[..good.len() / 2], "certificate: ");
    check("", "certificate: ");
    std::fs::remove_file(&path).unwrap();
    assert!(place.refused(&["certify", "a", "--check"], 1).contains("without --check makes it"));
    std::fs::write(&path, &good).unwrap();
    let model = run.join("model.safetensors");
    let mut bytes = std::fs::read(&model).unwrap();
    let last = bytes.len() - 2;
    bytes[last] ^= 1;
    std::fs::write(&model, &bytes).unwrap();
    assert!(place.refused(&["certify", "a", "--check"], 1).contains("other weights"));
    std::fs::write(&model, b"garbage").unwrap();
    assert!(place.refused(&["certify", "a"], 1).contains("model.safetensors"));
}

#[test]
fn an_unsolved_cell_has_a_counterexample_and_others_are_refused() {
    let place = place();
    place.ok(&["train", "--config", "run.toml", "--name", "bad", "--quiet", "--set", "updates=2"]);
    let run = place.path("runs/bad");
    // What no longer holds goes.
    std::fs::write(run.join("certificate.md"), "old").unwrap();
    let output = place.command(&["certify", "bad", "--json"]).output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["verdict"], "counterexample");
    assert_ne!(document["told"], document["right"]);
    assert!(!run.join("certificate.md").exists() && !run.join("certificate.json").exists());
    // The task itself says what is right.
    let word: Vec<String> = document["word"].as_array().unwrap().iter().map(ToString::to_string).collect();
    let example = place.json(&["task", "s3", "--input", &(word.join(" ") + " "), "--json"]);
    assert_eq!(example["target"].as_array().unwrap().last(), Some(&document["right"]));

    assert!(place.refused(&["certify", "nobody"], 1).contains("nobody"));
    place.ok(&[
        "train",
        "--config",
        "run.toml",
        "--name",
        "local",
        "--quiet",
        "--set",
        "updates=2",
        "--set",
        "task=\"flip\"",
    ]);
    assert!(place.refused(&["certify", "local"], 1).contains("`flip`"));
    std::fs::remove_file(place.path("runs/local/model.safetensors")).unwrap();
    assert!(place.refused(&["certify", "local"], 1).contains("the model of the run"));
}
