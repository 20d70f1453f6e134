//! Files that a kill cannot tear, and folders that one process has alone.

use std::path::Path;

use calculemus_base::file;

use crate::error::{Refusal, Result};

/// Writes a file so that at every moment the old content or the new one stands there whole.
pub fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    file::write(path, bytes).map_err(Refusal::io(path))
}

/// The right to write in a folder. It ends with this value, and with the process however that ends: the operating
/// system holds the lock for an open file, and the file `.lock` itself says nothing.
#[derive(Debug)]
pub struct Lock {
    file: std::fs::File,
}

impl Drop for Lock {
    /// A process that is being started holds the same open file for a moment: closing it here would not end the lock.
    fn drop(&mut self) {
        let _ = self.file.unlock();
    }
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
        .map_err(|e| if let Refusal::Busy { .. } = e { Refusal::Busy { path: folder.to_owned() } } else { e })
}

/// Takes a lock that is a file of its own; refused while another holds it.
pub fn lock_file(path: &Path, sharing: Sharing) -> Result<Lock> {
    let opened = std::fs::File::options().create(true).append(true).open(path);
    let file = opened.map_err(Refusal::io(path))?;
    let taken = match sharing {
        Sharing::Alone => file.try_lock(),
        Sharing::Together => file.try_lock_shared(),
    };
    match taken {
        Ok(()) => Ok(Lock { file }),
        Err(std::fs::TryLockError::WouldBlock) => Err(Refusal::Busy { path: path.to_owned() }),
        Err(std::fs::TryLockError::Error(e)) => Err(Refusal::io(path)(e)),
    }
}

/// Removes temporary files that a kill left in a folder.
pub fn remove_leftovers(folder: &Path) -> Result<()> {
    file::remove_leftovers(folder).map_err(Refusal::io(folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_held_once_and_ends_with_its_value() {
        let folder = tempfile::tempdir().unwrap();
        let held = lock(folder.path(), Sharing::Alone).unwrap();
        for sharing in [Sharing::Alone, Sharing::Together] {
            let refused = lock(folder.path(), sharing).unwrap_err();
            assert!(matches!(&refused, Refusal::Busy { path } if path == folder.path()), "{refused}");
        }
        drop(held);
        let together = [(); 2].map(|()| lock(folder.path(), Sharing::Together).unwrap());
        assert!(lock(folder.path(), Sharing::Alone).is_err());
        drop(together);
        lock(folder.path(), Sharing::Alone).unwrap();
    }
}
