//! The commands of the linear-logic RNN that print exact values.

pub(crate) mod optim;
pub(crate) mod task;

use anyhow::Result;
use linear_logic_rnn::error::Refusal;
use serde_json::{Value, json};

use crate::answer::print_json;

/// Prints an answer, or with `--json` the refusal; returns the exit status. `text` writes the answer for people.
fn print(json: bool, answer: Result<Value, Refusal>, text: impl FnOnce(&Value) -> String) -> Result<u8> {
    match answer {
        Ok(document) if json => print_json(&document)?,
        Ok(document) => crate::answer::print_text(&text(&document)),
        Err(refusal) if json => {
            print_json(&json!({"ok": false, "errors": [refusal.json()]}))?;
            return Ok(1);
        }
        Err(refusal) => return Err(refusal.into()),
    }
    Ok(0)
}

/// A list of numbers with spaces between them.
fn spaced(list: Option<&Value>) -> String {
    let entries = list.and_then(Value::as_array).into_iter().flatten();
    entries.map(ToString::to_string).collect::<Vec<_>>().join(" ")
}
