//! What `tl run` draws: proofs, and the report of learning.

use std::path::{Path, PathBuf};

use clap::Args;
use clap::error::ErrorKind;
use tensor_logic::answer::{Explained, drawn};
use tensor_logic::engine::{Budget, Engine};
use tensor_logic::program::Program;
use tensor_logic::proof::Proof;
use tensor_logic::report;
use tensor_logic::run::Outcome;
use tensor_logic::source::Source;

use crate::input::usage;

/// What is drawn, and where.
#[derive(Debug, Args)]
pub(crate) struct Pictures {
    /// Draw the proofs of queries with `@explain` in this folder, as `proof-1.svg` and so on, the most probable ones of
    /// the first as `proof-1-1.svg`, `proof-1-2.svg`.
    #[arg(long, value_name = "FOLDER")]
    draw: Option<PathBuf>,
    /// Write a page with what was learned: losses, the template, the network of a sample, parameters, answers. A name without
    /// the ending `.html` is a folder, which gets `report.html`.
    #[arg(long, value_name = "FILE.html|FOLDER")]
    report: Option<PathBuf>,
}

impl Pictures {
    /// Refuses what cannot be written to, before there are answers that would be lost with it.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        for (path, is_folder) in self
            .draw
            .iter()
            .map(|folder| (folder, true))
            .chain(self.report.iter().map(|to| (to, !is_page(to))))
        {
            let mut above = path.ancestors().skip(usize::from(!is_folder));
            let there = above.find(|above| above.exists());
            let wrong = match there {
                Some(there) if !there.is_dir() => Some(there),
                _ if !is_folder && path.is_dir() => Some(path.as_path()),
                _ => None,
            };
            if let Some(wrong) = wrong {
                let what = if wrong.is_dir() { "is a folder" } else { "is a file, and no folder" };
                let message = format!("cannot write {}: {} {what}", path.display(), wrong.display());
                return Err(usage(ErrorKind::Io, &message));
            }
        }
        Ok(())
    }

    /// Draws what is asked for, and says where.
    pub(crate) fn drawn(
        &self,
        source: &Source,
        program: &Program,
        (engine, budget): (&mut dyn Engine, Budget),
        outcome: &Outcome,
    ) -> anyhow::Result<String> {
        let mut said = String::new();
        if let Some(folder) = &self.draw {
            said = proofs(folder, &outcome.answers)?;
        }
        if let Some(to) = &self.report {
            let path = if is_page(to) { to.clone() } else { to.join("report.html") };
            let page = report::page(&source.file, (program, &source.text), (engine, budget), outcome);
            write(&path, page.as_bytes())?;
            said.push_str(&format!("tl: {} is the report\n", path.display()));
        }
        Ok(said)
    }
}

/// Whether a name is that of a page, not of a folder.
fn is_page(to: &Path) -> bool {
    to.extension().is_some_and(|ending| ending == "html")
}

/// Draws the proofs of answers, and says where.
fn proofs(folder: &Path, answers: &[tensor_logic::answer::Answer]) -> anyhow::Result<String> {
    let explained = answers.iter().filter_map(|answer| Some((answer, answer.explain.as_ref()?)));
    let mut said = String::new();
    for (number, (answer, explained)) in (1..).zip(explained.filter(|(_, each)| has_proofs(each))) {
        let mut draw = |name: &str, proof: &Proof, what: &str| -> anyhow::Result<()> {
            let path = folder.join(format!("proof-{name}.svg"));
            write(&path, drawn::proof(proof).as_bytes())?;
            said.push_str(&format!("tl: {} is {what} of {}\n", path.display(), answer.text));
            Ok(())
        };
        if let Some(proof) = &explained.proof {
            draw(&number.to_string(), proof, "a proof")?;
        }
        for (nth, (probability, proof)) in (1..).zip(explained.proofs.iter().flat_map(|found| &found.proofs))
        {
            draw(&format!("{number}-{nth}"), proof, &format!("a proof with probability {probability}"))?;
        }
    }
    if said.is_empty() {
        said =
            "tl: no query with `@explain` has a proof to draw: ask for one tuple, `Path(A, B)? @explain`\n"
                .to_owned();
    }
    Ok(said)
}

fn has_proofs(explained: &Explained) -> bool {
    explained.proof.is_some() || explained.proofs.as_ref().is_some_and(|found| !found.proofs.is_empty())
}

/// Writes a file whole, in a folder that is made for it.
fn write(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    let folder = path.parent().filter(|folder| *folder != Path::new(""));
    let written = folder.map_or(Ok(()), std::fs::create_dir_all);
    let written = written.and_then(|()| calculemus_base::file::write(path, bytes));
    written.map_err(|error| usage(ErrorKind::Io, &format!("cannot write {}: {error}", path.display())))
}
