//! From a folder to a URL.

use std::collections::BTreeMap;
use std::path::Path;

use futures::StreamExt as _;

use crate::error::{Kind, Refusal};
use crate::local::{self, Sharing};
use crate::options::{Moved, Names, Options, Watch};
use crate::place::{Place, Verb};
use crate::state::{Known, Putting, State, Upload};

/// The most parts of one object. A store of S3 takes one more, by which it is asked whether it knows an upload.
const MOST_PARTS: u64 = 9_999;

/// Sends every file below a folder, the manifest last. [`put`](crate::put()) waits for it.
///
/// # Errors
/// What is wrong here or there, with its place; what was sent so far is kept.
pub async fn send(folder: &Path, url: &str, options: &Options, watch: &Watch<'_>) -> Result<Moved, Refusal> {
    let place = Place::open(url, Verb::Put, options)?;
    let _reading = local::lock(folder, Sharing::Together)?;
    let mut files = local::files(folder)?;
    if let Names::Only(wanted) = &options.names
        && let Some(missing) = wanted.iter().find(|name| !files.contains_key(*name))
    {
        let message = format!("{}: it is not there", folder.join(missing).display());
        return Err(Refusal::new(Kind::NotFound, message));
    }
    files.retain(|name, _| options.names.has(name));
    if files.is_empty() {
        return Err(Refusal::new(Kind::NotFound, format!("{}: no file is there to put", folder.display())));
    }
    let names = format!("{:?}", options.names);
    let state = State::open(folder, "put", &[place.url(), &names])?;
    let mut total = 0;
    for path in files.values() {
        total += local::print(path)?.size;
    }
    let objects = place.list().await?;
    let mut sender = Sender {
        place,
        options,
        watch,
        state,
        objects,
        done: 0,
        total,
        moved: Moved::default(),
        manifest: false,
    };
    let manifest = files.remove_entry(&options.manifest);
    sender.manifest = manifest.is_some();
    for (name, path) in files.into_iter().chain(manifest) {
        sender.file(&name, &path).await?;
    }
    sender.state.forget();
    Ok(sender.moved)
}

struct Sender<'a, 'w> {
    place: Place,
    options: &'a Options,
    watch: &'a Watch<'w>,
    state: State<Putting>,
    /// What is there, with its size.
    objects: BTreeMap<String, u64>,
    done: u64,
    total: u64,
    moved: Moved,
    /// Whether the manifest is one of the files.
    manifest: bool,
}

impl Sender<'_, '_> {
    fn went_on(&mut self, bytes: u64) {
        self.done += bytes;
        (self.watch.progress)(self.done, self.total);
    }

    /// What a file holds; it is read again only if it is another one.
    fn known(&mut self, name: &str, path: &Path) -> Result<Known, Refusal> {
        let print = local::print(path)?;
        if let Some(known) = self.state.of.digests.get(name).filter(|known| known.print == print) {
            return Ok(known.clone());
        }
        let known = Known { print, digest: local::digest(path, self.watch)? };
        self.state.of.digests.insert(name.to_owned(), known.clone());
        self.state.keep()?;
        Ok(known)
    }

    async fn file(&mut self, name: &str, path: &Path) -> Result<(), Refusal> {
        let mut again = false;
        loop {
            self.watch.go_on()?;
            let known = self.known(name, path)?;
            let before = self.done;
            match self.one(name, path, &known).await {
                // It changed while it was sent: once more, as it is now.
                Err(refusal) if refusal.kind == Kind::Changed && !again => {
                    self.done = before;
                    again = true;
                }
                Err(refusal) => return Err(refusal),
                Ok(()) => {
                    self.moved.names.push(name.to_owned());
                    return Ok(());
                }
            }
        }
    }

    async fn one(&mut self, name: &str, path: &Path, known: &Known) -> Result<(), Refusal> {
        let size = known.print.size;
        if self.objects.get(name) == Some(&size)
            && self.place.digest(name, self.watch).await?.as_ref() == Some(&known.digest)
        {
            if let Some(upload) = self.state.of.uploads.remove(name) {
                self.place.abort(name, &upload.id).await;
                self.state.keep()?;
            }
            self.moved.there += 1;
            self.went_on(size);
            return Ok(());
        }
        // A manifest speaks of what is there; until that is so again it must not be seen.
        if self.manifest && self.objects.remove(&self.options.manifest).is_some() {
            self.place.remove(&self.options.manifest).await?;
        }
        if size > self.options.part {
            return self.by_parts(name, path, known).await;
        }
        let bytes = local::read(path, 0, size)?;
        if blake3::hash(&bytes).to_hex().as_str() != known.digest {
            self.state.of.digests.remove(name);
            return Err(local::changed(path));
        }
        self.place.put(name, bytes, &known.digest).await?;
        self.moved.parts += 1;
        self.moved.bytes += size;
        self.went_on(size);
        Ok(())
    }

    async fn by_parts(&mut self, name: &str, path: &Path, known: &Known) -> Result<(), Refusal> {
        let before = self.done;
        let begun = self.state.of.uploads.get(name).filter(|upload| upload.file == *known && upload.part > 0);
        if let Some(upload) = begun {
            // An empty part beyond the last, which is in no object: who refuses a large one may not wait until it is sent, and
            // then the refusal is lost.
            let beyond = usize::try_from(known.print.size.div_ceil(upload.part)).unwrap_or(usize::MAX);
            let asked = self.place.part(name, &upload.id, beyond, known.print.size, Vec::new()).await;
            let done = match asked {
                Ok(_) => self.go_on(name, path).await,
                Err(refusal) => Err(refusal),
            };
            match done {
                // The store no longer knows the upload, or not these parts of it: S3 says 404 or 400, others 403.
                Err(refusal) if matches!(refusal.kind, Kind::NotFound | Kind::Refused | Kind::NoRights) => {}
                done => return done,
            }
        }
        self.done = before;
        let part = self.options.part.max(known.print.size.div_ceil(MOST_PARTS));
        // The new one first: where none can be begun, the old one is kept.
        let id = self.place.begin(name, &known.digest).await?;
        if let Some(old) = self.state.of.uploads.remove(name).filter(|old| old.id != id) {
            self.place.abort(name, &old.id).await;
        }
        let upload = Upload { id, file: known.clone(), part, parts: BTreeMap::new() };
        self.state.of.uploads.insert(name.to_owned(), upload);
        self.state.keep()?;
        self.go_on(name, path).await
    }

    /// Sends the parts of an upload that are missing, and ends it.
    async fn go_on(&mut self, name: &str, path: &Path) -> Result<(), Refusal> {
        let Some(upload) = self.state.of.uploads.get(name).cloned() else {
            return Err(Refusal::new(Kind::Local, format!("{}: no upload was begun", path.display())));
        };
        let Upload { id, file: known, part, parts } = upload;
        let size = known.print.size;
        let numbers = usize::try_from(size.div_ceil(part)).unwrap_or(usize::MAX);
        let range = |number: usize| {
            let from = number as u64 * part;
            (from, part.min(size - from))
        };
        let sent: u64 = parts.keys().filter(|&&n| n < numbers).map(|&number| range(number).1).sum();
        self.went_on(sent);
        let Self { place, options, watch, state, moved, done, total, .. } = self;
        {
            let place = &*place;
            let send = |number: usize| {
                let (from, n) = range(number);
                let id = &id;
                async move {
                    let bytes = local::read(path, from, n)?;
                    let said = place.part(name, id, number, from, bytes).await?;
                    Ok::<_, Refusal>((number, n, said))
                }
            };
            let missing = (0..numbers).filter(|number| !parts.contains_key(number));
            let mut answers =
                futures::stream::iter(missing.map(send)).buffer_unordered(options.at_once.max(1));
            while let Some(answer) = answers.next().await {
                let (number, n, said) = answer?;
                if let Some(upload) = state.of.uploads.get_mut(name) {
                    upload.parts.insert(number, said);
                }
                state.keep()?;
                moved.parts += 1;
                moved.bytes += n;
                *done += n;
                (watch.progress)(*done, *total);
                watch.go_on()?;
            }
        }
        if local::print(path)? != known.print {
            place.abort(name, &id).await;
            state.of.uploads.remove(name);
            state.of.digests.remove(name);
            state.keep()?;
            return Err(local::changed(path));
        }
        let parts = state.of.uploads.get(name).map(|upload| upload.parts.values().cloned().collect());
        place.complete(name, &id, size, parts.unwrap_or_default()).await?;
        state.of.uploads.remove(name);
        state.keep()
    }
}
