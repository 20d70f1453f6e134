//! What cannot be done is named: where, what, and how to mend it, in time and without secrets.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use object_folders::{Kind, Options, Patience, Refusal};

use crate::common::{KEY, PART, SECRET, Server, get, options_at, put, read, stream, write};

/// The refusal of both ways, which are the same kind; no secret is in it.
fn both(url: &str, options: &Options, kind: Kind, words: &[&str]) {
    let place = tempfile::tempdir().unwrap();
    let from = place.path().join("from");
    write(&from, &mut stream("refused", 0), &[("a", 100), ("manifest.json", 10)]);
    let refusals =
        [put(&from, url, options).unwrap_err(), get(url, &place.path().join("to"), options).unwrap_err()];
    for refusal in refusals {
        named(&refusal, kind, words);
    }
}

fn named(refusal: &Refusal, kind: Kind, words: &[&str]) {
    let text = refusal.to_string();
    assert_eq!(refusal.kind, kind, "{text}");
    for word in words {
        assert!(text.contains(word), "{word:?} is not in: {text}");
    }
    for secret in [KEY, SECRET] {
        assert!(!text.contains(secret), "{text}");
    }
}

#[test]
fn rights_and_buckets_that_are_missing_are_named() {
    let server = Server::start();
    let wrong = server.options_of(KEY, "another secret");
    both(
        "s3://sets/x",
        &wrong,
        Kind::NoRights,
        &["s3://sets/x", "SignatureDoesNotMatch", "AWS_SECRET_ACCESS_KEY"],
    );
    both("s3://none/x", &server.options(), Kind::NoBucket, &["s3://none/x", "NoSuchBucket", "bucket"]);
    // No key at all, and no machine that gives one.
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut keyless = server.options();
    keyless.variables.retain(|(key, _)| !key.contains("KEY"));
    keyless.variables.push(("AWS_METADATA_ENDPOINT".to_owned(), format!("http://{nobody}")));
    both("s3://sets/x", &keyless, Kind::NoRights, &["s3://sets/x", "set AWS_ACCESS_KEY_ID"]);
    // Allowed to look, not to write.
    server.fail(|kind, _| {
        let body = "<Error><Code>AccessDenied</Code><Message>Access Denied</Message><AWSAccessKeyId>the-key</AWSAccessKeyId></Error>";
        (kind == "put").then(|| (403, body.to_owned()))
    });
    let place = tempfile::tempdir().unwrap();
    write(place.path(), &mut stream("looks", 0), &[("a", 100)]);
    let refusal = put(place.path(), "s3://sets/x", &server.options()).unwrap_err();
    named(&refusal, Kind::NoRights, &["s3://sets/x/a", "AccessDenied"]);
}

#[test]
fn a_full_store_is_named_and_goes_on_later() {
    let server = Server::start();
    let (place, options) = (tempfile::tempdir().unwrap(), server.options());
    let (from, to) = (place.path().join("from"), place.path().join("to"));
    write(&from, &mut stream("full", 0), &[("a", 5 * PART), ("b", 5), ("manifest.json", 5)]);
    let quota = "<Error><Code>QuotaExceeded</Code><Message>no room</Message></Error>";
    let answers = [(507, "", Kind::Full), (403, quota, Kind::Full), (500, "", Kind::Server)];
    for (status, body, kind) in answers {
        // One part more each time, and then no room.
        let parts = std::sync::atomic::AtomicU64::new(0);
        server.fail(move |kind, _| {
            let n = if kind == "part" { parts.fetch_add(1, std::sync::atomic::Ordering::Relaxed) } else { 0 };
            (n > 0).then(|| (status, body.to_owned()))
        });
        let refusal = put(&from, "s3://sets/f", &options).unwrap_err();
        named(&refusal, kind, &["s3://sets/f/a", "part", "the same command goes on"]);
        assert_eq!(read(&server.bucket()).len(), 0);
    }
    server.fail_no_more();
    // Three parts went through, one each time.
    assert_eq!(put(&from, "s3://sets/f", &options).unwrap().parts, 4);
    assert_eq!(server.count("begin"), 1);
    get("s3://sets/f", &to, &options).unwrap();
    crate::common::same(&from, &to);
}

#[test]
fn who_never_answers_is_given_up_in_time() {
    // It is connected to and says nothing.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut options = options_at(&format!("http://{}", silent.local_addr().unwrap()), KEY, SECRET);
    let limit = Duration::from_secs(3);
    options.patience = Patience { retries: 20, ..Patience::of(limit) };
    let clock = Instant::now();
    both("s3://sets/x", &options, Kind::Unreachable, &["s3://sets/x", "AWS_ENDPOINT", "goes on"]);
    // Two refusals, with a second each for a loaded machine.
    assert!(clock.elapsed() < 2 * limit + Duration::from_secs(2), "{:?}", clock.elapsed());
    assert!(clock.elapsed() > limit, "it was not tried again: {:?}", clock.elapsed());
    // Nobody is there.
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let options =
        Options { patience: options.patience, ..options_at(&format!("http://{nobody}"), KEY, SECRET) };
    both("s3://sets/x", &options, Kind::Unreachable, &["s3://sets/x"]);
}

#[test]
fn it_stops_when_it_is_told_to() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let options = options_at(&format!("http://{}", silent.local_addr().unwrap()), KEY, SECRET);
    let place = tempfile::tempdir().unwrap();
    let cancelled = std::sync::atomic::AtomicBool::new(false);
    let watch = object_folders::Watch { progress: &|_, _| {}, cancelled: &cancelled };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(300));
            cancelled.store(true, std::sync::atomic::Ordering::Relaxed);
        });
        let clock = Instant::now();
        let refusal = object_folders::get("s3://sets/x", place.path(), &options, &watch).unwrap_err();
        assert_eq!(refusal.kind, Kind::Stopped);
        assert!(clock.elapsed() < Duration::from_secs(3), "{:?}", clock.elapsed());
    });
}

#[test]
fn names_that_would_leave_the_folder_are_refused() {
    let server = Server::start();
    for key in ["p/../../out", "p//etc/out", "p/a/../../../out", "p/a\\..\\out", "p/a&#10;b", "p/x#1"] {
        server.fail(move |kind, _| {
            let object = format!(
                "<Contents><Key>{key}</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified><Size>3</Size></Contents>"
            );
            let text = format!(
                "<?xml version=\"1.0\"?><ListBucketResult><Name>sets</Name><Prefix>p/</Prefix><KeyCount>1</KeyCount>\
                 <IsTruncated>false</IsTruncated>{object}</ListBucketResult>"
            );
            Some(if kind == "list" { (200, text) } else { (200, "out".to_owned()) })
        });
        let place = tempfile::tempdir().unwrap();
        let to = place.path().join("deep/deeper");
        let refusal = get("s3://sets/p", &to, &server.options()).unwrap_err();
        assert_eq!(refusal.kind, Kind::BadName, "{key}: {refusal}");
        assert!(read(place.path()).is_empty(), "{key}");
    }
}

#[test]
fn urls_that_cannot_be_meant_are_refused() {
    let options = Options::with(Vec::new());
    for (url, words) in [
        ("sets", "no URL"),
        ("gs://sets/x", "gs is no scheme"),
        ("s3:///x", "no bucket"),
        ("s3://sets/x?versionId=3", "no ?"),
        ("s3://the-key:the-secret-of-the-test@sets/x", "AWS_ACCESS_KEY_ID"),
    ] {
        both(url, &options, Kind::BadUrl, &[words]);
    }
    let place = tempfile::tempdir().unwrap();
    let nowhere = format!("file://{}/none", place.path().display());
    assert_eq!(get(&nowhere, &place.path().join("to"), &options).unwrap_err().kind, Kind::NotFound);
    assert!(!format!("{:?}", options_at("http://h", KEY, SECRET)).contains(SECRET));
}

/// The bytes of an object that rotted in its store are not taken.
#[test]
fn what_is_not_what_was_put_is_refused() {
    let server = Server::start();
    let (place, options) = (tempfile::tempdir().unwrap(), server.options());
    let (from, to) = (place.path().join("from"), place.path().join("to"));
    write(&from, &mut stream("rot", 0), &[("a", 1000), ("manifest.json", 10)]);
    put(&from, "s3://sets/d", &options).unwrap();
    let object = server.bucket().join("d/a");
    let mut bytes = std::fs::read(&object).unwrap();
    bytes[500] ^= 1;
    std::fs::write(&object, bytes).unwrap();
    let refusal = get("s3://sets/d", &to, &options).unwrap_err();
    named(&refusal, Kind::Damaged, &["s3://sets/d/a", "put it again"]);
    assert_eq!(read(&to).len(), 0);
}

#[test]
fn a_folder_that_another_fetches_into_is_left_alone() {
    let place = tempfile::tempdir().unwrap();
    let (from, to) = (place.path().join("from"), place.path().join("to"));
    write(&from, &mut stream("busy", 0), &[("a", 100)]);
    std::fs::create_dir(&to).unwrap();
    let url = format!("file://{}", from.display());
    let lock = std::fs::File::create(to.join(".lock")).unwrap();
    lock.lock().unwrap();
    let refusal = get(&url, &to, &Options::with(Vec::new())).unwrap_err();
    assert_eq!(refusal.kind, Kind::Busy);
    drop(lock);
    get(&url, &to, &Options::with(Vec::new())).unwrap();
}
