//! `certify` and `snap` as a user has them: a verdict and its files, a check, refusals of what is no run and no
//! certificate.

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
    let run = place.path("runs/a");
    // Not every seed is solved on every processor; one of some is.
    let mut found = None;
    for seed in 3..9 {
        let set = format!("seed={seed}");
        place.ok(&["train", "--config", "run.toml", "--name", "a", "--quiet", "--set", &set]);
        let before = files(&run);
        let output = place.command(&["certify", "a", "--json"]).output().unwrap();
        if output.status.success() {
            found = Some((before, serde_json::from_slice::<Value>(&output.stdout).unwrap()));
            break;
        }
        std::fs::remove_dir_all(&run).unwrap();
    }
    let (before, document) = found.unwrap();
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

/// Of a sweep the runs without an error are certified, the others are counted.
#[test]
fn a_sweep_is_certified_whole() {
    const SWEEP: &str = "base = \"run.toml\"\nseeds = [3, 4, 10]\n[[case]]\nname = \"solved\"\n[[case]]\nname = \"bad\"\nupdates = 1\nsave_every = 1\n\
        [[case]]\nname = \"other\"\ntask = \"ident\"\n";
    let place = Place::new(&[("run.toml", RUN), ("both.toml", SWEEP)]);
    place.ok(&["sweep", "--config", "both.toml", "--quiet"]);
    let output = place.command(&["certify", "both", "--json"]).output().unwrap();
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let point = |name: &str| {
        let points = document["points"].as_array().unwrap();
        points.iter().find(|point| point["cell"] == name).unwrap()
    };
    let (bad, solved, other) = (point("bad"), point("solved"), point("other"));
    // A task that is no automaton ends nothing.
    assert!(other["exact"].as_u64() > Some(0) && other["refused"] == other["exact"], "{document}");
    assert_eq!((&bad["runs"], &bad["exact"], &bad["certified"]), (&3.into(), &0.into(), &0.into()));
    assert_eq!((&solved["cell"], &solved["task"]), (&"solved".into(), &"s3".into()));
    let number = |key: &str| solved[key].as_u64().unwrap();
    assert!(number("exact") > 0);
    assert_eq!(number("exact"), number("certified") + number("counterexample") + number("undecided"));
    let all = document["runs"].as_array().unwrap();
    assert!(
        all.iter().any(|run| run["verdict"] == "refused" && run["why"].as_str().unwrap().contains("`ident`"))
    );
    let runs: Vec<&Value> = all.iter().filter(|run| run["verdict"] != "refused").collect();
    assert_eq!(runs.len() as u64, number("exact"));
    // Each alone says the same; seeds come in the order of their numbers.
    for run in &runs {
        let name = format!("both/{}", run["run"].as_str().unwrap());
        let alone = place.command(&["certify", &name, "--json"]).output().unwrap();
        let alone: Value = serde_json::from_slice(&alone.stdout).unwrap();
        assert_eq!(alone["verdict"], run["verdict"]);
    }
    let seeds: Vec<u64> = runs
        .iter()
        .map(|run| run["run"].as_str().unwrap().rsplit_once('-').unwrap().1.parse().unwrap())
        .collect();
    assert!(seeds.is_sorted(), "{seeds:?}");
    let expected = if number("counterexample") > 0 { 3 } else { 4 };
    assert_eq!(output.status.code(), Some(expected));
    let text = std::fs::read_to_string(place.path("runs/both/certified.md")).unwrap();
    assert!(text.contains("| bad | s3 | 0 of 3 | 0 | 0 | 0 | 0 | – | – |"), "{text}");
    assert!(place.refused(&["certify", "both", "--check"], 2).contains("is a sweep"));
    place.refused(&["certify", "both", "--effort", "0"], 2);

    // A run that was never tested, and a folder without runs.
    let run = place.path("runs/both").join(runs[0]["run"].as_str().unwrap());
    std::fs::remove_file(run.join("eval.json")).unwrap();
    assert!(place.refused(&["certify", "both"], 1).contains("no test yet"));
    std::fs::create_dir_all(place.path("runs/empty/inside")).unwrap();
    assert!(place.refused(&["certify", "empty"], 1).contains("is a run"));
}

/// Parity by one program: two maps of two states, whatever its hidden numbers are.
#[test]
fn a_solved_cell_is_read_back_and_others_say_why() {
    const LL: [&str; 12] = [
        "--set",
        "task=\"parity\"",
        "--set",
        "cell=\"ll\"",
        "--set",
        "preset=\"stable\"",
        "--set",
        "lambda=[1]",
        "--set",
        "aux=4",
        "--set",
        "hidden=4",
    ];
    let place = place();
    // `act` is an option of the cell that the file names; `stable` has it.
    let train = |name: &str, more: &[&str]| {
        let mut args = vec!["train", "--config", "run.toml", "--name", name, "--quiet"];
        args.extend(LL);
        args.extend(more);
        place.ok(&args);
    };
    let mut found = None;
    for seed in 0..6 {
        let (name, set) = (format!("p{seed}"), format!("seed={seed}"));
        train(&name, &["--set", &set]);
        let output = place.command(&["snap", &name, "--json"]).output().unwrap();
        if output.status.success() {
            found = Some((name, serde_json::from_slice::<Value>(&output.stdout).unwrap()));
            break;
        }
    }
    let (name, document) = found.unwrap();
    assert_eq!((&document["snaps"], &document["exact"]), (&true.into(), &true.into()));
    assert_eq!(document["maps"], serde_json::json!([[0, 1], [1, 0]]));
    assert_eq!(document["programs"][0]["text"], "1");
    let kept = std::fs::read_to_string(place.path("runs").join(&name).join("snap.json")).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&kept).unwrap()["maps"], document["maps"]);
    assert!(place.ok(&["snap", &name]).starts_with("snaps: 2 matrices of 0 and 1 in 2 dimensions; 0 wrong"));

    train("bad", &["--set", "updates=1", "--set", "lambda=[1, 2]"]);
    let output = place.command(&["snap", "bad"]).output().unwrap();
    assert_eq!(output.status.code(), Some(4), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(String::from_utf8_lossy(&output.stdout).starts_with("does not snap: "));
    train(
        "longer",
        &["--set", "updates=1", "--set", "pi=[\"20\"]", "--set", "window=3", "--set", "x0=\"zero\""],
    );
    assert!(place.refused(&["snap", "longer"], 1).contains("two places"));
    place.ok(&["train", "--config", "run.toml", "--name", "other", "--quiet", "--set", "updates=1"]);
    assert!(place.refused(&["snap", "other"], 1).contains("only the cell `ll`"));
    assert!(place.refused(&["snap", "nobody"], 1).contains("nobody"));
}
