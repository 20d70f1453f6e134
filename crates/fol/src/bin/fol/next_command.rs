//! `fol next`: what may follow a prefix, by a grammar or by a law.

use clap::Args;
use fol::error::{Kind, Refusal};
use fol::mask::{Grammar, Mask, Options};
use fol::read::Symbols;
use fol::symbol::SymbolId;
use fol::{SymbolSet, expected_labels};
use serde_json::json;

use crate::answer::Item;
use crate::formula_commands::ids;
use crate::input::{Inputs, Reading, one_of};
use crate::law_commands::{law_signature, next_of_law, setting};

/// `fol next`
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("by").required(true).args(["law", "grammar"]))]
pub(crate) struct Next {
    /// The law that the prefix is drawn from.
    #[arg(long, value_name = "L")]
    law: Option<String>,
    /// Change a key of the law.
    #[arg(long, value_name = "KEY=VALUE", requires = "law", value_parser = setting)]
    set: Vec<(String, String)>,
    /// What a complete input is.
    #[arg(long, value_parser = one_of(GRAMMARS))]
    grammar: Option<Grammar>,
    /// Only symbols, indices and arities that this law can produce.
    #[arg(long, value_name = "LAW", requires = "grammar")]
    within: Option<String>,
    /// Every variable occurrence is bound.
    #[arg(long, requires = "grammar")]
    closed: bool,
    /// The rest, `<eos>` included, fits in so many tokens.
    #[arg(long, value_name = "N", requires = "grammar")]
    budget: Option<u32>,
    /// The largest index.
    #[arg(long, value_name = "M", default_value_t = u64::MAX, requires = "grammar")]
    max_index: u64,
    #[command(flatten)]
    reading: Reading,
    #[command(flatten)]
    inputs: Inputs,
}

const GRAMMARS: &[(&str, Grammar)] = &[("formula", Grammar::Formula), ("text", Grammar::Text)];

pub(crate) fn next(args: &Next) -> anyhow::Result<Vec<Item>> {
    let Some(grammar) = args.grammar else {
        let law = args.law.as_deref().unwrap_or_default();
        return next_of_law(law, &args.set, &args.reading, &args.inputs);
    };
    let mask = args.within.as_deref().map(law_signature).transpose().map(|within| {
        Mask::new(&Options { grammar, within, closed: args.closed, budget: None, max_index: args.max_index })
    });
    args.inputs.each_marked(&args.reading, |input| {
        let mask = mask.as_ref().map_err(Refusal::clone)?.clone();
        let legal = after(mask, &args.reading.symbols(input)?, args.budget)?;
        let symbols: Vec<SymbolId> = legal.iter().collect();
        Ok(Item::answered(input, json!({"legal": ids(&symbols)}), expected_labels(&legal).join(" ")))
    })
}

/// The legal symbols after a prefix, `<bos>` optional. The budget counts what comes after the prefix.
fn after(mut mask: Mask, prefix: &Symbols, budget: Option<u32>) -> Result<SymbolSet, Refusal> {
    let framed = prefix.symbols.first() == Some(&SymbolId::BOS);
    for (at, &symbol) in prefix.symbols.iter().enumerate().skip(usize::from(framed)) {
        if symbol == SymbolId::EOS && !framed {
            let refusal =
                Refusal::new(Kind::UnexpectedSymbol, "<eos> stands only in input that begins with <bos>");
            return Err(prefix.locate(refusal.expected(expected_labels(mask.legal())), at));
        }
        mask.push(symbol).map_err(|refusal| prefix.locate(refusal, at))?;
    }
    if budget.is_some() {
        mask.set_budget(budget);
    }
    Ok(*mask.legal())
}
