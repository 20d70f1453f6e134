//! The deciding comparisons of a sweep of cells, said in its file before the first run.
//!
//! ```toml
//! [[contrast]]
//! name  = "H-Λ"
//! says  = "a cell with the numeral 2 beside 1 is learned sooner than with 1 twice"
//! tasks = ["word-s5", "word-a5"]
//! pairs = [["full Λ(1, 2)", "full Λ(1, 1)"]]     # the program and its placebo, by the names of arms: a family each
//! gate  = { sweep = "rnn-planted.toml", tasks = ["planted-lambda-z7"] }  # where the program is known to matter
//! ```
//! The rule is `linear_logic_rnn::contrast`'s.

use anyhow::{Result, bail};
use serde::Deserialize;

/// As the file has it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Contrast {
    pub(crate) name: String,
    pub(crate) says: String,
    pub(crate) tasks: Vec<String>,
    pub(crate) pairs: Vec<[String; 2]>,
    pub(crate) gate: Option<Gate>,
}

/// Another sweep, whose runs must show the same pairs apart.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Gate {
    pub(crate) sweep: String,
    pub(crate) tasks: Vec<String>,
}

impl Contrast {
    /// Refuses a contrast without arms: every pair must be an arm of every task. `arms` are (task, name).
    pub(crate) fn check(&self, arms: &[(&str, &str)]) -> Result<()> {
        let name = &self.name;
        if self.tasks.is_empty() || self.pairs.is_empty() {
            bail!("contrast {name}: it needs tasks and pairs");
        }
        for [program, placebo] in &self.pairs {
            if program == placebo {
                bail!("contrast {name}: {program} is compared with itself");
            }
        }
        for task in &self.tasks {
            for arm in self.pairs.iter().flatten() {
                match arms.iter().filter(|(t, a)| t == task && a == arm).count() {
                    1 => {}
                    0 => bail!("contrast {name}: no arm of {task} has the name \"{arm}\""),
                    _ => bail!("contrast {name}: several arms of {task} have the name \"{arm}\""),
                }
            }
        }
        if self.gate.as_ref().is_some_and(|gate| gate.tasks.is_empty()) {
            bail!("contrast {name}: gate.tasks is empty");
        }
        Ok(())
    }
}
