//! What a URL names: a store and a prefix in it, every question to which ends in time, with an answer or with a refusal that
//! says where and why.

use std::collections::BTreeMap;
use std::future::Future;
use std::ops::Range;
use std::path::PathBuf;
use std::time::SystemTime;

use bytes::Bytes;
use futures::TryStreamExt as _;
use object_store::aws::{AmazonS3, AmazonS3Builder};
use object_store::local::LocalFileSystem;
use object_store::multipart::{MultipartStore as _, PartId};
use object_store::path::Path;
use object_store::{
    Attribute, Attributes, BackoffConfig, ClientOptions, GetOptions, GetRange, ObjectStore,
    ObjectStoreExt as _, PutMode, PutMultipartOptions, PutOptions, PutPayload, RetryConfig,
};
use url::Url;

use crate::disk;
use crate::error::{Kind, Refusal};
use crate::local;
use crate::options::{Options, Patience, Watch};

/// The metadata of an object that has its digest.
const DIGEST: &str = "blake3";

/// A prefix in a store.
pub(crate) struct Place {
    url: String,
    store: Store,
    prefix: Path,
    patience: Patience,
    /// Whether no setting says who asks.
    nameless: bool,
}

enum Store {
    S3(AmazonS3),
    Folder(LocalFileSystem, PathBuf),
}

/// What a store says of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Object {
    pub(crate) size: u64,
    pub(crate) version: Option<String>,
    pub(crate) digest: Option<String>,
}

/// What is done with a URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verb {
    Put,
    Get,
}

impl Place {
    /// Reads the URL and the settings; asks nothing yet.
    pub(crate) fn open(url: &str, verb: Verb, options: &Options) -> Result<Self, Refusal> {
        let bad = |why: String| {
            Refusal::new(Kind::BadUrl, why).help("s3://BUCKET/PREFIX and file:///FOLDER can be reached")
        };
        let parsed = Url::parse(url).map_err(|e| bad(format!("{url:?} is no URL: {e}")))?;
        if !parsed.username().is_empty() || parsed.password().is_some() {
            let help = "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the environment";
            return Err(bad("a URL has no room for credentials".to_owned()).help(help));
        }
        if parsed.query().is_some() || parsed.fragment().is_some() {
            return Err(bad(format!("{url}: a URL of objects has no ? and no #; write %3F and %23")));
        }
        let set = |names: &[&str]| {
            options.variables.iter().any(|(key, value)| names.contains(&key.as_str()) && !value.is_empty())
        };
        let (store, prefix) = match parsed.scheme() {
            "s3" | "s3a" => {
                let bucket = parsed.host_str().filter(|host| !host.is_empty());
                let bucket = bucket.ok_or_else(|| bad(format!("{url}: it names no bucket")))?;
                let prefix = Path::from_url_path(parsed.path()).map_err(|e| bad(format!("{url}: {e}")))?;
                (Store::S3(s3(url, bucket, options)?), prefix)
            }
            "file" => {
                let folder =
                    parsed.to_file_path().map_err(|()| bad(format!("{url}: it names no folder here")))?;
                if verb == Verb::Put {
                    std::fs::create_dir_all(&folder).map_err(local::refusal(&folder))?;
                } else if !folder.is_dir() {
                    return Err(Refusal::new(Kind::NotFound, format!("{url}: there is no such folder")));
                }
                let folder = folder.canonicalize().map_err(local::refusal(&folder))?;
                let store =
                    LocalFileSystem::new_with_prefix(&folder).map_err(|e| bad(format!("{url}: {e}")))?;
                (Store::Folder(store.with_fsync(true), folder), Path::default())
            }
            scheme => return Err(bad(format!("{url}: {scheme} is no scheme that can be reached"))),
        };
        let nameless = matches!(store, Store::S3(_))
            && !set(&[
                "AWS_ACCESS_KEY_ID",
                "AWS_SKIP_SIGNATURE",
                "AWS_WEB_IDENTITY_TOKEN_FILE",
                "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
                "AWS_CONTAINER_CREDENTIALS_FULL_URI",
            ]);
        let url = url.trim_end_matches('/').to_owned();
        Ok(Self { url, store, prefix, patience: options.patience, nameless })
    }

    /// The URL.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    fn store(&self) -> &dyn ObjectStore {
        match &self.store {
            Store::S3(store) => store,
            Store::Folder(store, _) => store,
        }
    }

    fn at(&self, name: &str) -> Result<Path, Refusal> {
        let whole = if self.prefix.is_root() { name.to_owned() } else { format!("{}/{name}", self.prefix) };
        Path::parse(whole).map_err(|e| Refusal::new(Kind::BadName, format!("{}: {e}", self.url)))
    }

    /// An answer in time.
    async fn asked<T>(
        &self,
        name: &str,
        doing: &str,
        question: impl Future<Output = object_store::Result<T>>,
    ) -> Result<T, Refusal> {
        let place = if name.is_empty() { self.url.clone() } else { format!("{}/{name}", self.url) };
        match tokio::time::timeout(self.patience.in_all, question).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => Err(refusal(&place, doing, &error, self.nameless)),
            Err(_) => {
                let seconds = self.patience.in_all.as_secs_f64();
                let message = format!("{place}: {doing}: no answer within {seconds} seconds");
                Err(unreachable(message))
            }
        }
    }

    /// The names and sizes of all objects below the prefix.
    pub(crate) async fn list(&self) -> Result<BTreeMap<String, u64>, Refusal> {
        let prefix = (!self.prefix.is_root()).then_some(&self.prefix);
        let mut all = self.store().list(prefix);
        let mut found = BTreeMap::new();
        // Each page in time: there may be many.
        while let Some(object) = self.asked("", "listing", all.try_next()).await? {
            let parts = object.location.prefix_match(&self.prefix);
            let parts: Vec<String> =
                parts.into_iter().flatten().map(|part| part.as_ref().to_owned()).collect();
            // The prefix itself may be an object: some tools mark folders by one.
            if !parts.is_empty() {
                found.insert(parts.join("/"), object.size);
            }
        }
        // So are folders below it.
        let marks: Vec<String> = found
            .iter()
            .filter(|&(name, &size)| {
                let below = format!("{name}/");
                size == 0 && found.range(below.clone()..).next().is_some_and(|(n, _)| n.starts_with(&below))
            })
            .map(|(name, _)| name.clone())
            .collect();
        found.retain(|name, _| !marks.contains(name));
        Ok(found)
    }

    /// What the store says of an object.
    pub(crate) async fn head(&self, name: &str) -> Result<Object, Refusal> {
        let at = self.at(name)?;
        let options = GetOptions { head: true, ..GetOptions::default() };
        let answer = self.asked(name, "asking for it", self.store().get_opts(&at, options)).await?;
        let digest =
            answer.attributes.get(&Attribute::Metadata(DIGEST.into())).map(|value| value.to_string());
        Ok(Object { size: answer.meta.size, version: answer.meta.e_tag, digest })
    }

    /// The digest of an object: what was put with it, or of a folder what its bytes say.
    pub(crate) async fn digest(&self, name: &str, watch: &Watch<'_>) -> Result<Option<String>, Refusal> {
        match &self.store {
            Store::S3(_) => Ok(self.head(name).await?.digest),
            Store::Folder(_, folder) => local::digest(&folder.join(name), watch).map(Some),
        }
    }

    /// Bytes of one version of an object.
    pub(crate) async fn bytes(&self, name: &str, of: &Object, range: Range<u64>) -> Result<Bytes, Refusal> {
        let at = self.at(name)?;
        let n = range.end - range.start;
        let options = GetOptions {
            range: Some(GetRange::Bounded(range)),
            if_match: of.version.clone(),
            ..GetOptions::default()
        };
        let question = async {
            let answer = self.store().get_opts(&at, options).await?;
            let version = answer.meta.e_tag.clone();
            Ok((version, answer.bytes().await?))
        };
        let (version, bytes) = self.asked(name, "fetching", question).await?;
        // Not every server heeds the condition.
        if version != of.version || bytes.len() as u64 != n {
            let message = format!("{}/{name}: it was replaced while it was fetched", self.url);
            return Err(Refusal::new(Kind::Changed, message).help("the same command fetches it anew"));
        }
        Ok(bytes)
    }

    fn attributes(&self, digest: &str) -> Attributes {
        match &self.store {
            Store::S3(_) => Attributes::from_iter([(Attribute::Metadata(DIGEST.into()), digest.to_owned())]),
            Store::Folder(..) => Attributes::new(),
        }
    }

    /// Puts a file whole.
    pub(crate) async fn put(&self, name: &str, bytes: Vec<u8>, digest: &str) -> Result<(), Refusal> {
        let at = self.at(name)?;
        let options = PutOptions { attributes: self.attributes(digest), ..PutOptions::default() };
        let sent = self.store().put_opts(&at, PutPayload::from(bytes), options);
        self.asked(name, "sending", sent).await.map(|_| ())
    }

    /// Puts an object that is not there; false where it is.
    pub(crate) async fn create(&self, name: &str, bytes: Vec<u8>) -> Result<bool, Refusal> {
        let at = self.at(name)?;
        let sent = async {
            match self.store().put_opts(&at, PutPayload::from(bytes), PutMode::Create.into()).await {
                Err(object_store::Error::AlreadyExists { .. }) => Ok(false),
                sent => sent.map(|_| true),
            }
        };
        self.asked(name, "creating", sent).await
    }

    /// Puts an object, whether it is there or not.
    pub(crate) async fn write(&self, name: &str, bytes: Vec<u8>) -> Result<(), Refusal> {
        let at = self.at(name)?;
        let sent = self.store().put(&at, PutPayload::from(bytes));
        self.asked(name, "writing", sent).await.map(|_| ())
    }

    /// An object whole, if it is there.
    pub(crate) async fn read(&self, name: &str) -> Result<Option<Vec<u8>>, Refusal> {
        let at = self.at(name)?;
        let found = async {
            match self.store().get(&at).await {
                Err(object_store::Error::NotFound { .. }) => Ok(None),
                found => Ok(Some(found?.bytes().await?.to_vec())),
            }
        };
        self.asked(name, "reading", found).await
    }

    /// When each object in a folder below the prefix was written last.
    pub(crate) async fn times(&self, folder: &str) -> Result<BTreeMap<String, SystemTime>, Refusal> {
        let within = self.at(folder)?;
        let mut all = self.store().list(Some(&within));
        let mut found = BTreeMap::new();
        while let Some(object) = self.asked(folder, "listing", all.try_next()).await? {
            let parts = object.location.prefix_match(&self.prefix);
            let parts: Vec<String> =
                parts.into_iter().flatten().map(|part| part.as_ref().to_owned()).collect();
            found.insert(parts.join("/"), object.last_modified.into());
        }
        Ok(found)
    }

    /// When an object was written last.
    pub(crate) async fn time(&self, name: &str) -> Result<SystemTime, Refusal> {
        let at = self.at(name)?;
        let meta = self.asked(name, "asking for it", self.store().head(&at)).await?;
        Ok(meta.last_modified.into())
    }

    /// Removes an object; one that is not there is no fault.
    pub(crate) async fn remove(&self, name: &str) -> Result<(), Refusal> {
        let at = self.at(name)?;
        match self.asked(name, "removing it until all else is there", self.store().delete(&at)).await {
            Err(refusal) if refusal.kind != Kind::NotFound => Err(refusal),
            _ => Ok(()),
        }
    }

    /// Begins an upload by parts.
    pub(crate) async fn begin(&self, name: &str, digest: &str) -> Result<String, Refusal> {
        match &self.store {
            Store::S3(store) => {
                let at = self.at(name)?;
                let attributes = self.attributes(digest);
                let options = PutMultipartOptions { attributes, ..PutMultipartOptions::default() };
                self.asked(name, "beginning an upload", store.create_multipart_opts(&at, options)).await
            }
            Store::Folder(_, folder) => disk::create(&folder.join(name), digest),
        }
    }

    /// Sends a part; answers with what the store calls it.
    pub(crate) async fn part(
        &self,
        name: &str,
        id: &str,
        number: usize,
        from: u64,
        bytes: Vec<u8>,
    ) -> Result<String, Refusal> {
        match &self.store {
            Store::S3(store) => {
                let (at, id) = (self.at(name)?, id.to_owned());
                let sent = store.put_part(&at, &id, number, PutPayload::from(bytes));
                let doing = format!("sending part {}", number + 1);
                Ok(self.asked(name, &doing, sent).await?.content_id)
            }
            Store::Folder(_, folder) => disk::put(&folder.join(name), id, from, &bytes),
        }
    }

    /// Ends an upload: the object is there, whole.
    pub(crate) async fn complete(
        &self,
        name: &str,
        id: &str,
        size: u64,
        parts: Vec<String>,
    ) -> Result<(), Refusal> {
        match &self.store {
            Store::S3(store) => {
                let (at, id) = (self.at(name)?, id.to_owned());
                let parts = parts.into_iter().map(|content_id| PartId { content_id }).collect();
                let completed = store.complete_multipart(&at, &id, parts);
                self.asked(name, "ending the upload", completed).await.map(|_| ())
            }
            Store::Folder(_, folder) => disk::complete(&folder.join(name), id, size),
        }
    }

    /// Gives an upload up. Where the store does not hear of it, its own rules remove the parts in time.
    pub(crate) async fn abort(&self, name: &str, id: &str) {
        match &self.store {
            Store::S3(store) => {
                if let Ok(at) = self.at(name) {
                    let _ = self.asked(name, "giving up", store.abort_multipart(&at, &id.to_owned())).await;
                }
            }
            Store::Folder(_, folder) => disk::abort(&folder.join(name), id),
        }
    }
}

/// The client of a bucket.
fn s3(url: &str, bucket: &str, options: &Options) -> Result<AmazonS3, Refusal> {
    let Patience { connect, request, in_all, retries } = options.patience;
    let client = ClientOptions::new().with_connect_timeout(connect).with_timeout(request);
    let retry = RetryConfig {
        max_retries: retries,
        retry_timeout: in_all,
        backoff: BackoffConfig { max_backoff: in_all / 8, ..BackoffConfig::default() },
    };
    let mut builder = AmazonS3Builder::new().with_client_options(client);
    for (key, value) in &options.variables {
        if let Ok(key) = key.to_ascii_lowercase().parse() {
            builder = builder.with_config(key, value);
        }
    }
    // The URL says the bucket, whatever the environment says.
    builder.with_bucket_name(bucket).with_retry(retry).build().map_err(|e| {
        Refusal::new(Kind::BadUrl, format!("{url}: the settings of the store: {}", innermost(&e)))
            .help("see the variables AWS_ENDPOINT, AWS_REGION and AWS_ALLOW_HTTP")
    })
}

fn unreachable(message: String) -> Refusal {
    Refusal::new(Kind::Unreachable, message)
        .help("see AWS_ENDPOINT and the network; the same command goes on from here")
}

/// The last of the errors that one error was made of.
fn innermost(error: &dyn std::error::Error) -> String {
    let mut at = error;
    while let Some(next) = at.source() {
        at = next;
    }
    at.to_string()
}

/// What stands between two marks of a text.
fn between<'a>(text: &'a str, from: &str, to: &str) -> Option<&'a str> {
    Some(text.split_once(from)?.1.split_once(to)?.0)
}

/// The refusal of what a store says. Of the answer only code and message are taken: the rest of it may say who asked.
fn refusal(place: &str, doing: &str, error: &object_store::Error, nameless: bool) -> Refusal {
    use object_store::Error as Of;
    let mut text = error.to_string();
    let mut next = std::error::Error::source(error);
    while let Some(source) = next {
        text.push_str(&format!("; {source}"));
        next = source.source();
    }
    let code = between(&text, "<Code>", "</Code>");
    let status = between(&text, "status code: ", ":").map(str::trim);
    let number: Option<u16> = status.and_then(|status| status.get(..3)?.parse().ok());
    let said = match (status, code, between(&text, "<Message>", "</Message>")) {
        (_, Some(code), Some(message)) => format!("{code}: {message}"),
        (_, Some(code), None) => code.to_owned(),
        (Some(status), None, _) => format!("the server answers {status}"),
        (None, None, _) => innermost(error),
    };
    let message = format!("{place}: {doing}: {said}");
    let has = |words: &[&str]| words.iter().any(|word| code.unwrap_or_default().contains(word));
    let io = std::iter::successors(Some(error as &dyn std::error::Error), |e| e.source())
        .find_map(|e| e.downcast_ref::<std::io::Error>())
        .map(std::io::Error::kind);
    let refused = matches!(number, Some(401 | 403))
        || has(&[
            "AccessDenied",
            "SignatureDoesNotMatch",
            "InvalidAccessKeyId",
            "ExpiredToken",
            "InvalidToken",
        ]);
    let full = [std::io::ErrorKind::StorageFull, std::io::ErrorKind::QuotaExceeded];
    match error {
        _ if number == Some(507)
            || has(&["Quota", "StorageFull", "InsufficientStorage", "InsufficientCapacity"]) =>
        {
            Refusal::new(Kind::Full, message)
                .help("the store is full: make room there; the same command goes on")
        }
        _ if io.is_some_and(|kind| full.contains(&kind)) => {
            Refusal::new(Kind::Full, message).help("make room there; the same command goes on")
        }
        _ if has(&["NoSuchBucket"]) => Refusal::new(Kind::NoBucket, message)
            .help("make the bucket, or see its name, AWS_ENDPOINT and AWS_REGION"),
        _ if refused || matches!(error, Of::PermissionDenied { .. } | Of::Unauthenticated { .. }) => {
            Refusal::new(Kind::NoRights, message)
                .help("see AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and the rights of this key on the bucket")
        }
        // What some questions wrap is not one of the kinds of errors.
        _ if number == Some(404) || matches!(error, Of::NotFound { .. }) => {
            Refusal::new(Kind::NotFound, message)
        }
        Of::Precondition { .. } | Of::NotModified { .. } => {
            Refusal::new(Kind::Changed, message).help("the same command begins it anew")
        }
        Of::InvalidPath { .. } => Refusal::new(Kind::BadName, message).help("give the object another name"),
        _ if number.is_some_and(|number| number >= 500) => Refusal::new(Kind::Server, message)
            .help("the store is at fault, or full; the same command goes on"),
        _ if number.is_some() => Refusal::new(Kind::Refused, message),
        _ if io == Some(std::io::ErrorKind::PermissionDenied) => Refusal::new(Kind::NoRights, message),
        _ if nameless => Refusal::new(Kind::NoRights, format!("{message} (while asking for credentials)"))
            .help("set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"),
        _ => unreachable(message),
    }
}
