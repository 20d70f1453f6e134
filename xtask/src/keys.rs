//! Keys and values of configurations as text: where a fault stands, which known key is nearest, `--set`.

use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow, bail};

/// A TOML text as a table, or the place where it stops being TOML.
pub(crate) fn parse_table(name: &str, text: &str) -> Result<toml::Table> {
    text.parse::<toml::Table>().map_err(|e| located(name, text, &e))
}

/// `file:line:column: message`, and for an unknown key the nearest known one.
pub(crate) fn located(name: &str, text: &str, error: &toml::de::Error) -> anyhow::Error {
    let place = error.span().map_or_else(String::new, |span| position(text, span.start));
    anyhow!("{name}{place}: {}", explain(error.message()))
}

/// `:line:column` of a key at the top of a TOML text; nothing if it is not found.
pub(crate) fn place(text: &str, key: &str) -> String {
    let Ok(table) = toml::de::DeTable::parse(text) else { return String::new() };
    let Some((found, _)) = table.get_ref().iter().find(|(name, _)| name.get_ref() == key) else {
        return String::new();
    };
    position(text, found.span().start)
}

fn position(text: &str, offset: usize) -> String {
    let before = text.get(..offset).unwrap_or_default();
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().map_or(0, |l| l.chars().count()) + 1;
    format!(":{line}:{column}")
}

/// serde's message for an unknown key, shortened to the nearest key.
pub(crate) fn explain(message: &str) -> String {
    let Some(rest) = message.strip_prefix("unknown field `") else { return message.to_owned() };
    let Some((key, known)) = rest.split_once('`') else { return message.to_owned() };
    let known: Vec<&str> = known.split('`').skip(1).step_by(2).collect();
    unknown_key(key, &known)
}

/// The message for a key that is not there.
pub(crate) fn unknown_key(key: &str, known: &[&str]) -> String {
    let near = known.iter().min_by(|a, b| {
        let far = |k: &str| -strsim::jaro_winkler(key, k);
        far(a).total_cmp(&far(b))
    });
    let alias = match key {
        "learning_rate" => Some("lr"),
        "batch_size" => Some("batch"),
        "hidden_size" => Some("d_model"),
        _ => None,
    };
    match alias.filter(|a| known.contains(a)).or(near.copied()) {
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
    bail!(
        "neither {} nor {} is a file; in {} there are: {}",
        given.display(),
        inside.display(),
        folder.display(),
        there.join(", ")
    )
}
