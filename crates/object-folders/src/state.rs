//! What a killed process leaves for the next: a small file beside the folder, whole or not there. One that is damaged is none,
//! and what it knew is done again.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::error::Refusal;
use crate::local::{self, Print};

/// A file that was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Known {
    pub(crate) print: Print,
    pub(crate) digest: String,
}

/// An upload that is not complete.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Upload {
    pub(crate) id: String,
    pub(crate) file: Known,
    pub(crate) part: u64,
    /// What the store calls the parts that it has.
    pub(crate) parts: BTreeMap<usize, String>,
}

/// Of a folder that is put.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Putting {
    pub(crate) digests: BTreeMap<String, Known>,
    pub(crate) uploads: BTreeMap<String, Upload>,
}

/// Of a folder that was fetched: the versions of objects whose digests nobody knows.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Fetched {
    pub(crate) versions: BTreeMap<String, (Print, String)>,
}

/// The file.
pub(crate) struct State<T> {
    path: PathBuf,
    pub(crate) of: T,
}

impl<T: Default + PartialEq + Serialize + DeserializeOwned> State<T> {
    /// That of a folder; `what` tells apart what is done with it.
    pub(crate) fn open(folder: &Path, verb: &str, what: &[&str]) -> Result<Self, Refusal> {
        let folder = folder.canonicalize().map_err(local::refusal(folder))?;
        let key = blake3::hash(what.join("\n").as_bytes()).to_hex();
        let name = folder.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        let name = format!(".{name}.{verb}-{}.json", key.get(..16).unwrap_or_default());
        let path = folder.parent().unwrap_or(&folder).join(name);
        let of = std::fs::read_to_string(&path).ok().and_then(|text| read(&text)).unwrap_or_default();
        Ok(Self { path, of })
    }

    /// Writes it.
    pub(crate) fn keep(&self) -> Result<(), Refusal> {
        let text = serde_json::to_string(&self.of).map_err(|e| local::refusal(&self.path)(e.into()))?;
        let text = format!("{}\n{text}", blake3::hash(text.as_bytes()).to_hex());
        calculemus_base::file::write(&self.path, text.as_bytes()).map_err(local::refusal(&self.path))
    }

    /// Removes it: nothing is left to be done.
    pub(crate) fn forget(&self) {
        // One that stays is read next time, and says nothing wrong.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// The content, if the digest before it is its own.
fn read<T: DeserializeOwned>(text: &str) -> Option<T> {
    let (digest, text) = text.split_once('\n')?;
    let found = blake3::hash(text.as_bytes()).to_hex();
    (digest == found.as_str()).then(|| serde_json::from_str(text).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_changed_byte_makes_it_none() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("a");
        std::fs::create_dir(&folder).unwrap();
        let mut state = State::<Putting>::open(&folder, "put", &["s3://b"]).unwrap();
        let print = Print { size: 3, modified: 4 };
        state.of.digests.insert("x".to_owned(), Known { print, digest: "d".to_owned() });
        state.keep().unwrap();
        let again = State::<Putting>::open(&folder, "put", &["s3://b"]).unwrap();
        assert_eq!(again.of, state.of);
        assert_eq!(State::<Putting>::open(&folder, "put", &["s3://c"]).unwrap().of, Putting::default());
        let bytes = std::fs::read(&state.path).unwrap();
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            std::fs::write(&state.path, &damaged).unwrap();
            let read = State::<Putting>::open(&folder, "put", &["s3://b"]).unwrap();
            assert_eq!(read.of, Putting::default(), "byte {at}");
            std::fs::write(&state.path, &bytes[..at]).unwrap();
            let read = State::<Putting>::open(&folder, "put", &["s3://b"]).unwrap();
            assert_eq!(read.of, Putting::default(), "cut at {at}");
        }
    }
}
