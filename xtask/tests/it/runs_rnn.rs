//! Recurrent runs as a user has them: repeated, stopped and resumed, diverged, swept, refused.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use crate::common::{Place, fields_are_documented, metrics};
use serde_json::Value;

const RUN: &str = "kind = \"rnn\"\ntask = \"parity\"\nmin_length = 1\nmax_length = 6\ncell = \"gru\"\nhidden = 4\n\
    readout = 0\nupdates = 120\nbatch = 16\nlr = 1e-2\neval_every = 50\nsave_every = 40\neval_lengths = [6, 12]\n\
    eval_sequences = 20\n";

/// Everything that `RUN` has, on a tape, with the authors' optimiser and loss.
const TAPE: &str = "kind = \"rnn\"\ntask = \"repeat-copy\"\nmin_length = 3\nmax_length = 6\ncell = \"pattern-ntm\"\n\
    hidden = 5\naddresses = 7\ncontent = 3\npattern_addresses = 4\nupdates = 60\nbatch = 40\noptimizer = \"rmsprop\"\n\
    lr = 1e-3\nclip = 0\nloss = \"authors\"\ncurriculum = \"linear\"\neval_every = 25\nsave_every = 1000\n\
    eval_sequences = 8\n";

fn place() -> Place {
    Place::new(&[("run.toml", RUN), ("tape.toml", TAPE)])
}

/// `eval.json` without what depends on the clock.
fn evaluation(run: &Path) -> Value {
    let text = std::fs::read_to_string(run.join("eval.json")).unwrap();
    let mut document: Value = serde_json::from_str(&text).unwrap();
    for field in ["seconds", "steps_per_second"] {
        assert!(document.as_object_mut().unwrap().remove(field).is_some());
    }
    document
}

/// The names and bytes of the checkpoints.
fn checkpoints(run: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found: Vec<_> = std::fs::read_dir(run.join("last"))
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| (entry.file_name().into_string().unwrap(), std::fs::read(entry.path()).unwrap()))
        .collect();
    found.sort();
    found
}

/// Everything that two runs leave behind is equal, but clocks and names.
fn same(place: &Place, a: &str, b: &str) {
    place.same_result(a, b);
    let (a, b) = (place.path(a), place.path(b));
    assert_eq!(evaluation(&a), evaluation(&b));
    assert_eq!(std::fs::read(a.join("config.json")).unwrap(), std::fs::read(b.join("config.json")).unwrap());
    assert_eq!(checkpoints(&a).last(), checkpoints(&b).last());
}

#[test]
fn one_command_from_nothing_to_a_report() {
    let place = place();
    let document = place.json(&["train", "--config", "run.toml", "--name", "a", "--json", "--quiet"]);
    assert_eq!(
        (document["updates"].as_u64(), document["eval"]["status"].as_str()),
        (Some(120), Some("done"))
    );
    let run = place.path("runs/a");
    for file in
        ["config.toml", "config.json", "model.safetensors", "metrics.jsonl", "eval.json", "report.html"]
    {
        assert!(run.join(file).is_file(), "{file}");
    }
    fields_are_documented(&run);
    let eval = evaluation(&run);
    for (key, value) in [
        ("task", "parity".into()),
        ("cell", "gru".into()),
        ("order", "literal".into()),
        ("seed", Value::from(0)),
    ] {
        assert_eq!(eval[key], value);
    }
    // 3(H² + Hi + H) + H and o(H + 1)
    assert_eq!(eval["total_params"], 3 * (16 + 8 + 4) + 4 + 2 * 5);
    let lengths: Vec<&Value> = eval["lengths"].as_array().unwrap().iter().map(|l| &l["length"]).collect();
    assert_eq!(lengths, [6, 12]);
    let evals: Vec<Value> = metrics(&run).into_iter().filter(|line| line["kind"] == "eval").collect();
    assert_eq!(
        evals.iter().map(|line| line["step"].as_u64().unwrap()).collect::<Vec<_>>(),
        [0, 50, 100, 120]
    );
    let best =
        evals.iter().min_by(|a, b| a["loss"].as_f64().unwrap().total_cmp(&b["loss"].as_f64().unwrap()));
    assert_eq!(eval["best_update"], best.unwrap()["step"]);

    // Judged once more, it is the same; the page is written again; a finished run is left alone.
    let before = evaluation(&run);
    place.json(&["eval", "a", "--json", "--quiet"]);
    assert_eq!(evaluation(&run), before);
    assert!(place.json(&["report", "a", "--json"])["report"].as_str().unwrap().ends_with("report.html"));
    let files = checkpoints(&run);
    place.ok(&["train", "--resume", "a", "--quiet"]);
    assert_eq!((checkpoints(&run), evaluation(&run)), (files, before.clone()));

    // A resumed run may be tested at other lengths, and may not be another run.
    let further = place.json(&["eval", "a", "--length", "40", "--length", "12", "--json", "--quiet"]);
    let lengths: Vec<&Value> = further["lengths"].as_array().unwrap().iter().map(|l| &l["length"]).collect();
    assert_eq!(lengths, [6, 12, 40]);
    assert_eq!(further["lengths"][0], before["lengths"][0]);
    place.refused(&["eval", "a", "--length", "0", "--quiet"], 1);
    place.ok(&["train", "--resume", "a", "--quiet", "--set", "eval_lengths=[3]"]);
    assert_eq!(evaluation(&run)["lengths"][0]["length"], 3);
    let errors = place.refused(&["train", "--resume", "a", "--set", "hidden=5"], 1);
    assert!(errors.contains("`hidden` is 4 in the run and 5 now"), "{errors}");
    let errors = place.refused(&["train", "--config", "run.toml", "--name", "a"], 1);
    assert!(errors.contains("--resume a"), "{errors}");

    // What only a transformer has is refused.
    for (args, status) in [
        (&["sample", "a"][..], 1),
        (&["export", "a", "--format", "hf"], 1),
        (&["eval", "a", "--suite", "iid"], 2),
    ] {
        let errors = place.refused(args, status);
        assert!(errors.contains("rnn") || errors.contains("recurrent"), "{errors}");
    }
}

#[test]
fn seeds_repeat_and_threads_change_nothing() {
    let place = place();
    for config in ["run.toml", "tape.toml"] {
        let train = |name: &str, threads: &str| {
            place.ok(&["train", "--config", config, "--name", name, "--quiet", "--set", threads]);
        };
        let [one, again, two] = ["one", "again", "two"].map(|name| format!("{config}-{name}"));
        train(&one, "threads=1");
        train(&again, "threads=1");
        train(&two, "threads=2");
        same(&place, &format!("runs/{one}"), &format!("runs/{again}"));
        same(&place, &format!("runs/{one}"), &format!("runs/{two}"));
    }
    place.ok(&["train", "--config", "run.toml", "--name", "other", "--quiet", "--set", "seed=1"]);
    assert_ne!(metrics(&place.path("runs/other")), metrics(&place.path("runs/run.toml-one")));
}

/// Starts a command, interrupts it when `file` is written, and waits; whether it was caught.
fn interrupted(place: &Place, args: &[&str], file: &Path) -> bool {
    let written = || std::fs::metadata(file).and_then(|about| about.modified()).ok();
    let before = written();
    let mut child = place.command(args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    while written() == before && child.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_millis(2));
    }
    std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    let status = child.wait().unwrap().code();
    assert!(matches!(status, Some(0 | 130)), "{status:?}");
    status == Some(130)
}

#[test]
fn a_resumed_run_is_the_unbroken_one() {
    let place = place();
    for (config, updates) in [("run.toml", "updates=6000"), ("tape.toml", "updates=600")] {
        let whole = format!("{config}-whole");
        let sets = ["--set", updates, "--set", "eval_every=300", "--quiet"];
        place.ok(&[&["train", "--config", config, "--name", &whole], &sets[..]].concat());
        let caught = (0..20).any(|attempt| {
            let name = format!("{config}-{attempt}");
            let run = place.path("runs").join(&name);
            // The best model is there before the first update.
            let start = [&["train", "--config", config, "--name", &name], &sets[..]].concat();
            if !interrupted(&place, &start, &run.join("model.safetensors")) {
                return false;
            }
            // Each attempt to go on is stopped too, at once, until the run is at its end.
            let go_on = ["train", "--resume", &name, "--quiet"];
            for _ in 0..3 {
                interrupted(&place, &go_on, &run.join("config.toml"));
            }
            place.ok(&go_on);
            same(&place, &format!("runs/{whole}"), &format!("runs/{name}"));
            true
        });
        assert!(caught, "the run is never caught");
    }
}

#[test]
fn a_diverged_run_ends_with_a_model() {
    let place = place();
    let sets = ["cell=\"elman\"", "lr=1e6", "clip=0", "min_length=20", "max_length=20", "save_every=1"];
    let mut args = vec!["train", "--config", "run.toml", "--name", "a", "--json", "--quiet"];
    args.extend(sets.iter().flat_map(|set| ["--set", *set]));
    let output = place.command(&args).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(String::from_utf8_lossy(&output.stderr).contains("diverged"));
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["eval"]["status"], "diverged");
    let run = place.path("runs/a");
    assert_eq!(evaluation(&run)["status"], "diverged");
    fields_are_documented(&run);
    let skipped = metrics(&run).iter().filter(|line| line["event"] == "skipped_update").count();
    assert!(skipped >= 10, "{skipped}");
    // The model and the checkpoint can be used: it is judged, and goes on to the same end.
    assert_eq!(place.json(&["eval", "a", "--json", "--quiet"])["status"], "diverged");
    assert!(!checkpoints(&run).is_empty());
    place.refused(&["train", "--resume", "a", "--quiet"], 1);
    assert_eq!(evaluation(&run)["status"], "diverged");
}

#[test]
fn a_run_that_diverges_before_any_validation_is_judged_as_the_worst() {
    let place = place();
    // High powers of what relu lets through, 300 times: no validation is a number, so there is no model.
    let config = "base = \"run.toml\"\nseeds = [0]\n[grid]\nlr = [1.0, 0.01]\n[select]\nover = [\"lr\"]\nseeds = [101]\n\
                  [[case]]\nname = \"squares\"\n[[override]]\n[override.set]\ntask = \"s3\"\ncell = \"ll\"\n\
                  preset = \"paper\"\nv_init = \"identity\"\nlambda = [20, 30]\nhidden = 8\naux = 10\nmin_length = 300\nmax_length = 300\n\
                  eval_lengths = [300]\n";
    std::fs::write(place.path("squares.toml"), config).unwrap();
    place.ok(&["sweep", "--config", "squares.toml"]);
    let table = std::fs::read_to_string(place.path("runs/squares/table.csv")).unwrap();
    assert!(table.contains("diverged"), "{table}");
    let verdict = std::fs::read_to_string(place.path("runs/squares/table.md")).unwrap();
    assert!(verdict.contains("0.0000 (0.0000)"), "{verdict}");
    let runs = walk(&place.path("runs/squares"));
    let judged: Vec<&PathBuf> = runs.iter().filter(|path| path.ends_with("eval.json")).collect();
    assert_eq!(judged.len(), 3);
    for eval in judged {
        let folder = eval.parent().unwrap();
        assert_eq!(evaluation(folder)["status"], "diverged");
        assert!(!folder.join("model.safetensors").is_file(), "{}", folder.display());
        let why = place.refused(&["eval", folder.to_str().unwrap()], 1);
        assert!(why.contains("diverged before any validation"), "{why}");
    }
    // All of it is there: nothing is done twice.
    place.ok(&["sweep", "--config", "squares.toml"]);
}

/// All files below a folder.
fn walk(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(walk(&path)) } else { found.push(path) }
    }
    found
}

#[test]
fn damaged_files_are_refused_or_passed_over() {
    let place = place();
    place.ok(&["train", "--config", "run.toml", "--name", "a", "--quiet"]);
    let run = place.path("runs/a");
    let metrics_path = run.join("metrics.jsonl");
    let lines = std::fs::read_to_string(&metrics_path).unwrap();
    for damage in ["", "{\"kind\":\"upd", "\u{0}\u{1}\n", "[1, 2]\n", "{\"kind\":3,\"step\":\"x\"}\n"] {
        std::fs::write(&metrics_path, lines.clone() + damage).unwrap();
        place.ok(&["report", "a"]);
        place.ok(&["eval", "a", "--quiet"]);
    }
    std::fs::write(&metrics_path, [0xff, 0xfe, b'\n']).unwrap();
    place.refused(&["report", "a"], 1);
    std::fs::write(&metrics_path, &lines).unwrap();

    let (newest, bytes) = checkpoints(&run).pop().unwrap();
    let path = run.join("last").join(&newest);
    let mut flipped = bytes.clone();
    *flipped.last_mut().unwrap() ^= 1;
    for damaged in [&bytes[..bytes.len() / 2], &[], b"{}", &flipped] {
        std::fs::write(&path, damaged).unwrap();
        let errors = place.refused(&["train", "--resume", "a", "--quiet"], 1);
        assert!(errors.contains(&newest) && errors.contains("is intact"), "{errors}");
    }
    // Without the damaged file it goes on from the older one, to the same end.
    std::fs::remove_file(&path).unwrap();
    place.ok(&["train", "--resume", "a", "--quiet"]);
    assert_eq!(checkpoints(&run).pop(), Some((newest, bytes)));

    for (file, damaged) in
        [("model.safetensors", "x"), ("eval.json", "{"), ("config.toml", "kind = \"rnn\"\nxx = 1")]
    {
        let good = std::fs::read(run.join(file)).unwrap();
        std::fs::write(run.join(file), damaged).unwrap();
        let errors = place.refused(&["eval", "a", "--quiet"], 1);
        assert!(errors.contains(file), "{errors}");
        std::fs::write(run.join(file), good).unwrap();
    }
    std::fs::remove_file(run.join("model.safetensors")).unwrap();
    place.refused(&["eval", "a", "--quiet"], 1);
}

#[test]
fn a_wrong_configuration_is_refused_where_it_is_wrong() {
    let place = place();
    let with = |name: &str, text: &str| std::fs::write(place.path("configs").join(name), text).unwrap();
    let train = |name: &str| place.refused(&["train", "--config", name, "--quiet"], 1);
    with("a.toml", &format!("{RUN}\nlearning_rate = 3\n"));
    assert!(train("a.toml").contains("a.toml:16:1: unknown key \"learning_rate\"; did you mean \"lr\"?"));
    with("a.toml", &RUN.replace("updates = 120", "updates = \"many\""));
    assert!(train("a.toml").contains("a.toml:8:1: updates: invalid type"));
    with("a.toml", "kind = \"rnn\"\ntask = \n");
    assert!(train("a.toml").contains("a.toml:2:"));
    with("a.toml", "kind = \"rmm\"\n");
    assert!(train("a.toml").contains("a.toml:1:1: kind = \"rmm\""));
    with("a.toml", "kind = \"rnn\"\n");
    let missing = train("a.toml");
    for key in ["task", "cell", "hidden", "min_length", "max_length", "updates"] {
        assert!(missing.contains(&format!("missing key \"{key}\"")), "{missing}");
    }
    for (set, part) in [
        ("lrr=3", "--set lrr=3: unknown key \"lrr\"; did you mean \"lr\"?"),
        ("lr=abc", "--set lr=abc: lr: invalid type"),
        ("lr=-1", "lr is -1.0"),
        ("lr=nan", "lr"),
        ("cell=gruu", "there is no cell `gruu`; did you mean \"gru\"?"),
        ("task=pairity", "there is no task \"pairity\"; did you mean \"parity\"?"),
        ("optimizer=adam", "\"adamw\""),
        ("hidden=auto", "needs `budget`"),
        ("hidden=-3", "a number that is not negative, or a word"),
        ("hidden=0", "`hidden` is 0"),
        ("hidden=99999999", "too large"),
        ("hidden=1000000", "at most"),
        ("batch=0", "batch = 0"),
        ("batch=99999999999", "too large"),
        ("updates=0", "missing key \"updates\""),
        ("threads=2000", "threads = 2000"),
        ("min_length=9", "min_length = 9"),
        ("eval_lengths=[0]", "eval_lengths: 0"),
        ("eval_lengths=[99999999999]", "eval_lengths: 99999999999"),
        ("split=enumerate", "min_length = max_length"),
        ("lambda=[1]", "`lambda` is not an option of the cell `gru`"),
        ("kind=rmm", "unknown variant `rmm`"),
        ("seed", "say --set key=value"),
    ] {
        let errors = place.refused(&["train", "--config", "run.toml", "--quiet", "--set", set], 1);
        assert!(errors.contains(part), "{set}: {errors}");
    }
    let errors = place.refused(&["train", "--config", "tape.toml", "--set", "eval_lengths=[1]"], 1);
    assert!(errors.contains("from 2"), "{errors}");
    for device in ["cuda", "metal", "tpu"] {
        let built =
            device == "cuda" && cfg!(feature = "cuda") || device == "metal" && cfg!(feature = "metal");
        if !built {
            let errors = place.refused(&["train", "--config", "run.toml", "--device", device], 2);
            assert!(errors.contains("cpu"), "{errors}");
        }
    }
    assert!(!place.path("runs").exists(), "nothing was written");
}

#[test]
fn a_configuration_is_printed_and_tried_without_a_trace() {
    let place = place();
    for config in ["run.toml", "tape.toml"] {
        let printed = place.ok(&["train", "--config", config, "--print-config"]);
        std::fs::write(place.path("configs/printed.toml"), &printed).unwrap();
        assert_eq!(place.ok(&["train", "--config", "printed.toml", "--print-config"]), printed);
    }
    let sets = ["--set", "hidden=auto", "--set", "budget=500", "--set", "cell=lstm"];
    let document =
        place.json(&[&["train", "--config", "run.toml", "--dry-run", "--json"], &sets[..]].concat());
    // The largest H with 4(H² + 2H + H) + 2(H + 1) ≤ 500.
    assert_eq!((document["sizes"]["hidden"].as_u64(), document["params"].as_u64()), (Some(9), Some(452)));
    assert_eq!(document["weights"]["R"], serde_json::json!([36, 9]));
    assert_eq!(document["total_updates"], 120);
    let second = document["step"]["seconds"].as_f64().unwrap();
    assert!((document["seconds_estimated"].as_f64().unwrap() / (120.0 * second) - 1.0).abs() < 1e-9);
    assert!(
        place.ok(&["train", "--config", "run.toml", "--dry-run"]).contains("steps of sequences a second")
    );
    assert!(!place.path("runs").exists());
}

const SWEEP: &str = "base = \"run.toml\"\nseeds = [0, 1]\n[grid]\ncell = [\"gru\", \"lstm\"]\nlr = [1e-2, 1e-9]\n\
    [select]\nover = [\"lr\"]\nseeds = [7]\n[[override]]\nset = { updates = 1500 }\n";

/// The tables of a sweep without what depends on the clock: `seconds`, the last column.
fn tables(place: &Place, name: &str) -> (Vec<String>, Value, Vec<u8>) {
    let folder = place.path("runs").join(name);
    let csv = std::fs::read_to_string(folder.join("table.csv")).unwrap();
    let head = "task,cell,variant,seed,lr,total_params,length,symbol_error,sequence_exact,last_symbol,status,seconds";
    assert_eq!(csv.lines().next(), Some(head));
    let rows = csv.lines().map(|line| line.rsplit_once(',').unwrap().0.to_owned()).collect();
    let verdict = std::fs::read_to_string(folder.join("verdict.json")).unwrap();
    let picture = std::fs::read(folder.join("accuracy-parity.svg")).unwrap();
    assert!(folder.join("table.md").is_file() && folder.join("report.html").is_file());
    (rows, serde_json::from_str(&verdict).unwrap(), picture)
}

#[test]
fn an_interrupted_sweep_goes_on_to_the_same_table() {
    let (whole, broken) = (place(), place());
    for place in [&whole, &broken] {
        std::fs::write(place.path("configs/both.toml"), SWEEP).unwrap();
    }
    let sweep = ["sweep", "--config", "both.toml", "--quiet"];
    whole.ok(&sweep);
    let (rows, verdict, _) = tables(&whole, "both");
    // Two cells, two seeds, two lengths; the rate of next to nothing was not chosen.
    assert_eq!(rows.len(), 1 + 8);
    assert!(rows.iter().skip(1).all(|row| row.contains(",0.01,") && row.ends_with(",done")), "{rows:?}");
    assert_eq!(verdict["verdict"], "no verdict", "two seeds are too few");
    // Stopped in the middle of what selects, and in the middle of the points.
    let mut caught = 0;
    for run in ["cell=gru/select/lr=0.01/seed-7", "cell=lstm/select/lr=0.01/seed-7", "cell=gru/seed-1"] {
        let begun = broken.path("runs/both").join(run).join("config.toml");
        caught += u32::from(interrupted(&broken, &sweep, &begun));
    }
    assert!(caught > 0, "the sweep is never caught");
    broken.ok(&sweep);
    assert_eq!(tables(&broken, "both"), tables(&whole, "both"));
}

#[test]
fn a_sweep_refuses_cells_that_leave_the_budget() {
    let place = place();
    let write = |more: &str| {
        let text = format!("base = \"run.toml\"\nseeds = [0]\n[[case]]\nbudget = 100\n{more}\n");
        std::fs::write(place.path("configs/gap.toml"), text).unwrap();
    };
    // 98 weights.
    write("updates = 1");
    place.ok(&["sweep", "--config", "gap.toml", "--quiet"]);
    std::fs::remove_dir_all(place.path("runs")).unwrap();
    for more in ["hidden = 3", "hidden = 5", "hidden = \"auto\"\ncell = \"lstm\""] {
        write(more);
        let errors = place.refused(&["sweep", "--config", "gap.toml", "--quiet"], 1);
        assert!(errors.contains("budget-gap"), "{errors}");
        assert!(!place.path("runs").exists());
    }
    write("hidden = 3\nallow_gap = true\nupdates = 1");
    place.ok(&["sweep", "--config", "gap.toml", "--quiet"]);
}

/// Arms that are one model in two words, and arms that waste weights, by name; a placebo is neither.
#[test]
fn a_sweep_refuses_arms_that_are_no_arms() {
    let place = place();
    let head = "base = \"run.toml\"\nseeds = [0]\n[[override]]\nset = { cell = \"ll\", preset = \"stable\", updates = 1 }\n";
    let answer = |cases: &[&str]| {
        let cases: String = cases.iter().map(|case| format!("[[case]]\n{case}\n")).collect();
        std::fs::write(place.path("configs/arms.toml"), format!("{head}{cases}")).unwrap();
        let output = place.command(&["sweep", "--config", "arms.toml", "--dry-run"]).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        match output.status.code() {
            Some(0) => "taken".to_owned(),
            Some(1) if !place.path("runs").exists() => said,
            other => panic!("{other:?}: {said}"),
        }
    };
    let full = "name = \"full\"\nlambda = []\npi = [\"0\", \"10\"]\naux = 3";
    // An empty list has no space.
    let two = "name = \"two\"\nlambda = []\npi = [\"0\", \"10\"]\nv = \"two-space\"\naux = 7\naux2 = 3";
    let same = answer(&[full, two]);
    assert!(
        same.contains("duplicate-arm") && same.contains("name=full") && same.contains("name=two"),
        "{same}"
    );
    assert_eq!(answer(&[full, &format!("{two}\nplacebo = true")]), "taken");
    assert_eq!(answer(&[full, &two.replace("aux2 = 3", "aux2 = 2")]), "taken");
    assert_eq!(answer(&[full, &format!("{two}\nlr = 3e-3")]), "taken");
    let diagonal = "name = \"diagonal\"\nlambda = [1, 2]\nv = \"diag\"\naux = 5";
    let words =
        "name = \"words\"\nlambda = [1, 2]\nv = \"two-space\"\naux = 5\naux2 = 2\nv_init = \"identity\"";
    assert!(answer(&[diagonal, words]).contains("duplicate-arm"));
    // Under softmax gates equal programs share their weight; other gates add up.
    let (once, twice) =
        ("name = \"once\"\nlambda = [1]\naux = 4", "name = \"twice\"\nlambda = [1, \"mult [1] 1\"]\naux = 4");
    assert!(answer(&[once, twice]).contains("duplicate-arm"));
    let sigmoid = |case: &str| format!("{case}\ngate_act = \"sigmoid\"");
    assert_eq!(answer(&[&sigmoid(once), &sigmoid(twice)]), "taken");
    // Hidden is 4.
    let waste = |case: &str| answer(&[&format!("{case}\naux = 5")]);
    for wasted in ["lambda = [1]", "lambda = [1, 1]\npi = [\"0\", \"1\"]", "pi = [\"1\"]", "lambda = [0, 1]"]
    {
        let refusal = waste(wasted);
        assert!(refusal.contains("rank-waste") && refusal.contains("at most rank 4"), "{wasted}: {refusal}");
    }
    for taken in ["lambda = [1, 2]", "pi = [\"0\", \"10\"]", "lambda = [1]\nv = \"diag\"", "lambda = []"] {
        assert_eq!(waste(taken), "taken", "{taken}");
    }
    assert_eq!(answer(&["lambda = [1]\nproject = \"identity\""]), "taken");
    assert_eq!(answer(&["lambda = [1]\naux = 4"]), "taken");
    let second = "pi = [\"1\"]\nv = \"two-space\"\naux = 9\naux2 = ";
    assert!(answer(&[&format!("{second}5")]).contains("rank-waste"));
    assert_eq!(answer(&[&format!("{second}4")]), "taken");
}

/// A sweep without a linear-logic cell has a verdict, and runs without a result count as the worst there is.
#[test]
fn every_sweep_has_a_verdict() {
    let place = place();
    let text = "base = \"run.toml\"\nseeds = [0, 1, 2, 3, 4]\n[grid]\ncell = [\"elman\", \"gru\", \"lstm\"]\n\
                [[override]]\nset = { updates = 5 }\n";
    std::fs::write(place.path("configs/others.toml"), text).unwrap();
    let document = place.json(&["sweep", "--config", "others.toml", "--quiet", "--json"]);
    let rows = document["verdict"]["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 1);
    let cells = ["elman", "gru", "lstm"];
    let [candidate, baseline] =
        ["candidate", "baseline"].map(|side| rows[0][side].as_str().unwrap().to_owned());
    assert!(candidate != baseline && cells.contains(&&*candidate) && cells.contains(&&*baseline));
    assert_ne!(document["verdict"]["verdict"], "no verdict");
    // What ran is named, not what is checked out when the table is made.
    let config = place.path("runs/others/cell=gru/seed-0/config.toml");
    let other = std::fs::read_to_string(&config).unwrap();
    let (before, after) = other.split_once("commit ").unwrap();
    let (_, after) = after.split_once('\n').unwrap();
    std::fs::write(&config, format!("{before}commit 0123456789ab\n{after}")).unwrap();
    let document = place.json(&["sweep", "--config", "others.toml", "--quiet", "--json"]);
    assert!(document["commits"].as_array().unwrap().contains(&"0123456789ab".into()));
    assert!(std::fs::read_to_string(place.path("runs/others/table.md")).unwrap().contains("0123456789ab"));
}

/// A sweep that asks whether a program beats its placebo: goals end runs, what is chosen is thinned, the gate is another
/// sweep, and the verdict is what the runs say.
#[test]
fn contrasts_are_judged_by_their_rule() {
    let place = place();
    let sweep = |name: &str, task: &str, gate: &str| {
        let case = |name: &str, pi: &str, placebo: bool| {
            format!("[[case]]\nname = \"{name}\"\npi = {pi}\nplacebo = {placebo}\n")
        };
        let text = format!(
            "base = \"run.toml\"\nseeds = [0, 1, 2, 3, 4]\n[grid]\nlr = [1e-9, 1e-2]\nv_init = [\"glorot\", \"identity\"]\n\
             gate_bias = [0.0]\n[select]\nover = [\"lr\", \"v_init\", \"gate_bias\"]\nseeds = [8, 9]\nthin = 4\n\
             set = {{ updates = 30 }}\nextend = {{ lr = [1e-10, 2e-2] }}\n\
             [[contrast]]\nname = \"H\"\nsays = \"words help\"\ntasks = [\"{task}\"]\npairs = [[\"words\", \"same\"]]\n{gate}\n\
             {}{}[[override]]\n[override.set]\ncell = \"ll\"\npreset = \"paper\"\nact = \"tanh\"\nv = \"full\"\n\
             project = \"identity\"\ngate_act = \"sigmoid\"\nlambda = [1]\ntask = \"{task}\"\nupdates = 200\neval_every = 20\n\
             stop_at = 0.9\nmin_length = 1\nmax_length = 4\neval_lengths = [4, 8]\nhidden = 4\n",
            case("words", "[\"10\", \"01\"]", false),
            case("same", "[\"00\", \"00\"]", true),
        );
        std::fs::write(place.path("configs").join(format!("{name}.toml")), text).unwrap();
    };
    sweep("planted", "planted-pi-s3", "");
    sweep("asked", "parity", "gate = { sweep = \"planted.toml\", tasks = [\"planted-pi-s3\"] }");
    let contrast = |name: &str| {
        let document =
            place.json(&["sweep", "--config", &format!("{name}.toml"), "--jobs", "2", "--quiet", "--json"]);
        let verdict: Value = serde_json::from_slice(
            &std::fs::read(place.path("runs").join(name).join("verdict.json")).unwrap(),
        )
        .unwrap();
        assert_eq!(document["verdict"], verdict);
        (document["rows"].as_array().unwrap().clone(), verdict["contrasts"][0].clone())
    };
    // The gate was not run: nothing can be said.
    let (rows, found) = contrast("asked");
    assert_eq!((found["gate"].clone(), found["outcome"].clone()), (Value::Null, "undecided".into()));
    assert_eq!(found["program"]["runs"], 5);
    // Parity of four bits is learned, and the run ends there.
    let learned: Vec<&Value> = rows.iter().filter(|row| row["reached_at"].is_u64()).collect();
    assert!(learned.len() >= 4, "{rows:?}");
    // What was chosen stands there: the greatest rate of the grid, or what lies beyond it; one of four candidates ran
    // the second seed, and of the two beyond one.
    let folder = place.path("runs/asked");
    let select = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path().join("select"));
    for select in select.filter(|select| select.is_dir()) {
        let candidates: Vec<_> =
            std::fs::read_dir(&select).unwrap().map(|entry| entry.unwrap().path()).collect();
        let second = candidates.iter().filter(|candidate| candidate.join("seed-9").is_dir()).count();
        assert_eq!((candidates.len(), second), (6, 2), "{select:?}");
    }
    assert!(rows.iter().all(|row| row["selected"]["lr"].as_f64().unwrap() >= 1e-2));
    let (rows, planted) = contrast("planted");
    assert!(planted["test"]["p"].as_f64().unwrap() <= 1.0 && planted["gate"].is_null());
    assert!(rows.iter().all(|row| (0.0..=1.0).contains(&row["gates_right"].as_f64().unwrap())));
    let (_, found) = contrast("asked");
    assert_eq!(found["gate"], planted["test"], "the same runs, judged by the same test");
    // What could not be decided is refused before anything is spent.
    let text = std::fs::read_to_string(place.path("configs/asked.toml")).unwrap();
    for (from, to, part) in [
        ("[\"words\", \"same\"]", "[\"words\", \"other\"]", "no arm of parity has the name \"other\""),
        ("[\"words\", \"same\"]", "[\"words\", \"words\"]", "compared with itself"),
        ("tasks = [\"parity\"]", "tasks = []", "needs tasks"),
        ("stop_at = 0.9\n", "", "no stop_at"),
        ("stop_at = 0.9\n", "stop_at = 1.5\n", "above 0, at most 1"),
        ("says =", "say =", "unknown key \"say\""),
    ] {
        std::fs::write(place.path("configs/wrong.toml"), text.replace(from, to)).unwrap();
        let errors = place.refused(&["sweep", "--config", "wrong.toml", "--quiet"], 1);
        assert!(errors.contains(part), "{errors}");
        assert!(!place.path("runs/wrong").exists());
    }
}
