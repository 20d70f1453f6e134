//! From a URL to a folder.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use futures::StreamExt as _;

use crate::error::{Kind, Refusal};
use crate::local::{self, Sharing};
use crate::name::{self, PARTIAL, PARTIAL_OF};
use crate::options::{Moved, Options, Unlisted, Watch};
use crate::place::{Object, Place, Verb};
use crate::state::{Fetched, State};

/// Fetches what lies under a URL, the manifest last. [`get`](crate::get()) waits for it.
///
/// # Errors
/// What is wrong here or there, with its place; what was fetched so far is kept.
pub async fn fetch(url: &str, folder: &Path, options: &Options, watch: &Watch<'_>) -> Result<Moved, Refusal> {
    let place = Place::open(url, Verb::Get, options)?;
    let mut objects = place.list().await?;
    objects.retain(|name, _| options.names.has(name) && !name::is_left_out(name));
    if objects.is_empty() {
        let message = format!("{}: nothing is there to get", place.url());
        return Err(Refusal::new(Kind::NotFound, message).help("see the prefix, and whether it was put"));
    }
    let listed = objects.contains_key(&options.manifest);
    if options.unlisted == Unlisted::Refused && !listed {
        let message = format!("{}: no {} is there: the folder is not whole", place.url(), options.manifest);
        return Err(Refusal::new(Kind::NotFound, message).help("wait until it is put, or put it again"));
    }
    // All names before the first byte.
    for name in objects.keys() {
        name::beside(place.url(), folder, name)?;
    }
    fs::create_dir_all(folder).map_err(local::refusal(folder))?;
    let _writing = local::lock(folder, Sharing::Alone)?;
    let state = State::open(folder, "get", &[place.url()])?;
    let total = objects.values().sum();
    // The manifest that is fetched last is the one that was there first: else it speaks of other files.
    let manifest = if listed { Some(place.head(&options.manifest).await?) } else { None };
    let mut fetcher =
        Fetcher { place, folder, options, watch, state, done: 0, total, manifest, moved: Moved::default() };
    let manifest = objects.remove_entry(&options.manifest);
    let last = manifest.as_ref().map(|(_, size)| *size);
    let mut missing = Vec::new();
    for (name, size) in objects.into_iter().chain(manifest) {
        watch.go_on()?;
        if fetcher.is_there(&name, size).await? {
            fetcher.moved.there += 1;
            fetcher.went_on(size);
        } else {
            missing.push(name.clone());
        }
        fetcher.moved.names.push(name);
    }
    // A manifest speaks of what is there; until that is so again it must not be seen. It is the last of the missing ones.
    let old = folder.join(&options.manifest);
    if let Some(size) = last.filter(|_| !missing.is_empty() && old.is_file()) {
        fs::remove_file(&old).map_err(local::refusal(&old))?;
        local::sync_folder_of(&old);
        if missing.last() != Some(&options.manifest) {
            missing.push(options.manifest.clone());
            fetcher.moved.there -= 1;
            fetcher.done -= size;
        }
    }
    for name in missing {
        fetcher.object(&name).await?;
    }
    Ok(fetcher.moved)
}

struct Fetcher<'a, 'w> {
    place: Place,
    folder: &'a Path,
    options: &'a Options,
    watch: &'a Watch<'w>,
    state: State<Fetched>,
    done: u64,
    total: u64,
    /// What the manifest was when it was begun.
    manifest: Option<Object>,
    moved: Moved,
}

/// A path with something after its name.
fn with(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    PathBuf::from(name)
}

impl Fetcher<'_, '_> {
    fn went_on(&mut self, bytes: u64) {
        self.done += bytes;
        (self.watch.progress)(self.done, self.total);
    }

    /// Whether the file of an object is here: by its digest, or where nobody knows that by its version.
    async fn is_there(&mut self, name: &str, size: u64) -> Result<bool, Refusal> {
        let path = name::beside(self.place.url(), self.folder, name)?;
        let Ok(print) = local::print(&path) else { return Ok(false) };
        if print.size != size {
            return Ok(false);
        }
        if let Some(digest) = self.place.digest(name, self.watch).await? {
            return Ok(digest == local::digest(&path, self.watch)?);
        }
        let version = self.place.head(name).await?.version;
        let known = self.state.of.versions.get(name);
        Ok(version.is_some()
            && known.map(|(print, version)| (print, Some(version))) == Some((&print, version.as_ref())))
    }

    async fn object(&mut self, name: &str) -> Result<(), Refusal> {
        let mut again = false;
        loop {
            self.watch.go_on()?;
            let object = self.place.head(name).await?;
            if name == self.options.manifest && self.manifest.as_ref() != Some(&object) {
                let message = format!("{}: the folder was replaced while it was fetched", self.place.url());
                return Err(Refusal::new(Kind::Changed, message).help("the same command fetches it anew"));
            }
            let before = self.done;
            match self.one(name, &object).await {
                // It was replaced, or what a kill left was not what it seemed: once more, from its beginning.
                Err(refusal) if matches!(refusal.kind, Kind::Changed | Kind::Damaged) && !again => {
                    self.done = before;
                    again = true;
                }
                done => return done,
            }
        }
    }

    async fn one(&mut self, name: &str, object: &Object) -> Result<(), Refusal> {
        let path = name::beside(self.place.url(), self.folder, name)?;
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(local::refusal(folder))?;
        }
        let (partial, guard) = (with(&path, PARTIAL), with(&path, PARTIAL_OF));
        let from = begin(&partial, &guard, object)?;
        let mut file =
            File::options().append(true).create(true).open(&partial).map_err(local::refusal(&partial))?;
        self.went_on(from);
        let Self { place, options, watch, moved, done, total, .. } = self;
        {
            let (place, part) = (&*place, options.part.max(1));
            let starts = (0..(object.size - from).div_ceil(part)).map(|n| from + n * part);
            let ask = |start: u64| place.bytes(name, object, start..object.size.min(start + part));
            let mut answers = futures::stream::iter(starts.map(ask)).buffered(options.at_once.max(1));
            while let Some(answer) = answers.next().await {
                let bytes = match answer {
                    Ok(bytes) => bytes,
                    Err(refusal) => {
                        if refusal.kind == Kind::Changed {
                            drop(file);
                            discard(&partial, &guard);
                        }
                        return Err(refusal);
                    }
                };
                file.write_all(&bytes).map_err(local::refusal(&partial))?;
                moved.parts += 1;
                moved.bytes += bytes.len() as u64;
                *done += bytes.len() as u64;
                (watch.progress)(*done, *total);
                watch.go_on()?;
            }
        }
        file.sync_all().map_err(local::refusal(&partial))?;
        drop(file);
        if let Some(digest) = &object.digest
            && *digest != local::digest(&partial, watch)?
        {
            discard(&partial, &guard);
            let message = format!("{}/{name}: what arrived is not what was put", self.place.url());
            return Err(Refusal::new(Kind::Damaged, message).help("put it again from where it is whole"));
        }
        fs::rename(&partial, &path).map_err(local::refusal(&path))?;
        local::sync_folder_of(&path);
        let _ = fs::remove_file(&guard);
        if let (None, Some(version)) = (&object.digest, &object.version) {
            let print = local::print(&path)?;
            self.state.of.versions.insert(name.to_owned(), (print, version.clone()));
            self.state.keep()?;
        }
        Ok(())
    }
}

/// Where to go on: at the end of a partial file, if it is of this version; else at the beginning.
fn begin(partial: &Path, guard: &Path, object: &Object) -> Result<u64, Refusal> {
    let is_of = object.version.is_some() && fs::read_to_string(guard).ok() == object.version;
    let there = if is_of { fs::metadata(partial).map_or(0, |about| about.len()) } else { 0 };
    if there > 0 && there <= object.size {
        return Ok(there);
    }
    discard(partial, guard);
    if let Some(version) = &object.version {
        calculemus_base::file::write(guard, version.as_bytes()).map_err(local::refusal(guard))?;
    }
    Ok(0)
}

fn discard(partial: &Path, guard: &Path) {
    let _ = fs::remove_file(guard);
    let _ = fs::remove_file(partial);
}
