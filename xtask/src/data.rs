//! Data sets: `cargo xtask gen-data`, and what `train` and `eval` read.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use fol::data::{Config, Dataset, Options, Outcome, Reader, Watch, generate, join};
use fol::error::Refusal;
use fol::law::Law;
use serde_json::json;
use symbolic_transformer::learner::Corpus;
use training::Progress;
use training::files::{Lock, Sharing};

use crate::answer::{give, say, usage};
use crate::signals::{self, Stop, Stopped};
use crate::{keys, place, store};

/// The configuration of the default data set.
const DEFAULT: &str = "public-iid.toml";

/// Options of `gen-data`.
#[derive(Debug, Args)]
pub(crate) struct GenData {
    /// The configuration: a path, or a name in configs/data/; without it and without --out public-iid.toml.
    #[arg(long, value_name = "NAME.toml")]
    config: Option<String>,
    /// Changes a key; dotted keys reach into tables.
    #[arg(long, value_name = "KEY=VALUE", value_parser = setting)]
    set: Vec<(String, String)>,
    /// The output folder; without it `data/NAME`.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Threads; 0 for all cores.
    #[arg(long, value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(0..=1024))]
    threads: Option<usize>,
    /// Makes only part I of N, I from 0.
    #[arg(long, value_name = "I/N", value_parser = shard)]
    shard: Option<(u64, u64)>,
    /// Joins the parts of all shards that were made with --shard, here or on other machines, and draws nothing: files, or
    /// folders that have them; with --from also none.
    #[arg(long, value_name = "PART|DIR", num_args = 0.., conflicts_with = "shard")]
    join: Option<Vec<PathBuf>>,
    /// With --join: fetches the parts that lie under a URL, s3://BUCKET/PREFIX or file:///FOLDER, and joins them too.
    #[arg(long, value_name = "URL", requires = "join")]
    from: Option<String>,
    /// Puts what was made, the set or the part of the shard, under a URL, s3://BUCKET/PREFIX or file:///FOLDER.
    #[arg(long, value_name = "URL")]
    to: Option<String>,
    /// Replaces a data set of another configuration.
    #[arg(long)]
    force: bool,
    /// Prints the manifest to standard output.
    #[arg(long)]
    json: bool,
    /// Warnings and errors only.
    #[arg(long)]
    quiet: bool,
}

pub(crate) fn setting(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("KEY=VALUE is needed")?;
    Ok((key.trim().to_owned(), value.trim().to_owned()))
}

pub(crate) fn shard(text: &str) -> Result<(u64, u64), String> {
    let numbers = text.split_once('/').and_then(|(i, n)| Some((i.parse().ok()?, n.parse().ok()?)));
    match numbers {
        Some((i, n)) if i < n => Ok((i, n)),
        _ => Err("I/N is needed, with I from 0 to N − 1".to_owned()),
    }
}

pub(crate) fn refused(refusal: Refusal) -> anyhow::Error {
    match &refusal.help {
        Some(help) => anyhow!("{refusal}\n  {help}"),
        None => anyhow!("{refusal}"),
    }
}

/// `cargo xtask gen-data`; returns the exit status.
pub(crate) fn gen_data(args: &GenData) -> Result<u8> {
    // With another folder but no configuration the defaults of the format; with neither the set that `train` reads if
    // nothing else is said.
    let name = args.config.as_deref().or_else(|| args.out.is_none().then_some(DEFAULT));
    let file = name.map(|name| keys::find(name, &place::data_configs())).transpose()?;
    let mut config = match &file {
        Some(file) => read(file, &args.set)?,
        None => Config::read("", &args.set).map_err(refused)?,
    };
    if let Some(threads) = args.threads {
        config.threads = threads;
    }
    let stem = file.as_deref().and_then(Path::file_stem).map(|s| s.to_string_lossy().into_owned());
    if let Some(name) = config.name.as_ref().filter(|name| !place::is_plain(name)) {
        bail!("name = {name:?}: a plain folder name is needed");
    }
    let folder = match (&args.out, config.name.clone().or(stem)) {
        (Some(out), _) => out.clone(),
        (None, Some(name)) => place::data().join(name),
        (None, None) => bail!("say --config NAME.toml or --out DIR"),
    };
    if config.name.is_none() {
        config.name = folder.file_name().map(|n| n.to_string_lossy().into_owned());
    }
    let mut sources = args.join.clone().unwrap_or_default();
    if args.join.is_some() && sources.is_empty() && args.from.is_none() {
        return Err(usage("--join: say the parts, folders that have them, or --from URL"));
    }
    if (args.from.is_some() || args.to.is_some())
        && let Some(status) = store::elsewhere()?
    {
        return Ok(status);
    }
    let options = Options { shard: args.shard, force: args.force };
    let stop = Stop::watch()?;
    let fetched = match &args.from {
        // A set that is there is not made again, and needs no parts.
        Some(url) if options.force || !is_made(&folder, &config) => {
            store::get_parts(url, &folder, args.quiet, &stop)?
        }
        _ => Vec::new(),
    };
    sources.extend(fetched.iter().cloned());
    let made = make(&config, &folder, options, &sources, args.quiet, &stop)?;
    if matches!(made, Outcome::Done(_)) {
        remove(&folder, &fetched);
    }
    if let Some(url) = &args.to {
        let names = match &made {
            Outcome::Done(manifest) => names(&folder, manifest),
            Outcome::Part(path) => vec![store::name_below(&folder, path)?],
            Outcome::Cancelled => Vec::new(),
        };
        if !names.is_empty() {
            store::put_files(&folder, url, names, args.quiet, &stop)?;
        }
    }
    match made {
        Outcome::Done(manifest) => {
            let text = || format!("{}: digest {}\n", folder.display(), manifest.digest);
            give(args.json, &json!(manifest), text)?;
            Ok(0)
        }
        Outcome::Part(path) => {
            let document = json!({"schema": "fol663-data/1", "part": path});
            give(args.json, &document, || format!("part: {}\n", path.display()))?;
            Ok(0)
        }
        Outcome::Cancelled => {
            say!("stopped; the same command goes on with the parts that are finished");
            Ok(signals::status(stop.signal().unwrap_or_default()))
        }
    }
}

/// Whether a folder holds the data set of a configuration.
fn is_made(folder: &Path, config: &Config) -> bool {
    fol::data::Manifest::read(folder).is_ok_and(|manifest| manifest.config_digest == config.digest())
}

/// Removes parts that were fetched and joined, and the folders that are empty then: they still lie where they came from.
fn remove(folder: &Path, parts: &[PathBuf]) {
    for part in parts {
        let _ = std::fs::remove_file(part);
        for above in part.ancestors().skip(1).take_while(|above| *above != folder) {
            let _ = std::fs::remove_dir(above);
        }
    }
}

/// The files of a data set in its folder.
fn names(folder: &Path, manifest: &fol::data::Manifest) -> Vec<String> {
    let splits = &manifest.splits;
    let files =
        [&splits.train, &splits.val, &splits.test, &splits.iid].into_iter().flat_map(|split| &split.files);
    let names = files.flat_map(|file| [&file.tok, &file.off, &file.rec]).cloned();
    let beside = ["preview.jsonl", "manifest.json"].into_iter().filter(|name| folder.join(name).is_file());
    names.chain(beside.map(str::to_owned)).collect()
}

/// The configuration in a file, with what is set over it.
fn read(file: &Path, sets: &[(String, String)]) -> Result<Config> {
    let (name, text) = keys::read(file)?;
    Config::read(&text, sets).map_err(refused).context(name)
}

/// The right to write a data set, or one shard of it: shards may be made by several processes at once.
fn locks(folder: &Path, shard: Option<(u64, u64)>) -> Result<Vec<Lock>> {
    std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    let Some((i, n)) = shard else { return Ok(vec![training::files::lock(folder, Sharing::Alone)?]) };
    let all = training::files::lock(folder, Sharing::Together)?;
    let parts = folder.join("parts");
    std::fs::create_dir_all(&parts).with_context(|| parts.display().to_string())?;
    Ok(vec![all, training::files::lock_file(&parts.join(format!("{i}-of-{n}.lock")), Sharing::Alone)?])
}

/// Makes a data set with progress on standard error.
fn make(
    config: &Config,
    folder: &Path,
    options: Options,
    parts: &[PathBuf],
    quiet: bool,
    stop: &Stop,
) -> Result<Outcome> {
    let _alone = locks(folder, options.shard)?;
    let progress = Progress::new(1, quiet);
    let clock = std::time::Instant::now();
    let shown = std::sync::Mutex::new(0.0);
    let report = |done: u64, total: u64| {
        if let Progress::Bar(bar) = &progress {
            bar.set_length(total);
            bar.set_position(done);
        } else if let Ok(mut last) = shown.lock()
            && clock.elapsed().as_secs_f64() > *last + 5.0
        {
            *last = clock.elapsed().as_secs_f64();
            progress.note(format!("{done} of {total} formulas"));
        }
    };
    let watch = Watch { progress: &report, cancelled: stop.came() };
    let outcome = if parts.is_empty() {
        generate(config, folder, options, &watch)
    } else {
        join(config, parts, folder, options, &watch)
    };
    let outcome = outcome.map_err(refused);
    progress.finish();
    outcome
}

/// A data set, verified, with its law.
pub(crate) struct Data {
    dataset: Dataset,
    /// The law that its texts are drawn from.
    pub(crate) law: Law,
}

impl Data {
    fn open(folder: &Path) -> Result<Self> {
        let dataset = Dataset::open(folder).map_err(refused).context(folder.display().to_string())?;
        let law = law_of(&dataset.manifest().law).with_context(|| folder.display().to_string())?;
        Ok(Self { dataset, law })
    }

    /// The digest of all tokens.
    pub(crate) fn digest(&self) -> &str {
        &self.dataset.manifest().digest
    }

    /// The exact optimum in nats per token, where the law has one.
    pub(crate) fn optimum(&self) -> Option<f64> {
        self.dataset.manifest().optimum.map(|o| o.nats_per_token)
    }

    /// Whether texts were removed, so that only `iid` has the exact per-symbol optimum.
    pub(crate) fn is_filtered(&self) -> bool {
        self.dataset.manifest().split != "stream"
    }

    /// The name of the law, for people: its preset, or its family.
    pub(crate) fn law_name(&self) -> String {
        let law = &self.dataset.manifest().law;
        let name = ["preset", "name", "family"].iter().find_map(|k| law.get(k).and_then(|v| v.as_str()));
        let preset =
            Law::presets().iter().find(|p| Law::named(p, &[]).is_ok_and(|l| l.digest() == self.law.digest()));
        preset.map_or_else(|| name.unwrap_or("law").to_owned(), |p| (*p).to_owned())
    }

    fn split(&self, name: &str) -> Result<Corpus> {
        let split = self.dataset.split(name).map_err(refused)?;
        let mut corpus = Corpus::new();
        for (tokens, record) in split.iter() {
            corpus.push(Corpus::inner(tokens).iter().copied(), record.nll);
        }
        Ok(corpus)
    }

    /// A split, read from where it lies.
    pub(crate) fn reader(&self, name: &str) -> Result<Reader> {
        self.dataset.reader(name).map_err(refused)
    }

    /// The first texts of the training set.
    pub(crate) fn few(&self, n: u64) -> Result<Corpus> {
        let mut reader = self.reader("train")?.first(n);
        let mut corpus = Corpus::new();
        for i in 0..reader.len() {
            let tokens = reader.read(i).map_err(refused)?;
            corpus.push(Corpus::inner(&tokens).iter().copied(), f64::NAN);
        }
        Ok(corpus)
    }

    /// The training set.
    pub(crate) fn train(&self) -> Result<Corpus> {
        self.split("train")
    }

    /// The validation set.
    pub(crate) fn val(&self) -> Result<Corpus> {
        self.split("val")
    }

    /// The test set.
    pub(crate) fn test(&self) -> Result<Corpus> {
        self.split("test")
    }

    /// The unfiltered set.
    pub(crate) fn iid(&self) -> Result<Corpus> {
        self.split("iid")
    }
}

/// The preset that a law is, or its family and digest.
pub(crate) fn law_label(law: &Law) -> String {
    let preset = Law::presets().iter().find(|p| Law::named(p, &[]).is_ok_and(|l| l.digest() == law.digest()));
    let family = || law.to_json().get("family").and_then(|f| f.as_str()).unwrap_or("law").to_owned();
    let own = || format!("{}-{}", family(), law.digest().get(..8).unwrap_or_default());
    preset.map_or_else(own, |p| (*p).to_owned())
}

/// A manifest's law.
fn law_of(value: &serde_json::Value) -> Result<Law> {
    let table: toml::Table = serde_json::from_value(value.clone()).context("the law of the manifest")?;
    Law::from_table(table, &[]).map_err(refused)
}

/// The folder of a data set that a run names: a folder with a manifest, a name in data/, or where what lies under a URL is
/// kept.
pub(crate) fn folder_of(name: &str) -> PathBuf {
    if store::is_url(name) {
        return store::cache(name);
    }
    let given = PathBuf::from(name);
    if given.join("manifest.json").is_file() { given } else { place::data().join(name) }
}

/// The configuration that makes a data set.
fn config_of(name: &str) -> Result<Config> {
    if store::is_url(name) {
        let folder = folder_of(name);
        bail!(
            "the data set {name} is not here yet: `cargo xtask get {name} {}` fetches it",
            folder.display()
        );
    }
    let file = keys::find(&format!("{name}.toml"), &place::data_configs())
        .with_context(|| format!("the data set {name} is not there, and nothing says how to make it"))?;
    let mut config = read(&file, &[])?;
    config.name = Some(name.to_owned());
    Ok(config)
}

/// The data set of a run that is trained; made first if it is missing. One that is not what its configuration now says
/// is refused.
pub(crate) fn load(name: &str, quiet: bool, stop: &Stop) -> Result<Data> {
    let folder = folder_of(name);
    let is_there = folder.join("manifest.json").is_file();
    if !is_there && store::is_url(name) {
        store::fetch(name, &folder, quiet, stop)?;
    } else if !is_there {
        let config = config_of(name)?;
        if !quiet {
            say!("the data set {name} is not there: generating {}", folder.display());
        }
        if make(&config, &folder, Options::default(), &[], quiet, stop)? == Outcome::Cancelled {
            let what = format!("{} is not whole; the same command goes on with it", folder.display());
            return Err(Stopped { signal: stop.signal().unwrap_or_default(), what }.into());
        }
    }
    check_config(name, &folder)?;
    Data::open(&folder)
}

/// Refuses a data set in `data/` whose configuration was edited after it was made.
fn check_config(name: &str, folder: &Path) -> Result<()> {
    let file = place::data_configs().join(format!("{name}.toml"));
    if folder != place::data().join(name) || !file.is_file() {
        return Ok(());
    }
    let (made, now) =
        (fol::data::Manifest::read(folder).map_err(refused)?.config_digest, config_of(name)?.digest());
    if made != now {
        let (folder, file) = (folder.display(), file.display());
        bail!(
            "{folder} was made from a configuration with the digest {made}, and {file} now has {now}: make the data \
             again with `cargo xtask gen-data --config {name}.toml --force`, or undo the change, or give the changed \
             file a name of its own"
        );
    }
    Ok(())
}

/// A data set, if it is there.
pub(crate) fn open_if_present(name: &str) -> Result<Option<Data>> {
    let folder = folder_of(name);
    if folder.join("manifest.json").is_file() { Data::open(&folder).map(Some) } else { Ok(None) }
}

/// A data set to judge a run on; made first if it is missing. Whether it is that of the run, its digest says.
pub(crate) fn load_to_judge(name: &str, quiet: bool) -> Result<Data> {
    match open_if_present(name)? {
        Some(data) => Ok(data),
        None => load(name, quiet, &Stop::watch()?),
    }
}

/// The formulas of a text file, one a line, empty lines left out, with what a law says of them. One that cannot be read
/// is refused with its line.
pub(crate) fn texts(path: &Path, law: &Law) -> Result<Corpus> {
    let (name, text) = keys::read(path)?;
    let mut scorer = fol::score::Scorer::new(law).map_err(refused)?;
    let mut corpus = Corpus::new();
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let place = || format!("{name}:{}", number + 1);
        let read = fol::read::parse(line, fol::read::Source::Text, fol::read::Mode::Strict);
        let tokens = read.map_err(refused).with_context(place)?.tokens;
        let nll = scorer.score(&tokens).map_err(refused).with_context(place)?;
        corpus.push(tokens, nll);
    }
    if corpus.is_empty() {
        bail!("{}: no formula", path.display());
    }
    Ok(corpus)
}

/// `n` texts of a data set's law, drawn in memory.
pub(crate) fn in_memory(name: &str, n: u64) -> Result<Corpus> {
    let law = match open_if_present(name)? {
        Some(data) => data.law,
        None => config_of(name)?.law,
    };
    let mut sampler = fol::sample::Sampler::new(&law).map_err(refused)?;
    let family = fol::sample::family("train", 0);
    let mut corpus = Corpus::new();
    let mut tokens = Vec::new();
    for item in 0..n {
        tokens.clear();
        sampler.sample(&mut family.stream(item), &mut tokens);
        corpus.push(tokens.iter().copied(), f64::NAN);
    }
    Ok(corpus)
}

/// The law of a run's data set: from its manifest, or from the configuration that makes it.
pub(crate) fn law_of_run(name: &str) -> Result<Law> {
    if is_texts(name) {
        bail!("data = \"{name}\" is a file of texts, of which no law is known");
    }
    let folder = folder_of(name);
    if is_inference(name) {
        return law_of_letters(name, &folder);
    }
    if store::is_url(name) && !folder.join("manifest.json").is_file() {
        store::fetch(name, &folder, true, &Stop::watch()?)?;
    }
    if folder.join("manifest.json").is_file() {
        let manifest = fol::data::Manifest::read(&folder).map_err(refused)?;
        return law_of(&manifest.law).with_context(|| folder.display().to_string());
    }
    Ok(config_of(name)?.law)
}

/// Whether a run's `data` names a file of texts: by its name alone.
pub(crate) fn is_texts(name: &str) -> bool {
    name.ends_with(".txt")
}

/// Whether a data set is one of inference tasks: by its manifest, or by where its configuration stands.
pub(crate) fn is_inference(name: &str) -> bool {
    let file = format!("{name}.toml");
    match schema(&folder_of(name)) {
        Some(schema) => schema.starts_with("fol663-inference/"),
        None => {
            place::inference_configs().join(&file).is_file() && !place::data_configs().join(&file).is_file()
        }
    }
}

fn manifest(folder: &Path) -> Option<serde_json::Value> {
    serde_json::from_slice(&std::fs::read(folder.join("manifest.json")).ok()?).ok()
}

fn schema(folder: &Path) -> Option<String> {
    Some(manifest(folder)?.get("schema")?.as_str()?.to_owned())
}

/// The law of the letters of inference tasks.
fn law_of_letters(name: &str, folder: &Path) -> Result<Law> {
    if let Some(law) = manifest(folder).as_ref().and_then(|manifest| manifest.pointer("/config/law")) {
        return law_of(law).with_context(|| folder.display().to_string());
    }
    let (place, text) = keys::read(&place::inference_configs().join(format!("{name}.toml")))?;
    Ok(fol_inference::config::Config::read(&text, &[]).map_err(refused).context(place)?.space.law)
}
