//! What a run leaves behind is true: whose data it saw, which weights were judged, which process may write.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::common::{Place, files, metrics};

const RUN: &str = "data = \"few\"\nsuites = [\"iid\"]\nd_model = 16\nn_layers = 1\nn_heads = 2\nd_ff = 32\nmax_steps = 12\n\
    batch = 16\nlr = 1e-2\neval_every = 6\nlog_every = 3\nsave_every = 6\nmax_len = 200\n";
const DATA: &str = "law = \"public\"\nstream = { train = 300, val = 40, test = 40 }\niid = 40\n";

fn place() -> Place {
    Place::new(&[("run.toml", RUN), ("data/few.toml", DATA)])
}

fn train(place: &Place, name: &str, sets: &[&str]) -> String {
    let sets = sets.iter().flat_map(|set| ["--set", set]);
    let args: Vec<&str> =
        ["train", "--config", "run.toml", "--name", name, "--quiet"].into_iter().chain(sets).collect();
    place.ok(&args)
}

/// Waits until a file is there, or fails after a while.
fn wait_for(path: &Path, child: &mut Child) {
    wait_until(&path.display().to_string(), child, || path.exists());
}

/// Waits until the first file of the set is written from its parts.
fn wait_for_merge(folder: &Path, child: &mut Child) {
    wait_until("the first file of the merge", child, || unfinished(folder).next().is_some());
}

fn wait_until(what: &str, child: &mut Child, there: impl Fn() -> bool) {
    let mut tries = 0;
    while !there() {
        assert!(child.try_wait().unwrap().is_none(), "it ended before {what} was there");
        assert!(tries < 6000, "{what} never comes");
        tries += 1;
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The training files of a set that have their temporary names still.
fn unfinished(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    entries.filter(|path| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        name.starts_with("train-00000.tok") && name.ends_with(".tmp")
    })
}

fn signal(child: &Child, name: &str) {
    assert!(Command::new("kill").args([name, &child.id().to_string()]).status().unwrap().success());
}

fn eval_json(place: &Place, run: &str) -> Value {
    serde_json::from_slice(&std::fs::read(place.path(run).join("eval.json")).unwrap()).unwrap()
}

#[test]
fn a_standard_error_that_is_full_or_closed_stops_nothing() {
    let place = place();
    for (name, full) in [("full", true), ("closed", false)] {
        let args = ["train", "--config", "run.toml", "--name", name];
        let mut command = place.command(&args);
        if full {
            // It takes no byte; where there is none, the other half is the test.
            let Ok(file) = std::fs::File::options().write(true).open("/dev/full") else { continue };
            command.stderr(file);
        } else {
            let (reader, writer) = std::io::pipe().unwrap();
            drop(reader);
            command.stderr(OwnedFd::from(writer));
        }
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{name}");
        for file in ["eval.json", "report.html"] {
            assert!(place.path("runs").join(name).join(file).is_file(), "{name}: {file}");
        }
        // A refusal keeps its exit status.
        let mut command = place.command(&args);
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        assert_eq!(command.stderr(OwnedFd::from(writer)).status().unwrap().code(), Some(1));
    }
}

#[test]
fn a_finished_run_is_not_judged_twice_and_one_that_went_on_is() {
    let place = place();
    train(&place, "a", &[]);
    place.ok(&["eval", "a", "--suite", "test", "--quiet"]);
    place.ok(&["report", "a"]);
    let (before, judged) = (files(&place.path("runs/a")), eval_json(&place, "runs/a"));
    place.ok(&["train", "--resume", "a", "--quiet"]);
    assert!(files(&place.path("runs/a")) == before);
    place.ok(&["train", "--resume", "a", "--quiet", "--set", "max_steps=24"]);
    let after = eval_json(&place, "runs/a");
    assert_ne!(judged["model_digest"], after["model_digest"]);
    assert_ne!(judged["iid"], after["iid"]);
    assert!(after.get("test").is_none(), "what was said of other weights is gone");
    let ends: Vec<_> = metrics(&place.path("runs/a")).into_iter().filter(|l| l["kind"] == "end").collect();
    assert_eq!((ends.len(), ends[0]["step"].as_u64()), (1, Some(24)));
}

#[test]
fn patience_ends_no_run_by_default_and_can_be_taken_back() {
    let place = place();
    let resolved = place.ok(&["train", "--config", "run.toml", "--print-config"]);
    assert!(resolved.contains("\npatience = 0\n"), "{resolved}");
    train(&place, "whole", &["max_steps=18", "eval_every=2"]);
    train(&place, "a", &["max_steps=18", "eval_every=2", "patience=2", "min_delta=10.0"]);
    let end = metrics(&place.path("runs/a")).pop().unwrap();
    assert_eq!((end["reason"].as_str(), end["step"].as_u64()), (Some("patience"), Some(4)));
    place.ok(&["train", "--resume", "a", "--quiet", "--set", "patience=0"]);
    let end = metrics(&place.path("runs/a")).pop().unwrap();
    assert_eq!((end["reason"].as_str(), end["step"].as_u64()), (Some("steps"), Some(18)));
    let weights = |run: &str| std::fs::read(place.path(run).join("model.safetensors")).unwrap();
    assert!(weights("runs/a") == weights("runs/whole"));
}

#[test]
fn other_data_than_a_run_was_made_with_are_refused_and_change_no_file() {
    let place = place();
    train(&place, "a", &[]);
    let digest = |data: &str| {
        let text = std::fs::read(place.path(data).join("manifest.json")).unwrap();
        serde_json::from_slice::<Value>(&text).unwrap()["digest"].as_str().unwrap().to_owned()
    };
    let old = digest("data/few");
    let config = place.path("configs/data/few.toml");
    std::fs::write(&config, format!("seed = 1\n{DATA}")).unwrap();
    // The edited file and what it once made.
    let before = files(&place.path("data"));
    let said = place.refused(&["train", "--config", "run.toml", "--name", "b"], 1);
    let made = |text: &str| {
        let manifest: Value = serde_json::from_str(text).unwrap();
        manifest["config_digest"].as_str().unwrap().to_owned()
    };
    let was = made(&std::fs::read_to_string(place.path("data/few/manifest.json")).unwrap());
    assert!(said.contains(&was) && said.contains("gen-data --config few.toml --force"), "{said}");
    assert!(files(&place.path("data")) == before && !place.path("runs/b").exists());
    // A run that is there may still be judged: its data are.
    place.ok(&["eval", "a", "--quiet"]);
    place.ok(&["gen-data", "--config", "few.toml", "--force", "--quiet"]);
    let now = made(&std::fs::read_to_string(place.path("data/few/manifest.json")).unwrap());
    assert!(said.contains(&now), "{said}");
    let before = files(&place.path("runs/a"));
    for args in [
        &["eval", "a"][..],
        &["train", "--resume", "a"],
        &["train", "--resume", "a", "--set", "max_steps=50"],
    ] {
        let said = place.refused(args, 1);
        assert!(said.contains(&old) && said.contains(&digest("data/few")), "{args:?}: {said}");
        assert!(files(&place.path("runs/a")) == before, "{args:?}");
    }
}

#[test]
fn a_refused_resume_changes_no_file() {
    let place = place();
    train(&place, "a", &[]);
    let newest = place.path("runs/a/last/step-0000012.safetensors");
    let bytes = std::fs::read(&newest).unwrap();
    std::fs::write(&newest, &bytes[..bytes.len() / 2]).unwrap();
    let before = files(&place.path("runs/a"));
    for set in ["max_steps=30", "lr=3", "threads=-1", "nonsense=1"] {
        let said = place.refused(&["train", "--resume", "a", "--set", set], 1);
        assert!(files(&place.path("runs/a")) == before, "{set}: {said}");
    }
}

#[test]
fn data_split_by_hash_print_no_nan() {
    let place = place();
    std::fs::write(
        place.path("configs/data/hashed.toml"),
        "law = \"public\"\nsplit = \"hash\"\ndraws = 3000\niid = 40\n",
    )
    .unwrap();
    let args = [
        "train",
        "--config",
        "run.toml",
        "--name",
        "a",
        "--set",
        "data=hashed",
        "--set",
        "suites=[\"iid\", \"test\"]",
    ];
    let output = place.command(&args).output().unwrap();
    let page = std::fs::read(place.path("runs/a/report.html")).unwrap();
    for text in [output.stdout, output.stderr, page] {
        let text = String::from_utf8(text).unwrap();
        assert!(!text.contains("NaN"), "{text}");
    }
    let said = place.ok(&["eval", "a", "--suite", "test", "--quiet"]);
    assert!(said.contains("whole formulas") && !said.contains("NaN"), "{said}");
}

#[test]
fn batches_that_count_tokens_are_never_empty() {
    let place = place();
    // Fewer targets than the longest formula has.
    train(&place, "a", &["batch_unit=\"tokens\"", "batch=8", "max_steps=200", "log_every=1", "suites=[]"]);
    let mut seen = 0;
    for line in metrics(&place.path("runs/a")).iter().filter(|l| l["kind"] == "update") {
        let targets = line["targets"].as_u64().unwrap();
        assert!(targets > seen && line["loss"].as_f64().unwrap() > 0.0, "{line}");
        seen = targets;
    }
}

#[test]
fn weights_that_are_not_finite_are_refused_by_name() {
    let place = place();
    train(&place, "a", &["suites=[]"]);
    let model = place.path("runs/a/model.safetensors");
    let mut bytes = std::fs::read(&model).unwrap();
    let end = bytes.len();
    bytes[end - 4..].copy_from_slice(&f32::NAN.to_le_bytes());
    std::fs::write(&model, bytes).unwrap();
    for args in [&["eval", "a"][..], &["sample", "a", "--n", "1"], &["export", "a", "--format", "hf"]] {
        let said = place.refused(args, 1);
        assert!(said.contains("tensor `") && said.contains("NaN"), "{args:?}: {said}");
    }
    assert!(!place.path("runs/a/hf").exists());
}

/// What is finite in 32 bits makes numbers that are not.
#[test]
fn weights_that_overflow_get_no_marks() {
    let place = place();
    train(&place, "a", &["suites=[]"]);
    let model = place.path("runs/a/model.safetensors");
    let mut bytes = std::fs::read(&model).unwrap();
    let header = 8 + u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    bytes[header..].chunks_exact_mut(4).for_each(|number| number.copy_from_slice(&3e38_f32.to_le_bytes()));
    std::fs::write(&model, bytes).unwrap();
    for args in [&["eval", "a", "--suite", "iid"][..], &["invent", "few", "--measure", "a", "--max", "1"]] {
        let said = place.refused(args, 1);
        assert!(said.contains("overflow"), "{args:?}: {said}");
    }
}

#[test]
fn a_run_whose_checkpoints_are_gone_is_not_begun_anew() {
    let place = place();
    train(&place, "a", &["save_every=100"]);
    train(&place, "b", &["suites=[]"]);
    let before = ["a", "b"].map(|run| files(&place.path(&format!("runs/{run}"))));
    for (run, words) in [("a", "eval.json judges"), ("b", "12 updates were made")] {
        let last = place.path(&format!("runs/{run}/last"));
        std::fs::remove_dir_all(&last).unwrap();
        let said = place.refused(&["train", "--resume", run, "--set", "max_steps=40"], 1);
        assert!(said.contains(words) && said.contains("last"), "{said}");
        assert!(!last.exists());
    }
    for (run, before) in ["a", "b"].iter().zip(before) {
        let now = files(&place.path(&format!("runs/{run}")));
        let without = before.into_iter().filter(|(path, _)| !path.starts_with("last"));
        assert!(without.eq(now), "{run}");
    }
}

/// The command line stands in a comment of `config.toml`.
#[test]
fn whatever_is_in_the_command_line_the_run_is_read() {
    let place = place();
    let name = "\u{1b}[31m \u{7f}\ttab";
    train(&place, name, &["suites=[]"]);
    place.ok(&["eval", name, "--suite", "iid", "--quiet"]);
    let runs = place.json(&["runs", "--json"]);
    assert_eq!((&runs["runs"][0]["model"], &runs["runs"][0]["run"]), (&"transformer".into(), &name.into()));
}

#[cfg(target_os = "linux")]
#[test]
fn an_answer_that_cannot_be_written_is_no_success() {
    let place = place();
    train(&place, "a", &["suites=[]"]);
    let full = || std::fs::File::options().write(true).open("/dev/full").unwrap();
    for args in [&["runs"][..], &["report", "a", "--csv"], &["sample", "a", "--n", "1"]] {
        let output = place.command(args).stdout(full()).output().unwrap();
        let errors = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{args:?}: {errors}");
        assert!(errors.contains("standard output"), "{args:?}: {errors}");
    }
}

#[test]
fn numbers_and_names_that_nobody_means_are_refused() {
    let place = place();
    train(&place, "a", &["suites=[]"]);
    for args in [
        &["sample", "a", "--beam", "0"][..],
        &["sample", "a", "--beam", "1000000"],
        &["sample", "a", "--beam", "2", "--length-penalty", "nan"],
        &["sample", "a", "--beam", "2", "--length-penalty", "1e308"],
        &["gen-data", "--config", "few.toml", "--threads", "99999"],
        &["gen-inference", "--threads", "99999"],
        &["train", "--config", "run.toml", "--name", "../b", "--dry-run"],
    ] {
        place.refused(args, 2);
    }
    let said = place.refused(&["gen-data", "--config", "few.toml", "--set", "name=\"../../b\""], 1);
    assert!(said.contains("a plain folder name"), "{said}");
    let far = ["train", "--config", "run.toml", "--dry-run", "--json", "--set", "max_steps=0", "--set"];
    place.json(&[&far[..], &["epochs=900000000000000000"]].concat());
    for (suite, words) in [("inference", "no inference tasks"), ("texts", ".txt")] {
        let said = place.refused(
            &["train", "--config", "run.toml", "--name", "c", "--set", &format!("suites=[\"{suite}\"]")],
            1,
        );
        assert!(said.contains(words), "{said}");
        assert!(!place.path("runs/c/metrics.jsonl").exists());
        assert!(place.refused(&["eval", "a", "--suite", suite], 1).contains(words));
    }
}

#[test]
fn an_lstm_says_that_it_is_one() {
    let place = place();
    train(&place, "a", &["model=\"lstm\"", "max_steps=2", "suites=[]"]);
    let text = std::fs::read_to_string(place.path("runs/a/config.json")).unwrap();
    let about: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(about["architectures"], serde_json::json!(["SymbolicLstm"]));
    assert_eq!((about["model_type"].as_str(), about["n_layers"].as_u64()), (Some("symbolic-lstm"), Some(2)));
    assert_eq!((about["d_model"].as_u64(), about.get("n_heads")), (Some(16), None));
}

#[test]
fn one_process_writes_in_a_run() {
    let place = place();
    let args = ["train", "--config", "run.toml", "--name", "a", "--set", "max_steps=1000000", "--quiet"];
    let mut child = place.command(&args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait_for(&place.path("runs/a/last/step-0000006.safetensors"), &mut child);
    for args in [&["train", "--resume", "a"][..], &["eval", "a"]] {
        let said = place.refused(args, 1);
        assert!(said.contains("another process") && said.contains("runs/a"), "{args:?}: {said}");
    }
    let runs = place.json(&["runs", "--json"]);
    assert_eq!(runs["runs"][0]["state"], "at work");
    // The lock dies with its process, however that ends.
    child.kill().unwrap();
    child.wait().unwrap();
    place.ok(&["eval", "a", "--quiet"]);
    let mut child = place
        .command(&["train", "--resume", "a", "--quiet"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // It is at work once it has updated further; until then the signal would end it unheard.
    let updates = || std::fs::read_to_string(place.path("runs/a/metrics.jsonl")).unwrap_or_default().len();
    let before = updates();
    wait_until("a further update", &mut child, || updates() > before);
    signal(&child, "-TERM");
    assert_eq!(child.wait().unwrap().code(), Some(143));
}

#[test]
fn one_process_writes_a_data_set_and_a_signal_ends_it_while_parts_are_merged() {
    let place = place();
    let args = |threads| {
        ["gen-data", "--config", "few.toml", "--set", "stream.train=150000", "--quiet", "--threads", threads]
    };
    for (name, status) in [("-INT", 130), ("-TERM", 143)] {
        let mut child =
            place.command(&args("2")).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        // The parts are drawn, and merged now.
        wait_for_merge(&place.path("data/few"), &mut child);
        let said = place.refused(&args("1"), 1);
        assert!(said.contains("another process"), "{said}");
        signal(&child, name);
        assert_eq!(child.wait().unwrap().code(), Some(status));
        assert!(!place.path("data/few/manifest.json").exists());
        // For the second signal the merge begins anew.
        unfinished(&place.path("data/few")).for_each(|path| std::fs::remove_file(path).unwrap());
    }
    place.ok(&args("2"));
    assert!(place.path("data/few/manifest.json").is_file());
}

/// `git`, which every run asks for its commit, says what environment the program gives to others.
#[cfg(unix)]
#[test]
fn candle_has_one_thread_unless_the_user_says_otherwise() {
    use std::os::unix::fs::PermissionsExt;
    let place = place();
    let (bin, seen) = (place.path("bin"), place.path("seen"));
    std::fs::create_dir_all(&bin).unwrap();
    let script = format!("#!/bin/sh\necho \"$CANDLE_NUM_THREADS\" > '{}'\n", seen.display());
    std::fs::write(bin.join("git"), script).unwrap();
    std::fs::set_permissions(bin.join("git"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    for (set, name) in [(None, "one"), (Some("3"), "three")] {
        let args = ["train", "--config", "run.toml", "--name", name, "--set", "max_steps=1", "--quiet"];
        let mut command = place.command(&args);
        command.env("PATH", &path).env_remove("CANDLE_NUM_THREADS");
        set.map(|n| command.env("CANDLE_NUM_THREADS", n));
        assert!(command.output().unwrap().status.success());
        assert_eq!(std::fs::read_to_string(&seen).unwrap().trim(), set.unwrap_or("1"));
    }
}

#[test]
fn a_run_can_begin_with_the_weights_of_another() {
    let place = place();
    train(&place, "a", &["suites=[]"]);
    for from in ["a", "runs/a/model.safetensors"] {
        let name = if from == "a" { "b" } else { "c" };
        train(&place, name, &[&format!("init_from={from}"), "suites=[]"]);
        let of = |run: &str, kind: &str| {
            metrics(&place.path(run)).into_iter().filter(|l| l["kind"] == kind).collect::<Vec<_>>()
        };
        let best = of("runs/a", "end")[0]["best"].clone();
        assert_eq!(of(&format!("runs/{name}"), "eval")[0]["nats_per_token"], best);
        assert!(of(&format!("runs/{name}"), "start")[0]["init"].is_string());
    }
    let weights = |run: &str| std::fs::read(place.path(run).join("model.safetensors")).unwrap();
    assert!(weights("runs/b") == weights("runs/c"));
    let said = place.refused(
        &["train", "--config", "run.toml", "--name", "d", "--set", "init_from=a", "--set", "d_model=8"],
        1,
    );
    assert!(said.contains("init_from") && said.contains("shape") && !place.path("runs/d").exists(), "{said}");
}

#[test]
fn runs_are_listed_with_their_state() {
    let place = place();
    assert!(place.ok(&["runs"]).contains("no run"));
    train(&place, "a", &[]);
    train(&place, "b", &["suites=[]", "max_steps=3"]);
    std::fs::remove_file(place.path("runs/b/eval.json")).unwrap();
    let runs = place.json(&["runs", "--json"])["runs"].clone();
    let told = |i: usize| {
        let r: &Value = &runs[i];
        (r["run"].as_str().unwrap(), r["state"].as_str().unwrap(), r["step"].as_u64().unwrap())
    };
    assert_eq!((told(0), told(1)), (("a", "judged", 12), ("b", "trained", 3)));
    assert!(
        runs[0]["best_validation_excess"].as_f64().unwrap() > 0.0
            && runs[0]["bytes"].as_u64().unwrap() > 1000
    );
    assert!(place.ok(&["runs"]).lines().count() == 3);
}

#[test]
fn commands_find_the_workspace_above() {
    let place = place();
    std::fs::write(place.path("Cargo.toml"), "[workspace]\n").unwrap();
    std::fs::create_dir_all(place.path("some/where")).unwrap();
    let in_folder = |args: &[&str]| {
        let output = place.command(args).current_dir(place.path("some/where")).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    in_folder(&["train", "--config", "run.toml", "--name", "a", "--set", "suites=[]", "--quiet"]);
    assert!(place.path("runs/a/report.html").is_file() && place.path("data/few/manifest.json").is_file());
    assert!(in_folder(&["sample", "a", "--n", "1", "--json"]).contains("\"items\""));
    assert_eq!(std::fs::read_dir(place.path("some/where")).unwrap().count(), 0);
}

#[test]
fn other_data_a_file_and_a_checkpoint_are_judged_beside_the_run() {
    let place = place();
    train(&place, "a", &[]);
    let own = std::fs::read(place.path("runs/a/eval.json")).unwrap();
    place.ok(&["gen-data", "--config", "few.toml", "--out", "data/other", "--set", "seed=5", "--quiet"]);
    let other = place.json(&["eval", "a", "--data", "other", "--json", "--quiet"]);
    let mine: Value = serde_json::from_slice(&own).unwrap();
    assert_ne!(other["data_digest"], mine["data_digest"]);
    assert_ne!(other["iid"]["nats_per_token"], mine["iid"]["nats_per_token"]);
    assert!(place.path("runs/a/eval-other.json").is_file());

    std::fs::write(place.path("three.txt"), "P0(x0)\n\n∀x0 P0(x0)\n").unwrap();
    let said = place.ok(&["eval", "a", "--data", "three.txt", "--quiet"]);
    assert!(said.starts_with("file: "), "{said}");
    std::fs::write(place.path("three.txt"), "P0(x0)\nP0(\n").unwrap();
    assert!(place.refused(&["eval", "a", "--data", "three.txt"], 1).contains("three.txt:2"));

    // The best weights are those of one of the two checkpoints.
    let of =
        |step: &str| place.json(&["eval", "a", "--checkpoint", step, "--json", "--quiet"])["iid"].clone();
    let (six, twelve) = (of("6"), of("12"));
    // Each says which weights it is about.
    let judged = |file: &str| -> Value {
        serde_json::from_slice(&std::fs::read(place.path("runs/a").join(file)).unwrap()).unwrap()
    };
    let digest = |file: &str| judged(file)["model_digest"].as_str().unwrap().to_owned();
    let digests = ["eval.json", "eval-step-6.json", "eval-step-12.json"].map(digest);
    assert!(digests[0] != digests[1] && digests[1] != digests[2] && digests[0] != digests[2], "{digests:?}");
    assert!(six != twelve && (six == mine["iid"] || twelve == mine["iid"]));
    let said = place.refused(&["eval", "a", "--checkpoint", "7"], 1);
    assert!(said.contains("there are: 12, 6"), "{said}");
    assert_eq!(std::fs::read(place.path("runs/a/eval.json")).unwrap(), own);

    // What was judged on data of the same name, or on a checkpoint, is no part of what is judged on others.
    place.ok(&["gen-data", "--config", "few.toml", "--out", "there/other", "--set", "seed=6", "--quiet"]);
    let there = place.json(&["eval", "a", "--data", "there/other", "--suite", "test", "--json", "--quiet"]);
    assert!(there["test"].is_object() && there["iid"].is_null(), "{there}");
    place.ok(&["gen-data", "--config", "few.toml", "--out", "data/step-6", "--set", "seed=7", "--quiet"]);
    let named = place.json(&["eval", "a", "--data", "step-6", "--suite", "test", "--json", "--quiet"]);
    assert!(named["iid"].is_null() && named["checkpoint"].is_null(), "{named}");
    place.ok(&["gen-data", "--config", "few.toml", "--out", "data/two.2", "--set", "seed=8", "--quiet"]);
    place.ok(&["eval", "a", "--data", "two.2", "--suite", "test", "--quiet"]);
    assert_eq!(judged("eval-two.2.json")["law"], mine["law"]);
}

#[test]
fn a_signal_in_evaluation_ends_at_once_and_the_run_goes_on_from_there() {
    let place = place();
    let ended = |name: &str| {
        let text = std::fs::read_to_string(place.path("runs").join(name).join("metrics.jsonl"));
        text.unwrap_or_default().contains("\"kind\":\"end\"")
    };
    // The evaluation is short, and the signal may come after it: then another run is tried.
    let stopped = (0..20).map(|n| format!("a{n}")).find(|name| {
        let args = ["train", "--config", "run.toml", "--name", name, "--quiet"];
        let mut child = place.command(&args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        while !ended(name) && child.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_millis(1));
        }
        if child.try_wait().unwrap().is_none() {
            signal(&child, "-TERM");
        }
        let code = child.wait().unwrap().code();
        assert!(matches!(code, Some(0 | 143)), "{code:?}");
        code == Some(143) && !place.path("runs").join(name).join("eval.json").exists()
    });
    assert!(stopped.is_some(), "no signal came in time");
    let name = stopped.unwrap();
    place.ok(&["train", "--resume", &name, "--quiet"]);
    assert!(ended(&name) && place.path("runs").join(&name).join("report.html").is_file());
}

/// `cargo` is a script here that says what it was called with.
#[cfg(unix)]
#[test]
fn the_slow_tests_have_one_command_and_their_last_run_stands_in_the_log() {
    use std::os::unix::fs::PermissionsExt;
    let place = place();
    let log = place.path("docs/results/LOG.md");
    std::fs::create_dir_all(log.parent().unwrap()).unwrap();
    let head =
        "# Log\n\n| date | what | number | what it showed |\n|---|---|---|---|\n| 2026-01-01 | a | b | c |\n";
    std::fs::write(&log, head).unwrap();
    let cargo = place.path("cargo");
    std::fs::write(&cargo, "#!/bin/sh\necho \"slow=$CALCULEMUS_SLOW $*\"\n[ \"$2\" != fail ]\n").unwrap();
    std::fs::set_permissions(&cargo, std::fs::Permissions::from_mode(0o755)).unwrap();
    let run = |args: &[&str]| {
        let mut command = place.command(args);
        let output = command.env("CARGO", &cargo).env_remove("CALCULEMUS_SLOW").output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    assert_eq!(run(&["test"]), (Some(0), "slow= test --workspace\n".to_owned()));
    assert_eq!(std::fs::read_to_string(&log).unwrap(), head);
    let whole = "slow=1 test --workspace --features=xtask/bench\n";
    assert_eq!(run(&["test", "--slow"]), (Some(0), whole.to_owned()));
    assert_eq!(run(&["test", "--slow", "--", "fail"]).0, Some(1));
    let text = std::fs::read_to_string(&log).unwrap();
    let rows: Vec<&str> = text.strip_prefix(head).unwrap().lines().collect();
    assert_eq!(rows.len(), 2);
    for (row, verdict) in rows.iter().zip(["all pass", "**not all pass**"]) {
        let cells: Vec<&str> = row.split(" | ").collect();
        assert_eq!(cells.len(), 4, "{row}");
        assert!(
            cells[0].starts_with("| 2") && cells[0].len() == 12 && cells[2].starts_with(verdict),
            "{row}"
        );
        assert!(cells[1].contains("xtask test --slow") && cells[3].contains("commit "), "{row}");
    }
}

#[test]
fn a_signal_while_training_makes_its_data_ends_it_and_leaves_no_run() {
    let place = place();
    std::fs::write(place.path("configs/data/few.toml"), DATA.replace("300", "150000")).unwrap();
    let args = ["train", "--config", "run.toml", "--name", "a", "--quiet"];
    let mut child = place.command(&args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait_for_merge(&place.path("data/few"), &mut child);
    signal(&child, "-INT");
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(!place.path("runs/a").exists() && !place.path("data/few/manifest.json").exists());
}
