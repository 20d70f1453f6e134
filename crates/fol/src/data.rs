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
mod join;
mod keys;
mod manifest;
mod merge;
mod parts;
mod reader;
mod watch;

use std::path::{Path, PathBuf};

pub use composition::{Composition, Compound, Divergence, HeldOut, Rule};
pub use config::{Config, Dedup, Splitting};
pub use dataset::{Dataset, Split};
pub use item::Record;
pub use manifest::{
    Draws, FileDigests, FileEntry, KeyCounts, KeyShares, Manifest, PerForm, SplitEntry, Splits,
};
pub use reader::Reader;
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
    if let Some(there) = there(folder, &digest, options)? {
        return Ok(there);
    }
    pool(config)?.install(|| {
        let maker = parts::Maker::new(config, folder, &digest, watch)?;
        if let Some((shard, shards)) = options.shard {
            let part = maker.part(shard, shards)?;
            return Ok(part.map_or(Outcome::Cancelled, |part| Outcome::Part(part.path)));
        }
        let Some(parts) = maker.all()? else { return Ok(Outcome::Cancelled) };
        let outcome = merged(config, folder, &digest, &parts, watch)?;
        if outcome != Outcome::Cancelled {
            files::remove_folder(&folder.join(parts::FOLDER))?;
        }
        Ok(outcome)
    })
}

/// Joins the parts of all shards, which may have been made on other machines, to the data set that one machine makes:
/// the same bytes. Nothing is drawn, and the parts stay. A source is a part, or a folder that has parts, itself or in its
/// `parts/`.
///
/// # Errors
/// Whatever is missing, there more than once, damaged, or of another configuration, by name and all at once; and what
/// [`generate`] refuses.
pub fn join(
    config: &Config,
    sources: &[PathBuf],
    folder: &Path,
    options: Options,
    watch: &Watch,
) -> Result<Outcome, Refusal> {
    config.check()?;
    let digest = config.digest();
    if let Some(there) = there(folder, &digest, options)? {
        return Ok(there);
    }
    let parts = join::collect(sources, &digest)?;
    pool(config)?.install(|| merged(config, folder, &digest, &parts, watch))
}

/// The data set that is there already, if it may be left alone.
fn there(folder: &Path, digest: &str, options: Options) -> Result<Option<Outcome>, Refusal> {
    if options.force {
        return Ok(None);
    }
    match manifest_of(folder)? {
        Some(manifest) if manifest.config_digest == digest => Ok(Some(Outcome::Done(Box::new(manifest)))),
        Some(_) => {
            let message = format!("{} holds a data set of another configuration", folder.display());
            Err(Refusal::new(Kind::Exists, message).help("choose another folder, or --force"))
        }
        None => Ok(None),
    }
}

fn pool(config: &Config) -> Result<rayon::ThreadPool, Refusal> {
    let built = rayon::ThreadPoolBuilder::new().num_threads(config.threads).build();
    built.map_err(|e| Refusal::new(Kind::Io, format!("threads: {e}")))
}

fn merged(
    config: &Config,
    folder: &Path,
    digest: &str,
    parts: &[parts::Part],
    watch: &Watch,
) -> Result<Outcome, Refusal> {
    match merge::merge(config, folder, digest, parts, watch) {
        Err(_) if watch.stopped() => Ok(Outcome::Cancelled),
        merged => Ok(Outcome::Done(Box::new(merged?))),
    }
}

/// The manifest of a folder, if it holds a data set.
fn manifest_of(folder: &Path) -> Result<Option<Manifest>, Refusal> {
    match Manifest::read(folder) {
        Ok(manifest) => Ok(Some(manifest)),
        Err(refusal) if refusal.kind == Kind::NotFound => Ok(None),
        Err(refusal) => Err(refusal),
    }
}
