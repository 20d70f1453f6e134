//! `fol check`, `canon`, `subst`: what a text uses, what it equals, and what it becomes.

use clap::Args;
use fol::ast::{Text, Variable};
use fol::check::{Options, Report, check as check_text};
use fol::error::Refusal;
use fol::symbol::SymbolId;
use fol::{Key, Style, canon};
use serde_json::{Value, json};

use crate::answer::Item;
use crate::formula_commands::{Read, id_list, ids, one_formula};
use crate::law_commands::law_signature;

/// `fol check`
#[derive(Debug, Args)]
pub(crate) struct Check {
    /// An index may have several arities.
    #[arg(long)]
    overloaded: bool,
    /// Only what this law can produce.
    #[arg(long, value_name = "NAME")]
    law: Option<String>,
    /// No variable is free.
    #[arg(long)]
    closed: bool,
    /// Every quantifier binds something.
    #[arg(long)]
    no_vacuous: bool,
    /// No quantifier repeats a variable in whose scope it stands.
    #[arg(long)]
    no_shadow: bool,
    /// Sorts agree.
    #[arg(long)]
    sorts: bool,
    #[command(flatten)]
    read: Read,
}

/// `fol subst`
#[derive(Debug, Args)]
pub(crate) struct Subst {
    /// The variable whose free occurrences are replaced.
    #[arg(long, value_name = "N")]
    var: u64,
    /// The term that replaces them, an input of its own.
    #[arg(long, value_name = "TERM")]
    by: String,
    #[command(flatten)]
    read: Read,
}

pub(crate) fn check(args: &Check) -> anyhow::Result<Vec<Item>> {
    let signature = args.law.as_deref().map(law_signature).transpose();
    let options = signature.map(|within| Options {
        overloaded: args.overloaded,
        within,
        closed: args.closed,
        no_vacuous: args.no_vacuous,
        no_shadow: args.no_shadow,
        sorts: args.sorts,
    });
    args.read.each(|input, parsed| {
        let options = options.as_ref().map_err(Refusal::clone)?;
        let report = check_text(parsed, options)?;
        Ok(Item::answered(input, report_json(&report), report_text(&report)))
    })
}

fn report_json(report: &Report) -> Value {
    json!({
        "predicates": report.predicates,
        "functions": report.functions,
        "constants": report.constants,
        "sorts": report.sorts,
        "free": report.free,
        "vacuous": report.vacuous,
        "shadowed": report.shadowed,
    })
}

fn report_text(report: &Report) -> String {
    let list =
        |name: &str, parts: Vec<String>| (!parts.is_empty()).then(|| format!("{name} {}", parts.join(", ")));
    let arities = |letter: &str, names: &std::collections::BTreeSet<(u64, usize)>| {
        names.iter().map(|(index, arity)| format!("{letter}{index}/{arity}")).collect::<Vec<_>>()
    };
    let positions = |at: &[usize]| at.iter().map(usize::to_string).collect::<Vec<_>>();
    let parts = [
        list("predicates", arities("P", &report.predicates)),
        list("functions", arities("f", &report.functions)),
        list("constants", report.constants.iter().map(|index| format!("c{index}")).collect()),
        list("sorts", report.sorts.iter().map(|index| format!("S{index}")).collect()),
        list("free", report.free.iter().map(|index| format!("x{index}")).collect()),
        list("vacuous binders at tokens", positions(&report.vacuous)),
        list("shadowed binders at tokens", positions(&report.shadowed)),
    ];
    let said: Vec<String> = parts.into_iter().flatten().collect();
    if said.is_empty() { "ok".to_owned() } else { said.join("; ") }
}

pub(crate) fn canonical(args: &Read) -> anyhow::Result<Vec<Item>> {
    args.each(|input, parsed| {
        let k0 = named_form(&parsed.tokens)?;
        let k1 = named_form(&canon::alpha(&parsed.text))?;
        let sig = canon::sig(&parsed.text);
        let k2 = named_form(&sig)?;
        let bucket = fol::bucket(&Key::of(&sig));
        let split = fol::split(bucket, fol::DEFAULT_WEIGHTS);
        let tokens = canon::skeleton(&parsed.text);
        let (ids, key) = (ids(&tokens), Key::of(&tokens).to_string());
        let k3 = json!({"tokens": ids, "words": fol::words(&tokens), "key": key});
        let line = |name: &str, form: &Value, what: &str| {
            let part = |key: &str| form.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
            format!("{name} {}  {}\n", part("key"), part(what))
        };
        let mut lines =
            [("K0", &k0), ("K1", &k1), ("K2", &k2)].map(|(name, form)| line(name, form, "text")).concat();
        lines.push_str(&line("K3", &k3, "words"));
        lines.push_str(&format!("bucket {bucket}, {split}"));
        let fields = json!({"K0": k0, "K1": k1, "K2": k2, "K3": k3, "bucket": bucket, "split": split});
        Ok(Item::answered(input, fields, lines))
    })
}

fn named_form(tokens: &[SymbolId]) -> Result<Value, Refusal> {
    let text = fol::print(&fol::decode(tokens)?, Style::Unicode);
    Ok(json!({"text": text, "tokens": ids(tokens), "key": Key::of(tokens).to_string()}))
}

pub(crate) fn subst(args: &Subst) -> anyhow::Result<Vec<Item>> {
    let (source, mode) = args.read.reading();
    let term = fol::read::parse_term(&args.by, source, mode);
    args.read.each(|input, parsed| {
        let formula = one_formula(&parsed.text)?;
        let term = match &term {
            Ok(term) => term,
            Err(refusal) => return Ok(Item::refused(input, refusal.clone()).about(&args.by)),
        };
        let text = Text::formula(fol::substitute(formula, Variable(args.var), term));
        let tokens = fol::encode(&text);
        fol::decode(&tokens)?; // a deep term in a deep formula is too deep
        let printed = fol::print(&text, Style::Unicode);
        let people = format!("{printed}\n  tokens {}", id_list(&tokens));
        Ok(Item::answered(input, json!({"text": printed, "tokens": ids(&tokens)}), people))
    })
}
