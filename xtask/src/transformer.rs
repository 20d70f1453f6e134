//! The symbolic transformer and what it is compared with: its configuration as a learner, and its own commands.

pub(crate) mod config;

pub(crate) mod code;

pub(crate) mod network;

mod measures;
mod model_files;

pub(crate) mod sampling;

mod completion;

mod scores;
mod semantics;

mod eval;

mod plain_texts;
mod tasks;

mod subject;

mod dry_run;

pub(crate) mod report;

mod table;

mod verdict;

pub(crate) mod export;

pub(crate) mod judge;

use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow, bail};
use fol::notation::Code;
use serde_json::Value;

use crate::learner::{Kind, Learner};
use crate::signals::Stop;
use crate::sweep::{Plan, Point, Summary, Tables};
use crate::{data, inference, texts};
use config::Config;
use report::Run;
use subject::OnData;

/// Measures that count tokens.
const PER_TOKEN: [&str; 8] =
    ["excess", "kl", "nats_per_token", "top1", "top1_ratio", "excess_seen", "excess_new", "excess_renamed"];

/// Measures of answers to inference tasks.
const OF_ANSWERS: [&str; 4] = ["valid", "relevant", "exact", "valid_deep"];

impl Learner for Config {
    type Subject = OnData;

    const KIND: Kind = Kind::Transformer;
    const CHANGEABLE: &'static [&'static str] = &[
        "epochs",
        "max_steps",
        "patience",
        "log_every",
        "eval_every",
        "save_every",
        "threads",
        "gradient_checkpointing",
    ];
    const SILENT: &'static [&'static str] = &["expect", "suites", "transfer"];
    const JUDGES_DIVERGED: bool = false;

    const EXPECTS: &'static [&'static str] =
        &["params", "excess_max", "top1_min", "parsed_min", "levels_p_min", "train_nats_max", "seconds_max"];

    const MEASURES: &'static [&'static str] = &[
        "excess",
        "kl",
        "nats_per_token",
        "bits_per_formula",
        "excess_bits",
        "bits_per_text",
        "valid",
        "relevant",
        "exact",
        "valid_deep",
        "valid/",
        "top1",
        "top1_ratio",
        "parsed",
        "excess_seen",
        "excess_new",
        "excess_renamed",
        "compute",
        "seconds",
        "transfer/",
        "structure",
        "h3/",
    ];

    fn optimum_of(measure: &str) -> Option<&'static str> {
        match measure {
            "bits_per_formula" => Some("optimum_bits"),
            "nats_per_token" => Some("optimum"),
            _ => None,
        }
    }

    fn parameters(&self) -> Result<Option<usize>> {
        if !self.model.has_weights() || self.entities == Some(config::NamesOf::Data) {
            return Ok(None);
        }
        let code =
            if self.is_plain() { Code::PLAIN } else { code::of_law(self, &data::law_of_run(&self.data)?)? };
        Ok(Some(network::of(self, &code)?.layout().len()))
    }

    fn can_be_judged(&self, measure: &str, beside: &Self) -> Result<()> {
        // A text has fewer tokens in one code than in another, so what a token costs is no common measure.
        let code = |c: &Self| (c.tokenization, c.notation, c.double_parentheses.unwrap_or(0));
        let per_token = PER_TOKEN.contains(&measure) || measure.starts_with("transfer/");
        if per_token && code(self) != code(beside) {
            bail!(
                "measure = \"{measure}\" is per token, and left and right have other tokens: bits_per_formula and \
                 excess_bits can be compared"
            );
        }
        if ["compute", "seconds"].contains(&measure) {
            return Ok(());
        }
        // What is judged by answers or by bits alone, beside no optimum.
        let of_answers = OF_ANSWERS.contains(&measure) || measure.starts_with("valid/");
        let (of_texts, data) = (measure == "bits_per_text", &self.data);
        let is_file = data::is_texts(data);
        let is_inference = !is_file && data::is_inference(data);
        if (is_file, is_inference) != (of_texts, of_answers) {
            let kind = match (is_file, is_inference) {
                (true, _) => "is a file of texts, which bits_per_text judges",
                (_, true) => {
                    "has inference tasks, which valid, relevant, exact and valid_deep judge: no optimum is known"
                }
                _ => "has texts of a law: neither answers nor a file of texts",
            };
            bail!("measure = \"{measure}\": data = \"{data}\" {kind}");
        }
        if is_file || is_inference {
            return Ok(());
        }
        if data::law_of_run(&self.data)?.has_statements() {
            bail!("data = \"{}\": of its law no optimum is known", self.data);
        }
        Ok(())
    }

    fn check(&self, name: &str) -> Result<()> {
        self.check(name)
    }

    fn name(&self) -> Option<&str> {
        None
    }

    fn device(&self) -> &str {
        &self.device
    }

    #[cfg(not(feature = "programs"))]
    fn is_program(&self) -> bool {
        self.program.is_some()
    }

    fn threads(&self) -> usize {
        self.threads
    }

    fn shared(&self) -> Option<&str> {
        Some(&self.data)
    }

    fn prepare(shared: &str, quiet: bool, stop: &Stop) -> Result<()> {
        if data::is_texts(shared) {
            return texts::Texts::open(shared).map(|_| ());
        }
        if data::is_inference(shared) {
            return inference::load(shared, quiet, stop).map(|_| ());
        }
        data::load(shared, quiet, stop).map(|_| ())
    }

    fn forecast(&self) -> Result<Value> {
        dry_run::forecast(self)
    }

    fn forecast_in_words(&self, forecast: &Value) -> Result<String> {
        Ok(dry_run::in_words(self, forecast))
    }

    fn headline(&self) -> Result<String> {
        let program = self.program.as_ref().map_or_else(String::new, |program| format!(" by {program}"));
        Ok(format!("{}{program} on {}, precision {}", self.model.name(), self.data, self.precision))
    }

    fn open(&self, folder: &Path, quiet: bool, stop: &Stop) -> Result<OnData> {
        OnData::open(self, folder, quiet, stop)
    }

    fn report(folder: &Path) -> Result<PathBuf> {
        report::write(&[folder.to_path_buf()], None)
    }

    fn in_short(evaluation: &Value) -> String {
        plain_texts::in_short(evaluation) + &tasks::in_short(evaluation) + &eval::in_short(evaluation)
    }

    fn is_judged(&self, folder: &Path) -> Result<bool> {
        let run = Run::read(folder)?;
        let judged = eval::is_whole(&run.eval, folder, self)?;
        // Whoever asks for other updates, intervals or patience than the run had is not answered by it.
        let (threads, gradient_checkpointing) = (self.threads, self.gradient_checkpointing);
        let as_long = Self { threads, gradient_checkpointing, expect: None, ..run.config.clone() }
            == Self { expect: None, ..self.clone() };
        Ok(judged && as_long && (!run.is_trained() || run.ended().is_some()))
    }

    fn best_loss(&self, folder: &Path) -> Result<f64> {
        Run::read(folder)?.best().ok_or_else(|| match self.model {
            model if !model.has_weights() => {
                anyhow!("[select]: a run of model = \"{}\" has no validation loss", model.name())
            }
            _ => anyhow!("[select]: {} has no validation loss", folder.display()),
        })
    }

    fn check_in_sweep(&self) -> Result<()> {
        Ok(())
    }
}

impl Tables for Config {
    fn summary(plan: &Plan<Self>, points: &[Point<Self>]) -> Result<Summary> {
        table::summary(plan, points)
    }
}
