//! The formulas of one split of a data set folder.

use std::path::Path;

use serde_json::Value;

use crate::error::{Kind, Refusal};
use crate::file;
use crate::symbol::SymbolId;

/// Bytes of one record: item, −ln p, level, quantifier depth, nodes, multiplicity, key.
const RECORD: usize = 40;

/// A stored formula.
#[derive(Debug, Clone, PartialEq)]
pub struct Stored {
    /// The number of the item.
    pub item: u64,
    /// −ln p in nats.
    pub nll: f64,
    /// The tokens without boundaries.
    pub tokens: Vec<SymbolId>,
}

/// The formulas of a split, in order.
///
/// # Errors
/// `NotFound`, `Io`; `BadManifest` for a manifest without this split; and in the list `Truncated` and
/// `DigestMismatch` for files that are not those of the manifest.
pub fn stored(folder: &Path, split: &str) -> Result<impl Iterator<Item = Result<Stored, Refusal>>, Refusal> {
    let manifest: Value = serde_json::from_slice(&bytes(&folder.join("manifest.json"))?)
        .map_err(|error| Refusal::new(Kind::BadManifest, format!("manifest.json: {error}")))?;
    let files = manifest["splits"][split]["files"].as_array().cloned();
    let files = files.ok_or_else(|| {
        Refusal::new(Kind::BadManifest, format!("the manifest has no files of a split {split}"))
    })?;
    let folder = folder.to_owned();
    Ok(files
        .into_iter()
        .flat_map(move |entry| read_file(&folder, &entry).unwrap_or_else(|refusal| vec![Err(refusal)])))
}

fn bytes(path: &Path) -> Result<Vec<u8>, Refusal> {
    std::fs::read(path).map_err(|error| file::refusal(path, &error))
}

fn read_file(folder: &Path, entry: &Value) -> Result<Vec<Result<Stored, Refusal>>, Refusal> {
    let part = |kind: &str| -> Result<Vec<u8>, Refusal> {
        let name = entry[kind]
            .as_str()
            .ok_or_else(|| Refusal::new(Kind::BadManifest, format!("a file entry has no {kind}")))?;
        let bytes = bytes(&folder.join(name))?;
        match entry["blake3"][kind].as_str() {
            Some(digest) if digest != blake3::hash(&bytes).to_hex().as_str() => {
                Err(Refusal::new(Kind::DigestMismatch, format!("{name} is not the file of the manifest")))
            }
            _ => Ok(bytes),
        }
    };
    let (tokens, offsets, records) = (part("tok")?, part("off")?, part("rec")?);
    let offsets: Vec<u64> = offsets.chunks_exact(8).map(number).collect();
    let truncated = || Refusal::new(Kind::Truncated, "a data file is cut short");
    if offsets.len() != records.len() / RECORD + 1 {
        return Err(truncated());
    }
    let formula = |(record, ends): (&[u8], &[u64])| {
        let byte = |token: u64| usize::try_from(token).ok()?.checked_mul(2);
        let [from, to] = ends else { return None };
        let span = tokens.get(byte(*from)?..byte(*to)?)?;
        let ids: Option<Vec<SymbolId>> =
            span.chunks_exact(2).map(|id| SymbolId::new(number(id).try_into().ok()?)).collect();
        let inside = ids?.into_iter().filter(|id| ![SymbolId::BOS, SymbolId::EOS].contains(id)).collect();
        let nll = f64::from_bits(number(record.get(8..16)?));
        Some(Stored { item: number(record.get(..8)?), nll, tokens: inside })
    };
    let pairs = records.chunks_exact(RECORD).zip(offsets.windows(2));
    Ok(pairs.map(|pair| formula(pair).ok_or_else(truncated)).collect())
}

/// A little-endian integer.
fn number(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte))
}
