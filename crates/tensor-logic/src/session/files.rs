//! Files (section 6): relations from text and tables, dense tensors from `.npy` and
//! `.safetensors`, and the way back.
//!
//! Enter at [`Files`], which is a [`FileSource`] for analysis and writes answers. The ending of a
//! name decides the format; each format has a file here, readers take bytes and give rows or an
//! array and never look at the disk. Nothing that a header claims is believed before the bytes
//! are there. Writing goes to a temporary file in the same folder, which is then renamed.

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use crate::ast::{self, Span};
use crate::engine::Value;
use crate::error::{Code, Refusal, Result};
use crate::include::Texts;
use crate::library;
use crate::lower::{FileSource, Loaded, Wanted};
use crate::program::{Facts, Program, TensorId};
use crate::value::Symbols;

mod cells;
mod content;
pub mod npy;
pub mod safe;
pub mod table;
pub mod words;

pub use content::{Dense, Fault};

/// The formats, by the endings of names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Words,
    Table(table::Dialect),
    Npy,
    Safetensors,
}

impl Format {
    fn of(name: &str) -> Option<Format> {
        match Path::new(name).extension()?.to_str()? {
            "txt" => Some(Format::Words),
            "csv" => Some(Format::Table(table::Dialect::Commas)),
            "tsv" => Some(Format::Table(table::Dialect::Tabs)),
            "facts" => Some(Format::Table(table::Dialect::RawTabs)),
            "npy" => Some(Format::Npy),
            "safetensors" => Some(Format::Safetensors),
            _ => None,
        }
    }
}

/// The files beside a program.
#[derive(Debug, Clone)]
pub struct Files {
    folder: PathBuf,
    contents: bool,
}

impl Files {
    /// The files in a program's folder.
    pub fn new(folder: impl Into<PathBuf>) -> Files {
        Files { folder: folder.into(), contents: true }
    }

    /// The same, for `check`: a file must exist and be readable, but faults of its contents are
    /// no refusal; it is taken as empty then.
    pub fn presence(folder: impl Into<PathBuf>) -> Files {
        Files { folder: folder.into(), contents: false }
    }

    /// Writes a tensor.
    ///
    /// # Errors
    /// `file-not-found` where the path is not allowed or cannot be written, `file-format` where
    /// the format cannot hold the tensor.
    pub fn write(
        &self,
        program: &Program,
        file: &str,
        tensor: TensorId,
        value: &Value,
        span: Span,
    ) -> Result<()> {
        let path = self.path(file, span)?;
        let mut bytes = Vec::new();
        let tensor = program.tensor(tensor);
        let domains: Vec<_> = tensor.places.iter().filter_map(|place| place.domain.clone()).collect();
        let shape: Vec<usize> = domains.iter().map(crate::value::Domain::len).collect();
        let format = Format::of(file).ok_or_else(|| unknown(file, span))?;
        let made = match (format, value) {
            (Format::Words, Value::Tuples(tuples)) => words::write(tuples, &program.symbols, &mut bytes),
            (Format::Table(dialect), value) => {
                let rows = table::Rows { value, domains: &domains, kind: tensor.kind };
                table::write(&rows, &program.symbols, dialect, &mut bytes)
            }
            (Format::Npy, Value::Dense(values)) => npy::write(&shape, &values.doubles(), &mut bytes),
            (Format::Safetensors, Value::Dense(values)) => {
                let before = self.read_if_there(&path, file, span)?;
                safe::write(before.as_deref(), &tensor.name, &shape, &values.doubles(), &mut bytes)
            }
            (Format::Npy | Format::Safetensors, Value::Counts(_)) => Err(Fault::Whole(
                "this format holds numbers of 53 bits, and a count has more: write a .csv file".to_owned(),
            )),
            (Format::Words, Value::Dense(_) | Value::Counts(_)) => Err(holds_only("relations")),
            (Format::Npy | Format::Safetensors, Value::Tuples(_)) => Err(holds_only("square tensors")),
        };
        made.map_err(|fault| bad_format(file, span, &fault))?;
        calculemus_base::file::write(&path, &bytes).map_err(|error| cannot(file, span, "written", &error))
    }

    /// The bytes of a file that may not be there yet.
    fn read_if_there(&self, path: &Path, file: &str, span: Span) -> Result<Option<Vec<u8>>> {
        match read(path) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(cannot(file, span, "read", &error)),
        }
    }

    /// The path of a name in the program's folder.
    fn path(&self, file: &str, span: Span) -> Result<PathBuf> {
        let inside = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
        let path = Path::new(file);
        let rule = "paths are relative to the program's folder: no absolute paths, no `..`";
        if !path.components().all(inside) || file.is_empty() || file.contains('\0') {
            let message = format!("the path `{file}` is not allowed: {rule}");
            return Err(Refusal::new(Code::FileNotFound, span, message).help(rule));
        }
        Ok(self.folder.join(path))
    }
}

/// The library's files begin with `std/`, the others lie in the program's folder.
impl Texts for Files {
    fn text(&mut self, file: &str, span: Span) -> Result<String> {
        if let Some(name) = file.strip_prefix("std/") {
            return library::text(name).map(str::to_owned).ok_or_else(|| {
                let message = format!("the library has no file `{file}`");
                let names =
                    library::names().map(|name| format!("`std/{name}`")).collect::<Vec<_>>().join(", ");
                Refusal::new(Code::FileNotFound, span, message).help(format!("there are {names}"))
            });
        }
        let path = self.path(file, span)?;
        let bytes = read(&path).map_err(|error| cannot(file, span, "read", &error))?;
        String::from_utf8(bytes).map_err(|error| {
            let message =
                format!("`{file}` is no text: byte {} is not UTF-8", error.utf8_error().valid_up_to());
            Refusal::new(Code::FileFormat, span, message)
        })
    }
}

impl FileSource for Files {
    fn load(&mut self, wanted: &Wanted<'_>, symbols: &mut Symbols) -> Result<Loaded> {
        let (file, span) = (wanted.file.value.as_str(), wanted.file.span);
        let path = self.path(file, span)?;
        let format = Format::of(file).ok_or_else(|| unknown(file, span))?;
        let layout = layout(format, wanted.options)?;
        let bytes = read(&path).map_err(|error| cannot(file, span, "read", &error))?;
        let read = match format {
            Format::Words => words::read(&bytes, symbols).map(Loaded::Facts),
            Format::Table(dialect) => table::read(&bytes, dialect, layout, symbols).map(Loaded::Facts),
            Format::Npy => npy::read(&bytes).map(array),
            Format::Safetensors => {
                let named = wanted.options.first().map(|option| option.text.as_str());
                safe::read(&bytes, named, wanted.tensor).map(array)
            }
        };
        match read {
            Err(_) if !self.contents => Ok(Loaded::Facts(Facts::default())),
            read => read.map_err(|fault| bad_format(file, span, &fault)),
        }
    }
}

/// Files that a program reads, and the folder that it writes to.
pub trait Folder: FileSource {
    /// Where files are written.
    fn files(&self) -> &Files;
}

impl Folder for Files {
    fn files(&self) -> &Files {
        self
    }
}

fn array(dense: Dense) -> Loaded {
    Loaded::Array { shape: dense.shape, values: Arc::from(dense.values), rest: Arc::from(dense.rest) }
}

/// The options of a table.
fn layout(format: Format, options: &[ast::Name]) -> Result<table::Layout> {
    let mut layout = table::Layout::default();
    for option in options {
        match (format, option.text.as_str()) {
            (Format::Table(_), "values") => layout.values = true,
            (Format::Table(_), "header") => layout.header = true,
            (Format::Safetensors, _) if options.len() == 1 => {}
            (_, other) => {
                // Of several names of a tensor the first may be it.
                let (option, other) = match (format, options) {
                    (Format::Safetensors, [_, second, ..]) => (second, second.text.as_str()),
                    _ => (option, other),
                };
                let message = format!("this file takes no option `{other}`");
                let help = match format {
                    Format::Table(_) => "the options are `values` and `header`",
                    Format::Safetensors => "the one option is the name of the tensor in the file",
                    Format::Words | Format::Npy => "drop it",
                };
                return Err(Refusal::new(Code::BadArgument, option.span, message).help(help));
            }
        }
    }
    Ok(layout)
}

/// The bytes of a regular file; a pipe or a device would not end.
fn read(path: &Path) -> std::io::Result<Vec<u8>> {
    if !std::fs::metadata(path)?.is_file() {
        return Err(std::io::Error::other("it is not a file"));
    }
    std::fs::read(path)
}

fn unknown(file: &str, span: Span) -> Refusal {
    let message = format!("the ending of `{file}` names no format");
    let help = "the endings are .txt, .csv, .tsv, .facts, .npy and .safetensors";
    Refusal::new(Code::FileFormat, span, message).help(help)
}

fn cannot(file: &str, span: Span, what: &str, error: &std::io::Error) -> Refusal {
    Refusal::new(Code::FileNotFound, span, format!("`{file}` cannot be {what}: {error}"))
}

fn bad_format(file: &str, span: Span, fault: &Fault) -> Refusal {
    Refusal::new(Code::FileFormat, span, format!("`{file}`: {fault}"))
}

fn holds_only(what: &str) -> Fault {
    Fault::Whole(format!("this format holds {what} only"))
}
