use super::*;
use crate::signals::Stop;
use crate::transformer::config::Config;
use serde_json::json;

/// A data set of a few formulas in a folder of its own.
fn small_data(folder: &Path) {
    let text =
        "law = \"public\"\nsplit = \"stream\"\nstream = { train = 64, val = 16, test = 16 }\niid = 16\n";
    let mut config = fol::data::Config::read(text, &[]).unwrap();
    config.name = Some("small".to_owned());
    let cancelled = std::sync::atomic::AtomicBool::new(false);
    let watch = fol::data::Watch { progress: &|_, _| {}, cancelled: &cancelled };
    let options = fol::data::Options { shard: None, force: false };
    fol::data::generate(&config, folder, options, &watch).unwrap();
}

#[test]
fn a_sweep_runs_selects_skips_and_tabulates() {
    let root = tempfile::tempdir().unwrap();
    let data = root.path().join("small");
    small_data(&data);
    let base = format!(
        "data = '{}'\nd_model = 8\nn_layers = 1\nn_heads = 2\nd_ff = 16\nmax_steps = 3\nwarmup_steps = 1\nbatch = 8\n\
         log_every = 1\nsuites = [\"iid\"]\n",
        data.display()
    );
    std::fs::write(root.path().join("tiny.toml"), base).unwrap();
    let file = root.path().join("small-sweep.toml");
    let text = "base = \"tiny.toml\"\nseeds = [0, 1]\n[grid]\nposition = [\"none\", \"sinusoidal\"]\nlr = [1e-2, 1e-9]\n\
                [select]\nover = [\"lr\"]\nseeds = [101]\n";
    std::fs::write(&file, text).unwrap();
    let plan = plan::Draft::read(&file).unwrap().plan::<Config>().unwrap();
    let folder = root.path().join("runs/small-sweep");
    let stop = Stop::default();
    let how = jobs::How { at_once: 2, quiet: true, stop: &stop };
    let Swept::Done { document, page } = sweep(&plan, &folder, &how).unwrap() else { panic!("interrupted") };

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
    assert!(std::fs::read_to_string(page).unwrap().contains("position=sinusoidal"));

    // Everything is finished: the second time nothing is run, and every byte stays.
    let weights = folder.join("position=none/seed-0/model.safetensors");
    let before = std::fs::metadata(&weights).unwrap().modified().unwrap();
    // What a kill in the middle of a file leaves is removed.
    let torn = ["position=none/seed-0/report.htmlAbC.tmp", "table.csvAbC.tmp"].map(|name| folder.join(name));
    torn.iter().for_each(|path| std::fs::write(path, "half").unwrap());
    let again = sweep(&plan, &folder, &how).unwrap();
    assert!(torn.iter().all(|path| !path.exists()));
    assert!(matches!(again, Swept::Done { document: d, .. } if d == document));
    assert_eq!(std::fs::metadata(&weights).unwrap().modified().unwrap(), before);
    assert_eq!(std::fs::read_to_string(folder.join("table.csv")).unwrap(), csv);

    // A run that was cut short is made whole again, and one of another configuration is refused.
    std::fs::remove_file(folder.join("position=none/seed-0/eval.json")).unwrap();
    assert!(matches!(sweep(&plan, &folder, &how).unwrap(), Swept::Done { .. }));
    assert!(folder.join("position=none/seed-0/eval.json").is_file());
    let path = folder.join("position=none/seed-0/config.toml");
    let other = std::fs::read_to_string(&path).unwrap().replace("d_ff = 16", "d_ff = 24");
    std::fs::write(&path, other).unwrap();
    let refusal = format!("{:#}", sweep(&plan, &folder, &how).unwrap_err());
    assert!(refusal.contains("d_ff"), "{refusal}");
}
