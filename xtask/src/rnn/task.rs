//! `cargo xtask task`: the target and the mask of one sequence.

use anyhow::Result;
use clap::Args;
use linear_logic_rnn::error::{Kind, Refusal};
use linear_logic_rnn::task::tape::Size;
use linear_logic_rnn::task::{Example, Settings, Task};
use serde_json::{Value, json};

use super::{print, spaced};
use crate::keys::{parse_set, unknown_key};

/// The length of an example that is drawn; n for tapes.
const DRAWN: usize = 10;

/// Options of `task`.
#[derive(Debug, Args)]
pub(crate) struct TaskArgs {
    /// The name of the task.
    name: String,
    /// Digits, or integers between spaces or commas; for groups also the letters s and r. Without it, an example is
    /// drawn.
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    input: Option<String>,
    /// modulus, pattern, patterns, n or `n_out`.
    #[arg(long, value_name = "KEY=VALUE", allow_hyphen_values = true)]
    set: Vec<String>,
    /// Prints one JSON document to standard output.
    #[arg(long)]
    json: bool,
}

/// Prints the example; returns the exit status.
pub(crate) fn run(args: &TaskArgs) -> Result<u8> {
    print(args.json, answer(&args.name, args.input.as_deref(), &args.set), |document| {
        let rows = ["input", "target", "mask", "walk"].into_iter().filter(|row| document.get(row).is_some());
        let rows: String = rows.map(|row| format!("{row:7} {}\n", spaced(document.get(row)))).collect();
        format!("{}, {} classes\n{rows}", args.name, document["classes"])
    })
}

fn answer(name: &str, input: Option<&str>, sets: &[String]) -> Result<Value, Refusal> {
    // A name that is no task is told before anything is said of its settings.
    if let Err(e) = Task::new(name, &Settings::default())
        && e.kind == Kind::UnknownTask
    {
        return Err(e);
    }
    let (settings, size) = read(name, sets)?;
    let task = Task::new(name, &settings)?;
    let example = match input {
        Some(_) if !task.is_tape() && size != Size::default() => {
            return Err(Refusal::config(format!("`{name}` has no tape, so no n and no n_out")));
        }
        Some(text) => task.example(&task.parse(text)?, size)?,
        None => drawn(&task, size)?,
    };
    let mask: Vec<u8> = example.mask.iter().map(|&counts| u8::from(counts)).collect();
    let mut document = json!({
        "ok": true, "task": name, "input": example.input, "target": example.target, "mask": mask,
        "classes": task.classes(),
    });
    if let (Some(walk), Value::Object(fields)) = (example.walk, &mut document) {
        fields.insert("walk".to_owned(), json!(walk));
    }
    Ok(document)
}

/// A random example, always the same one; for tapes n and `n_out` hold as they are given.
fn drawn(task: &Task, size: Size) -> Result<Example, Refusal> {
    let mut stream = seeded::Family::new("linear-logic-rnn-v1", "example", 0).stream(0);
    let n = size.n.unwrap_or(DRAWN);
    let example = task.draw(n, &mut stream)?;
    if !task.is_tape() {
        return Ok(example);
    }
    let content: Vec<u32> = example.input.into_iter().take(n - 1).skip(1).collect();
    task.example(&content, size)
}

/// The settings of a task, and the lengths of its tape.
fn read(name: &str, sets: &[String]) -> Result<(Settings, Size), Refusal> {
    let (mut settings, mut size) = (Settings::default(), Size::default());
    for set in sets {
        let table = parse_set(set).map_err(|e| Refusal::config(e.to_string()))?;
        for (key, value) in table {
            let value =
                serde_json::to_value(value).map_err(|e| Refusal::config(format!("--set {set}: {e}")))?;
            let owner = match key.as_str() {
                "modulus" => "mod-sum",
                "pattern" => "pattern",
                "patterns" => "multi-pattern",
                _ => name,
            };
            if owner != name {
                return Err(Refusal::config(format!(
                    "`{key}` is a key of the task `{owner}`, not of `{name}`"
                )));
            }
            match key.as_str() {
                "n" => size.n = Some(length(&key, &value)?),
                "n_out" => size.n_out = Some(length(&key, &value)?),
                key if settings.set(key, &value)? => {}
                key => {
                    let known: Vec<&str> = Settings::KEYS.into_iter().chain(["n", "n_out"]).collect();
                    return Err(Refusal::config(format!("--set {set}: {}", unknown_key(key, &known))));
                }
            }
        }
    }
    Ok((settings, size))
}

/// A length; a negative one is shorter than every tape.
fn length(key: &str, value: &Value) -> Result<usize, Refusal> {
    if value.as_i64().is_some_and(|n| n < 0) {
        return Err(Refusal::new(Kind::Tape, format!("{key} = {value} is too short for any tape")));
    }
    let number = value.as_u64().or_else(|| value.as_str().and_then(|s| s.parse().ok()));
    let number = number.and_then(|n| usize::try_from(n).ok());
    number.ok_or_else(|| Refusal::config(format!("{key} is {value}; it is a number of symbols")))
}
