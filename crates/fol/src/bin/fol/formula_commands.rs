//! `fol vocab`: the symbols. `fol parse`, `print`, `encode`, `decode`, `level`: one formula or text at a time.

use clap::Args;
use fol::ast::{Formula, Text};
use fol::error::{Kind, Refusal};
use fol::read::{Mode, Parsed, Source};
use fol::symbol::{SymbolId, VOCABULARY};
use fol::{Style, codec, measure};
use serde_json::json;

use crate::answer::{Answer, Item};
use crate::input::{Grammar, Inputs, Reading, one_of};

/// Inputs and how they are read.
#[derive(Debug, Args)]
pub(crate) struct Read {
    #[command(flatten)]
    reading: Reading,
    #[command(flatten)]
    inputs: Inputs,
}

impl Read {
    /// One item for each input.
    pub(crate) fn each(
        &self,
        answer: impl Fn(&str, &Parsed) -> Result<Item, Refusal>,
    ) -> anyhow::Result<Vec<Item>> {
        self.inputs.each_read(&self.reading, answer)
    }

    /// One item for each input that is read as an inference task.
    fn each_task(
        &self,
        answer: impl Fn(&str, &fol::task::Parsed) -> Result<Item, Refusal>,
    ) -> anyhow::Result<Vec<Item>> {
        self.inputs.each_task(&self.reading, answer)
    }

    /// What inputs are and how much freedom they have.
    pub(crate) fn reading(&self) -> (Source, Mode) {
        (self.reading.source(), self.reading.mode())
    }
}

/// `fol parse`
#[derive(Debug, Args)]
pub(crate) struct Parse {
    #[command(flatten)]
    grammar: Grammar,
    #[command(flatten)]
    read: Read,
}

/// `fol print`
#[derive(Debug, Args)]
pub(crate) struct Print {
    /// How to write.
    #[arg(long, value_parser = one_of(STYLES), default_value = "unicode")]
    style: Written,
    #[command(flatten)]
    grammar: Grammar,
    #[command(flatten)]
    read: Read,
}

/// A style; TPTP is none of ours.
type Written = Option<Style>;

const STYLES: &[(&str, Written)] = &[
    ("unicode", Some(Style::Unicode)),
    ("ascii", Some(Style::Ascii)),
    ("subscript", Some(Style::Subscript)),
    ("words", Some(Style::Words)),
    ("tptp", None),
];

/// `fol encode`
#[derive(Debug, Args)]
pub(crate) struct Encode {
    /// Inputs are indices, decimal numbers.
    #[arg(long)]
    index: bool,
    /// Put `<bos>` and `<eos>` around the tokens.
    #[arg(long)]
    bos_eos: bool,
    #[command(flatten)]
    grammar: Grammar,
    #[command(flatten)]
    read: Read,
}

/// `fol decode`
#[derive(Debug, Args)]
pub(crate) struct Decode {
    /// Inputs are the digits of indices.
    #[arg(long)]
    index: bool,
    #[command(flatten)]
    grammar: Grammar,
    #[command(flatten)]
    read: Read,
}

/// The formula of a text.
pub(crate) fn one_formula(text: &Text) -> Result<&Formula, Refusal> {
    text.as_formula()
        .ok_or_else(|| Refusal::new(Kind::NotAFormula, "one formula without final DOT is wanted"))
}

/// Symbols as ids.
pub(crate) fn ids(symbols: &[SymbolId]) -> Vec<u16> {
    symbols.iter().map(|symbol| symbol.get()).collect()
}

/// Symbols as ids for people.
pub(crate) fn id_list(symbols: &[SymbolId]) -> String {
    ids(symbols).iter().map(u16::to_string).collect::<Vec<_>>().join(" ")
}

pub(crate) fn parse(args: &Parse) -> anyhow::Result<Vec<Item>> {
    if args.grammar.is_tasks() {
        return args.read.each_task(|input, parsed| {
            let unicode = fol::task::print(&parsed.task, Style::Unicode);
            let fields = json!({
                "text": unicode,
                "ascii": fol::task::print(&parsed.task, Style::Ascii),
                "tokens": ids(&parsed.tokens),
                "task": fol::task::json(&parsed.task),
                "names": parsed.given.names,
            });
            Ok(Item::answered(input, fields, format!("{unicode}\n  tokens {}", id_list(&parsed.tokens))))
        });
    }
    args.read.each(|input, parsed| {
        let text = &parsed.text;
        let unicode = fol::print(text, Style::Unicode);
        let measures = text.as_formula().map(measure::measures);
        let free: Vec<u64> = fol::free_variables(text).into_iter().map(|v| v.0).collect();
        let mut lines = unicode.clone();
        lines.push_str(&format!("\n  tokens {}", id_list(&parsed.tokens)));
        for (category, names) in &parsed.given.names {
            let names: Vec<_> = names.iter().map(|(name, index)| format!("{name} = {index}")).collect();
            lines.push_str(&format!("\n  {category} {}", names.join(", ")));
        }
        if let Some(measures) = measures {
            let (nodes, depth, level) = (measures.nodes, measures.quantifier_depth, measures.level);
            lines.push_str(&format!("\n  level {level}, nodes {nodes}, quantifier depth {depth}"));
        }
        let fields = json!({
            "text": unicode,
            "ascii": fol::print(text, Style::Ascii),
            "tokens": ids(&parsed.tokens),
            "tree": fol::json::text(text),
            "names": parsed.given.names,
            "nodes": measures.map(|m| m.nodes),
            "quantifier_depth": measures.map(|m| m.quantifier_depth),
            "level": measures.map(|m| m.level),
            "free": free,
        });
        Ok(Item::answered(input, fields, lines))
    })
}

pub(crate) fn print(args: &Print) -> anyhow::Result<Vec<Item>> {
    if args.grammar.is_tasks() {
        return args.read.each_task(|input, parsed| {
            let style = args.style.ok_or_else(|| {
                Refusal::new(Kind::TptpUnsupported, "TPTP has no inference tasks")
                    .help("print the sequent without --grammar tasks")
            })?;
            let text = fol::task::print(&parsed.task, style);
            Ok(Item::answered(input, json!({"text": text}), text))
        });
    }
    args.read.each(|input, parsed| {
        let text = match args.style {
            Some(style) => fol::print(&parsed.text, style),
            None => fol::tptp::print(&parsed.text).map_err(|refusal| parsed.locate(refusal))?,
        };
        Ok(Item::answered(input, json!({"text": text}), text))
    })
}

pub(crate) fn encode(args: &Encode) -> anyhow::Result<Vec<Item>> {
    let inputs = &args.read.inputs;
    if args.index {
        return inputs.each(|input| Ok(index_item(input, codec::read_number(input)?)));
    }
    let item = |input: &str, tokens: &[SymbolId]| {
        let mut tokens = tokens.to_vec();
        if args.bos_eos {
            tokens.insert(0, SymbolId::BOS);
            tokens.push(SymbolId::EOS);
        }
        let fields = json!({"tokens": ids(&tokens), "words": fol::words(&tokens)});
        Ok(Item::answered(input, fields, id_list(&tokens)))
    };
    if args.grammar.is_tasks() {
        return args.read.each_task(|input, parsed| item(input, &parsed.tokens));
    }
    args.read.each(|input, parsed| item(input, &parsed.tokens))
}

pub(crate) fn decode(args: Decode) -> anyhow::Result<Vec<Item>> {
    let (Read { reading, inputs }, tasks) = (args.read, args.grammar.is_tasks());
    let reading = reading.or_from(Source::Tokens);
    if args.index {
        return inputs.each(|input| Ok(index_item(input, codec::read_digits(input, reading.mode())?)));
    }
    if tasks {
        return inputs.each_task(&reading, |input, parsed| {
            let text = fol::task::print(&parsed.task, Style::Unicode);
            Ok(Item::answered(input, json!({"text": text, "words": fol::words(&parsed.tokens)}), text))
        });
    }
    inputs.each_read(&reading, |input, parsed| {
        let text = fol::print(&parsed.text, Style::Unicode);
        Ok(Item::answered(input, json!({"text": text, "words": fol::words(&parsed.tokens)}), text))
    })
}

fn index_item(input: &str, index: u64) -> Item {
    let digits = codec::digits(index);
    let written = digits.iter().map(u16::to_string).collect::<Vec<_>>().join(" ");
    Item::answered(input, json!({"index": index, "digits": digits}), format!("{index} = {written}"))
}

/// The listing of the symbols.
pub(crate) fn vocab() -> Answer {
    let item = |symbol: SymbolId| {
        let (id, label, kind) = (symbol.get(), symbol.label(), symbol.kind().name());
        let (unicode, ascii) = (symbol.unicode(), symbol.ascii());
        let fields = json!({"id": id, "label": label, "kind": kind, "unicode": unicode, "ascii": ascii});
        Item::listed(fields, format!("{id:3}  {label:13}  {kind:10}  {unicode:9}  {ascii}"))
    };
    Answer { items: SymbolId::all().map(item).collect(), extra: json!({"size": VOCABULARY}) }
}

pub(crate) fn level(args: &Read) -> anyhow::Result<Vec<Item>> {
    args.each(|input, parsed: &Parsed| {
        let m = measure::measures(one_formula(&parsed.text)?);
        let fields = json!({"level": m.level, "nodes": m.nodes, "quantifier_depth": m.quantifier_depth});
        let name = match m.level {
            1 => "atomic",
            2 => "simple compound",
            3 => "quantified",
            _ => "nested",
        };
        let (level, nodes, depth) = (m.level, m.nodes, m.quantifier_depth);
        Ok(Item::answered(input, fields, format!("{level} {name} (nodes {nodes}, quantifier depth {depth})")))
    })
}
