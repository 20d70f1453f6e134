//! `ill denote`: the value of a proof over a ring.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::rc::Rc;

use clap::{Args, ValueEnum};
use linear_logic::argument::{Denotation, denote as denote_at, dimensions};
use linear_logic::denote::{Carrier, Dense, Words};
use linear_logic::elaborate::Extension;
use linear_logic::error::{Kind, Refusal};
use linear_logic::formula::Formula;
use linear_logic::json::{Json, number_json, shaped};
use linear_logic::program::{Checked, Program};
use linear_logic::ring::{Chosen, Epsilons, Infinitesimal, Number, Ring};
use serde_json::{Value, json};

use crate::answer::{Answer, Failure};
use crate::input::{Texts, bytes};

/// `ill denote`
#[derive(Debug, Args)]
pub(crate) struct Denote {
    #[command(flatten)]
    texts: Texts,
    #[command(flatten)]
    at: At,
    /// The ring: int, i64, rat, mod:P, f64.
    #[arg(long, value_name = "R", default_value = "int")]
    ring: Chosen,
    /// What the space of an atom is.
    #[arg(long, value_enum, value_name = "C", default_value = "dense")]
    carrier: CarrierName,
}

/// A proof and its arguments.
#[derive(Debug, Args)]
pub(crate) struct At {
    /// The definition to take, with formulas in braces or not.
    #[arg(long, value_name = "NAME")]
    pub(crate) main: Option<String>,
    /// An argument, in order.
    #[arg(long = "arg", value_name = "JSON", allow_hyphen_values = true)]
    arguments: Vec<OsString>,
    /// The dimension of an atom.
    #[arg(long = "dim", value_name = "α=N")]
    dimensions: Vec<Dimension>,
}

/// `α=n`
#[derive(Debug, Clone)]
struct Dimension {
    atom: String,
    size: usize,
}

impl std::str::FromStr for Dimension {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split_once('=').filter(|(atom, _)| !atom.is_empty());
        let (atom, size) = parts.ok_or("a dimension is written `α=n`")?;
        let size = size.parse().ok().filter(|n| *n >= 1).ok_or("a dimension is a number from 1")?;
        Ok(Self { atom: atom.to_owned(), size })
    }
}

impl At {
    /// The arguments as JSON.
    pub(crate) fn arguments(&self) -> Result<Vec<Json>, Refusal> {
        self.arguments.iter().map(json_of).collect()
    }

    /// The dimensions that were given, each once.
    pub(crate) fn dimensions(&self) -> Result<BTreeMap<Rc<str>, usize>, Failure> {
        let mut found = BTreeMap::new();
        for Dimension { atom, size } in &self.dimensions {
            if found.insert(Rc::from(atom.as_str()), *size).is_some() {
                return Err(Failure::Usage(format!("`--dim` gives the dimension of `{atom}` twice")));
            }
        }
        Ok(found)
    }
}

/// The JSON value of an argument.
pub(crate) fn json_of(text: &OsString) -> Result<Json, Refusal> {
    let text = String::from_utf8(bytes(text));
    Json::parse(&text.map_err(|_| Refusal::new(Kind::Argument, "a value is not UTF-8"))?)
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum CarrierName {
    Dense,
    Words,
}

pub(crate) fn denote(args: &Denote) -> Result<Answer, Failure> {
    if args.texts.is_empty() {
        return Err(Failure::Usage("give a FILE or `-e TEXT`".to_owned()));
    }
    let given = args.at.dimensions()?;
    let loaded = args.texts.load()?;
    let program = &loaded.program;
    let subject = args.texts.subject(program, args.at.main.as_deref())?;
    let arguments = args.at.arguments()?;
    let dimensions = match args.carrier {
        CarrierName::Dense => dimensions(&given, &subject.formula, &arguments)?,
        CarrierName::Words => given,
    };
    let task = Task { program, subject: &subject, arguments: &arguments, dimensions: &dimensions, args };
    let (formula, value) = task.value(args.ring)?;
    let carrier = match args.carrier {
        CarrierName::Dense => "dense",
        CarrierName::Words => "words",
    };
    let text = value.to_string();
    let fields = json!({
        "type": formula.to_string(),
        "ring": args.ring.to_string(),
        "carrier": carrier,
        "dims": dimensions_json(&dimensions),
        "value": value,
    });
    Ok(Answer { order: program.order(), fields, text, warnings: loaded.warnings })
}

/// The dimensions of atoms as a JSON object.
pub(crate) fn dimensions_json(dimensions: &BTreeMap<Rc<str>, usize>) -> Value {
    dimensions.iter().map(|(atom, size)| (atom.to_string(), json!(size))).collect()
}

struct Task<'a> {
    program: &'a Program,
    subject: &'a Checked,
    arguments: &'a [Json],
    dimensions: &'a BTreeMap<Rc<str>, usize>,
    args: &'a Denote,
}

impl Task<'_> {
    /// Over a ring, with infinitesimals only where there are kets.
    fn value(&self, ring: Chosen) -> Result<(Formula, Value), Refusal> {
        let is_ket = |json: &Json| matches!(json, Json::Object(keys) if keys.contains_key("ket"));
        let infinitesimals = Epsilons::new(ring);
        let number = |x: &Infinitesimal<Number>| number_json(x.finite_part().unwrap_or(&ring.zero()));
        if matches!(self.args.carrier, CarrierName::Words) {
            let mut denotation = self.at(Words::new(infinitesimals))?;
            let words = denotation.words()?;
            let words: Vec<Value> = words.iter().map(|(word, c)| json!([number(c), word])).collect();
            return Ok((denotation.formula, json!({ "words": words })));
        }
        if self.arguments.iter().any(is_ket) || self.args.texts.extension() == Extension::Differential {
            return self.dense(infinitesimals, number);
        }
        self.dense(ring, number_json)
    }

    fn at<C: Carrier>(&self, carrier: C) -> Result<Denotation<C>, Refusal> {
        denote_at(carrier, self.program, self.subject, self.arguments, self.args.texts.extension())
    }

    fn dense<R: Ring>(
        &self,
        ring: R,
        json: impl Fn(&R::Element) -> Value,
    ) -> Result<(Formula, Value), Refusal> {
        let mut denotation = self.at(Dense::new(ring, self.dimensions.clone()))?;
        let entries = denotation.coordinates()?;
        let columns = denotation.columns()?;
        let value = shaped(&denotation.formula, columns, entries.iter().map(json).collect());
        Ok((denotation.formula, value))
    }
}
