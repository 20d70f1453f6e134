//! Data sets of inference tasks: `cargo xtask gen-inference`, and what `train` and `eval` read of them.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use fol_inference::config::Config;
use fol_inference::data::{Dataset, Line, Options, Outcome, Watch, generate};
use serde_json::json;
use symbolic_transformer::learner::Corpus;
use training::Progress;
use training::files::Sharing;

use crate::answer::{give, say};
use crate::signals::{self, Stop, Stopped};
use crate::{data, keys, place};

/// The configuration of the default data set.
const DEFAULT: &str = "inference.toml";

/// Options of `gen-inference`.
#[derive(Debug, Args)]
pub(crate) struct GenInference {
    /// The configuration: a path, or a name in configs/inference/; without it inference.toml.
    #[arg(long, value_name = "NAME.toml")]
    config: Option<String>,
    /// Changes a key; dotted keys reach into tables.
    #[arg(long, value_name = "KEY=VALUE", value_parser = data::setting)]
    set: Vec<(String, String)>,
    /// The output folder; without it `data/NAME`.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Threads; 0 for all cores.
    #[arg(long, value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(0..=1024))]
    threads: Option<usize>,
    /// Makes only every N-th file, from file I on, I from 0; whoever finds all files writes the manifest.
    #[arg(long, value_name = "I/N", value_parser = data::shard)]
    shard: Option<(u64, u64)>,
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

/// `cargo xtask gen-inference`; returns the exit status.
pub(crate) fn gen_inference(args: &GenInference) -> Result<u8> {
    let file = keys::find(args.config.as_deref().unwrap_or(DEFAULT), &place::inference_configs())?;
    let mut config = read(&file, &args.set)?;
    if let Some(threads) = args.threads {
        config.threads = threads;
    }
    let stem = file.file_stem().map(|s| s.to_string_lossy().into_owned()).unwrap_or_default();
    let name = config.name.clone().unwrap_or(stem);
    if !place::is_plain(&name) {
        bail!("name = {name:?}: a plain folder name is needed");
    }
    let folder = args.out.clone().unwrap_or_else(|| place::data().join(&name));
    config.name.get_or_insert(name);
    let options = Options { shard: args.shard, force: args.force };
    let stop = Stop::watch()?;
    match make(&config, &folder, options, args.quiet, &stop)? {
        Outcome::Done(manifest) => {
            let text = || {
                let audit = manifest.audit.iter().map(|(label, audit)| {
                    format!("  {label}: told by numbers with area {:.3} ± {:.3}\n", audit.area, audit.error)
                });
                format!("{}: digest {}\n", folder.display(), manifest.digest) + &audit.collect::<String>()
            };
            give(args.json, &json!(manifest), text)?;
            Ok(0)
        }
        Outcome::Part(files) => {
            let document = json!({"schema": "fol663-inference/1", "files": files});
            give(args.json, &document, || format!("{}: {files} files of this shard\n", folder.display()))?;
            Ok(0)
        }
        Outcome::Cancelled => {
            say!("stopped; the same command goes on with the files that are finished");
            Ok(signals::status(stop.signal().unwrap_or_default()))
        }
    }
}

/// The configuration in a file, with what is set over it.
fn read(file: &Path, sets: &[(String, String)]) -> Result<Config> {
    let (name, text) = keys::read(file)?;
    Config::read(&text, sets).map_err(data::refused).context(name)
}

/// Makes a data set with progress on standard error.
fn make(config: &Config, folder: &Path, options: Options, quiet: bool, stop: &Stop) -> Result<Outcome> {
    std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    // Shards are made by several processes at once; each of them writes files of its own.
    let sharing = if options.shard.is_some() { Sharing::Together } else { Sharing::Alone };
    let _alone = training::files::lock(folder, sharing)?;
    let progress = Progress::new(1, quiet);
    let report = |done: u64, total: u64| {
        if let Progress::Bar(bar) = &progress {
            bar.set_length(total);
            bar.set_position(done);
        }
    };
    let watch = Watch { progress: &report, cancelled: &|| stop.came().load(Ordering::Relaxed) };
    let outcome = generate(config, folder, options, &watch).map_err(data::refused);
    progress.finish();
    outcome
}

/// A data set of tasks, verified.
pub(crate) struct Tasks {
    dataset: Dataset,
}

impl Tasks {
    fn open(folder: &Path) -> Result<Self> {
        let dataset = Dataset::open(folder).map_err(data::refused).context(folder.display().to_string())?;
        Ok(Self { dataset })
    }

    /// The digest of all instances.
    pub(crate) fn digest(&self) -> &str {
        &self.dataset.manifest().digest
    }

    /// The first instances of a split.
    pub(crate) fn lines(&self, split: &str, most: usize) -> Result<Vec<Line>> {
        self.dataset.split(split, most).map_err(data::refused)
    }

    /// A split as a corpus of which only the answers are learned; all of it, if `most` is 0.
    pub(crate) fn corpus(&self, split: &str, most: usize) -> Result<Corpus> {
        let mut corpus = Corpus::new();
        for line in self.lines(split, if most == 0 { usize::MAX } else { most })? {
            corpus.push(line.symbols().map_err(data::refused)?, f64::NAN);
        }
        Ok(corpus.answers_only()?)
    }
}

/// The configuration that makes a data set.
fn config_of(name: &str) -> Result<Config> {
    let mut config = read(&place::inference_configs().join(format!("{name}.toml")), &[])?;
    config.name = Some(name.to_owned());
    Ok(config)
}

/// A data set, if it is there.
pub(crate) fn open_if_present(name: &str) -> Result<Option<Tasks>> {
    let folder = data::folder_of(name);
    if folder.join("manifest.json").is_file() { Tasks::open(&folder).map(Some) } else { Ok(None) }
}

/// The data set of a run; made first if it is missing. One that is not what its configuration now says is refused.
pub(crate) fn load(name: &str, quiet: bool, stop: &Stop) -> Result<Tasks> {
    let folder = data::folder_of(name);
    if !folder.join("manifest.json").is_file() {
        if !quiet {
            say!("the data set {name} is not there: generating {}", folder.display());
        }
        if make(&config_of(name)?, &folder, Options::default(), quiet, stop)? == Outcome::Cancelled {
            let what = format!("{} is not whole; the same command goes on with it", folder.display());
            return Err(Stopped { signal: stop.signal().unwrap_or_default(), what }.into());
        }
    }
    let tasks = Tasks::open(&folder)?;
    let file = place::inference_configs().join(format!("{name}.toml"));
    if folder == place::data().join(name) && file.is_file() {
        let (made, now) = (&tasks.dataset.manifest().config_digest, config_of(name)?.digest());
        if *made != now {
            bail!(
                "{} was made from a configuration with the digest {made}, and {} now has {now}: make the data again \
                 with `cargo xtask gen-inference --config {name}.toml --force`, or undo the change, or give the changed \
                 file a name of its own",
                folder.display(),
                file.display()
            );
        }
    }
    Ok(tasks)
}

/// Some instances of a configuration, drawn in memory.
pub(crate) fn in_memory(name: &str, n: u64) -> Result<Corpus> {
    let config = config_of(name)?;
    let mut maker = fol_inference::generate::Maker::new(config.space).map_err(data::refused)?;
    let family = seeded::Family::new("fol663-inference-v1", "train", config.seed);
    let mut corpus = Corpus::new();
    for item in 0..n {
        let instance = maker.instance(&mut family.stream(item)).map_err(|r| anyhow!("{r}"))?;
        corpus.push(fol::task::encode(&instance.task), f64::NAN);
    }
    Ok(corpus.answers_only()?)
}
