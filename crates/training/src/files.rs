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
