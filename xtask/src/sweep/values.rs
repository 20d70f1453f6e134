//! Values of keys in a sweep: as names, for people, and whether two are the same setting.

use toml::{Table, Value};

/// `key=value,key=value` as the name of a folder; `base` for no key.
pub(crate) fn name_of(point: &Table) -> String {
    if point.is_empty() {
        return "base".to_owned();
    }
    let part = |(key, value): (&String, &Value)| format!("{key}={}", shown(value));
    let name = point.iter().map(part).collect::<Vec<String>>().join(",");
    name.chars().map(|c| if c.is_alphanumeric() || "=,.-_+".contains(c) { c } else { '_' }).collect()
}

/// A value without quotes.
pub(crate) fn shown(value: &Value) -> String {
    match value {
        Value::String(words) => words.clone(),
        other => other.to_string(),
    }
}

/// Equal as settings: 1 and 1.0 are.
pub(crate) fn same(a: &Value, b: &Value) -> bool {
    let number = |v: &Value| v.as_float().or_else(|| v.as_integer().map(|i| i as f64));
    match (number(a), number(b)) {
        (Some(a), Some(b)) => a.total_cmp(&b).is_eq(),
        _ => a == b,
    }
}
