//! Speeds of the crate `fol` on one core, beside its goals.

use std::sync::atomic::AtomicBool;

use anyhow::Result;
use fol::data::{Config, Options, Watch, generate};
use fol::law::Law;
use fol::mask::{Grammar, Mask, Options as MaskOptions};
use fol::sample::{Sampler, family};
use fol::score::{ExactScorer, Scorer};
use fol::symbol::SymbolId;

use super::{Figure, median};

const TEXTS: u64 = 20_000;

pub(super) fn figures() -> Result<Vec<Figure>> {
    let mut figures = Vec::new();
    for (name, goal) in [("public", 300_000.0), ("seed", 300_000.0), ("uniform", 150_000.0)] {
        let law = Law::named(name, &[])?;
        let mut sampler = Sampler::new(&law)?;
        let streams = family("sample", 0);
        let mut tokens: Vec<SymbolId> = Vec::new();
        let seconds = median(5, || {
            for item in 0..TEXTS {
                tokens.clear();
                sampler.sample(&mut streams.stream(item), &mut tokens);
            }
            Ok(())
        })?;
        figures.push(
            Figure::new(format!("draw, {name}"), TEXTS as f64 / seconds, "formulas/s").against("goal", goal),
        );
    }
    figures.push(boltzmann()?);
    for name in ["public", "public-advanced", "seed"] {
        figures.push(scorer(name)?);
    }
    figures.push(mask()?);
    for name in ["public", "uniform"] {
        figures.push(whole_way(name)?);
    }
    let counting = median(3, || {
        let law = Law::named("pr", &[])?;
        let counter = fol::count::Counter::new(&law, 60, 0, None)?;
        std::hint::black_box(counter.count(60));
        Ok(())
    })?;
    figures.push(Figure::new("counting table, pr, n ≤ 60", counting, "s").against("goal", 1.0));
    Ok(figures)
}

fn texts(law: &Law, n: u64) -> Result<Vec<Vec<SymbolId>>> {
    let mut sampler = Sampler::new(law)?;
    let streams = family("sample", 0);
    let draw = |item| {
        let mut tokens = Vec::new();
        sampler.sample(&mut streams.stream(item), &mut tokens);
        tokens
    };
    Ok((0..n).map(draw).collect())
}

/// Nodes of formulas of about so many nodes as the law has by itself; those of shapes that are given up do not count.
fn boltzmann() -> Result<Figure> {
    let law = Law::named("boltzmann", &[])?;
    let mut sampler = Sampler::new(&law)?;
    let streams = family("sample", 0);
    let mut tokens = Vec::new();
    let mut nodes = 0;
    let seconds = median(5, || {
        nodes = 0;
        for item in 0..TEXTS {
            nodes += u64::from(sampler.sample(&mut streams.stream(item), &mut tokens).nodes);
        }
        Ok(())
    })?;
    Ok(Figure::new("draw, boltzmann", nodes as f64 / seconds, "nodes/s").against("goal", 1e6))
}

fn scorer(name: &str) -> Result<Figure> {
    let law = Law::named(name, &[])?;
    let texts = texts(&law, 5_000)?;
    let tokens: usize = texts.iter().map(|t| t.len() + 1).sum();
    let mut scorer = Scorer::new(&law)?;
    let mut mass = 0.0;
    let seconds = median(5, || {
        for text in &texts {
            scorer.reset();
            for &symbol in text.iter().chain(&[SymbolId::EOS]) {
                mass += scorer.next_dist()[symbol.index()];
                scorer.push(symbol)?;
            }
        }
        Ok(())
    })?;
    std::hint::black_box(mass);
    Ok(Figure::new(format!("exact distribution and step, {name}"), tokens as f64 / seconds, "tokens/s")
        .against("goal", 1e6))
}

fn mask() -> Result<Figure> {
    let law = Law::named("seed", &[])?;
    let texts = texts(&law, 5_000)?;
    let steps: usize = texts.iter().map(Vec::len).sum();
    let mut options = MaskOptions::new(Grammar::Formula);
    (options.within, options.closed, options.budget) = (Some(law.signature()), true, Some(512));
    let start = Mask::new(&options);
    let seconds = median(5, || {
        for text in &texts {
            let mut mask = start.clone();
            for &symbol in text {
                mask.push(symbol)?;
            }
        }
        Ok(())
    })?;
    Ok(Figure::new("mask step, within seed, closed", seconds / steps as f64 * 1e6, "µs").against("goal", 2.0))
}

/// Drawing, canonical form, key, −ln p, files: the whole of `gen-data` on one thread.
fn whole_way(name: &str) -> Result<Figure> {
    const N: usize = 50_000;
    let text =
        format!("law = \"{name}\"\nthreads = 1\nstream = {{ train = {N}, val = 1, test = 1 }}\niid = 1\n");
    let config = Config::read(&text, &[])?;
    let folder = tempfile::tempdir()?;
    let (quiet, go_on) = (|_: u64, _: u64| {}, AtomicBool::new(false));
    let watch = Watch { progress: &quiet, cancelled: &go_on };
    let options = Options { force: true, ..Options::default() };
    let seconds = median(3, || {
        generate(&config, folder.path(), options, &watch)?;
        Ok(())
    })?;
    Ok(Figure::new(format!("gen-data, {name}, one thread"), N as f64 / seconds, "formulas/s")
        .against("goal", 1e5))
}
