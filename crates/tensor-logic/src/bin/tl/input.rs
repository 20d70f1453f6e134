//! The program that a command reads, and the options of evaluation.

use std::io::Read;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use tensor_logic::ast::Span;
use tensor_logic::auto::Auto;
use tensor_logic::engine::{Budget, Engine};
use tensor_logic::error::{Code, Refusal};
use tensor_logic::fast::{Fast, Precision};
use tensor_logic::files::Files;
use tensor_logic::notebook::{EngineKind, Notebook};
use tensor_logic::reference::Reference;
use tensor_logic::source::Source;
use training::threads::{set, set_with_this};

use crate::answer::{Answer, Early, object};

/// Wrong usage that clap cannot see.
pub(crate) fn usage(kind: clap::error::ErrorKind, message: &str) -> anyhow::Error {
    clap::Error::raw(kind, format!("{message}\n")).into()
}

/// So many bytes of a program are read: a device would not end.
const LONGEST: u64 = 1 << 28;

/// The file of a program.
#[derive(Debug, Args)]
pub(crate) struct File {
    /// The program; `-` reads it from standard input.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
}

impl File {
    pub(crate) fn is_standard_input(&self) -> bool {
        self.file == Path::new("-")
    }

    /// Reads the program.
    pub(crate) fn read(&self) -> anyhow::Result<Source> {
        let mut bytes = Vec::new();
        let cannot = |what: &str| {
            let message = format!("cannot read {}: {what}", self.file.display());
            usage(clap::error::ErrorKind::Io, &message)
        };
        if self.is_standard_input() {
            std::io::stdin().take(LONGEST + 1).read_to_end(&mut bytes)?;
        } else {
            // Not asked for its length: it may be a pipe.
            let read = |file: std::fs::File| file.take(LONGEST + 1).read_to_end(&mut bytes);
            std::fs::File::open(&self.file).and_then(read).map_err(|error| cannot(&error.to_string()))?;
        }
        if bytes.len() as u64 > LONGEST {
            return Err(cannot("it is longer than 256 MiB; a program reads data from files"));
        }
        Ok(Source::new(self.file.display().to_string(), &bytes))
    }

    /// Reads the program with all that it includes.
    pub(crate) fn program(&self) -> anyhow::Result<Source> {
        let mut source = self.read()?;
        source.expand(&mut Files::new(self.folder()));
        Ok(source)
    }

    /// Where relative paths of the program start.
    pub(crate) fn folder(&self) -> PathBuf {
        match self.file.parent() {
            Some(folder) if !self.is_standard_input() && folder != Path::new("") => folder.to_owned(),
            _ => PathBuf::from("."),
        }
    }
}

/// A number for a constant.
#[derive(Debug, Clone)]
pub(crate) struct Setting {
    name: String,
    value: f64,
}

fn setting(text: &str) -> Result<Setting, String> {
    let (name, value) = text.split_once('=').ok_or("expected NAME=NUMBER")?;
    let value: f64 = value.trim().parse().map_err(|_| format!("`{}` is no number", value.trim()))?;
    if !tensor_logic::lex::is_capital_name(name.trim()) {
        return Err(format!("`{}` is no name of a constant", name.trim()));
    }
    Ok(Setting { name: name.trim().replace('′', "'"), value })
}

/// A query, which asks something.
fn query(text: &str) -> Result<String, &'static str> {
    let says_nothing = |line: &str| line.trim_start().is_empty() || line.trim_start().starts_with('#');
    if text.lines().all(says_nothing) { Err("it asks nothing") } else { Ok(text.to_owned()) }
}

/// What is asked beside the program.
#[derive(Debug, Args)]
pub(crate) struct Asked {
    /// A query after the program's own; repeatable.
    #[arg(long = "query", value_name = "QUERY", value_parser = query)]
    queries: Vec<String>,
    /// Pass over the program's own queries.
    #[arg(long)]
    only_queries: bool,
    /// Give a numeric constant another value; repeatable.
    #[arg(long = "set", value_name = "NAME=NUMBER", value_parser = setting)]
    settings: Vec<Setting>,
}

impl Asked {
    /// Adds what is asked to the program.
    pub(crate) fn add_to(&self, source: &mut Source) {
        if self.only_queries {
            source.silence();
        }
        self.queries.iter().for_each(|query| source.ask(query));
        self.settings.iter().for_each(|setting| source.set(&setting.name, setting.value));
    }
}

/// The width of real numbers.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
pub(crate) enum Dtype {
    /// 64 bits.
    F64,
    /// 32 bits.
    F32,
}

/// Which evaluator.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
pub(crate) enum EngineName {
    /// The fast one.
    Auto,
    /// The reference interpreter: plain loops.
    Reference,
}

/// How tensors are stored.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
pub(crate) enum Storage {
    /// Whichever is cheaper.
    Auto,
    /// As arrays.
    Dense,
    /// As tuples.
    Sparse,
}

/// How a program is evaluated.
#[derive(Debug, Args)]
pub(crate) struct Evaluation {
    /// The seed of start values, sampling and shuffling.
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
    /// The number of threads [default: one a core].
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) threads: Option<u32>,
    /// The width of all numbers; programs that count keep 64 bits.
    #[arg(long, value_enum, default_value = "f64")]
    pub(crate) dtype: Dtype,
    /// `cpu`; `cuda`, `cuda:N` and `metal` are known and refused: nothing is evaluated on them yet.
    #[arg(long, default_value = "cpu", value_parser = device)]
    pub(crate) device: String,
    /// Which evaluator.
    #[arg(long, value_enum, default_value = "auto")]
    pub(crate) engine: EngineName,
    /// How tensors are stored.
    #[arg(long, value_enum, default_value = "auto")]
    pub(crate) storage: Storage,
    /// The most tuples that may be stored.
    #[arg(long, default_value = "1e8", value_parser = count)]
    pub(crate) max_tuples: u64,
    /// The most bytes that may be allocated [default: three quarters of the machine's memory].
    #[arg(long, value_parser = count)]
    pub(crate) max_bytes: Option<u64>,
}

impl Evaluation {
    /// Starts the threads, of which the caller is one if it does all the work `alone`, and refuses what this build does
    /// not have.
    pub(crate) fn prepare(&self, alone: bool) -> anyhow::Result<()> {
        if self.device != "cpu" {
            let message =
                format!("programs run on the processor: there is no evaluation on `{}` yet", self.device);
            let option = Source::new("--device", self.device.as_bytes());
            let whole = Span { start: 0, end: self.device.len() };
            let report = Refusal::new(Code::NotYet, whole, message).help("`--device cpu` is the processor");
            return Err(Early(Answer::refused(&option, vec![report])).into());
        }
        if matches!(self.engine, EngineName::Reference) {
            let idle = [
                ("--dtype f32", matches!(self.dtype, Dtype::F32)),
                ("--storage", !matches!(self.storage, Storage::Auto)),
            ];
            for (option, _) in idle.into_iter().filter(|(_, given)| *given) {
                object(&format!(
                    "tl: `{option}` changes nothing: the reference interpreter computes in 64 bits, tuple by tuple"
                ));
            }
        }
        // This thread does the work; a dialogue does it on threads of its own.
        let threads = self.threads.map_or(0, |threads| threads as usize);
        Ok(if alone { set_with_this(threads) } else { set(threads) }?)
    }

    /// Refuses to measure an evaluator that does not say what it does.
    pub(crate) fn keeps_notes(&self) -> anyhow::Result<()> {
        match self.engine {
            EngineName::Auto => Ok(()),
            EngineName::Reference => {
                let message = "the reference interpreter keeps no profile";
                Err(usage(clap::error::ErrorKind::ArgumentConflict, message))
            }
        }
    }

    /// Refuses options that dataflows have no use for.
    #[cfg(feature = "timely")]
    pub(crate) fn is_plain(&self) -> anyhow::Result<()> {
        let others = [
            ("--engine", matches!(self.engine, EngineName::Reference)),
            ("--dtype", matches!(self.dtype, Dtype::F32)),
            ("--storage", !matches!(self.storage, Storage::Auto)),
        ];
        match others.into_iter().find(|(_, given)| *given) {
            Some((name, _)) => {
                let message =
                    format!("{name} is for the other evaluators: workers join relations in 64 bits");
                Err(usage(clap::error::ErrorKind::ArgumentConflict, &message))
            }
            None => Ok(()),
        }
    }

    /// Gives a notebook the same settings; threads are those of the process.
    pub(crate) fn settle(&self, notebook: &mut Notebook) {
        notebook.set_seed(self.seed);
        notebook.set_budget(self.budget());
        notebook.set_precision(self.precision());
        notebook.set_storage(self.storage());
        notebook.set_engine(match self.engine {
            EngineName::Auto => EngineKind::Auto,
            EngineName::Reference => EngineKind::Reference,
        });
    }

    /// What may change the last bits of numbers, by name.
    pub(crate) fn of_numbers(&self) -> [(&'static str, String); 3] {
        let word = |value: Option<clap::builder::PossibleValue>| {
            value.map_or_else(String::new, |value| value.get_name().to_owned())
        };
        [
            ("--dtype", word(self.dtype.to_possible_value())),
            ("--engine", word(self.engine.to_possible_value())),
            ("--storage", word(self.storage.to_possible_value())),
        ]
    }

    fn storage(&self) -> tensor_logic::fast::Storage {
        match self.storage {
            Storage::Auto => tensor_logic::fast::Storage::Auto,
            Storage::Dense => tensor_logic::fast::Storage::Dense,
            Storage::Sparse => tensor_logic::fast::Storage::Sparse,
        }
    }

    /// The evaluator of blocks that the options name.
    pub(crate) fn fast(&self) -> Fast {
        Fast::with_storage(self.storage()).with_precision(self.precision())
    }

    /// The type of all numbers.
    fn precision(&self) -> Precision {
        match self.dtype {
            Dtype::F64 => Precision::Double,
            Dtype::F32 => Precision::Single,
        }
    }

    /// The evaluator that the options name.
    pub(crate) fn engine(&self) -> Box<dyn Engine> {
        match self.engine {
            EngineName::Reference => Box::new(Reference::default()),
            EngineName::Auto => Box::new(Auto::new(Box::new(self.fast()))),
        }
    }

    /// The limits of the run.
    pub(crate) fn budget(&self) -> Budget {
        Budget { tuples: self.max_tuples, bytes: self.max_bytes.unwrap_or_else(most_of_memory) }
    }
}

/// Three quarters of the machine's memory; of 8 GiB where the machine does not say.
pub(crate) fn most_of_memory() -> u64 {
    let lines = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let total = lines.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kibibytes: Option<u64> = total.and_then(|total| total.trim().strip_suffix("kB")?.trim().parse().ok());
    kibibytes.unwrap_or(8 << 20).saturating_mul(1024) / 4 * 3
}

/// A whole number, maybe as `1e8`.
pub(crate) fn count(text: &str) -> Result<u64, String> {
    let whole = |value: f64| value >= 0.0 && value.fract() == 0.0 && value < 2_f64.powi(64);
    let scientific = || text.parse::<f64>().ok().filter(|value| whole(*value)).map(|value| value as u64);
    text.parse().ok().or_else(scientific).ok_or_else(|| format!("`{text}` is no whole number"))
}

fn device(text: &str) -> Result<String, String> {
    let numbered = text.strip_prefix("cuda:").is_some_and(|number| number.parse::<usize>().is_ok());
    if numbered || matches!(text, "cpu" | "cuda" | "metal") {
        return Ok(text.to_owned());
    }
    Err("there are `cpu`, `cuda`, `cuda:N` and `metal`".to_owned())
}
