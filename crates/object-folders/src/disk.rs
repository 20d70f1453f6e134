//! Uploads by parts into a folder: `NAME.ID.partial` until all parts are there, then `NAME`. `object_store` has that for
//! stores of S3 only, and its own way of writing files forgets what a killed process had written.

use std::fs::{self, File};
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::error::{Kind, Refusal};
use crate::local::{refusal, sync_folder_of};
use crate::name::PARTIAL;

/// The unfinished file of an upload.
fn partial(target: &Path, id: &str) -> PathBuf {
    let mut name = target.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{id}{PARTIAL}"));
    target.with_file_name(name)
}

/// Begins an upload of what has this digest; one that was begun before by somebody else is taken over.
pub(crate) fn create(target: &Path, digest: &str) -> Result<String, Refusal> {
    if let Some(folder) = target.parent() {
        fs::create_dir_all(folder).map_err(refusal(folder))?;
    }
    let id = digest.get(..16).unwrap_or(digest).to_owned();
    let path = partial(target, &id);
    File::create(&path).map_err(refusal(&path))?;
    Ok(id)
}

/// Writes a part; answers with its digest.
pub(crate) fn put(target: &Path, id: &str, from: u64, bytes: &[u8]) -> Result<String, Refusal> {
    let path = partial(target, id);
    let mut file = File::options().write(true).open(&path).map_err(refusal(&path))?;
    let written = file.seek(SeekFrom::Start(from)).and_then(|_| file.write_all(bytes));
    written.and_then(|()| file.sync_data()).map_err(refusal(&path))?;
    Ok(blake3::hash(bytes).to_hex().to_string())
}

/// Gives the file its name, if it has its size.
pub(crate) fn complete(target: &Path, id: &str, size: u64) -> Result<(), Refusal> {
    let path = partial(target, id);
    let file = File::options().write(true).open(&path).map_err(refusal(&path))?;
    let found = file.metadata().map_err(refusal(&path))?.len();
    if found != size {
        let message = format!("{}: {found} bytes of {size}", path.display());
        return Err(Refusal::new(Kind::NotFound, message));
    }
    file.sync_all().map_err(refusal(&path))?;
    fs::rename(&path, target).map_err(refusal(target))?;
    sync_folder_of(target);
    Ok(())
}

/// Gives an upload up.
pub(crate) fn abort(target: &Path, id: &str) {
    let _ = fs::remove_file(partial(target, id));
}
