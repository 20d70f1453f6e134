//! Reading a data set back, every byte checked (F57).

use std::io::Read;
use std::path::{Path, PathBuf};

use super::files;
use super::item::Record;
use super::manifest::{FILE, FileEntry, Manifest, SplitEntry, bad, beside};
use super::reader::Reader;
use crate::error::{Kind, Refusal};
use crate::symbol::SymbolId;

/// A data set on disk whose files are those of its manifest.
#[derive(Debug, Clone)]
pub struct Dataset {
    folder: PathBuf,
    manifest: Manifest,
}

/// The formulas of a split in memory.
#[derive(Debug, Clone, Default)]
pub struct Split {
    tokens: Vec<SymbolId>,
    /// Where each formula begins, and where the last one ends.
    offsets: Vec<usize>,
    records: Vec<Record>,
}

impl Dataset {
    /// Opens a folder and compares every file with the manifest.
    ///
    /// # Errors
    /// `NotFound` for a missing manifest or file, `BadManifest`, `Truncated` for a file that is too short,
    /// `DigestMismatch` for one that differs.
    pub fn open(folder: &Path) -> Result<Self, Refusal> {
        let manifest = Manifest::read(folder)?;
        for entry in manifest.splits.all() {
            let sum = |of: fn(&FileEntry) -> u64| entry.files.iter().map(of).fold(0, u64::saturating_add);
            if (sum(|f| f.formulas), sum(|f| f.tokens)) != (entry.formulas, entry.tokens) {
                return Err(bad(&folder.join(FILE), "the files of a split do not sum to it"));
            }
            for file in &entry.files {
                verify(folder, file)?;
            }
        }
        Ok(Self { folder: folder.to_owned(), manifest })
    }

    /// The manifest.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// A split to be read from where it lies: `train`, `val`, `test` or `iid`.
    ///
    /// # Errors
    /// `NotFound` for another name.
    pub fn reader(&self, name: &str) -> Result<Reader, Refusal> {
        Reader::new(&self.folder, &self.entry(name)?.files)
    }

    fn entry(&self, name: &str) -> Result<&SplitEntry, Refusal> {
        let unknown = || {
            let message = format!("there is no split {name}");
            Refusal::new(Kind::NotFound, message).help("the splits are train, val, test, iid")
        };
        self.manifest.split(name).ok_or_else(unknown)
    }

    /// Loads a split: `train`, `val`, `test` or `iid`.
    ///
    /// # Errors
    /// `NotFound` for another name; those of [`open`](Self::open) if files have changed since.
    pub fn split(&self, name: &str) -> Result<Split, Refusal> {
        let mut split = Split { offsets: vec![0], ..Split::default() };
        for file in &self.entry(name)?.files {
            split.append(&self.folder, file)?;
        }
        Ok(split)
    }
}

fn verify(folder: &Path, file: &FileEntry) -> Result<(), Refusal> {
    let sizes = [
        (&file.tok, file.tokens.checked_mul(2), &file.blake3.tok),
        (&file.off, file.formulas.checked_add(1).and_then(|n| n.checked_mul(8)), &file.blake3.off),
        (&file.rec, file.formulas.checked_mul(Record::SIZE as u64), &file.blake3.rec),
    ];
    for (name, wanted, digest) in sizes {
        let path = beside(folder, name)?;
        let wanted = wanted.ok_or_else(|| bad(&folder.join(FILE), "a file is larger than any file"))?;
        let (size, found) = files::fingerprint(&path)?;
        if size < wanted {
            let message = format!("{}: {size} bytes of {wanted}", path.display());
            return Err(Refusal::new(Kind::Truncated, message).help("generate the data set again"));
        }
        if found != *digest {
            let message = format!("{} is not the file of the manifest", path.display());
            return Err(Refusal::new(Kind::DigestMismatch, message).help("generate the data set again"));
        }
        if size != wanted {
            return Err(bad(&folder.join(FILE), format!("{name} has {size} bytes, not {wanted}")));
        }
    }
    Ok(())
}

impl Split {
    /// The number of formulas.
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Whether there are no formulas.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// All tokens, sequences back to back.
    pub fn all_tokens(&self) -> &[SymbolId] {
        &self.tokens
    }

    /// The sequence of a formula, `<bos>` and `<eos>` included; empty beyond the last.
    pub fn tokens(&self, formula: usize) -> &[SymbolId] {
        match (self.offsets.get(formula), self.offsets.get(formula + 1)) {
            (Some(&from), Some(&to)) => self.tokens.get(from..to).unwrap_or(&[]),
            _ => &[],
        }
    }

    /// The record of a formula.
    pub fn record(&self, formula: usize) -> Option<&Record> {
        self.records.get(formula)
    }

    /// Sequences with their records.
    pub fn iter(&self) -> impl Iterator<Item = (&[SymbolId], &Record)> {
        self.records.iter().enumerate().map(|(i, record)| (self.tokens(i), record))
    }

    fn append(&mut self, folder: &Path, file: &FileEntry) -> Result<(), Refusal> {
        let broken = |name: &str, why: &str| bad(&folder.join(FILE), format!("{name}: {why}"));
        let read = |name: &str| {
            let mut bytes = Vec::new();
            let path = beside(folder, name)?;
            files::open(&path)?.read_to_end(&mut bytes).map_err(|e| files::io(&path, &e))?;
            Ok::<_, Refusal>(bytes)
        };
        let base = self.tokens.len();
        for pair in read(&file.tok)?.as_chunks::<2>().0 {
            let token = SymbolId::new(u16::from_le_bytes(*pair));
            self.tokens.push(token.ok_or_else(|| broken(&file.tok, "an id is no symbol"))?);
        }
        for (i, offset) in read(&file.off)?.as_chunks::<8>().0.iter().enumerate() {
            let offset = usize::try_from(u64::from_le_bytes(*offset)).ok().and_then(|o| o.checked_add(base));
            let last = self.offsets.last().copied().unwrap_or(0);
            let Some(offset) = offset.filter(|&o| last <= o && o <= self.tokens.len()) else {
                return Err(broken(&file.off, "the offsets do not ascend to the number of tokens"));
            };
            if i > 0 {
                self.offsets.push(offset);
            }
        }
        for bytes in read(&file.rec)?.as_chunks::<{ Record::SIZE }>().0 {
            self.records.extend(Record::from_bytes(bytes));
        }
        if self.offsets.len() != self.records.len() + 1 {
            return Err(broken(&file.rec, "there are not as many records as formulas"));
        }
        Ok(())
    }
}
