//! Files: written whole or not at all, and the refusals of the file system.

use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::Path;

use calculemus_base::file::Whole;

use crate::error::{Kind, Refusal};

/// Writes a file under a temporary name in the same folder, syncs it, and renames it: a reader sees the old
/// file or the new one, never a part. If `fill` refuses, the old file stays.
///
/// # Errors
/// `NotFound` if the folder is missing, `Io`, and what `fill` refuses.
pub fn write<T>(path: &Path, fill: impl FnOnce(&mut dyn Write) -> Result<T, Refusal>) -> Result<T, Refusal> {
    let failed = |error: std::io::Error| refusal(path, &error);
    let mut whole = Whole::create(path).map_err(failed)?;
    let filled = fill(&mut whole)?;
    whole.finish().map_err(failed)?;
    Ok(filled)
}

/// How the names of unfinished files end.
pub(crate) use calculemus_base::file::TEMPORARY;

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
