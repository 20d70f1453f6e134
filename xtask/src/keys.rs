//! Keys and values of configurations as text: where a fault stands, which known key is nearest, `--set`.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use calculemus_base::word;
use serde::de::{Deserialize, Deserializer, Visitor};

/// Name and text of a file.
pub(crate) fn read(path: &Path) -> Result<(String, String)> {
    let name = path.display().to_string();
    let text = std::fs::read_to_string(path).with_context(|| name.clone())?;
    Ok((name, text))
}

/// A TOML text as a table, or the place where it stops being TOML.
pub(crate) fn parse_table(name: &str, text: &str) -> Result<toml::Table> {
    text.parse::<toml::Table>().map_err(|e| located(name, text, &e))
}

/// `file:line:column: message`.
pub(crate) fn located(name: &str, text: &str, error: &toml::de::Error) -> anyhow::Error {
    let place = error.span().map_or_else(String::new, |span| position(text, span.start));
    anyhow!("{name}{place}: {}", error.message())
}

/// The keys of a configuration, as its type declares them: what serde would ask the file for.
pub(crate) fn of<T: Deserialize<'static>>() -> &'static [&'static str] {
    struct Fields<'a>(&'a mut &'static [&'static str]);

    impl<'de> Deserializer<'de> for Fields<'_> {
        type Error = serde::de::value::Error;

        fn deserialize_any<V: Visitor<'de>>(self, _: V) -> std::result::Result<V::Value, Self::Error> {
            Err(serde::de::Error::custom("only the fields are asked for"))
        }

        fn deserialize_struct<V: Visitor<'de>>(
            self,
            _: &'static str,
            fields: &'static [&'static str],
            visitor: V,
        ) -> std::result::Result<V::Value, Self::Error> {
            *self.0 = fields;
            self.deserialize_any(visitor)
        }

        serde::forward_to_deserialize_any! {
            bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit
            unit_struct newtype_struct seq tuple tuple_struct map enum identifier ignored_any
        }
    }

    let mut fields: &'static [&'static str] = &[];
    // It always refuses; what it was asked for is the answer.
    let _ = T::deserialize(Fields(&mut fields));
    fields
}

/// Refuses the first key of a table that is not known, with the nearest known one.
pub(crate) fn check(table: &toml::Table, known: &[&str]) -> std::result::Result<(), Wrong> {
    match table.keys().find(|key| !known.contains(&key.as_str())) {
        Some(key) => Err(Wrong { message: unknown_key(key, known), key: key.clone() }),
        None => Ok(()),
    }
}

/// A key that is not known, or whose value is none of its type.
#[derive(Debug)]
pub(crate) struct Wrong {
    /// The key.
    pub(crate) key: String,
    /// What is said of it.
    pub(crate) message: String,
}

/// `:line:column` of a key of a TOML text, at the top or in a table there; nothing if it is not found.
pub(crate) fn place(text: &str, key: &str) -> String {
    let Ok(table) = toml::de::DeTable::parse(text) else { return String::new() };
    let table = table.into_inner();
    let inner = table.values().filter_map(|value| value.get_ref().as_table());
    let mut all = std::iter::once(&table).chain(inner).flat_map(|table| table.keys());
    let found = all.find(|name| name.get_ref() == key);
    found.map_or_else(String::new, |name| position(text, name.span().start))
}

fn position(text: &str, offset: usize) -> String {
    let before = text.get(..offset).unwrap_or_default();
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().map_or(0, |l| l.chars().count()) + 1;
    format!(":{line}:{column}")
}

/// The message for a key that is not there.
pub(crate) fn unknown_key(key: &str, known: &[&str]) -> String {
    let near = word::nearest(key, known.iter().copied());
    let alias = match key {
        "learning_rate" => Some("lr"),
        "batch_size" => Some("batch"),
        "hidden_size" => Some("d_model"),
        _ => None,
    };
    match alias.filter(|a| known.contains(a)).or(near) {
        Some(near) => format!("unknown key \"{key}\"; did you mean \"{near}\"?"),
        None => format!("unknown key \"{key}\""),
    }
}

/// One `--set key=value` as a table: the value is TOML, or else a string.
pub(crate) fn parse_set(set: &str) -> Result<toml::Table> {
    let Some((key, value)) = set.split_once('=') else {
        bail!("--set {set}: say --set key=value");
    };
    let (key, value) = (key.trim(), value.trim());
    let as_toml = format!("{key} = {value}").parse::<toml::Table>();
    match as_toml {
        Ok(table) if table.len() == 1 => Ok(table),
        _ => {
            let quoted = toml::Value::String(value.to_owned());
            format!("{key} = {quoted}").parse().map_err(|_| anyhow!("--set {set}: `{key}` is not a key"))
        }
    }
}

/// Puts the entries of `from` over those of `to`, table by table.
pub(crate) fn merge(to: &mut toml::Table, from: toml::Table) {
    for (key, value) in from {
        match (to.get_mut(&key), value) {
            (Some(toml::Value::Table(inner)), toml::Value::Table(more)) => merge(inner, more),
            (_, value) => {
                to.insert(key, value);
            }
        }
    }
}

/// What is wrong with the values of a configuration, to be said together.
#[derive(Default)]
pub(crate) struct Faults(pub(crate) Vec<String>);

impl Faults {
    /// Notes a fault unless something holds.
    pub(crate) fn demand(&mut self, holds: bool, message: impl Into<String>) {
        if !holds {
            self.0.push(message.into());
        }
    }

    /// Refuses the configuration of a name if there is a fault.
    pub(crate) fn refuse(self, name: &str) -> Result<()> {
        if self.0.is_empty() { Ok(()) } else { bail!("{name}: {}", self.0.join(&format!("\n{name}: "))) }
    }
}

/// Finds a configuration: as given, then in `folder`. The refusal names both and lists what is there.
pub(crate) fn find(name: &str, folder: &Path) -> Result<PathBuf> {
    let (given, inside) = (PathBuf::from(name), folder.join(name));
    for path in [&given, &inside] {
        if path.is_file() {
            return Ok(path.clone());
        }
    }
    let mut there: Vec<String> = std::fs::read_dir(folder)
        .map(|entries| entries.flatten().map(|e| e.file_name().to_string_lossy().into_owned()).collect())
        .unwrap_or_default();
    there.retain(|n| Path::new(n).extension().is_some_and(|e| e == "toml"));
    there.sort();
    let known = match there.is_empty() {
        true => format!("{} has none: call this in a clone of the project, or name a file", folder.display()),
        false => format!("in {} there are: {}", folder.display(), there.join(", ")),
    };
    match given == inside {
        true => bail!("{} is no file; {known}", given.display()),
        false => bail!("neither {} nor {} is a file; {known}", given.display(), inside.display()),
    }
}
