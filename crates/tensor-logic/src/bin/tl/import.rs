//! `tl import`: a data set of graphs becomes relations, and a program that learns from them.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::PathBuf;

use clap::Args;
use clap::error::ErrorKind;
use tensor_logic::answer::json;
use tensor_logic::tudataset::{DataSet, Failure};

use crate::answer::{Answer, Shape};
use crate::input::usage;

/// `tl import`
#[derive(Debug, Args)]
pub(crate) struct Import {
    /// The files of the data set up to their common name, `FOLDER/DS` of `FOLDER/DS_A.txt`, or a folder DS that holds them.
    #[arg(value_name = "FOLDER/DS")]
    base: PathBuf,
    /// The folder of the relations and the program; nothing that is there is overwritten.
    #[arg(value_name = "OUT")]
    out: PathBuf,
}

pub(crate) fn import(args: &Import) -> anyhow::Result<Answer> {
    let done = DataSet::read(&args.base).and_then(|data| Ok((data.write(&args.out)?, data)));
    let (written, data) = match done {
        Ok(done) => done,
        Err(Failure::Wrong { text, report, .. }) => return Ok(Answer::refused(&text, vec![*report])),
        Err(failure) => return Err(usage(ErrorKind::Io, &failure.to_string())),
    };
    let classes = data.classes.iter().collect::<BTreeSet<_>>().len();
    let counts = [
        ("graphs", data.classes.len()),
        ("nodes", data.graphs.len()),
        ("arcs", data.edges.len()),
        ("classes", classes),
    ];
    let paths: Vec<String> = written.iter().map(|path| path.display().to_string()).collect();
    let mut list = String::new();
    json::list(&mut list, &paths, |out, path| json::string(out, path));
    let mut answer = Answer { shape: Shape::Bare, ..Answer::default() };
    answer.fields = counts.iter().map(|(name, count)| (*name, count.to_string())).collect();
    answer.fields.push(("written", list));
    let counts: Vec<String> = counts.iter().map(|(name, count)| format!("{count} {name}")).collect();
    writeln!(answer.text, "{}: {}", data.name, counts.join(", "))?;
    for path in &paths {
        writeln!(answer.text, "  {path}")?;
    }
    Ok(answer)
}
