//! `ill normalize`: a proof and its normal form.

use clap::Args;
use linear_logic::error::{Kind, Refusal};
use linear_logic::print::canonical;
use linear_logic::recognise::{Recognised, recognise};
use linear_logic::reduce::{self, Limits};
use serde_json::{Value, json};

use crate::answer::{Answer, Failure};
use crate::check_command::MAX_SYMBOLS;
use crate::input::Texts;

/// `ill normalize`
#[derive(Debug, Args)]
pub(crate) struct Normalize {
    #[command(flatten)]
    texts: Texts,
    /// The definition to reduce, with formulas in braces or not.
    #[arg(long, value_name = "NAME")]
    main: Option<String>,
    /// Stop after so many steps.
    #[arg(long, value_name = "N")]
    steps: Option<u64>,
    /// Refuse if so many steps do not reach the normal form.
    #[arg(long, value_name = "N", default_value_t = Limits::default().fuel)]
    fuel: u64,
    /// List every step.
    #[arg(long)]
    trace: bool,
}

/// The most bytes of all terms of a trace.
const MAX_TRACE: usize = 256 << 20;

pub(crate) fn normalize(args: &Normalize) -> Result<Answer, Failure> {
    if args.texts.is_empty() {
        return Err(Failure::Usage("give a FILE or `-e TEXT`".to_owned()));
    }
    let loaded = args.texts.load()?;
    let program = &loaded.program;
    let subject = args.texts.subject(program, args.main.as_deref())?;
    let limits = Limits { steps: args.steps, fuel: args.fuel };
    let (mut trace, mut bytes) = (Vec::new(), 0);
    let normalized = reduce::normalize(&subject.term, program.order(), limits, |step, reduction| {
        if args.trace {
            let term = canonical(&reduction.term());
            bytes += term.len();
            if bytes > MAX_TRACE {
                return Err(Refusal::new(Kind::Limit, format!("the trace has more than {MAX_TRACE} bytes")));
            }
            trace.push(json!({ "rule": step.rule.name(), "at": step.at, "term": term }));
        }
        Ok(())
    })?;
    if normalized.term.symbols() > MAX_SYMBOLS {
        return Err(Refusal::new(Kind::Limit, "the text of the normal form is too large").into());
    }
    let recognised = recognise(&normalized.term, &subject.formula, program.order());
    let text = canonical(&normalized.term);
    let mut fields = json!({
        "type": subject.formula.to_string(),
        "type_short": subject.formula.short(),
        "status": if normalized.is_normal { "normal" } else { "partial" },
        "steps": normalized.steps,
        "canonical": text,
        "nodes": normalized.term.size(),
        "recognised": recognised.as_ref().map_or(Value::Null, recognised_json),
    });
    let mut lines: Vec<String> = trace
        .iter()
        .map(|step: &Value| {
            format!("{:<13} {}", step["rule"].as_str().unwrap_or(""), step["term"].as_str().unwrap_or(""))
        })
        .collect();
    lines.push(text);
    lines.extend(recognised.map(|recognised| format!("  = {}", recognised_text(&recognised))));
    if args.trace
        && let Some(fields) = fields.as_object_mut()
    {
        fields.insert("trace".to_owned(), Value::Array(trace));
    }
    Ok(Answer { order: program.order(), fields, text: lines.join("\n"), warnings: loaded.warnings })
}

fn digits(word: &[bool]) -> String {
    word.iter().map(|one| if *one { '1' } else { '0' }).collect()
}

fn recognised_json(recognised: &Recognised) -> Value {
    match recognised {
        Recognised::Numeral(n) => json!({ "numeral": n }),
        Recognised::Word(word) => json!({ "word": digits(word) }),
    }
}

fn recognised_text(recognised: &Recognised) -> String {
    match recognised {
        Recognised::Numeral(n) => n.to_string(),
        Recognised::Word(word) => format!("0b{}", digits(word)),
    }
}
