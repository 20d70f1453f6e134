//! The folder here: its files, their digests, its lock.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use serde::{Deserialize, Serialize};

use crate::error::{Kind, Refusal};
use crate::name;
use crate::options::Watch;

/// The refusal of what a file system says.
pub(crate) fn refusal(path: &Path) -> impl FnOnce(std::io::Error) -> Refusal {
    move |error| {
        let message = format!("{}: {error}", path.display());
        match error.kind() {
            std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => {
                Refusal::new(Kind::Full, message).help("make room; the same command goes on")
            }
            std::io::ErrorKind::NotFound => Refusal::new(Kind::NotFound, message),
            std::io::ErrorKind::PermissionDenied => Refusal::new(Kind::NoRights, message),
            _ => Refusal::new(Kind::Local, message),
        }
    }
}

/// The files below a folder by their names. Links to folders are not followed: they may lead in a circle.
pub(crate) fn files(folder: &Path) -> Result<BTreeMap<String, PathBuf>, Refusal> {
    let mut found = BTreeMap::new();
    let mut open = vec![folder.to_owned()];
    while let Some(at) = open.pop() {
        for entry in fs::read_dir(&at).map_err(refusal(&at))? {
            let entry = entry.map_err(refusal(&at))?;
            let path = entry.path();
            if entry.file_type().map_err(refusal(&path))?.is_dir() {
                open.push(path);
                continue;
            }
            let relative = path.strip_prefix(folder).unwrap_or(&path);
            if name::is_left_out(&relative.to_string_lossy()) || !path.is_file() {
                continue;
            }
            found.insert(name::of(relative)?, path);
        }
    }
    Ok(found)
}

/// What tells that a file is still the same, without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Print {
    pub(crate) size: u64,
    /// Nanoseconds since 1970.
    pub(crate) modified: u64,
}

/// What tells that a file is still the same.
pub(crate) fn print(path: &Path) -> Result<Print, Refusal> {
    let about = fs::metadata(path).map_err(refusal(path))?;
    let modified = about.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    let modified = modified.and_then(|since| u64::try_from(since.as_nanos()).ok()).unwrap_or(0);
    Ok(Print { size: about.len(), modified })
}

/// The digest of a file, in hexadecimal.
pub(crate) fn digest(path: &Path, watch: &Watch) -> Result<String, Refusal> {
    let mut file = File::open(path).map_err(refusal(path))?;
    let mut hasher = blake3::Hasher::new();
    let mut bytes = vec![0; 1 << 20];
    loop {
        watch.go_on()?;
        let n = file.read(&mut bytes).map_err(refusal(path))?;
        if n == 0 {
            return Ok(hasher.finalize().to_hex().to_string());
        }
        hasher.update(bytes.get(..n).unwrap_or_default());
    }
}

/// Bytes of a file.
pub(crate) fn read(path: &Path, from: u64, n: u64) -> Result<Vec<u8>, Refusal> {
    let mut file = File::open(path).map_err(refusal(path))?;
    file.seek(SeekFrom::Start(from)).map_err(refusal(path))?;
    let mut bytes = Vec::with_capacity(usize::try_from(n).unwrap_or(0));
    file.take(n).read_to_end(&mut bytes).map_err(refusal(path))?;
    if bytes.len() as u64 != n {
        return Err(changed(path));
    }
    Ok(bytes)
}

/// The refusal of a file that does not keep still.
pub(crate) fn changed(path: &Path) -> Refusal {
    let message = format!("{}: it changed while it was sent", path.display());
    Refusal::new(Kind::Changed, message).help("let its writer end; the same command sends it anew")
}

/// Makes the names in the folder of a path durable, where a system can.
pub(crate) fn sync_folder_of(path: &Path) {
    if let Some(folder) = path.parent().and_then(|folder| File::open(folder).ok()) {
        let _ = folder.sync_all();
    }
}

/// The right to write into a folder, or to read it while nobody writes; it ends with the value.
pub(crate) struct Lock {
    _file: Option<File>,
}

/// Whether others may hold the lock too.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sharing {
    /// Nobody else.
    Alone,
    /// Others that read.
    Together,
}

/// Takes the lock of a folder, the file `.lock` in it.
pub(crate) fn lock(folder: &Path, sharing: Sharing) -> Result<Lock, Refusal> {
    let path = folder.join(".lock");
    let file = match File::options().create(true).append(true).open(&path) {
        Ok(file) => file,
        // A folder that is only read may be one that cannot be written.
        Err(_) if sharing == Sharing::Together => return Ok(Lock { _file: None }),
        Err(error) => return Err(refusal(&path)(error)),
    };
    let taken = match sharing {
        Sharing::Alone => file.try_lock(),
        Sharing::Together => file.try_lock_shared(),
    };
    match taken {
        Ok(()) => Ok(Lock { _file: Some(file) }),
        Err(fs::TryLockError::WouldBlock) => {
            let message = format!("{}: another process is at work on it", folder.display());
            Err(Refusal::new(Kind::Busy, message).help("wait until it ends"))
        }
        Err(fs::TryLockError::Error(error)) => Err(refusal(&path)(error)),
    }
}
