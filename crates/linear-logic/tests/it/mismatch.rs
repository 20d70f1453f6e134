//! Whether a document holds what a case expects of it.

use serde_json::Value;

/// Why `found` does not match `wanted`, if it does not.
pub(crate) fn mismatch(wanted: &Value, found: &Value, path: &str, tolerance: f64) -> Option<String> {
    match (wanted, found) {
        (Value::Object(wanted), Value::Object(found)) => wanted.iter().find_map(|(key, value)| {
            let path = format!("{path}.{key}");
            let Some(inner) = found.get(key) else { return Some(format!("{path} is missing")) };
            mismatch(value, inner, &path, tolerance)
        }),
        (Value::Array(wanted), Value::Array(found)) => {
            if wanted.len() != found.len() {
                return Some(format!("{path}: {} elements, not {}", found.len(), wanted.len()));
            }
            let mut pairs = wanted.iter().zip(found).enumerate();
            pairs.find_map(|(i, (wanted, found))| mismatch(wanted, found, &format!("{path}[{i}]"), tolerance))
        }
        (Value::Number(a), Value::Number(b)) if a != b => {
            let (a, b) = (a.as_f64()?, b.as_f64()?);
            ((a - b).abs() > tolerance * a.abs().max(1.0)).then(|| format!("{path}: {b}, not {a}"))
        }
        _ => (wanted != found).then(|| format!("{path}: {found}, not {wanted}")),
    }
}
