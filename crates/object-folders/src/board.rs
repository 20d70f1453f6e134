//! Small objects by which machines tell one another who does what: each is created by exactly one of all who ask at once, may be
//! written again, and has the time of its last writing, by the store's clock.

use std::collections::BTreeMap;
use std::future::Future;
use std::time::SystemTime;

use tokio::runtime::{Builder, Runtime};

use crate::error::{Kind, Refusal};
use crate::options::Options;
use crate::place::{Place, Verb};

/// Notes under a URL.
pub struct Board {
    place: Place,
    /// One for all questions: connections belong to it.
    runtime: Runtime,
}

impl std::fmt::Debug for Board {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Board").field("url", &self.place.url()).finish_non_exhaustive()
    }
}

impl Board {
    /// The board under a URL. That the store keeps its promise is tried: a note that is there cannot be created.
    ///
    /// # Errors
    /// The URL, the rights, or a store that creates what is there already.
    pub fn open(url: &str, options: &Options) -> Result<Self, Refusal> {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime =
            runtime.map_err(|e| Refusal::new(Kind::Local, format!("the clients of stores: {e}")))?;
        let board = Self { place: Place::open(url, Verb::Put, options)?, runtime };
        board.create(TRIED, b"a note that is there cannot be created\n")?;
        if board.create(TRIED, b"\n")? {
            let message = format!(
                "{url}: the store creates what is there already: nobody could have anything alone in it"
            );
            return Err(Refusal::new(Kind::Refused, message)
                .help("it would have to know PUT with `If-None-Match: *`, as Amazon's does"));
        }
        Ok(board)
    }

    /// Creates a note; false where one is there. Of all who ask at once one gets true.
    ///
    /// # Errors
    /// The store refuses, or does not answer in time.
    pub fn create(&self, name: &str, bytes: &[u8]) -> Result<bool, Refusal> {
        self.asked(self.place.create(name, bytes.to_vec()))
    }

    /// Writes a note, whether it is there or not.
    ///
    /// # Errors
    /// The store refuses, or does not answer in time.
    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<(), Refusal> {
        self.asked(self.place.write(name, bytes.to_vec()))
    }

    /// What a note says, if it is there.
    ///
    /// # Errors
    /// The store refuses, or does not answer in time.
    pub fn read(&self, name: &str) -> Result<Option<Vec<u8>>, Refusal> {
        self.asked(self.place.read(name))
    }

    /// The notes in a folder of the board, by their whole names, and when each was written last.
    ///
    /// # Errors
    /// The store refuses, or does not answer in time.
    pub fn list(&self, folder: &str) -> Result<BTreeMap<String, SystemTime>, Refusal> {
        self.asked(self.place.times(folder))
    }

    /// The time now, by the store's clock: that of a note which is written for it.
    ///
    /// # Errors
    /// The store refuses, or does not answer in time.
    pub fn now(&self, note: &str) -> Result<SystemTime, Refusal> {
        self.write(note, b"now")?;
        self.asked(self.place.time(note))
    }

    fn asked<T>(&self, question: impl Future<Output = Result<T, Refusal>>) -> Result<T, Refusal> {
        self.runtime.block_on(question)
    }
}

/// The note by which a store is tried.
const TRIED: &str = ".tried";
