//! The sample files of the public project *Symbolic-Transformers* (Kerr), read and written (F59).
//!
//! A file holds prefixes with their next symbols, as ids of a vocabulary whose *labels* agree with ours where
//! the symbols do. A formula is read from the sample that closes it.

use std::io::{BufRead, Write};

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Value, json};

use super::format::bad;
use super::vocabulary::{Vocabulary, is_end, symbol};
use crate::error::{Kind, Refusal};
use crate::symbol::SymbolId;

/// The tokens of each formula of a file, in order, as the reader takes them.
pub(super) fn formulas(
    file: impl BufRead,
    vocabulary: &Vocabulary,
) -> Result<Vec<Result<Vec<SymbolId>, Refusal>>, Refusal> {
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
    closed: Vec<Result<Vec<SymbolId>, Refusal>>,
    /// The samples that the next one does not extend.
    longest: Vec<Result<Vec<SymbolId>, Refusal>>,
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
        let boundary = |token| {
            self.vocabulary.label(token).is_some_and(|label| is_end(label) || label == "MESSAGE_START")
        };
        self.bounded = self.bounded || sequence.iter().any(boundary);
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

    fn formulas(mut self) -> Vec<Result<Vec<SymbolId>, Refusal>> {
        self.flush();
        if self.bounded { self.closed } else { self.longest }
    }

    /// Ours, with both boundaries or with none, as the reader wants them.
    fn tokens(&self, sequence: &[Value]) -> Result<Vec<SymbolId>, Refusal> {
        let ours = |(at, token): (usize, &Value)| {
            let refused = |kind, message: String| Refusal::new(kind, message).at(at);
            let label = self.vocabulary.label(token).ok_or_else(|| {
                refused(Kind::UnknownId, format!("{token} is not in the vocabulary")).found(token.to_string())
            })?;
            symbol(label).ok_or_else(|| {
                refused(Kind::UnmappedSymbol, format!("{label} has no symbol here")).found(label)
            })
        };
        let mut tokens: Vec<SymbolId> = sequence.iter().enumerate().map(ours).collect::<Result<_, _>>()?;
        let opened = tokens.first() == Some(&SymbolId::BOS);
        match (opened, tokens.last() == Some(&SymbolId::EOS)) {
            (false, true) => drop(tokens.pop()),
            (true, false) => tokens.push(SymbolId::EOS),
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
