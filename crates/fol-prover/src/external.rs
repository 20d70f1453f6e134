//! Other provers, as oracles: a problem is written as TPTP, a program runs on it with a limit, and the line of its SZS status is
//! read (Sutcliffe, *The SZS ontologies*). What they say is no certificate and makes no verdict of ours.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::problem::Problem;

/// Why another prover says nothing.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExternalError {
    /// There is no such program.
    #[error("`{0}` is not to be found")]
    Missing(PathBuf),
    /// The system refused.
    #[error("it cannot be run: {0}")]
    Io(#[from] std::io::Error),
    /// The problem is no TPTP.
    #[error(transparent)]
    Tptp(#[from] fol::error::Refusal),
}

/// What another prover says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExternalAnswer {
    /// The SZS status: `Theorem`, `CounterSatisfiable`, …; `Timeout` if it was stopped, `Unknown` if it says none.
    pub status: String,
    /// All that it printed.
    pub output: String,
    /// From start to end, the start of the process included.
    pub took: Duration,
}

impl ExternalAnswer {
    /// Whether the conclusion follows, if the status is definite.
    pub fn verdict(&self) -> Option<bool> {
        match self.status.as_str() {
            "Theorem" | "Unsatisfiable" | "ContradictoryAxioms" => Some(true),
            "CounterSatisfiable" | "Satisfiable" => Some(false),
            _ => None,
        }
    }
}

/// A program that decides problems.
pub trait ExternalProver {
    /// The command for a problem that is given on standard input, which should end within a limit.
    fn command(&self, milliseconds: u64) -> Command;

    /// Runs it. A program that takes half a second more than the limit is killed.
    ///
    /// # Errors
    /// If there is no such program, or it cannot be run.
    fn decide(&self, problem: &Problem, milliseconds: u64) -> Result<ExternalAnswer, ExternalError> {
        self.decide_tptp(&tptp(problem)?, milliseconds)
    }

    /// Runs it on a text.
    ///
    /// # Errors
    /// As [`decide`](Self::decide).
    fn decide_tptp(&self, text: &str, milliseconds: u64) -> Result<ExternalAnswer, ExternalError> {
        let mut command = self.command(milliseconds);
        let start = Instant::now();
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        let child = child.map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => ExternalError::Missing(command.get_program().into()),
            _ => error.into(),
        })?;
        let end = Duration::from_millis(milliseconds).saturating_add(Duration::from_millis(500));
        let (output, killed) = finish(child, text, start, end)?;
        let took = start.elapsed();
        let status =
            status(&output).filter(|_| !killed).unwrap_or(if killed { "Timeout" } else { "Unknown" });
        Ok(ExternalAnswer { status: status.to_owned(), output, took })
    }
}

/// A problem as TPTP: a sequent with a conjecture, premises alone as axioms.
///
/// # Errors
/// `TptpUnsupported` if written out it takes too much space.
pub fn tptp(problem: &Problem) -> Result<String, fol::error::Refusal> {
    let mut text = problem.to_text();
    if problem.conclusion().is_none() {
        text.statements = problem.premises().iter().cloned().map(fol::ast::Statement::Formula).collect();
    }
    fol::tptp::print(&text)
}

/// Writes the input and reads the output, and kills what does not end. What a killed program has started may hold the output open:
/// it is not waited for.
fn finish(mut child: Child, text: &str, start: Instant, end: Duration) -> std::io::Result<(String, bool)> {
    let (input, output, text) = (child.stdin.take(), child.stdout.take(), text.to_owned());
    // A program that ends without reading says so by its status.
    std::thread::spawn(move || input.map(|mut input| input.write_all(text.as_bytes())));
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        output.map(|mut output| output.read_to_end(&mut bytes));
        sender.send(bytes)
    });
    let mut wait = Duration::from_micros(200);
    while child.try_wait()?.is_none() {
        if start.elapsed() > end {
            child.kill()?;
            child.wait()?;
            return Ok((String::new(), true));
        }
        std::thread::sleep(wait);
        wait = (wait * 2).min(Duration::from_millis(5));
    }
    let left = end.saturating_sub(start.elapsed()) + Duration::from_millis(500);
    let bytes = receiver.recv_timeout(left).unwrap_or_default();
    Ok((String::from_utf8_lossy(&bytes).into_owned(), false))
}

/// The word behind `SZS status`.
fn status(output: &str) -> Option<&str> {
    let line = output.lines().find(|line| line.contains("SZS status"))?;
    line.split("SZS status").nth(1)?.split_whitespace().next()
}

/// Stephan Schulz's prover E.
#[derive(Debug, Clone)]
pub struct EProver {
    path: PathBuf,
}

impl Default for EProver {
    fn default() -> Self {
        Self::at(Path::new("eprover"))
    }
}

impl EProver {
    /// The program of a name, looked for in `PATH`, or of a path.
    pub fn at(path: &Path) -> Self {
        Self { path: path.to_owned() }
    }

    /// Whether it is there and answers.
    pub fn is_there(&self) -> bool {
        let version =
            Command::new(&self.path).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
        version.is_ok_and(|status| status.success())
    }
}

impl ExternalProver for EProver {
    fn command(&self, milliseconds: u64) -> Command {
        let mut command = Command::new(&self.path);
        let seconds = milliseconds.div_ceil(1000).max(1);
        command.args(["--auto", "--silent", "--resources-info", "--memory-limit=1024"]);
        command.arg(format!("--cpu-limit={seconds}"));
        command
    }
}
