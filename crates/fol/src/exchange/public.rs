//! The sample files of the public project *Symbolic-Transformers* (Kerr).
//!
//! A file holds prefixes with their next symbols, as ids of a vocabulary whose *labels* agree with ours where
//! the symbols do. A formula is read from the sample that closes it.

use std::collections::BTreeMap;
use std::io::{BufRead, Read, Write};

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Value, json};

use super::import::bad;
use crate::error::{Kind, Refusal};
use crate::symbol::{BASE, SymbolId};

/// The labels of the public vocabulary after its 625 numerals.
const LABELS: &str = "X PLUS MINUS DIV EQUALS LPAREN RPAREN POW DOT SQRT FACTORIAL NOT AND OR IMPLIES IFF FORALL \
    EXISTS EXISTS1 NOT_EQUALS LESS_THAN GREATER_THAN LESS_EQUAL GREATER_EQUAL COMMA COLON TRUE FALSE VAR CONST \
    PRED FUNC SORT ENTAILS MODELS DEFINE EQUIVALENT MESSAGE_START MESSAGE_END PAD UNK SEP QUERY ANSWER END \
    UNKNOWN";

/// Which label has which id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vocabulary {
    labels: BTreeMap<u64, String>,
    ids: BTreeMap<String, u64>,
}

impl Default for Vocabulary {
    /// The 671 labels of the public project.
    fn default() -> Self {
        let numerals = (0..BASE).map(numeral_label);
        Self::of((0..).zip(numerals.chain(LABELS.split_whitespace().map(str::to_owned))))
    }
}

fn numeral_label(n: u16) -> String {
    format!("NUM_{n:03}")
}

impl Vocabulary {
    fn of(labels: impl IntoIterator<Item = (u64, String)>) -> Self {
        let labels: BTreeMap<u64, String> = labels.into_iter().collect();
        let ids = labels.iter().map(|(id, label)| (label.clone(), *id)).collect();
        Self { labels, ids }
    }

    /// Reads a vocabulary: a JSON list of labels, an object with `id_to_label`, `label_to_id` or `tokens` (a list
    /// of objects with `id` and `label`), an object from labels to ids, or one label a line.
    ///
    /// # Errors
    /// `BadRecord` if it is none of these.
    pub fn read(mut file: impl Read) -> Result<Self, Refusal> {
        let mut text = String::new();
        file.read_to_string(&mut text)
            .map_err(|error| bad(&format!("the vocabulary is no text: {error}")))?;
        let labels: Option<Vec<(u64, String)>> = match serde_json::from_str(&text) {
            Ok(Value::Array(list)) => numbered(&list),
            Ok(Value::Object(object)) => {
                let part = ["id_to_label", "label_to_id", "tokens"].iter().find_map(|key| object.get(*key));
                match part {
                    Some(Value::Array(list)) => {
                        list.iter().map(|token| pair(&token["id"], &token["label"])).collect()
                    }
                    Some(Value::Object(map)) => entries(map),
                    Some(_) => None,
                    None => entries(&object),
                }
            }
            Ok(_) => None,
            Err(_) => Some((0..).zip(text.lines().map(|line| line.trim().to_owned())).collect()),
        };
        labels
            .filter(|labels| !labels.is_empty())
            .map(Self::of)
            .ok_or_else(|| bad("the vocabulary has no labels with ids"))
    }

    /// The label of a token, which is an id or the label itself.
    fn label<'a>(&'a self, token: &'a Value) -> Option<&'a str> {
        match token {
            Value::String(label) => Some(label),
            id => self.labels.get(&id.as_u64()?).map(String::as_str),
        }
    }

    /// The id of a symbol of ours.
    fn id(&self, symbol: SymbolId) -> Result<u64, Refusal> {
        let label = match symbol {
            SymbolId::BOS => "MESSAGE_START".to_owned(),
            SymbolId::EOS => "MESSAGE_END".to_owned(),
            _ => match symbol.numeral() {
                Some(numeral) => numeral_label(numeral.get()),
                None => symbol.label().trim_matches(['<', '>']).to_uppercase(),
            },
        };
        self.ids.get(&label).copied().ok_or_else(|| {
            Refusal::new(Kind::UnmappedSymbol, format!("the vocabulary has no {label}")).found(symbol.label())
        })
    }
}

fn numbered(list: &[Value]) -> Option<Vec<(u64, String)>> {
    (0..).zip(list).map(|(id, label)| Some((id, label.as_str()?.to_owned()))).collect()
}

/// From ids to labels, or from labels to ids.
fn entries(map: &serde_json::Map<String, Value>) -> Option<Vec<(u64, String)>> {
    map.iter()
        .map(|(key, value)| match value {
            Value::String(label) => Some((key.parse().ok()?, label.clone())),
            id => Some((id.as_u64()?, key.clone())),
        })
        .collect()
}

fn pair(id: &Value, label: &Value) -> Option<(u64, String)> {
    Some((id.as_u64()?, label.as_str()?.to_owned()))
}

fn is_end(label: &str) -> bool {
    matches!(label, "MESSAGE_END" | "END")
}

/// Our symbol for a public label.
fn symbol(label: &str) -> Option<SymbolId> {
    if let Some(digits) = label.strip_prefix("NUM_") {
        return digits.parse().ok().filter(|n| *n < BASE).and_then(SymbolId::new);
    }
    match label {
        "MESSAGE_START" => Some(SymbolId::BOS),
        _ if is_end(label) => Some(SymbolId::EOS),
        "PAD" | "UNK" | "SEP" | "QUERY" | "ANSWER" | "UNKNOWN" => {
            SymbolId::from_label(&format!("<{}>", label.to_lowercase()))
        }
        _ => SymbolId::from_label(label),
    }
}

/// The tokens of each formula of a file, in order, as the reader takes them.
pub(super) fn formulas(
    file: impl BufRead,
    vocabulary: &Vocabulary,
) -> Result<Vec<Result<Vec<u16>, Refusal>>, Refusal> {
    let mut samples = Samples::new(vocabulary);
    let mut deserializer = serde_json::Deserializer::from_reader(file);
    let read = deserializer.deserialize_any(File(&mut samples)).and_then(|()| deserializer.end());
    if let Err(error) = read {
        if error.is_io() {
            return Err(std::io::Error::from(error).into());
        }
        samples.refuse(bad(&format!("no file of samples: {error}")));
    }
    Ok(samples.formulas())
}

/// What the samples so far say. Whether a file has boundary labels is known only at its end, so the formulas
/// are collected in both readings.
struct Samples<'a> {
    vocabulary: &'a Vocabulary,
    bounded: bool,
    /// The samples that end in a boundary.
    closed: Vec<Result<Vec<u16>, Refusal>>,
    /// The samples that the next one does not extend.
    longest: Vec<Result<Vec<u16>, Refusal>>,
    last: Option<Vec<Value>>,
}

impl<'a> Samples<'a> {
    fn new(vocabulary: &'a Vocabulary) -> Self {
        Self { vocabulary, bounded: false, closed: vec![], longest: vec![], last: None }
    }

    fn refuse(&mut self, refusal: Refusal) {
        self.flush();
        self.closed.push(Err(refusal.clone()));
        self.longest.push(Err(refusal));
    }

    fn sample(&mut self, sample: &Value) {
        let Some((context, target)) = sample["context"].as_array().zip(sample.get("target")) else {
            return self.refuse(bad("a sample has a list `context` and a `target`"));
        };
        let extended = self.last.as_ref().is_some_and(|last| context.starts_with(last));
        if !extended {
            self.flush();
        }
        let mut sequence = context.clone();
        sequence.push(target.clone());
        let mut labels = sequence.iter().filter_map(|token| self.vocabulary.label(token));
        self.bounded |= labels.any(|label| is_end(label) || label == "MESSAGE_START");
        if self.vocabulary.label(target).is_some_and(is_end) {
            self.closed.push(self.tokens(&sequence));
        }
        self.last = Some(sequence);
    }

    fn flush(&mut self) {
        if let Some(last) = self.last.take() {
            // Of no use, and perhaps long, once a boundary has been seen.
            if !self.bounded {
                self.longest.push(self.tokens(&last));
            }
        }
    }

    fn formulas(mut self) -> Vec<Result<Vec<u16>, Refusal>> {
        self.flush();
        if self.bounded { self.closed } else { self.longest }
    }

    /// Ours, with both boundaries or with none, as the reader wants them.
    fn tokens(&self, sequence: &[Value]) -> Result<Vec<u16>, Refusal> {
        let ours = |(at, token): (usize, &Value)| {
            let refused = |kind, message: String| Refusal::new(kind, message).at(at);
            let label = self.vocabulary.label(token).ok_or_else(|| {
                refused(Kind::UnknownId, format!("{token} is not in the vocabulary")).found(token.to_string())
            })?;
            symbol(label).map(SymbolId::get).ok_or_else(|| {
                refused(Kind::UnmappedSymbol, format!("{label} has no symbol here")).found(label)
            })
        };
        let mut tokens: Vec<u16> = sequence.iter().enumerate().map(ours).collect::<Result<_, _>>()?;
        let opened = tokens.first() == Some(&SymbolId::BOS.get());
        match (opened, tokens.last() == Some(&SymbolId::EOS.get())) {
            (false, true) => drop(tokens.pop()),
            (true, false) => tokens.push(SymbolId::EOS.get()),
            _ => {}
        }
        Ok(tokens)
    }
}

/// The object of a file; its samples are taken one by one, because all prefixes together are large.
struct File<'s, 'v>(&'s mut Samples<'v>);

impl<'de> Visitor<'de> for File<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an object with `samples`")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut found = false;
        while let Some(key) = map.next_key::<String>()? {
            if key == "samples" {
                map.next_value_seed(List(self.0))?;
                found = true;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        if found { Ok(()) } else { Err(serde::de::Error::missing_field("samples")) }
    }
}

struct List<'s, 'v>(&'s mut Samples<'v>);

impl<'de> DeserializeSeed<'de> for List<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for List<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a list of samples")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while let Some(sample) = list.next_element::<Value>()? {
            self.0.sample(&sample);
        }
        Ok(())
    }
}

/// Writes every prefix of every formula, from the opening boundary on, as one sample.
pub(super) fn write(
    formulas: &[Vec<SymbolId>],
    vocabulary: &Vocabulary,
    out: &mut dyn Write,
) -> Result<(), Refusal> {
    let bounded = |formula: &Vec<SymbolId>| -> Result<Vec<u64>, Refusal> {
        let around = [SymbolId::BOS].into_iter().chain(formula.iter().copied()).chain([SymbolId::EOS]);
        around.map(|symbol| vocabulary.id(symbol)).collect()
    };
    let sequences: Vec<Vec<u64>> = formulas.iter().map(bounded).collect::<Result<_, _>>()?;
    let samples: usize = sequences.iter().map(|sequence| sequence.len() - 1).sum();
    let longest = sequences.iter().map(Vec::len).max().unwrap_or(0);
    write!(
        out,
        "{{\"num_formulas\":{},\"num_samples\":{samples},\"max_seq_len\":{longest},\"samples\":[",
        sequences.len()
    )?;
    let mut separator = "";
    for sequence in &sequences {
        for (i, target) in sequence.iter().enumerate().skip(1) {
            let context = sequence.get(..i).unwrap_or_default();
            let sample = json!({"context": context, "target": target, "formula_len": sequence.len() - 2});
            write!(out, "{separator}{sample}")?;
            separator = ",\n";
        }
    }
    writeln!(out, "]}}")?;
    Ok(())
}
