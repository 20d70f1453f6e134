//! Who works on what, where several machines work on one sweep: claims with leases, in a folder that they share or under a URL.
//!
//! A claim on a point is a note with a number, from 0: whoever creates the next number has the point, and creating a note that must
//! not be there is atomic: on every file system that is shared, NFS among them, and in every store that knows conditional
//! writes. Its holder writes it again and again; a claim that was not written for the length of its lease is dead, and the point goes to whoever creates the
//! next number. Nothing is removed, so nobody can remove what another has just created. Clocks of machines are not
//! compared: the age of a claim is the distance of its time from that of a note written now into the same place.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::signals::Stop;

/// Workers that may die on one point before it is left alone.
const DEATHS: usize = 2;

/// How a claim ended, if it did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum State {
    /// Somebody works.
    Held,
    /// Given back: a signal came, or an error.
    Released,
    /// The work is done.
    Done,
}

/// What a claim says.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Said {
    point: String,
    worker: String,
    /// Seconds.
    lease: f64,
    state: State,
    /// Of whoever asked: a store whose answer was lost is asked again, and says that the note is there.
    #[serde(default)]
    asker: String,
}

/// A claim as it stands in the folder.
struct Found {
    number: u64,
    said: Option<Said>,
    written: SystemTime,
}

/// The claims of one worker.
#[derive(Debug)]
pub(crate) struct Claims {
    /// The folder of the sweep on this machine.
    sweep: PathBuf,
    board: Arc<Board>,
    worker: String,
    lease: Duration,
    asked: AtomicU64,
}

/// Where claims lie.
#[derive(Debug)]
enum Board {
    /// `claims/STEM.N.json` in the folder of the sweep.
    Folder(PathBuf),
    /// `STEM/N.json` below `claims/` under a URL.
    #[cfg(feature = "store")]
    Store(object_folders::Board),
}

/// A claim's place on the board: the point, and its number.
#[derive(Debug, Clone)]
struct Note {
    stem: String,
    number: u64,
}

impl Note {
    fn of(point: &str, number: u64) -> Self {
        let stem = blake3::hash(point.as_bytes()).to_hex().get(..16).unwrap_or_default().to_owned();
        Self { stem, number }
    }

    fn in_folder(&self, folder: &Path) -> PathBuf {
        folder.join(format!("{}.{}.json", self.stem, self.number))
    }

    #[cfg(feature = "store")]
    fn in_store(&self) -> String {
        format!("{}/{}.json", self.stem, self.number)
    }

    fn next(&self) -> Self {
        Self { number: self.number + 1, ..self.clone() }
    }
}

impl Board {
    /// Creates a note; false where another has.
    fn create(&self, note: &Note, said: &Said) -> Result<bool> {
        match self {
            Self::Folder(folder) => {
                let path = note.in_folder(folder);
                match std::fs::File::create_new(&path) {
                    Ok(_) => write(&path, said).map(|()| true),
                    Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => Ok(false),
                    Err(e) => Err(e).with_context(|| path.display().to_string()),
                }
            }
            #[cfg(feature = "store")]
            Self::Store(store) => {
                let (name, text) = (note.in_store(), serde_json::to_vec(said)?);
                Ok(store.create(&name, &text)? || store.read(&name)?.is_some_and(|there| there == text))
            }
        }
    }

    fn write(&self, note: &Note, said: &Said) -> Result<()> {
        match self {
            Self::Folder(folder) => write(&note.in_folder(folder), said),
            #[cfg(feature = "store")]
            Self::Store(store) => Ok(store.write(&note.in_store(), &serde_json::to_vec(said)?)?),
        }
    }

    /// Whether a note is there; where nobody answers none is.
    fn has(&self, note: &Note) -> bool {
        match self {
            Self::Folder(folder) => note.in_folder(folder).exists(),
            #[cfg(feature = "store")]
            Self::Store(store) => store.read(&note.in_store()).is_ok_and(|found| found.is_some()),
        }
    }

    /// All claims on a point, oldest first.
    fn found(&self, stem: &str) -> Result<Vec<Found>> {
        let mut found = Vec::new();
        match self {
            Self::Folder(folder) => {
                let failed = || folder.display().to_string();
                for entry in std::fs::read_dir(folder).with_context(failed)? {
                    let entry = entry.with_context(failed)?;
                    let name = entry.file_name();
                    let number = name
                        .to_str()
                        .and_then(|name| name.strip_prefix(stem)?.strip_prefix('.')?.strip_suffix(".json"));
                    let Some(number) = number.and_then(|number| number.parse().ok()) else { continue };
                    // One that was just created says nothing yet.
                    let bytes = std::fs::read(entry.path()).ok();
                    let said = bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok());
                    let written = entry.metadata().and_then(|m| m.modified()).with_context(failed)?;
                    found.push(Found { number, said, written });
                }
            }
            #[cfg(feature = "store")]
            Self::Store(store) => {
                for (name, written) in store.list(stem)? {
                    let number = name.rsplit('/').next().and_then(|name| name.strip_suffix(".json"));
                    let Some(number) = number.and_then(|number| number.parse().ok()) else { continue };
                    let said = store.read(&name)?.and_then(|bytes| serde_json::from_slice(&bytes).ok());
                    found.push(Found { number, said, written });
                }
            }
        }
        found.sort_by_key(|claim| claim.number);
        Ok(found)
    }

    /// The time of the board's own clock.
    fn now(&self, worker: &str) -> Result<SystemTime> {
        let clock = format!(".clock-{}", worker.replace([':', '/'], "-"));
        match self {
            Self::Folder(folder) => {
                let path = folder.join(clock);
                let failed = || path.display().to_string();
                std::fs::write(&path, b"now").with_context(failed)?;
                std::fs::metadata(&path).and_then(|m| m.modified()).with_context(failed)
            }
            #[cfg(feature = "store")]
            Self::Store(store) => Ok(store.now(&clock)?),
        }
    }

    /// Whether each question is a request that somebody pays.
    fn is_far(&self) -> bool {
        !matches!(self, Self::Folder(_))
    }
}

/// What came of asking for a point.
#[derive(Debug)]
pub(crate) enum Taken {
    /// It is this worker's until the claim is given back.
    Mine(Claim),
    /// Another works on it.
    Busy,
    /// Too many died on it: who they were.
    Deadly(Vec<String>),
}

impl Claims {
    /// Claims in the folder of a sweep.
    pub(crate) fn new(sweep: &Path, lease: Duration) -> Result<Self> {
        let folder = sweep.join("claims");
        std::fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
        Ok(Self::on(Board::Folder(folder), sweep, lease))
    }

    /// Claims under a URL.
    #[cfg(feature = "store")]
    pub(crate) fn at(url: &str, sweep: &Path, lease: Duration) -> Result<Self> {
        use object_folders::{Options, Patience};
        // A question that takes longer than the lease has lost it.
        let patience = Patience::of((lease / 2).min(Patience::default().in_all));
        let options = Options { patience, ..Options::from_environment() };
        Ok(Self::on(Board::Store(object_folders::Board::open(url, &options)?), sweep, lease))
    }

    fn on(board: Board, sweep: &Path, lease: Duration) -> Self {
        let worker = format!("{}:{}", host(), std::process::id());
        let (sweep, board, asked) = (sweep.to_owned(), Arc::new(board), AtomicU64::new(0));
        Self { sweep, board, worker, lease, asked }
    }

    /// The name of a run's point: where its folder is in that of the sweep. Machines may have that under other names.
    pub(crate) fn point(&self, run: &Path) -> String {
        let inside = run.strip_prefix(&self.sweep);
        inside.unwrap_or(run).to_string_lossy().into_owned()
    }

    /// How long a worker that found nothing to do waits before it looks again.
    pub(crate) fn pause(&self) -> Duration {
        (self.lease / 8).min(Duration::from_secs(if self.board.is_far() { 10 } else { 2 }))
    }

    /// Asks for a point.
    pub(crate) fn take(&self, point: &str, stop: &Stop) -> Result<Taken> {
        let found = self.board.found(&Note::of(point, 0).stem)?;
        let dead = |claim: &&Found| claim.said.as_ref().is_none_or(|said| said.state == State::Held);
        if let Some(last) = found.last()
            && dead(&last)
        {
            let said = last.said.as_ref().and_then(|said| Duration::try_from_secs_f64(said.lease).ok());
            let (lease, now) = (said.unwrap_or(self.lease), self.board.now(&self.worker)?);
            if now.duration_since(last.written).unwrap_or_default() < lease {
                return Ok(Taken::Busy);
            }
        }
        let died: Vec<String> = found.iter().filter(dead).map(Found::name).collect();
        if died.len() >= DEATHS {
            return Ok(Taken::Deadly(died));
        }
        let note = Note::of(point, found.last().map_or(0, |last| last.number + 1));
        let asked = self.asked.fetch_add(1, Ordering::Relaxed);
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let said = Said {
            point: point.to_owned(),
            worker: self.worker.clone(),
            lease: self.lease.as_secs_f64(),
            state: State::Held,
            asker: format!("{asked}@{}", since.as_nanos()),
        };
        if !self.board.create(&note, &said)? {
            return Ok(Taken::Busy);
        }
        Ok(Taken::Mine(Claim::new(Arc::clone(&self.board), note, said, stop)))
    }
}

/// What this machine is called.
pub(crate) fn host() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    if host.trim().is_empty() { "worker".to_owned() } else { host.trim().to_owned() }
}

impl Found {
    fn name(&self) -> String {
        self.said.as_ref().map_or_else(|| "a worker without a name".to_owned(), |said| said.worker.clone())
    }
}

/// Writes what a claim says into the file that is there: its time is what others look at.
fn write(path: &Path, said: &Said) -> Result<()> {
    let failed = || path.display().to_string();
    let mut file = std::fs::File::options().write(true).open(path).with_context(failed)?;
    let mut text = serde_json::to_string(said).with_context(failed)?;
    // Of one length whatever its state, so that it can be written over itself.
    while text.len() % 64 != 63 {
        text.push(' ');
    }
    text.push('\n');
    file.write_all(text.as_bytes()).with_context(failed)?;
    file.set_len(text.len() as u64).with_context(failed)
}

/// A point that is this worker's. Dropped, it is given back.
#[derive(Debug)]
pub(crate) struct Claim {
    board: Arc<Board>,
    note: Note,
    said: Mutex<Said>,
    /// What the work listens to: a signal, or the loss of the claim.
    stop: Stop,
    over: Arc<AtomicBool>,
    beat: Option<JoinHandle<()>>,
}

impl Claim {
    fn new(board: Arc<Board>, note: Note, said: Said, signal: &Stop) -> Self {
        let (stop, over) = (Stop::default().shared(), Arc::new(AtomicBool::new(false)));
        let beat = std::thread::spawn({
            let (board, note, said) = (Arc::clone(&board), note.clone(), said.clone());
            let (stop, over, signal) = (stop.clone(), Arc::clone(&over), signal.clone());
            move || beat(&board, &note, &said, &stop, &over, &signal)
        });
        Self { board, note, said: Mutex::new(said), stop, over, beat: Some(beat) }
    }

    /// What the work listens to.
    pub(crate) fn stop(&self) -> &Stop {
        &self.stop
    }

    /// The work is done.
    pub(crate) fn done(self) {
        self.said.lock().unwrap_or_else(PoisonError::into_inner).state = State::Done;
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(beat) = self.beat.take() {
            beat.thread().unpark();
            let _ = beat.join();
        }
        let said = self.said.get_mut().unwrap_or_else(PoisonError::into_inner);
        if said.state == State::Held {
            said.state = State::Released;
        }
        // Where this cannot be written the lease ends by itself.
        let _ = self.board.write(&self.note, said);
    }
}

/// Keeps a claim alive until it is over, and stops the work when a signal comes or the claim is another's.
fn beat(board: &Board, note: &Note, said: &Said, stop: &Stop, over: &AtomicBool, signal: &Stop) {
    let lease = Duration::from_secs_f64(said.lease);
    let (mut written, mut tried, next) = (Instant::now(), Instant::now(), note.next());
    while !over.load(Ordering::Relaxed) {
        std::thread::park_timeout((lease / 8).min(Duration::from_millis(200)));
        if let Some(number) = signal.signal() {
            stop.ask(number);
        }
        // Whoever was asleep for longer than its lease has lost it, even if nobody took it: he cannot know.
        if written.elapsed() > lease || (!board.is_far() && board.has(&next)) {
            return stop.ask(LOST);
        }
        if written.elapsed() > lease / 4 && tried.elapsed() > lease / 16 {
            tried = Instant::now();
            if board.is_far() && board.has(&next) {
                return stop.ask(LOST);
            }
            // The lease runs from before the writing: nobody knows when it will be over.
            if board.write(note, said).is_ok() {
                written = tried;
            }
        }
    }
}

/// In place of a signal's number: the claim is another's.
pub(crate) const LOST: usize = usize::MAX;

#[cfg(test)]
mod tests {
    use super::*;

    /// Long enough for a machine that has other things to do.
    const LEASE: Duration = Duration::from_secs(2);

    fn mine(taken: Taken) -> Claim {
        match taken {
            Taken::Mine(claim) => claim,
            other => panic!("{other:?}"),
        }
    }

    fn names(taken: Taken) -> Vec<String> {
        match taken {
            Taken::Deadly(names) => names,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_point_has_one_worker_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let stop = Stop::default();
        let (a, b) = (Claims::new(folder.path(), LEASE).unwrap(), Claims::new(folder.path(), LEASE).unwrap());
        let claim = mine(a.take("p", &stop).unwrap());
        assert!(matches!(b.take("p", &stop).unwrap(), Taken::Busy));
        let other = mine(b.take("q", &stop).unwrap());
        // It is kept alive.
        std::thread::sleep(LEASE * 3 / 2);
        assert!(matches!(b.take("p", &stop).unwrap(), Taken::Busy));
        assert!(claim.stop().signal().is_none());
        drop(claim);
        mine(b.take("p", &stop).unwrap()).done();
        // Done or given back: nobody died.
        drop((0..4).map(|_| mine(a.take("p", &stop).unwrap())).next());
        drop(other);
    }

    #[test]
    fn many_who_ask_at_once_get_it_once() {
        let folder = tempfile::tempdir().unwrap();
        let stop = Stop::default();
        for point in 0..20 {
            let name = format!("point {point}");
            let got = std::thread::scope(|scope| {
                let asked: Vec<_> = (0..8)
                    .map(|_| {
                        let (folder, stop, name) = (folder.path(), stop.clone(), &name);
                        let claims = || Claims::new(folder, Duration::from_secs(60)).unwrap();
                        scope.spawn(move || match claims().take(name, &stop).unwrap() {
                            Taken::Mine(claim) => Some(claim),
                            _ => None,
                        })
                    })
                    .collect();
                asked.into_iter().filter_map(|a| a.join().unwrap()).collect::<Vec<_>>()
            });
            assert_eq!(got.len(), 1);
        }
    }

    /// A claim whose worker died: nobody writes it any more.
    fn dead(folder: &Path, point: &str, number: u64) {
        let stem = blake3::hash(point.as_bytes()).to_hex()[..16].to_owned();
        let path = folder.join("claims").join(format!("{stem}.{number}.json"));
        std::fs::File::create_new(&path).unwrap();
        let (point, worker) = (point.to_owned(), format!("gone:{number}"));
        let said =
            Said { point, worker, lease: LEASE.as_secs_f64(), state: State::Held, asker: String::new() };
        write(&path, &said).unwrap();
        std::thread::sleep(LEASE + Duration::from_millis(100));
    }

    #[test]
    fn a_dead_worker_loses_its_point_and_two_make_it_deadly() {
        let folder = tempfile::tempdir().unwrap();
        let stop = Stop::default();
        let claims = Claims::new(folder.path(), LEASE).unwrap();
        dead(folder.path(), "p", 0);
        let claim = mine(claims.take("p", &stop).unwrap());
        drop(claim);
        dead(folder.path(), "p", 2);
        assert_eq!(names(claims.take("p", &stop).unwrap()), ["gone:0", "gone:2"]);
        // One that says nothing is as dead as another.
        let stem = blake3::hash(b"q").to_hex()[..16].to_owned();
        std::fs::write(folder.path().join(format!("claims/{stem}.0.json")), "").unwrap();
        assert!(matches!(claims.take("q", &stop).unwrap(), Taken::Busy));
        std::thread::sleep(LEASE + Duration::from_millis(100));
        drop(mine(claims.take("q", &stop).unwrap()));
    }

    #[test]
    fn whoever_lost_its_claim_stops() {
        let folder = tempfile::tempdir().unwrap();
        let (stop, claims) = (Stop::default(), Claims::new(folder.path(), LEASE).unwrap());
        let claim = mine(claims.take("p", &stop).unwrap());
        let stem = blake3::hash(b"p").to_hex()[..16].to_owned();
        std::fs::write(folder.path().join(format!("claims/{stem}.1.json")), "").unwrap();
        std::thread::sleep(LEASE);
        assert_eq!(claim.stop().signal(), Some(LOST));
        // A signal reaches the work.
        let claim = mine(claims.take("r", &stop).unwrap());
        stop.ask(15);
        std::thread::sleep(LEASE);
        assert_eq!(claim.stop().signal(), Some(15));
    }
}
