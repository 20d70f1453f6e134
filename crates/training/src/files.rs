//! Files that a kill cannot tear: a temporary name, a sync, a rename, a sync of the folder.

use std::io::Write;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// The points at which writing can be cut short; a test fails at each of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names of the points")]
pub enum Stage {
    BeforeWrite,
    HalfWritten,
    BeforeSync,
    BeforeRename,
    AfterRename,
}

/// The temporary name beside a file.
pub fn temporary(path: &Path) -> PathBuf {
    let mut name = path.file_name().map(ToOwned::to_owned).unwrap_or_default();
    name.push(".tmp");
    path.with_file_name(name)
}

/// Writes a file so that at every moment the old content or the new one stands there whole.
pub fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    write_with(path, bytes, &mut |_| Ok(()))
}

/// [`write()`] with a hook that can fail at each [`Stage`].
pub fn write_with(
    path: &Path,
    bytes: &[u8],
    hook: &mut dyn FnMut(Stage) -> std::io::Result<()>,
) -> Result<()> {
    let temporary = temporary(path);
    let mut attempt = || -> std::io::Result<()> {
        hook(Stage::BeforeWrite)?;
        let mut file = std::fs::File::create(&temporary)?;
        let (first, second) = bytes.split_at(bytes.len() / 2);
        file.write_all(first)?;
        hook(Stage::HalfWritten)?;
        file.write_all(second)?;
        hook(Stage::BeforeSync)?;
        file.sync_all()?;
        hook(Stage::BeforeRename)?;
        std::fs::rename(&temporary, path)?;
        hook(Stage::AfterRename)?;
        sync_folder(path)
    };
    attempt().map_err(Error::io(path))
}

/// Makes a rename in the folder of `path` durable.
fn sync_folder(path: &Path) -> std::io::Result<()> {
    match path.parent().filter(|p| !p.as_os_str().is_empty()) {
        Some(folder) => std::fs::File::open(folder)?.sync_all(),
        None => Ok(()),
    }
}

/// The right to write in a folder. It ends with this value, and with the process however that ends: the operating
/// system holds the lock for an open file, and the file `.lock` itself says nothing.
#[derive(Debug)]
pub struct Lock {
    _file: std::fs::File,
}

/// Who else may hold a lock at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sharing {
    /// Nobody.
    Alone,
    /// Others who hold it [`Together`](Self::Together).
    Together,
}

/// Takes the right to write in an existing folder; refused while another holds it.
pub fn lock(folder: &Path, sharing: Sharing) -> Result<Lock> {
    lock_file(&folder.join(".lock"), sharing)
        .map_err(|e| if let Error::Busy { .. } = e { Error::Busy { path: folder.to_owned() } } else { e })
}

/// Takes a lock that is a file of its own; refused while another holds it.
pub fn lock_file(path: &Path, sharing: Sharing) -> Result<Lock> {
    let opened = std::fs::File::options().create(true).append(true).open(path);
    let file = opened.map_err(Error::io(path))?;
    let taken = match sharing {
        Sharing::Alone => file.try_lock(),
        Sharing::Together => file.try_lock_shared(),
    };
    match taken {
        Ok(()) => Ok(Lock { _file: file }),
        Err(std::fs::TryLockError::WouldBlock) => Err(Error::Busy { path: path.to_owned() }),
        Err(std::fs::TryLockError::Error(e)) => Err(Error::io(path)(e)),
    }
}

/// Removes temporary files that a kill left in a folder.
pub fn remove_leftovers(folder: &Path) -> Result<()> {
    for entry in std::fs::read_dir(folder).map_err(Error::io(folder))? {
        let path = entry.map_err(Error::io(folder))?.path();
        if path.extension().is_some_and(|e| e == "tmp") {
            std::fs::remove_file(&path).map_err(Error::io(&path))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_stage_fails_the_file_is_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        write(&path, b"old content").unwrap();
        let stages = [
            Stage::BeforeWrite,
            Stage::HalfWritten,
            Stage::BeforeSync,
            Stage::BeforeRename,
            Stage::AfterRename,
        ];
        for stage in stages {
            write(&path, b"old content").unwrap();
            let failed = write_with(&path, b"the new one", &mut |s| {
                if s == stage { Err(std::io::Error::other("cut")) } else { Ok(()) }
            });
            assert!(failed.is_err());
            let found = std::fs::read(&path).unwrap();
            let want: &[u8] = if stage == Stage::AfterRename { b"the new one" } else { b"old content" };
            assert_eq!(found, want, "{stage:?}");
        }
        remove_leftovers(folder.path()).unwrap();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_lock_is_held_once_and_ends_with_its_value() {
        let folder = tempfile::tempdir().unwrap();
        let held = lock(folder.path(), Sharing::Alone).unwrap();
        for sharing in [Sharing::Alone, Sharing::Together] {
            let refused = lock(folder.path(), sharing).unwrap_err();
            assert!(matches!(&refused, Error::Busy { path } if path == folder.path()), "{refused}");
        }
        drop(held);
        let together = [(); 2].map(|()| lock(folder.path(), Sharing::Together).unwrap());
        assert!(lock(folder.path(), Sharing::Alone).is_err());
        drop(together);
        lock(folder.path(), Sharing::Alone).unwrap();
    }

    #[test]
    fn a_full_disk_leaves_the_old_file() {
        // /dev/full refuses every write; where it is missing there is nothing to test.
        if Path::new("/dev/full").exists() {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("f");
            write(&path, b"old").unwrap();
            std::os::unix::fs::symlink("/dev/full", temporary(&path)).unwrap();
            assert!(write(&path, b"new").is_err());
            assert_eq!(std::fs::read(&path).unwrap(), b"old");
        }
    }
}
