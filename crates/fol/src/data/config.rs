//! The configuration of a data set (F51).

use serde_json::{Value as Json, json};
use toml::{Table, Value};

use super::composition::HeldOut;
use crate::error::{Kind, Refusal};
use crate::key::DEFAULT_WEIGHTS;
use crate::law::config::{Keys, bad_value, document, loose_value, set};
use crate::law::{Law, digest_of};

const KEYS: [&str; 14] = [
    "name",
    "law",
    "seed",
    "split",
    "stream",
    "draws",
    "dedup",
    "weights",
    "bucket",
    "hold_out",
    "iid",
    "file_formulas",
    "max_tokens",
    "threads",
];

const DEFAULTS: &str = r#"
law = "uniform"
seed = 0
split = "stream"
stream = { train = 10000, val = 1000, test = 1000 }
draws = 100000
iid = 2000
file_formulas = 1000000
max_tokens = 512
threads = 0
"#;

/// The most items of one stream.
const MAX_ITEMS: u64 = 1 << 40;

/// What a data set is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// The folder's name; without one it is the last part of the output folder.
    pub name: Option<String>,
    /// The law of all texts.
    pub law: Law,
    /// The seed of all streams.
    pub seed: u64,
    /// How train, val and test come about.
    pub split: Splitting,
    /// Numbers of formulas of train, val, test for separate streams.
    pub stream: [u64; 3],
    /// Items drawn for a split by hash.
    pub draws: u64,
    /// Which items are the same.
    pub dedup: Dedup,
    /// Train, val and test out of 1000.
    pub weights: [u16; 3],
    /// The level of the key whose bucket says the split, 0 to 3: no class of this level is in two splits.
    pub bucket: usize,
    /// What training never sees, where the split is by that.
    pub hold_out: Vec<HeldOut>,
    /// Formulas of the extra set that is never filtered.
    pub iid: u64,
    /// Formulas per file.
    pub file_formulas: u64,
    /// A law with longer texts is refused.
    pub max_tokens: usize,
    /// 0 for all cores.
    pub threads: usize,
}

/// How train, val and test come about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Splitting {
    /// Separate streams, nothing removed.
    Stream,
    /// One stream, split by the bucket of the class.
    Hash,
    /// One stream; whatever has something that is held out is of test, the rest train and val by the bucket.
    HeldOut,
    /// One stream, train and test with their compounds as far apart as can be found and their atoms alike.
    Divergence,
}

/// Which items count as the same; the first of each class is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dedup {
    /// None.
    None,
    /// Those with the same key at this level, 0 to 3.
    Key(usize),
}

const SPLITS: [(&str, Splitting); 4] = [
    ("stream", Splitting::Stream),
    ("hash", Splitting::Hash),
    ("held-out", Splitting::HeldOut),
    ("divergence", Splitting::Divergence),
];
const LEVELS: [(&str, usize); 4] = [("K0", 0), ("K1", 1), ("K2", 2), ("K3", 3)];
/// The level of the records' key, which buckets are of if nothing is said.
const BUCKET: usize = 2;
const DEDUPS: [(&str, Dedup); 5] = [
    ("none", Dedup::None),
    ("K0", Dedup::Key(0)),
    ("K1", Dedup::Key(1)),
    ("K2", Dedup::Key(2)),
    ("K3", Dedup::Key(3)),
];

impl Config {
    /// The configuration of a TOML document, with some keys changed (`KEY` and VALUE of `--set`).
    ///
    /// # Errors
    /// `UnknownKey`, `BadValue`, and those of [`Law::named`].
    pub fn read(text: &str, changes: &[(String, String)]) -> Result<Self, Refusal> {
        let mut table = document(DEFAULTS)?;
        for (key, value) in document(text)? {
            if key == "stream"
                && let Value::Table(sizes) = value
            {
                for (split, size) in sizes {
                    set(&mut table, &format!("stream.{split}"), size)?;
                }
            } else {
                table.insert(key, value);
            }
        }
        let mut law_changes = Vec::new();
        for (key, value) in changes {
            match key.strip_prefix("law.") {
                Some(key) => law_changes.push((key.to_owned(), loose_value(value))),
                None => set(&mut table, key, loose_value(value))?,
            }
        }
        let keys = Keys::new(table, "", &KEYS)?;
        let split = keys.word("split", &SPLITS)?;
        let dedup = match (keys.get("dedup"), split) {
            (Some(_), _) => keys.word("dedup", &DEDUPS)?,
            (None, Splitting::Stream) => Dedup::None,
            (None, _) => Dedup::Key(2),
        };
        let bucket = if keys.get("bucket").is_some() { keys.word("bucket", &LEVELS)? } else { BUCKET };
        Ok(Self {
            name: keys.get("name").map(|_| keys.string("name")).transpose()?,
            law: law(&keys, &law_changes)?,
            seed: keys.number("seed")?,
            split,
            stream: stream(&keys)?,
            draws: keys.number("draws")?,
            dedup,
            weights: weights(&keys)?,
            bucket,
            hold_out: hold_out(&keys)?,
            iid: keys.number("iid")?,
            file_formulas: keys.number("file_formulas")?,
            max_tokens: keys.size("max_tokens")?,
            threads: keys.size("threads")?,
        })
    }

    /// Refuses what cannot be made.
    pub(super) fn check(&self) -> Result<(), Refusal> {
        if self.split == Splitting::Stream && self.dedup != Dedup::None {
            return Err(bad_value("dedup", "split = \"stream\" removes nothing"));
        }
        if self.split == Splitting::Stream && self.bucket != BUCKET {
            return Err(bad_value("bucket", "split = \"stream\" has no buckets"));
        }
        match (self.split, self.hold_out.is_empty()) {
            (Splitting::HeldOut, true) => {
                return Err(bad_value("hold_out", "split = \"held-out\" needs what is held out"));
            }
            (Splitting::HeldOut, false) | (_, true) => {}
            (_, false) => return Err(bad_value("hold_out", "only split = \"held-out\" holds anything out")),
        }
        if self.file_formulas == 0 {
            return Err(bad_value("file_formulas", "at least one is needed"));
        }
        if let Some((purpose, _)) = self.streams().into_iter().find(|s| s.1 > MAX_ITEMS) {
            return Err(bad_value(purpose, format!("at most {MAX_ITEMS} formulas are possible")));
        }
        if self.threads > 1024 {
            return Err(bad_value("threads", "at most 1024 are possible"));
        }
        let bound = self.law.max_tokens_bound();
        if !self.law.has_statements() && bound.is_none_or(|bound| bound > self.max_tokens) {
            let bound = bound.map_or("more than 2⁶⁴".to_owned(), |b| b.to_string());
            let message =
                format!("the longest text of the law has {bound} tokens, max_tokens is {}", self.max_tokens);
            return Err(Refusal::new(Kind::TooLong, message).help("raise max_tokens, or take a smaller law"));
        }
        Ok(())
    }

    /// Every key but `name` and `threads`.
    pub fn to_json(&self) -> Json {
        let [train, val, test] = self.stream;
        let mut keys = json!({
            "law": self.law.to_json(),
            "seed": self.seed,
            "split": self.split.name(),
            "stream": {"train": train, "val": val, "test": test},
            "draws": self.draws,
            "dedup": self.dedup.name(),
            "weights": self.weights,
            "iid": self.iid,
            "file_formulas": self.file_formulas,
            "max_tokens": self.max_tokens,
        });
        // Only where they say something, so that data sets without them keep their digest.
        if self.bucket != BUCKET {
            keys["bucket"] = json!(LEVELS.iter().find(|level| level.1 == self.bucket).map(|level| level.0));
        }
        if !self.hold_out.is_empty() {
            keys["hold_out"] = json!(self.hold_out.iter().map(HeldOut::name).collect::<Vec<String>>());
        }
        keys
    }

    /// BLAKE3 over every key but `name` and `threads`, in hexadecimal.
    pub fn digest(&self) -> String {
        digest_of(&self.to_json())
    }

    /// Purposes and numbers of items of the streams that are drawn.
    pub(super) fn streams(&self) -> Vec<(&'static str, u64)> {
        let [train, val, test] = self.stream;
        let mut streams = match self.split {
            Splitting::Stream => vec![("train", train), ("val", val), ("test", test)],
            Splitting::Hash | Splitting::HeldOut | Splitting::Divergence => vec![("data", self.draws)],
        };
        streams.push(("iid", self.iid));
        streams
    }
}

impl Splitting {
    /// As the configuration writes it.
    pub fn name(self) -> &'static str {
        SPLITS.iter().find(|s| s.1 == self).map_or("", |s| s.0)
    }
}

impl Dedup {
    /// As the configuration writes it.
    pub fn name(self) -> &'static str {
        DEDUPS.iter().find(|d| d.1 == self).map_or("", |d| d.0)
    }
}

fn law(keys: &Keys, changes: &[(String, Value)]) -> Result<Law, Refusal> {
    match keys.get("law") {
        Some(Value::Table(table)) => Law::from_table(table.clone(), changes),
        _ => Law::named_with(&keys.string("law")?, changes),
    }
}

fn stream(keys: &Keys) -> Result<[u64; 3], Refusal> {
    let table: Table = match keys.get("stream") {
        Some(Value::Table(table)) => table.clone(),
        _ => return Err(keys.bad("stream", "a table with the keys train, val, test is needed")),
    };
    let sizes = Keys::new(table, "stream.", &["train", "val", "test"])?;
    Ok([sizes.number("train")?, sizes.number("val")?, sizes.number("test")?])
}

fn hold_out(keys: &Keys) -> Result<Vec<HeldOut>, Refusal> {
    let Some(list) = keys.get("hold_out") else { return Ok(Vec::new()) };
    let list = list.as_array().ok_or_else(|| keys.bad("hold_out", "a list of texts is needed"))?;
    let read = |value: &Value| HeldOut::read(value.as_str().unwrap_or_default());
    list.iter().map(read).collect()
}

fn weights(keys: &Keys) -> Result<[u16; 3], Refusal> {
    if keys.get("weights").is_none() {
        return Ok(DEFAULT_WEIGHTS);
    }
    let weights = keys.row::<3>("weights")?;
    let sum = weights.iter().try_fold(0u64, |a, &w| a.checked_add(w));
    if sum != Some(1000) {
        return Err(keys.bad("weights", "the three weights must sum to 1000"));
    }
    Ok(weights.map(|w| w as u16))
}
