//! Tables as CSV (RFC 4180), for spreadsheets.

use anyhow::{Result, anyhow};
use serde_json::{Map, Value};

/// Objects as lines below a head: the columns in the order in which keys first occur, or as `first` begins them.
pub(crate) fn table(first: &[&str], rows: &[Map<String, Value>]) -> Result<String> {
    let mut columns: Vec<String> = first.iter().map(|c| (*c).to_owned()).collect();
    for key in rows.iter().flat_map(|r| r.keys()) {
        if !columns.iter().any(|c| c == key) {
            columns.push(key.clone());
        }
    }
    let mut writer = csv::WriterBuilder::new().terminator(csv::Terminator::CRLF).from_writer(Vec::new());
    writer.write_record(&columns)?;
    for row in rows {
        writer.write_record(columns.iter().map(|c| cell(row.get(c))))?;
    }
    let bytes = writer.into_inner().map_err(|e| anyhow!("{}", e.error()))?;
    Ok(String::from_utf8(bytes)?)
}

fn cell(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(words)) => words.clone(),
        Some(other) => other.to_string(),
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
        assert_eq!(
            table(&["b"], &rows).unwrap(),
            "b,a,c\r\n\"x,\"\"y\"\"\",1,\r\n,\"{\"\"k\"\":[1,2]}\",\r\n"
        );
    }
}
