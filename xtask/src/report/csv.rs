//! Tables as CSV (RFC 4180), for spreadsheets.

use serde_json::{Map, Value};

/// Objects as lines below a head: the columns in the order in which keys first occur, or as `first` begins them.
pub(crate) fn table(first: &[&str], rows: &[Map<String, Value>]) -> String {
    let mut columns: Vec<String> = first.iter().map(|c| (*c).to_owned()).collect();
    for key in rows.iter().flat_map(|r| r.keys()) {
        if !columns.iter().any(|c| c == key) {
            columns.push(key.clone());
        }
    }
    let mut text = line(columns.iter().map(|c| quoted(c)));
    for row in rows {
        text.push_str(&line(columns.iter().map(|c| cell(row.get(c)))));
    }
    text
}

fn line(cells: impl Iterator<Item = String>) -> String {
    cells.collect::<Vec<String>>().join(",") + "\r\n"
}

fn cell(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(words)) => quoted(words),
        Some(other) => quoted(&other.to_string()),
    }
}

fn quoted(words: &str) -> String {
    if words.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", words.replace('"', "\"\""))
    } else {
        words.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn columns_quotes_and_holes() {
        let rows = [json!({"a": 1, "b": "x,\"y\""}), json!({"c": null, "a": {"k": [1, 2]}})];
        let rows: Vec<_> = rows.iter().map(|r| r.as_object().unwrap().clone()).collect();
        assert_eq!(table(&["b"], &rows), "b,a,c\r\n\"x,\"\"y\"\"\",1,\r\n,\"{\"\"k\"\":[1,2]}\",\r\n");
    }
}
