//! Data sets: the same bytes whatever the threads, shards and file sizes; every damage is named.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use fol::canon::Canonicalizer;
use fol::data::{
    Composition, Config, Dataset, HeldOut, Manifest, Options, Outcome, Record, Watch, generate, join,
};
use fol::error::Kind;
use fol::symbol::SymbolId;

const STREAM: &str = "seed = 3\nlaw = \"seed\"\nstream = { train = 700, val = 90, test = 110 }\niid = 50";
const HELD: &str = "law = \"public\"\nsplit = \"held-out\"\ndraws = 3000\niid = 40\ndedup = \"none\"\n\
                    hold_out = [\"EXISTS IMPLIES\", \"PRED 2 0 0\"]";
const APART: &str = "law = \"public\"\nsplit = \"divergence\"\ndraws = 3000\niid = 40\ndedup = \"none\"";
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
    for text in [STREAM, HASH, HELD, APART] {
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

/// Parts of several machines, in folders and alone, joined in any order: the bytes of one machine.
#[test]
fn parts_that_were_made_elsewhere_are_joined() {
    let watch = Watch { progress: &|_, _| {}, cancelled: &AtomicBool::new(false) };
    for text in [STREAM, HASH] {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        let config = config(text, &[]);
        make(&config, &at("one/set"));
        for (machine, i) in [("c", 4), ("a", 0), ("b", 2), ("a", 3), ("b", 1)] {
            assert!(matches!(run(&config, &at(machine), shard(i, 5)), Ok(Outcome::Part(_))));
        }
        // A part by itself, under another name: what it is stands at its head.
        std::fs::rename(at("c/parts/4-of-5.part"), at("last.part")).unwrap();
        std::fs::create_dir(at("joined")).unwrap();
        let sources = [at("last.part"), at("b"), at("a/parts"), at("b/parts")];
        let joined = |sources: &[PathBuf]| {
            join(&config, sources, &at("joined/set"), Options::default(), &watch)
                .map_err(|e| (e.kind, e.message))
        };
        let without = |sources: &[PathBuf]| joined(sources).unwrap_err();
        assert_eq!(
            without(&sources[1..2]),
            (Kind::BadManifest, "of 5 shards these are missing: 0, 3 to 4".to_owned())
        );
        assert_eq!(without(&[at("nowhere")]).0, Kind::NotFound);
        std::fs::create_dir(at("empty")).unwrap();
        assert!(without(&[at("empty")]).1.contains("no part"));

        // Everything that is wrong, at once.
        std::fs::create_dir(at("bad")).unwrap();
        let part = std::fs::read(at("b/parts/1-of-5.part")).unwrap();
        std::fs::write(at("bad/twice.part"), &part).unwrap();
        std::fs::write(at("bad/short.part"), &part[..part.len() - 9]).unwrap();
        let mut flipped = part.clone();
        flipped[part.len() / 2] ^= 1;
        std::fs::write(at("bad/flipped.part"), &flipped).unwrap();
        std::fs::write(at("bad/other.part"), b"nonsense").unwrap();
        let mut stranger = part.clone();
        stranger[20] = if stranger[20] == b'0' { b'1' } else { b'0' };
        let content = stranger.len() - 32;
        let digest = *blake3::hash(&stranger[..content]).as_bytes();
        stranger[content..].copy_from_slice(&digest);
        std::fs::write(at("bad/stranger.part"), &stranger).unwrap();
        assert!(matches!(run(&config, &at("three"), shard(1, 3)), Ok(Outcome::Part(_))));
        let all = [sources.to_vec(), vec![at("bad"), at("three")]].concat();
        let (kind, message) = without(&all);
        assert_eq!(kind, Kind::DigestMismatch);
        for words in [
            "other.part is no part",
            "short.part (shard 1 of 5) is damaged or cut short",
            "flipped.part (shard 1 of 5) is damaged or cut short",
            "stranger.part belongs to another configuration",
            "1-of-3.part is of 3",
            "shard 1 of 5 is there 2 times",
            "twice.part",
        ] {
            assert!(message.contains(words), "{words}: {message}");
        }
        assert!(!at("joined/set").exists(), "nothing is written before the parts are judged");

        assert!(matches!(joined(&sources), Ok(Outcome::Done(_))));
        assert_eq!(bytes(&at("one/set")), bytes(&at("joined/set")));
        assert!(at("last.part").is_file() && at("b/parts/2-of-5.part").is_file(), "parts stay");
        assert!(matches!(joined(&sources[..1]), Ok(Outcome::Done(_))), "what is there is left alone");
        // A part that was renamed is not taken for another shard by a run that makes what is missing.
        std::fs::rename(at("b/parts/1-of-5.part"), at("b/parts/0-of-5.part")).unwrap();
        make(&config, &at("b"));
        let (one, b) = (bytes(&at("one/set")), bytes(&at("b")));
        let texts = |files: &BTreeMap<String, Vec<u8>>| files["train-00000.tok"].clone();
        assert_eq!(texts(&one), texts(&b));
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

    // Read from where they lie, in any order, they are the same; more files than are kept open, forwards and back.
    let open = |name: &str| Dataset::open(&folder.path().join(name)).unwrap().reader("train").unwrap();
    for (name, config) in [("one", "64"), ("many", "64"), ("most", "9")] {
        if name == "most" {
            make(&self::config(STREAM, &[("file_formulas", config)]), &folder.path().join(name));
        }
        let mut reader = open(name);
        assert_eq!(reader.len(), 700);
        let lengths: Vec<u32> = one.iter().map(|(tokens, _)| tokens.len() as u32).collect();
        assert_eq!(reader.lengths().unwrap(), lengths);
        for i in (0..700).rev().chain([3, 699, 0, 64, 63]) {
            assert_eq!(reader.read(i).unwrap(), one.tokens(i as usize), "{name} {i}");
        }
        assert_eq!(reader.read(700).unwrap_err().kind, Kind::NotFound);
        let mut reader = reader.first(65);
        assert_eq!(reader.lengths().unwrap(), lengths[..65]);
        assert!(reader.read(64).is_ok() && reader.read(65).is_err());
    }
}

/// A file that loses its end, or is another one, after it was verified.
#[test]
fn a_set_that_changes_while_it_is_read_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    make(&config(STREAM, &[]), folder.path());
    let path = |end: &str| folder.path().join(format!("train-00000.{end}"));
    let whole = ["tok", "off"].map(|end| std::fs::read(path(end)).unwrap());
    let set = Dataset::open(folder.path()).unwrap();
    let refusal = || {
        let mut reader = set.reader("train").unwrap();
        let lengths = reader.lengths().err();
        ((0..reader.len()).find_map(|i| reader.read(i).err()).map(|r| r.kind), lengths.map(|r| r.kind))
    };
    assert_eq!(refusal(), (None, None));
    std::fs::write(path("tok"), &whole[0][..whole[0].len() - 2]).unwrap();
    assert_eq!(refusal(), (Some(Kind::Truncated), None));
    std::fs::write(path("tok"), vec![0xff; whole[0].len()]).unwrap();
    assert_eq!(refusal(), (Some(Kind::BadManifest), None));
    std::fs::write(path("tok"), &whole[0]).unwrap();
    std::fs::write(path("off"), &whole[1][..whole[1].len() - 3]).unwrap();
    assert_eq!(refusal(), (Some(Kind::Truncated), Some(Kind::Truncated)));
    std::fs::write(path("off"), vec![0xff; whole[1].len()]).unwrap();
    assert_eq!(refusal(), (Some(Kind::BadManifest), Some(Kind::BadManifest)));
    let mut turned = whole[1].clone();
    turned[8..24].rotate_left(8);
    std::fs::write(path("off"), turned).unwrap();
    assert_eq!(refusal(), (Some(Kind::BadManifest), Some(Kind::BadManifest)));
    std::fs::remove_file(path("off")).unwrap();
    assert_eq!(refusal(), (Some(Kind::NotFound), Some(Kind::NotFound)));
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

/// The compositions of a split.
fn compositions(folder: &Path, split: &str) -> Vec<Composition> {
    let split = Dataset::open(folder).unwrap().split(split).unwrap();
    let inner = |sequence: &[SymbolId]| fol::decode(&sequence[1..sequence.len() - 1]).unwrap();
    split.iter().map(|(sequence, _)| Composition::of(&inner(sequence))).collect()
}

#[test]
fn what_is_held_out_is_in_test_and_nowhere_else() {
    let folder = tempfile::tempdir().unwrap();
    let manifest = make(&config(HELD, &[]), folder.path());
    assert_eq!(manifest.hold_out, ["EXISTS IMPLIES", "PRED 2 0 0"]);
    assert_eq!(manifest.draws.kept, 3000);
    let held: Vec<HeldOut> = manifest.hold_out.iter().map(|held| HeldOut::read(held).unwrap()).collect();
    let has_one = |text: &Composition| held.iter().any(|held| held.is_in(text));
    for split in ["train", "val"] {
        let texts = compositions(folder.path(), split);
        assert!(texts.len() > 100 && !texts.iter().any(has_one), "{split}");
    }
    let test = compositions(folder.path(), "test");
    assert!(test.len() > 50 && test.iter().all(has_one));
    assert!(held.iter().all(|held| test.iter().any(|text| held.is_in(text))));
}

/// A pair whose parts the law hardly writes would test the parts.
#[test]
fn what_is_held_out_must_have_frequent_components() {
    let folder = tempfile::tempdir().unwrap();
    for (held, part) in [
        // No truth is ever written, so nothing has the pair.
        ("[\"NOT TRUE\"]", "no formula"),
        // P2 always has its only two patterns taken away.
        ("[\"PRED 2 0\", \"PRED 2 0 1\", \"PRED 2 0 0\"]", "one of a hundred"),
    ] {
        let config = config(HELD, &[("hold_out", held)]);
        let watch = Watch { progress: &|_, _| {}, cancelled: &AtomicBool::new(false) };
        let refusal =
            generate(&config, folder.path(), Options { shard: None, force: true }, &watch).unwrap_err();
        assert_eq!(refusal.kind, Kind::BadValue);
        assert!(refusal.to_string().contains(part), "{refusal}");
    }
}

#[test]
fn a_bucket_of_skeletons_leaves_none_in_common() {
    let folder = tempfile::tempdir().unwrap();
    let text = format!("{HASH}\ndedup = \"none\"\nbucket = \"K3\"");
    let manifest = make(&config(&text, &[]), folder.path());
    assert_eq!(manifest.draws.kept, 3000);
    for pair in ["train/val", "train/test", "val/test"] {
        assert_eq!(manifest.overlap[pair].k3.to_bits(), 0.0_f64.to_bits(), "{pair}");
    }
    // By the usual bucket some are.
    let usual = make(&config(&text, &[("bucket", "K2")]), &folder.path().join("usual"));
    assert!(usual.overlap["train/test"].k3 > 0.0);
    // Where nothing new is said the digest of a configuration is what it was.
    let said = config(&text, &[("bucket", "K2")]);
    assert_eq!(said.digest(), config(&format!("{HASH}\ndedup = \"none\""), &[]).digest());
    assert_ne!(said.digest(), config(&text, &[]).digest());
}

#[test]
fn compounds_are_apart_and_atoms_alike() {
    let folder = tempfile::tempdir().unwrap();
    let manifest = make(&config(APART, &[]), folder.path());
    let found = manifest.divergence.unwrap();
    assert!(found.atoms <= 0.02 && found.compounds > 0.3, "{found:?}");
    assert!(manifest.draws.left_out > 0);
    assert_eq!(manifest.draws.kept + manifest.draws.left_out, 3000);
    // By the definition, on what was written: training is train and val together.
    let (mut train, test) = (compositions(folder.path(), "train"), compositions(folder.path(), "test"));
    train.extend(compositions(folder.path(), "val"));
    assert!(test.iter().all(|text| !text.compounds.is_empty()));
    let shares = |texts: &[Composition]| {
        let mut counts = BTreeMap::new();
        for (rule, times) in texts.iter().flat_map(|text| &text.atoms) {
            *counts.entry(*rule).or_insert(0.0) += f64::from(*times);
        }
        let total: f64 = counts.values().sum();
        counts.into_iter().map(|(rule, n)| (rule, n / total)).collect::<BTreeMap<_, f64>>()
    };
    let (train, test) = (shares(&train), shares(&test));
    let alike: f64 = train.iter().filter_map(|(rule, p)| Some((p * test.get(rule)?).sqrt())).sum();
    assert!((1.0 - alike - found.atoms).abs() < 1e-9, "{alike} {found:?}");
}

#[test]
fn splits_refuse_what_they_do_not_use() {
    for (text, part) in [
        (format!("{STREAM}\nhold_out = [\"EXISTS IMPLIES\"]"), "only split"),
        (format!("{STREAM}\nbucket = \"K3\""), "no buckets"),
        ("split = \"held-out\"".to_owned(), "needs what is held out"),
        ("split = \"held-out\"\nhold_out = []".to_owned(), "needs what is held out"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let watch = Watch { progress: &|_, _| {}, cancelled: &AtomicBool::new(false) };
        let refusal = generate(&config(&text, &[]), folder.path(), Options::default(), &watch).unwrap_err();
        assert!(refusal.to_string().contains(part), "{text}: {refusal}");
    }
    for text in ["hold_out = [3]", "hold_out = 3", "bucket = \"K4\"", "split = \"held\""] {
        assert!(Config::read(text, &[]).is_err(), "{text}");
    }
}
