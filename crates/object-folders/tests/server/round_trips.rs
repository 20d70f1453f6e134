//! There and back.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use object_folders::{Kind, Names, Options, Unlisted};

use crate::common::{PART, Server, bytes, get, put, read, same, stream, write};

/// A folder of random names and sizes around the borders of parts.
fn random(folder: &Path, case: u64, part: u64) {
    let mut s = stream("folder", case);
    let folders = ["", "a/", "a b/ü/", "a/deep/er/"];
    let names = ["x", "y z", "∀x₁", "%2e", "q=1&r", "plus+", "a.b.c"];
    let sizes = [0, 1, part - 1, part, part + 1, 2 * part, 3 * part + 7];
    for k in 0..2 + s.below(8) {
        let pick = |s: &mut seeded::Stream, n: usize| usize::try_from(s.below(n as u64)).unwrap();
        let name = format!("{}{}{k}", folders[pick(&mut s, folders.len())], names[pick(&mut s, names.len())]);
        let size = sizes[pick(&mut s, sizes.len())];
        write(folder, &mut s, &[(&name, size)]);
    }
    write(folder, &mut s, &[("manifest.json", 90)]);
}

fn there_and_back(from: &Path, url: &str, to: &Path, options: &Options) {
    let files = read(from).len();
    let put_once = put(from, url, options).unwrap();
    assert_eq!((put_once.names.len(), put_once.there), (files, 0));
    let got = get(url, to, options).unwrap();
    assert_eq!((got.names.len(), got.there), (files, 0));
    same(from, to);
    // What is there already is neither sent nor fetched again.
    let again = put(from, url, options).unwrap();
    assert_eq!((again.there, again.parts), (files as u64, 0));
    let again = get(url, to, options).unwrap();
    assert_eq!((again.there, again.parts), (files as u64, 0));
    same(from, to);
}

#[test]
fn random_folders_come_back_from_a_folder() {
    for case in 0..30 {
        let place = tempfile::tempdir().unwrap();
        let (from, to) = (place.path().join("from"), place.path().join("to"));
        std::fs::create_dir(&from).unwrap();
        random(&from, case, 1000);
        let mut options = Options::with(Vec::new());
        options.part = 1000;
        let url = format!("file://{}/store%20of/sets", place.path().display());
        there_and_back(&from, &url, &to, &options);
        same(&from, &place.path().join("store of/sets"));
    }
}

#[test]
fn folders_come_back_from_a_server() {
    let server = Server::start();
    for case in 0..4 {
        let place = tempfile::tempdir().unwrap();
        let (from, to) = (place.path().join("from"), place.path().join("to"));
        std::fs::create_dir(&from).unwrap();
        random(&from, 100 + case, 1000);
        if case == 0 {
            let mut s = stream("large", case);
            let large = [("n/less", PART - 1), ("n/part", PART), ("n/more", PART + 1), ("two", 2 * PART)];
            write(&from, &mut s, &large);
        }
        let mut options = server.options();
        options.at_once = 3;
        server.forget_log();
        there_and_back(&from, &format!("s3://sets/all/{case} of ∀"), &to, &options);
        let sent: Vec<_> =
            server.log().into_iter().filter(|(kind, _)| ["put", "end"].contains(&kind.as_str())).collect();
        assert!(sent.last().unwrap().1.ends_with("/manifest.json"), "the manifest is last: {sent:?}");
        assert_eq!(server.count("part"), if case == 0 { 4 } else { 0 });
    }
}

#[test]
fn chosen_names_alone_are_moved() {
    let place = tempfile::tempdir().unwrap();
    let (from, to) = (place.path().join("from"), place.path().join("to"));
    let mut s = stream("chosen", 0);
    write(
        &from,
        &mut s,
        &[("parts/0-of-2.part", 70), ("parts/1-of-2.part", 80), ("other", 9), ("a.partial", 4)],
    );
    let url = format!("file://{}/store", place.path().display());
    let mut options = Options::with(Vec::new());
    options.names = Names::Only(["parts/1-of-2.part".to_owned(), "other".to_owned()].into());
    assert_eq!(put(&from, &url, &options).unwrap().names.len(), 2);
    options.names = Names::Ending(".part".to_owned());
    assert_eq!(get(&url, &to, &options).unwrap().names.len(), 1);
    assert_eq!(read(&to).into_keys().collect::<Vec<_>>(), ["parts/1-of-2.part"]);
    options.names = Names::Only(["none".to_owned()].into());
    assert_eq!(put(&from, &url, &options).unwrap_err().kind, Kind::NotFound);
    assert_eq!(get(&url, &to, &options).unwrap_err().kind, Kind::NotFound);
}

/// Objects that another program put have no digest: their version says whether they are here.
#[test]
fn objects_of_strangers_are_fetched_by_their_version() {
    let server = Server::start();
    let mut s = stream("strangers", 0);
    write(&server.bucket().join("p"), &mut s, &[("a", 5000), ("b/c", 300)]);
    let (place, mut options) = (tempfile::tempdir().unwrap(), server.options());
    options.part = 1000;
    let to = place.path().join("to");
    assert_eq!(get("s3://sets/p", &to, &options).unwrap().parts, 6);
    assert_eq!(get("s3://sets/p", &to, &options).unwrap().parts, 0);
    std::fs::write(server.bucket().join("p/b/c"), bytes(&mut s, 300)).unwrap();
    assert_eq!(get("s3://sets/p", &to, &options).unwrap().parts, 1);
    same(&server.bucket().join("p"), &to);
}

/// A manifest is seen only beside what it speaks of, there and here.
#[test]
fn no_manifest_stands_beside_what_it_does_not_speak_of() {
    let server = Server::start();
    let (place, options) = (tempfile::tempdir().unwrap(), server.options());
    let (from, to) = (place.path().join("from"), place.path().join("to"));
    let mut s = stream("manifest", 0);
    write(&from, &mut s, &[("a", 500), ("b", 500), ("manifest.json", 50)]);
    put(&from, "s3://sets/m", &options).unwrap();
    get("s3://sets/m", &to, &options).unwrap();
    write(&from, &mut s, &[("b", 500), ("manifest.json", 50)]);
    let full = |path: &str| path.ends_with("/b");
    server.fail(move |kind, path| (kind == "put" && full(path)).then(|| (403, String::new())));
    put(&from, "s3://sets/m", &options).unwrap_err();
    assert!(!server.bucket().join("m/manifest.json").exists());
    server.fail_no_more();
    put(&from, "s3://sets/m", &options).unwrap();
    server.fail(move |kind, path| (kind == "get" && full(path)).then(|| (403, String::new())));
    get("s3://sets/m", &to, &options).unwrap_err();
    assert!(to.join("b").exists() && !to.join("manifest.json").exists());
    server.fail_no_more();
    get("s3://sets/m", &to, &options).unwrap();
    same(&from, &to);
}

/// A folder that another put while it was fetched is not taken for either.
#[test]
fn a_folder_that_is_replaced_while_it_is_fetched_is_not_taken() {
    let server = Server::start();
    let (place, mut options) = (tempfile::tempdir().unwrap(), server.options());
    let (from, other, to) = (place.path().join("from"), place.path().join("other"), place.path().join("to"));
    let mut s = stream("while", 0);
    write(&from, &mut s, &[("a", 500), ("b", 500), ("manifest.json", 50)]);
    write(&other, &mut s, &[("a", 500), ("b", 500), ("manifest.json", 50)]);
    put(&from, "s3://sets/w", &options).unwrap();
    // When `b` is asked for, `a` is here; it is not given before the other folder is there.
    let (begun, ended) = (AtomicBool::new(false), Arc::new(AtomicBool::new(false)));
    let (folder, settings) = (other.clone(), options.clone());
    server.fail(move |kind, path| {
        if kind != "get" || !path.ends_with("/b") || ended.load(Ordering::Relaxed) {
            return None;
        }
        if !begun.swap(true, Ordering::Relaxed) {
            let (folder, settings, ended) = (folder.clone(), settings.clone(), Arc::clone(&ended));
            std::thread::spawn(move || {
                put(&folder, "s3://sets/w", &settings).unwrap();
                ended.store(true, Ordering::Relaxed);
            });
        }
        Some((500, String::new()))
    });
    options.patience.retries = 100;
    let refusal = get("s3://sets/w", &to, &options).unwrap_err();
    assert_eq!(refusal.kind, Kind::Changed, "{refusal}");
    assert!(to.join("a").exists() && !to.join("manifest.json").exists());
    server.fail_no_more();
    get("s3://sets/w", &to, &options).unwrap();
    same(&other, &to);
    // Without its manifest a folder is not whole.
    std::fs::remove_file(server.bucket().join("w/manifest.json")).unwrap();
    options.unlisted = Unlisted::Refused;
    let refusal = get("s3://sets/w", &place.path().join("new"), &options).unwrap_err();
    assert!(refusal.to_string().contains("not whole") && !place.path().join("new").exists(), "{refusal}");
}
