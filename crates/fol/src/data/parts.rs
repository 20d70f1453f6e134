//! Parts: the items of one shard, drawn block by block (F54).
//!
//! A part holds, for each stream of the configuration, the items ⌊I·n/N⌋ … ⌊(I+1)·n/N⌋ − 1. It names its
//! configuration and its shard at its head and ends in the digest of all before, so a part that was cut short, renamed, or
//! belongs to another configuration is not taken for a finished one.

use std::fs;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use rayon::prelude::*;

use super::config::Config;
use super::files::{self, WholeFile, io};
use super::item::{Drawer, Item};
use super::watch::Watch;
use crate::error::{Kind, Refusal};
use crate::sample::{Sampler, family};
use crate::score::Scorer;

/// The folder of the parts.
pub(super) const FOLDER: &str = "parts";

/// Items between two looks at the watch, and in memory at a time.
const BLOCK: u64 = 1 << 14;

/// Items of the largest stream in one part of a run that chooses the shards itself.
const PART: u64 = 200_000;

const MAGIC: &[u8; 16] = b"fol663-part/2\n\0\0";
const DIGEST: u64 = 32;
/// Digits of the digest of a configuration.
const CONFIG: usize = 64;

/// A finished part.
#[derive(Debug, Clone)]
pub(super) struct Part {
    pub(super) path: PathBuf,
}

/// What a part says of itself at its head: magic, digest of the configuration, shard, number of shards.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) config: String,
    pub(super) shard: u64,
    pub(super) shards: u64,
}

impl Head {
    /// Its length in bytes.
    pub(super) const SIZE: usize = MAGIC.len() + CONFIG + 16;

    fn bytes(&self) -> Vec<u8> {
        let numbers = [self.shard.to_le_bytes(), self.shards.to_le_bytes()].concat();
        [&MAGIC[..], self.config.as_bytes(), &numbers].concat()
    }

    /// Reads one; none if the bytes are not the head of a part.
    fn read(reader: &mut impl Read) -> Option<Self> {
        let mut bytes = [0; Self::SIZE];
        reader.read_exact(&mut bytes).ok()?;
        let (magic, rest) = bytes.split_at(MAGIC.len());
        let (config, numbers) = rest.split_at(CONFIG);
        let (shard, shards) = numbers.split_at(8);
        let number = |bytes: &[u8]| Some(u64::from_le_bytes(bytes.try_into().ok()?));
        let head = Self {
            config: String::from_utf8(config.to_vec()).ok()?,
            shard: number(shard)?,
            shards: number(shards)?,
        };
        (magic == MAGIC && head.shard < head.shards).then_some(head)
    }
}

/// What a file is, as a part.
pub(super) enum Found {
    /// A part, whole.
    Part(Head),
    /// It begins as a part and is damaged or cut short.
    Damaged(Head),
    /// Something else.
    Other,
}

impl Part {
    /// What a file is; its bytes are compared with the digest at its end.
    pub(super) fn look(path: &Path) -> std::io::Result<Found> {
        let mut file = fs::File::open(path)?;
        let Some(head) = Head::read(&mut file) else { return Ok(Found::Other) };
        let Some(content) = file.metadata()?.len().checked_sub(DIGEST).filter(|&n| n >= Head::SIZE as u64)
        else {
            return Ok(Found::Damaged(head));
        };
        file.rewind()?;
        let mut hasher = blake3::Hasher::new();
        std::io::copy(&mut BufReader::new(&file).take(content), &mut hasher)?;
        let mut digest = [0; DIGEST as usize];
        file.seek(SeekFrom::Start(content))?;
        file.read_exact(&mut digest)?;
        Ok(if digest == *hasher.finalize().as_bytes() { Found::Part(head) } else { Found::Damaged(head) })
    }
}

/// Makes parts of one configuration.
pub(super) struct Maker<'a> {
    config: &'a Config,
    folder: PathBuf,
    /// The digest of the configuration.
    digest: String,
    watch: &'a Watch<'a>,
    sampler: Sampler,
    scorer: Scorer,
}

/// The items of a shard: ⌊I·n/N⌋ … ⌊(I+1)·n/N⌋ − 1.
fn range(items: u64, shard: u64, shards: u64) -> std::ops::Range<u64> {
    let at = |i: u64| (u128::from(items) * u128::from(i) / u128::from(shards.max(1))) as u64;
    at(shard)..at(shard + 1)
}

impl<'a> Maker<'a> {
    pub(super) fn new(
        config: &'a Config,
        folder: &Path,
        digest: &str,
        watch: &'a Watch<'a>,
    ) -> Result<Self, Refusal> {
        Ok(Self {
            config,
            folder: folder.join(FOLDER),
            digest: digest.to_owned(),
            watch,
            sampler: Sampler::new(&config.law)?,
            scorer: Scorer::new(&config.law)?,
        })
    }

    fn at(&self, shard: u64, shards: u64) -> Part {
        Part { path: self.folder.join(format!("{shard}-of-{shards}.part")) }
    }

    fn head(&self, shard: u64, shards: u64) -> Head {
        Head { config: self.digest.clone(), shard, shards }
    }

    /// Whether the part of a shard is there, of this configuration, and whole.
    fn is_finished(&self, shard: u64, shards: u64) -> bool {
        let found = Part::look(&self.at(shard, shards).path);
        matches!(found, Ok(Found::Part(head)) if head == self.head(shard, shards))
    }

    /// The number of items of a shard.
    fn items(&self, shard: u64, shards: u64) -> u64 {
        let lengths = self.config.streams().into_iter().map(|(_, n)| range(n, shard, shards));
        lengths.map(|range| range.end - range.start).sum()
    }

    /// One part, made if it is not there; `None` if the run was stopped.
    pub(super) fn part(&self, shard: u64, shards: u64) -> Result<Option<Part>, Refusal> {
        self.make(shard, shards, 0, self.items(shard, shards))
    }

    /// All parts, finished ones used and missing ones made; `None` if the run was stopped.
    pub(super) fn all(&self) -> Result<Option<Vec<Part>>, Refusal> {
        let shards = self.shards();
        let total = self.config.streams().iter().map(|s| s.1).sum();
        let mut done = 0;
        let mut parts = Vec::new();
        for shard in 0..shards {
            let Some(part) = self.make(shard, shards, done, total)? else { return Ok(None) };
            done += self.items(shard, shards);
            (self.watch.progress)(done, total);
            parts.push(part);
        }
        Ok(Some(parts))
    }

    /// The number of shards of which the largest share is finished, or one that keeps parts small.
    fn shards(&self) -> u64 {
        let largest = self.config.streams().iter().map(|s| s.1).max().unwrap_or(0);
        let own = largest.div_ceil(PART).max(1);
        let mut finished: std::collections::BTreeMap<u64, u64> = std::collections::BTreeMap::new();
        for entry in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let parsed =
                name.to_str().and_then(|n| n.strip_suffix(".part")).and_then(|n| n.split_once("-of-"));
            let Some((shard, shards)) = parsed.and_then(|(i, n)| Some((i.parse().ok()?, n.parse().ok()?)))
            else {
                continue;
            };
            if shard < shards && self.is_finished(shard, shards) {
                *finished.entry(shards).or_insert(0) += 1;
            }
        }
        let share = |&(shards, number): &(u64, u64)| number as f64 / shards as f64;
        finished.into_iter().max_by(|a, b| share(a).total_cmp(&share(b))).map_or(own, |best| best.0)
    }

    fn make(&self, shard: u64, shards: u64, before: u64, total: u64) -> Result<Option<Part>, Refusal> {
        let part = self.at(shard, shards);
        if self.is_finished(shard, shards) {
            return Ok(Some(part));
        }
        let mut file = WholeFile::create(&part.path)?;
        file.write(&self.head(shard, shards).bytes())?;
        let mut done = before;
        for (purpose, items) in self.config.streams() {
            let range = range(items, shard, shards);
            file.write(&(range.end - range.start).to_le_bytes())?;
            let family = family(purpose, self.config.seed);
            let mut from = range.start;
            while from < range.end {
                if self.watch.stopped() {
                    return Ok(None);
                }
                let to = range.end.min(from + BLOCK);
                for bytes in self.block(&family, from, to)? {
                    file.write(&bytes)?;
                }
                done += to - from;
                (self.watch.progress)(done, total);
                from = to;
            }
        }
        let digest = file.digest();
        file.write(digest.as_bytes())?;
        file.finish()?;
        Ok(Some(part))
    }

    /// The bytes of a block of items, in order.
    fn block(&self, family: &seeded::Family, from: u64, to: u64) -> Result<Vec<Vec<u8>>, Refusal> {
        /// Items that one thread draws at a time.
        const CHUNK: u64 = 256;
        let chunks = (to - from).div_ceil(CHUNK);
        (0..chunks)
            .into_par_iter()
            .map_init(
                || Drawer::new(self.sampler.clone(), self.scorer.clone()),
                |drawer, chunk| {
                    let mut bytes = Vec::new();
                    let start = from + chunk * CHUNK;
                    for item in start..to.min(start + CHUNK) {
                        drawer.draw(family, item)?.write(&mut bytes);
                    }
                    Ok(bytes)
                },
            )
            .collect()
    }
}

impl Part {
    /// Calls with each item of one stream, in order; `streams` is the number of streams before it. Refuses to go on
    /// once the run is to stop.
    pub(super) fn for_each(
        &self,
        streams: usize,
        watch: &Watch,
        mut item: impl FnMut(Item) -> Result<(), Refusal>,
    ) -> Result<(), Refusal> {
        let mut reader = files::open(&self.path)?;
        let broken = || {
            let error =
                std::io::Error::new(std::io::ErrorKind::InvalidData, "the part changed while it was read");
            io(&self.path, &error)
        };
        reader.seek_relative(Head::SIZE as i64).map_err(|e| io(&self.path, &e))?;
        for stream in 0..=streams {
            let mut count = [0; 8];
            reader.read_exact(&mut count).map_err(|e| io(&self.path, &e))?;
            for _ in 0..u64::from_le_bytes(count) {
                let read = Item::read(&mut reader).ok_or_else(broken)?;
                if watch.stopped() {
                    return Err(Refusal::new(Kind::Io, "the run was stopped"));
                }
                if stream == streams {
                    item(read)?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::range;

    #[test]
    fn shards_cover_every_item_once() {
        for (items, shards) in [(0, 3), (10, 1), (10, 3), (2, 5), (u64::MAX, 7)] {
            let mut next = 0;
            for shard in 0..shards {
                let range = range(items, shard, shards);
                assert_eq!(range.start, next);
                next = range.end;
            }
            assert_eq!(next, items);
        }
    }
}
