//! Folders at URLs: `cargo xtask put` and `get`, and data that lie in an object store.
//!
//! Only a build with the feature `store` reaches a URL; any other hands the command over to one that has it.

use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow};
use clap::Args;

use crate::{elsewhere, place};

/// Options of `put`.
#[derive(Debug, Args)]
pub(crate) struct PutArgs {
    /// The folder whose files are put.
    folder: PathBuf,
    /// s3://BUCKET/PREFIX or file:///FOLDER.
    url: String,
    #[command(flatten)]
    how: How,
}

/// Options of `get`.
#[derive(Debug, Args)]
pub(crate) struct GetArgs {
    /// s3://BUCKET/PREFIX or file:///FOLDER.
    url: String,
    /// The folder that they are fetched into.
    folder: PathBuf,
    #[command(flatten)]
    how: How,
}

#[derive(Debug, Args)]
struct How {
    /// Seconds after which a request that nobody answers is given up, with all that it is tried again.
    #[arg(long, value_name = "SECONDS", default_value_t = 180, value_parser = clap::value_parser!(u64).range(1..))]
    patience: u64,
    /// Prints one JSON document to standard output.
    #[arg(long)]
    json: bool,
    /// Warnings and errors only.
    #[arg(long)]
    quiet: bool,
}

/// Whether a name of data is a URL.
pub(crate) fn is_url(name: &str) -> bool {
    name.contains("://")
}

/// Where what lies under a URL is kept here: `data/remote/BUCKET/PREFIX`. With a store of one's own its host stands before
/// the bucket, since others may have a bucket of the same name; a folder of this machine stands below `_file`, which no
/// bucket is called.
pub(crate) fn cache(url: &str) -> PathBuf {
    let endpoint =
        ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"].map(|name| std::env::var(name).ok());
    place::data().join("remote").join(below(url, endpoint.into_iter().flatten().next().as_deref()))
}

fn below(url: &str, endpoint: Option<&str>) -> PathBuf {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let host = match (scheme, endpoint) {
        ("file", _) => Some("_file".to_owned()),
        (_, Some(endpoint)) => {
            let host = endpoint.split_once("://").map_or(endpoint, |(_, host)| host);
            host.split('/').next().map(str::to_owned)
        }
        _ => None,
    };
    let part = |part: &str| match part {
        // Such a URL is refused when it is asked; here it must not lead out of the folder.
        "." | ".." => part.replace('.', "%2E"),
        part => part.replace(['\\', ':'], "-"),
    };
    host.iter().map(String::as_str).chain(rest.split('/')).filter(|p| !p.is_empty()).map(part).collect()
}

/// For a command that reaches a URL: where this build cannot and another one can be made, that one does it, and its exit
/// status comes back.
pub(crate) fn elsewhere() -> Result<Option<u8>> {
    match object_folders::check_built() {
        Ok(()) => Ok(None),
        Err(_) if place::has_sources() => elsewhere::hand_over("store").map(Some),
        Err(refusal) => Err(anyhow!(
            "{}: `cargo build --release --package xtask --features store` makes one",
            refusal.message
        )),
    }
}

/// Whether data are at a URL, not here yet, and this build cannot fetch them.
pub(crate) fn is_wanted(data: &str) -> bool {
    is_url(data) && object_folders::check_built().is_err() && !cache(data).join("manifest.json").is_file()
}

#[cfg(not(feature = "store"))]
pub(crate) use without::{fetch, get, get_parts, get_run, put, put_files, put_run};

#[cfg(feature = "store")]
pub(crate) use with::{fetch, get, get_parts, get_run, put, put_files, put_run};

/// In a build that reaches no URL.
#[cfg(not(feature = "store"))]
mod without {
    use std::path::{Path, PathBuf};

    use anyhow::{Result, bail};

    use super::{GetArgs, PutArgs, elsewhere};
    use crate::signals::Stop;

    fn nowhere<T>() -> Result<T> {
        match elsewhere()? {
            Some(status) => Err(elsewhere::Done { status }.into()),
            None => bail!("this build reaches no URL"),
        }
    }

    pub(crate) fn put(_: &PutArgs) -> Result<u8> {
        nowhere()
    }

    pub(crate) fn get(_: &GetArgs) -> Result<u8> {
        nowhere()
    }

    pub(crate) fn put_files(_: &Path, _: &str, _: Vec<String>, _: bool, _: &Stop) -> Result<()> {
        nowhere()
    }

    pub(crate) fn get_parts(_: &str, _: &Path, _: bool, _: &Stop) -> Result<Vec<PathBuf>> {
        nowhere()
    }

    pub(crate) fn fetch(_: &str, _: &Path, _: bool, _: &Stop) -> Result<()> {
        nowhere()
    }

    pub(crate) fn put_run(_: &Path, _: &str, _: &Stop) -> Result<()> {
        nowhere()
    }

    pub(crate) fn get_run(_: &str, _: &Path, _: &Stop) -> Result<bool> {
        nowhere()
    }
}

#[cfg(feature = "store")]
mod with {
    use std::cell::Cell;
    use std::path::{Path, PathBuf};
    use std::time::{Duration, Instant};

    use anyhow::{Result, anyhow};
    use object_folders::{Kind, Moved, Names, Options, Patience, Refusal, Unlisted, Watch};
    use serde_json::json;
    use training::Progress;

    use super::{GetArgs, How, PutArgs};
    use crate::answer::{give, say};
    use crate::signals::{Stop, Stopped};

    /// `cargo xtask put`; returns the exit status.
    pub(crate) fn put(args: &PutArgs) -> Result<u8> {
        let moved = shown(args.how.quiet, &Stop::watch()?, |watch| {
            object_folders::put(&args.folder, &args.url, &options(&args.how), watch)
        })?;
        answer("put", &args.url, &args.folder, &args.how, &moved)
    }

    /// `cargo xtask get`; returns the exit status.
    pub(crate) fn get(args: &GetArgs) -> Result<u8> {
        let moved = shown(args.how.quiet, &Stop::watch()?, |watch| {
            object_folders::get(&args.url, &args.folder, &options(&args.how), watch)
        })?;
        answer("get", &args.url, &args.folder, &args.how, &moved)
    }

    fn options(how: &How) -> Options {
        let patience = Patience::of(Duration::from_secs(how.patience));
        Options { patience, ..Options::from_environment() }
    }

    fn answer(command: &str, url: &str, folder: &Path, how: &How, moved: &Moved) -> Result<u8> {
        let document = json!({
            "schema": "xtask/1", "command": command, "url": url, "folder": folder, "files": moved.names.len(),
            "there": moved.there, "bytes": moved.bytes,
        });
        give(how.json, &document, || format!("{}\n", in_words(moved)))?;
        Ok(0)
    }

    fn in_words(moved: &Moved) -> String {
        let Moved { names, there, bytes, .. } = moved;
        format!("{} files, {there} of them there already, {bytes} bytes moved", names.len())
    }

    /// Puts these files of a folder.
    pub(crate) fn put_files(
        folder: &Path,
        url: &str,
        names: Vec<String>,
        quiet: bool,
        stop: &Stop,
    ) -> Result<()> {
        let names = Names::Only(names.into_iter().collect());
        let options = Options { names, ..Options::from_environment() };
        let moved = shown(quiet, stop, |watch| object_folders::put(folder, url, &options, watch))?;
        if !quiet {
            say!("{url}: {}", in_words(&moved));
        }
        Ok(())
    }

    /// Fetches the parts of all shards that lie under a URL; where they are now.
    pub(crate) fn get_parts(url: &str, folder: &Path, quiet: bool, stop: &Stop) -> Result<Vec<PathBuf>> {
        let options = Options { names: Names::Ending(".part".to_owned()), ..Options::from_environment() };
        let moved = shown(quiet, stop, |watch| object_folders::get(url, folder, &options, watch))?;
        Ok(moved.names.iter().map(|name| folder.join(name)).collect())
    }

    /// Fetches a data set. Where another process fetches it, its end is waited for.
    pub(crate) fn fetch(url: &str, folder: &Path, quiet: bool, stop: &Stop) -> Result<()> {
        if !quiet {
            say!("the data set {url} is not here: fetching {}", folder.display());
        }
        let mut said = quiet;
        loop {
            let options = Options { unlisted: Unlisted::Refused, ..Options::from_environment() };
            let done = moved(quiet, stop, |watch| object_folders::get(url, folder, &options, watch));
            match done {
                Err(refusal) if refusal.kind == Kind::Busy && stop.signal().is_none() => {
                    if !said {
                        say!("{}; waiting for it", refusal.message);
                        said = true;
                    }
                    std::thread::sleep(Duration::from_millis(500));
                }
                done => return done.map(|_| ()).map_err(|refusal| refused(&refusal, stop)),
            }
        }
    }

    /// The folder of a run is whole where its configuration lies, which is put last and taken away before anything is
    /// replaced.
    fn of_run() -> Options {
        Options {
            manifest: "config.toml".to_owned(),
            unlisted: Unlisted::Refused,
            ..Options::from_environment()
        }
    }

    /// Puts the folder of a run, in which nobody works.
    pub(crate) fn put_run(folder: &Path, url: &str, stop: &Stop) -> Result<()> {
        shown(true, stop, |watch| object_folders::put(folder, url, &of_run(), watch)).map(|_| ())
    }

    /// Fetches the folder of a run; false where none lies there whole.
    pub(crate) fn get_run(url: &str, folder: &Path, stop: &Stop) -> Result<bool> {
        match moved(true, stop, |watch| object_folders::get(url, folder, &of_run(), watch)) {
            Ok(_) => Ok(true),
            Err(refusal) if refusal.kind == Kind::NotFound => Ok(false),
            Err(refusal) => Err(refused(&refusal, stop)),
        }
    }

    fn shown(quiet: bool, stop: &Stop, work: impl FnOnce(&Watch) -> Result<Moved, Refusal>) -> Result<Moved> {
        moved(quiet, stop, work).map_err(|refusal| refused(&refusal, stop))
    }

    fn refused(refusal: &Refusal, stop: &Stop) -> anyhow::Error {
        match stop.signal() {
            Some(signal) if refusal.kind == Kind::Stopped => {
                Stopped { signal, what: "the same command goes on with what is missing".to_owned() }.into()
            }
            _ => anyhow!("{refusal}"),
        }
    }

    /// Does the work with progress on standard error.
    fn moved(
        quiet: bool,
        stop: &Stop,
        work: impl FnOnce(&Watch) -> Result<Moved, Refusal>,
    ) -> Result<Moved, Refusal> {
        let progress = Progress::new(1, quiet);
        let last = Cell::new(Instant::now());
        let report = |done: u64, total: u64| {
            if let Progress::Bar(bar) = &progress {
                bar.set_length(total);
                bar.set_position(done);
            } else if last.get().elapsed() > Duration::from_secs(5) {
                last.set(Instant::now());
                progress.note(format!("{done} of {total} bytes"));
            }
        };
        let done = work(&Watch { progress: &report, cancelled: stop.came() });
        progress.finish();
        done
    }
}

/// The path of a part as the name that it has in a store, if it lies in the folder.
pub(crate) fn name_below(folder: &Path, path: &Path) -> Result<String> {
    let relative = path.strip_prefix(folder)?;
    let parts: Vec<_> = relative.iter().map(|part| part.to_string_lossy()).collect();
    Ok(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_under_a_url_has_a_place_of_its_own_here() {
        for (url, endpoint, path) in [
            ("s3://sets/a/b", None, "sets/a/b"),
            ("s3://sets/a/b/", Some("http://127.0.0.1:9000/"), "127.0.0.1-9000/sets/a/b"),
            ("s3://sets", Some("https://store.example"), "store.example/sets"),
            ("file:///srv/sets/few", Some("http://h"), "_file/srv/sets/few"),
            ("s3://sets/../../x/./y", None, "sets/%2E%2E/%2E%2E/x/%2E/y"),
            ("s3://sets/..%2F/c:\\x", None, "sets/..%2F/c--x"),
        ] {
            assert_eq!(below(url, endpoint), Path::new(path), "{url}");
        }
        assert!(is_url("s3://b") && !is_url("public-iid") && !is_url("data/x"));
    }
}
