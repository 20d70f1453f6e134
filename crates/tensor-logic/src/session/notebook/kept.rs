//! What a notebook keeps between questions: the engine, with what it computed of the last program.

use std::fmt;
use std::sync::Arc;

use super::settings::{EngineKind, Settings};
use crate::auto::Auto;
use crate::carry::same;
use crate::engine::Engine;
use crate::fast::Fast;
use crate::profile::Profile;
use crate::program::Program;
use crate::reference::Reference;

/// An engine and the program that it saw last. A copy of a notebook begins without.
#[derive(Default)]
pub(super) struct Kept(Option<(Box<dyn Engine>, Program)>);

impl Clone for Kept {
    fn clone(&self) -> Kept {
        Kept(None)
    }
}

impl fmt::Debug for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Kept(…)" } else { "Kept" })
    }
}

impl Kept {
    /// Forgets what was computed.
    pub(super) fn forget(&mut self) {
        self.0 = None;
    }

    /// The engine for a program, with what of the last one still holds.
    pub(super) fn engine(&mut self, settings: &Settings, program: &Program) -> Box<dyn Engine> {
        let mut engine = match self.0.take() {
            Some((mut engine, before)) => {
                engine.carry(before.stamp.number(), program, &same(&before, program));
                engine
            }
            None => fresh(settings),
        };
        if let Some(stop) = &settings.stop {
            engine.stop_when(Arc::clone(stop));
        }
        engine
    }

    /// Notes what is done from now on, or nothing any more.
    pub(super) fn observe(&mut self, on: bool, settings: &Settings) {
        if self.0.is_none() {
            self.0 = Some((fresh(settings), Program::default()));
        }
        if let Some((engine, _)) = &mut self.0 {
            engine.observe(on);
        }
    }

    /// What was noted.
    pub(super) fn observed(&mut self) -> Profile {
        self.0.as_mut().and_then(|(engine, _)| engine.observed()).unwrap_or_default()
    }

    /// Keeps the engine for the next question.
    pub(super) fn keep(&mut self, engine: Box<dyn Engine>, program: Program) {
        self.0 = Some((engine, program));
    }
}

fn fresh(settings: &Settings) -> Box<dyn Engine> {
    match settings.engine {
        EngineKind::Auto => Box::new(Auto::new(Box::new(settings.fast()))),
        EngineKind::Reference => Box::new(Reference::default()),
    }
}

impl Settings {
    /// The evaluator of blocks.
    pub(super) fn fast(&self) -> Fast {
        Fast::with_storage(self.storage).with_precision(self.precision)
    }
}
