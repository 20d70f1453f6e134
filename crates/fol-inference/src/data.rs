//! Data sets of instances: lines of JSON in files, and a manifest.
//!
//! Enter at [`generate`] to make one and at [`Dataset::open`] to read one. A file is drawn as a whole, written under a temporary name and
//! renamed; a note beside it, in `parts/`, says that it is there. A run makes the files that are missing, so it goes on where another was stopped,
//! and several may share the work by `shard`. The manifest comes last. The bytes depend on the configuration alone.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

pub use fol::data::Options;
use fol::error::{Kind, Refusal};
use fol::symbol::SymbolId;
use fol::task::Task;
use fol_prover::{Limit, Problem, Verdict, prove};
use rayon::prelude::*;
use seeded::Family;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::asked::STEPS;
use crate::audit::judge;
use crate::config::{Config, SPLITS};
use crate::generate::Maker;
use crate::instance::{Format, Instance, Label};
use crate::shallow::features;

/// The value of the key `schema`.
const SCHEMA: &str = "fol663-inference/1";
/// The manifest.
const MANIFEST: &str = "manifest.json";
/// Notes about files that are done, until all are.
const PARTS: &str = "parts";
/// One of so many instances whose label says that something follows is proved again.
const AGAIN: u64 = 100;
/// So many instances of the training set are audited.
const AUDITED: usize = 20_000;

/// What is known of some instances.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Counts {
    /// How many there are.
    pub instances: u64,
    /// Their tokens, `<bos>` and `<eos>` included.
    pub tokens: u64,
    /// The longest of them.
    pub longest: u64,
    /// By format.
    pub formats: BTreeMap<String, u64>,
    /// By format and label, as `question/follows`.
    pub labels: BTreeMap<String, u64>,
    /// By depth.
    pub depths: BTreeMap<String, u64>,
    /// Rule applications.
    pub rules: BTreeMap<String, u64>,
    /// What made labels unknown.
    pub edits: BTreeMap<String, u64>,
    /// How many were proved again.
    pub proved_again: u64,
}

impl Counts {
    fn count(&mut self, instance: &Instance, tokens: usize) {
        self.instances += 1;
        self.tokens += tokens as u64;
        self.longest = self.longest.max(tokens as u64);
        let (format, label) = (instance.format.name(), instance.label.name());
        *self.formats.entry(format.to_owned()).or_default() += 1;
        *self.labels.entry(format!("{format}/{label}")).or_default() += 1;
        *self.depths.entry(instance.depth.to_string()).or_default() += 1;
        for rule in &instance.rules {
            *self.rules.entry(rule.name().to_owned()).or_default() += 1;
        }
        if let Some(edit) = instance.edit {
            *self.edits.entry(edit.name().to_owned()).or_default() += 1;
        }
    }

    fn add(&mut self, other: &Self) {
        fn sum<K: Ord + Clone>(all: &mut BTreeMap<K, u64>, other: &BTreeMap<K, u64>) {
            for (key, n) in other {
                *all.entry(key.clone()).or_default() += n;
            }
        }
        self.instances += other.instances;
        self.tokens += other.tokens;
        self.longest = self.longest.max(other.longest);
        self.proved_again += other.proved_again;
        sum(&mut self.formats, &other.formats);
        sum(&mut self.labels, &other.labels);
        sum(&mut self.depths, &other.depths);
        sum(&mut self.rules, &other.rules);
        sum(&mut self.edits, &other.edits);
    }
}

/// One file of a split.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEntry {
    /// Its name.
    pub file: String,
    /// Its instances.
    pub instances: u64,
    /// Its digest, in hexadecimal.
    pub blake3: String,
}

/// One split.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Split {
    /// What is known of its instances.
    #[serde(flatten)]
    pub counts: Counts,
    /// Its files, in order.
    pub files: Vec<FileEntry>,
}

/// How well numbers tell a label: the area of a logistic regression on instances that it was not fitted on.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Audit {
    /// One half is chance.
    pub area: f64,
    /// Its standard error.
    pub error: f64,
    /// How many instances were judged.
    pub instances: usize,
}

/// Everything about a data set but its instances.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// Its format.
    pub schema: String,
    /// The folder's name.
    pub name: String,
    /// Every key of the configuration but `name` and `threads`.
    pub config: Json,
    /// Their digest.
    pub config_digest: String,
    /// What made it.
    pub generator: String,
    /// By name.
    pub splits: BTreeMap<String, Split>,
    /// By format and label, as `question/follows`: of the first instances of the training set.
    pub audit: BTreeMap<String, Audit>,
    /// Over the digests of all files.
    pub digest: String,
}

/// A note that a file is done.
#[derive(Debug, Serialize, Deserialize)]
struct Note {
    config_digest: String,
    entry: FileEntry,
    counts: Counts,
}

/// What a run came to.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// The data set is whole.
    Done(Box<Manifest>),
    /// The files of one shard are there, so many.
    Part(usize),
    /// It was stopped; the files that are done stay.
    Cancelled,
}

/// Who looks on, and who may stop it.
pub struct Watch<'a> {
    /// Told of instances that are done, and of all.
    pub progress: &'a (dyn Fn(u64, u64) + Sync),
    /// Asked between instances.
    pub cancelled: &'a (dyn Fn() -> bool + Sync),
}

/// A file to be made: its split, its number, its instances.
#[derive(Debug, Clone)]
struct Planned {
    split: usize,
    name: String,
    items: std::ops::Range<u64>,
}

fn plan(config: &Config) -> Vec<Planned> {
    let mut files = Vec::new();
    for (split, (name, total)) in SPLITS.iter().zip(config.stream).enumerate() {
        let size = config.file_instances;
        for number in 0..total.div_ceil(size) {
            let items = number * size..total.min((number + 1) * size);
            files.push(Planned { split, name: format!("{name}-{number:05}.jsonl"), items });
        }
    }
    files
}

fn io(path: &Path, error: &std::io::Error) -> Refusal {
    let kind = if error.kind() == std::io::ErrorKind::NotFound { Kind::NotFound } else { Kind::Io };
    Refusal::new(kind, format!("{}: {error}", path.display()))
}

/// Makes a data set, or the files of one shard, in a folder.
///
/// # Errors
/// `Exists` for a folder with another data set; what the space refuses; `DigestMismatch` for a label that a second proof does not
/// confirm; `Io`.
pub fn generate(config: &Config, folder: &Path, options: Options, watch: &Watch) -> Result<Outcome, Refusal> {
    if let Some((shard, shards)) = options.shard
        && shard >= shards
    {
        return Err(Refusal::new(Kind::BadValue, format!("shard: there is no shard {shard} of {shards}")));
    }
    let digest = config.digest();
    match Manifest::read(folder) {
        Ok(manifest) if manifest.config_digest == digest => return Ok(Outcome::Done(Box::new(manifest))),
        Ok(_) if options.force => {
            let path = folder.join(MANIFEST);
            fs::remove_file(&path).map_err(|e| io(&path, &e))?;
        }
        Ok(_) => {
            let message = format!("{} holds a data set of another configuration", folder.display());
            return Err(Refusal::new(Kind::Exists, message).help("choose another folder, or --force"));
        }
        Err(refusal) if refusal.kind == Kind::NotFound => {}
        Err(refusal) => return Err(refusal),
    }
    let parts = folder.join(PARTS);
    fs::create_dir_all(&parts).map_err(|e| io(&parts, &e))?;
    let built = rayon::ThreadPoolBuilder::new().num_threads(config.threads).build();
    let pool = built.map_err(|e| Refusal::new(Kind::Io, format!("threads: {e}")))?;
    pool.install(|| {
        // Without instances the split `deep` need not have depths either.
        let deep = if config.stream[3] == 0 { config.space.clone() } else { config.deep_space() };
        let makers = [Maker::new(config.space.clone())?, Maker::new(deep)?];
        let all = plan(config);
        let own = |at: usize| options.shard.is_none_or(|(shard, shards)| at as u64 % shards == shard);
        let mine: Vec<&Planned> =
            all.iter().enumerate().filter(|(at, _)| own(*at)).map(|(_, planned)| planned).collect();
        let total: u64 = mine.iter().map(|planned| planned.items.end - planned.items.start).sum();
        let mut done = 0;
        for planned in &mine {
            let (maker, count) =
                (&makers[usize::from(planned.split == 3)], planned.items.end - planned.items.start);
            if note_of(folder, planned, &digest)?.is_none() {
                let before = std::sync::atomic::AtomicU64::new(done);
                let report = || {
                    let now = before.fetch_add(1, std::sync::atomic::Ordering::Relaxed) + 1;
                    (watch.progress)(now, total);
                };
                if !make(config, planned, maker, folder, &digest, watch, &report)? {
                    return Ok(Outcome::Cancelled);
                }
            }
            done += count;
            (watch.progress)(done, total);
        }
        let notes: Result<Vec<Option<Note>>, Refusal> =
            all.iter().map(|planned| note_of(folder, planned, &digest)).collect();
        let Some(notes) = notes?.into_iter().collect::<Option<Vec<Note>>>() else {
            return Ok(Outcome::Part(mine.len()));
        };
        let manifest = join(config, folder, &digest, &all, notes)?;
        fs::remove_dir_all(&parts).map_err(|e| io(&parts, &e))?;
        Ok(Outcome::Done(Box::new(manifest)))
    })
}

/// The note about a file, if the file is there as the note says.
fn note_of(folder: &Path, planned: &Planned, digest: &str) -> Result<Option<Note>, Refusal> {
    let path = folder.join(PARTS).join(format!("{}.json", planned.name));
    let Ok(text) = fs::read_to_string(&path) else { return Ok(None) };
    let Ok(note) = serde_json::from_str::<Note>(&text) else { return Ok(None) };
    let file = folder.join(&planned.name);
    let there = note.config_digest == digest && file.is_file() && digest_of(&file)? == note.entry.blake3;
    Ok(there.then_some(note))
}

fn digest_of(path: &Path) -> Result<String, Refusal> {
    let mut hasher = blake3::Hasher::new();
    let file = fs::File::open(path).map_err(|e| io(path, &e))?;
    hasher.update_reader(file).map_err(|e| io(path, &e))?;
    Ok(hasher.finalize().to_hex().to_string())
}

/// Draws one file; false if it was stopped.
fn make(
    config: &Config,
    planned: &Planned,
    maker: &Maker,
    folder: &Path,
    digest: &str,
    watch: &Watch,
    report: &(dyn Fn() + Sync),
) -> Result<bool, Refusal> {
    let split = SPLITS.get(planned.split).copied().unwrap_or("train");
    let family = Family::new("fol663-inference-v1", split, config.seed);
    let made: Result<Vec<Option<(String, Counts)>>, Refusal> = planned
        .items
        .clone()
        .into_par_iter()
        .map_init(
            || maker.clone(),
            |maker, item| {
                if (watch.cancelled)() {
                    return Ok(None);
                }
                let instance = maker.instance(&mut family.stream(item))?;
                let mut counts = Counts::default();
                counts.count(&instance, fol::task::encode(&instance.task).len() + 2);
                if item.is_multiple_of(AGAIN) {
                    counts.proved_again = u64::from(prove_again(&instance, item)?);
                }
                report();
                Ok(Some((instance.json(item).to_string(), counts)))
            },
        )
        .collect();
    let Some(made) = made?.into_iter().collect::<Option<Vec<(String, Counts)>>>() else { return Ok(false) };
    let (mut text, mut counts) = (String::new(), Counts::default());
    for (line, own) in &made {
        text.push_str(line);
        text.push('\n');
        counts.add(own);
    }
    let path = folder.join(&planned.name);
    calculemus_base::file::write(&path, text.as_bytes()).map_err(|e| io(&path, &e))?;
    let entry = FileEntry {
        file: planned.name.clone(),
        instances: counts.instances,
        blake3: blake3::hash(text.as_bytes()).to_hex().to_string(),
    };
    let note = Note { config_digest: digest.to_owned(), entry, counts };
    let path = folder.join(PARTS).join(format!("{}.json", planned.name));
    let text = serde_json::to_vec(&note).map_err(|e| Refusal::new(Kind::Io, e.to_string()))?;
    calculemus_base::file::write(&path, &text).map_err(|e| io(&path, &e))?;
    Ok(true)
}

/// Whether there was something to prove, and the prover agrees.
fn prove_again(instance: &Instance, item: u64) -> Result<bool, Refusal> {
    let goal = match (&instance.task, instance.label) {
        (_, Label::Unknown) | (Task::Term { .. }, _) => return Ok(false),
        (Task::Question { asked, .. }, Label::Denied) => Some(crate::tree::not(asked)),
        (Task::Question { asked, .. }, _) => Some(asked.clone()),
        (Task::Deduction { steps, .. }, _) => steps.last().cloned(),
    };
    let problem = Problem::new(instance.premises().to_vec(), goal)?;
    match prove(&problem, Limit::Steps(STEPS * 5)).verdict {
        Verdict::Entailed(_) => Ok(true),
        _ => {
            Err(Refusal::new(Kind::DigestMismatch, format!("instance {item}: its label has no second proof")))
        }
    }
}

fn join(
    config: &Config,
    folder: &Path,
    digest: &str,
    files: &[Planned],
    notes: Vec<Note>,
) -> Result<Manifest, Refusal> {
    let mut splits: BTreeMap<String, Split> =
        SPLITS.iter().map(|s| ((*s).to_owned(), Split::default())).collect();
    let mut hasher = blake3::Hasher::new();
    for (planned, note) in files.iter().zip(notes) {
        hasher.update(note.entry.blake3.as_bytes());
        let name = SPLITS.get(planned.split).copied().unwrap_or("train");
        if let Some(split) = splits.get_mut(name) {
            split.counts.add(&note.counts);
            split.files.push(note.entry);
        }
    }
    let train = splits.get("train").map(|split| split.files.clone()).unwrap_or_default();
    let manifest = Manifest {
        schema: SCHEMA.to_owned(),
        name: config.name.clone().unwrap_or_default(),
        config: config.to_json(),
        config_digest: digest.to_owned(),
        generator: format!("fol-inference {}", env!("CARGO_PKG_VERSION")),
        splits,
        audit: audit(&lines(folder, &train, AUDITED)?)?,
        digest: hasher.finalize().to_hex().to_string(),
    };
    let text = serde_json::to_vec_pretty(&manifest).map_err(|e| Refusal::new(Kind::Io, e.to_string()))?;
    let path = folder.join(MANIFEST);
    calculemus_base::file::write(&path, &text).map_err(|e| io(&path, &e))?;
    Ok(manifest)
}

/// How well numbers tell each label of each format.
fn audit(lines: &[Line]) -> Result<BTreeMap<String, Audit>, Refusal> {
    let mut found = BTreeMap::new();
    for format in [Format::Conclusion, Format::Steps, Format::Question] {
        let own: Vec<&Line> = lines.iter().filter(|line| line.format == format.name()).collect();
        let rows: Result<Vec<Vec<f64>>, Refusal> = own.iter().map(|line| line.features()).collect();
        let rows = rows?;
        for label in Label::ALL {
            let is: Vec<bool> = own.iter().map(|line| line.label == label.name()).collect();
            if is.iter().any(|label| *label) {
                let (area, error) = judge(&rows, &is);
                let audit = Audit { area, error, instances: own.len() / 2 };
                found.insert(format!("{}/{}", format.name(), label.name()), audit);
            }
        }
    }
    Ok(found)
}

/// An instance as it is read back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    /// Its number in its split.
    pub item: u64,
    /// Its format.
    pub format: String,
    /// Rule applications.
    pub depth: usize,
    /// Its label.
    pub label: String,
    /// The rules of its proof.
    pub rules: Vec<String>,
    /// The sequence, without `<bos>` and `<eos>`.
    pub tokens: Vec<u16>,
}

impl Line {
    /// The sequence, without `<bos>` and `<eos>`.
    ///
    /// # Errors
    /// `BadRecord` for a number that is no symbol.
    pub fn symbols(&self) -> Result<Vec<SymbolId>, Refusal> {
        let symbol = |id: &u16| {
            SymbolId::new(*id).ok_or_else(|| {
                Refusal::new(Kind::BadRecord, format!("instance {}: {id} is no symbol", self.item))
            })
        };
        self.tokens.iter().map(symbol).collect()
    }

    /// The task.
    ///
    /// # Errors
    /// What is no task.
    pub fn task(&self) -> Result<Task, Refusal> {
        fol::task::decode(&self.symbols()?)
    }

    fn features(&self) -> Result<Vec<f64>, Refusal> {
        Ok(match self.task()? {
            Task::Deduction { premises, .. } => features(&premises, None).to_vec(),
            Task::Question { premises, asked, .. } => features(&premises, Some(&asked)).to_vec(),
            Task::Term { .. } => Vec::new(),
        })
    }
}

/// The first lines of files.
fn lines(folder: &Path, files: &[FileEntry], most: usize) -> Result<Vec<Line>, Refusal> {
    let mut all = Vec::new();
    for file in files {
        if all.len() >= most {
            break;
        }
        let path = folder.join(&file.file);
        let text = fs::read_to_string(&path).map_err(|e| io(&path, &e))?;
        for (number, line) in text.lines().enumerate() {
            let read = serde_json::from_str(line).map_err(|e| {
                Refusal::new(Kind::BadRecord, format!("{}:{}: {e}", path.display(), number + 1))
            });
            all.push(read?);
        }
    }
    all.truncate(most);
    Ok(all)
}

impl Manifest {
    /// The manifest of a folder.
    ///
    /// # Errors
    /// `NotFound` if there is none, `BadManifest` if it is not one.
    pub fn read(folder: &Path) -> Result<Self, Refusal> {
        let path = folder.join(MANIFEST);
        let text = fs::read_to_string(&path).map_err(|e| io(&path, &e))?;
        let bad = |why: String| Refusal::new(Kind::BadManifest, format!("{}: {why}", path.display()));
        let manifest: Self = serde_json::from_str(&text).map_err(|e| bad(e.to_string()))?;
        if manifest.schema != SCHEMA {
            return Err(bad(format!("the schema is {:?}, not {SCHEMA:?}", manifest.schema)));
        }
        Ok(manifest)
    }
}

/// A data set in a folder, each of whose files is as its manifest says.
#[derive(Debug, Clone, PartialEq)]
pub struct Dataset {
    folder: PathBuf,
    manifest: Manifest,
}

impl Dataset {
    /// Opens and verifies a data set.
    ///
    /// # Errors
    /// What [`Manifest::read`] refuses; `BadManifest` for a name that is no file beside it; `DigestMismatch` for a changed file.
    pub fn open(folder: &Path) -> Result<Self, Refusal> {
        let manifest = Manifest::read(folder)?;
        for file in manifest.splits.values().flat_map(|split| &split.files) {
            if Path::new(&file.file).file_name().is_none_or(|name| name != file.file.as_str()) {
                let message = format!("{:?} is not the name of a file beside the manifest", file.file);
                return Err(Refusal::new(Kind::BadManifest, message));
            }
            let path = folder.join(&file.file);
            if digest_of(&path)? != file.blake3 {
                let message = format!("{} is not what the manifest says", path.display());
                return Err(Refusal::new(Kind::DigestMismatch, message).help("generate the data set again"));
            }
        }
        Ok(Self { folder: folder.to_owned(), manifest })
    }

    /// What is known of it.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The instances of a split, the first `most` of them.
    ///
    /// # Errors
    /// `BadManifest` for a split that is none; `BadRecord`; `Io`.
    pub fn split(&self, name: &str, most: usize) -> Result<Vec<Line>, Refusal> {
        let split = self.manifest.splits.get(name).ok_or_else(|| {
            Refusal::new(Kind::BadManifest, format!("there is no split {name}, but {}", SPLITS.join(", ")))
        })?;
        lines(&self.folder, &split.files, most)
    }
}
