//! Runs in each code of texts: from nothing to an evaluation, resumed, sampled, and what is refused.

use crate::common::Place;
use serde_json::Value;

const RUN: &str = "data = \"few\"\nsuites = [\"iid\"]\nd_model = 16\nn_layers = 1\nn_heads = 2\nd_ff = 32\n\
    max_steps = 30\nbatch = 16\nlr = 1e-2\neval_every = 15\nsave_every = 10\nmax_len = 400\n";
const DATA: &str = "law = \"seed\"\nstream = { train = 200, val = 30, test = 30 }\niid = 30\n";
const PUBLIC: &str = "law = \"public\"\nstream = { train = 20, val = 20, test = 20 }\niid = 20\n";

const CODES: [(&str, &str); 4] =
    [("compositional", "infix"), ("atomic", "infix"), ("compositional", "prefix"), ("atomic", "prefix")];

fn place() -> Place {
    Place::new(&[("run.toml", RUN), ("data/few.toml", DATA), ("data/free.toml", PUBLIC)])
}

fn train(place: &Place, name: &str, sets: &[&str]) {
    let sets: Vec<&str> = sets.iter().flat_map(|set| ["--set", *set]).collect();
    place.ok(&[&["train", "--config", "run.toml", "--name", name, "--quiet"][..], &sets].concat());
}

fn document(place: &Place, run: &str, file: &str) -> Value {
    serde_json::from_str(&std::fs::read_to_string(place.path("runs").join(run).join(file)).unwrap()).unwrap()
}

/// A formula costs the optimum the same in every code, and no model less.
#[test]
fn four_codes_from_nothing_to_an_evaluation() {
    let place = place();
    let mut bits = Vec::new();
    for (tokenization, notation) in CODES {
        let name = &format!("{tokenization}-{notation}");
        let (t, n) = (format!("tokenization={tokenization}"), format!("notation={notation}"));
        train(&place, name, &[&t, &n]);
        let about = document(&place, name, "config.json");
        assert_eq!(
            (about["tokenization"].as_str(), about["notation"].as_str()),
            (Some(tokenization), Some(notation))
        );
        let size = about["vocab_size"].as_u64().unwrap();
        assert_eq!(size == 663, tokenization == "compositional");
        let vocabulary =
            document(&place, name, "tokenizer.json")["model"]["vocab"].as_object().unwrap().clone();
        assert_eq!(vocabulary.len() as u64, size);
        assert_eq!(vocabulary.contains_key("P0"), tokenization == "atomic");
        assert_eq!(about["eos_token_id"], vocabulary["<eos>"]);

        let iid = document(&place, name, "eval.json")["iid"].clone();
        let excess = iid["excess"]["value"].as_f64().unwrap();
        assert!(excess > 0.0 && iid["kl"]["value"].as_f64().unwrap() > 0.0, "{name}: {excess}");
        bits.push(iid["optimum"]["bits_per_formula"].as_f64().unwrap());
        let baselines = document(&place, name, "eval.json")["baselines"].clone();
        let row = |wanted: &str| {
            baselines.as_array().unwrap().iter().find(|r| r["name"] == wanted).unwrap().clone()
        };
        assert!(row("optimum")["excess"]["value"].as_f64().unwrap().abs() < 1e-9);
        assert!((row("uniform")["nats_per_token"].as_f64().unwrap() - (size as f64).ln()).abs() < 1e-9);
        assert!(row("grammar-uniform")["kl"]["value"].as_f64().unwrap() > 0.0);

        let completion =
            place.json(&["eval", name, "--suite", "completion", "--json", "--quiet"])["completion"].clone();
        assert_eq!(completion["greedy"]["valid"].as_f64(), Some(1.0));
        let samples = place.json(&["sample", name, "--n", "5", "--valid", "--prompt", "∀x0", "--json"]);
        for item in samples["items"].as_array().unwrap() {
            assert!(item["valid"] == true && item["text"].as_str().unwrap().starts_with("∀x0 "), "{item}");
        }
        let free = place.json(&["sample", name, "--n", "3", "--max-tokens", "5", "--json"]);
        assert!(
            free["items"]
                .as_array()
                .unwrap()
                .iter()
                .all(|i| i["valid"] == true || !i["error"].is_null() || i["finished"] == false)
        );
        place.refused(&["sample", name, "--valid", "--prompt", "∀x0 )"], 1);

        let exported = place.command(&["export", name, "--format", "hf"]).output().unwrap();
        let said = String::from_utf8_lossy(&exported.stderr).into_owned();
        assert_eq!(exported.status.success(), (tokenization, notation) == CODES[0], "{said}");
        assert!(exported.status.success() || said.contains("NotRepresentable"), "{said}");
        assert!(!said.contains("panicked"));
    }
    assert!(bits.iter().all(|b| (b - bits[0]).abs() < 1e-9), "{bits:?}");
}

/// A resumed run reads with the list that it began with.
#[test]
fn a_resumed_run_keeps_its_list() {
    let place = place();
    let sets = ["tokenization=atomic", "notation=prefix", "entities=data", "suites=[]"];
    train(&place, "whole", &sets);
    train(&place, "part", &[&sets[..], &["max_steps=15", "schedule=constant"]].concat());
    let list = std::fs::read(place.path("runs/part/tokenizer.json")).unwrap();
    place.ok(&["train", "--resume", "part", "--set", "max_steps=30", "--quiet"]);
    assert_eq!(std::fs::read(place.path("runs/part/tokenizer.json")).unwrap(), list);
    // A list that was changed is not read as another.
    let broken = String::from_utf8(list).unwrap().replace("\"P0\"", "\"Q0\"");
    std::fs::write(place.path("runs/part/tokenizer.json"), broken).unwrap();
    let errors = place.refused(&["eval", "part", "--suite", "iid", "--quiet"], 1);
    assert!(errors.contains("tokenizer.json") && errors.contains("Q0"), "{errors}");
}

/// Paths are read from tokens of every code: in training, sampled, within the grammar, resumed.
#[test]
fn tree_positions_in_every_code() {
    let place = place();
    for (tokenization, notation) in CODES {
        let name = &format!("{tokenization}-{notation}");
        let (t, n) = (format!("tokenization={tokenization}"), format!("notation={notation}"));
        train(&place, name, &[&t, &n, "position=tree", "max_steps=15"]);
        let about = document(&place, name, "config.json");
        assert_eq!(about["position"], "tree");
        let samples = place.json(&["sample", name, "--n", "5", "--valid", "--prompt", "∀x0", "--json"]);
        assert!(samples["items"].as_array().unwrap().iter().all(|item| item["valid"] == true), "{samples}");
        let beams = place.json(&["sample", name, "--beam", "3", "--json"]);
        assert!(!beams["items"].as_array().unwrap().is_empty());
        let errors = place.refused(&["export", name, "--format", "hf"], 1);
        assert!(errors.contains("position = \"tree\""), "{errors}");
        place.ok(&["train", "--resume", name, "--set", "max_steps=20", "--quiet"]);
    }
}

/// The same weights, and a run may go on without what it began with, or with it.
#[test]
fn gradient_checkpointing_changes_no_weight() {
    let place = place();
    let sets =
        ["position=tree", "n_layers=3", "dropout=0.2", "schedule=constant", "warmup_steps=2", "suites=[]"];
    let weights =
        |name: &str| std::fs::read(place.path("runs").join(name).join("model.safetensors")).unwrap();
    let checkpointing = "gradient_checkpointing=true";
    train(&place, "plain", &sets);
    train(&place, "all", &[&sets[..], &[checkpointing]].concat());
    assert!(weights("plain") == weights("all"));
    train(&place, "part", &[&sets[..], &["max_steps=15"]].concat());
    place.ok(&["train", "--resume", "part", "--set", "max_steps=30", "--set", checkpointing, "--quiet"]);
    assert!(weights("plain") == weights("part"));

    let kept = |sets: &[&str]| {
        let sets: Vec<&str> = sets.iter().flat_map(|set| ["--set", *set]).collect();
        let dry =
            place.json(&[&["train", "--config", "run.toml", "--dry-run", "--json"][..], &sets].concat());
        dry["step"]["activation_bytes"].as_u64().unwrap()
    };
    let (plain, less) = (kept(&["n_layers=9"]), kept(&["n_layers=9", checkpointing]));
    let head = kept(&["n_layers=1"]);
    assert!(2 * (less - head) < plain - head, "{plain} {less} {head}");
    let sets = ["--set", "n_layers=9", "--set", checkpointing];
    let said = place.ok(&[&["train", "--config", "run.toml", "--dry-run"][..], &sets].concat());
    assert!(said.contains("of activations with gradient checkpointing"), "{said}");
}

#[test]
fn what_has_no_code_is_refused_before_anything_is_trained() {
    let place = place();
    let train = ["train", "--config", "run.toml", "--name", "a", "--quiet", "--set", "notation=prefix"];
    let errors = place.refused(&[&train[..], &["--set", "data=free"]].concat(), 1);
    assert!(errors.contains("fixed arities") && errors.contains("P0 has 1 or 2 arguments"), "{errors}");
    // The only text of the training set has not the names of all others.
    let few = ["--set", "tokenization=atomic", "--set", "entities=data", "--set", "train_limit=1"];
    let errors = place.refused(&[&train[..], &few].concat(), 1);
    assert!(errors.contains("the validation set: text ") && errors.contains("NotInSignature"), "{errors}");
    assert!(errors.contains("symbol ") && errors.contains("entities = \"law\""), "{errors}");
    assert!(!place.path("runs/a/metrics.jsonl").exists());
    let document =
        place.json(&["train", "--config", "run.toml", "--dry-run", "--json", "--set", "tokenization=atomic"]);
    // 38 signs, three constants, five predicates, and as many variables as a formula of depth 4 has binders at most.
    let width = 38 + 3 + 5 + 8;
    let parameters = 2 * width * 16 + width + (4 * 256 + 64 + 2 * 16 * 32 + 32 + 16 + 64) + 32;
    assert_eq!(document["params"].as_u64(), Some(parameters));
}

/// The second pairs of parentheses are drawn, judged against their own optimum, and read back as the formulas they are.
#[test]
fn redundant_parentheses_are_a_code_of_their_own() {
    let place = place();
    for tokenization in ["compositional", "atomic"] {
        train(&place, tokenization, &["double_parentheses=15", &format!("tokenization={tokenization}")]);
        let eval = document(&place, tokenization, "eval.json");
        let baselines = eval["baselines"].as_array().unwrap();
        let row = |wanted: &str| baselines.iter().find(|r| r["name"] == wanted);
        assert!(row("optimum").unwrap()["excess"]["value"].as_f64().unwrap().abs() < 1e-9);
        assert!(row("grammar-uniform").is_none(), "there is no mask of this code");
        assert!(eval["iid"]["excess"]["value"].as_f64().unwrap() > 0.0);
        let completion = place.json(&["eval", tokenization, "--suite", "completion", "--json", "--quiet"]);
        assert!(completion["completion"]["greedy"]["valid"].is_null());
        place.ok(&["sample", tokenization, "--n", "2", "--json"]);
        let errors = place.refused(&["sample", tokenization, "--n", "2", "--valid"], 1);
        assert!(errors.contains("no mask"), "{errors}");
        let errors = place.refused(&["export", tokenization, "--format", "hf"], 1);
        assert!(errors.contains("NotRepresentable"), "{errors}");
    }
    let bits = |run: &str| {
        document(&place, run, "eval.json")["iid"]["optimum"]["bits_per_formula"].as_f64().unwrap()
    };
    assert!((bits("compositional") - bits("atomic")).abs() < 1e-9);
    train(&place, "single", &[]);
    assert!(bits("compositional") > bits("single"), "the draws cost something");
}
