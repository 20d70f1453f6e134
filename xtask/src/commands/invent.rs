//! `cargo xtask invent`: definitions that make a set of formulas shorter, in tokens or in bits under a model.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use fol::ast::{Definition, Formula, Text};
use fol::invent::{Definitions, Invented, Library, Options, Proposal, text_of};
use fol::symbol::{SymbolId, VOCABULARY};
use fol::{Style, canon, decode, encode, print};
use serde_json::{Value, json};
use symbolic_transformer::evaluate::h3::{MOST_FORMULAS, instances};
use symbolic_transformer::explicit::Explicit;
use symbolic_transformer::learner::{Corpus, validate};
use symbolic_transformer::network::Network;
use training::Progress;

use crate::answer::{give, usage};
use crate::signals::{Stop, Stopped};
use crate::transformer::{code, network};
use crate::{data, keys, run_folder};

/// Options of `invent`.
#[derive(Debug, Args)]
pub(crate) struct InventArgs {
    /// A data set (a folder, or a name in data/), or a file of formulas, one a line.
    data: String,
    /// The first N formulas of the training set.
    #[arg(long, value_name = "N", default_value_t = 2000, value_parser = clap::value_parser!(u64).range(1..))]
    first: u64,
    /// Definitions at most.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..))]
    max: u16,
    /// Parameters of a definition at most.
    #[arg(long, value_name = "K", default_value_t = 4, value_parser = clap::value_parser!(u16).range(0..=32))]
    arity: u16,
    /// Patterns that are looked at for one definition at most; the definition says whether that was all.
    #[arg(long, value_name = "N", default_value_t = 2_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    patterns: u64,
    /// What is to become less: `static` (tokens, each log2 663 bits), or the bits that the model of a run gives.
    #[arg(long, value_name = "static|RUN", default_value = "static")]
    measure: String,
    /// Says of each definition how well a linear map of each layer of this run's transformer tells its instances, at the last
    /// token of what could be one; of the first 10,000 formulas, half of which train.
    #[arg(long, value_name = "RUN")]
    probe: Option<String>,
    /// Deals the formulas out to K parts as well, invents for each by itself, and says how alike the definitions are.
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u16).range(2..=64))]
    parts: Option<u16>,
    /// Writes definitions and folded formulas into this file, one a line, the definitions first.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Writes the formulas without definitions into this file, one a line, in the order and with the bound variables that
    /// --out has them with.
    #[arg(long, value_name = "FILE")]
    formulas: Option<PathBuf>,
    /// Prints one JSON document to standard output.
    #[arg(long)]
    json: bool,
    /// Warnings and errors only.
    #[arg(long)]
    quiet: bool,
}

/// Proposals among which a model chooses.
const CHOICES: usize = 8;

/// `cargo xtask invent`; returns the exit status.
pub(crate) fn run(args: &InventArgs) -> Result<u8> {
    check_files(args)?;
    let stop = Stop::watch()?;
    let corpus = formulas(args)?;
    let options =
        Options { most: usize::from(args.max), arity: usize::from(args.arity), patterns: args.patterns };
    let mut library = Library::new(&corpus);
    let plain = library.folded();
    let mut model = if args.measure == "static" { None } else { Some(Model::open(&args.measure)?) };
    let probed = args.probe.as_deref().map(Probed::open).transpose()?;
    let progress = Progress::new(u64::from(args.max), args.quiet);
    let mut bits = Vec::new();
    let mut goes_on = |looked: u64| {
        if let Progress::Bar(bar) = &progress {
            bar.set_message(format!("{looked} patterns"));
        }
        stop.signal().is_none()
    };
    let mut least = match &mut model {
        Some(model) => model.bits(&library.folded(), &[])?,
        None => 0.0,
    };
    let most = options.most;
    while library.definitions().len() < most {
        let found = match &mut model {
            None => library.propose(&options, &mut goes_on).map(|proposal| {
                let gained = proposal.gain() as f64 * (VOCABULARY as f64).log2();
                (proposal, gained)
            }),
            Some(model) => {
                let proposals = library.proposals(&options, CHOICES, &mut goes_on);
                choose(&library, proposals, model, &mut least)?
            }
        };
        if let Some(signal) = stop.signal() {
            let what = format!("{} definitions were found, and none is written", bits.len());
            return Err(Stopped { signal, what }.into());
        }
        let Some((proposal, gained)) = found else { break };
        library.accept(&proposal);
        bits.push(gained);
        progress.set(bits.len() as u64);
        if let Some(last) = library.definitions().last() {
            progress.note(format!("{}  {} uses, {} tokens", shown(&last.definition), last.uses, last.gain));
        }
    }
    progress.finish();
    certify(&corpus, &library)?;
    let stability = args.parts.map(|parts| stability(&corpus, usize::from(parts), &options, &stop));
    let stability = stability.transpose()?;
    let probes = probed.map(|probed| probed.probes(&library, &plain)).transpose()?;
    if let Some(path) = &args.out {
        training::files::write(path, folded_text(&library).as_bytes())?;
    }
    if let Some(path) = &args.formulas {
        training::files::write(path, lines(&plain).as_bytes())?;
    }
    let mut document = answer(args, &corpus, &library, &bits);
    if let Some(found) = stability {
        document["stability"] = found;
    }
    if let Some(layers) = probes {
        document["probe"] =
            json!({"run": args.probe, "formulas": plain.len().min(MOST_FORMULAS), "definitions": layers});
    }
    give(args.json, &document, || in_words(&library, &bits, &document))?;
    Ok(0)
}

/// Of definitions that are invented for parts of the corpus, tokens counted: the Jaccard index of each two parts' sets of
/// definitions, whole bodies up to the names in them (K2). Part k has the formulas k, k + K, k + 2 K …
fn stability(corpus: &[Formula], parts: usize, options: &Options, stop: &Stop) -> Result<Value> {
    let mut sets = Vec::new();
    for part in 0..parts {
        let formulas: Vec<Formula> = corpus.iter().skip(part).step_by(parts).cloned().collect();
        let mut library = Library::new(&formulas);
        library.invent(options, &mut |_| stop.signal().is_none());
        if let Some(signal) = stop.signal() {
            let what = format!("{part} of {parts} parts were looked at, and nothing is written");
            return Err(Stopped { signal, what }.into());
        }
        certify(&formulas, &library)?;
        sets.push(up_to_names(&library)?);
    }
    let jaccard = |a: &BTreeSet<Vec<SymbolId>>, b: &BTreeSet<Vec<SymbolId>>| {
        let (both, either) = (a.intersection(b).count(), a.union(b).count());
        // Two that invent nothing agree.
        if either == 0 { 1.0 } else { both as f64 / either as f64 }
    };
    let pairs: Vec<f64> = sets
        .iter()
        .enumerate()
        .flat_map(|(i, a)| sets.iter().skip(i + 1).map(move |b| jaccard(a, b)))
        .collect();
    let sizes: Vec<usize> = sets.iter().map(BTreeSet::len).collect();
    let (least, most) = pairs.iter().fold((1.0, 0.0), |(least, most), &p| (p.min(least), p.max(most)));
    let mean = pairs.iter().sum::<f64>() / pairs.len().max(1) as f64;
    Ok(json!({"parts": parts, "definitions": sizes, "jaccard": {"mean": mean, "least": least, "most": most}}))
}

/// The definitions of a library up to names: each with the whole of its body, in which no other one stands.
fn up_to_names(library: &Library) -> Result<BTreeSet<Vec<SymbolId>>> {
    let found = || library.definitions().iter().map(|d| &d.definition);
    let known = Definitions::new(found()).map_err(|r| anyhow!("{r}"))?;
    found()
        .map(|definition| {
            let whole = match definition {
                Definition::Predicate(name, parameters, body) => {
                    let body = known.expand(body).map_err(|r| anyhow!("{r}"))?;
                    Definition::Predicate(*name, parameters.clone(), body)
                }
                other => other.clone(),
            };
            Ok(canon::sig(&text_of(&whole)))
        })
        .collect()
}

/// Refuses a file that is to be two things.
fn check_files(args: &InventArgs) -> Result<()> {
    let at = |path: &Path| std::fs::canonicalize(path).or_else(|_| std::path::absolute(path)).ok();
    let (data, out) = (Some(Path::new(&args.data)), args.out.as_deref());
    let formulas = args.formulas.as_deref();
    for (name, path, others) in [
        ("--formulas", formulas, [("--out", out), ("the data", data)]),
        ("--out", out, [("the data", data), ("", None)]),
    ] {
        let Some(path) = path else { continue };
        let is_file = |path: &Path| !path.exists() || path.is_file();
        let same = |other: &Path| is_file(path) && at(path).is_some_and(|path| Some(path) == at(other));
        if let Some((other, _)) = others.iter().find(|(_, other)| other.is_some_and(same)) {
            return Err(usage(format!("{name} {}: that is {other}", path.display())));
        }
    }
    Ok(())
}

/// The formulas.
fn formulas(args: &InventArgs) -> Result<Vec<Formula>> {
    let path = Path::new(&args.data);
    let read = |tokens: &[SymbolId], place: &dyn Fn() -> String| {
        let text = decode(tokens).map_err(|r| anyhow!("{}: {}", place(), r))?;
        text.as_formula()
            .cloned()
            .ok_or_else(|| anyhow!("{}: symbols are invented for formulas alone, and this is none", place()))
    };
    if path.is_file() {
        let (name, text) = keys::read(path)?;
        let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        let lines = lines.take(usize::try_from(args.first).unwrap_or(usize::MAX));
        let mut together = fol::read::Together::of(text.lines());
        let found: Result<Vec<Formula>> = lines
            .map(|(number, line)| {
                let place = || format!("{name}:{}", number + 1);
                let parsed = together.parse(line, fol::read::Mode::Strict);
                let parsed = parsed.map_err(|r| anyhow!("{}: {}", place(), r))?;
                read(&parsed.tokens, &place)
            })
            .collect();
        let found = found?;
        if found.is_empty() {
            bail!("{name}: no formula");
        }
        return Ok(found);
    }
    let set = data::open_if_present(&args.data)?.ok_or_else(|| {
        usage(format!("{}: neither a data set nor a file of formulas; `gen-data` makes the first", args.data))
    })?;
    let few = set.few(args.first)?;
    let place = |i: usize| format!("{}: text {i} of the training set", args.data);
    few.iter().enumerate().map(|(i, tokens)| read(Corpus::inner(tokens), &|| place(i))).collect()
}

/// The model of a run, which reads definitions and formulas as they are.
struct Model {
    network: Box<dyn Network>,
    theta: Vec<f32>,
}

impl Model {
    fn open(run: &str) -> Result<Self> {
        let folder = run_folder::find(run)?;
        let config: crate::transformer::config::Config = run_folder::config(&folder)?;
        let code = code::of_run(&folder, &config)?;
        if !code.is_plain() {
            bail!(
                "--measure {run}: its code has no names but those of its data, and a definition needs another"
            );
        }
        training::threads::set(config.threads)?;
        let (network, theta) = network::load(&folder, &config, &code)?;
        Ok(Self { network, theta })
    }

    /// Bits of formulas and definitions, each a text of its own.
    fn bits(&mut self, formulas: &[Formula], definitions: &[&Definition]) -> Result<f64> {
        let mut corpus = Corpus::new();
        for definition in definitions {
            corpus.push(encode(&text_of(definition)), f64::NAN);
        }
        for formula in formulas {
            corpus.push(encode(&Text::formula(formula.clone())), f64::NAN);
        }
        let scores = validate(self.network.as_mut(), &self.theta, &corpus)
            .context("a text that the model reads; `--measure static` has no such limit")?;
        if !scores.nll.is_finite() {
            bail!("the model's bits are no number: its weights overflow");
        }
        Ok(scores.nll / std::f64::consts::LN_2)
    }
}

/// The transformer of a run, into whose layers probes look.
struct Probed {
    model: Explicit,
    theta: Vec<f32>,
    seed: u64,
}

impl Probed {
    fn open(run: &str) -> Result<Self> {
        let folder = run_folder::find(run)?;
        let config: crate::transformer::config::Config = run_folder::config(&folder)?;
        config.check_inside(&format!("--probe {run}"), "layers")?;
        let code = code::of_run(&folder, &config)?;
        if !code.is_plain() {
            bail!("--probe {run}: its code has other tokens than the formulas in which definitions stand");
        }
        training::threads::set(config.threads)?;
        let (_, theta) = network::load(&folder, &config, &code)?;
        let model = Explicit::in_code(config.shape(code.size())?, &code)?;
        Ok(Self { model, theta, seed: config.seed })
    }

    /// Of each definition its layers, from that of the embedding on.
    fn probes(mut self, library: &Library, plain: &[Formula]) -> Result<Vec<Value>> {
        let found: Vec<&Definition> = library.definitions().iter().map(|d| &d.definition).collect();
        let known = Definitions::new(found.iter().copied()).map_err(|r| anyhow!("{r}"))?;
        let plain = plain.get(..MOST_FORMULAS).unwrap_or(plain);
        let mut corpus = Corpus::new();
        plain.iter().for_each(|formula| corpus.push(encode(&Text::formula(formula.clone())), f64::NAN));
        let mut places = vec![Vec::with_capacity(plain.len()); found.len()];
        for (number, formula) in plain.iter().enumerate() {
            for (definition, places) in found.iter().zip(&mut places) {
                let own = known.places(definition, formula);
                places.push(own.map_err(|r| anyhow!("--probe: formula {number}: {r}"))?);
            }
        }
        let probes = instances(&mut self.model, &self.theta, &corpus, &places, self.seed)
            .context("a formula that the model of --probe reads")?;
        let layers = |k: usize| -> Vec<Value> {
            let own = probes.iter().skip(k).step_by(found.len());
            own.map(|p| {
                json!({
                    "layer": p.layer, "rows": p.rows, "commonest": p.commonest, "accuracy": p.accuracy,
                    "reason": p.reason,
                })
            })
            .collect()
        };
        Ok(found.iter().enumerate().map(|(k, d)| json!({"text": shown(d), "layers": layers(k)})).collect())
    }
}

/// Of some proposals that which leaves the fewest bits, if it leaves fewer than there were.
fn choose(
    library: &Library,
    proposals: Vec<Proposal>,
    model: &mut Model,
    least: &mut f64,
) -> Result<Option<(Proposal, f64)>> {
    let known: Vec<&Definition> = library.definitions().iter().map(|d| &d.definition).collect();
    let mut best: Option<(Proposal, f64)> = None;
    for proposal in proposals {
        let definition = library.definition(&proposal);
        let all: Vec<&Definition> = known.iter().copied().chain([&definition]).collect();
        let bits = model.bits(&library.with(&proposal), &all)?;
        if bits < best.as_ref().map_or(*least, |(_, bits)| *bits) {
            best = Some((proposal, bits));
        }
    }
    Ok(best.map(|(proposal, bits)| {
        let gained = *least - bits;
        *least = bits;
        (proposal, gained)
    }))
}

/// Every folded formula, expanded, is the formula that it was.
fn certify(corpus: &[Formula], library: &Library) -> Result<()> {
    let definitions = Definitions::new(library.definitions().iter().map(|d| &d.definition));
    let definitions = definitions.map_err(|r| anyhow!("{r}"))?;
    for (number, (formula, folded)) in corpus.iter().zip(library.folded()).enumerate() {
        let expanded = definitions.expand(&folded).map_err(|r| anyhow!("{r}"))?;
        let form = |f: &Formula| canon::alpha(&Text::formula(f.clone()));
        if form(&expanded) != form(formula) {
            bail!(
                "formula {number} does not come back from {}",
                print(&Text::formula(folded), Style::Unicode)
            );
        }
    }
    Ok(())
}

fn shown(definition: &Definition) -> String {
    print(&text_of(definition), Style::Unicode)
}

fn folded_text(library: &Library) -> String {
    let definitions = library.definitions().iter().map(|d| shown(&d.definition) + "\n");
    definitions.collect::<String>() + &lines(&library.folded())
}

fn lines(formulas: &[Formula]) -> String {
    formulas.iter().map(|f| print(&Text::formula(f.clone()), Style::Unicode) + "\n").collect()
}

/// The names that a text uses, without what it defines.
fn names(text: &Text) -> BTreeSet<(SymbolId, Vec<SymbolId>)> {
    let tokens = encode(text);
    let mut found = BTreeSet::new();
    for (at, &symbol) in tokens.iter().enumerate() {
        if [SymbolId::PRED, SymbolId::FUNC, SymbolId::CONST].contains(&symbol) {
            let digits =
                tokens.get(at + 1..).unwrap_or_default().iter().take_while(|s| s.numeral().is_some());
            found.insert((symbol, digits.copied().collect()));
        }
    }
    found
}

/// What is defined, as [`names`] have it.
fn defined(definition: &Definition) -> (SymbolId, Vec<SymbolId>) {
    let tokens = encode(&text_of(definition));
    let digits = tokens.iter().skip(1).take_while(|s| s.numeral().is_some()).copied().collect();
    (tokens.first().copied().unwrap_or(SymbolId::PRED), digits)
}

fn parameters(definition: &Definition) -> usize {
    match definition {
        Definition::Predicate(_, parameters, _) | Definition::Function(_, parameters, _) => parameters.len(),
        Definition::Constant(..) => 0,
    }
}

/// How many levels of definitions stand below each.
fn levels(found: &[Invented]) -> Vec<usize> {
    let mut known: BTreeMap<(SymbolId, Vec<SymbolId>), usize> = BTreeMap::new();
    found
        .iter()
        .map(|invented| {
            let own = defined(&invented.definition);
            let used = names(&text_of(&invented.definition));
            let below = used.iter().filter(|name| **name != own).filter_map(|name| known.get(name)).max();
            let level = below.map_or(0, |level| level + 1);
            known.insert(own, level);
            level
        })
        .collect()
}

fn answer(args: &InventArgs, corpus: &[Formula], library: &Library, bits: &[f64]) -> Value {
    let found = library.definitions();
    let (before, after) = library.tokens();
    let ours: BTreeSet<_> = found.iter().map(|d| defined(&d.definition)).collect();
    // The shapes of the corpus in which a definition is used.
    let (mut shapes, mut covered, mut used) = (BTreeSet::new(), BTreeSet::new(), 0_u64);
    for (formula, folded) in corpus.iter().zip(library.folded()) {
        let shape = canon::skeleton(&Text::formula(formula.clone()));
        if !names(&Text::formula(folded)).is_disjoint(&ours) {
            covered.insert(shape.clone());
            used += 1;
        }
        shapes.insert(shape);
    }
    let known = Definitions::new(found.iter().map(|d| &d.definition)).ok();
    let expanded = |definition: &Definition| {
        let body = match definition {
            Definition::Predicate(_, _, body) => body,
            _ => return None,
        };
        let whole = known.as_ref()?.expand(body).ok()?;
        Some(encode(&Text::formula(whole)).len())
    };
    let definitions: Vec<Value> = found
        .iter()
        .zip(bits)
        .zip(levels(found))
        .map(|((invented, bits), level)| {
            json!({
                "text": shown(&invented.definition), "uses": invented.uses, "gain_tokens": invented.gain,
                "gain_bits": bits, "arity": parameters(&invented.definition), "level": level,
                "expanded_tokens": expanded(&invented.definition), "best": invented.best,
            })
        })
        .collect();
    json!({
        "schema": "xtask/1", "command": "invent", "data": args.data, "measure": args.measure,
        "formulas": corpus.len(), "definitions": definitions, "tokens": {"before": before, "after": after},
        "ratio": before as f64 / after.max(1) as f64, "formulas_with_uses": used,
        "skeletons": {"all": shapes.len(), "covered": covered.len()},
    })
}

fn in_words(library: &Library, bits: &[f64], document: &Value) -> String {
    let mut text = String::new();
    for (invented, bits) in library.definitions().iter().zip(bits) {
        let best = if invented.best { "" } else { "  (not all patterns were looked at)" };
        text += &format!(
            "{}\n  {} uses, {} tokens, {bits:.1} bits gained{best}\n",
            shown(&invented.definition),
            invented.uses,
            invented.gain
        );
    }
    if let Some(found) = document.get("stability") {
        let number = |key: &str| found.pointer(key).and_then(Value::as_f64).unwrap_or(f64::NAN);
        text += &format!(
            "{} parts agree on {:.2} of their definitions (Jaccard index of two, up to names; {:.2} to {:.2})\n",
            found["parts"],
            number("/jaccard/mean"),
            number("/jaccard/least"),
            number("/jaccard/most")
        );
    }
    for found in document.pointer("/probe/definitions").and_then(Value::as_array).into_iter().flatten() {
        let layers = found["layers"].as_array().map_or(&[][..], Vec::as_slice);
        let share = |row: &Value, key: &str| {
            row.pointer(key)
                .and_then(Value::as_f64)
                .map_or_else(|| "–".to_owned(), |share| format!("{share:.3}"))
        };
        let all: Vec<String> = layers.iter().map(|row| share(row, "/accuracy/value")).collect();
        let commonest = layers.first().map_or_else(|| "–".to_owned(), |row| share(row, "/commonest"));
        text += &format!(
            "{}\n  instances are told with accuracy {} (embedding and layers); the commonest answer has {commonest}\n",
            found["text"].as_str().unwrap_or_default(),
            all.join(", ")
        );
    }
    let (before, after) = library.tokens();
    text + &format!(
        "{} formulas, {before} tokens, {after} with definitions: ratio {:.4}; every formula comes back\n",
        document["formulas"],
        document["ratio"].as_f64().unwrap_or(1.0)
    )
}
