//! The commands as a user calls them: from nothing to a report, killed and resumed, and with nonsense.

use std::process::{Command, Stdio};
use std::time::Duration;

use crate::common::{Place, fields_are_documented, metrics};
use serde_json::Value;

const RUN: &str = "data = \"few\"\nsuites = []\nd_model = 16\nn_layers = 1\nn_heads = 2\nd_ff = 32\nmax_steps = 60\n\
    batch = 16\naccumulate = 2\nlr = 1e-2\neval_every = 20\nlog_every = 7\nsave_every = 1\nema = 0.9\nmax_len = 200\n";
const DATA: &str = "law = \"public\"\nstream = { train = 300, val = 40, test = 40 }\niid = 40\n";

/// A fresh checkout with one small configuration and its data.
fn place() -> Place {
    Place::new(&[("run.toml", RUN), ("data/few.toml", DATA)])
}

#[test]
fn the_default_set_is_made_where_nothing_else_is_said() {
    let place = Place::new(&[("data/public-iid.toml", DATA)]);
    place.ok(&["gen-data", "--quiet"]);
    assert!(place.path("data/public-iid/manifest.json").is_file());
    place.ok(&["gen-data", "--quiet"]);
    assert!(place.refused(&["gen-data", "--quiet", "--set", "stream.train=301"], 1).contains("--force"));
    // A folder of its own, with the defaults of the format.
    place.ok(&["gen-data", "--quiet", "--out", "own", "--set", "stream.train=50", "--set", "iid=10"]);
    assert!(place.path("own/manifest.json").is_file());
    assert!(Place::new(&[]).refused(&["gen-data"], 1).contains("public-iid.toml"));
}

#[test]
fn the_shell_is_told_what_the_command_takes() {
    let script = Place::new(&[]).ok(&["completions", "bash"]);
    for word in ["_calculemus", "gen-data", "--resume"] {
        assert!(script.contains(word), "{word}");
    }
    Place::new(&[]).refused(&["completions", "tcl"], 2);
}

#[test]
fn one_command_from_nothing_to_a_report() {
    let place = place();
    let document = place.json(&[
        "train",
        "--config",
        "run.toml",
        "--name",
        "a",
        "--set",
        "suites=[\"iid\"]",
        "--json",
        "--quiet",
    ]);
    assert_eq!(document["schema"], "xtask/1");
    let run = place.path("runs/a");
    for file in [
        "config.toml",
        "config.json",
        "tokenizer.json",
        "model.safetensors",
        "metrics.jsonl",
        "eval.json",
        "report.html",
    ] {
        assert!(run.join(file).is_file(), "{file}");
    }
    let eval = place.json(&["eval", "a", "--suite", "test", "--json", "--quiet"]);
    assert_eq!((eval["command"].as_str(), eval["test"]["formulas"].as_u64()), (Some("eval"), Some(40)));
    assert!(eval["iid"]["excess"]["value"].as_f64().unwrap() > 0.0, "the suite judged before stays");
    fields_are_documented(&run);
    let steps: Vec<u64> = metrics(&run).iter().map(|m| m["step"].as_u64().unwrap()).collect();
    assert!(steps.is_sorted() && steps.last() == Some(&60));
    let completion =
        place.json(&["eval", "a", "--suite", "completion", "--json", "--quiet"])["completion"].clone();
    assert_eq!(
        (completion["formulas"].as_u64(), completion["greedy"]["valid"].as_f64()),
        (Some(40), Some(1.0))
    );
    let about: Value =
        serde_json::from_str(&std::fs::read_to_string(run.join("config.json")).unwrap()).unwrap();
    assert_eq!((about["vocab_size"].as_u64(), about["law"].as_str()), (Some(663), Some("public")));
    let samples = place.json(&["sample", "a", "--n", "5", "--valid", "--prompt", "∀x1", "--json"]);
    let items = samples["items"].as_array().unwrap();
    assert_eq!(items.len(), 5);
    assert!(items.iter().all(|i| i["valid"] == true && i["text"].as_str().unwrap().starts_with("∀x1 ")));
    // So many tokens at most, the prompt's among them, however the model would go on.
    for (most, prompt) in [
        ("13", "∀x1"),
        ("20", "¬¬¬"),
        ("7", ""),
        ("400", ""),
        ("400", "¬¬¬¬¬¬¬¬¬¬¬¬"),
        ("18446744073709551615", ""),
    ] {
        let how = ["--n", "40", "--temperature", "1e9", "--valid", "--json"];
        let samples =
            place.json(&[&["sample", "a", "--prompt", prompt, "--max-tokens", most], &how[..]].concat());
        for item in samples["items"].as_array().unwrap() {
            let tokens = item["tokens"].as_array().unwrap().len();
            assert!(
                item["valid"] == true && tokens <= most.parse::<usize>().unwrap(),
                "{most} {prompt}: {item}"
            );
        }
    }
    let shortest = samples_of(&place, "5");
    assert!(shortest.iter().all(|i| i["tokens"].as_array().unwrap().len() == 5), "{shortest:?}");
    assert!(place.refused(&["sample", "a", "--valid", "--max-tokens", "4"], 1).contains("--max-tokens 4"));
    let long = "¬".repeat(1000);
    let said = place.refused(&["sample", "a", "--valid", "--max-tokens", "9999", "--prompt", &long], 1);
    assert!(said.contains("the model reads"), "{said}");
    // A finished run is left alone.
    place.ok(&["train", "--resume", "a", "--quiet"]);
    let errors = place.refused(&["train", "--config", "run.toml", "--name", "a"], 1);
    assert!(errors.contains("--resume a"), "{errors}");
}

#[test]
fn threads_and_names_change_nothing() {
    let place = place();
    // Without the key: all cores.
    place.ok(&["train", "--config", "run.toml", "--name", "all", "--quiet"]);
    for threads in ["1", "2", "3"] {
        let set = format!("threads={threads}");
        place.ok(&["train", "--config", "run.toml", "--name", threads, "--set", &set, "--quiet"]);
        place.same_result("runs/all", &format!("runs/{threads}"));
    }
}

#[test]
fn a_person_sees_the_configuration_and_the_validation_as_it_is_measured() {
    let place = place();
    let output = place.command(&["train", "--config", "run.toml", "--name", "a"]).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("\nd_model = 16\n") && said.contains("\nthreads = 0\n"), "{said}");
    for step in [0, 20, 40, 60] {
        let line = said.lines().find(|l| l.starts_with(&format!("update {step}/60  validation ")));
        assert!(line.is_some_and(|l| l.contains("over the optimum")), "{step}: {said}");
    }
}

#[test]
fn a_signal_stops_a_run_with_a_checkpoint() {
    let place = place();
    let args = ["train", "--config", "run.toml", "--name", "a", "--set", "max_steps=100000", "--quiet"];
    let mut child = place.command(&args).stderr(Stdio::piped()).spawn().unwrap();
    let first_checkpoint = place.path("runs/a/last/step-0000001.safetensors");
    for _ in 0..600 {
        if first_checkpoint.exists()
            || place.path("runs/a/last").read_dir().is_ok_and(|mut d| d.next().is_some())
        {
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    let status = child.wait().unwrap();
    assert_eq!(status.code(), Some(130));
    place.ok(&["sample", "a", "--n", "1", "--json"]);
    let errors = place.refused(&["train", "--resume", "a", "--set", "lr=3"], 1);
    assert!(errors.contains("`lr`") && errors.contains("0.01"), "{errors}");
}

#[test]
fn a_dry_run_writes_nothing_and_counts() {
    let place = place();
    let before = place.json(&["train", "--config", "run.toml", "--dry-run", "--json"]);
    assert!(before["total_updates"].is_null() && before["lr_probe"].is_null());
    assert!(!place.path("runs").exists() && !place.path("data").exists());
    place.ok(&["gen-data", "--config", "few.toml", "--quiet"]);
    let d = place.json(&["train", "--config", "run.toml", "--dry-run", "--json"]);
    assert_eq!(d["total_updates"], 60);
    assert_eq!(d["updates_per_epoch"], 19); // ⌈300/16⌉
    assert_eq!(d["warmup_steps"], 3);
    let probe: Vec<u64> = d["lr_probe"].as_array().unwrap().iter().map(|p| p[0].as_u64().unwrap()).collect();
    assert_eq!(probe, [0, 1, 3, 31, 60]);
    assert_eq!(d["lr_probe"][2][1], 0.01);
    // The first batch of the run itself.
    assert_eq!((d["step"]["formulas"].as_u64(), d["data_present"].as_bool()), (Some(16), Some(true)));
    let targets = d["step"]["targets"].as_f64().unwrap();
    assert_eq!(d["step"]["flop"].as_f64().unwrap(), 6.0 * targets * d["params"].as_f64().unwrap());
    let said = place.ok(&["train", "--config", "run.toml", "--dry-run"]);
    for word in ["parameters", "memory", "TFLOP", "60 updates", "16 formulas", "ln of the vocabulary 6.497"] {
        assert!(said.contains(word), "{word}: {said}");
    }
    assert!(serde_json::from_str::<Value>(&said).is_err() && !said.contains("NaN"), "{said}");
}

#[test]
fn data_do_not_depend_on_shards_and_threads() {
    let place = place();
    let whole = place.json(&["gen-data", "--config", "few.toml", "--out", "w", "--threads", "1", "--json"]);
    for i in 0..3 {
        place.ok(&[
            "gen-data",
            "--config",
            "few.toml",
            "--out",
            "s",
            "--shard",
            &format!("{i}/3"),
            "--quiet",
        ]);
    }
    let merged = place.json(&["gen-data", "--config", "few.toml", "--out", "s", "--threads", "2", "--json"]);
    assert_eq!(whole["digest"], merged["digest"]);
    assert_eq!(whole["splits"], merged["splits"]);
    let errors = place.refused(&["gen-data", "--config", "few.toml", "--out", "j", "--join", "s"], 1);
    assert!(errors.contains("no part"), "{errors}");
    let errors = place.refused(&["gen-data", "--config", "few.toml", "--out", "w", "--set", "seed=1"], 1);
    assert!(errors.contains("Exists") && errors.contains("--force"), "{errors}");
    place.ok(&["gen-data", "--config", "few.toml", "--out", "w", "--set", "seed=1", "--force", "--quiet"]);
}

#[test]
fn nonsense_is_refused_with_its_place() {
    let place = place();
    std::fs::write(place.path("bad.toml"), "d_model = 16\nlearning_rate = 3\n").unwrap();
    std::fs::write(place.path("noise.toml"), [0xff, 0xfe, 0x00, 0x41]).unwrap();
    std::fs::write(place.path("law.toml"), "drawz = 5\n").unwrap();
    std::fs::create_dir_all(place.path("runs/empty")).unwrap();
    let cases: [(&[&str], i32, &str); 18] = [
        (&[], 2, "Usage"),
        (&["train"], 2, "--config"),
        (&["train", "--config", "none.toml"], 1, "run.toml"),
        (
            &["train", "--config", "bad.toml"],
            1,
            "bad.toml:2:1: unknown key \"learning_rate\"; did you mean \"lr\"?",
        ),
        (&["train", "--config", "noise.toml"], 1, "noise.toml"),
        (&["train", "--config", "run.toml", "--set", "n_heads=3"], 1, "n_heads = 3"),
        (&["train", "--config", "run.toml", "--set", "data=nowhere"], 1, "nowhere"),
        (&["train", "--config", "run.toml", "--device", "rocm:0"], 2, "made without the feature `rocm`"),
        (&["train", "--config", "run.toml", "--device", "toaster"], 2, "toaster"),
        (&["device-check", "--device", "cpu"], 2, "the CPU is what a device is compared with"),
        (&["device-check", "--device", "vulkan:1"], 2, "made without the feature `vulkan`"),
        (&["train", "--config", "run.toml", "--name", "../x"], 2, "--name"),
        (&["train", "--resume", "nothing"], 1, "nothing"),
        (&["eval", "empty"], 1, "config.toml"),
        (&["eval", "empty", "--suite", "poetry"], 2, "poetry"),
        (&["gen-data", "--config", "law.toml"], 1, "draws"),
        (&["gen-data", "--shard", "3/3", "--out", "d"], 2, "I/N"),
        (&["sample", "x", "--greedy", "--beam", "3"], 2, "cannot be used"),
    ];
    for (args, status, words) in cases {
        let errors = place.refused(args, status);
        assert!(errors.contains(words), "{args:?}: {errors}");
    }
}

/// A build that reaches no URL says how one is made that does.
#[cfg(not(feature = "store"))]
#[test]
fn urls_want_a_build_that_reaches_them() {
    let place = place();
    let commands: [&[&str]; 6] = [
        &["put", "few", "s3://sets/few"],
        &["get", "s3://sets/few", "few"],
        &["gen-data", "--config", "few.toml", "--to", "s3://sets/few"],
        &["gen-data", "--config", "few.toml", "--join", "--from", "file:///few"],
        &["train", "--config", "run.toml", "--name", "a", "--set", "data=s3://sets/few"],
        // Again: the first time left nothing in the way.
        &["train", "--config", "run.toml", "--name", "a", "--set", "data=s3://sets/few"],
    ];
    for args in commands {
        let errors = place.refused(args, 1);
        assert!(
            errors.contains("`cargo build --release --package xtask --features store`"),
            "{args:?}: {errors}"
        );
    }
    assert!(!place.path("data").exists());
}

#[test]
fn damaged_files_are_refused_by_name() {
    let place = place();
    place.ok(&["train", "--config", "run.toml", "--name", "a", "--set", "max_steps=4", "--quiet"]);
    let model = place.path("runs/a/model.safetensors");
    let good = std::fs::read(&model).unwrap();
    std::fs::write(&model, &good[..good.len() / 2]).unwrap();
    assert!(place.refused(&["sample", "a"], 1).contains("model.safetensors"));
    std::fs::write(&model, &good).unwrap();
    // A model of another width.
    place.ok(&[
        "train",
        "--config",
        "run.toml",
        "--name",
        "b",
        "--set",
        "max_steps=2",
        "--set",
        "d_model=8",
        "--quiet",
    ]);
    std::fs::copy(place.path("runs/b/model.safetensors"), &model).unwrap();
    assert!(place.refused(&["eval", "a"], 1).contains("shape"));
    // A token file with a flipped bit.
    std::fs::write(&model, &good).unwrap();
    let tokens = place.path("data/few/iid-00000.tok");
    let mut bytes = std::fs::read(&tokens).unwrap();
    bytes[40] ^= 1;
    std::fs::write(&tokens, bytes).unwrap();
    let errors = place.refused(&["eval", "a", "--suite", "iid"], 1);
    assert!(errors.contains("DigestMismatch") && errors.contains("iid-00000.tok"), "{errors}");
}

/// A build without the equation language hands runs and sweeps of programs over to one that has it: what it would call.
#[test]
#[cfg(all(unix, not(feature = "programs")))]
fn what_is_a_program_is_handed_to_a_build_that_has_the_language() {
    use std::os::unix::fs::PermissionsExt;
    let run = "program = \"learner.tl\"\ndata = \"few\"\nd_model = 16\nn_layers = 1\nn_heads = 2\nd_ff = 32\ndropout = 0.0\n";
    let sweep = "base = \"program.toml\"\nseeds = [0]\n[grid]\nlr = [1e-3, 1e-2]\n";
    let place = Place::new(&[("program.toml", run), ("sweep.toml", sweep)]);
    let cargo = place.path("cargo");
    std::fs::write(&cargo, "#!/bin/sh\necho \"$@\" > called\nexit 7\n").unwrap();
    std::fs::set_permissions(&cargo, std::fs::Permissions::from_mode(0o755)).unwrap();
    for args in [
        ["train", "--config", "program.toml", "--name", "a"].as_slice(),
        &["sweep", "--config", "sweep.toml", "--quiet"],
    ] {
        let status = place.command(args).env("CARGO", &cargo).stderr(Stdio::null()).status().unwrap();
        assert_eq!(status.code(), Some(7), "{args:?}");
        let called = std::fs::read_to_string(place.path("called")).unwrap();
        let wanted =
            format!("run --profile release --package xtask --features programs -- {}\n", args.join(" "));
        assert_eq!(called, wanted);
        assert!(!place.path("runs").exists(), "{args:?}");
    }
}

fn samples_of(place: &Place, most: &str) -> Vec<Value> {
    let samples = place.json(&["sample", "a", "--n", "5", "--valid", "--max-tokens", most, "--json"]);
    samples["items"].as_array().unwrap().clone()
}
