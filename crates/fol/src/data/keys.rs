//! How many classes the splits have, and which they share.
//!
//! The parts are read once for each level of keys, so 16 bytes of each formula are in memory at a time, and one
//! byte that says which split has it.

use std::collections::BTreeMap;

use rayon::prelude::*;

use super::manifest::{KeyCounts, KeyShares, PerForm, SPLITS};
use super::parts::Part;
use super::watch::Watch;
use crate::error::Refusal;
use crate::key::Key;

/// Pairs of splits whose overlap is told.
const PAIRS: [(&str, &str); 4] = [("train", "val"), ("train", "test"), ("val", "test"), ("train", "iid")];

/// The split that has an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Side(u8);

impl Side {
    /// No split.
    pub(super) const NONE: Self = Self(u8::MAX);

    /// The split of this name.
    pub(super) fn of(name: &str) -> Self {
        SPLITS.iter().position(|split| *split == name).map_or(Self::NONE, |i| Self(i as u8))
    }

    /// What belongs to the split.
    pub(super) fn get<T>(self, splits: &[T; 4]) -> Option<&T> {
        splits.get(usize::from(self.0))
    }

    pub(super) fn get_mut<T>(self, splits: &mut [T; 4]) -> Option<&mut T> {
        splits.get_mut(usize::from(self.0))
    }
}

/// What one level of keys says: the number of classes of each split, and the share of each pair.
struct Level {
    distinct: [u64; 4],
    overlap: [f64; 4],
}

/// The number of classes of each split at each level, and for each pair a/b the share of the formulas of b whose
/// key occurs in a. `sides` says for each stream and item which split has it.
pub(super) fn compare(
    parts: &[Part],
    sides: &[Vec<Side>],
    watch: &Watch,
) -> Result<([KeyCounts; 4], BTreeMap<String, KeyShares>), Refusal> {
    let level = |level| Ok::<_, Refusal>(Level::of(&sorted(parts, sides, watch, level)?));
    let levels = [level(0)?, level(1)?, level(2)?, level(3)?];
    let distinct = std::array::from_fn(|split| PerForm::of(|form| levels[form].distinct[split]));
    let overlap = PAIRS
        .iter()
        .enumerate()
        .map(|(pair, (a, b))| (format!("{a}/{b}"), PerForm::of(|form| levels[form].overlap[pair])));
    Ok((distinct, overlap.collect()))
}

/// The keys of each split at one level, ascending.
fn sorted(
    parts: &[Part],
    sides: &[Vec<Side>],
    watch: &Watch,
    level: usize,
) -> Result<[Vec<Key>; 4], Refusal> {
    let formulas = |split| sides.iter().flatten().filter(|side| usize::from(side.0) == split).count();
    let mut splits: [Vec<Key>; 4] = std::array::from_fn(|split| Vec::with_capacity(formulas(split)));
    for (stream, sides) in sides.iter().enumerate() {
        let mut sides = sides.iter();
        for part in parts {
            part.for_each(stream, watch, |item| {
                let keys = sides.next().and_then(|side| side.get_mut(&mut splits));
                if let (Some(keys), Some(&key)) = (keys, item.keys.get(level)) {
                    keys.push(key);
                }
                Ok(())
            })?;
        }
    }
    splits.iter_mut().for_each(|keys| keys.par_sort_unstable());
    Ok(splits)
}

impl Level {
    fn of(splits: &[Vec<Key>; 4]) -> Self {
        let keys = |name: &str| SPLITS.iter().zip(splits).find(|(split, _)| **split == name).map(|(_, k)| k);
        Self {
            distinct: splits.each_ref().map(|keys| keys.chunk_by(|a, b| a == b).count() as u64),
            overlap: PAIRS.map(|(a, b)| keys(a).zip(keys(b)).map_or(0.0, |(a, b)| share(a, b))),
        }
    }
}

/// The share of the keys of `b` that occur in `a`, which ascends.
fn share(a: &[Key], b: &[Key]) -> f64 {
    let common = b.par_iter().filter(|key| a.binary_search(key).is_ok()).count();
    if b.is_empty() { 0.0 } else { common as f64 / b.len() as f64 }
}
