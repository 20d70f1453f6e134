//! What the readers of data sets share: a file with places in it to point at, why a data set is not read or written, and
//! files that are written all or none over.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::ast::Span;
use crate::error::{Code, Refusal};
use crate::source::Source;

/// Why a data set was not read or written.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// A file that is not there or cannot be read.
    #[error("cannot read {}: {error}", path.display())]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// Why not.
        error: std::io::Error,
    },
    /// A line that is not what it must be.
    #[error("{}:{line}: {}", text.file, report.message)]
    Wrong {
        /// The file.
        text: Box<Source>,
        /// Its line, from 1.
        line: usize,
        /// What is wrong there.
        report: Box<Refusal>,
    },
    /// A file that would have been overwritten.
    #[error("{} is there already", path.display())]
    InTheWay {
        /// Which.
        path: PathBuf,
    },
    /// A file that cannot be written.
    #[error("cannot write {}: {error}", path.display())]
    Unwritable {
        /// Which.
        path: PathBuf,
        /// Why not.
        error: std::io::Error,
    },
}

/// Writes files into a folder, made if it is not there; answers with their paths.
///
/// # Errors
/// A file of such a name that is there already, before anything is written; files that cannot be written.
pub(crate) fn write_new(folder: &Path, files: Vec<(String, String)>) -> Result<Vec<PathBuf>, Failure> {
    let files: Vec<(PathBuf, String)> =
        files.into_iter().map(|(name, text)| (folder.join(name), text)).collect();
    if let Some((path, _)) = files.iter().find(|(path, _)| path.symlink_metadata().is_ok()) {
        return Err(Failure::InTheWay { path: path.clone() });
    }
    let failed = |path: &Path, error| Failure::Unwritable { path: path.to_owned(), error };
    std::fs::create_dir_all(folder).map_err(|error| failed(folder, error))?;
    for (path, text) in &files {
        calculemus_base::file::write(path, text.as_bytes()).map_err(|error| failed(path, error))?;
    }
    Ok(files.into_iter().map(|(path, _)| path).collect())
}

/// A file.
#[derive(Debug)]
pub(crate) struct Sheet {
    source: Source,
}

impl Sheet {
    pub(crate) fn read(path: &Path) -> Result<Sheet, Failure> {
        let unreadable = |error| Failure::Unreadable { path: path.to_owned(), error };
        let bytes = std::fs::read(path).map_err(unreadable)?;
        let sheet = Sheet { source: Source::new(path.display().to_string(), &bytes) };
        match std::str::from_utf8(&bytes) {
            Ok(_) => Ok(sheet),
            Err(error) => {
                let end = sheet.source.text.len();
                let start = error.valid_up_to().min(end);
                // A replacement character stands there, of three bytes.
                let span = Span { start, end: (start + 3).min(end) };
                Err(sheet.wrong(span, "this is no text of UTF-8".to_owned()))
            }
        }
    }

    /// `None` where there is no such file.
    pub(crate) fn read_if_there(path: &Path) -> Result<Option<Sheet>, Failure> {
        match Sheet::read(path) {
            Ok(sheet) => Ok(Some(sheet)),
            Err(Failure::Unreadable { error, .. }) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    /// The text; a mark of the byte order at its beginning is a letter of it.
    pub(crate) fn text(&self) -> &str {
        &self.source.text
    }

    /// The path, as messages name it.
    pub(crate) fn name(&self) -> &str {
        &self.source.file
    }

    /// The lines, but for empty ones at the end and a mark of the byte order.
    pub(crate) fn rows(&self) -> impl Iterator<Item = Row<'_>> {
        let text = self.source.text.trim_start_matches('\u{feff}');
        let mut start = self.source.text.len() - text.len();
        text.trim_end().split_inclusive('\n').map(move |line| {
            let row = Row { sheet: self, start, text: line.trim_end() };
            start += line.len();
            row
        })
    }

    /// Refuses where there are more or fewer lines than things.
    pub(crate) fn as_many(&self, lines: usize, things: usize, name: &str) -> Result<(), Failure> {
        if lines == things {
            return Ok(());
        }
        let message = format!("{lines} lines for {things} {name}");
        // The first line too many, or the last.
        Err(match self.rows().nth(things.min(lines.saturating_sub(1))) {
            Some(row) => row.wrong(message),
            None => self.wrong(Span { start: 0, end: 0 }, message),
        })
    }

    /// The line of a place, from 1.
    pub(crate) fn line(&self, span: Span) -> usize {
        let before = self.source.text.get(..span.start).unwrap_or("");
        1 + before.bytes().filter(|byte| *byte == b'\n').count()
    }

    /// A refusal that points at a place.
    pub(crate) fn wrong(&self, span: Span, message: String) -> Failure {
        let line = self.line(span);
        let report = Box::new(Refusal::new(Code::FileFormat, span, message));
        Failure::Wrong { text: Box::new(self.source.clone()), line, report }
    }
}

/// A line.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row<'a> {
    sheet: &'a Sheet,
    start: usize,
    text: &'a str,
}

impl<'a> Row<'a> {
    /// What stands between the commas.
    pub(crate) fn cells(&self) -> Vec<Cell<'a>> {
        let (row, mut start) = (*self, self.start);
        let cell = move |text: &'a str| {
            let inner = text.trim();
            let cell = Cell { row, start: start + (text.len() - text.trim_start().len()), text: inner };
            start += text.len() + 1;
            cell
        };
        self.text.split(',').map(cell).collect()
    }

    /// The only cell.
    pub(crate) fn only(&self) -> Result<Cell<'a>, Failure> {
        match self.cells()[..] {
            [cell] => Ok(cell),
            _ => Err(self.wrong("one number stands in a line".to_owned())),
        }
    }

    /// A line with one whole number.
    pub(crate) fn whole(&self) -> Result<i64, Failure> {
        self.only()?.whole()
    }

    pub(crate) fn wrong(&self, message: String) -> Failure {
        self.sheet.wrong(Span { start: self.start, end: self.start + self.text.len() }, message)
    }
}

/// What stands between two commas.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cell<'a> {
    row: Row<'a>,
    start: usize,
    text: &'a str,
}

impl Cell<'_> {
    pub(crate) fn whole(&self) -> Result<i64, Failure> {
        self.text.parse().map_err(|_| self.wrong(format!("`{}` is no whole number of 64 bits", self.shown())))
    }

    /// A finite number.
    pub(crate) fn number(&self) -> Result<f64, Failure> {
        let number = self.text.parse().ok().filter(|number: &f64| number.is_finite());
        number.ok_or_else(|| self.wrong(format!("`{}` is no number", self.shown())))
    }

    /// One of so many things, counted from 1.
    pub(crate) fn index(&self, count: usize, things: &str) -> Result<usize, Failure> {
        let number = self.whole()?;
        let index = usize::try_from(number).ok().filter(|index| (1..=count).contains(index));
        index.ok_or_else(|| {
            self.wrong(format!("{number} is none of the {count} {things}, which count from 1"))
        })
    }

    /// Its text, not all of it if it is long.
    fn shown(&self) -> String {
        calculemus_base::word::shortened(self.text)
    }

    fn wrong(&self, message: String) -> Failure {
        let end = (self.start + self.text.len()).max(self.start);
        self.row.sheet.wrong(Span { start: self.start, end }, message)
    }
}
