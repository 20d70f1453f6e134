//! `tl run --workers K`: the options, and what answers the queries then.

use std::path::PathBuf;
#[cfg(feature = "timely")]
use std::{path::Path, time::Duration};

use clap::Args;
use clap::error::ErrorKind;
use tensor_logic::engine::Engine;
use tensor_logic::error::Refusal;
use tensor_logic::program::Program;
use tensor_logic::source::Source;
#[cfg(feature = "timely")]
use tensor_logic::{
    ast::Span,
    dataflow::{Broken, Cluster, Dataflow, Trouble, hosts},
    error::Code,
};

use crate::input::{Evaluation, usage};

/// Who evaluates.
#[derive(Debug, Args)]
pub(crate) struct Workers {
    /// Evaluate rules over relations as a dataflow, by so many workers (a build with `--features timely`).
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u16).range(1..=256),
        conflicts_with_all = ["profile", "draw", "report", "checkpoints"])]
    workers: Option<u16>,
    /// The processes that share the work, one `host:port` a line; the first prints the answers.
    #[arg(long, value_name = "FILE", requires = "workers", requires = "process")]
    hosts: Option<PathBuf>,
    /// Which line of the hosts this process is, from 0.
    #[arg(long, value_name = "I", requires = "hosts")]
    process: Option<usize>,
    /// How many seconds the other processes are waited for.
    #[arg(long, value_name = "SECONDS", requires = "hosts", default_value_t = 30)]
    wait: u64,
}

/// What answers queries.
#[cfg_attr(not(feature = "timely"), expect(dead_code, reason = "the others are made by dataflows"))]
pub(crate) enum Derived {
    /// This.
    Here(Box<dyn Engine>),
    /// Another process, as people are told.
    Elsewhere(String),
    /// Nothing.
    Refused {
        /// Why.
        refusal: Box<Refusal>,
        /// Where it points into, if not into the program.
        file: Option<Box<Source>>,
    },
}

/// The refusal of a build that has no dataflows.
#[cfg(not(feature = "timely"))]
pub(crate) fn missing(what: &str) -> anyhow::Error {
    let message = format!(
        "this build has no dataflows: {what} needs `cargo install --path crates/tensor-logic --features cli,timely`"
    );
    usage(ErrorKind::UnknownArgument, &message)
}

impl Workers {
    /// What answers the queries of a program; `context` is what all processes must have alike.
    #[cfg(not(feature = "timely"))]
    pub(crate) fn engine(&self, _: &Program, _: &str, evaluation: &Evaluation) -> anyhow::Result<Derived> {
        let Workers { workers, hosts: _, process: _, wait: _ } = self;
        match workers {
            None => Ok(Derived::Here(evaluation.engine())),
            Some(_) => Err(missing("`--workers`")),
        }
    }

    /// What answers the queries of a program; `context` is what all processes must have alike.
    #[cfg(feature = "timely")]
    pub(crate) fn engine(
        &self,
        program: &Program,
        context: &str,
        evaluation: &Evaluation,
    ) -> anyhow::Result<Derived> {
        let Some(workers) = self.workers else { return Ok(Derived::Here(evaluation.engine())) };
        evaluation.is_plain()?;
        if let Some(refusal) = tensor_logic::run::refusals(program).into_iter().next() {
            return Ok(Derived::Refused { refusal: Box::new(refusal), file: None });
        }
        let mut file = None;
        let mut cluster = None;
        if let (Some(path), Some(process)) = (&self.hosts, self.process) {
            let list = read(path)?;
            let wait = Duration::from_secs(self.wait);
            match hosts(&list.text) {
                Ok(hosts) if process < hosts.len() => {
                    cluster = Some(Cluster { hosts, process, wait, token: 0 })
                }
                Ok(hosts) => {
                    let message = format!("--process {process}: the file has {} hosts, from 0", hosts.len());
                    return Err(usage(ErrorKind::ValueValidation, &message));
                }
                Err(broken) => {
                    return Ok(Derived::Refused {
                        refusal: Box::new(listed(&list, broken)),
                        file: Some(Box::new(list)),
                    });
                }
            }
            file = Some(list);
        }
        quiet();
        let process = self.process.unwrap_or(0);
        match Dataflow::evaluate(program, context, evaluation.budget(), (usize::from(workers), cluster)) {
            Ok(Some(engine)) => Ok(Derived::Here(Box::new(engine))),
            Ok(None) => {
                Ok(Derived::Elsewhere(format!("tl: process {process} is done; process 0 has the answers\n")))
            }
            Err(Trouble::Program(refusal)) => Ok(Derived::Refused { refusal, file: None }),
            Err(Trouble::Processes(broken)) => match file {
                Some(list) => Ok(Derived::Refused {
                    refusal: Box::new(listed(&list, broken)),
                    file: Some(Box::new(list)),
                }),
                None => Err(anyhow::Error::new(broken)),
            },
        }
    }
}

/// The list of hosts.
#[cfg(feature = "timely")]
fn read(path: &Path) -> anyhow::Result<Source> {
    let bytes = std::fs::read(path)
        .map_err(|error| usage(ErrorKind::Io, &format!("cannot read {}: {error}", path.display())))?;
    Ok(Source::new(path.display().to_string(), &bytes))
}

/// What is wrong with other processes, with the place in the list of hosts.
#[cfg(feature = "timely")]
fn listed(list: &Source, broken: Broken) -> Refusal {
    let of = |host: &str| {
        let start = list.text.find(host).unwrap_or(0);
        Span { start, end: (start + host.len()).min(list.text.len()) }
    };
    let (code, span, help) = match &broken {
        Broken::Hosts { line, column, .. } => {
            let before: usize =
                list.text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
            let rest = list.text.get(before..).unwrap_or("");
            let start =
                before + rest.chars().take(column.saturating_sub(1)).map(char::len_utf8).sum::<usize>();
            let word = list.text.get(start..).unwrap_or("").split_whitespace().next().unwrap_or("");
            let help = "one `host:port` a line, as in `127.0.0.1:2101`";
            (Code::FileFormat, Span { start, end: start + word.len() }, help)
        }
        Broken::Silent { host, .. } => {
            (Code::Budget, of(host), "start all processes, with the same hosts, or raise --wait")
        }
        Broken::Listen { host, .. } => (
            Code::FileFormat,
            of(host),
            "this process listens there: give it an address of this machine, and a free port",
        ),
        Broken::Other { host, .. } => {
            (Code::FileFormat, of(host), "all processes run the same command but for --process")
        }
        _ => (Code::Budget, Span::default(), "look what the other processes say"),
    };
    let message = match broken {
        Broken::Hosts { reason, .. } => reason,
        other => other.to_string(),
    };
    Refusal::new(code, span, message).help(help)
}

/// Threads of connections end by panics where the other side has gone, which is told as a refusal.
#[cfg(feature = "timely")]
fn quiet() {
    let told = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let thread = std::thread::current();
        if !thread.name().is_some_and(|name| name.starts_with("timely:")) {
            told(panic);
        }
    }));
}
