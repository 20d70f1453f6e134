//! SIGKILL at random moments, in training, in evaluation, while the report is written and in a sweep: what is there in
//! the end is what an unbroken run leaves, byte for byte but for clocks.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use seeded::{Family, Stream};

use crate::common::{Place, files, without_clocks};

const RUN: &str = "data = \"few\"\nsuites = [\"iid\", \"test\"]\nd_model = 16\nn_layers = 1\nn_heads = 2\nd_ff = 32\n\
    max_steps = 60\nbatch = 16\naccumulate = 2\nlr = 1e-2\neval_every = 20\nlog_every = 7\nsave_every = 1\nema = 0.9\n\
    max_len = 200\nthreads = 1\n";
const DATA: &str = "law = \"public\"\nstream = { train = 300, val = 40, test = 40 }\niid = 40\n";
const SWEEP: &str = "base = \"run.toml\"\nseeds = [0, 1]\n[grid]\nposition = [\"none\", \"sinusoidal\"]\n\
    [[claim]]\nname = \"order\"\nsays = \"places help\"\nmeasure = \"bits_per_formula\"\nrule = \"less\"\n\
    left = { position = \"sinusoidal\" }\nright = { position = \"none\" }\n";

/// What makes of it a run whose forward pass, loss and gradients are those of a program of the equation language.
#[cfg(feature = "programs")]
const BY_PROGRAM: &str = "program = \"learner.tl\"\ndropout = 0.0\n";

fn fresh_place(run: &str) -> Place {
    let place = Place::new(&[("run.toml", run), ("data/few.toml", DATA), ("two.toml", SWEEP)]);
    let program = include_str!("../../../crates/tensor-logic/programs/learner-transformer.tl");
    std::fs::write(place.path("learner.tl"), program).unwrap();
    place.ok(&["gen-data", "--config", "few.toml", "--quiet"]);
    place
}

/// Where a run is when it is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Training,
    Evaluation,
    Report,
}

impl Phase {
    /// Whether a run has come so far.
    fn has_begun(self, run: &Path) -> bool {
        match self {
            Self::Training => run.join("metrics.jsonl").is_file(),
            Self::Evaluation => {
                let text = std::fs::read_to_string(run.join("metrics.jsonl")).unwrap_or_default();
                text.contains("\"kind\":\"end\"")
            }
            Self::Report => run.join("eval.json").is_file(),
        }
    }

    /// Whether it is over.
    fn is_over(self, run: &Path) -> bool {
        match self {
            Self::Training => Self::Evaluation.has_begun(run),
            Self::Evaluation => Self::Report.has_begun(run),
            Self::Report => run.join("report.html").is_file(),
        }
    }
}

/// Waits until a phase has begun, or the process has ended.
fn wait(child: &mut Child, mut begun: impl FnMut() -> bool) {
    let clock = Instant::now();
    while !begun() && child.try_wait().unwrap().is_none() {
        assert!(clock.elapsed() < Duration::from_secs(300), "it never comes");
        std::thread::sleep(Duration::from_micros(200));
    }
}

/// An unbroken run with the name `a`, and how long each phase of it lasted.
fn unbroken(place: &Place) -> [(Phase, Duration); 3] {
    let run = place.path("runs/a");
    let args = ["train", "--config", "run.toml", "--name", "a", "--quiet"];
    let mut child = place.command(&args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let lasted = [Phase::Training, Phase::Evaluation, Phase::Report].map(|phase| {
        wait(&mut child, || phase.has_begun(&run));
        let clock = Instant::now();
        wait(&mut child, || phase.is_over(&run));
        (phase, clock.elapsed())
    });
    assert!(child.wait().unwrap().success());
    lasted
}

/// Starts the command that begins or goes on with the run, kills it in a phase after a random time of at most `spread`;
/// true if it was still there to be killed.
fn kill_in(place: &Place, phase: Phase, spread: Duration, stream: &mut Stream) -> bool {
    let run = place.path("runs/a");
    let begin = ["train", "--config", "run.toml", "--name", "a", "--quiet"];
    let go_on = ["train", "--resume", "a", "--quiet"];
    let args: &[&str] = if run.join("config.toml").is_file() { &go_on } else { &begin };
    let mut child = place.command(args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait(&mut child, || phase.has_begun(&run));
    std::thread::sleep(Duration::from_micros(stream.below(spread.as_micros() as u64 + 1)));
    if child.try_wait().unwrap().is_some() {
        return false;
    }
    child.kill().unwrap();
    child.wait().unwrap();
    true
}

/// A run that was killed in its training and in its evaluation, twice each where there was time for it. How fast the
/// machine is, and whether the test gets a core at the right moment, is not known: each further attempt draws from half
/// the time.
fn killed(run_file: &str, lasted: [(Phase, Duration); 3], stream: &mut Stream) -> Place {
    let place = (0..20).find_map(|attempt| {
        let place = fresh_place(run_file);
        let run = place.path("runs/a");
        let mut kills = Vec::new();
        for (phase, time) in [lasted[0], lasted[0], lasted[1], lasted[1], lasted[2]] {
            let spread = time / 2_u32.pow(attempt + 1);
            if !phase.is_over(&run) && kill_in(&place, phase, spread, stream) {
                kills.push(phase);
                if run.join("model.safetensors").is_file() {
                    place.ok(&["sample", "a", "--n", "1", "--json"]);
                }
            }
        }
        (kills.contains(&Phase::Training) && kills.contains(&Phase::Evaluation)).then_some(place)
    });
    assert!(place.is_some(), "not caught in training and in evaluation in twenty attempts");
    place.unwrap()
}

/// What a run leaves, with the clocks of its metrics set to 1 and its page written anew from that.
fn left_behind(place: &Place, run: &str) -> BTreeMap<PathBuf, Vec<u8>> {
    let metrics = place.path(run).join("metrics.jsonl");
    std::fs::write(&metrics, without_clocks(&std::fs::read_to_string(&metrics).unwrap())).unwrap();
    let page = std::fs::read_to_string(place.path(run).join("report.html")).unwrap();
    assert!(!page.contains("has not ended"));
    place.ok(&["report", run]);
    files(&place.path(run))
}

#[track_caller]
fn same(whole: &BTreeMap<PathBuf, Vec<u8>>, broken: &BTreeMap<PathBuf, Vec<u8>>) {
    assert_eq!(whole.keys().collect::<Vec<_>>(), broken.keys().collect::<Vec<_>>());
    for (name, bytes) in whole {
        assert!(broken[name] == *bytes, "{} is another one after kills", name.display());
    }
}

#[test]
fn a_run_that_is_killed_anywhere_leaves_what_an_unbroken_one_leaves() {
    killed_anywhere(RUN, 0);
}

/// The same of a learner that is a program: `configs/tiny-tl.toml`, small.
#[test]
#[cfg(feature = "programs")]
fn a_run_by_a_program_that_is_killed_anywhere_leaves_what_an_unbroken_one_leaves() {
    killed_anywhere(&format!("{RUN}{BY_PROGRAM}"), 2);
}

fn killed_anywhere(run_file: &str, number: u64) {
    let rounds = if std::env::var_os("CALCULEMUS_SLOW").is_some() { 8 } else { 1 };
    let whole = fresh_place(run_file);
    let lasted = unbroken(&whole);
    let whole = left_behind(&whole, "runs/a");
    let mut stream = Family::new("xtask/tests", "kill", seeded::test_seed()).stream(number);
    for _ in 0..rounds {
        let place = killed(run_file, lasted, &mut stream);
        let run = place.path("runs/a");
        if run.join("config.toml").is_file() {
            place.ok(&["train", "--resume", "a", "--quiet"]);
        } else {
            place.ok(&["train", "--config", "run.toml", "--name", "a", "--quiet"]);
        }
        same(&whole, &left_behind(&place, "runs/a"));
        // Once more changes nothing: what is finished and judged stays.
        let before = left_behind(&place, "runs/a");
        place.ok(&["train", "--resume", "a", "--quiet"]);
        same(&before, &left_behind(&place, "runs/a"));
    }
}

/// The table of a sweep without the columns of clocks.
fn table(place: &Place) -> Vec<String> {
    let text = std::fs::read_to_string(place.path("runs/two/table.csv")).unwrap();
    let mut lines = text.lines().map(|l| l.split(',').collect::<Vec<&str>>());
    let head = lines.next().unwrap();
    let timed = |column: usize| head[column].contains("second");
    assert!((0..head.len()).any(timed));
    let row = |cells: Vec<&str>| {
        let kept = cells.into_iter().enumerate().filter(|(c, _)| !timed(*c));
        kept.map(|(_, cell)| cell).collect::<Vec<_>>().join(",")
    };
    lines.map(row).collect()
}

/// What a sweep decided, with the interval over formulas that the scores of the runs gave.
fn claims(place: &Place) -> serde_json::Value {
    let text = std::fs::read_to_string(place.path("runs/two/table.json")).unwrap();
    let claims = serde_json::from_str::<serde_json::Value>(&text).unwrap()["claims"].take();
    assert!(claims[0]["p"].is_number() && claims[0]["bits_per_formula_bootstrap_95"][1].is_number());
    claims
}

#[test]
fn a_sweep_that_is_killed_leaves_what_an_unbroken_one_leaves_and_judges_no_run_twice() {
    let slow = std::env::var_os("CALCULEMUS_SLOW").is_some();
    let whole = fresh_place(RUN);
    let clock = Instant::now();
    whole.ok(&["sweep", "--config", "two.toml", "--quiet"]);
    let lasted = clock.elapsed().as_micros() as u64;
    let runs: Vec<String> = ["none", "sinusoidal"]
        .iter()
        .flat_map(|p| [0, 1].map(|s| format!("runs/two/position={p}/seed-{s}")))
        .collect();
    let mut place = fresh_place(RUN);
    let mut stream = Family::new("xtask/tests", "kill", seeded::test_seed()).stream(1);
    let (wanted, mut killed, mut attempts) = (if slow { 20 } else { 3 }, 0, 0);
    while killed < wanted {
        attempts += 1;
        assert!(attempts < 20 * wanted, "the sweep is never caught");
        let args = ["sweep", "--config", "two.toml", "--quiet"];
        let mut child = place.command(&args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_micros(stream.below(lasted)));
        if child.try_wait().unwrap().is_some() {
            // It was finished: another one is begun.
            place = fresh_place(RUN);
            continue;
        }
        child.kill().unwrap();
        child.wait().unwrap();
        killed += 1;
    }
    place.ok(&["sweep", "--config", "two.toml", "--quiet"]);
    assert_eq!(table(&whole), table(&place));
    assert_eq!(claims(&whole), claims(&place));
    // A further call finds every run finished: no evaluation is written again.
    let written = |run: &String| {
        let path = place.path(run).join("eval.json");
        std::fs::metadata(path).unwrap().modified().unwrap()
    };
    let before: Vec<_> = runs.iter().map(written).collect();
    place.ok(&["sweep", "--config", "two.toml", "--quiet"]);
    assert_eq!(before, runs.iter().map(written).collect::<Vec<_>>());
    for run in &runs {
        same(&left_behind(&whole, run), &left_behind(&place, run));
    }
}

/// Three workers share the folder of a sweep; one is killed, one sleeps for longer than its lease, and two more come.
#[test]
fn workers_of_which_some_die_make_the_table_of_one_machine() {
    let whole = fresh_place(RUN);
    whole.ok(&["sweep", "--config", "two.toml", "--quiet"]);
    let place = fresh_place(RUN);
    let start = || {
        let args = ["sweep", "--config", "two.toml", "--worker", "--lease", "2", "--quiet"];
        place.command(&args).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let mut stream = Family::new("xtask/tests", "workers", seeded::test_seed()).stream(0);
    let mut workers = vec![start(), start(), start()];
    let clock = Instant::now();
    let has_begun = || {
        let runs =
            ["none", "sinusoidal"].iter().flat_map(|p| [0, 1].map(|s| format!("position={p}/seed-{s}")));
        runs.filter(|run| place.path(&format!("runs/two/{run}/metrics.jsonl")).is_file()).count() >= 2
    };
    while !has_begun() {
        assert!(clock.elapsed() < Duration::from_secs(300), "it never comes");
        std::thread::sleep(Duration::from_millis(1));
    }
    // Whoever wants the sweep alone is told that it is not.
    assert!(place.refused(&["sweep", "--config", "two.toml", "--quiet"], 1).contains("another process"));
    std::thread::sleep(Duration::from_micros(stream.below(200_000)));
    let mut killed = workers.remove(0);
    killed.kill().unwrap();
    killed.wait().unwrap();
    let asleep = workers.first().unwrap().id().to_string();
    let tell = |signal: &str| Command::new("kill").args([signal, &asleep]).status().unwrap();
    tell("-STOP");
    workers.extend([start(), start()]);
    std::thread::sleep(Duration::from_secs(4));
    tell("-CONT");
    for worker in workers {
        let output = worker.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    assert_eq!(table(&whole), table(&place));
    assert_eq!(claims(&whole), claims(&place));
    for (position, seed) in [("none", 0), ("none", 1), ("sinusoidal", 0), ("sinusoidal", 1)] {
        let run = format!("runs/two/position={position}/seed-{seed}");
        let left_behind = |place: &Place| {
            let mut files = left_behind(place, &run);
            // The command that made it, and the page that quotes it.
            for bytes in files.values_mut() {
                if let Ok(text) = std::str::from_utf8(bytes) {
                    *bytes = text.replace(" --worker --lease 2", "").into_bytes();
                }
            }
            files
        };
        same(&left_behind(&whole), &left_behind(&place));
    }
    // Alone again, everything is finished.
    place.ok(&["sweep", "--config", "two.toml", "--quiet"]);
}

/// Five processes with folders of their own, in random order; two of them are killed and started again.
#[test]
fn shards_of_processes_that_are_killed_join_to_the_data_of_one_machine() {
    let data = "law = \"public\"\nsplit = \"hash\"\ndraws = 60000\niid = 500\nname = \"many\"\n";
    let place = Place::new(&[("data/many.toml", data)]);
    let common = ["gen-data", "--config", "many.toml", "--threads", "1", "--quiet", "--out"];
    let with = |rest: &[&'static str]| [&common[..], rest].concat();
    let clock = Instant::now();
    place.ok(&with(&["whole"]));
    let part = clock.elapsed() / 5;
    let mut stream = Family::new("xtask/tests", "shards", seeded::test_seed()).stream(0);
    let mut order = ["0/5", "1/5", "2/5", "3/5", "4/5"];
    for i in (1..order.len()).rev() {
        order.swap(i, stream.below(i as u64 + 1) as usize);
    }
    let machine = |shard: &str| ["m0", "m1", "m2", "m0", "m1"][usize::from(shard.as_bytes()[0] - b'0')];
    let start = |shard: &'static str| {
        place.command(&with(&[machine(shard), "--shard", shard])).stdout(Stdio::null()).spawn().unwrap()
    };
    let mut running: Vec<(&str, Child)> = order.iter().map(|&shard| (shard, start(shard))).collect();
    for (shard, child) in &mut running[..2] {
        // As late as the part is written in the middle of the crowd; a part that is finished before stays.
        std::thread::sleep(Duration::from_micros(stream.below(part.as_micros() as u64 + 1)));
        child.kill().unwrap();
        child.wait().unwrap();
        // Who is killed before its first file has not even the folder, unless another part makes it meanwhile.
        let had_folder = place.path(machine(shard)).exists();
        let unfinished = place.refused(&with(&["early", "--join", machine(shard)]), 1);
        let incomplete = unfinished.contains("no part") || unfinished.contains("are missing");
        assert!(incomplete || (!had_folder && unfinished.contains("NotFound: m")), "{unfinished}");
        *child = start(shard);
    }
    for (shard, child) in &mut running {
        assert!(child.wait().unwrap().success(), "{shard}");
    }
    place.ok(&with(&["joined", "--join", "m1", "m0", "m2"]));
    same(&files(&place.path("whole")), &files(&place.path("joined")));
}
