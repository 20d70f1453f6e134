//! Files, texts and flags that all commands share, and the proofs that they name.

use std::ffi::OsString;
use std::io::Read;
use std::path::PathBuf;
use std::rc::Rc;

use clap::Args;
use linear_logic::ast::TermKind;
use linear_logic::elaborate::{Extension, Mode, Structure, elaborate, instance};
use linear_logic::error::{Kind, Refusal, Source};
use linear_logic::literal::Order;
use linear_logic::parse;
use linear_logic::program::{Checked, Program};

use crate::answer::Failure;

/// The texts of a command and how they are read.
#[derive(Debug, Args)]
pub(crate) struct Texts {
    /// Files of definitions; `-` is standard input.
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// A term, with a formula behind a colon or not.
    #[arg(short = 'e', long = "expr", value_name = "TEXT", allow_hyphen_values = true)]
    expressions: Vec<OsString>,
    /// How a word is read as a product: literal, first-digit-first, fdf.
    #[arg(long, default_value = "literal", value_name = "ORDER")]
    order: Order,
    /// Turn the differential extension on.
    #[arg(long)]
    differential: bool,
    /// Insert no copies, discards and sources of boxes.
    #[arg(long)]
    explicit: bool,
}

/// A loaded program and the warnings about it.
pub(crate) struct Loaded {
    pub(crate) program: Program,
    pub(crate) warnings: Vec<Refusal>,
}

/// The bytes of an argument.
pub(crate) fn bytes(text: &OsString) -> Vec<u8> {
    text.as_encoded_bytes().to_vec()
}

impl Texts {
    /// Whether there is neither a file nor a term.
    pub(crate) fn is_empty(&self) -> bool {
        self.files.is_empty() && self.expressions.is_empty()
    }

    /// Whether the differential extension is on.
    pub(crate) fn extension(&self) -> Extension {
        if self.differential { Extension::Differential } else { Extension::None }
    }

    /// The terms that were given, each with its source.
    pub(crate) fn sources(&self) -> Vec<Rc<Source>> {
        let several = self.expressions.len() > 1;
        let name = |i: usize| if several { format!("<expr {}>", i + 1) } else { "<expr>".to_owned() };
        self.expressions.iter().enumerate().map(|(i, text)| Source::new(name(i), bytes(text))).collect()
    }

    /// Reads the files into one program.
    pub(crate) fn load(&self) -> Result<Loaded, Failure> {
        let structure = if self.explicit { Structure::Explicit } else { Structure::Inserted };
        let mut program = Program::new(self.order, Mode { structure, extension: self.extension() })?;
        let mut sources = Vec::new();
        let mut refusals = Vec::new();
        for path in &self.files {
            match read(path) {
                Ok(source) => sources.push(source),
                Err(refusal) => refusals.push(refusal),
            }
        }
        if refusals.is_empty() {
            // A text that cannot be parsed says nothing about those behind it.
            refusals.extend(sources.iter().filter_map(|source| parse::file(source).err()));
        }
        let mut warnings = Vec::new();
        if refusals.is_empty() {
            for source in &sources {
                let loaded = program.load(source);
                refusals.extend(loaded.refusals);
                warnings.extend(loaded.warnings);
            }
        }
        if refusals.is_empty() { Ok(Loaded { program, warnings }) } else { Err(Failure::Refused(refusals)) }
    }

    /// The proofs of the terms that were given; else the one that `main` names; else the last definition. A name that
    /// means nothing is refused beside terms too.
    pub(crate) fn subjects(&self, program: &Program, main: Option<&str>) -> Result<Vec<Checked>, Failure> {
        let sources = self.sources();
        if sources.is_empty() {
            return Ok(vec![self.main(program, main)?]);
        }
        if main.is_some() {
            self.main(program, main)?;
        }
        let (mut found, mut refusals) = (Vec::new(), Vec::new());
        for source in &sources {
            match parse::query(source).and_then(|query| elaborate(program, source, &query)) {
                Ok(checked) => found.push(checked),
                Err(refusal) => refusals.push(refusal),
            }
        }
        if refusals.is_empty() { Ok(found) } else { Err(Failure::Refused(refusals)) }
    }

    /// The one proof that a command is about.
    pub(crate) fn subject(&self, program: &Program, main: Option<&str>) -> Result<Checked, Failure> {
        if self.expressions.len() > 1 {
            return Err(Failure::Usage("one proof is wanted, not several `-e`".to_owned()));
        }
        let mut subjects = self.subjects(program, main)?;
        subjects.pop().ok_or_else(no_subject)
    }

    fn main(&self, program: &Program, main: Option<&str>) -> Result<Checked, Failure> {
        let Some(text) = main else {
            let last = program.definitions().last().ok_or_else(no_subject)?;
            return Ok(instance(last, &[])?);
        };
        let source = Source::new("<main>", text.as_bytes().to_vec());
        let malformed = || Failure::Usage(format!("`{text}` is not a name with formulas in braces"));
        let query = parse::query(&source).map_err(|_| malformed())?;
        match query.term.kind {
            TermKind::Name { .. } if query.formula.is_none() => {}
            _ => return Err(malformed()),
        }
        // There is no text to point at but that of the flag.
        Ok(elaborate(program, &source, &query).map_err(Refusal::unplaced)?)
    }
}

fn no_subject() -> Failure {
    Failure::Usage("there is no proof to work on: give `-e TEXT`, or a file with a definition".to_owned())
}

fn read(path: &PathBuf) -> Result<Rc<Source>, Refusal> {
    let is_stdin = path.as_os_str() == "-";
    let name = if is_stdin { "<stdin>".to_owned() } else { path.to_string_lossy().into_owned() };
    let bytes = if is_stdin {
        let mut bytes = Vec::new();
        std::io::stdin().lock().read_to_end(&mut bytes).map(|_| bytes)
    } else {
        std::fs::read(path)
    };
    bytes
        .map(|bytes| Source::new(name.clone(), bytes))
        .map_err(|error| Refusal::new(Kind::Io, format!("`{name}` cannot be read: {error}")))
}
