//! What a sweep showed, in the same files for every learner: `table.csv`, `table.md`, a document, pictures and a page.

use std::path::{Path, PathBuf};

use anyhow::Result;
use maud::Markup;
use serde_json::{Map, Value};

use crate::draw::csv;
use crate::draw::html::{self, Table};
use crate::draw::plot::Plot;
use crate::record::write_document;

/// What the files say.
pub(crate) struct Summary {
    /// The lines of `table.csv`, and the columns that begin them.
    pub(crate) lines: Vec<Map<String, Value>>,
    pub(crate) columns: &'static [&'static str],
    /// Where the numbers are from.
    pub(crate) origin: String,
    /// The tables for people, each with its title and what must be said of it.
    pub(crate) tables: Vec<(String, Table, Vec<String>)>,
    /// The pictures, by the names of their files.
    pub(crate) plots: Vec<(String, Plot)>,
    /// What stands on the page besides.
    pub(crate) further: Markup,
    /// A file, and what is in it.
    pub(crate) file: (&'static str, Value),
    /// The answer for programs.
    pub(crate) document: Value,
}

impl Summary {
    /// Writes every file of the sweep of this name into its folder, and returns the page.
    pub(crate) fn write(&self, name: &str, folder: &Path) -> Result<PathBuf> {
        let put = |name: &str, text: &str| training::files::write(&folder.join(name), text.as_bytes());
        put("table.csv", &csv::table(self.columns, &self.lines)?)?;
        put("table.md", &self.markdown(name))?;
        write_document(&folder.join(self.file.0), &self.file.1)?;
        for (name, plot) in &self.plots {
            put(&format!("{name}.svg"), &plot.document())?;
        }
        put("report.html", &self.page(name))?;
        Ok(folder.join("report.html"))
    }

    fn markdown(&self, name: &str) -> String {
        let mut text = format!("# {name}\n\n{}\n", self.origin);
        for (title, table, notes) in &self.tables {
            text += &format!("\n## {title}\n\n{}", table.markdown());
            text.extend(notes.iter().map(|note| format!("\n{note}\n")));
        }
        text
    }

    fn page(&self, name: &str) -> String {
        let tables = self.tables.iter().map(|(title, table, notes)| {
            let notes = notes.iter().map(|note| html::note(note));
            html::section(title, &html::join(std::iter::once(table.html()).chain(notes)))
        });
        let figures: Vec<String> = self.plots.iter().map(|(_, plot)| plot.figure()).collect();
        let pictures = html::section("Pictures", &html::figures(&figures));
        let parts = std::iter::once(html::heading(name, &self.origin)).chain(tables);
        html::page(name, &html::join(parts.chain([pictures, self.further.clone()])))
    }
}
