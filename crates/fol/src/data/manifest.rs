//! The manifest of a data set (F56).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::composition::Divergence;
use super::files::io;
use crate::error::{Kind, Refusal};
use crate::estimate::Optimum;

/// The value of the key `schema`.
pub(super) const SCHEMA: &str = "fol663-data/1";

/// The file's name.
pub(super) const FILE: &str = "manifest.json";

/// The names of the splits, in their order.
pub(super) const SPLITS: [&str; 4] = ["train", "val", "test", "iid"];

/// Everything about a data set but its formulas. The names are the keys of `manifest.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the reference explains each key")]
pub struct Manifest {
    pub schema: String,
    pub name: String,
    pub law: Value,
    pub seed: u64,
    pub split: String,
    pub dedup: String,
    pub weights: [u16; 3],
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hold_out: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub divergence: Option<Divergence>,
    pub generator: String,
    pub config_digest: String,
    pub splits: Splits,
    pub overlap: BTreeMap<String, KeyShares>,
    pub draws: Draws,
    pub histogram: Vec<u64>,
    pub optimum: Option<Optimum>,
    pub digest: String,
}

/// The four splits.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Splits {
    /// What is learned from.
    pub train: SplitEntry,
    /// What choices are made on.
    pub val: SplitEntry,
    /// What is reported on.
    pub test: SplitEntry,
    /// What the exact optimum is measured on, never filtered.
    pub iid: SplitEntry,
}

impl Splits {
    /// In the order of their names.
    pub(super) fn all(&self) -> [&SplitEntry; 4] {
        [&self.train, &self.val, &self.test, &self.iid]
    }
}

/// One split.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names of the manifest's keys")]
pub struct SplitEntry {
    pub formulas: u64,
    pub tokens: u64,
    pub levels: BTreeMap<String, u64>,
    /// `null` for a split without formulas.
    pub mean_nll: Option<f64>,
    pub distinct: KeyCounts,
    pub files: Vec<FileEntry>,
}

/// A number for each canonical form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
#[expect(missing_docs, reason = "the names of the canonical forms")]
pub struct PerForm<T> {
    pub k0: T,
    pub k1: T,
    pub k2: T,
    pub k3: T,
}

impl<T> PerForm<T> {
    /// What belongs to the forms K0 to K3.
    pub(super) fn of(mut form: impl FnMut(usize) -> T) -> Self {
        Self { k0: form(0), k1: form(1), k2: form(2), k3: form(3) }
    }
}

/// Numbers of classes.
pub type KeyCounts = PerForm<u64>;

/// Shares of formulas.
pub type KeyShares = PerForm<f64>;

/// The three files of a piece of a split.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names of the manifest's keys")]
pub struct FileEntry {
    pub tok: String,
    pub off: String,
    pub rec: String,
    pub formulas: u64,
    pub tokens: u64,
    pub blake3: FileDigests,
}

/// Digests in hexadecimal.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names of the manifest's keys")]
pub struct FileDigests {
    pub tok: String,
    pub off: String,
    pub rec: String,
}

/// How many items were drawn for train, val and test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names of the manifest's keys")]
pub struct Draws {
    pub made: u64,
    pub kept: u64,
    pub duplicates: u64,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub left_out: u64,
    pub redrawn: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the attribute of serde passes a reference")]
fn is_zero(n: &u64) -> bool {
    *n == 0
}

impl Manifest {
    /// The manifest of a folder.
    ///
    /// # Errors
    /// `NotFound` if there is none, `BadManifest` if it is not one.
    pub fn read(folder: &Path) -> Result<Self, Refusal> {
        let path = folder.join(FILE);
        let text = std::fs::read_to_string(&path).map_err(|e| match e.kind() {
            std::io::ErrorKind::InvalidData => bad(&path, "it is not UTF-8"),
            _ => io(&path, &e),
        })?;
        let manifest: Self = serde_json::from_str(&text).map_err(|e| bad(&path, e))?;
        if manifest.schema != SCHEMA {
            return Err(bad(&path, format!("the schema is {:?}, not {SCHEMA:?}", manifest.schema)));
        }
        Ok(manifest)
    }

    /// A split by its name.
    pub fn split(&self, name: &str) -> Option<&SplitEntry> {
        SPLITS.iter().zip(self.splits.all()).find(|(split, _)| **split == name).map(|(_, entry)| entry)
    }
}

/// A name in a manifest is the name of a file beside it.
pub(super) fn beside(folder: &Path, name: &str) -> Result<PathBuf, Refusal> {
    match Path::new(name).file_name() {
        Some(plain) if plain == name => Ok(folder.join(name)),
        _ => Err(bad(&folder.join(FILE), format!("{name:?} is not the name of a file beside it"))),
    }
}

/// The refusal of a manifest.
pub(super) fn bad(path: &Path, why: impl std::fmt::Display) -> Refusal {
    Refusal::new(Kind::BadManifest, format!("{}: {why}", path.display()))
}
