//! The configuration of a data set: a flat TOML file.

use fol::error::{Kind, Refusal};
use fol::law::Law;
use fol_prover::rules::Name;
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};
use toml::{Table, Value};

use crate::derivation::RULES;
use crate::instance::{Format, Order};
use crate::space::{INDICES, LAW, Space};

/// The splits, in their order. What `deep` has is deeper than anything that is learned from.
pub const SPLITS: [&str; 4] = ["train", "val", "test", "deep"];

/// What a data set is made of.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// The folder's name; without one it is the last part of the output folder.
    pub name: Option<String>,
    /// The seed of all streams.
    pub seed: u64,
    /// Instances of train, val and test.
    pub space: Space,
    /// Depths of `deep`, with their weights.
    pub deep: Vec<(usize, u64)>,
    /// Instances of each split, in the order of [`SPLITS`].
    pub stream: [u64; 4],
    /// Instances in a file.
    pub file_instances: u64,
    /// 0 for all cores.
    pub threads: usize,
}

/// The keys, as they are written.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Keys {
    name: Option<String>,
    seed: u64,
    order: String,
    law: Option<Value>,
    formats: Formats,
    rules: Vec<String>,
    depths: Vec<(usize, u64)>,
    deep: Vec<(usize, u64)>,
    distractors: u64,
    names: u32,
    max_tokens: usize,
    stream: Stream,
    file_instances: u64,
    threads: usize,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Formats {
    conclusion: u64,
    steps: u64,
    question: u64,
    term: u64,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Stream {
    train: u64,
    val: u64,
    test: u64,
    deep: u64,
}

impl Default for Stream {
    fn default() -> Self {
        Self { train: 100_000, val: 2_000, test: 2_000, deep: 2_000 }
    }
}

impl Default for Keys {
    fn default() -> Self {
        Self {
            name: None,
            seed: 0,
            order: Order::RuleFirst.name().to_owned(),
            law: None,
            formats: Formats { conclusion: 1, question: 1, ..Formats::default() },
            rules: RULES.iter().map(|rule| rule.name().to_owned()).collect(),
            depths: vec![(1, 100), (2, 40), (3, 35), (4, 20), (5, 5)],
            deep: vec![(6, 1), (7, 1), (8, 1)],
            distractors: 5,
            names: INDICES,
            max_tokens: 384,
            stream: Stream::default(),
            file_instances: 10_000,
            threads: 0,
        }
    }
}

/// The most instances of a split.
const MOST: u64 = 1 << 32;

fn bad(key: &str, why: impl std::fmt::Display) -> Refusal {
    Refusal::new(Kind::BadValue, format!("{key}: {why}"))
}

impl Config {
    /// The configuration of a TOML document, with some keys changed (`KEY` and `VALUE` of `--set`).
    ///
    /// # Errors
    /// `BadValue` and `UnknownKey` with line and column in the document, or with the key; what [`Space::check`] refuses.
    pub fn read(text: &str, changes: &[(String, String)]) -> Result<Self, Refusal> {
        let located = |e: &toml::de::Error| {
            let kind =
                if e.message().starts_with("unknown field") { Kind::UnknownKey } else { Kind::BadValue };
            Refusal::new(kind, e.to_string().trim_end())
        };
        // The document alone first, so that its own faults are located in it.
        toml::from_str::<Keys>(text).map_err(|e| located(&e))?;
        let mut table: Table = text.parse().map_err(|e: toml::de::Error| located(&e))?;
        for (key, value) in changes {
            set(&mut table, key, loose(value)).map_err(|why| bad(&format!("--set {key}={value}"), why))?;
        }
        let keys: Keys = table.try_into().map_err(|e: toml::de::Error| {
            let kind =
                if e.message().starts_with("unknown field") { Kind::UnknownKey } else { Kind::BadValue };
            Refusal::new(kind, format!("--set: {}", e.message()))
        })?;
        Self::of(keys)
    }

    fn of(keys: Keys) -> Result<Self, Refusal> {
        let order = Order::ALL.into_iter().find(|order| order.name() == keys.order);
        let order = order
            .ok_or_else(|| bad("order", format!("{:?} is none of rule-first, label-first", keys.order)))?;
        let rule = |name: &String| {
            let found = Name::ALL.iter().copied().find(|rule| rule.name() == name);
            let known = || RULES.map(Name::name).join(", ");
            found.ok_or_else(|| bad("rules", format!("{name:?} is none of {}", known())))
        };
        let usual = || LAW.map(|(key, value)| (key.to_owned(), value.to_owned()));
        let law = match keys.law {
            None => Law::named("uniform", &usual())?,
            Some(Value::String(name)) => Law::named(&name, &[])?,
            Some(Value::Table(table)) => Law::from_table(table, &[])?,
            Some(_) => return Err(bad("law", "the name of a law or a table is needed")),
        };
        let Formats { conclusion, steps, question, term } = keys.formats;
        let space = Space {
            law,
            order,
            formats: [conclusion, steps, question, term],
            rules: keys.rules.iter().map(rule).collect::<Result<_, _>>()?,
            depths: keys.depths,
            distractors: keys.distractors,
            names: keys.names,
            max_tokens: keys.max_tokens,
        };
        space.check()?;
        let Stream { train, val, test, deep } = keys.stream;
        let config = Self {
            name: keys.name,
            seed: keys.seed,
            space,
            deep: keys.deep,
            stream: [train, val, test, deep],
            file_instances: keys.file_instances,
            threads: keys.threads,
        };
        if deep > 0 {
            config.deep_space().check().map_err(|refusal| {
                Refusal::new(refusal.kind, refusal.message.replacen("depths", "deep", 1))
            })?;
        }
        if config.file_instances == 0 {
            return Err(bad("file_instances", "at least one is needed"));
        }
        if let Some((split, _)) = SPLITS.iter().zip(config.stream).find(|(_, n)| *n > MOST) {
            return Err(bad(&format!("stream.{split}"), format!("at most {MOST} are possible")));
        }
        if config.threads > 1024 {
            return Err(bad("threads", "at most 1024 are possible"));
        }
        Ok(config)
    }

    /// The space of the split `deep`.
    pub(crate) fn deep_space(&self) -> Space {
        Space { depths: self.deep.clone(), ..self.space.clone() }
    }

    /// Every key but `name` and `threads`.
    pub fn to_json(&self) -> Json {
        let Space { law, order, formats, rules, depths, distractors, names, max_tokens } = &self.space;
        let formats = Format::ALL.iter().zip(formats).map(|(format, weight)| (format.name(), weight));
        let stream = SPLITS.iter().zip(self.stream).map(|(split, n)| (*split, n));
        let mut document = json!({
            "seed": self.seed,
            "order": order.name(),
            "law": law.to_json(),
            "formats": formats.collect::<std::collections::BTreeMap<_, _>>(),
            "rules": rules.iter().map(|rule| rule.name()).collect::<Vec<_>>(),
            "depths": depths,
            "deep": self.deep,
            "distractors": distractors,
            "max_tokens": max_tokens,
            "stream": stream.collect::<std::collections::BTreeMap<_, _>>(),
            "file_instances": self.file_instances,
        });
        // Data sets from before there was a choice have the digest of the usual one.
        if let (true, Some(keys)) = (*names != INDICES, document.as_object_mut()) {
            keys.insert("names".to_owned(), json!(names));
        }
        document
    }

    /// BLAKE3 over every key but `name` and `threads`, in hexadecimal.
    pub fn digest(&self) -> String {
        blake3::hash(self.to_json().to_string().as_bytes()).to_hex().to_string()
    }
}

/// The value of `KEY=VALUE`: TOML, or else the text itself.
fn loose(text: &str) -> Value {
    let parsed = format!("v = {text}").parse::<Table>().ok().filter(|table| table.len() == 1);
    parsed.and_then(|mut table| table.remove("v")).unwrap_or_else(|| Value::String(text.to_owned()))
}

/// Sets a dotted key, making the tables on its way.
fn set(table: &mut Table, key: &str, value: Value) -> Result<(), String> {
    let Some((head, rest)) = key.split_once('.') else {
        table.insert(key.to_owned(), value);
        return Ok(());
    };
    match table.entry(head).or_insert_with(|| Value::Table(Table::new())) {
        Value::Table(inner) => set(inner, rest, value),
        _ => Err(format!("{head} is no table")),
    }
}
