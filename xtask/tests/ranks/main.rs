//! Training by several processes over MPI, on this machine: the weights of one process, bit for bit, whatever is killed.

#![expect(clippy::unwrap_used, reason = "a test stops at what should not be")]

#[expect(dead_code, reason = "the suite `it` uses the rest")]
#[path = "../it/common.rs"]
mod common;

use std::path::Path;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

use seeded::Family;

use common::Place;

const RUN: &str = "data = \"few\"\nsuites = [\"iid\"]\nd_model = 16\nn_layers = 1\nn_heads = 2\nd_ff = 32\n\
    max_steps = 120\nbatch = 24\npieces = 12\nlr = 1e-2\neval_every = 40\nlog_every = 7\nsave_every = 1\nema = 0.9\n\
    dropout = 0.1\nmax_len = 200\nthreads = 1\n";
const DATA: &str = "law = \"public\"\nstream = { train = 300, val = 40, test = 40 }\niid = 40\n";

/// The command, started by `mpirun`.
fn ranks(place: &Place, world: usize, args: &[&str]) -> Command {
    let mut command = Command::new("mpirun");
    command
        .args(["--oversubscribe", "-n", &world.to_string(), env!("CARGO_BIN_EXE_calculemus")])
        .args(args)
        .current_dir(place.path(""))
        .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
        .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
        .stdin(Stdio::null());
    command
}

/// A place, if there is an `mpirun`; it is said if there is none.
fn place() -> Option<Place> {
    if Command::new("mpirun").arg("--version").output().is_err() {
        calculemus_base::stream::say("not tested: this needs mpirun (Debian: openmpi-bin)");
        return None;
    }
    let place = Place::new(&[("run.toml", RUN), ("data/few.toml", DATA)]);
    place.ok(&["gen-data", "--config", "few.toml", "--quiet"]);
    Some(place)
}

fn weights(run: &Path) -> Vec<u8> {
    std::fs::read(run.join("model.safetensors")).unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The processes that a process started.
fn children(of: u32) -> Vec<u32> {
    let tasks = std::fs::read_to_string(format!("/proc/{of}/task/{of}/children")).unwrap_or_default();
    tasks.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}

fn signal(pid: u32, name: &str) {
    Command::new("kill").args([name, &pid.to_string()]).status().unwrap();
}

/// Whether a process still runs: one that has ended and was not asked for does not.
fn runs(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(") ").next().is_some_and(|state| !state.is_empty() && !state.starts_with('Z'))
}

/// Waits for `mpirun`, which may stand still for ever when a rank of it is killed: it was seen so once, at a lock of its own, with no rank
/// left. Once none of its ranks runs, it has twenty seconds.
fn ended(mpirun: &mut Child) -> ExitStatus {
    let mut alone = Instant::now();
    loop {
        if let Some(status) = mpirun.try_wait().unwrap() {
            return status;
        }
        if children(mpirun.id()).into_iter().any(runs) {
            alone = Instant::now();
        }
        if alone.elapsed() > Duration::from_secs(20) {
            mpirun.kill().unwrap();
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn has_begun(child: &mut Child, run: &Path) -> bool {
    let clock = Instant::now();
    loop {
        let updates = std::fs::read_to_string(run.join("metrics.jsonl")).unwrap_or_default();
        if updates.contains("\"update\"") {
            return child.try_wait().unwrap().is_none();
        }
        if child.try_wait().unwrap().is_some() {
            return false;
        }
        assert!(clock.elapsed() < Duration::from_secs(120), "it never comes");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn ranks_that_are_killed_and_change_their_number_end_as_one() {
    let Some(place) = place() else { return };
    place.ok(&["train", "--config", "run.toml", "--name", "one", "--quiet"]);
    let one = weights(&place.path("runs/one"));
    for world in [2, 3] {
        let name = format!("n{world}");
        let output = ranks(&place, world, &["train", "--config", "run.toml", "--name", &name, "--quiet"])
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", said(&output));
        assert!(weights(&place.path(&format!("runs/{name}"))) == one, "{world} ranks");
        place.same_result("runs/one", &format!("runs/{name}"));
    }
    let mut stream = Family::new("xtask/tests", "ranks", seeded::test_seed()).stream(0);
    let wanted = if std::env::var_os("CALCULEMUS_SLOW").is_some() { 20 } else { 3 };
    let (run, mut killed, mut attempts) = (place.path("runs/k"), 0, 0);
    while killed < wanted {
        attempts += 1;
        assert!(attempts < 20 * wanted, "no rank is ever caught");
        let world = [1, 2, 3, 4][stream.below(4) as usize];
        let begin = ["train", "--config", "run.toml", "--name", "k", "--quiet"];
        let go_on = ["train", "--resume", "k", "--quiet"];
        let args: &[&str] = if run.join("config.toml").is_file() { &go_on } else { &begin };
        let mut started =
            ranks(&place, world, args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        if !has_begun(&mut started, &run) {
            started.wait().unwrap();
        } else {
            std::thread::sleep(Duration::from_micros(stream.below(150_000)));
            let there = children(started.id());
            if !there.is_empty() {
                signal(there[stream.below(there.len() as u64) as usize], "-KILL");
                killed += 1;
            }
            let status = ended(&mut started);
            assert!(!status.success() || run.join("eval.json").is_file());
        }
        if run.join("eval.json").is_file() {
            // Finished before it was caught, or after: what it has is right, and another one is begun.
            assert!(weights(&run) == one);
            std::fs::remove_dir_all(&run).unwrap();
        }
    }
    let args: &[&str] = if run.join("config.toml").is_file() {
        &["train", "--resume", "k", "--quiet"]
    } else {
        &["train", "--config", "run.toml", "--name", "k", "--quiet"]
    };
    let output = ranks(&place, 4, args).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    assert!(weights(&run) == one);
    place.same_result("runs/one", "runs/k");
}

#[test]
fn a_rank_that_hangs_or_differs_ends_the_run_with_its_name() {
    let Some(place) = place() else { return };
    let refused = |world: usize, args: &[&str], words: &str| {
        let output = ranks(&place, world, args).output().unwrap();
        let errors = said(&output);
        assert!(!output.status.success() && errors.contains(words), "{args:?}: {errors}");
        assert!(!errors.contains("panicked"), "{errors}");
    };
    let named = |name: &'static str| ["train", "--config", "run.toml", "--quiet", "--name", name];
    refused(5, &named("five"), "5 ranks do not divide");
    refused(2, &[&named("none")[..], &["--set", "pieces=3"]].concat(), "2 ranks do not divide");
    refused(2, &[&named("data")[..], &["--set", "data=nowhere"]].concat(), "rank 0 cannot begin");
    assert!(!place.path("runs/five").exists() && !place.path("runs/data").exists());
    // A rank with another configuration: each reads the file that it finds.
    let other = RUN.replace("lr = 1e-2", "lr = 2e-2");
    std::fs::write(place.path("configs/other.toml"), other).unwrap();
    let program = env!("CARGO_BIN_EXE_calculemus");
    let mut command = ranks(&place, 1, &["train", "--config", "run.toml", "--name", "two", "--quiet"]);
    command.args([":", "-n", "1", program, "train", "--config", "other.toml", "--name", "two", "--quiet"]);
    let output = command.output().unwrap();
    assert!(said(&output).contains("rank 1 has another configuration than rank 0"), "{}", said(&output));
    // A process that a launcher started without MPI.
    let mut alone = place.command(&named("alone"));
    let output = alone.env("WORLD_SIZE", "4").env("RANK", "1").output().unwrap();
    assert!(!output.status.success() && said(&output).contains("WORLD_SIZE = 4"), "{}", said(&output));
    // One that hangs.
    let mut started =
        ranks(&place, 2, &[&named("hangs")[..], &["--patience", "3", "--set", "max_steps=100000"]].concat())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
    assert!(has_begun(&mut started, &place.path("runs/hangs")));
    let there = children(started.id());
    signal(there[1], "-STOP");
    let clock = Instant::now();
    let output = started.wait_with_output().unwrap();
    assert!(clock.elapsed() < Duration::from_secs(60));
    assert!(
        !output.status.success() && said(&output).contains("said nothing for 3 seconds"),
        "{}",
        said(&output)
    );
    signal(there[1], "-KILL");
    // A signal to one of them stops all, with a checkpoint.
    let mut started = ranks(&place, 3, &[&named("told")[..], &["--set", "max_steps=100000"]].concat())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    assert!(has_begun(&mut started, &place.path("runs/told")));
    signal(children(started.id())[2], "-TERM");
    let output = started.wait_with_output().unwrap();
    assert!(said(&output).contains("go on with: cargo xtask train --resume told"), "{}", said(&output));
}

/// The example of a SLURM job, with a stand-in for `srun` that starts as many ranks as the job says.
#[test]
fn the_example_for_slurm_trains_and_goes_on() {
    use std::os::unix::fs::PermissionsExt as _;

    let Some(place) = place() else { return };
    let tools = place.path("tools");
    std::fs::create_dir(&tools).unwrap();
    let write = |name: &str, text: &str| {
        let path = tools.join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    };
    write(
        "srun",
        "#!/bin/bash\n[ \"$1\" = --mpi=pmix ] || exit 9\nshift\nexec mpirun --oversubscribe -n \"$SLURM_NTASKS\" \"$@\"\n",
    );
    write("calculemus", &format!("#!/bin/bash\nexec {} \"$@\"\n", env!("CARGO_BIN_EXE_calculemus")));
    let path = format!("{}:{}", tools.display(), std::env::var("PATH").unwrap());
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/examples/train.sbatch");
    let submit = |tasks: &str| {
        let mut command = Command::new("bash");
        command
            .arg(script)
            .current_dir(place.path(""))
            .env("PATH", &path)
            .env("CONFIG", "run.toml")
            .env("RUN", "job")
            .env("SLURM_NTASKS", tasks)
            .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
            .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
            .stdin(Stdio::null());
        command
    };
    let mut first = submit("3").stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    if has_begun(&mut first, &place.path("runs/job")) {
        // What SLURM sends to the ranks before the time is over; mpirun hands it on.
        for pid in children(first.id()).into_iter().flat_map(children) {
            signal(pid, "-TERM");
        }
    }
    first.wait().unwrap();
    let output = submit("2").output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    place.ok(&["train", "--config", "run.toml", "--name", "one", "--quiet"]);
    assert!(weights(&place.path("runs/job")) == weights(&place.path("runs/one")));
}
