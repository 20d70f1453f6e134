//! Learning that is kept, so that it goes on where it was interrupted: a folder with states of every `@minimize`.
//!
//! Enter at [`Checkpoints`]. `FOLDER/minimize-2/step-0000500.safetensors` is the second `@minimize` of the program behind 500 steps;
//! the newest two are kept. Files come under a temporary name and are renamed, so that a kill at any moment leaves whole ones.
//! A state of another learning (`about`), a damaged one and a file of that name that is no state are refused; nothing is
//! ever written over, and nothing removed that is no older state of the same learning.

mod about;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use calculemus_base::file;
use training::files::{Lock, Sharing, lock};

use crate::ast::Span;
use crate::error::{Code, Refusal, Result};
use crate::learn::{Moment, State, Stored};
use about::About;
pub(in crate::session) use about::Learning;

/// How often learning is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Every {
    /// When so many steps were taken since it was kept.
    Steps(u64),
    /// When so much time has passed.
    Time(Duration),
}

/// Where learning is kept.
pub struct Checkpoints<'a> {
    folder: PathBuf,
    every: Every,
    settings: Vec<(&'static str, String)>,
    tell: Box<dyn FnMut(&str) + 'a>,
}

impl<'a> Checkpoints<'a> {
    /// In a folder, which need not be there. Who is given is told where learning goes on and where it was left.
    pub fn new(folder: impl Into<PathBuf>, every: Every, tell: impl FnMut(&str) + 'a) -> Checkpoints<'a> {
        Checkpoints { folder: folder.into(), every, settings: Vec::new(), tell: Box::new(tell) }
    }

    /// The same, where numbers may have other bits with another value of this setting of the engine.
    #[must_use]
    pub fn with_setting(mut self, name: &'static str, value: impl Into<String>) -> Checkpoints<'a> {
        self.settings.push((name, value.into()));
        self
    }

    /// The states of one learning, which nobody else writes meanwhile.
    ///
    /// # Errors
    /// `file-not-found` where the folder cannot be made, read or locked.
    pub(super) fn of(&mut self, learning: &Learning<'_>) -> Result<Kept<'_>> {
        let folder = self.folder.join(format!("minimize-{}", learning.query().0));
        let cannot = |error: &dyn std::fmt::Display| {
            let message = format!("what is learned cannot be kept in `{}`: {error}", folder.display());
            Refusal::new(Code::FileNotFound, learning.span, message)
        };
        std::fs::create_dir_all(&folder).map_err(|error| cannot(&error))?;
        let lock = lock(&folder, Sharing::Alone).map_err(|error| cannot(&error))?;
        let found = states(&folder).map_err(|error| cannot(&error))?;
        remove_leftovers(&folder).map_err(|error| cannot(&error))?;
        Ok(Kept {
            about: learning.about(&self.settings),
            span: learning.span,
            folder,
            every: self.every,
            tell: &mut *self.tell,
            found,
            last: None,
            _lock: lock,
        })
    }
}

/// The states of one learning.
pub(super) struct Kept<'a> {
    about: About,
    span: Span,
    folder: PathBuf,
    every: Every,
    tell: &'a mut dyn FnMut(&str),
    /// Steps and files, the oldest first.
    found: Vec<(u64, PathBuf)>,
    /// The step of the newest state, and when it was written or read.
    last: Option<(u64, Instant)>,
    _lock: Lock,
}

impl Kept<'_> {
    /// The newest state.
    ///
    /// # Errors
    /// `file-format` where it is damaged, or of another learning.
    pub(super) fn newest(&mut self) -> Result<Option<Stored>> {
        let Some((step, path)) = self.found.last().cloned() else { return Ok(None) };
        let stored = self.read(step, &path).map_err(|reason| self.refused(&path, &reason))?;
        self.last = Some((step, Instant::now()));
        let (path, steps) = (path.display(), stored.steps());
        (self.tell)(&match step == steps {
            true => format!("all {steps} steps were learned before ({path})"),
            false => format!("learning goes on behind step {step} of {steps} ({path})"),
        });
        // A kill may have come between a state and the removal of the one that it made superfluous.
        self.keep_two()?;
        Ok(Some(stored))
    }

    /// A state of this learning, or why it is none.
    fn read(&self, step: u64, path: &Path) -> std::result::Result<Stored, Unread> {
        let bytes =
            std::fs::read(path).map_err(|error| Unread::Broken(format!("cannot be read: {error}")))?;
        let stored = Stored::read(&bytes).map_err(Unread::Broken)?;
        let about = serde_json::from_value::<About>(stored.about.clone());
        let about = about.map_err(|_| Unread::Broken("is no state of learning".to_owned()))?;
        if let Some(difference) = self.about.differs(&about) {
            return Err(Unread::Other(difference));
        }
        if stored.step() != step {
            return Err(Unread::Broken(format!(
                "has another name: it is the state behind step {}",
                stored.step()
            )));
        }
        Ok(stored)
    }

    fn refused(&self, path: &Path, unread: &Unread) -> Refusal {
        let shown = path.display();
        let (message, help) = match unread {
            Unread::Other(difference) => (
                format!("`{shown}` is a state of another learning: {difference}"),
                "name another folder, or remove this one to learn from the start".to_owned(),
            ),
            Unread::Broken(reason) => {
                let older = self.found.iter().rev().skip(1);
                let whole = older.into_iter().find(|(step, path)| self.read(*step, path).is_ok());
                let help = whole.map_or_else(
                    || "no older state is whole: name another folder, or remove the file to learn from the start".to_owned(),
                    |(step, path)| format!("`{}` is whole: remove the other file to go on behind step {step}", path.display()),
                );
                (format!("`{shown}` {reason}"), help)
            }
        };
        Refusal::new(Code::FileFormat, self.span, message).help(help)
    }

    /// Writes a state where one is due.
    ///
    /// # Errors
    /// `file-not-found` where it cannot be written.
    pub(super) fn stands<'s>(
        &mut self,
        moment: Moment,
        step: u64,
        state: &dyn Fn() -> State<'s>,
    ) -> Result<()> {
        let is_newer = self.last.is_none_or(|(last, _)| step > last);
        if is_newer && (moment != Moment::Between || self.is_due(step)) {
            self.write(step, state())?;
        }
        if moment == Moment::Interrupted {
            let (path, steps) = (self.path(step), state().steps());
            (self.tell)(&format!(
                "learning stands behind step {step} of {steps} ({}): the same command goes on from there",
                path.display()
            ));
        }
        Ok(())
    }

    fn is_due(&self, step: u64) -> bool {
        match (self.every, self.last) {
            (Every::Steps(every), last) => step - last.map_or(0, |(last, _)| last) >= every,
            (Every::Time(every), Some((_, since))) => since.elapsed() >= every,
            (Every::Time(_), None) => true,
        }
    }

    fn write(&mut self, step: u64, state: State<'_>) -> Result<()> {
        let path = self.path(step);
        let cannot = |error: &dyn std::fmt::Display| {
            let message = format!("`{}` cannot be written: {error}", path.display());
            Refusal::new(Code::FileNotFound, self.span, message)
        };
        let about = serde_json::to_value(&self.about).map_err(|error| cannot(&error))?;
        let bytes = state.bytes(about).map_err(|error| cannot(&error))?;
        if path.symlink_metadata().is_ok() {
            return Err(cannot(&"something of that name is there"));
        }
        file::write(&path, &bytes).map_err(|error| cannot(&error))?;
        self.last = Some((step, Instant::now()));
        self.found.push((step, path));
        self.keep_two()
    }

    /// Removes all states but the newest two.
    fn keep_two(&mut self) -> Result<()> {
        while self.found.len() > 2 {
            let (step, old) = self.found.remove(0);
            // What is no state of this learning is not ours to remove.
            if self.read(step, &old).is_ok() {
                std::fs::remove_file(&old).map_err(|error| {
                    let message = format!("`{}` cannot be removed: {error}", old.display());
                    Refusal::new(Code::FileNotFound, self.span, message)
                })?;
            }
        }
        Ok(())
    }

    fn path(&self, step: u64) -> PathBuf {
        self.folder.join(format!("{BEGINNING}{step:07}{ENDING}"))
    }
}

/// Why a file is no state of this learning.
enum Unread {
    /// It is of another one.
    Other(String),
    /// It is none, or not whole.
    Broken(String),
}

const BEGINNING: &str = "step-";
const ENDING: &str = ".safetensors";

/// The states in a folder by their names, the oldest first.
fn states(folder: &Path) -> std::io::Result<Vec<(u64, PathBuf)>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let step = name.strip_prefix(BEGINNING).and_then(|name| name.strip_suffix(ENDING));
        if let Some(step) = step.and_then(|step| step.parse::<u64>().ok()) {
            found.push((step, path));
        }
    }
    found.sort();
    Ok(found)
}

/// Removes what a kill left behind while a state was written.
fn remove_leftovers(folder: &Path) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let of_ours = name.starts_with(BEGINNING) && name.contains(ENDING) && name.ends_with(file::TEMPORARY);
        if of_ours && path.is_file() {
            std::fs::remove_file(&path)?;
        }
    }
    Ok(())
}
