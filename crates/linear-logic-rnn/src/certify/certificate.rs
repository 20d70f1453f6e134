//! The format of a certificate: an automaton whose states are sets of states of a cell.

use serde::{Deserialize, Serialize};

use crate::cell::Cell;
use crate::error::{Kind, Refusal, Result};
use crate::nearest::shortened;
use crate::options::{CellKind, Options, Sizes};
use crate::task::machine::Machine;
use crate::task::{Settings, Task};

/// The version of the format.
pub const SCHEMA: &str = "certificate/1";

/// The most bytes of the text of a certificate.
const MOST_BYTES: usize = 1 << 30;

/// What a certificate is about.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Subject {
    /// The kind of the cell.
    pub cell: String,
    /// Its sizes, those of the readout among them.
    pub sizes: Sizes,
    /// Its options.
    #[serde(default)]
    pub options: Options,
    /// The name of the task.
    pub task: String,
    /// m of `mod-sum`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modulus: Option<u32>,
}

/// What is claimed, and all that is needed to check it beside the weights.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Certificate {
    /// [`SCHEMA`]
    pub schema: String,
    /// Cell and task.
    pub subject: Subject,
    /// BLAKE3 of the trained weights: little-endian f32, in the order of the step.
    pub weights: String,
    /// The states; the first is that before the first symbol.
    pub states: Vec<State>,
}

/// A state of the automaton: a set of states of the cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// The state of the task, which the readout must tell.
    pub class: u32,
    /// The last symbol, where the step reads it; none before the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<u32>,
    /// The next state for each symbol.
    pub next: Vec<usize>,
    /// The lower and upper bound of every number that goes from step to step, state after state of the step. Without it
    /// the set is the image of the one state that leads here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bounds: Option<Vec<[f64; 2]>>,
}

impl Subject {
    /// The cell that it is about.
    ///
    /// # Errors
    /// As for [`Cell::new`].
    pub fn cell(&self) -> Result<Cell> {
        Cell::new(self.cell.parse::<CellKind>()?, &self.sizes, &self.options)
    }

    /// The task that it is about.
    ///
    /// # Errors
    /// As for [`Task::new`].
    pub fn task(&self) -> Result<Task> {
        Task::new(&self.task, &Settings { modulus: self.modulus, ..Settings::default() })
    }

    /// The automaton of that task.
    ///
    /// # Errors
    /// As for [`Task::new`]; `certificate` for a task that is no automaton.
    pub fn machine(&self) -> Result<Machine> {
        let none = || refused(format!("`{}` does not ask for the state of a finite automaton", self.task));
        self.task()?.machine().ok_or_else(none)
    }
}

impl Certificate {
    /// Reads a text. Refused: `certificate`.
    pub fn read(text: &str) -> Result<Self> {
        if text.len() > MOST_BYTES {
            return Err(refused(format!("{} bytes, more than {MOST_BYTES}", text.len())));
        }
        let read: Self = serde_json::from_str(text).map_err(|error| refused(error.to_string()))?;
        if read.schema != SCHEMA {
            return Err(refused(format!("the schema is \"{}\", not {SCHEMA}", shortened(&read.schema))));
        }
        Ok(read)
    }

    /// Whether these are the weights that it is about.
    pub fn is_about(&self, theta: &[f32]) -> bool {
        self.weights == digest(theta)
    }
}

/// A refusal of a certificate.
pub(super) fn refused(message: impl Into<String>) -> Refusal {
    Refusal::new(Kind::Certificate, message)
}

/// The digest of weights.
pub fn digest(theta: &[f32]) -> String {
    let mut hasher = blake3::Hasher::new();
    for weight in theta {
        hasher.update(&weight.to_le_bytes());
    }
    hasher.finalize().to_hex().to_string()
}
