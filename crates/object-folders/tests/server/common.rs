//! A server of S3 over a folder, which counts what it is asked and fails when it is told to; and folders at random.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hyper::body::Body as _;
use object_folders::{Moved, Options, Patience, Refusal, Watch};
use seeded::{Family, Stream};

pub(crate) const KEY: &str = "the-key";
pub(crate) const SECRET: &str = "the-secret-of-the-test";
/// What a part has at least in S3.
pub(crate) const PART: u64 = 5 << 20;

pub(crate) type Files = BTreeMap<String, Vec<u8>>;
type Fail = Box<dyn Fn(&str, &str) -> Option<(u16, String)> + Send>;

#[derive(Default)]
struct Seen {
    log: Mutex<Vec<(String, String)>>,
    fail: Mutex<Option<Fail>>,
    slow: AtomicU64,
    /// The server looks, and then writes: a store does both at once.
    conditional: futures::lock::Mutex<()>,
}

/// The server. It ends with the process.
pub(crate) struct Server {
    root: tempfile::TempDir,
    address: std::net::SocketAddr,
    seen: Arc<Seen>,
}

/// What a request asks for.
fn kind(method: &str, query: &str, empty: bool) -> &'static str {
    match method {
        // Whether the upload is known.
        "PUT" if query.contains("partNumber=") && empty => "probe",
        "PUT" if query.contains("partNumber=") => "part",
        "PUT" => "put",
        "POST" if query.contains("uploadId=") => "end",
        "POST" => "begin",
        "GET" if query.contains("list-type=") => "list",
        "GET" => "get",
        "HEAD" => "head",
        "DELETE" if query.contains("uploadId=") => "abort",
        "DELETE" => "delete",
        _ => "other",
    }
}

impl Server {
    /// With the bucket `sets`.
    pub(crate) fn start() -> Self {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("sets")).unwrap();
        let seen = Arc::new(Seen::default());
        let mut service = s3s::service::S3ServiceBuilder::new(s3s_fs::FileSystem::new(root.path()).unwrap());
        service.set_auth(s3s::auth::SimpleAuth::from_single(KEY, SECRET));
        let service = service.build();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::clone(&seen);
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let listener = tokio::net::TcpListener::from_std(listener).unwrap();
                loop {
                    let Ok((socket, _)) = listener.accept().await else { continue };
                    let (service, seen) = (service.clone(), Arc::clone(&shared));
                    let answer = hyper::service::service_fn(move |request| {
                        answer(request, service.clone(), Arc::clone(&seen))
                    });
                    tokio::spawn(async move {
                        let socket = hyper_util::rt::TokioIo::new(socket);
                        let _ =
                            hyper::server::conn::http1::Builder::new().serve_connection(socket, answer).await;
                    });
                }
            });
        });
        Self { root, address, seen }
    }

    /// Where the objects of the bucket are.
    pub(crate) fn bucket(&self) -> PathBuf {
        self.root.path().join("sets")
    }

    /// Settings with the right key.
    pub(crate) fn options(&self) -> Options {
        self.options_of(KEY, SECRET)
    }

    pub(crate) fn options_of(&self, key: &str, secret: &str) -> Options {
        options_at(&format!("http://{}", self.address), key, secret)
    }

    /// How often it was asked this.
    pub(crate) fn count(&self, kind: &str) -> usize {
        self.seen.log.lock().unwrap().iter().filter(|(of, _)| of == kind).count()
    }

    /// What it was asked: kinds and paths, in order.
    pub(crate) fn log(&self) -> Vec<(String, String)> {
        self.seen.log.lock().unwrap().clone()
    }

    pub(crate) fn forget_log(&self) {
        self.seen.log.lock().unwrap().clear();
    }

    /// Answers so where the function says a status and a body.
    pub(crate) fn fail(&self, fail: impl Fn(&str, &str) -> Option<(u16, String)> + Send + 'static) {
        *self.seen.fail.lock().unwrap() = Some(Box::new(fail));
    }

    pub(crate) fn fail_no_more(&self) {
        *self.seen.fail.lock().unwrap() = None;
    }

    /// Waits before each answer.
    pub(crate) fn slow(&self, wait: Duration) {
        self.seen.slow.store(u64::try_from(wait.as_millis()).unwrap(), Ordering::Relaxed);
    }

    /// Forgets all uploads that are not complete.
    pub(crate) fn forget_uploads(&self) -> usize {
        let mut n = 0;
        for entry in std::fs::read_dir(self.root.path()).unwrap() {
            let entry = entry.unwrap();
            if entry.file_name().to_string_lossy().starts_with(".upload") {
                std::fs::remove_file(entry.path()).unwrap();
                n += 1;
            }
        }
        n
    }
}

async fn answer(
    request: hyper::Request<hyper::body::Incoming>,
    service: s3s::service::S3Service,
    seen: Arc<Seen>,
) -> Result<hyper::Response<s3s::Body>, Infallible> {
    let (path, query) =
        (request.uri().path().to_owned(), request.uri().query().unwrap_or_default().to_owned());
    let kind = kind(request.method().as_str(), &query, request.body().is_end_stream());
    seen.log.lock().unwrap().push((kind.to_owned(), path.clone()));
    let wait = seen.slow.load(Ordering::Relaxed);
    if wait > 0 {
        tokio::time::sleep(Duration::from_millis(wait)).await;
    }
    let failed = seen.fail.lock().unwrap().as_ref().and_then(|fail| fail(kind, &path));
    if let Some((status, body)) = failed {
        // Whoever still sends hears no answer.
        let mut sent = request.into_body();
        while let Some(Ok(_)) = std::future::poll_fn(|context| Pin::new(&mut sent).poll_frame(context)).await
        {
        }
        let answer = hyper::Response::builder().status(status).header("content-type", "application/xml");
        let answer = answer.header("etag", "\"of a server that keeps nothing\"");
        return Ok(answer.body(s3s::Body::from(body)).unwrap());
    }
    let conditional = request.headers().contains_key("if-none-match");
    let _alone = if conditional { Some(seen.conditional.lock().await) } else { None };
    Ok(service.call(request.map(s3s::Body::from)).await.unwrap())
}

pub(crate) fn options_at(endpoint: &str, key: &str, secret: &str) -> Options {
    let set = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    let mut options = Options::with(vec![
        set("AWS_ENDPOINT", endpoint),
        set("AWS_ALLOW_HTTP", "true"),
        set("AWS_REGION", "us-east-1"),
        set("AWS_ACCESS_KEY_ID", key),
        set("AWS_SECRET_ACCESS_KEY", secret),
    ]);
    options.part = PART;
    options.at_once = 1;
    options.patience = Patience { retries: 1, ..Patience::of(Duration::from_secs(20)) };
    options
}

fn quiet() -> AtomicBool {
    AtomicBool::new(false)
}

pub(crate) fn put(folder: &Path, url: &str, options: &Options) -> Result<Moved, Refusal> {
    object_folders::put(folder, url, options, &Watch { progress: &|_, _| {}, cancelled: &quiet() })
}

pub(crate) fn get(url: &str, folder: &Path, options: &Options) -> Result<Moved, Refusal> {
    object_folders::get(url, folder, options, &Watch { progress: &|_, _| {}, cancelled: &quiet() })
}

/// Does the work until it is done or the condition holds, and then drops it where it stands.
pub(crate) fn until<T>(dead: impl Fn() -> bool, work: impl Future<Output = T>) -> Option<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let killed = async {
            while !dead() {
                tokio::time::sleep(Duration::from_micros(200)).await;
            }
        };
        match futures::future::select(std::pin::pin!(work), std::pin::pin!(killed)).await {
            futures::future::Either::Left((done, _)) => Some(done),
            futures::future::Either::Right(_) => None,
        }
    })
}

/// [`until`] for one that is put.
pub(crate) fn put_until(
    dead: impl Fn() -> bool,
    folder: &Path,
    url: &str,
    options: &Options,
) -> Option<Result<Moved, Refusal>> {
    let cancelled = quiet();
    let watch = Watch { progress: &|_, _| {}, cancelled: &cancelled };
    until(dead, object_folders::send(folder, url, options, &watch))
}

/// [`until`] for one that is fetched.
pub(crate) fn get_until(
    dead: impl Fn() -> bool,
    url: &str,
    folder: &Path,
    options: &Options,
) -> Option<Result<Moved, Refusal>> {
    let cancelled = quiet();
    let watch = Watch { progress: &|_, _| {}, cancelled: &cancelled };
    until(dead, object_folders::fetch(url, folder, options, &watch))
}

/// The stream of a test's case.
pub(crate) fn stream(purpose: &str, case: u64) -> Stream {
    Family::new("object-folders", purpose, seeded::test_seed()).stream(case)
}

/// Bytes at random.
pub(crate) fn bytes(stream: &mut Stream, n: u64) -> Vec<u8> {
    let words = (0..n.div_ceil(8)).flat_map(|_| stream.next_u64().to_le_bytes());
    words.take(usize::try_from(n).unwrap()).collect()
}

/// A folder with these files, each at random: name and size.
pub(crate) fn write(folder: &Path, stream: &mut Stream, files: &[(&str, u64)]) {
    for &(name, n) in files {
        let path = folder.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes(stream, n)).unwrap();
    }
}

/// The content of a folder, without locks.
pub(crate) fn read(folder: &Path) -> Files {
    let mut found = Files::new();
    let mut open = vec![folder.to_owned()];
    while let Some(at) = open.pop() {
        for entry in std::fs::read_dir(&at).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if path.file_name().unwrap() != ".lock" {
                let name = path.strip_prefix(folder).unwrap().to_str().unwrap().to_owned();
                found.insert(name, std::fs::read(&path).unwrap());
            }
        }
    }
    found
}

/// Two folders hold the same.
pub(crate) fn same(a: &Path, b: &Path) {
    let (a, b) = (read(a), read(b));
    let names = |files: &Files| files.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&a), names(&b));
    for (name, bytes) in &a {
        assert!(bytes == &b[name], "{name} has other bytes");
    }
}
