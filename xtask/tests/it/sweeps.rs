//! A sweep through the command: what it chooses, writes, skips and refuses.

use serde_json::json;

use crate::common::Place;

const DATA: &str =
    "law = \"public\"\nsplit = \"stream\"\nstream = { train = 64, val = 16, test = 16 }\niid = 16\n";
const BASE: &str = "data = \"small\"\nd_model = 8\nn_layers = 1\nn_heads = 2\nd_ff = 16\nmax_steps = 3\n\
    warmup_steps = 1\nbatch = 8\nlog_every = 1\nsuites = [\"iid\"]\n";
const SWEEP: &str = "base = \"base.toml\"\nseeds = [0, 1]\n[grid]\nposition = [\"none\", \"sinusoidal\"]\n\
    lr = [1e-2, 1e-9]\n[select]\nover = [\"lr\"]\nseeds = [101]\n";

#[test]
fn a_sweep_runs_selects_skips_and_tabulates() {
    let place = Place::new(&[("base.toml", BASE), ("data/small.toml", DATA), ("two.toml", SWEEP)]);
    let folder = place.path("runs/two");
    let args = ["sweep", "--config", "two.toml", "--jobs", "2", "--quiet", "--json"];
    // What it will cost is said first, and nothing is written.
    let forecast = || place.json(&["sweep", "--config", "two.toml", "--dry-run", "--json"]);
    let before = forecast();
    assert!(!place.path("runs").exists() && !place.path("data").join("small").exists());
    assert_eq!((before["runs"].as_f64(), before["runs_left"].as_f64()), (Some(8.0), Some(8.0)));
    let rows = before["points"].as_array().unwrap();
    assert_eq!(
        rows.iter().map(|row| row["chooses"] == true).collect::<Vec<_>>(),
        [true, true, true, true, false, false]
    );
    for row in rows {
        assert!(row["seconds"].as_f64().unwrap() > 0.0 && row["per_second"].as_f64().unwrap() > 0.0);
    }
    let said = place.ok(&["sweep", "--config", "two.toml", "--dry-run", "--jobs", "2"]);
    assert!(said.contains("to choose: lr=0.01") && said.contains("8 runs to make"), "{said}");
    let document = place.json(&args);

    // A learning rate of next to nothing is never chosen.
    let points = document["points"].as_array().unwrap();
    assert_eq!(points.len(), 2);
    for point in points {
        assert_eq!(point["selected"], json!({"lr": 0.01}));
        assert_eq!(point["runs"], 2);
        assert!(point["excess"]["half_width"].as_f64().unwrap() > 0.0);
        assert!(point["parsed"]["mean"].is_null());
    }
    for name in ["table.csv", "table.json", "table.md", "excess.svg", "kl.svg", "top1_ratio.svg"] {
        assert!(folder.join(name).is_file(), "{name}");
    }
    let csv = std::fs::read_to_string(folder.join("table.csv")).unwrap();
    assert_eq!(csv.lines().count(), 5, "a row a run\n{csv}");
    assert!(std::fs::read_to_string(folder.join("report.html")).unwrap().contains("position=sinusoidal"));

    let after = forecast();
    assert_eq!((after["runs"].as_f64(), after["runs_left"].as_f64()), (Some(8.0), Some(0.0)));
    assert_eq!(after["seconds_left"], 0.0);

    // Everything is finished: the second time nothing is run, and every byte stays.
    let weights = folder.join("position=none/seed-0/model.safetensors");
    let before = std::fs::metadata(&weights).unwrap().modified().unwrap();
    // What a kill in the middle of a file leaves is removed.
    let torn = ["position=none/seed-0/report.htmlAbC.tmp", "table.csvAbC.tmp"].map(|name| folder.join(name));
    torn.iter().for_each(|path| std::fs::write(path, "half").unwrap());
    assert_eq!(place.json(&args), document);
    assert!(torn.iter().all(|path| !path.exists()));
    assert_eq!(std::fs::metadata(&weights).unwrap().modified().unwrap(), before);
    assert_eq!(std::fs::read_to_string(folder.join("table.csv")).unwrap(), csv);

    // A run that was cut short is made whole again, and one of another configuration is refused.
    std::fs::remove_file(folder.join("position=none/seed-0/eval.json")).unwrap();
    place.ok(&args);
    assert!(folder.join("position=none/seed-0/eval.json").is_file());
    let path = folder.join("position=none/seed-0/config.toml");
    let other = std::fs::read_to_string(&path).unwrap().replace("d_ff = 16", "d_ff = 24");
    std::fs::write(&path, other).unwrap();
    let refusal = place.refused(&args, 1);
    assert!(refusal.contains("d_ff"), "{refusal}");
}

#[test]
fn a_run_is_no_sweep_and_a_sweep_no_run() {
    let place = Place::new(&[("base.toml", BASE), ("two.toml", SWEEP)]);
    let refusal = place.refused(&["sweep", "--config", "base.toml"], 1);
    assert!(refusal.contains("base.toml: no key `base`"), "{refusal}");
    let refusal = place.refused(&["train", "--config", "two.toml"], 1);
    assert!(refusal.contains("two.toml:1:1: a sweep, which `sweep` runs"), "{refusal}");
    let refusal = place.refused(&["train", "--config", "/"], 1);
    assert!(refusal.contains("error: / is no file; in configs there are: base.toml, two.toml"), "{refusal}");
}

#[test]
fn data_that_were_made_anew_are_not_averaged_with_the_old_ones() {
    let sweep = "base = \"base.toml\"\nseeds = [0, 1]\n[[case]]\nlr = 1e-2\n";
    let place = Place::new(&[("base.toml", BASE), ("data/small.toml", DATA), ("one.toml", sweep)]);
    place.ok(&["sweep", "--config", "one.toml", "--quiet"]);
    std::fs::remove_dir_all(place.path("data/small")).unwrap();
    std::fs::write(place.path("configs/data/small.toml"), format!("seed = 9\n{DATA}")).unwrap();
    std::fs::write(place.path("configs/one.toml"), sweep.replace("[0, 1]", "[0, 1, 2]")).unwrap();
    let said = place.refused(&["sweep", "--config", "one.toml", "--quiet"], 1);
    assert!(said.contains("seed-2: the data set small has the digest") && said.contains("seed-0"), "{said}");
    // With those of the old data out of the way it is one table.
    for seed in ["seed-0", "seed-1"] {
        std::fs::remove_dir_all(place.path("runs/one/lr=0.01").join(seed)).unwrap();
    }
    place.ok(&["sweep", "--config", "one.toml", "--quiet"]);
}

#[test]
fn a_run_that_fails_ends_no_other() {
    let sweep = "base = \"base.toml\"\nseeds = [0, 1]\n[grid]\nlr = [1e38, 1e-2]\n[[override]]\n\
        set = { max_steps = 40, clip = 0.0 }\n";
    let place = Place::new(&[("base.toml", BASE), ("data/small.toml", DATA), ("bad.toml", sweep)]);
    let said = place.refused(&["sweep", "--config", "bad.toml", "--quiet"], 1);
    assert!(said.contains("seed-0") && said.contains("seed-1") && said.contains("smaller `lr`"), "{said}");
    for seed in ["seed-0", "seed-1"] {
        assert!(place.path("runs/bad/lr=0.01").join(seed).join("eval.json").is_file(), "{seed}");
    }
}
