//! From parts to the data set: de-duplication, splits, files, and what the manifest says.
//!
//! Items are read in their order: to count the classes if duplicates are removed, then to write the first item
//! of each. Distinct classes and overlaps are counted after that, in [`keys`](super::keys), one level of keys
//! at a time, so that never more than 24 bytes of a class or formula are in memory.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use rayon::prelude::*;

use super::composition::{Composition, Divergence, HeldOut, Place, diverge};
use super::config::{Config, Dedup, Splitting};
use super::files::{self, WholeFile, io};
use super::item::Item;
use super::keys::{self, Side};
use super::manifest::{Draws, FILE, FileDigests, FileEntry, Manifest, SCHEMA, SPLITS, SplitEntry, Splits};
use super::parts::Part;
use super::watch::Watch;
use crate::error::Refusal;
use crate::estimate::{Optimum, TextOptimum};
use crate::file::TEMPORARY;
use crate::key::{Key, bucket, push_bytes, split};
use crate::law::config::bad_value;
use crate::record::Record;
use crate::score::Scorer;
use crate::symbol::{SymbolId, VOCABULARY};

/// Formulas of train in the preview.
const PREVIEW: u64 = 1000;
const PREVIEW_FILE: &str = "preview.jsonl";

/// Merges finished parts; refuses to go on once the run is to stop.
pub(super) fn merge(
    config: &Config,
    folder: &Path,
    digest: &str,
    parts: &[Part],
    watch: &Watch,
) -> Result<Manifest, Refusal> {
    // From here to the new manifest the folder holds no data set.
    files::remove(&folder.join(FILE))?;
    let mut merge = Merge {
        config,
        parts,
        watch,
        writers: SPLITS.map(|name| SplitWriter::new(folder, name, config.file_formulas)),
        classes: HashMap::new(),
        draws: Draws::default(),
        sides: Vec::new(),
        places: HashMap::new(),
        components: vec![[0; 2]; config.hold_out.len()],
        histogram: vec![0; VOCABULARY],
        preview: WholeFile::create(&folder.join(PREVIEW_FILE))?,
    };
    merge.count_classes()?;
    let divergence = merge.diverge()?;
    merge.write()?;
    merge.check_held_out()?;
    let Merge { writers, mut draws, histogram, preview, sides, .. } = merge;
    preview.finish()?;
    let (distinct, overlap) = keys::compare(parts, &sides, watch)?;
    let mut all = blake3::Hasher::new();
    let mut finished = SPLITS.map(|_| SplitEntry::default());
    for ((writer, distinct), finished) in writers.into_iter().zip(distinct).zip(&mut finished) {
        let entry = SplitEntry { distinct, ..writer.finish()? };
        for file in &entry.files {
            let path = folder.join(&file.tok);
            std::io::copy(&mut files::open(&path)?, &mut all).map_err(|e| io(&path, &e))?;
        }
        *finished = entry;
    }
    let [train, val, test, iid] = finished;
    let splits = Splits { train, val, test, iid };
    draws.kept = splits.train.formulas + splits.val.formulas + splits.test.formulas;
    draws.duplicates = draws.made - draws.kept - draws.left_out;
    let manifest = Manifest {
        schema: SCHEMA.to_owned(),
        name: config.name.clone().unwrap_or_else(|| last_part(folder)),
        law: config.law.to_json(),
        seed: config.seed,
        split: config.split.name().to_owned(),
        dedup: config.dedup.name().to_owned(),
        weights: config.weights,
        hold_out: config.hold_out.iter().map(HeldOut::name).collect(),
        divergence,
        generator: concat!("fol ", env!("CARGO_PKG_VERSION")).to_owned(),
        config_digest: digest.to_owned(),
        splits,
        overlap,
        draws,
        histogram,
        optimum: optimum(config, parts, watch)?,
        digest: all.finalize().to_hex().to_string(),
    };
    let path = folder.join(FILE);
    let text = serde_json::to_string_pretty(&manifest).map_err(|e| io(&path, &e.into()))?;
    remove_strangers(folder, &manifest)?;
    let mut file = WholeFile::create(&path)?;
    file.write(text.as_bytes())?;
    file.write(b"\n")?;
    file.finish()?;
    Ok(manifest)
}

/// The last part of a folder's path.
fn last_part(folder: &Path) -> String {
    folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Removes files of an earlier data set that this one does not have.
fn remove_strangers(folder: &Path, manifest: &Manifest) -> Result<(), Refusal> {
    let known = |name: &str| {
        manifest
            .splits
            .all()
            .into_iter()
            .flat_map(|entry| &entry.files)
            .any(|f| f.tok == name || f.off == name || f.rec == name)
    };
    for entry in std::fs::read_dir(folder).map_err(|e| io(folder, &e))?.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let of_split = |split: &&str| name.strip_prefix(*split).is_some_and(|rest| rest.starts_with('-'));
        let ours = SPLITS.iter().any(of_split) || name.starts_with(PREVIEW_FILE) || name.starts_with(FILE);
        let ends = [".tok", ".off", ".rec", TEMPORARY].iter().any(|end| name.ends_with(end));
        if ours && ends && !known(&name) {
            files::remove(&entry.path())?;
        }
    }
    Ok(())
}

struct Merge<'a> {
    config: &'a Config,
    parts: &'a [Part],
    watch: &'a Watch<'a>,
    writers: [SplitWriter; 4],
    /// For each class, how many items were drawn; 0 once its first is written.
    classes: HashMap<Key, u32>,
    /// For each stream and item, the split that has it.
    sides: Vec<Vec<Side>>,
    /// Where the climb put the items.
    places: HashMap<u64, Place>,
    /// For each composition that is held out, the formulas of train with its components.
    components: Vec<[u64; 2]>,
    draws: Draws,
    histogram: Vec<u64>,
    preview: WholeFile,
}

impl Merge<'_> {
    fn for_each(
        &mut self,
        stream: usize,
        mut item: impl FnMut(&mut Self, Item) -> Result<(), Refusal>,
    ) -> Result<(), Refusal> {
        for part in self.parts {
            part.for_each(stream, self.watch, |read| item(self, read))?;
        }
        Ok(())
    }

    fn count_classes(&mut self) -> Result<(), Refusal> {
        let Dedup::Key(level) = self.config.dedup else { return Ok(()) };
        self.for_each(0, |merge, item| {
            if let Some(&key) = item.keys.get(level) {
                let number = merge.classes.entry(key).or_insert(0);
                *number = number.saturating_add(1);
            }
            Ok(())
        })
    }

    fn write(&mut self) -> Result<(), Refusal> {
        for (stream, (purpose, _)) in self.config.streams().into_iter().enumerate() {
            let mut sides = Vec::new();
            self.for_each(stream, |merge, item| {
                sides.push(merge.item(purpose, item)?);
                Ok(())
            })?;
            self.sides.push(sides);
        }
        self.classes = HashMap::new();
        Ok(())
    }

    fn item(&mut self, purpose: &str, mut item: Item) -> Result<Side, Refusal> {
        if purpose == "iid" {
            return self.writer("iid", &item);
        }
        self.draws.made += 1;
        self.draws.redrawn += u64::from(item.redrawn);
        if let Dedup::Key(level) = self.config.dedup
            && let Some(number) = item.keys.get(level).and_then(|key| self.classes.get_mut(key))
        {
            item.record.multiplicity = std::mem::take(number);
            if item.record.multiplicity == 0 {
                return Ok(Side::NONE);
            }
        }
        let by_bucket = || split(self.bucket_of(&item), self.config.weights);
        // What is not held out and whose bucket is that of test is learned from: nothing else decides who is tested.
        let beside_test = || if by_bucket() == "val" { "val" } else { "train" };
        let mut components = Vec::new();
        let name = match self.config.split {
            Splitting::Stream => purpose,
            Splitting::Hash => by_bucket(),
            Splitting::Divergence => match self.places.get(&item.record.item) {
                Some(Place::Test) => "test",
                Some(Place::Train) => beside_test(),
                Some(Place::Out) | None => {
                    self.draws.left_out += 1;
                    return Ok(Side::NONE);
                }
            },
            Splitting::HeldOut => {
                let composition = Composition::of(&crate::decode(&item.tokens)?);
                components.extend(self.config.hold_out.iter().map(|held| held.components_in(&composition)));
                let held = self.config.hold_out.iter().any(|held| held.is_in(&composition));
                if held { "test" } else { beside_test() }
            }
        };
        if name == "train" {
            for (counts, has) in self.components.iter_mut().zip(components) {
                counts.iter_mut().zip(has).for_each(|(count, has)| *count += u64::from(has));
            }
        }
        if name == "train" {
            self.train(&item)?;
        }
        self.writer(name, &item)
    }

    fn bucket_of(&self, item: &Item) -> u16 {
        item.keys.get(self.config.bucket).map_or(0, bucket)
    }

    /// Divides the items that are kept into those of test and the others, where the split asks for it.
    fn diverge(&mut self) -> Result<Option<Divergence>, Refusal> {
        if self.config.split != Splitting::Divergence {
            return Ok(None);
        }
        let (mut numbers, mut texts, mut start) = (Vec::new(), Vec::new(), Vec::new());
        let mut seen = HashSet::new();
        self.for_each(0, |merge, item| {
            if let Dedup::Key(level) = merge.config.dedup
                && !item.keys.get(level).is_some_and(|key| seen.insert(*key))
            {
                return Ok(());
            }
            let composition = Composition::of(&crate::decode(&item.tokens)?);
            numbers.push(item.record.item);
            // Of those that are not of test half may be left out, so that the climb has a choice. A text without a
            // compound tests no composition.
            start.push(match split(merge.bucket_of(&item), merge.config.weights) {
                _ if composition.compounds.is_empty() => Place::Train,
                "test" => Place::Test,
                _ if numbers.len().is_multiple_of(2) => Place::Train,
                _ => Place::Out,
            });
            texts.push(composition);
            Ok(())
        })?;
        let mut stream = crate::sample::family("divergence", self.config.seed).stream(0);
        let (places, found) = diverge(&texts, &start, &mut stream)?;
        self.places = numbers.into_iter().zip(places).collect();
        Ok(Some(found))
    }

    /// Whoever never saw a pair must have seen its components often, or the test is of something else.
    fn check_held_out(&self) -> Result<(), Refusal> {
        let formulas =
            |name: &str| Side::of(name).get(&self.writers).map_or(0, |writer| writer.entry.formulas);
        let (train, test) = (formulas("train"), formulas("test"));
        if self.config.split == Splitting::HeldOut && test == 0 {
            return Err(bad_value("hold_out", "no formula of the draws has what is held out"));
        }
        for (held, counts) in self.config.hold_out.iter().zip(&self.components) {
            if counts.iter().any(|&count| count == 0 || count * 100 < train) {
                let [first, second] = counts;
                let name = held.name();
                return Err(bad_value(
                    "hold_out",
                    format!(
                        "\"{name}\": of {train} formulas of train {first} and {second} have its components; each must \
                         be in one of a hundred"
                    ),
                ));
            }
        }
        Ok(())
    }

    fn train(&mut self, item: &Item) -> Result<(), Refusal> {
        let number = self.writers.first().map_or(0, |train| train.entry.formulas);
        for token in item.tokens.iter().chain([&SymbolId::BOS, &SymbolId::EOS]) {
            if let Some(count) = self.histogram.get_mut(token.index()) {
                *count += 1;
            }
        }
        if number < PREVIEW {
            let (item, text, nll) = (item.record.item, crate::decode(&item.tokens)?, Some(item.record.nll));
            self.preview.write(format!("{}\n", Record { item, text, nll }.line()?).as_bytes())?;
        }
        Ok(())
    }

    fn writer(&mut self, name: &str, item: &Item) -> Result<Side, Refusal> {
        let side = Side::of(name);
        if let Some(writer) = side.get_mut(&mut self.writers) {
            writer.push(item)?;
        }
        Ok(side)
    }
}

/// Writes the files of a split one after the other.
struct SplitWriter {
    folder: PathBuf,
    name: &'static str,
    per_file: u64,
    entry: SplitEntry,
    nll: f64,
    file: Option<OpenFile>,
}

struct OpenFile {
    tok: WholeFile,
    off: WholeFile,
    rec: WholeFile,
    entry: FileEntry,
}

impl SplitWriter {
    fn new(folder: &Path, name: &'static str, per_file: u64) -> Self {
        let levels = (1..=4).map(|level| (level.to_string(), 0)).collect();
        let entry = SplitEntry { levels, ..SplitEntry::default() };
        Self { folder: folder.to_owned(), name, per_file, entry, nll: 0.0, file: None }
    }

    fn begin(&self) -> Result<OpenFile, Refusal> {
        let name = |end: &str| format!("{}-{:05}.{end}", self.name, self.entry.files.len());
        let create = |name: &str| WholeFile::create(&self.folder.join(name));
        let [tok, off, rec] = ["tok", "off", "rec"].map(name);
        let mut file = OpenFile {
            tok: create(&tok)?,
            off: create(&off)?,
            rec: create(&rec)?,
            entry: FileEntry { tok, off, rec, ..FileEntry::default() },
        };
        file.off.write(&0u64.to_le_bytes())?;
        Ok(file)
    }

    fn push(&mut self, item: &Item) -> Result<(), Refusal> {
        let mut file = match self.file.take() {
            Some(file) => file,
            None => self.begin()?,
        };
        let mut sequence = Vec::with_capacity(2 * item.tokens.len() + 4);
        [&[SymbolId::BOS][..], &item.tokens, &[SymbolId::EOS]]
            .iter()
            .for_each(|tokens| push_bytes(&mut sequence, tokens));
        file.tok.write(&sequence)?;
        file.entry.formulas += 1;
        file.entry.tokens += item.tokens.len() as u64 + 2;
        file.off.write(&file.entry.tokens.to_le_bytes())?;
        file.rec.write(&item.record.to_bytes())?;
        self.entry.formulas += 1;
        self.entry.tokens += item.tokens.len() as u64 + 2;
        *self.entry.levels.entry(item.record.level.to_string()).or_insert(0) += 1;
        self.nll += item.record.nll;
        if file.entry.formulas >= self.per_file {
            self.close(file)
        } else {
            self.file = Some(file);
            Ok(())
        }
    }

    fn close(&mut self, file: OpenFile) -> Result<(), Refusal> {
        let OpenFile { tok, off, rec, mut entry } = file;
        entry.blake3 = FileDigests { tok: tok.finish()?, off: off.finish()?, rec: rec.finish()? };
        self.entry.files.push(entry);
        Ok(())
    }

    /// The entry of the manifest, but for the distinct classes.
    fn finish(mut self) -> Result<SplitEntry, Refusal> {
        if let Some(file) = self.file.take() {
            self.close(file)?;
        }
        let formulas = self.entry.formulas;
        self.entry.mean_nll = (formulas > 0).then(|| self.nll / formulas as f64);
        Ok(self.entry)
    }
}

/// The optimum on the set `iid`; `None` for laws with statements, and without such formulas.
fn optimum(config: &Config, parts: &[Part], watch: &Watch) -> Result<Option<Optimum>, Refusal> {
    if config.law.has_statements() || config.iid == 0 {
        return Ok(None);
    }
    let stream = config.streams().len() - 1;
    let mut texts: Vec<Vec<SymbolId>> = Vec::new();
    for part in parts {
        part.for_each(stream, watch, |item| {
            texts.push(item.tokens);
            Ok(())
        })?;
    }
    let scorer = Scorer::new(&config.law)?;
    let measured: Vec<TextOptimum> = texts
        .par_iter()
        .map_init(|| scorer.clone(), |scorer, tokens| TextOptimum::of(scorer, tokens))
        .collect::<Result<_, _>>()?;
    Ok(TextOptimum::mean(&measured))
}
