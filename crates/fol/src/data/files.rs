//! Files that are there whole or not at all.

use std::fs::{self, File};
use std::io::{BufReader, Write};
use std::path::Path;

use calculemus_base::file::Whole;

use crate::error::Refusal;
use crate::file;
pub(super) use crate::file::refusal as io;

/// A file that is there whole or not at all, with the digest of what is written.
pub(super) struct WholeFile {
    file: Whole,
    hasher: blake3::Hasher,
}

impl WholeFile {
    /// Begins a file, and its folder if need be.
    pub(super) fn create(path: &Path) -> Result<Self, Refusal> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(|e| io(folder, &e))?;
        }
        Ok(Self { file: Whole::create(path).map_err(|e| io(path, &e))?, hasher: blake3::Hasher::new() })
    }

    /// Appends bytes.
    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<(), Refusal> {
        self.hasher.update(bytes);
        self.file.write_all(bytes).map_err(|e| io(self.file.path(), &e))
    }

    /// The digest of what is written so far.
    pub(super) fn digest(&self) -> blake3::Hash {
        self.hasher.finalize()
    }

    /// Syncs, gives the file its name, and answers with the digest in hexadecimal.
    pub(super) fn finish(self) -> Result<String, Refusal> {
        let path = self.file.path().to_owned();
        self.file.finish().map_err(|e| io(&path, &e))?;
        Ok(self.hasher.finalize().to_hex().to_string())
    }
}

/// Opens a file for reading.
pub(super) fn open(path: &Path) -> Result<BufReader<File>, Refusal> {
    Ok(BufReader::with_capacity(1 << 18, file::open(path)?))
}

/// Size and digest of a file.
pub(super) fn fingerprint(path: &Path) -> Result<(u64, String), Refusal> {
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(open(path)?).map_err(|e| io(path, &e))?;
    Ok((hasher.count(), hasher.finalize().to_hex().to_string()))
}

/// Removes a file if it is there.
pub(super) fn remove(path: &Path) -> Result<(), Refusal> {
    gone(path, fs::remove_file(path))
}

/// Removes a folder with all that is in it, if it is there.
pub(super) fn remove_folder(path: &Path) -> Result<(), Refusal> {
    gone(path, fs::remove_dir_all(path))
}

fn gone(path: &Path, removed: std::io::Result<()>) -> Result<(), Refusal> {
    match removed {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(io(path, &error)),
        _ => Ok(()),
    }
}
