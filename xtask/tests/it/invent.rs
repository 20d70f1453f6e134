//! `cargo xtask invent`: the worked example, a set of the project, a model that chooses, and what it refuses.

use crate::common::Place;

const RUN: &str = "data = \"few\"\nsuites = []\nd_model = 16\nn_layers = 1\nn_heads = 2\nd_ff = 32\nmax_steps = 30\n\
    batch = 16\neval_every = 30\nlr = 1e-2\nmax_len = 200\nthreads = 1\n";
const DATA: &str = "law = \"public\"\nstream = { train = 300, val = 40, test = 40 }\niid = 40\n";

fn place() -> Place {
    Place::new(&[("run.toml", RUN), ("data/few.toml", DATA)])
}

#[test]
fn three_uses_gain_four_tokens() {
    let place = place();
    let file = place.path("three.txt");
    std::fs::write(&file, "(P1(x0) ∧ P2(x0))\n\n∀x3 (P1(x3) ∧ P2(x3))\n¬(P1(c7) ∧ P2(c7))\n").unwrap();
    let answer = place.json(&["invent", "three.txt", "--json", "--quiet", "--out", "folded.txt"]);
    let found = &answer["definitions"][0];
    assert_eq!(found["text"], "P0(x0) ≔ (P1(x0) ∧ P2(x0)).");
    assert_eq!((&found["uses"], &found["gain_tokens"]), (&3.into(), &4.into()));
    assert!((found["gain_bits"].as_f64().unwrap() - 37.4915).abs() < 5e-5);
    assert_eq!(answer["tokens"]["before"].as_u64().unwrap() - answer["tokens"]["after"].as_u64().unwrap(), 4);
    assert_eq!(answer["skeletons"], serde_json::json!({"all": 3, "covered": 3}));
    let text = std::fs::read_to_string(place.path("folded.txt")).unwrap();
    assert_eq!(text, "P0(x0) ≔ (P1(x0) ∧ P2(x0)).\nP0(x0)\n∀x0 P0(x0)\n¬P0(c7)\n");
    // Nothing comes again: an answer, and no refusal.
    std::fs::write(&file, "P1(x0)\n¬P2(c0)\n").unwrap();
    assert_eq!(place.json(&["invent", "three.txt", "--json"])["definitions"], serde_json::json!([]));
    for (text, status, words) in [
        ("P1(x0) ⊢ P2(x0)\n", 1, "three.txt:1: symbols are invented for formulas alone"),
        ("P1(x0)\n(P1(x0) ∧\n", 1, "three.txt:2"),
        ("\n", 1, "no formula"),
    ] {
        std::fs::write(&file, text).unwrap();
        let refused = place.refused(&["invent", "three.txt"], status);
        assert!(refused.contains(words), "{refused}");
    }
    assert!(place.refused(&["invent", "nothing"], 2).contains("neither a data set nor a file"));
}

#[test]
fn a_model_chooses_by_its_bits() {
    let place = place();
    place.ok(&["gen-data", "--config", "few.toml", "--quiet"]);
    place.ok(&["train", "--config", "run.toml", "--name", "r", "--quiet"]);
    let tokens = place.json(&["invent", "few", "--max", "3", "--first", "200", "--json", "--quiet"]);
    let found = tokens["definitions"].as_array().unwrap();
    assert!(!found.is_empty() && tokens["ratio"].as_f64().unwrap() > 1.0, "{tokens}");
    let again = place.json(&["invent", "few", "--max", "3", "--first", "200", "--json", "--quiet"]);
    assert_eq!(tokens, again);
    let bits =
        place.json(&["invent", "few", "--max", "2", "--first", "60", "--measure", "r", "--json", "--quiet"]);
    for found in bits["definitions"].as_array().unwrap() {
        assert!(found["gain_bits"].as_f64().unwrap() > 0.0, "{bits}");
    }
    assert!(place.refused(&["invent", "few", "--measure", "nobody"], 1).contains("nobody"));
}
