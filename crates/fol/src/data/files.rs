//! Files that are there whole or not at all.

use std::fs::{self, File};
use std::io::{BufReader, Read, Write};
use std::path::{Path, PathBuf};

use crate::error::Refusal;
pub(super) use crate::file::refusal as io;
use crate::file::{self, Whole};

/// A file that is there whole or not at all, with the digest of what is written.
pub(super) struct WholeFile {
    path: PathBuf,
    file: Whole,
    hasher: blake3::Hasher,
}

impl WholeFile {
    /// Begins a file, and its folder if need be.
    pub(super) fn create(path: &Path) -> Result<Self, Refusal> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(|e| io(folder, &e))?;
        }
        Ok(Self { path: path.to_owned(), file: Whole::create(path)?, hasher: blake3::Hasher::new() })
    }

    /// Appends bytes.
    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<(), Refusal> {
        self.hasher.update(bytes);
        self.file.write_all(bytes).map_err(|e| io(&self.path, &e))
    }

    /// The digest of what is written so far.
    pub(super) fn digest(&self) -> blake3::Hash {
        self.hasher.finalize()
    }

    /// Syncs, gives the file its name, and answers with the digest in hexadecimal.
    pub(super) fn finish(self) -> Result<String, Refusal> {
        self.file.finish()?;
        Ok(self.hasher.finalize().to_hex().to_string())
    }
}

/// Opens a file for reading.
pub(super) fn open(path: &Path) -> Result<BufReader<File>, Refusal> {
    Ok(BufReader::with_capacity(1 << 18, file::open(path)?))
}

/// Size and digest of a file.
pub(super) fn fingerprint(path: &Path) -> Result<(u64, String), Refusal> {
    let mut reader = open(path)?;
    let mut hasher = blake3::Hasher::new();
    let mut buffer = vec![0; 1 << 18];
    let mut size = 0;
    loop {
        let read = reader.read(&mut buffer).map_err(|e| io(path, &e))?;
        if read == 0 {
            return Ok((size, hasher.finalize().to_hex().to_string()));
        }
        size += read as u64;
        hasher.update(buffer.get(..read).unwrap_or(&[]));
    }
}

/// Removes a file if it is there.
pub(super) fn remove(path: &Path) -> Result<(), Refusal> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(io(path, &error)),
        _ => Ok(()),
    }
}

/// Removes a folder with all that is in it, if it is there.
pub(super) fn remove_folder(path: &Path) -> Result<(), Refusal> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(io(path, &error)),
        _ => Ok(()),
    }
}
