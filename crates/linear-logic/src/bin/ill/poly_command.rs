//! `ill poly`: a proof as a polynomial map.

use clap::Args;
use linear_logic::json::shaped;
use linear_logic::polynomial::{Polynomialised, polynomial};
use serde_json::{Value, json};

use crate::answer::{Answer, Failure};
use crate::denote_command::{At, dimensions_json};
use crate::input::Texts;

/// `ill poly`
#[derive(Debug, Args)]
pub(crate) struct Poly {
    #[command(flatten)]
    texts: Texts,
    #[command(flatten)]
    at: At,
}

pub(crate) fn poly(args: &Poly) -> Result<Answer, Failure> {
    if args.texts.is_empty() {
        return Err(Failure::Usage("give a FILE or `-e TEXT`".to_owned()));
    }
    let given = args.at.dimensions()?;
    let loaded = args.texts.load()?;
    let program = &loaded.program;
    let subject = args.texts.subject(program, args.at.main.as_deref())?;
    let found = polynomial(program, &subject, &args.at.arguments()?, &given)?;
    let shape = |entries: Vec<Value>| shaped(&found.formula, found.columns, entries);
    let texts: Vec<String> = found.entries.iter().map(|entry| found.text(entry)).collect();
    let text = texts.join("\n");
    let fields = json!({
        "type": found.formula.to_string(),
        "dims": dimensions_json(&found.dimensions),
        "vars": found.variables,
        "value": shape(texts.into_iter().map(Value::from).collect()),
        "terms": shape(found.entries.iter().map(|entry| Polynomialised::json(entry)).collect()),
    });
    Ok(Answer { order: program.order(), fields, text, warnings: loaded.warnings })
}
