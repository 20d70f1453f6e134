//! `tl import`: a data set becomes relations, and a program that learns from them.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::{Args, ValueEnum};
use tensor_logic::answer::json;
use tensor_logic::tudataset::Failure;
use tensor_logic::{neuralogic, tudataset};

use crate::answer::{Answer, Shape};
use crate::input::usage;

/// `tl import`
#[derive(Debug, Args)]
pub(crate) struct Import {
    /// A data set: of TUDataset its files up to their common name, `FOLDER/DS` of `FOLDER/DS_A.txt`, or a folder DS that holds
    /// them; of NeuraLogic a folder with `examples.txt` and `queries.txt`, or the file of examples.
    #[arg(value_name = "DATA")]
    base: PathBuf,
    /// The folder of the relations and the program; nothing that is there is overwritten.
    #[arg(value_name = "OUT")]
    out: PathBuf,
    /// The format, where the names of the files do not say it.
    #[arg(long)]
    format: Option<Format>,
    /// The queries of a file of examples, where its name does not say which file has them.
    #[arg(long, value_name = "FILE")]
    queries: Option<PathBuf>,
}

/// The formats of data sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Graphs: `DS_A.txt` and what belongs to it.
    Tudataset,
    /// Examples and queries, ground literals.
    Neuralogic,
}

/// What was read: its name, how many there are of what, and the files that were written.
struct Done {
    name: String,
    counts: Vec<(&'static str, usize)>,
    written: Vec<PathBuf>,
}

pub(crate) fn import(args: &Import) -> anyhow::Result<Answer> {
    let is_neuralogic = args.queries.is_some() || neuralogic::DataSet::is_at(&args.base);
    let format = args.format.unwrap_or(if is_neuralogic { Format::Neuralogic } else { Format::Tudataset });
    if format == Format::Tudataset && args.queries.is_some() {
        return Err(usage(ErrorKind::ArgumentConflict, "`--queries` belongs to `--format neuralogic`"));
    }
    let done = match format {
        Format::Tudataset => graphs(args),
        Format::Neuralogic => samples(args),
    };
    let done = match done {
        Ok(done) => done,
        Err(Failure::Wrong { text, report, .. }) => return Ok(Answer::refused(&text, vec![*report])),
        Err(failure) => return Err(usage(ErrorKind::Io, &failure.to_string())),
    };
    let paths: Vec<String> = done.written.iter().map(|path| path.display().to_string()).collect();
    let mut list = String::new();
    json::list(&mut list, &paths, |out, path| json::string(out, path));
    let mut answer = Answer { shape: Shape::Bare, ..Answer::default() };
    answer.fields = done.counts.iter().map(|(name, count)| (*name, count.to_string())).collect();
    answer.fields.push(("written", list));
    let counts: Vec<String> = done.counts.iter().map(|(name, count)| format!("{count} {name}")).collect();
    writeln!(answer.text, "{}: {}", done.name, counts.join(", "))?;
    for path in &paths {
        writeln!(answer.text, "  {path}")?;
    }
    Ok(answer)
}

fn graphs(args: &Import) -> Result<Done, Failure> {
    let data = tudataset::DataSet::read(&args.base)?;
    let written = data.write(&args.out)?;
    let counts = vec![
        ("graphs", data.classes.len()),
        ("nodes", data.graphs.len()),
        ("arcs", data.edges.len()),
        ("classes", data.classes.iter().collect::<BTreeSet<_>>().len()),
    ];
    Ok(Done { name: data.name, counts, written })
}

fn samples(args: &Import) -> Result<Done, Failure> {
    let data = neuralogic::DataSet::read(&args.base, args.queries.as_deref())?;
    let written = data.write(&args.out)?;
    let counts = vec![
        ("samples", data.samples.len()),
        ("facts", data.samples.iter().map(|sample| sample.facts.len()).sum()),
        ("queries", data.samples.iter().map(|sample| sample.queries.len()).sum()),
    ];
    Ok(Done { name: data.name, counts, written })
}
