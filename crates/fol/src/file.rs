//! Files: written whole or not at all, and the refusals of the file system.

use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::Path;

use crate::error::{Kind, Refusal};

/// Writes a file under a temporary name in the same folder, syncs it, and renames it: a reader sees the old
/// file or the new one, never a part. If `fill` refuses, the old file stays.
///
/// # Errors
/// `NotFound` if the folder is missing, `Io`, and what `fill` refuses.
pub fn write<T>(path: &Path, fill: impl FnOnce(&mut dyn Write) -> Result<T, Refusal>) -> Result<T, Refusal> {
    let failed = |error: std::io::Error| refusal(path, &error);
    let mut temporary = temporary_beside(path).map_err(failed)?;
    let mut buffered = std::io::BufWriter::new(temporary.as_file_mut());
    let filled = fill(&mut buffered)?;
    buffered.flush().map_err(failed)?;
    drop(buffered);
    temporary.as_file().sync_all().map_err(failed)?;
    temporary.persist(path).map_err(|error| failed(error.error))?;
    Ok(filled)
}

fn temporary_beside(path: &Path) -> std::io::Result<tempfile::NamedTempFile> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut builder = tempfile::Builder::new();
    // The permissions of a newly created file, less what the umask takes; not the 0600 of a secret.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    builder.tempfile_in(folder)
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
