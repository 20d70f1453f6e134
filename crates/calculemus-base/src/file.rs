//! Files that a kill cannot tear: a temporary name, a sync, a rename, a sync of the folder.

use std::io::Write;
use std::path::Path;

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

/// The ending of temporary names: what a kill leaves behind can be known by it.
const ENDING: &str = ".tmp";

/// Writes a file so that at every moment the old content or the new one stands there whole.
///
/// # Errors
/// What the file system says; the old file is whole then.
pub fn write(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    fill(path, |out| out.write_all(bytes))
}

/// [`write()`] for content that is made while it is written. If `fill` fails, the old file stays.
///
/// # Errors
/// What `fill` refuses, and what the file system says.
pub fn fill<T, E: From<std::io::Error>>(
    path: &Path,
    fill: impl FnOnce(&mut dyn Write) -> Result<T, E>,
) -> Result<T, E> {
    let mut temporary = temporary_beside(path)?;
    let mut buffered = std::io::BufWriter::new(temporary.as_file_mut());
    let filled = fill(&mut buffered)?;
    buffered.flush()?;
    drop(buffered);
    temporary.as_file().sync_all()?;
    temporary.persist(path).map_err(|error| error.error)?;
    sync_folder(path)?;
    Ok(filled)
}

/// [`write()`] with a hook that can fail at each [`Stage`], and then leaves behind what a kill would leave.
///
/// # Errors
/// What the hook says, and what the file system says.
pub fn write_in_stages(
    path: &Path,
    bytes: &[u8],
    hook: &mut dyn FnMut(Stage) -> std::io::Result<()>,
) -> std::io::Result<()> {
    hook(Stage::BeforeWrite)?;
    let mut temporary = temporary_beside(path)?;
    temporary.disable_cleanup(true);
    let (first, second) = bytes.split_at(bytes.len() / 2);
    temporary.write_all(first)?;
    hook(Stage::HalfWritten)?;
    temporary.write_all(second)?;
    hook(Stage::BeforeSync)?;
    temporary.as_file().sync_all()?;
    hook(Stage::BeforeRename)?;
    temporary.persist(path).map_err(|error| error.error)?;
    hook(Stage::AfterRename)?;
    sync_folder(path)
}

/// Removes temporary files that a kill left in a folder.
///
/// # Errors
/// What the file system says.
pub fn remove_leftovers(folder: &Path) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_file() && path.to_string_lossy().ends_with(ENDING) {
            std::fs::remove_file(&path)?;
        }
    }
    Ok(())
}

fn temporary_beside(path: &Path) -> std::io::Result<tempfile::NamedTempFile> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut builder = tempfile::Builder::new();
    builder.suffix(ENDING);
    // The permissions of a newly created file, less what the umask takes; not the 0600 of a secret.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    builder.tempfile_in(folder)
}

/// Makes a rename in the folder of `path` durable.
fn sync_folder(path: &Path) -> std::io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // Only Unix opens folders.
    if cfg!(unix) { std::fs::File::open(folder)?.sync_all() } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_stage_fails_the_file_is_whole() {
        let stages = [
            Stage::BeforeWrite,
            Stage::HalfWritten,
            Stage::BeforeSync,
            Stage::BeforeRename,
            Stage::AfterRename,
        ];
        for failing in stages {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("a");
            write(&path, b"old").unwrap();
            let mut hook = |stage| if stage == failing { Err(std::io::Error::other("cut")) } else { Ok(()) };
            assert!(write_in_stages(&path, b"new and longer", &mut hook).is_err());
            let now = std::fs::read(&path).unwrap();
            let renamed = failing == Stage::AfterRename;
            assert_eq!(now, if renamed { b"new and longer".as_slice() } else { b"old" }, "{failing:?}");
            let left = std::fs::read_dir(&folder).unwrap().count();
            assert_eq!(left, if renamed || failing == Stage::BeforeWrite { 1 } else { 2 }, "{failing:?}");
            remove_leftovers(folder.path()).unwrap();
            assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1, "{failing:?}");
        }
    }

    #[test]
    fn a_refused_or_impossible_file_leaves_the_old_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        write(&path, b"old").unwrap();
        let refused = fill(&path, |out| -> std::io::Result<()> {
            out.write_all(b"new")?;
            Err(std::io::Error::other("refused"))
        });
        assert_eq!(refused.unwrap_err().to_string(), "refused");
        assert_eq!(std::fs::read(&path).unwrap(), b"old");
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1);
        let nowhere = write(&folder.path().join("b/c"), b"x").unwrap_err();
        assert_eq!(nowhere.kind(), std::io::ErrorKind::NotFound);
    }

    #[cfg(unix)]
    #[test]
    fn a_written_file_is_no_secret() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let (ours, plain) = (folder.path().join("a"), folder.path().join("b"));
        write(&ours, b"x").unwrap();
        std::fs::write(&plain, b"x").unwrap();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode();
        assert_eq!(mode(&ours), mode(&plain));
    }
}
