//! `tl query`: a graphical model of a file is asked for marginals, joint distributions and the most probable states.

mod asked;
mod show;

use std::path::{Path, PathBuf};

use clap::Args;
use clap::error::ErrorKind;
use graphical_models::{Failure, Limits, Loopy, Model, Sampling, VariableId, bif, uai};
use tensor_logic::answer::json;
use tensor_logic::ast::Span;
use tensor_logic::error::{Code, Refusal};
use tensor_logic::source::Source;

use crate::answer::{Answer, Shape};
use crate::input::{File, count, most_of_memory, usage};

/// `tl query`
#[derive(Debug, Args)]
pub(crate) struct Query {
    #[command(flatten)]
    file: File,
    /// How the model is written [default: as the ending of FILE says].
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// What is observed: `NAME=STATE`, several with commas between; names in `"` may hold anything; repeatable.
    #[arg(long, value_name = "NAME=STATE", allow_hyphen_values = true)]
    evidence: Vec<String>,
    /// What is observed, by numbers: a file of the form `.uai.evid`.
    #[arg(long, value_name = "FILE")]
    evidence_file: Option<PathBuf>,
    /// The distribution of every variable: what is answered where nothing else is asked for.
    #[arg(long)]
    marginals: bool,
    /// The distribution of these variables together, commas between them; repeatable.
    #[arg(long, value_name = "NAMES", allow_hyphen_values = true)]
    of: Vec<String>,
    /// The most probable states of all variables together.
    #[arg(long)]
    map: bool,
    /// Estimate marginals by so many samples, each with its standard error; Bayesian networks only.
    #[arg(long, value_name = "N", value_parser = count, conflicts_with_all = ["marginals", "of", "map"])]
    samples: Option<u64>,
    /// The seed of the samples; nothing else is drawn.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// The number of threads that draw samples, which changes no bit of the answer [default: one a core].
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1024))]
    threads: Option<u32>,
    /// Marginals by loopy belief propagation: exact on trees, an approximation elsewhere, for models of any size.
    #[arg(long, conflicts_with_all = ["marginals", "of", "map", "samples"])]
    loopy: bool,
    /// Of `--loopy`: at most so many rounds.
    #[arg(long, value_name = "N", default_value_t = 1000, requires = "loopy", conflicts_with_all = ["marginals", "of", "map", "samples"])]
    rounds: usize,
    /// Of `--loopy`: the messages rest when no number of them moves by more in a round.
    #[arg(
        long,
        value_name = "NUMBER",
        default_value_t = 1e-9,
        requires = "loopy",
        conflicts_with_all = ["marginals", "of", "map", "samples"],
        allow_negative_numbers = true
    )]
    tolerance: f64,
    /// Of `--loopy`: the share of an old message that stays in the new one, below 1.
    #[arg(
        long,
        value_name = "SHARE",
        default_value_t = 0.0,
        requires = "loopy",
        conflicts_with_all = ["marginals", "of", "map", "samples"],
        allow_negative_numbers = true
    )]
    damping: f64,
    /// The most bytes that tables may take [default: three quarters of the machine's memory].
    #[arg(long, value_parser = count)]
    max_bytes: Option<u64>,
    /// The most cells that cliques may have together, which is what time goes by.
    #[arg(long, default_value = "1e10", value_parser = count)]
    max_cells: u64,
}

/// How a model is written.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Format {
    /// The Bayesian interchange format.
    Bif,
    /// That of the UAI competitions.
    Uai,
}

/// A refusal, with the name and the text that it points into.
struct Refused {
    file: String,
    text: String,
    report: Refusal,
}

/// The model, and what is asked of it.
struct Asked {
    model: Model,
    evidence: Vec<(VariableId, usize)>,
    /// What refusals of the evidence point at.
    source: Source,
    limits: Limits,
}

pub(crate) fn query(args: &Query) -> anyhow::Result<Answer> {
    let format = args.format()?;
    let source = args.file.read()?;
    let evidence_file = args.evidence_file.as_deref().map(read).transpose()?;
    let mut answer = Answer::new(&source, Shape::Warnings);
    if let Err(refused) = answered(args, format, source, evidence_file, &mut answer) {
        (answer.file, answer.program) = (refused.file, refused.text);
        answer.errors.push(refused.report);
    }
    // Of a refusal it is what the place is in: the model, the file of evidence, or an option.
    let mut file = String::new();
    json::string(&mut file, &answer.file);
    answer.fields.insert(0, ("file", file));
    Ok(answer)
}

impl Query {
    fn format(&self) -> anyhow::Result<Format> {
        let ending = self.file.file.extension().and_then(|ending| ending.to_str()).map(str::to_lowercase);
        match (self.format, ending.as_deref()) {
            (Some(format), _) => Ok(format),
            (None, Some("bif")) => Ok(Format::Bif),
            (None, Some("uai")) => Ok(Format::Uai),
            (None, _) => {
                let message = format!(
                    "{} ends neither in .bif nor in .uai; say which it is by --format",
                    self.file.file.display()
                );
                Err(usage(ErrorKind::ValueValidation, &message))
            }
        }
    }
}

/// A second file, which is missing where a first one would be too: wrong usage.
fn read(path: &Path) -> anyhow::Result<Source> {
    File { file: path.to_owned() }.read()
}

/// Reads, computes and shows.
fn answered(
    args: &Query,
    format: Format,
    source: Source,
    evidence_file: Option<Source>,
    answer: &mut Answer,
) -> Result<(), Refused> {
    let read = match format {
        Format::Bif => bif::read,
        Format::Uai => uai::read,
    };
    let model = read(&source.text).map_err(|failure| refused(&source, &failure))?;
    let (mut evidence, mut pointed) = (Vec::new(), source);
    if let Some(file) = evidence_file {
        evidence = uai::evidence(&file.text, &model).map_err(|failure| refused(&file, &failure))?;
        pointed = file;
    }
    if !args.evidence.is_empty() {
        pointed = Source::new("--evidence", args.evidence.join("\n").as_bytes());
        asked::evidence(&model, &pointed.text, &mut evidence).map_err(|report| at(&pointed, report))?;
    }
    let mut wanted = Vec::new();
    for names in &args.of {
        let own = Source::new("--of", names.as_bytes());
        wanted.push(asked::variables(&model, &own.text).map_err(|report| at(&own, report))?);
    }
    let limits =
        Limits { cells: args.max_cells as f64, bytes: args.max_bytes.unwrap_or_else(most_of_memory) as f64 };
    let asked = Asked { model, evidence, source: pointed, limits };
    let failed = |failure: Failure| refused(&asked.source, &failure);
    show::evidence(answer, &asked.model, &asked.evidence);
    if let Some(samples) = args.samples {
        let threads = args.threads.map_or_else(cores, |threads| threads as usize);
        let sampling = Sampling { samples, seed: args.seed, threads, limits: asked.limits };
        let asks = |failure| failed_by(failure, "--samples", &samples.to_string(), &asked.source);
        let found = asked.model.sample_forward(&asked.evidence, &sampling).map_err(asks)?;
        show::sampled(answer, &asked.model, &found, &sampling);
        return Ok(());
    }
    if args.loopy {
        let (rounds, tolerance, damping) = (args.rounds, args.tolerance, args.damping);
        let options = Loopy { rounds, tolerance, damping, limits: asked.limits };
        let (option, value) = match (0.0..1.0).contains(&damping) {
            true => ("--tolerance", tolerance),
            false => ("--damping", damping),
        };
        let asks = |failure| failed_by(failure, option, &value.to_string(), &asked.source);
        let found = asked.model.loopy(&asked.evidence, &options).map_err(asks)?;
        show::believed(answer, &asked.model, &found);
        return Ok(());
    }
    let silent = wanted.is_empty() && !args.map;
    if args.marginals || silent {
        let found = asked.model.marginals(&asked.evidence, &asked.limits).map_err(failed)?;
        show::log_evidence(answer, found.log_evidence);
        show::marginals(answer, &asked.model, &found.of);
    }
    let joints = wanted.iter().map(|of| asked.model.joint(of, &asked.evidence, &asked.limits));
    let joints: Vec<_> = joints.collect::<Result<_, _>>().map_err(failed)?;
    if let Some(first) = joints.first() {
        if !args.marginals {
            show::log_evidence(answer, first.log_evidence);
        }
        show::joints(answer, &asked.model, &joints);
    }
    if args.map {
        let (states, log) = asked.model.most_probable(&asked.evidence, &asked.limits).map_err(failed)?;
        show::most_probable(answer, &asked.model, &states, log);
    }
    Ok(())
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

fn at(source: &Source, report: Refusal) -> Refused {
    Refused { file: source.file.clone(), text: source.text.clone(), report }
}

/// A failure as a refusal: it points at the option, where that is what the model cannot answer.
fn failed_by(failure: Failure, option: &str, value: &str, source: &Source) -> Refused {
    match failure {
        Failure::Question(_) => refused(&Source::new(option, value.as_bytes()), &failure),
        _ => refused(source, &failure),
    }
}

/// A failure as a refusal that points into a text: at the place that it names, else at the first line.
fn refused(source: &Source, failure: &Failure) -> Refused {
    let text = &source.text;
    let whole = Span { start: 0, end: text.lines().next().unwrap_or("").len() };
    let report = match failure {
        Failure::Text { line, column, message } => {
            Refusal::new(Code::FileFormat, letter(text, *line, *column), message)
        }
        Failure::Unknown { line, column, message } => {
            Refusal::new(Code::UnknownEvidence, letter(text, *line, *column), message)
        }
        Failure::Contradiction { line, column, message } => {
            Refusal::new(Code::ZeroEvidence, letter(text, *line, *column), message)
        }
        Failure::Evidence(message) => Refusal::new(Code::ZeroEvidence, whole, message),
        Failure::TooLarge { .. } => Refusal::new(Code::TooLarge, whole, failure.to_string())
            .help("--max-cells raises the limit; --loopy and --samples do without cliques"),
        Failure::Memory { .. } => {
            Refusal::new(Code::Budget, whole, failure.to_string()).help("--max-bytes raises the limit")
        }
        Failure::Question(message) => Refusal::new(Code::BadArgument, whole, message),
        _ => Refusal::new(Code::NotAModel, whole, failure.to_string()),
    };
    at(source, report)
}

/// The letter at a line and column.
fn letter(text: &str, line: usize, column: usize) -> Span {
    let start = offset(text, line, column);
    let end = start + text.get(start..).and_then(|rest| rest.chars().next()).map_or(0, char::len_utf8);
    Span { start, end }
}

/// The byte of a line and column.
fn offset(text: &str, line: usize, column: usize) -> usize {
    let before: usize = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    let rest = text.get(before..).unwrap_or_default();
    before + rest.char_indices().nth(column.saturating_sub(1)).map_or(rest.len(), |(at, _)| at)
}
