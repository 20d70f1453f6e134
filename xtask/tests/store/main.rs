//! Data that lie under a URL, by the commands: sets and parts put there, joined from there, trained on from there.

#![expect(clippy::unwrap_used, reason = "a test stops at what should not be")]

#[expect(dead_code, reason = "the suite `it` uses the rest")]
#[path = "../it/common.rs"]
mod common;

use std::net::TcpListener;
use std::process::Stdio;
use std::time::{Duration, Instant};

use common::{Place, files};

const RUN: &str = "suites = []\nd_model = 16\nn_layers = 1\nn_heads = 2\nd_ff = 32\nmax_steps = 6\nbatch = 16\n\
    eval_every = 3\nmax_len = 200\nthreads = 1\n";
const DATA: &str =
    "law = \"public\"\nstream = { train = 300, val = 40, test = 40 }\niid = 40\nname = \"few\"\n";

fn place() -> Place {
    Place::new(&[("run.toml", RUN), ("data/few.toml", DATA)])
}

fn url(place: &Place, folder: &str) -> String {
    format!("file://{}", place.path(folder).display())
}

#[test]
fn parts_that_machines_put_are_joined_from_there() {
    let place = place();
    let make = ["gen-data", "--config", "few.toml", "--quiet", "--out"];
    let with = |rest: &[&str]| [&make[..], rest].concat().into_iter().map(str::to_owned).collect::<Vec<_>>();
    let ok = |rest: &[&str]| {
        let args = with(rest);
        place.ok(&args.iter().map(String::as_str).collect::<Vec<_>>())
    };
    let refused = |rest: &[&str], status| {
        let args = with(rest);
        place.refused(&args.iter().map(String::as_str).collect::<Vec<_>>(), status)
    };
    let store = url(&place, "store/few");
    ok(&["whole"]);
    // The last machine is missing.
    ok(&["m0", "--shard", "0/3", "--to", &store]);
    ok(&["m1", "--shard", "1/3", "--to", &store]);
    let missing = refused(&["joined", "--join", "--from", &store], 1);
    assert!(missing.contains("of 3 shards these are missing: 2"), "{missing}");
    // Its part comes from its folder, the others from the store.
    ok(&["m2", "--shard", "2/3"]);
    ok(&["near", "--join", "m2", "--from", &store]);
    // Again, and from the store alone; what was fetched is gone when it is joined.
    ok(&["m2", "--shard", "2/3", "--to", &store]);
    let names: Vec<_> = files(&place.path("store/few")).into_keys().collect();
    assert_eq!(
        names,
        ["parts/0-of-3.part", "parts/1-of-3.part", "parts/2-of-3.part"].map(std::path::PathBuf::from)
    );
    ok(&["joined", "--join", "--from", &store]);
    for made in ["near", "joined"] {
        assert!(files(&place.path("whole")) == files(&place.path(made)), "{made}");
    }
    // What is made asks nobody.
    std::fs::remove_dir_all(place.path("store")).unwrap();
    ok(&["joined", "--join", "--from", &store]);
    assert!(refused(&["other", "--join", "--from", &store], 1).contains("no such folder"));
    assert!(refused(&["other", "--join"], 2).contains("--from URL"));
    refused(&["other", "--from", &store], 2);
}

#[test]
fn a_set_at_a_url_is_fetched_once_verified_and_trained_on() {
    let place = place();
    let (store, set) = (url(&place, "store/few"), format!("data={}", url(&place, "store/few")));
    place.ok(&["gen-data", "--config", "few.toml", "--out", "few", "--to", &store, "--quiet"]);
    assert!(files(&place.path("few")) == files(&place.path("store/few")));
    let dry = ["train", "--config", "run.toml", "--set", &set, "--dry-run"];
    assert!(place.refused(&dry, 1).contains("cargo xtask get"));
    let train = |name: &'static str, set: &str| {
        let args = ["train", "--config", "run.toml", "--quiet", "--name", name, "--set", set];
        args.map(str::to_owned)
    };
    let run = |name, set: &str| place.ok(&train(name, set).each_ref().map(String::as_str));
    run("far", &set);
    run("near", "data=few");
    // The metrics name the configuration, which says where the data are.
    let weights = |run: &str| std::fs::read(place.path(run).join("model.safetensors")).unwrap();
    assert!(weights("runs/far") == weights("runs/near"));
    let cache = place.path("data/remote/_file").join(place.path("store/few").strip_prefix("/").unwrap());
    assert!(files(&cache) == files(&place.path("few")));
    // Once: the store is not asked again.
    std::fs::remove_dir_all(place.path("store")).unwrap();
    run("again", &set);
    place.same_result("runs/far", "runs/again");
    place.ok(&["eval", "far", "--suite", "iid"]);
    place.ok(&dry);
    // What is kept here is verified like any other set.
    let file = std::fs::read_dir(&cache)
        .unwrap()
        .map(|e| e.unwrap().path())
        .find(|p| p.ends_with("train-00000.tok"));
    let file = file.unwrap_or_else(|| cache.join("train.tok"));
    let mut bytes = std::fs::read(&file).unwrap();
    bytes[100] ^= 1;
    std::fs::write(&file, bytes).unwrap();
    let refused = place.refused(&train("bad", &set).each_ref().map(String::as_str), 1);
    assert!(refused.contains("is not the file of the manifest"), "{refused}");
}

#[test]
fn folders_are_put_and_fetched() {
    let place = place();
    place.ok(&["gen-data", "--config", "few.toml", "--out", "few", "--quiet"]);
    let store = url(&place, "store/x");
    let files_of = |document: serde_json::Value| (document["files"].as_u64(), document["there"].as_u64());
    let n = files(&place.path("few")).len() as u64;
    assert_eq!(files_of(place.json(&["put", "few", &store, "--json"])), (Some(n), Some(0)));
    assert_eq!(files_of(place.json(&["put", "few", &store, "--json"])), (Some(n), Some(n)));
    assert_eq!(files_of(place.json(&["get", &store, "back", "--json", "--quiet"])), (Some(n), Some(0)));
    assert!(files(&place.path("few")) == files(&place.path("back")));
    assert!(place.refused(&["get", &url(&place, "none"), "x"], 1).contains("no such folder"));
    assert!(place.refused(&["put", "none", &store], 1).contains("none"));
    assert!(place.refused(&["get", "gs://b/p", "x"], 1).contains("gs is no scheme"));
}

#[test]
fn a_host_that_says_nothing_is_named_in_time() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let place = place();
    let clock = Instant::now();
    let output = place
        .command(&["get", "s3://sets/few", "few", "--patience", "2"])
        .env("AWS_ENDPOINT", format!("http://{}", silent.local_addr().unwrap()))
        .env("AWS_ALLOW_HTTP", "true")
        .env("AWS_ACCESS_KEY_ID", "who")
        .env("AWS_SECRET_ACCESS_KEY", "the-secret-of-the-test")
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert!(errors.contains("s3://sets/few: listing") && !errors.contains("the-secret"), "{errors}");
    assert!(clock.elapsed() < Duration::from_secs(10), "{:?}", clock.elapsed());
}

const SWEEP: &str = "base = \"run.toml\"\nseeds = [0, 1]\n[grid]\nposition = [\"none\", \"sinusoidal\"]\n\
    [[override]]\n[override.set]\ndata = \"few\"\nmax_steps = 60\nsave_every = 1\n";

/// A machine of its own, with nothing but the configurations.
fn machine() -> Place {
    Place::new(&[("run.toml", RUN), ("data/few.toml", DATA), ("two.toml", SWEEP)])
}

/// The table without what depends on clocks.
fn table(place: &Place) -> Vec<String> {
    let text = std::fs::read_to_string(place.path("runs/two/table.csv")).unwrap();
    let mut lines = text.lines().map(|l| l.split(',').collect::<Vec<&str>>());
    let timed: Vec<bool> = lines.next().unwrap().iter().map(|name| name.contains("second")).collect();
    lines
        .map(|cells| {
            let kept = cells.into_iter().zip(&timed).filter(|(_, timed)| !**timed).map(|(cell, _)| cell);
            kept.collect::<Vec<_>>().join(",")
        })
        .collect()
}

/// Three machines that share nothing but what lies under a URL. One of them is killed, one is stopped by a signal and its work
/// goes on elsewhere; the others have the table of one machine, and so has one that comes when all is done.
#[test]
fn workers_that_share_a_url_make_the_table_of_one_machine() {
    let whole = machine();
    whole.ok(&["sweep", "--config", "two.toml", "--quiet"]);
    let shared = tempfile::tempdir().unwrap();
    let url = format!("file://{}/runs of all", shared.path().display()).replace(' ', "%20");
    let machines: Vec<Place> = (0..4).map(|_| machine()).collect();
    let start = |place: &Place| {
        let args = ["sweep", "--config", "two.toml", "--worker", "--lease", "3", "--at", &url, "--quiet"];
        place.command(&args).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let mut workers: Vec<_> = machines.iter().take(3).map(start).collect();
    let trains = |place: &Place| {
        ["none", "sinusoidal"].iter().any(|p| {
            [0, 1].iter().any(|s| {
                let last = place.path(&format!("runs/two/position={p}/seed-{s}/last"));
                std::fs::read_dir(last).is_ok_and(|mut files| files.next().is_some())
            })
        })
    };
    let clock = Instant::now();
    while !(trains(&machines[0]) && trains(&machines[1])) {
        assert!(clock.elapsed() < Duration::from_secs(300), "they never come");
        std::thread::sleep(Duration::from_millis(2));
    }
    let told = |worker: &std::process::Child, signal: &str| {
        std::process::Command::new("kill").args([signal, &worker.id().to_string()]).status().unwrap()
    };
    told(&workers[0], "-KILL");
    told(&workers[1], "-TERM");
    let (killed, stopped) = (workers.remove(0), workers.remove(0));
    killed.wait_with_output().unwrap();
    let stopped = stopped.wait_with_output().unwrap();
    // It may have been between two points, or done.
    assert!(matches!(stopped.status.code(), Some(143 | 0)), "{stopped:?}");
    for worker in workers {
        let output = worker.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    // The last machine draws nothing: it fetches what all have done.
    let output = start(&machines[3]).wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    for place in &machines[2..] {
        assert_eq!(table(&whole), table(place));
        for (position, seed) in [("none", 0), ("none", 1), ("sinusoidal", 0), ("sinusoidal", 1)] {
            let run = format!("runs/two/position={position}/seed-{seed}");
            let weights = |place: &Place| std::fs::read(place.path(&run).join("model.safetensors")).unwrap();
            assert!(weights(&whole) == weights(place), "{run}");
            assert_eq!(common::metrics(&whole.path(&run)), common::metrics(&place.path(&run)), "{run}");
        }
    }
    // A build can say where; a sweep that is not one of several workers cannot.
    let refused = machines[3].refused(&["sweep", "--config", "two.toml", "--at", &url], 2);
    assert!(refused.contains("--worker"), "{refused}");
    let refused = machines[3].refused(&["sweep", "--config", "two.toml", "--worker", "--at", "gs://b/p"], 1);
    assert!(refused.contains("gs is no scheme"), "{refused}");
}
