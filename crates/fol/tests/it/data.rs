//! Data sets: the same bytes whatever the threads, shards and file sizes; every damage is named.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use fol::canon::Canonicalizer;
use fol::data::{Config, Dataset, Manifest, Options, Outcome, Record, Watch, generate};
use fol::error::Kind;
use fol::symbol::SymbolId;

const STREAM: &str = "seed = 3\nlaw = \"seed\"\nstream = { train = 700, val = 90, test = 110 }\niid = 50";
const HASH: &str = "law = \"public\"\nsplit = \"hash\"\ndraws = 3000\niid = 40";

fn config(text: &str, changes: &[(&str, &str)]) -> Config {
    Config::read(text, &crate::common::changes(changes)).unwrap()
}

fn run(config: &Config, folder: &Path, options: Options) -> Result<Outcome, Kind> {
    let watch = Watch { progress: &|_, _| {}, cancelled: &AtomicBool::new(false) };
    generate(config, folder, options, &watch).map_err(|refusal| refusal.kind)
}

fn make(config: &Config, folder: &Path) -> Manifest {
    match run(config, folder, Options::default()) {
        Ok(Outcome::Done(manifest)) => *manifest,
        other => panic!("{other:?}"),
    }
}

fn shard(i: u64, n: u64) -> Options {
    Options { shard: Some((i, n)), force: false }
}

/// Every file of a folder with its bytes.
fn bytes(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap());
    entries.map(|e| (e.file_name().into_string().unwrap(), std::fs::read(e.path()).unwrap())).collect()
}

#[test]
fn threads_shards_and_kills_do_not_change_a_byte() {
    for text in [STREAM, HASH] {
        let plain = tempfile::tempdir().unwrap();
        let plain = plain.path().join("set");
        make(&config(text, &[("threads", "1")]), &plain);

        let other = tempfile::tempdir().unwrap();
        let other = other.path().join("set");
        let with = config(text, &[("threads", "3")]);
        for i in [4, 0, 2] {
            assert!(matches!(run(&with, &other, shard(i, 5)), Ok(Outcome::Part(_))));
        }
        // A part that was cut short, one of another configuration, and what a kill leaves behind.
        let part = other.join("parts/2-of-5.part");
        let whole = std::fs::read(&part).unwrap();
        std::fs::write(&part, &whole[..whole.len() - 100]).unwrap();
        std::fs::write(other.join("parts/3-of-5.part"), b"nonsense").unwrap();
        std::fs::write(other.join("parts/1-of-5.part.tmp"), b"half").unwrap();
        make(&with, &other);
        assert_eq!(bytes(&plain), bytes(&other));
        assert!(!other.join("parts").exists());
    }
}

#[test]
fn file_sizes_change_only_the_cut() {
    let folder = tempfile::tempdir().unwrap();
    let one = make(&config(STREAM, &[]), &folder.path().join("one"));
    let many = make(&config(STREAM, &[("file_formulas", "64")]), &folder.path().join("many"));
    assert_eq!(many.splits.train.files.len(), 700usize.div_ceil(64));
    assert_eq!((one.digest, one.histogram, one.overlap), (many.digest, many.histogram, many.overlap));
    let load = |name: &str| Dataset::open(&folder.path().join(name)).unwrap().split("train").unwrap();
    let (one, many) = (load("one"), load("many"));
    assert!(one.iter().eq(many.iter()));
}

#[test]
fn what_is_read_back_is_what_was_drawn() {
    let folder = tempfile::tempdir().unwrap();
    let config = config(STREAM, &[]);
    let manifest = make(&config, folder.path());
    let set = Dataset::open(folder.path()).unwrap();
    assert_eq!(*set.manifest(), manifest);
    let mut sampler = fol::sample::Sampler::new(&config.law).unwrap();
    let mut scorer = fol::score::Scorer::new(&config.law).unwrap();
    let mut canonicalizer = Canonicalizer::default();
    for (name, purpose) in [("train", "train"), ("val", "val"), ("iid", "iid")] {
        let split = set.split(name).unwrap();
        let family = fol::sample::family(purpose, 3);
        assert_eq!(split.len() as u64, manifest.split(name).unwrap().formulas);
        for (item, (sequence, record)) in split.iter().enumerate() {
            let mut tokens = Vec::new();
            let facts = sampler.sample(&mut family.stream(item as u64), &mut tokens);
            assert_eq!(sequence[1..sequence.len() - 1], tokens);
            assert_eq!((sequence[0], sequence[sequence.len() - 1]), (SymbolId::BOS, SymbolId::EOS));
            let wanted = Record {
                item: item as u64,
                nll: scorer.score(&tokens).unwrap(),
                level: facts.level,
                quantifier_depth: facts.quantifier_depth as u8,
                nodes: facts.nodes as u16,
                multiplicity: 1,
                key: canonicalizer.keys(&tokens).unwrap()[2],
            };
            assert_eq!(*record, wanted);
        }
    }
    assert_eq!(set.split("all").err().map(|r| r.kind), Some(Kind::NotFound));
    let preview = std::fs::read_to_string(folder.path().join("preview.jsonl")).unwrap();
    assert_eq!(preview.lines().count(), 700);
    assert!(manifest.optimum.is_some());
    assert_eq!(manifest.histogram.iter().sum::<u64>(), manifest.splits.train.tokens);
}

#[test]
fn a_hash_split_keeps_one_item_of_each_class_on_one_side() {
    let folder = tempfile::tempdir().unwrap();
    let manifest = make(&config(HASH, &[]), folder.path());
    assert_eq!(manifest.draws.made, 3000);
    assert_eq!(manifest.draws.kept + manifest.draws.duplicates, 3000);
    for pair in ["train/val", "train/test", "val/test"] {
        let shares = manifest.overlap[pair];
        assert_eq!((shares.k0, shares.k1, shares.k2), (0.0, 0.0, 0.0));
    }
    assert!(manifest.overlap["train/iid"].k2 > 0.0);
    let set = Dataset::open(folder.path()).unwrap();
    let mut keys = BTreeSet::new();
    let mut drawn = 0;
    for name in ["train", "val", "test"] {
        let split = set.split(name).unwrap();
        for (_, record) in split.iter() {
            assert!(keys.insert(record.key));
            assert_eq!(fol::split(fol::bucket(&record.key), [800, 100, 100]), name);
            drawn += u64::from(record.multiplicity);
        }
    }
    assert_eq!(drawn, 3000);
    assert_eq!(keys.len() as u64, manifest.draws.kept);
}

#[test]
fn another_data_set_is_not_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let first = make(&config(STREAM, &[]), folder.path());
    let again = make(&config(STREAM, &[("threads", "2"), ("name", "x")]), folder.path());
    assert_eq!(first, again);
    let other = config(STREAM, &[("stream.train", "10"), ("file_formulas", "5")]);
    assert_eq!(run(&other, folder.path(), Options::default()), Err(Kind::Exists));
    let Ok(Outcome::Done(forced)) = run(&other, folder.path(), Options { shard: None, force: true }) else {
        panic!()
    };
    assert_eq!(forced.splits.train.files.len(), 2);
    Dataset::open(folder.path()).unwrap();
}

#[test]
fn damage_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let kind = || Dataset::open(folder.path()).err().map(|refusal| refusal.kind);
    assert_eq!(kind(), Some(Kind::NotFound));
    make(&config(STREAM, &[]), folder.path());
    assert_eq!(kind(), None);
    let damage = |name: &str, change: &dyn Fn(&mut Vec<u8>), wanted: Kind| {
        let path = folder.path().join(name);
        let whole = std::fs::read(&path).unwrap();
        let mut bytes = whole.clone();
        change(&mut bytes);
        std::fs::write(&path, bytes).unwrap();
        assert_eq!(kind(), Some(wanted), "{name}");
        std::fs::write(&path, whole).unwrap();
    };
    for name in ["train-00000.tok", "val-00000.off", "iid-00000.rec"] {
        damage(name, &|bytes| bytes.truncate(bytes.len() / 2), Kind::Truncated);
        damage(name, &|bytes| bytes[9] ^= 1, Kind::DigestMismatch);
        damage(name, &|bytes| bytes.push(0), Kind::DigestMismatch);
    }
    damage("manifest.json", &|bytes| bytes.truncate(20), Kind::BadManifest);
    damage("manifest.json", &|bytes| *bytes = b"{\"schema\":\"x\"}".to_vec(), Kind::BadManifest);
    std::fs::remove_file(folder.path().join("test-00000.rec")).unwrap();
    assert_eq!(kind(), Some(Kind::NotFound));
}

#[test]
fn configurations_are_refused_with_reason() {
    let folder = tempfile::tempdir().unwrap();
    let read = |text: &str| Config::read(text, &[]).map(drop).map_err(|r| (r.kind, r.help));
    assert_eq!(read("drawz = 5"), Err((Kind::UnknownKey, Some("the nearest known key is draws".to_owned()))));
    assert_eq!(read("split = 5").unwrap_err().0, Kind::BadValue);
    assert_eq!(read("weights = [1,2,3]").unwrap_err().0, Kind::BadValue);
    assert_eq!(read("law = \"nothing\"").unwrap_err().0, Kind::NotFound);
    assert_eq!(read("[law]\npreset = \"pr\"\nsizes = [2, 5]"), Ok(()));
    let dedup = config(STREAM, &[("dedup", "K1")]);
    assert_eq!(run(&dedup, folder.path(), Options::default()), Err(Kind::BadValue));
    let long = config(STREAM, &[("law", "public"), ("max_tokens", "100")]);
    assert_eq!(run(&long, folder.path(), Options::default()), Err(Kind::TooLong));
    assert_eq!(run(&config(STREAM, &[]), folder.path(), shard(3, 3)), Err(Kind::BadValue));
    let empty = config(STREAM, &[("law", "pr"), ("law.sizes", "[1,5]")]);
    assert_eq!(run(&empty, folder.path(), Options::default()), Err(Kind::EmptySize));
}

#[test]
fn a_run_can_be_watched_and_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let (seen, cancelled) = (AtomicU64::new(0), AtomicBool::new(false));
    let progress = |done: u64, total: u64| {
        assert_eq!(total, 950);
        seen.store(done, Ordering::Relaxed);
    };
    let config = config(STREAM, &[]);
    let watch = Watch { progress: &progress, cancelled: &cancelled };
    cancelled.store(true, Ordering::Relaxed);
    let stopped = generate(&config, folder.path(), Options::default(), &watch);
    assert_eq!(stopped, Ok(Outcome::Cancelled));
    assert_eq!(Dataset::open(folder.path()).err().map(|r| r.kind), Some(Kind::NotFound));
    cancelled.store(false, Ordering::Relaxed);
    generate(&config, folder.path(), Options::default(), &watch).unwrap();
    assert_eq!(seen.load(Ordering::Relaxed), 950);
}

#[test]
fn a_merge_can_be_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let config = config(STREAM, &[("law", "public"), ("stream.train", "40000")]);
    assert!(matches!(run(&config, folder.path(), shard(0, 1)), Ok(Outcome::Part(_))));
    let (cancelled, ended) = (AtomicBool::new(false), AtomicBool::new(false));
    let watch = Watch { progress: &|_, _| {}, cancelled: &cancelled };
    let outcome = std::thread::scope(|scope| {
        scope.spawn(|| {
            // The first file of the merge is there: it has begun.
            let begun = || {
                let files = std::fs::read_dir(folder.path()).unwrap().flatten();
                files.into_iter().any(|file| file.path().extension().is_some_and(|end| end == "tmp"))
            };
            while !begun() && !ended.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
            cancelled.store(true, Ordering::Relaxed);
        });
        let outcome = generate(&config, folder.path(), Options::default(), &watch);
        ended.store(true, Ordering::Relaxed);
        outcome
    });
    assert_eq!(outcome, Ok(Outcome::Cancelled));
    assert_eq!(Dataset::open(folder.path()).err().map(|r| r.kind), Some(Kind::NotFound));
    // What is left behind is in nobody's way.
    make(&config, folder.path());
    Dataset::open(folder.path()).unwrap();
    assert!(bytes(folder.path()).keys().all(|name| !name.ends_with(".tmp")));
}

#[test]
fn laws_with_statements_have_no_optimum() {
    let folder = tempfile::tempdir().unwrap();
    let manifest = make(&config(STREAM, &[("law", "full"), ("law.max_tokens", "60")]), folder.path());
    assert!(manifest.optimum.is_none());
    assert!(manifest.draws.redrawn > 0);
    assert!(manifest.splits.train.levels["0"] > 0);
    Dataset::open(folder.path()).unwrap().split("train").unwrap();
}
