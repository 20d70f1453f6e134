//! `ill check`: proofs, their types, kernel terms and sequent proofs.

use std::rc::Rc;

use clap::Args;
use linear_logic::error::{Kind, Refusal};
use linear_logic::formula::Formula;
use linear_logic::print;
use linear_logic::sequent::{self, Proof};
use linear_logic::term::{Definition, Term};
use serde_json::{Map, Value, json};

use crate::answer::{Answer, Failure, warning_json};
use crate::input::Texts;

/// `ill check`
#[derive(Debug, Args)]
pub(crate) struct Check {
    #[command(flatten)]
    texts: Texts,
    /// Show sequent proofs and how often each rule is used.
    #[arg(long)]
    sequent: bool,
    /// List the library.
    #[arg(long)]
    library: bool,
}

/// The most constructors, connectives and atoms of all texts of an answer.
pub(crate) const MAX_SYMBOLS: u64 = 1 << 26;

/// The most that all sequent proofs of an answer weigh: twice one of them, and a gigabyte with its JSON.
const MAX_PROOFS: u64 = 2 * sequent::MAX_WEIGHT;

/// The most bytes of all trees that are drawn.
const MAX_DRAWN: usize = 64 << 20;

/// What an answer may still hold.
struct Room {
    symbols: u64,
    proofs: u64,
    drawn: usize,
}

impl Room {
    /// Room for the texts of a definition, or a term.
    fn take_texts(
        &mut self,
        definition: Option<&Rc<Definition>>,
        term: &Term,
        formula: &Formula,
    ) -> Result<(), Refusal> {
        // The kernel and the canonical text, twice where the term is its own name; the type in two forms.
        let symbols = term.symbols().saturating_mul(3).saturating_add(formula.size().saturating_mul(3));
        take(&mut self.symbols, symbols, "the texts", definition)
    }

    fn take_proof(&mut self, definition: Option<&Rc<Definition>>, proof: &Proof) -> Result<(), Refusal> {
        take(&mut self.proofs, proof.weight(), "the sequent proofs", definition)
    }
}

fn take(room: &mut u64, needed: u64, what: &str, definition: Option<&Rc<Definition>>) -> Result<(), Refusal> {
    let Some(rest) = room.checked_sub(needed) else {
        let until = definition.map_or(String::new(), |d| format!(" up to that of `{}`", d.name));
        return Err(Refusal::new(Kind::Limit, format!("{what}{until} are too large together")));
    };
    *room = rest;
    Ok(())
}

pub(crate) fn check(args: &Check) -> Result<Answer, Failure> {
    if args.texts.is_empty() && !args.library {
        return Err(Failure::Usage("give a FILE, `-e TEXT` or `--library`".to_owned()));
    }
    let loaded = args.texts.load()?;
    let program = &loaded.program;
    let mut listed: Vec<(Option<&Rc<Definition>>, &Term, &Formula)> = Vec::new();
    let whole = |definition| -> Option<(Option<&Rc<Definition>>, &Term, &Formula)> {
        let definition: &Rc<Definition> = definition;
        Some((Some(definition), definition.term.as_ref()?, &definition.formula))
    };
    if args.library {
        listed.extend(program.library().iter().filter_map(whole));
    }
    let subjects =
        if args.texts.sources().is_empty() { Vec::new() } else { args.texts.subjects(program, None)? };
    if args.texts.sources().is_empty() {
        listed.extend(program.definitions().iter().filter_map(whole));
    }
    listed.extend(subjects.iter().map(|subject| (None, &subject.term, &subject.formula)));
    let mut definitions = Vec::with_capacity(listed.len());
    let mut lines = Vec::with_capacity(listed.len());
    let mut room = Room { symbols: MAX_SYMBOLS, proofs: MAX_PROOFS, drawn: MAX_DRAWN };
    for (definition, term, formula) in listed {
        room.take_texts(definition, term, formula)?;
        lines.push(line(definition, term, formula));
        let mut entry = describe(definition, term, formula);
        if args.sequent {
            let proof = sequent::read_back(term, program.order())?;
            room.take_proof(definition, &proof)?;
            add_sequent(&mut entry, &proof);
            lines.extend(drawn(&proof, &mut room));
        }
        definitions.push(Value::Object(entry));
    }
    let warnings: Vec<Value> = loaded.warnings.iter().map(warning_json).collect();
    let fields = json!({ "definitions": definitions, "warnings": warnings });
    Ok(Answer {
        order: program.order(),
        fields,
        text: lines.join("\n").trim_end().to_owned(),
        warnings: loaded.warnings,
    })
}

fn line(definition: Option<&Rc<Definition>>, term: &Term, formula: &Formula) -> String {
    match definition {
        Some(definition) if definition.parameters.is_empty() => {
            format!("{} : {}", definition.name, formula.short())
        }
        Some(definition) => {
            format!("{}{{{}}} : {}", definition.name, definition.parameters.join(", "), formula.short())
        }
        None => format!("{} : {}", print::kernel(term), formula.short()),
    }
}

fn describe(definition: Option<&Rc<Definition>>, term: &Term, formula: &Formula) -> Map<String, Value> {
    let parameters: Vec<&str> =
        definition.map_or(Vec::new(), |d| d.parameters.iter().map(|p| &**p).collect());
    Map::from_iter([
        ("name".to_owned(), json!(definition.map(|d| &*d.name))),
        ("params".to_owned(), json!(parameters)),
        ("type".to_owned(), json!(formula.to_string())),
        ("type_short".to_owned(), json!(formula.short())),
        ("kernel".to_owned(), json!(print::kernel(term))),
        ("canonical".to_owned(), json!(print::canonical(term))),
        ("nodes".to_owned(), json!(term.size())),
    ])
}

fn add_sequent(entry: &mut Map<String, Value>, proof: &Proof) {
    let rules = proof.rules().into_iter().map(|(rule, n)| (rule.name().to_owned(), json!(n))).collect();
    entry.insert("rules".to_owned(), rules);
    entry.insert("sequent".to_owned(), proof.json());
}

/// The tree, and how often each rule is used.
fn drawn(proof: &Proof, room: &mut Room) -> Vec<String> {
    let rules = proof.rules().into_iter().map(|(rule, n)| format!("{} {n}", rule.name()));
    let rules = rules.collect::<Vec<_>>().join(", ");
    let mut lines = vec![String::new()];
    let bytes = |rows: &[String]| rows.iter().map(String::len).sum::<usize>();
    let drawing = proof.drawing().filter(|rows| bytes(rows) <= room.drawn);
    room.drawn -= drawing.as_deref().map_or(0, bytes);
    match drawing {
        Some(rows) => lines.extend(rows.into_iter().map(|row| format!("  {row}"))),
        None => lines.push("  the tree is too large to be drawn; `--json` has it".to_owned()),
    }
    lines.extend([String::new(), format!("  {rules}"), String::new()]);
    lines
}
