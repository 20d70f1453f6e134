//! `tl run --checkpoints`: a command that is killed and given again says what an unbroken one says; nothing of others is
//! taken, written over or removed.
#![cfg(feature = "cli")]
#![expect(clippy::unwrap_used, reason = "a test that cannot start the command has failed")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::common;

fn tl(folder: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
    common::command::tl(folder, arguments, b"")
}

const DATA: &str = "1,0.5\n2,-1\n3,0.25\n4,2\n5,-0.125\n6,1\n7,0.75\n8,-2\n";

/// Two learnings and a file that is written, of data in a file.
const PROGRAM: &str = "s : 1..8
X = \"x.csv\" as values
T[s] = sin(s)
W[d] ~ normal(0, 1)
d : 16
N = 3
H[s, d] = tanh(N X[s] W[d] + d)
V[d] ~ normal(0, 1)
Y[s] = H[s, d] V[d]
Loss = sum[s]((Y[s] - T[s])^2)
Loss? @minimize(opt=adamw, lr=0.01, clip=1, batch=s, size=2, shuffle=1, epochs=STEPS, valid=0.25)
\"w.csv\" = W
U ~ 0
Far = sum[s]((X[s] U - T[s])^2)
Far? @minimize(opt=sgd, lr=0.01, momentum=0.9, steps=STEPS)
V[d]?
";

fn written(steps: u64) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("x.csv"), DATA).unwrap();
    std::fs::write(folder.path().join("p.tl"), PROGRAM.replace("STEPS", &steps.to_string())).unwrap();
    folder
}

/// What stands in a folder and the folders below it.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.insert(path.clone(), std::fs::read(&path).unwrap());
        }
    }
    found
}

fn states(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name != ".lock")
        .collect();
    names.sort();
    names
}

#[test]
fn a_complete_run_is_kept_and_not_learned_again() {
    let folder = written(20);
    let wanted = tl(folder.path(), &["run", "p.tl"]);
    assert_eq!((wanted.0, wanted.2.as_str()), (Some(0), ""));
    let weights = std::fs::read(folder.path().join("w.csv")).unwrap();
    let run = || tl(folder.path(), &["run", "p.tl", "--checkpoints", "kept", "--every", "7"]);
    let first = run();
    assert_eq!((first.0, first.1.as_str(), first.2.as_str()), (wanted.0, wanted.1.as_str(), ""));
    let kept = folder.path().join("kept");
    assert_eq!(states(&kept), ["minimize-1", "minimize-2"]);
    assert_eq!(states(&kept.join("minimize-1")), ["step-0000056.safetensors", "step-0000060.safetensors"]);
    assert_eq!(states(&kept.join("minimize-2")), ["step-0000014.safetensors", "step-0000020.safetensors"]);
    let before = files(&kept);
    std::fs::remove_file(folder.path().join("w.csv")).unwrap();
    let again = run();
    assert_eq!((again.0, &again.1), (wanted.0, &wanted.1));
    assert!(
        again.2.contains("tl: all 60 steps were learned before (kept/minimize-1/step-0000060"),
        "{}",
        again.2
    );
    assert!(
        again.2.contains("tl: all 20 steps were learned before (kept/minimize-2/step-0000020"),
        "{}",
        again.2
    );
    assert_eq!(std::fs::read(folder.path().join("w.csv")).unwrap(), weights);
    assert_eq!(files(&kept), before, "nothing new is there to keep");
    // A program can read the parameters of a state by their names.
    let text = "d : 16\nW = \"kept/minimize-1/step-0000060.safetensors\"\nS = W[d]\nS?\n";
    std::fs::write(folder.path().join("q.tl"), text).unwrap();
    let (status, out, said) = tl(folder.path(), &["run", "q.tl"]);
    let sum: f64 = out.lines().nth(1).unwrap().trim().parse().unwrap();
    assert!(status == Some(0) && sum.is_finite() && sum != 0.0, "{out}{said}");
}

/// How a command ends that gets a signal after a time, if it has not ended before.
fn signalled(
    folder: &Path,
    arguments: &[&str],
    signal: &str,
    after: Duration,
) -> (Option<i32>, String, String) {
    let mut call = Command::new(env!("CARGO_BIN_EXE_tl"));
    call.current_dir(folder)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let child = call.spawn().unwrap();
    std::thread::sleep(after);
    let _ =
        Command::new("kill").args([signal, &child.id().to_string()]).stderr(Stdio::null()).status().unwrap();
    let output = child.wait_with_output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn a_run_that_is_killed_again_and_again_says_the_same() {
    let mut stream = common::stream("checkpoints");
    let rounds = if std::env::var_os("CALCULEMUS_SLOW").is_some() { 12 } else { 2 };
    let (mut kills, mut round) = (0, 0);
    // Where the first run took long for another reason, most of the others end before they are killed: so there are more of them.
    while round < rounds || kills <= rounds && round < 10 * rounds {
        let folder = written(150);
        let dtype = if round % 2 == 0 { "f64" } else { "f32" };
        let plain = ["run", "p.tl", "--dtype", dtype];
        let since = Instant::now();
        let wanted = tl(folder.path(), &plain);
        let took = since.elapsed();
        assert_eq!(wanted.0, Some(0), "{}", wanted.2);
        let weights = std::fs::read(folder.path().join("w.csv")).unwrap();
        let kept = [&plain[..], &["--checkpoints", "kept", "--every", "3"]].concat();
        let signals = ["-KILL", "-INT", "-TERM"];
        let found = (0..).find_map(|piece| {
            let signal = signals[(round + piece) % 3];
            // Ever longer, so that it ends on a slow machine too.
            let most = took.mul_f64(stream.uniform() * (0.4 + 0.2 * piece as f64));
            let (status, out, said) = signalled(folder.path(), &kept, signal, most);
            match (status, signal) {
                (Some(0), _) => return Some(out),
                // Before it listens a signal ends it at once.
                (None, _) => {}
                (Some(130), "-INT") | (Some(143), "-TERM") => {
                    let learned = said.contains("the same command goes on from there");
                    assert!(learned || !said.contains("--> p.tl:11"), "{said}");
                }
                _ => panic!("{status:?} {said}"),
            }
            kills += 1;
            None
        });
        assert_eq!(found.unwrap(), wanted.1);
        assert_eq!(std::fs::read(folder.path().join("w.csv")).unwrap(), weights);
        for learning in ["minimize-1", "minimize-2"] {
            assert_eq!(states(&folder.path().join("kept").join(learning)).len(), 2);
        }
        round += 1;
    }
    assert!(kills > rounds, "{kills} kills are too few");
}

/// A kill between a state and the removal of an older one leaves three, of which the next run keeps two.
#[test]
fn what_a_kill_left_behind_is_removed() {
    let folder = written(10);
    let run = |kept: &str, every: &str| {
        let found = tl(folder.path(), &["run", "p.tl", "--checkpoints", kept, "--every", every]);
        assert_eq!(found.0, Some(0), "{}", found.2);
        (found.1, states(&folder.path().join(kept).join("minimize-1")))
    };
    let ((wanted, own), (_, others)) = (run("kept", "1"), run("other", "4"));
    let older = others.iter().find(|state| !own.contains(state)).unwrap();
    let [from, to] = ["other", "kept"].map(|kept| folder.path().join(kept).join("minimize-1").join(older));
    std::fs::copy(from, &to).unwrap();
    assert_eq!(run("kept", "1"), (wanted, own));
    assert!(!to.exists());
}

/// A run that another one cannot go on from, and what is said of it. Nothing changes.
fn refused(folder: &Path, arguments: &[&str], message: &str) {
    let before = files(&folder.join("kept"));
    let call = [&["run", "p.tl", "--checkpoints", "kept"], arguments].concat();
    let (status, _, said) = tl(folder, &call);
    assert_eq!(status, Some(1), "{arguments:?} {said}");
    assert!(said.starts_with("error[file-format]: ") && said.contains("--> p.tl:11:7"), "{said}");
    assert!(said.contains(message), "{message}: {said}");
    assert_eq!(files(&folder.join("kept")), before, "{message}");
}

#[test]
fn states_of_another_learning_are_refused() {
    let folder = written(10);
    let path = |name: &str| folder.path().join(name);
    let program = std::fs::read_to_string(path("p.tl")).unwrap();
    let run = |more: &[&str]| tl(folder.path(), &[&["run", "p.tl", "--checkpoints", "kept"], more].concat());
    let wanted = run(&[]);
    assert_eq!(wanted.0, Some(0), "{}", wanted.2);
    refused(folder.path(), &["--seed", "3"], "there seed is 0, and here 3");
    refused(folder.path(), &["--dtype", "f32"], "there --dtype is f64, and here f32");
    refused(folder.path(), &["--engine", "reference"], "there --engine is auto, and here reference");
    refused(folder.path(), &["--storage", "sparse"], "there --storage is auto, and here sparse");
    refused(folder.path(), &["--set", "N=4"], "`N` does not have the same data");
    for (from, to, message) in [
        ("+ d)", "- d)", "the statements of the program are not the same"),
        (
            "lr=0.01, clip",
            "lr=0.02, clip",
            "there the query says `lr = 0.01 , clip`, and here `lr = 0.02 , clip`",
        ),
        ("normal(0, 1)\nd", "normal(0, 2)\nd", "the statements of the program are not the same"),
        ("s : 1..8", "@tol(1e-5)\ns : 1..8", "there @tol is 1e-12, and here 1e-5"),
    ] {
        assert!(program.contains(from), "{from}");
        let changed = program.replacen(from, to, 1);
        // The line of the query is the same.
        std::fs::write(path("p.tl"), changed.replace("@tol(1e-5)\ns", "@tol(1e-5); s")).unwrap();
        refused(folder.path(), &[], message);
    }
    std::fs::write(path("p.tl"), &program).unwrap();
    std::fs::write(path("x.csv"), DATA.replace("0.25", "0.26")).unwrap();
    refused(folder.path(), &[], "`X` does not have the same data");
    std::fs::write(path("x.csv"), DATA).unwrap();
    // An earlier learning that comes to something else; the second one starts elsewhere.
    let both = program.replace("Far = sum", "Far = V[0]^2 + sum");
    std::fs::write(path("p.tl"), both).unwrap();
    refused(folder.path(), &[], "the statements");
    // Comments, blanks, other queries and what is written elsewhere are no part of it.
    let same = program.replace("N = 3", "N=3  # three").replace("V[d]?\n", "W[d]?\nV[d]?\n");
    std::fs::write(path("p.tl"), same).unwrap();
    let (status, _, said) = run(&["--query", "N?", "--threads", "1"]);
    assert_eq!(status, Some(0), "{said}");
    assert_eq!(said.matches("steps were learned before").count(), 2, "{said}");
}

#[test]
fn what_is_damaged_or_not_ours_is_refused_and_stays() {
    let folder = written(10);
    let kept = folder.path().join("kept/minimize-1");
    let run = || tl(folder.path(), &["run", "p.tl", "--checkpoints", "kept", "--every", "7"]);
    let wanted = run();
    let (older, newest) = (kept.join("step-0000028.safetensors"), kept.join("step-0000030.safetensors"));
    let good = std::fs::read(&newest).unwrap();
    let foreign = {
        let text = "W = [1, 2]\n\"w.safetensors\" = W\n";
        std::fs::write(folder.path().join("w.tl"), text).unwrap();
        assert_eq!(tl(folder.path(), &["run", "w.tl"]).0, Some(0));
        std::fs::read(folder.path().join("w.safetensors")).unwrap()
    };
    let mut flipped = good.clone();
    let middle = flipped.len() - 100;
    flipped[middle] ^= 4;
    for (bytes, message) in [
        (&good[..good.len() - 1], "is no whole state of learning"),
        (&good[..100], "is no whole state of learning"),
        (&[], "is no whole state of learning"),
        (b"my own notes", "is no whole state of learning"),
        (&flipped, "is damaged"),
        (&foreign, "is no state of learning"),
    ] {
        std::fs::write(&newest, bytes).unwrap();
        refused(folder.path(), &[], message);
        refused(
            folder.path(),
            &[],
            "step-0000028.safetensors` is whole: remove the other file to go on behind step 28",
        );
    }
    // A state by another name, with a larger number.
    std::fs::write(&newest, &good).unwrap();
    std::fs::copy(&newest, kept.join("step-0000090.safetensors")).unwrap();
    refused(folder.path(), &[], "has another name: it is the state behind step 30");
    std::fs::remove_file(kept.join("step-0000090.safetensors")).unwrap();
    // Without the newest it goes on from the older one, and files of others stay.
    std::fs::remove_file(&newest).unwrap();
    let others = ["notes.txt", "step-x.safetensors", "a.tmp"].map(|name| kept.join(name));
    others.iter().for_each(|path| std::fs::write(path, "mine").unwrap());
    let foreign_old = kept.join("step-0000001.safetensors");
    std::fs::write(&foreign_old, "not a state").unwrap();
    std::fs::write(kept.join("step-0000030.safetensorsAbC.tmp"), "half of a state").unwrap();
    let again = run();
    assert_eq!((again.0, &again.1), (wanted.0, &wanted.1), "{}", again.2);
    assert!(again.2.contains("learning goes on behind step 28 of 30"), "{}", again.2);
    assert_eq!(std::fs::read(&newest).unwrap(), good, "the same state");
    assert!(older.exists() && foreign_old.exists() && others.iter().all(|path| path.exists()));
    assert!(!kept.join("step-0000030.safetensorsAbC.tmp").exists());
    std::fs::remove_file(&newest).unwrap();
    std::fs::remove_file(&older).unwrap();
    refused(folder.path(), &[], "no older state is whole");
}

#[test]
fn a_folder_that_cannot_be_used_is_refused_before_anything_is_learned() {
    let folder = written(1000);
    std::fs::write(folder.path().join("file"), "x").unwrap();
    let mut places = vec!["file", "file/below"];
    if Path::new("/proc/self").exists() {
        places.push("/proc/nobody-writes-here");
    }
    for place in places {
        let since = Instant::now();
        let (status, _, said) = tl(folder.path(), &["run", "p.tl", "--checkpoints", place]);
        assert_eq!(status, Some(1), "{said}");
        assert!(said.starts_with("error[file-not-found]: what is learned cannot be kept in "), "{said}");
        assert!(said.contains("--> p.tl:11:7"), "{said}");
        assert!(since.elapsed() < Duration::from_secs(20));
    }
    assert_eq!(std::fs::read_to_string(folder.path().join("file")).unwrap(), "x");
    // Somebody else is at work there.
    std::fs::create_dir_all(folder.path().join("kept/minimize-1")).unwrap();
    let held = training::files::lock(&folder.path().join("kept/minimize-1"), training::files::Sharing::Alone);
    let (status, _, said) = tl(folder.path(), &["run", "p.tl", "--checkpoints", "kept"]);
    assert!(status == Some(1) && said.contains("cannot be kept in `kept/minimize-1`"), "{said}");
    drop(held.unwrap());
    for arguments in [&["--every", "3"][..], &["--checkpoints", "kept", "--every", "0"], &["--checkpoints"]] {
        assert_eq!(tl(folder.path(), &[&["run", "p.tl"], arguments].concat()).0, Some(2), "{arguments:?}");
    }
    // Without anything to learn nothing is made.
    std::fs::write(folder.path().join("n.tl"), "N = 3\nN?\n").unwrap();
    assert_eq!(tl(folder.path(), &["run", "n.tl", "--checkpoints", "none"]).0, Some(0));
    assert!(!folder.path().join("none").exists());
}

/// Learning in a world of its own: by time, and what is told.
#[test]
fn learning_is_kept_by_time() {
    use tensor_logic::auto::Auto;
    use tensor_logic::checkpoints::{Checkpoints, Every};
    use tensor_logic::engine::Budget;
    use tensor_logic::fast::Fast;
    use tensor_logic::files::Files;
    use tensor_logic::source::Source;
    use tensor_logic::world::World;

    let text = "W ~ [1, 2]\nLoss = W[i]^2\nLoss? @minimize(steps=10)\n";
    let source = Source::new("p.tl", text.as_bytes());
    let run = |folder: &Path, every: Every| {
        let mut told = Vec::new();
        let checkpoints = Checkpoints::new(folder, every, |message| told.push(message.to_owned()));
        let mut world = World::new(&source, Files::new("."), 0).with_checkpoints(checkpoints);
        let mut engine = Auto::new(Box::<Fast>::default());
        let found = world.calculate(&mut engine, Budget { tuples: 1 << 20, bytes: 1 << 30 }).unwrap();
        assert!(found.outcome.refusal.is_none(), "{:?}", found.outcome.refusal);
        drop(world);
        (found.outcome.answers[0].minimize.clone().unwrap(), told)
    };
    for (every, wanted) in [
        (Every::Time(Duration::ZERO), ["step-0000009.safetensors", "step-0000010.safetensors"]),
        (Every::Time(Duration::from_secs(3600)), ["step-0000000.safetensors", "step-0000010.safetensors"]),
        (Every::Steps(4), ["step-0000008.safetensors", "step-0000010.safetensors"]),
        (Every::Steps(1000), ["step-0000000.safetensors", "step-0000010.safetensors"]),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let (done, told) = run(folder.path(), every);
        assert_eq!(states(&folder.path().join("minimize-1")), wanted, "{every:?}");
        assert!(told.is_empty() && done.losses.len() == 10);
        let (again, told) = run(folder.path(), every);
        assert_eq!(again, done);
        assert_eq!(told.len(), 1, "{told:?}");
    }
}
