//! What is killed goes on where it was.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use object_folders::{Kind, Options};

use crate::common::{KEY, PART, SECRET, Server, bytes, get, get_until, put, put_until, same, stream, write};

/// The state files beside a folder.
fn states(of: &Path) -> Vec<PathBuf> {
    let beside = std::fs::read_dir(of.parent().unwrap()).unwrap().map(|entry| entry.unwrap().path());
    beside.filter(|path| path.extension().is_some_and(|end| end == "json")).collect()
}

#[test]
fn a_killed_upload_sends_no_part_twice() {
    let server = Server::start();
    let (place, options) = (tempfile::tempdir().unwrap(), server.options());
    let (from, to) = (place.path().join("from"), place.path().join("to"));
    let mut s = stream("put", 0);
    write(&from, &mut s, &[("a", 5 * PART + 77), ("b", 100), ("manifest.json", 50)]);
    // It dies before a part is answered, never while the upload is ended.
    server.slow(Duration::from_millis(20));
    let mut kills = 0;
    let done = loop {
        let before = server.count("part");
        let at = before + 1 + usize::try_from(s.below(2)).unwrap();
        match put_until(|| server.count("part") >= at, &from, "s3://sets/k", &options) {
            Some(done) => break done.unwrap(),
            None => kills += 1,
        }
        assert!(!server.bucket().join("k/manifest.json").exists() && !server.bucket().join("k/a").exists());
        assert_eq!(states(&from).len(), 1);
    };
    assert!(kills >= 2, "{kills}");
    // The part that was on its way when the process died may have to be sent again, and no other.
    assert!(server.count("part") <= 6 + kills, "{} parts, {kills} kills", server.count("part"));
    assert_eq!((server.count("begin"), server.count("end"), done.names.len()), (1, 1, 3));
    assert!(states(&from).is_empty());
    get("s3://sets/k", &to, &options).unwrap();
    same(&from, &to);
}

#[test]
fn killed_copies_into_a_folder_go_on() {
    for case in 0..20 {
        let place = tempfile::tempdir().unwrap();
        let (from, to) = (place.path().join("from"), place.path().join("store"));
        let url = format!("file://{}", to.display());
        let mut options = Options::with(Vec::new());
        (options.part, options.at_once) = (100, 1);
        let mut s = stream("copy", case);
        let (a, c) = (2000 + s.below(1000), s.below(500));
        write(&from, &mut s, &[("a", a), ("b/c", c), ("manifest.json", 50)]);
        let clock = std::time::Instant::now();
        let (mut kills, mut limit) = (0, Duration::from_micros(500));
        loop {
            let (from_now, wait) = (clock.elapsed(), limit);
            let done = put_until(|| clock.elapsed() > from_now + wait, &from, &url, &options);
            if let Some(done) = done {
                done.unwrap();
                break;
            }
            if to.join("manifest.json").exists() {
                same(&from, &to);
            }
            (kills, limit) = (kills + 1, limit * 2);
        }
        same(&from, &to);
        assert!(kills < 30);
    }
}

/// What a child is told: the URL and the folder.
const CHILD: &str = "OBJECT_FOLDERS_CHILD";

/// The process that is killed below: it does nothing where it is not that.
#[test]
fn child() {
    let Ok(told) = std::env::var(CHILD) else { return };
    let told: Vec<&str> = told.split('|').collect();
    let mut options = Options::from_environment();
    options.part = told[3].parse().unwrap();
    options.at_once = 1;
    match told[0] {
        "put" => put(Path::new(told[1]), told[2], &options),
        _ => get(told[2], Path::new(told[1]), &options),
    }
    .unwrap();
}

/// Starts a process that puts or gets, and ends it by SIGKILL once the server was asked so often; whether it was alive then.
fn killed_at(
    server: &Server,
    verb: &str,
    folder: &Path,
    url: &str,
    part: u64,
    kind: &str,
    at: usize,
) -> bool {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "kills::child"]).env(CHILD, format!("{verb}|{}|{url}|{part}", folder.display()));
    command.env("AWS_ACCESS_KEY_ID", KEY).env("AWS_SECRET_ACCESS_KEY", SECRET);
    for (key, value) in &server.options().variables {
        command.env(key, value);
    }
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            assert!(status.success(), "{verb} failed");
            return false;
        }
        if server.count(kind) >= at {
            child.kill().unwrap();
            return !child.wait().unwrap().success();
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn processes_that_are_killed_go_on() {
    let server = Server::start();
    server.slow(Duration::from_millis(20));
    let place = tempfile::tempdir().unwrap();
    let (from, to) = (place.path().join("from"), place.path().join("to"));
    let mut s = stream("child", 0);
    write(&from, &mut s, &[("a", 3 * PART + 5), ("manifest.json", 50)]);
    let mut kills = 0;
    while killed_at(&server, "put", &from, "s3://sets/c", PART, "part", server.count("part") + 2) {
        kills += 1;
    }
    assert!(kills >= 1 && server.count("part") <= 4 + kills, "{kills} kills, {} parts", server.count("part"));
    assert_eq!(server.count("begin"), 1);
    let (mut kills, part) = (0, PART / 2);
    while killed_at(&server, "get", &to, "s3://sets/c", part, "get", server.count("get") + 3) {
        assert!(!to.join("manifest.json").exists() && !to.join("a").exists());
        kills += 1;
    }
    // Seven ranges and the manifest.
    assert!(kills >= 1 && server.count("get") <= 8 + kills, "{kills} kills, {} ranges", server.count("get"));
    same(&from, &to);
}

#[test]
fn a_killed_download_goes_on_at_its_length() {
    let server = Server::start();
    let mut s = stream("get", 0);
    let (place, mut options) = (tempfile::tempdir().unwrap(), server.options());
    let (from, to) = (place.path().join("from"), place.path().join("to"));
    write(&from, &mut s, &[("a", 40_321), ("b c/∀", 999), ("manifest.json", 50)]);
    put(&from, "s3://sets/g", &options).unwrap();
    options.part = 1000;
    let mut kills = 0;
    let last = loop {
        let before = std::fs::metadata(to.join("a.partial")).map_or(0, |about| about.len());
        let at = server.count("get") + 1 + usize::try_from(s.below(15)).unwrap();
        match get_until(|| server.count("get") >= at, "s3://sets/g", &to, &options) {
            Some(done) => break (before, done.unwrap()),
            None => kills += 1,
        }
        assert!(!to.join("manifest.json").exists());
    };
    assert!(kills >= 2, "{kills}");
    assert!(server.count("get") <= 43 + kills, "{} ranges, {kills} kills", server.count("get"));
    assert!(last.1.bytes + last.0 <= 40_321 + 999 + 50);
    same(&from, &to);
}

/// Fetches some of the object `a`, as a killed process does.
fn partly(server: &Server, to: &Path, options: &Options) {
    let at = server.count("get") + 10;
    assert_eq!(get_until(|| server.count("get") >= at, "s3://sets/r", to, options), None);
    assert!(std::fs::metadata(to.join("a.partial")).unwrap().len() >= 8000);
}

#[test]
fn an_object_that_was_replaced_is_fetched_anew() {
    let server = Server::start();
    let mut s = stream("replaced", 0);
    let (place, options) = (tempfile::tempdir().unwrap(), server.options());
    let (from, to) = (place.path().join("from"), place.path().join("to"));
    let few = Options { part: 1000, ..options.clone() };
    write(&from, &mut s, &[("a", 30_000)]);
    put(&from, "s3://sets/r", &options).unwrap();
    partly(&server, &to, &few);
    // Between two attempts, by another of the same size.
    write(&from, &mut s, &[("a", 30_000)]);
    put(&from, "s3://sets/r", &options).unwrap();
    assert_eq!(get("s3://sets/r", &to, &few).unwrap().parts, 30);
    same(&from, &to);
    // While it is fetched.
    let other = place.path().join("other");
    write(&other, &mut s, &[("a", 30_000)]);
    let (bucket, bytes) = (server.bucket().join("r/a"), std::fs::read(other.join("a")).unwrap());
    std::fs::remove_file(to.join("a")).unwrap();
    let (ranges, settings) = (std::sync::atomic::AtomicU64::new(0), options.clone());
    server.fail(move |kind, _| {
        let n = if kind == "get" { ranges.fetch_add(1, std::sync::atomic::Ordering::Relaxed) } else { 0 };
        if n == 12 {
            // By another thread: this one serves.
            let (other, settings) = (other.clone(), settings.clone());
            std::fs::write(&bucket, &bytes).unwrap();
            std::thread::spawn(move || put(&other, "s3://sets/r", &settings).unwrap());
        }
        None
    });
    let slow = get("s3://sets/r", &to, &few);
    server.fail_no_more();
    // It was caught in the act and fetched once more; or torn between two versions, and refused.
    match slow {
        Ok(_) => {}
        Err(refusal) => assert!(matches!(refusal.kind, Kind::Changed | Kind::Damaged), "{refusal}"),
    }
    std::thread::sleep(Duration::from_millis(300));
    get("s3://sets/r", &to, &few).unwrap();
    same(&place.path().join("other"), &to);
}

#[test]
fn a_file_that_changed_is_sent_anew() {
    let server = Server::start();
    let mut s = stream("changed", 0);
    let (place, options) = (tempfile::tempdir().unwrap(), server.options());
    let (from, to) = (place.path().join("from"), place.path().join("to"));
    let some = |s: &mut seeded::Stream| write(&from, s, &[("a", 2 * PART + 9)]);
    some(&mut s);
    assert_eq!(put_until(|| server.count("part") >= 2, &from, "s3://sets/f", &options), None);
    // Between two attempts: nothing of the old parts is used, and the store is told.
    some(&mut s);
    assert_eq!(put(&from, "s3://sets/f", &options).unwrap().parts, 3);
    assert_eq!((server.count("begin"), server.count("abort")), (2, 1));
    get("s3://sets/f", &to, &options).unwrap();
    same(&from, &to);
    // While it is sent.
    some(&mut s);
    let (path, other) = (from.join("a"), bytes(&mut s, 2 * PART + 9));
    let parts = std::sync::atomic::AtomicU64::new(0);
    server.fail(move |kind, _| {
        if kind == "part" && parts.fetch_add(1, std::sync::atomic::Ordering::Relaxed) == 1 {
            std::fs::write(&path, &other).unwrap();
        }
        None
    });
    put(&from, "s3://sets/f", &options).unwrap();
    server.fail_no_more();
    get("s3://sets/f", &to, &options).unwrap();
    same(&from, &to);
}

#[test]
fn what_state_or_store_forgot_is_sent_anew() {
    let server = Server::start();
    let mut s = stream("forgot", 0);
    let (place, options) = (tempfile::tempdir().unwrap(), server.options());
    let (from, to) = (place.path().join("from"), place.path().join("to"));
    for (case, url) in ["s3://sets/1", "s3://sets/2", "s3://sets/3"].into_iter().enumerate() {
        write(&from, &mut s, &[("a", 3 * PART + 9)]);
        let at = server.count("part") + 3;
        assert_eq!(put_until(|| server.count("part") >= at, &from, url, &options), None);
        let state = states(&from).pop().unwrap();
        match case {
            // The state is damaged.
            0 => {
                let mut bytes = std::fs::read(&state).unwrap();
                let middle = bytes.len() / 2;
                bytes[middle] ^= 4;
                std::fs::write(&state, bytes).unwrap();
            }
            // The store knows no upload any more.
            1 => assert!(server.forget_uploads() > 0),
            // Nothing happened: the control.
            _ => {}
        }
        let sent = put(&from, url, &options).unwrap();
        assert_eq!(server.count("probe"), case, "a known upload is asked for once");
        let all = case < 2;
        assert!(if all { sent.parts >= 4 } else { sent.parts <= 2 }, "{url}: {sent:?}");
        get(url, &to, &options).unwrap();
        same(&from, &to);
    }
}
