//! What `@minimize` learns, kept in a folder: the options, and signals, on which learning is kept before the command ends.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use tensor_logic::checkpoints::{Checkpoints, Every};
use tensor_logic::engine::Engine;

use crate::input::Evaluation;
use crate::interrupt::Interrupt;

/// How often learning is kept if nothing is said.
const SECONDS: u64 = 30;

/// Where and how often learning is kept.
#[derive(Debug, Args)]
pub(crate) struct Keeping {
    /// Keep what `@minimize` learns in this folder, every half minute, at the end and on Ctrl-C; the same command goes on
    /// from there, and what comes out has the same bits.
    #[arg(long, value_name = "FOLDER")]
    checkpoints: Option<PathBuf>,
    /// Keep it every N steps.
    #[arg(long, value_name = "N", requires = "checkpoints", value_parser = clap::value_parser!(u64).range(1..))]
    every: Option<u64>,
}

impl Keeping {
    /// Where learning is kept, if it is. Who is given is told where it goes on and where it was left.
    pub(crate) fn checkpoints<'a>(
        &self,
        evaluation: &Evaluation,
        tell: impl FnMut(&str) + 'a,
    ) -> Option<Checkpoints<'a>> {
        let every = self.every.map_or(Every::Time(Duration::from_secs(SECONDS)), Every::Steps);
        let checkpoints = Checkpoints::new(self.checkpoints.clone()?, every, tell);
        let settings = evaluation.of_numbers();
        Some(settings.into_iter().fold(checkpoints, |kept, (name, value)| kept.with_setting(name, value)))
    }

    /// Listens to signals where something would be lost, and lets them stop the engine.
    pub(crate) fn watch(&self, engine: &mut dyn Engine) -> std::io::Result<Option<Interrupt>> {
        if self.checkpoints.is_none() {
            return Ok(None);
        }
        let interrupt = Interrupt::watch(&Interrupt::ALL)?;
        engine.stop_when(interrupt.flag());
        Ok(Some(interrupt))
    }
}
