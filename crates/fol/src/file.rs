//! Files: written whole or not at all, and the refusals of the file system.

use std::fs::File;
use std::io::{BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::error::{Kind, Refusal};

/// Writes a file under a temporary name in the same folder, syncs it, and renames it: a reader sees the old
/// file or the new one, never a part. If `fill` refuses, the old file stays.
///
/// # Errors
/// `NotFound` if the folder is missing, `Io`, and what `fill` refuses.
pub fn write<T>(path: &Path, fill: impl FnOnce(&mut dyn Write) -> Result<T, Refusal>) -> Result<T, Refusal> {
    let mut whole = Whole::create(path)?;
    let filled = fill(&mut whole.writer)?;
    whole.finish()?;
    Ok(filled)
}

/// A file under a temporary name until it is whole.
pub(crate) struct Whole {
    pub(crate) path: PathBuf,
    pub(crate) writer: BufWriter<NamedTempFile>,
}

impl Whole {
    /// Begins a file in a folder that is there.
    pub(crate) fn create(path: &Path) -> Result<Self, Refusal> {
        let folder = folder_of(path);
        let mut builder = tempfile::Builder::new();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        // A run that was killed leaves files that one can tell.
        let builder = builder.prefix(&*name).suffix(TEMPORARY);
        // The permissions of a newly created file, less what the umask takes; not the 0600 of a secret.
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
        let file = builder.tempfile_in(folder).map_err(|error| refusal(path, &error))?;
        Ok(Self { path: path.to_owned(), writer: BufWriter::with_capacity(1 << 18, file) })
    }

    /// Syncs the file, gives it its name, and syncs the folder where the system can.
    pub(crate) fn finish(self) -> Result<(), Refusal> {
        let Self { path, writer } = self;
        let failed = |error: std::io::Error| refusal(&path, &error);
        let temporary = writer.into_inner().map_err(|error| failed(error.into_error()))?;
        temporary.as_file().sync_all().map_err(failed)?;
        temporary.persist(&path).map_err(|error| failed(error.error))?;
        if let Ok(folder) = File::open(folder_of(&path)) {
            // Some systems cannot sync folders; the file itself is synced.
            let _ = folder.sync_all();
        }
        Ok(())
    }
}

/// How the names of unfinished files end.
pub(crate) const TEMPORARY: &str = ".tmp";

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Opens a file for reading.
///
/// # Errors
/// `NotFound` or `Io`.
pub fn open(path: &Path) -> Result<File, Refusal> {
    File::open(path).map_err(|error| refusal(path, &error))
}

/// What the file system said about a path.
pub fn refusal(path: &Path, error: &std::io::Error) -> Refusal {
    let kind = if error.kind() == ErrorKind::NotFound { Kind::NotFound } else { Kind::Io };
    Refusal::new(kind, format!("{}: {error}", path.display()))
}

impl From<std::io::Error> for Refusal {
    fn from(error: std::io::Error) -> Self {
        Self::new(Kind::Io, error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_or_impossible_file_leaves_the_old_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        write(&path, |out| Ok(out.write_all(b"old")?)).unwrap();
        let refused = write(&path, |out| -> Result<(), Refusal> {
            out.write_all(b"new")?;
            Err(Refusal::new(Kind::Truncated, ""))
        });
        assert_eq!(refused.unwrap_err().kind, Kind::Truncated);
        assert_eq!(std::fs::read(&path).unwrap(), b"old");
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1);
        let nowhere = folder.path().join("b/c");
        assert_eq!(write(&nowhere, |_| Ok(())).unwrap_err().kind, Kind::NotFound);
        assert_eq!(open(&nowhere).unwrap_err().kind, Kind::NotFound);
    }
}
