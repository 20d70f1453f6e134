//! The symbolic transformer and what it is compared with: its configuration as a learner, and its own commands.

pub(crate) mod config;

mod network;

mod model_files;

pub(crate) mod sampling;

mod completion;

mod eval;

mod subject;

mod dry_run;

pub(crate) mod report;

mod table;

pub(crate) mod export;

pub(crate) mod judge;

use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow};
use serde_json::Value;

use crate::learner::Learner;
use crate::signals::Stop;
use crate::sweep::{Plan, Point, Tables};
use crate::{data, keys};
use config::{Config, Model};
use report::Run;
use subject::OnData;

impl Learner for Config {
    type Subject = OnData;

    const CHANGEABLE: &'static [&'static str] = &config::CHANGEABLE;
    const SILENT: &'static [&'static str] = &["expect", "suites"];
    const JUDGES_DIVERGED: bool = false;

    fn from_text(name: &str, text: &str, sets: &[String]) -> Result<Self> {
        Self::from_text(name, text, sets)
    }

    fn knows(key: &str) -> bool {
        keys::of::<Self>().contains(&key)
    }

    fn filled(table: &toml::Table) -> toml::Table {
        let full = toml::from_str::<Self>(&table.to_string()).ok();
        full.and_then(|config| toml::Table::try_from(config).ok()).unwrap_or_else(|| table.clone())
    }

    fn to_toml(&self) -> Result<String> {
        self.to_toml()
    }

    fn digest(&self) -> Result<String> {
        self.digest()
    }

    fn name(&self) -> Option<&str> {
        None
    }

    fn device(&self) -> &str {
        &self.device
    }

    fn threads(&self) -> usize {
        self.threads
    }

    fn shared(&self) -> Option<&str> {
        Some(&self.data)
    }

    fn prepare(shared: &str, quiet: bool, stop: &Stop) -> Result<()> {
        data::load(shared, quiet, stop).map(|_| ())
    }

    fn dry_run(&self, json: bool) -> Result<u8> {
        dry_run::dry_run(self, json)
    }

    fn headline(&self) -> Result<String> {
        Ok(format!("{} on {}, precision {}", self.model.name(), self.data, self.precision))
    }

    fn open(&self, folder: &Path, quiet: bool, stop: &Stop) -> Result<OnData> {
        OnData::open(self, folder, quiet, stop)
    }

    fn report(folder: &Path) -> Result<PathBuf> {
        report::write(&[folder.to_path_buf()], None)
    }

    fn print_summary(evaluation: &Value) {
        eval::print_summary(evaluation);
    }

    fn is_judged(&self, folder: &Path) -> Result<bool> {
        let run = Run::read(folder)?;
        let judged = eval::is_whole(&run.eval, folder, self)?;
        // Whoever asks for other updates, intervals or patience than the run had is not answered by it.
        let as_long = Self { threads: self.threads, expect: None, ..run.config.clone() }
            == Self { expect: None, ..self.clone() };
        Ok(judged && as_long && (!run.is_trained() || run.ended().is_some()))
    }

    fn best_loss(&self, folder: &Path) -> Result<f64> {
        Run::read(folder)?.best().ok_or_else(|| match self.model {
            Model::Ngram => anyhow!("[select]: an n-gram run has no validation loss"),
            _ => anyhow!("[select]: {} has no validation loss", folder.display()),
        })
    }

    fn check_in_sweep(&self) -> Result<()> {
        Ok(())
    }
}

impl Tables for Config {
    fn tables(plan: &Plan<Self>, folder: &Path, points: &[Point<Self>]) -> Result<(Value, PathBuf)> {
        table::write(plan, folder, points)
    }
}
