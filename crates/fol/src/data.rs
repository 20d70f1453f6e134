//! Data sets: texts of a law in binary files, with records and a manifest (F52, F55).
//!
//! Enter at [`generate`] to make one and at [`Dataset::open`] to read one. Items are drawn in parallel, block
//! by block, into *parts* (one for each shard); parts are merged in the order of items, so the result depends on
//! neither shards nor threads nor the size of files. Every file is written under a temporary name, synced and
//! renamed, the manifest last: what is there is whole.

mod composition;
mod config;
mod dataset;
mod files;
mod item;
mod keys;
mod manifest;
mod merge;
mod parts;
mod watch;

use std::path::Path;

pub use composition::{Composition, Compound, Divergence, HeldOut, Rule};
pub use config::{Config, Dedup, Splitting};
pub use dataset::{Dataset, Split};
pub use item::Record;
pub use manifest::{
    Draws, FileDigests, FileEntry, KeyCounts, KeyShares, Manifest, PerForm, SplitEntry, Splits,
};
pub use watch::{Options, Outcome, Watch};

use crate::error::{Kind, Refusal};

/// Makes a data set, or one part of it, in a folder.
///
/// # Errors
/// `Exists` for a folder with another data set; `TooLong`, `EmptySize` and `BadValue` for laws that cannot be
/// used; `Io`.
pub fn generate(config: &Config, folder: &Path, options: Options, watch: &Watch) -> Result<Outcome, Refusal> {
    config.check()?;
    if let Some((shard, shards)) = options.shard
        && shard >= shards
    {
        return Err(Refusal::new(Kind::BadValue, format!("shard: there is no shard {shard} of {shards}")));
    }
    let digest = config.digest();
    if !options.force
        && let Some(manifest) = manifest_of(folder)?
    {
        if manifest.config_digest == digest {
            return Ok(Outcome::Done(Box::new(manifest)));
        }
        let message = format!("{} holds a data set of another configuration", folder.display());
        return Err(Refusal::new(Kind::Exists, message).help("choose another folder, or --force"));
    }
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(config.threads)
        .build()
        .map_err(|e| Refusal::new(Kind::Io, format!("threads: {e}")))?;
    pool.install(|| {
        let maker = parts::Maker::new(config, folder, &digest, watch)?;
        if let Some((shard, shards)) = options.shard {
            let part = maker.part(shard, shards)?;
            return Ok(part.map_or(Outcome::Cancelled, |part| Outcome::Part(part.path)));
        }
        let Some(parts) = maker.all()? else { return Ok(Outcome::Cancelled) };
        let manifest = match merge::merge(config, folder, &digest, &parts, watch) {
            Err(_) if watch.stopped() => return Ok(Outcome::Cancelled),
            merged => merged?,
        };
        files::remove_folder(&folder.join(parts::FOLDER))?;
        Ok(Outcome::Done(Box::new(manifest)))
    })
}

/// The manifest of a folder, if it holds a data set.
fn manifest_of(folder: &Path) -> Result<Option<Manifest>, Refusal> {
    match Manifest::read(folder) {
        Ok(manifest) => Ok(Some(manifest)),
        Err(refusal) if refusal.kind == Kind::NotFound => Ok(None),
        Err(refusal) => Err(refusal),
    }
}
