//! Files that a kill cannot tear: a temporary name, a sync, a rename, a sync of the folder.
//!
//! A link leads to the file that is written, and stays. What is no file (a device, a pipe) is written to as it stands: a rename would
//! put a file into its place.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

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
pub const TEMPORARY: &str = ".tmp";

/// A file under a temporary name until it is whole. Dropped before that, it leaves nothing.
#[derive(Debug)]
pub struct Whole {
    path: PathBuf,
    writer: BufWriter<Place>,
}

/// Where the bytes go.
#[derive(Debug)]
enum Place {
    Temporary(NamedTempFile),
    /// A device or a pipe.
    There(File),
}

impl Write for Place {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        match self {
            Self::Temporary(file) => file.write(bytes),
            Self::There(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        match self {
            Self::Temporary(file) => file.flush(),
            Self::There(file) => file.flush(),
        }
    }
}

impl Whole {
    /// Begins a file in a folder that is there.
    ///
    /// # Errors
    /// What the file system says.
    pub fn create(path: &Path) -> std::io::Result<Self> {
        // The system is asked, and no link read: that of an open pipe, as behind `/dev/stdout`, names no path.
        let is_special = std::fs::metadata(path).is_ok_and(|about| !about.is_file() && !about.is_dir());
        if is_special {
            let there = Place::There(File::options().write(true).open(path)?);
            return Ok(Self { path: path.to_owned(), writer: BufWriter::with_capacity(1 << 18, there) });
        }
        let path = &followed(path)?;
        let mut builder = tempfile::Builder::new();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let builder = builder.prefix(&*name).suffix(TEMPORARY);
        // The permissions of a newly created file, less what the umask takes; not the 0600 of a secret.
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
        let temporary = builder.tempfile_in(folder_of(path)).map_err(|error| {
            // What the system said, without the temporary name that it was said of: nobody has named it.
            let said = error.to_string();
            std::io::Error::new(error.kind(), said.split(" at path ").next().unwrap_or(&said))
        })?;
        // A file that is written anew is for those whom the old one was for.
        #[cfg(unix)]
        if let Ok(old) = std::fs::metadata(path) {
            temporary.as_file().set_permissions(old.permissions())?;
        }
        let place = Place::Temporary(temporary);
        Ok(Self { path: path.clone(), writer: BufWriter::with_capacity(1 << 18, place) })
    }

    /// The name that it will have.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file as it stands under its temporary name.
    pub fn file(&self) -> &File {
        match self.writer.get_ref() {
            Place::Temporary(file) => file.as_file(),
            Place::There(file) => file,
        }
    }

    /// Syncs the file, gives it its name, and syncs the folder.
    ///
    /// # Errors
    /// What the file system says; an old file of the name is whole then.
    pub fn finish(self) -> std::io::Result<()> {
        let place = self.writer.into_inner().map_err(std::io::IntoInnerError::into_error)?;
        let Place::Temporary(temporary) = place else { return Ok(()) };
        temporary.as_file().sync_all()?;
        temporary.persist(&self.path).map_err(|error| error.error)?;
        sync_folder(&self.path);
        Ok(())
    }
}

impl Write for Whole {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.writer.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.writer.flush()
    }
}

/// Writes a file so that at every moment the old content or the new one stands there whole.
///
/// # Errors
/// What the file system says; the old file is whole then.
pub fn write(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut whole = Whole::create(path)?;
    whole.write_all(bytes)?;
    whole.finish()
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
    let mut whole = Whole::create(path)?;
    if let Place::Temporary(file) = whole.writer.get_mut() {
        file.disable_cleanup(true);
    }
    let (first, second) = bytes.split_at(bytes.len() / 2);
    whole.write_all(first)?;
    whole.flush()?;
    hook(Stage::HalfWritten)?;
    whole.write_all(second)?;
    whole.flush()?;
    hook(Stage::BeforeSync)?;
    whole.file().sync_all()?;
    hook(Stage::BeforeRename)?;
    whole.finish()?;
    hook(Stage::AfterRename)
}

/// Removes temporary files that a kill left in a folder.
///
/// # Errors
/// What the file system says.
pub fn remove_leftovers(folder: &Path) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_file() && path.to_string_lossy().ends_with(TEMPORARY) {
            std::fs::remove_file(&path)?;
        }
    }
    Ok(())
}

/// A link leads on through so many others at most, as for the system.
const LINKS: usize = 40;

/// Where a path leads that may be a link.
fn followed(path: &Path) -> std::io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..LINKS {
        if !std::fs::symlink_metadata(&path).is_ok_and(|about| about.is_symlink()) {
            return Ok(path);
        }
        let target = std::fs::read_link(&path)?;
        path = folder_of(&path).join(target);
    }
    Err(std::io::Error::other("too many links"))
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Makes a rename in the folder of `path` durable. Some systems cannot sync folders; the file itself is synced.
fn sync_folder(path: &Path) {
    if let Ok(folder) = File::open(folder_of(path)) {
        let _ = folder.sync_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn a_file_stays_for_those_whom_it_was_for() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secret");
        let mode = || std::fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        for wanted in [0o600, 0o640, 0o444] {
            write(&path, b"one").unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(wanted)).unwrap();
            write(&path, b"two").unwrap();
            assert_eq!((mode(), std::fs::read(&path).unwrap()), (wanted, b"two".to_vec()));
        }
    }

    #[test]
    fn what_is_refused_names_no_temporary_file() {
        let folder = tempfile::tempdir().unwrap();
        let refused = write(&folder.path().join("none").join("a"), b"x").unwrap_err();
        assert_eq!(refused.kind(), std::io::ErrorKind::NotFound);
        assert_eq!(refused.to_string(), std::fs::read(folder.path().join("none")).unwrap_err().to_string());
    }

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
        let mut given_up = Whole::create(&path).unwrap();
        given_up.write_all(b"new").unwrap();
        drop(given_up);
        assert_eq!(std::fs::read(&path).unwrap(), b"old");
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1);
        let nowhere = write(&folder.path().join("b/c"), b"x").unwrap_err();
        assert_eq!(nowhere.kind(), std::io::ErrorKind::NotFound);
    }

    #[cfg(unix)]
    #[test]
    fn a_link_stays_and_leads_to_what_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir(at("inner")).unwrap();
        std::os::unix::fs::symlink("inner/a", at("link")).unwrap();
        std::os::unix::fs::symlink("link", at("second")).unwrap();
        // It leads nowhere yet.
        for text in ["one", "two"] {
            write(&at("second"), text.as_bytes()).unwrap();
            assert!(at("link").is_symlink() && at("second").is_symlink());
            assert_eq!(std::fs::read_to_string(at("inner/a")).unwrap(), text);
            assert_eq!(std::fs::read_dir(at("inner")).unwrap().count(), 1);
        }
        std::os::unix::fs::symlink("round", at("round")).unwrap();
        assert!(write(&at("round"), b"x").is_err());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_device_and_a_pipe_are_written_to_and_stay() {
        use std::os::unix::fs::FileTypeExt;
        let full = write(Path::new("/dev/full"), &[0; 1 << 20]).unwrap_err();
        assert_eq!(full.kind(), std::io::ErrorKind::StorageFull);
        write(Path::new("/dev/null"), b"x").unwrap();
        for device in ["/dev/full", "/dev/null"] {
            assert!(std::fs::metadata(device).unwrap().file_type().is_char_device(), "{device}");
        }
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let reader = std::thread::spawn({
            let pipe = pipe.clone();
            move || std::fs::read(pipe).unwrap()
        });
        write(&pipe, b"through").unwrap();
        assert_eq!(reader.join().unwrap(), b"through");
        assert!(std::fs::metadata(&pipe).unwrap().file_type().is_fifo());
        let (mut reader, writer) = std::io::pipe().unwrap();
        let open = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&writer));
        write(Path::new(&open), b"through").unwrap();
        drop(writer);
        let mut found = Vec::new();
        std::io::Read::read_to_end(&mut reader, &mut found).unwrap();
        assert_eq!(found, b"through");
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
