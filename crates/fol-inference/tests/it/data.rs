//! Data sets: whole or not at all, the same whatever made them, and refused where they are not what they say.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use fol::error::{Kind, Refusal};
use fol_inference::config::Config;
use fol_inference::data::{Dataset, Options, Outcome, Watch, generate};
use fol_inference::judge::judge;
use fol_prover::Limit;

const TEXT: &str = "stream = { train = 130, val = 20, test = 20, deep = 12 }\nfile_instances = 50\nseed = 4\nmax_tokens = 512\n";

fn make(config: &Config, folder: &Path, options: Options) -> Result<Outcome, Refusal> {
    generate(config, folder, options, &Watch { progress: &|_, _| {}, cancelled: &|| false })
}

fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| {
            (entry.file_name().into_string().unwrap(), std::fs::read(entry.path()).unwrap_or_default())
        })
        .collect()
}

#[test]
fn shards_threads_and_interruptions_do_not_matter() {
    let config = Config::read(TEXT, &[]).unwrap();
    let folders = [(); 3].map(|()| tempfile::tempdir().unwrap());
    let [whole, shards, stopped] = folders.each_ref().map(|folder| folder.path());
    let one = Config { threads: 1, ..config.clone() };
    let Outcome::Done(manifest) = make(&one, whole, Options::default()).unwrap() else { panic!() };
    for shard in [1, 0] {
        let options = Options { shard: Some((shard, 2)), ..Options::default() };
        let made = make(&config, shards, options).unwrap();
        assert_eq!(matches!(made, Outcome::Done(_)), shard == 0, "{made:?}");
    }
    // It is stopped in each file once, and goes on.
    let mut stops = 0;
    loop {
        let left = AtomicU64::new(60);
        let cancelled =
            || left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1)).is_err();
        let watch = Watch { progress: &|_, _| {}, cancelled: &cancelled };
        match generate(&config, stopped, Options::default(), &watch).unwrap() {
            Outcome::Cancelled => stops += 1,
            Outcome::Done(_) => break,
            Outcome::Part(_) => panic!(),
        }
    }
    assert!(stops > 1, "{stops}");
    let wanted = files(whole);
    assert_eq!(wanted.len(), 3 + 1 + 1 + 1 + 1, "{:?}", wanted.keys());
    assert_eq!(files(shards), wanted);
    assert_eq!(files(stopped), wanted);
    // Once more nothing is done.
    assert_eq!(make(&config, whole, Options::default()).unwrap(), Outcome::Done(manifest.clone()));
    // The counts are those of the lines.
    let data = Dataset::open(whole).unwrap();
    assert_eq!(data.manifest(), &*manifest);
    for (split, count) in [("train", 130), ("val", 20), ("test", 20), ("deep", 12)] {
        let lines = data.split(split, usize::MAX).unwrap();
        let entry = &manifest.splits[split].counts;
        assert_eq!((lines.len() as u64, entry.instances), (count, count));
        assert_eq!(lines.iter().map(|l| l.tokens.len() as u64 + 2).sum::<u64>(), entry.tokens);
        for (number, line) in lines.iter().enumerate() {
            assert_eq!(line.item, number as u64);
            assert_eq!(line.depth > 5, split == "deep");
            let task = line.task().unwrap();
            assert!(judge(&task, None, &line.symbols().unwrap(), Limit::default()).valid);
        }
    }
    assert!(manifest.splits["train"].counts.proved_again > 0);
    assert!(data.split("iid", 1).is_err());
    // The seed is in the bytes.
    let other = tempfile::tempdir().unwrap();
    make(&Config { seed: 5, ..config }, other.path(), Options::default()).unwrap();
    assert_ne!(files(other.path())["train-00000.jsonl"], wanted["train-00000.jsonl"]);
}

#[test]
fn damaged_and_other_data_sets_are_refused() {
    let config = Config::read(TEXT, &[("stream.train".to_owned(), "20".to_owned())]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    make(&config, folder.path(), Options::default()).unwrap();
    let other = Config { seed: 9, ..config.clone() };
    assert_eq!(make(&other, folder.path(), Options::default()).unwrap_err().kind, Kind::Exists);
    let force = Options { force: true, ..Options::default() };
    assert!(matches!(make(&other, folder.path(), force).unwrap(), Outcome::Done(_)));
    let path = folder.path().join("val-00000.jsonl");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replacen("\"item\":3", "\"item\":4", 1)).unwrap();
    assert_eq!(Dataset::open(folder.path()).unwrap_err().kind, Kind::DigestMismatch);
    std::fs::write(folder.path().join("manifest.json"), "{}").unwrap();
    assert_eq!(Dataset::open(folder.path()).unwrap_err().kind, Kind::BadManifest);
    assert_eq!(Dataset::open(&folder.path().join("none")).unwrap_err().kind, Kind::NotFound);
    let shard = Options { shard: Some((2, 2)), ..Options::default() };
    assert_eq!(make(&config, folder.path(), shard).unwrap_err().kind, Kind::BadValue);
}

/// Configurations that are refused: kind, and what the message names.
#[test]
fn nonsense_is_refused_where_it_stands() {
    for (text, kind, named) in [
        ("seed = 1\nsead = 2\n", Kind::UnknownKey, "line 2, column 1"),
        ("seed = \"x\"", Kind::BadValue, "line 1, column 8"),
        ("seed =", Kind::BadValue, "line 1"),
        ("formats = { chat = 1 }", Kind::UnknownKey, "chat"),
        ("order = \"answer-first\"", Kind::BadValue, "order: \"answer-first\""),
        ("rules = [\"MP\", \"MX\"]", Kind::BadValue, "rules: \"MX\""),
        ("rules = [\"EQ-SUB\"]", Kind::BadValue, "rules: EQ-SUB"),
        ("formats = { conclusion = 1, steps = 1 }", Kind::BadValue, "formats: "),
        ("depths = [[99, 1]]", Kind::BadValue, "depths: 99"),
        ("deep = [[99, 1]]", Kind::BadValue, "deep: 99"),
        ("law = \"full\"", Kind::BadValue, "law: "),
        ("law = 3", Kind::BadValue, "law: "),
        ("law = \"unifrom\"", Kind::BadValue, "unifrom"),
        ("file_instances = 0", Kind::BadValue, "file_instances: "),
        ("stream = { train = 5000000000 }", Kind::BadValue, "stream.train: "),
        ("threads = 9999", Kind::BadValue, "threads: "),
    ] {
        let refused = Config::read(text, &[]).and_then(|config| {
            make(&config, tempfile::tempdir().unwrap().path(), Options::default()).map(drop)
        });
        let refusal = refused.unwrap_err();
        assert!(refusal.message.contains(named), "{text}: {refusal}");
        assert!(refusal.kind == kind || named == "unifrom", "{text}: {refusal}");
    }
    let set = |key: &str, value: &str| Config::read("", &[(key.to_owned(), value.to_owned())]);
    // What a table of formats does not name has no weight.
    assert_eq!(set("formats.term", "2").unwrap().space.formats, [0, 0, 0, 2]);
    assert_eq!(set("seed", "7").unwrap().seed, 7);
    assert!(set("seed.x", "7").is_err() && set("sead", "7").is_err());
}
