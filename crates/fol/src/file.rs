//! Files: written whole or not at all, and the refusals of the file system.

use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::Path;

use crate::error::{Kind, Refusal};

/// Writes a file under a temporary name in the same folder, syncs it, and renames it: a reader sees the old
/// file or the new one, never a part.
///
/// # Errors
/// `NotFound` if the folder is missing, else `Io`.
pub fn write(path: &Path, fill: impl FnOnce(&mut dyn Write) -> std::io::Result<()>) -> Result<(), Refusal> {
    let attempt = || {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut builder = tempfile::Builder::new();
        // The permissions of a newly created file, less what the umask takes; not the 0600 of a secret.
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
        let mut temporary = builder.tempfile_in(folder)?;
        let mut buffered = std::io::BufWriter::new(temporary.as_file_mut());
        fill(&mut buffered)?;
        buffered.flush()?;
        drop(buffered);
        temporary.as_file().sync_all()?;
        temporary.persist(path)?;
        Ok(())
    };
    attempt().map_err(|error: std::io::Error| refusal(path, &error))
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
