//! Parts that were made elsewhere, found and judged before they are joined: whatever is missing, stands twice, is damaged
//! or belongs to something else is named, all of it at once.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::files::io;
use super::parts::{FOLDER, Found, Part};
use crate::error::{Kind, Refusal};

/// The files of the sources: a file is itself; of a folder those that end in `.part`, there or in its `parts/`.
fn files(sources: &[PathBuf]) -> Result<Vec<PathBuf>, Refusal> {
    let mut files = Vec::new();
    for source in sources {
        if source.is_file() {
            files.push(source.clone());
            continue;
        }
        let mut of_folder = Vec::new();
        for folder in [source.clone(), source.join(FOLDER)] {
            let entries = match std::fs::read_dir(&folder) {
                Ok(entries) => entries,
                Err(e) if e.kind() == std::io::ErrorKind::NotFound && folder != *source => continue,
                Err(e) => return Err(io(&folder, &e)),
            };
            for entry in entries {
                let path = entry.map_err(|e| io(&folder, &e))?.path();
                if path.extension().is_some_and(|end| end == "part") {
                    of_folder.push(path);
                }
            }
        }
        if of_folder.is_empty() {
            let message = format!("{}: no part (*.part) is there or in its {FOLDER}/", source.display());
            return Err(Refusal::new(Kind::NotFound, message));
        }
        files.append(&mut of_folder);
    }
    // One file that two sources have is one.
    let mut whole: Vec<(PathBuf, PathBuf)> =
        files.into_iter().map(|path| (path.canonicalize().unwrap_or_else(|_| path.clone()), path)).collect();
    whole.sort();
    whole.dedup_by(|a, b| a.0 == b.0);
    Ok(whole.into_iter().map(|(_, path)| path).collect())
}

/// The parts of all shards of a configuration, in their order.
pub(super) fn collect(sources: &[PathBuf], digest: &str) -> Result<Vec<Part>, Refusal> {
    let mut faults = Vec::new();
    // For each number of shards that is met, the files of each shard.
    let mut met: BTreeMap<u64, BTreeMap<u64, Vec<PathBuf>>> = BTreeMap::new();
    let mut kind = Kind::BadManifest;
    for path in files(sources)? {
        let name = |path: &Path| path.display().to_string();
        match Part::look(&path).map_err(|e| io(&path, &e))? {
            Found::Other => faults.push(format!("{} is no part", name(&path))),
            Found::Damaged(head) => {
                kind = Kind::DigestMismatch;
                let shard = format!("{} of {}", head.shard, head.shards);
                faults.push(format!("{} (shard {shard}) is damaged or cut short", name(&path)));
            }
            Found::Part(head) if head.config != digest => {
                faults.push(format!("{} belongs to another configuration", name(&path)));
            }
            Found::Part(head) => {
                met.entry(head.shards).or_default().entry(head.shard).or_default().push(path)
            }
        }
    }
    if met.len() > 1 {
        let counts: Vec<String> = met
            .iter()
            .filter_map(|(n, found)| {
                Some(format!("{} is of {n}", found.values().flatten().next()?.display()))
            })
            .collect();
        faults.push(format!("the parts are of different numbers of shards: {}", counts.join(", ")));
    }
    // The number of shards that most parts are of says what is missing.
    let best = met.into_iter().max_by_key(|(n, found)| (found.len(), std::cmp::Reverse(*n)));
    let (shards, found) = best.unwrap_or_default();
    for (shard, paths) in found.iter().filter(|(_, paths)| paths.len() > 1) {
        let paths: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
        faults.push(format!(
            "shard {shard} of {shards} is there {} times: {}",
            paths.len(),
            paths.join(", ")
        ));
    }
    if let Some(missing) = missing(shards, found.keys().copied()) {
        faults.push(missing);
    }
    if !faults.is_empty() {
        return Err(Refusal::new(kind, faults.join("; ")));
    }
    Ok(found.into_values().flatten().map(|path| Part { path }).collect())
}

/// The shards that are not there, as ranges.
fn missing(shards: u64, found: impl Iterator<Item = u64>) -> Option<String> {
    let mut ranges = Vec::new();
    let mut next = 0;
    for shard in found.chain([shards]) {
        match shard.checked_sub(next) {
            None | Some(0) => {}
            Some(1) => ranges.push(next.to_string()),
            Some(_) => ranges.push(format!("{next} to {}", shard - 1)),
        }
        next = shard + 1;
    }
    (!ranges.is_empty()).then(|| format!("of {shards} shards these are missing: {}", ranges.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::missing;

    #[test]
    fn what_is_missing_is_said_in_ranges() {
        let say = |shards, found: &[u64]| missing(shards, found.iter().copied());
        assert_eq!(say(3, &[0, 1, 2]), None);
        assert_eq!(say(5, &[1, 3]).unwrap(), "of 5 shards these are missing: 0, 2, 4");
        assert_eq!(say(9, &[4]).unwrap(), "of 9 shards these are missing: 0 to 3, 5 to 8");
        assert_eq!(say(0, &[]), None);
    }
}
