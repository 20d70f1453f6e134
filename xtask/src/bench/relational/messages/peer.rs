//! PyTorch in a process of its own, asked one thing at a time, so that its times lie between ours.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context, Result, ensure};

/// How the neighbours are added up: first the one that a ratio has a goal for, and others that its users try. `csr` is the
/// product with a sparse matrix, `csr_both` with another for the gradient, transposed before.
pub(super) const VARIANTS: [&str; 5] = ["index_add", "scatter_add", "embedding_bag", "csr", "csr_both"];

pub(super) struct Peer {
    process: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    /// Where it writes what it computed.
    folder: PathBuf,
}

impl Peer {
    pub(super) fn start(
        python: &str,
        driver: &Path,
        threads: usize,
        precision: &str,
        folder: &Path,
    ) -> Result<Peer> {
        let mut process = Command::new(python)
            .arg(driver.join("messages.py"))
            .args([&threads.to_string(), precision])
            .arg(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let to = process.stdin.take().context("a pipe")?;
        let from = BufReader::new(process.stdout.take().context("a pipe")?);
        let mut peer = Peer { process, to, from, folder: folder.to_owned() };
        // Its version: it is ready.
        peer.line()?;
        Ok(peer)
    }

    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        ensure!(self.from.read_line(&mut line)? > 0, "the peer has ended");
        Ok(line.trim().to_owned())
    }

    /// What one request took, in seconds.
    pub(super) fn asked(&mut self, case: &str, kind: &str, variant: &str) -> Result<f64> {
        writeln!(self.to, "{case} {kind} {variant}")?;
        Ok(self.line()?.parse()?)
    }

    /// The same by all variants.
    pub(super) fn all(&mut self, case: &str, kind: &str) -> Result<Vec<f64>> {
        VARIANTS.iter().map(|variant| self.asked(case, kind, variant)).collect()
    }

    /// An array that it wrote.
    pub(super) fn written(&self, name: &str) -> Result<Vec<f64>> {
        let bytes = std::fs::read(self.folder.join(name))?;
        Ok(bytes.as_chunks().0.iter().map(|number| f64::from_le_bytes(*number)).collect())
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // It has nothing to lose.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
